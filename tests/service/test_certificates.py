"""Certificates: what ``laconic certs`` makes, and who is kept out of a federation."""

import shutil
import stat
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from cryptography import x509

from laconic import TLS, Agent, DisLinUCB
from laconic.errors import InputError, LinkError
from laconic.runtimes.service import authority, joining, methods
from laconic.runtimes.service.authority import certify
from laconic.runtimes.service.coordinator import Coordinator, Limits, Serving
from laconic.runtimes.service.doors import MOST_EACH, MOST_SILENT, Door, Doors
from laconic.runtimes.service.examining import expiry
from laconic.runtimes.service.onlookers import MOST_STREAMS_EACH
from laconic.runtimes.service.security import channel_credentials
from tests.service.settling import until

ALGORITHM = DisLinUCB(D=1.0)
TABLE = {"name": "DisLinUCB", "D": 1.0}


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certs")
    certify(folder, ["coordinator", "a", "b"])
    return folder


def coordinator(certs: Path, folder: Path, **options: object) -> Coordinator:
    tls = TLS.of(certs, "coordinator")
    serving = Serving(bind="localhost:0", tls=tls, **options)  # type: ignore[arg-type]
    return Coordinator(ALGORITHM.plan(2), state=folder / "c.db", serving=serving, algorithm=TABLE)


def joined(there: Coordinator, folder: Path, tls: TLS, *, name: str = "a", wait: float = 20.0) -> Agent:
    return Agent.join(there.address, name=name, state=folder / f"{name}.db", tls=tls, wait=wait)


def test_keys_are_for_their_owner_alone_and_certificates_stay_until_they_are_renewed(tmp_path: Path) -> None:
    made = certify(tmp_path / "x", ["coordinator", "a"])
    assert [each.name for each in made] == ["ca.key", "ca.crt", "coordinator.key", "coordinator.crt", "a.key", "a.crt"]
    for key in tmp_path.glob("x/*.key"):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = (tmp_path / "x/a.crt").read_bytes()
    assert certify(tmp_path / "x", ["a"]) == []
    assert (tmp_path / "x/a.crt").read_bytes() == before
    renewed = certify(tmp_path / "x", ["a"], renew=True, valid=timedelta(days=30))
    assert [each.name for each in renewed] == ["a.key", "a.crt"]
    assert timedelta(days=29) < expiry(tmp_path / "x/a.crt") - datetime.now(UTC) < timedelta(days=31)


def test_a_renewed_certificate_has_the_hosts_of_the_one_before_and_those_given_now(tmp_path: Path) -> None:
    def hosts() -> list[str]:
        certificate = x509.load_pem_x509_certificate((tmp_path / "coordinator.crt").read_bytes())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return sorted(str(each.value) for each in names)

    certify(tmp_path, ["coordinator"], hosts=["bandit.internal", "10.0.0.7"])
    first = hosts()
    assert {"bandit.internal", "10.0.0.7", "coordinator"} <= set(first)
    certify(tmp_path, ["coordinator"], hosts=["bandit.internal"], renew=True)
    assert hosts() == first
    certify(tmp_path, ["coordinator"], hosts=["::1"], renew=True)
    assert hosts() == sorted([*first, "::1"])


def test_a_certificate_that_cannot_be_read_is_renewed_all_the_same(tmp_path: Path) -> None:
    certify(tmp_path, ["coordinator"])
    (tmp_path / "coordinator.crt").write_text("spoilt")
    assert len(certify(tmp_path, ["coordinator"], renew=True)) == 2


@pytest.mark.parametrize("name", ["ca", "../a", "", ".a", "a b", "x" * 65])
def test_a_name_that_is_no_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        certify(tmp_path, [name])
    assert list(tmp_path.iterdir()) == []


def test_agents_join_under_the_names_of_their_certificates(certs: Path, tmp_path: Path) -> None:
    with coordinator(certs, tmp_path) as there, joined(there, tmp_path, TLS.of(certs, "a")) as agent:
        agent.learn([[0.1, 0.2]], [1.0])
        agent.flush()
        assert [each["name"] for each in there.status()["members"]] == ["a"]
        assert there.status()["observations"] == 1


def test_a_missing_certificate_is_said_before_anything_begins(certs: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read the TLS certificate.*laconic certs"):
        Agent.join("localhost:1", name="z", state=tmp_path / "z.db", tls=TLS.of(certs, "z"))
    with pytest.raises(InputError, match="tls is not given"):
        Serving(bind="127.0.0.1:0")
    with pytest.raises(InputError, match="only this machine"):
        Serving(bind="0.0.0.0:0", insecure=True)
    with pytest.raises(InputError, match="only this machine"):
        Agent.join("bandit.internal:7443", name="z", state=tmp_path / "z.db", insecure=True)
    with pytest.raises(InputError, match="give tls"):
        Agent.join("127.0.0.1:7443", name="z", state=tmp_path / "z.db")


def refused(there: Coordinator, folder: Path, tls: TLS, words: str, *, name: str = "a") -> None:
    """An agent that has its plan is not linked and says why, and goes on alone."""
    with Agent.join(
        there.address, name=name, state=folder / f"{name}.db", tls=tls, algorithm=ALGORITHM, dim=2
    ) as agent:
        until(lambda: words in (agent.status().link_error or ""))
        agent.observe(agent.choose([[0.1, 0.2], [0.3, 0.4]]), 1.0)
        with pytest.raises(LinkError, match="kept here"):
            agent.flush(timeout=0.2)
        assert not agent.status().linked
    assert there.status()["members"] == []


def test_who_shows_no_certificate_is_not_let_in_and_others_are(certs: Path, tmp_path: Path) -> None:
    with coordinator(certs, tmp_path) as there:
        bare = grpc.ssl_channel_credentials((certs / "ca.crt").read_bytes())
        with grpc.secure_channel(there.address, bare) as channel:
            describe = channel.unary_unary(methods.path(methods.SERVICE, methods.DESCRIBE))
            with pytest.raises(grpc.RpcError) as refusal:
                describe(b"", timeout=60)
        assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
        with joined(there, tmp_path, TLS.of(certs, "a")) as agent:
            agent.flush()
            assert agent.status().linked


def test_the_certificate_of_another_authority_is_refused(certs: Path, tmp_path: Path) -> None:
    certify(tmp_path / "foreign", ["a"])
    foreign = TLS(certs / "ca.crt", tmp_path / "foreign/a.crt", tmp_path / "foreign/a.key")
    with coordinator(certs, tmp_path) as there:
        refused(there, tmp_path, foreign, "not of the authority that is believed here")


def test_a_coordinator_of_another_authority_is_not_believed(certs: Path, tmp_path: Path) -> None:
    certify(tmp_path / "foreign", ["a", "new"])
    with coordinator(certs, tmp_path) as there:
        refused(there, tmp_path, TLS.of(tmp_path / "foreign", "a"), "unable to get local issuer certificate")
        with pytest.raises(LinkError, match=r"unable to get local issuer.*give algorithm and dim"):
            joined(there, tmp_path, TLS.of(tmp_path / "foreign", "new"), name="new", wait=0.5)


def test_an_expired_certificate_is_refused(certs: Path, tmp_path: Path) -> None:
    for name in ("ca.crt", "ca.key"):
        (tmp_path / name).write_bytes((certs / name).read_bytes())
    certify(tmp_path, ["a"], valid=-timedelta(days=1))
    with coordinator(certs, tmp_path) as there:
        refused(there, tmp_path, TLS.of(tmp_path, "a"), "the certificate expired on")


def test_an_agents_certificate_cannot_stand_for_a_coordinator(certs: Path, tmp_path: Path) -> None:
    serving = Serving(bind="localhost:0", tls=TLS.of(certs, "b"))
    with pytest.raises(InputError, match="cannot stand for coordinators"):
        Coordinator(ALGORITHM.plan(2), state=tmp_path / "c.db", serving=serving).start()
    with pytest.raises(InputError, match="cannot stand for agents"):
        Agent.join("localhost:1", name="coordinator", state=tmp_path / "z.db", tls=TLS.of(certs, "coordinator"))


JUNK = "-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ("another key", "is not that of the certificate"),
        ("swapped", "the TLS certificate .* cannot be read"),
        ("junk key", "the TLS key .* cannot be read"),
        ("junk authority", "the TLS authority .* cannot be read"),
    ],
)
def test_files_that_tls_cannot_use_are_named_before_anything_is_served_or_linked(
    certs: Path, tmp_path: Path, which: str, words: str
) -> None:
    junk = tmp_path / "junk"
    junk.write_text(JUNK)

    def wrong(name: str) -> TLS:
        good = TLS.of(certs, name)
        return {
            "another key": replace(good, key=certs / "b.key"),
            "swapped": replace(good, key=good.certificate, certificate=good.key),
            "junk key": replace(good, key=junk),
            "junk authority": replace(good, authority=junk),
        }[which]

    serving = Serving(bind="localhost:0", tls=wrong("coordinator"))
    with pytest.raises(InputError, match=words):
        Coordinator(ALGORITHM.plan(2), state=tmp_path / "c.db", serving=serving).start()
    with pytest.raises(InputError, match=words):
        Agent.join("localhost:1", name="a", state=tmp_path / "a.db", tls=wrong("a"), algorithm=ALGORITHM, dim=2)
    assert not (tmp_path / "a.db").exists()


def test_a_greeting_under_another_name_than_the_certificates_is_refused(certs: Path, tmp_path: Path) -> None:
    with coordinator(certs, tmp_path) as there:
        own = TLS(certs / "ca.crt", tmp_path / "own.crt", tmp_path / "own.key")
        shown_as(own, certs, "a")
        with joined(there, tmp_path, own) as agent:
            until(lambda: agent.status().linked)
            shown_as(own, certs, "b")
            there.allow({"b"})  # cuts the link, and lets in whom the new certificate is of
            words = "the certificate is of 'b', and the greeting says 'a'"
            until(lambda: words in (agent.status().link_error or ""))
        assert there.status()["counters"]["refused"] >= 1


def shown_as(own: TLS, certs: Path, name: str) -> None:
    """Put a name's certificate and key where an agent has its own."""
    Path(own.certificate).write_bytes((certs / f"{name}.crt").read_bytes())
    Path(own.key).write_bytes((certs / f"{name}.key").read_bytes())


def flooded(channel: grpc.Channel, closed: threading.Event, *, links: int) -> list[grpc.Call]:
    """Streams on which nobody greets."""

    def nothing() -> Iterator[bytes]:
        closed.wait(120)
        yield from ()

    link = channel.stream_stream(methods.path(methods.SERVICE, methods.LINK))
    return [link(nothing()) for _ in range(links)]


def test_a_member_that_makes_links_and_never_greets_locks_out_neither_others_nor_itself(
    certs: Path, tmp_path: Path
) -> None:
    credentials = channel_credentials(TLS.of(certs, "b"))
    closed = threading.Event()
    with (
        coordinator(certs, tmp_path, limits=Limits(links=20)) as there,
        grpc.secure_channel(there.address, credentials) as channel,
    ):
        flood = flooded(channel, closed, links=30)
        until(lambda: there.doors.refused == len(flood) - MOST_SILENT)
        until(lambda: there.links == MOST_SILENT)
        for name in "ab":
            with joined(there, tmp_path, TLS.of(certs, name), name=name) as agent:
                agent.flush()
        closed.set()


def watched(channel: grpc.Channel) -> grpc.Call:
    return channel.unary_stream(methods.path(methods.HEALTH, methods.WATCH))(b"", timeout=60)


def refusal_of(watch: grpc.Call) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as refused:
        next(watch)
    code: grpc.StatusCode = refused.value.code()
    return code


def test_a_member_that_watches_the_health_on_many_streams_has_a_few_and_others_theirs(
    certs: Path, tmp_path: Path
) -> None:
    with (
        coordinator(certs, tmp_path, limits=Limits(links=MOST_STREAMS_EACH + 1)) as there,
        grpc.secure_channel(there.address, channel_credentials(TLS.of(certs, "b"))) as many,
        grpc.secure_channel(there.address, channel_credentials(TLS.of(certs, "a"))) as other,
    ):
        served = [watched(many) for _ in range(MOST_STREAMS_EACH)]
        assert {next(each) for each in served} == {methods.SERVING}
        assert {refusal_of(watched(many)) for _ in range(20)} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        one = watched(other)
        assert next(one) == methods.SERVING
        assert refusal_of(watched(other)) is grpc.StatusCode.RESOURCE_EXHAUSTED  # as many as there may be in all
        served.pop().cancel()
        until(lambda: there.onlookers.count == MOST_STREAMS_EACH)
        assert next(watched(many)) == methods.SERVING


def test_a_name_that_is_not_let_in_may_not_watch_the_health_and_one_that_is_withdrawn_no_more(
    certs: Path, tmp_path: Path
) -> None:
    with (
        coordinator(certs, tmp_path, allowed=frozenset({"b"})) as there,
        grpc.secure_channel(there.address, channel_credentials(TLS.of(certs, "a"))) as stranger,
        grpc.secure_channel(there.address, channel_credentials(TLS.of(certs, "b"))) as member,
    ):
        assert refusal_of(watched(stranger)) is grpc.StatusCode.PERMISSION_DENIED
        watch = watched(member)
        assert next(watch) == methods.SERVING
        there.allow({"a"})
        assert refusal_of(watch) is grpc.StatusCode.PERMISSION_DENIED
        let_in = watched(stranger)
        assert next(let_in) == methods.SERVING
        until(lambda: there.onlookers.count == 1)


def test_who_greets_again_and_again_and_reads_nothing_has_a_few_links_at_most() -> None:
    doors = Doors(100)
    slow = [Door(number, "b") for number in range(MOST_EACH + 1)]
    for each in slow[:-1]:
        assert doors.admit(each) is None
        each.is_silent = False
        each.end("another has its place")  # which is behind what it does not read
    assert doors.admit(slow[-1]) == f"there are {MOST_EACH} links of 'b' already"
    assert doors.admit(Door(1000, "a")) is None


def test_a_certificate_without_a_name_is_nobodys(tmp_path: Path, certs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authority, "_common_name", lambda _: x509.Name([]))
    monkeypatch.setattr(joining, "require_own", lambda *_, **__: None)
    shutil.copytree(certs, tmp_path / "certs")
    certify(tmp_path / "certs", ["nameless"])
    with coordinator(certs, tmp_path) as there:
        refused(there, tmp_path, TLS.of(tmp_path / "certs", "nameless"), "the certificate is of ''")


def test_a_certificate_of_another_name_is_refused_before_anything_begins(certs: Path, tmp_path: Path) -> None:
    state = tmp_path / "a.db"
    with pytest.raises(InputError, match=r"name is 'a', and the TLS certificate .*b\.crt has the name 'b'; give"):
        Agent.join("localhost:1", name="a", state=state, tls=TLS.of(certs, "b"), algorithm=ALGORITHM, dim=2)
    (tmp_path / "odd.crt").write_bytes(b"-----BEGIN CERTIFICATE-----\nrubbish\n-----END CERTIFICATE-----\n")
    odd = TLS(certs / "ca.crt", tmp_path / "odd.crt", certs / "a.key")
    with pytest.raises(InputError, match=r"odd\.crt cannot be read"):
        Agent.join("localhost:1", name="a", state=state, tls=odd, algorithm=ALGORITHM, dim=2)
    assert not state.exists()


def test_a_name_that_is_not_allowed_is_refused_and_let_in_once_it_is(certs: Path, tmp_path: Path) -> None:
    with coordinator(certs, tmp_path, allowed=frozenset({"b"})) as there:
        refused(there, tmp_path, TLS.of(certs, "a"), "not among the names")
        there.allow(["a", "b"])
        with joined(there, tmp_path, TLS.of(certs, "a")) as agent:
            agent.flush()
            assert there.status()["observations"] == 1


def test_a_name_that_is_revoked_is_cut_off_and_others_stay(certs: Path, tmp_path: Path) -> None:
    with (
        coordinator(certs, tmp_path) as there,
        joined(there, tmp_path, TLS.of(certs, "a")) as one,
        joined(there, tmp_path, TLS.of(certs, "b"), name="b") as other,
    ):
        until(lambda: one.status().linked and other.status().linked)
        there.allow({"b"})
        until(lambda: "no longer among the names" in (one.status().link_error or ""))
        other.learn([[0.1, 0.2]], [1.0])
        other.flush()
        assert other.status().linked


def test_certificates_that_are_renewed_are_shown_to_new_links(tmp_path: Path) -> None:
    certify(tmp_path / "x", ["coordinator", "a"], valid=timedelta(seconds=-5))
    with (
        coordinator(tmp_path / "x", tmp_path) as there,
        Agent.join(
            there.address,
            name="a",
            state=tmp_path / "a.db",
            tls=TLS.of(tmp_path / "x", "a"),
            algorithm=ALGORITHM,
            dim=2,
        ) as agent,
    ):
        until(lambda: "expired" in (agent.status().link_error or ""))
        certify(tmp_path / "x", ["coordinator", "a"], renew=True)
        agent.reconnect()
        agent.flush()
        assert agent.status().linked
