"""Write the texts of versions: apply the factors of a design to documents, one after the other.

A *factor* is a property of a text with two levels, ``low`` (as it is) and ``high`` (changed). A
*run* of the design is a combination of one level per factor. A *version* is a document in a run. An
*origin* is the document, or its id, that versions are made from. A factor's *step* is its index in
the order in which factors are applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.labels.stated_sources import ORIGINALS, with_named_side
from ranktilt.errors import UserError, unknown_name
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
    draw_cells,
)
from ranktilt.generation.versions.factors import (
    AS_IS,
    POSITION,
    REPETITION,
    Factor,
    application_order,
)
from ranktilt.generation.versions.judgments import carry_over
from ranktilt.generation.versions.options import Crossing
from ranktilt.generation.versions.rules import RuleContext, name_pool, terms
from ranktilt.llm.base import LLM
from ranktilt.progress import report

FactorNames = tuple[str, ...]
"""Names of the factors that changed a text, in the order in which they are applied."""
Version = tuple[int, FactorNames]
"""A version: the row of its origin among the documents to change, and the factors applied."""


@dataclass(eq=False, kw_only=True)
class VersionWriter:
    """The documents to change, the runs of each, and the texts written so far."""

    originals: Collection
    """The documents to change."""
    layout: Design
    """The design: combinations of the factors' levels."""
    crossing: Crossing
    """Options of the user."""
    order: list[Factor]
    """The factors in the order in which they are applied."""
    runs: list[list[int]]
    """Indices of the runs in which each document is written."""
    contexts: list[RuleContext]
    """What rules may know of each document."""
    rewrites: Mapping[str, str]
    """Texts of the source `rewriter` by origin, if they are the high level of a factor."""
    rewriter: str
    """Source (author) of these rewrites; empty if no factor takes the collection's rewrites."""
    texts: dict[Version, str]
    """Texts written so far, including those of the originals."""
    titles: dict[Version, str]
    """Titles written so far, including those of the originals."""
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
        order = application_order(factors)
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
        runs = draw_cells(layout, base["id"].to_list(), crossing.cells, crossing.seed)
        # An original is the version to which no factor was applied.
        texts: dict[Version, str] = {(row, ()): text for row, text in enumerate(base["text"])}
        titles: dict[Version, str] = {(row, ()): title for row, title in enumerate(base["title"])}
        return cls(
            originals=originals,
            layout=layout,
            crossing=crossing,
            order=order,
            runs=runs,
            contexts=_rule_contexts(originals, crossing.seed),
            rewrites=rewrites,
            rewriter=rewriter,
            texts=texts,
            titles=titles,
        )

    def applied_factors(self, levels: Mapping[str, str], steps: int | None = None) -> FactorNames:
        """Return the factors that are high in a run; only those of the first `steps`, if given.

        `levels` are the names of the run's levels by factor.
        """
        return tuple(factor.name for factor in self.order[:steps] if levels[factor.name] == HIGH)

    def versions(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield the origin's row, and the names of the levels by factor, of every version."""
        levels_by_run = self.layout.level_names()
        for row, runs in enumerate(self.runs):
            for run in runs:
                yield row, levels_by_run[run]

    def versions_of_step(self, step: int) -> list[Version]:
        """Return the different texts that a factor writes at its step."""
        name = self.order[step].name
        versions = (
            (row, self.applied_factors(levels, step + 1))
            for row, levels in self.versions()
            if levels[name] == HIGH
        )
        # Versions that differ by later factors have the same text so far.
        return list(dict.fromkeys(versions))

    def apply(self, step: int, llm: LLM | None) -> float:
        """Write the texts of a factor's high level, and return the share that it changed, 0 to 1.

        Without a model, a prompt leaves texts as they are. An estimate of cost uses this.
        """
        factor = self.order[step]
        # A text cannot be changed if the model gave no good answer at an earlier step.
        versions = [
            (row, names)
            for row, names in self.versions_of_step(step)
            if (row, names[:-1]) in self.texts
        ]
        if not versions:  # few cells of few documents may lack the factor's high level
            return 0.0
        before = [self.texts[row, names[:-1]] for row, names in versions]
        for row, names in versions:
            self.titles[row, names] = self._new_title(factor, row, names)
        after: Sequence[str | None]
        if factor.by == "model" and llm is not None:
            after = self._ask_model(factor, versions, before, llm)
        else:
            after = self._edit_texts(factor, versions, before)
        is_changed = []
        for version, old, new in zip(versions, before, after, strict=True):
            if new is not None:
                self.texts[version] = new
                is_changed.append(old != new)
        return sum(is_changed) / len(is_changed) if is_changed else 0.0

    def _new_title(self, factor: Factor, row: int, names: FactorNames) -> str:
        """Return the title after the factors `names`, the last of which is `factor`."""
        title = self.titles[row, names[:-1]]
        return factor.edit(title, self.contexts[row]) if factor.titles and factor.edit else title

    def _edit_texts(
        self, factor: Factor, versions: Sequence[Version], before: Sequence[str]
    ) -> Sequence[str]:
        """Change texts by rule, or replace them by rewrites of the collection."""
        if factor.by == "model":  # without a model the texts stay
            return before
        if factor.edit is None:
            return [self.rewrites[self.contexts[row].id] for row, _names in versions]
        edited_texts = []
        for number, ((row, _names), text) in enumerate(zip(versions, before, strict=True)):
            edited_texts.append(factor.edit(text, self.contexts[row]))
            report(f"{factor.name}: {factor.high}", number + 1, len(versions))
        return edited_texts

    def _ask_model(
        self, factor: Factor, versions: Sequence[Version], before: Sequence[str], llm: LLM
    ) -> list[str | None]:
        """Rewrite texts with a model; None for a text without a good answer."""
        options = self.crossing.rewriting(prompt=factor.prompt, source=factor.name)
        rewritten = rewrite(collection_of_texts(before), llm, options)
        ids_before = [self.version_id(row, names[:-1]) for row, names in versions]
        ids = pl.Series(ids_before, dtype=pl.String)
        self.left_out.append(_with_ids(rewritten.left_out, ids, factor.name))
        self.answers.append(_with_ids(rewritten.answers, ids, factor.name))
        self.summaries += [replace(summary, source=factor.name) for summary in rewritten.summaries]
        # The ids of `collection_of_texts` are the indices of the texts.
        texts = dict(rewritten.added.select(pl.col("id").cast(pl.Int64), "text").iter_rows())
        return [texts.get(index) for index in range(len(versions))]

    def version_id(self, row: int, names: FactorNames) -> str:
        """Return the id of a version: its origin and the applied factors, joined by ``+``."""
        return "+".join((self.contexts[row].id, *names))

    def collection(self, model: str) -> Collection:
        """Return the versions as one collection.

        `model` is the source (author) of the versions that a language model wrote.
        """
        rows = [
            self._document(row, levels, model)
            for row, levels in self.versions()
            if (row, self.applied_factors(levels)) in self.texts
        ]
        if not rows:
            raise UserError("no version was made: the model gave no good answer")
        versions = pl.DataFrame(rows, schema_overrides={"row": pl.UInt32, "made_by": pl.String})
        columns = self.originals.docs.drop("id", "title", "text").with_row_index("row")
        docs = versions.join(columns, on="row", how="left", maintain_order="left")
        # A version that only rules changed keeps the source of its original.
        docs = docs.with_columns(source=pl.coalesce("made_by", "source")).drop("row", "made_by")
        spec = {**collection_paths(self.originals), "design": self._design_spec()}
        qrels = carry_over(self.originals.qrels, docs)
        return Collection(docs, self.originals.queries, qrels, spec)

    def _document(self, row: int, levels: Mapping[str, str], model: str) -> dict[str, Any]:
        """Return a version as a row of the table of documents."""
        names = self.applied_factors(levels)
        changed_by = {factor.by for factor in self.order if factor.name in names}
        source = self.rewriter if "collection" in changed_by else None
        if "model" in changed_by:
            source = model
        return {
            "row": row,
            "id": self.version_id(row, names),
            "title": self.titles[row, names],
            "text": self.texts[row, names],
            "made_by": source,
            **{PREFIX + name: level for name, level in levels.items()},
        }

    def _design_spec(self) -> dict[str, Any]:
        """Describe the design as plain JSON values."""
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


def collection_of_texts(texts: Iterable[str]) -> Collection:
    """Return texts as a collection without queries; a document's id is the index of its text."""
    docs = [(str(number), text) for number, text in enumerate(texts)]
    no_judgments = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    return Collection(
        pl.DataFrame(docs, schema=["id", "text"], orient="row"),
        pl.DataFrame(schema=["id", "text"]),
        pl.DataFrame(schema=no_judgments),
    )


def _with_ids(frame: pl.DataFrame, ids: pl.Series, source: str) -> pl.DataFrame:
    """Replace the ids of `collection_of_texts`, in a table of answers, by those of versions."""
    # The texts have no source, so `rewrite` calls them ``human``. Uniting them with the rewrites
    # puts this at the end of their ids.
    indices = frame["id"].str.strip_suffix("-human").cast(pl.Int64)
    return frame.with_columns(ids.gather(indices).alias("id"), pl.lit(source).alias("source"))


def _documents_to_change(collection: Collection, crossing: Crossing) -> pl.DataFrame:
    """Return all documents of the source to change; two of the same origin are refused."""
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
    """Return the source whose rewrites are a factor's high level; empty if no factor takes any.

    `base` is the source of the documents to change.
    """
    factor = next((factor for factor in factors if factor.by == "collection"), None)
    if factor is None:
        return ""
    sources = [name for name in collection.sources if name != base]
    if factor.source:
        if factor.source not in sources:
            raise unknown_name("source", factor.source, sources)
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


def _rule_contexts(collection: Collection, seed: int) -> list[RuleContext]:
    """List what rules may know of each document."""
    query_terms = frozenset[str]().union(*map(terms, collection.queries["text"]))
    names = name_pool(collection.docs["text"], query_terms)
    queries = relevant_queries(collection.queries, collection.qrels)
    answers = stated_answers(collection.docs)
    return [
        RuleContext(
            id=doc_id,
            seed=seed,
            queries=queries.get(doc_id, ()),
            sought=sought_texts(answers.get(doc_id, ""), queries.get(doc_id, ())),
            query_terms=query_terms,
            names=names,
        )
        for doc_id in collection.ids
    ]
