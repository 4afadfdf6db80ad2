"""The work of a client: pure, and slow enough that it runs beside `choose`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from laconic.beliefs import Belief
from laconic.errors import InputError, KernelError, LocalProtocolError, RemoteProtocolError
from laconic.protocol.digests import Built, Held, Incoming
from laconic.protocol.history import History
from laconic.protocol.learner import Adoption, prepared
from laconic.protocol.messages import Ask, Digested, Down, Install, Label, Merged, Newer, Payload
from laconic.protocol.outcome import Share, learning_of
from laconic.protocol.parcels import Libraries
from laconic.protocol.phases import Member
from laconic.protocol.plan import Plan
from laconic.protocol.session import Adopted, OwnSync
from laconic.randomness import Role, generator


@dataclass(frozen=True, eq=False)
class Bench:
    """All that work needs of a client, as it was when the work began."""

    plan: Plan
    seed: int
    number: int
    belief: Belief
    held: Held | None  # the version that is held, where there is a digest
    libraries: Libraries
    term: int
    covered: int
    history: History
    sync: OwnSync | None


@dataclass(frozen=True, eq=False)
class Adopting:
    """A belief that is ready to be installed."""

    adoption: Adoption
    adopted: Adopted
    held: Held | None = None


def finished(bench: Bench, message: Down, share: Share) -> OwnSync | Adopting:
    """What the work that a message asks for comes to."""
    if isinstance(message, Newer):
        return _caught_up(bench, message, share)
    if isinstance(message, Digested):
        return _digested(bench, message, share)
    if bench.sync is None:
        raise LocalProtocolError(f"{type(message).__name__} without a sync")
    if isinstance(message, Ask):
        return _contributed(bench, bench.sync)
    if isinstance(message, Merged):
        draft = absorbed(bench, bench.sync, message.payload, share)
        return _contributed(bench, replace(bench.sync, draft=draft, phase=bench.sync.phase + 1))
    assert isinstance(message, Install)
    new = absorbed(bench, bench.sync, message.payload, share)
    adopted = Adopted(held=message.epoch, covered=message.covered, clients=message.clients)
    return Adopting(prepared(new, message.covered, bench.history), adopted)


def _contributed(bench: Bench, sync: OwnSync) -> OwnSync:
    """The sync with this client's part of its phase."""
    history = bench.history
    member = Member(
        installed=bench.belief,
        draft=bench.belief if sync.draft is None else sync.draft,
        points=history.points[: sync.upto],
        rewards=history.rewards[: sync.upto],
        covered=bench.covered,
        fired=sync.fired,
        random=partial(generator, bench.seed, Role.LEVERAGE, bench.number, sync.epoch.number),
    )
    return replace(sync, own=bench.plan.phases[sync.phase].contribute(member))


def absorbed(bench: Bench, sync: OwnSync, received: Payload, share: Share) -> Belief:
    """The draft after a phase; after the last one it must be fit to predict with."""
    phase, own = bench.plan.phases[sync.phase], sync.own
    draft = bench.belief if sync.draft is None else sync.draft
    assert own is not None
    is_last = sync.phase + 1 == len(bench.plan.phases)

    def build(_: object) -> Belief:
        new = phase.absorb(draft, phase.complete(received, own))
        return sound(new) if is_last else new

    belief: Belief = share(f"phase {sync.phase}", sync.epoch, build)
    return belief


def _caught_up(bench: Bench, newer: Newer, share: Share) -> Adopting:
    """The belief of a later epoch, whole or from what came after the one held."""
    if newer.covered > len(bench.history):
        raise RemoteProtocolError(f"a belief with {newer.covered} observations of this client's {len(bench.history)}")

    def build(_: object) -> Belief:
        if newer.whole:
            return whole(bench.plan.belief, newer.payload)
        return sound(bench.plan.phases[-1].caught_up(bench.belief, newer.payload))

    belief = share("newer", newer.epoch, build)
    adopted = Adopted(held=newer.epoch, covered=newer.covered, clients=newer.clients)
    return Adopting(prepared(belief, newer.covered, bench.history), adopted)


def _digested(bench: Bench, message: Digested, share: Share) -> Adopting:
    """The belief of a later version of the digest."""
    digest, held, history = bench.plan.digest, bench.held, bench.history
    if digest is None or held is None:
        raise RemoteProtocolError("a digest, but this plan has none")
    if message.covered > len(history):
        raise RemoteProtocolError(f"a digest with {message.covered} observations of this client's {len(history)}")
    if message.covered > message.length:
        raise RemoteProtocolError(f"a digest of {message.length} observations with {message.covered} of this client's")
    label = Label(bench.term, message.version)
    covered = 0 if message.whole or held.atoms is not None else bench.covered

    def shared(topic: str, build: Callable[[Built | None], Built]) -> Built:
        def continued(newest: tuple[Label, Built] | None) -> Built:
            return build(newest[1] if newest is not None and newest[0].term == bench.term else None)

        built: Built = share(f"version of {topic}", label, continued)
        return built

    incoming = Incoming(
        message=message,
        held=Held.blank(bench.plan.belief) if message.whole else held,
        template=bench.plan.belief,
        own=(history.points[covered : message.covered], history.rewards[covered : message.covered]),
        covered=history.points[: message.covered],
        libraries=bench.libraries,
        wire=bench.plan.wire,
        share=shared,
        learning=learning_of(share),
    )
    new = replace(digest.absorb(incoming), downloads=held.downloads + 1)
    belief = sound(new.built.belief)
    adoption = prepared(belief, message.covered, history, learning=incoming.learning, d_eff=new.d_eff, told=new.told)
    adopted = Adopted(held=label, covered=message.covered, clients=message.clients)
    return Adopting(adoption, adopted, held=new)


def whole(template: Belief, payload: Payload) -> Belief:
    """A whole belief that was sent, with the kernel and λ of the plan's."""
    try:
        return sound(template.from_arrays({**payload.values, **payload.records}))
    except InputError as error:
        raise RemoteProtocolError(f"for another plan, or damaged: {error}") from None


def sound(belief: Belief) -> Belief:
    """The belief, which must be fit to predict with: it is about to be installed."""
    try:
        if belief.is_sound():
            return belief
        _ = belief.information  # which may say why
    except KernelError as error:
        raise RemoteProtocolError(f"the new belief cannot be factored: {error}") from None
    raise RemoteProtocolError("the new belief overflows; rescale features and rewards to moderate sizes")
