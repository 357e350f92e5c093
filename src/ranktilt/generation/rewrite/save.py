"""Write a collection with its rewrites as a folder, with the data card that is its README.

A *source* is the author of documents, such as ``human`` or a model at one temperature. A *split*,
such as ``test``, has judgments of its own. A *pool* is a choice of documents to rewrite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.files import sha256
from ranktilt.data.loading.load import load, splits
from ranktilt.errors import counted, escape_invisible, join_words
from ranktilt.generation.datacard_sections import (
    counts_section,
    files_section,
    model_section,
    prompt_section,
    trial_note,
)
from ranktilt.generation.output_folder import SavedFolder, open_folder, write_folder
from ranktilt.generation.rewrite.rewrite import Rewritten

_TITLES = {
    "keep": (
        "Both twins carry the title of the original. A ranker that reads titles sees the same one "
        "twice, so the twins differ less than their texts do; `--text text` ranks without titles."
    ),
    "rewrite": (
        "Titles were rewritten too, each with its own request; a document whose title failed is "
        "left out."
    ),
    "drop": (
        "Rewrites have no title, but originals keep theirs, so a ranker that reads titles sees "
        "more of the originals. Rank with `--text text`."
    ),
}
"""Paragraph on titles in the data card, by the option ``titles``."""
_LICENCE = (
    "The source texts keep their licence, and rewrites are made from them, so its conditions "
    "(naming the authors, no commercial use, sharing alike) apply to the rewrites too. The terms "
    "of the model, or of its provider, say what you may do with its answers. The program that "
    "wrote this card knows neither. Look both up before you pass this folder on."
)
"""Paragraph on licences in the data card."""


class DerivedCollection(Protocol):
    """A collection made from another one, whose judgments it can take over, split by split."""

    @property
    def originals(self) -> Collection:
        """The collection that it was made from."""

    @property
    def collection(self) -> Collection:
        """The derived collection, under the judgments that it was made with."""

    def unite(self, qrels: pl.DataFrame) -> Collection:
        """Return the derived collection under other judgments of the originals."""


def save_rewritten(
    rewritten: Rewritten, folder: str | Path, *, rows_per_file: int | None = None
) -> SavedFolder:
    """Write a collection with its rewrites, its data card, every answer and a manifest.

    Rewrites get the judgments of their originals, in all splits of the collection's folder. The
    folder gets ``corpus.jsonl`` (or Parquet files), ``queries.jsonl``, ``qrels/<split>.tsv``,
    ``README.md`` (the data card), ``left-out.jsonl``, ``answers.jsonl.gz`` (every answer as it
    came) and ``manifest.json``.

    Parameters
    ----------
    rewritten : Rewritten
        The rewrites.
    folder : str or Path
        New or empty, or an earlier output, which is replaced completely or not at all.
    rows_per_file : int, optional
        Documents per Parquet file; without it all documents are JSON lines in one file.

    Returns
    -------
    SavedFolder
        The folder, and the names of its splits.

    Raises
    ------
    UserError
        If the folder has other files, or cannot be written.
    """
    target = open_folder(folder, rewritten.spec["collection"].get("path"))
    qrels_by_split, hashes = judgments_by_split(rewritten)
    spec = {**rewritten.spec, "inputs": {**rewritten.spec.get("inputs", {}), **hashes}}
    write_folder(
        target,
        rewritten,
        judged=qrels_by_split,
        card=datacard(rewritten, tuple(qrels_by_split)),
        spec=spec,
        rows_per_file=rows_per_file,
    )
    return SavedFolder(folder=Path(folder), splits=tuple(qrels_by_split))


def judgments_by_split(
    derived: DerivedCollection,
) -> tuple[dict[str, pl.DataFrame], dict[str, str]]:
    """Return the judgments of every split of the originals, carried over to the derived collection.

    Also returns hashes of the files that were read for this, by path.
    """
    spec, qrels = derived.originals.spec, derived.collection.qrels
    split, path = spec.get("split"), Path(str(spec.get("path", "")))
    split_names = splits(path) if "path" in spec else []
    qrels_by_split, hashes = dict[str, pl.DataFrame](), dict[str, str]()
    if qrels.height and split not in split_names:
        # A split may be the path of a file, which is no name for a file of judgments.
        is_name = split is not None and Path(str(split)).name == split
        qrels_by_split[str(split) if is_name else "test"] = qrels
    for name in split_names:
        if name == split and qrels.height:
            qrels_by_split[name] = qrels
            continue
        loaded = load(path, split=name, ignore_unknown=True)
        qrels_by_split[name] = derived.unite(loaded.qrels).qrels
        file = Path(loaded.spec["files"][-1])  # the judgments are read last
        hashes[str(file)] = sha256(file)
    return qrels_by_split, hashes


def datacard(rewritten: Rewritten, splits: Sequence[str]) -> str:
    """Write the data card of rewrites as Markdown; `splits` names the files of judgments.

    The same answers give the same card.
    """
    files = files_section(
        splits,
        corpus="all documents, with `source`, `origin`, and for rewrites `model`, `temperature`, "
        "`prompt`",
        qrels="judgments, carried over to the rewrites",
        left_out="a rewrite",
    )
    parts = [
        "# A collection and its rewrites",
        _opening(rewritten, splits),
        "## Model",
        model_section(rewritten),
        "## Prompt",
        _prompt_section(rewritten),
        "## What became of the documents",
        counts_section(rewritten, "rewritten", cut=True),
        *_pool_section(rewritten),
        "## Titles",
        _TITLES[rewritten.spec["titles"]],
        "## Licence",
        _LICENCE,
        "## Files",
        files,
    ]
    # Names of sources and files may hold control characters.
    return escape_invisible("\n\n".join(parts)) + "\n"


def _opening(rewritten: Rewritten, splits: Sequence[str]) -> str:
    """Return the first paragraph of the data card."""
    spec, summaries = rewritten.spec, rewritten.summaries
    path = spec["collection"].get("path")
    collection = f" from `{path}`" if path else ""
    noun = "source" if len(summaries) == 1 else "sources"
    sources = join_words([f"`{summary.source}`" for summary in summaries])
    judgments = "No judgments."
    if splits:
        judgments = f"Judgments ({', '.join(splits)}) hold for a document and its rewrites alike."
    # Each note is empty or begins with a blank.
    notes = _source_note(spec) + _earlier_note(rewritten) + trial_note(spec)
    return (
        f"Documents of source `{spec['of']}`{collection} and their rewrites by a language model, "
        f"as {noun} {sources}. A rewrite and its original have the same `origin`. "
        f"{judgments}{notes} Made by ranktilt {spec['ranktilt']}."
    )


def _source_note(spec: Mapping[str, Any]) -> str:
    """Return a sentence, after a blank, if the user named the source; else an empty text."""
    stated = spec["named_source"]
    if not stated:
        return ""
    documents = counted(stated["documents"], "document is", "documents are")
    return (
        f" The collection names no source: {documents} called `{stated['source']}` because the "
        "person who had them rewritten said so."
    )


def _earlier_note(rewritten: Rewritten) -> str:
    """Return a sentence, after a blank, on sources that were there before; else an empty text."""
    described = {rewritten.spec["of"], *(summary.source for summary in rewritten.summaries)}
    earlier = [f"`{name}`" for name in rewritten.collection.sources if name not in described]
    if not earlier:
        return ""
    pronoun = "it" if len(earlier) == 1 else "them"
    return (
        f" The collection already had {join_words(earlier)}; counts and figures below leave "
        f"{pronoun} out."
    )


def _prompt_section(rewritten: Rewritten) -> str:
    """Return the text of the section on the prompt."""
    content = "the document's text"
    if "{title}" in rewritten.spec["prompt"]["text"]:
        content += " and title"
    return prompt_section(
        rewritten,
        f"`{{text}}` stands for the document. The model gets {content}, and nothing from the "
        "queries or judgments.",
    )


def _pool_section(rewritten: Rewritten) -> list[str]:
    """Return heading and text on the choice of documents; an empty list if all were rewritten."""
    spec = rewritten.spec
    if not spec["partial"]:
        return []
    reasons = spec["pool"] or ["only named documents were rewritten"]
    bullets = "\n".join(f"- {reason}" for reason in reasons)
    note = (
        "The column `pool` says which; the rest of the collection is only on the side of "
        f"`{spec['of']}`."
    )
    if spec["pool"]:
        note = (
            "Queries chose the documents: only those judged, or found for a query by a ranker, "
            "were rewritten. The column `pool` says which. The rest of the collection is only on "
            f"the side of `{spec['of']}`, so a ranker outside the pool may find texts without "
            "twins; figures hold for the cutoffs and rankers that the pool covers."
        )
    return ["## Pool", f"{bullets}\n\n{note}"]
