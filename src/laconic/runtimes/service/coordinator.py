"""The coordinator: a server of the protocol behind gRPC, with durable state, and a page of numbers beside it."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from laconic import registry
from laconic.checks import require_names, require_number, require_positive, require_whole, seen
from laconic.errors import InputError, LinkError
from laconic.limits import MOST_AT_ONCE
from laconic.protocol.codec import MOST_BYTES, VERSION, Codec
from laconic.protocol.difference import difference
from laconic.protocol.plan import Plan, require_plan
from laconic.protocol.records import Joined, Record
from laconic.protocol.restoring import restore_server
from laconic.protocol.roster import Patience
from laconic.protocol.server import Server
from laconic.runtimes.service import methods
from laconic.runtimes.service.background import Background, background, heeded
from laconic.runtimes.service.desk import LARGE, Arrived, Desk, Gone, Passed, Reviewed
from laconic.runtimes.service.doors import LET_IN, Door, Doors, Ending
from laconic.runtimes.service.hosts import foreign, refusal
from laconic.runtimes.service.onlookers import Onlookers
from laconic.runtimes.service.packages import grpc
from laconic.runtimes.service.pages import Answer, Asked, Pages
from laconic.runtimes.service.security import TLS, name_in, require_address, require_certificates, server_credentials
from laconic.runtimes.service.standing import page_of, status_of
from laconic.runtimes.service.store import Store
from laconic.runtimes.service.turns import Turns

log = logging.getLogger("laconic.coordinator")


@dataclass(frozen=True)
class Limits:
    """How much a coordinator takes.

    Args:
        members: Largest roster, from 1. A new name that greets beyond it is refused, and its agent goes on alone;
            members that left do not count.
        links: Links at a time, from 1. One that is made beyond it is ended at once, and its agent tries again later. Of
            those on which nobody has greeted yet 4 of each certificate stay, and half of all without tls; the oldest
            gives way to a new one. As many streams that watch its health may be open beside them, 4 of each
            certificate.
        message_bytes: Bytes of the largest message that is taken or sent, from 1024 to 2³¹ − 1. A larger one ends its
            link. Agents are told it: one whose message would be larger leaves, says why, and goes on alone. They send
            and take at most 67,108,864, so raising it beyond that lets nothing more through.
        greeting_seconds: Seconds until a link on which nobody has greeted is ended, above 0. Raising it bears with
            slower links.
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
        bind: HOST:PORT to serve on, such as 0.0.0.0:7443 for all networks of the machine; port 0 takes a free one.
            Without tls the host is localhost, 127.0.0.1 or another loopback address.
        tls: Certificates, as in TLS.of("certs", "coordinator"); None: plaintext, on this machine alone.
        insecure: True: plaintext is wanted. It must be said where there is no tls, and not where there is one.
        http: HOST:PORT of pages about it, unencrypted and open to whoever reaches that address; port 0 takes a free
            one. None: nowhere.
        allowed: Names that may join, a set or a list of texts; a single text is refused. None: every name, with tls
            those whose certificate is good.
        gone: Names that may not, whatever ``allowed`` says. Who is away and may not join counts as having left.
        members: Names that count as members before they have come, a list of texts, no two alike; a single text is
            refused. They are read when the state file is made, and not later.
        patience: How long a sync waits for its members, and how many must be present.
        limits: How much it takes.
        tick: Seconds from one look at the clock to the next, above 0. Raising it notices late members later.
    """

    bind: str = "127.0.0.1:7443"
    tls: TLS | None = None
    insecure: bool = False
    http: str | None = None
    allowed: frozenset[str] | None = None
    gone: frozenset[str] = frozenset()
    members: tuple[str, ...] = ()
    patience: Patience = field(default_factory=Patience)
    limits: Limits = field(default_factory=Limits)
    tick: float = 0.5

    def __post_init__(self) -> None:
        require_certificates(self.tls)
        if self.tls is None and not self.insecure:
            raise InputError("tls is not given; try TLS.of('certs', 'coordinator'), or insecure=True on this machine")
        if self.tls is not None and self.insecure:
            raise InputError("tls is given and insecure=True; give one of them")
        require_address("bind", self.bind, insecure=self.insecure)
        if self.http is not None:
            require_address("http", self.http, insecure=False)
        require_names("allowed", () if self.allowed is None else self.allowed)
        require_names("gone", self.gone)
        members = require_names("members", self.members)
        twice = next((each for place, each in enumerate(members) if each in members[:place]), None)
        if twice is not None:
            raise InputError(f"members has {seen(twice)} more than once; try each name once")
        if len(members) > self.limits.members:
            told = f"{len(self.members)} members, and limits.members is {self.limits.members}"
            raise InputError(f"there are {told}; try Limits(members={len(self.members)})")
        require_positive("tick", self.tick)


class Coordinator:
    """Runs a server: ``start`` it, or use it as a context manager, and ``stop`` it.

    ``plan`` and ``algorithm`` must say the same: the coordinator runs on the one, and agents that ask run on the other.

    Args:
        plan: The parts that it runs on.
        state: File of its state; it is made where there is none. It belongs to one process at a time.
        serving: Where and for whom it serves.
        algorithm: Table that agents without an algorithm of their own are sent: its name and its parameters, as in an
            experiment file, such as {"name": "LaconicUCB", "lam": 0.1}. One that makes another plan is refused. None:
            such agents are told that they must bring an algorithm.
        term: Number that tells this start from others, a whole number from 0 to 2⁵³ − 1; None: one is drawn. Give
            another at every start.

    Raises:
        InputError: ``plan`` and ``algorithm`` do not say the same, or one of them is none.
        LinkError: This process was forked from one that had an agent or a coordinator.
        StateInUse: Another process has the state file.
        StateError: The state file is of another plan, of a newer laconic, damaged, or none of a coordinator.
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
        if algorithm is not None:
            _require_same(plan, algorithm)
        if not isinstance(serving, Serving):
            raise InputError(f"serving must be a Serving, not {seen(serving)}; try Serving(bind='127.0.0.1:7443', …)")
        if term is not None:
            require_number("term", term)
        self.plan, self.serving = plan, serving
        self._background: Background = background()
        self._background.require_links()
        self._works = ThreadPoolExecutor(max(2, os.cpu_count() or 1), thread_name_prefix="laconic-merge")
        store = Store(state, role="coordinator", name="coordinator", plan=plan)
        try:
            server = _restored(plan, store, serving, term=secrets.randbits(40) if term is None else int(term))
        except BaseException:
            store.close()
            raise
        self._codec = Codec(plan, most_bytes=serving.limits.message_bytes)
        self.desk = Desk(server, store, codec=self._codec, pool=self._works, post=self._background.post)
        self.desk.allowed, self.desk.gone = serving.allowed, serving.gone
        self.started = time.monotonic()
        self._address = self._http_address = ""
        self._description = methods.Description(
            version=VERSION,
            dim=plan.belief.dim,
            algorithm=dict(algorithm or {}),
            fingerprint=plan.fingerprint,
            most_bytes=serving.limits.message_bytes,
        ).encoded()
        self._links = 0  # how many there ever were
        self.doors = Doors(serving.limits.links)
        self.onlookers = Onlookers(serving.limits.links)
        self._turns = Turns()
        self._is_serving = self._stopped = False
        self._server: grpc.aio.Server | None = None
        self._pages: Pages | None = None
        self._ticking: asyncio.Task[None] | None = None

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> Coordinator:
        """Serve, until it is stopped.

        Raises:
            LinkError: An address is taken, or is none of this machine's.
            InputError: A certificate or a key cannot be read.
        """
        self.desk.start()
        self.desk.put(Reviewed())
        try:
            self._background.run(self._start())
        except BaseException:
            self.stop()
            raise
        log.info("serving", extra={"address": self.address, "http": self.http_address, "term": self.desk.server.term})
        return self

    def stop(self, *, grace: float = 2.0) -> None:
        """Let links end, store what came, and let go of the state file; a second call does nothing.

        Args:
            grace: Seconds in which links may end by themselves; those that are left then are cut off. Raising it lets
                slow links take what is on its way.
        """
        if self._stopped:
            return
        self._stopped = True
        if not self.desk.store.is_held:  # a forked process has neither the links nor the threads to wait for
            self.desk.store.close()
            return
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

    def allow(self, names: Iterable[str] | None, *, gone: Iterable[str] = ()) -> None:
        """Let in these names from now on, and end the links of others, who then count as having left.

        Args:
            names: Names that may join, a set or a list of texts; a single text is refused. None: every name.
            gone: Names that may not, whatever ``names`` says.
        """
        allowed = None if names is None else frozenset(require_names("names", names))
        self.desk.allowed, self.desk.gone = allowed, frozenset(require_names("gone", gone))
        self._background.post([self.onlookers.wake])
        self.desk.put(Reviewed())

    def status(self) -> dict[str, Any]:
        """What is going on, as plain values."""
        return status_of(self)

    @property
    def address(self) -> str:
        """HOST:PORT that agents join at, with the port that it got where port 0 was asked for; empty before `start`."""
        return self._address

    @property
    def http_address(self) -> str:
        """HOST:PORT of the pages about it, with the port that it got; empty where there are none and before `start`."""
        return self._http_address

    @property
    def links(self) -> int:
        """How many links are up."""
        return len(self.doors.open)

    @property
    def is_ready(self) -> bool:
        """Whether it takes links, and can handle and store what comes on them."""
        return self._is_serving and self.trouble is None

    @property
    def trouble(self) -> str | None:
        """Why it can do nothing more before a restart, as where its disk failed; None where all is well."""
        return self.desk.trouble

    async def _start(self) -> None:
        serving, limits = self.serving, self.serving.limits
        server = grpc.aio.server(options=methods.settings(limits.message_bytes))
        server.add_generic_rpc_handlers(self._handlers())
        try:
            if serving.tls is None:
                port = server.add_insecure_port(serving.bind)
            else:
                port = server.add_secure_port(serving.bind, server_credentials(serving.tls))
        except RuntimeError:  # gRPC says no more than that it failed
            why = refusal(serving.bind)
            raise LinkError(f"cannot serve on {serving.bind}: {why}; try another port, or stop what has it") from None
        self._server = server
        await server.start()
        self._address = f"{serving.bind.rpartition(':')[0]}:{port}"
        if serving.http is not None:
            self._pages = Pages(self._page)
            self._http_address = await self._pages.start(serving.http)
        self._ticking = asyncio.create_task(self._tick())
        self._is_serving = True

    async def _stop(self, grace: float) -> None:
        self._is_serving = False
        if self._ticking is not None:
            self._ticking.cancel()
        self.onlookers.look(ready=self.is_ready)
        for door in list(self.doors.open):
            door.end("the coordinator is going away")
        if self._server is not None:
            await self._server.stop(grace)
        if self._pages is not None:
            await self._pages.stop()

    async def _tick(self) -> None:
        while True:
            self.desk.put(Passed(time.monotonic()))
            self.onlookers.look(ready=self.is_ready)
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
        await self._require_let_in(name_in(context), context)
        return self._description

    async def _require_let_in(self, identity: str | None, context: grpc.aio.ServicerContext) -> None:
        if identity is not None and not self.desk.lets_in(identity):
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, f"{identity!r} is not {LET_IN}")

    async def _check(self, asked: bytes, context: grpc.aio.ServicerContext) -> bytes:
        if asked not in methods.ASKED:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"the only service here is {methods.SERVICE}")
        return methods.SERVING if self.is_ready else methods.NOT_SERVING

    async def _watch(self, asked: bytes, context: grpc.aio.ServicerContext) -> None:
        """Tell of this coordinator's health whenever it changes; whose name is withdrawn is told no more."""
        identity, last = name_in(context), b""
        await self._require_let_in(identity, context)
        try:
            with self.onlookers.watching(identity):
                while True:
                    news = self.onlookers.news  # before looking, so that nothing which comes meanwhile is missed
                    await self._require_let_in(identity, context)
                    now = methods.SERVING if self.is_ready else methods.NOT_SERVING
                    now = now if asked in methods.ASKED else methods.UNKNOWN
                    if now != last:
                        last = now
                        await context.write(now)
                    await news.wait()
        except LinkError as error:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))

    async def _link(self, _: object, context: grpc.aio.ServicerContext) -> None:
        """One link, from its first bytes to its end."""
        if not self._is_serving:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the coordinator is going away")
        self._links += 1
        door = Door(self._links + FIRST_LINK, name_in(context))
        why = self.doors.admit(door)
        if why is not None:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, why)
        ending: Ending | None = None
        try:
            ending = await self._serve(door, context)
        except asyncio.CancelledError:  # the other end is gone
            pass
        finally:
            self._turns.end(door)
            self.doors.open.discard(door)
            self.desk.put(Gone(door))
        if ending is not None:
            code = grpc.StatusCode.PERMISSION_DENIED if ending.denied else grpc.StatusCode.ABORTED
            await context.abort(code, ending.reason[:500])

    async def _serve(self, door: Door, context: grpc.aio.ServicerContext) -> Ending | None:
        """Read and write until one of them ends; why, where this side ends it."""
        await context.send_initial_metadata(((methods.MOST_BYTES_KEY, str(self.serving.limits.message_bytes)),))
        reading = heeded(asyncio.create_task(self._read(door, context)))
        writing = heeded(asyncio.create_task(self._write(door, context)))
        overdue = heeded(asyncio.create_task(door.overdue()))
        try:
            done, _ = await asyncio.wait({reading, writing, overdue}, return_when=asyncio.FIRST_COMPLETED)
            ended = next((each for each in (writing, overdue) if each in done and each.exception() is None), None)
            return None if ended is None else ended.result()
        finally:
            for task in (reading, writing, overdue):
                task.cancel()

    async def _read(self, door: Door, context: grpc.aio.ServicerContext) -> None:
        """Hand over what comes, one message at a time: who sends more waits, and nobody else does."""
        handled = asyncio.Event()
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
            door.is_silent = False
            self.desk.put(Arrived(door, data, handled.set))
            del data  # it is read; what comes next may be long in coming
            await handled.wait()
            self._turns.end(door)
            limit = None

    async def _write(self, door: Door, context: grpc.aio.ServicerContext) -> Ending:
        """Send what is put into an outbox; large things in turn with other links."""
        while True:
            item = await door.outbox.get()
            if isinstance(item, Ending):
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
        why = foreign(asked.headers.get("host", ""), bound=self._http_address)
        if why is not None:
            return Answer(403, body=f"{why}\n".encode())
        return page_of(self, asked.path)


#: Numbers of links begin here: those of members that a server has from the start are their own numbers.
FIRST_LINK = 2**20


def _require_same(plan: Plan, algorithm: object) -> None:
    """A table that says what the plan says: agents that ask make their own plan of it, and another would be refused."""
    if not isinstance(algorithm, Mapping):
        raise InputError(
            f"algorithm must be a table, not {seen(algorithm)}; try algorithm={{'name': 'LaconicUCB', 'lam': 0.1}}"
        )
    told = registry.algorithm_from(algorithm).plan(plan.belief.dim)
    said = difference(plan.table, told.table)
    if said is not None:
        raise InputError(
            f"plan and algorithm must say the same, and {said} (here: in plan, there: in algorithm); "
            "try the same parameters in both"
        )


def _restored(plan: Plan, store: Store, serving: Serving, *, term: int) -> Server:
    """The server that left the records in a store, at the beginning of a term; the first time, one with its members."""
    if store.last == 0:
        first: list[Record] = [Server(plan, term=term).opened]
        store.append([*first, *(Joined(name=name, number=number) for number, name in enumerate(serving.members))])
    with store.reading():
        server, outcome = restore_server(
            store.records(), plan=plan, term=term, patience=serving.patience, most_members=serving.limits.members
        )
    store.append(outcome.keep)
    return server
