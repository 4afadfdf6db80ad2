"""A second, naive implementation of every algorithm: the formulas as written, recomputed from scratch at each step.

It shares no code with the package, so that agreement between the two means something. Nothing is cached, nothing is
updated, and every estimate takes a route the package does not: dense solves, determinants and the eigenbasis.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Kernel = Callable[[Floats, Floats], Floats]
Uniforms = Callable[[int, int, int], Floats]

TIE = 1e-10
TRIGGER = 1e-9
RANK = 1e-10


# Kernels


def gaussian(gamma: float) -> Kernel:
    """k(x, y) = exp(−γ ‖x − y‖²), from the differences themselves."""

    def kernel(X: Floats, Y: Floats) -> Floats:
        return np.asarray(np.exp(-gamma * np.sum((X[:, None, :] - Y[None, :, :]) ** 2, axis=2)))

    return kernel


def linear_kernel(X: Floats, Y: Floats) -> Floats:
    """k(x, y) = xᵀy."""
    return np.asarray(X @ Y.T)


def gram(kernel: Kernel, X: Floats, Y: Floats) -> Floats:
    """The kernel matrix, also where there are no points."""
    if len(X) == 0 or len(Y) == 0:
        return np.zeros((len(X), len(Y)))
    return np.asarray(kernel(X, Y), dtype=np.float64)


def diagonal(kernel: Kernel, X: Floats) -> Floats:
    """k(x, x) of each row."""
    return np.array([gram(kernel, x[None], x[None])[0, 0] for x in X], dtype=np.float64)


# Estimators: mean and σ² of each row of Xs


def posterior(kernel: Kernel, X: Floats, y: Floats, Xs: Floats, lam: float) -> tuple[Floats, Floats]:
    """Exact: μ = kᵀ(K + λI)⁻¹y and σ² = [k(x,x) − kᵀ(K + λI)⁻¹k] / λ."""
    K = gram(kernel, X, X) + lam * np.eye(len(X))
    k = gram(kernel, X, Xs)
    mean = k.T @ np.linalg.solve(K, y)
    variance = (diagonal(kernel, Xs) - np.sum(k * np.linalg.solve(K, k), axis=0)) / lam
    return mean, np.maximum(variance, 0.0)


def linear(X: Floats, y: Floats, Xs: Floats, lam: float) -> tuple[Floats, Floats]:
    """Linear: μ = xᵀA⁻¹b and σ² = xᵀA⁻¹x, with A = XᵀX + λI and b = Xᵀy."""
    A = X.T @ X + lam * np.eye(Xs.shape[1])
    mean = Xs @ np.linalg.solve(A, X.T @ y)
    return mean, np.sum(Xs.T * np.linalg.solve(A, Xs.T), axis=0)


def embedding(kernel: Kernel, S: Floats, X: Floats) -> Floats:
    """The paper's z(x; S) = Λ^(−1/2) Uᵀ k_S(x), one row a point, from the eigenbasis of K_SS."""
    if len(S) == 0:
        return np.zeros((len(X), 0))
    values, U = np.linalg.eigh(gram(kernel, S, S))
    # A direction whose eigenvalue is lost in rounding carries no information, only noise.
    kept = values > len(S) * np.finfo(np.float64).eps * values.max()
    return np.asarray(gram(kernel, X, S) @ U[:, kept] / np.sqrt(values[kept]))


def nystrom(kernel: Kernel, S: Floats, X: Floats, y: Floats, Xs: Floats, lam: float) -> tuple[Floats, Floats]:
    """Nyström, the paper's form: μ̃ = zᵀ(G + λI)⁻¹b and σ̃² = [k(x,x) − zᵀG(G + λI)⁻¹z] / λ."""
    Z, z = embedding(kernel, S, X), embedding(kernel, S, Xs)
    G, b = Z.T @ Z, Z.T @ y
    A = G + lam * np.eye(len(G))
    mean = z @ np.linalg.solve(A, b)
    variance = (diagonal(kernel, Xs) - np.sum(z.T * (G @ np.linalg.solve(A, z.T)), axis=0)) / lam
    return mean, np.maximum(variance, 0.0)


# Determinants and the theoretical α


def log_det(kernel: Kernel, X: Floats, lam: float) -> float:
    """ln det(I + K_XX / λ)."""
    return float(np.linalg.slogdet(np.eye(len(X)) + gram(kernel, X, X) / lam)[1])


def log_det_gain(kernel: Kernel, old: Floats, new: Floats, lam: float) -> float:
    """ln [det(I + K_(old ∪ new) / λ) / det(I + K_old / λ)]."""
    return log_det(kernel, np.concatenate([old, new]), lam) - log_det(kernel, old, lam)


def log_det_bound(kernel: Kernel, S: Floats, X: Floats, lam: float) -> float:
    """ln det(I + G/λ) + (Σ k(x_s,x_s) − tr G)/λ, never less than ln det(I + K_XX / λ)."""
    Z = embedding(kernel, S, X)
    G = Z.T @ Z
    seen = float(np.linalg.slogdet(np.eye(len(G)) + G / lam)[1])
    return seen + (float(diagonal(kernel, X).sum()) - float(np.trace(G))) / lam


def exact_alpha(kernel: Kernel, X: Floats, *, lam: float, clients: int, S: float, R: float, delta: float) -> float:
    """α = √λ S + R √(2 ln(N/δ) + ln det(I + K_DD/λ))."""
    return math.sqrt(lam) * S + R * math.sqrt(2 * math.log(clients / delta) + log_det(kernel, X, lam))


def nystrom_alpha(
    information: float, *, lam: float, clients: int, S: float, R: float, delta: float, eps: float, D: float
) -> float:
    """α = (1 + 1/√(−ε + 1/(1 + (1+ε)/(1−ε) D))) √λ S + R √(4 ln(N/δ) + 2 information)."""
    inside = -eps + 1 / (1 + (1 + eps) / (1 - eps) * D)
    if inside <= 0:
        raise ValueError(f"eps={eps} with D={D} leaves no root: D must be below (1-eps)^2 / (eps (1+eps))")
    width = 1 + 1 / math.sqrt(inside)
    return width * math.sqrt(lam) * S + R * math.sqrt(4 * math.log(clients / delta) + 2 * information)


def nystrom_alpha_bound(
    kernel: Kernel,
    dictionary: Floats,
    X: Floats,
    *,
    lam: float,
    clients: int,
    S: float,
    R: float,
    delta: float,
    eps: float,
    D: float,
) -> float:
    """The Nyström α of a client, which knows G and Σ k(x_s,x_s) but no kernel matrix."""
    information = log_det_bound(kernel, dictionary, X, lam)
    return nystrom_alpha(information, lam=lam, clients=clients, S=S, R=R, delta=delta, eps=eps, D=D)


# Dictionaries


def rls_probabilities(variance: Floats, qbar: float) -> Floats:
    """p = min(1, q̄ σ̃²); an infinite q̄ keeps every point, also one of no variance."""
    if math.isinf(qbar):
        return np.ones(len(variance))
    return np.minimum(1.0, qbar * variance)


def merge_equal(points: Floats) -> Floats:
    """The points without repetitions, in order of first appearance."""
    kept: list[Floats] = []
    for point in points:
        if not any(np.array_equal(point, other) for other in kept):
            kept.append(point)
    return np.array(kept, dtype=np.float64).reshape(len(kept), points.shape[1])


def thin(kernel: Kernel, points: Floats) -> Floats:
    """The pivots of a pivoted Cholesky of the kernel matrix, in pivot order, by whole Schur complements."""
    if len(points) == 0:
        return points
    schur = gram(kernel, points, points)
    floor = RANK * np.diag(schur)
    left, pivots = list(range(len(points))), list[int]()
    while left:
        left = [s for s in left if schur[s, s] > floor[s]]
        if not left:
            break
        best = max(left, key=lambda s: float(schur[s, s]))  # max keeps the first of equals
        pivots.append(best)
        left.remove(best)
        schur = schur - np.outer(schur[:, best], schur[best, :]) / schur[best, best]
    return points[pivots]


# What a sync costs, in scalars


def scalars_share_data(*, dim: int, clients: int, new: int) -> int:
    """DisKernelUCB: Δ(d+1) up, (N−1)Δ(d+1) down."""
    return new * (dim + 1) + (clients - 1) * new * (dim + 1)


def scalars_one(*, dim: int, clients: int) -> int:
    """OneKernelUCB: N(d+1) a step."""
    return clients * (dim + 1)


def scalars_linear(*, dim: int, clients: int) -> int:
    """DisLinUCB: N(d²+d) up and as many down."""
    return 2 * clients * (dim**2 + dim)


def scalars_approx(*, dim: int, clients: int, picked: Sequence[int], rank: int) -> int:
    """Approx: Σ|S_i|(d+1) up and N|S|(d+1) down unless nothing was picked, then N(r²+r) up and down."""
    phase_one = sum(picked) * (dim + 1) + (clients * rank * (dim + 1) if sum(picked) else 0)
    return phase_one + 2 * clients * (rank**2 + rank)


# The algorithms


@dataclass(frozen=True)
class Context:
    """What a client knows when it needs α: the points D of its model, and the dictionary where there is one."""

    estimator: str  # "exact", "linear" or "nystrom"
    kernel: Kernel
    X: Floats
    dictionary: Floats
    lam: float
    clients: int


@dataclass(frozen=True)
class Naive:
    """What happened: one entry a step, or one entry a sync where the name says so."""

    choices: NDArray[np.int64]
    ties: NDArray[np.bool_]
    within: Floats  # the largest index minus that of the choice
    ucb: list[Floats]
    scales: Floats  # max_b |μ_b| + ασ_b, to which the tie tolerance is relative
    alphas: Floats
    triggers: Floats
    rewards: Floats
    regrets: Floats
    syncs: list[int]
    scalars_by_sync: list[int]
    picked_by_sync: list[list[int]]
    dictionaries: list[Floats]

    @property
    def scalars(self) -> int:
        """All scalars of all syncs."""
        return sum(self.scalars_by_sync)

    @property
    def dictionary_sizes(self) -> list[int]:
        """The rank after each sync; empty where the algorithm has no dictionary."""
        return [len(S) for S in self.dictionaries]


@dataclass(frozen=True)
class _Rules:
    algorithm: str
    dim: int
    clients: int
    kernel: Kernel
    lam: float
    alpha: float | Callable[[Context], float]
    D: float
    qbar: float
    cold_start: str
    uniforms: Uniforms | None


@dataclass
class _World:
    """Every point ever observed, how many of them everyone knows, and the shared dictionary."""

    X: Floats
    y: Floats
    client: list[int]
    dictionary: Floats
    shared: int = 0
    syncs: list[int] = field(default_factory=list)
    scalars: list[int] = field(default_factory=list)
    picked: list[list[int]] = field(default_factory=list)
    dictionaries: list[Floats] = field(default_factory=list)

    def own(self, client: int) -> list[int]:
        """N_t(i)."""
        return [s for s, owner in enumerate(self.client) if owner == client]

    def tail(self, client: int) -> list[int]:
        """The client's own points since the last sync."""
        return [s for s in self.own(client) if s >= self.shared]

    def known(self, client: int) -> list[int]:
        """D_t(i): all points up to the last sync, and the client's own since."""
        return [*range(self.shared), *self.tail(client)]


ALGORITHMS = ("DisKernelUCB", "ApproxDisKernelUCB", "DisLinUCB", "OneKernelUCB", "NKernelUCB")


def _estimator(rules: _Rules, world: _World) -> str:
    if rules.algorithm == "DisLinUCB":
        return "linear"
    if rules.algorithm != "ApproxDisKernelUCB" or (rules.cold_start == "local" and not world.syncs):
        return "exact"
    return "nystrom"


def _estimate(rules: _Rules, world: _World, client: int, Xs: Floats) -> tuple[Floats, Floats]:
    D = world.known(client)
    X, y = world.X[D], world.y[D]
    match _estimator(rules, world):
        case "linear":
            return linear(X, y, Xs, rules.lam)
        case "exact":
            return posterior(rules.kernel, X, y, Xs, rules.lam)
        case _:
            return nystrom(rules.kernel, world.dictionary, X, y, Xs, rules.lam)


def _variance_at_last_sync(rules: _Rules, world: _World, Xs: Floats) -> Floats:
    X, y = world.X[: world.shared], world.y[: world.shared]
    return nystrom(rules.kernel, world.dictionary, X, y, Xs, rules.lam)[1]


def _alpha(rules: _Rules, world: _World, client: int) -> float:
    if not callable(rules.alpha):
        return rules.alpha
    X = world.X[world.known(client)]
    return rules.alpha(Context(_estimator(rules, world), rules.kernel, X, world.dictionary, rules.lam, rules.clients))


def _indices(
    rules: _Rules, world: _World, client: int, arms: Floats, exists: NDArray[np.bool_]
) -> tuple[Floats, float, float]:
    """The UCB index of each arm (−∞ where masked), the scale of the tie rule, and α."""
    distinct = merge_equal(arms[exists])  # equal arms are scored once
    mean, variance = _estimate(rules, world, client, distinct)
    alpha = _alpha(rules, world, client)
    width = alpha * np.sqrt(variance)
    ucb = np.full(len(arms), -np.inf)
    for a in np.flatnonzero(exists):
        ucb[a] = next(
            m + w for point, m, w in zip(distinct, mean, width, strict=True) if np.array_equal(point, arms[a])
        )
    return ucb, float(np.max(np.abs(mean) + width)), alpha


def _trigger(rules: _Rules, world: _World, client: int) -> float:
    """The value compared with D; always and never are +∞ and −∞."""
    old, new = world.X[: world.shared], world.X[world.tail(client)]
    match rules.algorithm:
        case "OneKernelUCB":
            return math.inf
        case "NKernelUCB":
            return -math.inf
        case "ApproxDisKernelUCB":  # Eq. 4
            return float(_variance_at_last_sync(rules, world, new).sum())
        case "DisLinUCB":
            A_last = old.T @ old + rules.lam * np.eye(rules.dim)
            A_new = A_last + new.T @ new
            return len(new) * float(np.linalg.slogdet(A_new)[1] - np.linalg.slogdet(A_last)[1])
        case _:  # Eq. 2
            return len(new) * log_det_gain(rules.kernel, old, new, rules.lam)


def _fires(rules: _Rules, value: float) -> bool:
    if rules.algorithm == "OneKernelUCB":
        return True
    return value > rules.D + TRIGGER * max(1.0, rules.D)


def _pick(rules: _Rules, world: _World, client: int) -> list[int]:
    """Alg. 3: which of its own points a client sends."""
    own = world.own(client)
    p = rls_probabilities(_variance_at_last_sync(rules, world, world.X[own]), rules.qbar)
    if np.all(p >= 1.0):
        return own
    if rules.uniforms is None:
        raise ValueError(f"qbar={rules.qbar} does not keep every point: pass uniforms, or a larger qbar")
    u = rules.uniforms(client, len(world.syncs), len(own))
    return [s for s, draw, chance in zip(own, u, p, strict=True) if draw < chance]


def _largest(rules: _Rules, world: _World, client: int) -> list[int]:
    own = world.own(client)
    variance = _variance_at_last_sync(rules, world, world.X[own])
    return [own[int(np.argmax(variance))]]


def _agree_on_dictionary(rules: _Rules, world: _World, fired: int) -> None:
    picks = [_pick(rules, world, i) for i in range(rules.clients)]
    if not world.syncs and not picks[fired]:
        picks[fired] = _largest(rules, world, fired)
    union = [s for pick in picks for s in pick]
    if union:
        world.dictionary = thin(rules.kernel, merge_equal(world.X[union]))
    sizes = [len(pick) for pick in picks]
    world.picked.append(sizes)
    world.dictionaries.append(world.dictionary)
    world.scalars.append(scalars_approx(dim=rules.dim, clients=rules.clients, picked=sizes, rank=len(world.dictionary)))


def _sync(rules: _Rules, world: _World, fired: int) -> None:
    dim, clients = rules.dim, rules.clients
    match rules.algorithm:
        case "ApproxDisKernelUCB":
            _agree_on_dictionary(rules, world, fired)
        case "DisLinUCB":
            world.scalars.append(scalars_linear(dim=dim, clients=clients))
        case "OneKernelUCB":
            world.scalars.append(scalars_one(dim=dim, clients=clients))
        case _:
            world.scalars.append(scalars_share_data(dim=dim, clients=clients, new=len(world.y) - world.shared))
    world.shared = len(world.y)
    world.syncs.append(len(world.y))


def _observe(world: _World, client: int, x: Floats, y: float) -> None:
    world.X = np.concatenate([world.X, x[None]])
    world.y = np.append(world.y, y)
    world.client.append(client)


def play(
    algorithm: str,
    *,
    arms: ArrayLike,
    means: ArrayLike,
    noise: ArrayLike,
    mask: ArrayLike | None = None,
    clients: int,
    kernel: Kernel | None = None,
    lam: float,
    alpha: float | Callable[[Context], float],
    D: float = math.inf,
    qbar: float = math.inf,
    cold_start: str = "paper",
    forced: ArrayLike | None = None,
    uniforms: Uniforms | None = None,
) -> Naive:
    """Play one algorithm on given arms (steps, A, d), means (steps, A) and noise (steps,) or (steps, A).

    Step s, from 0, belongs to client s mod N; `syncs` holds the numbers of finished steps, so from 1. Of tied arms
    the first is taken unless `forced` says otherwise. `uniforms(client, epoch, n)` gives one draw for each own point
    in order, a point is kept where its draw is below p, and epoch is the number of earlier syncs.
    """
    contexts, values = np.asarray(arms, dtype=np.float64), np.asarray(means, dtype=np.float64)
    steps, count, dim = contexts.shape
    exists = np.ones((steps, count), dtype=np.bool_) if mask is None else np.asarray(mask, dtype=np.bool_)
    extra = np.asarray(noise, dtype=np.float64)
    outcomes = values + (extra[:, None] if extra.ndim == 1 else extra)
    follow = None if forced is None else np.asarray(forced, dtype=np.int64)
    _check(algorithm, kernel=kernel, cold_start=cold_start, exists=exists, follow=follow)
    used = linear_kernel if kernel is None or algorithm == "DisLinUCB" else kernel
    rules = _Rules(algorithm, dim, clients, used, lam, alpha, D, qbar, cold_start, uniforms)
    world = _World(np.zeros((0, dim)), np.zeros(0), [], np.zeros((0, dim)))
    choices = np.zeros(steps, dtype=np.int64)
    ties = np.zeros(steps, dtype=np.bool_)
    within, scales, alphas, triggers, regrets = (np.zeros(steps) for _ in range(5))
    ucb: list[Floats] = []
    for s in range(steps):
        client = s % clients
        u, scales[s], alphas[s] = _indices(rules, world, client, contexts[s], exists[s])
        tied = np.flatnonzero(u >= u.max() - TIE * scales[s])
        choices[s] = tied[0] if follow is None else follow[s]
        ties[s], within[s] = len(tied) > 1, u.max() - u[choices[s]]
        ucb.append(u)
        regrets[s] = values[s][exists[s]].max() - values[s, choices[s]]
        _observe(world, client, contexts[s, choices[s]], float(outcomes[s, choices[s]]))
        triggers[s] = _trigger(rules, world, client)
        if _fires(rules, float(triggers[s])):
            _sync(rules, world, client)
    return Naive(
        choices=choices,
        ties=ties,
        within=within,
        ucb=ucb,
        scales=scales,
        alphas=alphas,
        triggers=triggers,
        rewards=world.y,
        regrets=regrets,
        syncs=world.syncs,
        scalars_by_sync=world.scalars,
        picked_by_sync=world.picked,
        dictionaries=world.dictionaries,
    )


def _check(
    algorithm: str,
    *,
    kernel: Kernel | None,
    cold_start: str,
    exists: NDArray[np.bool_],
    follow: NDArray[np.int64] | None,
) -> None:
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm={algorithm!r} is not one of {', '.join(ALGORITHMS)}")
    if kernel is None and algorithm != "DisLinUCB":
        raise ValueError(f"{algorithm} needs a kernel")
    if cold_start not in ("paper", "local"):
        raise ValueError(f"cold_start={cold_start!r} is neither 'paper' nor 'local'")
    if not exists.any(axis=1).all():
        raise ValueError("mask leaves a step without arms")
    if follow is not None and not exists[np.arange(len(exists)), follow].all():
        raise ValueError("forced chooses an arm that mask hides")
