"""The paper's algorithms as values, each a plan of parts.

| algorithm | belief | trigger | phases |
|---|---|---|---|
| DisKernelUCB | exact | determinant(D) | ShareData |
| OneKernelUCB | exact | always | ShareData |
| NKernelUCB | exact | never | – |
| DisLinUCB | linear | determinant(D) | ShareStatistics(tail) |
| ApproxDisKernelUCB | Nyström | variance(D) | AgreeOnDictionary(q̄), ShareStatistics(history) |
| Random | blank | never | – |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from laconic.beliefs import BlankEmbedding, ExactBelief, FiniteBelief, LinearEmbedding, NystromEmbedding
from laconic.checks import is_grid, require_at_least, require_one_of, require_positive
from laconic.errors import InputError
from laconic.exploration import ExactTheory, Exploration, Fixed, NystromTheory, Theory
from laconic.kernels import Gaussian, Kernel, as_kernel
from laconic.protocol.phases import AgreeOnDictionary, ShareData, ShareStatistics
from laconic.protocol.plan import Plan
from laconic.triggers import Always, Determinant, Never, Variance

Alpha = float | Theory
PRECISIONS = ("float64", "float32")
#: What a belief's factor is kept and solved in; float32 halves memory and time and costs digits.
Precision = Literal["float64", "float32"]


@runtime_checkable
class Algorithm(Protocol):
    """Anything that makes a plan; a frozen dataclass whose fields are its parameters."""

    def plan(self, dim: int, /) -> Plan:
        """The parts for arms of ``dim`` features."""
        ...


def _check_common(lam: object, alpha: object) -> None:
    require_positive("lam", lam)
    if isinstance(alpha, str):
        raise InputError(f"alpha must be a number or Theory(), got {alpha!r}; try alpha=Theory()")
    if not isinstance(alpha, Theory):
        require_at_least("alpha", alpha, least=0)


def _exploration(alpha: Alpha) -> Exploration:
    return ExactTheory(alpha) if isinstance(alpha, Theory) else Fixed(alpha)


@dataclass(frozen=True)
class DisKernelUCB:
    """Exact kernel UCB; raw points are shared when a client's determinant has grown enough (Alg. 1)."""

    kernel: Kernel = field(default_factory=Gaussian)
    D: float = 20.0
    lam: float = 1.0
    alpha: Alpha = 1.0
    dtype: Precision = "float64"

    equation: ClassVar[str] = (
        "argmax μ + ασ, exact μ and σ over all points known; sync when n·ln(det_new/det_last) > D  (Eq. 1, 2)"
    )
    sends: ClassVar[str] = "raw points: Δ(d+1) scalars up and (N−1)Δ(d+1) down a sync, Δ the new points of all clients"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        _check_common(self.lam, self.alpha)
        require_one_of("dtype", self.dtype, choices=PRECISIONS)
        require_at_least("D", self.D, least=0)

    def plan(self, dim: int, /) -> Plan:
        return Plan(
            belief=ExactBelief.empty(kernel=self.kernel, lam=self.lam, dim=dim, dtype=self.dtype),
            trigger=Determinant(self.D),
            phases=(ShareData(),),
            exploration=_exploration(self.alpha),
        )


@dataclass(frozen=True)
class OneKernelUCB:
    """Exact kernel UCB with every point shared with everyone at once: the least regret, the most communication."""

    kernel: Kernel = field(default_factory=Gaussian)
    lam: float = 1.0
    alpha: Alpha = 1.0
    dtype: Precision = "float64"

    equation: ClassVar[str] = (
        "argmax μ + ασ, exact μ and σ over the points of all clients; sync after every interaction"
    )
    sends: ClassVar[str] = "each point to everyone: N(d+1) scalars an interaction"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        _check_common(self.lam, self.alpha)
        require_one_of("dtype", self.dtype, choices=PRECISIONS)

    def plan(self, dim: int, /) -> Plan:
        return Plan(
            belief=ExactBelief.empty(kernel=self.kernel, lam=self.lam, dim=dim, dtype=self.dtype),
            trigger=Always(),
            phases=(ShareData(),),
            exploration=_exploration(self.alpha),
        )


@dataclass(frozen=True)
class NKernelUCB:
    """Exact kernel UCB on each client's own points alone: no communication, the most regret."""

    kernel: Kernel = field(default_factory=Gaussian)
    lam: float = 1.0
    alpha: Alpha = 1.0

    equation: ClassVar[str] = "argmax μ + ασ, exact μ and σ over the client's own points; no sync"
    sends: ClassVar[str] = "nothing"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        _check_common(self.lam, self.alpha)

    def plan(self, dim: int, /) -> Plan:
        return Plan(
            belief=ExactBelief.empty(kernel=self.kernel, lam=self.lam, dim=dim),
            trigger=Never(),
            phases=(),
            exploration=_exploration(self.alpha),
        )


@dataclass(frozen=True)
class DisLinUCB:
    """Linear UCB; d×d statistics are shared when a client's determinant has grown enough."""

    D: float = 20.0
    lam: float = 1.0
    alpha: Alpha = 1.0

    equation: ClassVar[str] = "argmax μ + ασ of ridge regression on x; sync when n·ln(det A_new/det A_last) > D"
    sends: ClassVar[str] = "(ΔA, Δb) up and (A, b) down: 2N(d²+d) scalars a sync"

    def __post_init__(self) -> None:
        _check_common(self.lam, self.alpha)
        require_at_least("D", self.D, least=0)

    def plan(self, dim: int, /) -> Plan:
        return Plan(
            belief=FiniteBelief.empty(embedding=LinearEmbedding(dim), lam=self.lam),
            trigger=Determinant(self.D),
            phases=(ShareStatistics(source="tail"),),
            exploration=_exploration(self.alpha),
        )


@dataclass(frozen=True)
class ApproxDisKernelUCB:
    """Nyström kernel UCB; clients agree on a small dictionary and share statistics in its coordinates (Alg. 2)."""

    kernel: Kernel = field(default_factory=Gaussian)
    D: float = 5.0
    lam: float = 1.0
    alpha: Alpha = 1.0
    qbar: float = 0.3
    cold_start: Literal["paper", "local"] = "paper"
    dtype: Precision = "float64"

    equation: ClassVar[str] = "argmax μ̃ + ασ̃ in the span of a dictionary S; sync when Σ σ̃²_last(x_s) > D  (Eq. 3, 4)"
    sends: ClassVar[str] = (
        "a sync: sampled points Σ|S_i|(d+1) up, dictionary N·|S|(d+1) down, statistics N(r²+r) up and N(r²+r) down"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        _check_common(self.lam, self.alpha)
        require_one_of("dtype", self.dtype, choices=PRECISIONS)
        require_at_least("D", self.D, least=0)
        require_one_of("cold_start", self.cold_start, choices=("paper", "local"))
        AgreeOnDictionary(self.qbar)
        if isinstance(self.alpha, Theory) and not is_grid(self.D):
            NystromTheory(self.alpha, D=self.D)

    def plan(self, dim: int, /) -> Plan:
        blank = NystromEmbedding(kernel=self.kernel, dictionary=np.empty((0, dim)), dtype=self.dtype)
        paper = FiniteBelief.empty(embedding=blank, lam=self.lam)
        local = ExactBelief.empty(kernel=self.kernel, lam=self.lam, dim=dim, dtype=self.dtype)
        return Plan(
            belief=local if self.cold_start == "local" else paper,
            trigger=Variance(self.D),
            phases=(AgreeOnDictionary(self.qbar), ShareStatistics(source="history")),
            exploration=NystromTheory(self.alpha, D=self.D) if isinstance(self.alpha, Theory) else Fixed(self.alpha),
        )


@dataclass(frozen=True)
class Random:
    """Uniformly random arms: the line that learning has to beat."""

    equation: ClassVar[str] = "every arm ties, a draw decides"
    sends: ClassVar[str] = "nothing"

    def plan(self, dim: int, /) -> Plan:
        blank = FiniteBelief.empty(embedding=BlankEmbedding(dim), lam=1.0)
        return Plan(belief=blank, trigger=Never(), phases=(), exploration=Fixed(0.0))


def require_algorithm(candidate: object) -> Algorithm:
    """The candidate as an algorithm, or an error that says what one is."""
    if isinstance(candidate, type):
        raise InputError(f"an algorithm is a value, got the class {candidate.__name__}; try {candidate.__name__}()")
    if not isinstance(candidate, Algorithm):
        raise InputError(f"an algorithm has a method plan(dim), got {candidate!r}; try DisKernelUCB()")
    return candidate
