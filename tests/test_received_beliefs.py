"""What came from elsewhere: honest sums, points and arrays always pass, whatever rounding does; others are refused."""

import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from laconic import Determinant, Plan, ShareData, ShareStatistics
from laconic.arrays import Floats
from laconic.beliefs import (
    Belief,
    BeliefBase,
    BlankEmbedding,
    ExactBelief,
    FiniteBelief,
    LinearEmbedding,
    NystromEmbedding,
    Statistics,
    View,
    belief_hash,
    expect_bounded,
    expect_shapes,
    variances,
)
from laconic.errors import InputError, RemoteProtocolError
from laconic.exploration import Fixed
from laconic.kernels import Gaussian, Kernel, Linear, Matern, Polynomial
from laconic.leverage import full_rank
from laconic.protocol.messages import Payload, Welcome, payload_of
from laconic.protocol.phases import AgreeOnDictionary, Member
from laconic.protocol.phases.statistics import STATISTICS_WIRES
from laconic.runtimes.network import Network
from laconic.testing import check_belief, check_phase

KERNELS: list[Kernel] = [
    Gaussian(0.01),
    Gaussian(1.0),
    Gaussian(100.0),
    Matern(nu=1.5),
    Linear(),
    Polynomial(2),
    Polynomial(3),
    1e6 * Gaussian(1.0),
    Gaussian(1.0) + 1e3 * Linear(),
]


def data(n: int, *, dim: int = 2, seed: int = 1) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, dim)), rng.standard_normal(n)


def exact(n: int = 0, *, kernel: Kernel | None = None, lam: float = 0.5, dtype: str = "float64") -> ExactBelief:
    belief = ExactBelief.empty(kernel=kernel or Gaussian(1.0), lam=lam, dim=2, dtype=dtype)
    return belief.extended(*data(n))


def nystrom(size: int = 4, *, n: int = 9, dtype: str = "float64") -> FiniteBelief:
    belief = FiniteBelief.nystrom(kernel=Gaussian(1.0), dictionary=data(size, seed=2)[0], lam=0.5, dtype=dtype)
    return belief.with_statistics(Statistics.of(belief.coordinates, *data(n)))


def linear(n: int = 9) -> FiniteBelief:
    belief = FiniteBelief.empty(embedding=LinearEmbedding(2), lam=0.5)
    return belief.with_statistics(Statistics.of(belief.coordinates, *data(n)))


# Arrays


@pytest.mark.parametrize("belief", [exact(), exact(20), exact(9, dtype="float32"), nystrom(), nystrom(0), linear()])
def test_a_belief_is_made_again_from_its_arrays_to_the_last_bit(belief: Belief) -> None:
    arrays = {name: array.copy() for name, array in belief.arrays().items()}
    twin, (X, _) = belief.from_arrays(arrays), data(5, seed=3)
    for name in ("features", "mean", "signal", "residual"):
        assert_array_equal(getattr(twin.view(X), name), getattr(belief.view(X), name))
    assert belief_hash(twin) == belief_hash(belief)
    assert belief.bookkeeping < arrays.keys()
    assert belief.width == len(belief.view(X).features)


def entry(value: float) -> Callable[[Floats], Floats]:
    def changed(array: Floats) -> Floats:
        array = array.copy()
        array.flat[0] = value
        return array

    return changed


EXACT: dict[str, tuple[str, Callable[[Floats], Floats], str]] = {
    "another dimension": ("points", lambda X: X[:, :1], "shapes"),
    "a point too few": ("points", lambda X: X[:-1], "shapes"),
    "single precision": ("sums", lambda y: y.astype("f4"), "float32"),
    "a point that is not a number": ("points", entry(np.nan), "'points' holds nan"),
    "a sum that overflows": ("sums", entry(1e200), r"'sums' holds 1e\+200"),
    "a point counted half a time": ("counts", entry(0.5), "counted 0.5 times"),
    "a point counted less than never": ("counts", entry(-1.0), "counted -1 times"),
    "a step of half a point": ("growth", lambda _: np.array([8.5, 0.5]), "steps of"),
    "a step too few": ("growth", lambda _: np.array([8.0]), "steps of"),
    "a step backwards": ("growth", lambda _: np.array([10.0, -1.0]), "steps of"),
}


@pytest.mark.parametrize(("name", "change", "why"), EXACT.values(), ids=EXACT)
def test_arrays_of_no_exact_belief_are_refused(name: str, change: Callable[[Floats], Floats], why: str) -> None:
    arrays = exact(9).arrays()
    with pytest.raises(RemoteProtocolError, match=why):
        exact().from_arrays(arrays | {name: change(arrays[name])})


def test_a_step_of_more_points_than_are_ever_taken_at_once_is_refused_before_any_kernel_is_asked() -> None:
    n = 100_000  # the matrix of these would take 80 GB
    arrays = {"points": np.zeros((n, 2)), "counts": np.ones(n), "sums": np.ones(n), "growth": np.array([float(n)])}
    with pytest.raises(RemoteProtocolError, match="steps of"):
        exact().from_arrays(arrays)


def test_points_on_which_a_kernel_overflows_make_no_belief() -> None:
    arrays = exact(1).arrays() | {"points": np.array([[1e100, 0.0]])}
    with pytest.raises(RemoteProtocolError, match=r"overflow|factor|definite"):
        exact(kernel=Polynomial(9)).from_arrays(arrays)
    with pytest.raises(RemoteProtocolError, match="overflow"):
        FiniteBelief.nystrom(kernel=Polynomial(9), dictionary=np.empty((0, 2)), lam=1.0).from_arrays(
            nystrom(1).arrays() | {"dictionary": np.array([[1e100, 0.0]])}
        )


BLANK = FiniteBelief.empty(embedding=BlankEmbedding(2), lam=1.0)


@pytest.mark.parametrize(
    ("template", "other"),
    [
        (exact(), linear()),
        (nystrom(), exact(3)),
        (nystrom(), linear()),
        (nystrom(), BLANK),
        (linear(), exact(3)),
        (linear(), nystrom()),
        (linear(), BLANK),
        (BLANK, linear()),
        (BLANK, exact()),
    ],
)
def test_arrays_of_another_kind_of_belief_are_refused(template: Belief, other: Belief) -> None:
    with pytest.raises(RemoteProtocolError, match="for another plan"):
        template.from_arrays(other.arrays())


@pytest.mark.parametrize("template", [exact(), exact(3), nystrom(0), nystrom(7)])
@pytest.mark.parametrize("size", [0, 1, 4])
def test_a_belief_with_a_kernel_may_come_back_on_another_dictionary(template: Belief, size: int) -> None:
    agreed = nystrom(size)
    assert belief_hash(template.from_arrays(agreed.arrays())) == belief_hash(agreed)


def sums_of(belief: FiniteBelief) -> Statistics:
    assert isinstance(belief.statistics, Statistics)
    return belief.statistics


def test_a_hash_is_a_whole_number_of_64_bits_that_every_bit_of_a_belief_changes() -> None:
    belief = linear()
    sums = sums_of(belief)
    hashes = {
        belief_hash(each)
        for each in (
            belief,
            replace(belief, statistics=replace(sums, gram=np.nextafter(sums.gram, np.inf))),
            replace(belief, statistics=replace(sums, moment=-sums.moment)),
            replace(belief, statistics=replace(sums, count=sums.count + 1)),
            nystrom(),
            exact(),
            exact(1),
        )
    }
    assert len(hashes) == 7
    assert all(type(each) is int and 0 <= each < 2**64 for each in hashes)


def test_a_hash_does_not_depend_on_how_an_array_lies_in_memory() -> None:
    belief = linear()
    turned = replace(sums_of(belief), gram=np.asfortranarray(belief.statistics.gram))
    assert belief_hash(replace(belief, statistics=turned)) == belief_hash(belief)


# Extensions that fail


@pytest.mark.parametrize("n", [0, 3, 200, 300])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_failed_extension_leaves_the_belief_as_it_was(n: int, dtype: str) -> None:
    belief = exact(n, kernel=Polynomial(9), lam=3.0, dtype=dtype)
    X, more = data(4, seed=3)[0], data(7, seed=4)
    was, expected = belief.view(X), belief.from_arrays(belief.arrays()).extended(*more).view(X)
    for far in (1e16, 1e40, 1e100):
        with np.errstate(all="ignore"), suppress(InputError):  # a factor may also fail outright
            assert not belief.extended(np.array([[far, 0.0]]), np.ones(1)).is_sound() or far == 1e16
        assert belief.is_sound()
        for name in ("features", "mean", "signal"):
            assert_array_equal(getattr(belief.view(X), name), getattr(was, name))
    again = belief.extended(*more)
    assert again.is_sound()
    for name in ("features", "mean", "signal"):
        assert_array_equal(getattr(again.view(X), name), getattr(expected, name))


# Honest sums


@settings(max_examples=250, deadline=None)
@given(
    kernel=st.sampled_from(KERNELS),
    dtype=st.sampled_from(["float64", "float32"]),
    dim=st.sampled_from([1, 2, 5]),
    n=st.sampled_from([0, 1, 2, 30, 300]),
    size=st.sampled_from([0, 1, 10, 60]),
    lam=st.sampled_from([1e-3, 1.0, 1e3]),
    spread=st.sampled_from([0.0, 1e-20, 1e-3, 1.0, 100.0]),
    reward=st.sampled_from([0.0, 1e-200, 1e-40, 1e-20, 1.0, 1e30]),
    items=st.sampled_from([3, 10**6]),
    seed=st.integers(0, 999),
)
def test_honest_sums_are_never_refused(
    kernel: Kernel,
    dtype: str,
    dim: int,
    n: int,
    size: int,
    lam: float,
    spread: float,
    reward: float,
    items: int,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    X = spread * rng.uniform(-1, 1, (max(n, size), dim))[rng.integers(max(n, size, 1), size=max(n, size)) % items]
    X *= 10.0 ** rng.uniform(-3, 0, (len(X), 1))
    y = reward * rng.standard_normal(len(X))
    S = X[rng.permutation(len(X))[:size]]
    belief = FiniteBelief.nystrom(kernel=kernel, dictionary=S[full_rank(kernel, S)], lam=lam, dtype=dtype)
    check_honest(belief, X[:n], y[:n])


@settings(max_examples=100, deadline=None)
@given(
    dim=st.sampled_from([1, 2, 20]),
    n=st.sampled_from([0, 1, 30, 2000]),
    spread=st.sampled_from([0.0, 1e-170, 1e-40, 1.0, 1e60]),
    reward=st.sampled_from([0.0, 1e-200, 1.0, 1e80]),
    seed=st.integers(0, 999),
)
def test_honest_linear_sums_are_never_refused(dim: int, n: int, spread: float, reward: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    belief = FiniteBelief.empty(embedding=LinearEmbedding(dim), lam=0.1)
    check_honest(belief, spread * rng.uniform(-1, 1, (n, dim)), reward * rng.standard_normal(n))


def check_honest(belief: FiniteBelief, X: Floats, y: Floats) -> None:
    """Each part alone, their sum, and the belief on it."""
    parts = [Statistics.of(belief.coordinates, X[each], y[each]) for each in np.array_split(np.arange(len(X)), 3)]
    total = parts[0] + parts[1] + parts[2]
    for sums in (*parts, total):
        belief.check_statistics(sums)
    learnt = belief.with_statistics(total)
    if learnt.is_sound():  # single precision may lose more than λ
        assert belief_hash(belief.from_arrays(learnt.arrays())) == belief_hash(learnt)


# Hostile sums


def sums(change: dict[str, Any]) -> Statistics:
    belief = linear(0)
    return replace(Statistics.of(belief.coordinates, *data(30)), **change)


HONEST = sums({})
OFF = np.array([[0.0, 1.0], [1.0, 0.0]])
HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "indefinite": ({"gram": np.array([[1.0, 1.2], [1.2, 1.3]])}, "not positive semi-definite"),
    "indefinite and small": ({"gram": 1e-3 * np.array([[1.0, 1.0], [1.0, 0.5]])}, "not positive semi-definite"),
    "an empty diagonal": ({"gram": OFF}, "not positive semi-definite"),
    "a negative diagonal": ({"gram": -np.eye(2)}, "not positive semi-definite"),
    "asymmetric": ({"gram": HONEST.gram + 1e-3 * np.triu(OFF)}, "not symmetric: two entries differ by 0.001"),
    "a trace above the prior": ({"gram": HONEST.gram * 1.001}, "above Σk"),
    "a prior too small": ({"prior": HONEST.prior * 0.999}, "above Σk"),
    "a moment too large": (
        {"moment": np.array([0.0, 1.01 * np.sqrt(HONEST.squares * HONEST.gram[1, 1])])},
        "coordinate 1",
    ),
    "squares too small": ({"squares": 1e-9}, "a moment of"),
    "a negative count": ({"count": -1}, "-1 points"),
    "points of no count": ({"count": 0}, "0 points with"),
    "a gram that is not a number": (
        {"gram": np.array([[1.0, np.nan], [np.nan, 1.0]])},
        "gram holds a number of size nan",
    ),
    "an infinite moment": ({"moment": np.array([0.0, -np.inf])}, "moment holds a number of size inf"),
    "a prior that is not a number": ({"prior": float("nan")}, "Σk.x,x. is nan"),
    "a negative prior": ({"prior": -1.0}, "Σk.x,x. is -1"),
    "squares that are not a number": ({"squares": float("nan")}, "Σy² is nan"),
    "negative squares": ({"squares": -1.0}, "Σy² is -1"),
    "too few coordinates": ({"gram": np.eye(1), "moment": np.zeros(1)}, "sums over 2 coordinates"),
}


@pytest.mark.parametrize(("change", "why"), HOSTILE.values(), ids=HOSTILE)
def test_what_cannot_be_sums_over_points_is_refused_in_words(change: dict[str, Any], why: str) -> None:
    linear().check_statistics(HONEST)
    with pytest.raises(RemoteProtocolError, match=why):
        linear().check_statistics(sums(change))


@pytest.mark.parametrize("factor", [1.001, 1e60])
def test_sums_over_points_that_no_gaussian_has_are_refused(factor: float) -> None:
    belief = FiniteBelief.nystrom(kernel=2.0 * Gaussian(), dictionary=data(3)[0], lam=0.1)
    honest = Statistics.of(belief.coordinates, *data(30))
    belief.check_statistics(honest)
    with pytest.raises(RemoteProtocolError, match="over 30 points, each of which has 2"):
        belief.check_statistics(replace(honest, prior=factor * honest.prior, gram=factor * honest.gram))


def test_a_belief_of_weighted_points_is_read_back_whatever_they_weigh() -> None:
    X, y = data(30)
    belief = FiniteBelief.nystrom(kernel=Gaussian(), dictionary=X[:3], lam=0.1)
    honest = Statistics.of(belief.coordinates, X, y)
    heavy = belief.with_statistics(replace(honest, prior=1.5 * honest.prior, gram=1.5 * honest.gram))
    assert belief_hash(belief.from_arrays(heavy.arrays())) == belief_hash(heavy)


def test_a_count_of_half_a_point_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match=r"count is 2\.5"):
        Statistics.of_totals(np.eye(2), np.zeros(2), np.array([9.0, 2.5, 1.0]))
    part = Payload(values={"gram": np.eye(2), "moment": np.zeros(2)}, control={"prior": 9.0, "count": 2.5})
    with pytest.raises(RemoteProtocolError, match=r"count is 2\.5"):
        ShareStatistics("tail").check(linear(), part)


# Points


def part_of(X: Floats) -> Payload:
    return Payload(values={"points": X, "rewards": np.zeros(len(X))})


def saddle(X: Floats, Y: Floats) -> Floats:
    """No kernel: its matrix has negative eigenvalues where the first feature is 1."""
    return np.asarray(np.exp(-np.abs(X[:, None, 1] - Y[None, :, 1])) - 9.0 * np.outer(X[:, 0], Y[:, 0]))


@pytest.mark.parametrize("phase", [ShareData(), AgreeOnDictionary(1.0)])
def test_points_that_cannot_be_learnt_even_alone_are_refused(phase: Any) -> None:
    fine, far = np.zeros((3, 2)), np.array([[0.0, 0.0], [1e100, 0.0]])
    wild = exact(kernel=Polynomial(9))
    phase.check(wild, part_of(fine))
    with pytest.raises(RemoteProtocolError, match="2 points that the kernel cannot take: it overflows"):
        phase.check(wild, part_of(far))
    broken = exact(kernel=_Saddle())
    phase.check(broken, part_of(fine))
    with pytest.raises(RemoteProtocolError, match="positive definite"):
        phase.check(broken, part_of(np.ones((700, 2))))
    narrow = exact(kernel=Polynomial(9), dtype="float32")
    with pytest.raises(RemoteProtocolError, match="overflows"):
        phase.check(narrow, part_of(np.array([[1e5, 0.0]])))


@dataclass(frozen=True)
class _Saddle:
    def __call__(self, X: Floats, Y: Floats, /) -> Floats:
        return saddle(X, Y)

    def diag(self, X: Floats, /) -> Floats:
        return np.diagonal(saddle(X, X)).copy()


def test_a_client_cannot_propose_more_points_than_it_has() -> None:
    phase = AgreeOnDictionary(1.0)
    assert phase.speaks_for(part_of(data(2)[0]), covered=0, upto=2)
    assert phase.speaks_for(Payload(), covered=0, upto=0)
    with pytest.raises(RemoteProtocolError, match="3000 points are proposed by a client that has 2"):
        phase.speaks_for(part_of(data(3000)[0]), covered=0, upto=2)


def test_many_points_are_tried_in_little_memory() -> None:
    X = data(6000)[0]
    assert peak(lambda: exact().check_points(X)) < 40e6  # the whole matrix takes 288 MB


# Memory


def peak(call: Callable[[], object]) -> int:
    """The most memory that a call took at once, in bytes."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("wire", STATISTICS_WIRES)
def test_a_long_history_is_summed_up_without_all_its_coordinates_at_once(
    wire: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laconic.beliefs.contract.CHUNK_ENTRIES", 400_000)
    X, y = data(100_000, dim=5)
    belief = FiniteBelief.nystrom(kernel=Gaussian(1.0), dictionary=data(100, dim=5, seed=2)[0], lam=1.0)
    member = Member(belief, belief, X, y, 0, fired=False, random=lambda: np.random.default_rng(0))
    belief.view(X[:1])  # factors are made
    assert peak(lambda: ShareStatistics("history", wire=wire).contribute(member)) < 25e6  # all coordinates take 80 MB
    assert peak(lambda: AgreeOnDictionary(1e-3, wire=wire).contribute(member)) < 25e6


def test_sums_in_chunks_are_the_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    belief, (X, y) = nystrom(), data(1000)
    whole, variance = Statistics.of(belief.coordinates, X, y), variances(belief, X)
    assert_array_equal(variance, belief.view(X).variance)
    monkeypatch.setattr("laconic.beliefs.contract.CHUNK_ENTRIES", 4)
    chunked = Statistics.of(belief.coordinates, X, y)
    np.testing.assert_allclose(chunked.gram, whole.gram, rtol=1e-12)
    np.testing.assert_allclose(chunked.moment, whole.moment, rtol=1e-9, atol=1e-9)
    assert chunked.count == 1000
    assert chunked.prior == pytest.approx(whole.prior)
    assert chunked.squares == pytest.approx(whole.squares) == pytest.approx(float((y**2).sum()))
    np.testing.assert_allclose(variances(belief, X), variance, rtol=1e-12)


# Beliefs of other kinds


@dataclass(frozen=True, eq=False)
class Average(BeliefBase):
    """A belief that another package might bring: every point has the same mean reward."""

    dim: int
    lam: float = 1.0
    count: float = 0.0
    total: float = 0.0

    bookkeeping: ClassVar[frozenset[str]] = frozenset({"count"})
    rank: ClassVar[int | None] = 1
    width: ClassVar[int] = 1
    dictionary_size: ClassVar[int | None] = None

    @property
    def information(self) -> float:
        return float(np.log1p(self.count / self.lam))

    @property
    def parameters(self) -> dict[str, object]:
        return {"belief": "Average", "dim": self.dim, "lam": self.lam}

    def view(self, X: Floats) -> View:
        left = self.lam + self.count
        V = np.full((1, len(X)), left**-0.5)
        mean = np.full(len(X), self.total / left)
        return View(points=X, features=V, mean=mean, signal=V[0] ** 2, residual=np.zeros(len(X)))

    def covariance(self, a: View, b: View) -> Floats:
        return a.features.T @ b.features

    def arrays(self) -> dict[str, Floats]:
        return {"count": np.array([self.count]), "total": np.array([self.total])}

    def from_arrays(self, arrays: dict[str, Floats]) -> "Average":
        expect_shapes(arrays, {"count": (1,), "total": (1,)})
        expect_bounded(arrays)
        return replace(self, count=float(arrays["count"][0]), total=float(arrays["total"][0]))

    def extended(self, X: Floats, y: Floats) -> "Average":
        return replace(self, count=self.count + len(y), total=self.total + float(y.sum()))


def test_a_belief_of_another_package_passes_the_checks() -> None:
    check_belief(Average(2))
    check_belief(Average(2).extended(*data(5)), template=Average(2))
    check_phase(ShareData(), belief=Average(2))


@dataclass(frozen=True, eq=False)
class Credulous(Average):
    """Takes what it is given."""

    def from_arrays(self, arrays: dict[str, Floats]) -> Average:
        return replace(self, count=float(arrays["count"].flat[0]), total=float(arrays["total"].flat[0]))


def test_a_belief_that_takes_damaged_arrays_is_found_out() -> None:
    with pytest.raises(AssertionError, match=r"with one of another name: it must refuse them .* but takes them"):
        check_belief(Credulous(2))


def test_a_belief_of_another_package_syncs_and_joins_without_a_change_elsewhere() -> None:
    plan = Plan(belief=Average(2), trigger=Determinant(0.0), phases=(ShareData(),), confidence=Fixed(1.0))
    network = Network(plan, clients=1, seed=0, share=False)
    client = network.clients[0]
    network.settle(0, client.observe(client.choose(np.eye(2)), 3.0))
    newcomer = network.add(1, member=False)
    network.greet(1)
    network.deliver("up", 1)
    welcome, newer = network.down[1]
    assert isinstance(welcome, Welcome)
    assert payload_of(newer).records.keys() == {"count"}
    network.drain()
    beliefs = [newcomer.learner.belief, client.learner.belief, network.server.belief]
    assert len({belief_hash(belief) for belief in beliefs}) == 1
    assert beliefs[0].arrays()["count"] == [1.0]


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda belief: belief.coordinates, "ShareStatistics needs a belief with coordinates.* got Average"),
        (lambda belief: belief.check_statistics(HONEST), "got Average"),
        (lambda belief: belief.with_statistics(HONEST), "got Average"),
        (lambda belief: belief.on_dictionary(np.eye(2)), "a dictionary needs a belief with a kernel; got Average"),
        (lambda belief: belief.dictionary_kernel(), "got Average"),
    ],
)
def test_what_a_belief_cannot_do_is_refused_in_words(ask: Callable[[Any], object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        ask(Average(2))


def test_raw_points_are_no_news_to_sums_and_linear_beliefs_have_no_kernel() -> None:
    with pytest.raises(InputError, match=r"ShareData needs a belief that learns raw points.* got FiniteBelief"):
        nystrom().extended(*data(3))
    for ask in (linear().dictionary_kernel, lambda: linear().on_dictionary(np.eye(2))):
        with pytest.raises(InputError, match="kernel, got one on LinearEmbedding"):
            ask()
    assert isinstance(exact().on_dictionary(np.eye(2)).coordinates, NystromEmbedding)


def test_a_belief_that_overflows_where_points_are_is_said_to() -> None:
    linear().check_points(data(3)[0])
    Average(2).check_points(data(3)[0])
    with pytest.raises(RemoteProtocolError, match="3 points that a Average cannot take"):
        Average(2, count=float("nan")).check_points(data(3)[0])
