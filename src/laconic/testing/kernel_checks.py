"""What a kernel must keep to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from laconic.arrays import Floats
from laconic.checks import require_whole
from laconic.kernels import Kernel, as_kernel
from laconic.testing.wording import Subject, close, points, require_array, same

#: Entries of a kernel matrix may differ by this much, relative to the largest one, between two routes to them.
ROUNDING = 1e-8


def check_kernel(kernel: object, *, dim: int = 3) -> None:
    """Check a kernel, or anything that is accepted as one.

    It must give the whole matrix in float64, symmetric and positive semi-definite, entry by entry a function of two
    points alone; ``diag`` must be its diagonal; empty sets are sets; and calling it must change nothing.

    Args:
        kernel: A kernel, a function k(X, Y) that gives the whole matrix, or a kernel of scikit-learn.
        dim: Features of the points that it is tried on, from 1.

    Raises:
        AssertionError: It breaks the contract; the message says where.
    """
    require_whole("dim", dim, least=1)
    subject = Subject.of("kernel", kernel)
    with subject.calling("as_kernel(kernel)"):
        accepted = as_kernel(kernel)
    _check_purity(subject.at("called twice"), accepted, points(6, dim=dim))
    _check_empty(subject.at("on empty sets"), accepted, points(4, dim=dim))
    for place, X in _sets(dim):
        _check_matrix(subject.at(place), accepted, X)
        _check_entries(subject.at(place), accepted, X)
    _check_stacks(subject.at("on stacks of sets"), accepted, points(18, dim=dim))


def _sets(dim: int) -> Iterator[tuple[str, Floats]]:
    yield "on one point", points(1, dim=dim)
    for stream, count in enumerate((12, 40)):
        yield f"on {count} points of the unit ball", points(count, dim=dim, stream=stream)
    yield "on 30 points far apart", 10.0 * points(30, dim=dim, stream=2)
    yield "on 20 points that nearly coincide", 0.5 + 1e-6 * points(20, dim=dim, stream=3)
    yield "on 8 points thrice each", np.repeat(points(8, dim=dim, stream=4), 3, axis=0)


def _matrix(subject: Subject, kernel: Kernel, X: Floats, Y: Floats) -> Floats:
    with subject.calling(f"kernel(X, Y) for {len(X)} and {len(Y)} points"):
        K = kernel(X, Y)
    require_array(subject, K, name="kernel(X, Y)", shape=(len(X), len(Y)))
    return K


def _diagonal(subject: Subject, kernel: Kernel, X: Floats) -> Floats:
    with subject.calling(f"kernel.diag(X) for {len(X)} points"):
        diagonal = kernel.diag(X)
    require_array(subject, diagonal, name="kernel.diag(X)", shape=(len(X),))
    return diagonal


def _check_matrix(subject: Subject, kernel: Kernel, X: Floats) -> None:
    K, diagonal = _matrix(subject, kernel, X, X), _diagonal(subject, kernel, X)
    allowed = ROUNDING * float(np.abs(K).max(initial=0.0))
    i, j = np.unravel_index(int(np.abs(K - K.T).argmax()), K.shape)
    subject.claim(
        abs(K[i, j] - K[j, i]) <= allowed,
        f"it is not symmetric: k(x{i}, x{j}) is {K[i, j]:.6g}, but k(x{j}, x{i}) is {K[j, i]:.6g}",
    )
    worst = int(np.abs(np.diagonal(K) - diagonal).argmax())
    subject.claim(
        abs(K[worst, worst] - diagonal[worst]) <= allowed,
        f"diag(X)[{worst}] is {diagonal[worst]:.6g}, but kernel(X, X)[{worst}, {worst}] is {K[worst, worst]:.6g}",
    )
    smallest = float(np.linalg.eigvalsh(K)[0])
    subject.claim(
        smallest >= -allowed * len(X),
        f"it is not positive semi-definite: its matrix has the eigenvalue {smallest:.3g}",
    )


def _check_entries(subject: Subject, kernel: Kernel, X: Floats) -> None:
    """An entry depends on its two points, not on the company they keep."""
    Y = X[::-1][: len(X) // 2 + 1]
    K = _matrix(subject, kernel, X, Y)
    allowed = ROUNDING * float(np.abs(K).max(initial=0.0))
    for i in range(0, len(X), 5):
        for j in range(0, len(Y), 3):
            alone = float(_matrix(subject, kernel, X[i : i + 1], Y[j : j + 1])[0, 0])
            subject.claim(
                abs(K[i, j] - alone) <= allowed,
                f"kernel(X, Y)[{i}, {j}] is {K[i, j]:.6g}, but {alone:.6g} when asked for these two points alone",
            )


def _check_purity(subject: Subject, kernel: Kernel, X: Floats) -> None:
    mine, yours = X.copy(), X[:4].copy()
    first, diagonal = _matrix(subject, kernel, mine, yours), _diagonal(subject, kernel, mine)
    subject.claim(same(mine, X) and same(yours, X[:4]), "it changes the points that it is given")
    kept, kept_diagonal = first.copy(), diagonal.copy()
    with subject.calling("writing into what it returned, which belongs to the caller"):
        first[:], diagonal[:] = -1.0, -1.0
    again, again_diagonal = _matrix(subject, kernel, mine, yours), _diagonal(subject, kernel, mine)
    unchanged = same(again, kept) and same(again_diagonal, kept_diagonal)
    subject.claim(unchanged, "the same points give another matrix or diagonal the second time")


def _check_empty(subject: Subject, kernel: Kernel, X: Floats) -> None:
    none = X[:0]
    for A, B in ((none, X), (X, none), (none, none)):
        _matrix(subject, kernel, A, B)
    _diagonal(subject, kernel, none)


def _check_stacks(subject: Subject, kernel: Kernel, X: Floats) -> None:
    """A stack of sets gives a stack of matrices; what is not ours is asked for one after the other."""
    A, B = X[:8].reshape(2, 4, -1), X[8:].reshape(2, 5, -1)
    with subject.calling("kernel(X, Y) for two sets of 4 and two of 5 points"):
        K = kernel(A, B)
    require_array(subject, K, name="kernel(X, Y)", shape=(2, 4, 5))
    one_by_one = np.stack([_matrix(subject, kernel, a, b) for a, b in zip(A, B, strict=True)])
    subject.claim(close(K, one_by_one), "its matrices are not those of one set after the other")
