"""Six documents, three queries and their judgments; writers of raw folders from Python literals;
full disks.
"""

import contextlib
import gzip
import json
import os
import resource
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run

Row = Mapping[str, Any]
Judgment = tuple[str, str, int]
Table = Mapping[str, Mapping[str, Any]]
"""Query id -> document id -> grade or score."""

TITLES = {"d1": "Apples", "d2": "Rivers", "d3": "Clocks"}
TEXTS = {
    "human": {
        "d1": "red apples grow on old trees in autumn",
        "d2": "the river carries cold water to the sea",
        "d3": "an old clock shows the hour by its bell",
    },
    "llm": {
        "d1": "apples are red fruits that grow on trees",
        "d2": "a river transports water toward the sea",
        "d3": "a clock indicates the hour with a bell",
    },
}
QUERIES = {"q1": "red apples", "q2": "river water", "q3": "old clock bell"}
QRELS: dict[str, dict[str, int]] = {
    "q1": {"d1": 2, "d3": 1},
    "q2": {"d2": 1, "d1": 0},
    "q3": {"d3": 2},
}
"""By bare id: each judgment holds for both versions."""


def toy() -> Collection:
    """Three twins in the sources human and llm: ids d1-human, d1-llm, ...; origin is the human one.

    q1 has the grades d1: 2, d3: 1; q2 has d2: 1, d1: 0; q3 has d3: 2; each for both versions.
    """
    docs = [
        {
            "id": f"{bare}-{source}",
            "title": TITLES[bare],
            "text": text,
            "source": source,
            "origin": f"{bare}-human",
        }
        for source, texts in TEXTS.items()
        for bare, text in texts.items()
    ]
    qrels = {
        q: {f"{d}-{s}": g for d, g in grades.items() for s in TEXTS} for q, grades in QRELS.items()
    }
    return collection_of(docs, QUERIES, qrels)


def versions(texts: Mapping[str, Iterable[str]], prefix: str = "") -> list[dict[str, Any]]:
    """Documents by source: the first texts of all sources are twins, 0-human and 0-llm,
    and so on.
    """
    return [
        {
            "id": f"{prefix}{n}-{source}",
            "text": text,
            "source": source,
            "origin": f"{prefix}{n}-human",
        }
        for source, source_texts in texts.items()
        for n, text in enumerate(source_texts)
    ]


def collection_of(docs: Sequence[Row], queries: Mapping[str, str], qrels: Table) -> Collection:
    """Make a collection from literals: documents as rows, queries as id -> text, grades by query
    and document.

    Queries of one text get their id added, because queries that repeat each other count as one.
    """
    texts = list(queries.values())
    texts = [
        f"{text} {name}" if text and texts.count(text) > 1 else text
        for name, text in queries.items()
    ]
    judgments = [(q, d, g) for q, grades in qrels.items() for d, g in grades.items()]
    return Collection(
        pl.DataFrame([dict(row) for row in docs], infer_schema_length=None),
        pl.DataFrame(
            {"id": list(queries), "text": texts}, schema={"id": pl.String, "text": pl.String}
        ),
        pl.DataFrame(
            judgments,
            schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32},
            orient="row",
        ),
    )


def run_of(collection: Collection, scores: Table, **spec: Any) -> Run:
    """Make a run that shares the collection's ids; entries are sorted by falling score, ties as
    given.
    """
    row = {name: i for i, name in enumerate(collection.ids)}
    by_query = [sorted(hits.items(), key=lambda hit: -hit[1]) for hits in scores.values()]
    flat = list(chain.from_iterable(by_query))
    return Run(
        tuple(scores),
        np.cumsum([0, *map(len, by_query)]),
        np.array([row[doc] for doc, _ in flat], dtype=np.int32),
        np.array([score for _, score in flat], dtype=np.float64),
        collection.ids,
        spec,
    )


def jsonl(rows: Iterable[Row]) -> str:
    return "".join(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows)


def tsv(qrels: Iterable[Judgment]) -> str:
    """Judgments in BEIR's format, with its header."""
    return "query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{d}\t{g}\n" for q, d, g in qrels)


def write(path: Path, content: str | bytes) -> Path:
    """Write a file and the folders above it; compressed where the name ends in .gz."""
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def raw_queries() -> list[dict[str, Any]]:
    return [{"_id": name, "text": text} for name, text in QUERIES.items()]


def raw_docs(source: str = "human") -> list[dict[str, Any]]:
    return [{"_id": d, "title": TITLES[d], "text": text} for d, text in TEXTS[source].items()]


def raw_qrels() -> list[Judgment]:
    return [(q, d, g) for q, grades in QRELS.items() for d, g in grades.items()]


def write_beir(folder: Path, *, docs: Iterable[Row] | None = None, **rest: Any) -> Path:
    """Write a BEIR folder; what is left out is the toy's human side."""
    write(folder / "corpus.jsonl", jsonl(raw_docs() if docs is None else docs))
    return _write_rest(folder, **rest)


def write_cocktail(
    folder: Path, *, corpora: Mapping[str, Iterable[Row]] | None = None, **rest: Any
) -> Path:
    """Write a Cocktail folder, a corpus a source; what is left out is the toy's. Loads equal to
    `toy()`.
    """
    for source, rows in (corpora or {source: raw_docs(source) for source in TEXTS}).items():
        write(folder / "corpus" / f"{source}.jsonl", jsonl(rows))
    return _write_rest(folder, **rest)


def write_paper(
    folder: Path, *, corpora: Mapping[str, Iterable[Row]] | None = None, **rest: Any
) -> Path:
    """Write the first paper's layout; corpora by path, such as "0.2/corpus-llama". Default: the toy
    at 0.2.
    """
    default = {"corpus-human": raw_docs("human"), "0.2/corpus-llm": raw_docs("llm")}
    for name, rows in (corpora or default).items():
        write(folder / f"{name}.jsonl", jsonl(rows))
    return _write_rest(folder, **rest)


def _write_rest(
    folder: Path,
    queries: Iterable[Row] | None = None,
    qrels: Iterable[Judgment] | None = None,
    split: str = "test",
) -> Path:
    write(folder / "queries.jsonl", jsonl(raw_queries() if queries is None else queries))
    write(folder / "qrels" / f"{split}.tsv", tsv(raw_qrels() if qrels is None else qrels))
    return folder


def write_run(path: Path, scores: Table, *, tag: str = "run") -> Path:
    """Write a run in TREC format from literals, in the order given."""
    lines = []
    for query, hits in scores.items():
        for rank, (doc, score) in enumerate(hits.items(), start=1):
            lines.append(f"{query} Q0 {doc} {rank} {score!r} {tag}\n")
    return write(path, "".join(lines))


full_device = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full"
)


@contextlib.contextmanager
def no_room(after: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes: the write that does fails midway, as on a
    full disk.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def no_permission(folder: Path) -> Iterator[None]:
    """Take away the right to write into a folder (root gives up being root for as long)."""
    root = os.geteuid() == 0
    mode = folder.stat().st_mode
    folder.chmod(0o555)
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(mode)
