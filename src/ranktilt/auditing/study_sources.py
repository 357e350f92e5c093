"""Sources taken apart, two by two; those of a temperature study: model, temperature, and the documents they cover."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted, unknown

_HUMAN = "human"
TEMPERATURE, MODEL, PROMPT = "temperature", "model", "prompt"
_HIGHEST = 2.0
_NAMED = re.compile(r"(?<=.)(?:[-_](?:tmp|temp|temperature)(\d+(?:\.\d+)?)|_(\d+\.\d+))$")


@dataclass(frozen=True)
class StudySource:
    """One source of a study."""

    source: str
    series: str
    """The model behind it, and the prompt where the model was given several; sources of one series make a line."""
    temperature: float
    """NaN where nothing says it."""
    documents: int
    """Its documents that are compared."""


@dataclass(frozen=True)
class StudySources:
    """What all sources of a study cover, so that they differ in the rewrites alone."""

    sources: tuple[StudySource, ...]
    origins: pl.Series
    """Origins with a document of the reference and of every one."""
    notes: tuple[str, ...]


def study_sources(
    collection: Collection, reference: str, *, sources: Sequence[str] | None = None
) -> StudySources:
    """Find a study's sources by series and rising temperature, and the documents that all of them rewrote."""
    if reference not in collection.sources:
        raise collection.unknown_source(reference)
    others = [name for name in collection.sources if name != reference]
    if not others:
        raise UserError(
            f"nothing to study: only source {reference!r}; expected rewrites at several temperatures"
        )
    chosen = list(dict.fromkeys(sources)) if sources else others
    strange = next((name for name in chosen if name not in others), None)
    if strange is not None:
        raise unknown("source", strange, others)
    known, notes = _temperatures(collection, chosen)
    if all(math.isnan(t) for t in known.values()):
        raise UserError(
            f"no temperature is known of {', '.join(chosen)}: give the documents a column {TEMPERATURE!r}, or let the "
            f"names of the sources end in it: {chosen[0]}-tmp0.2"
        )
    origins, coverage = _common(collection, reference, chosen)
    series = _series(collection, known)
    held = collection.docs.filter(pl.col("origin").is_in(origins.implode()))[
        "source"
    ].value_counts()
    counts = dict(held.iter_rows())
    members = [StudySource(name, series[name], known[name], int(counts[name])) for name in chosen]
    members.sort(key=lambda one: (one.series, math.isnan(one.temperature), one.temperature))
    return StudySources(tuple(members), origins, (*notes, *coverage))


def source_pairs(collection: Collection, sources: Sequence[str] = ()) -> list[Collection]:
    """Take a collection with the rewrites of several models apart: one collection for each, beside the originals.

    Ranked together, each model's rewrites would push down the others' (Dai et al., KDD 2024, mix
    one model's with the originals). The originals are ``human`` where that is one of `sources`,
    else the first.
    """
    chosen = list(dict.fromkeys(sources)) or list(collection.sources)
    if len(sources) and len(chosen) < 2:
        rest = [name for name in collection.sources if name not in chosen]
        other = _HUMAN if _HUMAN in rest else next(iter(rest), "")
        hint = f": name what it is held against too, such as {other!r}" if other else ""
        raise UserError(f"only source {chosen[0]!r}{hint}")
    picked = collection.only_sources(chosen)
    if len(chosen) <= 2:
        return [picked]
    picked.require_few_sources(
        "choose some (--source), rank all as one (--mixed), or group otherwise (--by COLUMN)"
    )
    first = _HUMAN if _HUMAN in chosen else chosen[0]
    return [collection.only_sources([first, name]) for name in chosen if name != first]


def only(collection: Collection, reference: str, source: str, origins: pl.Series) -> Collection:
    """Return all of the reference and the other's documents of some origins, judged there alone: each has its twin."""
    common = pl.col("origin").is_in(origins.implode())
    two = collection.only_sources([reference, source])
    kept = two.docs.filter((pl.col("source") == reference) | common)
    judged = kept.filter(common)["id"]
    known = pl.col("doc_id").is_in(collection.ids.implode())
    qrels = collection.qrels.filter(~known | pl.col("doc_id").is_in(judged.implode()))
    return Collection(kept, collection.queries, qrels, collection.spec)


def _temperatures(
    collection: Collection, sources: Sequence[str]
) -> tuple[dict[str, float], list[str]]:
    """Temperature of each source, and notes on those that stand in no column."""
    found, notes, read = dict[str, float](), [], []
    stated = _by_source(collection, TEMPERATURE)
    for name in sources:
        column, ending = stated.get(name, []), split_temperature(name)[1]
        if len(column) > 1:
            raise UserError(
                f"source {name!r} holds documents of {len(column)} temperatures, {min(column):g} to {max(column):g}; "
                "give each temperature a source of its own"
            )
        known = column[0] if column else ending
        found[name] = math.nan if known is None else known
        if not column and ending is not None:
            read.append(f"{name} ({ending:g})")
    if read:
        notes.append(
            f"temperature read from the name of the source, for want of a column: {', '.join(read)}"
        )
    without = [name for name in sources if math.isnan(found[name])]
    if without:
        notes.append(f"no temperature is known of {', '.join(without)}, in no trend")
    return found, notes


def _by_source(collection: Collection, column: str) -> dict[str, list[Any]]:
    """What the documents of each source say in a column: numbers of `TEMPERATURE`, strings of the others."""
    docs = collection.docs
    kind = docs.schema.get(column, pl.Null())
    if not (kind.is_numeric() if column == TEMPERATURE else kind == pl.String):
        return {}
    return dict(docs.group_by("source").agg(pl.col(column).drop_nulls().unique()).iter_rows())


def _series(collection: Collection, sources: Iterable[str]) -> dict[str, str]:
    """The line that each source belongs to: its model, and its prompt where the model was given several."""
    models, prompts = (
        {
            name: held[0]
            for name, held in _by_source(collection, column).items()
            if len(held) == 1 and held[0]
        }
        for column in (MODEL, PROMPT)
    )
    of = {name: models.get(name, split_temperature(name)[0]) for name in sources}
    several = {
        model for model in of.values() if len({prompts.get(n) for n in of if of[n] == model}) > 1
    }
    told = {name: f"{model}, {prompts.get(name, 'no prompt named')}" for name, model in of.items()}
    return {name: told[name] if model in several else model for name, model in of.items()}


def split_temperature(source: str) -> tuple[str, float | None]:
    """Split a source's name into its model and the temperature at its end (``-tmp0.2``, ``_0.2``); None for none."""
    ending = _NAMED.search(source)
    value = float(ending[1] or ending[2]) if ending else math.inf
    return (source[: ending.start()], value) if ending and value <= _HIGHEST else (source, None)


def _common(
    collection: Collection, reference: str, sources: Sequence[str]
) -> tuple[pl.Series, list[str]]:
    """Origins that the reference and every source hold, and notes on what is left out for it."""
    docs = collection.docs
    human = docs.filter(pl.col("source") == reference)["origin"].unique(maintain_order=True)
    covered = {
        name: human.filter(human.is_in(docs.filter(pl.col("source") == name)["origin"].implode()))
        for name in sources
    }
    common = human
    for one in covered.values():
        common = common.filter(common.is_in(one.implode()))
    if not len(common):
        fewest = min(covered, key=lambda name: len(covered[name]))
        raise UserError(
            f"no document was rewritten by every source; {fewest!r} has rewrites of {len(covered[fewest]):,} documents "
            f"of {reference!r}: leave it out by naming the others (--source)"
        )
    every = pl.concat(list(covered.values())).n_unique()
    lacking = ", ".join(
        f"{name} lacks {every - len(one):,}" for name, one in covered.items() if len(one) < every
    )
    note = (
        f"warning: the sources do not cover the same documents: {len(common):,} of "
        f"{counted(every, 'rewritten document', 'rewritten documents')} are common to all ({lacking}); only these are "
        "compared, and only their judgments count"
    )
    return common, [note] if lacking else []
