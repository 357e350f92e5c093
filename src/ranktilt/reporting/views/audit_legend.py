"""What is said of an audit besides its tables: verdicts, what the numbers are, and how they were reached."""

from __future__ import annotations

from collections.abc import Iterator

from ranktilt.auditing.confounds import confound_sentence
from ranktilt.auditing.effects import FEW_QUERIES, Effect, conflicts
from ranktilt.auditing.numerical_noise import ROUNDOFF, precision
from ranktilt.auditing.result import RAW, Audit
from ranktilt.errors import join_words
from ranktilt.measures.margin import margin_words
from ranktilt.reporting.numbers import signed
from ranktilt.reporting.verdicts import families
from ranktilt.statistics.correction import detectable_effect

_HEADS_TEST = "the larger p of a sign test over queries and of labels exchanged within origins, in all queries at once."
_DEFINITIONS = {
    "nDCG": "grades are gains, each divided by log2(1 + rank), summed over the ranks that count, and divided by the "
    "sum of the best possible order of the group's relevant documents",
    "AP": "the precision at the rank of each relevant document, summed over the ranks that count, and divided by the "
    "number of the group's relevant documents",
    "P": "the share of the ranks that count which hold a relevant document",
    "R": "the share of the group's relevant documents that stand on the ranks that count",
    "RR": "1 divided by the rank of the first relevant document, 0 where none stands on the ranks that count",
}
_TIES = {
    "expected": (
        "Documents with equal scores have no order. Every measure is its expected value over all orders of tied "
        "documents, in closed form (McSherry and Najork, ECIR 2008), so that no id decides a tie."
    ),
    "trec_eval": (
        "Ties are broken as trec_eval does, by falling document id. Where twins have equal scores and ids that name "
        "their source, one side wins every tie."
    ),
}
_MISSING = {
    "zero": "A judged query that a run lacks counts 0, unless its engine failed to answer.",
    "exclude": "A judged query that a run lacks does not count for that run.",
}


def verdict_sentences(audit: Audit) -> list[str]:
    """One verdict a ranker and pair, in plain words."""
    many = len(audit.judged_pairs) > 1
    return [
        (f"{a} | {b}: " if many else "") + audit.verdict(run, a, b).sentence
        for run in audit.runs
        for a, b in audit.judged_pairs
    ]


def conflict_sentences(audit: Audit) -> list[str]:
    """One sentence for each run and pair whose answers have opposite signs."""
    if not audit.estimates:
        return []
    # By trec_eval's ties Relative Δ follows ids, the other rows do not: that they differ is no conflict.
    left_out = () if audit.spec["ties"] == "expected" else ("relevance",)
    found = (
        conflicts(e for e in audit.estimates_of(run, *pair) if e.estimand.kind not in left_out)
        for run in audit.runs
        for pair in audit.pairs
    )
    return [sentence for sentence in found if sentence]


def control_sentences(audit: Audit) -> list[str]:
    """Say for each run which control changes the verdict on the primary measure."""
    said = []
    place = audit.place if audit.measures else 0
    raws = {(one.run, one.a, one.b): one.tilts[place] for one in audit.controls if one.control == RAW and one.tilts}
    for one in audit.controls:
        raw = raws.get((one.run, one.a, one.b))
        if raw is None or not one.moves or not one.moves[place].shown:
            continue
        before, after = raw.verdict(audit.level), one.tilts[place].verdict(audit.level)
        if before != after:
            said.append(
                f"{one.run}, control {one.control}: Relative Δ on {raw.measure} moves from {signed(raw.value)} to "
                f"{signed(one.tilts[place].value)} %; the verdict from {_kind(raw, before)} to {_kind(raw, after)}"
            )
    return said


def _kind(tilt: Effect, kind: str) -> str:
    side = {"a": tilt.a, "b": tilt.b}.get(kind)
    return f"favours {side}" if side else kind


def legend(audit: Audit) -> list[str]:
    """Say what the numbers are, in a few lines."""
    beside = [confound_sentence([c for c in audit.confounds if (c.a, c.b) == pair]) for pair in audit.pairs]
    return [*filter(None, beside), *table_legend(audit), *card_legend(audit), *control_legend(audit)]


def table_legend(audit: Audit) -> list[str]:
    """Say what the main table's numbers are."""
    spec = audit.spec
    lines = ["Means in %."] if audit.measures else []
    if audit.tilts:
        sides = "; ".join(f"+ favours {a}, − favours {b}" for a, b in audit.pairs[:1])
        more = " (and likewise for the other pairs)" if len(audit.pairs) > 1 else ""
        kinds = {t.twins for t in audit.tilts}
        names = [twin_test(spec["test"])] if True in kinds else []
        names += ["test against shuffled labels"] if False in kinds else []
        test = f"for twins {names[0]}, for other groups {names[1]}" if len(names) == 2 else names[0]
        over = families(str(spec["correction"]), audit.tilts, repr(audit.primary))
        lines = [
            f"Means and Relative Δ in %: {sides}{more}. * corrected p < .05 ({over}; {test}).",
            f"95 % intervals: paired bootstrap over queries, {spec['resamples']:,} resamples, widened by what "
            "documents add. "
            + ("Ties: expected value over all orders." if spec["ties"] == "expected" else "Ties: trec_eval's, by id.")
            + (" Means rounded to 0.1 % as in the papers." if spec["rounding"] == "paper" else ""),
        ]
        if False in kinds:
            which = "Groups that are not twins" if True in kinds else "Groups are not twins"
            lines.append(f"{which}: level is the median of random labels (shuffled within each query), not 0.")
    elif audit.estimates:
        wide = ", widened by what documents add" if any(e.estimand.sided for e in audit.estimates) else ""
        lines.append(f"95 % intervals: bootstrap over queries, {spec['resamples']:,} resamples{wide}. Ties: averaged.")
    return [*lines, *noise_legend(audit)]


def noise_legend(audit: Audit) -> list[str]:
    """Say what runs were computed in, and how far that leaves Relative Δ on the primary measure open."""
    many = len(audit.tilted_pairs) > 1
    said = [
        f"{one.run}{f' ({one.a} | {one.b})' if many else ''} ±{one.points:.1f} points ({one.resolution})"
        for one in audit.noise
    ]
    lines = [f"Numerical noise of Relative Δ {audit.primary_measure!r}: {', '.join(said)}."] if said else []
    others = {str(spec.get("name", spec.get("ranker"))): precision(spec) for spec in audit.spec.get("runs", ())}
    for one in audit.noise:
        others.pop(one.run, None)
    computed = [f"{run} in {name}" for run, name in others.items() if name in ROUNDOFF]
    return [*lines, *([f"Computed: {', '.join(computed)}."] if computed else [])]


def twin_test(test: str) -> str:
    """Name the test of twins: ``permutation`` or ``t`` over queries, beside the exchange of labels."""
    name = "paired sign-flip permutation test" if test == "permutation" else "paired t test"
    return f"the larger p of a {name} over queries and of labels exchanged within origins"


def card_legend(audit: Audit) -> list[str]:
    """Say what the numbers are that the card shows."""
    if not audit.estimates:
        return []
    heads = any(_by_sign_test(e) for e in audit.estimates)
    many = " (and likewise for the other pairs)" if len(audit.pairs) > 1 else ""
    said = []
    if any(e.estimand.sided for e in audit.estimates):
        said.append(f"Card: + favours {audit.pairs[0][0]}, − favours {audit.pairs[0][1]}{many}.")
    said += whole_groups(audit)
    if heads:
        said.append(
            "Head-to-head: pairs that the first side wins minus those it loses, in % of pairs with a side retrieved; "
            + _HEADS_TEST
        )
    corrected = families(str(audit.spec["correction"]), audit.estimates, repr(audit.primary))
    described = dict.fromkeys(e.name for e in audit.estimates if e.estimand.descriptive)
    gap = "".join(f", without the {name}, which only describes" for name in described)
    said.append(f"{'Other p' if heads else 'p'}: {_tests(audit)}; {corrected}{gap}.")
    if audit.spec["ties"] != "expected" and any(e.estimand.kind == "relevance" for e in audit.estimates):
        said.append("Ties are averaged in all rows but Relative Δ.")
    return [" ".join(said)]


def whole_groups(audit: Audit) -> list[str]:
    """Name what is asked about all groups at once, where there is such a thing."""
    names = list(dict.fromkeys(e.name for e in audit.estimates if not e.estimand.sided))
    verbs = ("speaks", "favours") if len(names) == 1 else ("speak", "favour")
    return [f"{join_words(names)} {verbs[0]} of all groups at once and {verbs[1]} none."] if names else []


def _by_sign_test(e: Effect) -> bool:
    return e.estimand.paired_test == "sign test"


def _tests(audit: Audit) -> str:
    """Name the tests behind every p but those of head-to-head."""
    others = [e for e in audit.estimates if e.estimand.sided and not _by_sign_test(e)]
    paired = any(_by_sign_test(e) for e in audit.estimates)
    # Exchanged labels give as much on one side of 0 as on the other, to the last bit; shuffled ones do not.
    twins = [e for e in others if paired and (not e.banded or e.band_low == -e.band_high)]
    by_t = audit.spec["test"] == "t" and any(e.estimand.kind == "relevance" for e in twins)
    flips = f"sign flips{' (Relative Δ: paired t)' if by_t else ''}"
    names = [f"{flips} and the same exchange, the larger one"] if twins else []
    names += ["shuffled labels where groups are not twins"] if len(twins) < len(others) else []
    names += ["shuffled lists of what speaks of all groups"] if whole_groups(audit) else []
    return ", or ".join(names)


def control_legend(audit: Audit) -> list[str]:
    """Say what each control takes away."""
    meanings = dict.fromkeys((c.control, c.meaning) for c in audit.controls if c.control != RAW and c.tilts)
    if not meanings:  # the rows say why none was applied
        return []
    said = "; ".join(f"{name}: {meaning}" for name, meaning in meanings)
    tilts = {id(t): t for c in audit.controls for t in c.tilts}.values()
    over = families(str(audit.spec["correction"]), tilts, repr(audit.primary))
    return [
        f"Controls (Relative Δ in %, ranked again where texts changed): {said}. * corrected p < .05 over the raw and "
        f"controlled values together ({over}); moved: points, with 95 % paired bootstrap interval."
    ]


def audit_notes(audit: Audit) -> tuple[str, ...]:
    """Say how an audit's numbers were reached."""
    return (*_measured(audit), *_compared(audit), *_card_methods(audit))


def _measured(audit: Audit) -> Iterator[str]:
    if not audit.measures:
        return
    grouped = " with the judgments of one group: relevant documents of other groups count as not relevant, but keep "
    own = "their ranks. Means are taken over the queries that have a relevant document in the group"
    where = f"{grouped}{own}" if audit.pairs else ". Means are taken over the queries that have a relevant document"
    yield f"Each measure is computed on one ranking of the whole collection{where}."
    for name, definition in _DEFINITIONS.items():
        asked = [repr(one) for one in audit.measures if one.name == name]
        if asked:
            yield f"{', '.join(asked)}: {definition}.{_cutoff(audit, name)}"
    yield f"{_TIES[str(audit.spec.get('ties', 'expected'))]} {_MISSING[str(audit.spec.get('missing', 'zero'))]}"


def _cutoff(audit: Audit, name: str) -> str:
    of = [one for one in audit.measures if one.name == name]
    cut = sorted({one.cutoff for one in of if one.cutoff is not None})
    ranks = f" The ranks that count are the first {join_words([f'{k:,}' for k in cut], 'or')}." if cut else ""
    whole = " All ranks count where no number is named." if any(one.cutoff is None for one in of) else ""
    graded = sorted({one.rel for one in of if one.rel > 1})
    least = (
        f" A document is relevant from grade {join_words(list(map(str, graded)), 'or')} on where rel names it."
        if graded
        else ""
    )
    return ranks + whole + least


def _compared(audit: Audit) -> Iterator[str]:
    if not audit.tilts:
        return
    spec = audit.spec
    rounded = " Both means are rounded to 0.1 % first, as in the papers." if spec.get("rounding") == "paper" else ""
    yield (
        "Relative Δ = 200 · (first − second) / (first + second), of the two groups' means over the queries that have a "
        f"relevant document in both; −200 to +200 %, undefined where both means are 0.{rounded}"
    )
    yield (
        f"Intervals hold 95 % of {spec['resamples']:,} resamples of the queries with replacement (seed "
        f"{spec['seed']}); both groups' values of a query are drawn together. Resamples in which Relative Δ is "
        f"undefined are left out and counted. From fewer than {FEW_QUERIES} queries they are too narrow to rely on."
    )
    yield " ".join(_test_sentences(audit))
    yield (
        f"“Favours” is said on the primary question, {audit.primary!r}, which does not depend on the data: where the "
        "corrected p is below .05 and the 95 % interval excludes the level value, “slightly” where all of the interval "
        f"lies within {margin_words(audit.margin)} of it; “level” where it does and no side is favoured; "
        "“inconclusive” otherwise, which is not the same as level."
    )
    tests = max(t.tests for t in audit.tilts if t.measure == repr(audit.primary_measure))
    level = "one test at 5 %" if tests == 1 else f"the first step of a correction over {tests} tests"
    yield (
        f"What could be detected is some {detectable_effect(1.0, tests):.1f} standard errors of the resamples, more of "
        f"few queries: a tilt of that size would be found, by {level}, four times in five."
    )


def _test_sentences(audit: Audit) -> Iterator[str]:
    spec = audit.spec
    kinds = {t.twins for t in audit.tilts}
    if True in kinds and spec["test"] == "permutation":
        yield (
            "Twins are compared by a paired permutation test: in each query the two groups' values are exchanged at "
            f"random, {spec['resamples']:,} times, all ways where there are few queries."
        )
    elif True in kinds:
        yield "Twins are compared by a paired t test over queries."
    yield (
        "Many queries meet the same documents, which are no fresh evidence each time: intervals are as wide as queries "
        "and documents together make them."
    )
    if True in kinds:
        yield "The labels of each origin are exchanged at random too, in all queries at once, and the larger p counts."
    if False in kinds:
        which = "Other groups" if True in kinds else "Groups that are not twins"
        yield (
            f"{which} do not have equal numbers of relevant documents, which moves Relative Δ by itself. They are "
            "compared with random labels: those of each query's relevant documents are shuffled, and those of the "
            "others, as far apart as one label a document puts them. The random band holds 95 % of what that gives; "
            "the median is the level value."
        )
    over = families(str(spec["correction"]), audit.tilts, repr(audit.primary))
    yield f"p is corrected: {over}: every ranker and pair of the primary question, and of all other measures."


def _card_methods(audit: Audit) -> Iterator[str]:
    asked = dict.fromkeys(e.estimand for e in audit.estimates)
    told = {one.term or one.title: (one, one.title if one.kind == "group" else one.term) for one in asked if one.method}
    for one, name in told.values():
        yield f"{name[:1].upper()}{name[1:]}: {one.method}"
