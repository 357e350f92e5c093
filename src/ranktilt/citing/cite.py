"""Audit whom an engine's answers cite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl

from ranktilt.citing.funnel import funnel_parts, rank_rates, stage_shares
from ranktilt.citing.infer import (
    FEWEST_UNITS,
    Spread,
    effective_units,
    questions_alone,
    spread,
)
from ranktilt.citing.notes import citation_notes
from ranktilt.citing.prepare import CitationInputs, load_list, prepare
from ranktilt.citing.questions import Question, QuestionKey, answerable
from ranktilt.citing.result import (
    CitationAudit,
    CitationEffect,
    DomainCitations,
    Steadiness,
    TheseUnits,
    UnitShare,
)
from ranktilt.data.answers import Answers
from ranktilt.data.formats.citations.answer_file import read_answers
from ranktilt.data.label_file import LabelFile
from ranktilt.data.run import Run
from ranktilt.errors import UserError, unknown
from ranktilt.measures.citations.base import CitationEstimate, CitationRows
from ranktilt.measures.citations.concentration import concentration
from ranktilt.measures.citations.stability import citation_overlap, jaccard
from ranktilt.statistics.bootstrap import RESAMPLES
from ranktilt.statistics.correction import correct

MARGIN = 5.0
_MOST_DOMAINS = 200


def cite(
    answers: Answers | str | Path,
    labels: str | Path | LabelFile,
    *,
    run: Run | str | Path | None = None,
    by: str = "source",
    pairs: Sequence[tuple[str, str]] | None = None,
    cluster: str | None = None,
    margin: float = MARGIN,
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> CitationAudit:
    """Audit whom an engine's answers cite, of what they consulted and what was retrieved.

    Parameters
    ----------
    answers : Answers, str or Path
        Answers with their citations, or the file or folder that holds them (`read_answers`).
    labels : str, Path or LabelFile
        The group of each page, by its address or id: ``pages.csv:id=url,source=kind``.
    run : Run, str or Path, optional
        What was retrieved for the queries, or its file, where a page that comes again keeps its
        first rank; without it, the lists that the answers hold, if any.
    by : str, optional
        Column of the labels whose groups are compared.
    pairs : sequence of (str, str), optional
        Groups to compare, such as ``[("ai", "human")]``; all pairs otherwise.
    cluster : str, optional
        Unit at which labels are constant: ``domain``, ``page`` or a column of the labels; found
        where None.
    margin : float, optional
        Percent of a ratio, or points of a share, that count as level.
    correction : str, optional
        How p-values are corrected for many tests: ``holm`` or ``bonferroni``.
    resamples, seed : int, optional
        Number of exchanges of labels, and where they start.

    Returns
    -------
    CitationAudit
        For every pair of groups: citation rates given consulted and at equal rank, shares of
        citations, where a share comes from, and a verdict on the primary question.

    Raises
    ------
    UserError
        If no cited page has a label, all have the same, or a pair names no group.
    """
    if not isinstance(answers, Answers):
        answers = read_answers(answers)
    if not margin >= 0:
        raise UserError(f"expected a margin of at least 0, got {margin}")
    if run is not None and not isinstance(run, Run):
        run = load_list(run)
    inputs = prepare(answers, labels, run=run, by=by, cluster=cluster)
    chosen_pairs = _pairs(inputs, pairs)
    effects = []
    for a, b in chosen_pairs:
        rows = inputs.pair_rows(a, b)
        for question in answerable(rows, has_words=inputs.has_words):
            estimate = question.estimate(rows)
            spreading = spread(rows, estimate, resamples=resamples, seed=seed)
            effects.append(_effect(question.key, (a, b), estimate, spreading))
    effects = _corrected(effects, correction)
    first = effects[0].question
    effects = [
        _with_these_units(effect, inputs) if effect.question == first else effect
        for effect in effects
    ]
    ordered = sorted(effects, key=lambda effect: effect.question != first)
    audit = CitationAudit(
        effects=tuple(ordered),
        stages=tuple(stage_shares(inputs, chosen_pairs)),
        funnel=tuple(funnel_parts(inputs, chosen_pairs)),
        rank_rates=tuple(rank_rates(inputs)),
        domains=tuple(_domains(inputs)),
        steadiness=_steadiness(answers, inputs),
        counts=inputs.counts,
        unit=inputs.unit,
        groups=tuple(inputs.groups),
        margin=margin,
        correction=correction,
        spec={
            **inputs.spec,
            "run": None if run is None else run.name,
            "run_files": [] if run is None else run.spec.get("files", []),
            "resamples": resamples,
            "seed": seed,
        },
    )
    return replace(audit, notes=tuple(citation_notes(audit)))


def _pairs(
    inputs: CitationInputs, pairs: Sequence[tuple[str, str]] | None
) -> list[tuple[str, str]]:
    """Return the pairs to compare; of two groups, the less cited one comes first."""
    if pairs is None:
        return list(combinations(reversed(inputs.groups), 2))
    for pair in pairs:
        for group in pair:
            if group not in inputs.groups:
                raise unknown("group", group, inputs.groups)
        if pair[0] == pair[1]:
            raise UserError(f"expected two different groups, got {pair[0]!r} twice")
    return list(pairs)


def _effect(
    question: QuestionKey, pair: tuple[str, str], estimate: CitationEstimate, spreading: Spread
) -> CitationEffect:
    return CitationEffect(
        question=question,
        a=pair[0],
        b=pair[1],
        value=estimate.value,
        value_a=estimate.value_a,
        value_b=estimate.value_b,
        scale=estimate.scale,
        neutral=estimate.neutral,
        low=spreading.low,
        high=spreading.high,
        error=spreading.error,
        p=spreading.p,
        p_corrected=np.nan,
        exchange_p=spreading.exchange_p,
        two_way_p=spreading.two_way_p,
        effective_units=spreading.effective_units,
        effective_questions=spreading.effective_questions,
        questions=spreading.questions,
        citations_a=int(estimate.citations_a),
        citations_b=int(estimate.citations_b),
        family_size=1,
    )


def _corrected(effects: Sequence[CitationEffect], correction: str) -> list[CitationEffect]:
    """Correct the primary question over all pairs, and all other questions together."""
    first = effects[0].question
    corrected = list[CitationEffect]()
    for is_primary in (True, False):
        family = [effect for effect in effects if (effect.question == first) == is_primary]
        ps = correct([effect.p for effect in family], correction).tolist()
        corrected += [
            replace(effect, p_corrected=p, family_size=len(family))
            for effect, p in zip(family, ps, strict=True)
        ]
    return corrected


def _with_these_units(effect: CitationEffect, inputs: CitationInputs) -> CitationEffect:
    """Add what can be said of these units alone, where their kind stays open."""
    if effect.effective_units >= FEWEST_UNITS:
        return effect
    rows = inputs.pair_rows(effect.a, effect.b)
    question = _question_of(effect, inputs, rows)
    estimate = question.estimate(rows)
    alone = questions_alone(rows, estimate)
    is_a = _is_thinner(rows, estimate)
    support = estimate.support_a if is_a else estimate.support_b
    totals = np.bincount(rows.cluster, weights=support)
    names = inputs.unit_names(effect.a, effect.b)
    largest = []
    for number in np.argsort(-totals, kind="stable")[:2].tolist():
        without = question.estimate(rows.select(rows.cluster != number)).value
        share = float(totals[number] / totals.sum())
        largest.append(UnitShare(name=names[number], share=share, value_without=without))
    units = TheseUnits(
        low=alone.low,
        high=alone.high,
        score_low=alone.score_low,
        score_high=alone.score_high,
        thinner=effect.a if is_a else effect.b,
        largest=tuple(largest),
    )
    return replace(effect, these_units=units)


def _question_of(effect: CitationEffect, inputs: CitationInputs, rows: CitationRows) -> Question:
    questions = answerable(rows, has_words=inputs.has_words)
    return next(question for question in questions if question.key == effect.question)


def _is_thinner(rows: CitationRows, estimate: CitationEstimate) -> bool:
    """Return whether group a has fewer effective units than group b."""
    only_a = replace(estimate, support_b=estimate.support_a)
    return effective_units(rows, only_a) <= effective_units(rows, estimate)


def _domains(inputs: CitationInputs) -> list[DomainCitations]:
    """Count what answers cite of each domain, the most cited first."""
    rows = inputs.rows
    domains = rows.group_by("domain").agg(
        pl.col("label").mode().sort().first(),
        pl.col("is_cited").sum().alias("citations"),
        pl.col("is_consulted").sum().alias("consulted"),
        (pl.col("retrieval_rank") > 0).sum().alias("retrieved"),
    )
    order = domains.sort(
        ["citations", "consulted", "retrieved", "domain"], descending=[True, True, True, False]
    )
    return [
        DomainCitations(
            domain=domain,
            group=label,
            citations=citations,
            consulted=consulted,
            retrieved=retrieved,
        )
        for domain, label, citations, consulted, retrieved in order.head(_MOST_DOMAINS).iter_rows()
    ]


def _steadiness(answers: Answers, inputs: CitationInputs) -> Steadiness:
    """Compare the citations of every two repeats of a query, and count their domains."""
    cited = answers.cited.sort("answer", "citation_rank")
    lists = dict(cited.group_by("answer", maintain_order=True).agg("page").iter_rows())
    similarities, overlaps = list[float](), list[float]()
    numbered = answers.answers.with_row_index("answer")
    for repeats in numbered.group_by("query", maintain_order=True).agg("answer")["answer"]:
        for first, second in combinations(repeats.to_list(), 2):
            pages_a, pages_b = lists.get(first, []), lists.get(second, [])
            similarities.append(jaccard(pages_a, pages_b))
            overlaps.append(citation_overlap(pages_a, pages_b))
    counts = inputs.rows.filter(pl.col("is_cited"))["domain"].value_counts()["count"]
    over_domains = concentration(counts.to_numpy())
    return Steadiness(
        repeats=len(similarities),
        jaccard=_mean(similarities),
        overlap=_mean(overlaps),
        effective_domains=over_domains.effective_number,
        largest_share=over_domains.largest_share,
    )


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan
