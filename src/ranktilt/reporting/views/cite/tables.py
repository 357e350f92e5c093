"""The tables of an audit of citations: questions, stages, parts of the funnel, ranks, domains.

Every *question* compares two groups of pages: by the ratio of their citation rates (the *scale*
``log ratio``), or by a share in percent (``share``). Its answer is an *effect*, with an interval.
An engine retrieves pages, consults (reads) some of them, and cites some of these: the *stages* of
the *funnel*.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter

from ranktilt.citing.effect import CitationEffect, FunnelPart, RankRate
from ranktilt.citing.result import CitationAudit
from ranktilt.reporting.document import (
    Cell,
    Column,
    ColumnSpec,
    Table,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.numbers import (
    decimal,
    estimate_cell,
    number_cell,
    number_cells,
    p_value,
    percent,
    signed,
    with_commas,
)
from ranktilt.reporting.sentences.citing.cite import (
    FUNNEL_WORDS,
    QUESTION_WORDS,
    site_noun,
    units_of,
)
from ranktilt.reporting.sentences.grammar import ratio_words

_MOST_DOMAINS = 10
"""Most domains in the table; a result's file may hold more."""
_SMALL_RATE = 0.1
"""Rates below it are printed with two decimals of a percent, because one would hide differences."""
# Hints of columns.
_AS_LABELLED = "By the labels as they are, before errors are corrected."
_RATE_HINT = "rate or part, in %"


def effect_table(audit: CitationAudit) -> Table:
    """Return the table with a row for each question, below a heading for each of several pairs."""
    caption = f"Citations by question, with 95 % intervals over questions and {units_of(audit)}"
    first = audit.primary[0]
    if len(audit.primary) == 1:
        columns = _effect_columns(audit, first.a, first.b)
        return make_table(caption, audit.effects, columns)
    return make_table(
        caption,
        sorted(audit.effects, key=attrgetter("a", "b")),
        _effect_columns(audit, "first", "second"),
        group_of=_pair_heading,
        group_titles=("pair",),
    )


def _effect_columns(audit: CitationAudit, title_a: str, title_b: str) -> list[ColumnSpec]:
    """Return the columns of questions; `title_a` and `title_b` are those of the two sides."""
    columns: list[ColumnSpec] = [
        (name_column("question"), _question_words),
        (Column(title_a, hint=_RATE_HINT), partial(_side_cell, field="value_a")),
        (Column(title_b, hint=_RATE_HINT), partial(_side_cell, field="value_b")),
        (Column("ratio, or part in %"), _effect_cell),
    ]
    if any(effect.observed is not None for effect in audit.effects):
        columns.append((Column("as labelled", drop_order=4, hint=_AS_LABELLED), _as_labelled_cell))
    columns += [
        (Column("neutral", drop_order=5), _neutral_cell),
        (Column("corrected p", drop_order=6), number_cells("p_corrected", p_value)),
        (Column("citations", drop_order=2), _citation_counts),
    ]
    return columns


def _question_words(effect: CitationEffect) -> str:
    """Return the words for an effect's question."""
    return QUESTION_WORDS[effect.question]


def _pair_heading(row: CitationEffect | FunnelPart) -> tuple[str]:
    """Return the heading above the rows of a pair of groups."""
    return (f"{row.a} against {row.b}",)


def _side_cell(effect: CitationEffect, field: str) -> Cell:
    """Return the cell of one side: its part in percent, or its citation rate."""
    value = getattr(effect, field)
    if effect.scale == "share":
        return number_cell(value, decimal)
    return number_cell(value, _rate_percent)


def _rate_percent(rate: float) -> str:
    """Print a citation rate from 0 to 1 in percent; a small one with two decimals."""
    return decimal(100 * rate, 2 if rate < _SMALL_RATE else 1)


def _effect_cell(effect: CitationEffect) -> Cell:
    """Return the cell of a ratio or of a share in percent, with its interval."""
    show = decimal if effect.scale == "share" else ratio_words
    return estimate_cell(effect, show, neutral=effect.neutral)


def _as_labelled_cell(effect: CitationEffect) -> Cell:
    """Return the cell of the effect before its correction for wrong labels; empty without one."""
    if effect.observed is None:
        return Cell("")
    show = decimal if effect.scale == "share" else ratio_words
    return estimate_cell(effect.observed, show)


def _neutral_cell(effect: CitationEffect) -> Cell:
    """Return the cell of the value that favours nobody: 1 for ratios."""
    show = decimal if effect.scale == "share" else partial(decimal, digits=0)
    return number_cell(effect.neutral, show)


def _citation_counts(effect: CitationEffect) -> str:
    """Print the numbers of citations of either side."""
    return f"{effect.citations_a:,} | {effect.citations_b:,}"


_STAGE_COLUMNS: tuple[ColumnSpec, ...] = (
    (name_column("stage"), attrgetter("stage")),
    (text_column("group"), attrgetter("group")),
    (Column("share, %"), partial(estimate_cell, show=decimal)),
    (Column("pages", drop_order=1), number_cells("pages", with_commas)),
)


def stage_table(audit: CitationAudit) -> Table:
    """Return the table of each group's share of the pages at every stage."""
    return make_table("From stage to stage", audit.stages, _STAGE_COLUMNS, collapsed=True)


def _part_words(part: FunnelPart) -> str:
    """Return the explanation of a part of the funnel."""
    return FUNNEL_WORDS[part.name]


_PART_COLUMNS: tuple[ColumnSpec, ...] = (
    (name_column("part"), attrgetter("name")),
    (text_column("which is", drop_order=1), _part_words),
    (Column("points"), partial(estimate_cell, show=signed)),
    (Column("p", drop_order=2), number_cells("p", p_value)),
)


def funnel_table(audit: CitationAudit) -> Table:
    """Return the table that splits cited minus retrieved shares into a part for each step."""
    return make_table(
        "Share of citations minus share of retrieved pages, in parts",
        audit.funnel,
        _PART_COLUMNS,
        group_of=_pair_heading,
        group_titles=("pair",),
    )


NOT_RETRIEVED = "not retrieved"
"""Printed in place of the rank of a page that was consulted but not retrieved."""


def rank_name(rate: RankRate) -> str:
    """Name the ranks of a rate: ``3``, ``4–5`` or ``not retrieved``."""
    if not rate.first:  # 0 for pages without a rank
        return NOT_RETRIEVED
    return str(rate.first) if rate.first == rate.last else f"{rate.first}–{rate.last}"


_RANK_COLUMNS: tuple[ColumnSpec, ...] = (
    (name_column("ranks"), rank_name),
    (text_column("group"), attrgetter("group")),
    (Column("cited, %"), partial(estimate_cell, show=percent)),
    (Column("pages"), number_cells("pages", with_commas)),
)


def rank_table(audit: CitationAudit) -> Table:
    """Return the table of how often a page at a rank is cited, by group."""
    title = "How often a page at a rank is cited"
    return make_table(title, audit.rank_rates, _RANK_COLUMNS, collapsed=True)


def domain_table(audit: CitationAudit) -> Table:
    """Return the table of the most cited domains, with the counts of the stages that are known."""
    cited_domains = [domain for domain in audit.domains if domain.citations]
    columns: list[ColumnSpec] = [
        (name_column(site_noun(audit)), attrgetter("domain")),
        (text_column("group"), attrgetter("group")),
        (Column("citations"), number_cells("citations", with_commas)),
    ]
    # A count of 0 means that the answers do not say which pages were consulted, or retrieved.
    if audit.counts.consulted:
        columns.append((Column("consulted", drop_order=2), number_cells("consulted", with_commas)))
    if audit.counts.retrieved:
        columns.append((Column("retrieved", drop_order=1), number_cells("retrieved", with_commas)))
    return make_table(
        f"The most cited {site_noun(audit)}s",
        cited_domains[:_MOST_DOMAINS],
        columns,
        collapsed=True,
    )
