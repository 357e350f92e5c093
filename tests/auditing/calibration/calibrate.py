"""The instrument is tested before its readings: null, antisymmetry and known tilt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ranktilt._version import __version__
from ranktilt.auditing.audit import audit
from ranktilt.auditing.card import DEPTH, card_estimands
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.prepare import DEFAULT_MEASURES
from ranktilt.auditing.result import Audit
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run, collection_rows
from ranktilt.errors import UserError, counted, refuse_twice
from ranktilt.measures.base import Estimand, Measure, estimand
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker, cut, stages_of
from ranktilt.rankers.engines.base import LiveEngine
from ranktilt.rankers.replay import Replay
from ranktilt.statistics.bootstrap import FEWEST_ROWS
from tests.auditing.calibration.synthetic_twins import (
    SCHEMES,
    THINNED,
    first_source,
    sampled,
    swapped,
    with_synthetic_twins,
)

Check = Literal["null", "antisymmetry", "known tilt"]
Verdict = Literal["ok", "failed", "untested"]

VERDICT = "the verdict"
MEANINGS: dict[Check, str] = {
    "null": (
        "the second source is a byte-identical copy of the first; everything must be level, "
        "to "
        "the last bit"
    ),
    "antisymmetry": (
        "the two sources swap their names; everything must turn its sign, to the last bit"
    ),
    "known tilt": "δ is added to the first side's scores before the cut",
}
EXPECTED: dict[Check, str] = {
    "null": "exactly 0",
    "antisymmetry": "negated",
    "known tilt": "rises with δ",
}


@dataclass(frozen=True)
class CheckOutcome:
    """One check of one ranker and estimand."""

    check: Check
    ranker: str
    """Its text."""
    estimand: str
    tests: int
    """Single comparisons behind it; none where the estimand was never defined, or no tilt could
    move it.
    """
    failed: int
    """Of these, those that did not come out as they must."""
    details: str = ""
    """The first that failed."""

    @property
    def verdict(self) -> Verdict:
        """What came of it; ``untested`` without a comparison."""
        if self.failed:
            return "failed"
        return "ok" if self.tests else "untested"

    @property
    def measured(self) -> str:
        """How many comparisons came out as they must."""
        if not self.tests:
            return "never moved" if self.check == "known tilt" else "undefined"
        return f"{self.tests - self.failed} of {self.tests}"


@dataclass(frozen=True, eq=False)
class Calibration:
    """What `calibrate` found."""

    rows: tuple[CheckOutcome, ...]
    """Ranker by ranker."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """How it was made: collection, sample, id schemes, depths, tilts, seed, versions."""
    notes: tuple[str, ...] = ()
    """What a reader should know."""

    @property
    def failures(self) -> tuple[CheckOutcome, ...]:
        """The rows that failed."""
        return tuple(row for row in self.rows if row.verdict == "failed")

    @property
    def passed(self) -> bool:
        """Whether no row failed and at least one was tested."""
        return not self.failures and any(row.verdict == "ok" for row in self.rows)

    @property
    def rankers(self) -> tuple[str, ...]:
        """Texts of the rankers, in order."""
        return tuple(dict.fromkeys(row.ranker for row in self.rows))

    @property
    def sentence(self) -> str:
        """The verdict on the whole, in one sentence."""
        if not self.failures:
            tested = sum(row.verdict == "ok" for row in self.rows)
            left = len(self.rows) - tested
            rest = f"; {left} could not be tested" if left else ""
            if not tested:
                return "Nothing could be tested: no estimand was ever defined."
            return f"Calibrated: {counted(tested, 'check', 'checks')} came out as expected{rest}."
        parts: dict[str, list[Check]] = {}
        for row in self.failures:
            parts.setdefault(row.ranker, []).append(row.check)
        failed_checks = "; ".join(
            f"{ranker}: {', '.join(dict.fromkeys(checks))}" for ranker, checks in parts.items()
        )
        return (
            f"Not calibrated: {len(self.failures)} of "
            f"{counted(len(self.rows), 'check', 'checks')} failed ({failed_checks})."
        )


DEPTHS = (1, 2, 3, 7, 10, 33, 100, 333, 1000)
"""The odd ones cut between two copies."""
SAMPLE = 500
STEPS = (-100.0, -3.0, -1.0, -0.3, -0.1, 0.0, 0.1, 0.3, 1.0, 3.0, 100.0)
"""Known tilts, in standard deviations of a query's scores (median over queries)."""
_CUT = 10
_TOUCH = 1e-7


def calibrate(
    collection: Collection,
    rankers: Ranker | Sequence[Ranker],
    measures: str | Estimand | Iterable[str | Estimand] | None = None,
    *,
    depths: Iterable[int] = DEPTHS,
    sample: int = SAMPLE,
    seed: int = 0,
) -> Calibration:
    """Test every estimand where the right answer is known.

    Null: beside every document of the first source stands a copy, byte for byte, with the same
    judgments; whatever documents are called (six schemes) and wherever the ranking ends, every
    estimand, and both ends of its interval, must be exactly 0, and the verdict must favour nobody.
    Antisymmetry: the two sources swap their names, and everything must be negated exactly. Known
    tilt: δ is added to the first source's scores, and every estimand must rise with it; over the
    whole ranking, and with a cut at 10 of scores made distinct (a cut through a tie at a measure's
    own cutoff keeps whichever its hash chooses). The scores are those of the documents that a
    ranker retrieves at full depth. The score gap is descriptive and exempt.

    How often intervals hold a true value, and how often a side is named by chance, is counted over
    simulated collections, whatever the ranker: ``benchmarks/intervals.py``.

    Parameters
    ----------
    collection : Collection
        Human text, or else its first source, and its next source; of a large one a sample. A single
        source is tested beside its own text without every third word.
    rankers : Ranker or sequence of Ranker
        What ranks; rankers with a field ``k`` are asked for every depth, others for their own.
    measures : str, Estimand or iterable of them, optional
        Measures of Relative Δ, by default those of an audit; and estimands of groups, such as
        ``"ExposureRatio@20"``. What is asked of all groups at once favours nobody, so that no null
        and no known tilt test it.
    depths : iterable of int, optional
        Depths of the rankings and of the page of ΔNDSR.
    sample : int, optional
        Most pairs of documents; at most half as many queries.
    seed : int, optional
        Of every random draw.
    """
    rankers = [rankers] if isinstance(rankers, Ranker | str) else list(rankers)
    depths = sorted(set(depths))
    _check(collection, rankers, depths, sample)
    judged = collection.qrels.height > 0
    if measures is None:
        measures = DEFAULT_MEASURES if judged else ()
    texts = [measures] if isinstance(measures, str | Estimand) else measures
    estimands = list(map(estimand, texts))
    standard = {repr(estimand) for estimand in card_estimands(DEPTH, judged=judged)}
    read = [estimand for estimand in estimands if isinstance(estimand, Measure)]
    others = [
        estimand
        for estimand in estimands
        if not isinstance(estimand, Measure) and repr(estimand) not in standard
    ]
    part = sampled(collection, pairs=sample, queries=max(sample // 2, 1), seed=seed)
    checks = _Checks(part, [*read, *others], depths, seed)
    rows = [row for ranker in rankers for row in checks.rows(ranker)]
    spec = {
        "collection": {k: v for k, v in collection.spec.items() if k != "files"},
        "sources": part.sources,
        "documents": part.docs.height,
        "queries": part.queries_with_judgments.height,
        "rankers": [repr(r) for r in rankers],
        "measures": [repr(m) for m in (*read, *others)],
        "schemes": [s.name for s in SCHEMES],
        "depths": depths,
        "tilts": STEPS,
        "sample": sample,
        "seed": seed,
        "ranktilt": __version__,
    }
    return Calibration(tuple(rows), spec, tuple(_notes(collection, part)))


def _check(
    collection: Collection, rankers: Sequence[Ranker], depths: Sequence[int], sample: int
) -> None:
    if not rankers:
        raise UserError("a calibration needs at least one ranker, such as bm25 (-r bm25)")
    if not all(isinstance(ranker, Ranker) for ranker in rankers):
        raise UserError("expected rankers; make one first: ranker('bm25')")
    refuse_twice([repr(r) for r in rankers], "ranker")
    for ranker in rankers:
        first = stages_of(ranker)[0]
        if isinstance(first, LiveEngine | Replay):
            raise UserError(
                f"{ranker!r} cannot be calibrated: a saved run or an engine ranks no copies of "
                "documents"
            )
    if not collection.queries_with_judgments.height or not collection.docs.height:
        raise UserError("nothing to calibrate on: the collection has no documents or no queries")
    if not depths or depths[0] < 1:
        raise UserError(
            f"expected depths of at least 1, got {', '.join(map(str, depths)) or 'none'}"
        )
    if sample < 2:
        raise UserError(f"expected a sample of at least 2 pairs, got {sample}")


def _notes(collection: Collection, part: Collection) -> Iterator[str]:
    source, twin = part.sources
    if twin.endswith(THINNED):
        yield (
            f"One source only: beside {source} stands the same text with {THINNED} "
            "(antisymmetry "
            "and known tilt)."
        )
    if len(collection.sources) > 2:
        left = [name for name in collection.sources if name not in part.sources]
        yield f"Sources left out: {', '.join(left)}."
    part_size, drawn = (int((c.docs["source"] == source).sum()) for c in (collection, part))
    if (drawn, part.queries_with_judgments.height) != (
        part_size,
        collection.queries_with_judgments.height,
    ):
        yield (
            f"Sampled: {drawn:,} of {part_size:,} documents of {source} and "
            f"{part.queries_with_judgments.height:,} of "
            f"{collection.queries_with_judgments.height:,} queries; documents are drawn by origin, "
            "up to three quarters of them relevant to a query that was drawn."
        )


class _Checks:
    """One calibration in the making: what all rankers share."""

    def __init__(
        self,
        collection: Collection,
        estimands: Sequence[Estimand],
        depths: Sequence[int],
        seed: int,
    ) -> None:
        self.collection, self.estimands, self.depths, self.seed = (
            collection,
            estimands,
            depths,
            seed,
        )
        self.copies = [with_synthetic_twins(collection, scheme, seed=seed) for scheme in SCHEMES]

    def rows(self, ranker: Ranker) -> Iterator[CheckOutcome]:
        for number, check in enumerate((self._null, self._antisymmetry, self._known_tilt)):
            report(f"calibrating {ranker!r}", number, 3)
            yield from check(ranker)
        report(f"calibrating {ranker!r}", 3, 3)

    def _null(self, ranker: Ranker) -> Iterator[CheckOutcome]:
        counter = ComparisonCounter("null", repr(ranker))
        for scheme, copies in zip(SCHEMES, self.copies, strict=True):
            for depth, variant in _variants(ranker, self.depths):
                run = variant.rank(copies)
                for k in self.depths if depth is None else [depth]:
                    self._level(counter, copies, run, k, f"ids: {scheme.name}, depth {k}")
        yield from counter.rows()

    def _level(
        self, counter: ComparisonCounter, copies: Collection, run: Run, depth: int, where: str
    ) -> None:
        """Whether every estimand of a run over copies is exactly level."""
        result = self._audit(copies, run, depth=depth)
        for name, reading in _readings(result).items():
            if (
                reading.estimand.sided
            ):  # what is asked of all groups at once has no value that chance gives
                level = reading.estimand.neutral
                exact = (
                    reading.low == reading.high == level and reading.error == 0 and reading.p == 1
                )
                few = reading.queries < FEWEST_ROWS  # of which there is no interval
                good = reading.value == level and (exact or few) and not reading.favours
                counter.add(
                    name, good, reading.value - level, f"{where}: {_interval_text(reading)}"
                )
        favours = result.verdict(run.name).side
        counter.add(VERDICT, favours is None, 0.0, f"{where}: favours {favours}")

    def _antisymmetry(self, ranker: Ranker) -> Iterator[CheckOutcome]:
        counter = ComparisonCounter("antisymmetry", repr(ranker))
        both = (self.collection, swapped(self.collection))
        for depth, variant in _variants(ranker, self.depths):
            ways = [_readings(self._audit(c, variant.rank(c), resamples=1_000)) for c in both]
            for name, reading in ways[0].items():
                if (
                    reading.estimand.directed and reading.estimand.sided
                ):  # a mean of ratios turned round is another question
                    continue
                where = (
                    f"depth {depth or 'its own'}: {_interval_text(reading)}, swapped "
                    f"{_interval_text(ways[1][name])}"
                )
                counter.add(name, _negated(reading, ways[1][name]), reading.value, where)
        yield from counter.rows()

    def _known_tilt(self, ranker: Ranker) -> Iterator[CheckOutcome]:
        counter = ComparisonCounter("known tilt", repr(ranker))
        [(_, deepest)] = _variants(ranker, [self.collection.docs.height])
        vectors = Vectors(self.collection, deepest.rank(self.collection), self.seed)
        for depth in (None, _CUT):
            readings = [
                _readings(self._audit(self.collection, vectors.tilted(step, depth)))
                for step in STEPS
            ]
            for name, first_reading in readings[0].items():
                ratio = (
                    first_reading.estimand.directed
                )  # of what a list holds: only over the same lists does it rise
                if (
                    first_reading.estimand.sided
                    and not first_reading.estimand.descriptive
                    and not (ratio and depth)
                ):
                    along = [reading[name] for reading in readings]
                    most = max(e.queries for e in along) if ratio else 0
                    values = np.array([e.value if e.queries >= most else np.nan for e in along])
                    counter.add_rise(name, values, f"cut at {depth}" if depth else "whole ranking")
        yield from counter.rows()

    def _audit(
        self, collection: Collection, run: Run, *, depth: int = DEPTH, resamples: int = 100
    ) -> Audit:
        measures = self.estimands or None
        return audit(
            collection, run, measures, card=True, depth=depth, resamples=resamples, seed=self.seed
        )


def _readings(audit: Audit) -> dict[str, Effect]:
    """Every estimand of an audit of one run, by name; Relative Δ of every measure first."""
    every = [*audit.tilts, *(e for e in audit.card if e.estimand.kind != "relevance")]
    return {_plain(e.name): e for e in every}


def _plain(name: str) -> str:
    """The page's depth varies: one row holds them all."""
    return name.partition("@")[0] if name.startswith("ΔNDSR") else name


def _negated(effect: Effect, opposite: Effect) -> bool:
    """Whether the second is the first seen from the other side, to the last bit."""
    turned = effect.swapped()
    names = ("value", "low", "high", "error", "p", "queries", "neutral", "null_low", "null_high")
    pairs = [(getattr(turned, n), getattr(opposite, n)) for n in names]
    pairs += [(turned.details[n], opposite.details[n]) for n in effect.details]
    left, right = zip(*pairs, strict=True)
    return np.array_equal(left, right, equal_nan=True)


def _interval_text(effect: Effect) -> str:
    return f"{effect.value:+.6g} [{effect.low:+.6g}, {effect.high:+.6g}]".replace("-", "−")


def _variants(ranker: Ranker, depths: Iterable[int]) -> list[tuple[int | None, Ranker]]:
    """The ranker at each depth; as it is, with the depth None, where it has no field for one."""
    if is_dataclass(ranker) and any(f.name == "k" for f in fields(ranker)):
        return [(depth, replace(ranker, k=depth)) for depth in depths]
    return [(None, ranker)]


class Vectors:
    """A ranker's scores at full depth, to which a tilt can be added before they are cut."""

    def __init__(self, collection: Collection, run: Run, seed: int) -> None:
        self.collection, self.queries = collection, run.queries
        rows = collection_rows(run, collection)[run.docs]
        bounds = zip(run.offsets[:-1], run.offsets[1:], strict=True)
        self.scores = [(rows[low:high], run.scores[low:high]) for low, high in bounds]
        spreads = [s.std() for _, s in self.scores if len(s) > 1 and s.std() > 0]
        self.unit = float(np.median(spreads)) if spreads else 1.0
        self.first = (collection.docs["source"] == first_source(collection)).to_numpy()
        rng = np.random.default_rng([seed, 4])
        self.noise = [
            _TOUCH * self.unit * rng.permutation(len(s)) / max(len(s), 1) for _, s in self.scores
        ]

    def tilted(self, step: float, depth: int | None) -> Run:
        """Add `step` standard deviations to the first side; scores to be cut are made distinct, by
        less than any δ.
        """
        lists = (
            (rows, scores + step * self.unit * self.first[rows] + (noise if depth else 0.0))
            for (rows, scores), noise in zip(self.scores, self.noise, strict=True)
        )
        parts = cut(lists, self.collection.tie_keys(), depth)
        return Run(self.queries, *parts, self.collection.ids, {"ranker": f"δ = {step:+g} sd"})


class ComparisonCounter:
    """Comparisons of one check and ranker, by estimand."""

    def __init__(self, check: Check, ranker: str) -> None:
        self.check, self.ranker = check, ranker
        self.tests: dict[str, list[bool]] = {}
        self.first: dict[str, str] = {}

    def add(self, estimand: str, good: bool, value: float, where: str) -> None:
        """Count one comparison, unless the value is NaN; `where` is kept of the first that
        failed.
        """
        tests = self.tests.setdefault(estimand, [])
        if not np.isnan(value):
            tests.append(good)
            if not good:
                self.first.setdefault(estimand, where)

    def add_rise(self, estimand: str, values: npt.NDArray[np.float64], where: str) -> None:
        """Count the steps of an estimand along `STEPS`, over which it must rise; one that never
        moves is untested.
        """
        known = ~np.isnan(values)
        values_there, tilts = values[known], np.array(STEPS)[known]
        self.tests.setdefault(estimand, [])
        if not len(values_there) or values_there.min() == values_there.max():
            return
        for low, high, at in zip(values_there[:-1], values_there[1:], tilts[1:], strict=True):
            good = bool(high >= low - 1e-9 * max(1.0, abs(low)))
            self.add(
                estimand,
                good,
                low,
                f"{where}: falls from {_signed(low)} to {_signed(high)} at δ = {_signed(at)} sd",
            )

    def rows(self) -> Iterator[CheckOutcome]:
        for name, tests in self.tests.items():
            details = self.first.get(name, "")
            yield CheckOutcome(
                self.check, self.ranker, name, len(tests), tests.count(False), details
            )


def _signed(value: float) -> str:
    return f"{value:+.3g}".replace("-", "−")
