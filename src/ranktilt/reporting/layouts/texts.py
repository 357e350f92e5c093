"""Texts behind a tilt: for each query a human document and its LLM versions."""

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
from ranktilt.errors import UserError, counted, unknown
from ranktilt.measures.printing import signed
from ranktilt.reporting.document import Cell, Panels, Row, Table, text_column
from ranktilt.reporting.layouts.layout import layouts
from ranktilt.reporting.layouts.names import dataset_name, generator
from ranktilt.reporting.layouts.results import made_by
from ranktilt.reporting.numbers import DASH
from ranktilt.reporting.provenance import folder
from ranktilt.reporting.reload import LoadedAudit, LoadedSourceAudits

PAIRS = 2
"""Queries that are chosen where none is named."""
_Key = tuple[str, str]
"""A query, and a document of the first source that is relevant to it."""


@dataclass(frozen=True, kw_only=True)
class _Rewrites:
    """One source against the first: the audit of the two, and the relevant twins."""

    audit: Audit
    """Audit of the two sources."""
    collection: Collection
    """Collection that was audited."""
    a: str
    """The first source."""
    b: str
    """The other one."""

    @cached_property
    def twins(self) -> dict[_Key, str]:
        """The version in `b` of each document of `a`, where both are relevant to a query.

        The highest grades of a query come first.
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
        twins: dict[_Key, str] = {}
        for query, doc, twin in rows.select("query_id", "doc_id", "b").iter_rows():
            twins.setdefault((query, doc), twin)
        return twins

    @cached_property
    def points(self) -> dict[str, float]:
        """Each query's part of Relative Δ, added up over the rankers.

        The parts of one ranker sum to its Relative Δ.
        """
        audit = self.audit
        measure = audit.primary_measure
        per_ranker = np.stack(
            [contributions(audit, run, measure, a=self.a, b=self.b) for run in audit.runs]
        )
        # A ranker that retrieves nothing relevant has no Relative Δ.
        has_tilt = ~np.isnan(per_ranker).all(axis=1)
        totals = per_ranker[has_tilt].sum(axis=0).tolist()
        points = zip(audit.queries, totals, strict=True)
        return {query: value for query, value in points if not isnan(value)}

    def text(self, doc: str) -> str:
        """Return the text of a document."""
        return str(self.collection.docs.filter(pl.col("id") == doc)["text"][0])


@dataclass(frozen=True, kw_only=True)
class _AllRewrites:
    """All sources of a collection against its first one, in one audit or one audit each."""

    sides: tuple[_Rewrites, ...]
    """Each other source against the first."""

    @classmethod
    def from_audits(cls, audits: Sequence[LoadedAudit]) -> _AllRewrites:
        """Collect the sources of audits that were loaded with their collection."""
        first = audits[0].audit.tilted_pairs[0][0]
        sides: dict[str, _Rewrites] = {}
        for loaded in audits:
            if loaded.collection is None:
                continue
            for a, b in loaded.audit.tilted_pairs:
                if a == first:
                    sides[b] = _Rewrites(audit=loaded.audit, collection=loaded.collection, a=a, b=b)
        return cls(sides=tuple(sides.values()))

    @cached_property
    def keys(self) -> dict[str, list[_Key]]:
        """Documents to choose from, by query: those that most sources have a version of."""
        version_counts = Counter[_Key]()
        for side in self.sides:
            version_counts.update(side.twins.keys())
        keys = defaultdict[str, list[_Key]](list)
        for key in version_counts:
            keys[key[0]].append(key)
        return {
            query: _most_common(query_keys, version_counts) for query, query_keys in keys.items()
        }

    @cached_property
    def points(self) -> dict[str, float]:
        """Each query's part of Relative Δ, added up over sources and rankers."""
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
        return query in self.keys and all(self.keys[query][0] in side.twins for side in self.sides)

    def chosen(self, query: str) -> Iterator[str]:
        """Yield the texts of the document of the highest grade and of its versions."""
        key = self.keys[query][0]
        yield self.sides[0].text(key[1])
        for side in self.sides:
            yield side.text(side.twins[key]) if key in side.twins else DASH


def _most_common(keys: Sequence[_Key], version_counts: Mapping[_Key, int]) -> list[_Key]:
    """Return the documents that most sources have a version of."""
    most = max(version_counts[key] for key in keys)
    return [key for key in keys if version_counts[key] == most]


def has_pairs(audits: Sequence[LoadedAudit]) -> bool:
    """Tell whether some query has texts to choose: a relevant document and relevant versions."""
    return bool(_AllRewrites.from_audits(audits).strongest)


def of_collections(results: Sequence[object]) -> list[list[LoadedAudit]]:
    """Group the audits whose texts can be shown by their collection.

    These are audits by source that were judged and loaded with their collection.
    """
    groups = defaultdict[str, list[LoadedAudit]](list)
    for number, part in enumerate(_parts(results)):
        if _shows_texts(part):
            groups[_collection_key(part.audit.spec, number)].append(part)
    return list(groups.values())


def _parts(results: Sequence[object]) -> Iterator[object]:
    """Return results one by one, the audits of several sources each on its own."""
    for result in results:
        if isinstance(result, LoadedSourceAudits):
            yield from result.parts
        else:
            yield result


def _shows_texts(result: object) -> TypeGuard[LoadedAudit]:
    """Tell whether a result is an audit by source that was judged and has its collection."""
    if not isinstance(result, LoadedAudit) or not result.collection:
        return False
    return result.audit.spec.get("by") == "source" and bool(result.audit.tilts)


def _collection_key(spec: Mapping[str, Any], number: int) -> str:
    """Return the name under which an audit is grouped with those of its collection.

    Audits of single sources of one folder belong together. Any other audit is alone, under its
    number.
    """
    collection = spec.get("collection", {})
    path = collection.get("path") if collection.get("without_sources") else None
    return str(number) if path is None else f"at {path}"


def chosen_texts(
    audits: Sequence[LoadedAudit], name: str, *, queries: Sequence[str] = ()
) -> Panels:
    """Choose a document and its versions in every source, and lay them out side by side.

    Each query has a panel.
    """
    rewrites = _AllRewrites.from_audits(audits)
    first, sources = rewrites.sides[0], [side.b for side in rewrites.sides]
    chosen = rewrites.strongest
    if queries:
        chosen = _checked_queries(queries, rewrites.keys, first.collection)
    if not chosen:
        raise UserError(
            f"{name}: no query has a relevant pair of {first.a} and {' and '.join(sources)}"
        )
    columns = tuple(map(text_column, _titles(first.a, sources)))
    query_texts = dict(first.collection.queries.select("id", "text").iter_rows())
    tables = []
    for query in chosen:
        row = Row(tuple(map(Cell, rewrites.chosen(query))))
        tables.append(Table(f"Query: {query_texts[query]}", columns, (row,)))
    origins = chain.from_iterable(made_by(side.audit.spec) for side in rewrites.sides)
    return Panels(
        name=name,
        caption=_caption(first.audit, name, sources),
        layout=f"Layout: {layouts()[name].paper}.",
        tables=tuple(tables),
        notes=tuple(_notes(rewrites, chosen, are_named=bool(queries))),
        origins=tuple(dict.fromkeys(origins)),
    )


def _titles(first: str, sources: Sequence[str]) -> list[str]:
    """Return the titles of the columns, those of Dai et al. for human text."""
    if first != "human":
        return [first, *sources]
    if len(sources) == 1:
        return ["Human-Written", "LLM-Generated"]
    return ["Human-Written", *(f"LLM-Generated, {source}" for source in sources)]


def _caption(audit: Audit, name: str, sources: Sequence[str]) -> str:
    """Return the caption: the title, the collection, and the models."""
    models = []
    for model, degree in map(generator, sources):
        models.append(f"{model} at temperature {degree}" if degree else model)
    context = (dataset_name(folder(audit.spec)), f"LLM text by {' and '.join(models)}")
    return f"{layouts()[name].title}. {', '.join(filter(None, context))}."


def _checked_queries(
    queries: Sequence[str], keys: Mapping[str, object], collection: Collection
) -> list[str]:
    """Return the queries that a user named, each once; `UserError` where one has no texts."""
    for query in queries:
        if query not in collection.queries["id"]:
            raise unknown("query", query, collection.queries_with_judgments["id"].to_list())
        if query not in keys:
            raise UserError(
                f"query {query!r} has no pair of texts that are both relevant to it; omit it"
            )
    return list(dict.fromkeys(queries))


def _notes(rewrites: _AllRewrites, chosen: Sequence[str], *, are_named: bool) -> Iterator[str]:
    """Say how the queries were chosen, and what each of them contributes."""
    audit, sides = rewrites.sides[0].audit, rewrites.sides
    rankers = counted(len(audit.runs), "ranker", "rankers")
    over = rankers if len(sides) == 1 else f"{rankers} and {len(sides)} sources"
    if not are_named:
        queries = counted(len(audit.queries), "query", "queries")
        yield (
            f"Chosen: the {len(chosen)} of {queries} that contribute most to Relative Δ of "
            f"{audit.primary_measure!r}, {over} added up, each with its relevant pair of the "
            "highest grade."
        )
    parts = [
        f"{query} {signed(rewrites.points[query])}" for query in chosen if query in rewrites.points
    ]
    if parts:
        yield (
            f"Parts of Relative Δ in points, {over} added up (+ favours {sides[0].a}): "
            f"{', '.join(parts)}."
        )
