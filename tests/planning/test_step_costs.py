"""Samples of a collection: of every length, twins together, with judgments."""

import polars as pl
import pytest

import ranktilt as rt
from ranktilt.planning.step_costs import sample


@pytest.mark.parametrize(("documents", "queries"), [(40, 10), (200, 216), (464, 1)])
def test_sizes_are_those_that_were_asked_for(documents: int, queries: int) -> None:
    drawn = sample(rt.bundled(), documents, queries, seed=0)
    assert abs(drawn.docs.height - documents) <= 4
    assert drawn.judged.height == queries == drawn.queries.height


def test_twins_stay_together_and_are_judged_alike() -> None:
    whole = rt.bundled()
    drawn = sample(whole, 100, 20, seed=3)
    versions = whole.docs.group_by("origin").len()
    kept = drawn.docs.group_by("origin").len().join(versions, on="origin", suffix="_whole")
    assert (kept["len"] == kept["len_whole"]).all()
    judged = drawn.qrels.join(drawn.docs, left_on="doc_id", right_on="id").group_by("query_id", "origin").len()
    assert judged.join(kept, on="origin", suffix="_kept").filter(pl.col("len") != pl.col("len_kept")).is_empty()


def test_about_as_many_judgments_are_kept() -> None:
    whole = rt.bundled()
    drawn = sample(whole, 200, 100, seed=0)
    each = whole.qrels.height / whole.judged.height
    assert drawn.qrels.height / 100 == pytest.approx(each, rel=0.35)
    assert set(drawn.qrels["grade"]) <= set(whole.qrels["grade"])


def test_lengths_are_those_of_the_whole() -> None:
    whole = rt.bundled()
    means = [sample(whole, 60, 10, seed=seed).docs["text"].str.len_bytes().mean() for seed in range(10)]
    expected = whole.docs["text"].str.len_bytes().mean()
    assert all(mean == pytest.approx(expected, rel=0.1) for mean in means)


def test_another_seed_draws_others() -> None:
    one, same, other = (set(sample(rt.bundled(), 60, 10, seed=seed).ids) for seed in (1, 1, 2))
    assert one == same != other


def test_documents_beyond_those_there_are_copies_with_texts_of_their_own() -> None:
    whole = rt.bundled()
    drawn = sample(whole, 1000, 10, seed=0)
    assert abs(drawn.docs.height - 1000) <= 4
    assert drawn.docs["text"].n_unique() == drawn.docs.height
    assert set(drawn.docs["text"].str.strip_chars_end()) <= set(whole.docs["text"].str.strip_chars_end())
    copies = drawn.docs.group_by("origin").len()["len"]
    assert set(copies) <= set(whole.docs.group_by("origin").len()["len"])
