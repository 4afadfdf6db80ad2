"""Clients that ask a server at every decision: OneKernelUCB on rounded arms, with what the asking would weigh.

A server that is shown every arm and told every reward knows all points at once. So its choices are those of
OneKernelUCB on arms and rewards as they travel, whichever runtime plays that. What differs is what is sent: arms go up
as an ``Upload`` carries points, the choice comes down as one number, and the reward goes up by itself. All three are
weighed as messages of the protocol that carry as much. An arm that went up on the same link before is a number there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from laconic.algorithms import Algorithm, AskServer
from laconic.arrays import Floats, Ints
from laconic.growing import first_appearances
from laconic.kernels import as_kernel
from laconic.problems.base import Instance, Round
from laconic.problems.rounds import check_round
from laconic.protocol.known_points import PointTable
from laconic.protocol.ledger import Ledger
from laconic.protocol.messages import NothingNew, Payload, Upload
from laconic.protocol.parcels import Libraries, packed
from laconic.runtimes.trace import Run


def stand_in(algorithm: Algorithm) -> Algorithm:
    """What is planned and played for an algorithm: itself, or what the server runs for those that only ask it."""
    return algorithm.server() if isinstance(algorithm, AskServer) else algorithm


def asked(play: Callable[..., Run], algorithm: AskServer, instance: Instance, *, clients: int, **how: Any) -> Run:
    """A run in which the server chooses, played by a runtime as one of OneKernelUCB."""
    shown = _Shown(instance, algorithm=algorithm, clients=clients)
    run = play(algorithm.server(), shown, clients=clients, **how)
    ledger, sent = _weighed(run, shown)
    chances = None if run.chances is None else replace(run.chances, instance=instance)  # as clients saw the arms
    return replace(run, algorithm=algorithm, ledger=ledger, scalars_at_sync=sent, chances=chances)


class _Shown:
    """The arms of an instance as they reach the server, and the messages that bring them there."""

    def __init__(self, instance: Instance, *, algorithm: AskServer, clients: int) -> None:
        self._instance, self._clients, self.wire = instance, clients, algorithm.wire
        self._metric, self._lam = as_kernel(algorithm.kernel), algorithm.lam
        self._libraries = [Libraries.within(PointTable(instance.dim))] * clients
        self.uploads: list[list[Upload]] = []  # by round and client
        self.rewards: list[Floats] = []  # (N, A) by round
        self.best = getattr(instance, "best", None)
        self.places: list[Ints] = []  # (N, A) by round: an arm's place among those that are there

    @property
    def dim(self) -> int:
        """The number of features of an arm."""
        return self._instance.dim

    def round(self, index: int) -> Round:
        """A round as the server is shown it; a new one is also sent."""
        met = self._rounded(check_round(self._instance.round(index), index=index, clients=self._clients, dim=self.dim))
        if index == len(self.uploads):
            there = np.ones(met.rewards.shape, dtype=np.bool_) if met.mask is None else met.mask
            self.uploads.append([self._upload(index, i, met.arms[i, there[i]]) for i in range(self._clients)])
            self.rewards.append(met.rewards)
            self.places.append(np.cumsum(there, axis=1) - 1)
        return met

    def _rounded(self, met: Round) -> Round:
        rows = met.arms.reshape(-1, self.dim)
        number = first_appearances(rows)  # what returns is rounded once
        distinct = rows[np.unique(number, return_index=True)[1]]
        X, y = self.wire.rounded(distinct, met.rewards.ravel(), kernel=self._metric, lam=self._lam)
        return replace(met, arms=X[number].reshape(met.arms.shape), rewards=y.reshape(met.rewards.shape))

    def _upload(self, index: int, client: int, arms: Floats) -> Upload:
        values, records = packed(arms, self.wire, self._libraries[client])
        self._libraries[client] = self._libraries[client].sent_up(arms)
        return Upload(first=index, payload=Payload(values=values, records=records), ask=True)


def _weighed(run: Run, shown: _Shown) -> tuple[Ledger, Ints]:
    """What was sent in a run, and the scalars after each of its steps."""
    ledger = Ledger(run.algorithm.plan(shown.dim))
    sent = np.zeros(len(run.choices), dtype=np.int64)
    for step, arm in enumerate(run.choices):
        index, client = divmod(step, run.clients)
        reward = shown.wire.packed_rewards(shown.rewards[index][client, arm : arm + 1])
        answer = Upload(first=index, payload=Payload(values={"rewards": reward}), ask=False)
        ledger.record(shown.uploads[index][client], direction="up", client=client)
        ledger.record(NothingNew(known=int(shown.places[index][client, arm])), direction="down", client=client)
        if run.used is None or run.used[step]:  # a reward that is not known is not sent
            ledger.record(answer, direction="up", client=client)
        sent[step] = ledger.total.scalars
    return ledger, sent
