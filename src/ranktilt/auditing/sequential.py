"""Sequential audit of a live engine: queries are asked one after the other until a tilt is decided."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ranktilt.auditing.audit import audit_provenance
from ranktilt.auditing.groups import Groups, Pair, grouped_pairs
from ranktilt.collection import Collection
from ranktilt.errors import DataWarning, UserError, counted
from ranktilt.io.artifact import Result
from ranktilt.measures.base import Estimand, GroupEstimand, estimand
from ranktilt.measures.ranking import Ranking
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker
from ranktilt.run import Run, collection_rows
from ranktilt.statistics.confidence_sequence import CONFIDENCE, ConfidenceSequence

USUAL = "Share@10"
BATCH = 16
Decision = Literal["level", "tilted", "inconclusive"]


class Look(NamedTuple):
    """What was known after some queries; in the unit of the estimand."""

    queries: int
    """Queries that say something, so far."""
    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class SequentialAudit(
    Result, format="ranktilt-sequential-audit", version=1, noun="a sequential audit", command="ranktilt audit --until"
):
    """What `audit_until` found; immutable.

    Parameters
    ----------
    spec : mapping
        How it was made: ranker, seed, confidence, collection, versions.
    run : str
        The ranker.
    measure : str
        What was asked.
    a, b : str
        The groups; positive values favour the first.
    until : float
        The tilt that is to be decided, in the printed unit of the measure (points).
    asked, answered : int
        Queries that were sent, and those that the engine answered.
    of : int
        Queries that there are.
    deviation : float
        Standard deviation over queries.
    looks : tuple of Look
        After each batch: the mean and its confidence sequence.
    """

    spec: Mapping[str, Any]
    run: str
    measure: str
    a: str
    b: str
    until: float
    asked: int
    answered: int
    of: int
    deviation: float
    looks: tuple[Look, ...]

    @property
    def estimand(self) -> Estimand:
        """What was asked."""
        return estimand(self.measure)

    @property
    def decision(self) -> Decision:
        """``tilted`` where 0 is excluded, ``level`` where a tilt of `until` is, else ``inconclusive``."""
        return decided(self.looks[-1], self.until / self.estimand.scale)

    @property
    def fixed(self) -> int | None:
        """Queries that a test of fixed size would have needed at this mean and deviation; None if none does.

        Of a 95 % interval by the normal distribution, looked at once: until it excludes 0, or the tilt to be decided.
        """
        distance = abs(self.looks[-1].value)
        room = distance if self.decision == "tilted" else self.until / self.estimand.scale - distance
        if not room > 0 or math.isnan(self.deviation):
            return None
        return max(math.ceil((1.96 * self.deviation / room) ** 2), 2)

    @property
    def headline(self) -> str:
        """The decision in one sentence."""
        queries = counted(self.looks[-1].queries, "query", "queries")
        favoured = self.a if self.looks[-1].value > 0 else self.b
        if self.decision == "tilted":
            return f"{self.run} favours {favoured}, shown after {queries}: {self.words(self.looks[-1])}"
        if self.decision == "level":
            return f"{self.run} is level within ±{self.until:g}, shown after {queries}: {self.words(self.looks[-1])}"
        return f"{self.run} is not decided after {queries}: {self.words(self.looks[-1])}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What else there is to say."""
        failed, silent = self.asked - self.answered, self.answered - self.looks[-1].queries
        said = f"; {counted(failed, 'query', 'queries')} failed" if failed else ""
        said += f"; {counted(silent, 'list says', 'lists say')} nothing of these groups" if silent else ""
        sent = f"{self.asked:,} of {counted(self.of, 'query was', 'queries were')} asked, in a drawn order{said}"
        if self.fixed is None:
            return (sent,)
        size = (
            f"A test of fixed size would have needed some {self.fixed:,} at this mean and scatter, had one known them"
        )
        return (sent, size)

    def words(self, look: Look) -> str:
        """Print a look: ``Share@10 +3.1 points [+0.4, +5.9]``."""
        of = self.estimand
        return f"{self.measure} {of.amount(look.value)}{of.suffix} [{of.amount(look.low)}, {of.amount(look.high)}]"


def audit_until(
    collection: Collection,
    ranker: Ranker,
    until: float,
    measure: str | Estimand = USUAL,
    *,
    by: str = "source",
    pair: Pair | None = None,
    most: int | None = None,
    seed: int = 0,
) -> SequentialAudit:
    """Ask a ranker query after query, in a drawn order, until it is shown to favour a group, or not by so much.

    One may look after every batch because the interval is a confidence sequence (Waudby-Smith and Ramdas, JRSS B 2024):
    it holds the mean at all looks together with a probability of 95 %. The mean is that of all queries of which these
    are a sample.

    Parameters
    ----------
    collection : Collection
        Queries, and documents with their groups; texts where the ranker reads them.
    ranker : Ranker
        As a rule a live engine.
    until : float
        The tilt that is to be decided, in points, above 0: the audit ends where 0 is excluded, or a tilt of this size.
    measure : str or Estimand, optional
        A question of two groups that has bounds and needs no judgments, such as ``Share@10``.
    by : str, optional
        Document column of the groups.
    pair : (str, str), optional
        The groups; needed where there are more than two. Positive values favour the first.
    most : int, optional
        Queries to ask at most; all by default.
    seed : int, optional
        Of the order of the queries.

    Returns
    -------
    SequentialAudit
        The decision, and every look on the way.

    Raises
    ------
    UserError
        If there is no query, or the measure, the groups or an option do not suit.
    """
    of = _bounded(measure)
    if not 0 < until < math.inf:
        raise UserError(f"expected a tilt to be decided above 0, such as 10 (points), got {until}")
    if most is not None and most < 1:
        raise UserError(f"expected at least 1 query to ask, got {most}")
    if not by:
        raise UserError("a sequential audit needs a column of groups (by)")
    groups, pairs = grouped_pairs(collection, by, None if pair is None else [pair])
    if len(pairs) != 1:
        raise UserError(f"{by} makes {len(groups.names)} groups ({', '.join(groups.names)}); name two: --pair A,B")
    names = collection.judged["id"].to_numpy()
    if not len(names):
        raise UserError("no query to ask: name a file of queries, or a collection that has some")
    order = np.random.default_rng(seed).permutation(len(names))[:most]
    sequence, looks, asked, answered = ConfidenceSequence(*of.bounds), list[Look](), 0, 0
    for run, values in _batches(collection, ranker, names[order].tolist(), (of, groups, pairs[0])):
        asked, answered = min(asked + BATCH, len(order)), answered + len(run.queries)
        for value in values:
            sequence.add(value)
        looks.append(Look(sequence.count, sequence.mean, sequence.low, sequence.high))
        report(f"asking {run.name}", asked, len(order))
        if decided(looks[-1], until / of.scale) != "inconclusive":
            break
    if not sequence.count:
        raise UserError(f"{of!r} says nothing: no list of {counted(asked, 'query', 'queries')} holds both groups")
    spec = {"by": by, "seed": seed, "confidence": CONFIDENCE, "most": len(order)}
    spec |= audit_provenance(collection, [run.spec])
    a, b = pairs[0]
    return SequentialAudit(
        spec, run.name, repr(of), a, b, until, asked, answered, len(names), sequence.deviation, tuple(looks)
    )  # fmt: skip


def decided(look: Look, until: float) -> Decision:
    """Say what a look decides; both numbers in the estimand's own unit."""
    if look.low > 0 or look.high < 0:
        return "tilted"
    return "level" if -until <= look.low and look.high <= until else "inconclusive"


def _bounded(measure: str | Estimand) -> GroupEstimand:
    """A question of two groups whose answer is a mean over queries with bounds."""
    of = estimand(measure).complete()
    if not isinstance(of, GroupEstimand) or of.directed or not all(map(math.isfinite, of.bounds)):
        raise UserError(f"{of!r} is no mean over queries with bounds, which a sequential audit needs; ask for {USUAL}")
    return of


def _batches(
    collection: Collection, ranker: Ranker, names: Sequence[str], asked: tuple[GroupEstimand, Groups, Pair]
) -> Iterator[tuple[Run, list[float]]]:
    """Ask some queries at a time; what was found, and the value of each query that says something."""
    of, groups, pair = asked
    first, second = (groups.names.index(name) for name in pair)
    for start in range(0, len(names), BATCH):
        with warnings.catch_warnings():
            if start:  # each batch would say the same again
                warnings.simplefilter("ignore", DataWarning)
            run = ranker.rank(collection.only_queries(names[start : start + BATCH]))
        rows = collection_rows(run, collection)[run.docs]
        code: Any = np.where(rows >= 0, groups.code[rows], -1)
        total, weight = of.columns(Ranking(run.offsets, run.scores), code == first, code == second)
        yield run, (total[weight > 0] / weight[weight > 0]).tolist()
