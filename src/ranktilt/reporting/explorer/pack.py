"""What an explorer carries: as many queries as fit, their lists, numbers and texts, as compressed JSON."""

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
LONGEST = {"text": 20_000, "query": 2_000, "title": 500, "id": 300}
"""Characters of each that are carried."""
DIGITS = 5
_LEVEL = (
    5  # 6 makes NFCorpus 1 % smaller and takes 1.6 times as long, 9 hardly smaller and 2.7 times
)
_SHRUNK = 0.35  # characters in the page for a byte of text, about
_FIRST = 200  # of what is to be fitted, packed to see how much room it takes
_FILLED = 0.9
_TRIES = 8


@dataclass(frozen=True)
class Packed:
    """What goes into the page, and how much of the audit it is."""

    lists: str
    texts: str
    """Empty where there are no texts."""
    queries: int
    """Queries carried: the first so many of the order."""
    documents: int
    """Documents whose texts are carried: the first so many that these queries need."""
    cut: int
    """Texts that were too long."""


@dataclass(frozen=True, eq=False)
class Material:
    """Everything that could be carried, for queries in the order of their weight."""

    audit: Audit
    collection: Collection
    groups: Groups
    runs: tuple[str, ...]
    """Their names."""
    order: Ints
    """Numbers of the audit's queries, the first ones first."""
    numbers: Numbers
    lists: ExplorerLists
    depth: int
    """Results of each list."""

    @cached_property
    def docs(self) -> pl.DataFrame:
        """Documents in the order in which queries need them, twins side by side; ``needed`` is the first such query."""
        twins = self.lists.twins
        listed = pl.concat([entries.select("doc", "query") for entries in self.lists.entries])
        beside = listed.join(twins, on="doc").select("query", doc="twin")
        needed = (
            pl.concat([listed, beside.select("doc", "query")])
            .group_by("doc")
            .agg(needed=pl.col("query").min())
        )
        eldest = twins.group_by("doc").agg(eldest=pl.col("twin").min())
        docs = needed.join(eldest, on="doc", how="left").with_columns(
            pl.min_horizontal("doc", "eldest").alias("eldest")
        )
        known = self.collection.docs.select("title", "text", "source").with_columns(
            group=self.groups.code
        )
        known = known.with_row_index("doc").cast({"doc": pl.Int64})
        docs = docs.join(known, on="doc", how="left").sort("needed", "eldest", "doc")
        return docs.with_columns(
            pl.col("group").fill_null(-1), id=self.lists.ids.gather(docs["doc"])
        )

    @cached_property
    def number(self) -> Ints:
        """Place of each document in `docs`; -1 where no query needs it."""
        number = np.full(len(self.lists.ids), -1)
        number[self.docs["doc"].to_numpy()] = np.arange(self.docs.height)
        return number

    @cached_property
    def queries(self) -> pl.DataFrame:
        """``id`` and ``text`` of the queries in their order; no text for those that the collection lacks."""
        names = pl.DataFrame({"id": self.audit.queries}, schema={"id": pl.String})[self.order]
        texts = self.collection.queries.select("id", "text")
        return names.join(texts, on="id", how="left", maintain_order="left").with_columns(
            pl.col("text").fill_null("")
        )

    def fitted(self, budget: int) -> Packed:
        """Carry as many queries as fit, one at least, and as many texts; where they are many, half the room."""
        letters = int(self.docs["text"].str.len_bytes().sum())
        room = budget - int(min(_SHRUNK * letters, budget / 2))
        queries, lists = _fitted(len(self.order), room, self._packed_lists)
        documents = self.needed(queries)
        texts = ""
        if letters:
            documents, texts = _fitted(documents, budget - len(lists), self._packed_texts)
        return Packed(lists, texts, queries, documents, self._cut(documents))

    def needed(self, queries: int) -> int:
        """Count the documents that the first so many queries need; they come first in `docs`."""
        return int((self.docs["needed"] < queries).sum())

    def _packed_lists(self, queries: int) -> str:
        docs, lists = (
            self.docs.head(self.needed(queries)),
            [lists[:queries] for lists in self._lists],
        )
        return pack({**self._queries(queries), "docs": self._docs(docs), "lists": lists})

    def _packed_texts(self, documents: int) -> str:
        texts = _texts(self.docs["text"].head(documents))
        return pack(texts) if any(texts) else ""

    def _cut(self, documents: int) -> int:
        """Count the texts that are too long."""
        return int((self.docs["text"].head(documents).str.len_chars() > LONGEST["text"]).sum())

    def _queries(self, count: int) -> dict[str, Any]:
        chosen, told = self.order[:count], self.queries.head(count)
        named = zip(
            shortened(told["id"], "id"),
            shortened(told["text"], "query"),
            self.lists.relevant.tolist(),
            strict=False,
        )
        heads = self.numbers.heads[:, :, chosen].tolist()
        return {
            "version": VERSION,
            "by": str(self.audit.spec.get("by") or ""),
            "groups": self.groups.names,
            "pairs": self.numbers.pairs,
            "measures": [repr(m) for m in self.audit.measures],
            "primary": self.audit.primary_index if self.audit.measures else 0,
            "runs": self.runs,
            "shown": count,
            "of": len(self.audit.queries),
            "depth": self.depth,
            "queries": [
                {"id": name, "text": text, "relevant": number} for name, text, number in named
            ],
            "values": rounded(self.numbers.values[..., chosen]),
            "tilt": rounded(self.numbers.tilt[..., chosen]),
            "heads": [
                [[met if any(met) else None for met in pair] for pair in run] for run in heads
            ],
        }

    def _docs(self, docs: pl.DataFrame) -> dict[str, Any]:
        out = {
            "id": shortened(docs["id"], "id"),
            "title": shortened(docs["title"].fill_null(""), "title"),
            "group": docs["group"].to_list(),
            "twins": self._twins[: docs.height],
        }
        if self.audit.spec.get("by") != "source" and len(self.collection.sources) > 1:
            out["source"] = shortened(docs["source"].fill_null(""), "id")
        return out

    @cached_property
    def _twins(self) -> list[list[int]]:
        """Twins of each of `docs`: a query that needs a document needs its twins too."""
        out = list[list[int]]([] for _ in range(self.docs.height))
        for one, two in zip(
            *(self.number[self.lists.twins[name].to_numpy()].tolist() for name in ("doc", "twin")),
            strict=True,
        ):
            if one >= 0:
                out[one].append(two)
        return out

    @cached_property
    def _lists(self) -> list[list[dict[str, Any]]]:
        """The lists of each run, query by query."""
        return [
            self._run_lists(entries, found.tolist())
            for entries, found in zip(self.lists.entries, self.lists.lengths, strict=True)
        ]

    def _run_lists(self, entries: pl.DataFrame, found: Sequence[int]) -> list[dict[str, Any]]:
        grade = entries["grade"]
        columns = entries.select(
            doc=pl.lit(pl.Series(self.number[entries["doc"].to_numpy()])),
            first="first",
            last="last",
            score=pl.col("score").round_sig_figs(DIGITS),
            grade=pl.col("grade").cast(pl.Int64) if (grade == grade.floor()).all() else "grade",
            top=pl.col("top").cast(pl.Int64),
        )
        rows = columns.rows()
        ends = np.searchsorted(entries["query"].to_numpy(), np.arange(len(found) + 1)).tolist()
        seen = np.bincount(entries["query"].filter(grade > 0).to_numpy(), minlength=len(found))
        more = (self.lists.relevant - seen).tolist()
        return [
            {"found": found[i], "more": more[i], "entries": rows[ends[i] : ends[i + 1]]}
            for i in range(len(found))
        ]


def _texts(column: pl.Series) -> list[Any]:
    """Texts as the page has them, None of unknown documents."""
    longest = LONGEST["text"]
    return [
        {"text": text[:longest], "of": len(text)}
        if text is not None and len(text) > longest
        else text
        for text in column
    ]


def _fitted(total: int, budget: int, packed: Callable[[int], str]) -> tuple[int, str]:
    """How many of a total fit into so many characters, one at least, and what they are packed to."""
    low, high, best = 0, total + 1, None
    count = min(total, _FIRST)
    for _ in range(_TRIES):
        text = packed(count)
        if len(text) <= budget:
            low, best = count, (count, text)
        else:
            high = count
        if low + 1 >= high or (best is not None and len(best[1]) > _FILLED * budget):
            break
        count = max(min(int(count * budget / max(len(text), 1)), high - 1), low + 1)
    return best or (1, packed(1))


def shortened(series: pl.Series, kind: str) -> list[str]:
    """Cut strings after so many characters as `LONGEST` names."""
    longest = LONGEST[kind]
    return [text if len(text) <= longest else text[:longest] + "…" for text in series]


def rounded(values: Floats) -> Floats:
    """Round to `DIGITS` significant digits; nothing is minus 0."""
    out: Floats = (
        pl.Series(values.ravel()).round_sig_figs(DIGITS).to_numpy().reshape(values.shape) + 0.0
    )
    return out


def pack(content: Any) -> str:
    """Write as JSON (NaN is null), compressed with gzip, in base64."""
    data = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    return base64.b64encode(gzip.compress(data, _LEVEL, mtime=0)).decode()
