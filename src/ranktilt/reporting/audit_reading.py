"""How the figures of an audit are to be read, in words."""

from __future__ import annotations

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import Audit


def reading(audit: Audit, pair: Pair, *, twins: bool) -> str:
    """Say how to read a figure of Relative Δ.

    Parameters
    ----------
    audit : Audit
        Whose margin counts as level.
    pair : (str, str)
        Two groups.
    twins : bool
        Whether each document of one has a twin in the other; else level is the random band, not 0.

    Returns
    -------
    str
        What lies right and left, and what lines and shades are.
    """
    level = f" Dotted: ±{audit.level:g} points, which count as level." if twins and audit.level else ""
    random = "" if twins else " Hatched: what random labels give; its middle is level, not 0."
    middle = "0" if twins else "the hatched band"
    return (
        f"Right of {middle}: {pair[0]}; left: {pair[1]}. Line: 95 % interval. Grey: tilts too small for these queries "
        f"to detect.{level}{random}"
    )


def card_reading(first: Effect) -> str:
    """Say how to read the axis of a card's figure.

    Parameters
    ----------
    first : Effect
        One of those drawn; all ask the same.

    Returns
    -------
    str
        The same for what the card asks, with the unit of its axis.
    """
    unit = f" Points: hundredths of {first.name}." if not first.estimand.suffix else ""
    random = " Hatched: what random labels give; its middle is level, not 0." if first.banded else ""
    middle = "the hatched band" if first.banded else "0"
    return (
        f"Right of {middle}: {first.a}; left: {first.b}. Line: 95 % interval. Grey: tilts too small for these queries "
        f"to detect.{random}{unit}"
    )


def heights(pair: Pair, *, twins: bool) -> str:
    """Say how to read the height of a mark beside effectiveness.

    Parameters
    ----------
    pair : (str, str)
        Two groups.
    twins : bool
        Whether each document of one has a twin in the other; else level is the random band, not 0.

    Returns
    -------
    str
        What stands above and below.
    """
    if twins:
        return f"above 0 relevant {pair[0]} stands higher, below 0 {pair[1]}."
    return f"the higher, the more for {pair[0]}. Level is what random labels give (see the table), not 0."
