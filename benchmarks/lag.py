"""A rough simulation of digests in whole rounds, without messages: what atoms cost in regret and in bytes.

All clients act in every round on the version that they hold and their own points since. Points go up when a tenth of a
client's points is unsent; a client asks when Σσ² over its own new points exceeds δ·d_eff/N.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.clock import timed
from laconic.arrays import Floats, Ints
from laconic.atoms import Fallback, Recipe, Reference, Version, build
from laconic.beliefs import Belief, ExactBelief, View
from laconic.kernels import Gaussian
from laconic.protocol.digests.atoms import Edition
from laconic.protocol.tight import least_size
from laconic.tail import Tail

HEADER = 24
DELTA = 0.5
GROWTH = 0.1
NOISE = 0.1


@dataclass(frozen=True)
class Setting:
    """A problem of fresh arms in the unit ball with rewards cos(3x·θ), and what plays it."""

    clients: int
    rounds: int
    dim: int
    gamma: float
    lam: float = 0.1
    alpha: float = 0.1
    arms: int = 20
    items: int = 0  # a catalogue of so many, instead of fresh arms

    @property
    def kernel(self) -> Gaussian:
        return Gaussian(gamma=self.gamma)


SETTINGS = {
    "d20": Setting(clients=100, rounds=100, dim=20, gamma=0.1),
    "d20-rich": Setting(clients=100, rounds=100, dim=20, gamma=0.2),
    "d5": Setting(clients=20, rounds=250, dim=5, gamma=0.5),
    "d3": Setting(clients=40, rounds=250, dim=3, gamma=0.5),
    "d5-long": Setting(clients=20, rounds=2000, dim=5, gamma=0.5),
    "catalogue": Setting(clients=50, rounds=200, dim=10, gamma=1.0, lam=1.0, alpha=0.3, arms=10, items=30),
}


class World:
    """Arms, their mean rewards and noise, all drawn at once."""

    def __init__(self, setting: Setting, *, seed: int) -> None:
        random = np.random.default_rng(seed)
        steps = setting.clients * setting.rounds

        def ball(*shape: int) -> Floats:
            directions = random.normal(size=(*shape, setting.dim))
            radii = random.uniform(size=(*shape, 1)) ** (1 / setting.dim)
            return np.asarray(directions / np.linalg.norm(directions, axis=-1, keepdims=True) * radii)

        theta = ball(1)[0]
        if setting.items:
            items = ball(setting.items)
            shown = np.argsort(random.uniform(size=(steps, setting.items)), axis=1)[:, : setting.arms]
            self.arms = items[shown]
        else:
            self.arms = ball(steps, setting.arms)
        self.means = np.cos(3 * self.arms @ theta)
        self.noise = NOISE * random.normal(size=steps)


def rounded(X: Floats, *, scale: float) -> Floats:
    """Points as int8 would hold them, with no negative zeros."""
    return np.asarray(np.clip(np.round(X / scale * 127), -127, 127) * scale / 127 + 0.0)


@dataclass
class Player:
    """A client: its points, its tail, and what it has heard."""

    tail: Tail
    points: list[Floats] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    version: Version | None = None
    holds: int = 0  # number of the digest that it holds
    d_eff: float = 0.0
    heard: float = 0.0  # Σσ² over its new points
    lacks_from: int = 0  # observations that it has as raw points


@dataclass
class Tally:
    """What a run came to."""

    regret: float = 0.0
    up: float = 0.0
    down: float = 0.0
    downloads: int = 0
    seconds: float = 0.0  # CPU of the reference and of building
    atoms: list[int] = field(default_factory=list)
    kappas: list[float] = field(default_factory=list)
    betas: list[float] = field(default_factory=list)
    fallbacks: int = 0

    def __str__(self) -> str:
        figures = [np.mean(each) if each else np.nan for each in (self.atoms, self.kappas, self.betas)]
        return (
            f"regret {self.regret:7.1f}  MB {(self.up + self.down) / 1e6:.3f} (up {self.up / 1e6:.3f})  "
            f"downloads {self.downloads}  versions {len(self.atoms)} and {self.fallbacks} raw  "
            f"atoms {figures[0]:.0f} (last {self.atoms[-1] if self.atoms else 0})  "
            f"kappa {figures[1]:.2f}  beta {figures[2]:.2f}  building {self.seconds:.1f} s"
        )


class Simulation:
    """The server's side and the loop."""

    def __init__(self, setting: Setting, *, seed: int, atoms: Recipe) -> None:
        self.setting, self.seed, self.atoms = setting, seed, atoms
        self.world = World(setting, seed=seed)
        self.scale = float(np.abs(self.world.arms).max())
        self.reference = Reference(
            kernel=setting.kernel, dim=setting.dim, lam=setting.lam, tolerance=atoms.tolerance, cap=atoms.cap
        )
        self.blank = ExactBelief.empty(kernel=setting.kernel, lam=setting.lam, dim=setting.dim)
        self.exact = self.blank
        self.players = [Player(tail=Tail(self.blank)) for _ in range(setting.clients)]
        self.belief: Belief = self.blank
        self.last: Version | None = None
        self.digest: Version | Fallback | None = None
        self.number = self.covered = 0
        self.log_X, self.log_y = list[Floats](), list[Floats]()
        self.sent = self.in_log = 0  # rounds that went up
        self.tally = Tally()

    def run(self) -> Tally:
        """Play all rounds."""
        for number in range(self.setting.rounds):
            self._play(number)
            if number + 1 - self.sent >= max(1.0, GROWTH * (number + 1)):
                self._upload(number)
            if number + 1 < self.setting.rounds and self.log_X:
                self._answer()
        return self.tally

    def _play(self, number: int) -> None:
        clients, arms = self.setting.clients, self.setting.arms
        steps = clients * number + np.arange(clients)
        ties = np.random.default_rng([7, number]).uniform(size=(clients, arms)) * 1e-9
        for belief in {id(player.tail.belief): player.tail.belief for player in self.players}.values():
            group = np.array([i for i, player in enumerate(self.players) if player.tail.belief is belief])
            view = belief.view(self.world.arms[steps[group]].reshape(-1, self.setting.dim))
            for place, i in enumerate(group):
                self._act(int(i), part(view, place * arms, arms), ties=ties[i], step=int(steps[i]))

    def _act(self, client: int, view: View, *, ties: Floats, step: int) -> None:
        player, world = self.players[client], self.world
        mean, variance = player.tail.predict(view)
        arm = int(np.argmax(mean + self.setting.alpha * np.sqrt(np.maximum(variance, 0.0)) + ties))
        reward = float(np.float16(world.means[step, arm] + world.noise[step]))
        self.tally.regret += float(world.means[step].max() - world.means[step, arm])
        player.heard += float(variance[arm])
        point = rounded(world.arms[step, arm], scale=self.scale)
        player.tail.append(player.tail.belief.view(point[None]), reward)
        self.tally.up += self._cost_of(player, point)
        player.points.append(point)
        player.rewards.append(reward)

    def _cost_of(self, player: Player, point: Floats) -> int:
        """A point that the server is known to have goes up as an id."""
        known = any(np.array_equal(point, other) for other in player.points) if self.setting.items else False
        return 4 if known else self.setting.dim + 2

    def _upload(self, number: int) -> None:
        self.tally.up += HEADER * self.setting.clients
        for round_ in range(self.sent, number + 1):
            self.log_X.append(np.array([player.points[round_] for player in self.players]))
            self.log_y.append(np.array([player.rewards[round_] for player in self.players]))
        self.sent = number + 1

    def _answer(self) -> None:
        log = len(self.log_X) * self.setting.clients
        asking = [p for p in self.players if p.heard > DELTA * p.d_eff / self.setting.clients * (1 + 1e-9)]
        if log == self.covered:
            asking = [player for player in asking if player.holds != self.number]
        if asking and (log > 1.1 * self.covered or any(player.holds == self.number for player in asking)):
            cost, _ = timed(self._build)
            self.tally.seconds += cost.cpu
        for player in asking:
            self._download(player)

    def _build(self) -> None:
        first = self.covered // self.setting.clients
        X, y = np.concatenate(self.log_X[first:]), np.concatenate(self.log_y[first:])
        self.reference = self.reference.extended(X, y)
        self.number += 1
        random = np.random.default_rng([self.seed, self.number])
        lam, kernel = self.setting.lam, self.setting.kernel
        digest = build(self.reference, lam=lam, settings=self.atoms, random=random, previous=self.last)
        self.digest, self.covered = digest, self.reference.covered
        if isinstance(digest, Fallback):
            self.tally.fallbacks += 1
            done = self.exact.observations // self.setting.clients
            self.exact = self.exact.extended(np.concatenate(self.log_X[done:]), np.concatenate(self.log_y[done:]))
            self.belief = self.exact
            return
        self.last, self.belief = digest, digest.belief(kernel=kernel, lam=lam)
        self.tally.atoms.append(len(digest.atoms))
        self.tally.kappas.append(digest.certificate.kappa)
        self.tally.betas.append(digest.certificate.beta)

    def _download(self, player: Player) -> None:
        digest = self.digest
        assert digest is not None
        self.tally.downloads += 1
        self.tally.down += HEADER + self._payload(player, digest)
        player.d_eff = digest.d_eff if isinstance(digest, Fallback) else digest.certificate.d_eff
        player.holds, player.heard = self.number, 0.0
        player.tail = Tail(self.belief)
        known = self.covered // self.setting.clients
        for point, reward in zip(player.points[known:], player.rewards[known:], strict=True):
            player.tail.append(self.belief.view(point[None]), reward)

    def _payload(self, player: Player, digest: Version | Fallback) -> int:
        if isinstance(digest, Fallback):
            lacking = (digest.covered - player.lacks_from) * (self.setting.clients - 1) // self.setting.clients
            player.lacks_from = digest.covered
            return lacking * (self.setting.dim + 2)
        held: Ints = np.empty(0, dtype=np.int64) if player.version is None else player.version.ids
        player.version = digest
        new = digest.ids[~np.isin(digest.ids, held)]
        raw = 0 if self.setting.items else int((new < player.lacks_from).sum())  # points that it has go down as ids
        return (len(new) - raw) * self.setting.dim + 2 * raw + -(-len(held) // 8) + self._common(digest)

    def _common(self, version: Version) -> int:
        """Bytes of what everyone is sent of a version, weights and the mean in few bits; facts are in the header."""
        edition = Edition(number=self.number, reference=self.reference, lam=self.setting.lam, outcome=version)
        values, records = edition.common.values, edition.common.records
        others = sum(array.nbytes for name, array in records.items() if name != "facts")
        return sum(map(least_size, values.values())) + others


def part(view: View, first: int, count: int) -> View:
    """Some of a view's points."""
    some = slice(first, first + count)
    return replace(
        view,
        points=view.points[some],
        features=np.ascontiguousarray(view.features[:, some]),
        mean=view.mean[some],
        signal=view.signal[some],
        residual=view.residual[some],
    )
