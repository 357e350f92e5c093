"""Next steps after an explanation: commands that run as printed, none where nothing was read."""

from dataclasses import replace
from typing import Any

from ranktilt.explaining.explanation import Explanation
from ranktilt.explaining.factors.result import FactorEffects
from ranktilt.explaining.properties.result import ExplainedGaps
from ranktilt.reporting.document import NextCommand
from ranktilt.reporting.sentences.explaining.next_steps import (
    explanation_steps,
    factors_steps,
    gaps_steps,
)
from tests.reporting.results import result

FOLDER = {"path": "bed", "split": "dev", "layout": "beir", "ignore_unknown": True}
LABELS = {"labels": "pages.csv", "by": "source"}


def made_of(name: str, collection: dict[str, Any], *rankers: str, **fields: Any) -> Any:
    """A result that was made of a collection, with a run of each ranker."""
    runs = [{"ranker": ranker} for ranker in rankers]
    spec = {**result(name).spec, "collection": collection, "runs": runs, **fields}
    return replace(result(name), spec=spec)


def commands(steps: tuple[NextCommand, ...]) -> list[str]:
    return [step.command for step in steps]


def test_a_gap_between_twins_is_tested_for_its_cause_and_corrected() -> None:
    attributed: Explanation = made_of("attribution", FOLDER, "bm25")
    cause, correction = explanation_steps(attributed)
    assert cause.text == "See whether length is the cause"
    assert cause.command == (
        "ranktilt generate versions bed --split dev --factors length --by-rule -o bed-versions "
        "&& ranktilt explain bed-versions --by-factor -r bm25"
    )
    assert correction.command == "ranktilt mitigate bed -r bm25 --split dev"


def test_a_saved_run_ranks_no_versions() -> None:
    attributed: Explanation = made_of("attribution", FOLDER, "replay:run.trec")
    assert commands(explanation_steps(attributed)) == [
        "ranktilt mitigate bed --run run.trec --split dev"
    ]


def test_texts_that_differ_ask_for_a_ranker() -> None:
    texts: Explanation = made_of("attribution", FOLDER, ranker="dense:minilm")
    texts = replace(texts, results=texts.results[:-1])
    assert commands(explanation_steps(texts)) == [
        "ranktilt explain bed -r dense:minilm --split dev --attribution",
        "ranktilt audit bed -r dense:minilm --split dev",
    ]


def test_a_gap_that_goes_with_a_column_is_audited_by_it() -> None:
    gaps: ExplainedGaps = made_of("explained gaps", LABELS, "replay:b.trec", "replay:engine.trec")
    gaps = replace(gaps, spec={**gaps.spec, "by": "source"})
    assert commands(gaps_steps(gaps)) == [
        "ranktilt audit --run engine.trec --groups pages.csv --by words",
        "ranktilt mitigate --run engine.trec --groups pages.csv",
    ]
    audited = replace(gaps, spec={**gaps.spec, "audit_file": "audit.json"})
    # The audit's file keeps judgments and the question, which an explanation does not read.
    assert commands(gaps_steps(audited))[-1] == "ranktilt mitigate audit.json -r engine"
    level = [replace(gap, p_corrected=1.0) for gap in gaps.gaps]
    assert commands(gaps_steps(replace(gaps, gaps=tuple(level)))) == [
        "ranktilt audit --run b.trec --run engine.trec --groups pages.csv"
    ]


def test_effects_of_edits_lead_to_the_collection_of_the_user() -> None:
    effects: FactorEffects = made_of("factors", FOLDER, "bm25", "dense:x")
    assert commands(factors_steps(effects)) == [
        "ranktilt audit COLLECTION -r bm25 --controls",
        "ranktilt explain bed --split dev --by-factor -r bm25 --adopters 0,10,50,100",
    ]
    rows = tuple(replace(row, p_corrected=1.0) for row in effects.rows)
    assert commands(factors_steps(replace(effects, rows=rows))) == [
        "ranktilt explain COLLECTION --attribution -r bm25"
    ]


def test_what_was_made_in_memory_has_no_next_step() -> None:
    assert explanation_steps(result("attribution")) == ()
    assert gaps_steps(made_of("explained gaps", {})) == ()
    assert factors_steps(result("factors")) == ()
