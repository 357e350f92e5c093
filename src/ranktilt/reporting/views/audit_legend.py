"""What is said below an audit's tables: verdicts, what the numbers are, and what the card and controls ask."""

from __future__ import annotations

from ranktilt.auditing.confounds import confound_sentence
from ranktilt.auditing.effects import ALPHA, Effect, conflicts
from ranktilt.auditing.result import RAW, Audit
from ranktilt.errors import counted
from ranktilt.reporting.numbers import signed

_HEADS_TEST = {
    True: "the larger p of a sign test over queries and of labels exchanged within origins, in all queries at once.",
    False: "sign test over queries.",
}


def mark(tilt: Effect) -> str:
    """Mark what is significant after correction."""
    return "*" if tilt.p_corrected < ALPHA else ""


def verdict_sentences(audit: Audit) -> list[str]:
    """One verdict a ranker and pair, in plain words."""
    many = len(audit.pairs) > 1
    return [
        (f"{a} | {b}: " if many else "") + audit.verdict(run, a, b).sentence
        for run in audit.runs
        for a, b in (audit.tilted_pairs if audit.measures else audit.pairs)
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
    raws = {(one.run, one.a, one.b): one.tilts[0] for one in audit.controls if one.control == RAW and one.tilts}
    for one in audit.controls:
        raw = raws.get((one.run, one.a, one.b))
        if raw is None or not one.moves or not one.moves[0].shown:
            continue
        before, after = raw.verdict(audit.level), one.tilts[0].verdict(audit.level)
        if before != after:
            said.append(
                f"{one.run}, control {one.control}: Relative Δ on {raw.measure} moves from {signed(raw.value)} to "
                f"{signed(one.tilts[0].value)} %; the verdict from {_kind(raw, before)} to {_kind(raw, after)}"
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
        names = [twin_test(spec["test"], two_way=audit.two_way)] if True in kinds else []
        names += ["test against shuffled labels"] if False in kinds else []
        test = f"for twins {names[0]}, for other groups {names[1]}" if len(names) == 2 else names[0]
        tests = counted(len(audit.tilts), "test", "tests")
        wide = _widened(audit, True in kinds)
        lines = [
            f"Means and Relative Δ in %: {sides}{more}. * corrected p < .05 ({str(spec['correction']).capitalize()} "
            f"over {tests}; {test}).",
            f"Intervals: paired bootstrap over queries, {spec['resamples']:,} resamples{wide}. "
            + ("Ties: expected value over all orders." if spec["ties"] == "expected" else "Ties: trec_eval's, by id.")
            + (" Means rounded to 0.1 % as in the papers." if spec["rounding"] == "paper" else ""),
        ]
        if False in kinds:
            which = "Groups that are not twins" if True in kinds else "Groups are not twins"
            lines.append(f"{which}: level is the random band (labels shuffled within each query), not 0.")
    elif audit.estimates:
        wide = _widened(audit, False)
        lines.append(f"Intervals: bootstrap over queries, {spec['resamples']:,} resamples{wide}. Ties: averaged.")
    return lines


def _widened(audit: Audit, twins: bool) -> str:
    """Say that the intervals of twins speak of documents too, where there are any: of Relative Δ, or on the card."""
    paired = twins or any(e.estimand.kind == "twins" for e in audit.estimates)
    return ", for twins widened by what documents add" if paired and audit.two_way else ""


def twin_test(test: str, *, two_way: bool = True) -> str:
    """Name the test of twins: ``permutation`` or ``t`` over queries, beside the exchange of labels."""
    name = "paired sign-flip permutation test" if test == "permutation" else "paired t test"
    return name if not two_way else f"the larger p of a {name} over queries and of labels exchanged within origins"


def card_legend(audit: Audit) -> list[str]:
    """Say what the numbers are that the card shows."""
    if not audit.estimates:
        return []
    first = audit.estimates[0]
    heads = any(_by_sign_test(e) for e in audit.estimates)
    many = " (and likewise for the other pairs)" if len(audit.pairs) > 1 else ""
    said = [f"Card: + favours {first.a}, − favours {first.b}{many}."]
    if heads:
        said.append(
            "Head-to-head: pairs that the first side wins minus those it loses, in % of pairs with a side retrieved; "
            + _HEADS_TEST[audit.two_way]
        )
    tests = sum(e.p == e.p and not e.estimand.descriptive for e in audit.estimates)
    corrected = f"{str(audit.spec['correction']).capitalize()} over the card's {counted(tests, 'test', 'tests')}"
    described = dict.fromkeys(e.name for e in audit.estimates if e.estimand.descriptive)
    gap = "".join(f", without the {name}, which only describes" for name in described)
    said.append(f"{'Other p' if heads else 'p'}: {_tests(audit)}; {corrected}{gap}.")
    if audit.spec["ties"] != "expected" and any(e.estimand.kind == "relevance" for e in audit.estimates):
        said.append("Ties are averaged in all rows but Relative Δ.")
    return [" ".join(said)]


def _by_sign_test(e: Effect) -> bool:
    return e.estimand.paired_test == "sign test"


def _tests(audit: Audit) -> str:
    """Name the tests behind every p but those of head-to-head."""
    others = [e for e in audit.estimates if not _by_sign_test(e)]
    paired = any(_by_sign_test(e) for e in audit.estimates)
    # Exchanged labels give as much on one side of 0 as on the other, to the last bit; shuffled ones do not.
    twins = [e for e in others if paired and (not e.banded or e.band_low == -e.band_high)]
    by_t = audit.spec["test"] == "t" and any(e.estimand.kind == "relevance" for e in twins)
    flips = f"sign flips{' (Relative Δ: paired t)' if by_t else ''}"
    both = f"{flips} and the same exchange, the larger one" if audit.two_way else flips
    names = [both] if twins else []
    names += ["shuffled labels where groups are not twins"] if len(twins) < len(others) else []
    return ", or ".join(names)


def control_legend(audit: Audit) -> list[str]:
    """Say what each control takes away."""
    meanings = dict.fromkeys((c.control, c.meaning) for c in audit.controls if c.control != RAW and c.tilts)
    if not meanings:  # the rows say why none was applied
        return []
    said = "; ".join(f"{name}: {meaning}" for name, meaning in meanings)
    tests = counted(max(t.tests for c in audit.controls for t in c.tilts), "test", "tests")
    return [
        f"Controls (Relative Δ in %, ranked again where texts changed): {said}. * corrected p < .05 over the raw and "
        f"controlled values together ({tests}); moved: points, with 95 % paired bootstrap interval."
    ]
