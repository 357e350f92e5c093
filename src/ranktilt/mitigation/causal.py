"""Causal diagnosis and correction (Wang et al., ICLR 2025).

Texts of language models have lower perplexity than human texts: a model finds them easier to
predict. A ranker may prefer such texts, whatever they say. *Twins* are versions of one document by
two sources, so they say the same. The gap of twins' scores, compared with the gap of their
perplexities, shows how much the ranker's scores depend on perplexity. The correction subtracts that
part from the scores.

In the words of statistics this is a regression in two stages. An *instrument* is something that
changes perplexity and that changes scores only through perplexity: here the source, or a factor in
which versions of a document were made to differ. The first stage measures how the instrument moves
perplexity, and the second how that moves scores. Perplexity is measured by its natural logarithm;
the unit, *nat*, is a factor of e.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run, codes, collection_rows
from ranktilt.errors import UserError
from ranktilt.explaining.perplexity import NGRAM, PerplexityProbe
from ranktilt.mitigation.base import (
    QUERY_KEYS,
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
from ranktilt.statistics.regression.least_squares import (
    Ratio,
    RatioDifference,
    ratio_difference,
    ratio_of_means,
)

Floats = npt.NDArray[np.float64]

PAIRS = 128
"""Default number of pairs of twins to estimate on: the M of Wang et al."""
LEAST_F = 10.0
"""First-stage F below which an instrument is weak (Staiger & Stock, Econometrica 65(3), 1997).

F is the squared t of the instrument's effect on perplexity. With a weak instrument, the estimate
divides by a gap that is hardly different from 0, and is biased.
"""
_FEWEST = 3
"""Minimum number of pairs to estimate on."""


# A tuple, because a fit's file has its pairs as short lists without names.
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
    """Coefficient with the source as instrument, to compare with that of a factor.

    If the source moves scores only through perplexity, both coefficients are the same.
    """

    coefficient: float
    """Change of a score if log perplexity rises by 1 nat, with the source as instrument."""
    low: float
    """Lower end of the 95 % interval of the coefficient."""
    high: float
    """Upper end of the 95 % interval of the coefficient."""
    f: float
    """First-stage F."""
    pairs: int
    """Number of pairs."""
    difference: float
    """This coefficient minus the factor's; NaN if the source is a weak instrument."""
    difference_low: float
    """Lower end of the 95 % interval of the difference: delta method, clustered by query and
    origin."""
    difference_high: float
    """Upper end of the 95 % interval of the difference."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CausalFit(
    Fit,
    format="ranktilt-causal-fit",
    version=1,
    noun="a fit of the causal correction",
    command="ranktilt mitigate",
):
    """How much a score rises with perplexity, by two-stage regression.

    The instrument is the source, or a factor. A factor has a low and a high level, and its pairs
    are versions of one document on both levels.
    """

    coefficient: float
    """β̂₂ of the paper: change of a score if log perplexity rises by 1 nat, in the scores' unit."""
    low: float
    """Lower end of the 95 % interval; NaN, like `high`, if the interval has no end."""
    high: float
    """Upper end of the 95 % interval."""
    f: float
    """First-stage F, the evidence that the instrument moves perplexity."""
    score_gap: float
    """Mean gap of scores: twins minus reference documents, or high versions minus low ones."""
    perplexity_gap: float
    """Mean gap of log perplexity of the same pairs, in nats."""
    pairs: tuple[EstimationPair, ...]
    """Pairs that the coefficient was estimated on."""
    by_source: SourceRatio | None = None
    """The estimate with the source as instrument, if a factor is the instrument here.

    None if the source is the instrument, or if no pairs differ in the source alone.
    """


@dataclass(frozen=True)
class Causal(FittedCorrection):
    """Subtract what perplexity adds to each candidate's score.

    The new score is ``score − λ · β̂₂ · log perplexity`` (Wang et al., ICLR 2025). This needs the
    candidates' texts, but not their groups. `fit` is the file of β̂₂, which `fit_causal` estimated
    on other queries. `strength` is λ: 0 changes nothing, and 1 removes the whole mean gap between
    the scores of twins. A document without a word has no perplexity, and gets the mean of the other
    candidates. The candidates' scores must be those of the ranker that was fitted.
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

    def rescore(self, lists: Lists) -> Scores:
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
        is_unknown = np.isnan(perplexity)
        mean = 0.0 if is_unknown.all() else perplexity[~is_unknown].mean()
        perplexity = np.where(is_unknown, mean, perplexity)
        corrected: Scores = lists.run.scores - self.strength * fitted.coefficient * perplexity
        return corrected


def perplexities(collection: Collection, rows: Ints, spec: Mapping[str, Any]) -> Floats:
    """Return the log perplexity of documents, with the model that a fit's spec names.

    `rows` are rows of the collection, and may repeat. NaN for a document without a word.
    """
    probe, reference = PerplexityProbe(**spec["perplexity"]), spec["reference"]
    if probe.lm != NGRAM:
        # A neural model is slow: it reads these documents only, and each of them once. The n-gram
        # model below is learned from the whole collection, and measures all of it at once.
        distinct_rows, positions = np.unique(rows, return_inverse=True)
        subset = Collection(
            collection.docs[distinct_rows], collection.queries.clear(), collection.qrels.clear()
        )
        return probe.measure(subset, reference, None)[positions]
    key = ("perplexity", reference, json.dumps(probe.options))
    return collection.memo(key, lambda: probe.measure(collection, reference, None))[rows]


@dataclass(frozen=True, kw_only=True, eq=False)
class CausalOptions:
    """Options of how the coefficient is estimated."""

    probe: PerplexityProbe = field(default_factory=PerplexityProbe)
    """Probe that measures perplexity; its `context` must be empty."""
    pairs: int = PAIRS
    """Maximum number of pairs to draw."""
    seed: int = 0
    """Random seed of the draw."""
    force: bool = False
    """Continue with a weak instrument, whose first-stage F is below `LEAST_F`."""
    instrument: Instrument | None = None
    """Factor that is the instrument, with its pairs; None for the source."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _PossiblePairs:
    """All pairs of documents that the coefficient may be estimated on, before any are drawn."""

    main: pl.DataFrame
    """Pairs that differ in the instrument: ``origin`` and the document ids ``a`` and ``b``."""
    by_source: pl.DataFrame | None
    """Pairs that differ in the source, if a factor is the instrument and there are any."""
    needed: str
    """What a query needs to be used, as a noun phrase for an error."""
    groups: str
    """The two groups of documents, as a phrase for an error."""

    @classmethod
    def from_sources(cls, collection: Collection, reference: str, source: str) -> Self:
        """Pair the twins of two sources."""
        return cls(
            main=_twins(collection, reference, source),
            by_source=None,
            needed=f"document of {reference!r} with a twin",
            groups=f"{source} and {reference}",
        )

    @classmethod
    def from_instrument(cls, instrument: Instrument) -> Self:
        """Take the pairs of versions that differ in a factor."""
        return cls(
            main=instrument.pairs,
            by_source=instrument.by_source,
            needed=f"version with another {instrument.name}",
            groups=f"high and low {instrument.name}",
        )

    @property
    def frames(self) -> list[pl.DataFrame]:
        """The main pairs, and the pairs by source if there are any."""
        return [self.main] if self.by_source is None else [self.main, self.by_source]


def fit_causal(
    collection: Collection,
    ranker: Ranker,
    *,
    source: str,
    reference: str = "human",
    options: CausalOptions | None = None,
) -> CausalFit:
    """Estimate how a ranker's scores depend on perplexity.

    The instrument has two values, so the two stages of the regression come down to the Wald ratio:

        β̂₂ = mean gap of the pairs' scores ÷ mean gap of their log perplexities

    Its interval is that of Fieller for a ratio of two means. Pairs that share a query or an origin
    are not independent, so the variance is clustered by both (`ratio_of_means`). The origin of a
    document is the document from which all its versions were made.

    Parameters
    ----------
    collection : Collection
        Documents and judged queries; nothing may be tested on these queries.
    ranker : Ranker
        The ranker. In a pipeline, the last stage is fitted. A ranker that only searches may
        retrieve one document of a pair without the other; such pairs are left out.
    source : str
        The source to compare with the reference.
    reference : str, optional
        The source whose relevant documents are paired with their twins.
    options : CausalOptions, optional
        Number of pairs, measure of perplexity, instrument. If the instrument is a factor, the ratio
        with the source as instrument is estimated too, and compared (`CausalFit.by_source`).

    Raises
    ------
    UserError
        If there are too few pairs, or if the instrument is weak and `CausalOptions.force` is unset.
    """
    options = options or CausalOptions()
    probe, instrument = options.probe, options.instrument
    if probe.context:
        raise UserError("causal needs the perplexity of texts alone; leave out context")
    last = ranker.stages[-1] if isinstance(ranker, Pipeline) else ranker
    estimate_spec = {
        "reference": reference,
        "source": source,
        "perplexity": probe.options,
        "unit": probe.unit,
    }
    if instrument is None:
        possible = _PossiblePairs.from_sources(collection, reference, source)
    else:
        possible = _PossiblePairs.from_instrument(instrument)
        estimate_spec["instrument"] = instrument.name
    frames = [
        _draw_pairs(collection, frame, options.pairs, options.seed) for frame in possible.frames
    ]
    if not frames[0].height:
        raise UserError(f"causal learns from judged queries; none has a relevant {possible.needed}")
    main_gaps, *source_gaps = _gaps(collection, last, frames, estimate_spec)
    pair_count = main_gaps.used.height
    if pair_count < _FEWEST:
        raise UserError(
            f"causal needs at least {_FEWEST} pairs with both sides scored by {last!r}, got "
            f"{pair_count} of {frames[0].height}"
        )
    ratio, perplexity_gap = main_gaps.ratio, float(main_gaps.perplexity.mean())
    _check_strength(ratio, perplexity_gap, possible.groups, force=options.force)
    used = pl.concat([gaps.used for gaps in (main_gaps, *source_gaps)])
    distinct_queries = tuple(used["query_id"].unique(maintain_order=True))
    spec = {
        "ranker": scale_of(repr(last)),
        **estimate_spec,
        "seed": options.seed,
        "missing": frames[0].height - pair_count,
        "ranktilt": __version__,
        "collection": collection.spec.get("path"),
        QUERY_KEYS: query_keys(collection, distinct_queries),
    }
    # At most one, and only if a factor is the instrument.
    enough_source_gaps = [gaps for gaps in source_gaps if gaps.used.height >= _FEWEST]
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
        by_source=_by_source(main_gaps, enough_source_gaps[0]) if enough_source_gaps else None,
    )


def _check_strength(ratio: Ratio, perplexity_gap: float, groups: str, *, force: bool) -> None:
    """Refuse a weak instrument, unless `force`; with a gap of 0 nothing can be estimated."""
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


@dataclass(frozen=True, kw_only=True, eq=False)
class _Gaps:
    """Pairs of which both documents have a score, and their gaps: document b minus document a."""

    used: pl.DataFrame
    """The pairs, one in each row: query, origin, and the rows ``a`` and ``b`` of the documents."""
    score: Floats
    """Gap of scores of each pair."""
    perplexity: Floats
    """Gap of log perplexities of each pair."""

    @property
    def ratio(self) -> Ratio:
        """The mean gap of scores over the mean gap of perplexities: the Wald ratio."""
        return ratio_of_means(self.score, self.perplexity, *_clusters(self.used))


def _clusters(used: pl.DataFrame) -> tuple[Ints, Ints]:
    """Return the number of each pair's query, and the number of each pair's origin."""
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
    """Measure the gaps of each frame's pairs.

    The pairs of all frames are ranked together, so that a slow ranker starts only once. A pair is
    left out if one of its documents has no score or no perplexity. `options` name the model of
    perplexity, as a fit's spec does.
    """
    numbered = [frame.with_columns(frame=pl.lit(number)) for number, frame in enumerate(frames)]
    pairs = pl.concat(numbered)
    rows = pairs.select("a", "b").to_numpy()
    score_gaps = np.diff(_scores(collection, stage, pairs["query_id"], rows))[:, 0]
    perplexity = perplexities(collection, rows.ravel(), options).reshape(-1, 2)
    perplexity_gaps = np.diff(perplexity)[:, 0]
    is_measured = ~np.isnan(score_gaps + perplexity_gaps)
    gaps = []
    for number in range(len(frames)):
        is_used = is_measured & (pairs["frame"] == number).to_numpy()
        gaps.append(
            _Gaps(
                used=pairs.filter(pl.Series(is_used)),
                score=score_gaps[is_used],
                perplexity=perplexity_gaps[is_used],
            )
        )
    return gaps


def _by_source(by_factor: _Gaps, by_source: _Gaps) -> SourceRatio:
    """Return the ratio with the source as instrument, and its difference from the factor's.

    The difference is NaN if the source is a weak instrument.
    """
    ratio = by_source.ratio
    difference = RatioDifference(value=np.nan, low=np.nan, high=np.nan)
    if ratio.f >= LEAST_F:
        clusters = _clusters(pl.concat([by_source.used, by_factor.used]))
        difference = ratio_difference(
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
        difference=difference.value,
        difference_low=difference.low,
        difference_high=difference.high,
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


def _draw_pairs(collection: Collection, pairs: pl.DataFrame, most: int, seed: int) -> pl.DataFrame:
    """Draw at most `most` pairs whose document ``a`` is relevant to a query.

    Pairs are drawn in rounds: a first pair of each query, then a second pair of each, and so on. So
    a query with many relevant documents does not dominate. Returns the query, the origin, and the
    rows of the documents ``a`` and ``b`` in the collection.
    """
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
    rounds = shuffled.with_columns(round=pl.int_range(pl.len()).over("query_id"))
    drawn = rounds.sort("round", maintain_order=True).head(most)
    return drawn.select("query_id", "origin").with_columns(
        a=pl.Series(codes(drawn["doc_id"], collection.ids)),
        b=pl.Series(codes(drawn["b"], collection.ids)),
    )


def _scores(collection: Collection, stage: Ranker, queries: pl.Series, rows: Ints) -> Floats:
    """Score both documents of each pair for the pair's query.

    `queries` has the query of each pair, and `rows` the rows of its documents, shape (n_pairs, 2).
    The scores have the same shape; NaN for a document that a search did not retrieve.
    """
    if isinstance(stage, Correction):
        raise UserError(
            f"causal is fitted on a ranker's own scores, and {stage!r} has changed them; omit it"
        )
    query_ids = queries.unique(maintain_order=True)
    pairs = pl.DataFrame({"query": codes(queries, query_ids), "a": rows[:, 0], "b": rows[:, 1]})
    run = (
        _rescore(collection, stage, query_ids, pairs)
        if stage.reranks
        else _search(collection, stage, query_ids)
    )
    if not run.scored:
        raise UserError(f"causal reads scores, and {stage!r} gives only an order")
    # The query of each list of the run, as an index in `query_ids`.
    query_of_list = np.append(codes(pl.Series(run.queries, dtype=pl.String), query_ids), -1)
    scored = pl.DataFrame(
        {
            "query": query_of_list[run.entry_queries],
            "row": collection_rows(run, collection)[run.docs],
            "score": run.scores,
        }
    )
    columns = []
    for side in "ab":
        documents = pairs.select("query", row=side)
        with_scores = documents.join(scored, on=["query", "row"], how="left", maintain_order="left")
        columns.append(with_scores["score"].cast(pl.Float64).fill_null(np.nan).to_numpy())
    return np.column_stack(columns)


def _rescore(
    collection: Collection, stage: Ranker, query_ids: pl.Series, pairs: pl.DataFrame
) -> Run:
    """Return the run of a re-ranker whose candidates are the documents of all pairs."""
    entries = (
        pairs.unpivot(index="query", value_name="row")
        .select("query", "row")
        .unique()
        .sort("query", "row")
    )
    lengths = np.bincount(entries["query"].to_numpy(), minlength=len(query_ids))
    candidates = Run(
        queries=tuple(query_ids),
        offsets=np.cumsum([0, *lengths]),
        docs=entries["row"].to_numpy(),
        scores=np.zeros(entries.height),
        ids=collection.ids,
    )
    # All candidates must be scored, even if there are more than the stage's depth.
    uncut = replace(stage, k=None) if hasattr(stage, "k") else stage  # type: ignore[type-var]
    return uncut.rank(collection, candidates)


def _search(collection: Collection, stage: Ranker, query_ids: pl.Series) -> Run:
    """Search for the queries of all pairs, at least `DEPTH` documents deep."""
    # A ranker searches for the judged queries of a collection.
    judged = collection.qrels.filter(pl.col("query_id").is_in(query_ids.implode()))
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
    """Language model that measures perplexity."""
    instrument: str | None = None
    """Factor that is the instrument; None for the source.

    The collection to fit on must have versions of documents that differ only in this factor.
    """
    force: bool = False
    """Continue with a weak instrument (first-stage F below 10), or with a factor whose manipulation
    check failed."""

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
