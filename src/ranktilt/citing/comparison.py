"""Compare two engines on the same questions: whose tilt is larger, and how alike they cite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ranktilt.auditing.comparison.match import CommonQueries, common_queries
from ranktilt.auditing.comparison.notes import warnings_of_both
from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.auditing.effects import FEW_QUERIES
from ranktilt.citing.arrays import citation_rows, pair_frame
from ranktilt.citing.comparison_result import CitationChange, CitationComparison
from ranktilt.citing.difference import EngineTilt, difference_spread, engine_tilts
from ranktilt.citing.infer import effective_units_of_sides
from ranktilt.citing.kept_pages import KeptPages
from ranktilt.citing.overlap import citation_overlaps
from ranktilt.citing.questions import Question, answerable
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.citations import FewQuestions
from ranktilt.errors import UserError
from ranktilt.statistics.correction import correct

Pair = tuple[str, str]
_IN_UNITS = (
    "value",
    "low",
    "high",
    "growth",
    "growth_low",
    "growth_high",
    "these_low",
    "these_high",
)
"""Fields of a spread that a change holds as ratios, or in points."""
_OF_SPREAD = (
    "error",
    "p",
    "exchange_p",
    "two_way_p",
    "effective_units",
    "effective_questions",
    "questions",
)
"""Fields that a change holds as they are."""
_SETTINGS = {"by": "--by", "exact_urls": "--exact-urls"}


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditedEngine:
    """What a comparison needs of an audit."""

    name: str
    pages: KeptPages
    unit: str
    pairs: tuple[Pair, ...]
    notes: tuple[Note, ...]
    spec: dict[str, Any]

    @property
    def origin(self) -> dict[str, Any]:
        """The command behind the audit, its answers and its labels."""
        names = ("command", "ranktilt", "files", "engine", "labels", "run")
        origin = {name: self.spec[name] for name in names if name in self.spec}
        return {"file": self.spec["file"], **origin} if self.spec.get("file") else origin


def compare_engines(
    new: AuditedEngine, old: AuditedEngine, options: ComparisonOptions
) -> CitationComparison:
    """Return how two engines' tilts differ over the queries that both answered.

    Raises
    ------
    UserError
        If the audits have other settings, labels or pairs, or too few queries in common.
    """
    _require_alike(new, old)
    common = common_queries(
        new.pages.queries,
        old.pages.queries,
        max_left_out=options.max_left_out,
        hint="ask both engines the same questions, or raise --max-left-out",
    )
    queries = [new.pages.queries[row] for row in common.rows[0]]
    pages = new.pages.of_queries(queries), old.pages.of_queries(queries)
    _require_one_label(*pages)
    changes = _changes(pages, _common_pairs(new, old), options)
    names = (new.name, old.name)
    origins = {"by": new.spec.get("by"), "new": new.origin, "old": old.origin}
    # Two answers of one name, such as those of two months, are told apart by their order.
    if new.name == old.name or not all(names):
        names = ("new", "old")
    overlaps = tuple(citation_overlaps(*pages))
    notes = (*warnings_of_both(new.notes, old.notes), *_notes(common, len(queries)))
    spec = {**asdict(options), **origins, "queries_left_out": common.left_out}
    return CitationComparison(
        new=names[0],
        old=names[1],
        changes=tuple(changes),
        overlaps=overlaps,
        unit=new.unit,
        queries=len(queries),
        correction=options.correction,
        notes=notes,
        spec=spec,
    )


def _notes(common: CommonQueries, query_count: int) -> Iterator[Note]:
    if common.left_out:
        yield common.note("audit")
    if query_count < FEW_QUERIES:
        yield FewQuestions(queries=query_count)


def _require_alike(new: AuditedEngine, old: AuditedEngine) -> None:
    """Refuse audits that do not speak of the same things."""
    for engine, side in ((new, "new"), (old, "old")):
        if "label_errors" in engine.spec:
            raise UserError(
                f"the {side} audit is corrected for label errors, which a comparison of two "
                "engines is not; audit both without --label-errors"
            )
        if not engine.pages.answers.height:
            raise UserError(
                f"the {side} audit is too large to keep its pages, so that it cannot be compared; "
                "audit a part of the questions"
            )
    for name, option in _SETTINGS.items():
        settings = [engine.spec.get(name) for engine in (new, old)]
        if settings[0] != settings[1]:
            raise UserError(
                f"the audits differ in {name}: {settings[0]!r} (new) and {settings[1]!r} (old); "
                f"use the same {option} for both"
            )
    if new.unit != old.unit:
        raise UserError(
            f"the labels are constant within {new.unit} (new) and {old.unit} (old); audit both "
            f"with --cluster {new.unit} or --cluster {old.unit}"
        )


def _require_one_label(new: KeptPages, old: KeptPages) -> None:
    """Refuse pages that have one label in one audit, and another in the other."""
    labelled = [
        pages.pages.select("page", "label").unique("page").drop_nulls() for pages in (new, old)
    ]
    both = labelled[0].join(labelled[1], on="page", suffix="_old")
    clash = both.filter(pl.col("label") != pl.col("label_old")).sort("page")
    if clash.height:
        page, label, old_label = clash.select("page", "label", "label_old").row(0)
        raise UserError(
            f"page {page!r} is {label!r} in the new audit and {old_label!r} in the old one; use "
            "the same labels for both"
        )


def _common_pairs(new: AuditedEngine, old: AuditedEngine) -> list[Pair]:
    """Return the pairs of groups that both audits compare, in the new one's order."""
    known = {*old.pairs, *(pair[::-1] for pair in old.pairs)}
    pairs = [pair for pair in new.pairs if pair in known]
    if not pairs:
        raise UserError(
            "the audits compare no pair of groups in common: "
            f"{_pair_names(new)} (new), {_pair_names(old)} (old)"
        )
    return pairs


def _pair_names(engine: AuditedEngine) -> str:
    return ", ".join(" and ".join(pair) for pair in engine.pairs)


def _changes(
    pages: tuple[KeptPages, KeptPages], pairs: Sequence[Pair], options: ComparisonOptions
) -> list[CitationChange]:
    """Ask every question that both engines answer; the first one is the primary one."""
    changes = list[CitationChange]()
    for pair in pairs:
        changes += _pair_changes(pages, pair, options)
    first = changes[0].question
    primary = [change for change in changes if change.question == first]
    others = [change for change in changes if change.question != first]
    return [*_corrected(primary, options.correction), *_corrected(others, options.correction)]


def _pair_changes(
    pages: tuple[KeptPages, KeptPages], pair: Pair, options: ComparisonOptions
) -> Iterator[CitationChange]:
    frames = [pair_frame(side.rows(), *pair) for side in pages]
    both = pl.concat([frame.select("query", "unit") for frame in frames])
    queries, units = both["query"].unique().sort(), both["unit"].unique().sort()
    new, old = (citation_rows(frame, pair[0], queries=queries, units=units) for frame in frames)
    has_words = all(side.has_words for side in pages)
    answered_by_old = {question.key for question in answerable(old, has_words=has_words)}
    for question in answerable(new, has_words=has_words):
        if question.key in answered_by_old:
            tilts = engine_tilts(question, new, old)
            yield _change(question, pair, tilts, options)


def _change(
    question: Question,
    pair: Pair,
    tilts: tuple[EngineTilt, EngineTilt],
    options: ComparisonOptions,
) -> CitationChange:
    new, old = tilts
    around = difference_spread(new, old, resamples=options.resamples, seed=options.seed)
    is_ratio = new.estimate.scale == "log ratio"

    unit_value = _ratio if is_ratio else float
    thinnest = min(tilts, key=lambda tilt: min(effective_units_of_sides(tilt.rows, tilt.estimate)))
    of_a, of_b = effective_units_of_sides(thinnest.rows, thinnest.estimate)
    spread: dict[str, Any] = {name: getattr(around, name) for name in _OF_SPREAD}
    spread |= {name: unit_value(getattr(around, name)) for name in _IN_UNITS}
    thinner = pair[0] if of_a <= of_b else pair[1]
    neutral = 1.0 if is_ratio else 0.0
    return CitationChange(
        question=question.key,
        a=pair[0],
        b=pair[1],
        new=new.estimate.value,
        old=old.estimate.value,
        neutral_new=new.estimate.neutral,
        neutral_old=old.estimate.neutral,
        neutral=neutral,
        scale=new.estimate.scale,
        thinner=thinner,
        p_corrected=np.nan,
        family_size=1,
        **spread,
    )


def _ratio(logarithm: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(logarithm))


def _corrected(family: Sequence[CitationChange], correction: str) -> list[CitationChange]:
    ps = correct([change.p for change in family], correction).tolist()
    return [
        replace(change, p_corrected=p, family_size=len(family))
        for change, p in zip(family, ps, strict=True)
    ]
