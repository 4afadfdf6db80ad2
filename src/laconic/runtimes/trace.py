"""What a run leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from laconic.algorithms import Algorithm
from laconic.arrays import Floats, Ints
from laconic.beliefs import Belief
from laconic.problems.base import Round
from laconic.protocol.digests import Held
from laconic.protocol.ledger import Ledger
from laconic.protocol.plan import Plan


@dataclass(frozen=True)
class Download:
    """A version of a digest as a client came to hold it, with what its certificate says."""

    step: int  # after which step t = 1 … NT it came
    client: int
    version: int
    length: int  # observations of all clients that it has
    raw: bool  # True where it is made of all points as they are
    atoms: int  # how many there are; 0 where it is raw
    d_eff: float
    e_lo: float
    e_hi: float
    kappa: float
    beta: float
    why: str = ""  # it is raw, where it is

    @classmethod
    def of(cls, step: int, client: int, held: Held, *, why: str) -> Download:
        """What is worth knowing of a version; without a certificate it is exact."""
        said = held.certificate
        e_lo, e_hi, kappa, beta = (
            (0.0, 0.0, 1.0, 0.0) if said is None else (said.e_lo, said.e_hi, said.kappa, said.beta)
        )
        return cls(
            step=step,
            client=client,
            version=held.number,
            length=held.built.length,
            raw=held.atoms is None,
            atoms=0 if held.atoms is None else len(held.atoms),
            d_eff=held.d_eff,
            e_lo=e_lo,
            e_hi=e_hi,
            kappa=kappa,
            beta=beta,
            why=why,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """One algorithm on one seed of a problem, step by step; step t = N(l−1)+i is client i in round l."""

    algorithm: Algorithm
    seed: int
    clients: int
    rounds: int
    choices: NDArray[np.int32]  # (NT,) the chosen arm of each step
    regrets: Floats  # (NT,) the pseudo-regret of each step
    sync_steps: Ints  # the steps t = 1 … NT after which a sync ran
    dictionary_sizes: Ints  # |S| after each sync, 0 before the first dictionary; empty where there is none
    scalars_at_sync: Ints  # all scalars sent up to and with each sync
    ledger: Ledger
    seconds: float  # without making the problem's arms
    versions: tuple[Download, ...] = ()  # of a digest, as clients were sent them; empty where there is none

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

    def __repr__(self) -> str:
        played = f"seed {self.seed}, {self.clients} clients, {self.rounds} rounds"
        return f"<Run {type(self.algorithm).__name__}: {played}; {', '.join(map(' '.join, self._outcome()))}>"

    def _repr_html_(self) -> str:
        said = "".join(f"<li>{value} {escape(name)}</li>" for value, name in self._outcome())
        return f"<b>{escape(type(self.algorithm).__name__)}</b>, seed {self.seed}<ul>{said}</ul>"

    def _outcome(self) -> list[tuple[str, str]]:
        dictionary = [] if self.dictionary is None else [(f"{self.dictionary:,}", "in the dictionary")]
        counts = [(f"{self.scalars:,}", "scalars sent"), (f"{self.syncs:,}", "syncs"), *dictionary]
        return [(f"{self.regret:.4g}", "regret"), *counts, (f"{self.seconds:.3g}", "seconds")]


class Recorder:
    """Gathers a run as it happens."""

    def __init__(self, plan: Plan, *, clients: int, rounds: int) -> None:
        self.clients = clients
        self.choices = np.zeros(clients * rounds, dtype=np.int32)
        self.regrets = np.zeros(clients * rounds)
        self.ledger = Ledger(plan)
        self._syncs: list[tuple[int, int | None, int]] = []
        self._versions: list[Download] = []

    def round_done(self, index: int, round_: Round, choices: NDArray[np.int32]) -> None:
        """Note what all clients chose in a round."""
        means = round_.means if round_.mask is None else np.where(round_.mask, round_.means, -np.inf)
        steps = slice(index * self.clients, (index + 1) * self.clients)
        chosen = np.take_along_axis(means, choices[:, None].astype(np.int64), axis=1)[:, 0]
        self.choices[steps] = choices
        self.regrets[steps] = means.max(axis=1) - chosen

    def exchanged(self, step: int, installed: list[Belief]) -> None:
        """Note the beliefs that were installed after a step, and empty the list."""
        for belief in installed:
            self.sync_done(step, belief)
        installed.clear()

    def downloaded(self, step: int, downloads: list[tuple[int, Held, str]]) -> None:
        """Note the versions that clients came to hold after a step, and empty the list."""
        self._versions += [Download.of(step, client, held, why=why) for client, held, why in downloads]
        downloads.clear()

    def sync_done(self, step: int, belief: Belief) -> None:
        """Note a sync that ran after step ``step`` = 1 … NT."""
        self._syncs.append((step, belief.dictionary_size, self.ledger.total.scalars))

    def finish(self, *, algorithm: Algorithm, seed: int, rounds: int, seconds: float) -> Run:
        """The finished run."""
        steps, sizes, scalars = zip(*self._syncs, strict=True) if self._syncs else ((), (), ())
        none = all(size is None for size in sizes)
        return Run(
            algorithm=algorithm,
            seed=seed,
            clients=self.clients,
            rounds=rounds,
            choices=self.choices,
            regrets=self.regrets,
            sync_steps=np.array(steps, dtype=np.int64),
            dictionary_sizes=np.array([] if none else [size or 0 for size in sizes], dtype=np.int64),
            scalars_at_sync=np.array(scalars, dtype=np.int64),
            ledger=self.ledger,
            seconds=seconds,
            versions=tuple(self._versions),
        )
