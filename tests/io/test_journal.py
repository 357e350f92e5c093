"""The journal: what is appended stays, whatever happens to the process, the file or the disk; leases are for one."""

import itertools
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from ranktilt.errors import DataWarning, UserError
from ranktilt.io import journal as journal_module
from ranktilt.io import leases
from ranktilt.io.journal import JOURNAL, JSONL, Journal, count_records
from ranktilt.io.records import sealed, unsealed

CONTENT = {
    "key": "k", "time": "2026-01-01T00:00:00Z", "document": "d", "prompt": "p", "attempt": 1, "parameters": {},
    "asked": "m", "answered": "m-1", "revision": None, "finish": "stop", "prompt_tokens": 1, "completion_tokens": 2,
}  # fmt: skip


def record(name: str, text: str = "some text") -> bytes:
    return sealed({**CONTENT, "key": name, "text": text})


def records(*names: str, text: str = "some text") -> dict[str, bytes]:
    return {name: record(name, text) for name in names}


def text_of(journal: Journal, name: str) -> str | None:
    content = journal.read([name]).get(name)
    return None if content is None else content["text"]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal") as made:
        yield made


@pytest.fixture
def other(journal: Journal) -> Iterator[Journal]:
    with Journal(journal.folder) as made:
        yield made


# What is found


def test_what_is_appended_is_found_by_this_journal_and_the_next(journal: Journal, other: Journal) -> None:
    assert len(other) == 0
    journal.append(records("a", "b", text="größer\u2028\n"))
    for one in (journal, other):
        assert text_of(one, "a") == "größer\u2028\n"
        assert ("b" in one, "c" in one, len(one)) == (True, False, 2)
        assert one.known(["a", "c"]) == {"a"}
        assert set(one.read(["b", "c"])) == {"b"}


def test_the_file_says_of_which_version_it_is(journal: Journal) -> None:
    """Later versions of the program refuse, or take over, by this number; a change of it is a new layout."""
    journal.append(records("a", text="x"))
    with closing(sqlite3.connect(journal.folder / JOURNAL)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)


def test_the_first_of_two_answers_to_a_request_counts(journal: Journal, other: Journal) -> None:
    journal.append(records("k", text="first"))
    journal.append(records("k", text="second"))
    assert (text_of(other, "k"), len(other)) == ("first", 1)


def test_reading_makes_nothing(journal: Journal) -> None:
    assert text_of(journal, "k") is None
    assert len(journal) == 0
    journal.close()
    assert not journal.folder.exists()


def test_a_closed_journal_leaves_one_file_and_can_be_used_again(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", about={"llm": "openai:m", "model": "m"}) as journal:
        journal.keep_room(10_000)
        journal.append(records("a"))
        journal.close()
        assert sorted(path.name for path in journal.folder.iterdir()) == ["about.json", JOURNAL]
        assert journal.lease(["a", "b"]) == {"b"}
        journal.append(records("b"))
    assert json.loads((tmp_path / "j" / "about.json").read_bytes()) == {"what": "llm", "llm": "openai:m", "model": "m"}
    assert count_records(tmp_path / "j") == 2


# Leases


def test_what_one_leases_is_not_the_others(journal: Journal, other: Journal) -> None:
    assert journal.lease(["a", "b", "a"]) == {"a", "b"}
    assert journal.lease(["a"]) == set(), "it is being asked already"
    assert other.lease(["b", "c", "d"], most=1) == {"c"}
    assert journal.holders(["c"]) == other.holders(["a"]) == [os.getpid()]
    assert journal.holders(["a"]) == []
    journal.release(["a", "never leased"])
    assert other.lease(["a", "b"]) == {"a"}
    journal.append(records("b"))
    assert other.lease(["b"]) == set(), "it is answered"
    journal.lease(["z"])
    journal.close()
    assert other.lease(["z"]) == {"z"}


HOLDER = """
import sys, time
from pathlib import Path
from ranktilt.io.journal import Journal
journal = Journal(Path(sys.argv[1]))
journal.keep_room(1000)
journal.lease(sys.argv[2:])
print("held", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_leases_of_a_dead_process_are_free_at_once(journal: Journal, number: int) -> None:
    command = [sys.executable, "-c", HOLDER, str(journal.folder), "a", "b"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert journal.lease(["a", "c"]) == {"c"}
        assert journal.holders(["a", "b"]) == [process.pid]
        process.send_signal(number)
        while leases._started(process.pid):  # a zombie is dead, though nobody has waited for it
            time.sleep(0.01)
        assert journal.lease(["a", "b"]) == {"a", "b"}
    assert not list(journal.folder.glob("*.room")), "nobody keeps what the dead left"


def owned(journal: Journal, **values: object) -> None:
    """Change what a journal's owners are known by."""
    with closing(sqlite3.connect(journal.path)) as db, db:
        for name, value in values.items():
            db.execute(f"UPDATE owners SET {name} = ?", [value])


@pytest.mark.parametrize(
    ("values", "free"),
    [
        ({"started": "another time"}, True),
        ({"machine": "another", "started": "another time"}, False),
        ({"machine": "another", "expires": 0}, True),
        ({"expires": 0}, True),
    ],
    ids=["number used again", "elsewhere", "elsewhere and expired", "expired"],
)
def test_a_lease_ends_with_its_process_or_its_time(
    journal: Journal, other: Journal, values: dict[str, object], free: bool
) -> None:
    journal.lease(["a"])
    owned(journal, **values)
    assert other.lease(["a"]) == ({"a"} if free else set())


def test_whoever_lives_renews_its_leases(journal: Journal, other: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE", 0.4)
    journal.lease(["a"])
    owned(journal, machine="another")
    for _ in range(6):
        time.sleep(0.15)
        assert other.lease(["a"]) == set()
    journal.release(["a"])
    assert other.lease(["a"]) == {"a"}


def test_threads_share_a_journal(journal: Journal, other: Journal) -> None:
    taken: list[set[str]] = []

    def work(number: int) -> None:
        for i in range(50):
            mine = journal.lease([f"k{i}"])
            taken.append(mine)
            journal.append(records(*mine, text=f"by {number}"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(map(len, taken)) == len(journal) == len(other) == 50


APPENDING = """
import sys
from pathlib import Path
from ranktilt.io.journal import Journal
from tests.io.test_journal import records
with Journal(Path(sys.argv[1])) as journal:
    for i in range(100):
        journal.lease([f"both-{i}"])
        journal.append(records(*(f"{sys.argv[2]}-{i}-{j}" for j in range(3)), text="word " * i))
"""


@pytest.mark.parametrize("wal", [True, False])
def test_processes_that_append_at_the_same_time_lose_nothing(journal: Journal, wal: bool) -> None:
    code = APPENDING if wal else f"from ranktilt.io import journal\njournal._on_network = lambda _: True{APPENDING}"
    command = [sys.executable, "-c", code, str(journal.folder)]
    processes = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [process.wait() for process in processes] == [0, 0]
    assert len(journal) == 600
    expected = {f"{name}-{i}-{j}" for name in "ab" for i in range(100) for j in range(3)}
    assert journal.known(expected) == expected


# Where WAL is not available


def mode(journal: Journal) -> str:
    with closing(sqlite3.connect(journal.path)) as db:
        return str(db.execute("PRAGMA journal_mode").fetchone()[0])


def test_wal_where_it_is_available(journal: Journal) -> None:
    journal.append(records("a"))
    assert mode(journal) == "wal"


def test_another_mode_where_memory_cannot_be_shared(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect

    def without(place: object, **options: object) -> sqlite3.Connection:
        return connect(f"file:{place}?vfs=unix-dotfile", uri=True, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(journal_module.sqlite3, "connect", without)
    journal.append(records("a"))
    assert journal.lease(["a", "b"]) == {"b"}
    journal.close()
    monkeypatch.undo()
    assert mode(journal) == "delete"
    assert text_of(journal, "a") == "some text"


@pytest.mark.parametrize(("kind", "wanted"), [("ext4", "wal"), ("nfs4", "delete"), ("fuse.sshfs", "delete")])
def test_another_mode_where_other_machines_come_in(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, kind: str, wanted: str
) -> None:
    read = Path.read_text
    mounts = f"/dev/a / ext4 rw 0 0\nhost:/b {str(journal.folder.parent).replace(' ', chr(92) + '040')} {kind} rw 0 0\n"
    monkeypatch.setattr(Path, "read_text", lambda p, **o: mounts if str(p) == "/proc/mounts" else read(p, **o))
    journal.append(records("a"))
    assert mode(journal) == wanted


def test_wal_where_nothing_tells_the_file_systems(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object, **__: object) -> str:
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", unreadable)
    assert not journal_module._on_network(journal.folder)


# What earlier versions kept


def old_file(journal: Journal, *lines: bytes) -> Path:
    journal.folder.mkdir(parents=True, exist_ok=True)
    file = journal.folder / JSONL
    with file.open("ab") as stream:
        stream.write(b"".join(lines))
    return file


def test_the_file_of_an_earlier_version_is_taken_over_once_and_left(journal: Journal, other: Journal) -> None:
    unchecked = json.loads(record("b", "paid for"))
    del unchecked["check"]
    file = old_file(journal, record("a") + b"\n", b"\n", json.dumps(unchecked).encode() + b"\n", record("c"))
    before = file.read_bytes()
    assert count_records(journal.folder) == 3
    assert len(journal) == 3
    assert text_of(journal, "b") == "paid for"
    assert journal.lease(["a", "b", "c", "d"]) == {"d"}
    assert file.read_bytes() == before
    old_file(journal, b"\n" + record("e") + b"\n")  # an earlier version went on
    assert text_of(other, "e") == "some text"
    assert (len(other), count_records(journal.folder)) == (4, 4)


@pytest.mark.parametrize(
    "line",
    [b'{"key": "c", "te', b"\xff\xfe\x00", b"[1]", b'{"key": "c"}', record("c").replace(b"some", b"same"), b"\0" * 99],
)
def test_a_damaged_line_of_it_is_named_and_passed_over(journal: Journal, other: Journal, line: bytes) -> None:
    file = old_file(journal, record("a") + b"\n" + line + b"\n" + record("d") + b"\n")
    with pytest.warns(DataWarning, match=rf"{file}:2: a damaged line is passed over, its answer is asked again"):
        assert len(journal) == 2
    assert journal.lease(["a", "c", "d"]) == {"c"}
    assert len(other) == 2, "and is warned of once"


def test_no_byte_of_a_record_can_change_unnoticed() -> None:
    whole = record("c", "I paid 10 for it")
    assert unsealed(whole)["text"] == "I paid 10 for it"
    for place in range(len(whole)):
        for other in (whole[place] ^ 1, whole[place] ^ 32, 0, ord("0")):
            changed = whole[:place] + bytes([other]) + whole[place + 1 :]
            if changed != whole:
                with pytest.raises(ValueError):  # noqa: PT011
                    unsealed(changed)


@pytest.mark.parametrize("field", [*CONTENT, "text"])
def test_a_record_that_lacks_a_field_is_none(field: str) -> None:
    content = {name: value for name, value in {**CONTENT, "text": "a"}.items() if name != field}
    with pytest.raises(ValueError, match="lacks a field"):
        unsealed(sealed(content))


# Damage


def test_a_record_that_has_changed_is_warned_of_and_asked_again(journal: Journal) -> None:
    journal.append(records("a", "b"))
    with closing(sqlite3.connect(journal.path)) as db, db:
        db.execute("UPDATE records SET record = ? WHERE key = 'a'", [record("a").replace(b"some", b"same")])
    with pytest.warns(DataWarning, match="a damaged answer is passed over, it is asked again"):
        assert set(journal.read(["a", "b"])) == {"b"}
    with pytest.warns(DataWarning, match="a damaged answer"):
        assert journal.lease(["a", "b"]) == {"a"}
    journal.append(records("a", text="asked again"))
    assert text_of(journal, "a") == "asked again"


@pytest.mark.parametrize("start", [0, 2_000])
def test_a_damaged_file_is_refused_in_one_sentence(journal: Journal, start: int) -> None:
    journal.append(records(*(f"k{i}" for i in range(300))))
    journal.close()
    content = bytearray(journal.path.read_bytes())
    content[start:] = b"\xa5" * (len(content) - start)
    journal.path.write_bytes(content)
    assert start or count_records(journal.folder) == 0
    for act in (lambda: journal.read(["k7"]), lambda: journal.lease(["new"])):
        with pytest.raises(UserError, match=r"journal\.sqlite: is damaged \(.*\); move it away, and its answers"):
            act()


def test_a_file_of_a_later_version_is_refused(journal: Journal) -> None:
    journal.append(records("a"))
    with closing(sqlite3.connect(journal.path)) as db:
        db.execute("PRAGMA user_version = 9")
    journal.close()
    with pytest.raises(UserError, match="was written by a later version of RankTilt"):
        journal.lease(["b"])


def test_a_file_that_is_taken_away_while_it_is_used_is_an_error(journal: Journal) -> None:
    journal.append(records("a"))
    journal.path.unlink()
    with pytest.raises(UserError, match="something else changed the file while it was in use; run"):
        journal.append(records("b"))


# Places that cannot be written


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 300 kB, where the system lets us mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except OSError:
        pytest.skip("needs mount")
    if done.returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(journal: Journal) -> int:
    """Append until the disk is full; returns how many were kept."""
    numbers = itertools.count()

    def on_and_on() -> None:
        for number in numbers:
            journal.lease([f"k{number}"])
            journal.append(records(f"k{number}", text="x" * 500))

    with pytest.raises(UserError, match="No space left on device; free some space") as caught:
        on_and_on()
    assert str(caught.value).endswith("choose another place (RANKTILT_CACHE names the cache's folder)")
    return next(numbers) - 1


def test_a_full_disk_is_an_error_of_one_line_and_loses_nothing(tiny_disk: Path) -> None:
    with Journal(tiny_disk / "journal") as journal:
        kept = fill(journal)
        assert kept > 5
        journal.release([f"k{kept}"])
    with Journal(tiny_disk / "journal") as journal:
        assert len(journal.known([f"k{n}" for n in range(kept)])) == kept


def test_room_that_was_kept_takes_what_is_under_way(tiny_disk: Path) -> None:
    with Journal(tiny_disk / "journal") as journal:
        journal.keep_room(100_000)
        assert fill(journal) > 2
        with suppress(UserError):  # it was the first to need the room
            journal.append(records("late", text="y" * 20_000))
        assert text_of(journal, "late") == "y" * 20_000
        with pytest.raises(UserError, match="No space left on device"):
            Journal(tiny_disk / "another").keep_room(400_000)


def test_a_read_only_disk_is_an_error_before_anything_is_asked(tiny_disk: Path) -> None:
    with Journal(tiny_disk / "journal") as journal:
        journal.append(records("a"))
    old = Journal(tiny_disk / "old")
    old_file(old, record("b") + b"\n")
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    with Journal(tiny_disk / "journal") as journal, old:
        assert text_of(journal, "a") == text_of(old, "b") == "some text", "reading needs no right to write"
        assert count_records(tiny_disk / "journal") == 1
        for one in (journal, old):
            with pytest.raises(UserError, match="cannot be written: Read-only file system; choose a place you may"):
                one.lease(["c"])
    with pytest.raises(UserError, match="Read-only file system"):
        Journal(tiny_disk / "another").lease(["b"])


def test_a_folder_without_the_right_to_write_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("needs a user whom the system forbids something")
        with pytest.raises(UserError, match="Permission denied; choose a place you may write to"):
            Journal(tmp_path / "journal").lease(["a"])
    finally:
        tmp_path.chmod(stat.S_IRWXU)


def test_a_file_in_the_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("")
    with pytest.raises(UserError, match=r"journal/journal\.sqlite: cannot be (read|written): Not a directory"):
        Journal(tmp_path / "journal").lease(["a"])
    with pytest.raises(UserError, match="cannot be read: Not a directory"):
        Journal(tmp_path / "journal").read(["a"])


# Speed


def test_a_hundred_thousand_answers_are_open_at_once(journal: Journal, other: Journal) -> None:
    journal.append({f"k{n}": record(f"k{n}", "word " * 20) for n in range(100_000)})
    start = time.perf_counter()
    assert len(other) == 100_000
    assert other.known(["k5", "none"]) == {"k5"}
    assert time.perf_counter() - start <= 0.5
