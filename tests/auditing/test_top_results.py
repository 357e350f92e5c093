"""Lists are cut at a depth, and no tie block is divided."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from ranktilt import Run
from ranktilt.auditing.storage.top_results import TopResults
from ranktilt.measures.ranking import Ranking

SCORE_LISTS = st.lists(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0]), max_size=9))


def run_of_scores(score_lists: list[list[float]]) -> Run:
    """Make a run whose lists have these scores, in falling order."""
    scores = [np.sort(np.array(scores, dtype=np.float64))[::-1] for scores in score_lists]
    lengths = list(map(len, score_lists))
    return Run(
        tuple(f"q{number}" for number in range(len(score_lists))),
        np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
        np.concatenate([np.arange(length) for length in lengths] or [[]]).astype(np.int64),
        np.concatenate([np.empty(0), *scores]),
        pl.Series([f"d{number}" for number in range(9)]),
        {"ranker": "r"},
    )


@given(SCORE_LISTS, st.integers(1, 10))
def test_lists_are_cut_below_the_tie_block_at_the_depth(
    score_lists: list[list[float]], depth: int
) -> None:
    run = run_of_scores(score_lists)
    top = TopResults.from_runs([run], depth)
    ranking, is_kept = Ranking(run.offsets, run.scores).head(depth)
    (cut_run,) = top.runs
    assert cut_run.offsets.tolist() == ranking.offsets.tolist()
    assert cut_run.docs.tolist() == run.docs[is_kept].tolist()
    assert cut_run.scores.tolist() == ranking.scores.tolist()
    assert top.is_complete == bool(is_kept.all())
    assert top.results == is_kept.sum()
