"""Corrected runs keep the results below the depth that was corrected."""

from dataclasses import replace

import numpy as np
import pytest

from ranktilt import Collection, MitigationOptions, Run, audit, bundled, mitigate, ranker
from ranktilt.mitigation.apply import apply
from ranktilt.mitigation.base import run_of_depth
from ranktilt.mitigation.bench_result import Bench, Candidate, MethodFits
from ranktilt.mitigation.offset import GroupOffset, OffsetFit
from tests.mitigation.builders import labelled
from tests.mitigation.planted import mitigated_run


def at_depth(bench: Bench, depth: int) -> Bench:
    """Return a bench whose remedies correct so many results."""
    remedies = tuple(replace(remedy, depth=depth) for remedy in bench.remedies)
    return replace(bench, remedies=remedies)


def candidate(name: str) -> Candidate:
    """Return a candidate of the bench of the bundled collection."""
    candidates = mitigated_run().candidates
    return next(candidate for candidate in candidates if candidate.name == name)


def offset_bench(constant: float, depth: int) -> Bench:
    """Return a bench whose candidate `offset 0.5` adds a constant to scores of LLM documents."""
    offset = GroupOffset(
        group="llm", value=2 * constant, low=2 * constant, high=2 * constant, queries=3
    )
    fit = OffsetFit(
        spec={"ranker": "run"}, queries=(), by="source", reference="human", offsets=(offset,)
    )
    return at_depth(replace(mitigated_run(), fits=MethodFits(offset=fit)), depth)


def results(run: Run) -> list[tuple[str, float]]:
    """Return the documents of a run of one query, with their scores."""
    return [(doc, score) for _, doc, _, score in run.frame().iter_rows()]


@pytest.mark.parametrize(
    ("constant", "expected"),
    [
        # The last corrected score falls by 3, from 7 to 4: so do those below it.
        (-4.0, "d0-0 9.5, d0-2 7, d0-1 4, d0-3 3, d0-4 2, d0-5 2"),
        # The last corrected score stays: so do those below it.
        (4.0, "d0-1 12, d0-0 9.5, d0-2 7, d0-3 6, d0-4 5, d0-5 5"),
    ],
)
def test_apply_keeps_results_below_depth(constant: float, expected: str) -> None:
    collection, run = labelled(["hlhlhh"], [[9.5, 8.0, 7.0, 6.0, 5.0, 5.0]])
    bench = offset_bench(constant, depth=3)
    corrected = apply(bench, collection, run, candidate("offset 0.5"))
    assert ", ".join(f"{doc} {score:g}" for doc, score in results(corrected)) == expected


def test_apply_puts_ties_with_the_last_result_below_it() -> None:
    collection, run = labelled(["hlhh"], [[9.5, 7.0, 7.0, 7.0]])
    corrected = apply(offset_bench(0.0, depth=2), collection, run, candidate("offset 0.5"))
    top, below = results(corrected)[:2], results(corrected)[2:]
    assert [score for _, score in top] == [9.5, 7.0]
    assert [score for _, score in below] == [np.nextafter(7.0, 0)] * 2


def test_apply_keeps_distinct_scores_apart_where_rounding_joins_them() -> None:
    scores = [1.0, 0.5, np.nextafter(0.25, 1), 0.25, 0.25]
    collection, run = labelled(["hlhhh"], [scores])
    corrected = apply(offset_bench(-1000.0, depth=2), collection, run, candidate("offset 0.5"))
    assert [doc for doc, _ in results(corrected)] == [f"d0-{rank}" for rank in range(5)]
    first, second, third = corrected.scores[2:]
    assert corrected.scores[1] > first > second == third


def test_apply_leaves_measures_of_first_ranks_as_they_were() -> None:
    mixed = bundled()
    run = ranker("bm25@50").rank(mixed)
    bench = at_depth(mitigated_run(), 20)
    interleave = candidate("interleave 1")
    deep = apply(bench, mixed, run, interleave)
    shallow = apply(bench, mixed, run_of_depth(run, mixed, 20), interleave)
    assert np.diff(deep.offsets).tolist() == np.diff(run.offsets).tolist()
    audits = [
        audit(mixed, [corrected], ["nDCG@10", "RR@20"], resamples=100)
        for corrected in (deep, shallow)
    ]
    assert audits[0].values.tobytes() == audits[1].values.tobytes()


@pytest.mark.long
def test_audit_of_a_deep_corrected_run_gives_what_was_promised() -> None:
    mixed = bundled()
    unjudged = Collection(mixed.docs, mixed.queries, mixed.qrels.clear(), {})
    run = ranker("bm25@50").rank(unjudged)
    options = MitigationOptions.from_texts(["interleave"], strengths=(1.0,), depth=20)
    bench = mitigate(unjudged, run, ["Share@1"], options=options, margin=15, resamples=200)
    corrected = apply(bench, unjudged, run, bench.candidates[1])
    assert corrected.offsets.tolist() == run.offsets.tolist()
    audited = audit(unjudged, [corrected], card=True, primary="Share@1", resamples=200)
    share = next(row for row in audited.card if repr(row.estimand) == "Share@1")
    promised = bench.tilt(bench.candidates[1].name, bench.pairs[0])
    assert (share.value, share.queries) == (promised.value, promised.queries)
