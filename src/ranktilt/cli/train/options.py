"""Options that the commands of ``ranktilt train`` share, and the command that holds them.

A *split* is a part of a collection's queries with its own judgments, such as train; `load_split`
reads it. A *negative* is a document that a model learns to score below the relevant ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import CORRECT, INPUT, MODEL, OUTPUT, TRAINING, command_group

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection

train = command_group("train", "Train a ranker on a collection's judgments.", CORRECT)
"""The group of verbs that train."""

Model = Annotated[
    Path,
    Parameter(
        name="--output",
        alias="-o",
        help="Folder for the model; resumes an interrupted training there.",
        metavar="FOLDER",
        group=OUTPUT,
    ),
]

LearningSplit = Annotated[
    str,
    Parameter(
        help="Judgments to learn from, qrels/<split>.tsv (default: train).",
        metavar="SPLIT",
        group=INPUT,
    ),
]

Encoder = Annotated[
    str,
    Parameter(
        help="Encoder to start from: minilm (default), a folder or a hub name.",
        metavar="MODEL",
        group=MODEL,
    ),
]

Text = Annotated[
    options.Fields | None, Parameter(help="Part of a document to learn from.", group=MODEL)
]

Sources = Annotated[
    list[str] | None,
    Parameter(
        help="Sources to learn from, or N relevant documents of each.",
        metavar="SOURCE[=N],…",
        group=INPUT,
    ),
]

Minutes = Annotated[
    float | None,
    Parameter(
        help="Train for about M minutes, with the learning rate scheduled by time (default: one "
        "epoch).",
        metavar="M",
        group=TRAINING,
        validator=options.NOT_NEGATIVE,
    ),
]

RerankerNegatives = Annotated[
    str | None,
    Parameter(
        help="Negatives from BM25's top K, or from N random documents (default: bm25:100).",
        metavar="bm25:K|random:N",
        group=TRAINING,
    ),
]


def load_split(folder: Path, split: str) -> Collection:
    """Load a collection with the judgments of a split, which may name unknown documents."""
    from ranktilt.data.loading.load import load

    return load(folder, split=split, ignore_unknown=True)
