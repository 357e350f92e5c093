"""Sequential audits: queries are asked until a tilt is decided, and looking all the time costs no certainty."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ranktilt.auditing.sequential import BATCH, Look, SequentialAudit, audit_until, decided
from ranktilt.collection import Collection
from ranktilt.rankers.base import Ranker, cut
from ranktilt.run import Run
from tests.refusals import refused

PAIRS = 20
DOCS = [f"{side}{n}" for n in range(PAIRS) for side in ("a", "b")]


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
            scores = rng.normal(0, 1, len(DOCS))
            scores[::2] += self.raised
            rows = np.arange(len(DOCS))
            if rng.random() < self.silent:
                rows = rows[::2]
            lists.append((rows, scores[rows]))
        parts = cut(iter(lists), collection.tie_keys(), None)
        return Run(tuple(collection.judged["id"]), *parts, collection.ids, {"ranker": "noisy"})


def collection(queries: int = 600) -> Collection:
    docs = pl.DataFrame({"id": DOCS, "text": "", "source": [name[0] for name in DOCS]})
    names = [str(n) for n in range(queries)]
    judgments = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int64})
    return Collection(docs, pl.DataFrame({"id": names, "text": "?"}), judgments)


def test_a_strong_tilt_ends_the_audit_early(tmp_path: Path) -> None:
    found = audit_until(collection(), Noisy(2.0), 10)
    assert found.decision == "tilted"
    assert found.looks[-1].low > 0
    assert found.asked == found.answered == len(found.looks) * BATCH < 100
    assert found.headline.startswith(f"noisy favours a, shown after {found.asked} queries: Share@10 +")
    turned = audit_until(collection(), Noisy(-2.0), 10)
    assert "favours b" in turned.headline
    assert SequentialAudit.load(found.save(tmp_path / "s.json")).looks == found.looks


def test_a_level_ranker_is_shown_to_be_level() -> None:
    found = audit_until(collection(), Noisy(), 10)
    assert found.decision == "level"
    assert -0.1 <= found.looks[-1].low <= 0 <= found.looks[-1].high <= 0.1
    assert found.asked < 600
    assert found.fixed is not None
    assert found.fixed < found.asked
    assert "600 queries were asked, in a drawn order" in found.sentences[0]


def test_what_is_not_decided_is_said_so() -> None:
    found = audit_until(collection(), Noisy(), 1, most=40)
    assert (found.decision, found.asked, found.of) == ("inconclusive", 40, 600)
    assert [look.queries for look in found.looks] == [16, 32, 40]
    assert found.headline.startswith("noisy is not decided after 40 queries: ")


def test_lists_of_one_group_say_nothing_and_are_counted() -> None:
    found = audit_until(collection(), Noisy(silent=0.5), 1, most=64)
    silent = 64 - found.looks[-1].queries
    assert 15 < silent < 50
    assert found.sentences[0].endswith(f"; {silent} lists say nothing of these groups")
    with refused("Share@10 says nothing: no list of 32 queries holds both groups"):
        audit_until(collection(), Noisy(silent=1.0), 10, most=32)


def test_the_order_is_drawn_by_the_seed() -> None:
    one, same, other = (audit_until(collection(), Noisy(0.3), 3, most=64, seed=seed) for seed in (1, 1, 2))
    assert one.looks == same.looks != other.looks


@pytest.mark.parametrize(
    ("look", "until", "decision"),
    [
        (Look(9, 0.2, 0.01, 0.4), 0.1, "tilted"),
        (Look(9, -0.2, -0.4, -0.01), 0.5, "tilted"),
        (Look(9, 0.0, -0.1, 0.1), 0.1, "level"),
        (Look(9, 0.0, -0.1, 0.11), 0.1, "inconclusive"),
        (Look(9, 0.1, 0.0, 0.2), 0.1, "inconclusive"),
    ],
)
def test_what_decides(look: Look, until: float, decision: str) -> None:
    assert decided(look, until) == decision


@pytest.mark.long
def test_a_thousand_audits_without_a_tilt_and_with_some() -> None:
    """Looked at after every batch: at no tilt at most 5 % are called tilted; at 20 points nearly all are, and soon."""
    ends = {raised: _simulated(raised) for raised in (0.0, 5.0, 10.0, 20.0)}
    shares = {raised: np.mean([end[0] == "tilted" for end in found]) for raised, found in ends.items()}
    assert shares[0.0] <= 0.05
    assert shares[5.0] < shares[10.0] < shares[20.0]
    assert shares[20.0] > 0.99
    wrong = [end for end in ends[20.0] if end[0] == "level"]
    assert len(wrong) <= 0.05 * 1000
    median = {raised: np.median([end[1] for end in found]) for raised, found in ends.items()}
    assert median[20.0] < median[10.0]


def _simulated(tilt: float) -> list[tuple[str, int]]:
    """Decisions and numbers of queries of 1,000 audits whose queries are that many points apart on average."""
    from ranktilt.statistics.confidence_sequence import ConfidenceSequence

    rng, found = np.random.default_rng(int(tilt)), []
    for _ in range(1000):
        sequence, decision = ConfidenceSequence(-1.0, 1.0), "inconclusive"
        while sequence.count < 400 and decision == "inconclusive":
            for value in np.clip(rng.normal(tilt / 100, 0.2, BATCH), -1, 1):
                sequence.add(float(value))
            look = Look(sequence.count, sequence.mean, sequence.low, sequence.high)
            decision = decided(look, 0.1)
        found.append((decision, sequence.count))
    return found


REFUSED: list[tuple[Callable[[], object], str]] = [
    (
        lambda: audit_until(collection(), Noisy(), 0),
        "expected a tilt to be decided above 0, such as 10 (points), got 0",
    ),
    (
        lambda: audit_until(collection(), Noisy(), math.nan),
        "expected a tilt to be decided above 0, such as 10 (points), got nan",
    ),
    (lambda: audit_until(collection(), Noisy(), 10, most=0), "expected at least 1 query to ask, got 0"),
    (lambda: audit_until(collection(), Noisy(), 10, by=""), "a sequential audit needs a column of groups (by)"),
    (
        lambda: audit_until(collection(), Noisy(), 10, "nDCG@10"),
        "nDCG@10 is no mean over queries with bounds, which a sequential audit needs; ask for Share@10",
    ),
    (
        lambda: audit_until(collection(), Noisy(), 10, "ExposureRatio"),
        "ExposureRatio is no mean over queries with bounds, which a sequential audit needs; ask for Share@10",
    ),
    (
        lambda: audit_until(collection(0), Noisy(), 10),
        "no query to ask: name a file of queries, or a collection that has some",
    ),
]


@pytest.mark.parametrize(("call", "said"), REFUSED)
def test_what_cannot_be_decided_is_refused(call: Callable[[], object], said: str) -> None:
    with refused(said):
        call()
