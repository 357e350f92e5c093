"""Plans: costs that are known are found, what cannot be measured is refused, and samples are like the whole."""

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt.collection import Collection
from ranktilt.io.cache import KEY_BYTES
from ranktilt.planning.plan import Amount, CostFit, CostPlan, Floats, PlannedStep, plan
from ranktilt.planning.step_costs import Experiment, Measurement, Stopwatch, sample
from ranktilt.rankers.base import FirstStage, Rows, Scores
from tests.rankers.tiny_rerankers import tiny_classifier
from tests.refusals import refused
from tests.toy import collection_of

long = pytest.mark.long
SIZES = np.array([(d, q) for d in (100, 400, 1600) for q in (5, 20)], dtype=np.float64)
TRUE = np.array([0.2, 0.004, 0.0, 0.0002])


def terms(sizes: Floats) -> Floats:
    """Fixed, documents, queries, documents × queries."""
    d, q = sizes.T
    return np.stack([np.ones(len(sizes)), d, q, d * q], axis=1)


FAR = terms(np.array([[16_000.0, 200.0]]))[0]


def test_costs_without_noise_are_found_exactly() -> None:
    fit = CostFit.of(terms(SIZES), terms(SIZES) @ TRUE)
    assert fit.coefficients == pytest.approx(TRUE, abs=1e-9)
    found = fit.amount(FAR)
    assert found.value == pytest.approx(0.2 + 64 + 640)
    assert found.low < found.value < found.high
    assert (CostFit.of(terms(SIZES), 20 - SIZES[:, 0] / 100).coefficients >= 0).all()
    assert CostFit.of(terms(SIZES), np.zeros(len(SIZES))).amount(FAR) == (0, 0, 0)


def test_intervals_hold_far_from_the_sample_and_widen_with_the_distance_but_for_batches() -> None:
    inside = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        fit = CostFit.of(terms(SIZES), terms(SIZES) @ TRUE * np.exp(rng.normal(0, 0.1, len(SIZES))))
        found = fit.amount(FAR)
        inside += found.low <= float(FAR @ TRUE * np.exp(rng.normal(0, 0.1))) <= found.high
    assert inside >= 54
    amounts = [fit.amount(factor * terms(SIZES)[-1]) for factor in (1, 10, 100, 1000)]
    widths = [found.high / found.low for found in amounts]
    assert widths == sorted(widths)
    assert widths[3] > 1.3 * widths[0]
    batched = fit.amount(1000 * terms(SIZES)[-1], bends=False)
    assert batched.high / batched.low < widths[0]


@long
def test_known_costs_are_predicted_at_ten_times_the_sample(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("ranktilt.planning.step_costs.audit", lambda *_, **__: None)  # which takes longer
    monkeypatch.setattr("ranktilt.planning.step_costs.time", Clock)
    found = plan(rt.bundled(), [Clocked(k=10)], documents=4640, queries=500)
    total, steps = found.total, {one.name: one for one in found.steps}
    assert list(steps) == ["load", "prepare documents", "search", "audit, run saved"]
    first = PER_QUERY + PER_PAIR * found.documents  # without a query nothing is prepared
    for name, seconds in (("prepare documents", PER_DOCUMENT * found.documents + first), ("search", 500 * first)):
        expected = steps[name].seconds
        assert expected.value == pytest.approx(seconds, rel=0.01)
        assert expected.low < seconds < expected.high
    assert steps["search"].grows == "documents × queries"
    for quantity in ("seconds", "disk"):
        values = [getattr(one, quantity).value for one in found.steps]
        assert getattr(total, quantity).value == pytest.approx(sum(values))
    assert total.memory.value == max(one.memory.value for one in found.steps)
    for amount in (amount for one in (*found.steps, total) for amount in (one.seconds, one.memory, one.disk)):
        assert amount.low <= amount.value <= amount.high
    assert CostPlan.load(found.save(tmp_path / "p.json")) == found
    assert " for 4,640 documents and 500 queries" in found.headline


@long
def test_what_is_cached_shortens_nothing_and_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path))
    seen = list[str]()

    def measure(given: Collection, watch: Stopwatch) -> None:
        seen.append(os.environ["RANKTILT_CACHE"])
        with watch("write", given) as usage:
            Path(seen[-1], "file").write_bytes(b"x" * 1000)
            usage.disk, usage.results = 5, 7

    watch = Stopwatch()
    for seed in (0, 1):
        Experiment("test", measure, rt.bundled(), 100, 10).once(1.0, 1, watch, seed=seed)
    assert [row[:4] for row in watch.measurements] == [("write", 100, 10, 7)] * 2
    assert [row.disk for row in watch.measurements] == [1005, 1005]
    assert len({*seen, str(tmp_path)}) == 3
    assert os.environ["RANKTILT_CACHE"] == str(tmp_path)
    assert not any(map(os.path.exists, seen))
    assert not list(tmp_path.iterdir())


MEMORY = """
import numpy as np, ranktilt as rt
from ranktilt.planning.step_costs import Stopwatch
watch, filled = Stopwatch(), None
for size in (0, 200_000_000):
    with watch("fill", rt.bundled()):
        filled = np.ones(size // 8)
print(*(row.memory for row in watch.measurements))
"""


@long
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not tell a process's memory")
def test_the_peak_of_the_memory_is_seen(own_cache: Path) -> None:
    # A process that holds nothing of other tests.
    told = subprocess.run([sys.executable, "-c", MEMORY], check=True, capture_output=True, text=True).stdout
    empty, filled = map(float, told.split())
    assert 150e6 < filled - empty < 300e6


SERVER = "what a server or a saved run takes cannot be measured here; try bm25"
REQUESTS = "requests of language models are estimated by ranktilt rank --dry-run"


@pytest.mark.parametrize(
    ("documents", "options", "message"),
    [
        (19, {}, "a plan measures samples of at least 20 documents and 1 query; here are 19 and 1"),
        (20, {"documents": 0}, "documents: expected at least 1, got 0"),
        (20, {"seconds": math.nan}, "expected seconds to measure above 0, got nan"),
        (20, {"rankers": []}, "nothing to plan for: name a ranker, such as bm25"),
        (20, {"rankers": [rt.ranker("replay:x.trec")]}, f"replay:x.trec: {SERVER}"),
        (20, {"rankers": [rt.ranker("dense:openai:m")]}, f"dense:openai:m: {SERVER}"),
        (20, {"rankers": [rt.ranker("listwise:openai:m")]}, f"listwise:openai:m: {REQUESTS}"),
    ],
)
def test_what_cannot_be_planned_is_refused(documents: int, options: dict[str, Any], message: str) -> None:
    docs = [{"id": f"d{n}", "text": "a b"} for n in range(documents)]
    with refused(message):
        plan(collection_of(docs, {"q0": "a"}, {}), **options)


@long
@pytest.mark.neural
def test_models_are_measured_stage_by_stage_and_shared_work_counts_once(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranktilt.planning.step_costs.audit", lambda *_, **__: None)
    classifier = tiny_classifier(tmp_path / "classifier")
    rankers = [rt.ranker(f"dense:{tiny}@20>>cross-encoder:{classifier}@5"), rt.ranker("bm25"), rt.ranker("bm25(k1=2)")]
    found = plan(rt.bundled(), rankers, documents=46_400, queries=2160, seconds=0.5)
    names = [one.name for one in found.steps]
    assert names == [
        "load", "encode documents", "encode queries", "search", f"re-rank: cross-encoder:{classifier}@5",
        "audit, run saved", "index documents (english)", "search", "audit, run saved", "search", "audit, run saved",
    ]  # fmt: skip
    encoded, run = found.steps[1], found.steps[5]
    vector = rt.ranker(f"dense:{tiny}").encoder.encode(["text"], "document", "")[0].shape[1]  # type: ignore[attr-defined]
    each = 4 * vector + KEY_BYTES + 4 + KEY_BYTES  # the vector and the number of its tokens, with their keys
    assert encoded.disk.value == pytest.approx(46_400 * each, rel=0.1)
    lines = rt.ranker("bm25@5").rank(rt.bundled()).contents(tmp_path / "run")[tmp_path / "run"]
    assert run.disk.value == pytest.approx(10 * len(lines), rel=0.2)
    pairs = [row.results for row in found.measurements if "re-rank" in row.step]
    assert pairs
    assert all(count % 20 == 0 for count in pairs)


def test_sizes_lengths_and_judgments_are_about_those_that_were_asked_for_and_the_seed_draws() -> None:
    whole = rt.bundled()
    for documents, queries in ((40, 10), (200, 216), (464, 1)):
        drawn = sample(whole, documents, queries, seed=0)
        assert abs(drawn.docs.height - documents) <= 4
        assert drawn.judged.height == queries == drawn.queries.height
        each = whole.qrels.height / whole.judged.height
        assert queries == 1 or drawn.qrels.height / queries == pytest.approx(each, rel=0.35)
        assert set(drawn.qrels["grade"]) <= set(whole.qrels["grade"])
    drawn = [sample(whole, 60, 10, seed=seed) for seed in (0, 1, 2, 0)]
    expected = whole.docs["text"].str.len_bytes().mean()
    assert all(one.docs["text"].str.len_bytes().mean() == pytest.approx(expected, rel=0.1) for one in drawn)
    assert set(drawn[0].ids) == set(drawn[3].ids) != set(drawn[1].ids)


def test_twins_stay_together_and_are_judged_alike() -> None:
    whole = rt.bundled()
    drawn = sample(whole, 100, 20, seed=3)
    versions = whole.docs.group_by("origin").len()
    sampled = drawn.docs.group_by("origin").len().join(versions, on="origin", suffix="_whole")
    assert (sampled["len"] == sampled["len_whole"]).all()
    judged = drawn.qrels.join(drawn.docs, left_on="doc_id", right_on="id").group_by("query_id", "origin").len()
    assert judged.join(sampled, on="origin", suffix="_all").filter(pl.col("len") != pl.col("len_all")).is_empty()


def test_documents_beyond_those_there_are_copies_with_texts_of_their_own() -> None:
    whole = rt.bundled()
    drawn = sample(whole, 1000, 10, seed=0)
    assert abs(drawn.docs.height - 1000) <= 4
    assert drawn.docs["text"].n_unique() == drawn.docs.height
    assert set(drawn.docs["text"].str.strip_chars_end()) <= set(whole.docs["text"].str.strip_chars_end())
    copies = drawn.docs.group_by("origin").len()["len"]
    assert set(copies) <= set(whole.docs.group_by("origin").len()["len"])


UNKNOWN = Amount(math.nan, math.nan, math.nan)
NOTHING = Amount(0, 0, 0)
PER_DOCUMENT, PER_QUERY, PER_PAIR = 2e-4, 2e-4, 4e-6


class Clock:
    """A clock that only moves when it is told to."""

    now = 0.0

    @classmethod
    def perf_counter(cls) -> float:
        return cls.now

    @classmethod
    def process_time(cls) -> float:
        """Return half of it: others use the machine, too."""
        return cls.now / 2


@dataclass(frozen=True, kw_only=True)
class Clocked(FirstStage):
    """Moves the clock for each document before its first query, and for each query and each document of each query."""

    name: ClassVar[str] = "clocked"

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        count = collection.docs.height
        left = collection.memo(("terms", "clocked"), lambda: [PER_DOCUMENT * count])
        Clock.now += left.pop() if left else 0
        for _ in range(collection.judged.height):
            Clock.now += PER_QUERY + PER_PAIR * count
            yield np.arange(count), np.linspace(2, 1, count)


def step(ranker: str, name: str, seconds: float, **others: Amount | str | float) -> PlannedStep:
    """A step, half of whose time at least and twice it at most may pass."""
    time = Amount(seconds, seconds / 2, 2 * seconds) if seconds == seconds else UNKNOWN
    known = {"memory": Amount(2e9, 1e9, 3e9), "disk": NOTHING}
    rest = {"grows": "documents", "factor": 40.0, **known, **others}
    return PlannedStep(ranker=ranker, name=name, seconds=time, processor=time, **rest)  # type: ignore[arg-type]


def whole() -> CostPlan:
    """A plan of two rankers."""
    steps = (
        step("", "load", 90, disk=Amount(9e9, 9e9, 9e9)),
        step("", "index documents (english)", 600, disk=Amount(7e9, 6e9, 8e9)),
        step("bm25", "search", 0.25, grows="documents × queries"),
        step("bm25", "audit, run saved", 40, grows="results"),
        step("bm25@100>>cross-encoder:m", "re-rank: cross-encoder:m", math.nan, grows="results"),
    )
    seconds = sum(one.seconds.value for one in steps if one.seconds.known)
    total = step("", "total", seconds, grows="", factor=1.0, memory=Amount(2e9, 1e9, 3e9))
    total = total._replace(disk=Amount(16e9, 15e9, 17e9))
    measured = Measurement("load", 5_000, 300, 0, 0.1, 0.1, 1e8, 5e6)
    return CostPlan(
        {"collection": {"path": "docs"}, "rankers": ["bm25"], "seed": 0},
        8_800_000, 7_000, steps, total, (measured,), ("A note.",),
    )  # fmt: skip
