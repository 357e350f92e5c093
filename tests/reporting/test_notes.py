"""Notes: each kind has words, its severity and scope stand before them, and files bring
them back.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path

import orjson
import pytest

from ranktilt.auditing.result import Audit
from ranktilt.data.artifact import hash_values
from ranktilt.data.notes.base import Count, Note, Remark, note_kinds, warnings_of
from ranktilt.data.notes.groups import FewQueries, FewQueriesOfGroups, FewQueriesOfPair
from ranktilt.data.notes.inputs import LabelNote
from ranktilt.data.notes.probes import AttributionNote
from ranktilt.data.notes.runs import LittleVariation, QueriesMissing
from ranktilt.errors import DataError
from ranktilt.reporting.sentences.notes import note_sentence, note_sentences
from ranktilt.reporting.sentences.notes.base import note_words
from tests.reporting.audits import clear

BASES = {Note, FewQueries, LabelNote, AttributionNote}
"""Kinds that other kinds derive from, and that no result holds."""
KINDS = {
    kind for kind in note_kinds().values() if kind.__module__.startswith("ranktilt.data.notes.")
} - BASES


def test_every_kind_has_words_and_all_words_a_kind() -> None:
    for kind in KINDS:
        import_module(kind.__module__.replace("data.notes", "reporting.sentences.notes"))
    with_words = set(note_words.registry) - {object, Note}
    ours = {kind for kind in with_words if kind.__module__.startswith("ranktilt.")}
    assert ours == KINDS


@pytest.mark.parametrize("kind", sorted(KINDS, key=lambda kind: kind.__name__))
def test_no_kind_but_a_remark_holds_a_sentence(kind: type[Note]) -> None:
    names = {field.name for field in fields(kind)} - {"severity", "scopes"}
    sentences = names & {"text", "sentence", "message", "words"}
    assert sentences == ({"text"} if kind is Remark else set())
    assert all(field.kw_only for field in fields(kind))


MISSING_TWO = QueriesMissing(run="bm25", queries=2, are_judged=True, count_as_zero=True)


@dataclass(frozen=True, kw_only=True)
class Case:
    note: Note
    sentence: str


CASES = [
    Case(
        note=MISSING_TWO,
        sentence="bm25: 2 judged queries not in the run, counted as 0",
    ),
    Case(
        note=MISSING_TWO.within("source", "gpt"),
        sentence="gpt: bm25: 2 judged queries not in the run, counted as 0",
    ),
    Case(
        note=FewQueriesOfPair(a="human", b="llm", queries=12),
        sentence="warning: only 12 queries compare human and llm; intervals from fewer than 30 are "
        "too narrow to rely on",
    ),
    Case(
        note=FewQueriesOfGroups(queries=2).within("baseline", "baseline"),
        sentence="warning: baseline: only 2 queries compare the groups; an interval takes 3 "
        "queries, and a test 10",
    ),
    Case(
        note=Remark(severity="warning", text="two lists are short").within("documents", "human"),
        sentence="warning: human documents alone: two lists are short",
    ),
    Case(
        note=Remark(text="nothing is lost").within("judge", "umbrela"),
        sentence="tilts under umbrela: nothing is lost",
    ),
    Case(
        note=LittleVariation(
            runs=("a", "b", "c", "d", "e", "f"),
            measures=(),
            total=10,
            fixed=(Count(name="tied", number=6),),
        ),
        sentence="warning: a, b, c, d and 2 others: all documents have the same score in 6 of 10 "
        "lists; level cannot be shown from these",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.note.kind)
def test_severity_and_scope_stand_before_the_words(case: Case) -> None:
    assert note_sentence(case.note) == case.sentence


def test_warnings_are_told_by_their_severity() -> None:
    few = FewQueriesOfGroups(queries=2)
    assert warnings_of([MISSING_TWO, few]) == (few,)


def test_a_file_holds_kinds_and_numbers_and_brings_notes_back(tmp_path: Path) -> None:
    notes = tuple(case.note for case in CASES)
    path = replace(clear(), notes=notes).save(tmp_path / "audit.json")
    content = orjson.loads(path.read_bytes())["notes"]
    assert content[1] == {
        "kind": "QueriesMissing",
        "sentence": "gpt: bm25: 2 judged queries not in the run, counted as 0",
        "severity": "note",
        "scopes": [{"kind": "source", "name": "gpt"}],
        "run": "bm25",
        "queries": 2,
        "are_judged": True,
        "count_as_zero": True,
    }
    assert [note["sentence"] for note in content] == list(note_sentences(notes))
    assert Audit.load(path).notes == notes


def test_notes_are_no_rows_of_a_frame() -> None:
    audit = replace(clear(), notes=(MISSING_TWO,))
    assert audit.frame().equals(clear().frame())


@dataclass(frozen=True, kw_only=True)
class CommasCounted(Note):
    """A kind of another package."""

    commas: int


def test_a_package_registers_words_of_its_own_kind(tmp_path: Path) -> None:
    note = CommasCounted(commas=7)
    with pytest.raises(LookupError, match="no words are registered"):
        note_sentence(note)

    @note_words.register
    def _commas(note: CommasCounted) -> str:
        return f"{note.commas} commas"

    assert note_sentence(note) == "7 commas"
    path = replace(clear(), notes=(note,)).save(tmp_path / "audit.json")
    assert Audit.load(path).notes == (note,)


def test_a_kind_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    path = replace(clear(), notes=(Remark(text="kept"),)).save(tmp_path / "audit.json")
    content = orjson.loads(path.read_bytes())
    content["notes"][0]["kind"] = "Remrk"
    content.pop("sha256")
    path.write_bytes(orjson.dumps({**content, "sha256": hash_values(content)}))
    with pytest.raises(DataError, match="unknown kind of note 'Remrk'; did you mean 'Remark'"):
        Audit.load(path)
