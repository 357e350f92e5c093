"""Provenance: the inputs and versions that a result was made with, so that it can be repeated.

A *spec* is a dictionary that says how a collection, a run or a result was made. Provenance is the
part of a result's spec that is about its inputs.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.files import sha256

PACKAGES = ("numpy", "scipy", "polars", "PyStemmer")
"""Packages whose versions could change an audit's numbers."""


def audit_provenance(
    collection: Collection, runs: Sequence[Mapping[str, Any]], *, files: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the provenance of numbers: collection, specs of runs, files with hashes, versions.

    `runs` are the specs of the runs, and `files` the paths of further files that were read.
    """
    every_file = [*_files_of_collection(collection.spec), *files_of_runs(runs), *files]
    inputs = [
        {"path": file, "sha256": sha256(Path(file))}
        for file in dict.fromkeys(every_file)
        if os.path.isfile(file)
    ]
    return {
        "ranktilt": __version__,
        "python": platform.python_version(),
        "packages": dict(_versions()),
        "collection": {key: value for key, value in collection.spec.items() if key != "files"},
        "runs": [dict(spec) for spec in runs],
        "inputs": inputs,
    }


def files_of_runs(specs: Iterable[Any]) -> list[str]:
    """List the files that runs and their candidates were read from, each once.

    `specs` are the specs of the runs. The spec of a re-ranked run holds that of its candidates, and
    the spec of a run with repeats holds those of the repeats.
    """
    files: list[str] = []
    for run_spec in specs:
        spec = run_spec
        while isinstance(spec, Mapping):
            if "file" in spec:
                files.append(str(spec["file"]))
            files += files_of_runs(spec.get("repeats", ()))
            spec = spec.get("candidates")
    return list(dict.fromkeys(files))


def _files_of_collection(spec: Mapping[str, Any]) -> list[str]:
    """List the files that a collection was read from; for a mix, those of its parts."""
    files = [str(file) for file in spec.get("files", ())]
    for part in spec.get("mix", ()):
        files += _files_of_collection(part)
    return files


@cache
def _versions() -> dict[str, str]:
    """Return the versions of `PACKAGES`; cached, because looking them up is slow."""
    return {name: version(name) for name in PACKAGES}
