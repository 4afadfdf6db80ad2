"""Weights of atoms in one byte each: eight steps an octave, code 0 for no weight at all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from laconic.arrays import Floats
from laconic.checks import finite_array
from laconic.errors import InputError

Codes = NDArray[np.uint8]

#: Codes an octave: rounding to the nearest moves a weight by at most a factor of 2^(1/16), 4.4 %.
STEPS = 8
#: The code of weight 1; codes 1 to 255 reach from 2^(−99/8), about 1/5,300, to 2^(155/8), about 680,000.
ONE = 100
SMALLEST = 2.0 ** ((1 - ONE) / STEPS)


def coded(weights: Floats) -> Codes:
    """The code of each weight; one that is too large gets the largest, one that is too small none."""
    weights = finite_array("weights", weights, ndim=1)
    if (weights < 0).any():
        raise InputError(f"weights must not be negative, got {weights.min():.6g}")
    steps = np.round(STEPS * np.log2(np.maximum(weights, SMALLEST / 4.0))) + ONE
    return np.asarray(np.clip(steps, 0, 255), dtype=np.uint8)


def weights_of(codes: Codes) -> Floats:
    """The weight that each code stands for."""
    codes = np.asarray(codes)
    if codes.dtype != np.uint8 or codes.ndim != 1:
        raise InputError(f"codes must be one row of bytes, got {codes.dtype} of shape {codes.shape}")
    return np.where(codes > 0, 2.0 ** ((codes.astype(np.float64) - ONE) / STEPS), 0.0)
