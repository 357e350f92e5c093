"""Correct the top results of each list, and keep the lower ones below them.

A *run* has a list of documents with scores for each query. *Tied* documents have the same score.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.mitigation.base import Correction, Scores, reassign_scores, run_of_depth


def correct_tops(correction: Correction, collection: Collection, run: Run, *, depth: int) -> Run:
    """Correct the top `depth` results of each list; the others follow in their old order."""
    top = run_of_depth(run, collection, depth)
    return append_rest(correction.rank(collection, top), top, run)


def append_rest(corrected: Run, top: Run, run: Run) -> Run:
    """Append to each corrected list the results of the run that were not corrected.

    `top` is the part of `run` that was corrected, as it was before the correction.
    """
    if len(top.docs) == len(run.docs):
        return corrected
    docs, scores = list[npt.NDArray[np.int32]](), list[Scores]()
    for number in range(len(run.queries)):
        top_span = slice(*top.offsets[number : number + 2])
        span = slice(*run.offsets[number : number + 2])
        # Ties may have been cut, so the top need not be the beginning of the list.
        is_below = ~np.isin(run.docs[span], top.docs[top_span])
        docs += [corrected.docs[top_span], run.docs[span][is_below]]
        scores.append(
            _scores_with_rest(
                corrected.scores[top_span], top.scores[top_span], run.scores[span][is_below]
            )
        )
    return replace(
        corrected, offsets=run.offsets, docs=np.concatenate(docs), scores=np.concatenate(scores)
    )


def _scores_with_rest(corrected: Scores, top: Scores, rest: Scores) -> Scores:
    """Return the scores of a corrected list, followed by lower scores for the rest of the list.

    If the correction made the last score of the top smaller, all scores of the rest fall by the
    same amount, so that the differences between them stay. Scores of the rest that are still as
    large as the last score of the top get the next smaller numbers that a float can hold.

    `top` has the scores of the corrected results before the correction, `rest` those of the others.
    """
    if not len(rest) or not len(corrected):
        return np.concatenate([corrected, rest])
    fall = min(0.0, corrected[-1] - top[-1])
    scores = np.concatenate([corrected, rest + fall])
    # Only results that were tied before may be tied. Adding `fall` may round two different scores
    # to the same number. So each set of tied results gets a number, which serves as its side.
    tie_numbers = np.append(
        np.cumsum(np.diff(corrected, prepend=corrected[0]) != 0),
        len(corrected) + np.cumsum(np.diff(rest, prepend=rest[0]) != 0),
    )
    return reassign_scores(np.arange(len(scores)), scores, side=tie_numbers)
