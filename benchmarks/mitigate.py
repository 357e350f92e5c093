"""What a correction at inference adds to a search of 100,000 documents, and how long a whole bench
takes.

The vectors are random and lie in a file that is mapped, as those of the cache do. Plain searches,
searches without a direction and corrections of the lists take turns in one process. Perplexities
are computed once a collection, as vectors are, and are not counted.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import generate
import numpy as np
from common import (
    TINY,
    Contender,
    Measured,
    Watch,
    arguments,
    compete,
    fresh,
    machine,
    nfcorpus,
    nfcorpus_or_tiny,
    publish,
    ranktilt,
    seconds,
    table,
    target,
)
from search import DEPTH, DIMENSIONS, QUERIES, QUICK_DIMENSIONS, Mapped, prepare_vectors, queries_of

if TYPE_CHECKING:
    import ranktilt as rt
    from ranktilt.mitigation.base import Correction

PACKAGES = ("ranktilt", "numpy", "scipy", "polars")
SIZE, QUICK, ROUNDS = 100_000, 1_000, 5
METHODS, STRENGTHS = ("causal", "projection", "fair-rerank", "interleave"), 5
MOST = 10.0
"""Per cent that a correction may add."""
LABELS = {
    "projection": "dense, without a direction (project=)",
    "causal": "causal(strength=1) behind dense",
    "offset": "offset(strength=1) behind dense",
}


def collection_of(count: int) -> rt.Collection:
    """Twins of a few words: corrections of lists read their sources and perplexities, not their
    length.
    """
    import polars as pl

    import ranktilt as rt

    number = pl.int_range(count)
    docs = pl.select(
        pl.format("d{}", number).alias("id"),
        pl.format("w{} w{} w{}", number % 97, number % 89, number % 83).alias("text"),
        pl.when(number % 2 == 0).then(pl.lit("human")).otherwise(pl.lit("llm")).alias("source"),
        pl.format("o{}", number // 2).alias("origin"),
    )
    queries = pl.DataFrame(
        {"id": [f"q{i}" for i in range(QUERIES)], "text": [f"query {i}" for i in range(QUERIES)]}
    )
    judgments = pl.DataFrame(
        {"query_id": queries["id"], "doc_id": ["d0"] * QUERIES, "grade": [1] * QUERIES}
    )
    return rt.Collection(docs, queries, judgments)


def causal(folder: Path, collection: rt.Collection) -> Correction:
    """The causal correction by a made-up fit, with the collection's perplexities known."""
    from ranktilt.explaining.perplexity import PerplexityProbe
    from ranktilt.mitigation.causal import Causal, CausalFit, perplexities

    spec = {
        "ranker": "dense",
        "reference": "human",
        "source": "llm",
        "unit": "",
        "perplexity": PerplexityProbe().options,
    }
    perplexities(collection, np.arange(1), spec)
    fit = CausalFit(
        spec=spec,
        queries=(),
        coefficient=-0.01,
        low=-0.02,
        high=0.0,
        f=100.0,
        score_gap=0.01,
        perplexity_gap=-1.0,
        pairs=(),
    )
    return Causal(fit=str(fit.save(folder / "causal.json")))


def offset(folder: Path) -> Correction:
    """The offset correction by a made-up fit."""
    from ranktilt.mitigation.offset import GroupOffset, Offset, OffsetFit

    constant = GroupOffset(group="llm", value=-0.01, low=-0.02, high=0.0, queries=1)
    fit = OffsetFit(
        spec={"ranker": "dense"},
        queries=(),
        by="source",
        reference="human",
        offsets=(constant,),
    )
    return Offset(fit=str(fit.save(folder / "offset.json")))


def corrections(folder: Path, args: argparse.Namespace) -> Measured:
    """Search, search without a direction, and correct the lists, in turns; medians of each."""
    import ranktilt as rt
    from ranktilt.rankers.dense.direction import Direction
    from ranktilt.rankers.dense.search import search

    documents, queries = Mapped(folder), queries_of(folder)
    collection, spec = collection_of(len(documents.vectors)), {"ranker": "dense"}
    known = {
        "fingerprint": "",
        "cosine": True,
        "model": "",
        "reference": "",
        "source": "",
        "p": 1.0,
        "length": 1.0,
    }
    vector = np.full(documents.shape[1], documents.shape[1] ** -0.5)
    file = Direction(vector=vector, spec={**known, "random_length": 1.0}, origins=()).save(
        folder / "direction.json"
    )
    after = {"causal": causal(folder, collection), "offset": offset(folder)}
    rounds = list[Measured]()
    for _ in range(1 + (1 if args.quick else ROUNDS)):  # the first warms up
        watch = Watch()
        with watch("search"):
            results = list(search(queries, documents, DEPTH, cosine=True, label=""))
        with watch("projection"):
            project = partial(Direction.load(file).remove, strength=1.0)
            list(search(queries, documents, DEPTH, cosine=True, label="", project=project))
        best = [np.argsort(-scores, kind="stable") for _, scores in results]
        lists = [
            (rows[order], scores[order])
            for (rows, scores), order in zip(results, best, strict=True)
        ]
        ends = np.cumsum([0, *(len(rows) for rows, _ in lists)])
        parts = [np.concatenate(column) for column in zip(*lists, strict=True)]
        run = rt.Run(tuple(collection.queries["id"]), ends, *parts, collection.ids, spec)
        for name, correction in after.items():
            with watch(name):
                correction.rank(collection, run)
        rounds.append(watch.parts)
    return {
        part: statistics.median(seconds_of_round[part] for seconds_of_round in rounds[1:])
        for part in rounds[0]
    }


CONTENDERS: dict[str, Contender] = {"vectors": prepare_vectors, "corrections": corrections}


def section(folder: Path, *, quick: bool) -> str:
    """Measure what each correction adds."""
    size, dimensions = (QUICK, QUICK_DIMENSIONS) if quick else (SIZE, DIMENSIONS)
    vectors_folder, options = folder / f"vectors-{size}", ["--quick"] if quick else []
    fresh(__file__, "vectors", vectors_folder, *options)
    measured = fresh(__file__, "corrections", vectors_folder, *options)
    plain = measured["search"]
    added = {
        "projection": measured["projection"] - plain,
        "causal": measured["causal"],
        "offset": measured["offset"],
    }
    rows = [["dense search", seconds(plain), ""]]
    rows += [
        [LABELS[name], seconds(plain + more), f"{100 * more / plain:+.1f} %"]
        for name, more in added.items()
    ]
    lines = [
        f"### {size:,} × {dimensions} vectors, {QUERIES} queries, {DEPTH:,} best of each"
        + (f": {TINY}" if quick else f", median of {ROUNDS}"),
        "",
        table(["", "seconds", "added"], rows),
        "",
    ]
    return "\n".join(
        [
            *lines,
            *(
                target(f"{LABELS[name]} adds", 100 * more / plain, at_most=MOST, unit=" %")
                for name, more in added.items()
            ),
        ]
    )


def whole_command(args: argparse.Namespace) -> str:
    """Measure the whole command: read, search, fit, correct, audit and write the page."""
    with nfcorpus_or_tiny(args) as (folder, where, absent):
        data, ranker, methods = nfcorpus(), "dense:minilm", METHODS
        if where == TINY or data is None:
            import ranktilt as rt

            data, ranker, methods = folder / "data", "bm25", METHODS[2:]
            rt.save(generate.collection(generate.QUICK), data)
        texts = ["causal(force=true)" if method == "causal" else method for method in methods]
        method_options = [part for text in texts for part in ("--method", text)]
        command = [
            "mitigate",
            str(data),
            "-r",
            ranker,
            "-m",
            "nDCG@5",
            *method_options,
            "--save-ranker",
            str(folder / "mitigated"),
            "-o",
            str(folder / "mitigated.html"),
            "--set",
            "mitigate.always=true",
            "--quiet",
        ]
        ranktilt(*command)  # fills the cache of vectors
        taken = ranktilt(*command)
    text = (
        f"whole bench of {len(methods)} methods × {STRENGTHS} strengths, {where}, {ranker}, "
        "vectors cached"
    )
    return "\n".join([*absent, target(text, taken, at_most=60, unit=" s")])


def main() -> None:
    """Measure and write the section."""
    parser = arguments(__doc__.splitlines()[0])
    args = parser.parse_args()
    if args.contender:
        compete(args, CONTENDERS)
        return
    with tempfile.TemporaryDirectory() as temporary:
        text = section(Path(temporary), quick=args.quick)
    text = f"{text}\n\n{whole_command(args)}"
    publish("mitigate", "\n\n".join(["## Corrections at inference", machine(PACKAGES), text]), args)


if __name__ == "__main__":
    main()
