"""Evaluation with intervals beside pytrec_eval's point values: wall time and peak memory.

Two runs of 1,000 documents a query; nDCG and AP at 1, 3 and 5. RankTilt: every measure for all
documents and for both sources in expectation over ties, Relative Δ with 10,000 bootstrap resamples
and 10,000 sign flips, twins counted. pytrec_eval: the same measures for both sources, ties by
document id, means only.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from common import (
    ABSENT,
    TINY,
    Contender,
    Measured,
    Watch,
    alternating,
    arguments,
    compete,
    machine,
    memory,
    nfcorpus,
    publish,
    seconds,
    table,
    target,
)

if TYPE_CHECKING:
    import ranktilt as rt

PACKAGES = (
    "ranktilt",
    "numpy",
    "scipy",
    "polars",
    "pytrec_eval-terrier",
    "ir-measures",
    "ranx",
    "numba",
)
Judged = dict[str, dict[str, int]]
RunDictionary = dict[str, dict[str, float]]
Evaluate = Callable[[Judged, RunDictionary], float]
"""Returns the mean nDCG@5 of a run, after all six measures were computed."""
MEASURES = ("nDCG@1", "nDCG@3", "nDCG@5", "AP@1", "AP@3", "AP@5")
TREC_MEASURES = ("ndcg_cut.1,3,5", "map_cut.1,3,5")


def material(folder: Path) -> tuple[rt.Collection, list[rt.Run]]:
    """Collection and two runs: real lexical ones on NFCorpus, generated ones (without texts) at
    size.
    """
    import generate

    import ranktilt as rt

    data = nfcorpus()
    if folder.name == "nfcorpus" and data is not None:
        collection = rt.load(data)
        return collection, [rt.ranker(text).rank(collection) for text in ("tfidf", "bm25")]
    size = generate.QUICK if folder.name == "quick" else generate.FULL
    collection = generate.collection(size, with_text=False)
    queries = tuple(collection.queries_with_judgments["id"])
    runs = []
    for seed in (1, 2):
        offsets, docs, scores = generate.rankings(size, seed=seed)
        runs.append(
            rt.Run(queries, offsets, docs, scores, collection.ids, {"ranker": f"generated {seed}"})
        )
    return collection, runs


def ours(folder: Path, args: argparse.Namespace) -> Measured:
    """Audit both runs."""
    from ranktilt.auditing.audit import audit

    collection, runs = material(folder)
    watch = Watch()
    with watch("evaluate"):
        result: rt.Audit = audit(collection, runs, MEASURES, resamples=10_000)
    return {**watch.parts, "queries": len(result.queries)}


def judgments_by_source(collection: rt.Collection) -> dict[str, dict[str, dict[str, int]]]:
    """Return judgments as dictionaries, those of each source apart."""
    source = dict(zip(collection.docs["id"], collection.docs["source"], strict=True))
    qrels: dict[str, dict[str, dict[str, int]]] = {name: {} for name in collection.sources}
    for query, doc, grade in collection.qrels.iter_rows():
        qrels[source[doc]].setdefault(query, {})[doc] = grade
    return qrels


def as_dictionaries(run: rt.Run, ids: list[str]) -> dict[str, dict[str, float]]:
    """Return a run as the other libraries read it."""
    docs, scores = run.docs.tolist(), run.scores.tolist()
    bounds = zip(run.queries, run.offsets[:-1], run.offsets[1:], strict=True)
    return {
        query: dict(zip([ids[d] for d in docs[low:high]], scores[low:high], strict=True))
        for query, low, high in bounds
    }


def peer(folder: Path, evaluate: Evaluate) -> Measured:
    """Evaluate both runs for both sources with another library, one run in memory at a time."""
    collection, runs = material(folder)
    qrels = judgments_by_source(collection)
    ids, watch = collection.ids.to_list(), Watch()
    means = list[float]()
    # A first pass over a few queries: ranx compiles then.
    few = dict(list(next(iter(qrels.values())).items())[:20])
    warm_up = as_dictionaries(runs[0], ids)
    evaluate(few, {query: warm_up[query] for query in few})
    del warm_up
    for run in runs:
        with watch("dictionaries"):
            run_dictionary = as_dictionaries(run, ids)
        with watch("evaluate"):
            means += [evaluate(judged, run_dictionary) for judged in qrels.values()]
    return {**watch.parts, "ndcg": sum(means) / len(means)}


def trec(folder: Path, args: argparse.Namespace) -> Measured:
    """Evaluate with pytrec_eval."""
    import pytrec_eval

    def evaluate(judged: Judged, run: RunDictionary) -> float:
        values = pytrec_eval.RelevanceEvaluator(judged, set(TREC_MEASURES)).evaluate(run)
        means = {
            name: pytrec_eval.compute_aggregated_measure(name, [v[name] for v in values.values()])
            for name in next(iter(values.values()))
        }
        return float(means["ndcg_cut_5"])

    return peer(folder, evaluate)


def ir_measures_means(folder: Path, args: argparse.Namespace) -> Measured:
    """Evaluate with ir_measures."""
    import ir_measures

    measures = [ir_measures.parse_measure(name) for name in MEASURES]

    def evaluate(judged: Judged, run: RunDictionary) -> float:
        means = ir_measures.calc_aggregate(measures, judged, run)
        return float(means[ir_measures.parse_measure("nDCG@5")])

    return peer(folder, evaluate)


def ranx_means(folder: Path, args: argparse.Namespace) -> Measured:
    """Evaluate with ranx, whose measures numba compiles."""
    import ranx

    names = ["ndcg@1", "ndcg@3", "ndcg@5", "map@1", "map@3", "map@5"]

    def evaluate(judged: Judged, run: RunDictionary) -> float:
        judged_run = ranx.Run({query: run[query] for query in judged})
        means = ranx.evaluate(ranx.Qrels(judged), judged_run, names)
        return float(means["ndcg@5"])

    return peer(folder, evaluate)


CONTENDERS: dict[str, Contender] = {
    "ranktilt": ours,
    "pytrec_eval": trec,
    "ir_measures": ir_measures_means,
    "ranx": ranx_means,
}
PEERS = tuple(CONTENDERS)[1:]


def section(folder: Path, name: str, rounds: int, most: float | None) -> str:
    """Measure both contenders on one collection."""
    measured = alternating(__file__, tuple(CONTENDERS), folder, rounds)
    ours_figures, *peer_figures = measured.values()
    rows = [
        [
            "ranktilt: 6 measures × 3 groups × 2 runs, intervals, tests, twins",
            "–",
            seconds(ours_figures["evaluate"]),
            memory(ours_figures["peak"]),
        ]
    ]
    rows += [
        [
            f"{peer_name}: 6 measures × 2 groups × 2 runs, means",
            seconds(figures["dictionaries"]),
            seconds(figures["evaluate"]),
            memory(figures["peak"]),
        ]
        for peer_name, figures in zip(PEERS, peer_figures, strict=True)
    ]
    lines = [
        f"### {name}, median of {rounds}",
        "",
        table(["contender", "runs as dictionaries", "evaluate", "peak memory"], rows),
        "",
    ]
    for peer_name, figures in zip(PEERS, peer_figures, strict=True):
        peer_time = figures["evaluate"] + figures["dictionaries"]
        lines.append(
            f"- ranktilt / {peer_name}: "
            f"{seconds(ours_figures['evaluate'] / figures['evaluate'])}× (with its dictionaries "
            f"{seconds(ours_figures['evaluate'] / peer_time)}×)"
        )
    ndcg = ", ".join(
        f"{peer_name} {figures['ndcg']:.6f}"
        for peer_name, figures in zip(PEERS, peer_figures, strict=True)
    )
    lines.append(f"- mean nDCG@5 of both runs and sources, as a check: {ndcg}")
    if most is not None:
        lines.append(
            target("evaluation with intervals", ours_figures["evaluate"], at_most=most, unit=" s")
        )
        lines.append(
            target("peak memory of ranktilt", ours_figures["peak"] / 1e9, at_most=4, unit=" GB")
        )
    return "\n".join(lines)


def main() -> None:
    """Measure everything and write the section."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if args.contender:
        compete(args, CONTENDERS)
        return
    parts = ["## Evaluation", machine(PACKAGES)]
    with tempfile.TemporaryDirectory() as temporary:
        parts += _sections(Path(temporary), args)
    publish("evaluate", "\n\n".join(parts), args)


def _sections(temporary: Path, args: argparse.Namespace) -> Iterator[str]:
    if args.quick:
        yield section(temporary / "quick", TINY.capitalize(), 1, None)
        return
    if nfcorpus() is None:
        yield ABSENT
    else:
        yield section(
            temporary / "nfcorpus", "NFCorpus, TF-IDF and BM25 (323 queries)", args.rounds, None
        )
    yield section(
        temporary / "generated",
        "Generated, 2 runs × 7,830 queries × 1,000 documents",
        args.rounds,
        10.0,
    )


if __name__ == "__main__":
    main()
