"""Which properties of pages go with the gap between two groups' citation rates."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt.citing.cite import cite
from ranktilt.citing.explain import explain_citations
from ranktilt.citing.pages.citable_pages import SEARCH_RANK
from ranktilt.citing.result import CitationAudit
from ranktilt.errors import UserError
from ranktilt.explaining.properties.result import ExplainedGaps

DOMAINS, QUERIES, PAGES = 60, 80, 10


def long_pages_are_cited(folder: Path, **options: Any) -> CitationAudit:
    """Audit an engine that cites long pages; pages of ``ai`` are longer, and not cited for it."""
    rng = np.random.default_rng(5)
    is_ai = np.arange(DOMAINS) % 2 == 1
    words = rng.normal(300, 60, DOMAINS).round() + 100 * is_ai
    rows = [
        f"https://d{domain}.org/,{'ai' if is_ai[domain] else 'human'},{words[domain]:.0f},"
        f"{'word ' * int(words[domain] // 10)}"
        for domain in range(DOMAINS)
    ]
    table = "\n".join(["url,source,words,text", *rows])
    (folder / "pages.csv").write_text(table + "\n", encoding="utf-8")
    lines = []
    for query in range(QUERIES):
        listed = rng.choice(DOMAINS, PAGES, replace=False)
        rates = np.clip(0.3 + 0.002 * (words[listed] - 350), 0, 1)
        is_cited = rng.random(PAGES) < rates
        pages = [f"https://d{domain}.org/" for domain in listed]
        cited = [page for page, chosen in zip(pages, is_cited, strict=True) if chosen]
        lines.append(json.dumps({"query": f"q{query}", "cited": cited, "retrieved": pages}))
    answers = folder / "answers.jsonl"
    answers.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return cite(answers, f"{folder}/pages.csv:id=url", resamples=199, **options)


def test_gap_goes_with_the_planted_property(tmp_path: Path) -> None:
    gaps = explain_citations(long_pages_are_cited(tmp_path), properties=["words"])
    (gap,) = gaps.gaps
    (part,) = gap.parts
    assert (gap.outcome, gap.group_a, gap.group_b) == ("cited", "ai", "human")
    # 100 words more, at .2 points a word.
    assert part.low < 20 < part.high
    assert gap.remaining_low < 0 < gap.remaining_high
    assert gap.value == pytest.approx(gap.remaining + part.value)
    assert gaps.headline.startswith("Within a question, the engine cites ai more often than human")


def test_many_groups_are_compared_with_the_reference(tmp_path: Path) -> None:
    long_pages_are_cited(tmp_path)
    # Thirteen kinds and human: all pairs would be too many.
    kinds = [f"kind{domain % 14}" if domain % 14 else "human" for domain in range(DOMAINS)]
    rows = [
        f"https://d{domain}.org/,{kind},{100 + 7 * domain % 60}"
        for domain, kind in enumerate(kinds)
    ]
    (tmp_path / "pages.csv").write_text("\n".join(["url,source,words", *rows]), encoding="utf-8")
    audit = cite(tmp_path / "answers.jsonl", f"{tmp_path}/pages.csv:id=url", resamples=199)
    gaps = explain_citations(audit, properties=["words"]).gaps
    assert {gap.group_b for gap in gaps} == {"human"}
    assert len({gap.group_a for gap in gaps}) == 13


def test_columns_texts_and_search_rank_are_measured(tmp_path: Path) -> None:
    gaps = explain_citations(long_pages_are_cited(tmp_path))
    names = [about.name for about in gaps.properties]
    assert names[0] == "words"
    assert names[-1] == SEARCH_RANK
    assert "type/token ratio" in names
    assert not any("query" in name for name in names)
    assert ExplainedGaps.load(gaps.save(tmp_path / "gaps.json")) == gaps


def test_repeats_are_averaged(tmp_path: Path) -> None:
    once = explain_citations(long_pages_are_cited(tmp_path), properties=["words"]).gaps[0]
    answers = tmp_path / "answers.jsonl"
    records = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    twice = [json.dumps(record | {"run": run}) for record, run in product(records, (1, 2))]
    answers.write_text("\n".join(twice) + "\n", encoding="utf-8")
    audit = cite(answers, f"{tmp_path}/pages.csv:id=url", resamples=199)
    repeated = explain_citations(audit, properties=["words"]).gaps[0]
    assert repeated.value == pytest.approx(once.value)
    assert repeated.error == pytest.approx(once.error)
    assert repeated.entries == once.entries


def test_nothing_that_could_be_cited_is_refused(tmp_path: Path) -> None:
    audit = long_pages_are_cited(tmp_path)
    answers = tmp_path / "answers.jsonl"
    records = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    lines = [json.dumps({"query": line["query"], "cited": line["cited"]}) for line in records]
    answers.write_text("\n".join(lines) + "\n", encoding="utf-8")
    without_pool = cite(answers, f"{tmp_path}/pages.csv:id=url", resamples=199)
    with pytest.raises(UserError, match="nothing tells what could have been cited"):
        explain_citations(without_pool)
    with pytest.raises(UserError, match="unknown property 'fame'"):
        explain_citations(audit, properties=["fame"])


def test_pages_without_properties_are_refused(tmp_path: Path) -> None:
    audit = long_pages_are_cited(tmp_path)
    labels = tmp_path / "pages.csv"
    rows = [line.split(",")[:2] for line in labels.read_text(encoding="utf-8").splitlines()]
    labels.write_text("\n".join(map(",".join, rows)) + "\n", encoding="utf-8")
    gaps = explain_citations(audit)  # the rank in the search results is known all the same
    assert [about.name for about in gaps.properties] == [SEARCH_RANK]
    answers = tmp_path / "answers.jsonl"
    text = answers.read_text(encoding="utf-8").replace('"retrieved"', '"consulted"')
    answers.write_text(text, encoding="utf-8")
    consulted = cite(answers, f"{labels}:id=url", resamples=199)
    with pytest.raises(UserError, match="has no column of numbers and no column text"):
        explain_citations(consulted)


def test_property_that_is_mostly_unknown_is_named(tmp_path: Path) -> None:
    audit = long_pages_are_cited(tmp_path)
    labels = tmp_path / "pages.csv"
    rows = [line.split(",") for line in labels.read_text(encoding="utf-8").splitlines()]
    header, *pages = [row[:3] for row in rows]
    lines = [",".join(header)]
    for number, (url, label, words) in enumerate(pages):
        # Two of three pages have no number of words.
        lines.append(f"{url},{label},{words if number % 3 == 0 else ''}")
    labels.write_text("\n".join(lines) + "\n", encoding="utf-8")
    message = r"no property is left for .*words .mostly unknown.*; add a column of numbers"
    with pytest.raises(UserError, match=message):
        explain_citations(audit, properties=["words"])
