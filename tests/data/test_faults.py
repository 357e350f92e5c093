"""A sound collection is a fair comparison; each fault alone is found, counted and named."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ranktilt as rt
from ranktilt.data.collection import Collection
from ranktilt.data.faults.check_limits import LIMITS, CheckLimits
from ranktilt.data.faults.faults import FaultRow, find_faults, percent
from ranktilt.data.faults.trimmed_texts import cut_at, title_prefixed
from ranktilt.data.loading.load import load
from ranktilt.explaining.check import check
from ranktilt.explaining.check_result import CheckResult
from ranktilt.reporting.sentences.checking.check import check_sentence
from ranktilt.reporting.sentences.checking.faults import MEANINGS, fault_note
from tests.refusals import refused
from tests.toy import collection_of, versions

PAIRS = 20
WORDS = ("amber", "birch", "cedar", "dune", "elm", "fern", "grove", "heath", "isle", "jade")


def sentence(side: str, number: int) -> str:
    """Fifteen words and a full stop, different for every number and side."""
    names = [WORDS[(number + step) % 10] for step in (0, 1, 3)]
    return f"The {side} note {number} tells us of {', '.join(names)} and of a long walk."


def sound() -> list[dict[str, Any]]:
    """Twenty pairs without a fault: p0-human, p0-llm, ..."""
    return versions(
        {side: [sentence(side, n) for n in range(PAIRS)] for side in ("human", "llm")}, "p"
    )


Docs = list[dict[str, Any]]
Qrels = dict[str, dict[str, int]]


def judged() -> Qrels:
    """Query q<n> has pair n as relevant, both sides, and the next one as not relevant."""
    return {
        f"q{n}": {f"p{n}-{side}": 2 for side in ("human", "llm")} | {f"p{(n + 1) % PAIRS}-llm": 0}
        for n in range(PAIRS)
    }


def collection_with(docs: Docs, qrels: Qrels | None = None) -> Collection:
    return collection_of(
        docs, {f"q{n}": f"walk {n}" for n in range(PAIRS)}, judged() if qrels is None else qrels
    )


def change(count: int, edit: Callable[[dict[str, Any]], dict[str, Any]]) -> Docs:
    changed = {f"p{n}-llm" for n in range(count)}
    return [edit(row) if row["id"] in changed else row for row in sound()]


def without(*names: str) -> Docs:
    return [row for row in sound() if row["id"] not in names]


def text(of: Callable[[str], str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda row: {**row, "text": of(row["text"])}


def row(result: CheckResult, name: str, source: str | None = None) -> FaultRow:
    rows = [r for r in result.faults if r.name == name and source in (None, r.source)]
    assert len(rows) == 1
    return rows[0]


def announce(old: str) -> str:
    return f"Sure! Here is a rewritten version of the passage:\n\n{old}"


def test_a_sound_collection_and_the_bundled_one_are_a_fair_comparison() -> None:
    result = check(collection_with(sound()))
    assert result.fair
    assert {r.verdict for r in result.faults} == {"ok"}
    assert {r.count for r in result.faults} == {0}
    assert all(r.examples == () for r in result.faults)
    assert (
        check_sentence(result) == "A fair comparison of llm with human: no fault makes it unfair."
    )
    assert [r.name for r in result.faults] == list(MEANINGS)
    assert [r.source for r in result.faults] == ["llm"] * 14 + ["", ""]
    totals = {r.name: r.total for r in result.faults}
    assert (totals.pop("one-sided judgments"), totals.pop("dangling judgments")) == (20, 60)
    assert set(totals.values()) == {20}
    result = check(rt.bundled())
    assert result.fair
    assert [r.name for r in result.of("warning")] == ["shared titles"]


@pytest.mark.parametrize(
    ("name", "option", "docs", "value", "reference"),
    [
        (
            "identical pairs",
            "max_identical",
            change(2, text(lambda t: t.replace("llm", "human"))),
            10.0,
            math.nan,
        ),
        (
            "refusals",
            "max_refusals",
            change(3, text(lambda _: "I'm sorry, but I cannot rewrite this text.")),
            15.0,
            0.0,
        ),
        ("boilerplate openings", "max_boilerplate", change(3, text(announce)), 15.0, 0.0),
        (
            "cut-off endings",
            "max_cut_off",
            change(3, text(lambda t: t.removesuffix("."))),
            15.0,
            0.0,
        ),
        (
            "pairs missing a side",
            "max_missing",
            without("p0-llm", "p1-llm", "p2-human"),
            15.0,
            math.nan,
        ),
    ],
)
def test_a_fault_voids_above_its_limit(
    name: str, option: str, docs: Docs, value: float, reference: float
) -> None:
    known = {d["id"] for d in docs}
    qrels = {q: {d: g for d, g in grades.items() if d in known} for q, grades in judged().items()}
    collection = collection_with(docs, qrels)
    result = check(collection)
    fault = row(result, name)
    assert ([r.name for r in result.of("void")], result.fair) == ([name], False)
    voiding = find_faults(collection, "human", ("llm",), voiding_only=True)
    assert set(voiding) < set(result.faults), "an audit asks for fewer faults, counted alike"
    assert [r for r in voiding if r.verdict == "void"] == list(result.of("void"))
    assert (fault.value, fault.count, fault.total) == (
        pytest.approx(value),
        round(value * PAIRS / 100),
        PAIRS,
    )
    assert fault.reference == pytest.approx(reference, nan_ok=True)
    assert (
        fault.examples[:2] == ("p0-llm", "p1-llm")
        if name != "pairs missing a side"
        else ("p0-human", "p1-human")
    )
    assert check_sentence(result).startswith(
        f"Not a fair comparison of llm with human: {name} "
        f"({fault.count} of 20, {value:.1f} %; allowed: ≤ "
    )
    at = row(check(collection_with(docs), limits=replace(LIMITS, **{option: value})), name)
    assert (at.verdict, at.limit) == ("warning", f"≤ {value:g} %")
    assert (
        row(
            check(collection_with(docs), limits=replace(LIMITS, **{option: value - 0.01})), name
        ).verdict
        == "void"
    )


def test_the_median_length_ratio_is_judged() -> None:
    for edit, ratio, verdict in (
        (lambda t: " ".join(t.split()[:6]) + ".", 0.4, "void"),
        (lambda t: t + " " + t, 2.0, "void"),
        (lambda t: t + " So they say.", 1.2, "warning"),
    ):
        docs = change(PAIRS, text(edit))
        fault = row(check(collection_with(docs)), "length ratio")
        assert fault.value == pytest.approx(ratio)
        assert (fault.verdict, fault.limit) == (verdict, "0.67–1.5")
        assert f"lie between {ratio:.2f} and {ratio:.2f}" in fault_note(fault)
        assert check(
            collection_with(docs),
            limits=CheckLimits(min_length_ratio=min(ratio, 1), max_length_ratio=max(ratio, 1.5)),
        ).fair
        assert not check(
            collection_with(docs), limits=CheckLimits(min_length_ratio=1.15, max_length_ratio=1.16)
        ).fair


def test_judgments_of_one_side_void_and_name_query_and_document() -> None:
    for edit in (
        lambda grades: {d: g for d, g in grades.items() if d.endswith("human")},
        lambda grades: {d: g for d, g in grades.items() if d.endswith("llm")},
        lambda grades: {d: (1 if d.endswith("llm") and g else g) for d, g in grades.items()},
        lambda grades: {d: (0 if d.endswith("llm") else g) for d, g in grades.items()},
    ):
        result = check(
            collection_with(sound(), {q: edit(grades) for q, grades in judged().items()})
        )
        assert [(r.name, r.count, r.total) for r in result.of("void")] == [
            ("one-sided judgments", PAIRS, PAIRS)
        ]
    qrels = {**judged(), "q3": {"p3-llm": 1, "p3-human": 0}, "q5": {"p5-human": 1}}
    fault = row(check(collection_with(sound(), qrels)), "one-sided judgments")
    assert fault.examples == ("q3 p3-llm", "q5 p5-human")
    assert (fault.count, fault.total, fault.value, fault.verdict) == (2, 20, 10.0, "void")
    allowed = check(collection_with(sound(), qrels), limits=CheckLimits(max_one_sided=10))
    assert row(allowed, "one-sided judgments").verdict == "warning"


@pytest.mark.parametrize(
    ("reordered", "same", "empty", "limit"),
    [(20, 0, 0, "not all"), (19, 1, 0, "not all"), (18, 0, 2, "not all")],
)
def test_nothing_left_to_compare_voids(reordered: int, same: int, empty: int, limit: str) -> None:
    docs = sound()
    for n, (original, rewrite) in enumerate(zip(docs[:PAIRS], docs[PAIRS:], strict=True)):
        words_of = original["text"].removesuffix(".").split()
        original["text"] = "" if n >= PAIRS - empty else original["text"]
        rewrite["text"] = (
            " ".join(words_of[::-1]) + "." if same <= n and original["text"] else original["text"]
        )
    result = check(collection_with(docs))
    fault = row(result, "near-identical pairs")
    assert (fault.count, fault.verdict, fault.limit) == (reordered, "void", limit)
    assert [r.name for r in result.of("void")] == ["near-identical pairs"]
    assert (
        f"near-identical pairs ({reordered} of 20, {reordered * 5}.0 %; allowed: {limit})"
        in check_sentence(result)
    )
    one_apart = [
        {**r, "text": r["text"] + " One more."} if r["id"] == "p5-llm" else r for r in docs
    ]
    assert check(collection_with(one_apart)).fair  # one pair is left


RUSSIAN = "Синий день был долгим, пчёлы танцевали над полем, дождь ждал вечера, мы пели песни дома."


@pytest.mark.parametrize(
    ("name", "texts", "pairs", "reference"),
    [
        (
            "near-identical pairs",
            {"p0-llm": sentence("human", 0), "p1-llm": sentence("human", 1) + " Of"},
            [1],
            None,
        ),
        ("empty texts", {"p0-llm": " ", "p0-human": " ", "p1-human": " "}, [0], 10.0),
        ("identical pairs", {"p0-llm": " ", "p0-human": " "}, [], None),
        ("duplicate texts", {"p0-llm": " ", "p1-llm": " "}, [], 0.0),
        (
            "duplicate texts",  # within a source alone
            {
                "p1-llm": sentence("llm", 0),
                "p2-llm": sentence("llm", 0),
                "p4-human": sentence("human", 3),
            },
            [1, 2],
            5.0,
        ),
        (
            "script differs",
            {"p0-llm": RUSSIAN, "p1-llm": RUSSIAN, "p5-llm": "12 34."},
            [0, 1],
            None,
        ),
    ],
)
def test_faults_that_only_warn(
    name: str, texts: dict[str, str], pairs: list[int], reference: float | None
) -> None:
    docs = [{**r, "text": texts.get(r["id"], r["text"])} for r in sound()]
    result = row(check(collection_with(docs)), name)
    assert (result.count, result.examples) == (len(pairs), tuple(f"p{n}-llm" for n in pairs))
    assert (result.value, result.verdict) == (
        100 * len(pairs) / PAIRS,
        "warning" if pairs else "ok",
    )
    assert result.reference == pytest.approx(
        math.nan if reference is None else reference, nan_ok=True
    )


def test_shared_titles_are_a_warning_and_the_threshold_of_near_identical_pairs_is_an_option() -> (
    None
):
    titles = {"p0": "Walks", "p1": "Woods", "p2": " "}
    docs = [{**r, "title": titles.get(r["id"].partition("-")[0], "")} for r in sound()]
    docs = [{**r, "title": "Trees"} if r["id"] == "p1-llm" else r for r in docs]
    result = check(collection_with(docs))
    fault = row(result, "shared titles")
    assert (fault.count, fault.value, fault.examples, fault.verdict) == (
        1,
        5.0,
        ("p0-llm",),
        "warning",
    )
    assert result.fair
    assert check_sentence(result).endswith("; 1 warning: shared titles.")
    all_alike = check(collection_with(sound()), limits=CheckLimits(near_identical=13 / 15))
    assert (row(all_alike, "near-identical pairs").count, all_alike.fair) == (
        PAIRS,
        False,
    )  # none is left to compare
    fault = row(
        check(collection_with(sound()), limits=CheckLimits(near_identical=0.87)),
        "near-identical pairs",
    )
    assert (fault.count, fault_note(fault)) == (
        0,
        "Jaccard similarity of terms is 0.87 or more; void if no pair differs more",
    )


def test_any_dangling_judgment_or_repeated_query_is_a_warning() -> None:
    qrels: dict[str, dict[str, int]] = {**judged(), "q99": {"p0-human": 1}}
    qrels["q0"] = {**qrels["q0"], "lost": 1}
    fault = row(check(collection_with(sound(), qrels)), "dangling judgments")
    assert (fault.count, fault.total, fault.source, fault.verdict) == (2, 62, "", "warning")
    assert fault.examples == ("q0 lost", "q99 p0-human")
    assert (
        row(
            check(collection_with(sound(), qrels), limits=CheckLimits(warn_above=50)),
            "dangling judgments",
        ).verdict
        == "warning"
    )
    collection = collection_with(sound())
    same = pl.col("id").replace_strict(
        {"q3": " the same ", "q5": "the same", "q7": " the same "}, default=pl.col("id")
    )
    fault = row(
        check(replace(collection, queries=collection.queries.with_columns(text=same))),
        "repeated queries",
    )
    assert (fault.count, fault.total, fault.source, fault.verdict) == (2, PAIRS, "", "warning")
    assert fault.examples == ("q5", "q7")
    blank = replace(collection, queries=collection.queries.with_columns(text=pl.lit(" ")))
    assert row(check(blank), "repeated queries").count == 0


def test_every_other_source_is_held_against_the_reference_and_pairs_need_an_origin() -> None:
    llm = [r for r in sound() if r["source"] == "llm"]
    third_side = [
        {**r, "id": f"{r['id']}2", "source": "other", "text": announce(r["text"])} for r in llm
    ]
    qrels = {
        q: {**g, **{f"{d}2": n for d, n in g.items() if d.endswith("llm")}}
        for q, g in judged().items()
    }
    three = collection_with(sound() + third_side, qrels)
    result = check(three)
    assert (result.reference, result.sources) == ("human", ("llm", "other"))
    assert row(result, "boilerplate openings", "llm").verdict == "ok"
    assert row(result, "boilerplate openings", "other").verdict == "void"
    assert "boilerplate openings of other (20 of 20, 100.0 %; allowed: ≤ 10 %)" in check_sentence(
        result
    )
    assert sum(r.name == "dangling judgments" for r in result.faults) == 1
    turned = check(three, reference="other")
    assert (turned.reference, turned.sources) == ("other", ("human", "llm"))
    assert row(turned, "boilerplate openings", "llm").reference == 100.0
    docs = [{**r, "origin": r["id"]} for r in sound()]
    fault = row(check(collection_with(docs)), "pairs missing a side")
    assert (fault.count, fault.total, fault.value, fault.verdict) == (40, 40, 100.0, "void")
    assert "twins need the same origin" in fault_note(fault)
    undefined = [r for r in check(collection_with(docs)).faults if math.isnan(r.value)]
    assert {r.name for r in undefined} >= {
        "identical pairs",
        "length ratio",
        "shared titles",
        "one-sided judgments",
    }
    assert {r.verdict for r in undefined if r.name != "near-identical pairs"} == {"warning"}
    assert row(check(collection_with(docs)), "near-identical pairs").verdict == "void", (
        "no pair is left"
    )


@pytest.mark.parametrize(
    ("limits", "options", "message"),
    [
        (
            {"max_missing": 101},
            {},
            "limits of a check: expected max_missing of at least 0 and at most 100, got 101",
        ),
        (
            {"max_cut_off": -1},
            {},
            "limits of a check: expected max_cut_off of at least 0 and at most 100, got -1",
        ),
        (
            {"warn_above": math.nan},
            {},
            "limits of a check: expected warn_above of at least 0 and at most 100, got nan",
        ),
        (
            {"near_identical": 95},
            {},
            "limits of a check: expected near_identical of at least 0 and at most 1, got 95",
        ),
        (
            {"min_length_ratio": 2},
            {},
            "expected min_length_ratio below max_length_ratio, got 2 and 1.5",
        ),
        (
            {},
            {"reference": "hum"},
            "unknown source 'hum'; did you mean 'human'? (valid: human, llm)",
        ),
    ],
)
def test_what_cannot_be_a_limit_is_refused(
    limits: dict[str, float], options: dict[str, str], message: str
) -> None:
    with refused(message):
        check(collection_with(sound()), limits=CheckLimits(**limits), **options)


def test_one_source_is_examined_and_compared_with_none() -> None:
    result = check(collection_with([r for r in sound() if r["source"] == "llm"]))
    assert (result.reference, result.sources, result.is_compared, result.fair) == (
        "",
        ("llm",),
        False,
        False,
    )
    assert [r.name for r in result.faults if r.source == "llm"] == [
        "refusals",
        "boilerplate openings",
        "cut-off endings",
        "empty texts",
        "duplicate texts",
    ]
    assert check_sentence(result).startswith("Nothing is compared: only source 'llm' is left")


def test_some_never_reads_as_none_nor_as_all() -> None:
    shares = {
        0: "0.0 %",
        0.04: "< 0.1 %",
        0.05: "0.1 %",
        9.96: "10.0 %",
        99.96: "> 99.9 %",
        100: "100.0 %",
    }
    assert {share: percent(share) for share in shares} == shares


@pytest.mark.data
def test_nfcorpus_is_a_fair_comparison_with_known_blemishes(shared_data: Path) -> None:
    result = check(load(shared_data / "cocktail-nfcorpus", ignore_unknown=True))
    expected = {
        "pairs missing a side": (0, 3633),
        "identical pairs": (2, 3633),
        "boilerplate openings": (18, 3633),
        "shared titles": (3633, 3633),
        "one-sided judgments": (0, 12334),
    }
    assert result.fair
    assert {r.name: (r.count, r.total) for r in result.faults if r.name in expected} == expected
    assert row(result, "length ratio").value == pytest.approx(0.87, abs=0.01)
    # Some 1.6 % of the human texts break off, and 1.1 % come twice: that spoils the same pairs.
    assert {r.name for r in result.of("warning")} == {
        "shared titles",
        "length ratio",
        "cut-off endings",
        "duplicate texts",
    }


POOLED = {name: grades for name, grades in judged().items() if int(name[1:]) < 7}
"""Judgments of the first eight documents only."""


def pooled_docs(*, labelled: bool = True) -> Docs:
    """All human documents, the rewrites of the first eight, and a column that says so."""
    first = {f"p{n}-human" for n in range(8)}
    return [
        {**row, "pool": row["origin"] in first if labelled or row["source"] == "human" else None}
        for row in sound()
        if row["source"] == "human" or row["origin"] in first
    ]


def test_documents_outside_the_pool_miss_no_twin_those_in_it_do_and_no_pool_excuses_another() -> (
    None
):
    for labelled in (True, False):
        result = check(collection_with(pooled_docs(labelled=labelled), POOLED))
        fault = row(result, "pairs missing a side")
        assert (fault.count, fault.total, fault.value, fault.verdict) == (0, 8, 0.0, "ok")
        assert fault_note(fault) == "12 documents outside the pool have no twin, by design"
        assert result.fair
    for gone, left in (("p3-llm", "p3-human"), ("p3-human", "p3-llm")):
        docs = [row for row in pooled_docs() if row["id"] != gone]
        fault = row(check(collection_with(docs, POOLED)), "pairs missing a side")
        assert (fault.count, fault.total, fault.examples, fault.verdict) == (1, 8, (left,), "void")
    fault = row(check(collection_with(pooled_docs())), "pairs missing a side")
    assert (fault.count, fault.total, fault.verdict) == (12, 20, "void")
    assert fault_note(fault) == (
        "12 outside the pool are relevant to a query and count as missing; include these "
        "queries when you pool"
    )
    third_side = [
        {**row, "id": row["id"].replace("llm", "gpt"), "source": "gpt", "pool": None}
        for row in sound()
        if row["source"] == "llm" and row["id"] not in ("p15-llm", "p16-llm", "p17-llm")
    ]
    result = check(collection_with([*pooled_docs(), *third_side], POOLED))
    llm, gpt = (row(result, "pairs missing a side", source) for source in ("llm", "gpt"))
    assert (llm.count, llm.total) == (0, 8)
    assert (gpt.count, gpt.total, fault_note(gpt)) == (3, 20, "")


LONG = [f"word{n}" for n in range(60)]


def checked(human: Any, llm: Any, **more: Any) -> CheckResult:
    """Check pairs whose texts two functions of the pair's number make."""
    docs = versions({"human": map(human, range(PAIRS)), "llm": map(llm, range(PAIRS))})
    docs = [{**row, "title": f"Page {n % PAIRS}", **more} for n, row in enumerate(docs)]
    return check(collection_of(docs, {"q": "x"}, {"q": {"0-human": 1, "0-llm": 1}}))


def prefixed(n: int, start: str = "Page {}") -> str:
    return f"{start.format(n)} is about {' '.join(LONG[n : n + 9])}."


def bare(n: int) -> str:
    return prefixed(n, "It")


def cut(n: int, count: int = 49) -> str:
    return f"{' '.join(LONG[:count])} end{n}."


def free(n: int) -> str:
    return cut(n, 20 + n)


@pytest.mark.parametrize(
    ("name", "human", "llm", "value", "reference", "note"),
    [
        ("title prefixes", prefixed, bare, 0.0, 100.0, ""),
        ("title prefixes", prefixed, prefixed, 100.0, 100.0, ""),
        ("texts cut short", cut, free, 0.0, 100.0, "human at 50 words"),
        ("texts cut short", free, cut, 100.0, 0.0, "llm at 50 words"),
        ("texts cut short", cut, cut, 100.0, 100.0, "human at 50 words; llm at 50 words"),
        ("texts cut short", free, free, 0.0, 0.0, ""),
    ],
)
def test_titles_or_cuts_favour_one(
    name: str, human: Any, llm: Any, value: float, reference: float, note: str
) -> None:
    result = row(checked(human, llm), name)
    assert (result.value, result.reference, fault_note(result), result.total) == (
        value,
        reference,
        note,
        PAIRS,
    )
    assert result.verdict == ("ok" if value == reference else "warning")
    if name == "title prefixes":
        aside = row(checked(human, llm, title="", page_title="Page"), name)
        assert (aside.value, aside.reference) == (value, reference), (
            "a title that is set aside counts too"
        )


def docs(*rows: dict[str, str | None]) -> pl.DataFrame:
    return pl.DataFrame(
        [{"title": "", "origin": row["id"], **row} for row in rows], infer_schema_length=None
    )


def test_a_text_begins_with_its_title_or_that_of_its_origin() -> None:
    for title, text, expected in (
        ("Red apples", "red APPLES", True),
        ("Red apples (fruit)", "Red apples ( fruit ) grow", True),
        ("Red apples", "Red applesauce", False),
        ("Red apples", "The red apples", False),
        ("Cafe\u0301", "Café noir", True),
        ("“Red”", "Red is a colour", True),
        ("  ", "Red apples grow", None),
        ("?!", "?! is no title", None),
    ):
        assert title_prefixed(docs({"id": "a", "title": title, "text": text})).to_list() == [
            expected
        ]
    table = docs(
        {"id": "a", "text": "Red apples grow", "title": "Red apples"},
        {"id": "a2", "text": "Apples that are red grow", "origin": "a"},
        {"id": "a3", "text": "Red apples are grown", "origin": "a"},
        {"id": "a4", "text": "Green apples are grown", "origin": "a", "title": "Green apples"},
        {"id": "b2", "text": "Red apples", "origin": "not there"},
    )
    assert title_prefixed(table).to_list() == [True, False, True, True, None]


def lengths(*parts: tuple[int, int]) -> pl.Series:
    return pl.Series("words", [n for n, times in parts for _ in range(times)], dtype=pl.Int64)


@pytest.mark.parametrize(
    ("counts", "limit"),
    [
        (lengths((200, 95), (150, 3), (80, 2)), 200),
        (lengths((200, 90), (205, 4), (80, 6)), 200),  # few may be longer
        (lengths((200, 80), *[(250 + n, 1) for n in range(20)]), None),  # a fifth is longer
        (lengths((200, 4), (10, 3)), None),  # four texts are no pile
        (lengths((19, 100)), None),  # short texts, not cut ones
        # ten of a thousand are no pile, though they are many more than their neighbours
        (lengths((500, 10), *[(20 + n, 10) for n in range(99)]), None),
        (lengths((500, 20), *[(20 + n, 10) for n in range(98)]), 500),
        (lengths((20, 100)), 20),
        (lengths((200, 50), (199, 10), (40, 40)), 200),
        (lengths((200, 49), (199, 10), (40, 40)), None),  # a pile has five times as many
    ],
)
def test_a_cut_is_a_pile_at_the_top(counts: pl.Series, limit: int | None) -> None:
    assert cut_at(counts) == limit


@given(st.integers(40, 200), st.integers(0, 2**32 - 1))
def test_every_cut_of_long_texts_is_found(limit: int, seed: int) -> None:
    drawn = np.random.default_rng(seed).integers(20, 400, 500)
    assert cut_at(pl.Series(np.minimum(drawn, limit))) == limit


def test_a_fault_of_the_reference_spoils_the_same_pairs() -> None:
    docs = [
        {**doc, "text": ""} if doc["source"] == "human" and n < 12 else doc
        for n, doc in enumerate(sound())
    ]
    fault = row(check(collection_with(docs)), "empty texts")
    assert (fault.count, fault.reference, fault.verdict) == (0, 60.0, "warning")


def test_texts_that_stop_at_different_lengths_on_both_sides_are_a_warning() -> None:
    fault = row(checked(cut, lambda n: cut(n, 29)), "texts cut short")
    assert (fault.value, fault.reference, fault.verdict) == (100.0, 100.0, "warning")
    assert fault_note(fault) == "human at 50 words; llm at 30 words"


def test_what_is_outside_of_a_bound_does_not_read_as_the_bound() -> None:
    fault = row(check(collection_with(sound())), "length ratio")
    for value, text in ((0.8984, "0.8984"), (0.9, "0.90"), (0.67, "0.67"), (0.6681, "0.6681")):
        assert replace(fault, value=value).shown_value == text
    for value, text in ((1.5004, "1.5004"), (1.5, "1.50"), (1.4996, "1.4996"), (1.52, "1.52")):
        assert replace(fault, value=value).shown_value == text
    fault = row(check(collection_with(sound())), "pairs missing a side")
    assert fault.limit == "≤ 10 %"
    for value, text in ((10.04, "10.04 %"), (9.96, "9.96 %"), (10.0, "10.0 %"), (0.01, "< 0.1 %")):
        assert replace(fault, value=value).shown_value == text
