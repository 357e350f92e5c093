"""Audits of several sources, each with the reference alone, whose p are corrected together.

A *source* is whoever wrote a document, such as a language model; the *reference* is the source that
all others are compared with, usually ``human``. A *tilt* is Relative Δ of one run. A *series* is a
model's sources at several temperatures. The *primary question* gives the verdicts, and the *card*
has the answers to all questions besides Relative Δ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, product
from math import isnan
from typing import Any

import polars as pl

from ranktilt.auditing.answer.next_steps import NextStep, next_steps
from ranktilt.auditing.answer.verdict import Verdict, finding_order, margins
from ranktilt.auditing.audit import audit
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.grouping.pairs import grouped_pairs
from ranktilt.auditing.notes import source_notes
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import correct_p_values
from ranktilt.auditing.sources.sources_apart import HUMAN, AuditedSource, SourcesApart, take_apart
from ranktilt.auditing.sources.temperature_trend import Trend, trend_notes, trends
from ranktilt.auditing.storage.provenance import audit_provenance
from ranktilt.data.artifact import Coded, Result, fields_for_file, register
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note
from ranktilt.errors import UserError, unknown_name
from ranktilt.measures.base import Estimand
from ranktilt.measures.margin import Margin
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.candidates import check_reranked

_COMMON_OPTIONS = (
    "by",
    "margin",
    "missing",
    "ties",
    "rounding",
    "test",
    "correction",
    "resamples",
    "seed",
)
"""Options that the audits of all sources have in common."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SourceAudits(
    Result,
    format="ranktilt-source-audits",
    version=1,
    noun="an audit of several sources",
    command="ranktilt audit",
):
    """The result of `audit_sources`: several sources, each audited with the reference alone."""

    spec: Mapping[str, Any]
    """How it was made: options, collection, number of tests of Relative Δ, versions."""
    reference: str
    """Source that all others are compared with; positive Relative Δ favours it."""
    sources: tuple[AuditedSource, ...]
    """Compared sources, by series and rising temperature.

    A source without a temperature comes last in its series.
    """
    audits: tuple[Coded[Audit], ...]
    """Audit of each source, in the same order; the p of all audits are corrected together."""
    trends: tuple[Trend, ...]
    """Trend of every run over the temperatures of a series, for each measure.

    A series with fewer than three temperatures has none.
    """
    notes: tuple[Coded[Note], ...]
    """What a reader should know."""

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs; each ranked once for every source."""
        return self.audits[0].runs

    @property
    def measures(self) -> tuple[str, ...]:
        """Notations of the measures of relevance."""
        return tuple(map(repr, self.audits[0].measures))

    @property
    def margin(self) -> Margin:
        """Largest tilt that counts as level: points, or a number with the primary unit."""
        return self.audits[0].margin

    @property
    def margin_points(self) -> float:
        """The margin in points; the default margin if it has another unit."""
        return self.audits[0].margin_points

    @property
    def primary(self) -> str:
        """Notation of the question that verdicts answer, chosen before the data were seen."""
        return repr(self.audits[0].primary)

    @property
    def series(self) -> tuple[str, ...]:
        """Names of the series, in order."""
        return tuple(dict.fromkeys(source.series for source in self.sources))

    @cached_property
    def tilts(self) -> tuple[Effect, ...]:
        """Relative Δ of every run, source and measure, in this order."""
        tilts = list[Effect]()
        for run, audited in product(self.runs, self.audits):
            tilts += [tilt for tilt in audited.tilts if tilt.run == run]
        return tuple(tilts)

    def audit_of(self, source: str) -> Audit:
        """Return the whole audit of one source and the reference."""
        names = [compared.source for compared in self.sources]
        if source not in names:
            raise unknown_name("source", source, names)
        return self.audits[names.index(source)]

    def tilt(self, run: str, source: str, measure: str) -> Effect:
        """Return Relative Δ of one run, source and measure."""
        for tilt in self.tilts:
            if (tilt.run, tilt.b, tilt.measure) == (run, source, measure):
                return tilt
        names = [f"{tilt.run}, {tilt.b}, {tilt.measure}" for tilt in self.tilts]
        raise unknown_name("run, source and measure", f"{run}, {source}, {measure}", names)

    def answer(self, run: str, source: str) -> Effect:
        """Return the answer to the primary question for one run and source."""
        audited = self.audit_of(source)
        for effect in (*audited.tilts, *audited.card):
            if effect.run == run and effect.measure == self.primary:
                return effect
        raise unknown_name("run", run, self.runs)

    def verdict(self, run: str, source: str) -> Verdict:
        """Return the verdict on one run and source, on the primary question."""
        return self.audit_of(source).verdict(run)

    def points(self, run: str, measure: str, series: str) -> list[tuple[AuditedSource, Effect]]:
        """Return the points of a line in a figure: Relative Δ over the temperatures of a series.

        Sources without a temperature are left out; the others come by rising temperature.
        """
        return [
            (source, self.tilt(run, source.source, measure))
            for source in self.sources
            if source.series == series and source.has_temperature
        ]

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """Next steps, from the audit with the largest finding."""
        sources = [compared.source for compared in self.sources]
        _, source = min(product(self.runs, sources), key=self._finding_order)
        return next_steps(self.audit_of(source))

    def _finding_order(self, run_and_source: tuple[str, str]) -> tuple[int, float]:
        """Return a sort key by which the largest finding comes first."""
        size = margins(self.answer(*run_and_source), self.margin)
        return finding_order(self.verdict(*run_and_source).kind, size)

    def verdicts(self) -> list[Verdict]:
        """Return the verdicts of the first run on each source, then of the next run."""
        return [
            self.verdict(run, compared.source) for run, compared in product(self.runs, self.sources)
        ]

    @property
    def table(self) -> pl.DataFrame:
        """Table of the values of all audits.

        The columns are ``compared_source``, ``run``, ``measure``, ``group``, ``query`` and
        ``value``.
        """
        tables = [
            audited.table.with_columns(compared_source=pl.lit(compared.source))
            for compared, audited in zip(self.sources, self.audits, strict=True)
        ]
        return pl.concat(tables).select("compared_source", pl.exclude("compared_source"))


def audit_sources(
    collection: Collection,
    rankers: Sequence[Ranker],
    measures: str | Estimand | Sequence[str | Estimand] | None = None,
    *,
    reference: str | None = None,
    sources: Sequence[str] = (),
    **options: Any,
) -> SourceAudits:
    """Audit each source with the reference alone, and ask whether temperature moves the tilt.

    All sources are compared over the documents that every one of them rewrote; judgments of other
    documents do not count. Every document of the reference stays in, as a competitor. See Dai et
    al., KDD 2024, sec. 3.5.

    Parameters
    ----------
    collection : Collection
        The reference and rewrites of it, by several models or at several temperatures, each a
        source.
    rankers : sequence of Ranker
        Each ranks once for every source.
    measures : str, Estimand or sequence of them, optional
        As in `audit`.
    reference : str, optional
        The source to compare the others with; positive values favour it. By default ``human``, or
        the first source if there is none of that name.
    sources : sequence of str, optional
        The sources to compare with it; by default all others. Their temperatures come from a column
        ``temperature``, or from the ends of their names (``-tmp0.2``, ``_0.2``), with a note.
    **options
        All other options of `audit`, such as ``card`` and ``correction``: every p on the primary
        question (run × source) is corrected together, and so are all others.

    Returns
    -------
    SourceAudits
        One audit per source, and a trend for every series of three temperatures or more.
    """
    rankers = list(rankers)
    if not rankers:
        raise UserError("an audit needs at least one run or ranker, such as -r bm25")
    for ranker in rankers:
        ranker.check()
    if reference is None:
        reference = HUMAN if HUMAN in collection.sources else next(iter(collection.sources), HUMAN)
    apart = take_apart(collection, [reference, *sources] if sources else (), reference=reference)
    audits = list[Audit]()
    for pair, ranked_pair in zip(apart.pairs, apart.collections, strict=True):
        report("auditing sources", len(audits), len(apart.pairs))
        runs = [
            check_reranked(ranker.rank_repeats(ranked_pair), None, ranker) for ranker in rankers
        ]
        pairs = pairs_to_name(ranked_pair, pair)
        audits.append(audit(ranked_pair, runs, measures, pairs=pairs, **options))
    report("auditing sources", len(apart.pairs), len(apart.pairs))
    return join_audits(apart, audits)


def pairs_to_name(collection: Collection, pair: tuple[str, str]) -> list[tuple[str, str]] | None:
    """Return the pairs that an audit must be asked to compare; None if `pair` is its default."""
    _groups, default_pairs = grouped_pairs(collection, "source", None, fewest=1)
    return None if default_pairs == (pair,) else [pair]


def join_audits(apart: SourcesApart, audits: Sequence[Audit]) -> SourceAudits:
    """Join the audits of all sources: correct their p together, and compute trends.

    `apart` has the sources, in the order of `audits`.
    """
    audits = _correct_together(audits)
    first = audits[0]
    provenance = audit_provenance(apart.collection, first.spec["runs"])
    tilts = list(chain.from_iterable(audit.tilts for audit in audits))
    spec = {
        **{name: first.spec[name] for name in _COMMON_OPTIONS},
        "primary": repr(first.primary),
        "reference": apart.reference,
        "family_size": sum(not isnan(tilt.p) for tilt in tilts),
        **provenance,
    }
    notes = (*apart.notes, *_audit_notes(apart, audits), *trend_notes(apart.sources))
    trends_of_series = trends(
        audits, apart.sources, resamples=first.spec["resamples"], seed=first.spec["seed"]
    )
    return SourceAudits(
        spec=spec,
        reference=apart.reference,
        sources=apart.sources,
        audits=tuple(audits),
        trends=tuple(trends_of_series),
        notes=notes,
    )


def _correct_together(audits: Sequence[Audit]) -> list[Audit]:
    """Correct the p of all audits for several tests: those of all tilts, and those of all cards."""
    primary, correction = audits[0].primary, audits[0].spec["correction"]
    all_tilts = chain.from_iterable(audited.tilts for audited in audits)
    all_answers = chain.from_iterable(audited.card for audited in audits)
    tilts = iter(correct_p_values(list(all_tilts), correction, primary))
    card = iter(correct_p_values(list(all_answers), correction, primary))
    return [
        replace(
            audited,
            tilts=tuple(islice(tilts, len(audited.tilts))),
            card=tuple(islice(card, len(audited.card))),
        )
        for audited in audits
    ]


def _audit_notes(apart: SourcesApart, audits: Sequence[Audit]) -> Iterator[Note]:
    """Yield the audits' notes; a note that all of them have comes once.

    The note that a source was ranked with the reference alone is left out: it holds for all audits
    of several sources.
    """
    notes_on_sources = set[Note]()
    for collection in apart.collections:
        notes_on_sources.update(source_notes(collection, "source"))
    shared = set(audits[0].notes).intersection(*(audited.notes for audited in audits))
    yield from (note for note in audits[0].notes if note in shared - notes_on_sources)
    for audited, compared in zip(audits, apart.sources, strict=True):
        for note in audited.notes:
            if note not in shared | notes_on_sources:
                yield note.within("source", compared.source)


# A file of several sources holds each audit as an audit's own file would.
register(Audit, fields_for_file, Audit.from_content)
