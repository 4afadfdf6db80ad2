"""Pages: answers over plain HTTP, for probes, metrics, people, and applications beside an agent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import stat
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

import msgspec

from laconic.errors import InputError, LinkError
from laconic.runtimes.service.hosts import refusal

TEXT, JSON, HTML = "text/plain", "application/json", "text/html"
MOST_HEADER, MOST_SECONDS, MOST_CONNECTIONS = 8192, 10.0, 64
#: Where there are too many connections, the oldest on which no header came in so many seconds gives way.
PATIENT_SECONDS = 1.0
#: So many of these may be streams, which stay.
MOST_STREAMS = 32
#: Before the path of a Unix socket, where an address is expected.
UNIX = "unix:"
#: How long somebody whose body was not wanted may still send it, so that it comes to read why.
LINGER_SECONDS = 1.0


@dataclass(frozen=True)
class Asked:
    """A request; names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    gone: threading.Event = field(default_factory=threading.Event)  # set when whoever asked hangs up


@dataclass(frozen=True)
class Answer:
    """What is answered: a body, or a ``stream`` that goes on until either side ends it."""

    code: int
    kind: str = TEXT
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: AsyncIterator[bytes] | None = None

    def head(self) -> bytes:
        """Its status and headers, as they are sent."""
        lines = [
            f"HTTP/1.1 {self.code} {HTTPStatus(self.code).phrase}",
            f"Content-Type: {self.kind}; charset=utf-8",
            *([f"Content-Length: {len(self.body)}"] if self.stream is None else []),
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
            *(f"{name}: {value}" for name, value in self.headers.items()),
            "Connection: close",
        ]
        return "\r\n".join([*lines, "", ""]).encode()


class _Refused(Exception):
    """A request that is not even looked at."""

    def __init__(self, code: int, why: str) -> None:
        self.answer = Answer(code, JSON, msgspec.json.encode({"error": why}))


class Pages:
    """A server of requests, each on a connection of its own. ``answer`` is asked in the event loop."""

    def __init__(
        self,
        answer: Callable[[Asked], Awaitable[Answer]],
        *,
        most_body: int = 0,
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        """Serve what ``answer`` says; bodies of more than ``most_body`` bytes are refused unread."""
        self._asked, self._most_body, self._most_connections = answer, most_body, most_connections
        self._server: asyncio.Server | None = None
        self._socket: Path | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._reading: dict[asyncio.Task[None], float] = {}  # those without a whole header, by when they came
        self._streams = 0

    async def start(self, address: str, *, mode: int = 0o600) -> str:
        """Serve at HOST:PORT, or at unix:PATH for those whom the mode lets in; the address that it came to."""
        if address.startswith(UNIX):
            self._socket = Path(address.removeprefix(UNIX)).absolute()
            bound = _bound(self._socket, mode=mode)
            self._server = await asyncio.start_unix_server(self._serve, sock=bound, limit=MOST_HEADER)
            return f"{UNIX}{self._socket}"
        host, _, port = address.rpartition(":")
        try:
            self._server = await asyncio.start_server(self._serve, host.strip("[]"), int(port), limit=MOST_HEADER)
        except OSError:  # what it says is asyncio's, with the address as a tuple
            raise LinkError(f"cannot serve HTTP on {address}: {refusal(address)}; try another port") from None
        return f"{host}:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Take no more requests, and end those that are under way."""
        if self._server is None:
            return
        self._server.close()
        for task in list(self._serving):
            task.cancel()
        if self._serving:
            await asyncio.wait(self._serving, timeout=MOST_SECONDS)
        if self._socket is not None:
            self._socket.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            await self._exchange(reader, writer)
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            pass  # who asked is gone
        except asyncio.CancelledError:
            pass  # this server ends
        finally:
            self._serving.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(MOST_SECONDS):
                asked = await self._read(reader, writer)
        except _Refused as refused:
            await _write(writer, refused.answer.head() + refused.answer.body)
            await _linger(reader, writer)
            return
        answer = await self._answered(asked, reader)
        if answer.stream is not None and self._streams >= MOST_STREAMS:
            answer = Answer(503, JSON, msgspec.json.encode({"error": "as many look on as are let"}))
        await _write(writer, answer.head() + (b"" if asked.method == "HEAD" else answer.body))
        if answer.stream is not None and asked.method != "HEAD":
            await self._flow(answer.stream, writer)

    async def _answered(self, asked: Asked, reader: asyncio.StreamReader) -> Answer:
        watching = asyncio.create_task(_watch(reader, asked.gone))
        try:
            return await self._asked(asked)
        finally:
            watching.cancel()

    async def _flow(self, stream: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
        self._streams += 1
        try:
            async for part in stream:
                await _write(writer, part)
        finally:
            self._streams -= 1

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Asked:
        if len(self._serving) > self._most_connections:
            self._make_room()
        asked = _parsed(await self._head(reader))
        length = self._length(asked)
        if not length:
            return asked
        if asked.headers.get("expect", "").lower() == "100-continue":
            await _write(writer, b"HTTP/1.1 100 Continue\r\n\r\n")
        return Asked(asked.method, asked.path, asked.headers, await reader.readexactly(length))

    async def _head(self, reader: asyncio.StreamReader) -> bytes:
        task = asyncio.current_task()
        assert task is not None
        self._reading[task] = asyncio.get_running_loop().time()
        try:
            return await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            raise _Refused(431, "the header is too long") from None
        finally:
            self._reading.pop(task, None)

    def _make_room(self) -> None:
        """End the oldest connection that says nothing, or refuse the one that came."""
        oldest = next(iter(self._reading), None)
        if oldest is None or asyncio.get_running_loop().time() - self._reading[oldest] < PATIENT_SECONDS:
            raise _Refused(503, "too many connections")
        del self._reading[oldest]
        oldest.cancel()

    def _length(self, asked: Asked) -> int:
        if "transfer-encoding" in asked.headers:
            raise _Refused(411, "send the body with a Content-Length")
        said = asked.headers.get("content-length", "0")
        if not (said.isascii() and said.isdigit()):
            raise _Refused(400, f"Content-Length is {said[:20]!r}, which is no number")
        length = int(said.lstrip("0")[:20] or "0")
        if length > self._most_body:
            raise _Refused(413, f"the body has {length} bytes, and {self._most_body} are taken")
        return length


def _parsed(head: bytes) -> Asked:
    """A request without its body."""
    first, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _Refused(400, "this is no request of HTTP/1.1")
    pairs = [line.partition(":") for line in rest]
    if any(not colon or name != name.strip() for name, colon, _ in pairs):
        raise _Refused(400, "a header has no name")
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    for once in ("Content-Length", "Host"):  # two sides that look at different ones see different requests
        if sum(name.lower() == once.lower() for name, _, _ in pairs) > 1:
            raise _Refused(400, f"there are two headers {once}")
    return Asked(words[0], words[1].partition("?")[0], headers)


async def _watch(reader: asyncio.StreamReader, gone: threading.Event) -> None:
    """Tell when the other end has nothing more to say, which is how it hangs up."""
    with contextlib.suppress(OSError):
        while await reader.read(2**12):
            pass
    gone.set()


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    async with asyncio.timeout(MOST_SECONDS):
        writer.write(data)
        await writer.drain()


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read and drop what still comes: a connection that is closed before that may take the answer with it."""
    with contextlib.suppress(TimeoutError, OSError):
        async with asyncio.timeout(LINGER_SECONDS):
            if writer.can_write_eof():
                writer.write_eof()
            while await reader.read(2**16):
                pass


def _bound(path: Path, *, mode: int) -> socket.socket:
    """A Unix socket of that mode; one that nobody serves any more is replaced."""
    if not hasattr(socket, "AF_UNIX"):
        raise InputError("there are no Unix sockets on this system; give HOST:PORT")
    if path.is_symlink() and not path.exists():
        raise InputError(f"{path} is a link to nothing; give another path")
    if path.exists():
        _remove_left_over(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(str(path))
        path.chmod(mode)  # nobody can connect yet: it does not listen
    except OSError as error:
        bound.close()
        raise LinkError(f"cannot serve on {path}: {error}; try a short path in a folder that is there") from None
    return bound


def _remove_left_over(path: Path) -> None:
    if not stat.S_ISSOCK(path.stat().st_mode):
        raise InputError(f"{path} is there and is no socket; give another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError as error:
            raise LinkError(f"cannot tell who serves {path}: {error}; give another path") from None
    raise LinkError(f"somebody serves {path} already; stop that, or give another path")
