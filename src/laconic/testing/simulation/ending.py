"""The end of a schedule: faults stop, everyone gets a link and flushes, and all must come to agree."""

from __future__ import annotations

import numpy as np

from laconic.protocol.digests.atoms import GROWTH, Atoms
from laconic.protocol.server import Server, ServerState
from laconic.protocol.session import ClientState
from laconic.testing.simulation import acts
from laconic.testing.simulation.failure import require
from laconic.testing.simulation.nodes import ClientNode
from laconic.testing.simulation.schedule import Event
from laconic.testing.simulation.world import World

#: How many steps the end may take before one says that it never comes.
MOST_STEPS = 4000
ROUNDS = 2


def conclude(world: World) -> None:
    """Bring everything to rest and check that everyone agrees."""
    world.event = Event(10**6, "end", (0, 0, 0))
    world.lazy = False
    _restart(world)
    _reconnect(world)
    settle(world)
    _check_nobody_is_stuck(world)
    for round_ in range(ROUNDS):
        for node in present(world):
            world.event = Event(10**6 + 10 * round_ + node.index, "end", (node.index, 0, 0))
            acts.flush_now(world, node)
        settle(world)
        _check_nobody_is_stuck(world)
    world.check(numbers=True)
    _check_rest(world)


def present(world: World) -> list[ClientNode]:
    """Honest clients that are up."""
    return [node for node in world.clients if node.machine is not None and not node.hostile]


def _restart(world: World) -> None:
    for node in world.nodes:
        world.perform(node)
    if world.server.machine is None:
        acts.restart_server_now(world)
    for node in world.clients:
        if node.machine is None and not node.dead:
            acts.restart_client_now(world, node)


def _reconnect(world: World) -> None:
    """Links that are not in order are down, for both ends; each honest client without one greets on a new one.

    Others go on as they are, so that nobody is helped out of where it is stuck.
    """
    for link in list(world.links.values()):
        node = world.clients[link.client]
        in_order = node.link is link and link.server_has and link.pure and not link.broken
        if in_order and not node.hostile:
            continue
        link.end(0, 0)
        if link.server_has:
            world.close_at_server(link)
        if node.link is link and node.machine is not None:
            world.close_at_client(node)
    for node in present(world):
        if node.link is None:
            acts.connect_now(world, node)


def settle(world: World) -> None:
    """Deliver everything and do all work, and let time pass until nothing more comes of it."""
    steps = 0
    quiet = 0
    while quiet < 2:
        moved = acts.step(world, world.event)
        world.check(numbers=False)
        steps += moved
        require(steps < MOST_STEPS, "there is no end to messages")
        if moved:
            quiet = 0
            continue
        quiet += 1
        acts.tick_now(world, world.patience.seconds + 1.0)
        for node in present(world):
            if node.link is None:
                acts.connect_now(world, node)


def _check_nobody_is_stuck(world: World) -> None:
    """Everyone rests, or waits for what others may do."""
    server = world.server.running
    require(server.state is ServerState.IDLE, f"the server is still {server.state.value}")
    for node in present(world):
        client = node.running
        number, hub = client.session.number, server.hub
        # a request waits for a quorum, and an ask until somebody else learns something
        waits = client.state is ClientState.WAITING and (number in hub.requests or number in hub.asks)
        require(waits or client.state is ClientState.IDLE, f"client {node.name} is still {client.state.value}")


def _check_rest(world: World) -> None:
    server, members = world.server.running, present(world)
    if world.plan.phases and len(members) < world.schedule.quorum:
        return
    for node in members:
        client = node.running
        own = client.learner.history.rewards.tolist()
        if world.plan.phases:
            require(
                client.session.held == server.epoch,
                f"client {node.name} is in {client.session.held}, others in {server.epoch}",
            )
            require(client.learner.covered == len(own), f"the belief lacks points of client {node.name}")
        elif world.plan.digest is not None:
            _check_log(node, server)


def _check_log(node: ClientNode, server: Server) -> None:
    """The log has all of a client's observations in its order, and the client lacks little that others put there."""
    client, hub = node.running, server.hub
    own = hub.members[hub.numbers[node.name]].lineage.places.values.astype(np.int64)
    same = np.array_equal(hub.log.rewards[own], client.learner.history.rewards)
    require(same, f"the log lacks points of client {node.name}")
    assert client.held is not None
    length = client.held.built.length
    lacked = len(hub.log) - length - int((own >= length).sum())
    spared = GROWTH * length if isinstance(hub.plan.digest, Atoms) else length
    require(lacked == 0 or len(hub.log) < spared, f"client {node.name} flushed, and lacks {lacked} points of others")
