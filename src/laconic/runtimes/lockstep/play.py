"""The loop of lockstep: score many, choose, find who fired first, commit up to there, sync, go on with the rest."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.algorithms import Algorithm
from laconic.arrays import Floats, Ints
from laconic.beliefs import SMALL_FACTOR, Belief, ExactBelief
from laconic.exploration import UCB, Fixed, Greedy, choice_of
from laconic.problems.base import Instance, Round
from laconic.protocol.plan import Plan
from laconic.protocol.wire import EXACT
from laconic.randomness import Role, generator
from laconic.runtimes import loopback
from laconic.runtimes.lockstep.arms import Arms, picked_by_index
from laconic.runtimes.lockstep.batch import Exploring, Narrowed, NewPoints, Prediction, Scores, one_each
from laconic.runtimes.lockstep.continuing import Known
from laconic.runtimes.lockstep.exact_rows import ExactRows
from laconic.runtimes.lockstep.lazy import Lazy
from laconic.runtimes.lockstep.lone import LoneFleet
from laconic.runtimes.lockstep.members import Members
from laconic.runtimes.lockstep.scores import RoundScores, arranged
from laconic.runtimes.lockstep.showing import Showing
from laconic.runtimes.lockstep.sync import Postmaster
from laconic.runtimes.lockstep.tails import Tails
from laconic.runtimes.meeting import met
from laconic.runtimes.trace import Recorder, Run


def play(
    algorithm: Algorithm,
    instance: Instance,
    *,
    clients: int,
    rounds: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
    log: bool = False,
) -> Run:
    """A whole run, round by round; loopback plays one in which some rewards are not known, as few are learnt from."""
    plan = algorithm.plan(instance.dim)
    recorder = Recorder(plan, clients=clients, rounds=rounds, log=instance if log else None)
    fleet: Fleet | LoneFleet = (
        Fleet(plan, clients=clients, rounds=rounds, seed=seed, recorder=recorder)
        if plan.digest is None
        else LoneFleet(plan, clients=clients, seed=seed, recorder=recorder)
    )
    seconds = 0.0
    for index in range(rounds):
        round_ = met(plan, instance, index=index, clients=clients)
        if round_.revealed is not None:  # from the start again, as rounds are the same whenever they are asked for
            how: Any = {"clients": clients, "rounds": rounds, "seed": seed, "log": log}
            return loopback.play(algorithm, instance, progress=_further(progress, than=index * clients), **how)
        begun = time.perf_counter()
        recorder.round_done(index, round_, fleet.play_round(index, round_))
        seconds += time.perf_counter() - begun
        if progress is not None:
            progress((index + 1) * clients)
    return recorder.finish(algorithm=algorithm, seed=seed, rounds=rounds, seconds=seconds)


def _further(progress: Callable[[int], None] | None, *, than: int) -> Callable[[int], None] | None:
    """Progress that is told of no fewer steps than it was told of before."""
    return None if progress is None else lambda done: progress(max(done, than))


class Fleet:
    """All clients of a run: one belief, their tails and histories as arrays, row i those of client i."""

    def __init__(self, plan: Plan, *, clients: int, rounds: int, seed: int, recorder: Recorder) -> None:
        self.plan, self.clients, self.seed, self.recorder = plan, clients, seed, recorder
        self.belief: Belief = plan.belief
        self.tails = Tails(plan.belief, clients)
        self.epoch = 0
        self.points = np.empty((clients, rounds, plan.belief.dim))
        self.rewards = np.empty((clients, rounds))
        self.lengths = np.zeros(clients, dtype=np.int64)
        self.covered = np.zeros(clients, dtype=np.int64)
        self._numbers = np.arange(clients)
        self._window = clients
        self._rounds = plan.wire != EXACT
        self._by_index = type(plan.exploration) in (UCB, Greedy)  # a subclass may have changed anything
        self._lazy = Lazy()
        self._post = Postmaster(plan, recorder.ledger)

    def play_round(self, index: int, round_: Round) -> NDArray[np.int32]:
        """Let every client choose and observe once; its choices."""
        choices = np.zeros(self.clients, dtype=np.int32)
        scores = RoundScores(Arms.of(round_))
        self.tails.begin_round()
        self._lazy.begin_round(scores.arms)
        first = 0
        while first < self.clients:
            last = min(first + min(self._window, scores.widest(self.belief, tail=self.tails.rows.size)), self.clients)
            first += self._play_window(index, round_, scores, choices, first, last)
        return choices

    def _play_window(
        self, index: int, round_: Round, scores: RoundScores, choices: NDArray[np.int32], first: int, last: int
    ) -> int:
        """Play clients ``first`` … ``last`` as far as the first one that fires; how many have acted."""
        arms = scores.arms
        exploring = self._exploring(arms, first, last)
        batch, prediction = self._scored(scores, first, last, exploring=exploring)
        width = exploring.alpha * np.sqrt(prediction.signal + batch.residual)
        if self._by_index:
            picked = self._pick(arms, prediction.mean, width, first=first, last=last, index=index)
        else:
            assert isinstance(batch, Scores)  # who does not choose by the largest index has all arms scored
            showing = Showing(self.belief, batch, prediction, width=width, alpha=exploring.alpha)
            picked = self._explored(arms, showing, first=first, last=last, index=index)
        column = picked if arms.scored is None else arms.scored[self._numbers[first:last], picked]
        points, rewards = None, one_each(round_.rewards[first:last], picked)
        if self._rounds:
            points, rewards = self.plan.rounded(round_.arms[self._numbers[first:last], picked], rewards)
            batch, prediction = self._looked_at(points, first, last, alpha=exploring.alpha)
            column = np.zeros_like(picked)
        own = self.lengths[first:last] + 1
        new, news = self.tails.learnt(batch, prediction, column, first=first, rewards=rewards, own=own)
        fires = np.asarray(self.plan.trigger.fires(news)).nonzero()[0]
        acted = int(fires[0]) + 1 if len(fires) else last - first
        if points is None:
            self._remember(round_, picked[:acted], rewards[:acted], first)
        else:
            self._remember_rounded(points[:acted], rewards[:acted], first)
        choices[first : first + acted] = picked[:acted]
        if len(fires):  # every tail begins anew, so what was learnt here need not go onto it first
            self._sync(new.upto(acted), fired=first + acted - 1, index=index)
            self._window = acted
        else:
            self.tails.commit(new, news, first=first, count=acted)
            self._window = min(2 * self._window, self.clients)
        return acted

    def _scored(
        self, scores: RoundScores, first: int, last: int, *, exploring: Exploring
    ) -> tuple[Scores | Narrowed, Prediction]:
        """What belief and tails say of the arms of clients ``first`` … ``last``, at least of those that may win."""
        if not exploring.all:
            lazily = partial(self._looking, scores.arms)
            found = self._lazy.scored(self.belief, self.tails, first, last, lazily)
            if found is not None:
                return found
        batch = scores.of(self.belief, first, last)
        return batch, self.tails.predict(batch, first, last, exploring=exploring)

    def _looking(self, arms: Arms, first: int, last: int) -> Exploring:
        """What decides which points of clients ``first`` … ``last`` can win: of equal arms, only the first can."""
        return replace(self._exploring(arms, first, last), there=arms.first_there(slice(first, last)))

    def _looked_at(self, points: Floats, first: int, last: int, *, alpha: Any) -> tuple[Scores, Prediction]:
        """What belief and tails say of one point of each client, which is near the arm that it chose."""
        scores = arranged(self.belief.view(points), last - first)
        return scores, self.tails.predict(scores, first, last, exploring=Exploring(alpha))

    def _exploring(self, arms: Arms, first: int, last: int) -> Exploring:
        confidence, there = self.plan.confidence, None if arms.mask is None else arms.mask[first:last]
        every = arms.shared is not None or not self._by_index
        if type(self.plan.exploration) is Greedy:
            return Exploring(0.0, there, all=every)
        if isinstance(confidence, Fixed):
            return Exploring(confidence.alpha, there, all=every)
        alpha: Any = confidence.coefficient(
            lam=self.belief.lam, clients=self.clients, information=self.tails.information(first, last)
        )
        return Exploring(np.reshape(alpha, (-1, 1)), there, all=every)

    def _pick(self, arms: Arms, mean: Floats, width: Floats, *, first: int, last: int, index: int) -> Ints:
        """The arm of each of clients ``first`` … ``last``."""
        chances, before = self.recorder.chances, index * self.clients
        return picked_by_index(
            mean,
            width,
            columns=None if arms.scored is None else arms.scored[first:last],
            there=None if arms.mask is None else arms.mask[first:last],
            tie=self.belief.precision.tie,
            draw=lambda row: generator(self.seed, Role.TIES, first + row, index),
            note=None if chances is None else partial(chances.note_shared, slice(before + first, before + last)),
        )

    def _explored(self, arms: Arms, showing: Showing, *, first: int, last: int, index: int) -> Ints:
        """The arm of each client as the plan's exploration chooses it, client by client."""
        picked = np.zeros(last - first, dtype=np.int64)
        for row, client in enumerate(range(first, last)):
            there, columns = arms.columns(client)
            shown = showing.shown(row, columns, address=(self.seed, client, index))
            choice = choice_of(self.plan.exploration, shown)
            picked[row] = there[choice.arm]
            if self.recorder.chances is not None:
                self.recorder.chances.note(index * self.clients + client, choice.chance)
        return picked

    def _remember(self, round_: Round, picked: Ints, rewards: Floats, first: int) -> None:
        who = slice(first, first + len(picked))
        if len(picked) == 1:  # without the cost of indexing by arrays
            at = self.lengths[first]
            self.points[first, at], self.rewards[first, at] = round_.arms[first, picked[0]], rewards[0]
            self.lengths[first] += 1
            return
        clients, lengths = self._numbers[who], self.lengths[who]
        self.points[clients, lengths] = round_.arms[clients, picked]
        self.rewards[clients, lengths] = rewards
        lengths += 1

    def _remember_rounded(self, points: Floats, rewards: Floats, first: int) -> None:
        who = slice(first, first + len(rewards))
        clients, lengths = self._numbers[who], self.lengths[who]
        self.points[clients, lengths], self.rewards[clients, lengths] = points, rewards
        lengths += 1

    def _sync(self, new: NewPoints, *, fired: int, index: int) -> None:
        self.epoch += 1
        longest, epoch = index + 1, self.epoch  # nobody acts twice in a round
        members = Members(
            installed=self.belief,
            draft=self.belief,
            points=self.points[:, :longest],
            rewards=self.rewards[:, :longest],
            lengths=self.lengths,
            covered=self.covered,
            fired=fired,
            random=lambda client: generator(self.seed, Role.LEVERAGE, client, epoch),
            known=self._known(new),
        )
        self.belief = self._post.synchronise(members, epoch=epoch)
        self.covered = self.lengths.copy()
        self.tails = Tails(self.belief, self.clients, expected=self.tails.rows.size)
        self.recorder.sync_done(index * self.clients + fired + 1, self.belief)

    def _known(self, new: NewPoints) -> Known | None:
        """The features that tails have of the points that a large exact belief is about to learn."""
        belief, rows = self.belief, self.tails.rows
        if not isinstance(belief, ExactBelief) or not isinstance(rows, ExactRows) or belief.factor.size <= SMALL_FACTOR:
            return None
        points, features = rows.known()
        return Known.of(np.concatenate([points, new.scores.points]), [*features, *new.scores.features])
