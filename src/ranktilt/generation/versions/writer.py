"""Write the texts of versions: documents on their way through the factors of a design."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.labels.stated_sources import ORIGINALS, with_named_side
from ranktilt.errors import UserError, unknown
from ranktilt.generation.generated import SourceSummary, collection_paths
from ranktilt.generation.rewrite.rewrite import rewrite
from ranktilt.generation.versions.answer_sentences import (
    relevant_queries,
    sought_texts,
    stated_answers,
    warn_of_absent_answers,
)
from ranktilt.generation.versions.design import (
    FACTS,
    HIGH,
    PREFIX,
    Design,
    design,
    drawn_cells,
)
from ranktilt.generation.versions.factors import AS_IS, POSITION, REPETITION, Factor, applied_order
from ranktilt.generation.versions.judgments import carried
from ranktilt.generation.versions.options import Crossing
from ranktilt.generation.versions.rules import Origin, name_pool, terms
from ranktilt.llm.base import LLM
from ranktilt.progress import report

Applied = tuple[str, ...]
"""Names of the factors that a text was changed by, in the order in which they are applied."""
Version = tuple[int, Applied]
"""A version: the row of its origin among the documents to be changed, and its factors."""


@dataclass(eq=False, kw_only=True)
class VersionWriter:
    """The documents to be changed, the runs of each, and the texts written so far."""

    originals: Collection
    """The documents that are changed, and no others."""
    layout: Design
    """The combinations of factors."""
    crossing: Crossing
    """What the user chose."""
    order: list[Factor]
    """The factors in the order in which they are applied."""
    cells: list[list[int]]
    """The runs of each origin."""
    origins: list[Origin]
    """What rules may know of each document."""
    rewrites: Mapping[str, str]
    """By origin, the text of the source that stands for a factor."""
    rewriter: str
    """That source; empty where no factor takes the collection's own rewrites."""
    texts: dict[Version, str]
    """Texts written so far, those of the originals among them."""
    titles: dict[Version, str]
    """Titles written so far."""
    left_out: list[pl.DataFrame] = field(default_factory=list)
    """Versions without a good answer, a table for each prompt."""
    answers: list[pl.DataFrame] = field(default_factory=list)
    """Every answer of a model, a table for each prompt."""
    summaries: list[SourceSummary] = field(default_factory=list)
    """Counts of answers, prompt by prompt."""

    @classmethod
    def from_collection(
        cls, collection: Collection, factors: Sequence[Factor], crossing: Crossing
    ) -> VersionWriter:
        """Choose documents and runs; nothing is changed yet."""
        layout = design([factor.name for factor in factors], crossing.design)
        order = applied_order(factors)
        collection = with_named_side(collection, crossing.of or ORIGINALS)
        base = _documents_to_change(collection, crossing)
        rewriter = _rewriter(collection, order, base["source"][0])
        rewrites = _texts_by_origin(collection, rewriter)
        if rewriter:
            base = base.filter(pl.col("origin").is_in(list(rewrites)))
        if not base.height:
            raise UserError(f"no document has a rewrite of source {rewriter!r}")
        base = base.head(crossing.first or base.height)
        if rewriter:
            rewrites = {
                id_: rewrites[origin] for id_, origin in base.select("id", "origin").iter_rows()
            }
        qrels = collection.qrels.filter(pl.col("doc_id").is_in(base["id"].implode()))
        originals = Collection(
            base.with_columns(origin="id"), collection.queries, qrels, collection.spec
        )
        if any(factor.name in (POSITION, REPETITION) for factor in order):
            warn_of_absent_answers(base)
        cells = drawn_cells(layout, base["id"].to_list(), crossing.cells, crossing.seed)
        texts: dict[Version, str] = {(row, ()): text for row, text in enumerate(base["text"])}
        titles: dict[Version, str] = {(row, ()): title for row, title in enumerate(base["title"])}
        return cls(
            originals=originals,
            layout=layout,
            crossing=crossing,
            order=order,
            cells=cells,
            origins=_origins(originals, crossing.seed),
            rewrites=rewrites,
            rewriter=rewriter,
            texts=texts,
            titles=titles,
        )

    def applied(self, cell: Mapping[str, str], steps: int | None = None) -> Applied:
        """Name the factors that a run is changed by, up to a step."""
        return tuple(factor.name for factor in self.order[:steps] if cell[factor.name] == HIGH)

    def versions(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Give the origin's row and the levels of every version."""
        levels = self.layout.cells()
        for row, runs in enumerate(self.cells):
            for run in runs:
                yield row, levels[run]

    def versions_of_step(self, step: int) -> list[Version]:
        """List the versions that a factor makes at its step, each once."""
        name = self.order[step].name
        versions = (
            (row, self.applied(cell, step + 1))
            for row, cell in self.versions()
            if cell[name] == HIGH
        )
        return list(dict.fromkeys(versions))

    def apply(self, step: int, llm: LLM | None) -> float:
        """Write the texts of a factor's high level; return the share that it changed.

        Without a model, a prompt leaves texts as they are: this is what an estimate counts with.
        """
        factor = self.order[step]
        versions = [
            (row, names)
            for row, names in self.versions_of_step(step)
            if (row, names[:-1]) in self.texts
        ]
        before = [self.texts[row, names[:-1]] for row, names in versions]
        for row, names in versions:
            self.titles[row, names] = self._title(factor, row, names)
        after: Sequence[str | None]
        if factor.by == "model" and llm is not None:
            after = self._answered(factor, versions, before, llm)
        else:
            after = self._edited(factor, versions, before)
        pairs = []
        for version, old, new in zip(versions, before, after, strict=True):
            if new is not None:
                self.texts[version] = new
                pairs.append((old, new))
        return sum(old != new for old, new in pairs) / len(pairs) if pairs else 0.0

    def _title(self, factor: Factor, row: int, names: Applied) -> str:
        """Return a title after some factors, the last of which may change it."""
        title = self.titles[row, names[:-1]]
        return factor.edit(title, self.origins[row]) if factor.titles and factor.edit else title

    def _edited(
        self, factor: Factor, versions: Sequence[Version], before: Sequence[str]
    ) -> Sequence[str]:
        """Change texts by rule, or take them out of the collection."""
        if factor.by == "model":
            return before
        if factor.edit is None:
            return [self.rewrites[self.origins[row].id] for row, _ in versions]
        edited = []
        for number, ((row, _), text) in enumerate(zip(versions, before, strict=True)):
            edited.append(factor.edit(text, self.origins[row]))
            report(f"{factor.name}: {factor.high}", number + 1, len(versions))
        return edited

    def _answered(
        self, factor: Factor, versions: Sequence[Version], before: Sequence[str], llm: LLM
    ) -> list[str | None]:
        """Change texts by a model, as a rewrite; None for a text without a good answer."""
        options = self.crossing.rewriting(prompt=factor.prompt, source=factor.name)
        rewritten = rewrite(bare_texts(before), llm, options)
        names = [self.version_id(row, applied[:-1]) for row, applied in versions]
        ids = pl.Series(names, dtype=pl.String)
        self.left_out.append(_with_ids(rewritten.left_out, ids, factor.name))
        self.answers.append(_with_ids(rewritten.answers, ids, factor.name))
        self.summaries += [replace(summary, source=factor.name) for summary in rewritten.summaries]
        texts = dict(rewritten.added.select(pl.col("id").cast(pl.Int64), "text").iter_rows())
        return [texts.get(number) for number in range(len(versions))]

    def version_id(self, row: int, names: Applied) -> str:
        """Return the id of a version: its origin's, and what it was changed by."""
        return "+".join((self.origins[row].id, *names))

    def collection(self, model: str) -> Collection:
        """Return the versions as one collection; `model` is the source of what a model wrote."""
        rows = [
            self._document(row, cell, model)
            for row, cell in self.versions()
            if (row, self.applied(cell)) in self.texts
        ]
        if not rows:
            raise UserError("no version was made: the model gave no good answer")
        versions = pl.DataFrame(rows, schema_overrides={"row": pl.UInt32, "made_by": pl.String})
        columns = self.originals.docs.drop("id", "title", "text").with_row_index("row")
        docs = versions.join(columns, on="row", how="left", maintain_order="left")
        docs = docs.with_columns(source=pl.coalesce("made_by", "source")).drop("row", "made_by")
        spec = {**collection_paths(self.originals), "design": self._described()}
        return Collection(docs, self.originals.queries, carried(self.originals.qrels, docs), spec)

    def _document(self, row: int, cell: Mapping[str, str], model: str) -> dict[str, Any]:
        """Return a version, as a row of the collection."""
        names = self.applied(cell)
        makers = {factor.by for factor in self.order if factor.name in names}
        source = self.rewriter if "collection" in makers else None
        if "model" in makers:
            source = model
        return {
            "row": row,
            "id": self.version_id(row, names),
            "title": self.titles[row, names],
            "text": self.texts[row, names],
            "made_by": source,
            **{PREFIX + name: level for name, level in cell.items()},
        }

    def _described(self) -> dict[str, Any]:
        """Return the design as it is written down."""
        factors = {factor.name: factor for factor in self.order}
        low_high = {name: [AS_IS, factors[name].high] for name in self.layout.factors}
        exception = f", but not to versions with {FACTS} high" if FACTS in factors else ""
        return {
            **self.layout.to_dict(),
            "cells": self.crossing.cells,
            "seed": self.crossing.seed,
            "low_high": low_high,
            "judgments": f"carried over from the original{exception}",
        }


def bare_texts(texts: Iterable[str]) -> Collection:
    """Return texts as documents that are called by their number."""
    docs = [(str(number), text) for number, text in enumerate(texts)]
    no_judgments = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    return Collection(
        pl.DataFrame(docs, schema=["id", "text"], orient="row"),
        pl.DataFrame(schema=["id", "text"]),
        pl.DataFrame(schema=no_judgments),
    )


def _with_ids(frame: pl.DataFrame, ids: pl.Series, source: str) -> pl.DataFrame:
    """Name the documents of `bare_texts` as the versions are."""
    rows = frame["id"].str.strip_suffix("-human").cast(pl.Int64)
    return frame.with_columns(ids.gather(rows).alias("id"), pl.lit(source).alias("source"))


def _documents_to_change(collection: Collection, crossing: Crossing) -> pl.DataFrame:
    """Return all documents of one source, one an origin."""
    sources = collection.sources
    source = crossing.of or (ORIGINALS if ORIGINALS in sources else next(iter(sources), ""))
    if source not in sources:
        raise collection.unknown_source(source)
    base = collection.docs.filter(pl.col("source") == source)
    for name in base.columns:
        if name.startswith(PREFIX):
            raise UserError(
                f"this collection already has a design: its documents have a column {name!r}"
            )
    repeated = base.filter(pl.col("origin").is_duplicated())
    if repeated.height:
        first, second = repeated["id"][:2]
        raise UserError(
            f"documents {first!r} and {second!r} of source {source!r} have the same origin, "
            f"{repeated['origin'][0]!r}"
        )
    return base


def _rewriter(collection: Collection, factors: Iterable[Factor], base: str) -> str:
    """Find the source whose rewrites are a factor's high level; empty where no factor takes any."""
    factor = next((factor for factor in factors if factor.by == "collection"), None)
    if factor is None:
        return ""
    sources = [name for name in collection.sources if name != base]
    if factor.source:
        if factor.source not in sources:
            raise unknown("source", factor.source, sources)
        return factor.source
    if len(sources) == 1:
        return sources[0]
    number = "no other source"
    if sources:
        number = f"{len(sources)} other sources; name one, such as source:{sources[0]}"
    raise UserError(
        f"factor 'source' by rule takes the collection's own rewrites, and it has {number}"
    )


def _texts_by_origin(collection: Collection, source: str) -> dict[str, str]:
    """Return the texts of one source by their origin."""
    docs = collection.docs.filter(pl.col("source") == source)
    return dict(docs.select("origin", "text").iter_rows())


def _origins(collection: Collection, seed: int) -> list[Origin]:
    """List what rules may know of each document."""
    query_terms = frozenset[str]().union(*map(terms, collection.queries["text"]))
    names = name_pool(collection.docs["text"], query_terms)
    queries = relevant_queries(collection.queries, collection.qrels)
    answers = stated_answers(collection.docs)
    return [
        Origin(
            id=doc_id,
            seed=seed,
            queries=queries.get(doc_id, ()),
            sought=sought_texts(answers.get(doc_id, ""), queries.get(doc_id, ())),
            query_terms=query_terms,
            names=names,
        )
        for doc_id in collection.ids
    ]
