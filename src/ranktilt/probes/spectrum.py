"""How concentrated embeddings are: the singular values of each source's embedding matrix (Dai et al., 2024, sec. 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted
from ranktilt.probes.base import NO_TWINS, Probe, ProbeFigure, ProbeResult, twin_rows, twin_sources
from ranktilt.probes.effect_size import EffectSize, effect_size
from ranktilt.probes.vectors import DocumentVectors, one_thread, parts
from ranktilt.rankers.base import Ranker

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

MOST_DIMENSIONS = 4_096
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
    errors: Floats
    """Bound of the relative error of each value, on whichever side it is larger, from rounding."""

    @property
    def relative(self) -> Floats:
        """Each of the source's values divided by the reference's of the same index, as far as both are above rounding.

        The smaller a value, the larger its error: they end before the first whose error may be over a tenth.
        """
        known = int(np.argmax(np.append(self.errors > _MOST_ERROR, True)))
        return self.values[:known] / self.reference[:known]


def singular_values(
    blocks: Iterator[Floats], dimensions: int, *, store: str = "float32"
) -> tuple[Floats, Floats, Floats]:
    """All singular values of a matrix that comes in blocks of rows, largest first, its right vectors, and error bounds.

    They are the roots of the eigenvalues of the d × d Gram matrix, summed in float64, so that no more than a block is
    in memory. That squares the matrix's condition: it adds d ε₆₄ σ₁² / (2 σ²) or so to the relative error of a value σ.
    Most of it comes of the numbers' own rounding to `store`: vectors known to a relative ε change no singular value by
    more than ε ‖A‖ (Weyl; ‖A‖² is the sum of all σ²), which is ε ‖A‖ / σ of it.
    """
    gram = np.zeros((dimensions, dimensions))
    for block in blocks:
        gram += block.T @ block
    squares, vectors = np.linalg.eigh(gram)
    values = np.sqrt(np.maximum(squares[::-1], 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.finfo(store).eps * np.linalg.norm(values) / values
        errors += dimensions * np.finfo(float).eps / 2 * (values[0] / values) ** 2
    return values, vectors[:, ::-1], np.nan_to_num(errors, nan=np.inf, posinf=np.inf)


def spectrum(
    vectors: DocumentVectors, source: str, rows: tuple[Rows, Rows], *, values: int | None = None, seed: int = 0
) -> Spectrum:
    """Compare the singular values of twins: of the reference's rows, and of the source's; as many on both sides."""
    dimensions, count = vectors.stored.shape[1], len(rows[0])
    most = dimensions if values is None else min(values, dimensions)
    if dimensions > MOST_DIMENSIONS:
        raise UserError(f"spectrum: vectors of {dimensions:,} numbers are longer than {MOST_DIMENSIONS:,}")
    if count <= most:
        fewer = f"; ask for fewer values: spectrum(values={max(count // 2, 1)})" if count > 1 else ""
        twins = counted(count, "pair of twins", "pairs of twins")
        raise UserError(f"spectrum of {source}: {most} values need more than {most} pairs of twins, got {twins}{fewer}")
    with one_thread():
        ours = singular_values(_blocks(vectors, rows[0]), dimensions, store=vectors.store)
        theirs = singular_values(_blocks(vectors, rows[1]), dimensions, store=vectors.store)
        head = max(round(HEAD * most), 1)
        lengths, inside = zip(*(_energies(vectors, side, found[1][:, :head]) for side, found in
                                zip(rows, (ours, theirs), strict=True)), strict=True)  # fmt: skip
        along = _energies(vectors, rows[1], ours[1][:, :head])[1]
    heads = tuple(float(a.sum() / b.sum()) for a, b in zip(inside, lengths, strict=True))
    shares = [np.divide(a, b, out=np.full(count, np.nan), where=b > 0) for a, b in
              ((inside[0], lengths[0]), (along, lengths[1]))]  # fmt: skip
    return Spectrum(
        source, count, ours[0][:most], theirs[0][:most], (heads[0], heads[1]), _interval(inside, lengths, seed),
        effect_size(source, "share along the leading directions", *shares),
        np.maximum(ours[2], theirs[2])[:most],
    )  # fmt: skip


def _blocks(vectors: DocumentVectors, rows: Rows) -> Iterator[Floats]:
    for part in parts(len(rows)):
        yield vectors.stored.take(vectors.row[rows[part]]).astype(np.float64)


def _energies(vectors: DocumentVectors, rows: Rows, directions: Floats) -> tuple[Floats, Floats]:
    """Return each document's squared length, and that of its shadow on some directions."""
    found = [(np.vecdot(block, block), np.square(block @ directions).sum(1)) for block in _blocks(vectors, rows)]
    whole, inside = zip(*found, strict=True)
    return np.concatenate(whole), np.concatenate(inside)


def _interval(inside: tuple[Floats, ...], lengths: tuple[Floats, ...], seed: int) -> tuple[float, float]:
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

    `values` says how many singular values are compared, the largest first; all, the default, need more twins than a
    vector has numbers.
    """

    name = "spectrum"
    question = "Are the embeddings of one source more concentrated in a few directions than those of the other?"
    citation = "Dai et al., KDD 2024, sec. 4.1, Fig. 7 and 8"
    needs_encoder = True

    def __init__(self, *, values: int | None = None, seed: int = 0) -> None:
        if values is not None and (not isinstance(values, int) or values < 1):
            raise UserError(f"spectrum: values must be a whole number of at least 1, got {values}")
        self.values, self.seed = values, seed

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> tuple[Spectrum, ...]:
        vectors = DocumentVectors.of(collection, ranker, self.name)
        return tuple(
            spectrum(vectors, name, twin_rows(collection, reference, name), values=self.values, seed=self.seed)
            for name in twin_sources(collection, reference)
        )

    def describe(self, collection: Collection, reference: str, measured: tuple[Spectrum, ...]) -> ProbeResult:
        """Make a row a source; the figure is the relative singular values."""
        rows = [
            {
                "source": one.source, "pairs": one.pairs, "values": len(one.values),
                "above rounding": len(one.relative), "head": one.heads[1],
                f"head of {reference}": one.heads[0], "difference low": one.interval[0],
                "difference high": one.interval[1], "effective rank": effective_rank(one.values),
                f"effective rank of {reference}": effective_rank(one.reference),
                "error bound": float(one.errors[len(one.relative) - 1]) if len(one.relative) else np.nan,
            }
            for one in measured
        ]  # fmt: skip
        said = [_sentence(one, reference) for one in measured]
        return self.result(
            rows, [one.leading for one in measured], _figures(measured, reference), f"{'; '.join(said) or NO_TWINS}."
        )


def effective_rank(values: Floats) -> float:
    """Return e to the entropy of the squared values' shares: 1 for one direction, d for d equal ones."""
    shares = np.square(values) / max(float(np.square(values).sum()), np.finfo(float).tiny)
    shares = shares[shares > 0]
    return float(np.exp(-(shares * np.log(shares)).sum()))


def _figures(measured: tuple[Spectrum, ...], reference: str) -> list[ProbeFigure]:
    if not measured:
        return []
    series = {one.source: tuple(one.relative.tolist()) for one in measured}
    says = "; ".join(f"{one.source}: {_ends(one)}" for one in measured)
    title = f"Relative singular values ({reference} = 1)"
    return [ProbeFigure("curve", title, "index", (), series, f"{says}.")]


def _ends(one: Spectrum) -> str:
    """Say where a curve starts and ends, and at which index."""
    relative, count = one.relative, len(one.values)
    if not len(relative):
        return "no value is above rounding"
    last = "the last"
    if len(relative) < count:
        last = f"the last that is above rounding ({len(relative)} of {count})"
    return f"{relative[0]:.3f} at the first value, {relative[-1]:.3f} at {last}"


def _sentence(one: Spectrum, reference: str) -> str:
    low, high = (100 * bound for bound in one.interval)
    ours, theirs = (100 * share for share in one.heads)
    word = "more" if low > 0 else "less" if high < 0 else "not shown to be more or less"
    interval = f"{theirs - ours:+.2f} points [{low:+.2f}, {high:+.2f}]".replace("-", "−")
    return (
        f"{one.source}: embeddings are {word} concentrated than those of {reference}: the largest tenth of the "
        f"directions holds {theirs:.1f} % against {ours:.1f} %, {interval} over "
        f"{counted(one.pairs, 'pair', 'pairs')}"
    )
