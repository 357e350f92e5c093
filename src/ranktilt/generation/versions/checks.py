"""Manipulation checks: whether each factor changed the properties that it should, and no others.

A *factor* is a property that a design sets to two levels, ``low`` (the text as it is) and ``high``
(changed). A *probe* is a measured property of a text. An *origin* is the id of the document that
versions were made from. How far a factor moves a property is its *effect*: Hedges' g, the
difference between the means of the two levels in standard deviations.
"""

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
"""Standardised effect (Hedges' g) below which a property counts as not moved.

The value is Cohen's small effect (Statistical Power Analysis, 1988).
"""
FEWEST_ORIGINS = 3
"""Minimum number of origins for an interval of an effect."""
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
    """What the factor must do to the property: ``up``, ``down`` or ``moves`` (either), or
    ``holds``; empty if it may do anything."""
    origins: int
    """Number of origins with a version on both levels."""
    low_mean: float
    """Mean of the property on the low level, each origin counting once."""
    high_mean: float
    """Mean of the property on the high level, each origin counting once."""
    g: float
    """Hedges' g of the origins' means, high level minus low level; NaN where neither varies."""
    low: float
    """Lower end of the 95 % interval of g, over origins."""
    high: float
    """Upper end of the 95 % interval of g, over origins."""
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
        By factor, the share of texts that differed after it was applied, 0 to 1. Empty for versions
        that existed already.
    """

    spec: Mapping[str, Any]
    rows: tuple[FactorCheck, ...]
    changed: Mapping[str, float]

    @property
    def failed(self) -> tuple[str, ...]:
        """Factors that did not move what they should, or moved what they should not."""
        return tuple(dict.fromkeys(row.factor for row in self.rows if row.verdict == FAILED))

    def derived(self) -> dict[str, Any]:
        """Return values that a file holds besides the fields."""
        return {"failed": list(self.failed)}


def check_factors(
    collection: Collection, originals: pl.DataFrame, qrels: pl.DataFrame, factors: Iterable[Factor]
) -> tuple[FactorCheck, ...]:
    """Measure every version of a designed collection, and compare the levels of each factor.

    The values of an origin's versions are averaged on each level, so that every origin counts once
    and intervals are clustered by origin.

    Parameters
    ----------
    collection : Collection
        The versions.
    originals : DataFrame
        The documents that they were made from, with columns ``id``, ``title`` and ``text``.
    qrels : DataFrame
        Judgments of the originals.
    factors : iterable of Factor
        The factors, and what each is expected to change.

    Returns
    -------
    tuple of FactorCheck
        A check for each factor and property. Without an expectation and with too few origins for an
        interval it is left out.
    """
    factors = tuple(factors)
    values_by_probe = measure_properties(collection, originals, qrels)
    if any({*ANSWER_PROBES} & {*factor.moves, *factor.holds} for factor in factors):
        values_by_probe |= _measure_answers(collection, originals, qrels)
    origins = collection.origin_codes()
    origin_count = int(origins.max()) + 1
    checks = []
    for factor in factors:
        is_high = (collection.docs[PREFIX + factor.name] == HIGH).to_numpy()
        for probe, values in values_by_probe.items():
            low = _origin_means(values[~is_high], origins[~is_high], origin_count)
            high = _origin_means(values[is_high], origins[is_high], origin_count)
            checks.append(_check_factor(factor, probe, low, high))
    return tuple(check for check in checks if check.expected or check.origins >= FEWEST_ORIGINS)


def _origin_means(values: Floats, origins: npt.NDArray[np.int64], origin_count: int) -> Floats:
    """Return the mean of each origin's values; NaN without any.

    `origins` are their indices, one for each value.
    """
    known = ~np.isnan(values)
    counts: npt.NDArray[np.int64] = np.bincount(origins[known], minlength=origin_count)
    totals = np.bincount(origins[known], weights=values[known], minlength=origin_count)
    undefined = np.full(origin_count, np.nan)
    means: Floats = np.divide(totals, counts, out=undefined, where=counts > 0)
    return means


def _check_factor(factor: Factor, probe: str, low: Floats, high: Floats) -> FactorCheck:
    """Compare the two levels of a factor on one property; `low` and `high` are means by origin."""
    known = ~(np.isnan(low) | np.isnan(high))
    low, high = low[known], high[known]
    origin_count = len(low)
    low_mean, high_mean = np.nan, np.nan
    if origin_count:
        low_mean, high_mean = float(low.mean()), float(high.mean())
    effect = hedges_g(low, high)
    expected = _expectation(factor, probe)
    verdict = ""
    if expected == "holds":
        verdict = _holds_verdict(effect, high_mean - low_mean)
    elif expected:
        sign = factor.moves[probe]
        has_moved = _has_moved(effect, high_mean - low_mean, sign, origin_count)
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
    """Return what a factor should do to a property, as in `FactorCheck.expected`."""
    if probe in factor.moves:
        return {1: "up", -1: "down", 0: "moves"}[factor.moves[probe]]
    return "holds" if probe in factor.holds else ""


def _holds_verdict(effect: StandardizedDifference, difference: float) -> str:
    """Decide whether a property was left alone: its whole interval is small.

    Without an interval, because neither level varies, the two levels must be equal.
    """
    if np.isnan(effect.g):
        if np.isnan(difference):
            return UNCLEAR
        return FAILED if difference else HELD
    if effect.low > SMALL or effect.high < -SMALL:
        return FAILED
    return HELD if effect.low >= -SMALL and effect.high <= SMALL else UNCLEAR


def _has_moved(
    effect: StandardizedDifference, difference: float, sign: int, origin_count: int
) -> bool:
    """Decide whether a property moved: the effect is not small, and its interval excludes 0.

    The difference must have the sign `sign`, unless that is 0. Levels that do not vary need only
    differ.
    """
    if origin_count < FEWEST_ORIGINS or (sign and difference * sign <= 0):
        return False
    if np.isnan(effect.g):
        return bool(difference)
    return abs(effect.g) >= SMALL and (effect.low > 0 or effect.high < 0)


def measure_properties(
    collection: Collection, originals: pl.DataFrame, qrels: pl.DataFrame
) -> dict[str, Floats]:
    """Return the value of each probe, for every version of a designed collection.

    Some probes compare a version with its origin, whose text is in `originals`. Perplexity is under
    trigrams that are learned from `originals` too. `qrels` are judgments of the originals.
    """
    docs = collection.docs.select("id", "title", "text", "origin")
    texts = docs["text"]
    original_texts = docs.select(id="origin").join(
        originals.select("id", "text"), on="id", how="left", maintain_order="left"
    )["text"]
    original_terms, _version_terms, shared_terms = term_counts(original_texts, texts)
    titled = docs.select(pl.concat_str("title", "text", separator=" ")).to_series()
    feminine = [_feminine_share(text) for text in titled]
    return {
        "words": words(texts).to_numpy().astype(np.float64),
        "sentences": words_per_sentence(texts),
        "type-token": type_token_ratio(texts),
        "readability": readability(texts),
        "query-words": _query_word_share(docs, collection.queries, qrels),
        "perplexity": _perplexity(docs, originals),
        "overlap": share(shared_terms, original_terms),
        "facts": _share_of_facts_kept(original_texts, texts),
        "gender": np.array(feminine, dtype=np.float64),
    }


def _measure_answers(
    collection: Collection, originals: pl.DataFrame, qrels: pl.DataFrame
) -> dict[str, Floats]:
    """Measure where each version states its answer, and how often."""
    queries, answers = relevant_queries(collection.queries, qrels), stated_answers(originals)
    sought = {
        origin: sought_texts(answers.get(origin, ""), queries.get(origin, ()))
        for origin in originals["id"]
    }
    docs = collection.docs
    column = PREFIX + "query-words"
    has_added_words = [False] * docs.height
    if column in docs.columns:
        has_added_words = (docs[column] == HIGH).to_list()
    return measure_answers(docs, sought, has_added_words)


def _query_word_share(docs: pl.DataFrame, queries: pl.DataFrame, qrels: pl.DataFrame) -> Floats:
    """Return the share of query words in each version, for queries its origin is relevant to."""
    versions = docs.select("origin", version="id")
    version_qrels = qrels.join(versions, left_on="doc_id", right_on="origin")
    return query_word_share(
        docs, queries, version_qrels.select("query_id", "grade", doc_id="version")
    )


def _perplexity(docs: pl.DataFrame, originals: pl.DataFrame) -> Floats:
    """Return the log perplexity of each version, in nats per word.

    It is under trigrams of the originals of other origins; NaN where these are too few.
    """
    changed = docs.filter(~pl.col("id").is_in(originals["id"].implode()))
    texts = pl.concat(
        [originals.select("id", "text", origin="id"), changed.select("id", "text", "origin")]
    )
    is_original = np.arange(texts.height) < originals.height
    try:
        values = cross_fitted_perplexity(texts["text"], texts["origin"], is_original)
    except UserError:  # trigrams need texts of several origins
        return np.full(docs.height, np.nan)
    table = texts.select("id").with_columns(value=values)
    ordered = docs.select("id").join(table, on="id", how="left", maintain_order="left")
    return ordered["value"].to_numpy()


def _share_of_facts_kept(originals: pl.Series, texts: pl.Series) -> Floats:
    """Return the share of the original's numbers and names that a version has; NaN without any.

    `originals` holds the original text of each version.
    """
    facts_by_original: dict[str, set[str]] = {}
    shares = []
    for original, text in zip(originals, texts, strict=True):
        if original not in facts_by_original:
            facts_by_original[original] = facts_of(original)
        facts = facts_by_original[original]
        kept_facts = facts & {*_WORD.findall(text)}
        shares.append(len(kept_facts) / len(facts) if facts else np.nan)
    return np.array(shares, dtype=np.float64)


def _feminine_share(text: str) -> float:
    """Return the share of feminine words among the gendered ones; NaN without any."""
    feminine_by_masculine = feminine_words()
    feminine = {*feminine_by_masculine.values(), "hers"}
    gendered = feminine | feminine_by_masculine.keys()
    gendered_words = [word for word in re.findall(r"[a-z]+", text.lower()) if word in gendered]
    if not gendered_words:
        return float("nan")
    return sum(word in feminine for word in gendered_words) / len(gendered_words)
