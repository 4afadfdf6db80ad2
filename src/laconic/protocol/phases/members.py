"""What a phase sees of those who contribute, one at a time or all at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from laconic.arrays import Floats, Ints
from laconic.beliefs import Belief


@dataclass(frozen=True, eq=False)
class Member:
    """What a phase sees of the client that contributes."""

    installed: Belief
    draft: Belief
    points: Floats  # its own history, up to the sync
    rewards: Floats
    covered: int  # how many of them, from the first on, the installed belief contains
    fired: bool
    random: Callable[[], np.random.Generator]  # addressed by (seed, client, epoch)


@dataclass(frozen=True, eq=False)
class Members:
    """What a phase sees of clients 0 … N−1 at once, when one process holds them all."""

    installed: Belief
    draft: Belief
    points: Floats  # (N, L, d) their own histories, row i those of client i
    rewards: Floats  # (N, L)
    lengths: Ints  # (N,) how many of the L each has
    covered: Ints  # (N,)
    fired: int
    random: Callable[[int], np.random.Generator]

    def __len__(self) -> int:
        return len(self.lengths)

    def drafting(self, draft: Belief) -> Members:
        """The same clients with another draft."""
        return Members(  # in a sync after every interaction, dataclasses.replace would show
            installed=self.installed,
            draft=draft,
            points=self.points,
            rewards=self.rewards,
            lengths=self.lengths,
            covered=self.covered,
            fired=self.fired,
            random=self.random,
        )

    def member(self, client: int) -> Member:
        """What a phase sees of one of them."""
        length = self.lengths[client]
        return Member(
            installed=self.installed,
            draft=self.draft,
            points=self.points[client, :length],
            rewards=self.rewards[client, :length],
            covered=int(self.covered[client]),
            fired=client == self.fired,
            random=lambda: self.random(client),
        )

    def since(self, first: Ints) -> tuple[Ints, Ints]:
        """The observations that each client has from its number ``first`` on: clients, ascending, and their numbers."""
        counts = self.lengths - first
        if counts.max(initial=0) <= 1:  # as after every interaction
            clients = counts.nonzero()[0]
            return clients, first[clients]
        clients = np.repeat(np.arange(len(self)), counts)
        within = np.arange(len(clients)) - np.repeat(np.cumsum(counts) - counts, counts)
        return clients, within + first[clients]
