"""The sidecar: an agent over HTTP, what it promises, and what it refuses, on real sockets and with real clients."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from laconic import Agent, EpsilonFloor, Gaussian, LaconicUCB
from laconic.cli.agent_file import read_agent
from laconic.errors import InputError, LinkError
from laconic.runtimes.service.coordinator import Coordinator
from laconic.runtimes.service.openapi import openapi
from laconic.runtimes.service.sidecar import Sidecar
from laconic.runtimes.service.verbs import VERBS, Waits
from tests.service.settling import serving, until

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "sidecar"
ALGORITHM = LaconicUCB(Gaussian(), lam=0.1, exploration=EpsilonFloor(epsilon=0.5))
NOWHERE = "127.0.0.1:1"  # where nobody listens
ARMS = [[0.1, 0.2], [0.3, -0.4], [-0.5, 0.6]]
COMMAND = [sys.executable, "-c", "from laconic.cli import main; main()"]


def lonely(folder: Path, **options: Any) -> Agent:
    return Agent.join(
        NOWHERE, name="a", state=folder / "a.db", insecure=True, algorithm=ALGORITHM, dim=2, seed=1, **options
    )


def coordinator(folder: Path) -> Coordinator:
    return Coordinator(ALGORITHM.plan(2), state=folder / "c.db", serving=serving())


def joined(there: Coordinator, folder: Path) -> Agent:
    return Agent.join(there.address, name="a", state=folder / "a.db", insecure=True, algorithm=ALGORITHM, dim=2, seed=1)


@contextmanager
def sidecar(folder: Path, **options: Any) -> Iterator[Sidecar]:
    with lonely(folder) as agent, Sidecar(agent, **{"listen": "127.0.0.1:0", **options}) as there:
        yield there


def ask(
    there: Sidecar, path: str, body: Any = None, *, method: str | None = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    link = http.client.HTTPConnection(there.address, timeout=30)
    try:
        link.request(method or ("GET" if data is None else "POST"), path, body=data, headers=headers or {})
        answer = link.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if answer.getheader("Content-Type", "").startswith("appl") else text
    finally:
        link.close()


# -- what it does ------------------------------------------------------------------------------------------------------


def test_an_application_chooses_observes_learns_and_sees_how_the_agent_stands(tmp_path: Path) -> None:
    with sidecar(tmp_path) as there:
        code, chosen = ask(there, "/choose", {"arms": ARMS, "ids": ["x", 2, "z"]})
        assert code == 200
        assert chosen["arm_id"] == ["x", 2, "z"][chosen["arm"]]
        assert 0 < chosen["propensity"] < 1
        assert there.agent.pending.keys() == {chosen["id"]}
        assert ask(there, "/observe", {"id": chosen["id"], "reward": 1.5}) == (200, {"observations": 1})
        assert ask(there, "/learn", {"points": ARMS, "rewards": [1, 2, 3]}) == (200, {"observations": 4})
        code, status = ask(there, "/status")
        assert (status["name"], status["observations"], status["pending"]) == ("a", 4, 0)


def test_choices_are_those_of_the_agent_itself(tmp_path: Path) -> None:
    (tmp_path / "twin").mkdir()
    with sidecar(tmp_path) as there, lonely(tmp_path / "twin") as twin:
        for step in range(10):
            pick = twin.choose(ARMS)
            twin.observe(pick, float(step))
            _, chosen = ask(there, "/choose", {"arms": ARMS})
            ask(there, "/observe", {"id": chosen["id"], "reward": float(step)})
            assert (chosen["arm"], chosen["mean"], chosen["width"]) == (pick.arm, pick.mean, pick.width)
            assert chosen["deviation"] == pick.deviation
            assert chosen["propensity"] == pick.propensity


def test_a_reward_is_on_disk_when_it_is_answered_and_may_come_after_a_restart(tmp_path: Path) -> None:
    with sidecar(tmp_path) as there:
        late, soon = (ask(there, "/choose", {"arms": ARMS})[1]["id"] for _ in range(2))
        assert ask(there, "/observe", {"id": soon, "reward": 1.0})[0] == 200
    with sidecar(tmp_path) as there:
        assert there.agent.status().observations == 1
        assert ask(there, "/observe", {"id": late, "reward": 2.0}) == (200, {"observations": 2})
        code, answer = ask(there, "/observe", {"id": late, "reward": 2.0})
        assert code == 404
        assert "reported before" in answer["error"]


def test_a_decision_whose_record_was_lost_is_reported_with_its_point_and_the_advice_says_so(tmp_path: Path) -> None:
    with sidecar(tmp_path) as there:
        with there.agent._diary._disk:
            _, chosen = ask(there, "/choose", {"arms": ARMS})
            there.agent._diary._queue.clear()  # as a kill does before it is written
        assert chosen["point"] == ARMS[chosen["arm"]]
    with sidecar(tmp_path) as there:
        lost = {"id": chosen["id"], "reward": 1.0}
        code, answer = ask(there, "/observe", lost)
        assert (code, answer["error"].endswith("its id with the `point` that /choose answered")) == (404, True)
        for wrong, refused in (([0.1], 422), ([1e300, 0.0], 422), (["x", 0.0], 422)):
            assert ask(there, "/observe", lost | {"point": wrong})[0] == refused
        assert ask(there, "/observe", lost | {"point": chosen["point"]}) == (200, {"observations": 1})
        assert ask(there, "/observe", lost | {"point": chosen["point"]})[0] == 404


def test_an_id_that_its_agent_never_gave_is_refused_also_with_a_point(tmp_path: Path) -> None:
    with sidecar(tmp_path) as there:
        for invented in ("deadbeef.0", "0.0"):
            code, answer = ask(there, "/observe", {"id": invented, "reward": 1.0, "point": ARMS[0]})
            assert (code, "not made by agent 'a'" in answer["error"]) == (404, True)
        assert there.agent.status().observations == 0


def test_choosing_and_status_wait_behind_nobody_who_waits_for_the_disk(tmp_path: Path) -> None:
    most = Waits.FOR_DISK.value.most
    with sidecar(tmp_path) as there, ThreadPoolExecutor(most) as clients:
        ids = [ask(there, "/choose", {"arms": ARMS})[1]["id"] for _ in range(most)]
        with there.agent._diary._disk:  # a disk that takes long
            rewards = [clients.submit(ask, there, "/observe", {"id": each, "reward": 1.0}) for each in ids]
            until(lambda: there._waiting[Waits.FOR_DISK] == most)
            assert ask(there, "/choose", {"arms": ARMS})[0] == 200
            assert ask(there, "/status")[0] == 200
            code, answer = ask(there, "/learn", {"points": ARMS, "rewards": [1, 2, 3]})
            assert (code, answer["error"]) == (503, "64 requests wait for the disk; try again later")
        assert {each.result()[0] for each in rewards} == {200}
        assert ask(there, "/status")[1]["observations"] == most


def test_who_hangs_up_lets_go_of_the_place_of_a_flush(tmp_path: Path) -> None:
    with sidecar(tmp_path) as there:
        links = [http.client.HTTPConnection(there.address, timeout=30) for _ in range(3)]
        for link in links:
            link.request("POST", "/flush", body=b'{"timeout": 300.0}')
        until(lambda: there._waiting[Waits.FOR_COORDINATOR] == 3)
        for link in links:
            link.close()
        until(lambda: there._waiting[Waits.FOR_COORDINATOR] == 0)


def test_rewards_are_taken_while_as_many_flushes_as_may_wait_for_a_coordinator_that_is_away(tmp_path: Path) -> None:
    most = Waits.FOR_COORDINATOR.value.most
    with (
        lonely(tmp_path) as agent,
        ThreadPoolExecutor(most) as clients,
        Sidecar(agent, listen="127.0.0.1:0") as there,
    ):
        late = [clients.submit(ask, there, "/flush", {"timeout": 300.0}) for _ in range(most - 1)]
        until(lambda: there._waiting[Waits.FOR_COORDINATOR] == most - 1)
        # Its time begins at once, not when another's is over.
        assert ask(there, "/flush", {"timeout": 0.1})[0] == 504
        late.append(clients.submit(ask, there, "/flush", {"timeout": 300.0}))
        until(lambda: there._waiting[Waits.FOR_COORDINATOR] == most)
        code, answer = ask(there, "/flush", {"timeout": 0.1})
        assert (code, answer["error"]) == (503, "16 requests wait for the coordinator; try again later")
        chosen = ask(there, "/choose", {"arms": ARMS})[1]
        assert ask(there, "/observe", {"id": chosen["id"], "reward": 1.0}) == (200, {"observations": 1})
        assert not any(each.done() for each in late)
        agent.close()  # which ends them
        assert {each.result()[0] for each in late} == {504}


def test_an_agent_whose_place_was_taken_comes_back_when_an_application_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    with coordinator(tmp_path) as hub, joined(hub, tmp_path) as agent, Sidecar(agent, listen="127.0.0.1:0") as there:
        until(lambda: agent.status().linked)
        with joined(hub, tmp_path / "copy") as copy:
            until(lambda: copy.status().linked and not agent.status().linked)
        code, answer = ask(there, "/flush", {"timeout": 30.0})
        assert (code, "POST /reconnect over HTTP, to take the place back" in answer["error"]) == (504, True)
        assert "POST /reconnect" in ask(there, "/status")[1]["link_error"]
        code, status = ask(there, "/reconnect", method="POST")
        assert (code, status["name"]) == (200, "a")
        assert ask(there, "/flush", {"timeout": 30.0}) == (200, {"observations": 0})
        assert ask(there, "/status")[1]["linked"]


def test_an_application_has_its_agent_leave_and_come_back(tmp_path: Path) -> None:
    with coordinator(tmp_path) as hub, joined(hub, tmp_path) as agent, Sidecar(agent, listen="127.0.0.1:0") as there:
        ask(there, "/flush", {})
        code, status = ask(there, "/leave", {})
        assert (code, status["state"], status["linked"]) == (200, "outside", False)
        assert "POST /reconnect over HTTP, to come back" in status["link_error"]
        until(lambda: hub.status()["members"][0]["status"] == "left")
        assert "POST /reconnect over HTTP, to come back" in ask(there, "/status")[1]["link_error"]
        assert ask(there, "/choose", {"arms": ARMS})[0] == 200
        assert ask(there, "/reconnect", {})[0] == 200
        assert ask(there, "/flush", {})[0] == 200
        assert hub.status()["members"][0]["status"] == "present"


def test_the_description_has_every_verb_and_is_made_from_the_types_that_check(tmp_path: Path) -> None:
    with sidecar(tmp_path) as there:
        code, found = ask(there, "/openapi.json")
    assert code == 200
    assert found == json.loads(msgspec.json.encode(openapi()))
    assert found["paths"].keys() == VERBS.keys()
    for path, verb in VERBS.items():
        operation = found["paths"][path][verb.method.lower()]
        assert operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
        assert {"405", "411"} <= operation["responses"].keys()
        if verb.body is not None:
            assert operation["requestBody"]["required"] is (path not in ("/flush", "/reconnect", "/leave"))
            name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            assert found["components"]["schemas"][name]["properties"].keys() == set(verb.body.__struct_fields__)


# -- what it refuses ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "code", "words"),
    [
        ("/choose", b"{", 400, "no JSON"),
        ("/choose", b"\xff\xfe", 400, "no JSON"),
        ("/choose", b'{"arms": [[NaN, 1]]}', 400, "no JSON"),
        ("/choose", {}, 422, "missing required field `arms`"),
        ("/choose", {"arms": "many"}, 422, "Expected `array`"),
        ("/choose", {"arms": [[1, "x"]]}, 422, "Expected `float`, got `str` - at `$.arms[0][1]`"),
        ("/choose", {"arms": []}, 422, "arms"),
        ("/choose", {"arms": [[1.0, 2.0], [3.0]]}, 422, "arms"),
        ("/choose", {"arms": [[1.0, 2.0, 3.0]]}, 422, "2 features"),
        ("/choose", {"arms": ARMS, "ids": ["x"]}, 422, "ids"),
        ("/choose", {"arms": ARMS, "colour": 1}, 422, "unknown field"),
        ("/observe", b'{"id": "1.2", "reward": 1.0, "reward": 0.0}', 400, "the key 'reward' more than once"),
        ("/observe", b'{"id": "1.2", "reward": 1.0, "rewar\\u0064": 0.0}', 400, "the key 'reward' more than once"),
        ("/observe", b'{"id": "id", "reward": 1.0}', 404, "not made here"),
        ("/observe", {"id": "1.2", "reward": 1.0}, 404, "not made here"),
        ("/observe", {"id": "1.2", "reward": None}, 422, "Expected `float`"),
        ("/observe", {"id": "1.2", "reward": 1e300}, 404, "not made here"),
        ("/learn", {"points": ARMS, "rewards": [1.0]}, 422, "as many"),
        ("/learn", {"points": ARMS, "rewards": [1.0, 2.0, 1e100]}, 422, "rescale"),
        ("/flush", {"timeout": -1}, 422, "timeout"),
        ("/flush", {"timeout": 0.05}, 504, "what was observed is kept here"),
        ("/reconnect", {"now": True}, 422, "unknown field"),
        ("/leave", b"now", 400, "no JSON"),
        ("/nowhere", {}, 404, "there are /choose"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_is_wrong(
    path: str, body: Any, code: int, words: str, tmp_path: Path
) -> None:
    with sidecar(tmp_path) as there:
        answered, answer = ask(there, path, body)
        assert (answered, words in answer["error"]) == (code, True), answer
        assert there.agent.status().observations == 0
        assert ask(there, "/status")[0] == 200


def test_a_body_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    with sidecar(tmp_path, body_bytes=2048) as there:
        code, answer = ask(there, "/learn", b"x" * 500_000)
        assert (code, answer) == (413, {"error": "the body has 500000 bytes, and 2048 are taken"})
        assert ask(there, "/choose", {"arms": ARMS})[0] == 200


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (b"POST /choose HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"411"),
        (b"POST /choose HTTP/1.1\r\nContent-Length: -3\r\n\r\n", b"400"),
        (b"POST /choose HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 30\r\n\r\n", b"400"),
        (b"POST /choose HTTP/1.1\r\nContent-Length: %s3\r\n\r\n[1]" % (b"0" * 40), b"422"),  # it is read
        (b"POST /choose HTTP/1.1\r\nHost: localhost\r\nhost: 127.0.0.1\r\n\r\n", b"400"),
        (b"rubbish\r\n\r\n", b"400"),
        (b"GET /status HTTP/1.1\r\nno colon\r\n\r\n", b"400"),
        (b"GET /choose HTTP/1.1\r\n\r\n", b"405"),
        (b"POST /openapi.json HTTP/1.1\r\n\r\n", b"405"),
    ],
)
def test_what_is_no_proper_request_is_refused_on_its_connection_alone(
    request_: bytes, code: bytes, tmp_path: Path
) -> None:
    with sidecar(tmp_path) as there:
        host, _, port = there.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as link:
            link.sendall(request_)
            assert link.recv(2**16).split()[1] == code
        assert ask(there, "/status")[0] == 200


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        *(("application/json", 200), ("Application/JSON; charset=utf-8", 200), (None, 200)),
        *(("text/plain", 415), ("application/x-www-form-urlencoded", 200), ("application/jsonp", 415), ("", 415)),
    ],
)
def test_a_body_that_is_said_to_be_something_else_is_not_read(kind: str | None, code: int, tmp_path: Path) -> None:
    with sidecar(tmp_path) as there:
        headers = {} if kind is None else {"Content-Type": kind}
        answered, answer = ask(there, "/choose", {"arms": ARMS}, headers=headers)
        assert (answered, len(there.agent.pending)) == (code, code == 200)
        assert code == 200 or "send it with Content-Type: application/json" in answer["error"]
        assert ask(there, "/status", headers=headers)[0] == 200


def test_pages_of_other_origins_and_hosts_may_not_use_it(tmp_path: Path) -> None:
    ours = "http://localhost:3000"
    with sidecar(tmp_path, origins=frozenset({ours})) as there:
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example:80"}):
            code, answer = ask(there, "/choose", {"arms": ARMS}, headers=headers)
            assert code == 403, headers
        assert "may" in answer["error"] or "this machine" in answer["error"]
        assert there.agent.pending == {}
        assert ask(there, "/choose", {"arms": ARMS}, headers={"Origin": ours})[0] == 200
        assert ask(there, "/choose", method="OPTIONS", headers={"Origin": ours})[0] == 200
        assert ask(there, "/choose", method="OPTIONS", headers={"Origin": "null"})[0] == 403


def test_it_listens_on_this_machine_alone(tmp_path: Path) -> None:
    with lonely(tmp_path) as agent:
        for where in ("0.0.0.0:0", "192.0.2.1:80", "here", "unix:", 7):
            with pytest.raises(InputError, match="listen"):
                Sidecar(agent, listen=where)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="origins must be a list of names, not the text"):
            Sidecar(agent, listen="127.0.0.1:0", origins="https://shop.example")  # type: ignore[arg-type]


def test_a_socket_is_for_its_owner_alone_and_never_taken_from_somebody_who_serves(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    with lonely(tmp_path) as agent:
        with Sidecar(agent, listen=f"unix:{path}"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            with pytest.raises(LinkError, match=r"serves .* already"):
                Sidecar(agent, listen=f"unix:{path}").start()
        assert not path.exists()
        left = socket.socket(socket.AF_UNIX)
        left.bind(str(path))
        left.close()  # as a process that was killed leaves it
        with Sidecar(agent, listen=f"unix:{path}"):
            pass
        path.write_text("something else")
        with pytest.raises(InputError, match="no socket"):
            Sidecar(agent, listen=f"unix:{path}").start()
        assert path.read_text() == "something else"


def test_a_socket_is_for_those_whom_its_mode_lets_in(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    with lonely(tmp_path) as agent:
        for text, mode in (("0660", 0o660), ("660", 0o660), ("0666", 0o666), ("0600", 0o600)):
            with Sidecar(agent, listen=f"unix:{path}", socket_mode=text):
                assert stat.S_IMODE(path.stat().st_mode) == mode
        for wrong in ("0o660", "rw", "", "0060", "0670", "04660", 660, None):
            with pytest.raises(InputError, match=r"socket_mode must be octal text, not .*; try '0660'"):
                Sidecar(agent, listen=f"unix:{path}", socket_mode=wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"socket_mode is 0660, and listen is 127.0.0.1:0; try listen='unix:PATH'"):
            Sidecar(agent, listen="127.0.0.1:0", socket_mode="0660")


def test_the_mode_of_the_socket_stands_in_the_file_of_an_agent(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    text = 'address = "127.0.0.1:1"\nname = "a"\nstate = "a.db"\nlisten = "unix:a"\ninsecure = true\n'
    file.write_text(f'{text}socket_mode = "0660"\n')
    with lonely(tmp_path) as agent, read_agent(file).sidecar(agent):
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o660
    file.write_text(f'{text}socket_mode = "all"\n')
    with pytest.raises(InputError, match="socket_mode must be octal text"):
        read_agent(file)


def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    for text, words in (
        ("", "missing required field"),
        ('address = "a:1"\nname = "a"\nstate = "a.db"\nlisten = "0.0.0.0:1"', "only this machine"),
        ('address = "a:1"\nname = "a"\nstate = "a.db"\nlisten = "unix:a"\ncolour = 1', "colour"),
        ('address = "a:1"\nname = "a"\nstate = "a.db"\nlisten = "unix:a"', r"no \[tls\].*insecure = true at the top"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=words):
            read_agent(file)


def test_a_slow_start_says_what_it_waits_for(tmp_path: Path) -> None:
    file, given = tmp_path / "agent.toml", '\n[algorithm]\nname = "LaconicUCB"\n'
    text = 'address = "127.0.0.1:1"\nname = "a"\nstate = "a.db"\nlisten = "unix:a.sock"\ninsecure = true\n'
    file.write_text(text)
    assert read_agent(file).waits_for == "waiting for the coordinator, which says the plan"
    file.write_text(f"{text}dim = 2\n{given}")
    assert read_agent(file).waits_for == "opening the state file"
    file.write_text(text)
    (tmp_path / "a.db").touch()
    assert read_agent(file).waits_for == "opening the state file"


def test_a_first_start_that_waits_for_its_coordinator_ends_with_0_when_it_is_told_to(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        file.write_text(f'address = "{address}"\nname = "a"\nstate = "a.db"\nlisten = "unix:a.sock"\ninsecure = true\n')
        with subprocess.Popen(
            [*COMMAND, "agent", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            silent.settimeout(60)
            assert process.stderr is not None
            with silent.accept()[0]:  # it asks, and is told nothing
                said = json.loads(process.stderr.readline())
                process.send_signal(signal.SIGTERM)
                out, err = process.communicate(timeout=60)
    assert (said["event"], said["address"]) == ("waiting for the coordinator, which says the plan", address)
    assert (process.returncode, out, err) == (0, b"", b"")  # one that waits to the end exits with 2
    assert list(tmp_path.iterdir()) == [file]


def test_an_agent_whose_state_file_fails_for_good_ends_with_1_and_says_why(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(
        'address = "127.0.0.1:1"\nname = "a"\nstate = "a.db"\nlisten = "127.0.0.1:0"\ninsecure = true\ndim = 2\n'
        '[algorithm]\nname = "DisLinUCB"\n'
    )
    with subprocess.Popen(
        [*COMMAND, "agent", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        host, _, port = json.loads(process.stdout.readline())["listen"].rpartition(":")
        with sqlite3.connect(tmp_path / "a.db") as other:
            other.execute("DROP TABLE records")
        other.close()
        link = http.client.HTTPConnection(host, int(port), timeout=60)
        body = json.dumps({"points": [[0.1, 0.2]], "rewards": [1.0]})
        link.request("POST", "/learn", body, {"Content-Type": "application/json"})
        with link.getresponse() as answer:
            told = answer.read().decode()
        assert answer.status == 503
        assert "could not be written (no such table: records), and nothing of it was" in told
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert re.fullmatch(r"error: .*a\.db failed in a way that only a restart can judge .*", said.splitlines()[-1])
    assert "Traceback" not in said


# -- other languages ---------------------------------------------------------------------------------------------------


@contextmanager
def served(folder: Path) -> Iterator[Path]:
    """The agent of the example as a process of its own; its socket."""
    shutil.copy(EXAMPLE / "agent.toml", folder / "agent.toml")
    command = [*COMMAND, "agent", str(folder / "agent.toml"), "--log", "error"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            where = json.loads(process.stdout.readline())
            yield Path(where["listen"].removeprefix("unix:"))
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
def test_the_example_in_curl_decides_and_reports_a_reward(tmp_path: Path) -> None:
    with served(tmp_path) as path:
        done = subprocess.run(
            ["sh", str(EXAMPLE / "choose.sh"), str(path)], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr + done.stdout
        decision, taken, status = map(json.loads, done.stdout.splitlines())
        assert decision["arm_id"] in ("tea", "coffee")
        assert taken == {"observations": 1}
        assert status["pending"] == 0
        large = tmp_path / "large"
        large.write_bytes(b" " * 5_000_000)
        done = subprocess.run(
            ["curl", "-s", "--unix-socket", str(path), "http://localhost/learn", "--data-binary", f"@{large}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "4194304 are taken" in done.stdout
    assert not path.exists()


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node here")
def test_the_example_in_node_finds_the_arm_that_pays(tmp_path: Path) -> None:
    with served(tmp_path) as path:
        done = subprocess.run(
            ["node", str(EXAMPLE / "choose.mjs"), str(path)], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert (found["observations"], found["pending"], sum(found["chosen"])) == (10, 0, 10)
