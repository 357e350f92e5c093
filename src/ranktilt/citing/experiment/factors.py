"""The effects of a design's factors on being cited, and on being cited first.

A *designed collection* has several versions of each document, which differ in *factors* such as
length; each factor has a low and a high level. Each answer is written from one version of each
document, drawn at random, so that documents with a high and a low level differ in nothing else. If
a query is asked several times, versions of one document under one query are compared. If it is
asked once, the documents of a query are compared with each other, which is right on average, but
less precise. The regression is that of effects on ranks (`explaining.factors`): levels are −1 and
1, and errors are clustered by query and document.
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
from ranktilt.statistics.regression.fixed_effects import centred_within

_FEWEST = 10
"""Fewest queries, and fewest documents, for a test, as for effects on ranks."""


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
        If no answer cites a document, there are no factors, or versions do not differ.
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
        Answers that say what they consulted: versions of the collection's documents.
    collection : Collection
        A designed collection. If it has judgments, only documents that are relevant to the query
        count, although prompts show others too.
    engine : str, optional
        Name of the engine or model.
    failed_too : bool, optional
        Also report factors that failed their checks.
    spec : mapping, optional
        How the answers were made.
    notes : tuple of Note, optional
        Notes on how the answers were made.

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
    """Return a row for each version that an answer was written from.

    Columns are ``answer``, ``query``, ``origin`` (number of the document), ``row`` (of the version
    in the collection), ``cited`` and ``cited_first`` (0 or 100). Only versions of the design count,
    and only relevant documents, if any are judged.
    """
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
    citation_rank = pl.col("citation_rank")
    is_first = (citation_rank == 1).fill_null(value=False)
    with_outcomes = table.with_columns(
        cited=100.0 * citation_rank.is_not_null(), cited_first=100.0 * is_first
    )
    return with_outcomes.sort("query", "origin", "answer", maintain_order=True)


def _outcomes(table: pl.DataFrame, design: FactorDesign) -> dict[str, Outcome]:
    """Return the outcomes ``cited`` and ``cited first``, in groups of rows that are compared.

    A group is a document under a query, if all factors vary within these groups, or else a query.
    """
    query = _numbers(table["query"])
    origin = table["origin"].to_numpy().astype(np.int64)
    row = table["row"].to_numpy().astype(np.int64)
    pairs = table.select(pl.struct("query", "origin").rank("dense").cast(pl.Int64) - 1)
    group = pairs.to_series().to_numpy()
    main_effects = design.columns(row, design.terms[: len(design.factors)])
    if not _can_estimate(main_effects, group):
        group = query
        if not _can_estimate(main_effects, group):
            raise UserError(
                "the versions that answers consulted do not tell the factors apart: ask more "
                "often (--repeats), or more queries"
            )
    outcomes = {}
    for name, column in ((CITED, "cited"), (CITED_FIRST, "cited_first")):
        values = table[column].to_numpy().astype(np.float64)
        outcomes[name] = Outcome(values=values, group=group, query=query, origin=origin, row=row)
    return outcomes


def _can_estimate(main_effects: np.ndarray, group: np.ndarray) -> bool:
    """Return whether all main effects can be estimated from differences within groups.

    `main_effects` has a column of levels for each factor. At least half of the rows must share
    their group with another row: a row that is alone in its group is compared with nothing. And no
    factor may follow from the others, which the rank of the matrix shows.
    """
    counts = np.bincount(group)
    most_are_compared = 2 * int((counts[group] > 1).sum()) >= len(group)
    rank = int(np.linalg.matrix_rank(centred_within(main_effects, group)))
    return most_are_compared and rank == main_effects.shape[1]


def _numbers(names: pl.Series) -> np.ndarray:
    """Return the number of each name, from 0, in their sorted order."""
    return names.rank("dense").to_numpy().astype(np.int64) - 1


def _notes(
    collection: Collection, design: FactorDesign, outcome: Outcome, engine: str
) -> Iterator[Note]:
    """Yield notes on factors that are not reported, missing judgments, and small numbers."""
    failed = tuple(factor.name for factor in design.factors if not factor.analysed)
    if failed:
        yield FactorsNotReported(factors=failed)
    if not collection.qrels.height:
        yield VersionsNotJudged()
    queries, documents = len(np.unique(outcome.query)), len(np.unique(outcome.origin))
    if min(queries, documents) < _FEWEST:
        yield FewToTest(run=engine, queries=queries, documents=documents)
