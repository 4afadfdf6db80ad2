"""A history hashes its newest observations when somebody asks, and never has many left to hash."""

import numpy as np
import pytest

from laconic.protocol.history import MOST_UNHASHED, History, chained


@pytest.mark.parametrize("step", [1, 7, MOST_UNHASHED, 3 * MOST_UNHASHED])
def test_the_chain_is_that_of_all_observations_however_they_came_and_little_of_it_is_left_for_later(step: int) -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(1000, 3)), random.normal(size=1000)
    whole = chained(0, X, y)
    history = History.empty(3)
    for first in range(0, len(y), step):
        history = history.appended(X[first : first + step], y[first : first + step])
        known = history.upto(len(history))._known_chain
        assert len(history) - len(known) <= MOST_UNHASHED
        np.testing.assert_array_equal(known.values, whole[: len(known)])
    np.testing.assert_array_equal(history.chain.values, whole)
    np.testing.assert_array_equal(history.upto(500).chain.values, whole[:500])
