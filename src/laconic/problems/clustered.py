"""Classification data as a bandit: k-means centroids are the arms, a cluster's share of one class its mean reward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from laconic.arrays import Floats
from laconic.checks import require_flag, require_no_grid, require_path, require_whole
from laconic.datasets import cache
from laconic.datasets.cache import Source
from laconic.datasets.extras import extra, version_of
from laconic.datasets.known import DATASETS
from laconic.datasets.prepared import Arrays, combined_hash, prepared, stamps
from laconic.datasets.streams import content_hash
from laconic.datasets.tables import Column, Shape, Words, column_at, has_header, own_source, read_table, sniff_table
from laconic.errors import ProblemError
from laconic.problems.base import Round
from laconic.problems.rounds import check_opening
from laconic.randomness import Role, generator

CLUSTERS = 20
MOST_KMEANS_SEED, MOST_KMEANS_RUNS = 2**32 - 1, 1000  # the first is what scikit-learn takes
CLASS = "class"
MAGIC_COLUMNS = ("fLength", "fWidth", "fSize", "fConc", "fConc1", "fAsym", "fM3Long", "fM3Trans", "fAlpha", "fDist")
MUSHROOM_COLUMNS = (
    *("cap-shape", "cap-surface", "cap-color", "bruises", "odor", "gill-attachment", "gill-spacing", "gill-size"),
    *("gill-color", "stalk-shape", "stalk-root", "stalk-surface-above-ring", "stalk-surface-below-ring"),
    *("stalk-color-above-ring", "stalk-color-below-ring", "veil-type", "veil-color", "ring-number", "ring-type"),
    *("spore-print-color", "population", "habitat"),
)
SHUTTLE_COLUMNS = tuple(f"A{number}" for number in range(1, 10))


@dataclass(frozen=True, eq=False)
class ClusteredInstance:
    """One seed: the same arms for everyone at every step, rewards Bernoulli with the cluster's mean."""

    arms: Floats  # (N, A, d), the same A × d for every client
    means: Floats  # (N, A)
    seed: int

    @property
    def dim(self) -> int:
        """The number of features of an arm."""
        return int(self.arms.shape[2])

    def round(self, index: int) -> Round:
        """One uniform a client decides what every arm would pay: 1 where it is below the arm's mean."""
        uniform = generator(self.seed, Role.ROUND, index).random((len(self.means), 1))
        return Round(self.arms, means=self.means, rewards=(uniform < self.means).astype(np.float64))


@dataclass(frozen=True)
class _Task:
    """What is read from which files before clustering."""

    sources: tuple[Source, ...]
    names: tuple[str, ...]
    shape: Shape
    target: int
    positive: str | None  # None: the most frequent class
    dataset: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Clusters:
    """The options that all clustered problems share."""

    columns: str | None = None
    clusters: int | None = None
    standardise: bool = True
    scale: bool = True
    kmeans_seed: int = 0
    kmeans_runs: int = 10

    def __post_init__(self) -> None:
        require_no_grid(**{each.name: getattr(self, each.name) for each in fields(self)})
        if self.clusters is not None:
            require_whole("clusters", self.clusters, least=2)
        require_whole("kmeans_seed", self.kmeans_seed, least=0, most=MOST_KMEANS_SEED)
        require_whole("kmeans_runs", self.kmeans_runs, least=1, most=MOST_KMEANS_RUNS)
        for name in ("standardise", "scale"):
            require_flag(name, getattr(self, name))

    def _task(self) -> _Task:
        raise NotImplementedError

    @property
    def sha256(self) -> str:
        """A hash of the content of its files, to know them again however they are packed."""
        return str(self._made()["content"])

    @property
    def notes(self) -> tuple[str, ...]:
        """What was read, and where there was less than asked for."""
        made, task = self._made(), self._task()
        k = len(made["means"])
        notes = [f"{int(made['sizes'].sum()):,} rows of {' and '.join(map(str, task.sources))} in {k} clusters"]
        if self.clusters is None and k < CLUSTERS:
            notes.append(f"{k} clusters instead of {CLUSTERS}, as only {k} rows differ")
        return tuple(notes)

    def instance(self, *, seed: int, clients: int, rounds: int) -> ClusteredInstance:
        """Every client meets all centroids at every step."""
        check_opening(seed=seed, clients=clients, rounds=rounds)
        made = self._made()
        arms = np.tile(made["centroids"], (clients, 1, 1))
        means = np.tile(made["means"], (clients, 1))
        for array in (arms, means):  # shared by all rounds
            array.flags.writeable = False
        return ClusteredInstance(arms, means=means, seed=seed)

    def _made(self) -> Arrays:
        task = self._task()
        return _load(self, task, stamps(task.sources))


@dataclass(frozen=True)
class Clustered(_Clusters):
    """Your own table: k-means of its features gives the arms, the share of one class of ``target`` their rewards.

    Args:
        csv: The table, a text file with one row for each example.
        target: The column of classes: its name, or its number counted from 1.
        positive: The class that pays 1; None: the most frequent one.
        categorical: Columns to one-hot encode though they hold numbers, separated by commas; None: none.
        header: Whether the first line names the columns; None: told from the first two lines.
        columns: Columns that are features, separated by commas; None: all but the target.
        clusters: Clusters, which are the arms, from 2 up to the number of different rows; None: 20, or as many as there
            are different rows. Raising it makes clusters smaller: there are more arms to learn, and their rewards
            differ more.
        standardise: True: numeric columns have mean 0 and deviation 1. False: they stay as they are, and those of large
            numbers decide which rows are alike. One-hot columns are left as they are.
        scale: True: all centroids are divided by the largest of their norms, so that none is longer than 1. False: they
            stay as they are, mostly too far apart for a kernel of the default width to relate them.
        kmeans_seed: Seed of k-means, from 0.
        kmeans_runs: Starts of k-means, from 1, of which the best is taken. Raising it takes longer and clusters better.
    """

    csv: str
    target: str | int
    positive: str | int | None = None
    categorical: str | None = None
    header: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "csv", require_path("csv", self.csv))
        if self.header is not None:
            require_flag("header", self.header)

    def _task(self) -> _Task:
        source = own_source(self.csv)
        separator, rows = sniff_table(source)
        first, header = rows[0], has_header(rows, target=self.target) if self.header is None else self.header
        names = tuple(first) if header else tuple(str(number) for number in range(1, len(first) + 1))
        places = [column_at(name, names, header=header, label=self.csv) for name in _listed(self.categorical)]
        target = column_at(self.target, names, header=header, label=self.csv)
        return _Task(
            sources=(source,),
            names=names,
            shape=_shape(self, names, separator=separator, target=target, header=header, words=places),
            target=target,
            positive=None if self.positive is None else str(self.positive),
        )


@dataclass(frozen=True)
class Magic(_Clusters):
    """MAGIC gamma telescope (UCI 159): 20 clusters of 10 numeric columns, the class ``g`` pays 1.

    Args:
        positive: The class that pays 1.
        columns: Columns that are features, separated by commas; None: all but the target.
        clusters: Clusters, which are the arms, from 2 up to the number of different rows; None: 20, or as many as there
            are different rows. Raising it makes clusters smaller: there are more arms to learn, and their rewards
            differ more.
        standardise: True: numeric columns have mean 0 and deviation 1. False: they stay as they are, and those of large
            numbers decide which rows are alike. One-hot columns are left as they are.
        scale: True: all centroids are divided by the largest of their norms, so that none is longer than 1. False: they
            stay as they are, mostly too far apart for a kernel of the default width to relate them.
        kmeans_seed: Seed of k-means, from 0.
        kmeans_runs: Starts of k-means, from 1, of which the best is taken. Raising it takes longer and clusters better.
    """

    positive: str = "g"

    def _task(self) -> _Task:
        return _published(self, "magic", names=(*MAGIC_COLUMNS, CLASS), separator=",", positive=self.positive)


@dataclass(frozen=True)
class Mushroom(_Clusters):
    """Mushroom (UCI 73): 20 clusters of 22 one-hot encoded columns, the class ``e`` (edible) pays 1.

    Args:
        positive: The class that pays 1.
        columns: Columns that are features, separated by commas; None: all but the target.
        clusters: Clusters, which are the arms, from 2 up to the number of different rows; None: 20, or as many as there
            are different rows. Raising it makes clusters smaller: there are more arms to learn, and their rewards
            differ more.
        standardise: True: numeric columns have mean 0 and deviation 1. False: they stay as they are, and those of large
            numbers decide which rows are alike. One-hot columns are left as they are.
        scale: True: all centroids are divided by the largest of their norms, so that none is longer than 1. False: they
            stay as they are, mostly too far apart for a kernel of the default width to relate them.
        kmeans_seed: Seed of k-means, from 0.
        kmeans_runs: Starts of k-means, from 1, of which the best is taken. Raising it takes longer and clusters better.
    """

    positive: str = "e"

    def _task(self) -> _Task:
        return _published(self, "mushroom", names=(CLASS, *MUSHROOM_COLUMNS), separator=",", positive=self.positive)


@dataclass(frozen=True)
class Shuttle(_Clusters):
    """Statlog Shuttle (UCI 148): 20 clusters of 9 numeric columns, training and test file together, class 1 pays 1.

    Args:
        positive: The class that pays 1.
        columns: Columns that are features, separated by commas; None: all but the target.
        clusters: Clusters, which are the arms, from 2 up to the number of different rows; None: 20, or as many as there
            are different rows. Raising it makes clusters smaller: there are more arms to learn, and their rewards
            differ more.
        standardise: True: numeric columns have mean 0 and deviation 1. False: they stay as they are, and those of large
            numbers decide which rows are alike. One-hot columns are left as they are.
        scale: True: all centroids are divided by the largest of their norms, so that none is longer than 1. False: they
            stay as they are, mostly too far apart for a kernel of the default width to relate them.
        kmeans_seed: Seed of k-means, from 0.
        kmeans_runs: Starts of k-means, from 1, of which the best is taken. Raising it takes longer and clusters better.
    """

    positive: str | int = "1"

    def _task(self) -> _Task:
        return _published(self, "shuttle", names=(*SHUTTLE_COLUMNS, CLASS), separator=" ", positive=self.positive)


def _published(
    problem: _Clusters, dataset: str, *, names: tuple[str, ...], separator: str, positive: str | int
) -> _Task:
    found = cache.require(dataset)
    target = names.index(CLASS)
    shape = _shape(problem, names, separator=separator, target=target, header=False, words=[])
    return _Task(found.sources, names=names, shape=shape, target=target, positive=str(positive), dataset=dataset)


def _shape(
    problem: _Clusters, names: Sequence[str], *, separator: str, target: int, header: bool, words: Sequence[int]
) -> Shape:
    wanted = [column_at(name, names, header=True, label="columns") for name in _listed(problem.columns)]
    features = wanted or [place for place in range(len(names)) if place != target]
    if target in features:
        raise ProblemError(f"columns= has the target {names[target]!r} among the features; try without it")
    return Shape(
        separator,
        header=header,
        words=frozenset([*words, target]),
        used=(*sorted(set(features)), target),
        width=len(names),
    )


def _listed(names: str | int | None) -> list[str]:
    return [] if names is None else [name.strip() for name in str(names).split(",") if name.strip()]


@lru_cache(maxsize=8)
def _load(problem: _Clusters, task: _Task, files: object) -> Arrays:
    """The prepared problem, in memory as long as its files stay the same."""
    options = {each.name: getattr(problem, each.name) for each in fields(problem) if each.name != "csv"}
    versions = {"scikit-learn": version_of("scikit-learn")}
    kind = type(problem).__name__.lower()
    return prepared(kind, sources=task.sources, options=options | versions, make=lambda: _make(problem, task))


def _make(problem: _Clusters, task: _Task) -> Arrays:
    *features, target = read_table(task.sources, shape=task.shape, names=task.names)
    content = [content_hash(source) for source in task.sources]
    _check_pins(task, content)
    y = _binary(target, positive=task.positive, label=str(task.sources[0]))
    x = np.hstack([_encoded(column, standardise=problem.standardise) for column in features])
    k = _cluster_count(x, asked=problem.clusters, label=str(task.sources[0]))
    centroids, labels = _kmeans(x, k=k, seed=problem.kmeans_seed, runs=problem.kmeans_runs)
    sizes = np.bincount(labels, minlength=k)
    largest = float(np.linalg.norm(centroids, axis=1).max())
    return {
        "centroids": centroids / largest if problem.scale and largest > 0 else centroids,
        "means": np.bincount(labels, weights=y, minlength=k) / sizes,
        "sizes": sizes,
        "content": np.array(combined_hash(content)),
    }


def _check_pins(task: _Task, content: Sequence[str]) -> None:
    """A file that lost its last lines reads like a whole one: only the publisher's hash tells."""
    if task.dataset is None:
        return
    for part, source, found in zip(DATASETS[task.dataset].parts, task.sources, content, strict=True):
        if part.sha256 != found:
            raise ProblemError(
                f"{source} is not the publisher's {part.file}: its content has sha256 {found[:12]}…, not"
                f" {str(part.sha256)[:12]}…; try removing it and: laconic data fetch {task.dataset}"
            )


def _binary(target: Column, *, positive: str | None, label: str) -> Floats:
    assert isinstance(target, Words)  # the target is always read as words
    if len(target.values) < 2:
        raise ProblemError(f"{label}: column {target.name} is {target.values[0]!r} everywhere; try another target")
    if positive is None:
        return np.asarray(target.codes == np.bincount(target.codes).argmax(), dtype=np.float64)
    if positive not in target.values:
        shown = ", ".join(target.values[:8]) + (", …" if len(target.values) > 8 else "")
        raise ProblemError(f"{label}: column {target.name} is never {positive!r}; try positive= one of {shown}")
    return np.asarray(target.codes == target.values.index(positive), dtype=np.float64)


def _encoded(column: Column, *, standardise: bool) -> Floats:
    if isinstance(column, Words):
        return np.eye(len(column.values))[column.codes]
    x = column.values[:, None]
    if not standardise:
        return x
    deviation = float(x.std())
    return np.asarray((x - x.mean()) / (deviation if deviation > 0 else 1.0))


def _cluster_count(x: Floats, *, asked: int | None, label: str) -> int:
    different = len(np.unique(x, axis=0))
    if different < 2:
        raise ProblemError(f"{label}: all rows have the same features; try more columns")
    if asked is not None and asked > different:
        raise ProblemError(f"{label}: clusters={asked}, but only {different} rows differ; try clusters={different}")
    return min(asked or CLUSTERS, different)


def _kmeans(x: Floats, *, k: int, seed: int, runs: int) -> tuple[Floats, Any]:
    from threadpoolctl import threadpool_limits

    cluster = extra("sklearn.cluster")
    with threadpool_limits(limits=1):  # sums are added in one order whatever the machine has
        fitted = cluster.KMeans(n_clusters=k, n_init=runs, random_state=seed).fit(x)
    return np.asarray(fitted.cluster_centers_, dtype=np.float64), fitted.labels_
