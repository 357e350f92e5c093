"""How an audit's numbers were reached, in sentences that follow from what it was asked."""

from __future__ import annotations

from collections.abc import Iterator

from ranktilt.auditing.effects import FEW_QUERIES
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted, listed
from ranktilt.statistics.correction import detectable_effect

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


def audit_notes(audit: Audit) -> tuple[str, ...]:
    """Say how an audit's numbers were reached."""
    return (*_measured(audit), *_compared(audit), *_asked(audit))


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
    ranks = f" The ranks that count are the first {listed([f'{k:,}' for k in cut], 'or')}." if cut else ""
    whole = " All ranks count where no number is named." if any(one.cutoff is None for one in of) else ""
    graded = sorted({one.rel for one in of if one.rel > 1})
    least = (
        f" A document is relevant from grade {listed(list(map(str, graded)), 'or')} on where rel names it."
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
    yield " ".join(_tests(audit))
    yield (
        "“Favours” is said on the primary measure, the first one, where the corrected p is below .05 and the 95 % "
        f"interval excludes the level value; “level” where the whole interval lies within ±{audit.level:g} points of "
        "it; “inconclusive” otherwise, which is not the same as level."
    )
    tests = max(t.tests for t in audit.tilts)
    level = "one test at 5 %" if tests == 1 else f"the first step of a correction over {tests} tests"
    yield (
        f"What could be detected is some {detectable_effect(1.0, tests):.1f} standard errors of the resamples, more of "
        f"few queries: a tilt of that size would be found, by {level}, four times in five."
    )


def _tests(audit: Audit) -> Iterator[str]:
    spec = audit.spec
    kinds = {t.twins for t in audit.tilts}
    if True in kinds and spec["test"] == "permutation":
        yield (
            "Twins are compared by a paired permutation test: in each query the two groups' values are exchanged at "
            f"random, {spec['resamples']:,} times, all ways where there are few queries."
        )
    elif True in kinds:
        yield "Twins are compared by a paired t test over queries."
    if True in kinds and audit.two_way:
        yield (
            "Many queries meet the same documents, which are no fresh evidence each time. So the two labels of each "
            "origin are exchanged at random too, in all queries at once, and the larger p counts; intervals are as "
            "wide as queries and documents together make them."
        )
    if False in kinds:
        which = "Other groups" if True in kinds else "Groups that are not twins"
        yield (
            f"{which} do not have equal numbers of relevant documents, which moves Relative Δ by itself. They are "
            "compared with random labels: those of each query's relevant documents are shuffled, and those of the "
            "others. The random band holds 95 % of what that gives; its middle is the level value."
        )
    named = str(spec["correction"]).capitalize()
    yield f"p is corrected ({named}) over {counted(len(audit.tilts), 'test', 'tests')}: every ranker, measure and pair."


def _asked(audit: Audit) -> Iterator[str]:
    asked = dict.fromkeys(e.estimand for e in audit.estimates)
    told = {one.term or one.title: (one, one.title if one.kind == "group" else one.term) for one in asked if one.method}
    for one, name in told.values():
        yield f"{name[:1].upper()}{name[1:]}: {one.method}"
