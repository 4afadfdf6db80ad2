"""A decision says with which probability its arm was chosen and how the application calls it, also after a restart."""

import math
from typing import Any

import msgspec
import numpy as np
import pytest

from laconic import (
    Client,
    Decision,
    DisKernelUCB,
    EpsilonFloor,
    Greedy,
    NKernelUCB,
    Plan,
    Random,
    Softmax,
    Thompson,
    restore_client,
    snapshot_client,
)
from laconic.errors import InputError
from laconic.exploration import Fixed
from laconic.protocol.codec import encode_state
from laconic.protocol.records import Decided, Record, decode_record, encode_record
from laconic.triggers import Never

ARMS = np.random.default_rng(3).uniform(-1, 1, (5, 2))


def client(exploration: Any = None, **options: Any) -> Client:
    algorithm = NKernelUCB() if exploration is None else NKernelUCB(exploration=exploration)
    return Client(algorithm.plan(2), seed=4, **options)


# Propensities


def test_the_only_best_arm_is_chosen_with_certainty_and_ties_share() -> None:
    ours = client()
    assert ours.choose(ARMS).propensity == 1 / 5  # nothing is known, and the kernel gives all arms one variance
    ours.learn(ARMS[:1], [5.0])
    decision = ours.choose(ARMS)
    assert (decision.propensity, decision.propensity_error) == (1.0, 0.0)
    assert Client(Random().plan(2)).choose(ARMS).propensity == 1 / 5


@pytest.mark.parametrize("alpha", [0.0, 0.5, 4.0])
def test_a_decision_says_what_is_not_known_of_its_arm_whatever_that_is_worth(alpha: float) -> None:
    ours = Client(NKernelUCB(lam=0.5, alpha=alpha).plan(2), seed=4)
    ours.learn(ARMS[:1], [5.0])
    decision = ours.choose(ARMS[1:2])
    k = NKernelUCB().kernel(ARMS[:1], ARMS[1:2]).item()
    assert decision.deviation == pytest.approx(math.sqrt((1 - k**2 / 1.5) / 0.5))  # σ² = [k(x,x) − k_D(K + λI)⁻¹k_D]/λ
    assert decision.width == alpha * decision.deviation


def test_of_equal_arms_each_has_its_share() -> None:
    ours = client(Greedy())
    ours.learn(ARMS[:1], [5.0])
    assert ours.choose(ARMS[[0, 1, 0, 0]]).propensity == pytest.approx(1 / 3)


def test_with_a_floor_no_propensity_is_below_it() -> None:
    ours = client(EpsilonFloor(epsilon=0.2))
    ours.learn(ARMS[:1], [5.0])
    found = {ours.choose(ARMS).propensity for _ in range(100)}
    assert sorted(found) == pytest.approx([0.04, 0.84])


def test_the_propensity_of_thompson_sampling_is_an_estimate_with_its_error() -> None:
    ours = client(Thompson())
    ours.learn(ARMS[:2], [0.5, 0.0])
    decision = ours.choose(ARMS)
    assert 0.0 < decision.propensity < 1.0
    assert 0.0 < decision.propensity_error < 0.05
    assert decision.propensity == decision.propensity  # worked out once


def test_a_propensity_asked_for_later_is_the_one_of_its_own_time() -> None:
    early, late = client(Thompson()), client(Thompson())
    first, second = early.choose(ARMS), late.choose(ARMS)
    asked = first.propensity
    late.observe(second, 3.0)
    late.choose(ARMS)
    assert second.propensity == asked


def test_asking_for_propensities_changes_no_choice() -> None:
    asking, silent = client(Thompson()), client(Thompson())
    for step in range(20):
        one, other = asking.choose(ARMS), silent.choose(ARMS)
        assert one.propensity > 0
        assert one.arm == other.arm
        asking.observe(one, float(step % 3))
        silent.observe(other, float(step % 3))


# Names of arms


def test_the_decision_has_the_name_of_its_arm() -> None:
    ours = client()
    names = ["a", "b", "c", "d", "e"]
    decision = ours.choose(ARMS, ids=names)
    assert decision.arm_id == names[decision.arm]
    assert ours.choose(ARMS, ids=np.arange(10, 15)).arm_id in list(range(10, 15))
    assert ours.choose(ARMS).arm_id is None


@pytest.mark.parametrize(
    ("ids", "why"),
    [
        (["a"], "ids must be as many as arms, got 1 and 5"),
        (["a", "b", "c", "a", "d"], "'a' names two arms"),
        ([1.5, 2, 3, 4, 5], "ids must be texts or whole numbers, got 1.5"),
        ([True, 2, 3, 4, 5], "ids must be texts or whole numbers, got True"),
        ([None] * 5, "ids must be texts or whole numbers, got None"),
        (7, "ids must be a list of texts or whole numbers, not 7"),
        ("abcde", "ids must be a list of texts or whole numbers, not 'abcde'"),
        ([2**70, 1, 2, 3, 4], "below 2"),
        (["\ud800", "b", "c", "d", "e"], "half a letter"),
    ],
)
def test_names_that_do_not_fit_are_refused_and_nothing_is_decided(ids: Any, why: str) -> None:
    ours = client()
    with pytest.raises(InputError, match=why):
        ours.choose(ARMS, ids=ids)
    assert not ours.learner.pending
    assert ours.learner.decisions == 0


# Records


def kept(ours: Client, *decisions: Decision) -> list[Record]:
    return [ours.born, *(decode_record(encode_record(decision.record)) for decision in decisions)]


@pytest.mark.parametrize("exploration", [Thompson(), Softmax(), EpsilonFloor(Thompson())], ids=repr)
@pytest.mark.parametrize("how", ["records", "snapshot"])
def test_a_restored_client_knows_how_the_decisions_that_wait_were_made(exploration: Any, how: str) -> None:
    ours = client(exploration)
    decisions = [ours.choose(ARMS, ids=["a", "b", "c", "d", "e"]) for _ in range(3)]
    saved = kept(ours, *decisions) if how == "records" else [decode_record(encode_record(snapshot_client(ours)))]
    restored, _ = restore_client(saved, plan=ours.plan, start=9)
    for decision in decisions:
        waiting = restored.learner.pending[decision.id]
        assert waiting.choice.arm == decision.arm
        assert waiting.choice.chance == decision.choice.chance
        assert waiting.arm_id == decision.arm_id
    again, _ = restore_client([snapshot_client(restored)], plan=ours.plan, start=9)
    assert encode_record(snapshot_client(again)) == encode_record(snapshot_client(restored))


class OldDecided(Record, frozen=True, eq=False, array_like=True, tag=3):
    """A decision as it was recorded before probabilities were."""

    id: str
    point: np.ndarray


def test_decisions_recorded_without_a_probability_are_waited_for_all_the_same() -> None:
    ours = client()
    decision = ours.choose(ARMS)
    old = decode_record(encode_state(OldDecided(id=decision.id, point=decision.point)))
    assert isinstance(old, Decided)
    restored, _ = restore_client([ours.born, old], plan=ours.plan, start=9)
    assert math.isnan(restored.learner.pending[decision.id].choice.chance.value)
    saved = msgspec.structs.replace(snapshot_client(ours), odds={})
    for each in (restored, restore_client([saved], plan=ours.plan, start=9)[0]):
        again, _ = restore_client([decode_record(encode_record(snapshot_client(each)))], plan=ours.plan, start=9)
        again.observe(decision.id, 1.0)
        assert again.count == 1


def test_a_decision_made_by_hand_has_no_propensity() -> None:
    assert math.isnan(Decision("0.0", arm=0, mean=0.0, deviation=0.0, width=0.0, point=ARMS[:1]).propensity)


# Plans


def test_a_coefficient_is_no_exploration_and_the_plan_says_so() -> None:
    belief = DisKernelUCB().plan(2).belief
    with pytest.raises(InputError, match="exploration must have a method choose"):
        Plan(belief=belief, trigger=Never(), confidence=Fixed(1.0), exploration=Fixed(1.0))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="confidence must have a method coefficient"):
        Plan(belief=belief, trigger=Never(), confidence=0.3)  # type: ignore[arg-type]


@pytest.mark.parametrize("arm", [-1, 5])
def test_an_exploration_that_chooses_no_arm_is_refused_by_name(arm: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = client(Greedy())
    real = Greedy.choose
    monkeypatch.setattr(Greedy, "choose", lambda self, shown: moved(real(self, shown), arm))
    with pytest.raises(InputError, match=r"Greedy\(\) chose arm"):
        ours.choose(ARMS)


def moved(choice: Any, arm: int) -> Any:
    return type(choice)(arm, choice.chances)
