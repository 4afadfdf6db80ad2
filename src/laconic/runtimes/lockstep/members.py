"""All clients of a sync at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from laconic.arrays import Floats, Ints
from laconic.beliefs import Belief
from laconic.protocol.packing import NARROW, widths
from laconic.protocol.phases import Member
from laconic.runtimes.lockstep.continuing import Known


@dataclass(frozen=True, eq=False)
class Members:
    """What phases see of clients 0 … N−1 at once, as one process holds them all."""

    installed: Belief
    draft: Belief
    points: Floats  # (N, L, d) their own histories, row i those of client i
    rewards: Floats  # (N, L)
    lengths: Ints  # (N,) how many of the L each has
    covered: Ints  # (N,)
    fired: int
    random: Callable[[int], np.random.Generator]
    known: Known | None = None  # features of points that the draft is about to learn

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
            known=self.known,
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

    def since(self, first: Ints, counts: Ints) -> tuple[Floats, Floats]:
        """The ``counts`` observations that each client has from its number ``first`` on, clients ascending."""
        clients = counts.nonzero()[0]
        if len(clients) == 1 and counts[at := int(clients[0])] == 1:  # as after every interaction: a slice costs less
            new = slice(first[at], first[at] + 1)
            return self.points[at, new], self.rewards[at, new]
        places = self.places(first, counts)
        return self.points[places], self.rewards[places]

    def places(self, first: Ints, counts: Ints) -> tuple[Ints, Ints]:
        """Where these are: clients, ascending, and their numbers."""
        clients = np.repeat(np.arange(len(self)), counts)
        within = np.arange(len(clients)) - np.repeat(np.cumsum(counts) - counts, counts)
        return clients, within + first[clients]

    def beyond_narrow(self, numbers: Ints) -> Ints | None:
        """The bytes that a number of each client's observations takes beyond those of 0; None where none takes more."""
        return None if self.points.shape[1] < NARROW else widths(numbers) - 1
