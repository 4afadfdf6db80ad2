import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from laconic.datasets import triples
from laconic.datasets.cache import Source
from laconic.datasets.layout import sniff_layout
from laconic.datasets.triples import Triples, careful_blocks, fast_blocks, ratings_source, read_triples
from laconic.errors import ProblemError
from tests.datasets.samples import REAL, gzipped, needs_real_data, some_ratings, written, zipped

THREE = [("ann", "up", 4.0), ("bob", "heat", 1.5), ("ann", "heat", 3.0)]


def read(path: Path, *, columns: str | None = None) -> Triples:
    return read_triples(ratings_source(path), columns=columns)


def assert_three(found: Triples) -> None:
    assert found.users.tolist() == [0, 1, 0]
    assert found.items.tolist() == [0, 1, 1]
    assert found.ratings.tolist() == [4.0, 1.5, 3.0]
    assert (found.n_users, found.n_items, len(found)) == (2, 2, 3)


@pytest.mark.parametrize("separator", [",", "\t", "::", ";", "|", " ", ", "])
@pytest.mark.parametrize("further", [[], ["978300760"], ["978300760", "x"]])
def test_without_a_header_the_first_three_columns_count(tmp_path: Path, separator: str, further: list[str]) -> None:
    lines = [separator.join([user, item, str(rating), *further]) for user, item, rating in THREE]
    assert_three(read(written(tmp_path / "u.data", "\n".join(lines))))


@pytest.mark.parametrize(
    "header",
    [
        "userId,movieId,rating",
        "user_id,business_id,stars",
        "reviewerID,asin,overall",
        '"User-ID","ISBN","Book-Rating"',
        "user_id:token,item_id:token,rating:float",
        " User , Item , Score ",
    ],
)
def test_columns_are_known_by_common_names(tmp_path: Path, header: str) -> None:
    lines = [header, *(f"{user},{item},{rating}" for user, item, rating in THREE)]
    assert_three(read(written(tmp_path / "r.csv", "\n".join(lines))))


def test_named_columns_may_stand_anywhere(tmp_path: Path) -> None:
    lines = ["timestamp\trating\ttitle\tuser", *(f"7\t{rating}\t{item}\t{user}" for user, item, rating in THREE)]
    assert_three(read(written(tmp_path / "r.tsv", "\n".join(lines))))


def test_columns_can_be_named_by_the_user(tmp_path: Path) -> None:
    lines = ["who,what,when,howmuch", *(f"{user},{item},7,{rating}" for user, item, rating in THREE)]
    path = written(tmp_path / "r.csv", "\n".join(lines))
    assert_three(read(path, columns="who,what,howmuch"))
    assert_three(read(path, columns="1,2,4"))
    with pytest.raises(ProblemError, match=r"r\.csv:1 has no column 'rating' among who, what, when, howmuch"):
        read(path, columns="who,what,rating")
    with pytest.raises(ProblemError, match="columns must name user, item and rating"):
        read(path, columns="who,what")


def test_a_word_that_could_be_a_header_is_data_where_the_third_field_is_a_number(tmp_path: Path) -> None:
    found = read(written(tmp_path / "r.csv", "user,book,4\nann,item,2\n"))
    assert found.ratings.tolist() == [4.0, 2.0]


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffann,up,4\nbob,heat,1.5\nann,heat,3\n",
        "ann,up,4\r\nbob,heat,1.5\r\nann,heat,3\r\n",
        "\n\nann,up,4\n\nbob,heat,1.5\n   \nann,heat,3\n\n",
        "# made by hand\n% so\nann,up,4\nbob,heat,1.5\nann,heat,3",
        'ann,"up",4\n"bob","heat","1.5"\nann,heat,3\n',
        "ann,up,4,1\nbob,heat,1.5\nann,heat,3,1,2\n",
        "ann , up,+4.0\nbob,heat , 15e-1\nann,heat,3.\n",
    ],
    ids=["bom", "crlf", "blank lines", "comments", "quotes", "ragged further columns", "spaces and notations"],
)
def test_the_usual_untidiness_is_read(tmp_path: Path, text: str) -> None:
    assert_three(read(written(tmp_path / "r.csv", text)))


def test_gzip_and_zip_hold_the_same_ratings(tmp_path: Path) -> None:
    text = some_ratings(header="userId,movieId,rating,timestamp").encode()
    plain = read(written(tmp_path / "ratings.csv", text))
    for path in (
        written(tmp_path / "ratings.csv.gz", gzipped(text)),
        written(tmp_path / "ml.zip", zipped({"ml/README.txt": b"hello", "ml/ratings.csv": text})),
        written(tmp_path / "one.zip", zipped({"anything.txt": text})),
    ):
        packed = read(path)
        np.testing.assert_array_equal(packed.users, plain.users)
        np.testing.assert_array_equal(packed.ratings, plain.ratings)


def test_a_zip_with_many_files_asks_which(tmp_path: Path) -> None:
    path = written(tmp_path / "many.zip", zipped({"a.csv": b"1,2,3\n", "b.csv": b"1,2,3\n"}))
    with pytest.raises(ProblemError, match=r"many\.zip holds 2 files; try unpacking"):
        read(path)


def test_json_lines_are_read_by_common_names(tmp_path: Path) -> None:
    reviews = [
        {"review_id": "x", "user_id": user, "stars": rating, "text": "said {", "business_id": item}
        for user, item, rating in THREE
    ]
    lines = b"\n".join(msgspec.json.encode(review) for review in reviews)
    assert_three(read(written(tmp_path / "yelp_academic_dataset_review.json", lines)))
    assert_three(read(written(tmp_path / "r.json.gz", gzipped(b"\n" + lines + b"\n\n"))))


def test_json_ids_may_be_numbers(tmp_path: Path) -> None:
    lines = '{"user": 1, "item": 5, "rating": 4}\n{"user": 2, "item": 6, "rating": 1.5}\n{"user":1,"item":6,"rating":3}'
    assert_three(read(written(tmp_path / "r.jsonl", lines)))


@pytest.mark.parametrize("ids", [["ann", "bob", "ann"], [7, 9, 7]], ids=["words", "numbers"])
def test_parquet_is_read_by_common_names(tmp_path: Path, ids: list[object]) -> None:
    table = pa.table({"extra": [1, 2, 3], "rating": [4, 1.5, 3], "itemId": ["up", "heat", "heat"], "userId": ids})
    parquet.write_table(table, tmp_path / "r.parquet")
    assert_three(read(tmp_path / "r.parquet"))
    coded = table.set_column(3, "userId", table["userId"].dictionary_encode())
    parquet.write_table(coded, tmp_path / "coded.parquet")
    assert_three(read(tmp_path / "coded.parquet"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "r.csv is empty"),
        ("\n \n", "r.csv is empty"),
        ("userId,movieId,rating\n", "r.csv holds no rating"),
        ("1,2\n", "r.csv:1: fewer than three fields in '1,2'"),
        ("hello\n", "r.csv:1: fewer than three fields"),
        ("1,2,3\n4,5\n", "r.csv:2: 2 fields separated by ',', too few"),
        ("1,2,3\n4,5,bad\n", "r.csv:2: rating 'bad' is not a number"),
        ("1,2,bad\n4,5,3\n", "r.csv:1: rating 'bad' is not a number"),
        ("1,2,3\n\n4,5,\n", "r.csv:3: rating '' is not a number"),
        ("1,2,3\n4,5,NaN\n", "r.csv:2: rating 'NaN' is not a number"),
        ("1,2,3\n4,5,inf\n", "r.csv:2: rating 'inf' is not a number"),
        ("1,2,3\n4,5,1_0\n", "r.csv:2: rating '1_0' is not a number"),
        ("1,2,3\n,5,3\n", "r.csv:2: no user"),
        ("1,2,3\n4, ,3\n", "r.csv:2: no item"),
        ("1::2::3\n4::5::x\n", "r.csv:2: rating 'x' is not a number"),
        ("1::2::3::7\n4:5:3:7\n", "r.csv:2: 1 fields separated by '::', too few"),
        ("userId,movieId\n1,2\n", "r.csv:1: fewer than three fields"),
        ("userId,movieId,timestamp\n1,2,3\n", "r.csv:1 has no column for rating among userId, movieId, timestamp"),
        ("a,b,c\n1,2,3\n", "r.csv:1 has no column for user and item and rating"),
        ("%PDF-1.4\n\x00\x01", "r.csv is not text"),
        ('{"user": 1, "item": 2}\n', "r.csv:1 has no column for rating"),
        ('{"user": 1, "item": 2, "rating": 3}\n{"user": 1, "item": 2, "rating": "x"}\n', "r.csv:2: Expected `float`"),
        ('{"user": 1, "item": 2, "rating": 3}\n\n{"user": 1, "item": 2}\n', "r.csv:3: Object missing required field"),
        ('{"user": 1, "item": 2, "rating": 3}\n{"user": 1, "ite', "r.csv:2: Input data was truncated"),
        ('{"user": 1, "ite', "r.csv:1: not a line of JSON"),
        ('[{"user": 1}]', "r.csv:1: fewer than three fields"),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_line(tmp_path: Path, text: str, says: str) -> None:
    path = written(tmp_path / "r.csv", text)
    with pytest.raises(ProblemError) as refused:
        read(path)
    assert str(refused.value).startswith(f"{tmp_path}/{says}")
    assert "\n" not in str(refused.value)


def test_a_bad_line_far_into_a_packed_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triples, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(triples, "BLOCK_ROWS", 100)
    lines = some_ratings(users=60).splitlines()
    lines[700] = "u1,i1,five"
    with pytest.raises(ProblemError, match=r"r\.csv\.gz:701: rating 'five' is not a number"):
        read(written(tmp_path / "r.csv.gz", gzipped("\n".join(lines).encode())))


def test_utf_16_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="is text in UTF-16; try saving it as UTF-8"):
        read(written(tmp_path / "r.csv", "1,2,3\n".encode("utf-16")))


def test_bytes_that_are_no_text_in_an_ignored_column_do_no_harm(tmp_path: Path) -> None:
    assert_three(read(written(tmp_path / "r.csv", b"ann,up,4,caf\xe9\nbob,heat,1.5,\xff\nann,heat,3,x\n")))


def test_a_parquet_file_says_which_row_lacks_what(tmp_path: Path) -> None:
    columns: dict[str, list[object]] = {"user": [1, 2], "item": [1, 2], "rating": [3.0, None]}
    parquet.write_table(pa.table(columns), tmp_path / "null.parquet")
    with pytest.raises(ProblemError, match=r"null\.parquet: row 2 has no rating"):
        read(tmp_path / "null.parquet")
    parquet.write_table(pa.table(columns | {"rating": [3.0, float("nan")]}), tmp_path / "nan.parquet")
    with pytest.raises(ProblemError, match=r"nan\.parquet: rating 2 is nan"):
        read(tmp_path / "nan.parquet")
    parquet.write_table(pa.table(columns | {"rating": ["good", "bad"]}), tmp_path / "words.parquet")
    with pytest.raises(ProblemError, match=r"words\.parquet: the rating column holds string, not numbers"):
        read(tmp_path / "words.parquet")
    parquet.write_table(pa.table({"user": [1], "item": [2]}), tmp_path / "short.parquet")
    with pytest.raises(ProblemError, match=r"short\.parquet has no column for rating among user, item"):
        read(tmp_path / "short.parquet")


def test_a_parquet_file_that_was_cut_short_is_named(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"user": [1], "item": [2], "rating": [3.0]}), tmp_path / "r.parquet")
    whole = (tmp_path / "r.parquet").read_bytes()
    with pytest.raises(ProblemError, match=r"cut\.parquet is a damaged Parquet file"):
        read(written(tmp_path / "cut.parquet", whole[:-20]))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"there is no file .*nothing\.csv"):
        read(tmp_path / "nothing.csv")


WORDS = st.text(string.ascii_letters + string.digits + "-._é", min_size=1, max_size=6)
NUMBERS = st.floats(-1e6, 1e6, allow_nan=False).map(repr)
BROKEN = st.sampled_from(["", "nan", "x", "1,2,3,4,5", "a,b", '"', "1,2,x", ",,1", "1;2;3"])
LINES = st.lists(st.one_of(st.tuples(WORDS, WORDS, NUMBERS).map(",".join), BROKEN), min_size=1, max_size=30)


def outcome(blocks: Callable[..., Any], source: Source) -> object:
    layout = sniff_layout(source.path.read_bytes(), label=str(source))
    try:
        found = triples._gather(blocks(source, layout), source=source, style=",")
    except triples._LookCloserError:
        return None
    return found.users.tolist(), found.items.tolist(), found.ratings.tolist()


@given(lines=LINES)
def test_what_the_fast_reader_accepts_the_careful_one_reads_alike(
    lines: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = written(tmp_path_factory.mktemp("lines") / "r.csv", "u,i,1\n" + "\n".join(lines))
    fast = outcome(fast_blocks, Source(path))
    if fast is not None:
        assert fast == outcome(careful_blocks, Source(path))


@given(rows=st.lists(st.tuples(WORDS, WORDS, st.integers(1, 5)), min_size=1, max_size=30))
def test_reading_is_the_inverse_of_writing(
    rows: list[tuple[str, str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = written(tmp_path_factory.mktemp("rows") / "r.dat", "".join(f"{u}::{i}::{r}\n" for u, i, r in rows))
    found = read(path)
    users = list(dict.fromkeys(user for user, _, _ in rows))
    items = list(dict.fromkeys(item for _, item, _ in rows))
    assert [(users[u], items[i], r) for u, i, r in zip(found.users, found.items, found.ratings, strict=True)] == rows


@needs_real_data
def test_movielens_1m_and_the_yelp_subset_have_their_published_sizes() -> None:
    assert REAL is not None
    movies = read(REAL / "ml-1m" / "ratings.dat.gz")
    assert (len(movies), movies.n_users, movies.n_items) == (1_000_209, 6_040, 3_706)
    yelp = read(REAL / "yelp" / "user_business.dat.gz")
    assert (len(yelp), yelp.n_users, yelp.n_items) == (198_397, 16_239, 14_284)
