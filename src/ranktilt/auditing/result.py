"""The result of an audit: its numbers, their views, and the versioned file they are saved in.

A *tilt* is Relative Δ of one run: the difference of two groups' means of a measure, in percent of
their mean. The *card* has the answers to all other questions. The *primary question* was chosen
before the data were seen, and gives the verdicts. *Twins* are two versions of one document, of
which each of two groups has one.

`Audit` is the record that every other room reads. Its fields are those of its file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.answer.verdict import Verdict, verdict_for
from ranktilt.auditing.confounds import Confound
from ranktilt.auditing.controls.result import Controlled
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.label_errors.sensitivity import LabelSensitivity
from ranktilt.auditing.numerical_noise import NumericalNoise
from ranktilt.auditing.options import usual_primary
from ranktilt.auditing.query_groups.result import QueryBreakdown
from ranktilt.auditing.repeats.components import RepeatComponents
from ranktilt.auditing.storage.contributions import Contributions
from ranktilt.auditing.storage.top_results import TopResults
from ranktilt.data.artifact import Coded, Result, register
from ranktilt.data.labels.group_names import name_among
from ranktilt.data.notes.base import Note
from ranktilt.errors import UserError, unknown_name
from ranktilt.measures.base import Estimand, Measure, estimand, measure
from ranktilt.measures.margin import DEFAULT_MARGIN, Margin

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


@dataclass(frozen=True, eq=False, kw_only=True)
class QueryAnswers:
    """Answers of one run to one question about groups, query by query."""

    run: str
    """Name of the run."""
    estimand: Coded[Estimand]
    """Question that is answered."""
    a: str
    """The first group."""
    b: str
    """The second group."""
    numerator: npt.NDArray[np.float64]
    """Total of each query; for Relative Δ, the first group's value.

    For most questions, the answer is ``Σ numerator / Σ denominator``.
    """
    denominator: npt.NDArray[np.float64]
    """Weight of each query; for Relative Δ, the second group's value."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Audit(Result, format="ranktilt-audit", version=1, noun="an audit", command="ranktilt audit"):
    """The result of `audit`: every measure for every group of documents, by run.

    Each run ranks the documents of all groups together.
    """

    spec: Mapping[str, Any]
    """How it was made: options, inputs with their hashes, versions."""
    runs: tuple[str, ...]
    """Names of the runs."""
    measures: tuple[Coded[Measure], ...]
    """Measures of relevance."""
    groups: tuple[str, ...]
    """Names of the groups; the first is ``all``, which has every document."""
    queries: tuple[str, ...]
    """Ids of the queries."""
    values: npt.NDArray[np.float64]
    """Per-query values in [0, 1], shape (n_runs, n_measures, n_groups, n_queries).

    NaN where the query has no relevant document in the group.
    """
    tilts: tuple[Effect, ...]
    """Relative Δ of every run, pair and measure."""
    pair_counts: pl.DataFrame
    """How often either twin is ranked higher, by run, pair of groups and query.

    The columns are ``run``, ``a``, ``b``, ``query``, ``relevant`` (whether the twins are), and the
    counts ``wins`` (of `a`), ``losses``, ``ties``, ``both`` (both twins retrieved) and ``alone``
    (wins with only the twin of `a` retrieved).
    """
    notes: tuple[Coded[Note], ...]
    """What a reader should know: exclusions, small samples, unknown documents."""
    card: tuple[Effect, ...] = ()
    """Answers to the question card for every run and pair; empty if it was not asked for."""
    confounds: tuple[Confound, ...] = ()
    """Other differences between the sources of each pair; empty without sources or texts."""
    controls: tuple[Controlled, ...] = ()
    """Relative Δ without one of these differences (`ranktilt.controls`); empty by default."""
    repeated: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By run, each query that repeats an earlier query, with the first of these queries.

    Queries repeat each other if their texts are equal, or both their rankings and their judgments.
    Runs without such queries are left out.
    """
    top_results: Coded[TopResults] | None = None
    """First results of every run, which reports show; None if they are not saved."""
    query_answers: tuple[QueryAnswers, ...] = ()
    """Values per query behind the answers about groups and to the primary question.

    `compare` reads them.
    """
    contributions: Coded[Contributions] | None = None
    """What each document adds to the answers that `ranktilt.compare` reads."""
    noise: tuple[NumericalNoise, ...] = ()
    """How far Relative Δ moves within the resolution of a run's scores.

    Runs whose scores have full precision are left out.
    """
    label_sensitivities: tuple[LabelSensitivity, ...] = ()
    """Label errors that would explain each finding on Share@k of documents that are no twins."""
    repeats: tuple[RepeatComponents, ...] = ()
    """How much queries, documents and repeats add to the uncertainty of each answer.

    A repeat is one of several rankings by the same ranker; runs without repeats are left out.
    """
    by_query: QueryBreakdown | None = None
    """Every answer by group of queries, and whether the groups differ; None if not asked for."""

    def __post_init__(self) -> None:
        """Give the values their shape, which nested lists of a file lack if an axis is empty."""
        shape = (len(self.runs), len(self.measures), len(self.groups), len(self.queries))
        if self.values.shape != shape:
            object.__setattr__(self, "values", self.values.reshape(shape))

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Pairs of groups that were compared, in order.

        If all questions are about all groups together, it is the first two groups.
        """
        effects = [*self.tilts, *(effect for effect in self.card if effect.estimand.sided)]
        pairs = tuple(dict.fromkeys((effect.a, effect.b) for effect in effects))
        if not pairs and self.card and len(self.groups) > 2:  # the first is all documents
            return ((self.groups[1], self.groups[2]),)
        return pairs

    @property
    def tilted_pairs(self) -> tuple[Pair, ...]:
        """Pairs of groups with a Relative Δ, in order.

        The card may have more pairs: those of which one group has no relevant document.
        """
        return tuple(dict.fromkeys((tilt.a, tilt.b) for tilt in self.tilts))

    @property
    def judged_pairs(self) -> tuple[Pair, ...]:
        """Pairs of groups that have a verdict each.

        A primary question about all groups together has one verdict, listed under the first pair.
        """
        if self.primary is not None and not self.primary.sided:
            return self.pairs[:1]
        effects = (*self.tilts, *self.card)
        answers = [effect for effect in effects if effect.measure == repr(self.primary)]
        return tuple(dict.fromkeys((answer.a, answer.b) for answer in answers))

    @cached_property
    def primary(self) -> Estimand | None:
        """The question that verdicts answer, chosen before the data were seen; None without any."""
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
        """The measure whose Relative Δ is shown in figures.

        It is the primary question if that is a measure, else the nDCG with the largest cutoff.
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
        """The margin in points; the default margin if it has another unit."""
        return DEFAULT_MARGIN if isinstance(self.margin, str) else self.margin

    @property
    def noun(self) -> str:
        """Noun for the documents in sentences; without texts they are just documents."""
        collection = self.spec["collection"]
        has_texts = bool(collection.get("layout")) or not collection.get("labels")
        return "text" if self.spec["by"] == "source" and has_texts else "documents"

    @property
    def table(self) -> pl.DataFrame:
        """Table of ``run``, ``measure``, ``group``, ``query``, ``value``; NaN where undefined."""
        keys = pl.DataFrame({"run": self.runs}, schema={"run": pl.String})
        # The cross joins give the rows in the order of the axes of `values`.
        for column, names in (
            ("measure", map(repr, self.measures)),
            ("group", self.groups),
            ("query", self.queries),
        ):
            axis = pl.DataFrame({column: list(names)}, schema={column: pl.String})
            keys = keys.join(axis, how="cross")
        return keys.with_columns(pl.Series("value", self.values.ravel()))

    def repeat_count(self, run: str) -> int:
        """Return the number of repeats of a run; 1 where each query was ranked once."""
        specs = dict(zip(self.runs, self.spec.get("runs", ()), strict=False))
        return 1 + len(specs.get(run, {}).get("repeats", ()))

    def by_group(self) -> pl.DataFrame:
        """Return the means of each run, measure and group.

        ``queries`` counts the queries with a relevant document in the group, ``excluded`` all
        others. ``mean`` is NaN if no query has one.
        """
        is_defined = pl.col("value").is_not_nan()
        return self.table.group_by("run", "measure", "group", maintain_order=True).agg(
            pl.col("value").filter(is_defined).mean().fill_null(float("nan")).alias("mean"),
            is_defined.sum().cast(pl.Int64).alias("queries"),
            (~is_defined).sum().cast(pl.Int64).alias("excluded"),
        )

    def card_of(self, run: str | None, a: str | None = None, b: str | None = None) -> list[Effect]:
        """Return the card's answers for a pair of groups, about one run or all runs.

        All runs if `run` is None; the first pair if `a` or `b` is None. Answers about all groups
        together belong to the first pair.
        """
        if not self.card:
            raise UserError("this audit has no card; audit with --card (card=True)")
        if a is None or b is None:
            a, b = self.pairs[0]
        a, b = self.group_named(a), self.group_named(b)
        group_sets = [{a, b}]
        if {a, b} == set(self.pairs[0]):
            group_sets.append({ALL})  # both groups of an answer about all groups together
        rows = [
            effect.seen_from(a)
            for effect in self.card
            if {effect.a, effect.b} in group_sets and run in (None, effect.run)
        ]
        if not rows:
            raise unknown_name("pair of groups", f"{a},{b}", map(",".join, self.pairs))
        return rows

    @cached_property
    def _tie_counts(self) -> dict[tuple[str, str, str], tuple[int, int]]:
        """Number of ties and of pairs among relevant twins, by run and both groups.

        Only pairs of twins of which at least one is retrieved count.
        """
        pairs = pl.col("wins") + pl.col("losses") + pl.col("ties")
        sums = (
            self.pair_counts.filter("relevant")
            .group_by("run", "a", "b")
            .agg(pl.col("ties").sum(), pairs=pairs.sum())
        )
        return {(run, a, b): (ties, pairs) for run, a, b, ties, pairs in sums.iter_rows()}

    def tied_share(self, run: str, a: str, b: str) -> float:
        """Return the share of ties among pairs of relevant twins of which one is retrieved.

        NaN if there is no such pair.
        """
        # The audit compares a pair of groups in one order; that of the arguments may be the other.
        ties, pairs = self._tie_counts.get((run, a, b), (0, 0))
        swapped_ties, swapped_pairs = self._tie_counts.get((run, b, a), (0, 0))
        ties, pairs = ties + swapped_ties, pairs + swapped_pairs
        return ties / pairs if pairs else float("nan")

    def distinct(self, run: str) -> npt.NDArray[np.int64] | None:
        """Return a number for each query of a run; queries that repeat each other have one number.

        None if no query repeats another one.
        """
        if run not in self.repeated:
            return None
        first_queries = self.repeated[run]
        query_numbers = {query: number for number, query in enumerate(self.queries)}
        numbers = [query_numbers[first_queries.get(query, query)] for query in self.queries]
        return np.array(numbers, dtype=np.int64)

    def verdict(
        self, run: str | None = None, a: str | None = None, b: str | None = None
    ) -> Verdict:
        """Return the verdict on a run and a pair of groups.

        By default on the only run and the first pair. It answers the primary question, and counts
        how many other questions agree.
        """
        if run is None and len(self.runs) == 1:
            run = self.runs[0]
        if run is None:
            raise UserError(f"name one of {len(self.runs)} runs: {', '.join(self.runs)}")
        if run not in self.runs:
            raise unknown_name("run", run, self.runs)
        if not self.pairs:
            raise UserError("nothing to compare: this audit has no groups")
        if a is None or b is None or (self.primary is not None and not self.primary.sided):
            a, b = self.pairs[0]
        a, b = self.group_named(a), self.group_named(b)
        if self.primary not in self.measures:
            answers = self.card_of(run, a, b)
            if not any(answer.measure == repr(self.primary) for answer in answers):
                raise unknown_name("pair of groups", f"{a},{b}", map(",".join, self.judged_pairs))
            return verdict_for(repr(self.primary), answers, self.margin, noun=self.noun)
        tilts = [
            tilt.seen_from(a)
            for tilt in self.tilts
            if tilt.run == run and {tilt.a, tilt.b} == {a, b}
        ]
        if not tilts:
            raise unknown_name("pair of groups", f"{a},{b}", map(",".join, self.tilted_pairs))
        return verdict_for(repr(self.primary), tilts, self.margin, noun=self.noun)

    def group_named(self, name: str) -> str:
        """Return the group that a name or a label means, such as ``source 1`` for ``1``.

        A name that no group has is returned as it is.
        """
        by = str(self.spec["by"])
        for column in (by, by.rpartition(":")[0]):  # "year:3", then the column "year" itself
            group = name_among(name, self.groups, column)
            if group is not None:
                return group
        return name

    def verdicts(self) -> list[Verdict]:
        """Return the verdicts of the first run on each pair of groups, then of the next run."""
        verdicts = []
        for run in self.runs:
            verdicts += [self.verdict(run, a, b) for a, b in self.judged_pairs]
        return verdicts

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        """Read an audit from the content of its file.

        The file has the names and specs of the runs once; the top results need them too.
        """
        top = content.get("top_results")
        if top:
            top = {**top, "names": content["runs"], "specs": content["spec"]["runs"]}
        return super().from_content({**content, "top_results": top})

    def __repr__(self) -> str:
        groups = ", ".join(group for group in self.groups if group != ALL) or "none"
        measures = ", ".join(map(repr, self.measures))
        return f"Audit({', '.join(self.runs)}; {measures}; by {groups})"


# Files hold a measure as its notation, and a table as a list of values by column.
register(Measure, repr, measure)
register(
    pl.DataFrame,
    lambda frame: frame.to_dict(as_series=False),
    lambda columns: pl.DataFrame(columns, schema=PAIR_COUNTS),
)
