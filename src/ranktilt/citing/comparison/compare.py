"""Compare two engines that answered the same queries: whose tilt is larger, how alike they cite.

An engine's answers cite pages of two groups. Its *tilt* is how far the value of a question, such as
the ratio of the groups' citation rates, lies from the value that favours neither group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from ranktilt.auditing.comparison.common_queries import CommonQueries, common_queries
from ranktilt.auditing.comparison.notes import warnings_of_both
from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.auditing.effects import FEW_QUERIES
from ranktilt.citing.comparison.audited_engine import (
    AuditedEngine,
    common_pairs,
    require_alike,
    require_same_labels,
)
from ranktilt.citing.comparison.changes import citation_changes
from ranktilt.citing.comparison.overlap import citation_overlaps
from ranktilt.citing.comparison.result import CitationComparison
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.citations import FewQuestions


def compare_engines(
    new: AuditedEngine, old: AuditedEngine, options: ComparisonOptions
) -> CitationComparison:
    """Return how two engines' tilts differ over the queries that both answered.

    Parameters
    ----------
    new, old : AuditedEngine
        The two engines; differences are new minus old.
    options : ComparisonOptions
        Resamples, seed, correction, and the percentage of queries that may be left out.

    Raises
    ------
    UserError
        If settings or labels differ, no pair of groups is in both audits, or too few queries are.
    """
    require_alike(new, old)
    common = common_queries(
        new.pages.queries,
        old.pages.queries,
        max_left_out=options.max_left_out,
        hint="ask both engines the same questions, or raise --max-left-out",
    )
    queries = [new.pages.queries[row] for row in common.rows[0]]
    new_pages, old_pages = new.pages.of_queries(queries), old.pages.of_queries(queries)
    require_same_labels(new_pages, old_pages)
    changes = citation_changes(new_pages, old_pages, common_pairs(new, old), options)
    new_name, old_name = new.name, old.name
    # Two engines may have the same name, such as one engine in two months.
    if new_name == old_name or not (new_name and old_name):
        new_name, old_name = "new", "old"
    notes = (*warnings_of_both(new.notes, old.notes), *_notes(common, len(queries)))
    origins = {"by": new.spec.get("by"), "new": new.origin, "old": old.origin}
    return CitationComparison(
        new=new_name,
        old=old_name,
        changes=tuple(changes),
        overlaps=tuple(citation_overlaps(new_pages, old_pages)),
        unit=new.unit,
        queries=len(queries),
        correction=options.correction,
        notes=notes,
        spec={**asdict(options), **origins, "queries_left_out": common.left_out},
    )


def _notes(common: CommonQueries, query_count: int) -> Iterator[Note]:
    """Yield the notes of the comparison itself: queries left out, and few queries."""
    if common.left_out:
        yield common.note("audit")
    if query_count < FEW_QUERIES:
        yield FewQuestions(queries=query_count)
