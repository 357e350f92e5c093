"""How concentrated embeddings are: the singular values of each source's embedding matrix (Dai et al., 2024, sec. 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Singular values of twins on both sides, and how much of the whole the largest have."""

    source: str
    pairs: int
    reference: Floats
    """Singular values of the reference's matrix, the largest first."""
    values: Floats
    """Of the source's."""
    heads: tuple[float, float]
    """Share of the sum of squares in the head, 0 to 1: of the reference, and of the source."""
    interval: tuple[float, float]
    """95 % interval of the source's head share less the reference's, by a bootstrap over twins."""
    leading: EffectSize
    """Share of a document's squared length along the reference's leading directions, twins compared."""
    rounding: float
    """How far rounding may move a singular value, on whichever side it is more."""

    @property
    def relative(self) -> Floats:
        """Each of the source's values divided by the reference's of the same index, as far as both are above rounding.

        The smaller a value, the larger its error: they end before the first whose error may be over
        a tenth.
        """
        small = np.minimum(self.values, self.reference) * _MOST_ERROR <= self.rounding
        known = int(np.argmax(np.append(small, True)))
        return self.values[:known] / self.reference[:known]


def singular_values(blocks: Iterator[Floats], dimensions: int) -> tuple[Floats, Floats]:
    """All singular values of a matrix that comes in blocks of rows, largest first, and its right vectors.

    They are the roots of the eigenvalues of the d × d Gram matrix, summed in float64, so that no
    more than a block is in memory.
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
    """Compare the singular values of twins: of the reference's rows, and of the source's; as many on both sides.

    Vectors known to a relative ε change no singular value by more than ε ‖A‖ (Weyl; ‖A‖² is the sum
    of all σ²).
    """
    dimensions, count = vectors.stored.shape[1], len(rows[0])
    most = dimensions if values is None else min(values, dimensions)
    if count <= most:
        twins = counted(count, "pair of twins", "pairs of twins")
        raise UserError(
            f"spectrum of {source}: {most} values need more than {most} pairs of twins, got {twins}; ask for fewer "
            "values: spectrum(values=N)"
        )
    with one_thread():
        found, lengths, inside = [], list[Floats](), list[Floats]()
        for side in rows:
            sigma, directions = singular_values(_blocks(vectors, side), dimensions)
            found.append((sigma, directions[:, : max(round(HEAD * most), 1)]))
            length, held = _energies(vectors, side, found[-1][1])
            lengths.append(length)
            inside.append(held)
        along = _energies(vectors, rows[1], found[0][1])[1]
    heads = [float(held.sum() / length.sum()) for held, length in zip(inside, lengths, strict=True)]
    shares = [
        np.divide(held, length, out=np.full(count, np.nan), where=length > 0)
        for held, length in zip((inside[0], along), lengths, strict=True)
    ]
    (ours, _), (theirs, _) = found
    norm = max(float(np.linalg.norm(ours)), float(np.linalg.norm(theirs)))
    leading = effect_size(source, "share along the leading directions", *shares)
    interval, rounding = _interval(inside, lengths, seed), float(np.finfo(vectors.store).eps) * norm
    return Spectrum(
        source, count, ours[:most], theirs[:most], (heads[0], heads[1]), interval, leading, rounding
    )


def _blocks(vectors: DocumentVectors, rows: Rows) -> Iterator[Floats]:
    for part in parts(len(rows)):
        yield vectors.stored.take(vectors.row[rows[part]]).astype(np.float64)


def _energies(vectors: DocumentVectors, rows: Rows, directions: Floats) -> tuple[Floats, Floats]:
    """Return each document's squared length, and that of its shadow on some directions."""
    found = [
        (np.vecdot(block, block), np.square(block @ directions).sum(1))
        for block in _blocks(vectors, rows)
    ]
    whole, inside = zip(*found, strict=True)
    return np.concatenate(whole), np.concatenate(inside)


def _interval(inside: list[Floats], lengths: list[Floats], seed: int) -> tuple[float, float]:
    """Draw twins again and again; the directions stay, for a share's first-order change does not need theirs."""
    generator, count = np.random.default_rng(seed), len(inside[0])
    table = np.stack([*inside, *lengths])
    draws = np.empty(_RESAMPLES)
    for number in range(_RESAMPLES):
        a, b, c, d = table @ np.bincount(generator.integers(0, count, count), minlength=count)
        draws[number] = b / d - a / c
    low, high = np.quantile(draws, (0.025, 0.975)).tolist()
    return low, high


class SpectrumProbe(Probe[tuple[Spectrum, ...]]):
    """Whether the embeddings of rewrites have fewer strong directions than those of what they were made of.

    `values` says how many singular values are compared, the largest first; all, the default, need
    more twins than a vector has numbers.
    """

    name = "spectrum"
    question = "Are the embeddings of one source more concentrated in a few directions than those of the other?"
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
        """Make a row a source; the figure is the relative singular values."""
        rows = [
            {
                "source": one.source,
                "pairs": one.pairs,
                "values": len(one.values),
                "above rounding": len(one.relative),
                "head": one.heads[1],
                f"head of {reference}": one.heads[0],
                "difference low": one.interval[0],
                "difference high": one.interval[1],
            }
            for one in measured
        ]
        series = {one.source: tuple(one.relative.tolist()) for one in measured}
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


def _ends(source: str, ratios: Sequence[float]) -> RatiosShown:
    if not ratios:
        return RatiosShown(source=source)
    return RatiosShown(source=source, first=ratios[0], last=ratios[-1])


def _concentration(spectrum: Spectrum, reference: str) -> DirectionsConcentrated:
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
