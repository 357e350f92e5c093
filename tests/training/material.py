"""A collection whose relevant documents have a mark that a model of two layers finds within
seconds.
"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from ranktilt.data.collection import Collection
from ranktilt.data.save import save
from ranktilt.progress import listening
from ranktilt.training.options import RerankerTraining
from ranktilt.training.training_set import only_sources
from tests.toy import collection_of

WORDS = ["w" + "".join(letters) for letters in itertools.permutations("abcde", 2)]
SOURCES = ("human", "llm")
MARK = "zz"
QUICK = RerankerTraining(
    steps=6,
    batch=8,
    negatives_per_positive=3,
    max_query_tokens=6,
    max_document_tokens=16,
    rate=3e-3,
)
"""A second of work with the tiny model."""


def marked() -> Collection:
    """For each word a query, two marked documents and four others of each source, the sources'
    versions of one origin.

    The human side is judged: marked documents are relevant, and one other is judged not to be.
    """
    docs = [
        {
            "id": f"{word}{number}-{source}",
            "text": f"{word} {MARK if number < 2 else 'yy'} {'ghijkl'[number]} {source[0]}",
            "source": source,
            "origin": f"{word}{number}-human",
        }
        for source in SOURCES
        for word in WORDS
        for number in range(6)
    ]
    qrels = {
        f"q-{word}": {f"{word}{number}-human": int(number < 2) for number in range(3)}
        for word in WORDS
    }
    return collection_of(docs, {f"q-{word}": word for word in WORDS}, qrels)


def marked_mix() -> Collection:
    """Both versions of each document, judged alike."""
    human = marked()
    twins = human.qrels.with_columns(pl.col("doc_id").str.replace("-human", "-llm"))
    return replace(human, qrels=pl.concat([human.qrels, twins]))


def marked_folder(folder: Path) -> Path:
    """Save it as a BEIR folder with training judgments."""
    return save(replace(marked(), spec={"split": "train"}), folder)


def human_part(collection: Collection) -> Collection:
    """The human documents alone, with their judgments."""
    return only_sources(collection, ["human"])


@contextmanager
def stopped_at(step: int, folder: Path) -> Iterator[None]:
    """Interrupt the training of this folder where so many steps are reported."""

    def listener(label: str, done: int, total: int) -> None:
        if label.endswith(folder.name) and done == step:
            raise KeyboardInterrupt

    with listening(listener), pytest.raises(KeyboardInterrupt):
        yield
