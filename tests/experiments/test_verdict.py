from __future__ import annotations

import re
from dataclasses import replace

import pytest

from laconic.experiments.results import Row
from laconic.experiments.verdict import verdicts
from tests.experiments.making import results, row

APPROX = row("ApproxDisKernelUCB", regret=100.0, scalars=600, dictionary=5, syncs=3)
EXACT = row("DisKernelUCB", regret=90.0, scalars=8000, syncs=4)
ALWAYS = row("OneKernelUCB", regret=80.0, scalars=10000, syncs=100)
NEVER = row("NKernelUCB", regret=500.0)
LINEAR = row("DisLinUCB", regret=700.0, scalars=200)


def _exact(text: str) -> str:
    return re.sub(r" ± 0(\.0+)?\b", "", text)


def said(*rows: Row, seeds: int = 2) -> dict[bool | None, str]:
    """What is said of rows that are the same on all seeds, without deviations, as they are 0."""
    found = verdicts(results(*(replace(each, seed=seed) for each in rows for seed in range(seeds))))
    return {held: _exact("\n".join(str(v) for v in found if v.holds is held)) for held in (True, False, None)}


def test_the_regime_that_the_algorithm_is_for_has_nothing_against_it() -> None:
    found = said(ALWAYS, EXACT, APPROX, NEVER, LINEAR)
    assert found[False] == ""
    assert "600 scalars against 8.00 k of DisKernelUCB (7.5%)" in found[True]
    assert "regret 100 against 90.0 of DisKernelUCB (1.11 ×)" in found[True]
    assert "NKernelUCB is far behind: regret 500, 5.00 ×" in found[True]
    assert "DisLinUCB is far behind: regret 700, 7.00 ×" in found[True]


def test_more_communication_than_raw_sharing_is_said_with_the_rule_and_its_numbers() -> None:
    costly = row("ApproxDisKernelUCB", regret=100.0, scalars=20_000, dictionary=30, syncs=4)
    found = said(EXACT, costly)
    assert "sent more than raw sharing: 20.0 k scalars against 8.00 k of DisKernelUCB (250%)" in found[False]
    # B·r² = 4·30², NT(d+1)/2 = 10·10·5/2
    assert "B=4 syncs" in found[False]
    assert "r=30" in found[False]
    assert "3.60 k against 250" in found[False]


def test_a_small_saving_is_not_called_a_fraction() -> None:
    found = said(EXACT, row("ApproxDisKernelUCB", regret=90.0, scalars=6000, dictionary=5, syncs=3))
    assert "saved little against raw sharing" in found[False]


def test_without_raw_sharing_in_the_run_its_cost_is_computed() -> None:
    # N·NT(d+1) = 10·100·5
    assert "against 5.00 k of sending every point to everyone (12%)" in said(APPROX)[True]


def test_regret_far_from_raw_sharing_is_said() -> None:
    found = said(row("DisKernelUCB", regret=40.0, scalars=8000), APPROX)
    assert "learnt less than raw sharing: regret 100 against 40.0 of DisKernelUCB (2.50 ×)" in found[False]


def test_when_clients_alone_do_as_well_sharing_brings_little() -> None:
    found = said(EXACT, APPROX, row("NKernelUCB", regret=110.0))
    assert "NKernelUCB is not far behind: regret 110, 1.10 ×" in found[False]
    assert "1.22 × that of DisKernelUCB: sharing brings little" in found[False]


def test_when_only_the_approximation_is_no_better_than_alone_it_lost_what_sharing_brings() -> None:
    found = said(EXACT, row("ApproxDisKernelUCB", regret=450.0, scalars=600, dictionary=1, syncs=1), NEVER)
    assert "5.56 × that of DisKernelUCB: what sharing brings, ApproxDisKernelUCB lost" in found[False]


def test_when_a_line_does_as_well_a_kernel_brings_little() -> None:
    assert "a kernel brings little" in said(EXACT, APPROX, row("DisLinUCB", regret=100.0, scalars=9))[False]


def test_who_is_ahead_is_not_called_behind() -> None:
    found = said(EXACT, APPROX, row("DisLinUCB", regret=10.0, scalars=9), row("NKernelUCB", regret=95.0))
    assert "DisLinUCB is ahead: regret 10.0, 0.10 ×" in found[False]
    assert "0.11 × that of DisKernelUCB: a kernel brings nothing" in found[False]
    assert "NKernelUCB is ahead" in found[False]
    assert "sharing brings little" in found[False]


def test_a_line_that_is_far_behind_raw_sharing_lacks_the_kernel() -> None:
    lossy = row("ApproxDisKernelUCB", regret=450.0, scalars=600, dictionary=1, syncs=1)
    assert "what a kernel brings, ApproxDisKernelUCB lost" in said(EXACT, lossy, LINEAR)[False]


def test_the_rule_is_not_quoted_where_it_points_the_other_way() -> None:
    found = said(EXACT, row("ApproxDisKernelUCB", regret=90.0, scalars=9000, dictionary=3, syncs=2))
    assert "B·r²" not in found[False]
    assert "to send the dictionary's points to everyone" in found[False]


@pytest.mark.parametrize("name", ["DisKernelUCB", "ApproxDisKernelUCB", "DisLinUCB"])
def test_an_algorithm_that_never_synced_is_named_with_its_threshold(name: str) -> None:
    assert f"{name} never synced: with D=5" in said(row(name, regret=10.0))[False]


def test_an_algorithm_that_never_syncs_on_purpose_is_not_blamed() -> None:
    assert verdicts(results(NEVER)) == []


def test_a_silent_approximation_is_not_praised_for_saving() -> None:
    found = said(EXACT, row("ApproxDisKernelUCB", regret=100.0))
    assert "saved communication" not in found[True]


def test_each_algorithm_is_judged_at_its_best_setting() -> None:
    worse = row("ApproxDisKernelUCB", regret=400.0, scalars=10, params={"D": 50.0}, dictionary=2, syncs=1)
    assert "regret 100 against 90.0" in said(EXACT, worse, APPROX)[True]


def test_zero_regret_divides_nothing() -> None:
    found = verdicts(results(row("DisKernelUCB", regret=0.0), row("ApproxDisKernelUCB", regret=0.0), NEVER))
    assert all("never synced" in str(verdict) for verdict in found)


def test_of_who_found_no_event_in_a_log_only_that_is_said() -> None:
    nan = float("nan")
    found = [str(each) for each in verdicts(results(APPROX, EXACT, row("DisLinUCB", regret=nan, scalars=1), NEVER))]
    assert [text for text in found if "DisLinUCB" in text] == [found[0]]
    assert found[0].startswith("DisLinUCB used no event of the log on 1 of 1 seeds, so nothing is said of it.")


def test_nothing_is_said_of_no_runs() -> None:
    assert verdicts(results()) == []


def test_laconic_ucb_is_judged_by_bytes_and_regret_against_raw_sharing() -> None:
    raw = row("DisKernelUCB", regret=90.0, bytes=64_000, syncs=4)
    found = said(raw, row("LaconicUCB", regret=99.0, bytes=640, syncs=4))
    assert "LaconicUCB said little and learnt well: 640 B against 64.0 kB of DisKernelUCB (1.0%)" in found[True]
    assert "regret 99.0 against 90.0 (1.10 ×)" in found[True]
    for short in (row("LaconicUCB", regret=300.0, bytes=640), row("LaconicUCB", regret=90.0, bytes=64_000)):
        assert "LaconicUCB falls short" in said(raw, short)[False]
    assert not any(said(row("LaconicUCB", regret=99.0, bytes=640, syncs=4)).values())


def test_one_seed_tells_nothing_of_chance() -> None:
    found = said(ALWAYS, EXACT, APPROX, NEVER, LINEAR, seeds=1)
    assert found[True] == found[False] == ""
    assert found[None].count("But one seed tells nothing of chance") == 4


def test_what_chance_may_have_made_is_too_close_to_tell() -> None:
    noisy = [row("ApproxDisKernelUCB", regret=regret, scalars=600, dictionary=5, syncs=3) for regret in (60.0, 200.0)]
    rows = [replace(each, seed=seed) for seed in (0, 1) for each in (EXACT, noisy[seed])]
    found = verdicts(results(*rows))
    doubtful = [str(each) for each in found if each.holds is None]
    assert len(doubtful) == 1
    assert "nearly as well" in doubtful[0]
    assert "on 2 seeds that is too close to tell (paired t interval, 95%)" in doubtful[0]


def test_who_is_ahead_by_chance_is_too_close_to_tell() -> None:
    approx = [row("ApproxDisKernelUCB", regret=regret, scalars=600, dictionary=5, syncs=3) for regret in (100, 104, 98)]
    alone = [row("NKernelUCB", regret=regret) for regret in (90, 112, 95)]
    rows = [replace(each, seed=seed) for seed in range(3) for each in (EXACT, approx[seed], alone[seed])]
    (said,) = [each for each in verdicts(results(*rows)) if str(each).startswith("NKernelUCB")]
    assert "is ahead" in str(said)
    assert said.holds is None


def test_runs_that_have_no_regret_divide_nothing() -> None:
    none = [
        replace(row(name, regret=float("nan"), bytes=5), seed=seed)
        for name in ("LaconicUCB", "DisKernelUCB")
        for seed in (0, 1)
    ]
    assert all("used no event of the log on 2 of 2 seeds" in str(each) for each in verdicts(results(*none)))
    assert results(*none).groups[0].mean("regret") is None
    assert "–" in results(*none).table().text()


def test_who_learns_no_more_than_clients_alone_is_not_near_raw_sharing() -> None:
    alone = row("NKernelUCB", regret=110.0)
    found = said(EXACT, replace(APPROX, regret=104.0), alone)
    assert "nearly as well" not in found[True]
    assert "learnt less than raw sharing: regret 104 against 90.0 of DisKernelUCB (1.16 ×)" in found[False]
    assert "and 110 of NKernelUCB, which shares nothing" in found[False]
    assert "nearly as well" in said(EXACT, replace(APPROX, regret=96.0), alone)[True]
    raw = row("DisKernelUCB", regret=90.0, bytes=64_000, syncs=4)
    lean = row("LaconicUCB", regret=104.0, bytes=640, syncs=4)
    short = said(raw, lean, alone)[False]
    assert "LaconicUCB falls short" in short
    assert "(1.16 ×) and 110 of NKernelUCB, which shares nothing" in short


def test_where_sharing_brings_nothing_near_is_near() -> None:
    assert "nearly as well" in said(EXACT, APPROX, row("NKernelUCB", regret=80.0))[True]
