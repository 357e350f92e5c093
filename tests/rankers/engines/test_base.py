"""Live engines: their order is authoritative, and nothing that goes wrong is silent."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from ranktilt import Collection, DataError, UserError, audit
from ranktilt.auditing.options import CHOICES
from ranktilt.errors import DataWarning
from ranktilt.progress import listening
from ranktilt.rankers.engines.base import LiveEngine, Session
from tests.rankers.contract import with_queries
from tests.rankers.entries import entries
from tests.refusals import refused
from tests.toy import QUERIES, collection_of, toy

Answer = Callable[[str, int], Any]


@dataclass(frozen=True)
class Fake(LiveEngine):
    """Asks a function."""

    name: ClassVar[str] = "fake"
    answer: Answer = field(repr=False)

    @contextmanager
    def connected(self, collection: Collection, depth: int) -> Iterator[Session]:
        """Ready at once."""
        yield Session(lambda texts, k: [self.answer(text, k) for text in texts], {"engine": "fake"})

    def __repr__(self) -> str:
        return "fake"


def always(*hits: tuple[str, float]) -> Answer:
    return lambda query, k: list(hits)


@contextmanager
def told() -> Iterator[list[str]]:
    """Collect the data warnings; any other is an error."""
    lines: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", DataWarning)
        yield lines
    lines += [str(one.message) for one in caught]
    assert {one.filename for one in caught} <= {__file__}, "a warning points at who called rank"


GOOD = [("d2-llm", 3.0), ("d1-human", 2.0), ("d3-llm", 1.0)]


def test_the_order_and_falling_scores_are_kept() -> None:
    run = Fake(answer=always(*GOOD), k=3).rank(toy())
    assert run.queries == ("q1", "q2", "q3")
    assert entries(run) == dict.fromkeys(QUERIES, GOOD)
    assert run.spec == {"ranker": "fake", "ranktilt": run.spec["ranktilt"], "collection": None, "engine": "fake"}


def test_each_query_is_asked_by_its_text_for_as_many_as_wanted() -> None:
    asked = []

    def answer(query: str, k: int) -> list[tuple[str, float]]:
        asked.append((query, k))
        return GOOD[:k]

    assert {len(found) for found in entries(Fake(answer=answer, k=2).rank(toy())).values()} == {2}
    assert sorted(asked) == sorted((text, 2) for text in QUERIES.values())


def test_what_lies_below_the_depth_is_cut() -> None:
    assert entries(Fake(answer=always(*GOOD), k=1).rank(toy())) == dict.fromkeys(QUERIES, GOOD[:1])


@pytest.mark.parametrize(
    ("hits", "order", "line", "counts"),
    [
        (
            [("d1-human", 2.0), ("d2-human", 1.0), ("d1-human", 0.5)],
            ["d1-human", "d2-human"],
            "3 results of a document that came before in the same answer; the first place counts "
            "(first: 'd1-human' for query 'q1')",
            {"duplicates": 3},
        ),
        (
            [("d1-human", 2.0), ("d9", 1.5), ("d2-human", 1.0)],
            ["d1-human", "d9"],
            "3 results of a document that is not in the collection; their places are kept (first: 'd9' for query 'q1')",
            {"unknown": 3},
        ),
        (
            [("d1-human", 2.0), ("d2-human", float("nan"))],
            ["d1-human", "d2-human"],
            "3 results with a score that is no finite number; the order counts (first: 'd2-human' for query 'q1')",
            {"not_finite": 3},
        ),
        (
            [("d1-human", 2.0), ("d2-human", 7.0)],
            ["d1-human", "d2-human"],
            "3 results with a score above the one before; the order counts (first: 'd2-human' for query 'q1')",
            {"rising": 3},
        ),
    ],
    ids=["duplicates", "unknown", "not finite", "rising"],
)
def test_what_is_odd_is_counted_and_told_in_one_line(
    hits: list[tuple[str, float]], order: list[str], line: str, counts: dict[str, int]
) -> None:
    with told() as lines:
        run = Fake(answer=always(*hits), k=2).rank(toy())
    assert [document for document, _ in entries(run)["q2"]] == order
    assert lines == [f"fake: {line}"]
    assert run.spec["answers"] == counts


def test_ties_are_counted_without_a_warning() -> None:
    run = Fake(answer=always(("d2-llm", 1.0), ("d2-human", 1.0)), k=2).rank(toy())
    assert [document for document, _ in entries(run)["q1"]] == ["d2-llm", "d2-human"]
    assert run.spec["answers"] == {"tied": 3}


def test_unknown_documents_are_left_out_where_asked_for() -> None:
    with told() as lines:
        run = Fake(answer=always(("d9", 3.0), ("d1-human", 2.0), ("d2-human", 1.0)), k=3, unknown="drop").rank(toy())
    assert entries(run)["q1"] == [("d1-human", 2.0), ("d2-human", 1.0)]
    assert lines == [
        "fake: 3 results of a document that is not in the collection; left out, the others move up "
        "(first: 'd9' for query 'q1')"
    ]


def test_unknown_documents_keep_their_places_in_an_audit() -> None:
    with told():
        run = Fake(answer=always(("d9", 3.0), ("d1-human", 2.0), ("d2-human", 1.0)), k=3).rank(toy())
    assert entries(run)["q1"] == [("d9", 3.0), ("d1-human", 2.0), ("d2-human", 1.0)]
    [note] = [note for note in audit(toy(), run, "nDCG@3").notes if "not in the collection" in note]
    assert note.startswith("fake: 3 entries of 1 document not in the collection (first: 'd9'); these keep their ranks")


def test_an_engine_that_stops_early_is_told_of() -> None:
    with told() as lines:
        run = Fake(answer=always(*GOOD), k=5).rank(many(12))
    assert run.spec["answers"] == {"fewer": 12}
    assert lines == ["fake: no query got more than 3 of the 5 documents asked for, as if cut there"]


def test_a_few_queries_with_equally_many_matches_say_nothing_of_a_limit() -> None:
    assert Fake(answer=always(*GOOD), k=5).rank(many(9)).spec["answers"] == {"fewer": 9}


def test_queries_with_few_matches_are_counted_only() -> None:
    sizes = {text: n for n, text in enumerate(QUERIES.values())}
    run = Fake(answer=lambda query, k: GOOD[: sizes[query]]).rank(toy())
    assert [len(found) for found in entries(run).values()] == [0, 1, 2]
    assert run.spec["answers"] == {"fewer": 3, "empty": 1}


def many(n: int) -> Collection:
    return with_queries({f"q{i}": f"words {i}" for i in range(n)}, [f"q{i}" for i in range(n)])


def failing(*texts: str) -> Answer:
    def answer(query: str, k: int) -> list[tuple[str, float]]:
        if query in texts:
            raise ConnectionError(f"no line for {query}" if len(texts) < 3 else "no line")
        return GOOD

    return answer


def test_a_failed_query_is_left_out_and_told_of_and_never_empty() -> None:
    with told() as lines:
        run = Fake(answer=failing("words 7", "words 30"), attempts=1, k=3).rank(many(40))
    assert run.queries == tuple(f"q{i}" for i in range(40) if i not in (7, 30))
    assert all(entries(run).values())
    reasons = {"q7": "ConnectionError: no line for words 7", "q30": "ConnectionError: no line for words 30"}
    assert run.spec["failed"] == reasons
    said = "; ".join(f"{query!r}: {reason}" for query, reason in reasons.items())
    assert lines == [f"fake: 2 of 40 queries failed, not in the run: {said}"]


def test_queries_that_fail_alike_are_named_together() -> None:
    texts = [f"words {i}" for i in range(2, 7)]
    with told() as lines:
        Fake(answer=failing(*texts), attempts=1, max_failures=0.2, k=3).rank(many(40))
    assert lines == [
        "fake: 5 of 40 queries failed, not in the run: 'q2', 'q3', 'q4' and 2 more: ConnectionError: no line"
    ]


@pytest.mark.parametrize(("share", "allowed"), [(0.0, 0), (0.024, 0), (0.05, 2)])
def test_more_failures_than_allowed_make_no_run(share: float, allowed: int) -> None:
    texts = [f"words {i}" for i in range(10, 11 + allowed)]
    with pytest.raises(UserError) as caught:
        Fake(answer=failing(*texts), attempts=1, max_failures=share, concurrency=1).rank(many(40))
    start = f"fake: {allowed + 1} of 40 queries failed after 1 attempt, max_failures={share:g} allows {allowed}: 'q10'"
    assert str(caught.value).startswith(start)


def test_an_engine_that_never_answers_is_given_up_soon() -> None:
    def answer(query: str, k: int) -> None:
        raise ConnectionRefusedError("nobody there")

    with refused(
        "fake: the first 3 of 40 queries failed after 1 attempt, none got an answer: "
        "'q0', 'q1', 'q2': ConnectionRefusedError: nobody there"
    ):
        Fake(answer=answer, attempts=1, max_failures=1.0, concurrency=1).rank(many(40))


def test_repeated_calls_are_counted() -> None:
    seen = set()

    def answer(query: str, k: int) -> Sequence[tuple[str, float]]:
        if query not in seen:
            seen.add(query)
            raise type("Busy", (Exception,), {"headers": {"Retry-After": "0"}})("try again")
        return GOOD

    run = Fake(answer=answer, k=3).rank(toy())
    assert entries(run) == dict.fromkeys(QUERIES, GOOD)
    assert run.spec["answers"] == {"repeated": 3}


def test_a_wrong_type_names_the_query() -> None:
    collection = with_queries({"only": "one"}, ["only"])
    with refused("fake: query 'only', result 1: expected the score as a number, got str 'high'"):
        Fake(answer=lambda query, k: [("d1-human", "high")]).rank(collection)


def test_ids_of_another_collection_are_refused() -> None:
    with refused(
        "fake: no overlap: none of its 2 documents is in the collection "
        "(first: '7'; the collection's ids look like 'd1-human')"
    ):
        Fake(answer=always(("7", 1.0), ("8", 0.5))).rank(toy())


def test_a_bare_id_of_two_sources_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        Fake(answer=always(("d1-human", 1.0), ("d2", 0.5))).rank(toy())
    assert "document id 'd2' is shared by several sources: 'd2-human' and 'd2-llm'; the run must say which" in str(
        caught.value
    )


def test_an_empty_engine_is_refused() -> None:
    with pytest.raises(UserError, match="fake: no query was answered with any document; is the index empty"):
        Fake(answer=always()).rank(toy())


def as_queries(*, text: str) -> Collection:
    """Two documents that are queries too, and two others."""
    docs = [{"id": f"a{n}", "text": f"words {n}"} for n in range(4)]
    return collection_of(docs, {"a0": "words 0", "a1": text}, {"a0": {"a1": 1}, "a1": {"a0": 1}})


def test_a_query_does_not_find_itself_and_still_gets_its_depth() -> None:
    asked = []

    def answer(query: str, k: int) -> list[tuple[str, float]]:
        asked.append(k)
        return [(f"a{n}", 9.0 - n) for n in range(k)]

    run = Fake(answer=answer, k=2).rank(as_queries(text="words 1"))
    assert asked == [3, 3]
    assert entries(run) == {"a0": [("a1", 8.0), ("a2", 7.0)], "a1": [("a0", 9.0), ("a2", 7.0)]}
    assert run.spec["own_documents_dropped"] == 2


def test_a_query_may_find_itself_where_asked_for() -> None:
    hits = [(f"a{n}", 9.0 - n) for n in range(2)]
    run = Fake(answer=lambda query, k: hits[:k], k=2, exclude_self=False).rank(as_queries(text="words 1"))
    assert entries(run) == {"a0": hits, "a1": hits}


def test_it_re_ranks_nothing() -> None:
    ranker = Fake(answer=always(*GOOD), k=3)
    run = ranker.rank(toy())
    with pytest.raises(UserError, match="fake searches an engine and re-ranks nothing; put it first"):
        ranker.rank(toy(), run)


def test_progress_is_told() -> None:
    steps = []
    with listening(lambda label, done, total: steps.append((label, done, total))):
        Fake(answer=always(*GOOD), k=3).rank(toy())
    assert steps == [("fake: asking", done, 3) for done in (1, 2, 3)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "fake: expected a depth of at least 1, got @0"),
        ({"concurrency": 0}, "fake: expected concurrency of at least 1, got 0"),
        ({"attempts": -1}, "fake: expected attempts of at least 1, got -1"),
        ({"timeout": 0.0}, "fake: expected a timeout of up to 86400 seconds, got 0"),
        ({"timeout": float("nan")}, "fake: expected a timeout of up to 86400 seconds, got nan"),
        ({"max_failures": 1.5}, "fake: expected max_failures between 0 and 1, got 1.5"),
        ({"unknown": "guess"}, "unknown choice of fake for unknown documents 'guess' (valid: drop, keep)"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with refused(message):
        Fake(answer=always(), **options)


def test_ties_of_an_engine_stay_in_its_order_however_ties_are_broken() -> None:
    run = Fake(answer=always(*((name, 1.0) for name in ("d1-human", "d2-llm", "d3-llm"))), k=3).rank(toy())
    found = [audit(toy(), run, ["nDCG@1", "RR@10"], ties=ties, resamples=100).values for ties in CHOICES["ties"]]
    assert found[0] == pytest.approx(found[1], nan_ok=True)


def test_a_share_that_may_fail_is_not_rounded_down() -> None:
    calls = dict.fromkeys(QUERIES.values(), 0)

    def answer(query: str, k: int) -> list[tuple[str, float]]:
        calls[query] += 1
        if query == QUERIES["q3"]:
            raise ValueError("no")
        return GOOD[:k]

    share = 1 / 3 - 1e-12  # a third of three queries, as floating point has it
    with told():
        run = Fake(answer=answer, k=2, attempts=1, max_failures=share).rank(toy())
    assert list(run.spec["failed"]) == ["q3"]
