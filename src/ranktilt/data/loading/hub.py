"""Load data sets of the Hugging Face hub, whose library keeps them in a cache by their commit.

A *snapshot* is the folder of a data set's files at one commit. A *shard* is one of several Parquet
files that a table is divided into. *Judgments* (*qrels*) say which documents are relevant to a
query; a *split* is a named set of them, such as ``test``. The *source* of a document is who wrote
it. The *spec* of a collection says how it was made.
"""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from ranktilt.data.cache import cache_folder
from ranktilt.data.collection import Collection
from ranktilt.data.formats.jsonl import stack
from ranktilt.data.formats.judgments.qrels import read_qrels
from ranktilt.data.formats.notation import file_of
from ranktilt.data.formats.tables.parquet import read_judgments
from ranktilt.data.loading.assemble import (
    judged_collection,
    read_documents,
    read_named_judgments,
    read_rows,
    unjudged_collection,
)
from ranktilt.data.loading.collection_name import (
    NO_QRELS,
    CollectionName,
    LoadOptions,
    choose_split,
)
from ranktilt.errors import DataError, UserError
from ranktilt.optional import may_fetch, need

SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet", ".tsv", ".tsv.gz")
"""Endings of data files."""
_TABLE_SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet")
"""Endings of files of documents or queries."""
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
"""End of the name of a shard."""
_NUMBER = re.compile(r"^\d+$")
"""A file's name that is only a number."""
_NAMES_WITHOUT_SOURCE = {"corpus", "train", "test", "dev", "validation", "default", "data"}
"""Names of files in corpus/ that do not name a source."""
_SPLITS = {"train", "test", "dev", "validation", "valid", "val"}
"""Names of the files of judgments at the top level of a data set."""
_DOWNLOAD_PATTERNS = [*(f"*{suffix}" for suffix in SUFFIXES), "*.zip"]
"""Patterns of the files to download."""
_MOST_LISTED = 8
"""Most names that an error lists."""


@dataclass(frozen=True, kw_only=True)
class DatasetFiles:
    """The files of a data set, sorted by what they hold."""

    layout: str
    """``cocktail`` if each source has a file of its own, else ``beir``."""
    corpora: tuple[tuple[str | None, Path], ...] = ()
    """Source and file, human text first; source None if the file has a field for it."""
    queries: tuple[Path, ...] = ()
    """Files of queries."""
    splits: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """Files of judgments by their split."""
    files: tuple[str, ...] = ()
    """Names of all files."""


def dataset_files(folder: Path, *, judgments_only: bool = False) -> DatasetFiles:
    """Find the documents, queries and judgments in a snapshot or unpacked archive.

    Each file in ``corpus/`` has the documents of one source if the files have several names, or one
    is called ``human``. Files of judgments are named by their split, in ``qrels/``, ``data/`` or
    ``default/`` or at the top level. With `judgments_only`, the data set has only judgments, and
    any other file at the top level is one of judgments too.
    """
    files = _visible_files(folder)
    splits: dict[str, list[Path]] = {}
    for file in files:
        if _is_judgments(file, judgments_only=judgments_only):
            splits.setdefault(_name(file), []).append(folder / file)
    corpora, queries = list[tuple[str, Path]](), list[Path]()
    if not judgments_only:
        corpora = [(_name(file), folder / file) for file in files if _is_table(file, "corpus")]
        queries = [folder / file for file in files if _is_table(file, "queries")]
    names = {name for name, _file in corpora}
    names_source = bool(names - _NAMES_WITHOUT_SOURCE)
    has_sources = names_source and ("human" in names or len(names) > 1)
    return DatasetFiles(
        layout="cocktail" if has_sources else "beir",
        corpora=_ordered_corpora(corpora, has_sources=has_sources),
        queries=tuple(queries),
        splits={name: tuple(paths) for name, paths in splits.items()},
        files=tuple(file.as_posix() for file in files),
    )


def _visible_files(folder: Path) -> list[Path]:
    """List the data files of a folder, without hidden ones."""
    files = [
        path.relative_to(folder)
        for path in sorted(folder.rglob("*"))
        if path.name.endswith(SUFFIXES) and path.is_file()
    ]
    return [file for file in files if not is_hidden(file)]


def _ordered_corpora(
    corpora: list[tuple[str, Path]], *, has_sources: bool
) -> tuple[tuple[str | None, Path], ...]:
    """Order pairs of a name and a file by the name, which is the source, human text first.

    If names are no sources (`has_sources`), files are ordered by their paths and have the source
    None.
    """
    if not has_sources:
        files = sorted((file for _name, file in corpora), key=str)
        return tuple((None, file) for file in files)
    return tuple(
        sorted(corpora, key=lambda corpus: (corpus[0] != "human", corpus[0], str(corpus[1])))
    )


def is_hidden(path: PurePath) -> bool:
    """Return whether an operating system or version control left a file behind."""
    return any(part.startswith(".") or part == "__MACOSX" for part in path.parts)


def _name(path: PurePath) -> str:
    """Return a file's name without its ending and the number of its shard.

    If this is only a number, it is the name of the file's folder.
    """
    name = path.name
    for suffix in reversed(SUFFIXES):  # .jsonl.gz before .jsonl
        name = name.removesuffix(suffix)
    name = _SHARD.sub("", name)
    return path.parts[-2] if _NUMBER.match(name) and len(path.parts) > 1 else name


def _is_table(path: PurePath, name: str) -> bool:
    """Return whether a file is the table ``corpus`` or ``queries``, or lies in such a folder."""
    if not path.name.endswith(_TABLE_SUFFIXES):
        return False
    return path.parts[0] == name if len(path.parts) > 1 else _name(path) == name


def _is_judgments(path: PurePath, *, judgments_only: bool) -> bool:
    """Return whether a file has judgments; with `judgments_only`, the data set has nothing else."""
    if len(path.parts) == 1:
        is_split = _name(path) in _SPLITS or judgments_only
        return is_split and not (_is_table(path, "corpus") or _is_table(path, "queries"))
    return path.parts[0] in ("qrels", "data", "default")


def load_hub(name: CollectionName, options: LoadOptions) -> Collection:
    """Load a data set of the Hugging Face hub.

    If it has no judgments, they are read from ``OWNER/NAME-qrels``, where BEIR has them.
    """
    folder = snapshot(name)
    dataset = dataset_files(_unpacked_folder(folder, name.id))
    if not dataset.corpora or not dataset.queries:
        raise _missing_table_error(name, dataset)
    documents = read_documents(dataset.corpora)
    queries = stack([read_rows(file) for file in dataset.queries])
    corpus_files = [file for _source, file in dataset.corpora]
    files = [str(file) for file in (*corpus_files, *dataset.queries)]
    spec: dict[str, Any] = {
        "path": f"hub:{name.id}",
        "revision": folder.name,
        "layout": dataset.layout,
    }
    if options.qrels is not None and str(options.qrels) == NO_QRELS:
        docs, _bare_ids = documents
        return unjudged_collection(docs, queries, {**spec, "qrels": NO_QRELS, "files": files})
    judgments = _find_judgments(name, dataset, options)
    spec |= {**judgments.spec, "files": [*files, *map(str, judgments.files)]}
    return judged_collection(
        documents,
        queries,
        judgments.frame,
        judgments.files[0],
        spec=spec,
        ignore_unknown=options.ignore_unknown,
    )


@dataclass(frozen=True, kw_only=True)
class _Judgments:
    """Judgments, their files, and the keys of the collection's spec that describe them."""

    frame: pl.DataFrame
    """The judgments."""
    files: tuple[Path, ...]
    """Files of the chosen split."""
    spec: Mapping[str, Any]
    """Keys of the collection's spec."""


def _find_judgments(
    name: CollectionName, dataset: DatasetFiles, options: LoadOptions
) -> _Judgments:
    """Read the judgments: the user's file, the data set's, or those of ``OWNER/NAME-qrels``."""
    if options.qrels is not None:
        frame, named_spec = read_named_judgments(options.qrels)
        return _Judgments(frame=frame, files=(file_of(options.qrels),), spec=named_spec)
    if dataset.splits:
        split = choose_split(dataset.splits, options.split, f"hub:{name.id}")
        files = dataset.splits[split]
        return _Judgments(frame=_read_split(files), files=files, spec={"split": split})
    qrels_name = CollectionName(kind="hub", id=f"{name.id}-qrels")
    try:
        folder = snapshot(qrels_name)
    except UserError as error:
        hint = "name a file of judgments with --qrels, or --qrels none"
        raise UserError(
            f"{name} holds no judgments, and neither does {qrels_name}, where BEIR keeps them; "
            f"{hint} ({error})"
        ) from error
    splits = dataset_files(folder, judgments_only=True).splits
    split = choose_split(splits, options.split, str(qrels_name))
    spec = {"split": split, "qrels": str(qrels_name), "qrels_revision": folder.name}
    return _Judgments(frame=_read_split(splits[split]), files=splits[split], spec=spec)


def _read_split(files: Sequence[Path]) -> pl.DataFrame:
    """Read the judgments of a data set's split from its files."""
    tables = [
        read_judgments(file) if file.name.endswith(_TABLE_SUFFIXES) else read_qrels(file)
        for file in files
    ]
    return pl.concat(tables, how="vertical_relaxed")


def snapshot(name: CollectionName) -> Path:
    """Return the folder of a data set's files, which is named by the commit.

    They are downloaded unless the hub's cache has them.
    """
    hub = need("huggingface_hub", extra="datasets", for_=str(name))
    try:
        folder = hub.snapshot_download(
            name.id,
            repo_type="dataset",
            revision=name.revision,
            allow_patterns=_DOWNLOAD_PATTERNS,
            local_files_only=not may_fetch(),
        )
    except Exception as error:
        # The library and its transport raise errors of many kinds without a common base.
        raise _fetch_error(name, error) from error
    return Path(folder)


def _fetch_error(name: CollectionName, error: Exception) -> UserError:
    """Return the error for a download that failed."""
    errors = need("huggingface_hub.errors", extra="datasets", for_=str(name))
    if isinstance(error, errors.HFValidationError):
        return UserError(f"{name}: expected OWNER/NAME after hub:, such as hub:IR-Cocktail/scifact")
    if isinstance(error, errors.LocalEntryNotFoundError):
        return _offline_error(name)
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    page = f"https://huggingface.co/datasets/{name.id}"
    return UserError(
        f"{name}: download failed: {reason}; see {page} (private repositories need `hf auth login`)"
    )


def _offline_error(name: CollectionName) -> UserError:
    """Return the error for a data set that is not in the cache and cannot be downloaded."""
    cache = need("huggingface_hub.constants", extra="datasets", for_=str(name)).HF_HUB_CACHE
    reason = "a report downloads nothing"
    if may_fetch():
        reason = "the hub cannot be reached (HF_HUB_OFFLINE?)"
    command = f"hf download {name.id} --repo-type dataset"
    if name.revision:
        command += f" --revision {name.revision}"
    return UserError(
        f"{name}: {reason}, and the cache ({cache}) does not hold all of it; "
        f"`{command}` downloads it"
    )


def _unpacked_folder(folder: Path, id: str) -> Path:
    """Return the folder of the files of a data set; a zip file is unpacked into the cache first.

    `folder` is the snapshot, and `id` the name of the data set.
    """
    archives = sorted(folder.glob("*.zip"))
    if not archives or dataset_files(folder).corpora:
        return folder
    if len(archives) > 1:
        raise UserError(
            f"hub:{id}: expected one zip file, got {', '.join(file.name for file in archives)}"
        )
    target = cache_folder() / "collections" / f"{id.replace('/', '--')}-{folder.name}"
    if not target.is_dir():
        _unpack(archives[0], target)
    return _innermost_folder(target)


def _unpack(archive: Path, target: Path) -> None:
    """Unpack the data files of an archive into the folder `target`, all or none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".", dir=target.parent) as temporary:
        try:
            with zipfile.ZipFile(archive) as packed:
                names = [name for name in packed.namelist() if name.endswith(SUFFIXES)]
                names = [name for name in names if not is_hidden(PurePosixPath(name))]
                packed.extractall(f"{temporary}/data", names)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            message = f"cannot be unpacked: {error}; delete it to download it again"
            raise DataError(archive, message) from error
        os.replace(f"{temporary}/data", target)


def _innermost_folder(folder: Path) -> Path:
    """Return the folder with the files, such as ``scifact/`` in scifact.zip.

    It is reached by entering folders as long as there is only one, unless that is part of a layout.
    """
    while True:
        paths = list(folder.iterdir())
        if len(paths) != 1 or not paths[0].is_dir():
            return folder
        if paths[0].name in ("corpus", "queries", "qrels"):
            return folder
        folder = paths[0]


def _missing_table_error(name: CollectionName, dataset: DatasetFiles) -> UserError:
    """Return the error for a data set without documents or queries."""
    missing = "documents (corpus.jsonl, corpus/*)"
    if dataset.corpora:
        missing = "queries (queries.jsonl, queries/*.parquet)"
    files = ", ".join(dataset.files[:_MOST_LISTED]) or "no .jsonl, .parquet, .tsv or .zip file"
    return UserError(
        f"{name}: expected {missing} in the layout of Cocktail, BEIR or MTEB, got {files}"
    )
