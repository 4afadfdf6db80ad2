"""What a coordinator shows while it runs: the view, its events, the page in a real browser, and the terminal."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import os
import queue
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from rich.console import Console
from rich.live import Live
from typer.testing import CliRunner

from laconic import Agent, ApproxDisKernelUCB, DisKernelUCB, DisLinUCB, Gaussian, LaconicUCB
from laconic.algorithms import Algorithm
from laconic.cli import app
from laconic.cli.top import Screen
from laconic.protocol.messages import Released, Request
from laconic.protocol.server import Server
from laconic.runtimes.service.background import background
from laconic.runtimes.service.chronicle import PLACES, Chronicle, Series
from laconic.runtimes.service.coordinator import Coordinator
from laconic.runtimes.service.hosts import foreign
from laconic.runtimes.service.pages import HTML, MOST_STREAMS, Answer, Asked, Pages
from laconic.runtimes.service.standing import PAUSE, QUIET, events, page_of, view_of
from tests.pages.browsing import BROWSER, needs_browser
from tests.service.settling import is_linked, serving, settle, until

NAMES = ("edge-1", "edge-2", "a shop with <b>a long</b> name & no spaces-in-the-rest-of-it")
LACONIC = LaconicUCB(Gaussian(gamma=0.5), lam=0.1)
DIS = DisKernelUCB(Gaussian(), D=2.0)


@contextmanager
def federation(
    algorithm: Algorithm, folder: Path, *, names: tuple[str, ...] = NAMES[:2]
) -> Iterator[tuple[Coordinator, list[Agent]]]:
    with ExitStack() as stack:
        place = serving(http="127.0.0.1:0", members=names)
        there = stack.enter_context(Coordinator(algorithm.plan(2), state=folder / "c.db", serving=place))
        agents = [
            stack.enter_context(
                Agent.join(
                    there.address, name=name, state=folder / f"{i}.db", insecure=True, algorithm=algorithm, dim=2
                )
            )
            for i, name in enumerate(names)
        ]
        for agent in agents:
            until(partial(is_linked, agent))
        settle(there, agents)
        yield there, agents


def taught(there: Coordinator, agents: list[Agent], *, rounds: int = 4) -> dict[int, list[float]]:
    """Rewards that agents learnt and shared, by member."""
    rng = np.random.default_rng(0)
    told: dict[int, list[float]] = {i: [] for i in range(len(agents))}
    for step in range(rounds):
        for i, agent in enumerate(agents):
            rewards = [float(i + step), float(i)]
            agent.learn(rng.uniform(-1, 1, size=(2, 2)), rewards)
            agent.flush()
            told[i] += rewards
    settle(there, agents)
    return told


# -- the view ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [LACONIC, DIS], ids=["alone", "together"])
def test_rewards_that_reached_the_coordinator_are_those_of_their_members(algorithm: Algorithm, tmp_path: Path) -> None:
    with federation(algorithm, tmp_path) as (there, agents):
        told = taught(there, agents)
        view = view_of(there)
    for each in view["members"]:
        assert each["mean"] == pytest.approx(np.mean(told[each["number"]]), abs=0.05)
    everyone = [reward for rewards in told.values() for reward in rewards]
    assert view["rewards"]["count"] == len(everyone)
    assert view["rewards"]["mean"] == pytest.approx(np.mean(everyone), abs=0.05)
    assert [each["name"] for each in view["rewards"]["members"]] == list(NAMES[:2])


def test_a_sync_is_shown_with_who_asked_for_it_and_what_it_took(tmp_path: Path) -> None:
    with federation(DIS, tmp_path) as (there, agents):
        taught(there, agents, rounds=1)
        view = view_of(there)
    assert [each["number"] for each in view["exchanges"]] == [2, 1]  # the newest first
    assert [each["member"] for each in view["exchanges"]] == ["edge-2", "edge-1"]
    assert {(each["why"], each["members"], each["result"]) for each in view["exchanges"]} == {("flush", 2, "installed")}
    assert 0 < sum(each["bytes"] for each in view["exchanges"]) < view["costs"]["sent"]


def test_a_sync_that_goes_on_without_a_member_is_shown_once_and_one_that_is_given_up_with_its_reason() -> None:
    server = Server(DIS.plan(2), members=range(3))
    idle, chronicle = server.hub, Chronicle(server.plan, hub=server.hub, total=lambda: 0)
    asks = server.receive(0, Request(epoch=server.epoch)).send
    for link, ask in asks:
        chronicle.sent(name=str(link), message=ask, size=0, hub=server.hub)
    assert server.hub.sync is not None
    epoch = server.hub.sync.epoch
    chronicle.sent(name="2", message=Released(epoch=epoch, reason="too slow"), size=0, hub=server.hub)
    assert chronicle.view(server.hub)["exchanges"] == []
    for name in "01":
        chronicle.sent(name=name, message=Released(epoch=epoch, reason="nobody is here"), size=0, hub=idle)
    (one,) = chronicle.view(idle)["exchanges"]
    assert (one["member"], one["members"], one["result"]) == ("0", 3, "given up: nobody is here")


def test_a_version_is_shown_with_why_its_reader_asked(tmp_path: Path) -> None:
    with federation(LACONIC, tmp_path) as (there, agents):
        taught(there, agents, rounds=1)
        view = view_of(there)
    assert {(each["member"], each["why"]) for each in view["exchanges"]} >= {("edge-1", "flush"), ("edge-2", "flush")}
    assert view["together"] is False


def test_raw_sharing_is_every_observation_to_everybody(tmp_path: Path) -> None:
    with federation(DIS, tmp_path) as (there, agents):
        taught(there, agents)
        view = view_of(there)
        n, numbers = view["observations"], there.desk.traffic.by_phase()
    assert view["costs"]["raw"] == 8 * 3 * n * 2  # once up, and down to the other
    assert view["costs"]["paper"] == view["costs"]["raw"]  # without a dictionary they are the same
    # Raw points are what crossed these links, so the payloads add up to what is computed.
    assert 8 * sum(count.scalars for (_, phase), count in numbers.items() if phase == "share data") == 8 * 3 * n * 2


@pytest.mark.parametrize("algorithm", [DisLinUCB(D=1.0), ApproxDisKernelUCB(Gaussian(), D=1.0, qbar=5.0)])
def test_the_papers_wire_is_computed_as_what_its_algorithms_send(algorithm: Algorithm, tmp_path: Path) -> None:
    with federation(algorithm, tmp_path) as (there, agents):
        taught(there, agents)
        costs, numbers = view_of(there)["costs"], there.desk.traffic.by_phase()
        known = view_of(there)["rewards"]["count"]
    counted = 8 * sum(count.scalars for count in numbers.values())
    assert costs["paper"] == pytest.approx(counted, rel=0.35)  # how many points each member proposes is estimated
    assert known == 0  # sums alone went up


def test_a_series_stays_short_and_loses_no_reward() -> None:
    series, rng = Series(), np.random.default_rng(1)
    rewards = [rng.normal(size=rng.integers(1, 4)) for _ in range(1000)]
    for now, each in enumerate(rewards):
        series.add(each, float(now))
        assert len(series.points()) <= 2 * PLACES + 1
    everything = np.concatenate(rewards)
    assert series.count == len(everything)
    assert series.mean == pytest.approx(everything.mean())
    weights = np.array(series.counts)
    assert np.average([mean for _, mean in series.points()], weights=weights) == pytest.approx(everything.mean())
    assert series.times == sorted(series.times)


# -- events ------------------------------------------------------------------------------------------------------------


def test_events_come_when_something_changed(tmp_path: Path) -> None:
    with federation(LACONIC, tmp_path) as (there, agents):
        settle(there, agents)
        with urllib.request.urlopen(f"http://{there.http_address}/events", timeout=60) as stream:
            assert stream.headers["Content-Type"].startswith("text/event-stream")
            first = json.loads(stream.readline().removeprefix(b"data: "))
            agents[0].learn([[0.1, 0.2]], [3.0])
            agents[0].flush()
            known = first["observations"]
            while known == first["observations"]:
                line = stream.readline()
                if line.startswith(b"data: "):
                    known = json.loads(line.removeprefix(b"data: "))["observations"]
    assert (first["observations"], known) == (0, 1)


def test_how_things_stand_is_said_now_and_then_while_nothing_changes(tmp_path: Path) -> None:
    async def heard(there: Coordinator) -> list[bytes]:
        found, stream = [], events(there, pause=0.05)
        async for each in stream:
            found.append(each)
            if len(found) == 3:
                break
        return found

    with federation(LACONIC, tmp_path, names=()) as (there, _):
        found = [json.loads(each.removeprefix(b"data: ")) for each in asyncio.run(heard(there))]
    assert PAUSE * QUIET <= 5
    ages = [each.pop("seconds") for each in found]
    assert ages[0] < ages[1] < ages[2]  # every fifth look, in tenths of a second
    assert found[0] == found[1] == found[2]


def test_pages_on_this_machine_are_not_for_a_name_that_somebody_else_gave_it(tmp_path: Path) -> None:
    with federation(LACONIC, tmp_path, names=()) as (there, _):
        port = there.http_address.rpartition(":")[2]
        for host, code in (
            *((each, 200) for each in (f"127.0.0.1:{port}", "LocalHost", f"[::1]:{port}", f"localhost:{port}")),
            *((each, 403) for each in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "10.0.0.1")),
        ):
            for path in ("/", "/view", "/metrics", "/events"):
                link = http.client.HTTPConnection(there.http_address, timeout=30)
                link.request("GET", path, headers={"Host": host})
                answer = link.getresponse()
                assert answer.status == code, (host, path)
                link.close()
    assert foreign("evil.example", bound="0.0.0.0:7444") is None  # where it is to be reached under other names
    assert foreign("evil.example", bound="unix:/run/a:1/a.sock") is None


def test_probes_are_answered_however_many_look_on(tmp_path: Path) -> None:
    with federation(LACONIC, tmp_path, names=()) as (there, _), ExitStack() as stack:
        url = f"http://{there.http_address}"
        for _ in range(MOST_STREAMS):
            stack.enter_context(urllib.request.urlopen(f"{url}/events", timeout=60)).readline()
        with pytest.raises(urllib.request.HTTPError, match="503"):
            urllib.request.urlopen(f"{url}/events", timeout=60)
        with urllib.request.urlopen(f"{url}/readyz", timeout=60) as answer:
            assert answer.read() == b"ready\n"


# -- the page ----------------------------------------------------------------------------------------------------------

FRAME = """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><body style="margin:0">
<iframe style="border:0" width="{width}" height="1600" src="/"></iframe>
<script>
const frame = document.querySelector("iframe");
const timer = setInterval(() => {{
  const page = frame.contentDocument;
  if (!(Number(page?.body?.dataset.drawn) >= 2)) return;  // how it stood, and an event
  clearInterval(timer);
  const width = page.documentElement.clientWidth;
  const every = [...page.querySelectorAll("header *, main *")].filter(each => !each.closest("svg"));
  const named = each => each.tagName + "." + each.className + ": " + each.textContent.slice(0, 40);
  const measured = {{
    width,
    whole: page.documentElement.scrollWidth,
    out: every.filter(each => each.getBoundingClientRect().right > width + 1).map(named),
    cut: every.filter(each => each.tagName === "TD" && each.scrollWidth > each.clientWidth + 1).map(named),
    bold: page.querySelectorAll("#members b").length,
    lines: page.querySelectorAll("svg polyline").length,
    text: page.body.innerText,
    background: getComputedStyle(page.body).backgroundColor,
  }};
  fetch("/measured/" + encodeURIComponent(JSON.stringify(measured)));
}}, 50);
</script>"""


@contextmanager
def framed(
    there: Coordinator, *, width: int, page: str = FRAME, full: int = 0
) -> Iterator[tuple[str, queue.SimpleQueue[Any]]]:
    """The coordinator's pages beside one that measures them; where, and what it measures.

    So many times there is no place to look on.
    """
    measured: queue.SimpleQueue[Any] = queue.SimpleQueue()
    paths: set[str] = set()
    refusals = iter([Answer(503)] * full)

    async def answer(asked: Asked) -> Answer:
        if asked.path == "/frame":
            return Answer(200, HTML, (page.format(width=width) if page == FRAME else page).encode())
        if asked.path.startswith("/measured/"):
            measured.put(json.loads(unquote(asked.path.removeprefix("/measured/"))) | {"asked": sorted(paths)})
            return Answer(200)
        paths.add(asked.path)
        if asked.path == "/events" and (refusal := next(refusals, None)) is not None:
            return refusal
        return page_of(there, asked.path)

    pages = Pages(answer)
    address = background().run(pages.start("127.0.0.1:0"))
    try:
        yield f"http://{address}/frame", measured
    finally:
        background().run(pages.stop())


def browsed(url: str, measured: queue.SimpleQueue[Any], folder: Path, *, dark: bool) -> tuple[Any, list[str]]:
    """What was measured in a browser that can reach this machine alone, and what came to its console."""
    command = [
        *(str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"),
        *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *("--disable-quic", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--window-size=1400,1700"),
        *("--enable-logging=stderr", "--v=0", "--remote-debugging-port=0"),  # with a port it stays until it is ended
        *(["--blink-settings=preferredColorScheme=0"] if dark else []),
        url,
    ]
    with (folder / "browser.log").open("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            found = measured.get(timeout=120)
        except queue.Empty:
            raise AssertionError((folder / "browser.log").read_text()[-2000:]) from None
        finally:
            process.terminate()
            process.wait(timeout=60)
    complaints = [line for line in (folder / "browser.log").read_text().splitlines() if "CONSOLE" in line]
    return found, complaints


WATCHED = """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<iframe width="900" height="900" src="/"></iframe>
<script>
const frame = document.querySelector("iframe");
const said = [];
const timer = setInterval(() => {
  const live = frame.contentDocument?.getElementById("live");
  if (!live) return;
  if (said.at(-1) !== live.textContent) said.push(live.textContent);
  if (live.textContent !== "live") return;
  clearInterval(timer);
  const heads = [...frame.contentDocument.querySelectorAll("th")];
  const measured = { said, polite: live.ariaLive, scopes: [...new Set(heads.map(each => each.scope))] };
  fetch("/measured/" + encodeURIComponent(JSON.stringify(measured)));
}, 20);
</script>"""


@needs_browser
def test_a_page_for_which_there_was_no_place_tries_again(tmp_path: Path) -> None:
    with federation(LACONIC, tmp_path) as (there, _), framed(there, width=900, page=WATCHED, full=1) as (url, measured):
        page, _ = browsed(url, measured, tmp_path, dark=False)
    assert page["said"] == ["waiting", "the coordinator does not answer", "live"]
    assert page["asked"] == ["/", "/events"]
    assert (page["polite"], page["scopes"]) == ("polite", ["col"])


@needs_browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_shows_everything_and_cuts_nothing_off(width: int, dark: bool, tmp_path: Path) -> None:
    with federation(LACONIC, tmp_path, names=NAMES) as (there, agents):
        taught(there, agents)
        agents[2].close()
        there.desk._note_error("edge-9 was refused: " + "x" * 300)
        with framed(there, width=width) as (url, measured):
            page, complaints = browsed(url, measured, tmp_path, dark=dark)
    assert complaints == []
    assert page["whole"] <= page["width"] <= width
    assert (page["out"], page["cut"]) == ([], [])
    assert page["asked"] == ["/", "/events"]  # it loads nothing else
    assert page["lines"] == 4  # three members, and everyone
    assert page["bold"] == 0  # names are text, whatever is in them
    for words in (*NAMES, "2 of 3", "members present", "paper’s wire", "raw sharing", "flushed", "edge-9 was refused"):
        assert words in page["text"]
    red = int(re.findall(r"\d+", page["background"])[0])
    assert red < 64 if dark else red > 192


# -- the terminal ------------------------------------------------------------------------------------------------------


def test_top_shows_members_exchanges_and_bytes(tmp_path: Path) -> None:
    with federation(LACONIC, tmp_path, names=NAMES) as (there, agents):
        taught(there, agents)
        done = CliRunner().invoke(app, ["top", there.http_address, "--once"])
    assert done.exit_code == 0, done.output
    for words in ("3 of 3 members present", "edge-1", "<b>a long</b>", "flushed", "raw sharing", "upload"):
        assert words in " ".join(done.output.split())


@pytest.mark.skipif(os.name == "nt", reason="Windows has neither these signals nor such terminals")
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_top_that_is_told_to_end_leaves_the_terminal_as_it_was_and_exits_with_0(kind: int, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from laconic.cli import main; main()", "top", "--every", "0.1"]
    ours, theirs = os.openpty()
    with federation(LACONIC, tmp_path, names=NAMES) as (there, _), os.fdopen(ours, "rb", buffering=0) as screen:
        process = subprocess.Popen([*command, there.http_address], stdout=theirs, env={**os.environ, "TERM": "xterm"})
        os.close(theirs)
        seen = b""
        while b"members present" not in seen:
            seen += screen.read(4096)
        process.send_signal(kind)
        with suppress(OSError):  # as a terminal says that nobody writes to it any more
            while more := screen.read(4096):
                seen += more
        assert process.wait(60) == 0
    assert seen.count(b"\x1b[?1049h") == seen.count(b"\x1b[?1049l") == 1
    assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"\x1b[?25l")


def crowded(*, errors: int = 4) -> dict[str, Any]:
    """A view of which a small terminal has no room for everything."""
    standing = ["left", *["present"] * 9, "away"]
    member = {"observations": 12, "mean": 0.5}
    exchange = {"member": "edge-1", "why": "flush", "time": 0.0, "number": 1, "bytes": 10}
    moved = {"direction": "up", "messages": 1, "bytes": 10}
    view: dict[str, Any] = {"address": "127.0.0.1:7443", "ready": True, "state": "idle", "seconds": 12.0, "epoch": 3}
    view |= {"together": True, "observations": 108, "rewards": {"mean": 0.5}, "dictionary": 12, "atoms": None}
    view |= {"costs": {"sent": 1, "paper": 2, "raw": 3}}
    view |= {"members": [member | {"name": f"edge-{n}", "status": each} for n, each in enumerate(standing)]}
    view |= {"exchanges": [exchange | {"result": f"epoch {number}"} for number in range(12, 0, -1)]}
    view |= {"traffic": [moved | {"phase": f"phase {number}"} for number in range(8)]}
    return view | {"errors": [f"edge-{n} was refused: {'why it was ' * 30}" for n in range(errors)]}


def test_top_without_room_shows_the_newest_error_who_is_away_and_some_of_each_and_says_what_is_left_out() -> None:
    lines = [line for line, _ in Screen(crowded()).lines(width=80, height=24)]
    assert len(lines) <= 24
    for words in ("9 of 10 members present", "! edge-3 was refused", "edge-10  ", "epoch 12", "phase 0, up"):
        assert words in "\n".join(lines)
    left_out = [line.split(" ", 2) for line in lines if line.startswith("… ")]
    totals = {"earlier errors": 4, "more members": 11, "earlier exchanges": 12, "more phases": 8}
    assert [what for _, _, what in left_out] == [*totals]
    assert all(int(count) < totals[what] for _, count, what in left_out)


@pytest.mark.parametrize("height", [1, 5, 8, 16, 40, 80])
def test_top_never_draws_more_lines_than_a_terminal_has_and_everything_where_there_is_room(height: int) -> None:
    lines = [line for line, _ in Screen(crowded(), trouble="nobody answers").lines(width=80, height=height)]
    assert len(lines) <= height
    assert (lines[0] == "nobody answers") == (height > 1)
    assert height < 80 or not [line for line in lines if "…" in line]


def test_top_fills_its_terminal_with_exchanges_and_shows_a_few_where_it_is_shown_once() -> None:
    view = crowded(errors=0)
    view["exchanges"] = [view["exchanges"][0] | {"result": f"result {number}"} for number in range(40)]

    def drawn(height: int | None) -> list[str]:
        return [line for line, _ in Screen(view).lines(width=80, height=height)]

    once = drawn(None)
    assert "… 30 earlier exchanges" in once
    assert [len(drawn(len(once) + more)) - len(once) for more in (0, 1, 12, 29, 40)] == [0, 1, 12, 29, 29]
    assert sum("result " in line for line in drawn(len(once) + 12)) == 22


@pytest.mark.parametrize(("together", "numbered"), [(True, "epoch"), (False, "version")])
def test_top_says_what_the_number_of_an_exchange_is(together: bool, numbered: str) -> None:
    view = crowded(errors=0) | {"together": together, "version": 7}
    head = next(line for line, _ in Screen(view).lines(width=80, height=None) if line.startswith("why"))
    assert head.split()[:3] == ["why", "when", numbered]


def test_what_top_draws_live_is_made_for_the_height_of_its_terminal() -> None:
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True)
    with Live(Screen(crowded(), fits=True), console=console, screen=True, auto_refresh=False) as live:
        live.refresh()
    assert isinstance(console.file, io.StringIO)
    assert "… 6 more phases" in console.file.getvalue()


def test_top_that_is_shown_once_cuts_no_error() -> None:
    view = crowded(errors=1)
    lines = [line for line, _ in Screen(view).lines(width=80, height=None)]
    assert view["errors"][0].strip() in " ".join(" ".join(lines).split())


def test_top_says_that_nobody_answers() -> None:
    done = CliRunner().invoke(app, ["top", "127.0.0.1:1", "--once"])
    assert "no coordinator answers" in str(done.exception)


@pytest.mark.parametrize("words", [("status",), ("top", "--once")], ids=["status", "top"])
def test_an_address_is_taken_as_a_browser_shows_it_too(words: tuple[str, ...], tmp_path: Path) -> None:
    with federation(LACONIC, tmp_path) as (there, _):
        done = CliRunner().invoke(app, [words[0], f"http://{there.http_address}/", *words[1:]])
    assert done.exit_code == 0, done.output
