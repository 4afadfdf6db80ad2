"""The shop of examples/: real worker processes behind one port, with clicks that come late and to anybody."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.service.settling import PATIENCE, until

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from examples.shop.goods import SHELF
from examples.shop.visitors import LATE, play

ROOT = Path(__file__).parent.parent.parent
WORKERS = {"worker-1", "worker-2", "worker-3"}
NEVER = 1e9  # seconds


@dataclass(frozen=True)
class Shop:
    """A shop that runs."""

    host: str
    live: str  # where its coordinator says how it stands
    folder: Path

    def ask(self, path: str, *, method: str = "GET", host: str | None = None) -> tuple[int, Any]:
        """What one of its workers answers."""
        link = http.client.HTTPConnection(host or self.host, timeout=PATIENCE)
        try:
            link.request(method, path)
            answer = link.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            link.close()

    def offers(self) -> Any:
        return self.ask("/offers?hour=0.4&age=0.3")[1]

    def offers_of(self, worker: str) -> list[Any]:
        """What this worker offers; any may answer, so that it is asked until this one does."""
        while (shown := self.offers())["worker"] != worker:
            pass
        return list(shown["offers"])

    def observations(self) -> dict[str, int]:
        """How many rewards each worker has, from their own files as they are."""
        found: dict[str, int] = {}
        while found.keys() != WORKERS:
            told = self.ask("/numbers")[1]
            found[told["name"]] = told["observations"]
        return found

    def process_of(self, worker: str) -> int:
        return int((self.folder / f"{worker}.db.lock").read_text())

    def is_open(self) -> bool:
        """Whether all three workers serve; one of them does as soon as the shop has said where it is."""
        assert self.ask("/numbers")[0] == 200
        return {each.stem for each in self.folder.glob("*.sock")} == WORKERS


@contextmanager
def shop(folder: Path, *, patience: float) -> Iterator[Shop]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SHOP_PATIENCE": str(patience)}
    command = [sys.executable, "-m", "examples.shop", "--port", "0", "--folder", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            host, live = re.findall(r"http://([\d.:]+)/", process.stdout.readline() + process.stdout.readline())
            one = Shop(host, live, folder)
            until(one.is_open, seconds=3 * PATIENCE)
            yield one
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=PATIENCE)
    assert not list(folder.glob("*.sock"))  # the workers ended as they should
    with pytest.raises(OSError, match="refused"):
        one.ask("/status", host=one.live)  # and the coordinator did


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shop")


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Shop]:
    """A shop that never gives up on a click."""
    with shop(folder, patience=NEVER) as one:
        yield one


def test_three_workers_offer_different_products_and_a_click_counts_whoever_gets_it(running: Shop) -> None:
    before = running.observations()
    clicks = dict.fromkeys(WORKERS, 0)
    passed_on = 0
    while passed_on == 0 or not all(clicks.values()):
        shown = running.offers()
        assert len({each["name"] for each in shown["offers"]}) == SHELF
        code, answer = running.ask(shown["offers"][0]["click"], method="POST")
        assert (code, answer["decided_by"]) == (200, shown["worker"])
        clicks[shown["worker"]] += 1
        passed_on += answer["told_to"] != answer["decided_by"]
    assert {name: count - before[name] for name, count in running.observations().items()} == clicks


def test_a_click_counts_after_its_worker_was_killed(running: Shop) -> None:
    waits, paid = running.offers_of("worker-2")[:2]
    assert running.ask(paid["click"], method="POST")[0] == 200  # on disk, and so is all that was decided before it
    before, process = running.observations()["worker-2"], running.process_of("worker-2")
    os.kill(process, signal.SIGKILL)
    answers: list[tuple[int, Any]] = []

    def counts() -> bool:
        answers.append(running.ask(waits["click"], method="POST"))
        return answers[-1][0] != 503  # while the worker is away for longer, one is told to send it again

    until(counts, seconds=3 * PATIENCE)
    assert answers[-1][0] == 200, answers
    assert running.process_of("worker-2") != process
    assert running.observations()["worker-2"] == before + 1


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/offers?hour=25&age=0.3", 422),
        ("GET", "/offers?hour=0.5", 422),
        ("GET", "/offers?hour=nan&age=0.3", 422),
        ("POST", "/click/worker-1/0000000000.1", 404),
        ("POST", "/click/worker-2/rubbish", 404),
        ("POST", "/click/worker-9/0000000000.1", 404),
    ],
)
def test_what_makes_no_sense_is_answered_with_what_is_wrong(running: Shop, method: str, path: str, code: int) -> None:
    answered, answer = running.ask(path, method=method)
    assert answered == code
    assert answer["error"]


def test_a_click_counts_once(running: Shop) -> None:
    click = running.offers()["offers"][0]["click"]
    assert running.ask(click, method="POST")[0] == 200
    code, answer = running.ask(click, method="POST")
    assert code == 404
    assert "reported before" in answer["error"]


def test_visitors_click_late_and_what_they_leave_counts_as_not_wanted_after_a_restart_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with shop(tmp_path, patience=NEVER) as one:
        crowd = play(one.host, visits=3 * LATE, seed=1)
        assert crowd.workers == WORKERS
        assert crowd.late == 0
        assert sum(one.observations().values()) == crowd.clicks > 0
    assert f"{crowd.clicks} clicks" in capsys.readouterr().out
    with shop(tmp_path, patience=0.0) as again:
        until(lambda: sum(again.observations().values()) == SHELF * crowd.visits)


def test_visitors_of_a_shop_that_is_closed_print_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConnectionRefusedError):
        play("127.0.0.1:1", visits=1, seed=1)
    assert capsys.readouterr().out == ""


def test_the_page_is_one_file(running: Shop) -> None:
    link = http.client.HTTPConnection(running.host, timeout=PATIENCE)
    link.request("GET", "/")
    text = link.getresponse().read().decode()
    link.close()
    assert "/offers?" in text
    assert not re.findall(r'(?:src|href)="(?!data:)', text)
