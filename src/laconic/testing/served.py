"""A phase in the hands of a real server and real clients, whatever the order in which messages arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from laconic.arrays import Floats
from laconic.beliefs import Belief
from laconic.protocol.client import Client
from laconic.protocol.codec import decode, encode
from laconic.protocol.messages import Message, Request
from laconic.protocol.plan import Plan
from laconic.protocol.server import Server
from laconic.randomness import Role, generator
from laconic.testing.claims import Subject, close, points, rewards, rounding, same_belief

#: New observations of each client before the first, second and third sync; the last client leaves before the third.
SCRIPT: Mapping[int, tuple[int, int, int]] = {0: (3, 0, 0), 2: (0, 2, 0), 5: (4, 1, 0)}
LEAVER = max(SCRIPT)
ADVICE = "; a phase that makes the belief anew from histories must say replaces = True"


def observations(client: int, *, dim: int) -> tuple[Floats, Floats]:
    """All that a client will ever observe; clients share some points, and each has one twice."""
    count = sum(SCRIPT[client])
    X = np.concatenate([points(2, dim=dim), points(count, dim=dim, stream=client + 1)])[:count]
    return np.concatenate([X[:1], X[: count - 1]]), rewards(count, stream=client)


Pick = Callable[[int], int]


@dataclass(frozen=True)
class _Post:
    """A way to deliver messages: which of the waiting ones comes next, as an object or through bytes."""

    how: str
    pick: Pick
    through_bytes: bool = False

    def carried(self, message: Any) -> Any:
        return decode(encode(message)) if self.through_bytes else message


def _posts() -> list[_Post]:
    draw = generator(0, Role.DELIVERY)
    return [
        _Post("first come, first served", pick=lambda waiting: 0),
        _Post("last come, first served", pick=lambda waiting: waiting - 1),
        _Post("shuffled and through bytes", pick=lambda waiting: int(draw.integers(waiting)), through_bytes=True),
    ]


class _Star:
    """A server and clients that each absorb for themselves."""

    def __init__(self, plan: Plan, post: _Post) -> None:
        self.post = post
        self.server = Server(plan, members=list(SCRIPT))
        self.clients = {i: Client(plan, number=i, seed=0, clients=len(SCRIPT)) for i in SCRIPT}
        self.done = dict.fromkeys(SCRIPT, 0)

    def observe(self, client: int, count: int) -> None:
        X, y = observations(client, dim=self.server.plan.belief.dim)
        for s in range(self.done[client], self.done[client] + count):
            decision = self.clients[client].choose(X[s : s + 1])
            self.clients[client].observe(decision.id, float(y[s]))
        self.done[client] += count

    def settle(self, client: int, message: Message) -> None:
        """Deliver a message to the server and all that follows from it."""
        waiting: deque[tuple[bool, int, Any]] = deque([(True, client, message)])
        while waiting:
            waiting.rotate(-self.post.pick(len(waiting)))
            upward, number, sent = waiting.popleft()
            sent = self.post.carried(sent)
            outcome: Any = self.server.receive(number, sent) if upward else self.clients[number].receive(sent)
            waiting.extend((not upward, to, reply) for to, reply in outcome.send)

    def sync(self, starter: int) -> None:
        self.settle(starter, Request(epoch=self.server.epoch))


def check_served(subject: Subject, plan: Plan) -> None:
    """Run a few syncs in each order of delivery; all members must end with the same belief, bit for bit."""
    histories = [_played(subject.at(f"served {post.how}"), plan, post) for post in _posts()]
    for post, beliefs in zip(_posts()[1:], histories[1:], strict=True):
        equal = all(same_belief(a, b) for a, b in zip(histories[0], beliefs, strict=True))
        subject.claim(equal, f"parts delivered {post.how} lead to another belief than in order")


def _played(subject: Subject, plan: Plan, post: _Post) -> list[Belief]:
    """The beliefs after each sync of the script."""
    star, beliefs = _Star(plan, post), []
    for turn, starter in enumerate((0, 2, 0)):
        place = subject.at(f"{subject.place}, sync {turn + 1}")
        with place.calling("a sync"):
            if turn == 2:
                star.settle(LEAVER, star.clients[LEAVER].leave().send[0][1])
            for client in SCRIPT:
                star.observe(client, SCRIPT[client][turn])
            star.sync(starter)
        place.claim(star.server.epoch == turn + 1, "the sync did not come to its end")
        _check_agreement(place, star)
        beliefs.append(star.server.belief)
    if not plan.forgets_departed:
        _check_growth(subject, beliefs)
        _check_departure(subject, beliefs)
    with subject.calling("coming back after leaving"):
        star.settle(LEAVER, star.clients[LEAVER].join().send[0][1])
    _check_agreement(subject.at(f"{subject.place}, after a client came back"), star)
    return beliefs


def _check_agreement(subject: Subject, star: _Star) -> None:
    for i in star.server.members:
        client = star.clients[i]
        subject.claim(
            same_belief(client.belief, star.server.belief), f"client {i} and the server have different beliefs"
        )
        once = client.covered + client.tail.news.count == len(client.history)
        subject.claim(once, f"belief and tail of client {i} do not cover each of its observations exactly once")


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
