"""Manipulation checks: whether each factor moved what it should, and left alone what it should."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.experiments.twins.design import HIGH
from ranktilt.experiments.twins.factors import Factor
from ranktilt.experiments.twins.rules import facts_of, feminine_words
from ranktilt.io.artifact import Result
from ranktilt.probes.base import Floats, TextProbe, hedges_g
from ranktilt.probes.perplexity import PerplexityProbe
from ranktilt.probes.text_probes import (
    QueryWordsProbe,
    ReadabilityProbe,
    SentenceLengthProbe,
    TypeTokenProbe,
    WordsProbe,
)
from ranktilt.text.quality import share, term_counts

SMALL = 0.2
"""Standardised effect below which a property counts as not moved (Cohen, Statistical Power Analysis, 1988)."""
FEWEST_ORIGINS = 3
MOVED, HELD, UNCLEAR, FAILED = "moved", "held", "unclear", "failed"

_ORIGINAL, _VERSION = "original", "version"
_PROBES: Mapping[str, TextProbe] = {
    "words": WordsProbe(),
    "sentences": SentenceLengthProbe(),
    "type-token": TypeTokenProbe(),
    "readability": ReadabilityProbe(),
    "query-words": QueryWordsProbe(),
    "perplexity": PerplexityProbe(),
}
_WORD = re.compile(r"[A-Za-z]+|\d+(?:[.,]\d+)*")


@dataclass(frozen=True)
class FactorCheck:
    """What one factor did to one property."""

    factor: str
    probe: str
    expected: str
    """``up``, ``down`` or ``moves`` where the factor must move it, ``holds`` where it must not, empty for neither."""
    origins: int
    """With a version on both levels."""
    low_mean: float
    high_mean: float
    g: float
    """Hedges' g of the origins' means on the high level against those on the low one; NaN where neither varies."""
    low: float
    high: float
    """95 % interval, by origin."""
    verdict: str
    """``moved``, ``held``, ``unclear`` or ``failed``; empty where nothing is expected."""


@dataclass(frozen=True, eq=False)
class ManipulationChecks(
    Result,
    format="ranktilt-manipulation-checks",
    version=1,
    noun="manipulation checks",
    command="ranktilt twins",
):
    """What the factors of a design did to the texts.

    Parameters
    ----------
    spec : mapping
        The collection, and its design.
    rows : tuple of FactorCheck
        A row for each factor and property.
    changed : mapping
        By factor, the share of the texts that it was applied to and changed, 0 to 1; none for given
        versions.
    """

    spec: Mapping[str, Any]
    rows: tuple[FactorCheck, ...]
    changed: Mapping[str, float]

    @property
    def failed(self) -> tuple[str, ...]:
        """Factors that did not move what they should, or that moved what they should not."""
        return tuple(dict.fromkeys(row.factor for row in self.rows if row.verdict == FAILED))

    def derived(self) -> dict[str, Any]:
        return {"failed": list(self.failed)}


def check_factors(
    collection: Collection, base: pl.DataFrame, qrels: pl.DataFrame, factors: Iterable[Factor]
) -> tuple[FactorCheck, ...]:
    """Measure every version of a designed collection, and compare the levels of each factor.

    `base` are the documents as they were (``id``, ``title``, ``text``), `qrels` their judgments.
    The values of an origin's versions are averaged on each level, so that every origin counts once
    and intervals are clustered by it.
    """
    measured = measure(collection, base, qrels)
    origins = collection.origin_codes()
    rows = []
    for factor in factors:
        high = (collection.docs[f"factor:{factor.name}"] == HIGH).to_numpy()
        for probe, values in measured.items():
            pairs = [
                _means(values[side], origins[side], int(origins.max()) + 1)
                for side in (~high, high)
            ]
            rows.append(_check(factor, probe, *pairs))
    return tuple(row for row in rows if row.expected or row.origins >= FEWEST_ORIGINS)


def _means(values: Floats, origins: npt.NDArray[np.int64], count: int) -> Floats:
    known = ~np.isnan(values)
    number: npt.NDArray[np.int64] = np.bincount(origins[known], minlength=count)
    total = np.bincount(origins[known], weights=values[known], minlength=count)
    means: Floats = np.divide(total, number, out=np.full(count, np.nan), where=number > 0)
    return means


def _check(factor: Factor, probe: str, low: Floats, high: Floats) -> FactorCheck:
    known = ~(np.isnan(low) | np.isnan(high))
    a, b = low[known], high[known]
    means = (float(a.mean()), float(b.mean())) if len(a) else (np.nan, np.nan)
    effect = hedges_g(a, b)
    sign = factor.moves.get(probe)
    words = {None: "holds" if probe in factor.holds else "", 1: "up", -1: "down", 0: "moves"}
    expected = words[sign]
    difference = means[1] - means[0]
    verdict = ""
    if expected == "holds":
        verdict = _held(effect, difference)
    elif expected:
        verdict = MOVED if _moved(effect, difference, sign or 0, len(a)) else FAILED
    return FactorCheck(factor.name, probe, expected, len(a), *means, *effect, verdict)


def _held(effect: tuple[float, float, float], difference: float) -> str:
    """Whether all of the interval is small; without an interval, whether nothing moved at all."""
    g, low, high = effect
    if np.isnan(g):
        return UNCLEAR if np.isnan(difference) else FAILED if difference else HELD
    if low > SMALL or high < -SMALL:
        return FAILED
    return HELD if low >= -SMALL and high <= SMALL else UNCLEAR


def _moved(effect: tuple[float, float, float], difference: float, sign: int, origins: int) -> bool:
    """Whether the effect is no small one, surely not 0, and has its sign; constant levels need only differ."""
    g, low, high = effect
    if origins < FEWEST_ORIGINS or (sign and difference * sign <= 0):
        return False
    return bool(difference) if np.isnan(g) else abs(g) >= SMALL and (low > 0 or high < 0)


def measure(collection: Collection, base: pl.DataFrame, qrels: pl.DataFrame) -> dict[str, Floats]:
    """Measure every document of a designed collection, by probe; what compares it with its origin has `base` for it."""
    docs = collection.docs.select("id", "title", "text", "origin")
    own = base.select("id", "title", "text", source=pl.lit(_ORIGINAL), origin="id")
    more = docs.filter(~pl.col("id").is_in(own["id"].implode()))
    every = pl.concat(
        [own, more.select("id", "title", "text", pl.lit(_VERSION).alias("source"), "origin")]
    )
    judged = qrels.join(every.select("origin", version="id"), left_on="doc_id", right_on="origin")
    judged = judged.select("query_id", "grade", doc_id="version")
    both = Collection(every, collection.queries, judged)
    values = {name: _values(probe, both) for name, probe in _PROBES.items()}
    number = pl.DataFrame({"id": both.ids}).with_row_index("row")
    rows = (
        docs.select("id").join(number, on="id", how="left", maintain_order="left")["row"].to_numpy()
    )
    first = docs.select(id="origin").join(
        own.select("id", "text"), on="id", how="left", maintain_order="left"
    )["text"]
    left, _, shared = term_counts(first, docs["text"])
    found = {name: one[rows] for name, one in values.items()}
    found["overlap"] = share(shared, left)
    found["facts"] = _facts_left(first, docs["text"])
    found["gender"] = _each(
        docs.select(pl.concat_str("title", "text", separator=" ")).to_series(), _feminine_share
    )
    return found


def _values(probe: TextProbe, both: Collection) -> Floats:
    try:
        return probe.measure(both, _ORIGINAL, None)
    except UserError:  # trigrams need texts of several origins
        return np.full(both.docs.height, np.nan)


def _each(texts: pl.Series, value: Callable[[str], float]) -> Floats:
    return np.array([value(text) for text in texts], dtype=np.float64)


def _facts_left(first: pl.Series, texts: pl.Series) -> Floats:
    """Share of the numbers and names of the origin that a version holds, too; NaN where it has none."""
    known: dict[str, set[str]] = {}
    found = []
    for origin, text in zip(first, texts, strict=True):
        if origin not in known:
            known[origin] = facts_of(origin)
        facts = known[origin]
        found.append(len(facts & {*_WORD.findall(text)}) / len(facts) if facts else np.nan)
    return np.array(found, dtype=np.float64)


def _feminine_share(text: str) -> float:
    """Share of feminine words among the gendered ones; NaN without any."""
    known = feminine_words()
    feminine = {*known.values(), "hers"}
    counted = [
        word for word in re.findall(r"[a-z]+", text.lower()) if word in known or word in feminine
    ]
    return sum(word in feminine for word in counted) / len(counted) if counted else float("nan")
