"""The exact mean as whole numbers of steps, which is how it travels.

With L_H the root of H + λI in the coordinates of the atoms and θ the exact coefficients there, c = L_Hᵀθ is the mean as
the client's features see it: μ(x) = v(x)·c with ‖v(x)‖ ≤ σ̂(x). A step of Δ therefore moves a mean by at most
σ̂(x)·Δ√m/2, whatever the weights are.
"""

from __future__ import annotations

import numpy as np

from laconic.arrays import Floats, Ints
from laconic.checks import finite_array, require_positive
from laconic.errors import InputError

#: Whole numbers beyond this are not exact in float64.
MOST = 2**53


def is_expressible(c: Floats, *, step: float) -> bool:
    """Whether all coefficients are whole numbers of steps that can be written."""
    return bool((np.abs(np.round(c / step)) <= MOST).all())


def quantised(c: Floats, *, step: float) -> Ints:
    """Each coefficient as the nearest whole number of steps."""
    require_positive("step", step)
    if not is_expressible(finite_array("c", c, ndim=1), step=step):
        raise InputError(f"a coefficient of the mean exceeds 2^53 steps of {step:g}; try a larger range of rewards")
    return np.round(c / step).astype(np.int64)
