"""Samples in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from laconic import Cosine, InputError, Log, save_recorded
from laconic.suggestion import pilot
from laconic.suggestion.own_data import is_sample, read_sample

X = np.array([[0.5, 1.0], [0.25, 2.0], [0.125, 3.0]])
Y = np.array([1.0, 0.0, 0.5])


def table(path: Path, columns: dict[str, Any]) -> Path:
    if path.suffix == ".parquet":
        parquet.write_table(pa.table(columns), path)
    else:
        rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(("named", "asked"), [("reward", None), ("clicks", "clicks")])
def test_a_table_is_read_with_its_rewards(tmp_path: Path, suffix: str, named: str, asked: str | None) -> None:
    path = table(tmp_path / f"own{suffix}", {"a": X[:, 0], named: Y, "b": X[:, 1]})
    read = read_sample(path, reward=asked)
    assert np.array_equal(read.points, X)
    assert read.rewards is not None
    assert np.array_equal(read.rewards, Y)


def test_without_a_column_of_that_name_there_are_no_rewards(tmp_path: Path) -> None:
    path = table(tmp_path / "own.csv", {"a": X[:, 0], "b": X[:, 1]})
    assert read_sample(path).rewards is None


def test_a_table_says_which_of_its_columns_are_features(tmp_path: Path) -> None:
    path = table(tmp_path / "own.csv", {"a": X[:, 0], "clicks": Y, "b": X[:, 1]})
    assert read_sample(path).columns == ("a", "clicks", "b")
    assert read_sample(path, reward="clicks").columns == ("a", "b")
    assert read_sample(path).file == "own.csv"


def test_a_table_without_a_header_has_numbered_columns(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("1,2,0\n3,4,1\n", encoding="utf-8")
    assert read_sample(path).points.shape == (2, 3)
    assert read_sample(path, reward="3").points.shape == (2, 2)


@pytest.mark.parametrize("names", [("X", "y"), ("features", "reward")])
def test_an_archive_holds_points_and_perhaps_rewards(tmp_path: Path, names: tuple[str, str]) -> None:
    np.savez(tmp_path / "own.npz", **{names[0]: X, names[1]: Y})  # type: ignore[arg-type]
    assert read_sample(tmp_path / "own.npz").rewards is not None
    np.savez(tmp_path / "own.npz", **{names[0]: X})  # type: ignore[arg-type]
    assert read_sample(tmp_path / "own.npz").rewards is None


def test_a_recorded_log_is_a_problem_and_no_sample(tmp_path: Path) -> None:
    log = tmp_path / "log.npz"
    save_recorded(log, Cosine(dim=2).instance(seed=0, clients=1, rounds=3), clients=1, rounds=3)
    np.savez(tmp_path / "own.npz", X=X)
    assert not is_sample(str(log))
    assert is_sample(str(tmp_path / "own.npz"))
    assert is_sample("own.csv")
    assert not is_sample("cosine")


@pytest.mark.parametrize(
    ("columns", "reward", "said"),
    [
        ({"a": [1, 2], "b": [3, 4]}, "y", r"no column 'y'; it has a, b"),
        ({"a": [1, 2], "word": ["x", "y"]}, None, "column word holds words"),
        ({"a": [1.0, float("nan")], "b": [1, 2]}, None, "nan"),
        ({"a": [1.0, 1e200], "b": [1, 2]}, None, r"column a is '?1e\+200"),
        ({"a": [1.0], "b": [1.0]}, None, "two points or more"),
        ({"a": [1.0, 1.0], "b": [2.0, 2.0]}, None, "are the same"),
        ({"a": [1.0, 2.0], "reward": [2.0, 2.0]}, None, "all 2 rewards are 2"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_that_cannot_be_used_is_refused_with_its_name_and_the_reason(
    tmp_path: Path, suffix: str, columns: Any, reward: str | None, said: str
) -> None:
    path = table(tmp_path / f"own{suffix}", columns)
    with pytest.raises(InputError, match=said) as refused:
        read_sample(path, reward=reward)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("name", ["own.npz", "own.parquet", "own.csv"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff\x01 nonsense", b"PK\x03\x04broken"])
def test_damaged_files_are_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=name):
        read_sample(tmp_path / name)


def test_files_that_are_not_there_or_not_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        read_sample(tmp_path / "none.csv")
    (tmp_path / "own.xlsx").write_bytes(b"x")
    with pytest.raises(InputError, match=r"try \.npz, \.csv or \.parquet"):
        read_sample(tmp_path / "own.xlsx")
    np.savez(tmp_path / "own.npz", Z=X)
    with pytest.raises(InputError, match="it holds Z, but no points"):
        read_sample(tmp_path / "own.npz")
    np.savez(tmp_path / "own.npz", X=X)
    with pytest.raises(InputError, match="no array 'y'"):
        read_sample(tmp_path / "own.npz", reward="y")
    (tmp_path / "one.csv").write_text("reward\n1\n2\n", encoding="utf-8")
    with pytest.raises(InputError, match="rewards but no features"):
        read_sample(tmp_path / "one.csv")
    parquet.write_table(pa.table({"reward": [1.0, 2.0]}), tmp_path / "one.parquet")
    with pytest.raises(InputError, match="rewards but no features"):
        read_sample(tmp_path / "one.parquet")


@pytest.mark.parametrize("text", ["a\n0.5\n0.25\n", "0.5\n0.25\n", "\ufeffa\n\n0.5\n0.25\n"])
def test_a_table_of_one_column_has_points_of_one_feature(tmp_path: Path, text: str) -> None:
    (tmp_path / "one.csv").write_text(text, encoding="utf-8")
    assert read_sample(tmp_path / "one.csv").points.tolist() == [[0.5], [0.25]]


def test_advice_is_about_what_can_be_done_here(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("a,b\n1,2\n1,\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"own.csv:3: column b is '', not a number; try mending the line, or leaving it out$"
    ):
        read_sample(tmp_path / "own.csv")
    (tmp_path / "own.npz").write_bytes(b"abc")
    with pytest.raises(InputError, match=r"own.npz is not a readable .npz archive; try numpy.savez"):
        read_sample(tmp_path / "own.npz")
    parquet.write_table(pa.table({"a": [[1.0], [2.0]]}), tmp_path / "own.parquet")
    with pytest.raises(InputError, match=r"column a holds list<.*>, not numbers"):
        read_sample(tmp_path / "own.parquet")


def test_a_log_of_decisions_is_a_problem_of_which_the_chosen_arms_are_known(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    columns = {"arms": [[[0.0], [n / 30]] for n in range(30)], "chosen": [1] * 30, "propensity": [0.5] * 30}
    parquet.write_table(pa.table(columns | {"reward": [1.0 + n % 3 for n in range(30)]}), path)
    assert not is_sample(str(path))
    seen = pilot(Log.bandit(path))
    assert seen.points[:, 0].tolist() == [n / 30 for n in range(30)]
    assert seen.rewards is not None
    assert seen.rewards.tolist() == [1.0 + n % 3 for n in range(30)]
