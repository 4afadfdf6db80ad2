"""What applications, networks and disks do: one function for each kind of event."""

from __future__ import annotations

from collections.abc import Callable

from laconic.errors import UnknownDecision
from laconic.protocol.learner import Decision
from laconic.protocol.restoring import restore_client, restore_server, snapshot_client, snapshot_server
from laconic.protocol.session import ClientState
from laconic.testing.simulation import hostile
from laconic.testing.simulation.failure import Broken, require
from laconic.testing.simulation.links import Link
from laconic.testing.simulation.nodes import ClientNode, Node, client_state, server_state
from laconic.testing.simulation.schedule import Event
from laconic.testing.simulation.world import World


def _client(world: World, event: Event) -> ClientNode | None:
    """The client that an event is about; None while its process is down."""
    node = world.clients[event.pick(0, len(world.clients))]
    return None if node.machine is None else node


# -- applications ------------------------------------------------------------------------------------------------------


def choose(world: World, event: Event) -> None:
    """Choose, and report the reward later or never."""
    node = _client(world, event)
    if node is not None:
        _choose(world, node)


def _choose(world: World, node: ClientNode) -> Decision:
    try:
        decision = node.running.choose(world.arms())
    except Exception as error:
        raise Broken(f"client {node.name} could not choose: {error}") from error
    node.unwritten.append(decision.record)
    node.open.append(decision)
    world.say(f"client {node.name} chose {decision.id}")
    return decision


def act(world: World, event: Event) -> None:
    """Choose and report the reward."""
    node = _client(world, event)
    if node is not None and world.compresses and event.chance(1, 0.25):
        learn(world, event)
    elif node is not None:
        decision = _choose(world, node)
        _observe(world, node, decision, by_id=event.chance(2, 0.3))


def observe(world: World, event: Event) -> None:
    """Report the reward of an earlier decision."""
    node = _client(world, event)
    if node is not None and node.open:
        _observe(world, node, node.open[event.pick(1, len(node.open))], by_id=event.chance(2, 0.3))


def _observe(world: World, node: ClientNode, decision: Decision, *, by_id: bool) -> None:
    (reward,) = world.rewards(decision.point)
    if decision.id not in node.running.learner.pending and by_id:
        _observe_lost(world, node, decision, reward)
        by_id = False
    node.open.remove(decision)
    (known,) = world.journal.observed(decision.point, [reward], name=node.name)
    node.reported[decision.id] = decision, known
    world.say(f"client {node.name} observed {decision.id}" + (" by its id" if by_id else ""))

    def answered() -> None:
        node.reported.pop(decision.id, None)
        node.acknowledged.append(known)

    try:
        world.at_client(
            node, lambda client: client.observe(decision.id if by_id else decision, reward), answer=answered
        )
    except UnknownDecision as error:
        raise Broken(f"client {node.name} does not take the reward of a decision of its own: {error}") from error


def _observe_lost(world: World, node: ClientNode, decision: Decision, reward: float) -> None:
    """A decision whose record was lost is refused by its id."""
    try:
        world.at_client(node, lambda client: client.observe(decision.id, reward))
    except UnknownDecision:
        return
    raise Broken(f"client {node.name} took the reward of a decision that it does not know")


def learn(world: World, event: Event) -> None:
    """Learn from elsewhere."""
    node = _client(world, event)
    if node is None:
        return
    points = world.seen_elsewhere(event)
    rewards = world.rewards(points)
    known = world.journal.observed(points, rewards, name=node.name)
    world.say(f"client {node.name} learnt {len(known)} from elsewhere")
    world.at_client(node, lambda client: client.learn(points, rewards), answer=lambda: node.acknowledged.extend(known))


def forget(world: World, event: Event) -> None:
    """Give a decision up."""
    node = _client(world, event)
    if node is not None and node.open:
        decision = node.open.pop(event.pick(1, len(node.open)))
        if decision.id in node.running.learner.pending:
            world.say(f"client {node.name} forgets {decision.id}")
            world.at_client(node, lambda client: client.forget(decision.id))


def flush(world: World, event: Event) -> None:
    """Share everything now."""
    node = _client(world, event)
    if node is not None:
        flush_now(world, node)


def flush_now(world: World, node: ClientNode) -> None:
    """Share everything now, unless the client is outside."""
    if node.running.state is not ClientState.OUTSIDE:
        world.say(f"client {node.name} flushes")
        world.at_client(node, lambda client: client.flush())


def leave(world: World, event: Event) -> None:
    """Leave; it may come back by greeting."""
    node = _client(world, event)
    if node is None or node.running.state is ClientState.OUTSIDE:
        return
    world.say(f"client {node.name} leaves")
    world.at_client(node, lambda client: client.leave())
    world.perform(node)
    if node.link is not None:  # what was sent still arrives
        node.link.close_for_client()
        node.link = None


def lie(world: World, event: Event) -> None:
    """A hostile member makes something up."""
    node = world.clients[-1]
    if node.hostile and node.machine is not None and node.link is not None and not node.link.broken:
        for message in hostile.invented(node.running, world.draws(3), dim=world.schedule.dim):
            world.lie(node, message)


# -- the network -------------------------------------------------------------------------------------------------------


def ways(world: World) -> list[tuple[Link, str]]:
    """The directions in which something waits to be delivered."""
    found = []
    for link in world.links.values():
        if link.up.queue and link.server_has and world.server.machine is not None:
            found.append((link, "up"))
        if link.down.queue and link.client_has and world.clients[link.client].machine is not None:
            found.append((link, "down"))
    return found


def deliver(world: World, event: Event) -> None:
    """Deliver the oldest message of some link; sometimes also some of what follows from it."""
    waiting = ways(world)
    if waiting:
        deliver_one(world, *waiting[event.pick(0, len(waiting))])
    if event.chance(1, 0.25):
        for _ in range(event.pick(2, 12)):
            step(world, event)


def step(world: World, event: Event) -> bool:
    """Some work or one message; False when there is none."""
    busy, waiting = [node for node in world.nodes if node.works], ways(world)
    if busy:
        world.work(busy[event.pick(0, len(busy))], 0)
    elif waiting:
        deliver_one(world, *waiting[event.pick(0, len(waiting))])
    return bool(busy or waiting)


def deliver_one(world: World, link: Link, way: str) -> None:
    """Deliver the oldest message of a link."""
    if way == "up":
        world.arrive_up(link, link.up.next())
    else:
        world.arrive_down(link, link.down.next())


def repeat(world: World, event: Event) -> None:
    """A message comes once more on its link."""
    links = [link for link in world.links.values() if link.up.seen or link.down.seen]
    if not links:
        return
    link = links[event.pick(0, len(links))]
    if link.up.seen and (event.chance(1, 0.5) or not link.down.seen):
        link.pure = False
        world.arrive_up(link, link.up.seen[event.pick(2, len(link.up.seen))])
    elif link.client_has:
        link.pure = False
        world.arrive_down(link, link.down.seen[event.pick(2, len(link.down.seen))])


def break_link(world: World, event: Event) -> None:
    """A link breaks; its ends hear of it when they notice."""
    links = [link for link in world.links.values() if not link.broken]
    if links:
        link = links[event.pick(0, len(links))]
        link.end(event.draws[1], event.draws[2])
        world.say(f"link {link.number} of client {link.client} breaks")


def notice(world: World, event: Event) -> None:
    """One end of a broken link hears of it; the server may also give up one that is not broken."""
    links = [link for link in world.links.values() if link.broken and (link.client_has or link.server_has)]
    if not links:
        return
    link = links[event.pick(0, len(links))]
    node = world.clients[link.client]
    if event.chance(1, 0.5) and link.server_has and world.server.machine is not None:
        world.say(f"the server hears that link {link.number} is down")
        world.close_at_server(link)
    elif node.link is link and node.machine is not None:
        world.say(f"client {node.name} hears that link {link.number} is down")
        world.close_at_client(node)


def connect(world: World, event: Event) -> None:
    """A client opens a link and greets."""
    node = _client(world, event)
    if node is None or (node.link is not None and not node.link.broken and event.chance(1, 0.8)):
        return
    if node.link is not None:  # the server may still think that the old one is up
        if event.chance(2, 0.5):
            world.close_at_client(node)
        else:
            node.link.end(event.draws[1], event.draws[2])
            node.link.close_for_client()
    connect_now(world, node)


def connect_now(world: World, node: ClientNode) -> None:
    """Open a link and greet."""
    link = world.new_link(node)
    world.say(f"client {node.name} greets on link {link.number}")
    world.at_client(node, lambda client: client.greet())


def tick(world: World, event: Event) -> None:
    """Time passes."""
    if world.server.machine is not None:
        tick_now(world, [1.0, 6.0, 40.0][event.pick(0, 3)])


def tick_now(world: World, seconds: float) -> None:
    """Time passes."""
    world.now += seconds
    world.say(f"it is {world.now:g}")
    world.at_server(lambda server: server.tick(world.now))


# -- effects and work --------------------------------------------------------------------------------------------------


def perform(world: World, event: Event) -> None:
    """Some effects that waited are performed; or those that follow wait from here on, or no longer."""
    if event.chance(1, 0.3):
        world.lazy = not world.lazy
        return
    waiting = [node for node in world.nodes if node.effects]
    if waiting:
        world.perform(waiting[event.pick(0, len(waiting))], 1 + event.pick(2, 3))


def work(world: World, event: Event) -> None:
    """Some work is done."""
    busy = [node for node in world.nodes if node.works]
    if busy:
        world.work(busy[event.pick(0, len(busy))], event.draws[1])


# -- crashes and disks -------------------------------------------------------------------------------------------------


def crash_client(world: World, event: Event) -> None:
    """A client's process is killed, between two of its effects."""
    node = _client(world, event)
    if node is None:
        return
    world.perform(node, event.pick(1, 4))
    world.say(f"client {node.name} crashes with {len(node.effects)} effects to come")
    crash_client_now(node, event)


def crash_client_now(node: ClientNode, event: Event) -> None:
    """A client's process is killed; its application will report again what was not answered."""
    node.forget_all()
    node.unwritten.clear()
    node.machine = None
    if node.link is not None:
        node.link.end(event.draws[1], 0)
        node.link.close_for_client()
        node.link = None


def restart_client(world: World, event: Event) -> None:
    """A client's process starts again, from all of its records, from older ones, or from none."""
    node = world.clients[event.pick(0, len(world.clients))]
    if node.machine is not None or node.dead:
        return
    older = event.pick(1, 10)
    if older == 0:
        world.say(f"client {node.name} starts from nothing")
        world.begin_client(node, member=False)
        node.acknowledged.clear()
        _report_again(node)
        return
    if older in (1, 2, 3) and node.store.go_back(event.draws[2]):
        node.acknowledged.clear()
    restart_client_now(world, node)


def restart_client_now(world: World, node: ClientNode) -> None:
    """A client's process starts from its records."""
    world.say(f"client {node.name} starts from {len(node.store.entries)} records")
    expected = node.store.state
    client, outcome = restore_client(node.store.records(), plan=world.plan, start=world.random_number())
    # A factor that clients share grows in steps that none of their records tells: the last bits may be others.
    in_steps_of_all = world.schedule.shared and world.plan.digest is not None
    same = expected is None or in_steps_of_all or client_state(client) == expected
    require(same, f"client {node.name} is not what its records say")
    node.machine, node.state = client, client_state(client)
    for record in outcome.keep:
        node.store.append(record, after=node.state)
    node.works.extend(outcome.compute)
    _report_again(node)
    if client.state not in (ClientState.OUTSIDE, ClientState.AWAY):
        world.at_client(node, lambda client: client.lose())


def _report_again(node: ClientNode) -> None:
    """An application reports again what was neither answered nor stored."""
    known = set(node.running.learner.history.rewards.tolist())
    for decision, reward in node.reported.values():
        if reward in known:
            node.acknowledged.append(reward)
        else:
            node.open.append(decision)
    node.reported.clear()


def crash_server(world: World, event: Event) -> None:
    """The server's process is killed, between two of its effects."""
    if world.server.machine is None:
        return
    world.perform(world.server, event.pick(1, 5))
    world.say(f"the server crashes with {len(world.server.effects)} effects to come")
    world.server.forget_all()
    world.server.machine = None
    for link in world.links.values():
        if link.server_has:
            link.end(0, event.draws[2])
            link.close_for_server()


def restart_server(world: World, event: Event) -> None:
    """The server's process starts again, from all of its records or from older ones."""
    if world.server.machine is None:
        if event.chance(1, 0.3):
            world.went_back |= world.server.store.go_back(event.draws[2])
        restart_server_now(world)


def restart_server_now(world: World) -> None:
    """The server's process starts from its records."""
    node, term = world.server, world.random_number()
    world.say(f"the server starts from {len(node.store.entries)} records, term {term:x}")
    expected = node.store.state
    server, outcome = restore_server(node.store.records(), plan=world.plan, term=term, patience=world.patience)
    require(expected is None or server_state(server) == expected, "the server is not what its records say")
    node.machine, node.state = server, server_state(server)
    for record in outcome.keep:
        node.store.append(record, after=node.state)
    node.works.extend(outcome.compute)
    world.journal.logged(server.hub)
    world.journal.edited(server.hub)
    world.at_server(lambda server: server.tick(world.now))


def compact(world: World, event: Event) -> None:
    """A snapshot takes the place of records."""
    node = world.nodes[event.pick(0, len(world.nodes))]
    if node.effects:
        return
    if node is world.server and world.server.machine is not None:
        node.store.compact(snapshot_server(world.server.machine))
    elif isinstance(node, ClientNode) and node.machine is not None:
        node.store.compact(snapshot_client(node.machine))
        node.unwritten.clear()


def back_up(world: World, event: Event) -> None:
    """A copy of a store is put aside."""
    node: Node = world.nodes[event.pick(0, len(world.nodes))]
    node.store.back_up()


def die(world: World, event: Event) -> None:
    """A client's process ends for good; the server is not told."""
    node = _client(world, event)
    if node is not None and len([each for each in world.clients if not each.dead]) > 1:
        world.say(f"client {node.name} dies")
        crash_client_now(node, event)
        node.dead = True


EVENTS: dict[str, Callable[[World, Event], None]] = {
    "deliver": deliver,
    "work": work,
    "perform": perform,
    "act": act,
    "choose": choose,
    "observe": observe,
    "learn": learn,
    "forget": forget,
    "flush": flush,
    "connect": connect,
    "leave": leave,
    "break": break_link,
    "notice": notice,
    "repeat": repeat,
    "tick": tick,
    "crash client": crash_client,
    "restart client": restart_client,
    "crash server": crash_server,
    "restart server": restart_server,
    "compact": compact,
    "back up": back_up,
    "die": die,
    "lie": lie,
}
