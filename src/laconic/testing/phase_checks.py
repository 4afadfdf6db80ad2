"""What a phase must keep to: each of its functions, one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from math import isclose
from typing import Any

import numpy as np

from laconic.beliefs import Belief
from laconic.errors import RemoteProtocolError
from laconic.exploration import Fixed
from laconic.problems import Catalogue
from laconic.protocol.codec import Codec
from laconic.protocol.messages import BLANK, Part, Payload, payload_of
from laconic.protocol.packing import CODES
from laconic.protocol.phases import Member, Phase
from laconic.protocol.plan import Plan
from laconic.randomness import Role, generator
from laconic.runtimes import RUNTIMES, loopback
from laconic.testing.belief_checks import check_belief
from laconic.testing.mutants import mutants
from laconic.testing.runs import require_same_run
from laconic.testing.served import SCRIPT, check_served, observations
from laconic.testing.wording import CLOSE, Subject, close, copied, same, same_belief, same_payload, shown
from laconic.triggers import Every

ADVICE = "lists must be put in client order by finish()"
#: No client asks for a sync by itself here.
SILENT = Every(10**9)


def check_phase(phase: Phase, *, belief: Belief, after: Sequence[Phase] = ()) -> None:
    """Check a phase.

    Each of its functions must be pure, what it sends must survive the codec, what goes down must be completed to the
    merged result, malformed parts must be refused, and order of arrival may change no more than the last bits of a sum.

    Args:
        phase: A value of a class that derives from `Phase`.
        belief: The belief of a plan before any data, from which the sync starts.
        after: Phases that come before it in the sync, in order.

    Raises:
        AssertionError: It breaks the contract; the message says which function does.
    """
    subject = Subject.of("phase", phase)
    subject.claim(isinstance(phase, Phase), "it must derive from laconic.Phase")
    subject.claim(isinstance(phase.name, str) and phase.name, "it needs a name, under which the ledger counts it")
    subject.claim(isinstance(phase.replaces, bool), f"replaces must be True or False, not {phase.replaces!r}")
    members = _members(belief)
    for earlier in after:
        members = _advanced(subject.at(f"after {shown(earlier)}"), earlier, members)
    _check_alone(subject, phase, members)
    plan = Plan(belief=belief, trigger=SILENT, phases=(*after, phase), confidence=Fixed(1.0), wire=phase.rounding)
    check_served(subject, plan)
    _check_together(subject.at("for all clients in one process"), plan)


# -- the phase alone ---------------------------------------------------------------------------------------------------


def _members(belief: Belief) -> dict[int, Member]:
    members = {}
    for client, (count, *_) in SCRIPT.items():
        X, y = observations(client, dim=belief.dim)
        members[client] = Member(
            installed=belief,
            draft=belief,
            points=X[:count],
            rewards=y[:count],
            covered=0,
            fired=client == 0,
            random=partial(generator, 0, Role.LEVERAGE, client, 1),
        )
    return members


def _advanced(subject: Subject, phase: Phase, members: Mapping[int, Member]) -> dict[int, Member]:
    """The members with the draft that an earlier phase leaves behind."""
    draft = members[0].draft
    with subject.calling("an earlier phase"):
        merged = _merged(phase, draft, {client: phase.contribute(member) for client, member in members.items()})
        draft = phase.absorb(draft, phase.whole(merged))
    return {client: replace(member, draft=draft) for client, member in members.items()}


def _merged(phase: Phase, draft: Belief, parts: Mapping[int, Payload]) -> Any:
    """The parts merged in the order in which they come."""
    state = phase.empty()
    for client in parts:
        state = phase.add(state, client, parts[client])
    return phase.finish(draft, state)


def _check_alone(subject: Subject, phase: Phase, members: Mapping[int, Member]) -> None:
    draft = members[0].draft
    parts = {client: _check_part(subject, phase, member, client=client) for client, member in members.items()}
    whole = _check_fold(subject.at("merging"), phase, draft, parts)
    _check_addresses(subject, phase, draft, parts)
    absorbed = _check_absorb(subject.at("absorb"), phase, draft, whole)
    check_belief(absorbed, template=members[0].installed)
    for client in parts:
        _check_malformed_parts(subject, phase, draft, parts, client=client)
        _check_malformed_results(subject, phase, draft, parts, client=client)


def _check_part(subject: Subject, phase: Phase, member: Member, *, client: int) -> Payload:
    subject = subject.at(f"contribute of client {client} with {len(member.points)} observations")
    X, y = member.points.copy(), member.rewards.copy()
    with subject.calling("contribute(member)"):
        part = copied(phase.contribute(member))
        again = phase.contribute(member)
    subject.claim(same_payload(part, again), "the same member contributes something else the second time")
    subject.claim(same(member.points, X) and same(member.rewards, y), "it changes the client's history")
    _check_travels(subject, phase, member.draft, part)
    with subject.calling("check(draft, part) on an honest part"):
        phase.check(member.draft, part)
    return part


def _check_travels(subject: Subject, phase: Phase, draft: Belief, payload: Payload) -> None:
    for name, array in [*payload.values.items(), *payload.records.items()]:
        fits = isinstance(array, np.ndarray) and array.dtype in CODES
        subject.claim(fits, f"{name!r} is {shown(array)}, but arrays of {', '.join(map(str, CODES))} are what travels")
    message = Part(epoch=BLANK, phase=0, upto=0, payload=payload)
    codec = Codec(Plan(belief=draft, trigger=SILENT, phases=(phase,), confidence=Fixed(1.0), wire=phase.rounding))
    with subject.calling("encoding and decoding what it sends"):
        received = payload_of(codec.decode(codec.encode(message)))
    subject.claim(same_payload(received, payload), "what it sends changes on the way through the codec")


def _check_fold(subject: Subject, phase: Phase, draft: Belief, parts: Mapping[int, Payload]) -> Payload:
    given = {client: copied(part) for client, part in parts.items()}
    with subject.calling("empty(), add(), finish() or whole()"):
        whole = copied(phase.whole(_merged(phase, draft, given)))
        again = phase.whole(_merged(phase, draft, given))
    kept = all(same_payload(given[client], parts[client]) for client in parts)
    subject.claim(kept, "it changes the parts that it is given")
    subject.claim(same_payload(whole, again), "the same parts merge into something else the second time")
    for order in permutations(parts):
        with subject.calling(f"add() in the order of clients {order}"):
            other = phase.whole(_merged(phase, draft, {client: parts[client] for client in order}))
        subject.claim(
            _alike(other, whole), f"parts that come in another order merge into another result: {order}, {ADVICE}"
        )
    return whole


def _alike(one: Payload, other: Payload) -> bool:
    """Payloads that are equal but for rounding."""
    names = one.values.keys() == other.values.keys() and one.control.keys() == other.control.keys()
    return (
        names
        and all(close(one.values[name], other.values[name]) for name in one.values)
        and all(isclose(one.control[name], other.control[name], rel_tol=CLOSE) for name in one.control)
    )


def _check_addresses(subject: Subject, phase: Phase, draft: Belief, parts: Mapping[int, Payload]) -> None:
    merged = _merged(phase, draft, parts)
    whole = copied(phase.whole(merged))
    with subject.calling("absorb(draft, merged)"):
        expected = phase.absorb(draft, whole)
    for client, own in parts.items():
        here = subject.at(f"what goes down to client {client}")
        with here.calling("address(merged, client)"):
            received = phase.address(merged, client)
        _check_travels(here, phase, draft, received)
        with here.calling("check, complete and absorb"):
            phase.check(draft, received)
            completed = phase.complete(received, own)
            absorbed = phase.absorb(draft, completed)
        names = completed.values.keys() == whole.values.keys()
        equal = names and all(same(completed.values[name], whole.values[name]) for name in whole.values)
        here.claim(equal, "complete(address(merged, client), own) is not the merged result: they must be inverse")
        here.claim(same_belief(absorbed, expected), "this client would end up with another belief than the server")


def _check_absorb(subject: Subject, phase: Phase, draft: Belief, whole: Payload) -> Belief:
    before = {name: array.copy() for name, array in draft.arrays().items()}
    given = copied(whole)
    with subject.calling("absorb(draft, merged)"):
        first, second = phase.absorb(draft, given), phase.absorb(draft, given)
    subject.claim(same_payload(given, whole), "it changes the merged result")
    after = draft.arrays()
    subject.claim(all(same(after[name], before[name]) for name in before), "it changes the draft, which is shared")
    subject.claim(same_belief(first, second), "it is not pure: the second time another belief comes out")
    subject.claim(first.dim == draft.dim and first.lam == draft.lam, "it must keep the draft's dim and lam")
    return first


# -- all clients in one process ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fixed:
    """An algorithm with one plan."""

    only: Plan

    def plan(self, dim: int, /) -> Plan:
        return self.only


def _check_together(subject: Subject, plan: Plan) -> None:
    """A process that holds all clients may take a phase in one pass, which must come to the same."""
    instance = Catalogue(dim=plan.belief.dim, items=5, arms=3).instance(seed=0, clients=3, rounds=6)
    algorithm = _Fixed(replace(plan, trigger=Every(2)))
    with subject.calling("playing in loopback"):
        reference = loopback.play(algorithm, instance, clients=3, rounds=6, seed=0)
    for name, play in RUNTIMES.items():
        with subject.calling(f"playing in {name}"):
            run = play(algorithm, instance, clients=3, rounds=6, seed=0)
        require_same_run(subject, run, reference, f"in {name}")


# -- malformed messages ------------------------------------------------------------------------------------------------


def _check_malformed_parts(
    subject: Subject, phase: Phase, draft: Belief, parts: Mapping[int, Payload], *, client: int
) -> None:
    for how, mutant in mutants(parts[client]):
        here = subject.at(f"given a part of client {client} {how}")
        with here.calling("check must refuse it with RemoteProtocolError or take it, but"):
            try:
                phase.check(draft, mutant)
            except RemoteProtocolError:
                continue
        with here.calling("check accepts it, but merging, addressing or absorbing it"):
            merged = _merged(phase, draft, {**parts, client: mutant})
            phase.absorb(draft, phase.whole(merged))
            for each in parts:
                phase.address(merged, each)


def _check_malformed_results(
    subject: Subject, phase: Phase, draft: Belief, parts: Mapping[int, Payload], *, client: int
) -> None:
    for how, mutant in mutants(phase.address(_merged(phase, draft, parts), client)):
        here = subject.at(f"sent a result for client {client} {how}")
        with here.calling("a client must refuse it with RemoteProtocolError or take it, but check, complete or absorb"):
            try:
                phase.check(draft, mutant)
                phase.absorb(draft, phase.complete(mutant, parts[client]))
            except RemoteProtocolError:
                continue
