"""Match the judges of two audits, and the pairs that both graded."""

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
from ranktilt.judging.grades import Graded
from ranktilt.judging.kept_grades import PAIR, KeptGrades, KeptValues
from ranktilt.judging.systems.systems import SystemValues

NEW, OLD = "new", "old"
"""Names of both sides while they are compared; the judges may have one name."""
_MOST_NAMED = 3
"""Most judges or systems that a note names."""
_FEW_COMMON = 0.9
"""Share of a judge's pairs below which the common ones are called few."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditedJudges:
    """What a comparison needs of an audit of judges."""

    judges: tuple[str, ...]
    """Names of the judges."""
    grades: KeptGrades
    """Their grades."""
    top: int
    """Highest grade of the scale; 0 where grades are not known."""
    notes: tuple[Note, ...]
    """Notes of the audit."""
    spec: dict[str, Any]
    """How it was made."""

    @property
    def origin(self) -> dict[str, Any]:
        """The command behind the audit and its files."""
        names = ("file", "command", "ranktilt", "human", "judges", "runs")
        return {name: self.spec[name] for name in names if self.spec.get(name)}

    def queries_of(self, judge: str) -> list[str]:
        """Return the queries of which a judge graded a pair, or evaluated systems."""
        queries = self.grades.of_judge(judge)["query_id"].unique(maintain_order=True).to_list()
        if queries:
            return queries
        names = dict[str, None]()
        for values in self.values_of(judge):
            names |= dict.fromkeys(values.queries)
        return list(names)

    def values_of(self, judge: str) -> list[KeptValues]:
        """Return the values of systems under a judge, by measure."""
        return [values for values in self.grades.values if values.judge == judge]


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgeMatch:
    """One judge before and after, with the pairs that both graded."""

    judge: str
    """Name of the new judge."""
    old_judge: str
    """Name of the old judge."""
    pairs: pl.DataFrame
    """``query_id``, ``doc_id``, ``human``, ``source``, ``origin``, ``new``, ``old``."""
    new_pairs: int
    """Pairs that the new judge graded."""
    old_pairs: int
    """Pairs that the old judge graded."""
    twins: tuple[str, ...]
    """The two sources that are compared."""
    values: tuple[tuple[SystemValues, SystemValues], ...]
    """Values of systems under the new and the old judge, by measure."""

    @property
    def graded(self) -> list[Graded]:
        """The pairs that humans and both judges graded, for each side.

        Numbers of pairs that only one of them graded are 0: no change is computed from them.
        """
        with_human = self.pairs.drop_nulls("human")
        return [
            Graded(
                judge=side,
                pairs=with_human.select(*PAIR, "human", judged=side),
                human_only=0,
                judge_only=0,
                human_queries=0,
                more=with_human.clear(),
            )
            for side in (NEW, OLD)
        ]


def match_judges(
    new: AuditedJudges, old: AuditedJudges, max_left_out: float
) -> tuple[list[JudgeMatch], list[Note]]:
    """Match the judges of two audits, with notes on what is left out.

    Raises
    ------
    UserError
        If the audits have other scales, sources or human grades, or no judge or pair in common.
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
    """Note what only one audit has."""
    lone = [name for name in names if name not in common]
    if lone:
        first = tuple(lone[:_MOST_NAMED])
        yield OnlyInOneAudit(part=part, side=side, number=len(lone), first=first)


def _system_notes(
    match: JudgeMatch, new: Sequence[KeptValues], old: Sequence[KeptValues]
) -> Iterator[Note]:
    """Note systems that only one audit evaluates, where orders of systems are compared."""
    if match.values:
        systems = match.values[0][0].runs
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
    """Match judges: two audits of one judge each whatever the names, others by name."""
    if len(new.judges) == len(old.judges) == 1:
        return [(new.judges[0], old.judges[0])]
    names = [name for name in new.judges if name in old.judges]
    if not names:
        raise UserError(
            "the audits have no judge in common: "
            f"{join_words(new.judges)} (new), {join_words(old.judges)} (old); audit one judge "
            "each, or give the files of grades the same names"
        )
    return [(name, name) for name in names]


def _match(new: AuditedJudges, old: AuditedJudges, judge: str, old_judge: str) -> JudgeMatch:
    """Join the grades of both judges; refuse those of other collections."""
    new_rows, old_rows = new.grades.of_judge(judge), old.grades.of_judge(old_judge)
    both = new_rows.join(old_rows, on=PAIR, how="inner", suffix="_old").sort(PAIR)
    if new_rows.height and old_rows.height and not both.height:
        queries = new_rows.filter(pl.col("query_id").is_in(old_rows["query_id"].implode()))
        ids = counted(queries["query_id"].n_unique(), "query id", "query ids")
        raise UserError(
            f"{judge} and {old_judge} share {ids}, but no query with the same document: expected "
            "grades of the same pairs; are these judges of two collections?"
        )
    _require_same(both, "human", "human grade")
    _require_same(both, "source", "source")
    pairs = both.select(
        *PAIR,
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


def _require_same(both: pl.DataFrame, column: str, noun: str) -> None:
    """Refuse pairs whose human grade, or whose source, is another one in the other audit."""
    clash = both.filter(pl.col(column) != pl.col(f"{column}_old"))
    if not clash.height:
        return
    query, document, value, old_value = clash.select(*PAIR, column, f"{column}_old").row(0)
    number = counted(clash.height, "common pair has", "common pairs have")
    raise UserError(
        f"{number} another {noun} in the old audit: query {query!r}, document {document!r} has "
        f"{value!r} (new) and {old_value!r} (old); audit both judges against the same {noun}s"
    )


def _common_values(
    new: Sequence[KeptValues], old: Sequence[KeptValues]
) -> Iterator[tuple[SystemValues, SystemValues]]:
    """Yield the values of the systems and queries that both have, by measure."""
    old_by_measure = {values.measure: values for values in old}
    for values in new:
        if values.measure not in old_by_measure:
            continue
        sides = in_common(
            _system_values(values, NEW), _system_values(old_by_measure[values.measure], OLD)
        )
        if len(sides[0].runs) > 1 and sides[0].queries:
            yield sides


def _system_values(values: KeptValues, side: str) -> SystemValues:
    """Return the values of systems under one side's judge.

    An audit does not keep `bounds`, `rescaled` and `more`, and orders of systems need none of them.
    """
    return SystemValues(
        judge=side,
        measure=values.measure,
        bounds=(-np.inf, np.inf),
        runs=values.runs,
        queries=values.queries,
        human=values.human,
        judged=values.judged,
        rescaled=values.human,
        more=np.empty((len(values.runs), 0)),
    )


def _match_notes(match: JudgeMatch) -> Iterator[Note]:
    """Note what is left out, and grades that may be of two scales."""
    common = match.pairs.height
    most = max(match.new_pairs, match.old_pairs)
    if common < most:
        yield GradesOfOneAudit(
            severity="warning" if common < _FEW_COMMON * most else "note",
            judge=match.judge,
            common=common,
            only_new=match.new_pairs - common,
            only_old=match.old_pairs - common,
        )
    queries = match.pairs["query_id"].n_unique()
    if common and queries < FEW_QUERIES:
        yield FewJudgedQueries(judge=match.judge, queries=queries)
    if not common:
        return
    highest, old_highest = (int(match.pairs[side].to_numpy().max()) for side in (NEW, OLD))
    if highest != old_highest and common >= FEW_QUERIES:
        yield TopGradesDiffer(judge=match.judge, new=highest, old=old_highest)
