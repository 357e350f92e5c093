"""What else differs between two sources, and controls: what each takes from the texts, and how far
Relative Δ moves.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, UserError, audit, check
from ranktilt.auditing import confounds
from ranktilt.auditing.confounds import Confound
from ranktilt.auditing.controls.controls import CONTROLS, controls
from ranktilt.auditing.controls.result import RAW, Controlled, Move
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.grouping.pairs import twin_rows
from ranktilt.auditing.result import Audit
from ranktilt.data.faults.twin_likeness import twin_likeness
from ranktilt.rankers.base import FirstStage, Ranker, Rows, Scores
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.rankers.replay import Replay
from ranktilt.reporting.sentences.controls import control_change, control_meaning
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.statistics.correction import correct
from tests.toy import Table, collection_of, run_of, toy

SEEN: list[Collection] = []
"""Every collection that `Longest` was asked to rank."""


@dataclass(frozen=True)
class Longest(FirstStage):
    """Ranks by the number of words, the same for every query."""

    name: ClassVar[str] = "longest"
    note: str = field(default="", kw_only=True)

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        SEEN.append(collection)
        words = np.array([float(len(text.split())) for text in collection.texts(self.text)])
        for _ in range(collection.queries_with_judgments.height):
            yield np.arange(len(words)), words


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


Side = list[tuple[str, str]]
"""Title and text of each document."""


def twins(
    human: Side, llm: Side, queries: dict[str, str] | None = None, qrels: Table | None = None
) -> Collection:
    """Twins by position; unless told otherwise each pair is relevant to a query of its own."""
    docs = [
        {"id": f"{n}-{s}", "title": title, "text": text, "source": s, "origin": f"{n}-human"}
        for s, side in (("human", human), ("llm", llm))
        for n, (title, text) in enumerate(side)
    ]
    qrels = qrels or {f"q{n}": {f"{n}-human": 1, f"{n}-llm": 1} for n in range(len(human))}
    return collection_of(docs, queries or dict.fromkeys(qrels, "x"), qrels)


def controlled(
    collection: Collection, ranker: Ranker, *names: str, near: float = 0.95, **options: Any
) -> Audit:
    run = ranker.rank(collection)
    raw = audit(collection, run, **{"measures": "nDCG@1", "resamples": 200, **options})
    SEEN.clear()
    return controls(collection, [ranker], [run], raw, which=names or CONTROLS, near=near)


def rows(audit: Audit) -> dict[str, Controlled]:
    return {row.control: row for row in audit.controls}


def seen(source: str, column: str = "text") -> list[str]:
    docs = SEEN[-1].docs
    return docs.filter(pl.col("source") == source)[column].to_list()


_LONE = [{"id": source, "text": "x y.", "source": source} for source in ("human", "llm")]
LONE = collection_of(_LONE, {"q": "x"}, {"q": {"human": 1, "llm": 1}})
"""Two documents that are no twins."""


class TestLength:
    HUMAN: ClassVar[Side] = [
        ("T", "one two  three\nfour five"),
        ("", "a b"),
        ("", "same length here"),
    ]
    LLM: ClassVar[Side] = [("T", "six seven eight"), ("", "c d e\tf"), ("", "and  here too")]

    def test_every_text_has_the_words_of_its_shortest_twin(self) -> None:
        controlled(twins(self.HUMAN, self.LLM), Longest(), "length")
        assert seen("human") == ["one two three", "a b", "same length here"]
        assert seen("llm") == ["six seven eight", "c d", "and  here too"]
        assert seen("human", "title") == ["T", "", ""]

    def test_a_tilt_that_was_length_is_gone(self) -> None:
        human, llm = [("", "w " * (n + 8)) for n in range(8)], [("", "w " * 4) for _ in range(8)]
        controls_by_name = rows(
            controlled(twins(human, llm), Longest(), "length", measures=["RR", "nDCG@1"])
        )
        raw, after = controls_by_name[RAW].tilts[0], controls_by_name["length"].tilts[0]
        # Raw: human documents hold ranks 1 to 8, by length; then eight LLM documents tie at ranks 9
        # to 16.
        mean_rr = np.mean([1 / r for r in range(1, 9)])
        tied = np.mean([1 / r for r in range(9, 17)])
        assert raw.value == pytest.approx(200 * (mean_rr - tied) / (mean_rr + tied))
        assert after.value == 0
        move = controls_by_name["length"].moves[0]
        assert move.value == pytest.approx(-raw.value)
        assert move.is_shown
        assert (move.queries, control_change(controls_by_name["length"].control_change)) == (
            8,
            "8 of 16 documents changed",
        )

    def test_length_groups_use_raw_texts(
        self,
    ) -> None:
        lengths = (("human", 5), ("a", 4), ("b", 2))
        docs = [{"id": s, "text": "w " * n, "source": s, "origin": "human"} for s, n in lengths]
        docs.append({"id": "alone", "text": "v " * 9, "source": "b"})
        collection = collection_of(docs, {"q": "x"}, {"q": dict.fromkeys(("human", "a", "b"), 1)})
        controlled(collection, Longest(), "length")
        assert [len(text.split()) for text in SEEN[-1].docs["text"]] == [2, 2, 2, 9]
        human, llm = ([("", "w " * (n + more)) for n in range(6)] for more in (20, 2))
        collection = twins(human, llm)
        result = controlled(collection, Longest(), "length", by="length:2", measures="RR")
        assert result.pairs == (("2 to 7 words", "20 to 25 words"),)
        raw, after = rows(result)[RAW].tilts[0], rows(result)["length"].tilts[0]
        assert (raw.value < 0, after.value) == (True, 0)
        assert (after.a, after.b) == ("2 to 7 words", "20 to 25 words")


class TestBoilerplate:
    def test_openings_are_gone_and_all_else_stays(self) -> None:
        llm = [("", "Sure! Here is the rewritten text:\n\nA b c."), ("", "Here we show  that.")]
        result = controlled(twins([("", "A b c."), ("", "x " * 6)], llm), Longest(), "boilerplate")
        assert seen("llm") == ["A b c.", "Here we show  that."]
        assert (
            control_change(rows(result)["boilerplate"].control_change) == "1 of 4 documents changed"
        )
        # The nine words of the first LLM text stood above the six of the second human one.
        assert (rows(result)[RAW].tilts[0].value, rows(result)["boilerplate"].tilts[0].value) == (
            -200,
            200,
        )


class TestTitles:
    def test_shared_titles_are_removed_for_rankers_that_read_them(self) -> None:
        human = [("Both", "x"), ("One", "y"), ("", "z")]
        llm = [("Both", "x"), ("Other", "y"), ("", "z")]
        result = controlled(twins(human, llm), Longest(), "titles")
        assert seen("human", "title") == ["", "One", ""]
        assert seen("llm", "title") == ["", "Other", ""]
        assert control_change(rows(result)["titles"].control_change) == "2 of 6 documents changed"
        result = controlled(twins([("T", "x y")], [("T", "z")]), Longest(text="text"), "titles")
        assert SEEN == []
        assert (
            control_change(rows(result)["titles"].control_change)
            == "nothing to change; raw values apply (2 of 2 documents changed)"
        )
        assert rows(result)["titles"].tilts[0].value == rows(result)[RAW].tilts[0].value == 200
        (move,) = rows(result)["titles"].moves
        assert (move.value, move.low, move.high, move.is_shown) == (0, 0, 0, False)


class TestNearIdentical:
    HUMAN: ClassVar[Side] = [("", "a b c d"), ("", "same text"), ("", "w w w w w w"), ("", "k l m")]
    LLM: ClassVar[Side] = [("", "a b c e"), ("", "same text"), ("", "v"), ("", "K, l, m.")]

    def test_left_out_pairs_move_others_up_without_ranking_again(self) -> None:
        collection = twins(self.HUMAN, self.LLM)
        result = controlled(collection, Longest(), "near-identical", measures=["RR"])
        assert SEEN == []
        assert (
            control_change(rows(result)["near-identical"].control_change) == "2 of 4 pairs left out"
        )
        # Left are the human document of six words, two of four words in a tie, and the LLM document
        # of one word.
        after = rows(result)["near-identical"].tilts[0]
        assert (after.queries, after.mean_a, after.mean_b) == (
            2,
            pytest.approx((1 + (1 / 2 + 1 / 3) / 2) / 2),
            pytest.approx((1 / 4 + (1 / 2 + 1 / 3) / 2) / 2),
        )

        wider = controlled(collection, Longest(), "near-identical", near=0.6)
        assert (
            control_change(rows(wider)["near-identical"].control_change),
            wider.spec["near"],
        ) == (
            "3 of 4 pairs left out",
            0.6,
        )
        assert "Jaccard ≥ 0.6" in control_meaning(rows(wider)["near-identical"])

    def test_nothing_is_left_where_all_pairs_or_none_are_alike(self) -> None:
        side = [("", "a b"), ("", "c")]
        controls_by_name = rows(controlled(twins(side, side), Longest()))
        alike = controls_by_name["near-identical"]
        assert (alike.tilts, alike.moves) == ((), ())
        assert (
            control_change(alike.control_change)
            == "2 of 2 pairs left out; nothing is left to compare"
        )
        assert controls_by_name["length"].tilts[0].value == 0
        controls_by_name = rows(controlled(LONE, Longest()))
        assert [
            control_change(row.control_change)
            for name, row in controls_by_name.items()
            if name != RAW
        ] == ["no document has a twin"] * 5


class TestWhenARunIsRankedAgain:
    def test_controls_of_a_saved_run(self, tmp_path: Path) -> None:
        collection = twins(TestNearIdentical.HUMAN, TestNearIdentical.LLM)
        ranker = Replay(str(Longest().rank(collection).save(tmp_path / "run.trec")))
        result = controlled(collection, ranker, measures=["RR"])
        assert [row.control for row in result.controls] == ["raw", "near-identical"]
        assert (
            "run: a saved run cannot be ranked again; only near-identical applies to it"
            in note_sentences(result.notes)
        )
        ranked = rows(controlled(collection, Longest(), "near-identical", measures=["RR"]))
        assert (
            rows(result)["near-identical"].tilts[0].value == ranked["near-identical"].tilts[0].value
        )


HUMAN = [("", "w " * n) for n in (3, 6, 9, 12)]
LLM = [("", "w " * n) for n in (4, 2, 5, 11)]


def many_twins() -> Collection:
    """Forty pairs, no two texts of one length but where their order says so."""
    lengths = np.random.default_rng(4).permutation(160)[:80] + 2
    human, llm = ([("", "w " * int(n)) for n in side] for side in (lengths[:40], lengths[40:]))
    return twins(human, llm)


class TestStatistics:
    def test_margin_in_ranks_leaves_controls_of_relative_delta(self) -> None:
        options = {"primary": "RankGap", "margin": "0.5 ranks"}
        result = controlled(many_twins(), Longest(), "length", **options)
        (raw, length) = result.controls
        assert length.control_change.outcome == "changed"
        assert len(raw.tilts) == len(length.tilts) == len(length.moves) == 1

    def test_all_ps_of_the_table_are_corrected_together(self) -> None:
        collection = many_twins()
        options = {"measures": ["R@60", "nDCG@3"], "correction": "bonferroni"}
        result = controlled(collection, Longest(), "length", "titles", **options)
        tilts = [t for row in result.controls for t in row.tilts]
        assert len(tilts) == 6
        for measure in ("nDCG@3", "R@60"):  # the primary one, and the others
            # Titles changed nothing: its value is the raw one once more, and no further test.
            family = [t for t in tilts[:4] if t.measure == measure]
            expected = correct([t.p for t in family], "bonferroni")
            expected[[not t.testable for t in family]] = math.nan
            assert [t.p_corrected for t in family] == pytest.approx(expected.tolist(), nan_ok=True)
            assert measure == "nDCG@3" or all(t.testable for t in family)
        assert tilts[:2] != list(result.tilts)  # the table of the audit itself keeps its own family
        assert [t.p for t in tilts[:2]] == [t.p for t in result.tilts]

    def test_growth_interval_over_paired_resamples(self) -> None:
        collection = twins(HUMAN[:3], LLM[:3])
        run = Longest().rank(collection)
        raw = audit(collection, run, "RR", resamples=2000)
        control = rows(controls(collection, [Longest()], [run], raw, which=["length"]))["length"]
        # Lengths 3, 6, 9 and 4, 2, 5 give the ranks 5, 2, 1 and 4, 6, 3; cut to 3, 2, 5 each:
        # blocks 5 5 | 3 3 | 2 2.
        before = np.array([[1 / 5, 1 / 2, 1], [1 / 4, 1 / 6, 1 / 3]])
        after = np.array([[(1 / 3 + 1 / 4) / 2, (1 / 5 + 1 / 6) / 2, 3 / 4]] * 2)
        draws = [list(d) for d in product(range(3), repeat=3)]

        def delta(values: Any, draw: list[int]) -> float:
            a, b = values[:, draw].sum(axis=1)
            return float(200 * (a - b) / (a + b))

        moves = [delta(after, d) - delta(before, d) for d in draws]
        (move,) = control.moves
        assert move.value == pytest.approx(delta(after, [0, 1, 2]) - delta(before, [0, 1, 2]))
        assert np.isnan([move.low, move.high]).all()  # of three queries
        assert (move.queries, len(moves)) == (3, 27)
        collection = many_twins()
        run = Longest().rank(collection)
        raw = audit(collection, run, "RR", resamples=2000)
        (move,) = rows(controls(collection, [Longest()], [run], raw, which=["length"]))[
            "length"
        ].moves
        assert move.low < move.value < move.high
        assert move.queries == 40

    def test_a_move_is_shown_where_its_interval_excludes_0(self) -> None:
        assert all(Move(1.0, *ends, 5).is_shown for ends in ((1, 2), (-2, -1)))
        assert not any(
            Move(1.0, *ends, 5).is_shown
            for ends in ((-1, 1), (0, 1), (-1, 0), (math.nan, math.nan))
        )

    def test_the_options_of_the_audit_hold(self) -> None:
        collection = many_twins()
        options = {
            "ties": "trec_eval",
            "test": "t",
            "rounding": "paper",
            "seed": 5,
            "resamples": 300,
        }
        result = controlled(collection, Longest(), "length", measures="RR", **options)
        cut = SEEN[-1]
        expected = audit(cut, Longest().rank(cut), "RR", **options).tilts[0]
        tilt = rows(result)["length"].tilts[0]
        assert tilt.family_size == 2  # raw and shortened
        assert replace(tilt, p_corrected=expected.p_corrected, family_size=1) == expected

    def test_missing_queries_are_left_out_as_in_the_audit(self) -> None:
        collection = twins(HUMAN, LLM)
        short = Collection(
            collection.docs, collection.queries, collection.qrels.filter(pl.col("query_id") != "q3")
        )
        run = Longest().rank(short)
        for missing, queries in (("zero", 4), ("exclude", 3)):
            raw = audit(collection, run, "RR", resamples=200, missing=missing)
            controls_by_name = rows(controls(collection, [Longest()], [run], raw, which=["titles"]))
            assert control_change(controls_by_name["titles"].control_change) == "nothing to change"
            assert (
                controls_by_name["titles"].tilts[0].queries
                == controls_by_name["titles"].moves[0].queries
                == queries
            )


@pytest.mark.parametrize(
    ("options", "judged", "message"),
    [
        (
            {"which": ["lenght"]},
            True,
            "unknown control 'lenght'; did you mean 'length'? (valid: length, tokens, ",
        ),
        (
            {"near": 0},
            True,
            "expected a similarity above 0 and at most 1 for near-identical twins, got 0",
        ),
        (
            {"near": 1.01},
            True,
            "expected a similarity above 0 and at most 1 for near-identical twins, got 1.01",
        ),
        ({}, False, "controls need groups compared by relevance; this audit has none"),
    ],
)
def test_mistakes(options: dict[str, Any], judged: bool, message: str) -> None:
    collection = toy() if judged else Collection(toy().docs, toy().queries, toy().qrels.clear())
    run = BM25().rank(collection)
    raw = audit(collection, run, card=True, resamples=100)
    with pytest.raises(UserError, match="^" + re.escape(message)):
        controls(collection, [BM25()], [run], raw, **options)


@pytest.mark.neural
class TestTokens:
    LLM: ClassVar[Side] = [("", "abc"), ("T", "abcde fghi"), ("", "z" * 5 + " " + "y" * 50)]
    HUMAN: ClassVar[Side] = [("", "abcde fgh"), ("T", "ab"), ("", "x" * 30)]

    def changed(
        self, tiny: Path, human: Side, llm: Side, **options: Any
    ) -> tuple[Controlled, list[str]]:
        collection = twins(human, llm)
        ranker = Recorded(str(tiny), precision="float32", device="cpu", **options)
        control = rows(controlled(collection, ranker, "tokens"))["tokens"]
        return control, SEEN[-1].docs["text"].to_list() if SEEN else []

    def test_twins_are_cut_to_model_tokens_of_the_shortest(self, tiny: Path) -> None:
        control, texts = self.changed(tiny, self.HUMAN, self.LLM)
        # Tokens are letters, two more a text, cut at 24: 5 of 10; 5 of 12, the title's letter among
        # them; 22 letters.
        assert texts == ["abc", "ab", "x" * 22, "abc", "ab", "z" * 5 + " " + "y" * 17]
        assert control_change(control.control_change) == "4 of 6 documents changed"
        assert len(control.tilts) == 1
        _, texts = self.changed(tiny, self.HUMAN, self.LLM, max_tokens=6)  # the user's own limit
        assert texts == ["abc", "ab", "xxxx", "abc", "ab", "zzzz"]
        human, llm = [("Title", "x" * 30)], [("Title", "y" * 40)]
        assert self.changed(tiny, human, llm, text="text")[1] == ["x" * 22, "y" * 22]
        SEEN.clear()
        assert self.changed(tiny, human, llm)[1] == ["x" * 17, "y" * 17]
        SEEN.clear()
        control, texts = self.changed(tiny, human, llm, text="title")
        assert (control_change(control.control_change), control.tilts, texts) == (
            "it reads titles only",
            (),
            [],
        )


@dataclass(frozen=True)
class Recorded(Dense):
    """Remembers what it was asked to rank."""

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        SEEN.append(collection)
        return super().candidates(collection, slack)


# Confounds


def confounds_of(collection: Collection, **spec: Any) -> dict[str, Confound]:
    run = run_of(collection, {collection.queries["id"][0]: {"0-human": 1.0}}, ranker="r", **spec)
    return {
        confound.name: confound
        for confound in audit(collection, run, "nDCG@1", resamples=100).confounds
    }


UNLIKE = [
    ("T", "One two three four."),
    ("", "It has an end"),
    ("A", "Same text."),
    ("B", "a b c d e f g h i j k l m n."),
]
REWRITES = [
    ("T", "Sure! Here is the rewritten text:\n\nOne two."),
    ("", "It has an end."),
    ("A", "Same text."),
    ("C", "a b c d e f g h i j k l m N!"),
]


class TestConfounds:
    @pytest.mark.parametrize(
        ("name", "human", "llm", "number"),
        [
            ("words", (4 + 4 + 2 + 14) / 4, (8 + 4 + 2 + 14) / 4, 8),
            ("cut-off endings", 1 / 4, 0, 8),
            ("boilerplate openings", 0, 1 / 4, 8),
            ("identical", 1 / 4, 1 / 4, 1),
            ("near-identical", 2 / 4, 2 / 4, 2),  # case and punctuation make no term
            ("same title", 2 / 4, 2 / 4, 2),  # an empty one is none
        ],
    )
    def test_every_confound(self, name: str, human: float, llm: float, number: int) -> None:
        confound = confounds_of(twins(UNLIKE, REWRITES))[name]
        assert (confound.a, confound.b, confound.number) == ("human", "llm", number)
        assert (confound.value_a, confound.value_b) == pytest.approx((human, llm))

    def test_query_words_in_relevant_text(self) -> None:
        human, llm = (
            [("Red", "apples grow"), ("", "cold water")],
            [("", "fruits grow"), ("", "Water flows")],
        )
        queries = {"q": "red apples grow", "p": "water, water!"}
        qrels = {
            "q": {"0-human": 1, "0-llm": 2, "1-human": 0},
            "p": {"0-human": 1, "1-human": 1, "1-llm": 1},
        }
        confound = confounds_of(twins(human, llm, queries, qrels))["query words"]
        # Human: 0 has all of q (title and text count) and none of p, 1 has p; llm: one of three, p.
        assert (confound.value_a, confound.value_b) == pytest.approx(
            (((1 + 0) / 2 + 1) / 2, (1 / 3 + 1) / 2)
        )
        assert confound.number == 4
        silent = confounds_of(twins([("", "a")], [("", "b")], {"q0": "?!"}))["query words"]
        assert np.isnan([silent.value_a, silent.value_b]).all()

    def test_the_truncated_share_is_each_runs_own(self) -> None:
        share = {"limit": 24, "share": {"human": 0.5, "llm": 0.25, "other": 0.1}}
        truncated = confounds_of(twins(UNLIKE, REWRITES), truncated=share)["truncated"]
        assert truncated == Confound("truncated", "human", "llm", 0.5, 0.25, 8, "r", 24)
        assert "truncated" not in confounds_of(twins(UNLIKE, REWRITES))


def test_confounds_of_absent_properties() -> None:
    assert confounds_of(twins([("T", "")], [("T", "")])) == {}
    run = run_of(LONE, {"q": {"human": 1.0}})
    names = [confound.name for confound in audit(LONE, run, "RR", resamples=100).confounds]
    assert names == ["words", "query words", "cut-off endings", "boilerplate openings"]
    unjudged = Collection(LONE.docs, LONE.queries, LONE.qrels.clear())
    names = [confound.name for confound in audit(unjudged, run, card=True, resamples=100).confounds]
    assert names == ["words", "cut-off endings", "boilerplate openings"]


@pytest.mark.parametrize(
    ("first", "second", "near", "expected"),
    [
        ("a b", "a b", 0.95, 2),
        ("a b", "A, b!", 0.95, 1),
        ("a b c d", "a b c e", 0.95, 0),
        ("a b c d", "a b c e", 0.6, 1),
        ("a b c d", "a b c e", 0.61, 0),
        ("a ", "a", 0.95, 1),
        ("", "", 0.95, 0),
        ("!", "?", 0.95, 0),
    ],
)
def test_likeness_of_two_texts(first: str, second: str, near: float, expected: int) -> None:
    collection = twins([("", first), ("", "x y z")], [("", second), ("", "other words")])
    pairs = twin_rows(collection, grouping(collection, "source"), ("human", "llm"))
    assert twin_likeness(collection, pairs, near).tolist() == [expected, 0]


def test_check_audit_and_control_agree_on_identical_pairs() -> None:
    texts = [
        ("a b c.", "a b c."),
        ("a b d", "a b d "),
        ("A b e", "a, b e"),
        ("", ""),
        (" ", "\n"),
        ("f g", "f h"),
    ]
    collection = twins([("", human) for human, _ in texts], [("", llm) for _, llm in texts])
    checked = {row.name: row.count for row in check(collection).faults}
    confounds = confounds_of(collection)
    pairs = twin_rows(collection, grouping(collection, "source"), ("human", "llm"))
    likeness = twin_likeness(collection, pairs).tolist()
    assert checked["identical pairs"] == confounds["identical"].number == likeness.count(2) == 1
    assert (
        checked["near-identical pairs"]
        == confounds["near-identical"].number
        == likeness.count(1)
        == 2
    )


def test_of_many_pairs_a_sample_is_compared_word_by_word(monkeypatch: pytest.MonkeyPatch) -> None:
    words = " ".join(f"w{n}" for n in range(40))
    human = [("", f"{words} x{n}") for n in range(30)]
    llm = [("", f"{words} {'y' if n % 3 else 'x'}{n}") for n in range(30)]
    all_confounds = confounds_of(twins(human, llm))
    assert [all_confounds[name].number for name in ("identical", "near-identical")] == [10, 20]
    monkeypatch.setattr(confounds, "SAMPLE", 10)
    part = confounds_of(twins(human, llm))
    assert (
        part["identical"] == all_confounds["identical"]
    )  # equal texts are cheap to find: all are looked at
    # Of 30 pairs, every third one is identical; the ten evenly spaced ones are 0, 3, 6, 9, 12, 16,
    # 19, 22, 25 and 29.
    assert (part["near-identical"].number, part["near-identical"].value_a) == (5, 0.5)
