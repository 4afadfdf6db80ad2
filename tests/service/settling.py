"""Federations on real sockets, inside one process: coordinator, agents, and waiting until nothing is on its way."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from laconic.algorithms import Algorithm
from laconic.errors import LinkError
from laconic.protocol.server import ServerState
from laconic.runtimes.service.agent import Agent
from laconic.runtimes.service.coordinator import Coordinator, Serving

#: Long enough for any machine: nothing waits so long unless it is broken.
PATIENCE = 60.0


def serving(**options: Any) -> Serving:
    """Plaintext on a port of this machine that nobody uses."""
    return Serving(**{"bind": "127.0.0.1:0", "insecure": True, **options})


@contextmanager
def federation(
    algorithm: Algorithm, folder: Path, *, dim: int, clients: int, seed: int = 0
) -> Iterator[tuple[Coordinator, list[Agent]]]:
    """A coordinator that knows its members from the start, and these; numbers are those of a simulation."""
    names = tuple(str(i) for i in range(clients))
    with ExitStack() as stack:
        coordinator = Coordinator(
            algorithm.plan(dim), state=folder / "coordinator.db", serving=serving(members=names), term=0
        )
        stack.enter_context(coordinator)
        agents = [
            stack.enter_context(
                Agent.join(
                    coordinator.address,
                    name=name,
                    state=folder / f"{name}.db",
                    insecure=True,
                    algorithm=algorithm,
                    dim=dim,
                    seed=seed,
                )
            )
            for name in names
        ]
        for agent in agents:
            until(partial(is_linked, agent))
        settle(coordinator, agents)
        yield coordinator, agents


def is_flushed(agent: Agent) -> bool:
    """Whether a flush is answered, which is asked for here; one that nobody answers is not waited for for long."""
    with suppress(LinkError):
        agent.flush(timeout=5.0)
        return True
    return False


def is_linked(agent: Agent) -> bool:
    """Whether an agent has a link."""
    return agent.status().linked


def linked_again(agent: Agent) -> bool:
    """The same, once it was told to link now."""
    agent.reconnect()
    return agent.status().linked


def until(holds: Any, *, seconds: float = PATIENCE) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "this never came to hold"
        time.sleep(0.002)


def settle(coordinator: Coordinator, agents: Sequence[Agent]) -> None:
    """Wait until no message is on its way and no work under way."""
    last: list[tuple[int, int]] = []

    def is_quiet() -> bool:
        nonlocal last
        before, last = last, _moved(coordinator, agents)
        return bool(last) and last == before

    until(is_quiet)


def _moved(coordinator: Coordinator, agents: Sequence[Agent]) -> list[tuple[int, int]]:
    """How many messages went either way; nothing while some are on their way."""
    desk = coordinator.desk
    if desk.is_busy or desk.server.state in (ServerState.MERGING, ServerState.BUILDING):
        return []
    here = (desk.traffic.of("up").messages, desk.traffic.of("down").messages)
    told = [agent.status() for agent in agents]
    there = (sum(each.messages_sent for each in told), sum(each.messages_received for each in told))
    if any(each.unsent or each.working for each in told) or here != there:
        return []
    return [here, there]
