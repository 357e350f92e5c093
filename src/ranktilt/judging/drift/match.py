"""Match the judges of two audits, and the pairs that both graded.

The audits are the new and the old one; a judge of the new audit is compared with a judge of the
old one. A *pair* is a query and a document; a *system* is a ranker whose run was evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from ranktilt.auditing.comparison.common_queries import common_queries
from ranktilt.auditing.effects import FEW_QUERIES
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.comparisons import OnlyInOneAudit
from ranktilt.data.notes.judges import FewJudgedQueries, GradesOfOneAudit, TopGradesDiffer
from ranktilt.errors import UserError, counted, join_words
from ranktilt.judging.comparison import in_common
from ranktilt.judging.grades import GradedPairs
from ranktilt.judging.kept_grades import PAIR_COLUMNS, KeptGrades, KeptValues
from ranktilt.judging.systems.systems import SystemValues

NEW, OLD = "new", "old"
"""Names of the new and the old judge while they are compared; both may have the same name."""
_MOST_NAMED = 3
"""Most judges or systems that a note names."""
_FEW_COMMON = 0.9
"""Share of the larger number of pairs below which a note on left-out pairs becomes a warning."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditedJudges:
    """The part of an audit of judges that a comparison needs."""

    judges: tuple[str, ...]
    """Names of the judges."""
    grades: KeptGrades
    """Their grades, and the values of systems under them."""
    top: int
    """Highest grade of the scale; 0 where grades are not known."""
    notes: tuple[Note, ...]
    """Notes of the audit."""
    spec: dict[str, Any]
    """How the audit was made."""

    @property
    def origin(self) -> dict[str, Any]:
        """The command that made the audit, and its files."""
        keys = ("file", "command", "ranktilt", "human", "judges", "runs")
        return {key: self.spec[key] for key in keys if self.spec.get(key)}

    def queries_of(self, judge: str) -> list[str]:
        """Return the queries of a judge: of its grades, or else of its values of systems."""
        graded = self.grades.graded_by(judge)["query_id"].unique(maintain_order=True).to_list()
        if graded:
            return graded
        evaluated = dict[str, None]()  # in place of a set, which has no order
        for values in self.values_of(judge):
            evaluated |= dict.fromkeys(values.queries)
        return list(evaluated)

    def values_of(self, judge: str) -> list[KeptValues]:
        """Return the values of systems under a judge, by measure."""
        return [values for values in self.grades.values if values.judge == judge]


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgeMatch:
    """A judge of the new audit and one of the old audit, with the pairs that both graded."""

    judge: str
    """Name of the new judge."""
    old_judge: str
    """Name of the old judge."""
    pairs: pl.DataFrame
    """A row for each pair that both judges graded, with their grades ``new`` and ``old``.

    The other columns are ``query_id``, ``doc_id``, ``human`` (the human grade, null without one),
    ``source`` and ``origin`` (which versions of one text share).
    """
    new_pairs: int
    """Number of pairs that the new judge graded."""
    old_pairs: int
    """Number of pairs that the old judge graded."""
    twins: tuple[str, ...]
    """The two sources that are compared; empty without a collection of two sources."""
    values: tuple[tuple[SystemValues, SystemValues], ...]
    """Values of systems under the new and the old judge, by measure."""

    @property
    def pairs_of_judges(self) -> list[GradedPairs]:
        """The grades of the new and the old judge, on the pairs that they and humans graded.

        All other pairs are left out here, so their numbers are 0.
        """
        with_human = self.pairs.drop_nulls("human")
        return [
            GradedPairs(
                judge=side,
                table=with_human.select(*PAIR_COLUMNS, "human", judged=side),
                human_only=0,
                judge_only=0,
                human_queries=0,
                further_grades=with_human.clear(),
            )
            for side in (NEW, OLD)
        ]


def match_judges(
    new: AuditedJudges, old: AuditedJudges, max_left_out: float
) -> tuple[list[JudgeMatch], list[Note]]:
    """Match the judges of two audits, with notes on what is left out.

    `max_left_out` is the largest percentage of queries that may be in only one of the audits.

    Raises
    ------
    UserError
        If scales, sources or human grades differ, or no judge or pair is in both audits.
    """
    _require_alike(new, old)
    matches, notes = list[JudgeMatch](), list[Note]()
    pairs = _judge_pairs(new, old)
    notes += _lone_notes("judge", "new", new.judges, [judge for judge, _ in pairs])
    notes += _lone_notes("judge", "old", old.judges, [judge for _, judge in pairs])
    for judge, old_judge in pairs:
        common = common_queries(
            new.queries_of(judge),
            old.queries_of(old_judge),
            max_left_out=max_left_out,
            hint="let both judges grade the same queries, or raise --max-left-out",
        )
        match = _match(new, old, judge, old_judge)
        matches.append(match)
        if common.left_out:
            notes.append(common.note("audit"))
        notes += _match_notes(match)
        notes += _system_notes(match, new.values_of(judge), old.values_of(old_judge))
    return matches, notes


def _lone_notes(
    part: Literal["judge", "system"],
    side: Literal["new", "old"],
    names: Sequence[str],
    common: Sequence[str],
) -> Iterator[Note]:
    """Note judges or systems that only one audit has.

    `part` says which of these the `names` are, and `side` whose they are; `common` are the names
    that both audits have.
    """
    lone = [name for name in names if name not in common]
    if lone:
        first = tuple(lone[:_MOST_NAMED])
        yield OnlyInOneAudit(part=part, side=side, number=len(lone), first=first)


def _system_notes(
    match: JudgeMatch, new: Sequence[KeptValues], old: Sequence[KeptValues]
) -> Iterator[Note]:
    """Note systems that only one audit evaluates, where orders of systems are compared."""
    if match.values:
        new_values, _ = match.values[0]
        systems = new_values.runs  # the same for both judges and all measures
        yield from _lone_notes("system", "new", new[0].runs, systems)
        yield from _lone_notes("system", "old", old[0].runs, systems)


def _require_alike(new: AuditedJudges, old: AuditedJudges) -> None:
    """Refuse audits whose grades are not kept, or whose scales differ."""
    for side, audit in ((NEW, new), (OLD, old)):
        if not audit.grades.is_complete:
            raise UserError(
                f"the {side} audit keeps no grades, so that it cannot be compared: it has too "
                "many, or an earlier RankTilt wrote it; run ranktilt judge again, on part of the "
                "queries"
            )
    scales = [(audit.top / audit.grades.steps, audit.grades.steps) for audit in (new, old)]
    if new.top and old.top and scales[0] != scales[1]:
        raise UserError(
            f"the audits have other scales of grades: {_scale(new)} (new) and {_scale(old)} (old); "
            "audit both against the same human grades, or with the same --top-grade"
        )


def _scale(audit: AuditedJudges) -> str:
    """Name the scale of grades of an audit, such as ``0 to 3``."""
    steps = audit.grades.steps
    words = f"0 to {audit.top / steps:g}"
    return words if steps == 1 else f"{words} in steps of 1/{steps}"


def _judge_pairs(new: AuditedJudges, old: AuditedJudges) -> list[tuple[str, str]]:
    """Return the names of each new judge and its old one.

    If both audits have a single judge, these are compared whatever their names; else judges are
    matched by name.
    """
    if len(new.judges) == len(old.judges) == 1:
        return [(new.judges[0], old.judges[0])]
    common_names = [name for name in new.judges if name in old.judges]
    if not common_names:
        raise UserError(
            "the audits have no judge in common: "
            f"{join_words(new.judges)} (new), {join_words(old.judges)} (old); audit one judge "
            "each, or give the files of grades the same names"
        )
    return [(name, name) for name in common_names]


def _match(new: AuditedJudges, old: AuditedJudges, judge: str, old_judge: str) -> JudgeMatch:
    """Join the grades of a judge and its old one; refuse grades of different collections."""
    new_rows, old_rows = new.grades.graded_by(judge), old.grades.graded_by(old_judge)
    common_rows = new_rows.join(old_rows, on=PAIR_COLUMNS, how="inner", suffix="_old").sort(
        PAIR_COLUMNS
    )
    if new_rows.height and old_rows.height and not common_rows.height:
        queries = new_rows.filter(pl.col("query_id").is_in(old_rows["query_id"].implode()))
        ids = counted(queries["query_id"].n_unique(), "query id", "query ids")
        raise UserError(
            f"{judge} and {old_judge} share {ids}, but no query with the same document: expected "
            "grades of the same pairs; are these judges of two collections?"
        )
    _require_same(common_rows, "human", "human grade")
    _require_same(common_rows, "source", "source")
    pairs = common_rows.select(
        *PAIR_COLUMNS,
        human=pl.coalesce("human", "human_old"),
        source=pl.coalesce("source", "source_old"),
        origin=pl.coalesce("origin", "origin_old", "doc_id"),
        new="grade",
        old="grade_old",
    )
    return JudgeMatch(
        judge=judge,
        old_judge=old_judge,
        pairs=pairs,
        new_pairs=new_rows.height,
        old_pairs=old_rows.height,
        twins=new.grades.twins or old.grades.twins,
        values=tuple(_common_values(new.values_of(judge), old.values_of(old_judge))),
    )


def _require_same(common_rows: pl.DataFrame, column: str, noun: str) -> None:
    """Refuse pairs whose human grade, or whose source, differs between the audits.

    `column` is ``human`` or ``source``, and `noun` what an error calls it.
    """
    clash = common_rows.filter(pl.col(column) != pl.col(f"{column}_old"))
    if not clash.height:
        return
    query, document, value, old_value = clash.select(*PAIR_COLUMNS, column, f"{column}_old").row(0)
    pair_count = counted(clash.height, "common pair has", "common pairs have")
    raise UserError(
        f"{pair_count} another {noun} in the old audit: query {query!r}, document {document!r} has "
        f"{value!r} (new) and {old_value!r} (old); audit both judges against the same {noun}s"
    )


def _common_values(
    new: Sequence[KeptValues], old: Sequence[KeptValues]
) -> Iterator[tuple[SystemValues, SystemValues]]:
    """Yield the values of both judges for each measure, of the systems and queries of both."""
    old_by_measure = {values.measure: values for values in old}
    for values in new:
        if values.measure not in old_by_measure:
            continue
        sides = in_common(
            _system_values(values, NEW), _system_values(old_by_measure[values.measure], OLD)
        )
        # An order needs two systems.
        if len(sides[0].runs) > 1 and sides[0].queries:
            yield sides


def _system_values(values: KeptValues, side: str) -> SystemValues:
    """Return the values of systems under the ``new`` or the ``old`` judge.

    An audit's file does not keep `bounds`, `rescaled_human` and `further_judged`. Orders of systems
    need none of them.
    """
    return SystemValues(
        judge=side,
        measure=values.measure,
        bounds=(-np.inf, np.inf),
        runs=values.runs,
        queries=values.queries,
        human=values.human,
        judged=values.judged,
        rescaled_human=values.human,
        further_judged=np.empty((len(values.runs), 0)),
    )


def _match_notes(match: JudgeMatch) -> Iterator[Note]:
    """Note pairs that are left out, and highest grades that suggest two different scales."""
    common_count = match.pairs.height
    larger = max(match.new_pairs, match.old_pairs)
    if common_count < larger:
        yield GradesOfOneAudit(
            severity="warning" if common_count < _FEW_COMMON * larger else "note",
            judge=match.judge,
            common=common_count,
            only_new=match.new_pairs - common_count,
            only_old=match.old_pairs - common_count,
        )
    queries = match.pairs["query_id"].n_unique()
    if common_count and queries < FEW_QUERIES:
        yield FewJudgedQueries(judge=match.judge, queries=queries)
    if not common_count:
        return
    highest, old_highest = (int(match.pairs[side].to_numpy().max()) for side in (NEW, OLD))
    if highest != old_highest and common_count >= FEW_QUERIES:
        yield TopGradesDiffer(judge=match.judge, new=highest, old=old_highest)
