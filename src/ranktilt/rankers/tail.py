"""What a re-ranker leaves below: appended in the order of the stage before it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ranktilt.run import Run, codes

Scores = npt.NDArray[np.float64]


def appended(best: Run, everything: Run) -> Run:
    """Put below each query's documents those that only another run holds.

    Parameters
    ----------
    best : Run
        What comes first, in its order and with its scores.
    everything : Run
        Where the others come from, in that run's order; queries that `best` does not hold are left out.

    Returns
    -------
    Run
        Scores of the others are shifted below the lowest of `best`: their differences and ties stay, save where
        float64 cannot hold a difference any more; such a query's others follow in equal steps.
    """
    row = np.append(codes(best.ids, everything.ids), -1)
    docs, scores, lengths = [np.empty(0, np.int32)], [np.empty(0)], [0]
    place = {query: number for number, query in enumerate(everything.queries)}
    for number, query in enumerate(best.queries):
        first = slice(best.offsets[number], best.offsets[number + 1])
        top, high = row[best.docs[first]], best.scores[first]
        at = place.get(query)
        whole = slice(0, 0) if at is None else slice(everything.offsets[at], everything.offsets[at + 1])
        rest = np.flatnonzero(~np.isin(everything.docs[whole], top))
        low = everything.scores[whole][rest]
        docs += [top.astype(np.int32), everything.docs[whole][rest]]
        scores += [high, _below(low, high[-1]) if len(high) else low]
        lengths.append(len(top) + len(rest))
    return Run(
        best.queries, np.cumsum(lengths), np.concatenate(docs), np.concatenate(scores), everything.ids, best.spec
    )


def _below(scores: Scores, lowest: float) -> Scores:
    """Falling scores, shifted so that the first stands one below `lowest`."""
    if not len(scores):
        return scores
    gap = max(1.0, 2 * float(np.spacing(abs(lowest))))
    shifted: Scores = lowest - gap - (scores[0] - scores)
    steps = np.diff(scores) < 0
    if ((np.diff(shifted) < 0) == steps).all():
        return shifted
    return np.asarray(lowest - gap * (1 + np.concatenate([[0], np.cumsum(steps)])))
