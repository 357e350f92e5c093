"""An audit with what it was made from, where that could be opened again."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.auditing.result import Audit
from ranktilt.collection import Collection
from ranktilt.run import Run


@dataclass(frozen=True)
class Opened:
    """An audit, and as much of its collection and runs as could be had.

    Parameters
    ----------
    audit : Audit
        What was found.
    collection : Collection or None
        The collection it was found on; None where it is gone or has changed.
    runs : tuple of Run
        Those of the audit's runs that could be had, in its order; told apart by `Run.name`.
    notes : tuple of str
        Why a part is missing, in sentences for the reader of a report.
    """

    audit: Audit
    collection: Collection | None = None
    runs: tuple[Run, ...] = ()
    notes: tuple[str, ...] = ()
