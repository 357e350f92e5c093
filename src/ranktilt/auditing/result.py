"""The audit: one tidy table and its views, as one versioned file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.answer.verdict import Verdict, verdict_for
from ranktilt.auditing.confounds import Confound
from ranktilt.auditing.contributions import Contributions
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.label_errors.sensitivity import LabelSensitivity
from ranktilt.auditing.numerical_noise import NumericalNoise
from ranktilt.auditing.options import usual_primary
from ranktilt.auditing.top_results import TopResults
from ranktilt.data.artifact import Coded, Result, register
from ranktilt.data.notes.base import Note
from ranktilt.errors import UserError, unknown
from ranktilt.measures.base import Estimand, Measure, estimand, measure
from ranktilt.measures.margin import DEFAULT_MARGIN, Margin

RAW = "raw"
"""Name of the row that no control is applied to."""
PAIR_COUNTS = {
    "run": pl.String,
    "a": pl.String,
    "b": pl.String,
    "query": pl.String,
    "relevant": pl.Boolean,
    "wins": pl.Int64,
    "losses": pl.Int64,
    "ties": pl.Int64,
    "both": pl.Int64,
    "alone": pl.Int64,
}
"""Columns of `Audit.pair_counts`: wins, losses and ties of twins, by run, pair and query."""


class Move(NamedTuple):
    """Relative Δ under a control minus the raw one, in points."""

    value: float
    low: float
    high: float
    """95 % interval."""
    queries: int
    neutral: float = 0.0
    """The difference that favours nobody: 0 for twins, else that of random labels' medians."""

    @property
    def is_shown(self) -> bool:
        return self.low > self.neutral or self.high < self.neutral


Obstacle = Literal["no twins", "saved run", "engine", "no tokens", "no token limit", "titles only"]
"""Why a control cannot be applied to a run."""


@dataclass(frozen=True, kw_only=True)
class ControlChange:
    """How a control changed the texts that a run ranks."""

    outcome: Literal["raw", "changed", "unchanged", "not applicable", "nothing left", "refused"]
    """``unchanged``: nothing that the run reads; ``nothing left``: nothing to compare is left;
    ``refused``: what is left cannot be audited."""
    changed: int = 0
    """Documents whose texts changed, or pairs of twins that were left out."""
    total: int = 0
    unit: Literal["documents", "pairs"] = "documents"
    near: float = np.nan
    """Jaccard similarity of terms from which pairs are left out; NaN of other controls."""
    obstacle: Obstacle | None = None
    """Why it is not applicable."""
    error: str = ""
    """Why what is left cannot be audited."""


@dataclass(frozen=True, kw_only=True)
class Controlled:
    """One run's answer under one control about one pair of groups."""

    run: str
    control: str
    a: str
    b: str
    control_change: ControlChange
    """How many texts it changed, or why it was not applied."""
    tilts: tuple[Effect, ...]
    """One a measure; none where the control was not applied."""
    moves: tuple[Move, ...]
    """One a measure."""


@dataclass(frozen=True, eq=False, kw_only=True)
class QueryAnswers:
    """One run's answers to one question about groups, in two columns of per-query values."""

    run: str
    estimand: Coded[Estimand]
    a: str
    b: str
    numerator: npt.NDArray[np.float64]
    denominator: npt.NDArray[np.float64]
    """Total and weight of each query, for most; see `ranktilt.auditing.significance.Sample`."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Audit(Result, format="ranktilt-audit", version=1, noun="an audit", command="ranktilt audit"):
    """The result of `audit`: measure × group on one mixed ranking per run; immutable."""

    spec: Mapping[str, Any]
    """How it was made: options, inputs with their hashes, versions."""
    runs: tuple[str, ...]
    measures: tuple[Coded[Measure], ...]
    groups: tuple[str, ...]
    """The first is ``all`` (no grouping)."""
    queries: tuple[str, ...]
    values: npt.NDArray[np.float64]
    """Per-query values in [0, 1], shape (n_runs, n_measures, n_groups, n_queries).

    NaN where the query has no relevant document in the group.
    """
    tilts: tuple[Effect, ...]
    """Relative Δ of every run, pair and measure."""
    pair_counts: pl.DataFrame
    """Counts of twins: ``run``, ``a``, ``b``, ``query``, ``relevant`` and the numbers.

    These are ``wins`` (of `a`), ``losses``, ``ties``, ``both`` (both sides retrieved) and ``alone``
    (the wins with only `a` retrieved).
    """
    notes: tuple[Coded[Note], ...]
    """What a reader should know: exclusions, small samples, unknown documents."""
    card: tuple[Effect, ...] = ()
    """The question card of every run and pair; empty where it was not asked for."""
    confounds: tuple[Confound, ...] = ()
    """Other differences between the sources of each pair; empty without sources or texts."""
    controls: tuple[Controlled, ...] = ()
    """Relative Δ with one of these taken away (`ranktilt.controls`); empty by default."""
    repeated: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Queries of each run that repeat an earlier one, with the first; other runs are left out.

    Queries repeat each other by text, or by ranking and judgments.
    """
    top_results: Coded[TopResults] | None = None
    """First results of every run, which reports show; None where they are not kept."""
    query_answers: tuple[QueryAnswers, ...] = ()
    """Columns behind the answers about groups and to the primary question, for `compare`."""
    contributions: Coded[Contributions] | None = None
    """What each document adds to the answers that `ranktilt.compare` reads."""
    noise: tuple[NumericalNoise, ...] = ()
    """Movement of Relative Δ within the resolution of the scores, for each run that has one."""
    label_sensitivities: tuple[LabelSensitivity, ...] = ()
    """Label errors that would explain each finding on Share@k of documents that are no twins."""

    def __post_init__(self) -> None:
        """Give the values their shape, which lists do not tell where an axis is empty."""
        shape = (len(self.runs), len(self.measures), len(self.groups), len(self.queries))
        if self.values.shape != shape:
            object.__setattr__(self, "values", self.values.reshape(shape))

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Pairs of groups that were compared, in order.

        Where all questions are about all groups together, it is the first two groups.
        """
        effects = [*self.tilts, *(effect for effect in self.card if effect.estimand.sided)]
        pairs = tuple(dict.fromkeys((effect.a, effect.b) for effect in effects))
        if not pairs and self.card:
            return ((self.groups[1], self.groups[2]),)
        return pairs

    @property
    def tilted_pairs(self) -> tuple[Pair, ...]:
        """Pairs with a Relative Δ, in order.

        The card may have more, where one side is never relevant.
        """
        return tuple(dict.fromkeys((tilt.a, tilt.b) for tilt in self.tilts))

    @property
    def judged_pairs(self) -> tuple[Pair, ...]:
        """Pairs of groups with a separate verdict; one where it is about all groups together."""
        if self.primary is not None and not self.primary.sided:
            return self.pairs[:1]
        effects = (*self.tilts, *self.card)
        answers = [effect for effect in effects if effect.measure == repr(self.primary)]
        return tuple(dict.fromkeys((answer.a, answer.b) for answer in answers))

    @cached_property
    def primary(self) -> Estimand | None:
        """The question that verdicts answer; None without any question.

        It was chosen before the data were seen.
        """
        if "primary" not in self.spec:
            return None
        name = str(self.spec["primary"])
        # The audit's questions come first: their class may be in no registry.
        for question in (*self.measures, *(effect.estimand for effect in self.card)):
            if repr(question) == name:
                return question
        return estimand(name)

    @property
    def primary_measure(self) -> Measure:
        """The measure whose Relative Δ is drawn.

        It is the primary question, where that is a measure, or else the deepest nDCG.
        """
        question = self.primary if self.primary in self.measures else usual_primary(self.measures)
        return question if isinstance(question, Measure) else self.measures[0]

    @property
    def primary_index(self) -> int:
        """Index of the primary measure among the measures."""
        return self.measures.index(self.primary_measure)

    @property
    def margin(self) -> Margin:
        """Largest tilt that counts as level: points, or a number with the primary unit."""
        margin: Margin = self.spec["margin"]
        return margin

    @property
    def margin_points(self) -> float:
        """The margin in points, for answers in percent; the default where it has another unit."""
        return DEFAULT_MARGIN if isinstance(self.margin, str) else self.margin

    @property
    def noun(self) -> str:
        """The noun for the grouped documents, in sentences; labels alone have no texts."""
        collection = self.spec["collection"]
        has_texts = bool(collection.get("layout")) or not collection.get("labels")
        return "text" if self.spec["by"] == "source" and has_texts else "documents"

    @property
    def table(self) -> pl.DataFrame:
        """Table of ``run``, ``measure``, ``group``, ``query``, ``value``; NaN where undefined."""
        names = pl.DataFrame({"run": self.runs}, schema={"run": pl.String})
        for column, labels in (
            ("measure", map(repr, self.measures)),
            ("group", self.groups),
            ("query", self.queries),
        ):
            names = names.join(
                pl.DataFrame({column: list(labels)}, schema={column: pl.String}), how="cross"
            )
        return names.with_columns(pl.Series("value", self.values.ravel()))

    def by_group(self) -> pl.DataFrame:
        """Return the means per run, measure and group.

        ``mean`` is NaN where nothing is defined; ``queries`` counts those with a relevant document
        in the group, ``excluded`` the others.
        """
        defined = pl.col("value").is_not_nan()
        return self.table.group_by("run", "measure", "group", maintain_order=True).agg(
            pl.col("value").filter(defined).mean().fill_null(float("nan")).alias("mean"),
            defined.sum().cast(pl.Int64).alias("queries"),
            (~defined).sum().cast(pl.Int64).alias("excluded"),
        )

    def card_of(self, run: str | None, a: str | None = None, b: str | None = None) -> list[Effect]:
        """Return the card's rows of one run or all runs, and of one pair.

        Rows about all groups belong to the first pair.
        """
        if not self.card:
            raise UserError("this audit has no card; audit with --card (card=True)")
        if a is None or b is None:
            a, b = self.pairs[0]
        sides = [{a, b}]
        if {a, b} == set(self.pairs[0]):
            sides.append({ALL})
        rows = [
            effect.seen_from(a)
            for effect in self.card
            if {effect.a, effect.b} in sides and run in (None, effect.run)
        ]
        if not rows:
            raise unknown("pair of groups", f"{a},{b}", map(",".join, self.pairs))
        return rows

    @cached_property
    def _tied(self) -> dict[tuple[str, str, str], tuple[int, int]]:
        """Ties, and pairs with a side retrieved, of relevant twins, by run and pair of groups."""
        met = pl.col("wins") + pl.col("losses") + pl.col("ties")
        sums = (
            self.pair_counts.filter("relevant")
            .group_by("run", "a", "b")
            .agg(pl.col("ties").sum(), met=met.sum())
        )
        return {(run, a, b): (ties, pairs) for run, a, b, ties, pairs in sums.iter_rows()}

    def tied_share(self, run: str, a: str, b: str) -> float:
        """Return the share of ties among relevant twins with a side retrieved; NaN without any."""
        ties, pairs = self._tied.get((run, a, b), (0, 0))
        turned_ties, turned_pairs = self._tied.get((run, b, a), (0, 0))
        ties, pairs = ties + turned_ties, pairs + turned_pairs
        return ties / pairs if pairs else float("nan")

    def distinct(self, run: str) -> npt.NDArray[np.int64] | None:
        """Return the number of the query that each of a run's queries repeats.

        Most have their own number. None where no query repeats another.
        """
        if run not in self.repeated:
            return None
        first_of = self.repeated[run]
        number_of = {query: number for number, query in enumerate(self.queries)}
        numbers = [number_of[first_of.get(query, query)] for query in self.queries]
        return np.array(numbers, dtype=np.int64)

    def verdict(
        self, run: str | None = None, a: str | None = None, b: str | None = None
    ) -> Verdict:
        """Return the verdict on a run and a pair of groups, by default the only run and first pair.

        It is given on the primary question, with how many others agree.
        """
        if run is None and len(self.runs) == 1:
            run = self.runs[0]
        if run is None:
            raise UserError(f"name one of {len(self.runs)} runs: {', '.join(self.runs)}")
        if run not in self.runs:
            raise unknown("run", run, self.runs)
        if not self.pairs:
            raise UserError("nothing to compare: this audit has no groups")
        if a is None or b is None or (self.primary is not None and not self.primary.sided):
            a, b = self.pairs[0]
        if self.primary not in self.measures:
            answers = self.card_of(run, a, b)
            if not any(answer.measure == repr(self.primary) for answer in answers):
                raise unknown("pair of groups", f"{a},{b}", map(",".join, self.judged_pairs))
            return verdict_for(repr(self.primary), answers, self.margin, noun=self.noun)
        tilts = [
            tilt.seen_from(a)
            for tilt in self.tilts
            if tilt.run == run and {tilt.a, tilt.b} == {a, b}
        ]
        if not tilts:
            raise unknown("pair of groups", f"{a},{b}", map(",".join, self.tilted_pairs))
        return verdict_for(repr(self.primary), tilts, self.margin, noun=self.noun)

    def verdicts(self) -> list[Verdict]:
        """Return every verdict: of each run in turn, on each pair of groups."""
        verdicts = []
        for run in self.runs:
            verdicts += [self.verdict(run, a, b) for a, b in self.judged_pairs]
        return verdicts

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        """Give the top results the names and specs of their runs, which a file holds once."""
        top = content.get("top_results")
        if top:
            top = {**top, "names": content["runs"], "specs": content["spec"]["runs"]}
        return super().from_content({**content, "top_results": top})

    def __repr__(self) -> str:
        groups = ", ".join(group for group in self.groups if group != ALL) or "none"
        measures = ", ".join(map(repr, self.measures))
        return f"Audit({', '.join(self.runs)}; {measures}; by {groups})"


register(Measure, repr, measure)
register(
    pl.DataFrame,
    lambda frame: frame.to_dict(as_series=False),
    lambda columns: pl.DataFrame(columns, schema=PAIR_COUNTS),
)
