"""Whether either side of a collection is easier to search: each ranked alone, query by query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ranktilt.auditing.effects import Equivalence
from ranktilt.auditing.equivalence import EquivalenceTask, equivalence_rows
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.judged_run import JudgedRun, group_values
from ranktilt.auditing.judgments import Judgments
from ranktilt.data.collection import Collection
from ranktilt.data.faults.check_limits import EQUIVALENCE
from ranktilt.data.labels.group_names import label_text
from ranktilt.data.runs.run import codes
from ranktilt.errors import UserError, unknown
from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.candidates import check_reranked

ALPHA = 0.05
"""Level of the tests."""


def split_by_source(
    collection: Collection, reference: str, source: str
) -> tuple[Collection, Collection]:
    """Split a collection into two with the same content, each written by one source.

    Both hold all queries, the documents of their source that have a twin on the other side, and the
    judgments of these. Without that restriction the side with more documents would be the harder
    one to search, and a collection of which only a part was rewritten would say nothing.
    """
    of_reference = collection.docs.filter(pl.col("source") == reference)
    of_source = collection.docs.filter(pl.col("source") == source)
    originals = of_reference.join(of_source, on="origin", how="semi", maintain_order="left")
    versions = of_source.join(of_reference, on="origin", how="semi", maintain_order="left")
    return alone(collection, originals, reference), alone(collection, versions, source)


def alone(collection: Collection, docs: pl.DataFrame, source: str) -> Collection:
    """Return a collection with only some documents, all queries, and these documents' judgments.

    Its spec names them by `source`.
    """
    judged = collection.qrels.join(
        docs, left_on="doc_id", right_on="id", how="semi", maintain_order="left"
    )
    return Collection(docs, collection.queries, judged, {**collection.spec, "only": source})


def only_group(mixed: Collection, reference: str = "human", by: str = "source") -> Collection:
    """Return the reference's documents to search alone, with all queries and their judgments."""
    labels = mixed.docs[by].cast(pl.String)
    label = label_text(reference, by, labels.unique().drop_nulls().to_list())
    collection = alone(mixed, mixed.docs.filter(labels == label), reference)
    if not collection.docs.height:
        raise unknown(by, reference, labels.unique().drop_nulls().sort())
    return collection


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
    """Rank each source alone with each ranker, and compare them query by query.

    The rows come by source, ranker and measure. Equivalence is shown where `tost_p` is below
    `alpha`, a difference where the corrected p is; `margin` is in points.
    """
    if not 0 < margin < 100:
        raise UserError(
            f"expected a margin of equivalence above 0 and below 100 points, such as "
            f"{EQUIVALENCE:g}, got {margin:g}"
        )
    if not 0 < alpha < 0.5:
        raise UserError(
            f"expected an alpha above 0 and below 0.5, such as {ALPHA:g}, got {alpha:g}"
        )
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
            values = [ranked_sides.values(ranker, side) for side in sides]
            for measure, values_a, values_b in zip(measures, *values, strict=True):
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
    """Values of rankers on one side alone; a side that several comparisons share is ranked once."""

    def __init__(self, measures: Sequence[Measure], queries: pl.Series) -> None:
        self.measures, self.queries = measures, queries
        self._values = dict[tuple[str, tuple[str, ...]], Floats]()

    def values(self, ranker: Ranker, side: Collection) -> Floats:
        """Return the values of all queries, one row per measure.

        NaN where nothing is relevant.
        """
        key = repr(ranker), tuple(side.ids)
        if key not in self._values:
            self._values[key] = self._ranked(ranker, side)
        return self._values[key]

    def _ranked(self, ranker: Ranker, side: Collection) -> Floats:
        """Rank one side and measure it, with the columns in the order of all queries."""
        groups = grouping(side, None)
        judgments = Judgments.from_collection(side, groups)
        run = check_reranked(ranker.rank(side), None, ranker)
        judged_run = JudgedRun.from_run(run, side, judgments)
        values = group_values(judged_run, self.measures, groups, "expected")[:, 0]
        column = codes(self.queries, pl.Series(judgments.queries, dtype=pl.String))
        # Code -1, a query without judgments on this side, takes the last column: NaN.
        return np.pad(values, ((0, 0), (0, 1)), constant_values=np.nan)[:, column]
