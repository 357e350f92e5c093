"""Several sources: side by side, one family of tests, the same documents for all; and trends over
temperature.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ranktilt import Collection, UserError, gate
from ranktilt.auditing.comparison.changes import Columns
from ranktilt.auditing.sources.source_audits import SourceAudits, audit_sources
from ranktilt.auditing.sources.sources_apart import again_apart, take_apart
from ranktilt.auditing.sources.temperature_trend import Trend, TrendTask, trend
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.source_audits import trend_sentence, trend_sentences
from ranktilt.statistics.correction import correct
from ranktilt.statistics.trend import rank_correlation
from tests.auditing.arrays import QUERIES, TEMPERATURES, Decided, decided, studied
from tests.reporting.audits import timeless_source_audits, toy_source_audits

QUICK: dict[str, Any] = {"resamples": 300}


def source_audits(
    collection: Collection | None = None, measures: Any = "nDCG@1", **options: Any
) -> SourceAudits:
    return audit_sources(
        studied() if collection is None else collection,
        [decided()],
        measures,
        **{**QUICK, **options},
    )


def test_relative_delta_by_hand_in_the_order_of_temperature() -> None:
    Decided.seen.clear()
    audits = source_audits()
    assert Decided.seen == [
        ("human", "llm-tmp0.2"),
        ("human", "llm-tmp0.7"),
        ("human", "llm-tmp1.0"),
    ]
    assert [(source.source, source.temperature) for source in audits.sources] == [
        ("llm-tmp0.2", 0.2),
        ("llm-tmp0.7", 0.7),
        ("llm-tmp1.0", 1.0),
    ]
    assert [t.value for t in audits.tilts] == pytest.approx([-100, 0, 100])
    assert [(t.mean_a, t.mean_b) for t in audits.tilts] == [(0.25, 0.75), (0.5, 0.5), (0.75, 0.25)]
    assert [(t.a, t.b) for t in audits.tilts] == [
        ("human", source.source) for source in audits.sources
    ]
    assert [t.queries for t in audits.tilts] == [QUERIES] * 3
    verdicts = [audits.verdict(audits.runs[0], source.source) for source in audits.sources]
    sides = [("favours", "llm-tmp0.2"), ("inconclusive", None), ("favours", "human")]
    assert [(verdict.kind, verdict.side) for verdict in verdicts] == sides
    (trend,) = audits.trends
    assert (trend.series, trend.a, trend.queries, trend.temperatures) == (
        "llm",
        "human",
        QUERIES,
        (0.2, 0.7, 1.0),
    )
    assert trend.values == pytest.approx((-100, 0, 100))
    assert (trend.correlation, trend.change, trend.kind) == (1.0, pytest.approx(200), "rises")


def test_p_is_corrected_over_rankers_sources_and_measures() -> None:
    rankers = [decided(), decided({"llm-tmp0.2": 13, "llm-tmp0.7": 24, "llm-tmp1.0": 27})]
    audits = audit_sources(studied(), rankers, ["nDCG@1", "nDCG@3"], **QUICK)
    ps = [t.p for t in audits.tilts]
    assert len(ps) == audits.spec["family_size"] == 2 * 3 * 2
    assert audits.primary == "nDCG@3"
    for name in audits.measures:  # the primary one, and the others
        tilts = [t for t in audits.tilts if t.measure == name]
        assert [t.p_corrected for t in tilts] == pytest.approx(
            correct([t.p for t in tilts], "holm")
        )
    bonferroni = audit_sources(
        studied(), rankers, ["nDCG@1", "nDCG@3"], correction="bonferroni", **QUICK
    )
    assert [t.p_corrected for t in bonferroni.tilts] == pytest.approx([min(1, 6 * p) for p in ps])
    (sentence,) = trend_sentences(source_audits(measures=["nDCG@1", "P@1", "R@5"]))
    assert sentence.endswith(
        "2 of 3 measures give this answer"
    )  # all relevant documents stand among the first five


def test_two_temperatures_or_equal_rewrites_make_no_trend() -> None:
    audits = source_audits(sources=["llm-tmp0.2", "llm-tmp1.0"])
    assert audits.trends == ()
    assert "no trend of llm: 2 temperatures; a trend needs 3" in note_sentences(audits.notes)
    columns = {"cold": {"temperature": 0.2}, "hot": {"temperature": 1.0}}
    apart = audit_sources(studied(columns), [decided({"cold": 1, "hot": 2})], "nDCG@1", **QUICK)
    assert not [
        note for note in note_sentences(apart.notes) if "no trend" in note
    ]  # of two sources nobody expects one
    several = {name: {"temperature": number / 10} for number, name in enumerate("abc")}
    others = audit_sources(studied(several), [decided(dict.fromkeys("abc", 1))], "nDCG@1", **QUICK)
    assert [note for note in note_sentences(others.notes) if "no trend" in note] == [
        "no trend: each of 3 temperatures is a separate series; put sources of one model together "
        "with a column 'model'"
    ]
    equal = audit_sources(
        studied(count=20), [decided(dict.fromkeys(TEMPERATURES, 15))], "nDCG@1", **QUICK
    )
    assert equal.trends[0].kind == "inconclusive"
    assert math.isnan(equal.trends[0].correlation)
    assert "no trend to test" in trend_sentences(equal)[0]
    few = [
        note for note in note_sentences(equal.notes) if "20 queries compare" in note
    ]  # each names its own two sides
    assert [note.split(": ")[1] for note in few] == ["llm-tmp0.2", "llm-tmp0.7", "llm-tmp1.0"]


# Temperatures and series


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llama-tmp0.2", 0.2),
        ("llama_tmp1", 1.0),
        ("x-temperature2", 2.0),
        ("llm_0.2", 0.2),
        ("gpt_3.5", math.nan),
        ("gpt-4", math.nan),
        ("llm_1", math.nan),
        ("tmp0.2", math.nan),
    ],
)
def test_the_end_of_a_name_tells_it_where_no_column_does(name: str, expected: float) -> None:
    series = take_apart(studied({name: {}, "other": {"temperature": 0.5}, "b": {"temperature": 0}}))
    known = {source.source: source.temperature for source in series.sources}
    assert known == pytest.approx({name: expected, "other": 0.5, "b": 0.0}, nan_ok=True)
    assert not any("other" in note for note in note_sentences(series.notes))


def test_models_make_series_and_so_do_prompts_of_one_model() -> None:
    columns = {
        "x1": {"model": "x", "prompt": "paper", "temperature": 0.2},
        "y1": {"model": "y", "prompt": "paper", "temperature": 0.2},
        "x2": {"model": "x", "prompt": "polish", "temperature": 0.1},
    }
    sources = take_apart(studied(columns)).sources
    assert [(source.source, source.series) for source in sources] == [
        ("x1", "x, paper"),
        ("x2", "x, polish"),
        ("y1", "y"),
    ]


@pytest.mark.parametrize(
    ("names", "series"),
    [
        (("llm-tmp0.2", "llm-tmp0.7"), {"llm"}),
        (("llm_0.2", "llm-temp0.7"), {"llm"}),
        (("gpt-4", "gpt-3.5"), {"gpt-4", "gpt-3.5"}),
        (("cold", "hot"), {"cold", "hot"}),
    ],
)
def test_a_name_without_its_temperature_is_the_model(
    names: tuple[str, str], series: set[str]
) -> None:
    columns = {name: {"temperature": t} for name, t in zip(names, (0.2, 0.7), strict=True)}
    series_found = take_apart(studied(columns))
    assert {source.series for source in series_found.sources} == series


# The same documents for all


def test_only_documents_that_every_source_rewrote_are_compared() -> None:
    audits = source_audits(studied(without={"llm-tmp1.0": 8}))
    assert [t.queries for t in audits.tilts] == [32] * 3
    # Human text wins queries 0 to 9, 0 to 19 and 0 to 29 of the 32 that are left.
    assert [t.mean_a for t in audits.tilts] == [10 / 32, 20 / 32, 30 / 32]
    assert {source.documents for source in audits.sources} == {32}
    collection = studied(without={"llm-tmp1.0": 8})
    pair = take_apart(collection).collections[0]
    assert pair.docs.group_by("source").len().sort("source").rows() == [
        ("human", 40),
        ("llm-tmp0.2", 32),
    ]
    assert (
        pair.qrels.group_by("query_id").len()["len"].to_list() == [2] * 32
    )  # the others compete, unjudged
    assert (
        "32 of 40 rewritten documents are common to all (llm-tmp1.0 lacks 8)"
        in note_sentences(audits.notes)[1]
    )


def test_pool_and_unknown_judgments() -> None:
    collection = studied(without=dict.fromkeys(TEMPERATURES, 8))
    docs = collection.docs.with_columns(pool=pl.col("origin").str.tail(-1).cast(int) < 32)
    qrels = collection.qrels.filter(pl.col("query_id").str.tail(-1).cast(int) < 32)
    audits = source_audits(Collection(docs, collection.queries, qrels))
    assert [t.twins for t in audits.tilts] == [True] * 3
    assert not [note for note in note_sentences(audits.notes) if "do not cover" in note]
    collection = studied()
    strange = pl.DataFrame(
        {"query_id": ["q0"], "doc_id": ["gone"], "grade": [1]}, schema=collection.qrels.schema
    )
    with_strange = Collection(
        collection.docs, collection.queries, pl.concat([collection.qrels, strange])
    )
    audits = source_audits(with_strange)
    assert [note for note in note_sentences(audits.notes) if "unknown" in note] == [
        "1 judgment for unknown documents counts only in the row 'all', in no group"
    ]


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ((), [("human", "llm-tmp0.2"), ("human", "llm-tmp0.7"), ("human", "llm-tmp1.0")]),
        (("llm-tmp0.7", "human"), [("human", "llm-tmp0.7")]),
        (("llm-tmp0.7", "llm-tmp0.2"), [("llm-tmp0.7", "llm-tmp0.2")]),
        (
            ("llm-tmp0.7", "llm-tmp0.2", "llm-tmp1.0"),
            [("llm-tmp0.7", "llm-tmp0.2"), ("llm-tmp0.7", "llm-tmp1.0")],
        ),
    ],
)
def test_each_source_stands_with_the_human_or_the_first_one(
    sources: tuple[str, ...], expected: list[tuple[str, str]]
) -> None:
    collection = studied(count=2)
    apart = take_apart(collection, sources)
    assert apart.pairs == expected
    for pair, names in zip(apart.collections, apart.pairs, strict=True):
        assert set(pair.sources) == set(names)
        assert set(pair.qrels["doc_id"]) == set(pair.ids)
        assert {*pair.spec["without_sources"], *names} == set(collection.sources)


def test_a_part_is_made_again_from_the_whole() -> None:
    collection = studied(without={"llm-tmp1.0": 8})
    for pair, (_, source) in zip(
        take_apart(collection).collections, take_apart(collection).pairs, strict=True
    ):
        compared = pair.spec["compared_sources"]
        assert compared == ["human", *(name for name in collection.sources if name != "human")]
        assert again_apart(collection, source, compared) == pair


def test_without_common_documents_all_of_each_source_are_compared() -> None:
    audits = source_audits(apart())
    assert [tilt.queries for tilt in audits.tilts] == [1, 39, 39]
    assert note_sentences(audits.notes)[1].startswith(
        "warning: no document was rewritten by every source; all "
    )


def test_a_source_of_several_temperatures_is_in_no_trend() -> None:
    (source,) = take_apart(mixed()).sources
    assert math.isnan(source.temperature)
    assert note_sentences(take_apart(mixed()).notes) == (
        "source 'a' has documents of 2 temperatures, 0.2 to 0.7, so it is in no trend; give each "
        "temperature its own source",
    )


def apart() -> Collection:
    """One source rewrote document 0 alone, the two others all but that."""
    collection = studied()
    first = pl.col("source") == "llm-tmp0.2"
    docs = collection.docs.filter(
        (pl.col("source") == "human") | (first == (pl.col("origin") == "h0"))
    )
    return Collection(
        docs,
        collection.queries,
        collection.qrels.filter(pl.col("doc_id").is_in(docs["id"].implode())),
    )


def mixed() -> Collection:
    collection = studied({"a": {"temperature": 0.2}})
    warm = pl.when(pl.col("id") == "a:3").then(0.7).otherwise(pl.col("temperature"))
    return Collection(
        collection.docs.with_columns(temperature=warm), collection.queries, collection.qrels
    )


def late() -> Collection:
    """Only documents that one source lacks are judged relevant."""
    collection = studied(without={"llm-tmp1.0": 8})
    last = pl.col("query_id").str.tail(-1).cast(int) >= 32
    judged = collection.qrels.with_columns(grade=pl.when(last).then("grade").otherwise(0))
    return Collection(collection.docs, collection.queries, judged)


@pytest.mark.parametrize(
    ("collection", "options", "message"),
    [
        (
            studied,
            {"reference": "man"},
            r"unknown source 'man'.* \(valid: human, llm-tmp1.0, llm-tmp0.2, llm-tmp0.7\): "
            "sources are in the documents' column 'source'; choose with --source and --reference",
        ),
        (
            studied,
            {"sources": ["human"]},
            r"nothing to compare: 'human' is the only source; name others \(--source\)",
        ),
        (studied, {"correction": "none"}, "unknown correction 'none'"),
        (studied, {"resamples": 10}, "expected at least 100 resamples, got 10"),
        (lambda: studied({}), {}, "nothing to compare: 'human' is the only source"),
        (late, {}, "no document is judged relevant to any query"),
    ],
)
def test_mistakes_are_named(
    collection: Callable[[], Collection], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=f"^{message}"):
        source_audits(collection(), **options)


# Keeping


def test_json_and_source_without_temperature() -> None:
    wins = {"llm-tmp0.2": 10, "llm-tmp0.7": 20, "llm-tmp1.0": 30, "llm": 0}
    audits = audit_sources(
        studied({name: {} for name in wins}), [decided(wins)], ["nDCG@1", "AP@1"], **QUICK
    )
    assert audits.trends[0].temperatures == (0.2, 0.7, 1.0)
    assert [source.source for source, _ in audits.points(audits.runs[0], "nDCG@1", "llm")] == [
        *wins
    ][:3]
    content = json.loads(audits.to_json())
    assert content["reference"] == "human"
    assert [source["temperature"] for source in content["sources"]] == [0.2, 0.7, 1.0, None]
    assert [t["value"] for t in content["effects"] if t["question"] == "nDCG@1"] == pytest.approx(
        [-100, 0, 100, -200]
    )
    assert [t["kind"] for t in content["trends"]] == ["rises", "rises"]
    assert [v["b"] for v in content["verdicts"]] == [source.source for source in audits.sources]
    assert content["sentences"] == list(trend_sentences(audits))
    assert [note["sentence"] for note in content["notes"]] == list(note_sentences(audits.notes))
    assert (content["spec"]["resamples"], content["spec"]["family_size"]) == (300, 8)


@pytest.mark.parametrize("make", [toy_source_audits, timeless_source_audits])
def test_file_round_trip(make: Callable[[], SourceAudits], tmp_path: Path) -> None:
    audits = make()
    back = SourceAudits.load(audits.save(tmp_path / "sources.json.gz"))
    assert back == audits
    assert repr((back.sources, back.tilts, back.trends)) == repr(
        (audits.sources, audits.tilts, audits.trends)
    )
    assert trend_sentences(back) == trend_sentences(audits)


THREE = (0.2, 0.7, 1.0)


def wins_of(*wins: int, queries: int = 40) -> npt.NDArray[np.float64]:
    """Per temperature, human text stands first in so many queries and the rewrite in all others."""
    human = np.array([np.arange(queries) < n for n in wins], dtype=np.float64)
    return np.stack([human, 1 - human], axis=1)


def trend_of(
    values: npt.NDArray[np.float64], temperatures: tuple[float, ...] = THREE, resamples: int = 400
) -> Trend:
    task = TrendTask(
        run="bm25",
        measure="nDCG@1",
        series="llama",
        a="human",
        temperatures=temperatures,
        columns=Columns(values=np.concatenate([values[:, 0], values[:, 1]]), distinct=None),
        clusters=(None,) * len(temperatures),
    )
    return trend(task, resamples=resamples, seed=0)


def test_values_correlation_and_change_by_hand() -> None:
    # Relative Δ = 200 · (wins − losses)/40: 10, 15 and 12 wins of 40 give −100, −50 and −80.
    trend = trend_of(wins_of(10, 15, 12))
    assert trend.values == pytest.approx((-100, -50, -80))
    assert trend.correlation == pytest.approx(0.5)  # ranks 1, 3, 2 beside 1, 2, 3
    assert trend.change == pytest.approx(20)
    assert trend.queries == 40
    assert trend.kind == "inconclusive"
    assert "inconclusive, no trend with temperature shown on nDCG@1: rank corr" in trend_sentence(
        trend
    )
    shared = trend_of(
        wins_of(10, 20, 30, 30), (0.2, 0.2, 0.7, 1.0)
    )  # which are averaged at the ends
    assert shared.change == pytest.approx(100 - (-100 + 0) / 2)


def test_resample_without_order_is_dropped_and_growing_wins_rise() -> None:
    # One query of 40 differs: (39/40)^40 = 36 % of resamples lack it, and the others all order the
    # temperatures alike.
    trend = trend_of(wins_of(10, 10, 11), resamples=4000)
    assert trend.dropped / 4000 == pytest.approx((39 / 40) ** 40, abs=0.03)
    assert trend.low > 0
    assert trend.change_low < 0
    assert trend.kind == "inconclusive"
    trend = trend_of(wins_of(5, 20, 35))
    assert (trend.low, trend.correlation, trend.high) == (1, 1, 1)  # in every resample
    assert trend.change == pytest.approx(300)  # from −150 to +150
    assert 0 < trend.change_low < trend.change < trend.change_high
    assert trend.kind == "rises"
    falling = trend_of(wins_of(35, 20, 5))
    assert falling.kind == "falls"
    assert "moves away from human as temperature rises: rank correlation −1.00 " in trend_sentence(
        falling
    )
    assert "agrees" not in trend_sentence(falling)
    assert trend_sentence(falling, agree=1, measures=2).endswith(
        "; 1 of 2 measures gives this answer"
    )
    assert "the same Relative Δ at every temperature, or none" in trend_sentence(
        trend_of(wins_of(10, 10, 10))
    )


def test_trend_of_few_queries_is_inconclusive() -> None:
    few = trend_of(wins_of(1, 4, 8, queries=9))
    assert few.low > 0
    assert few.change_low > 0
    assert few.kind == "inconclusive"
    assert trend_of(wins_of(1, 5, 9, queries=10)).kind == "rises"


@given(st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=4, max_size=4))
@settings(max_examples=60)
def test_rank_correlation_is_scipys(rows: list[list[int]]) -> None:
    temperatures, values = [0.2, 0.7, 0.7, 1.3], np.array(rows, dtype=np.float64)
    correlations = rank_correlation(temperatures, values)
    for column, correlation in zip(values.T, correlations, strict=True):
        if len(set(column)) == 1:
            assert math.isnan(correlation)
        else:
            assert correlation == pytest.approx(stats.spearmanr(temperatures, column).statistic)


def test_the_interval_is_that_of_a_plain_bootstrap() -> None:
    rng = np.random.default_rng(3)
    chances = np.array([[0.3], [0.5]])[None] + np.array([0, 0.05, 0.1])[:, None, None]
    values = (rng.random((3, 2, 60)) < chances).astype(np.float64)
    trend = trend_of(values, resamples=4000)
    changes = []
    for _ in range(4000):
        a, b = values[:, :, rng.integers(0, 60, 60)].mean(axis=2).T
        delta = 200 * (a - b) / (a + b)
        changes.append(delta[2] - delta[0])
    low, high = np.quantile(changes, (0.025, 0.975))
    assert trend.change_low == pytest.approx(low, abs=6)
    assert trend.change_high == pytest.approx(high, abs=6)


def test_only_queries_that_are_defined_everywhere_count() -> None:
    values = wins_of(10, 15, 12)
    values[1, 0, :4] = np.nan
    values[2, 1, 2:6] = np.nan
    trend = trend_of(values)
    assert trend.queries == 34
    assert trend == trend_of(values[:, :, 6:])
    back = trend_of(values[:, ::-1])
    assert (back.correlation, back.low, back.high) == (-trend.correlation, -trend.high, -trend.low)
    assert (back.change_low, back.change_high) == pytest.approx(
        (-trend.change_high, -trend.change_low)
    )
    none = trend_of(np.full((3, 2, 5), np.nan))
    assert (none.queries, none.kind) == (0, "inconclusive")
    assert np.isnan([none.correlation, none.change_low]).all()
    assert trend_sentence(none).startswith(
        "bm25, llama: no trend to test, because no query has a relevant document"
    )


def test_both_intervals_must_exclude_0_on_one_side() -> None:
    for low, high, change_low, change_high, kind in (
        (0.5, 1.0, 0.1, 9.0, "rises"),
        (0.5, 1.0, -0.1, 9.0, "inconclusive"),
        (0.0, 1.0, 0.1, 9.0, "inconclusive"),
        (-1.0, -0.5, -9.0, -0.1, "falls"),
        (-1.0, 0.0, -9.0, -0.1, "inconclusive"),
        (-1.0, -0.5, -9.0, 0.0, "inconclusive"),
    ):
        trend = Trend(
            run="r",
            measure="m",
            series="s",
            a="human",
            temperatures=THREE,
            values=(0.0,) * 3,
            correlation=0.0,
            low=low,
            high=high,
            change=0.0,
            change_low=change_low,
            change_high=change_high,
            queries=40,
            dropped=0,
        )
        assert trend.kind == trend.derived()["kind"] == kind, (low, high, change_low, change_high)


def test_a_gate_judges_each_source() -> None:
    audits = source_audits()
    decision = gate(audits, max_tilt=20)
    assert [(row.b, row.outcome) for row in decision.rows] == [
        ("llm-tmp0.2", "tilted"),
        ("llm-tmp0.7", "inconclusive"),
        ("llm-tmp1.0", "tilted"),
    ]
    (row,) = gate(audits, max_tilt=20, pairs=[("llm-tmp0.7", "human")]).rows
    assert row.b == "llm-tmp0.7"
    grown = gate(audits, baseline=audits)
    assert {row.outcome for row in grown.rows} == {"level"}
    assert note_sentences(grown.notes)[-1].startswith("each of the 3 growths has its own")
    for options, message in (
        ({"pairs": [("human", "robot")]}, "unknown pair of groups 'human,robot'"),
        (
            {"baseline": audits.audits[0]},
            "audit and baseline differ in kind: one covers several sources",
        ),
    ):
        with pytest.raises(UserError, match=message):
            gate(audits, **options)


def test_gate_of_several_sources_takes_iterators() -> None:
    audits = source_audits()
    decision = gate(audits, max_tilt=20, runs=iter(audits.runs), measures=iter(["nDCG@1"]))
    assert decision.rows == gate(audits, max_tilt=20).rows


def test_gate_of_several_sources_refuses_no_pairs() -> None:
    with pytest.raises(UserError, match="nothing to gate: expected pairs of groups, got none"):
        gate(source_audits(), max_tilt=20, pairs=[])
