"""The one call: audit(collection, runs, measures, by=…)."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.band import enough, null_deltas, shuffled_labels
from ranktilt.auditing.evaluate import Aligned, Judgments, group_values
from ranktilt.auditing.groups import ALL, Groups, Pair, are_twins, choose_pairs, grouping, twin_rows
from ranktilt.auditing.notes import group_notes, judgment_notes, run_notes
from ranktilt.auditing.result import PAIR_COUNTS, Audit
from ranktilt.auditing.tilt import LEVEL, Side, Statistics, tilts
from ranktilt.collection import Collection
from ranktilt.errors import UserError, shorten, unknown
from ranktilt.files import sha256
from ranktilt.measures.base import Measure, measure
from ranktilt.measures.delta import ROUNDINGS
from ranktilt.measures.inference import CORRECTIONS, RESAMPLES
from ranktilt.measures.preference import split_pair_counts
from ranktilt.run import Run

DEFAULT_MEASURES = ("nDCG@1", "nDCG@3", "nDCG@5", "AP@1", "AP@3", "AP@5")
TIES = ("expected", "trec_eval")
TESTS = ("permutation", "t")
PACKAGES = ("numpy", "scipy", "polars", "PyStemmer", "ir-measures", "pytrec-eval-terrier")


def audit(
    collection: Collection,
    runs: Run | Sequence[Run],
    measures: str | Measure | Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    by: str | None = "source",
    pairs: Iterable[Pair] | None = None,
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
        Rankings of the mixed collection. A judged query that a run lacks counts 0.
    measures : str, Measure or iterable of them, optional
        The first is the primary measure, on which verdicts are given.
    by : str or None, optional
        Document column to group by; None for no groups.
    pairs : iterable of (str, str), optional
        Groups to compare, the first being favoured by positive values; all pairs by default.
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
    found = [measure(m) for m in ([measures] if isinstance(measures, str | Measure) else measures)]
    if not isinstance(collection, Collection):
        raise UserError(f"expected a collection, got {shorten(collection)}; load it first: load(folder)")
    runs = [runs] if isinstance(runs, Run | str) else list(runs)
    options = {"ties": (ties, TIES), "rounding": (rounding, ROUNDINGS), "test": (test, TESTS),
               "correction": (correction, CORRECTIONS)}  # fmt: skip
    _check(found, runs, options)
    if resamples < 100:
        raise UserError(f"expected at least 100 resamples, got {resamples}")
    if not level >= 0:
        raise UserError(f"expected a level of at least 0, got {level:g}")
    if by is None and pairs is not None:
        raise UserError("pairs of groups need a column to group by")
    groups = grouping(collection, by)
    chosen = choose_pairs(groups, pairs) if by is not None else ()
    judgments = Judgments.of(collection, groups)
    _refuse_unjudged(judgments, groups, chosen)
    work = _Work(collection, groups, chosen, judgments, measures=found, runs=len(runs), ties=ties, seed=seed)
    how = Statistics(resamples, seed, test, correction, rounding)
    aligned = [Aligned.of(run, collection, judgments) for run in runs]
    values = np.stack([group_values(a, found, groups, ties) for a in aligned])
    sides = [side for a, v in zip(aligned, values, strict=True) for side in work.sides(a, v)]
    found_tilts = tilts(sides, how)
    documents = collection.docs.height
    notes = [note for one in aligned for note in run_notes(one, documents)]
    notes += [*judgment_notes(judgments, documents), *group_notes(groups, work.left_out, found_tilts, resamples)]
    spec = {
        "by": by,
        "level": level,
        **{k: v for k, (v, _) in options.items()},
        "resamples": resamples,
        "seed": seed,
    }
    return Audit(
        {**spec, **_provenance(collection, runs)},
        tuple(r.name for r in runs),
        tuple(found),
        (ALL, *groups.names),
        judgments.queries,
        values,
        found_tilts,
        work.pair_counts(aligned),
        tuple(notes),
    )


def _check(measures: Sequence[Measure], runs: Sequence[Run], options: dict[str, tuple[str, tuple[str, ...]]]) -> None:
    if not measures:
        raise UserError("an audit needs at least one measure, such as nDCG@3")
    strange = next((r for r in runs if not isinstance(r, Run)), None)
    if strange is not None:
        raise UserError(f"expected runs, got {shorten(strange)}; rank first: ranker(...).rank(collection)")
    if not runs:
        raise UserError("an audit needs at least one run, such as that of the ranker bm25 (-r bm25)")
    for noun, names in (("measure", list(map(repr, measures))), ("run", [r.name for r in runs])):
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            raise UserError(f"{noun} {twice!r} is given twice")
    for name, (value, valid) in options.items():
        if value not in valid:
            raise unknown(name, value, valid)


def _refuse_unjudged(judgments: Judgments, groups: Groups, pairs: Sequence[Pair]) -> None:
    if not len(judgments.grade):
        raise UserError("no document is judged relevant to any query")
    held = judgments.held(groups)
    if pairs and not any(a in held and b in held for a, b in pairs):
        missing = next(n for pair in pairs for n in pair if n not in held)
        raise UserError(f"nothing to compare: no document of {groups.by} {missing!r} is judged relevant")


class _Work:
    """One audit in the making: what all its runs share."""

    def __init__(
        self, collection: Collection, groups: Groups, pairs: Sequence[Pair], judgments: Judgments,
        *, measures: Sequence[Measure], runs: int, ties: str, seed: int,
    ) -> None:  # fmt: skip
        self.collection, self.groups, self.judgments = collection, groups, judgments
        self.measures, self.ties = measures, ties
        held = judgments.held(groups)
        self.pairs = [p for p in pairs if set(p) <= held]
        self.left_out = [p for p in pairs if not set(p) <= held]
        frame = judgments.frame().filter(pl.Series(judgments.group >= 0))
        self.level_pairs = {p for p in self.pairs if are_twins(collection, groups, p, frame)}
        uneven = set(self.pairs) - self.level_pairs
        tests = runs * len(measures) * len(self.pairs)
        self.labels = shuffled_labels(judgments, seed, enough(tests)) if uneven else None
        self.twins = {p: twin_rows(collection, groups, p) for p in self.pairs}

    def sides(self, aligned: Aligned, values: np.ndarray) -> list[Side]:
        """Comparisons of one run, pair by pair."""
        sides = []
        name = aligned.run.name
        numbers = {p: (self.groups.names.index(p[0]), self.groups.names.index(p[1])) for p in self.pairs}
        uneven = [p for p in self.pairs if p not in self.level_pairs]
        nulls: dict[Pair, list[Any]] = {}
        if self.labels is not None:
            ordered = aligned if self.ties == "expected" else aligned.untied()
            found = null_deltas(ordered, self.measures, [numbers[p] for p in uneven], self.labels)
            nulls = dict(zip(uneven, found, strict=True))
        for pair, (a, b) in numbers.items():
            null = nulls.get(pair, [None] * len(self.measures))
            sides += [
                Side(name, repr(m), *pair, values[i, a + 1], values[i, b + 1], null[i])
                for i, m in enumerate(self.measures)
            ]
        return sides

    def pair_counts(self, aligned: Sequence[Aligned]) -> pl.DataFrame:
        """Twins' wins, losses and ties per run, pair and query."""
        frames = [pl.DataFrame(schema=PAIR_COUNTS)]
        for one in aligned:
            known = one.row >= 0
            relevant = one.judgment >= 0
            for pair, rows in self.twins.items():
                if not len(rows):
                    continue
                offsets = np.concatenate([[0], np.cumsum(known)])[one.ranking.offsets]
                scores = one.ranking.scores[known]
                right, other = split_pair_counts(offsets, one.row[known], scores, rows, relevant[known])
                for flag, counts in ((True, right), (False, other)):
                    names = dict(zip(("wins", "losses", "ties", "both"), counts, strict=True))
                    frame = pl.DataFrame({"query": self.judgments.queries, **names}, schema_overrides=PAIR_COUNTS)
                    frame = frame.with_columns(
                        run=pl.lit(one.run.name), a=pl.lit(pair[0]), b=pl.lit(pair[1]), relevant=pl.lit(flag)
                    )
                    frames.append(frame.select(list(PAIR_COUNTS)))
        return pl.concat(frames)


def _provenance(collection: Collection, runs: Sequence[Run]) -> dict[str, Any]:
    files = [str(f) for f in collection.spec.get("files", ())] + [str(r.spec["file"]) for r in runs if "file" in r.spec]
    inputs = [{"path": f, "sha256": sha256(Path(f))} for f in files if Path(f).is_file()]
    packages = {p: version(p) for p in PACKAGES}
    return {
        "ranktilt": __version__,
        "python": platform.python_version(),
        "packages": packages,
        "collection": {k: v for k, v in collection.spec.items() if k != "files"},
        "runs": [dict(r.spec) for r in runs],
        "inputs": inputs,
    }
