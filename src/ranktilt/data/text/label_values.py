"""Read the values of labels: those that name no group or several, and spellings of one name.

Every label passes through `known_labels`, whichever file or table it comes from.
"""

from __future__ import annotations

import math
import re
import shlex
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import polars as pl

from ranktilt.errors import join_words

NO_LABEL = ("", "nan", "NaN", "<NA>", "NaT")
"""Values that name no group: empty ones, and missing values as pandas and numpy write them."""
SEVERAL = "|"
"""Separator of groups: in a label of several groups, and where a user unites groups (``a|b``)."""
_NULL_WORDS = frozenset({"na", "n/a", "#n/a", "none", "null", "nil", "nan", "undefined", "\\n"})
"""Lower-case words that may stand for a missing value, and may be names as well.

They are read as names of groups, and a remark asks about them. ``nan`` is here for spellings such
as ``NAN`` that are not in `NO_LABEL`; ``\\n`` is the ``\\N`` that databases export, in lower case.
"""
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
"""Soft hyphens, zero-width characters, direction marks, and the byte-order mark."""
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, kw_only=True)
class AlikeLabels:
    """Labels that are most likely spellings of the same name."""

    labels: tuple[str, ...]
    """The spellings, the plainest first."""
    difference: str
    """The only difference between the spellings, such as ``case``."""

    @property
    def options(self) -> str:
        """Options of the command line that merge the labels."""
        plain, *spellings = self.labels
        return " ".join(f"--name {shlex.quote(f'{label}={plain}')}" for label in spellings)

    @property
    def joined(self) -> str:
        """The labels in quotes; with code points if they look alike on a screen."""
        # NFC joins a letter and its accent, so equal composed forms look the same when printed.
        composed = {unicodedata.normalize("NFC", label) for label in self.labels}
        quote = repr if len(composed) == len(self.labels) else ascii
        return join_words([quote(label) for label in self.labels])


def known_labels(column: pl.Series) -> pl.Series:
    """Return a column of labels with null wherever a value names no group."""
    if column.dtype.is_float():
        return column.fill_nan(None)
    if column.dtype != pl.String:
        return column
    is_missing = column.str.strip_chars().is_in(NO_LABEL)
    return column.set(is_missing.fill_null(value=False), None)


def split_labels(column: pl.Series) -> pl.Series:
    """Return the groups that each value names, as lists; null for a value that names none.

    The value ``a | b`` names the groups ``a`` and ``b``.
    """
    lists = column.str.split(SEVERAL).list.eval(pl.element().str.strip_chars())
    groups = lists.list.eval(pl.element().filter(~pl.element().is_in(NO_LABEL)))
    return groups.set(groups.list.len() == 0, None)


def null_words(labels: Iterable[str]) -> list[str]:
    """Return the labels that are words for a missing value, such as ``none``."""
    return [label for label in labels if label.strip().casefold() in _NULL_WORDS]


def as_numbers(column: pl.Series) -> pl.Series:
    """Convert a column of strings to integers or floats if every value is one."""
    if column.dtype != pl.String:
        return column
    for kind in (pl.Int64, pl.Float64):
        numbers = column.cast(kind, strict=False)
        # What is no number becomes null, so that equal counts mean that every value is a number.
        if numbers.null_count() == column.null_count() < len(column):
            return numbers
    return column


def alike_labels(labels: Iterable[str]) -> list[AlikeLabels]:
    """Find labels that differ only in case, blanks, Unicode form, or how a number is written."""
    spellings_by_name = defaultdict[str, list[str]](list)
    for label in dict.fromkeys(labels):
        spellings_by_name[_as_number(_plain(label, _SPELLINGS.values()))].append(label)
    return [
        AlikeLabels(labels=_plainest_first(spellings), difference=_difference(spellings))
        for spellings in spellings_by_name.values()
        if len(spellings) > 1
    ]


def _with_plain_blanks(label: str) -> str:
    """Remove invisible characters and blanks at the ends, and make every blank a single space."""
    return " ".join(_INVISIBLE.sub("", label).split())


def _compatible(label: str) -> str:
    """Replace characters by their compatible forms, such as ``ﬁ`` by ``fi``."""
    return unicodedata.normalize("NFKC", label)


_SPELLINGS: dict[str, Callable[[str], str]] = {
    "case": str.casefold,
    "blanks": _with_plain_blanks,
    "Unicode form": _compatible,
}
"""Kinds of difference by name, each with the function that removes it."""


def _plain(label: str, steps: Iterable[Callable[[str], str]]) -> str:
    """Return a label without the differences of spelling that the steps remove."""
    steps = list(steps)
    # Twice, because a later step may leave work to an earlier one: NFKC makes a blank of a
    # full-width blank.
    for step in [*steps, *steps]:
        label = step(label)
    return label


def _as_number(label: str) -> str:
    """Return a number in its shortest form, any other label as it is."""
    if not _NUMBER.fullmatch(label) or not math.isfinite(float(label)):
        return label
    return repr(float(label))


def _plainest_first(spellings: Sequence[str]) -> tuple[str, ...]:
    """Order spellings: the plainest first, if a label is written that way, the others by length.

    The plainest is what all spellings become in `_plain`; of numbers it is the shortest: ``1``
    before ``1.0``.
    """
    plainest = _plain(spellings[0], _SPELLINGS.values())
    if _NUMBER.fullmatch(plainest):
        plainest = min(spellings, key=len)
    return tuple(
        sorted(
            spellings, key=lambda label: (label != plainest, len(label), label.casefold(), label)
        )
    )


def _difference(spellings: Sequence[str]) -> str:
    """Name the fewest kinds of spelling in which labels differ."""
    for count in range(1, len(_SPELLINGS) + 1):
        for names in combinations(_SPELLINGS, count):
            steps = [_SPELLINGS[name] for name in names]
            if len({_plain(label, steps) for label in spellings}) == 1:
                return join_words(names)
    # `alike_labels` removes these differences and unites numbers, so that only numbers are left.
    return "how a number is written"
