"""Stores: what was appended is there after a kill, and no file of others is touched."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from laconic import DisKernelUCB, DisLinUCB, Gaussian
from laconic.errors import StateError, StateInUse
from laconic.protocol.client import Client
from laconic.protocol.records import Learnt, Record, encode_record
from laconic.protocol.restoring import restore_client, snapshot_client
from laconic.runtimes.service import state_layout as layout
from laconic.runtimes.service.state_layout import APPLICATION, FORMAT
from laconic.runtimes.service.store import MOST_WAL, Store

PLAN = DisKernelUCB(Gaussian(1.0), D=3.0).plan(2)


def learnt(first: int, *, count: int = 1) -> Learnt:
    return Learnt(points=np.full((count, 2), 0.1 * first), rewards=np.ones(count), first=first)


def opened(path: Path, *, name: str = "a") -> Store:
    return Store(path, role="agent", name=name, plan=PLAN)


def kept(store: Store) -> list[bytes]:
    return [encode_record(each) for each in store.records()]


def filled(path: Path, *, count: int = 3) -> list[bytes]:
    """A closed state file with a client's records, and these."""
    store = opened(path)
    records: list[Record] = [Client(PLAN, name="a", member=False).born, *(learnt(i) for i in range(count))]
    store.append(records)
    store.close()
    return [encode_record(each) for each in records]


def contents(path: Path) -> bytes:
    """What is in a database, whichever of its files has it."""
    return path.read_bytes()


def removed(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    copy.rename(path)


def moved_away(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))


def overwritten(path: Path) -> None:
    path.write_bytes(b"something else")


@pytest.mark.skipif(sys.platform != "linux", reason="the state file itself is held on Linux alone")
@pytest.mark.parametrize(
    ("harm", "said"),
    [(removed, "removed"), (moved_away, "moved away"), (replaced, "replaced"), (overwritten, "overwritten")],
)
def test_nothing_more_is_taken_once_the_file_is_not_what_it_was_when_it_was_opened(
    harm: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    store = opened(tmp_path / "a.db")
    store.append([learnt(0)])
    harm(tmp_path / "a.db")
    for _ in range(2):
        with pytest.raises(StateError, match=f"{said}.*start this again"):
            store.append([learnt(1)])
    assert store.trouble is not None
    store.close()


def test_records_are_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    written = filled(tmp_path / "a.db")
    store = opened(tmp_path / "a.db")
    assert kept(store) == written
    assert store.last == 4
    store.append([learnt(3)])
    assert len(kept(store)) == 5
    store.close()


def test_the_file_is_in_wal_mode_with_full_syncs_and_for_its_owner_alone(tmp_path: Path) -> None:
    store = opened(tmp_path / "a.db")
    assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert (tmp_path / "a.db").stat().st_mode & 0o777 == 0o600
    store.close()


def test_a_snapshot_stands_for_the_records_up_to_its_number_and_later_ones_stay(tmp_path: Path) -> None:
    filled(tmp_path / "a.db")
    store = opened(tmp_path / "a.db")
    before, _ = restore_client(store.records(), plan=PLAN, start=1)
    upto = store.last
    store.append([learnt(3)])
    store.compact(encode_record(snapshot_client(before)), upto=upto)
    store.note("remark", b"said")
    after, _ = restore_client(store.records(), plan=PLAN, start=1)
    assert len(kept(store)) == 2
    assert store.about("remark") == b"said"
    assert after.count == 4
    store.close()
    again = opened(tmp_path / "a.db")
    assert restore_client(again.records(), plan=PLAN, start=1)[0].count == 4
    assert again.last == 5
    again.close()


def test_a_snapshot_is_due_when_much_was_kept_since_the_last_one(tmp_path: Path) -> None:
    store = opened(tmp_path / "a.db")
    assert not store.is_long
    store.append([learnt(0, count=400_000)])
    assert store.is_long
    store.compact(b"x" * 2**22, upto=store.last)
    store.append([learnt(0, count=400_000)])
    assert not store.is_long
    store.close()


def test_many_small_records_are_due_for_a_snapshot_by_how_large_that_is(tmp_path: Path) -> None:
    store = opened(tmp_path / "a.db")
    store.append([learnt(0, count=1)] * 4100)
    assert store.is_long
    store.compact(b"x" * 2**24, upto=store.last)
    store.append([learnt(0, count=1)] * 4100)
    assert not store.is_long  # 17 MB are not written again for 0.4
    store.append([learnt(0, count=1)] * 4100)
    assert store.is_long
    store.close()


def test_the_file_of_changes_gives_back_what_a_large_snapshot_took(tmp_path: Path) -> None:
    store = opened(tmp_path / "a.db")
    store.append([learnt(0)])
    store.compact(b"x" * 2**26, upto=store.last)
    for _ in range(3):
        store.append([learnt(0)])
    assert (tmp_path / "a.db-wal").stat().st_size <= MOST_WAL
    store.close()


def test_what_was_appended_survives_a_kill_right_after(tmp_path: Path) -> None:
    code = f"""
import os, signal, sys
sys.path[:0] = {sys.path!r}
from tests.service.test_store import *
store = opened(Path({str(tmp_path / "a.db")!r}))
for i in range(50):
    store.append([learnt(i)])
    print(i, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    store = opened(tmp_path / "a.db")
    assert len(kept(store)) == 50
    store.close()


@pytest.mark.parametrize("where", ["before", "within", "after"])
def test_a_kill_while_records_give_way_to_a_snapshot_leaves_one_or_the_other(where: str, tmp_path: Path) -> None:
    filled(tmp_path / "a.db", count=5)
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
from tests.service.dying import die_at
from tests.service.test_store import *
store = opened(Path({str(tmp_path / "a.db")!r}))
client, _ = restore_client(store.records(), plan=PLAN, start=1)
layout.ROW_BYTES = 100  # it has several rows
die_at({where!r}, 1)
store.compact(encode_record(snapshot_client(client)), upto=store.last)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    store = opened(tmp_path / "a.db")
    assert len(kept(store)) == (1 if where == "after" else 6)
    assert restore_client(store.records(), plan=PLAN, start=1)[0].count == 5
    store.close()


def rows(path: Path) -> list[tuple[int, int, bytes]]:
    """The rows of a snapshot in a file that nobody has open."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.execute("SELECT part, number, data FROM snapshot ORDER BY part"))


def test_a_snapshot_larger_than_any_value_may_be_stands_in_several_rows_and_is_read_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "ROW_BYTES", 1000)
    filled(tmp_path / "a.db", count=20)
    store = opened(tmp_path / "a.db")
    store._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1500)
    snapshot = encode_record(snapshot_client(restore_client(store.records(), plan=PLAN, start=1)[0]))
    assert len(snapshot) > 2500
    for _ in range(2):  # the second one takes the place of the first
        store.compact(snapshot, upto=store.last)
        assert kept(store) == [snapshot]
    store.append([learnt(20)])
    store.close()
    written = rows(tmp_path / "a.db")
    assert [(part, number) for part, number, _ in written] == [(i, 21) for i in range(-(-len(snapshot) // 1000))]
    assert b"".join(data for _, _, data in written) == snapshot
    again = opened(tmp_path / "a.db")
    assert again._snapshot_bytes == len(snapshot)
    assert kept(again) == [snapshot, encode_record(learnt(20))]
    again.close()


def test_a_snapshot_that_lacks_a_row_is_refused_as_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "ROW_BYTES", 100)
    filled(tmp_path / "a.db")
    store = opened(tmp_path / "a.db")
    store.compact(encode_record(snapshot_client(Client(PLAN, name="a", member=False))), upto=store.last)
    store._connection.execute("DELETE FROM snapshot WHERE part=1")
    with pytest.raises(StateError, match=r"damaged.*backup"):
        list(store.records())
    store.close()


def test_a_value_larger_than_sqlite_takes_is_refused_and_the_next_one_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = filled(tmp_path / "a.db")
    store = opened(tmp_path / "a.db")
    store._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 5000)
    for attempt in (
        lambda: store.append([learnt(3, count=1000)]),
        lambda: store.append([learnt(3)], beside=lambda _: store._insert([(9, b"x" * 5001)])),
        lambda: store.compact(b"x" * 5001, upto=store.last),  # in one row, as it would be without a limit
    ):
        with pytest.raises(StateError, match=r"too big.*nothing of it was; a single value"):
            attempt()
        assert kept(store) == written
    monkeypatch.setattr("laconic.runtimes.service.store.MOST_STATE_BYTES", 5000)
    with pytest.raises(StateError, match="5,001 bytes is more than the 5,000 that are read"):
        store.compact(b"x" * 5001, upto=store.last)
    store.append([learnt(3)])
    assert kept(store) == [*written, encode_record(learnt(3))]
    store.close()


def as_format_1(path: Path, *, snapshot: bytes | None, upto: int) -> None:
    """Make of a closed state file what the first layout had in its place."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE snapshot")
        connection.execute("CREATE TABLE snapshot (number INTEGER PRIMARY KEY, data BLOB NOT NULL)")
        if snapshot is not None:
            connection.execute("INSERT INTO snapshot VALUES (?, ?)", (upto, snapshot))
            connection.execute("DELETE FROM records WHERE number<=?", (upto,))
        connection.execute("PRAGMA user_version=1")


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("compacted", [False, True])
def test_a_file_of_the_first_format_is_carried_over_when_it_is_opened(
    compacted: bool, killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    written = filled(path)
    with closing(opened(path)) as store:
        snapshot = encode_record(snapshot_client(restore_client(store.records(), plan=PLAN, start=1)[0]))
        store.append([learnt(3)])
    as_format_1(path, snapshot=snapshot if compacted else None, upto=4)
    if killed:
        code = f"""
import os, signal, sys
sys.path[:0] = {sys.path!r}
from tests.service.test_store import *
class Deadly(int):
    def __format__(self, spec):
        os.kill(os.getpid(), signal.SIGKILL)
layout.FORMAT = Deadly(layout.FORMAT)  # it is written down last
opened(Path({str(path)!r}))
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
    monkeypatch.setattr(layout, "ROW_BYTES", 100)
    for _ in range(2):
        with closing(opened(path)) as store:
            assert store.last == 5
            first = [snapshot] if compacted else written
            assert kept(store) == [*first, encode_record(learnt(3))]
            assert store._snapshot_bytes == (len(snapshot) if compacted else 0)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (FORMAT,) == (2,)
    assert (len(rows(path)) > 1) is compacted


def test_a_kill_while_a_file_is_begun_leaves_one_that_can_be_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    code = f"""
import os, signal, sys
sys.path[:0] = {sys.path!r}
from laconic.runtimes.service import store
from tests.service.test_store import *
store.table_bytes = lambda table: os.kill(os.getpid(), signal.SIGKILL)
opened(Path({str(path)!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert path.exists()
    assert filled(path)
    assert len(kept(opened(path))) == 4


def test_a_second_store_on_the_file_is_refused_and_says_who_has_it(tmp_path: Path) -> None:
    store = opened(tmp_path / "a.db")
    with pytest.raises(StateInUse, match=f"in use by process {os.getpid()}"):
        opened(tmp_path / "a.db")
    store.close()
    opened(tmp_path / "a.db").close()


@pytest.mark.parametrize("other", ["symbolic", "hard", "unlocked"])
def test_a_file_is_held_by_whatever_name_and_without_its_lock_file_too(tmp_path: Path, other: str) -> None:
    if other != "symbolic" and sys.platform != "linux":
        pytest.skip("only on Linux may the state file itself be locked beside SQLite")
    filled(tmp_path / "a.db")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    path = elsewhere / "b.db"
    with closing(opened(tmp_path / "a.db")) as store:
        if other == "symbolic":
            path.symlink_to(tmp_path / "a.db")
        elif other == "hard":
            path.hardlink_to(tmp_path / "a.db")
        else:
            path = tmp_path / "a.db"
            (tmp_path / "a.db.lock").unlink()
        script = "import sys; from tests.service.test_store import *; opened(Path(sys.argv[1]))"
        done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True)
        assert "StateInUse" in done.stderr
        assert "is in use by process" in done.stderr
        store.append([learnt(3)])
    assert len(kept(opened(path))) == 5


def test_a_second_process_on_the_file_is_refused(tmp_path: Path) -> None:
    store = opened(tmp_path / "a.db")
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
from tests.service.test_store import *
opened(Path({str(tmp_path / "a.db")!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "StateInUse" in done.stderr
    store.append([learnt(0)])
    store.close()


# Newer versions of Python warn of any fork of a process that has threads; this is about what such a fork may not do.
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_is_refused_and_its_parent_goes_on(tmp_path: Path) -> None:
    store = opened(tmp_path / "a.db")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            store.append([learnt(0)])
        except StateInUse as error:
            code = 0 if "forked" in str(error) else 2
        store.close()
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.append([learnt(0)])
    with pytest.raises(StateInUse):
        opened(tmp_path / "a.db")
    assert len(kept(store)) == 1
    store.close()


def refused(path: Path, words: str, *, name: str = "a") -> None:
    """The file is refused with these words, and is left as it was."""
    before = contents(path)
    with pytest.raises(StateError, match=words):
        opened(path, name=name)
    assert contents(path) == before


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"These are somebody's notes.\n" * 100)
    refused(tmp_path / "a.db", "cannot be read as a state file")


def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as other:
        other.execute("CREATE TABLE songs (title TEXT)")
    other.close()
    refused(tmp_path / "a.db", "another program")


def test_a_newer_file_is_refused_with_the_advice_to_upgrade(tmp_path: Path) -> None:
    filled(tmp_path / "a.db")
    with sqlite3.connect(tmp_path / "a.db") as other:
        other.execute(f"PRAGMA user_version={FORMAT + 1}")
    other.close()
    refused(tmp_path / "a.db", "upgrade")
    assert APPLICATION == int.from_bytes(b"lcnc", "big")


def test_the_file_of_another_name_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "a.db")
    refused(tmp_path / "a.db", "the state of 'a', not of 'b'", name="b")


def test_the_file_of_a_coordinator_is_refused_by_an_agent(tmp_path: Path) -> None:
    Store(tmp_path / "c.db", role="coordinator", name="a", plan=PLAN).close()
    refused(tmp_path / "c.db", "the state of a coordinator")


def test_the_file_of_another_plan_is_refused_with_what_differs(tmp_path: Path) -> None:
    filled(tmp_path / "a.db")
    before = contents(tmp_path / "a.db")
    for plan, words in ((DisKernelUCB(Gaussian(2.0), D=3.0).plan(2), "gamma"), (DisLinUCB().plan(2), "another plan")):
        with pytest.raises(StateError, match=words):
            Store(tmp_path / "a.db", role="agent", name="a", plan=plan)
    assert contents(tmp_path / "a.db") == before


@pytest.mark.parametrize("size", [1, 511])
def test_a_file_cut_to_less_than_any_database_has_is_refused_and_not_taken_for_a_new_one(
    tmp_path: Path, size: int
) -> None:
    path = tmp_path / "a.db"
    filled(path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(StateError, match="backup"):
        opened(path)
    assert path.stat().st_size == size


@pytest.mark.parametrize("place", [b"SQLite", b"CREATE TABLE", b'"kernel"', b"lc\x02"])
def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path: Path, place: bytes) -> None:
    store = opened(tmp_path / "a.db")
    store.append([Client(PLAN, name="a", member=False).born, *(learnt(i, count=200) for i in range(20))])
    store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    data = bytearray((tmp_path / "a.db").read_bytes())
    start = data.rindex(place) + len(place)
    data[start : start + 100] = b"\xff" * 100
    (tmp_path / "a.db").write_bytes(data)
    with pytest.raises(StateError, match=r"damaged|cannot be read"):
        list(opened(tmp_path / "a.db").records())
    assert contents(tmp_path / "a.db") == bytes(data)


def test_a_missing_record_is_seen(tmp_path: Path) -> None:
    filled(tmp_path / "a.db")
    store = opened(tmp_path / "a.db")
    store._connection.execute("DELETE FROM records WHERE number=2")
    with pytest.raises(StateError, match="lacks record 2"):
        list(store.records())
    store.close()


def test_a_directory_that_is_not_there_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="a directory that is there"):
        opened(tmp_path / "nowhere" / "a.db")


def test_a_full_database_says_so_and_keeps_what_it_has(tmp_path: Path) -> None:
    written = filled(tmp_path / "a.db")
    store = opened(tmp_path / "a.db")
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count={pages + 2}")
    with pytest.raises(StateError, match=r"full.*nothing of it was; free some space"):
        store.append([learnt(3), learnt(4, count=5000)])
    assert kept(store) == written
    store._connection.execute(f"PRAGMA max_page_count={pages + 1000}")
    store.append([learnt(3)])
    assert kept(store) == [*written, encode_record(learnt(3))]
    store.close()


def test_a_limit_on_the_size_of_files_says_so_and_keeps_what_it_has(tmp_path: Path) -> None:
    written = filled(tmp_path / "a.db")
    store = opened(tmp_path / "a.db")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(StateError, match="raise the limit on the size of files"):
            store.append([learnt(3, count=5000)])
        assert kept(store) == written
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    store.append([learnt(3)])
    store.close()
    again = opened(tmp_path / "a.db")
    assert kept(again) == [*written, encode_record(learnt(3))]
    again.close()


def test_a_copy_without_its_wal_is_known_as_a_state_file_and_half_of_it_is_refused(tmp_path: Path) -> None:
    store = opened(tmp_path / "a.db")
    data = (tmp_path / "a.db").read_bytes()  # as a kill now would leave it
    store.close()
    (tmp_path / "copy.db").write_bytes(data)
    with pytest.raises(StateError, match="is the state of 'a', not of 'b'"):
        opened(tmp_path / "copy.db", name="b")
    (tmp_path / "half.db").write_bytes(data[: len(data) // 2])
    with pytest.raises(StateError, match="cannot be read as a state file"):
        opened(tmp_path / "half.db")
    assert (tmp_path / "half.db").read_bytes() == data[: len(data) // 2]


@pytest.mark.parametrize("number", [4, 6, 100_000])
def test_records_from_before_the_snapshot_show_that_one_of_them_is_damaged(number: int, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    records = filled(path)
    store = opened(path)
    store.compact(records[0], upto=2)
    store.close()
    with closing(sqlite3.connect(path)) as harmed, harmed:
        harmed.execute("UPDATE snapshot SET number=?", (number,))
    before = contents(path)
    with pytest.raises(StateError, match="from before its snapshot"):
        opened(path)
    assert contents(path) == before


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE about SET value=CAST(value AS TEXT) WHERE name='role'",
        "UPDATE about SET value=CAST(value AS TEXT) WHERE name='name'",
        "UPDATE about SET value=5 WHERE name='plan'",
        "UPDATE records SET data=5 WHERE number=2",
        "INSERT INTO snapshot VALUES (0, 1, 5)",
        "INSERT INTO snapshot VALUES (0, 'x', x'00')",
    ],
)
def test_a_value_of_another_type_than_its_column_is_damage(harm: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    filled(path)
    with closing(sqlite3.connect(path)) as harmed, harmed:
        harmed.execute(harm)
    with pytest.raises(StateError, match=r"is damaged|cannot be read as a state file"):
        kept(opened(path))
