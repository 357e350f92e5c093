"""The answer to each estimand's question in plain words, and what it rests on.

An estimand is a number that answers a question about two groups of documents, such as which one
ranks higher; an effect is its value for one run. It is neutral where it favours neither group.
Twins are versions of one text, one in each group; some estimands compare only these. Others are
about all groups at once, and are compared with the band of values that random rankings give.

Each estimand has two functions here, which are registered by its class: one says the answer, and
one its basis, that is, what was counted for it.

An estimand without registered words gets its title as the answer, and its number of queries as the
basis. A package that brings an estimand may register its words:
``answer_words.register(MyEstimand)`` and ``basis_words.register(MyEstimand)``.

`Effect.details` holds means and counts behind the answer, by names that the estimand chooses. Some
are missing if nothing could be computed: no judgments, no scores, no pair.
"""

from __future__ import annotations

import math
from functools import singledispatch

from ranktilt.auditing.effects import Effect
from ranktilt.errors import counted
from ranktilt.measures.base import Estimand
from ranktilt.measures.contrast import RelativeDelta, relative_delta
from ranktilt.measures.exposure.awrf import FLOOR, AttentionWeightedRankFairness
from ranktilt.measures.exposure.base import AttentionEstimand
from ranktilt.measures.exposure.expected_exposure import ExpectedExposureLoss
from ranktilt.measures.exposure.ndkl import NormalizedDiscountedDivergence
from ranktilt.measures.exposure.property_lift import PropertyLiftOfFirstRanks
from ranktilt.measures.exposure_ratio import ExposureRatioOfGroups
from ranktilt.measures.grade_gap import GradeGapOfTwins
from ranktilt.measures.ndsr import PageShare
from ranktilt.measures.preference import PreferenceOfPairs
from ranktilt.measures.printing import rounded
from ranktilt.measures.share import ShareOfFirstRanks
from ranktilt.measures.twins.head_to_head import HeadToHeadTwins
from ranktilt.measures.twins.rank_gap import PairRankGap
from ranktilt.measures.twins.score_gap import PairScoreGap
from ranktilt.reporting.sentences.grammar import first_ranks_words, share_of_all, singular_or_plural

_HALF_A_POINT = 0.5
"""Most points by which Relative Δ, computed from the printed means, may differ from its value."""
_DIGITS = range(1, 4)
"""Decimals that a printed mean may have."""
_VISIBLE = 0.0005
"""Smallest share that is told, 0.05 %; a smaller one would be printed as 0."""


@singledispatch
def answer_words(estimand: Estimand, effect: Effect, noun: str) -> str:
    """Say an answer in plain words, from the side of `effect.a`.

    `noun` is what groups are of: ``text``, which takes singular verbs, or ``documents``.
    """
    return estimand.title


@singledispatch
def basis_words(estimand: Estimand, effect: Effect) -> str:
    """Say what an answer rests on: queries, pairs, what was counted."""
    return _queries(effect)


def _queries(effect: Effect) -> str:
    """Write the number of queries."""
    return counted(effect.queries, "query", "queries")


def _pairs(effect: Effect) -> str:
    """Write the number of pairs."""
    return counted(int(effect.details["pairs"]), "pair", "pairs")


def _cutoff(estimand: Estimand) -> int:
    """Return the cutoff of an estimand that cannot do without one (`Estimand.needs_cutoff`)."""
    return estimand.cutoff or 1


@answer_words.register
def _relative_delta(estimand: RelativeDelta, effect: Effect, noun: str) -> str:
    """Give both means of the measure, from which Relative Δ follows."""
    means = [100 * effect.mean_a, 100 * effect.mean_b]
    digits = _digits_that_tell(means, effect.value)
    mean_a, mean_b = (f"{rounded(mean, digits)} %" for mean in means)
    # The means in the table differ from these: there, each is over all queries of its group.
    over = f" over the {_queries(effect)} with both" if effect.excluded else ""
    return (
        f"{estimand.measure} is {mean_a} for {effect.a} {noun} and {mean_b} for {effect.b} "
        f"{noun}{over}"
    )


def _digits_that_tell(means: list[float], value: float) -> int:
    """Return the fewest decimals of printed means, in %, from which Relative Δ can be computed.

    A reader who computes Relative Δ from the printed means gets `value` then, give or take half a
    point. If no number of decimals is enough, more of them do not help: the fewest are returned.
    """
    for digits in _DIGITS:
        printed = [float(rounded(mean, digits)) for mean in means]
        if abs(float(relative_delta(*printed)) - value) < _HALF_A_POINT:
            return digits
    return _DIGITS[0]


@answer_words.register
def _page(estimand: PageShare, effect: Effect, noun: str) -> str:
    """Say how much more of the first ranks one side fills."""
    first_ranks = first_ranks_words(_cutoff(estimand))
    fills = "fills" if noun == "text" else "fill"
    if effect.value == 0:
        return f"{effect.a} {noun} {fills} as much of the {first_ranks} as {effect.b} {noun}"
    size = estimand.amount(abs(effect.value), sign=False)
    more = "more" if effect.value > 0 else "less"
    return (
        f"{effect.a} {noun} {fills} {size} points {more} of the {first_ranks} than {effect.b} "
        f"{noun}"
    )


@basis_words.register
def _page_basis(estimand: PageShare, effect: Effect) -> str:
    """Give the number of queries, and the neutral value where it is not 0."""
    if abs(effect.neutral) < _VISIBLE:
        return _queries(effect)
    neutral = estimand.amount(effect.neutral)
    return f"{_queries(effect)}; neutral value {neutral}, the median of random labels"


@answer_words.register
def _share(estimand: ShareOfFirstRanks, effect: Effect, noun: str) -> str:
    """Give a group's share of the first ranks, and of the candidates in the list."""
    # `even_a` is the group's share of the list, which an even ranking would give it at every rank.
    first_share = 100 * (effect.details.get("even_a", math.nan) + effect.value)
    # The share of the list is computed from rounded numbers, so that the two printed shares differ
    # by exactly the printed answer. Rounded by itself, it may be off by one in the last digit.
    list_share = float(rounded(first_share)) - float(rounded(100 * effect.value))
    first_ranks = first_ranks_words(_cutoff(estimand))
    if _has_others(effect):  # both shares are of the two groups' documents, not of all results
        are, ones, those = ("is", "text", "that") if noun == "text" else ("are", "ones", "those")
        return (
            f"{rounded(first_share)} % of {effect.a} and {effect.b} {noun} in the {first_ranks} "
            f"{are} {effect.a} {ones}, and {rounded(list_share)} % of {those} among the candidates"
        )
    fills, makes_up = ("fills", "makes up") if noun == "text" else ("fill", "make up")
    return (
        f"{effect.a} {noun} {fills} {rounded(first_share)} % of the {first_ranks} and {makes_up} "
        f"{rounded(list_share)} % of the candidates"
    )


def _has_others(effect: Effect) -> bool:
    """Whether the lists hold documents of a third group, or without a label."""
    return effect.details.get("neither", 0.0) >= _VISIBLE


@basis_words.register
def _share_basis(estimand: ShareOfFirstRanks, effect: Effect) -> str:
    """Say that the answer is a difference of two shares, and give the number of queries."""
    of_both = f" among {effect.a} and {effect.b}" if _has_others(effect) else ""
    return (
        f"share of {effect.a}{of_both} in the {first_ranks_words(_cutoff(estimand))} minus its "
        f"share of the list; {_queries(effect)}"
    )


@answer_words.register
def _exposure_ratio(estimand: ExposureRatioOfGroups, effect: Effect, noun: str) -> str:
    """Say how much attention one group gets, against the other."""
    # "per document, human documents get" would repeat the word.
    gets, subject_noun = ("gets", "text") if noun == "text" else ("get", "ones")
    return (
        f"per document, {effect.a} {subject_noun} {gets} {estimand.amount(effect.value)} times the "
        f"attention of {effect.b} {subject_noun}"
    )


@basis_words.register
def _exposure_ratio_basis(estimand: ExposureRatioOfGroups, effect: Effect) -> str:
    """Say that the answer is a ratio, and give the number of queries and the neutral value."""
    neutral = estimand.amount(effect.neutral)
    return (
        f"{effect.a} / {effect.b}; {_queries(effect)}; neutral value {neutral}, the median of "
        "random labels"
    )


@answer_words.register
def _property_lift(estimand: PropertyLiftOfFirstRanks, effect: Effect, noun: str) -> str:
    """Say whether the first ranks are higher or lower in a property than the list."""
    # Sides are called high-price and low-price; a value above 0 favours the first side.
    _, _, property_name = effect.a.partition("-")
    favours_first = effect.value > 0
    is_first_high = effect.a.startswith("high")
    higher = "higher" if favours_first == is_first_high else "lower"
    results_are = singular_or_plural(
        _cutoff(estimand), "first result is", f"first {_cutoff(estimand)} results are"
    )
    return f"its {results_are} {higher} in {property_name} than the whole list"


@basis_words.register
def _property_lift_basis(estimand: PropertyLiftOfFirstRanks, effect: Effect) -> str:
    """Give the means of the property that the answer is the difference of."""
    first_mean = effect.details.get("mean_first", math.nan)
    list_mean = effect.details.get("mean_list", math.nan)
    if math.isnan(first_mean):
        return _queries(effect)
    return (
        f"mean {first_mean:,.4g} in the first {estimand.cutoff}, weighted by exposure, and "
        f"{list_mean:,.4g} in the list; {_queries(effect)}"
    )


@answer_words.register
def _head_to_head(estimand: HeadToHeadTwins, effect: Effect, noun: str) -> str:
    """Say how often either twin wins."""
    # Shares of all pairs of twins, or means over queries of the shares of each query's pairs.
    names = ("share_wins", "share_losses")
    if estimand.over == "queries":
        names = ("mean_wins", "mean_losses")
    share_a, share_b = (f"{100 * effect.details.get(name, math.nan):.1f} %" for name in names)
    pairs = "" if estimand.pairs == "all" else f"{estimand.pairs} "
    mean = ", on average over queries" if estimand.over == "queries" else ""
    return (
        f"the {effect.a} version ranks higher in {share_a} of {pairs}twins, the {effect.b} "
        f"version in {share_b}{mean}"
    )


@basis_words.register
def _head_to_head_basis(estimand: HeadToHeadTwins, effect: Effect) -> str:
    """Count the pairs of twins and who wins them, and the queries in which one side leads."""
    names = ("wins", "losses", "ties", "query_wins")
    wins, losses, ties, query_wins = (int(effect.details[name]) for name in names)
    return (
        f"{_pairs(effect)}: {effect.a} {wins:,}, {effect.b} {losses:,}, tied {ties:,}; "
        f"{effect.a} leads in {query_wins:,} of {_queries(effect)}{_both_retrieved(effect)}"
    )


def _both_retrieved(effect: Effect) -> str:
    """Say who wins among the pairs of which both twins are retrieved; empty if all pairs are."""
    pair_count = effect.details.get("both", 0)
    if not pair_count or pair_count == effect.details["pairs"]:
        return ""
    share_a = 100 * effect.details["both_wins"] / pair_count
    share_b = 100 * effect.details["both_losses"] / pair_count
    return (
        f"; both sides retrieved in {int(pair_count):,}: {effect.a} {share_a:.1f} %, "
        f"{effect.b} {share_b:.1f} %"
    )


@answer_words.register
def _rank_gap(estimand: PairRankGap, effect: Effect, noun: str) -> str:
    """Say how many ranks one twin is above the other."""
    if effect.value == 0:
        return f"the {effect.a} version and the {effect.b} version rank alike on average"
    size = estimand.amount(abs(effect.value), sign=False)
    where = "above" if effect.value > 0 else "below"
    return f"the {effect.a} version is {size} ranks {where} the {effect.b} version"


@basis_words.register
def _rank_gap_basis(estimand: PairRankGap, effect: Effect) -> str:
    """Count the pairs of twins, and the sides that are not retrieved and have no rank."""
    if "absent" not in effect.details or not effect.queries:
        return _queries(effect)
    absent = f"{100 * effect.details['absent']:.0f} % of sides not retrieved"
    return f"{_pairs(effect)}, {absent}; {_queries(effect)}"


@basis_words.register
def _score_gap_basis(estimand: PairScoreGap, effect: Effect) -> str:
    """Count the pairs of twins with two scores, and give the gap in the ranker's own unit."""
    if not effect.queries:
        return "no pair with two scores"
    if "raw" not in effect.details:
        return _queries(effect)
    # The gap itself is in standard deviations of a query's scores; this is the ranker's own unit.
    raw = f"{effect.details['raw']:+.3g}".replace("-", "−")
    return f"{_pairs(effect)} with both sides retrieved, raw {raw}; {_queries(effect)}"


@answer_words.register
def _preference(estimand: PreferenceOfPairs, effect: Effect, noun: str) -> str:
    """Say how often documents of a group are chosen."""
    share = f"{50 + 100 * effect.value:.1f} %"  # the value is the share minus one half
    return (
        f"{effect.a} {noun} are chosen in {share} of the decisions on {estimand.pairs} pairs, "
        "where 50 % is neutral"
    )


@basis_words.register
def _preference_basis(estimand: PreferenceOfPairs, effect: Effect) -> str:
    """Say that the answer is a share minus one half, and give the number of queries."""
    return f"share of decisions for {effect.a} minus 50 %; {_queries(effect)}"


@answer_words.register
def _grade_gap(estimand: GradeGapOfTwins, effect: Effect, noun: str) -> str:
    """Say how much higher a judge grades one twin."""
    if effect.value == 0:
        return "both twins get the same grade on average"
    side = effect.a if effect.value > 0 else effect.b
    return f"{side} {noun} is graded {abs(effect.value):.3f} higher"


@basis_words.register
def _grade_gap_basis(estimand: GradeGapOfTwins, effect: Effect) -> str:
    """Count the pairs of twins that a judge graded."""
    pairs = counted(int(effect.details.get("pairs", 0)), "pair", "pairs")
    return f"{pairs} of twins; {_queries(effect)}"


@basis_words.register
def _attention_basis(estimand: AttentionEstimand, effect: Effect) -> str:
    """Say what an answer about all groups at once is based on."""
    details = effect.details
    parts = [
        f"{int(details['groups'])} groups at once",
        _queries(effect),
        _attention_details(estimand, effect),
    ]
    if details["unlabelled"]:
        treatment = "treated as a class" if estimand.unlabelled == "class" else "left out"
        unlabelled_count, result_count = int(details["unlabelled"]), int(details["listed"])
        results = share_of_all(unlabelled_count, result_count, "result", "results")
        parts.append(f"{results} without a label, {treatment}")
    if details["several"]:
        results = counted(int(details["several"]), "result", "results")
        parts.append(f"{results} of several groups, shared equally")
    return "; ".join([*filter(None, parts), _band_words(effect)])


def _band_words(effect: Effect) -> str:
    """Say whether an answer lies inside the random band, and what that means.

    The band holds 95 % of the values that random rankings give.
    """
    if effect.null_position == "inside":
        return "inside the random band: indistinguishable from a random ranking"
    if not effect.significant:
        return f"{effect.null_position} the random band, but not significantly after correction"
    below, above = effect.estimand.outside
    meaning = above if effect.null_position == "above" else below
    return f"{effect.null_position} the random band: {meaning}"


@singledispatch
def _attention_details(estimand: AttentionEstimand, effect: Effect) -> str:
    """Say what attention is compared with, and the numbers of the answer."""
    return ""


@_attention_details.register
def _awrf_details(estimand: AttentionWeightedRankFairness, effect: Effect) -> str:
    """Say what the numbers of AWRF are compared with."""
    target = f"target {estimand.target}, floor {estimand.amount(FLOOR)}"
    if "score" not in effect.details:
        return target
    return f"{target}; nDCG · AWRF {estimand.amount(effect.details['score'])}"


@_attention_details.register
def _ndkl_details(estimand: NormalizedDiscountedDivergence, effect: Effect) -> str:
    """Say what NDKL is compared with."""
    return f"target {estimand.target}"


@_attention_details.register
def _expected_exposure_details(estimand: ExpectedExposureLoss, effect: Effect) -> str:
    """Say what the loss of expected exposure consists of: EE-D and EE-R.

    EE-D (disparity) is the squared length of the vector of exposures, and EE-R (relevance) its
    product with the vector of ideal exposures. A query that occurs several times has several
    rankings; their mean number is said too.
    """
    details = effect.details
    if not {"ee_d", "ee_r", "rankings"} <= details.keys():
        return ""
    repeated = f", {details['rankings']:.3g} rankings each" if details["rankings"] > 1 else ""
    numbers = f"EE-D {estimand.amount(details['ee_d'])}, EE-R {estimand.amount(details['ee_r'])}"
    return f"{numbers}{repeated}"
