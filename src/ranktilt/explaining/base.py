"""What a probe is: a question about texts, answered for every source of a collection.

A *source* is the author of documents; one of them is the *reference*, usually human, with which the
others are compared. *Twins* are two documents of the same origin by different sources. Documents
are often given as rows, their places in the collection's table.

A new probe is a class in a file and a line in `ranktilt.explaining.probe_table.PROBES`, or an entry
point of the group ``ranktilt.probes`` in another package. If it measures one number for each
document, it derives from `TextProbe`, which makes rows, effect sizes and a figure of the numbers.

An *effect size* says how far the texts of a source differ from their twins, in standard deviations.
A *note* is a finding as data, which reports put into words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ranktilt.data.artifact import Coded
from ranktilt.data.collection import Collection
from ranktilt.data.labels.stated_sources import no_source
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.probes import SourceMean, ValuesShown
from ranktilt.data.runs.run import codes
from ranktilt.errors import UserError
from ranktilt.presenter import presenter
from ranktilt.rankers.base import Ranker
from ranktilt.statistics.effect_size import hedges_g

Floats = npt.NDArray[np.float64]
HIGH_COSINE = 0.95
"""Cosine above which twins count as very similar.

Dai et al. (KDD 2024, Fig. 5) report the share of twins above it.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Distribution:
    """Values of one quantity over texts or pairs of texts, NaN where it is undefined."""

    name: str
    """Name of the quantity."""
    values: Floats
    """Value of each text or pair."""
    range: tuple[float, float] = (0.0, 1.0)
    """Smallest and largest possible value."""

    @cached_property
    def defined(self) -> Floats:
        """The values that are not NaN, in the same order."""
        return self.values[~np.isnan(self.values)]

    @property
    def count(self) -> int:
        """Number of defined values."""
        return len(self.defined)

    @property
    def undefined(self) -> int:
        """Number of texts or pairs without a value."""
        return len(self.values) - self.count

    @property
    def mean(self) -> float:
        """Mean of the defined values; NaN without any."""
        return float(np.mean(self.defined)) if self.count else np.nan

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """Lower quartile, median and upper quartile, interpolated linearly; NaN without values."""
        if not self.count:
            return np.nan, np.nan, np.nan
        low, middle, high = np.quantile(self.defined, (0.25, 0.5, 0.75)).tolist()
        return low, middle, high

    def above(self, limit: float) -> float:
        """Return the share of the defined values above `limit`, 0 to 1; NaN without values."""
        return float(np.mean(self.defined > limit)) if self.count else np.nan

    def derived(self) -> dict[str, Any]:
        """Return values that a file holds besides the fields."""
        return {name: getattr(self, name) for name in ("count", "undefined", "mean", "quartiles")}


@dataclass(frozen=True, eq=False, kw_only=True)
class Cosines(Distribution):
    """Cosines of pairs of vectors, −1 to 1."""

    range: tuple[float, float] = (-1.0, 1.0)


Rows = npt.NDArray[np.int64]
"""Rows of documents or queries in a collection."""
M = TypeVar("M")
"""Type of the values that a probe measures, from which it makes its result."""
_BINS = 20
"""Number of bins of a histogram."""


@dataclass(frozen=True, kw_only=True)
class EffectSize:
    """How far the texts of one source differ from their twins in the reference."""

    source: str
    """Source that is compared with the reference."""
    quantity: str
    """Measured quantity, named by its unit, such as ``words``."""
    pairs: int
    """Number of pairs of twins in which both texts have a value."""
    reference_mean: float
    """Mean over the reference's texts in these pairs; NaN without any."""
    source_mean: float
    """Mean over the source's texts in these pairs; NaN without any."""
    g: float
    """Hedges' g, the source's mean minus the reference's in standard deviations; NaN if
    undefined."""
    low: float
    """Lower end of the 95 % interval of g."""
    high: float
    """Upper end of the 95 % interval of g."""

    @property
    def is_shown(self) -> bool:
        """Whether the texts are shown to differ: the interval excludes 0."""
        return self.low > 0 or self.high < 0

    def derived(self) -> dict[str, Any]:
        """Return values that a file holds besides the fields."""
        return {"is_shown": self.is_shown}


def effect_size(source: str, unit: str, reference: Floats, values: Floats) -> EffectSize:
    """Compare a property of twins.

    Parameters
    ----------
    source : str
        Source that is compared with the reference.
    unit : str
        Unit of the values, such as ``words``.
    reference, values : ndarray of float64, shape (n_pairs,)
        Value of the reference's text and of the source's text in each pair. Pairs with a NaN are
        left out.
    """
    known = ~(np.isnan(reference) | np.isnan(values))
    reference_values, source_values = reference[known], values[known]
    difference = hedges_g(reference_values, source_values)
    return EffectSize(
        source=source,
        quantity=unit,
        pairs=len(reference_values),
        reference_mean=float(reference_values.mean()) if len(reference_values) else np.nan,
        source_mean=float(source_values.mean()) if len(source_values) else np.nan,
        g=difference.g,
        low=difference.low,
        high=difference.high,
    )


@dataclass(frozen=True, kw_only=True)
class ProbeFigure:
    """A figure as data: what to draw, and the same in words."""

    kind: Literal["histogram", "curve", "forest"]
    """How it is drawn: bars, a line, or values with their intervals one below the other."""
    title: str
    """Title of the figure."""
    axis: str
    """Label of the horizontal axis."""
    edges: tuple[float, ...]
    """Numbers on the horizontal axis.

    For a histogram, the edges of its bins, rising. For a forest plot, values that the axis must
    reach, so that several plots have the same scale. Empty for a curve over 1, 2, 3 and so on.
    """
    series: Mapping[str, tuple[float, ...]]
    """Numbers of each series, by its name.

    For a histogram, the share of the values in each bin, in percent. For a curve, its heights. For
    a forest plot, a value and both ends of its interval.
    """
    findings: tuple[Coded[Note], ...]
    """What the figure shows, as notes that reports put into words, for readers who cannot see
    it."""


@dataclass(frozen=True, kw_only=True)
class ProbeTable:
    """A table as data, for probes with too many rows or columns for a reader."""

    title: str
    """Title of the table."""
    rows: tuple[Mapping[str, Any], ...]
    """Cells by column; every row has the same columns.

    A cell is a text, a number, three numbers (a value and both ends of its interval), or None. A
    narrow terminal leaves out the columns after the third.
    """
    decimals: Mapping[str, int]
    """Number of decimals of each column of numbers."""
    findings: tuple[Coded[Note], ...]
    """What the table shows, as notes that reports put into words."""


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """The result of one probe."""

    probe: str
    """Name of the probe."""
    question: str
    """The question that it answers."""
    citation: str
    """Publication that the probe follows; empty if there is none."""
    rows: tuple[Mapping[str, Any], ...]
    """Numbers and texts by name; every row has the same names, among them ``source``."""
    effects: tuple[EffectSize, ...]
    """How far each source differs from the reference."""
    figures: tuple[ProbeFigure, ...]
    """Figures, in the order in which they are shown."""
    reference: str
    """The source that the others are compared with."""
    findings: tuple[Coded[Note], ...] = ()
    """What the probe found; empty if the effect sizes say everything."""
    tables: tuple[ProbeTable, ...] = ()
    """Tables that reports show instead of the rows; empty if they show the rows."""
    notes: tuple[Coded[Note], ...] = ()
    """What a reader of the numbers should know."""

    @property
    def summary(self) -> str:
        """The result in words, as in reports."""
        return presenter().sentence(self)


class Probe(ABC, Generic[M]):
    """A question about the texts of a collection's sources; call it with a collection."""

    name: ClassVar[str]
    """The name that you type: ``overlap``."""
    question: ClassVar[str]
    """The question that it answers, in one sentence."""
    citation: ClassVar[str] = ""
    """Publication of the method, such as ``Dai et al., KDD 2024, Fig. 3``."""
    needs_encoder: ClassVar[bool] = False
    """Whether the probe needs a ranker that makes vectors."""

    def __call__(
        self, collection: Collection, ranker: Ranker | None = None, *, reference: str | None = None
    ) -> ProbeResult:
        """Answer the question for every source of a collection.

        Parameters
        ----------
        collection : Collection
            Documents of one or more sources; twins share an ``origin``.
        ranker : Ranker, optional
            A ranker for probes that need one, such as ``dense:minilm`` for its vectors.
        reference : str, optional
            The source that the others are compared with: by default ``"human"`` if there is such a
            source, else the first.

        Returns
        -------
        ProbeResult
            Rows with a ``source``, effect sizes on twins, figures and a summary.

        Raises
        ------
        UserError
            If the reference is no source, or the ranker is not one that the probe can use.
        """
        reference = reference_of(collection, reference)
        return self.describe(collection, reference, self.measure(collection, reference, ranker))

    def check(self) -> None:
        """Raise a `UserError` if nothing can be measured with the probe's options.

        This is called for all probes before any of them starts, so that no long work is lost.
        """

    @abstractmethod
    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> M:
        """Return the values that the answer needs; `reference` is the name of a source."""

    @abstractmethod
    def describe(self, collection: Collection, reference: str, measured: M) -> ProbeResult:
        """Answer the question from the measured values."""

    def result(
        self,
        reference: str,
        rows: Sequence[Mapping[str, Any]],
        *,
        effects: Sequence[EffectSize] = (),
        figures: Sequence[ProbeFigure] = (),
        findings: Sequence[Note] = (),
    ) -> ProbeResult:
        """Return the result with the probe's name, question and citation."""
        return ProbeResult(
            probe=self.name,
            question=self.question,
            citation=self.citation,
            rows=tuple(rows),
            effects=tuple(effects),
            figures=tuple(figures),
            reference=reference,
            findings=tuple(findings),
        )


class TextProbe(Probe[Floats]):
    """A probe that measures one number per document."""

    unit: ClassVar[str]
    """Unit of the measured numbers, as it follows a number: ``words``."""
    label: ClassVar[str] = ""
    """Name of the property among others: ``length``; by default the probe's name."""

    @abstractmethod
    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        """Measure every document, in the order of ``collection.docs``; NaN where undefined."""

    def of_pairs(
        self, collection: Collection, measured: Floats, queries: Rows, documents: Rows
    ) -> Floats:
        """Return the value of each pair of a query and a document, both given by their rows.

        By default it is the document's value in `measured`, which `measure` returned. Probes whose
        value depends on the query override this.
        """
        return measured[documents]

    def describe(self, collection: Collection, reference: str, measured: Floats) -> ProbeResult:
        """Describe the values of every source, and compare twins."""
        source = collection.docs["source"].to_numpy()
        compared_sources = other_sources(collection, reference)
        distributions = {
            name: Distribution(name=self.unit, values=measured[source == name])
            for name in (reference, *compared_sources)
        }
        effects = []
        for name in compared_sources:
            reference_rows, source_rows = twin_rows(collection, reference, name)
            effects.append(
                effect_size(name, self.unit, measured[reference_rows], measured[source_rows])
            )
        title = f"{self.unit[:1].upper()}{self.unit[1:]} of the documents of each source"
        figures = [histogram(title, self.unit, distributions)]
        means = [
            SourceMean(source=name, mean=values.mean, unit=values.name)
            for name, values in distributions.items()
        ]
        return self.result(
            reference,
            self.rows(collection, distributions),
            effects=effects,
            figures=figures,
            findings=() if effects else means,
        )

    def rows(
        self, collection: Collection, distributions: Mapping[str, Distribution]
    ) -> list[dict[str, Any]]:
        """Make a row for each source: the number of documents with a value, mean and quartiles."""
        return [distribution_row(name, values) for name, values in distributions.items()]


def distribution_row(source: str, values: Distribution, **labels: Any) -> dict[str, Any]:
    """Return a row of numbers about the values of one source; `labels` are further cells."""
    low, median, high = values.quartiles
    numbers = {
        "values": values.count,
        "mean": values.mean,
        "25 %": low,
        "median": median,
        "75 %": high,
    }
    return {"source": source, **labels, **numbers}


def histogram(title: str, axis: str, distributions: Mapping[str, Distribution]) -> ProbeFigure:
    """Make a histogram of several series, with `_BINS` bins over their common range.

    Parameters
    ----------
    title : str
        Title of the figure.
    axis : str
        Label of the horizontal axis.
    distributions : mapping
        Values of each series, by its name.
    """
    defined = [values.defined for values in distributions.values() if values.count]
    all_values = np.concatenate(defined) if defined else np.zeros(1)
    edges = np.histogram_bin_edges(all_values, _BINS)
    percentages = {}
    for name, values in distributions.items():
        counts, _edges = np.histogram(values.defined, edges)
        percentages[name] = tuple((100 * counts / max(values.count, 1)).tolist())
    findings = tuple(_values_shown(name, values) for name, values in distributions.items())
    return ProbeFigure(
        kind="histogram",
        title=title,
        axis=axis,
        edges=tuple(edges.tolist()),
        series=percentages,
        findings=findings,
    )


def _values_shown(series: str, values: Distribution) -> ValuesShown:
    """Return the note about a series of a figure: number of values, mean and quartiles."""
    low, _median, high = values.quartiles
    return ValuesShown(
        series=series, values=values.count, mean=values.mean, quartile_1=low, quartile_3=high
    )


def reference_of(collection: Collection, reference: str | None, *, to: str = "look at") -> str:
    """Return the source that the others are compared with.

    Parameters
    ----------
    collection : Collection
        The documents.
    reference : str or None
        Name of the reference; if it is None, ``human`` if there is such a source, else the first.
    to : str, optional
        Verb for an error: there is "nothing to" look at.

    Raises
    ------
    UserError
        If no document has a source, or `reference` is not the name of one.
    """
    sources = collection.sources
    collection.require_few_sources()
    if not sources and collection.docs.height:
        raise UserError(
            no_source(collection, advice="name the source of each document, in the field source")
        )
    if not sources:
        raise UserError(f"nothing to {to}: the collection has no document")
    reference = None if reference is None else collection.source_named(reference)
    if reference is not None and reference not in sources:
        raise collection.unknown_source(reference)
    return reference or ("human" if "human" in sources else sources[0])


def other_sources(collection: Collection, reference: str) -> list[str]:
    """Return all sources but the reference, sorted by name.

    The order puts sources such as ``llama_0.2`` and ``llama_0.8`` of one model next to each other.
    """
    return sorted(name for name in collection.sources if name != reference)


def twin_sources(collection: Collection, reference: str) -> list[str]:
    """Return the sources other than the reference that have twins in the reference."""
    return [
        name
        for name in other_sources(collection, reference)
        if collection.pairs(reference, name).height
    ]


def twin_rows(collection: Collection, reference: str, source: str) -> tuple[Rows, Rows]:
    """Return the rows of the reference's documents, and those of their twins, pair by pair."""
    pairs = collection.pairs(reference, source)
    reference_rows = codes(pairs["a"], collection.ids).astype(np.int64)
    source_rows = codes(pairs["b"], collection.ids).astype(np.int64)
    return reference_rows, source_rows
