"""What a re-ranker leaves below: order, ties and scores of the part that is appended."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt import Collection, Ranker, Run, UserError, ranker
from ranktilt.rankers.base import Pipeline
from ranktilt.rankers.candidates import append_tail
from ranktilt.rankers.lexical.bm25 import BM25
from tests.rankers.entries import entries
from tests.refusals import refused
from tests.toy import collection_of, toy


def run(entries: dict[str, list[tuple[str, float]]]) -> Run:
    rows = [(query, doc, score) for query, found in entries.items() for doc, score in found]
    frame = pl.DataFrame(rows, schema={"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row")
    return Run.from_frame(frame, queries=list(entries))


@dataclass(frozen=True, kw_only=True)
class Upside(Ranker):
    """Turns the order of its candidates; scores are 1, 2, … from the last one up."""

    name: ClassVar[str] = "upside"
    k: int | None = None
    tail: str = "drop"

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        if run is None:
            raise UserError("upside re-ranks candidates; put a first stage before it")
        docs, scores, lengths = [np.empty(0, np.int32)], [np.empty(0)], [0]
        for low, high in zip(run.offsets[:-1], run.offsets[1:], strict=True):
            kept = slice(None, self.k)
            docs.append(run.docs[low:high][::-1][kept])
            scores.append(np.arange(high - low, 0, -1.0)[kept])
            lengths.append(len(docs[-1]))
        spec = {"ranker": repr(self)}
        return Run(run.queries, np.cumsum(lengths), np.concatenate(docs), np.concatenate(scores), run.ids, spec)


@pytest.mark.parametrize(
    ("best", "everything", "expected"),
    [
        pytest.param(
            [("c", 9.0), ("a", 7.0)],
            [("a", 3.0), ("b", 2.0), ("c", 1.5), ("d", 1.0)],
            [("c", 9.0), ("a", 7.0), ("b", 6.0), ("d", 5.0)],
            id="the others follow one below the lowest, their differences kept",
        ),
        pytest.param(
            [("a", -5.0)],
            [("a", 3.0), ("b", 2.0), ("c", 2.0), ("d", 0.5)],
            [("a", -5.0), ("b", -6.0), ("c", -6.0), ("d", -7.5)],
            id="ties stay ties, and negative scores fall on",
        ),
        pytest.param([("a", 1.0)], [("a", 3.0)], [("a", 1.0)], id="nothing is left below"),
        pytest.param([], [("a", 3.0), ("b", 2.0)], [("a", 3.0), ("b", 2.0)], id="nothing was re-ranked"),
        pytest.param([("x", 4.0)], [("x", 9.0), ("y", 9.0)], [("x", 4.0), ("y", 3.0)], id="a tie across the cut"),
    ],
)
def test_the_rest_is_appended(
    best: list[tuple[str, float]], everything: list[tuple[str, float]], expected: list[tuple[str, float]]
) -> None:
    assert entries(append_tail(run({"q": best}), run({"q": everything}))) == {"q": expected}


def test_differences_that_float64_cannot_hold_become_steps_of_one() -> None:
    found = append_tail(run({"q": [("a", 1e17)]}), run({"q": [("a", 4.0), ("b", 3.0), ("c", 3.0), ("d", 2.0)]}))
    (ranked,) = entries(found).values()
    scores = [score for _, score in ranked]
    assert [doc for doc, _ in ranked] == ["a", "b", "c", "d"]
    assert scores[1] == scores[2]
    assert scores == sorted(scores, reverse=True)


def test_runs_with_other_id_tables_are_joined_by_id() -> None:
    one, two = run({"q": [("d", 2.0), ("b", 1.0)]}), run({"q": [("a", 9.0), ("b", 8.0), ("c", 7.0), ("d", 6.0)]})
    assert one.ids.to_list() != two.ids.to_list()
    assert [doc for doc, _ in entries(append_tail(one, two))["q"]] == ["d", "b", "a", "c"]


@given(
    scores=st.lists(st.integers(0, 5).map(float), min_size=1, max_size=12),
    k=st.integers(1, 12),
    lowest=st.floats(-1e6, 1e6),
)
def test_order_and_ties_of_the_rest_are_those_of_the_stage_before(scores: list[float], k: int, lowest: float) -> None:
    ranked = [(f"d{i}", s) for i, s in enumerate(sorted(scores, reverse=True))]
    found = entries(append_tail(run({"q": [(d, lowest) for d, _ in ranked[:k]]}), run({"q": ranked})))["q"]
    assert [d for d, _ in found] == [d for d, _ in ranked]
    rest, before = found[k:], ranked[k:]
    assert all(score < lowest for _, score in rest)
    for i in range(len(rest) - 1):
        assert (rest[i][1] == rest[i + 1][1]) == (before[i][1] == before[i + 1][1])


def six() -> Collection:
    docs = [{"id": f"d{n}", "text": " ".join(["apple"] * n + ["word"] * (9 - n))} for n in range(1, 7)]
    return collection_of(docs, {"q": "apple"}, {"q": {"d1": 1}})


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        ((BM25(k=2), Upside()), "56"),
        ((BM25(k=2), Upside(tail="keep")), "564321"),
        ((BM25(k=2), Upside(tail="keep", k=3)), "564"),
        ((BM25(k=3), Upside(k=2)), "45"),
        ((BM25(k=4), Upside(k=2), Upside(tail="keep")), "4356"),
        ((BM25(k=2), Upside(tail="keep", k=4), Upside(tail="keep")), "346521"),
        ((BM25(), Upside(tail="keep")), "123456"),
    ],
)
def test_pipelines(stages: tuple[Ranker, ...], expected: str) -> None:
    found = Pipeline(stages).rank(six())
    assert "".join(doc[1:] for doc, _ in entries(found)["q"]) == expected
    assert found.name == ">>".join(map(repr, stages))


def test_a_kept_tail_needs_a_stage_before_it() -> None:
    with refused("upside(tail=keep): tail=keep is for a re-ranker; here no stage stands before it"):
        Pipeline((Upside(tail="keep"), Upside())).rank(toy())


@pytest.mark.neural
def test_a_kept_tail_does_not_shorten_a_search_that_goes_deeper_than_usual(tiny: Path) -> None:
    docs = [{"id": f"d{n}", "text": f"apple {n}"} for n in range(1_100)]
    collection = collection_of(docs, {"q": "apple"}, {"q": {"d1": 1}})
    searched = ranker(f"dense:{tiny}@1050")
    found = Pipeline((searched, Upside(tail="keep"))).rank(collection)
    assert found.frame()["doc_id"].to_list() == searched.rank(collection).frame()["doc_id"].to_list()[::-1]


@dataclass(frozen=True, kw_only=True)
class Everything(Ranker):
    """Ranks what it likes, whatever it is given."""

    name: ClassVar[str] = "everything"
    k: int | None = None
    tail: str = "drop"

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        return BM25().rank(collection)


@pytest.mark.parametrize("tail", ["drop", "keep"])
def test_a_stage_that_ranks_what_was_no_candidate_is_refused(tail: str) -> None:
    with pytest.raises(UserError) as caught:
        Pipeline((BM25(k=2), Everything(tail=tail))).rank(six())
    name = "everything" if tail == "drop" else "everything(tail=keep)"
    assert str(caught.value) == f"{name} ranks documents that are not among its candidates; put it first"


def test_a_stage_that_gives_no_run_is_named() -> None:
    @dataclass(frozen=True)
    class Nothing(Ranker):
        name: ClassVar[str] = "nothing"

        def rank(self, collection: Collection, run: Run | None = None) -> Run:
            return None  # type: ignore[return-value]

    with pytest.raises(UserError, match=r"^ranker nothing gave NoneType, expected a Run$"):
        Pipeline((BM25(), Nothing())).rank(six())
