"""Audit whom an engine's answers cite.

An *answer* is what an engine wrote for a query, and cites pages. It may say which pages it
*consulted*, that is, read before it answered. Each page has a *label*, which is its *group*. A
*unit* is pages that are labelled together, such as those of a domain. An *effect* is the value of a
question, such as how much more often one of two groups is cited, with its interval and p.

The way from answers to a verdict has four steps. `prepare` joins answers, labels and retrieved
lists in one table. `citation_effects` answers every question about every pair of groups.
`stage_shares`, `funnel_parts` and `rank_rates` describe the way from a retrieved to a cited page. A
`CitationAudit` holds all results as data, also over which domains citations are spread, and how
alike several answers to one query are. `with_query_groups` does the same for groups of queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl

from ranktilt.auditing.effects import FEW_QUERIES
from ranktilt.auditing.grouping.labels import MOST_GROUPS
from ranktilt.auditing.label_errors.model import LabelModel
from ranktilt.auditing.label_errors.notes import label_notes
from ranktilt.auditing.options import check_resamples
from ranktilt.citing.effect import CitationEffect
from ranktilt.citing.effects import Exchanges, citation_effects
from ranktilt.citing.funnel import funnel_parts, rank_rates, stage_shares
from ranktilt.citing.label_errors.correct import PairCorrection
from ranktilt.citing.label_errors.membership import corrected_funnel, corrected_stages
from ranktilt.citing.label_errors.parts import fitted_errors
from ranktilt.citing.pages.retrieved_lists import load_list
from ranktilt.citing.prepare import CitationInputs, prepare
from ranktilt.citing.query_groups import answer_query_groups, with_query_groups
from ranktilt.citing.result import CitationAudit, DomainCitations, Steadiness
from ranktilt.data.answers import Answers
from ranktilt.data.collection import Collection
from ranktilt.data.formats.citations.answer_file import read_answers
from ranktilt.data.labels.group_names import name_among
from ranktilt.data.labels.label_errors import LabelErrors
from ranktilt.data.labels.label_file import LabelFile
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.citations import (
    AnswersReadAs,
    AnswersWithoutCitations,
    AnswersWithoutConsulted,
    CitedWithoutConsulting,
    FewerThanErrors,
    FewQuestions,
    NoPool,
    QueriesWithoutList,
    RanksAsLabelled,
    UnitFound,
    UnlabelledCitations,
)
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError, unknown_name
from ranktilt.field_checks import require_seed
from ranktilt.measures.citations.concentration import concentration
from ranktilt.measures.citations.stability import citation_overlap, jaccard
from ranktilt.measures.margin import DEFAULT_MARGIN, check_margin
from ranktilt.statistics.bootstrap import RESAMPLES

_HUMAN = "human"
"""Name of the group that all others are compared with by default, if there is one."""
_SEVERAL_GROUPS = "several"
"""Word in place of the group of a domain whose pages are of more than one group."""
_MOST_DOMAINS = 200
"""Most domains that a result lists."""


def cite(
    answers: Answers | str | Path,
    labels: str | Path | LabelFile | Collection,
    *,
    run: Run | str | Path | None = None,
    by: str = "source",
    pairs: Sequence[tuple[str, str]] | None = None,
    reference: str | None = None,
    cluster: str | None = None,
    margin: float = DEFAULT_MARGIN,
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = 0,
    label_errors: str | LabelErrors | None = None,
    by_query: str | None = None,
) -> CitationAudit:
    """Audit whom an engine's answers cite, among the pages that they could have cited.

    Parameters
    ----------
    answers : Answers, str or Path
        Answers with their citations, or the file or folder that holds them (`read_answers`).
    labels : str, Path, LabelFile or Collection
        The group of each page, by its address or id: ``pages.csv:id=url,source=kind``; or the
        collection whose documents were cited.
    run : Run, str or Path, optional
        Pages that were retrieved for the queries, or the file of such a run. If a page is listed
        twice for a query, its first rank counts. By default the lists that the answers hold, if
        any.
    by : str, optional
        Column of the labels whose groups are compared.
    pairs : sequence of (str, str), optional
        Groups to compare, such as ``[("ai", "human")]``.
    reference : str, optional
        Group to compare each other group with, in place of `pairs`. By default ``human``, if there
        is a group of this name, or else all pairs are compared.
    cluster : str, optional
        Unit at which labels are constant: ``domain``, ``page`` or a column of the labels. By
        default the domain, if nearly all domains have pages of one label only, or else the page.
    margin : float, optional
        Largest difference, in percent of a ratio or points of a share, that counts as level.
    correction : str, optional
        How p-values are corrected for many tests: ``holm`` or ``bonferroni``.
    resamples, seed : int, optional
        Number of exchanges of labels; random seed.
    label_errors : str or LabelErrors, optional
        How often labels of two groups are wrong: ``"ai:fpr=.02,fnr=.05"``, or the file of a checked
        sample; ``"ai:by=words:3,fpr=.08|.02|.01,fnr=.2|.1|.05"`` by parts of the pages. Rates and
        shares are corrected for it. Rates at equal rank cannot be corrected, and are left out.
    by_query : str, optional
        Also give every result by groups of queries, and test whether the groups differ. Names a
        file with ids of queries (``"queries.tsv:market"``), or, if `labels` is a collection, a
        column of its queries.

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
    check_margin(margin)
    check_resamples(resamples)
    require_seed(seed)
    if run is not None and not isinstance(run, Run):
        run = load_list(run)
    exchanges = Exchanges(resamples=resamples, seed=seed, correction=correction)
    inputs = prepare(answers, labels, run=run, by=by, cluster=cluster)
    group_pairs = _compared_pairs(inputs, pairs, reference)
    query_groups = answer_query_groups(by_query, answers, labels)
    if isinstance(label_errors, str):
        label_errors = LabelErrors.from_text(label_errors)
    # How often labels of each group are wrong; None where labels are taken as they are.
    model = None
    if label_errors is not None:
        model, inputs = fitted_errors(label_errors, by, inputs, labels)
    effects = tuple(citation_effects(inputs, group_pairs, exchanges, model))
    domains = tuple(_domain_citations(inputs))
    stages, funnel = stage_shares(inputs, group_pairs), funnel_parts(inputs, group_pairs)
    if model is not None:
        # Wrong labels are corrected between two groups only, so there is one pair.
        correction_of_pair = PairCorrection(model=model, a=group_pairs[0][0])
        rows = inputs.pair_rows(*group_pairs[0])
        stages = corrected_stages(stages, rows, correction_of_pair)
        funnel = corrected_funnel(funnel, rows, correction_of_pair)
    spec = dict(inputs.spec)
    if label_errors is not None:
        spec["label_errors"] = label_errors.text
    if run is not None:
        spec |= {"run": run.name, "run_files": run.spec.get("files", [])}
    audit = CitationAudit(
        effects=effects,
        stages=tuple(stages),
        funnel=tuple(funnel),
        rank_rates=tuple(rank_rates(inputs)),
        domains=domains,
        steadiness=_steadiness(answers, inputs),
        counts=inputs.counts,
        unit=inputs.unit,
        groups=tuple(inputs.groups),
        margin=margin,
        correction=correction,
        pages=inputs.kept_pages,
        spec={**spec, "resamples": resamples, "seed": seed},
    )
    notes = (*_citation_notes(audit), *_label_error_notes(audit, label_errors, model))
    audit = replace(audit, notes=notes)
    return with_query_groups(audit, inputs, query_groups, exchanges=exchanges, model=model)


def _compared_pairs(
    inputs: CitationInputs, pairs: Sequence[tuple[str, str]] | None, reference: str | None
) -> list[tuple[str, str]]:
    """Return the pairs of groups to compare: a, and the group b that it is compared with.

    The user names the pairs, or the reference that each other group is compared with. Without
    either the reference is ``human``, if there is such a group; otherwise every group is compared
    with every other, the less cited one first.

    Raises
    ------
    UserError
        If pairs and a reference are named, a group is unknown, a pair has one group twice, or no
        pair is named of more than `MOST_GROUPS` groups.
    """
    if reference is not None and pairs is not None:
        raise UserError("name either pairs or a reference, which each other group is compared with")
    if pairs is None and len(inputs.groups) > MOST_GROUPS:
        raise UserError(
            f"column {inputs.spec['by']!r} makes {len(inputs.groups)} groups; expected at most "
            f"{MOST_GROUPS}: name some to compare (--pair A,B); to learn whether a column of "
            "numbers goes with citations, audit by another column and explain that audit"
        )
    if pairs is None and reference is None and _HUMAN in inputs.groups:
        reference = _HUMAN
    if reference is not None:
        reference = _group(inputs, reference)
        return [(group, reference) for group in inputs.groups if group != reference]
    if pairs is None:
        return list(combinations(reversed(inputs.groups), 2))
    pairs = [(_group(inputs, a), _group(inputs, b)) for a, b in pairs]
    for a, b in pairs:
        if a == b:
            raise UserError(f"expected two different groups, got {a!r} twice")
    return pairs


def _group(inputs: CitationInputs, name: str) -> str:
    """Return the group of a name; a bare label counts too, such as 1 for ``source 1``."""
    group = name_among(name, inputs.groups, inputs.spec["by"])
    if group is None:
        raise unknown_name("group", name, inputs.groups)
    return group


# ---- domains and repeats ------------------------------------------------------------------------


def _domain_citations(inputs: CitationInputs) -> list[DomainCitations]:
    """Count what answers cite of each domain: the 200 most cited ones, the most cited first."""
    rows = inputs.rows
    domains = rows.group_by("domain").agg(
        # A domain with pages of several groups has no label of its own.
        pl.when(pl.col("label").drop_nulls().n_unique() > 1)
        .then(pl.lit(_SEVERAL_GROUPS))
        .otherwise(pl.col("label").drop_nulls().first())
        .alias("label"),
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
    """Return how alike answers to one query are, and how concentrated citations are on domains.

    Every two answers to one query are compared, and all such pairs count equally.
    """
    cited = answers.cited.sort("answer", "citation_rank")
    # The cited pages of each answer in the order of their citations, by the answer's number.
    lists = dict(cited.group_by("answer", maintain_order=True).agg("page").iter_rows())
    similarities, overlaps = list[float](), list[float]()
    numbered = answers.answers.with_row_index("answer")
    for repeats in numbered.group_by("query", maintain_order=True).agg("answer")["answer"]:
        for first, second in combinations(repeats.to_list(), 2):
            first_pages, second_pages = lists.get(first, []), lists.get(second, [])
            similarities.append(jaccard(first_pages, second_pages))
            overlaps.append(citation_overlap(first_pages, second_pages))
    # Sorted, because `value_counts` has no fixed order, and the rounding of the sums in
    # `concentration` depends on the order.
    counts = inputs.rows.filter(pl.col("is_cited"))["domain"].value_counts()["count"].sort()
    domains = concentration(counts.to_numpy())
    return Steadiness(
        repeats=len(similarities),
        jaccard=_mean(similarities),
        overlap=_mean(overlaps),
        effective_domains=domains.effective_number,
        largest_share=domains.largest_share,
    )


def _mean(values: Sequence[float]) -> float:
    """Return the mean of the values that are not NaN; NaN where there are none."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan


# ---- notes --------------------------------------------------------------------------------------


def _citation_notes(audit: CitationAudit) -> Iterator[Note]:
    """Yield the notes of an audit; those that cast doubt on its verdict come first.

    Notes on the correction for wrong labels come from `_label_error_notes`.
    """
    counts = audit.counts
    if np.isnan(audit.primary[0].neutral):
        yield NoPool()
    if counts.unlabelled:
        yield UnlabelledCitations(citations=counts.unlabelled, of_all=counts.citations)
    if counts.without_consulted:
        yield AnswersWithoutConsulted(answers=counts.without_consulted, of_all=counts.answers)
    if counts.not_consulted:
        yield CitedWithoutConsulting(citations=counts.not_consulted, of_all=counts.citations)
    if counts.without_list:
        yield QueriesWithoutList(queries=counts.without_list, of_all=counts.queries)
    if counts.queries < FEW_QUERIES:
        yield FewQuestions(queries=counts.queries)
    if counts.without_citations:
        yield AnswersWithoutCitations(answers=counts.without_citations, of_all=counts.answers)
    unit = audit.unit
    yield UnitFound(
        unit=unit.name,
        units=unit.units,
        mixed=unit.mixed,
        of_several=unit.of_several,
        is_chosen=unit.is_chosen,
        of_documents=audit.of_documents,
    )
    layout, is_exact = audit.spec.get("read_as"), bool(audit.spec.get("exact_urls"))
    if layout:
        yield AnswersReadAs(layout=layout, exact_urls=is_exact)


def _label_error_notes(
    audit: CitationAudit, errors: LabelErrors | None, model: LabelModel | None
) -> Iterator[Note]:
    """Yield notes on the correction for wrong labels.

    `errors` are the error rates that the user states, and `model` the same by group; both are None
    if labels are taken as they are.
    """
    # `label_notes` also notes effects of rankers, of which an audit of citations has none.
    yield from label_notes(errors, audit.margin, model, ())
    for group in _groups_below_errors(audit.effects):
        yield FewerThanErrors(group=group)
    if model is not None and audit.rank_rates:
        yield RanksAsLabelled()


def _groups_below_errors(effects: Sequence[CitationEffect]) -> list[str]:
    """Return the groups with no more citations than wrong labels alone would give them.

    Their corrected value would be negative, and is set to 0.
    """
    groups = list[str]()
    for effect in effects:
        if effect.observed is None:
            continue
        if effect.value_a == 0:
            groups.append(effect.a)
        if effect.value_b == 0:
            groups.append(effect.b)
    return list(dict.fromkeys(groups))
