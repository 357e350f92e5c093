"""Confounds: differences between the texts of two sources other than who wrote them.

Twins are two versions of one document, one of each source. Confounds are shown with every verdict;
see docs/measures/confounds-and-controls.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.groups import Groups
from ranktilt.auditing.null_distributions.twins import TwinPairs
from ranktilt.data.collection import Collection
from ranktilt.data.faults.text_flags import text_flags
from ranktilt.data.faults.twin_likeness import twin_likeness
from ranktilt.data.runs.run import Run
from ranktilt.data.text.features import query_word_share
from ranktilt.data.text.quality import identical
from ranktilt.data.text_facts import stored_facts
from ranktilt.data.texts import DOCUMENTS_AT_ONCE, release_texts

SIDED = ("words", "query words", "cut-off endings", "boilerplate openings", "truncated")
"""Confounds that have a value for each group; all others have a share of the pairs of twins."""
SAMPLE = 20_000
"""Most pairs of twins whose terms are compared, because it takes long.

If there are more, evenly spaced pairs are taken.
"""


class Confound(NamedTuple):
    """One respect in which the documents of two groups differ, or are too alike."""

    name: str
    """Name of the difference."""
    a: str
    """The first group."""
    b: str
    """The second group."""
    value_a: float
    """Value of the first group: mean words of a document, or a share from 0 to 1."""
    value_b: float
    """Value of the second group; the same as `value_a` for a share of pairs."""
    number: int
    """Number of documents of both groups, or of pairs that are alike.

    Near-identical pairs are counted among at most `SAMPLE` pairs.
    """
    run: str = ""
    """For ``truncated``: the ranker whose token limit cuts documents."""
    limit: int = 0
    """For ``truncated``: the token limit."""


def confounds(
    collection: Collection,
    groups: Groups,
    twins: TwinPairs,
    runs: Sequence[Run],
) -> list[Confound]:
    """Compare the texts of two sources, those of twins, and how many each ranker truncates.

    Returns an empty list if the documents have no texts.
    """
    if not (collection.docs["text"] != "").any():
        return []
    # A command may audit one collection several times; its texts are compared once.
    text_confounds = collection.memo(
        ("confounds", twins.pair), lambda: _text_confounds(collection, groups, twins)
    )
    a, b = twins.pair
    document_count = sum(int(is_member.sum()) for is_member in _members(groups, twins))
    truncations = []
    for run in runs:
        for name, truncated in run.truncated:
            share = truncated["share"]
            if {a, b} <= set(share):
                truncation = Confound(
                    name="truncated",
                    a=a,
                    b=b,
                    value_a=float(share[a]),
                    value_b=float(share[b]),
                    number=document_count,
                    run=name,
                    limit=int(truncated["limit"]),
                )
                truncations.append(truncation)
    return [*text_confounds, *truncations]


def _members(groups: Groups, twins: TwinPairs) -> list[npt.NDArray[np.bool_]]:
    """Return for both groups of `twins` which documents are members."""
    return [groups.code == groups.names.index(name) for name in twins.pair]


def _text_confounds(collection: Collection, groups: Groups, twins: TwinPairs) -> list[Confound]:
    """Compare the texts of both groups, and the two texts of each pair of twins."""
    members = _members(groups, twins)
    flags = text_flags(collection)
    word_counts = flags["words"].to_numpy().astype(np.float64)
    differences = [_compare_means("words", twins, word_counts, members)]
    if collection.qrels.height:
        differences.append(_compare_means("query words", twins, query_words(collection), members))
    for name, column in (("cut-off endings", "cut_off"), ("boilerplate openings", "opening")):
        has_property = flags[column].to_numpy().astype(np.float64)
        differences.append(_compare_means(name, twins, has_property, members))
    if len(twins.rows):
        differences += _likenesses(collection, twins)
    return differences


def _compare_means(
    name: str,
    twins: TwinPairs,
    values: npt.NDArray[np.float64],
    members: list[npt.NDArray[np.bool_]],
) -> Confound:
    """Compare the means of a property over the documents of each group.

    `values` has the property of each document, NaN where it is undefined; the mean of a property
    that a document has or not is a share.
    """
    values_of_groups = [values[is_member & ~np.isnan(values)] for is_member in members]
    mean_a, mean_b = (
        float(group_values.mean()) if len(group_values) else np.nan
        for group_values in values_of_groups
    )
    a, b = twins.pair
    document_count = sum(map(len, values_of_groups))
    return Confound(name=name, a=a, b=b, value_a=mean_a, value_b=mean_b, number=document_count)


def _likenesses(collection: Collection, twins: TwinPairs) -> Iterator[Confound]:
    """Count the pairs of twins whose texts or titles are the same, or nearly the same."""
    pair_count = len(twins.rows)
    sampled = np.linspace(0, pair_count - 1, min(pair_count, SAMPLE)).astype(np.int64)
    rows_a, rows_b = twins.rows[:, 0], twins.rows[:, 1]
    text, title = collection.docs["text"], collection.docs["title"]
    title_a, title_b = title.gather(rows_a), title.gather(rows_b)
    a, b = twins.pair
    is_identical = _are_identical(text, twins.rows)
    for name, flags in (
        ("identical", is_identical),
        ("near-identical", twin_likeness(collection, twins.rows[sampled]) == 1),
        ("same title", ((title_a == title_b) & (title_a != "")).to_numpy()),
    ):
        share = float(flags.mean())
        yield Confound(name=name, a=a, b=b, value_a=share, value_b=share, number=int(flags.sum()))


def _are_identical(text: pl.Series, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which pairs of rows have the same text; only some texts are in memory at a time."""
    flags = np.empty(len(rows), np.bool_)
    for start in range(0, len(rows), DOCUMENTS_AT_ONCE):
        pairs = rows[start : start + DOCUMENTS_AT_ONCE]
        of_pairs = identical(text.gather(pairs[:, 0]), text.gather(pairs[:, 1]))
        flags[start : start + len(pairs)] = of_pairs.to_numpy()
        release_texts()
    return flags


def query_words(collection: Collection) -> npt.NDArray[np.float64]:
    """Return the share of a query's words that occur in each relevant document.

    Title and text are read, as rankers do. Returns an array of the shape (n_docs,), with the mean
    over the queries that a document is relevant to; NaN for a document that is relevant to none.
    """

    def find_shares() -> pl.DataFrame:
        texts = pl.DataFrame({"id": collection.ids, "text": collection.texts()})
        shares = query_word_share(texts, collection.queries, collection.qrels)
        return pl.DataFrame({"share": shares})

    tables = (
        collection.docs.select("id"),
        collection.queries.select("id", "text"),
        collection.qrels.select("query_id", "doc_id", "grade"),
    )
    rows = [table.hash_rows().to_numpy().tobytes() for table in tables]
    facts = stored_facts(collection, "query-words", find_shares, inputs=rows)
    return facts["share"].to_numpy()
