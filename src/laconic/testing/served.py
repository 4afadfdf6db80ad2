"""A phase in the hands of a real server and real clients, whatever the order in which messages arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from laconic.arrays import Floats
from laconic.beliefs import Belief
from laconic.protocol.client import Client
from laconic.protocol.plan import Plan
from laconic.protocol.session import ClientState
from laconic.randomness import Role, generator
from laconic.runtimes.network import Delivery, Network
from laconic.testing.wording import Subject, close, points, rewards, rounding, same_belief

#: New observations of each client before the first, second and third sync; the last client leaves before the third.
SCRIPT: Mapping[int, tuple[int, int, int]] = {0: (3, 0, 0), 2: (0, 2, 0), 5: (4, 1, 0)}
LEAVER = max(SCRIPT)
ADVICE = "; a phase that makes the belief anew from histories must say replaces = True"


def observations(client: int, *, dim: int) -> tuple[Floats, Floats]:
    """All that a client will ever observe; clients share some points, and each has one twice."""
    count = sum(SCRIPT[client])
    X = np.concatenate([points(2, dim=dim), points(count, dim=dim, stream=client + 1)])[:count]
    return np.concatenate([X[:1], X[: count - 1]]), rewards(count, stream=client)


def _posts() -> dict[str, Delivery]:
    """Ways to deliver messages."""
    return {
        "first come, first served": Delivery(),
        "shuffled": Delivery(shuffle=generator(1, Role.DELIVERY)),
        "shuffled and through bytes": Delivery(shuffle=generator(0, Role.DELIVERY), through_bytes=True),
    }


def check_served(subject: Subject, plan: Plan) -> None:
    """Run a few syncs in each order of delivery.

    All members must end with the same belief, bit for bit; another order may move the last bits of a sum.
    """
    histories = {how: _played(subject.at(f"served {how}"), plan, post) for how, post in _posts().items()}
    first, *others = histories.values()
    for how, beliefs in zip(list(histories)[1:], others, strict=True):
        equal = all(alike(a, b) for a, b in zip(first, beliefs, strict=True))
        subject.claim(equal, f"parts delivered {how} lead to another belief than in order")


def alike(one: Belief, other: Belief) -> bool:
    """Beliefs that say the same, but for rounding."""
    X, within = points(5, dim=one.dim), rounding(one)
    a, b, scale = one.view(X), other.view(X), max(1.0, abs(one.information))
    return (
        close(a.mean, b.mean, within=within)
        and close(a.variance, b.variance, within=within)
        and abs(one.information - other.information) <= within * scale
    )


def _observe(network: Network, client: int, *, first: int, count: int) -> None:
    X, y = observations(client, dim=network.plan.belief.dim)
    for s in range(first, first + count):
        decision = network.clients[client].choose(X[s : s + 1])
        network.settle(client, network.clients[client].observe(decision, float(y[s])))


def _played(subject: Subject, plan: Plan, post: Delivery) -> list[Belief]:
    """The beliefs after each sync of the script."""
    network, beliefs = Network(plan, clients=SCRIPT, seed=0, delivery=post, share=False), []
    for turn, starter in enumerate((0, 2, 0)):
        place = subject.at(f"{subject.place}, sync {turn + 1}")
        with place.calling("a sync"):
            if turn == 2:
                network.settle(LEAVER, network.clients[LEAVER].leave())
            for client in SCRIPT:
                _observe(network, client, first=sum(SCRIPT[client][:turn]), count=SCRIPT[client][turn])
            network.settle(starter, network.clients[starter].flush())
        place.claim(network.server.epoch.number == turn + 1, "the sync did not come to its end")
        _check_agreement(place, network)
        beliefs.append(network.server.belief)
    if not plan.forgets_departed:
        _check_growth(subject, beliefs)
        _check_departure(subject, beliefs)
    with subject.calling("coming back after leaving"):
        network.greet(LEAVER)
        network.drain()
    _check_agreement(subject.at(f"{subject.place}, after a client came back"), network)
    return beliefs


def _check_agreement(subject: Subject, network: Network) -> None:
    for i, client in network.clients.items():
        learner = client.learner
        if client.state is not ClientState.OUTSIDE:
            agreed = same_belief(learner.belief, network.server.belief)
            subject.claim(agreed, f"client {i} and the server have different beliefs")
        check_cover(subject, client)


def check_cover(subject: Subject, client: Client) -> None:
    """Belief and tail of a client must have each of its observations, and once."""
    once = client.learner.covered + client.learner.tail.news.count == client.count
    subject.claim(once, f"belief and tail of client {client.session.name} do not cover each observation exactly once")


def _check_growth(subject: Subject, beliefs: Sequence[Belief]) -> None:
    for before, after in pairwise(beliefs):
        was, now = before.information, after.information
        least = was - rounding(after) * max(1.0, was)
        subject.claim(now >= least, f"information fell from {was:.6g} to {now:.6g} at a sync{ADVICE}")


def _check_departure(subject: Subject, beliefs: Sequence[Belief]) -> None:
    """The last sync brought no news, and a client had left: only a phase that replaces may forget anything by that."""
    X = points(9, dim=beliefs[0].dim, stream=60)
    before, after, within = beliefs[-2].view(X), beliefs[-1].view(X), rounding(beliefs[-1])
    subject.claim(
        close(after.mean, before.mean, within=within) and close(after.variance, before.variance, within=within),
        "a sync without news changed the belief after a client had left" + ADVICE,
    )
