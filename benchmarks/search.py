"""Exact search beside beir's and a bare matrix product; how search and its memory grow to 1,000,000
documents.

Each contender runs in a process of its own, imports not timed. Vectors are random and lie in a file
that is mapped; texts are sentences of NFCorpus and SciFact, shuffled into new documents. Three
things are measured: exact search at two sizes; its anonymous memory (what is not a mapped file)
under ``--memory 1GB``; and the curve of time and memory, dense and lexical, with the exponent that
fits it.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from common import (
    TINY,
    Contender,
    Measured,
    Watch,
    alternating,
    arguments,
    compete,
    fresh,
    machine,
    memory,
    nfcorpus,
    publish,
    say,
    seconds,
    table,
    target,
)

PACKAGES = ("ranktilt", "numpy", "scipy", "polars", "torch", "beir")
SIZES, QUICK = (10_000, 100_000, 1_000_000), (500, 1_000, 2_000)
QUERIES, MANY, DIMENSIONS, DEPTH = 323, 3_237, 384, 1000
QUICK_DIMENSIONS = 16
CHUNK = 50_000
"""Documents a product: beir's own number, and the bare products' too."""
ALLOWED = "1GB"
Vectors = npt.NDArray[np.float32]


class Mapped:
    """The vectors of a file, mapped, as `ranktilt.rankers.dense.search.search` reads them."""

    def __init__(self, folder: Path) -> None:
        self.vectors: Vectors = np.load(folder / "documents.npy", mmap_mode="r")

    @property
    def shape(self) -> tuple[int, int]:
        """Number of vectors and their length."""
        return self.vectors.shape[0], self.vectors.shape[1]

    def read(self, start: int, stop: int) -> Vectors:
        """Return some of them, not copied."""
        return self.vectors[start:stop]


def queries_of(folder: Path, most: int = QUERIES) -> Vectors:
    """Vectors of the first queries."""
    return np.asarray(np.load(folder / "queries.npy")[:most])


@contextmanager
def anonymous(watch: Watch) -> Iterator[None]:
    """Note the most memory that was anonymous while the block ran, looked up every few
    milliseconds.
    """
    status, over, most = Path("/proc/self/status"), threading.Event(), [0.0]

    def look() -> None:
        match = (
            re.search(r"RssAnon:\s*(\d+) kB", status.read_text(encoding="utf-8"))
            if status.is_file()
            else None
        )
        most[0] = max(most[0], float(match[1]) * 1024 if match else float("nan"))

    def keep_looking() -> None:
        while not over.wait(0.005):
            look()

    thread = threading.Thread(target=keep_looking)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        look()
        watch.parts["anonymous"] = most[0]


def prepare_vectors(folder: Path, args: argparse.Namespace) -> Measured:
    """Write as many random vectors as the folder's name ends in."""
    folder.mkdir(parents=True)
    n, d = int(folder.name.partition("-")[2]), QUICK_DIMENSIONS if args.quick else DIMENSIONS
    rng = np.random.default_rng(0)
    np.save(folder / "queries.npy", rng.standard_normal((MANY, d), dtype=np.float32))
    documents = np.lib.format.open_memmap(
        folder / "documents.npy", mode="w+", dtype=np.float32, shape=(n, d)
    )
    for start in range(0, n, CHUNK):
        documents[start : start + CHUNK] = rng.standard_normal(
            (min(CHUNK, n - start), d), dtype=np.float32
        )
    documents.flush()
    return {}


def prepare_texts(folder: Path, args: argparse.Namespace) -> Measured:
    """Write as many documents of shuffled sentences as the folder's name ends in."""
    import generate
    import polars as pl

    import ranktilt as rt

    data = nfcorpus()
    sources = [generate.collection(generate.QUICK)]
    if data is not None and not args.quick:
        sources = [rt.load(path) for path in (data, data.parent / "scifact") if path.is_dir()]
    human = [s.docs.filter(pl.col("source") == s.sources[0])["text"] for s in sources]
    n = int(folder.name.partition("-")[2])
    texts = generate.shuffled(generate.sentences(pl.concat(human)), n)
    docs = pl.DataFrame(
        {"id": pl.select(pl.format("d{}", pl.int_range(n))).to_series(), "text": texts}
    )
    query_texts = pl.concat([s.queries_with_judgments["text"] for s in sources])
    queries = pl.DataFrame({"id": [f"q{i}" for i in range(len(query_texts))], "text": query_texts})
    qrels = pl.DataFrame(
        {
            "query_id": queries["id"],
            "doc_id": ["d0"] * len(query_texts),
            "grade": [1] * len(query_texts),
        }
    )
    rt.save(rt.Collection(docs, queries, qrels, {"split": "test"}), folder)
    return {}


def ours(folder: Path, args: argparse.Namespace, *, cosine: bool, most: int = QUERIES) -> Measured:
    """Search and keep every query's best."""
    from ranktilt.rankers.dense.search import search

    queries, documents, watch = queries_of(folder, most), Mapped(folder), Watch()
    with anonymous(watch), watch("search"):
        row_count = 0
        for rows, _ in search(queries, documents, DEPTH, cosine=cosine, label="search"):
            row_count += len(rows)
    return {**watch.parts, "found": float(row_count)}


def ours_dot(folder: Path, args: argparse.Namespace) -> Measured:
    """Exact search by the dot product."""
    return ours(folder, args, cosine=False)


def ours_cosine(folder: Path, args: argparse.Namespace) -> Measured:
    """Exact search by the cosine."""
    return ours(folder, args, cosine=True)


def ours_bounded(folder: Path, args: argparse.Namespace) -> Measured:
    """Exact search of ten times as many queries in a memory that is set."""
    from ranktilt.parallel.memory_limits import MemoryLimits, limit_memory, read_size

    with limit_memory(MemoryLimits(memory=read_size(ALLOWED))):
        return ours(folder, args, cosine=True, most=MANY)


def beir_search(folder: Path, args: argparse.Namespace) -> Measured:
    """beir's exact search over vectors that are there already."""
    import torch
    from beir.retrieval.search.dense import DenseRetrievalExactSearch

    vectors: Any = np.load(folder / "documents.npy", mmap_mode="c")

    class Ready:
        """Gives vectors in order instead of encoding."""

        done = 0

        def encode_queries(self, queries: Sequence[str], **_: Any) -> Any:
            return torch.from_numpy(queries_of(folder))

        def encode_corpus(self, corpus: Sequence[Any], **_: Any) -> Any:
            start, self.done = self.done, self.done + len(corpus)
            return torch.from_numpy(vectors[start : self.done])

    corpus = {f"d{i}": {"title": "", "text": ""} for i in range(len(vectors))}
    queries = {f"q{i}": "" for i in range(QUERIES)}
    model, watch = DenseRetrievalExactSearch(Ready(), corpus_chunk_size=CHUNK), Watch()
    torch.ones(64, 64) @ torch.ones(64, 64)
    with anonymous(watch), watch("search"):
        model.search(corpus, queries, DEPTH, "cos_sim")
    return watch.parts


def numpy_bare(folder: Path, args: argparse.Namespace) -> Measured:
    """Multiply chunk by chunk and take the top of each with numpy."""
    queries, documents, watch = queries_of(folder), Mapped(folder).vectors, Watch()
    with anonymous(watch), watch("search"):
        best: list[tuple[npt.NDArray[np.int64], Vectors]] = []
        for start in range(0, len(documents), CHUNK):
            scores = queries @ documents[start : start + CHUNK].T
            rows, top = _top(scores)
            best.append((rows + start, top))
        rows, top = (np.concatenate(part, axis=1) for part in zip(*best, strict=True))
        chosen, _ = _top(top)
        np.take_along_axis(rows, chosen, axis=1)
    return watch.parts


def _top(scores: Vectors) -> tuple[npt.NDArray[np.int64], Vectors]:
    rows = np.argpartition(scores, -min(DEPTH, scores.shape[1]), axis=1)[:, -DEPTH:]
    return rows, np.take_along_axis(scores, rows, axis=1)


def torch_bare(folder: Path, args: argparse.Namespace) -> Measured:
    """Multiply chunk by chunk and take the top of each with torch."""
    import torch

    queries, watch = torch.from_numpy(queries_of(folder)), Watch()
    documents: Any = np.load(folder / "documents.npy", mmap_mode="c")
    torch.ones(64, 64) @ torch.ones(64, 64)
    with anonymous(watch), watch("search"), torch.inference_mode():
        best = []
        for start in range(0, len(documents), CHUNK):
            scores = queries @ torch.from_numpy(documents[start : start + CHUNK]).T
            top = torch.topk(scores, min(DEPTH, scores.shape[1]), dim=1, sorted=False)
            best.append((top.values, top.indices + start))
        values, rows = (torch.cat(part, dim=1) for part in zip(*best, strict=True))
        rows.gather(1, torch.topk(values, min(DEPTH, values.shape[1]), dim=1, sorted=False).indices)
    return watch.parts


def lexical(folder: Path, args: argparse.Namespace) -> Measured:
    """Load texts, make the index or read the one that is kept, and search."""
    import ranktilt as rt
    from ranktilt.rankers.lexical.bm25 import BM25
    from ranktilt.rankers.lexical.index import terms

    bm25, watch = BM25(k=DEPTH), Watch()
    with watch("load"):
        collection = rt.load(folder)
    with watch("index"):
        terms(collection, bm25.analyzer, bm25.text)
    collection.tie_keys()
    with watch("search"):
        run = bm25.rank(collection)
    return {**watch.parts, "queries": float(len(run.queries))}


CONTENDERS: dict[str, Contender] = {
    "vectors": prepare_vectors,
    "texts": prepare_texts,
    "ranktilt, dot": ours_dot,
    "ranktilt, cosine": ours_cosine,
    "ranktilt, bounded": ours_bounded,
    "beir's exact search, cosine": beir_search,
    "numpy: bare product with top-k, dot": numpy_bare,
    "torch: bare product with top-k, dot": torch_bare,
    "lexical": lexical,
}
RIVALS = [
    name for name in CONTENDERS if name not in ("vectors", "texts", "lexical", "ranktilt, bounded")
]


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Slope of the logarithm of a value over the logarithm of the size: 1 is linear."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def search_section(folder: Path, sizes: Sequence[int], rounds: int, dimensions: int) -> str:
    """Measure exact search beside the others, at two sizes."""
    lines = ["## Exact search", "", machine(PACKAGES), ""]
    for n, times in ((sizes[1], rounds), (sizes[2], 1)):
        measured = alternating(__file__, RIVALS, folder / f"vectors-{n}", times)
        rows = [
            [name, seconds(m["search"]), memory(m["anonymous"])] for name, m in measured.items()
        ]
        dot, cosine, beir, bare, torch = (measured[name]["search"] for name in RIVALS)
        lines += [
            f"### {n:,} × {dimensions} vectors, {QUERIES} queries, {DEPTH:,} best of each, "
            + ("one run" if times == 1 else f"median of {times}, taking turns"),
            "",
            table(["contender", "seconds", "anonymous memory"], rows),
            "",
            target("cosine, ranktilt / beir", cosine / beir, at_most=1, unit="×"),
            target(
                "dot, ranktilt / numpy's bare product with top-k", dot / bare, at_most=1.3, unit="×"
            ),
            target(
                "dot, ranktilt / torch's bare product with top-k",
                dot / torch,
                at_most=1.3,
                unit="×",
            ),
            "",
        ]
    say(f"{MANY:,} queries in {ALLOWED}")
    bounded = fresh(__file__, "ranktilt, bounded", folder / f"vectors-{sizes[2]}")
    lines += [
        f"With `--memory {ALLOWED}`, {sizes[2]:,} × {dimensions} vectors from a mapped file, "
        f"{MANY:,} queries: "
        f"{seconds(bounded['search'])} s",
        "",
        target(
            "most anonymous memory, Python and its packages included",
            bounded["anonymous"] / 1e9,
            at_most=1,
            unit=" GB",
        ),
        "",
        "ranktilt computes the scores it gives a second time, pair by pair in float64, so that "
        "they do not depend on "
        "the place of a document or query; that is in its times. Not counted: imports.",
    ]
    return "\n".join(lines)


def curve_section(folder: Path, sizes: Sequence[int], dimensions: int) -> str:
    """Measure how dense and lexical search grow."""
    dense, prepared, read = list[Measured](), list[Measured](), list[Measured]()
    for n in sizes:
        say(f"curve: {n:,} documents")
        dense.append(fresh(__file__, "ranktilt, cosine", folder / f"vectors-{n}"))
        prepared.append(fresh(__file__, "lexical", folder / f"texts-{n}"))
        read.append(fresh(__file__, "lexical", folder / f"texts-{n}"))
    columns: list[tuple[str, list[float]]] = [
        ("dense: search, s", [m["search"] for m in dense]),
        ("dense: anonymous memory, GB", [m["anonymous"] / 1e9 for m in dense]),
        ("BM25: load the collection, s", [m["load"] for m in prepared]),
        ("BM25: tokenize and index, s", [m["index"] for m in prepared]),
        ("BM25: the same again, s", [m["index"] for m in read]),
        ("BM25: search, s", [m["search"] for m in read]),
        ("BM25: peak memory, GB", [m["peak"] / 1e9 for m in prepared]),
        ("BM25: peak memory again, GB", [m["peak"] / 1e9 for m in read]),
    ]
    rows = [
        [name, *map(seconds, values), f"{exponent(sizes, values):.2f}"] for name, values in columns
    ]
    return "\n".join(
        [
            "## Growth",
            "",
            machine(PACKAGES),
            "",
            f"Dense: {dimensions} numbers a vector, {QUERIES} queries. BM25: documents of about "
            "180 words, "
            f"{prepared[0]['queries']:.0f} queries; the index is kept on disk where texts are "
            "many, and read the second "
            "time. One run; the exponent is the slope of log value over log documents, 1 is "
            "linear:",
            "",
            table(["", *(f"{n:,}" for n in sizes), "exponent"], rows),
            "",
            target(
                "peak memory of BM25 at the largest",
                max(m["peak"] for m in prepared) / 1e9,
                at_most=10,
                unit=" GB",
            ),
            (
                "- where a fixed cost (first calls, Python itself) has a part, an exponent lies "
                "below "
                "that of the work"
            ),
        ]
    )


def main() -> None:
    """Measure everything and write both sections."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="at the middle size")
    args = parser.parse_args()
    if args.contender:
        compete(args, CONTENDERS)
        return
    sizes, dimensions = (QUICK, QUICK_DIMENSIONS) if args.quick else (SIZES, DIMENSIONS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["RANKTILT_CACHE"] = str(folder / "cache")
        for n in sizes:
            for kind in ("vectors", "texts"):
                say(f"making {kind}: {n:,}")
                fresh(__file__, kind, folder / f"{kind}-{n}", *(["--quick"] if args.quick else []))
        publish(
            "search",
            search_section(folder, sizes, 1 if args.quick else args.rounds, dimensions),
            args,
        )
        publish(
            "growth",
            curve_section(folder, sizes, dimensions) + (f"\n\n{TINY}" if args.quick else ""),
            args,
        )


if __name__ == "__main__":
    main()
