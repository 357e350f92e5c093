"""Probes: what they say of a collection, as a result and as a file."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.probes.explain import Explanation, explain
from ranktilt.probes.similarity import SimilarityProbe
from ranktilt.probes.text_probes import OverlapProbe, TypeTokenProbe, shared_terms, statistics
from tests.probes.exclaiming import bed
from tests.probes.lexical_vectors import LetterVectors
from tests.refusals import refused
from tests.toy import collection_of

LETTERS = LetterVectors("abcdefghijklmnopqrstuvwxyz")


def test_each_probe_says_what_its_function_finds() -> None:
    pytest.importorskip("sklearn")
    whole = bed()
    found = rt.explain(whole, ["statistics", "overlap", "similarity"], LETTERS)
    counted, terms, near = found.results
    assert [row["source"] for row in counted.rows] == ["human", "llm"]
    assert [row["words"] for row in counted.rows] == [one.words for one in statistics(whole).sources]
    kept = shared_terms(whole, "human", "llm")
    means = [("Jaccard", kept.jaccard.mean), ("overlap", kept.overlap.mean)]
    assert [(row["of"], row["mean"]) for row in terms.rows] == means
    (vectors,) = SimilarityProbe().measure(whole, "human", LETTERS)
    means = [("twins", vectors.cosine.mean), ("other pairs", vectors.baseline.mean)]
    assert [(row["of"], row["mean"]) for row in near.rows] == means
    assert not near.effects, "a cosine belongs to both twins"
    assert [(effect.source, effect.pairs) for one in (counted, terms) for effect in one.effects] == [("llm", 12)] * 2
    for one in found.results:
        assert one.summary.endswith(".")
        assert one.question.endswith("?")
        for figure in one.figures:
            assert all(sum(shares) == pytest.approx(100) for shares in figure.series.values())
            assert {len(shares) + 1 for shares in figure.series.values()} == {len(figure.edges)}


def test_the_effect_of_a_property_of_texts_by_hand() -> None:
    (words,) = rt.explain(bed(), ["statistics"]).results
    (effect,) = words.effects
    assert (effect.what, effect.reference_mean, effect.source_mean) == ("words", 13.0, 17.0)
    assert effect.g == pytest.approx(4 / np.std(2.0 * np.arange(12), ddof=1) * (1 - 3 / 43))
    assert words.summary == ("llm: 17.00 words against 13.00 of human, g = +0.52 [+0.30, +0.73] over 12 pairs.")


def test_by_default_all_that_can_run(tmp_path: Path) -> None:
    found = rt.explain(bed())
    names = "statistics overlap type-token specificity query-words sentences readability perplexity"
    assert [result.probe for result in found.results] == names.split()
    needing = ("similarity", "spectrum", "truncation")
    assert found.notes == tuple(
        f"{one} is left out: it needs an encoder, such as --encoder dense:minilm" for one in needing
    )
    assert Explanation.load(found.save(tmp_path / "explanation.json")) == found


def test_sources_without_twins_are_noted_and_refused_alone() -> None:
    docs = bed().docs
    llm = docs.filter(pl.col("source") == "llm")
    third = llm.with_columns(id=pl.col("id") + "-gpt", source=pl.lit("gpt"), origin=pl.col("id") + "-gpt")
    found = rt.explain(Collection(pl.concat([docs, third]), bed().queries, bed().qrels), ["statistics"])
    assert [effect.pairs for effect in found.results[0].effects] == [0, 12]
    assert found.notes == ("gpt has no twins of human: nothing of it can be compared",)
    alone = Collection(llm, bed().queries, bed().qrels.clear())
    with refused("nothing to explain: no other source has twins of llm (documents with the same origin)"):
        rt.explain(alone)
    assert OverlapProbe()(alone).summary == "no other source has twins: there is nothing to compare."


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: rt.explain(c, ["overlp"]), "unknown probe 'overlp'; did you mean 'overlap'?"),
        (lambda c: rt.explain(c, ["overlap", "overlap"]), "probe 'overlap' is given twice"),
        (lambda c: rt.explain(c, ["similarity"]), "similarity needs the vectors of an encoder; choose one"),
        (
            lambda c: rt.explain(c, ["similarity"], rt.ranker("bm25")),
            "similarity needs the vectors of an encoder, such",
        ),
        (lambda c: rt.explain(c, ["overlap(x=1)"]), "probe overlap\\(x=1\\): .*takes no arg"),
        (lambda c: rt.explain(c, ["perplexity:m(knd=causal)"]), "probe perplexity:m\\(knd=causal\\): .*'knd'"),
        (lambda c: rt.explain(c, ["perplexity:"]), "probe 'perplexity:': expected name"),
        (lambda c: rt.explain(c, reference="gpt"), "unknown source 'gpt'"),
    ],
)
def test_what_cannot_be_explained_is_said(call: Callable[[Collection], Any], message: str) -> None:
    with pytest.raises(UserError, match=message.replace("?", r"\?")):
        call(bed())


@pytest.mark.data
def test_twins_by_gender(shared_data: Path) -> None:
    """Grep-BiasIR: each text for women, for men and for both; probes and attribution take the column for the source.

    Of the 234 groups of its files 69 hold identical texts: 66 triplets are one text (titles carry the gender), one has
    N as F and one N as M, which makes 67 identical twins of N each, and one group is labelled both, both, N.
    """
    whole = gendered(shared_data / "grep-bias-ir")
    found = rt.explain(whole, ["specificity", "perplexity"], by="gender", reference="N", attribute=[rt.ranker("bm25")])
    assert found.sources == ("F", "M")
    assert [effect.pairs for effect in found.results[0].effects] == [232, 232]
    assert [note.partition(":")[2].split()[0] for note in found.notes] == ["67", "67"]
    groups = whole.docs.group_by("origin").agg(n=pl.len(), texts=pl.col("text").n_unique()).filter(pl.col("n") == 3)
    assert [groups.filter(pl.col("texts") == n).height for n in (1, 2)] == [66, 2]
    assert {row["property"] for row in found.results[-1].rows} == {"what remains", "specificity", "perplexity"}
    with pytest.raises(rt.UserError, match=r"unknown column to group by 'gendr'; did you mean 'gender'\?"):
        rt.explain(whole, by="gendr")


def gendered(folder: Path) -> Collection:
    rows = []
    for file in sorted(folder.glob("queries-*.csv")):
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows += csv.DictReader(stream)
    docs = [
        {"id": f"d{row['d_id']}", "title": row["doc_title"], "text": row["document"], "gender": row["content_gender"],
         "origin": f"d{int(row['d_id']) // 3}"}
        for row in rows
        if row["content_gender"] in "FMN"
    ]  # fmt: skip
    qrels = {
        row["q_id"]: {f"d{one['d_id']}": int(one["relevant"]) for one in rows if one["q_id"] == row["q_id"]}
        for row in rows
    }
    return collection_of(docs, {row["q_id"]: row["query"] for row in rows}, qrels)


def test_a_model_that_is_not_there_is_said_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(*_: object) -> None:
        raise AssertionError("measured before all was checked")

    monkeypatch.setattr(TypeTokenProbe, "measure", measured)
    with pytest.raises(UserError, match="model 'no-such-folder' is no folder"):
        explain(rt.bundled(), ["type-token", "perplexity"], lm=["no-such-folder"])
