"""The card as printed: every number is the audit's, in every format, with what it means beside it."""

import csv
import io
import re
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import Audit, Collection, audit, table
from ranktilt.measures.base import estimand
from ranktilt.reporting.card import card_legend, conflict_sentences, lines
from tests.effects import ASKED
from tests.reporting.audits import clear, ordered, three, twins, uneven
from tests.toy import run_of, toy

SCORES = {
    "q1": {"d1-human": 3.0, "d1-llm": 2.0, "d3-llm": 2.0, "d2-human": 1.0, "d3-human": 1.0},
    "q2": {"d1-llm": 5.0, "d2-llm": 4.0, "d2-human": 3.0},
    "q3": {"d3-human": 2.0, "d3-llm": 2.0, "d1-human": 1.0},
}


@cache
def small(*, judged: bool = True, order: str = "score") -> Audit:
    plain = toy()
    collection = plain if judged else Collection(plain.docs, plain.queries, plain.qrels.clear())
    run = run_of(collection, SCORES, ranker="hand", score_order=order)
    return audit(collection, run, "nDCG@1" if judged else None, card=True, page=3)


@cache
def torn() -> Audit:
    """Human text fills the page, LLM text stands above its twin."""
    collection = twins(40)
    names = collection.docs.filter(pl.col("source") == "human")["id"].to_list()
    scores = {
        f"q{n}": {f"{n}-llm": 50.0, f"{n}-human": 49.0, **{names[(n + m) % 40]: 40.0 - m for m in range(1, 11)}}
        for n in range(40)
    }
    return audit(collection, run_of(collection, scores, ranker="torn"), "nDCG@1", card=True, resamples=500)


@pytest.mark.parametrize(
    ("kind", "value", "printed"),
    [
        ("relative delta", 12.34, "+12.3 %"),
        ("page", -0.0504, "−.050"),
        ("page", 1.0, "+1.000"),
        ("page", 0.00001, ".000"),
        ("relevant twins", -0.25, "−25.0 %"),
        ("twins", 0.0, "0.0 %"),
        ("rank gap", -3.25, "−3.2 ranks"),
        ("score gap", 0.5, "+.500 sd"),
        ("score gap", 10.5, "+10.500 sd"),
        ("score gap", -20.25, "−20.250 sd"),
        ("page", np.nan, "–"),
        ("score gap", np.nan, "–"),
        ("twins", np.nan, "–"),
    ],
)
def test_an_answer_has_its_sign_and_unit(kind: str, value: float, printed: str) -> None:
    asked = estimand(ASKED[kind])
    assert asked.answer(value) == printed
    assert asked.amount(value) == printed.split()[0]


def grid(found: Audit) -> list[list[str]]:
    """Rows of the card in Markdown: ranker, question, answer, interval, p, favours, from."""
    block = next(part for part in table(found, "markdown").split("\n\n") if part.startswith("| ranker | question"))
    return [[c.strip().replace("\\", "") for c in line[2:-2].split(" | ")] for line in block.splitlines()[2:]]


class TestMarkdown:
    def test_by_hand(self) -> None:
        assert [row[1:] for row in grid(small())] == [
            ["Relative Δ nDCG@1: is the right answer higher on one side?", "+100.0 %", "[0.0, +200.0]", "1.000", "–",
             "3 queries"],
            ["ΔNDSR@3: who fills the page, relevant or not?", "−.119", "[−.531, +.235]", "1.000", "–", "3 queries"],
            ["head-to-head, relevant twins: which twin of a right answer is above?", "−25.0 %", "[−100.0, 0.0]",
             "1.000", "–", "4 pairs: human 1, llm 2, tied 1; 3 queries"],
            ["head-to-head, other twins: and which twin of all other documents?", "+33.3 %", "[−100.0, +100.0]",
             "1.000", "–", "3 pairs: human 2, llm 1, tied 0; 3 queries"],
            ["pair rank gap: by how many ranks is the twin above?", "−0.4 ranks", "[−1.0, 0.0]", "1.000", "–",
             "4 pairs, 0 % of sides not retrieved; 3 queries"],
            ["score gap: how far apart are the twins' scores?", "−.306 sd", "[−1.225, .000]", "1.000", "–",
             "4 pairs with both sides retrieved, raw −0.25; 3 queries"],
        ]  # fmt: skip
        assert [row[0] for row in grid(small())] == ["hand", "", "", "", "", ""]

    def test_without_judgments_there_is_a_card_and_no_table_of_means(self) -> None:
        text = table(small(judged=False), "markdown")
        assert text.startswith("| ranker | question | answer | 95 % interval | p | favours | from |\n")
        assert [row[1].split(":")[0] for row in grid(small(judged=False))] == [
            "ΔNDSR@3", "head-to-head", "pair rank gap, summed per query", "score gap"
        ]  # fmt: skip
        assert "Means" not in text

    def test_a_run_without_scores_says_so(self) -> None:
        *_, last = grid(small(order="rank"))
        assert last[1:] == [
            "score gap: how far apart are the twins' scores?", "–", "–", "–", "–", "no pair with two scores"
        ]  # fmt: skip

    def test_pairs_retrieved_whole_are_told_where_they_are_not_all(self) -> None:
        (_, twins, *_) = grid(small(judged=False))
        assert twins[-1] == (
            "7 pairs: human 3, llm 3, tied 1; 3 queries; of 4 with both sides retrieved: human 25.0 %, llm 50.0 %"
        )  # fmt: skip

    def test_what_is_favoured_is_named(self) -> None:
        rows = {row[1].split(":")[0]: row for row in grid(torn())}
        assert rows["ΔNDSR@20"][5] == "human"
        assert rows["head-to-head, relevant twins"][2:6] == ["−100.0 %", "[−100.0, −100.0]", ".010", "llm"]
        assert rows["score gap"][5] == "–"  # it only describes

    def test_every_run_and_pair_has_its_rows(self) -> None:
        collection = twins(30, ("human", "llama", "gpt"))
        runs = [ordered(collection, [("human", "gpt", "llama")] * 30, name) for name in ("one", "two")]
        found = audit(collection, runs, "RR", card=True, resamples=200)
        names = [row[0] for row in grid(found) if row[0]]
        pairs = ("human and gpt", "human and llama", "gpt and llama")
        assert names == [f"{run}, {pair}" for run in ("one", "two") for pair in pairs]
        assert len(grid(found)) == 6 * 6

    def test_groups_that_are_no_twins_show_their_level_and_random_band(self) -> None:
        base = uneven()
        collection = twins(40, ("human",))
        scores = {f"q{n}": {f"{m}-human": 1.5 * (m % 2) - (m - n) % 40 for m in range(40)} for n in range(40)}
        docs = collection.docs.with_columns(
            side=pl.when(pl.int_range(40) < 30).then(pl.lit("a")).otherwise(pl.lit("b"))
        )
        collection = Collection(docs, collection.queries, collection.qrels)
        found = audit(collection, run_of(collection, scores, ranker="r"), "AP", by="side", card=True, resamples=200)
        page = grid(found)[1]
        (e,) = (e for e in found.estimates if e.estimand.key == "page")
        assert base.estimates == ()
        assert page[3].endswith(f"] random [{e.estimand.amount(e.band_low)}, {e.estimand.amount(e.band_high)}]")
        assert page[6] == "40 queries; level +.500, the middle of the random band"


class TestOtherFormats:
    @pytest.mark.parametrize("judged", [True, False])
    def test_latex_holds_the_same_cells(self, judged: bool) -> None:
        found = small(judged=judged)
        text = table(found, "latex")
        body = text.split(r"\begin{tabular}{llrrrll}")[1].split(r"\end{tabular}")[0]
        printed = [line for line in body.splitlines() if line.endswith(r"\\")][1:]
        marks = {"$-$": "−", r"$\Delta$": "Δ", r"\%": "%", "--": "–", r"$\pm$": "±"}
        for line, cells in zip(printed, grid(found), strict=True):
            for tex, plain in marks.items():
                line = line.replace(tex, plain)
            assert line.removesuffix(r" \\").split(" & ")[1:] == cells[1:]

    def test_csv_has_a_line_a_question_unrounded(self) -> None:
        found = small()
        rows = [r for r in csv.DictReader(io.StringIO(table(found, "csv"))) if r["row"] == "card"]
        assert [r["measure"] for r in rows] == [e.name for e in found.estimates]
        for row, e in zip(rows, found.estimates, strict=True):
            assert (row["run"], row["group"], row["queries"]) == ("hand", "human|llm", str(e.queries))
            for column in ("value", "low", "high", "p", "p_corrected", "detectable", "level"):
                assert float(row[column]) == getattr(e, column)
            for count, value in e.parts.items():
                if count != "shares":
                    assert float(row[count]) == value

    def test_csv_without_judgments(self) -> None:
        rows = list(csv.DictReader(io.StringIO(table(small(judged=False), "csv"))))
        assert {r["row"] for r in rows} == {"card"}
        assert [float(r["value"]) for r in rows] == [e.value for e in small(judged=False).estimates]

    def test_the_plain_page_has_two_lines_a_question(self) -> None:
        text = table(small())
        block = text.split("hand: the estimand card\n")[1].split("\n\n")[0].splitlines()
        assert len(block) == 12
        for line, e, (first, second) in zip(
            lines(small(), "hand", ("human", "llm")), small().estimates, zip(block[::2], block[1::2], strict=True),
            strict=True,
        ):  # fmt: skip
            assert re.split(r"\s{3,}", first.strip()) == [e.name, line.answer, line.interval, f"p = {line.p}"]
            assert second.strip() == f"{e.estimand.question} {line.basis}"
        assert len({line.index("p = ") for line in block[::2]}) == 1

    def test_the_plain_page_names_what_is_favoured(self) -> None:
        assert "    who fills the page, relevant or not? favours human; 40 queries" in table(torn())

    def test_without_a_card_nothing_is_said_of_one(self) -> None:
        for form in ("table", "markdown", "latex", "csv"):
            text = table(clear(), form)
            assert "card" not in text.lower()
            assert "ΔNDSR" not in text


class TestWords:
    SENTENCE = (
        "torn: the answers conflict: ΔNDSR@20 and head-to-head, other twins point to human; Relative Δ nDCG@1 and "
        "head-to-head, relevant twins and pair rank gap point to llm. Say which question you ask before you say what "
        "this ranker favours."
    )

    @pytest.mark.parametrize(("form", "mark"), [("table", ""), ("markdown", "- "), ("latex", "% ")])
    def test_a_conflict_is_said_below_the_verdicts(self, form: str, mark: str) -> None:
        assert conflict_sentences(torn()) == [self.SENTENCE]
        printed = table(torn(), form).splitlines()
        at = printed.index(mark + self.SENTENCE)
        assert printed[at - 1] == mark + torn().verdict("torn").sentence

    def test_agreement_is_not(self) -> None:
        assert conflict_sentences(small()) == []
        assert conflict_sentences(three()) == []

    def test_the_legend_says_what_the_numbers_are(self) -> None:
        (legend,) = card_legend(small())
        assert legend in table(small())
        assert "+ favours human, − favours llm" in legend
        assert "Holm over the card's 5 tests, without the score gap" in legend
        assert card_legend(clear()) == []

    def test_the_legend_is_silent_about_rows_that_are_not_there(self) -> None:
        plain = toy().docs.with_columns(origin=pl.col("id"))
        alone = Collection(plain, toy().queries, toy().qrels.clear())
        found = audit(alone, run_of(alone, SCORES, ranker="hand"), card=True, page=3, resamples=200)
        assert [e.estimand.key for e in found.estimates] == ["page"]
        assert card_legend(found) == [
            "Card: + favours human, − favours llm. p: shuffled labels where groups are not twins; Holm over the card's "
            "1 test."
        ]

    def test_the_legend_names_the_tests_behind_the_rows(self) -> None:
        assert "Other p: sign flips and the same exchange, the larger one; Holm over" in card_legend(small())[0]
        collection = toy()
        run = run_of(collection, SCORES, ranker="hand")
        options: Any = {"card": True, "page": 3, "resamples": 200, "test": "t", "ties": "trec_eval"}
        text = card_legend(audit(collection, run, "nDCG@1", **options))[0]
        assert "Other p: sign flips (Relative Δ: paired t) and the same exchange, the larger one; Holm" in text
        assert text.endswith(" Ties are averaged in all rows but Relative Δ.")

    def test_undefined_ps_are_no_tests(self) -> None:
        assert "the card's 5 tests" in card_legend(small(order="rank"))[0]

    def test_without_judgments_the_legend_says_how_intervals_are_made(self) -> None:
        text = table(small(judged=False))
        assert "over queries, 10,000 resamples, for twins widened by what documents add. Ties: averaged.\n" in text
        assert "Relative Δ" not in text
        assert "permutation" not in text


def test_the_legend_names_the_exchange_where_twins_are_judged_by_it() -> None:
    plain = toy()
    docs = plain.docs.with_columns(side=pl.col("source").replace({"human": "one", "llm": "two"}))
    collection = Collection(docs, plain.queries, plain.qrels)
    run = run_of(collection, SCORES, ranker="r")
    [by_source], [by_side] = (
        card_legend(audit(collection, run, "nDCG@1", by=by, card=True, resamples=100)) for by in ("source", "side")
    )
    assert by_source == by_side.replace("one", "human", 1).replace("two", "llm", 1)
    assert "sign test over queries and of labels exchanged within origins, in all queries at once. Other" in by_side
