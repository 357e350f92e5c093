"""What a collection holds, source by source, as a result of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ranktilt.auditing.audit import audit_provenance
from ranktilt.collection import Collection
from ranktilt.datasets.label_remarks import label_remarks
from ranktilt.datasets.stated_sources import source_hint
from ranktilt.errors import UserError
from ranktilt.io.artifact import Result
from ranktilt.probes.text_probes import CollectionStatistics, statistics


@dataclass(frozen=True, eq=False)
class Description(
    Result,
    format="ranktilt-description",
    version=1,
    noun="a description",
    command="ranktilt data describe",
):
    """What `describe` found; immutable.

    Parameters
    ----------
    spec : mapping
        Where the collection is, and versions.
    statistics : CollectionStatistics
        Documents, words, judgments, twins, empty and duplicate texts of every source, and the
        queries.
    notes : tuple of str
        Where no document has a source, what could name it.
    """

    spec: Mapping[str, Any]
    statistics: CollectionStatistics
    notes: tuple[str, ...] = ()


def describe(collection: Collection) -> Description:
    """Count what each source of a collection holds: documents, words, judgments, twins, empty and duplicate texts.

    Parameters
    ----------
    collection : Collection
        Of up to 50 sources.

    Returns
    -------
    Description
        A row a source, one of the documents without a source where there are any, and the queries.

    Raises
    ------
    UserError
        If the collection holds no document, or names too many sources for a table.
    """
    if not collection.docs.height:
        raise UserError("the collection holds no document to describe")
    collection.require_few_sources()
    spec = {name: collection.spec[name] for name in ("path", "split") if name in collection.spec}
    provenance = audit_provenance(collection, [])
    spec |= {name: provenance[name] for name in ("ranktilt", "python", "packages", "inputs")}
    notes = [remark.text for remark in label_remarks("source", collection.docs["source"])]
    notes += [] if collection.sources else [source_hint(collection)]
    return Description(spec, statistics(collection), tuple(notes))
