"""The public checks: sound objects pass, and each broken one is told which contract it breaks."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sklearn_kernels

from laconic import (
    AgreeOnDictionary,
    Always,
    ApproxDisKernelUCB,
    Catalogue,
    Cosine,
    Determinant,
    DisKernelUCB,
    DisLinUCB,
    Every,
    FromFunctions,
    Gaussian,
    Linear,
    Log,
    Matern,
    Never,
    NKernelUCB,
    OneKernelUCB,
    Plan,
    Polynomial,
    PolynomialReward,
    Random,
    RationalQuadratic,
    Round,
    Run,
    ShareData,
    ShareStatistics,
    Theory,
    Variance,
)
from laconic.beliefs import ExactBelief, FiniteBelief, LinearEmbedding, NystromEmbedding, Statistics
from laconic.exploration import Fixed
from laconic.problems.base import Instance
from laconic.protocol.ledger import Ledger
from laconic.protocol.messages import Payload
from laconic.runtimes import RUNTIMES, loopback
from laconic.testing import (
    check_algorithm,
    check_belief,
    check_kernel,
    check_phase,
    check_problem,
    check_runtime,
    check_trigger,
)
from laconic.triggers import Both


def says(check: Callable[[], None], why: str) -> None:
    """The check fails and says why."""
    with pytest.raises(AssertionError, match=why):
        check()


# Kernels


@pytest.mark.parametrize("dim", [1, 3, 20])
@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(),
        Gaussian(gamma=1e6),
        Gaussian(gamma=1e-6),
        Matern(nu=0.5, length=0.1),
        Matern(nu=1.5),
        Matern(nu=2.5),
        RationalQuadratic(),
        Linear(),
        Polynomial(degree=3),
        0.5 * Gaussian() * Linear() + Polynomial(),
    ],
    ids=repr,
)
def test_every_kernel_of_ours_passes(kernel: Any, dim: int) -> None:
    check_kernel(kernel, dim=dim)


def test_kernels_of_others_pass_as_they_are() -> None:
    check_kernel(sklearn_kernels.RBF(0.7) + sklearn_kernels.WhiteKernel(0.0))
    check_kernel(lambda X, Y: np.exp(-np.abs(X[:, None] - Y).sum(axis=2)))


class OddKernel(Gaussian):
    """Ours by inheritance, so that nothing is wrapped around it."""

    def __init__(self, matrix: Callable[[Any, Any], Any], diag: Callable[[Any], Any] | None = None) -> None:
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "own_diag", diag or (lambda X: np.array([matrix(x[None], x[None])[0, 0] for x in X])))

    def __call__(self, X: Any, Y: Any, /) -> Any:
        return self.matrix(X, Y)  # type: ignore[attr-defined]

    def diag(self, X: Any, /) -> Any:
        return self.own_diag(X)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return "OddKernel()"


KEPT: dict[tuple[int, int], Any] = {}
CALLS: Counter[str] = Counter()


def meddling(X: Any, Y: Any) -> Any:
    K = X @ Y.T
    X += 1.0
    return K


def cached(X: Any, Y: Any) -> Any:
    return KEPT.setdefault((id(X), id(Y)), X @ Y.T)


def drifting(X: Any, Y: Any) -> Any:
    CALLS["kernel"] += 1
    return (1 + CALLS["kernel"]) * X @ Y.T


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (3.0, "as_kernel.* raised InputError: kernel must be a kernel"),
        (lambda X, Y: Gaussian()(X, Y) * (2 + X[:, :1]), r"not symmetric: k\(x\d+, x\d+\) is"),
        (lambda X, Y: -Gaussian()(X, Y), "not positive semi-definite: its matrix has the eigenvalue -"),
        (lambda X, Y: np.ones(len(X)), "raised KernelError: .* it must return the whole matrix"),
        (OddKernel(lambda X, Y: X @ Y.T, diag=lambda X: np.ones(len(X))), r"diag\(X\)\[\d+\] is 1, but kernel\(X, X\)"),
        (
            OddKernel(lambda X, Y: X @ Y.T / len(X), diag=lambda X: (X**2).sum(axis=1) / len(X)),
            "these two points alone",
        ),
        (OddKernel(meddling), "called twice: it changes the points that it is given"),
        (OddKernel(cached), "called twice: the same points give another matrix"),
        (OddKernel(drifting), "called twice: the same points give another matrix"),
        (OddKernel(lambda X, Y: np.full((len(X), len(Y)), np.nan)), "holds values that are not finite"),
        (OddKernel(lambda X, Y: (X @ Y.T).astype("f4")), "holds float32 instead of float64"),
        (OddKernel(lambda X, Y: (X @ Y.T) / (X @ Y.T).max()), "on empty sets: .* raised ValueError"),
        (OddKernel(lambda X, Y: (X @ Y.T).tolist()), "must be a numpy array, not list"),
        (OddKernel(lambda X, Y: (X[:, None] * Y).sum(axis=2)), "on stacks of sets: "),
        (OddKernel(lambda X, Y: X @ Y.T, diag=lambda X: np.zeros((len(X), 1))), r"diag\(X\) has shape \(6, 1\)"),
    ],
)
def test_a_broken_kernel_is_told_what_is_wrong(kernel: Any, why: str) -> None:
    says(lambda: check_kernel(kernel), why)


def test_a_message_names_the_object_and_the_place() -> None:
    says(
        lambda: check_kernel(OddKernel(lambda X, Y: -(X @ Y.T))),
        r"^kernel OddKernel\(\), on one point: it is not positive semi-definite",
    )


# Triggers


@pytest.mark.parametrize(
    "trigger",
    [
        Always(),
        Never(),
        Every(3),
        Determinant(0),
        Determinant(20),
        Variance(5),
        Variance(1) | Every(9),
        Always() & Every(2),
    ],
    ids=repr,
)
def test_every_trigger_of_ours_passes(trigger: Any) -> None:
    check_trigger(trigger)


@dataclass(frozen=True)
class OddTrigger:
    rule: Callable[[Any], Any]

    def fires(self, news: Any, /) -> Any:
        return self.rule(news)


def alternating(news: Any) -> bool:
    CALLS["trigger"] += 1
    return bool(news.count > 0) and CALLS["trigger"] % 2 == 0


@pytest.mark.parametrize(
    ("trigger", "why"),
    [
        (object(), r"it has no method fires\(news\)"),
        (OddTrigger(lambda news: news.count >= 0), "fires when there is no news"),
        (OddTrigger(lambda news: news.count), "which is neither True nor False"),
        (OddTrigger(alternating), "another answer the second time"),
        (OddTrigger(lambda news: news.count > 3 and news.variance > 1), "must work elementwise .* raised ValueError"),
        (OddTrigger(lambda news: bool(np.max(news.count) > 3)), "not those for one piece of news at a time"),
        (OddTrigger(lambda news: news.surprise > 1), "raised AttributeError"),
    ],
)
def test_a_broken_trigger_is_told_what_is_wrong(trigger: Any, why: str) -> None:
    says(lambda: check_trigger(trigger), why)


# Beliefs


def learnt(count: int, *, dim: int = 2, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, dim)), rng.normal(size=count)


def exact(count: int = 0) -> ExactBelief:
    return ExactBelief.empty(kernel=Gaussian(), lam=0.5, dim=2).extended(*learnt(count))


def linear(count: int = 0) -> FiniteBelief:
    belief = FiniteBelief.empty(embedding=LinearEmbedding(2), lam=0.5)
    X, y = learnt(count)
    prior, squares = float((X**2).sum()), float(y @ y)
    return belief.with_statistics(Statistics(X.T @ X, X.T @ y, prior=prior, count=count, squares=squares))


def nystrom(size: int) -> FiniteBelief:
    return FiniteBelief.empty(embedding=NystromEmbedding(kernel=Gaussian(), dictionary=learnt(size)[0]), lam=0.5)


@dataclass(frozen=True)
class Waves:
    """Random Fourier features, as another package might bring them."""

    dim: int
    size: int = 6

    def embed(self, X: Any) -> Any:
        frequencies = np.random.default_rng(1).normal(size=(self.size // 2, self.dim))
        angles = frequencies @ X.T
        return np.concatenate([np.cos(angles), np.sin(angles)]) / np.sqrt(self.size // 2)

    def prior(self, X: Any) -> Any:
        return np.ones(len(X))

    def residual(self, prior: Any, Z: Any) -> Any:
        return np.zeros(Z.shape[1])


@pytest.mark.parametrize("count", [0, 1, 30])
def test_every_belief_of_ours_passes_with_and_without_data(count: int) -> None:
    check_belief(exact(count))
    check_belief(linear(count))
    check_belief(nystrom(count))


def test_a_belief_in_coordinates_of_ones_own_passes() -> None:
    check_belief(FiniteBelief.empty(embedding=Waves(dim=3), lam=2.0))


@dataclass(frozen=True)
class Borrowing(Waves):
    """Hands out the points themselves, which are then overwritten."""

    size: int = 3

    def embed(self, X: Any) -> Any:
        return X.T


def test_coordinates_that_are_not_an_array_of_their_own_are_found_out() -> None:
    says(
        lambda: check_belief(FiniteBelief.empty(embedding=Borrowing(dim=3), lam=2.0)),
        "view of 1 points: it changes the points that it is given",
    )


def test_beliefs_in_single_precision_pass() -> None:
    check_belief(ExactBelief.empty(kernel=Gaussian(), lam=0.5, dim=2, dtype="float32").extended(*learnt(20)))
    embedding = NystromEmbedding(kernel=Gaussian(), dictionary=learnt(6)[0], dtype="float32")
    check_belief(FiniteBelief.empty(embedding=embedding, lam=0.5))


def test_a_dictionary_learnt_after_a_cold_start_is_restored_from_the_plans_exact_belief() -> None:
    check_belief(nystrom(4), template=exact())
    says(lambda: check_belief(nystrom(4), template=linear()), "saved and restored: .*from_arrays.* raised")


class OddBelief:
    """A sound belief but for some attributes."""

    def __init__(self, sound: Any, **odd: Any) -> None:
        self.sound, self.odd = sound, odd

    def __getattr__(self, name: str) -> Any:
        return self.odd[name] if name in self.odd else getattr(self.sound, name)


def seen_otherwise(change: Callable[[Any], dict[str, Any]], *, sound: Any = None) -> OddBelief:
    sound = sound or linear(5)

    def view(X: Any) -> Any:
        met = sound.view(X)
        return replace(met, **change(met))

    return OddBelief(sound, view=view)


def wandering(met: Any) -> dict[str, Any]:
    CALLS["view"] += 1
    return {"mean": met.mean + CALLS["view"]}


SOUND = linear(5)


@pytest.mark.parametrize(
    ("belief", "why"),
    [
        (OddBelief(SOUND, dim=0), "dim must be a whole number above 0, not 0"),
        (OddBelief(SOUND, lam=0.0), "lam must be a finite number above 0"),
        (OddBelief(SOUND, rank=2.0), "rank must be None or a whole number, not 2.0"),
        (OddBelief(SOUND, information=-1.0), "information is -1.0, below 0"),
        (
            seen_otherwise(lambda met: {"features": met.features[:1]}),
            r"features has shape \(1, 0\) instead of \(2, 0\)",
        ),
        (
            seen_otherwise(lambda met: {"signal": met.signal - 9.0}),
            "signal is a variance, but holds -",
        ),
        (seen_otherwise(lambda met: {"mean": met.mean.astype("f4")}), "mean holds float32"),
        (seen_otherwise(wandering), "the same points have another mean the second time"),
        (
            seen_otherwise(lambda met: {"mean": met.mean - met.mean.sum()}),
            "a point depends on the other points",
        ),
        (seen_otherwise(lambda met: {"signal": met.signal + 1.0}), "its diagonal differs from signal by 1"),
        (OddBelief(SOUND, covariance=lambda a, b: a.features.T @ (b.features + 1)), "not covariance.b, a. transposed"),
        (OddBelief(SOUND, covariance=lambda a, b: a.signal[:, None] * b.signal), "depend on points and features alone"),
        (OddBelief(exact(3), rank=3), "it must be the product of the features"),
        (OddBelief(SOUND, arrays=lambda: {"moment": [1.0]}), "must be a numpy array, not list"),
        (OddBelief(SOUND, arrays=lambda: {"moment": np.array([np.nan])}), "holds values that are not finite"),
        (OddBelief(SOUND, arrays=dict), "saved and restored: .* raised RemoteProtocolError"),
        (OddBelief(SOUND), "it comes back as FiniteBelief"),
    ],
)
def test_a_broken_belief_is_told_what_is_wrong(belief: Any, why: str) -> None:
    says(lambda: check_belief(belief, template=SOUND), why)


def test_a_belief_that_saves_too_little_is_found_out() -> None:
    @dataclass(frozen=True, eq=False)
    class Forgetful(FiniteBelief):
        def arrays(self) -> dict[str, Any]:
            return super().arrays() | {"moment": np.zeros(2)}

    belief = Forgetful(embedding=SOUND.embedding, lam=SOUND.lam, statistics=SOUND.statistics)
    says(lambda: check_belief(belief), "it does not say the same to the last bit")


# Phases


def test_every_phase_of_ours_passes() -> None:
    check_phase(ShareData(), belief=exact())
    check_phase(ShareData(), belief=exact(20))
    check_phase(ShareStatistics(source="tail"), belief=linear())
    check_phase(ShareStatistics(source="tail"), belief=nystrom(3))
    for start in (nystrom(0), nystrom(3), exact()):
        check_phase(AgreeOnDictionary(1.0), belief=start)
        check_phase(ShareStatistics(source="history"), belief=start, after=[AgreeOnDictionary(1.0)])


class Nameless(ShareData):
    name: ClassVar[str] = ""


class Silent(ShareData):
    def contribute(self, member: Any) -> Any:
        raise RuntimeError("nothing to say")


class Fickle(ShareData):
    def contribute(self, member: Any) -> Any:
        CALLS["fickle"] += 1
        return Payload(values=super().contribute(member).values, control={"call": float(CALLS["fickle"])})


class Meddling(ShareStatistics):
    def contribute(self, member: Any) -> Any:
        part = super().contribute(member)
        member.rewards[:] = 0.0
        return part


class Narrow(ShareData):
    def contribute(self, member: Any) -> Any:
        return Payload(values={name: array.astype("i8") for name, array in super().contribute(member).values.items()})


class Infinite(ShareData):
    def contribute(self, member: Any) -> Any:
        part = super().contribute(member)
        return Payload(values=part.values | {"rewards": part.values["rewards"] + np.inf})


class Strict(ShareData):
    def check(self, draft: Any, part: Any) -> None:
        assert len(part.values["rewards"]) < 4, "too many points"


class Incomplete(ShareData):
    def complete(self, received: Any, own: Any) -> Any:
        return received


class Muddling(ShareData):
    def finish(self, draft: Any, state: Any) -> Any:
        for part in state.values():
            part.values["rewards"][:] += 1.0
        return super().finish(draft, state)


class Impure(ShareStatistics):
    def absorb(self, draft: Any, merged: Any) -> Any:
        CALLS["absorb"] += 1
        return super().absorb(replace(draft, lam=draft.lam * (1 + 1e-9 * CALLS["absorb"])), merged)


class Overwriting(ShareStatistics):
    def absorb(self, draft: Any, merged: Any) -> Any:
        draft.statistics.gram[:] += merged.values["gram"]
        return draft


class Trusting(ShareStatistics):
    def check(self, draft: Any, part: Any) -> None:
        pass


class Raising(ShareStatistics):
    def check(self, draft: Any, part: Any) -> None:
        if part.values["gram"].shape != (2, 2) or part.values["moment"].shape != (2,):
            raise KeyError("gram")


class Forgetting(ShareStatistics):
    """Says of ``replaces`` what most phases say."""

    replaces = False


class ByArrival(ShareStatistics):
    """Looks at parts as they arrive, so that the last of them counts for more."""

    last: ClassVar[dict[str, float]] = {"size": 0.0}

    def check(self, draft: Any, part: Any) -> None:
        super().check(draft, part)
        self.last["size"] = float(np.abs(part.values["moment"]).sum())

    def finish(self, draft: Any, state: Any) -> Any:
        merged = super().finish(draft, state)
        prior = merged.control["prior"] * (2.0 + self.last["size"])
        return Payload(values=merged.values, control=merged.control | {"prior": prior})


class InOrderOfArrival(ShareData):
    """Puts points down as they come."""

    def empty(self) -> Any:
        return {"order": []}

    def add(self, state: Any, client: int, part: Any) -> Any:
        return {**state, client: part, "order": [*state["order"], client]}

    def finish(self, draft: Any, state: Any) -> Any:
        return super().finish(draft, {place: state[client] for place, client in enumerate(state["order"])})


@pytest.mark.parametrize(
    ("phase", "belief", "why"),
    [
        (object(), exact(), "must derive from laconic.Phase"),
        (Nameless(), exact(), "it needs a name"),
        (
            ShareData(),
            linear(),
            "raised InputError: ShareData needs a belief that learns raw points.*; got FiniteBelief",
        ),
        (Silent(), exact(), "contribute of client 0 .* raised RuntimeError: nothing to say"),
        (Fickle(), exact(), "the same member contributes something else the second time"),
        (Meddling("tail"), linear(), "something else the second time|it changes the client's history"),
        (Narrow(), exact(), "but arrays of float64, .* are what travels"),
        (Infinite(), exact(), "encoding and decoding what it sends raised RemoteProtocolError"),
        (Strict(), exact(), "check.draft, part. on an honest part|too many points"),
        (Incomplete(), exact(), "they must be inverse"),
        (Muddling(), exact(), "it changes the parts that it is given"),
        (Impure("tail"), linear(), "another belief than the server|it is not pure"),
        (Overwriting("tail"), linear(), "another belief than the server|it changes the draft, which is shared"),
        (Trusting("tail"), linear(), "check accepts it, but merging, addressing or absorbing it raised"),
        (Raising("tail"), linear(), "check must refuse it with RemoteProtocolError or take it, but raised KeyError"),
        (Forgetting("history"), linear(), "must say replaces = True"),
        (InOrderOfArrival(), exact(), "merging: parts that come in another order merge into another result"),
        (ByArrival("tail"), linear(), "parts delivered .* lead to another belief than in order"),
    ],
)
def test_a_broken_phase_is_told_what_is_wrong(phase: Any, belief: Any, why: str) -> None:
    says(lambda: check_phase(phase, belief=belief), why)


# Algorithms


@pytest.mark.parametrize(
    "algorithm",
    [
        DisKernelUCB(D=2.0),
        DisKernelUCB(D=2.0, together=False),
        DisKernelUCB(D=1e12),
        DisKernelUCB(Linear(), D=0.0, lam=1e-3, alpha=Theory()),
        OneKernelUCB(Matern(nu=0.5), alpha=0.0),
        NKernelUCB(),
        DisLinUCB(D=1.0),
        ApproxDisKernelUCB(D=1.0),
        ApproxDisKernelUCB(D=1.0, qbar=float("inf"), alpha=Theory()),
        ApproxDisKernelUCB(Polynomial(), D=0.5, lam=0.1, qbar=2.0, cold_start="local"),
        Random(),
    ],
    ids=lambda algorithm: type(algorithm).__name__,
)
def test_every_algorithm_of_ours_passes(algorithm: Any) -> None:
    check_algorithm(algorithm)


@dataclass(frozen=True)
class InTwoFeatures:
    """A kernel with one length a feature fits one dimension only."""

    def plan(self, dim: int, /) -> Plan:
        return DisKernelUCB(sklearn_kernels.RBF([1.0, 2.0]), D=1.0).plan(dim)


def test_an_algorithm_for_one_dimension_is_checked_in_that_dimension() -> None:
    check_algorithm(InTwoFeatures(), dim=2)
    says(lambda: check_algorithm(InTwoFeatures()), r"plan\(1\)|raised ValueError")


@dataclass(frozen=True)
class Altered:
    """DisLinUCB with a part changed."""

    change: Callable[[Plan], Any]

    def plan(self, dim: int, /) -> Any:
        return self.change(DisLinUCB(D=1.0).plan(dim))


def test_a_trigger_that_can_never_fire_on_its_belief_is_found_out() -> None:
    """A cold Nyström belief has no coordinates: nothing that is learnt moves a determinant."""

    def by_determinant(plan: Plan) -> Plan:
        return replace(ApproxDisKernelUCB().plan(plan.belief.dim), trigger=Determinant(1.0))

    says(lambda: check_algorithm(Altered(by_determinant)), r"Determinant\(D=1.0\) can never fire on its belief")
    both = Altered(lambda plan: replace(plan, trigger=Both(Always(), Never())))
    says(lambda: check_algorithm(both), "can never fire on its belief")


def test_a_trigger_that_fires_late_or_that_is_told_never_to_is_left_alone() -> None:
    for trigger in (Every(10**9), Determinant(1e9), Variance(1e12), Never(), Never() | Every(10**6)):
        check_algorithm(Altered(lambda plan, trigger=trigger: replace(plan, trigger=trigger)), dim=2)  # type: ignore[misc]


@dataclass
class Thawed:
    def plan(self, dim: int, /) -> Plan:
        return Random().plan(dim)


class Moody(Fixed):
    """Explores more at every look."""

    def coefficient(self, *, lam: float, clients: int, information: Any) -> Any:
        CALLS["moody"] += 1
        return CALLS["moody"] % 11


def other_every_time(plan: Plan) -> Plan:
    CALLS["plan"] += 1
    return replace(plan, belief=linear(CALLS["plan"]))


@pytest.mark.parametrize(
    ("algorithm", "why"),
    [
        (Random, "it is a class; check a value of it"),
        (object(), r"it has no method plan\(dim\)"),
        (Thawed(), "it must be a frozen dataclass"),
        (Altered(lambda plan: None), r"plan\(1\): it must return a Plan, not NoneType"),
        (Altered(lambda plan: 1 / 0), r"plan\(1\): plan\(dim\) raised ZeroDivisionError"),
        (Altered(lambda plan: replace(plan, belief=linear())), r"plan\(1\): its belief has dim 2"),
        (
            Altered(lambda plan: replace(plan, confidence=Fixed(1.0), trigger=OddTrigger(alternating))),
            "^trigger OddTrigger",
        ),
        (Altered(lambda plan: replace(plan, phases=(Forgetting("history"),))), "^phase Forgetting"),
        (Altered(lambda plan: replace(plan, confidence=Moody(1.0))), "with fresh arms: .* when it is played again"),
    ],
)
def test_a_broken_algorithm_is_told_what_is_wrong(algorithm: Any, why: str) -> None:
    says(lambda: check_algorithm(algorithm), why)


def test_a_plan_must_be_the_same_every_time() -> None:
    def growing(plan: Plan) -> Plan:
        CALLS["growing"] += 1
        return replace(plan, trigger=Every(CALLS["growing"]))

    says(lambda: check_algorithm(Altered(growing)), r"a second plan is another: trigger\.n is 1 here and 2 there")


def test_a_plan_must_say_what_it_is_made_of() -> None:
    class Patience:
        def __init__(self, n: int) -> None:
            self.n = n

        def fires(self, news: Any, /) -> Any:
            return news.count >= self.n

    says(lambda: check_algorithm(Altered(lambda plan: replace(plan, trigger=Patience(3)))), "try a frozen dataclass")


def test_a_plan_must_start_from_the_same_belief_every_time() -> None:
    says(lambda: check_algorithm(Altered(other_every_time), dim=2), "a second plan starts from another belief")


# Problems


@pytest.mark.parametrize(
    "problem",
    [
        Cosine(),
        PolynomialReward(dim=1, arms=1),
        Catalogue(),
        Catalogue(items=1, arms=1, noise=0.0),
        FromFunctions(mean=lambda x: x.sum(axis=1), arms=lambda rng, clients: rng.uniform(size=(clients, 3, 2))),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_every_problem_of_ours_passes(problem: Any) -> None:
    check_problem(problem)
    check_problem(problem, clients=1, rounds=1)


def test_a_log_passes_as_one_that_seeds_do_not_change() -> None:
    log = Log(arms=[[[0.0], [1.0]]] * 5, means=[[0.2, 0.8]] * 5, noise=[0.1] * 5)
    check_problem(log, seeds_matter=False)
    says(lambda: check_problem(log), "seeds 0 and 1 give the same rounds; say seeds_matter=False")
    says(lambda: check_problem(Cosine(), seeds_matter=False), "seeds 0 and 1 give different rounds")


@dataclass
class OddInstance:
    sound: Instance
    change: Callable[[int, Round], Any]
    dim: int

    def round(self, index: int) -> Any:
        return self.change(index, self.sound.round(index))


@dataclass(frozen=True)
class OddProblem:
    """Cosine with its rounds changed."""

    change: Callable[[int, Round], Any] = lambda index, met: met
    wanted_dim: int = 2

    def instance(self, *, seed: int, clients: int, rounds: int) -> Any:
        return OddInstance(Cosine(dim=2, arms=3).instance(seed=seed, clients=clients, rounds=rounds), self.change, 2)

    @property
    def dim(self) -> int:
        return self.wanted_dim


@dataclass(frozen=True)
class ByHorizon:
    def instance(self, *, seed: int, clients: int, rounds: int) -> Any:
        return Cosine(dim=2, arms=2, noise=rounds).instance(seed=seed, clients=clients, rounds=rounds)


@dataclass(frozen=True)
class Aliasing:
    """Hands out the arrays it draws from."""

    def instance(self, *, seed: int, clients: int, rounds: int) -> Any:
        met = Cosine(dim=2, arms=2).instance(seed=seed, clients=clients, rounds=1).round(0)
        return OddInstance(Cosine(dim=2).instance(seed=0, clients=1, rounds=1), lambda index, _: met, 2)


@dataclass(frozen=True)
class Limited(ByHorizon):
    def sizes(self, clients: int | None = None, rounds: int | None = None) -> tuple[int, int]:
        return 0, 0


def drawn_anew(index: int, met: Round) -> Round:
    CALLS["round"] += 1
    return replace(met, rewards=met.rewards + CALLS["round"])


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (object(), r"it has no method instance\(\*, seed, clients, rounds\)"),
        (OddProblem(wanted_dim=3), "its dim is 3, but that of its instance is 2"),
        (OddProblem(drawn_anew), "is another one when asked for again: it must be pure"),
        (
            OddProblem(lambda index, met: replace(met, means=met.means[:1])),
            "raised ProblemError: round 0: means",
        ),
        (OddProblem(lambda index, met: replace(met, arms=met.arms * np.nan)), r"round 0: arms\[0, 0, 0\] is nan"),
        (OddProblem(lambda index, met: met.arms[index]), r"round\(index\) must return a Round"),
        (ByHorizon(), r"round\(0\) of an instance with rounds=1 is not that of one with rounds=4"),
        (Aliasing(), r"writing into what round\(0\) returned changes the instance"),
        (Limited(), r"sizes\(\) gives clients=0"),
    ],
)
def test_a_broken_problem_is_told_what_is_wrong(problem: Any, why: str) -> None:
    says(lambda: check_problem(problem), why)


# Runtimes


@pytest.mark.parametrize("name", RUNTIMES)
def test_every_runtime_of_ours_passes(name: str) -> None:
    check_runtime(RUNTIMES[name])


def altered(change: Callable[[Run], Any], **given: Any) -> Callable[..., Any]:
    def play(algorithm: Any, instance: Any, **options: Any) -> Any:
        return change(loopback.play(algorithm, instance, **(options | given)))

    return play


def swapped(run: Run) -> Run:
    return replace(run, choices=np.where(np.arange(len(run.choices)) == 3, run.choices + 1, run.choices))


@pytest.mark.parametrize(
    ("play", "why"),
    [
        (altered(lambda run: None), "it must return a Run, not NoneType"),
        (altered(swapped), "the choice of step 4 is arm .* as in loopback"),
        (altered(lambda run: run, seed=9), "the run says seed=9, not 5"),
        (altered(lambda run: run, progress=None), r"progress was told \[\] for 40 steps"),
        (altered(lambda run: replace(run, sync_steps=run.sync_steps + 1)), "sync_steps is .*, not .*, as in loopback"),
        (
            altered(lambda run: replace(run, ledger=Ledger(DisKernelUCB().plan(2)))),
            "0 messages are counted, not [0-9]+, as in loopback",
        ),
        (altered(lambda run: replace(run, regrets=run.regrets + 1)), "regrets is"),
        (altered(lambda run: 1 / 0), "play raised ZeroDivisionError"),
    ],
)
def test_a_broken_runtime_is_told_what_is_wrong(play: Any, why: str) -> None:
    says(lambda: check_runtime(play), why)


def test_a_message_of_a_runtime_names_the_algorithm_and_the_problem() -> None:
    says(lambda: check_runtime(altered(swapped)), re.escape("playing DisKernelUCB(kernel=Gaussian(gamma=0.2), D=3.0"))
