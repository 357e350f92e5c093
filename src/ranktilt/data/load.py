"""Find out how a folder lies, and read it."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ranktilt.collection import Collection
from ranktilt.data.jsonl import STRINGS, read_jsonl, stack
from ranktilt.data.layouts import Layout, find_layout
from ranktilt.data.qrels import one_grade, read_qrels
from ranktilt.errors import DataError, UserError

NO_QRELS = "none"
_QRELS = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}


def load(
    path: str | Path, *, split: str | None = None, qrels: str | Path | None = None, ignore_unknown: bool = False
) -> Collection:
    """Load a collection from a folder.

    Parameters
    ----------
    path : str or Path
        A BEIR folder (``corpus.jsonl``; fields ``source`` and ``origin`` are read where given), a
        Cocktail folder (``corpus/<source>.jsonl``), or the layout of Dai et al. (``corpus-human.jsonl``,
        ``<temperature>/corpus-<llm>.jsonl``, source ``<llm>_<temperature>``), each with ``queries.jsonl``
        and ``qrels/<split>.tsv``; every file plain or ``.gz``. Where files share ``_id``s, these are
        twins: ids become ``<_id>-<source>``, origins ``<_id>-human``, and a judgment of a bare ``_id``
        holds for every version.
    split : str, optional
        Which judgments; ``"test"`` by default, or the only split there is.
    qrels : str or Path, optional
        A file of judgments in place of the folder's own, or ``"none"`` for none.
    ignore_unknown : bool, optional
        Keep judgments of documents or queries that are not in the folder instead of refusing them.
        They count in results without grouping, and nowhere else.

    Returns
    -------
    Collection
        With ``spec`` naming the files it was read from.

    Raises
    ------
    DataError
        Naming file and line of what is wrong.
    UserError
        If both a split and a file of judgments are named.
    """
    if split is not None and qrels is not None:
        raise UserError("name a split or a file of judgments, not both")
    layout = find_layout(Path(path))
    docs, bare = _documents(layout)
    queries = read_jsonl(layout.queries)
    if qrels is not None and str(qrels) == NO_QRELS:
        files = [str(f) for f in (*(f for _, f in layout.corpora), layout.queries)]
        spec = {"path": str(path), "qrels": NO_QRELS, "layout": layout.name, "files": files}
        return Collection(docs, queries, pl.DataFrame(schema=_QRELS), spec)
    name, file = (str(qrels), Path(qrels)) if qrels is not None else layout.qrels(split)
    return _judged(layout, (docs, bare), queries, (name, file), ignore_unknown=ignore_unknown)


def _judged(
    layout: Layout, documents: tuple[pl.DataFrame, pl.Series], queries: pl.DataFrame, judged: tuple[str, Path],
    *, ignore_unknown: bool,
) -> Collection:  # fmt: skip
    (docs, bare), (name, file) = documents, judged
    qrels = read_qrels(file)
    if (bare != docs["id"]).any():
        qrels = _spread(file, qrels, docs["id"], bare)
    unknown = _unknown(file, qrels, docs, queries)
    if unknown and not ignore_unknown:
        raise unknown
    files = [str(f) for f in (*(f for _, f in layout.corpora), layout.queries, file)]
    spec = {"path": str(layout.folder), "split": name, "layout": layout.name, "files": files}
    return Collection(docs, queries, qrels, {**spec, "ignore_unknown": True} if ignore_unknown else spec)


def _documents(layout: Layout) -> tuple[pl.DataFrame, pl.Series]:
    """All documents of a folder, and each one's id as its file has it (the bare id)."""
    frames = []
    for source, file in layout.corpora:
        frame = read_jsonl(file, strings=STRINGS)
        given = pl.lit(None, dtype=pl.String) if "source" not in frame.columns or source else pl.col("source")
        frames.append(frame.with_columns(given.fill_null(source or "human").alias("source")))
    docs = stack(frames)
    if "origin" not in docs.columns:
        docs = docs.with_columns(pl.lit(None, dtype=pl.String).alias("origin"))
    bare = docs["id"]
    if bare.n_unique() < docs.height:
        docs = docs.with_columns(
            pl.format("{}-{}", "id", "source").alias("id"),
            pl.col("origin").fill_null(pl.format("{}-human", "id")),
        )
    return docs.with_columns(pl.col("origin").fill_null(pl.col("id"))), bare


def _spread(file: Path, qrels: pl.DataFrame, ids: pl.Series, bare: pl.Series) -> pl.DataFrame:
    """Let a judgment of a bare id hold for every document of that id; full ids stay as they are."""
    written = pl.DataFrame({"doc_id": bare, "full": ids})
    whole = pl.DataFrame({"doc_id": ids, "full": ids}).join(written, on="doc_id", how="anti")
    spread = qrels.join(pl.concat([written, whole]), on="doc_id", how="left", maintain_order="left_right")
    return one_grade(file, spread.with_columns(pl.col("full").fill_null(pl.col("doc_id")).alias("doc_id")).drop("full"))


def _unknown(file: Path, qrels: pl.DataFrame, docs: pl.DataFrame, queries: pl.DataFrame) -> DataError | None:
    parts = []
    first: int | None = None
    for noun, column, table in (("document", "doc_id", docs["id"]), ("query", "query_id", queries["id"])):
        strange = qrels.filter(~pl.col(column).is_in(table.implode()))
        if strange.height:
            n, lines = strange[column].n_unique(), strange["line"].n_unique()
            plural = {"document": "documents", "query": "queries"}[noun] if n > 1 else noun
            judgments = "judgments" if lines > 1 else "judgment"
            parts.append(f"{lines} {judgments} of {n} unknown {plural} (first: {strange[column][0]!r})")
            first = min(first or strange["line"][0], strange["line"][0])
    if not parts:
        return None
    hint = "--ignore-unknown (ignore_unknown=True) keeps them out of group measures"
    return DataError(file, f"{'; '.join(parts)}; {hint}", line=first)
