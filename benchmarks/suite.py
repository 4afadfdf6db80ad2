"""All benchmarks by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from benchmarks.beside import BesideLoopback, BesideSmall, Sweep
from benchmarks.cases import RunCase
from benchmarks.result import Result, Target
from benchmarks.service import Service
from benchmarks.startup import StartUp
from benchmarks.threads import Threads
from laconic import (
    ApproxDisKernelUCB,
    Catalogue,
    Cosine,
    DisKernelUCB,
    DisLinUCB,
    Gaussian,
    NKernelUCB,
    OneKernelUCB,
)


class Benchmark(Protocol):
    """Something to measure in a process of its own."""

    @property
    def name(self) -> str:
        """What ``--only`` takes."""
        ...

    @property
    def summary(self) -> str:
        """One line for ``--list``."""
        ...

    def measure(self, *, quick: bool, repeat: int | None) -> list[Result]:
        """Do it; ``quick`` is at toy size."""
        ...


FIVE = Cosine(dim=5)
FIXED = Catalogue(items=20, arms=20)
THREE_SECONDS = (Target("cpu", 3.0),)
#: What a run on an exact belief may cost beside the floor, in which all arms are solved, by α.
EXACT = {0.1: 0.25, 1.0: 0.6, 4.0: 1.1}


def exact(kind: type[DisKernelUCB] | type[OneKernelUCB], *, alpha: float = 1.0) -> DisKernelUCB | OneKernelUCB:
    """An exact algorithm where nearly every point teaches something, so that no arm is settled early."""
    return kind(Gaussian(gamma=1.0), lam=1.0, alpha=alpha)


def _exact_runs() -> list[Benchmark]:
    kinds = {"diskernel": DisKernelUCB, "onekernel": OneKernelUCB}
    return [
        RunCase(
            name if alpha == 1.0 else f"{name}-alpha-{alpha:g}",
            exact(kind, alpha=alpha),
            Cosine(),
            targets=(Target("ratio", limit), Target("peak", 2.5)),
            sampled=5,
            repeat=1,
        )
        for name, kind in kinds.items()
        for alpha, limit in EXACT.items()
    ]


def approx(qbar: float = 0.3, *, D: float = 2.0) -> ApproxDisKernelUCB:
    """ApproxDisKernelUCB where it learns well on the synthetic problems, with dictionaries of some hundred points."""
    return ApproxDisKernelUCB(Gaussian(gamma=0.1), D=D, lam=0.1, alpha=0.1, qbar=qbar)


def smooth(qbar: float) -> ApproxDisKernelUCB:
    """One whose dictionary grows slowly with the horizon: at d=5 few points leave little unexplained."""
    return approx(qbar, D=0.2)


def _runs() -> list[Benchmark]:
    return [
        RunCase("approx", approx(), Cosine(), targets=(Target("ratio", 2.0),)),
        *_exact_runs(),
        RunCase("nkernel", NKernelUCB(), Cosine(), targets=THREE_SECONDS),
        RunCase("dislin", DisLinUCB(), Cosine(), targets=THREE_SECONDS),
        RunCase("fixed-diskernel", DisKernelUCB(), FIXED, targets=THREE_SECONDS),
        RunCase("fixed-onekernel", OneKernelUCB(), FIXED, targets=THREE_SECONDS),
        RunCase("fixed-nkernel", NKernelUCB(), FIXED, targets=THREE_SECONDS),
        RunCase("many-clients", smooth(1.5), FIVE, clients=10_000, rounds=20, repeat=1, quick=(200, 2)),
        BesideSmall(
            "million",
            large=RunCase(
                "million",
                smooth(1.5),
                FIVE,
                clients=1000,
                rounds=1000,
                targets=(Target("peak", 2.0),),
                sampled=10,
                repeat=1,
            ),
            small=RunCase("ten thousand", smooth(8.0), FIVE),
            target=Target("ratio", 1.5),
        ),
    ]


def _others() -> list[Benchmark]:
    return [
        StartUp("import", ("-c", "import laconic"), targets=(Target("ratio", 2.5),)),
        StartUp("help", ("-c", "from laconic.cli import main; main()", "--help"), targets=(Target("ratio", 4.0),)),
        BesideLoopback("loopback-approx", RunCase("approx", approx(), Cosine(), clients=50, rounds=50)),
        BesideLoopback(
            "loopback-diskernel", RunCase("diskernel", exact(DisKernelUCB), Cosine(), clients=30, rounds=30)
        ),
        Threads("threads-approx", RunCase("approx", approx(), Cosine())),
        Threads("threads-diskernel", RunCase("diskernel", exact(DisKernelUCB), Cosine(), clients=50, rounds=50)),
        Service(),
    ]


def _sweep(name: str, values: tuple[int, ...], case: Callable[[int], RunCase]) -> Sweep:
    return Sweep(name, tuple(case(value) for value in values))


def _sweeps() -> list[Benchmark]:
    large, capped, four = (
        exact(DisKernelUCB),
        approx(20.0, D=0.1),
        Cosine(dim=4),
    )  # at d=4 the kernel's rank caps m at 200 to 300
    return [
        _sweep("grow-clients", (50, 100, 200, 400), lambda n: RunCase(f"N={n}", capped, four, clients=n)),
        _sweep("grow-rounds", (50, 100, 200, 400), lambda t: RunCase(f"T={t}", capped, four, rounds=t)),
        _sweep("grow-arms", (5, 20, 80), lambda a: RunCase(f"A={a}", capped, Cosine(dim=4, arms=a))),
        _sweep("grow-dictionary", (2, 5, 15, 40), lambda q: RunCase(f"qbar={q / 10}", approx(q / 10), Cosine())),
        _sweep("grow-features", (5, 20, 80), lambda d: RunCase(f"d={d}", approx(), Cosine(dim=d))),
        _sweep("grow-exact", (15, 30, 60), lambda t: RunCase(f"T={t}", large, Cosine(), rounds=t, repeat=1)),
    ]


def suite() -> dict[str, Benchmark]:
    """All of them, in the order of the report."""
    return {benchmark.name: benchmark for benchmark in [*_runs(), *_others(), *_sweeps()]}
