"""Two-level designs: in which combinations of factors a document is written.

A *run* is one combination: a level, low or high, for each factor. A *full* design has every
combination, 2ᵏ for k factors. A *fraction* has some of them, chosen so that the effect of each
factor can still be told from those of the others. A *cell* is a run of one document.

With fewer runs some effects cannot be told apart, and are said to be mixed. The *resolution* says
which: in IV a factor's effect is mixed with no interaction of two factors; in V interactions of two
are not mixed with each other either; in III a factor's effect is mixed with interactions of two,
and such designs are refused. (Box, Hunter & Hunter, Statistics for Experimenters, 2005, ch. 6.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.errors import UserError, counted, join_words, refuse_twice

Levels = npt.NDArray[np.int8]
"""−1 for low, 1 for high, with a row for each run and a column for each factor."""
MOST_FACTORS = 6
"""Maximum number of factors of a design."""
FULL = "full"
"""Size of a design with every combination."""
SIZES = ("8", "16", "32", FULL)
"""Values of ``--design``."""
PREFIX = "factor:"
"""Beginning of the columns of factors in the documents of a designed collection."""
LOW, HIGH = "low", "high"
"""Names of the two levels."""
FACTS = "facts"
"""The factor that changes what a text says: no judgment is carried over to its high level."""

_LETTERS = "ABCDEF"
"""Letters of the factors in generators."""


@dataclass(frozen=True, kw_only=True)
class Fraction:
    """A fraction of all combinations that still separates main effects."""

    generators: tuple[str, ...]
    """Equations for the levels of the last factors, as products of the levels of the first.

    Letters stand for factors in their order, and levels are −1 and 1: ``E=-ABCD`` says that the
    fifth factor's level is minus the product of the first four.
    """
    resolution: str
    """Resolution, as a Roman number; it says which effects are mixed with which."""


FRACTIONS: Mapping[tuple[int, int], Fraction] = {
    (4, 8): Fraction(generators=("D=ABC",), resolution="IV"),
    (5, 16): Fraction(generators=("E=-ABCD",), resolution="V"),
    (6, 16): Fraction(generators=("E=ABC", "F=BCD"), resolution="IV"),
    (6, 32): Fraction(generators=("F=ABCDE",), resolution="VI"),
}
"""Fractions by number of factors and of runs (Box, Hunter & Hunter, 2005, Table 6.22).

The run with every factor low must be in a fraction, because it is the document as it is. For five
factors in 16 runs the table's half lacks that run. The other half, with the sign of the generator
reversed, has it, and the same resolution.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Design:
    """Runs, each a combination of one level per factor; all are low in the first, the original."""

    factors: tuple[str, ...]
    """Names of the factors."""
    levels: Levels
    """Level of each factor in each run: −1 for low, 1 for high."""
    kind: str
    """``factorial``, or ``given`` where the versions existed already."""
    generators: tuple[str, ...] = ()
    """Equations for the levels of the last factors of a fraction, such as ``D=ABC``."""
    resolution: str = FULL
    """``full``, ``IV``, ``V`` or ``VI``; ``none`` if versions that existed already lack some
    combinations.
    """

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.levels)

    def level_names(self) -> list[dict[str, str]]:
        """Return the name of each factor's level (``low`` or ``high``) by factor, run by run."""
        names = {-1: LOW, 1: HIGH}
        runs = []
        for run_levels in self.levels.tolist():
            levels = [names[level] for level in run_levels]
            runs.append(dict(zip(self.factors, levels, strict=True)))
        return runs

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "kind": self.kind,
            "factors": list(self.factors),
            "generators": list(self.generators),
            "resolution": self.resolution,
            "runs": self.runs,
        }


def design(factors: Sequence[str], size: str | int = FULL) -> Design:
    """Lay out an experiment with two levels per factor.

    Parameters
    ----------
    factors : sequence of str
        Names of the factors.
    size : str or int, optional
        Number of runs, or ``full`` for every combination.

    Raises
    ------
    UserError
        If the runs are too few for resolution IV: the effect of a factor would be mixed with the
        interaction of two others.
    """
    names = tuple(factors)
    _check_names(names)
    if str(size) not in SIZES:
        raise UserError(f"unknown design {str(size)!r} (valid: {', '.join(SIZES)})")
    factor_count = len(names)
    combinations = 2**factor_count
    runs = combinations if size == FULL else int(size)
    if runs == combinations:
        return Design(factors=names, levels=full_factorial(factor_count), kind="factorial")
    fraction = _fraction(factor_count, runs)
    return Design(
        factors=names,
        levels=fraction_levels(factor_count, fraction.generators),
        kind="factorial",
        generators=fraction.generators,
        resolution=fraction.resolution,
    )


def _fraction(factor_count: int, runs: int) -> Fraction:
    """Look up a fraction, or raise an error that names a design for this number of factors."""
    combinations = 2**factor_count
    factors = counted(factor_count, "factor", "factors")
    if runs > combinations:
        verb = "has" if factor_count == 1 else "have"
        raise UserError(
            f"{factors} {verb} {combinations} combinations: a design of {runs} is too large; "
            "use full"
        )
    if (factor_count, runs) not in FRACTIONS:
        sizes = [size for count, size in FRACTIONS if count == factor_count]
        least = min(sizes, default=combinations)
        raise UserError(
            f"{factors} in {runs} runs is of resolution III: effects would be mixed with "
            f"interactions of two factors; use {least} runs or more"
        )
    return FRACTIONS[factor_count, runs]


def _check_names(names: tuple[str, ...]) -> None:
    """Refuse no factors, too many, and names that no column could have."""
    if not names:
        raise UserError("expected a factor, such as length, got none")
    if len(names) > MOST_FACTORS:
        raise UserError(f"expected at most {MOST_FACTORS} factors, got {len(names)}")
    refuse_twice(list(names), "factor")
    for name in names:
        if not re.fullmatch(r"[\w-]+", name):
            raise UserError(f"factor {name!r}: expected a name of letters, digits, - and _")


def full_factorial(factor_count: int) -> Levels:
    """Return every combination in standard order: the first factor changes fastest."""
    runs = np.arange(2**factor_count)
    # A factor is high in the runs whose number has the factor's binary digit.
    columns = [np.where(runs >> factor & 1, 1, -1) for factor in range(factor_count)]
    return np.stack(columns, axis=1).astype(np.int8)


def fraction_levels(factor_count: int, generators: Sequence[str]) -> Levels:
    """Return a fraction in standard order; a generator such as ``E=-ABCD`` makes a column."""
    free = full_factorial(factor_count - len(generators))
    columns = dict(zip(_LETTERS, free.T, strict=False))
    for generator in generators:
        letter, _, word = generator.partition("=")
        sign = -1 if word.startswith("-") else 1
        columns[letter] = sign * np.prod([columns[name] for name in word.lstrip("-")], axis=0)
    ordered = [columns[letter] for letter in _LETTERS[:factor_count]]
    return np.stack(ordered, axis=1).astype(np.int8)


def draw_cells(
    layout: Design, origins: Sequence[str], cells: int | None, seed: int = 0
) -> list[list[int]]:
    """Draw runs of a design for each document, and return their indices in rising order.

    Over all documents every run should be used equally often, and within a document each factor
    should be low and high equally often. So the documents take turns in a random order. Each takes
    the runs that were used least so far. Among these it prefers runs that balance low and high
    levels, and then chooses at random. In the end the most and the least used run differ by at most
    one use.

    Parameters
    ----------
    layout : Design
        The design.
    origins : sequence of str
        Ids of the documents that get versions.
    cells : int or None
        Number of runs for each document; None for all.
    seed : int, optional
        Random seed.
    """
    if cells is None:
        return [list(range(layout.runs)) for _ in origins]
    if not 2 <= cells <= layout.runs:
        names = join_words(list(layout.factors))
        raise UserError(f"expected 2 to {layout.runs} cells per origin of {names}, got {cells}")
    rng = np.random.default_rng(seed)
    times_used = np.zeros(layout.runs, dtype=np.int64)  # by run, over all documents so far
    runs_by_document: dict[int, list[int]] = {}
    for document in rng.permutation(len(origins)).tolist():
        random_keys = rng.random(layout.runs)
        # For each factor, the document's number of high levels minus that of low levels.
        level_sums = np.zeros(len(layout.factors), dtype=np.int64)
        runs: list[int] = []
        for _ in range(cells):
            imbalance = np.abs(level_sums + layout.levels).sum(axis=1)
            # The last key of `lexsort` is the first to sort by.
            order = np.lexsort((random_keys, imbalance, times_used)).tolist()
            run = next(candidate for candidate in order if candidate not in runs)
            runs.append(run)
            times_used[run] += 1
            level_sums += layout.levels[run]
        runs_by_document[document] = sorted(runs)
    return [runs_by_document[document] for document in range(len(origins))]


def design_of_versions(factors: Sequence[str], cells: Sequence[tuple[int, ...]]) -> Design:
    """Return the design of versions that existed already.

    `cells` holds the levels of each version, −1 or 1 for each factor. The design has each
    combination once, in standard order.
    """
    _check_names(tuple(factors))
    # In standard order the first factor changes fastest, so the last one is the first to sort by.
    combinations = sorted(set(cells), key=lambda cell: cell[::-1])
    levels = np.array(combinations, dtype=np.int8).reshape(-1, len(factors))
    is_full = len(levels) == 2 ** len(factors)
    return Design(
        factors=tuple(factors),
        levels=levels,
        kind="given",
        resolution=FULL if is_full else "none",
    )


def has_changed_facts(docs: pl.DataFrame) -> pl.Series:
    """Tell for each version whether its facts were changed: it then says other than its origin."""
    column = PREFIX + FACTS
    if column not in docs.columns:
        return pl.repeat(value=False, n=docs.height, eager=True)
    return (docs[column] == HIGH).fill_null(value=False)
