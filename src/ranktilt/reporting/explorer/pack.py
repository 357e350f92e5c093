"""The data of an explorer as JSON: as many queries as fit, with lists, numbers and texts.

A page has a *budget* of characters, which keeps its file small. The queries come in the order of
what they contribute to a *tilt* (how far a ranker favours one of two groups of documents), and the
documents in the order in which queries need them; of both, the page holds the first. *Twins* are
versions of one document in both groups. *Packed* JSON is compressed with gzip and written in
base64.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from ranktilt.auditing.groups import Groups
from ranktilt.auditing.result import Audit
from ranktilt.data.collection import Collection
from ranktilt.reporting.explorer.lists import ExplorerLists
from ranktilt.reporting.explorer.numbers import Numbers

Ints = npt.NDArray[np.int64]
"""Array of whole numbers."""
Floats = npt.NDArray[np.float64]
"""Array of floating-point numbers."""
VERSION = 1
"""Version of the JSON's layout, which the page's scripts must know."""
LONGEST = {"text": 20_000, "query": 2_000, "title": 500, "id": 300}
"""Most characters of each kind of text; longer ones are cut."""
DIGITS = 5
"""Significant digits of a score, so that scores take little room."""
_GZIP_LEVEL = 5
"""Level of compression: on NFCorpus, 6 saves 1 % and takes 1.6 times as long; 9 takes 2.7 times."""
_CHARACTERS_PER_BYTE = 0.35
"""Characters of packed text for each byte of text, on average."""
_FIRST_COUNT = 200
"""Number of queries or texts that are packed first, to estimate how many fit."""
_FULL_ENOUGH = 0.9
"""Share of the budget above which no more queries or texts are tried."""
_MOST_TRIES = 8
"""Most attempts to find out how many queries or texts fit; each packs all of them."""


@dataclass(frozen=True, kw_only=True)
class Packed:
    """The data that goes into the page, and how much of the audit it is."""

    lists: str
    """Queries, numbers and ranked lists."""
    texts: str
    """Texts of documents; empty where there are none."""
    queries: int
    """Number of queries, which are the first of the order."""
    documents: int
    """Number of documents with texts, which are the first that these queries need."""
    cut: int
    """Number of texts that were cut because they were too long."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Material:
    """Everything that a page could hold, if it had room for all queries."""

    audit: Audit
    """The audit."""
    collection: Collection
    """The audited collection."""
    groups: Groups
    """Groups of the documents."""
    runs: tuple[str, ...]
    """Names of the runs."""
    order: Ints
    """Indices of the audit's queries, in the order of the page."""
    numbers: Numbers
    """Numbers of each run for each query."""
    lists: ExplorerLists
    """Ranked lists of each run."""
    depth: int
    """Number of first results of each list."""

    @cached_property
    def docs(self) -> pl.DataFrame:
        """Documents in the order in which queries need them, with twins next to each other.

        ``needed`` is the position of the first query that needs a document.
        """
        twins = self.lists.twins
        listed = pl.concat([entries.select("doc", "query") for entries in self.lists.entries])
        twins_of_listed = listed.join(twins, on="doc").select("query", doc="twin")
        needs = pl.concat([listed, twins_of_listed.select("doc", "query")])
        needed = needs.group_by("doc").agg(needed=pl.col("query").min())
        # The lowest integer among twins is the same for all of them, so it sorts them together.
        lowest = twins.group_by("doc").agg(lowest_twin=pl.col("twin").min())
        docs = needed.join(lowest, on="doc", how="left")
        docs = docs.with_columns(pl.min_horizontal("doc", "lowest_twin").alias("lowest_twin"))
        contents = self.collection.docs.select("title", "text", "source")
        contents = contents.with_columns(group=self.groups.code)
        contents = contents.with_row_index("doc").cast({"doc": pl.Int64})
        docs = docs.join(contents, on="doc", how="left").sort("needed", "lowest_twin", "doc")
        ids = self.lists.ids.gather(docs["doc"])
        return docs.with_columns(pl.col("group").fill_null(-1), id=ids)

    @cached_property
    def doc_positions(self) -> Ints:
        """Position of each document in `docs`; -1 where no query needs it."""
        positions = np.full(len(self.lists.ids), -1)
        positions[self.docs["doc"].to_numpy()] = np.arange(self.docs.height)
        return positions

    @cached_property
    def queries(self) -> pl.DataFrame:
        """``id`` and ``text`` of the queries, in the order of the page.

        The text is empty where the collection lacks the query.
        """
        ids = pl.DataFrame({"id": self.audit.queries}, schema={"id": pl.String})[self.order]
        texts = self.collection.queries.select("id", "text")
        queries = ids.join(texts, on="id", how="left", maintain_order="left")
        return queries.with_columns(pl.col("text").fill_null(""))

    def fitted(self, budget: int) -> Packed:
        """Pack as many queries and texts as fit into a budget of characters, at least one query.

        Lists come first, but leave room for texts: as much as these need, or half the budget.
        """
        text_bytes = int(self.docs["text"].str.len_bytes().sum())
        lists_budget = budget - int(min(_CHARACTERS_PER_BYTE * text_bytes, budget / 2))
        queries, lists = _fitted(len(self.order), lists_budget, self._packed_lists)
        documents = self.needed(queries)
        texts = ""
        if text_bytes:
            documents, texts = _fitted(documents, budget - len(lists), self._packed_texts)
        return Packed(
            lists=lists,
            texts=texts,
            queries=queries,
            documents=documents,
            cut=self._cut_count(documents),
        )

    def needed(self, query_count: int) -> int:
        """Count the documents that the first queries need; these are the first of `docs`."""
        return int((self.docs["needed"] < query_count).sum())

    def _packed_lists(self, query_count: int) -> str:
        """Pack the lists and numbers of the first queries, without texts."""
        docs = self.docs.head(self.needed(query_count))
        lists = [run_lists[:query_count] for run_lists in self._lists]
        return pack({**self._queries(query_count), "docs": self._docs(docs), "lists": lists})

    def _packed_texts(self, document_count: int) -> str:
        """Pack the texts of the first documents; empty if they have none."""
        texts = _texts(self.docs["text"].head(document_count))
        return pack(texts) if any(texts) else ""

    def _cut_count(self, document_count: int) -> int:
        """Count the texts among those of the first documents that are too long."""
        lengths = self.docs["text"].head(document_count).str.len_chars()
        return int((lengths > LONGEST["text"]).sum())

    def _queries(self, query_count: int) -> dict[str, Any]:
        """Return the first queries with their numbers, for JSON."""
        return {
            "version": VERSION,
            **self._names(),
            "shown": query_count,
            "of": len(self.audit.queries),
            "depth": self.depth,
            "queries": self._query_records(query_count),
            **self._query_numbers(query_count),
        }

    def _names(self) -> dict[str, Any]:
        """Return the names of groups, pairs, measures and runs, for JSON."""
        audit = self.audit
        return {
            "by": str(audit.spec.get("by") or ""),
            "groups": self.groups.names,
            "pairs": self.numbers.pairs,
            "measures": [repr(measure) for measure in audit.measures],
            "primary": audit.primary_index if audit.measures else 0,
            "runs": self.runs,
        }

    def _query_numbers(self, query_count: int) -> dict[str, Any]:
        """Return the values, parts of tilts, and head-to-head counts of the first queries."""
        queries = self.order[:query_count]
        return {
            "values": rounded(self.numbers.values[..., queries]),
            "tilt": rounded(self.numbers.tilt[..., queries]),
            "heads": _nested_heads(self.numbers.heads[:, :, queries]),
        }

    def _query_records(self, query_count: int) -> list[dict[str, Any]]:
        """Return id, text and number of relevant documents of the first queries."""
        queries = self.queries.head(query_count)
        ids, texts = shortened(queries["id"], "id"), shortened(queries["text"], "query")
        relevant_counts = self.lists.relevant[:query_count].tolist()
        return [
            {"id": query_id, "text": text, "relevant": relevant_count}
            for query_id, text, relevant_count in zip(ids, texts, relevant_counts, strict=True)
        ]

    def _docs(self, docs: pl.DataFrame) -> dict[str, Any]:
        """Return documents by columns, for JSON."""
        columns = {
            "id": shortened(docs["id"], "id"),
            "title": shortened(docs["title"].fill_null(""), "title"),
            "group": docs["group"].to_list(),
            "twins": self._twins[: docs.height],
        }
        if self.audit.spec.get("by") != "source" and len(self.collection.sources) > 1:
            columns["source"] = shortened(docs["source"].fill_null(""), "id")
        return columns

    @cached_property
    def _twins(self) -> list[list[int]]:
        """Positions of the twins of each of `docs`, which are among `docs` too."""
        twins: list[list[int]] = [[] for _ in range(self.docs.height)]
        docs = self.doc_positions[self.lists.twins["doc"].to_numpy()].tolist()
        doc_twins = self.doc_positions[self.lists.twins["twin"].to_numpy()].tolist()
        for doc, twin in zip(docs, doc_twins, strict=True):
            if doc >= 0:
                twins[doc].append(twin)
        return twins

    @cached_property
    def _lists(self) -> list[list[dict[str, Any]]]:
        """The list of every query for each run, for JSON."""
        runs = zip(self.lists.entries, self.lists.lengths, strict=True)
        return [self._run_lists(entries, lengths.tolist()) for entries, lengths in runs]

    def _run_lists(self, entries: pl.DataFrame, lengths: Sequence[int]) -> list[dict[str, Any]]:
        """Return one run's lists, for JSON.

        A list has ``found``, the length of the run's list; ``more``, the number of relevant
        documents that are not shown; and the shown ``entries``, each a row of values.
        """
        grade = entries["grade"]
        are_integers = (grade == grade.floor()).all()
        positions = pl.Series(self.doc_positions[entries["doc"].to_numpy()])
        columns = entries.select(
            doc=pl.lit(positions),
            first="first",
            last="last",
            score=pl.col("score").round_sig_figs(DIGITS),
            grade=pl.col("grade").cast(pl.Int64) if are_integers else "grade",
            top=pl.col("top").cast(pl.Int64),
        )
        rows = columns.rows()
        query_count = len(lengths)
        queries = entries["query"]
        # Entries are sorted by query: those of query i are rows borders[i] to borders[i + 1].
        borders = np.searchsorted(queries.to_numpy(), np.arange(query_count + 1)).tolist()
        shown_relevant = np.bincount(queries.filter(grade > 0).to_numpy(), minlength=query_count)
        more = (self.lists.relevant - shown_relevant).tolist()
        return [
            {"found": lengths[i], "more": more[i], "entries": rows[borders[i] : borders[i + 1]]}
            for i in range(query_count)
        ]


def _nested_heads(heads: Ints) -> list[Any]:
    """Return wins, losses and ties as nested lists, with None for a query without any."""
    counts = heads.tolist()
    for run in counts:
        for pair in run:
            pair[:] = [query if any(query) else None for query in pair]
    return list(counts)


def _texts(column: pl.Series) -> list[Any]:
    """Return texts as the page has them; None for unknown documents.

    A text that is too long is an object with its beginning and its length.
    """
    longest = LONGEST["text"]
    texts: list[Any] = []
    for text in column:
        is_cut = text is not None and len(text) > longest
        texts.append({"text": text[:longest], "of": len(text)} if is_cut else text)
    return texts


def _fitted(total: int, budget: int, pack_first: Callable[[int], str]) -> tuple[int, str]:
    """Return how many of a total fit into a budget of characters, and these packed.

    `pack_first` packs the first so many. It is called for ever better counts, each estimated from
    the length of the last text, until the text is full enough. At least one is packed.
    """
    fits, does_not_fit = 0, total + 1  # the highest count that fits, the lowest that does not
    best = None
    count = min(total, _FIRST_COUNT)
    for _ in range(_MOST_TRIES):
        text = pack_first(count)
        if len(text) <= budget:
            fits, best = count, (count, text)
        else:
            does_not_fit = count
        is_full = best is not None and len(best[1]) > _FULL_ENOUGH * budget
        if fits + 1 >= does_not_fit or is_full:
            break
        # By proportion, but between the counts of which it is known whether they fit.
        estimated = int(count * budget / max(len(text), 1))
        count = max(min(estimated, does_not_fit - 1), fits + 1)
    return best or (1, pack_first(1))


def shortened(series: pl.Series, kind: str) -> list[str]:
    """Cut texts after the number of characters that `LONGEST` allows for their kind."""
    longest = LONGEST[kind]
    return [text if len(text) <= longest else text[:longest] + "…" for text in series]


def rounded(values: Floats) -> Floats:
    """Round to `DIGITS` significant digits; −0 becomes 0."""
    digits = pl.Series(values.ravel()).round_sig_figs(DIGITS).to_numpy()
    rounded_values: Floats = digits.reshape(values.shape) + 0.0
    return rounded_values


def pack(content: Any) -> str:
    """Return content as JSON (NaN is null), compressed with gzip, in base64."""
    data = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    return base64.b64encode(gzip.compress(data, _GZIP_LEVEL, mtime=0)).decode()
