"""Audits of citations whose labels err."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt.citing.cite import cite
from ranktilt.citing.gate import gate_citations
from ranktilt.citing.label_errors.parts import citation_label_model
from ranktilt.citing.result import CitationAudit, CitationEffect
from ranktilt.data.labels.label_errors import LabelErrors
from tests.citing.test_cite import write_answers
from tests.refusals import refused

RATES = "ai:fpr=.1,fnr=.2"
J = 0.7


def audit_of(folder: Path, label_errors: str | None, **options: Any) -> CitationAudit:
    answers = write_answers(folder, preference=options.pop("preference", 2.5))
    return cite(
        answers,
        f"{folder}/pages.csv:id=url",
        pairs=options.pop("pairs", [("ai", "human")]),
        resamples=999,
        label_errors=label_errors,
        **options,
    )


def effect_of(audit: CitationAudit, question: str) -> CitationEffect:
    [effect] = [effect for effect in audit.effects if effect.question == question]
    return effect


def test_rates_correct_citations_and_pages_apart(tmp_path: Path) -> None:
    observed = effect_of(audit_of(tmp_path, None), "rate")
    corrected = effect_of(audit_of(tmp_path, RATES), "rate")
    # Of n pages labelled ai and m labelled human, (n·.9 − m·.1) / .7 are ai: by hand from counts.
    cited = np.array([observed.citations_a, observed.citations_b], dtype=float)
    pages = cited / np.array([observed.value_a, observed.value_b])
    inverse = np.array([[0.9, -0.1], [-0.2, 0.8]]) / J
    rate_a, rate_b = (inverse @ cited) / (inverse @ pages)
    assert (corrected.value_a, corrected.value_b) == pytest.approx((rate_a, rate_b))
    assert corrected.value == pytest.approx(rate_a / rate_b)
    assert corrected.observed is not None
    assert corrected.observed.value == observed.value
    assert corrected.low < corrected.value < corrected.high
    assert corrected.verdict(5.0) == "a"
    assert corrected.exchange_p == observed.exchange_p


def test_shares_are_moved_and_divided_by_j(tmp_path: Path) -> None:
    for question in ("share", "first"):
        observed = effect_of(audit_of(tmp_path, None), question)
        corrected = effect_of(audit_of(tmp_path, RATES), question)
        for name in ("value", "neutral", "low", "high"):
            share = float(np.clip((getattr(observed, name) - 10) / J, 0, 100))
            assert getattr(corrected, name) == pytest.approx(share)
        assert corrected.p == pytest.approx(observed.p)


def test_stages_are_corrected_and_sum_to_one(tmp_path: Path) -> None:
    observed, corrected = audit_of(tmp_path, None), audit_of(tmp_path, RATES)
    for before, after in zip(observed.stages, corrected.stages, strict=True):
        wrong = 10 if after.group == "ai" else 20
        assert after.value == pytest.approx((before.value - wrong) / J)
        assert after.low == pytest.approx(max((before.low - wrong) / J, 0))
    kinds = [note.kind for note in corrected.notes]
    assert kinds.count("LabelsCorrected") == 1


def test_checked_sample_widens_what_known_rates_give(tmp_path: Path) -> None:
    known = audit_of(tmp_path, RATES, preference=1.4)
    checked = audit_of(tmp_path, "ai:fpr=4/40,fnr=8/40", preference=1.4)
    for question in ("rate", "share"):
        before, after = effect_of(known, question), effect_of(checked, question)
        assert after.value == pytest.approx(before.value)
        assert after.low < before.low
        assert after.high > before.high
        assert after.p >= before.p


def test_turned_pair_gives_the_inverse_ratio(tmp_path: Path) -> None:
    one_way = effect_of(audit_of(tmp_path, "ai:fpr=4/40,fnr=8/40"), "rate")
    other_way = effect_of(
        audit_of(tmp_path, "human:fpr=8/40,fnr=4/40", pairs=[("human", "ai")]), "rate"
    )
    assert other_way.value == pytest.approx(1 / one_way.value)
    assert other_way.low == pytest.approx(1 / one_way.high, rel=1e-6)
    assert other_way.p == pytest.approx(one_way.p)


def test_errors_are_saved_printed_and_gated(tmp_path: Path) -> None:
    audit = audit_of(tmp_path, RATES, preference=1.8)
    loaded = CitationAudit.load(audit.save(tmp_path / "citations.json"))
    assert loaded == audit
    assert loaded.spec["label_errors"] == RATES
    assert gate_citations(loaded, max_tilt=5.0).exit_code == 1
    content = json.loads((tmp_path / "citations.json").read_text())
    assert content["effects"][0]["observed"]["value"] < content["effects"][0]["value"]
    assert ", 1.82 by the labels as they are (" in content["verdicts"][0]


def test_what_cannot_be_corrected_is_refused(tmp_path: Path) -> None:
    with refused("--label-errors bot:fpr=.1,fnr=.1: unknown source 'bot' (valid: …"):
        audit_of(tmp_path, "bot:fpr=.1,fnr=.1")
    sample = tmp_path / "three.csv"
    sample.write_text("true,label,count\nai,ai,9\nhuman,human,9\nmixed,ai,1\n")
    with refused(f"{sample}: unknown source 'mixed' (valid: …"):
        audit_of(tmp_path, str(sample))
    with refused(
        "--label-errors: cite corrects two groups of pages, and there are 3 (a, b, c); join some "
        "of them, such as --name b=a"
    ):
        citation_label_model(LabelErrors.from_text("a:fpr=.1,fnr=.1"), "kind", ["a", "b", "c"])


def flipped_pages(shared_data: Path, folder: Path) -> tuple[Path, dict[str, str]]:
    """Write the pages with their kind flipped at 5 % by seed."""
    rng = np.random.default_rng(58)
    kinds = ("published", "user-generated")
    path, labels = folder / "flipped.csv", dict[str, str]()
    with (shared_data / "citations" / "pages.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            is_wrong = rng.random() < 0.05
            labels[row["url"]] = kinds[(kinds.index(row["kind"]) + is_wrong) % 2]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("url", "kind"), *labels.items()])
    return path, labels


def test_pages_with_flipped_kinds_by_hand(shared_data: Path, tmp_path: Path) -> None:
    path, labels = flipped_pages(shared_data, tmp_path)
    answers = shared_data / "citations" / "answers.jsonl"
    effect = cite(
        answers,
        f"{path}:id=url,source=kind",
        by="source",
        resamples=999,
        pairs=[("user-generated", "published")],
        label_errors="user-generated:fpr=.05,fnr=.05",
    ).primary[0]
    # Counts of labelled pages by hand, each page once an answer; every query is asked three times.
    cited, consulted = Counter[str](), Counter[str]()
    for line in answers.read_text().splitlines():
        record = json.loads(line)
        pages = set(record["cited"])
        cited.update(labels[page] for page in pages)
        consulted.update(labels[page] for page in pages | set(record["not_cited"]))
    false_citations, false_pages = (
        (0.95 * counts["user-generated"] - 0.05 * counts["published"]) / 0.9
        for counts in (cited, consulted)
    )
    others, other_pages = (
        (0.95 * counts["published"] - 0.05 * counts["user-generated"]) / 0.9
        for counts in (cited, consulted)
    )
    rate = max(false_citations / false_pages, 0)
    assert effect.value_a == pytest.approx(rate, abs=2e-3)  # addresses that only differ in form
    assert effect.value_b == pytest.approx(others / other_pages, abs=2e-3)
    assert effect.observed is not None
    # The true ratio is .0415; by the labels as they are it would be read as far more.
    assert effect.low <= 0.0415 <= effect.high
    assert effect.observed.low > 0.0415


def test_rate_of_zero_has_no_interval_in_words(shared_data: Path) -> None:
    folder = shared_data / "citations"
    audit = cite(
        folder / "answers.jsonl",
        f"{folder / 'pages.csv'}:id=url,source=kind",
        run=folder / "search.csv",
        label_errors="published:fpr=.05,fnr=.05",
    )
    sentence = str(audit)
    assert "too few domains (2.0 effective) to speak of them as a kind." in sentence
    assert "[0.000, 0.000]" not in sentence
