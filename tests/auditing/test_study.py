"""The temperature study: sources side by side, one family of tests, the same documents for all."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ranktilt.auditing.audit import audit
from ranktilt.auditing.study import Study, study
from ranktilt.auditing.study_sources import only, source_pairs, study_sources
from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.registry import ranker
from tests.auditing.studied import QUERIES, TEMPERATURES, Decided, decided, holm_by_hand, pair_of, studied
from tests.reporting.studies import timeless_study, toy_study
from tests.toy import collection_of, toy

QUICK: dict[str, Any] = {"resamples": 300}


def made(collection: Collection | None = None, measures: Any = "nDCG@1", **options: Any) -> Study:
    return study(studied() if collection is None else collection, [decided()], measures, **{**QUICK, **options})


def test_relative_delta_by_hand_in_the_order_of_temperature() -> None:
    found = made()
    assert [(arm.source, arm.temperature) for arm in found.sources] == [
        ("llm-tmp0.2", 0.2), ("llm-tmp0.7", 0.7), ("llm-tmp1.0", 1.0),
    ]  # fmt: skip
    assert [t.value for t in found.tilts] == pytest.approx([-100, 0, 100])
    assert [(t.mean_a, t.mean_b) for t in found.tilts] == [(0.25, 0.75), (0.5, 0.5), (0.75, 0.25)]
    assert [(t.a, t.b) for t in found.tilts] == [("human", arm.source) for arm in found.sources]
    assert [t.queries for t in found.tilts] == [QUERIES] * 3


def test_every_source_is_ranked_once_beside_the_reference_alone() -> None:
    Decided.seen.clear()
    made()
    assert Decided.seen == [("human", "llm-tmp0.2"), ("human", "llm-tmp0.7"), ("human", "llm-tmp1.0")]


def test_each_tilt_is_that_of_an_audit_of_the_two() -> None:
    found = made(measures=["nDCG@1", "AP@3"])
    for arm in found.sources:
        pair = pair_of(studied(), arm.source)
        alone = audit(pair, decided().rank(pair), ["nDCG@1", "AP@3"], resamples=300)
        for tilt in alone.tilts:
            mine = found.tilt(tilt.run, arm.source, tilt.measure)
            assert (mine.value, mine.low, mine.high, mine.p) == (tilt.value, tilt.low, tilt.high, tilt.p)


def test_p_is_corrected_over_rankers_sources_and_measures() -> None:
    rankers = [decided(), decided({"llm-tmp0.2": 13, "llm-tmp0.7": 24, "llm-tmp1.0": 27})]
    found = study(studied(), rankers, ["nDCG@1", "nDCG@3"], **QUICK)
    ps = [t.p for t in found.tilts]
    assert len(ps) == found.spec["tests"] == 2 * 3 * 2
    assert found.primary == "nDCG@3"
    for name in found.measures:  # the primary one, and the others
        own = [t for t in found.tilts if t.measure == name]
        assert [t.p_corrected for t in own] == pytest.approx(holm_by_hand([t.p for t in own]))
    bonferroni = study(studied(), rankers, ["nDCG@1", "nDCG@3"], correction="bonferroni", **QUICK)
    assert [t.p_corrected for t in bonferroni.tilts] == pytest.approx([min(1, 6 * p) for p in ps])


def test_a_verdict_is_given_on_each_source() -> None:
    found = made()
    run = found.runs[0]
    kinds = {
        arm.source: (found.verdict(run, arm.source).kind, found.verdict(run, arm.source).side) for arm in found.sources
    }
    assert kinds == {
        "llm-tmp0.2": ("favours", "llm-tmp0.2"),
        "llm-tmp0.7": ("inconclusive", None),
        "llm-tmp1.0": ("favours", "human"),
    }


def test_three_temperatures_make_a_trend() -> None:
    (trend,) = made().trends
    assert (trend.series, trend.a, trend.queries) == ("llm", "human", QUERIES)
    assert trend.temperatures == (0.2, 0.7, 1.0)
    assert trend.values == pytest.approx((-100, 0, 100))
    assert (trend.correlation, trend.change) == (1.0, pytest.approx(200))
    assert trend.kind == "rises"


def test_what_is_said_of_a_trend_counts_the_measures_that_agree() -> None:
    (said,) = made(measures=["nDCG@1", "P@1", "R@5"]).sentences
    assert "llm: Relative Δ on nDCG@1 moves toward human as temperature rises" in said
    assert said.endswith("agrees on 2 of 3 measures")  # all relevant documents stand among the first five


def test_two_temperatures_make_no_trend() -> None:
    found = made(sources=["llm-tmp0.2", "llm-tmp1.0"])
    assert found.trends == ()
    assert "no trend of llm: 2 temperatures; a trend needs 3" in found.notes


def test_rewrites_that_do_not_differ_show_no_trend() -> None:
    found = study(studied(), [decided(dict.fromkeys(TEMPERATURES, 15))], "nDCG@1", **QUICK)
    assert found.trends[0].kind == "inconclusive"
    assert math.isnan(found.trends[0].correlation)
    assert "no trend to ask for" in found.sentences[0]


# Temperatures and series


def temperatures(collection: Collection) -> dict[str, float]:
    found = study_sources(collection, "human")
    return {arm.source: arm.temperature for arm in found.sources}


def test_a_column_tells_the_temperature_and_needs_no_note() -> None:
    found = study_sources(studied({"a": {"temperature": 1.5}, "b": {"temperature": 0}}), "human")
    assert [(arm.source, arm.temperature) for arm in found.sources] == [("a", 1.5), ("b", 0.0)]
    assert found.notes == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llama-tmp0.2", 0.2), ("llama_tmp1", 1.0), ("x-temperature2", 2.0), ("llm_0.2", 0.2),
        ("gpt_3.5", math.nan), ("gpt-4", math.nan), ("llm_1", math.nan), ("tmp0.2", math.nan),
    ],
)  # fmt: skip
def test_the_end_of_a_name_tells_it_where_no_column_does(name: str, expected: float) -> None:
    found = temperatures(studied({name: {}, "other": {"temperature": 0.5}}))
    assert found[name] == pytest.approx(expected, nan_ok=True)
    assert found["other"] == 0.5


def test_a_source_without_a_temperature_is_in_the_table_and_in_no_trend() -> None:
    wins = {"llm-tmp0.2": 10, "llm-tmp0.7": 20, "llm-tmp1.0": 30, "llm": 5}
    found = study(studied({name: {} for name in wins}), [decided(wins)], "nDCG@1", **QUICK)
    assert [arm.source for arm in found.sources] == ["llm-tmp0.2", "llm-tmp0.7", "llm-tmp1.0", "llm"]
    assert found.tilts[3].value == pytest.approx(-150)
    assert found.trends[0].temperatures == (0.2, 0.7, 1.0)
    assert "no temperature is known of llm, in no trend" in found.notes
    assert [arm.source for arm, _ in found.points(found.runs[0], "nDCG@1", "llm")] == [
        "llm-tmp0.2", "llm-tmp0.7", "llm-tmp1.0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (
            {"a": {}, "b": {}},
            r"no temperature is known of a, b: .* or let the names of the sources end in it: a-tmp0.2",
        ),
        ({}, "nothing to study: only source 'human'"),
    ],
)
def test_without_temperatures_or_sources_there_is_no_study(sources: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        made(studied(sources))


def test_one_source_has_one_temperature() -> None:
    collection = studied({"a": {"temperature": 0.2}})
    mixed = collection.docs.with_columns(
        temperature=pl.when(pl.col("id") == "a:3").then(0.7).otherwise(pl.col("temperature"))
    )
    with pytest.raises(UserError, match=r"source 'a' holds documents of 2 temperatures, 0.2 to 0.7; give each"):
        made(Collection(mixed, collection.queries, collection.qrels))


def test_models_make_series_and_so_do_prompts_of_one_model() -> None:
    named = {
        "x1": {"model": "x", "prompt": "paper", "temperature": 0.2},
        "y1": {"model": "y", "prompt": "paper", "temperature": 0.2},
        "x2": {"model": "x", "prompt": "polish", "temperature": 0.1},
    }
    arms = study_sources(studied(named), "human").sources
    assert [(arm.source, arm.series) for arm in arms] == [("x1", "x, paper"), ("x2", "x, polish"), ("y1", "y")]


@pytest.mark.parametrize(
    ("names", "series"),
    [
        (("llm-tmp0.2", "llm-tmp0.7"), {"llm"}), (("llm_0.2", "llm-temp0.7"), {"llm"}),
        (("gpt-4", "gpt-3.5"), {"gpt-4", "gpt-3.5"}), (("cold", "hot"), {"cold", "hot"}),
    ],
)  # fmt: skip
def test_a_name_without_its_temperature_is_the_model(names: tuple[str, str], series: set[str]) -> None:
    columns = {name: {"temperature": t} for name, t in zip(names, (0.2, 0.7), strict=True)}
    found = study_sources(studied(columns), "human")
    assert {arm.series for arm in found.sources} == series


def test_sources_that_share_no_model_are_told_how_to() -> None:
    found = study(
        studied({"cold": {"temperature": 0.2}, "hot": {"temperature": 1.0}}), [decided({"cold": 1, "hot": 2})],
        "nDCG@1", **QUICK,
    )  # fmt: skip
    hint = "1 temperature; a trend needs 3 (sources of one model share a column 'model')"
    assert [note for note in found.notes if note.startswith("no trend")] == [
        f"no trend of cold: {hint}", f"no trend of hot: {hint}",
    ]  # fmt: skip


# The same documents for all


def test_only_documents_that_every_source_rewrote_are_compared() -> None:
    found = made(studied(without={"llm-tmp1.0": 8}))
    assert [t.queries for t in found.tilts] == [32] * 3
    # Human text wins queries 0 to 9, 0 to 19 and 0 to 29 of the 32 that are left.
    assert [t.mean_a for t in found.tilts] == [10 / 32, 20 / 32, 30 / 32]
    assert {arm.documents for arm in found.sources} == {32}
    assert found.notes[1] == (
        "warning: the sources do not cover the same documents: 32 of 40 rewritten documents are common to all "
        "(llm-tmp1.0 lacks 8); only these are compared, and only their judgments count"
    )


def test_documents_outside_of_a_pool_are_no_lack() -> None:
    whole = studied()
    kept = (pl.col("source") == "human") | pl.col("origin").is_in([f"h{n}" for n in range(32)])
    docs = whole.docs.filter(kept).with_columns(pool=pl.col("origin").is_in([f"h{n}" for n in range(32)]))
    qrels = whole.qrels.filter(
        pl.col("doc_id").is_in(docs["id"].implode()) & (pl.col("query_id").str.tail(-1).cast(int) < 32)
    )
    found = made(Collection(docs, whole.queries, qrels))
    assert [t.twins for t in found.tilts] == [True] * 3
    assert not [note for note in found.notes if "do not cover" in note]


def test_human_documents_stay_as_competitors_and_lose_only_their_judgments() -> None:
    whole = studied(without={"llm-tmp1.0": 8})
    common = study_sources(whole, "human").origins
    pair = only(whole, "human", "llm-tmp0.2", common)
    assert pair.docs.group_by("source").len().sort("source").rows() == [("human", 40), ("llm-tmp0.2", 32)]
    assert pair.qrels["query_id"].n_unique() == 32
    assert pair.qrels.group_by("query_id").len()["len"].unique().to_list() == [2]


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ((), [("human", "llm-tmp1.0"), ("human", "llm-tmp0.2"), ("human", "llm-tmp0.7")]),
        (("llm-tmp0.7", "human"), [("human", "llm-tmp0.7")]),
        (("llm-tmp0.7", "llm-tmp0.2"), [("llm-tmp0.2", "llm-tmp0.7")]),
        (("llm-tmp0.7", "llm-tmp0.2", "llm-tmp1.0"), [("llm-tmp0.2", "llm-tmp0.7"), ("llm-tmp1.0", "llm-tmp0.7")]),
    ],
)
def test_sources_are_taken_apart_two_by_two(sources: tuple[str, ...], expected: list[tuple[str, str]]) -> None:
    """Beside people's, or the first that is named."""
    whole = studied(count=2)
    found = source_pairs(whole, sources)
    assert [one.sources for one in found] == [tuple(n for n in whole.sources if n in pair) for pair in expected]
    assert all(set(one.qrels["doc_id"]) == set(one.ids) for one in found)
    assert all({*one.spec["without_sources"], *one.sources} == set(whole.sources) for one in found)


def test_judgments_of_unknown_documents_stay() -> None:
    whole = studied()
    strange = pl.DataFrame({"query_id": ["q0"], "doc_id": ["gone"], "grade": [1]}, schema=whole.qrels.schema)
    with_strange = Collection(whole.docs, whole.queries, pl.concat([whole.qrels, strange]))
    found = made(with_strange)
    assert [note for note in found.notes if "unknown" in note] == [
        "1 judgment of unknown documents counts in the row 'all' and in no group"
    ]


def test_sources_without_a_common_document_are_refused_by_name() -> None:
    whole = studied()
    apart = (pl.col("source") == "llm-tmp0.2") & (pl.col("origin") != "h0")
    odd = (pl.col("source") != "llm-tmp0.2") & (pl.col("source") != "human") & (pl.col("origin") == "h0")
    docs = whole.docs.filter(~apart & ~odd)
    qrels = whole.qrels.filter(pl.col("doc_id").is_in(docs["id"].implode()))
    with pytest.raises(UserError, match=r"no document was rewritten by every source; 'llm-tmp0.2' has rewrites of 1 "):
        made(Collection(docs, whole.queries, qrels))


def test_common_documents_that_nobody_judged_are_refused() -> None:
    whole = studied(without={"llm-tmp1.0": 8})
    late = whole.qrels.filter(pl.col("query_id").str.tail(-1).cast(int) >= 32)
    with pytest.raises(UserError, match=r"no document that every source rewrote is judged relevant; name fewer"):
        made(Collection(whole.docs, whole.queries, late))


# Mistakes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reference": "man"}, r"unknown source 'man'.* \(valid: human, llm-tmp1.0, llm-tmp0.2, llm-tmp0.7\)"),
        ({"sources": ["human"]}, r"unknown source 'human' \(valid: llm-tmp1.0, llm-tmp0.2, llm-tmp0.7\)"),
        ({"correction": "none"}, r"unknown correction 'none'"),
        ({"resamples": 10}, r"expected at least 100 resamples, got 10"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        made(**options)


# Keeping


def test_json_holds_the_whole_study() -> None:
    wins = {"llm-tmp0.2": 10, "llm-tmp0.7": 20, "llm-tmp1.0": 30, "llm": 0}
    found = study(studied({name: {} for name in wins}), [decided(wins)], ["nDCG@1", "AP@1"], **QUICK)
    content = json.loads(found.to_json())
    assert (content["format"], content["version"]) == ("ranktilt-study", 1)
    assert content["reference"] == "human"
    assert [arm["temperature"] for arm in content["arms"]] == [0.2, 0.7, 1.0, None]
    assert [t["value"] for t in content["tilts"] if t["measure"] == "nDCG@1"] == pytest.approx([-100, 0, 100, -200])
    assert [t["kind"] for t in content["trends"]] == ["rises", "rises"]
    assert [v["b"] for v in content["verdicts"]] == [arm.source for arm in found.sources]
    assert content["sentences"] == list(found.sentences)
    assert content["notes"] == list(found.notes)
    assert (content["spec"]["resamples"], content["spec"]["tests"]) == (300, 8)


@pytest.mark.parametrize("make", [toy_study, timeless_study, lambda: made(measures=["nDCG@1", "AP@3"])])
def test_it_comes_back_equal(make: Callable[[], Study], tmp_path: Path) -> None:
    found = make()
    back = Study.load(found.save(tmp_path / "study.json.gz"))
    assert back == found
    assert repr((back.sources, back.tilts, back.trends)) == repr((found.sources, found.tilts, found.trends))
    assert back.sentences == found.sentences


def test_notes_that_all_audits_share_are_told_once() -> None:
    found = made(studied(count=20))
    few = [note for note in found.notes if "20 queries compare" in note]
    assert len(few) == 3  # each names its own two sides
    assert all(note.startswith("warning: llm-tmp") for note in few)


def test_texts_are_ranked_by_a_real_ranker() -> None:
    """The toy's rewrites three times over: equal texts give equal tilts and no trend."""
    rows = toy().docs.filter(pl.col("source") == "human").to_dicts()
    for t in (0.2, 0.7, 1.0):
        rows += [
            {**row, "id": f"{row['id']}-{t}", "source": f"llm-tmp{t}", "temperature": t}
            for row in toy().docs.filter(pl.col("source") == "llm").to_dicts()
        ]
    grades = {q: {} for q in ("q1", "q2", "q3")}  # type: dict[str, dict[str, int]]
    for q, d, g in toy().qrels.iter_rows():
        names = [d] if d.endswith("-human") else [f"{d}-{t}" for t in (0.2, 0.7, 1.0)]
        grades[q] |= dict.fromkeys(names, g)
    collection = collection_of(rows, dict(toy().queries.iter_rows()), grades)
    found = study(collection, [ranker("bm25")], ["nDCG@3"], **QUICK)
    alone = audit(toy(), ranker("bm25").rank(toy()), ["nDCG@3"], resamples=300)
    assert [t.value for t in found.tilts] == pytest.approx([alone.tilts[0].value] * 3)
    assert found.trends[0].kind == "inconclusive"
