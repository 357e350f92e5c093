"""Changed texts: collections in which twins no longer differ in one way.

*Twins* are two versions of one document, one in each of two compared groups. The document that they
are versions of is their *origin*, and all its versions that have a twin are a *family*. Each
control makes the members of a family alike in one way, such as their length, or leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from ranktilt.auditing.controls.result import ControlChange
from ranktilt.data.collection import Collection
from ranktilt.data.faults.twin_likeness import twin_likeness
from ranktilt.data.text.quality import without_opening, words
from ranktilt.measures.ranking import Ints
from ranktilt.models.token_counts import Tokens
from ranktilt.rankers.base import Ranker, stages_of


class ChangedCollection(NamedTuple):
    """A collection in which a control changed texts or left out documents, and what it changed."""

    collection: Collection
    """The changed collection."""
    change: ControlChange
    """How many texts the control changed, or how many pairs it left out."""
    left_out: frozenset[str] = frozenset()
    """Ids of documents that were left out."""


class Reader(NamedTuple):
    """How much of a document a neural ranker reads."""

    tokens: Tokens
    """The ranker's tokenizer and token limit."""
    text: str
    """Part of a document that it reads, such as ``title+text``."""


def reader_of(ranker: Ranker) -> Reader | None:
    """Return what a pipeline's last neural stage reads; None if there is none, or if unknown."""
    for stage in reversed(stages_of(ranker)):
        read_tokens = getattr(stage, "tokens", None)
        if callable(read_tokens):
            tokens = read_tokens()
            if not isinstance(tokens, Tokens):
                return None
            return Reader(tokens=tokens, text=str(getattr(stage, "text", "title+text")))
    return None


class TwinTexts:
    """The texts of a collection, which controls change.

    `rows` has the twins of each pair of groups, a row of two documents each. `family` is the number
    of each document's family, −1 for a document without a twin; `has_twin` says which have one.
    """

    def __init__(self, collection: Collection, rows: Sequence[Ints], *, near: float) -> None:
        self.collection = collection
        self.rows = rows
        self.near = near
        self.family = _families(collection, rows)
        self.has_twin = self.family >= 0

    def changed(self, name: str, reader: Reader | None) -> ChangedCollection:
        """Return the collection that a control makes of the raw one.

        `name` is that of the control. Only ``tokens`` has a `reader`: how much a ranker reads.
        """
        if reader is not None:
            return self._with_texts(self._texts_of_equal_tokens(reader))
        if name == "near-identical":
            return self._without_near_identical()
        docs = self.collection.docs
        if name == "length":
            return self._with_texts(self._texts_of_equal_words())
        if name == "boilerplate":
            return self._with_texts(without_opening(docs["text"]))
        return self._with_texts(docs["text"], self._titles_without_shared())

    def _titles_without_shared(self) -> pl.Series:
        """Return the titles; empty for a title that all members of a family share."""
        has_one_title = pl.col("title").n_unique().over(pl.Series(self.family)) == 1
        is_shared = has_one_title & pl.Series(self.has_twin)
        title = pl.when(is_shared).then(pl.lit("")).otherwise("title")
        return self.collection.docs.select(title.alias("title"))["title"]

    def _texts_of_equal_words(self) -> Iterator[str]:
        """Yield every text, cut to the number of words of its shortest twin."""
        texts = self.collection.docs["text"]
        sizes = words(texts).to_numpy()
        for text, size, shortest in zip(texts, sizes, self._shortest(sizes), strict=True):
            yield text if size <= shortest else " ".join(text.split()[:shortest])

    def _texts_of_equal_tokens(self, reader: Reader) -> Iterator[str]:
        """Yield every text, cut to as many tokens as the model reads of its shortest twin."""
        tokens, docs = reader.tokens, self.collection.docs
        uncut = self.collection.texts(reader.text).to_list()
        sizes = tokens.counts(uncut, "counting tokens")
        # A model does not read beyond its token limit, so a longer text counts as long as that.
        budgets = self._shortest(np.minimum(sizes, tokens.limit) if tokens.limit else sizes)
        longer = np.flatnonzero(self.has_twin & (sizes > budgets))
        # The character at which each of these texts is cut.
        cuts = tokens.ends([uncut[row] for row in longer], budgets[longer])
        cut_by_row = dict(zip(longer.tolist(), cuts, strict=True))
        has_title = reader.text == "title+text"
        for row, (title, text) in enumerate(docs.select("title", "text").iter_rows()):
            if row not in cut_by_row:
                yield text
                continue
            # The title comes first, with a space after it, and is not part of the text.
            start = len(title.strip()) + 1 if has_title and title.strip() else 0
            yield uncut[row][start : max(cut_by_row[row], start)]

    def _without_near_identical(self) -> ChangedCollection:
        """Leave out all twins of an origin if two of them have nearly the same text."""
        collection = self.collection
        alike = [
            rows[twin_likeness(collection, rows, self.near) > 0] for rows in self.rows if len(rows)
        ]
        alike_families = np.unique(self.family[np.concatenate([rows.ravel() for rows in alike])])
        is_left_out = np.isin(self.family, alike_families)
        ids = frozenset(collection.ids.filter(pl.Series(is_left_out)))
        docs = collection.docs.filter(pl.Series(~is_left_out))
        qrels = collection.qrels.filter(~pl.col("doc_id").is_in(list(ids)))
        change = ControlChange(
            outcome="changed",
            changed=len(alike_families),
            total=len(np.unique(self.family[self.has_twin])),
            unit="pairs",
            near=self.near,
        )
        return ChangedCollection(
            collection=Collection(docs, collection.queries, qrels),
            change=change,
            left_out=ids,
        )

    def _with_texts(
        self, texts: Iterable[str], titles: pl.Series | None = None
    ) -> ChangedCollection:
        """Return the collection with other texts, and other titles if there are any."""
        docs = self.collection.docs
        text = pl.Series("text", list(texts), dtype=pl.String)
        title = docs["title"] if titles is None else titles
        changed_count = int(((text != docs["text"]) | (title != docs["title"])).sum())
        collection = Collection(
            docs.with_columns(text, title), self.collection.queries, self.collection.qrels
        )
        change = ControlChange(outcome="changed", changed=changed_count, total=docs.height)
        return ChangedCollection(collection=collection, change=change)

    def _shortest(self, sizes: Ints) -> Ints:
        """Return the smallest size among each document and its twins."""
        table = pl.DataFrame({"family": self.family, "size": sizes})
        smallest = table.select(pl.col("size").min().over("family"))["size"].to_numpy()
        return np.where(self.has_twin, smallest, sizes)


def _families(collection: Collection, rows: Sequence[Ints]) -> Ints:
    """Return the number of each document's family: the versions of one origin.

    −1 for a document without a twin. `rows` has the twins of each pair of groups.
    """
    family = np.full(collection.docs.height, -1)
    if not rows:
        return family
    twins = np.unique(np.concatenate([rows_of_pair.ravel() for rows_of_pair in rows]))
    if len(twins):
        origin = collection.docs["origin"].gather(twins)
        family[twins] = origin.rank("dense").to_numpy().astype(np.int64) - 1
    return family
