"""A suggestion: settings, what they rest on, and the algorithms and files that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from laconic.algorithms import Algorithm, ApproxDisKernelUCB, DisKernelUCB, LaconicUCB, NKernelUCB, OneKernelUCB
from laconic.checks import require_whole, seen
from laconic.errors import InputError
from laconic.experiments.parts import ProblemLike, as_problem, name_of, to_table
from laconic.kernels import Kernel
from laconic.problems.base import Problem
from laconic.suggestion.costs import Cost, Traffic, costs
from laconic.suggestion.curve import Curve
from laconic.suggestion.sample import Sample

SEEDS = 3
#: Interactions of all clients in an experiment that is written without being told how many.
STEPS = 2000


@dataclass(frozen=True)
class Grounds:
    """What a suggestion rests on."""

    sample: Sample = field(repr=False)
    curve: Curve = field(repr=False)
    median: Kernel  # as the median heuristic has it
    signal: float | None = None  # s, the deviation of rewards' means; None without rewards
    noise: float | None = None  # its deviation, from residuals
    log: float | None = None  # the evidence
    lost: tuple[float, float] | None = None  # how much less it is with half and with twice the kernel's scale
    at_limit: tuple[str, ...] = ()  # parameters that ended at a limit of the search


@dataclass(frozen=True)
class Suggestion:
    """Settings for all kernel algorithms, and what they would send.

    Attributes:
        kernel: Kernel with the scale that was found.
        lam: Ridge λ of all algorithms.
        alpha: Weight α of σ in the index μ + ασ.
        delta: Part δ of LaconicUCB.
        D: Threshold D of DisKernelUCB.
        D_approx: Threshold D of ApproxDisKernelUCB.
        qbar: Scale q̄ of ApproxDisKernelUCB.
        ranges: Size of features, for LaconicUCB.
        reward: Size of rewards, for LaconicUCB.
        d_eff: Effective dimension of the sample.
        traffic: Clients and interactions that costs are estimated for.
        grounds: What the settings rest on.
        problem: The problem that the sample was drawn from; None where the data is one's own.
    """

    kernel: Kernel
    lam: float
    alpha: float
    delta: float
    D: float
    D_approx: float
    qbar: float
    ranges: float
    reward: float
    d_eff: float
    traffic: Traffic
    grounds: Grounds = field(repr=False)
    problem: Problem | None = None

    def algorithm(self, name: str = "LaconicUCB") -> Algorithm:
        """One algorithm with these settings.

        Args:
            name: LaconicUCB, DisKernelUCB, ApproxDisKernelUCB, OneKernelUCB or NKernelUCB, in any case.
        """
        known = self.algorithms()
        found = {each.lower(): each for each in known}.get(str(name).lower())
        if found is None:
            raise InputError(f"there is no suggestion for {seen(name)}; try one of {', '.join(known)}")
        return known[found]

    def algorithms(self) -> dict[str, Algorithm]:
        """The kernel algorithms by name, each with these settings."""
        common: dict[str, Any] = {"kernel": self.kernel, "lam": self.lam, "alpha": self.alpha}
        return {
            "LaconicUCB": LaconicUCB(**common, delta=self.delta, ranges=self.ranges, reward=self.reward),
            "DisKernelUCB": DisKernelUCB(**common, D=self.D),
            "ApproxDisKernelUCB": ApproxDisKernelUCB(**common, D=self.D_approx, qbar=self.qbar, cold_start="local"),
            "OneKernelUCB": OneKernelUCB(**common),
            "NKernelUCB": NKernelUCB(**common),
        }

    def costs(self) -> dict[str, Cost]:
        """Estimated bytes of a client on its first day and on an average day of the month after, by algorithm."""
        return costs(self.algorithms(), curve=self.grounds.curve, traffic=self.traffic)

    def explain(self) -> str:
        """All of it in plain sentences."""
        from laconic.suggestion.words import explained

        return explained(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        from laconic.suggestion.words import as_dict

        return as_dict(self)

    def to_toml(
        self,
        *,
        problem: ProblemLike | None = None,
        clients: int | None = None,
        rounds: int | None = None,
        folder: str | PathLike[str] | None = None,
    ) -> str:
        """An experiment file for ``laconic run``: these algorithms on the problem that the sample was drawn from.

        Of points of one's own `rehearsal` makes a problem.

        Args:
            problem: What is played: a value, a name that laconic list shows, or the path of an .npz file; None: the
                problem that the sample was drawn from, without which this is refused.
            clients: Clients N, from 1; None: what a file of steps decides, and else those of ``traffic``.
            rounds: Rounds T, from 1; None: what a file of steps decides, and else the interactions of one client in a
                day, but no more than 2,000 of all clients together.
            folder: Folder where the text will lie. A problem's file in it is named from there, so that both can be
                moved together. None: files are named as they are.
        """
        from laconic.experiments.config import beside, problem_table, to_text
        from laconic.experiments.spec import SpecFile

        for name, value in (("clients", clients), ("rounds", rounds)):
            if value is not None:
                require_whole(name, value, least=1)
        played = self.problem if problem is None else as_problem(problem)
        if played is None:
            raise InputError(
                "these points are of no problem that an experiment could play; give problem=, or see rehearsal"
            )
        n, t = self._sizes(played, clients=clients, rounds=rounds)
        table = problem_table(played)
        file = SpecFile(
            title=f"As suggested: {self._subject(played)}",
            clients=n,
            rounds=t,
            seeds=list(range(SEEDS)),
            problem=table if folder is None else beside(table, folder=Path(folder)),
            algorithms=[to_table(each, name=name) for name, each in self.algorithms().items()],
        )
        return "# Run it with: laconic run THIS_FILE --out DIR\n\n" + to_text(file)

    def _subject(self, problem: Problem) -> str:
        """The file that the sample was read from, or that the problem is, and else the problem's name."""
        file = self.grounds.sample.file or getattr(problem, "path", "")
        return Path(file).name if file else name_of(problem, kind="problem")

    def _sizes(self, problem: Problem, *, clients: int | None, rounds: int | None) -> tuple[int, int]:
        own = getattr(problem, "sizes", None)
        if own is not None:
            sizes: tuple[int, int] = own(clients, rounds)
            return sizes
        n = clients or self.traffic.clients
        return n, rounds or max(1, min(self.traffic.daily, STEPS // n))
