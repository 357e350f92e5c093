"""The steps of levelling one ranker: test the baseline, fit methods, choose strengths, and compare.

A *method* is a way to correct a ranker, and a *candidate* is a method at one strength. The
*baseline* is the ranker without any correction. Its *tilt*, how far it favours one group over
another, is *level* if it is within a margin.

Queries are divided into three *sides*: methods are *fitted* on some, the strength of each method is
*selected* on others, and the selected candidates are *tested* on the rest. The selection compares
values without intervals or tests, because these are made of the selected candidates on the test
queries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from ranktilt.auditing.card import Card
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.measure import measure
from ranktilt.auditing.null_distributions.base import Shuffles
from ranktilt.auditing.null_distributions.judged_documents import ShuffledRun, null_deltas
from ranktilt.auditing.prepare import AuditInputs
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.explaining.equivalence import only_group
from ranktilt.measures.base import Estimand, Measure
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.ranking import Floats
from ranktilt.mitigation.audited_candidates import BenchOptions, CandidateRuns, prepare_candidates
from ranktilt.mitigation.base import Correction, run_of_depth
from ranktilt.mitigation.baseline import Baseline, only_queries
from ranktilt.mitigation.bench import compare_candidates
from ranktilt.mitigation.bench_result import Bench, Candidate
from ranktilt.mitigation.method import FittingQueries
from ranktilt.mitigation.methods import FittedMethods, fit_methods
from ranktilt.mitigation.movement import shares_replaced
from ranktilt.mitigation.options import MitigationOptions
from ranktilt.mitigation.query_split import QuerySplit
from ranktilt.mitigation.remedies import remedies_of
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.candidates import FITTED


@dataclass(frozen=True, kw_only=True)
class Levelling:
    """Data that the steps of a mitigation share."""

    split: QuerySplit
    """The three sets of queries."""
    baseline: Baseline
    """The ranker to level."""
    questions: Sequence[Estimand]
    """Questions about two groups. The first is the primary one, which decides what is level."""
    options: MitigationOptions
    """Methods and strengths to try."""
    bench_options: BenchOptions
    """How candidates are compared."""
    folder: Path | None
    """Folder for fits; None if they are not saved."""
    baseline_run: Run
    """The baseline's run of all queries from which the sides were drawn.

    If the sides were not drawn from one collection, it is the run of the queries to test on.
    """

    @property
    def pair(self) -> Pair:
        """The reference and the other group."""
        return self.bench_options.pairs[0]

    def test_baseline(self) -> Bench:
        """Return the bench of the baseline alone, over the queries of `baseline_run`."""
        tested = compare_candidates(
            self.split.drawn_from or self.split.test,
            {self._baseline_candidate(self.baseline_run): self.baseline_run},
            self.questions[:1],
            reference_runs={},
            options=self.bench_options,
        )
        return self._with_spec(tested)

    def _baseline_candidate(self, run: Run) -> Candidate:
        """Return the baseline as a candidate."""
        return Candidate(name=run.name, method="", strength=0.0, ranker=self.baseline.text)

    def _with_spec(self, bench: Bench) -> Bench:
        """Add the sides and options to a bench's spec."""
        sides = {"fit": self.split.fit, "select": self.split.select, "test": self.split.test}
        spec = {
            **bench.spec,
            "queries": {name: len(side.queries_with_judgments) for name, side in sides.items()},
            "left_out": asdict(self.split.left_out),
            "mitigation": self.options.spec(),
        }
        if self.split.fitted_on:
            spec[FITTED] = self.split.fitted_on
        return replace(bench, spec=spec)

    def compare(self, tested: Bench) -> Bench:
        """Fit every method, choose its strength, and compare the candidates on the test queries.

        `tested` is the bench of the baseline alone.
        """
        methods = self._fit()
        selected = self._select(methods)
        test = self._rank_side(self.split.test)
        runs, reference_runs = self._candidate_runs(test, methods)
        bench = compare_candidates(
            self.split.test,
            runs,
            self.questions,
            reference_runs=reference_runs,
            selected=selected,
            options=self.bench_options,
        )
        remedies = remedies_of(
            bench.eligible,
            methods,
            by=self.options.by,
            groups=tuple(grouping(self.split.test, self.options.by).names),
            depth=self.baseline.cut_depth,
        )
        bench = replace(
            bench,
            refused=methods.refused,
            fits=methods.fits,
            baseline_effects=tested.baseline_effects,
            remedies=remedies,
            seen_queries=self._seen_queries(),
        )
        return self._with_spec(bench)

    def _seen_queries(self) -> tuple[str, ...]:
        """Return the ids of this collection's queries that were drawn to fit on or to select by."""
        split, tested = self.split, set(self.split.test.queries_with_judgments["id"])
        sides = [split.fit, split.select]
        if split.drawn_from is not None:
            # This includes queries that were left out because they share all their judgments with
            # test queries. So an audit of the corrected run has the same queries as the bench.
            sides = [split.drawn_from]
        elif split.fitted_on:
            # Another collection may use the same ids for other queries.
            sides = [split.select]
        query_ids = dict.fromkeys(
            chain.from_iterable(side.queries_with_judgments["id"] for side in sides)
        )
        return tuple(query_id for query_id in query_ids if query_id not in tested)

    def _rank(self, collection: Collection) -> Run:
        """Return the baseline's run of one side's queries.

        Its lists are taken from `baseline_run` if this has them, and ranked otherwise.
        """
        is_drawn = self.split.drawn_from is not None
        if collection is self.split.fit and self.split.fitted_on:  # another collection's queries
            is_drawn = False
        if is_drawn or collection is self.split.test:
            return only_queries(self.baseline_run, collection.queries_with_judgments["id"])
        return self.baseline.rank(collection)

    def _rank_side(self, side: Collection) -> _RankedSide:
        """Rank a side's queries over all documents, and if possible over the reference's alone.

        The second run shows effectiveness where there is no other group to favour. It needs a
        ranker that searches, judgments, and groups that are sources.
        """
        ranker, reference, reference_run = self.baseline.ranker, None, None
        is_searchable = self.options.by == "source" and side.has_judgments
        if ranker is not None and not self.baseline.is_saved and is_searchable:
            reference = only_group(side, self.pair[0])
            reference_run = ranker.rank(reference)
        return _RankedSide(
            collection=side,
            run=self._rank(side),
            reference=reference,
            reference_run=reference_run,
        )

    def _fit(self) -> FittedMethods:
        """Fit all methods on the queries to fit on."""
        groups = grouping(self.split.test, self.options.by, self.pair).names
        run = self._rank(self.split.fit)
        # Methods learn from the results that they will correct.
        run = run_of_depth(run, self.split.fit, self.baseline.cut_depth)
        queries = FittingQueries(
            collection=self.split.fit,
            run=run,
            ranker=self.baseline.ranker,
            pair=self.pair,
            groups=groups,
            by=self.options.by,
            page=self.questions[0].cutoff or 10,  # questions without a cutoff: the first ten
            held_out=self.split.held_out,
            foreign_name=self.split.fitted_on,
            folder=self.folder,
            seed=self.options.seed,
        )
        return fit_methods(self.options.methods, queries)

    def _candidate_runs(
        self, side: _RankedSide, methods: FittedMethods
    ) -> tuple[dict[Candidate, Run], dict[Candidate, Run]]:
        """Rank a side's queries with every method at every strength.

        Returns the runs over all documents, and the runs over the reference's documents alone; the
        second mapping is empty if the side has no such run. The baseline comes first in both.
        """
        baseline = self._baseline_candidate(side.run)
        runs, reference_runs = {baseline: side.run}, dict[Candidate, Run]()
        if side.reference_run is not None:
            reference_runs[baseline] = side.reference_run
        strengths = sorted(self.options.strengths)
        for label, fitted in methods.by_label.items():
            for strength in strengths:
                ranker = fitted.at_strength(strength)
                candidate = Candidate(
                    name=f"{label} {strength:g}",
                    method=label,
                    strength=strength,
                    ranker=self.baseline.corrected_text(ranker),
                )
                runs[candidate] = self._apply_ranker(ranker, side.collection, side.run)
                if side.reference is not None and side.reference_run is not None:
                    # A correction re-ranks the baseline's run, and needs the groups of the complete
                    # collection. Any other ranker searches, and must find the reference alone.
                    is_correction = isinstance(ranker, Correction)
                    searched = side.collection if is_correction else side.reference
                    reference_runs[candidate] = self._apply_ranker(
                        ranker, searched, side.reference_run
                    )
                report("correcting", len(runs) - 1, len(methods.by_label) * len(strengths))
        return runs, reference_runs

    def _select(self, methods: FittedMethods) -> tuple[str, ...]:
        """Choose each method's strength on the queries to select by."""
        side = self._rank_side(self.split.select)
        runs, reference_runs = self._candidate_runs(side, methods)
        values = candidate_values(
            side.collection,
            runs,
            self.questions[0],
            reference=side.reference,
            reference_runs=reference_runs,
            options=self.bench_options,
        )
        # The first value is the baseline's.
        return choose_strengths(values[1:], self.bench_options.margin, self.bench_options.budget)

    def _apply_ranker(self, ranker: Ranker, collection: Collection, run: Run) -> Run:
        """Correct a run, or search the collection if the ranker is no correction."""
        if isinstance(ranker, Correction):
            return self.baseline.correct(ranker, collection, run)
        return ranker.rank(collection)


@dataclass(frozen=True, kw_only=True)
class _RankedSide:
    """The baseline's runs of one side's queries: over all documents, and over the reference's."""

    collection: Collection
    """Collection with the queries of the side."""
    run: Run
    """Run over all documents."""
    reference: Collection | None
    """The documents of the reference alone; None if they were not ranked alone."""
    reference_run: Run | None
    """Run over the reference's documents; None if they were not ranked alone."""


# ---- strengths -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CandidateValues:
    """Tilt and cost of a candidate on the queries to select by, without intervals."""

    candidate: Candidate
    """The candidate."""
    distance: float
    """Distance of the tilt from the neutral value, in percent; infinite if undefined."""
    loss: float
    """Cost of the candidate, in points; infinite if undefined.

    The cost is the largest loss of effectiveness. Without judgments, it is the percentage of the
    baseline's first ten documents that the candidate replaces.
    """


def choose_strengths(
    values: Sequence[CandidateValues], margin: float, budget: float
) -> tuple[str, ...]:
    """Return the name of each method's weakest candidate within half the margin and the budget.

    If a method has none, its candidate nearest to level is returned: among those within the budget
    if there are any, else among all. Only half the margin is allowed, because the tilt will differ
    on the test queries, where its whole interval must be within the margin.

    `values` are in rising order of strength.
    """
    selected_names = []
    for method in dict.fromkeys(value.candidate.method for value in values):
        method_values = [value for value in values if value.candidate.method == method]
        affordable = [value for value in method_values if value.loss <= budget] or method_values
        nearly_level = [value for value in affordable if value.distance <= margin / 2]
        nearest = min(affordable, key=lambda value: value.distance)
        weakest = nearly_level[0] if nearly_level else nearest
        selected_names.append(weakest.candidate.name)
    return tuple(selected_names)


def candidate_values(
    collection: Collection,
    runs: CandidateRuns,
    question: Estimand,
    *,
    reference: Collection | None,
    reference_runs: CandidateRuns,
    options: BenchOptions,
) -> list[CandidateValues]:
    """Return how far each candidate is from level, and what it costs; the baseline's come first.

    Parameters
    ----------
    collection : Collection
        The collection with the queries to select by.
    runs : mapping of Candidate to Run
        Runs of these queries over all documents, the baseline's first.
    question : Estimand
        The primary question, which decides what is level.
    reference : Collection or None
        The reference's documents alone; None if they were not ranked alone.
    reference_runs : mapping of Candidate to Run
        Runs over these documents.
    options : BenchOptions
        How candidates are compared.
    """
    questions = [question]
    if collection.has_judgments:
        questions = list(dict.fromkeys([question, options.effectiveness]))
    inputs = prepare_candidates(collection, runs, questions, options)
    values = measure(inputs).values
    distances = _distances(inputs, values, question)
    if collection.has_judgments:
        losses = _losses(inputs, values, options.effectiveness)
    else:
        losses = shares_replaced(list(runs.values()))
    if reference is not None and reference_runs:
        alone = prepare_candidates(
            reference, reference_runs, [options.effectiveness], options, is_grouped=False
        )
        losses_alone = _losses(alone, measure(alone).values, options.effectiveness)
        losses = [max(pair) for pair in zip(losses, losses_alone, strict=True)]
    return [
        CandidateValues(candidate=candidate, distance=distance, loss=loss)
        for candidate, distance, loss in zip(runs, distances, losses, strict=True)
    ]


def _distances(inputs: AuditInputs, values: Floats, question: Estimand) -> list[float]:
    """Return how far each run's tilt is from its neutral value, in percent.

    The tilt is that between the first pair of groups. Its *lead* is the tilt minus the neutral
    value, so it is negative if the second group is favoured. The distance is infinite if the tilt
    is undefined.
    """
    # `point` is the size of one percent in the unit of the question: .01 for a share.
    if isinstance(question, Measure):
        leads = _contrast_leads(inputs, values, question)
        point = RelativeDelta(of=question).point
    else:
        leads = _card_leads(inputs)
        point = question.point
    return [math.inf if math.isnan(lead) else abs(lead) / point for lead in leads]


def _contrast_leads(inputs: AuditInputs, values: Floats, measured: Measure) -> list[float]:
    """Return each run's Relative Δ minus its neutral value.

    Between twins, 0 is neutral. Other groups may have unequal numbers of relevant documents, which
    move Relative Δ by themselves. So for these, the neutral value is the median of Relative Δ under
    labels that are shuffled within queries, as in an audit.
    """
    contrast, pair = RelativeDelta(of=measured), inputs.pairs[0]
    a, b = pair.numbers
    leads = []
    for run_values in values[:, inputs.measures.index(measured)]:
        # Row 0 has the values of all documents, and row g + 1 those of group g.
        leads.append(contrast.value(run_values[a + 1], run_values[b + 1]) - contrast.neutral)
    if pair.are_twins:
        return leads
    breaks_ties = inputs.options.ties != "expected"
    tasks = [
        ShuffledRun(judged_run=run.untied() if breaks_ties else run, groups=pair.numbers)
        for run in inputs.judged_runs
    ]
    nulls = null_deltas(tasks, [measured], _shuffles(inputs))
    return [lead - _median(null[0]) for lead, null in zip(leads, nulls, strict=True)]


def _card_leads(inputs: AuditInputs) -> list[float]:
    """Return each run's value of a question about groups minus its neutral value.

    The *card* is the set of questions that are not about relevance, such as ``Share@10`` and
    ``HeadToHead``. NaN for a run without an answer.
    """
    pair = inputs.pairs[0]
    card = Card(
        groups=inputs.groups,
        twins={pair.names: pair.twins},
        questions=inputs.card_questions[:1],
        inference=inputs.options.inference,
        shuffles=_shuffles(inputs),
        shows_random_band=inputs.options.by != "source",
        origins=inputs.origins,
    )
    samples = list(card.answer_groups(inputs.judged_runs))
    for run_index, judged_run in enumerate(inputs.judged_runs):
        if len(pair.twins.rows):
            lists = {pair.names: pair.twins.lists(judged_run, inputs.options.missing)}
            samples += card.answer_twins(run_index, judged_run, lists)
    leads = {key.run_index: sample.value - sample.neutral for key, sample in samples}
    return [leads.get(index, math.nan) for index in range(len(inputs.judged_runs))]


def _shuffles(inputs: AuditInputs) -> Shuffles:
    """Return how labels are shuffled, with the seed of the audit."""
    return Shuffles(judgments=inputs.judgments, seed=inputs.options.inference.seed)


def _median(draws: Floats) -> float:
    """Return the median of the defined draws; NaN without any."""
    defined = draws[~np.isnan(draws)]
    return float(np.median(defined)) if len(defined) else math.nan


def _losses(inputs: AuditInputs, values: Floats, measured: Measure) -> list[float]:
    """Return the effectiveness that each run loses compared with the first one, in points.

    A gain is negative. Only queries with a value in both runs count; the loss is infinite if there
    are none, so that such a candidate is never within a budget.
    """
    # One row for each run, over all documents.
    values_by_run = values[:, inputs.measures.index(measured), 0]
    losses = []
    for run_values in values_by_run:
        query_losses = values_by_run[0] - run_values
        query_losses = query_losses[~np.isnan(query_losses)]
        losses.append(100 * float(np.mean(query_losses)) if len(query_losses) else math.inf)
    return losses
