"""Compare two rankings of each query: whether the new ranker tilts more than the old one.

Both are of one audit, or of two.
"""

from __future__ import annotations

from ranktilt.auditing.comparison.compare_audits import compare_audits
from ranktilt.auditing.comparison.compare_choices import compare_choices
from ranktilt.auditing.comparison.match import MAX_LEFT_OUT
from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.auditing.comparison.result import Comparison
from ranktilt.auditing.pairwise.result import PairwiseAudit
from ranktilt.auditing.result import Audit
from ranktilt.data.artifact import names_files
from ranktilt.errors import UserError
from ranktilt.statistics.bootstrap import RESAMPLES


@names_files
def compare(
    new: Audit | PairwiseAudit,
    old: Audit | PairwiseAudit | None = None,
    *,
    baseline_run: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    correction: str = "holm",
    max_left_out: float = MAX_LEFT_OUT,
) -> Comparison:
    """Compare two audits or pairwise audits, or one run of an audit with its others.

    Only queries that both hold count. Every difference is new − old: in points, or in the unit of
    an estimand such as ExposureRatio. Where each side has one run, these are compared whatever
    their names, otherwise runs of one name. Measures, estimands and pairs of groups that only one
    audit holds are left out and noted.

    Parameters
    ----------
    new : Audit or PairwiseAudit
        The new audit, or the only one.
    old : Audit or PairwiseAudit, optional
        With the same column of groups and the same rule for ties; of pairwise audits with the same
        groups and the same rule for counting.
    baseline_run : str, optional
        In place of an old audit: the run of `new` that all its other runs are compared with, such
        as the one with a neutral prompt.
    resamples, seed : int, optional
        Bootstrap resamples; their random seed.
    correction : {"holm", "bonferroni"}, optional
        Over every p of the comparison: Relative Δ, effectiveness and estimands, all runs, measures
        and pairs.
    max_left_out : float, optional
        Percent of all queries that only one of the two may hold: they are left out and noted; more
        are refused.

    Returns
    -------
    Comparison
        ``compare(old, new)`` negates every difference exactly.
    """
    if (old is None) == (baseline_run is None):
        raise UserError(
            "give either an old audit (OLD.json) or a run of the same audit (--baseline-run RUN)"
        )
    options = ComparisonOptions(
        resamples=resamples, seed=seed, correction=correction, max_left_out=max_left_out
    )
    options.check()
    if isinstance(new, PairwiseAudit) or isinstance(old, PairwiseAudit):
        return compare_choices(new, old, options)
    return compare_audits(new, new if old is None else old, options, baseline_run=baseline_run)
