"""Pages: a few read-only answers over plain HTTP, for probes, metrics and people."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

#: An answer to a path: status code, type, body.
Page = Callable[[str], tuple[int, str, bytes]]
REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 431: "Request Header Fields Too Large", 503: "Busy"}
MOST_HEADER, MOST_SECONDS, MOST_CONNECTIONS = 8192, 10.0, 64


class Pages:
    """A server of GET requests, each on a connection of its own."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._server: asyncio.Server | None = None
        self._open = 0

    async def start(self, address: str) -> str:
        """Serve at HOST:PORT; the address that it came to."""
        host, _, port = address.rpartition(":")
        self._server = await asyncio.start_server(self._serve, host.strip("[]"), int(port), limit=MOST_HEADER)
        return f"{host}:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Take no more requests."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            async with asyncio.timeout(MOST_SECONDS):
                writer.write(await self._answer(reader))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            pass  # who asked is gone
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        if self._open > MOST_CONNECTIONS:
            return _response(503, "text/plain", b"too many connections\n")
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _response(431, "text/plain", b"the header is too long\n")
        method, _, rest = head.partition(b" ")
        if method not in (b"GET", b"HEAD"):
            return _response(405, "text/plain", b"only GET is answered\n")
        path = rest.partition(b" ")[0].partition(b"?")[0].decode(errors="replace")
        code, kind, body = self._page(path)
        return _response(code, kind, body, is_head=method == b"HEAD")


def _response(code: int, kind: str, body: bytes, *, is_head: bool = False) -> bytes:
    head = (
        f"HTTP/1.1 {code} {REASONS.get(code, 'Error')}\r\nContent-Type: {kind}; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (b"" if is_head else body)
