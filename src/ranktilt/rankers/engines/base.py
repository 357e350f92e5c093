"""Engines that are up and ranked by asking them: what all of them share."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from itertools import count
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ranktilt._version import __version__
from ranktilt.collection import Collection
from ranktilt.datasets.labels import no_overlap
from ranktilt.errors import DataWarning, UserError, counted, shorten
from ranktilt.progress import report
from ranktilt.rankers.base import DEPTH, Rows, Scores, require_choices, require_depth
from ranktilt.rankers.engines.client import CallLimits, EngineReply, ask_engine
from ranktilt.rankers.query_template import TemplatedQueries
from ranktilt.rankers.self_exclusion import exclusion_spec, self_documents
from ranktilt.run import Run, collection_rows

UNKNOWN = ("drop", "keep")
Hits = list[tuple[str, float]]
EXPECTED = "a list of (document id, score)"
ODD = ("duplicates", "unknown", "not_finite", "rising", "tied", "fewer", "empty")
"""What is counted: the document came before; it is not in the collection; the score is no number; it is above the one
before, or equal; queries with fewer results than asked for (or than there are documents), or none."""
_FEWEST = 3
_SHOWN = 3
_MANY = 10


@dataclass(frozen=True)
class Session:
    """An engine that is ready to be asked."""

    ask: Callable[[list[str], int], Sequence[Any]]
    """Takes texts of queries and a depth, returns for each a list of (document id, score), best first."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """What the run's spec should say of the engine."""
    batch: int = 1  # most queries a call
    concurrency: int | None = None  # calls at once; as many as the ranker says where None


@dataclass(frozen=True, kw_only=True)
class LiveEngine(TemplatedQueries):
    """A ranker that asks an engine, whose order is authoritative: scores are made to fall with the rank.

    `concurrency` calls run at once, each given up after `timeout` seconds, and a query is worth `attempts` of them;
    between them it waits half a second, a second, two, … with jitter, or as long as a header Retry-After says.
    `max_failures` is the share of the queries that may fail after all attempts: they are left out of the run, listed in
    its spec under ``failed`` and warned of, never counted as empty. One more, and there is no run. `unknown` results,
    which the collection does not hold, keep their places, as in a saved run, or are left out (``drop``), so that the
    others move up.
    """

    reranks: ClassVar[bool] = False
    live: ClassVar[bool] = True
    """Ranks what it has indexed, in its own way: identical texts may get different scores."""

    k: int = DEPTH
    exclude_self: bool | None = None
    concurrency: int = 8
    timeout: float = 30.0
    attempts: int = 3
    max_failures: float = 0.05
    unknown: str = "keep"

    def __post_init__(self) -> None:
        require_depth(self.name, self.k)
        self.require_template()
        for option in ("concurrency", "attempts"):
            if getattr(self, option) < 1:
                raise UserError(f"{self.name}: expected {option} of at least 1, got {getattr(self, option)}")
        if not 0 < self.timeout <= 86_400:
            raise UserError(f"{self.name}: expected a timeout of up to 86400 seconds, got {self.timeout:g}")
        if not 0 <= self.max_failures <= 1:
            raise UserError(f"{self.name}: expected max_failures between 0 and 1, got {self.max_failures:g}")
        require_choices(self, unknown=UNKNOWN)

    @abstractmethod
    def connected(self, collection: Collection, depth: int) -> AbstractContextManager[Session]:
        """Make the engine ready to be asked for up to `depth` documents a query."""

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Ask the engine for each judged query, its documents being what the engine should have indexed.

        The run is without the queries that failed: ``spec["failed"]`` gives each one's reason, ``spec["answers"]``
        counts what was odd; a `DataWarning` tells of both. `UserError` if too many queries fail, an answer is of a
        wrong type, or nothing that is in the collection comes back.
        """
        if run is not None:
            raise UserError(f"{self!r} searches an engine and re-ranks nothing; put it first")
        own = self_documents(collection, self.exclude_self)
        depth = self.k + max(map(len, own.values()), default=0)
        with self.connected(collection, depth) as session:
            answers = _Gathering(self, collection).of(session, depth)
        made = {"ranker": repr(self), "ranktilt": __version__, "collection": collection.spec.get("path")}
        told = {**self.template_spec(collection.judged["text"]), **exclusion_spec(collection, own, self.exclude_self)}
        return answers.run(own, {**made, **session.spec, **told})


@dataclass
class Oddities:
    """Counts over all answers: results, those of the query that got most, and what is odd (`ODD`), each first one."""

    results: int = 0
    most: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def note(self, kind: str, document: str, query: str) -> None:
        """Count one, and keep the place of the first."""
        self.counts[kind] += 1
        self.first.setdefault(kind, f"{document!r} for query {query!r}")


class _Gathering:
    """Answers on their way to a run."""

    def __init__(self, ranker: LiveEngine, collection: Collection) -> None:
        self.ranker, self.collection = ranker, collection
        self.names: list[str] = collection.judged["id"].to_list()
        self.replies: dict[int, list[tuple[str, float]]] = {}
        self.failed: dict[int, str] = {}
        self.repeated = 0
        self.wanted = min(ranker.k, collection.docs.height)

    def of(self, session: Session, depth: int) -> _Gathering:
        """Ask for every judged query; too many failures end it."""
        ranker, total = self.ranker, len(self.names)
        texts = ranker.read_queries(self.collection.judged["text"]).to_list()
        limits, at_once = CallLimits(ranker.timeout, ranker.attempts), session.concurrency or ranker.concurrency
        label = f"{ranker!r}: asking"

        def ask(part: list[int]) -> Sequence[Any]:
            return session.ask([texts[n] for n in part], depth)

        with closing(ask_engine(ask, total, limits, concurrency=at_once, batch=session.batch)) as coming:
            for done, reply in enumerate(coming, start=1):
                self._take(reply)
                if done % max(total // 100, 1) == 0 or done == total:
                    report(label, done, total)
        return self

    def _take(self, reply: EngineReply[Any]) -> None:
        self.repeated += reply.repeated
        if not reply.failure:
            self.replies[reply.number] = checked(reply.value, self.names[reply.number], repr(self.ranker))
            return
        self.failed[reply.number] = reply.failure
        total, allowed = len(self.names), math.floor(self.ranker.max_failures * len(self.names) + 1e-9)
        hopeless = not self.replies and len(self.failed) >= min(max(self.ranker.concurrency, _FEWEST), total)
        if len(self.failed) <= allowed and not hopeless:
            return
        failures, queries = len(self.failed), counted(total, "query", "queries")
        after = f"failed after {counted(self.ranker.attempts, 'attempt', 'attempts')}"
        if hopeless:
            raise UserError(
                f"{self.ranker!r}: the first {failures} of {queries} {after}, none got an answer: {self._why()}"
            )
        rule = f"max_failures={self.ranker.max_failures:g} allows {allowed}"
        raise UserError(f"{self.ranker!r}: {failures} of {queries} {after}, {rule}: {self._why()}")

    def _why(self) -> str:
        """The first failed queries and why, those with one reason together."""
        reasons: dict[str, list[str]] = {}
        for number in sorted(self.failed):
            reasons.setdefault(self.failed[number], []).append(self.names[number])
        said = []
        for reason, names in list(reasons.items())[:2]:
            more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
            said.append(f"{', '.join(map(repr, names[:_SHOWN]))}{more}: {reason}")
        return "; ".join(said) + ("; …" if len(reasons) > 2 else "")

    def run(self, own: Mapping[int, Rows], spec: Mapping[str, Any]) -> Run:
        """Make the run of the answers, and warn of what is odd about them."""
        known = self.collection.memo("row of id", lambda: dict(zip(self.collection.ids, count(), strict=False)))
        odd, strange = Oddities(), dict[str, int]()
        docs, scores = [np.empty(0, np.int64)], [np.empty(0)]
        for number, hits in sorted(self.replies.items()):
            kept = sifted(hits, self.names[number], known, odd)
            odd.counts["fewer"] += len(kept) < self.wanted
            rows = [known[d] if d in known else -1 - strange.setdefault(d, len(strange)) for d, _ in kept]
            found, values = self._cut(np.array(rows, np.int64), falling([s for _, s in kept]), own.get(number))
            docs.append(found)
            scores.append(values)
        self._check(odd, pl.Series("id", list(strange), dtype=pl.String))
        for line in self._lines(odd):
            warnings.warn(f"{self.ranker!r}: {line}", DataWarning, stacklevel=3)
        names = tuple(self.names[number] for number in sorted(self.replies))
        table, ids = np.concatenate(docs), self.collection.ids
        if (table < 0).any():
            table, ids = (
                np.where(table < 0, len(ids) - 1 - table, table),
                pl.concat([ids, pl.Series(ids.name, list(strange))]),
            )
        offsets = np.cumsum([len(found) for found in docs])
        return Run(names, offsets, table.astype(np.int32), np.concatenate(scores), ids, {**spec, **self._said(odd)})

    def _said(self, odd: Oddities) -> dict[str, Any]:
        """What the run's spec says of the answers."""
        counts = {kind: odd.counts[kind] for kind in ODD if odd.counts[kind]}
        counts |= {"repeated": self.repeated} if self.repeated else {}
        failed = {self.names[number]: reason for number, reason in sorted(self.failed.items())}
        return {name: said for name, said in (("answers", counts), ("failed", failed)) if said}

    def _cut(self, rows: Rows, scores: Scores, own: Rows | None) -> tuple[Rows, Scores]:
        keep = np.ones(len(rows), dtype=bool) if self.ranker.unknown == "keep" else rows >= 0
        if own is not None:
            keep &= ~np.isin(rows, own)
        return rows[keep][: self.ranker.k], scores[keep][: self.ranker.k]

    def _check(self, odd: Oddities, strange: pl.Series) -> None:
        """Refuse answers without any known document, and ids that several documents share."""
        unknown_only = Run(
            (), np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0), strange, {"file": self.ranker}
        )
        collection_rows(unknown_only, self.collection)
        if odd.results and odd.results == odd.counts["unknown"]:
            raise UserError(f"{self.ranker!r}: {no_overlap(strange, self.collection)}")
        if self.replies and not odd.results:
            raise UserError(f"{self.ranker!r}: no query was answered with any document; is the index empty?")

    def _lines(self, odd: Oddities) -> Iterator[str]:
        if self.failed:
            queries = counted(len(self.names), "query", "queries")
            yield f"{len(self.failed)} of {queries} failed, not in the run: {self._why()}"
        left = "their places are kept" if self.ranker.unknown == "keep" else "left out, the others move up"
        said = {
            "duplicates": "of a document that came before in the same answer; the first place counts",
            "unknown": f"of a document that is not in the collection; {left}",
            "not_finite": "with a score that is no finite number; the order counts",
            "rising": "with a score above the one before; the order counts",
        }
        for kind, what in said.items():
            if n := odd.counts[kind]:
                yield f"{counted(n, 'result', 'results')} {what} (first: {odd.first[kind]})"
        at_most = sum(len(hits) == odd.most for hits in self.replies.values())
        if 0 < odd.most < self.wanted and at_most > len(self.replies) / 2 and len(self.replies) >= _MANY:
            yield f"no query got more than {odd.most:,} of the {self.wanted:,} documents asked for, as if cut there"


def checked(answer: Any, query: str, who: str) -> Hits:
    """Check the types of one answer: pairs of a string and a number, in the engine's order; returns them.

    `query` is the query's id and `who` the ranker, for the message of the `UserError`.
    """
    if not isinstance(answer, list | tuple):
        raise UserError(f"{who}: query {query!r}: expected {EXPECTED}, got {_described(answer)}")
    for rank, hit in enumerate(answer, start=1):
        fault = _fault(hit)
        if fault:
            raise UserError(f"{who}: query {query!r}, result {rank}: {fault}")
    return [(str(document), float(score)) for document, score in answer]


def _fault(hit: Any) -> str:
    if not (isinstance(hit, list | tuple) and len(hit) == 2):
        return f"expected a pair (document id, score), got {_described(hit)}"
    document, score = hit
    if not isinstance(document, str):
        hint = "; str(id) makes one" if isinstance(document, Real) else ""
        return f"expected the document id as a string, got {_described(document)}{hint}"
    if not isinstance(score, Real | np.number) or isinstance(score, bool):
        return f"expected the score as a number, got {_described(score)}"
    return ""


def _described(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__} {shorten(value, 60)}"


def sifted(hits: Hits, query: str, known: Container[str], odd: Oddities) -> Hits:
    """Keep each document of an answer at its first place, unknown ones too, and count in `odd` what is odd."""
    kept: dict[str, float] = {}
    before = math.nan
    for document, score in hits:
        if document in kept:
            odd.note("duplicates", document, query)
            continue
        if document not in known:
            odd.note("unknown", document, query)
        if not math.isfinite(score):
            odd.note("not_finite", document, query)
        elif score > before:
            odd.note("rising", document, query)
        odd.counts["tied"] += score == before
        kept[document] = before = score
    odd.results += len(kept)
    odd.most = max(odd.most, len(kept))
    odd.counts["empty"] += not kept
    return list(kept.items())


def falling(scores: Sequence[float]) -> Scores:
    """Make scores, in the engine's order, fall strictly, keeping their order and, where they fall, their values.

    A score that is not below the one before, or is not finite, becomes the next number below the one before. Those
    ahead of the first finite score lie just above it. 0, −1, −2, … where none is finite, or no float32 is left. They
    fall as float32 too, in which trec_eval compares scores: a tie there would be broken by id.
    """
    ranks = -np.arange(len(scores), dtype=np.float64)
    start = next((place for place, score in enumerate(scores) if math.isfinite(score)), None)
    if start is None:
        return ranks
    single, out = np.float32, [float(score) for score in scores]
    with np.errstate(over="ignore"):
        for place in reversed(range(start)):
            out[place] = float(np.nextafter(single(out[place + 1]), single(np.inf)))
        for place in range(start + 1, len(out)):
            if not single(out[place]) < single(out[place - 1]) or math.isinf(out[place]):
                out[place] = float(np.nextafter(single(out[place - 1]), single(-np.inf)))
        made = np.array(out)
        narrow = made.astype(np.float32)
    return made if np.isfinite(narrow).all() and (np.diff(narrow) < 0).all() else ranks
