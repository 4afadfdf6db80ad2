"""The learner: a belief, a tail and a history, and the verbs choose, observe, learn, forget and adopt.

It knows no messages. What others know reaches it as a new belief, by `adopt`.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laconic.arrays import Floats, Ints
from laconic.beliefs import Belief, View, require_moderate, require_moderate_rewards
from laconic.checks import finite_array, require_finite_number, require_name, seen
from laconic.errors import InputError, UnknownDecision
from laconic.exploration import NOT_KNOWN, Chance, Choice, Draws, Informed, Shown, Told, choice_of
from laconic.growing import first_appearances
from laconic.protocol.history import History
from laconic.protocol.persistent import Group, Map
from laconic.protocol.plan import Plan
from laconic.protocol.records import Decided, Forgot, Learnt, Observed, Odds
from laconic.tail import Learning, Tail

#: What an application may call an arm.
ArmId = str | int
ArmIds = Sequence[ArmId] | NDArray[Any]


@dataclass(frozen=True, eq=False)
class Waiting:
    """What is kept of a decision while it waits for its reward."""

    point: Floats  # (1, d) the features of its arm
    choice: Choice
    arm_id: ArmId | None = None

    @classmethod
    def of(cls, point: Floats, odds: Odds | None) -> Waiting:
        """What records say of a decision; older ones have no odds."""
        if odds is None:
            return cls(point, UNKNOWN)
        chance = Chance(odds.propensity, odds.error)
        return cls(point, Choice(odds.arm, lambda _: chance), odds.arm_id)

    @property
    def odds(self) -> Odds | None:
        """What a store keeps of how it was made."""
        if self.choice is UNKNOWN:
            return None
        chance = self.choice.chance
        return Odds(int(self.choice.arm), propensity=float(chance.value), error=float(chance.error), arm_id=self.arm_id)


#: The choice of a decision of which only the point is known.
UNKNOWN = Choice(0, lambda _: NOT_KNOWN)


@dataclass(frozen=True, eq=False)
class Decision:
    """A chosen arm. Its reward is reported with the decision itself, or by its id.

    Attributes:
        id: Name of the decision, by which a reward may be reported after a restart.
        arm: Place of the chosen arm among those shown, from 0.
        mean: μ of the arm, in units of rewards.
        deviation: σ of the arm: how little is known of it, before α says what that is worth in rewards.
        width: ασ of the arm, in units of rewards.
        point: Features of the arm, (1, d).
        choice: What the exploration answered.
        arm_id: Name of the arm, where `choose` was given names; None elsewhere.
    """

    id: str
    arm: int
    mean: float
    deviation: float
    width: float
    point: Floats = field(repr=False)
    choice: Choice = field(default=UNKNOWN, repr=False)
    arm_id: ArmId | None = None

    @property
    def propensity(self) -> float:
        """The probability with which this arm was chosen; where it is an estimate, made when it is first asked for."""
        return self.choice.chance.value

    @property
    def propensity_error(self) -> float:
        """The standard error of that estimate; 0 where the probability is exact."""
        return self.choice.chance.error

    @property
    def waiting(self) -> Waiting:
        """What a client remembers of it."""
        return Waiting(self.point, self.choice, self.arm_id)

    @property
    def record(self) -> Decided:
        """What a store keeps of it, behind `choose`, so that a reward may come after a restart."""
        return Decided(id=self.id, point=self.point, odds=self.waiting.odds)


NOTHING_TOLD = Told()
NO_REWARDS = np.empty(0)


@dataclass(frozen=True, eq=False)
class Adoption:
    """A belief with a tail that has this client's observations ``covered`` … ``upto``, ready to be installed."""

    covered: int
    tail: Tail
    upto: int
    d_eff: float = 0.0
    told: Told = NOTHING_TOLD


#: So many decisions of an earlier start may be without a record.
MOST_LOST = 2**16


class Learner:
    """Chooses among arms, and learns from rewards and from beliefs."""

    def __init__(self, plan: Plan, *, seed: int, number: int, clients: int, start: int) -> None:
        self.plan, self.seed, self.start = plan, seed, start
        self.number, self.clients = number, clients
        self.history = History.empty(plan.belief.dim)
        self.covered = 0
        self.d_eff = 0.0  # the effective dimension of what the belief knows, where a digest said it
        self.told = NOTHING_TOLD
        self.sent = self.received = 0  # bytes of all messages, which the client counts
        self.tail = Tail(plan.belief)
        # Values, all of them: a copy of a learner is another learner, and learns without changing this one.
        self.pending: Map[str, Waiting] = Map.of({})  # decisions that wait for their reward
        #: how many decisions were made under each start, and which of those that are missing may still be reported
        self.starts: Map[int, int] = Map.of({start: 0})
        self.lost: Group[str] = Group.of()

    @property
    def belief(self) -> Belief:
        """The belief installed last."""
        return self.tail.belief

    @property
    def decisions(self) -> int:
        """How many decisions were made since this client was started."""
        return self.starts[self.start]

    @property
    def fires(self) -> bool:
        """True when the trigger would ask for an exchange."""
        return self.fires_after(len(self.history))

    def fires_after(self, own: int) -> bool:
        """True when it would after so many own observations; the tail may have some that the history has not yet."""
        share = self.d_eff / self.clients
        news = self.tail.fresh.beside(share=share, own=own, sent=self.sent, received=self.received)
        return bool(self.plan.trigger.fires(news))

    # -- choosing ------------------------------------------------------------------------------------------------

    def choose(self, arms: ArrayLike, *, ids: ArmIds | None = None, view: View | None = None) -> Decision:
        """The arm that the plan's exploration chooses under belief and tail, by draws of this decision's own.

        ``ids`` are names of the arms, of which the decision has the chosen one's. ``view`` is what the belief says of
        the arms where somebody has it at hand.
        """
        checked = self.checked("arms", arms)
        if len(checked) == 0:
            raise InputError("arms is empty: there is nothing to choose from")
        require_moderate(self.plan.belief, checked, NO_REWARDS)
        names = None if ids is None else checked_ids(ids, arms=len(checked))
        number = first_appearances(checked)
        is_new = number[-1] == len(number) - 1  # the last arm, and so all before it
        distinct = number if is_new else np.unique(number, return_index=True)[1]  # equal arms are scored once
        view = self.belief.view(checked[distinct]) if view is None else view.of(distinct)
        shown, deviation = self._shown(view, number)
        choice = choice_of(self.plan.exploration, shown)
        arm = int(choice.arm)
        decision = Decision(
            id=self._next_id(),
            arm=arm,
            mean=float(shown.mean[arm]),
            deviation=float(deviation[arm]),
            width=float(shown.width[arm]),
            point=checked[arm : arm + 1].copy(),
            choice=choice,
            arm_id=None if names is None else names[arm],
        )
        self.pending = self.pending.put(decision.id, decision.waiting)
        self.starts = self.starts.put(self.start, self.decisions + 1)
        return decision

    def _shown(self, view: View, number: Ints) -> tuple[Shown, Floats]:
        """The arms as an exploration sees them, and σ of each.

        ``view`` is of the distinct ones, and ``number`` says which each is.
        """
        tail, alpha, seed, client, starts = self.tail, self._alpha(), self.seed, self.number, self.starts
        mean, variance = tail.predict(view)
        deviation = np.sqrt(variance)
        width = alpha * deviation
        if not (np.isfinite(mean).all() and np.isfinite(width).all()):
            raise InputError("the model's predictions overflow; rescale features and rewards to moderate sizes")
        shown = Shown(
            mean=mean[number],
            width=width[number],
            same=number,
            # By the number of all decisions: those of a client that was restarted are drawn as if it had not been.
            draws=Draws(lambda: (seed, client, sum(starts.values()))),
            joint=lambda: alpha**2 * tail.covariance(view),
            tie=self.belief.precision.tie,
        )
        return shown, deviation[number]

    def _alpha(self) -> Any:
        confidence = self.plan.confidence
        if isinstance(confidence, Informed):
            return confidence.width(self.tail, told=self.told, clients=self.clients)
        return confidence.coefficient(lam=self.belief.lam, clients=self.clients, information=self.tail.information)

    def _next_id(self) -> str:
        return f"{self.start:x}.{self.decisions:x}"

    def checked(self, name: str, points: ArrayLike) -> Floats:
        """Points of the plan's dimension, or an error that says what was given."""
        array = finite_array(name, points, ndim=2)
        if array.shape[1] != self.belief.dim:
            raise InputError(f"{name} must have {self.belief.dim} features, got {array.shape[1]}")
        return array

    # -- learning ------------------------------------------------------------------------------------------------

    def observe(self, decision: Decision | str, reward: float) -> Observed:
        """Learn the reward of a decision, however late or out of order."""
        require_finite_number("reward", reward)
        waiting = self._waiting(decision)
        name = decision if isinstance(decision, str) else decision.id
        point, rewards = self.plan.rounded(waiting, np.array([reward], dtype=np.float64))
        if point is waiting and name in self.pending:  # it was looked at when it was chosen, and goes up as it is
            require_moderate_rewards(self.plan.belief, rewards)
        else:
            self._moderate(point, rewards)
        return self.observed(Observed(id=name, point=point, reward=float(rewards[0])))

    def observed(self, record: Observed) -> Observed:
        """Take an observation in, as it was recorded."""
        # A view of one point may differ in its last bits from its part of a view of many, so one point is looked at
        # here too: a state that is made again from its records is the same to the last bit.
        tail = copy(self.tail)
        tail.append(self.belief.view(record.point), record.reward)  # first, and to a copy, as it may refuse
        history = self.history.appended(record.point, np.array([record.reward]))
        self.settle(record.id)
        self.tail, self.history = tail, history
        return record

    def learn(self, points: ArrayLike, rewards: ArrayLike) -> Learnt:
        """Learn rewards of points that were observed elsewhere, all of them or none."""
        X, y = self.checked("points", points), finite_array("rewards", rewards, ndim=1)
        if len(X) != len(y):
            raise InputError(f"points and rewards must be as many, got {len(X)} and {len(y)}")
        X, y = self._moderate(*self.plan.rounded(X, y))
        return self.learnt(Learnt(points=X, rewards=y, first=len(self.history)))

    def _moderate(self, X: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Observations that can be exchanged and restored; one could learn from larger ones, but not alone for long."""
        require_moderate(self.plan.belief, X, y)
        return X, y

    def learnt(self, record: Learnt) -> Learnt:
        """Take observations in, as they were recorded."""
        self.tail = extended(self.tail, record.points, record.rewards, replayed=False)
        self.history = self.history.appended(record.points, record.rewards)
        return record

    def reported(self, points: Floats, rewards: Floats) -> None:
        """Note observations that followed decisions made elsewhere, and that the tail has already."""
        self.history = self.history.appended(points, rewards)
        self.starts = self.starts.put(self.start, self.decisions + len(rewards))

    def forget(self, decision: str) -> Forgot:
        """Give up waiting for the reward of a decision."""
        if decision not in self.pending:
            raise UnknownDecision(f"decision {seen(decision)} is not waiting for a reward")
        self.settle(decision)
        return Forgot(id=decision)

    def _waiting(self, decision: Decision | str) -> Floats:
        """The point of a decision whose reward has not come."""
        if not isinstance(decision, Decision | str):
            raise UnknownDecision(f"a reward is reported with a Decision or its id, not with {seen(decision)}")
        name = decision if isinstance(decision, str) else decision.id
        known = self.pending.get(name)
        point = None if known is None else known.point
        if isinstance(decision, Decision) and point is not None and not _is_same(point, decision.point):
            raise UnknownDecision(
                f"decision {name!r} is another client's, or of another start: its arm is not the one here"
            )
        if point is None and isinstance(decision, Decision) and self._may_be_lost(name):
            return self.checked("decision.point", decision.point)
        if point is None:
            raise UnknownDecision(
                f"decision {seen(name)} was not made here, its reward was reported before, it was given up after too "
                "long a wait, or its record was lost with the process that made it; report a reward once, and with the "
                "decision itself where that is at hand"
            )
        return point

    def _may_be_lost(self, name: str) -> bool:
        """True for a decision of an earlier start of which no record survived."""
        start, number = parsed_id(name)
        known = self.starts.get(start, 0)
        return name in self.lost or (start != self.start and known <= number < known + MOST_LOST)

    def may_wait(self, name: str) -> bool:
        """False for a decision of which nothing more is expected; one that is not known yet may come."""
        start, number = parsed_id(name)
        return name in self.pending or name in self.lost or number >= self.starts.get(start, 0)

    def settle(self, name: str) -> None:
        """Note that nothing more is expected of a decision."""
        self.noted(name)
        self.pending, self.lost = self.pending.without(name), self.lost.without(name)

    def noted(self, name: str) -> None:
        """Note that a decision was made; those before it of which nothing is known may still be reported."""
        start, number = parsed_id(name)
        first = self.starts.get(start, 0)
        if number >= first + MOST_LOST:
            raise UnknownDecision(f"no decision {name!r} was made: {first} of that start are known")
        if number >= first:
            for missing in range(first, number):
                self.lost = self.lost.put(f"{start:x}.{missing:x}")
            self.starts = self.starts.put(start, number + 1)

    def recall(self, decided: Decided) -> None:
        """A decision that was made before a restart waits for its reward, if that did not come before its record."""
        start, number = parsed_id(decided.id)
        if number < self.starts.get(start, 0) and decided.id not in self.lost and decided.id not in self.pending:
            return
        self.noted(decided.id)
        self.lost = self.lost.without(decided.id)
        self.pending = self.pending.put(decided.id, Waiting.of(self.checked("point", decided.point), decided.odds))

    def restarted(self, start: int) -> None:
        """Ids of decisions carry another random part from here on."""
        self.start = start
        self.starts = self.starts.put(start, self.starts.get(start, 0))

    # -- adopting ------------------------------------------------------------------------------------------------

    def adopt(self, adoption: Adoption) -> None:
        """Make a belief the installed one; own points that it lacks are on its tail, each exactly once."""
        rest = slice(adoption.upto, len(self.history))  # observed while the adoption was prepared
        self.tail = extended(adoption.tail, self.history.points[rest], self.history.rewards[rest], replayed=True)
        self.covered, self.d_eff, self.told = adoption.covered, adoption.d_eff, adoption.told


def prepared(
    belief: Belief,
    covered: int,
    history: History,
    *,
    learning: Learning | None = None,
    d_eff: float = 0.0,
    told: Told = NOTHING_TOLD,
) -> Adoption:
    """What it takes to adopt a belief that has the first ``covered`` own observations: pure, and maybe slow.

    ``learning`` says how the others are replayed.
    """
    rest = slice(covered, len(history))
    tail = (learning or Learning()).replayed(belief, history.points[rest], history.rewards[rest])
    return Adoption(covered=covered, tail=tail, upto=len(history), d_eff=d_eff, told=told)


def extended(tail: Tail, X: Floats, y: Floats, *, replayed: bool) -> Tail:
    """A tail with more observations; the one given stays as it is."""
    longer = copy(tail)
    if len(X):
        longer.append_points(X, y, view=lambda belief, some: belief.view(some), replayed=replayed)
    return longer


def checked_ids(ids: ArmIds, *, arms: int) -> list[ArmId]:
    """Names of so many arms, each a text or a whole number that no other arm has."""
    if isinstance(ids, str | bytes) or not isinstance(ids, Sequence | np.ndarray):
        raise InputError(f"ids must be a list of texts or whole numbers, not {seen(ids)}; give one for each arm")
    names = [each.item() if isinstance(each, np.generic) else each for each in ids]
    if len(names) != arms:
        raise InputError(f"ids must be as many as arms, got {len(names)} and {arms}; give one for each arm")
    for name in names:
        if isinstance(name, str):
            require_name("ids", name)
        elif isinstance(name, bool) or not isinstance(name, int):
            raise InputError(f"ids must be texts or whole numbers, got {seen(name)}; try ids=[str(each) for each in …]")
        elif not -(2**53) < name < 2**53:
            raise InputError(f"ids that are numbers must be below 2**53 in size, got {name}; try texts")
    if len(set(names)) < arms:
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"ids must differ, and {twice!r} names two arms; give each arm a name of its own")
    return names


def _is_same(point: Floats, other: Floats) -> bool:
    return point is other or np.array_equal(point, other)  # mostly the first, and then it is quick


def parsed_id(name: str) -> tuple[int, int]:
    """The start and the number in an id."""
    start, dot, number = name.partition(".")
    try:
        if dot:
            return int(start, 16), int(number, 16)
    except ValueError:
        pass
    raise UnknownDecision(f"{seen(name)} is no id of a decision")
