"""The effects of a design's factors on being cited, and on being cited first.

Each answer reads one version of each document, drawn by chance, so that versions differ in nothing
else. Where a query is asked several times, versions of one document under one query are compared;
asked once, the documents of a query are compared with each other, which is right on average, and
less exact. The regression is that of effects on ranks (`explaining.factors`): levels are −1 and 1,
errors are clustered by query and document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from ranktilt._version import __version__
from ranktilt.citing.making.notes import require_citations, session_notes
from ranktilt.citing.making.session import AnswerSession
from ranktilt.data.answers import Answers
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.texts import FactorsNotReported, FewToTest, VersionsNotJudged
from ranktilt.data.page_urls import page_key
from ranktilt.errors import UserError
from ranktilt.explaining.factors.effects import (
    EstimandFit,
    FactorDesign,
    corrected_effects,
    effect_rows,
    fit_outcome,
    source_effects,
)
from ranktilt.explaining.factors.outcomes import Outcome
from ranktilt.explaining.factors.result import (
    CITED,
    CITED_FIRST,
    FactorEffect,
    FactorEffects,
    SourceEffect,
)
from ranktilt.statistics.fixed_effects import centred_within

_FEWEST = 10
"""Queries, and documents, below which nothing is tested."""


def session_factor_effects(session: AnswerSession) -> FactorEffects:
    """Estimate what each factor does to being cited, from answers that a model wrote.

    Parameters
    ----------
    session : AnswerSession
        Answers of `make_answers` with ``draws_versions``.

    Returns
    -------
    FactorEffects
        Effects on ``cited`` and ``cited first``, in points, Holm-corrected within each of them.

    Raises
    ------
    UserError
        As `citation_factor_effects` does.
    """
    require_citations(session)
    return citation_factor_effects(
        session.answers,
        session.collection,
        engine=session.model,
        spec={"answers": dict(session.spec)},
        notes=tuple(session_notes(session)),
    )


def citation_factor_effects(
    answers: Answers,
    collection: Collection,
    *,
    engine: str = "answers",
    failed_too: bool = False,
    spec: Mapping[str, Any] | None = None,
    notes: tuple[Note, ...] = (),
) -> FactorEffects:
    """Estimate what each factor of a designed collection does to being cited, and cited first.

    Parameters
    ----------
    answers : Answers
        Answers that tell what they consulted: versions of the collection's documents.
    collection : Collection
        Versions of documents by a design. Where documents are judged, only those relevant to the
        query count; the others are in the prompts all the same.
    engine : str, optional
        Name of the engine or model.
    failed_too : bool, optional
        Also report factors that failed their checks.
    spec : mapping, optional
        How the answers were made.
    notes : tuple of Note, optional
        What a reader should know of them.

    Returns
    -------
    FactorEffects
        Effects on ``cited`` and ``cited first``, in points, Holm-corrected within each of them.

    Raises
    ------
    UserError
        If there are no factors, no answer consulted a version that counts, or the versions that
        they consulted do not differ.
    """
    described = collection.spec.get("design", {})
    failed = () if failed_too else tuple(described.get("failed", ()))
    design = FactorDesign.from_collection(collection, failed)
    table = _shown_versions(answers, collection, design)
    outcomes = _outcomes(table, design)
    rows: list[FactorEffect] = []
    sources: list[SourceEffect] = []
    for estimand, outcome in outcomes.items():
        fit = EstimandFit(fit_outcome(outcome, design, design.terms), outcome)
        rows += effect_rows(fit, design, engine, estimand)
        sources += source_effects(fit, design, engine, estimand)
    origin = {"collection": dict(collection.spec), "design": dict(described)}
    return FactorEffects(
        spec={**(spec or {}), **origin, "ranktilt": __version__},
        factors=design.factors,
        rows=tuple(corrected_effects(rows)),
        sources=tuple(sources),
        notes=(*notes, *design.notes, *_notes(collection, design, outcomes[CITED], engine)),
    )


def _shown_versions(answers: Answers, collection: Collection, design: FactorDesign) -> pl.DataFrame:
    """Return a row for each version of an answer: query, origin, row, cited and cited first."""
    is_exact = bool(answers.spec.get("exact_urls"))
    ids = collection.ids if is_exact else pl.Series(list(map(page_key, collection.ids)))
    versions = pl.DataFrame(
        {
            "page": ids,
            "row": range(collection.docs.height),
            "origin": collection.origin_codes(),
            "is_designed": design.designed,
        }
    )
    numbered = answers.answers.with_row_index("answer").cast({"answer": pl.Int64})
    pages = answers.pages.filter("is_consulted").select("answer", "page", "citation_rank")
    table = pages.join(numbered.select("answer", "query"), on="answer", maintain_order="left")
    table = table.join(versions, on="page", maintain_order="left").filter("is_designed")
    if not table.height:
        raise UserError(
            "no answer consulted a version of the collection: --by-factor needs answers with the "
            "field consulted, which names documents of the designed collection"
        )
    if collection.qrels.height:
        relevant = collection.qrels.filter(pl.col("grade") > 0)
        documents = versions.select(origin="origin").with_columns(doc_id=collection.ids)
        relevant = relevant.join(documents, on="doc_id").select(query="query_id", origin="origin")
        table = table.join(relevant.unique(), on=["query", "origin"], how="semi")
        if not table.height:
            raise UserError(
                "no answer consulted a version of a document that is judged relevant to its "
                "query; show more documents (--context), or take another run"
            )
    rank = pl.col("citation_rank")
    is_first = (rank == 1).fill_null(value=False)
    return table.with_columns(cited=100.0 * rank.is_not_null(), cited_first=100.0 * is_first).sort(
        "query", "origin", "answer", maintain_order=True
    )


def _outcomes(table: pl.DataFrame, design: FactorDesign) -> dict[str, Outcome]:
    """Return both outcomes, grouped so that every factor varies within groups."""
    query = _numbers(table["query"])
    origin = table["origin"].to_numpy().astype(np.int64)
    row = table["row"].to_numpy().astype(np.int64)
    pairs = table.select(pl.struct("query", "origin").rank("dense").cast(pl.Int64) - 1)
    group = pairs.to_series().to_numpy()
    mains = design.columns(row, design.terms[: len(design.factors)])
    if not _varies(mains, group):
        group = query
        if not _varies(mains, group):
            raise UserError(
                "the versions that answers consulted do not tell the factors apart: ask more "
                "often (--repeats), or more queries"
            )
    outcomes = {}
    for name, column in ((CITED, "cited"), (CITED_FIRST, "cited_first")):
        values = table[column].to_numpy().astype(np.float64)
        outcomes[name] = Outcome(values=values, group=group, query=query, origin=origin, row=row)
    return outcomes


def _varies(mains: np.ndarray, group: np.ndarray) -> bool:
    """Tell whether most rows are in groups of several, in which all main effects can be told."""
    counts = np.bincount(group)
    is_compared = 2 * int((counts[group] > 1).sum()) >= len(group)
    return (
        is_compared and int(np.linalg.matrix_rank(centred_within(mains, group))) == mains.shape[1]
    )


def _numbers(names: pl.Series) -> np.ndarray:
    return names.rank("dense").to_numpy().astype(np.int64) - 1


def _notes(
    collection: Collection, design: FactorDesign, outcome: Outcome, engine: str
) -> Iterator[Note]:
    """Yield what a reader should know of the comparison."""
    failed = tuple(factor.name for factor in design.factors if not factor.analysed)
    if failed:
        yield FactorsNotReported(factors=failed)
    if not collection.qrels.height:
        yield VersionsNotJudged()
    queries, documents = len(np.unique(outcome.query)), len(np.unique(outcome.origin))
    if min(queries, documents) < _FEWEST:
        yield FewToTest(run=engine, queries=queries, documents=documents)
