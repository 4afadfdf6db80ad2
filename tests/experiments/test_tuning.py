from __future__ import annotations

from laconic.experiments.tuning import best_of, complete_only, held_out
from tests.experiments.making import results, row

# On seed 0 the setting D=1 looks best, on the others D=2 is.
FOUND = results(
    *(row("DisKernelUCB", seed=seed, regret=regret, params={"D": 1.0}) for seed, regret in enumerate([1.0, 9.0, 9.0])),
    *(row("DisKernelUCB", seed=seed, regret=regret, params={"D": 2.0}) for seed, regret in enumerate([5.0, 4.0, 6.0])),
)


def test_the_best_setting_has_the_smallest_mean_over_all_seeds() -> None:
    assert best_of(FOUND)["DisKernelUCB"].params == {"D": 2.0}
    assert best_of(FOUND)["DisKernelUCB"].mean("regret") == 5.0


def test_held_out_seeds_have_no_say_in_the_setting_and_alone_are_reported() -> None:
    honest = held_out(FOUND)
    assert honest is not None
    assert (honest.chosen_on, honest.reported_on) == ((0,), (1, 2))
    (group,) = honest.results.groups
    assert group.params == {"D": 1.0}
    assert group.mean("regret") == 9.0


def test_one_seed_cannot_be_split() -> None:
    assert held_out(results(row("DisKernelUCB"))) is None


def test_a_setting_that_lacks_a_seed_is_left_out() -> None:
    some = results(row("A", seed=0), row("A", seed=1), row("B", seed=0))
    assert {each.algorithm for each in complete_only(some, seeds=(0, 1)).rows} == {"A"}
