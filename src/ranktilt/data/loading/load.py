"""Load a collection from a folder of any known layout, or from a library by its name.

A *split* is a named set of judgments (*qrels*), such as ``test``. A *layout* says which files a
folder has. Texts by several sources that share an id are *versions* of one document; a folder that
`generate versions` wrote has their *design*, that is, how they differ. The *spec* of a collection
says how it was made; a document or query is *judged* if a judgment names it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ranktilt.data.artifact import read_json
from ranktilt.data.collection import Collection
from ranktilt.data.files import read_bytes, require_path
from ranktilt.data.formats.notation import file_of
from ranktilt.data.formats.tables.parquet import part_files
from ranktilt.data.loading.assemble import (
    judged_collection,
    only_judged,
    read_documents,
    read_named_judgments,
    read_rows,
    unjudged_collection,
)
from ranktilt.data.loading.collection_name import (
    DOCS,
    NO_QRELS,
    LoadOptions,
    choose_split,
    read_name,
)
from ranktilt.data.loading.folders import folder_layout, is_visible, plain_or_gz
from ranktilt.errors import DataError, UserError, unknown_name

__all__ = ["NO_QRELS", "load"]

DESIGN = "design.json"
"""Name of the file with the design of a folder's versions.

It says in which factors they differ, such as length, and which version has which level of each.
"""


def load(
    path: str | Path,
    *,
    split: str | None = None,
    qrels: str | Path | None = None,
    ignore_unknown: bool = False,
    docs: str = "all",
) -> Collection:
    """Load a collection from a folder, or from a library by its name.

    Parameters
    ----------
    path : str or Path
        A folder, ``hub:OWNER/NAME[@REVISION]`` for a data set of the Hugging Face hub in the layout
        of Cocktail, BEIR or MTEB, or ``irds:ID`` for a collection of ir_datasets.

        A folder has ``queries.jsonl``, ``qrels/<split>.tsv``, and its documents in one of these
        layouts: BEIR's (``corpus.jsonl``, or Parquet files in ``corpus/``; fields ``source`` and
        ``origin`` are read if they are there), Cocktail's (``corpus/<source>.jsonl``), or one that
        a paper or another package adds. Every file may be plain or ``.gz``. Texts that share an
        ``_id`` are twins: ids become ``<_id>-<source>``, origins ``<_id>-human``, and a judgment of
        the ``_id`` itself applies to every version.
    split : str, optional
        Name of the judgments; ``"test"`` by default, or the only split there is. An id of
        ir_datasets contains its split.
    qrels : str or Path, optional
        A file of judgments in place of the collection's own, or ``"none"`` for none.
    ignore_unknown : bool, optional
        Keep judgments of documents or queries that are not in the collection instead of refusing
        them. They count in results without grouping, and nowhere else.
    docs : {"all", "judged"}, optional
        ``"judged"`` keeps only the judged documents and their versions. Measures at a cutoff then
        say little about a search of the full collection, because no unjudged document competes.

    Returns
    -------
    Collection
        Its ``spec`` names the files it was read from, and for the hub the commit.

    Raises
    ------
    DataError
        With file and line, if a file does not hold what it should.
    UserError
        If a library's collection is unavailable, or options contradict each other.
    """
    if split is not None and qrels is not None:
        raise UserError("give a split or a judgment file, not both")
    if docs not in DOCS:
        raise unknown_name("choice of documents", docs, DOCS)
    require_path(path, "collection")
    if qrels is not None:
        require_path(qrels)
    options = LoadOptions(split=split, qrels=qrels, ignore_unknown=ignore_unknown, docs=docs)
    name = read_name(path)
    if name is None:
        collection = _load_folder(Path(path), options)
    elif name.kind == "hub":
        from ranktilt.data.loading.hub import load_hub

        collection = load_hub(name, options)
    else:
        from ranktilt.data.loading.irds import load_irds

        # `load_irds` itself leaves out the documents that are not judged, while it reads.
        return load_irds(name, options)
    return only_judged(collection) if docs == "judged" else collection


def _load_folder(path: Path, options: LoadOptions) -> Collection:
    """Load a collection from a folder."""
    layout, corpora = folder_layout(path)
    documents = read_documents(corpora)
    docs, _bare_ids = documents
    query_file = plain_or_gz(path / "queries.jsonl")
    if query_file is None:
        raise DataError(path, "expected queries.jsonl (or .gz) in this folder")
    queries = read_rows(query_file)
    files = list[str]()
    for _source, corpus in corpora:
        files += map(str, part_files(corpus) if corpus.is_dir() else [corpus])
    files.append(str(query_file))
    if options.qrels is not None and str(options.qrels) == NO_QRELS:
        spec = {
            "path": str(path),
            "qrels": NO_QRELS,
            "layout": layout,
            "files": files,
            **_design(path),
        }
        return unjudged_collection(docs, queries, spec)
    if options.qrels is not None:
        file = file_of(options.qrels)
        judgments, judgment_spec = read_named_judgments(options.qrels)
    else:
        split, file = _split_file(path, options.split)
        judgments, judgment_spec = read_named_judgments(file)
        judgment_spec["split"] = split
    spec = {
        "path": str(path),
        "split": judgment_spec["split"],
        "layout": layout,
        "files": [*files, str(file)],
        **_design(path),
        **judgment_spec,
    }
    return judged_collection(
        documents, queries, judgments, file, spec=spec, ignore_unknown=options.ignore_unknown
    )


def _design(folder: Path) -> dict[str, Any]:
    """Return the key ``design`` of the spec with the design of a folder's versions.

    Empty if the folder has no design.
    """
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
    """List the names of a folder's judgments in alphabetical order; empty if it has none."""
    if not os.path.isdir(folder / "qrels"):
        return []
    names = set()
    for file in (folder / "qrels").iterdir():
        if is_visible(file, (".tsv", ".tsv.gz")):
            names.add(file.name.removesuffix(".gz").removesuffix(".tsv"))
    return sorted(names)


def _split_file(folder: Path, split: str | None) -> tuple[str, Path]:
    """Return the name and the file of a split.

    If `split` is None, it is the only split there is, or ``test``.
    """
    names = splits(folder)
    if not names:
        raise DataError(folder / "qrels", "expected judgments in qrels/<split>.tsv (or .gz)")
    split = choose_split(names, split, folder / "qrels")
    file = plain_or_gz(folder / "qrels" / f"{split}.tsv")
    return split, file or folder / "qrels" / f"{split}.tsv.gz"
