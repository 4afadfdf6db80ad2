"""What a run leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic.algorithms import Algorithm
from laconic.beliefs import Belief
from laconic.problems.base import Round
from laconic.protocol.ledger import Ledger


@dataclass(frozen=True, eq=False)
class Run:
    """One algorithm on one seed of a problem, step by step; step t = N(l−1)+i is client i in round l."""

    algorithm: Algorithm
    seed: int
    clients: int
    rounds: int
    choices: NDArray[np.int32]  # (NT,) the chosen arm of each step
    regrets: NDArray[np.float64]  # (NT,) the pseudo-regret of each step
    sync_steps: NDArray[np.int64]  # the steps t = 1 … NT after which a sync ran
    dictionary_sizes: NDArray[np.int64]  # |S| after each sync; empty where there is no dictionary
    scalars_at_sync: NDArray[np.int64]  # all scalars sent up to and with each sync
    ledger: Ledger
    seconds: float  # without making the problem's arms

    @property
    def regret(self) -> float:
        """R = Σ r_t."""
        return float(self.regrets.sum())

    @property
    def scalars(self) -> int:
        """C: scalars transferred, both directions."""
        return self.ledger.total.scalars

    @property
    def bytes(self) -> int:
        """Bytes of all encoded messages."""
        return self.ledger.total.bytes

    @property
    def messages(self) -> int:
        """All messages, control messages included."""
        return self.ledger.total.messages

    @property
    def syncs(self) -> int:
        """How many synchronisations there were."""
        return len(self.sync_steps)

    @property
    def dictionary(self) -> int | None:
        """The final |S|; None where there is no dictionary."""
        return int(self.dictionary_sizes[-1]) if len(self.dictionary_sizes) else None


class Recorder:
    """Gathers a run as it happens."""

    def __init__(self, *, clients: int, rounds: int) -> None:
        self.clients = clients
        self.choices = np.zeros(clients * rounds, dtype=np.int32)
        self.regrets = np.zeros(clients * rounds)
        self.ledger = Ledger()
        self._syncs: list[tuple[int, int | None, int]] = []

    def round_done(self, index: int, round_: Round, choices: NDArray[np.int32]) -> None:
        """Note what all clients chose in a round."""
        means = round_.means if round_.mask is None else np.where(round_.mask, round_.means, -np.inf)
        steps = slice(index * self.clients, (index + 1) * self.clients)
        chosen = np.take_along_axis(means, choices[:, None].astype(np.int64), axis=1)[:, 0]
        self.choices[steps] = choices
        self.regrets[steps] = means.max(axis=1) - chosen

    def sync_done(self, step: int, belief: Belief) -> None:
        """Note a sync that ran after step ``step`` = 1 … NT."""
        self._syncs.append((step, belief.dictionary_size, self.ledger.total.scalars))

    def finish(self, *, algorithm: Algorithm, seed: int, rounds: int, seconds: float) -> Run:
        """The finished run."""
        steps, sizes, scalars = zip(*self._syncs, strict=True) if self._syncs else ((), (), ())
        return Run(
            algorithm=algorithm,
            seed=seed,
            clients=self.clients,
            rounds=rounds,
            choices=self.choices,
            regrets=self.regrets,
            sync_steps=np.array(steps, dtype=np.int64),
            dictionary_sizes=np.array([size for size in sizes if size is not None], dtype=np.int64),
            scalars_at_sync=np.array(scalars, dtype=np.int64),
            ledger=self.ledger,
            seconds=seconds,
        )
