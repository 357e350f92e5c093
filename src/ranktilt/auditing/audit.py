"""The one call: audit(collection, runs, measures, by=…)."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.band import Shuffles, Task, enough, null_deltas
from ranktilt.auditing.card import NOTHING, PAGE, Asking, Twins, entries, estimates, samples
from ranktilt.auditing.confounds import Confound
from ranktilt.auditing.confounds import confounds as text_confounds
from ranktilt.auditing.estimate import Estimate
from ranktilt.auditing.evaluate import Aligned, Judgments, group_values
from ranktilt.auditing.exchange import exchange_p, relevant_cells
from ranktilt.auditing.groups import ALL, Groups, Pair, are_twins, grouped_pairs, twin_rows
from ranktilt.auditing.notes import (
    card_notes,
    group_notes,
    judgment_notes,
    only_labels,
    repeated_notes,
    run_notes,
    sparse_notes,
    twin_notes,
)
from ranktilt.auditing.page import Page, all_paired, page_bands, signs_of
from ranktilt.auditing.result import PAIR_COUNTS, Audit
from ranktilt.auditing.tilt import LEVEL, Side, Statistics, Tilt, tilts
from ranktilt.auditing.whole import CHOICES, FEWEST, files_of_runs
from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted, shorten, unknown
from ranktilt.io.files import sha256
from ranktilt.io.runfile import unwritable
from ranktilt.measures.base import Measure, measure
from ranktilt.measures.inference import RESAMPLES
from ranktilt.measures.preference import PairCounts, split_pair_counts
from ranktilt.run import Run

DEFAULT_MEASURES = ("nDCG@1", "nDCG@3", "nDCG@5", "AP@1", "AP@3", "AP@5")
CARD_ROWS = 6
Counts = dict[Pair, tuple[PairCounts, PairCounts]]
PACKAGES = ("numpy", "scipy", "polars", "PyStemmer", "ir-measures", "pytrec-eval-terrier")


def audit(
    collection: Collection,
    runs: Run | Sequence[Run],
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    card: bool = False,
    page: int = PAGE,
    confounds: bool = True,
    by: str | None = "source",
    pairs: Iterable[Pair] | None = None,
    missing: str = "zero",
    ties: str = "expected",
    rounding: str = "none",
    test: str = "permutation",
    correction: str = "holm",
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Audit:
    """Measure each group of documents on the same rankings, and compare the groups.

    Parameters
    ----------
    collection : Collection
        Documents, queries and judgments; every judgment counts in the row ``all``.
    runs : Run or sequence of Run
        Rankings of the mixed collection.
    measures : str, Measure or iterable of them, optional
        The first is the primary measure, on which verdicts are given. By default nDCG and AP at 1, 3 and 5; none
        where nothing is judged: the card's other questions need no judgments.
    card : bool, optional
        Ask the other questions too: who fills the page, which twin stands higher and by how much (`Audit.card`).
    page : int, optional
        Ranks that make the page, for ΔNDSR.
    confounds : bool, optional
        Compare the texts of the sources too (`Audit.confounds`); only by ``source``, and only where there are texts.
    by : str or None, optional
        Document column to group by; None for no groups.
    pairs : iterable of (str, str), optional
        Groups to compare, the first being favoured by positive values; all pairs by default.
    missing : {"zero", "exclude"}, optional
        Whether a judged query that a run lacks counts 0, as with trec_eval's ``-c``, or not at all for that run.
    ties : {"expected", "trec_eval"}, optional
        Expected value over all orders of tied documents, or trec_eval's order by id (for published numbers).
    rounding : {"none", "paper"}, optional
        Round means to 0.1 % before Relative Δ, as the papers do.
    test : {"permutation", "t"}, optional
        Paired test over queries for twins; groups that are not twins are tested against shuffled labels.
    correction : {"holm", "bonferroni"}, optional
        Over the family of every p in the table (run × measure × pair).
    level : float, optional
        Half-width, in percent, of what a verdict calls level.
    resamples : int, optional
        Bootstrap resamples and sign flips.
    seed : int, optional
        Of every random draw.

    Returns
    -------
    Audit
        One table and its views.

    Raises
    ------
    UserError
        If there is nothing to compare, or an option, measure, column or group is unknown.
    """
    if not isinstance(collection, Collection):
        raise UserError(f"expected a collection, got {shorten(collection)}; load it first: load(folder)")
    found = _measures(measures, judged=collection.qrels.height > 0)
    runs = [runs] if isinstance(runs, Run | str) else list(runs)
    options = {"missing": missing, "ties": ties, "rounding": rounding, "test": test, "correction": correction}
    check_choices(**options)
    _check(found, runs)
    _check_numbers(resamples, level, page)
    if by is None and (card or pairs is not None):
        raise UserError(
            f"{'the card needs' if card else 'pairs of groups need'} a column to group by; leave --by none out"
        )
    groups, chosen = grouped_pairs(collection, by, pairs)
    judgments = Judgments.of(collection, groups)
    if found:
        _refuse_unjudged(judgments, groups, chosen, collection)
    elif not card:
        raise UserError(
            "no judgments, so no measure can be computed; the card asks what needs none (--card, card=True)"
        )
    how = Statistics(resamples, seed, test, correction, rounding)
    work = _Work(
        collection, groups, chosen, judgments, measures=found, runs=len(runs), ties=ties, page=card and page, how=how
    )
    aligned = [Aligned.of(run, collection, judgments) for run in runs]
    values = np.stack([group_values(a, found, groups, ties) for a in aligned])
    for one, numbers in zip(aligned, values, strict=True):
        numbers[:, :, one.left_out(missing)] = np.nan
    found_tilts = tilts(work.sides(aligned, values), how)
    counts = [work.counts(a) for a in aligned]
    names = tuple(r.name for r in runs)
    notes = [note for one in aligned for note in run_notes(one, collection, missing)]
    notes += judgment_notes(judgments, collection)
    repeated = {one.run.name: one.repeated for one in aligned if one.repeated}
    notes += repeated_notes(repeated)
    absent = any(one.left_out(missing).any() for one in aligned)
    notes += group_notes(groups, work.left_out, found_tilts, resamples, absent=absent)
    notes += sparse_notes(found_tilts, names, groups, values)
    notes += twin_notes(collection, groups, [p for p in work.pairs if p not in work.level_pairs], judgments)
    notes += card_notes(collection, groups, twins=any(len(t.rows) for t in work.twins.values())) if card else ()
    spec = {"by": by, "level": level, **options, "resamples": resamples, "seed": seed}
    return Audit(
        {**spec, **_provenance(collection, runs)},
        names,
        tuple(found),
        (ALL, *groups.names),
        judgments.queries,
        values,
        found_tilts,
        work.pair_counts(aligned, counts),
        tuple(notes),
        work.card(aligned, counts, found_tilts, missing=missing),
        work.confounds(collection, runs) if confounds and by == "source" else (),
        repeated=repeated,
    )


def _measures(given: str | Measure | Iterable[str | Measure] | None, *, judged: bool) -> list[Measure]:
    if given is None:
        given = DEFAULT_MEASURES if judged else ()
    elif isinstance(given, str | Measure):
        given = [given]
    else:
        given = list(given)
        if not given:
            raise UserError("an audit needs at least one measure, such as nDCG@3")
    found = [measure(m) for m in given]
    if found and not judged:
        raise UserError(
            f"{found[0]!r} needs judgments, and there are none: name them (--qrels FILE), or leave the measure out and "
            "ask the card (--card)"
        )
    return found


def _check_numbers(resamples: int, level: float, page: int) -> None:
    if resamples < FEWEST:
        raise UserError(f"expected at least {FEWEST} resamples, got {resamples}")
    if not level >= 0:
        raise UserError(f"expected a level of at least 0, got {level:g}")
    if page < 1:
        raise UserError(f"expected a page of at least 1 rank, got {page}")


def check_choices(**given: str) -> None:
    """Refuse unknown values of the options in `CHOICES`, before any work is done.

    Parameters
    ----------
    **given : str
        Values by name.

    Raises
    ------
    UserError
        At the first value that is not among its choices.
    """
    for name, value in given.items():
        if value not in CHOICES[name]:
            raise unknown(name, value, CHOICES[name])


def _check(measures: Sequence[Measure], runs: Sequence[Run]) -> None:
    strange = next((r for r in runs if not isinstance(r, Run)), None)
    if strange is not None:
        raise UserError(f"expected runs, got {shorten(strange)}; rank first: ranker(...).rank(collection)")
    for one in runs:
        if fault := unwritable(one.spec):
            raise UserError(f"run {one.name!r}: its spec: {fault}")
    if not runs:
        raise UserError("an audit needs at least one run, such as that of the ranker bm25 (-r bm25)")
    for noun, names in (("measure", list(map(repr, measures))), ("run", [r.name for r in runs])):
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            raise UserError(f"{noun} {twice!r} is given twice")


def _refuse_unjudged(judgments: Judgments, groups: Groups, pairs: Sequence[Pair], collection: Collection) -> None:
    if not len(judgments.grade):
        raise UserError("no document is judged relevant to any query")
    held = judgments.held(groups)
    if pairs and not any(a in held and b in held for a, b in pairs):
        missing = next(n for pair in pairs for n in pair if n not in held)
        beyond = judgments.row[judgments.row >= len(groups.code)]
        hint = ""
        if len(beyond):
            first = judgments.ids[int(beyond[0])]
            beyond = np.unique(beyond)
            noun = counted(len(beyond), "relevant document", "relevant documents")
            whose = "labels'" if only_labels(collection) else "collection's"
            like = collection.ids.filter(collection.ids.str.starts_with(first))
            known = like[0] if len(like) else collection.ids[0]
            hint = (
                f"; {noun} of the judgments {'has' if len(beyond) == 1 else 'have'} no {groups.by} (first: {first!r}; "
                f"the {whose} ids look like {known!r})"
            )
            if only_labels(collection) and not held:
                hint += "; write the judgments with these ids, a line a version, or name the collection DIR"
        raise UserError(f"nothing to compare: no document of {groups.by} {missing!r} is judged relevant{hint}")


class _Work:
    """One audit in the making: what all its runs share."""

    def __init__(
        self, collection: Collection, groups: Groups, pairs: Sequence[Pair], judgments: Judgments,
        *, measures: Sequence[Measure], runs: int, ties: str, page: int, how: Statistics,
    ) -> None:  # fmt: skip
        self.groups, self.judgments, self.measures, self.ties = groups, judgments, measures, ties
        self.page, self.how = page, how
        held = judgments.held(groups)
        self.pairs = [p for p in pairs if set(p) <= held]
        self.left_out = [p for p in pairs if measures and not set(p) <= held]
        frame = judgments.frame().filter(pl.Series(judgments.group >= 0))
        self.level_pairs = {p for p in self.pairs if are_twins(collection, groups, p, frame)}
        self.origins = collection.docs["origin"]
        self.twins = {p: Twins.of(p, twin_rows(collection, groups, p), judgments, self.origins) for p in pairs}
        tests = runs * max(len(measures), CARD_ROWS if page else 0) * max(len(pairs), 1)
        self.shuffles = Shuffles(judgments, how.seed, enough(tests))
        # What is asked of groups without twins, whose pages are shuffled document by document: Relative Δ and ΔNDSR.
        asked = sum(CARD_ROWS if len(twins.rows) else 2 for twins in self.twins.values())
        self.pages = Shuffles(judgments, how.seed, enough(runs * asked))

    def sides(self, aligned: Sequence[Aligned], values: np.ndarray) -> list[Side]:
        """Comparisons of each run, pair by pair."""
        numbers = {p: (self.groups.names.index(p[0]), self.groups.names.index(p[1])) for p in self.pairs}
        sides, tasks, uneven = list[list[Side]](), list[Task](), list[int]()
        for one, found in zip(aligned, values, strict=True):
            ordered = one if self.ties == "expected" else one.untied()
            for pair, (a, b) in numbers.items():
                if pair not in self.level_pairs:
                    tasks.append((ordered, (a, b)))
                    uneven.append(len(sides))
                of_pair = [
                    Side(one.run.name, repr(m), *pair, first, second, distinct=one.distinct)
                    for m, first, second in zip(self.measures, found[:, a + 1], found[:, b + 1], strict=True)
                ]
                if pair in self.level_pairs:
                    of_pair = [
                        self._exchanged(ordered, m, (a, b), s) for m, s in zip(self.measures, of_pair, strict=True)
                    ]
                sides.append(of_pair)
        for place, nulls in zip(uneven, null_deltas(tasks, self.measures, self.shuffles), strict=True):
            sides[place] = [side.among(null) for side, null in zip(sides[place], nulls, strict=True)]
        return [side for of_pair in sides for side in of_pair]

    def _exchanged(self, aligned: Aligned, measure: Measure, numbers: tuple[int, int], side: Side) -> Side:
        """Hold a comparison of twins against exchanged labels too."""
        side = replace(side, cells=relevant_cells(aligned, measure, numbers, side, self.origins))
        p = exchange_p(aligned, measure, numbers, side, origins=self.origins, how=self.how)
        return replace(side, exchange_p=p)

    def counts(self, aligned: Aligned) -> Counts:
        """Twins' wins, losses and ties of one run, per pair of groups: of relevant twins, and of others."""
        held = entries(aligned)
        relevant = aligned.judgments.query, aligned.judgments.row
        return {
            pair: split_pair_counts(*held, twins.rows, relevant)
            for pair, twins in self.twins.items()
            if len(twins.rows)
        }

    def pair_counts(self, aligned: Sequence[Aligned], counts: Sequence[Counts]) -> pl.DataFrame:
        """Twins' wins, losses and ties per run, pair and query, as a table."""
        frames = [pl.DataFrame(schema=PAIR_COUNTS)]
        for one, found in zip(aligned, counts, strict=True):
            for pair, (right, other) in found.items():
                for flag, numbers in ((True, right), (False, other)):
                    names = dict(zip(PairCounts._fields, numbers, strict=True))
                    frame = pl.DataFrame({"query": self.judgments.queries, **names}, schema_overrides=PAIR_COUNTS)
                    frame = frame.with_columns(
                        run=pl.lit(one.run.name), a=pl.lit(pair[0]), b=pl.lit(pair[1]), relevant=pl.lit(flag)
                    )
                    frames.append(frame.select(list(PAIR_COUNTS)))
        return pl.concat(frames)

    def card(
        self, aligned: Sequence[Aligned], counts: Sequence[Counts], found: Sequence[Tilt], *, missing: str
    ) -> tuple[Estimate, ...]:
        """The card of every run and pair; empty where none is asked for."""
        if not self.page:
            return ()
        asked = []
        paired = all(all_paired(signs_of(self.groups, p), t.rows) for p, t in self.twins.items())
        pages = [Page.of(one, self.page, len(self.groups.code)) for one in aligned]
        bands = repeat(NOTHING) if paired else page_bands(pages, self.groups, self.pages)
        for one, numbers, band in zip(aligned, counts, bands, strict=False):
            # Of sources 0 is level, and intervals speak of documents too: no band is shown.
            asking = Asking(self.page, self.how.seed, self.how.resamples, banded=self.groups.by != "source", band=band)
            for pair, twins in self.twins.items():
                found_here = samples(one, self.groups, twins.asked(one, missing), numbers.get(pair), asking)
                asked.append((one.run.name, pair, found_here))
        primary = [t for t in found if self.measures and t.measure == repr(self.measures[0])]
        return estimates(asked, primary, self.how)

    def confounds(self, collection: Collection, runs: Sequence[Run]) -> tuple[Confound, ...]:
        """What else differs between the sources of each pair."""
        found = (text_confounds(collection, self.groups, twins, self.judgments, runs) for twins in self.twins.values())
        return tuple(one for pair in found for one in pair)


def _provenance(collection: Collection, runs: Sequence[Run]) -> dict[str, Any]:
    files = _files(collection.spec) + files_of_runs(r.spec for r in runs)
    inputs = [{"path": f, "sha256": sha256(Path(f))} for f in dict.fromkeys(files) if os.path.isfile(f)]
    packages = {p: version(p) for p in PACKAGES}
    return {
        "ranktilt": __version__,
        "python": platform.python_version(),
        "packages": packages,
        "collection": {k: v for k, v in collection.spec.items() if k != "files"},
        "runs": [dict(r.spec) for r in runs],
        "inputs": inputs,
    }


def _files(spec: Mapping[str, Any]) -> list[str]:
    """Files that a collection was read from, those of its parts where it is a mix."""
    own = [str(file) for file in spec.get("files", ())]
    return own + [file for part in spec.get("mix", ()) for file in _files(part)]
