"""How concentrated embeddings are: the singular values of each source's embedding matrix.

The embedding matrix of a source has the vector of a document in each row. Its singular values say
how far the vectors reach along the matrix's singular directions. If a few of them are large, the
vectors lie mostly along a few directions. Dai et al. (KDD 2024, sec. 4.1) find this for generated
texts. The *head* of a matrix is the largest tenth of its singular values.

A *source* is the author of documents; the *reference* is usually human. *Twins* are two documents
of the same origin, one by the reference and one by another source.
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
from ranktilt.explaining.vectors import DocumentVectors, one_thread, row_slices
from ranktilt.rankers.base import Ranker

HEAD = 0.1
"""Share of the singular values that are the *head*: the largest tenth."""
_RESAMPLES = 1_000
"""Number of bootstrap resamples of twins for an interval."""
_MOST_ERROR = 0.1
"""Maximum relative error by rounding of a singular value that is shown."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Spectrum:
    """Singular values of the texts of one source and of their twins in the reference."""

    source: str
    """The source that is compared with the reference."""
    pairs: int
    """Number of pairs of twins."""
    reference: Floats
    """Singular values of the reference's matrix, the largest first."""
    values: Floats
    """Singular values of the source's matrix, the largest first."""
    heads: tuple[float, float]
    """Head shares of the reference and of the source, from 0 to 1.

    A head share is the sum of squares of the singular values in the head (the largest tenth),
    divided by the sum of squares of all.
    """
    interval: tuple[float, float]
    """95 % interval of the source's head share minus the reference's, by a bootstrap over twins."""
    leading: EffectSize
    """How twins differ in the share of their vectors along the directions of the reference's head.

    For a vector, this is the share of its squared length that remains after projection on these
    directions.
    """
    rounding: float
    """Maximum error of a singular value by rounding: the larger bound of the two matrices."""

    @property
    def relative(self) -> Floats:
        """Each singular value of the source divided by the reference's of the same index.

        The smaller a value, the larger its relative error by rounding. The list ends before the
        first value whose error may be more than a tenth.
        """
        is_inexact = np.minimum(self.values, self.reference) * _MOST_ERROR <= self.rounding
        # The index of the first inexact value; all values are exact enough if there is none.
        exact_count = int(np.argmax(np.append(is_inexact, True)))
        return self.values[:exact_count] / self.reference[:exact_count]


@dataclass(frozen=True, kw_only=True, eq=False)
class EmbeddedSide:
    """The embedding matrix of one side of the twins."""

    rows: Rows
    """Documents, by their rows in the collection."""
    singular_values: Floats
    """All singular values, the largest first."""
    directions: Floats
    """The right singular vectors of the head, one in each column."""
    lengths: Floats
    """Squared length of each document's vector."""
    projected_lengths: Floats
    """Squared length of each vector after projection on `directions`."""

    @classmethod
    def from_rows(cls, vectors: DocumentVectors, rows: Rows, head: int) -> EmbeddedSide:
        """Decompose the matrix of some documents, and keep the first `head` directions."""
        dimensions = vectors.stored.shape[1]
        values, right_vectors = singular_values(_blocks(vectors, rows), dimensions)
        directions = right_vectors[:, :head]
        lengths, projected_lengths = _squared_lengths(vectors, rows, directions)
        return cls(
            rows=rows,
            singular_values=values,
            directions=directions,
            lengths=lengths,
            projected_lengths=projected_lengths,
        )

    @property
    def head_share(self) -> float:
        """Share of the squared length of all vectors that lies in the head."""
        return float(self.projected_lengths.sum() / self.lengths.sum())


def singular_values(blocks: Iterator[Floats], dimensions: int) -> tuple[Floats, Floats]:
    """Return all singular values of a matrix, the largest first, and its right singular vectors.

    The matrix A comes in blocks of rows, and only one block is in memory. The singular values are
    the roots of the eigenvalues of AᵀA, which has only d × d numbers for d dimensions.
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
    """Compare the singular values of the reference's texts and of their twins.

    Parameters
    ----------
    vectors : DocumentVectors
        Vectors of all documents.
    source : str
        The source that is compared with the reference.
    rows : tuple of two ndarrays of int64
        Rows of the reference's documents, and of their twins.
    values : int, optional
        Number of singular values to compare, the largest first; all by default.
    seed : int, optional
        Random seed of the bootstrap.

    Notes
    -----
    If each number of the matrix A has a relative error of at most ε, no singular value changes by
    more than ε·‖A‖ (Weyl's inequality), where ‖A‖² is the sum of squares of all singular values.
    """
    dimensions, pair_count = vectors.stored.shape[1], len(rows[0])
    value_count = dimensions if values is None else min(values, dimensions)
    if pair_count <= value_count:
        twins = counted(pair_count, "pair of twins", "pairs of twins")
        raise UserError(
            f"spectrum of {source}: {value_count} values need more than {value_count} pairs of "
            f"twins, got {twins}; ask for fewer values: spectrum(values=N)"
        )
    reference_rows, source_rows = rows
    head = max(round(HEAD * value_count), 1)
    with one_thread():
        originals = EmbeddedSide.from_rows(vectors, reference_rows, head)
        rewrites = EmbeddedSide.from_rows(vectors, source_rows, head)
        _lengths, along_reference_head = _squared_lengths(
            vectors, source_rows, originals.directions
        )
    norm = max(
        float(np.linalg.norm(originals.singular_values)),
        float(np.linalg.norm(rewrites.singular_values)),
    )
    leading = effect_size(
        source,
        "share along the leading directions",
        _shares(originals.projected_lengths, originals.lengths),
        _shares(along_reference_head, rewrites.lengths),
    )
    return Spectrum(
        source=source,
        pairs=pair_count,
        reference=originals.singular_values[:value_count],
        values=rewrites.singular_values[:value_count],
        heads=(originals.head_share, rewrites.head_share),
        interval=_interval(originals, rewrites, seed),
        leading=leading,
        rounding=float(np.finfo(vectors.store).eps) * norm,
    )


def _shares(projected_lengths: Floats, lengths: Floats) -> Floats:
    """Return the share of each vector's squared length that a projection keeps.

    NaN for a vector of zeros.
    """
    shares: Floats = np.divide(
        projected_lengths, lengths, out=np.full(len(lengths), np.nan), where=lengths > 0
    )
    return shares


def _blocks(vectors: DocumentVectors, rows: Rows) -> Iterator[Floats]:
    """Yield the vectors of some documents, in blocks of rows."""
    for block in row_slices(len(rows)):
        yield vectors.stored.take(vectors.row[rows[block]]).astype(np.float64)


def _squared_lengths(
    vectors: DocumentVectors, rows: Rows, directions: Floats
) -> tuple[Floats, Floats]:
    """Return the squared length of each document's vector, and that of its projection.

    The projection is on the space of some directions, the columns of `directions`.
    """
    lengths, projected_lengths = list[Floats](), list[Floats]()
    for block in _blocks(vectors, rows):
        lengths.append(np.vecdot(block, block))
        projected_lengths.append(np.square(block @ directions).sum(1))
    return np.concatenate(lengths), np.concatenate(projected_lengths)


def _interval(originals: EmbeddedSide, rewrites: EmbeddedSide, seed: int) -> tuple[float, float]:
    """Return the interval of the difference in head shares, by a bootstrap over twins."""
    generator, count = np.random.default_rng(seed), len(originals.rows)
    table = np.stack(
        [
            originals.projected_lengths,
            originals.lengths,
            rewrites.projected_lengths,
            rewrites.lengths,
        ]
    )
    differences = np.empty(_RESAMPLES)
    # The directions are not computed again for each resample: to first order, head shares do not
    # change with them.
    for number in range(_RESAMPLES):
        times_drawn = np.bincount(generator.integers(0, count, count), minlength=count)
        original_head, original_length, rewrite_head, rewrite_length = table @ times_drawn
        differences[number] = rewrite_head / rewrite_length - original_head / original_length
    low, high = np.quantile(differences, (0.025, 0.975)).tolist()
    return low, high


class SpectrumProbe(Probe[tuple[Spectrum, ...]]):
    """Whether the embeddings of rewrites have fewer strong directions than the originals'.

    Parameters
    ----------
    values : int, optional
        Number of singular values to compare, the largest first. All by default, for which there
        must be more pairs of twins than a vector has dimensions.
    seed : int, optional
        Random seed of the bootstrap.
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
    """Return the row of numbers of a source."""
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
    """Return the note on the head shares of the source and of the reference."""
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
