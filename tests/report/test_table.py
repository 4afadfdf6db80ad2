from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic.report.table import Table, amount, count, number, spread, wrapped


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


WIDE = Table(
    headers=("algorithm", "regret", "scalars", "bytes", "messages"),
    rows=(("ApproxDisKernelUCB", "98.2 ± 16.7", "586 k", "4.77 MB", "1,339"), ("A", "1", "2", "3", "4")),
    ranks=(0, 0, 1, 0, 2),
)


def test_columns_are_left_out_by_rank_until_the_table_fits_and_named_below_it() -> None:
    assert WIDE.text(width=60).splitlines()[0].split() == list(WIDE.headers)
    lines = WIDE.text(width=55).splitlines()
    assert lines[0].split() == ["algorithm", "regret", "scalars", "bytes"]
    assert lines[-1] == "not shown, for want of room in 55 columns: messages"
    assert WIDE.text(width=42).splitlines()[0].split() == ["algorithm", "regret", "bytes"]


def test_columns_of_rank_0_go_on_in_a_table_below() -> None:
    first, second = WIDE.fitted(33)
    assert first.headers == ("algorithm", "regret")
    assert second.headers == ("algorithm", "bytes")
    assert (first.left_out, second.left_out) == ((), ("messages", "scalars"))


def test_a_long_label_goes_on_below_before_a_column_is_left_out() -> None:
    long = Table(
        ("setting", "regret", "bytes"), rows=(("A wire=int8 D=2 qbar=0.3", "98.2", "4.77 MB"),), ranks=(0, 0, 1)
    )
    assert long.text(width=32).splitlines()[2:] == ["A wire=int8 D=2    98.2  4.77 MB", "qbar=0.3"]


WORDS = st.text(alphabet="abcdef0123", min_size=1, max_size=14)
LABELS = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)


def test_the_first_column_makes_room_for_the_widest_of_the_others() -> None:
    rows = (("0", "0", "0" * 14), ("0", "0" * 8, "0"), ("0000 0000 00000", "0", "0"))
    assert max(map(len, Table(("0", "0", "d"), rows=rows).text(width=30).splitlines())) <= 30


@given(st.data(), st.integers(1, 6), st.integers(1, 4), st.integers(24, 90))
def test_no_line_is_too_long_no_word_is_split_and_no_cell_is_lost(
    data: st.DataObject, columns: int, rows: int, width: int
) -> None:
    line = st.tuples(LABELS, *([WORDS] * columns))
    cells = [data.draw(line) for _ in range(rows)]
    names = data.draw(st.lists(WORDS, min_size=columns, max_size=columns, unique=True))
    headers = (data.draw(LABELS), *names)
    ranks = (0, *data.draw(st.tuples(*([st.integers(0, 3)] * columns))))
    fitted = (whole := Table(headers, rows=tuple(cells), ranks=ranks)).fitted(width)
    # A label's longest word and a number may be wider than the page together.
    assert all(len(each) <= max(width, 30) for each in whole.text(width=width).splitlines())
    shown = {header for table in fitted for header in table.headers[1:]} | set(fitted[-1].left_out)
    assert shown == set(headers[1:])
    for table in fitted:
        assert [" ".join(each.split()) for each in table._column(0)] == [headers[0], *(each[0] for each in cells)]
    # The label may be called like another column.
    lowest = [rank for header, rank in zip(names, ranks[1:], strict=True) if header in fitted[-1].left_out]
    assert 0 not in lowest


def test_a_caption_goes_on_below_and_words_stay_whole() -> None:
    table = Table(("a", "b"), rows=(("1", "2"),), caption="one caption of several words")
    assert table.text(width=12).splitlines()[:3] == ["one caption", "of several", "words"]
    assert wrapped("ApproxDisKernelUCB wire", width=5) == "ApproxDisKernelUCB\nwire"
