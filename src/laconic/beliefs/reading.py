"""Arrays and points that came from elsewhere: refused before a belief is built of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from laconic.arrays import Floats
from laconic.beliefs.precision import require_moderate
from laconic.checks import MOST
from laconic.errors import InputError, KernelError, RemoteProtocolError
from laconic.kernels import Kernel
from laconic.linalg import lower_cholesky, ridged

if TYPE_CHECKING:
    from laconic.beliefs.contract import Belief

#: Points are tried so many at a time, which bounds the memory that it takes.
TRIED_TOGETHER = 512


def expect_shapes(arrays: Mapping[str, Floats], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse arrays that have other names or shapes than these, or hold anything but float64."""
    seen = {name: array.shape for name, array in arrays.items()}
    if seen != shapes:
        raise RemoteProtocolError(f"for another plan, or damaged: arrays of shapes {seen} instead of {shapes}")
    for name, array in arrays.items():
        if array.dtype != np.float64:
            raise RemoteProtocolError(f"for another plan, or damaged: {name!r} holds {array.dtype} instead of float64")


def expect_bounded(arrays: Mapping[str, Floats]) -> None:
    """Refuse numbers whose squares overflow, and those that are not finite."""
    for name, array in arrays.items():
        usable = np.abs(array) < MOST
        if not usable.all():
            seen = array.flat[int(np.argmin(usable))]
            raise RemoteProtocolError(
                f"{name!r} holds {seen}, where finite numbers below {MOST:g} in size are expected"
            )


def whole(name: str, number: float) -> int:
    """A number that counts something."""
    if not (number >= 0 and number == number // 1):
        raise RemoteProtocolError(f"{name} is {number}, which is not a whole number")
    return int(number)


def length(arrays: Mapping[str, Floats], name: str) -> int:
    """The length of an array, 0 if there is none of this name."""
    array = arrays.get(name)
    return 0 if array is None or array.ndim == 0 else len(array)


def expect_moderate(belief: Belief, X: Floats, y: Floats) -> None:
    """Refuse points and rewards beyond the precision of a belief."""
    try:
        require_moderate(belief, X, y)
    except InputError as error:
        raise RemoteProtocolError(str(error)) from None


def expect_usable(belief: Belief, kernel: Kernel, X: Floats, *, dtype: str | np.dtype[Any]) -> None:
    """Refuse points on which a belief's kernel overflows in ``dtype``, or has a K + λI that cannot be factored."""
    for first in range(0, len(X), TRIED_TOGETHER):
        part = X[first : first + TRIED_TOGETHER]
        with np.errstate(all="ignore"):
            try:
                K = kernel(part, part)
                if not np.isfinite(K if K.dtype == dtype else K.astype(dtype)).all():
                    raise KernelError("it overflows there; rescale features")
                lower_cholesky(ridged(K, belief.lam), ridge=belief.lam)
            except InputError as error:
                raise RemoteProtocolError(f"{len(part)} points that the kernel cannot take: {error}") from None
