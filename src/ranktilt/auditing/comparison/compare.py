"""Compare two rankings of each query: whether the new ranker tilts more than the old one.

The two rankings are runs of one audit, or of two. A ranker *tilts* if it favours a group of
documents. Three runs or more are ranked instead.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, TypeVar, overload, runtime_checkable

from ranktilt.auditing.comparison.common_queries import MAX_LEFT_OUT
from ranktilt.auditing.comparison.compare_audits import compare_audits
from ranktilt.auditing.comparison.compare_choices import compare_choices
from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.auditing.comparison.ranks.rank_runs import FEWEST_RUNS, rank_runs
from ranktilt.auditing.comparison.ranks.result import RunRanks
from ranktilt.auditing.comparison.result import Comparison
from ranktilt.auditing.label_errors.saved import corrected_audit
from ranktilt.auditing.pairwise.result import PairwiseAudit
from ranktilt.auditing.result import Audit
from ranktilt.data.artifact import Header, Result, names_files
from ranktilt.data.labels.label_errors import LabelErrors
from ranktilt.errors import UserError
from ranktilt.statistics.bootstrap import RESAMPLES

ComparedT_co = TypeVar("ComparedT_co", bound=Result, covariant=True)


@runtime_checkable
class Comparable(Protocol[ComparedT_co]):
    """A result that implements its own comparison, such as an audit of citations or of judges."""

    header: ClassVar[Header]
    """Format and noun of the kind of result."""

    def compared_with(self, old: Result, options: ComparisonOptions) -> ComparedT_co:
        """Return how this result differs from an old result of the same kind."""


@overload
def compare(
    new: Audit,
    *,
    resamples: int = ...,
    seed: int = ...,
    correction: str = ...,
    max_left_out: float = ...,
    label_errors: str | LabelErrors | None = ...,
) -> RunRanks: ...


@overload
def compare(
    new: Audit,
    old: Audit,
    third: Audit,
    /,
    *more: Audit,
    resamples: int = ...,
    seed: int = ...,
    correction: str = ...,
    max_left_out: float = ...,
    label_errors: str | LabelErrors | None = ...,
) -> RunRanks: ...


@overload
def compare(
    new: Audit,
    old: None = ...,
    *,
    baseline_run: str,
    resamples: int = ...,
    seed: int = ...,
    correction: str = ...,
    max_left_out: float = ...,
    label_errors: str | LabelErrors | None = ...,
) -> Comparison: ...


@overload
def compare(
    new: Audit | PairwiseAudit,
    old: Audit | PairwiseAudit,
    *,
    resamples: int = ...,
    seed: int = ...,
    correction: str = ...,
    max_left_out: float = ...,
    label_errors: str | LabelErrors | None = ...,
) -> Comparison: ...


@overload
def compare(
    new: Comparable[ComparedT_co],
    old: Result,
    *,
    resamples: int = ...,
    seed: int = ...,
    correction: str = ...,
    max_left_out: float = ...,
    label_errors: None = ...,
) -> ComparedT_co: ...


@names_files
def compare(
    new: Any,
    old: Any = None,
    *more: Any,
    baseline_run: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    correction: str = "holm",
    max_left_out: float = MAX_LEFT_OUT,
    label_errors: str | LabelErrors | None = None,
) -> Any:
    """Compare two audits, one run of an audit with its others, or rank three runs or more.

    Only queries in both audits count. Every difference is new − old: in points, or in the unit of
    an estimand such as ExposureRatio. If each audit has one run, these two are compared whatever
    their names; otherwise runs of the same name are. Measures, estimands and pairs of groups that
    only one audit has are left out, with a note.

    One audit of three runs or more without a `baseline_run`, or three audits or more, are ranked:
    each run gets an interval of ranks on the primary question, and another on effectiveness. The
    intervals come from a test of every two runs.

    Parameters
    ----------
    new : Audit, PairwiseAudit, CitationAudit or JudgeAudit
        The new audit, or the only one.
    old : Audit, PairwiseAudit, CitationAudit or JudgeAudit, optional
        The audit to compare `new` with. Both must have the same column of groups and rule for ties.
        Pairwise audits must have the same groups and rule for counting, audits of citations the
        same labels, and audits of judges the same human grades and scale.
    *more : Audit
        Further audits; the runs of all audits are ranked together. If runs have the same name, the
        names of their audits' files are added.
    baseline_run : str, optional
        Instead of an old audit, the run of `new` to compare all its other runs with, such as the
        run with a neutral prompt.
    resamples, seed : int, optional
        Number of bootstrap resamples; their random seed.
    correction : {"holm", "bonferroni"}, optional
        Correction of p for several tests. In a comparison, the p of all runs, measures, estimands
        and pairs of groups are corrected together. For ranks, the p of all pairs of runs on one
        question are.
    max_left_out : float, optional
        Largest percentage of all queries that may be in only one of the two audits. These queries
        are left out with a note; more are refused.
    label_errors : str, LabelErrors or None, optional
        How often labels are wrong (``"ai:fpr=.02,fnr=.05"``); both audits are corrected for it
        first. Audits may be corrected already.

    Returns
    -------
    Comparison, CitationComparison, JudgeDrift or RunRanks
        The differences, or the ranks. ``compare(old, new)`` gives the exact negative of every
        difference.
    """
    options = ComparisonOptions(
        resamples=resamples, seed=seed, correction=correction, max_left_out=max_left_out
    )
    options.check()
    _refuse_unclear(new, old, baseline_run, has_more=bool(more))
    if more or _are_ranked(new, old, baseline_run):
        return _ranks([new, *([] if old is None else [old]), *more], options, label_errors)
    if isinstance(new, Comparable):
        if label_errors is not None:
            raise UserError(f"to compare, {new.header.noun} takes no --label-errors; omit it")
        return new.compared_with(old, options)
    if isinstance(old, Comparable):
        raise UserError("expected two audits of one kind: NEW.json OLD.json")
    if isinstance(new, PairwiseAudit) or isinstance(old, PairwiseAudit):
        if label_errors is not None:
            raise UserError("choices between two texts take no --label-errors; omit it")
        return compare_choices(new, old, options)
    new_audit = corrected_audit(new, label_errors)
    old_audit = new_audit if old is None else corrected_audit(old, label_errors)
    return compare_audits(new_audit, old_audit, options, baseline_run=baseline_run)


def _refuse_unclear(new: Any, old: Any, baseline_run: str | None, *, has_more: bool) -> None:
    """Refuse arguments that do not say what to compare with.

    `has_more` says whether there are more than two audits.
    """
    if has_more:
        if baseline_run is not None:
            raise UserError(
                "--baseline-run compares the runs of one audit, so give one; or omit it"
            )
        return
    if isinstance(new, Comparable) and old is None:
        raise UserError(f"{new.header.noun} is compared with another one: NEW.json OLD.json")
    if _are_ranked(new, old, baseline_run):
        return
    if old is None and baseline_run is None and isinstance(new, Audit) and len(new.runs) == 2:
        raise UserError(
            "to compare the two runs of an audit, name the one to compare with: --baseline-run "
            f"{new.runs[0]!r} or {new.runs[1]!r}"
        )
    if (old is None) == (baseline_run is None):
        raise UserError(
            "give either an old audit (OLD.json) or a run of the same audit (--baseline-run RUN); "
            f"an audit of {FEWEST_RUNS} runs or more needs neither"
        )


def _are_ranked(new: Any, old: Any, baseline_run: str | None) -> bool:
    """Return whether all runs of one audit are ranked."""
    is_alone = isinstance(new, Audit) and old is None and baseline_run is None
    return is_alone and len(new.runs) >= FEWEST_RUNS


def _ranks(
    audits: list[Any], options: ComparisonOptions, label_errors: str | LabelErrors | None
) -> RunRanks:
    """Rank the runs of all audits; refuse results that are no audits of rankings."""
    for audit in audits:
        if not isinstance(audit, Audit):
            noun = audit.header.noun if isinstance(audit, Result) else type(audit).__name__
            raise UserError(
                f"only audits of rankings are compared three or more at a time, got {noun}; "
                "compare two: NEW.json OLD.json"
            )
    corrected = [corrected_audit(audit, label_errors) for audit in audits]
    return rank_runs(corrected, options)
