"""What a collection holds, source by source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from ranktilt.auditing.audit import audit_provenance
from ranktilt.collection import Collection
from ranktilt.io.artifact import Result
from ranktilt.probes.base import others, reference_of
from ranktilt.probes.text_probes import CollectionStatistics, statistics


@dataclass(frozen=True)
class SourceCounts:
    """Documents of one source that are alike in something."""

    source: str
    judged: int
    """Named by a judgment, of whatever grade."""
    twins: int
    """With a twin in the reference; of the reference, in any other source."""
    duplicates: int
    """With the text of an earlier document of the source."""


@dataclass(frozen=True, eq=False)
class Description(
    Result, format="ranktilt-description", version=1, noun="a description", command="ranktilt data describe"
):
    """What `describe` found; immutable.

    Parameters
    ----------
    spec : mapping
        Where the collection is, and versions.
    reference : str
        The source whose twins are counted.
    statistics : CollectionStatistics
        Documents, words, empty texts and relevant documents of every source, and the queries.
    counts : tuple of SourceCounts
        Judged documents, twins and duplicates of every source.
    """

    spec: Mapping[str, Any]
    reference: str
    statistics: CollectionStatistics
    counts: tuple[SourceCounts, ...]


def describe(collection: Collection, *, reference: str | None = None) -> Description:
    """Count what each source of a collection holds: documents, words, judgments, twins, empty and duplicate texts.

    Parameters
    ----------
    collection : Collection
        Of any number of sources.
    reference : str, optional
        The source whose twins are counted: ``"human"`` where there is one, or else the first.

    Returns
    -------
    Description
        A row a source, and the queries.

    Raises
    ------
    UserError
        If the collection is empty, or the reference is no source.
    """
    first = reference_of(collection, reference, to="describe")
    paired = {name: collection.pairs(first, name) for name in others(collection, first)}
    twins = {name: pairs["b"].n_unique() for name, pairs in paired.items()}
    twins[first] = pl.concat([pairs["a"] for pairs in paired.values()]).n_unique() if paired else 0
    docs = collection.docs.select("source", "text", judged=pl.col("id").is_in(collection.qrels["doc_id"].implode()))
    counts = []
    for name in collection.sources:
        own = docs.filter(pl.col("source") == name)
        counts.append(SourceCounts(name, int(own["judged"].sum()), twins[name], own.height - own["text"].n_unique()))
    spec = {name: collection.spec[name] for name in ("path", "split") if name in collection.spec}
    provenance = audit_provenance(collection, [])
    spec |= {name: provenance[name] for name in ("ranktilt", "python", "packages", "inputs")}
    return Description(spec, first, statistics(collection), tuple(counts))
