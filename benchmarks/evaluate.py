"""Evaluation with intervals beside pytrec_eval's point values: wall time and peak memory.

Two runs of 1,000 documents a query; nDCG and AP at 1, 3 and 5. RankTilt: every measure for all
documents and for both sources in expectation over ties, Relative Δ with 10,000 bootstrap resamples
and 10,000 sign flips, twins counted. pytrec_eval: the same measures for both sources, ties by
document id, means only.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
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

PACKAGES = ("ranktilt", "numpy", "scipy", "polars", "pytrec_eval-terrier")
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


def trec(folder: Path, args: argparse.Namespace) -> Measured:
    """Evaluate both runs for both sources with pytrec_eval, one run in memory at a time."""
    import pytrec_eval

    collection, runs = material(folder)
    source = dict(zip(collection.docs["id"], collection.docs["source"], strict=True))
    qrels: dict[str, dict[str, dict[str, int]]] = {s: {} for s in collection.sources}
    for query, doc, grade in collection.qrels.iter_rows():
        qrels[source[doc]].setdefault(query, {})[doc] = grade
    ids, watch = collection.ids.to_list(), Watch()
    for run in runs:
        with watch("dictionaries"):
            docs, scores = run.docs.tolist(), run.scores.tolist()
            parts = {
                query: dict(zip([ids[d] for d in docs[low:high]], scores[low:high], strict=True))
                for query, low, high in zip(
                    run.queries, run.offsets[:-1], run.offsets[1:], strict=True
                )
            }
        with watch("evaluate"):
            for judged in qrels.values():
                values = pytrec_eval.RelevanceEvaluator(judged, set(TREC_MEASURES)).evaluate(parts)
                for name in next(iter(values.values())):
                    pytrec_eval.compute_aggregated_measure(name, [v[name] for v in values.values()])
    return watch.parts


CONTENDERS: dict[str, Contender] = {"ranktilt": ours, "pytrec_eval": trec}


def section(folder: Path, name: str, rounds: int, most: float | None) -> str:
    """Measure both contenders on one collection."""
    measured = alternating(__file__, tuple(CONTENDERS), folder, rounds)
    ours_figures, trec_figures = measured["ranktilt"], measured["pytrec_eval"]
    dictionary_time, label = (
        seconds(trec_figures["dictionaries"]),
        "pytrec_eval: 6 measures × 2 groups × 2 runs, means",
    )
    rows: list[tuple[str, str, float, float]] = [
        (
            "ranktilt: 6 measures × 3 groups × 2 runs, intervals, tests, twins",
            "–",
            ours_figures["evaluate"],
            ours_figures["peak"],
        ),
        (label, dictionary_time, trec_figures["evaluate"], trec_figures["peak"]),
    ]
    trec_time = trec_figures["evaluate"] + trec_figures["dictionaries"]
    lines = [
        f"### {name}, median of {rounds}",
        "",
        table(
            ["contender", "runs as dictionaries", "evaluate", "peak memory"],
            [
                [name, dictionary_time, seconds(time), memory(peak)]
                for name, dictionary_time, time, peak in rows
            ],
        ),
        "",
        "- ranktilt / pytrec_eval: "
        f"{seconds(ours_figures['evaluate'] / trec_figures['evaluate'])}× (with its dictionaries "
        f"{seconds(ours_figures['evaluate'] / trec_time)}×)",
    ]
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
