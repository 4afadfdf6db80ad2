import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from laconic.errors import ProblemError
from laconic.problems import Round, check_round

GOOD = Round(
    arms=np.arange(24.0).reshape(2, 4, 3),
    means=np.arange(8.0).reshape(2, 4),
    rewards=np.arange(8.0).reshape(2, 4) + 0.5,
)


def with_value(array: Any, where: Any, value: Any) -> Any:
    changed = np.array(array)
    changed[where] = value
    return changed


def checked(met: Any, clients: int = 2, dim: int = 3) -> Any:
    return check_round(met, index=5, clients=clients, dim=dim)


def test_a_good_round_passes_unchanged_and_uncopied() -> None:
    met = checked(GOOD)
    assert met.arms is GOOD.arms
    assert met.means is GOOD.means
    assert met.rewards is GOOD.rewards
    assert met.mask is None


def test_lists_and_float32_become_float64() -> None:
    met = checked(Round(GOOD.arms.tolist(), GOOD.means.astype("f4"), GOOD.rewards.astype("i8")))
    assert met.arms.dtype == met.means.dtype == met.rewards.dtype == np.float64
    assert np.array_equal(met.arms, GOOD.arms)


def test_what_a_mask_leaves_out_is_an_arm_that_is_there_to_kernels_and_pays_nothing() -> None:
    mask = np.array([[1, 1, 0, 1], [1, 1, 1, 1]])
    arms = with_value(GOOD.arms, (0, 2), math.nan)
    means = with_value(GOOD.means, (0, 2), math.inf)
    met = checked(replace(GOOD, arms=arms, means=means, mask=mask))
    assert met.mask.dtype == np.bool_
    assert np.array_equal(met.arms[0, 2], GOOD.arms[0, 0])
    assert met.means[0, 2] == met.rewards[0, 2] == 0
    assert np.array_equal(met.arms[met.mask], GOOD.arms[met.mask])
    assert math.isnan(arms[0, 2, 0])


def test_a_mask_that_leaves_nothing_out_is_no_mask() -> None:
    assert checked(replace(GOOD, mask=np.ones((2, 4), dtype=bool))).mask is None


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"arms": with_value(GOOD.arms, (1, 2, 0), math.nan)}, r"arms\[1, 2, 0\] is nan \(client 1 "),
        ({"arms": with_value(GOOD.arms, (0, 3, 2), math.inf)}, r"arms\[0, 3, 2\] is inf \(client 0 "),
        ({"means": with_value(GOOD.means, (1, 0), -math.inf)}, r"means\[1, 0\] is -inf \(client 1 "),
        ({"rewards": with_value(GOOD.rewards, (1, 3), math.nan)}, r"rewards\[1, 3\] is nan \(client 1 "),
        ({"arms": GOOD.arms[:, :, 0]}, r"arms has shape \(2, 4\), but 3 axes"),
        ({"arms": GOOD.arms[:, :0]}, r"arms has shape \(2, 0, 3\), so there is nothing to choose"),
        ({"arms": GOOD.arms[:, :, :0]}, "arms has shape .* nothing to choose"),
        ({"arms": GOOD.arms + 1j}, "arms holds complex128"),
        ({"means": GOOD.means[:, :3]}, r"means has shape \(2, 3\), but \(2, 4\) is needed"),
        ({"rewards": GOOD.rewards[0]}, r"rewards has shape \(4,\), but 2 axes"),
        ({"mask": np.array([[1, 1, 1, 1], [0, 0, 0, 0]])}, "mask leaves client 1 .* without an arm"),
        ({"mask": np.array([[1, 1, 1, 1], [2, 0, 0, 0]])}, "mask holds 2; try booleans"),
        ({"mask": np.ones((2, 4))}, "mask holds float64"),
        ({"mask": np.ones((2, 3), dtype=bool)}, r"mask has shape \(2, 3\), but \(2, 4\)"),
        ({"mask": [[True], [True, False]]}, "mask is ragged"),
    ],
)
def test_a_round_that_cannot_be_played_is_refused_with_its_index_and_place(wrong: Any, why: str) -> None:
    with pytest.raises(ProblemError, match=f"^round 5: {why}") as caught:
        checked(replace(GOOD, **wrong))
    assert "\n" not in str(caught.value)


def test_a_round_for_other_clients_or_of_another_dimension_is_refused() -> None:
    with pytest.raises(ProblemError, match=r"round 5: arms has shape \(2, 4, 3\), but \(3, 4, 3\) is needed"):
        checked(GOOD, clients=3)
    with pytest.raises(ProblemError, match=r"round 5: arms has shape \(2, 4, 3\), but \(2, 4, 4\) is needed"):
        checked(GOOD, dim=4)
