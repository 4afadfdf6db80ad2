"""What a belief must keep to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from laconic.arrays import Floats
from laconic.beliefs import Belief, View, belief_hash
from laconic.errors import RemoteProtocolError
from laconic.protocol.codec import Codec
from laconic.protocol.messages import BLANK, Newer, Payload, payload_of
from laconic.tail import Tail
from laconic.testing.wording import (
    CLOSE_IN_SINGLE,
    Subject,
    close,
    gap,
    points,
    require_array,
    rewards,
    rounding,
    same,
    same_belief,
)

#: Observations that a tail learns here: enough for it to fold or to collapse repeated points.
LEARNT, DISTINCT = 40, 12


def check_belief(belief: Belief, *, template: Belief | None = None) -> None:
    """Check a belief, empty or not.

    Its views must have the right shapes and no negative variance, its covariance must be that of its features, a tail
    on top of it must predict what conditioning says, and its arrays must be all that it takes to make it again, and
    damaged ones refused.

    Args:
        belief: The belief, with whatever it has learnt.
        template: The belief of its plan before any data, from which a saved one is restored; None: the belief itself.

    Raises:
        AssertionError: It breaks the contract; the message says where.
    """
    subject = Subject(f"belief {type(belief).__name__}")
    _check_properties(subject, belief)
    _check_view(subject, belief)
    _check_covariance(subject.at("covariance"), belief)
    _check_conditioning(subject.at(f"under a tail of {LEARNT} observations"), belief)
    _check_round_trip(subject.at("saved and restored"), belief, template if template is not None else belief)


def _check_properties(subject: Subject, belief: Belief) -> None:
    with subject.calling("one of dim, lam, rank, width, dictionary_size, information, bookkeeping and is_sound()"):
        dim, lam, rank, width = belief.dim, belief.lam, belief.rank, belief.width
        size, information = belief.dictionary_size, belief.information
        books, is_sound = belief.bookkeeping, belief.is_sound()
    subject.claim(isinstance(dim, int) and dim > 0, f"dim must be a whole number above 0, not {dim!r}")
    subject.claim(np.isfinite(lam) and lam > 0, f"lam must be a finite number above 0, not {lam!r}")
    subject.claim(isinstance(books, frozenset), f"bookkeeping must be a frozenset of names, not {books!r}")
    subject.claim(is_sound is True, f"is_sound() is {is_sound!r}, but what it says is finite")
    subject.claim(isinstance(width, int) and width >= 0, f"width must be a whole number, not {width!r}")
    for name, value in (("rank", rank), ("dictionary_size", size)):
        subject.claim(
            value is None or (isinstance(value, int) and value >= 0),
            f"{name} must be None or a whole number, not {value!r}",
        )
    # ln det(I + K/λ) is a sum of logarithms of numbers that are at least 1
    known = np.isfinite(information) and information >= -CLOSE_IN_SINGLE
    subject.claim(known, f"information is {information!r}, below 0")


def _view(subject: Subject, belief: Belief, X: Floats) -> View:
    with subject.calling(f"view(X) for {len(X)} points"):
        return belief.view(X)


def _check_view(subject: Subject, belief: Belief) -> None:
    for count in (0, 1, 7):
        _check_shapes(subject.at(f"view of {count} points"), belief, points(count, dim=belief.dim))
    subject = subject.at("view of 7 points")
    X = points(7, dim=belief.dim)
    first, second = _view(subject, belief, X), _view(subject, belief, X)
    for name in ("features", "mean", "signal", "residual"):
        a, b = getattr(first, name), getattr(second, name)
        subject.claim(same(a, b), f"the same points have another {name} the second time")
        alone = [getattr(_view(subject, belief, X[i : i + 1]), name) for i in range(len(X))]
        together = np.concatenate(alone, axis=-1)
        equal = close(a, together, within=rounding(belief))
        subject.claim(equal, f"{name} of a point depends on the other points, by up to {gap(a, together):.3g}")


def _check_shapes(subject: Subject, belief: Belief, X: Floats) -> None:
    given, m = X.copy(), len(X)
    view = _view(subject, belief, given)
    subject.claim(same(given, X), "it changes the points that it is given")
    subject.claim(isinstance(view, View), f"view(X) must be a View, not {type(view).__name__}")
    coordinates = belief.width if belief.rank is None else belief.rank
    require_array(subject, view.points, name="points", shape=X.shape)
    require_array(subject, view.features, name="features", shape=(coordinates, m), single=True)
    single = view.features.dtype == np.float32
    for name in ("mean", "signal", "residual"):
        require_array(subject, getattr(view, name), name=name, shape=(m,), single=single)
    for name in ("signal", "residual"):
        least = float(getattr(view, name).min(initial=0.0))
        subject.claim(least >= 0.0, f"{name} is a variance, but holds {least:.3g}")


def _check_covariance(subject: Subject, belief: Belief) -> None:
    a, b = (_view(subject, belief, points(count, dim=belief.dim, stream=count)) for count in (6, 9))
    with subject.calling("covariance(a, b)"):
        C, cross, back = belief.covariance(a, a), belief.covariance(a, b), belief.covariance(b, a)
        blind = belief.covariance(_bare(a), _bare(b))
    require_array(subject, C, name="covariance(a, a)", shape=(6, 6), single=True)
    require_array(subject, cross, name="covariance(a, b)", shape=(6, 9), single=True)
    within = rounding(belief)
    subject.claim(close(cross, back.T, within=within), "covariance(a, b) is not covariance(b, a) transposed")
    subject.claim(same(cross, blind), "it must depend on points and features alone: a tail has no mean and no variance")
    off = gap(np.diagonal(C), a.signal)
    subject.claim(close(np.diagonal(C), a.signal, within=within), f"its diagonal differs from signal by {off:.3g}")
    smallest = float(np.linalg.eigvalsh(C)[0])
    scale = max(1.0, float(np.abs(C).max()))
    subject.claim(smallest >= -within * scale, f"it is not positive semi-definite: eigenvalue {smallest:.3g}")
    if belief.rank is not None:  # a tail folds into the features then
        fits = close(cross, a.features.T @ b.features, within=within)
        subject.claim(fits, "with finitely many coordinates it must be the product of the features")


def _bare(view: View) -> View:
    zero = np.zeros(len(view.mean))
    return replace(view, mean=zero, signal=zero, residual=zero)


def _check_conditioning(subject: Subject, belief: Belief) -> None:
    tail, X = Tail(belief), points(6, dim=belief.dim, stream=50)
    pool = points(DISTINCT, dim=belief.dim, stream=51)
    learnt, y = pool[np.arange(LEARNT) * 5 % DISTINCT], rewards(LEARNT)
    before = belief.information
    with subject.calling("learning and predicting through laconic.tail.Tail"):
        for x, reward in zip(learnt, y, strict=True):
            tail.append(belief.view(x[None]), float(reward))
            subject.claim(tail.information >= before, "what is known shrinks when an observation is added")
            before = tail.information
        mean, variance = tail.predict(belief.view(X))
        expected_mean, expected_variance, log_det = _conditioned(belief, X, learnt, y)
    within = rounding(belief)
    for name, got, wanted in (("mean", mean, expected_mean), ("variance", variance, expected_variance)):
        subject.claim(close(got, wanted, within=within), f"the {name} is off by {gap(got, wanted):.3g}")
    subject.claim((variance >= 0).all(), "a variance is negative")
    off = abs(tail.news.log_det - log_det)
    subject.claim(off <= within * max(1.0, log_det), f"the log-det ratio of Eq. 2 is off by {off:.3g}")


def _conditioned(belief: Belief, X: Floats, learnt: Floats, y: Floats) -> tuple[Floats, Floats, float]:
    """Mean, variance and log-det ratio by the textbook: condition on everything at once, with noise 1."""
    x, u = belief.view(X), belief.view(learnt)
    C, c = belief.covariance(u, u), belief.covariance(u, x)
    solved = np.linalg.solve(np.eye(len(y)) + C, np.column_stack([y - u.mean, c]))
    mean = x.mean + c.T @ solved[:, 0]
    signal = np.maximum(x.signal - np.einsum("ij,ij->j", c, solved[:, 1:]), 0.0)
    log_det = float(np.log1p(np.maximum(np.linalg.eigvalsh(C), 0.0)).sum())
    return mean, signal + x.residual, log_det


def _check_round_trip(subject: Subject, belief: Belief, template: Belief) -> None:
    with subject.calling("arrays()"):
        arrays = belief.arrays()
    for name, array in arrays.items():
        require_array(subject, array, name=f"arrays()[{name!r}]", shape=np.shape(array))
    newer = Newer(epoch=BLANK, base=BLANK, covered=0, clients=1, payload=Payload(values=arrays), whole=True)
    codec = Codec(plan=None)
    with subject.calling("encoding and decoding arrays()"):
        received = payload_of(codec.decode(codec.encode(newer))).values
    with subject.calling("template.from_arrays(arrays)"):
        twin = template.from_arrays(received)
    subject.claim(type(twin) is type(belief), f"it comes back as {type(twin).__name__}")
    for name in ("dim", "lam", "rank", "dictionary_size", "information"):
        was, now = getattr(belief, name), getattr(twin, name)
        subject.claim(was == now, f"{name} was {was!r} and is {now!r}")
    subject.claim(belief_hash(twin) == belief_hash(belief), "its arrays are not the same to the last bit")
    subject.claim(same_belief(twin, belief), "it does not say the same to the last bit")
    _check_refusals(subject.at("from_arrays"), template, received)


def _check_refusals(subject: Subject, template: Belief, arrays: Mapping[str, Floats]) -> None:
    for how, damaged in _damaged(arrays):
        here = subject.at(f"from_arrays, given arrays {how}")
        with here.calling("it must refuse them with RemoteProtocolError, but"):
            try:
                template.from_arrays(damaged)
            except RemoteProtocolError:
                continue
        here.claim(False, "it must refuse them with RemoteProtocolError, but takes them")


def _damaged(arrays: Mapping[str, Floats]) -> Iterator[tuple[str, dict[str, Floats]]]:
    """Arrays of no belief, which the codec lets pass or a store may hold."""
    yield "with one of another name", {**arrays, "an array of another name": np.zeros(3)}
    for name, array in arrays.items():
        yield f"without {name!r}", {other: values for other, values in arrays.items() if other != name}
        yield f"whose {name!r} has one more axis", {**arrays, name: array[None]}
        if array.size:
            spoilt = array.copy()
            spoilt.flat[0] = np.nan
            yield f"whose {name!r} is not finite", {**arrays, name: spoilt}
