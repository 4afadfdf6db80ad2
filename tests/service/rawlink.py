"""A link without an agent: bytes in, bytes out, as somebody with bad intentions would send them."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import grpc

from laconic.canonical import table_bytes
from laconic.protocol.codec import Codec
from laconic.protocol.messages import BLANK, Hello
from laconic.protocol.plan import Plan
from laconic.runtimes.service import methods


class RawLink:
    """A stream to a coordinator, in plaintext."""

    def __init__(self, address: str, plan: Plan, *, most_bytes: int = 2**30) -> None:
        self.plan, self.codec = plan, Codec(plan)
        self._channel = grpc.insecure_channel(address, options=methods.settings(most_bytes))
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._call = self._channel.stream_stream(methods.path(methods.SERVICE, methods.LINK))(self._sent())

    def _sent(self) -> Iterator[bytes]:
        while (data := self._out.get()) is not None:
            yield data

    def send(self, message: Any) -> None:
        """Send a message, or bytes as they are."""
        self._out.put(message if isinstance(message, bytes) else self.codec.encode(message))

    def receive(self) -> Any:
        """The next message."""
        return self.codec.decode(next(self._call))

    def greet(self, name: str, **fields: Any) -> Any:
        """Greet, and the answer to that."""
        self.say_hello(name, **fields)
        return self.receive()

    def say_hello(self, name: str, **fields: Any) -> None:
        """Greet, and wait for no answer."""
        plain = {"incarnation": 0, "count": 0, "held": BLANK, "mark": 0, "greeting": 1}
        self.send(Hello(name=name, plan=table_bytes(self.plan.table), **{**plain, **fields}))

    def ended(self) -> tuple[grpc.StatusCode, str]:
        """Wait for its end: what the other side said."""
        try:
            for _ in self._call:
                pass
        except grpc.RpcError:
            pass
        return self._call.code(), self._call.details()

    def close(self) -> None:
        """Go away."""
        self._out.put(None)
        self._channel.close()

    def __enter__(self) -> RawLink:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
