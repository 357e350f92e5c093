"""RankTilt's own layout: records with ``cited``, and ``not_cited`` or ``consulted``.

*Consulted* pages are those that the engine read to write the answer; it cites some of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranktilt.data.formats.citations.base import AnswerRecord, pages_of, unrepeated
from ranktilt.errors import UserError

NAME = "records with cited pages"
"""Name of the layout, as messages have it."""


def fits(record: Mapping[str, Any]) -> bool:
    """Return whether a record lists what it cites by our names."""
    return "cited" in record


def read(record: Mapping[str, Any]) -> AnswerRecord:
    """Read the pages that a record lists.

    ``cited`` has the cited pages in their order, ``consulted`` all consulted pages, ``not_cited``
    the consulted pages that are not cited, and ``retrieved`` the results of the search in their
    order. A record has at most one of ``consulted`` and ``not_cited``.
    """
    if "consulted" in record and "not_cited" in record:
        message = "expected consulted (all consulted pages) or not_cited (the others), got both"
        raise UserError(message)
    cited = pages_of(record["cited"], "cited")
    consulted = None
    if record.get("consulted") is not None:
        consulted = pages_of(record["consulted"], "consulted")
    elif record.get("not_cited") is not None:
        not_cited = pages_of(record["not_cited"], "not_cited")
        consulted = unrepeated([*cited, *not_cited])
    retrieved = None
    if record.get("retrieved") is not None:
        retrieved = pages_of(record["retrieved"], "retrieved")
    text = record.get("text")
    return AnswerRecord(
        cited=cited,
        consulted=consulted,
        retrieved=retrieved,
        text=text if isinstance(text, str) else "",
    )
