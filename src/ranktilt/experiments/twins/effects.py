"""What each factor of a designed collection does to ranks: main effects, interactions, and what is left of the source.

The levels of factors are coded −1 (low: as is) and 1 (high), and an effect is twice its
coefficient, so that a main effect is the mean of the high versions less that of the low ones (Box,
Hunter & Hunter, Statistics for Experimenters, 2nd ed. 2005, ch. 5). Versions are compared within
one document under one query; errors are clustered by query and document (Cameron, Gelbach & Miller
2011).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from ranktilt._version import __version__
from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted, join_words
from ranktilt.experiments.twins.outcomes import (
    Outcome,
    Standings,
    adopted_weights,
    even_weights,
    version_table,
)
from ranktilt.experiments.twins.result import (
    ALONE,
    AS_IS,
    HELD,
    MODEL_TEXT,
    PRIMARY,
    SOURCE,
    TOGETHER,
    AdoptionEffect,
    DesignedFactor,
    FactorEffect,
    FactorEffects,
    Question,
    SourceEffect,
)
from ranktilt.progress import report
from ranktilt.rankers.base import Pipeline, Ranker, stages_of
from ranktilt.rankers.candidates import check_reranked
from ranktilt.run import Run, named_apart
from ranktilt.statistics.correction import correct, detectable_effect
from ranktilt.statistics.fixed_effects import WithinFit, regress_within, within
from ranktilt.statistics.regression import clustered_errors
from ranktilt.statistics.variation import Variation

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PREFIX = "factor:"
_ALIASED = 1 - 1e-9
_FEWEST = 10
"""Queries, and documents, below which nothing is tested."""
_ABSENT = 0.05
"""Share of versions that were not retrieved from which it is said."""


class DesignTerm(NamedTuple):
    """A column of the regression: a factor, or the product of two, with all that it cannot be told apart from."""

    label: str
    factors: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class FactorDesign:
    """The factors of a designed collection: levels −1 and 1 by document row, NaN where a document has none."""

    factors: tuple[DesignedFactor, ...]
    levels: Floats
    terms: tuple[DesignTerm, ...]
    """Main effects, then interactions."""
    notes: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.factors]

    @property
    def designed(self) -> npt.NDArray[np.bool_]:
        held: npt.NDArray[np.bool_] = np.isfinite(self.levels.sum(axis=1))
        return held

    @classmethod
    def of(cls, collection: Collection, failed: Sequence[str] = ()) -> FactorDesign:
        """Read the columns ``factor:*``; `failed` names the factors of which no effect is told.

        `UserError` where there is no such column, a factor has one level, or factors cannot be told
        apart.
        """
        names = [
            name.removeprefix(PREFIX) for name in collection.docs.columns if name.startswith(PREFIX)
        ]
        if not names:
            raise UserError(
                "no factors: expected columns factor:NAME of low and high, as ranktilt twins makes them"
            )
        levels = np.stack([_levels(collection, name) for name in names], axis=1)
        if failed and set(failed) >= set(names):
            failures = f"{join_words(names)} failed their checks (--failed-too analyses them)"
            raise UserError(f"no factor is left: {failures}")
        told = collection.spec.get("design", {}).get("low_high", {})
        ends = {name: tuple(map(str, told.get(name, ("low", "high")))) for name in names}
        factors = tuple(
            DesignedFactor(name, ends[name][0], ends[name][1], name not in failed) for name in names
        )
        designed = np.flatnonzero(~np.isnan(levels).any(axis=1))
        origin = collection.origin_codes()[designed]
        terms, notes = _terms(names, within(levels[designed], origin), levels[designed], origin)
        return cls(factors, levels, terms, tuple(notes))

    def columns(self, rows: Ints, terms: Sequence[DesignTerm]) -> Floats:
        """Columns of the regression for some documents."""
        held = self.levels[rows]
        return np.stack([held[:, list(term.factors)].prod(axis=1) for term in terms], axis=1)

    def analysed(self, term: DesignTerm) -> bool:
        """Whether none of a term's factors failed its check."""
        return all(self.factors[number].analysed for number in term.factors)


def _levels(collection: Collection, name: str) -> Floats:
    column = collection.docs[PREFIX + name]
    strange = next(
        (value for value in column.unique().to_list() if value not in ("low", "high", None)), None
    )
    if strange is not None:
        raise UserError(f"factor {name!r}: expected low or high, got {strange!r}")
    codes = {"low": -1.0, "high": 1.0}
    return np.array([codes.get(value, np.nan) for value in column.to_list()])


def _terms(
    names: Sequence[str], centred: Floats, levels: Floats, origin: Ints
) -> tuple[tuple[DesignTerm, ...], list[str]]:
    """Find which effects can be told apart within documents; `UserError` where main effects cannot."""
    for name, column, whole in zip(names, centred.T, levels.T, strict=True):
        if not column.any():
            held = (
                "one level only"
                if len(np.unique(whole)) < 2
                else "one level in all versions of each document"
            )
            raise UserError(f"factor {name!r} has {held}: its effect cannot be estimated")
    for (one, a), (other, b) in combinations(zip(names, centred.T, strict=True), 2):
        if abs(_correlation(a, b)) > _ALIASED:
            raise UserError(
                f"factors {one!r} and {other!r} are aliased: they change together in every version"
            )
    if np.linalg.matrix_rank(centred) < len(names):
        raise UserError(f"factors {join_words(names)} are aliased: each follows from the others")
    mains = tuple(DesignTerm(name, (number,)) for number, name in enumerate(names))
    pairs = [
        DesignTerm(f"{names[a]} × {names[b]}", (a, b))
        for a, b in combinations(range(len(names)), 2)
    ]
    if not pairs:
        return mains, []
    products = within(
        np.stack([levels[:, list(pair.factors)].prod(axis=1) for pair in pairs], axis=1), origin
    )
    interactions, notes = _interactions(mains, centred, pairs, products)
    return (*mains, *interactions), notes


def _interactions(
    mains: Sequence[DesignTerm], centred: Floats, pairs: Sequence[DesignTerm], products: Floats
) -> tuple[list[DesignTerm], list[str]]:
    """Join interactions that change together; leave out all where they cannot be told from main effects."""
    sets: list[list[int]] = []
    for number, column in enumerate(products.T):
        if not column.any():
            continue
        alias = next(
            (one for one in sets if abs(_correlation(products[:, one[0]], column)) > _ALIASED), None
        )
        if alias is None:
            sets.append([number])
        else:
            alias.append(number)
    first = [one[0] for one in sets]
    together = np.column_stack([centred, products[:, first]])
    if np.linalg.matrix_rank(together) < together.shape[1]:
        confounded = "main effects are read free of two-factor interactions, which this design cannot tell from them"
        return [], [f"Interactions are left out: {confounded}."]
    found, notes = [], []
    for one in sets:
        names = [pairs[one[0]].label]
        for other in one[1:]:
            sign = "" if _correlation(products[:, one[0]], products[:, other]) > 0 else "−"
            names.append(f"{sign}{pairs[other].label}")
        found.append(DesignTerm(" = ".join(names), pairs[one[0]].factors))
        if len(names) > 1:
            notes.append(
                f"This design cannot tell apart {join_words(names)}: one number is their sum."
            )
    return found, notes


def _correlation(a: Floats, b: Floats) -> float:
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
        Shares of all other documents, 0 to 1, that have an edit too: what it then does to the
        document that has it, and to one that has not.
    failed_too : bool, optional
        Analyse factors that failed their checks too; by default they are held in the regression and
        not told.

    Returns
    -------
    FactorEffects
        Effects on rank gap, score gap, head-to-head and nDCG, Holm-corrected within each estimand
        over all rankers and effects.

    Raises
    ------
    UserError
        If there are no factors, or their effects cannot be told apart; if no version is judged or
        retrieved.
    """
    if not rankers:
        raise UserError("effects of factors need a ranker")
    strange = next((share for share in adopters if not 0 <= share <= 1), None)
    if strange is not None:
        raise UserError(f"adopters: expected shares from 0 to 1, got {strange:g}")
    told = collection.spec.get("design", {})
    design = FactorDesign.of(collection, () if failed_too else tuple(told.get("failed", ())))
    table = version_table(collection, design.designed)
    runs = named_apart(_ranked(collection, rankers, int((table >= 0).sum(axis=1).max(initial=1))))
    rows, sources, adoptions, notes = (
        list[FactorEffect](),
        list[SourceEffect](),
        list[AdoptionEffect](),
        list[str](),
    )
    variations = dict[str, Variation]()
    for number, run in enumerate(runs):
        report("effects of factors", number, len(runs))
        standing = Standings(collection, run, table)
        fits = dict(_fits(standing, design))
        for estimand, fit in fits.items():
            rows += _rows(fit, design, (run.name, estimand))
            sources += _sources(fit, design, (run.name, estimand))
        adoptions += _adoptions(standing, design, adopters)
        variations[run.name] = standing.variation
        notes += _notes(standing, fits)
    report("effects of factors", len(runs), len(runs))
    spec = {
        "collection": dict(collection.spec),
        "design": dict(told),
        "rankers": [repr(one) for one in rankers],
        "adopters": list(adopters),
        "ranktilt": __version__,
    }
    return FactorEffects(
        spec,
        design.factors,
        tuple(_corrected(rows)),
        tuple(sources),
        tuple(adoptions),
        (*_about(collection, design), *dict.fromkeys(notes)),
        variations,
    )


class EstimandFit(NamedTuple):
    """A regression on one estimand, and what it was of."""

    whole: WithinFit
    outcome: Outcome


def _ranked(
    collection: Collection, rankers: Sequence[Ranker | Run], versions: int
) -> Iterator[Run]:
    """Rank as many times deeper as a document has versions; what is found keeps the ranker's own name."""
    for one in rankers:
        if isinstance(one, Run):
            yield one
            continue
        deep = [
            replace(stage, k=stage.k * versions) if getattr(stage, "k", None) else stage  # type: ignore[type-var, attr-defined]
            for stage in stages_of(one)
        ]
        whole = deep[0] if len(deep) == 1 else Pipeline(tuple(deep))
        whole.check()
        run = check_reranked(whole.rank(collection), None, whole)
        yield replace(run, spec={**run.spec, "ranker": repr(one)})


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
            yield name, EstimandFit(_fit(outcome, design, design.terms), outcome)


def _fit(outcome: Outcome, design: FactorDesign, terms: Sequence[DesignTerm]) -> WithinFit:
    columns = design.columns(outcome.row, terms)
    return regress_within(outcome.values, columns, outcome.group, outcome.query, outcome.origin)


def _rows(fit: EstimandFit, design: FactorDesign, of: tuple[str, str]) -> Iterator[FactorEffect]:
    """Every effect on an estimand, not yet corrected."""
    whole, outcome = fit
    values, errors, halves = whole.combined(2 * np.eye(len(design.terms)))
    counts = (len(np.unique(outcome.query)), len(np.unique(outcome.origin)), len(outcome.values))
    few = min(counts[:2]) < _FEWEST
    for number, term in enumerate(design.terms):
        if design.analysed(term):
            value, half = float(values[number]), float(halves[number])
            p = np.nan if few else whole.p(number)
            yield FactorEffect(
                *of,
                term.label,
                value,
                value - half,
                value + half,
                float(errors[number]),
                p,
                np.nan,
                np.nan,
                *counts,
            )


def _corrected(rows: Sequence[FactorEffect]) -> Iterator[FactorEffect]:
    """Correct over all rankers and effects of an estimand, which is one table."""
    for estimand in dict.fromkeys(row.estimand for row in rows):
        family = [row for row in rows if row.estimand == estimand]
        ps = correct(np.array([row.p for row in family]))
        tests = int((~np.isnan(ps)).sum())
        for row, p in zip(family, ps.tolist(), strict=True):
            least = detectable_effect(row.error, tests, min(row.queries, row.origins))
            yield replace(row, p_corrected=p, detectable=least)


def _sources(fit: EstimandFit, design: FactorDesign, of: tuple[str, str]) -> Iterator[SourceEffect]:
    """The source before and after other factors are held; nothing without a factor ``source`` and another one."""
    names, terms = design.names, design.terms
    if SOURCE not in names or len(names) < 2 or not design.factors[names.index(SOURCE)].analysed:
        return
    own = names.index(SOURCE)
    parts = [n for n, name in enumerate(names) if name in MODEL_TEXT and design.factors[n].analysed]
    main, together, as_is = np.zeros(len(terms)), np.zeros(len(terms)), np.zeros(len(terms))
    main[own], together[parts] = 2, 2
    interactions = [n for n, term in enumerate(terms) if len(term.factors) > 1]
    mine = [n for n in interactions if own in terms[n].factors]
    as_is[own], as_is[mine] = 2, -2
    contrasts: list[tuple[Question, WithinFit, Floats]] = [
        (TOGETHER, fit.whole, together),
        (ALONE, _fit(fit.outcome, design, terms[own : own + 1]), np.array([2.0])),
        (HELD, fit.whole, main),
    ]
    if len(mine) == len(names) - 1 and not any(" = " in terms[n].label for n in mine):
        contrasts.append((AS_IS, fit.whole, as_is))
    for question, whole, weights in contrasts:
        value, _, half = (float(one[0]) for one in whole.combined(weights[None, :]))
        factors = tuple(names[n] for n in (parts if question == TOGETHER else [own]))
        yield SourceEffect(*of, question, factors, value, value - half, value + half)


def _adoptions(
    standing: Standings, design: FactorDesign, shares: Sequence[float]
) -> Iterator[AdoptionEffect]:
    """What each edit does to the exposure of who makes it, and of who does not, as a share of all others makes it.

    Both are held against the unedited document where nobody edits. Exposure and not ranks, because
    how deep a document stands that is not retrieved depends on how many others are.
    """
    for number, factor in enumerate(design.factors):
        if not factor.analysed or not shares:
            continue
        levels = design.levels[:, number]
        nobody = standing.exposure(adopted_weights(standing.collection, levels, 0.0))
        edited = levels[nobody.row] > 0
        weights = np.zeros((1, len(design.terms)))
        weights[0, number] = 2
        for share in shares:
            others = standing.exposure(adopted_weights(standing.collection, levels, share)).values
            of = (standing.run.name, factor.name, float(share))
            gain = nobody._replace(values=np.where(edited, others, nobody.values))
            value, _, half = (
                float(one[0]) for one in _fit(gain, design, design.terms).combined(weights)
            )
            yield AdoptionEffect(*of, True, value, value - half, value + half)
            yield AdoptionEffect(*of, False, *_mean(nobody, others - nobody.values, ~edited))


def _mean(
    outcome: Outcome, change: Floats, which: npt.NDArray[np.bool_]
) -> tuple[float, float, float]:
    """Mean of some versions' change, with its 95 % interval, clustered by query and document."""
    change, query, origin = change[which], outcome.query[which], outcome.origin[which]
    value = float(change.mean())
    error = float(clustered_errors((change - value)[:, None] / len(change), query, origin)[0])
    freedom = min(len(np.unique(query)), len(np.unique(origin))) - 1
    half = float(special.stdtrit(max(freedom, 1), 0.975)) * error
    return value, value - half, value + half


def _about(collection: Collection, design: FactorDesign) -> Iterator[str]:
    """What was compared, for every ranker."""
    yield from design.notes
    failed = [factor.name for factor in design.factors if not factor.analysed]
    if failed:
        yield f"Not told, because their checks failed: {join_words(failed)}; they are held in the regression."
    if not collection.qrels.height:
        yield "Nothing is judged: all documents of which a version is retrieved are compared, and there is no nDCG."


def _notes(standing: Standings, fits: Mapping[str, EstimandFit]) -> Iterator[str]:
    """What a reader should know of one run."""
    name, outcome = standing.run.name, fits[PRIMARY].outcome
    if not standing.variation.enough:
        yield f"warning: {name}: {standing.variation.words}; no factor could move a document there"
    if standing.left_out:
        every = standing.left_out + len(standing.rows)
        pairs = (
            f"{standing.left_out:,} of {counted(every, 'relevant document', 'relevant documents')}"
        )
        yield f"{name}: {pairs}, query by query, have no version that is retrieved: they say nothing of the factors."
    if standing.absent > _ABSENT:
        share = f"{100 * standing.absent:.0f} %"
        hint = ": rank deeper (@k)" if standing.cut else ""
        yield f"{name}: {share} of these versions are not retrieved and stand below all that are{hint}."
    if "score gap" not in fits:
        yield f"{name}: no score gap: its scores say no more than an order, or no document has all versions retrieved."
    if min(len(np.unique(outcome.query)), len(np.unique(outcome.origin))) < _FEWEST:
        pair = (
            counted(len(np.unique(outcome.query)), "query", "queries"),
            counted(len(np.unique(outcome.origin)), "document", "documents"),
        )
        yield f"{name}: {' and '.join(pair)} are too few to test."
