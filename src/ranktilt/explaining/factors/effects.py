"""Effects of the factors of a designed collection on ranks, and what is left of the source.

In a *designed collection*, each document is written in several *versions*, which differ in
*factors*: properties with two levels, low (as it is) and high (changed). The factor ``source`` says
who wrote a text. The *origin* is the document that versions were made from. An *estimand* says how
high a version ranks, for example by its rank or its score. Two effects are *aliased* if the design
cannot separate them, because their levels change together in all versions.

The levels of factors are coded −1 (low) and 1 (high), and an effect is twice its coefficient, so
that a main effect is the mean of the high versions minus that of the low ones (Box, Hunter &
Hunter, Statistics for Experimenters, 2nd ed. 2005, ch. 5). Versions are compared within one
document under one query; standard errors are clustered by query and document (Cameron, Gelbach &
Miller 2011).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note, counts_of
from ranktilt.data.notes.texts import (
    DocumentsNotRetrieved,
    FactorsNotReported,
    FewToTest,
    InteractionsAliased,
    InteractionsLeftOut,
    NoFactorCouldMove,
    NoScoreGap,
    VersionsNotJudged,
    VersionsNotRetrieved,
)
from ranktilt.data.runs.run import Run, named_apart
from ranktilt.errors import UserError, join_words
from ranktilt.explaining.factors.outcomes import (
    Outcome,
    Standings,
    adoption_weights,
    even_weights,
    version_table,
)
from ranktilt.explaining.factors.result import (
    MODEL_TEXT,
    OTHERS_AS_IS,
    OTHERS_HELD,
    PRIMARY,
    SOURCE,
    SOURCE_ALONE,
    TOGETHER,
    AdoptionEffect,
    DesignedFactor,
    FactorEffect,
    FactorEffects,
    Question,
    SourceEffect,
)
from ranktilt.generation.versions.design import PREFIX
from ranktilt.progress import report
from ranktilt.rankers.base import Pipeline, Ranker, stages_of
from ranktilt.rankers.candidates import check_reranked
from ranktilt.statistics.correction import correct, detectable_effect
from ranktilt.statistics.regression.fixed_effects import WithinFit, centred_within, regress_within
from ranktilt.statistics.regression.least_squares import clustered_errors
from ranktilt.statistics.variation import Variation

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_ALIASED_CORRELATION = 1 - 1e-9
"""Correlation above which two columns count as changing together; the rest is rounding."""
_FEWEST = 10
"""Minimum number of queries, and of documents, for tests."""
_ABSENT_SHARE = 0.05
"""Share of versions that were not retrieved above which a note says so."""


class DesignTerm(NamedTuple):
    """A column of the regression: a factor, or the product of two factors."""

    label: str
    """Name of the effect, with the names of its aliases: ``a × b = c × d``."""
    factors: tuple[int, ...]
    """Indices of the factors whose product is the column."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FactorDesign:
    """The factors of a designed collection, and the terms of a regression on them."""

    factors: tuple[DesignedFactor, ...]
    """The factors, in the order of the columns of `levels`."""
    levels: Floats
    """Level of each factor in each document, −1 or 1, NaN without a level: (n_docs, n_factors)."""
    terms: tuple[DesignTerm, ...]
    """Main effects, then interactions of two factors."""
    notes: tuple[Note, ...]
    """Notes on interactions that are aliased or left out."""

    @property
    def names(self) -> list[str]:
        """Names of the factors."""
        return [factor.name for factor in self.factors]

    @property
    def designed(self) -> npt.NDArray[np.bool_]:
        """Whether each document has a level of every factor, and so is a version."""
        is_designed: npt.NDArray[np.bool_] = np.isfinite(self.levels.sum(axis=1))
        return is_designed

    @classmethod
    def from_collection(cls, collection: Collection, failed: Sequence[str] = ()) -> FactorDesign:
        """Read the columns ``factor:NAME``.

        Parameters
        ----------
        collection : Collection
            The versions.
        failed : sequence of str, optional
            Factors that failed their checks, whose effects are not reported.

        Raises
        ------
        UserError
            If there is no such column, a factor has one level, or main effects are aliased.
        """
        names = [
            name.removeprefix(PREFIX) for name in collection.docs.columns if name.startswith(PREFIX)
        ]
        if not names:
            raise UserError(
                "no factors: expected columns factor:NAME of low and high, as ranktilt generate "
                "versions writes them"
            )
        levels = np.stack([_levels(collection, name) for name in names], axis=1)
        if failed and set(failed) >= set(names):
            raise UserError(
                f"no factor is left: {join_words(names)} failed their checks "
                "(in Python, failed_too=True analyses them)"
            )
        low_high = collection.spec.get("design", {}).get("low_high", {})
        factors = []
        for name in names:
            low, high = low_high.get(name, ("low", "high"))
            factors.append(
                DesignedFactor(name=name, low=str(low), high=str(high), analysed=name not in failed)
            )
        rows = np.flatnonzero(~np.isnan(levels).any(axis=1))
        terms, notes = _terms(names, levels[rows], collection.origin_codes()[rows])
        return cls(factors=tuple(factors), levels=levels, terms=terms, notes=tuple(notes))

    def columns(self, rows: Ints, terms: Sequence[DesignTerm]) -> Floats:
        """Return the column of each term, for some documents."""
        levels = self.levels[rows]
        return np.stack([levels[:, list(term.factors)].prod(axis=1) for term in terms], axis=1)

    def is_analysed(self, term: DesignTerm) -> bool:
        """Return whether all factors of a term passed their checks."""
        return all(self.factors[index].analysed for index in term.factors)


def _levels(collection: Collection, name: str) -> Floats:
    """Return a factor's level in each document: −1 for low, 1 for high, NaN without a level."""
    column = collection.docs[PREFIX + name]
    for value in column.unique().to_list():
        if value not in ("low", "high", None):
            raise UserError(f"factor {name!r}: expected low or high, got {value!r}")
    codes = {"low": -1.0, "high": 1.0}
    return np.array([codes.get(value, np.nan) for value in column.to_list()])


def _terms(
    names: Sequence[str], levels: Floats, origin: Ints
) -> tuple[tuple[DesignTerm, ...], list[Note]]:
    """Return the terms whose effects can be separated, and notes on those that cannot.

    `levels` has a row for each version, whose origin is in `origin`. Raises a `UserError` if main
    effects cannot be separated.
    """
    centred = centred_within(levels, origin)
    _check_main_effects(names, levels, centred)
    main_terms = tuple(DesignTerm(name, (index,)) for index, name in enumerate(names))
    pair_terms = [
        DesignTerm(f"{names[a]} × {names[b]}", (a, b))
        for a, b in combinations(range(len(names)), 2)
    ]
    if not pair_terms:
        return main_terms, []
    products = np.stack([levels[:, list(term.factors)].prod(axis=1) for term in pair_terms], axis=1)
    interactions, notes = _interactions(centred, pair_terms, centred_within(products, origin))
    return (*main_terms, *interactions), notes


def _check_main_effects(names: Sequence[str], levels: Floats, centred: Floats) -> None:
    """Raise a `UserError` if a factor does not vary within documents, or follows from others.

    `levels` has a column for each factor, and `centred` the same less the means of each document.
    """
    for name, column, centred_column in zip(names, levels.T, centred.T, strict=True):
        if not centred_column.any():
            reason = "one level in all versions of each document"
            if len(np.unique(column)) < 2:
                reason = "one level only"
            raise UserError(f"factor {name!r} has {reason}: its effect cannot be estimated")
    for a, b in combinations(range(len(names)), 2):
        if abs(_correlation(centred[:, a], centred[:, b])) > _ALIASED_CORRELATION:
            raise UserError(
                f"factors {names[a]!r} and {names[b]!r} are aliased: they change together in every "
                "version"
            )
    if np.linalg.matrix_rank(centred) < len(names):
        raise UserError(f"factors {join_words(names)} are aliased: each follows from the others")


def _interactions(
    centred: Floats, pair_terms: Sequence[DesignTerm], products: Floats
) -> tuple[list[DesignTerm], list[Note]]:
    """Return one term for each set of aliased interactions, and notes.

    There are no terms if interactions cannot be separated from main effects. `centred` and
    `products` are the columns of main effects and of interactions, less the means of each document.
    """
    alias_sets = _alias_sets(products)
    first_of_sets = [indices[0] for indices in alias_sets]
    all_columns = np.column_stack([centred, products[:, first_of_sets]])
    if np.linalg.matrix_rank(all_columns) < all_columns.shape[1]:
        return [], [InteractionsLeftOut()]
    terms, notes = list[DesignTerm](), list[Note]()
    for first, *aliases in alias_sets:
        labels = [pair_terms[first].label]
        for alias in aliases:
            # Levels may be opposite in all versions.
            sign = "" if _correlation(products[:, first], products[:, alias]) > 0 else "−"
            labels.append(f"{sign}{pair_terms[alias].label}")
        terms.append(DesignTerm(" = ".join(labels), pair_terms[first].factors))
        if len(labels) > 1:
            notes.append(InteractionsAliased(interactions=tuple(labels)))
    return terms, notes


def _alias_sets(products: Floats) -> list[list[int]]:
    """Return sets of columns that change together, as indices; constant columns are in none."""
    alias_sets: list[list[int]] = []
    for index, column in enumerate(products.T):
        if not column.any():
            continue
        for alias_set in alias_sets:
            if abs(_correlation(products[:, alias_set[0]], column)) > _ALIASED_CORRELATION:
                alias_set.append(index)
                break
        else:
            alias_sets.append([index])
    return alias_sets


def _correlation(a: Floats, b: Floats) -> float:
    """Return the correlation of two centred columns, their cosine; 0 if one is constant."""
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size > 0 else 0.0


def factor_effects(
    collection: Collection,
    rankers: Sequence[Ranker | Run],
    *,
    adopters: Sequence[float] = (),
    failed_too: bool = False,
) -> FactorEffects:
    """Estimate what each factor of a designed collection does to the ranks of documents.

    Parameters
    ----------
    collection : Collection
        Versions of documents by a design: columns ``factor:NAME`` of ``low`` and ``high``, one
        ``origin`` for all versions of a document.
    rankers : sequence of Ranker or Run
        A ranker's depth is multiplied by the number of versions of a document, so that it retrieves
        as many different documents as usual. Runs are used as they are.
    adopters : sequence of float, optional
        Percentages of the other documents that have an edit too. For each, the result says what
        documents with and without the edit gain or lose.
    failed_too : bool, optional
        Also report factors that failed their checks. By default they are in the regression, but not
        reported.

    Returns
    -------
    FactorEffects
        Effects on rank gap, score gap, head-to-head and nDCG, with Holm's correction over all
        rankers and effects of an estimand.

    Raises
    ------
    UserError
        If there are no factors, or their effects cannot be separated; if no version is judged or
        retrieved.
    """
    if not rankers:
        raise UserError("effects of factors need a ranker")
    for percentage in adopters:
        if not 0 <= percentage <= 100:
            raise UserError(f"adopters: expected percentages from 0 to 100, got {percentage:g}")
    design_spec = collection.spec.get("design", {})
    failed = () if failed_too else tuple(design_spec.get("failed", ()))
    design = FactorDesign.from_collection(collection, failed)
    versions = version_table(collection, design.designed)
    most_versions = int((versions >= 0).sum(axis=1).max(initial=1))
    runs = named_apart(_rank(collection, rankers, most_versions))
    rows: list[FactorEffect] = []
    sources: list[SourceEffect] = []
    adoptions: list[AdoptionEffect] = []
    notes: list[Note] = []
    variations: dict[str, Variation] = {}
    for number, run in enumerate(runs):
        report("effects of factors", number, len(runs))
        standings = Standings(collection=collection, run=run, versions=versions)
        fits = dict(_fits(standings, design))
        for estimand, fit in fits.items():
            rows += effect_rows(fit, design, run.name, estimand)
            sources += source_effects(fit, design, run.name, estimand)
        shares = [percentage / 100 for percentage in adopters]
        adoptions += _adoptions(standings, design, shares)
        variations[run.name] = standings.variation
        notes += _run_notes(standings, fits)
    report("effects of factors", len(runs), len(runs))
    spec = {
        "collection": dict(collection.spec),
        "design": dict(design_spec),
        "runs": [dict(run.spec) for run in runs],
        "adopters": list(adopters),
        "ranktilt": __version__,
    }
    return FactorEffects(
        spec=spec,
        factors=design.factors,
        rows=tuple(corrected_effects(rows)),
        sources=tuple(sources),
        adoptions=tuple(adoptions),
        notes=(*_design_notes(collection, design), *dict.fromkeys(notes)),
        variations=variations,
    )


class EstimandFit(NamedTuple):
    """The regression of one estimand on all terms of the design."""

    regression: WithinFit
    """Coefficients with their errors."""
    outcome: Outcome
    """Values that were regressed."""


def _rank(
    collection: Collection, rankers: Sequence[Ranker | Run], version_count: int
) -> Iterator[Run]:
    """Rank to a depth that is multiplied by the number of versions of a document.

    The run keeps the name of the original ranker.
    """
    for ranker in rankers:
        if isinstance(ranker, Run):
            yield ranker
            continue
        stages = [_multiply_depth(stage, version_count) for stage in stages_of(ranker)]
        deeper = stages[0] if len(stages) == 1 else Pipeline(tuple(stages))
        deeper.check()
        run = check_reranked(deeper.rank(collection), candidates=None, ranker=deeper)
        yield replace(run, spec={**run.spec, "ranker": repr(ranker)})


def _multiply_depth(stage: Any, version_count: int) -> Any:
    """Multiply a stage's depth by the number of versions of a document, if it has a depth."""
    depth = getattr(stage, "k", None)
    return stage if depth is None else replace(stage, k=depth * version_count)


def _fits(standings: Standings, design: FactorDesign) -> Iterator[tuple[str, EstimandFit]]:
    """Yield the regression of each estimand that the run has, on all terms of the design."""
    if not len(standings.rows):
        raise UserError(
            f"{standings.run.name}: no document with two versions is judged relevant and retrieved"
        )
    weights = even_weights(standings.collection)
    outcomes: dict[str, Outcome | None] = {
        PRIMARY: standings.rank_gap(weights),
        "score gap": standings.score_gap(),
        "head-to-head": standings.head_to_head(),
        "nDCG": standings.ndcg(weights),
    }
    for name, outcome in outcomes.items():
        if outcome is not None and len(outcome.values):
            yield name, EstimandFit(fit_outcome(outcome, design, design.terms), outcome)


def fit_outcome(outcome: Outcome, design: FactorDesign, terms: Sequence[DesignTerm]) -> WithinFit:
    """Regress one estimand on the terms of the design, within each document and query."""
    columns = design.columns(outcome.row, terms)
    return regress_within(
        outcome.values,
        columns,
        group=outcome.group,
        query=outcome.query,
        origin=outcome.origin,
    )


def effect_rows(
    fit: EstimandFit, design: FactorDesign, ranker: str, estimand: str
) -> Iterator[FactorEffect]:
    """Yield every effect on an estimand, with p not yet corrected."""
    outcome = fit.outcome
    # An effect is twice its coefficient.
    values, errors, half_widths = fit.regression.combined(2 * np.eye(len(design.terms)))
    query_count, origin_count = len(np.unique(outcome.query)), len(np.unique(outcome.origin))
    is_tested = min(query_count, origin_count) >= _FEWEST
    for index, term in enumerate(design.terms):
        if not design.is_analysed(term):
            continue
        value, half_width = float(values[index]), float(half_widths[index])
        yield FactorEffect(
            ranker=ranker,
            estimand=estimand,
            effect=term.label,
            value=value,
            low=value - half_width,
            high=value + half_width,
            error=float(errors[index]),
            p=fit.regression.p(index) if is_tested else np.nan,
            p_corrected=np.nan,
            detectable=np.nan,
            queries=query_count,
            origins=origin_count,
            versions=len(outcome.values),
        )


def corrected_effects(rows: Sequence[FactorEffect]) -> Iterator[FactorEffect]:
    """Correct p over all rankers and effects of each estimand, which are one table."""
    for estimand in dict.fromkeys(row.estimand for row in rows):
        table = [row for row in rows if row.estimand == estimand]
        ps = correct(np.array([row.p for row in table]))
        test_count = int((~np.isnan(ps)).sum())
        for row, p in zip(table, ps.tolist(), strict=True):
            detectable = detectable_effect(row.error, test_count, min(row.queries, row.origins))
            yield replace(row, p_corrected=p, detectable=detectable)


def source_effects(
    fit: EstimandFit, design: FactorDesign, ranker: str, estimand: str
) -> Iterator[SourceEffect]:
    """Yield the effect of the source before and after other factors are held fixed.

    There are none if the design lacks the factor ``source``, or other factors.
    """
    names = design.names
    if SOURCE not in names or len(names) < 2:
        return
    source = names.index(SOURCE)
    if not design.factors[source].analysed:
        return
    model_text = [
        index
        for index, factor in enumerate(design.factors)
        if factor.name in MODEL_TEXT and factor.analysed
    ]
    # The main effects are the first terms, in the order of the factors.
    source_alone = fit_outcome(fit.outcome, design, [design.terms[source]])
    contrasts: list[tuple[Question, WithinFit, Floats]] = [
        (TOGETHER, fit.regression, _contrast(design, model_text)),
        (SOURCE_ALONE, source_alone, np.array([2.0])),
        (OTHERS_HELD, fit.regression, _contrast(design, [source])),
    ]
    as_is = _source_contrast_with_others_low(design, source)
    if as_is is not None:
        contrasts.append((OTHERS_AS_IS, fit.regression, as_is))
    for question, regression, contrast in contrasts:
        estimate = _estimate(regression, contrast)
        factors = model_text if question == TOGETHER else [source]
        yield SourceEffect(
            ranker=ranker,
            estimand=estimand,
            question=question,
            factors=tuple(names[factor] for factor in factors),
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
        )


def _contrast(design: FactorDesign, factors: Sequence[int]) -> Floats:
    """Return the weights of the coefficients that add up to some factors' main effects.

    `factors` are indices; each main effect is twice its coefficient.
    """
    weights = np.zeros(len(design.terms))
    weights[list(factors)] = 2
    return weights


def _source_contrast_with_others_low(design: FactorDesign, source: int) -> Floats | None:
    """Return the weights of the coefficients that add up to the source's effect with others low.

    None if an interaction of the source is left out or aliased, so that it is unknown.
    """
    interactions = [
        index
        for index, term in enumerate(design.terms)
        if len(term.factors) > 1 and source in term.factors
    ]
    if len(interactions) != len(design.factors) - 1:
        return None
    if any(" = " in design.terms[index].label for index in interactions):
        return None
    weights = _contrast(design, [source])
    weights[interactions] = -2  # the level of the other factor is −1
    return weights


class ContrastEstimate(NamedTuple):
    """A value with its 95 % interval."""

    value: float
    """The estimate."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""


def _estimate(regression: WithinFit, weights: Floats) -> ContrastEstimate:
    """Estimate a weighted sum of the coefficients, with its 95 % interval."""
    values, _, half_widths = regression.combined(weights[None, :])
    value, half_width = float(values[0]), float(half_widths[0])
    return ContrastEstimate(value, value - half_width, value + half_width)


def _adoptions(
    standings: Standings, design: FactorDesign, shares: Sequence[float]
) -> Iterator[AdoptionEffect]:
    """Yield what documents with and without an edit gain in exposure if a share has the edit.

    Both are compared with the unedited document if no document is edited. Exposure is used rather
    than ranks, because the rank of a document that is not retrieved depends on how many are.
    """
    for index, factor in enumerate(design.factors):
        if not factor.analysed or not shares:
            continue
        levels = design.levels[:, index]
        without_edits = standings.exposure(adoption_weights(standings.collection, levels, 0.0))
        is_edited = levels[without_edits.row] > 0
        contrast = _contrast(design, [index])
        for share in shares:
            weights = adoption_weights(standings.collection, levels, share)
            values = standings.exposure(weights).values
            # Edited versions among others of which a share is edited, unedited ones among none.
            compared = np.where(is_edited, values, without_edits.values)
            outcome = without_edits._replace(values=compared)
            with_edit = _estimate(fit_outcome(outcome, design, design.terms), contrast)
            change = values - without_edits.values
            without_edit = _mean_change(without_edits, change, ~is_edited)
            for edited, estimate in ((True, with_edit), (False, without_edit)):
                yield AdoptionEffect(
                    ranker=standings.run.name,
                    factor=factor.name,
                    share=float(share),
                    edited=edited,
                    value=estimate.value,
                    low=estimate.low,
                    high=estimate.high,
                )


def _mean_change(
    outcome: Outcome, change: Floats, is_counted: npt.NDArray[np.bool_]
) -> ContrastEstimate:
    """Return the mean change of some versions; its interval is clustered by query and document.

    `outcome` has the query and origin of each version.
    """
    change, query, origin = (
        change[is_counted],
        outcome.query[is_counted],
        outcome.origin[is_counted],
    )
    value = float(change.mean())
    error = float(clustered_errors((change - value)[:, None] / len(change), query, origin)[0])
    freedom = min(len(np.unique(query)), len(np.unique(origin))) - 1
    half_width = float(special.stdtrit(max(freedom, 1), 0.975)) * error
    return ContrastEstimate(value, value - half_width, value + half_width)


def _design_notes(collection: Collection, design: FactorDesign) -> Iterator[Note]:
    """Yield notes that hold for every ranker: on the design, and on missing judgments."""
    yield from design.notes
    failed = tuple(factor.name for factor in design.factors if not factor.analysed)
    if failed:
        yield FactorsNotReported(factors=failed)
    if not collection.qrels.height:
        yield VersionsNotJudged()


def _run_notes(standings: Standings, fits: Mapping[str, EstimandFit]) -> Iterator[Note]:
    """Yield notes on one run: what it leaves out, and what it is too small for."""
    name, outcome = standings.run.name, fits[PRIMARY].outcome
    variation = standings.variation
    if not variation.enough:
        yield NoFactorCouldMove(run=name, total=variation.total, fixed=counts_of(variation.fixed))
    if standings.left_out:
        documents = standings.left_out + len(standings.rows)
        yield DocumentsNotRetrieved(run=name, left_out=standings.left_out, documents=documents)
    if standings.absent > _ABSENT_SHARE:
        yield VersionsNotRetrieved(run=name, share=standings.absent, is_cut=bool(standings.cut))
    if "score gap" not in fits:
        yield NoScoreGap(run=name)
    queries, documents = len(np.unique(outcome.query)), len(np.unique(outcome.origin))
    if min(queries, documents) < _FEWEST:
        yield FewToTest(run=name, queries=queries, documents=documents)
