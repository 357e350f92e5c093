"""Which properties of pages go with the gap between two groups' citation rates.

Within a question, the pages that an engine could cite differ in group and in properties: columns of
the label file, features of their texts, the rank at which they were retrieved. The gap between the
groups' citation rates is split among these properties by Gelbach's decomposition
(`ranktilt.statistics.regression.gelbach`), in the same way as a ranker's gap between groups of
documents. The errors of its parts are over questions and units (such as domains).
"""

from __future__ import annotations

from collections.abc import Sequence

from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.groups import Groups
from ranktilt.citing.pages.citable_pages import CitablePages, citable_pages, label_file_of
from ranktilt.citing.result import CitationAudit
from ranktilt.data.labels.label_file import LabelFile
from ranktilt.errors import UserError
from ranktilt.explaining.properties.gaps import GapOptions, corrected_gaps, pair_gaps
from ranktilt.explaining.properties.result import ExplainedGap, ExplainedGaps
from ranktilt.explaining.properties.rows import GroupedProperties, PairRows
from ranktilt.explaining.properties.values import (
    NoPropertiesError,
    PropertyName,
    PropertyTable,
    measure_properties,
)
from ranktilt.statistics.regression.gelbach import DRAWS


def explain_citations(
    audit: CitationAudit,
    labels: str | LabelFile | None = None,
    properties: Sequence[PropertyName] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    correction: str = "holm",
) -> ExplainedGaps:
    """Attribute the gap between groups' citation rates to properties of their pages.

    Parameters
    ----------
    audit : CitationAudit
        An audit with pages that were consulted (read by the engine), or retrieved.
    labels : str or LabelFile, optional
        Table of the pages, with columns of numbers or a column ``text``; by default the one that
        the audit was made with.
    properties : sequence of str or TextProbe, optional
        Columns of numbers, or probes of texts such as ``perplexity:MODEL``; by default all columns
        of numbers, features of texts if there are any, and the search rank.
    draws, seed : int, optional
        Number of random draws behind the intervals of parts; random seed.
    correction : {"holm", "bonferroni"}, optional
        Correction of the p of all gaps together, and of all parts together.

    Returns
    -------
    ExplainedGaps
        The gap of each pair in percentage points of the citation rate within questions, and the
        part of it that goes with each property.

    Raises
    ------
    UserError
        If it is not known what could have been cited, or pages have no properties.
    """
    by = str(audit.spec.get("by", "source"))
    label_file = label_file_of(audit) if labels is None else LabelFile.from_text(labels)
    pages = citable_pages(audit, label_file, by)
    groups = grouping(pages.collection, by)
    measured = GroupedProperties(
        collection=pages.collection,
        groups=groups,
        table=_property_table(pages, groups, label_file, properties),
    )
    # Cutoff 0 is none: a citation is an outcome of the page, and not a rank among the first k.
    options = GapOptions(cutoff=0, draws=draws, seed=seed, correction=correction)
    gaps, left_out = list[ExplainedGap](), list(measured.table.left_out)
    for effect in audit.primary:
        pair = (effect.a, effect.b)
        rows = PairRows.from_entries(pages.entries, measured, pair)
        left_out += rows.left_out
        gaps += pair_gaps(rows, _engine(audit), pair, options)
    return ExplainedGaps(
        spec=_spec(audit, label_file, options),
        by=by,
        cutoff=options.cutoff,
        properties=tuple(measured_property.about for measured_property in measured.table.measured),
        gaps=corrected_gaps(gaps, correction),
        left_out=tuple(dict.fromkeys(left_out)),
        has_texts=measured.table.has_texts,
    )


def _property_table(
    pages: CitablePages,
    groups: Groups,
    label_file: LabelFile,
    properties: Sequence[PropertyName] | None,
) -> PropertyTable:
    """Measure the properties that the user names, or else all, with the search rank last."""
    # If the user names properties, the search rank is none of them.
    search_ranks = () if properties or pages.search_rank is None else (pages.search_rank,)
    try:
        table = measure_properties(pages.collection, groups, properties, with_query_words=False)
    except NoPropertiesError as error:
        if not search_ranks:
            raise UserError(
                f"nothing to explain the gap with: {label_file.path} has no column of numbers and "
                "no column text; add one that could go with a citation, such as the words, the age "
                "or the text of each page"
            ) from error
        return PropertyTable(measured=search_ranks, left_out=(), has_texts=False)
    return PropertyTable(
        measured=(*table.measured, *search_ranks),
        left_out=table.left_out,
        has_texts=table.has_texts,
    )


def _engine(audit: CitationAudit) -> str:
    """Return the name of the engine, which an explanation of rankers has as the name of a run."""
    return str(audit.spec.get("engine") or "the engine")


def _spec(audit: CitationAudit, label_file: LabelFile, options: GapOptions) -> dict[str, object]:
    """Return the settings and files from which this explanation can be repeated."""
    return {
        "audit": audit.loaded_from or audit.spec.get("command"),
        "labels": label_file.path,
        "by": audit.spec.get("by"),
        "draws": options.draws,
        "seed": options.seed,
        "correction": options.correction,
    }
