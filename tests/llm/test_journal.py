"""Asking with a journal: each request once, whatever happens, and nothing counts before it is
written.
"""

import contextlib
import dataclasses
import json
import math
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from ranktilt.data.cache import cache_folder
from ranktilt.errors import UserError
from ranktilt.llm.base import LLM, Failure, Prompt, Reply, Sampling
from ranktilt.llm.journal import (
    JOURNAL,
    Journal,
    JournalRecord,
    Request,
    journal_of,
    journalled,
    request_key,
)
from ranktilt.progress import listening
from tests.llm.echo import COLD, Echo, answer_to, contents, requests
from tests.toy import no_room

GONE = Failure(kind="unavailable", message="no answer in time")
WORDS = ("one", "two", "three", "four", "five")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal") as empty_journal:
        yield empty_journal


def ask(
    llm: LLM, new_requests: list[Request], journal: Journal, sampling: Sampling = COLD
) -> list[Reply]:
    """All that comes, in the order of the requests."""
    return sorted(
        journalled(llm, new_requests, journal, sampling=sampling), key=lambda reply: reply.number
    )


def test_what_is_in_the_journal_is_never_asked_again(journal: Journal) -> None:
    texts, sampling = [*WORDS, "one", "two"], Sampling(max_tokens=9)
    first, fresh = Echo(concurrency=2), Counter[bool]()
    for reply in journalled(first, requests(*texts), journal, sampling=sampling):
        assert reply.answer == answer_to(texts[reply.number])
        assert reply.answer.text in {line["text"] for line in contents(journal.folder)}, (
            "before it is yielded"
        )
        fresh[reply.fresh] += 1
    assert (sorted(first.asked_texts), first.closed, fresh) == (
        sorted(WORDS),
        1,
        {True: 5, False: 2},
    )
    line = next(
        line for line in contents(journal.folder) if line["prompt"] == Prompt(text="one").digest
    )
    assert (line["text"], line["model"]) == ("ONE", "echo-1")
    journal.close()
    llm = Echo()
    replies = ask(llm, requests("two", "new", "one"), Journal(journal.folder), sampling)
    assert [(reply.fresh, reply.answer) for reply in replies] == [
        (False, answer_to("two")),
        (True, answer_to("new")),
        (False, answer_to("one")),
    ]
    assert llm.asked_texts == ["new"]
    idle = Echo()
    assert [reply.fresh for reply in ask(idle, requests(*WORDS), journal, sampling)] == [False] * 5
    assert idle.closed == 0, "it is not even started"


def test_a_failure_is_not_kept_and_another_attempt_is_another_request_with_the_next_seed(
    journal: Journal,
) -> None:
    llm = Echo(concurrency=1, fails={"two": GONE})
    replies = ask(llm, requests("two", "two", "one", "two"), journal)
    assert [reply.failure for reply in replies] == [GONE, GONE, None, GONE], (
        "equal requests share it"
    )
    assert [reply.fresh for reply in replies] == [True, False, True, False]
    assert llm.asked_texts == ["two", "one"]
    assert len(journal) == 1
    llm = Echo()
    assert [reply.fresh for reply in ask(llm, requests("one", "two"), journal)] == [False, True]
    assert llm.asked_texts == ["two"]
    llm, sampling = Echo(concurrency=1), Sampling(seed=7)
    attempts = [*requests("one"), *requests("one", attempt=2), *requests("one", attempt=3)]
    for fresh in (True, False):
        assert [reply.fresh for reply in ask(llm, attempts, journal, sampling)] == [fresh] * 3
    assert llm.seeds == [7, 8, 9]
    assert len({line["key"] for line in contents(journal.folder)}) == 2 + 3, (
        "each attempt is a record of its own"
    )


def test_an_error_or_a_full_disk_ends_it_and_keeps_what_was_answered(journal: Journal) -> None:
    def quota(text: str) -> None:
        if text == "four":
            raise UserError("the quota is used up")

    work = journalled(Echo(concurrency=1, before=quota), requests(*WORDS), journal, sampling=COLD)
    assert [next(work).number for _ in range(3)] == [0, 1, 2]
    with pytest.raises(UserError, match="the quota is used up"):
        next(work)
    assert len(Journal(journal.folder)) == 3
    got, many_requests = list[Reply](), requests(*(f"{i} " + "word " * 500 for i in range(400)))
    with (
        no_room(100_000),
        pytest.raises(UserError, match=r"journal\.sqlite: cannot be used: .* \(RANKTILT_CACHE"),
    ):
        got.extend(journalled(Echo(), many_requests, journal, sampling=COLD))
    journal.close()
    assert len(got) >= 4
    with Journal(journal.folder) as reader:
        assert len(reader) >= len(got)


def test_nothing_is_asked_where_nothing_can_be_written_and_each_model_has_a_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("")
    model = Echo()
    with pytest.raises(UserError, match="cannot be used: "):
        ask(model, requests(*WORDS), Journal(tmp_path / "file" / "journal"))
    assert not model.asked_texts
    folder = journal_of(Echo("a")).folder
    assert folder.parent == cache_folder() / "llm"
    assert folder == journal_of(Echo("a", concurrency=2)).folder != journal_of(Echo("b")).folder


def test_requests_are_pulled_as_they_are_needed_and_known_answers_come_first(
    journal: Journal,
) -> None:
    pulled: list[int] = []

    def source() -> Iterator[Request]:
        for number in range(1_000):
            pulled.append(number)
            yield from requests(f"text {number}")

    llm = Echo(concurrency=4)
    work = journalled(llm, source(), journal, sampling=COLD)
    for count in range(1, 41):
        next(work)
        assert len(pulled) <= count + 300
    work.close()
    assert len(llm.asked_texts) <= 48
    texts = [f"text {i}" for i in range(2_500)]
    ask(Echo(concurrency=32), requests(*texts), journal)
    llm = Echo()
    work = journalled(llm, requests(*texts, "new"), journal, sampling=COLD)
    assert [next(work).number for _ in range(2_000)] == list(range(2_000))
    assert llm.asked_texts == []
    assert [reply.number for reply in work] == list(range(2_000, 2_501))
    assert llm.asked_texts == ["new"]


@pytest.mark.parametrize("sized", [True, False])
def test_progress_counts_requests(journal: Journal, sized: bool) -> None:
    seen: list[tuple[str, int, int]] = []
    repeated = requests("one", "two", "one")
    with listening(lambda *step: seen.append(step)):
        source = repeated if sized else iter(repeated)
        list(
            journalled(
                Echo(),
                source,
                journal,
                sampling=COLD,
                label="rewriting",
                total=None if sized else 3,
            )
        )
    assert seen == [("rewriting", 1, 3), ("rewriting", 2, 3), ("rewriting", 3, 3)]


@settings(max_examples=40)
@given(
    runs=st.lists(
        st.tuples(st.lists(st.integers(0, 8), max_size=12), st.integers(0, 12)),
        min_size=1,
        max_size=4,
    ),
    concurrency=st.integers(1, 5),
)
@pytest.mark.long
def test_over_any_runs_nothing_is_asked_twice(
    runs: list[tuple[list[int], int]], concurrency: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, stored = tmp_path_factory.mktemp("runs"), set[str]()
    for numbers, stop in runs:
        llm, numbered_requests = (
            Echo(concurrency=concurrency),
            requests(*(f"text {n}" for n in numbers)),
        )
        with (
            Journal(folder) as journal,
            contextlib.closing(journalled(llm, numbered_requests, journal, sampling=COLD)) as work,
        ):
            got = [reply for reply, _ in zip(work, range(stop), strict=False)]
        assert not stored & set(llm.asked_texts), "an answer that is stored is not asked for"
        assert len(llm.asked_texts) == len(set(llm.asked_texts))
        lines = [line["text"].lower() for line in contents(folder)]
        stored.update(lines)
        assert len(lines) == len(set(lines))
        assert len({reply.number for reply in got}) == len(got) == min(stop, len(numbers))
        assert all(a.answer == answer_to(numbered_requests[a.number].prompt.text) for a in got)


def started(folder: Path, count: int, delay: float) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.llm.echo", str(folder), str(count), str(delay)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_second_process_is_refused_in_one_sentence_and_reads(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    with started(folder, 40, 0.2) as first:
        assert first.stdout is not None
        first.stdout.readline()
        with Journal(folder) as journal:
            message = (
                r"journal\.sqlite: another process is writing answers of this model; run this "
                "again when it is done$"
            )
            with pytest.raises(UserError, match=message):
                ask(Echo(), requests("something new"), journal)
            known = requests(*(line["text"].lower() for line in contents(folder)))
            assert [reply.fresh for reply in ask(Echo(), known, journal)] == [False] * len(known)
            assert known
            first.kill()
            first.wait()
            assert [reply.fresh for reply in ask(Echo(), known, journal)] == [False] * len(known)
            assert [reply.fresh for reply in ask(Echo(), requests("something new"), journal)] == [
                True
            ]


def record(key: str, text: str = "some text") -> JournalRecord:
    return JournalRecord(key=key, time="2026-01-01T00:00:00Z", prompt="p", answer=answer_to(text))


def test_what_is_appended_is_found_and_a_closed_journal_says_what_it_is(
    journal: Journal, tmp_path: Path
) -> None:
    second = Journal(journal.folder)
    assert len(second) == 0
    assert not journal.folder.exists(), "reading makes nothing"
    journal.append([record("a", "größer\u2028\n"), record("b")])
    journal.append([record("a", "the first counts")])
    for same in (journal, second):
        assert same.read(["a", "c"]) == {"a": record("a", "größer\u2028\n")}
        assert len(same) == 2
    folder = tmp_path / "closed"
    with Journal(folder, about={"llm": "openai:m"}) as journal:
        assert (journal.claim(), journal.claim()) == (True, False)
        journal.append([record("a")])
        journal.close()
        assert sorted(path.name for path in folder.iterdir()) == ["about.json", JOURNAL]
        journal.append([record("b")])
        assert len(journal) == 2
    assert json.loads((folder / "about.json").read_bytes()) == {"kind": "llm", "llm": "openai:m"}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            b"\xa5" * 5_000,
            "cannot be used: file is not a database; .* and its answers will be requested again",
        ),
        (
            9,
            "belongs to another version of RankTilt; move it away, and its answers will be "
            "requested again",
        ),
    ],
)
def test_a_file_that_is_none_of_ours_is_refused(
    journal: Journal, damage: bytes | int, message: str
) -> None:
    journal.append([record("a")])
    journal.close()
    if isinstance(damage, bytes):
        journal.path.write_bytes(damage)
    else:
        with closing(sqlite3.connect(journal.path)) as db:
            db.execute(f"PRAGMA user_version = {damage}")
    for act in (lambda: journal.read(["a"]), lambda: journal.append([record("b")])):
        with pytest.raises(UserError, match=rf"journal\.sqlite: {message}$"):
            act()
        journal.close()


@pytest.mark.parametrize("logprobs", [None, (-0.5, -1.5), (-math.inf, -1.5)])
def test_a_record_holds_all_that_an_answer_is(
    journal: Journal, logprobs: tuple[float, ...] | None
) -> None:
    answer = answer_to(
        "Grüße", finish="length", revision="fp", model="echo-2025", logprobs=logprobs
    )
    journal.append([replace(record("k"), answer=answer)])
    assert journal.read(["k"])["k"].answer == answer


def test_a_key_depends_on_all_that_an_answer_depends_on_and_on_nothing_else() -> None:
    prompt, sampling = Prompt(text="rewrite this"), Sampling(temperature=1, seed=1)
    first = request_key(Echo(), prompt, sampling)
    assert re.fullmatch("[0-9a-f]{32}", first)
    assert (
        request_key(
            Echo(concurrency=9), Prompt(text="rewrite this", seed=1), Sampling(temperature=1.0), 1
        )
        == first
    )
    others = {"temperature": 0.3, "top_p": 0.9, "max_tokens": 9, "seed": 2, "logprobs": True}
    assert set(others) == {field.name for field in dataclasses.fields(Sampling)}
    keys = {
        first,
        request_key(Echo("other"), prompt, sampling),
        request_key(Echo(), Prompt(text="rewrite that"), sampling),
        request_key(Echo(), Prompt(text="rewrite this", system="you rewrite"), sampling),
        request_key(Echo(), prompt, sampling, 2),
        *(
            request_key(Echo(), prompt, replace(sampling, **{name: value}))
            for name, value in others.items()
        ),
    }
    assert len(keys) == 5 + len(others)
