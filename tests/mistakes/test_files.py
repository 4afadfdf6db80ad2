"""Files, folders and tables that break things: each is refused before anything runs, or made again."""

from __future__ import annotations

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laconic import Clustered, DisLinUCB, InputError, ProblemError, Ratings, Recorded, Replay, run
from laconic.cli.request import literal
from laconic.datasets import prepared
from laconic.datasets.cache import Source
from laconic.experiments.spec import read_spec
from tests.mistakes.answers import SMALL, Answers

LEARNS = ("-a", "DisLinUCB")
LONG = "a" * 300
BEGINNING = """
clients = 2
rounds = 3
seeds = 1
"""
ALGORITHM = """
[[algorithms]]
name = "DisLinUCB"
"""
SENSITIVITY = """
problem = { name = "cosine", dim = 2 }
[[algorithms]]
name = "DisKernelUCB"
kernel = { name = "Polynomial", degree = [1, 2], offset = 1.0 }
[[sensitivity]]
algorithm = "DisKernelUCB"
"""
PAIRS = [(f"u{place % 7}", f"i{place % 11}", 1 + place % 5) for place in range(80)]


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize("command", [("compare",), ("run", "--out", "out")])
@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ('name = "recorded"\npath = 1', "path must be the path of a file, not 1"),
        ('name = "replay"\npath = 1', "path must be the path of a file, not 1"),
        ('name = "ratings"\nfile = 1', "file must be the path of a file, not 1"),
        ('name = "clustered"\ntarget = 1\ncsv = true', "csv must be the path of a file, not True"),
        ("dim = 3", "a table of problem needs a name, and this one has only dim; try name = 'cosine'"),
        ("name = 3", "a table of problem needs a name, and this one has name=3"),
        ('name = ""', "a table of problem needs a name, and this one has name=''"),
    ],
)
def test_a_problem_that_a_file_does_not_name_or_place(
    laconic: Answers, tmp_path: Path, command: tuple[str, ...], problem: str, said: str
) -> None:
    file = written(tmp_path / "one.toml", f"{BEGINNING}{ALGORITHM}[problem]\n{problem}\n")
    assert said in laconic.refused(command[0], file, "-q", *command[1:])


def test_an_algorithm_and_a_kernel_that_a_file_does_not_name(laconic: Answers, tmp_path: Path) -> None:
    problem = '[problem]\nname = "cosine"\n'
    file = written(tmp_path / "one.toml", f"{BEGINNING}[[algorithms]]\nD = 3.0\n{problem}")
    assert "a table of algorithm needs a name, and this one has only D" in laconic.refused("compare", file)
    said = laconic.refused("compare", "cosine", *SMALL, "-a", "DisKernelUCB", "--set", "DisKernelUCB.kernel={gamma=1}")
    assert said == "a table of kernel needs a name, and this one has only gamma; try name = 'Gaussian'"


@pytest.mark.parametrize(
    "words",
    [
        ("compare", f"{LONG}.npz"),
        ("compare", f"{LONG}.parquet"),
        ("compare", f"{LONG}.toml"),
        ("compare", f"x/{LONG}"),
        ("compare", "cosine", *SMALL, *LEARNS, "--out", LONG),
        ("compare", "cosine", *SMALL, *LEARNS, "--choices", f"{LONG}.npz"),
        ("run", f"{LONG}.toml", "--out", "x"),
        ("suggest", f"{LONG}.npz"),
        ("data", "import", "magic", LONG),
        ("certs", LONG),
        ("agent", LONG),
        ("serve", LONG),
    ],
)
def test_a_name_of_300_letters(
    laconic: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert LONG in laconic.refused(*words)
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".npz"]


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "~nosuch/x.npz"),
        ("compare", "~nosuch/x.parquet"),
        ("compare", "ratings", "--set", "problem.file=~nosuch/x"),
        ("compare", "clustered", "--set", "problem.csv=~nosuch/x", "--set", "problem.target=1"),
        ("compare", "cosine", *SMALL, "--out", "~nosuch/x"),
        ("compare", "cosine", *SMALL, "--choices", "~nosuch/x.npz"),
        ("frontier", "cosine", *SMALL, "--out", "~nosuch/x"),
        ("run", "~nosuch/x.toml", "--out", "x"),
        ("run", "x.toml", "--out", "~nosuch/x"),
        ("reproduce", "li2022", "--out", "~nosuch/x"),
        ("suggest", "~nosuch/x.csv"),
        ("suggest", "cosine", "--out", "~nosuch/x.toml"),
        ("data", "import", "magic", "~nosuch/x"),
        ("log", "~nosuch/x", "--out", "x.parquet"),
        ("certs", "~nosuch/x"),
        ("agent", "~nosuch/x.toml"),
        ("serve", "~nosuch/x.toml"),
    ],
)
def test_the_home_of_nobody(
    laconic: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "there is no home ~nosuch on this machine; try the whole path" in laconic.refused(*words)


def test_a_home_is_found_by_every_problem_that_has_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    np.savez(tmp_path / "log.npz", arms=np.zeros((4, 2, 3)), means=np.zeros((4, 2)), noise=np.zeros(4))
    assert Recorded("~/log.npz").log.steps == 4
    with pytest.raises(ProblemError, match=f"there is no file '{tmp_path}/log.parquet'"):
        Replay("~/log.parquet")


@pytest.mark.parametrize(
    ("name", "kind", "command"),
    [
        ("config", "file", "run"),
        ("figures", "file", "run"),
        ("results", "file", "run"),
        ("runs", "file", "run"),
        ("report.html", "folder", "run"),
        ("summary.md", "folder", "run"),
        ("runs", "file", "compare"),
        ("config.toml", "folder", "compare"),
        ("figure.png", "folder", "compare"),
        ("certificates.svg", "folder", "compare"),
    ],
)
def test_something_else_where_files_will_be_is_refused_before_anything_runs(
    laconic: Answers, tmp_path: Path, name: str, kind: str, command: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    if kind == "folder":
        (out / name).mkdir()
    else:
        (out / name).touch()
    file = written(tmp_path / "one.toml", f"{BEGINNING}{ALGORITHM}[problem]\nname = 'cosine'\n")
    assert str(out / name) in laconic.refused(command, file, "-q", "--out", out)
    assert not list(out.rglob("*.parquet"))


@pytest.mark.parametrize("parameter", ['"kernel.offset"', "offset"])
def test_sensitivity_to_a_part_of_a_part_is_known_by_the_name_that_results_have(tmp_path: Path, parameter: str) -> None:
    text = f"{BEGINNING}{SENSITIVITY}{parameter} = [1, 2]\n"
    (asked,) = read_spec(written(tmp_path / "one.toml", text)).sensitivity()
    assert asked.values == {"offset": (1.0, 2.0)}


def test_sensitivity_to_a_whole_number_takes_whole_numbers(tmp_path: Path) -> None:
    text = f"{BEGINNING}{SENSITIVITY}degree = [1, 3]\n"
    (asked,) = read_spec(written(tmp_path / "one.toml", text)).sensitivity()
    assert asked.values == {"degree": (1, 3)}
    assert all(type(value) is int for value in asked.values["degree"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('"kernel.nosuch" = [1.0]', "sensitivity to kernel.nosuch, which DisKernelUCB has not; try one of degree"),
        ("gamma = [1.0]", "sensitivity to gamma, which DisKernelUCB has not"),
        ("degree = [2.5]", "degree must be a whole number of at least 1, not 2.5"),
        ("D = [true]", "sensitivity to D takes a list of numbers, got [True]"),
        ("D = 1.0", "sensitivity to D takes a list of numbers, got 1.0"),
    ],
)
def test_a_sensitivity_that_cannot_be_drawn_is_refused_before_the_grid_runs(
    laconic: Answers, tmp_path: Path, line: str, said: str
) -> None:
    file = written(tmp_path / "one.toml", f"{BEGINNING}{SENSITIVITY}{line}\n")
    assert said in laconic.refused("run", file, "-q", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_parameter_that_only_some_kernels_of_a_grid_have_cannot_be_varied(tmp_path: Path) -> None:
    text = f"{BEGINNING}{SENSITIVITY}gamma = [0.5]\n".replace(
        '{ name = "Polynomial", degree = [1, 2], offset = 1.0 }', '[{ name = "Gaussian" }, { name = "Linear" }]'
    )
    with pytest.raises(InputError, match="sensitivity to gamma, which DisKernelUCB has not"):
        read_spec(written(tmp_path / "one.toml", text))


@pytest.mark.parametrize("kind", ["Sum", "Product"])
def test_kernels_within_kernels_are_known_by_their_names(laconic: Answers, kind: str) -> None:
    table = f"DisKernelUCB.kernel={{name='{kind}', left='Gaussian', right='Linear'}}"
    code, out, _ = laconic("compare", "cosine", *SMALL, "-a", "DisKernelUCB", "--set", table)
    assert code == 0
    assert "DisKernelUCB" in out
    wrong = table.replace("'Linear'", "'Linea'")
    assert "did you mean Linear" in laconic.refused("compare", *SMALL, "-a", "DisKernelUCB", "--set", wrong)


@pytest.mark.parametrize("length", ["1e-200", "1e300"])
@pytest.mark.parametrize("kernel", ["RationalQuadratic", "Matern"])
def test_a_length_whose_square_is_no_number(laconic: Answers, kernel: str, length: str) -> None:
    table = f"DisKernelUCB.kernel={{name='{kernel}', length={length}}}"
    said = laconic.refused("compare", "cosine", *SMALL, "-a", "DisKernelUCB", "--set", table)
    assert said == f"length must be from 1e-100 to 1e+100, not {float(length)}; try length=1.0"


@pytest.mark.parametrize("length", ["1e-100", "1e100"])
@pytest.mark.parametrize("kernel", ["RationalQuadratic", "Matern"])
def test_a_length_that_is_just_allowed_plays(laconic: Answers, kernel: str, length: str) -> None:
    table = f"DisKernelUCB.kernel={{name='{kernel}', length={length}}}"
    assert laconic("compare", "cosine", *SMALL, "-a", "DisKernelUCB", "--set", table)[0] == 0


def test_a_kernel_that_overflows_is_one_line_without_warnings(laconic: Answers) -> None:
    table = "DisKernelUCB.kernel={name='Polynomial', degree=99999}"
    said = laconic.refused("compare", "cosine", *SMALL, "-a", "DisKernelUCB", "--set", table)
    assert "gives values that are not finite" in said


def table_of_points(path: Path, *, scale: float = 1.0) -> str:
    draw = random.Random(1)
    rows = [f"{scale * draw.random()},{draw.random()},{draw.choice('xy')}\n" for _ in range(40)]
    return str(written(path, "a,b,c\n" + "".join(rows)))


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACONIC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("parameter", "value", "said"),
    [
        ("kmeans_seed", 2**32, "kmeans_seed must be at most 4294967295, not 4294967296"),
        ("kmeans_runs", 10**20, "kmeans_runs must be at most 1000"),
        ("clusters", 10**20, "clusters must be at most"),
        ("header", "x", "header must be True or False, not 'x'"),
        ("scale", "x", "scale must be True or False, not 'x'"),
    ],
)
def test_what_k_means_does_not_take(tmp_path: Path, parameter: str, value: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Clustered(csv=table_of_points(tmp_path / "t.csv"), target="c", **{parameter: value})


def test_a_table_of_numbers_whose_squares_overflow(own_cache: Path, tmp_path: Path) -> None:
    problem = Clustered(csv=table_of_points(tmp_path / "t.csv", scale=1e200), target="c")
    with pytest.raises(ProblemError, match=r"t\.csv:2: column a is '.*e\+199'; try numbers below 1e\+150 in size"):
        problem.instance(seed=0, clients=2, rounds=2)


def csv_of(pairs: list[Any]) -> str:
    return "user,item,rating\n" + "".join(f"{user},{item},{rating}\n" for user, item, rating in pairs)


def json_of(pairs: list[Any]) -> str:
    return "".join(json.dumps({"user": u, "item": i, "rating": r}) + "\n" for u, i, r in pairs)


def parquet_of(pairs: list[Any], path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    users, items, ratings = zip(*pairs, strict=True)
    columns = {"user": list(users), "item": list(items), "rating": [float(rating) for rating in ratings]}
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (("", "i1", 2), "no user"),
        (("u1", "  ", 2), "no item"),
        (("u1", "i1", 1.7e308), "rating 81 is 1.7e\\+308; try finite numbers below 1e\\+150"),
    ],
)
def test_a_rating_without_a_name_or_of_no_size_is_refused_in_every_format(
    own_cache: Path, tmp_path: Path, kind: str, odd: Any, said: str
) -> None:
    pairs, path = [*PAIRS, odd, odd], tmp_path / f"r.{kind}"
    if kind == "parquet":
        parquet_of(pairs, path)
    else:
        written(path, csv_of(pairs) if kind == "csv" else json_of(pairs))
    with pytest.raises(ProblemError, match=said):
        Ratings(file=str(path)).instance(seed=0, clients=2, rounds=2)


def test_json_without_end(own_cache: Path, tmp_path: Path) -> None:
    deep = '{"user": "a", "item": "b", "rating": ' + "[" * 100_000 + "]" * 100_000 + "}\n"
    for text in (deep, json_of(PAIRS) + deep):
        path = written(tmp_path / "deep.json", text)
        with pytest.raises(ProblemError, match=r"deep\.json"):
            Ratings(file=str(path)).instance(seed=0, clients=2, rounds=2)


def test_toml_without_end(laconic: Answers, tmp_path: Path) -> None:
    deep = "[" * 100_000
    with pytest.raises(InputError, match="brackets without end"):
        literal(deep + "]" * 100_000)
    file = written(tmp_path / "deep.toml", f"clients = {deep}")
    assert "is not a configuration of laconic" in laconic.refused("compare", file)


def test_a_prepared_problem_whose_members_are_damaged_is_made_again(own_cache: Path, tmp_path: Path) -> None:
    source = Source(written(tmp_path / "t.csv", "a,b\n"))
    made: list[int] = []

    def make() -> dict[str, Any]:
        made.append(1)
        return {"points": np.arange(3.0)}

    def again() -> Any:
        return prepared.prepared("kind", sources=(source,), options={}, make=make)["points"].tolist()

    assert again() == again() == [0.0, 1.0, 2.0]
    assert len(made) == 1
    (kept,) = (own_cache / "prepared").glob("*.npz")
    with zipfile.ZipFile(kept, "w") as archive:
        archive.writestr("\udcffpoints.npy".encode("utf-8", "surrogateescape").decode("cp437"), b"damaged")
    assert again() == [0.0, 1.0, 2.0]
    for damaged in (b"po\xffnts.npy", b"pointz.npy"):
        kept.write_bytes(kept.read_bytes().replace(b"points.npy", damaged))
        assert again() == [0.0, 1.0, 2.0]
    kept.write_bytes(kept.read_bytes().replace(b"names.npy", b"nemes.npy"))
    assert again() == [0.0, 1.0, 2.0]
    assert len(made) == 5


def test_a_round_that_is_none() -> None:
    class Nothing:
        dim = 2

        def instance(self, *, seed: int, clients: int, rounds: int) -> Any:
            return self

        def round(self, index: int) -> Any:
            return None

    with pytest.raises(ProblemError, match=r"round 0: round\(index\) must return a Round, got None; try Round\("):
        run(DisLinUCB(), Nothing(), clients=2, rounds=2)
