"""Read the values of labels: those that name no group or several, and spellings of one name.

A *label* is the value of a column by which documents are grouped. Every label passes through
`known_labels`, whichever file or table it comes from.
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
    """The only kind of difference between the spellings, such as ``case``."""

    @property
    def options(self) -> str:
        """Options of the command line that merge the labels."""
        plain, *spellings = self.labels
        return " ".join(f"--name {shlex.quote(f'{label}={plain}')}" for label in spellings)

    @property
    def joined(self) -> str:
        """The labels as words of a sentence, in quotes; with code points if they look the same."""
        # NFC joins a letter and its accent. Labels that are equal afterwards look the same.
        composed = {unicodedata.normalize("NFC", label) for label in self.labels}
        look_different = len(composed) == len(self.labels)
        quote = repr if look_different else ascii
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
    """Return the groups that each value names, as lists; null for a value that names no group.

    The value ``a | b`` names the groups ``a`` and ``b``.
    """
    lists = column.str.split(SEVERAL).list.eval(pl.element().str.strip_chars())
    groups = lists.list.eval(pl.element().filter(~pl.element().is_in(NO_LABEL)))
    return groups.set(groups.list.len() == 0, None)


def null_words(labels: Iterable[str]) -> list[str]:
    """Return the labels that are words for a missing value, such as ``none``."""
    return [label for label in labels if label.strip().casefold() in _NULL_WORDS]


def as_numbers(column: pl.Series) -> pl.Series:
    """Convert a column of strings to integers if all values are integers, else to floats.

    A column with any value that is no number is returned as it is.
    """
    if column.dtype != pl.String:
        return column
    for dtype in (pl.Int64, pl.Float64):
        numbers = column.cast(dtype, strict=False)
        # A value that is no number becomes null, so that there are more nulls than before.
        has_only_numbers = numbers.null_count() == column.null_count()
        if has_only_numbers and column.null_count() < len(column):
            return numbers
    return column


def alike_labels(labels: Iterable[str]) -> list[AlikeLabels]:
    """Find labels that differ only in case, blanks, Unicode form, or how a number is written."""
    spellings_by_name = defaultdict[str, list[str]](list)
    for label in dict.fromkeys(labels):
        name = _short_number(_plain(label, _SPELLING_DIFFERENCES.values()))
        spellings_by_name[name].append(label)
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


_SPELLING_DIFFERENCES: dict[str, Callable[[str], str]] = {
    "case": str.casefold,
    "blanks": _with_plain_blanks,
    "Unicode form": _compatible,
}
"""Functions that remove a difference of spelling, by the name of the difference."""


def _plain(label: str, removers: Iterable[Callable[[str], str]]) -> str:
    """Return a label without the differences of spelling that functions remove."""
    removers = list(removers)
    # All are applied twice, because one may make work for an earlier one: NFKC turns a full-width
    # blank into a plain blank.
    for remove_difference in [*removers, *removers]:
        label = remove_difference(label)
    return label


def _short_number(label: str) -> str:
    """Return a number in its shortest form, any other label as it is."""
    if not _NUMBER.fullmatch(label) or not math.isfinite(float(label)):
        return label
    return repr(float(label))


def _plainest_first(spellings: Sequence[str]) -> tuple[str, ...]:
    """Order spellings: the plainest first, if a label has it, and the others by length.

    The plainest spelling is the one without any difference; of numbers it is the shortest: ``1``
    before ``1.0``.
    """
    plainest = _plain(spellings[0], _SPELLING_DIFFERENCES.values())
    if _NUMBER.fullmatch(plainest):
        plainest = min(spellings, key=len)

    def order(label: str) -> tuple[bool, int, str, str]:
        return label != plainest, len(label), label.casefold(), label

    return tuple(sorted(spellings, key=order))


def _difference(spellings: Sequence[str]) -> str:
    """Name the kinds of difference between spellings, as few as explain it."""
    for count in range(1, len(_SPELLING_DIFFERENCES) + 1):
        for names in combinations(_SPELLING_DIFFERENCES, count):
            removers = [_SPELLING_DIFFERENCES[name] for name in names]
            if len({_plain(label, removers) for label in spellings}) == 1:
                return join_words(names)
    # No difference of spelling explains it, and `alike_labels` knows only one other difference.
    return "how a number is written"
