"""Audits by a column of numbers: what the first ranks hold of a property."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt.auditing.grouping.number_bins import is_property
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.reporting.reload import reload
from ranktilt.reporting.sentences.notes import note_sentences
from tests.refusals import refused

QUICK: dict[str, Any] = {"resamples": 500}
QUERIES, DOCUMENTS, DEPTH = 60, 300, 30


def popular_documents(*, unknown: int = 0) -> pl.DataFrame:
    """Documents with a number each, the first few of them without."""
    rng = np.random.default_rng(0)
    popularity = np.round(np.exp(rng.standard_normal(DOCUMENTS)), 3).tolist()
    return pl.DataFrame(
        {
            "id": [f"d{number}" for number in range(DOCUMENTS)],
            "text": "",
            "popularity": [None] * unknown + popularity[unknown:],
            "stars": [number % 5 for number in range(DOCUMENTS)],
        }
    )


def popular_collection(docs: pl.DataFrame | None = None) -> Collection:
    queries = pl.DataFrame({"id": [f"q{number}" for number in range(QUERIES)], "text": ""})
    qrels = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32})
    return Collection(popular_documents() if docs is None else docs, queries, qrels, {})


def ranked(collection: Collection, tilt: float, seed: int = 1) -> Run:
    """Rank drawn documents by the logarithm of their popularity and by chance."""
    rng = np.random.default_rng(seed)
    popularity = popular_documents()["popularity"].to_numpy()
    docs, scores = [], []
    for _ in range(QUERIES):
        drawn = rng.choice(DOCUMENTS, DEPTH, replace=False)
        drawn_scores = tilt * np.log(popularity[drawn]) + rng.standard_normal(DEPTH)
        order = np.argsort(-drawn_scores)
        docs.append(drawn[order])
        scores.append(drawn_scores[order])
    return Run(
        tuple(f"q{number}" for number in range(QUERIES)),
        np.arange(QUERIES + 1) * DEPTH,
        np.concatenate(docs).astype(np.int32),
        np.concatenate(scores),
        collection.ids,
        {"ranker": f"tilt {tilt:g}"},
    )


def audited(tilt: float, **options: Any) -> rt.Audit:
    collection = popular_collection()
    return rt.audit(collection, ranked(collection, tilt), by="popularity", **QUICK, **options)


def test_tilt_to_popular_documents_is_a_verdict() -> None:
    audit = audited(0.5)
    (effect,) = audit.card
    assert effect.measure == "PropertyLift@10"
    assert (effect.a, effect.b) == ("high-popularity", "low-popularity")
    verdict = audit.verdict("tilt 0.5")
    assert (verdict.kind, verdict.side) == ("favours", "high-popularity")
    assert "its first 10 results are higher in popularity than the whole list" in verdict.sentence
    assert effect.details["mean_first"] > effect.details["mean_list"]


def test_blind_ranker_and_margin() -> None:
    audit = audited(0.0)
    assert audit.card[0].neutral == 0.0
    assert audit.verdict("tilt 0").kind == "inconclusive"
    assert audited(0.0, margin="0.5 sd").verdict("tilt 0").kind == "level"


def test_negated_property_negates_the_answer() -> None:
    docs = popular_documents().with_columns(rarity=-pl.col("popularity"))
    collection = popular_collection(docs)
    run = ranked(collection, 0.5)
    first, second = (
        rt.audit(collection, run, by=by, **QUICK).card[0] for by in ("popularity", "rarity")
    )
    assert second.value == pytest.approx(-first.value)
    assert (second.low, second.high) == pytest.approx((-first.high, -first.low))
    assert second.p == pytest.approx(first.p)


def test_unit_of_the_column_does_not_matter() -> None:
    docs = popular_documents().with_columns(thousands=1e6 + 1_000 * pl.col("popularity"))
    collection = popular_collection(docs)
    run = ranked(collection, 0.5)
    first, second = (
        rt.audit(collection, run, by=by, **QUICK).card[0] for by in ("popularity", "thousands")
    )
    assert second.value == pytest.approx(first.value)


def test_documents_without_a_number_are_counted() -> None:
    collection = popular_collection(popular_documents(unknown=20))
    audit = rt.audit(collection, ranked(collection, 0.5), by="popularity", **QUICK)
    assert any("20 documents without popularity" in note for note in note_sentences(audit.notes))


def test_note_says_how_to_make_groups() -> None:
    notes = " ".join(note_sentences(audited(0.5).notes))
    assert "popularity is read as a property, not as groups" in notes
    assert "--by popularity:2 makes two bins" in notes


def test_few_numbers_are_groups() -> None:
    collection = popular_collection()
    assert is_property(collection, "popularity")
    assert not is_property(collection, "stars")
    assert not is_property(collection, "source")
    audit = rt.audit(collection, ranked(collection, 0.5), by="stars", pairs=[("0", "4")], **QUICK)
    assert audit.pairs == (("stars 0", "stars 4"),)


def test_bins_are_groups_as_before() -> None:
    collection = popular_collection()
    audit = rt.audit(collection, ranked(collection, 0.5), by="popularity:2", **QUICK)
    assert audit.primary is not None
    assert audit.primary.name == "Share"


def test_questions_that_do_not_fit_are_refused() -> None:
    collection = popular_collection()
    run = ranked(collection, 0.5)
    with refused("Share@10 compares groups, and popularity is a column of numbers…"):
        rt.audit(collection, run, "Share@10", by="popularity")
    with refused("PropertyLift@10 needs a column of more than ten different numbers…"):
        rt.audit(collection, run, "PropertyLift@10", by="stars")


def test_file_page_and_gate(tmp_path: Path) -> None:
    audit = audited(0.5)
    path = audit.save(tmp_path / "audit.json")
    assert rt.Audit.load(path) == audit
    rt.report(path, tmp_path / "page.html")
    assert rt.gate(audit, max_tilt="0.1 sd").outcome == "tilted"
    with refused("--max-tilt 5: PropertyLift@10 is counted in sd; say how many…"):
        rt.gate(audit)


def test_reloaded_audit_knows_its_documents() -> None:
    collection = popular_collection()
    audit = rt.audit(collection, ranked(collection, 0.5), by="popularity", **QUICK)
    assert reload(audit, None, collection=collection).audit == audit


def test_two_runs_are_compared() -> None:
    comparison = rt.compare(audited(0.8), audited(0.2))
    (change,) = comparison.estimates
    assert change.value > 0
    assert change.significant
