"""Attribution: gaps by hand, known coefficients, a mean that its parts add up to, and what cannot
be attributed.
"""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import ranktilt as rt
from benchmarks.simulated import Planted, half_length_half_source
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.explaining.attribution import SCORE_GAP, attribute
from ranktilt.explaining.base import TextProbe
from ranktilt.explaining.text_probes import QueryWordsProbe
from ranktilt.explaining.twin_gaps import gaps
from ranktilt.rankers.base import score_documents
from ranktilt.reporting.sentences.notes import note_sentences
from tests.refusals import refused
from tests.toy import collection_of, run_of, toy, versions

QUERIES, ORIGINS = 12, 40


def share_of_length(result: Any) -> tuple[float, ...]:
    """How much of the mean gap goes with length, and the ends of its interval; the gap is below 0,
    for llm is ahead.
    """
    row = table(result)["long"]
    assert row["mean gap"] < 0
    return tuple(
        row[name] / row["mean gap"]
        for name in ("contribution", "contribution high", "contribution low")
    )


@pytest.mark.parametrize("k", [150, 600])
def test_what_is_attributed_does_not_depend_on_what_is_retrieved(k: int) -> None:
    """Of twins that are both among the best 150, two thirds of the gap go with length, for their
    scores chose them.
    """
    collection, ranker = half_length_half_source(0, 300, 20, k)
    attribution = attribute(collection, [ranker], [LONG])
    share, low, high = share_of_length(attribution)
    assert low < 0.5 < high
    assert (share, table(attribution)["long"]["twins"]) == (
        pytest.approx(0.5, abs=0.03),
        20 * k // 2,
    )
    assert (
        f"planted: {20 * k:,} documents scored for 20 queries"
        in note_sentences(attribution.notes)[0]
    )


def test_judged_pairs_come_first_and_no_retrieved_share_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collection, ranker = half_length_half_source(0, 300, 20, 40)
    relevant = {f"q{q}": {f"{n}-human": 1 for n in range(q, q + 2)} for q in range(20)}
    judged = collection_of(collection.docs.to_dicts(), {f"q{n}": "q" for n in range(20)}, relevant)
    attribution = attribute(judged, [ranker], [LONG])
    assert table(attribution)["long"]["twins"] == 40
    assert "over 40 judged pairs of twins" in attribution.tables[0].title
    single_query = collection_of(
        collection.docs.to_dicts(), {"0-human": collection.docs["text"][0]}, {}
    )
    attribution = attribute(single_query, [Planted(ranker.table, 600)], [LONG])
    assert table(attribution)["long"]["twins"] == 299, "a query's own document is not scored"
    collection, ranker = half_length_half_source(0, 300, 20, 150)
    monkeypatch.setattr(Planted, "scores_any_document", False)
    for run_or_ranker in (ranker.rank(collection), ranker):
        attribution = attribute(collection, [run_or_ranker], [LONG])
        assert share_of_length(attribution)[1] > 0.5
        assert "among the texts it retrieves. These are selected by score" in attribution.summary
        assert "goes with" not in attribution.summary
        assert "retrieved pairs of twins" in attribution.tables[0].title
    whole_lists = attribute(collection, [Planted(ranker.table, 600).rank(collection)], [LONG])
    assert whole_lists.summary.endswith(". This goes with long.")


@pytest.mark.parametrize("spec", ["bm25@10", "tfidf@10", "bm25@10>>tfidf", "tfidf>>bm25@10"])
def test_the_last_stage_scores_what_it_is_given(spec: str) -> None:
    collection, ranker = toy(), rt.ranker(spec)
    every = run_of(collection, {f"q{n}": dict.fromkeys(collection.ids, 0.0) for n in (1, 2, 3)})
    scored_documents = score_documents(ranker, collection, every)
    assert scored_documents is not None
    assert (scored_documents.name, len(scored_documents.docs)) == (spec, 18)
    deep = rt.ranker(f"{spec.rpartition('>>')[2].partition('@')[0]}@18").rank(collection).frame()
    both = scored_documents.frame().join(deep, on=["query_id", "doc_id"], suffix="_deep")
    assert both.height == deep.height
    assert both["score"].to_list() == both["score_deep"].to_list()


def test_what_scores_only_what_it_ranks_scores_nothing_else() -> None:
    for spec in ("replay:FILE", "bm25>>listwise:openai:none", "bm25>>interleave"):
        ranker = rt.ranker(spec)
        assert score_documents(ranker, toy(), run_of(toy(), {"q1": {"d1-human": 0.0}})) is None


def property_of(name: str, value: Callable[[str], float] | np.ndarray[Any, Any]) -> TextProbe:
    """A property of each text, or with these values whatever the texts."""

    class Property(TextProbe):
        question, unit = "What?", name

        def measure(
            self, collection: Collection, reference: str, ranker: Any
        ) -> np.ndarray[Any, Any]:
            return np.array(
                [value(text) for text in collection.docs["text"]] if callable(value) else value,
                float,
            )

    Property.name = name
    return Property()


LONG = property_of("long", len)
ROUND = property_of("round", lambda text: text.count("o"))


def twins(seed: int = 0) -> Collection:
    generator = np.random.default_rng(seed)
    texts = {
        source: [
            "o" * generator.integers(0, 5) + "x" * generator.integers(1, 9) for _ in range(ORIGINS)
        ]
        for source in ("human", "llm")
    }
    return collection_of(versions(texts), {f"q{n}": f"q{n}" for n in range(QUERIES)}, {})


def scored(
    collection: Collection, score: Callable[[dict[str, Any]], float], noise: float = 0.0
) -> Run:
    generator = np.random.default_rng(1)
    rows = collection.docs.to_dicts()
    table = {
        f"q{q}": {row["id"]: score(row) + noise * generator.normal() for row in rows}
        for q in range(QUERIES)
    }
    return run_of(collection, table, ranker="toy")


def test_gaps_by_hand_and_nothing_is_attributed_to_identical_twins() -> None:
    collection = collection_of(versions({"human": "tt", "llm": "tt"}), {"q": "q", "r": "r"}, {})
    run = run_of(
        collection,
        {"q": {"0-human": 4.0, "0-llm": 2.0, "1-llm": 2.0, "1-human": 0.0}, "r": {"0-llm": 1.0}},
    )
    gaps_of_run = gaps(collection, run, "human", "llm")
    spread = math.sqrt(2)  # of 4, 2, 2, 0
    assert sorted(gaps_of_run["score"]) == pytest.approx([-2 / spread, 2 / spread])
    assert sorted(gaps_of_run["rank"]) == [-1.5, 1.5]
    assert gaps_of_run["query"].to_list() == [0, 0]
    assert collection.docs["id"].gather(gaps_of_run["reference"]).to_list() == [
        "0-human",
        "1-human",
    ]
    flat = run_of(collection, {"q": {"0-human": 1.0, "0-llm": 1.0}})
    assert gaps(collection, flat, "human", "llm")["score"].to_list() == [0.0]
    entries = {
        "query_id": ["q", "q", "q", "none", "none"],
        "doc_id": ["0-human", "0-llm", "lost", "0-human", "0-llm"],
        "score": [1.0, 3.0, 2.0, 2.0, 1.0],
    }
    strange = Run.from_frame(pl.DataFrame(entries))
    # The llm text is at rank 1, the human one at 3: − as in an audit. What is not known keeps its
    # rank.
    assert gaps(collection, strange, "human", "llm")["rank"].to_list() == [-2.0]
    assert gaps(collection, strange, "human", "llm")["score"].to_list() == pytest.approx(
        [-2 / math.sqrt(2 / 3)]
    )
    texts = ["x" * (n + 1) for n in range(ORIGINS)]
    collection = collection_of(
        versions({"human": texts, "llm": texts}), {f"q{n}": f"q{n}" for n in range(QUERIES)}, {}
    )
    gaps_of_run = attribute(collection, [scored(collection, lambda row: len(row["text"]))])
    (row,) = table(gaps_of_run).values()
    assert {
        row[name]
        for name in (
            "coefficient",
            "low",
            "high",
            "contribution",
            "mean gap",
            "gap low",
            "gap high",
        )
    } == {0.0}

    assert (
        gaps_of_run.summary == "toy shows no gap between llm and human, so nothing is attributed."
    )
    assert gaps_of_run.tables[0].rows[0]["part of the gap, sd"] == (0, 0, 0)


def table(result: Any, of: str = SCORE_GAP) -> dict[str, dict[str, Any]]:
    return {row["property"]: row for row in result.rows if row["of"] == of}


@pytest.mark.parametrize("always", [0.0, 0.1])
def test_constant_twin_differences_and_pairs_without_value_are_left_out(
    always: float,
) -> None:
    """A sum of such differences is not exact: the spread of 480 times 0.1 is not quite 0."""
    collection = twins()
    values = np.where(collection.docs["source"] == "llm", 0.3 + always, 0.3)
    attribution = attribute(
        collection,
        [scored(collection, lambda row: len(row["text"]), noise=1)],
        [property_of("same", values), LONG],
    )
    assert list(table(attribution)) == ["what remains", "long"]
    assert [finding.unvarying for finding in attribution.findings] == [("same",)]
    by = f"{-always:+g}" if always else "0"
    assert (
        f"toy, llm: left out, as all twins differ by the same amount: same ({by})"
        in note_sentences(attribution.notes)
    )
    holes = np.arange(collection.docs.height, dtype=float) ** 2
    holes[[3, 4, ORIGINS + 4]] = np.nan  # of two origins, in every query
    attribution = attribute(
        collection,
        [scored(collection, lambda row: len(row["text"]), noise=1)],
        [property_of("holes", holes), LONG],
    )
    assert table(attribution)["long"]["twins"] == QUERIES * (ORIGINS - 2)
    assert "toy, llm: 24 pairs are left out, without a value for holes (24)" in note_sentences(
        attribution.notes
    )


def test_ranker_by_one_property_gets_it_back_with_signed_parts() -> None:
    """Scores are nothing but a property, which the twins have more of: all of the gap goes
    with it.
    """
    collection = twins()
    longer = (
        np.arange(collection.docs.height) % 7
        + 6.0 * (collection.docs["source"] == "llm").to_numpy()
    )
    for lean in (1.0, -1.0):
        run = scored(
            collection,
            lambda row, lean=lean: lean * longer[collection.docs["id"].index_of(row["id"]) or 0],
        )
        attribution = attribute(collection, [run], [property_of("longer", longer), ROUND])
        rows = table(attribution)
        assert rows["longer"]["R² without"] < 0.1
        assert sum(row["share of R²"] or 0 for row in rows.values()) == pytest.approx(
            rows["longer"]["R²"]
        )
        assert rows["longer"]["R²"] == pytest.approx(1)
        assert rows["longer"]["contribution"] == pytest.approx(rows["longer"]["mean gap"])
        assert rows["what remains"]["contribution"] == pytest.approx(0, abs=1e-12)
        higher, lower = ("llm", "human") if lean > 0 else ("human", "llm")
        assert re.fullmatch(
            rf"toy scores {higher} texts higher than their {lower} twins, by 1\.\d+ sd "
            r"\[1\.\d+, 1\.\d+\]\. This goes with longer\.",
            attribution.summary,
        )
    llm = (collection.docs["source"] == "llm").to_numpy()
    noise = np.random.default_rng(5).normal(size=(2, len(llm)))
    up, down = llm * 2.0 + noise[0], llm * 2.0 + noise[1]
    run = scored(
        collection,
        lambda row: 4 * up[(n := collection.docs["id"].index_of(row["id"]) or 0)] - 2 * down[n],
        noise=0.1,
    )
    attribution = attribute(collection, [run], [property_of("up", up), property_of("down", down)])
    assert attribution.summary.startswith("toy scores llm texts higher than their human twins, by ")
    assert attribution.summary.endswith(". This goes with up, despite down.")


def test_query_words_are_those_of_the_query_of_the_row() -> None:
    """No document is judged; a ranker that counts the query's words is found to."""
    generator, words = np.random.default_rng(3), [f"w{n}" for n in range(30)]
    docs = versions(
        {
            s: [" ".join(generator.choice(words, 12)) for _ in range(ORIGINS)]
            for s in ("human", "llm")
        }
    )
    queries = {f"q{n}": " ".join(generator.choice(words, 4, replace=False)) for n in range(QUERIES)}
    collection = collection_of(docs, queries, {})
    scores = {
        q: {d["id"]: float(len({*text.split()} & {*d["text"].split()})) for d in docs}
        for q, text in queries.items()
    }
    rows = table(
        attribute(collection, [run_of(collection, scores, ranker="toy")], [QueryWordsProbe()])
    )
    assert (rows["query words"]["twins"], rows["query words"]["coefficient"] > 0) == (
        QUERIES * ORIGINS,
        True,
    )
    assert rows["query words"]["R²"] > 0.98  # not 1: standard deviations differ from query to query


def test_related_properties_are_said_and_figures_have_one_scale() -> None:
    collection = twins()
    lengths = collection.docs["text"].str.len_chars().to_numpy().astype(float)
    nearly = lengths + 0.05 * np.random.default_rng(0).normal(size=len(lengths))
    run = scored(collection, lambda row: len(row["text"]), noise=1)
    attribution = attribute(collection, [run], [LONG, property_of("nearly", nearly), ROUND])
    (note,) = [note for note in note_sentences(attribution.notes) if "inflation" in note]
    assert re.search(r"long \(\d{3,}\) and nearly \(\d{3,}\) go together", note)
    attribution = attribute(collection, [run], [LONG, property_of("twice", 2 * lengths)])
    assert attribution.tables[0].rows[1]["inflation"] == "∞"
    assert any(
        "long (∞) and twice (∞) go together" in note for note in note_sentences(attribution.notes)
    )
    collection = twins()
    steep, flat = (
        scored(
            collection, lambda row, by=by: by * len(row["text"]) + (row["source"] == "llm"), noise=1
        )
        for by in (3, 0.1)
    )
    attribution = attribute(collection, [steep, flat], [ROUND, LONG])
    first, second = attribution.figures
    assert first.edges == second.edges
    order = ["what remains", "long", "round"]
    assert (
        list(first.series)
        == list(second.series)
        == [row["property"] for row in attribution.tables[1].rows]
        == order
    )


def test_one_query_speaks_of_documents_only() -> None:
    """Its interval is that of origins; a numbering of one cluster takes no degrees of freedom."""
    collection = twins()
    run = scored(collection, lambda row: len(row["text"]), noise=1)
    scores = run.frame().filter(query_id="q0").select("doc_id", "score")
    run_of_query = run_of(collection, {"q0": dict(scores.iter_rows())}, ranker="toy")
    attribution = attribute(collection, [run_of_query], [LONG])
    row = table(attribution)["long"]
    gap = gaps(collection, run_of_query, "human", "llm")["score"].to_numpy()
    half = stats.t.ppf(0.975, ORIGINS - 1) * gap.std(ddof=1) / math.sqrt(ORIGINS)
    assert row["gap high"] - row["mean gap"] == pytest.approx(half)
    assert any("there is only one query" in note for note in note_sentences(attribution.notes))


def test_what_cannot_be_attributed_is_one_line() -> None:
    collection = twins()
    run = scored(collection, lambda row: len(row["text"]))
    with refused("attribution: expected 1 to 10 properties, got 11"):
        attribute(collection, [run], [LONG] * 11)
    with refused("attribution: property 'long' is given twice"):
        attribute(collection, [run], [LONG, ROUND, LONG])
    needs = "attribution needs 30 pairs of human and llm in the same rankings; toy has"
    with refused(f"{needs} 480 pairs, not counting those without none (480)"):
        attribute(collection, [run], [property_of("none", lambda text: math.nan)])
    few = run_of(
        collection,
        {"q0": {f"{n}-{s}": float(n) for n in range(3) for s in ("human", "llm")}},
        ranker="toy",
    )
    with refused(f"{needs} 3 pairs: rank deeper, or more queries"):
        attribute(collection, [few], [LONG])
    alone = collection_of(
        [{"id": "a", "title": "", "text": "a", "source": "human", "origin": "a"}], {}, {}
    )
    with refused("nothing to attribute: no source has twins of human"):
        attribute(alone, [run_of(alone, {})], [LONG])
