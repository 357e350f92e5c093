"""Pairs of texts that show what a tilt is made of: a human document and its LLM version, for a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.breakdown import contributions
from ranktilt.auditing.result import Audit
from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted, unknown
from ranktilt.measures.printing import signed
from ranktilt.reporting.document import Cell, Column, Panels, Row, Table
from ranktilt.reporting.papers.layouts import LAYOUTS, dataset_name, generator
from ranktilt.reporting.papers.results import made_by
from ranktilt.reporting.reload import Opened
from ranktilt.reporting.views.provenance import folder
from ranktilt.run import Run

PAIRS = 2
WORDS = 120
"""Words of a text that are printed; the papers' tables hold about as many."""


@dataclass(frozen=True)
class _ChosenPair:
    query: str
    question: str
    points: float
    """The query's part of Relative Δ, summed over the rankers; NaN where it does not count."""
    texts: tuple[str, str]


def has_texts(opened: Opened) -> bool:
    """Whether pairs of texts can be chosen: the audit is by source, has measures, and came with its collection."""
    audit = opened.audit
    return opened.collection is not None and audit.spec.get("by") == "source" and bool(audit.tilts)


def has_pairs(opened: Opened) -> bool:
    """Whether there is a pair to choose where no query is named: one whose texts are both relevant to a query."""
    if opened.collection is None or not has_texts(opened):
        return False
    a, b = opened.audit.tilted_pairs[0]
    return bool(_strongest(opened.audit, _points(opened.audit, a, b), _relevant_pairs(opened.collection, a, b)))


def chosen_pairs(opened: Opened, name: str, *, queries: Sequence[str] = ()) -> Panels:
    """Choose pairs of texts and lay them out side by side, a panel a query."""
    audit, collection = opened.audit, opened.collection
    if collection is None:
        raise UserError(f"{name} needs the texts of the collection, which could not be opened")
    a, b = audit.tilted_pairs[0]
    points, pairs = _points(audit, a, b), _relevant_pairs(collection, a, b)
    wanted = _named(queries, pairs, collection) if queries else _strongest(audit, points, pairs)
    if not wanted:
        raise UserError(f"{name}: no query has a relevant pair of {a} and {b}")
    known = dict(zip(audit.queries, points.tolist(), strict=True))
    found = [_pair(opened.runs, collection, pairs, query, known.get(query, np.nan)) for query in wanted]
    titles = ("Human-Written", "LLM-Generated") if a == "human" else (a, b)
    columns = tuple(Column(title, number=False) for title in titles)
    return Panels(
        name,
        _caption(audit, name, b),
        f"Layout: {LAYOUTS[name].paper}.",
        tuple(Table(f"Query: {one.question}", columns, (Row(tuple(map(Cell, one.texts))),)) for one in found),
        tuple(_notes(opened, found, named=bool(queries))),
        made=made_by(audit.spec),
    )


def _caption(audit: Audit, name: str, source: str) -> str:
    model, degree = generator(source)
    written = f"LLM text by {model}" + (f" at temperature {degree}" if degree else "")
    where = ", ".join(filter(None, (dataset_name(folder(audit.spec)), written)))
    return f"{LAYOUTS[name].title}. {where}."


def _points(audit: Audit, a: str, b: str) -> npt.NDArray[np.float64]:
    """Each query's part of Relative Δ, added up over the rankers: the parts of one ranker sum to its Relative Δ."""
    found = np.stack([contributions(audit, run, audit.measures[0], a, b) for run in audit.runs])
    known = ~np.isnan(found).all(axis=1)  # a ranker that finds nothing relevant has no Relative Δ
    total: npt.NDArray[np.float64] = found[known].sum(axis=0)
    return total


def _relevant_pairs(collection: Collection, a: str, b: str) -> pl.DataFrame:
    """Pairs whose documents are both relevant to a query, the highest grades of a query first."""
    judged = collection.qrels.filter(pl.col("grade") > 0).with_row_index("row")
    found = judged.join(collection.pairs(a, b), left_on="doc_id", right_on="a", how="inner", maintain_order="left")
    both = found.join(
        judged.select("query_id", b="doc_id", other="grade"), on=["query_id", "b"], how="inner", maintain_order="left"
    )
    return both.with_columns(both=pl.col("grade") + pl.col("other")).sort(
        "both", "row", descending=[True, False], maintain_order=True
    )


def _strongest(audit: Audit, points: npt.NDArray[np.float64], pairs: pl.DataFrame) -> list[str]:
    held = set(pairs["query_id"])
    order = np.argsort(-np.nan_to_num(np.abs(points)), kind="stable")
    return [audit.queries[i] for i in order if audit.queries[i] in held and not np.isnan(points[i])][:PAIRS]


def _named(queries: Sequence[str], pairs: pl.DataFrame, collection: Collection) -> list[str]:
    for query in queries:
        if query not in collection.queries["id"]:
            raise unknown("query", query, collection.judged["id"].to_list()[:20])
        if query not in pairs["query_id"]:
            raise UserError(f"query {query!r} has no pair of texts that are both relevant to it")
    return list(dict.fromkeys(queries))


def _pair(runs: Sequence[Run], collection: Collection, pairs: pl.DataFrame, query: str, points: float) -> _ChosenPair:
    """The pair of a query that the runs set furthest apart, by the discounts of both ranks; the first without runs."""
    found = pairs.filter(pl.col("query_id") == query).select("doc_id", "b").rows()
    worth = [_discounts(run, query) for run in runs]
    a, b = max(found, key=lambda pair: sum(abs(one.get(pair[0], 0.0) - one.get(pair[1], 0.0)) for one in worth))
    texts = dict(collection.docs.select("id", "text").filter(pl.col("id").is_in([a, b])).iter_rows())
    question = collection.queries.filter(pl.col("id") == query)["text"][0]
    return _ChosenPair(query, question, points, (_cut(texts[a]), _cut(texts[b])))


def _discounts(run: Run, query: str) -> dict[str, float]:
    """What the rank of each document that a query found is worth; tied documents share their middle rank."""
    if query not in run.queries:
        return {}
    place = run.queries.index(query)
    found = slice(run.offsets[place], run.offsets[place + 1])
    ranks = pl.Series(run.scores[found]).rank("average", descending=True).to_numpy()
    return dict(zip(run.ids.gather(run.docs[found]), (1 / np.log2(1 + ranks)).tolist(), strict=True))


def _cut(text: str) -> str:
    words = text.split(maxsplit=WORDS)
    return " ".join(words[:WORDS]) + (" …" if len(words) > WORDS else "")


def _notes(opened: Opened, found: Sequence[_ChosenPair], *, named: bool) -> list[str]:
    audit = opened.audit
    rankers = counted(len(audit.runs), "ranker", "rankers")
    measure = repr(audit.measures[0])
    parts = ", ".join(f"{one.query} {signed(one.points)}" for one in found if one.points == one.points)
    notes = []
    which = "whose documents stand furthest apart in the rankings" if opened.runs else "of the highest grade"
    if not named:
        notes.append(
            f"Chosen: of {counted(len(audit.queries), 'query', 'queries')} the {len(found)} that contribute most to "
            f"Relative Δ of {measure}, {rankers} added up; of each the relevant pair {which}."
        )
    if parts:
        notes.append(
            f"Parts of Relative Δ in points, {rankers} added up (+ favours {audit.tilted_pairs[0][0]}): {parts}."
        )
    if any(text.endswith("…") for one in found for text in one.texts):
        notes.append(f"Texts are cut after {WORDS} words.")
    return notes
