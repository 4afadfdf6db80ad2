"""A proxy of the environment is asked for other machines, and never for what is said in plaintext on this one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from laconic import DisLinUCB
from laconic.runtimes.service.coordinator import Coordinator
from tests.service.settling import serving, until

AGENT = """
import sys
from laconic import Agent
with Agent.join(sys.argv[1], name="a", state=sys.argv[2], insecure=True) as agent:
    agent.learn([[0.1, 0.2]], [1.0])
    agent.flush()
"""
COMMAND = [sys.executable, "-c", "from laconic.cli import main; main()"]
NAMES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy", "no_proxy", "no_grpc_proxy")


@contextmanager
def proxied() -> Iterator[tuple[dict[str, str], list[bytes]]]:
    """An environment with a proxy that refuses everything, and what that was asked."""
    asked: list[bytes] = []

    def answer(listening: socket.socket) -> None:
        while True:
            try:
                link = listening.accept()[0]
            except OSError:  # it was shut down
                return
            with link:
                asked.append(link.recv(4096))
                link.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, args=(listening,))
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        plain = {name: value for name, value in os.environ.items() if name.lower() not in NAMES}
        try:
            yield {**plain, "http_proxy": url, "https_proxy": url, "grpc_proxy": url}, asked
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_an_agent_in_plaintext_links_without_the_proxy_of_its_environment(tmp_path: Path) -> None:
    algorithm = {"name": "DisLinUCB", "D": 2.0}
    place, state = serving(), tmp_path / "c.db"
    with Coordinator(DisLinUCB(D=2.0).plan(2), state=state, serving=place, algorithm=algorithm) as there:
        with proxied() as (environment, asked):
            command = [sys.executable, "-c", AGENT, there.address, str(tmp_path / "a.db")]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        until(lambda: there.status()["observations"] == 1)
    assert (done.returncode, done.stderr, asked) == (0, "", [])


@pytest.mark.parametrize("words", [("status", "--json"), ("top", "--once")], ids=["status", "top"])
def test_a_coordinator_on_this_machine_is_looked_at_without_a_proxy(words: tuple[str, str], tmp_path: Path) -> None:
    place = serving(http="127.0.0.1:0")
    with Coordinator(DisLinUCB().plan(2), state=tmp_path / "c.db", serving=place) as there, proxied() as (env, asked):
        command = [*COMMAND, words[0], there.http_address, words[1]]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr, asked) == (0, "", [])
    assert there.address in done.stdout


def test_a_coordinator_on_another_machine_is_looked_at_through_the_proxy_of_the_environment() -> None:
    with proxied() as (environment, asked):
        command = [*COMMAND, "status", "bandit.invalid:7444"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, len(asked)) == (2, 1)
    assert asked[0].startswith(b"GET http://bandit.invalid:7444/status ")
    assert "502" in done.stderr
