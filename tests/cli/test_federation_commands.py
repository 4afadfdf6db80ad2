"""The commands of a federation: what files and addresses they refuse, and the demonstration as a whole."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from laconic.cli import app, demo_federation, status
from laconic.cli.demo_federation import verdict
from laconic.cli.federation import read_federation
from laconic.cli.stopping import Stop
from laconic.errors import InputError, LaconicError, LinkError
from tests.service.settling import until

COMMAND = [sys.executable, "-c", "from laconic.cli import main; main()"]
FILE = """
dim = 3
state = "federation.db"
bind = "127.0.0.1:0"
insecure = true
names = ["a", "b"]

[algorithm]
name = "DisKernelUCB"
D = 5.0
kernel = { name = "Gaussian", gamma = 0.5 }

[patience]
seconds = 3.0

[limits]
members = 10
"""


def test_a_federation_is_read_from_its_file_with_paths_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "federation.toml").write_text(FILE)
    federation = read_federation(tmp_path / "federation.toml")
    serving = federation.serving
    assert federation.algorithm.plan(3).table["kernel.gamma"] == 0.5
    assert serving.allowed == frozenset({"a", "b"})
    assert (serving.patience.seconds, serving.patience.quorum, serving.limits.members) == (3.0, 1, 10)
    with federation.coordinator() as there:
        assert there.is_ready
    assert (tmp_path / "federation.db").is_file()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("dim = 3", "dim = 0", "number of features"),
        ("dim = 3", "", "missing required field `dim`"),
        ("dim = 3", 'dim = "many"', "Expected `int`"),
        ("insecure = true", "insecure = true\ncolour = 'red'", "unknown field `colour`$"),
        ("insecure = true", "insecur = true", r"unknown field `insecur`; did you mean `insecure`\?"),
        ("seconds = 3.0", "second = 3.0", r"unknown field `second` - at `\$.patience`; did you mean `seconds`\?"),
        ("[patience]", "[tls]\nauthorty = 'a'\n[patience]", r"`\$.tls`; did you mean `authority`\?"),
        ('["a", "b"]', '[""]', "names must be a text of 1 to 1000 letters"),
        ("insecure = true", "", r"has no \[tls\]; give .* or insecure = true at the top"),
        ("[patience]", "[tls]\nauthority = 'a'\ncertificate = 'b'\nkey = 'c'\n[patience]", "exclude each other"),
        ('bind = "127.0.0.1:0"', 'bind = "0.0.0.0:7443"', "only this machine"),
        ("DisKernelUCB", "DisKernelUCV", "did you mean DisKernelUCB"),
        ("D = 5.0", "E = 5.0", "no parameter 'E'"),
        ("seconds = 3.0", "seconds = -1.0", "greater than 0"),
        ("members = 10", "members = 0", "at least 1"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_what_is_wrong(
    old: str, new: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "federation.toml").write_text(FILE.replace(old, new))
    with pytest.raises(InputError, match=words):
        read_federation(tmp_path / "federation.toml")


def test_serve_refuses_a_file_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run([*COMMAND, "serve", str(tmp_path / "no.toml")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: cannot read")


def served(command: list[str], **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


EARLY = """
import os, signal, sys
from laconic.cli import main

class Hanging:
    def find_spec(self, name, *_):
        if name in ("typer", "laconic.checks", "laconic.cli.federation", "grpc"):
            print(name, flush=True)
            os.kill(os.getpid(), signal.SIGHUP)

sys.meta_path.insert(0, Hanging())
main()
"""


def test_a_hangup_while_serve_starts_does_not_end_it(tmp_path: Path) -> None:
    file = tmp_path / "federation.toml"
    file.write_text(FILE)
    with served([sys.executable, "-c", EARLY, "serve", str(file)]) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        while not lines[-1].startswith("{"):
            assert lines[-1], "it ended"
            lines.append(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert {line.strip() for line in lines} > {"typer", "laconic.checks", "laconic.cli.federation", "grpc"}
    assert process.returncode == 0


def test_a_reload_says_which_keys_wait_for_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "federation.toml"
    file.write_text(FILE)
    with served([*COMMAND, "serve", str(file)]) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        changed = FILE.replace('["a", "b"]', '["a"]').replace("D = 5.0", "D = 6.0").replace("members = 10", "links = 7")
        file.write_text('members = ["a"]\n' + changed)
        process.send_signal(signal.SIGHUP)
        logged = _until(process, "restart")
        file.write_text(FILE)  # as it runs
        process.send_signal(signal.SIGHUP)
        again = _until(process, "names read again")
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=60)[1]
    assert logged["keys"] == ["algorithm", "limits.members", "limits.links"]
    assert (logged["level"], again["names"]) == ("warning", 2)
    assert "restart" not in rest


def _until(process: subprocess.Popen[str], words: str) -> dict[str, Any]:
    """The next record in a log that says something."""
    assert process.stderr is not None
    for line in process.stderr:
        found: dict[str, Any] = json.loads(line)
        if words in found["event"]:
            return found
    raise AssertionError(f"nothing about {words}")


def test_certs_makes_an_authority_a_coordinators_certificate_and_one_for_each_agent(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    made = CliRunner().invoke(app, ["certs", str(folder), "edge-1", "edge-2", "--host", "bandit.internal"])
    assert made.exit_code == 0, made.output
    assert {each.name for each in folder.iterdir()} == {
        *("ca.crt", "ca.key", "coordinator.crt", "coordinator.key"),
        *("edge-1.crt", "edge-1.key", "edge-2.crt", "edge-2.key"),
    }
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in folder.glob("*.key"))
    again = CliRunner().invoke(app, ["certs", str(folder), "edge-1"])
    assert "--renew" in again.output
    renewed = CliRunner().invoke(app, ["certs", str(folder), "edge-1", "--renew", "--days", "10"])
    assert renewed.output.count("edge-1") == 2
    assert "coordinator" not in renewed.output


@pytest.mark.parametrize("place", ["taken", "taken/below"])
def test_certs_refuses_a_file_where_a_folder_is_wanted(place: str, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    done = CliRunner().invoke(app, ["certs", str(tmp_path / place)])
    assert isinstance(done.exception, InputError)
    assert str(done.exception) == f"{tmp_path / 'taken'} is a file; give a folder"


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("bücher.example", "try 'xn--bcher-kva.example'"),
        ("", "no name or address of a machine"),
        ("bad host/..", "no name or address of a machine"),
        ("bandit.internal:7443", "without a port"),
        ("[::1]", "no name or address of a machine"),
        ("10.0.0.256", "no name or address of a machine"),
        (".internal", "no name or address of a machine"),
        ("x" * 64, "no name or address of a machine"),
    ],
)
def test_certs_refuses_a_host_that_no_certificate_can_hold_before_anything_is_written(
    host: str, words: str, tmp_path: Path
) -> None:
    for more in ((), ("--renew",)):
        done = CliRunner().invoke(app, ["certs", str(tmp_path / "certs"), "--host", host, *more])
        assert isinstance(done.exception, InputError)
        assert words in str(done.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("more", [(), ("edge-2",), ("edge-1", "--renew")], ids=["alone", "new agent", "renewed agent"])
def test_certs_refuses_a_host_of_which_the_certificate_that_stays_says_nothing(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "certs"
    assert (
        CliRunner().invoke(app, ["certs", str(folder), "edge-1", "--host", "fd00::7", "--host", "a.b"]).exit_code == 0
    )
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    words = ["certs", str(folder), *more, "--host", "A.b", "--host", "new.internal"]
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"`laconic certs {folder} --renew --host new.internal`" in done.stderr
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == before
    for known in ("fd00:0::7", "A.b"):  # which it has
        assert CliRunner().invoke(app, ["certs", str(folder), *more, "--host", known]).exit_code == 0
    renewed = CliRunner().invoke(app, ["certs", str(folder), "--renew", "--host", "new.internal"])
    assert renewed.exit_code == 0
    assert CliRunner().invoke(app, ["certs", str(folder), *more, "--host", "new.internal"]).exit_code == 0


@pytest.mark.parametrize("host", ["bandit.internal", "my_host", "*.internal", "10.0.0.7", "fd00::7", "7up.example"])
def test_certs_takes_names_and_addresses_of_machines(host: str, tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["certs", str(tmp_path), "--host", host]).exit_code == 0


def test_status_says_that_nobody_answers() -> None:
    done = CliRunner().invoke(app, ["status", "127.0.0.1:1"])
    assert isinstance(done.exception, LaconicError)
    assert "no coordinator answers" in str(done.exception)
    for address in ("file:///etc/passwd", "localhost:abc", ":7444", "localhost"):
        assert isinstance(CliRunner().invoke(app, ["status", address]).exception, InputError)


def test_status_says_that_the_port_of_agents_speaks_no_http(tmp_path: Path) -> None:
    (tmp_path / "federation.toml").write_text(FILE)
    with read_federation(tmp_path / "federation.toml").coordinator() as there:
        done = CliRunner().invoke(app, ["status", there.address])
    assert isinstance(done.exception, LaconicError)
    assert "speaks no HTTP; try the http address" in str(done.exception)


def test_status_shows_members_and_traffic(tmp_path: Path) -> None:
    (tmp_path / "federation.toml").write_text('http = "127.0.0.1:0"\nmembers = ["a"]\n' + FILE)
    with read_federation(tmp_path / "federation.toml").coordinator() as there:
        done = CliRunner().invoke(app, ["status", there.http_address])
        assert "ready, idle" in done.output
        assert ["a", "away", "0"] in [line.split() for line in done.output.splitlines()]
        found = json.loads(CliRunner().invoke(app, ["status", there.http_address, "--json"]).output)
        assert found["members"][0]["name"] == "a"


def test_the_demonstration_loses_nothing_though_an_agent_is_killed() -> None:
    words = ["demo-federation", "--agents", "2", "--rounds", "16", "--pause", "0.01", "--json"]
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["lost"] == 0
    assert found["at_coordinator"] == found["in_state_files"] == 32
    assert found["killed"]["resumed_after"] >= found["killed"]["after_round"] == 8
    assert found["regret"] < found["regret_at_random"]


def test_a_demonstration_in_which_nobody_says_anything_breaks_off_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_federation, "SILENT_SECONDS", 0.01)  # no process begins so soon
    done = CliRunner().invoke(app, ["demo-federation", "--agents", "2", "--rounds", "4", "--pause", "0.25"])
    assert isinstance(done.exception, LinkError)
    assert str(done.exception) == "the demonstration broke off: no agent has said anything for 0.26 seconds"


def test_a_demonstration_may_take_as_long_as_its_agents_tell_something(tmp_path: Path) -> None:
    patience = []

    class Lines:
        told = iter([*((0, {"round": index}) for index in range(1, 6)), (0, {"done": 5}), (1, {"done": 5})])

        def get(self, *, timeout: float) -> Any:
            patience.append(timeout)
            return next(self.told)

    demo = demo_federation._Demo(tmp_path, Stop(), agents=2, rounds=5, seed=0, pause=7.0, quiet=True)
    demo._lines = Lines()  # type: ignore[assignment]
    demo._follow("nowhere")
    assert patience == [demo_federation.SILENT_SECONDS + 7.0] * 7


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are not seen in a folder here")
def test_a_demonstration_that_is_told_to_end_leaves_neither_processes_nor_files(tmp_path: Path) -> None:
    words = ["demo-federation", "--agents", "2", "--pause", "60"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([*COMMAND, *words], stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("coordinator at")
        until(lambda: len(naming(tmp_path)) == 3)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (143, "")
    assert naming(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def naming(folder: Path) -> list[str]:
    """The commands that are running with a folder among their words."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended since
            found.append(each.read_bytes().decode(errors="replace"))
    return [each for each in found if str(folder) in each]


@pytest.mark.parametrize(
    ("regret", "lost", "words"),
    [
        (95.0, 0, "chose as well as the simulation, and nothing was lost"),
        (120.0, 0, "chose as well as the simulation, and nothing was lost"),
        (200.0, 0, "kept 67% of what sharing saves in the simulation, and nothing was lost"),
        (500.0, 3, "kept 0% of what sharing saves in the simulation, and 3 observations were LOST"),
    ],
)
def test_the_verdict_of_the_demonstration_follows_from_its_figures(regret: float, lost: int, words: str) -> None:
    figures = {"regret": regret, "lost": lost, "regret_simulated": 100.0, "regret_each_alone": 400.0}
    assert words in verdict(figures)


ODD: dict[str, bytes] = {
    "another program's": b'{"members": 3}',
    "numbers where there are names": b'{"members": [{"name": 5}], "together": true}',
    "nothing": b"{}",
    "deep": b"[" * 200_000,
    "less deep": b'{"members": ' + b"[" * 700 + b"]" * 700 + b"}",
    "no JSON": b"\xff\xfe",
}


@pytest.mark.parametrize("words", [("status",), ("top", "--once")], ids=["status", "top"])
@pytest.mark.parametrize("how", ODD)
def test_what_answers_and_is_no_coordinator_is_said_in_a_line(how: str, words: tuple[str, ...]) -> None:
    body = ODD[how]

    def answer() -> None:
        link, _ = listening.accept()
        with link:
            link.recv(4096)
            link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer)
        thread.start()
        done = CliRunner().invoke(app, [words[0], f"127.0.0.1:{listening.getsockname()[1]}", *words[1:]])
        thread.join()
    assert isinstance(done.exception, LinkError)
    assert "coordinator" in str(done.exception)


def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "MOST_BYTES", 2**16)

    def answer() -> None:
        link, _ = listening.accept()
        with link, suppress(OSError):
            link.recv(4096)
            link.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                link.sendall(b" " * 2**16)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(LinkError, match="its answer does not end"):
            status.fetched(f"127.0.0.1:{listening.getsockname()[1]}")
        thread.join()


def test_a_certificate_whose_key_was_moved_away_stays_and_that_is_said(tmp_path: Path) -> None:
    certs = ["certs", str(tmp_path), "edge-1"]
    assert CliRunner().invoke(app, certs).exit_code == 0
    before = {name: (tmp_path / f"{name}.crt").read_bytes() for name in ("coordinator", "edge-1")}
    for name in before:
        (tmp_path / f"{name}.key").unlink()
    assert "All of them are there" not in CliRunner().invoke(app, certs).output
    done = CliRunner().invoke(app, [*certs, "edge-2"])
    assert done.exit_code == 0
    assert {name: (tmp_path / f"{name}.crt").read_bytes() for name in before} == before
    assert (tmp_path / "edge-2.key").exists()
    assert "edge-1.crt is there without its key, and stays; --renew edge-1" in done.output
