"""The explorer of a page as a block of its document: queries, ranked lists and texts.

The queries come in the order of what they contribute to the *tilt* (how far a ranker favours one of
two groups of documents) on the audit's first pair of groups. *Twins* are versions of one document
in both groups. The *depth* is the number of first results of each list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.groups import ALL
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.notes import only_labels
from ranktilt.errors import counted
from ranktilt.reporting.document import Cell, Column, Explorer, Row, Table
from ranktilt.reporting.explorer.lists import FURTHER, ranked_lists
from ranktilt.reporting.explorer.numbers import Numbers
from ranktilt.reporting.explorer.pack import LONGEST, Material, Packed
from ranktilt.reporting.numbers import DASH, percent, signed
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.tones import Tone

BUDGET = 2_450_000
"""Characters that lists and texts may take, so that a page with texts stays below 3 MB."""
DEPTH = 10
"""Number of first results of each list, unless another number is passed."""
MOST = 50
"""Most queries of the table for readers without scripts."""
_QUERY_LETTERS = 120
"""Most characters of a query in that table."""


def explorer(loaded: LoadedAudit, *, budget: int = BUDGET, depth: int = DEPTH) -> Explorer | None:
    """Collect the queries, ranked lists and texts of an audit for its page.

    Parameters
    ----------
    loaded : LoadedAudit
        The audit with its collection and runs.
    budget : int, optional
        Characters that lists and texts may take together.
    depth : int, optional
        Number of first results of each list.

    Returns
    -------
    Explorer or None
        None where the collection or the runs are missing, or nothing was measured.
    """
    audit, collection, runs = loaded.audit, loaded.collection, loaded.runs
    if collection is None or not runs or not audit.queries or not (audit.measures or audit.pairs):
        return None
    groups = grouping(collection, audit.spec.get("by"), audit.groups, fewest=1)
    judgments = Judgments.from_collection(collection, groups)
    run_names = tuple(run.name for run in runs)
    numbers = Numbers.from_audit(audit, run_names)
    order = numbers.order(audit.primary_index if audit.measures else 0)
    ties = str(audit.spec.get("ties", "expected"))
    lists = ranked_lists(collection, groups, judgments, runs, order=order, depth=depth, ties=ties)
    material = Material(
        audit=audit,
        collection=collection,
        groups=groups,
        runs=run_names,
        order=order,
        numbers=numbers,
        lists=lists,
        depth=depth,
    )
    packed = material.fitted(budget)
    return Explorer(
        caption="Queries, ranked lists and texts" if packed.texts else "Queries and ranked lists",
        description=" ".join(_description(material, packed)),
        lists=packed.lists,
        texts=packed.texts,
        rows=query_rows(material, packed.queries),
    )


def _description(material: Material, packed: Packed) -> Iterator[str]:
    """Yield sentences on the queries, lists and texts that the page holds and leaves out."""
    yield _queries_sentence(material, packed)
    yield _lists_sentence(material)
    if material.audit.spec.get("rounding") == "paper" and material.numbers.pairs:
        yield "The parts of Relative Δ add up to its value before the means are rounded."
    if (material.lists.relevant > FURTHER).any():
        yield (
            f"Of the relevant documents further down, each query shows the {FURTHER} best ranked."
        )
    yield from _texts_sentences(material, packed)


def _queries_sentence(material: Material, packed: Packed) -> str:
    """Say how many of the audit's queries are shown, and which."""
    query_count = len(material.audit.queries)
    if packed.queries < query_count:
        return (
            f"{packed.queries:,} of {query_count:,} queries: {_order_reason(material)}. "
            "All of them would make the page too large."
        )
    if query_count == 1:
        return "The audit's only query."
    return f"All {counted(query_count, 'query', 'queries')} of the audit."


def _lists_sentence(material: Material) -> str:
    """Say how many results of how many rankers are shown, and which others."""
    run_count, audited_count = len(material.runs), len(material.audit.runs)
    rankers = counted(audited_count, "ranker", "rankers")
    if run_count != audited_count:
        rankers = f"{run_count} of {rankers}"
    further_down = []
    if material.lists.relevant.any():
        further_down.append("relevant documents")
    if material.lists.twins.height:
        further_down.append("the twins of listed documents")
    results = counted(material.depth, "result", "results")
    sentence = f"Each list shows the first {results} of {rankers}"
    if further_down:
        sentence += f", and {' and '.join(further_down)} further down"
    return f"{sentence}."


def _texts_sentences(material: Material, packed: Packed) -> Iterator[str]:
    """Yield sentences on texts that are missing or cut."""
    needed_count = material.needed(packed.queries)
    if not packed.texts:
        # An audit of labels alone never had texts, which its reader knows.
        if not only_labels(material.collection):
            yield "The documents have no texts to show."
    elif packed.documents < needed_count:
        yield (
            f"The page includes the texts of {packed.documents:,} of {needed_count:,} documents, "
            "those that the first queries need."
        )
    if packed.cut:
        texts = counted(packed.cut, "text is", "texts are")
        yield f"{texts} cut after {LONGEST['text']:,} characters."


def _order_reason(material: Material) -> str:
    """Say which queries come first."""
    if not material.numbers.pairs:
        return "the first ones"
    a, b = material.numbers.pairs[0]
    if material.audit.measures:
        question = f"{material.audit.primary_measure!r}, {a} against {b}"
        return f"those that contribute most to some ranker's Relative Δ ({question})"
    return f"those in which the twins of {a} and {b} differ most"


def query_rows(material: Material, queries: int) -> Table:
    """Return the table of the queries that contribute most, for readers without scripts and print.

    `queries` is how many queries the explorer holds.
    """
    row_count = min(queries, MOST)
    rows = []
    ids_and_texts = material.queries.head(row_count).iter_rows()
    for (query_id, text), query_index in zip(ids_and_texts, material.order, strict=False):
        cells = [
            _number_cell(material, run_index, query_index)
            for run_index in range(len(material.runs))
        ]
        rows.append(Row((_query_cell(query_id, text), *cells)))
    words = _column_words(material)
    columns = [Column(words.title, hint=words.hint) for _ in material.runs]
    return Table(
        caption=_rows_caption(material, row_count),
        columns=(Column("query", number=False, header=True), *columns),
        rows=tuple(rows),
        note=words.note,
        spans=(("", 1), *((name, 1) for name in material.runs)),
    )


def _rows_caption(material: Material, row_count: int) -> str:
    """Return the heading of the table of queries."""
    query_count = len(material.audit.queries)
    share = "All" if row_count == query_count else f"{row_count:,} of"
    caption = f"{share} {counted(query_count, 'query', 'queries')}"
    return f"{caption}, first {_order_reason(material)}" if material.numbers.pairs else caption


def _query_cell(query_id: str, text: str) -> Cell:
    """Return the cell of a query's text with its id as note; of the id where it has no text."""
    if not text.strip():
        return Cell(query_id)
    short_text = text if len(text) <= _QUERY_LETTERS else text[: _QUERY_LETTERS - 1] + "…"
    return Cell(short_text, note=query_id)


@dataclass(frozen=True, kw_only=True)
class _ColumnWords:
    """Title, hint and note for the columns of numbers, one for each run."""

    title: str
    """Heading of the column."""
    hint: str
    """Explanation of the heading."""
    note: str
    """Explanation below the table."""


def _column_words(material: Material) -> _ColumnWords:
    """Return the words for the columns, by what `_number_cell` prints in them."""
    pairs, audit = material.numbers.pairs, material.audit
    if not pairs:
        primary = repr(audit.primary_measure)
        return _ColumnWords(
            title=primary,
            hint=f"{primary} of all relevant documents, in %",
            note=f"{primary} in %.",
        )
    a, b = pairs[0]
    if not audit.measures:
        return _ColumnWords(
            title=f"{a} : {b}",
            hint=f"twins in which {a} ranks higher, and in which {b} does",
            note="Twins with at least one side retrieved: how often each side ranks higher.",
        )
    return _ColumnWords(
        title="part of Relative Δ",
        hint=f"points of Relative Δ from this query; positive for {a}",
        note=f"In points, positive for {a}. Over all queries they add up to Relative Δ.",
    )


def _number_cell(material: Material, run_index: int, query_index: np.int64) -> Cell:
    """Return the cell of one run's number for one query.

    This is the query's part of the tilt on the first pair of groups; without judgments, wins and
    losses of twins; without groups, the value of the primary measure.
    """
    numbers, audit = material.numbers, material.audit
    if not numbers.pairs:
        all_index = audit.groups.index(ALL)
        value = float(numbers.values[run_index, audit.primary_index, all_index, query_index])
        return Cell(percent(value), value)
    if not audit.measures:
        wins, losses, ties = numbers.heads[run_index, 0, query_index].tolist()
        if not wins + losses + ties:
            return Cell(DASH, float("nan"))
        return Cell(f"{wins} : {losses}", wins - losses)
    value = float(numbers.tilt[run_index, 0, audit.primary_index, query_index])
    tone: Tone = ""
    if value > 0:
        tone = "first"
    elif value < 0:
        tone = "second"
    return Cell(signed(value, 2), value, tone)
