"""Citations by groups of queries: the published answers by market, and a planted group."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ranktilt as rt
from ranktilt.citing.cite import cite
from ranktilt.citing.result import CitationAudit
from tests.refusals import refused

LABELS = "pages.csv:id=url,source=kind"
RESAMPLES = 400


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    return shared_data / "citations"


@pytest.fixture(scope="module")
def by_market(folder: Path) -> CitationAudit:
    return cite(
        folder / "answers.jsonl",
        f"{folder}/{LABELS}",
        by_query=f"{folder}/queries.tsv:market",
        resamples=RESAMPLES,
    )


def test_rates_of_markets(by_market: CitationAudit) -> None:
    breakdown = by_market.by_query
    assert breakdown is not None
    assert [(group.name, group.queries) for group in breakdown.groups] == [
        ("Commodity / Saturated", 16),
        ("High-Involvement / High-Cost", 16),
        ("Niche / Emerging", 16),
    ]
    rates = [answer.effect for answer in breakdown.answers if answer.effect.question == "rate"]
    # By hand: of 470 citations, 8 are of user-generated pages.
    assert [(rate.citations_a, rate.citations_b) for rate in rates] == [
        (0, 150),
        (2, 154),
        (6, 158),
    ]
    assert [rate.questions for rate in rates] == [16, 16, 16]
    assert rates[2].value_a / rates[2].value_b == pytest.approx(rates[2].value)


def test_markets_are_compared_although_one_has_no_such_citation(by_market: CitationAudit) -> None:
    breakdown = by_market.by_query
    assert breakdown is not None
    (difference,) = [row for row in breakdown.differences if row.question == "rate"]
    assert len(difference.groups) == 3
    assert 0.02 < difference.p < 0.3
    assert "the tilt is not shown to differ between groups of queries by market" in str(by_market)


def test_products_have_too_few_queries(folder: Path) -> None:
    audit = cite(
        folder / "answers.jsonl",
        f"{folder}/{LABELS}",
        by_query=f"{folder}/queries.tsv:product",
        resamples=RESAMPLES,
    )
    assert audit.by_query is not None
    assert all(np.isnan(difference.p) for difference in audit.by_query.differences)
    text = str(audit)
    assert "cannot be compared: fewer than two have 10 queries that count" in text
    assert "3D Printer (4), Digital Piano (4), Drone (4), Electric Bicycle (4)" in text


def test_saved(by_market: CitationAudit, tmp_path: Path) -> None:
    again = CitationAudit.load(by_market.save(tmp_path / "citations.json"))
    assert again.to_json() == by_market.to_json()
    assert str(again) == str(by_market)


def planted_answers(folder: Path) -> None:
    """Write answers of 40 queries: in one topic, ai pages are cited a tenth as often."""
    rng = np.random.default_rng(5)
    lines, topics = [], ["query_id,topic"]
    for query in range(40):
        topic = "health" if query < 20 else "law"
        topics.append(f"q{query},{topic}")
        pages = rng.choice(60, 12, replace=False)
        cited, passed = [], []
        for page in pages.tolist():
            is_ai = page % 2 == 1
            chance = 0.05 if is_ai and topic == "health" else 0.5
            (cited if rng.random() < chance else passed).append(f'"https://p{page}.org/"')
        lines.append(
            f'{{"query_id": "q{query}", "cited": [{", ".join(cited)}], '
            f'"not_cited": [{", ".join(passed)}]}}'
        )
    (folder / "answers.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "topics.csv").write_text("\n".join(topics) + "\n")
    rows = [f"https://p{page}.org/,{'ai' if page % 2 else 'human'}" for page in range(60)]
    (folder / "pages.csv").write_text("\n".join(["url,kind", *rows]) + "\n")


def test_planted_topic_is_found_and_named(tmp_path: Path) -> None:
    planted_answers(tmp_path)
    audit = rt.cite(
        tmp_path / "answers.jsonl",
        f"{tmp_path}/{LABELS}",
        by_query=f"{tmp_path}/topics.csv",
        resamples=1_000,
    )
    assert audit.by_query is not None
    (difference,) = [row for row in audit.by_query.differences if row.question == "rate"]
    assert difference.is_shown
    assert "it is largest in health (ai pages are cited 0." in str(audit)
    answers = {answer.group: answer.effect for answer in audit.by_query.answers_to(difference)}
    assert answers["health"].verdict(audit.margin) == "b"
    assert answers["law"].verdict(audit.margin) == "inconclusive"


def test_column_needs_a_file(tmp_path: Path) -> None:
    planted_answers(tmp_path)
    with refused("--by-query topic: nothing is known of the queries but their ids; name a file: …"):
        rt.cite(tmp_path / "answers.jsonl", f"{tmp_path}/{LABELS}", by_query="topic")
