"""A paper's table of texts: for each query a human document and its LLM versions.

A *source* is who wrote documents; the first one is usually human. *Twins* are a document of the
first source and its version in another, here both relevant to a query; they are the two *sides* of
a comparison. The queries are chosen by what they contribute to Relative Δ, unless a user names
them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import isnan
from typing import Any, TypeGuard

import numpy as np
import polars as pl

from ranktilt.auditing.breakdown import contributions
from ranktilt.auditing.result import Audit
from ranktilt.data.collection import Collection
from ranktilt.errors import UserError, counted, unknown_name
from ranktilt.measures.printing import signed
from ranktilt.reporting.document import Cell, Panels, Row, Table, text_column
from ranktilt.reporting.layouts.layout import layouts
from ranktilt.reporting.layouts.names import dataset_name, generator
from ranktilt.reporting.layouts.results import made_by
from ranktilt.reporting.numbers import DASH
from ranktilt.reporting.provenance import folder
from ranktilt.reporting.reload import LoadedAudit, LoadedSourceAudits

PAIRS = 2
"""Number of queries that are chosen where a user names none."""
_QueryDoc = tuple[str, str]
"""Ids of a query and of a document of the first source that is relevant to it."""


@dataclass(frozen=True, kw_only=True)
class _Rewrites:
    """One source compared with the first: the audit of the two, and the relevant twins."""

    audit: Audit
    """Audit of the two sources."""
    collection: Collection
    """Collection that was audited."""
    a: str
    """The first source."""
    b: str
    """The other source."""

    @cached_property
    def twins(self) -> dict[_QueryDoc, str]:
        """Id of the version in `b` of each document of `a`, where both are relevant to a query.

        Twins with the highest sum of grades come first.
        """
        judged = self.collection.qrels.filter(pl.col("grade") > 0).with_row_index("row")
        pairs = self.collection.pairs(self.a, self.b)
        with_twins = judged.join(
            pairs, left_on="doc_id", right_on="a", how="inner", maintain_order="left"
        )
        judged_twins = judged.select("query_id", b="doc_id", twin_grade="grade")
        both_judged = with_twins.join(
            judged_twins, on=["query_id", "b"], how="inner", maintain_order="left"
        )
        rows = both_judged.sort(
            pl.col("grade") + pl.col("twin_grade"),
            "row",
            descending=[True, False],
            maintain_order=True,
        )
        twins: dict[_QueryDoc, str] = {}
        for query, doc, twin in rows.select("query_id", "doc_id", "b").iter_rows():
            twins.setdefault((query, doc), twin)
        return twins

    @cached_property
    def points(self) -> dict[str, float]:
        """Each query's contribution to Relative Δ in points, added up over the rankers.

        The contributions of all queries to one ranker's Relative Δ sum to it.
        """
        audit = self.audit
        measure = audit.primary_measure
        points_of_rankers = np.stack(
            [contributions(audit, run, measure, a=self.a, b=self.b) for run in audit.runs]
        )
        # A ranker that retrieves nothing relevant has no Relative Δ.
        has_tilt = ~np.isnan(points_of_rankers).all(axis=1)
        totals = points_of_rankers[has_tilt].sum(axis=0).tolist()
        queries_and_points = zip(audit.queries, totals, strict=True)
        return {query: points for query, points in queries_and_points if not isnan(points)}

    def text(self, doc: str) -> str:
        """Return the text of a document."""
        return str(self.collection.docs.filter(pl.col("id") == doc)["text"][0])


@dataclass(frozen=True, kw_only=True)
class _AllRewrites:
    """All other sources of a collection, each compared with the first.

    They are from one audit of all, or from one audit of each.
    """

    sides: tuple[_Rewrites, ...]
    """Each other source."""

    @classmethod
    def from_audits(cls, audits: Sequence[LoadedAudit]) -> _AllRewrites:
        """Collect the sources of audits that were loaded with their collection."""
        first_source = audits[0].audit.tilted_pairs[0][0]
        sides: dict[str, _Rewrites] = {}
        for loaded in audits:
            if loaded.collection is None:
                continue
            for a, b in loaded.audit.tilted_pairs:
                if a == first_source:
                    sides[b] = _Rewrites(audit=loaded.audit, collection=loaded.collection, a=a, b=b)
        return cls(sides=tuple(sides.values()))

    @cached_property
    def docs_by_query(self) -> dict[str, list[_QueryDoc]]:
        """Documents to choose from for each query: those that most sources have a version of."""
        version_counts = Counter[_QueryDoc]()
        for side in self.sides:
            version_counts.update(side.twins.keys())
        docs = defaultdict[str, list[_QueryDoc]](list)
        for query, doc in version_counts:
            docs[query].append((query, doc))
        return {
            query: _with_most_versions(query_docs, version_counts)
            for query, query_docs in docs.items()
        }

    @cached_property
    def points(self) -> dict[str, float]:
        """Each query's contribution to Relative Δ, added up over sources and rankers."""
        points = defaultdict[str, float](float)
        for side in self.sides:
            for query, value in side.points.items():
                points[query] += value
        return points

    @property
    def strongest(self) -> list[str]:
        """The queries that contribute most, and whose document has a version in every source."""
        queries = [query for query in self.points if self._is_in_every_source(query)]
        return sorted(queries, key=lambda query: -abs(self.points[query]))[:PAIRS]

    def _is_in_every_source(self, query: str) -> bool:
        """Tell whether a query's first document has a version in every source."""
        if query not in self.docs_by_query:
            return False
        query_doc = self.docs_by_query[query][0]
        return all(query_doc in side.twins for side in self.sides)

    def texts(self, query: str) -> Iterator[str]:
        """Yield the text of a query's first document, and of its version in each other source.

        A dash for a source that has no relevant version.
        """
        query_doc = self.docs_by_query[query][0]
        _, doc = query_doc
        yield self.sides[0].text(doc)
        for side in self.sides:
            yield side.text(side.twins[query_doc]) if query_doc in side.twins else DASH


def _with_most_versions(
    docs: Sequence[_QueryDoc], version_counts: Mapping[_QueryDoc, int]
) -> list[_QueryDoc]:
    """Return the documents that have a version in the most sources."""
    most = max(version_counts[doc] for doc in docs)
    return [doc for doc in docs if version_counts[doc] == most]


def has_pairs(audits: Sequence[LoadedAudit]) -> bool:
    """Tell whether some query has a relevant document with relevant versions in all sources."""
    return bool(_AllRewrites.from_audits(audits).strongest)


def of_collections(results: Sequence[object]) -> list[list[LoadedAudit]]:
    """Group the audits whose texts can be shown by their collection.

    These are judged audits by source that were loaded with their collection.
    """
    groups = defaultdict[str, list[LoadedAudit]](list)
    for index, result in enumerate(_single_results(results)):
        if _has_texts(result):
            groups[_collection_key(result.audit.spec, index)].append(result)
    return list(groups.values())


def _single_results(results: Sequence[object]) -> Iterator[object]:
    """Yield the results, and for an audit of several sources the audit of each."""
    for result in results:
        if isinstance(result, LoadedSourceAudits):
            yield from result.parts
        else:
            yield result


def _has_texts(result: object) -> TypeGuard[LoadedAudit]:
    """Tell whether a result is a judged audit by source that was loaded with its collection."""
    if not isinstance(result, LoadedAudit) or not result.collection:
        return False
    return result.audit.spec.get("by") == "source" and bool(result.audit.tilts)


def _collection_key(spec: Mapping[str, Any], index: int) -> str:
    """Return the key by which an audit is grouped with those of its collection.

    Audits of single sources of one folder belong together. Any other audit is alone, under its
    index among the results.
    """
    collection = spec.get("collection", {})
    path = collection.get("path") if collection.get("without_sources") else None
    return str(index) if path is None else f"at {path}"


def chosen_texts(
    audits: Sequence[LoadedAudit], name: str, *, queries: Sequence[str] = ()
) -> Panels:
    """Return the table of texts of a layout, with a panel for each query.

    A panel has the texts of a document and of its versions in every source, side by side. The
    audits are of one collection, `name` is the layout's, and `queries` are ids of queries that a
    user named.
    """
    rewrites = _AllRewrites.from_audits(audits)
    first, sources = rewrites.sides[0], [side.b for side in rewrites.sides]
    shown_queries = rewrites.strongest
    if queries:
        shown_queries = _checked_queries(queries, rewrites.docs_by_query, first.collection)
    if not shown_queries:
        raise UserError(
            f"{name}: no query has a relevant pair of {first.a} and {' and '.join(sources)}"
        )
    columns = tuple(map(text_column, _column_titles(first.a, sources)))
    query_texts = dict(first.collection.queries.select("id", "text").iter_rows())
    tables = []
    for query in shown_queries:
        row = Row(tuple(map(Cell, rewrites.texts(query))))
        tables.append(Table(f"Query: {query_texts[query]}", columns, (row,)))
    commands = chain.from_iterable(made_by(side.audit.spec) for side in rewrites.sides)
    return Panels(
        name=name,
        caption=_caption(first.audit, name, sources),
        layout=f"Layout: {layouts()[name].paper}.",
        tables=tuple(tables),
        notes=tuple(_notes(rewrites, shown_queries, were_named=bool(queries))),
        origins=tuple(dict.fromkeys(commands)),
    )


def _column_titles(first_source: str, sources: Sequence[str]) -> list[str]:
    """Return the titles of the columns: those of Dai et al. where the first source is human."""
    if first_source != "human":
        return [first_source, *sources]
    if len(sources) == 1:
        return ["Human-Written", "LLM-Generated"]
    return ["Human-Written", *(f"LLM-Generated, {source}" for source in sources)]


def _caption(audit: Audit, name: str, sources: Sequence[str]) -> str:
    """Return the caption: the layout's title, the collection, and the models that wrote texts."""
    models = []
    for model, degree in map(generator, sources):
        models.append(f"{model} at temperature {degree}" if degree else model)
    context = (dataset_name(folder(audit.spec)), f"LLM text by {' and '.join(models)}")
    return f"{layouts()[name].title}. {', '.join(filter(None, context))}."


def _checked_queries(
    queries: Sequence[str], docs_by_query: Mapping[str, object], collection: Collection
) -> list[str]:
    """Return the queries that a user named, each once; `UserError` where one has no texts."""
    for query in queries:
        if query not in collection.queries["id"]:
            raise unknown_name("query", query, collection.queries_with_judgments["id"].to_list())
        if query not in docs_by_query:
            raise UserError(
                f"query {query!r} has no pair of texts that are both relevant to it; omit it"
            )
    return list(dict.fromkeys(queries))


def _notes(
    rewrites: _AllRewrites, shown_queries: Sequence[str], *, were_named: bool
) -> Iterator[str]:
    """Say how the queries were chosen, unless a user named them, and what each contributes."""
    audit, sides = rewrites.sides[0].audit, rewrites.sides
    rankers = counted(len(audit.runs), "ranker", "rankers")
    summands = rankers if len(sides) == 1 else f"{rankers} and {len(sides)} sources"
    if not were_named:
        queries = counted(len(audit.queries), "query", "queries")
        yield (
            f"Chosen: the {len(shown_queries)} of {queries} that contribute most to Relative Δ of "
            f"{audit.primary_measure!r}, {summands} added up, each with its relevant pair of the "
            "highest grade."
        )
    contributions_of_queries = [
        f"{query} {signed(rewrites.points[query])}"
        for query in shown_queries
        if query in rewrites.points
    ]
    if contributions_of_queries:
        yield (
            f"Parts of Relative Δ in points, {summands} added up (+ favours {sides[0].a}): "
            f"{', '.join(contributions_of_queries)}."
        )
