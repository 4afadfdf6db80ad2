from __future__ import annotations

from dataclasses import replace

import pytest

from laconic import Gaussian
from laconic.experiments.results import Row
from laconic.experiments.sensitivity import Study, Variation
from laconic.papers.claims import CLAIMS, Finding, findings, untested
from laconic.papers.evidence import LIKE_RANDOM, NEVER_SYNCED, set_aside
from laconic.report.table import spread
from tests.pages.making import SETTINGS, five, panel, random_arms, run_of, runs_of


def verdicts(*rows: Row, problem: str = "cosine") -> dict[str, str]:
    return {each.claim.key: each.verdict for each in findings(panel(*rows, problem=problem))}


def found_of(claim: str, *rows: Row) -> Finding:
    return next(each for each in findings(panel(*rows)) if each.claim.key == claim)


def test_all_claims_hold_where_the_numbers_are_as_the_paper_says() -> None:
    assert set(verdicts(*five()).values()) == {"holds"}


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
    assert verdicts(*five(**changes))[claim] == "fails"


@pytest.mark.parametrize(("regret", "words"), [(9.0, "0.9 ×"), (10.0, "1 ×"), (10.5, "1.05 ×")])
def test_c1_says_by_how_much(regret: float, words: str) -> None:
    found = found_of("C1", *five(NKernelUCB=(regret, 0)))
    assert f"{spread(regret, 0.0)}, NKernelUCB, {words}" in found.numbers


def test_the_least_regret_may_be_shared() -> None:
    assert verdicts(*five(NKernelUCB=(10.0, 0)))["C1"] == "holds"


def test_what_lies_within_the_spread_over_seeds_is_too_close_to_tell() -> None:
    noisy = runs_of(SETTINGS["NKernelUCB"], regret=10.5, scalars=0, apart=2.0)
    rows = [each for each in five() if each.algorithm != "NKernelUCB"]
    found = found_of("C1", *rows, *noisy)
    assert found.verdict == "too close to tell"
    assert "NKernelUCB, 1.05 × (95%: " in found.numbers


def test_who_else_is_too_close_or_ahead_is_named() -> None:
    rows = [each for each in five(ApproxDisKernelUCB=(9.0, 200)) if each.algorithm != "NKernelUCB"]
    noisy = runs_of(SETTINGS["NKernelUCB"], regret=10.5, scalars=0, apart=2.0)
    found = found_of("C1", *rows, *noisy)
    assert found.verdict == "fails"
    assert found.numbers.endswith("; too close to tell against NKernelUCB")


def test_of_one_seed_nothing_can_be_told() -> None:
    rows = [each for each in five() if each.seed == 0]
    found = findings(panel(*rows))
    assert {each.verdict for each in found} == {"too close to tell"}
    assert all(each.numbers.endswith("one seed, of which nothing can be told") for each in found)


def test_a_rehearsal_judges_nothing_and_still_has_its_numbers() -> None:
    found = findings(panel(*five(), rehearsal=True))
    assert {each.verdict for each in found} == {"not judged"}
    assert {each.held_out for each in found} == {"not tested"}
    assert "regret of OneKernelUCB 10.0" in found[0].numbers
    assert not any(sign in each.numbers for each in found for sign in "✓✗?")


def test_an_algorithm_that_never_synced_is_no_evidence() -> None:
    silent = five(DisKernelUCB=(11.0, 0))
    found = found_of("C4", *silent)
    assert (found.verdict, found.numbers) == ("not tested", "every setting of DisKernelUCB was set aside")
    assert verdicts(*silent)["C1"] == "holds"  # against the others


def test_another_setting_that_did_sync_is_judged_instead() -> None:
    silent = five(ApproxDisKernelUCB=(11.5, 0))
    loud = runs_of(replace(SETTINGS["ApproxDisKernelUCB"], kernel=Gaussian(gamma=0.1)), regret=12.0, scalars=200)
    assert "regret 12.0 ± 0.0 against" in found_of("C4", *silent, *loud).numbers


def test_an_algorithm_that_plays_as_random_arms_do_is_no_evidence() -> None:
    rows = [*five(ApproxDisKernelUCB=(50.0, 200), DisKernelUCB=(49.0, 900)), *random_arms(regret=50.0, apart=1.0)]
    assert verdicts(*rows)["C4"] == "not tested"  # though 50 is near 49
    assert verdicts(*five(), *random_arms(regret=50.0, apart=1.0))["C4"] == "holds"


def test_dislinucb_may_be_as_bad_as_random_arms_where_that_is_what_is_claimed() -> None:
    rows = [*five(DisLinUCB=(50.0, 50)), *random_arms(regret=50.0, apart=1.0)]
    assert verdicts(*rows)["C3"] == "holds"
    assert verdicts(*five(DisLinUCB=(50.0, 0)), *random_arms(regret=50.0))["C3"] == "not tested"  # it never synced


def test_what_is_set_aside_is_listed_with_the_reason() -> None:
    silent = runs_of(replace(SETTINGS["ApproxDisKernelUCB"], kernel=Gaussian(gamma=0.1)), regret=12.5, scalars=0)
    rows = [*five(DisLinUCB=(50.0, 50)), *silent, *random_arms(regret=50.0, apart=1.0)]
    aside = {(each.group.algorithm, each.group.params.get("gamma"), each.why) for each in set_aside(panel(*rows))}
    assert aside == {("ApproxDisKernelUCB", 0.1, NEVER_SYNCED), ("DisLinUCB", None, LIKE_RANDOM)}


def test_settings_at_which_a_claim_holds_are_evidence_too() -> None:
    loud = five(ApproxDisKernelUCB=(12.0, 800))
    silent = runs_of(replace(SETTINGS["ApproxDisKernelUCB"], kernel=Gaussian(gamma=0.1)), regret=12.5, scalars=0)
    assert found_of("C4", *loud, *silent).holds_at == ()


def test_dislinucb_is_measured_against_nkernelucb_only_where_the_paper_does() -> None:
    rows = five(DisLinUCB=(29.0, 50))
    assert verdicts(*rows, problem="mushroom")["C3"] == "fails"
    assert verdicts(*rows, problem="magic")["C3"] == "holds"


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
    cheap = runs_of(replace(SETTINGS["ApproxDisKernelUCB"], kernel=Gaussian(gamma=0.1)), regret=12.5, scalars=100)
    loud = five(ApproxDisKernelUCB=(12.0, 800))
    assert verdicts(*loud, *cheap)["C4"] == "fails"


def test_where_a_claim_fails_the_settings_at_which_it_holds_are_named() -> None:
    cheap = runs_of(replace(SETTINGS["ApproxDisKernelUCB"], kernel=Gaussian(gamma=0.1)), regret=12.5, scalars=100)
    c4 = found_of("C4", *five(ApproxDisKernelUCB=(12.0, 800)), *cheap)
    assert c4.holds_at == ("ApproxDisKernelUCB at γ=0.1, α=1, the others tuned",)


def test_the_sensitivity_study_counts_among_the_settings_tried() -> None:
    other = replace(SETTINGS["ApproxDisKernelUCB"], qbar=0.1)
    varied = panel(
        *five(ApproxDisKernelUCB=(12.0, 800)), study=Study((Variation(other, "ApproxDisKernelUCB", "qbar", 0.1),))
    )
    varied = replace(varied, varied=replace(varied.results, rows=tuple(runs_of(other, regret=13.0, scalars=100))))
    (c4,) = (each for each in findings(varied) if each.claim.key == "C4")
    assert c4.holds_at == ("ApproxDisKernelUCB with q̄=0.1, the others tuned",)


def test_a_claim_that_holds_nowhere_has_no_such_settings() -> None:
    found = findings(panel(*five(NKernelUCB=(9.0, 0))))
    assert found[0].verdict == "fails"
    assert found[0].holds_at == ()


def test_held_out_seeds_give_a_verdict_of_their_own() -> None:
    lucky = replace(SETTINGS["ApproxDisKernelUCB"], kernel=Gaussian(gamma=4.0))  # the best on seed 0 alone
    rows = [*five(), *(run_of(lucky, regret=r, scalars=200, seed=seed) for seed, r in enumerate((1.0, 100.0, 100.0)))]
    c4 = found_of("C4", *rows)
    assert (c4.verdict, c4.held_out) == ("holds", "fails")


def test_every_claim_states_its_criterion() -> None:
    assert [claim.key for claim in CLAIMS] == ["C1", "C2", "C3", "C4"]
    assert all(claim.criterion.endswith(".") for claim in CLAIMS)
