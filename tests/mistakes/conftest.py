"""What the tests of mistakes share."""

from __future__ import annotations

import pytest

from tests.mistakes.answers import Answers


@pytest.fixture
def laconic(capsys: pytest.CaptureFixture[str]) -> Answers:
    """The command line in this process."""
    return Answers(capsys)
