"""Designed collections: their documents, judgments and files, and whether planted changes pass or
fail their checks.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt.data.collection import Collection
from ranktilt.errors import DataWarning, UserError
from ranktilt.generation.versions.checks import FactorCheck, ManipulationChecks
from ranktilt.generation.versions.factors import Factor, read_factors
from ranktilt.generation.versions.make import DesignedVersions, versions
from ranktilt.generation.versions.options import Crossing
from ranktilt.generation.versions.prices import price_versions
from ranktilt.generation.versions.rules import RuleContext
from ranktilt.generation.versions.save import save_versions
from ranktilt.generation.versions.table import versions_from_table
from ranktilt.llm.base import Failure
from tests.generation.scripted import GOOD, TEXTS, Scripted, good, humans
from tests.refusals import refused
from tests.toy import tsv, write

WORDS = [f"word{number}" for number in range(60)]


def plain(documents: int = 24) -> Collection:
    """Documents of two to five sentences of other words each, all relevant to one query or
    another.
    """
    rng = np.random.default_rng(0)
    texts = [
        " ".join(
            f"{' '.join(rng.choice(WORDS, int(rng.integers(4, 9))))} 1{n}."
            for _ in range(2 + n % 4)
        )
        for n in range(documents)
    ]
    docs = pl.DataFrame({"id": [f"d{n}" for n in range(documents)], "text": texts})
    queries = pl.DataFrame({"id": ["q0", "q1"], "text": ["word0 word1 zebra", "word2 lion"]})
    qrels = pl.DataFrame(
        [(f"q{n % 2}", f"d{n}", 1) for n in range(documents)],
        schema=["query_id", "doc_id", "grade"],
        orient="row",
    )
    return Collection(docs, queries, qrels)


def designed_by(
    names: str, collection: Collection | None = None, **options: Any
) -> DesignedVersions:
    return rt.versions(
        collection or humans(), names.split(","), rt.Crossing(**options), by_rule=True
    )


def test_each_document_is_there_once_a_run() -> None:
    designed = designed_by("length,facts").collection
    levels = {"d1": ("low", "low"), "d1+length": ("high", "low"), "d1+facts": ("low", "high")}
    levels["d1+facts+length"] = ("high", "high")
    first = designed.docs.filter(pl.col("origin") == "d1").select(
        "id", "factor:length", "factor:facts"
    )
    assert {id_: (length, facts) for id_, length, facts in first.iter_rows()} == levels
    assert designed.docs.height == 4 * 3
    assert designed.docs.filter(pl.col("id") == "d2")["text"].to_list() == [TEXTS["d2"]]
    assert designed.docs.select("source", "title").unique().sort("title").rows() == [
        ("human", f"On d{n}") for n in (1, 2, 3)
    ]
    texts = dict(designed.docs.select("id", "text").iter_rows())
    assert (
        texts["d1+length"]
        == "Vitamin C shortens a cold by half a day, as three large trials found."
    )
    assert texts["d1+facts+length"].count(".") == 1


def test_judgments_are_carried_over_but_not_where_facts_changed() -> None:
    designed = designed_by("length,facts").collection
    assert sorted(designed.qrels.rows()) == [
        ("q1", "d1", 2),
        ("q1", "d1+length", 2),
        ("q2", "d2", 1),
        ("q2", "d2+length", 1),
    ]
    assert (
        designed.spec["design"]["judgments"]
        == "carried over from the original, but not to versions with facts high"
    )


def test_the_design_is_written_down_and_read_again(tmp_path: Path) -> None:
    designed = designed_by("length,words,facts,fluency", design="8", seed=3).collection
    design = designed.spec["design"]
    assert {
        name: design[name] for name in design if name not in ("low_high", "judgments", "failed")
    } == {
        "kind": "factorial",
        "factors": ["length", "words", "facts", "fluency"],
        "generators": ["D=ABC"],
        "resolution": "IV",
        "runs": 8,
        "cells": None,
        "seed": 3,
    }
    assert list(design["low_high"]) == design["factors"]
    assert design["low_high"]["length"] == ["as is", "halved"]
    assert json.loads(json.dumps(design)) == design
    read = rt.load(rt.save(designed, tmp_path / "made"))
    assert (read, read.spec["design"]) == (designed, design)
    rows = rt.save(read, tmp_path / "rows", rows_per_file=5)
    assert rt.load(rows).spec["design"] == design
    write(tmp_path / "made" / "design.json", "[]")
    with pytest.raises(UserError, match=r"design\.json: expected the design of versions"):
        rt.load(tmp_path / "made")


def test_the_same_seed_makes_the_same_versions() -> None:
    def texts(seed: int) -> list[str]:
        return designed_by("fluency,facts", plain(), seed=seed).collection.docs["text"].to_list()

    assert texts(1) == texts(1) != texts(2)


def test_drawn_cells_are_documents_as_often_each() -> None:
    designed = designed_by("length,words,fluency", plain(), cells=3).collection
    counts = designed.docs.group_by("factor:length", "factor:words", "factor:fluency").len()["len"]
    assert (len(counts), counts.min(), counts.max()) == (8, 9, 9)
    assert designed.docs["origin"].value_counts()["count"].unique().to_list() == [3]


def test_rewrites_of_the_collection_are_a_factor(tmp_path: Path) -> None:
    docs = humans().docs
    rewrites = docs.head(2).with_columns(
        id=pl.format("{}-x", "id"), text=pl.lit("Other words. And more."), source=pl.lit("x")
    )
    collection = Collection(pl.concat([docs, rewrites]), humans().queries, humans().qrels)
    designed = designed_by("length,source", collection).collection
    rows = designed.docs.filter(pl.col("origin") == "d1").select("id", "source", "text").rows()
    assert rows[2:] == [
        ("d1+source", "x", "Other words. And more."),
        ("d1+source+length", "x", "Other words."),
    ]
    assert designed.docs["origin"].unique(maintain_order=True).to_list() == ["d1", "d2"], (
        "d3 has no rewrite"
    )
    assert designed.spec["design"]["low_high"]["source"] == ["as is", "rewritten"]
    of_source = designed_by("source:x", collection).collection
    assert of_source.spec["design"]["low_high"] == {"source": ["as is", "x"]}


def test_titles_are_changed_where_a_rule_says_so() -> None:
    docs = pl.DataFrame({"id": ["d1"], "title": ["A man"], "text": ["He slept."]})
    collection = Collection(docs, humans().queries, humans().qrels.clear())
    rows = (
        designed_by("gender,length", collection)
        .collection.docs.select("title", "text")
        .unique()
        .sort("title")
        .rows()
    )
    assert rows == [("A man", "He slept."), ("A woman", "She slept.")]


# Checks


def row(designed: DesignedVersions, factor: str, probe: str) -> FactorCheck:
    (check,) = (
        candidate
        for candidate in designed.checks.rows
        if (candidate.factor, candidate.probe) == (factor, probe)
    )
    return check


def planted(edit: Any, moves: dict[str, int], holds: tuple[str, ...] = ()) -> DesignedVersions:
    """A factor of a test, crossed with one by rule."""
    factor = Factor(
        name="own",
        high="changed",
        moves=moves,
        holds=holds,
        edit=lambda text, origin: edit(text),
    )
    return versions(plain(), (factor, *read_factors(["facts"], by_rule=True)))


def test_effects_are_means_of_origins_by_hand() -> None:
    designed = designed_by("length", plain(4))
    check = row(designed, "length", "words")
    texts = [len(text.split()) for text in plain(4).docs["text"]]
    halves = [
        len(designed.collection.docs.filter(pl.col("id") == f"d{n}+length")["text"][0].split())
        for n in range(4)
    ]
    assert (check.origins, check.low_mean, check.high_mean) == (4, np.mean(texts), np.mean(halves))
    spread = np.sqrt((np.var(texts, ddof=1) + np.var(halves, ddof=1)) / 2)
    assert check.g == pytest.approx((1 - 3 / 11) * (check.high_mean - check.low_mean) / spread)
    assert (check.expected, check.verdict) == ("down", "moved")


@pytest.mark.parametrize(
    ("edit", "moves", "holds", "verdicts"),
    [
        (lambda text: text, {"words": -1}, ("facts",), ("failed", "held")),
        (lambda text: f"{text} {text}", {"words": 1}, ("overlap",), ("moved", "held")),
        (lambda text: f"{text} {text}", {"words": -1}, ("type-token",), ("failed", "failed")),
        (lambda text: f"{text} {text}", {"words": 0}, ("words-again",), ("moved",)),
        (lambda text: text.upper(), {"overlap": -1}, ("words",), ("failed", "held")),
        (
            lambda text: "zebra " + text[len(text) // 4 :],
            {"query-words": 1},
            ("overlap",),
            ("moved", "failed"),
        ),
    ],
)
def test_planted_changes_pass_or_fail(
    edit: Any, moves: dict[str, int], holds: tuple[str, ...], verdicts: tuple[str, ...]
) -> None:
    designed = planted(edit, moves, holds)
    verdict_by_probe = {
        check.probe: check.verdict
        for check in designed.checks.rows
        if check.factor == "own" and check.expected
    }
    assert (
        tuple(verdict_by_probe[probe] for probe in (*moves, *holds) if probe in verdict_by_probe)
        == verdicts
    )
    failed = ["own"] if "failed" in verdicts else []
    assert designed.collection.spec["design"]["failed"] == list(designed.checks.failed) == failed


def test_what_a_rule_changes_is_counted_and_what_nothing_shows_fails() -> None:
    designed = designed_by("gender,length", plain())
    assert designed.checks.changed == {"gender": 0.0, "length": 1.0}
    assert designed.checks.failed == ("gender",)
    assert row(designed, "gender", "gender").verdict == "failed"
    assert np.isnan(row(designed, "gender", "gender").g)
    assert row(designed, "gender", "words").g == 0


def test_swapped_words_move_perplexity_only_where_order_can_be_learned() -> None:
    phrases = [
        "the cat sat on the old mat",
        "a dog ran around the red barn",
        "two birds sang in a green tree",
    ]
    texts = [f"{phrases[n % 3]} and {phrases[(n + 1) % 3]} item{n}." for n in range(24)]
    docs = pl.DataFrame({"id": [f"d{n}" for n in range(24)], "text": texts})
    designed = designed_by("fluency", Collection(docs, plain().queries, plain().qrels))
    assert (row(designed, "fluency", "perplexity").verdict, designed.checks.failed) == ("moved", ())
    checks = [row(designed, "fluency", probe) for probe in ("words", "overlap")]
    assert [(check.high_mean - check.low_mean, check.verdict) for check in checks] == [
        (0, "held"),
        (0, "held"),
    ]
    assert designed_by("fluency", plain()).checks.failed == ("fluency",)


def test_checks_are_read_back(tmp_path: Path) -> None:
    checks = designed_by("length", plain()).checks
    assert ManipulationChecks.load(checks.save(tmp_path / "checks.json")) == checks


# Models


@pytest.mark.usefixtures("own_cache")
def test_a_model_writes_the_high_level_and_rules_change_what_it_wrote() -> None:
    llm = Scripted()
    designed = versions(
        humans(), read_factors(["length"], by_rule=True) + read_factors(["source"]), llm=llm
    )
    rows = (
        designed.collection.docs.filter(pl.col("origin") == "d1")
        .select("id", "source", "text")
        .rows()
    )
    assert rows[2:] == [
        ("d1+source", "tiny", GOOD["d1"]),
        (
            "d1+source+length",
            "tiny",
            "Three large studies showed that colds end half a day sooner with vitamin C.",
        ),
    ]
    assert len(llm.prompts) == 3
    assert [
        (summary.source, summary.rewritten, summary.fresh) for summary in designed.summaries
    ] == [("source", 3, 3)]
    assert designed.answers.select("id", "source").rows() == [
        (f"d{n}", "source") for n in (1, 2, 3)
    ]
    assert designed.spec["llm"]["model"] == "lab/tiny"
    again = versions(
        humans(),
        read_factors(["source", "words"])[:1] + read_factors(["words"]),
        llm=(second := Scripted()),
    )
    assert (len(second.prompts), again.summaries[0].fresh) == (0, 0)


@pytest.mark.usefixtures("own_cache")
def test_what_has_no_good_answer_is_left_out_with_what_would_be_made_of_it(tmp_path: Path) -> None:
    def says(prompt: str, times: int) -> Any:
        if TEXTS["d2"] in prompt:
            return Failure(kind="unavailable", message="down")
        return (
            "I'm sorry, but I cannot rewrite this."
            if TEXTS["d3"] in prompt
            else good(prompt, times)
        )

    factors = read_factors(["source", "words"])
    designed = versions(humans(), factors, llm=Scripted(says))
    assert set(designed.collection.docs["id"]) == {
        "d1",
        "d1+words",
        "d1+source",
        "d1+source+words",
        "d2",
        "d2+words",
        "d3",
        "d3+words",
    }
    assert designed.left_out.select("id", "source", "reason").rows() == [
        ("d2", "source", "unanswered"),
        ("d3", "source", "flagged"),
    ]
    assert designed.unanswered == 1
    saved = save_versions(designed, tmp_path / "made")
    assert rt.load(saved.folder) == designed.collection
    uninterrupted = versions(humans(), factors, llm=Scripted())
    save_versions(uninterrupted, saved.folder)
    assert rt.load(saved.folder).docs.height == 10, (
        "d2 is answered; d3 was asked for as often as it may be"
    )


@pytest.mark.usefixtures("own_cache")
def test_prices_count_the_versions_that_each_prompt_makes() -> None:
    factors = read_factors(["source", "style", "words"])
    rows = price_versions(humans(), factors, Crossing(), Scripted(), price=(1.0, 1.0))
    assert [(row.name, row.texts, row.estimate.requests) for row in rows] == [
        ("source", 3, 3),
        ("style", 6, 3),
    ]
    assert [row.price for row in rows] == [
        rows[0].estimate.price,
        pytest.approx(2 * (rows[1].estimate.price or 0)),
    ]


@pytest.mark.usefixtures("own_cache")
def test_few_cells_may_lack_a_prompts_level() -> None:
    names = ["style", "words", "gender", "facts", "query-words"]
    crossing = Crossing(first=1, cells=2, design="16", seed=32)
    designed = versions(humans(), names, crossing, llm=Scripted())
    assert designed.collection.docs["factor:style"].to_list() == ["low", "low"]
    assert price_versions(humans(), read_factors(names), crossing, Scripted()) == []


def test_a_folder_is_replaced_as_a_whole_and_other_splits_are_judged_too(tmp_path: Path) -> None:
    folder = rt.save(humans(), tmp_path / "in")
    write(folder / "qrels" / "train.tsv", tsv([("q2", "d3", 1)]))
    designed = designed_by("length,facts", rt.load(folder))
    saved = save_versions(designed, tmp_path / "out")
    assert saved.splits == ("test", "train")
    assert rt.load(saved.folder, split="train").qrels["doc_id"].to_list() == ["d3", "d3+length"]
    card = (saved.folder / "README.md").read_text()
    assert "12 versions of 3 documents: a factorial design of 4 runs" in card
    save_versions(designed_by("length", rt.load(folder), first=1), saved.folder)
    card = (saved.folder / "README.md").read_text()
    assert "2 versions of 1 document: a factorial design of 2 runs" in card
    save_versions(designed_by("words", rt.load(folder)), saved.folder)
    assert rt.load(saved.folder).spec["design"]["factors"] == ["words"]


# Factors of one's own


def test_own_functions_and_prompts_are_factors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    code = (
        "def loud(text):\n    return text.upper() + '!'\nloud.moves = {'words': 0}\n"
        "loud.holds = ('facts',)\n"
    )
    write(tmp_path / "my_edits.py", code + "def broken(text):\n    return 5\n")
    prompt = write(tmp_path / "warm.txt", "Warm up: {text}")
    (loud, warm) = read_factors(["my_edits:loud", str(prompt)])
    assert (loud.name, loud.by, loud.moves, loud.holds) == (
        "loud",
        "rule",
        {"words": 0},
        ("facts",),
    )
    assert loud.edit is not None
    assert loud.edit("a", RuleContext(id="d1")) == "A!"
    assert (warm.name, warm.by, warm.prompt) == ("warm", "model", str(prompt))
    with refused("factor 'my_edits:broken': expected a text for document 'd1', got 5"):
        versions(humans(), read_factors(["my_edits:broken"]))


# Tables

ROWS = [
    ("origin", "length", "tone", "text", "query_id", "query", "grade"),
    ("a", "low", "calm", "One. Two.", "q1", "one", "1"),
    ("a", "high", "calm", "One.", "q1", "one", "1"),
    ("a", "low", "loud", "ONE. TWO.", "q1", "one", "0"),
    ("a", "high", "loud", "ONE.", "q1", "one", "1"),
    ("a", "high", "odd", "?", "q1", "one", "1"),
    ("b", "low", "calm", "Three. Four.", "q2", "three", "2"),
]


def lines(rows: list[tuple[str, ...]]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


def test_versions_of_a_table_are_a_designed_collection(tmp_path: Path) -> None:
    file = write(tmp_path / "versions.tsv", lines(ROWS))
    with pytest.warns(DataWarning, match="1 row is left out: 'tone' is neither 'calm' nor 'loud'"):
        designed = versions_from_table(file, ["length", "tone"], {"tone": ("calm", "loud")})
    assert designed.collection.docs["id"].to_list() == [
        "a",
        "a+length",
        "a+tone",
        "a+length+tone",
        "b",
    ]
    assert designed.collection.qrels.rows() == [
        ("q1", "a", 1),
        ("q1", "a+length", 1),
        ("q1", "a+tone", 0),
        ("q1", "a+length+tone", 1),
        ("q2", "b", 2),
    ]
    design = designed.collection.spec["design"]
    assert (design["kind"], design["runs"], design["resolution"], design["low_high"]) == (
        "given",
        4,
        "full",
        {"length": ["low", "high"], "tone": ["calm", "loud"]},
    )
    saved = save_versions(designed, tmp_path / "made")
    assert rt.load(saved.folder) == designed.collection


def test_versions_take_the_judgments_of_a_collection_by_origin(tmp_path: Path) -> None:
    rows = [
        ("origin", "facts", "text"),
        ("d1", "low", "so"),
        ("d1", "high", "not so"),
        ("d9", "low", "other"),
    ]
    file = write(tmp_path / "versions.tsv", lines(rows))
    designed = versions_from_table(file, ["facts"], collection=humans()).collection
    assert designed.qrels.rows() == [("q1", "d1", 2)]
    assert designed.queries.height == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"factors": []},
            (
                "versions.tsv: expected the columns origin, text and one a factor (--factors); "
                "missing:"
            ),
        ),
        (
            {"factors": ["size"]},
            "versions.tsv: expected the columns origin, text and size; missing: size",
        ),
        (
            {"factors": ["tone"]},
            "versions.tsv: column 'tone' has the values calm, loud and odd, not low or high; name "
            "the low and the high "
            "one: --factor tone=LOW,HIGH",
        ),
        ({"levels": {"size": ("a", "b")}}, "--factor size: no such factor (--factors length)"),
        ({"factors": ["length", "length"]}, "factor 'length' is given twice"),
        ({}, "versions.tsv: origin 'a' has two versions in one cell, 'a'"),
        (
            {"rows": [row[:4] for row in ROWS[:3]]},
            (
                "versions.tsv: expected queries, in columns query_id and query, or a collection; "
                "missing: query_id"
            ),
        ),
        (
            {"rows": [*ROWS[:2], (*ROWS[2][:6], "high")]},
            "versions.tsv: expected numbers in column 'grade'",
        ),
        (
            {"rows": ROWS[:3], "collection": humans()},
            "versions.tsv: no origin is judged in the collection",
        ),
    ],
)
def test_tables_that_are_no_versions_are_refused(
    change: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "versions.tsv", lines(change.pop("rows", ROWS)))
    with pytest.raises(UserError) as caught:
        versions_from_table(
            "versions.tsv", change.pop("factors", ["length"]), change.pop("levels", None), **change
        )
    assert str(caught.value).startswith(message)


# Refusals


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            "",
            (
                "expected a factor (valid: source, facts, words, gender, length, position, "
                "repetition, query-words, fluency, style), got none"
            ),
        ),
        (
            "lenght",
            (
                "unknown factor 'lenght'; did you mean 'length'? (valid: source, facts, words, "
                "gender, "
                "length,"
            ),
        ),
        ("length,length", "factor 'length' is given twice"),
        ("style", "factor 'style' has no rule: leave out --by-rule and name a model, --llm"),
        ("no_such:edit", "factor 'no_such:edit': nothing to import in "),
        ("json:__doc__", "factor 'json:__doc__': expected a function f(text), got 'JSON"),
        ("gone.txt", "factor 'gone.txt' is a prompt: leave out --by-rule"),
        (
            "source",
            (
                "factor 'source' by rule takes the collection's own rewrites, and it has no other "
                "source"
            ),
        ),
        ("source:gpt", "unknown source 'gpt' (valid: none)"),
    ],
)
def test_factors_that_are_none_are_refused(names: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        designed_by(names)
    assert str(caught.value).startswith(message)


def test_collections_that_cannot_be_designed_are_refused() -> None:
    with pytest.raises(UserError, match="unknown source 'gpt'"):
        designed_by("length", of="gpt")
    with refused(
        "this collection already has a design: its documents have a column 'factor:length'"
    ):
        designed_by("words", designed_by("length").collection)
    docs = humans().docs.with_columns(origin=pl.lit("d1"))
    with refused("documents 'd1' and 'd2' of source 'human' have the same origin, 'd1'"):
        designed_by("length", Collection(docs, humans().queries, humans().qrels))
    with refused("factor 'source' needs a language model: name one (--llm), or use --by-rule"):
        versions(humans(), read_factors(["source"]))
    with refused("every factor is made by rule: leave out the language model (--llm)"):
        versions(humans(), read_factors(["length"], by_rule=True), llm=Scripted())
    with refused("versions: expected cells of at least 2, got 1"):
        designed_by("length", cells=1)
