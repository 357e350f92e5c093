"""What an audit leaves out, and says beside its numbers: unknown documents, failed queries, few of
them, noise.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import Audit, Collection, Run, audit, controls, ranker, table
from ranktilt.auditing.notes import noise_notes
from ranktilt.auditing.numerical_noise import NumericalNoise, precision
from ranktilt.auditing.storage.provenance import files_of_runs
from ranktilt.data.labels.labels import from_labels
from ranktilt.rankers.candidates import reranked_spec
from ranktilt.rankers.rerank.cross_encoder import sigmoid
from ranktilt.reporting.sentences.controls import control_change
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.notes.base import few_names
from tests.auditing.arrays import tilt
from tests.refusals import refused
from tests.reporting.audits import ordered, twins
from tests.toy import collection_of, run_of, toy

BOTH = ("human", "llm")


def labelled(
    rows: dict[str, list[str | None]], judged: list[tuple[str, str]], queries: int = 1
) -> Collection:
    """A collection of labels alone; each judgment is relevant."""
    qrels = pl.DataFrame(judged, schema={"query_id": pl.String, "doc_id": pl.String}, orient="row")
    return from_labels(
        pl.DataFrame(rows),
        queries=[f"q{n}" for n in range(queries)],
        qrels=qrels.with_columns(grade=pl.lit(1, pl.Int32)) if judged else None,
        labels_file="labels.tsv",
    )


def notes(
    collection: Collection, scores: dict[str, dict[str, float]], *, card: bool = False
) -> tuple[str, ...]:
    measures = "RR" if collection.qrels.height else None
    run = run_of(collection, scores, ranker="r")
    result = audit(collection, run, measures, card=card, resamples=200)
    return note_sentences(result.notes)


PAIR: dict[str, list[str | None]] = {"doc_id": ["a-h", "a-l"], "source": ["human", "llm"]}
SCORES = {"q0": {"a-h": 2.0, "a-l": 1.0}}


def test_fractions_of_other_queries_need_no_note() -> None:
    collection = toy()
    half = pl.when(pl.col("query_id") == "q1").then(0.5).otherwise(pl.col("grade"))
    halved = Collection(
        collection.docs, collection.queries, collection.qrels.with_columns(grade=half)
    )
    sentences = {}
    for query in ("q1", "q2"):
        alone = halved.only_queries([query])
        result = audit(alone, ranker("bm25").rank(alone), "nDCG@1", resamples=200)
        sentences[query] = " ".join(note_sentences(result.notes))
    assert "(first: 0.5)" in sentences["q1"]
    assert "(first: 0.5)" not in sentences["q2"]


def test_unlabelled_judgments_and_bare_ids() -> None:
    sentences = notes(labelled(PAIR, [("q0", doc) for doc in ("a-h", "a-l", "x", "y")]), SCORES)
    assert (
        "2 judgments for documents without a label count only in the row 'all', in no group"
        in sentences
    )
    assert not any("versions of one text" in note for note in sentences)
    rows: dict[str, list[str | None]] = {
        "doc_id": ["b-h", "a-h", "a-l"],
        "source": ["human", "human", "llm"],
    }
    with refused(
        "nothing to compare: no document of source 'human' is judged relevant; 2 relevant "
        "documents have no known source (first: 'a'; known ids look like 'b-h'): use these ids in "
        "the judgments"
    ):
        notes(labelled(rows, [("q0", "a"), ("q0", "b")]), SCORES)


def halves(count: int, lone: int, unlabelled: int = 0) -> Collection:
    """Judged pairs, a query each, of which some lack their second side."""
    rows = [
        (f"{n}-{s}", s, f"{n}-human")
        for n in range(count)
        for s in BOTH
        if s == "human" or n >= lone
    ]
    rows += [(f"u{n}", None, f"u{n}") for n in range(unlabelled)]
    names, sources, origins = zip(*rows, strict=True)
    judged = [(f"q{name.partition('-')[0]}", name) for name, source, _ in rows if source]
    table: dict[str, list[str | None]] = {
        "doc_id": [*names],
        "source": [*sources],
        "origin": [*origins],
    }
    return labelled(table, judged, count)


@pytest.mark.parametrize(
    ("lone", "unlabelled", "reason"),
    [
        (2, 0, "2 of 18 relevance judgments are for documents without a twin"),
        (
            1,
            3,
            (
                "1 of 19 relevance judgments is for a document without a twin on the other side (3 "
                "documents have no "
            ),
        ),
        (0, 0, ""),  # all are twins
        (8, 0, ""),  # most are none
    ],
)
def test_few_documents_without_twin_explain_the_band(
    lone: int, unlabelled: int, reason: str
) -> None:
    sentences = notes(halves(10, lone, unlabelled), {"q9": {"9-human": 1.0}})
    why = [note for note in sentences if "are not twins" in note]
    assert [note.startswith(f"human and llm are not twins: {reason}") for note in why] == [
        True
    ] * bool(reason)


def test_a_card_without_twins_says_what_they_need() -> None:
    need = "three more questions compare versions of one text. To ask them, "
    column = "name the column that links versions: labels.tsv:…,origin=COLUMN"
    assert f"{need}{column}" in notes(labelled(PAIR, []), SCORES, card=True)
    docs = toy().docs.with_columns(origin=pl.col("id"))
    sentences = notes(
        Collection(docs, toy().queries, toy().qrels), {"q1": {"d1-llm": 1.0}}, card=True
    )
    assert f"{need}give the same origin to documents of two sources" in sentences
    assert not any(
        note.startswith(need) for note in notes(toy(), {"q1": {"d1-llm": 1.0}}, card=True)
    )


@pytest.mark.parametrize(("queries", "is_warned"), [(29, True), (30, False)])
def test_few_queries_without_judgments_are_warned_of(queries: int, is_warned: bool) -> None:
    lists = {f"q{number}": {"a-h": 2.0, "a-l": 1.0} for number in range(queries)}
    warning = (
        f"only {queries} queries compare human and llm; intervals from fewer than 30 are too "
        "narrow to rely on"
    )
    texts = notes(labelled(PAIR, [], queries), lists)
    assert any(text.endswith(warning) for text in texts) == is_warned


@pytest.mark.parametrize(
    ("queries", "answered"), [(40, 1), (40, 29), (30, 29), (40, 30), (40, 0), (20, 5)]
)
def test_few_queries_that_find_anything_are_warned_of(queries: int, answered: int) -> None:
    collection = twins(queries)
    run = ordered(
        collection, [(BOTH[n % 2],) for n in range(answered)] + [()] * (queries - answered), "r"
    )
    result = audit(collection, run, ["nDCG@1", "RR"], resamples=200)
    few = [note for note in note_sentences(result.notes) if "few of" in note]
    assert len(few) == (answered in (1, 29))
    assert all(
        f"on nDCG@1 ({answered}), RR ({answered}); intervals from fewer than 30 such" in note
        for note in few
    )
    assert any("only 20 queries compare" in note for note in note_sentences(result.notes)) == (
        queries == 20
    )


def test_judgments_of_one_side_name_a_way_on() -> None:
    start = "nothing to compare: no document of source 'llm' is judged relevant; to ask whose "
    start += "documents stand on top, omit --qrels"
    with refused(start):
        notes(labelled(PAIR, [("q0", "a-h")]), SCORES)
    twin = {**PAIR, "origin": ["a", "a"]}
    with refused(
        f"{start}; to compare by relevance, judge the versions too: repeat each judgment for the "
        "documents of the same origin"
    ):
        notes(labelled(twin, [("q0", "a-h")]), SCORES)
    twins_alone = twins(1)
    human = twins_alone.qrels.filter(pl.col("doc_id").str.ends_with("human"))
    collection = Collection(twins_alone.docs, twins_alone.queries, human)
    with refused(f"{start.replace('omit --qrels', 'add --qrels none')}…"):
        notes(collection, {"q0": {"0-human": 1.0}})


QUERIES = {"q1": "red", "q2": "blue", "q3": "green", "q4": "grey"}


def four() -> Collection:
    docs = [
        {"id": f"{colour}-{side}", "text": f"{colour} {side}", "source": side, "origin": colour}
        for colour in QUERIES.values()
        for side in BOTH
    ]
    return collection_of(
        docs, QUERIES, {q: {f"{c}-{side}": 1 for side in BOTH} for q, c in QUERIES.items()}
    )


def answered(*queries: str, **spec: object) -> Run:
    """The human side first in each query that is answered."""
    scores = {q: {f"{QUERIES[q]}-human": 2.0, f"{QUERIES[q]}-llm": 1.0} for q in queries}
    return run_of(four(), scores, ranker="engine:m:f", **spec)


THREE = ("q1", "q2", "q3")


class TestFailed:
    """Queries that an engine failed to answer count nowhere; queries that a run merely lacks count
    as 0.
    """

    @pytest.mark.parametrize(
        ("spec", "means"),
        [
            ({}, [0.75, 0.75, 0.375]),
            ({"failed": {"q4": "timed out"}}, [1.0, 1.0, 0.5]),
            *[
                ({"failed": wrong}, [0.75, 0.75, 0.375])
                for wrong in (3, None, [["q4"]], {"q9": "unknown"})
            ],
        ],
    )
    def test_a_failed_query_is_not_counted_as_zero(
        self, spec: dict[str, Any], means: list[float]
    ) -> None:
        result = audit(four(), answered(*THREE, **spec), "RR@10", resamples=100, card=True)
        assert result.by_group()["mean"].to_list() == means
        failed = means[0] == 1
        assert np.isnan(result.values[0, 0, 0]).tolist() == [False, False, False, failed]
        assert (result.tilts[0].queries, result.tilts[0].excluded) == (4 - failed, int(failed))
        (gap,) = (e for e in result.card if e.name == "pair rank gap")
        assert gap.details["pairs"] == 4 - failed

    def test_what_failed_and_what_is_lacking_are_told_apart(self) -> None:
        run = answered("q1", "q2", failed={"q4": "timed out"})
        with_zeros, without = (
            audit(four(), run, "RR@10", resamples=100, missing=rule) for rule in ("zero", "exclude")
        )
        assert note_sentences(with_zeros.notes)[:2] == (
            "engine:m:f: 1 judged query not in the run, counted as 0",
            "engine:m:f: the engine failed on 1 judged query, not counted",
        )
        assert [result.by_group()["mean"][1] for result in (with_zeros, without)] == pytest.approx(
            [2 / 3, 1]
        )
        assert reranked_spec(run, "any")["failed"] == {"q4": "timed out"}

    def test_the_controls_cannot_change_an_engines_documents(self) -> None:
        run = answered(*QUERIES)
        raw = audit(four(), run, "RR@10", resamples=100)
        result = controls(four(), [ranker("engine:m:f")], [run], raw, which=["length", "titles"])
        assert [control_change(row.control_change) for row in result.controls[1:]] == [
            "the engine's documents cannot be changed"
        ] * 2


def of_fit(name: str, **spec: Any) -> Run:
    """A run of the toy, of which a stage was fitted on some queries."""
    scores = {
        q: {f"{d}-{s}": 3.0 - n for n, d in enumerate(("d1", "d2", "d3")) for s in BOTH}
        for q in THREE
    }
    return run_of(toy(), scores, ranker=name, **spec)


class TestFittedQueries:
    """Queries that a correction learned from are left out of every audit of it."""

    def test_they_are_left_out_for_all_runs(self) -> None:
        runs = [
            of_fit("plain"),
            of_fit("corrected", fitted_on={"file": "offset.json", "queries": ["q1", "q9"]}),
        ]
        result = audit(toy(), runs, ["nDCG@3"], resamples=100)
        assert result.queries == ("q2", "q3")
        assert (
            "1 query left out for all runs, because offset.json learned from it"
            in note_sentences(result.notes)
        )
        alone = audit(toy().only_queries(["q2", "q3"]), runs[0], ["nDCG@3"], resamples=100)
        assert (result.values[0] == alone.values[0]).all()

    def test_fit_of_earlier_stage_and_on_all_queries(
        self,
    ) -> None:
        inner = {"ranker": "inner", "fitted_on": {"file": "causal.json", "queries": ["q3"]}}
        assert audit(
            toy(), of_fit("outer", candidates=inner), ["nDCG@3"], resamples=100
        ).queries == ("q1", "q2")
        result = audit(
            toy(),
            of_fit("p", fitted_on={"file": "f.json", "queries": ["q9"]}),
            ["nDCG@3"],
            resamples=100,
        )
        assert result.queries == THREE
        assert not any("left out" in note for note in note_sentences(result.notes))
        fitted = {"file": "f.json", "queries": list(THREE)}
        with refused(
            "nothing left to test on: f.json learned from all 3 queries; audit other queries, "
            "such as a test split"
        ):
            audit(toy(), of_fit("plain", fitted_on=fitted), ["nDCG@3"], resamples=100)


def test_files_of_candidates_are_files_of_runs() -> None:
    specs = [
        {"file": "a"},
        {"candidates": {"ranker": "x", "candidates": {"file": "b"}}},
        {"file": "a"},
        {},
        None,
    ]
    assert files_of_runs(specs) == ["a", "b"]


UNIT = 2.0**-24
"""Largest relative error of rounding to float32."""


def ranked(human: float, llm: float, *others: float, **spec: str) -> Run:
    """One query, for which the twins and some documents without judgments got these scores."""
    ids = ["0-human", "0-llm", *(f"x{number}" for number in range(len(others)))]
    frame = pl.DataFrame({"query_id": "q0", "doc_id": ids, "score": [human, llm, *others]})
    return Run.from_frame(frame, spec={"ranker": "mine", **spec})


def noise_of(run: Run, measures: str | Sequence[str] = "nDCG@1") -> list[tuple[str, float]]:
    result: Audit = audit(twins(1), run, measures, resamples=100)
    return [(noise.resolution, noise.points) for noise in result.noise]


@pytest.mark.parametrize(
    ("precision", "gap", "points"),
    [
        ("float32", 0.5 * UNIT, 400),  # from +200 to −200, in more than 5 % of the draws
        ("float32", 2 * UNIT, 0),
        ("float32", 0, 0),  # equal scores stay equal
        ("bfloat16", 0.5 * 2**-8, 400),
        ("bfloat16", 2 * 2**-8, 0),
        ("float16", 2 * 2**-11, 0),
    ],
)
def test_scores_move_within_the_rounding_of_what_computed_them(
    precision: str, gap: float, points: float
) -> None:
    run = ranked(1.0, 1 - gap, -0.5, precision=precision)
    assert noise_of(run) == [(precision, pytest.approx(points))]


def test_largest_score_sets_scale_and_logits_move_probabilities() -> None:
    near = (0.25, 0.25 - 0.5 * UNIT)
    assert noise_of(ranked(*near, precision="float32"), "nDCG@3") == [("float32", 0)]
    delta = 200 * (1 - 1 / 1.5849625007211562) / (1 + 1 / 1.5849625007211562)  # ranks 1 and 2
    assert noise_of(ranked(*near, -1.0, precision="float32"), "nDCG@3") == [
        ("float32", pytest.approx(2 * delta))
    ]
    between = [1 - 2.0**-30 * number for number in range(1, 4)]
    assert noise_of(ranked(1.0, 1 - 2.0**-28, *between, precision="float32")) == [
        ("float32", pytest.approx(400))
    ]
    assert noise_of(ranked(1.0, 0.5, *between, precision="float32")) == [("float32", 0)]
    human, llm = sigmoid(np.array([10.001, 10.0]))
    assert human - llm < UNIT
    assert noise_of(ranked(human, llm, precision="float32", activation="Sigmoid")) == [
        ("float32", 0)
    ]
    assert noise_of(ranked(human, llm, precision="float32")) == [("float32", pytest.approx(400))]


def test_each_list_is_cut_by_its_own_scores() -> None:
    """Above rank 1 of the second query both twins may come, however high the scores of the
    first.
    """
    ids, scores = ["0-human", "0-llm", "1-human", "1-llm"], [100.0, 50.0, 1.0, 1 - UNIT / 2]
    frame = pl.DataFrame({"query_id": ["q0", "q0", "q1", "q1"], "doc_id": ids, "score": scores})
    run = Run.from_frame(frame, spec={"ranker": "mine", "precision": "float32"})
    (noise,) = audit(twins(2), run, "nDCG@1", resamples=100).noise
    assert noise.points == pytest.approx(200)  # from +200 to 0


def test_exact_scores_have_no_noise_and_printed_digits_hide_order() -> None:
    assert noise_of(ranked(2, 1, precision="float32")) == []
    assert noise_of(ranked(0.5, 0.5 - UNIT / 4, precision="exact")) == []
    assert noise_of(ranked(1 / 3, 1 / 3 - 1e-17)) == []  # float64
    assert noise_of(ranked(1.0, 1 - UNIT)) == [("float32", pytest.approx(400))]  # all fit into that
    assert noise_of(ranked(0.31, 0.30)) == [("2 decimals", 0)]
    assert noise_of(ranked(0.3, 0.3)) == [
        ("1 decimal", pytest.approx(200))
    ]  # level, or one side alone at rank 1


def test_local_language_model_names_precision() -> None:
    assert (
        precision({"ranker": "listwise", "llm": {"model": "m", "precision": "bfloat16"}})
        == "bfloat16"
    )
    assert [precision(spec) for spec in ({}, {"llm": "gpt"}, {"llm": {"model": "gpt"}})] == [
        None
    ] * 3
    result = audit(twins(1), ranked(2, 1, precision="float16"), "nDCG@1", resamples=100)
    assert "Computed: mine in float16." in table(result)


def test_a_verdict_that_hangs_on_it_is_named() -> None:
    effect = tilt(1.0, 11.0, p=0.01, measure="nDCG@1", run="mine")
    noise = NumericalNoise(run="mine", a="human", b="llm", resolution="bfloat16", points=1.5)
    level = replace(effect, value=0.0, low=-4.0, high=4.0, p_corrected=0.9)
    for effect_or_tilt in (effect, level):
        (warning,) = note_sentences(noise_notes([noise], [effect_or_tilt], 5.0))
        assert warning.startswith(
            "warning: mine: the verdict on human and llm depends on numerical noise; "
        )
        assert "bfloat16, and so Relative Δ on nDCG@1 to ±1.5 points" in warning
        assert list(noise_notes([replace(noise, points=0.5)], [effect_or_tilt], 5.0)) == []
    wide = replace(
        level, low=-5.8, high=5.8
    )  # neither level nor a side's, and moved by 1.5 not either
    assert list(noise_notes([noise], [wide], 5.0)) == []


def test_few_names_counts_no_single_other() -> None:
    names = ["a", "b", "c", "d", "e", "f"]
    assert few_names(names[:5]) == "a, b, c, d and e"
    assert few_names(names) == "a, b, c, d and 2 others"
