"""Results: one row for each run, with its curve; grouped into a table, drawn, and kept in Parquet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import isnan
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laconic.arrays import Floats, Ints
from laconic.errors import InputError
from laconic.experiments.certified import Certified
from laconic.experiments.grid import Params, Setting
from laconic.report.table import Table, amount, count, number, spread

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.figure import Figure

    from laconic.report.figures import Line
    from laconic.runtimes.trace import Run

POINTS = 500  # of a curve: finer than a figure can show
METRICS = ("regret", "scalars", "bytes", "messages", "syncs", "dictionary", "seconds")
REPLAYED = ("events", "reward")
HEADERS = ("algorithm", "regret", "scalars", "bytes", "messages", "syncs", "dictionary", "seconds")
RANKS = (0, 0, 3, 0, 5, 1, 4, 2)  # which columns go first where a terminal has no room for all


@dataclass(frozen=True, eq=False)
class Curve:
    """Regret and communication so far, at up to 500 of a run's steps."""

    t: Ints
    regret: Floats
    scalars: Ints
    syncs: Ints
    dictionary: Ints  # |S|, 0 as long as there is none

    @classmethod
    def of(cls, run: Run) -> Curve:
        """The curve of a run, thinned evenly; the last step is always kept."""
        steps = len(run.regrets)
        t = np.unique(np.linspace(1, steps, min(steps, POINTS)).round().astype(np.int64))
        syncs = np.searchsorted(run.sync_steps, t, side="right").astype(np.int64)
        sizes = run.dictionary_sizes if len(run.dictionary_sizes) else np.zeros(run.syncs)
        scalars = _after_each(run.scalars_at_sync)[syncs]
        scalars[-1:] = run.scalars  # with points that went up after the last exchange
        return cls(
            t=t,
            regret=np.cumsum(run.regrets)[t - 1],
            scalars=scalars,
            syncs=syncs,
            dictionary=_after_each(sizes)[syncs],
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Curve) and all(
            np.array_equal(getattr(self, each.name), getattr(other, each.name)) for each in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays


def _after_each(at_sync: NDArray[Any]) -> Ints:
    """What is counted at syncs, by the number of syncs so far."""
    return np.concatenate([[0], at_sync]).astype(np.int64)


@dataclass(frozen=True)
class Row:
    """One run: who, with which parameters, on which seed, and what came of it.

    Attributes:
        algorithm: Name of the algorithm.
        params: Its parameters, by name.
        seed: Seed of the run.
        regret: Σ of the best mean reward minus that of the chosen arm, over all NT steps.
        scalars: Numbers sent, both directions, as the paper counts them.
        bytes: Bytes of all encoded messages, both directions.
        messages: Messages, both directions.
        syncs: Syncs of all members; where clients exchange alone, asks that were answered with a later belief.
        dictionary: Points of the dictionary, or atoms in it, after the last exchange; 0 where that one brought points
            as they are, and None where no exchange brought a dictionary.
        seconds: Seconds that the run took, without making the arms.
        curve: Regret and scalars against t, at some hundred steps.
        certified: What the versions of a digest said of themselves.
        events: Events of a replayed log that were learnt from; None elsewhere.
        reward: Their mean reward; None elsewhere.
    """

    algorithm: str
    params: Params
    seed: int
    regret: float
    scalars: int
    bytes: int
    messages: int
    syncs: int
    dictionary: int | None
    seconds: float
    curve: Curve = field(repr=False)
    certified: Certified = field(default_factory=lambda: Certified.of(()), repr=False)
    events: int | None = None
    reward: float | None = None

    @classmethod
    def of(cls, run: Run, *, algorithm: str, params: Params) -> Row:
        """The row of a finished run."""
        return cls(
            algorithm=algorithm,
            params=params,
            seed=int(run.seed),
            regret=float(run.regret),
            scalars=int(run.scalars),
            bytes=int(run.bytes),
            messages=int(run.messages),
            syncs=int(run.syncs),
            dictionary=None if run.dictionary is None else int(run.dictionary),
            seconds=float(run.seconds),
            curve=Curve.of(run),
            certified=Certified.of(run.versions),
            events=run.events,
            reward=run.reward,
        )

    def as_dict(self) -> dict[str, Any]:
        """The row as plain values, without its curve: what ``--json`` prints.

        What digests certified comes last: of versions how many there were, the last number of atoms and effective
        dimension, κ's mean and largest, the largest e_hi and β, and how often and why points went as they are.
        """
        names = ("algorithm", "params", "seed", *METRICS, *(REPLAYED if self.events is not None else ()))
        return {name: getattr(self, name) for name in names} | self.certified.summary()


@dataclass(frozen=True)
class Group:
    """The runs of one algorithm with one setting, over seeds."""

    algorithm: str
    params: Params
    rows: tuple[Row, ...]
    label: str

    def values(self, metric: str) -> list[float]:
        """The metric of every run that has it; a replay that used no event has no regret."""
        found = [getattr(row, metric) for row in self.rows]
        return [float(value) for value in found if value is not None and not isnan(value)]

    def mean(self, metric: str) -> float | None:
        """The mean over seeds, None where no run has the metric."""
        values = self.values(metric)
        return fmean(values) if values else None

    def sd(self, metric: str) -> float | None:
        """The standard deviation over seeds, None for fewer than two."""
        values = self.values(metric)
        return stdev(values) if len(values) > 1 else None


@dataclass(frozen=True)
class Tuning:
    """How one setting of each algorithm was chosen: by which metric, and over which of its parameters."""

    metric: str
    over: Mapping[str, tuple[str, ...]]  # by algorithm, where there was a choice


@dataclass(frozen=True, repr=False)
class Results:
    """All runs of one comparison on one problem: a table where it is shown, a figure where it is plotted.

    Attributes:
        problem: Name of the problem.
        problem_params: Its parameters, by name.
        clients: Clients N that learnt together.
        rounds: Rounds T, in each of which every client acted once.
        dim: Features d of an arm.
        rows: One `Row` for each run that has finished.
        tuning: How settings were chosen, where only the best of each algorithm were kept; None where all were.
    """

    problem: str
    problem_params: Params
    clients: int
    rounds: int
    dim: int
    rows: tuple[Row, ...] = ()
    tuning: Tuning | None = None

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The rows by algorithm and parameters, in the order in which they first finished."""
        members: dict[tuple[str, tuple[tuple[str, Setting], ...]], list[Row]] = {}
        for row in self.rows:
            members.setdefault((row.algorithm, tuple(row.params.items())), []).append(row)
        over = {} if self.tuning is None else self.tuning.over
        named = labels([(rows[0].algorithm, rows[0].params) for rows in members.values()], always=over)
        return tuple(
            Group(algorithm=rows[0].algorithm, params=rows[0].params, rows=tuple(rows), label=label)
            for rows, label in zip(members.values(), named, strict=True)
        )

    def with_row(self, row: Row) -> Results:
        """These results and one more run.

        Args:
            row: A finished run, of the same problem and sizes.
        """
        return replace(self, rows=(*self.rows, row))

    def tuned(self, metric: str = "regret") -> Results:
        """Of each algorithm only the setting with the smallest mean of the metric, the first on ties.

        Its table and its figures then name the parameters that were chosen, though only one value of each is left.

        Args:
            metric: What is compared: regret, scalars, bytes, messages, syncs, dictionary or seconds. A setting that has
                no such number loses.
        """
        if metric not in METRICS:
            raise InputError(f"cannot tune by {metric!r}; try one of {', '.join(METRICS)}")
        best: dict[str, Group] = {}
        for group in self.groups:
            kept = best.get(group.algorithm)
            if kept is None or _rank(group, metric) < _rank(kept, metric):
                best[group.algorithm] = group
        chosen = {id(row) for group in best.values() for row in group.rows}
        rows = tuple(row for row in self.rows if id(row) in chosen)
        return replace(self, rows=rows, tuning=Tuning(metric, over=self._varied()))

    def _varied(self) -> dict[str, tuple[str, ...]]:
        """By algorithm, the parameters of which it has several values here or had before it was tuned."""
        found = dict(self.tuning.over) if self.tuning is not None else {}
        for group in self.groups:
            rivals = [other.params for other in self.groups if other.algorithm == group.algorithm]
            known = found.get(group.algorithm, ())
            found[group.algorithm] = tuple(dict.fromkeys([*known, *_differing(group.params, rivals)]))
        return {name: over for name, over in found.items() if over}

    def table(self) -> Table:
        """One line for each group: means over seeds, and for regret the standard deviation.

        Of a log that was replayed it also says how many events were used, and their mean reward.
        """
        if all(row.events is None for row in self.rows):
            return Table(headers=HEADERS, rows=tuple(map(_cells, self.groups)), caption=self.title(), ranks=RANKS)
        rows = tuple((*_cells(each), count(each.mean("events")), number(each.mean("reward"))) for each in self.groups)
        return Table(headers=(*HEADERS, *REPLAYED), rows=rows, caption=self.title(), ranks=(*RANKS, 0, 0))

    def title(self) -> str:
        """What was played, in one line."""
        seeds = len({row.seed for row in self.rows})
        return self._played + (f", mean ± sd over {seeds} seeds" if seeds > 1 else "") + self._chosen

    @property
    def _chosen(self) -> str:
        return "" if self.tuning is None or not self.tuning.over else f", tuned by {self.tuning.metric}"

    @property
    def _played(self) -> str:
        return f"{self.problem}, d={self.dim}: {self.clients} clients, {self.rounds} rounds"

    def plot(self) -> Figure:
        """Regret and communication against t, with bands of one standard deviation over seeds."""
        # matplotlib takes longer to import than everything else together
        from laconic.report.figures import regret_and_communication

        if not self.rows:
            raise InputError("there is nothing to plot: no run has finished")
        return regret_and_communication([_line(group) for group in self.groups], title=self.title())

    def plot_certificates(self) -> Figure:
        """κ, e_hi, β, atoms and d_eff of the versions that clients were sent, against the number of points."""
        from laconic.report.certificates import Course, certificates  # matplotlib, see plot

        courses = [
            Course(
                label=group.label,
                runs=tuple(vars(row.certified) for row in group.rows if len(row.certified)),
                algorithm=group.algorithm,
            )
            for group in self.groups
        ]
        if not self.is_certified:
            raise InputError("there is nothing to plot: no algorithm has versions that say what they are worth")
        return certificates([course for course in courses if course.runs], title=f"{self._played}, a line for each run")

    @property
    def is_certified(self) -> bool:
        """True where an algorithm has versions that say what they are worth."""
        return any(len(row.certified) for row in self.rows)

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write everything, curves included, to a Parquet file; an earlier file is replaced in one step.

        Args:
            path: The file to write.
        """
        from laconic.experiments import storage  # pyarrow is slow to import

        storage.write(self, path)

    @classmethod
    def from_parquet(cls, path: str | PathLike[str]) -> Results:
        """Read what `to_parquet` wrote.

        Args:
            path: The file to read.
        """
        from laconic.experiments import storage  # pyarrow is slow to import

        return storage.read(path)

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``: one line for each run, one column for each parameter; `to_parquet` has curves."""
        from laconic.experiments.frames import to_pandas

        return to_pandas(self)

    def to_polars(self) -> Any:
        """A ``polars.DataFrame``: one line for each run, one column for each parameter; `to_parquet` has curves."""
        from laconic.experiments.frames import to_polars

        return to_polars(self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow stream, curves included: ``pyarrow.table(results)``, ``polars.DataFrame(results)``."""
        from laconic.experiments import storage  # pyarrow is slow to import

        return storage.to_arrow(self).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return self.table().text() if self.rows else f"{self.title()}: no run has finished"

    def _repr_html_(self) -> str:
        return self.table().html()


def _rank(group: Group, metric: str) -> float:
    mean = group.mean(metric)
    return float("inf") if mean is None else mean


def labels(settings: Sequence[tuple[str, Params]], *, always: Mapping[str, Collection[str]] | None = None) -> list[str]:
    """Each algorithm's name, with the parameters in which its settings differ and those ``always`` named."""
    told = always or {}
    return [
        _label(name, own, [other for n, other in settings if n == name], always=told.get(name, ()))
        for name, own in settings
    ]


def _label(name: str, own: Params, rivals: Sequence[Params], *, always: Collection[str]) -> str:
    differing = _differing(own, rivals)
    named = [key for key in own if key in always or key in differing]
    told = (f"{key}={_told(own[key], [rival.get(key) for rival in rivals])}" for key in named)
    return f"{name} {' '.join(told)}".rstrip()


def _told(value: Setting, rivals: Sequence[Setting]) -> str:
    """A value; of a part with settings of its own its name alone, where no rival is such a part with others."""
    part, settings, _ = short(value).partition("(")
    alike = (rival for rival in rivals if settings and short(rival).partition("(")[0] == part)
    return part if all(rival == value for rival in alike) else short(value)


def _differing(own: Params, rivals: Sequence[Params]) -> list[str]:
    return [key for key in own if any(rival.get(key) != own[key] for rival in rivals)]


def short(value: Setting) -> str:
    """0.1 and 20 rather than 0.1 and 20.0, unless digits would be lost."""
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return str(value)


def _cells(group: Group) -> tuple[str, ...]:
    return (
        group.label,
        spread(group.mean("regret"), group.sd("regret")),
        amount(group.mean("scalars")),
        amount(group.mean("bytes"), unit="B"),
        count(group.mean("messages")),
        count(group.mean("syncs")),
        count(group.mean("dictionary")),
        number(group.mean("seconds")),
    )


def _line(group: Group) -> Line:
    from laconic.report.figures import Band, Line  # matplotlib, see plot

    regret = np.array([row.curve.regret for row in group.rows])
    scalars = np.array([row.curve.scalars for row in group.rows], dtype=np.float64)
    return Line(
        label=group.label,
        t=group.rows[0].curve.t,
        regret=Band.of(regret),
        scalars=Band.of(scalars),
        algorithm=group.algorithm,
    )
