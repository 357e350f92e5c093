"""Split a collection into one for each source, with the reference, over the same documents.

Ranked together, the rewrites of one model would push down those of the others; Dai et al. (KDD
2024) mix one model's rewrites with the originals. Only documents that every source rewrote are
compared. A source's temperature and model are read here too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note, counts_of
from ranktilt.data.notes.sources import (
    NamedTemperature,
    NoCommonDocuments,
    OnlyCommonDocuments,
    SeveralTemperatures,
    TemperaturesFromNames,
    UnevenCoverage,
)
from ranktilt.errors import UserError

HUMAN = "human"
"""Usual name of the reference."""
TEMPERATURE = "temperature"
"""Column of documents with the temperature that a text was generated at."""
MODEL = "model"
"""Column of documents with the model that generated a text."""
PROMPT = "prompt"
"""Columns of documents that say how a source was generated."""
COMPARED = "compared_sources"
"""Key in a collection's spec of the reference and the compared sources."""
_HIGHEST = 2.0
"""Highest temperature of language models; a larger number in a name is something else."""
_NAMED = re.compile(
    r"(?<=.)(?:[-_](?:tmp|temp|temperature)(?P<marked>\d+(?:\.\d+)?)|_(?P<bare>\d+\.\d+))$"
)
"""A temperature at the end of a source's name, such as ``-tmp0.2`` or ``_0.2``."""


@dataclass(frozen=True, kw_only=True)
class AuditedSource:
    """One source that is compared with the reference."""

    source: str
    """Name of the source."""
    series: str
    """Its model; with the prompt, if the model was given several. A series is one line of a figure.
    """
    temperature: float
    """Temperature; NaN if it is unknown."""
    documents: int
    """Number of its documents that are compared."""

    @property
    def has_temperature(self) -> bool:
        """Whether its temperature is known."""
        return not math.isnan(self.temperature)


@dataclass(frozen=True, kw_only=True)
class SourcesApart:
    """Several sources, each in its own collection together with the reference."""

    collection: Collection
    """The collection that they were taken from."""
    reference: str
    """Source that the others are compared with."""
    sources: tuple[AuditedSource, ...]
    """Compared sources, by series and rising temperature; without temperature, last in the series.
    """
    collections: tuple[Collection, ...]
    """Collection of each source, in the same order."""
    notes: tuple[Note, ...]
    """Notes on how they were taken apart."""

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Names of the reference and the source of each collection."""
        return [(self.reference, compared.source) for compared in self.sources]


def take_apart(
    collection: Collection, sources: Sequence[str] = (), *, reference: str | None = None
) -> SourcesApart:
    """Take each source apart with the reference, over the documents that every source rewrote.

    The reference is ``human`` by default where that is one of the `sources`, else the first of
    them; `sources` are all sources by default. Where no document was rewritten by every source, all
    documents of each are compared, with a note.
    """
    names = list(dict.fromkeys(sources)) or list(collection.sources)
    _require_known(collection, [*names, *([] if reference is None else [reference])])
    if reference is None:
        reference = HUMAN if HUMAN in names else next(iter(names), HUMAN)
    others = [name for name in names if name != reference]
    if not others:
        raise UserError(
            f"nothing to compare: {reference!r} is the only source; name others (--source)"
        )
    collection.only_sources([reference, *others]).require_few_sources(
        "choose some (--source), rank all as one (--mixed), or group by another column "
        "(--by COLUMN)"
    )
    temperatures, temperature_notes = _temperatures(collection, others)
    series = _series(collection, temperatures)
    covered = _covered(collection, reference, others)
    common = _common(covered)
    collections = {
        name: _with_reference(collection, [reference, *others], name, common) for name in others
    }
    audited = [
        AuditedSource(
            source=name,
            series=series[name],
            temperature=temperatures[name],
            documents=_documents(collections[name], name),
        )
        for name in others
    ]
    audited.sort(key=lambda source: (source.series, not source.has_temperature, source.temperature))
    return SourcesApart(
        collection=collection,
        reference=reference,
        sources=tuple(audited),
        collections=tuple(collections[compared.source] for compared in audited),
        notes=(*temperature_notes, *_coverage_notes(covered, common, collections)),
    )


def again_apart(collection: Collection, source: str, compared: Sequence[str]) -> Collection:
    """Return the collection of one source again, from the whole collection.

    `compared` is `COMPARED` of its spec.
    """
    reference, *others = compared
    common = _common(_covered(collection, reference, others))
    return _with_reference(collection, compared, source, common)


def _require_known(collection: Collection, names: Iterable[str]) -> None:
    """Refuse a source that no document has."""
    strange = next((name for name in names if name not in collection.sources), None)
    if strange is not None:
        raise UserError(
            f"{collection.unknown_source(strange)}: sources are in the documents' column "
            "'source'; choose with --source and --reference"
        )


def _with_reference(
    collection: Collection, compared: Sequence[str], source: str, common: pl.Series
) -> Collection:
    """Return all documents of the reference, and those of a source that every source rewrote.

    Only judgments of these documents and of their originals count; the other originals compete.
    """
    pair = collection.only_sources([compared[0], source])
    if not len(common):
        return pair
    is_common = pl.col("origin").is_in(common.implode())
    docs = pair.docs.filter(is_common | (pl.col("source") == compared[0]).fill_null(value=True))
    is_judged = pl.col("doc_id").is_in(docs.filter(is_common)["id"].implode())
    is_known = pl.col("doc_id").is_in(pair.ids.implode())
    qrels = pair.qrels.filter(is_judged | ~is_known)
    if (docs.height, qrels.height) == (pair.docs.height, pair.qrels.height):
        return pair
    return Collection(docs, pair.queries, qrels, {**pair.spec, COMPARED: list(compared)})


def _documents(collection: Collection, source: str) -> int:
    """Return the number of documents of a source."""
    return collection.docs.filter(pl.col("source") == source).height


def _covered(
    collection: Collection, reference: str, sources: Sequence[str]
) -> dict[str, pl.Series]:
    """Return for each source the origins that it rewrote."""
    docs = collection.docs
    originals = docs.filter(pl.col("source") == reference)["origin"].unique(maintain_order=True)
    covered = {}
    for name in sources:
        origins = docs.filter(pl.col("source") == name)["origin"]
        covered[name] = originals.filter(originals.is_in(origins.implode()))
    return covered


def _common(covered: dict[str, pl.Series]) -> pl.Series:
    """Return the origins that every source rewrote."""
    first, *others = covered.values()
    for origins in others:
        first = first.filter(first.is_in(origins.implode()))
    return first


def _coverage_notes(
    covered: dict[str, pl.Series], common: pl.Series, collections: dict[str, Collection]
) -> list[Note]:
    """Note which documents are compared, where not all are."""
    if not len(common):
        alone = tuple(name for name, origins in covered.items() if not len(origins))
        return [NoCommonDocuments(without_rewrites=alone)]
    total = pl.concat(list(covered.values())).n_unique()
    lacking = {
        name: total - len(origins) for name, origins in covered.items() if len(origins) < total
    }
    if lacking:
        return [UnevenCoverage(common=len(common), rewritten=total, lacking=counts_of(lacking))]
    if any(COMPARED in pair.spec for pair in collections.values()):
        return [OnlyCommonDocuments(documents=len(common))]
    return []


def _temperatures(
    collection: Collection, sources: Sequence[str]
) -> tuple[dict[str, float], list[Note]]:
    """Return the temperature of each source, and notes on those that no column holds."""
    temperatures, notes = dict[str, float](), list[Note]()
    from_names = list[NamedTemperature]()
    stated = _by_source(collection, TEMPERATURE)
    for name in sources:
        column, ending = stated.get(name, []), split_temperature(name)[1]
        temperatures[name] = math.nan if ending is None else ending
        if len(column) == 1:
            temperatures[name] = column[0]
        elif len(column) > 1:
            temperatures[name] = math.nan
            several = SeveralTemperatures(
                source=name, temperatures=len(column), low=min(column), high=max(column)
            )
            notes.append(several)
        elif ending is not None:
            from_names.append(NamedTemperature(source=name, temperature=ending))
    if from_names:
        notes.append(TemperaturesFromNames(sources=tuple(from_names)))
    return temperatures, notes


def _by_source(collection: Collection, column: str) -> dict[str, list[Any]]:
    """Return the values of a column for each source: numbers of `TEMPERATURE`, else strings."""
    docs = collection.docs
    kind = docs.schema.get(column, pl.Null())
    if not (kind.is_numeric() if column == TEMPERATURE else kind == pl.String):
        return {}
    return dict(docs.group_by("source").agg(pl.col(column).drop_nulls().unique()).iter_rows())


def _single_values(collection: Collection, column: str) -> dict[str, str]:
    """Return the value of a column for each source that has just one."""
    return {
        name: values[0]
        for name, values in _by_source(collection, column).items()
        if len(values) == 1 and values[0]
    }


def _series(collection: Collection, sources: Iterable[str]) -> dict[str, str]:
    """Return each source's model, with its prompt where the model was given several."""
    models = _single_values(collection, MODEL)
    prompts = _single_values(collection, PROMPT)
    model_of = {name: models.get(name, split_temperature(name)[0]) for name in sources}
    prompts_of: dict[str, set[str | None]] = {}
    for name, model in model_of.items():
        prompts_of.setdefault(model, set()).add(prompts.get(name))
    series = {}
    for name, model in model_of.items():
        is_told_apart = len(prompts_of[model]) > 1
        series[name] = f"{model}, {prompts.get(name, 'no prompt')}" if is_told_apart else model
    return series


def split_temperature(source: str) -> tuple[str, float | None]:
    """Split a source's name into its model and the temperature at its end, None for none.

    The ending is ``-tmp0.2`` or ``_0.2``.
    """
    ending = _NAMED.search(source)
    if ending is None:
        return source, None
    temperature = float(ending["marked"] or ending["bare"])
    if temperature > _HIGHEST:
        return source, None
    return source[: ending.start()], temperature
