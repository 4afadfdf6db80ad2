"""What a run had to compute and at which sizes, read off its trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from laconic.arrays import Ints
from laconic.beliefs import ExactBelief, FiniteBelief, NystromEmbedding
from laconic.problems.base import Instance
from laconic.runtimes import Run

Kind = Literal["exact", "linear", "nystrom", "blank"]


@dataclass(frozen=True)
class Segment:
    """Clients that acted in a round on the same belief, with tails of equal length."""

    epoch: int  # the belief is that of this many syncs
    belief: int  # coordinates of the belief: points, dictionary points or features
    clients: int
    tail: int  # rows of each one's tail


@dataclass(frozen=True)
class Turn:
    """A round: its columns to score and who scored them on which belief."""

    columns: int  # distinct arms of all clients together
    shared: bool  # clients choose among the same points
    regrown: bool  # a sync in this round made a factor anew
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class Sync:
    """A sync: the belief's coordinates before and after, the points behind it and what was new."""

    old: int
    new: int
    points: int  # of all clients' histories
    fresh: int  # of them, since the last sync
    union: int  # sampled for the dictionary, before it was thinned
    regrown: bool  # the exact belief had some of the points already, so that its factor is made anew


@dataclass(frozen=True)
class Schedule:
    """All rounds and syncs of a run."""

    kind: Kind
    dim: int
    arms: int
    turns: tuple[Turn, ...]
    syncs: tuple[Sync, ...]


def schedule_of(run: Run, instance: Instance) -> Schedule:
    """The schedule of a finished run on an instance of its problem."""
    first = instance.round(0).arms
    kind = _kind(run, instance.dim)
    distinct = len(np.unique(first.reshape(-1, first.shape[2]), axis=0))
    shared = distinct < len(first) * first.shape[1]
    sizes, tails = _exact_sizes(run, instance) if kind == "exact" else (_finite_sizes(run, instance.dim, kind), None)
    syncs = tuple(_syncs(run, instance.dim, sizes=sizes, kind=kind))
    regrown = {(sync.points - 1) // run.clients for sync in syncs if sync.regrown}
    turns = tuple(
        Turn(distinct, shared, index in regrown, tuple(_segments(run, index, sizes=sizes, tails=tails)))
        for index in range(run.rounds)
    )
    return Schedule(kind=kind, dim=instance.dim, arms=first.shape[1], turns=turns, syncs=syncs)


def _kind(run: Run, dim: int) -> Kind:
    belief = run.algorithm.plan(dim).belief
    if isinstance(belief, ExactBelief):
        return "exact"
    assert isinstance(belief, FiniteBelief)
    if isinstance(belief.embedding, NystromEmbedding):
        return "nystrom"
    return "linear" if belief.rank else "blank"


def _finite_sizes(run: Run, dim: int, kind: Kind) -> Ints:
    """The coordinates of the belief before the first sync and after each."""
    if kind == "nystrom":
        return np.concatenate([[0], run.dictionary_sizes])
    return np.full(run.syncs + 1, dim if kind == "linear" else 0)


def _exact_sizes(run: Run, instance: Instance) -> tuple[Ints, Ints]:
    """Distinct points of the belief before the first sync and after each, and of the tail at each step."""
    known: set[bytes] = set()
    own: list[set[bytes]] = [set() for _ in range(run.clients)]
    since = np.zeros(run.clients, dtype=np.int64)  # the epoch of each client's tail
    sizes, tails = [0], np.zeros(run.clients * run.rounds, dtype=np.int64)
    syncs = set(run.sync_steps.tolist())
    for step, point in enumerate(_chosen(run, instance)):
        client, epoch = step % run.clients, len(sizes) - 1
        if since[client] != epoch:
            own[client], since[client] = set(), epoch
        tails[step] = len(own[client])
        own[client].add(point)
        known.add(point)
        if step + 1 in syncs:
            sizes.append(len(known))
    return np.array(sizes), tails


def _chosen(run: Run, instance: Instance) -> Iterator[bytes]:
    """The point chosen at each step, as bytes."""
    choices = run.choices.reshape(run.rounds, run.clients)
    for index in range(run.rounds):
        arms = instance.round(index).arms
        for client, arm in enumerate(choices[index]):
            yield arms[client, arm].tobytes()


def _segments(run: Run, index: int, *, sizes: Ints, tails: Ints | None) -> Iterator[Segment]:
    start = index * run.clients
    steps = np.arange(start, start + run.clients)
    epochs = np.searchsorted(run.sync_steps, steps, side="right")
    if tails is None:
        lengths = np.minimum(_tail_lengths(run, steps, epochs), sizes[epochs])  # a longer one is folded
    else:
        lengths = tails[steps]
    pairs, counts = np.unique(np.stack([epochs, lengths]), axis=1, return_counts=True)
    for epoch, tail, clients in zip(*pairs.tolist(), counts.tolist(), strict=True):
        yield Segment(epoch=epoch, belief=int(sizes[epoch]), clients=clients, tail=tail)


def _tail_lengths(run: Run, steps: Ints, epochs: Ints) -> Ints:
    """How many points of its own the client of each step has since the last sync."""
    last_sync = np.concatenate([[0], run.sync_steps])[epochs]
    clients, rounds = steps % run.clients, steps // run.clients
    first_since = (last_sync - clients - 1) // run.clients + 1
    return np.asarray(np.maximum(rounds - np.maximum(first_since, 0), 0))


def _syncs(run: Run, dim: int, *, sizes: Ints, kind: Kind) -> Iterator[Sync]:
    sampled = run.ledger.by("epoch", "phase", "direction") if kind == "nystrom" else {}
    before = 0
    for number, step in enumerate(run.sync_steps.tolist()):
        union = sampled.get((number + 1, "agree on dictionary", "up"))
        old, new, fresh = int(sizes[number]), int(sizes[number + 1]), step - before
        yield Sync(
            old=old,
            new=new,
            points=step,
            fresh=fresh,
            union=0 if union is None else union.scalars // (dim + 1),
            regrown=kind == "exact" and new - old < fresh,
        )
        before = step
