"""The sidecar: an agent for applications in other languages, as HTTP with JSON on this machine."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from types import TracebackType
from typing import Any

import msgspec

from laconic.checks import require_names, require_path, require_whole, seen
from laconic.errors import InputError, LaconicError, LinkError, StateError, UnknownDecision
from laconic.limits import MOST_AT_ONCE
from laconic.runtimes.service.agent import Agent, Status
from laconic.runtimes.service.background import background
from laconic.runtimes.service.hosts import foreign
from laconic.runtimes.service.openapi import DESCRIPTION, openapi
from laconic.runtimes.service.pages import JSON, UNIX, Answer, Asked, Pages
from laconic.runtimes.service.security import require_address
from laconic.runtimes.service.verbs import VERBS, Mistake, Verb, Waits

log = logging.getLogger("laconic.sidecar")
MOST_BODY, OWNER_ALONE = 2**22, "0600"
#: What a body may be said to be. The second is what curl says where it is told nothing; no form of a page is JSON then.
SAID = (JSON, "application/x-www-form-urlencoded")
#: The answer to an error; what comes first counts.
CODES: tuple[tuple[type[LaconicError], int], ...] = (
    (UnknownDecision, 404),
    (InputError, 422),
    (LinkError, 504),
    (StateError, 503),
)


class Sidecar:
    """Serves an agent to applications on this machine, as HTTP with JSON, until it is stopped.

    Args:
        agent: The agent; whoever made it closes it.
        listen: HOST:PORT of a loopback address, where port 0 takes a free one, or unix:PATH for a socket that its user
            alone may use unless ``socket_mode`` says otherwise.
        origins: Origins of web pages that may use it too, such as {"https://shop.example"}; others are answered 403.
        body_bytes: Bytes of the largest request that is taken, from 1024 to 2³¹ − 1; 4,194,304 unless said otherwise.
            A larger one is answered 413. Raising it takes more arms at a time, and more memory.
        socket_mode: Mode of the Unix socket as octal text: "0600" for its user alone, "0660" for its group too. Who may
            not enter its folder cannot use it either. On a port it stays "0600", and means nothing.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        listen: str,
        origins: frozenset[str] = frozenset(),
        body_bytes: int = MOST_BODY,
        socket_mode: str = OWNER_ALONE,
    ) -> None:
        require_whole("body_bytes", body_bytes, least=1024, most=MOST_AT_ONCE)
        self.agent, self._address = agent, ""
        self._listen = require_listen(listen)
        self._mode = require_mode(socket_mode, listen=self._listen)
        self._origins = frozenset(require_names("origins", origins))
        connections = sum(each.value.most for each in Waits)
        self._pages = Pages(self._answer, most_body=body_bytes, most_connections=connections)
        self._threads = {each: ThreadPoolExecutor(each.value.threads, "laconic-sidecar") for each in Waits}
        self._waiting = dict.fromkeys(Waits, 0)

    def start(self) -> Sidecar:
        """Serve, until it is stopped.

        Raises:
            LinkError: The address is taken, or the socket cannot be made.
            InputError: The path of the socket is that of another file.
        """
        self._address = background().run(self._pages.start(self._listen, mode=self._mode))
        log.info("serving", extra={"address": self.address, "agent": self.agent.name})
        return self

    @property
    def address(self) -> str:
        """Where it serves, with the port that it got where port 0 was asked for; empty before `start`."""
        return self._address

    def stop(self) -> None:
        """Take no more requests, and end those that are under way."""
        background().run(self._pages.stop())
        self._threads[Waits.FOR_COORDINATOR].shutdown(wait=False, cancel_futures=True)
        for each in (Waits.FOR_NOTHING, Waits.FOR_DISK):
            self._threads[each].shutdown(wait=True)

    def __enter__(self) -> Sidecar:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()

    async def _answer(self, asked: Asked) -> Answer:
        refusal = self._refusal(asked)
        if refusal is not None:
            return _mistake(403, refusal)
        origin = asked.headers.get("origin")
        allowed = {} if origin is None else {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
        answer = await self._answered(asked)
        return Answer(answer.code, answer.kind, answer.body, {**answer.headers, **allowed})

    def _refusal(self, asked: Asked) -> str | None:
        """Why a request is not for us: a page from elsewhere sent it, or a name that somebody else gave this host."""
        origin = asked.headers.get("origin")
        if origin is not None and origin not in self._origins:
            return f"pages of {origin[:200]!r} may not use this agent; list it under origins to allow that"
        return foreign(asked.headers.get("host", ""), bound=self._listen)

    async def _answered(self, asked: Asked) -> Answer:
        verb = VERBS.get(asked.path)
        if verb is None and asked.path != DESCRIPTION:
            return _mistake(404, f"there are {', '.join([*VERBS, DESCRIPTION])}")
        method = "GET" if verb is None else verb.method
        if asked.method == "OPTIONS":  # a browser asks before it sends
            allow = {"Access-Control-Allow-Methods": method, "Access-Control-Allow-Headers": "content-type"}
            return Answer(200, JSON, b"{}", allow)
        if asked.method != method:
            return _mistake(405, f"{asked.path} takes {method}", {"Allow": f"{method}, OPTIONS"})
        if verb is None:
            return Answer(200, JSON, msgspec.json.encode(openapi()))
        kind = asked.headers.get("content-type", JSON)
        if verb.body is not None and kind.partition(";")[0].strip().lower() not in SAID:
            return _mistake(415, f"the body is said to be {kind[:200]!r}; send it with Content-Type: {JSON}")
        return await self._done(verb, asked)

    async def _done(self, verb: Verb, asked: Asked) -> Answer:
        if verb.waits is Waits.FOR_NOTHING:
            return await self._call(verb, asked)
        kind = verb.waits.value
        if self._waiting[verb.waits] >= kind.most:  # the other connections are for those who wait for something else
            return _mistake(503, f"{kind.most} requests wait for {kind.what}; try again later")
        self._waiting[verb.waits] += 1
        try:
            return await self._call(verb, asked)
        finally:
            self._waiting[verb.waits] -= 1

    async def _call(self, verb: Verb, asked: Asked) -> Answer:
        threads = self._threads[verb.waits]
        return await asyncio.get_running_loop().run_in_executor(threads, partial(self._called, verb, asked))

    def _called(self, verb: Verb, asked: Asked) -> Answer:
        try:
            body = None if verb.body is None else _body(asked.body, verb)
            answer = verb.call(self.agent, body, asked.gone)
        except msgspec.ValidationError as error:
            return _mistake(422, str(error))
        except _Twice as error:
            return _mistake(400, str(error))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return _mistake(400, f"the body is no JSON: {error}")
        except LaconicError as error:
            return _mistake(next((code for kind, code in CODES if isinstance(error, kind)), 500), str(error))
        except Exception as error:  # whatever it is, whoever asked is told, and the next request is answered
            log.exception("a request could not be answered")
            return _mistake(500, f"{type(error).__name__}: {error}")
        return Answer(200, JSON, msgspec.json.encode(asdict(answer) if isinstance(answer, Status) else answer))


class _Twice(Exception):
    """A key that stands twice in a body: which of its values counts would be anybody's guess."""


def _body(data: bytes, verb: Verb) -> Any:
    body = msgspec.json.decode(data or (b"{}" if verb.spares_body else b""), type=verb.body)
    # Reading it again takes long where there are many arms, so that is done only where a key may stand there twice.
    if b"\\" in data or any(data.count(f'"{key}"'.encode()) > 1 for key in body.__struct_fields__):
        json.loads(data, object_pairs_hook=_once)
    return body


def _once(pairs: Sequence[tuple[str, Any]]) -> None:
    counts = Counter(key for key, _ in pairs)
    twice = next((key for key, count in counts.items() if count > 1), None)
    if twice is not None:
        raise _Twice(f"the body has the key {twice!r} more than once; send each key once")


def _mistake(code: int, error: str, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(code, JSON, msgspec.json.encode(Mistake(error)), headers or {})


def require_mode(mode: object, *, listen: str) -> int:
    """The mode of a socket, of octal text; its owner can use it, and nobody can execute it."""
    if not isinstance(mode, str) or not re.fullmatch("0?6[0246]{2}", mode, re.ASCII):
        raise InputError(f"socket_mode must be octal text, not {seen(mode)}; try '0660' to let the group in too")
    if int(mode, 8) != int(OWNER_ALONE, 8) and not listen.startswith(UNIX):
        raise InputError(f"socket_mode is {mode}, and listen is {listen}; try listen='unix:PATH', or leave it out")
    return int(mode, 8)


def require_listen(listen: object) -> str:
    """Where a sidecar serves: a loopback HOST:PORT, or unix:PATH."""
    if isinstance(listen, str) and listen.startswith(UNIX) and len(listen) > len(UNIX):
        require_path("listen", listen)
        return listen
    try:
        return require_address("listen", listen, insecure=True)
    except InputError as error:
        raise InputError(f"{error}; or 'unix:/run/laconic/edge-1.sock', a socket for this user alone") from None
