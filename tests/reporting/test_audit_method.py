"""How an audit's numbers were reached: what is said follows from what was asked."""

from dataclasses import replace

import pytest

from ranktilt import Audit, audit
from ranktilt.reporting.views.audit_legend import audit_notes
from tests.reporting.audits import small, three, uneven
from tests.reporting.openings import opened, ungrouped, unjudged, with_spec
from tests.toy import run_of, toy


def said(found: Audit) -> str:
    return "\n".join(audit_notes(found))


def test_every_measure_is_defined_and_no_other() -> None:
    text = said(small())
    assert "nDCG@1, nDCG@3: grades are gains" in text
    assert "AP@3: the precision at the rank of each relevant document" in text
    assert "The ranks that count are the first 1 or 3." in text
    assert "RR" not in text
    assert "the share of the ranks" not in text


@pytest.mark.parametrize("name", ["nDCG", "AP", "P@5", "R@10", "RR"])
def test_each_kind_of_measure_has_a_definition(name: str) -> None:
    run = run_of(toy(), {"q1": {"d1-human": 1.0}}, ranker="one")
    text = said(audit(toy(), run, [name], resamples=100))
    assert f"\n{name}: " in text
    assert ("All ranks count where no number is named" in text) is ("@" not in name)


def test_least_grade_is_named() -> None:
    run = run_of(toy(), {"q1": {"d1-human": 1.0}}, ranker="one")
    text = said(audit(toy(), run, ["AP(rel=2)@5"], resamples=100))
    assert "AP(rel=2)@5: " in text
    assert "relevant from grade 2 on" in text


@pytest.mark.parametrize(
    ("ties", "expected"), [("expected", "expected value over all orders"), ("trec_eval", "by falling document id")]
)
def test_ties_are_those_of_the_audit(ties: str, expected: str) -> None:
    assert expected in said(small(ties=ties))


@pytest.mark.parametrize(("missing", "expected"), [("zero", "lacks counts 0"), ("exclude", "does not count for that")])
def test_missing_queries_count_as_the_audit_says(missing: str, expected: str) -> None:
    assert expected in said(small(missing=missing))


@pytest.mark.parametrize("rounding", ["none", "paper"])
def test_rounding_is_said_where_there_is_any(rounding: str) -> None:
    assert ("rounded to 0.1 %" in said(small(rounding=rounding))) is (rounding == "paper")


@pytest.mark.parametrize(
    ("test", "expected"), [("permutation", "paired permutation test"), ("t", "paired t test over queries")]
)
def test_test_of_twins_is_that_of_the_audit(test: str, expected: str) -> None:
    assert expected in said(small(test=test))


def test_groups_that_are_no_twins_have_random_labels() -> None:
    text = said(uneven())
    assert "Groups that are not twins do not have equal numbers of relevant documents" in text
    assert "permutation" not in text
    assert "random labels" not in said(small())


def test_both_kinds_of_groups_are_told_apart() -> None:
    found = small()
    mixed = replace(found, tilts=(*found.tilts, *uneven().tilts))
    assert "Other groups do not have equal numbers" in said(mixed)


@pytest.mark.parametrize("correction", ["holm", "bonferroni"])
def test_correction_counts_its_tests(correction: str) -> None:
    text = said(small(correction=correction))
    assert f"p is corrected: {correction.capitalize()} over 2 tests of nDCG@3, and over the other 4" in text
    assert "Holm over 3 tests of RR:" in said(three())


def test_level_resamples_and_seed_are_those_of_the_audit() -> None:
    text = said(with_spec(small(), level=7.5, resamples=12_345, seed=99))
    assert "within ±7.5 points" in text
    assert "12,345 resamples" in text
    assert "seed 99" in text


def test_card_is_explained_where_there_is_one() -> None:
    text = said(opened().audit)
    assert "ΔNDSR@20: each rank weighs" in text
    assert "Head-to-head: of pairs of twins" in text
    assert "Pair rank gap" in text
    assert "Score gap" in text
    assert "Head-to-head" not in said(small())


def test_without_judgments_only_the_card_is_explained() -> None:
    text = said(unjudged().audit)
    assert "Relative Δ" not in text
    assert text.startswith("ΔNDSR@20")


def test_without_groups_nothing_is_compared() -> None:
    text = said(ungrouped().audit)
    assert "Relative Δ" not in text
    assert "group" not in text.partition("\n")[0]
