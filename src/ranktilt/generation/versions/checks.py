"""Manipulation checks: whether each factor moved what it should, and left alone what it should."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.artifact import Result
from ranktilt.data.collection import Collection
from ranktilt.data.text.features import (
    Floats,
    query_word_share,
    readability,
    type_token_ratio,
    words_per_sentence,
)
from ranktilt.data.text.ngram import cross_fitted_perplexity
from ranktilt.data.text.quality import share, term_counts, words
from ranktilt.errors import UserError
from ranktilt.generation.versions.answer_sentences import (
    ANSWER_PROBES,
    measure_answers,
    relevant_queries,
    sought_texts,
    stated_answers,
)
from ranktilt.generation.versions.design import HIGH, PREFIX
from ranktilt.generation.versions.factors import Factor
from ranktilt.generation.versions.rules import facts_of, feminine_words
from ranktilt.statistics.effect_size import StandardizedDifference, hedges_g

SMALL = 0.2
"""Standardised effect below which a property counts as not moved (Cohen, Statistical Power
Analysis, 1988).
"""
FEWEST_ORIGINS = 3
"""Fewest origins of which an effect has an interval."""
MOVED, HELD, UNCLEAR, FAILED = "moved", "held", "unclear", "failed"
"""Verdicts of a check."""

_WORD = re.compile(r"[A-Za-z]+|\d+(?:[.,]\d+)*")
"""A word or a number."""


@dataclass(frozen=True, kw_only=True)
class FactorCheck:
    """The effect of one factor on one property."""

    factor: str
    """Name of the factor."""
    probe: str
    """Name of the property."""
    expected: str
    """``up``, ``down`` or ``moves`` where the factor must move it, ``holds`` where it must not,
    empty for neither.
    """
    origins: int
    """Number of origins with a version on both levels."""
    low_mean: float
    """Mean of the property on the low level."""
    high_mean: float
    """Mean of the property on the high level."""
    g: float
    """Hedges' g of the origins' means on the high level against those on the low one; NaN where
    neither varies.
    """
    low: float
    """Lower end of the 95 % interval, by origin."""
    high: float
    """Upper end of the 95 % interval, by origin."""
    verdict: str
    """``moved``, ``held``, ``unclear`` or ``failed``; empty where nothing is expected."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ManipulationChecks(
    Result,
    format="ranktilt-manipulation-checks",
    version=1,
    noun="manipulation checks",
    command="ranktilt generate versions",
):
    """How the factors of a design changed the texts.

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
        """Factors that did not move what they should, or moved what they should not."""
        return tuple(dict.fromkeys(row.factor for row in self.rows if row.verdict == FAILED))

    def derived(self) -> dict[str, Any]:
        """Return what a file holds besides the fields."""
        return {"failed": list(self.failed)}


def check_factors(
    collection: Collection, base: pl.DataFrame, qrels: pl.DataFrame, factors: Iterable[Factor]
) -> tuple[FactorCheck, ...]:
    """Measure every version of a designed collection, and compare the levels of each factor.

    `base` are the documents as they were (``id``, ``title``, ``text``), `qrels` their judgments.
    The values of an origin's versions are averaged on each level, so that every origin counts once
    and intervals are clustered by it.
    """
    factors = tuple(factors)
    values_by_probe = measure(collection, base, qrels)
    if any({*ANSWER_PROBES} & {*factor.moves, *factor.holds} for factor in factors):
        values_by_probe |= _answers(collection, base, qrels)
    origins = collection.origin_codes()
    origin_count = int(origins.max()) + 1
    checks = []
    for factor in factors:
        is_high = (collection.docs[PREFIX + factor.name] == HIGH).to_numpy()
        for probe, values in values_by_probe.items():
            low = _means(values[~is_high], origins[~is_high], origin_count)
            high = _means(values[is_high], origins[is_high], origin_count)
            checks.append(_check(factor, probe, low, high))
    return tuple(check for check in checks if check.expected or check.origins >= FEWEST_ORIGINS)


def _means(values: Floats, origins: npt.NDArray[np.int64], origin_count: int) -> Floats:
    """Return the mean of each origin's values; NaN without any."""
    known = ~np.isnan(values)
    counts: npt.NDArray[np.int64] = np.bincount(origins[known], minlength=origin_count)
    totals = np.bincount(origins[known], weights=values[known], minlength=origin_count)
    undefined = np.full(origin_count, np.nan)
    means: Floats = np.divide(totals, counts, out=undefined, where=counts > 0)
    return means


def _check(factor: Factor, probe: str, low: Floats, high: Floats) -> FactorCheck:
    """Compare the two levels of a factor on one property."""
    known = ~(np.isnan(low) | np.isnan(high))
    low, high = low[known], high[known]
    origin_count = len(low)
    low_mean, high_mean = (
        (float(low.mean()), float(high.mean())) if origin_count else (np.nan, np.nan)
    )
    effect = hedges_g(low, high)
    expected = _expectation(factor, probe)
    verdict = ""
    if expected == "holds":
        verdict = _verdict_of_held(effect, high_mean - low_mean)
    elif expected:
        sign = factor.moves[probe]
        has_moved = _moved(effect, high_mean - low_mean, sign, origin_count)
        verdict = MOVED if has_moved else FAILED
    return FactorCheck(
        factor=factor.name,
        probe=probe,
        expected=expected,
        origins=origin_count,
        low_mean=low_mean,
        high_mean=high_mean,
        g=effect.g,
        low=effect.low,
        high=effect.high,
        verdict=verdict,
    )


def _expectation(factor: Factor, probe: str) -> str:
    """Say what a factor should do to a property."""
    if probe in factor.moves:
        return {1: "up", -1: "down", 0: "moves"}[factor.moves[probe]]
    return "holds" if probe in factor.holds else ""


def _verdict_of_held(effect: StandardizedDifference, difference: float) -> str:
    """Tell whether all of the interval is small; without one, whether nothing moved at all."""
    if np.isnan(effect.g):
        if np.isnan(difference):
            return UNCLEAR
        return FAILED if difference else HELD
    if effect.low > SMALL or effect.high < -SMALL:
        return FAILED
    return HELD if effect.low >= -SMALL and effect.high <= SMALL else UNCLEAR


def _moved(effect: StandardizedDifference, difference: float, sign: int, origin_count: int) -> bool:
    """Tell whether the effect is not small, surely not 0, and has its sign.

    Constant levels need only differ.
    """
    if origin_count < FEWEST_ORIGINS or (sign and difference * sign <= 0):
        return False
    if np.isnan(effect.g):
        return bool(difference)
    return abs(effect.g) >= SMALL and (effect.low > 0 or effect.high < 0)


def measure(collection: Collection, base: pl.DataFrame, qrels: pl.DataFrame) -> dict[str, Floats]:
    """Measure every document of a designed collection, by probe.

    What compares a document with its origin reads the origin's text in `base`, and so does
    perplexity, whose trigrams are learned from the originals.
    """
    docs = collection.docs.select("id", "title", "text", "origin")
    texts = docs["text"]
    originals = docs.select(id="origin").join(
        base.select("id", "text"), on="id", how="left", maintain_order="left"
    )["text"]
    original_terms, _, shared_terms = term_counts(originals, texts)
    titled = docs.select(pl.concat_str("title", "text", separator=" ")).to_series()
    feminine = [_feminine_share(text) for text in titled]
    return {
        "words": words(texts).to_numpy().astype(np.float64),
        "sentences": words_per_sentence(texts),
        "type-token": type_token_ratio(texts),
        "readability": readability(texts),
        "query-words": _query_words(docs, collection.queries, qrels),
        "perplexity": _perplexity(docs, base),
        "overlap": share(shared_terms, original_terms),
        "facts": _facts_left(originals, texts),
        "gender": np.array(feminine, dtype=np.float64),
    }


def _answers(collection: Collection, base: pl.DataFrame, qrels: pl.DataFrame) -> dict[str, Floats]:
    """Measure where each version states its answer, and how often."""
    queries, answers = relevant_queries(collection.queries, qrels), stated_answers(base)
    sought = {
        origin: sought_texts(answers.get(origin, ""), queries.get(origin, ()))
        for origin in base["id"]
    }
    docs = collection.docs
    column = PREFIX + "query-words"
    has_added_words = [False] * docs.height
    if column in docs.columns:
        has_added_words = (docs[column] == HIGH).to_list()
    return measure_answers(docs, sought, has_added_words)


def _query_words(docs: pl.DataFrame, queries: pl.DataFrame, qrels: pl.DataFrame) -> Floats:
    """Compare each document with the queries that its origin is relevant to."""
    versions = docs.select("origin", version="id")
    of_versions = qrels.join(versions, left_on="doc_id", right_on="origin")
    return query_word_share(
        docs, queries, of_versions.select("query_id", "grade", doc_id="version")
    )


def _perplexity(docs: pl.DataFrame, base: pl.DataFrame) -> Floats:
    """Return nats per word, by trigrams of other origins' texts; NaN where these are too few."""
    changed = docs.filter(~pl.col("id").is_in(base["id"].implode()))
    every = pl.concat(
        [base.select("id", "text", origin="id"), changed.select("id", "text", "origin")]
    )
    is_original = np.arange(every.height) < base.height
    try:
        values = cross_fitted_perplexity(every["text"], every["origin"], is_original)
    except UserError:  # trigrams need texts of several origins
        return np.full(docs.height, np.nan)
    table = every.select("id").with_columns(value=values)
    ordered = docs.select("id").join(table, on="id", how="left", maintain_order="left")
    return ordered["value"].to_numpy()


def _facts_left(originals: pl.Series, texts: pl.Series) -> Floats:
    """Return the share of the origin's numbers and names that a version kept; NaN without any."""
    facts_by_text: dict[str, set[str]] = {}
    shares = []
    for original, text in zip(originals, texts, strict=True):
        if original not in facts_by_text:
            facts_by_text[original] = facts_of(original)
        facts = facts_by_text[original]
        left = facts & {*_WORD.findall(text)}
        shares.append(len(left) / len(facts) if facts else np.nan)
    return np.array(shares, dtype=np.float64)


def _feminine_share(text: str) -> float:
    """Return the share of feminine words among the gendered ones; NaN without any."""
    feminine_by_masculine = feminine_words()
    feminine = {*feminine_by_masculine.values(), "hers"}
    gendered = feminine | feminine_by_masculine.keys()
    found_words = [word for word in re.findall(r"[a-z]+", text.lower()) if word in gendered]
    if not found_words:
        return float("nan")
    return sum(word in feminine for word in found_words) / len(found_words)
