"""The frontier: what regret costs in bytes, over all algorithms, wires and settings of each one's own knob."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from laconic.algorithms import (
    Algorithm,
    Alpha,
    ApproxDisKernelUCB,
    AskServer,
    DisKernelUCB,
    DisLinUCB,
    LaconicUCB,
    NKernelUCB,
    OneKernelUCB,
)
from laconic.defaults import ALPHA, LAM, SWEPT_CLIENTS, SWEPT_SEEDS, swept_rounds
from laconic.experiments.compare import Comparison, Room, prepare
from laconic.experiments.config import Experiment
from laconic.experiments.grid import Params, expand, grid
from laconic.experiments.parts import AlgorithmLike, ProblemLike, as_problem, name_of
from laconic.experiments.results import Group, Results, short
from laconic.experiments.runner import Sweep, Watch, silent
from laconic.experiments.tuning import complete_only
from laconic.kernels import Gaussian, KernelLike
from laconic.protocol.digests import AllPoints, Atoms
from laconic.report.table import NOTHING, Table, amount, spread
from laconic.runtimes.jobs import engine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from laconic.report.frontier_figure import Dot

#: Algorithms whose clients cannot choose before a server has answered.
WAITING = ("AskServer",)
BEST, BUT_FOR_WAITING = "●", "◐"
LEGEND = {
    BEST: "non-dominated: no other setting has both no more regret and no more bytes",
    BUT_FOR_WAITING: "beaten only by settings that ask the server at every decision",
}


@dataclass(frozen=True)
class Point:
    """One setting: its regret and its bytes, and who is better in both.

    Attributes:
        group: The runs of this setting.
        family: The algorithm and the variant of it.
        setting: Its knobs and their values.
        regret: Mean regret over seeds.
        sd: Standard deviation of regret over seeds; None for one seed.
        bytes: Mean bytes of all messages.
        waits: True where every decision needs a round trip.
        beaten_by: Labels of the settings that lose no more and send no more.
        beaten_without_round_trips: Those of them that choose without a round trip.
    """

    group: Group
    family: str
    setting: str
    regret: float
    sd: float | None
    bytes: float
    waits: bool
    beaten_by: tuple[str, ...]
    beaten_without_round_trips: tuple[str, ...]

    @property
    def label(self) -> str:
        """The family and its knobs."""
        return f"{self.family} {self.setting}".rstrip()

    @property
    def mark(self) -> str:
        """The sign of a setting that is on the frontier; nothing for others."""
        if not self.beaten_by:
            return BEST
        return BUT_FOR_WAITING if not self.beaten_without_round_trips and not self.waits else ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values: what ``--json`` prints."""
        return {
            "algorithm": self.group.algorithm,
            "label": self.label,
            "params": self.group.params,
            "regret": self.regret,
            "regret_sd": self.sd,
            "bytes": self.bytes,
            "scalars": self.group.mean("scalars"),
            "seconds": self.group.mean("seconds"),
            "non_dominated": not self.beaten_by,
            "non_dominated_without_round_trips": not self.waits and not self.beaten_without_round_trips,
            "round_trip_a_decision": self.waits,
            "dominated_by": list(self.beaten_by),
        }


@dataclass(frozen=True, repr=False)
class Frontier:
    """Regret against bytes of many settings on one problem: a table where it is shown, a figure where it is plotted.

    Attributes:
        results: All runs of the sweep.
    """

    results: Results

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Every setting, those of one family together."""
        return points_of(self.results)

    @property
    def best(self) -> tuple[Point, ...]:
        """The settings than which none that chooses without a round trip is better in both, the cheapest first."""
        return tuple(sorted((each for each in self.points if _on_the_line(each)), key=lambda each: each.bytes))

    def table(self) -> Table:
        """One line for each setting."""
        headers = ("setting", "regret", "bytes", "best", "round trip")
        return Table(headers, tuple(map(_cells, self.points)), caption=self.results.title(), ranks=(0, 0, 0, 0, 1))

    def plot(self) -> Figure:
        """Regret against bytes on a log axis, with a line through the best of those that need no round trips."""
        from laconic.report.frontier_figure import regret_against_bytes  # matplotlib is slow to import

        title = f"What regret costs: {self.results.title()}"
        return regret_against_bytes([_dot(point) for point in self.points], title=title)

    def __repr__(self) -> str:
        return f"{self.table().text()}\n{self._legend()}"

    def _repr_html_(self) -> str:
        return f"{self.table().html()}<pre>{self._legend()}</pre>"

    def _legend(self) -> str:
        """What the signs mean that stand in the table."""
        there = {point.mark for point in self.points}
        return "\n".join(f"{sign} {meaning}" for sign, meaning in LEGEND.items() if sign in there)


def frontier(
    problem: ProblemLike = "cosine",
    *,
    algorithms: AlgorithmLike | Iterable[AlgorithmLike] | None = None,
    kernel: KernelLike | None = None,
    lam: float = LAM,
    alpha: Alpha = ALPHA,
    clients: int | None = None,
    rounds: int | None = None,
    seeds: int | Iterable[int] = SWEPT_SEEDS,
    out: str | PathLike[str] | None = None,
    jobs: int | None = None,
    watch: Watch = silent,
    beyond_memory: bool = False,
) -> Frontier:
    """Sweep algorithms and wires over their own knobs, and find what no other setting beats in regret and bytes.

    Where ``clients`` or ``rounds`` is None, a file of steps decides: it is dealt to ⌊√steps⌋ clients, for as many
    whole rounds as it has. On any other problem there are 30 clients and 50 rounds, or 100 where points return: on
    catalogue, clustered, magic, mushroom and shuttle.

    With ``out`` the same call goes on where an earlier one was stopped.

    Args:
        problem: What is played: a value, a name that laconic list shows, or the path of an .npz file.
        algorithms: Algorithms with grids over what decides how much they send; None: all of `knobs`, which are 54
            settings of LaconicUCB, DisKernelUCB, ApproxDisKernelUCB, DisLinUCB, OneKernelUCB, NKernelUCB and AskServer.
        kernel: Kernel of `knobs`, not used where algorithms are given; None: the Gaussian kernel with its default γ.
        lam: Ridge λ of `knobs`, above 0, not used where algorithms are given.
        alpha: α of `knobs`: a number of at least 0, or Theory(). It is not used where algorithms are given.
        clients: Clients N that learn together, from 1.
        rounds: Rounds T, from 1; every client acts once in each.
        seeds: How many seeds, 0, 1, … (in Python also which). On each, all algorithms meet the same arms and noise.
        out: Folder that keeps every finished run at once; None: nothing is written.
        jobs: Runs at a time, one core each, from 1. In Python None takes all cores.
        watch: Called with every event of the sweep as it happens; the default does nothing.
        beyond_memory: True: runs that would need more memory than the machine has are made all the same. False: they
            are refused before anything runs, or warned of where they may need less.

    Examples:
        >>> from laconic import Cosine, DisKernelUCB, frontier, grid
        >>> swept = DisKernelUCB(D=grid(1, 9))
        >>> found = frontier(Cosine(dim=3), algorithms=swept, clients=3, rounds=4, seeds=1, jobs=1)
        >>> [point.label for point in found.points]
        ['DisKernelUCB D=1', 'DisKernelUCB D=9']
    """
    resolved = as_problem(problem)
    name = name_of(resolved, kind="problem")
    sized = hasattr(resolved, "sizes")
    experiment = prepare(
        knobs(kernel=kernel, lam=lam, alpha=alpha) if algorithms is None else algorithms,
        problem=resolved,
        clients=SWEPT_CLIENTS if clients is None and not sized else clients,
        rounds=swept_rounds(name) if rounds is None and not sized else rounds,
        seeds=seeds,
        runtime="lockstep",
    )
    return swept(experiment, out=out, jobs=jobs, watch=watch, beyond_memory=beyond_memory)


def knobs(*, kernel: KernelLike | None = None, lam: float = LAM, alpha: Alpha = ALPHA) -> list[Algorithm]:
    """Every algorithm on each of its wires at some settings of its knob: δ, D, q̄.

    Args:
        kernel: Kernel of all that have one; None: the Gaussian kernel with its default γ.
        lam: Ridge λ of all, above 0. Raising it trusts single observations less and smooths more.
        alpha: Weight α of σ of all, in units of rewards: a number of at least 0, or Theory(). Raising it explores more.
    """
    shared: dict[str, Any] = {"lam": lam, "alpha": alpha}
    exact: dict[str, Any] = {"kernel": Gaussian() if kernel is None else kernel, **shared}
    raw, statistics = grid("float64", "float32", "float16", "int8"), grid("paper", "compact")
    offered: list[Algorithm] = [
        LaconicUCB(**exact, delta=grid(0.3, 0.5, 1.0, 2.0, 4.0, 8.0), digest=Atoms()),
        LaconicUCB(**exact, delta=grid(0.3, 0.5, 2.0, 8.0), digest=AllPoints()),
        DisKernelUCB(**exact, wire=raw, D=grid(5.0, 20.0, 80.0)),
        DisKernelUCB(**exact, wire=raw, D=grid(5.0, 20.0, 80.0), together=False),
        ApproxDisKernelUCB(**exact, wire=statistics, D=grid(2.0, 5.0), qbar=grid(0.3, 1.0)),
        DisLinUCB(**shared, wire=statistics, D=grid(5.0, 20.0, 80.0)),
        OneKernelUCB(**exact, wire=raw),
        NKernelUCB(**exact),
        AskServer(**exact),
    ]
    return [single for each in offered for _, single in expand(each)]


def swept(
    experiment: Experiment,
    *,
    out: str | PathLike[str] | None,
    jobs: int | None = None,
    watch: Watch = silent,
    beyond_memory: bool = False,
) -> Frontier:
    """The frontier of an experiment's settings."""
    where = engine(jobs=jobs)
    room = Room.of(where, beyond_memory=beyond_memory, watch=watch)
    with Comparison.opened(experiment, out=out, room=room) as made:
        sweep = Sweep(made.store, engine=where, watch=watch)
        made.complete(sweep, part="frontier")
        found = Frontier(complete_only(made.kept(sweep), seeds=experiment.seeds))
        if found.results.rows:
            made.draw(sweep, found.plot)
        made.require_complete(sweep)
    return found


def points_of(results: Results) -> tuple[Point, ...]:
    """The settings of results with who beats whom, those of one family together."""
    groups = results.groups
    families = [family_of(group) for group in groups]
    placed = sorted(range(len(groups)), key=lambda place: families.index(families[place]))
    alike = {family: [groups[i].params for i in placed if families[i] == family] for family in families}
    settings = {i: _setting(groups[i].params, rivals=alike[families[i]]) for i in placed}
    labels = {i: f"{families[i]} {settings[i]}".rstrip() for i in placed}
    beaten = {i: [j for j in placed if dominates(groups[j], groups[i])] for i in placed}
    return tuple(
        Point(
            group=groups[i],
            family=families[i],
            setting=settings[i],
            regret=groups[i].mean("regret") or 0.0,
            sd=groups[i].sd("regret"),
            bytes=groups[i].mean("bytes") or 0.0,
            waits=groups[i].algorithm in WAITING,
            beaten_by=tuple(labels[j] for j in beaten[i]),
            beaten_without_round_trips=tuple(labels[j] for j in beaten[i] if groups[j].algorithm not in WAITING),
        )
        for i in placed
    )


def dominates(one: Group, other: Group, *, cost: str = "bytes") -> bool:
    """Whether the mean regret and the mean cost of the one are no larger than those of the other, and not the same."""
    mine, theirs = ((group.mean("regret") or 0.0, group.mean(cost) or 0.0) for group in (one, other))
    return mine != theirs and mine[0] <= theirs[0] and mine[1] <= theirs[1]


def on_the_line(groups: Sequence[Group], *, cost: str = "bytes") -> list[bool]:
    """Of each group whether it is non-dominated among all that choose without a round trip, and does so itself."""
    rivals = [group for group in groups if group.algorithm not in WAITING]
    beaten = [any(dominates(rival, group, cost=cost) for rival in rivals) for group in groups]
    return [group.algorithm not in WAITING and not each for group, each in zip(groups, beaten, strict=True)]


def family_of(group: Group) -> str:
    """The algorithm, and which variant of it."""
    if group.params.get("together") is False:
        return f"{group.algorithm} alone"
    return f"{group.algorithm} all points" if group.params.get("digest") == "AllPoints" else group.algorithm


#: How knobs are written; a wire is known by its name alone.
_WRITTEN = {"delta": "δ=", "wire": ""}


def _setting(own: Params, *, rivals: Sequence[Params]) -> str:
    """The knobs in which settings of one family differ."""
    differing = [key for key, value in own.items() if any(rival.get(key) != value for rival in rivals)]
    return " ".join(f"{_WRITTEN.get(key, f'{key}=')}{short(own[key])}" for key in differing)


def _on_the_line(point: Point) -> bool:
    return not point.waits and not point.beaten_without_round_trips


def _cells(point: Point) -> tuple[str, ...]:
    return (
        point.label,
        spread(point.regret, point.sd),
        amount(point.bytes, unit="B"),
        point.mark,
        "yes" if point.waits else NOTHING,
    )


def _dot(point: Point) -> Dot:
    from laconic.report.frontier_figure import Dot  # matplotlib, see plot

    return Dot(
        family=point.family,
        algorithm=point.group.algorithm,
        label=point.label,
        bytes=point.bytes,
        regret=point.regret,
        sd=point.sd or 0.0,
        marked=_on_the_line(point),
        waits=point.waits,
    )
