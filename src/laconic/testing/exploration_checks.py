"""What an exploration must keep to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from laconic.arrays import Floats
from laconic.exploration import Chance, Choice, Draws, Exploration, Shown
from laconic.growing import first_appearances
from laconic.testing.wording import CLOSE, Subject, points

SEED = 11
#: So many decisions show how often arms are chosen.
DECISIONS = 400
#: So many of them are made again.
REPEATED = 20
#: How often an arm is chosen may be off by so many standard errors: once in about 10⁹ checks by chance.
OFF_BY = 6.0


def check_exploration(exploration: Exploration) -> None:
    """Check an exploration on all sorts of arms.

    It must be a function of what is shown and of draws from ``shown.random()``, change nothing of it, choose one of the
    arms, and say with which probability: those of all arms add up to one, and arms are chosen as often as it says.

    Args:
        exploration: A frozen dataclass with a method choose(shown); a value, and not the class.

    Raises:
        AssertionError: It breaks the contract; the message says with which arms.
    """
    subject = Subject.of("exploration", exploration)
    subject.claim(not isinstance(exploration, type), "it is a class; check a value of it")
    subject.claim(isinstance(exploration, Exploration), "it has no method choose(shown)")
    settings = getattr(exploration, "__dataclass_params__", None)
    subject.claim(
        settings is not None and settings.frozen,
        "it must be a frozen dataclass, so that its fields are its parameters and plans can be compared",
    )
    for what, shown in _sets():
        _check_set(subject.at(f"with {what}"), exploration, shown)


def shown_arms(mean: Floats, covariance: Floats, *, same: object = None, decision: int = 0, client: int = 0) -> Shown:
    """Arms of these means and of this covariance, of which those with the same number in ``same`` are one point."""
    number = np.arange(len(mean)) if same is None else np.asarray(same)
    first = np.unique(number, return_index=True)[1]
    return Shown(
        mean=np.asarray(mean, dtype=np.float64),
        width=np.sqrt(np.diagonal(covariance)),
        same=number,
        draws=Draws(lambda: (SEED, client, decision)),
        joint=lambda: np.array(covariance, dtype=np.float64)[np.ix_(first, first)],
    )


def _sets() -> Iterator[tuple[str, Shown]]:
    X = points(5, dim=2, stream=40)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    mean = np.array([0.3, 0.1, -0.2, 0.25, 0.0])
    yield "one arm", shown_arms(mean[:1], K[:1, :1])
    yield "two arms", shown_arms(mean[:2], K[:2, :2])
    yield "five arms", shown_arms(mean, 0.05 * K)
    yield "arms that are nearly certain", shown_arms(mean, 1e-12 * K)
    yield "arms of no variance", shown_arms(mean, np.zeros_like(K))
    yield "arms that tie", shown_arms(np.zeros(4), np.zeros((4, 4)))
    yield "arms of which nothing is known", shown_arms(np.zeros(5), np.eye(5))
    number = first_appearances(X[[0, 1, 0, 0]])
    yield "equal arms", shown_arms(mean[[0, 1, 0, 0]], K[np.ix_([0, 1, 0, 0], [0, 1, 0, 0])], same=number)
    yield "large numbers", shown_arms(1e9 * mean, 1e18 * K)


def _check_set(subject: Subject, exploration: Exploration, shown: Shown) -> None:
    before = [array.copy() for array in (shown.mean, shown.width, shown.same)]
    choices = [_chosen(subject, exploration, _at(shown, decision)) for decision in range(DECISIONS)]
    after = (shown.mean, shown.width, shown.same)
    kept = all(np.array_equal(old, new) for old, new in zip(before, after, strict=True))
    subject.claim(kept, "choose(shown) changes the arrays that it is given")
    again = [exploration.choose(_at(shown, decision)).arm for decision in range(REPEATED)]
    subject.claim(
        again == [choice.arm for choice in choices[:REPEATED]],
        "it chooses another arm when it is asked again; draw from shown.random() and from nothing else",
    )
    chances = [_chance(subject, choices[0], arm) for arm in range(len(shown))]
    error = math.hypot(*(chance.error for chance in chances))
    total = sum(chance.value for chance in chances)
    subject.claim(abs(total - 1.0) <= OFF_BY * error + CLOSE, f"the probabilities of all arms add up to {total}")
    _check_frequencies(subject, choices, chances)


def _at(shown: Shown, decision: int) -> Shown:
    seed, client, _ = shown.draws.address()
    return replace(shown, draws=Draws(lambda: (seed, client, decision)))


def _chosen(subject: Subject, exploration: Exploration, shown: Shown) -> Choice:
    with subject.calling("choose(shown)"):
        choice = exploration.choose(shown)
    subject.claim(isinstance(choice, Choice), f"choose(shown) must return a Choice, not {type(choice).__name__}")
    fits = isinstance(choice.arm, int | np.integer) and 0 <= choice.arm < len(shown)
    subject.claim(fits, f"it chose {choice.arm!r} of {len(shown)} arms; arms are counted from 0")
    return choice


def _chance(subject: Subject, choice: Choice, arm: int) -> Chance:
    with subject.calling(f"chance_of({arm})"):
        chance = choice.chance_of(arm)
        again = choice.chance_of(arm)
    subject.claim(isinstance(chance, Chance), f"chance_of(arm) must give a Chance, not {type(chance).__name__}")
    fits = 0.0 <= chance.value <= 1.0 + CLOSE and chance.error >= 0.0
    subject.claim(fits, f"the probability of arm {arm} is {chance.value} with an error of {chance.error}")
    subject.claim(chance == again, f"the probability of arm {arm} is another when it is asked for again")
    return chance


def _check_frequencies(subject: Subject, choices: list[Choice], chances: list[Chance]) -> None:
    seen = Counter(int(choice.arm) for choice in choices)
    for arm, chance in enumerate(chances):
        p, share = min(max(chance.value, 0.0), 1.0), seen[arm] / len(choices)
        off = OFF_BY * math.sqrt(p * (1.0 - p) / len(choices) + chance.error**2) + 2.0 / len(choices) * (0.0 < p < 1.0)
        subject.claim(
            abs(share - p) <= off + CLOSE,
            f"arm {arm} is chosen in {share:.3f} of {len(choices)} decisions, and has the probability {p:.3f}, it says",
        )
