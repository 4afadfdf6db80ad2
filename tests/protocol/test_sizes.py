"""No members, one, and thousands."""

import numpy as np
import pytest

from laconic.algorithms import Algorithm
from laconic.protocol.ledger import Ledger
from laconic.protocol.messages import BLANK, Label, Leave, Part, Payload, Request
from laconic.protocol.server import ServerState
from laconic.protocol.session import ClientState
from laconic.runtimes.network import Network
from tests.protocol.federation import APPROX, DIS, EVERY, LIN, Federation, name

THOUSANDS = 2000


@pytest.mark.parametrize("algorithm", EVERY, ids=name)
def test_one_client_is_its_own_federation(algorithm: Algorithm) -> None:
    federation = Federation(algorithm, members=1)
    for _ in range(20):
        federation.act(0)
        federation.drain()
        federation.check_quiet()


@pytest.mark.parametrize("algorithm", EVERY, ids=name)
def test_a_server_without_members_drops_what_comes_and_lets_clients_in(algorithm: Algorithm) -> None:
    federation = Federation(algorithm, members=0)
    part = Part(epoch=BLANK, phase=0, upto=0, payload=Payload())
    for message in (Request(epoch=BLANK), part, Leave()):
        assert federation.server.receive(0, message).dropped
    federation.add(5, member=False)
    federation.greet(5)
    federation.drain()
    assert federation.clients[5].state is ClientState.IDLE
    assert federation.present == [5]


@pytest.mark.parametrize("algorithm", [DIS, LIN, APPROX], ids=name)
def test_thousands_of_clients_sync(algorithm: Algorithm) -> None:
    plan = algorithm.plan(2)
    network = Network(plan, clients=THOUSANDS, seed=0, ledger=Ledger(plan))
    firing, random, synced = network.clients[THOUSANDS - 1], np.random.default_rng(0), False
    while not synced:
        decision = firing.choose(random.normal(size=(3, 2)))
        network.settle(THOUSANDS - 1, firing.observe(decision.id, 1.0))
        synced = bool(network.installed)
    assert network.server.state is ServerState.IDLE
    assert {client.session.held for client in network.clients.values()} == {Label(0, 1)}
    assert len({id(client.learner.belief) for client in network.clients.values()}) == 1
    assert len(network.ledger.by("client")) == THOUSANDS
