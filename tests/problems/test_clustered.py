from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laconic.datasets import MissingData
from laconic.datasets.known import DATASETS, Part
from laconic.errors import InputError, ProblemError
from laconic.experiments.grid import grid
from laconic.problems import check_round
from laconic.problems.clustered import Clustered, Magic, Mushroom, Shuttle
from tests.datasets.samples import REAL, compressed, gzipped, needs_real_data, sha256, written, zipped

# Four heaps of points, each mostly of one class.
CORNERS = [(0.0, 0.0), (10.0, 0.0), (0.0, 10.0), (10.0, 10.0)]
HEAPS = "x,y,kind\n" + "".join(
    f"{x + n % 3 / 10},{y + n % 5 / 10},{'good' if n % 4 < corner else 'bad'}\n"
    for corner, (x, y) in enumerate(CORNERS)
    for n in range(40)
)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACONIC_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LACONIC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "data"


@pytest.fixture
def heaps(tmp_path: Path) -> str:
    return str(written(tmp_path / "heaps.csv", HEAPS))


def test_centroids_are_the_arms_and_shares_of_a_class_the_means(heaps: str) -> None:
    problem = Clustered(heaps, "kind", positive="good", clusters=4, standardise=False, scale=False)
    instance = problem.instance(seed=0, clients=3, rounds=2)
    met = check_round(instance.round(0), index=0, clients=3, dim=2)
    order = np.lexsort((met.arms[0][:, 0], met.arms[0][:, 1]))
    np.testing.assert_allclose(met.arms[0][order], [(x + 0.0975, y + 0.2) for x, y in CORNERS], atol=1e-9)
    np.testing.assert_allclose(met.means[0][order], [0.0, 0.25, 0.5, 0.75])
    assert (met.arms == met.arms[0]).all()


def test_rewards_are_bernoulli_with_one_uniform_a_client(heaps: str) -> None:
    instance = Clustered(heaps, "kind", positive="good", clusters=4).instance(seed=3, clients=50, rounds=60)
    rewards = np.concatenate([instance.round(index).rewards for index in range(60)])
    means = instance.round(0).means[0]
    assert set(np.unique(rewards)) == {0.0, 1.0}
    np.testing.assert_allclose(rewards.mean(axis=0), means, atol=0.04)
    order = np.argsort(means)  # where a better arm fails, a worse one fails too
    assert (np.diff(rewards[:, order], axis=1) >= 0).all()


def test_a_round_is_the_same_whenever_it_is_asked_for(heaps: str) -> None:
    first = Clustered(heaps, "kind").instance(seed=1, clients=4, rounds=9)
    later = first.round(5), first.round(2), first.round(5)
    np.testing.assert_array_equal(later[0].rewards, later[2].rewards)
    other = Clustered(heaps, "kind").instance(seed=2, clients=4, rounds=9)
    assert any((first.round(n).rewards != other.round(n).rewards).any() for n in range(9))


def test_centroids_are_divided_by_the_largest_norm(heaps: str) -> None:
    arms = Clustered(heaps, "kind", clusters=4).instance(seed=0, clients=1, rounds=1).round(0).arms[0]
    assert np.linalg.norm(arms, axis=1).max() == pytest.approx(1.0)


def test_numbers_are_standardised_and_categories_are_not(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "a,10,1\nb,30,0\n" * 5)
    problem = Clustered(str(path), 3, clusters=2, scale=False)
    arms = problem.instance(seed=0, clients=1, rounds=1).round(0).arms[0]
    assert sorted(arms.tolist()) == [[0.0, 1.0, 1.0], [1.0, 0.0, -1.0]]
    plain = Clustered(str(path), 3, clusters=2, scale=False, standardise=False)
    assert sorted(plain.instance(seed=0, clients=1, rounds=1).round(0).arms[0].tolist()) == [[0, 1, 30], [1, 0, 10]]


def test_codes_are_categories_where_that_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "code,size,y\n" + "7,1,0\n8,2,1\n9,1,0\n" * 5)
    assert Clustered(str(path), "y", categorical="code").instance(seed=0, clients=1, rounds=1).dim == 4
    assert Clustered(str(path), "y", columns="size").instance(seed=0, clients=1, rounds=1).dim == 1
    assert Clustered(str(path), "y", columns="size,code").instance(seed=0, clients=1, rounds=1).dim == 2


def test_the_most_frequent_class_pays_unless_another_is_named(heaps: str) -> None:
    by_default = Clustered(heaps, "kind", clusters=4).instance(seed=0, clients=1, rounds=1)
    bad = Clustered(heaps, "kind", clusters=4, positive="bad").instance(seed=0, clients=1, rounds=1)
    np.testing.assert_array_equal(by_default.round(0).means, bad.round(0).means)


def test_a_file_without_a_header_goes_by_numbers(tmp_path: Path) -> None:
    path = written(tmp_path / "t.data.gz", gzipped(HEAPS.partition("\n")[2].encode()))
    numbered = Clustered(str(path), 3, positive="good", clusters=4)
    named = Clustered(str(written(tmp_path / "heaps.csv", HEAPS)), "kind", positive="good", clusters=4)
    one, other = (problem.instance(seed=0, clients=1, rounds=1).round(0) for problem in (numbered, named))
    np.testing.assert_array_equal(one.arms, other.arms)
    assert "160 rows of" in numbered.notes[0]


def test_a_header_is_told_from_the_first_two_lines(tmp_path: Path) -> None:
    by_number = Clustered(str(written(tmp_path / "t.csv", HEAPS)), 3, clusters=4)
    assert "160 rows of" in by_number.notes[0]
    words = written(tmp_path / "words.csv", "a,b,c\n" + "d,e,f\n" * 3)
    assert "4 rows of" in Clustered(str(words), 3).notes[0]
    assert Clustered(str(words), 1, header=False).sha256
    with pytest.raises(ProblemError, match="is 'f' everywhere"):
        Clustered(str(words), 3, header=True).instance(seed=0, clients=1, rounds=1)


def test_fewer_different_rows_make_fewer_clusters_and_a_note(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "a,b,y\n" + "1,2,0\n3,4,1\n5,6,1\n" * 9)
    problem = Clustered(str(path), "y")
    assert problem.instance(seed=0, clients=1, rounds=1).round(0).arms.shape == (1, 3, 2)
    assert "3 clusters instead of 20, as only 3 rows differ" in problem.notes
    with pytest.raises(ProblemError, match=r"t\.csv: clusters=4, but only 3 rows differ; try clusters=3"):
        replace(problem, clusters=4).instance(seed=0, clients=1, rounds=1)


def test_the_hash_is_that_of_the_content_however_it_is_packed(tmp_path: Path) -> None:
    plain = Clustered(str(written(tmp_path / "a.csv", HEAPS)), "kind", clusters=4)
    packed = Clustered(str(written(tmp_path / "b.csv.gz", gzipped(HEAPS.encode()))), "kind", clusters=4)
    in_zip = Clustered(str(written(tmp_path / "c.zip", zipped({"x.csv": HEAPS.encode()}))), "kind", clusters=4)
    assert plain.sha256 == packed.sha256 == in_zip.sha256 == sha256(HEAPS.encode())


def test_a_changed_file_is_a_changed_problem(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "a,b,y\n1,2,0\n3,4,1\n")
    problem = Clustered(str(path), "y")
    before = problem.instance(seed=0, clients=1, rounds=1).round(0).arms.shape
    written(path, "a,b,y\n1,2,0\n3,4,1\n5,7,1\n")
    assert before == (1, 2, 2)
    assert problem.instance(seed=0, clients=1, rounds=1).round(0).arms.shape == (1, 3, 2)


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        (HEAPS, {"target": "label"}, r"t\.csv has no column 'label'"),
        (HEAPS, {"target": "kind", "positive": "best"}, r"never 'best'; try positive= one of bad, good"),
        (HEAPS, {"target": "kind", "columns": "x,z"}, "has no column 'z'; try one of x, y, kind"),
        (HEAPS, {"target": "kind", "columns": "x,kind"}, "has the target 'kind' among the features"),
        (HEAPS + "1,2\n", {"target": "kind"}, r"t\.csv:162: 2 fields separated by ',', where 3 are expected"),
        (HEAPS + "1,nan,bad\n", {"target": "kind"}, r"t\.csv:162: column y is 'nan', not a number"),
        ("a,y\n1,1\n2,1\n", {"target": "y"}, "column y is '1' everywhere"),
        ("a,y\n1,0\n1,1\n", {"target": "y"}, "all rows have the same features"),
        ("a,y\n", {"target": "y"}, r"t\.csv holds no row"),
        ("", {"target": "y"}, r"t\.csv is empty"),
    ],
)
def test_bad_tables_and_options_are_refused(tmp_path: Path, text: str, options: dict[str, Any], says: str) -> None:
    problem = Clustered(str(written(tmp_path / "t.csv", text)), **options)
    with pytest.raises(ProblemError, match=says):
        problem.instance(seed=0, clients=1, rounds=1)


@pytest.mark.parametrize(
    "options", [{"clusters": 1}, {"clusters": 2.5}, {"kmeans_runs": 0}, {"scale": "yes"}, {"clusters": grid(2, 3)}]
)
def test_options_that_make_no_sense_are_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Magic(**options)


def test_a_data_set_that_is_not_here_says_how_to_get_it() -> None:
    for problem in (Magic(), Mushroom(), Shuttle()):
        with pytest.raises(MissingData, match="try: laconic data fetch"):
            problem.instance(seed=0, clients=1, rounds=1)


SHUTTLE_ROWS = b"".join(b"%d %d 77 0 28 0 27 48 %d %d\n" % (n % 9, n, n % 7, n % 3 + 1) for n in range(60))


@pytest.fixture
def small_shuttle(monkeypatch: pytest.MonkeyPatch) -> None:
    part = Part(("shuttle.trn",), sha256(SHUTTLE_ROWS)), Part(("shuttle.tst",), sha256(SHUTTLE_ROWS))
    monkeypatch.setitem(DATASETS, "shuttle", replace(DATASETS["shuttle"], parts=part))


@pytest.mark.usefixtures("small_shuttle")
def test_shuttle_is_read_plain_packed_and_from_its_archive(data: Path) -> None:
    packed = compressed(SHUTTLE_ROWS)
    written(data / "statlog+shuttle.zip", zipped({"shuttle.trn.Z": packed, "shuttle.tst": SHUTTLE_ROWS}))
    zipped_one = Shuttle().instance(seed=0, clients=1, rounds=1).round(0).arms
    written(data / "shuttle.trn.Z", packed)
    written(data / "shuttle.tst", SHUTTLE_ROWS)
    np.testing.assert_array_equal(Shuttle().instance(seed=0, clients=1, rounds=1).round(0).arms, zipped_one)
    assert Shuttle().notes[0].startswith("120 rows of")
    assert Shuttle(positive=2).instance(seed=0, clients=1, rounds=1).dim == 9


@pytest.mark.usefixtures("small_shuttle")
def test_a_file_that_lost_its_last_lines_is_refused(data: Path) -> None:
    written(data / "shuttle.trn", SHUTTLE_ROWS)
    written(data / "shuttle.tst", SHUTTLE_ROWS.rpartition(b"\n")[0].rpartition(b"\n")[0] + b"\n")
    with pytest.raises(ProblemError, match=r"shuttle\.tst is not the publisher's shuttle\.tst: .*laconic data fetch"):
        Shuttle().instance(seed=0, clients=1, rounds=1)
    written(data / "shuttle.tst", SHUTTLE_ROWS + b"1 2 3\n")
    with pytest.raises(ProblemError, match=r"shuttle\.tst:61: 3 fields separated by blanks, where 10 are expected"):
        Shuttle().instance(seed=0, clients=1, rounds=1)


@needs_real_data
@pytest.mark.parametrize(
    ("problem", "dim", "zeros", "ones", "extremes"),
    [
        (Magic(), 10, 1, 0, (0.0, 0.954)),
        (Mushroom(), 117, 7, 9, (0.0, 1.0)),
        (Shuttle(), 9, 7, 1, (0.0, 1.0)),
    ],
    ids=["magic", "mushroom", "shuttle"],
)
def test_the_reference_numbers_are_reproduced(
    monkeypatch: pytest.MonkeyPatch,
    problem: Magic | Mushroom | Shuttle,
    dim: int,
    zeros: int,
    ones: int,
    extremes: tuple[float, float],
) -> None:
    monkeypatch.setenv("LACONIC_DATA", str(REAL))
    instance = problem.instance(seed=0, clients=2, rounds=1)
    met = check_round(instance.round(0), index=0, clients=2, dim=dim)
    assert met.arms.shape == (2, 20, dim)
    means = met.means[0]
    assert ((means == 0).sum(), (means == 1).sum()) == (zeros, ones)
    assert (means.min(), round(float(means.max()), 3)) == extremes
