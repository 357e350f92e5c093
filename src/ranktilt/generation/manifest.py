"""The manifest of an output folder: what went in, what came out, each by its hash, and whether it is still so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from ranktilt._version import __version__
from ranktilt.data.files import cannot_write, read_text, require_folder
from ranktilt.data.formats.json_text import require_single_keys
from ranktilt.errors import DataError, UserError

MANIFEST = "manifest.json"
WHAT = {
    "rewrites": "ranktilt generate rewrite",
    "answers": "ranktilt generate answer",
    "versions": "ranktilt generate versions",
}
"""What a folder holds, and the command that writes it."""
_PACKAGES = ("openai", "polars", "torch", "transformers")


class _CollectionPath(msgspec.Struct):
    path: str | None = None


class _Spec(msgspec.Struct):
    collection: _CollectionPath = msgspec.field(default_factory=_CollectionPath)


class _Manifest(msgspec.Struct):
    """Of a manifest, what is read."""

    files: dict[str, str]
    spec: _Spec = msgspec.field(default_factory=_Spec)


def manifest(spec: Mapping[str, Any], files: Mapping[str, str], kind: str = "rewrites") -> bytes:
    """Describe a folder as JSON: how it was made, and the hashes of what was read and written, by path."""
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
        "files": dict(files),
    }
    # What of a path is no UTF-8 becomes an escape of JSON, from which the same name is read back.
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode(
        errors="backslashreplace"
    )


def require_ours(folder: Path, given: str | Path | None = None, kind: str = "rewrites") -> None:
    """Refuse a folder that holds anything but what was written there of the same collection, `given` by its path."""
    try:
        require_folder(folder)
        if not folder.exists():
            return
        known = _read(folder / MANIFEST, kind) if (folder / MANIFEST).is_file() else None
        ours = set() if known is None else {*known.files, MANIFEST}
        there = (path for path in sorted(folder.rglob("*")) if path.is_file())
        if strange := next(
            (path for path in there if path.relative_to(folder).as_posix() not in ours), None
        ):
            raise UserError(
                f"{strange}: is no part of {kind} and would be lost; move it, or choose another folder"
            )
    except OSError as error:
        raise cannot_write(folder, error) from error
    before = None if known is None else known.spec.collection.path
    if (
        before is not None
        and given is not None
        and Path(before).absolute() != Path(given).absolute()
    ):
        whose = "answers to other queries" if kind == "answers" else f"{kind} of another collection"
        raise UserError(f"{folder}: holds {whose}, {before}; choose another folder or remove it")


def _read(file: Path, kind: str) -> _Manifest | None:
    """A manifest of ours; None for any other JSON."""
    try:
        text = read_text(file)
        content = msgspec.json.decode(text)
        require_single_keys(file, text, content)
        if not isinstance(content, dict) or content.get("what") != WHAT[kind]:
            return None
        return msgspec.convert(content, _Manifest)
    except (RecursionError, ValueError) as error:
        raise DataError(file, f"expected a manifest as JSON: {error}") from error
