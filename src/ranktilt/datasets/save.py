"""Write a collection as a folder: BEIR's layout or Cocktail's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import UserError, unknown
from ranktilt.io.files import Content, holds, write_files
from ranktilt.io.jsonl import to_jsonl
from ranktilt.io.parquet import part_contents
from ranktilt.io.qrels import to_tsv
from ranktilt.io.texts import AT_ONCE

LAYOUTS = ("beir", "cocktail")


def save(
    collection: Collection, path: str | Path, *, layout: str = "beir", parts: int | None = None,
    beside: Mapping[str, bytes] | None = None,
) -> Path:  # fmt: skip
    """Write a collection as a folder that `load` reads back equal.

    Parameters
    ----------
    collection : Collection
        What to write; its split's name (``test`` where it has none) names the judgments' file. Without judgments
        there is none, and the folder is loaded with ``qrels="none"``.
    path : str or Path
        The folder; made where needed.
    layout : {"beir", "cocktail"}, optional
        One ``corpus.jsonl`` with ``source`` and ``origin`` fields, or one ``corpus/<source>.jsonl`` a
        source. In the latter, twins share their ``_id`` wherever loading can give the full ids back.
    parts : int, optional
        Write the documents as Parquet files in ``corpus/`` with so many each, in place of one ``corpus.jsonl``:
        smaller, and read without ever holding all texts.
    beside : mapping, optional
        Further files of the folder, name → content, which loading does not read; all files are written or none.

    Raises
    ------
    UserError
        If the layout is unknown or has no parts, a source's name cannot be a file's, the folder holds another
        collection, or it cannot be written.
    """
    if layout not in LAYOUTS:
        raise unknown("layout", layout, LAYOUTS)
    if parts is not None and (parts < 1 or layout != "beir"):
        wrong = f"got {parts}" if parts < 1 else "layout 'cocktail' has a file a source"
        raise UserError(f"expected at least 1 document a part, in layout 'beir'; {wrong}")
    folder = Path(path)
    split = _split(collection)
    if layout == "beir":
        corpora, qrels = corpus_files(collection.docs, parts), collection.qrels
    else:
        corpora, qrels = _cocktail(collection)
    files = {folder / name: data for name, data in corpora.items()}
    files[folder / "queries.jsonl"] = to_jsonl(collection.queries)
    if qrels.height:
        files[folder / "qrels" / f"{split}.tsv"] = to_tsv(qrels)
    files |= {folder / name: data for name, data in (beside or {}).items()}
    _refuse_other(folder, files)
    write_files(files)
    return folder


def _split(collection: Collection) -> str:
    """Name for the judgments' file; where they were read from a file of its own, that file's, never its folder."""
    name = Path(str(collection.spec.get("split", "test"))).name
    for ending in (".gz", ".tsv", ".txt", ".qrels"):
        name = name.removesuffix(ending)
    return name or "test"


def corpus_files(docs: pl.DataFrame, parts: int | None = None) -> dict[str, Content]:
    """Files of a corpus in BEIR's layout by name, each made a few documents at a time: JSON lines, or Parquet parts."""
    if parts is None:
        return {"corpus.jsonl": partial(_lines, docs)}
    return {f"corpus/{name}": content for name, content in part_contents(docs, parts).items()}


def _lines(docs: pl.DataFrame) -> Iterator[bytes]:
    return map(to_jsonl, docs.iter_slices(AT_ONCE))


def _refuse_other(folder: Path, ours: dict[Path, Content]) -> None:
    patterns = ("corpus*.jsonl*", "corpus/*.jsonl*", "corpus/*.parquet", "qrels/*.tsv*")
    strange = sorted(str(p) for pattern in patterns for p in folder.glob(pattern) if p not in ours)
    strange += [str(p) for p, data in ours.items() if p.is_file() and not holds(p, data)]
    if strange:
        raise UserError(f"{folder}: holds another collection ({strange[0]}); choose an empty folder")


def _cocktail(collection: Collection) -> tuple[dict[str, Content], pl.DataFrame]:
    bad = [s for s in collection.sources if "/" in s or "\0" in s or s in ("", ".", "..")]
    if bad:
        raise UserError(f"source {bad[0]!r} cannot be a file's name; save with layout 'beir'")
    docs, qrels = collection.docs, collection.qrels
    folded = _folded(collection)
    if folded is not None:
        docs, qrels = folded
    corpora = dict[str, Content]()
    for source in collection.sources:
        side = docs.filter(collection.docs["source"] == source).drop("source")
        corpora[f"corpus/{source}.jsonl"] = partial(_lines, side)
    return corpora, qrels


def _folded(collection: Collection) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """Documents and judgments under shared ids, or None where loading could not undo it."""
    bare = collection.bare_ids().alias("id")
    table = pl.DataFrame({"doc_id": collection.ids, "bare": bare, "source": collection.docs["source"]})
    if (
        (bare == collection.ids).any()
        or bare.n_unique() == len(bare)
        or table.select("bare", "source").is_duplicated().any()
    ):
        return None
    judged = collection.qrels.join(table, on="doc_id", how="left", maintain_order="left")
    folded = judged.group_by("query_id", "bare", maintain_order=True).agg(
        pl.col("grade").first(), pl.col("grade").n_unique().alias("grades"), pl.len().alias("n")
    )
    folded = folded.join(table.group_by("bare").len("versions"), on="bare", how="left", maintain_order="left")
    whole = (folded["grades"] == 1) & (folded["n"] == folded["versions"])
    if not whole.fill_null(False).all():
        return None
    return collection.docs.with_columns(bare).drop("origin"), folded.select("query_id", doc_id="bare", grade="grade")
