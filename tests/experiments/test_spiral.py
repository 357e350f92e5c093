"""The spiral: what is left of the page as rewrites enter, against pages counted by hand."""

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ranktilt import Collection, Ranker, Spiral, UserError, audit, ranker, spiral
from ranktilt.auditing.groups import ALL
from ranktilt.training.training_set import of_sources
from tests.experiments.planted import ORIGINS, HumanFirst, Planted, Tied, growing, grown, score
from tests.toy import collection_of

QUICK: dict[str, Any] = {"resamples": 200}


def pages_by_hand(favour: float, first: str, *, rounds: int, page: int, quota: int) -> list[tuple[float, int]]:
    """Round by round the share of the pages of what was first, and what has entered; the most shown enter first."""
    collection = growing()
    keys = {name.partition("-")[0]: key for name, key in zip(collection.ids, collection.tie_keys(), strict=True)}
    entered: set[str] = set()
    found = []
    for _ in range(rounds + 1):
        ids = [name for name in collection.ids if name.endswith(first) or name.partition("-")[0] in entered]
        pages = [sorted(ids, key=lambda name: -score(query, name, favour))[:page] for query in collection.queries["id"]]
        shares = [sum(name.endswith(first) for name in names) / page for names in pages]
        found.append((sum(shares) / len(shares), len(ids) - ORIGINS))
        counts = Counter(name.partition("-")[0] for names in pages for name in names)
        waiting = sorted(counts.keys() - entered, key=lambda origin: (-counts[origin], keys[origin]))
        entered |= set(waiting[:quota])
    return found


@pytest.mark.parametrize(("page", "quota"), [(1, ORIGINS), (4, 12), (3, 6)])
def test_shares_in_both_directions_are_those_counted_by_hand(page: int, quota: int) -> None:
    how = {"rounds": 3, "page": page}
    found = spiral(growing(), [Planted(favour=0.02)], share=quota / ORIGINS, **how, **QUICK)
    both = [pages_by_hand(0.02, first, quota=quota, **how) for first in ("human", "llm")]
    assert 0 < both[0][1][1] <= quota
    for step, (share, rewrites), (mirrored, _) in zip(found.rounds, *both, strict=True):
        assert (step.share.value, step.rewrites) == (pytest.approx(share), rewrites)
        assert step.mirrored.value == pytest.approx(mirrored)
        assert step.lead.value == pytest.approx((share - mirrored) / 2)
        assert step.middle == pytest.approx((share + mirrored) / 2)
        assert step.held == pytest.approx(ORIGINS / (ORIGINS + rewrites))
        assert step.share.low <= step.share.value <= step.share.high


def test_a_neutral_ranker_stays_at_the_share_of_the_collection_or_in_the_middle() -> None:
    found = spiral(growing(), [Planted()], rounds=4, entry_rule="random", **QUICK)
    assert [step.rewrites for step in found.rounds] == [0, 15, 30, 45, 60]
    for step in found.rounds[1:]:
        assert step.share.low <= step.held <= step.share.high
        assert step.lead.low <= 0 <= step.lead.high
    tied = spiral(growing(), [Tied()], rounds=2, page=7, entry_rule="random", **QUICK)
    assert [step.share.value for step in tied.rounds] == pytest.approx([step.held for step in tied.rounds])
    found = spiral(growing(origins=300), [Planted()], rounds=3, share=0.1, **QUICK)
    assert all(one.lead.low <= 0 <= one.lead.high for one in found.rounds[1:])
    assert found.rounds[3].share.value < found.rounds[3].held


def test_a_ranker_that_prefers_rewrites_leaves_nothing_to_humans_and_the_end_is_as_an_audit_says() -> None:
    found = spiral(growing(), [Planted(favour=2), Planted(favour=-2)], rounds=3, entry_rule="random", **QUICK)
    rewrites, human = found.of(found.runs[0]), found.of(found.runs[1])
    assert [one.share for one in rewrites[1:]] == [(0, 0, 0)] * 3
    assert [one.share for one in human] == [(1, 1, 1)] * 4
    assert [(one.kind, one.side) for one in found.verdicts()] == [("favours", "rewrites"), ("favours", "human")]
    first = found.differences[0]
    assert (first.run, first.old_run, first.value, first.low, first.high) == (*reversed(found.runs), 100, 100, 100)
    assert first.shown
    collection = growing()
    found = spiral(collection, [Planted(favour=0.1)], rounds=2, entry_rule="random", **QUICK)
    whole = audit(collection, Planted(favour=0.1).rank(collection), ["nDCG@10"], confounds=False, **QUICK)
    assert found.rounds[-1].effectiveness.value == whole.by_group().filter(group=ALL)["mean"][0]
    start = of_sources(collection, ["human"])
    alone = audit(start, Planted().rank(start), ["nDCG@10"], by=None, **QUICK)
    assert found.rounds[0].effectiveness.value == alone.by_group()["mean"][0]


def test_the_same_seed_gives_the_same_file_and_other_sources_stay_out() -> None:
    how = {"rounds": 2, "entry_rule": "random", **QUICK}
    first, again, other = (spiral(growing(), [Planted(favour=0.4)], seed=seed, **how) for seed in (1, 1, 2))
    assert first.to_json() == again.to_json()
    assert first.rounds[1].share != other.rounds[1].share
    how = {"rounds": 2, "entry_rule": "random", **QUICK}
    beside = spiral(growing(("llm", "gpt")), [Planted(favour=0.2)], source="llm", **how)
    alone = spiral(growing(("llm",)), [Planted(favour=0.2)], **how)
    assert beside.rounds == alone.rounds
    assert beside.spec["source"] == "llm"


def test_a_correction_is_left_out_of_the_round_without_rewrites_and_its_queries_do_not_count() -> None:
    found = grown()
    assert found.runs == ("planted(favour=0.05)", "planted(favour=0.05)>>human-first")
    plain, corrected = (found.of(run) for run in found.runs)
    assert plain[0].effectiveness == corrected[0].effectiveness
    assert [one.share.value for one in corrected] == [1.0] * 4
    assert plain[-1].share.high < 0.5
    rankers = [Planted(favour=0.4), Planted(favour=0.4) >> HumanFirst(learned="q0 q1 q2")]
    found = spiral(growing(), rankers, rounds=1, **QUICK)
    assert found.queries == 37
    assert found.notes == ("left out: 3 queries that a correction was fitted on",)


def test_rewrites_of_nothing_and_queries_without_judgments_are_told_of(tmp_path: Path) -> None:
    docs = [*growing().docs.to_dicts(), {"id": "x-llm", "text": "x", "source": "llm", "origin": "x-human"}]
    bare = Collection(pl.DataFrame(docs), growing().queries.head(5), growing().qrels.clear())
    found = spiral(bare, [Planted()], rounds=1, **QUICK)
    assert [note.split(":")[0] for note in found.notes] == ["left out", "warning", "no nDCG@10"]
    assert found.notes[0].startswith("left out: 1 rewrite ")
    assert math.isnan(found.rounds[1].effectiveness.value)
    assert Spiral.load(found.save(tmp_path / "spiral.json")) == found
    again = {"id": "0-llm-again", "text": "x", "source": "llm", "origin": "0-human"}
    more = Collection(pl.DataFrame([*growing().docs.to_dicts(), again]), growing().queries, growing().qrels)
    found = spiral(more, [Planted()], rounds=1, entry_rule="random", **QUICK)
    assert [note.split(",")[0] for note in found.notes] == ["some documents have several rewrites"]
    assert found.rounds[1].rewrites == ORIGINS + 1


BM25 = [ranker("bm25")]
NO_QUERIES = Collection(growing().docs, growing().queries.clear(), growing().qrels.clear())


def two(query: str = "x", **more: str) -> Collection:
    """One human document and, with more fields, another one."""
    docs = [{"id": "d", "text": "x", "source": "human"}, *([{"id": "e", "text": "x", **more}] if more else [])]
    return collection_of(docs, {"q": query}, {"q": {"d": 1}})


@pytest.mark.parametrize(
    ("collection", "rankers", "options", "message"),
    [
        (two(), BM25, {}, "nothing can enter: only source 'human'; expected rewrites of its documents"),
        (two(source="llm"), BM25, {}, "nothing can enter: no document of 'llm' is of the origin of one of 'human'"),
        (growing(), BM25, {"source": "gpt"}, "unknown source 'gpt' (valid: llm)"),
        (growing(("llm", "gpt")), BM25, {}, "rewrites of 2 sources: name the one that enters, such as --source llm"),
        (two("y", source="llm", origin="d"), BM25, {"rounds": 1}, "no query for which every ranker finds a document i"),
        (growing(), BM25, {"rounds": 0}, "expected rounds of at least 1, got 0"),
        (growing(), BM25, {"share": 0}, "expected a share of the origins a round above 0 and at most 1, got 0"),
        (growing(), [ranker("replay:run.trec>>cross-encoder:x")], {}, "replay:run.trec>>cross-encoder:x: a saved run"),
        (NO_QUERIES, BM25, {}, "nothing to rank: the collection has no queries"),
    ],
)
def test_faults_are_said(collection: Collection, rankers: list[Ranker], options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match="^" + re.escape(message)):
        spiral(collection, rankers, **options)
