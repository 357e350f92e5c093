"""Asking with a journal: each request once, whatever happens, and nothing counts before it is written."""

import contextlib
import dataclasses
import itertools
import math
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from ranktilt.errors import UserError
from ranktilt.io.cache import cache_folder
from ranktilt.io.journal import Journal
from ranktilt.io.records import unsealed
from ranktilt.llm.base import LLM, Failure, Prompt, Reply, Sampling, llm
from ranktilt.llm.journal import (
    JournalRecord,
    Request,
    journal_folder,
    journal_of,
    journalled,
    parameters,
    request_key,
    seed_of,
)
from ranktilt.progress import listening
from tests.llm.echo import COLD, Echo, answer_of, contents, requests, said
from tests.llm.server import Server
from tests.toy import no_room

LONG = Failure("too long", "it does not fit")
GONE = Failure("unavailable", "no answer in time")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal") as made:
        yield made


def ask(llm: LLM, wanted: list[Request], journal: Journal, sampling: Sampling = COLD) -> list[Reply]:
    """All that comes, in the order of the requests."""
    return sorted(journalled(llm, wanted, journal, sampling=sampling), key=lambda asked: asked.number)


def test_every_request_is_asked_and_answered(journal: Journal) -> None:
    llm, wanted = Echo(), requests("one", "two", "three", "four", "five")
    got = ask(llm, wanted, journal)
    assert [replace(one, time=None) for one in got] == [
        Reply(n, said(r.prompt.text), None, 1) for n, r in enumerate(wanted)
    ]
    assert llm.asked == ["one", "two", "three", "four", "five"]
    assert llm.closed == 1


def test_what_is_in_the_journal_is_never_asked_again(journal: Journal) -> None:
    ask(Echo(), requests("one", "two"), journal)
    llm = Echo()
    got = ask(llm, requests("two", "three", "one"), Journal(journal.folder))
    assert [(asked.fresh, asked.calls) for asked in got] == [(False, 0), (True, 1), (False, 0)]
    assert [asked.answer for asked in got] == [said("two"), said("three"), said("one")]
    assert llm.asked == ["three"]


def test_a_model_is_not_even_started_where_everything_is_known(journal: Journal) -> None:
    ask(Echo(), requests("one", "two"), journal)
    llm = Echo()
    assert [asked.fresh for asked in ask(llm, requests("one", "two"), journal)] == [False, False]
    assert llm.closed == 0
    assert ask(llm, [], journal) == []
    assert llm.closed == 0


def test_equal_requests_are_asked_once(journal: Journal) -> None:
    llm = Echo(concurrency=2)
    got = ask(llm, requests("one", "one", "two", "three", "one", "three"), journal)
    assert sorted(llm.asked) == ["one", "three", "two"]
    assert [asked.answer for asked in got] == [said(t) for t in ("one", "one", "two", "three", "one", "three")]
    assert Counter((a.fresh, a.calls) for a in got) == {(True, 1): 3, (False, 0): 3}


def test_another_attempt_is_another_request_with_the_next_seed(journal: Journal) -> None:
    llm, sampling = Echo(concurrency=1), Sampling(seed=7)
    wanted = [*requests("one"), *requests("one", attempt=2), *requests("one", attempt=3)]
    assert [asked.fresh for asked in ask(llm, wanted, journal, sampling)] == [True, True, True]
    assert llm.seeds == [7, 8, 9]
    assert [asked.fresh for asked in ask(llm, wanted, journal, sampling)] == [False, False, False]
    lines = contents(journal.folder)
    assert [(line["attempt"], line["parameters"]["seed"]) for line in lines] == [(1, 7), (2, 8), (3, 9)]
    assert len({line["key"] for line in lines}) == 3


def test_the_journal_says_what_was_asked(journal: Journal) -> None:
    ask(Echo("m"), [Request(Prompt("text", system="rewrite"), "hash of the text")], journal, Sampling(max_tokens=9))
    [line] = contents(journal.folder)
    assert line["document"] == "hash of the text"
    assert line["prompt"] == Prompt("text", system="rewrite").digest
    assert line["parameters"] == {"temperature": 0.2, "top_p": 1.0, "max_tokens": 9, "seed": None, "logprobs": False}
    assert (line["asked"], line["answered"], line["attempt"]) == ("m", "m-1", 1)


# Failures


def test_a_failure_is_yielded_not_kept_and_asked_again_by_the_next_run(journal: Journal) -> None:
    got = ask(Echo(fails={"two": LONG}), requests("one", "two", "three"), journal)
    assert got[1] == Reply(1, None, LONG, 2)
    assert len(journal) == 2
    llm = Echo()
    assert [asked.fresh for asked in ask(llm, requests("one", "two", "three"), journal)] == [False, True, False]
    assert llm.asked == ["two"]


def test_equal_requests_share_a_failure(journal: Journal) -> None:
    llm = Echo(concurrency=1, fails={"two": GONE})
    got = ask(llm, requests("two", "two", "one", "two"), journal)
    assert [asked.failure for asked in got] == [GONE, GONE, None, GONE]
    assert [asked.fresh for asked in got] == [True, False, True, False]
    assert llm.asked == ["two", "one"]


def test_an_error_ends_it_and_keeps_what_was_answered(journal: Journal) -> None:
    def quota(text: str) -> None:
        if text == "four":
            raise UserError("the quota is used up")

    work = journalled(Echo(concurrency=1, before=quota), requests(*WORDS), journal, sampling=COLD)
    got = [next(work).number for _ in range(3)]
    with pytest.raises(UserError, match="the quota is used up"):
        next(work)
    assert got == [0, 1, 2]
    other = Journal(journal.folder)
    assert len(other) == 3
    leased = [request_key(Echo(), request.prompt, COLD) for request in requests(*WORDS)]
    assert len(other.lease(leased)) == 2, "nothing stays leased"
    other.close()


WORDS = ("one", "two", "three", "four", "five")


# Order of things


def test_an_answer_is_in_the_file_before_it_is_yielded(journal: Journal) -> None:
    for asked in journalled(Echo(), requests(*WORDS), journal, sampling=COLD):
        assert asked.answer is not None
        texts = [line["text"] for line in contents(journal.folder)]
        assert asked.answer.text in texts


def test_a_disk_that_takes_no_more_leases_loses_no_answer(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    lease, calls = journal.lease, itertools.count()

    def limited(*parts: Any, **options: Any) -> set[str]:
        if next(calls) == 3:
            raise UserError("No space left on device")
        return lease(*parts, **options)

    monkeypatch.setattr(journal, "lease", limited)
    with Server(delay=0.2) as server:
        model = llm("openai:tiny", base_url=server.url, concurrency=2)
        with pytest.raises(UserError, match="No space left on device"):
            ask(model, requests(*(f"a request of number {i}" for i in range(20))), journal)
    assert 2 <= len(server.answered) == len(server.requests) == len(Journal(journal.folder)) < 20


def test_nothing_is_asked_where_the_disk_has_no_room_for_the_answers(journal: Journal) -> None:
    llm = Echo()
    llm.room = 50_000
    with no_room(40_000), pytest.raises(UserError, match="cannot be written: File too large"):
        ask(llm, requests(*WORDS), journal)
    assert not llm.asked
    assert not list(journal.folder.rglob("*.room"))


@pytest.mark.parametrize("size", [60, 300])
def test_a_disk_of_a_few_answers(tmp_path: Path, size: int) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        llm = Echo()
        llm.room = 64_000
        with Journal(tmp_path / "journal") as journal, pytest.raises(UserError, match="No space left on device"):
            ask(llm, requests(*(f"{i} " + "word " * 500 for i in range(400))), journal)
        assert len(llm.asked) == len(contents(tmp_path / "journal")), "every answer that was paid for is there"
        assert bool(llm.asked) == (size == 300)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_closing_it_closes_the_model_and_frees_what_was_leased(journal: Journal) -> None:
    llm = Echo(concurrency=2)
    work = journalled(llm, requests(*WORDS), journal, sampling=COLD)
    next(work)
    work.close()
    assert llm.closed == 1
    assert len(journal) == 2
    assert len(Journal(journal.folder).lease([request_key(llm, Prompt(word), COLD) for word in WORDS])) == 3


def test_requests_are_pulled_as_they_are_needed(journal: Journal) -> None:
    pulled: list[int] = []

    def source() -> Iterator[Request]:
        for number in range(1_000):
            pulled.append(number)
            yield from requests(f"text {number}")

    llm = Echo(concurrency=4)
    work = journalled(llm, source(), journal, sampling=COLD)
    for count in range(1, 41):
        next(work)
        assert len(pulled) <= count + 12
    work.close()
    assert len(llm.asked) <= 48


def test_known_answers_come_before_the_first_that_is_asked(journal: Journal) -> None:
    texts = [f"text {i}" for i in range(2_500)]
    ask(Echo(concurrency=32), requests(*texts), journal)
    llm = Echo()
    work = journalled(llm, requests(*texts, "new"), journal, sampling=COLD)
    first = [next(work) for _ in range(2_000)]
    assert [asked.number for asked in first] == list(range(2_000))
    assert llm.asked == []
    assert [asked.number for asked in work] == [*range(2_000, 2_501)]
    assert llm.asked == ["new"]


def test_halves_of_characters_are_marked(journal: Journal) -> None:
    class Broken(Echo):
        def _reply(self, number: int, prompt: Prompt) -> Reply:
            return Reply(number, replace(said("x"), text="a\ud83db"), None, 1)

    [asked] = ask(Broken(), requests("one"), journal)
    assert asked.answer is not None
    assert asked.answer.text == "a?b"
    assert answer_of(journal, request_key(Echo(), Prompt("one"), COLD)) == asked.answer


@pytest.mark.parametrize("sized", [True, False])
def test_progress_counts_requests(journal: Journal, sized: bool) -> None:
    seen: list[tuple[str, int, int]] = []
    wanted = requests("one", "two", "one")
    with listening(lambda *step: seen.append(step)):
        source = wanted if sized else iter(wanted)
        list(journalled(Echo(), source, journal, sampling=COLD, label="rewriting", total=None if sized else 3))
    assert seen == [("rewriting", 1, 3), ("rewriting", 2, 3), ("rewriting", 3, 3)]


@settings(max_examples=40)
@given(
    runs=st.lists(st.tuples(st.lists(st.integers(0, 8), max_size=12), st.integers(0, 12)), min_size=1, max_size=4),
    concurrency=st.integers(1, 5),
)
def test_over_any_runs_nothing_is_asked_twice(
    runs: list[tuple[list[int], int]], concurrency: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, kept, paid = tmp_path_factory.mktemp("runs"), set[str](), Counter[str]()
    for numbers, stop in runs:
        llm, wanted = Echo(concurrency=concurrency), requests(*(f"text {n}" for n in numbers))
        with Journal(folder) as journal, contextlib.closing(journalled(llm, wanted, journal, sampling=COLD)) as work:
            got = [asked for asked, _ in zip(work, range(stop), strict=False)]
        assert not kept & set(llm.asked), "an answer that is kept is not asked for"
        paid.update(llm.asked)
        lines = [line["text"].lower() for line in contents(folder)]
        kept.update(lines)
        assert len(lines) == len(set(lines))
        assert len({asked.number for asked in got}) == len(got) == min(stop, len(numbers))
        assert all(a.answer == said(wanted[a.number].prompt.text) for a in got)


def test_no_key_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with Server(models=("tiny",), key="sk-very-secret") as server:
        model = llm("openai:tiny", base_url=server.url)
        with Journal(tmp_path, about=model.spec) as journal:
            got = ask(model, requests("one small text", "another small text"), journal)
            kept = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert [asked.failure for asked in got] == [None, None]
    assert len(kept) == 5, "answers with SQLite's own two files, what they are, and the room for what is under way"
    assert not [name for name, content in kept.items() if b"secret" in content]


# Several processes


def started(folder: Path, log: Path, count: int, *more: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.llm.echo", str(folder), str(count), str(log), *map(str, more)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_after_kills_each_request_is_answered_once_and_no_answer_asked_again(tmp_path: Path) -> None:
    folder, count, yielded = tmp_path / "journal", 120, list[str]()
    for kill in range(3):
        with started(folder, tmp_path / f"{kill}.log", count, 0.01) as process:
            assert process.stdout is not None
            known = Journal(folder)
            before = len(known)
            known.close()
            for line in process.stdout:
                yielded.append(line)
                if line.split("\t")[1] == "fresh" and len(yielded) > before + 20:
                    break
            process.kill()
            yielded += process.stdout.readlines()
        answered = [line["text"] for line in contents(folder)]
        whole = [line for line in yielded if line.endswith("\n")]
        assert {line.split("\t")[2].strip() for line in whole} <= set(answered), "what was yielded is kept"
    with started(folder, tmp_path / "last.log", count) as process:
        assert process.stdout is not None
        got = [line.rstrip("\n").split("\t") for line in process.stdout]
    assert process.returncode == 0
    assert sorted(int(number) for number, _, _ in got) == list(range(count))
    assert all(text == f"REQUEST {number}" for number, _, text in got)
    answers = [line["text"] for line in contents(folder)]
    assert len(answers) == len(set(answers)) == count
    asked = [line for name in ("0", "1", "2", "last") for line in lines(tmp_path / f"{name}.log")]
    assert len(asked) <= count + 3 * 4, "kills cost what was under way: 4 requests each"


def test_two_processes_share_the_work(tmp_path: Path) -> None:
    folder, count = tmp_path / "journal", 100
    both = [started(folder, tmp_path / f"{n}.log", count, 0.01) for n in range(2)]
    said_by = [process.communicate()[0].splitlines() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    for answers in said_by:
        assert sorted(int(line.split("\t")[0]) for line in answers) == list(range(count))
        assert all(line.split("\t")[2] == f"REQUEST {line.split('	')[0]}" for line in answers)
    asked = lines(tmp_path / "0.log") + lines(tmp_path / "1.log")
    assert sorted(asked) == sorted(f"request {n}" for n in range(count)), "each is paid for once"
    assert len(contents(folder)) == count
    assert [path.name for path in folder.iterdir()] == ["journal.sqlite"]


def test_the_work_of_a_process_that_dies_is_taken_over(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    with started(folder, tmp_path / "hangs.log", 8, 60) as hanging:
        while len(lines(tmp_path / "hangs.log")) < 4:
            time.sleep(0.01)
        with started(folder, tmp_path / "waits.log", 8) as waiting:
            assert waiting.stdout is not None
            first = [waiting.stdout.readline() for _ in range(4)]
            assert sorted(int(line.split("\t")[0]) for line in first) == [4, 5, 6, 7], "its own come first"
            hanging.kill()
            rest = waiting.stdout.readlines()
    assert sorted(int(line.split("\t")[0]) for line in rest) == [0, 1, 2, 3]
    assert all(line.split("\t")[1] == "fresh" for line in rest)
    assert len(contents(folder)) == 8


def test_the_failure_of_one_is_asked_by_the_other_that_waits(tmp_path: Path) -> None:
    asked_both = threading.Barrier(2)
    slow = Echo(fails={"one": GONE}, before=lambda _: asked_both.wait(10) and None)
    got: list[Reply] = []

    def first() -> None:
        with Journal(tmp_path) as journal:
            got.extend(journalled(slow, requests("one"), journal, sampling=COLD))

    thread = threading.Thread(target=first)
    thread.start()
    with Journal(tmp_path) as journal:
        while not journal.holders([request_key(slow, Prompt("one"), COLD)]):
            time.sleep(0.001)
        threading.Timer(0.1, asked_both.wait).start()
        [asked] = journalled(Echo(), requests("one"), journal, sampling=COLD)
    thread.join()
    assert [one.failure for one in got] == [GONE]
    assert asked.answer == said("one")


def test_who_waits_long_says_for_whom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktilt.llm.journal._PAUSES", (0.001, 0.001))
    seen: list[tuple[str, int, int]] = []
    with started(tmp_path / "journal", tmp_path / "hangs.log", 1, 60) as hanging:
        while not lines(tmp_path / "hangs.log"):
            time.sleep(0.01)

        def listen(label: str, done: int, total: int) -> None:
            seen.append((label, done, total))
            if "process" in label:
                hanging.kill()

        with listening(listen), Journal(tmp_path / "journal") as journal:
            [asked] = journalled(Echo(), requests("request 0"), journal, sampling=COLD, label="rewriting")
    assert asked.fresh
    assert seen == [(f"rewriting that process {hanging.pid} asks for", 0, 1), ("rewriting", 1, 1)]


# Keys


def test_a_key_depends_on_all_that_an_answer_depends_on() -> None:
    prompt, sampling = Prompt("rewrite this"), Sampling(temperature=0.2, seed=1)
    keys = [
        request_key(Echo(), prompt, sampling),
        request_key(Echo("other"), prompt, sampling),
        request_key(Echo(), Prompt("rewrite that"), sampling),
        request_key(Echo(), Prompt("rewrite this", system="you rewrite"), sampling),
        request_key(Echo(), prompt, Sampling(temperature=0.3, seed=1)),
        request_key(Echo(), prompt, Sampling(seed=1, schema="{}")),
        request_key(Echo(), prompt, Sampling(temperature=0.2, seed=1, top_p=0.9)),
        request_key(Echo(), prompt, Sampling(temperature=0.2, seed=1, max_tokens=9)),
        request_key(Echo(), prompt, Sampling(temperature=0.2, seed=2)),
        request_key(Echo(), prompt, Sampling(temperature=0.2)),
        request_key(Echo(), prompt, Sampling(temperature=0.2, seed=1, logprobs=True)),
        request_key(Echo(), prompt, sampling, 2),
    ]
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in keys)


def test_a_key_depends_on_nothing_else() -> None:
    first = request_key(Echo(), Prompt("text"), Sampling(temperature=1))
    assert request_key(Echo(concurrency=9), Prompt("text"), Sampling(temperature=1.0), 1) == first
    own = request_key(Echo(), Prompt("text", seed=4), COLD)
    assert own == request_key(Echo(), Prompt("text"), Sampling(temperature=0, seed=4))


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
    held = parameters(Sampling(schema="{}"), seed=None)
    assert set(held) == {field.name for field in dataclasses.fields(Sampling)}, "nothing that counts is left out"
    assert set(held) - set(drawn) == {"schema"}, "keys of before there were schemas stay as they are"


def test_each_model_has_a_folder_of_the_cache() -> None:
    folder = journal_folder(Echo("a"))
    assert folder.parent == cache_folder() / "llm"
    assert folder == journal_folder(Echo("a", concurrency=2)) != journal_folder(Echo("b"))
    assert journal_of(Echo("a")).folder == folder


def test_a_record_holds_all_that_an_answer_is() -> None:
    answer = said("Grüße", finish="length", revision="fp", model="echo-2025", logprobs=(-math.inf, -1.5))
    made = JournalRecord(
        key="k", prompt="p", document="d", attempt=3, parameters={"temperature": 1.0}, asked="echo", answer=answer
    )
    assert "GRÜSSE" in made.sealed().decode(), "not escaped"
    read = JournalRecord.of(unsealed(made.sealed()))
    assert read.answer.logprobs is not None
    assert math.isnan(read.answer.logprobs[0]), "JSON cannot hold it"
    assert read.answer.logprobs[1] == -1.5
    assert replace(read, answer=answer) == made
    assert replace(read.answer, logprobs=None) == replace(answer, logprobs=None)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", read.time)
