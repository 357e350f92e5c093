"""Audits of labels that err: corrected answers, what is refused, and what errors would matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.label_errors.model import label_model
from ranktilt.auditing.label_errors.saved import corrected_audit
from ranktilt.auditing.result import Audit, QueryAnswers
from ranktilt.data.collection import Collection
from ranktilt.data.labels.label_errors import LabelErrors
from ranktilt.data.runs.run import Run
from tests.refusals import refused
from tests.toy import toy

DOCUMENTS, DEPTH = 400, 30
QUICK: dict[str, Any] = {"resamples": 500}
NO_QRELS = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """Ranked documents with a true kind, and a label that a detector gave."""

    collection: Collection
    truth: Collection
    run: Run


def world(
    *,
    tilt: float = 0.8,
    errors: float = 0.1,
    kinds: Sequence[str] = ("ai", "human"),
    queries: int = 50,
    seed: int = 1,
) -> World:
    rng = np.random.default_rng(seed)
    kind = rng.integers(len(kinds), size=DOCUMENTS)
    is_wrong = rng.random(DOCUMENTS) < errors
    label = np.where(is_wrong, (kind + 1) % len(kinds), kind)
    words = rng.integers(1, 301, DOCUMENTS)
    scores = {}
    for number in range(queries):
        drawn = rng.choice(DOCUMENTS, DEPTH, replace=False)
        drawn_scores = rng.standard_normal(DEPTH) + tilt * (kind[drawn] == 0)
        scores[f"q{number}"] = {
            f"d{document}": float(score)
            for document, score in zip(drawn, drawn_scores, strict=True)
        }
    docs = pl.DataFrame(
        {
            "id": [f"d{number}" for number in range(DOCUMENTS)],
            "text": ["word " * int(count) for count in words],
            "kind": [kinds[number] for number in label],
            "chance": rng.random(DOCUMENTS),
        }
    )
    names = [f"q{number}" for number in range(queries)]
    texts = pl.DataFrame({"id": names, "text": names})
    true_kinds = pl.Series("kind", [kinds[number] for number in kind])
    return World(
        collection=Collection(docs, texts, pl.DataFrame(schema=NO_QRELS)),
        truth=Collection(docs.with_columns(true_kinds), texts, pl.DataFrame(schema=NO_QRELS)),
        run=Run.from_dict(scores),
    )


def audited(ranked: World, label_errors: str | None, **options: Any) -> Audit:
    usual = {"by": "kind", "pairs": [("ai", "human")], "measures": "Share@10", **QUICK}
    return rt.audit(ranked.collection, ranked.run, label_errors=label_errors, **usual | options)


def answer(audit: Audit, measure: str = "Share@10") -> Effect:
    [effect] = [effect for effect in audit.card if effect.measure == measure]
    return effect


RATES = "ai:fpr=.05,fnr=.15"
J = 0.8


@pytest.mark.parametrize("measure", ["Share@10", "NDSR@10", "NDSR@20"])
def test_gap_and_interval_are_observed_ones_over_j(measure: str) -> None:
    ranked = world()
    observed = answer(audited(ranked, None, measures=measure), measure)
    corrected = answer(audited(ranked, RATES, measures=measure), measure)
    assert corrected.observed is not None
    for name in ("value", "low", "high", "neutral"):
        assert getattr(corrected.observed, name) == getattr(observed, name)
    for name in ("value", "low", "high", "null_low", "null_high"):
        distance = getattr(observed, name) - observed.neutral
        assert getattr(corrected, name) - corrected.neutral == pytest.approx(distance / J)
    assert corrected.error == pytest.approx(observed.error / J)
    assert corrected.p == pytest.approx(observed.p)
    assert corrected.effective_n == pytest.approx(observed.effective_n)


def test_page_with_unequal_error_rates() -> None:
    # ΔNDSR = 2·share − 1 of all labelled documents, so share − fpr over J is 2·(share − fpr)/J − 1.
    corrected = answer(audited(world(), RATES, measures="NDSR@10"), "NDSR@10")
    assert corrected.observed is not None
    share = (1 + corrected.observed.value) / 2
    assert corrected.value == pytest.approx(2 * (share - 0.05) / J - 1)


def test_shares_in_the_words_are_corrected_too() -> None:
    observed = answer(audited(world(), None))
    corrected = answer(audited(world(), RATES))
    for name, wrong in (("even_a", 0.05), ("even_b", 0.15)):
        share = (observed.details[name] - wrong) / J
        assert corrected.details[name] == pytest.approx(share)


def test_corrected_answer_is_closer_to_truth() -> None:
    ranked = world(errors=0.2, queries=200, seed=5)
    true = answer(rt.audit(ranked.truth, ranked.run, "Share@10", by="kind", **QUICK))
    corrected = answer(audited(ranked, "ai:fpr=.2,fnr=.2"))
    assert corrected.observed is not None
    assert abs(corrected.value - true.value) < 0.02 < abs(corrected.observed.value - true.value)
    assert corrected.low < true.value < corrected.high


def shares_by_hand(ranked: World, counts: dict[str, float]) -> float:
    """Return the mean over queries of what the first ten documents count less the list's mean."""
    gaps = []
    for _, entries in ranked.run.frame().group_by("query_id", maintain_order=True):
        values = [counts[document] for document in entries["doc_id"]]
        gaps.append(np.mean(values[:10]) - np.mean(values))
    return float(np.mean(gaps))


def test_parts_have_rates_of_their_own() -> None:
    ranked = world()
    rates = {0: (0.2, 0.1), 1: (0.02, 0.05)}
    text = "ai:by=length:2,fpr=.2|.02,fnr=.1|.05"
    corrected = answer(audited(ranked, text))
    parts = grouping(ranked.collection, "length:2").code
    docs = ranked.collection.docs
    counts = {}
    for name, kind, part in zip(docs["id"], docs["kind"], parts, strict=True):
        false_positive, false_negative = rates[int(part)]
        counts[name] = ((kind == "ai") - false_positive) / (1 - false_positive - false_negative)
    assert corrected.value == pytest.approx(shares_by_hand(ranked, counts))
    # Equal rates of all parts are the rates of all documents.
    alike = answer(audited(ranked, "ai:by=length:2,fpr=.05|.05,fnr=.15|.15"))
    plain = answer(audited(ranked, RATES))
    assert (alike.value, alike.error) == pytest.approx((plain.value, plain.error))
    assert (alike.low, alike.high) == pytest.approx((plain.low, plain.high))


def test_equal_rates_by_parts_agree_with_one_rate() -> None:
    ranked = world()
    text = "ai:by=length:2,fpr=.05|.05,fnr=.15|.15"
    alike = answer(audited(ranked, text, measures="NDSR@10"), "NDSR@10")
    plain = answer(audited(ranked, RATES, measures="NDSR@10"), "NDSR@10")
    assert alike.value == pytest.approx(plain.value)
    # The labels of both parts are drawn anew, so that the median differs a little.
    assert alike.neutral == pytest.approx(plain.neutral, abs=0.02)
    assert alike.error == pytest.approx(plain.error, rel=0.02)


def checked_file(tmp_path: Path, content: str) -> str:
    path = tmp_path / "checked.csv"
    path.write_text(content)
    return str(path)


THREE = """true,label,count
ai,ai,80
ai,human,10
ai,mixed,10
human,ai,10
human,human,80
human,mixed,10
mixed,ai,10
mixed,human,10
mixed,mixed,80
"""


def test_three_groups_take_the_inverse_of_the_confusion(tmp_path: Path) -> None:
    ranked = world(kinds=("ai", "human", "mixed"))
    file = checked_file(tmp_path, THREE)
    options: dict[str, Any] = {"measures": "NDSR@10", "pairs": None}
    observed = audited(ranked, None, **options)
    corrected = audited(ranked, file, **options)
    # M = .7·I + .1, so that a difference of two groups is divided by .7, and exactly so.
    for before, after in zip(observed.card, corrected.card, strict=True):
        assert after.value == pytest.approx(before.value / 0.7)
        assert after.observed is not None
        assert len(after.observed.error_parts) == 9
    message = (
        "Share@10 compares two groups within both, and with 3 (ai, human, mixed) labels err in its "
        "denominator too: ask NDSR@10, or compare one group with all others (--pair mixed,rest)"
    )
    with refused(message):
        audited(ranked, file, pairs=None)
    with refused("--label-errors ai:fpr=.05,fnr=.15: 3 groups (ai, human, mixed) need all rates…"):
        audited(ranked, RATES, **options)
    merged = audited(ranked, RATES, pairs=[("ai", "rest")])
    assert answer(merged).observed is not None


def test_rates_of_a_sample_widen_the_interval_by_their_error(tmp_path: Path) -> None:
    ranked = world()
    known = answer(audited(ranked, RATES))
    uncertain = answer(audited(ranked, "ai:fpr=5/100,fnr=15/100"))
    assert uncertain.value == pytest.approx(known.value)
    variance = (5.5 * 95.5 + 15.5 * 85.5) / 101**2 / 100
    error = abs(known.value - known.neutral) * variance**0.5 / J
    assert uncertain.observed is not None
    parts = np.array(uncertain.observed.error_parts)
    assert np.linalg.norm(parts) == pytest.approx(error)
    assert uncertain.error == pytest.approx((known.error**2 + error**2) ** 0.5)
    half = ((known.value - known.low) ** 2 + (1.959964 * error) ** 2) ** 0.5
    assert uncertain.low == pytest.approx(known.value - half)
    file = checked_file(
        tmp_path, "true,label,count\nai,ai,85\nai,human,15\nhuman,human,95\nhuman,ai,5\n"
    )
    of_file = answer(audited(ranked, file))
    assert (of_file.low, of_file.high) == pytest.approx((uncertain.low, uncertain.high))


def test_ten_checked_documents_are_honest_and_wide(tmp_path: Path) -> None:
    rows = ["ai,ai"] * 4 + ["ai,human"] + ["human,human"] * 4 + ["human,ai"]
    file = checked_file(tmp_path, "\n".join(["true,label", *rows]) + "\n")
    few = answer(audited(world(), file))
    known = answer(audited(world(), "ai:fpr=.2,fnr=.2"))
    assert few.value == pytest.approx(known.value)
    # J = .6 ± .27 lies 2.2 errors above 0: Fieller's interval, which reaches far to one side.
    assert few.low < known.low
    assert few.high - few.value > 3 * (few.value - few.low)
    assert few.p == pytest.approx(known.p)


def test_parts_of_a_sample_come_from_ids_or_its_column(tmp_path: Path) -> None:
    ranked = world()
    parts = grouping(ranked.collection, "length:2")
    lines, part_lines = ["id,true,label"], ["length:2,true,label"]
    for name, code in zip(ranked.collection.docs["id"][:80], parts.code[:80], strict=True):
        number = int(name[1:])
        label = "human" if number % 7 == 0 else "ai"
        for truth, seen in (("ai", label), ("human", "human")):
            lines.append(f"{name},{truth},{seen}")
            part_lines.append(f"{parts.names[code]},{truth},{seen}")
    by_id = checked_file(tmp_path, "\n".join(lines)) + ":by=length:2"
    first = answer(audited(ranked, by_id))
    by_name = checked_file(tmp_path, "\n".join(part_lines)) + ":by=length:2"
    assert answer(audited(ranked, by_name)).low == pytest.approx(first.low)


def test_level_verdict_changes_when_corrected() -> None:
    ranked = world(tilt=0.0, queries=300, errors=0.3)
    observed = answer(audited(ranked, None))
    margin = 1.05 * 100 * max(observed.high - observed.neutral, observed.neutral - observed.low)
    assert observed.verdict(margin) == "level"
    audit = audited(ranked, "ai:fpr=.3,fnr=.3", margin=margin)
    assert audit.verdict().kind == "inconclusive"
    notes = [note for note in audit.notes if note.kind == "ObservedLevel"]
    assert len(notes) == 1
    assert "would be level within" in notes[0].sentence
    wider = float(notes[0].wider_margin.removeprefix("±").split()[0])  # type: ignore[attr-defined]
    assert answer(audit).verdict(wider) == "level"


def test_default_question_is_share() -> None:
    ranked = world()
    qrels = pl.DataFrame(
        {"query_id": ["q0", "q0", "q1"], "doc_id": ["d1", "d2", "d3"], "grade": [1, 1, 1]},
        schema=NO_QRELS,
    )
    judged = Collection(ranked.collection.docs, ranked.collection.queries, qrels)
    audit = rt.audit(judged, ranked.run, by="kind", label_errors=RATES, **QUICK)
    assert [effect.measure for effect in audit.card] == ["Share@10"]
    assert audit.spec["label_errors"] == RATES
    message = (
        "Relative Δ of nDCG@5 cannot be corrected for label errors, because it is no sum of "
        "labels; ask who has the first ranks instead: -m Share@5 (or NDSR@5) without other measures"
    )
    with refused(message):
        rt.audit(judged, ranked.run, "nDCG@5", by="kind", label_errors=RATES, **QUICK)


@dataclass(frozen=True, kw_only=True)
class Refusal:
    label_errors: str
    message: str
    options: dict[str, Any]


REFUSALS = [
    Refusal(
        label_errors="bot:fpr=.1,fnr=.1",
        options={},
        message="--label-errors bot:fpr=.1,fnr=.1: unknown kind 'bot' (valid: ai, human)",
    ),
    Refusal(
        label_errors="ai:by=lang,fpr=.1,fnr=.1",
        options={},
        message="--label-errors ai:by=lang,fpr=.1,fnr=.1: unknown column to group by 'lang'…",
    ),
    Refusal(
        label_errors="ai:by=length:3,fpr=.1|.2,fnr=.1|.2",
        options={},
        message="--label-errors ai:by=length:3,fpr=.1|.2,fnr=.1|.2: expected 3 rates, one for "
        "each part of length:3…",
    ),
    Refusal(
        label_errors="ai:fpr=3/6,fnr=2/6",
        options={},
        message="--label-errors ai:fpr=3/6,fnr=2/6: 12 documents that were checked leave open "
        "whether labels say anything (sensitivity + specificity − 1 = 0.17 ± 0.28); check more",
    ),
    Refusal(
        label_errors="ai:fpr=0/1,fnr=.3",
        options={},
        message="--label-errors ai:fpr=0/1,fnr=.3: 1 document that was checked leaves open "
        "whether labels say anything…",
    ),
    Refusal(
        label_errors=RATES,
        options={"by": "chance", "pairs": None, "measures": None},
        message="--label-errors needs labels, and chance is a column of numbers, such as a "
        "detector's probabilities: cut it (--by chance:.5) and give the rates of that cut",
    ),
    Refusal(
        label_errors=RATES,
        options={"measures": "ExposureRatio"},
        message="ExposureRatio cannot be corrected for label errors…",
    ),
    Refusal(
        label_errors=RATES,
        options={"by": None, "pairs": None},
        message="--label-errors needs a column to group by; omit --by none",
    ),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: f"{case.label_errors} {case.options}")
def test_correction_refusals(case: Refusal) -> None:
    with refused(case.message):
        audited(world(), case.label_errors, **case.options)


def test_twins_have_no_label_errors() -> None:
    collection = toy()
    run = rt.ranker("bm25").rank(collection)
    message = (
        "the documents of human and llm are twins: each is known to be a version of another, so no "
        "label can be wrong; omit --label-errors"
    )
    with refused(message):
        rt.audit(collection, run, label_errors="llm:fpr=.1,fnr=.1", **QUICK)


SAMPLE_FAULTS = {
    "true,label\nai,ai\nbot,human\n": "unknown kind 'bot' (valid: ai, human); leave out "
    "the rows of other groups",
    "true,label\nai,ai\nai,human\n": "no checked document is truly 'human'; check some of every "
    "group",
}


@pytest.mark.parametrize("content", SAMPLE_FAULTS)
def test_samples_of_other_groups_are_refused(content: str, tmp_path: Path) -> None:
    file = checked_file(tmp_path, content)
    with refused(f"{file}: {SAMPLE_FAULTS[content]}"):
        audited(world(), file)


def test_sample_without_parts_is_refused(tmp_path: Path) -> None:
    file = checked_file(tmp_path, "true,label\nai,ai\nhuman,human\n")
    with refused(f"{file}: expected a column id or 'length:2', to know which part each checked…"):
        audited(world(), f"{file}:by=length:2")
    strange = checked_file(tmp_path, "id,true,label\nx1,ai,ai\n")
    with refused(f"{strange}: unknown document 'x1' (valid: ids of the collection)"):
        audited(world(), f"{strange}:by=length:2")


def test_documents_without_a_part_are_refused() -> None:
    ranked = world()
    docs = ranked.collection.docs.with_columns(
        text=pl.when(pl.col("id") == "d7").then(pl.lit("")).otherwise(pl.col("text"))
    )
    collection = Collection(docs, ranked.collection.queries, ranked.collection.qrels)
    groups = grouping(collection, "kind")
    errors = LabelErrors.from_text("ai:by=length:2,fpr=.1|.2,fnr=.1|.2")
    with refused("--label-errors ai:by=length:2,fpr=.1|.2,fnr=.1|.2: 1 labelled document has no…"):
        label_model(errors, collection, groups)


def test_saved_audit_keeps_observed_answers_and_turns_them(tmp_path: Path) -> None:
    audit = audited(world(), "ai:fpr=5/100,fnr=15/100")
    loaded = Audit.load(audit.save(tmp_path / "audit.json"))
    assert loaded == audit
    effect = answer(loaded)
    turned = effect.swapped()
    assert effect.observed is not None
    assert turned.observed is not None
    assert turned.observed.value == -effect.observed.value
    assert (turned.observed.low, turned.observed.high) == (
        -effect.observed.high,
        -effect.observed.low,
    )
    assert turned.swapped() == effect
    assert "by the labels as they are" in str(audit)


def test_errors_that_would_explain_a_finding() -> None:
    audit = audited(world(tilt=0.3, queries=120), None)
    effect = answer(audit)
    assert effect.favours == "a"
    [sensitivity] = audit.label_sensitivities
    share = effect.details["even_a"] + effect.value
    nearest = effect.low - effect.neutral
    assert sensitivity.share == pytest.approx(share)
    assert sensitivity.both_kinds == pytest.approx(nearest)
    assert sensitivity.one_kind == pytest.approx(nearest / max(share, 1 - share))
    [note] = [note for note in audit.notes if note.kind == "ErrorsThatExplain"]
    assert note.sentence == (
        f"run: label errors could explain that it favours ai, if labels err "
        f"{100 * sensitivity.one_kind:.1f} points more often in the first 10 ranks than in the "
        f"list, or {100 * sensitivity.both_kinds:.1f} points if both kinds of errors do so"
    )
    # Errors of the labels make a finding that is as large.
    turned = rt.audit(
        world(tilt=0.3, queries=120).collection,
        world(tilt=0.3, queries=120).run,
        "Share@10",
        by="kind",
        pairs=[("human", "ai")],
        **QUICK,
    )
    assert turned.label_sensitivities[0] == sensitivity
    assert not audited(world(tilt=0.0), None).label_sensitivities


def test_nfcorpus_with_flipped_labels(shared_data: Path) -> None:
    """One version of each document by coin, its label flipped at 5 and 10 % by seed."""
    cocktail = rt.load(shared_data / "cocktail-nfcorpus")
    rng = np.random.default_rng(58)
    origins = cocktail.docs["origin"].unique().sort()
    is_ai = dict(zip(origins, rng.random(len(origins)) < 0.5, strict=True))
    is_chosen = [
        is_ai[origin] == (source != "human")
        for origin, source in cocktail.docs.select("origin", "source").iter_rows()
    ]
    docs = cocktail.docs.filter(pl.Series(is_chosen))
    truly_ai = (docs["source"] != "human").to_numpy()
    wrong = rng.random(docs.height) < np.where(truly_ai, 0.10, 0.05)
    labels = np.where(truly_ai ^ wrong, "ai", "human")
    docs = docs.with_columns(
        kind=pl.Series(labels), truth=pl.Series(np.where(truly_ai, "ai", "human"))
    )
    qrels = cocktail.qrels.filter(pl.col("doc_id").is_in(docs["id"].implode()))
    collection = Collection(docs, cocktail.queries, qrels)
    run = rt.ranker("bm25@100").rank(collection)
    options: dict[str, Any] = {"pairs": [("ai", "human")], **QUICK}
    text = "ai:fpr=.05,fnr=.10"
    audit = rt.audit(collection, run, by="kind", label_errors=text, **options)
    corrected = answer(audit)
    true = answer(rt.audit(collection, run, "Share@10", by="truth", **options))
    assert corrected.observed is not None
    # By hand: each document counts (label − .05) / .85.
    counts = dict(zip(docs["id"], ((labels == "ai") - 0.05) / 0.85, strict=True))
    by_query = []
    for _, entries in run.frame().group_by("query_id", maintain_order=True):
        values = [counts[document] for document in entries["doc_id"]]
        if len(set(values)) > 1:
            by_query.append(np.mean(values[:10]) - np.mean(values))
    assert corrected.queries == len(by_query)
    assert corrected.value == pytest.approx(np.mean(by_query), abs=2e-3)  # ties are averaged
    assert corrected.value == pytest.approx(corrected.observed.value / 0.85)
    assert corrected.low < true.value < corrected.high


SAMPLE = "ai:fpr=5/100,fnr=15/100"


@pytest.mark.parametrize("label_errors", [RATES, SAMPLE, "human:fpr=15/40,fnr=5/40"])
@pytest.mark.parametrize("measure", ["Share@10", "NDSR@10"])
def test_saved_audit_is_corrected_as_an_audit_with_rates_is(
    label_errors: str, measure: str
) -> None:
    ranked = world(tilt=0.2)
    corrected = audited(ranked, label_errors, measures=measure)
    later = corrected_audit(audited(ranked, None, measures=measure), label_errors)
    at_once, afterwards = answer(corrected, measure), answer(later, measure)
    for name in ("value", "low", "high", "error", "p_corrected", "null_low", "null_median"):
        assert getattr(afterwards, name) == pytest.approx(getattr(at_once, name)), name
    assert dict(afterwards.details) == pytest.approx(dict(at_once.details))
    assert at_once.observed is not None
    assert afterwards.observed is not None
    assert afterwards.observed.error_parts == pytest.approx(at_once.observed.error_parts)
    assert later.spec["label_errors"] == label_errors


def test_saved_page_with_results_of_no_group_is_not_corrected() -> None:
    ranked = world()
    scores: dict[str, dict[str, float]] = {}
    for query, document, score in (
        ranked.run.frame().select("query_id", "doc_id", "score").iter_rows()
    ):
        scores.setdefault(query, {"unknown": 9.0})[document] = score
    strange = replace(ranked, run=Run.from_dict(scores))
    measures = ["Share@10", "NDSR@10"]
    saved = corrected_audit(audited(strange, None, measures=measures), RATES)
    assert [effect.measure for effect in saved.card] == ["Share@10"]
    assert [repr(answer.estimand) for answer in saved.query_answers] == ["Share@10"]
    assert answer(saved).value == pytest.approx(answer(audited(strange, RATES)).value)
    with refused("NDSR@10 with unlabelled documents needs the documents; audit again with…"):
        corrected_audit(audited(strange, None, measures="NDSR@10"), RATES)


def test_saved_audit_of_twins_is_not_corrected() -> None:
    collection = toy()
    audit = rt.audit(collection, rt.ranker("bm25").rank(collection), "Share@2", **QUICK)
    with refused("some documents are twins, whose labels cannot be wrong…"):
        corrected_audit(audit, "llm:fpr=.1,fnr=.1")


def test_gate_decides_on_the_corrected_answer() -> None:
    ranked = world(tilt=0.35, queries=120)
    observed = audited(ranked, None)
    effect = answer(observed)
    limit = 100 * (effect.high - effect.neutral) + 0.1
    assert rt.gate(observed, max_tilt=limit).outcome in ("level", "within")
    decision = rt.gate(observed, max_tilt=limit, label_errors=RATES)
    assert decision.outcome == "inconclusive"
    sentences = [note.sentence for note in decision.notes]
    assert f"answers are corrected for label errors ({RATES}): labels keep 80.0 % of a gap" in (
        sentences
    )
    value = f"{100 * effect.value:+.1f} points by the labels as they are"
    assert f"run, Share@10, ai | human: {value}" in sentences


def two_audits(label_errors: str | None) -> tuple[Audit, Audit]:
    first, second = world(tilt=1.2, queries=80), world(tilt=0.2, queries=80)
    second_run = Run.from_dict(
        {
            query: dict(entries.select("doc_id", "score").iter_rows())
            for (query,), entries in second.run.frame().group_by("query_id", maintain_order=True)
        }
    )
    swapped = World(collection=first.collection, truth=first.truth, run=second_run)
    return audited(first, label_errors), audited(swapped, label_errors)


def test_changes_are_corrected_for_label_errors() -> None:
    [plain] = rt.compare(*two_audits(None)).estimates
    [known] = rt.compare(*two_audits(RATES)).estimates
    assert known.value == pytest.approx(plain.value / J)
    assert known.error == pytest.approx(plain.error / J)
    [uncertain] = rt.compare(*two_audits(SAMPLE)).estimates
    assert uncertain.value == pytest.approx(known.value)
    variance = (5.5 * 95.5 + 15.5 * 85.5) / 101**2 / 100
    rate_error = abs(known.value - known.neutral) * variance**0.5 / J
    assert uncertain.error == pytest.approx((known.error**2 + rate_error**2) ** 0.5, rel=1e-3)
    [later] = rt.compare(*two_audits(None), label_errors=SAMPLE).estimates
    assert (later.low, later.high) == pytest.approx((uncertain.low, uncertain.high))
    comparison = rt.compare(*two_audits(SAMPLE))
    assert any(note.kind == "AnswerAsLabelled" for note in comparison.notes)
    message = (
        f"the audits differ in label errors: {SAMPLE!r} (new) and 'none' (old); audit both with "
        "the same --label-errors"
    )
    with refused(message):
        rt.compare(two_audits(SAMPLE)[0], two_audits(None)[1])


def test_difference_of_corrected_answers_is_not_cut_at_bounds() -> None:
    # Two shares of opposite sides, corrected with a small J: their difference exceeds 2.
    audits = two_audits(None)
    new, old = (
        replace(audit, query_answers=tuple(opposite_answers(audit, value)))
        for audit, value in zip(audits, (0.9, -0.9), strict=True)
    )
    [plain] = rt.compare(new, old).estimates
    [corrected] = rt.compare(new, old, label_errors="ai:fpr=.3,fnr=.3").estimates
    assert corrected.value == pytest.approx(plain.value / 0.4)
    assert corrected.low < corrected.value < corrected.high


def opposite_answers(audit: Audit, value: float) -> Iterator[QueryAnswers]:
    for answers in audit.query_answers:
        noise = np.linspace(-0.05, 0.05, len(answers.numerator))
        yield replace(answers, numerator=(value + noise) * answers.denominator)


def test_growth_since_a_baseline_is_that_of_corrected_answers() -> None:
    new, old = two_audits(None)
    plain = rt.gate(new, baseline=old).rows[0].checks[-1]
    corrected = rt.gate(new, baseline=old, label_errors=RATES).rows[0].checks[-1]
    assert (plain.name, corrected.name) == ("growth", "growth")
    assert corrected.value == pytest.approx(plain.value / J)
    assert corrected.low == pytest.approx(plain.low / J)


SAVED_REFUSALS = [
    Refusal(
        label_errors="ai:by=length:2,fpr=.1|.2,fnr=.1|.2",
        options={},
        message="rates by length:2 need the documents; audit again with --label-errors ai:by=…",
    ),
    Refusal(
        label_errors=RATES,
        options={"measures": "ExposureRatio"},
        message="ExposureRatio cannot be corrected for label errors, because it is no sum of "
        "labels; audit who has the first ranks instead: -m Share@10 --label-errors ai:fpr=.05…",
    ),
]


@pytest.mark.parametrize("case", SAVED_REFUSALS, ids=lambda case: case.label_errors)
def test_saved_audits_that_rates_cannot_correct_are_refused(case: Refusal) -> None:
    audit = audited(world(), None, **case.options)
    with refused(case.message):
        rt.gate(audit, label_errors=case.label_errors)


def test_audit_is_corrected_once() -> None:
    audit = audited(world(), RATES)
    with refused(f"this audit is corrected for label errors already ({RATES}); omit…"):
        rt.gate(audit, label_errors=RATES)
