"""The folder in which Dai et al. publish their collections.

A *source* is who wrote documents: people, or a language model at some sampling temperature. There
is a file of documents for each.
"""

from __future__ import annotations

from pathlib import Path

from ranktilt.data.loading.folders import Corpora, FolderReader, jsonl_files, jsonl_stem

_CORPUS = "corpus-"
"""Beginning of the name of a file of documents."""


def _corpora(folder: Path) -> Corpora:
    """Return the files by source.

    They are ``corpus-<source>.jsonl``, and one folder for each temperature, with the sources
    ``<llm>_<temperature>``.
    """
    corpora = [(_source(file), file) for file in jsonl_files(folder, f"{_CORPUS}*")]
    for file in jsonl_files(folder, f"*/{_CORPUS}*"):
        temperature = file.parent.name
        corpora.append((f"{_source(file)}_{temperature}", file))
    return tuple(corpora)


def _source(file: Path) -> str:
    """Return the source that a file is named after."""
    return jsonl_stem(file).removeprefix(_CORPUS)


READER = FolderReader(
    files="corpus-human.jsonl with <temperature>/corpus-<llm>.jsonl", corpora=_corpora
)
"""The layout, by which `ranktilt.load` recognises such a folder."""
