"""Weights in a byte, means in whole steps: there and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic.atoms import coded, quantised, weights_of
from laconic.errors import InputError


@given(st.lists(st.floats(2.0**-12, 2.0**19), min_size=1, max_size=30))
def test_a_weight_comes_back_within_half_a_step(weights: list[float]) -> None:
    given_, back = np.array(weights), weights_of(coded(np.array(weights)))
    assert np.abs(np.log2(back / given_)).max() <= 0.5 / 8 + 1e-12


def test_a_code_stands_for_the_weight_that_it_is_the_code_of() -> None:
    codes = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(coded(weights_of(codes)), codes)


def test_eight_steps_are_an_octave_and_code_100_is_one() -> None:
    weights = weights_of(np.array([0, 92, 100, 108], dtype=np.uint8))
    np.testing.assert_allclose(weights, [0, 0.5, 1, 2])


def test_weights_out_of_reach_get_the_nearest_code() -> None:
    np.testing.assert_array_equal(coded(np.array([0.0, 1e-9, 1e12])), [0, 0, 255])


@pytest.mark.parametrize("weights", [[-1.0], [np.nan], [np.inf], [[1.0]], ["a"]])
def test_weights_that_are_none_are_refused(weights: object) -> None:
    with pytest.raises(InputError, match="weights"):
        coded(weights)  # type: ignore[arg-type]


def test_codes_that_are_no_bytes_are_refused() -> None:
    with pytest.raises(InputError, match="bytes"):
        weights_of(np.array([1, 2]))


@given(st.lists(st.floats(-1e6, 1e6), max_size=20), st.floats(1e-3, 10))
def test_a_coefficient_moves_by_at_most_half_a_step(c: list[float], step: float) -> None:
    back = quantised(np.array(c), step=step) * step
    assert np.abs(back - np.array(c)).max(initial=0.0) <= step / 2 * (1 + 1e-9)


def test_coefficients_of_too_many_steps_are_refused() -> None:
    with pytest.raises(InputError, match="range of rewards"):
        quantised(np.array([1e20]), step=0.03)
    with pytest.raises(InputError, match="step"):
        quantised(np.array([1.0]), step=0.0)
