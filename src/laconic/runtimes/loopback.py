"""Loopback: event by event, in one process, with messages as objects. It is the executable specification."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from laconic.algorithms import Algorithm
from laconic.problems.base import Instance, Round
from laconic.protocol.client import Client
from laconic.runtimes.meeting import met
from laconic.runtimes.network import Delivery, Network
from laconic.runtimes.trace import Recorder, Run

Progress = Callable[[int], None]


def play(
    algorithm: Algorithm,
    instance: Instance,
    *,
    clients: int,
    rounds: int,
    seed: int,
    progress: Progress | None = None,
    delivery: Delivery | None = None,
    log: bool = False,
) -> Run:
    """Every client in turn, round by round: choose, observe, and deliver whatever messages that brings about.

    `laconic.run` checks its arguments first, and is what to call to play; this is what a runtime is compared with.

    Args:
        algorithm: Who plays: one value, without grids.
        instance: What is played, a problem opened for a seed and so many clients.
        clients: Clients N that learn together, from 1.
        rounds: Rounds T, from 1; every client acts once in each.
        seed: Seed of the clients' draws, from 0.
        progress: Called after every round with the number of steps so far; None: nothing is.
        delivery: How messages travel; None: as objects, first come, first served.
        log: True: the probability of every choice is kept too.
    """
    plan = algorithm.plan(instance.dim)
    recorder = Recorder(plan, clients=clients, rounds=rounds, log=instance if log else None)
    network = Network(plan, clients=clients, seed=seed, ledger=recorder.ledger, delivery=delivery, strict=True)
    seconds = 0.0
    for index in range(rounds):
        round_ = met(plan, instance, index=index, clients=clients)
        begun = time.perf_counter()
        choices = np.zeros(clients, dtype=np.int32)
        for i, client in network.clients.items():
            choices[i] = _interact(client, round_, network, recorder, step=index * clients + i + 1)
        recorder.round_done(index, round_, choices)
        seconds += time.perf_counter() - begun
        if progress is not None:
            progress((index + 1) * clients)
    best = getattr(instance, "best", None)
    return recorder.finish(algorithm=algorithm, seed=seed, rounds=rounds, seconds=seconds, best=best)


def _interact(client: Client, round_: Round, network: Network, recorder: Recorder, *, step: int) -> int:
    i = client.learner.number
    available = np.arange(round_.arms.shape[1]) if round_.mask is None else np.flatnonzero(round_.mask[i])
    decision = client.choose(round_.arms[i, available])
    arm = int(available[decision.arm])
    if recorder.chances is not None:
        recorder.chances.note(step - 1, decision.choice.chance)
    if round_.revealed is None or round_.revealed[i, arm]:
        outcome = client.observe(decision, float(round_.rewards[i, arm]))
    else:
        outcome = client.forget(decision.id)
    network.settle(i, outcome)
    recorder.exchanged(step, network.installed)
    recorder.downloaded(step, network.downloads)
    return arm
