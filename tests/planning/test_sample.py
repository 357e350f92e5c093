"""Samples of a collection: of every length, twins together, with judgments."""

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt.collection import Collection
from ranktilt.planning.sample import repeated, repeated_run, sample, with_rewrites, without_rewrites


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


def test_a_collection_without_judgments_has_none() -> None:
    whole = rt.bundled()
    drawn = sample(Collection(whole.docs, whole.queries, whole.qrels.clear()), 60, 10, seed=0)
    assert drawn.qrels.is_empty()
    assert drawn.judged.height == 10


def test_a_repeated_collection_is_as_much_work_with_the_same_words() -> None:
    whole = rt.bundled()
    many, run = repeated(whole, 3), rt.ranker("bm25@7").rank(whole)
    copied = repeated_run(run, many, 3, 1)
    assert (many.docs.height, many.judged.height) == (3 * whole.docs.height, 3 * whole.judged.height)
    assert len(copied.docs) == 3 * len(run.docs)
    assert many.docs["text"].n_unique() == whole.docs["text"].n_unique()
    before, after = (rt.audit(*one, by="source").tilts for one in ((whole, run), (many, copied)))
    assert before
    assert [tilt.value for tilt in after] == pytest.approx([tilt.value for tilt in before], nan_ok=True)
    assert repeated(whole, 1) is whole
    renamed = whole.docs["id"].replace(whole.docs["id"][1], f"{whole.docs['id'][0]}#1")  # what a copy would be called
    assert (
        repeated(Collection(whole.docs.with_columns(renamed), whole.queries, whole.qrels.head(0)), 2).docs.height == 928
    )


def test_lists_of_a_repeated_collection_grow_up_to_the_depth() -> None:
    whole = rt.bundled()
    run = rt.ranker("bm25@7").rank(whole)
    deeper = repeated_run(run, repeated(whole, 3), 3, 14)
    lengths = np.diff(run.offsets)
    assert (np.diff(deeper.offsets) == np.tile(lengths * np.minimum(14 // lengths, 3), 3)).all()
    found = zip(np.repeat(deeper.queries, np.diff(deeper.offsets)), deeper.docs.tolist(), strict=True)
    assert len(set(found)) == len(deeper.docs)


def test_rewrites_that_are_planned_are_twins_and_go_without_a_trace() -> None:
    docs = rt.bundled().docs.filter(pl.col("source") == "human")
    qrels = rt.bundled().qrels.join(docs, left_on="doc_id", right_on="id", how="semi")
    docs = docs.with_columns(text=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("a few words")).otherwise("text"))
    human = Collection(docs, rt.bundled().queries, qrels)
    both = with_rewrites(human, "planned")
    pairs = both.pairs("human", "planned")
    assert pairs.height == human.docs.height
    assert both.qrels.height == 2 * human.qrels.height
    text = dict(both.docs.select("id", "text").iter_rows())
    assert all(len(text[b]) == max(len(text[a]) - 12, 0) for a, b in pairs.select("a", "b").iter_rows())
    again = without_rewrites(both, "planned")
    assert again.docs.equals(human.docs)
    assert again.qrels.equals(human.qrels)
