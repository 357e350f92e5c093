"""The journal: what is appended stays, whatever happens to the process, the file or the disk."""

import dataclasses
import itertools
import json
import math
import os
import re
import stat
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ranktilt.errors import DataWarning, UserError
from ranktilt.io.cache import cache_folder
from ranktilt.llm.base import Prompt, Sampling
from ranktilt.llm.entry import Entry, key_of, parameters, read, seed_of
from ranktilt.llm.journal import Journal, journal_folder, key
from tests.llm.echo import COLD, Echo, said


def entry(name: str, text: str = "some text", **more: object) -> Entry:
    drawn = {"temperature": 0.2, "seed": None}
    return Entry(
        key=name, prompt="p", document="d", attempt=1, parameters=drawn, asked="echo", answer=said(text, **more)
    )


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal") as made:
        yield made


def again(journal: Journal) -> Journal:
    return Journal(journal.folder)


# What is found


def test_an_answer_is_found_by_this_journal_and_the_next(journal: Journal) -> None:
    answer = said("größer\u2028\n", finish="length", revision="fp_1", logprobs=(-0.5, 0.0), completion_tokens=None)
    journal.append(Entry(key="k", prompt="p", document="d", attempt=2, parameters={}, asked="echo", answer=answer))
    assert journal.found("k") == answer
    assert again(journal).found("k") == answer
    assert again(journal).found("other") is None
    assert "k" in again(journal)
    assert "other" not in again(journal)
    assert len(again(journal)) == 1


def test_many_answers_of_any_length_are_found(journal: Journal) -> None:
    texts = {f"k{i}": "x" * (i * 997 % 40_000) for i in range(200)}
    for name, text in texts.items():
        journal.append(entry(name, text))
    fresh = again(journal)
    for name, text in texts.items():
        assert fresh.found(name) == said(text)


def test_a_line_is_readable_and_says_all(journal: Journal) -> None:
    answer = said("Grüße", finish="stop", revision="fp", model="echo-2025", logprobs=(-1.5,))
    made = Entry(
        key="k",
        prompt="hash of the prompt",
        document="hash of the document",
        attempt=3,
        parameters={"temperature": 1.0},
        asked="echo",
        answer=answer,
    )
    journal.append(made)
    [line] = journal.path.read_text(encoding="utf-8").splitlines()
    assert "GRÜSSE" in line, "not escaped"
    content = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", content.pop("time"))
    assert content.pop("check") == f"{zlib.crc32(line.rpartition(',')[0].encode()):08x}"
    assert content == {
        "key": "k",
        "document": "hash of the document",
        "prompt": "hash of the prompt",
        "attempt": 3,
        "parameters": {"temperature": 1.0},
        "asked": "echo",
        "answered": "echo-2025",
        "revision": "fp",
        "finish": "stop",
        "prompt_tokens": 1,
        "completion_tokens": 2,
        "text": "GRÜSSE",
        "logprobs": [-1.5],
    }
    assert again(journal).entry("k") == made


def test_the_first_of_two_answers_to_a_request_counts(journal: Journal) -> None:
    journal.append(entry("k", "first"), entry("k", "second"))
    journal.append(entry("k", "third"))
    for one in (journal, again(journal)):
        assert one.found("k") == said("first")
        assert len(one) == 1


def test_a_logprob_that_json_cannot_hold_is_undefined(journal: Journal) -> None:
    journal.append(entry("k", logprobs=(-math.inf, -1.0)))
    answer = journal.found("k")
    assert answer is not None
    assert answer.logprobs is not None
    assert math.isnan(answer.logprobs[0])
    assert answer.logprobs[1] == -1.0


def test_reading_makes_nothing(journal: Journal) -> None:
    assert journal.found("k") is None
    assert len(journal) == 0
    journal.close()
    assert not journal.folder.exists()


def test_what_is_kept_is_said_beside_the_answers(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", about={"llm": "openai:m", "model": "m"}) as journal:
        journal.append(entry("k"))
    assert json.loads((tmp_path / "j" / "about.json").read_bytes()) == {"what": "llm", "llm": "openai:m", "model": "m"}


def test_a_closed_journal_can_be_used_again(journal: Journal) -> None:
    journal.append(entry("a"))
    journal.close()
    assert journal.found("a") is not None
    assert journal.claim(["b"]) == {"b"}
    journal.append(entry("b"))
    journal.close()
    assert len(again(journal)) == 2


# Keys


def test_a_key_depends_on_all_that_an_answer_depends_on() -> None:
    prompt, sampling = Prompt("rewrite this"), Sampling(temperature=0.2, seed=1)
    keys = [
        key(Echo(), prompt, sampling),
        key(Echo("other"), prompt, sampling),
        key(Echo(), Prompt("rewrite that"), sampling),
        key(Echo(), Prompt("rewrite this", system="you rewrite"), sampling),
        key(Echo(), prompt, Sampling(temperature=0.3, seed=1)),
        key(Echo(), prompt, Sampling(temperature=0.2, seed=1, top_p=0.9)),
        key(Echo(), prompt, Sampling(temperature=0.2, seed=1, max_tokens=9)),
        key(Echo(), prompt, Sampling(temperature=0.2, seed=2)),
        key(Echo(), prompt, Sampling(temperature=0.2)),
        key(Echo(), prompt, Sampling(temperature=0.2, seed=1, logprobs=True)),
        key(Echo(), prompt, sampling, 2),
    ]
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in keys)


def test_a_key_depends_on_nothing_else() -> None:
    first = key(Echo(), Prompt("text"), Sampling(temperature=1))
    assert key(Echo(concurrency=9), Prompt("text"), Sampling(temperature=1.0), 1) == first
    assert key(Echo(), Prompt("text", seed=4), COLD) == key(Echo(), Prompt("text"), Sampling(temperature=0, seed=4))


@pytest.mark.parametrize(
    ("own", "of_all", "attempt", "expected"),
    [(None, None, 3, None), (None, 7, 1, 7), (None, 7, 3, 9), (4, 7, 2, 5), (4, None, 1, 4)],
)
def test_an_attempt_has_the_next_seed(own: int | None, of_all: int | None, attempt: int, expected: int | None) -> None:
    assert seed_of(Prompt("text", seed=own), Sampling(seed=of_all), attempt) == expected


def test_parameters_are_plain_values() -> None:
    drawn = parameters(Sampling(temperature=1, top_p=1, max_tokens=5), seed=3)
    assert drawn == {"temperature": 1.0, "top_p": 1.0, "max_tokens": 5, "seed": 3, "logprobs": False}
    assert isinstance(drawn["temperature"], float)
    assert set(drawn) == {field.name for field in dataclasses.fields(Sampling)}, "nothing that counts is left out"


def test_each_model_has_a_folder_of_the_cache() -> None:
    folder = journal_folder(Echo("a"))
    assert folder.parent == cache_folder() / "llm"
    assert folder == journal_folder(Echo("a", concurrency=2)) != journal_folder(Echo("b"))
    assert Journal.of(Echo("a")).folder == folder


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'"key"', b'{"key": "k"}', b'{"key": "k", "text": null}', b"\xff"])
def test_no_key_is_read_from_what_is_no_entry(line: bytes) -> None:
    assert key_of(line) is None


def test_a_line_is_read_as_it_was_written() -> None:
    made = entry("k", "text", logprobs=(-0.25,))
    assert read(made.line()) == made
    assert key_of(made.line()) == "k"


# Damage


def damaged(journal: Journal, data: bytes) -> Journal:
    journal.append(entry("a"), entry("b"))
    journal.close()
    with journal.path.open("ab") as stream:
        stream.write(data)
    return again(journal)


@pytest.mark.parametrize("size", [1, 30, -2])
def test_a_torn_last_line_is_cut_off_with_a_warning(journal: Journal, size: int) -> None:
    torn = damaged(journal, entry("c").line()[:size])
    whole = journal.path.read_bytes().rpartition(b"\n")[0] + b"\n"
    assert len(torn) == 2, "reading passes over it"
    with pytest.warns(DataWarning, match=re.escape(f"{journal.path}:3: the last line was cut off")):
        assert torn.claim(["c"]) == {"c"}
    assert journal.path.read_bytes() == whole
    torn.append(entry("c"))
    torn.close()
    assert len(again(journal)) == 3


def test_a_last_line_that_lacks_only_its_end_is_kept(journal: Journal) -> None:
    torn = damaged(journal, entry("c", "paid for").line()[:-1])
    assert torn.claim(["c", "d"]) == {"d"}
    assert torn.found("c") == said("paid for")
    torn.append(entry("d"))
    torn.close()
    assert [json.loads(line)["key"] for line in journal.path.read_text().splitlines()] == ["a", "b", "c", "d"]


def test_zeros_that_a_loss_of_power_left_are_cut_off(journal: Journal) -> None:
    torn = damaged(journal, b"\0" * 5_000)
    with pytest.warns(DataWarning, match="the last line was cut off"):
        torn.append(entry("c"))
    torn.close()
    assert len(again(journal)) == 3


@pytest.mark.parametrize("line", [b'{"key": "c", "te', b"\xff\xfe\x00", b"[1]", b'{"key": "c"}'])
def test_a_damaged_line_in_the_middle_is_named_and_passed_over(journal: Journal, line: bytes) -> None:
    middle = damaged(journal, line + b"\n" + entry("d").line())
    with pytest.warns(DataWarning, match=re.escape(f"{journal.path}:3: a damaged line is passed over")):
        assert len(middle) == 3
    assert middle.found("d") is not None
    assert middle.claim(["a", "c", "d"]) == {"c"}
    middle.append(entry("c"))
    middle.close()
    assert line in journal.path.read_bytes(), "it is left for who can read it"


def test_no_byte_of_a_line_can_change_unnoticed(journal: Journal) -> None:
    line = entry("c", "I paid 10 for it", logprobs=(-0.25,)).line()[:-1]
    for place in range(len(line)):
        for other in (line[place] ^ 1, line[place] ^ 32, 0, ord("0")):
            changed = line[:place] + bytes([other]) + line[place + 1 :]
            assert changed == line or key_of(changed) is None, changed
    changed = damaged(journal, line.replace(b"10", b"90") + b"\n")
    with pytest.warns(DataWarning, match=re.escape(f"{journal.path}:3: a damaged line is passed over")):
        assert changed.found("c") is None
    assert changed.claim(["c"]) == {"c"}


def test_a_line_of_an_earlier_version_has_no_checksum_and_is_taken(journal: Journal) -> None:
    old = json.loads(entry("c", "paid for").line())
    del old["check"]
    assert damaged(journal, json.dumps(old).encode() + b"\n").found("c") == said("paid for")


def test_a_line_that_lacks_a_field_is_passed_over(journal: Journal) -> None:
    line = {name: value for name, value in json.loads(entry("c").line()).items() if name != "finish"}
    half = damaged(journal, json.dumps(line).encode() + b"\n")
    with pytest.warns(DataWarning, match=re.escape(f"{journal.path}:3: a damaged line is passed over")):
        assert half.found("c") is None
    assert half.found("a") == said("some text")


def test_an_empty_line_is_no_damage(journal: Journal) -> None:
    assert len(damaged(journal, b"\n" + entry("c").line())) == 3


@pytest.mark.parametrize("cut", [0, 10])
def test_a_file_that_shrinks_while_it_is_used_is_an_error(journal: Journal, cut: int) -> None:
    journal.append(entry("a"))
    os.truncate(journal.path, cut)
    with pytest.raises(UserError, match=r"answers\.jsonl: something else changed the file while it was in use; run"):
        journal.append(entry("b"))
    with pytest.raises(UserError, match="something else changed the file"):
        journal.found("a")


# Several at once


def test_another_journal_sees_what_was_appended_when_it_claims(journal: Journal) -> None:
    other = again(journal)
    assert other.found("a") is None
    journal.append(entry("a"))
    assert other.claim(["a", "b"]) == {"b"}
    assert other.found("a") == journal.found("a")
    other.close()


def test_what_one_claims_is_not_the_others(journal: Journal) -> None:
    other = again(journal)
    assert journal.claim(["a", "b", "a"]) == {"a", "b"}
    assert journal.claim(["a"]) == set(), "it is being asked already"
    assert other.claim(["b", "c", "d"], most=1) == {"c"}
    assert journal.holders(["c"]) == other.holders(["a"]) == [os.getpid()]
    assert journal.holders(["a"]) == []
    journal.release(["a"])
    assert other.claim(["a", "b"]) == {"a"}
    journal.close()
    assert other.claim(["b"]) == {"b"}
    other.close()


def test_threads_share_a_journal(journal: Journal) -> None:
    taken: list[set[str]] = []

    def work(number: int) -> None:
        for i in range(50):
            mine = journal.claim([f"k{i}"])
            taken.append(mine)
            journal.append(*(entry(name, f"{name} by {number}") for name in mine))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(map(len, taken)) == 50
    assert len(journal) == len(again(journal)) == 50


APPENDING = """
import sys
from pathlib import Path
from ranktilt.llm.journal import Journal
from tests.llm.test_journal import entry
with Journal(Path(sys.argv[1])) as journal:
    for i in range(150):
        journal.append(*(entry(f"{sys.argv[2]}-{i}-{j}", "word " * (i * j % 50)) for j in range(3)))
"""


def test_processes_that_append_at_the_same_time_leave_whole_lines(journal: Journal) -> None:
    command = [sys.executable, "-c", APPENDING, str(journal.folder)]
    processes = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [process.wait() for process in processes] == [0, 0]
    lines = [json.loads(line)["key"] for line in journal.path.read_text().splitlines()]
    assert sorted(lines) == sorted(f"{name}-{i}-{j}" for name in "ab" for i in range(150) for j in range(3))
    assert len(journal) == 900


# Places that cannot be written

FULL = """
import resource, sys
from pathlib import Path
from ranktilt.errors import UserError
from ranktilt.llm.journal import Journal
from tests.llm.test_journal import entry
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
with Journal(Path(sys.argv[1])) as journal:
    try:
        journal.append(*(entry(f"k{i}", "x" * 100) for i in range(100)))
    except UserError as error:
        print(error)
    print(len(journal))
"""


def test_a_file_that_may_not_grow_is_left_with_whole_lines(journal: Journal) -> None:
    size = len(entry("k1", "x" * 100).line())
    command = [sys.executable, "-c", FULL, str(journal.folder), str(5 * size + size // 2)]
    message, count = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert message.startswith(f"{journal.path}: cannot be written: File too large; choose another place")
    assert message.endswith("(RANKTILT_CACHE names the cache's folder)")
    assert count == "5", "what was written whole is kept"
    assert len(journal) == 5
    assert journal.path.stat().st_size == 5 * size


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB, where the system lets us mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except OSError:
        pytest.skip("needs mount")
    if done.returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(journal: Journal) -> None:
    for number in itertools.count():
        journal.claim([f"k{number}"])
        journal.append(entry(f"k{number}", "x" * 500))


def test_a_full_disk_is_an_error_of_one_line_and_loses_nothing(tiny_disk: Path) -> None:
    with Journal(tiny_disk / "journal") as journal:
        with pytest.raises(UserError, match="No space left on device; free some space") as caught:
            fill(journal)
        assert "\n" not in str(caught.value)
        kept = len(journal)
        assert kept > 50
        assert journal.path.read_bytes().endswith(b"\n")
        journal.release([f"k{kept}"])
    assert len(Journal(tiny_disk / "journal")) == kept


def test_a_read_only_disk_is_an_error_before_anything_is_asked(tiny_disk: Path) -> None:
    with Journal(tiny_disk / "journal") as journal:
        journal.append(entry("a"))
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    with Journal(tiny_disk / "journal") as journal:
        assert journal.found("a") is not None, "reading needs no right to write"
        with pytest.raises(UserError, match="cannot be written: Read-only file system; choose a place you may"):
            journal.claim(["b"])
    with pytest.raises(UserError, match="Read-only file system"):
        Journal(tiny_disk / "another").claim(["b"])


def test_a_folder_without_the_right_to_write_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("needs a user whom the system forbids something")
        with pytest.raises(UserError, match="Permission denied; choose a place you may write to"):
            Journal(tmp_path / "journal").claim(["a"])
    finally:
        tmp_path.chmod(stat.S_IRWXU)


def test_a_file_in_the_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("")
    with pytest.raises(UserError, match=r"journal/answers\.jsonl: cannot be (read|written): Not a directory"):
        Journal(tmp_path / "journal").claim(["a"])
    with pytest.raises(UserError, match="cannot be read: Not a directory"):
        Journal(tmp_path / "journal").found("a")
