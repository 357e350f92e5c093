"""Check: what is measured and printed of a collection, and the paired equivalence test by hand and
by scipy.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from ranktilt.auditing.checks.equivalence import Equivalence, outcome
from ranktilt.data.collection import Collection
from ranktilt.data.faults.contents import contents_of
from ranktilt.data.faults.faults import find_faults
from ranktilt.data.loading.load import load
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError
from ranktilt.explaining.check import check, effectiveness_notes
from ranktilt.explaining.check_result import CheckResult
from ranktilt.explaining.equivalence import equivalences, split_by_source
from ranktilt.explaining.text_probes import shared_terms
from ranktilt.measures.average_precision import AP
from ranktilt.measures.ndcg import nDCG
from ranktilt.rankers.base import Ranker
from ranktilt.registry import ranker
from ranktilt.reporting.sentences.checking.check import equivalence_words
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.statistics.equivalence import smallest_margin, t_interval, tost_p
from tests.explaining.checks import LetterVectors, toy_check, toy_effectiveness
from tests.toy import QUERIES, collection_of, run_of, toy, versions, write_cocktail


@pytest.fixture
def letters() -> LetterVectors:
    pytest.importorskip("sklearn")
    return LetterVectors("abcdefghijklmnopqrstuvwxyz")


def three() -> Collection:
    """Two rewrites of each of twelve texts; text n and its query share a word."""
    words = [
        "apple",
        "river",
        "clock",
        "stone",
        "field",
        "glass",
        "horse",
        "night",
        "paper",
        "queen",
        "train",
        "voice",
    ]
    ends = {
        "human": "stands there.",
        "llm": "is standing over there.",
        "gpt": "was seen there once.",
    }
    docs = versions({s: [f"The {word} {end}" for word in words] for s, end in ends.items()})
    qrels = {f"q{n}": {f"{n}-{s}": 1 for s in ends} for n in range(len(words))}
    return collection_of(docs, {f"q{n}": word for n, word in enumerate(words)}, qrels)


def test_each_part_is_what_its_own_function_gives_and_a_seed_makes_it_reproducible(
    letters: LetterVectors,
) -> None:
    collection, rankers = three(), [ranker("bm25")]
    result = check(collection, rankers, similarity=letters)
    assert (result.reference, result.sources) == ("human", ("llm", "gpt"))
    assert result.contents == contents_of(collection)
    assert result.faults == find_faults(collection, "human", ("llm", "gpt"))
    assert result.effectiveness == equivalences(
        collection, rankers, [nDCG @ 10], reference="human", sources=["gpt", "llm"]
    )
    for overlap, source in zip(result.terms, ("gpt", "llm"), strict=True):
        assert overlap.source == source
        assert (
            overlap.jaccard.values.tolist()
            == shared_terms(collection, "human", source).jaccard.values.tolist()
        )
    assert [near.source for near in result.similarity] == ["gpt", "llm"]
    assert all(near.map is not None and near.map.pairs == 12 for near in result.similarity)
    first, again, reseeded = (check(three(), similarity=letters, seed=s) for s in (1, 1, 2))
    assert first.to_json() == again.to_json() != reseeded.to_json()
    plain = check(three(), similarity=letters, seed=1, map_pairs=0).similarity[0]
    assert plain.map is None
    assert plain.separation == first.similarity[0].separation


def test_identical_sides_are_equivalent_and_the_human_one_is_the_reference(
    letters: LetterVectors,
) -> None:
    human = three().docs.filter(source="human")
    llm = three().docs.filter(source="llm").with_columns(text=human["text"])
    result = check(
        replace(three(), docs=pl.concat([human, llm])), [ranker("bm25")], similarity=letters
    )
    (row,) = result.effectiveness
    assert (row.value, row.outcome, row.p) == (0.0, "equivalent", 1.0)
    assert result.terms[0].jaccard.mean == result.terms[0].overlap.mean == 1.0
    near = result.similarity[0]
    assert near.twins.values == pytest.approx(1.0)
    assert near.separation.auc == 0.5
    collection = three()
    against_gpt = check(collection, reference="gpt")
    assert (against_gpt.reference, against_gpt.sources) == ("gpt", ("human", "llm"))
    assert against_gpt.faults == find_faults(collection, "gpt", ("human", "llm"))
    assert (against_gpt.similarity, against_gpt.effectiveness) == ((), ())
    assert (against_gpt.spec["similarity"], against_gpt.spec["rankers"]) == (None, [])
    turned = replace(collection, docs=collection.docs.reverse())
    assert (turned.sources[0], check(turned).reference) == ("gpt", "human")
    llm = replace(
        collection,
        docs=collection.docs.filter(pl.col("source") != "human"),
        qrels=collection.qrels.clear(),
    )
    assert check(llm).reference == "llm"


def test_one_source_has_contents_and_without_judgments_effectiveness_is_left_out(
    letters: LetterVectors,
) -> None:
    alone = replace(toy(), docs=toy().docs.filter(source="human"))
    result = check(alone, [ranker("bm25")], similarity=letters)
    assert (result.sources, result.terms, result.similarity, result.effectiveness) == (
        ("human",),
        (),
        (),
        (),
    )
    assert (result.is_compared, result.fair, result.contents.sources[0].documents) == (
        False,
        False,
        3,
    )
    assert note_sentences(result.notes) == (
        "effectiveness is left out: there are no two sides to compare",
        "similarity is left out: there are no two sides to compare",
    )
    for qrels in (toy().qrels.clear(), toy().qrels.with_columns(grade=pl.lit(0))):
        result = check(replace(toy(), qrels=qrels), [ranker("bm25")])
        assert (result.effectiveness, result.terms[0].jaccard.count) == ((), 3)
        assert note_sentences(result.notes) == (
            "effectiveness is left out: no document is judged relevant",
        )


def test_a_source_without_twins_is_left_out_and_the_check_voids_it() -> None:
    collection = three()
    origin = pl.when(pl.col("source") == "gpt").then("id").otherwise("origin")
    result = check(
        replace(collection, docs=collection.docs.with_columns(origin=origin)), [ranker("bm25")]
    )
    assert (
        [row.source for row in result.terms]
        == [row.source for row in result.effectiveness]
        == ["llm"]
    )
    assert (result.sources, result.fair) == (("llm", "gpt"), False)
    assert note_sentences(result.notes)[0].startswith(
        "gpt shares no origin with a document of human"
    )
    part = replace(collection, docs=collection.docs.filter(~pl.col("id").is_in(["3-llm", "4-gpt"])))
    result = check(part, [ranker("bm25")])
    assert [
        (row.pairs, row.left_out, row.queries, row.excluded) for row in result.effectiveness
    ] == [(11, 1, 11, 1)] * 2
    assert any(
        "effectiveness of human and llm comes from a search among 11 pairs only; 1 document" in note
        for note in note_sentences(result.notes)
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"reference": "humn"},
            r"^unknown source 'humn'; did you mean 'human'\? \(valid: human, llm, gpt\)$",
        ),
        ({"rankers": ["bm25", "bm25"]}, r"^ranker 'bm25' is given twice$"),
        ({"measures": ["nDCG@3", "nDCG@3"]}, r"^measure 'nDCG@3' is given twice$"),
        ({"measures": ["nDGC@3"]}, r"^unknown measure 'nDGC'"),
        ({"map_pairs": -1}, r"^expected 0 or more pairs in the map, got -1$"),
        ({"equivalence": 0.0}, r"^expected a margin of equivalence above 0 and below 1"),
        (
            {"similarity": "bm25"},
            r"^similarity needs vectors from an encoder, such as dense:minilm; bm25 makes ",
        ),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    rankers = [ranker(text) for text in options.pop("rankers", ["bm25"])]
    encoder = ranker(options.pop("similarity")) if "similarity" in options else None
    with pytest.raises(UserError, match=message):
        check(three(), rankers, options.pop("measures", None), similarity=encoder, **options)
    with pytest.raises(UserError, match=r"^nothing to check: the collection has no document$"):
        check(replace(three(), docs=three().docs.clear()))


def test_the_spec_says_how_it_was_made(tmp_path: Path) -> None:
    folder = write_cocktail(tmp_path / "toy")
    result = check(load(folder), [ranker("bm25")], ["nDCG@3"], equivalence=10, alpha=0.1, seed=5)
    expected = {
        "path": str(folder),
        "split": "test",
        "reference": "human",
        "rankers": ["bm25"],
        "measures": ["nDCG@3"],
        "similarity": None,
        "equivalence": 10,
        "alpha": 0.1,
        "seed": 5,
    }
    assert {name: result.spec[name] for name in expected} == expected
    hashes = {Path(file["path"]).name: file["sha256"] for file in result.spec["inputs"]}
    assert len(hashes["queries.jsonl"]) == len(hashes["test.tsv"]) == 64
    assert "numpy" in result.spec["packages"]
    assert CheckResult.load(result.save(tmp_path / "check.json")) == result


def test_excluded_and_few_queries_are_noted_and_a_file_comes_back_equal(tmp_path: Path) -> None:
    few = replace(toy_effectiveness()[0], left_out=0, excluded=5, queries=12)
    assert list(note_sentences(effectiveness_notes((few,), "human"))) == [
        "5 of 17 queries excluded: no relevant documents on both sides",
        "warning: only 12 queries are compared; t tests of fewer than 30 are unreliable",
    ]
    assert not list(
        effectiveness_notes(
            [replace(row, left_out=0, excluded=0) for row in toy_effectiveness()[:4]], "human"
        )
    )
    for names in (("human", "llm"), ("human", "llm", "gpt"), ("human",)):
        result = toy_check(names, map=len(names) == 2)
        back = CheckResult.load(result.save(tmp_path / "check.json"))
        assert (back, hash(back), back.to_json()) == (result, hash(result), result.to_json())


@pytest.mark.data
@pytest.mark.long
def test_nfcorpus_is_as_easy_to_search_on_either_side(shared_data: Path) -> None:
    collection = load(shared_data / "cocktail-nfcorpus", ignore_unknown=True)
    rankers = [ranker("bm25(k1=0.9,b=0.4)"), ranker("tfidf")]
    result = check(collection, rankers, ["nDCG@1", "nDCG@10"])
    assert result.fair
    # At rank 10 323 queries show that the sides are alike; at rank 1 they cannot.
    assert [row.outcome for row in result.effectiveness] == ["inconclusive", "equivalent"] * 2
    assert not any(math.isnan(row.smallest) for row in result.effectiveness)
    bm25 = result.effectiveness[1]
    assert bm25.mean_a == pytest.approx(0.3218, abs=0.003)  # published for human text alone
    assert (bm25.queries, bm25.pairs) == (323, 3633)


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
    return [
        side.docs["id"].to_list()
        for side in split_by_source(collection_of(docs, QUERIES, {}), *names)
    ]


def test_documents_without_a_twin_are_on_neither_side_and_judgments_and_columns_go_along() -> None:
    assert ids(("human", "llm")) == [["a-h", "b-h"], ["b-l", "a-l"]]
    assert ids(("llm", "human")) == [["b-l", "a-l"], ["a-h", "b-h"]]
    assert ids(("human", "other")) == [["a-h"], ["a-x"]]
    again = [*DOCS, {"id": "a-l2", "text": "a l again", "source": "llm", "origin": "a-h"}]
    assert ids(("human", "llm"), again) == [["a-h", "b-h"], ["b-l", "a-l", "a-l2"]]
    assert ids(("human", "llm"), [{**row, "origin": row["id"]} for row in DOCS]) == [[], []]
    qrels = {"q1": {"a-h": 2, "c-h": 1, "b-l": 1}, "q2": {"a-l": 0, "gone": 3}, "q9": {"a-h": 1}}
    human, llm = split_by_source(collection_of(DOCS, QUERIES, qrels), "human", "llm")
    assert human.qrels.rows() == [("q1", "a-h", 2), ("q9", "a-h", 1)]
    assert llm.qrels.rows() == [("q1", "b-l", 1), ("q2", "a-l", 0)]
    collection = collection_of([{**row, "year": n} for n, row in enumerate(DOCS)], QUERIES, {})
    human, llm = split_by_source(replace(collection, spec={"path": "x"}), "human", "llm")
    assert llm.docs["year"].to_list() == [3, 4]
    assert human.spec == {"path": "x", "only": "human"}
    assert human.queries.equals(llm.queries)


FIVE = np.array([0.01, 0.02, 0.03, 0.04, 0.05])
"""Mean .03, standard error √(.00025/5) = .0070711."""
SECOND = 1 / math.log2(3)
"""nDCG of one relevant document on rank 2."""
VECTORS = arrays(
    np.float64, st.integers(3, 40), elements=st.floats(-1, 1, width=32).map(lambda v: round(v, 3))
)


def test_by_hand_by_scipy_and_without_spread_or_queries() -> None:
    assert tost_p(FIVE, 0.05) == pytest.approx(0.5 - 3 / 8 * math.sqrt(8 / 3) * 7 / 9)
    for margin in (0.001, 0.02, 0.1):
        differences = np.random.default_rng(1).normal(0.01, 0.1, 50)
        above = stats.ttest_1samp(differences, -margin, alternative="greater").pvalue
        below = stats.ttest_1samp(differences, margin, alternative="less").pvalue
        assert tost_p(differences, margin) == pytest.approx(max(above, below), rel=1e-9)
    for value, p in ((0.0, 0.0), (0.01, 0.0), (-0.01, 0.0), (0.02, 1.0), (-0.5, 1.0)):
        assert tost_p(np.full(7, value), 0.02) == p
    for count in (0, 1):
        assert math.isnan(tost_p(np.zeros(count), 0.02))
        assert math.isnan(smallest_margin(np.zeros(count)))
        assert all(map(math.isnan, t_interval(np.zeros(count))))
    differences = np.random.default_rng(1).normal(-0.2, 1, 30)
    wide, narrow = (
        stats.ttest_1samp(differences, 0).confidence_interval(level) for level in (0.95, 0.9)
    )
    assert t_interval(differences) == (pytest.approx(wide.low), pytest.approx(wide.high))
    assert smallest_margin(differences) == pytest.approx(max(abs(narrow.low), abs(narrow.high)))
    assert t_interval(np.full(3, 0.1)) == (0.1, 0.1)
    assert smallest_margin(np.full(3, -0.1)) == 0.1


@given(VECTORS, st.floats(0.001, 0.5), st.sampled_from([0.01, 0.05, 0.1]))
@settings(max_examples=60)
def test_no_sign_matters_and_a_margin_shows_equivalence(
    differences: np.ndarray, margin: float, alpha: float
) -> None:
    assert tost_p(-differences, margin) == pytest.approx(tost_p(differences, margin), abs=1e-12)
    assert tost_p(differences, 2 * margin) <= tost_p(differences, margin)
    least = smallest_margin(differences, alpha)
    assert tost_p(differences, least + 1e-6) < alpha
    if least > 2e-6:
        assert tost_p(differences, least - 1e-6) > alpha


def test_what_two_p_values_show_together_and_what_swapped_sides_do() -> None:
    for equivalent, different, expected in (
        (0.01, 0.5, "equivalent"),
        (0.01, 0.01, "different within the margin"),
        (0.5, 0.01, "different"),
        (0.05, 0.05, "inconclusive"),
        (math.nan, 0.01, "not tested"),
        (0.01, math.nan, "not tested"),
    ):
        assert outcome(equivalent, different, 0.05) == expected
    ranker = ranks({"human": [1, 1, 2, 1], "llm": [1, 2, 2, 1]})
    (there,) = rows(bed(), ranker)
    (back,) = rows(bed(), ranker, reference="llm", sources=["human"])
    assert (back.value, back.outcome) == (-there.value, there.outcome)
    assert (back.low, back.high) == (pytest.approx(-there.high), pytest.approx(-there.low))
    assert back.p_equivalent == pytest.approx(there.p_equivalent)


@dataclass(frozen=True)
class Given(Ranker):
    """Ranks by given scores, by query and document."""

    name: ClassVar[str] = "given"
    scores: Mapping[str, Mapping[str, float]]

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        documents = set(collection.ids)
        scores = {
            q: {d: s for d, s in self.scores[q].items() if d in documents}
            for q in collection.queries_with_judgments["id"]
        }
        return run_of(collection, scores, ranker="given")

    def __repr__(self) -> str:
        return "given"


def bed(count: int = 4, sources: tuple[str, ...] = ("human", "llm")) -> Collection:
    """Query n has the one relevant document n, in a version of every source."""
    docs = versions({s: [f"text {n} of {s}" for n in range(count)] for s in sources}, "d")
    qrels = {f"q{n}": {f"d{n}-{s}": 1 for s in sources} for n in range(count)}
    return collection_of(docs, dict.fromkeys(qrels, "text"), qrels)


def ranks(ranks_by_source: Mapping[str, list[int]]) -> Given:
    """Put query n's relevant document of a source on the given rank, 1 or 2, among those of its
    source.
    """
    scores: dict[str, dict[str, float]] = {}
    for source, ranks_of_source in ranks_by_source.items():
        for n, rank in enumerate(ranks_of_source):
            next_document = (n + 1) % len(ranks_of_source)
            scores.setdefault(f"q{n}", {}).update(
                {f"d{n}-{source}": 2.0 - rank, f"d{next_document}-{source}": 0.5}
            )
    return Given(scores)


def rows(collection: Collection, ranker: Ranker, **options: object) -> tuple[Equivalence, ...]:
    check_options: dict[str, object] = {"reference": "human", "sources": ["llm"], **options}
    measures = [nDCG @ 10]
    return equivalences(collection, [ranker], measures, **check_options)  # type: ignore[arg-type]


def test_each_side_is_ranked_among_its_own_documents_and_a_difference_is_called_one() -> None:
    (row,) = rows(bed(), ranks({"human": [1, 1, 1, 2], "llm": [1, 2, 2, 2]}))
    assert row.mean_a == pytest.approx((3 + SECOND) / 4)
    assert row.mean_b == pytest.approx((1 + 3 * SECOND) / 4)
    differences = np.array([0, 1 - SECOND, 1 - SECOND, 0])
    assert row.value == pytest.approx(differences.mean())
    assert row.error == pytest.approx(stats.sem(differences))
    expected = stats.ttest_1samp(differences, 0)
    assert row.p == row.p_corrected == pytest.approx(expected.pvalue)
    assert (row.low, row.high) == tuple(map(pytest.approx, expected.confidence_interval(0.95)))
    assert (row.outcome, equivalence_words(row)) == ("inconclusive", "inconclusive")
    assert (row.queries, row.excluded, row.pairs, row.left_out) == (4, 0, 4, 0)
    (row,) = rows(bed(), ranks({"human": [1, 1, 1, 1], "llm": [1, 1, 1, 1]}))
    assert (row.mean_a, row.mean_b, row.p, row.p_equivalent, row.smallest) == (
        1.0,
        1.0,
        1.0,
        0.0,
        0.0,
    )
    assert equivalence_words(row) == "equivalent within ±2 points"
    (row,) = rows(bed(8), ranks({"human": [1] * 8, "llm": [2] * 8}))
    assert row.value == pytest.approx(1 - SECOND)
    assert (row.outcome, row.p, row.p_equivalent) == ("different", 0.0, 1.0)
    (wide,) = rows(bed(8), ranks({"human": [1] * 8, "llm": [2] * 8}), margin=50)
    assert equivalence_words(wide) == "different within ±50 points"


def test_both_sides_are_restricted_to_pairs_and_queries_that_both_answer() -> None:
    lame = replace(bed(), qrels=bed().qrels.filter(pl.col("doc_id") != "d0-llm"))
    (row,) = rows(lame, ranks({"human": [2, 1, 1, 1], "llm": [1, 1, 1, 1]}))
    assert (row.queries, row.excluded, row.mean_a) == (3, 1, 1.0)
    apart = replace(
        bed(2), qrels=bed(2).qrels.filter(pl.col("doc_id").is_in(["d0-human", "d1-llm"]))
    )
    (row,) = rows(apart, ranks({"human": [1, 1], "llm": [1, 1]}))
    assert (row.outcome, row.queries, row.excluded) == ("not tested", 0, 2)
    assert all(map(math.isnan, (row.mean_a, row.mean_b, row.value, row.low, row.p_corrected)))
    (row,) = rows(bed(1), Given({"q0": {"d0-human": 1.0, "d0-llm": 1.0}}))
    assert (row.outcome, row.queries, row.mean_a) == ("not tested", 1, 1.0), (
        "one query cannot be tested"
    )
    assert all(map(math.isnan, (row.p_equivalent, row.smallest, row.error)))
    pooled = replace(bed(), docs=bed().docs.filter(pl.col("id") != "d3-llm"))
    (row,) = rows(pooled, ranks({"human": [1, 1, 1, 2], "llm": [1, 1, 1, 2]}))
    assert (row.pairs, row.left_out, row.queries, row.excluded) == (3, 1, 3, 1)
    # Without d3 the third query has nothing above its document any more, on either side.
    assert (row.mean_a, row.mean_b) == (1.0, 1.0)
    more = pl.concat(
        [bed().qrels, bed().qrels.with_columns(query_id=pl.lit("q99") + pl.col("query_id"))]
    )
    ranker = ranks({"human": [1, 1, 1, 2], "llm": [1, 2, 2, 2]})
    assert rows(replace(bed(), qrels=more), ranker) == rows(bed(), ranker)


def test_holm_counts_every_row_and_each_comparison_has_its_own_reference_side() -> None:
    three_sources = bed(6, ("human", "llm", "other"))
    ranker = ranks({"human": [1] * 6, "llm": [1, 1, 2, 2, 2, 1], "other": [1, 1, 1, 1, 1, 2]})
    rows_of_measures = equivalences(
        three_sources, [ranker], [nDCG @ 10, AP @ 5], reference="human", sources=["llm", "other"]
    )
    assert [(row.source, row.measure) for row in rows_of_measures] == [
        ("llm", "nDCG@10"),
        ("llm", "AP@5"),
        ("other", "nDCG@10"),
        ("other", "AP@5"),
    ]
    ps = [row.p for row in rows_of_measures]
    assert ps[0] == pytest.approx(ps[1])  # the same three queries, and one value where they differ
    smaller, larger = 4 * min(ps), min(1, max(4 * min(ps), 2 * max(ps)))
    assert sorted(row.p_corrected for row in rows_of_measures) == pytest.approx(
        [smaller, smaller, larger, larger]
    )
    for row, measure in zip(rows_of_measures, [nDCG @ 10, AP @ 5] * 2, strict=True):
        (alone,) = equivalences(
            three_sources, [ranker], [measure], reference="human", sources=[row.source]
        )
        assert alone.p_equivalent == row.p_equivalent
    ranked: list[tuple[str, ...]] = []

    @dataclass(frozen=True)
    class Counting(Given):
        def rank(self, collection: Collection, run: Run | None = None) -> Run:
            ranked.append(collection.sources)
            return super().rank(collection, run)

    three_sources = bed(4, ("human", "llm", "other"))
    ranker = Counting(
        ranks({"human": [1, 1, 1, 2], "llm": [1, 1, 1, 1], "other": [1, 1, 1, 1]}).scores
    )
    equivalences(three_sources, [ranker], [nDCG @ 10], reference="human", sources=["llm", "other"])
    assert ranked == [("human",), ("llm",), ("other",)]
    part = replace(three_sources, docs=three_sources.docs.filter(pl.col("id") != "d3-llm"))
    rows_of_measures = equivalences(
        part, [ranker], [nDCG @ 10], reference="human", sources=["llm", "other"]
    )
    assert [(row.pairs, row.queries) for row in rows_of_measures] == [(3, 3), (4, 4)]
    assert [row.mean_a for row in rows_of_measures] == [1.0, pytest.approx((3 + SECOND) / 4)]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("margin", 0.0),
        ("margin", 100.0),
        ("margin", math.nan),
        ("alpha", 0.0),
        ("alpha", 0.5),
        ("alpha", math.nan),
    ],
)
def test_a_margin_or_alpha_out_of_range_is_refused(option: str, value: float) -> None:
    with pytest.raises(
        UserError, match=rf"^expected an? {option}( of equivalence)? above 0 and below .*, got "
    ):
        rows(bed(), ranks({"human": [1] * 4, "llm": [1] * 4}), **{option: value})


def test_a_stricter_level_shows_less_and_a_difference_that_the_correction_takes_away_is_none() -> (
    None
):
    source_ranks = {"human": [1] * 40, "llm": [2] + [1] * 39}
    (usual,) = rows(bed(40), ranks(source_ranks))
    (strict,) = rows(bed(40), ranks(source_ranks), alpha=0.001)
    assert usual.value == pytest.approx((1 - SECOND) / 40)
    # Mean and standard error are both (1 − SECOND)/40.
    expected = stats.t.cdf(1 - 40 * 0.02 / (1 - SECOND), 39)
    assert usual.p_equivalent == strict.p_equivalent == pytest.approx(expected)
    assert (usual.outcome, strict.outcome) == ("inconclusive", "inconclusive")
    assert strict.smallest > usual.smallest
    (loose,) = rows(bed(40), ranks(source_ranks), alpha=0.2)
    assert loose.outcome == "equivalent"
    ranker = ranks({"human": [1] * 10, "llm": [1, 2] * 5})
    (alone,) = rows(bed(10), ranker)
    four = equivalences(
        bed(10),
        [ranker],
        [nDCG @ 10, nDCG @ 5, AP @ 10, AP @ 5],
        reference="human",
        sources=["llm"],
    )
    assert (alone.outcome, alone.p) == ("different", pytest.approx(0.01496, abs=1e-5))
    assert [row.outcome for row in four] == ["inconclusive"] * 4
    assert [row.p_corrected for row in four] == [pytest.approx(4 * alone.p)] * 4
