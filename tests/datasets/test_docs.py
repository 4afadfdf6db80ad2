from dataclasses import fields
from pathlib import Path

import pytest

from laconic.datasets import DATASETS
from laconic.problems.clustered import Clustered, Magic, Mushroom, Shuttle
from laconic.problems.ratings import MovieLens, Ratings, Yelp

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
ROWS = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]


@pytest.mark.parametrize("problem", [Clustered, Magic, Mushroom, Shuttle, MovieLens, Ratings, Yelp])
def test_every_option_of_a_problem_is_explained(problem: type) -> None:
    explained = {name.strip(" `") for row in ROWS for name in row.split(",")}
    assert {field.name for field in fields(problem)} <= explained


def test_every_data_set_is_listed_with_its_terms() -> None:
    for dataset in DATASETS.values():
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{dataset.name}` |"))
        assert dataset.licence.name in row
        assert f"`{dataset.problem}`" in row
