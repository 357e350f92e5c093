"""The audit: one tidy table and its views, as one versioned file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from ranktilt.auditing.confounds import Confound
from ranktilt.auditing.controlled import Controlled
from ranktilt.auditing.effects import LEVEL, Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.heads import Heads
from ranktilt.auditing.notes import telling
from ranktilt.auditing.verdict import Verdict, judge, judge_card
from ranktilt.auditing.whole import require_whole
from ranktilt.errors import UserError, unknown
from ranktilt.io.artifact import Saved
from ranktilt.io.files import write_bytes
from ranktilt.measures.base import Estimand, Measure, estimand, measure

FORMAT = "ranktilt-audit"
VERSION = 1
_ROUNDED = 1e-9
"""How far rounding takes a measure's value out of 0 to 1."""


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What `audit` found: measure × group on one mixed ranking per run; immutable.

    Parameters
    ----------
    spec : mapping
        How it was made: options, inputs with their hashes, versions.
    runs, groups, queries : tuple of str
        Names along the axes; the first group is ``all`` (no grouping).
    measures : tuple of Measure
        The first is the primary one, on which verdicts are given.
    values : ndarray of float64, shape (runs, measures, groups, queries)
        Per-query values in [0, 1]; NaN where the query has no relevant document in the group.
    tilts : tuple of Effect
        Relative Δ of every run, pair and measure.
    pair_counts : polars.DataFrame
        ``run``, ``a``, ``b``, ``query``, ``relevant`` and the counts of twins: ``wins`` (of `a`), ``losses``,
        ``ties``, ``both`` (both sides retrieved), ``alone`` (of the wins, those with only `a` retrieved).
    notes : tuple of str
        What a reader should know: exclusions, small samples, unknown documents.
    estimates : tuple of Effect
        The estimand card of every run and pair; empty where it was not asked for.
    confounds : tuple of Confound
        What else differs between the sources of each pair; empty for other groups and without texts.
    controls : tuple of Controlled
        Relative Δ with one of these taken away; empty where it was not asked for (`ranktilt.controls`).
    repeated : mapping
        Of each run, the queries that repeat an earlier one, by its text or by its ranking and judgments, each with
        the first; runs without any are left out.
    heads : Heads or None
        The first results of every run, from which reports show lists; None where they are not kept, as in files of
        older versions.
    """

    spec: Mapping[str, Any]
    runs: tuple[str, ...]
    measures: tuple[Measure, ...]
    groups: tuple[str, ...]
    queries: tuple[str, ...]
    values: npt.NDArray[np.float64]
    tilts: tuple[Effect, ...]
    pair_counts: pl.DataFrame
    notes: tuple[str, ...]
    estimates: tuple[Effect, ...] = ()
    confounds: tuple[Confound, ...] = ()
    controls: tuple[Controlled, ...] = ()
    repeated: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    heads: Heads | None = None

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Pairs of groups that were compared, by Relative Δ or on the card, in order."""
        tilts = [(t.a, t.b) for t in self.tilts]
        return tuple(dict.fromkeys([*tilts, *((e.a, e.b) for e in self.estimates)]))

    @property
    def tilted_pairs(self) -> tuple[Pair, ...]:
        """Pairs with a Relative Δ, in order; the card may ask about more, of which one side is never relevant."""
        return tuple(dict.fromkeys((t.a, t.b) for t in self.tilts))

    @property
    def primary(self) -> Estimand | None:
        """The question that verdicts answer: the first measure; without one twins head to head, or who fills the page.

        None where nothing was asked about groups.
        """
        if "primary" in self.spec:
            return estimand(str(self.spec["primary"]))
        if self.measures:
            return self.measures[0]
        asked = dict.fromkeys(e.estimand for e in self.estimates if not e.estimand.descriptive)
        return next((one for one in asked if repr(one) == "HeadToHead"), next(iter(asked), None))

    @property
    def two_way(self) -> bool:
        """Whether tests and intervals of twins speak of documents too, as they do not in files of older versions."""
        return any(t.votes >= 0 for t in self.tilts) or any(e.votes >= 0 for e in self.estimates)

    @property
    def level(self) -> float:
        """Half-width, in percent, of what counts as level."""
        return float(self.spec.get("level", LEVEL))

    @property
    def table(self) -> pl.DataFrame:
        """The tidy table: ``run``, ``measure``, ``group``, ``query``, ``value``; undefined values are NaN."""
        names = pl.DataFrame({"run": self.runs}, schema={"run": pl.String})
        for column, labels in (
            ("measure", map(repr, self.measures)),
            ("group", self.groups),
            ("query", self.queries),
        ):
            names = names.join(pl.DataFrame({column: list(labels)}, schema={column: pl.String}), how="cross")
        return names.with_columns(pl.Series("value", self.values.ravel()))

    def by_group(self) -> pl.DataFrame:
        """Return the means per run, measure and group.

        Returns
        -------
        polars.DataFrame
            ``run``, ``measure``, ``group``, ``mean`` (NaN where nothing is defined), ``queries`` (those with a
            relevant document in the group) and ``excluded`` (the others).
        """
        defined = pl.col("value").is_not_nan()
        return self.table.group_by("run", "measure", "group", maintain_order=True).agg(
            pl.col("value").filter(defined).mean().fill_null(float("nan")).alias("mean"),
            defined.sum().cast(pl.Int64).alias("queries"),
            (~defined).sum().cast(pl.Int64).alias("excluded"),
        )

    def relative_delta(self, a: str, b: str) -> pl.DataFrame:
        """Return Relative Δ between two groups for every run and measure.

        Parameters
        ----------
        a, b : str
            Groups; positive values favour `a`. Naming them the other way round negates every value exactly.

        Returns
        -------
        polars.DataFrame
            One row a run and measure with the fields of `Effect` (in percent, 95 % interval), ``detectable``, and
            ``tied_share``: of relevant twins with at least one side retrieved, the share with equal scores.

        Raises
        ------
        UserError
            If the audit did not compare these groups.
        """
        rows = [
            {**t.seen_from(a).table_row(), "tied_share": self.tied_share(t.run, a, b)}
            for t in self.tilts
            if {t.a, t.b} == {a, b}
        ]
        if not rows:
            raise unknown("pair of groups", f"{a},{b}", [",".join(p) for p in self.pairs])
        return pl.DataFrame(rows)

    def card(self, a: str | None = None, b: str | None = None) -> pl.DataFrame:
        """Return the estimand card: every question side by side, for every run.

        Parameters
        ----------
        a, b : str, optional
            Groups, by default the first pair; positive values favour `a`. Naming them the other way round negates
            every value exactly.

        Returns
        -------
        polars.DataFrame
            One row a run and question with the fields of `Effect`; the counts behind it are columns.

        Raises
        ------
        UserError
            If the audit has no card, or did not compare these groups.
        """
        chosen = self.estimates_of(None, a, b)
        rows = [{**{k: v for k, v in e.card_row().items() if k != "extra"}, **e.parts} for e in chosen]
        return pl.DataFrame(rows, infer_schema_length=None)

    def estimates_of(self, run: str | None, a: str | None = None, b: str | None = None) -> list[Effect]:
        """Return the card's rows of one run (of all where None) and one pair of groups, as `card` does."""
        if not self.estimates:
            raise UserError("this audit has no card; ask for it: --card (card=True)")
        if a is None or b is None:
            a, b = self.pairs[0]
        chosen = [e for e in self.estimates if {e.a, e.b} == {a, b} and run in (None, e.run)]
        if not chosen:
            raise unknown("pair of groups", f"{a},{b}", [",".join(p) for p in self.pairs])
        return [e.seen_from(a) for e in chosen]

    @cached_property
    def _tied(self) -> dict[tuple[str, str, str], tuple[int, int]]:
        """Ties, and pairs with a side retrieved, of relevant twins: summed once for all runs and pairs of groups."""
        met = pl.col("wins") + pl.col("losses") + pl.col("ties")
        sums = self.pair_counts.filter("relevant").group_by("run", "a", "b").agg(pl.col("ties").sum(), met=met.sum())
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
        return np.array([place[self.repeated[run].get(query, query)] for query in self.queries], dtype=np.int64)

    def verdict(self, run: str, a: str | None = None, b: str | None = None) -> Verdict:
        """Return the verdict on one run: which side it favours, how surely, in one sentence.

        Parameters
        ----------
        run : str
            Name of a run.
        a, b : str, optional
            The groups; by default the first pair.

        Returns
        -------
        Verdict
            On the primary measure, with how many measures agree; without judgments on the twins head to head, and
            without twins on who fills the page.
        """
        if run not in self.runs:
            raise unknown("run", run, self.runs)
        if not self.pairs:
            raise UserError("nothing to compare: this audit has no groups")
        if a is None or b is None:
            a, b = self.pairs[0]
        noun = "text" if self.spec.get("by") == "source" else "documents"
        found = [t for t in self.tilts if t.run == run and {t.a, t.b} == {a, b}]
        if "primary" in self.spec or not (found or self.measures):
            return judge_card(self.estimates_of(run, a, b), noun=noun, primary=self.spec.get("primary"))
        if not found:
            raise unknown("pair of groups", f"{a},{b}", [",".join(p) for p in self.tilted_pairs])
        sides = (self.values[self.runs.index(run), 0, self.groups.index(name)] for name in (a, b))
        found = [t.seen_from(a) for t in found]
        return judge(found, self.level, noun=noun, telling=telling(*sides))

    def to_json(self) -> bytes:
        """Return the whole audit as JSON: versioned, floats exact, NaN as null."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "spec": dict(self.spec),
            "runs": self.runs,
            "measures": [repr(m) for m in self.measures],
            "groups": self.groups,
            "queries": self.queries,
            "values": np.ascontiguousarray(self.values),
            "tilts": [t.table_row() for t in self.tilts],
            "pair_counts": self.pair_counts.to_dict(as_series=False),
            "notes": self.notes,
            "card": [e.card_row() for e in self.estimates],
            "confounds": [c.row() for c in self.confounds],
            "controls": [c.row() for c in self.controls],
            **({"repeated": self.repeated} if self.repeated else {}),
            **({"heads": self.heads.row()} if self.heads else {}),
        }
        return orjson.dumps(content, default=str, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)

    def save(self, path: str | Path) -> Path:
        """Write the whole audit into one JSON file; see `to_json`."""
        write_bytes(Path(path), self.to_json())
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> Audit:
        """Read an audit back; it equals the one that was saved.

        Parameters
        ----------
        path : str or Path
            The file, plain or gzip.

        Returns
        -------
        Audit
            The audit.

        Raises
        ------
        DataError
            If the file is no audit, or of a newer format.
        """
        return Saved("an audit", FORMAT, VERSION, "ranktilt audit").read(Path(path), cls._of)

    @classmethod
    def _of(cls, content: dict[str, Any]) -> Audit:
        require_whole(content)
        shape = tuple(len(content[k]) for k in ("runs", "measures", "groups", "queries"))
        values = np.array(content["values"], dtype=np.float64).reshape(shape)
        if not (((values >= -_ROUNDED) & (values <= 1 + _ROUNDED)) | np.isnan(values)).all():
            raise ValueError("values: expected numbers from 0 to 1")
        tilts, card = (_family(content.get(name, ())) for name in ("tilts", "card"))
        return cls(
            content["spec"],
            tuple(content["runs"]),
            tuple(measure(m) for m in content["measures"]),
            tuple(content["groups"]),
            tuple(content["queries"]),
            values,
            tuple(map(Effect.of_row, tilts)),
            pl.DataFrame(content["pair_counts"], schema=PAIR_COUNTS),
            tuple(content["notes"]),
            tuple(map(Effect.of_row, card)),
            tuple(_confound(row) for row in content.get("confounds", ())),
            tuple(map(Controlled.of_row, content.get("controls", ()))),
            content.get("repeated", {}),
            _heads(content),
        )

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Audit) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.runs, self.measures, self.groups, self.queries))

    def __repr__(self) -> str:
        groups = [g for g in self.groups if g != ALL]
        return f"Audit({', '.join(self.runs)}; {', '.join(map(repr, self.measures))}; by {', '.join(groups) or 'none'})"


PAIR_COUNTS = {
    "run": pl.String, "a": pl.String, "b": pl.String, "query": pl.String, "relevant": pl.Boolean,
    "wins": pl.Int64, "losses": pl.Int64, "ties": pl.Int64, "both": pl.Int64, "alone": pl.Int64,
}  # fmt: skip


def _family(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with the size of their table, which files of older versions do not hold."""
    tests = sum(row["p"] is not None and row.get("kind") != "score gap" for row in rows)
    return [{"tests": 1 if row.get("kind") == "score gap" else max(tests, 1), **row} for row in rows]


def _heads(content: dict[str, Any]) -> Heads | None:
    if "heads" not in content:
        return None
    return Heads.of_row(content["heads"], content["spec"].get("runs", ()), content["runs"])


def _confound(row: dict[str, Any]) -> Confound:
    fields: dict[str, Any] = {k: (float("nan") if v is None else v) for k, v in row.items()}
    return Confound(**fields)
