"""The queries that ``ranktilt generate answer`` reads, and how to mix in its documents."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.errors import UserError, counted

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection


def load_queries(queries: Path, split: str | None) -> Collection:
    """Return the queries of a file or a collection.

    For a collection, `split` names the judgments whose queries are taken; for a file, it is only
    recorded as the name of the split.
    """
    from ranktilt.data.queries import read_queries

    if os.path.isdir(queries) or str(queries).startswith(("hub:", "irds:")):
        return options.load_texts(queries, split)
    if split is not None and Path(split).name != split:
        raise UserError(f"--split expects a name such as train, got {split!r}")
    collection = read_queries(queries)
    if split is None:
        return collection
    return replace(collection, spec={**collection.spec, "split": split})


def note_mixing(folder: Path, collection: Collection, answered: Path, *, split: str | None) -> None:
    """Print the commands that merge a collection with the documents that were written for it.

    Parameters
    ----------
    folder : Path
        The folder of the collection.
    collection : Collection
        The collection.
    answered : Path
        The folder of the written documents.
    split : str or None
        The split whose queries were answered; None for the default.
    """
    from ranktilt.data.labels.stated_sources import ORIGINALS

    if collection.sourceless:
        documents = counted(collection.sourceless, "document has", "documents have")
        command = ["ranktilt", "data", "load", str(folder), "--source", ORIGINALS, "-o", "NEW"]
        note(
            f"{folder}: {documents} no source, so they will be in no group; name it before you "
            f"mix: {shlex.join(command)}"
        )
    split_words = [] if split is None else ["--split", split]
    command = ["ranktilt", "data", "mix", str(folder), str(answered), *split_words, "-o", "mixed"]
    note(f"Next: {shlex.join(command)}")
