"""Levelling from end to end, of simulated rankers that favour one side; and queries that nothing is
learned from.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.simulated import Simulated
from ranktilt import (
    Audit,
    Bench,
    Collection,
    MitigationOptions,
    Run,
    UserError,
    audit,
    bundled,
    ranker,
    table,
)
from ranktilt.auditing.grouping import labels as label_groups
from ranktilt.auditing.groups import Groups
from ranktilt.explaining.equivalence import only_group
from ranktilt.measures.base import measure
from ranktilt.mitigation import audited_candidates
from ranktilt.mitigation.audited_candidates import BenchOptions
from ranktilt.mitigation.baseline import with_depth
from ranktilt.mitigation.bench import order_questions
from ranktilt.mitigation.bench_result import RefusedMethod
from ranktilt.mitigation.levelling import CandidateValues, candidate_values, choose_strengths
from ranktilt.mitigation.method import FittedMethod, FittingQueries
from ranktilt.mitigation.mitigate import mitigate
from ranktilt.mitigation.offset import OffsetMethod
from ranktilt.mitigation.query_split import QuerySplit, limit_queries, split_queries
from ranktilt.reporting.sentences.mitigation.mitigate import bench_notes
from tests.mitigation.planted import DIAL, bench_of, collection, planted
from tests.refusals import refused
from tests.toy import collection_of

PAIR = ("human", "llm")


@cache
def simulated(queries: int = 150, tilt: float = 0.5) -> Simulated:
    return Simulated.drawn(np.random.default_rng(3), queries, tilt)


def split(simulation: Simulated) -> QuerySplit:
    names, third = simulation.run.queries, len(simulation.run.queries) // 3
    sides = (names[:third], names[third : 2 * third], names[2 * third :])
    fit, select, test = (simulation.collection.only_queries(side) for side in sides)
    return QuerySplit(fit=fit, select=select, test=test)


def levelled(
    folder: Path, *methods: str, simulation: Simulated | None = None, **options: Any
) -> Bench:
    simulation = simulation or simulated()
    measures = options.pop("measures", ["nDCG@10", "Share@10", "ExposureRatio"])
    limits = {name: options.pop(name) for name in ("margin", "budget") if name in options}
    chosen = MitigationOptions.from_texts(
        methods or ("offset",), **{"strengths": (0.5, 1.0), **options}
    )
    return mitigate(
        split(simulation),
        simulation.run,
        measures,
        folder=folder,
        options=chosen,
        resamples=200,
        **limits,
    )


@pytest.mark.parametrize(
    ("method", "question", "strengths"),
    [
        ("offset", "nDCG@10", (1.0, 1.5)),
        ("interleave", "Share@10", (0.5, 0.9)),
        ("fair-rerank", "Share@10", (0.5, 1.0)),
        ("fair-rerank:exposure", "ExposureRatio@20", (0.5, 0.8)),
    ],
)
def test_a_known_tilt_is_levelled(
    method: str, question: str, strengths: tuple[float, ...], tmp_path: Path
) -> None:
    bench = levelled(tmp_path, method, measures=[question], strengths=strengths)
    before, *steps = (bench.tilt(step.name, PAIR) for step in bench.candidates)
    assert before.low > before.neutral
    nearest = min(steps, key=lambda tilt: abs(tilt.value - tilt.neutral))
    # det-const-sort holds both sides to a least share, rounded down: what is left may favour
    # either.
    assert method == "fair-rerank" or nearest.low <= nearest.neutral <= nearest.high
    assert abs(nearest.value - nearest.neutral) < abs(before.value - before.neutral) / 2


def test_the_chosen_one_is_told_as_it_is_typed(tmp_path: Path) -> None:
    bench = levelled(tmp_path, "offset", "interleave", margin=45, budget=15, measures=["nDCG@10"])
    assert bench.methods == ("offset", "interleave")
    assert [candidate.name for candidate in bench.candidates] == [
        "simulated",
        "offset 0.5",
        "offset 1",
        "interleave 0.5",
        "interleave 1",
    ]
    chosen = bench.choose().chosen
    assert chosen is not None
    assert chosen.name in bench.selected
    text = bench.candidates[2].ranker
    assert text == f"simulated>>offset(fit={tmp_path}/simulated-offset.json)"
    correction = ranker(text.removeprefix("simulated>>"))
    test = split(simulated()).test
    corrected = correction.rank(test, simulated().run)
    assert corrected.spec["fitted_on"]["queries"] == list(split(simulated()).fit.queries["id"])
    assert bench.spec["queries"] == {"fit": 50, "select": 50, "test": 50}
    assert bench.spec["mitigation"]["methods"] == ["offset", "interleave"]
    assert bench.fits.offset is not None
    assert any(note.startswith("offset: Scores match ") for note in bench_notes(bench))


def test_a_collection_is_split_or_a_run_with_labels_and_without_judgments(tmp_path: Path) -> None:
    collection, options = bundled(), MitigationOptions.from_texts(["offset"], strengths=(1.0,))
    bench = mitigate(collection, ranker("bm25"), ["nDCG@10"], options=options, resamples=200)
    assert bench.candidates[1].ranker == "bm25@100>>offset(fit=bm25-100-offset.json)"
    drawn = split_queries(collection)
    assert bench.spec["queries"] == {
        name: len(getattr(drawn, name).queries_with_judgments) for name in ("fit", "select", "test")
    }
    simulation = simulated()
    gender = pl.col("source").replace_strict({"llm": "female", "human": "male"})
    docs = simulation.collection.docs.with_columns(
        gender=gender, source=pl.lit("unknown"), origin=pl.col("id")
    )
    labels = Collection(
        docs,
        simulation.collection.queries,
        simulation.collection.qrels.clear(),
        {"labels": "labels.tsv"},
    )
    simulation = replace(simulation, collection=labels)
    bench = levelled(
        tmp_path, "fair-rerank", "offset", simulation=simulation, measures=None, by="gender"
    )
    assert bench.questions == ("Share@10", "ExposureRatio")
    before, half, full = (
        bench.tilt(step.name, ("female", "male")) for step in bench.candidates[:3]
    )
    assert before.value < half.value < full.value
    assert abs(full.value) < 0.05
    assert bench.candidates[2].ranker == "simulated>>fair-rerank(by=gender,group=female,target=0.0)"
    assert bench.document_sets == ()


@pytest.mark.long
def test_a_target_is_where_fair_re_ranking_ends_and_a_third_group_counts_among_the_others(
    tmp_path: Path,
) -> None:
    bench = levelled(tmp_path, "fair-rerank(target=5.0)", measures=["Share@10"])
    level_there = levelled(tmp_path, "fair-rerank", measures=["Share@10"])
    assert bench.candidates[-1].ranker.endswith("fair-rerank(group=llm,target=5.0)")
    assert bench.tilt("fair-rerank 1", PAIR).value < level_there.tilt("fair-rerank 1", PAIR).value
    three = with_gpt(pl.int_range(pl.len()) % 6 == 1)
    bench = levelled(
        tmp_path,
        "fair-rerank",
        simulation=three,
        measures=["Share@10"],
        strengths=(1e-9, 1.0),
        pair=PAIR,
    )
    today = float(bench.candidates[1].ranker.rpartition("target=")[2].rstrip(")"))
    test = audit(
        three.collection,
        three.run,
        ["Share@10"],
        pairs=[("llm", "rest")],
        resamples=100,
        confounds=False,
    )
    assert today == pytest.approx(100 * test.card[0].value, abs=5)


def values_of(
    dial: Mapping[float, tuple[int, int, int]], mixed: Collection | None = None, **options: Any
) -> tuple[Bench, list[CandidateValues]]:
    """Return a planted bench, and the values that strengths are chosen by."""
    mixed = mixed or collection()
    candidates = [planted(strength, counts) for strength, counts in dial.items()]
    measures = options.pop("measures", ["nDCG@1"])
    bench = bench_of(mixed, candidates, measures, **options)
    options_of_bench = BenchOptions(
        effectiveness=measure("nDCG@10"),
        budget=1,
        reference="human",
        by="source",
        pairs=(PAIR,),
        ties="expected",
        test="interval",
        correction="holm",
        margin=10,
        resamples=200,
        seed=0,
    )
    values = candidate_values(
        mixed,
        {candidate.candidate: candidate.mixed for candidate in candidates},
        order_questions(measures, options.get("primary"), "source")[0],
        reference=only_group(mixed),
        reference_runs={
            candidate.candidate: candidate.alone for candidate in candidates if candidate.alone
        },
        options=options_of_bench,
    )
    return bench, values


RISING = {0: (60, 0, 0), 1: (30, 0, 0), 2: (1, 0, 0), 3: (0, 0, 0), 4: (0, 30, 0)}


@pytest.mark.parametrize("question", ["nDCG@1", "Share@1", "HeadToHead", "ExposureRatio"])
def test_values_are_those_of_a_bench(question: str) -> None:
    bench, values = values_of(DIAL, measures=[question, "nDCG@1"], primary=question)
    for value in values:
        name = value.candidate.name
        assert value.distance == pytest.approx(bench.distance(name), rel=0.02, abs=0.3)
        assert value.loss == pytest.approx(max(bench.loss(name), 0))


def test_values_of_groups_without_twins_are_those_of_a_bench() -> None:
    twins = collection()
    alone = Collection(twins.docs.with_columns(origin=pl.col("id")), twins.queries, twins.qrels)
    bench, values = values_of(DIAL, mixed=alone)
    assert not bench.tilts[0].twins
    for value in values:
        assert value.distance == pytest.approx(bench.distance(value.candidate.name))


def test_strengths_are_chosen_by_values_alone() -> None:
    _, values = values_of(RISING)
    # Within half of the margin, and smaller than the one that is level.
    assert choose_strengths(values[1:], margin=10, budget=1) == ("α = 2",)
    _, values = values_of({0: (60, 0, 0), 1: (30, 0, 0), 2: (0, 0, 24)})
    assert choose_strengths(values[1:], margin=10, budget=1) == ("α = 1",)  # the other is dear
    _, values = values_of({0: (60, 0, 0), 1: (0, 0, 24)})
    assert choose_strengths(values[1:], margin=5, budget=1) == ("α = 1",)


def test_an_open_depth_gets_one() -> None:
    for text, deep in (
        ("bm25@50", "bm25@50"),
        ("bm25@200>>dense:minilm", "bm25@200>>dense:minilm@100"),
        ("replay:my.trec", "replay:my.trec@100"),
    ):
        assert repr(with_depth(ranker(text), 100)) == deep


def test_level_baseline_stops_before_anything_is_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    level = simulated(tilt=0.0)
    fitted: list[str] = []
    fit = OffsetMethod.fit

    def counted_fit(method: OffsetMethod, queries: FittingQueries) -> FittedMethod:
        fitted.append(method.label)
        return fit(method, queries)

    monkeypatch.setattr(OffsetMethod, "fit", counted_fit)
    bench = levelled(tmp_path, simulation=level, measures=["nDCG@10"])
    assert fitted == []
    assert [candidate.name for candidate in bench.candidates] == ["simulated"]
    choice = bench.choose()
    assert (choice.is_tilted, choice.chosen, choice.outcome) == (False, None, "inconclusive")
    assert bench.baseline_effects == (bench.tilt("simulated", PAIR),)
    assert bench.baseline_effects[0].queries == 50
    text = table(bench)
    assert "Not mitigated: simulated is inconclusive: " in text or "could have missed" in text
    assert "cost" not in text
    assert Bench.load(bench.save(tmp_path / "bench.json")) == bench
    assert not list(tmp_path.glob("*offset*"))
    tried = levelled(tmp_path, simulation=level, measures=["nDCG@10"], always=True)
    assert fitted == ["offset"]
    assert len(tried.candidates) == 3
    assert tried.choose().chosen is None
    assert tried.baseline_effects == bench.baseline_effects


def test_mitigation_takes_three_audits_and_groups_documents_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    audits: list[tuple[str, ...]] = []
    conclude = audited_candidates.conclude

    def counted_conclude(*steps: Any) -> Audit:
        concluded = conclude(*steps)
        audits.append(concluded.runs)
        return concluded

    monkeypatch.setattr(audited_candidates, "conclude", counted_conclude)
    grouped: list[object] = []
    make_groups = label_groups._make_groups

    def counted_groups(collection: Collection, *options: Any, **more: Any) -> Groups:
        grouped.append((id(collection.docs), *map(str, options), more["fewest"]))
        return make_groups(collection, *options, **more)

    monkeypatch.setattr(label_groups, "_make_groups", counted_groups)
    collection = bundled()
    mitigate(collection, ranker("bm25"), ["nDCG@10"], resamples=200)
    # The baseline over all queries, all candidates on the test queries, and the same on human
    # documents alone.
    assert [len(runs) for runs in audits] == [1, 16, 16]
    assert len(grouped) == len(set(grouped))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"methods": ("magic",)},
            "unknown method 'magic' (valid: causal, projection, fair-rerank, interleave, offset",
        ),
        (
            {"methods": ("fair-rerank:best",)},
            "unknown method of fair-rerank 'best' (valid: det-const-sort, fa-ir, exp",
        ),
        ({"methods": ("offset", "offset")}, "expected distinct methods; got offset, offset"),
        ({"strengths": (0.5, 0.0)}, "expected strengths above 0 and at most 2, got 0.5, 0"),
        (
            {"methods": ("interleave", "causal"), "strengths": (0.5, 1.5)},
            "interleave has strengths up to 1, got 1.5; ",
        ),
        (
            {"methods": ("projection",), "by": "gender"},
            "projection learns from twins, which differ in source; ",
        ),
        (
            {"methods": ("fair-rerank(target=200)",)},
            "fair-rerank: expected a target from -100 to 100 points, got 200",
        ),
        (
            {"methods": ("fair-rerank(target=1)", "fair-rerank(target=2)")},
            "expected distinct methods; got fair-rerank, fair-rerank",
        ),
        ({"methods": ("offset(target=1)",)}, "unknown option of offset 'target'"),
        ({"methods": ("offset@5",)}, "expected one method, such as offset; got 'offset@5'"),
        ({"depth": 0}, "expected a depth of at least 1, got 0"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match="^" + re.escape(message)):
        MitigationOptions.from_texts(**{"methods": ("offset",), **options})


def with_gpt(which: pl.Expr) -> Simulated:
    """The simulation with a third source."""
    simulation = simulated()
    docs = simulation.collection.docs.with_columns(
        source=pl.when(which).then(pl.lit("gpt")).otherwise("source")
    )
    return replace(
        simulation,
        collection=Collection(docs, simulation.collection.queries, simulation.collection.qrels),
    )


def test_more_than_two_groups_are_not_guessed_among_and_a_run_lacks_no_side(tmp_path: Path) -> None:
    three = with_gpt(pl.col("id") == "3-llm")
    with refused("source makes 3 groups (human, gpt, llm); name the two to level: --pair A,B"):
        levelled(tmp_path, "offset", simulation=three)
    with refused(
        "a correction works on single groups, and 'rest' is not one; name two to level: --pair A,B"
    ):
        levelled(tmp_path, "offset", simulation=three, pair=("human", "rest"))
    bench = levelled(
        tmp_path, "offset", simulation=three, pair=("human", "llm"), measures=["nDCG@10"]
    )
    assert bench.pairs == (("human", "llm"),)
    sides = split(simulated())
    short = Run.from_frame(
        simulated().run.frame().filter(pl.col("query_id") == "q0"), spec={"ranker": "short"}
    )
    with refused("short has none of the 50 queries to fit, select or test on"):
        mitigate(sides, short, ["nDCG@10"], folder=tmp_path)


def test_a_method_that_is_refused_leaves_the_others_also_one_without_scores_or_vectors(
    tmp_path: Path,
) -> None:
    bench = levelled(tmp_path, "causal", "offset", "projection", measures=["nDCG@10"])
    assert (bench.methods, bench.selected) == (
        ("offset",),
        levelled(tmp_path, measures=["nDCG@10"]).selected,
    )
    reason = "needs the ranker itself, and simulated is a saved run; leave it out"
    assert bench.refused == tuple(
        RefusedMethod(method=name, reason=f"{name} {reason}") for name in ("causal", "projection")
    )
    assert Bench.load(bench.save(tmp_path / "level.json")) == bench
    assert f"| causal | causal (causal {reason}) |  |  |  | refused |  |" in table(
        bench, "markdown"
    )
    with refused(f"causal {reason}"):
        levelled(tmp_path, "causal", "projection")
    order = replace(
        simulated(), run=replace(simulated().run, spec={"ranker": "by rank", "score_order": "rank"})
    )
    bench = levelled(
        tmp_path,
        "offset",
        "interleave",
        "fair-rerank",
        simulation=order,
        measures=["Share@10"],
        strengths=(1.0,),
    )
    assert bench.methods == ("interleave", "fair-rerank")
    assert bench.refused == (
        RefusedMethod(
            method="offset",
            reason="an offset is fitted to scores, and by rank gives only an order",
        ),
    )
    sides = split(simulated())
    fit, select, test = (
        Collection(
            side.docs.with_columns(text=pl.col("id")),
            side.queries.with_columns(text=pl.lit("3")),
            side.qrels,
        )
        for side in (sides.fit, sides.select, sides.test)
    )
    with refused(
        "projection removes a direction from vectors, and bm25@100 has none; use it with dense "
        "rankers"
    ):
        mitigate(
            QuerySplit(fit=fit, select=select, test=test),
            ranker("bm25"),
            folder=tmp_path,
            options=MitigationOptions.from_texts(["projection"], always=True),
        )


def judged(relevant: dict[str, list[str]]) -> Collection:
    """Twins of ten origins, and queries with relevant documents."""
    docs = [
        {"id": f"{origin}-{source}", "text": origin, "source": source, "origin": f"{origin}-human"}
        for origin in "abcdefghij"
        for source in ("human", "llm")
    ]
    return collection_of(
        docs,
        {q: q for q in relevant},
        {q: dict.fromkeys(documents, 1) for q, documents in relevant.items()},
    )


def queries(split: QuerySplit) -> list[list[str]]:
    return [
        side.queries_with_judgments["id"].to_list()
        for side in (split.fit, split.select, split.test)
    ]


@settings(max_examples=25, deadline=None)
@given(
    st.dictionaries(
        st.text("pqrstuvwxyz", min_size=1, max_size=3),
        st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=3, unique=True),
        min_size=6,
        max_size=20,
    ),
    st.integers(0, 5),
)
def test_no_query_and_no_origin_that_is_learned_from_is_tested_on(
    relevant: dict[str, list[str]], seed: int
) -> None:
    collection = judged(
        {q: [f"{origin}-llm" for origin in origins] for q, origins in relevant.items()}
    )
    try:
        split = split_queries(collection, seed=seed)
    except UserError as error:
        message = str(error)
        # Either way is right here.
        assert message.startswith("no query is left to fit on")
        return
    fit, select, test = map(set, queries(split))
    assert len(fit | select | test) == len(fit) + len(select) + len(test)
    assert select | test | fit <= set(relevant)
    sides = (split.fit, split.select, split.test)
    learned, *others = (
        {doc[0] for doc in side.qrels["doc_id"]} for side in sides
    )  # origins, by their letter
    assert not learned & set().union(*others)
    assert split.fit.qrels.filter(pl.col("grade") > 0)["query_id"].n_unique() == len(fit)


def test_queries_of_one_origin_stay_together_and_where_one_ties_all_the_fit_loses_it() -> None:
    halves = (("a", "human"), ("b", "llm"))
    relevant = {
        f"q{n}{half}": [f"{'abcdefghij'[n]}-{source}"] for n in range(10) for half, source in halves
    }
    split = split_queries(judged(relevant), seed=3)
    sides = queries(split)
    assert sorted(map(len, sides)) == [4, 8, 8]
    assert all(
        f"q{n}a" in side and f"q{n}b" in side for side in sides for n in {name[1] for name in side}
    )
    assert split.left_out.judgments == 0
    assert queries(split_queries(judged(relevant), seed=3)) == sides
    assert queries(split_queries(judged(relevant), seed=4)) != sides
    letters = "abcdefghi"
    relevant = {f"q{n}": ["j-llm", f"{letters[n]}-llm"] for n in range(9)}
    split = split_queries(judged(relevant))
    fit, select, test = queries(split)
    assert (len(fit), len(select), len(test)) == (4, 2, 3)
    assert split.fit.qrels["doc_id"].to_list() == [f"{letters[int(name[1:])]}-llm" for name in fit]
    assert split.test.qrels.height == 6
    assert (split.left_out.judgments, split.left_out.judgments_before) == (4, 8)
    relevant = {f"q{n}": [f"{'ab'[n % 2]}-llm", f"{'cdefghij'[n % 8]}-llm"] for n in range(10)}
    assert all(queries(split_queries(judged(relevant))))


def test_queries_are_drawn_by_a_seed_own_splits_kept_apart_and_what_cannot_be_split_refused() -> (
    None
):
    with refused("a bench needs queries to fit, select and test on; the collection has 2 to rank"):
        split_queries(judged({name: ["a-llm"] for name in ("q0", "q1")}))
    one_origin = judged({f"q{n}": ["a-llm"] for n in range(4)})
    with pytest.raises(
        UserError,
        match=r"^no query is left to fit on: every document relevant to one",
    ):
        split_queries(one_origin)
    for shares, text in (((), "none"), ((0.5, 0.5, 0.0), "0.5, 0.5, 0.0")):
        with refused(f"expected three shares between 0 and 1, got {text}"):
            split_queries(one_origin, shares)
    collection = judged({f"q{n}": [] for n in range(10)})
    split = split_queries(collection)
    assert [len(side) for side in queries(split)] == [4, 2, 4]
    assert sorted(name for side in queries(split) for name in side) == [f"q{n}" for n in range(10)]
    collection = judged({f"q{n}": ["a-llm"] for n in range(9)})
    assert limit_queries(collection, 9) is collection
    few = limit_queries(collection, 3, seed=1).queries_with_judgments["id"].to_list()
    assert len(few) == 3
    assert limit_queries(collection, 3, seed=1).queries_with_judgments["id"].to_list() == few
    collection = judged(
        {"q0": ["a-llm"], "q1": ["b-llm", "c-llm"], "q2": ["b-human"], "q3": ["d-llm"]}
    )
    sides = [collection.only_queries(names) for names in (["q0", "q1"], ["q3"], ["q2", "q3"])]
    split = QuerySplit.from_sides(*sides)
    assert queries(split) == [["q0", "q1"], [], ["q2", "q3"]]
    assert split.fit.qrels["doc_id"].to_list() == ["a-llm", "c-llm"]
