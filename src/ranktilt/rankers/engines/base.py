"""Live engines: rankers that ask a running search engine for each query.

A *hit* is a document in the answer to a query, with its score. The *depth* is the number of hits
that are asked for. A result is *odd* if a run cannot hold it as it is, such as a document that the
collection lacks; odd results are counted, and never silently dropped. The *spec* of a run says how
it was made, and what was odd.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar
from uuid import UUID

import numpy as np
import polars as pl

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.formats.responses.search_responses import (
    MAX_FAILURES,
    allowed_failures,
    hits_of,
    is_response,
    response_fault,
    too_many_failures,
)
from ranktilt.data.formats.runs.score_order import (
    ENGINE_ORDER_HINT,
    SCORE_ORDERS,
    list_directions,
    order_fault,
)
from ranktilt.data.labels.labels import no_overlap
from ranktilt.data.runs.run import Run, collection_rows
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
from ranktilt.rankers.engines.calls import EngineReply, Hits, PartialResponse, ask_engine
from ranktilt.rankers.self_exclusion import exclusion_spec, self_documents

Ask = Callable[[Any, int], Any]
"""Function from the text of a query and a depth to an answer.

The answer is a list of (document id, score), best first, or an engine's response.
"""
_ODD_RESULTS = {
    "duplicates": "for a document that is already in the same answer; its first rank counts",
    "unknown": "for a document that is not in the collection; their ranks are kept",
    "not_finite": "with a score that is not a finite number; the order counts",
    "rising": "with a higher score than the result before; the order counts",
}
"""Kinds of odd results, with the words that follow their number in a warning."""
_FEWEST_FAILURES = 3
"""Fewest failed calls after which no more are made, if no call has succeeded."""
_FEWEST_ANSWERS = 10
"""Fewest answers whose common length is taken for a limit of the engine, and not for chance."""
MOST_REPEATS = 1000
"""Largest number of times that an engine can be asked each query."""
_SHORTEST = 0.001
"""Shortest time limit in seconds."""


@dataclass(frozen=True, kw_only=True)
class LiveEngine(TemplatedQueries):
    """A ranker that asks a running engine.

    The order of an answer counts: a score that is not below the one before it is lowered. Results
    that the collection lacks keep their ranks, as in a saved run.

    A query fails if three attempts together bring no answer within `timeout` seconds, however long
    the engine's client would wait, or if the response says that it is partial. Failed queries are
    left out of the run, never counted as empty, and listed in its spec under ``failed``, with a
    warning. If more than `max_failures` percent of the queries fail, there is no run.
    """

    reranks: ClassVar[bool] = False
    ways_on: ClassVar[str] = ENGINE_ORDER_HINT
    """Advice, at the end of an error, on how to say which scores are better."""

    k: int = DEPTH
    """Number of documents for each query."""
    exclude_self: bool | None = None
    """Whether a query's own document is left out, for queries that are documents themselves.

    None: it is left out if most queries have the id of a document and share most of its words.
    """
    concurrency: int = 8
    """Number of calls that run at the same time."""
    timeout: float = 120.0
    """Seconds for a query, with all attempts."""
    max_failures: float = MAX_FAILURES
    """Percentage of queries that may fail."""
    score_order: str | None = None
    """How to read scores, one of `SCORE_ORDERS`.

    ``"ascending"`` is for distances, which are better if smaller; ``"rank"`` reads the order alone.
    None: larger scores are better, and scores that rise with the rank in most answers are refused.
    """
    repeats: int = 1
    """How often every query is asked, for an engine whose answers are random."""

    def __post_init__(self) -> None:
        require_depth(self.name, self.k)
        if self.score_order is not None:
            require_choices(self, score_order=SCORE_ORDERS)
        self.require_template()
        require_range(self, "concurrency", least=1)
        require_range(self, "repeats", least=1, most=MOST_REPEATS)
        require_range(self, "timeout", least=_SHORTEST)
        require_range(self, "max_failures", least=0, most=100)

    @property
    def calls_at_once(self) -> int:
        """Number of calls that run at the same time."""
        return self.concurrency

    @abstractmethod
    def connected(
        self, collection: Collection, depth: int
    ) -> AbstractContextManager[tuple[Ask, Mapping[str, Any]]]:
        """Prepare the engine for requests of up to `depth` documents.

        Gives the function that asks it, and a description of the engine for a run's spec.
        """

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Ask the engine for each judged query, and warn of failures and odd results.

        The run's ``spec["failed"]`` has the reason for each query that failed, and
        ``spec["answers"]`` the number of odd results of each kind.
        """
        if self.repeats > 1:
            raise UserError(
                f"{self!r}: only audit and rank ask an engine several times; omit "
                f"repeats={self.repeats}"
            )
        return self._ask_repeats(collection, run)

    def rank_repeats(self, collection: Collection, run: Run | None = None) -> Run:
        """Ask the engine for each judged query, `repeats` times one after the other."""
        return self._ask_repeats(collection, run)

    def _ask_repeats(self, collection: Collection, run: Run | None) -> Run:
        """Return the run of the first round of questions, with the runs of all others in it."""
        if run is not None:
            raise UserError(f"{self!r} queries an engine and cannot re-rank; put it first")
        # A query that is a document itself would find itself first. Such documents are left out
        # afterwards, so that many more results are asked for.
        excluded = self_documents(collection, self.exclude_self)
        depth = self.k + max(map(len, excluded.values()), default=0)
        with self.connected(collection, depth) as (ask, engine_spec):
            rounds = [self.ask_all(collection, ask, depth) for _ in range(self.repeats)]
        runs = []
        for number, unnamed_replies in enumerate(rounds, start=1):
            replies, naming_spec = self.name_documents(unnamed_replies, collection)
            spec = {
                "ranker": repr(self),
                "ranktilt": __version__,
                "collection": collection.spec.get("path"),
                **engine_spec,
                **naming_spec,
                **self.template_spec(collection.queries_with_judgments["text"]),
                **exclusion_spec(excluded),
                **({"repeat": number} if self.repeats > 1 else {}),
            }
            runs.append(self._run(collection, replies, excluded, spec))
        return replace(runs[0], repeats=tuple(runs[1:]))

    def read_answer(self, answer: Any, query: str) -> Hits:
        """Return the documents of an answer to the query with this id, best first.

        Raises a `UserError` for an answer of another form.
        """
        return read_hits(answer, query, repr(self))

    def name_documents(
        self, replies: Sequence[EngineReply], collection: Collection
    ) -> tuple[Sequence[EngineReply], Mapping[str, Any]]:
        """Return replies in which documents have their ids, and how they were named, for a spec.

        By default the engine's names are ids. A ranker whose engine has other names for documents,
        such as their texts, overrides this.
        """
        return replies, {}

    def ask_all(self, collection: Collection, ask: Ask, depth: int) -> list[EngineReply]:
        """Return the replies to every judged query; end with a `UserError` if too many fail."""
        names = collection.queries_with_judgments["id"].to_list()
        texts = self.read_queries(collection.queries_with_judgments["text"]).to_list()
        total = len(texts)
        allowed = allowed_failures(total, self.max_failures)
        # Calls at the same time may all fail of one short outage, so as many have to fail at least.
        fewest = min(max(self.concurrency, _FEWEST_FAILURES), total)
        replies = list[EngineReply]()
        failed = 0

        def hits(number: int) -> Hits:
            return self.read_answer(ask(texts[number], depth), names[number])

        arrivals = ask_engine(hits, total, self.calls_at_once, timeout=self.timeout)
        with closing(arrivals):
            for done, reply in enumerate(arrivals, start=1):
                failed += bool(reply.failure)
                replies.append(reply)
                # An engine that has not answered any query so far will not answer the others.
                all_failed = failed == done >= fewest
                if reply.failure and (failed > allowed or all_failed):
                    message = too_many_failures(failed, total, self.max_failures, tried=done)
                    raise UserError(
                        f"{self!r}: {message}: {names[reply.number]!r}: {reply.failure}"
                    )
                if done % max(total // 100, 1) == 0 or done == total:  # a hundred times in all
                    report(f"{self!r}: asking", done, total)
        return sorted(replies, key=lambda reply: reply.number)

    def _run(
        self,
        collection: Collection,
        replies: Sequence[EngineReply],
        excluded: Mapping[int, Rows],
        spec: Mapping[str, Any],
    ) -> Run:
        """Return the run of the answers, and warn of what is odd about them.

        `excluded` has the rows of the documents to leave out, by the index of the query. `spec` has
        how the engine was asked; what is odd about the answers is added to it.
        """
        names = collection.queries_with_judgments["id"].to_list()
        table = self._with_larger_better(_hit_table(replies, names))
        answers = _Answers.from_table(
            table,
            replies,
            collection,
            depth=min(self.k, collection.docs.height),
            is_repeat=self.repeats > 1,
        )
        entries = answers.hits.with_columns(score=_falling_scores(answers.hits, replies))
        run_spec = {**spec, **answers.spec}
        if self.score_order in ("ascending", "rank"):
            run_spec["score_order"] = self.score_order
        # This run still has the documents to leave out: all that the engine returned is checked.
        run = Run.from_frame(entries, spec=run_spec)
        collection_rows(run, collection)  # which refuses an id that several documents share
        if answers.hits.height and not answers.hits["known"].any():
            raise UserError(f"{self!r}: {no_overlap(run.ids, collection)}")
        if answers.lengths and not answers.hits.height:
            raise UserError(f"{self!r}: no query returned any document; is the index empty?")
        subject = f"{self!r}, repeat {spec['repeat']}" if "repeat" in spec else repr(self)
        for warning in answers.warnings():
            # The place in the warning is the caller of `rank` or `rank_repeats`.
            warnings.warn(f"{subject}: {warning}", DataWarning, stacklevel=4)
        entries = entries.join(
            _excluded_table(excluded, collection),
            on=["number", "doc_id"],
            how="anti",
            maintain_order="left",
        )
        return Run.from_frame(
            entries.group_by("number", maintain_order=True).head(self.k),
            queries=[names[reply.number] for reply in replies if not reply.failure],
            spec=run.spec,
        )

    def _with_larger_better(self, hits: pl.DataFrame) -> pl.DataFrame:
        """Return hits with scores that are better if larger, as `score_order` says.

        Refuses scores for which that cannot be said.
        """
        # Numbers of the rows, which rise with the rank in each query too.
        ranks = np.arange(hits.height)
        if self.score_order == "rank":
            return hits.with_columns(score=pl.Series(-ranks, dtype=pl.Float64))
        if self.score_order != "score":
            self._require_readable_scores(hits, ranks)
        is_distance = self.score_order == "ascending"
        return hits.with_columns(score=-pl.col("score")) if is_distance else hits

    def _require_readable_scores(self, hits: pl.DataFrame, ranks: Rows) -> None:
        """Refuse scores that rise with the rank, or that are no numbers."""
        number, scores = hits["number"].to_numpy(), hits["score"].to_numpy()
        is_finite = np.isfinite(scores)
        score_directions = list_directions(number[is_finite], ranks[is_finite], scores[is_finite])
        if message := order_fault(score_directions, self.score_order, hint=self.ways_on):
            raise UserError(f"{self!r}: {message}")
        if hits.height and not is_finite.any():
            raise UserError(f"{self!r}: no result has a finite number as score; {self.ways_on}")


@dataclass(frozen=True, kw_only=True)
class _Answers:
    """The hits of all queries, and what is odd about them."""

    hits: pl.DataFrame
    """Each document once a query; ``known`` marks those of the collection."""
    odd: Mapping[str, pl.DataFrame]
    """Odd hits by their kind."""
    lengths: Sequence[int]
    """Number of hits of each query that was answered."""
    failed: Mapping[str, str]
    """Reason of each query that failed, by its id."""
    depth: int
    """Number of hits that each query should have."""
    is_repeat: bool
    """Whether the queries were asked several times, and this is one repeat."""

    @classmethod
    def from_table(
        cls,
        table: pl.DataFrame,
        replies: Sequence[EngineReply],
        collection: Collection,
        *,
        depth: int,
        is_repeat: bool,
    ) -> _Answers:
        """Split a table of hits into documents, odd results and failures."""
        names = collection.queries_with_judgments["id"]
        hits = table.unique(["number", "doc_id"], keep="first", maintain_order=True)
        hits = hits.with_columns(known=pl.col("doc_id").is_in(collection.ids.implode()))
        sizes = dict(hits.group_by("number").len().iter_rows())
        lengths, failed = list[int](), dict[str, str]()
        for reply in replies:
            if reply.failure:
                failed[names[reply.number]] = reply.failure
            else:
                lengths.append(sizes.get(reply.number, 0))
        odd = _odd_hits(table, hits)
        return cls(
            hits=hits, odd=odd, lengths=lengths, failed=failed, depth=depth, is_repeat=is_repeat
        )

    @property
    def spec(self) -> dict[str, Any]:
        """Counts of odd answers, and queries that failed; kinds without any are left out."""
        counts = {kind: hits.height for kind, hits in self.odd.items()}
        counts["fewer"] = sum(length < self.depth for length in self.lengths)
        counts["empty"] = self.lengths.count(0)
        counts = {kind: count for kind, count in counts.items() if count}
        spec = {"answers": counts, "failed": dict(self.failed)}
        return {key: value for key, value in spec.items() if value}

    def warnings(self) -> Iterator[str]:
        """Yield warnings about odd answers."""
        if self.failed:
            name, reason = next(iter(self.failed.items()))
            queries = counted(len(self.failed) + len(self.lengths), "query", "queries")
            yield (
                f"{len(self.failed)} of {queries} failed and are not in the "
                f"{'repeat' if self.is_repeat else 'run'} (first: {name!r}: {reason})"
            )
        for kind, description in _ODD_RESULTS.items():
            if count := self.odd[kind].height:
                document, query = self.odd[kind].select("doc_id", "query_id").row(0)
                results = counted(count, "result", "results")
                yield f"{results} {description} (first: {document!r} for query {query!r})"
        # A limit of the engine shows as the length of most answers, which no answer exceeds.
        most = max(self.lengths, default=0)
        is_usual = self.lengths.count(most) > len(self.lengths) / 2
        if 0 < most < self.depth and is_usual and len(self.lengths) >= _FEWEST_ANSWERS:
            yield (
                f"no query got more than {most:,} of the {self.depth:,} documents requested, as "
                "if the engine cuts there"
            )


def _odd_hits(table: pl.DataFrame, hits: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return odd hits by their kind; `hits` are the hits of the table without duplicates.

    They count in the run's spec. Ties are common, so no warning names them.
    """
    is_first = pl.struct("number", "doc_id").is_first_distinct()
    score, previous = pl.col("score"), pl.col("score").shift().over("number")
    follows_number = previous.is_not_nan()  # null, and so no match, for the first hit of a query
    is_rising = score.is_finite() & follows_number & (score > previous)
    return {
        "duplicates": table.filter(~is_first),
        "unknown": hits.filter(~pl.col("known")),
        "not_finite": hits.filter(~score.is_finite()),
        "rising": hits.filter(is_rising),
        "tied": hits.filter(follows_number & (score == previous)),
    }


def _hit_table(replies: Sequence[EngineReply], names: Sequence[str]) -> pl.DataFrame:
    """Return a row for each hit: number and id of the query, id and score of the document."""
    rows = []
    for reply in replies:
        for document, score in reply.hits:
            rows.append((reply.number, names[reply.number], document, score))
    schema = {
        "number": pl.Int64,
        "query_id": pl.String,
        "doc_id": pl.String,
        "score": pl.Float64,
    }
    return pl.DataFrame(rows, schema, orient="row")


def _falling_scores(hits: pl.DataFrame, replies: Sequence[EngineReply]) -> Scores:
    """Return scores that fall with the rank.

    The scores of a reply whose hits are in no order of their own (`is_unordered`) stay as they are.
    """
    unordered = {reply.number for reply in replies if reply.is_unordered}
    scores = [np.empty(0)]  # so that there is something to join if no query has a hit
    by_query = hits.group_by("number", maintain_order=True).agg("score")
    for number, query_scores in by_query.iter_rows():
        is_unordered = number in unordered
        scores.append(
            np.array(query_scores) if is_unordered else strictly_falling_scores(query_scores)
        )
    return np.concatenate(scores)


def _excluded_table(excluded: Mapping[int, Rows], collection: Collection) -> pl.DataFrame:
    """Return the documents to leave out, as a table of the query's index and the document's id."""
    rows = []
    for number, documents in excluded.items():
        for document in documents.tolist():
            rows.append((number, collection.ids[document]))
    return pl.DataFrame(rows, {"number": pl.Int64, "doc_id": pl.String}, orient="row")


def scores_from_ranks(replies: Sequence[EngineReply]) -> list[EngineReply]:
    """Return the replies of an engine without scores, whose hits get the scores 0, −1, −2, …."""
    ranked = []
    for reply in replies:
        # 0.0 − rank and not −rank, which would make the first score −0.
        hits = [(name, 0.0 - rank) for rank, (name, _score) in enumerate(reply.hits)]
        ranked.append(replace(reply, hits=hits))
    return ranked


def read_hits(answer: Any, query: str, ranker: str) -> Hits:
    """Return the hits of an answer in its order.

    The answer is a list of ids and scores, or an engine's response. A response that is an error or
    partial raises `PartialResponse`, and the call has failed. Any other answer raises a
    `UserError`, which names the ranker and the id of the query.
    """
    response = getattr(answer, "body", answer)  # Elasticsearch's client wraps its response
    if is_response(response):
        if fault := response_fault(response):
            raise PartialResponse(fault)
        answer = [_pair(hit) for hit in hits_of(response)]
    hits = answer if isinstance(answer, list | tuple) else [answer]
    for hit in hits:
        if not _is_hit(hit):
            raise UserError(
                f"{ranker}: query {query!r}: expected a list of (document id, score), "
                f"got {shorten(hit)}"
            )
    return [(str(document), float(score)) for document, score in hits]


def _is_hit(value: Any) -> bool:
    """Return whether a value is an id with a number.

    Vector stores such as Qdrant have whole numbers or UUIDs for ids, which labels and judgments
    hold as text.
    """
    if not isinstance(value, list | tuple) or len(value) != 2:
        return False
    document, score = value
    is_number = isinstance(score, Real | np.number) and not isinstance(score, bool)
    is_id = isinstance(document, str | Integral | UUID) and not isinstance(document, bool)
    return is_id and is_number


def _pair(hit: Any) -> Any:
    """Return the id and score of a response's hit; anything else as it is.

    The score is NaN if the response has none, because the engine sorts by a field.
    """
    if not isinstance(hit, Mapping):
        return hit
    score = hit.get("_score", hit.get("score"))
    return hit.get("_id", hit.get("id")), math.nan if score is None else score


def strictly_falling_scores(scores: Sequence[float]) -> Scores:
    """Return scores that fall strictly in the engine's order, also after rounding to float32.

    trec_eval reads scores as float32, and would break a tie by id. A score that is not finite, or
    not below the previous one, becomes the next float32 below the previous one. Scores before the
    first finite one become the next numbers above it. If no score is finite, or if float32 has no
    further number, the scores are 0, −1, −2, ….
    """
    ranks = -np.arange(len(scores), dtype=np.float64)  # negative, so that they fall
    is_finite = np.isfinite(np.array(scores, dtype=np.float64))
    if not is_finite.any():
        return ranks
    first_finite = int(is_finite.argmax())
    float32 = np.float32
    numbers = [float(score) for score in scores]
    with np.errstate(over="ignore"):
        for rank in reversed(range(first_finite)):
            numbers[rank] = float(np.nextafter(float32(numbers[rank + 1]), float32(np.inf)))
        for rank in range(first_finite + 1, len(numbers)):
            previous = float32(numbers[rank - 1])
            if not float32(numbers[rank]) < previous or math.isinf(numbers[rank]):
                numbers[rank] = float(np.nextafter(previous, float32(-np.inf)))
        falling = np.array(numbers)
        rounded = falling.astype(np.float32)
    is_falling = np.isfinite(rounded).all() and (np.diff(rounded) < 0).all()
    return falling if is_falling else ranks
