from __future__ import annotations

from dataclasses import replace

import pytest

from laconic import ApproxDisKernelUCB, Gaussian
from laconic.experiments.sensitivity import Study, Variation
from laconic.reproduction.claims import CLAIMS, findings, untested
from tests.reproduction.making import SETTINGS, five, panel, run_of


def verdicts(*rows: object, problem: str = "cosine") -> dict[str, str]:
    return {each.claim.key: each.verdict for each in findings(panel(*rows, problem=problem))}  # type: ignore[arg-type]


def test_all_claims_hold_where_the_numbers_are_as_the_paper_says() -> None:
    assert set(verdicts(*five()).values()) == {"reproduced"}


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("C1", {"NKernelUCB": (9.0, 0)}),
        ("C2", {"ApproxDisKernelUCB": (12.0, 950)}),
        ("C3", {"DisLinUCB": (40.0, 91)}),  # sends too much
        ("C3", {"DisLinUCB": (29.0, 50)}),  # not worse than NKernelUCB
        ("C4", {"ApproxDisKernelUCB": (17.0, 200)}),  # regret not comparable
        ("C4", {"ApproxDisKernelUCB": (12.0, 500)}),  # no fraction of the communication
    ],
)
def test_a_claim_fails_by_its_own_criterion(claim: str, changes: dict[str, tuple[float, int]]) -> None:
    assert verdicts(*five(**changes))[claim] == "not reproduced"


@pytest.mark.parametrize(
    ("regret", "words"), [(9.0, ": 1 less"), (10.0, ": as much"), (10.04, ": 0.04 more"), (1510.0, ": 1 more")]
)
def test_c1_says_by_how_much(regret: float, words: str) -> None:
    (found,) = (each for each in findings(panel(*five(NKernelUCB=(regret, 0)))) if each.claim.key == "C1")
    assert found.numbers.endswith(words)


def test_dislinucb_is_measured_against_nkernelucb_only_where_the_paper_does() -> None:
    rows = five(DisLinUCB=(29.0, 50))
    assert verdicts(*rows, problem="mushroom")["C3"] == "not reproduced"
    assert verdicts(*rows, problem="magic")["C3"] == "reproduced"


def test_a_claim_about_an_algorithm_that_did_not_run_is_not_tested() -> None:
    without = [each for each in five() if each.algorithm != "DisLinUCB"]
    found = findings(panel(*without))
    assert {each.verdict for each in found} == {"not tested"}
    assert "no finished runs of DisLinUCB" in found[0].numbers


def test_a_problem_that_did_not_run_leaves_every_claim_untested_and_says_why() -> None:
    found = untested("magic: no magic04.data")
    assert [each.verdict for each in found] == ["not tested"] * len(CLAIMS)
    assert found[0].numbers == "magic: no magic04.data"


def test_settings_are_tuned_by_regret_and_not_by_the_verdict() -> None:
    cheap = run_of(ApproxDisKernelUCB(Gaussian(gamma=0.1)), regret=12.5, scalars=100)
    loud = five(ApproxDisKernelUCB=(12.0, 800))
    assert verdicts(*loud, cheap)["C4"] == "not reproduced"


def test_where_a_claim_fails_the_settings_at_which_it_holds_are_named() -> None:
    cheap = run_of(ApproxDisKernelUCB(Gaussian(gamma=0.1)), regret=12.5, scalars=100)
    found = findings(panel(*five(ApproxDisKernelUCB=(12.0, 800)), cheap))
    (c4,) = (each for each in found if each.claim.key == "C4")
    assert c4.holds_at == ("ApproxDisKernelUCB at γ=0.1, α=1, the others tuned",)


def test_the_sensitivity_study_counts_among_the_settings_tried() -> None:
    other = replace(SETTINGS["ApproxDisKernelUCB"], qbar=0.1)
    varied = panel(
        *five(ApproxDisKernelUCB=(12.0, 800)), study=Study((Variation(other, "ApproxDisKernelUCB", "qbar", 0.1),))
    )
    varied = replace(varied, varied=replace(varied.results, rows=(run_of(other, regret=13.0, scalars=100),)))
    (c4,) = (each for each in findings(varied) if each.claim.key == "C4")
    assert c4.holds_at == ("ApproxDisKernelUCB with q̄=0.1, the others tuned",)


def test_a_claim_that_holds_nowhere_has_no_such_settings() -> None:
    found = findings(panel(*five(NKernelUCB=(9.0, 0))))
    assert found[0].verdict == "not reproduced"
    assert found[0].holds_at == ()


def test_held_out_seeds_give_a_verdict_of_their_own() -> None:
    lucky = ApproxDisKernelUCB(Gaussian(gamma=4.0))  # the best on seed 0 alone
    rows = [replace(each, seed=seed) for seed in (0, 1) for each in five()]
    rows += [run_of(lucky, regret=regret, scalars=200, seed=seed) for seed, regret in ((0, 1.0), (1, 100.0))]
    (c4,) = (each for each in findings(panel(*rows, seeds=(0, 1))) if each.claim.key == "C4")
    assert (c4.verdict, c4.held_out) == ("reproduced", "not reproduced")


def test_every_claim_states_its_criterion() -> None:
    assert [claim.key for claim in CLAIMS] == ["C1", "C2", "C3", "C4"]
    assert all(claim.criterion.endswith(".") for claim in CLAIMS)
