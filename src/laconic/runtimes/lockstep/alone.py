"""Clients that exchange alone: real clients and a real server, of which only the beliefs' views are batched.

A client's belief changes by its own exchange, or by an answer that it waits for. So all clients are scored together at
the beginning of a round, and whoever has another belief when its turn comes is scored by itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from laconic.arrays import Floats
from laconic.beliefs import Belief, ExactBelief, View
from laconic.problems.base import Round
from laconic.protocol.plan import Plan
from laconic.runtimes.lockstep.continuing import continues, shortened
from laconic.runtimes.lockstep.scores import MOST_FEATURES
from laconic.runtimes.network import Network
from laconic.runtimes.trace import Recorder


class LoneFleet:
    """All clients of a run, each with a belief and a tail of its own."""

    def __init__(self, plan: Plan, *, clients: int, seed: int, recorder: Recorder) -> None:
        self.network = Network(plan, clients=clients, seed=seed, ledger=recorder.ledger, strict=True)
        self.clients, self.recorder = clients, recorder

    def play_round(self, index: int, round_: Round) -> NDArray[np.int32]:
        """Let every client choose and observe once; its choices."""
        choices = np.zeros(self.clients, dtype=np.int32)
        views = RoundViews(self.network, round_)
        for number, client in self.network.clients.items():
            view = views.of(number)
            decision = client.choose(views.arms(number), view=view)
            arm = choices[number] = views.place(number, decision.arm)
            self.network.settle(number, client.observe(decision, float(round_.rewards[number, arm])))
            step = index * self.clients + number + 1
            self.recorder.exchanged(step, self.network.installed)
            self.recorder.downloaded(step, self.network.downloads)
        return choices


class RoundViews:
    """What beliefs say of a round's arms, for many clients at once.

    Exact beliefs that one of them continues are scored under that one: of its features each has its own first rows.
    """

    def __init__(self, network: Network, round_: Round) -> None:
        self._network, self._round = network, round_
        self._beliefs = {number: client.learner.belief for number, client in network.clients.items()}
        self._leaders = _leaders(self._beliefs)
        self._views: dict[int, View] = {}

    def arms(self, number: int) -> Floats:
        """The arms that a client may choose."""
        arms, mask = self._round.arms[number], self._round.mask
        return np.asarray(arms if mask is None else arms[mask[number]])

    def place(self, number: int, arm: int) -> int:
        """Where the arm of that number among those that a client may choose is among all."""
        mask = self._round.mask
        return arm if mask is None else int(np.flatnonzero(mask[number])[arm])

    def of(self, number: int) -> View | None:
        """What a client's belief says of its arms; None where it must look by itself."""
        if self._network.clients[number].learner.belief is not self._beliefs[number]:
            return None
        if number not in self._views:
            self._score(number)
        return self._views.pop(number)

    def _score(self, number: int) -> None:
        """Score this client and those after it that have the same leader, as many as memory allows."""
        leader = self._leaders[number]
        waiting = [each for each in self._beliefs if each >= number and self._leaders[each] is leader]
        most = max(MOST_FEATURES // (max(leader.width, 32) * self._round.arms.shape[1]), 1)
        sets = [(each, self.arms(each)) for each in waiting[:most]]
        view = leader.view(np.concatenate([arms for _, arms in sets]))
        stops = np.cumsum([len(arms) for _, arms in sets])
        for (each, arms), stop in zip(sets, stops, strict=True):
            part, belief = view.between(stop - len(arms), stop), self._beliefs[each]
            self._views[each] = part if belief is leader else _own_view(belief, part)


def _leaders(beliefs: dict[int, Belief]) -> dict[int, Belief]:
    """For each client the belief under which it is scored: the longest if that continues its own, or else its own."""
    exact = [belief for belief in beliefs.values() if isinstance(belief, ExactBelief)]
    longest = max(exact, key=lambda belief: belief.factor.size, default=None)
    found: dict[int, Belief] = {id(belief): belief for belief in beliefs.values()}
    for belief in exact:
        if longest is not None and continues(longest, belief):
            found[id(belief)] = longest
    return {number: found[id(belief)] for number, belief in beliefs.items()}


def _own_view(belief: Belief, view: View) -> View:
    assert isinstance(belief, ExactBelief)
    return shortened(belief, view)
