"""What all rankers share: options, depth, ties at the cut, pipelines."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ranktilt import Collection, Ranker, Run, __version__
from ranktilt.errors import UserError
from ranktilt.progress import listening
from ranktilt.rankers.base import FirstStage, Pipeline, Rows, Scores, prefilter, top_k
from ranktilt.rankers.lexical.bm25 import BM25
from tests.rankers.counting import Counting
from tests.refusals import refused
from tests.toy import collection_of, toy


@dataclass(frozen=True, kw_only=True)
class Constant(FirstStage):
    """Finds every document with the same score."""

    name: ClassVar[str] = "constant"
    score: float = 1.0
    strict: bool = False

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        n = collection.docs.height
        for _ in range(collection.judged.height):
            yield np.arange(n), np.full(n, self.score)


def best(scores: list[float], keys: list[int], k: int) -> list[int]:
    return top_k(np.array(scores), np.array(keys, dtype=np.uint64), k).tolist()


@given(
    entries=st.lists(st.tuples(st.sampled_from([0.0, -1.0, 2.0]), st.integers(0, 4) | st.just(2**64 - 1)), max_size=12),
    k=st.integers(1, 13),
)
def test_the_cut_is_that_of_a_full_sort(entries: list[tuple[float, int]], k: int) -> None:
    order = sorted(range(len(entries)), key=lambda i: (-entries[i][0], entries[i][1], i))
    last = [entries[i] for i in order[:k]][-1:]
    expected = [i for place, i in enumerate(order) if place < k or [entries[i]] == last]
    assert best([s for s, _ in entries], [key for _, key in entries], k) == expected


@given(seed=st.integers(0, 10**6), n=st.integers(0, 2000), k=st.integers(1, 40), values=st.sampled_from([1, 3, 10**6]))
def test_nothing_prefilter_is_left_out(seed: int, n: int, k: int, values: int) -> None:
    draw = np.random.default_rng(seed)
    scores = draw.integers(0, values + 1, n) * (draw.random(n) < draw.random()).astype(float)
    scores = np.sort(scores)[:: draw.choice([1, -1])] if seed % 2 else scores
    found = prefilter(scores, k)
    positive = np.sort(scores[scores > 0])[::-1]
    last = positive[:k][-1] if len(positive) else np.inf
    assert set(np.flatnonzero((scores >= last) & (scores > 0))) <= set(found)
    assert (scores[found] > 0).all()
    assert (np.diff(found) > 0).all()


def test_a_cut_through_ties_takes_whole_origins_whatever_ids_and_sources_are() -> None:
    docs = [{"id": f"{s}{n}", "text": f"{s} {n}", "source": s, "origin": f"o{n}"} for s in "ab" for n in range(20)]
    renamed = [{**row, "id": row["id"][::-1], "source": {"a": "y", "b": "x"}[row["source"]]} for row in docs]
    kept = []
    for rows in (docs, renamed):
        collection = collection_of(rows, {"q": "x"}, {"q": {rows[0]["id"]: 1}})
        run = Constant(k=5).rank(collection)
        kept.append(set(run.docs.tolist()))
        origins = collection.docs["origin"].gather(run.docs.tolist())
        assert len(run.docs) == 2 * origins.n_unique() == 6
    assert kept[0] == kept[1]


def test_a_first_stage_names_what_made_the_run_and_reports_to_the_end() -> None:
    collection, steps = toy(), list[tuple[str, int, int]]()
    with listening(lambda *step: steps.append(step)):
        run = Constant(k=3).rank(collection)
    assert run.spec == {"ranker": "constant@3", "ranktilt": __version__, "collection": None}
    assert run.ids is collection.ids
    assert steps == [("constant@3: ranking", n, 3) for n in (1, 2, 3)]


def test_a_dataclass_of_ones_own_prints_as_typed() -> None:
    @dataclass(frozen=True)
    class Mine(Wayward):
        name = "mine"
        depth: int = 3

    assert (repr(Mine()), repr(Mine(depth=5))) == ("mine", "mine(depth=5)")


def test_a_pipeline_checks_every_stage_before_the_first_one_ranks() -> None:
    seen: list[str] = []

    @dataclass(frozen=True, kw_only=True)
    class Noted(Counting):
        name: ClassVar[str] = "noted"
        fails: bool = False

        def check(self) -> None:
            seen.append("checked")
            if self.fails:
                raise UserError("no such model")

        def rank(self, collection: Collection, run: Run | None = None) -> Run:
            seen.append("ranked")
            return super().rank(collection, run)

    (BM25() >> Noted() >> Noted()).rank(toy())
    with refused("no such model"):
        (BM25() >> Noted() >> Noted(fails=True)).rank(toy())
    assert seen == ["checked", "checked", "ranked", "ranked", "checked", "checked"]


@dataclass(frozen=True, kw_only=True)
class Wayward(Ranker):
    """Gives what it likes, whatever it is given."""

    name: ClassVar[str] = "wayward"
    run: bool = True

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        return BM25().rank(collection) if self.run else None  # type: ignore[return-value]


def test_a_stage_gives_a_run_of_its_candidates_alone() -> None:
    with refused("wayward ranks documents that are not among its candidates; put it first"):
        (BM25(k=1) >> Wayward()).rank(toy())
    with refused("ranker wayward(run=false) gave NoneType, expected a Run"):
        (BM25() >> Wayward(run=False)).rank(toy())
    with refused("a pipeline needs at least one stage"):
        Pipeline(()).rank(toy())
    run = (BM25(k=2) >> Counting(k=1)).rank(toy())
    assert (run.name, np.diff(run.offsets).max()) == ("bm25@2>>counting@1", 2), "twins stay together"
