"""The check of explorations finds what is broken, and says so."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from laconic import Chance, Choice, DisLinUCB, Shown, Softmax, Thompson
from laconic.errors import InputError
from laconic.testing import check_algorithm, check_exploration

CALLS = [0]


def spoiling(shown: Shown) -> Choice:
    shown.mean[0] += 1.0
    return Softmax().choose(shown)


def forgetful(shown: Shown) -> Choice:
    CALLS[0] += 1
    return Choice(int(np.random.default_rng(CALLS[0]).integers(len(shown))), np.full(len(shown), 1 / len(shown)))


def boastful(shown: Shown) -> Choice:
    chances = np.zeros(len(shown))
    chances[0] = 1.0
    return Choice(int(shown.random().integers(len(shown))), chances)


def unsteady(shown: Shown) -> Choice:
    CALLS[0] += 1
    return Choice(0, lambda arm: Chance(1.0 / (1 + CALLS[0]) if CALLS.__setitem__(0, CALLS[0] + 1) is None else 0.0))


@dataclass(frozen=True)
class Odd:
    """An exploration that does as one of these functions."""

    how: ClassVar[dict[str, Callable[[Shown], Any]]] = {
        "spoiling": spoiling,
        "forgetful": forgetful,
        "boastful": boastful,
        "unsteady": unsteady,
        "beyond": lambda shown: Choice(len(shown), np.ones(1)),
        "bare": lambda shown: 0,
        "raising": lambda shown: 1 / 0,
        "halved": lambda shown: Choice(0, np.eye(len(shown))[0] / 2),
        "negative": lambda shown: Choice(0, np.where(np.arange(len(shown)) == 0, 1.5, -0.5)),
        "plain": lambda shown: Choice(0, lambda arm: float(arm == 0)),  # type: ignore[arg-type,return-value]
    }
    name: str

    def choose(self, shown: Shown, /) -> Any:
        return self.how[self.name](shown)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("spoiling", "changes the arrays that it is given"),
        ("forgetful", "chooses another arm when it is asked again; draw from shown.random"),
        ("boastful", "arm . is chosen in 0.* of 400 decisions, and has the probability"),
        ("unsteady", "the probability of arm 0 is another when it is asked for again"),
        ("beyond", "it chose 1 of 1 arms; arms are counted from 0"),
        ("bare", "must return a Choice, not int"),
        ("raising", "raised ZeroDivisionError"),
        ("halved", "the probabilities of all arms add up to 0.5"),
        ("negative", "the probability of arm 0 is 1.5"),
        ("plain", "must give a Chance, not float"),
    ],
)
def test_a_broken_exploration_is_told_what_is_wrong(name: str, why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        check_exploration(Odd(name))


def test_what_is_no_exploration_is_told_so() -> None:
    with pytest.raises(AssertionError, match="it is a class; check a value of it"):
        check_exploration(Thompson)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match=r"it has no method choose\(shown\)"):
        check_exploration(0.3)  # type: ignore[arg-type]

    class Loose:
        def choose(self, shown: Shown, /) -> Choice:
            return Softmax().choose(shown)

    with pytest.raises(AssertionError, match="must be a frozen dataclass"):
        check_exploration(Loose())


def test_the_check_of_an_algorithm_looks_at_its_exploration() -> None:
    with pytest.raises(AssertionError, match=r"exploration Odd.*add up to 0.5"):
        check_algorithm(DisLinUCB(exploration=Odd("halved")))


@pytest.mark.parametrize(
    ("exploration", "why"),
    [
        (Thompson, r"got the class Thompson; try exploration=Thompson\(\)"),
        ("thompson", r"must have a method choose\(shown\), not 'thompson'; try exploration=Thompson\(\)"),
        (0.1, "and give α as alpha"),
    ],
)
def test_an_algorithm_refuses_what_is_no_exploration(exploration: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        DisLinUCB(exploration=exploration)


@pytest.mark.parametrize("exploration", [Thompson(), Thompson(joint=False)])
def test_algorithms_with_thompson_sampling_pass_the_check(exploration: Any) -> None:
    check_algorithm(DisLinUCB(D=2.0, alpha=0.5, exploration=exploration))
