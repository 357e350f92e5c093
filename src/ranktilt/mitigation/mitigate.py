"""Level a ranker at inference: fit corrections, choose each one's strength, and test them.

It takes four steps, with three full audits at most:

    test the baseline (one audit)  →  fit methods  →  choose strengths  →  compare (two audits)

It stops after the first step where the baseline is not shown to be tilted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

from ranktilt.auditing.groups import Pair, grouped_pairs, grouping
from ranktilt.auditing.options import check_resamples, usual_primary
from ranktilt.auditing.prepare import DEFAULT_MEASURES, SHARE
from ranktilt.data.collection import Collection
from ranktilt.data.run import Run
from ranktilt.errors import UserError
from ranktilt.explaining.equivalence import reference_alone
from ranktilt.measures.base import Estimand, Measure, estimand, measure
from ranktilt.measures.margin import DEFAULT_MARGIN
from ranktilt.mitigation.base import Correction, run_of_depth
from ranktilt.mitigation.baseline import Baseline, only_queries
from ranktilt.mitigation.bench import (
    EFFECTIVENESS,
    BenchOptions,
    budget_of,
    compare_candidates,
    order_questions,
)
from ranktilt.mitigation.bench_result import Bench, Candidate, check_limits
from ranktilt.mitigation.method import FittingQueries
from ranktilt.mitigation.methods import FittedMethods, fit_methods
from ranktilt.mitigation.options import MitigationOptions
from ranktilt.mitigation.query_split import QuerySplit, split_across, split_queries
from ranktilt.mitigation.remedies import remedies_of
from ranktilt.mitigation.selection import candidate_values, choose_strengths
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.candidates import FITTED
from ranktilt.statistics.bootstrap import RESAMPLES


@dataclass(frozen=True, kw_only=True)
class _RankedSide:
    """The baseline's runs of one side's queries."""

    collection: Collection
    run: Run
    reference: Collection | None
    """The reference's documents alone; None where they were not ranked alone."""
    reference_run: Run | None


def mitigate(
    collection: QuerySplit | Collection,
    ranker: Ranker | Run,
    measures: Sequence[str | Estimand] | None = None,
    *,
    fit: Collection | None = None,
    folder: str | Path | None = None,
    options: MitigationOptions | None = None,
    primary: str | Estimand | None = None,
    effectiveness: str | Measure = EFFECTIVENESS,
    budget: float | None = None,
    ties: str = "expected",
    test: str = "interval",
    correction: str = "holm",
    margin: float = DEFAULT_MARGIN,
    resamples: int = RESAMPLES,
) -> Bench:
    """Compare effectiveness and tilt of corrections of a ranker, on queries that none of them saw.

    The ranker is tested first, over all queries: where it is not shown to be tilted, nothing is
    fitted, and the bench has no candidates (`MitigationOptions.always` goes on all the same). Else
    each method learns from the queries to fit on. Of its strengths the smallest is chosen whose
    tilt on the queries to select by lies within half of `margin`, at a loss within the budget;
    where none does, the one nearest to level. On the test queries the chosen ones are judged, and
    all strengths are shown. A method that cannot be tried is listed with the reason
    (`Bench.refused`).

    Parameters
    ----------
    collection : Collection or QuerySplit
        A collection, whose queries are drawn into three sets (`split_queries`), or those sets.
    ranker : Ranker or Run
        The ranker to level; of an engine that cannot be changed, its run.
    measures : sequence of str or Estimand, optional
        Measures whose Relative Δ is taken, and questions of two groups, such as ``Share@10``.
    fit : Collection, optional
        Another collection, which the methods learn from: strengths are chosen on a third of the
        queries, or those that a split selects by, and the others test. What it shares with them is
        left out.
    folder : str or Path, optional
        Where fits are saved, which ranking with a correction needs; by default they are not, and
        the result names their files alone.
    options : MitigationOptions, optional
        Methods, strengths, groups.
    primary : str or Estimand, optional
        The question that level is judged on, in percent: by default as in `audit`, Share@10 where
        nothing is judged relevant.
    effectiveness, budget, ties, test, correction, margin, resamples
        As in `bench`.

    Returns
    -------
    Bench
        On the test queries, with the candidates that were chosen on others (`Bench.selected`); or
        of the ranker alone.

    Raises
    ------
    UserError
        If there is nothing to fit on, no method suits the ranker, the groups and the run, or an
        option is out of range.
    """
    options = options or MitigationOptions()
    split = _split(collection, fit, options.seed)
    budget = budget_of(split.test, budget)
    check_limits(margin, budget)
    check_resamples(resamples)
    pair = _pair(split.test, options)
    bench_options = BenchOptions(
        effectiveness=measure(effectiveness),
        budget=budget,
        reference=pair[0],
        by=options.by,
        pairs=(pair,),
        ties=ties,
        test=test,
        correction=correction,
        margin=margin,
        resamples=resamples,
        seed=options.seed,
    )
    questions = _questions(split.test, measures, primary, options.by)
    if isinstance(ranker, Run):
        baseline = Baseline.from_run(ranker, options.depth)
    else:
        baseline = Baseline.from_ranker(ranker, options.depth)
    if split.fitted_on:
        baseline.require_other_collection(split.fitted_on)
    work = _Mitigation(
        split=split,
        baseline=baseline,
        questions=questions,
        options=options,
        bench_options=bench_options,
        folder=None if folder is None else Path(folder),
        whole_run=baseline.rank(split.drawn_from or split.test),
    )
    tested = work.test_baseline()
    if not (options.always or tested.choose().is_tilted):
        return tested
    return work.compare(tested)


def _split(collection: QuerySplit | Collection, fit: Collection | None, seed: int) -> QuerySplit:
    """Return the three sets of queries; those to fit on may be another collection's."""
    if isinstance(collection, QuerySplit):
        if fit is None:
            return collection
        return QuerySplit.across(fit, collection.select, collection.test)
    if fit is None:
        return split_queries(collection, seed=seed)
    return split_across(collection, fit, seed=seed)


def _pair(collection: Collection, options: MitigationOptions) -> Pair:
    """Return the reference and the other group; refuse to guess among more than two."""
    chosen_pairs = None if options.pair is None else [options.pair]
    groups, pairs = grouped_pairs(collection, options.by, chosen_pairs)
    if len(pairs) > 1:
        names = ", ".join(groups.names)
        raise UserError(
            f"{options.by} makes {len(groups.names)} groups ({names}); name the two to level: "
            "--pair A,B"
        )
    known = grouping(collection, options.by).names
    united = [name for name in pairs[0] if name not in known]
    if united:
        raise UserError(
            f"a correction knows single groups, and {united[0]!r} is none; name two to level: "
            "--pair A,B"
        )
    return pairs[0]


def _questions(
    collection: Collection,
    measures: Sequence[str | Estimand] | None,
    primary: str | Estimand | None,
    by: str,
) -> list[Estimand]:
    """Return the questions, the primary one first."""
    is_judged = collection.qrels.height > 0
    usual = DEFAULT_MEASURES if is_judged else (SHARE, "ExposureRatio")
    questions = [estimand(question) for question in measures or usual]
    if primary is None:
        is_usual = not (measures or is_judged)
        primary = questions[0] if is_usual else usual_primary(questions, by)
    return order_questions(questions, primary, by)


@dataclass(frozen=True, kw_only=True)
class _Mitigation:
    """One ranker that is being levelled: what all steps share."""

    split: QuerySplit
    baseline: Baseline
    questions: Sequence[Estimand]
    options: MitigationOptions
    bench_options: BenchOptions
    folder: Path | None
    whole_run: Run
    """Of all queries that are drawn from, or else of those to test on."""

    @property
    def pair(self) -> Pair:
        """The reference and the other group."""
        return self.bench_options.pairs[0]

    def test_baseline(self) -> Bench:
        """Return the bench of the baseline alone, over all queries where the sides are drawn."""
        tested = compare_candidates(
            self.split.drawn_from or self.split.test,
            {self._baseline_candidate(self.whole_run): self.whole_run},
            self.questions[:1],
            reference_runs={},
            options=self.bench_options,
        )
        return self._with_spec(tested)

    def _baseline_candidate(self, run: Run) -> Candidate:
        return Candidate(name=run.name, method="", strength=0.0, ranker=self.baseline.text)

    def _with_spec(self, bench: Bench) -> Bench:
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
        """Fit every method, choose its strength, and compare the candidates on the test queries."""
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
        """Return the queries of this collection that were drawn to fit on or to choose by."""
        split, tested = self.split, set(self.split.test.queries_with_judgments["id"])
        sides = [split.fit, split.select]
        if split.drawn_from is not None:
            # Includes queries that lost every judgment because a test query shares it. So an audit
            # of the corrected run is on the queries of the bench.
            sides = [split.drawn_from]
        elif split.fitted_on:
            # The ids of another collection may be the same words for other queries.
            sides = [split.select]
        names = dict.fromkeys(
            chain.from_iterable(side.queries_with_judgments["id"] for side in sides)
        )
        return tuple(name for name in names if name not in tested)

    def _rank(self, collection: Collection) -> Run:
        """Return the baseline's run of one side's queries, taken from that of all where it can."""
        is_drawn = self.split.drawn_from is not None
        if collection is self.split.fit and self.split.fitted_on:
            is_drawn = False
        if is_drawn or collection is self.split.test:
            return only_queries(self.whole_run, collection.queries_with_judgments["id"])
        return self.baseline.rank(collection)

    def _rank_side(self, side: Collection) -> _RankedSide:
        """Rank a side's queries, and where that can be done on the reference's documents alone."""
        ranker, reference, reference_run = self.baseline.ranker, None, None
        is_searchable = self.options.by == "source" and side.qrels.height > 0
        if ranker is not None and not self.baseline.is_saved and is_searchable:
            reference = reference_alone(side, self.pair[0])
            reference_run = ranker.rank(reference)
        return _RankedSide(
            collection=side,
            run=self._rank(side),
            reference=reference,
            reference_run=reference_run,
        )

    def _fit(self) -> FittedMethods:
        groups = grouping(self.split.test, self.options.by, self.pair).names
        run = self._rank(self.split.fit)
        # Methods learn from what they will correct.
        run = run_of_depth(run, self.split.fit, self.baseline.cut_depth)
        queries = FittingQueries(
            collection=self.split.fit,
            run=run,
            ranker=self.baseline.ranker,
            pair=self.pair,
            groups=groups,
            by=self.options.by,
            page=self.questions[0].cutoff or 10,
            held_out=self.split.held_out,
            foreign_name=self.split.fitted_on,
            folder=self.folder,
            seed=self.options.seed,
        )
        return fit_methods(self.options.methods, queries)

    def _candidate_runs(
        self, side: _RankedSide, methods: FittedMethods
    ) -> tuple[dict[Candidate, Run], dict[Candidate, Run]]:
        """Rank with every method at every strength: all documents, and the reference's alone."""
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
                runs[candidate] = self._ranked_with(ranker, side.collection, side.run)
                if side.reference is not None and side.reference_run is not None:
                    # A correction knows the groups of all documents; a search has only those alone.
                    known = side.collection if isinstance(ranker, Correction) else side.reference
                    reference_runs[candidate] = self._ranked_with(ranker, known, side.reference_run)
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
        return choose_strengths(values[1:], self.bench_options.margin, self.bench_options.budget)

    def _ranked_with(self, ranker: Ranker, collection: Collection, run: Run) -> Run:
        """Correct a run, or search anew where the ranker itself is another."""
        if isinstance(ranker, Correction):
            return self.baseline.correct(ranker, collection, run)
        return ranker.rank(collection)
