"""The manifest of an output folder: what went in, what came out, each by its hash, and whether it is still so."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from ranktilt._version import __version__
from ranktilt.errors import DataError, UserError
from ranktilt.io.files import Content, blocks, cannot_write, read_text, require_folder

MANIFEST = "manifest.json"
WHAT = {"rewrites": "ranktilt rewrite", "answers": "ranktilt answer"}
"""What a folder holds, and the command that writes it."""
_PACKAGES = ("openai", "polars", "torch", "transformers")


class _CollectionPath(msgspec.Struct):
    path: str | None = None


class _ManifestSpec(msgspec.Struct):
    collection: _CollectionPath = msgspec.field(default_factory=_CollectionPath)


class _Manifest(msgspec.Struct):
    """Of a manifest, what is read."""

    spec: _ManifestSpec
    files: dict[str, str]


class _Prompt(msgspec.Struct):
    name: str


class _RewriteSpec(msgspec.Struct):
    """Of the spec of rewrites, what the data card of later ones tells."""

    llm: dict[str, Any]
    prompt: _Prompt
    sources: dict[str, float]
    of: str
    titles: str


def manifest(spec: Mapping[str, Any], contents: Mapping[str, Content], kind: str = "rewrites") -> bytes:
    """Describe a folder as JSON: how it was made, and the hashes of what was read and written, files by their path."""
    packages = {}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    content = {
        "what": WHAT[kind],
        "version": 1,
        "ranktilt": __version__,
        "packages": packages,
        "spec": {name: value for name, value in spec.items() if name != "inputs"},
        "inputs": dict(spec.get("inputs", {})),
        "files": {
            name: hashlib.sha256(b"".join(blocks(contents[name]))).hexdigest() for name in sorted(contents)
        },
    }
    # What of a path is no UTF-8 becomes an escape of JSON, from which the same name is read back.
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode(errors="backslashreplace")


def _hash(content: Content) -> str:
    found = hashlib.sha256()
    for block in blocks(content):
        found.update(block)
    return found.hexdigest()


def require_ours(folder: Path, kind: str = "rewrites") -> dict[str, Any] | None:
    """Refuse a folder that cannot be replaced: one that holds anything but what this wrote.

    Returns the manifest of what is there; None for a new or empty folder.
    """
    require_folder(folder)
    if not folder.exists():
        return None
    try:
        known = _read(folder / MANIFEST, kind) if (folder / MANIFEST).is_file() else None
        ours = set() if known is None else {*known["files"], MANIFEST}
        there = (path for path in sorted(folder.rglob("*")) if path.is_file())
        if strange := next((path for path in there if path.relative_to(folder).as_posix() not in ours), None):
            raise UserError(f"{strange}: is no part of {kind} and would be lost; move it, or choose another folder")
    except OSError as error:
        raise cannot_write(folder, error) from error
    return known


def earlier(path: str | Path | None) -> list[dict[str, Any]]:
    """Read how the rewrites in a collection's folder were made: the ``spec`` of each manifest, the first ones first."""
    file = None if path is None else Path(path) / MANIFEST
    known = _read(file, "rewrites") if file is not None and os.path.isfile(file) else None
    if file is None or known is None:
        return []
    spec = dict(known["spec"])
    every = [*spec.pop("earlier", []), spec]
    try:
        msgspec.convert(every, list[_RewriteSpec])
    except msgspec.ValidationError as error:
        raise DataError(file, f"expected how rewrites were made: {error}") from error
    return every


def require_same(
    folder: Path, known: Mapping[str, Any] | None, given: str | Path | None, kind: str = "rewrites"
) -> None:
    """Refuse to replace what was made of a collection elsewhere; `known` is the manifest of what is there."""
    before = None if known is None else known.get("spec", {}).get("collection", {}).get("path")
    if before is not None and given is not None and Path(before).absolute() != Path(given).absolute():
        whose = "rewrites of another collection" if kind == "rewrites" else "answers to other queries"
        raise UserError(f"{folder}: holds {whose}, {before}; choose another folder or remove it")


def _read(file: Path, kind: str) -> dict[str, Any] | None:
    """A manifest of ours; None for any other JSON."""
    try:
        content = json.loads(read_text(file))
        if not isinstance(content, dict) or content.get("what") != WHAT[kind]:
            return None
        msgspec.convert(content, _Manifest)
    except (RecursionError, ValueError) as error:
        raise DataError(file, f"expected a manifest as JSON: {error}") from error
    return content
