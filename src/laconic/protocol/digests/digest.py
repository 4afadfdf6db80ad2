"""A digest: how the server's log of points becomes a belief, as a few pure functions.

Points go up into a log, in order of arrival. build (server, slow) → address (by client) → absorb (client)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from laconic.arrays import Floats, Ints
from laconic.beliefs import Belief
from laconic.errors import LocalProtocolError
from laconic.exploration import Told
from laconic.protocol.history import History
from laconic.protocol.known_points import Library
from laconic.protocol.messages import Digested, Payload
from laconic.protocol.parcels import Libraries
from laconic.protocol.shapes import Layout
from laconic.protocol.wire import Wire
from laconic.tail import Learning


@dataclass(frozen=True, eq=False)
class Built:
    """What all holders of a version have in common, which a process that hosts many of them builds once."""

    belief: Belief
    mark: int  # a hash that two holders of the version agree on
    length: int  # how many observations of the log it has
    atoms: Floats | None = None  # the points that the version is made of, where it is not made of all


#: share(topic, build) → what build gives; ``build(newest)`` may go on from the newest that was built under the topic.
ShareBuilt = Callable[[str, Callable[[Built | None], Built]], Built]


@dataclass(frozen=True, eq=False)
class Held:
    """A version as its holder has it: the belief, and what it takes to absorb the next one."""

    number: int
    built: Built
    library: Library  # points that came down
    d_eff: float = 0.0  # the effective dimension of all that is known, where the digest says it
    atoms: Floats | None = None  # the points that the version is made of, where it is not made of all
    certificate: Any = None
    downloads: int = 0  # how many versions its holder has absorbed, this one included

    @property
    def told(self) -> Told:
        """What exploration may know of it."""
        return Told(self.built.length, downloads=self.downloads, certificate=self.certificate)

    @classmethod
    def blank(cls, belief: Belief) -> Held:
        """The belief before any data."""
        return cls(number=0, built=Built(belief, mark=0, length=0), library=Library.empty(belief.dim))


@dataclass(frozen=True, eq=False)
class Reader:
    """A client as the server sees it when it addresses a version to it."""

    base: Any  # what it holds
    own: Ints  # the places of its own points in the log
    libraries: Libraries
    wire: Wire


@dataclass(frozen=True, eq=False)
class Addressed:
    """What goes down to a client, and what it holds when it has absorbed that."""

    payload: Payload
    base: Any
    libraries: Libraries
    raw: bool
    mark: int  # the hash that the client will arrive at


@dataclass(frozen=True, eq=False)
class Incoming:
    """A digest that came down, and what a client has to absorb it with."""

    message: Digested
    held: Held
    template: Belief  # the plan's belief before any data
    own: tuple[Floats, Floats]  # own observations that the version has and the one held lacks
    covered: Floats  # all own points that the version has
    libraries: Libraries
    wire: Wire
    share: ShareBuilt
    learning: Learning = field(default_factory=Learning)


class Digest:
    """Base of digests. An *edition* is what the server builds; a *base* is what a client holds of one.

    Both may be values of any kind. All functions of a digest are pure: they change nothing that they are given. The
    class variable ``name`` is what the ledger counts it under.
    """

    name: ClassVar[str] = "digest"

    def layout(self, message: Any) -> Layout | None:
        """What a message's payload holds, so that names and shapes need not travel; None where each says its own.

        Args:
            message: A `Digested`, of which all but the payload is known.
        """
        return None

    def first(self, belief: Belief) -> Any:
        """The edition of an empty log.

        Args:
            belief: The plan's belief before any data.
        """
        raise LocalProtocolError(f"{type(self).__name__} does not say what it makes of an empty log")

    def blank(self) -> Any:
        """The base of a client that holds nothing."""
        raise LocalProtocolError(f"{type(self).__name__} does not say what a newcomer holds")

    def build(self, log: History, previous: Any) -> Any:
        """The edition of a log; it may take long, and is run beside everything else.

        Args:
            log: All observations that clients sent up, in order of arrival.
            previous: The edition before it, of a beginning of this log, which may be built upon.
        """
        raise LocalProtocolError(f"{type(self).__name__} does not say what it makes of a log")

    def number(self, edition: Any) -> int:
        """The number of an edition; it grows from one to the next, and is 0 for the first.

        Args:
            edition: Any edition.
        """
        raise LocalProtocolError(f"{type(self).__name__} does not number its editions")

    def length(self, base: Any) -> int:
        """How many points of the log, from the first on, the holder of a base has.

        Args:
            base: What a client holds.
        """
        raise LocalProtocolError(f"{type(self).__name__} does not say how much a version has")

    def reach(self, edition: Any) -> int:
        """How many points of the log, from the first on, an edition has.

        Args:
            edition: Any edition.
        """
        raise LocalProtocolError(f"{type(self).__name__} does not say how much an edition has")

    def due(self, log: History, edition: Any, *, base: Any) -> bool:
        """True when a client that asks, and lacks something, is worth a new edition.

        Args:
            log: All observations that clients sent up.
            edition: The newest edition, of a beginning of this log.
            base: What the client holds.
        """
        raise LocalProtocolError(f"{type(self).__name__} does not say when to build")

    def known(self, log: History, editions: Any, *, number: int, mark: int) -> Any | None:
        """The base of a client that says to hold a version, None where it is not known here.

        Args:
            log: All observations that clients sent up.
            editions: Bases that were sent lately, by number and mark.
            number: Number of the version.
            mark: Hash of the belief that the client says to hold.
        """
        raise LocalProtocolError(f"{type(self).__name__} does not say which versions it knows")

    def address(self, log: History, edition: Any, reader: Reader) -> Addressed:
        """What takes a client from what it holds to an edition.

        Args:
            log: All observations that clients sent up.
            edition: The edition that it is to hold.
            reader: The client: what it holds, which observations are its own, and which points it knows by number.
        """
        raise LocalProtocolError(f"{type(self).__name__} does not say what it sends")

    def why_raw(self, edition: Any) -> str:
        """Why those who are sent points as they are, of an edition, are not sent something shorter.

        Args:
            edition: The edition that was sent.
        """
        return "the plan sends all points"

    def absorb(self, incoming: Incoming) -> Held:
        """What a client holds after it has absorbed a message; anything wrong with it raises `RemoteProtocolError`.

        Args:
            incoming: The message, and what the client has to absorb it with.
        """
        raise LocalProtocolError(f"{type(self).__name__} does not say how a belief absorbs it")
