"""Two-level designs: which combinations of factors a document is written in, and what these can tell apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.errors import UserError, counted, join_words, refuse_twice

Levels = npt.NDArray[np.int8]
"""One row a run, one column a factor: −1 for low, 1 for high."""
MOST_FACTORS = 6
FULL, PB12 = "full", "pb12"
SIZES = ("8", "16", "32", FULL, PB12)
"""What ``--design`` takes."""
LOW, HIGH = "low", "high"

_LETTERS = "ABCDEF"
_ROMAN = {3: "III", 4: "IV", 5: "V", 6: "VI"}
_GENERATORS: Mapping[tuple[int, int], tuple[str, ...]] = {
    (4, 8): ("D=ABC",),
    (5, 16): ("E=ABCD",),
    (6, 16): ("E=ABC", "F=BCD"),
    (6, 32): ("F=ABCDE",),
}
"""By number of factors and runs: Box, Hunter & Hunter, Statistics for Experimenters, 2nd ed. 2005, Table 6.22."""
_PB12 = "++-+++---+-"
"""First row of the design in 12 runs; each further row is it, moved by one (Plackett & Burman, Biometrika 33, 1946)."""


@dataclass(frozen=True, eq=False)
class Design:
    """Combinations of two levels of each factor; the first is the document as it is, with every factor low."""

    factors: tuple[str, ...]
    levels: Levels
    kind: str
    """``factorial``, ``plackett-burman`` or, of versions that were there already, ``given``."""
    generators: tuple[str, ...] = ()
    """How the columns of a fraction are made of others, by letter in the order of the factors: ``E=-ABCD``."""
    resolution: str = FULL
    """``full``, ``IV``, ``V`` or ``VI``; ``III`` for screening; ``none`` of given versions that are no design."""

    @property
    def runs(self) -> int:
        return len(self.levels)

    def cells(self) -> list[dict[str, str]]:
        """Return the level of each factor, run by run."""
        return [
            {
                name: HIGH if level > 0 else LOW
                for name, level in zip(self.factors, row, strict=True)
            }
            for row in self.levels.tolist()
        ]

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
    """Lay out an experiment with two levels a factor.

    `size` is a number of runs, ``full`` for every combination, or ``pb12`` for screening, in which
    each factor's effect is mixed with part of every interaction of two others. A fraction is of
    resolution IV at least, so that the effect of a factor is mixed with no interaction of two; a
    smaller one is refused. Where the textbook's fraction lacks the document as it is, the other
    half is taken: of the same resolution, with a minus in its generator.
    """
    names, wanted = tuple(factors), str(size)
    _check_names(names)
    if wanted not in SIZES:
        raise UserError(f"unknown design {wanted!r} (valid: {', '.join(SIZES)})")
    if wanted == PB12:
        return Design(names, _plackett_burman()[:, : len(names)], "plackett-burman", (), "III")
    k = len(names)
    runs = 2**k if wanted == FULL else int(wanted)
    if runs == 2**k:
        return Design(names, full_factorial(k), "factorial")
    many = counted(k, "factor", "factors")
    if runs > 2**k:
        raise UserError(
            f"{many} have {2**k} combinations: a design of {runs} is too large; use full"
        )
    if (k, runs) not in _GENERATORS:
        least = min((r for f, r in _GENERATORS if f == k), default=2**k)
        raise UserError(
            f"{many} in {runs} runs is of resolution III: effects would be mixed with interactions of two factors; "
            f"use {least} runs or more, or pb12 for screening"
        )
    generators = tuple(_with_original(text) for text in _GENERATORS[k, runs])
    return Design(
        names, fraction(k, generators), "factorial", generators, _ROMAN[_resolution(k, generators)]
    )


def _check_names(names: tuple[str, ...]) -> None:
    if not names:
        raise UserError("expected a factor, such as length, got none")
    if len(names) > MOST_FACTORS:
        raise UserError(f"expected at most {MOST_FACTORS} factors, got {len(names)}")
    refuse_twice(list(names), "factor")
    strange = next((name for name in names if not re.fullmatch(r"[\w-]+", name)), None)
    if strange is not None:
        raise UserError(f"factor {strange!r}: expected a name of letters, digits, - and _")


def full_factorial(factors: int) -> Levels:
    """Return every combination in standard order: the first factor changes fastest."""
    runs = np.arange(2**factors)
    return np.stack(
        [np.where(runs >> factor & 1, 1, -1) for factor in range(factors)], axis=1
    ).astype(np.int8)


def fraction(factors: int, generators: Sequence[str]) -> Levels:
    """Return a fraction in standard order of its free factors; a generator such as ``E=ABCD`` makes a column."""
    levels = full_factorial(factors - len(generators))
    columns = {
        letter: levels[:, number] for number, letter in enumerate(_LETTERS[: levels.shape[1]])
    }
    for text in generators:
        letter, sign, word = _read(text)
        columns[letter] = sign * np.prod([columns[one] for one in word], axis=0)
    return np.stack([columns[letter] for letter in _LETTERS[:factors]], axis=1).astype(np.int8)


def _read(generator: str) -> tuple[str, int, str]:
    letter, _, word = generator.partition("=")
    return letter, -1 if word.startswith("-") else 1, word.removeprefix("-")


def _with_original(generator: str) -> str:
    """Turn the sign of a generator under which the run with every factor low is in the other half."""
    letter, _, word = _read(generator)
    return generator if len(word) % 2 else f"{letter}=-{word}"


def words(generators: Sequence[str]) -> list[str]:
    """Return the defining relation: every product of factors that is constant, ``ABCE``."""
    made = [frozenset(letter + word) for letter, _, word in map(_read, generators)]
    found = []
    for size in range(1, len(made) + 1):
        for some in combinations(made, size):
            times = Counter(letter for word in some for letter in word)
            found.append("".join(sorted(letter for letter, n in times.items() if n % 2)))
    return sorted(found, key=lambda word: (len(word), word))


def _resolution(factors: int, generators: Sequence[str]) -> int:
    """Return the length of the shortest word of the defining relation (Box & Hunter, Technometrics 3, 1961)."""
    return len(words(generators)[0]) if generators else factors + 1


def _plackett_burman() -> Levels:
    """Return the 12 runs, turned so that the run with every factor low comes first."""
    row = np.array([1 if sign == "+" else -1 for sign in _PB12], dtype=np.int8)
    runs = [np.roll(row, moved) for moved in range(len(row))]
    return np.stack([np.full_like(row, -1), *runs])


def drawn_cells(
    found: Design, origins: Sequence[str], cells: int | None, seed: int = 0
) -> list[list[int]]:
    """Choose runs of a design for each origin, rising; all of them where `cells` is None.

    Origins take, in a seeded order, the runs that were taken least, so that over all origins no run
    is taken more than once more often than another; among these, those with which the levels of
    each factor are nearest to even within the origin, and else by chance.
    """
    if cells is None:
        return [list(range(found.runs)) for _ in origins]
    if not 2 <= cells <= found.runs:
        names = join_words(list(found.factors))
        raise UserError(f"expected 2 to {found.runs} cells an origin of {names}, got {cells}")
    rng = np.random.default_rng(seed)
    used, chosen = np.zeros(found.runs, dtype=np.int64), dict[int, list[int]]()
    for origin in rng.permutation(len(origins)).tolist():
        chance, totals, taken = (
            rng.random(found.runs),
            np.zeros(len(found.factors), dtype=np.int64),
            list[int](),
        )
        for _ in range(cells):
            uneven = np.abs(totals + found.levels).sum(axis=1)
            order = [run for run in np.lexsort((chance, uneven, used)).tolist() if run not in taken]
            taken.append(order[0])
            used[order[0]] += 1
            totals += found.levels[order[0]]
        chosen[origin] = sorted(taken)
    return [chosen[origin] for origin in range(len(origins))]


def given_design(factors: Sequence[str], cells: Sequence[tuple[int, ...]]) -> Design:
    """Describe the combinations of versions that were there already, each once, in standard order."""
    _check_names(tuple(factors))
    levels = np.array(sorted(set(cells), key=lambda cell: cell[::-1]), dtype=np.int8).reshape(
        -1, len(factors)
    )
    whole = len(levels) == 2 ** len(factors)
    return Design(tuple(factors), levels, "given", (), FULL if whole else "none")
