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


class Move(NamedTuple):
    """Relative Δ under a control minus the raw one, in points."""

    value: float
    low: float
    high: float
    """95 % interval."""
    queries: int
    neutral: float = 0.0
    """The difference that favours nobody: 0 for twins, that of both medians of random labels else."""

    @property
    def shown(self) -> bool:
        return self.low > self.neutral or self.high < self.neutral


Obstacle = Literal["no twins", "saved run", "engine", "no tokens", "no token limit", "titles only"]
"""Why a control cannot be applied to a run."""


@dataclass(frozen=True, kw_only=True)
class ControlChange:
    """What a control did to what a run ranks."""

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


@dataclass(frozen=True)
class Controlled:
    """What one run says under one control about one pair of groups."""

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


@dataclass(frozen=True, eq=False)
class QueryAnswers:
    """One run's answers to one question about groups, query by query: two columns, of whose means it is made."""

    run: str
    estimand: Coded[Estimand]
    a: str
    b: str
    numerator: npt.NDArray[np.float64]
    denominator: npt.NDArray[np.float64]
    """Total and weight of each query, for most; see `ranktilt.auditing.significance.Sample`."""


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Result, format="ranktilt-audit", version=1, noun="an audit", command="ranktilt audit"):
    """What `audit` found: measure × group on one mixed ranking per run; immutable."""

    spec: Mapping[str, Any]
    """How it was made: options, inputs with their hashes, versions."""
    runs: tuple[str, ...]
    measures: tuple[Coded[Measure], ...]
    groups: tuple[str, ...]
    """The first is ``all`` (no grouping)."""
    queries: tuple[str, ...]
    values: npt.NDArray[np.float64]
    """Per-query values in [0, 1] of the shape (runs, measures, groups, queries); NaN where the query has no relevant
    document in the group."""
    tilts: tuple[Effect, ...]
    """Relative Δ of every run, pair and measure."""
    pair_counts: pl.DataFrame
    """``run``, ``a``, ``b``, ``query``, ``relevant`` and the counts of twins: ``wins`` (of `a`), ``losses``,
    ``ties``, ``both`` (both sides retrieved), ``alone`` (of the wins, those with only `a` retrieved)."""
    notes: tuple[Coded[Note], ...]
    """What a reader should know: exclusions, small samples, unknown documents."""
    card: tuple[Effect, ...] = ()
    """The question card of every run and pair; empty where it was not asked for."""
    confounds: tuple[Confound, ...] = ()
    """What else differs between the sources of each pair; empty for other groups and without texts."""
    controls: tuple[Controlled, ...] = ()
    """Relative Δ with one of these taken away; empty where it was not asked for (`ranktilt.controls`)."""
    repeated: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of each run, the queries that repeat an earlier one, by its text or by its ranking and judgments, each with the
    first; runs without any are left out."""
    top_results: Coded[TopResults] | None = None
    """The first results of every run, from which reports show lists; None where they are not kept."""
    query_answers: tuple[QueryAnswers, ...] = ()
    """What answers about groups, and to the primary question, are made of, for `ranktilt.compare`."""
    contributions: Coded[Contributions] | None = None
    """What each document adds to the answers that `ranktilt.compare` reads."""
    noise: tuple[NumericalNoise, ...] = ()
    """How far Relative Δ on the primary measure moves within the resolution of the scores, of each run that has one."""

    def __post_init__(self) -> None:
        """Give the values their shape, which lists do not tell where an axis is empty."""
        shape = (len(self.runs), len(self.measures), len(self.groups), len(self.queries))
        if self.values.shape != shape:
            object.__setattr__(self, "values", self.values.reshape(shape))

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Pairs of groups that were compared, in order; of questions about all groups at once alone, the first two."""
        tilts = [(t.a, t.b) for t in self.tilts]
        found = dict.fromkeys([*tilts, *((e.a, e.b) for e in self.card if e.estimand.sided)])
        return tuple(found or ([(self.groups[1], self.groups[2])] if self.card else ()))

    @property
    def tilted_pairs(self) -> tuple[Pair, ...]:
        """Pairs with a Relative Δ, in order; the card may ask about more, of which one side is never relevant."""
        return tuple(dict.fromkeys((t.a, t.b) for t in self.tilts))

    @property
    def judged_pairs(self) -> tuple[Pair, ...]:
        """Pairs of groups with a verdict of their own: one where it speaks of all groups at once."""
        if self.primary is not None and not self.primary.sided:
            return self.pairs[:1]
        answers = (e for e in (*self.tilts, *self.card) if e.measure == repr(self.primary))
        return tuple(dict.fromkeys((e.a, e.b) for e in answers))

    @cached_property
    def primary(self) -> Estimand | None:
        """The question that verdicts answer, which was chosen before the data were seen; None without any question."""
        if "primary" not in self.spec:
            return None
        name = str(self.spec["primary"])
        known = (
            *self.measures,
            *(effect.estimand for effect in self.card),
        )  # also a class of no registry
        return next((asked for asked in known if repr(asked) == name), None) or estimand(name)

    @property
    def primary_measure(self) -> Measure:
        """The measure whose Relative Δ is drawn: the primary question, where it is one, or else the deepest nDCG."""
        found = self.primary if self.primary in self.measures else usual_primary(self.measures)
        return found if isinstance(found, Measure) else self.measures[0]

    @property
    def primary_index(self) -> int:
        """Index of the primary measure among the measures."""
        return self.measures.index(self.primary_measure)

    @property
    def margin(self) -> Margin:
        """Half-width of what counts as level: points, or a number with the unit of the primary question."""
        given: Margin = self.spec["margin"]
        return given

    @property
    def margin_points(self) -> float:
        """The same in points, where answers in percent are drawn; the usual one where the margin has another unit."""
        return DEFAULT_MARGIN if isinstance(self.margin, str) else self.margin

    @property
    def noun(self) -> str:
        """What groups are of, in sentences."""
        return "text" if self.spec["by"] == "source" else "documents"

    @property
    def table(self) -> pl.DataFrame:
        """The tidy table: ``run``, ``measure``, ``group``, ``query``, ``value``; undefined values are NaN."""
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
        """Return the card's rows of one run or all, and of one pair; those about all groups are the first pair's."""
        if not self.card:
            raise UserError("this audit has no card; audit with --card (card=True)")
        if a is None or b is None:
            a, b = self.pairs[0]
        sides = [{a, b}, *([{ALL}] if {a, b} == set(self.pairs[0]) else [])]
        chosen = [e for e in self.card if {e.a, e.b} in sides and run in (None, e.run)]
        if not chosen:
            raise unknown("pair of groups", f"{a},{b}", [",".join(p) for p in self.pairs])
        return [e.seen_from(a) for e in chosen]

    @cached_property
    def _tied(self) -> dict[tuple[str, str, str], tuple[int, int]]:
        """Ties, and pairs with a side retrieved, of relevant twins: summed once for all runs and pairs of groups."""
        met = pl.col("wins") + pl.col("losses") + pl.col("ties")
        sums = (
            self.pair_counts.filter("relevant")
            .group_by("run", "a", "b")
            .agg(pl.col("ties").sum(), met=met.sum())
        )
        return {(run, a, b): (ties, pairs) for run, a, b, ties, pairs in sums.iter_rows()}

    def tied_share(self, run: str, a: str, b: str) -> float:
        """Share of ties among relevant twins with at least one side retrieved; NaN where there are none."""
        found = [self._tied.get((run, *pair), (0, 0)) for pair in ((a, b), (b, a))]
        ties, pairs = map(sum, zip(*found, strict=True))
        return ties / pairs if pairs else float("nan")

    def distinct(self, run: str) -> npt.NDArray[np.int64] | None:
        """Number of the query that each of a run's queries repeats, its own for most; None where none does."""
        if run not in self.repeated:
            return None
        place = {query: number for number, query in enumerate(self.queries)}
        return np.array(
            [place[self.repeated[run].get(query, query)] for query in self.queries], dtype=np.int64
        )

    def verdict(
        self, run: str | None = None, a: str | None = None, b: str | None = None
    ) -> Verdict:
        """Return the verdict on one run and pair of groups, by default the only run and the first pair.

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
            found = self.card_of(run, a, b)
            if not any(e.measure == repr(self.primary) for e in found):
                raise unknown(
                    "pair of groups", f"{a},{b}", [",".join(p) for p in self.judged_pairs]
                )
            return verdict_for(repr(self.primary), found, self.margin, noun=self.noun)
        tilts = [t.seen_from(a) for t in self.tilts if t.run == run and {t.a, t.b} == {a, b}]
        if not tilts:
            raise unknown("pair of groups", f"{a},{b}", [",".join(p) for p in self.tilted_pairs])
        return verdict_for(repr(self.primary), tilts, self.margin, noun=self.noun)

    def verdicts(self) -> list[Verdict]:
        """Return every verdict: of each run in turn, on each pair of groups."""
        return [self.verdict(run, *pair) for run in self.runs for pair in self.judged_pairs]

    @classmethod
    def of_file(cls, content: dict[str, Any]) -> Self:
        """Give the top results the names and specs of their runs, which a file holds once."""
        top = content.get("top_results")
        if top:
            top = {**top, "names": content["runs"], "specs": content["spec"]["runs"]}
        return super().of_file({**content, "top_results": top})

    def __repr__(self) -> str:
        groups = [g for g in self.groups if g != ALL]
        return f"Audit({', '.join(self.runs)}; {', '.join(map(repr, self.measures))}; by {', '.join(groups) or 'none'})"


register(Measure, repr, measure)
register(
    pl.DataFrame,
    lambda frame: frame.to_dict(as_series=False),
    lambda columns: pl.DataFrame(columns, schema=PAIR_COUNTS),
)
