"""Data sets of the Hugging Face hub: fetched once, kept in the hub's own cache, known again by their commit."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from ranktilt.data.assemble import judged, read_documents, read_rows, unjudged
from ranktilt.data.cache import cache_folder
from ranktilt.data.collection import Collection
from ranktilt.data.formats.jsonl import stack
from ranktilt.data.formats.parquet import read_judgments
from ranktilt.data.formats.qrels import read_qrels
from ranktilt.data.named import NO_QRELS, Named, Wanted, choose_split
from ranktilt.errors import DataError, UserError
from ranktilt.optional import may_fetch, need

SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet", ".tsv", ".tsv.gz")
_ROWS = (".jsonl", ".jsonl.gz", ".parquet")
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_NUMBER = re.compile(r"^\d+$")
_WHOLE = {"corpus", "train", "test", "dev", "validation", "default", "data"}
"""Names of files in corpus/ that say nothing of a source."""
_SPLITS = {"train", "test", "dev", "validation", "valid", "val"}


@dataclass(frozen=True)
class Inventory:
    """Which file of a data set holds what."""

    layout: str
    corpora: tuple[tuple[str | None, Path], ...] = ()
    """Source and file, human text first; None where the file itself says the source."""
    queries: tuple[Path, ...] = ()
    splits: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    files: tuple[str, ...] = ()


def inventory(folder: Path, *, judgments_only: bool = False) -> Inventory:
    """Find out which files of a snapshot or unpacked archive hold documents, queries and judgments.

    Files in ``corpus/`` are each a source of their own if one is called ``human`` or they have
    several names. Judgments are ``<split>`` in ``qrels/``, ``data/``, ``default/`` or on top.
    Parquet may be in shards.
    """
    there = [
        p.relative_to(folder)
        for p in sorted(folder.rglob("*"))
        if p.name.endswith(SUFFIXES) and p.is_file()
    ]
    files = [p for p in there if not is_hidden(p)]
    corpora = [] if judgments_only else [(_name(p), folder / p) for p in files if _is(p, "corpus")]
    queries = [] if judgments_only else [folder / p for p in files if _is(p, "queries")]
    splits: dict[str, list[Path]] = {}
    for place in files:
        if _is_judgments(place, judgments_only=judgments_only):
            splits.setdefault(_name(place), []).append(folder / place)
    names = {name for name, _ in corpora}
    apart = bool(names - _WHOLE) and ("human" in names or len(names) > 1)
    named = [(name if apart else None, file) for name, file in corpora]
    return Inventory(
        "cocktail" if apart else "beir",
        tuple(sorted(named, key=lambda c: (c[0] not in (None, "human"), c[0] or "", str(c[1])))),
        tuple(queries),
        {name: tuple(found) for name, found in splits.items()},
        tuple(p.as_posix() for p in files),
    )


def is_hidden(place: PurePath) -> bool:
    """Whether a path is what an operating system or version control leaves behind."""
    return any(part.startswith(".") or part == "__MACOSX" for part in place.parts)


def _name(place: PurePath) -> str:
    """Name of a file without ending and shard; of its folder where it is only a number."""
    name = place.name
    for suffix in SUFFIXES[::-1]:
        name = name.removesuffix(suffix)
    name = _SHARD.sub("", name)
    return place.parts[-2] if _NUMBER.match(name) and len(place.parts) > 1 else name


def _is(place: PurePath, what: str) -> bool:
    inside = len(place.parts) > 1 and place.parts[0] == what
    return place.name.endswith(_ROWS) and (
        inside or (len(place.parts) == 1 and _name(place) == what)
    )


def _is_judgments(place: PurePath, *, judgments_only: bool) -> bool:
    if len(place.parts) == 1:
        known = _name(place) in _SPLITS or judgments_only
        return known and not (_is(place, "corpus") or _is(place, "queries"))
    return place.parts[0] in ("qrels", "data", "default")


_PATTERNS = [*(f"*{suffix}" for suffix in SUFFIXES), "*.zip"]
_TOO_MANY = 8


def load_hub(name: Named, wanted: Wanted) -> Collection:
    """Load a data set of the Hugging Face hub; judgments that it lacks are those of ``OWNER/NAME-qrels``, as BEIR's."""
    folder = snapshot(name)
    found = inventory(_unpacked(folder, name.id))
    if not found.corpora or not found.queries:
        raise _no_layout(name, found)
    documents = read_documents(found.corpora)
    queries = stack([read_rows(file) for file in found.queries])
    files = [str(file) for file in (*(file for _, file in found.corpora), *found.queries)]
    spec: dict[str, Any] = {
        "path": f"hub:{name.id}",
        "revision": folder.name,
        "layout": found.layout,
    }
    if wanted.qrels is not None and str(wanted.qrels) == NO_QRELS:
        return unjudged(documents[0], queries, {**spec, "qrels": NO_QRELS, "files": files})
    more, judgments = _judgments(name, found, wanted)
    tables = [
        read_judgments(f) if f.name.endswith((".parquet", ".jsonl", ".jsonl.gz")) else read_qrels(f)
        for f in judgments
    ]
    spec |= {**more, "files": [*files, *map(str, judgments)]}
    qrels = pl.concat(tables, how="vertical_relaxed")
    return judged(
        documents, queries, qrels, judgments[0], spec=spec, ignore_unknown=wanted.ignore_unknown
    )


def _judgments(
    name: Named, found: Inventory, wanted: Wanted
) -> tuple[dict[str, Any], tuple[Path, ...]]:
    """What the spec says of the judgments, and their files."""
    if wanted.qrels is not None:
        return {"split": str(wanted.qrels)}, (Path(wanted.qrels),)
    if found.splits:
        split = choose_split(found.splits, wanted.split, f"hub:{name.id}")
        return {"split": split}, found.splits[split]
    beside = Named("hub", f"{name.id}-qrels")
    try:
        other = snapshot(beside)
    except UserError as error:
        hint = "name a file of judgments with --qrels, or --qrels none"
        raise UserError(
            f"{name} holds no judgments, nor does {beside}, where BEIR keeps them; {hint} ({error})"
        ) from error
    splits = inventory(other, judgments_only=True).splits
    split = choose_split(splits, wanted.split, str(beside))
    return {"split": split, "qrels": str(beside), "qrels_revision": other.name}, splits[split]


def snapshot(name: Named) -> Path:
    """Fetch the files of a data set, or find them in the hub's cache: a folder that is called by its commit."""
    hub = need("huggingface_hub", extra="datasets", for_=str(name))
    try:
        folder = hub.snapshot_download(
            name.id,
            repo_type="dataset",
            revision=name.revision,
            allow_patterns=_PATTERNS,
            local_files_only=not may_fetch(),
        )
    except (
        Exception
    ) as error:  # the library's transport raises errors of its own, which no name holds together
        raise _refused(name, error) from error
    return Path(folder)


def _refused(name: Named, error: Exception) -> UserError:
    errors = need("huggingface_hub.errors", extra="datasets", for_=str(name))
    page = f"https://huggingface.co/datasets/{name.id}"
    if isinstance(error, errors.HFValidationError):
        return UserError(f"{name}: expected OWNER/NAME after hub:, such as hub:IR-Cocktail/scifact")
    if isinstance(error, errors.LocalEntryNotFoundError):
        place = need("huggingface_hub.constants", extra="datasets", for_=str(name)).HF_HUB_CACHE
        why = (
            "the hub cannot be reached (HF_HUB_OFFLINE?)"
            if may_fetch()
            else "nothing is fetched for a report"
        )
        fetch = f"hf download {name.id} --repo-type dataset" + (
            f" --revision {name.revision}" if name.revision else ""
        )
        return UserError(
            f"{name}: {why}, and the cache ({place}) does not hold all of it; `{fetch}` downloads it"
        )
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return UserError(
        f"{name}: could not be fetched: {reason}; see {page} (private repositories need `hf auth login`)"
    )


def _unpacked(folder: Path, id: str) -> Path:
    """The folder that holds the files themselves, unpacked where the data set is a zip file, as Cocktail's are."""
    archives = sorted(folder.glob("*.zip"))
    if not archives or inventory(folder).corpora:
        return folder
    if len(archives) > 1:
        raise UserError(
            f"hub:{id}: expected one zip file, got {', '.join(file.name for file in archives)}"
        )
    target = cache_folder() / "collections" / f"{id.replace('/', '--')}-{folder.name}"
    if not target.is_dir():
        _unpack(archives[0], target)
    return _inner(target)


def _unpack(archive: Path, target: Path) -> None:
    """Unpack what is data, whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".", dir=target.parent) as waiting:
        try:
            with zipfile.ZipFile(archive) as packed:
                wanted = [
                    n
                    for n in packed.namelist()
                    if n.endswith(SUFFIXES) and not is_hidden(PurePosixPath(n))
                ]
                packed.extractall(f"{waiting}/data", wanted)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise DataError(
                archive, f"cannot be unpacked: {error}; delete it, so that it is downloaded again"
            ) from error
        os.replace(f"{waiting}/data", target)


def _inner(folder: Path) -> Path:
    """Go into folders that hold nothing but one folder, such as ``scifact/`` in scifact.zip."""
    while True:
        entries = list(folder.iterdir())
        if (
            len(entries) != 1
            or not entries[0].is_dir()
            or entries[0].name in ("corpus", "queries", "qrels")
        ):
            return folder
        folder = entries[0]


def _no_layout(name: Named, found: Inventory) -> UserError:
    what = (
        "queries (queries.jsonl, queries/*.parquet)"
        if found.corpora
        else "documents (corpus.jsonl, corpus/*)"
    )
    shown = ", ".join(found.files[:_TOO_MANY]) or "no file of .jsonl, .parquet, .tsv or .zip"
    return UserError(
        f"{name}: expected {what} in the layout of Cocktail, BEIR or MTEB; there are: {shown}"
    )
