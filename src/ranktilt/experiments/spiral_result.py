"""What rounds of a growing collection show: the reference's share of the page, round by round, as one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ranktilt.auditing.answer.verdict import Verdict, bounds, effect_row, probability
from ranktilt.auditing.effects import Change, Effect
from ranktilt.errors import counted, join_words
from ranktilt.io.artifact import Result
from ranktilt.measures.margin import LEVEL
from ranktilt.measures.printing import rounded, signed


class QueryMean(NamedTuple):
    """A mean over queries, or a paired difference of two, with its 95 % interval; NaN where no query counts."""

    value: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """In percent, with the interval: ``41.2 % [39.0, 43.1]``."""
        value, low, high = (rounded(100 * one) for one in self)
        return f"{value} % [{low}, {high}]"

    @property
    def points(self) -> str:
        """As a difference in points, with the interval: ``+3.1 points [+1.0, +5.2]``."""
        return f"{signed(100 * self.value)} points {bounds(100 * self.low, 100 * self.high)}"


@dataclass(frozen=True)
class SpiralRound:
    """What one ranker showed in one round; shares and means are 0 to 1."""

    run: str
    number: int
    """0 is the collection before any rewrite."""
    documents: int
    rewrites: int
    """Of the documents, those that have entered."""
    share: QueryMean
    """The reference's share of the page."""
    mirrored: QueryMean
    """The share of the rewrites in the same round of the other direction: they were there first, and the reference's
    documents entered. Documents without a rewrite count with those that were first."""
    lead: QueryMean
    """The share less `middle`; below 0 the ranker leaves less of the page to the reference than to rewrites."""
    effectiveness: QueryMean
    """Over all documents of the round; NaN where nothing is judged."""

    @property
    def held(self) -> float:
        return 1 - self.rewrites / self.documents

    @property
    def middle(self) -> float:
        """The middle of both directions: what a ranker that does not care who wrote a text leaves to either."""
        return (self.share.value + self.mirrored.value) / 2

    def derived(self) -> dict[str, Any]:
        return {"collection_share": self.held, "middle": self.middle}


@dataclass(frozen=True, eq=False)
class Spiral(Result, format="ranktilt-spiral", version=1, noun="a spiral", command="ranktilt tools spiral"):
    """What `spiral` found; immutable.

    Parameters
    ----------
    spec : mapping
        How it was made: options, collection, runs of the last round, versions.
    reference : str
        The source whose share of the page is followed.
    runs : tuple of str
        Texts of the rankers; the first is the one that the others are held against.
    rounds : tuple of SpiralRound
        Of every ranker in turn, round 0 to the last.
    differences : tuple of Change
        Of every ranker but the first, in the last round: its share of the page and effectiveness less the first one's.
    leads : tuple of Effect
        Of every ranker in turn, its lead in the last round, tested by sign flips over queries; Holm over the rankers.
    queries : int
        Queries that count in every round, with every ranker.
    notes : tuple of str
        What a reader should know.
    """

    spec: Mapping[str, Any]
    reference: str
    runs: tuple[str, ...]
    rounds: tuple[SpiralRound, ...]
    differences: tuple[Change, ...]
    leads: tuple[Effect, ...]
    queries: int
    notes: tuple[str, ...]

    @property
    def page(self) -> int:
        """Results per page."""
        return int(self.spec["page"])

    @property
    def valued(self) -> str:
        """Measure of effectiveness."""
        return str(self.spec["effectiveness"])

    def of(self, run: str) -> tuple[SpiralRound, ...]:
        """Return the rounds of a ranker, in order."""
        return tuple(one for one in self.rounds if one.run == run)

    @property
    def headline(self) -> str:
        """Say what is left of the page in the last round."""
        last = [self.of(run)[-1] for run in self.runs]
        held = [f"{100 * one.held:.0f} %" for one in last]
        same = len(set(held)) == 1
        found = [
            f"{one.share.text} {self.reference} with {one.run}" + ("" if same else f" (its collection: {share})")
            for one, share in zip(last, held, strict=True)
        ]
        beside = f", where the collection is {held[0]} {self.reference}" if same else ""
        rounds = counted(last[0].number, "round", "rounds")
        return f"After {rounds} the first {self.page} are {join_words(found)}{beside}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say of each ranker which side it leaves more of the last page to."""
        return tuple(one.sentence for one in self.verdicts())

    def verdicts(self) -> list[Verdict]:
        """Return which side each ranker leaves more of the last page to, by the rule of all verdicts."""
        found = []
        for e in self.leads:
            last, kind = self.of(e.run)[-1], e.verdict()
            words = {
                "a": ("leaves", "more"), "b": ("leaves", "less"), "level": ("leaves", "as much, within ±5 points,"),
                "inconclusive": ("is not shown to leave", "more or less"),
            }[kind]  # fmt: skip
            slight = e.favours != "" and e.extent() == "within"
            much = f"slightly {words[1]}" if slight else words[1]
            than = f"than it leaves rewrites where these were first ({last.mirrored.text})"
            text = (
                f"{e.run} {words[0]} {self.reference} documents {much} of the page {than}: {last.lead.points} from the "
                f"middle, corrected p {probability(e.p_corrected)}"
            )
            side = e.side(kind) or None
            word: Any = "favours" if side else kind
            found.append(Verdict(e.run, word, side, text, e.measure, LEVEL, slight, 1, 1, e.a, e.b))
        return found

    def derived(self) -> dict[str, Any]:
        """The verdicts and sentences, for those who read the file."""
        answer = {"verdicts": self.verdicts(), "next_steps": (), "effects": [effect_row(e, LEVEL) for e in self.leads]}
        return {"headline": self.headline, **answer, "sentences": self.sentences}
