"""The manifest of an output folder: hashes of the files that were read and written.

A *spec* is how a collection was made, as data. By its manifest a folder is recognised as an earlier
output, which may be replaced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from ranktilt._version import __version__
from ranktilt.data.files import cannot_write, read_text, require_folder
from ranktilt.data.formats.json_values import require_single_keys
from ranktilt.errors import DataError, UserError

MANIFEST = "manifest.json"
"""Name of the file."""
COMMANDS = {
    "rewrites": "ranktilt generate rewrite",
    "answers": "ranktilt generate answer",
    "versions": "ranktilt generate versions",
}
"""Command that writes a folder, by the kind of generated documents in it."""
_PACKAGES = ("openai", "polars", "torch", "transformers")
"""Packages whose versions are recorded."""


class _CollectionPath(msgspec.Struct):
    """The part of a spec that says where the collection is."""

    path: str | None = None
    """Folder of the collection."""


class _Spec(msgspec.Struct):
    """The part of a spec that is read."""

    collection: _CollectionPath = msgspec.field(default_factory=_CollectionPath)
    """The collection that texts were made of."""


class _Manifest(msgspec.Struct):
    """The parts of a manifest that are read."""

    files: dict[str, str]
    """Hash of each file, by its path in the folder."""
    spec: _Spec = msgspec.field(default_factory=_Spec)
    """How the folder was made."""


def manifest(spec: Mapping[str, Any], files: Mapping[str, str], kind: str = "rewrites") -> bytes:
    """Describe a folder as JSON: how it was made, and hashes of its files and inputs.

    Parameters
    ----------
    spec : mapping
        How the collection was made; its ``inputs`` are hashes of the files that were read, by path.
    files : mapping
        Hashes of the files that were written, by their path in the folder.
    kind : str, optional
        Kind of generated documents, a key of `COMMANDS`.
    """
    packages = {}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    content = {
        "what": COMMANDS[kind],
        "version": 1,
        "ranktilt": __version__,
        "packages": packages,
        "spec": {name: value for name, value in spec.items() if name != "inputs"},
        "inputs": dict(spec.get("inputs", {})),
        "files": dict(files),
    }
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    # A path may hold bytes that are no UTF-8. As escapes of JSON they are read back unchanged.
    return text.encode(errors="backslashreplace")


def require_ours(
    folder: Path, collection_path: str | Path | None = None, kind: str = "rewrites"
) -> None:
    """Refuse a folder that holds anything but an earlier output, made from the same collection.

    Parameters
    ----------
    folder : Path
        The folder; it may be missing.
    collection_path : str or Path, optional
        Path of the collection that the new output is made from; unchecked if None.
    kind : str, optional
        Kind of generated documents, a key of `COMMANDS`.
    """
    try:
        require_folder(folder)
        if not folder.exists():
            return
        earlier = _read(folder / MANIFEST, kind) if (folder / MANIFEST).is_file() else None
        _require_no_other_files(folder, earlier, kind)
    except OSError as error:
        raise cannot_write(folder, error) from error
    earlier_path = None if earlier is None else earlier.spec.collection.path
    if earlier_path is None or collection_path is None:
        return
    if Path(earlier_path).absolute() != Path(collection_path).absolute():
        content = f"{kind} of another collection"
        if kind == "answers":
            content = "answers to other queries"
        raise UserError(
            f"{folder}: holds {content}, {earlier_path}; choose another folder or remove it"
        )


def _require_no_other_files(folder: Path, earlier: _Manifest | None, kind: str) -> None:
    """Refuse files that the earlier output did not write: they would be lost."""
    written = set() if earlier is None else {*earlier.files, MANIFEST}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.relative_to(folder).as_posix() not in written:
            raise UserError(
                f"{path}: is not part of {kind} and would be lost; move it, or choose another "
                "folder"
            )


def _read(file: Path, kind: str) -> _Manifest | None:
    """Read the manifest of an earlier output of this kind; None for any other JSON."""
    try:
        text = read_text(file)
        content = msgspec.json.decode(text)
        require_single_keys(file, text, content)
        if not isinstance(content, dict) or content.get("what") != COMMANDS[kind]:
            return None
        return msgspec.convert(content, _Manifest)
    except (RecursionError, ValueError) as error:
        raise DataError(file, f"expected a manifest as JSON: {error}") from error
