"""The folder of a collection of answered questions: what every command reads, and what others' tools do."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from ranktilt.data.files import new_folder, require_folder, sha256
from ranktilt.data.formats.columns import one_line
from ranktilt.data.formats.qrels import to_tsv
from ranktilt.data.save import save
from ranktilt.errors import UserError
from ranktilt.papers.askari.retrieval_qa import SPLITS, RetrievalQA
from ranktilt.papers.askari.triples import triples
from ranktilt.progress import report
from ranktilt.rankers.lexical.bm25 import BM25

ABOUT = "built.json"
DEPTH = 1_000


@dataclass(frozen=True, kw_only=True)
class QAFiles:
    """What the folder holds beside the collection; 0 for no such file."""

    depth: int = DEPTH
    """Of BM25's runs."""
    triples: int = 0
    """Random negatives of each relevant answer, in lines to train on, drawn by `seed`."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("depth", "triples"):
            if getattr(self, name) < 0:
                raise UserError(f"expected {name} of at least 0, got {getattr(self, name)}")


def save_retrieval_qa(
    built: RetrievalQA, folder: str | Path, wanted: QAFiles | None = None
) -> Path:
    """Write the collection as a folder, with everything in it or not at all; the same input gives the same bytes.

    ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/<split>.tsv`` are the collection; ``msmarco/``
    holds each side's documents, the queries of each split and TREC judgments, tab-separated,
    ``runs/`` BM25's best for each split and side, searched in that side alone, ``triples/`` what to
    train on; ``built.json`` says how all of it was made. `UserError` if the folder holds something
    already or cannot be written.
    """
    wanted, path = wanted or QAFiles(), Path(folder)
    require_new(path)
    with new_folder(path) as place:
        judged = {
            f"qrels/{split}.tsv": to_tsv(qrels)
            for split, qrels in built.qrels.items()
            if qrels.height
        }
        save(built.collection, place, beside={**judged, **_msmarco(built)})
        _save_runs(built, place / "runs", wanted.depth)
        _save_triples(built, place / "triples", wanted)
        (place / ABOUT).write_bytes(_about(built, place, wanted))
    return path


def require_new(folder: Path) -> None:
    """Refuse a folder that holds something or cannot be written, before any work is done."""
    require_folder(folder)
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: holds files already; name a new folder")


def _msmarco(built: RetrievalQA) -> dict[str, bytes]:
    """Files as the authors publish theirs: pid and passage, qid and query, and judgments in TREC's form."""
    collection = built.collection
    docs, queries = (
        frame.with_columns(one_line(frame["text"]))
        for frame in (collection.docs, collection.queries)
    )
    files = {}
    for source in built.sources:
        mine = docs.filter(pl.col("source") == source)
        files[f"collection_{source}.tsv"] = _tsv(mine.select("id", "text"))
        for split, qrels in built.qrels.items():
            judged = qrels.join(
                mine.select(doc_id="id"), on="doc_id", how="semi", maintain_order="left"
            )
            trec = judged.select("query_id", pl.lit("0").alias("iteration"), "doc_id", "grade")
            files[f"qrels_{source}_{split}.tsv"] = _tsv(trec)
    for split, qrels in built.qrels.items():
        asked = queries.join(
            qrels.select(id="query_id"), on="id", how="semi", maintain_order="left"
        )
        files[f"queries_{split}.tsv"] = _tsv(asked.select("id", "text"))
    return {f"msmarco/{name}": data for name, data in files.items()}


def _tsv(frame: pl.DataFrame) -> bytes:
    return frame.write_csv(include_header=False, separator="\t", quote_style="never").encode()


def _save_runs(built: RetrievalQA, folder: Path, depth: int) -> None:
    for split in SPLITS if depth else ():
        for source in built.sources:
            side = built.side(source, split)
            if side.qrels.height:
                run = BM25(k=depth).rank(side)
                told = replace(run, spec={**run.spec, "source": source, "split": split})
                told.save(folder / f"bm25_{source}_{split}.trec.gz")


def _save_triples(built: RetrievalQA, folder: Path, wanted: QAFiles) -> None:
    if not wanted.triples:
        return
    folder.mkdir()
    for source in built.sources:
        side = built.side(source, "train")
        label, total = f"writing triples of {source}", side.qrels.height
        with (folder / f"{source}_train_ids.tsv").open("wb") as stream:
            for number, piece in enumerate(
                triples(side, wanted.triples, seed=wanted.seed), start=1
            ):
                stream.write(piece)
                report(label, min(number, total - 1), total)
        report(label, total, total)


def _about(built: RetrievalQA, folder: Path, wanted: QAFiles) -> bytes:
    """What the folder was made from and by, and the SHA-256 of every file in it."""
    spec = dict(built.collection.spec)
    read = [Path(file).absolute() for file in spec.pop("files", ())]
    above = Path(os.path.commonpath([file.parent for file in read])) if read else Path()
    about: Mapping[str, Any] = {
        **spec,
        "inputs": {file.relative_to(above).as_posix(): sha256(file) for file in read},
        "bm25": {"k1": BM25().k1, "b": BM25().b, "depth": wanted.depth},
        "triples": {"negatives": wanted.triples, "seed": wanted.seed} if wanted.triples else None,
        "files": {
            file.relative_to(folder).as_posix(): sha256(file)
            for file in sorted(folder.rglob("*"))
            if file.is_file()
        },
    }
    return orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
