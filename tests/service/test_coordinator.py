"""The coordinator: what it survives, whom it cuts off, what it says about itself, and what it has after a restart."""

import asyncio
import json
import re
import resource
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, KeysView
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import msgspec
import numpy as np
import pytest

from laconic import Agent, ApproxDisKernelUCB, DisKernelUCB, DisLinUCB, Gaussian, LaconicUCB
from laconic.algorithms import Algorithm
from laconic.beliefs import FiniteBelief, LinearEmbedding, Statistics
from laconic.cli.status import newest_in
from laconic.errors import InputError, LinkError, StateError
from laconic.protocol.client import Client
from laconic.protocol.codec import Carried, Codec
from laconic.protocol.messages import BLANK, Ask, Label, Part, Payload, Request, SetAside, Upload, Welcome
from laconic.protocol.outcome import Work
from laconic.protocol.plan import Plan
from laconic.protocol.roster import Patience
from laconic.runtimes.service import desk as desks
from laconic.runtimes.service import doors, methods, pages, retrying
from laconic.runtimes.service import store as stores
from laconic.runtimes.service.background import background
from laconic.runtimes.service.coordinator import Coordinator, Limits
from tests.service.rawlink import RawLink
from tests.service.settling import is_flushed, serving, settle, until

DIS = DisKernelUCB(Gaussian(1.0), D=2.0)
ARMS = [[0.1, 0.2], [0.3, -0.4], [-0.5, 0.6]]
COMMAND = [sys.executable, "-c", "from laconic.cli import main; main()"]


def coordinator(folder: Path, *, algorithm: Algorithm = DIS, **options: Any) -> Coordinator:
    return Coordinator(algorithm.plan(2), state=folder / "c.db", serving=serving(**options))


def joined(there: Coordinator, folder: Path, *, name: str = "a", algorithm: Algorithm = DIS) -> Agent:
    state = folder / f"{name}.db"
    return Agent.join(there.address, name=name, state=state, insecure=True, algorithm=algorithm, dim=2)


def raw(there: Coordinator) -> RawLink:
    return RawLink(there.address, there.plan)


def answer(there: Coordinator, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{there.http_address}{path}", timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


# -- what it says about itself -----------------------------------------------------------------------------------------


def test_status_metrics_health_and_readiness_are_served_over_http(tmp_path: Path) -> None:
    with coordinator(tmp_path, http="127.0.0.1:0") as there, joined(there, tmp_path) as agent:
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        agent.flush()
        settle(there, [agent])
        code, body = answer(there, "/status")
        assert code == 200
        status = json.loads(body)
        assert status["members"] == [{"name": "a", "number": 0, "status": "present", "observations": 3}]
        assert status["epoch"] == 1
        code, body = answer(there, "/metrics")
        assert "laconic_epoch 1\n" in body
        sent = there.desk.traffic.of("up").bytes
        counted = [line for line in body.splitlines() if line.startswith('laconic_bytes_total{direction="up"')]
        assert sum(int(line.rpartition(" ")[2]) for line in counted) == sent
        assert answer(there, "/healthz") == (200, "ok\n")
        assert answer(there, "/readyz") == (200, "ready\n")
        assert answer(there, "/nowhere")[0] == 404


def test_where_clients_exchange_alone_the_status_tells_the_version_and_counts_who_was_given_one(tmp_path: Path) -> None:
    with (
        coordinator(tmp_path, algorithm=LaconicUCB(), http="127.0.0.1:0") as there,
        joined(there, tmp_path, algorithm=LaconicUCB()) as one,
        joined(there, tmp_path, name="b", algorithm=LaconicUCB()) as other,
    ):
        one.learn(ARMS, [1.0, 2.0, 3.0])
        one.flush()
        other.flush()
        status = json.loads(answer(there, "/status")[1])
        held = other.status().epoch
        assert held >= 1
        assert (status["together"], status["version"]) == (False, held)
        assert status["counters"]["syncs"] >= 1
        metrics = answer(there, "/metrics")[1]
        assert f"laconic_version {held}\n" in metrics
        assert "laconic_epoch" not in metrics
        assert f"version {held}" in newest_in(status)


def test_every_metric_has_help_a_type_and_numbers(tmp_path: Path) -> None:
    with coordinator(tmp_path, http="127.0.0.1:0") as there:
        lines = answer(there, "/metrics")[1].splitlines()
    typed = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    helped = {line.split()[2] for line in lines if line.startswith("# HELP")}
    values = [line for line in lines if not line.startswith("#")]
    assert typed == helped
    for line in values:
        name, _, value = line.rpartition(" ")
        assert name.partition("{")[0] in typed
        float(value)


@pytest.mark.parametrize(
    ("request_", "code"),
    [(b"POST /status HTTP/1.1\r\n\r\n", b"405"), (b"GET / HTTP/1.1\r\nX: " + b"x" * 9000 + b"\r\n\r\n", b"431")],
    ids=["post", "long"],
)
def test_odd_http_requests_are_refused(tmp_path: Path, request_: bytes, code: bytes) -> None:
    import socket

    with coordinator(tmp_path, http="127.0.0.1:0") as there:
        host, _, port = there.http_address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as link:
            link.sendall(request_)
            assert link.recv(4096).startswith(b"HTTP/1.1 " + code)


def test_connections_that_say_nothing_give_way_to_those_that_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with coordinator(tmp_path, http="127.0.0.1:0") as there, ExitStack() as stack:
        host, _, port = there.http_address.rpartition(":")
        for _ in range(pages.MOST_CONNECTIONS):
            link = stack.enter_context(socket.create_connection((host, int(port)), timeout=30))
            link.sendall(b"GET /sta")
        until(lambda: len(there._pages._reading) == pages.MOST_CONNECTIONS)  # type: ignore[union-attr]
        assert answer(there, "/readyz")[0] == 503
        monkeypatch.setattr(pages, "PATIENT_SECONDS", 0.0)
        assert answer(there, "/readyz") == (200, "ready\n")


def test_health_is_served_over_grpc(tmp_path: Path) -> None:
    with coordinator(tmp_path) as there, grpc.insecure_channel(there.address) as channel:
        check = channel.unary_unary(methods.path(methods.HEALTH, methods.CHECK))
        assert check(b"", timeout=30) == methods.SERVING
        assert check(b"\x0a\x12laconic.Federation", timeout=30) == methods.SERVING
        with pytest.raises(grpc.RpcError) as refused:
            check(b"\x0a\x05other", timeout=30)
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
        for asked, told in ((b"", methods.SERVING), (b"\x0a\x05other", methods.UNKNOWN)):
            watch = channel.unary_stream(methods.path(methods.HEALTH, methods.WATCH))(asked, timeout=30)
            assert next(iter(watch)) == told
            watch.cancel()


def broken_store(there: Coordinator) -> None:
    there.desk.store._connection.execute("PRAGMA query_only=1")  # an error that no full disk brings about


def dead_desk(there: Coordinator) -> None:
    there.desk._handle = None  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [(broken_store, "only a restart can judge"), (dead_desk, "handled no more")],
    ids=["store", "desk"],
)
def test_a_coordinator_that_can_do_nothing_more_is_not_ready_and_says_why(
    spoil: Callable[[Coordinator], None], why: str, tmp_path: Path
) -> None:
    with (
        coordinator(tmp_path, http="127.0.0.1:0", tick=0.02) as there,
        grpc.insecure_channel(there.address) as channel,
    ):
        check = channel.unary_unary(methods.path(methods.HEALTH, methods.CHECK))
        watch = iter(channel.unary_stream(methods.path(methods.HEALTH, methods.WATCH))(b"", timeout=60))
        assert (check(b"", timeout=30), next(watch)) == (methods.SERVING, methods.SERVING)
        assert there.trouble is None
        spoil(there)
        with raw(there) as link:
            link.say_hello("a")
            until(lambda: not there.is_ready)
        assert why in str(there.trouble)
        assert answer(there, "/readyz") == (503, "not ready\n")
        assert answer(there, "/healthz") == (200, "ok\n")
        status = json.loads(answer(there, "/status")[1])
        assert (status["ready"], len(status["errors"])) == (False, 1)
        assert (check(b"", timeout=30), next(watch)) == (methods.NOT_SERVING, methods.NOT_SERVING)
    with coordinator(tmp_path) as there:
        assert there.is_ready


def test_serve_ends_with_1_and_a_line_that_says_why_when_only_a_restart_can_help(tmp_path: Path) -> None:
    file = tmp_path / "federation.toml"
    file.write_text('dim = 2\nstate = "c.db"\nbind = "127.0.0.1:0"\ninsecure = true\n[algorithm]\nname = "DisLinUCB"\n')
    with subprocess.Popen(
        [*COMMAND, "serve", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        with sqlite3.connect(tmp_path / "c.db") as other:
            other.execute("DROP TABLE records")
        other.close()
        with Agent.join(address, name="a", state=tmp_path / "a.db", insecure=True, algorithm=DisLinUCB(), dim=2):
            _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert re.fullmatch(
        r"error: .*c\.db failed in a way that only a restart can judge .*start this again", said.splitlines()[-1]
    )
    assert "Traceback" not in said


# -- who is cut off ----------------------------------------------------------------------------------------------------


def welcomed(link: RawLink, name: str = "evil") -> Welcome:
    welcome = link.greet(name)
    assert isinstance(welcome, Welcome)
    return welcome


def rubbish(link: RawLink) -> None:
    link.send(b"rubbish" * 100)


def test_a_name_that_is_withdrawn_has_nothing_more_taken_and_no_link_though_it_reads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doors, "FAREWELL", 0.2)
    draw, dim = np.random.default_rng(0), 500
    plan = DisKernelUCB(D=1e9, together=False).plan(dim)

    def greeted(link: RawLink, name: str) -> Client:
        client = Client(plan, member=False, name=name)
        (hello,) = client.greet().send
        link.send(hello)
        client.receive(link.receive())
        return client

    def flush(link: RawLink, client: Client, *, count: int) -> None:
        client.learn(draw.normal(size=(count, dim)), np.ones(count))
        (upload,) = client.flush().send
        link.send(upload)

    with (
        Coordinator(plan, state=tmp_path / "c.db", serving=serving()) as there,
        RawLink(there.address, plan) as other,
        RawLink(there.address, plan) as link,
    ):
        flush(other, greeted(other, "b"), count=2000)
        until(lambda: there.status()["log"] == 2000)
        client = greeted(link, "a")
        flush(link, client, count=0)  # the answer to this is never read
        until(lambda: there.desk.traffic.of("down").bytes > 8 * 2000 * dim)
        there.allow(["b"])
        until(lambda: [each["status"] for each in there.status()["members"]] == ["present", "left"])
        flush(link, client, count=7)
        until(lambda: there.links == 1)
        assert there.status()["log"] == 2000


def another_version(link: RawLink) -> None:
    link.send(b"lc\x63" + b"\x00" * 10)


def before_greeting(link: RawLink) -> None:
    link.send(b"")


def of_no_plan(link: RawLink) -> None:
    welcomed(link)
    link.send(Upload(first=0, payload=Payload(values={"rewards": np.ones(1)}), ask=True))


def cut_off_later(link: RawLink) -> None:
    welcomed(link)
    link.send(b"lc\x02\x93\x03")


@pytest.mark.parametrize("attack", [rubbish, another_version, before_greeting, of_no_plan, cut_off_later])
def test_who_sends_what_no_client_sends_is_cut_off_alone(attack: Callable[[RawLink], None], tmp_path: Path) -> None:
    with coordinator(tmp_path) as there, joined(there, tmp_path) as agent:
        agent.flush()
        with raw(there) as link:
            attack(link)
            code, details = link.ended()
            assert code is grpc.StatusCode.ABORTED
            assert details
        until(lambda: there.links == 1)
        assert there.status()["counters"]["refused"] == 1
        assert there.status()["errors"]
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        agent.flush()
        assert agent.status().linked


def test_a_message_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    limits = Limits(message_bytes=100_000)
    with coordinator(tmp_path, limits=limits) as there, joined(there, tmp_path) as agent:
        with raw(there) as link:
            welcomed(link)
            link.send(b"lc\x02" + bytes(200_000))
            assert link.ended()[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        agent.flush()


def test_an_agent_whose_message_is_larger_than_the_coordinator_takes_leaves_and_both_sides_say_why(
    tmp_path: Path,
) -> None:
    with (
        coordinator(tmp_path, limits=Limits(message_bytes=2000)) as there,
        joined(there, tmp_path) as large,
        joined(there, tmp_path, name="b") as other,
    ):
        other.flush()
        large.learn(np.random.default_rng(0).uniform(-1, 1, (200, 2)), np.ones(200))
        with pytest.raises(LinkError, match=r"2,000 are allowed; raise limits\.message_bytes"):
            large.flush()
        until(lambda: any("a left: Part" in error for error in there.status()["errors"]))
        other.learn(ARMS, [1.0, 2.0, 3.0])
        other.flush()  # nobody waits for it
        until(lambda: there.links == 1)
        assert large.choose(ARMS).arm in range(3)
        status = large.status()
        assert (status.state, status.linked, status.observations) == ("outside", False, 200)
        assert "call reconnect()" in str(status.link_error)
        large.reconnect()  # it is the same again, and said again
        with pytest.raises(LinkError, match="are allowed"):
            large.flush()


def test_a_coordinator_that_does_not_say_its_limit_is_not_asked_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(methods, "told_most_bytes", lambda _, *, otherwise: otherwise)
    with coordinator(tmp_path, limits=Limits(message_bytes=2000)) as there, joined(there, tmp_path) as large:
        large.learn(np.random.default_rng(0).uniform(-1, 1, (200, 2)), np.ones(200))
        with pytest.raises(LinkError):
            large.flush(timeout=2.0)
        until(lambda: not large.status().linked)
        assert "larger than max" in str(large.status().link_error)
        assert there.desk.traffic.of("up").messages < 20


STATISTICS = {
    "NaN": ([[np.nan, 0.0], [0.0, 1.0]], [0.0, 0.0]),
    "indefinite": ([[0.1, 5.0], [5.0, 0.1]], [0.0, 0.0]),
    "asymmetric": ([[0.01, 0.02], [0.0, 0.04]], [0.0, 0.0]),
    "of another dimension": (np.eye(3), np.zeros(3)),
    "huge": ([[1e30, 0.0], [0.0, 1e30]], [0.0, 0.0]),
    "of sums that cannot be": ([[0.01, 0.02], [0.02, 0.04]], [50.0, 0.0]),
}


def bad_part(plan: Plan, kind: str) -> Payload:
    """What a member with one observation sends, with other statistics."""
    client = Client(plan)
    client.learn([[0.1, 0.2]], [1.0])
    client.receive(Ask(epoch=Label(0, 1), phase=0, fired=False))
    part = client.done(client.owed[0], client.owed[0].result()).send[0]
    assert isinstance(part, Part)
    G, b = (np.asarray(each, dtype=float) for each in STATISTICS[kind])
    (gram, was), (moment, _) = part.payload.values.items()
    assert was.shape == (2, 2)
    return msgspec.structs.replace(part.payload, values={gram: G, moment: b})


@pytest.mark.parametrize("kind", STATISTICS)
def test_statistics_that_cannot_be_harm_only_their_sender(kind: str, tmp_path: Path) -> None:
    algorithm = DisLinUCB(D=0.5)
    with (
        coordinator(tmp_path, algorithm=algorithm, patience=Patience(seconds=5.0 if kind == "NaN" else 60.0)) as there,
        joined(there, tmp_path, algorithm=algorithm) as agent,
        raw(there) as link,
    ):
        agent.flush()
        welcomed(link)
        agent.learn(ARMS, [1.0, 0.5, 0.2])
        flushed = threading.Thread(target=agent.flush)
        flushed.start()
        ask = asked(link)
        link.send(Part(epoch=ask.epoch, phase=0, upto=1, payload=bad_part(there.plan, kind)))
        flushed.join(60)
        assert not flushed.is_alive()
        assert agent.status().covered == 3
        assert [each["observations"] for each in there.status()["members"]] == [3, 0]
        alone = FiniteBelief.empty(embedding=LinearEmbedding(2), lam=there.plan.belief.lam)
        alone = alone.with_statistics(
            Statistics.of(alone.coordinates, np.array(ARMS), np.array([1.0, 0.5, 0.2])), added=True
        )
        mean = there.desk.server.belief.view(np.array(ARMS)).mean
        np.testing.assert_allclose(mean, alone.view(np.array(ARMS)).mean)


def test_points_that_a_member_cannot_own_harm_only_their_sender(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    algorithm = ApproxDisKernelUCB(Gaussian(1.0), D=0.5, qbar=5.0)
    with (
        coordinator(tmp_path, algorithm=algorithm, patience=Patience(seconds=60.0)) as there,
        joined(there, tmp_path, algorithm=algorithm) as agent,
        raw(there) as link,
    ):
        agent.flush()
        welcomed(link)
        agent.learn(ARMS, [1.0, 0.5, 0.2])
        flushed = threading.Thread(target=agent.flush)
        flushed.start()
        ask = asked(link)
        many = Payload(values={"points": np.zeros((3000, 2)), "rewards": np.zeros(3000)})
        link.send(Part(epoch=ask.epoch, phase=0, upto=1, payload=many))
        flushed.join(60)
        assert agent.status().covered == 3
        assert [each["observations"] for each in there.status()["members"]] == [3, 0]
        assert (there.status()["dictionary"] or 0) <= 3
        assert there.status()["counters"]["set_aside"] == 1
        assert any("was set aside: 3000 points" in line for line in there.status()["errors"])
        assert any("3000 points are proposed" in getattr(record, "reason", "") for record in caplog.records)


def asked(link: RawLink) -> Ask:
    """The next time that this member is asked for its part."""
    while not isinstance(message := link.receive(), Ask):
        pass
    return message


def one_upload(dim: int) -> Upload:
    """What a member of LaconicUCB sends of its first observation."""
    client = Client(LaconicUCB().plan(dim))
    client.learn(np.full((1, dim), 0.25), [1.0])
    (upload,) = client.flush().send
    assert isinstance(upload, Upload)
    return upload


UPLOADS: dict[str, Callable[[], bytes | Upload]] = {
    "observations before which others lack": lambda: msgspec.structs.replace(one_upload(2), first=7),
    "points of another dimension": lambda: Codec(LaconicUCB().plan(3)).encode(one_upload(3)),
    "points without rewards": lambda: msgspec.structs.replace(
        one_upload(2), payload=Payload(values={"rewards": np.ones(9)})
    ),
    "rewards that are no numbers": lambda: msgspec.structs.replace(
        one_upload(2),
        payload=msgspec.structs.replace(
            one_upload(2).payload, values={**one_upload(2).payload.values, "rewards": np.array([np.nan])}
        ),
    ),
}


@pytest.mark.parametrize("kind", UPLOADS)
def test_uploads_that_cannot_be_set_their_sender_aside_and_are_in_nobodys_belief(kind: str, tmp_path: Path) -> None:
    algorithm = LaconicUCB()
    with (
        coordinator(tmp_path, algorithm=algorithm) as there,
        joined(there, tmp_path, algorithm=algorithm) as agent,
        raw(there) as link,
    ):
        agent.flush()
        welcomed(link)
        link.send(UPLOADS[kind]())
        until(lambda: there.status()["members"][1]["status"] != "present")
        agent.learn(ARMS, [1.0, 0.5, 0.2])
        agent.flush()
        assert agent.status().linked
        assert (there.status()["log"], there.status()["observations"]) == (3, 3)


def test_a_flood_of_requests_keeps_nobody_else_from_being_served(tmp_path: Path) -> None:
    with coordinator(tmp_path) as there, joined(there, tmp_path) as agent, raw(there) as link:
        welcomed(link)
        for _ in range(3000):
            link.send(Request(epoch=Label(1, 1)))
        for step in range(3):
            agent.learn(ARMS, [1.0, 2.0, float(step)])
            agent.status()
        until(lambda: agent.status().linked)
        until(lambda: there.status()["counters"]["dropped"] >= 1000)


def test_no_more_members_and_links_than_are_allowed(tmp_path: Path) -> None:
    with coordinator(tmp_path, limits=Limits(members=1, links=2)) as there, joined(there, tmp_path) as one:
        until(lambda: one.status().linked)
        with joined(there, tmp_path, name="b") as two:
            until(lambda: "no more are allowed" in (two.status().link_error or ""))
        assert there.status()["counters"]["refused"] >= 1
        assert there.status()["errors"][0].startswith("b was refused: ")
        until(lambda: there.links == 1)
        with raw(there):
            until(lambda: there.links == 2)
            with raw(there) as one_too_many:
                assert one_too_many.ended()[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert one.status().linked


def test_links_on_which_nobody_greets_lock_nobody_out_in_plaintext(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING", logger="laconic.coordinator")
    with coordinator(tmp_path, limits=Limits(links=6), http="127.0.0.1:0") as there, ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(raw(there))
        until(lambda: there.doors.refused == 5 and there.links == 3)  # half of all
        with joined(there, tmp_path) as agent:
            agent.flush()
            assert agent.status().linked
        counted = there.status()["counters"]["refused_links"]
        assert counted >= 6
        assert f"laconic_refused_links_total {counted}\n" in answer(there, "/metrics")[1]
    assert [each.message for each in caplog.records] == ["link refused"]  # once in a while, however many there are


def test_a_link_that_ends_before_it_has_begun_is_not_counted(tmp_path: Path) -> None:
    class Gone:
        """What a handler sees of a stream that was reset at once, which no test could bring about on time."""

        def auth_context(self) -> dict[str, list[bytes]]:
            return {}

        async def send_initial_metadata(self, _: object) -> None:
            raise asyncio.CancelledError

    with coordinator(tmp_path) as there:
        for _ in range(3):
            background().run(there._link(None, Gone()))
        assert there.links == 0


def test_how_many_bytes_the_other_side_takes_is_read_whichever_way_metadata_are_a_mapping() -> None:
    class Older(grpc.aio.Metadata):  # type: ignore[misc]
        """As grpcio below 1.80 has it: its keys are pairs."""

        def keys(self) -> Any:
            return KeysView(self)

    said = ((methods.MOST_BYTES_KEY, "2000"),)
    for metadata in (Older(*said), grpc.aio.Metadata(*said), said):
        assert methods.told_most_bytes(metadata, otherwise=9000) == 2000
        assert methods.told_most_bytes(metadata, otherwise=1000) == 1000
    for silent in (None, (), ((methods.MOST_BYTES_KEY, "many"),), ((methods.MOST_BYTES_KEY, b"20"),)):
        assert methods.told_most_bytes(silent, otherwise=9000) == 9000


def test_a_link_on_which_nobody_greets_is_ended(tmp_path: Path) -> None:
    with coordinator(tmp_path, limits=Limits(greeting_seconds=0.1)) as there, raw(there) as link:
        code, details = link.ended()
        assert code is grpc.StatusCode.ABORTED
        assert "nobody greeted" in details


def test_a_greeting_takes_the_place_of_that_names_earlier_link_which_is_told(tmp_path: Path) -> None:
    with coordinator(tmp_path) as there, raw(there) as old, raw(there) as new:
        welcomed(old, "a")
        welcomed(new, "a")
        told = old.receive()
        while not isinstance(told, SetAside):
            told = old.receive()
        assert told.final
        assert old.ended()[0] is grpc.StatusCode.ABORTED
        until(lambda: there.links == 1)


# -- while work is under way -------------------------------------------------------------------------------------------


def test_joins_and_health_are_answered_while_a_merge_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, over = threading.Event(), threading.Event()
    result = Work.result

    def slow(self: Work, *share: Any) -> Any:
        if threading.current_thread().name.startswith("laconic-merge"):
            begun.set()
            over.wait(60)
        return result(self, *share)

    monkeypatch.setattr(Work, "result", slow)
    with coordinator(tmp_path) as there, joined(there, tmp_path) as agent:
        until(lambda: agent.status().linked)
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        flushed = threading.Thread(target=agent.flush)
        flushed.start()
        assert begun.wait(60)
        with joined(there, tmp_path, name="b") as newcomer:
            until(lambda: newcomer.status().linked)
            with grpc.insecure_channel(there.address) as channel:
                check = channel.unary_unary(methods.path(methods.HEALTH, methods.CHECK))
                assert check(b"", timeout=30) == methods.SERVING
            assert there.status()["state"] == "merging"
            agent.choose(ARMS)
            over.set()
            flushed.join(60)
            assert agent.status().covered == 3


# -- state -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [DIS, LaconicUCB()], ids=["together", "alone"])
def test_a_restart_resumes_with_all_members_and_observations(algorithm: Algorithm, tmp_path: Path) -> None:
    for start in range(3):
        with coordinator(tmp_path, algorithm=algorithm) as there, joined(there, tmp_path, algorithm=algorithm) as agent:
            assert [each["name"] for each in there.status()["members"]] == ([] if start == 0 else ["a"])
            agent.learn(ARMS, [1.0, 2.0, float(start)])
            agent.flush()
            assert there.status()["observations"] == 3 * (start + 1)


def test_two_coordinators_on_one_state_or_one_port_are_refused(tmp_path: Path) -> None:
    with coordinator(tmp_path) as there:
        with pytest.raises(StateError, match="in use"):
            coordinator(tmp_path)
        (tmp_path / "x").mkdir()
        with pytest.raises(LinkError, match=f"on {there.address}: address already in use; try another port"):
            coordinator(tmp_path / "x", bind=there.address).start()
    with pytest.raises(StateError, match="another plan"):
        coordinator(tmp_path, algorithm=DisLinUCB())


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE songs (title TEXT)")
    other.close()


def newer(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version=99")
    other.close()


def damaged(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096 : 4096 + 2000] = b"\xff" * 2000
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("spoilt", "words"),
    [(foreign, "another program"), (newer, "upgrade"), (damaged, "damaged|cannot be read")],
    ids=["foreign", "newer", "damaged"],
)
def test_serve_refuses_a_state_file_in_a_line_and_leaves_it_as_it_is(
    spoilt: Callable[[Path], None], words: str, tmp_path: Path
) -> None:
    if spoilt is not foreign:
        with coordinator(tmp_path) as there, joined(there, tmp_path) as agent:
            agent.learn(ARMS, [1.0, 2.0, 3.0])
            agent.flush()
    spoilt(tmp_path / "c.db")
    before = (tmp_path / "c.db").read_bytes()
    file = tmp_path / "federation.toml"
    file.write_text(
        'dim = 2\nstate = "c.db"\nbind = "127.0.0.1:0"\ninsecure = true\n[algorithm]\nname = "DisKernelUCB"\nD = 2.0\n'
        'kernel = { name = "Gaussian", gamma = 1.0 }\n'
    )
    done = subprocess.run([*COMMAND, "serve", str(file)], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(words, done.stderr)
    assert "Traceback" not in done.stderr
    assert (tmp_path / "c.db").read_bytes() == before


def test_a_full_disk_ends_links_changes_nothing_and_passes(tmp_path: Path) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    with coordinator(tmp_path) as there, joined(there, tmp_path) as agent:
        agent.flush()
        before = there.status()["observations"]
        store = there.desk.store
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count={pages}")
        agent.learn(np.random.default_rng(0).uniform(-1, 1, (2000, 2)), np.ones(2000))
        with pytest.raises(LinkError, match=r"not answered|cannot store"):
            agent.flush(timeout=1.5)
        until(lambda: there.status()["counters"]["failed_commits"] >= 1)
        assert there.status()["observations"] == before
        store._connection.execute(f"PRAGMA max_page_count={pages + 10_000}")
        agent.reconnect()
        agent.flush(timeout=60.0)
        assert there.status()["observations"] == 2000
    with coordinator(tmp_path) as there:
        assert there.status()["observations"] == 2000
        assert hard == resource.getrlimit(resource.RLIMIT_FSIZE)[1]


def test_a_snapshot_that_cannot_be_stored_is_tried_now_and_then_and_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    later, monotonic = [0.0], time.monotonic
    monkeypatch.setattr(retrying, "time", SimpleNamespace(monotonic=lambda: monotonic() + later[0]))
    algorithm = LaconicUCB()
    with (
        coordinator(tmp_path, algorithm=algorithm, tick=0.02, http="127.0.0.1:0") as there,
        joined(there, tmp_path, algorithm=algorithm) as agent,
    ):
        agent.learn(np.random.default_rng(0).uniform(-1, 1, (1500, 2)), np.ones(1500))
        agent.flush()
        settle(there, [agent])
        desk, connection = there.desk, there.desk.store._connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages + 8}")  # room for what is flushed, and not for a snapshot
        monkeypatch.setattr(stores, "RECORD_BYTES", 2**60)
        until(lambda: there.status()["counters"]["failed_snapshots"] == 1)
        passed = desk._done
        until(lambda: desk._done > passed + 50)
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        agent.flush()
        counters = there.status()["counters"]
        assert (counters["failed_snapshots"], counters["failed_commits"], counters["snapshots"]) == (1, 0, 0)
        assert there.status()["observations"] == 1503
        assert ["full" in line for line in there.status()["errors"]] == [True]
        assert "laconic_failed_snapshots_total 1\n" in answer(there, "/metrics")[1]
        later[0] += retrying.FIRST + 1
        until(lambda: there.status()["counters"]["failed_snapshots"] == 2)
        later[0] += retrying.FIRST + 1  # the pause is longer now
        passed = desk._done
        until(lambda: desk._done > passed + 20)
        said = [each for each in caplog.records if each.msg == "a snapshot could not be stored"]
        assert len(said) == there.status()["counters"]["failed_snapshots"] == 2
        connection.execute(f"PRAGMA max_page_count={pages + 10_000}")
        later[0] += retrying.FIRST + 1
        until(lambda: there.status()["counters"]["snapshots"] == 1)
    with coordinator(tmp_path, algorithm=algorithm) as there:
        assert there.status()["observations"] == 1503


def test_settings_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    all_wrong: tuple[dict[str, Any], ...] = (
        *({"bind": "here"}, {"bind": "127.0.0.1:99999"}, {"bind": "..:1"}, {"tick": 0.0}, {"tls": "certs"}),
        *({"http": each} for each in ("x", "..:1", "ü..x:1", "a\0b:1", "[::1:1", "a b:1")),
    )
    for wrong in all_wrong:
        with pytest.raises(InputError):
            serving(**wrong)
    assert BLANK == Label(0, 0)


def test_who_is_away_and_not_let_in_counts_as_having_left_and_may_be_let_in_again(tmp_path: Path) -> None:
    def statuses(there: Coordinator) -> dict[str, str]:
        return {member["name"]: member["status"] for member in there.status()["members"]}

    with coordinator(tmp_path) as there:
        for name in ("a", "b", "d"):
            with joined(there, tmp_path, name=name) as agent:
                agent.learn(ARMS, [1.0, 2.0, 3.0])
                agent.flush()
        until(lambda: set(statuses(there).values()) == {"away"})
        assert there.desk.server.hub.clients == 3
        there.allow(None, gone=["a"])
        until(lambda: statuses(there) == {"a": "left", "b": "away", "d": "away"})
        there.allow(["a", "b"])
        until(lambda: statuses(there) == {"a": "left", "b": "away", "d": "left"})
        assert there.desk.server.hub.clients == 1
        with joined(there, tmp_path, name="b") as agent:
            agent.flush()
            there.allow(["a"])  # its link ends, and then it counts as having left
            until(lambda: statuses(there)["b"] == "left")
        with joined(there, tmp_path, name="a") as agent:
            agent.flush()
            assert agent.status().observations == agent.status().covered == 3
            assert statuses(there)["a"] == "present"
    with coordinator(tmp_path, gone=frozenset({"a"})) as there:
        until(lambda: statuses(there) == {"a": "left", "b": "left", "d": "left"})
        with joined(there, tmp_path, name="a") as agent:
            until(lambda: "not among the names" in (agent.status().link_error or ""))


def test_who_greets_while_its_name_is_withdrawn_is_not_let_in_for_as_long_as_its_link_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with coordinator(tmp_path) as there:
        refusal = there.desk._refusal

        def late(*arguments: Any) -> str | None:
            said = refusal(*arguments)
            there.allow(None, gone=["a"])  # before the one who is let in is known to have a link
            return said

        monkeypatch.setattr(there.desk, "_refusal", late)
        with joined(there, tmp_path, name="a"):
            until(lambda: [member["status"] for member in there.status()["members"]] == ["left"])


def test_names_are_a_list_and_not_one_text_of_which_each_letter_would_be_a_name(tmp_path: Path) -> None:
    for wrong in ("allowed", "gone", "members"):
        with pytest.raises(InputError, match=rf"{wrong} must be a list of names, not the text 'edge-1'; try {wrong}="):
            serving(**{wrong: "edge-1"})
        with pytest.raises(InputError, match=f"{wrong} must be a list of names"):
            serving(**{wrong: ""})
    with pytest.raises(InputError, match="members has 'edge-1' more than once"):
        serving(members=("edge-1", "edge-2", "edge-1"))  # its state file could never be read again
    with pytest.raises(InputError, match=r"there are 2 members, and limits.members is 1; try Limits\(members=2\)"):
        serving(members=("edge-1", "edge-2"), limits=Limits(members=1))
    with coordinator(tmp_path) as there:
        with pytest.raises(InputError, match="names must be a list of names"):
            there.allow("edge-1")
        assert there.desk.allowed is None


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"name": "DisLinUCB", "D": 2.0, "lam": 0.5}, "lam is 0.2 here and 0.5 there"),
        ({"name": "DisLinUCB", "D": 3.0, "lam": 0.2}, "trigger.D is 2 here and 3 there"),
        ({"name": "Random"}, "belief is LinearEmbedding here and BlankEmbedding there"),
        (DisLinUCB(D=2.0), "algorithm must be a table, not DisLinUCB"),
        ({}, "a table of algorithm needs a name"),
    ],
    ids=["lam", "D", "another", "value", "empty"],
)
def test_a_coordinator_is_not_made_of_a_plan_and_a_table_that_says_another(
    table: Any, said: str, tmp_path: Path
) -> None:
    plan = DisLinUCB(D=2.0, lam=0.2).plan(2)
    with pytest.raises(InputError) as refused:
        Coordinator(plan, state=tmp_path / "c.db", serving=serving(), algorithm=table)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_join_is_answered_while_a_large_part_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desks, "LARGE", 1)  # every message is read beside events
    checking, goes_on = threading.Event(), threading.Event()
    with coordinator(tmp_path) as there:
        vet = there.desk.server.vet

        def slow(message: Any) -> Any:
            if isinstance(message, Part):
                checking.set()
                assert goes_on.wait(60)
            return vet(message)

        monkeypatch.setattr(there.desk.server, "vet", slow)
        with joined(there, tmp_path, name="a") as first:
            first.learn([[0.1, 0.2]], [1.0])
            flushing = threading.Thread(target=first.flush)
            flushing.start()
            assert checking.wait(60)
            with joined(there, tmp_path, name="b") as second:
                until(lambda: second.status().linked)
                assert first.status().state == "syncing"
                goes_on.set()
                flushing.join(60)
                assert first.status().epoch > 0


class Breaking(Codec):
    """Has a mistake of its own, which some bytes bring about."""

    def decode(self, data: bytes, known: Carried | None = None) -> Any:
        return 1 / 0 if data == b"surprise" else super().decode(data, known)


@pytest.mark.parametrize("large", [1, desks.LARGE])
def test_bytes_that_bring_about_a_mistake_of_ours_end_their_link_alone(
    large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desks, "LARGE", large)
    with coordinator(tmp_path) as there, joined(there, tmp_path) as agent:
        monkeypatch.setattr(there.desk, "_codec", Breaking(there.plan))
        with raw(there) as link:
            welcomed(link)
            link.send(b"surprise")
            assert "ZeroDivisionError" in link.ended()[1]
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        agent.flush()
        assert agent.status().covered == 3


@pytest.mark.parametrize("verb", ["done", "tick", "lose"])
def test_a_mistake_of_ours_in_an_event_that_no_message_brought_is_said_and_the_federation_goes_on(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = Patience(seconds=1.0)  # a member whose loss went unnoticed is left out soon
    with coordinator(tmp_path, patience=patience) as there, joined(there, tmp_path) as agent:
        agent.flush()
        broken, sound = threading.Event(), getattr(there.desk.server, verb)

        def breaks_once(*arguments: Any) -> Any:
            if broken.is_set():
                return sound(*arguments)
            broken.set()
            return 1 / 0

        monkeypatch.setattr(there.desk.server, verb, breaks_once)
        with raw(there) as link:  # a link that goes away
            welcomed(link, name="b")
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        until(lambda: is_flushed(agent) and broken.is_set() and agent.status().covered == 3)
        until(lambda: any("ZeroDivisionError" in each for each in there.desk.errors))


def test_agents_of_one_process_hold_one_belief_in_memory(tmp_path: Path) -> None:
    with (
        coordinator(tmp_path) as there,
        joined(there, tmp_path, name="a") as first,
        joined(there, tmp_path, name="b") as second,
    ):
        until(lambda: second.status().linked)
        first.learn([[0.1, 0.2]], [1.0])
        first.flush()
        until(lambda: second.status().epoch == first.status().epoch)
        beliefs = [agent.look(lambda client: client.learner.belief) for agent in (first, second)]
        assert beliefs[0] is beliefs[1]
        assert first.status().covered == 1
