"""Load a collection: a folder, found out how it lies, or what a library keeps under a name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ranktilt.data.artifact import read_json
from ranktilt.data.assemble import judged, only_judged, read_documents, read_rows, unjudged
from ranktilt.data.collection import Collection
from ranktilt.data.files import read_bytes, require_path
from ranktilt.data.folders import folder_layout, is_visible, plain_or_gz
from ranktilt.data.formats.notation import file_of, pairs_of
from ranktilt.data.formats.parquet import part_files
from ranktilt.data.formats.qrels import read_qrels_as
from ranktilt.data.named import DOCS, NO_QRELS, Wanted, choose_split, read_name
from ranktilt.errors import DataError, UserError, unknown

__all__ = ["NO_QRELS", "load"]

DESIGN = "design.json"
"""The file of a folder that says how its versions were designed."""


def load(
    path: str | Path,
    *,
    split: str | None = None,
    qrels: str | Path | None = None,
    ignore_unknown: bool = False,
    docs: str = "all",
) -> Collection:
    """Load a collection from a folder, or by the name under which a library keeps it.

    Parameters
    ----------
    path : str or Path
        A BEIR folder (``corpus.jsonl``, or Parquet parts in ``corpus/``; fields ``source`` and
        ``origin`` are read where given), a Cocktail folder (``corpus/<source>.jsonl``), or the
        layout that a paper or another package adds (such as Dai et al.'s, source
        ``<llm>_<temperature>``), each with ``queries.jsonl`` and ``qrels/<split>.tsv``; every file
        plain or ``.gz``. Texts that share an ``_id`` are twins: ids become ``<_id>-<source>``,
        origins ``<_id>-human``, and a judgment of a bare ``_id`` holds for every version. Or
        ``hub:OWNER/NAME[@REVISION]``, a dataset of the Hugging Face hub in the layout of Cocktail,
        BEIR or MTEB; or ``irds:ID``, a collection of ir_datasets.
    split : str, optional
        Which judgments; ``"test"`` by default, or the only split there is. In ir_datasets an id
        names its own.
    qrels : str or Path, optional
        A file of judgments in place of the collection's own, or ``"none"`` for none.
    ignore_unknown : bool, optional
        Keep judgments of documents or queries that are not in the collection instead of refusing
        them. They count in results without grouping, and nowhere else.
    docs : {"all", "judged"}, optional
        ``"judged"`` keeps the judged documents and their versions only. Measures at a cutoff then
        say little about search in the whole, for what was never judged cannot compete.

    Returns
    -------
    Collection
        With ``spec`` naming the files it was read from, and for the hub the commit. `DataError`
        names file and line of what is wrong; `UserError` says that a named collection is
        unavailable.
    """
    if split is not None and qrels is not None:
        raise UserError("give a split or a judgment file, not both")
    if docs not in DOCS:
        raise unknown("choice of documents", docs, DOCS)
    require_path(path, "collection")
    if qrels is not None:
        require_path(qrels)
    wanted = Wanted(split=split, qrels=qrels, ignore_unknown=ignore_unknown, docs=docs)
    name = read_name(path)
    if name is not None and name.kind == "hub":
        from ranktilt.data.hub import load_hub

        collection = load_hub(name, wanted)
    elif name is not None:
        from ranktilt.data.irds import load_irds

        return load_irds(name, wanted)  # keeps the judged documents only while it reads
    else:
        collection = _folder(Path(path), wanted)
    return only_judged(collection) if docs == "judged" else collection


def _folder(path: Path, wanted: Wanted) -> Collection:
    layout, corpora = folder_layout(path)
    documents, asked = read_documents(corpora), plain_or_gz(path / "queries.jsonl")
    if asked is None:
        raise DataError(path, "expected queries.jsonl (or .gz) in this folder")
    queries = read_rows(asked)
    every = (f for _, file in corpora for f in (part_files(file) if file.is_dir() else (file,)))
    files = [str(f) for f in (*every, asked)]
    if wanted.qrels is not None and str(wanted.qrels) == NO_QRELS:
        spec = {
            "path": str(path),
            "qrels": NO_QRELS,
            "layout": layout,
            "files": files,
            **_design(path),
        }
        return unjudged(documents[0], queries, spec)
    given = wanted.qrels
    if given is not None:
        file = file_of(given)
        name = str(file)
        judgments, read_as = read_qrels_as(given)
    else:
        name, file = _judgments(path, wanted.split)
        judgments, read_as = read_qrels_as(file)
    spec = {
        "path": str(path),
        "split": name,
        "layout": layout,
        "files": [*files, str(file)],
        **_design(path),
    }
    spec |= {"judgments_read": read_as} if read_as else {}
    if given is not None and pairs_of(given):
        spec["qrels_read"] = pairs_of(given)
    return judged(
        documents, queries, judgments, file, spec=spec, ignore_unknown=wanted.ignore_unknown
    )


def _design(folder: Path) -> dict[str, Any]:
    """Read how a folder's versions were designed, where they were."""
    file = folder / DESIGN
    if not file.is_file():
        return {}
    content = read_json(file, read_bytes(file), "the design of versions")
    if not isinstance(content, dict) or not isinstance(content.get("factors"), list):
        raise DataError(
            file,
            "expected the design of versions, with its factors; remove the file to load without it",
        )
    return {"design": content}


def splits(folder: Path) -> list[str]:
    """List the names of a folder's judgments, by name; none where it has none."""
    files = (folder / "qrels").iterdir() if os.path.isdir(folder / "qrels") else ()
    return sorted(
        {
            f.name.removesuffix(".gz").removesuffix(".tsv")
            for f in files
            if is_visible(f, (".tsv", ".tsv.gz"))
        }
    )


def _judgments(folder: Path, split: str | None) -> tuple[str, Path]:
    """Name and file of a split's judgments; ``test``, or the only one, where none is named."""
    if not (names := splits(folder)):
        raise DataError(folder / "qrels", "expected judgments in qrels/<split>.tsv (or .gz)")
    split = choose_split(names, split, folder / "qrels")
    return split, plain_or_gz(
        folder / "qrels" / f"{split}.tsv"
    ) or folder / "qrels" / f"{split}.tsv.gz"
