"""Audit whom an engine's answers cite.

An *answer* is what an engine wrote for a query, and cites pages. It may say which pages it
*consulted*, that is, read before it answered. Each page has a *label*, which is its *group*.

The way from answers to a verdict has four steps. `prepare` joins answers, labels and retrieved
lists in one table. `citation_effects` answers every question about every pair of groups.
`stage_shares`, `funnel_parts` and `rank_rates` describe the way from a retrieved to a cited page. A
`CitationAudit` holds all results as data. `with_query_groups` does the same for groups of queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ranktilt.citing.domains import domain_citations, steadiness
from ranktilt.citing.effects import Exchanges, citation_effects
from ranktilt.citing.funnel import funnel_parts, rank_rates, stage_shares
from ranktilt.citing.label_errors.correct import PairCorrection
from ranktilt.citing.label_errors.membership import corrected_funnel, corrected_stages
from ranktilt.citing.label_errors.parts import fitted_errors
from ranktilt.citing.notes import citation_notes, label_error_notes
from ranktilt.citing.pages.retrieved_lists import load_list
from ranktilt.citing.pairs import compared_pairs
from ranktilt.citing.prepare import prepare
from ranktilt.citing.query_groups import answer_query_groups, with_query_groups
from ranktilt.citing.result import CitationAudit
from ranktilt.data.answers import Answers
from ranktilt.data.collection import Collection
from ranktilt.data.formats.citations.answer_file import read_answers
from ranktilt.data.labels.label_errors import LabelErrors
from ranktilt.data.labels.label_file import LabelFile
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError
from ranktilt.measures.margin import DEFAULT_MARGIN
from ranktilt.statistics.bootstrap import RESAMPLES


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
    if not margin >= 0:
        raise UserError(f"expected a margin of at least 0, got {margin}")
    if run is not None and not isinstance(run, Run):
        run = load_list(run)
    exchanges = Exchanges(resamples=resamples, seed=seed, correction=correction)
    inputs = prepare(answers, labels, run=run, by=by, cluster=cluster)
    group_pairs = compared_pairs(inputs, pairs, reference)
    query_groups = answer_query_groups(by_query, answers, labels)
    if isinstance(label_errors, str):
        label_errors = LabelErrors.from_text(label_errors)
    # How often labels of each group are wrong; None where labels are taken as they are.
    model = None
    if label_errors is not None:
        model, inputs = fitted_errors(label_errors, by, inputs, labels)
    effects = tuple(citation_effects(inputs, group_pairs, exchanges, model))
    domains = tuple(domain_citations(inputs))
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
        steadiness=steadiness(answers, inputs),
        counts=inputs.counts,
        unit=inputs.unit,
        groups=tuple(inputs.groups),
        margin=margin,
        correction=correction,
        pages=inputs.kept_pages,
        spec={**spec, "resamples": resamples, "seed": seed},
    )
    notes = (*citation_notes(audit), *label_error_notes(audit, label_errors, model))
    audit = replace(audit, notes=notes)
    return with_query_groups(audit, inputs, query_groups, exchanges=exchanges, model=model)
