"""Notes on several sources, each compared with the reference alone."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Count, Note, Severity


@dataclass(frozen=True, kw_only=True)
class NoCommonDocuments(Note):
    """No document was rewritten by every source, so that all documents of each are compared."""

    severity: Severity = "warning"
    without_rewrites: tuple[str, ...]
    """Sources without any rewrite of a document of the reference."""


@dataclass(frozen=True, kw_only=True)
class UnevenCoverage(Note):
    """The sources do not cover the same documents, so that only common documents are compared."""

    severity: Severity = "warning"
    common: int
    """Documents that every source rewrote."""
    rewritten: int
    """Documents that any source rewrote."""
    lacking: tuple[Count, ...]
    """Number of documents that a source did not rewrite, by source."""


@dataclass(frozen=True, kw_only=True)
class OnlyCommonDocuments(Note):
    """Only the documents that every source rewrote are compared."""

    documents: int


@dataclass(frozen=True, kw_only=True)
class SeveralTemperatures(Note):
    """A source with several temperatures; it is in no trend."""

    source: str
    temperatures: int
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class NamedTemperature:
    """A source with the temperature that its name ends with."""

    source: str
    temperature: float


@dataclass(frozen=True, kw_only=True)
class TemperaturesFromNames(Note):
    """Temperatures that were read from the names of sources, because no column has them."""

    sources: tuple[NamedTemperature, ...]


@dataclass(frozen=True, kw_only=True)
class FewTemperatures(Note):
    """A series with too few temperatures for a trend."""

    series: str
    temperatures: int


@dataclass(frozen=True, kw_only=True)
class TemperaturesUnknown(Note):
    """Sources without a known temperature; they are in no trend."""

    sources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SeriesApart(Note):
    """Enough temperatures for a trend, but each of another series."""

    temperatures: int
