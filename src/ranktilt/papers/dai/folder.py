"""The folder in which Dai et al. publish their collections."""

from __future__ import annotations

from pathlib import Path

from ranktilt.data.folders import Corpora, FolderReader, jsonl_files, stem

_CORPUS = "corpus-"


def _corpora(folder: Path) -> Corpora:
    """``corpus-<source>.jsonl``, and one folder a temperature, whose sources are named ``<llm>_<temperature>``."""
    top = [(stem(file).removeprefix(_CORPUS), file) for file in jsonl_files(folder, f"{_CORPUS}*")]
    deep = [
        (f"{stem(file).removeprefix(_CORPUS)}_{file.parent.name}", file)
        for file in jsonl_files(folder, f"*/{_CORPUS}*")
    ]
    return (*top, *deep)


READER = FolderReader(
    files="corpus-human.jsonl with <temperature>/corpus-<llm>.jsonl", corpora=_corpora
)
