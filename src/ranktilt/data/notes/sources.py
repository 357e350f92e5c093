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
    """The sources do not cover the same documents, so that only common ones are compared."""

    severity: Severity = "warning"
    common: int
    rewritten: int
    lacking: tuple[Count, ...]
    """By source, how many it did not rewrite."""


@dataclass(frozen=True, kw_only=True)
class OnlyCommonDocuments(Note):
    """Only the documents that every source rewrote are compared."""

    documents: int


@dataclass(frozen=True, kw_only=True)
class SeveralTemperatures(Note):
    """A source of several temperatures, which is in no trend."""

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
    """Temperatures that were read from the names of sources, for want of a column."""

    sources: tuple[NamedTemperature, ...]


@dataclass(frozen=True, kw_only=True)
class FewTemperatures(Note):
    """A series of too few temperatures for a trend."""

    series: str
    temperatures: int


@dataclass(frozen=True, kw_only=True)
class TemperaturesUnknown(Note):
    """Sources without a known temperature, in no trend."""

    sources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SeriesApart(Note):
    """Temperatures enough for a trend, each of a series of its own."""

    temperatures: int
