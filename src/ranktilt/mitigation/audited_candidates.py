"""Audit the candidates of a bench.

A *candidate* is a correction of a ranker at some strength; the *baseline* is the ranker without any
correction. A *question* is a measure or another estimand (a number to estimate), such as
``Share@10``. A *sample* is the values of one question, query by query, for one run and two groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from ranktilt.auditing.card import DEPTH
from ranktilt.auditing.conclude import conclude
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.infer import infer
from ranktilt.auditing.measure import measure as measure_runs
from ranktilt.auditing.options import AuditOptions
from ranktilt.auditing.prepare import AuditInputs, prepare
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import InferenceOptions, Sample
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run, collection_rows
from ranktilt.errors import UserError, counted
from ranktilt.measures.base import Estimand, Measure
from ranktilt.measures.margin import DEFAULT_MARGIN
from ranktilt.mitigation.bench_result import Candidate

CandidateRuns = Mapping[Candidate, Run]
"""Run of each candidate."""


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """Options of how candidates are compared; the parameters of `bench` with their defaults set."""

    effectiveness: Measure
    """Measure of effectiveness."""
    budget: float
    """Largest cost that a candidate may have, in points."""
    reference: str
    """Group that all others are compared with."""
    by: str
    """Column of the groups."""
    pairs: tuple[Pair, ...]
    """Pairs of groups that are compared."""
    ties: str
    """How tied documents count, a value of the parameter `ties` of `ranktilt.audit`."""
    test: str
    """Test that gives p, a value of the parameter `test` of `ranktilt.audit`."""
    correction: str
    """Correction of p for several tests, such as ``holm``."""
    margin: float
    """Largest tilt that counts as level, in points."""
    resamples: int
    """Number of bootstrap resamples of the queries for each interval."""
    seed: int
    """Random seed of the resamples."""

    @property
    def inference(self) -> InferenceOptions:
        """Options for the intervals and p of changes and means."""
        return InferenceOptions(
            resamples=self.resamples,
            seed=self.seed,
            test=self.test,
            correction=self.correction,
            rounding="none",
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditedRuns:
    """An audit of candidates, and the samples from which differences are computed."""

    audit: Audit
    """The audit."""
    samples: tuple[Sample, ...]
    """Values by query of every Relative Δ, and of every other question about groups."""

    @classmethod
    def from_inputs(cls, inputs: AuditInputs) -> Self:
        """Audit runs that `prepare_candidates` made ready."""
        measurements = measure_runs(inputs)
        inferences = infer(inputs, measurements)
        return cls(
            audit=conclude(inputs, measurements, inferences),
            samples=(*inferences.tilt_samples, *inferences.group_samples),
        )


def prepare_candidates(
    collection: Collection,
    runs: CandidateRuns,
    questions: Sequence[Estimand],
    options: BenchOptions,
    *,
    is_grouped: bool = True,
) -> AuditInputs:
    """Check the runs of candidates, and prepare their audit.

    Parameters
    ----------
    collection : Collection
        The documents that were ranked.
    runs : mapping of Candidate to Run
        The runs, the baseline's first.
    questions : sequence of Estimand
        The questions to answer, the primary one first.
    options : BenchOptions
        How candidates are compared.
    is_grouped : bool, optional
        Whether groups are compared. If not, only effectiveness is measured, as for the reference's
        documents alone, which are a single group.
    """
    named_runs = [
        replace(run, spec={**run.spec, "ranker": candidate.name, "name": candidate.name})
        for candidate, run in runs.items()
    ]
    _refuse_other_queries(named_runs)
    # A bench reads none of the other parts of an audit: the question card, confounds (other
    # differences between the groups), and the first documents of each list.
    audit_options = AuditOptions(
        by=options.by if is_grouped else None,
        pairs=options.pairs if is_grouped else None,
        primary=questions[0] if is_grouped else None,
        card=False,
        depth=DEPTH,
        confounds=False,
        missing="zero",
        ties=options.ties,
        margin=options.margin if is_grouped else DEFAULT_MARGIN,
        keep_top=0,
        inference=options.inference,
    )
    return prepare(collection, named_runs, questions, audit_options)


def check_reference_runs(
    alone: Collection, runs: CandidateRuns, reference_runs: CandidateRuns, reference: str
) -> None:
    """Refuse runs of the reference's documents that lack a candidate, or have other documents.

    Parameters
    ----------
    alone : Collection
        The reference's documents.
    runs : mapping of Candidate to Run
        Runs over all documents.
    reference_runs : mapping of Candidate to Run
        Runs over the reference's documents.
    reference : str
        Name of the reference.
    """
    without_run = next((candidate for candidate in runs if candidate not in reference_runs), None)
    if without_run is not None:
        raise UserError(
            f"{without_run.name} has no run of {reference} documents alone, but others have; rank "
            "them with all candidates or with none"
        )
    for candidate, run in reference_runs.items():
        if (collection_rows(run, alone)[run.docs] < 0).any():
            raise UserError(
                f"{candidate.name}: its run of {reference} documents alone contains others too"
            )


def _refuse_other_queries(runs: Sequence[Run]) -> None:
    """Refuse a run over other queries than the baseline's.

    Changes are paired: each is a difference of two values of the same query.
    """
    baseline = runs[0]
    for run in runs[1:]:
        differing = sorted(set(run.queries) ^ set(baseline.queries))
        if differing:
            count = counted(len(differing), "query is", "queries are")
            raise UserError(
                f"{run.name} and {baseline.name} ranked different queries "
                f"({count} in only one of them, first {differing[0]!r}); rank the "
                "same queries with both"
            )
