"""The sidecar: an agent for applications in other languages, as HTTP with JSON on this machine."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from enum import Enum, unique
from functools import partial
from importlib.metadata import version
from types import TracebackType
from typing import Any

import msgspec

from laconic.checks import finite_array, require_names, require_whole, seen
from laconic.errors import InputError, LaconicError, LinkError, StateError, UnknownDecision
from laconic.limits import MOST_AT_ONCE
from laconic.protocol.learner import ArmId, Decision
from laconic.runtimes.service.agent import Agent, Status
from laconic.runtimes.service.background import background
from laconic.runtimes.service.hosts import foreign
from laconic.runtimes.service.pages import JSON, UNIX, Answer, Asked, Pages
from laconic.runtimes.service.security import require_address

log = logging.getLogger("laconic.sidecar")
MOST_BODY, MOST_TIMEOUT, OWNER_ALONE = 2**22, 300.0, "0600"
#: What a body may be said to be. The second is what curl says where it is told nothing; no form of a page is JSON then.
SAID = (JSON, "application/x-www-form-urlencoded")
#: So many requests that wait for nothing are answered beside those that wait.
MOST_BESIDE = 64


@dataclass(frozen=True)
class Waiting:
    """How many requests of one kind may wait at a time, with so many threads for them; what they wait for."""

    most: int
    threads: int
    what: str


@unique
class Waits(Enum):
    """What a request may wait for; each kind has its own places and threads, so that none waits behind another kind."""

    FOR_NOTHING = Waiting(most=MOST_BESIDE, threads=4, what="nothing")
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
    call: Callable[[Agent, Any], Any]
    waits: Waits

    @property
    def spares_body(self) -> bool:
        """Whether its body may be left out, as it has only defaults."""
        return self.body is not None and not any(each.required for each in msgspec.structs.fields(self.body))


def _choose(agent: Agent, body: ChooseBody) -> Chosen:
    ids: list[ArmId] | None = body.ids
    return Chosen.of(agent.choose(body.arms, ids=ids))


def _observe(agent: Agent, body: ObserveBody) -> Taken:
    try:
        agent.observe(body.decision, body.reward)
    except UnknownDecision as error:
        advice = "; that is its id and its point, as choose answered" if body.point is None else ""
        raise UnknownDecision(f"{error}{advice}") from None
    return _taken(agent)


def _learn(agent: Agent, body: LearnBody) -> Taken:
    agent.learn(body.points, body.rewards)
    return _taken(agent)


def _flush(agent: Agent, body: FlushBody) -> Taken:
    if not 0 < body.timeout <= MOST_TIMEOUT:
        raise InputError(f"timeout must be above 0 and at most {MOST_TIMEOUT:g} seconds, not {body.timeout:g}")
    agent.flush(body.timeout)
    return _taken(agent)


def _taken(agent: Agent) -> Taken:
    return Taken(agent.status().observations)


def _status(agent: Agent, _: None) -> Status:
    return agent.status()


def _reconnect(agent: Agent, _: NoBody) -> Status:
    agent.reconnect()
    return agent.status()


def _leave(agent: Agent, _: NoBody) -> Status:
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
DESCRIPTION = "/openapi.json"
#: The answer to an error; what comes first counts.
CODES: tuple[tuple[type[LaconicError], int], ...] = (
    (UnknownDecision, 404),
    (InputError, 422),
    (LinkError, 504),
    (StateError, 503),
)
MISTAKES = {
    400: "The body is no JSON, or a key of it stands there twice.",
    403: "The origin, or the host, is foreign.",
    404: "No decision waits under this id.",
    405: "The path takes another method.",
    411: "The body came without a Content-Length.",
    413: "The body is too large.",
    415: "The body is said to be neither JSON nor, as curl says where it is told nothing, of a form.",
    422: "The body does not have the right shape.",
    431: "The header is too long.",
    500: "The agent made a mistake of its own, which its log says.",
    503: "The state file could not be written, or too many wait for that, or for the coordinator.",
    504: "The coordinator did not answer in time.",
}


def openapi() -> dict[str, Any]:
    """What the sidecar answers, as an OpenAPI 3.1 document, made from the types that it checks with."""
    named = [kind for verb in VERBS.values() for kind in (verb.body, verb.answer) if kind is not None]
    kinds: list[Any] = list(dict.fromkeys([*named, Mistake]))
    schemas, parts = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    known = dict(zip(kinds, schemas, strict=True))
    return {
        "openapi": "3.1.0",
        "info": {"title": "laconic agent", "version": version("laconic")},
        "paths": {path: {verb.method.lower(): _operation(path, verb, known)} for path, verb in VERBS.items()},
        "components": {"schemas": parts},
    }


def _operation(path: str, verb: Verb, known: Mapping[Any, Any]) -> dict[str, Any]:
    mistakes = {str(code): _said(about, known[Mistake]) for code, about in MISTAKES.items()}
    body = {} if verb.body is None else {"required": not verb.spares_body, **_said("", known[verb.body])}
    return {
        "operationId": path.strip("/"),
        "summary": verb.about,
        **({"requestBody": body} if body else {}),
        "responses": {"200": _said("Done.", known[verb.answer]), **mistakes},
    }


def _said(about: str, schema: Any) -> dict[str, Any]:
    return {**({"description": about} if about else {}), "content": {JSON: {"schema": schema}}}


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
            return await self._call(verb, asked.body)
        kind = verb.waits.value
        if self._waiting[verb.waits] >= kind.most:  # the other connections are for those who wait for something else
            return _mistake(503, f"{kind.most} requests wait for {kind.what}; try again later")
        self._waiting[verb.waits] += 1
        try:
            return await self._call(verb, asked.body)
        finally:
            self._waiting[verb.waits] -= 1

    async def _call(self, verb: Verb, data: bytes) -> Answer:
        threads = self._threads[verb.waits]
        return await asyncio.get_running_loop().run_in_executor(threads, partial(self._called, verb, data))

    def _called(self, verb: Verb, data: bytes) -> Answer:
        try:
            body = None if verb.body is None else _body(data, verb)
            answer = verb.call(self.agent, body)
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
        return listen
    try:
        return require_address("listen", listen, insecure=True)
    except InputError as error:
        raise InputError(f"{error}; or 'unix:/run/laconic/edge-1.sock', a socket for this user alone") from None
