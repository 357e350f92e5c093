"""The unit at which labels are constant: the domain of a page, a column, or the page itself.

An audit compares how often answers cite pages of different groups; a page's *label* names its
group. If every page of a domain has the same label, the pages of a domain are one observation of
the label, however many there are: a hundred pages of one site say how that site is cited, and not
how sites of its kind are. So errors are clustered by domain, and a permutation test exchanges the
labels of domains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from ranktilt.errors import UserError, unknown_name

DOMAIN, PAGE = "domain", "page"
"""Units that every table of pages has as columns; a user may also name another column."""
MOST_MIXED = 0.05
"""Largest part of the domains with several pages that may have several labels.

If there are more, the domain is not the unit, but the page.
"""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """The unit by which errors are clustered, and how often labels differ within it."""

    name: str
    """``domain``, ``page``, or a column of the labels."""
    is_chosen: bool
    """Whether the user named it."""
    units: int
    """Number of units with a label."""
    mixed: int
    """Number of units whose pages have more than one label.

    If the user chose no unit and it is the page, domains are counted: they show why it is not the
    domain.
    """
    of_several: int
    """Number of units with several pages; of domains where `mixed` counts domains."""


def find_unit(pages: pl.DataFrame, cluster: str | None) -> tuple[Unit, pl.Series]:
    """Return the unit of an audit, and the name of each page's unit.

    Parameters
    ----------
    pages : polars.DataFrame
        The labelled pages: ``page``, ``label``, ``domain`` and the columns of the label file.
    cluster : str, optional
        ``domain``, ``page`` or a column, as the user chose; None for the domain if labels are
        constant in it, or else the page.

    Raises
    ------
    UserError
        If there is no such column, or it has no value for some pages.
    """
    if cluster is not None:
        if cluster not in pages.columns and cluster != PAGE:
            columns = [name for name in pages.columns if name not in ("page", "label")]
            raise unknown_name("column", cluster, [PAGE, *columns])
        unit = _describe(pages, cluster, is_chosen=True)
        return unit, pages[cluster]
    by_domain = _describe(pages, DOMAIN, is_chosen=False)
    has_domains = bool((pages[DOMAIN] != pages[PAGE]).any())
    if has_domains and by_domain.mixed <= MOST_MIXED * by_domain.of_several:
        return by_domain, pages[DOMAIN]
    by_page = _describe(pages, PAGE, is_chosen=False)
    # A reader wants to know why the unit is not the domain.
    return replace(by_page, mixed=by_domain.mixed, of_several=by_domain.of_several), pages[PAGE]


def _describe(pages: pl.DataFrame, name: str, *, is_chosen: bool) -> Unit:
    """Describe the column `name` as a unit: how many units, with how many pages and labels."""
    units = pages.group_by(name).agg(
        pages=pl.col(PAGE).n_unique() if name != PAGE else pl.len(),
        labels=pl.col("label").n_unique(),
    )
    if units[name].null_count():
        raise UserError(f"column {name!r} has no value for some labelled pages")
    of_several = units.filter(pl.col("pages") > 1)
    return Unit(
        name=name,
        is_chosen=is_chosen,
        units=units.height,
        mixed=int((of_several["labels"] > 1).sum()),
        of_several=of_several.height,
    )
