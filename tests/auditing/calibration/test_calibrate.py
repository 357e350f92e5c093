"""Calibration: what is right comes out as expected, what is wrong is caught, and copies are byte
for byte.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, Ranker, Run, UserError, bundled, ranker
from ranktilt.rankers.lexical.bm25 import BM25
from tests.auditing.calibration import calibrate as module
from tests.auditing.calibration.calibrate import (
    Calibration,
    CheckOutcome,
    ComparisonCounter,
    Vectors,
    calibrate,
)
from tests.auditing.calibration.synthetic_twins import (
    COPY,
    SCHEMES,
    THINNED,
    Scheme,
    first_source,
    sampled,
    swapped,
    with_synthetic_twins,
)
from tests.refusals import refused
from tests.toy import QRELS, TEXTS, collection_of, run_of, toy

long = pytest.mark.long
MEASURES = ["nDCG@1", "AP@5"]
DEPTHS = (1, 3, 10)
CARD = [
    "Relative Δ nDCG@1",
    "Relative Δ AP@5",
    "ΔNDSR",
    "head-to-head, relevant twins",
    "head-to-head, other twins",
    "pair rank gap",
    "score gap",
]
WORDS = np.array([f"w{i}" for i in range(30)])


def pairs(
    count: int = 30, queries: int = 20, sources: tuple[str, str] = ("human", "llm")
) -> Collection:
    """Pairs of random words, the second side with some of them exchanged; two relevant pairs a
    query.
    """
    rng = np.random.default_rng(5)
    docs = []
    for n in range(count):
        words = rng.choice(WORDS, rng.integers(4, 25))
        rewritten = np.where(rng.random(len(words)) < 0.3, rng.choice(WORDS, len(words)), words)
        for source, text in zip(sources, (words, rewritten), strict=True):
            docs.append(
                {"id": f"{n}-{source}", "text": " ".join(text), "source": source, "origin": f"{n}"}
            )
    grades = {
        f"q{n}": {f"{d}-{s}": 1 for d in (n, (n + 7) % count) for s in sources}
        for n in range(queries)
    }
    queries_text = {f"q{n}": " ".join(docs[2 * n]["text"].split()[:3]) for n in range(queries)}
    return collection_of(docs, queries_text, grades)


def calibration_of(collection: Collection, *rankers: Any, **options: Any) -> Calibration:
    return calibrate(
        collection,
        [ranker(r) for r in rankers],
        **{"measures": MEASURES, "depths": DEPTHS, **options},
    )


def rows(calibration: Calibration, check: str, name: str = "") -> list[CheckOutcome]:
    return [
        row for row in calibration.rows if row.check == check and row.ranker in (name or row.ranker)
    ]


@pytest.fixture(scope="module")
def right() -> Calibration:
    return calibration_of(pairs(), "bm25", "tfidf")


@long
def test_estimands_of_groups_are_tested_where_a_right_answer_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SCHEMES", SCHEMES[:2])
    estimands = ["nDCG@1", "ExposureRatio@10", "Share@5", "AWRF@5", "NDSR@20"]
    calibration = calibration_of(pairs(12, 12), "bm25", measures=estimands, depths=(30,))
    tested = {
        name: {
            row.check for row in calibration.rows if row.estimand == name and row.verdict == "ok"
        }
        for name in estimands
    }
    everywhere = {"null", "antisymmetry", "known tilt"}
    assert tested["Share@5"] == everywhere
    assert tested["ExposureRatio@10"] == everywhere - {"antisymmetry"}
    assert tested["AWRF@5"] == {"antisymmetry"}
    assert calibration.passed
    assert calibration.spec["measures"] == estimands[:-1], "the card's own question is asked once"


@long
class TestRightInstrument:
    def test_every_check_of_every_estimand_comes_out_as_expected(self, right: Calibration) -> None:
        assert {row.verdict for row in right.rows} == {"ok"}
        assert right.passed
        assert {(r.tests, r.measured) for r in rows(right, "null")} == {
            (len(SCHEMES) * len(DEPTHS), "18 of 18")
        }
        for name in ("bm25", "tfidf"):
            assert [r.estimand for r in rows(right, "null", name)] == [*CARD, "the verdict"]
            assert [r.estimand for r in rows(right, "antisymmetry", name)] == CARD
            assert [r.estimand for r in rows(right, "known tilt", name)] == CARD[:-1]

    @pytest.mark.parametrize("measures", [None, ["nDCG@3", "RR", "P@2", "R@4", "AP(rel=2)"]])
    def test_bundled_collection(self, measures: list[str] | None) -> None:
        calibration = calibration_of(
            bundled(), "tfidf", "bm25", measures=measures, depths=(1, 7, 100), sample=150
        )
        assert calibration.passed
        assert [r.verdict for r in calibration.rows].count("untested") == 0

    def test_nothing_judged_asks_what_needs_no_judgments(self) -> None:
        collection = pairs()
        calibration = calibration_of(
            Collection(collection.docs, collection.queries, collection.qrels.clear()),
            "bm25",
            measures=None,
        )
        assert calibration.passed
        names = [
            "ΔNDSR",
            "head-to-head",
            "head-to-head, pooled pairs",
            "pair rank gap, summed per query",
            "score gap",
        ]
        assert [r.estimand for r in rows(calibration, "antisymmetry")] == names

    def test_groups_that_are_no_twins(self) -> None:
        twins = pairs(12, 6)
        lone = Collection(twins.docs.with_columns(origin=pl.col("id")), twins.queries, twins.qrels)
        calibration = calibration_of(lone, "bm25", depths=(3,))
        assert calibration.passed
        assert [r.estimand for r in rows(calibration, "antisymmetry")] == CARD[:3]
        assert [r.estimand for r in rows(calibration, "null")] == [*CARD, "the verdict"]

    def test_samples_and_thinned_lone_source_are_noted(self) -> None:
        calibration = calibration_of(pairs(60, 30), "bm25", sample=20, depths=(3,))
        assert calibration.passed
        assert (calibration.spec["documents"], calibration.spec["queries"]) == (40, 10)
        [note] = calibration.notes
        assert note.startswith("Sampled: 20 of 60 documents of human and 10 of 30 queries;")
        collection = pairs()
        human = collection.docs.filter(pl.col("source") == "human")
        judged = collection.qrels.filter(pl.col("doc_id").is_in(human["id"].implode()))
        calibration = calibration_of(
            Collection(human, collection.queries, judged), "bm25", depths=(3,)
        )
        assert calibration.passed
        assert calibration.notes[0].startswith(
            "One source only: beside human stands the same text with every third word left"
        )

    def test_a_ranker_without_a_depth_is_taken_as_it_is(self) -> None:
        calibration = calibration_of(pairs(12, 6), Twice())
        assert calibration.passed
        assert rows(calibration, "null")[0].tests == len(SCHEMES) * len(DEPTHS)
        assert rows(calibration, "antisymmetry")[0].tests == 1


@dataclass(frozen=True, kw_only=True)
class Unfair(Ranker):
    """BM25 with a fault.

    A cut through a tie keeps the lower ``id`` or the earlier ``row``; ``noise`` sets scores apart
    in their last digits; human text gets a bonus for its ``source``.
    """

    name: ClassVar[str] = "unfair"
    k: int = 1000
    fault: str = "none"

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        full_run = BM25(k=collection.docs.height).rank(collection)
        docs = collection.docs.select(
            doc_id="id", human=pl.col("source") == "human"
        ).with_row_index("row")
        bonus = {"noise": np.random.default_rng(0).random(len(full_run.docs)) * 1e-9}.get(
            self.fault, 0.0
        )
        frame = (
            full_run.frame()
            .join(docs, on="doc_id", maintain_order="left")
            .with_columns(pl.col("score") + bonus)
        )
        if self.fault == "source":
            frame = frame.with_columns(pl.col("score") + pl.col("human") * 0.1)
        last = {"id": ["doc_id"], "row": ["row"]}.get(self.fault, [])
        frame = frame.sort(
            "query_id", "score", *last, descending=[False, True, *([False] * len(last))]
        )
        if self.fault != "none":
            frame = frame.group_by("query_id", maintain_order=True).head(self.k)
        return Run.from_frame(frame, queries=full_run.queries, spec={"ranker": repr(self)})


class Twice(Ranker):
    """A ranker without options: it has its own depth."""

    name: ClassVar[str] = "twice"

    def __repr__(self) -> str:
        return self.name

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        plain_run = BM25().rank(collection)
        return Run(
            plain_run.queries,
            plain_run.offsets,
            plain_run.docs,
            plain_run.scores * 2,
            plain_run.ids,
            {"ranker": repr(self)},
        )


@long
def test_a_measure_without_a_relevant_document_is_untested() -> None:
    calibration = calibration_of(pairs(12, 6), "bm25", depths=(3,), measures=["AP(rel=3)", "AP"])
    assert [row.verdict for row in calibration.rows if row.estimand == "Relative Δ AP(rel=3)"] == [
        "untested"
    ] * 3
    assert calibration.passed


@long
class TestWrongRanker:
    @pytest.mark.parametrize("fault", ["id", "row", "noise", "source"])
    def test_telling_copies_apart_fails_null_and_source_reading_antisymmetry(
        self, fault: str
    ) -> None:
        calibration = calibration_of(pairs(), Unfair(fault=fault), "bm25")
        assert not calibration.passed
        assert {row.ranker for row in calibration.failures} == {f"unfair(fault={fault})"}
        assert ("antisymmetry" in {row.check for row in calibration.failures}) is (
            fault == "source"
        )
        failed = {row.estimand for row in rows(calibration, "null") if row.verdict == "failed"}
        assert failed >= {"Relative Δ nDCG@1", "ΔNDSR", "head-to-head, relevant twins"}
        assert {row.verdict for row in rows(calibration, "known tilt")} == {"ok"}


def test_a_tilt_is_added_to_the_first_side_before_the_cut() -> None:
    collection = toy()
    scores = {
        "q1": {"d1-llm": 4.0, "d2-llm": 3.0, "d1-human": 2.0, "d3-human": 1.0},
        "q2": {"d2-human": 7.0},
    }
    vectors = Vectors(collection, run_of(collection, scores), seed=0)
    unit = np.std([4, 3, 2, 1])
    frame = vectors.tilted(1.0, None).frame()
    expected = {"d1-llm": 4, "d1-human": 2 + unit, "d2-llm": 3, "d3-human": 1 + unit}
    assert dict(frame.select("doc_id", "score").head(4).iter_rows()) == pytest.approx(expected)
    assert frame["score"].to_list()[4] == pytest.approx(7 + unit)
    cut = vectors.tilted(100.0, 2).frame()
    assert cut.filter(pl.col("query_id") == "q1")["doc_id"].to_list() == ["d1-human", "d3-human"]


def counted(check: Any, *comparisons: tuple[bool, float, str]) -> CheckOutcome:
    counter = ComparisonCounter(check, "r")
    for good, value, where in comparisons:
        counter.add("x", good, value, where)
    [row] = counter.rows()
    return row


def test_first_failure_is_shown_and_undefined_does_not_count() -> None:
    row = counted(
        "null", *((value == 0, value, f"at {value}") for value in (0.0, 12.5, -31.25, np.nan))
    )
    assert (row.measured, row.details) == ("1 of 3", "at 12.5")
    assert counted("null", (False, np.nan, "")).verdict == "untested"
    assert counted("null", (True, 0.0, "")).verdict == "ok"


@pytest.mark.parametrize(
    ("moved", "outcome"),
    [
        ({6: -0.5}, ("failed", "9 of 10", "whole ranking: falls from +0 to −0.5 at δ = +0.1 sd")),
        ({}, ("ok", "10 of 10", "")),
        (dict.fromkeys(range(len(module.STEPS)), 0.25), ("untested", "never moved", "")),
    ],
)
def test_a_fall_is_found_and_what_never_moves_shows_nothing(
    moved: dict[int, float], outcome: tuple[str, ...]
) -> None:
    values = np.linspace(-1, 1, len(module.STEPS))
    values[[*moved]] = [*moved.values()]
    counter = ComparisonCounter("known tilt", "r")
    counter.add_rise("x", values, "whole ranking")
    [row] = counter.rows()
    assert (row.verdict, row.measured, row.details) == outcome


def test_verdict_on_the_whole() -> None:
    for verdicts, passed, sentence in (
        ("ok untested", True, "Calibrated: 1 check came out as expected; 1 could not be tested."),
        ("untested", False, "Nothing could be tested: no estimand was ever defined."),
        ("ok failed", False, "Not calibrated: 1 of 2 checks failed (r: null)."),
    ):
        rows = [
            CheckOutcome("null", "r", "x", int(v != "untested"), int(v == "failed"))
            for v in verdicts.split()
        ]
        calibration = Calibration(tuple(rows))
        assert (calibration.passed, calibration.sentence) == (passed, sentence)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"rankers": "bm25"}, "expected rankers; make one first: ranker('bm25')"),
    ({"rankers": []}, "a calibration needs at least one ranker, such as bm25 (-r bm25)"),
    ({"rankers": [ranker("bm25"), ranker("bm25(k1=1.2)")]}, "ranker 'bm25' is given twice"),
    (
        {"rankers": ranker("replay:r.trec")},
        "replay:r.trec cannot be calibrated: a saved run or an engine",
    ),
    ({"depths": [3, 0]}, "expected depths of at least 1, got 0, 3"),
    ({"sample": 1}, "expected a sample of at least 2 pairs, got 1"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_calibrate_refusals(change: dict[str, Any], message: str) -> None:
    arguments = {"collection": toy(), "rankers": ranker("bm25"), **change}
    with pytest.raises(UserError) as error:
        calibrate(arguments.pop("collection"), arguments.pop("rankers"), **arguments)
    assert message in str(error.value)


def sides(copies: Collection) -> list[tuple[str, str]]:
    source, copy = sorted(copies.sources, key=lambda name: name.startswith(COPY))
    return list(copies.pairs(source, copy).select("a", "b").iter_rows())


def large(pairs: int, queries: int, relevant: int = 2) -> Collection:
    """Pairs of which each query has so many relevant ones, from the front."""
    docs = [
        {"id": f"{n}-{source}", "text": f"{source} {n}", "source": source, "origin": f"{n}"}
        for n in range(pairs)
        for source in ("llm", "human")
    ]
    numbers = {f"q{q}": range(q * relevant, (q + 1) * relevant) for q in range(queries)}
    grades = {
        query: {f"{n}-{s}": 1 for n in grade_list for s in ("llm", "human")}
        for query, grade_list in numbers.items()
    }
    return collection_of(docs, dict.fromkeys(grades, "text"), grades)


class TestWithCopies:
    @pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: s.name)
    def test_every_original_has_one_copy_byte_for_byte_with_its_judgments(
        self, scheme: Scheme
    ) -> None:
        copies = with_synthetic_twins(toy(), scheme, seed=0)
        assert set(copies.sources) == {"human", COPY}
        texts = {
            name: (title, text)
            for name, title, text in copies.docs.select("id", "title", "text").iter_rows()
        }
        assert len(texts) == 6
        assert len(sides(copies)) == 3
        assert all(texts[a] == texts[b] for a, b in sides(copies))
        bare = {text: name for name, text in TEXTS["human"].items()}
        source = dict(copies.docs.select("id", "source").iter_rows())
        for side in ("human", COPY):
            grades: dict[str, dict[str, int]] = {}
            for query, doc, grade in copies.qrels.iter_rows():
                if source[doc] == side:
                    grades.setdefault(query, {})[bare[texts[doc][1]]] = grade
            assert grades == QRELS

    def test_ids_and_rows_are_as_the_scheme_says(self) -> None:
        twins = {s.name: with_synthetic_twins(toy(), s, seed=0) for s in SCHEMES}
        assert {name: sides(copies)[0] for name, copies in twins.items() if name != "hashed"} == {
            "suffixes": ("d1-human-human", "d1-human-copy"),
            "misleading suffixes": ("d1-human-copy", "d1-human-human"),
            "originals first": ("a-d1-human", "z-d1-human"),
            "copies first": ("z-d1-human", "a-d1-human"),
            "numbers": ("0", "1"),
        }
        hashed = sides(twins["hashed"])[0]
        assert not {"d1", "human", "copy"} & set("-".join(hashed).split("-"))
        assert [len(name) for name in hashed] == [16, 16]
        assert {
            a < b for a, b in sides(with_synthetic_twins(large(30, 1), SCHEMES[-1], seed=0))
        } == {True, False}
        order = {
            name: twins[name].docs["source"].to_list()
            for name in ("suffixes", "copies first", "originals first")
        }
        assert order == {
            "suffixes": ["human"] * 3 + [COPY] * 3,
            "copies first": [COPY] * 3 + ["human"] * 3,
            "originals first": ["human", COPY] * 3,
        }


class TestSampled:
    @pytest.mark.parametrize(("queries", "relevant"), [(20, 9), (5, 9), (2, 4)])
    def test_sample_keeps_limits_and_three_quarters_relevant(
        self, queries: int, relevant: int
    ) -> None:
        part = sampled(large(100, 20), pairs=12, queries=queries, seed=0)
        assert (part.docs.height, part.docs["origin"].n_unique(), part.queries.height) == (
            24,
            12,
            queries,
        )
        assert set(part.qrels["query_id"]) <= set(part.queries["id"])
        judged = part.docs.filter(pl.col("id").is_in(part.qrels["doc_id"].implode()))
        assert judged["origin"].n_unique() == relevant
        nothing = Collection(toy().docs, toy().queries, toy().qrels.with_columns(grade=pl.lit(0)))
        with refused("no document is judged relevant to any query"):
            sampled(nothing, pairs=9, queries=9, seed=0)

    def test_small_collection_is_kept_under_neutral_ids_human_first(self) -> None:
        part = sampled(toy(), pairs=10, queries=10, seed=0)
        assert part.docs["id"].to_list() == [f"d{n}" for n in range(6)]
        assert part.docs["origin"].to_list() == ["o0", "o1", "o2"] * 2
        assert part.docs["text"].to_list() == toy().docs["text"].to_list()
        renamed = dict(zip(toy().docs["id"], part.docs["id"], strict=True))
        expected = [(q, renamed[d], g) for q, d, g in toy().qrels.iter_rows()]
        assert list(part.qrels.iter_rows()) == expected
        llm = toy().docs.filter(pl.col("source") == "llm")
        more = llm.with_columns(pl.format("x{}", "id").alias("id"), source=pl.lit("a third"))
        qrels = pl.concat(
            [toy().qrels, toy().qrels.with_columns(pl.format("x{}", "doc_id").alias("doc_id"))]
        )
        qrels = qrels.filter(
            pl.col("doc_id").is_in(pl.concat([toy().docs["id"], more["id"]]).implode())
        )
        part = sampled(
            Collection(pl.concat([more, toy().docs]), toy().queries, qrels),
            pairs=9,
            queries=9,
            seed=0,
        )
        assert set(part.sources) == {"human", "a third"}
        assert first_source(part) == "human"

    def test_a_lone_source_stands_beside_itself_without_every_third_word(self) -> None:
        human = toy().docs.filter(pl.col("source") == "human")
        qrels = toy().qrels.filter(pl.col("doc_id").is_in(human["id"].implode()))
        part = sampled(Collection(human, toy().queries, qrels), pairs=9, queries=9, seed=0)
        source, thinned = part.pairs("human", f"human, {THINNED}").select("a", "b").row(0)
        text = dict(part.docs.select("id", "text").iter_rows())
        assert text[source] == "red apples grow on old trees in autumn"
        assert text[thinned] == "red apples on old in autumn"
        grades = {(q, d): g for q, d, g in part.qrels.iter_rows()}
        assert grades["q1", source] == grades["q1", thinned] == 2


def test_swapping_changes_names_and_nothing_else() -> None:
    before, after = toy(), swapped(toy())
    assert after.docs["source"].to_list() == ["llm"] * 3 + ["human"] * 3
    assert after.docs.drop("source").equals(before.docs.drop("source"))
    assert swapped(after) == before
