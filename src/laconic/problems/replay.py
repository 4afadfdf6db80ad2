"""Logs of what was chosen and paid, replayed by rejection: whoever chooses as was logged learns the reward."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np

from laconic.checks import require_no_grid, require_path, require_positive, require_probability
from laconic.problems.base import Round
from laconic.problems.events import Events, read_events
from laconic.problems.recorded import sizes_of
from laconic.problems.rounds import check_opening
from laconic.randomness import Role, generator


@dataclass(frozen=True, eq=False)
class ReplayInstance:
    """The events of a log dealt to N clients in turn."""

    replay: Replay
    seed: int
    clients: int
    rounds: int

    @property
    def dim(self) -> int:
        """The number of features of an arm."""
        return self.replay.dim

    @property
    def best(self) -> float:
        """The largest reward of the log."""
        return float(self.replay.events.reward.max())

    def round(self, index: int) -> Round:
        """Events t = N(l−1)+i for i = 1 … N, where l = ``index`` + 1.

        An event is accepted with the probability c/p, so that every arm of every set has the same chance c to be
        logged and accepted, whatever p it was logged with.
        """
        events = self.replay.events
        steps = slice(self.clients * index, self.clients * (index + 1))
        there, column, reward = events.there[steps], events.column[steps], events.reward[steps]
        coins = generator(self.seed, Role.ROUND, index).random(self.clients)
        single = there.sum(axis=1) == 1
        accepted = single | (coins * events.propensity[steps] < self.replay.least)
        chosen = np.arange(there.shape[1]) == column[:, None]
        paid = np.where(chosen, reward[:, None], 0.0)
        mask = None if there.all() else there
        return Round(events.arms[steps], means=paid, rewards=paid, mask=mask, revealed=chosen & accepted[:, None])


@dataclass(frozen=True)
class Replay:
    """Replays a Parquet file of events, as ``Run.log`` writes it: who chooses the logged arm learns its reward.

    Whoever is replayed is judged on the events it agrees with, of which so many are kept that each arm has the same
    chance.

    Args:
        path: The Parquet file of events.
        floor: Chance c, above 0 and at most 1, of being logged and kept: an event that agrees is kept with probability
            c/propensity. None: the smallest propensity in the log; a smaller c counts as that. Raising it keeps more
            events, and counts arms of a smaller propensity too rarely.
    """

    path: str
    floor: float | None = None
    events: Events = field(init=False, repr=False, compare=False)

    def __init__(self, path: str | os.PathLike[str], floor: float | None = None) -> None:
        if floor is not None:
            require_no_grid(floor=floor)
            require_probability("floor", floor)
            require_positive("floor", floor)
        object.__setattr__(self, "path", require_path("path", path))
        object.__setattr__(self, "floor", floor)
        object.__setattr__(self, "events", read_events(self.path))

    @property
    def dim(self) -> int:
        """The number of features of an arm."""
        return int(self.events.arms.shape[2])

    @property
    def sha256(self) -> str:
        """A hash of what the file holds, to know it again."""
        return self.events.sha256

    @property
    def least(self) -> float:
        """c: the chance with which an arm is logged and accepted."""
        several = self.events.there.sum(axis=1) > 1
        smallest = float(self.events.propensity[several].min(initial=1.0))
        return smallest if self.floor is None else max(self.floor, smallest)

    def sizes(self, clients: int | None = None, rounds: int | None = None) -> tuple[int, int]:
        """The sizes to replay it with: all its whole rounds, and ⌊√events⌋ clients when neither is given.

        Args:
            clients: Clients N, from 1; None: as many as ``rounds`` leave events for, or ⌊√events⌋ where neither is
                given.
            rounds: Rounds T, from 1; None: all whole rounds that there are for so many clients. Clients times rounds
                must not be more than the events.
        """
        return sizes_of(len(self.events), clients, rounds, source=self.path)

    def instance(self, *, seed: int, clients: int, rounds: int) -> ReplayInstance:
        """The events dealt to so many clients; the seed decides which of those that agree are accepted.

        Args:
            seed: Seed of the run, from 0.
            clients: Clients N that the events are dealt to, from 1.
            rounds: Rounds T, from 1. Clients times rounds must not be more than the events.
        """
        check_opening(seed=seed, clients=clients, rounds=rounds)
        self.sizes(clients, rounds)
        return ReplayInstance(self, seed=seed, clients=clients, rounds=rounds)
