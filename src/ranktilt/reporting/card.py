"""The estimand card as cells, before any format: one row a question, with its meaning in one line."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.auditing.estimate import Estimate, conflicts
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import Audit
from ranktilt.auditing.verdict import amount, answer, probability
from ranktilt.errors import counted

QUESTIONS = {
    "relative delta": "is the right answer higher on one side?",
    "page": "who fills the page, relevant or not?",
    "relevant twins": "which twin of a right answer is above?",
    "other twins": "and which twin of all other documents?",
    "twins": "which twin is above?",
    "rank gap": "by how many ranks is the twin above?",
    "score gap": "how far apart are the twins' scores?",
}
_VISIBLE = 0.0005
_HEADS_TEST = {
    True: "the larger p of a sign test over queries and of labels exchanged within origins, in all queries at once.",
    False: "sign test over queries.",
}
_HEADS = {"relevant twins", "other twins", "twins"}
HEADER = ("question", "answer", "95 % interval", "p", "favours", "from")


@dataclass(frozen=True)
class Line:
    """One question of a card, as printed."""

    estimate: Estimate
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
            QUESTIONS[e.kind],
            answer(e),
            _interval(e),
            "–" if e.p_corrected != e.p_corrected else probability(e.p_corrected).removeprefix("= "),
            e.side(e.favours) or "–",
            _basis(e),
        )
        for e in audit.estimates_of(run, *pair)
    ]


def _interval(e: Estimate) -> str:
    if e.low != e.low or e.high != e.high:
        return "–"
    text = f"[{amount(e, e.low)}, {amount(e, e.high)}]"
    return f"{text} random [{amount(e, e.band_low)}, {amount(e, e.band_high)}]" if e.banded else text


def _basis(e: Estimate) -> str:
    queries = counted(e.queries, "query", "queries")
    if "ties" in e.extra:
        wins, losses, ties = (f"{int(e.extra[k]):,}" for k in ("wins", "losses", "ties"))
        pairs = counted(int(e.extra["pairs"]), "pair", "pairs")
        return f"{pairs}: {e.a} {wins}, {e.b} {losses}, tied {ties}; {queries}{_whole(e)}"
    if "absent" in e.extra and e.queries:
        absent = 100 * e.extra["absent"]
        return f"{counted(int(e.extra['pairs']), 'pair', 'pairs')}, {absent:.0f} % of sides not retrieved; {queries}"
    if "raw" in e.extra and e.queries:
        raw = f"{e.extra['raw']:+.3g}".replace("-", "−")
        return f"{counted(int(e.extra['pairs']), 'pair', 'pairs')} with both sides retrieved, raw {raw}; {queries}"
    if e.kind == "score gap":
        return "no pair with two scores"
    if e.kind == "page" and abs(e.level) >= _VISIBLE:
        return f"{queries}; level {amount(e, e.level)}, the middle of the random band"
    return queries


def _whole(e: Estimate) -> str:
    """Of pairs with both sides retrieved, where these are not all."""
    whole = e.extra.get("whole", 0)
    if not whole or whole == e.extra["pairs"]:
        return ""
    a, b = (100 * e.extra[name] / whole for name in ("whole_wins", "whole_losses"))
    return f"; of {int(whole):,} with both sides retrieved: {e.a} {a:.1f} %, {e.b} {b:.1f} %"


def conflict_sentences(audit: Audit) -> list[str]:
    """One sentence for each run and pair whose answers have opposite signs."""
    if not audit.estimates:
        return []
    # By trec_eval's ties Relative Δ follows ids, the other rows do not: that they differ is no conflict.
    left_out = () if audit.spec["ties"] == "expected" else ("relative delta",)
    found = (
        conflicts(e for e in audit.estimates_of(run, *pair) if e.kind not in left_out)
        for run in audit.runs
        for pair in audit.pairs
    )
    return [sentence for sentence in found if sentence]


def card_legend(audit: Audit) -> list[str]:
    """Say what the numbers are that the card shows."""
    if not audit.estimates:
        return []
    first = audit.estimates[0]
    kinds = {e.kind for e in audit.estimates}
    many = " (and likewise for the other pairs)" if len(audit.pairs) > 1 else ""
    said = [f"Card: + favours {first.a}, − favours {first.b}{many}."]
    if kinds & _HEADS:
        said.append(
            "Head-to-head: pairs that the first side wins minus those it loses, in % of pairs with a side retrieved; "
            + _HEADS_TEST[audit.two_way]
        )
    tests = sum(e.p == e.p and e.kind != "score gap" for e in audit.estimates)
    corrected = f"{str(audit.spec['correction']).capitalize()} over the card's {counted(tests, 'test', 'tests')}"
    gap = ", without the score gap, which only describes" if "score gap" in kinds else ""
    said.append(f"{'Other p' if kinds & _HEADS else 'p'}: {_tests(audit)}; {corrected}{gap}.")
    if audit.spec["ties"] != "expected" and "relative delta" in kinds:
        said.append("Ties are averaged in all rows but Relative Δ.")
    return [" ".join(said)]


def _tests(audit: Audit) -> str:
    """Name the tests behind every p but those of head-to-head."""
    others = [e for e in audit.estimates if e.kind not in _HEADS]
    paired = any(e.kind in _HEADS for e in audit.estimates)
    # Exchanged labels give as much on one side of 0 as on the other, to the last bit; shuffled ones do not.
    twins = [e for e in others if paired and (not e.banded or e.band_low == -e.band_high)]
    by_t = audit.spec["test"] == "t" and any(e.kind == "relative delta" for e in twins)
    flips = f"sign flips{' (Relative Δ: paired t)' if by_t else ''}"
    both = f"{flips} and the same exchange, the larger one" if audit.two_way else flips
    names = [both] if twins else []
    names += ["shuffled labels where groups are not twins"] if len(twins) < len(others) else []
    return ", or ".join(names)
