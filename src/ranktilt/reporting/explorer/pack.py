"""The data of an explorer: as many queries as fit, with lists, numbers and texts, as JSON."""

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
Floats = npt.NDArray[np.float64]
VERSION = 1
"""Version of the packed form, which the page's scripts must know."""
LONGEST = {"text": 20_000, "query": 2_000, "title": 500, "id": 300}
"""Characters of each that are carried."""
DIGITS = 5
"""Significant digits of a score."""
_GZIP_LEVEL = 5
"""6 makes NFCorpus 1 % smaller and takes 1.6 times as long, 9 hardly smaller and 2.7 times."""
_CHARACTERS_A_BYTE = 0.35
"""Characters in the page for a byte of text, about."""
_FIRST_COUNT = 200
"""Queries or texts that are packed first, to see how much room they take."""
_FULL_ENOUGH = 0.9
"""Share of the budget that is full enough."""
_MOST_TRIES = 8
"""Most attempts to find out how much fits."""


@dataclass(frozen=True, kw_only=True)
class Packed:
    """The data that goes into the page, and how much of the audit it is."""

    lists: str
    """Queries, numbers and ranked lists."""
    texts: str
    """Empty where there are no texts."""
    queries: int
    """Queries carried: the first so many of the order."""
    documents: int
    """Documents whose texts are carried: the first so many that these queries need."""
    cut: int
    """Texts that were too long."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Material:
    """Everything that could be carried, for queries in the order of their weight."""

    audit: Audit
    """The audit."""
    collection: Collection
    """Its collection."""
    groups: Groups
    """Groups of the documents."""
    runs: tuple[str, ...]
    """Their names."""
    order: Ints
    """Numbers of the audit's queries, the first ones first."""
    numbers: Numbers
    """Numbers of each run for each query."""
    lists: ExplorerLists
    """Ranked lists."""
    depth: int
    """Results of each list."""

    @cached_property
    def docs(self) -> pl.DataFrame:
        """Documents in the order in which queries need them, twins side by side.

        ``needed`` is the first query that needs a document.
        """
        twins = self.lists.twins
        listed = pl.concat([entries.select("doc", "query") for entries in self.lists.entries])
        twins_of_listed = listed.join(twins, on="doc").select("query", doc="twin")
        needs = pl.concat([listed, twins_of_listed.select("doc", "query")])
        needed = needs.group_by("doc").agg(needed=pl.col("query").min())
        # The lowest number among twins is the same for all of them, so it sorts them together.
        eldest = twins.group_by("doc").agg(eldest=pl.col("twin").min())
        docs = needed.join(eldest, on="doc", how="left")
        docs = docs.with_columns(pl.min_horizontal("doc", "eldest").alias("eldest"))
        known = self.collection.docs.select("title", "text", "source")
        known = known.with_columns(group=self.groups.code)
        known = known.with_row_index("doc").cast({"doc": pl.Int64})
        docs = docs.join(known, on="doc", how="left").sort("needed", "eldest", "doc")
        ids = self.lists.ids.gather(docs["doc"])
        return docs.with_columns(pl.col("group").fill_null(-1), id=ids)

    @cached_property
    def number(self) -> Ints:
        """Position of each document in `docs`; -1 where no query needs it."""
        number = np.full(len(self.lists.ids), -1)
        number[self.docs["doc"].to_numpy()] = np.arange(self.docs.height)
        return number

    @cached_property
    def queries(self) -> pl.DataFrame:
        """``id`` and ``text`` of the queries in their order.

        The text is empty where the collection lacks the query.
        """
        names = pl.DataFrame({"id": self.audit.queries}, schema={"id": pl.String})[self.order]
        texts = self.collection.queries.select("id", "text")
        queries = names.join(texts, on="id", how="left", maintain_order="left")
        return queries.with_columns(pl.col("text").fill_null(""))

    def fitted(self, budget: int) -> Packed:
        """Carry as many queries and texts as fit, and one query at least.

        Many texts have half the room.
        """
        letters = int(self.docs["text"].str.len_bytes().sum())
        room = budget - int(min(_CHARACTERS_A_BYTE * letters, budget / 2))
        queries, lists = _fitted(len(self.order), room, self._packed_lists)
        documents = self.needed(queries)
        texts = ""
        if letters:
            documents, texts = _fitted(documents, budget - len(lists), self._packed_texts)
        return Packed(
            lists=lists,
            texts=texts,
            queries=queries,
            documents=documents,
            cut=self._cut(documents),
        )

    def needed(self, queries: int) -> int:
        """Count the documents that the first so many queries need; they come first in `docs`."""
        return int((self.docs["needed"] < queries).sum())

    def _packed_lists(self, queries: int) -> str:
        """Pack the lists of the first queries, without texts."""
        docs = self.docs.head(self.needed(queries))
        lists = [run_lists[:queries] for run_lists in self._lists]
        return pack({**self._queries(queries), "docs": self._docs(docs), "lists": lists})

    def _packed_texts(self, documents: int) -> str:
        """Pack the texts of the first documents; nothing if all are empty."""
        texts = _texts(self.docs["text"].head(documents))
        return pack(texts) if any(texts) else ""

    def _cut(self, documents: int) -> int:
        """Count the texts that are too long."""
        return int((self.docs["text"].head(documents).str.len_chars() > LONGEST["text"]).sum())

    def _queries(self, count: int) -> dict[str, Any]:
        """Return the first queries with their numbers, as JSON."""
        return {
            "version": VERSION,
            **self._names(),
            "shown": count,
            "of": len(self.audit.queries),
            "depth": self.depth,
            "queries": self._query_records(count),
            **self._query_numbers(count),
        }

    def _names(self) -> dict[str, Any]:
        """Return the names of what is measured, for which runs and which groups."""
        audit = self.audit
        return {
            "by": str(audit.spec.get("by") or ""),
            "groups": self.groups.names,
            "pairs": self.numbers.pairs,
            "measures": [repr(measure) for measure in audit.measures],
            "primary": audit.primary_index if audit.measures else 0,
            "runs": self.runs,
        }

    def _query_numbers(self, count: int) -> dict[str, Any]:
        """Return the values, tilts and head-to-heads of the first queries."""
        chosen = self.order[:count]
        return {
            "values": rounded(self.numbers.values[..., chosen]),
            "tilt": rounded(self.numbers.tilt[..., chosen]),
            "heads": _nested_heads(self.numbers.heads[:, :, chosen]),
        }

    def _query_records(self, count: int) -> list[dict[str, Any]]:
        """Return ids and texts of the first queries."""
        queries = self.queries.head(count)
        ids, texts = shortened(queries["id"], "id"), shortened(queries["text"], "query")
        relevant = self.lists.relevant[:count].tolist()
        return [
            {"id": name, "text": text, "relevant": number}
            for name, text, number in zip(ids, texts, relevant, strict=True)
        ]

    def _docs(self, docs: pl.DataFrame) -> dict[str, Any]:
        """Return documents by columns, as JSON."""
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
        """Twins of each of `docs`: a query that needs a document needs its twins too."""
        twins: list[list[int]] = [[] for _ in range(self.docs.height)]
        docs = self.number[self.lists.twins["doc"].to_numpy()].tolist()
        doc_twins = self.number[self.lists.twins["twin"].to_numpy()].tolist()
        for doc, twin in zip(docs, doc_twins, strict=True):
            if doc >= 0:
                twins[doc].append(twin)
        return twins

    @cached_property
    def _lists(self) -> list[list[dict[str, Any]]]:
        """The lists of each run, query by query."""
        runs = zip(self.lists.entries, self.lists.lengths, strict=True)
        return [self._run_lists(entries, lengths.tolist()) for entries, lengths in runs]

    def _run_lists(self, entries: pl.DataFrame, lengths: Sequence[int]) -> list[dict[str, Any]]:
        """Return one run's lists by columns, as JSON."""
        grade = entries["grade"]
        are_whole = (grade == grade.floor()).all()
        numbers = pl.Series(self.number[entries["doc"].to_numpy()])
        columns = entries.select(
            doc=pl.lit(numbers),
            first="first",
            last="last",
            score=pl.col("score").round_sig_figs(DIGITS),
            grade=pl.col("grade").cast(pl.Int64) if are_whole else "grade",
            top=pl.col("top").cast(pl.Int64),
        )
        rows = columns.rows()
        query_count = len(lengths)
        queries = entries["query"]
        ends = np.searchsorted(queries.to_numpy(), np.arange(query_count + 1)).tolist()
        listed = np.bincount(queries.filter(grade > 0).to_numpy(), minlength=query_count)
        more = (self.lists.relevant - listed).tolist()
        return [
            {"found": lengths[i], "more": more[i], "entries": rows[ends[i] : ends[i + 1]]}
            for i in range(query_count)
        ]


def _nested_heads(heads: Ints) -> list[Any]:
    """Return wins, losses and ties as nested lists, None for a query without any."""
    counts = heads.tolist()
    for run in counts:
        for pair in run:
            pair[:] = [query if any(query) else None for query in pair]
    return list(counts)


def _texts(column: pl.Series) -> list[Any]:
    """Return texts as the page has them, None for unknown documents."""
    longest = LONGEST["text"]
    texts: list[Any] = []
    for text in column:
        is_cut = text is not None and len(text) > longest
        texts.append({"text": text[:longest], "of": len(text)} if is_cut else text)
    return texts


def _fitted(total: int, budget: int, pack_first: Callable[[int], str]) -> tuple[int, str]:
    """Return how many of a total fit into a budget of characters, and the packed text.

    At least one is packed.
    """
    low, high, best = 0, total + 1, None
    count = min(total, _FIRST_COUNT)
    for _ in range(_MOST_TRIES):
        text = pack_first(count)
        if len(text) <= budget:
            low, best = count, (count, text)
        else:
            high = count
        if low + 1 >= high or (best is not None and len(best[1]) > _FULL_ENOUGH * budget):
            break
        count = max(min(int(count * budget / max(len(text), 1)), high - 1), low + 1)
    return best or (1, pack_first(1))


def shortened(series: pl.Series, kind: str) -> list[str]:
    """Cut strings after the number of characters that `LONGEST` has for their kind."""
    longest = LONGEST[kind]
    return [text if len(text) <= longest else text[:longest] + "…" for text in series]


def rounded(values: Floats) -> Floats:
    """Round to `DIGITS` significant digits; −0 becomes 0."""
    digits = pl.Series(values.ravel()).round_sig_figs(DIGITS).to_numpy()
    rounded_values: Floats = digits.reshape(values.shape) + 0.0
    return rounded_values


def pack(content: Any) -> str:
    """Write as JSON (NaN is null), compressed with gzip, in base64."""
    data = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    return base64.b64encode(gzip.compress(data, _GZIP_LEVEL, mtime=0)).decode()
