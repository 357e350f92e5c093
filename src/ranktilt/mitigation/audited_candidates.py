"""Audit the candidates of a bench."""

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
from ranktilt.auditing.significance import (
    InferenceOptions,
    Sample,
)
from ranktilt.data.collection import Collection
from ranktilt.data.run import Run, collection_rows
from ranktilt.errors import UserError, counted
from ranktilt.measures.base import Estimand, Measure
from ranktilt.measures.margin import DEFAULT_MARGIN
from ranktilt.mitigation.bench_result import (
    Candidate,
)

CandidateRuns = Mapping[Candidate, Run]
"""Run of each candidate."""


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """Options of how candidates are compared; `bench` explains each field."""

    effectiveness: Measure
    budget: float
    reference: str
    by: str
    pairs: tuple[Pair, ...]
    ties: str
    test: str
    correction: str
    margin: float
    resamples: int
    seed: int

    @property
    def inference(self) -> InferenceOptions:
        """How changes and means get their intervals."""
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
    """Samples of every tilt, and of every answer about groups."""

    @classmethod
    def from_inputs(cls, inputs: AuditInputs) -> Self:
        """Audit runs that are aligned."""
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
    """Align the runs of candidates with groups and judgments, as an audit does."""
    named_runs = [
        replace(run, spec={**run.spec, "ranker": candidate.name, "name": candidate.name})
        for candidate, run in runs.items()
    ]
    _refuse_other_queries(named_runs)
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
    """Refuse runs of the reference alone that do not fit the candidates or the documents."""
    lacking = next((candidate for candidate in runs if candidate not in reference_runs), None)
    if lacking is not None:
        raise UserError(
            f"{lacking.name} has no run of {reference} documents alone, but others have; rank "
            "them with all candidates or with none"
        )
    for candidate, run in reference_runs.items():
        if (collection_rows(run, alone)[run.docs] < 0).any():
            raise UserError(
                f"{candidate.name}: its run of {reference} documents alone contains others too"
            )


def _refuse_other_queries(runs: Sequence[Run]) -> None:
    """Refuse a run over other queries than the baseline's: nothing could be paired."""
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
