"""No members, one, and thousands."""

import numpy as np
import pytest

from laconic.algorithms import Algorithm
from laconic.protocol.ledger import Ledger
from laconic.protocol.messages import Join, Part, Payload, Request, Welcome
from laconic.protocol.server import Server, ServerState
from laconic.runtimes.network import Network
from tests.protocol.federation import APPROX, DIS, EVERY, LIN, Federation, name

THOUSANDS = 5000


@pytest.mark.parametrize("algorithm", EVERY, ids=name)
def test_one_client_is_its_own_federation(algorithm: Algorithm) -> None:
    federation = Federation(algorithm, members=1)
    for _ in range(20):
        federation.act(0)
        federation.drain()
        federation.check_quiet()


@pytest.mark.parametrize("algorithm", EVERY, ids=name)
def test_a_server_without_members_drops_what_comes_and_lets_clients_in(algorithm: Algorithm) -> None:
    server = Server(algorithm.plan(2), members=[])
    part = Part(epoch=0, phase=0, upto=0, payload=Payload())
    assert server.receive(0, Request(epoch=0)).dropped
    assert server.receive(0, part).dropped
    (receiver, welcome), *_ = server.receive(0, Join(stay=1)).send
    assert receiver == 0
    assert isinstance(welcome, Welcome)
    assert server.members == [0]


@pytest.mark.parametrize("algorithm", [DIS, LIN, APPROX], ids=name)
def test_thousands_of_clients_sync(algorithm: Algorithm) -> None:
    network = Network(algorithm.plan(2), clients=THOUSANDS, seed=0, ledger=Ledger())
    firing, random, synced = network.clients[THOUSANDS - 1], np.random.default_rng(0), False
    while not synced:
        decision = firing.choose(random.normal(size=(3, 2)))
        synced = network.settle(firing.observe(decision.id, 1.0))
    assert network.server.state is ServerState.IDLE
    assert {client.epoch for client in network.clients.values()} == {1}
    assert len({id(client.belief) for client in network.clients.values()}) == 1
    assert len(network.ledger.by("client")) == THOUSANDS
