"""The runs of a log: the input order, the model's order, the published and the strict order.

A *log* holds the calls of an LLM ranker, each of which shows some candidates of a query (the
*passages*) and asks the model to rank them. The *strict* order shuffles passages that no answer
ranks, so that they do not profit from their place in the input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.auditing.replay_log.rankings import ReplayedRankings, replay_calls
from ranktilt.auditing.replay_log.result import INPUT, MODEL, PUBLISHED, STRICT
from ranktilt.data.collection import Collection
from ranktilt.data.files import sha256
from ranktilt.data.runs.run import Run, collection_rows
from ranktilt.errors import DataError, counted
from ranktilt.presenter import presenter
from ranktilt.rankers.llm.stored_calls import CandidateTexts, LoggedCall, read_log


@dataclass(frozen=True, kw_only=True)
class LogRuns:
    """A log's answers, and the runs that they make."""

    file: str
    """Path of the log."""
    calls: Sequence[LoggedCall]
    """Calls of the log."""
    rankings: ReplayedRankings
    """Rankings by their answers."""
    runs: Mapping[str, Run]
    """Runs by their names: input order, model, published and strict."""

    @property
    def spec(self) -> dict[str, Any]:
        """Path of the log, its hash and the number of its calls."""
        return {"path": self.file, "sha256": sha256(Path(self.file)), "calls": len(self.calls)}


def log_runs(log: str | Path, candidates: Run, collection: Collection, *, seed: int = 0) -> LogRuns:
    """Rank again with the stored calls of an LLM ranker.

    A query is ranked if it has a call, and if the query and the passages of all its calls are among
    the candidates.

    Parameters
    ----------
    log : str or Path
        File of the calls of one run, as `ranktilt.rankers.llm.stored_calls.read_log` reads it.
    candidates : Run
        The first stage's lists that were ranked.
    collection : Collection
        Texts of queries and documents, by which prompts are matched with candidates. A log that
        names ids needs no texts.
    seed : int, optional
        Random seed of the strict run, in which passages that no answer ranks are shuffled.

    Raises
    ------
    DataError
        If no query can be ranked.
    """
    calls = read_log(Path(log))
    lists = _candidate_texts(candidates, collection)
    rankings = replay_calls(calls, lists, seed=seed)
    if not rankings.called:
        raise DataError(log, _nothing_to_replay(calls, lists, rankings))
    # The order of each query's candidates, by run.
    orders = {
        INPUT: [list(range(len(docs))) for docs in lists.docs],
        MODEL: rankings.model,
        PUBLISHED: rankings.published,
        STRICT: rankings.strict,
    }
    runs = {
        name: _run_from_orders(name, lists, orders_of_run, rankings.called, log=str(log))
        for name, orders_of_run in orders.items()
    }
    return LogRuns(file=str(log), calls=calls, rankings=rankings, runs=runs)


def _nothing_to_replay(
    calls: Sequence[LoggedCall], lists: CandidateTexts, rankings: ReplayedRankings
) -> str:
    """Say why no query of a log can be ranked."""
    first = rankings.unmatched[0]
    reason = f"none of its {counted(len(calls), 'call', 'calls')} fits the candidates"
    if rankings.answers:
        reason = "no query is complete"
    has_texts = any(lists.texts) or calls[0].ids
    hint = "" if has_texts else "; prompts are matched by text: name a collection"
    return f"{reason}: call {first.call} {presenter().sentence(first.mismatch)}{hint}"


def _candidate_texts(run: Run, collection: Collection) -> CandidateTexts:
    """Return the lists of the first stage, with the texts that prompts may show."""
    rows = collection_rows(run, collection)
    titles = collection.docs["title"].to_list()
    texts = collection.docs["text"].to_list()
    queries = dict(collection.queries.select("id", "text").iter_rows())
    # Numbers of the documents in the list of each query.
    docs_of_queries = [
        run.docs[start:end] for start, end in zip(run.offsets[:-1], run.offsets[1:], strict=True)
    ]
    passages = []
    for docs in docs_of_queries:
        passages_of_query = [
            _prompt_texts(titles[row], texts[row]) if row >= 0 else ()
            for row in rows[docs].tolist()
        ]
        passages.append(tuple(passages_of_query))
    return CandidateTexts(
        queries=run.queries,
        texts=tuple(queries.get(query) or "" for query in run.queries),
        docs=tuple(tuple(run.ids.gather(docs)) for docs in docs_of_queries),
        passages=tuple(passages),
    )


def _prompt_texts(title: str, text: str) -> tuple[str, ...]:
    """Return the forms in which a prompt may show a document: without its title, or with it."""
    if title:
        return (text, f"{title} {text}", f"Title: {title} Content: {text}")
    return (text,) if text else ()


def _run_from_orders(
    name: str,
    lists: CandidateTexts,
    orders: Sequence[Sequence[int]],
    queries: set[int],
    *,
    log: str,
) -> Run:
    """Return the run of the queries that have calls.

    `orders` has the order of each query's candidates, and `queries` the indexes of the queries.
    """
    rows = []
    for query in sorted(queries):
        for rank, position in enumerate(orders[query], start=1):
            rows.append((lists.queries[query], lists.docs[query][position], -float(rank)))
    frame = pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
    return Run.from_frame(frame, spec={"ranker": name, "log": log})
