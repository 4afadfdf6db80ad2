"""Ratings as a bandit: an arm is a user with an item, its features their singular vectors, its reward a liking.

A step shows one pair that was rated above the threshold and otherwise pairs that were not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.arrays import Bools, Floats, Ints
from laconic.checks import (
    require_finite_number,
    require_flag,
    require_no_grid,
    require_one_of,
    require_path,
    require_whole,
    seen,
)
from laconic.datasets import cache
from laconic.datasets.cache import Source
from laconic.datasets.extras import version_of
from laconic.datasets.known import Dataset
from laconic.datasets.prepared import Arrays, prepared, stamps
from laconic.datasets.streams import content_hash
from laconic.datasets.triples import Triples, ratings_source, read_triples
from laconic.errors import ProblemError
from laconic.problems.base import Round
from laconic.problems.rounds import check_opening
from laconic.randomness import Role, generator

Codes = NDArray[np.int32]
Whole = Ints

# What is used when nothing is asked for, or as much of it as a file has.
USERS, ITEMS, DIMS, ARMS = 2000, 10_000, 10, 20
SCALES = ("rms", "unit", "max", "none")
EDITIONS = ("auto", "ml-25m", "ml-1m")
SINGULAR = 1e-10  # singular values below this share of the largest are rounding


@dataclass(frozen=True, eq=False)
class RatingsInstance:
    """One seed: each client and step gets one arm that pays 1 among arms that pay 0."""

    users: Floats  # (users, dims)
    items: Floats  # (items, dims)
    liked: Codes  # (pairs, 2), user and item
    disliked: Codes  # (pairs, 2)
    arms: int
    same_user: bool
    seed: int
    clients: int

    @property
    def dim(self) -> int:
        """The number of features of an arm: those of a user and those of an item."""
        return int(self.users.shape[1] + self.items.shape[1])

    @cached_property
    def _starts(self) -> Whole:
        """Where the liked pairs of each user start, as they are in order."""
        return np.searchsorted(np.ascontiguousarray(self.liked[:, 0]), np.arange(len(self.users) + 1))

    def round(self, index: int) -> Round:
        """All draws of a round come from one generator, so round l is the same whenever it is asked for."""
        draw = generator(self.seed, Role.RATINGS, index)
        best = self.liked[draw.integers(len(self.liked), size=self.clients)]
        others = self._of_same_user(best[:, 0], draw) if self.same_user else self._of_anyone(draw)
        place = draw.integers(self.arms, size=self.clients)
        pairs = np.concatenate([best[:, None], others], axis=1)  # (N, A, 2)
        rows = np.arange(self.clients)
        pairs[rows, 0], pairs[rows, place] = pairs[rows, place], best
        means = np.zeros((self.clients, self.arms))
        means[rows, place] = 1.0
        arms = np.concatenate([self.users[pairs[:, :, 0]], self.items[pairs[:, :, 1]]], axis=2)
        return Round(arms, means=means, rewards=means.copy())

    def _of_anyone(self, draw: np.random.Generator) -> Codes:
        """Different pairs of the whole pool for each client."""
        size = self.arms - 1
        return np.stack([self.disliked[_different(draw, len(self.disliked), size)] for _ in range(self.clients)])

    def _of_same_user(self, users: Codes, draw: np.random.Generator) -> Codes:
        """Different items that the client's user did not like, whether rated or not."""
        others = np.empty((self.clients, self.arms - 1, 2), dtype=np.int32)
        for client, user in enumerate(users):
            liked = self.liked[self._starts[user] : self._starts[user + 1], 1]
            drawn = _different(draw, len(self.items) - len(liked), self.arms - 1)
            # The n-th item that is not in a sorted list is n plus how many of the list come before it.
            others[client, :, 1] = drawn + np.searchsorted(liked - np.arange(len(liked)), drawn, side="right")
            others[client, :, 0] = user
        return others


@dataclass(frozen=True, eq=False)
class _Pools:
    """What the arms of a step are drawn from, and how many there are."""

    liked: Codes
    disliked: Codes
    arms: int


def _different(draw: np.random.Generator, size: int, count: int) -> Whole:
    return draw.choice(size, size=count, replace=False)


@dataclass(frozen=True, kw_only=True)
class _Ratings:
    """The options that all problems of ratings share."""

    users: int | None = None
    items: int | None = None
    dims: int | None = None
    arms: int | None = None
    threshold: float = 2.0
    same_user: bool = False
    scale: str = "rms"
    spectrum: float = 0.0

    def __post_init__(self) -> None:
        require_no_grid(**{each.name: getattr(self, each.name) for each in fields(self)})
        for name, least in (("users", 2), ("items", 2), ("dims", 1), ("arms", 2)):
            if getattr(self, name) is not None:
                require_whole(name, getattr(self, name), least=least)
        require_finite_number("threshold", self.threshold)
        require_finite_number("spectrum", self.spectrum)
        require_one_of("scale", self.scale, choices=SCALES)
        require_flag("same_user", self.same_user)

    def _source(self) -> Source:
        raise NotImplementedError

    def _names(self) -> str | None:
        return None

    @property
    def sha256(self) -> str:
        """A hash of the content of its file, to know it again however it is packed."""
        return str(self._made()["content"])

    @property
    def notes(self) -> tuple[str, ...]:
        """What was read, and where there was less than is usual."""
        made = self._made()
        pools = self._drawn_from(made)
        users, items, dims = len(made["users"]), len(made["items"]), len(made["singular"])
        return (
            f"{int(made['counts'][0]):,} ratings in {self._source()}",
            f"{users:,} users × {items:,} items: {len(pools.liked):,} pairs pay 1, {len(pools.disliked):,} pay 0",
            *_shortfall(users, asked=self.users, usual=USERS, what="users", why="the file has no more"),
            *_shortfall(items, asked=self.items, usual=ITEMS, what="items", why="these users rated no more"),
            *_shortfall(dims, asked=self.dims, usual=DIMS, what="dimensions", why="the ratings have no higher rank"),
            *_shortfall(pools.arms, asked=self.arms, usual=ARMS, what="arms", why="no more go without reward"),
        )

    def instance(self, *, seed: int, clients: int, rounds: int) -> RatingsInstance:
        """The ratings as features and two pools of pairs."""
        check_opening(seed=seed, clients=clients, rounds=rounds)
        made = self._made()
        users, items = _scaled(made, scale=self.scale, spectrum=self.spectrum)
        pools = self._drawn_from(made)
        return RatingsInstance(
            users,
            items=items,
            liked=pools.liked,
            disliked=pools.disliked,
            arms=pools.arms,
            same_user=self.same_user,
            seed=seed,
            clients=clients,
        )

    def _drawn_from(self, made: Arrays) -> _Pools:
        label = str(self._source())
        liked, disliked = _split(made, threshold=self.threshold, label=label)
        if not self.same_user:
            return _Pools(liked, disliked, _arm_count(self.arms, without_reward=len(disliked), label=label))
        others = _disliked_of_each(liked, items=len(made["items"]))
        arms = _arm_count(self.arms, without_reward=int(others.max()), label=label)
        return _Pools(liked[others >= arms - 1], disliked, arms)

    def _made(self) -> Arrays:
        source = self._source()
        sizes = {"users": self.users, "items": self.items, "dims": self.dims}
        return _load(source, tuple(sizes.items()), self._names(), stamps((source,)))


@dataclass(frozen=True)
class Ratings(_Ratings):
    """Your own ratings: CSV, TSV, ``::``, JSON lines or Parquet with a user, an item and a rating in each row.

    Args:
        file: The file of ratings.
        columns: Names, or numbers from 1, of the columns user, item and rating, separated by commas; None: common
            names, else 1,2,3.
        users: The most active users to keep, from 2; None: 2,000, or as many as the file has. Raising it adds users
            with fewer ratings: arms are more varied, and preparing takes longer. More than the file has are refused.
        items: The most rated items to keep, from 2; None: 10,000, or as many as the file has. Raising it adds items
            with fewer ratings: arms are more varied, and preparing takes longer. More than the file has are refused.
        dims: Features of a user and of an item, from 1 up to the rank of the ratings, so that an arm has twice as many;
            None: 10, or that rank. Raising it says more of each arm; there is more to learn, and a point takes more
            bytes.
        arms: Arms shown at every step, from 2, of which one pays; None: 20, or as many as there are. Raising it makes
            chance find that one more rarely.
        threshold: Ratings above it pay 1, others 0, in units of ratings; there must be some of either. Raising it
            leaves fewer pairs that pay, and more that do not, from which arms are drawn.
        same_user: True: all arms of a step belong to one user, and items without a rating pay 0.
        scale: How singular vectors become features. rms: over rated pairs the mean of ‖x‖² is 1. unit: every ‖x‖ is 1.
            max: no ‖x‖ is above 1. none: as they are, so short that a Gaussian kernel hardly tells them apart. The page
            on data sets says more.
        spectrum: Power of the singular values by which vectors are multiplied, usually from 0 to 1: 0 leaves them as
            they are, 0.5 multiplies by the roots. Raising it gives the leading directions more weight.
    """

    file: str
    columns: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "file", require_path("file", self.file))
        if self.columns is not None and not isinstance(self.columns, str):
            raise ProblemError(f"columns must name user, item and rating in one text, not {seen(self.columns)}")

    def _source(self) -> Source:
        return ratings_source(self.file)

    def _names(self) -> str | None:
        return self.columns


@dataclass(frozen=True)
class MovieLens(_Ratings):
    """MovieLens: ml-25m where it is present, else ml-1m; a user with a movie is an arm, ratings above 2 pay 1.

    Args:
        edition: Which release to read: ml-25m, ml-1m, or auto for the largest that is present.
        users: The most active users to keep, from 2; None: 2,000, or as many as the file has. Raising it adds users
            with fewer ratings: arms are more varied, and preparing takes longer. More than the file has are refused.
        items: The most rated items to keep, from 2; None: 10,000, or as many as the file has. Raising it adds items
            with fewer ratings: arms are more varied, and preparing takes longer. More than the file has are refused.
        dims: Features of a user and of an item, from 1 up to the rank of the ratings, so that an arm has twice as many;
            None: 10, or that rank. Raising it says more of each arm; there is more to learn, and a point takes more
            bytes.
        arms: Arms shown at every step, from 2, of which one pays; None: 20, or as many as there are. Raising it makes
            chance find that one more rarely.
        threshold: Ratings above it pay 1, others 0, in units of ratings; there must be some of either. Raising it
            leaves fewer pairs that pay, and more that do not, from which arms are drawn.
        same_user: True: all arms of a step belong to one user, and items without a rating pay 0.
        scale: How singular vectors become features. rms: over rated pairs the mean of ‖x‖² is 1. unit: every ‖x‖ is 1.
            max: no ‖x‖ is above 1. none: as they are, so short that a Gaussian kernel hardly tells them apart. The page
            on data sets says more.
        spectrum: Power of the singular values by which vectors are multiplied, usually from 0 to 1: 0 leaves them as
            they are, 0.5 multiplies by the roots. Raising it gives the leading directions more weight.
    """

    edition: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of("edition", self.edition, choices=EDITIONS)

    def _source(self) -> Source:
        return cache.require("movielens" if self.edition == "auto" else self.edition).sources[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """Which edition was read, and where there was less than is usual."""
        dataset = cache.require("movielens" if self.edition == "auto" else self.edition).dataset
        return (*_edition_notes(dataset, ratings=int(self._made()["counts"][0])), *super().notes)


@dataclass(frozen=True)
class Yelp(_Ratings):
    """Yelp: a user with a business is an arm, ratings above 2 stars pay 1.

    Args:
        users: The most active users to keep, from 2; None: 2,000, or as many as the file has. Raising it adds users
            with fewer ratings: arms are more varied, and preparing takes longer. More than the file has are refused.
        items: The most rated items to keep, from 2; None: 10,000, or as many as the file has. Raising it adds items
            with fewer ratings: arms are more varied, and preparing takes longer. More than the file has are refused.
        dims: Features of a user and of an item, from 1 up to the rank of the ratings, so that an arm has twice as many;
            None: 10, or that rank. Raising it says more of each arm; there is more to learn, and a point takes more
            bytes.
        arms: Arms shown at every step, from 2, of which one pays; None: 20, or as many as there are. Raising it makes
            chance find that one more rarely.
        threshold: Ratings above it pay 1, others 0, in units of ratings; there must be some of either. Raising it
            leaves fewer pairs that pay, and more that do not, from which arms are drawn.
        same_user: True: all arms of a step belong to one user, and items without a rating pay 0.
        scale: How singular vectors become features. rms: over rated pairs the mean of ‖x‖² is 1. unit: every ‖x‖ is 1.
            max: no ‖x‖ is above 1. none: as they are, so short that a Gaussian kernel hardly tells them apart. The page
            on data sets says more.
        spectrum: Power of the singular values by which vectors are multiplied, usually from 0 to 1: 0 leaves them as
            they are, 0.5 multiplies by the roots. Raising it gives the leading directions more weight.
    """

    def _source(self) -> Source:
        return cache.require("yelp").sources[0]


@lru_cache(maxsize=4)
def _load(source: Source, sizes: tuple[tuple[str, int | None], ...], columns: str | None, files: object) -> Arrays:
    """The prepared ratings, in memory as long as their file stays the same."""
    asked = dict(sizes)
    options = {**asked, "columns": columns, "scipy": version_of("scipy")}
    return prepared("ratings", sources=(source,), options=options, make=lambda: _make(source, asked, columns))


def _make(source: Source, asked: Mapping[str, int | None], columns: str | None) -> Arrays:
    read = read_triples(source, columns=columns)
    users = _most(read.users, total=read.n_users, what="users", asked=asked["users"], label=str(source))
    items = _most(read.items, total=read.n_items, what="items", asked=asked["items"], label=str(source))
    pairs, values = _merged(read, users=users, items=items)
    if not len(pairs):
        raise ProblemError(f"{source}: the users chosen rated none of the items chosen; try more users or items")
    user_codes, item_codes = _renumbered(pairs[:, 0]), _renumbered(pairs[:, 1])
    _require_left(user_codes, what="users", others="items", asked=asked, label=str(source))
    _require_left(item_codes, what="items", others="users", asked=asked, label=str(source))
    left, singular, right = _svd(user_codes, item_codes, values, dims=asked["dims"], label=str(source))
    return {
        "users": left,
        "singular": singular,
        "items": right,
        "pairs": np.stack([user_codes, item_codes], axis=1).astype(np.int32),
        "values": values,
        "counts": np.array([len(read), read.n_users, read.n_items]),
        "content": np.array(content_hash(source)),
    }


def _most(codes: Codes, *, total: int, what: str, asked: int | None, label: str) -> Bools:
    """Which users or items have the most ratings; of equals those that appear first."""
    if asked is not None and asked > total:
        raise ProblemError(f"{label} has {total:,} {what}, but {what}={asked:,} were asked for; try {what}={total}")
    if total < 2:
        raise ProblemError(f"{label} has ratings of one of the {what} only; two or more are needed")
    limit = asked or {"users": USERS, "items": ITEMS}[what]
    counts = np.bincount(codes, minlength=total)
    kept = np.zeros(total, dtype=np.bool_)
    kept[np.argsort(-counts, kind="stable")[:limit]] = True
    return kept


def _merged(read: Triples, *, users: Bools, items: Bools) -> tuple[Codes, Floats]:
    """The pairs of chosen users and items in order, each once, with the mean of its ratings."""
    chosen = users[read.users] & items[read.items]
    keys = read.users[chosen].astype(np.int64) * read.n_items + read.items[chosen]
    different, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    values = np.bincount(place, weights=read.ratings[chosen]) / counts
    return np.stack(np.divmod(different, read.n_items), axis=1).astype(np.int32), values


def _renumbered(codes: Codes) -> Whole:
    """Codes without gaps: who has no pair left has no features either."""
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def _require_left(codes: Whole, *, what: str, others: str, asked: Mapping[str, int | None], label: str) -> None:
    """Refuse where some of those asked for have no rating in common with the others chosen."""
    left, wanted = int(codes.max()) + 1, asked[what]
    if wanted is not None and left < wanted:
        raise ProblemError(
            f"{label}: of the {wanted:,} {what} with the most ratings {left:,} have one among the {others} chosen, but "
            f"{what}={wanted} were asked for; try more {others}, or {what}={left}"
        )


def _svd(users: Whole, items: Whole, values: Floats, *, dims: int | None, label: str) -> tuple[Floats, Floats, Floats]:
    """The leading singular vectors of the matrix of ratings, signs fixed by the items' largest entries."""
    from scipy import sparse

    matrix = sparse.csr_array((values, (users, items)), shape=(users.max() + 1, items.max() + 1))
    most = min(matrix.shape)
    if dims is not None and dims > most:
        raise ProblemError(f"{label}: dims={dims}, but {most} is the most that its {matrix.shape[0]} users give")
    left, singular, right = _leading(matrix, min(dims or DIMS, most))
    rank = int((singular > SINGULAR * singular[0]).sum())
    if rank == 0:
        raise ProblemError(f"{label}: every rating is 0")
    if dims is not None and rank < dims:
        raise ProblemError(f"{label}: dims={dims}, but its ratings have rank {rank}; try dims={rank}")
    sign = np.where(np.take_along_axis(right, np.abs(right).argmax(axis=0)[None], axis=0) < 0, -1.0, 1.0)
    return (left * sign)[:, :rank], singular[:rank], (right * sign)[:, :rank]


def _leading(matrix: Any, k: int) -> tuple[Floats, Floats, Floats]:
    """The k leading singular triplets, largest first: items' vectors as columns, as users' are."""
    from scipy.sparse.linalg import svds
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):  # sums are added in one order whatever the machine has
        if min(matrix.shape) <= 4 * k:  # an iterative method gains nothing here
            left, singular, right = np.linalg.svd(matrix.toarray(), full_matrices=False)
        else:
            start = generator(0, Role.RATINGS).standard_normal(min(matrix.shape))
            left, singular, right = svds(matrix, k=k, v0=start)
    order = np.argsort(-singular)[:k]
    return left[:, order], np.asarray(singular[order], dtype=np.float64), right[order].T


def _scaled(made: Arrays, *, scale: str, spectrum: float) -> tuple[Floats, Floats]:
    """Features of users and items, each side brought to norms of about 1/√2 so that those of arms are about 1."""
    power = made["singular"] ** spectrum
    sides = ((made["users"] * power, made["pairs"][:, 0]), (made["items"] * power, made["pairs"][:, 1]))
    users, items = (vectors / _unit(vectors, rated=rated, scale=scale) for vectors, rated in sides)
    return users, items


def _unit(vectors: Floats, *, rated: Codes, scale: str) -> Floats | float:
    norms = np.linalg.norm(vectors, axis=1)
    if scale == "rms":  # over rated pairs, as arms are drawn from them
        return float(np.sqrt(2 * np.mean(norms[rated] ** 2)))
    if scale == "max":
        return float(np.sqrt(2) * norms.max())
    if scale == "unit":
        return np.asarray(np.sqrt(2) * np.where(norms > 0, norms, 1.0)[:, None])
    return 1.0


def _split(made: Arrays, *, threshold: float, label: str) -> tuple[Codes, Codes]:
    """The pairs that pay 1 and those that pay 0, both in order of user and item."""
    likes = made["values"] > threshold
    if not likes.any() or likes.all():
        which, values = ("no", made["values"].max()) if not likes.any() else ("every", made["values"].min())
        extreme = "largest" if which == "no" else "smallest"
        raise ProblemError(
            f"{label}: {which} rating is above threshold={threshold:g}, so there is nothing to choose between;"
            f" the {extreme} is {values:g}, try another threshold"
        )
    return made["pairs"][likes], made["pairs"][~likes]


def _arm_count(asked: int | None, *, without_reward: int, label: str) -> int:
    most = without_reward + 1
    if most < 2:
        raise ProblemError(f"{label}: every user likes every item; try another threshold")
    if asked is not None and asked > most:
        raise ProblemError(f"{label}: arms={asked}, but only {without_reward} arms without reward; try arms={most}")
    return min(asked or ARMS, most)


def _disliked_of_each(liked: Codes, *, items: int) -> Whole:
    """For each pair, how many items its user does not like."""
    return (items - np.bincount(liked[:, 0]))[liked[:, 0]]


def _shortfall(used: int, *, asked: int | None, usual: int, what: str, why: str) -> list[str]:
    return [f"{used:,} {what} instead of {usual:,}: {why}"] if asked is None and used < usual else []


def _edition_notes(dataset: Dataset, *, ratings: int) -> list[str]:
    first = cache.find("ml-25m")
    notes = [dataset.title.partition(",")[0] + f" ({dataset.name})" + ("" if first else ", as ml-25m is not here")]
    if dataset.ratings not in (None, ratings):
        notes.append(f"{ratings:,} ratings where the publisher's {dataset.name} has {dataset.ratings:,}")
    return notes
