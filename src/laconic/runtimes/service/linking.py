"""Linking: an agent's link to its coordinator, made again whenever it is lost, with pauses that grow and vary."""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from laconic.errors import LaconicError, LinkError, ProtocolError
from laconic.protocol.client import Client
from laconic.protocol.codec import Codec
from laconic.protocol.messages import Down, Leave, SetAside, Up, Welcome
from laconic.protocol.outcome import Outcome
from laconic.protocol.session import ClientState
from laconic.protocol.vetting import Vetted
from laconic.runtimes.service import methods
from laconic.runtimes.service.background import FORKED, background, heeded
from laconic.runtimes.service.diary import Entry
from laconic.runtimes.service.joining import Joining
from laconic.runtimes.service.packages import grpc
from laconic.runtimes.service.traffic import Traffic
from laconic.terminal import shown

log = logging.getLogger("laconic.agent")
#: After a link that lasted for so many seconds the next is tried soon, though one side ended it on purpose.
LASTING = 5.0
#: While somebody waits for the link it is tried again after so many seconds at most.
SOON = 2.0
#: So many seconds are waited for the other side to answer at all.
ANSWER = 20.0
#: So many seconds the other side has to read what was sent before the end of a link.
FAREWELL = 2.0
#: A reason is cut to so many letters.
MOST_REASON = 1000
RAISE = "raise limits.message_bytes of the coordinator"
#: What links an agent again that rests, in Python and beside `laconic agent`.
RECONNECT = "call reconnect(), or POST /reconnect over HTTP,"
_draw = secrets.SystemRandom()


class Owner(Protocol):
    """The agent that a link belongs to."""

    name: str
    traffic: Traffic

    def happen(self, event: Callable[[Client], Outcome[Up]], **options: Any) -> Outcome[Up]:
        """Let something happen to the client."""
        ...

    def enter(self, event: Callable[[Client], Outcome[Up]]) -> Entry:
        """Let a message happen to the client."""
        ...

    def go_on(self, entry: Entry) -> None:
        """Do what a message leads to."""
        ...

    def look(self, at: Callable[[Client], Any]) -> Any:
        """Something about the client at one moment."""
        ...

    def read(self, data: bytes) -> tuple[Down, Vetted | None]:
        """The message in these bytes, and what a check says of it."""
        ...

    def changed(self) -> None:
        """Tell those who wait that they may look again."""
        ...


class Link:
    """One link, from its greeting to its end; what is put into it later is lost, as on any link that is down."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, codec: Codec, *, too_large: Callable[[Link, str], None]
    ) -> None:
        self.outbox: asyncio.Queue[tuple[Up, bytes] | None] = asyncio.Queue()
        self.ended: str | None = None  # why, once it is to end
        self.has_greeted = self.was_up = False  # whether the greeting was made, and answered
        self.is_refused = False  # whether either side ended it on purpose
        self.put_in = self.taken_out = 0  # how many messages
        self.is_giving_up = False  # whether a message could not be sent, and all but a farewell are lost after it
        self.codec = codec  # by which messages are encoded, none larger than the other side takes
        self._loop, self._too_large = loop, too_large

    def put(self, message: Up) -> None:
        """Send a message, after all that was put before; it is encoded here, in the thread that has just stored it."""
        if self.is_giving_up and not isinstance(message, Leave):
            return
        try:
            data = self.codec.encode(message)
        except LaconicError as error:
            self.is_giving_up = True
            self._too_large(self, str(error))
            return
        self.put_in += 1  # by one thread at a time: the one that writes the diary
        self._loop.call_soon_threadsafe(self.outbox.put_nowait, (message, data))

    def end(self, reason: str) -> None:
        """End it, after all that was put before."""
        self.ended, self.is_refused = self.ended or reason, True
        self._loop.call_soon_threadsafe(self.outbox.put_nowait, None)


class Linking:
    """Keeps a link up for an agent."""

    def __init__(self, owner: Owner, joining: Joining, *, codec: Codec) -> None:
        self.is_up = False
        self._owner, self._joining, self._codec = owner, joining, codec
        self._link: Link | None = None
        self.is_resting = False  # whether it waits to be told to link again
        self._waiting, self._counting = 0, threading.Lock()  # how many wait for the link
        self._background = background()
        self._loop = self._background.loop
        self.error: str | None = FORKED if self._background.is_forked else "no link was made yet"
        self._stopping = asyncio.Event()
        self._poked = asyncio.Event()
        self._unwanted = asyncio.Event()  # set where a link that is being made is not wanted any more
        self._is_asked = False  # whether somebody has asked for a link since the last was tried
        self._task: Any = None

    # -- from other threads --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to link, where that is possible."""
        if self._background.is_forked:
            return
        self._task = self._background.start(self._run())

    def stop(self) -> None:
        """End the link for good."""
        if self._task is not None:
            self._loop.call_soon_threadsafe(self._stop)
            self._task.result()

    def _stop(self) -> None:
        self._stopping.set()
        self._poked.set()
        self._unwanted.set()
        if self._link is not None:
            self._link.end("this agent is closed")

    @property
    def unsent(self) -> int:
        """How many messages are on their way out."""
        link = self._link
        return 0 if link is None else link.put_in - link.taken_out

    def rest(self, reason: str) -> None:
        """End the link, and make no other before one is asked for."""
        self.is_resting = True
        link = self._link
        if link is not None:
            link.end(reason)
        self.is_up, self.error = False, reason  # at once: the other side has its time to read a farewell
        self._loop.call_soon_threadsafe(self._unwanted.set)

    def again(self) -> None:
        """Link again now, or as soon as the last link is over."""
        self.is_resting, self._is_asked = False, True
        if not self.is_up:
            self.error = FORKED if self._background.is_forked else "a link is being made"
        self._loop.call_soon_threadsafe(self._poked.set)

    @contextmanager
    def hurried(self) -> Iterator[None]:
        """While this lasts somebody waits for the link: it is tried now, and soon again."""
        with self._counting:
            self._waiting += 1
        self._loop.call_soon_threadsafe(self._wake)
        try:
            yield
        finally:
            with self._counting:
                self._waiting -= 1

    def _wake(self) -> None:
        if not self.is_resting:
            self._poked.set()

    def _give_up(self, link: Link, reason: str) -> None:
        """Leave, as a message that this agent must send is larger than the other side takes: linked again it would be.

        It is called where records were just written, so another thread does it.
        """
        is_theirs = link.codec.most_bytes < self._codec.most_bytes
        self._background.pool.submit(self._left, link, f"{reason}; {RAISE}" if is_theirs else reason)

    def _left(self, link: Link, reason: str) -> None:
        if self._link is not link:
            return
        # Before those who wait for a flush hear of the event: they may ask for a link at once.
        told = f"{reason}; then {RECONNECT} to come back"
        self.is_resting, self.is_up, self.error = True, False, told
        try:
            self._owner.happen(lambda client: client.leave(reason[:MOST_REASON]))
        except Exception as error:
            log.warning("could not leave", extra={"agent": self._owner.name, "reason": str(error)})
        link.end(told)

    def after(self, outcome: Outcome[Up]) -> None:
        """A client that gave up its link while that is up gets another."""
        link = self._link
        if link is not None and self._owner.look(lambda client: client.state) is ClientState.AWAY:
            link.end(outcome.dropped or "the exchange failed here")

    # -- in the loop ---------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        pause = self._joining.first_wait
        while not self._stopping.is_set():
            link, begun = Link(self._loop, self._codec, too_large=self._give_up), time.monotonic()
            try:
                await self._once(link)
            except grpc.aio.AioRpcError as error:
                link.ended = link.ended or self._explained(error)
                link.is_refused = link.is_refused or error.code() is not grpc.StatusCode.UNAVAILABLE
            except (LaconicError, OSError) as error:
                link.ended = link.ended or str(error)
            except Exception as error:  # the agent goes on alone, whatever this is
                log.exception("the link failed", extra={"agent": self._owner.name})
                link.ended = f"{type(error).__name__}: {error}"
            await self._over(link)
            if self._stopping.is_set():
                return
            was_good = self._is_asked or (link.was_up and (not link.is_refused or time.monotonic() - begun > LASTING))
            pause = self._joining.first_wait if was_good else min(2 * pause, self._joining.longest_wait)
            await self._sleep(pause)

    def _explained(self, error: grpc.aio.AioRpcError) -> str:
        try:
            return self._joining.explained(error)
        except LaconicError as other:
            return str(other)

    async def _over(self, link: Link) -> None:
        """Note that a link is down."""
        self.is_up, self._link = False, None
        self.error = link.ended or "the coordinator ended the link"
        log.info("link down", extra={"agent": self._owner.name, "reason": self.error})
        while True:
            try:
                await self._aside(self._owner.happen, _lost, linked=lambda: None)
                break
            except LaconicError as error:  # nothing can be stored: nobody else could be told either
                self.error = str(error)
                await self._sleep(1.0)
                if self._stopping.is_set():
                    break
        self._owner.changed()

    async def _sleep(self, pause: float) -> None:
        """Wait a while, never the same, so that those who were cut off together do not come back together."""
        is_over = False
        while not is_over:
            self._poked.clear()
            if self._stopping.is_set() or self._is_asked:
                break
            longest = min(pause, SOON) if self._waiting else pause
            seconds = None if self.is_resting else longest * _draw.uniform(0.5, 1.0)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._poked.wait(), seconds)
            is_over = not self.is_resting  # it may have been told to rest meanwhile
        self._is_asked = False

    async def _once(self, link: Link) -> None:
        """A link from its beginning to its end."""
        async with self._joining.channel() as channel:
            method = channel.stream_stream(methods.path(methods.SERVICE, methods.LINK))
            call = method(metadata=(("laconic-name", _ascii(self._owner.name)),))
            await self._connected(call)
            self._link = link
            if self._is_unwanted:
                link.ended = self.error  # why it is not
                return
            await self._aside(self._owner.happen, partial(self._greeted, link), linked=lambda: link)
            if not link.has_greeted:
                link.ended = self.error
                return
            reading = heeded(asyncio.create_task(self._read(call, link)))
            writing = heeded(asyncio.create_task(self._write(call, link)))
            try:
                done, _ = await asyncio.wait({reading, writing}, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                if writing in done and not reading.done():
                    await call.done_writing()
                    # To cancel it now would drop what the other side has not read, a `Leave` for example.
                    await asyncio.wait({reading}, timeout=FAREWELL)
            finally:
                reading.cancel()
                writing.cancel()
                call.cancel()

    def _greeted(self, link: Link, client: Client) -> Outcome[Up]:
        """Greet, unless somebody has left meanwhile."""
        if self._is_unwanted:
            return Outcome()
        link.has_greeted = True
        return client.greet()

    @property
    def _is_unwanted(self) -> bool:
        return self._stopping.is_set() or self.is_resting

    async def _connected(self, call: Any) -> None:
        """Wait until the other side answers, or nobody wants it any more."""
        self._unwanted.clear()
        if self._is_unwanted:
            return
        connecting = heeded(asyncio.create_task(call.wait_for_connection()))
        ending = asyncio.create_task(self._unwanted.wait())
        try:
            done, _ = await asyncio.wait({connecting, ending}, timeout=ANSWER, return_when=asyncio.FIRST_COMPLETED)
            if connecting in done:
                connecting.result()
            elif not done:
                raise LinkError(f"whoever is at {self._joining.address} says nothing for {ANSWER:g} seconds")
        finally:
            connecting.cancel()
            ending.cancel()

    async def _aside(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call what may be slow, in another thread."""
        try:
            result = self._loop.run_in_executor(self._background.pool, lambda: call(*arguments, **options))
        except RuntimeError:  # Python is ending, and gives no more threads
            return call(*arguments, **options)
        return await result

    async def _write(self, call: Any, link: Link) -> None:
        while True:
            item = await link.outbox.get()
            if item is None:
                return
            message, data = item
            self._owner.traffic.record(message, direction="up", size=len(data))
            link.taken_out += 1
            try:
                await call.write(data)
            except asyncio.InvalidStateError:  # as gRPC says of a stream that has ended
                raise LinkError("the link broke while a message was sent") from None

    async def _read(self, call: Any, link: Link) -> None:
        # It comes before all messages, so that nothing but the greeting is sent without it.
        most = methods.told_most_bytes(await call.initial_metadata(), otherwise=self._codec.most_bytes)
        link.codec = replace(self._codec, most_bytes=most)
        while True:
            data = await call.read()
            if data is grpc.aio.EOF:
                code, details = await call.code(), await call.details()
                if code is not grpc.StatusCode.OK:
                    link.ended = link.ended or details or code.name
                    link.is_refused = code is not grpc.StatusCode.UNAVAILABLE
                return
            await self._loop.run_in_executor(self._background.hand, self._take, data, link)

    def _take(self, data: bytes, link: Link) -> None:
        """Hand the client a message, and do what work it asks for if that is quick."""
        message, vetted = self._owner.read(data)

        def received(client: Client) -> Outcome[Up]:
            # This thread may be late: the client, which has greeted anew since, would take it for an answer to that.
            is_late = self._link is not link
            return Outcome(dropped="its link is over") if is_late else client.receive(message, vetted=vetted)

        if isinstance(message, SetAside) and message.final and self._link is link:
            self.rest(f"{message.reason}; {RECONNECT} to take the place back")
        try:
            entry = self._owner.enter(received)
        except ProtocolError as error:
            link.is_refused = True
            raise LinkError(str(error)) from None
        finally:
            self._owner.traffic.record(message, direction="down", size=len(data))
        if self._link is link:
            self._taken(message, entry.outcome, link)
        self._owner.go_on(entry)

    def _taken(self, message: Down, outcome: Outcome[Up], link: Link) -> None:
        """The client has taken a message, or dropped it."""
        if isinstance(message, Welcome) and not (outcome.dropped or self.is_resting):
            self.is_up, self.error, link.was_up = True, None, True
            log.info("link up", extra={"agent": self._owner.name, "number": message.number})
        if outcome.dropped:
            log.info("dropped", extra={"agent": self._owner.name, "reason": outcome.dropped})
        self.after(outcome)


def _lost(client: Client) -> Outcome[Up]:
    is_linked = client.state not in (ClientState.OUTSIDE, ClientState.AWAY)
    return client.lose() if is_linked else Outcome()


def _ascii(name: str) -> str:
    """A name as a header can carry it."""
    return shown(name).encode("ascii", errors="backslashreplace").decode()
