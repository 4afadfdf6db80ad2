"""Algorithms as values, each a plan of parts: those of the paper, and LaconicUCB.

| algorithm | belief | trigger | exchange |
|---|---|---|---|
| DisKernelUCB | exact | determinant(D) | ShareData; alone with ``together=False``: AllPoints |
| OneKernelUCB | exact | always | ShareData |
| NKernelUCB | exact | never | – |
| DisLinUCB | linear | determinant(D) | ShareStatistics(tail) |
| ApproxDisKernelUCB | Nyström | variance(D) | AgreeOnDictionary(q̄), ShareStatistics(history) |
| LaconicUCB | weighted atoms, or exact | variance(δ·d_eff/N) | alone: Atoms, or AllPoints |
| AskServer | exact, at the server | – | arms up, the choice down, the reward up; simulated only |
| Random | blank | never | – |
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from laconic.arguments import pointing_to_kernels
from laconic.atoms import LeanTheory, Recipe
from laconic.beliefs import PRECISIONS, BlankEmbedding, ExactBelief, FiniteBelief, LinearEmbedding, NystromEmbedding
from laconic.budget import LEAST_BUDGET, least_budget
from laconic.checks import (
    instead,
    is_grid,
    require_at_least,
    require_flag,
    require_no_grid,
    require_one_of,
    require_positive,
    require_whole,
    seen,
)
from laconic.defaults import ALPHA, D_EXACT, D_NYSTROM, DELTA, LAM, QBAR
from laconic.errors import InputError
from laconic.exploration import (
    UCB,
    Confidence,
    ExactTheory,
    Exploration,
    Fixed,
    NystromTheory,
    Theory,
    require_exploration,
)
from laconic.kernels import Gaussian, KernelLike, as_kernel
from laconic.protocol.digests import AllPoints, Atoms, Digest
from laconic.protocol.phases import AgreeOnDictionary, ShareData, ShareStatistics
from laconic.protocol.phases.statistics import STATISTICS_WIRES, StatisticsWire
from laconic.protocol.plan import Plan
from laconic.protocol.wire import Int8Wire, Wire, as_wire
from laconic.triggers import Always, BudgetedVariance, Determinant, Never, ScaledVariance, Variance
from laconic.uploads import Growth, UploadRule

Alpha = float | Theory
#: What a belief's factor is kept and solved in; float32 halves memory and costs digits.
Precision = Literal["float64", "float32"]


@runtime_checkable
class Algorithm(Protocol):
    """Anything that makes a plan; a frozen dataclass whose fields are its parameters."""

    def plan(self, dim: int, /) -> Plan:
        """The parts for arms of ``dim`` features.

        Args:
            dim: Number of features d of an arm, a whole number from 1.
        """
        ...


def _check_common(lam: object, alpha: object, exploration: object) -> None:
    require_exploration(exploration)
    require_positive("lam", lam)
    if isinstance(alpha, str):
        raise InputError(f"alpha must be a number or Theory(), got {alpha!r}; try alpha=Theory()")
    if not isinstance(alpha, Theory):
        require_at_least("alpha", alpha, least=0)


def _require_features(dim: object) -> None:
    """A plan is for arms of one feature or more."""
    require_no_grid(dim=dim)
    require_whole("dim", dim, least=1)


def _confidence(alpha: Alpha) -> Confidence:
    return ExactTheory(alpha) if isinstance(alpha, Theory) else Fixed(alpha)


@dataclass(frozen=True)
class DisKernelUCB:
    """Exact kernel UCB; raw points are shared when a client's determinant has grown enough (Alg. 1).

    Args:
        kernel: Similarity of two points: a kernel of laconic, one of scikit-learn, or any callable k(X, Y).
        D: Threshold D of the sync trigger, at least 0, without a unit; 0 means a sync after every interaction. Raising
            it means fewer syncs: less is sent, and beliefs are older.
        lam: Ridge λ, above 0, in units of k(x, x): the noise's variance as a part of the signal's. Raising it trusts
            single observations less, smooths more and makes σ smaller: less is explored, and where a threshold D
            decides, exchanges come later and less is sent.
        alpha: Weight α of σ in the index μ + ασ, in units of rewards: a number of at least 0, or Theory() for the
            paper's schedule. σ has no unit and is √(k(x, x)/λ) where nothing is known; about twice the noise's standard
            deviation is a good α. Raising it explores more; Greedy() ignores it.
        dtype: Precision of the belief: float64, or float32, which halves its memory and costs digits.
        together: True: all members sync at once, and a slow one holds up the sync. False: each client alone sends up
            its points and is sent those that it lacks. Then nobody waits for others, somewhat less is sent, and regret
            is larger, as a client hears of others only when its own trigger fires.
        wire: Numbers in which points and rewards travel: float64, float32, float16, int8 (a byte for a coordinate where
            that is enough, with ranges of 1), or an Int8Wire with other ranges. Fewer bits send less and round more.
        exploration: How an arm is chosen given μ and ασ of each: UCB(), Thompson(), Softmax(), EpsilonFloor() or
            Greedy().
    """

    kernel: KernelLike = field(default_factory=Gaussian)
    D: float = D_EXACT
    lam: float = LAM
    alpha: Alpha = ALPHA
    dtype: Precision = "float64"
    together: bool = True
    wire: str | Wire = "float64"
    exploration: Exploration = field(default_factory=UCB)

    equation: ClassVar[str] = (
        "argmax μ + ασ, exact μ and σ over all points known; sync when n·ln(det_new/det_last) > D  (Eq. 1, 2)"
    )
    sends: ClassVar[str] = (
        "raw points: in each sync Δ(d+1) scalars up and (N−1)Δ(d+1) down, Δ the number of new points of all clients"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        _check_common(self.lam, self.alpha, self.exploration)
        require_one_of("dtype", self.dtype, choices=tuple(PRECISIONS))
        require_at_least("D", self.D, least=0)
        require_flag("together", self.together)
        as_wire(self.wire)

    def plan(self, dim: int, /) -> Plan:
        _require_features(dim)
        return Plan(
            belief=ExactBelief.empty(kernel=as_kernel(self.kernel), lam=self.lam, dim=dim, dtype=self.dtype),
            trigger=Determinant(self.D),
            phases=(ShareData(as_wire(self.wire)),) if self.together else (),
            digest=None if self.together else AllPoints(),
            confidence=_confidence(self.alpha),
            exploration=self.exploration,
            wire=as_wire(self.wire),
        )


@dataclass(frozen=True)
class OneKernelUCB:
    """Exact kernel UCB with every point shared with everyone at once: all is known everywhere, and all of it is sent.

    Args:
        kernel: Similarity of two points: a kernel of laconic, one of scikit-learn, or any callable k(X, Y).
        lam: Ridge λ, above 0, in units of k(x, x): the noise's variance as a part of the signal's. Raising it trusts
            single observations less, smooths more and makes σ smaller: less is explored, and where a threshold D
            decides, exchanges come later and less is sent.
        alpha: Weight α of σ in the index μ + ασ, in units of rewards: a number of at least 0, or Theory() for the
            paper's schedule. σ has no unit and is √(k(x, x)/λ) where nothing is known; about twice the noise's standard
            deviation is a good α. Raising it explores more; Greedy() ignores it.
        dtype: Precision of the belief: float64, or float32, which halves its memory and costs digits.
        wire: Numbers in which points and rewards travel: float64, float32, float16, int8 (a byte for a coordinate where
            that is enough, with ranges of 1), or an Int8Wire with other ranges. Fewer bits send less and round more.
        exploration: How an arm is chosen given μ and ασ of each: UCB(), Thompson(), Softmax(), EpsilonFloor() or
            Greedy().
    """

    kernel: KernelLike = field(default_factory=Gaussian)
    lam: float = LAM
    alpha: Alpha = ALPHA
    dtype: Precision = "float64"
    wire: str | Wire = "float64"
    exploration: Exploration = field(default_factory=UCB)

    equation: ClassVar[str] = (
        "argmax μ + ασ, exact μ and σ over the points of all clients; sync after every interaction"
    )
    sends: ClassVar[str] = "each point to everyone: N(d+1) scalars for each interaction"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        _check_common(self.lam, self.alpha, self.exploration)
        require_one_of("dtype", self.dtype, choices=tuple(PRECISIONS))
        as_wire(self.wire)

    def plan(self, dim: int, /) -> Plan:
        _require_features(dim)
        return Plan(
            belief=ExactBelief.empty(kernel=as_kernel(self.kernel), lam=self.lam, dim=dim, dtype=self.dtype),
            trigger=Always(),
            phases=(ShareData(as_wire(self.wire)),),
            confidence=_confidence(self.alpha),
            exploration=self.exploration,
            wire=as_wire(self.wire),
        )


@dataclass(frozen=True)
class NKernelUCB:
    """Exact kernel UCB on each client's own points alone: no communication, and slow learning.

    Args:
        kernel: Similarity of two points: a kernel of laconic, one of scikit-learn, or any callable k(X, Y).
        lam: Ridge λ, above 0, in units of k(x, x): the noise's variance as a part of the signal's. Raising it trusts
            single observations less, smooths more and makes σ smaller: less is explored, and where a threshold D
            decides, exchanges come later and less is sent.
        alpha: Weight α of σ in the index μ + ασ, in units of rewards: a number of at least 0, or Theory() for the
            paper's schedule. σ has no unit and is √(k(x, x)/λ) where nothing is known; about twice the noise's standard
            deviation is a good α. Raising it explores more; Greedy() ignores it.
        exploration: How an arm is chosen given μ and ασ of each: UCB(), Thompson(), Softmax(), EpsilonFloor() or
            Greedy().
    """

    kernel: KernelLike = field(default_factory=Gaussian)
    lam: float = LAM
    alpha: Alpha = ALPHA
    exploration: Exploration = field(default_factory=UCB)

    equation: ClassVar[str] = "argmax μ + ασ, exact μ and σ over the client's own points; no sync"
    sends: ClassVar[str] = "nothing"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        _check_common(self.lam, self.alpha, self.exploration)

    def plan(self, dim: int, /) -> Plan:
        _require_features(dim)
        return Plan(
            belief=ExactBelief.empty(kernel=as_kernel(self.kernel), lam=self.lam, dim=dim),
            trigger=Never(),
            phases=(),
            confidence=_confidence(self.alpha),
            exploration=self.exploration,
        )


@dataclass(frozen=True)
class DisLinUCB:
    """Linear UCB; d×d statistics are shared when a client's determinant has grown enough.

    Args:
        D: Threshold D of the sync trigger, at least 0, without a unit; 0 means a sync after every interaction. Raising
            it means fewer syncs: less is sent, and beliefs are older.
        lam: Ridge λ, above 0, in units of k(x, x): the noise's variance as a part of the signal's. Raising it trusts
            single observations less, smooths more and makes σ smaller: less is explored, and where a threshold D
            decides, exchanges come later and less is sent.
        alpha: Weight α of σ in the index μ + ασ, in units of rewards: a number of at least 0, or Theory() for the
            paper's schedule. σ has no unit and is √(k(x, x)/λ) where nothing is known; about twice the noise's standard
            deviation is a good α. Raising it explores more; Greedy() ignores it.
        wire: paper: whole matrices travel, as the paper counts them. compact: triangles in single precision, which take
            a seventh to two fifths of the bytes: less the more numbers there are.
        exploration: How an arm is chosen given μ and ασ of each: UCB(), Thompson(), Softmax(), EpsilonFloor() or
            Greedy().
    """

    D: float = D_EXACT
    lam: float = LAM
    alpha: Alpha = ALPHA
    wire: StatisticsWire = "paper"
    exploration: Exploration = field(default_factory=UCB)

    equation: ClassVar[str] = "argmax μ + ασ of ridge regression on x; sync when n·ln(det A_new/det A_last) > D"
    sends: ClassVar[str] = "(ΔA, Δb) up and (A, b) down: 2N(d²+d) scalars in each sync"

    def __post_init__(self) -> None:
        _check_common(self.lam, self.alpha, self.exploration)
        require_at_least("D", self.D, least=0)
        require_one_of("wire", self.wire, choices=STATISTICS_WIRES)

    def plan(self, dim: int, /) -> Plan:
        _require_features(dim)
        return Plan(
            belief=FiniteBelief.empty(embedding=LinearEmbedding(dim), lam=self.lam),
            trigger=Determinant(self.D),
            phases=(ShareStatistics(source="tail", wire=self.wire),),
            confidence=_confidence(self.alpha),
            exploration=self.exploration,
        )


@dataclass(frozen=True)
class ApproxDisKernelUCB:
    """Nyström kernel UCB; clients agree on a small dictionary and share statistics in its coordinates (Alg. 2).

    Args:
        kernel: Similarity of two points: a kernel of laconic, one of scikit-learn, or any callable k(X, Y).
        D: Threshold D of the sync trigger, at least 0, without a unit; 0 means a sync after every interaction. Raising
            it means fewer syncs: less is sent, and beliefs are older.
        lam: Ridge λ, above 0, in units of k(x, x): the noise's variance as a part of the signal's. Raising it trusts
            single observations less, smooths more and makes σ smaller: less is explored, and where a threshold D
            decides, exchanges come later and less is sent.
        alpha: Weight α of σ in the index μ + ασ, in units of rewards: a number of at least 0, or Theory() for the
            paper's schedule. σ has no unit and is √(k(x, x)/λ) where nothing is known; about twice the noise's standard
            deviation is a good α. Raising it explores more; Greedy() ignores it.
        qbar: Scale q̄ of the sampling, above 0: a point is proposed for the dictionary with probability min(1, q̄σ²).
            Raising it makes the dictionary larger: more is sent, and less is lost.
        cold_start: What is known before the first sync. paper: nothing. local: the client's own points, exactly.
        dtype: Precision of the belief: float64, or float32, which halves its memory and costs digits.
        wire: paper: whole matrices travel, as the paper counts them. compact: triangles in single precision, which take
            a seventh to two fifths of the bytes: less the more numbers there are.
        exploration: How an arm is chosen given μ and ασ of each: UCB(), Thompson(), Softmax(), EpsilonFloor() or
            Greedy().
    """

    kernel: KernelLike = field(default_factory=Gaussian)
    D: float = D_NYSTROM
    lam: float = LAM
    alpha: Alpha = ALPHA
    qbar: float = QBAR
    cold_start: Literal["paper", "local"] = "paper"
    dtype: Precision = "float64"
    wire: StatisticsWire = "paper"
    exploration: Exploration = field(default_factory=UCB)

    equation: ClassVar[str] = "argmax μ̃ + ασ̃ in the span of a dictionary S; sync when Σ σ̃²_last(x_s) > D  (Eq. 3, 4)"
    sends: ClassVar[str] = (
        "each sync: sampled points Σ|S_i|(d+1) up, dictionary N·|S|(d+1) down, statistics N(r²+r) up and as much down"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        _check_common(self.lam, self.alpha, self.exploration)
        require_one_of("dtype", self.dtype, choices=tuple(PRECISIONS))
        require_at_least("D", self.D, least=0)
        require_one_of("cold_start", self.cold_start, choices=("paper", "local"))
        require_one_of("wire", self.wire, choices=STATISTICS_WIRES)
        AgreeOnDictionary(self.qbar)
        if isinstance(self.alpha, Theory) and not is_grid(self.D):
            NystromTheory(self.alpha, D=self.D)

    def plan(self, dim: int, /) -> Plan:
        _require_features(dim)
        blank = NystromEmbedding(kernel=as_kernel(self.kernel), dictionary=np.empty((0, dim)), dtype=self.dtype)
        paper = FiniteBelief.empty(embedding=blank, lam=self.lam)
        local = ExactBelief.empty(kernel=as_kernel(self.kernel), lam=self.lam, dim=dim, dtype=self.dtype)
        return Plan(
            belief=local if self.cold_start == "local" else paper,
            trigger=Variance(self.D),
            phases=(
                AgreeOnDictionary(self.qbar, wire=self.wire),
                ShareStatistics(source="history", wire=self.wire),
            ),
            confidence=NystromTheory(self.alpha, D=self.D) if isinstance(self.alpha, Theory) else Fixed(self.alpha),
            exploration=self.exploration,
        )


@dataclass(frozen=True)
class LaconicUCB:
    """Kernel UCB that says little: quantised points go up once, a small weighted set of points and the mean come down.

    A client asks when the variance of its new points exceeds its share of what there is to know, δ·d_eff/N. Here d_eff
    is the effective dimension: how many directions the points of all clients tell apart from noise.

    Args:
        kernel: Similarity of two points: a kernel of laconic, one of scikit-learn, or any callable k(X, Y).
        lam: Ridge λ, above 0, in units of k(x, x): the noise's variance as a part of the signal's. Raising it trusts
            single observations less, smooths more and makes σ smaller: less is explored, and where a threshold D
            decides, exchanges come later and less is sent.
        alpha: Weight α of σ in the index μ + ασ, in units of rewards: a number of at least 0, or Theory() for the
            paper's schedule. σ has no unit and is √(k(x, x)/λ) where nothing is known; about twice the noise's standard
            deviation is a good α. Raising it explores more; Greedy() ignores it.
        delta: Part δ of its share of all there is to know, d_eff/N, that a client gathers before it asks, at least 0; 0
            means an ask after every interaction. Raising it means fewer asks: less is sent, and versions are older. It
            is no risk, as Theory.delta is.
        digest: What comes down: Atoms(), a weighted set of points, or AllPoints(), the points themselves.
        ranges: Largest usual size of a feature, above 0: one number for all features, or a tuple of d numbers, one for
            each. A point beyond it takes more bytes. Raising it makes the steps of rounding coarser, and points for
            which they are too coarse take more bytes too.
        reward: Largest usual size of a reward, above 0. It is a scale and not a bound. It becomes the range of the
            digest's recipe; one that says another range, and not 1, is refused. Raising it makes the steps of the mean
            coarser and the aim beta looser: less is sent.
        upload: When points go up without being asked for: Growth(part) when they are that part of the client's own,
            WithAsk() never. Rarer uploads send less; others know of a client's points later, which may raise regret.
        budget: Bytes that a client may send and receive in 1,000 interactions, at least 3,000, as a reward and the
            number of a known point take 3; None for no such aim. Lowering it raises δ as the aim comes near, unless
            delta is 0.
        exploration: How an arm is chosen given μ and ασ of each: UCB(), Thompson(), Softmax(), EpsilonFloor() or
            Greedy().
    """

    kernel: KernelLike = field(default_factory=Gaussian)
    lam: float = LAM
    alpha: Alpha = ALPHA
    delta: float = DELTA
    digest: Digest = field(default_factory=Atoms)
    ranges: float | tuple[float, ...] = 1.0
    reward: float = 1.0
    upload: UploadRule = field(default_factory=Growth)
    budget: float | None = None
    exploration: Exploration = field(default_factory=UCB)

    equation: ClassVar[str] = "argmax μ + ασ̂, exact μ, σ̂ of weighted atoms; ask when Σ σ̂²_last(x_s) > δ·d_eff/N"
    sends: ClassVar[str] = (
        "each own point up once, one byte for each coordinate; atoms that are new, weights and the mean down"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        _check_common(self.lam, self.alpha, self.exploration)
        require_at_least("delta", self.delta, least=0)
        require_positive("reward", self.reward)
        if self.budget is not None and not is_grid(self.budget):
            require_at_least("budget", self.budget, least=LEAST_BUDGET)
        if isinstance(self.ranges, list):
            object.__setattr__(self, "ranges", tuple(self.ranges))
        Int8Wire(self.ranges)
        if not is_grid(self.digest) and not isinstance(self.digest, Digest):
            advice = instead("digest", self.digest, one="Atoms()")
            raise InputError(f"digest must be a Digest, not {seen(self.digest)}; {advice}")
        if not is_grid(self.upload) and not isinstance(self.upload, UploadRule):
            raise InputError(f"upload must have a method due(unsent, own), not {seen(self.upload)}; try Growth()")
        if not is_grid(self.digest) and not is_grid(self.reward):
            _lean_confidence(self.alpha, _scaled(self.digest, reward=self.reward))

    def plan(self, dim: int, /) -> Plan:
        _require_features(dim)
        if isinstance(self.ranges, tuple) and len(self.ranges) != dim:
            raise InputError(
                f"ranges has {len(self.ranges)} entries, but arms have {dim} features; try one number for all of them"
            )
        digest = _scaled(self.digest, reward=self.reward)
        return Plan(
            belief=ExactBelief.empty(kernel=as_kernel(self.kernel), lam=self.lam, dim=dim),
            trigger=ScaledVariance(self.delta) if self.budget is None else self._budgeted(self.budget, dim=dim),
            digest=digest,
            confidence=_lean_confidence(self.alpha, digest),
            exploration=self.exploration,
            wire=Int8Wire(self.ranges),
            upload=self.upload,
        )

    def _budgeted(self, budget: float, *, dim: int) -> BudgetedVariance:
        """The trigger of a client with a budget; says so where uploads alone take more than that."""
        least = least_budget(self.upload, dim=dim)
        if budget < least:
            warnings.warn(
                f"budget={budget:,g} is less than the {least:,} bytes for 1,000 interactions in which new points of "
                f"{dim} features go up; unless most points repeat, clients spend more, and hear little of each other",
                stacklevel=1,  # one place, so that it is said once however often a plan is made
            )
        return BudgetedVariance(self.delta, budget=budget)


def _scaled(digest: Digest, *, reward: float) -> Digest:
    """The digest with the mean in steps of the rewards' range.

    All points are sent with what a client's share of them is, which atoms say too: the same schedule, without atoms.
    """
    if type(digest) is AllPoints:  # and not one that is made of it, which does as it says
        return Atoms(Recipe(share=0.0, range=reward))
    if not isinstance(digest, Atoms):
        return digest
    if digest.recipe.range not in (1.0, reward):
        raise InputError(
            f"reward is {reward!r}, but the recipe of atoms says range={digest.recipe.range!r}; "
            f"try LaconicUCB(reward={digest.recipe.range!r})"
        )
    return replace(digest, recipe=replace(digest.recipe, range=reward))


def _lean_confidence(alpha: Alpha, digest: Digest) -> Confidence:
    """α as it is given, or the width that follows from what a digest of atoms says of itself."""
    if not isinstance(alpha, Theory):
        return Fixed(alpha)
    if not isinstance(digest, Atoms):
        raise InputError(
            f"the theoretical alpha rests on the certificates of atoms, and {type(digest).__name__} has none; "
            "try digest=Atoms(), or give alpha as a number"
        )
    return LeanTheory(alpha, step=digest.recipe.quantum)


@dataclass(frozen=True)
class AskServer:
    """Thin clients: each shows its arms to a server that chooses and learns for all; a baseline, simulated only.

    The server runs exact kernel UCB on the points of all clients, rounded to one byte for each coordinate. No client
    can choose before it has answered.

    Args:
        kernel: Similarity of two points: a kernel of laconic, one of scikit-learn, or any callable k(X, Y).
        lam: Ridge λ, above 0, in units of k(x, x): the noise's variance as a part of the signal's. Raising it trusts
            single observations less, smooths more and makes σ smaller: less is explored, and where a threshold D
            decides, exchanges come later and less is sent.
        alpha: Weight α of σ in the index μ + ασ, in units of rewards: a number of at least 0, or Theory() for the
            paper's schedule. σ has no unit and is √(k(x, x)/λ) where nothing is known; about twice the noise's standard
            deviation is a good α. Raising it explores more; Greedy() ignores it.
        ranges: Largest usual size of a feature, above 0: one number for all features, or a tuple of d numbers, one for
            each. A point beyond it takes more bytes. Raising it makes the steps of rounding coarser, and points for
            which they are too coarse take more bytes too.
        exploration: How an arm is chosen given μ and ασ of each: UCB(), Thompson(), Softmax(), EpsilonFloor() or
            Greedy().
    """

    kernel: KernelLike = field(default_factory=Gaussian)
    lam: float = LAM
    alpha: Alpha = ALPHA
    ranges: float | tuple[float, ...] = 1.0
    exploration: Exploration = field(default_factory=UCB)

    equation: ClassVar[str] = "argmax μ + ασ, exact μ and σ over the points of all clients, by the server"
    sends: ClassVar[str] = (
        "each decision: the arms up, a byte for a coordinate (ids of those sent before), the choice down, the reward up"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        _check_common(self.lam, self.alpha, self.exploration)
        if isinstance(self.ranges, list):
            object.__setattr__(self, "ranges", tuple(self.ranges))
        Int8Wire(self.ranges)

    @property
    def wire(self) -> Int8Wire:
        """How arms and rewards travel."""
        return Int8Wire(self.ranges)

    def server(self) -> OneKernelUCB:
        """What the server runs on arms as it is shown them: it knows every point at once, as OneKernelUCB does."""
        return OneKernelUCB(self.kernel, lam=self.lam, alpha=self.alpha, exploration=self.exploration)

    def plan(self, dim: int, /) -> Plan:
        raise InputError(
            "AskServer is simulated only: the protocol has no messages in which a server chooses; "
            "try run(AskServer(), …), or deploy LaconicUCB()"
        )


@dataclass(frozen=True)
class Random:
    """Uniformly random arms: the line that learning has to beat."""

    equation: ClassVar[str] = "every arm ties, a draw decides"
    sends: ClassVar[str] = "nothing"

    def plan(self, dim: int, /) -> Plan:
        _require_features(dim)
        blank = FiniteBelief.empty(embedding=BlankEmbedding(dim), lam=1.0)
        return Plan(belief=blank, trigger=Never(), phases=(), confidence=Fixed(0.0))


def require_algorithm(candidate: object) -> Algorithm:
    """The candidate as an algorithm, or an error that says what one is."""
    if isinstance(candidate, type):
        raise InputError(f"an algorithm is a value, got the class {candidate.__name__}; try {candidate.__name__}()")
    if isinstance(candidate, Plan):
        raise InputError("an algorithm is wanted, got the plan that one made; try the algorithm itself, DisKernelUCB()")
    if not isinstance(candidate, Algorithm):
        raise InputError(f"an algorithm has a method plan(dim), got {seen(candidate)}; try DisKernelUCB()")
    return candidate


for _kind in (DisKernelUCB, OneKernelUCB, NKernelUCB, DisLinUCB, ApproxDisKernelUCB, LaconicUCB, AskServer, Random):
    pointing_to_kernels(_kind)
