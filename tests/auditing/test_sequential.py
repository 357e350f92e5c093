"""Sequential audits: queries are asked until a tilt is decided, and looking all the time costs no certainty."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, Run
from ranktilt.auditing.sequential import BATCH, Look, SequentialAudit, audit_until, decided
from ranktilt.rankers.base import Ranker, cut
from tests.refusals import refused

DOCS = 40
"""Documents of each query, which no other query meets; every other one is of group a."""


@dataclass(frozen=True)
class Noisy(Ranker):
    """Random scores; those of group a are raised. Each query has its own, whenever it is asked."""

    raised: float = 0.0
    salt: int = 0
    silent: float = 0.0
    """Share of queries whose lists hold one group alone."""

    name = "noisy"

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        lists = []
        for name in collection.judged["id"]:
            rng = np.random.default_rng([self.salt, int(name)])
            scores = rng.normal(0, 1, DOCS)
            scores[::2] += self.raised
            rows = np.arange(DOCS)
            if rng.random() < self.silent:
                rows = rows[::2]
            lists.append((rows + DOCS * int(name), scores[rows]))
        parts = cut(iter(lists), collection.tie_keys(), None)
        return Run(tuple(collection.judged["id"]), *parts, collection.ids, {"ranker": "noisy"})


def collection(queries: int = 600) -> Collection:
    docs = pl.DataFrame({"id": [f"{side}{n}" for n in range(max(queries, 1) * DOCS // 2) for side in "ab"], "text": ""})
    docs = docs.with_columns(source=pl.col("id").str.head(1))
    names = [str(n) for n in range(queries)]
    judgments = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int64})
    return Collection(docs, pl.DataFrame({"id": names, "text": "?"}), judgments)


def test_a_strong_tilt_ends_the_audit_early(tmp_path: Path) -> None:
    found = audit_until(collection(), Noisy(2.0), 10)
    assert found.decision == "tilted"
    assert found.looks[-1].low > 0
    assert found.asked == found.answered == len(found.looks) * BATCH < 100
    assert found.looks[-1].documents == 20 * found.asked  # the first ten and ten of those below
    turned = audit_until(collection(), Noisy(-2.0), 10)
    assert "favours b" in turned.headline
    assert SequentialAudit.load(found.save(tmp_path / "s.json")).looks == found.looks


def test_a_level_ranker_is_shown_to_be_level_or_not_decided() -> None:
    found = audit_until(collection(), Noisy(), 10)
    assert found.decision == "level"
    assert -0.1 <= found.looks[-1].low <= 0 <= found.looks[-1].high <= 0.1
    assert found.asked < 600
    found = audit_until(collection(), Noisy(), 1, max_queries=40)
    assert (found.decision, found.asked, found.of) == ("inconclusive", 40, 600)
    assert [look.queries for look in found.looks] == [16, 32, 40]
    assert found.looks[-1].documents == 800
    whole = audit_until(collection(200), Noisy(2.0), 10, "Share@40")  # of 40 documents it is 0 whatever the ranker does
    assert whole.decision == "inconclusive"


def test_lists_of_one_group_say_nothing_and_are_counted() -> None:
    found = audit_until(collection(), Noisy(silent=0.5), 1, max_queries=64)
    silent = 64 - found.looks[-1].queries
    assert 15 < silent < 50
    with refused("Share@10 is undefined: no list of 32 queries holds both groups"):
        audit_until(collection(), Noisy(silent=1.0), 10, max_queries=32)


@pytest.mark.parametrize(
    ("look", "until", "decision"),
    [
        (Look(9, 90, 0.2, 0.01, 0.4, 0.0, 0.0), 0.1, "tilted"),
        (Look(9, 90, -0.2, -0.4, -0.01, 0.0, 0.0), 0.5, "tilted"),
        (Look(9, 90, 0.0, -0.1, 0.1, 0.0, 0.0), 0.1, "level"),
        (Look(9, 90, 0.0, -0.1, 0.11, 0.0, 0.0), 0.1, "inconclusive"),
        (Look(9, 90, 0.1, 0.0, 0.2, 0.0, 0.0), 0.1, "inconclusive"),
    ],
)
def test_what_decides(look: Look, until: float, decision: str) -> None:
    assert decided(look, until) == decision


@dataclass(frozen=True)
class Recurring(Ranker):
    """The same documents for every query: each has a quality of its own, and a score for each query beside it."""

    world: int

    name = "recurring"

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        number, rows = len(collection.ids), np.arange(len(collection.ids))
        quality = np.random.default_rng(self.world).normal(0, 1, number)
        draws = (np.random.default_rng([self.world, int(name)]) for name in collection.judged["id"])
        parts = cut(((rows, quality + rng.normal(0, 1, number)) for rng in draws), collection.tie_keys(), None)
        return Run(tuple(collection.judged["id"]), *parts, collection.ids, {"ranker": "recurring"})


@pytest.mark.parametrize("twins", [False, True])
def test_the_same_documents_in_every_query_favour_no_side(twins: bool) -> None:
    """A coin tosses the labels of 60 documents or origins: queries alone would name a side in most such worlds."""
    plain, decisions, alone, text = collection(192), [], 0, ""
    for world in range(8):
        coin = np.random.default_rng([world, 1]).integers(0, 2, 60)
        names = ["ab"[side] for toss in coin for side in ((toss, 1 - toss) if twins else (toss,))]
        origins = [str(row // 2 * 2 if twins else row) for row in range(len(names))]
        docs = pl.DataFrame({"id": [str(row) for row in range(len(names))], "source": names, "origin": origins})
        tossed = Collection(docs.with_columns(text=pl.lit("")), plain.queries, plain.qrels)
        found = audit_until(tossed, Recurring(world), 3)
        decisions.append(found.decision)
        alone += any(look.query_low > 0 or look.query_high < 0 for look in found.looks)
        assert found.looks[-1].documents <= 60
        text += ": ".join((found.headline, *found.sentences))
    assert "tilted" not in decisions
    assert alone >= 4
    noun = "origins" if twins else "documents"
    assert re.search(f"recurring is not decided after 192 queries and \\d+ {noun}: Share@10", text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop_at_tilt": 0}, "expected a tilt above 0, such as 10 (points), got 0"),
        ({"stop_at_tilt": math.nan}, "expected a tilt above 0, such as 10 (points), got nan"),
        ({"max_queries": 0}, "expected at least 1 query to ask, got 0"),
        ({"by": ""}, "a sequential audit needs a column of groups (by)"),
        ({"measure": "nDCG@10"}, "nDCG@10 cannot be estimated query by query; use Share@k, such as Share@10"),
        ({"collection": collection(0)}, "no query to ask: name a file of queries, or a collection that has some"),
    ],
)
def test_what_cannot_be_decided_is_refused(options: dict[str, Any], message: str) -> None:
    with refused(message):
        audit_until(**{"collection": collection(9), "ranker": Noisy(), "stop_at_tilt": 10, **options})
