"""Correct the first results of each list, and keep those below them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.mitigation.base import Correction, Scores, in_order, run_of_depth


def correct_tops(correction: Correction, collection: Collection, run: Run, *, depth: int) -> Run:
    """Correct the best `depth` results of each list; the others follow in their old order."""
    top = run_of_depth(run, collection, depth)
    return with_rest(correction.rank(collection, top), top, run)


def with_rest(corrected: Run, top: Run, run: Run) -> Run:
    """Append to each corrected list the results of the run that were not corrected.

    `top` is the part of the `run` that was corrected, before that.
    """
    if len(top.docs) == len(run.docs):
        return corrected
    docs, scores = list[npt.NDArray[np.int32]](), list[Scores]()
    for number in range(len(run.queries)):
        top_part = slice(*top.offsets[number : number + 2])
        part = slice(*run.offsets[number : number + 2])
        # What is tied with the last of the top need not be the next in the list.
        is_below = ~np.isin(run.docs[part], top.docs[top_part])
        docs += [corrected.docs[top_part], run.docs[part][is_below]]
        scores.append(
            _scores_with_rest(
                corrected.scores[top_part], top.scores[top_part], run.scores[part][is_below]
            )
        )
    return replace(
        corrected, offsets=run.offsets, docs=np.concatenate(docs), scores=np.concatenate(scores)
    )


def _scores_with_rest(corrected: Scores, top: Scores, rest: Scores) -> Scores:
    """Return the scores of a corrected list, followed by lower scores for the rest of the list.

    If the correction made the last score of the top smaller, all scores of the rest fall by the
    same amount, which keeps the gaps between them. Scores of the rest that would still reach the
    last score of the top get the next smaller numbers that a float can hold.

    `top` has the scores of the corrected part before the correction.
    """
    if not len(rest) or not len(corrected):
        return np.concatenate([corrected, rest])
    fall = min(0.0, corrected[-1] - top[-1])
    scores = np.concatenate([corrected, rest + fall])
    # Results may be tied only where they were tied before: adding `fall` may round two different
    # scores to one. So each set of tied results is a side of its own.
    ties = np.append(
        np.cumsum(np.diff(corrected, prepend=corrected[0]) != 0),
        len(corrected) + np.cumsum(np.diff(rest, prepend=rest[0]) != 0),
    )
    return in_order(np.arange(len(scores)), scores, side=ties)
