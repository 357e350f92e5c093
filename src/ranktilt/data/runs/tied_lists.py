"""Find the lists of a run whose scores are all equal, and the lists that end inside a tie.

An engine that matches nothing may return the first documents of its index, all with one score.
That is a choice of the engine, and no ranking. A list *ends inside a tie* if it was cut off after
some of the documents with its last score.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ranktilt.data.notes.base import Note, Severity
from ranktilt.data.notes.runs import ListsCutInTies, ListsTied
from ranktilt.data.runs.run import Run

_FEWEST_TIED = 3
"""Fewest documents of a tie that is counted: two documents may be copies of each other."""
_WARNING_SHARE = 0.01
"""Smallest share of tied lists for a warning; below it, there is a note."""
_NOTE_SHARE = 0.01
"""Smallest share of lists that end inside a tie for a note on them."""
_ENGINE_PREFIX = "engine:"
"""Prefix of the text of a ranker that asks an engine."""

Bools = npt.NDArray[np.bool_]
"""Array of truth values."""
Floats = npt.NDArray[np.float64]
"""Array of floating-point numbers."""
Ints = npt.NDArray[np.int64]
"""Array of whole numbers."""


def tied_lists(offsets: Ints, scores: Floats) -> Bools:
    """Return which lists have three or more documents, all with the same score.

    Parameters
    ----------
    offsets : array of int, shape (n_lists + 1,)
        Index of each list's first entry, and at the end the number of entries.
    scores : array of float, shape (n_entries,)
        Score of each entry, falling within each list.
    """
    lengths = np.diff(offsets)
    is_tied = np.zeros(len(lengths), dtype=bool)
    is_long = lengths >= _FEWEST_TIED
    first, last = offsets[:-1][is_long], offsets[1:][is_long] - 1
    # Scores fall along each list, so that all are equal if the first and the last are.
    is_tied[is_long] = scores[first] == scores[last]
    return is_tied


def tied_list_notes(run: Run) -> Iterator[Note]:
    """Note how many lists of a run are tied as a whole, and how many end inside a tie."""
    lengths = np.diff(run.offsets)
    list_count = int((lengths > 0).sum())
    is_tied = tied_lists(run.offsets, run.scores)
    tied_count = int(is_tied.sum())
    if tied_count:
        severity: Severity = "warning" if tied_count >= _WARNING_SHARE * list_count else "note"
        yield ListsTied(severity=severity, run=run.name, queries=tied_count, total=list_count)
    if not _is_cut_by_other_program(run):
        return
    last_tie_sizes = _last_tie_sizes(run)
    # Lists of the largest length were probably cut off at it.
    is_cut = (lengths == lengths.max(initial=0)) & (lengths < len(run.ids))
    ends_in_tie = is_cut & ~is_tied & (last_tie_sizes >= _FEWEST_TIED)
    sizes = last_tie_sizes[ends_in_tie]
    if len(sizes) and len(sizes) >= _NOTE_SHARE * list_count:
        yield ListsCutInTies(
            run=run.name,
            lists=len(sizes),
            total=list_count,
            documents=int(np.median(sizes)),
        )


def _last_tie_sizes(run: Run) -> Ints:
    """Return how many documents of each list have its last score."""
    lengths = np.diff(run.offsets)
    lists = np.flatnonzero(lengths)
    last_scores = np.zeros(len(lengths))
    last_scores[lists] = run.scores[run.offsets[1:][lists] - 1]
    has_last_score = run.scores == last_scores[run.entry_queries]
    return np.bincount(run.entry_queries[has_last_score], minlength=len(lengths))


def _is_cut_by_other_program(run: Run) -> bool:
    """Return whether another program than RankTilt cut the lists.

    RankTilt's rankers cut ties by the documents' tie keys, which do not depend on the source.
    """
    ranker = str(run.spec.get("made_by", run.spec.get("ranker", "")))
    return ranker.startswith(_ENGINE_PREFIX) or ranker == run.spec.get("file")
