"""Texts that show what a tilt is made of: a human document and its LLM versions, for a query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from ranktilt.auditing.breakdown import contributions
from ranktilt.auditing.result import Audit
from ranktilt.data.collection import Collection
from ranktilt.errors import UserError, counted, unknown
from ranktilt.measures.printing import signed
from ranktilt.reporting.document import Cell, Panels, Row, Table, worded
from ranktilt.reporting.layouts.layout import layouts
from ranktilt.reporting.layouts.names import dataset_name, generator
from ranktilt.reporting.layouts.results import made_by
from ranktilt.reporting.numbers import DASH
from ranktilt.reporting.provenance import folder
from ranktilt.reporting.reload import LoadedAudit, LoadedSourceAudits

PAIRS = 2
_Key = tuple[str, str]
"""A query, and a document of the first source that is relevant to it."""


@dataclass(frozen=True)
class _Rewrites:
    """One source beside the first: the audit of the two, and the relevant documents that are twins."""

    audit: Audit
    collection: Collection
    a: str
    b: str

    @cached_property
    def twins(self) -> dict[_Key, str]:
        """Its version of each document that is relevant as that is, the highest grades of a query first."""
        judged = self.collection.qrels.filter(pl.col("grade") > 0).with_row_index("row")
        pairs = self.collection.pairs(self.a, self.b)
        found = judged.join(
            pairs, left_on="doc_id", right_on="a", how="inner", maintain_order="left"
        )
        other = judged.select("query_id", b="doc_id", other="grade")
        both = found.join(other, on=["query_id", "b"], how="inner", maintain_order="left").sort(
            pl.col("grade") + pl.col("other"), "row", descending=[True, False], maintain_order=True
        )
        rows = both.select("query_id", "doc_id", "b").iter_rows()
        made: dict[_Key, str] = {}
        for query, doc, twin in rows:
            made.setdefault((query, doc), twin)
        return made

    @cached_property
    def points(self) -> dict[str, float]:
        """Each query's part of Relative Δ, added up over the rankers; one ranker's parts sum to its Relative Δ."""
        measure = self.audit.primary_measure
        found = np.stack(
            [contributions(self.audit, run, measure, self.a, self.b) for run in self.audit.runs]
        )
        total = found[~np.isnan(found).all(axis=1)].sum(
            axis=0
        )  # a ranker that finds nothing relevant has none
        return {
            query: value
            for query, value in zip(self.audit.queries, total.tolist(), strict=True)
            if value == value
        }

    def text(self, doc: str) -> str:
        return str(self.collection.docs.filter(pl.col("id") == doc)["text"][0])


@dataclass(frozen=True)
class _AllRewrites:
    """All sources beside the first one of a collection, in one audit or one audit each."""

    sides: tuple[_Rewrites, ...]

    @classmethod
    def of(cls, opened: Sequence[LoadedAudit]) -> _AllRewrites:
        first = opened[0].audit.tilted_pairs[0][0]
        found = (
            _Rewrites(one.audit, one.collection, a, b)
            for one in opened
            for a, b in one.audit.tilted_pairs
            if a == first and one.collection is not None
        )
        return cls(tuple({side.b: side for side in found}.values()))

    @cached_property
    def keys(self) -> dict[str, list[_Key]]:
        """Documents to choose from, by query: those that most sources have a version of."""
        found = defaultdict[str, list[_Key]](list)
        for key in dict.fromkeys(key for side in self.sides for key in side.twins):
            found[key[0]].append(key)
        versions = {
            key: sum(key in side.twins for side in self.sides)
            for keys in found.values()
            for key in keys
        }
        most = {query: max(map(versions.__getitem__, keys)) for query, keys in found.items()}
        return {
            query: [key for key in keys if versions[key] == most[query]]
            for query, keys in found.items()
        }

    @cached_property
    def points(self) -> dict[str, float]:
        """Each query's part of Relative Δ, added up over sources and rankers."""
        found = defaultdict[str, float](float)
        for side in self.sides:
            for query, value in side.points.items():
                found[query] += value
        return found

    @property
    def strongest(self) -> list[str]:
        """The queries that contribute most, of those whose document has a version in every source."""
        held = [
            q
            for q in self.points
            if all(self.keys.get(q, [("", "")])[0] in side.twins for side in self.sides)
        ]
        return sorted(held, key=lambda query: -abs(self.points[query]))[:PAIRS]

    def chosen(self, query: str) -> Iterator[str]:
        """Yield the texts of the document of the highest grade and of its versions."""
        key = self.keys[query][0]
        yield self.sides[0].text(key[1])
        for side in self.sides:
            yield side.text(side.twins[key]) if key in side.twins else DASH


def has_pairs(opened: Sequence[LoadedAudit]) -> bool:
    """Whether there are texts to choose where no query is named: some that are all relevant to a query."""
    return bool(_AllRewrites.of(opened).strongest)


def of_collections(results: Sequence[object]) -> list[list[LoadedAudit]]:
    """Put together the audits of one collection that texts can be chosen from: by source, judged, with collection."""
    found = defaultdict[str, list[LoadedAudit]](list)
    parts = list[object]()
    for result in results:
        parts += result.parts if isinstance(result, LoadedSourceAudits) else [result]
    for number, one in enumerate(parts):
        if (
            isinstance(one, LoadedAudit)
            and one.collection
            and one.audit.spec.get("by") == "source"
            and one.audit.tilts
        ):
            spec = one.audit.spec.get("collection", {})
            place = spec.get("path") if spec.get("without_sources") else None
            found[str(number) if place is None else f"at {place}"].append(one)
    return list(found.values())


def chosen_texts(
    opened: Sequence[LoadedAudit], name: str, *, queries: Sequence[str] = ()
) -> Panels:
    """Choose a document and its versions in every source, and lay them out side by side, a panel a query."""
    sides = _AllRewrites.of(opened)
    first, sources = sides.sides[0], [side.b for side in sides.sides]
    wanted = _named(queries, sides.keys, first.collection) if queries else sides.strongest
    if not wanted:
        raise UserError(
            f"{name}: no query has a relevant pair of {first.a} and {' and '.join(sources)}"
        )
    titles = [first.a, *sources]
    if first.a == "human":
        several = [f"LLM-Generated, {source}" for source in sources]
        titles = ["Human-Written", *(several if len(sources) > 1 else ["LLM-Generated"])]
    columns = tuple(map(worded, titles))
    asked = dict(first.collection.queries.select("id", "text").iter_rows())
    rows = [Row(tuple(map(Cell, sides.chosen(query)))) for query in wanted]
    return Panels(
        name,
        _caption(first.audit, name, sources),
        f"Layout: {layouts()[name].paper}.",
        tuple(
            Table(f"Query: {asked[q]}", columns, (row,))
            for q, row in zip(wanted, rows, strict=True)
        ),
        tuple(_notes(sides, wanted, named=bool(queries))),
        made=tuple(
            dict.fromkeys(line for side in sides.sides for line in made_by(side.audit.spec))
        ),
    )


def _caption(audit: Audit, name: str, sources: Sequence[str]) -> str:
    written = " and ".join(
        model + (f" at temperature {degree}" if degree else "")
        for model, degree in map(generator, sources)
    )
    where = ", ".join(filter(None, (dataset_name(folder(audit.spec)), f"LLM text by {written}")))
    return f"{layouts()[name].title}. {where}."


def _named(queries: Sequence[str], keys: Mapping[str, object], collection: Collection) -> list[str]:
    for query in queries:
        if query not in collection.queries["id"]:
            raise unknown("query", query, collection.queries_with_judgments["id"].to_list())
        if query not in keys:
            raise UserError(
                f"query {query!r} has no pair of texts that are both relevant to it; omit it"
            )
    return list(dict.fromkeys(queries))


def _notes(sides: _AllRewrites, wanted: Sequence[str], *, named: bool) -> Iterator[str]:
    audit = sides.sides[0].audit
    rankers = counted(len(audit.runs), "ranker", "rankers")
    over = rankers if len(sides.sides) == 1 else f"{rankers} and {len(sides.sides)} sources"
    if not named:
        yield (
            f"Chosen: of {counted(len(audit.queries), 'query', 'queries')} the {len(wanted)} that contribute most to "
            f"Relative Δ of {audit.primary_measure!r}, {over} added up; of each the relevant pair of the highest "
            "grade."
        )
    parts = [f"{query} {signed(sides.points[query])}" for query in wanted if query in sides.points]
    if parts:
        yield (
            f"Parts of Relative Δ in points, {over} added up (+ favours {sides.sides[0].a}): {', '.join(parts)}."
        )
