"""How a command answers, in this process: its exit code, and what it wrote."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from laconic.cli import main

#: Sizes that a run takes no time with.
SMALL = ("-N", "2", "-T", "3", "--seeds", "1", "-q")
HUGE = 99999999999999999999


@dataclass(frozen=True)
class Answers:
    """Asks the command line; a traceback is an error of the test."""

    streams: pytest.CaptureFixture[str]

    def __call__(self, *words: object) -> tuple[int, str, str]:
        """The exit code, stdout and stderr of a command."""
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        out, err = self.streams.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out, err

    def refused(self, *words: object) -> str:
        """The one line with which a command was refused."""
        code, out, err = self(*words)
        assert code == 2, (code, out, err)
        assert out == ""
        assert err.startswith("error: "), err
        assert err.count("\n") == 1, err
        return err.removeprefix("error: ").rstrip("\n")
