"""Find the lists of a run whose scores give no order, and those that end inside a tie.

An engine that matches nothing may return the first documents of its index, all with one score.
That is a choice of the engine, and no ranking.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ranktilt.data.notes.base import Note, Severity
from ranktilt.data.notes.runs import ListsCutInTies, ListsTied
from ranktilt.data.runs.run import Run

_FEWEST_RESULTS = 3
"""Fewest tied documents that count: two may be copies of each other."""
_SHARE = 0.01
"""Smallest share of the lists for a warning of tied lists, and for a note on cut ties."""
_ENGINE = "engine:"
"""Prefix of the text of a ranker that asks an engine."""

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def tied_lists(offsets: Ints, scores: Floats) -> Bools:
    """Return which lists have three or more documents, all with the same score."""
    lengths = np.diff(offsets)
    is_tied = np.zeros(len(lengths), dtype=bool)
    is_long = lengths >= _FEWEST_RESULTS
    first, last = offsets[:-1][is_long], offsets[1:][is_long] - 1
    is_tied[is_long] = scores[first] == scores[last]  # scores fall along each list
    return is_tied


def tied_list_notes(run: Run) -> Iterator[Note]:
    """Note how many lists of a run are tied as a whole, and how many end inside a tie."""
    lengths = np.diff(run.offsets)
    lists = int((lengths > 0).sum())
    is_tied = tied_lists(run.offsets, run.scores)
    tied = int(is_tied.sum())
    if tied:
        severity: Severity = "warning" if tied >= _SHARE * lists else "note"
        yield ListsTied(severity=severity, run=run.name, queries=tied, total=lists)
    if not _is_cut_by_others(run):
        return
    last_ties = _last_ties(run)
    is_full = (lengths == lengths.max(initial=0)) & (lengths < len(run.ids))
    cut = last_ties[is_full & ~is_tied & (last_ties >= _FEWEST_RESULTS)]
    if len(cut) and len(cut) >= _SHARE * lists:
        documents = int(np.median(cut))
        yield ListsCutInTies(run=run.name, lists=len(cut), total=lists, documents=documents)


def _last_ties(run: Run) -> Ints:
    """Return how many documents of each list share its last score."""
    lengths = np.diff(run.offsets)
    lists = np.flatnonzero(lengths)
    last_scores = np.zeros(len(lengths))
    last_scores[lists] = run.scores[run.offsets[1:][lists] - 1]
    is_last = run.scores == last_scores[run.entry_queries]
    return np.bincount(run.entry_queries[is_last], minlength=len(lengths))


def _is_cut_by_others(run: Run) -> bool:
    """Return whether another program cut the lists.

    Our own rankers cut ties by tie keys, which do not depend on the source.
    """
    ranker = str(run.spec.get("made_by", run.spec.get("ranker", "")))
    return ranker.startswith(_ENGINE) or ranker == run.spec.get("file")
