"""Decisions of a language model, and counts of them by pair and by query.

The model chooses one document of each pair, in each of both orders. A pair is a protected and an
unprotected document. Their *origins* are the documents that they are versions of; pairs that share
an origin are not independent, so that errors are computed over origins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import orjson
import polars as pl

from ranktilt.auditing.pairwise.pairs import Kind, TwoGroups
from ranktilt.auditing.pairwise.result import PairTable, QueryChoices
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.pairwise import QueriesWithoutPair
from ranktilt.data.runs.run import codes
from ranktilt.errors import UserError, counted
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.two_way import Dyads

SCHEMA = {
    "query": pl.String,
    "kind": pl.String,
    "first": pl.String,
    "second": pl.String,
    "choice": pl.String,
    "reading": pl.String,
}
"""Columns of `Decisions.frame`."""
_PAIR = ("protected_origin", "unprotected_origin")
"""Columns that name a pair of documents by their origins."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Decisions:
    """The choices of a language model, or from a file."""

    frame: pl.DataFrame
    """Table with a row for each answer.

    The columns are ``query``, ``kind`` (``relevant`` or ``irrelevant``: whether both documents
    are), ``first`` and ``second`` (ids in the order of the prompt), ``choice`` (one of these ids,
    or null if an answer could not be read) and ``reading`` (the kind of answer).
    """
    sides: TwoGroups
    """Which documents are protected, and which are not."""
    model: str
    """Name of the language model that chose, or of the file of choices."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """How the choices were made."""
    notes: tuple[Note, ...] = ()
    """Notes on pairs and choices."""
    training_queries: frozenset[str] = frozenset()
    """Ids of queries that the model was trained on, as far as that is known."""

    def contents(self) -> bytes:
        """Return the choices as JSON lines, which `decision_file.read_decisions` reads."""
        return b"".join(
            orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
            for row in self.frame.iter_rows(named=True)
        )


def only_queries(decisions: Decisions, queries: Sequence[str]) -> Decisions:
    """Keep the choices of these queries; a note counts the queries without choices."""
    frame = decisions.frame.filter(pl.col("query").is_in(list(queries)))
    if not frame.height:
        raise UserError(
            f"no pair to count: {counted(len(queries), 'query has', 'queries have')} none"
        )
    queries_with_choices = set(frame["query"])
    lacking = sum(query not in queries_with_choices for query in queries)
    notes = decisions.notes
    if lacking:
        notes = (*notes, QueriesWithoutPair(lacking=lacking, queries=len(queries)))
    return replace(decisions, frame=frame, notes=notes)


# ---- counts -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Counts:
    """Counts of each pair as arrays of shape (n_pairs,); `QueryChoices` has their sums."""

    pairs: Floats
    """1 for a pair that was asked about in both orders, else 0."""
    units: Floats
    """What shares are shares of: `pairs`; with the rule ``each``, the number of answers."""
    protected: Floats
    """Choices of the protected document."""
    unprotected: Floats
    """Choices of the other document."""
    inconsistent: Floats
    """1 for a pair whose two orders disagree, else 0."""
    unparsed: Floats
    """1 for a pair with an unreadable answer; with the rule ``each``, the number of these."""
    readable: Floats
    """Number of answers that choose a document."""
    first: Floats
    """Number of answers that choose the document shown first."""

    @property
    def by_name(self) -> dict[str, Floats]:
        """The arrays by the names of their fields."""
        return {name: getattr(self, name) for name in _COUNT_NAMES}


_COUNT_NAMES = tuple(count.name for count in fields(Counts))
"""Names of the fields of `Counts`."""


def count_choices(
    decisions: Decisions, collection: Collection, kind: Kind, count_rule: str
) -> pl.DataFrame:
    """Count the choices in each pair of one kind.

    `count_rule` is ``both-agree``, to count pairs whose answers in both orders agree, or ``each``,
    to count every answer. Returns a row for each pair: the query, its text, the origins of both
    documents, and the fields of `Counts`.
    """
    # The side of the document shown first: 1 protected, 0 unprotected.
    code = pl.DataFrame({"first": collection.ids, "code": decisions.sides.code})
    origins = collection.docs.select("id", "origin")
    texts = collection.queries.select(
        "id", query_text=pl.when(pl.col("text") != "").then("text").otherwise("id")
    )
    answers = (
        decisions.frame.filter(pl.col("kind") == kind)
        .join(code, on="first", how="left", maintain_order="left")
        .join(texts, left_on="query", right_on="id", how="left", maintain_order="left")
        # Null if no document is chosen.
        .with_columns(is_first_chosen=pl.col("choice") == pl.col("first"))
    )
    is_protected_first = pl.col("code") == 1
    by_pair = (
        answers.with_columns(
            is_protected_chosen=pl.col("is_first_chosen") == is_protected_first,
            protected_id=pl.when(is_protected_first).then("first").otherwise("second"),
            unprotected_id=pl.when(pl.col("code") == 0).then("first").otherwise("second"),
        )
        .group_by("query_text", "query", "protected_id", "unprotected_id", maintain_order=True)
        .agg(
            answers=pl.len(),
            readable=pl.col("is_protected_chosen").count(),
            protected=pl.col("is_protected_chosen").sum(),
            first=pl.col("is_first_chosen").sum(),
        )
    )
    for id_column, origin in zip(("protected_id", "unprotected_id"), _PAIR, strict=True):
        by_pair = by_pair.join(
            origins.rename({"origin": origin}),
            left_on=id_column,
            right_on="id",
            maintain_order="left",
        )
    # A pair has up to two answers, one for each order of its documents. With the rule "each" every
    # answer counts by itself; with "both-agree" a pair counts, if there are answers in both orders.
    readable, protected = pl.col("readable"), pl.col("protected")
    has_both_orders = pl.col("answers") == 2
    has_both_choices = has_both_orders & (readable == 2)
    if count_rule == "each":
        counts = {
            "units": pl.col("answers"),
            "protected": protected,
            "unprotected": readable - protected,
            "unparsed": pl.col("answers") - readable,
        }
    else:
        counts = {
            "units": has_both_orders,
            "protected": has_both_choices & (protected == 2),
            "unprotected": has_both_choices & (protected == 0),
            "unparsed": has_both_orders & (readable < 2),
        }
    return by_pair.select(
        "query_text",
        "query",
        *_PAIR,
        "readable",
        "first",
        pairs=has_both_orders,
        inconsistent=has_both_choices & (protected == 1),
        **counts,
    )


def query_choices(kind: Kind, table: pl.DataFrame) -> Iterator[QueryChoices]:
    """Yield the sums of the counts over the pairs of each query.

    Queries with the same text count as one query, under the id of the first. `table` is that of
    `count_choices`.
    """
    sums = table.group_by("query_text", maintain_order=True).agg(
        pl.col("query").first(), pl.col(_COUNT_NAMES).sum()
    )
    for row in sums.drop("query_text").iter_rows(named=True):
        yield QueryChoices(kind=kind, **row)


def pair_table(kind: Kind, table: pl.DataFrame) -> PairTable:
    """Return the choices in each pair; queries with the same text have the id of the first.

    `table` is that of `count_choices`.
    """
    query = table.select(pl.col("query").first().over("query_text"))["query"]
    return PairTable(
        kind=kind,
        queries=tuple(query),
        protected_origins=tuple(table["protected_origin"]),
        unprotected_origins=tuple(table["unprotected_origin"]),
        protected=table["protected"].cast(pl.Float64).to_numpy(),
        unprotected=table["unprotected"].cast(pl.Float64).to_numpy(),
    )


def count_arrays(table: pl.DataFrame) -> tuple[Counts, Dyads]:
    """Return the counts of each pair, and the numbers of its query and its documents' origins.

    `table` is that of `count_choices`.
    """
    origin_ids = pl.concat([table[column] for column in _PAIR])
    origins = origin_ids.rank("dense").to_numpy().astype(np.int64) - 1
    protected, unprotected = origins.reshape(2, -1)
    query = codes(table["query_text"], table["query_text"].unique(maintain_order=True))
    counts = {name: table[name].cast(pl.Float64).to_numpy() for name in _COUNT_NAMES}
    return Counts(**counts), Dyads(query, protected, unprotected)
