"""How concentrated embeddings are: the singular values of each source's embedding matrix.

Dai et al., KDD 2024, sec. 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktilt.data.collection import Collection
from ranktilt.data.notes.probes import DirectionsConcentrated, NoTwinsToCompare, RatiosShown
from ranktilt.errors import UserError, counted
from ranktilt.explaining.base import (
    EffectSize,
    Floats,
    Probe,
    ProbeFigure,
    ProbeResult,
    Rows,
    effect_size,
    twin_rows,
    twin_sources,
)
from ranktilt.explaining.vectors import DocumentVectors, one_thread, parts
from ranktilt.rankers.base import Ranker

HEAD = 0.1
"""Of the singular values, the largest tenth is the head; the rest is the tail."""
_RESAMPLES = 1_000
_MOST_ERROR = 0.1


@dataclass(frozen=True, kw_only=True, eq=False)
class Spectrum:
    """Singular values of twins on both sides, and the share of the largest in the total."""

    source: str
    pairs: int
    reference: Floats
    """Singular values of the reference's matrix, the largest first."""
    values: Floats
    """Singular values of the source's matrix, the largest first."""
    heads: tuple[float, float]
    """Share of the sum of squares in the head, 0 to 1: of the reference, and of the source."""
    interval: tuple[float, float]
    """95 % interval of the source's head share minus the reference's, by a bootstrap over twins."""
    leading: EffectSize
    """Difference between twins in how much of a document's squared length lies along the
    reference's leading directions."""
    rounding: float
    """How far rounding may move a singular value, on whichever side it is more."""

    @property
    def relative(self) -> Floats:
        """The source's values, each divided by the reference's of the same index.

        The smaller a value, the larger its error: they end before the first whose error by rounding
        may be over a tenth.
        """
        is_small = np.minimum(self.values, self.reference) * _MOST_ERROR <= self.rounding
        known = int(np.argmax(np.append(is_small, True)))
        return self.values[:known] / self.reference[:known]


@dataclass(frozen=True, kw_only=True, eq=False)
class EmbeddedSide:
    """The embedding matrix of one side of the twins."""

    rows: Rows
    """Documents, by their rows in the collection."""
    sigma: Floats
    """All singular values, the largest first."""
    directions: Floats
    """The right singular vectors of the head, one in each column."""
    lengths: Floats
    """Squared length of each document's vector."""
    inside: Floats
    """Squared length of each vector's projection on the directions of its own side."""

    @classmethod
    def from_rows(cls, vectors: DocumentVectors, rows: Rows, head: int) -> EmbeddedSide:
        """Decompose the matrix of some documents, and keep so many directions."""
        dimensions = vectors.stored.shape[1]
        sigma, right_vectors = singular_values(_blocks(vectors, rows), dimensions)
        directions = right_vectors[:, :head]
        lengths, inside = _energies(vectors, rows, directions)
        return cls(rows=rows, sigma=sigma, directions=directions, lengths=lengths, inside=inside)

    @property
    def head_share(self) -> float:
        """Share of the squared length of all vectors that lies in the head."""
        return float(self.inside.sum() / self.lengths.sum())


def singular_values(blocks: Iterator[Floats], dimensions: int) -> tuple[Floats, Floats]:
    """Compute all singular values of a matrix, largest first, and its right singular vectors.

    The matrix comes in blocks of rows. The values are the roots of the eigenvalues of the d × d
    Gram matrix, summed in float64, so that no more than a block is in memory.
    """
    gram = np.zeros((dimensions, dimensions))
    for block in blocks:
        gram += block.T @ block
    squares, vectors = np.linalg.eigh(gram)
    return np.sqrt(np.maximum(squares[::-1], 0.0)), vectors[:, ::-1]


def spectrum(
    vectors: DocumentVectors,
    source: str,
    rows: tuple[Rows, Rows],
    *,
    values: int | None = None,
    seed: int = 0,
) -> Spectrum:
    """Compare the singular values of twins, as many on both sides.

    `rows` are the documents of the reference, and those of the source. Vectors known to a relative
    ε change no singular value by more than ε ‖A‖ (Weyl; ‖A‖² is the sum of all σ²).
    """
    dimensions, count = vectors.stored.shape[1], len(rows[0])
    most = dimensions if values is None else min(values, dimensions)
    if count <= most:
        twins = counted(count, "pair of twins", "pairs of twins")
        raise UserError(
            f"spectrum of {source}: {most} values need more than {most} pairs of twins, "
            f"got {twins}; ask for fewer values: spectrum(values=N)"
        )
    reference_rows, source_rows = rows
    head = max(round(HEAD * most), 1)
    with one_thread():
        originals = EmbeddedSide.from_rows(vectors, reference_rows, head)
        rewrites = EmbeddedSide.from_rows(vectors, source_rows, head)
        _, along_leading = _energies(vectors, source_rows, originals.directions)
    norm = max(float(np.linalg.norm(originals.sigma)), float(np.linalg.norm(rewrites.sigma)))
    leading = effect_size(
        source,
        "share along the leading directions",
        _shares(originals.inside, originals.lengths),
        _shares(along_leading, rewrites.lengths),
    )
    return Spectrum(
        source=source,
        pairs=count,
        reference=originals.sigma[:most],
        values=rewrites.sigma[:most],
        heads=(originals.head_share, rewrites.head_share),
        interval=_interval(originals, rewrites, seed),
        leading=leading,
        rounding=float(np.finfo(vectors.store).eps) * norm,
    )


def _shares(inside: Floats, lengths: Floats) -> Floats:
    """Return the share of each document's squared length; NaN for a vector of zeros."""
    shares: Floats = np.divide(
        inside, lengths, out=np.full(len(lengths), np.nan), where=lengths > 0
    )
    return shares


def _blocks(vectors: DocumentVectors, rows: Rows) -> Iterator[Floats]:
    """Yield the vectors of some documents, a part at a time."""
    for part in parts(len(rows)):
        yield vectors.stored.take(vectors.row[rows[part]]).astype(np.float64)


def _energies(vectors: DocumentVectors, rows: Rows, directions: Floats) -> tuple[Floats, Floats]:
    """Return each document's squared length, and that of its projection on some directions."""
    lengths, inside = list[Floats](), list[Floats]()
    for block in _blocks(vectors, rows):
        lengths.append(np.vecdot(block, block))
        inside.append(np.square(block @ directions).sum(1))
    return np.concatenate(lengths), np.concatenate(inside)


def _interval(originals: EmbeddedSide, rewrites: EmbeddedSide, seed: int) -> tuple[float, float]:
    """Return the interval of the difference in head shares, by a bootstrap over twins."""
    generator, count = np.random.default_rng(seed), len(originals.rows)
    table = np.stack([originals.inside, rewrites.inside, originals.lengths, rewrites.lengths])
    draws = np.empty(_RESAMPLES)
    # The directions stay as they are: to first order, a share does not change with them.
    for number in range(_RESAMPLES):
        weights = np.bincount(generator.integers(0, count, count), minlength=count)
        original_inside, rewrite_inside, original_length, rewrite_length = table @ weights
        draws[number] = rewrite_inside / rewrite_length - original_inside / original_length
    low, high = np.quantile(draws, (0.025, 0.975)).tolist()
    return low, high


class SpectrumProbe(Probe[tuple[Spectrum, ...]]):
    """Whether the embeddings of rewrites have fewer strong directions than the originals'.

    `values` says how many singular values are compared, the largest first; all, the default, need
    more twins than a vector has numbers.
    """

    name = "spectrum"
    question = (
        "Are the embeddings of one source more concentrated in a few directions than those of the "
        "other?"
    )
    citation = "Dai et al., KDD 2024, sec. 4.1, Fig. 7 and 8"
    needs_encoder = True

    def __init__(self, *, values: int | None = None, seed: int = 0) -> None:
        if values is not None and (not isinstance(values, int) or values < 1):
            raise UserError(f"spectrum: values must be a whole number of at least 1, got {values}")
        self.values, self.seed = values, seed

    def measure(
        self, collection: Collection, reference: str, ranker: Ranker | None
    ) -> tuple[Spectrum, ...]:
        vectors = DocumentVectors.from_ranker(collection, ranker, self.name)
        return tuple(
            spectrum(
                vectors,
                name,
                twin_rows(collection, reference, name),
                values=self.values,
                seed=self.seed,
            )
            for name in twin_sources(collection, reference)
        )

    def describe(
        self, collection: Collection, reference: str, measured: tuple[Spectrum, ...]
    ) -> ProbeResult:
        """Make a row for each source; the figure is the relative singular values."""
        rows = [_row(spectrum, reference) for spectrum in measured]
        series = {spectrum.source: tuple(spectrum.relative.tolist()) for spectrum in measured}
        figure = ProbeFigure(
            kind="curve",
            title=f"Relative singular values ({reference} = 1)",
            axis="index",
            edges=(),
            series=series,
            findings=tuple(_ends(name, ratios) for name, ratios in series.items()),
        )
        concentrations = [_concentration(spectrum, reference) for spectrum in measured]
        return self.result(
            reference,
            rows,
            effects=[spectrum.leading for spectrum in measured],
            figures=[figure] if measured else [],
            findings=concentrations or [NoTwinsToCompare()],
        )


def _row(spectrum: Spectrum, reference: str) -> dict[str, Any]:
    """Return the numbers of a source."""
    reference_share, share = spectrum.heads
    low, high = spectrum.interval
    return {
        "source": spectrum.source,
        "pairs": spectrum.pairs,
        "values": len(spectrum.values),
        "above rounding": len(spectrum.relative),
        "head": share,
        f"head of {reference}": reference_share,
        "difference low": low,
        "difference high": high,
    }


def _ends(source: str, ratios: Sequence[float]) -> RatiosShown:
    """Return the note on the first and the last ratio of a curve."""
    if not ratios:
        return RatiosShown(source=source)
    return RatiosShown(source=source, first=ratios[0], last=ratios[-1])


def _concentration(spectrum: Spectrum, reference: str) -> DirectionsConcentrated:
    """Return the note on the share of the head, on both sides."""
    reference_share, share = spectrum.heads
    low, high = spectrum.interval
    return DirectionsConcentrated(
        source=spectrum.source,
        reference=reference,
        pairs=spectrum.pairs,
        share=share,
        reference_share=reference_share,
        low=low,
        high=high,
    )
