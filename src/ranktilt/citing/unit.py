"""The unit at which labels are constant: the domain of a page, a column, or the page itself.

Where every page of a domain has the same label, the pages of a domain are one observation of the
label, however many there are: a hundred pages of one site say how that site is cited, and not how
its kind is. So the domain is what errors are clustered by, and what labels are exchanged by.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from ranktilt.errors import UserError, unknown

DOMAIN, PAGE = "domain", "page"
"""Names of the units that need no column, and of their columns in a table of pages."""
MOST_MIXED = 0.05
"""Part of the domains with several pages that may hold several groups and still be the unit.

Beyond it labels go by page, and the page is the unit.
"""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """What errors are clustered by, and labels exchanged by, with how often labels differ in it."""

    name: str
    """``domain``, ``page``, or a column of the labels."""
    is_chosen: bool
    """Whether the user named it."""
    units: int
    """Number of units with a label."""
    mixed: int
    """Units with several pages of more than one group.

    Domains are counted where the page is the unit and was not chosen: they are why.
    """
    of_several: int
    """Units with several pages; domains, where `mixed` counts domains."""


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
            raise unknown("column", cluster, [PAGE, *columns])
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
    """Count the units of a column, those with several pages, and those with several labels."""
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
