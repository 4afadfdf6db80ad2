"""What a run leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laconic.algorithms import Algorithm
from laconic.arrays import Floats, Ints
from laconic.beliefs import Belief
from laconic.errors import InputError
from laconic.exploration import Chance
from laconic.problems.base import Instance, Round
from laconic.problems.events import Events, event_table, write_events
from laconic.problems.rounds import check_round
from laconic.protocol.digests import Held
from laconic.protocol.ledger import Ledger
from laconic.protocol.plan import Plan

if TYPE_CHECKING:
    from os import PathLike


@dataclass(frozen=True)
class Download:
    """A version of a digest as a client came to hold it, with what its certificate says.

    Attributes:
        step: Step t = 1 … NT after which it came.
        client: Number of the client that it came to.
        version: Number of the version.
        length: Observations of all clients that it has.
        raw: True where it is made of all points as they are.
        atoms: How many atoms there are; 0 where it is raw.
        d_eff: Effective dimension of the observations that it has.
        e_lo: Variances are at most 1/(1 + e_lo) times too large.
        e_hi: Variances are at most 1 + e_hi times too small.
        kappa: Variances are this many times too large on average, at the points observed.
        beta: The mean that was sent is within beta·σ(x) of the exact one at every x, before rounding and but for what
            the reference dictionary leaves of points; in units of rewards. A raw version has 0.
        why: Why it is raw, where it is.
    """

    step: int
    client: int
    version: int
    length: int
    raw: bool
    atoms: int
    d_eff: float
    e_lo: float
    e_hi: float
    kappa: float
    beta: float
    why: str = ""

    @classmethod
    def of(cls, step: int, client: int, held: Held, *, why: str) -> Download:
        """What is worth knowing of a version; without a certificate it is exact.

        Args:
            step: Step t = 1 … NT after which it came.
            client: Number of the client that it came to.
            held: The version as that client holds it.
            why: Why it is raw, where it is.
        """
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


@dataclass(frozen=True, eq=False)
class Chances:
    """With which probability each choice of a run was made, and the instance that shows the arms again."""

    values: Floats  # (NT,)
    errors: Floats  # (NT,)
    instance: Instance = field(repr=False)

    def note(self, step: int, chance: Chance) -> None:
        """Note the chance of the choice of a step, counted from 0."""
        self.values[step], self.errors[step] = chance.value, chance.error

    def note_shared(self, steps: slice | Ints, shares: Ints) -> None:
        """Note that the choices of these steps, counted from 0, were each among so many arms that tied."""
        self.values[steps], self.errors[steps] = 1.0 / shares, 0.0


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """One algorithm on one seed of a problem, step by step; step t = N(l−1)+i is client i in round l.

    Attributes:
        algorithm: Who played.
        seed: Seed of the run.
        clients: Clients N that learnt together.
        rounds: Rounds T, in each of which every client acted once.
        choices: Place of the chosen arm at each step, (NT,).
        regrets: Best mean reward minus that of the chosen arm at each step, (NT,).
        sync_steps: Steps t = 1 … NT after which an exchange ran, one entry for each: a sync of all members, or, where
            clients exchange alone, an ask that was answered with a later belief.
        dictionary_sizes: Points of the dictionary after each exchange, 0 where it brought points as they are; empty
            where no exchange brought a dictionary.
        scalars_at_sync: Scalars sent up to and with each exchange.
        ledger: What was sent, by epoch, phase, direction and client.
        seconds: Seconds that it took, without making the arms.
        versions: Downloads of a digest with their certificates; empty where there is no digest.
        used: Which events of a replayed log were learnt from, (NT,); None where all steps were.
        rewards: What was paid at each step, (NT,), where only that is known; None elsewhere.
        chances: Probabilities of all choices, where `run` was asked to keep them; None elsewhere.
    """

    algorithm: Algorithm
    seed: int
    clients: int
    rounds: int
    choices: NDArray[np.int32]
    regrets: Floats
    sync_steps: Ints
    dictionary_sizes: Ints
    scalars_at_sync: Ints
    ledger: Ledger
    seconds: float
    versions: tuple[Download, ...] = ()
    used: NDArray[np.bool_] | None = None
    rewards: Floats | None = None
    chances: Chances | None = None

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
        """How many exchanges there were; where clients exchange alone, asks that were answered with a later belief."""
        return len(self.sync_steps)

    @property
    def dictionary(self) -> int | None:
        """The final |S|, 0 where the last exchange brought points as they are; None where there is no dictionary."""
        return int(self.dictionary_sizes[-1]) if len(self.dictionary_sizes) else None

    @property
    def events(self) -> int | None:
        """How many events of a log agreed and were learnt from; None where every step is one."""
        return None if self.used is None else int(self.used.sum())

    @property
    def reward(self) -> float | None:
        """The mean reward of the events that were learnt from; None where regret says more, or where there are none."""
        if self.used is None or self.rewards is None or not self.used.any():
            return None
        return float(self.rewards[self.used].mean())

    def log(self, path: str | PathLike[str] | None = None) -> Any:
        """All decisions as an Arrow table, and as a Parquet file where a path is given; see `laconic.problems.events`.

        It needs ``run(…, log=True)``, which keeps the probability of every choice; arms are made again by the problem.

        Args:
            path: The Parquet file to write, of which an earlier one is replaced; None: nothing is written.
        """
        if self.chances is None:
            raise InputError("this run kept no probabilities of its choices; try run(…, log=True)")
        steps = np.arange(len(self.choices))
        table = event_table(_events(self, self.chances), errors=self.chances.errors, clients=steps % self.clients)
        if path is not None:
            write_events(table, path)
        return table

    def __repr__(self) -> str:
        played = f"seed {self.seed}, {self.clients} clients, {self.rounds} rounds"
        return f"<Run {type(self.algorithm).__name__}: {played}; {', '.join(map(' '.join, self._outcome()))}>"

    def _repr_html_(self) -> str:
        said = "".join(f"<li>{value} {escape(name)}</li>" for value, name in self._outcome())
        return f"<b>{escape(type(self.algorithm).__name__)}</b>, seed {self.seed}<ul>{said}</ul>"

    def _outcome(self) -> list[tuple[str, str]]:
        dictionary = [] if self.dictionary is None else [(f"{self.dictionary:,}", "in the dictionary")]
        counts = [(f"{self.scalars:,}", "scalars sent"), (f"{self.syncs:,}", "syncs"), *dictionary]
        if self.used is not None:
            paid = "no" if self.reward is None else f"{self.reward:.4g}"
            used = [(paid, "mean reward"), (f"{self.events:,} of {len(self.used):,}", "events used")]
            return [*used, *counts, (f"{self.seconds:.3g}", "seconds")]
        return [(f"{self.regret:.4g}", "regret"), *counts, (f"{self.seconds:.3g}", "seconds")]


class Recorder:
    """Gathers a run as it happens: what every runtime gives its steps to, and has the `Run` from.

    Its ``ledger`` is where the runtime counts messages.

    Args:
        plan: The plan by which messages are counted.
        clients: Clients N that learn together, from 1.
        rounds: Rounds T, from 1.
        log: Instance that is played, where the probabilities of all choices are to be kept; None: they are not.
    """

    def __init__(self, plan: Plan, *, clients: int, rounds: int, log: Instance | None = None) -> None:
        self.clients = clients
        steps = clients * rounds
        self.chances = None if log is None else Chances(np.full(steps, np.nan), np.zeros(steps), instance=log)
        self._used: NDArray[np.bool_] | None = None
        self._rewards = np.zeros(steps)
        self.choices = np.zeros(clients * rounds, dtype=np.int32)
        self.regrets = np.zeros(clients * rounds)
        self.ledger = Ledger(plan)
        self._syncs: list[tuple[int, int | None, int]] = []
        self._versions: list[Download] = []

    def round_done(self, index: int, round_: Round, choices: NDArray[np.int32]) -> None:
        """Note what all clients chose in a round.

        Args:
            index: Number of the round, from 0.
            round_: The round itself.
            choices: Place of the arm that each client chose, (N,).
        """
        if round_.revealed is not None:
            self._replayed(index, round_, choices)
            return
        means = round_.means if round_.mask is None else np.where(round_.mask, round_.means, -np.inf)
        steps = slice(index * self.clients, (index + 1) * self.clients)
        chosen = np.take_along_axis(means, choices[:, None].astype(np.int64), axis=1)[:, 0]
        self.choices[steps] = choices
        self.regrets[steps] = means.max(axis=1) - chosen

    def _replayed(self, index: int, round_: Round, choices: NDArray[np.int32]) -> None:
        """Note a round in which a client learns its reward only where that is known."""
        assert round_.revealed is not None
        if self._used is None:
            self._used = np.zeros(len(self.choices), dtype=np.bool_)
        at = np.arange(self.clients), choices
        steps = slice(index * self.clients, (index + 1) * self.clients)
        self.choices[steps], self._used[steps] = choices, round_.revealed[at]
        self._rewards[steps] = round_.rewards[at]

    def exchanged(self, step: int, installed: list[Belief]) -> None:
        """Note the beliefs that were installed after a step, and empty the list.

        Args:
            step: Step t = 1 … NT.
            installed: What ``outcome.installed`` said: of the server's outcomes where there are syncs, of the clients'
                elsewhere.
        """
        for belief in installed:
            self.sync_done(step, belief)
        installed.clear()

    def downloaded(self, step: int, downloads: list[tuple[int, Held, str]]) -> None:
        """Note the versions that clients came to hold after a step, and empty the list.

        Args:
            step: Step t = 1 … NT.
            downloads: Number of a client, the version that it holds now, and why that is raw, for each download.
        """
        self._versions += [Download.of(step, client, held, why=why) for client, held, why in downloads]
        downloads.clear()

    def sync_done(self, step: int, belief: Belief) -> None:
        """Note a sync that ran after a step.

        Args:
            step: Step t = 1 … NT.
            belief: The belief that was installed.
        """
        self._syncs.append((step, belief.dictionary_size, self.ledger.total.scalars))

    def finish(self, *, algorithm: Algorithm, seed: int, rounds: int, seconds: float, best: float | None = None) -> Run:
        """The finished run.

        Args:
            algorithm: Who played.
            seed: Seed of the run.
            rounds: Rounds T that were played.
            seconds: Seconds that it took.
            best: Largest reward of a log that was replayed; None elsewhere.
        """
        steps, sizes, scalars = zip(*self._syncs, strict=True) if self._syncs else ((), (), ())
        none = all(size is None for size in sizes)
        if self._used is not None:
            self.regrets[:] = _missed(self._rewards, used=self._used, best=best)
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
            used=self._used,
            rewards=None if self._used is None else self._rewards,
            chances=self.chances,
        )


def _missed(rewards: Floats, *, used: NDArray[np.bool_], best: float | None) -> Floats:
    """How much less than the best each event paid; those that were not used count as the mean of those that were."""
    if best is None or not used.any():
        return np.full(len(rewards), np.nan)
    missed = best - rewards
    return np.where(used, missed, missed[used].mean())


def _events(run: Run, chances: Chances) -> Events:
    """The decisions of a run, with the arms that its instance shows."""
    instance = chances.instance
    met = [
        check_round(instance.round(index), index=index, clients=run.clients, dim=instance.dim)
        for index in range(run.rounds)
    ]
    widest = max(each.arms.shape[1] for each in met)
    arms = np.concatenate([_padded(each.arms, widest) for each in met])
    there = np.concatenate(
        [_padded(np.ones(each.means.shape, dtype=np.bool_) if each.mask is None else each.mask, widest) for each in met]
    )
    at = np.arange(len(run.choices)), run.choices
    return Events(
        arms=arms,
        there=there,
        chosen=(np.cumsum(there, axis=1) - 1)[at],
        propensity=chances.values,
        reward=np.concatenate([_padded(each.rewards, widest) for each in met])[at],
    )


def _padded(array: NDArray[Any], arms: int) -> NDArray[Any]:
    return np.pad(array, [(0, 0), (0, arms - array.shape[1]), *[(0, 0)] * (array.ndim - 2)])
