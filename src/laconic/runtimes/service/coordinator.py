"""The coordinator: a server of the protocol behind gRPC, with durable state, and a page of numbers beside it."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from laconic.checks import require_positive, require_whole
from laconic.errors import InputError, LinkError
from laconic.limits import MOST_AT_ONCE
from laconic.protocol.codec import MOST_BYTES, VERSION, Codec
from laconic.protocol.packing import Pieces
from laconic.protocol.plan import Plan, require_plan
from laconic.protocol.records import Joined, Record
from laconic.protocol.restoring import restore_server
from laconic.protocol.roster import Patience
from laconic.protocol.server import Server
from laconic.runtimes.service import methods
from laconic.runtimes.service.background import Background, background, heeded
from laconic.runtimes.service.desk import LARGE, Arrived, Desk, Gone, Passed
from laconic.runtimes.service.packages import grpc
from laconic.runtimes.service.pages import Answer, Asked, Pages
from laconic.runtimes.service.security import TLS, name_in, require_address, server_credentials
from laconic.runtimes.service.standing import page_of, status_of
from laconic.runtimes.service.store import Store
from laconic.runtimes.service.turns import Turns

log = logging.getLogger("laconic.coordinator")


@dataclass(frozen=True)
class Limits:
    """How much a coordinator takes.

    Args:
        members: Largest roster, from 1. Who greets beyond it is refused.
        links: Links at a time, from 1.
        message_bytes: Bytes of the largest message that is taken.
        greeting_seconds: Seconds until a link on which nobody has greeted is ended.
    """

    members: int = 1000
    links: int = 2000
    message_bytes: int = MOST_BYTES
    greeting_seconds: float = 10.0

    def __post_init__(self) -> None:
        require_whole("members", self.members, least=1)
        require_whole("links", self.links, least=1)
        require_whole("message_bytes", self.message_bytes, least=1024, most=MOST_AT_ONCE)
        require_positive("greeting_seconds", self.greeting_seconds)


@dataclass(frozen=True)
class Serving:
    """Where and for whom a coordinator serves.

    Args:
        bind: Address and port to serve on; port 0 takes a free one.
        tls: Certificates; None: plaintext, on this machine alone.
        insecure: True: plaintext is wanted. It must be said where there is no tls.
        http: Address and port of pages about it, unencrypted; None: nowhere.
        allowed: Names that may join; None: all whose certificate is good.
        members: Names that count as members before they have come.
        patience: How long a sync waits for its members, and how many must be present.
        limits: How much it takes.
        tick: Seconds from one look at the clock to the next. Raising it notices late members later.
    """

    bind: str = "127.0.0.1:7443"
    tls: TLS | None = None
    insecure: bool = False
    http: str | None = None
    allowed: frozenset[str] | None = None
    members: tuple[str, ...] = ()
    patience: Patience = field(default_factory=Patience)
    limits: Limits = field(default_factory=Limits)
    tick: float = 0.5

    def __post_init__(self) -> None:
        if self.tls is None and not self.insecure:
            raise InputError("tls is not given; try TLS.of('certs', 'coordinator'), or insecure=True on this machine")
        if self.tls is not None and self.insecure:
            raise InputError("tls is given and insecure=True; give one of them")
        require_address("bind", self.bind, insecure=self.insecure)
        if self.http is not None:
            require_address("http", self.http, insecure=False)
        require_positive("tick", self.tick)


@dataclass(frozen=True, eq=False)
class _Sending:
    """Something in an outbox: bytes to send, and whether they are answered with something large."""

    pieces: Pieces
    answered: bool


@dataclass(eq=False)
class _Ending:
    """The last thing in an outbox: how the link ends."""

    reason: str
    denied: bool


class _Door:
    """The coordinator's end of a link; events put into it what is to be sent, from their own thread."""

    def __init__(self, number: int, identity: str | None, loop: asyncio.AbstractEventLoop) -> None:
        self.number, self.identity = number, identity
        self.name: str | None = None
        self.outbox: asyncio.Queue[_Sending | _Ending] = asyncio.Queue()
        self._loop = loop

    def put(self, pieces: Pieces, *, answered: bool) -> None:
        """Send bytes, after all that was put before; ``answered`` if the other end sends something large then."""
        self._loop.call_soon_threadsafe(self.outbox.put_nowait, _Sending(pieces, answered))

    def end(self, reason: str, *, denied: bool = False) -> None:
        """End the link, after all that was put before."""
        self._loop.call_soon_threadsafe(self.outbox.put_nowait, _Ending(reason, denied))


class Coordinator:
    """Runs a server: ``start`` it, or use it as a context manager, and ``stop`` it.

    Args:
        plan: The parts that it runs on; agents without one of their own are sent the algorithm.
        state: File of its state; it is made where there is none.
        serving: Where and for whom it serves.
        algorithm: Table of the algorithm for agents that have none of their own; None: they must have one.
        term: Random number of this start; None: one is drawn.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        state: str | os.PathLike[str],
        serving: Serving,
        algorithm: Mapping[str, Any] | None = None,
        term: int | None = None,
    ) -> None:
        require_plan(plan)
        self.plan, self.serving = plan, serving
        self._background: Background = background()
        self._works = ThreadPoolExecutor(max(2, os.cpu_count() or 1), thread_name_prefix="laconic-merge")
        store = Store(state, role="coordinator", name="coordinator", plan=plan)
        try:
            server = _restored(plan, store, serving, term=secrets.randbits(40) if term is None else term)
        except BaseException:
            store.close()
            raise
        self._codec = Codec(plan, most_bytes=serving.limits.message_bytes)
        self.desk = Desk(server, store, codec=self._codec, pool=self._works)
        self.desk.allowed = serving.allowed
        self.started, self.address, self.http_address = time.monotonic(), "", ""
        self._description = methods.Description(
            version=VERSION,
            dim=plan.belief.dim,
            algorithm=dict(algorithm or {}),
            fingerprint=plan.fingerprint,
            most_bytes=serving.limits.message_bytes,
        ).encoded()
        self._links = 0  # how many there ever were
        self._open: set[_Door] = set()
        self._turns = Turns()
        self._is_serving = self._stopped = False
        self._server: grpc.aio.Server | None = None
        self._pages: Pages | None = None
        self._ticking: asyncio.Task[None] | None = None

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> Coordinator:
        """Serve, until it is stopped."""
        self.desk.start()
        try:
            self._background.run(self._start())
        except BaseException:
            self.stop()
            raise
        log.info("serving", extra={"address": self.address, "http": self.http_address, "term": self.desk.server.term})
        return self

    def stop(self, *, grace: float = 2.0) -> None:
        """Let links end, store what came, and let go of the state file."""
        if self._stopped:
            return
        self._stopped = True
        self._background.run(self._stop(grace))
        self.desk.stop()
        self._works.shutdown(wait=False, cancel_futures=True)
        log.info("stopped")

    def __enter__(self) -> Coordinator:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()

    def allow(self, names: Iterable[str] | None) -> None:
        """Let in these names from now on, and end the links of others."""
        self.desk.allowed = None if names is None else frozenset(names)
        for door in list(self.desk.doors.values()):
            if self.desk.allowed is not None and door.name not in self.desk.allowed:
                door.end(f"{door.name!r} is no longer among the names that are let in", denied=True)

    def status(self) -> dict[str, Any]:
        """What is going on, as plain values."""
        return status_of(self)

    @property
    def links(self) -> int:
        """How many links are up."""
        return len(self._open)

    @property
    def is_ready(self) -> bool:
        """Whether it takes links."""
        return self._is_serving

    async def _start(self) -> None:
        serving, limits = self.serving, self.serving.limits
        server = grpc.aio.server(options=methods.settings(limits.message_bytes))
        server.add_generic_rpc_handlers(self._handlers())
        try:
            if serving.tls is None:
                port = server.add_insecure_port(serving.bind)
            else:
                port = server.add_secure_port(serving.bind, server_credentials(serving.tls))
        except RuntimeError as error:
            raise LinkError(f"cannot serve on {serving.bind}: {error}; try another port, or stop what has it") from None
        self._server = server
        await server.start()
        self.address = f"{serving.bind.rpartition(':')[0]}:{port}"
        if serving.http is not None:
            self._pages = Pages(self._page)
            self.http_address = await self._pages.start(serving.http)
        self._ticking = asyncio.create_task(self._tick())
        self._is_serving = True

    async def _stop(self, grace: float) -> None:
        self._is_serving = False
        if self._ticking is not None:
            self._ticking.cancel()
        for door in list(self._open):
            door.end("the coordinator is going away")
        if self._server is not None:
            await self._server.stop(grace)
        if self._pages is not None:
            await self._pages.stop()

    async def _tick(self) -> None:
        while True:
            self.desk.put(Passed(time.monotonic()))
            await asyncio.sleep(self.serving.tick)

    # -- what is asked -------------------------------------------------------------------------------------------

    def _handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        federation = {
            methods.LINK: grpc.stream_stream_rpc_method_handler(self._link),
            methods.DESCRIBE: grpc.unary_unary_rpc_method_handler(self._describe),
        }
        health = {
            methods.CHECK: grpc.unary_unary_rpc_method_handler(self._check),
            methods.WATCH: grpc.unary_stream_rpc_method_handler(self._watch),
        }
        return (
            grpc.method_handlers_generic_handler(methods.SERVICE, federation),
            grpc.method_handlers_generic_handler(methods.HEALTH, health),
        )

    async def _describe(self, _: bytes, context: grpc.aio.ServicerContext) -> bytes:
        identity = name_in(context)
        if self.desk.allowed is not None and identity is not None and identity not in self.desk.allowed:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, f"{identity!r} is not among the names let in")
        return self._description

    async def _check(self, _: bytes, context: grpc.aio.ServicerContext) -> bytes:
        return methods.SERVING if self._is_serving else methods.NOT_SERVING

    async def _watch(self, _: bytes, context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
        last = b""
        while True:
            now = methods.SERVING if self._is_serving else methods.NOT_SERVING
            if now != last:
                last = now
                yield now
            await asyncio.sleep(self.serving.tick)

    async def _link(self, _: object, context: grpc.aio.ServicerContext) -> None:
        """One link, from its first bytes to its end."""
        if len(self._open) >= self.serving.limits.links:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "there are as many links as are allowed")
        if not self._is_serving:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the coordinator is going away")
        self._links += 1
        door = _Door(self._links + FIRST_LINK, name_in(context), self._background.loop)
        self._open.add(door)
        reading = heeded(asyncio.create_task(self._read(door, context)))
        writing = heeded(asyncio.create_task(self._write(door, context)))
        ending: _Ending | None = None
        try:
            done, _ = await asyncio.wait({reading, writing}, return_when=asyncio.FIRST_COMPLETED)
            if writing in done and writing.exception() is None:
                ending = writing.result()
        except asyncio.CancelledError:  # the other end is gone
            pass
        finally:
            reading.cancel()
            writing.cancel()
            self._turns.end(door)
            self._open.discard(door)
            self.desk.put(Gone(door))
        if ending is not None:
            code = grpc.StatusCode.PERMISSION_DENIED if ending.denied else grpc.StatusCode.ABORTED
            await context.abort(code, ending.reason[:500])

    async def _read(self, door: _Door, context: grpc.aio.ServicerContext) -> None:
        """Hand over what comes, one message at a time: who sends more waits, and nobody else does."""
        handled = asyncio.Event()

        def is_handled() -> None:
            self._background.loop.call_soon_threadsafe(handled.set)

        limit: float | None = self.serving.limits.greeting_seconds
        while True:
            try:
                data = await asyncio.wait_for(context.read(), limit)
            except TimeoutError:
                door.end("nobody greeted on this link")
                return await asyncio.sleep(60.0)
            if data is grpc.aio.EOF:
                return None
            handled.clear()
            self.desk.put(Arrived(door, data, is_handled))
            del data  # it is read; what comes next may be long in coming
            await handled.wait()
            self._turns.end(door)
            limit = None

    async def _write(self, door: _Door, context: grpc.aio.ServicerContext) -> _Ending:
        """Send what is put into an outbox; large things in turn with other links."""
        while True:
            item = await door.outbox.get()
            if isinstance(item, _Ending):
                return item
            is_large = item.answered or sum(map(len, item.pieces)) >= LARGE
            if is_large:
                await self._turns.begin(door)
            await context.write(b"".join(item.pieces))
            if is_large and not item.answered:
                self._turns.end(door)

    async def _page(self, asked: Asked) -> Answer:
        """An answer to a question over HTTP."""
        if asked.method not in ("GET", "HEAD"):
            return Answer(405, body=b"only GET is answered\n", headers={"Allow": "GET, HEAD"})
        return page_of(self, asked.path)


#: Numbers of links begin here: those of members that a server has from the start are their own numbers.
FIRST_LINK = 2**20


def _restored(plan: Plan, store: Store, serving: Serving, *, term: int) -> Server:
    """The server that left the records in a store, at the beginning of a term; the first time, one with its members."""
    if store.last == 0:
        first: list[Record] = [Server(plan, term=term).opened]
        store.append([*first, *(Joined(name=name, number=number) for number, name in enumerate(serving.members))])
    server, outcome = restore_server(
        store.records(), plan=plan, term=term, patience=serving.patience, most_members=serving.limits.members
    )
    store.append(outcome.keep)
    return server
