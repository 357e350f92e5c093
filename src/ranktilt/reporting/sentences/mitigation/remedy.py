"""A remedy in words: one sentence, and the formula or pseudo-code to build into an engine.

A ranker that favours one of two groups of documents can be corrected. A remedy is such a correction
with its constants, as a rule that anybody can implement. Its rule has a method: ``offset`` adds
constants to scores; ``interleave``, ``det-const-sort``, ``fa-ir`` and ``exposure`` order a list
anew; ``causal`` and ``projection`` change scores and vectors.
"""

from __future__ import annotations

from ranktilt.errors import join_words
from ranktilt.mitigation.remedy import Remedy
from ranktilt.reporting.sentences.grammar import singular_or_plural

_DIGITS = 9
"""Significant digits of printed constants: with fewer, two documents might change places."""
_LIST_LINE = "L = the documents of the list that have a group, best first; n = their number"
"""Line that defines the list L."""
_PLACES_LINE = "The new order of L takes the places of L; documents without a group keep theirs."
"""Line on where the documents of a new order go."""
_DRAWS_LINE = "Any draw of u will do; the saved lists have u = (floor(H / 4096) + 0.5) / 2^52,"
"""Line on the random number u; it ends with a comma, before the definition of H."""
_HASH_START = "  H = BLAKE2b with 8 bytes, as a little-endian integer, of"
"""Start of the line that defines the hash H; what is hashed follows."""
_TIES_LINE = (
    "Ties: the documents of a group rise evenly through tied ones, so a tie favours neither side."
)
"""Line on ties, for rules that count documents of a group."""


def remedy_title(remedy: Remedy) -> str:
    """Return the title of the lines of a remedy."""
    return f"To build {remedy.candidate} into an engine"


def remedy_sentence(remedy: Remedy) -> str:
    """Say in one sentence what a correction does to a list."""
    rule, protected = remedy.rule, remedy.rule.protected
    if rule.method == "offset":
        return f"Each document gets the constant of its {remedy.by} added to its score."
    if rule.method == "interleave":
        return (
            f"The groups of {remedy.by} take turns, each by score, up to their share of the list."
        )
    if rule.method == "det-const-sort":
        return (
            f"The best document comes next, unless the first k would hold too few of {protected} "
            "or too few others."
        )
    if rule.method == "fa-ir":
        return (
            f"The best document comes next, unless the first k would hold fewer of {protected} "
            "than chance explains."
        )
    if rule.method == "exposure":
        return (
            f"The side with too little exposure, {protected} or the others, is raised by one "
            "amount a list, just enough."
        )
    if rule.method == "causal":
        return "Each document loses the part of its score that its perplexity explains."
    return "Vectors lose the direction in which the two versions of a document differ."


def remedy_lines(remedy: Remedy) -> list[str]:
    """Return the formula or the pseudo-code of a correction, a line each."""
    lines = {
        "offset": _offset_lines,
        "interleave": _interleave_lines,
        "det-const-sort": _det_const_sort_lines,
        "fa-ir": _fa_ir_lines,
        "exposure": _exposure_lines,
        "causal": _causal_lines,
        "projection": _projection_lines,
    }[remedy.rule.method]
    return [*lines(remedy), *_depth_lines(remedy)]


def number(value: float | str) -> str:
    """Print a constant so that it can be typed: ``0.00123456789``."""
    return f"{float(value):.{_DIGITS}g}"


def _depth_lines(remedy: Remedy) -> list[str]:
    """Say how deep lists are corrected; nothing for ``projection``, which corrects queries."""
    if remedy.rule.method == "projection":
        return []
    best_are = singular_or_plural(
        remedy.depth, "best document of a list is", f"best {remedy.depth} documents of a list are"
    )
    return [
        f"Only the {best_are} corrected; the others follow in their order. A hash of the document, "
        "the same for twins, decides a tie at this depth."
    ]


def _offset_lines(remedy: Remedy) -> list[str]:
    """Write the rule that adds a constant to scores."""
    rule = remedy.rule
    width = max(len(constant.group) for constant in rule.offsets)
    constants = []
    for constant in rule.offsets:
        blanks = " " * (width - len(constant.group))
        constants.append(f"  offset[{constant.group}]{blanks} = {number(constant.value)}")
    return [
        f"score'(d) = score(d) + offset[{remedy.by}(d)], largest first",
        *constants,
        *_strength_lines(remedy),
        f"Unit: the scores of {rule.scale} as they are, not normalised. Documents without a group "
        "keep their scores.",
        "Ties: equal scores stay tied, and tied documents in the order they had.",
    ]


def _strength_lines(remedy: Remedy) -> list[str]:
    """Say how the constants follow from the fitted ones, which notes print with their intervals.

    Nothing for a strength of 1, at which they are the same.
    """
    strength = float(remedy.rule.parameters["strength"])
    if strength == 1:
        return []
    fitted = [
        f"{number(constant.value / strength)} for {constant.group}"
        for constant in remedy.rule.offsets
        if constant.value
    ]
    if not fitted:
        return []
    return [f"These are {number(strength)} times the fitted constants: {join_words(fitted)}."]


def _interleave_lines(remedy: Remedy) -> list[str]:
    """Write the rule that takes documents in turn."""
    rule = remedy.rule
    strength, seed = number(rule.parameters["strength"]), number(rule.parameters["seed"])
    names = ", ".join(f"{index} = {name}" for index, name in enumerate(remedy.groups))
    return [
        _LIST_LINE,
        f"groups: {names}; s = {strength}",
        "free = the ranks 1 … n; rest = L",
        "for each group g that L holds, in this order, without the last:",
        "  c = number of documents of g in rest; m = length of rest",
        "  today[k] = number of documents of g among the first k of rest",
        "  aim[k] = (1 − s) · today[k] + s · c · k / m for k = 1 … m; aim[m] = c",
        "  u = a number from 0 to 1, drawn for this query and g",
        "  the i-th document of g takes free[k], with the smallest k at which aim[k] + u ≥ i",
        "  take these documents out of rest, and their ranks out of free",
        "what is left of rest takes the ranks left in free, in order",
        _PLACES_LINE,
        _DRAWS_LINE,
        f'{_HASH_START} "{seed}\\0QUERY\\0g", with g as a number.',
        _TIES_LINE,
    ]


def _minimum_lines(remedy: Remedy) -> list[str]:
    """Write the rule that merges two sides by the least number of each among the first k.

    Two methods share it, and set the least numbers, need[k] and need'[k], in their own ways.
    """
    group = remedy.rule.protected
    return [
        f"if each first k of L holds need[k] of {group}, and need'[k] others: leave L as it is",
        f"for k = 1 … n: the best {group} if the first k − 1 hold fewer than need[k];",
        "               else the best other if they hold fewer than need'[k] others;",
        "               else the better of both",
        _PLACES_LINE,
        _TIES_LINE,
        "Of tied documents in a list that changes, that side comes first that is further below its "
        "share of the first k; if both are equally far, the smaller hash of the document.",
    ]


def _det_const_sort_lines(remedy: Remedy) -> list[str]:
    """Write the rule of DetConstSort."""
    group, target = remedy.rule.protected, number(remedy.rule.parameters["target"])
    return [
        _LIST_LINE,
        f"t = {target} / 100; a = number of {group} in L; p = a / n + t, from 0 to 1;"
        " p' = 1 − a / n − |t|, at least 0",
        "need[k] = min(floor(p · k), a); need'[k] = min(floor(p' · k), n − a)",
        *_minimum_lines(remedy),
    ]


def _fa_ir_lines(remedy: Remedy) -> list[str]:
    """Write the rule of FA*IR."""
    rule = remedy.rule
    group, target = rule.protected, number(rule.parameters["target"])
    alpha = number(rule.parameters["alpha"])
    return [
        _LIST_LINE,
        f"t = {target} / 100; a = number of {group} in L; p = a / n + t, from 0 to 1",
        "m[k] = the smallest m with P(X ≤ m) ≥ c, X binomial with k draws of probability p",
        f"c = such that a list of n draws of probability p falls below m on some first k with a "
        f"probability as near to {alpha} as there is; the smaller m where two are as near",
        "need[k] = min(m[k], a); need'[k] = 0",
        *_minimum_lines(remedy),
    ]


def _exposure_lines(remedy: Remedy) -> list[str]:
    """Write the rule that sets a group's exposure."""
    rule = remedy.rule
    group, target = rule.protected, number(rule.parameters["target"])
    seed = number(rule.parameters["seed"])
    return [
        _LIST_LINE,
        "w[i] = 1 / log2(1 + rank of the i-th document of L in the whole list)",
        "exposure of a side = mean of w over its documents; tied ones share theirs",
        f"t = {target}; t' = min(t, 1 / t), 0 for t = 0",
        f"raise {group} if its exposure is below t times the others', else the others if theirs is "
        f"below t' times that of {group}, else leave L as it is",
        "x = the smallest amount ≥ 0 that, added to the scores of the raised side R, gives it its "
        "least ratio of exposures, when R wins ties",
        "more = L sorted so; fewer = L sorted by a little less than x (for x = 0: R loses ties)",
        "if no x is enough: more = fewer = R before all others",
        "lead(order) = exposure of R − least ratio · exposure of the others",
        "take more if u < −lead(fewer) / (lead(more) − lead(fewer)), else fewer; each side keeps "
        "its own order",
        _PLACES_LINE,
        _DRAWS_LINE,
        f'{_HASH_START} "{seed}\\0QUERY"; u is drawn once for each query.',
    ]


def _causal_lines(remedy: Remedy) -> list[str]:
    """Write the rule that subtracts the effect of perplexity."""
    parameters = remedy.rule.parameters
    return [
        "score'(d) = score(d) − s · b · x(d), largest first",
        f"  s = {number(parameters['strength'])}; b = {number(parameters['coefficient'])}",
        f"  x(d) = {parameters['unit']} of the text of d; of a text without words, the mean of the "
        "others",
        f"Unit: the scores of {remedy.rule.scale} as they are, not normalised.",
        "Ties: equal scores stay tied, and tied documents in the order they had.",
    ]


def _projection_lines(remedy: Remedy) -> list[str]:
    """Write the rule that removes a direction from vectors."""
    parameters = remedy.rule.parameters
    return [
        "q' = q − s · (q · v) · v, for each query vector q; document vectors stay as they are",
        f"  s = {number(parameters['strength'])}",
        f"  v = the {parameters.get('dimensions', '')} numbers of the saved direction, of length 1",
        f"Vectors: of {parameters.get('model', 'the model')}.",
    ]
