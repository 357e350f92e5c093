"""Two engines on the same questions: whose tilt is larger, and how alike they cite."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktilt.auditing.comparison.compare import compare
from ranktilt.citing.cite import cite
from ranktilt.citing.comparison.difference import difference_spread, engine_tilts
from ranktilt.citing.comparison.result import CitationComparison
from ranktilt.citing.effect import QUESTIONS
from ranktilt.citing.result import CitationAudit
from ranktilt.errors import UserError
from tests.citing.engines import engine_audit, two_audits, two_engines, write_engines
from tests.measures.citations.rows import random_world


def test_planted_difference_is_found() -> None:
    change = two_engines().primary[0]
    new, old = two_audits()
    assert change.kind == "differs"
    assert change.side == "ai"
    assert change.value == pytest.approx(new.primary[0].value / old.primary[0].value)
    assert change.low < 2.5 < change.high
    assert change.growth_low > 1


def test_swapped_engines_give_the_inverse() -> None:
    new, old = two_audits()
    forth, back = two_engines().primary[0], compare(old, new, resamples=999).primary[0]
    assert back.value == pytest.approx(1 / forth.value)
    assert (back.low, back.high) == pytest.approx((1 / forth.high, 1 / forth.low))
    assert back.p == pytest.approx(forth.p)
    assert back.growth == pytest.approx(1 / forth.growth)


def test_engine_is_identical_to_itself() -> None:
    audit = two_audits()[0]
    comparison = compare(audit, audit, resamples=199)
    assert {change.kind for change in comparison.primary} == {"identical"}
    assert comparison.headline == "new and old cite alike."
    assert [overlap.value for overlap in comparison.overlaps] == [1, 1, 1, 1]


def test_shared_variation_makes_the_difference_surer() -> None:
    new, old = two_audits()
    apart = np.hypot(new.primary[0].error, old.primary[0].error)
    assert two_engines().primary[0].error < apart


OVERLAPS = """
{"query": "q1", "cited": ["a.org/1", "b.org/1", "c.org/1"], "not_cited": ["d.org/1"]}
{"query": "q2", "cited": [], "not_cited": ["a.org/1", "b.org/1"]}
{"query": "q3", "cited": ["b.org/1"], "not_cited": ["a.org/1"]}
"""


def test_overlap_by_hand(tmp_path: Path) -> None:
    new, old = tmp_path / "new.jsonl", tmp_path / "old.jsonl"
    new.write_text(OVERLAPS, encoding="utf-8")
    # q1: 1 of 4 pages and 2 of 3 domains; q2: nothing on either side; q3: all.
    changed = OVERLAPS.replace('["a.org/1", "b.org/1", "c.org/1"],', '["b.org/2", "a.org/1"],')
    old.write_text(changed, encoding="utf-8")
    labels = tmp_path / "pages.csv"
    labels.write_text("url,source\na.org/1,ai\nb.org/1,human\nc.org/1,ai\n", encoding="utf-8")
    audits = [cite(path, f"{labels}:id=url", resamples=199) for path in (new, old)]
    comparison = compare(*audits, resamples=199)
    values = {(overlap.of, overlap.measure): overlap for overlap in comparison.overlaps}
    assert values["pages", "Jaccard"].value == pytest.approx((1 / 4 + 1) / 2)
    assert values["domains", "Jaccard"].value == pytest.approx((2 / 3 + 1) / 2)
    # Ranks 1 and 2 share 0 of 1 and 1 of 2 pages: .1 · .9 · ½ + .81 · ½.
    assert values["pages", "rank-biased overlap"].value == pytest.approx((0.45 + 1) / 2)
    assert {overlap.queries for overlap in comparison.overlaps} == {2}


def test_shares_are_compared_where_no_pool_is_known(tmp_path: Path) -> None:
    answers = write_engines(tmp_path, {"beta": 3.0, "alpha": 1.0})
    lines = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    for record in lines:
        del record["consulted"]
    answers.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    change = compare(
        engine_audit(answers, "beta"), engine_audit(answers, "alpha"), resamples=999
    ).primary[0]
    assert change.question == "share"
    assert change.value == pytest.approx(change.new - change.old)
    assert change.kind == "differs"


def test_few_domains_leave_the_kind_open(tmp_path: Path) -> None:
    answers = write_engines(tmp_path, {"beta": 3.0, "alpha": 1.0}, domains=14)
    comparison = compare(
        engine_audit(answers, "beta"), engine_audit(answers, "alpha"), resamples=199
    )
    change = comparison.primary[0]
    assert change.kind == "inconclusive"
    assert change.these_low > 1
    assert "Of these domains, in further questions like these: " in comparison.headline


def other_labels(audit: CitationAudit) -> CitationAudit:
    """Exchange the labels of all pages."""
    labels = {"ai": "human", "human": "ai"}
    pages = audit.pages.pages
    pages = pages.with_columns(label=pages["label"].replace(labels))
    return replace(audit, pages=replace(audit.pages, pages=pages))


def other_queries(audit: CitationAudit) -> CitationAudit:
    answers = audit.pages.answers
    answers = answers.with_columns(query="x" + answers["query"])
    return replace(audit, pages=replace(audit.pages, answers=answers))


def other_spec(name: str, value: object) -> Callable[[CitationAudit], CitationAudit]:
    return lambda audit: replace(audit, spec={**audit.spec, name: value})


def other_pairs(audit: CitationAudit) -> CitationAudit:
    effects = tuple(replace(effect, a="robot") for effect in audit.effects)
    return replace(audit, effects=effects)


def other_unit(audit: CitationAudit) -> CitationAudit:
    return replace(audit, unit=replace(audit.unit, name="page"))


def without_pages(audit: CitationAudit) -> CitationAudit:
    return replace(audit, pages=audit.pages.of_queries([]))


REFUSED = [
    (other_labels, "page 'd.*' is 'human' in the new audit and 'ai' in the old one"),
    (other_queries, "the audits have no query in common"),
    (other_spec("by", "kind"), "the audits differ in by: 'source' .new. and 'kind' .old."),
    (other_spec("exact_urls", True), "use the same --exact-urls for both"),
    (other_pairs, "no pair of groups in common: ai and human .new., robot and human .old."),
    (other_unit, "constant within domain .new. and page .old.; audit both with --cluster"),
    (without_pages, "the old audit is too large to keep its pages"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_refused(change: Callable[[CitationAudit], CitationAudit], message: str) -> None:
    new, old = two_audits()
    with pytest.raises(UserError, match=message):
        compare(new, change(old), resamples=199)


def test_audits_of_two_kinds_are_refused() -> None:
    audit = two_audits()[0]
    with pytest.raises(UserError, match="expected two audits of one kind"):
        compare(object(), audit)  # type: ignore[call-overload]
    with pytest.raises(UserError, match="an audit of citations is compared with another one"):
        compare(audit, baseline_run="bm25")  # type: ignore[call-overload]


def test_queries_of_one_engine_are_left_out_and_noted(tmp_path: Path) -> None:
    answers = write_engines(tmp_path, {"beta": 2.0, "alpha": 1.0})
    new, old = engine_audit(answers, "beta"), engine_audit(answers, "alpha")
    fewer = replace(old, pages=old.pages.of_queries(old.pages.queries[:76]))
    comparison = compare(new, fewer, resamples=199)
    assert comparison.queries == 76
    assert [note.kind for note in comparison.notes] == ["QueriesLeftOut"]
    with pytest.raises(UserError, match="more than --max-left-out 1"):
        compare(new, fewer, resamples=199, max_left_out=1)


def test_comparison_is_saved_and_read(tmp_path: Path) -> None:
    comparison = two_engines()
    assert CitationComparison.load(comparison.save(tmp_path / "compared.json")) == comparison
    audit = two_audits()[0]
    loaded = CitationAudit.load(audit.save(tmp_path / "audit.json"))
    assert loaded == audit
    assert loaded.pages.rows().equals(audit.pages.rows())
    # A loaded audit needs none of the files that it was made from.
    again = compare(loaded, two_audits()[1], resamples=999)
    assert again.frame("changes").equals(comparison.frame("changes"))


@pytest.mark.long
@pytest.mark.parametrize("key", ["rate", "share", "equal rank"])
def test_equal_tilts_rarely_differ(key: str) -> None:
    findings = 0
    for seed in range(300):
        new = random_world(seed, domains=150, selection=0.7, rank_effect=0.5)
        # The same domains and labels, other citations: another engine with the same tilt.
        old = random_world(seed, domains=150, selection=0.7, rank_effect=0.5, engine=1)
        tilts = engine_tilts(QUESTIONS[key], new, old)  # type: ignore[index]
        findings += difference_spread(*tilts, resamples=199, seed=seed).p < 0.05
    assert findings <= 26
