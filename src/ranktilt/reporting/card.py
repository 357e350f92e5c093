"""The estimand card as cells, before any format: one row a question, with its meaning in one line."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.auditing.effects import Effect, conflicts
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import Audit
from ranktilt.auditing.verdict import probability
from ranktilt.errors import counted

_HEADS_TEST = {
    True: "the larger p of a sign test over queries and of labels exchanged within origins, in all queries at once.",
    False: "sign test over queries.",
}
HEADER = ("question", "answer", "95 % interval", "p", "favours", "from")


@dataclass(frozen=True)
class Line:
    """One question of a card, as printed."""

    estimate: Effect
    question: str
    answer: str
    interval: str
    p: str
    favours: str
    basis: str

    @property
    def cells(self) -> tuple[str, ...]:
        """One cell a column of `HEADER`."""
        name = f"{self.estimate.name}: {self.question}"
        return (name, self.answer, self.interval, self.p, self.favours, self.basis)


def lines(audit: Audit, run: str, pair: Pair) -> list[Line]:
    """Lay out the card of one run and pair."""
    return [
        Line(
            e,
            e.estimand.question,
            e.estimand.answer(e.value),
            _interval(e),
            "–" if e.p_corrected != e.p_corrected else probability(e.p_corrected).removeprefix("= "),
            e.side(e.favours) or "–",
            e.estimand.basis(e),
        )
        for e in audit.estimates_of(run, *pair)
    ]


def _interval(e: Effect) -> str:
    if e.low != e.low or e.high != e.high:
        return "–"
    amount = e.estimand.amount
    text = f"[{amount(e.low)}, {amount(e.high)}]"
    return f"{text} random [{amount(e.band_low)}, {amount(e.band_high)}]" if e.banded else text


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


def card_legend(audit: Audit) -> list[str]:
    """Say what the numbers are that the card shows."""
    if not audit.estimates:
        return []
    first = audit.estimates[0]
    heads = any(by_sign_test(e) for e in audit.estimates)
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


def by_sign_test(e: Effect) -> bool:
    """Whether an answer is tested by the signs of the queries."""
    return e.estimand.paired_test == "sign test"


def _tests(audit: Audit) -> str:
    """Name the tests behind every p but those of head-to-head."""
    others = [e for e in audit.estimates if not by_sign_test(e)]
    paired = any(by_sign_test(e) for e in audit.estimates)
    # Exchanged labels give as much on one side of 0 as on the other, to the last bit; shuffled ones do not.
    twins = [e for e in others if paired and (not e.banded or e.band_low == -e.band_high)]
    by_t = audit.spec["test"] == "t" and any(e.estimand.kind == "relevance" for e in twins)
    flips = f"sign flips{' (Relative Δ: paired t)' if by_t else ''}"
    both = f"{flips} and the same exchange, the larger one" if audit.two_way else flips
    names = [both] if twins else []
    names += ["shuffled labels where groups are not twins"] if len(twins) < len(others) else []
    return ", or ".join(names)
