"""What an explorer carries: as many queries as fit, their lists, numbers and texts, as compressed JSON."""

from __future__ import annotations

import base64
import gzip
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from ranktilt.auditing.groups import Groups
from ranktilt.auditing.judged_rankings import Judgments
from ranktilt.auditing.result import Audit
from ranktilt.collection import Collection
from ranktilt.reporting.explorer.lists import Entries, ShownLists
from ranktilt.reporting.explorer.numbers import Numbers

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
VERSION = 1
LONGEST = {"text": 20_000, "query": 2_000, "title": 500, "id": 300}
"""Characters of each that are carried."""
DIGITS = 5
_LEVEL = 5  # 6 makes NFCorpus 1 % smaller and takes 1.6 times as long, 9 hardly smaller and 2.7 times
_ENTRY, _DOC, _NUMBER, _LETTER = 6.5, 12.0, 1.5, 0.5  # bytes after compression, about
_BASE64 = 4 / 3
_FILLED = 0.95


@dataclass(frozen=True)
class Packed:
    """What goes into the page, and how much of the audit it is."""

    lists: str
    texts: str
    """Empty where there are no texts."""
    queries: int
    """Queries carried: the first so many of the order."""
    cut: int
    """Texts that were too long."""

    @property
    def size(self) -> int:
        return len(self.lists) + len(self.texts)


@dataclass(frozen=True, eq=False)
class Material:
    """Everything that could be carried, for queries in the order of their weight."""

    audit: Audit
    collection: Collection
    groups: Groups
    judgments: Judgments
    runs: tuple[str, ...]
    """Their names."""
    order: Ints
    """Numbers of the queries that could be carried, the first ones first."""
    numbers: Numbers
    """Of all the audit's queries."""
    lists: ShownLists
    """Of the queries in `order`."""
    depth: int
    """Results of each list."""

    @cached_property
    def shelf(self) -> tuple[Ints, Ints]:
        """Documents in the order in which queries need them, twins side by side; and the query that needs each."""
        none = len(self.order)
        needed = np.full(len(self.lists.ids), none)
        for entries in self.lists.entries:
            np.minimum.at(needed, entries.doc, entries.query)
        doc, twin = (self.lists.twins[name].to_numpy() for name in ("doc", "twin"))
        np.minimum.at(needed, twin, needed[doc])
        eldest = np.arange(len(needed))
        np.minimum.at(eldest, doc, twin)
        docs = np.flatnonzero(needed < none)
        docs = docs[np.lexsort((docs, eldest[docs], needed[docs]))]
        return docs, needed[docs]

    @cached_property
    def costs(self) -> tuple[Floats, Floats]:
        """Bytes, about, that the lists and the texts of the first 0, 1, … queries take."""
        n = len(self.order)
        docs, needed = self.shelf
        entries = np.zeros(n)
        for part in self.lists.entries:
            entries += np.bincount(part.query, minlength=n)
        letters = strings(self.queries, self.order).str.len_bytes().to_numpy().clip(max=LONGEST["query"])
        numbers = self.numbers.values[..., 0].size + self.numbers.tilt[..., 0].size + self.numbers.heads[:, :, 0].size
        lists = _ENTRY * entries + _DOC * np.bincount(needed, minlength=n) + _NUMBER * numbers + _LETTER * letters
        held = docs < self.collection.docs.height
        length = np.zeros(len(docs))
        sizes = self.collection.docs["text"].gather(docs[held]).str.len_bytes().to_numpy()
        length[held] = sizes.clip(max=LONGEST["text"])
        texts = np.bincount(needed, weights=length, minlength=n) * 0.26
        return np.append(0, np.cumsum(lists)) * _BASE64, np.append(0, np.cumsum(texts)) * _BASE64

    @cached_property
    def queries(self) -> pl.Series:
        """Text of each query of the judgments; empty for those that the collection lacks."""
        names = pl.DataFrame({"id": self.judgments.queries}, schema={"id": pl.String})
        joined = names.join(self.collection.queries.select("id", "text"), on="id", how="left", maintain_order="left")
        return joined["text"].fill_null("")

    def fitted(self, budget: int) -> Packed:
        """Carry as many queries as fit into so many characters; one at least."""
        lists, texts = self.costs
        per_list, per_text = 1.0, 1.0
        low, high, best, count = 0, len(self.order) + 1, None, 0
        for _ in range(12):
            fits = np.searchsorted(per_list * lists + per_text * texts, budget, side="right") - 1
            count = min(max(int(fits), low + 1), max(high - 1, 1))
            packed = self.packed(count)
            if packed.size <= budget or count == 1:
                low, best = count, packed
            else:
                high = count
            if best is not None and (low + 1 >= high or best.size > _FILLED * budget):
                break
            per_list, per_text = len(packed.lists) / lists[count], len(packed.texts) / max(texts[count], 1.0)
        return best or self.packed(1)

    def packed(self, count: int) -> Packed:
        """Carry the first so many queries."""
        docs, needed = self.shelf
        docs = docs[needed < count]
        texts, cut = self._texts(docs)
        lists = [_run_lists(entries, self._number(docs), count) for entries in self.lists.entries]
        content = {**self._queries(count), "docs": self._docs(docs), "lists": lists}
        return Packed(pack(content), pack(texts) if texts else "", count, cut)

    def _queries(self, count: int) -> dict[str, Any]:
        chosen = self.order[:count]
        names = strings(pl.Series(self.judgments.queries, dtype=pl.String), chosen)
        relevant = np.bincount(self.judgments.query, minlength=len(self.judgments.queries))[chosen].tolist()
        heads = self.numbers.heads[:, :, chosen]
        return {
            "version": VERSION,
            "by": str(self.audit.spec.get("by") or ""),
            "groups": self.groups.names,
            "pairs": self.numbers.pairs,
            "measures": [repr(m) for m in self.audit.measures],
            "primary": self.audit.place if self.audit.measures else 0,
            "runs": self.runs,
            "shown": count,
            "of": len(self.audit.queries),
            "depth": self.depth,
            "queries": [
                {"id": name, "text": text, "relevant": number}
                for name, text, number in zip(
                    shortened(names, "id"), shortened(strings(self.queries, chosen), "query"), relevant, strict=True
                )
            ],
            "values": rounded(self.numbers.values[..., chosen]),
            "tilt": rounded(self.numbers.tilt[..., chosen]),
            "heads": [[[met if any(met) else None for met in pair] for pair in run] for run in heads.tolist()],
        }

    @cached_property
    def relevant(self) -> Ints:
        """Number of relevant documents of each group and query of the audit."""
        shape = len(self.groups.names), len(self.judgments.queries)
        grouped = self.judgments.group >= 0
        cell = self.judgments.group[grouped] * shape[1] + self.judgments.query[grouped]
        return np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)

    def _docs(self, docs: Ints) -> dict[str, Any]:
        table, held = self.collection.docs, docs < self.collection.docs.height
        group = np.full(len(docs), -1)
        group[held] = self.groups.code[docs[held]]
        out = {
            "id": shortened(strings(self.lists.ids, docs), "id"),
            "title": shortened(strings(table["title"], docs), "title"),
            "group": group.tolist(),
            "twins": self._twins(docs),
        }
        if self.audit.spec.get("by") != "source" and len(self.collection.sources) > 1:
            out["source"] = shortened(strings(table["source"], docs), "id")
        return out

    def _twins(self, docs: Ints) -> list[list[int]]:
        number = self._number(docs)
        out = list[list[int]]([] for _ in docs)
        of, twin = (number[self.lists.twins[name].to_numpy()] for name in ("doc", "twin"))
        both = (of >= 0) & (twin >= 0)
        for one, two in zip(of[both].tolist(), twin[both].tolist(), strict=True):
            out[one].append(two)
        return out

    def _number(self, docs: Ints) -> Ints:
        number = np.full(len(self.lists.ids), -1)
        number[docs] = np.arange(len(docs))
        return number

    def _texts(self, docs: Ints) -> tuple[list[Any], int]:
        """Texts of some documents, None of unknown ones, and how many of them are cut; nothing where there are none."""
        series = strings(self.collection.docs["text"], docs)
        held = docs < self.collection.docs.height
        texts: list[Any] = [text if known else None for text, known in zip(series, held.tolist(), strict=True)]
        longest, cut = LONGEST["text"], 0
        for at in np.flatnonzero(series.str.len_bytes().to_numpy() > longest).tolist():
            if len(texts[at]) > longest:
                texts[at] = {"text": texts[at][:longest], "of": len(texts[at])}
                cut += 1
        return (texts, cut) if any(texts) else ([], 0)


def _run_lists(entries: Entries, number: Ints, count: int) -> list[dict[str, Any]]:
    """The lists of one run for the first so many queries."""
    ends = np.searchsorted(entries.query, np.arange(count + 1)).tolist()
    part = slice(0, ends[-1])
    ranks = ([rank or None for rank in side[part].tolist()] for side in (entries.first, entries.last))
    grades = entries.grade[part]
    whole = grades.astype(np.int64)
    columns = (
        number[entries.doc[part]].tolist(),
        *ranks,
        [None if score != score else score for score in rounded(entries.score[part]).tolist()],
        (whole if (whole == grades).all() else grades).tolist(),
        entries.top[part].astype(np.int64).tolist(),
    )
    rows = list(zip(*columns, strict=True))
    found, more = entries.found.tolist(), entries.more.tolist()
    return [{"found": found[i], "more": more[i], "entries": rows[ends[i] : ends[i + 1]]} for i in range(count)]


def strings(series: pl.Series, rows: Ints) -> pl.Series:
    """Take some strings of a column; empty for rows beyond its end."""
    held = rows < len(series)
    if held.all():
        return series.gather(rows)
    return pl.concat([series, pl.Series(series.name, [""], dtype=pl.String)]).gather(np.where(held, rows, len(series)))


def shortened(series: pl.Series, kind: str) -> list[str]:
    """Cut strings after so many characters as `LONGEST` names."""
    longest, texts = LONGEST[kind], series.to_list()
    for at in np.flatnonzero(series.str.len_bytes().to_numpy() > longest).tolist():
        text = texts[at]
        texts[at] = text if len(text) <= longest else text[:longest] + "…"
    return texts


def rounded(values: Floats) -> Floats:
    """Round to `DIGITS` significant digits; every number reads back as it is printed."""
    size = np.abs(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = DIGITS - 1 - np.floor(np.log10(size))
    shift = np.where(np.isfinite(shift), shift, 0.0).clip(-300, 300)
    up, down = 10.0 ** shift.clip(min=0), 10.0 ** (-shift).clip(min=0)
    out: Floats = np.ascontiguousarray(np.round(values * up / down) * down / up + 0.0)
    return out


def pack(content: Any) -> str:
    """Write as JSON (NaN is null), compressed with gzip, in base64."""
    data = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    return base64.b64encode(gzip.compress(data, _LEVEL, mtime=0)).decode()
