"""Whether either side of a collection is easier to search: each side is ranked alone.

A *source* is the author of documents, and the *reference* the source that others are compared with.
The two *sides* of a comparison are the reference's documents and those of one other source. Their
effectiveness is compared query by query. The sides are *equivalent* if the difference is shown to
be smaller than a margin, by two one-sided tests (TOST); "no difference is shown" would not be
enough.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ranktilt.auditing.checks.equivalence import Equivalence, EquivalenceTask, equivalence_rows
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.judged_run import JudgedRun, group_values
from ranktilt.auditing.judgments import Judgments
from ranktilt.data.collection import Collection
from ranktilt.data.faults.check_limits import EQUIVALENCE
from ranktilt.data.labels.group_names import label_text
from ranktilt.data.runs.run import codes
from ranktilt.errors import UserError, unknown_name
from ranktilt.field_checks import is_number, printed
from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.candidates import check_reranked

ALPHA = 0.05
"""Default significance level of the tests."""


def split_by_source(
    collection: Collection, reference: str, source: str
) -> tuple[Collection, Collection]:
    """Split a collection into two with the same content, each written by one source.

    Both hold all queries, the documents of their source that have a twin (the same origin) on the
    other side, and the judgments of these documents. Without that restriction, the side with more
    documents would be harder to search, and a collection that was rewritten in part could not be
    compared.
    """
    reference_docs = collection.docs.filter(pl.col("source") == reference)
    source_docs = collection.docs.filter(pl.col("source") == source)
    originals = reference_docs.join(source_docs, on="origin", how="semi", maintain_order="left")
    versions = source_docs.join(reference_docs, on="origin", how="semi", maintain_order="left")
    return (
        only_documents(collection, originals, reference),
        only_documents(collection, versions, source),
    )


def only_documents(collection: Collection, docs: pl.DataFrame, group: str) -> Collection:
    """Return a collection with only some documents, all queries, and these documents' judgments.

    `group` names the documents in the collection's spec.
    """
    qrels = collection.qrels.join(
        docs, left_on="doc_id", right_on="id", how="semi", maintain_order="left"
    )
    return Collection(docs, collection.queries, qrels, {**collection.spec, "only": group})


def only_group(collection: Collection, group: str = "human", by: str = "source") -> Collection:
    """Return the documents of one group to search alone, with all queries and their judgments.

    `by` is the column of the groups.
    """
    labels = collection.docs[by].cast(pl.String)
    known_labels = labels.unique().drop_nulls()
    label = label_text(group, by, known_labels.to_list())
    group_collection = only_documents(collection, collection.docs.filter(labels == label), group)
    if not group_collection.docs.height:
        raise unknown_name(by, group, known_labels.sort())
    return group_collection


def _check_limits(margin: float, alpha: float) -> None:
    """Refuse a margin or a level out of range."""
    if not is_number(margin) or not 0 < margin < 100:
        raise UserError(
            f"expected a margin of equivalence above 0 and below 100 points, such as "
            f"{EQUIVALENCE:g}, got {printed(margin)}"
        )
    if not is_number(alpha) or not 0 < alpha < 0.5:
        raise UserError(
            f"expected an alpha above 0 and below 0.5, such as {ALPHA:g}, got {printed(alpha)}"
        )


def equivalences(
    collection: Collection,
    rankers: Sequence[Ranker],
    measures: Sequence[Measure],
    *,
    reference: str,
    sources: Sequence[str],
    margin: float = EQUIVALENCE,
    alpha: float = ALPHA,
) -> tuple[Equivalence, ...]:
    """Rank each side alone with each ranker, and compare effectiveness query by query.

    Parameters
    ----------
    collection : Collection
        Documents of all sources.
    rankers : sequence of Ranker
        The rankers.
    measures : sequence of Measure
        Measures of effectiveness.
    reference : str
        The reference.
    sources : sequence of str
        The sources to compare with it.
    margin : float, optional
        Largest difference that would not matter, in points (effectiveness is 0 to 100).
    alpha : float, optional
        Significance level of the tests of equivalence (TOST: two one-sided tests) and of
        difference.

    Returns
    -------
    tuple of Equivalence
        A row for each source, ranker and measure, in this order. A source without twins has none.
    """
    _check_limits(margin, alpha)
    for ranker in rankers:
        ranker.check()
    ranked_sides = _RankedSides(measures, collection.queries_with_judgments["id"])
    tasks = list[EquivalenceTask]()
    for source in sources:
        sides = split_by_source(collection, reference, source)
        pairs = sides[0].docs["origin"].n_unique()
        documents = collection.docs.filter(pl.col("source").is_in([reference, source])).height
        left_out = documents - sum(side.docs.height for side in sides)
        for ranker in rankers if pairs else ():
            side_values = [ranked_sides.values(ranker, side) for side in sides]
            for measure, values_a, values_b in zip(measures, *side_values, strict=True):
                task = EquivalenceTask(
                    run=repr(ranker),
                    measure=measure,
                    a=reference,
                    b=source,
                    values_a=values_a,
                    values_b=values_b,
                    pairs=pairs,
                    left_out=left_out,
                )
                tasks.append(task)
    return equivalence_rows(tasks, margin=margin / 100, alpha=alpha)


class _RankedSides:
    """Effectiveness of rankers on single sides; each side is ranked once for all comparisons."""

    def __init__(self, measures: Sequence[Measure], queries: pl.Series) -> None:
        self.measures, self.queries = measures, queries
        self._values = dict[tuple[str, tuple[str, ...]], Floats]()

    def values(self, ranker: Ranker, side: Collection) -> Floats:
        """Return the value of each measure (row) for each query (column).

        NaN for a query to which nothing on the side is relevant.
        """
        key = repr(ranker), tuple(side.ids)
        if key not in self._values:
            self._values[key] = self._rank(ranker, side)
        return self._values[key]

    def _rank(self, ranker: Ranker, side: Collection) -> Floats:
        """Rank one side and measure it, with the columns in the order of all queries."""
        groups = grouping(side, None)
        judgments = Judgments.from_collection(side, groups)
        run = check_reranked(ranker.rank(side), candidates=None, ranker=ranker)
        judged_run = JudgedRun.from_run(run, side, judgments)
        # The only group is all documents.
        values = group_values(judged_run, self.measures, groups, "expected")[:, 0]
        columns = codes(self.queries, pl.Series(judgments.queries, dtype=pl.String))
        # Code -1, a query without judgments on this side, takes the last column: NaN.
        return np.pad(values, ((0, 0), (0, 1)), constant_values=np.nan)[:, columns]
