"""Engines that are up and ranked by asking them: what all of them share."""

from __future__ import annotations

import math
import queue
import random
import threading
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.formats.score_order import ENGINE_WAYS_ON, SCORE_ORDERS, directions, order_fault
from ranktilt.data.formats.search_responses import (
    MAX_FAILURES,
    allowed_failures,
    hits_of,
    is_response,
    response_fault,
    too_many_failures,
)
from ranktilt.data.labels import no_overlap
from ranktilt.data.run import Run, collection_rows
from ranktilt.errors import DataWarning, UserError, counted, shorten
from ranktilt.progress import report
from ranktilt.rankers.base import (
    DEPTH,
    Rows,
    Scores,
    TemplatedQueries,
    require_choices,
    require_depth,
    require_range,
)
from ranktilt.rankers.self_exclusion import exclusion_spec, self_documents

Hits = list[tuple[Any, float]]
"""What names a document, and its score; once `LiveEngine.name_documents` has run, names are ids."""
Ask = Callable[[Any, int], Any]
"""Takes a query's text and a depth, returns a list of (document id, score), best first, or an engine's response."""
_ODD = {
    "duplicates": "of a document that came before in the same answer; the first place counts",
    "unknown": "of a document that is not in the collection; their places are kept",
    "not_finite": "with a score that is no finite number; the order counts",
    "rising": "with a score above the one before; the order counts",
}
"""What is counted of results, and warned of."""
_FEWEST = 3
_MANY = 10
PAUSES = (0.5, 1.0)
"""Seconds, give or take half, before a call that failed is tried for the second and the third time."""
_FIRST = 20.0
"""Seconds that other calls wait at most for the first one."""
_SHORTEST = 0.001
"""Seconds of the shortest time limit."""
_TURN = 0.2
"""Seconds of one wait: once polars is imported, Ctrl-C does not interrupt one without an end."""
_WIDTH = 200


@dataclass(frozen=True, kw_only=True)
class LiveEngine(TemplatedQueries):
    """A ranker that asks an engine, whose order is authoritative: scores are made to fall with the rank.

    `concurrency` calls run at once. A query without an answer within `timeout` seconds, all
    attempts together, has failed, whatever its engine's client waits for. `max_failures` is the
    share of the queries that may fail after three attempts: they are left out of the run, listed in
    its spec under ``failed`` and warned of, never counted as empty. One more, and there is no run.
    A response that says it is partial fails too. Results that the collection does not hold keep
    their places, as in a saved run.

    `score_order` ``"ascending"`` is for distances, of which the smaller is better; ``"rank"`` reads
    the order alone. Without it, scores that rise in most answers are refused.
    """

    reranks: ClassVar[bool] = False
    ways_on: ClassVar[str] = ENGINE_WAYS_ON
    """How to say what scores mean that cannot be read as they are."""

    k: int = DEPTH
    exclude_self: bool | None = None
    concurrency: int = 8
    timeout: float = 120.0
    max_failures: float = MAX_FAILURES
    score_order: str | None = None

    def __post_init__(self) -> None:
        require_depth(self.name, self.k)
        if self.score_order is not None:
            require_choices(self, score_order=SCORE_ORDERS)
        self.require_template()
        require_range(self, "concurrency", least=1)
        require_range(self, "timeout", least=_SHORTEST)
        require_range(self, "max_failures", least=0, most=1)

    @property
    def calls_at_once(self) -> int:
        """How many calls the engine bears at once."""
        return self.concurrency

    @abstractmethod
    def connected(
        self, collection: Collection, depth: int
    ) -> AbstractContextManager[tuple[Ask, Mapping[str, Any]]]:
        """Make the engine ready to be asked for up to `depth` documents a query; also what a spec should say of it."""

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Ask the engine for each judged query; what failed or was odd is warned of.

        ``spec["failed"]`` gives the reason of each query that failed, ``spec["answers"]`` counts
        what was odd.
        """
        if run is not None:
            raise UserError(f"{self!r} queries an engine and cannot re-rank; put it first")
        own = self_documents(collection, self.exclude_self)
        depth = self.k + max(map(len, own.values()), default=0)
        with self.connected(collection, depth) as (ask, said):
            unnamed_replies = self.ask_all(collection, ask, depth)
        replies, naming = self.name_documents(unnamed_replies, collection)
        made = {
            "ranker": repr(self),
            "ranktilt": __version__,
            "collection": collection.spec.get("path"),
        }
        told = {
            **self.template_spec(collection.queries_with_judgments["text"]),
            **exclusion_spec(own),
        }
        return self._run(collection, replies, own, {**made, **said, **naming, **told})

    def read_answer(self, answer: Any, query: str) -> Hits:
        """Return the documents of one answer, best first; `UserError` where it has another shape."""
        return checked(answer, query, repr(self))

    def name_documents(
        self, replies: Sequence[EngineReply], collection: Collection
    ) -> tuple[Sequence[EngineReply], Mapping[str, Any]]:
        """Return all replies with ids in place of other names, and what the spec should say of that."""
        return replies, {}

    def ask_all(self, collection: Collection, ask: Ask, depth: int) -> list[EngineReply]:
        """Ask for every judged query; too many failures end it."""
        texts, names = (
            self.read_queries(collection.queries_with_judgments["text"]).to_list(),
            collection.queries_with_judgments["id"].to_list(),
        )
        total = len(texts)
        allowed = allowed_failures(total, self.max_failures)
        found, failed = list[EngineReply](), 0

        def hits(number: int) -> Hits:
            return self.read_answer(ask(texts[number], depth), names[number])

        with closing(ask_engine(hits, total, self.calls_at_once, timeout=self.timeout)) as coming:
            for done, reply in enumerate(coming, start=1):
                failed += bool(reply.failure)
                found.append(reply)
                nobody = failed == done >= min(max(self.concurrency, _FEWEST), total)
                if reply.failure and (failed > allowed or nobody):
                    message = too_many_failures(failed, total, self.max_failures, tried=done)
                    raise UserError(
                        f"{self!r}: {message}: {names[reply.number]!r}: {reply.failure}"
                    )
                if done % max(total // 100, 1) == 0 or done == total:
                    report(f"{self!r}: asking", done, total)
        return sorted(found, key=lambda reply: reply.number)

    def _run(
        self,
        collection: Collection,
        replies: Sequence[EngineReply],
        own: Mapping[int, Rows],
        spec: Mapping[str, Any],
    ) -> Run:
        """Make the run of the answers, and warn of what is odd about them."""
        names = collection.queries_with_judgments["id"].to_list()
        rows = [
            (reply.number, names[reply.number], *hit) for reply in replies for hit in reply.hits
        ]
        columns = {
            "number": pl.Int64,
            "query_id": pl.String,
            "doc_id": pl.String,
            "score": pl.Float64,
        }
        given = self._oriented(pl.DataFrame(rows, columns, orient="row"))
        score, before = pl.col("score"), pl.col("score").shift().over("number")
        hits = given.unique(["number", "doc_id"], keep="first", maintain_order=True)
        hits = hits.with_columns(known=pl.col("doc_id").is_in(collection.ids.implode()))
        odd = {
            "duplicates": given.filter(~pl.struct("number", "doc_id").is_first_distinct()),
            "unknown": hits.filter(~pl.col("known")),
            "not_finite": hits.filter(~score.is_finite()),
            "rising": hits.filter(score.is_finite() & before.is_not_nan() & (score > before)),
            "tied": hits.filter(before.is_not_nan() & (score == before)),
        }
        answered = [reply for reply in replies if not reply.failure]
        found = hits.group_by("number", maintain_order=True).agg("score")
        sizes = dict(zip(found["number"], found["score"].list.len(), strict=True))
        lengths = [sizes.get(reply.number, 0) for reply in answered]
        wanted = min(self.k, collection.docs.height)
        counts = {kind: frame.height for kind, frame in odd.items()}
        counts |= {"fewer": sum(length < wanted for length in lengths), "empty": lengths.count(0)}
        failed = {names[reply.number]: reply.failure for reply in replies if reply.failure}
        said = {"answers": {kind: n for kind, n in counts.items() if n}, "failed": failed}
        said |= (
            {"score_order": self.score_order} if self.score_order in ("ascending", "rank") else {}
        )
        unordered = {reply.number for reply in replies if reply.is_unordered}
        scores = [
            np.array(query_scores) if number in unordered else falling(query_scores)
            for number, query_scores in found.iter_rows()
        ]
        made = hits.with_columns(score=np.concatenate([np.empty(0), *scores]))
        run = Run.from_frame(
            made, spec={**spec, **{name: value for name, value in said.items() if value}}
        )
        collection_rows(run, collection)  # which refuses an id that several documents share
        if hits.height and not hits["known"].any():
            raise UserError(f"{self!r}: {no_overlap(run.ids, collection)}")
        if answered and not hits.height:
            raise UserError(f"{self!r}: no query returned any document; is the index empty?")
        for line in self._lines(odd, failed, lengths, wanted):
            warnings.warn(f"{self!r}: {line}", DataWarning, stacklevel=3)
        own_rows = [
            (number, collection.ids[row]) for number, rows in own.items() for row in rows.tolist()
        ]
        left_out = pl.DataFrame(own_rows, {"number": pl.Int64, "doc_id": pl.String}, orient="row")
        kept = made.join(left_out, on=["number", "doc_id"], how="anti", maintain_order="left")
        kept = kept.group_by("number", maintain_order=True).head(self.k)
        return Run.from_frame(
            kept, queries=[names[reply.number] for reply in answered], spec=run.spec
        )

    def _oriented(self, given: pl.DataFrame) -> pl.DataFrame:
        """Give the answers scores of which the larger is better; refuse those that cannot be such scores."""
        number, scores = given["number"].to_numpy(), given["score"].to_numpy()
        places = np.arange(given.height)
        if self.score_order == "rank":
            return given.with_columns(score=pl.Series(-places, dtype=pl.Float64))
        finite = np.isfinite(scores)
        if self.score_order != "score":
            runs_one_way = directions(number[finite], places[finite], scores[finite])
            if message := order_fault(runs_one_way, self.score_order, ways_on=self.ways_on):
                raise UserError(f"{self!r}: {message}")
            if given.height and not finite.any():
                raise UserError(f"{self!r}: no result has a finite number as score; {self.ways_on}")
        return (
            given.with_columns(score=-pl.col("score")) if self.score_order == "ascending" else given
        )

    def _lines(
        self,
        odd: Mapping[str, pl.DataFrame],
        failed: Mapping[str, str],
        lengths: Sequence[int],
        wanted: int,
    ) -> Iterator[str]:
        """What is warned of."""
        if failed:
            name, reason = next(iter(failed.items()))
            queries = counted(len(failed) + len(lengths), "query", "queries")
            yield f"{len(failed)} of {queries} failed, not in the run (first: {name!r}: {reason})"
        for kind, what in _ODD.items():
            if n := odd[kind].height:
                document, query = odd[kind].select("doc_id", "query_id").row(0)
                yield f"{counted(n, 'result', 'results')} {what} (first: {document!r} for query {query!r})"
        most = max(lengths, default=0)
        if 0 < most < wanted and lengths.count(most) > len(lengths) / 2 and len(lengths) >= _MANY:
            yield f"no query got more than {most:,} of the {wanted:,} documents asked for, as if cut there"


@dataclass(frozen=True)
class EngineReply:
    """What came of one query: documents and scores, or why there are none."""

    number: int
    hits: Sequence[tuple[Any, float]] = ()
    failure: str = ""
    is_unordered: bool = False
    """Whether its scores alone count, so that equal ones are ties."""


def scores_from_ranks(replies: Sequence[EngineReply]) -> list[EngineReply]:
    """Return the replies of an engine that gives no scores: those of each query fall by rank."""
    ranked = []
    for reply in replies:
        hits = [(name, 0.0 - rank) for rank, (name, _) in enumerate(reply.hits)]
        ranked.append(replace(reply, hits=hits))
    return ranked


def ask_engine(
    ask: Callable[[int], Hits], total: int, concurrency: int, *, timeout: float = math.inf
) -> Generator[EngineReply, None, None]:
    """Ask queries by number, from 0 on, in threads, and yield what comes of each, in any order.

    Only a `UserError` ends everything; any other error is a failed call, and so is one of more than
    `timeout` seconds. Closing the iterator asks nothing more. The first call is answered before
    others begin: a function makes its client there, and two at once would make two.
    """
    calls = _EngineCalls(ask, total)
    for thread in range(min(concurrency, total)):
        calls.start_thread(is_first=thread == 0)
    try:
        left = total
        while left:
            late = calls.give_up(timeout)
            for number in late:
                yield EngineReply(number, failure=f"no answer within {timeout:g} s")
            left -= len(late)
            with suppress(queue.Empty):
                reply = calls.replies.get(timeout=min(_TURN, timeout))
                if isinstance(reply, UserError):
                    raise reply
                yield reply
                left -= 1
    finally:
        calls.closed.set()


class _EngineCalls:
    """Calls of an engine in threads, of which one that does not end is left to itself, and another takes its place."""

    def __init__(self, ask: Callable[[int], Hits], total: int) -> None:
        self._ask = ask
        self._todo = queue.SimpleQueue[int]()
        for number in range(total):
            self._todo.put(number)
        self._under_way = dict[int, float]()  # when each call began
        self._begun = threading.Event()
        self.closed = threading.Event()
        self.replies = queue.SimpleQueue[EngineReply | UserError]()

    def start_thread(self, *, is_first: bool) -> None:
        """Start a thread, which does not hold up the end of the program if it hangs."""
        threading.Thread(target=self._work, args=(is_first,), daemon=True).start()

    def give_up(self, timeout: float) -> list[int]:
        """Return the numbers of calls that take too long, whose replies will not count."""
        began_before = time.monotonic() - timeout
        late = [number for number, began in self._under_way.copy().items() if began < began_before]
        # Whoever takes a call out of the dictionary, here or where it has ended, replies.
        given_up = [number for number in late if self._under_way.pop(number, None) is not None]
        for _ in given_up:
            self._begun.set()
            self.start_thread(is_first=False)
        return given_up

    def _work(self, is_first: bool) -> None:
        if not is_first:
            self._begun.wait(_FIRST)
        with suppress(queue.Empty):
            while not self.closed.is_set():
                number = self._todo.get_nowait()
                self._under_way[number] = time.monotonic()
                reply = _reply(self._ask, number)
                if self._under_way.pop(number, None) is None:
                    return
                self.replies.put(reply)
                self._begun.set()


def _reply(ask: Callable[[int], Hits], number: int) -> EngineReply | UserError:
    for pause in (*PAUSES, 0.0):
        try:
            return EngineReply(number, ask(number))
        except UserError as error:
            return error
        except PartialResponse as error:
            failure = str(error)
        except BaseException as error:  # whatever it is, its thread must not die of it
            failure = error_summary(error)
        time.sleep(pause * random.uniform(0.5, 1.5))
    return EngineReply(number, failure=failure)


def error_summary(error: BaseException, hide: Callable[[str], str] = str) -> str:
    """Say in one line what kind of error it is and its message, white space folded, at most 200 characters.

    `hide` takes out what must not be shown, before the message is cut, or the beginning of a token
    could stay. gRPC's and Milvus's errors call themselves ``<…>`` and hold their message in an
    attribute.
    """
    name, text = type(error).__name__, str(error)
    if text.startswith("<"):
        text = str(getattr(error, "message", "") or text)
    folded = " ".join(hide(text).split())
    whole = folded if folded.startswith(f"{name}(") else f"{name}: {folded}" if folded else name
    return whole if len(whole) <= _WIDTH else whole[: _WIDTH - 1] + "…"


class PartialResponse(Exception):
    """An engine answered with an error, or not in full."""


def checked(answer: Any, query: str, who: str) -> Hits:
    """Return the hits of one answer in the engine's order: of a list of ids and scores, or of the engine's response.

    A response that is an error or partial is a failed call; any other answer is a `UserError`.
    """
    response = getattr(answer, "body", answer)  # of Elasticsearch's client
    if is_response(response):
        if fault := response_fault(response):
            raise PartialResponse(fault)
        answer = [_pair(hit) for hit in hits_of(response)]
    hits = answer if isinstance(answer, list | tuple) else [answer]
    for hit in hits:
        pair = isinstance(hit, list | tuple) and len(hit) == 2 and isinstance(hit[0], str)
        if not pair or not isinstance(hit[1], Real | np.number) or isinstance(hit[1], bool):
            raise UserError(
                f"{who}: query {query!r}: expected a list of (document id, score), got {shorten(hit)}"
            )
    return [(str(document), float(score)) for document, score in hits]


def _pair(hit: Any) -> Any:
    """A hit's id and score, NaN where it has none because it was sorted by something else; any other hit as it is."""
    if not isinstance(hit, Mapping):
        return hit
    score = hit.get("_score", hit.get("score"))
    return hit.get("_id", hit.get("id")), math.nan if score is None else score


def falling(scores: Sequence[float]) -> Scores:
    """Make scores, in the engine's order, fall strictly, also as float32: trec_eval would break a tie there by id.

    A score that is not finite, or not below the one before, becomes the next number below that one;
    those ahead of the first finite score lie just above it. 0, −1, −2, … where none is finite, or
    no float32 is left.
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
