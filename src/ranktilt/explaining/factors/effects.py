"""Effects of the factors of a designed collection on ranks, and what is left of the source.

The levels of factors are coded −1 (low: as is) and 1 (high), and an effect is twice its
coefficient, so that a main effect is the mean of the high versions minus that of the low ones (Box,
Hunter & Hunter, Statistics for Experimenters, 2nd ed. 2005, ch. 5). Versions are compared within
one document under one query; errors are clustered by query and document (Cameron, Gelbach & Miller
2011).
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
    adopted_weights,
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
from ranktilt.statistics.fixed_effects import WithinFit, centred_within, regress_within
from ranktilt.statistics.regression import clustered_errors
from ranktilt.statistics.variation import Variation

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_ALIASED_CORRELATION = 1 - 1e-9
"""Correlation above which two columns change together, rounding aside."""
_FEWEST = 10
"""Queries, and documents, below which nothing is tested."""
_ABSENT_SHARE = 0.05
"""Share of versions that were not retrieved, from which on a note says so."""


class DesignTerm(NamedTuple):
    """A column of the regression: a factor, or the product of two; its label names aliases."""

    label: str
    """Name of the effect, with those that cannot be told apart from it."""
    factors: tuple[int, ...]
    """Numbers of the factors whose product is the column."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FactorDesign:
    """The factors of a designed collection: −1 and 1 by document row, NaN for no level."""

    factors: tuple[DesignedFactor, ...]
    """The factors, in the order of the columns of `levels`."""
    levels: Floats
    """Level of each factor in each document: (n_docs, n_factors)."""
    terms: tuple[DesignTerm, ...]
    """Main effects, then interactions."""
    notes: tuple[Note, ...]
    """What cannot be told apart."""

    @property
    def names(self) -> list[str]:
        """Names of the factors."""
        return [factor.name for factor in self.factors]

    @property
    def designed(self) -> npt.NDArray[np.bool_]:
        """Tell which documents have a level of every factor."""
        is_designed: npt.NDArray[np.bool_] = np.isfinite(self.levels.sum(axis=1))
        return is_designed

    @classmethod
    def from_collection(cls, collection: Collection, failed: Sequence[str] = ()) -> FactorDesign:
        """Read the columns ``factor:*``; `failed` names the factors whose effects are not reported.

        `UserError` where there is no such column, a factor has one level, or factors cannot be told
        apart.
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
        """Return the columns of the regression for some documents."""
        levels = self.levels[rows]
        return np.stack([levels[:, list(term.factors)].prod(axis=1) for term in terms], axis=1)

    def analysed(self, term: DesignTerm) -> bool:
        """Return whether all of a term's factors passed their checks."""
        return all(self.factors[number].analysed for number in term.factors)


def _levels(collection: Collection, name: str) -> Floats:
    """Return a factor's level in each document."""
    column = collection.docs[PREFIX + name]
    for value in column.unique().to_list():
        if value not in ("low", "high", None):
            raise UserError(f"factor {name!r}: expected low or high, got {value!r}")
    codes = {"low": -1.0, "high": 1.0}
    return np.array([codes.get(value, np.nan) for value in column.to_list()])


def _terms(
    names: Sequence[str], levels: Floats, origin: Ints
) -> tuple[tuple[DesignTerm, ...], list[Note]]:
    """Find which effects can be told apart; `UserError` where main effects cannot."""
    centred = centred_within(levels, origin)
    _check_main_effects(names, levels, centred)
    mains = tuple(DesignTerm(name, (number,)) for number, name in enumerate(names))
    pairs = [
        DesignTerm(f"{names[a]} × {names[b]}", (a, b))
        for a, b in combinations(range(len(names)), 2)
    ]
    if not pairs:
        return mains, []
    products = np.stack([levels[:, list(pair.factors)].prod(axis=1) for pair in pairs], axis=1)
    interactions, notes = _interactions(centred, pairs, centred_within(products, origin))
    return (*mains, *interactions), notes


def _check_main_effects(names: Sequence[str], levels: Floats, centred: Floats) -> None:
    """Raise a `UserError` if a factor never varies, or varies only with others."""
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
    centred: Floats, pairs: Sequence[DesignTerm], products: Floats
) -> tuple[list[DesignTerm], list[Note]]:
    """Join interactions that change together; none where they are mixed with main effects."""
    alias_sets = _alias_sets(products)
    first = [numbers[0] for numbers in alias_sets]
    together = np.column_stack([centred, products[:, first]])
    if np.linalg.matrix_rank(together) < together.shape[1]:
        return [], [InteractionsLeftOut()]
    terms, notes = list[DesignTerm](), list[Note]()
    for numbers in alias_sets:
        column = products[:, numbers[0]]
        labels = [pairs[numbers[0]].label]
        for alias in numbers[1:]:
            sign = "" if _correlation(column, products[:, alias]) > 0 else "−"
            labels.append(f"{sign}{pairs[alias].label}")
        terms.append(DesignTerm(" = ".join(labels), pairs[numbers[0]].factors))
        if len(labels) > 1:
            notes.append(InteractionsAliased(interactions=tuple(labels)))
    return terms, notes


def _alias_sets(products: Floats) -> list[list[int]]:
    """Group the columns that change together; columns that never change are in no group."""
    alias_sets: list[list[int]] = []
    for number, column in enumerate(products.T):
        if not column.any():
            continue
        for numbers in alias_sets:
            if abs(_correlation(products[:, numbers[0]], column)) > _ALIASED_CORRELATION:
                numbers.append(number)
                break
        else:
            alias_sets.append([number])
    return alias_sets


def _correlation(a: Floats, b: Floats) -> float:
    """Return the cosine of two columns; 0 where one never changes."""
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
        Rankers search as many times deeper as a document has versions; runs are taken as they are.
    adopters : sequence of float, optional
        Percentages of all other documents that also have an edit, to see what it then does to
        documents with and without it.
    failed_too : bool, optional
        Also report factors that failed their checks; by default the regression only holds them
        constant.

    Returns
    -------
    FactorEffects
        Effects on rank gap, score gap, head-to-head and nDCG, Holm-corrected within each estimand
        over all rankers and effects.

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
    described = collection.spec.get("design", {})
    failed = () if failed_too else tuple(described.get("failed", ()))
    design = FactorDesign.from_collection(collection, failed)
    table = version_table(collection, design.designed)
    most_versions = int((table >= 0).sum(axis=1).max(initial=1))
    runs = named_apart(_ranked(collection, rankers, most_versions))
    rows: list[FactorEffect] = []
    sources: list[SourceEffect] = []
    adoptions: list[AdoptionEffect] = []
    notes: list[Note] = []
    variations: dict[str, Variation] = {}
    for number, run in enumerate(runs):
        report("effects of factors", number, len(runs))
        standing = Standings(collection=collection, run=run, versions=table)
        fits = dict(_fits(standing, design))
        for estimand, fit in fits.items():
            rows += effect_rows(fit, design, run.name, estimand)
            sources += source_effects(fit, design, run.name, estimand)
        shares = [percentage / 100 for percentage in adopters]
        adoptions += _adoptions(standing, design, shares)
        variations[run.name] = standing.variation
        notes += _notes(standing, fits)
    report("effects of factors", len(runs), len(runs))
    spec = {
        "collection": dict(collection.spec),
        "design": dict(described),
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
        notes=(*_about(collection, design), *dict.fromkeys(notes)),
        variations=variations,
    )


class EstimandFit(NamedTuple):
    """The regression of one estimand on all terms of the design."""

    regression: WithinFit
    """Coefficients with their errors."""
    outcome: Outcome
    """Values that were regressed."""


def _ranked(
    collection: Collection, rankers: Sequence[Ranker | Run], versions: int
) -> Iterator[Run]:
    """Rank to a depth that is multiplied by the versions of a document.

    The run keeps the ranker's own name.
    """
    for ranker in rankers:
        if isinstance(ranker, Run):
            yield ranker
            continue
        stages = [_deeper(stage, versions) for stage in stages_of(ranker)]
        deeper = stages[0] if len(stages) == 1 else Pipeline(tuple(stages))
        deeper.check()
        run = check_reranked(deeper.rank(collection), None, deeper)
        yield replace(run, spec={**run.spec, "ranker": repr(ranker)})


def _deeper(stage: Any, versions: int) -> Any:
    """Multiply a stage's depth by the versions of a document, if it has a depth."""
    depth = getattr(stage, "k", None)
    return stage if depth is None else replace(stage, k=depth * versions)


def _fits(standing: Standings, design: FactorDesign) -> Iterator[tuple[str, EstimandFit]]:
    """Regress each estimand that the run has on all terms of the design."""
    if not len(standing.rows):
        raise UserError(
            f"{standing.run.name}: no document with two versions is judged relevant and retrieved"
        )
    weights = even_weights(standing.collection)
    outcomes: dict[str, Outcome | None] = {
        PRIMARY: standing.rank_gap(weights),
        "score gap": standing.score_gap(),
        "head-to-head": standing.head_to_head(),
        "nDCG": standing.ndcg(weights),
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
    """Return every effect on an estimand, not yet corrected."""
    outcome = fit.outcome
    values, errors, half_widths = fit.regression.combined(2 * np.eye(len(design.terms)))
    query_count, origin_count = len(np.unique(outcome.query)), len(np.unique(outcome.origin))
    is_tested = min(query_count, origin_count) >= _FEWEST
    for number, term in enumerate(design.terms):
        if not design.analysed(term):
            continue
        value, half_width = float(values[number]), float(half_widths[number])
        yield FactorEffect(
            ranker=ranker,
            estimand=estimand,
            effect=term.label,
            value=value,
            low=value - half_width,
            high=value + half_width,
            error=float(errors[number]),
            p=fit.regression.p(number) if is_tested else np.nan,
            p_corrected=np.nan,
            detectable=np.nan,
            queries=query_count,
            origins=origin_count,
            versions=len(outcome.values),
        )


def corrected_effects(rows: Sequence[FactorEffect]) -> Iterator[FactorEffect]:
    """Correct over all rankers and effects of an estimand, which is one table."""
    for estimand in dict.fromkeys(row.estimand for row in rows):
        family = [row for row in rows if row.estimand == estimand]
        ps = correct(np.array([row.p for row in family]))
        tests = int((~np.isnan(ps)).sum())
        for row, p in zip(family, ps.tolist(), strict=True):
            least = detectable_effect(row.error, tests, min(row.queries, row.origins))
            yield replace(row, p_corrected=p, detectable=least)


def source_effects(
    fit: EstimandFit, design: FactorDesign, ranker: str, estimand: str
) -> Iterator[SourceEffect]:
    """Return the effect of the source before and after other factors are held fixed.

    Nothing where the design does not have both.
    """
    names = design.names
    if SOURCE not in names or len(names) < 2:
        return
    source = names.index(SOURCE)
    if not design.factors[source].analysed:
        return
    model_text = [
        number
        for number, factor in enumerate(design.factors)
        if factor.name in MODEL_TEXT and factor.analysed
    ]
    alone = fit_outcome(fit.outcome, design, design.terms[source : source + 1])
    contrasts: list[tuple[Question, WithinFit, Floats]] = [
        (TOGETHER, fit.regression, _weights(design, model_text)),
        (SOURCE_ALONE, alone, np.array([2.0])),
        (OTHERS_HELD, fit.regression, _weights(design, [source])),
    ]
    as_is = _source_where_others_are_as_is(design, source)
    if as_is is not None:
        contrasts.append((OTHERS_AS_IS, fit.regression, as_is))
    for question, regression, weights in contrasts:
        estimate = _estimate(regression, weights)
        numbers = model_text if question == TOGETHER else [source]
        yield SourceEffect(
            ranker=ranker,
            estimand=estimand,
            question=question,
            factors=tuple(names[number] for number in numbers),
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
        )


def _weights(design: FactorDesign, mains: Sequence[int]) -> Floats:
    """Return the contrast of some factors high less low: twice the coefficient of each."""
    weights = np.zeros(len(design.terms))
    weights[list(mains)] = 2
    return weights


def _source_where_others_are_as_is(design: FactorDesign, source: int) -> Floats | None:
    """Return the contrast of the source where all others are low; None if that is aliased."""
    interactions = [
        number
        for number, term in enumerate(design.terms)
        if len(term.factors) > 1 and source in term.factors
    ]
    if len(interactions) != len(design.factors) - 1:
        return None
    if any(" = " in design.terms[number].label for number in interactions):
        return None
    weights = _weights(design, [source])
    weights[interactions] = -2
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
    standing: Standings, design: FactorDesign, shares: Sequence[float]
) -> Iterator[AdoptionEffect]:
    """Return what an edit does to the exposure of who makes it, and of who does not.

    Both are compared with the unedited document where nobody edits. Exposure is used rather than
    ranks, because the rank below all retrieved documents depends on how many are retrieved.
    """
    for number, factor in enumerate(design.factors):
        if not factor.analysed or not shares:
            continue
        levels = design.levels[:, number]
        nobody = standing.exposure(adopted_weights(standing.collection, levels, 0.0))
        is_edited = levels[nobody.row] > 0
        weights = _weights(design, [number])
        for share in shares:
            weights_of_others = adopted_weights(standing.collection, levels, share)
            values = standing.exposure(weights_of_others).values
            gain = nobody._replace(values=np.where(is_edited, values, nobody.values))
            with_edit = _estimate(fit_outcome(gain, design, design.terms), weights)
            without = _mean(nobody, values - nobody.values, ~is_edited)
            for edited, estimate in ((True, with_edit), (False, without)):
                yield AdoptionEffect(
                    ranker=standing.run.name,
                    factor=factor.name,
                    share=float(share),
                    edited=edited,
                    value=estimate.value,
                    low=estimate.low,
                    high=estimate.high,
                )


def _mean(outcome: Outcome, change: Floats, which: npt.NDArray[np.bool_]) -> ContrastEstimate:
    """Return the mean change of some versions; its interval is clustered by query and document."""
    change, query, origin = change[which], outcome.query[which], outcome.origin[which]
    value = float(change.mean())
    error = float(clustered_errors((change - value)[:, None] / len(change), query, origin)[0])
    freedom = min(len(np.unique(query)), len(np.unique(origin))) - 1
    half_width = float(special.stdtrit(max(freedom, 1), 0.975)) * error
    return ContrastEstimate(value, value - half_width, value + half_width)


def _about(collection: Collection, design: FactorDesign) -> Iterator[Note]:
    """Note what was compared, for every ranker."""
    yield from design.notes
    failed = tuple(factor.name for factor in design.factors if not factor.analysed)
    if failed:
        yield FactorsNotReported(factors=failed)
    if not collection.qrels.height:
        yield VersionsNotJudged()


def _notes(standing: Standings, fits: Mapping[str, EstimandFit]) -> Iterator[Note]:
    """Note what a reader should know of one run."""
    name, outcome = standing.run.name, fits[PRIMARY].outcome
    variation = standing.variation
    if not variation.enough:
        yield NoFactorCouldMove(run=name, total=variation.total, fixed=counts_of(variation.fixed))
    if standing.left_out:
        documents = standing.left_out + len(standing.rows)
        yield DocumentsNotRetrieved(run=name, left_out=standing.left_out, documents=documents)
    if standing.absent > _ABSENT_SHARE:
        yield VersionsNotRetrieved(run=name, share=standing.absent, is_cut=bool(standing.cut))
    if "score gap" not in fits:
        yield NoScoreGap(run=name)
    queries, documents = len(np.unique(outcome.query)), len(np.unique(outcome.origin))
    if min(queries, documents) < _FEWEST:
        yield FewToTest(run=name, queries=queries, documents=documents)
