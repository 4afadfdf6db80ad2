"""A TCP proxy inside a test: links through it can be cut, delayed and slowed."""

from __future__ import annotations

import queue
import socket
import threading
import time
from contextlib import suppress


class Proxy:
    """Forwards connections to an address, ``seconds`` later and at most ``rate`` bytes a second."""

    def __init__(self, target: str, *, seconds: float = 0.0, rate: float | None = None) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._seconds, self._rate = seconds, rate
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.is_closed = False
        self.carried = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """Where to connect."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> int:
        """Break all connections now; how many."""
        with self._lock:
            sockets, self._open = self._open, set()
        for each in sockets:
            _shut(each)
        return len(sockets) // 2

    def close(self) -> None:
        """Take no more connections, and break those that there are."""
        self.is_closed = True
        self._listener.close()
        self.cut()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while not self.is_closed:
            try:
                near, _ = self._listener.accept()
            except OSError:
                continue
            try:
                far = socket.create_connection(self._target)
            except OSError:
                near.close()
                continue
            with self._lock:
                self._open |= {near, far}
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._forward, args=(one, other), daemon=True).start()

    def _forward(self, one: socket.socket, other: socket.socket) -> None:
        late: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        threading.Thread(target=self._deliver, args=(late, other), daemon=True).start()
        try:
            while data := one.recv(4096 if self._rate else 65536):
                if self._rate:
                    time.sleep(len(data) / self._rate)
                late.put((time.monotonic() + self._seconds, data))
        except OSError:
            pass
        finally:
            late.put((time.monotonic() + self._seconds, b""))
            _shut(one)
            one.close()

    def _deliver(self, late: queue.SimpleQueue[tuple[float, bytes]], other: socket.socket) -> None:
        """Hand on what came, each part so many seconds after it came; more may come in the meantime."""
        with suppress(OSError):
            while (part := late.get())[1]:
                time.sleep(max(0.0, part[0] - time.monotonic()))
                other.sendall(part[1])
                self.carried += len(part[1])
        _shut(other)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):  # the other end was quicker
        end.shutdown(socket.SHUT_RDWR)
