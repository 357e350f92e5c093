"""The one call: every number of a small collection by hand, what counts where, what counts once,
what is refused.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt import Audit, Collection, DataError, Run, audit, compare, gate, load
from ranktilt.auditing.effects import Effect
from ranktilt.reporting.sentences.notes import note_sentences
from tests.refusals import refused
from tests.reporting.audits import ordered, twins
from tests.toy import collection_of, run_of, toy, write_cocktail, write_run

THIRD = 1 / math.log2(3)
"""The discount of rank 2."""

SCORES = {
    "q1": {"d1-human": 3.0, "d1-llm": 2.0, "d3-llm": 2.0, "d2-human": 1.0, "d3-human": 1.0},
    "q2": {"d1-llm": 5.0, "d2-llm": 4.0, "d2-human": 3.0},
    "q3": {"d3-human": 2.0, "d3-llm": 2.0, "d1-human": 1.0},
}
MEASURES = ["nDCG@1", "nDCG@3", "AP@3", "AP", "P@3", "R@3", "RR"]


def toy_audit(
    scores: Mapping[str, Mapping[str, float]] = SCORES, measures: Any = MEASURES, **options: Any
) -> Audit:
    collection = toy()
    return audit(collection, run_of(collection, scores, ranker="hand"), measures, **options)


def per_query(audit: Audit, measure: str, group: str) -> list[float]:
    rows = audit.table.filter((pl.col("measure") == measure) & (pl.col("group") == group))
    return rows["value"].to_list()


def mean(audit: Audit, measure: str, group: str) -> float:
    means = audit.by_group().filter((pl.col("measure") == measure) & (pl.col("group") == group))
    return float(means["mean"].item())


class TestByHand:
    """Query 1 has ties at ranks 2-3 and 4-5, query 3 at ranks 1-2."""

    @pytest.mark.parametrize(
        ("measure", "group", "expected"),
        [
            ("nDCG@1", "human", [1, 0, 1 / 2]),
            ("nDCG@3", "llm", [1.5 * (THIRD + 1 / 2) / (2 + THIRD), THIRD, (1 + THIRD) / 2]),
            (
                "nDCG@3",
                "all",
                [
                    (2 + 1.5 * (THIRD + 1 / 2)) / (2 + 2 * THIRD + 1 / 2),
                    (THIRD + 1 / 2) / (1 + THIRD),
                    1,
                ],
            ),
            ("AP@3", "all", [3 / 4, (1 / 2 + 2 / 3) / 2, 1]),
            ("AP", "human", [(1 + (2 / 4 + 2 / 5) / 2) / 2, 1 / 3, 3 / 4]),
            ("P@3", "llm", [2 / 3, 1 / 3, 1 / 3]),
            ("R@3", "human", [1 / 2, 1, 1]),
            ("RR", "llm", [1 / 2, 1 / 2, 3 / 4]),
        ],
    )
    def test_every_measure_per_group(self, measure: str, group: str, expected: list[float]) -> None:
        result = toy_audit()
        assert per_query(result, measure, group) == pytest.approx(expected, abs=1e-15)
        assert mean(result, measure, group) == pytest.approx(sum(expected) / 3, abs=1e-15)

    def test_trec_evals_ties_go_to_the_greater_id(self) -> None:
        result = toy_audit(ties="trec_eval")
        # d3-llm stands before d3-human in query 3, and before d1-llm in query 1.
        assert per_query(result, "nDCG@1", "human") == pytest.approx([1, 0, 0])
        assert per_query(result, "RR", "llm") == pytest.approx([1 / 2, 1 / 2, 1])
        assert per_query(result, "nDCG@3", "llm") == pytest.approx(
            [(THIRD + 1) / (2 + THIRD), THIRD, 1]
        )
        assert per_query(result, "AP", "human") == pytest.approx([(1 + 2 / 4) / 2, 1 / 3, 1 / 2])

    def test_counts_of_relevant_and_other_twins(self) -> None:
        counts = toy_audit().pair_counts.sort("relevant", "query", descending=[True, False])
        names = ("wins", "losses", "ties", "both")
        assert counts.select(names).rows() == [
            (1, 1, 0, 2),
            (0, 1, 0, 1),
            (0, 0, 1, 1),
            (1, 0, 0, 0),
            (0, 1, 0, 0),
            (1, 0, 0, 0),
        ]
        assert counts.select("run", "a", "b").unique().rows() == [("hand", "human", "llm")]
        assert counts["query"].to_list() == ["q1", "q2", "q3"] * 2
        assert {
            toy_audit().tied_share("hand", *pair) for pair in (("human", "llm"), ("llm", "human"))
        } == {1 / 4}


class TestTheCall:
    def test_own_id_table_is_joined_by_id_and_seed_moves_intervals(
        self,
    ) -> None:
        collection = toy()
        shared = run_of(collection, SCORES, ranker="r")
        frame = shared.frame().sample(fraction=1.0, shuffle=True, seed=3)
        private = Run.from_frame(frame, spec={"ranker": "r"})
        assert audit(collection, private, MEASURES, keep_top=0) == audit(
            collection, shared, MEASURES, keep_top=0
        )
        mixed = rt.bundled()
        bm25 = rt.ranker("bm25").rank(mixed)
        options = {"confounds": False, "resamples": 200}
        first, same, reseeded = (
            audit(mixed, bm25, MEASURES, seed=seed, **options) for seed in (1, 1, 2)
        )
        assert first == same
        assert np.array_equal(first.values, reseeded.values)
        assert [t.value for t in first.tilts] == [t.value for t in reseeded.tilts]
        assert [t.low for t in first.tilts] != [t.low for t in reseeded.tilts]

    def test_the_spec_says_how_it_was_made_and_of_which_files(self, tmp_path: Path) -> None:
        options = {
            "by": "source",
            "margin": 7.5,
            "ties": "trec_eval",
            "rounding": "paper",
            "test": "t",
            "correction": "bonferroni",
            "resamples": 150,
            "seed": 9,
        }
        collection = load(write_cocktail(tmp_path / "toy"))
        file = write_run(tmp_path / "hand.trec", SCORES)
        run = run_of(collection, SCORES, ranker="r", file=str(file))
        spec = audit(collection, run, ["P@1"], **options).spec
        assert {name: spec[name] for name in options} == options
        assert spec["runs"] == [{"ranker": "r", "file": str(file)}]
        assert {"numpy", "scipy", "polars", "PyStemmer"} <= set(spec["packages"])
        assert {Path(i["path"]).name for i in spec["inputs"]} == {
            "human.jsonl",
            "llm.jsonl",
            "queries.jsonl",
            "test.tsv",
            "hand.trec",
        }
        for entry_of_file in spec["inputs"]:
            assert (
                entry_of_file["sha256"]
                == hashlib.sha256(Path(entry_of_file["path"]).read_bytes()).hexdigest()
            )

    @pytest.mark.parametrize(
        ("measures", "primary", "expected"),
        [
            (None, None, "nDCG@10"),
            (["nDCG@1", "nDCG"], None, "nDCG"),  # all ranks are deeper than any
            (["RR", "AP@3"], None, "RR"),
            (["Share@2"], None, "Share@2"),
            (["nDCG@1", "nDCG@5"], "nDCG@1", "nDCG@1"),
            (["nDCG@1"], "Share@2", "Share@2"),  # which is asked too
        ],
    )
    def test_the_primary_question(
        self, measures: Any, primary: str | None, expected: str, tmp_path: Path
    ) -> None:
        result = toy_audit(measures=measures, primary=primary)
        assert repr(result.primary) == result.verdict("hand").primary == expected
        assert Audit.load(result.save(tmp_path / "a.json")).primary == result.primary


class TestGroups:
    def test_three_groups_make_three_pairs(self) -> None:
        collection = twins(4, ("human", "llm", "claude"))
        result = audit(
            collection, ordered(collection, [("llm", "human", "claude")] * 4, "r"), ["RR"]
        )
        assert result.groups == ("all", "human", "claude", "llm")
        assert result.pairs == (("human", "claude"), ("human", "llm"), ("claude", "llm"))
        assert [mean(result, "RR", g) for g in result.groups] == pytest.approx([1, 1 / 2, 1 / 3, 1])
        deltas = [t.value for t in result.tilts]
        assert deltas == pytest.approx(
            [200 * (1 / 6) / (5 / 6), 200 * (-1 / 2) / (3 / 2), 200 * (-2 / 3) / (4 / 3)]
        )
        renamed_result = audit(
            collection,
            ordered(collection, [("llm", "human")] * 4, "r"),
            ["RR"],
            pairs=[("llm", "human")],
        )
        assert (renamed_result.groups, renamed_result.pairs) == (result.groups, (("llm", "human"),))
        assert renamed_result.tilts[0].value == pytest.approx(200 * (1 - 1 / 2) / (3 / 2))

    def test_unlabelled_documents_count_in_row_all_only(
        self,
    ) -> None:
        docs = [
            {"id": f"d{i}", "text": str(i), "gender": g}
            for i, g in enumerate(["f", "m", None, None])
        ]
        collection = collection_of(docs, {"q": "x"}, {"q": {"d0": 1, "d1": 1, "d2": 1}})
        result = audit(
            collection,
            run_of(collection, {"q": {"d2": 4.0, "d0": 3.0}}),
            ["R@2", "RR"],
            by="gender",
        )
        assert [mean(result, "R@2", g) for g in result.groups] == pytest.approx([2 / 3, 1, 0])
        assert [mean(result, "RR", g) for g in result.groups] == pytest.approx([1, 1 / 2, 0])
        assert not result.tilts[0].twins
        assert "2 documents without gender, so in no group" in note_sentences(result.notes)
        collection = twins(3)
        extra = pl.DataFrame({"id": ["x"], "text": ["x"], "source": ["claude"], "origin": ["x"]})
        wider = Collection(
            pl.concat([collection.docs, extra], how="diagonal"),
            collection.queries,
            collection.qrels,
        )
        result = audit(wider, ordered(wider, [("human", "llm")] * 3, "r"), ["RR"])
        assert result.pairs == (("human", "llm"),)
        assert np.isnan(mean(result, "RR", "claude"))
        assert (
            "human and claude have no Relative Δ: one of them has no relevant document"
            in note_sentences(result.notes)
        )

    def test_queries_relevant_in_one_group_only_are_excluded(
        self,
    ) -> None:
        collection = twins(5)
        judged = collection.qrels.filter(~pl.col("doc_id").is_in(["0-llm", "1-llm", "2-human"]))
        uneven = Collection(collection.docs, collection.queries, judged)
        result = audit(uneven, ordered(uneven, [("human", "llm")] * 5, "r"), ["RR"])
        means = result.by_group()
        assert means.select("group", "queries", "excluded").rows() == [
            ("all", 5, 0),
            ("human", 4, 1),
            ("llm", 3, 2),
        ]
        (tilt,) = result.tilts
        assert (tilt.queries, tilt.excluded, tilt.twins) == (2, 3, False)
        assert (tilt.mean_a, tilt.mean_b) == (1.0, 0.5)


class TestWhatTheRunLacks:
    @pytest.mark.parametrize("ties", ["expected", "trec_eval"])
    def test_missing_and_empty_queries_count_0(self, ties: str) -> None:
        for scores in ({q: SCORES[q] for q in ("q3", "q1")}, {**SCORES, "q2": {}}):
            result = toy_audit(scores, ties=ties)
            assert [per_query(result, "nDCG@3", group)[1] for group in ("all", "human", "llm")] == [
                0,
                0,
                0,
            ]
            assert mean(result, "P@3", "human") == pytest.approx((1 / 3 + 1 / 3) / 3)
            assert (
                "hand: 1 judged query not in the run, counted as 0" in note_sentences(result.notes)
            ) is ("q2" not in scores)

    def test_queries_without_judgments_or_relevant_documents(
        self,
    ) -> None:
        collection = toy()
        queries = pl.concat([pl.DataFrame({"id": ["q0"], "text": ["x"]}), collection.queries])
        extra = pl.DataFrame(
            {"query_id": ["q2", "q3"], "doc_id": ["d3-human", "d1-llm"], "grade": [0, -1]}
        )
        wider = Collection(
            collection.docs, queries, pl.concat([collection.qrels, extra.cast({"grade": pl.Int32})])
        )
        result = audit(wider, run_of(wider, {"q0": {"d1-human": 1.0}, **SCORES}), MEASURES)
        assert result.queries == ("q1", "q2", "q3")
        assert np.array_equal(result.values, toy_audit().values)
        collection = toy()
        grade = pl.when(pl.col("query_id") == "q2").then(0).otherwise("grade")
        qrels = collection.qrels.with_columns(grade=grade)
        result = audit(
            Collection(collection.docs, collection.queries, qrels),
            run_of(collection, SCORES),
            ["RR"],
        )
        assert np.isnan(per_query(result, "RR", "all")[1])
        assert mean(result, "RR", "all") == pytest.approx((1 + 1) / 2)
        assert result.by_group()["excluded"].to_list() == [1, 1, 1]


class TestUnknown:
    """Documents and queries that the collection does not hold: in the judgments, in the run, or in
    both.
    """

    @pytest.fixture
    def collection(self) -> Collection:
        known = toy()
        rows = [
            ("q2", "ghost", 3),
            ("q9", "d1-human", 1),
            ("q9", "d2-llm", 2),
            ("q2", "phantom", 0),
        ]
        strange = pl.DataFrame(rows, schema=known.qrels.schema, orient="row")
        return Collection(known.docs, known.queries, pl.concat([known.qrels, strange]))

    @staticmethod
    def run(scores: Mapping[str, Mapping[str, float]]) -> Run:
        rows = [
            {"query_id": q, "doc_id": d, "score": s}
            for q, query_scores in scores.items()
            for d, s in query_scores.items()
        ]
        return Run.from_frame(pl.DataFrame(rows), spec={"ranker": "r"})

    @pytest.mark.parametrize("ties", ["expected", "trec_eval"])
    def test_row_all_counts_unknown_judgments(self, collection: Collection, ties: str) -> None:
        scores = {
            **SCORES,
            "q2": {"ghost": 9.0, **SCORES["q2"]},
            "q9": {"d3-llm": 2.0, "d1-human": 1.0},
        }
        result = audit(collection, self.run(scores), ["nDCG@1", "R@2", "RR"], ties=ties)
        assert result.queries == ("q1", "q2", "q3", "q9")
        assert per_query(result, "nDCG@1", "all") == [1, 1, 1, 0]
        assert per_query(result, "R@2", "all")[1] == pytest.approx(1 / 3)
        assert per_query(result, "RR", "all")[3] == 1 / 2
        sides = [per_query(result, "RR", group) for group in ("human", "llm")]
        assert [side[1] for side in sides] == [1 / 4, 1 / 3]  # unknown documents keep their ranks
        assert np.isnan([side[3] for side in sides]).all()
        assert result.tilts[0].queries == 3
        counts = result.pair_counts.filter(pl.col("query") != "q9").drop("run")
        assert counts.equals(toy_audit(measures=["RR"]).pair_counts.drop("run"))

    def test_notes_count_them_and_lacking_unknown_query_counts_0(
        self, collection: Collection
    ) -> None:
        scores = {
            "q0": {"elsewhere": 1.0, "nowhere": 0.5},
            "q1": {**SCORES["q1"], "nobody": 0.5},
            "q2": {"ghost": 9.0, **SCORES["q2"], "nobody": 0.1},
            "q3": SCORES["q3"],
        }
        result = audit(collection, self.run(scores), ["RR"])
        assert per_query(result, "RR", "all")[3] == 0
        assert note_sentences(result.notes)[0].startswith(
            "r: 3 entries for 2 documents not in the collection (first: 'nobody'); "
        )
        assert note_sentences(result.notes)[1].startswith(
            "1 judgment for unknown documents and 2 judgments for unknown queries count only in "
        )

    @pytest.mark.parametrize(
        ("entries", "message"),
        [
            (
                {"x": 1.0, "ghost": 0.5},
                "r: no overlap: none of its 2 documents is in the collection",
            ),
            (
                {"d1": 1.0, "d2-human": 0.5},
                "r: several sources share document id 'd1': 'd1-human' and 'd1-llm'",
            ),
        ],
    )
    def test_runs_that_do_not_fit(
        self, collection: Collection, entries: dict[str, float], message: str
    ) -> None:
        with pytest.raises(DataError, match=f"^{message}"):
            audit(collection, self.run({"q1": entries}), ["RR"])


@pytest.mark.parametrize(
    ("measure", "same_as"), [("nDCG@3", "nDCG@3"), ("P@3", "P(rel=2)@3"), ("AP", "AP(rel=2)")]
)
def test_fractional_grades_are_gains_and_relevant_from_1_on(measure: str, same_as: str) -> None:
    halved = Collection(
        toy().docs, toy().queries, toy().qrels.with_columns(grade=pl.col("grade") / 2)
    )
    half, result = audit(halved, run_of(halved, SCORES), [measure]), toy_audit(measures=[same_as])
    np.testing.assert_array_equal(half.values, result.values)
    fractions = int((halved.qrels["grade"] % 1 == 0.5).sum())
    assert any(
        note.startswith(f"{fractions} grade") and "(first: 0.5)" in note
        for note in note_sentences(half.notes)
    )


def without_relevant(end: str) -> Collection:
    """The toy, its judgments of documents whose ids end so turned to 0."""
    collection = toy()
    grades = [0 if doc.endswith(end) else grade for _, doc, grade in collection.qrels.iter_rows()]
    qrels = collection.qrels.with_columns(grade=pl.Series(grades, dtype=pl.Int32))
    return Collection(collection.docs, collection.queries, qrels)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"measures": []}, "an audit needs at least one measure, such as nDCG@3"),
    ({"measures": ["nDCG@3", "ndcg_cut_3"]}, "measure 'nDCG@3' is given twice"),
    (
        {"primary": "ScoreGap"},
        "ScoreGap only describes and gives no verdict; choose another primary question",
    ),
    (
        {"pairs": [("human", "lmm")]},
        "unknown source 'lmm'; did you mean 'llm'? (valid: human, llm)",
    ),
    ({"pairs": ("human", "llm")}, "expected pairs of two groups"),
    ({"pairs": [("human", "llm")], "by": None}, "pairs of groups need a column to group by"),
    (
        {"ties": "expect"},
        "unknown ties 'expect'; did you mean 'expected'? (valid: expected, trec_eval)",
    ),
    (
        {"margin": -1},
        "expected a margin of at least 0, such as 5 or 5% (points) or '0.5 ranks'; got -1",
    ),
    ({"depth": 0}, "expected a depth of at least 1 rank, got 0"),
    ({"keep_top": -1}, "expected to keep the top 0 ranks or more, got -1"),
    ({"seed": -1}, "expected a seed of at least 0, got -1"),
    ({"pairs": [(1, 2)]}, "expected pairs of two groups, such as [('human', 'llm')], got (1, 2)"),
    (
        {"collection": Collection(toy().docs, toy().queries.head(0), toy().qrels)},
        "nothing to compare: no document of source 'human' is judged relevant",
    ),
    ({"runs": "bm25"}, "expected runs, got 'bm25'; rank first"),
    ({"collection": "folder"}, "expected a collection, got 'folder'; load it first"),
    ({"runs": []}, "an audit needs at least one run or ranker, such as -r bm25"),
    ({"runs": [run_of(toy(), SCORES)] * 2}, "run 'run' is given twice"),
    (
        {"collection": without_relevant(""), "by": None},
        "no document is judged relevant to any query",
    ),
    (
        {"collection": without_relevant("llm")},
        "nothing to compare: no document of source 'llm' is judged relevant",
    ),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_mistakes_are_one_sentence(options: dict[str, Any], message: str) -> None:
    arguments = {"collection": toy(), "runs": run_of(toy(), SCORES), "measures": "RR", **options}
    with refused(f"{message}…"):
        audit(
            arguments.pop("collection"),
            arguments.pop("runs"),
            arguments.pop("measures"),
            **arguments,
        )


def test_excluded_queries_and_dropped_resamples_are_said() -> None:
    docs = [
        {"id": "a", "text": "x", "source": "human"},
        {"id": "b", "text": "x", "source": "llm", "origin": "a"},
    ]
    qrels = {"p": {"a": 1, "b": 1}, "q": {"a": 1, "b": 1}, "s": {"a": 1, "b": 1}, "r": {"a": 1}}
    collection = collection_of(docs, {name: f"x {name}" for name in qrels}, qrels)
    run = run_of(collection, {"p": {"a": 2.0, "b": 1.0}, "q": {}, "s": {}, "r": {"a": 1.0}})
    result = audit(collection, run, "nDCG@3")
    assert (
        "1 of 4 queries excluded: no relevant documents from both human and llm"
        in note_sentences(result.notes)
    )
    dropped = result.tilts[0].dropped
    assert 2_700 < dropped < 3_300  # a resample lacks p (2/3)³ = 8/27 of the time
    assert (
        f"up to {dropped:,} of 10,000 resamples dropped for human and llm: both sides were 0"
        in note_sentences(result.notes)
    )


# Queries that repeat each other are one piece of evidence

SIDES = ("human", "llm")


def repeating(times: int, texts: list[str], queries: int = 25) -> Collection:
    """Queries of one relevant pair each, every one of them `times` over."""
    names = [(f"q{n}-{copy}", n) for n in range(queries) for copy in range(times)]
    docs = [
        {"id": f"{n}-{s}", "text": "x", "source": s, "origin": f"{n}"}
        for n in range(queries)
        for s in SIDES
    ]
    qrels = {name: {f"{n}-{s}": 1 for s in SIDES} for name, n in names}
    text = [texts[number % len(texts)] for number in range(len(names))]
    plain = collection_of(docs, dict.fromkeys(qrels, "x"), qrels)
    return Collection(plain.docs, plain.queries.with_columns(text=pl.Series(text)), plain.qrels)


def tossed(collection: Collection, seed: int = 0, *, shuffled: bool = False) -> Run:
    """Which twin is above is tossed for each origin; `shuffled`: other documents differ from copy
    to copy.
    """
    rng = np.random.default_rng(seed)
    queries = collection.queries["id"].to_list()
    first = rng.integers(0, 2, len(queries))
    scores = {}
    for number, name in enumerate(queries):
        n = int(name[1:].partition("-")[0])
        scores[name] = {f"{n}-{SIDES[first[n]]}": 3.0, f"{n}-{SIDES[1 - first[n]]}": 2.0}
        if shuffled:
            scores[name][f"{(n + 1 + number % 7) % 25}-human"] = 1.0
    return run_of(collection, scores, ranker="r")


def audited(times: int, texts: list[str], **options: Any) -> Audit:
    collection = repeating(times, texts)
    return audit(
        collection,
        tossed(collection, shuffled=options.pop("shuffled", False)),
        ["nDCG@1"],
        card=True,
        **options,
    )


def distinct_texts(times: int) -> list[str]:
    return [f"text {number}" for number in range(25 * times)]


ALIKE = [f"text {n}" for n in range(25) for _ in range(4)]


class TestWhatRepeats:
    def test_repetition_needs_same_text_or_ranking(self) -> None:
        repeated = audited(4, ALIKE, shuffled=True).repeated
        assert (set(repeated), len(repeated["r"]), repeated["r"]["q3-2"]) == ({"r"}, 75, "q3-0")
        assert [len(audited(4, texts).repeated["r"]) for texts in (distinct_texts(4), [""])] == [
            75,
            75,
        ]
        assert audited(4, distinct_texts(4), shuffled=True).repeated == {}
        collection = repeating(2, distinct_texts(2))
        graded = (
            pl.when(pl.col("query_id").str.ends_with("-1"))
            .then(2)
            .otherwise("grade")
            .cast(pl.Int32)
        )
        regraded = Collection(
            collection.docs, collection.queries, collection.qrels.with_columns(grade=graded)
        )
        assert audit(regraded, tossed(regraded), ["nDCG@1"]).repeated == {}

    def test_ties_empty_lists_and_chained_repetitions(
        self,
    ) -> None:
        collection = repeating(2, distinct_texts(2), queries=3)
        tied = {"q0-0": {"0-human": 1.0, "0-llm": 1.0}, "q0-1": {"0-llm": 1.0, "0-human": 1.0}}
        tied |= {
            "q1-0": {"1-human": 2.0, "1-llm": 1.0},
            "q1-1": {"1-human": 1.0, "1-llm": 1.0},
            "q2-0": {},
            "q2-1": {},
        }
        result = audit(collection, run_of(collection, tied, ranker="r"), ["nDCG@1"])
        assert result.repeated == {"r": {"q0-1": "q0-0"}}
        collection = repeating(3, ["same", "same", "other"], queries=1)
        scores = {"q0-0": {"0-llm": 1.0}, "q0-1": {"0-human": 1.0}, "q0-2": {"0-human": 1.0}}
        result = audit(collection, run_of(collection, scores, ranker="r"), ["nDCG@1"])
        assert result.repeated == {"r": {"q0-1": "q0-0", "q0-2": "q0-0"}}


class TestOneQueryAgain:
    @pytest.mark.parametrize("by", ["text", "ranking"])
    def test_four_times_the_queries_say_no_more(self, by: str) -> None:
        single = audited(1, distinct_texts(1))
        four = audited(4, ALIKE if by == "text" else distinct_texts(4))
        [a], [b] = single.tilts, four.tilts
        assert (b.queries, b.effective_n, a.effective_n) == (100, 25, 25)
        assert (a.value, a.low, a.high, a.error, a.p) == (b.value, b.low, b.high, b.error, b.p)
        for x, y in zip(single.card, four.card, strict=True):
            assert np.array_equal([x.value, x.p], [y.value, y.p], equal_nan=True)
            assert [x.low, x.high, x.error] == pytest.approx([y.low, y.high, y.error], nan_ok=True)

    def test_it_is_said_once_for_runs_with_the_same_ones(self) -> None:
        collection = repeating(2, ["text"] * 2 + distinct_texts(2)[2:])
        runs = [
            replace(tossed(collection, shuffled=True), spec={"ranker": name}) for name in ("r", "s")
        ]
        [note] = [
            note
            for note in note_sentences(audit(collection, runs, ["nDCG@1"]).notes)
            if "repeat" in note
        ]
        assert note.startswith(
            "warning: r, s: 1 query repeats others, by text or by ranking and judgments (first: 'q0"
        )

    def test_compare_and_gate_resample_them_together_too(self) -> None:
        ones, fours = (
            [audit(collection, tossed(collection, seed), ["nDCG@1"]) for seed in (1, 2)]
            for collection in (repeating(1, distinct_texts(1)), repeating(4, ALIKE))
        )
        single, four = compare(*ones), compare(*fours)
        for x, y in (
            (single.tilts[0], four.tilts[0]),
            (single.effectiveness[0], four.effectiveness[0]),
        ):
            assert (y.queries, y.effective_n) == (100, 25)
            assert (x.value, x.low, x.high, x.p) == pytest.approx(
                (y.value, y.low, y.high, y.p), nan_ok=True
            )
        checks = [gate(new, baseline=old).rows[0].checks[0] for new, old in (ones, fours)]
        assert (checks[0].low, checks[0].high) == pytest.approx((checks[1].low, checks[1].high))


def test_groups_without_twins_share_labels_of_repeated_queries() -> None:
    rng = np.random.default_rng(7)
    docs = [{"id": f"d{n}", "text": "x", "side": "ab"[n % 2]} for n in range(60)]
    relevant = [{f"d{d}": 1 for d in rng.permutation(60)[:6]} for _ in range(20)]
    lists = [
        {f"d{d}": -float(rank) for rank, d in enumerate(rng.permutation(60)[:30])}
        for _ in range(20)
    ]

    def repeated(times: int) -> Effect:
        numbers = {f"q{q}-{c}": q for c in range(times) for q in range(20)}
        plain = collection_of(
            docs, dict.fromkeys(numbers, "x"), {name: relevant[q] for name, q in numbers.items()}
        )
        text = pl.Series([str(q) for q in numbers.values()])
        retitled = Collection(plain.docs, plain.queries.with_columns(text=text), plain.qrels)
        run = run_of(retitled, {name: lists[q] for name, q in numbers.items()}, ranker="r")
        return audit(retitled, run, ["nDCG@10"], by="side", resamples=200).tilts[0]

    single, four = repeated(1), repeated(4)
    width = single.null_high - single.null_low
    assert four.null_high - four.null_low == pytest.approx(width, rel=0.15)
    assert four.p == pytest.approx(single.p, abs=0.1)


def test_question_about_all_groups_has_no_verdict_on_one_group() -> None:
    collection = toy()
    region = pl.Series("region", ["Europe"] * 3 + [None] * 3)
    collection = Collection(
        collection.docs.with_columns(region), collection.queries, collection.qrels
    )
    run = rt.ranker("bm25").rank(collection)
    result = audit(collection, run, "AWRF", by="region", resamples=200)
    assert [effect.measure for effect in result.card] == ["AWRF"]
    assert result.pairs == result.judged_pairs == ()
    assert result.verdicts() == []


def test_card_of_one_rank_is_made() -> None:
    collection = toy()
    run = rt.ranker("bm25").rank(collection)
    result = audit(collection, run, card=True, depth=1)
    assert "NDSR@1" in {str(answer.estimand) for answer in result.card}
    with refused("expected a depth of at least 1 rank, got 0"):
        audit(collection, run, card=True, depth=0)


def test_run_of_first_document_alone_meets_collection(tmp_path: Path) -> None:
    collection = toy()
    query = collection.queries_with_judgments["id"][0]
    path = write_run(tmp_path / "run", {query: {collection.ids[0]: 1.0}})
    result = audit(collection, Run.load(path), "nDCG@10")
    assert result.runs == ("run",)
