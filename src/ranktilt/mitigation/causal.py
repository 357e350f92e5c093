"""Causal diagnosis and correction (Wang et al., ICLR 2025): take from scores what perplexity adds to them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.run import Run, codes, collection_rows
from ranktilt.errors import UserError, counted
from ranktilt.explaining.perplexity import NGRAM, PerplexityProbe
from ranktilt.mitigation.base import (
    KEYS,
    Correction,
    Fit,
    Ints,
    Lists,
    Scores,
    fitted_on,
    read_fit,
    require_scale,
    scale_of,
)
from ranktilt.rankers.base import DEPTH, Pipeline, Ranker
from ranktilt.rankers.fit_provenance import query_keys
from ranktilt.statistics.regression import Ratio, ratio_difference, ratio_of_means

Floats = npt.NDArray[np.float64]

PAIRS = 128
LEAST_F = 10.0
"""First-stage F below which an instrument is called weak (Staiger & Stock, Econometrica 65(3), 1997)."""
_FEWEST = 3
_UNTESTED = "that source moves scores through perplexity alone is not tested"
_NO_PAIRS = f"{_UNTESTED}: no pairs differ in the source alone"


class EstimationPair(NamedTuple):
    """A query, a document relevant to it, and that document's twin."""

    query: str
    reference: str
    twin: str


@dataclass(frozen=True, eq=False)
class Instrument:
    """A factor of a designed collection in the source's place: pairs of versions that differ in it alone.

    Frames have ``origin`` and the document ids ``a`` (low) and ``b`` (high).
    """

    name: str
    pairs: pl.DataFrame
    by_source: pl.DataFrame | None = None
    """Pairs that differ in the source alone; None where there are none."""


@dataclass(frozen=True)
class SourceRatio:
    """The coefficient with the source as instrument, beside that of a factor."""

    coefficient: float
    low: float
    high: float
    f: float
    pairs: int
    difference: float
    """It less the factor's: 0 where the source moves scores through perplexity alone. NaN if the source is weak."""
    difference_low: float
    """Of its 95 % interval, by the delta method, clustered by query and origin over the pairs of both."""
    difference_high: float

    @property
    def sentence(self) -> str:
        """What the difference says of exclusion, that the source moves scores through perplexity alone."""
        if np.isnan(self.difference):
            return f"{_UNTESTED}: source hardly moves perplexity (first-stage F {np.nan_to_num(self.f):.1f})"
        by = (
            f"by source it is {_signed(self.coefficient)} {_ends(self.low, self.high)} over {self.pairs:,} pairs, a "
            f"difference of {_signed(self.difference)} {_ends(self.difference_low, self.difference_high)}"
        )
        if self.difference_low <= 0 <= self.difference_high:
            return f"{by}: no other way of source to scores is shown"
        return (
            f"{by}: exclusion fails, source moves scores by other ways than perplexity, and the correction takes away "
            "only what perplexity explains"
        )


@dataclass(frozen=True, eq=False)
class CausalFit(
    Fit,
    format="ranktilt-causal-fit",
    version=1,
    noun="a fit of the causal correction",
    command="ranktilt mitigate",
):
    """How much a score rises with perplexity, by two-stage regression with the source, or a factor, as instrument."""

    coefficient: float
    """β̂₂: what one nat of log perplexity more adds to a score, in its own unit."""
    low: float
    """Of its 95 % interval; NaN, as is `high`, where that has no end."""
    high: float
    f: float
    """First-stage F: how surely the instrument moves perplexity."""
    score_gap: float
    """Mean score of the twins less that of the reference's documents, or of high versions less low ones."""
    perplexity_gap: float
    """The same of log perplexity, in nats."""
    pairs: tuple[EstimationPair, ...]
    """What it was estimated on."""
    by_source: SourceRatio | None = None
    """With a factor as instrument, what the source would give; None where no pairs differ in it alone."""

    @property
    def sentence(self) -> str:
        spec = self.spec
        factor = spec.get("instrument")
        groups = (
            f"high less low {factor}" if factor else f"{spec['source']} less {spec['reference']}"
        )
        tested = f"; {self.by_source.sentence if self.by_source else _NO_PAIRS}" if factor else ""
        missing = f", {spec['missing']:,} more not scored" if spec.get("missing") else ""
        asked = counted(len({pair.query for pair in self.pairs}), "query", "queries")
        return (
            f"causal: +1 of perplexity, in {spec['unit']}, moves scores of {spec['ranker']} by "
            f"{_signed(self.coefficient)} {_ends(self.low, self.high)}; first-stage F {self.f:,.1f} over "
            f"{len(self.pairs):,} pairs of {asked}{missing}; {groups}: perplexity {_signed(self.perplexity_gap)}, "
            f"score {_signed(self.score_gap)}{tested}"
        )


def _signed(value: float) -> str:
    return f"{value:+.3g}".replace("-", "−")


def _ends(low: float, high: float) -> str:
    return "[no end]" if np.isnan(low) else f"[{_signed(low)}, {_signed(high)}]"


@dataclass(frozen=True)
class Causal(Correction):
    """Subtracts λ · β̂₂ · log perplexity from each candidate's score; reads texts, and no group.

    `fit` names what `fit_causal` found on other queries, `strength` is λ: 0 changes nothing, and 1
    takes away all that twins' scores differ by on average. A document without a word has the mean
    perplexity of the other candidates. The candidates' scores must be those of the ranker that was
    fitted.
    """

    name: ClassVar[str] = "causal"

    fit: str = field(default="", kw_only=True)
    strength: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.strength <= 1:
            raise UserError(f"causal: expected a strength between 0 and 1, got {self.strength:g}")
        if self.by != "source":
            raise UserError(
                f"causal is fitted on sources and knows no other group, got by={self.by}"
            )

    @property
    def reads_scores(self) -> bool:
        return True

    def check(self) -> None:
        _ = self.fitted

    @cached_property
    def fitted(self) -> CausalFit:
        """What was fitted, read from its file once."""
        return read_fit(CausalFit, self.fit, self.name)

    def rescored(self, lists: Lists) -> Scores:
        require_scale(lists.run, self.fit, self.fitted)
        lists.notes.update(fitted_on(self.fit, self.fitted, lists.collection))
        if not self.strength:
            return lists.run.scores
        if outside := int((lists.rows < 0).sum()):
            raise UserError(
                f"causal reads texts, and {outside:,} of {len(lists.rows):,} candidates are not in the collection"
            )
        perplexity = perplexities(lists.collection, lists.rows, self.fitted.spec)
        known = perplexity[~np.isnan(perplexity)]
        filled = np.where(np.isnan(perplexity), known.mean() if len(known) else 0.0, perplexity)
        corrected: Scores = lists.run.scores - self.strength * self.fitted.coefficient * filled
        return corrected


def perplexities(collection: Collection, rows: Ints, spec: Mapping[str, Any]) -> Floats:
    """Return log perplexity as a fit's spec says; NaN without a word. Language models read these documents only."""
    probe, reference = PerplexityProbe(**spec["perplexity"]), spec["reference"]
    if probe.lm != NGRAM:
        distinct, place = np.unique(rows, return_inverse=True)
        some = Collection(
            collection.docs[distinct], collection.queries.clear(), collection.qrels.clear()
        )
        return probe.measure(some, reference, None)[place]
    key = ("perplexity", reference, json.dumps(probe.options))
    return collection.memo(key, lambda: probe.measure(collection, reference, None))[rows]


def fit_causal(
    collection: Collection,
    ranker: Ranker,
    *,
    source: str,
    reference: str = "human",
    probe: PerplexityProbe | None = None,
    pairs: int = PAIRS,
    seed: int = 0,
    force: bool = False,
    instrument: Instrument | None = None,
) -> CausalFit:
    """Estimate how a ranker's scores depend on perplexity, on judged queries that nothing is tested on.

    Pairs are drawn query by query: one of each before the second of any. With one instrument of two
    values the coefficient is the Wald ratio, the mean gap of the twins' scores over that of their
    perplexities, with Fieller's interval clustered by query and origin. Of a pipeline the last
    stage is fitted; pairs of which a ranker that only searches does not retrieve both are left out.
    `force` goes on where the first-stage F is below 10.

    With an `instrument` (`factor_instrument`) the pairs are versions that differ in a factor alone;
    the ratio by the source, over pairs drawn likewise, is held against it (`CausalFit.by_source`).
    """
    probe = probe or PerplexityProbe()
    if probe.given:
        raise UserError("causal needs the perplexity of texts alone; leave out given")
    last = ranker.stages[-1] if isinstance(ranker, Pipeline) else ranker
    made = {
        "reference": reference,
        "source": source,
        "perplexity": probe.options,
        "unit": probe.what,
    }
    if instrument is None:
        some = [_drawn(collection, _twins(collection, reference, source), pairs, seed)]
        what, groups = f"document of {reference!r} with a twin", f"{source} and {reference}"
    else:
        by_source = [] if instrument.by_source is None else [instrument.by_source]
        some = [_drawn(collection, of, pairs, seed) for of in (instrument.pairs, *by_source)]
        what, groups = f"version with another {instrument.name}", f"high and low {instrument.name}"
        made["instrument"] = instrument.name
    if not some[0].height:
        raise UserError(f"causal learns from judged queries; none has a relevant {what}")
    gaps = _gaps(collection, last, some, made)
    own = gaps[0]
    if own.used.height < _FEWEST:
        raise UserError(
            f"causal needs at least {_FEWEST} pairs of which {last!r} scores both sides, got {own.used.height} of "
            f"{some[0].height}"
        )
    found, moved = own.ratio, own.perplexity.mean()
    if not (found.f >= LEAST_F or (force and moved)):
        raise UserError(
            f"causal: {groups} differ too little in perplexity (first-stage F {np.nan_to_num(found.f):.1f}, expected "
            f"at least {LEAST_F:g}), so what that does to scores cannot be told{'; force goes on' if moved else ''}"
        )
    names = [own.used["query_id"], *(collection.ids.gather(own.used[side]) for side in "ab")]
    asked = tuple(dict.fromkeys(query for one in gaps for query in one.used["query_id"]))
    return CausalFit(
        {
            "ranker": scale_of(repr(last)),
            **made,
            "seed": seed,
            "missing": some[0].height - own.used.height,
            "ranktilt": __version__,
            "collection": collection.spec.get("path"),
            KEYS: query_keys(collection, asked),
        },
        asked,
        found.value,
        found.low,
        found.high,
        found.f,
        float(own.score.mean()),
        float(moved),
        tuple(map(EstimationPair, *names)),
        next((_by_source(own, other) for other in gaps[1:] if other.used.height >= _FEWEST), None),
    )


class _Gaps(NamedTuple):
    """Pairs of which both sides are scored, and what the second side has more than the first."""

    used: pl.DataFrame
    score: Floats
    perplexity: Floats

    @property
    def ratio(self) -> Ratio:
        return ratio_of_means(self.score, self.perplexity, *_clusters(self.used))


def _clusters(used: pl.DataFrame) -> tuple[Ints, Ints]:
    query, origin = (
        used[name].rank("dense").to_numpy().astype(np.int64) for name in ("query_id", "origin")
    )
    return query, origin


def _gaps(
    collection: Collection, stage: Ranker, some: list[pl.DataFrame], made: Mapping[str, Any]
) -> list[_Gaps]:
    """Measure the pairs of every frame, of which all are ranked at once."""
    drawn = pl.concat(
        [frame.with_columns(part=pl.lit(number)) for number, frame in enumerate(some)]
    )
    sides = drawn.select("a", "b").to_numpy()
    scores = np.diff(_scores(collection, stage, drawn["query_id"], sides))[:, 0]
    perplexity = np.diff(perplexities(collection, sides.ravel(), made).reshape(-1, 2))[:, 0]
    held = ~np.isnan(scores + perplexity)
    parts = [held & (drawn["part"] == number).to_numpy() for number in range(len(some))]
    return [_Gaps(drawn.filter(pl.Series(part)), scores[part], perplexity[part]) for part in parts]


def _by_source(own: _Gaps, other: _Gaps) -> SourceRatio:
    """The ratio by the source, and how far it is from the factor's; NaN where the source hardly moves perplexity."""
    found = other.ratio
    apart = (np.nan, np.nan, np.nan)
    if found.f >= LEAST_F:
        clusters = _clusters(pl.concat([other.used, own.used]))
        apart = ratio_difference(
            (other.score, other.perplexity), (own.score, own.perplexity), *clusters
        )
    return SourceRatio(*found, other.used.height, *apart)


def _twins(collection: Collection, reference: str, source: str) -> pl.DataFrame:
    twins = collection.pairs(reference, source)
    if not twins.height:
        raise UserError(
            f"causal needs twins: no document of {source!r} shares its origin with one of {reference!r}"
        )
    return twins


def _drawn(collection: Collection, pairs: pl.DataFrame, most: int, seed: int) -> pl.DataFrame:
    """Query, origin and the rows ``a`` and ``b`` of pairs of which the first is relevant, drawn by seed."""
    relevant = collection.qrels.filter(pl.col("grade") > 0).join(
        collection.judged.select("id"), left_on="query_id", right_on="id", how="semi"
    )
    found = relevant.join(pairs, left_on="doc_id", right_on="a", how="inner").sort(
        "query_id", "doc_id", "b"
    )
    shuffled = found[np.random.default_rng(seed).permutation(found.height)]
    turns = shuffled.with_columns(turn=pl.int_range(pl.len()).over("query_id"))
    some = turns.sort("turn", maintain_order=True).head(most)
    rows = {side: codes(some[name], collection.ids) for side, name in (("a", "doc_id"), ("b", "b"))}
    return some.select("query_id", "origin").with_columns(
        **{side: pl.Series(found) for side, found in rows.items()}
    )


def _scores(collection: Collection, stage: Ranker, queries: pl.Series, sides: Ints) -> Floats:
    """Score both sides of each pair; NaN for a document that a ranker which only searches did not retrieve."""
    if isinstance(stage, Correction):
        raise UserError(
            f"causal is fitted on a ranker's own scores, and {stage!r} has changed them; omit it"
        )
    names = queries.unique(maintain_order=True)
    pairs = pl.DataFrame({"query": codes(queries, names), "a": sides[:, 0], "b": sides[:, 1]})
    if stage.reranks:
        entries = (
            pairs.unpivot(index="query", value_name="row")
            .select("query", "row")
            .unique()
            .sort("query", "row")
        )
        ends = np.cumsum([0, *np.bincount(entries["query"].to_numpy(), minlength=len(names))])
        candidates = Run(
            tuple(names), ends, entries["row"].to_numpy(), np.zeros(entries.height), collection.ids
        )
        whole = replace(stage, k=None) if hasattr(stage, "k") else stage  # type: ignore[type-var]
        run = whole.rank(collection, candidates)
    else:
        asked = collection.qrels.filter(pl.col("query_id").is_in(names.implode()))
        deep = replace(stage, k=max(stage.k or DEPTH, DEPTH)) if hasattr(stage, "k") else stage  # type: ignore[type-var]
        run = deep.rank(Collection(collection.docs, collection.queries, asked, collection.spec))
    if not run.scored:
        raise UserError(f"causal reads scores, and {stage!r} gives only an order")
    number = np.append(codes(pl.Series(run.queries, dtype=pl.String), names), -1)
    found = pl.DataFrame(
        {
            "query": number[run.entry_queries],
            "row": collection_rows(run, collection)[run.docs],
            "score": run.scores,
        }
    )
    columns = [
        pairs.select("query", row=side).join(
            found, on=["query", "row"], how="left", maintain_order="left"
        )["score"]
        for side in "ab"
    ]
    return np.column_stack(
        [column.cast(pl.Float64).fill_null(np.nan).to_numpy() for column in columns]
    )
