"""What few human labels repair: means and differences of systems from a judge's grades, without its bias."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise

import numpy as np

from ranktilt.errors import UserError, counted
from ranktilt.judging.grades import Graded
from ranktilt.judging.result import Corrected, Estimate
from ranktilt.judging.systems import SystemValues
from ranktilt.measures.ranking import Bools, Floats
from ranktilt.statistics.equivalence import t_interval
from ranktilt.statistics.prediction_powered import powered_mean


def sampled_queries(graded: Graded, labels: int, seed: int) -> tuple[list[str], int]:
    """Draw queries at random until their pairs use up so many human labels; returns them and the labels that they need.

    Whole queries, because a measure needs all grades of its query; at least two.
    """
    sizes = graded.pairs.group_by("query_id", maintain_order=True).len()
    if labels >= graded.pairs.height:
        raise UserError(
            f"--human-sample {labels}: all {graded.pairs.height:,} pairs have human grades; draw fewer of them"
        )
    order = np.random.default_rng([seed, 17]).permutation(sizes.height)
    used = np.cumsum(sizes["len"].to_numpy()[order])
    number = int(np.searchsorted(used, labels, side="right"))
    if number < 2:
        raise UserError(f"--human-sample {labels}: too few for two queries, which need {used[1]} labels here")
    return sizes["query_id"].gather(order[:number]).to_list(), int(used[number - 1])


def corrected(values: SystemValues, labelled: Collection[str]) -> Iterator[Corrected]:
    """Estimate each system's mean, and the difference of each two neighbours in the judge's order.

    Human values of the other queries are used as the truth only.
    """
    known = np.isin(values.queries, list(labelled))
    order = np.argsort(-values.judged.mean(1), kind="stable").tolist()
    for a in order:
        row = values.human[a], values.judged[a], values.more[a]
        yield _row(values, row, known, (values.runs[a], ""))
    for a, b in pairwise(order):
        human, judged, more = (rows[a] - rows[b] for rows in (values.human, values.judged, values.more))
        yield _row(values, (human, judged, more), known, (values.runs[a], values.runs[b]))


def _row(values: SystemValues, row: tuple[Floats, Floats, Floats], known: Bools, runs: tuple[str, str]) -> Corrected:
    human, judged, more = row
    labels, beside = human[known], judged[known]
    found = powered_mean(labels, beside, np.concatenate([judged[~known], more]))
    within = values.measure.bounds if not runs[1] else (-1.0, 1.0)
    alone, powered = (np.clip(ends, *within).tolist() for ends in (t_interval(labels), found[1:3]))
    varied = labels.std() > 0 and beside.std() > 0
    return Corrected(
        values.judge, repr(values.measure), *runs, Estimate(float(labels.mean()), *alone),
        float(np.concatenate([judged, more]).mean()), Estimate(found.value, *powered), found.weight,
        float(np.corrcoef(labels, beside)[0, 1]) if varied else np.nan, len(labels), found.effective,
        np.nan if known.all() else float(human.mean()),
    )  # fmt: skip


def gain_note(rows: list[Corrected]) -> str:
    """Say plainly what the judge's labels were worth."""
    judge, queries = rows[0].judge, rows[0].queries
    means = [row for row in rows if not row.minus]
    worth = float(np.median([row.effective for row in means]))
    share = 100 * queries / worth if worth else np.nan
    least = "little is gained" if share > 80 else "the judge helps"
    return (
        f"{judge}: {counted(queries, 'human query is', 'human queries are')} worth {worth:.0f} with it (median of "
        f"systems): the variance falls to {share:.0f} %; {least}"
    )
