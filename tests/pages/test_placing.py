"""Where our own algorithm stands beside those of the paper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from laconic import AskServer
from laconic.experiments.conduct import Outcome
from laconic.pages.placing import standing
from laconic.pages.summary import summary
from laconic.papers.claims import findings
from tests.pages.making import five, laconic, panel, random_arms, runs_of


def test_it_is_non_dominated_when_nobody_loses_no_more_and_sends_no_more() -> None:
    found = standing(panel(*five(), *laconic(regret=11.5, scalars=10)))
    assert found is not None
    assert found.verdict == "non-dominated"
    assert "with less regret: OneKernelUCB (regret 10.0 ± 0.0 for 8.00 kB), DisKernelUCB" in found.text
    assert "with fewer bytes: NKernelUCB (regret 30.0 ± 0.0 for no bytes)" in found.text


def test_it_is_dominated_by_all_that_are_no_worse_in_both_with_their_numbers() -> None:
    found = standing(panel(*five(), *laconic(regret=12.0, scalars=300)))
    assert found is not None
    assert found.verdict == "dominated"
    assert found.text == (
        "LaconicUCB (regret 12.0 ± 0.0 for 2.40 kB) is dominated by ApproxDisKernelUCB (regret 12.0 ± 0.0 for 1.60 kB)."
    )


def test_those_that_need_a_round_trip_a_decision_do_not_count() -> None:
    asking = runs_of(AskServer(), regret=1.0, scalars=1)
    found = standing(panel(*five(), *asking, *laconic(regret=11.5, scalars=10)))
    assert found is not None
    assert found.verdict == "non-dominated"
    assert "AskServer" not in found.text


def test_it_is_too_close_to_tell_where_the_seeds_disagree() -> None:
    found = standing(panel(*five(), *laconic(regret=12.5, scalars=300, apart=2.0)))
    assert found is not None
    assert found.verdict == "too close to tell"
    assert "dominated by ApproxDisKernelUCB (regret 12.0 ± 0.0 for 1.60 kB)" in found.text


def test_more_bytes_than_everybody_and_less_regret_are_not_dominated_however_few_the_bytes_differ() -> None:
    found = standing(panel(*five(), *laconic(regret=9.0, scalars=1001)))
    assert found is not None
    assert found.verdict == "non-dominated"


def test_random_arms_are_no_rival_and_a_rehearsal_judges_nothing() -> None:
    rows = [*five(), *laconic(regret=11.5, scalars=10), *random_arms(regret=50.0)]
    found = standing(panel(*rows, rehearsal=True))
    assert found is not None
    assert found.verdict == "not judged"
    assert found.text.startswith("LaconicUCB is not judged: regret 11.5 ± 0.0 for 80 B")
    assert "Random" not in found.text


def test_nothing_is_said_where_it_did_not_run_or_ran_alone() -> None:
    assert standing(panel(*five())) is None
    assert standing(panel(*laconic(regret=1.0, scalars=1))) is None


@pytest.mark.parametrize(("regret", "scalars"), [(1.0, 1), (99.0, 10**6)])
def test_the_papers_claims_are_judged_on_the_papers_five(regret: float, scalars: int) -> None:
    rows = five()
    without, with_ours = findings(panel(*rows)), findings(panel(*rows, *laconic(regret=regret, scalars=scalars)))
    assert [(each.verdict, each.numbers) for each in without] == [(each.verdict, each.numbers) for each in with_ours]


def test_the_summary_has_bytes_and_a_line_a_problem(outcome: Outcome) -> None:
    text = summary(outcome, with_claims=True)
    assert "Bytes sent at the tuned setting" in text
    assert "\n- cosine: LaconicUCB " in text


def test_the_summary_lists_what_was_set_aside() -> None:
    silent = panel(*five(DisKernelUCB=(11.0, 0)))
    text = summary(Outcome((silent,)), with_claims=True)
    assert "Set aside, as no evidence:\n\n- cosine, never synced on any seed: DisKernelUCB γ=1, α=1, λ=1, D=20" in text


def test_the_report_draws_regret_against_bytes(written: Path) -> None:
    page = (written / "report.html").read_text(encoding="utf-8")
    assert 'id="frontier"' in page
    assert "Bytes sent at these settings" in page
    assert '"title":"bytes sent (log)"' in page
    assert (written / "figures" / "frontier.svg").exists()
    assert (written / "figures" / "frontier.png").exists()
    assert json.loads((written / "claims.json").read_text(encoding="utf-8"))
