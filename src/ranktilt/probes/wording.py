"""What a validation says in words, and what it leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from ranktilt.auditing.effects import FEW_QUERIES
from ranktilt.auditing.equivalence import Equivalence, Outcome
from ranktilt.collection import Collection
from ranktilt.datasets.check_result import POOL, Check, percent
from ranktilt.errors import counted
from ranktilt.probes.overlap import Overlap
from ranktilt.probes.similarity import ABOVE, Similarity
from ranktilt.rankers.base import Ranker

_TITLES = "shared titles"
_ORDER: tuple[Outcome, ...] = (
    "equivalent", "different within the margin", "different", "inconclusive", "not tested",
)  # fmt: skip


def terms_sentence(found: Overlap, reference: str) -> str:
    """Say how many terms rewrites keep.

    Parameters
    ----------
    found : Overlap
        Of one source.
    reference : str
        The other side.

    Returns
    -------
    str
        One sentence.
    """
    if not found.overlap.count:
        return f"terms cannot be compared: no text of {reference} with a twin has a term"
    return (
        f"rewrites keep {percent(100 * found.overlap.mean)} of the terms of {reference} text; Jaccard "
        f"{found.jaccard.mean:.2f} (means over {counted(found.overlap.count, 'pair', 'pairs')})"
    )


def vectors_sentence(found: Similarity, reference: str) -> str:
    """Say how near twins are, beside other pairs, and whether the sources can be told apart all the same.

    Parameters
    ----------
    found : Similarity
        Of one source.
    reference : str
        The other side.

    Returns
    -------
    str
        One sentence.
    """
    if not found.cosine.count:
        return f"vectors of {found.model} cannot be compared: no pair has a vector on both sides"
    above = percent(100 * found.cosine.above(ABOVE))
    near = f"twins have a cosine of {found.cosine.quartiles[1]:.2f} in the median, {above} above {ABOVE:g}"
    if found.baseline.count:
        near += f"; a text and the rewrite of another, {found.baseline.quartiles[1]:.2f}"
    apart = found.separation
    if not np.isnan(apart.nearest):
        near += f"; for {percent(100 * apart.nearest)} of documents the nearest of all is their own twin"
    if not np.isnan(apart.auc):
        near += f"; {_told(apart.auc)} by their vectors (AUC {apart.auc:.2f})"
    return f"{near} ({found.model})"


def _told(auc: float) -> str:
    """The AUC in a word: half way between chance and certainty is called well."""
    if auc < 0.6:
        return "the sources can hardly be told apart"
    return "the sources can be told apart" + (" well" if auc >= 0.75 else " in part")


def effectiveness_sentences(rows: Sequence[Equivalence]) -> list[str]:
    """Say per measure which rankers find both sides equally well, which do not, and which leave it open.

    Parameters
    ----------
    rows : sequence of Equivalence
        Of one source.

    Returns
    -------
    list of str
        A sentence for each measure and outcome. A difference that is not shown is never called equivalence.
    """
    found = []
    for measure in dict.fromkeys(row.measure for row in rows):
        for outcome in _ORDER:
            chosen = [row for row in rows if (row.measure, row.outcome) == (measure, outcome)]
            if chosen:
                found.append(_outcome_sentence(chosen, measure, outcome))
    return found


def _outcome_sentence(rows: Sequence[Equivalence], measure: str, outcome: Outcome) -> str:
    front = f"{', '.join(row.run for row in rows)} on each side alone, {measure}"
    differences = ", ".join(f"{row.difference:+.3f}".replace("-", "−") for row in rows)
    widest = max(row.smallest for row in rows)
    margin = rows[0].margin
    return {
        "equivalent": f"{front}: equivalent within ±{margin:g}, shown down to ±{widest:.3f}",
        "different within the margin": f"{front}: different ({differences}), but within ±{margin:g}",
        "different": f"{front}: different ({differences})",
        "inconclusive": f"{front}: inconclusive; no difference is shown, but one of {widest:.3f} is not excluded",
        "not tested": f"{front}: not tested; it takes two queries with a relevant document on both sides",
    }[outcome]


def notes(
    collection: Collection, reference: str, rows: Sequence[Equivalence], check: Check | None, encoder: Ranker | None
) -> Iterator[str]:
    """Say what a validation leaves out, and what stands on little.

    Parameters
    ----------
    collection : Collection
        What is validated.
    reference : str
        The source that the others are held against.
    rows : sequence of Equivalence
        Effectiveness of each ranker on each side.
    check : Check or None
        What `check` found.
    encoder : Ranker or None
        Whose vectors are compared.

    Yields
    ------
    str
        One note.
    """
    others = [name for name in collection.sources if name != reference]
    if not others:
        yield f"only source {reference!r}: there is nothing to compare, so that only its statistics are given"
        return
    for source in others:
        if not collection.pairs(reference, source).height:
            yield f"{source} has no document of the same origin as one of {reference}: nothing of it can be compared"
    if not collection.qrels.filter(pl.col("grade") > 0).height:
        yield "no document is judged relevant: effectiveness is left out"
    yield from _restricted(collection, reference, rows)
    yield from _thin(rows)
    if encoder is not None:
        yield from _read(collection, check, encoder)


def _restricted(collection: Collection, reference: str, rows: Sequence[Equivalence]) -> Iterator[str]:
    for row in {row.source: row for row in rows if row.left_out}.values():
        yield (
            f"effectiveness of {reference} and {row.source} is that of a search among the {row.pairs:,} pairs: "
            f"{counted(row.left_out, 'document', 'documents')} without a twin are on neither side"
        )
    if any(row.left_out for row in rows) and collection.docs.schema.get(POOL) == pl.Boolean:
        yield (
            "queries chose the documents that were rewritten (a pool): the easy ones to tell from the relevant are "
            "missing on both sides, and effectiveness is not comparable with that on the whole collection"
        )


def _thin(rows: Sequence[Equivalence]) -> Iterator[str]:
    excluded = max(rows, key=lambda row: row.excluded, default=None)
    if excluded is not None and excluded.excluded:
        total = counted(excluded.queries + excluded.excluded, "query", "queries")
        yield f"up to {excluded.excluded} of {total} excluded: no relevant document on both sides"
    fewest = min((row.queries for row in rows), default=FEW_QUERIES)
    if fewest < FEW_QUERIES:
        yield (
            f"warning: only {counted(fewest, 'query is', 'queries are')} compared; t tests of fewer than "
            f"{FEW_QUERIES} are not to rely on"
        )


def _read(collection: Collection, check: Check | None, encoder: Ranker) -> Iterator[str]:
    """What vectors were made of: shared titles bring twins nearer, and what is cut off counts nowhere."""
    if getattr(encoder, "text", "") == "title+text":
        for row in check.rows if check else ():
            if row.name == _TITLES and row.found:
                yield (
                    f"{percent(row.value)} of the twins of {row.source} share their title, which {encoder!r} reads "
                    "too: it brings them nearer; text=text leaves titles out"
                )
    about = getattr(encoder, "about", None)
    cut = about(collection).get("truncated") if about else None
    if cut and any(cut["share"].values()):
        shares = ", ".join(f"{percent(100 * share)} of {name}" for name, share in cut["share"].items())
        yield f"{encoder!r} reads {cut['limit']} tokens: what stands beyond them is in no vector ({shares} is longer)"
