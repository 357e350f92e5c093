"""What an audit says beside its numbers: judgments of nothing, twins that are not, and intervals on little."""

import polars as pl
import pytest

from ranktilt import UserError, audit
from ranktilt.collection import Collection
from ranktilt.datasets.labels import from_labels
from tests.reporting.audits import ordered, twins
from tests.toy import run_of, toy

BOTH = ("human", "llm")


def labelled(rows: dict[str, list[str | None]], judged: list[tuple[str, str]], queries: int = 1) -> Collection:
    """A collection of labels alone; each judgment is relevant."""
    qrels = pl.DataFrame(judged, schema={"query_id": pl.String, "doc_id": pl.String}, orient="row")
    return from_labels(
        pl.DataFrame(rows),
        queries=[f"q{n}" for n in range(queries)],
        qrels=qrels.with_columns(grade=pl.lit(1, pl.Int32)) if judged else None,
        labels_file="labels.tsv",
    )


def notes(collection: Collection, scores: dict[str, dict[str, float]], *, card: bool = False) -> tuple[str, ...]:
    measures = "RR" if collection.qrels.height else None
    return audit(collection, run_of(collection, scores, ranker="r"), measures, card=card, resamples=200).notes


PAIR: dict[str, list[str | None]] = {"doc_id": ["a-h", "a-l"], "source": ["human", "llm"]}
SCORES = {"q0": {"a-h": 2.0, "a-l": 1.0}}


# Judgments of what is not there


@pytest.mark.parametrize(
    ("strange", "note"),
    [
        (["x"], "1 judgment of documents without a label counts in the row 'all' and in no group"),
        (["x", "y"], "2 judgments of documents without a label count in the row 'all' and in no group"),
    ],
)
def test_judgments_without_a_label_are_counted(strange: list[str], note: str) -> None:
    judged = [("q0", doc) for doc in ("a-h", "a-l", *strange)]
    assert note in notes(labelled(PAIR, judged), SCORES)


# Judgments that name documents otherwise


def test_bare_ids_in_the_judgments_are_met_with_the_labels_ids() -> None:
    rows: dict[str, list[str | None]] = {"doc_id": ["b-h", "a-h", "a-l"], "source": ["human", "human", "llm"]}
    with pytest.raises(UserError) as caught:
        notes(labelled(rows, [("q0", "a"), ("q0", "b")]), SCORES)
    assert str(caught.value) == (
        "nothing to compare: no document of source 'human' is judged relevant; of 2 relevant documents no source is "
        "known (first: 'a'; known ids look like 'b-h'): write the judgments with these ids"
    )


# Twins that are not


def halves(count: int, lone: int, unlabelled: int = 0) -> Collection:
    """Judged pairs, a query each, of which some lack their second side."""
    rows = [(f"{n}-{s}", s, f"{n}-human") for n in range(count) for s in BOTH if s == "human" or n >= lone]
    rows += [(f"u{n}", None, f"u{n}") for n in range(unlabelled)]
    names, sources, origins = zip(*rows, strict=True)
    judged = [(f"q{name.partition('-')[0]}", name) for name, source, _ in rows if source]
    table: dict[str, list[str | None]] = {"doc_id": [*names], "source": [*sources], "origin": [*origins]}
    return labelled(table, judged, count)


def test_a_few_documents_without_a_twin_are_the_reason_for_the_band() -> None:
    found = notes(halves(10, 2), {"q5": {"5-human": 1.0}})
    assert (
        "human and llm are not twins: 2 of 18 relevance judgments are of documents without a twin on the other side, "
        "so level is the median of random labels and not 0"
    ) in found


def test_documents_without_a_label_may_have_been_the_twins() -> None:
    found = notes(halves(10, 1, unlabelled=3), {"q5": {"5-human": 1.0}})
    assert (
        "human and llm are not twins: 1 of 19 relevance judgments is of a document without a twin on the other side "
        "(3 documents have no label), so level is the median of random labels and not 0"
    ) in found


@pytest.mark.parametrize("lone", [0, 8], ids=["all are twins", "most are none"])
def test_otherwise_nothing_is_said_of_twins(lone: int) -> None:
    assert not any("are not twins" in note for note in notes(halves(10, lone), {"q9": {"9-human": 1.0}}))


# A card without twins


def test_labels_without_an_origin_name_the_column() -> None:
    found = notes(labelled(PAIR, []), SCORES, card=True)
    assert "head-to-head, rank gap and score gap need twins: the column origin in labels.tsv" in found


def test_a_collection_without_twins_needs_shared_origins() -> None:
    docs = toy().docs.with_columns(origin=pl.col("id"))
    found = notes(Collection(docs, toy().queries, toy().qrels), {"q1": {"d1-llm": 1.0}}, card=True)
    assert "head-to-head, rank gap and score gap need twins: documents of two sources with one origin" in found


@pytest.mark.parametrize("card", [True, False])
def test_twins_or_no_card_need_no_such_note(card: bool) -> None:
    collection = toy() if card else labelled(PAIR, [("q0", "a-h"), ("q0", "a-l")])
    scores = {"q1": {"d1-llm": 1.0}} if card else SCORES
    assert not any("need twins" in note for note in notes(collection, scores, card=card))


# Intervals on little


@pytest.mark.parametrize("found", [1, 29])
def test_few_queries_that_find_anything_are_warned_of(found: int) -> None:
    collection = twins(40)
    run = ordered(collection, [("human", "llm")] * found + [()] * (40 - found), "r")
    result = audit(collection, run, ["nDCG@1", "RR"], resamples=200)
    assert (
        f"warning: r: few of 40 queries retrieved a relevant document of human or llm on nDCG@1 ({found}), "
        f"RR ({found}); intervals from fewer than 30 such queries are too narrow to rely on"
    ) in result.notes


@pytest.mark.parametrize(("queries", "found"), [(40, 30), (40, 0), (20, 5)], ids=["enough", "none", "few queries"])
def test_enough_none_at_all_or_few_queries_are_not_warned_of_so(queries: int, found: int) -> None:
    collection = twins(queries)
    run = ordered(collection, [("human", "llm")] * found + [()] * (queries - found), "r")
    result = audit(collection, run, "nDCG@1", resamples=200)
    assert not any("few of" in note for note in result.notes)
    assert any("only 20 queries compare" in note for note in result.notes) == (queries == 20)
