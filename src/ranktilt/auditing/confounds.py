"""What else differs between two sources, beside who wrote them: shown with every verdict (MEASURES, sec. 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.groups import Groups
from ranktilt.auditing.null_distributions.twins import TwinPairs
from ranktilt.data.collection import Collection
from ranktilt.data.run import Run
from ranktilt.data.text.features import query_word_share
from ranktilt.data.text.quality import (
    NEAR_IDENTICAL,
    cut_off,
    identical,
    likeness,
    opening,
    words,
)

SIDED = ("words", "query words", "cut-off endings", "boilerplate openings", "truncated")
SAMPLE = 20_000
"""Pairs whose terms are compared: evenly spaced ones of a larger collection, so that no audit waits for them."""


class Confound(NamedTuple):
    """One thing in which the documents of two groups differ, or are too alike."""

    name: str
    a: str
    b: str
    value_a: float
    value_b: float
    """Words: mean per document. All others: shares in [0, 1]; both sides the same where pairs are counted."""
    number: int
    """Pairs found, where pairs are counted (near-identical ones among `SAMPLE` at most); documents of both sides
    otherwise."""
    run: str = ""
    """The ranker whose token limit cuts, for ``truncated``."""
    limit: int = 0
    """Its limit in tokens."""


def confounds(
    collection: Collection,
    groups: Groups,
    twins: TwinPairs,
    runs: Sequence[Run],
) -> list[Confound]:
    """Compare the texts of two sources, their pairs, and what each run's ranker cuts; nothing without texts."""
    if not (collection.docs["text"] != "").any():
        return []
    texts = collection.memo(("confounds", twins.pair), lambda: _of_texts(collection, groups, twins))
    a, b = twins.pair
    found = [*texts]
    for run in runs:
        for name, cut in run.truncated:
            share = cut["share"]
            if {a, b} <= set(share):
                members = [groups.code == groups.names.index(name) for name in twins.pair]
                documents = int(sum(is_member.sum() for is_member in members))
                over = Confound("truncated", a, b, float(share[a]), float(share[b]), documents)
                found.append(over._replace(run=name, limit=int(cut["limit"])))
    return found


def _of_texts(collection: Collection, groups: Groups, twins: TwinPairs) -> list[Confound]:
    """What does not depend on a run."""
    text = collection.docs["text"]
    members = [groups.code == groups.names.index(name) for name in twins.pair]
    found = [_sided("words", twins, words(text).to_numpy().astype(np.float64), members)]
    if collection.qrels.height:
        found.append(_sided("query words", twins, query_words(collection), members))
    found += [
        _sided(name, twins, flags.to_numpy().astype(np.float64), members)
        for name, flags in (
            ("cut-off endings", cut_off(text)),
            ("boilerplate openings", opening(text).is_not_null()),
        )
    ]
    if len(twins.rows):
        found += list(_paired(collection, twins))
    return found


def _sided(
    name: str,
    twins: TwinPairs,
    values: npt.NDArray[np.float64],
    members: list[npt.NDArray[np.bool_]],
) -> Confound:
    sides = [values[is_member & ~np.isnan(values)] for is_member in members]
    means = [float(side.mean()) if len(side) else np.nan for side in sides]
    a, b = twins.pair
    return Confound(name, a, b, means[0], means[1], sum(map(len, sides)))


def _paired(collection: Collection, twins: TwinPairs) -> Iterator[Confound]:
    chosen = np.linspace(0, len(twins.rows) - 1, min(len(twins.rows), SAMPLE)).astype(np.int64)
    (text, other), (one, two) = (
        [collection.docs[column].gather(twins.rows[:, side]) for side in (0, 1)]
        for column in ("text", "title")
    )
    for name, flags in (
        ("identical", identical(text, other).to_numpy()),
        ("near-identical", twin_likeness(collection, twins.rows[chosen]) == 1),
        ("same title", ((one == two) & (one != "")).to_numpy()),
    ):
        share = float(flags.mean())
        a, b = twins.pair
        yield Confound(name, a, b, share, share, int(flags.sum()))


def twin_likeness(
    collection: Collection, rows: npt.NDArray[np.int64], near: float = NEAR_IDENTICAL
) -> npt.NDArray[np.int64]:
    """Tell pairs of identical texts (2) and near-identical ones (1) from all others (0), as `likeness` does."""
    text = collection.docs["text"]
    return likeness(text.gather(rows[:, 0]), text.gather(rows[:, 1]), near)


def query_words(collection: Collection) -> npt.NDArray[np.float64]:
    """Compute the share of a query's words that each relevant document holds: shape (n_docs,); see `query_word_share`.

    Title and text are read, as rankers do.
    """
    texts = pl.DataFrame({"id": collection.ids, "text": collection.texts()})
    return query_word_share(texts, collection.queries, collection.qrels)
