"""What a digest must keep to: each of its functions, for clients that are served at various times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from laconic.arrays import Ints
from laconic.beliefs import Belief
from laconic.errors import LaconicError, RemoteProtocolError
from laconic.exploration import Fixed
from laconic.protocol.codec import Codec
from laconic.protocol.digests import Addressed, Built, Digest, Held, Incoming, Reader
from laconic.protocol.history import History
from laconic.protocol.messages import Digested, Payload, payload_of
from laconic.protocol.parcels import Libraries
from laconic.protocol.plan import Plan
from laconic.protocol.wire import FloatWire, Wire
from laconic.testing.mutants import mutants
from laconic.testing.served import alike
from laconic.testing.wording import Subject, points, rewards, same, same_belief, same_payload
from laconic.triggers import Every

#: How long the log is when a new edition is built; points return often, so that a few can stand for all.
LENGTHS = (3, 8, 24, 120, 200)
#: After which editions a client is served: after each, after some, and late.
SERVED = ((0, 1, 2, 3, 4), (1, 3, 4), (4,))
CLIENTS = 3


def check_digest(digest: Digest, *, belief: Belief, wire: Wire | None = None) -> None:
    """Check a digest.

    Each of its functions must be pure; what it sends must survive the codec and take a client from whatever it holds to
    what the server says it holds then; malformed payloads must be refused; editions must have growing numbers, and be
    due when there is something that they lack and never otherwise.

    Args:
        digest: A value of a class that derives from `Digest`.
        belief: The belief of a plan before any data.
        wire: How points and rewards travel; None: as float64, `FloatWire()`.

    Raises:
        AssertionError: It breaks the contract; the message says which function does.
    """
    subject = Subject.of("digest", digest)
    subject.claim(isinstance(digest, Digest), "it must derive from laconic.Digest")
    subject.claim(isinstance(digest.name, str) and digest.name, "it needs a name, under which the ledger counts it")
    scene = _Scene.of(digest, belief, FloatWire() if wire is None else wire)
    editions = _check_editions(subject, scene)
    holders: dict[tuple[int, int], Held] = {}
    for number in range(CLIENTS):
        for served in SERVED:
            here = subject.at(f"client {number}, served after editions {served}")
            for version, held in _check_client(here, scene, editions, number=number, served=served):
                other = holders.setdefault(version, held)
                agree = alike(other.built.belief, held.built.belief)  # but for rounding, as they took other ways
                here.claim(agree, f"clients that hold version {version[0]} with one mark have different beliefs")


@dataclass(frozen=True, eq=False)
class _Scene:
    """A log of points, some of which return, and whose they are."""

    digest: Digest
    belief: Belief
    wire: Wire
    log: History
    owners: Ints
    codec: Codec

    @classmethod
    def of(cls, digest: Digest, belief: Belief, wire: Wire) -> _Scene:
        count, dim = LENGTHS[-1], belief.dim
        X = points(count, dim=dim, stream=80)
        again = np.arange(8, count)
        X[8:] = np.where(again[:, None] % 40 > 0, X[again % 5], X[8:])
        X, y = wire.rounded(X, rewards(count, stream=80), kernel=belief.metric(), lam=belief.lam)
        plan = Plan(belief=belief, trigger=Every(10**9), digest=digest, confidence=Fixed(1.0), wire=wire)
        owners = np.arange(count) * 7 // 2 % CLIENTS
        return cls(digest, belief, wire, History.empty(dim).appended(X, y), owners, Codec(plan))

    def reader(self, number: int, *, base: Any, libraries: Libraries, edition: int) -> Reader:
        own = np.flatnonzero(self.owners[: LENGTHS[edition]] == number)
        if self.wire.by_reference:
            libraries = libraries.sent_up(self.log.points[own])
        return Reader(base=base, own=own, libraries=libraries, wire=self.wire)


# -- the server --------------------------------------------------------------------------------------------------------


def _check_editions(subject: Subject, scene: _Scene) -> list[Any]:
    digest = scene.digest
    with subject.calling("first(belief), blank(), number(first) and length(blank)"):
        edition, blank = digest.first(scene.belief), digest.blank()
        number, length = digest.number(edition), digest.length(blank)
    subject.claim(number == 0, f"the edition of an empty log has number {number}, not 0")
    subject.claim(length == 0, f"a client that holds nothing has {length} points of the log")
    with subject.calling("due() on an empty log"):
        due = digest.due(scene.log.upto(0), edition, base=blank)
    subject.claim(not due, "an edition is due though the log is empty, so that one would follow another without end")
    editions = []
    for upto in LENGTHS:
        edition = _check_build(subject.at(f"of {upto} observations"), scene, scene.log.upto(upto), edition)
        editions.append(edition)
    return editions


def _check_build(subject: Subject, scene: _Scene, log: History, previous: Any) -> Any:
    digest, blank = scene.digest, scene.digest.blank()
    with subject.calling("due(log, edition, base=blank) and build(log, previous)"):
        due = digest.due(log, previous, base=blank)
        edition, again = digest.build(log, previous), digest.build(log, previous)
        number, before = digest.number(edition), digest.number(previous)
        still = digest.due(log, edition, base=blank)
    if before == 0:
        subject.claim(
            due, "no edition is due though the log has points and none was built: nobody would learn anything"
        )
    subject.claim(number > before, f"the number of an edition must grow, but {number} follows {before}")
    subject.claim(not still, "an edition is due right after it was built, so that one would follow another without end")
    subject.claim(_alike(scene, edition, again, log), "build is not pure: the second time another edition comes out")
    return edition


def _alike(scene: _Scene, one: Any, other: Any, log: History) -> bool:
    """Editions from which a newcomer is sent the same."""
    reader = Reader(scene.digest.blank(), np.empty(0, np.int64), Libraries.empty(scene.belief.dim), scene.wire)
    a, b = (scene.digest.address(log, each, reader) for each in (one, other))
    return same_payload(a.payload, b.payload) and a.mark == b.mark


# -- a client ----------------------------------------------------------------------------------------------------------


def _check_client(
    subject: Subject, scene: _Scene, editions: list[Any], *, number: int, served: tuple[int, ...]
) -> Iterator[tuple[tuple[int, int], Held]]:
    """Serve a client at some times; what it holds then, by version and mark."""
    digest, held = scene.digest, Held.blank(scene.belief)
    base, libraries = digest.blank(), Libraries.empty(scene.belief.dim)
    for which in served:
        here = subject.at(f"{subject.place}, now after edition {which}")
        log, edition = scene.log.upto(LENGTHS[which]), editions[which]
        reader = scene.reader(number, base=base, libraries=libraries, edition=which)
        sent = _check_address(here, scene, log, edition, reader)
        incoming = _incoming(scene, log, sent, reader, held, number=digest.number(edition))
        if number == 0:  # what is malformed for one is so for all
            _check_malformed(here, scene, incoming)
        held = _check_absorb(here, scene, incoming, sent)
        base, libraries = sent.base, sent.libraries
        _check_known(here, scene, log, sent, version=held.number)
        if which + 1 < len(LENGTHS):
            due = digest.due(scene.log.upto(LENGTHS[which + 1]), edition, base=base)
            here.claim(due, "a client that holds the newest edition asks, and would be sent what it has")
        yield (held.number, sent.mark), held


def _check_address(subject: Subject, scene: _Scene, log: History, edition: Any, reader: Reader) -> Addressed:
    digest = scene.digest
    with subject.calling("address(log, edition, reader)"):
        sent, again = digest.address(log, edition, reader), digest.address(log, edition, reader)
        was, now = digest.length(reader.base), digest.length(sent.base)
    subject.claim(same_payload(sent.payload, again.payload), "address sends something else the second time")
    subject.claim(was <= now <= len(log), f"it takes a client from {was} points of {len(log)} in the log to {now}")
    return sent


def _incoming(scene: _Scene, log: History, sent: Addressed, reader: Reader, held: Held, *, number: int) -> Incoming:
    """What comes down, in the client's hands."""
    length, was = scene.digest.length(sent.base), scene.digest.length(reader.base)
    covered = reader.own[reader.own < length]
    first = 0 if held.atoms is not None else int((reader.own < was).sum())
    message = Digested(
        base=held.number,
        version=number,
        covered=len(covered),
        clients=CLIENTS,
        length=length,
        raw=sent.raw,
        payload=sent.payload,
        whole=was == 0,
    )
    own = log.points[covered[first:]], log.rewards[covered[first:]]
    return Incoming(
        message=message,
        held=held,
        template=scene.belief,
        own=own,
        covered=log.points[covered],
        libraries=reader.libraries,
        wire=reader.wire,
        share=_alone,
    )


def _alone(topic: str, build: Callable[[Built | None], Built]) -> Built:
    return build(None)


def _check_absorb(subject: Subject, scene: _Scene, incoming: Incoming, sent: Addressed) -> Held:
    message = incoming.message
    with subject.calling("encoding and decoding what it sends"):
        received: Any = scene.codec.decode(scene.codec.encode(message))
    arrived = same_payload(payload_of(received), message.payload)
    subject.claim(arrived, "what it sends changes on the way through the codec")
    with subject.calling("absorb(incoming)"):
        held = scene.digest.absorb(replace(incoming, message=received))
        again = scene.digest.absorb(incoming)
        fit = held.built.belief.is_sound()
    new, length = held.built, scene.digest.length(sent.base)
    subject.claim(same_payload(payload_of(received), message.payload), "absorb changes what came down")
    subject.claim(same_belief(new.belief, again.built.belief), "absorb is not pure: another belief comes out")
    subject.claim(new.belief.dim == scene.belief.dim and new.belief.lam == scene.belief.lam, "it must keep dim and lam")
    subject.claim(fit, "the belief is not fit to predict with")
    subject.claim(held.number == message.version, f"the client holds {held.number}, not version {message.version}")
    subject.claim(new.length == length, f"the client has {new.length} points of the log, and the server says {length}")
    subject.claim(
        new.mark == sent.mark, "address and absorb come to different marks: a greeting would be sent the whole"
    )
    library = same(held.library.points, sent.libraries.down.points)
    subject.claim(library, "client and server disagree about the points that came down, so that numbers would mislead")
    return held


def _check_known(subject: Subject, scene: _Scene, log: History, sent: Addressed, *, version: int) -> None:
    digest, editions = scene.digest, {(version, sent.mark): sent.base}
    with subject.calling("known(log, editions, number, mark)"):
        base = digest.known(log, editions, number=version, mark=sent.mark)
        other = digest.known(log, editions, number=version, mark=sent.mark ^ 1)
    subject.claim(base is not None, "it does not know a version that it sent, and would send the whole again")
    equal = digest.length(base) == digest.length(sent.base)
    subject.claim(equal, "it takes a client that greets for one that holds another length of the log")
    subject.claim(other is None, "it takes a client with another mark for one that holds its own version")


def _check_malformed(subject: Subject, scene: _Scene, incoming: Incoming) -> None:
    for how, mutant in _messages(incoming.message):
        here = subject.at(f"{subject.place}, sent a digest {how}")
        with here.calling("a client must refuse it with RemoteProtocolError or take it, but absorb"):
            try:
                held = scene.digest.absorb(replace(incoming, message=mutant))
            except RemoteProtocolError:
                continue
        try:
            fit = held.built.belief.is_sound()
        except LaconicError:
            continue  # whoever absorbs refuses it then
        here.claim(not fit or held.built.belief.dim == scene.belief.dim, "it is taken, and changes the dimension")


def _messages(message: Digested) -> Iterator[tuple[str, Digested]]:
    changed: Callable[..., Digested] = msgspec.structs.replace
    for how, payload in mutants(message.payload, with_records=True):
        yield how, changed(message, payload=payload)
    yield "that says to be of the other kind", changed(message, raw=not message.raw)
    yield "without anything in it, of no points", changed(message, payload=Payload(), length=0)
    for more in (-1, 1, 2**40):
        yield f"whose length is off by {more}", changed(message, length=max(message.length + more, 0))
