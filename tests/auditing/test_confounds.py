"""What else differs between two sources: counted by hand, and said in one line."""

import math
from typing import Any

import pytest

from ranktilt.auditing import confounds
from ranktilt.auditing.audit import audit
from ranktilt.auditing.confounds import Confound, twin_likeness
from ranktilt.auditing.groups import grouping, twin_rows
from ranktilt.collection import Collection
from ranktilt.datasets.check import check
from tests.toy import Table, collection_of, run_of

Docs = list[tuple[str, str]]
"""Title and text."""


def twins(human: Docs, llm: Docs, queries: dict[str, str] | None = None, qrels: Table | None = None) -> Collection:
    docs = [
        {"id": f"{n}-{source}", "title": title, "text": text, "source": source, "origin": f"{n}-human"}
        for source, side in (("human", human), ("llm", llm))
        for n, (title, text) in enumerate(side)
    ]
    return collection_of(docs, queries or {"q": "x"}, qrels or {"q": {"0-human": 1, "0-llm": 1}})


def found(collection: Collection, **spec: Any) -> dict[str, Confound]:
    run = run_of(collection, {"q": {"0-human": 1.0}}, ranker="r", **spec)
    return {one.name: one for one in audit(collection, run, "nDCG@1", resamples=100).confounds}


HUMAN = [
    ("T", "One two three four."),
    ("", "It has an end"),
    ("A", "Same text."),
    ("B", "a b c d e f g h i j k l m n."),
]
LLM = [
    ("T", "Sure! Here is the rewritten text:\n\nOne two."),
    ("", "It has an end."),
    ("A", "Same text."),
    ("C", "a b c d e f g h i j k l m N!"),
]


class TestByHand:
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
        one = found(twins(HUMAN, LLM))[name]
        assert (one.a, one.b) == ("human", "llm")
        assert (one.value_a, one.value_b, one.number) == (pytest.approx(human), pytest.approx(llm), number)

    def test_query_words_in_relevant_text(self) -> None:
        human, llm = [("Red", "apples grow"), ("", "cold water")], [("", "fruits grow"), ("", "Water flows")]
        queries = {"q": "red apples grow", "p": "water, water!"}
        qrels = {
            "q": {"0-human": 1, "0-llm": 2, "1-human": 0}, "p": {"0-human": 1, "1-human": 1, "1-llm": 1}
        }  # fmt: skip
        one = found(twins(human, llm, queries, qrels))["query words"]
        # Human: all of q (title and text count), none of p in 0, p in 1; llm: one of three, p.
        assert (one.value_a, one.value_b) == (pytest.approx((1 + 0 + 1) / 3), pytest.approx((1 / 3 + 1) / 2))
        assert one.number == 5
        silent = found(twins([("", "a")], [("", "b")], {"q": "?!"}))["query words"]
        assert math.isnan(silent.value_a)
        assert math.isnan(silent.value_b)

    def test_the_truncated_share_is_each_runs_own(self) -> None:
        share = {"limit": 24, "share": {"human": 0.5, "llm": 0.25}}
        one = found(twins(HUMAN, LLM), truncated=share)["truncated"]
        assert one == Confound("truncated", "human", "llm", 0.5, 0.25, 8, "r", 24)
        assert "truncated" not in found(twins(HUMAN, LLM))


def test_what_is_not_there_is_not_compared() -> None:
    assert found(twins([("T", "")], [("T", "")])) == {}
    docs = [{"id": s, "text": "x y.", "source": s} for s in ("human", "llm")]
    lone = collection_of(docs, {"q": "x"}, {"q": {"human": 1, "llm": 1}})
    run = run_of(lone, {"q": {"human": 1.0}})
    names = [one.name for one in audit(lone, run, "RR", resamples=100).confounds]
    assert names == ["words", "query words", "cut-off endings", "boilerplate openings"]
    unjudged = Collection(lone.docs, lone.queries, lone.qrels.clear())
    names = [one.name for one in audit(unjudged, run, card=True, resamples=100).confounds]
    assert names == ["words", "cut-off endings", "boilerplate openings"]


@pytest.mark.parametrize(
    ("one", "two", "near", "expected"),
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
def test_likeness_of_two_texts(one: str, two: str, near: float, expected: int) -> None:
    collection = twins([("", one), ("", "x y z")], [("", two), ("", "other words")])
    rows = twin_rows(collection, grouping(collection, "source"), ("human", "llm"))
    assert twin_likeness(collection, rows, near).tolist() == [expected, 0]


def test_a_check_an_audit_and_a_control_call_the_same_pairs_identical() -> None:
    texts = [("a b c.", "a b c."), ("a b d", "a b d "), ("A b e", "a, b e"), ("", ""), (" ", "\n"), ("f g", "f h")]
    collection = twins([("", one) for one, _ in texts], [("", two) for _, two in texts])
    checked = {row.name: row.found for row in check(collection).rows}
    told = found(collection)
    rows = twin_rows(collection, grouping(collection, "source"), ("human", "llm"))
    likeness = twin_likeness(collection, rows).tolist()
    assert checked["identical pairs"] == told["identical"].number == likeness.count(2) == 1
    assert checked["near-identical pairs"] == told["near-identical"].number == likeness.count(1) == 2


def test_of_many_pairs_a_sample_is_compared_word_by_word(monkeypatch: pytest.MonkeyPatch) -> None:
    words = " ".join(f"w{n}" for n in range(40))
    human = [("", f"{words} x{n}") for n in range(30)]
    llm = [("", f"{words} {'y' if n % 3 else 'x'}{n}") for n in range(30)]
    whole = found(twins(human, llm))
    assert [whole[name].number for name in ("identical", "near-identical")] == [10, 20]
    monkeypatch.setattr(confounds, "SAMPLE", 10)
    part = found(twins(human, llm))
    assert part["identical"] == whole["identical"]  # equal texts are cheap to find: all are looked at
    # Of 30 pairs, every third one is identical; the ten evenly spaced ones are 0, 3, 6, 9, 12, 16, 19, 22, 25 and 29.
    assert (part["near-identical"].number, part["near-identical"].value_a) == (5, 0.5)
