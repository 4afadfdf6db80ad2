"""Who is compared with whom, on what, and what is required: data for `benchmarks.judged`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from laconic.algorithms import Algorithm, ApproxDisKernelUCB, DisKernelUCB, LaconicUCB, OneKernelUCB
from laconic.experiments.grid import expand, grid
from laconic.kernels import Gaussian
from laconic.problems import Catalogue, Cosine, PolynomialReward
from laconic.problems.base import Problem
from laconic.problems.ratings import MovieLens
from laconic.protocol.digests import AllPoints

#: γ and α of the paper's grid, with λ = 1 (`laconic/papers/li2022`).
GRID = (0.1, 1.0, 4.0)


@dataclass(frozen=True)
class Rival:
    """Whom LaconicUCB is compared with, and what is required of it there."""

    name: str
    algorithm: Algorithm
    regret: float | None = None  # its regret may be this many times the rival's
    surely: bool = False  # with the upper end of the interval rather than the ratio itself
    saving: float | None = None  # the rival sends at least this many times its bytes
    megabytes: float | None = None  # it sends no more than this, whoever the rival is

    @property
    def settings(self) -> tuple[Algorithm, ...]:
        """Every setting that the algorithm stands for; the best of them counts."""
        return tuple(single for _, single in expand(self.algorithm))

    @property
    def is_grid(self) -> bool:
        """Whether there are several settings."""
        return len(self.settings) > 1


@dataclass(frozen=True)
class Contest:
    """A problem, its sizes, LaconicUCB as it plays there, and its rivals."""

    name: str
    problem: Callable[[], Problem]  # made when it is needed: data may be missing
    subject: LaconicUCB
    rivals: tuple[Rival, ...]
    clients: int = 100
    rounds: int = 100

    def halved(self) -> Contest:
        """At half the clients and rounds."""
        return replace(self, clients=self.clients // 2, rounds=self.rounds // 2)

    def among(self, beginnings: Sequence[str]) -> Contest:
        """With only those rivals whose names begin so."""
        return replace(self, rivals=tuple(each for each in self.rivals if each.name.startswith(tuple(beginnings))))


def _subject(gamma: float, *, lam: float = 0.1, alpha: float = 0.1) -> LaconicUCB:
    return LaconicUCB(Gaussian(gamma), lam=lam, alpha=alpha)


def _paper(subject: LaconicUCB, *, saving: float, regret: float | None = 1.03) -> Rival:
    """The paper's algorithm on its own wire."""
    algorithm = ApproxDisKernelUCB(subject.kernel, D=2.0, lam=subject.lam, alpha=subject.alpha, qbar=1.0, wire="paper")
    return Rival("paper", algorithm, regret=regret, surely=True, saving=saving)


def _raw(subject: LaconicUCB, *, regret: float, saving: float) -> Rival:
    """All points in float64, to everyone."""
    algorithm = DisKernelUCB(subject.kernel, D=20.0, lam=subject.lam, alpha=subject.alpha)
    return Rival("raw", algorithm, regret=regret, saving=saving)


def _points(subject: LaconicUCB, *, regret: float, saving: float) -> Rival:
    """The same schedule with all points instead of atoms."""
    return Rival("points", replace(subject, digest=AllPoints()), regret=regret, saving=saving)


def _grids(*, regret: float, megabytes: float) -> tuple[Rival, ...]:
    """The paper's grid of the algorithms that send all points."""
    kernel, alpha = Gaussian(grid(*GRID)), grid(*GRID)
    best: dict[str, Algorithm] = {
        "grid-one": OneKernelUCB(kernel, lam=1.0, alpha=alpha),
        "grid-dis": DisKernelUCB(kernel, D=20.0, lam=1.0, alpha=alpha),
    }
    return tuple(Rival(name, each, regret=regret, surely=True, megabytes=megabytes) for name, each in best.items())


def _contests() -> list[Contest]:
    smooth, half, quarter = _subject(0.1), _subject(0.5), _subject(0.2)
    shop = _subject(1.0, lam=1.0, alpha=0.3)
    return [
        Contest(
            "d5",
            lambda: Cosine(dim=5),
            half,
            (
                _paper(half, saving=150),
                _raw(half, regret=1.10, saving=25),
                _points(half, regret=1.10, saving=3),
            ),
            clients=20,
            rounds=250,
        ),
        Contest(
            "d3",
            lambda: Cosine(dim=3),
            half,
            (
                _paper(half, saving=45),
                _raw(half, regret=1.10, saving=25),
                _points(half, regret=1.20, saving=6),
            ),
            clients=40,
            rounds=250,
        ),
        Contest(
            "catalogue",
            lambda: Catalogue(dim=10, items=30, arms=10),
            shop,
            (_raw(shop, regret=1.10, saving=100), _points(shop, regret=1.10, saving=6)),
            clients=50,
            rounds=200,
        ),
        Contest("long", lambda: Cosine(dim=5), half, (_paper(half, saving=150, regret=None),), clients=20, rounds=2000),
        Contest(
            "d20",
            lambda: Cosine(dim=20),
            smooth,
            (
                _paper(smooth, saving=200),
                _raw(smooth, regret=1.15, saving=50),
                _points(smooth, regret=1.10, saving=6),
            ),
        ),
        Contest("polynomial", lambda: PolynomialReward(dim=20), smooth, (_paper(smooth, saving=200),)),
        Contest("movielens", MovieLens, smooth, (_paper(smooth, saving=200),)),
        Contest("rich", lambda: Cosine(dim=20), quarter, _grids(regret=1.05, megabytes=6.0)),
    ]


#: By name, those that take little time first.
CONTESTS = {contest.name: contest for contest in _contests()}
