"""Plans: costs that are known are found, what cannot be measured is refused, and samples are like the whole."""

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt.collection import Collection
from ranktilt.io.cache import KEY_BYTES
from ranktilt.planning.plan import CostFit, CostPlan, Floats, plan
from ranktilt.planning.step_costs import Experiment, Stopwatch, sample
from tests.planning.planned import PER_DOCUMENT, PER_PAIR, PER_QUERY, Clock, Clocked
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
