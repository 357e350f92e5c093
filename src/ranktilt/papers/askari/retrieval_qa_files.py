"""Write a collection of answered questions as a folder, for RankTilt and for other tools.

The two *sides* are people's answers and a language model's answers; each is a source. A *split* is
a part of the questions (train, dev or test) with its judgments. The *depth* of a run is its number
of documents for each query. Judgments (qrels) say which answers are relevant to a query; the spec
of a run says how it was made.
"""

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
"""Name of the file with the inputs and options of the folder."""
DEPTH = 1_000
"""Default number of documents for each query in BM25's runs: as many as the paper's measures read.
"""


@dataclass(frozen=True, kw_only=True)
class QAFiles:
    """Options of the folder's further files."""

    depth: int = DEPTH
    """Number of documents for each query in BM25's runs; 0 for no runs."""
    triples: int = 0
    """Number of training triples of each relevant answer, with random negatives; 0 for none."""
    seed: int = 0
    """Seed of the negatives."""

    def __post_init__(self) -> None:
        for name in ("depth", "triples"):
            if getattr(self, name) < 0:
                raise UserError(f"expected {name} of at least 0, got {getattr(self, name)}")


def save_retrieval_qa(
    answers: RetrievalQA, folder: str | Path, qa_files: QAFiles | None = None
) -> Path:
    """Write the collection as a folder; after an error, there is no folder.

    The same input gives the same bytes. The folder has:

    - ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/<split>.tsv``: the collection
    - ``msmarco/``: each side's documents, the queries of each split, and judgments in TREC's form,
      tab-separated
    - ``runs/``: BM25's run for each split and side, which searches that side alone
    - ``triples/``: training triples
    - ``built.json``: the inputs and options

    Raises
    ------
    UserError
        If the folder has files in it or cannot be written.
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
    """Refuse a folder that has files in it or cannot be written, before any work is done."""
    require_folder(folder)
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: already holds files; name a new folder")


def _msmarco(answers: RetrievalQA) -> dict[str, bytes]:
    """Return the files in ``msmarco/`` by their names, in the form in which the authors publish.

    Lines have the id and text of an answer, the id and text of a query, or a judgment in TREC's
    form.
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
    """Return a table as tab-separated lines, without the names of columns and without quotes."""
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
    """Return the innermost folder that all files are in."""
    return Path(os.path.commonpath([file.parent for file in files])) if files else Path()


def _hashes(files: Sequence[Path], folder: Path) -> dict[str, str]:
    """Return the SHA-256 of files, by their paths in a folder."""
    return {file.relative_to(folder).as_posix(): sha256(file) for file in files}
