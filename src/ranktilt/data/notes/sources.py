"""Notes on several sources, each compared with the reference alone.

A source is who wrote documents; it rewrote originals of the reference. A series is the sources of
one model that differ in temperature, over which a trend is tested.

Each class is a kind of note, and its fields are what is known. The sentence is made in the file of
the same name in `ranktilt.reporting.sentences.notes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Count, Note, Severity


@dataclass(frozen=True, kw_only=True)
class NoCommonDocuments(Note):
    """No document was rewritten by every source, so that each source has its own documents."""

    severity: Severity = "warning"
    without_rewrites: tuple[str, ...]
    """Sources that rewrote no document of the reference."""


@dataclass(frozen=True, kw_only=True)
class UnevenCoverage(Note):
    """Sources rewrote different documents, and only those that all rewrote are compared."""

    severity: Severity = "warning"
    common: int
    """Number of documents that every source rewrote."""
    rewritten: int
    """Number of documents that at least one source rewrote."""
    lacking: tuple[Count, ...]
    """Number of documents that a source did not rewrite, by source."""


@dataclass(frozen=True, kw_only=True)
class OnlyCommonDocuments(Note):
    """Only the documents that every source rewrote are compared."""

    documents: int


@dataclass(frozen=True, kw_only=True)
class SeveralTemperatures(Note):
    """A source with documents of several temperatures, which is in no trend."""

    source: str
    temperatures: int
    """Number of different temperatures."""
    low: float
    """Lowest temperature."""
    high: float
    """Highest temperature."""


@dataclass(frozen=True, kw_only=True)
class NamedTemperature:
    """A source with the temperature at the end of its name."""

    source: str
    temperature: float


@dataclass(frozen=True, kw_only=True)
class TemperaturesFromNames(Note):
    """Temperatures that were read from names of sources, because no column has them."""

    sources: tuple[NamedTemperature, ...]


@dataclass(frozen=True, kw_only=True)
class FewTemperatures(Note):
    """A series with too few temperatures for a trend."""

    series: str
    temperatures: int
    """Number of different temperatures."""


@dataclass(frozen=True, kw_only=True)
class TemperaturesUnknown(Note):
    """Sources without a known temperature, which are in no trend."""

    sources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SeriesApart(Note):
    """Enough temperatures for a trend, but each in a series of its own."""

    temperatures: int
    """Number of different temperatures."""
