"""Runs the Python of the documentation (README.md, docs/*.md, docstrings), and files of long tests before others."""

from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

import pytest
from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.doctest import DocTestParser
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.sybil import SybilCollection

pytest_collect_file = SybilCollection(
    [
        Sybil(parsers=[PythonCodeBlockParser(), SkipParser()], patterns=["*.md"]),
        Sybil(
            parsers=[DocTestParser(optionflags=ELLIPSIS | NORMALIZE_WHITESPACE)],
            path="src",
            patterns=["*.py"],
            document_types={".py": PythonDocStringDocument},
        ),
    ]
).pytest()

#: Files of few tests that take long, most of them with processes of their own: begun late, each would be run alone at
#: the end, while other workers have nothing left to do.
LONG = (
    *("test_run_and_reproduce", "test_federation_commands", "test_process", "test_signals", "test_frontier_command"),
    *("test_faults", "test_agent", "test_coordinator", "test_shop", "test_live", "test_sidecar", "test_federation"),
    *("test_resuming", "test_benchmarks", "test_simulation", "test_any_algorithm", "test_docs", "test_lazy"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files of long tests first; a worker is given whole files, in this order."""
    items.sort(key=lambda item: item.path.stem not in LONG)
