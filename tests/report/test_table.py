from __future__ import annotations

import pytest

from laconic.report.table import Table, amount, count, number, spread


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (0.05231, "0.0523"),
        (3.14159, "3.14"),
        (90.16, "90.2"),
        (568.4, "568"),
        (1047.2, "1,047"),
    ],
)
def test_numbers_show_the_digits_that_matter(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (6.0, "6"), (6.33, "6.3"), (10000.0, "10,000"), (2333.3, "2,333")]
)
def test_counts_are_whole_unless_they_are_means(value: float | None, text: str) -> None:
    assert count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (7_820_000, "7.82 MB"),
        (999_999, "1.00 MB"),
        (21e9, "21.0 GB"),
    ],
)
def test_amounts_are_short(value: float | None, text: str) -> None:
    assert amount(value, unit="B") == text


def test_a_spread_has_as_many_digits_as_its_mean() -> None:
    assert spread(90.16, 4.123) == "90.2 ± 4.1"
    assert spread(568.4, 0.5) == "568 ± 0"
    assert spread(5.77, 0.854) == "5.77 ± 0.85"
    assert spread(90.16, None) == "90.2"
    assert spread(None, None) == "–"


def test_columns_line_up_under_their_headers() -> None:
    lines = Table(headers=("name", "n"), rows=(("a", "1"), ("longer", "1,000")), caption="what").text().splitlines()
    assert lines == ["what", "name        n", "─────────────", "a           1", "longer  1,000"]


def test_html_has_a_row_for_each_row() -> None:
    html = Table(headers=("name", "n"), rows=(("a", "1"), ("b & c", "2"))).html()
    assert html.count("<tr>") == 3
    assert "b &amp; c" in html
