"""Level a ranker at inference: fit corrections, choose each one's strength, and tell on other queries what it costs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from ranktilt.auditing.audit import audit
from ranktilt.auditing.groups import Pair, grouped_pairs, grouping
from ranktilt.auditing.options import check_resamples, usual_primary
from ranktilt.auditing.prepare import DEFAULT_MEASURES, SHARE
from ranktilt.data.collection import Collection
from ranktilt.data.run import Run, collection_rows
from ranktilt.errors import UserError
from ranktilt.explaining.equivalence import reference_alone
from ranktilt.measures.base import Estimand, Measure, estimand
from ranktilt.measures.margin import LEVEL
from ranktilt.mitigation.base import Correction
from ranktilt.mitigation.bench import EFFECTIVENESS, Trial, bench
from ranktilt.mitigation.bench_result import (
    BUDGET,
    Bench,
    Intervention,
    RefusedMethod,
    check_limits,
)
from ranktilt.mitigation.methods import FEW, At, Fitting, correct, method_named
from ranktilt.mitigation.options import Levelling
from ranktilt.mitigation.query_split import QuerySplit, split_across, split_queries
from ranktilt.progress import report
from ranktilt.rankers.base import DEPTH, FirstStage, Pipeline, Ranker, cut, entries
from ranktilt.rankers.candidates import FITTED
from ranktilt.rankers.engines.base import LiveEngine
from ranktilt.statistics.bootstrap import RESAMPLES

_QUERIES_ALONE = (
    "intervals of what is less the baseline speak of queries alone, and are a little narrow"
)


def mitigate(
    collection: QuerySplit | Collection,
    ranker: Ranker | Run,
    measures: Sequence[str | Estimand] | None = None,
    *,
    fit: Collection | None = None,
    folder: str | Path | None = None,
    primary: str | Estimand | None = None,
    options: Levelling | None = None,
    effectiveness: str | Measure = EFFECTIVENESS,
    budget: float = BUDGET,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    **how: Any,
) -> Bench:
    """Hold effectiveness against tilt for corrections of a ranker, on queries that none of them saw.

    Each method learns from the queries to fit on. Of its strengths the smallest is chosen whose
    tilt on the queries to select by lies within half of `level`, at a loss within the budget; where
    none does, the one nearest to level. On the test queries the chosen ones are judged, and all
    strengths are shown. A method that cannot be tried is told with the reason (`Bench.refused`).
    None is recommended where the ranker, over all queries, is not shown to be tilted.

    Parameters
    ----------
    collection : Collection or QuerySplit
        A collection, whose queries are drawn into three sets (`split_queries`), or those sets.
    ranker : Ranker or Run
        What is levelled; of an engine that cannot be changed, its run.
    measures : sequence of str or Estimand, optional
        Measures whose Relative Δ is told, and questions of two groups, such as ``Share@10``.
    fit : Collection, optional
        Another collection, which the methods learn from: strengths are chosen on a third of the
        queries, or those that a split selects by, and the others test. What it shares with them is
        left out.
    folder : str or Path, optional
        Where fits are kept, which ranking with a correction needs; by default they go, and the
        result names them alone.
    primary : str or Estimand, optional
        What is levelled, in percent: by default as in `audit`, Share@10 where nothing is judged
        relevant.
    options : Levelling, optional
        Methods, strengths, groups.
    effectiveness, budget, level, resamples, **how
        As in `bench`.

    Returns
    -------
    Bench
        On the test queries, with what was chosen on others (`Bench.selected`).

    Raises
    ------
    UserError
        If there is nothing to fit on, no method suits the ranker, the groups and the run, or an
        option is out of range.
    """
    options = options or Levelling()
    split = _split(collection, fit, options.seed)
    check_limits(level, budget)
    check_resamples(resamples)
    pair = _pair(split.test, options)
    judged = split.test.qrels.height > 0
    asked = [
        estimand(one)
        for one in measures or (DEFAULT_MEASURES if judged else (SHARE, "ExposureRatio"))
    ]
    if primary is None:
        leading = usual_primary(asked, options.by) if measures or judged else asked[0]
    else:
        leading = estimand(primary)
    asked = [*([leading] if leading else []), *(one for one in asked if one != leading)]
    stage = _Stage.of(ranker, options.depth)
    if split.fitted_on and stage.bound:
        raise UserError(
            f"{stage.text} is {stage.bound}, which cannot rank {split.fitted_on}; fit on its own collection"
        )
    given: dict[str, Any] = {
        "primary": asked[0],
        "effectiveness": effectiveness,
        "budget": budget,
        "level": level,
        "by": options.by,
        "pairs": [pair],
        "reference": pair[0],
        **how,
        "seed": options.seed,
    }
    with TemporaryDirectory() if folder is None else nullcontext(str(folder)) as work:
        found = _levelled(
            split,
            stage,
            asked,
            folder=Path(work),
            options=options,
            resamples=resamples,
            given=given,
        )
    return (
        found.of_file(json.loads(found.to_json().replace(f"{work}/".encode(), b"")))
        if folder is None
        else found
    )


def _split(collection: QuerySplit | Collection, fit: Collection | None, seed: int) -> QuerySplit:
    """The queries of each side; those to fit on are another collection's where one is given."""
    if isinstance(collection, QuerySplit):
        return (
            collection
            if fit is None
            else QuerySplit.across(fit, collection.select, collection.test)
        )
    return (
        split_queries(collection, seed=seed)
        if fit is None
        else split_across(collection, fit, seed=seed)
    )


def _levelled(
    split: QuerySplit,
    stage: _Stage,
    asked: list[Estimand],
    *,
    folder: Path,
    options: Levelling,
    resamples: int,
    given: dict[str, Any],
) -> Bench:
    """Fit every method, choose its strength, and judge that on the test queries."""
    pair: Pair = given["pairs"][0]
    fitting = Fitting(
        collection=split.fit,
        run=stage.rank(split.fit),
        ranker=stage.ranker,
        pair=pair,
        folder=folder,
        by=options.by,
        page=asked[0].cutoff or 10,
        target=options.target,
        lm=options.lm,
        instrument=options.instrument,
        seed=options.seed,
        force=options.force,
        held_out=split.held_out,
        other=split.fitted_on,
        groups=grouping(split.test, options.by, pair).names,
    )
    rankers, refused = dict[str, At](), dict[str, UserError]()
    for method in options.methods:
        try:
            rankers[method] = method_named(method)(fitting)
        except UserError as error:
            if isinstance(error.__cause__, OSError):  # a file's fault, not the method's
                raise
            refused[method] = error
    if not rankers:
        raise next(iter(refused.values()))
    tries = stage.trials(split.select, rankers, options)
    tried = bench(split.select, tries, asked[:1], resamples=FEW, **given)
    selected = choose_strengths(tried)
    trials = stage.trials(split.test, rankers, options)
    found = bench(split.test, trials, asked, resamples=resamples, selected=selected, **given)
    sides = {"fit": split.fit, "select": split.select, "test": split.test}
    queries = {name: len(side.judged) for name, side in sides.items()}
    before = found.before
    if split.drawn_from is not None:
        ranked = [*([] if split.fitted_on else [fitting.run]), tries[0].mixed, trials[0].mixed]
        whole = stage.over_all(split.drawn_from, ranked, found.baseline.name)
        keywords = {
            name: value
            for name, value in given.items()
            if name not in ("effectiveness", "budget", "level", "reference")
        }
        audited = audit(
            split.drawn_from,
            whole,
            asked[:1],
            confounds=False,
            keep_top=0,
            resamples=resamples,
            **keywords,
        )
        before = tuple(e for e in (*audited.tilts, *audited.card) if e.measure == found.primary)
    notes = (*fitting.sentences, *split.notes, _QUERIES_ALONE, *found.notes)
    reasons = tuple(
        RefusedMethod(name, str(error).removeprefix(f"{name}: ")) for name, error in refused.items()
    )
    elsewhere = {FITTED: split.fitted_on} if split.fitted_on else {}
    spec = {**found.spec, "queries": queries, **elsewhere, "levelling": asdict(options)}
    return replace(found, notes=notes, refused=reasons, spec=spec, before=before)


def choose_strengths(tried: Bench) -> list[str]:
    """Return each method's smallest intervention that is within half of the margin and the budget, by its values alone.

    Where none is, the nearest to level among those within the budget, or of all.
    """
    found = []
    for method in tried.methods:
        steps = tried.strengths(method)[1:]
        affordable = [one for one in steps if tried.loss(one.name) <= 100 * tried.budget] or list(
            steps
        )
        near = [one for one in affordable if tried.distance(one.name) <= tried.level / 2]
        found.append(
            (near[0] if near else min(affordable, key=lambda one: tried.distance(one.name))).name
        )
    return found


@dataclass(frozen=True)
class _Stage:
    """What is levelled: a ranker, or a run that exists."""

    text: str
    ranker: Ranker | None
    run: Run | None = None
    depth: int = 0

    @classmethod
    def of(cls, given: Ranker | Run, depth: int) -> _Stage:
        if isinstance(given, Run):
            longer = np.diff(given.offsets).max(initial=0) > depth
            text = str(given.spec.get("ranker", given.name))
            return cls(f"{text}@{depth}" if longer else text, None, given, depth)
        ranker = at_depth(given, depth)
        ranker.check()
        return cls(repr(ranker), ranker)

    @property
    def saved(self) -> bool:
        """Whether it is a run that exists, which cannot search other documents."""
        return self.ranker is None or self._first.name == "replay"

    @property
    def bound(self) -> str:
        """What it is that cannot rank another collection; nothing where it can."""
        return (
            "a saved run"
            if self.saved
            else "a live engine"
            if isinstance(self._first, LiveEngine)
            else ""
        )

    @property
    def _first(self) -> Any:
        return getattr(self.ranker, "stages", (self.ranker,))[0]

    def rank(self, collection: Collection) -> Run:
        """What it finds for the queries of one side."""
        if self.ranker is not None:
            return self.ranker.rank(collection)
        run: Any = self.run
        wanted = set(collection.judged["id"])
        held = [number for number, name in enumerate(run.queries) if name in wanted]
        if not held:
            raise UserError(f"{run.name} has none of the {len(wanted)} queries of a side to rank")
        keys = np.append(collection.tie_keys(), np.uint64(0))[collection_rows(run, collection)]
        parts = cut(entries(run, held), keys, self.depth)
        return Run(tuple(run.queries[number] for number in held), *parts, run.ids, run.spec)

    def over_all(self, whole: Collection, ranked: Sequence[Run], name: str) -> Run:
        """One run of what was ranked side by side, and of the queries that no side has."""
        known = {query for run in ranked for query in run.queries}
        rest = [query for query in whole.judged["id"] if query not in known]
        every = [*ranked, *([self.rank(whole.only_queries(rest))] if rest else [])]
        spec = {**ranked[-1].spec, "ranker": name, "name": name}
        return Run.from_frame(pl.concat([run.frame() for run in every]), spec=spec)

    def trials(
        self, side: Collection, rankers: Mapping[str, At], options: Levelling
    ) -> list[Trial]:
        """The baseline, and every method at every strength."""
        base, own = self.rank(side), None
        searched = None
        if (
            self.ranker is not None
            and not self.saved
            and options.by == "source"
            and side.qrels.height
        ):
            searched = reference_alone(side, _pair(side, options)[0])
            own = self.ranker.rank(searched)
        found = [Trial(Intervention(base.name, "", 0.0, self.text), base, own)]
        total = len(rankers) * len(options.strengths)
        for method, at in rankers.items():
            for strength in sorted(options.strengths):
                ranker = at(strength)
                text = (
                    f"{self.text}>>{ranker!r}" if isinstance(ranker, Correction) else repr(ranker)
                )
                one = Intervention(f"{method} {strength:g}", method, strength, text)
                alone = None if own is None else correct(ranker, side, own, searched)
                found.append(Trial(one, correct(ranker, side, base), alone))
                report("correcting", len(found) - 1, total)
        return found


def at_depth(ranker: Ranker, depth: int) -> Ranker:
    """Return a ranker as deep as it says itself, or of that depth where its last stage leaves it open."""
    *before, last = ranker.stages if isinstance(ranker, Pipeline) else (ranker,)
    k = getattr(last, "k", 0)
    if k is not None and not (k == DEPTH and isinstance(last, FirstStage)):
        return ranker
    last = replace(last, k=depth)  # type: ignore[type-var]
    return Pipeline((*before, last)) if before else last


def _pair(collection: Collection, options: Levelling) -> Pair:
    """The reference and the other group; refuses to guess among more than two, and corrects no rest."""
    _, pairs = grouped_pairs(
        collection, options.by, None if options.pair is None else [options.pair]
    )
    if len(pairs) > 1:
        names = dict.fromkeys(name for pair in pairs for name in pair)
        raise UserError(
            f"{options.by} makes {len(names)} groups ({', '.join(names)}); name the two to level: --pair A,B"
        )
    united = [name for name in pairs[0] if name not in grouping(collection, options.by).names]
    if united:
        raise UserError(
            f"a correction knows single groups, and {united[0]!r} is none; name two to level: --pair A,B"
        )
    return pairs[0]
