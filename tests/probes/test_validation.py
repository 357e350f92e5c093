"""A whole validation: its parts, what it notes and leaves out, and its file."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ranktilt.collection import Collection
from ranktilt.datasets.check import check
from ranktilt.datasets.load import load
from ranktilt.errors import UserError
from ranktilt.measures.ndcg import nDCG
from ranktilt.probes.text_probes import shared_terms, statistics
from ranktilt.probes.validation import Validation, _notes, equivalences, split_by_source, validate
from ranktilt.rankers.base import Ranker
from ranktilt.registry import ranker
from tests.probes.lexical_vectors import LetterVectors
from tests.probes.validations import toy_effectiveness, toy_validation
from tests.toy import QUERIES, collection_of, toy, versions, write_cocktail

pytest.importorskip("sklearn")
LETTERS = LetterVectors("abcdefghijklmnopqrstuvwxyz")


def three() -> Collection:
    """Two rewrites of each of twelve texts; text n and its query share a word."""
    words = ["apple", "river", "clock", "stone", "field", "glass", "horse", "night", "paper", "queen", "train", "voice"]
    ends = {"human": "stands there.", "llm": "is standing over there.", "gpt": "was seen there once."}
    docs = versions({s: [f"The {word} {end}" for word in words] for s, end in ends.items()})
    qrels = {f"q{n}": {f"{n}-{s}": 1 for s in ends} for n in range(len(words))}
    return collection_of(docs, {f"q{n}": word for n, word in enumerate(words)}, qrels)


def test_each_part_is_what_its_own_function_gives() -> None:
    whole, rankers = three(), [ranker("bm25")]
    found = validate(whole, rankers, similarity=LETTERS)
    assert (found.reference, found.sources) == ("human", ("gpt", "llm"))
    assert found.statistics == statistics(whole)
    assert found.check == check(whole)
    assert found.effectiveness == equivalences(whole, rankers, [nDCG @ 10], reference="human", sources=["gpt", "llm"])
    for one, source in zip(found.overlaps, ("gpt", "llm"), strict=True):
        assert one.source == source
        assert one.jaccard.values.tolist() == shared_terms(whole, "human", source).jaccard.values.tolist()
    assert [one.source for one in found.similarities] == ["gpt", "llm"]
    assert all(one.map is not None and one.map.pairs == 12 for one in found.similarities)


def test_identical_sides_are_equivalent_and_equal_in_everything() -> None:
    docs = three().docs.filter(pl.col("source").is_in(["human", "llm"]))
    human = docs.filter(pl.col("source") == "human")
    same = docs.with_columns(text=pl.concat([human["text"], human["text"]]))
    found = validate(Collection(same, three().queries, three().qrels), [ranker("bm25")], similarity=LETTERS)
    (row,) = found.effectiveness
    assert (row.value, row.outcome, row.p) == (0.0, "equivalent", 1.0)
    assert found.overlaps[0].jaccard.mean == found.overlaps[0].overlap.mean == 1.0
    near = found.similarities[0]
    assert near.cosine.values == pytest.approx(1.0)
    assert near.separation.auc == 0.5


def test_the_human_side_is_the_reference_unless_another_is_named_or_else_the_first() -> None:
    whole = three()
    named = validate(whole, reference="gpt")
    assert (named.reference, named.sources) == ("gpt", ("human", "llm"))
    assert named.check is not None
    assert named.check.reference == "gpt"
    assert (named.similarities, named.effectiveness) == ((), ())
    assert (named.spec["similarity"], named.spec["rankers"]) == (None, [])
    turned = Collection(whole.docs.reverse(), whole.queries, whole.qrels)
    assert turned.sources[0] != "human"
    assert validate(turned).reference == "human"
    llm = Collection(whole.docs.filter(pl.col("source") != "human"), whole.queries, whole.qrels.clear())
    assert validate(llm).reference == "llm"


def test_a_seed_makes_it_reproducible() -> None:
    one, again, other = (validate(three(), [ranker("bm25")], similarity=LETTERS, seed=s) for s in (1, 1, 2))
    assert one.to_json() == again.to_json() != other.to_json()
    plain = validate(three(), [ranker("bm25")], similarity=LETTERS, seed=1, map_pairs=0).similarities[0]
    assert plain.map is None
    assert plain.separation == one.similarities[0].separation


def test_one_source_has_statistics_and_says_so() -> None:
    whole = toy()
    alone = Collection(whole.docs.filter(pl.col("source") == "human"), whole.queries, whole.qrels)
    found = validate(alone, [ranker("bm25")], similarity=LETTERS)
    assert (found.sources, found.overlaps, found.similarities, found.effectiveness) == ((), (), (), ())
    assert found.check is None
    assert found.fair
    assert found.statistics.sources[0].documents == 3
    assert found.notes == ("only source 'human': there is nothing to compare, so that only its statistics are given",)


@pytest.mark.parametrize("grade", [None, 0])
def test_without_judgments_effectiveness_is_left_out(grade: int | None) -> None:
    whole = toy()
    qrels = whole.qrels.head(0) if grade is None else whole.qrels.with_columns(grade=pl.lit(grade))
    found = validate(Collection(whole.docs, whole.queries, qrels), [ranker("bm25")])
    assert found.effectiveness == ()
    assert found.overlaps[0].jaccard.count == 3
    assert found.notes == ("no document is judged relevant: effectiveness is left out",)


def test_a_source_without_twins_is_left_out_and_the_check_voids_it() -> None:
    whole = three()
    origin = pl.when(pl.col("source") == "gpt").then("id").otherwise("origin")
    found = validate(Collection(whole.docs.with_columns(origin=origin), whole.queries, whole.qrels), [ranker("bm25")])
    assert [one.source for one in found.overlaps] == [row.source for row in found.effectiveness] == ["llm"]
    assert found.sources == ("gpt", "llm")
    assert not found.fair
    assert found.notes[0].startswith("gpt has no document of the same origin")
    part = Collection(whole.docs.filter(~pl.col("id").is_in(["3-llm", "4-gpt"])), whole.queries, whole.qrels)
    found = validate(part, [ranker("bm25")])
    assert [(row.pairs, row.left_out, row.queries, row.excluded) for row in found.effectiveness] == [(11, 1, 11, 1)] * 2
    assert any("effectiveness of human and llm is that of a search among the 11 pairs" in note for note in found.notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reference": "humn"}, r"^unknown source 'humn'; did you mean 'human'\? \(valid: human, llm, gpt\)$"),
        ({"rankers": ["bm25", "bm25"]}, r"^ranker 'bm25' is given twice$"),
        ({"measures": ["nDCG@3", "nDCG@3"]}, r"^measure 'nDCG@3' is given twice$"),
        ({"measures": ["nDGC@3"]}, r"^unknown measure 'nDGC'"),
        ({"map_pairs": -1}, r"^expected 0 or more pairs in the map, got -1$"),
        ({"margin": 0.0}, r"^expected a margin above 0 and below 1"),
        ({"alpha": 1.0}, r"^expected an alpha above 0"),
        ({"similarity": "bm25"}, r"^similarity needs the vectors of an encoder, such as dense:minilm; bm25 makes "),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    rankers = [ranker(text) for text in options.pop("rankers", ["bm25"])]
    encoder = ranker(options.pop("similarity")) if "similarity" in options else None
    with pytest.raises(UserError, match=message):
        validate(three(), rankers, options.pop("measures", None), similarity=encoder, **options)
    nothing = Collection(three().docs.head(0), three().queries, three().qrels)
    with pytest.raises(UserError, match=r"^nothing to validate: the collection has no document$"):
        validate(nothing)


def test_the_spec_says_how_it_was_made(tmp_path: Path) -> None:
    folder = write_cocktail(tmp_path / "toy")
    found = validate(load(folder), [ranker("bm25")], ["nDCG@3"], margin=0.1, alpha=0.1, seed=5)
    expected = {
        "path": str(folder), "split": "test", "reference": "human", "rankers": ["bm25"], "measures": ["nDCG@3"],
        "similarity": None, "margin": 0.1, "alpha": 0.1, "seed": 5,
    }  # fmt: skip
    assert {name: found.spec[name] for name in expected} == expected
    assert {Path(one["path"]).name for one in found.spec["inputs"]} >= {"queries.jsonl", "test.tsv"}
    assert all(len(one["sha256"]) == 64 for one in found.spec["inputs"])
    assert "numpy" in found.spec["packages"]
    assert Validation.load(found.save(tmp_path / "validation.json")) == found


def test_excluded_and_few_queries_are_noted() -> None:
    few = replace(toy_effectiveness()[0], left_out=0, excluded=5, queries=12)
    assert list(_notes(toy(), "human", (few,))) == [
        "up to 5 of 17 queries excluded: no relevant document on both sides",
        "warning: only 12 queries are compared; t tests of fewer than 30 are not to rely on",
    ]
    assert not list(_notes(toy(), "human", [replace(row, left_out=0, excluded=0) for row in toy_effectiveness()[:4]]))


@pytest.mark.parametrize("names", [("human", "llm"), ("human", "llm", "gpt"), ("human",)])
def test_a_file_comes_back_equal(names: tuple[str, ...], tmp_path: Path) -> None:
    found = toy_validation(names, map=len(names) == 2)
    back = Validation.load(found.save(tmp_path / "validation.json"))
    assert back == found
    assert back.to_json() == found.to_json()
    assert hash(back) == hash(found)


@pytest.mark.data
def test_nfcorpus(shared_data: Path) -> None:
    whole = load(shared_data / "cocktail-nfcorpus", ignore_unknown=True)
    rankers: list[Ranker] = [ranker("bm25"), ranker("tfidf")]
    found = validate(whole, rankers, ["nDCG@1", "nDCG@10"])
    assert [row.words for row in found.statistics.sources] == pytest.approx([220.98, 179.76], abs=0.01)
    assert found.overlaps[0].jaccard.mean == pytest.approx(0.58, abs=0.01)
    assert found.overlaps[0].overlap.mean == pytest.approx(0.69, abs=0.01)
    assert found.fair
    # At rank 10 323 queries show that the sides are alike; at rank 1 they cannot.
    assert [row.outcome for row in found.effectiveness] == ["inconclusive", "equivalent"] * 2
    assert not any(math.isnan(row.smallest) for row in found.effectiveness)


DOCS = [
    {"id": "a-h", "text": "a", "source": "human", "origin": "a-h"},
    {"id": "b-h", "text": "b", "source": "human", "origin": "b-h"},
    {"id": "c-h", "text": "c", "source": "human", "origin": "c-h"},
    {"id": "b-l", "text": "b l", "source": "llm", "origin": "b-h"},
    {"id": "a-l", "text": "a l", "source": "llm", "origin": "a-h"},
    {"id": "d-l", "text": "d l", "source": "llm", "origin": "d-l"},
    {"id": "a-x", "text": "a x", "source": "other", "origin": "a-h"},
]


def ids(names: tuple[str, str], docs: list[dict[str, str]] = DOCS) -> list[list[str]]:
    return [side.docs["id"].to_list() for side in split_by_source(collection_of(docs, QUERIES, {}), *names)]


def test_documents_without_a_twin_are_on_neither_side() -> None:
    assert ids(("human", "llm")) == [["a-h", "b-h"], ["b-l", "a-l"]]
    assert ids(("llm", "human")) == [["b-l", "a-l"], ["a-h", "b-h"]]
    assert ids(("human", "other")) == [["a-h"], ["a-x"]]
    again = [*DOCS, {"id": "a-l2", "text": "a l again", "source": "llm", "origin": "a-h"}]
    assert ids(("human", "llm"), again) == [["a-h", "b-h"], ["b-l", "a-l", "a-l2"]]
    assert ids(("human", "llm"), [{**row, "origin": row["id"]} for row in DOCS]) == [[], []]


def test_judgments_go_with_their_documents() -> None:
    qrels = {"q1": {"a-h": 2, "c-h": 1, "b-l": 1}, "q2": {"a-l": 0, "gone": 3}, "q9": {"a-h": 1}}
    human, llm = split_by_source(collection_of(DOCS, QUERIES, qrels), "human", "llm")
    assert human.qrels.rows() == [("q1", "a-h", 2), ("q9", "a-h", 1)]
    assert llm.qrels.rows() == [("q1", "b-l", 1), ("q2", "a-l", 0)]


def test_further_columns_and_the_spec_are_kept() -> None:
    whole = collection_of([{**row, "year": n} for n, row in enumerate(DOCS)], QUERIES, {})
    human, llm = split_by_source(replace(whole, spec={"path": "x"}), "human", "llm")
    assert llm.docs["year"].to_list() == [3, 4]
    assert (human.spec["path"], human.spec["only"]) == ("x", "human")
    assert human.queries.equals(llm.queries)
