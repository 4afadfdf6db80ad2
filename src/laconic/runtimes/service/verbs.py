"""Verbs: what an application may ask of an agent over HTTP, with which body, and what it is answered."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, unique
from threading import Event
from typing import Any

import msgspec

from laconic.checks import finite_array
from laconic.errors import InputError, UnknownDecision
from laconic.protocol.learner import ArmId, Decision
from laconic.runtimes.service.agent import Agent, Status

MOST_TIMEOUT = 300.0


@dataclass(frozen=True)
class Waiting:
    """How many requests of one kind may wait at a time, with so many threads for them; what they wait for."""

    most: int
    threads: int
    what: str


@unique
class Waits(Enum):
    """What a request may wait for; each kind has its own places and threads, so that none waits behind another kind."""

    FOR_NOTHING = Waiting(most=64, threads=4, what="nothing")
    FOR_DISK = Waiting(most=64, threads=8, what="the disk")
    #: A thread for each: one that waited for another's thread would be answered after its own time was over.
    FOR_COORDINATOR = Waiting(most=16, threads=16, what="the coordinator")


class ChooseBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arms to choose from, a list of features each, and names for them."""

    arms: list[list[float]]
    ids: list[str | int] | None = None


class ObserveBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reward of a decision, by the id that choose answered with; with its point also where its record was lost."""

    id: str
    reward: float
    point: list[float] | None = None

    @property
    def decision(self) -> Decision | str:
        """What is reported on."""
        if self.point is None:
            return self.id
        return Decision(
            self.id, arm=0, mean=0.0, deviation=0.0, width=0.0, point=finite_array("point", [self.point], ndim=2)
        )


class LearnBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Points that were observed elsewhere, a list of features each, with a reward each."""

    points: list[list[float]]
    rewards: list[float]


class FlushBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many seconds to wait for the coordinator."""

    timeout: float = 30.0


class NoBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing: the request says it all."""


class Chosen(msgspec.Struct, frozen=True):
    """A decision: the place of the arm among those given, its features, its name if it has one, μ, σ and ασ."""

    id: str
    arm: int
    point: list[float]
    mean: float
    deviation: float
    width: float
    propensity: float | None  # null where it is not known
    propensity_error: float | None
    arm_id: str | int | None = None

    @classmethod
    def of(cls, decision: Decision) -> Chosen:
        """What an application is told of a decision."""
        return cls(
            id=decision.id,
            arm=decision.arm,
            point=decision.point[0].tolist(),
            mean=decision.mean,
            deviation=decision.deviation,
            width=decision.width,
            propensity=_known(decision.propensity),
            propensity_error=_known(decision.propensity_error),
            arm_id=decision.arm_id,
        )


class Taken(msgspec.Struct, frozen=True):
    """How many observations this agent has; what was sent is among them, and on disk."""

    observations: int


class Mistake(msgspec.Struct, frozen=True):
    """What was wrong, and what to try."""

    error: str


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


@dataclass(frozen=True)
class Verb:
    """A request that there is: its method, what its body must be, what is answered, and by what."""

    method: str
    body: type[Any] | None
    answer: type[Any]
    about: str
    call: Callable[[Agent, Any, Event], Any]  # the event tells that nobody waits for the answer any more
    waits: Waits

    @property
    def spares_body(self) -> bool:
        """Whether its body may be left out, as it has only defaults."""
        return self.body is not None and not any(each.required for each in msgspec.structs.fields(self.body))


def _choose(agent: Agent, body: ChooseBody, _: Event) -> Chosen:
    ids: list[ArmId] | None = body.ids
    return Chosen.of(agent.choose(body.arms, ids=ids))


def _observe(agent: Agent, body: ObserveBody, _: Event) -> Taken:
    try:
        agent.observe(body.decision, body.reward)
    except UnknownDecision as error:
        advice = "; over HTTP that is its id with the `point` that /choose answered" if body.point is None else ""
        raise UnknownDecision(f"{error}{advice}") from None
    return _taken(agent)


def _learn(agent: Agent, body: LearnBody, _: Event) -> Taken:
    agent.learn(body.points, body.rewards)
    return _taken(agent)


def _flush(agent: Agent, body: FlushBody, gone: Event) -> Taken:
    if not 0 < body.timeout <= MOST_TIMEOUT:
        raise InputError(f"timeout must be above 0 and at most {MOST_TIMEOUT:g} seconds, not {body.timeout:g}")
    agent.flush_while(lambda: not gone.is_set(), timeout=body.timeout)
    return _taken(agent)


def _taken(agent: Agent) -> Taken:
    return Taken(agent.status().observations)


def _status(agent: Agent, _: None, __: Event) -> Status:
    return agent.status()


def _reconnect(agent: Agent, _: NoBody, __: Event) -> Status:
    agent.reconnect()
    return agent.status()


def _leave(agent: Agent, _: NoBody, __: Event) -> Status:
    agent.leave()
    return agent.status()


CHOOSE = "Choose an arm; waits for no network and no disk."
OBSERVE = "Report a reward, however late; it is on disk then."
LEARN = "Learn rewards of points observed elsewhere, all or none."
FLUSH = "Share all observations now, and wait for the answer."
RECONNECT = "Link again now, also after leave and where another process took this agent's place; waits for no link."
LEAVE = "Leave the federation, until the next start or reconnect; choosing and learning here go on."
VERBS: Mapping[str, Verb] = {
    "/choose": Verb("POST", ChooseBody, Chosen, CHOOSE, _choose, Waits.FOR_NOTHING),
    "/observe": Verb("POST", ObserveBody, Taken, OBSERVE, _observe, Waits.FOR_DISK),
    "/learn": Verb("POST", LearnBody, Taken, LEARN, _learn, Waits.FOR_DISK),
    "/flush": Verb("POST", FlushBody, Taken, FLUSH, _flush, Waits.FOR_COORDINATOR),
    "/reconnect": Verb("POST", NoBody, Status, RECONNECT, _reconnect, Waits.FOR_NOTHING),
    "/leave": Verb("POST", NoBody, Status, LEAVE, _leave, Waits.FOR_DISK),
    "/status": Verb("GET", None, Status, "How the agent stands.", _status, Waits.FOR_NOTHING),
}
