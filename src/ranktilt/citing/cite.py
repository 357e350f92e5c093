"""Audit whom an engine's answers cite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from ranktilt.auditing.label_errors.model import LabelModel
from ranktilt.auditing.label_errors.notes import label_notes
from ranktilt.auditing.query_groups.grouping import (
    QueryGroups,
    collection_query_groups,
    read_query_groups,
)
from ranktilt.citing.domains import domain_citations, steadiness
from ranktilt.citing.effects import Exchanges, citation_effects
from ranktilt.citing.funnel import funnel_parts, rank_rates, stage_shares
from ranktilt.citing.label_errors import (
    PairCorrection,
    citation_label_model,
    corrected_part,
    corrected_stage,
)
from ranktilt.citing.notes import citation_notes
from ranktilt.citing.prepare import CitationInputs, load_list, prepare
from ranktilt.citing.query_groups import citation_breakdown
from ranktilt.citing.result import CitationAudit, CitationEffect
from ranktilt.data.answers import Answers
from ranktilt.data.collection import Collection
from ranktilt.data.formats.citations.answer_file import read_answers
from ranktilt.data.group_names import name_among
from ranktilt.data.label_errors import LabelErrors
from ranktilt.data.label_file import LabelFile
from ranktilt.data.notes.citations import FewerThanErrors, RanksAsLabelled
from ranktilt.data.run import Run
from ranktilt.errors import UserError, unknown
from ranktilt.measures.margin import DEFAULT_MARGIN
from ranktilt.statistics.bootstrap import RESAMPLES

_HUMAN = "human"
"""Group that others are compared with where there is one of this name, as in every audit."""


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
    """Audit whom an engine's answers cite, of what they consulted and what was retrieved.

    Parameters
    ----------
    answers : Answers, str or Path
        Answers with their citations, or the file or folder that holds them (`read_answers`).
    labels : str, Path, LabelFile or Collection
        The group of each page, by its address or id: ``pages.csv:id=url,source=kind``; or the
        collection whose documents were cited.
    run : Run, str or Path, optional
        What was retrieved for the queries, or its file, where a page that comes again keeps its
        first rank; without it, the lists that the answers hold, if any.
    by : str, optional
        Column of the labels whose groups are compared.
    pairs : sequence of (str, str), optional
        Groups to compare, such as ``[("ai", "human")]``; all pairs otherwise.
    reference : str, optional
        Group to compare each other group with, in place of `pairs`; ``human`` by default, where
        there is one of this name.
    cluster : str, optional
        Unit at which labels are constant: ``domain``, ``page`` or a column of the labels; found
        where None.
    margin : float, optional
        Percent of a ratio, or points of a share, that count as level.
    correction : str, optional
        How p-values are corrected for many tests: ``holm`` or ``bonferroni``.
    resamples, seed : int, optional
        Number of exchanges of labels, and where they start.
    label_errors : str or LabelErrors, optional
        How often labels of two groups are wrong: ``"ai:fpr=.02,fnr=.05"``, or the file of a checked
        sample. Rates and shares are corrected for it; rates at equal rank cannot be, and are left
        out.
    by_query : str, optional
        Give every answer by groups of queries too, and test whether they differ: a file with ids of
        queries (``"queries.tsv:market"``), or, where `labels` is a collection, a column of its
        queries.

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
    chosen_pairs = _pairs(inputs, pairs, reference)
    groups = _query_groups(by_query, answers, labels)
    errors, model, spec = label_errors, None, dict(inputs.spec)
    if isinstance(errors, str):
        errors = LabelErrors.from_text(errors)
    if errors is not None:
        model = citation_label_model(errors, by, inputs.groups)
        spec["label_errors"] = errors.text
    effects = tuple(citation_effects(inputs, chosen_pairs, exchanges, model))
    stages = tuple(stage_shares(inputs, chosen_pairs))
    funnel = tuple(funnel_parts(inputs, chosen_pairs))
    if model is not None:
        pair = PairCorrection(model=model, a=chosen_pairs[0][0])
        stages = tuple(corrected_stage(stage, pair) for stage in stages)
        funnel = tuple(corrected_part(part, pair) for part in funnel)
    origin = {} if run is None else {"run": run.name, "run_files": run.spec.get("files", [])}
    audit = CitationAudit(
        effects=effects,
        stages=stages,
        funnel=funnel,
        rank_rates=tuple(rank_rates(inputs)),
        domains=tuple(domain_citations(inputs)),
        steadiness=steadiness(answers, inputs),
        counts=inputs.counts,
        unit=inputs.unit,
        groups=tuple(inputs.groups),
        margin=margin,
        correction=correction,
        pages=inputs.kept_pages,
        spec={**spec, **origin, "resamples": resamples, "seed": seed},
    )
    notes = [*citation_notes(audit), *label_notes(errors, margin, model, ())]
    notes += [FewerThanErrors(group=group) for group in _below_errors(effects)]
    if model is not None and audit.rank_rates:
        notes.append(RanksAsLabelled())
    audit = replace(audit, notes=tuple(notes))
    return _with_query_groups(audit, inputs, groups, exchanges=exchanges, model=model)


def _with_query_groups(
    audit: CitationAudit,
    inputs: CitationInputs,
    groups: QueryGroups | None,
    *,
    exchanges: Exchanges,
    model: LabelModel | None,
) -> CitationAudit:
    """Add every answer by groups of queries, where there are some."""
    if groups is None:
        return audit
    pairs = [(effect.a, effect.b) for effect in audit.primary]
    question = audit.primary[0].question
    breakdown = citation_breakdown(inputs, pairs, exchanges, groups, primary=question, model=model)
    return replace(audit, by_query=breakdown, spec={**audit.spec, "by_query": groups.text})


def _below_errors(effects: Sequence[CitationEffect]) -> list[str]:
    """Return the groups with no more citations than wrong labels alone would give them."""
    groups = dict[str, None]()
    for effect in effects:
        if effect.observed is None:
            continue
        for group, value in ((effect.a, effect.value_a), (effect.b, effect.value_b)):
            if value == 0:
                groups[group] = None
    return list(groups)


def _query_groups(text: str | None, answers: Answers, labels: object) -> QueryGroups | None:
    """Group the queries of the answers by a file, or by a column of the collection's queries."""
    if text is None:
        return None
    if isinstance(labels, Collection):
        return collection_query_groups(text, labels, answers.queries)
    return read_query_groups(text, answers.queries)


def _pairs(
    inputs: CitationInputs, pairs: Sequence[tuple[str, str]] | None, reference: str | None
) -> list[tuple[str, str]]:
    """Return the pairs to compare; of two groups, the less cited one comes first."""
    if reference is not None and pairs is not None:
        raise UserError("name either pairs or a reference, which each other group is compared with")
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
    """Return the group of a name, or of a label such as ``1`` for ``source 1``."""
    group = name_among(name, inputs.groups, inputs.spec["by"])
    if group is None:
        raise unknown("group", name, inputs.groups)
    return group
