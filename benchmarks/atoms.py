"""``python -m benchmarks.atoms``: what building versions costs, and what atoms cost in regret and in bytes.

``--prototype`` names a folder with another implementation of the same algorithm, to be timed beside this one; there is
none in this repository. Its modules are called as `Played` does: `batched.py` has a world ``Env``, `core.py` a
``Reference`` to which points are added, and `simlag.py` the functions ``build_atoms`` and ``run``. It is then played on
the same seeds, and the versions are built of the log that it left, so that both builders have the same inputs in one
run.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.clock import Cost, peak_memory, timed
from benchmarks.lag import DELTA, GROWTH, HEADER, SETTINGS, Setting, Simulation, World
from laconic.arrays import Floats
from laconic.atoms import Recipe, Reference, Version, build
from laconic.atoms import version as versions
from laconic.errors import InputError

app = typer.Typer(add_completion=False)
#: The modules of another implementation.
PARTS = ("batched.py", "core.py", "simlag.py")
Prototype = Annotated[
    Path | None,
    typer.Option(
        help="A folder with another implementation of the same algorithm, to be timed beside: batched.py (Env), "
        "core.py (Reference.add) and simlag.py (build_atoms, run)."
    ),
]


@dataclass
class Recorded:
    """A log, where it was cut into versions, and what somebody's builder made of it."""

    X: list[Floats] = field(default_factory=list)
    y: list[Floats] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    atoms: list[int] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)
    regret: float = float("nan")
    megabytes: float = float("nan")

    @property
    def length(self) -> int:
        return sum(map(len, self.y))


@app.command()
def main(
    case: Annotated[str, typer.Argument(help=f"One of {', '.join(SETTINGS)}.")] = "d5",
    seeds: Annotated[int, typer.Option(min=1, help="How many, from 100 on.")] = 1,
    prototype: Prototype = None,
    play: Annotated[bool, typer.Option(help="Also play the simulation in rounds.")] = True,
) -> None:
    """Print costs, ratios and, where it is played, regret and bytes of one setting."""
    setting = SETTINGS[case]
    if prototype is not None:
        require_prototype(prototype)
    for seed in range(100, 100 + seeds):
        if prototype is None:
            record = schedule(setting, seed=seed)
        else:
            record = Played(prototype).record(setting, seed=seed)
            typer.echo(f"{case} {seed} other   {_line(record)}")
        typer.echo(f"{case} {seed} here    {rebuilt(setting, record)}")
        if play:
            typer.echo(f"{case} {seed} played  {Simulation(setting, seed=seed, atoms=Recipe()).run()}")


def require_prototype(folder: Path) -> None:
    """Say what is missing of another implementation."""
    missing = [name for name in PARTS if not (folder / name).exists()]
    if missing:
        raise InputError(f"{folder} has no {', '.join(missing)}; without --prototype only this implementation is timed")


def _line(record: Recorded) -> str:
    return (
        f"regret {record.regret:.1f}  MB {record.megabytes:.3f}  atoms {np.mean(record.atoms):.0f} "
        f"(last {record.atoms[-1]})  building {record.cost.cpu:.2f} s"
    )


def schedule(setting: Setting, *, seed: int) -> Recorded:
    """A log of arms as they come, cut where it has grown by a tenth."""
    world, record = World(setting, seed=seed), Recorded()
    for step in range(setting.rounds):
        here = slice(step * setting.clients, (step + 1) * setting.clients)
        record.X.append(world.arms[here, 0])
        record.y.append(world.means[here, 0] + world.noise[here])
        if record.length > (1 + GROWTH) * (record.cuts[-1] if record.cuts else 0):
            record.cuts.append(record.length)
    return record


def rebuilt(setting: Setting, record: Recorded) -> str:
    """The versions of a log, timed in three parts: the reference, the choice of atoms, and all that follows it."""
    X, y = np.concatenate(record.X), np.concatenate(record.y)
    reference = Reference(kernel=setting.kernel, dim=setting.dim)
    settings, previous, sizes = Recipe(share=1.0), None, list[int]()
    referring, building = Cost(), Cost()
    with clocked(versions, "select") as choosing:
        for number, last in enumerate(record.cuts):
            new = slice(reference.covered, last)
            cost, reference = timed(partial(reference.extended, X[new], y[new]))
            referring += cost
            cost, digest = timed(_building(reference, setting, settings, previous, number))
            building += cost
            if isinstance(digest, Version):
                previous = digest
                sizes.append(len(digest.atoms))
    certificate = building.cpu - choosing[0].cpu
    total = referring.cpu + building.cpu
    ratio = f"  ratio {total / record.cost.cpu:.2f}" if record.cost.cpu else ""
    return (
        f"versions {len(sizes)} of {len(record.cuts)}  atoms {np.mean(sizes):.0f} (last {sizes[-1]})  "
        f"R {reference.rank}  reference {referring.cpu:.2f} s  choice {choosing[0].cpu:.2f} s  "
        f"certificate {certificate:.2f} s  total {total:.2f} s  peak {peak_memory() / 1e9:.2f} GB{ratio}"
    )


def _building(
    reference: Reference, setting: Setting, settings: Recipe, previous: Version | None, number: int
) -> Callable[[], Any]:
    random = np.random.default_rng([number])
    return lambda: build(reference, lam=setting.lam, settings=settings, random=random, previous=previous)


@contextmanager
def clocked(owner: Any, name: str) -> Iterator[list[Cost]]:
    """The summed cost of a function of a module or a class while this is open."""
    whole, function = [Cost()], getattr(owner, name)

    def measured(*arguments: Any, **named: Any) -> Any:
        cost, result = timed(lambda: function(*arguments, **named))
        whole[0] += cost
        return result

    setattr(owner, name, measured)
    try:
        yield whole
    finally:
        setattr(owner, name, function)


class Played:
    """Another implementation, watched from outside while it plays."""

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(folder))
        self.core: Any = importlib.import_module("core")
        self.simlag: Any = importlib.import_module("simlag")
        self.batched: Any = importlib.import_module("batched")

    def record(self, setting: Setting, *, seed: int) -> Recorded:
        """Play a setting and keep the log, the cuts and the cost of building."""
        record, add, builder = Recorded(), self.core.Reference.add, self.simlag.build_atoms

        def adding(reference: Any, X: Floats, y: Floats) -> None:
            cost, _ = timed(lambda: add(reference, X, y))
            record.cost += cost
            record.X.append(X + 0.0)
            record.y.append(y.copy())

        def building(*arguments: Any, **named: Any) -> Any:
            cost, result = timed(lambda: builder(*arguments, **named))
            record.cost += cost
            record.cuts.append(record.length)
            record.atoms.append(len(result[0]))
            return result

        self.core.Reference.add, self.simlag.build_atoms = adding, building
        try:
            found = self.prepared(setting, seed=seed)()
        finally:
            self.core.Reference.add, self.simlag.build_atoms = add, builder
        record.regret, record.megabytes = found["reg"], found["bytes"] / 1e6
        return record

    def prepared(self, setting: Setting, *, seed: int) -> Callable[[], Any]:
        """A run that only has to be called, its arms drawn."""
        world = self.batched.Env(setting.clients, setting.rounds, setting.dim, K=setting.arms, f=1, seed=seed)
        ours = World(setting, seed=seed)
        world.X, world.mu, world.noise, world.best = ours.arms, ours.means, ours.noise, ours.means.max(axis=1)
        limits = {"delta": DELTA, "dstep": 0.03, "cmax": 4, "kap": 0.15, "blend": 1.0, "rho": GROWTH, "geo": GROWTH}
        limits |= {"tol": 0.005 / setting.lam, "head": HEADER}
        return partial(self.simlag.run, world, setting.gamma, setting.alpha, setting.lam, 0, **limits)


if __name__ == "__main__":
    app()
