"""What an algorithm must keep to: its plan, and how it plays at ordinary and at odd sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic.algorithms import Algorithm
from laconic.checks import require_whole
from laconic.problems import Catalogue, Cosine, Log, Problem
from laconic.problems.base import Round
from laconic.protocol.difference import difference
from laconic.protocol.ledger import Count, Direction, Ledger
from laconic.protocol.messages import Message, payload_of
from laconic.protocol.plan import Plan
from laconic.protocol.records import Record, decode_record, encode_record
from laconic.protocol.restoring import restore_client, snapshot_client
from laconic.protocol.roster import Status
from laconic.randomness import Role, generator
from laconic.runtimes import RUNTIMES, loopback
from laconic.runtimes.network import Delivery, Network
from laconic.runtimes.trace import Run
from laconic.tail import News, Tail
from laconic.testing.belief_checks import check_belief
from laconic.testing.digest_checks import check_digest
from laconic.testing.exploration_checks import check_exploration
from laconic.testing.phase_checks import check_phase
from laconic.testing.runs import require_same_run
from laconic.testing.served import check_cover
from laconic.testing.trigger_checks import check_trigger
from laconic.testing.wording import Subject, points, rewards, same_belief
from laconic.triggers import Never

SEED = 3
#: So many different points are learnt to see which of its sums can make a trigger fire, however long that may take.
LEARNT = 64


def check_algorithm(algorithm: Algorithm, *, dim: int | None = None) -> None:
    """Check an algorithm, part by part and at play.

    It must be a frozen dataclass whose plan is made of sound parts; it must run at odd sizes, repeat itself exactly,
    choose the same arms however messages travel and in every runtime, be counted in full, and go on from its records,
    or from a snapshot of its state, as if nothing had happened. Its trigger must be able to fire on its own belief.

    Args:
        algorithm: A frozen dataclass with a method plan(dim); a value, and not the class.
        dim: Features of the arms, from 1, for an algorithm that takes no others; None: several numbers are tried.

    Raises:
        AssertionError: It breaks a contract; the message says which part does, and in which game.
    """
    subject = Subject.of("algorithm", algorithm)
    _check_value(subject, algorithm)
    for features in (1, 2) if dim is None else (dim,):
        require_whole("dim", features, least=1)
        _check_plan(subject.at(f"plan({features})"), algorithm, dim=features)
    for game in _games(dim):
        _check_game(subject.at(f"with {game.what}"), algorithm, game)
    _check_membership(subject.at("with clients that leave and join"), algorithm, dim=dim or 2)


def _check_value(subject: Subject, algorithm: Any) -> None:
    subject.claim(not isinstance(algorithm, type), "it is a class; check a value of it")
    subject.claim(isinstance(algorithm, Algorithm), "it has no method plan(dim)")
    settings: Any = getattr(algorithm, "__dataclass_params__", None)
    subject.claim(
        settings is not None and settings.frozen,
        "it must be a frozen dataclass, so that its fields are its parameters and results record them",
    )
    with subject.calling("dataclasses.replace(algorithm)"):
        dataclasses.replace(algorithm)


def _check_plan(subject: Subject, algorithm: Algorithm, *, dim: int) -> None:
    with subject.calling("plan(dim)"):
        plan, again = algorithm.plan(dim), algorithm.plan(dim)
    subject.claim(isinstance(plan, Plan), f"it must return a Plan, not {type(plan).__name__}")
    subject.claim(plan.belief.dim == dim, f"its belief has dim {plan.belief.dim}")
    subject.claim(same_belief(plan.belief, again.belief), "a second plan starts from another belief")
    with subject.calling("confidence.coefficient"):
        alpha = plan.confidence.coefficient(lam=plan.belief.lam, clients=3, information=2.0)
    subject.claim(np.isfinite(alpha) and alpha >= 0, f"the coefficient of confidence is {alpha!r}, not a number ≥ 0")
    check_exploration(plan.exploration)
    check_trigger(plan.trigger)
    check_belief(plan.belief)
    _check_fires(subject, plan)
    for index, phase in enumerate(plan.phases):
        check_phase(phase, belief=plan.belief, after=plan.phases[:index])
    if plan.digest is not None:
        check_digest(plan.digest, belief=plan.belief, wire=plan.wire)
    with subject.calling("plan(dim).fingerprint"):
        found = difference(plan.table, again.table)
        same = plan.fingerprint == again.fingerprint
    subject.claim(same, f"two sides could not play it together, as a second plan is another: {found}")


def _check_fires(subject: Subject, plan: Plan) -> None:
    """A trigger must be able to fire on the belief that everyone starts from, or nothing would ever be exchanged.

    A threshold that is merely large is none of our business: sums that grow at all are taken to have grown for as long
    as it takes, and only those that stay zero whatever is learnt stay zero.
    """
    if plan.trigger == Never():
        return
    tail = Tail(plan.belief)
    X, y = points(LEARNT, dim=plan.belief.dim, stream=70), rewards(LEARNT, stream=70)
    fired = False
    with subject.calling("learning through laconic.tail.Tail"):
        for x, reward in zip(X, y, strict=True):
            tail.append(plan.belief.view(x[None]), float(reward))
            fired = fired or bool(plan.trigger.fires(tail.fresh))
    news = tail.fresh
    longer = (News(*(10**power * each for each in (news.count, *news.sums()[1:]))) for power in range(1, 16))
    subject.claim(
        fired or any(plan.trigger.fires(each) for each in longer),
        f"its trigger {plan.trigger!r} can never fire on its belief, of which {LEARNT} points are news as {news}; "
        "choose a trigger that looks at something else, or Never() if nothing is to be exchanged",
    )


# -- at play -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Game:
    """A small problem at some sizes."""

    what: str
    problem: Problem
    clients: int
    rounds: int

    def play(self, algorithm: Algorithm, play: Callable[..., Run] = loopback.play, **options: Any) -> Run:
        instance = self.problem.instance(seed=SEED, clients=self.clients, rounds=self.rounds)
        return play(algorithm, instance, clients=self.clients, rounds=self.rounds, seed=SEED, **options)


def _games(dim: int | None) -> Iterator[_Game]:
    d = dim or 2
    yield _Game("fresh arms", Cosine(dim=d, arms=4), clients=3, rounds=7)
    yield _Game("points that repeat", Catalogue(dim=d, items=4, arms=3), clients=3, rounds=8)
    yield _Game("one client", Cosine(dim=d, arms=3), clients=1, rounds=8)
    yield _Game("one arm", Cosine(dim=d, arms=1), clients=3, rounds=4)
    yield _Game("one round", Cosine(dim=d, arms=3), clients=4, rounds=1)
    if dim is None:
        yield _Game("one feature", Cosine(dim=1, arms=4), clients=2, rounds=6)
    steps = 12
    equal = np.broadcast_to(points(1, dim=d), (steps, 3, d))
    yield _Game("equal arms", Log(equal, means=np.ones((steps, 3)), noise=rewards(steps)), clients=3, rounds=4)
    origin = Log(np.zeros((steps, 2, d)), means=np.zeros((steps, 2)), noise=rewards(steps))
    yield _Game("all arms at the origin", origin, clients=3, rounds=4)
    mask = np.arange(steps)[:, None] % 4 >= np.arange(4)
    arms = points(4 * steps, dim=d).reshape(steps, 4, d)
    varying = Log(arms, means=arms[..., 0], noise=0.1 * rewards(steps), mask=mask)
    yield _Game("arm sets of varying size", varying, clients=2, rounds=6)


def _check_game(subject: Subject, algorithm: Algorithm, game: _Game) -> None:
    with subject.calling("playing it"):
        reference = game.play(algorithm)
        again = game.play(algorithm)
    require_same_run(subject, again, reference, "when it is played again")
    _check_ledger(subject, reference)
    how = "when messages are shuffled and go through bytes"
    with subject.calling(f"playing it {how}"):
        moved = game.play(algorithm, delivery=Delivery(generator(SEED, Role.DELIVERY), through_bytes=True))
    require_same_run(subject, moved, reference, how)
    for name, play in RUNTIMES.items():
        with subject.calling(f"playing it in {name}"):
            moved = reference if play is loopback.play else game.play(algorithm, play)
        require_same_run(subject, moved, reference, f"in {name}")
    with subject.calling("restoring clients between steps"):
        _check_walk(subject, algorithm, game, reference)


def _check_ledger(subject: Subject, run: Run) -> None:
    total = sum(run.ledger.by("epoch", "client").values(), Count())
    subject.claim(total == run.ledger.total, "the ledger's entries do not add up to its total")
    phases = {phase for (phase,) in run.ledger.by("phase")}
    silent = run.syncs or not run.scalars or "upload" in phases  # whoever is alone sends, though nothing comes back
    subject.claim(silent, f"{run.scalars} scalars travelled without a sync")
    subject.claim((np.diff(run.scalars_at_sync) >= 0).all(), "the count of scalars went down at a sync")


class _Weighed(Ledger):
    """A ledger beside which every message is encoded in full and weighed."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.weighed = Count()

    def record(self, message: Message, *, direction: Direction, client: int) -> None:
        """Count one message twice over."""
        entries = sum(array.size for array in payload_of(message).values.values())
        self.weighed += Count(1, entries, len(self.codec.encode(message)))
        super().record(message, direction=direction, client=client)


def _check_walk(subject: Subject, algorithm: Algorithm, game: _Game, reference: Run) -> None:
    """The same game step by step, each client restored before it acts, by turns from its records and a snapshot."""
    instance = game.problem.instance(seed=SEED, clients=game.clients, rounds=game.rounds)
    plan = algorithm.plan(instance.dim)
    ledger = _Weighed(plan)
    network = Network(plan, clients=game.clients, seed=SEED, ledger=ledger, keep=True)
    for index in range(game.rounds):
        met = instance.round(index)
        for i in range(game.clients):
            step = index * game.clients + i
            if index % 3 == 2:
                network.records[i] = [snapshot_client(network.clients[i])]
            _restart(network, i, start=step)
            chosen = _step(network, i, met)
            expected = int(reference.choices[step])
            subject.claim(chosen == expected, f"step {step + 1} is arm {chosen}, not {expected}, once restored")
            for client in network.clients.values():
                check_cover(subject, client)
    subject.claim(ledger.weighed == ledger.total, f"{ledger.total} is counted, but {ledger.weighed} was sent")


def _restart(network: Network, i: int, *, start: int) -> None:
    """A client as it comes back from what was kept of it."""
    kept: list[Record] = [decode_record(encode_record(record)) for record in network.records[i]]
    network.clients[i], outcome = restore_client(kept, plan=network.plan, start=start)
    network.post(i, outcome)


def _step(network: Network, i: int, met: Round) -> int:
    available = np.arange(met.arms.shape[1]) if met.mask is None else np.flatnonzero(met.mask[i])
    client = network.clients[i]
    decision = client.choose(met.arms[i, available])
    arm = int(available[decision.arm])
    network.records[i].append(decision.record)
    network.settle(i, client.observe(decision.id, float(met.rewards[i, arm])))
    return arm


def _check_membership(subject: Subject, algorithm: Algorithm, *, dim: int) -> None:
    with subject.calling("playing it"):
        network = Network(algorithm.plan(dim), clients=3, seed=SEED)
        instance = Cosine(dim=dim, arms=4).instance(seed=SEED, clients=4, rounds=12)
        for index in range(12):
            if index == 4:
                network.settle(2, network.clients[2].leave())
            if index == 8:
                network.add(3, member=False)
                for number in (2, 3):
                    network.greet(number)
                    network.drain()
            for i, client in network.clients.items():
                _step(network, i, instance.round(index))
                check_cover(subject, client)
    here = [member for member in network.server.members.values() if member.status is Status.PRESENT]
    subject.claim(len(here) == 4, "not all clients are members after the last one joined")
    if network.plan.digest is None:
        agreed = all(same_belief(each.learner.belief, network.server.belief) for each in network.clients.values())
        subject.claim(agreed, "clients and server end with different beliefs")
    else:
        _check_log(subject.at("when everyone shares what it has"), network)


def _check_log(subject: Subject, network: Network) -> None:
    """The server's log must have all that was observed, and know what version everyone holds."""
    digest = network.plan.digest
    with subject.calling("flush()"):
        for number, client in network.clients.items():
            network.settle(number, client.flush())
    total, hub = sum(client.count for client in network.clients.values()), network.server.hub
    log = hub.log
    subject.claim(len(log) == total, f"the log has {len(log)} of {total} observations")
    for number, client in network.clients.items():
        number_held = client.session.held.number
        known = digest is None or digest.known(log, hub.editions, number=number_held, mark=client.mark)
        subject.claim(known is not None, f"the server does not know the version that client {number} holds")
