"""Lists without an order, and lists that end inside a tie, are said."""

from pathlib import Path

import polars as pl
import pytest

from ranktilt import Collection, Run, audit
from ranktilt.data.notes.runs import ListsCutInTies, ListsTied, QueriesRepeated
from ranktilt.data.runs.tied_lists import tied_list_notes
from ranktilt.explaining.file_report import describe_file
from ranktilt.reporting.sentences.notes import note_sentences
from tests.reporting.audits import twins
from tests.toy import run_of, write_run

UNRANKED = [0.0, 0.0, 0.0, 0.0]
CUT = [9.0, 1.0, 1.0, 1.0]
FALLING = [4.0, 3.0, 2.0, 1.0]


def lists(*scores: list[float], shift: int = 1) -> dict[str, dict[str, float]]:
    """Lists of the documents that come next in a collection of twins, a list a query."""
    return {
        f"q{number}": {
            f"{(number * shift + rank) // 2}-{('human', 'llm')[rank % 2]}": score
            for rank, score in enumerate(of_list)
        }
        for number, of_list in enumerate(scores)
    }


def saved(path: Path, *scores: list[float]) -> Run:
    return Run.load(write_run(path / "run.trec", lists(*scores)))


def test_unranked_queries_warn_and_cut_ties_are_noted(tmp_path: Path) -> None:
    run = saved(tmp_path, UNRANKED, CUT, FALLING, FALLING)
    tied, cut = tied_list_notes(run)
    assert isinstance(tied, ListsTied)
    assert isinstance(cut, ListsCutInTies)
    assert (tied.severity, tied.queries, tied.total) == ("warning", 1, 4)
    assert (cut.severity, cut.lists, cut.total, cut.documents) == ("note", 1, 4, 3)
    assert list(note_sentences((tied, cut))) == [
        "warning: run: 1 query (25.0 %): all its scores are equal, so nothing was ranked; its "
        "documents still count, tied: remove such queries from the run to leave them out",
        "run: 1 list (25.0 %) ends inside a tie (3 documents share the last score, in the "
        "median): which of them were kept was up to the engine",
    ]
    report = describe_file(tmp_path / "run.trec")
    assert [note.kind for note in report.notes] == ["ListsTied", "ListsCutInTies"]


@pytest.mark.parametrize(
    "scores",
    [
        [FALLING] * 4,
        [[1.0, 1.0]] * 4,  # two may be copies of each other
        [FALLING, [3.0, 1.0, 1.0], FALLING],  # shorter than others: all there was
    ],
)
def test_ordered_lists_pairs_and_lists_that_nothing_cut_are_not(
    tmp_path: Path, scores: list[list[float]]
) -> None:
    assert list(tied_list_notes(saved(tmp_path, *scores))) == []


def test_few_tied_lists_do_not_warn_and_few_cuts_are_not_noted(tmp_path: Path) -> None:
    (note,) = tied_list_notes(saved(tmp_path, UNRANKED, CUT, *[FALLING] * 199))
    assert (note.kind, note.severity) == ("ListsTied", "note")


def test_lists_of_our_own_rankers_are_cut_by_no_engine(tmp_path: Path) -> None:
    run = saved(tmp_path, CUT, FALLING)
    assert [note.kind for note in tied_list_notes(run)] == ["ListsCutInTies"]
    computed = Run(run.queries, run.offsets, run.docs, run.scores, run.ids, {"ranker": "bm25(k=4)"})
    assert list(tied_list_notes(computed)) == []


def test_queries_without_an_order_do_not_repeat_each_other() -> None:
    # Six queries list the same documents: three with an order, three without.
    scores = lists(*[FALLING] * 3, *[UNRANKED] * 3, shift=0)
    mixed = twins(6)
    texts = [f"text of {query}" for query in mixed.queries["id"]]
    unjudged = Collection(
        mixed.docs, mixed.queries.with_columns(text=pl.Series(texts)), mixed.qrels.clear()
    )
    run = run_of(unjudged, scores, ranker="r")
    result = audit(unjudged, run, "Share@2", confounds=False, resamples=100)
    (repeats,) = (note for note in result.notes if isinstance(note, QueriesRepeated))
    assert (repeats.queries, repeats.first, repeats.repeats) == (2, "q1", "q0")
    assert "ListsTied" in [note.kind for note in result.notes]
