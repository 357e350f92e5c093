"""Split a collection into one for each source, with the reference, over the same documents.

A *source* is whoever wrote a document, such as a language model; the reference is usually the human
source. Its documents are the originals, of which each of the other sources has rewrites. The
*origin* of a document is its original.

If all sources were ranked together, the rewrites of one model would push down those of the others;
Dai et al. (KDD 2024) mix one model's rewrites with the originals. Only documents that every source
rewrote are compared. A source's temperature and model are read here too.
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
"""Column of documents with the name of the prompt that a text was generated with."""
COMPARED = "compared_sources"
"""Key in a collection's spec: the reference and all compared sources that it was split from."""
_HIGHEST_TEMPERATURE = 2.0
"""Highest temperature of language models; a larger number in a name is something else."""
_TEMPERATURE_ENDING = re.compile(
    r"(?<=.)(?:[-_](?:tmp|temp|temperature)(?P<marked>\d+(?:\.\d+)?)|_(?P<bare>\d+\.\d+))$"
)
"""A temperature at the end of a source's name, such as ``-tmp0.2`` or ``_0.2``."""


@dataclass(frozen=True, kw_only=True)
class AuditedSource:
    """One source that is compared with the reference."""

    source: str
    """Name of the source."""
    series: str
    """Name of the series: the model, with the prompt if the model was given several.

    A figure has a line for each series, over the temperatures of its sources.
    """
    temperature: float
    """Temperature that the texts were generated at; NaN if it is unknown."""
    documents: int
    """Number of documents of this source that are compared."""

    @property
    def has_temperature(self) -> bool:
        """Whether the temperature is known."""
        return not math.isnan(self.temperature)


@dataclass(frozen=True, kw_only=True)
class SourcesApart:
    """Several sources, each in its own collection together with the reference."""

    collection: Collection
    """The collection of all sources, which was split."""
    reference: str
    """Source that the others are compared with."""
    sources: tuple[AuditedSource, ...]
    """Compared sources, by series and rising temperature.

    A source without a temperature comes last in its series.
    """
    collections: tuple[Collection, ...]
    """Collection of each source with the reference, in the order of `sources`."""
    notes: tuple[Note, ...]
    """Notes on temperatures, and on documents that not every source rewrote."""

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Names of the reference and the source of each collection."""
        return [(self.reference, compared.source) for compared in self.sources]


def take_apart(
    collection: Collection, sources: Sequence[str] = (), *, reference: str | None = None
) -> SourcesApart:
    """Split a collection: each source with the reference, over documents that all sources rewrote.

    If no document was rewritten by every source, all documents of each source are compared, with a
    note.

    Parameters
    ----------
    collection : Collection
        The documents of all sources.
    sources : sequence of str, optional
        Sources to compare, the reference may be among them; by default all.
    reference : str, optional
        Source that the others are compared with. By default ``human`` if that is one of the
        sources, else the first of them.

    Raises
    ------
    UserError
        If a source is unknown, if there is only one, or if there are too many.
    """
    names = list(dict.fromkeys(sources)) or list(collection.sources)
    _require_known(collection, names if reference is None else [*names, reference])
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
    series = _series(collection, others)
    rewritten = _rewritten_origins(collection, reference, others)
    common = _common_origins(rewritten)
    collections = {
        name: _with_reference(collection, [reference, *others], name, common) for name in others
    }
    audited = [
        AuditedSource(
            source=name,
            series=series[name],
            temperature=temperatures[name],
            documents=_document_count(collections[name], name),
        )
        for name in others
    ]
    audited.sort(key=lambda source: (source.series, not source.has_temperature, source.temperature))
    return SourcesApart(
        collection=collection,
        reference=reference,
        sources=tuple(audited),
        collections=tuple(collections[compared.source] for compared in audited),
        notes=(*temperature_notes, *_coverage_notes(rewritten, common, collections)),
    )


def again_apart(collection: Collection, source: str, compared: Sequence[str]) -> Collection:
    """Return the collection of one source with the reference, from a collection that is read again.

    `compared` are the reference and all sources that it was split from, as its spec has them under
    `COMPARED`.
    """
    reference, *others = compared
    common = _common_origins(_rewritten_origins(collection, reference, others))
    return _with_reference(collection, compared, source, common)


def _require_known(collection: Collection, names: Iterable[str]) -> None:
    """Refuse a source that no document has."""
    for name in names:
        if name not in collection.sources:
            raise UserError(
                f"{collection.unknown_source(name)}: sources are in the documents' column "
                "'source'; choose with --source and --reference"
            )


def _with_reference(
    collection: Collection, compared: Sequence[str], source: str, common: pl.Series
) -> Collection:
    """Return all documents of the reference, and a source's rewrites of the common origins.

    Only judgments of these rewrites and of their originals count; the other originals are ranked,
    but not judged. `compared` are the reference and all sources, and `common` the origins that all
    sources rewrote; if there are none, nothing is left out.
    """
    reference = compared[0]
    pair = collection.only_sources([reference, source])
    if not len(common):
        return pair
    is_common = pl.col("origin").is_in(common.implode())
    docs = pair.docs.filter(is_common | (pl.col("source") == reference).fill_null(value=True))
    is_judged = pl.col("doc_id").is_in(docs.filter(is_common)["id"].implode())
    # Judgments of documents that the collection does not have are no reason to leave anything out.
    is_known = pl.col("doc_id").is_in(pair.ids.implode())
    qrels = pair.qrels.filter(is_judged | ~is_known)
    if (docs.height, qrels.height) == (pair.docs.height, pair.qrels.height):
        return pair
    return Collection(docs, pair.queries, qrels, {**pair.spec, COMPARED: list(compared)})


def _document_count(collection: Collection, source: str) -> int:
    """Return the number of documents of a source."""
    return collection.docs.filter(pl.col("source") == source).height


def _rewritten_origins(
    collection: Collection, reference: str, sources: Sequence[str]
) -> dict[str, pl.Series]:
    """Return the origins that each source rewrote, in the order of the reference's documents."""
    docs = collection.docs
    originals = docs.filter(pl.col("source") == reference)["origin"].unique(maintain_order=True)
    rewritten = {}
    for name in sources:
        origins = docs.filter(pl.col("source") == name)["origin"]
        rewritten[name] = originals.filter(originals.is_in(origins.implode()))
    return rewritten


def _common_origins(rewritten: dict[str, pl.Series]) -> pl.Series:
    """Return the origins that every source rewrote."""
    common, *others = rewritten.values()
    for origins in others:
        common = common.filter(common.is_in(origins.implode()))
    return common


def _coverage_notes(
    rewritten: dict[str, pl.Series], common: pl.Series, collections: dict[str, Collection]
) -> list[Note]:
    """Note which documents are compared, if not all of them are."""
    if not len(common):
        without_rewrites = tuple(name for name, origins in rewritten.items() if not len(origins))
        return [NoCommonDocuments(without_rewrites=without_rewrites)]
    total = pl.concat(list(rewritten.values())).n_unique()
    lacking = {
        name: total - len(origins) for name, origins in rewritten.items() if len(origins) < total
    }
    if lacking:
        return [UnevenCoverage(common=len(common), rewritten=total, lacking=counts_of(lacking))]
    if any(COMPARED in pair.spec for pair in collections.values()):
        return [OnlyCommonDocuments(documents=len(common))]
    return []


def _temperatures(
    collection: Collection, sources: Sequence[str]
) -> tuple[dict[str, float], list[Note]]:
    """Return the temperature of each source, and notes on those that do not come from the column.

    The temperature is that of the column if all documents of the source have one, else that at the
    end of the source's name, else NaN.
    """
    temperatures: dict[str, float] = {}
    notes: list[Note] = []
    from_names: list[NamedTemperature] = []
    column_values = _values_by_source(collection, TEMPERATURE)
    for name in sources:
        values = column_values.get(name, [])
        _model, ending = split_temperature(name)
        if len(values) == 1:
            temperatures[name] = values[0]
        elif len(values) > 1:
            temperatures[name] = math.nan
            note = SeveralTemperatures(
                source=name, temperatures=len(values), low=min(values), high=max(values)
            )
            notes.append(note)
        elif ending is not None:
            temperatures[name] = ending
            from_names.append(NamedTemperature(source=name, temperature=ending))
        else:
            temperatures[name] = math.nan
    if from_names:
        notes.append(TemperaturesFromNames(sources=tuple(from_names)))
    return temperatures, notes


def _values_by_source(collection: Collection, column: str) -> dict[str, list[Any]]:
    """Return the different values of a column for each source.

    Empty if there is no such column, or if its values are no strings; no numbers for `TEMPERATURE`.
    """
    docs = collection.docs
    kind = docs.schema.get(column, pl.Null())
    has_values = kind.is_numeric() if column == TEMPERATURE else kind == pl.String
    if not has_values:
        return {}
    return dict(docs.group_by("source").agg(pl.col(column).drop_nulls().unique()).iter_rows())


def _single_values(collection: Collection, column: str) -> dict[str, str]:
    """Return the value of a column for each source that has just one."""
    return {
        name: values[0]
        for name, values in _values_by_source(collection, column).items()
        if len(values) == 1 and values[0]
    }


def _series(collection: Collection, sources: Iterable[str]) -> dict[str, str]:
    """Return the series of each source: its model, with the prompt if the model had several."""
    model_column = _single_values(collection, MODEL)
    prompts = _single_values(collection, PROMPT)
    models = {}
    for name in sources:
        model_in_name, _temperature = split_temperature(name)
        models[name] = model_column.get(name, model_in_name)
    prompts_of_model: dict[str, set[str | None]] = {}
    for name, model in models.items():
        prompts_of_model.setdefault(model, set()).add(prompts.get(name))
    series = {}
    for name, model in models.items():
        has_several_prompts = len(prompts_of_model[model]) > 1
        prompt = prompts.get(name, "no prompt")
        series[name] = f"{model}, {prompt}" if has_several_prompts else model
    return series


def split_temperature(source: str) -> tuple[str, float | None]:
    """Split a source's name into its model and the temperature at its end.

    The ending is such as ``-tmp0.2`` or ``_0.2``. Without one, the temperature is None.
    """
    ending = _TEMPERATURE_ENDING.search(source)
    if ending is None:
        return source, None
    temperature = float(ending["marked"] or ending["bare"])
    if temperature > _HIGHEST_TEMPERATURE:
        return source, None
    return source[: ending.start()], temperature
