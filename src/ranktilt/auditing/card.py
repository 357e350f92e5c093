"""The estimand card: five questions to one run, side by side (definitions: MEASURES, sec. 3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.estimate import Estimate, Kind
from ranktilt.auditing.evaluate import Aligned, Judgments
from ranktilt.auditing.groups import Groups, Pair
from ranktilt.auditing.page import Page, all_paired, share_difference, signs_of
from ranktilt.auditing.tilt import Chance, Statistics, Tilt
from ranktilt.measures.inference import (
    RESAMPLES,
    correct,
    exchanged,
    interval,
    resampled_means,
    sign_flip_ps,
    sign_test_p,
    together,
)
from ranktilt.measures.origins import Cells, widened
from ranktilt.measures.preference import PairCounts, meeting_cells, rank_gap_sums, rank_gaps, score_gaps
from ranktilt.run import codes

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
PAGE = 20
"""Ranks that make the page, by default."""
NOTHING: Floats = np.empty(0)

NAMES: dict[Kind, str] = {
    "page": "ΔNDSR",
    "relevant twins": "head-to-head, relevant twins",
    "other twins": "head-to-head, other twins",
    "twins": "head-to-head",
    "rank gap": "pair rank gap",
    "score gap": "score gap",
}


@dataclass(frozen=True)
class Sample:
    """Per-query numbers behind one estimate: its value is the sum of `total` over the sum of `weight`."""

    kind: Kind
    name: str
    total: Floats
    weight: Floats
    """What each query counts: pairs, or 1; 0 where the query says nothing."""
    extra: dict[str, float] = field(default_factory=dict)
    level: float = 0.0
    chance: Chance | None = None
    """What random labels give, where the value is judged by them."""
    cells: Cells | None = None
    """What each origin adds, where labels are exchanged within origins."""
    distinct: Ints | None = None
    """As `Aligned.distinct`."""

    @property
    def value(self) -> float:
        """The estimate; NaN where no query counts."""
        weight = float(self.weight.sum())
        return float(self.total.sum()) / weight if weight else np.nan

    @property
    def votes(self) -> int:
        """Distinct queries that count, or origins where these are fewer."""
        queries = len(self.rows[0])
        return queries if self.cells is None else min(queries, int(np.count_nonzero(np.bincount(self.cells.origin))))

    def together(self, distinct: Ints | None) -> Sample:
        """Resample and test queries that repeat each other as one."""
        cells = None if self.cells is None else self.cells.together(distinct)
        return replace(self, distinct=distinct, cells=cells)

    @property
    def rows(self) -> tuple[Floats, Floats]:
        """Total and weight of each distinct query that counts."""
        mask = self.weight > 0
        distinct = None if self.distinct is None else self.distinct[mask]
        return together(self.total[mask], distinct), together(self.weight[mask], distinct)


@dataclass(frozen=True)
class Twins:
    """Two groups to compare, and the rows of their twins."""

    pair: Pair
    rows: Ints
    """Shape (n_pairs, 2)."""
    wanted: tuple[Ints, Ints] | None
    """Query and pair of every relevant pair, retrieved or not; None where nothing is judged."""
    origins: Ints | None = None
    """Number of each document's origin, −1 for one without a pair; None where pairs do not exchange labels."""

    @classmethod
    def of(cls, pair: Pair, rows: Ints, judgments: Judgments, origins: pl.Series | None = None) -> Twins:
        """Find the relevant pairs: those of which either side is judged relevant.

        Where each document's origin is given, both labels of an origin are exchanged for the twins' tests.
        """
        number = None if origins is None or not len(rows) else _numbers(rows, origins)
        if not len(judgments.grade):
            return cls(pair, rows, None, number)
        judged = pl.DataFrame({"query": judgments.query, "row": judgments.row})
        judged = judged.filter(pl.Series(judgments.known_query[judgments.query]))
        table = pl.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "pair": np.arange(len(rows))})
        sides = [judged.join(table, left_on="row", right_on=side).select("query", "pair") for side in ("a", "b")]
        found = pl.concat(sides).unique().sort("query", "pair")
        query, wanted = (found[column].to_numpy().astype(np.int64) for column in ("query", "pair"))
        return cls(pair, rows, (query, wanted), number)

    def asked(self, aligned: Aligned, missing: str) -> Twins:
        """Leave out the relevant pairs of queries that count nowhere: see `Aligned.left_out`."""
        if self.wanted is None:
            return self
        keep = ~aligned.left_out(missing)[self.wanted[0]]
        return replace(self, wanted=(self.wanted[0][keep], self.wanted[1][keep]))


@dataclass(frozen=True)
class Asking:
    """How the card of one run is made.

    Parameters
    ----------
    depth : int
        Ranks that make the page.
    seed : int
        Of every random draw.
    draws : int, optional
        Exchanges of the twins' labels.
    banded : bool, optional
        Whether what they give is shown beside the values.
    band : ndarray of float64, shape (n_groups, shuffles), optional
        Every group's NDSR on the run's pages under random labels; where all documents have twins, none is needed.
    """

    depth: int
    seed: int
    draws: int = RESAMPLES
    banded: bool = True
    band: Floats = field(default_factory=lambda: NOTHING)

    def judged(self, sample: Sample) -> Sample:
        """Judge a sample by exchanging the labels of each origin, the same way in all queries."""
        weight = float(sample.weight.sum())
        if sample.cells is None or not weight:
            return sample
        null = exchanged(sample.cells.nets, draws=self.draws, seed=[self.seed, 5]) / weight
        chance = Chance.of(sample.value, null)
        return replace(sample, chance=chance if self.banded else Chance(0.0, 0.0, chance.p))


def _numbers(rows: Ints, origins: pl.Series) -> Ints:
    """Number the origins of pairs by name, so that the order of the documents does not matter."""
    paired = origins.gather(np.unique(rows))
    names = paired.unique().sort()
    return codes(origins, names)


def samples(
    aligned: Aligned, groups: Groups, twins: Twins, counts: tuple[PairCounts, PairCounts] | None, asking: Asking
) -> list[Sample]:
    """Ask one run every question that needs no Relative Δ.

    Parameters
    ----------
    aligned : Aligned
        The run.
    groups : Groups
        The grouping.
    twins : Twins
        The two groups.
    counts : tuple of PairCounts or None
        Wins, losses and ties of relevant and of other twins; None where there are no twins.
    asking : Asking
        How.

    Returns
    -------
    list of Sample
        ΔNDSR; then, where there are twins, head-to-head, rank gap and score gap.
    """
    found = [_page(aligned, groups, twins, asking)]
    if counts is not None:
        found += _twins(aligned, groups, twins, counts)
    return [asking.judged(sample.together(aligned.distinct)) for sample in found]


def entries(aligned: Aligned) -> tuple[Ints, Ints, Floats]:
    """Give the offsets, rows and scores of what a run holds of the collection and its judgments."""
    known = (aligned.row >= 0) & aligned.judgments.known_query[aligned.ranking.query]
    offsets = np.concatenate([[0], np.cumsum(known)])[aligned.ranking.offsets]
    return offsets, aligned.row[known], aligned.ranking.scores[known]


def _page(aligned: Aligned, groups: Groups, twins: Twins, asking: Asking) -> Sample:
    page = Page.of(aligned, asking.depth, len(groups.code))
    signs = signs_of(groups, twins.pair)
    name = f"{NAMES['page']}@{asking.depth}"
    total, weight = page.difference(signs), page.known.astype(np.float64)
    sample = Sample("page", name, total, weight, {"shares": share_difference(signs)})
    if all_paired(signs, twins.rows):
        return replace(sample, cells=_cells(twins, page.cells(signs)))
    a, b = (groups.names.index(name) for name in twins.pair)
    chance = Chance.of(sample.value, asking.band[a] - asking.band[b])
    return replace(sample, level=(chance.low + chance.high) / 2, chance=chance)


def _cells(twins: Twins, found: Cells) -> Cells | None:
    return None if twins.origins is None else found.of(twins.origins)


def _twins(aligned: Aligned, groups: Groups, twins: Twins, counts: tuple[PairCounts, PairCounts]) -> Iterator[Sample]:
    counted = (aligned.row < len(groups.code)) & aligned.judgments.known_query[aligned.ranking.query]
    rows = np.where(counted, aligned.row, -1)
    relevant = aligned.judgments.query, aligned.judgments.row
    met = meeting_cells(*entries(aligned), twins.rows, relevant)
    kinds: tuple[Kind | None, Kind] = ("relevant twins", "other twins") if twins.wanted is not None else (None, "twins")
    for kind, one, cells in zip(kinds, counts, met, strict=True):
        if kind:
            yield replace(_head_to_head(kind, one), cells=_cells(twins, cells))
    yield _rank_gap(aligned, rows, twins)
    yield _score_gap(aligned, rows, twins)


def _head_to_head(kind: Kind, counts: PairCounts) -> Sample:
    sums = {name: float(numbers.sum()) for name, numbers in counts._asdict().items()}
    whole = {"whole_wins": sums["wins"] - sums["alone"], "whole": sums["both"]}
    whole["whole_losses"] = whole["whole"] - sums["ties"] - whole["whole_wins"]
    total = counts.wins + counts.losses + counts.ties
    extra = {"pairs": float(total.sum()), **{name: sums[name] for name in ("wins", "losses", "ties")}, **whole}
    won = (counts.wins - counts.losses).astype(np.float64)
    return Sample(kind, NAMES[kind], won, total.astype(np.float64), extra)


def _rank_gap(aligned: Aligned, rows: Ints, twins: Twins) -> Sample:
    name = NAMES["rank gap"]
    if twins.wanted is None:
        held = (np.diff(aligned.ranking.offsets) > 0).astype(np.float64)
        totals, cells = rank_gap_sums(aligned.ranking, rows, twins.rows)
        return Sample("rank gap", f"{name}, summed per query", totals, held, cells=_cells(twins, cells))
    gaps = rank_gaps(aligned.ranking, rows, twins.rows, twins.wanted)
    pairs = int(gaps.pairs.sum())
    extra = {"pairs": float(pairs), "absent": float(gaps.absent.sum()) / (2 * pairs) if pairs else np.nan}
    weight = gaps.pairs.astype(np.float64)
    return Sample("rank gap", name, gaps.total, weight, extra, cells=_cells(twins, gaps.cells))


def _score_gap(aligned: Aligned, rows: Ints, twins: Twins) -> Sample:
    name = NAMES["score gap"]
    if aligned.run.spec.get("score_order") == "rank":
        nothing = np.zeros(len(aligned.judgments.queries))
        return Sample("score gap", name, nothing, nothing, {"pairs": 0.0, "raw": np.nan})
    gaps, raw = score_gaps(aligned.ranking, rows, twins.rows)
    pairs = int(gaps.pairs.sum())
    extra = {"pairs": float(pairs), "raw": float(raw.sum()) / pairs if pairs else np.nan}
    weight = gaps.pairs.astype(np.float64)
    return Sample("score gap", name, gaps.total, weight, extra, cells=_cells(twins, gaps.cells))


def estimates(
    asked: Sequence[tuple[str, Pair, Sequence[Sample]]], tilts: Sequence[Tilt], how: Statistics
) -> tuple[Estimate, ...]:
    """Give every answer its interval and p; all p of the card are corrected together.

    Parameters
    ----------
    asked : sequence of (run, pair, samples)
        In the order of the card.
    tilts : sequence of Tilt
        Relative Δ on the primary measure; the first row of a run and pair where there is one.
    how : Statistics
        Resamples, seed and correction.

    Returns
    -------
    tuple of Estimate
        Run by run and pair by pair.
    """
    certain = _certainties([sample for _, _, found in asked for sample in found], how)
    first = {(t.run, t.a, t.b): t for t in tilts}
    made: list[Estimate] = []
    for run, pair, found in asked:
        if (run, *pair) in first:
            made.append(Estimate.of_tilt(first[run, *pair]))
        for sample in found:
            made.append(_estimate(run, pair, sample, *next(certain)))
    family = [np.nan if e.kind == "score gap" else e.p for e in made]
    tests = max(sum(p == p for p in family), 1)
    return tuple(
        replace(e, p_corrected=e.p) if e.kind == "score gap" else replace(e, p_corrected=float(p), tests=tests)
        for e, p in zip(made, correct(family, how.correction), strict=True)
    )


def _certainties(flat: Sequence[Sample], how: Statistics) -> Iterator[tuple[Floats, float]]:
    """Resampled values and p of each sample; those over the same queries share their draws."""
    families: dict[bytes, list[int]] = defaultdict(list)
    for index, sample in enumerate(flat):
        repeated = b"" if sample.distinct is None else sample.distinct.tobytes()
        families[(sample.weight > 0).tobytes() + repeated].append(index)
    found: dict[int, tuple[Floats, float]] = {}
    for members in families.values():
        rows = [flat[index].rows for index in members]
        means = resampled_means([column for row in rows for column in row], resamples=how.resamples, seed=how.seed)
        flipped = [place for place, index in enumerate(members) if _flipped(flat[index])]
        totals = [rows[place][0] for place in flipped]
        ps = dict(zip(flipped, sign_flip_ps(totals, resamples=how.resamples, seed=how.seed), strict=True))
        for place, index in enumerate(members):
            with np.errstate(invalid="ignore", divide="ignore"):
                samples = means[2 * place] / means[2 * place + 1]
            found[index] = _two_way(flat[index], rows[place], samples), _p(flat[index], rows[place], ps.get(place))
    return (found[index] for index in range(len(flat)))


def _two_way(sample: Sample, rows: tuple[Floats, Floats], samples: Floats) -> Floats:
    if sample.cells is None or not len(rows[0]):
        return samples
    wide = widened(samples, sample.value, rows[0] - sample.value * rows[1], sample.cells.variance(sample.value))
    return wide if sample.kind in ("rank gap", "score gap") else np.clip(wide, -1.0, 1.0)


def _flipped(sample: Sample) -> bool:
    """Whether signs of queries are flipped: for all twins but those head to head."""
    return (sample.chance is None or sample.cells is not None) and sample.kind in ("page", "rank gap", "score gap")


def _p(sample: Sample, rows: tuple[Floats, Floats], flipped: float | None) -> float:
    """Give the p among random labels for groups that are not twins; for twins the larger of that and of queries'."""
    if not len(rows[0]):
        return np.nan
    chance = 0.0 if sample.chance is None else sample.chance.p
    if flipped is not None:
        return max(flipped, chance)
    if sample.kind == "page":
        return chance
    return max(sign_test_p(int((rows[0] > 0).sum()), int((rows[0] < 0).sum())), chance)


def _estimate(run: str, pair: Pair, sample: Sample, samples: Floats, p: float) -> Estimate:
    spread, band = interval(samples), sample.chance
    queries = int((sample.weight > 0).sum())
    return Estimate(
        run, sample.kind, sample.name, *pair, sample.value, spread.low, spread.high, spread.error,
        p if queries else np.nan, np.nan, queries, sample.level,
        *((band.low, band.high) if band else (0.0, 0.0)), sample.extra, votes=sample.votes,
    )  # fmt: skip
