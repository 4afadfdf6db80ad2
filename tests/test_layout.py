"""One concept, one word: no two files of the package have one name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "laconic"
EVERYWHERE = ("__init__.py", "__main__.py")  # Python's own names


def test_no_two_files_have_one_name() -> None:
    names = Counter(path.name for path in PACKAGE.rglob("*.py") if path.name not in EVERYWHERE)
    assert [name for name, count in names.items() if count > 1] == []


def test_what_is_special_to_a_paper_stands_together() -> None:
    papers = PACKAGE / "papers"
    assert {path.stem for path in papers.glob("*.toml")} == {
        path.name for path in papers.iterdir() if path.is_dir()
    } - {"__pycache__"}
    others = [path for path in PACKAGE.rglob("*.toml") if papers not in path.parents]
    assert others == []
