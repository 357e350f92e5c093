"""Numbers of the published answers, reckoned by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranktilt.citing.cite import cite
from ranktilt.citing.gate import gate_citations
from ranktilt.citing.result import CitationAudit

LABELS = "pages.csv:id=url,source=kind"


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    return shared_data / "citations"


@pytest.fixture(scope="module")
def audit(folder: Path) -> CitationAudit:
    return cite(folder / "answers.jsonl", f"{folder}/{LABELS}")


def test_rates(audit: CitationAudit) -> None:
    rate = audit.primary[0]
    assert (rate.question, rate.a, rate.b) == ("rate", "user-generated", "published")
    assert rate.value_a == pytest.approx(0.0098, abs=5e-5)
    assert rate.value_b == pytest.approx(0.2360, abs=5e-5)
    assert rate.value == pytest.approx(0.0415, abs=5e-5)
    assert audit.counts.citations == 470
    assert audit.counts.consulted - audit.counts.citations == 2304


def test_shares(audit: CitationAudit) -> None:
    shares = {stage.stage: stage.value for stage in audit.stages if stage.group != "published"}
    assert shares["consulted"] == pytest.approx(29.4, abs=0.05)
    assert shares["cited"] == pytest.approx(1.70, abs=0.005)


def test_kind_stays_open(audit: CitationAudit) -> None:
    rate = audit.primary[0]
    assert rate.effective_units == pytest.approx(2.0, abs=0.05)
    assert rate.exchange_p == pytest.approx(0.012, abs=0.003)
    assert rate.two_way_p == pytest.approx(0.16, abs=0.005)
    assert rate.verdict(audit.margin) == "inconclusive"
    assert gate_citations(audit).exit_code == 3


def test_labels_exchanged_within_sizes(audit: CitationAudit) -> None:
    these = audit.primary[0].these_units
    assert these is not None
    # Of three classes with equally many consulted pages; .0005 is left of 10,000 draws' error.
    assert these.exchange_p_within_sizes == pytest.approx(0.056, abs=0.005)


def test_these_domains(audit: CitationAudit) -> None:
    these = audit.primary[0].these_units
    assert these is not None
    assert these.low == pytest.approx(0.020, abs=5e-4)
    assert these.high == pytest.approx(0.086, abs=5e-4)
    youtube, reddit = these.largest
    assert youtube.name == "youtube.com"
    assert youtube.share == pytest.approx(0.60, abs=0.005)
    assert youtube.value_without == pytest.approx(0.104, abs=5e-4)
    assert reddit.name == "reddit.com"
    assert reddit.share == pytest.approx(0.38, abs=0.005)
    assert reddit.value_without == pytest.approx(0.008, abs=5e-4)


def test_headline_names_both_sides_in_their_order(folder: Path, audit: CitationAudit) -> None:
    assert audit.headline.endswith(
        "user-generated pages are cited 4.2 % as often as published ones: ratio 0.042 [0.020, "
        "0.086]."
    )
    labels = f"{folder}/{LABELS}"
    turned = cite(folder / "answers.jsonl", labels, reference="user-generated", resamples=999)
    assert turned.headline.endswith(
        "published pages are cited 24.1 times as often as user-generated ones: ratio 24.07 [11.62, "
        "49.83]."
    )


def test_unit_is_the_domain(folder: Path, audit: CitationAudit) -> None:
    assert audit.unit.name == "domain"
    assert audit.unit.mixed == 0


def test_repeats(audit: CitationAudit) -> None:
    assert audit.steadiness.jaccard == pytest.approx(0.309, abs=5e-4)
    assert audit.steadiness.repeats == 144


def test_with_search_results(folder: Path) -> None:
    audit = cite(folder / "answers.jsonl", f"{folder}/{LABELS}", run=f"{folder}/search.csv:id=url")
    counts = audit.counts
    assert counts.citations - counts.not_retrieved == 95
    assert audit.unit.units == 501
    terms = {part.name: part.value for part in audit.funnel}
    total = terms.pop("total")
    assert sum(terms.values()) == pytest.approx(total, abs=1e-12)


def test_audit_is_saved_and_read(audit: CitationAudit, tmp_path: Path) -> None:
    path = audit.save(tmp_path / "citations.json")
    assert CitationAudit.load(path) == audit
