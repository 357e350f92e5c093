"""Sentences about a bench: which correction it chose, at what cost, and what methods learned.

A bench tries corrections of a ranker that favours one of a pair of groups, the sides. Each
candidate is one method at one strength; the baseline is the ranker without any. A candidate is
chosen if its tilt (how far it favours a side) is shown to lie within the margin, and its cost
within the budget: points of effectiveness lost, or, without judgments, percent of the first ten
documents replaced. A change is a candidate's difference from the baseline, and an effect is a tilt
with its interval. An offset is a constant that a method adds to the scores of one group. A
candidate is level if its tilt is shown to lie within the margin of neutral, the value that favours
neither side; the outcome of a bench is whether a candidate was chosen. The estimand is the question
that tilts answer, the spec is the settings of the bench, and a finding is a sentence with its kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ranktilt.auditing.answer.verdict import FindingKind, Verdict, margins
from ranktilt.auditing.effects import ALPHA, Change, Effect
from ranktilt.auditing.gate.result import check_tilt
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.errors import counted, join_words
from ranktilt.measures.margin import margin_words, points_words
from ranktilt.mitigation.bench_result import (
    Bench,
    Candidate,
    CandidateCheck,
    Choice,
    MitigationOutcome,
)
from ranktilt.mitigation.causal import CausalFit, SourceRatio
from ranktilt.mitigation.movement import Movement
from ranktilt.mitigation.offset import GroupOffset, OffsetFit
from ranktilt.rankers.candidates import FITTED
from ranktilt.reporting.numbers import decimal, fixed, probability, signed
from ranktilt.reporting.sentences.effects import (
    detectable_size,
    effect_words,
    signed_interval,
    tilt_numbers,
    too_few_words,
)
from ranktilt.reporting.sentences.findings import Finding, command_rows, sort_findings
from ranktilt.reporting.sentences.gate import limit_reason
from ranktilt.reporting.sentences.grammar import share_of_all, singular_or_plural
from ranktilt.reporting.sentences.mitigation.next_commands import (
    bench_next_commands,
    exceeds_margin_alone,
)
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.verdicts import verdict_row, verdict_sentence

MITIGATION_KINDS: dict[MitigationOutcome, FindingKind] = {
    "mitigated": "level",
    "level": "level",
    "inconclusive": "inconclusive",
    "cannot be mitigated within the budget": "favours",
}
"""Kind of finding for each outcome, which ranks it among other findings."""
_UNTESTED = "that source moves scores through perplexity alone is not tested"
"""Assumption of a causal correction: the instrument reaches scores through perplexity alone."""


def leading_finding(bench: Bench) -> Finding:
    """Return the main finding of a bench."""
    choice = bench.choose()
    return Finding(kind=MITIGATION_KINDS[choice.outcome], sentence=f"{bench_headline(choice)}.")


def bench_headline(choice: Choice) -> str:
    """Say which candidate levels the ranker and at what cost, or why none does."""
    if not choice.is_tilted:
        return f"Not mitigated: {'; '.join(_baseline_sentences(choice))}"
    if choice.chosen is not None:
        return _chosen_sentence(choice, choice.chosen)
    nearest = choice.nearest
    if nearest is None:
        return "Not mitigated: no correction was tried"
    effect = effect_of_correction(choice, nearest)
    if choice.outcome == "inconclusive":
        return f"Not shown to be mitigated: {effect}; {_missing_proof(choice, nearest)}"
    return f"Cannot be mitigated within the budget: {effect}; {_exceeded_limits(choice, nearest)}"


def _baseline_sentences(choice: Choice) -> list[str]:
    """Return the verdicts on the baseline in words, the largest tilt first."""
    findings = []
    for verdict, effect in zip(choice.verdicts, choice.bench.baseline_effects, strict=True):
        front = f"{verdict.a} | {verdict.b}: " if len(choice.verdicts) > 1 else ""
        finding = Finding(
            kind=verdict.kind,
            sentence=front + (_power_sentence(effect, verdict) or verdict_sentence(verdict)),
            size=margins(effect, choice.margin),
        )
        findings.append(finding)
    return [finding.sentence for finding in sort_findings(findings)]


def _power_sentence(effect: Effect, verdict: Verdict) -> str:
    """Say which tilts these queries could have missed, where that is why they show none.

    Empty where a tilt is shown, or where nothing is shown for another reason.
    """
    is_for_want_of_power = (
        verdict.kind == "inconclusive"
        and effect.testable
        and effect.can_be_level
        and not effect.p_corrected < ALPHA
    )
    size = detectable_size(effect)
    if not is_for_want_of_power or not size:
        return ""
    return (
        f"no tilt is shown, though these queries could have missed one below {size}; "
        f"{effect_words(effect, verdict.noun)}"
    )


def _chosen_sentence(choice: Choice, candidate: Candidate) -> str:
    """Say how far the chosen candidate cuts the tilt, at what cost, and which tilt is left."""
    bench = choice.bench
    tilts = [bench.tilt(candidate.name, pair) for pair in bench.pairs]
    sides = list(dict.fromkeys(tilt.side(tilt.favours) for tilt in tilts if tilt.favours))
    still = f", though it still favours {join_words(sides)}" if sides else ""
    moves = join_words([_move_words(bench, candidate, pair) for pair in bench.pairs])
    within = f"within {margin_words(choice.margin)}"
    cost = _largest_cost(bench, candidate)
    return f"Mitigated by {candidate.name}: it cut {moves}, {within}, {cost}{still}"


def detail_sentence(choice: Choice) -> str:
    """Say what a chosen candidate costs, or what the nearest one lacks; empty for neither."""
    if choice.chosen is None:
        return nearest_sentence(choice)
    bench = choice.bench
    several = f" of {choice.chosen.method}" if len(bench.methods) > 1 else ""
    reason = f"It is the smallest candidate{several} {limits(choice)}"
    if bench.selected:
        reason = f"It was {selection_words(bench)}"
    costs = [cost_words(change, choice.budget) for change in bench.costs(choice.chosen.name)]
    cost = f"; {bench.effectiveness_measure} changes by {join_words(costs)}" if costs else ""
    return f"{reason}{cost}"


def effect_of_correction(choice: Choice, candidate: Candidate) -> str:
    """Say from where to where a candidate moves the tilt of the same queries, and at what cost."""
    bench = choice.bench
    if math.isinf(bench.distance(candidate.name)):
        return f"{candidate.name} leaves {bench.primary} undefined"
    moves = [_move_words(bench, candidate, pair, with_interval=False) for pair in bench.pairs]
    # The distance of the tilt from neutral, the largest of all pairs of groups.
    is_nearer = bench.distance(candidate.name) < bench.distance(bench.baseline.name)
    verb = "cut" if is_nearer else "moved"
    return f"{candidate.name} {verb} {join_words(moves)} {_largest_cost(bench, candidate)}"


def _move_words(
    bench: Bench, candidate: Candidate, pair: Pair, *, with_interval: bool = True
) -> str:
    """Say from where to where a candidate moves the tilt of a pair of groups."""
    before = bench.tilt(bench.baseline.name, pair)
    after = bench.tilt(candidate.name, pair)
    estimand = before.estimand
    numbers = tilt_numbers(after) if with_interval else estimand.answer(after.value)
    level = ""
    # Groups that are no twins are level at the median of random labels, not at 0.
    if estimand.answer(after.neutral) != estimand.answer(estimand.neutral):
        level = f" (level: {estimand.answer(after.neutral)})"
    between = f" between {pair[0]} and {pair[1]}" if len(bench.pairs) > 1 else ""
    return f"the tilt{between} from {estimand.answer(before.value)} to {numbers}{level}"


def _largest_cost(bench: Bench, candidate: Candidate) -> str:
    """Say what a candidate costs: the largest loss of effectiveness, or how far lists move."""
    movement = bench.movement(candidate.name)
    if not bench.is_judged:
        return "" if movement is None else f"by replacing {replaced_words(movement)}"
    losses = [change for change in bench.costs(candidate.name) if change.value < 0]
    shown_losses = [change for change in losses if change.has_interval and change.high < 0]
    if not shown_losses:
        return "at no measurable loss"
    largest = min(shown_losses, key=lambda change: change.value)
    return (
        f"at a loss of {decimal(-largest.value)} points of {bench.effectiveness_measure} "
        f"{signed_interval(largest.low, largest.high)}"
    )


def replaced_words(movement: Movement) -> str:
    """Say how far lists move: ``12.0 % [10.1, 14.0] of the first ten documents (RBO .87)``.

    RBO is the rank-biased overlap of a list before and after the correction, from 0 to 1.
    """
    share = decimal(movement.replaced.value)
    overlap = fixed(movement.rbo.value).removeprefix("0")
    low, high = decimal(movement.replaced.low), decimal(movement.replaced.high)
    return f"{share} % [{low}, {high}] of the first ten documents (RBO {overlap})"


def _missing_proof(choice: Choice, candidate: Candidate) -> str:
    """Say which limits these queries are too few to prove kept: the margin, the budget."""
    checks = [check for check in choice.checks[candidate.name] if check.outcome == "inconclusive"]
    claims = []
    if any(not check.is_cost for check in checks):
        claims.append(f"to prove that it lies within {margin_words(choice.margin)}")
    if any(check.is_cost for check in checks):
        claims.append(f"to exclude {_excessive_cost(choice)}")
    queries = max((check.effect.queries for check in checks), default=0)
    count = counted(queries, "query is", "queries are")
    return f"{count} too few {join_words(claims)}"


def _exceeded_limits(choice: Choice, candidate: Candidate) -> str:
    """Say which limits a candidate is shown to exceed: the margin, the budget."""
    checks = [check for check in choice.checks[candidate.name] if check.outcome == "tilted"]
    reasons = []
    if any(not check.is_cost for check in checks):
        reasons.append(f"the remaining tilt lies beyond {margin_words(choice.margin)}")
    if any(check.is_cost for check in checks):
        reasons.append(f"{_excessive_cost(choice)} is shown")
    return join_words(reasons)


def _excessive_cost(choice: Choice) -> str:
    """Name a cost above the budget: ``a loss of more than 1 point of nDCG@10``."""
    if choice.bench.is_judged:
        loss = points_words(choice.budget)
        return f"a loss of more than {loss} of {choice.bench.effectiveness_measure}"
    return f"that more than {choice.budget:g} % of the first ten are replaced"


def nearest_sentence(choice: Choice) -> str:
    """Say what the nearest candidate lacks, where none is chosen; empty elsewhere."""
    nearest = choice.nearest
    if nearest is None:
        return ""
    outcome = choice.outcome_of(nearest.name)
    reasons = [
        check_reason(choice, check)
        for check in choice.checks[nearest.name]
        if check.outcome == outcome
    ]
    return f"Nearest is {nearest.name}: {'; '.join(reasons)}"


def limits(choice: Choice) -> str:
    """Name the limits of a candidate: ``within ±5 points at a loss of at most 1 point of AP@5``."""
    margin = f"within {margin_words(choice.margin)}"
    bench = choice.bench
    if bench.is_judged:
        return (
            f"{margin} at a loss of at most {points_words(choice.budget)} of "
            f"{bench.effectiveness_measure}"
        )
    return f"{margin} with at most {choice.budget:g} % of the first ten replaced"


def selection_words(bench: Bench) -> str:
    """Say on which queries candidates were fitted and selected; empty where none were."""
    if not bench.selected:
        return ""
    fitted = f"fitted on {bench.spec[FITTED]} and " if FITTED in bench.spec else ""
    return f"{fitted}chosen on other queries"


def check_reason(choice: Choice, check: CandidateCheck) -> str:
    """Say why a check of a candidate has its outcome."""
    if isinstance(check.effect, Movement):
        return movement_reason(check.effect, choice.budget)
    if isinstance(check.effect, Change):
        return cost_reason(check.effect, choice.budget)
    return limit_reason(check_tilt(check.effect, choice.margin))


def movement_reason(movement: Movement, budget: float) -> str:
    """Say whether more of the first ten documents are replaced than the budget, in %, allows."""
    replaced = movement.replaced
    low, high = decimal(replaced.low), decimal(replaced.high)
    numbers = f"{decimal(replaced.value)} % of the first ten replaced [{low}, {high}]"
    if not movement.testable:
        queries = counted(movement.queries, "query is", "queries are")
        return f"{queries} too few for a verdict; {numbers}"
    verdicts = {"level": "is excluded", "tilted": "is shown"}
    verdict = verdicts.get(movement.outcome(budget), "is neither shown nor excluded")
    return f"{numbers}: more than {budget:g} % {verdict}"


def cost_reason(change: Change, budget: float) -> str:
    """Say whether a loss of effectiveness beyond the budget, in points, is excluded or shown."""
    words = cost_words(change, budget)
    loss = f"a loss of more than {points_words(budget)}"
    if math.isnan(change.value) or (change.testable and not change.has_interval):
        return f"no query has a value of {change.measure} under both rankers"
    if not change.testable:
        return f"{too_few_words(change)}; {words}"
    if change.low >= -budget:
        return f"{change.measure} {words}: {loss} is excluded"
    if change.high < -budget:
        return f"{change.measure} {words}: {loss} is shown"
    if change.high < 0:
        whether = f"whether it is more than {points_words(budget)} is not"
        return f"{change.measure} {words}: a loss is shown; {whether}"
    return f"{change.measure} {words}: {loss} is neither shown nor excluded"


def cost_words(change: Change, budget: float) -> str:
    """Print a change of effectiveness with its interval, and over which documents.

    The interval has digits enough to tell its ends from the budget, in points.
    """
    documents = "over all documents" if change.a == ALL else f"on {change.a} documents alone"
    interval = (
        f" {signed_interval(change.low, change.high, -budget)}" if change.has_interval else ""
    )
    return f"{signed(change.value)} points{interval} {documents}"


def bench_notes(bench: Bench) -> Iterator[str]:
    """Yield what methods learned, what was left out, and what limits the numbers."""
    if bench.fits.offset is not None:
        yield f"offset: {offset_sentence(bench.fits.offset)}{_strength_words(bench)}"
    if bench.fits.causal is not None:
        yield causal_sentence(bench.fits.causal)
    if bench.fits.direction is not None:
        yield direction_sentence(bench.fits.direction.spec)
    if "left_out" in bench.spec:
        yield from _left_out(bench.spec)
        if bench.methods:
            yield (
                "intervals for differences from the baseline ignore document sampling and are "
                "slightly too narrow"
            )
    yield from note_sentences(bench.notes)
    reference = bench.spec["reference"]
    is_by_source = bench.spec["by"] == "source"
    if bench.methods and bench.document_sets == (ALL,) and is_by_source:
        yield (
            f"effectiveness on {reference} documents alone is unknown, as they were not "
            "ranked alone"
        )
    candidate_count = len(bench.candidates) - 1  # the first is the baseline
    if candidate_count > 1 and not bench.selected:
        yield (
            f"each of the {candidate_count} candidates has its own 95 % intervals; the more there "
            "are, the more likely one is called level by chance"
        )


def _left_out(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was left out of the data to fit on, because the queries to test on share it.

    `spec` are the settings of a bench. It was fitted on a part of the queries, or on another
    collection that the settings name.
    """
    left_out, fit_collection = spec["left_out"], spec.get(FITTED, "")
    judgments = share_of_all(
        left_out["judgments"], left_out["judgments_before"], "judgment", "judgments"
    )
    if not fit_collection:
        if left_out["judgments"]:
            documents_are = singular_or_plural(
                left_out["judgments"], "its document is", "their documents are"
            )
            yield (
                f"{judgments} to fit on left out, because {documents_are} also relevant to "
                "queries of other sides"
            )
        return
    yield f"fitted on {counted(spec['queries']['fit'], 'query', 'queries')} of {fit_collection}"
    if left_out["documents"]:
        documents = counted(left_out["documents"], "document", "documents")
        yield (
            f"{documents} of {fit_collection} and {judgments} left out, because they are also "
            "relevant to selection or test queries"
        )
    if left_out["queries"]:
        queries = counted(left_out["queries"], "query", "queries")
        them = singular_or_plural(left_out["queries"], "it", "them")
        yield f"{queries} of {fit_collection} left out, because you also ask {them} here"


def offset_sentence(fit: OffsetFit) -> str:
    """Say which constants, added to the scores of the groups, make them match."""
    constants = [
        f"{_signed(offset.value, 4)} for {offset.group} ({_precision(offset)})"
        for offset in fit.offsets
    ]
    return f"Scores match those of {fit.reference} with {join_words(constants)}."


def _strength_words(bench: Bench) -> str:
    """Say that an offset of a strength other than 1 adds so many times the constants.

    ``s`` stands for the strength where candidates have several. Empty where all have 1.
    """
    strengths = {candidate.strength for candidate in bench.eligible if candidate.method == "offset"}
    if strengths == {1.0}:
        return ""
    strength = f"{strengths.pop():g}" if len(strengths) == 1 else "s"
    return f" Offset {strength} adds {strength} times this."


def _precision(offset: GroupOffset) -> str:
    """Print the interval of an offset, and the queries behind it."""
    queries = counted(offset.queries, "query", "queries")
    if math.isnan(offset.low):
        return f"{queries}, no interval"
    low, high = _signed(offset.low, 4), _signed(offset.high, 4)
    return f"95 % interval {low} to {high}, {queries}"


def causal_sentence(fit: CausalFit) -> str:
    """Say how much scores rise with perplexity, and how surely the instrument moves it.

    The instrument is a factor of texts, or their source, that is taken to move scores through
    perplexity alone; the first-stage F says how strongly it moves perplexity.
    """
    spec = fit.spec
    coefficient = f"{_signed(fit.coefficient, 3)} {_ends(fit.low, fit.high)}"
    factor = spec.get("instrument")
    groups = f"high minus low {factor}" if factor else f"{spec['source']} minus {spec['reference']}"
    missing = f", {spec['missing']:,} more not scored" if spec.get("missing") else ""
    pairs = counted(len(fit.pairs), "pair", "pairs")
    queries = counted(len({pair.query for pair in fit.pairs}), "query", "queries")
    exclusion = _exclusion(fit.by_source) if factor else ""
    return (
        f"causal: +1 of perplexity, in {spec['unit']}, moves scores of {spec['ranker']} by "
        f"{coefficient}; first-stage F {fit.f:,.1f} over {pairs} of {queries}{missing}; "
        f"{groups}: perplexity {_signed(fit.perplexity_gap, 3)}, "
        f"score {_signed(fit.score_gap, 3)}{exclusion}"
    )


def _exclusion(by_source: SourceRatio | None) -> str:
    """Say whether the source is shown to move scores in other ways than through perplexity.

    Then the assumption of instrumental variables, exclusion, fails.
    """
    if by_source is None:
        return f"; {_UNTESTED}: no pairs differ in the source alone"
    if math.isnan(by_source.difference):
        f = 0.0 if math.isnan(by_source.f) else by_source.f
        return f"; {_UNTESTED}: source hardly moves perplexity (first-stage F {f:.1f})"
    low, high = by_source.difference_low, by_source.difference_high
    numbers = (
        f"; by source it is {_signed(by_source.coefficient, 3)} "
        f"{_ends(by_source.low, by_source.high)} over "
        f"{counted(by_source.pairs, 'pair', 'pairs')}, a difference of "
        f"{_signed(by_source.difference, 3)} {_ends(low, high)}"
    )
    if low <= 0 <= high:
        return f"{numbers}: no other way of source to scores is shown"
    return (
        f"{numbers}: exclusion fails. The source also moves scores in other ways than perplexity, "
        "and the correction removes only what perplexity explains"
    )


def direction_sentence(spec: Mapping[str, Any]) -> str:
    """Compare the length of a direction with that for random signs of its differences.

    The direction is the mean difference of the vectors of twins; `spec` are its settings and
    numbers (`Direction.spec`).
    """
    twins = counted(spec["twins"], "twin", "twins")
    return (
        f"projection: direction of {spec['source']} from {spec['reference']} by {spec['model']}, "
        f"over {twins}; their mean difference has length {spec['length']:.3g}, "
        f"with random signs {spec['random_length']:.3g} (p {probability(spec['p'])})"
    )


def _signed(value: float, digits: int) -> str:
    """Print a number with its sign, in significant digits."""
    return f"{value:+.{digits}g}".replace("-", "−")


def _ends(low: float, high: float) -> str:
    """Print an interval, or that it has no ends (NaN)."""
    return "[no end]" if math.isnan(low) else f"[{_signed(low, 3)}, {_signed(high, 3)}]"


def bench_meaning(choice: Choice) -> str:
    """Say what a bench means: which correction to apply, or that none will do."""
    bench: Bench = choice.bench
    if not choice.is_tilted:
        return "Leave the ranker as it is. It is not shown to tilt by more than your margin."
    if choice.chosen is not None:
        cost = ", and replaces no more of the first ten results than you allow"
        if bench.is_judged:
            cost = ", and costs no more effectiveness than you allow"
        return (
            f"Apply {choice.chosen.name}. The ranker then stays within "
            f"{margin_words(choice.margin)} of level{cost}."
        )
    if choice.outcome == "cannot be mitigated within the budget":
        if exceeds_margin_alone(choice):
            return (
                "No correction tried here is enough: the tilt that remains is larger than your "
                "margin. Try other methods, or change the ranker itself."
            )
        return (
            "No correction tried here fits your budget. Allow a higher cost, or change the ranker "
            "itself."
        )
    return (
        "The ranker tilts, and no correction is shown to be enough. Some may be, but these queries "
        "are too few to tell. Test on more queries before you apply one."
    )


def derived_words(bench: Bench) -> dict[str, Any]:
    """Return the sentences and verdicts that the file of a bench holds."""
    choice = bench.choose()
    detail = detail_sentence(choice)
    return {
        "headline": bench_headline(choice),
        "sentences": [detail] if detail else [],
        "verdicts": [verdict_row(verdict) for verdict in choice.verdicts],
        "next_steps": command_rows(bench_next_commands(bench)),
    }
