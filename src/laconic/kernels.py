"""Kernels: small frozen values, ``kernel(X, Y)`` the matrix and ``kernel.diag(X)`` its diagonal.

They add, multiply and scale; `as_kernel` takes any scikit-learn kernel object and any callable ``k(X, Y)`` as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np

from laconic.arrays import Floats
from laconic.checks import instead, is_grid, require_finite_number, require_positive, require_whole, seen
from laconic.defaults import GAMMA
from laconic.errors import InputError, KernelError

#: Squared distances come from a matrix product while weight · (‖x‖² + ‖y‖²) is at most this: an error of about 2e-14.
PRODUCT_UP_TO = 64.0
#: So many rows of a large matrix are computed at a time.
FILLED_ROWS = 128
#: Lengths and exponents lie between this and its inverse.
MODERATE = 1e100
#: From here on exp(−s) is 0 whatever polynomial of s stands before it.
NOTHING_LEFT = 1e3


@runtime_checkable
class Kernel(Protocol):
    """A positive definite function of two points, evaluated on all pairs of two sets.

    Kernels made by `as_kernel` also take stacks of sets, (…, n, d) and (…, m, d), and give stacks of matrices.
    """

    def __call__(self, X: Floats, Y: Floats, /) -> Floats:
        """The matrix k(x, y) for rows x of X and y of Y."""
        ...

    def diag(self, X: Floats, /) -> Floats:
        """The vector k(x, x) for rows x of X."""
        ...


#: What algorithms take for a kernel, and `as_kernel` makes one of.
KernelLike = Kernel | Callable[[Floats, Floats], Floats]


class _Algebra:
    """Sums, products and scalings of kernels, by operator."""

    def __add__(self: Any, other: Any) -> Sum:
        return Sum(left=as_kernel(self), right=as_kernel(other))

    def __mul__(self: Any, other: Any) -> Product | Scaled:
        if isinstance(other, int | float | np.number) or is_grid(other):
            return Scaled(kernel=as_kernel(self), scale=other if is_grid(other) else float(other))
        return Product(left=as_kernel(self), right=as_kernel(other))

    def __rmul__(self: Any, other: Any) -> Product | Scaled:
        return as_kernel(self) * other  # type: ignore[no-any-return]  # every kernel here has _Algebra


def _stacked(function: Callable[[Floats, Floats], Floats], X: Floats, Y: Floats) -> Floats:
    """A function of two sets on stacks of sets, one matrix after the other."""
    depth = np.broadcast_shapes(X.shape[:-2], Y.shape[:-2])
    X, Y = np.broadcast_to(X, depth + X.shape[-2:]), np.broadcast_to(Y, depth + Y.shape[-2:])
    K = np.empty((*depth, X.shape[-2], Y.shape[-2]))
    for index in np.ndindex(depth):
        K[index] = function(X[index], Y[index])
    return K


def _negated_squares(X: Floats, Y: Floats, *, weight: float) -> Floats:
    """−weight ‖x − y‖² on all pairs, for a kernel that changes no faster than this.

    One matrix product where its rounding, about 1e-16 of the squared norms, is lost in that of the kernel's own value;
    otherwise from the differences, so that equal points are at exactly 0 and an offset costs no digits.
    """
    if X.ndim == Y.ndim == 2 and 1 in (len(X), len(Y)):  # one row or column: differences are quick too
        return (_squares(X - Y) * -weight).reshape(len(X), len(Y))
    x = _squares(X)
    y = x if X is Y else _squares(Y)
    if weight * (x.max(initial=0.0) + y.max(initial=0.0)) > PRODUCT_UP_TO:
        return _differences(X, Y) * -weight
    product = _products(*_factors(X, Y, weight=weight, x=x, y=y))
    _lower_to_zero(product)
    return product


def _lower_to_zero(A: Floats) -> None:
    """Make what rounding left above 0 a 0, where it lies; mostly there is none, and looking takes a quarter as long."""
    if A.max(initial=0.0) > 0.0:
        np.minimum(A, 0.0, out=A)


def _factors(X: Floats, Y: Floats, *, weight: float, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Rows (2wx, −w‖x‖², 1) and (y, 1, −w‖y‖²), whose products are 2w x·y − w‖x‖² − w‖y‖²."""
    return _widened(2.0 * weight * X, -weight * x, 1.0), _widened(Y, 1.0, -weight * y)


def _widened(X: Floats, *columns: Floats | float) -> Floats:
    """X with further columns at its right."""
    width = X.shape[-1]
    dtype = X.dtype if X.dtype == np.float64 else np.result_type(X, np.float32)
    wide = np.empty((*X.shape[:-1], width + len(columns)), dtype=dtype)
    wide[..., :width] = X
    for place, column in enumerate(columns):
        wide[..., width + place] = column
    return wide


def _differences(X: Floats, Y: Floats) -> Floats:
    """‖x − y‖² on all pairs from x − y."""
    from scipy.spatial.distance import cdist  # heavy, and seldom needed

    if np.ndim(X) > 2 or np.ndim(Y) > 2:
        return _stacked(_differences, X, Y)
    return np.asarray(cdist(X, Y, "sqeuclidean"))


def _products(X: Floats, Y: Floats) -> Floats:
    """x·y on all pairs."""
    return np.asarray(X @ np.swapaxes(Y, -1, -2))


def _squares(X: Floats) -> Floats:
    """‖x‖² of each point."""
    return np.asarray(np.einsum("...i,...i->...", X, X))


def _distances(X: Floats, Y: Floats) -> Floats:
    squares = _differences(X, Y)  # under a root no error is small
    return np.sqrt(squares, out=squares)


def _require_moderate(name: str, value: object) -> None:
    """A positive number whose square, and what is divided by it, is a number too."""
    require_positive(name, value)
    if isinstance(value, Real) and not 1 / MODERATE <= float(value) <= MODERATE:
        raise InputError(f"{name} must be from {1 / MODERATE:g} to {MODERATE:g}, not {seen(value)}; try {name}=1.0")


@dataclass(frozen=True)
class Gaussian(_Algebra):
    """Gaussian (squared exponential): k(x, y) = exp(−γ‖x − y‖²).

    Args:
        gamma: Inverse width γ, above 0, in units of 1 over a squared distance. Raising it makes the kernel narrower:
            points are alike only when they are closer.
    """

    gamma: float = GAMMA

    def __post_init__(self) -> None:
        require_positive("gamma", self.gamma)

    def __call__(self, X: Floats, Y: Floats, /) -> Floats:
        exponent = _negated_squares(X, Y, weight=self.gamma)
        return np.exp(exponent, out=exponent)

    def fill(self, K: Floats, X: Floats, Y: Floats) -> None:
        """Write the matrix into K, in the precision of all three, by products and a few rows at a time.

        Parts stay in the cache until they are done, and nothing is copied; only for points where γ(‖x‖² + ‖y‖²) is
        moderate, as rounding is relative to that: it may also lift a value above 1 by as much.
        """
        left, right = _factors(X, Y, weight=self.gamma, x=_squares(X), y=_squares(Y))
        across = np.ascontiguousarray(right.T)  # a product of few columns takes a tenth longer with it as it lies
        for first in range(0, len(X), FILLED_ROWS):
            part = K[first : first + FILLED_ROWS]
            np.matmul(left[first : first + FILLED_ROWS], across, out=part)
            np.exp(part, out=part)

    def diag(self, X: Floats, /) -> Floats:
        return np.ones(len(X))


@dataclass(frozen=True)
class Matern(_Algebra):
    """Matérn with ν = 1/2, 3/2 or 5/2: k(x, y) = p_ν(s) exp(−s), s = √(2ν) ‖x − y‖ / length.

    Args:
        nu: Smoothness ν: 0.5, 1.5 or 2.5. Raising it makes functions smoother.
        length: Length scale, above 0, in units of distance. Raising it makes the kernel wider.
    """

    nu: float = 2.5
    length: float = 1.0

    def __post_init__(self) -> None:
        _require_moderate("length", self.length)
        if not is_grid(self.nu) and self.nu not in (0.5, 1.5, 2.5):
            raise InputError(f"nu must be 0.5, 1.5 or 2.5, not {seen(self.nu)}; {instead('nu', self.nu, one=2.5)}")

    def __call__(self, X: Floats, Y: Floats, /) -> Floats:
        s = _distances(X, Y)
        s *= np.sqrt(2.0 * self.nu) / self.length
        np.minimum(s, NOTHING_LEFT, out=s)  # the square of a larger one may be infinite, and that times 0 no number
        polynomial = {0.5: 1.0, 1.5: 1.0 + s, 2.5: 1.0 + s + s * s / 3.0}[float(self.nu)]
        return np.asarray(polynomial * np.exp(-s))

    def diag(self, X: Floats, /) -> Floats:
        return np.ones(len(X))


@dataclass(frozen=True)
class RationalQuadratic(_Algebra):
    """Rational quadratic: k(x, y) = (1 + ‖x − y‖² / (2 mix length²))^(−mix).

    Args:
        length: Length scale, above 0, in units of distance. Raising it makes the kernel wider.
        mix: Mixture of length scales, above 0. Raising it brings the kernel nearer to a Gaussian one.
    """

    length: float = 1.0
    mix: float = 1.0

    def __post_init__(self) -> None:
        _require_moderate("length", self.length)
        _require_moderate("mix", self.mix)

    def __call__(self, X: Floats, Y: Floats, /) -> Floats:
        squares = _negated_squares(X, Y, weight=0.5 / (self.mix * self.length**2))
        return np.asarray((1.0 - squares) ** (-self.mix))

    def diag(self, X: Floats, /) -> Floats:
        return np.ones(len(X))


@dataclass(frozen=True)
class Linear(_Algebra):
    """Linear: k(x, y) = x·y."""

    def __call__(self, X: Floats, Y: Floats, /) -> Floats:
        return _products(X, Y)

    def diag(self, X: Floats, /) -> Floats:
        return _squares(X)


@dataclass(frozen=True)
class Polynomial(_Algebra):
    """Polynomial: k(x, y) = (x·y + offset)^degree.

    Args:
        degree: Degree, a whole number from 1. Raising it allows more bends.
        offset: Added to x·y, at least 0. Raising it gives lower powers more weight.
    """

    degree: int = 2
    offset: float = 1.0

    def __post_init__(self) -> None:
        require_whole("degree", self.degree, least=1)
        require_finite_number("offset", self.offset)
        if not is_grid(self.offset) and self.offset < 0:
            raise InputError(f"offset must be at least 0 for the kernel to be positive definite, got {self.offset!r}")

    def __call__(self, X: Floats, Y: Floats, /) -> Floats:
        return np.asarray((_products(X, Y) + self.offset) ** self.degree)

    def diag(self, X: Floats, /) -> Floats:
        return np.asarray((_squares(X) + self.offset) ** self.degree)


@dataclass(frozen=True)
class Sum(_Algebra):
    """The sum of two kernels."""

    left: Kernel
    right: Kernel

    def __call__(self, X: Floats, Y: Floats, /) -> Floats:
        return self.left(X, Y) + self.right(X, Y)

    def diag(self, X: Floats, /) -> Floats:
        return self.left.diag(X) + self.right.diag(X)


@dataclass(frozen=True)
class Product(_Algebra):
    """The product of two kernels."""

    left: Kernel
    right: Kernel

    def __call__(self, X: Floats, Y: Floats, /) -> Floats:
        return self.left(X, Y) * self.right(X, Y)

    def diag(self, X: Floats, /) -> Floats:
        return self.left.diag(X) * self.right.diag(X)


@dataclass(frozen=True)
class Scaled(_Algebra):
    """A kernel times a positive number."""

    kernel: Kernel
    scale: float

    def __post_init__(self) -> None:
        require_positive("scale", self.scale)

    def __call__(self, X: Floats, Y: Floats, /) -> Floats:
        return self.scale * self.kernel(X, Y)

    def diag(self, X: Floats, /) -> Floats:
        return self.scale * self.kernel.diag(X)


def largest(kernel: Kernel) -> float:
    """The largest k(x, x) that any point has; infinite where it grows with the point, and of somebody else's kernel."""
    if type(kernel) in (Gaussian, Matern, RationalQuadratic):
        return 1.0
    if isinstance(kernel, Scaled):
        return kernel.scale * largest(kernel.kernel)
    if isinstance(kernel, Sum):
        return largest(kernel.left) + largest(kernel.right)
    if isinstance(kernel, Product):
        return largest(kernel.left) * largest(kernel.right)
    return math.inf


def _read_only(X: Floats) -> Floats:
    """The same points, not to be written to."""
    shown = X.view()
    shown.flags.writeable = False
    return shown


@dataclass(frozen=True)
class Foreign(_Algebra):
    """Somebody else's kernel: a scikit-learn object or a bare callable ``k(X, Y)``."""

    function: Callable[[Floats, Floats], Floats]

    def __call__(self, X: Floats, Y: Floats, /) -> Floats:
        if X.ndim > 2 or Y.ndim > 2:
            return _stacked(self, X, Y)  # somebody else's kernel may not take stacks
        if len(X) == 0 or len(Y) == 0:
            return np.zeros((len(X), len(Y)))
        K = np.array(self._called(self.function, X, Y), dtype=np.float64, order="C")  # a copy: solves overwrite it
        if K.shape != (len(X), len(Y)):
            raise KernelError(
                f"kernel {self.function!r} returned shape {K.shape} for {len(X)} and {len(Y)} points; "
                f"it must return the whole matrix, {(len(X), len(Y))}"
            )
        return K

    def _called(self, function: Callable[..., Any], *points: Floats) -> Any:
        """What somebody else's function says of points that it cannot change."""
        try:
            return function(*(_read_only(each) for each in points))
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            raise KernelError(
                f"kernel {self.function!r} writes into the points that it is given; let it work on a copy of them"
            ) from error

    def diag(self, X: Floats, /) -> Floats:
        own = getattr(self.function, "diag", None)
        if own is not None and len(X):
            return np.array(self._called(own, X), dtype=np.float64)
        return np.array([self(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(len(X))])


def as_kernel(candidate: object) -> Kernel:
    """The candidate as a kernel: ours as it is, a scikit-learn object or a callable wrapped."""
    if isinstance(candidate, _Algebra) and isinstance(candidate, Kernel):
        return candidate
    if is_grid(candidate):
        return candidate  # type: ignore[return-value]  # stands for several kernels, each checked when it is expanded
    if isinstance(candidate, type):
        raise InputError(f"kernel must be a value, got the class {candidate.__name__}; try {candidate.__name__}()")
    if callable(candidate):
        return Foreign(function=candidate)
    advice = instead("kernel", candidate, one="Gaussian(gamma=1)")
    raise InputError(f"kernel must be a kernel or a callable k(X, Y), got {seen(candidate)}; {advice}")


def require_positive_definite(kernel: Kernel, X: Floats) -> None:
    """Refuse a kernel whose matrix on the sample X is not finite, symmetric and positive semi-definite."""
    X = np.unique(X, axis=0)
    with np.errstate(all="ignore"):  # what is not finite is refused here, in words
        K, diagonal = kernel(X, X), kernel.diag(X)
    if not (np.isfinite(K).all() and np.isfinite(diagonal).all()):
        raise KernelError(
            f"kernel {kernel!r} gives values that are not finite on this problem's arms; rescale features"
        )
    scale = max(float(np.abs(K).max(initial=0.0)), 1e-300)
    if np.abs(K - K.T).max(initial=0.0) > 1e-8 * scale:
        raise KernelError(f"kernel {kernel!r} is not symmetric: k(x, y) differs from k(y, x)")
    if np.abs(np.diagonal(K) - diagonal).max(initial=0.0) > 1e-8 * scale:
        raise KernelError(f"kernel {kernel!r} has a diag(X) that is not the diagonal of kernel(X, X)")
    smallest = float(np.linalg.eigvalsh(K)[0]) if len(X) else 0.0
    if smallest < -1e-8 * scale * len(X):
        raise KernelError(
            f"kernel {kernel!r} is not positive definite: its matrix on {len(X)} arms has the eigenvalue {smallest:.3g}"
        )
