"""Causal diagnosis and correction (Wang et al., ICLR 2025).

The effect of perplexity on scores is estimated on twins, and subtracted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.run import Run, codes, collection_rows
from ranktilt.errors import UserError
from ranktilt.explaining.perplexity import NGRAM, PerplexityProbe
from ranktilt.mitigation.base import (
    KEYS,
    Correction,
    Fit,
    FittedCorrection,
    Ints,
    Lists,
    Scores,
    scale_of,
)
from ranktilt.mitigation.factor_instrument import Instrument, factor_instrument
from ranktilt.mitigation.method import FittedMethod, FittingQueries, Method
from ranktilt.mitigation.remedy import Rule
from ranktilt.rankers.base import DEPTH, Pipeline, Ranker
from ranktilt.rankers.fit_provenance import query_keys
from ranktilt.statistics.regression import Ratio, ratio_difference, ratio_of_means

Floats = npt.NDArray[np.float64]

PAIRS = 128
"""Default number of pairs of twins to estimate on."""
LEAST_F = 10.0
"""First-stage F below which an instrument is weak (Staiger & Stock, Econometrica 65(3), 1997)."""
_FEWEST = 3
"""Fewest pairs of twins to estimate on."""


class EstimationPair(NamedTuple):
    """A query, a relevant document, and the twin of this document."""

    query: str
    """Id of the query."""
    reference: str
    """Id of the reference's document."""
    twin: str
    """Id of its twin."""


@dataclass(frozen=True, kw_only=True)
class SourceRatio:
    """Coefficient with the source as instrument, to compare with a factor's."""

    coefficient: float
    """The coefficient; see `CausalFit.coefficient`."""
    low: float
    """Lower end of its 95 % interval."""
    high: float
    """Upper end of its 95 % interval."""
    f: float
    """First-stage F."""
    pairs: int
    """Number of pairs."""
    difference: float
    """Difference from the factor's coefficient; NaN if the source is a weak instrument.

    0 if the source moves scores only through perplexity.
    """
    difference_low: float
    """Lower end of its 95 % interval: delta method, clustered by query and origin."""
    difference_high: float
    """Upper end of the same interval."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CausalFit(
    Fit,
    format="ranktilt-causal-fit",
    version=1,
    noun="a fit of the causal correction",
    command="ranktilt mitigate",
):
    """How much a score rises with perplexity, by two-stage regression.

    The instrument is the source, or a factor.
    """

    coefficient: float
    """β̂₂: change of a score with one more nat of log perplexity, in the unit of the scores."""
    low: float
    """Lower end of its 95 % interval; NaN, like `high`, if the interval has no end."""
    high: float
    """Upper end of its 95 % interval."""
    f: float
    """First-stage F: how surely the instrument moves perplexity."""
    score_gap: float
    """Mean score of the twins minus the reference's, or of high versions minus low ones."""
    perplexity_gap: float
    """Mean log perplexity of the same documents, one side minus the other, in nats."""
    pairs: tuple[EstimationPair, ...]
    """Pairs that it was estimated on."""
    by_source: SourceRatio | None = None
    """Ratio by the source, where a factor is the instrument; None without pairs of sources."""


@dataclass(frozen=True)
class Causal(FittedCorrection):
    """Subtract λ · β̂₂ · log perplexity from each candidate's score; reads texts, and no group.

    `fit` names what `fit_causal` found on other queries, `strength` is λ: 0 changes nothing, and 1
    takes away all that twins' scores differ by on average. A document without a word has the mean
    perplexity of the other candidates. The candidates' scores must be those of the ranker that was
    fitted.
    """

    name: ClassVar[str] = "causal"
    fit_kind: ClassVar[type[Fit]] = CausalFit

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by != "source":
            raise UserError(f"causal is fitted on sources and on no other column, got by={self.by}")

    def rule(self) -> Rule:
        fitted = cast(CausalFit, self.fitted)
        return Rule(
            method=self.name,
            reads="scores",
            scale=str(fitted.spec["ranker"]),
            parameters={
                "strength": self.strength,
                "coefficient": fitted.coefficient,
                "unit": str(fitted.spec["unit"]),
            },
        )

    def rescored(self, lists: Lists) -> Scores:
        self.require_scale(lists.run)
        if not self.strength:
            return lists.run.scores
        if outside := int((lists.rows < 0).sum()):
            raise UserError(
                f"causal reads texts, and {outside:,} of {len(lists.rows):,} candidates are not in "
                "the collection"
            )
        fitted = cast(CausalFit, self.fitted)
        perplexity = perplexities(lists.collection, lists.rows, fitted.spec)
        known = perplexity[~np.isnan(perplexity)]
        filled = np.where(np.isnan(perplexity), known.mean() if len(known) else 0.0, perplexity)
        corrected: Scores = lists.run.scores - self.strength * fitted.coefficient * filled
        return corrected


def perplexities(collection: Collection, rows: Ints, spec: Mapping[str, Any]) -> Floats:
    """Return log perplexity as a fit's spec says; NaN without a word.

    Language models read these documents only.
    """
    probe, reference = PerplexityProbe(**spec["perplexity"]), spec["reference"]
    if probe.lm != NGRAM:
        distinct, position = np.unique(rows, return_inverse=True)
        part = Collection(
            collection.docs[distinct], collection.queries.clear(), collection.qrels.clear()
        )
        return probe.measure(part, reference, None)[position]
    key = ("perplexity", reference, json.dumps(probe.options))
    return collection.memo(key, lambda: probe.measure(collection, reference, None))[rows]


@dataclass(frozen=True, kw_only=True, eq=False)
class CausalOptions:
    """Options of how the coefficient is estimated."""

    probe: PerplexityProbe = field(default_factory=PerplexityProbe)
    """Measure of perplexity, of texts alone."""
    pairs: int = PAIRS
    """Most pairs that are drawn."""
    seed: int = 0
    """Seed of the draws."""
    force: bool = False
    """Continue where the first-stage F is below 10."""
    instrument: Instrument | None = None
    """Factor that versions differ in, in place of the source (`factor_instrument`)."""


def fit_causal(
    collection: Collection,
    ranker: Ranker,
    *,
    source: str,
    reference: str = "human",
    options: CausalOptions | None = None,
) -> CausalFit:
    """Estimate how a ranker's scores depend on perplexity, on queries that nothing is tested on.

    Pairs are drawn in rounds: every query gives its first pair before any gives its second. With
    one instrument of two values the coefficient is the Wald ratio: the mean gap of the twins'
    scores over the mean gap of their perplexities. Its interval is Fieller's, clustered by query
    and origin. In a pipeline, the last stage is fitted. A ranker that only searches may retrieve
    one side of a pair alone; such pairs are left out.

    With an `instrument` the pairs are versions that differ in a factor alone. The ratio by the
    source, over pairs that are drawn in the same way, is then compared with it
    (`CausalFit.by_source`).
    """
    options = options or CausalOptions()
    probe, instrument = options.probe, options.instrument
    if probe.context:
        raise UserError("causal needs the perplexity of texts alone; leave out context")
    last = ranker.stages[-1] if isinstance(ranker, Pipeline) else ranker
    estimated = {
        "reference": reference,
        "source": source,
        "perplexity": probe.options,
        "unit": probe.unit,
    }
    if instrument is None:
        candidates = [_twins(collection, reference, source)]
        needed, groups = f"document of {reference!r} with a twin", f"{source} and {reference}"
    else:
        candidates = [instrument.pairs]
        if instrument.by_source is not None:
            candidates.append(instrument.by_source)
        needed = f"version with another {instrument.name}"
        groups = f"high and low {instrument.name}"
        estimated["instrument"] = instrument.name
    frames = [_drawn(collection, frame, options.pairs, options.seed) for frame in candidates]
    if not frames[0].height:
        raise UserError(f"causal learns from judged queries; none has a relevant {needed}")
    main_gaps, *source_gaps = _gaps(collection, last, frames, estimated)
    pair_count = main_gaps.used.height
    if pair_count < _FEWEST:
        raise UserError(
            f"causal needs at least {_FEWEST} pairs with both sides scored by {last!r}, got "
            f"{pair_count} of {frames[0].height}"
        )
    ratio, perplexity_gap = main_gaps.ratio, float(main_gaps.perplexity.mean())
    _check_strength(ratio, perplexity_gap, groups, force=options.force)
    used = pl.concat([gaps.used for gaps in (main_gaps, *source_gaps)])
    distinct_queries = tuple(used["query_id"].unique(maintain_order=True))
    spec = {
        "ranker": scale_of(repr(last)),
        **estimated,
        "seed": options.seed,
        "missing": frames[0].height - pair_count,
        "ranktilt": __version__,
        "collection": collection.spec.get("path"),
        KEYS: query_keys(collection, distinct_queries),
    }
    enough = [gaps for gaps in source_gaps if gaps.used.height >= _FEWEST]
    return CausalFit(
        spec=spec,
        queries=distinct_queries,
        coefficient=ratio.value,
        low=ratio.low,
        high=ratio.high,
        f=ratio.f,
        score_gap=float(main_gaps.score.mean()),
        perplexity_gap=perplexity_gap,
        pairs=_estimation_pairs(collection, main_gaps.used),
        by_source=_by_source(main_gaps, enough[0]) if enough else None,
    )


def _check_strength(ratio: Ratio, perplexity_gap: float, groups: str, *, force: bool) -> None:
    """Refuse an instrument that hardly moves perplexity."""
    if ratio.f >= LEAST_F or (force and perplexity_gap):
        return
    raise UserError(
        f"causal: {groups} differ too little in perplexity (first-stage F "
        f"{np.nan_to_num(ratio.f):.1f}, expected at least {LEAST_F:g}), so its effect on scores "
        f"cannot be estimated{'; set force to go on anyway' if perplexity_gap else ''}"
    )


def _estimation_pairs(collection: Collection, used: pl.DataFrame) -> tuple[EstimationPair, ...]:
    """Return the pairs that were used, with the ids of their documents."""
    references, twins = (collection.ids.gather(used[side]) for side in "ab")
    rows = zip(used["query_id"], references, twins, strict=True)
    return tuple(EstimationPair(*row) for row in rows)


class _Gaps(NamedTuple):
    """Pairs with scores of both sides, and their gaps: second side minus first side."""

    used: pl.DataFrame
    """Pairs, one a row."""
    score: Floats
    """Gap of scores."""
    perplexity: Floats
    """Gap of log perplexities."""

    @property
    def ratio(self) -> Ratio:
        """Return the ratio of both mean gaps."""
        return ratio_of_means(self.score, self.perplexity, *_clusters(self.used))


def _clusters(used: pl.DataFrame) -> tuple[Ints, Ints]:
    """Return the numbers of each pair's query and origin."""
    query, origin = (
        used[name].rank("dense").to_numpy().astype(np.int64) for name in ("query_id", "origin")
    )
    return query, origin


def _gaps(
    collection: Collection,
    stage: Ranker,
    frames: list[pl.DataFrame],
    options: Mapping[str, Any],
) -> list[_Gaps]:
    """Measure the pairs of every frame, all ranked together."""
    numbered = [frame.with_columns(part=pl.lit(number)) for number, frame in enumerate(frames)]
    drawn = pl.concat(numbered)
    sides = drawn.select("a", "b").to_numpy()
    scores = np.diff(_scores(collection, stage, drawn["query_id"], sides))[:, 0]
    perplexity = np.diff(perplexities(collection, sides.ravel(), options).reshape(-1, 2))[:, 0]
    measured = ~np.isnan(scores + perplexity)
    parts = [measured & (drawn["part"] == number).to_numpy() for number in range(len(frames))]
    return [_Gaps(drawn.filter(pl.Series(part)), scores[part], perplexity[part]) for part in parts]


def _by_source(by_factor: _Gaps, by_source: _Gaps) -> SourceRatio:
    """Return the ratio by the source, and its difference from the factor's.

    The difference is NaN where the source hardly moves perplexity.
    """
    ratio = by_source.ratio
    difference, low, high = np.nan, np.nan, np.nan
    if ratio.f >= LEAST_F:
        clusters = _clusters(pl.concat([by_source.used, by_factor.used]))
        difference, low, high = ratio_difference(
            (by_source.score, by_source.perplexity),
            (by_factor.score, by_factor.perplexity),
            *clusters,
        )
    return SourceRatio(
        coefficient=ratio.value,
        low=ratio.low,
        high=ratio.high,
        f=ratio.f,
        pairs=by_source.used.height,
        difference=difference,
        difference_low=low,
        difference_high=high,
    )


def _twins(collection: Collection, reference: str, source: str) -> pl.DataFrame:
    """Return the twins of two sources; refuse sources without any."""
    twins = collection.pairs(reference, source)
    if not twins.height:
        raise UserError(
            f"causal needs twins: no document of {source!r} shares its origin with one of "
            f"{reference!r}"
        )
    return twins


def _drawn(collection: Collection, pairs: pl.DataFrame, most: int, seed: int) -> pl.DataFrame:
    """Draw pairs whose first side is relevant: query, origin and the rows ``a`` and ``b``."""
    relevant = collection.qrels.filter(pl.col("grade") > 0).join(
        collection.queries_with_judgments.select("id"),
        left_on="query_id",
        right_on="id",
        how="semi",
    )
    paired = relevant.join(pairs, left_on="doc_id", right_on="a", how="inner").sort(
        "query_id", "doc_id", "b"
    )
    shuffled = paired[np.random.default_rng(seed).permutation(paired.height)]
    # One pair of each query before the second of any.
    turns = shuffled.with_columns(turn=pl.int_range(pl.len()).over("query_id"))
    drawn = turns.sort("turn", maintain_order=True).head(most)
    return drawn.select("query_id", "origin").with_columns(
        a=pl.Series(codes(drawn["doc_id"], collection.ids)),
        b=pl.Series(codes(drawn["b"], collection.ids)),
    )


def _scores(collection: Collection, stage: Ranker, queries: pl.Series, sides: Ints) -> Floats:
    """Score both sides of each pair; NaN for a document that a search did not retrieve."""
    if isinstance(stage, Correction):
        raise UserError(
            f"causal is fitted on a ranker's own scores, and {stage!r} has changed them; omit it"
        )
    names = queries.unique(maintain_order=True)
    pairs = pl.DataFrame({"query": codes(queries, names), "a": sides[:, 0], "b": sides[:, 1]})
    run = (
        _rescore(collection, stage, names, pairs)
        if stage.reranks
        else _search(collection, stage, names)
    )
    if not run.scored:
        raise UserError(f"causal reads scores, and {stage!r} gives only an order")
    number = np.append(codes(pl.Series(run.queries, dtype=pl.String), names), -1)
    scored = pl.DataFrame(
        {
            "query": number[run.entry_queries],
            "row": collection_rows(run, collection)[run.docs],
            "score": run.scores,
        }
    )
    columns = []
    for side in "ab":
        keys = pairs.select("query", row=side)
        joined = keys.join(scored, on=["query", "row"], how="left", maintain_order="left")
        columns.append(joined["score"].cast(pl.Float64).fill_null(np.nan).to_numpy())
    return np.column_stack(columns)


def _rescore(collection: Collection, stage: Ranker, names: pl.Series, pairs: pl.DataFrame) -> Run:
    """Score the documents of all pairs, as candidates of their queries."""
    entries = (
        pairs.unpivot(index="query", value_name="row")
        .select("query", "row")
        .unique()
        .sort("query", "row")
    )
    ends = np.cumsum([0, *np.bincount(entries["query"].to_numpy(), minlength=len(names))])
    candidates = Run(
        queries=tuple(names),
        offsets=ends,
        docs=entries["row"].to_numpy(),
        scores=np.zeros(entries.height),
        ids=collection.ids,
    )
    uncut = replace(stage, k=None) if hasattr(stage, "k") else stage  # type: ignore[type-var]
    return uncut.rank(collection, candidates)


def _search(collection: Collection, stage: Ranker, names: pl.Series) -> Run:
    """Search for the queries of all pairs, deeply."""
    judged = collection.qrels.filter(pl.col("query_id").is_in(names.implode()))
    if hasattr(stage, "k"):
        depth = max(stage.k or DEPTH, DEPTH)
        stage = replace(stage, k=depth)  # type: ignore[type-var]
    return stage.rank(collection.with_judgments(collection.queries, judged, collection.spec))


@dataclass(frozen=True, kw_only=True)
class CausalMethod(Method):
    """Take away the part of the scores that perplexity explains."""

    name: ClassVar[str] = "causal"
    learns_from_twins: ClassVar[bool] = True

    lm: str = NGRAM
    """Language model of the perplexity."""
    instrument: str | None = None
    """Factor of the collection to fit on, in place of the source.

    Pairs of versions that differ only in it show what perplexity does to scores.
    """
    force: bool = False
    """Continue with a weak instrument (first-stage F below 10), or a factor that failed its
    check."""

    def fit(self, queries: FittingQueries) -> FittedMethod:
        ranker, instrument = queries.need_ranker(self.name), None
        reference, source = queries.pair
        if self.instrument is None:
            queries.need_groups(queries.pair)
        else:
            instrument = factor_instrument(
                queries.collection,
                self.instrument,
                reference=reference,
                source=source,
                force=self.force,
            )
        fit = fit_causal(
            queries.collection,
            ranker,
            reference=reference,
            source=source,
            options=CausalOptions(
                probe=PerplexityProbe(self.lm),
                seed=queries.seed,
                force=self.force,
                instrument=instrument,
            ),
        )
        file = queries.file("causal.json")
        return FittedMethod(full=Causal(fit=file, by=queries.by, learned=fit), fit=fit, file=file)
