"""Clients that exchange alone: real clients and a real server, whose choices and tails are computed in batches.

A client's belief changes by its own exchange, or by an answer that it waits for. So all clients are scored together at
the beginning of a round, and whoever has another belief when its turn comes is scored by itself. Observations are
handed to the client when it has something to exchange, or waits for an answer: until then only its tail need know them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from laconic.arrays import Floats, Ints
from laconic.beliefs import Belief, ExactBelief, View
from laconic.exploration import UCB, Fixed, Greedy
from laconic.problems.base import Round
from laconic.protocol.client import Client
from laconic.protocol.plan import Plan
from laconic.protocol.session import ClientState
from laconic.randomness import Role, generator
from laconic.runtimes.lockstep.arms import Arms, picked_by_index
from laconic.runtimes.lockstep.batch import Exploring
from laconic.runtimes.lockstep.continuing import continues, shortened, shortened_each
from laconic.runtimes.lockstep.exact_tail import ExactTail, ExactTails
from laconic.runtimes.lockstep.exact_tail import turn as turn_exact
from laconic.runtimes.lockstep.lazy import most_clients, pays, screened
from laconic.runtimes.lockstep.lines import AtHand, Line, Lines
from laconic.runtimes.lockstep.lone_tails import Bound, LateTail, QuickTail, Seen, Sighted, replayed, scored
from laconic.runtimes.lockstep.scores import BATCH_ENTRIES
from laconic.runtimes.lockstep.shadow import Bounds
from laconic.runtimes.lockstep.sights import Look, Sight, Sights
from laconic.runtimes.network import Network
from laconic.runtimes.trace import Recorder

#: So many numbers of arms are looked at in one go that a processor has them at hand.
CACHED = 2**18


class LoneFleet:
    """All clients of a run, each with a belief and a tail of its own."""

    def __init__(self, plan: Plan, *, clients: int, seed: int, recorder: Recorder) -> None:
        self._alpha = _fixed_alpha(plan)
        self._lines, self._sights = Lines(), Sights()  # of exact and of finite beliefs
        self._at_hand = AtHand(self._lines, None if self._alpha is None else self._sights)
        self.network = Network(
            plan, clients=clients, seed=seed, ledger=recorder.ledger, strict=True, learning=self._at_hand
        )
        self.plan, self.clients, self.seed, self.recorder = plan, clients, seed, recorder
        self._unreported: dict[int, Unreported] = {number: Unreported([], []) for number in self.network.clients}
        self._newest: Belief | None = None  # the finite belief that was installed last, and may be again

    def play_round(self, index: int, round_: Round) -> NDArray[np.int32]:
        """Let every client choose and observe once; its choices."""
        choices = np.zeros(self.clients, dtype=np.int32)
        arms = Arms.of(round_)
        ready = self._decided(index, round_, arms) | self._decided_exactly(index, round_, arms)
        views = RoundViews(self.network, round_)
        for number, client in self.network.clients.items():
            turn, step = ready.get(number), index * self.clients + number + 1
            tail: object = client.learner.tail
            if turn is not None and tail is turn.tail:
                choices[number] = turn.arm
                self._learn(number, client, turn)
            else:
                choices[number] = self._by_itself(number, client, round_, views, step=step)
            if self.network.installed:
                self._newest = _newest(self.network.installed, before=self._newest)
                self.recorder.exchanged(step, self.network.installed)
                self.recorder.downloaded(step, self.network.downloads)
        return choices

    def _by_itself(self, number: int, client: Client, round_: Round, views: RoundViews, *, step: int) -> int:
        """One client's turn, as the client itself takes it."""
        if self._unreported[number].points:
            self._report(number, client)
        self._replay([client])
        decision = client.choose(views.arms(number), view=views.of(number))
        arm = views.place(number, decision.arm)
        if self.recorder.chances is not None:
            self.recorder.chances.note(step - 1, decision.choice.chance)
        self.network.settle(number, client.observe(decision, float(round_.rewards[number, arm])))
        return arm

    # -- many at once --------------------------------------------------------------------------------------------

    def _decided(self, index: int, round_: Round, arms: Arms) -> dict[int, Turn]:
        """What clients on finite beliefs choose in this round, if their beliefs are the same when it is their turn."""
        tails = self._quick_tails()
        if not tails:
            return {}
        numbers, rows = list(tails), _rows(tails)
        mean, width = self._indices(arms, tails)
        picked = self._pick(arms, mean, width, numbers=numbers, index=index)
        chosen = round_.arms[numbers, picked]
        points, rewards = self.plan.rounded(chosen, round_.rewards[numbers, picked])
        turns = {}
        for group in _groups(tails):
            at = [rows[number] for number in group]
            found = self._sights.of(tails[group[0]].belief).sighting(points[at])
            for number, row, seen in zip(group, at, Sighted.each(found), strict=True):
                turns[number] = Turn(int(picked[row]), tails[number], seen, float(rewards[row]))
        return turns

    def _decided_exactly(self, index: int, round_: Round, arms: Arms) -> dict[int, Turn]:
        """What clients on exact beliefs choose, under the same condition, where scores are lazy."""
        if self._alpha is None:
            return {}
        turns: dict[int, Turn] = {}
        self._at_hand.begin_round()
        for line, numbers in self._lines.sorted(self._exact_beliefs(arms)):
            if not pays(line.longest, arms) or line.shadow is None:
                continue
            tails = [self._exact_tail(number) for number in numbers]
            turn_exact(tails, line.shadow)
            most = most_clients(line.longest, arms)
            for first in range(0, len(numbers), most):
                some = slice(first, first + most)
                turns |= self._decided_in_line(line, tails[some], numbers[some], index, round_, arms)
        return turns

    def _exact_beliefs(self, arms: Arms) -> dict[int, ExactBelief]:
        """The exact beliefs of clients; none where no line of them could pay, as each is looked for in all lines."""
        beliefs = {number: client.learner.belief for number, client in self.network.clients.items()}
        exact = {number: belief for number, belief in beliefs.items() if isinstance(belief, ExactBelief)}
        return exact if any(pays(belief, arms) for belief in exact.values()) else {}

    def _exact_tail(self, number: int) -> ExactTail:
        """The tail of a client, brought into the form for batches."""
        learner = self.network.clients[number].learner
        known: Any = learner.tail
        tail = known if isinstance(known, ExactTail) else ExactTail.of(known)
        learner.tail = cast(Any, tail)  # it predicts and learns as a tail does
        self._at_hand.note(tail.exact, tail.points, tail.features)
        return tail

    def _decided_in_line(
        self, line: Line, tails: list[ExactTail], numbers: list[int], index: int, round_: Round, arms: Arms
    ) -> dict[int, Turn]:
        """What clients choose whose beliefs are beginnings of one."""
        assert line.shadow is not None and self._alpha is not None
        prefixes = line.prefixes([tail.exact for tail in tails])
        exploring = Exploring(self._alpha, arms.first_there(numbers))
        beside = ExactTails(tails, arms.arms[numbers])
        screen = screened(Bounds(line.shadow, arms.arms[numbers], prefixes), beside, exploring)
        scores, prediction = screen.scored(beside, 0, len(numbers), lambda first, last: exploring.of(first, last))
        width = self._alpha * np.sqrt(prediction.signal)
        picked = self._pick(arms, prediction.mean, width, numbers=numbers, index=index)
        points, rewards = self.plan.rounded(round_.arms[numbers, picked], round_.rewards[numbers, picked])
        chosen = scores.chosen(picked if arms.first_equal is None else arms.first_equal[numbers, picked])
        view = View(points, chosen.features.T, chosen.mean, chosen.signal, chosen.residual)
        moved = np.flatnonzero((points != chosen.points).any(axis=1))
        if len(moved):
            near = shortened_each(line.longest, line.longest.view(points[moved]), prefixes.rows[moved])
            view = near if len(moved) == len(points) else _replaced(view, moved, near)
        return {
            number: Turn(int(arm), tail, seen._replace(v=seen.v[: tail.exact.width]), float(reward))
            for number, arm, tail, seen, reward in zip(numbers, picked, tails, Seen.each(view), rewards, strict=True)
        }

    def _quick_tails(self) -> dict[int, QuickTail]:
        """The tails of clients that can be computed in batches, brought into the form for that."""
        if self._alpha is None:
            return {}
        self._replay(self.network.clients.values())
        found = {}
        for number, client in self.network.clients.items():
            tail: Any = client.learner.tail
            if not isinstance(tail, QuickTail):
                quick = QuickTail.of(tail, self._sights)
                if quick is None:
                    continue
                client.learner.tail = cast(Any, quick)  # it predicts and learns as a tail does
                tail = quick
            found[number] = tail
        return found

    def _replay(self, clients: Iterable[Client]) -> None:
        """Let tails of clients learn what their beliefs lack, those on one belief together."""
        late: dict[int, list[tuple[Client, LateTail]]] = {}
        for client in clients:
            tail: object = client.learner.tail
            if isinstance(tail, LateTail):
                late.setdefault(id(tail.belief), []).append((client, tail))
        for group in late.values():
            tails = [tail for _, tail in group]
            for (client, _), quick in zip(group, replayed(tails, self._sights.of(tails[0].belief)), strict=True):
                client.learner.tail = cast(Any, quick)  # it predicts and learns as a tail does

    def _indices(self, arms: Arms, tails: dict[int, QuickTail]) -> tuple[Floats, Floats]:
        """μ and ασ of all arms of each of these clients; of those that cannot win, σ is an upper bound."""
        mean, variance = np.empty((2, len(tails), arms.arms.shape[1]))
        rows = _rows(tails)
        for group in _groups(tails):
            belief = tails[group[0]].belief
            sight = self._sights.of(belief)
            for some, look in _looks(arms, sight, group, width=belief.width):
                at = [rows[number] for number in some]
                mean[at], variance[at] = scored([tails[number] for number in some], look, self._bound(arms, some))
        self._sights.keep((tail.belief for tail in tails.values()), newest=self._newest)
        assert self._alpha is not None
        return mean, self._alpha * np.sqrt(variance)

    def _bound(self, arms: Arms, numbers: list[int]) -> Bound:
        assert self._alpha is not None
        there = None if arms.mask is None else arms.mask[numbers]
        return Bound(self._alpha, tie=self.plan.belief.precision.tie, there=there)

    def _pick(self, arms: Arms, mean: Floats, width: Floats, *, numbers: list[int], index: int) -> Ints:
        """The arm of each of these clients."""
        chances, before = self.recorder.chances, index * self.clients
        return picked_by_index(
            mean,
            width,
            columns=None if arms.first_equal is None else arms.first_equal[numbers],
            there=None if arms.mask is None else arms.mask[numbers],
            tie=self.plan.belief.precision.tie,
            draw=lambda row: generator(self.seed, Role.TIES, numbers[row], index),
            note=None if chances is None else partial(chances.note_shared, before + np.array(numbers)),
        )

    def _learn(self, number: int, client: Client, turn: Turn) -> None:
        """Let a client's tail learn, and the client itself when there is something to exchange."""
        turn.learn()
        if isinstance(turn.tail, ExactTail) and isinstance(turn.seen, Seen):
            self._at_hand.note(turn.tail.exact, turn.seen.x[None], turn.seen.v[None])
        unreported = self._unreported[number]
        unreported.points.append(turn.seen.x)
        unreported.rewards.append(turn.reward)
        session, own = client.session, client.count + len(unreported.points)
        quiet = session.state is ClientState.IDLE and session.owed is None and not client.learner.fires_after(own)
        if quiet and not self.plan.upload.due(unsent=own - session.sent, own=own):
            return
        self._report(number, client)

    def _report(self, number: int, client: Client) -> None:
        """Hand a client the observations that it does not know yet, and deliver what follows."""
        unreported = self._unreported[number]
        points, rewards = np.array(unreported.points), np.array(unreported.rewards)
        self._unreported[number] = Unreported([], [])
        self.network.settle(number, client.reported(points, rewards))


def _newest(installed: list[Belief], *, before: Belief | None) -> Belief | None:
    """The last finite belief among those that were installed, if there is any."""
    return next((belief for belief in reversed(installed) if belief.rank is not None), before)


def _fixed_alpha(plan: Plan) -> float | None:
    """The α of which μ + ασ is largest where a client chooses; None where it is another, or chooses otherwise."""
    if type(plan.exploration) is Greedy:
        return 0.0
    by_index = type(plan.exploration) is UCB  # a subclass may have changed anything
    return plan.confidence.alpha if by_index and isinstance(plan.confidence, Fixed) else None


@dataclass(frozen=True, eq=False)
class Unreported:
    """Observations that a client's tail has, and the client itself does not know yet."""

    points: list[Floats]
    rewards: list[float]


@dataclass(frozen=True, eq=False)
class Turn:
    """What a client does in a round: the arm that it chooses, and the point and reward as its wire rounds them."""

    arm: int
    tail: QuickTail | ExactTail
    seen: Seen | Sighted  # what the belief says of the point, as its tail learns it
    reward: float

    def learn(self) -> None:
        """Let the tail learn."""
        tail: Any = self.tail
        tail.learn(self.seen, self.reward)


def _rows(tails: dict[int, QuickTail]) -> dict[int, int]:
    """Which row of a batch is whose."""
    return {number: row for row, number in enumerate(tails)}


def _groups(tails: dict[int, QuickTail]) -> list[list[int]]:
    """Clients that have one belief."""
    groups: dict[int, list[int]] = {}
    for number, tail in tails.items():
        groups.setdefault(id(tail.belief), []).append(number)
    return list(groups.values())


def _replaced(view: View, columns: Ints, other: View) -> View:
    """The view with another's points in some columns."""
    points, features, mean, signal = (each.copy() for each in (view.points, view.features, view.mean, view.signal))
    points[columns], features[:, columns] = other.points, other.features
    mean[columns], signal[columns] = other.mean, other.signal
    return View(points, features, mean, signal, view.residual)


def _looks(arms: Arms, sight: Sight, group: list[int], *, width: int) -> Iterator[tuple[list[int], Look]]:
    """The arms of some clients under one belief, of as many at once as a cache holds."""
    if arms.shared is not None:
        whole = sight.look(arms.shared)
        for number in group:
            yield [number], whole if arms.index is None else whole.taken(arms.index[number])
        return
    size, dim = arms.arms.shape[1:]
    most = max(CACHED // (max(width, 32) * size), 1)
    for first in range(0, len(group), most):
        part = group[first : first + most]
        yield part, sight.look(arms.arms[part].reshape(-1, dim), lazily=True)


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
        most = max(BATCH_ENTRIES // (max(leader.width, 32) * self._round.arms.shape[1]), 1)
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
