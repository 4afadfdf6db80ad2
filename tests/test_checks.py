import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic import checks
from laconic.errors import InputError

NOT_NUMBERS = [None, "1", True, np.True_, 1j, [1.0], np.array([1.0]), math.nan, math.inf, -math.inf, 10**400]
CHECKS: dict[str, Any] = {
    "finite": checks.require_finite_number,
    "positive": checks.require_positive,
    "at least": partial(checks.require_at_least, least=0),
}


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_what_is_no_finite_number_is_refused_by_name_on_one_line(check: Any, value: Any) -> None:
    with pytest.raises(InputError, match=r"^lam must be a finite number.*, not .+; try lam=") as caught:
        check("lam", value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int8(2), Fraction(2)], ids=repr)
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_every_kind_of_real_number_is_a_number(check: Any, value: Any) -> None:
    check("lam", value)


def test_zero_is_not_positive_and_is_at_least_zero() -> None:
    checks.require_at_least("D", 0, least=0)
    with pytest.raises(InputError, match="lam must be a finite number greater than 0, not 0"):
        checks.require_positive("lam", 0)


@given(st.floats(max_value=-5e-324, allow_infinity=False))
def test_negative_numbers_are_refused_where_they_make_no_sense(value: float) -> None:
    for check in (CHECKS["positive"], CHECKS["at least"]):
        with pytest.raises(InputError):
            check("D", value)


@pytest.mark.parametrize("value", [0, -3, 5.0, True, np.True_, "5", None, np.array([5, 6])], ids=repr)
def test_what_is_no_whole_number_from_one_up_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"clients must be a whole number of at least 1, not .+; try clients=1"):
        checks.require_whole("clients", value, least=1)


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    checks.require_whole("clients", np.int64(3), least=1)


def test_a_word_outside_the_list_is_refused_with_the_list() -> None:
    checks.require_one_of("reward", "cosine", choices=("cosine", "polynomial"))
    for value in ("cos", None, ["cosine"]):
        with pytest.raises(InputError, match=r"reward cannot be .+; try one of cosine, polynomial"):
            checks.require_one_of("reward", value, choices=("cosine", "polynomial"))


class Several:
    is_grid = True


def test_a_grid_is_let_through_as_its_values_are_checked_when_it_unfolds() -> None:
    for check in CHECKS.values():
        check("lam", Several())
    checks.require_whole("degree", Several(), least=1)
    checks.require_one_of("cold_start", Several(), choices=("paper", "local"))
    assert not checks.is_grid(1.0)


def test_a_grid_is_refused_where_nothing_unfolds_it() -> None:
    checks.require_no_grid(dim=5, arms=3)
    with pytest.raises(InputError, match=r"dim takes one value, not .+; try one comparison for each value"):
        checks.require_no_grid(arms=3, dim=Several())


@pytest.mark.parametrize(
    "value",
    [[1, 2], np.array([1, 2], dtype=np.float32), np.array([True, False]), np.array([1, 2], dtype=np.uint8)],
    ids=repr,
)
def test_real_arrays_become_float64(value: Any) -> None:
    array = checks.finite_array("x", value, ndim=1)
    assert array.dtype == np.float64
    assert array.tolist() == [float(v) for v in value]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([[1.0], [1.0, 2.0]], "x is ragged"),
        ([["a"]], "x holds <U1, not real numbers"),
        ([[1j]], "x holds complex128"),
        ([[None]], "x holds object"),
        ([1.0], r"x has shape \(1,\), but 2 axes are needed"),
        ([[0.0, 1.0], [2.0, math.nan]], r"x\[1, 1\] is nan"),
        ([[0.0, -math.inf]], r"x\[0, 1\] is -inf"),
    ],
)
def test_an_array_is_refused_with_what_is_wrong_and_where(value: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        checks.finite_array("x", value, ndim=2)


def test_a_number_too_large_for_float64_is_called_infinite() -> None:
    with pytest.raises(InputError, match=r"x\[0\] is inf"):
        checks.finite_array("x", np.array([np.finfo(np.longdouble).max]), ndim=1)


@given(st.text() | st.lists(st.floats()) | st.binary())
def test_what_was_seen_fits_on_one_short_line(value: Any) -> None:
    assert "\n" not in checks.seen(value)
    assert len(checks.seen(value)) < 300
