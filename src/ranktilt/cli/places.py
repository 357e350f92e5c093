"""Files that a command is asked to write, checked before any work is done."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from ranktilt.errors import UserError
from ranktilt.io.files import cannot_write, require_place

_COLLECTION = ("*.jsonl", "*.jsonl.gz", "*/*.jsonl", "*/*.jsonl.gz", "qrels/*")
_BESIDE = ("README.md", "manifest.json", "loaded.json")


def check_places(places: Mapping[str, Path | str | None], *, stdout: Iterable[str], inputs: Iterable[Path]) -> None:
    """Refuse files that cannot be written, that overwrite what is read, or that are named twice."""
    given = {option: str(place) for option, place in places.items() if place is not None}
    streams = [option for option, place in given.items() if place == "-"]
    allowed = tuple(stdout)
    barred = next((option for option in streams if option not in allowed), None)
    if barred is not None:
        others = f"; standard output (-) is for {' and '.join(allowed)}" if allowed else ", not to standard output (-)"
        raise UserError(f"{barred} writes a file{others}")
    if len(streams) > 1:
        raise UserError(f"{' and '.join(streams)} cannot both go to stdout; name a file for one of them")
    read = list(inputs)
    beside = [path.parent / name for path in read for name in _BESIDE if path.suffix in (".jsonl", ".gz")]
    taken = {_true(path): "belongs to the collection" for path in beside if path.is_file()}
    taken |= {_true(path): "is read" for path in read}
    for option, place in given.items():
        if option not in streams:
            try:
                _check(option, Path(place), taken)
            except OSError as error:  # a folder on the way may not even be looked into
                raise cannot_write(Path(place), error) from error


def collection_files(folder: Path | None) -> list[Path]:
    """List the files of a collection's folder that a command reads; none for no folder."""
    if folder is None or not os.path.isdir(folder):
        return []
    return [file for pattern in _COLLECTION for file in folder.glob(pattern) if file.is_file()]


def without_judgments(folder: Path, split: str | None) -> bool:
    """Tell whether a folder holds no judgments and none are asked for; a name such as ``hub:…`` is no folder."""
    from ranktilt.generation.rewrite.save import splits

    return split is None and os.path.isdir(folder) and not splits(folder)


def _true(path: Path) -> Path:
    return Path(os.path.realpath(path))  # unlike Path.resolve it bears links that go round


def _check(option: str, path: Path, taken: dict[Path, str]) -> None:
    if path.is_dir():
        raise UserError(f"{option} {path}: expected a file, this is a folder")
    place = _true(path)
    if place in taken and (path.is_file() or not path.exists()):  # a device may take any number of them
        raise UserError(f"{option} {path}: this file {taken[place]} too; choose another place")
    folder = next((other for other in taken if other in place.parents or place in other.parents), None)
    if folder is not None and not (folder.exists() or place.exists()):
        outer, inner = (folder, place) if folder in place.parents else (place, folder)
        raise UserError(
            f"{option} {path}: {outer} cannot be a file and the folder of {inner.name}; choose another place"
        )
    taken[place] = f"is written by {option}"
    require_place(path)
