"""Text from elsewhere is shown on a terminal as text: no control character in it is obeyed, and no line is made up."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from laconic import DisLinUCB
from laconic.cli import app, main
from laconic.cli.top import Screen
from laconic.protocol.messages import Leave, Welcome
from laconic.runtimes.service.coordinator import Coordinator
from laconic.runtimes.service.jsonlines import JsonLines
from laconic.terminal import all_shown, shown
from tests.service.rawlink import RawLink
from tests.service.settling import serving, until
from tests.service.test_live import crowded

EVIL = "x\x1b]0;owned\x07\n! all is well\r\x9b31m\u2028\u202e"
ESCAPED = r"x\u001b]0;owned\u0007\u000a! all is well\u000d\u009b31m\u2028\u202e"
OBEYED = ("\x1b]", "\x07", "\r", "\x9b", "\u2028", "\u202e")


def test_control_characters_are_escaped_and_letters_of_all_scripts_stay() -> None:
    assert shown(EVIL) == ESCAPED
    assert shown("a\nb\x1b", in_lines=True) == "a\nb\\u001b"
    assert shown("Zoë – 東京 👩‍🔬 ✓") == "Zoë – 東京 👩‍🔬 ✓"
    assert all_shown({"a\n": ["b\n", 1, None, {"c": True}]}) == {"a\\u000a": ["b\\u000a", 1, None, {"c": True}]}


@pytest.mark.parametrize("words", [("status",), ("top", "--once"), ("status", "--json")], ids=" ".join)
def test_a_members_name_and_reason_do_nothing_to_the_terminal_of_who_looks(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    place = serving(http="127.0.0.1:0")
    with (
        Coordinator(DisLinUCB().plan(2), state=tmp_path / "c.db", serving=place) as there,
        RawLink(there.address, there.plan) as link,
    ):
        assert isinstance(link.greet(EVIL), Welcome)
        link.send(Leave(reason=EVIL))
        until(lambda: there.desk.errors)
        done = CliRunner().invoke(app, [words[0], there.http_address, *words[1:]], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert not any(each in done.output for each in OBEYED)
    assert not any(line.startswith("! all is well") for line in done.output.splitlines())
    if words == ("status", "--json"):
        found = json.loads(done.output)
        assert found["members"][0]["name"] == EVIL
        assert found["errors"] == [f"{EVIL} left: {EVIL}"]
    else:
        assert ESCAPED in done.output.replace("\n", " ")


def test_what_top_draws_live_and_its_trouble_are_escaped_too() -> None:
    view = crowded()
    view["errors"] = [EVIL]
    view["exchanges"][0]["result"] = EVIL
    console = Console(file=io.StringIO(), width=200, height=60, force_terminal=True, color_system=None)
    console.print(Screen(view, trouble=EVIL, fits=True))
    assert isinstance(console.file, io.StringIO)
    drawn = console.file.getvalue()
    assert not any(each in drawn for each in OBEYED)
    assert drawn.count("! all is well") == drawn.count(ESCAPED) == 3


def test_an_error_and_a_line_of_the_log_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["status", f"{EVIL}:1"])
    assert not any(each in capsys.readouterr().err for each in OBEYED)
    fields: dict[str, Any] = {"name": "laconic", "levelno": 30, "levelname": "WARNING", "msg": EVIL, "reason": EVIL}
    line = JsonLines().format(logging.makeLogRecord(fields))
    assert not any(each in line for each in (*OBEYED, "\n"))
    assert json.loads(line)["reason"] == EVIL
