"""Runs the Python of the documentation: README.md, docs/*.md and the examples in docstrings."""

from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

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
