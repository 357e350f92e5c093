"""The folder of a collection of answered questions, for RankTilt and for others' tools."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from ranktilt.data.files import new_folder, require_folder, sha256
from ranktilt.data.formats.judgments.qrels import to_tsv
from ranktilt.data.formats.tables.columns import one_line
from ranktilt.data.save import save
from ranktilt.errors import UserError
from ranktilt.papers.askari.retrieval_qa import SPLITS, RetrievalQA
from ranktilt.papers.askari.triples import triples
from ranktilt.progress import report
from ranktilt.rankers.lexical.bm25 import BM25

ABOUT = "built.json"
"""Name of the file that says how the folder was made."""
DEPTH = 1_000
"""Depth of BM25's runs, unless another one is asked for."""


@dataclass(frozen=True, kw_only=True)
class QAFiles:
    """Further files of the folder; 0 for none of a kind."""

    depth: int = DEPTH
    """Depth of BM25's runs."""
    triples: int = 0
    """Random negatives of each relevant answer, in lines to train on, drawn by `seed`."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("depth", "triples"):
            if getattr(self, name) < 0:
                raise UserError(f"expected {name} of at least 0, got {getattr(self, name)}")


def save_retrieval_qa(
    answers: RetrievalQA, folder: str | Path, qa_files: QAFiles | None = None
) -> Path:
    """Write the collection as a folder, with everything in it or not at all.

    ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/<split>.tsv`` are the collection; ``msmarco/``
    holds each side's documents, the queries of each split and TREC judgments, tab-separated,
    ``runs/`` BM25's best for each split and side, searched in that side alone, ``triples/`` what to
    train on; ``built.json`` says how all of it was made. The same input gives the same bytes.

    Raises
    ------
    UserError
        If the folder holds something already or cannot be written.
    """
    qa_files, path = qa_files or QAFiles(), Path(folder)
    require_new(path)
    with new_folder(path) as temporary:
        qrels_files = {
            f"qrels/{split}.tsv": to_tsv(qrels)
            for split, qrels in answers.qrels.items()
            if qrels.height
        }
        save(answers.collection, temporary, beside={**qrels_files, **_msmarco(answers)})
        _save_runs(answers, temporary / "runs", qa_files.depth)
        _save_triples(answers, temporary / "triples", qa_files)
        (temporary / ABOUT).write_bytes(_about(answers, temporary, qa_files))
    return path


def require_new(folder: Path) -> None:
    """Refuse a folder that holds something or cannot be written, before any work is done."""
    require_folder(folder)
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: already holds files; name a new folder")


def _msmarco(answers: RetrievalQA) -> dict[str, bytes]:
    """Return files as the authors publish theirs.

    They are pid and passage, qid and query, and judgments in TREC's form.
    """
    collection = answers.collection
    docs = collection.docs.with_columns(one_line(collection.docs["text"]))
    queries = collection.queries.with_columns(one_line(collection.queries["text"]))
    files = {}
    for source in answers.sources:
        docs_of_side = docs.filter(pl.col("source") == source)
        doc_ids = docs_of_side.select(doc_id="id")
        files[f"collection_{source}.tsv"] = _tsv(docs_of_side.select("id", "text"))
        for split, qrels in answers.qrels.items():
            judged = qrels.join(doc_ids, on="doc_id", how="semi", maintain_order="left")
            trec = judged.select("query_id", pl.lit("0").alias("iteration"), "doc_id", "grade")
            files[f"qrels_{source}_{split}.tsv"] = _tsv(trec)
    for split, qrels in answers.qrels.items():
        query_ids = qrels.select(id="query_id")
        judged_queries = queries.join(query_ids, on="id", how="semi", maintain_order="left")
        files[f"queries_{split}.tsv"] = _tsv(judged_queries.select("id", "text"))
    return {f"msmarco/{name}": data for name, data in files.items()}


def _tsv(frame: pl.DataFrame) -> bytes:
    """Write a table as tab-separated lines, without names and quotes."""
    return frame.write_csv(include_header=False, separator="\t", quote_style="never").encode()


def _save_runs(answers: RetrievalQA, folder: Path, depth: int) -> None:
    """Write BM25's run for each split and side that has judgments."""
    if not depth:
        return
    for split, source in product(SPLITS, answers.sources):
        side = answers.side(source, split)
        if side.qrels.height:
            run = BM25(k=depth).rank(side)
            run = replace(run, spec={**run.spec, "source": source, "split": split})
            run.save(folder / f"bm25_{source}_{split}.trec.gz")


def _save_triples(answers: RetrievalQA, folder: Path, qa_files: QAFiles) -> None:
    """Write a file of training triples for each side, piece by piece."""
    if not qa_files.triples:
        return
    folder.mkdir()
    for source in answers.sources:
        side = answers.side(source, "train")
        label, total = f"writing triples of {source}", side.qrels.height
        pieces = triples(side, qa_files.triples, seed=qa_files.seed)
        with (folder / f"{source}_train_ids.tsv").open("wb") as stream:
            for number, piece in enumerate(pieces, start=1):
                stream.write(piece)
                report(label, min(number, total - 1), total)
        report(label, total, total)


def _about(answers: RetrievalQA, folder: Path, qa_files: QAFiles) -> bytes:
    """Return the content of ``built.json``: inputs, options, and the SHA-256 of every file."""
    spec = dict(answers.collection.spec)
    inputs = [Path(file).absolute() for file in spec.pop("files", ())]
    triples_spec = None
    if qa_files.triples:
        triples_spec = {"negatives": qa_files.triples, "seed": qa_files.seed}
    bm25 = BM25()
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    about: Mapping[str, Any] = {
        **spec,
        "inputs": _hashes(inputs, _common_folder(inputs)),
        "bm25": {"k1": bm25.k1, "b": bm25.b, "depth": qa_files.depth},
        "triples": triples_spec,
        "files": _hashes(files, folder),
    }
    return orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _common_folder(files: Sequence[Path]) -> Path:
    """Return the folder that holds all files."""
    return Path(os.path.commonpath([file.parent for file in files])) if files else Path()


def _hashes(files: Sequence[Path], folder: Path) -> dict[str, str]:
    """Return the SHA-256 of files, by their paths in a folder."""
    return {file.relative_to(folder).as_posix(): sha256(file) for file in files}
