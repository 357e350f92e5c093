"""Which properties go with the gap between groups that are no twins, run by run.

A *list* is a query's ranking. An *outcome* says how high a document is in its list: by score (in
standard deviations of the list's scores), by rank, or whether it is among the first k. Each outcome
is regressed on the group with an effect of the query. The *gap* is the coefficient of the group. It
changes once the properties are in the regression, and that change is split into *parts*, one for
each property (Gelbach 2016; see `ranktilt.statistics.regression.gelbach`). This shows correlation:
a ranker may use something that comes with a property.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from ranktilt.auditing.grouping.pairs import grouped_pairs, twin_rows
from ranktilt.auditing.groups import Groups, Pair
from ranktilt.auditing.storage.provenance import audit_provenance
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run, named_apart, require_runs
from ranktilt.errors import UserError
from ranktilt.explaining.properties.outcomes import RunEntries
from ranktilt.explaining.properties.result import (
    FEWEST,
    ExplainedGap,
    ExplainedGaps,
    GapPart,
    LeftOutProperty,
    ListCoverage,
)
from ranktilt.explaining.properties.rows import GroupedProperties, PairRows
from ranktilt.explaining.properties.values import PropertyName, has_texts, measure_properties
from ranktilt.field_checks import require_seed, require_whole_number
from ranktilt.progress import report
from ranktilt.statistics.correction import correct, detectable_effect
from ranktilt.statistics.regression.gelbach import DRAWS, Decomposition, PropertyShare, decompose

CUTOFF = 10
"""Default number of ranks that count as the first ones."""


@dataclass(frozen=True, kw_only=True)
class GapOptions:
    """How gaps are split into parts."""

    cutoff: int
    """Number of ranks that count as the first ones, in the outcome ``first ranks``."""
    draws: int
    """Number of random draws of all estimates together, for the intervals of parts."""
    seed: int
    """Random seed of the draws."""
    correction: str
    """Correction of p-values: ``holm`` or ``bonferroni``."""

    def __post_init__(self) -> None:
        """Refuse numbers that no explanation takes."""
        require_whole_number(self.draws, "at least 1 draw", least=1)
        require_seed(self.seed)


def explain_gaps(
    collection: Collection,
    runs: Run | Sequence[Run],
    properties: Sequence[PropertyName] | None = None,
    *,
    by: str = "source",
    pairs: Sequence[Pair] | None = None,
    cutoff: int = CUTOFF,
    draws: int = DRAWS,
    seed: int = 0,
    correction: str = "holm",
) -> ExplainedGaps:
    """Attribute the gap between groups within lists to properties of their documents.

    Parameters
    ----------
    collection : Collection
        Documents with groups and properties. They may have no texts, as those that
        `ranktilt.labelled` returns.
    runs : Run or sequence of Run
        The runs to explain. If a run is cut to the top results, gaps are about these alone.
    properties : sequence of str or TextProbe, optional
        Columns of numbers, or probes of texts such as ``"readability"``; by default all columns of
        numbers, and length, sentence length, reading difficulty, type/token ratio and query words
        where there are texts.
    by : str, optional
        Column that groups the documents.
    pairs : sequence of (str, str), optional
        Pairs of groups to compare, all by default. If a gap is above 0, the first group ranks
        higher.
    cutoff : int, optional
        Number of ranks that count as the first ones.
    draws, seed : int, optional
        Number of random draws of all estimates together, for the intervals of parts, and their
        seed.
    correction : {"holm", "bonferroni"}, optional
        Correction over all gaps in one outcome, and over all their parts.

    Returns
    -------
    ExplainedGaps
        Gaps with and without the properties, and the part that goes with each of them.

    Raises
    ------
    UserError
        If there are no groups or no properties, or no list holds two documents of a pair.
    """
    require_whole_number(cutoff, "a cutoff of at least 1", least=1)
    options = GapOptions(cutoff=cutoff, draws=draws, seed=seed, correction=correction)
    # Results name runs, so no two may share a name.
    runs = named_apart(require_runs(runs))
    groups, pair_names = grouped_pairs(collection, by, pairs)
    table = measure_properties(collection, groups, properties)
    measured = GroupedProperties(collection=collection, groups=groups, table=table)
    gaps: list[ExplainedGap] = []
    left_out = list(table.left_out)
    coverage = []
    for number, run in enumerate(runs):
        report("explaining gaps", number, len(runs))
        entries = RunEntries.from_run(run, collection, cutoff=cutoff)
        coverage.append(_coverage(run, entries, groups))
        for pair in pair_names:
            rows = PairRows.from_entries(entries, measured, pair)
            left_out += [replace(missing, run=run.name) for missing in rows.left_out]
            gaps += pair_gaps(rows, run.name, pair, options)
    report("explaining gaps", len(runs), len(runs))
    run_names = [run.name for run in runs]
    twin_counts = [len(twin_rows(collection, groups, pair)) for pair in pair_names]
    return ExplainedGaps(
        spec=_spec(collection, runs, by, options),
        by=by,
        cutoff=cutoff,
        properties=tuple(measured_property.about for measured_property in table.measured),
        gaps=corrected_gaps(gaps, correction),
        left_out=_merge_runs(left_out, run_names),
        coverage=tuple(coverage),
        has_twins=max(twin_counts) > 0,
        has_texts=table.has_texts,
    )


def are_mostly_twins(collection: Collection, by: str) -> bool:
    """Return whether the texts of any two groups are mostly twins.

    Twins are documents of the same origin in different groups. They are then the better comparison,
    because they differ in little but the group. Two groups are mostly twins if there are at least
    half as many pairs of twins as documents in the smaller group. A collection without texts is
    never compared by twins.
    """
    if not has_texts(collection):
        return False
    groups, pairs = grouped_pairs(collection, by, None)
    for pair in pairs:
        sizes = [int((groups.code == groups.index(name)).sum()) for name in pair]
        if 2 * len(twin_rows(collection, groups, pair)) >= min(sizes):
            return True
    return False


def pair_gaps(rows: PairRows, run: str, pair: Pair, options: GapOptions) -> Iterator[ExplainedGap]:
    """Yield the gap of one run and pair of groups in every outcome, with p not yet corrected."""
    if not rows.list_count:
        raise UserError(
            f"{run}: no list holds documents of both {pair[0]} and {pair[1]} with a value of every "
            "property"
        )
    if not rows.names:
        reasons = ", ".join(f"{missing.name} ({missing.reason})" for missing in rows.left_out)
        raise UserError(
            f"{run}: no property is left for {pair[0]} and {pair[1]}: {reasons}; add a column of "
            "numbers that most of their documents have, such as their words or their age"
        )
    group_a, group_b = pair
    for outcome in rows.entries.outcomes:
        fit = decompose(rows.with_outcome(outcome), draws=options.draws, seed=options.seed)
        is_tested = fit.effective_n >= FEWEST
        gap_p = fit.gap.p if is_tested else np.nan
        parts = tuple(_parts(rows.names, fit, is_tested=is_tested))
        gap = ExplainedGap(
            run=run,
            outcome=outcome,
            group_a=group_a,
            group_b=group_b,
            value=fit.gap.value,
            low=fit.gap.low,
            high=fit.gap.high,
            error=fit.gap.error,
            p=gap_p,
            p_corrected=np.nan,
            detectable=np.nan,
            remaining=fit.remaining.value,
            remaining_low=fit.remaining.low,
            remaining_high=fit.remaining.high,
            explained=fit.explained.value,
            explained_low=fit.explained.low,
            explained_high=fit.explained.high,
            parts=parts,
            queries=rows.list_count,
            documents=rows.document_count,
            entries=len(rows.rows),
            dropped=rows.dropped,
            effective_n=fit.effective_n,
        )
        yield gap


def _parts(names: Sequence[str], fit: Decomposition, *, is_tested: bool) -> Iterator[GapPart]:
    """Yield the part of each property; p is NaN if there are too few queries or documents."""
    for name, share in zip(names, fit.shares, strict=True):
        yield _part(name, share, p=share.part.p if is_tested else np.nan)


def _part(name: str, share: PropertyShare, *, p: float) -> GapPart:
    """Return the part of one property.

    `share` has the coefficient for one unit of the property. It is multiplied by the property's
    standard deviation, so that coefficients of different properties can be compared.
    """
    coefficient, low, high = (
        share.spread * number
        for number in (share.coefficient.value, share.coefficient.low, share.coefficient.high)
    )
    return GapPart(
        property_name=name,
        value=share.part.value,
        low=share.part.low,
        high=share.part.high,
        error=share.part.error,
        p=p,
        p_corrected=np.nan,
        difference=share.difference.value,
        difference_low=share.difference.low,
        difference_high=share.difference.high,
        coefficient=coefficient,
        coefficient_low=low,
        coefficient_high=high,
        spread=share.spread,
        inflation=share.inflation,
    )


def corrected_gaps(gaps: Sequence[ExplainedGap], correction: str) -> tuple[ExplainedGap, ...]:
    """Correct the p of gaps, and those of parts, over all runs and pairs of each outcome."""
    corrected: list[ExplainedGap] = []
    for outcome in dict.fromkeys(gap.outcome for gap in gaps):
        outcome_gaps = [gap for gap in gaps if gap.outcome == outcome]
        gap_ps = correct([gap.p for gap in outcome_gaps], correction)
        parts = chain.from_iterable(gap.parts for gap in outcome_gaps)
        part_ps = correct([part.p for part in parts], correction).tolist()
        test_count = max(int((~np.isnan(gap_ps)).sum()), 1)
        start = 0
        for gap, p in zip(outcome_gaps, gap_ps.tolist(), strict=True):
            end = start + len(gap.parts)  # `part_ps` has the parts of one gap after the other
            gap_parts = tuple(_with_corrected_ps(gap.parts, part_ps[start:end]))
            start = end
            detectable = detectable_effect(gap.error, test_count, gap.effective_n)
            corrected.append(replace(gap, p_corrected=p, detectable=detectable, parts=gap_parts))
    return tuple(corrected)


def _with_corrected_ps(parts: Sequence[GapPart], ps: Sequence[float]) -> Iterator[GapPart]:
    """Yield the parts of a gap with their corrected p."""
    for part, p in zip(parts, ps, strict=True):
        yield replace(part, p_corrected=p)


def _coverage(run: Run, entries: RunEntries, groups: Groups) -> ListCoverage:
    """Count the documents with a group, and how many of them a run's lists hold."""
    return ListCoverage(
        run=run.name,
        queries=len(run.queries),
        listed=int((groups.code[entries.document] >= 0).sum()),
        documents=int((groups.code >= 0).sum()),
    )


def _merge_runs(
    left_out: Sequence[LeftOutProperty], runs: Sequence[str]
) -> tuple[LeftOutProperty, ...]:
    """Return the properties that are left out, without repetition.

    A property that all runs leave out for the same reason is returned once, without a run.
    """
    distinct = list(dict.fromkeys(left_out))
    merged: list[LeftOutProperty] = []
    for missing in distinct:
        is_in_every_run = all(replace(missing, run=run) in distinct for run in runs)
        merged.append(replace(missing, run="") if is_in_every_run else missing)
    return tuple(dict.fromkeys(merged))


def _spec(
    collection: Collection, runs: Sequence[Run], by: str, options: GapOptions
) -> dict[str, Any]:
    """Return inputs and options, as JSON."""
    return {
        **audit_provenance(collection, [run.spec for run in runs]),
        "by": by,
        "cutoff": options.cutoff,
        "draws": options.draws,
        "seed": options.seed,
        "correction": options.correction,
    }
