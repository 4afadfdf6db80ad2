"""An exploration of a user's own that answers nonsense is told so, in both runtimes, and nothing of it is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from laconic import Cosine, DisKernelUCB, EpsilonFloor, Gaussian, InputError, run
from laconic.exploration import Chance, Choice, Shown
from laconic.protocol.client import Client

ARMS = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
EVEN = np.full(3, 1.0 / 3.0)


WRONG_ARMS: list[Any] = [-1, 3, 0.5, "0", None, float("nan"), np.array([0])]
NO_CHOICES: list[Any] = [
    None,
    1,
    (0, 1.0),
    *(Choice(arm, EVEN) for arm in WRONG_ARMS),
]
NO_CHANCES: list[Any] = [
    *(np.full(3, chance) for chance in (2.0, -1.0, 0.0, 0.9, np.nan)),
    np.ones(0),
    np.full((3, 3), 1.0 / 3.0),
    ["a", "b", "c"],
    None,
    lambda arm: 0.5,
    lambda arm: None,
    lambda arm: Chance(7.0),
    lambda arm: Chance(float("nan")),
]


ANSWERS = [*NO_CHOICES, *(Choice(0, chances) for chances in NO_CHANCES)]


@dataclass(frozen=True)
class Answering:
    """An exploration that always gives the same answer, of which it knows the number."""

    number: int = 0

    def choose(self, shown: Shown, /) -> Any:
        return ANSWERS[self.number]


def client_of(exploration: Any) -> Client:
    return Client(DisKernelUCB(Gaussian(0.5), exploration=exploration).plan(2))


@pytest.mark.parametrize("number", range(len(NO_CHOICES)))
def test_what_is_no_choice_is_refused_and_nothing_changes(number: int) -> None:
    for exploration in (Answering(number), EpsilonFloor(Answering(number))):
        client = client_of(exploration)
        with pytest.raises(InputError, match="see check_exploration"):
            client.choose(ARMS)
        assert not client.learner.pending


@pytest.mark.parametrize("runtime", ["loopback", "lockstep"])
@pytest.mark.parametrize("number", range(len(NO_CHOICES)))
def test_both_runtimes_refuse_what_is_no_choice(number: int, runtime: str) -> None:
    algorithm = DisKernelUCB(Gaussian(0.5), exploration=Answering(number))
    with pytest.raises(InputError, match="see check_exploration"):
        run(algorithm, Cosine(dim=2, arms=3), clients=2, rounds=2, runtime=runtime)


@pytest.mark.parametrize("number", range(len(NO_CHOICES), len(ANSWERS)))
def test_what_is_no_probability_is_no_propensity(number: int) -> None:
    decision = client_of(Answering(number)).choose(ARMS)
    with pytest.raises(InputError, match="chance"):
        _ = decision.propensity


def test_masked_arms_are_refused() -> None:
    arms = np.ma.masked_array(np.ones((2, 2)), mask=[[False, True], [False, False]])
    with pytest.raises(InputError, match="arms has masked entries"):
        client_of(EpsilonFloor()).choose(arms)
    assert client_of(EpsilonFloor()).choose(np.ma.masked_array(np.ones((2, 2)))).propensity == pytest.approx(0.5)
