"""Errors and warnings for users, and functions that make the texts of messages.

A message says in one sentence what is wrong, and what to do.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_MOST_LISTED = 100
"""Most names that a message lists."""
_MOST_CHARACTERS = 700
"""Most characters of a list of names: some nine lines of a terminal.

Of a longer list, only the first names are shown.
"""
_MOST_SHOWN = 12
"""Number of names that are shown of such a long list."""
_MOST_NUMBERS = 12
"""Most numbers that are listed; for more, a message has their range."""
_MOST_COMPARED = 5_000
"""Most names among which a similar name is looked for, because each comparison takes time."""
# Control characters (C0, DEL and C1), marks of the direction of writing, other line ends, and
# lone surrogates, which are halves of characters.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""A character that a terminal would act on, or nobody would see."""
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
"""A number without an exponent."""


class UserError(Exception):
    """A mistake that the user can fix; the command line prints it in one line and exits with 2."""


class DataError(UserError):
    """A file that does not hold what it should.

    Parameters
    ----------
    path : str or Path
        The file as the user named it.
    message : str
        What was expected, and what the file has instead.
    line : int, optional
        Number of the line, from 1; by default the error is about the whole file.
    """

    def __init__(self, path: str | Path, message: str, *, line: int | None = None) -> None:
        self.path = str(path)
        self.line = line
        self.message = message
        where = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{where}: {message}")


def error_in_file(path: str | Path, error: UserError, *, line: int | None = None) -> DataError:
    """Return a `DataError` with the message of an error, which begins with the file's name.

    An error that names its file already is returned as it is.
    """
    return error if isinstance(error, DataError) else DataError(path, str(error), line=line)


class MissingExtra(UserError):
    """An optional package is needed and not installed.

    Parameters
    ----------
    package : str
        The package that could not be imported.
    extra : str
        The extra of RankTilt that installs it.
    for_ : str
        What needs it, as the user calls it, such as ``--executor ray``.
    """

    def __init__(self, package: str, *, extra: str, for_: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(
            f'{for_} needs {package}. Install it with: pip install "ranktilt[{extra}]"'
        )


class DataWarning(UserWarning):
    """A property of the data that does not stop the work but affects its result."""


def unknown_name(kind: str, name: object, valid: Iterable[str]) -> UserError:
    """Return the error for a name that is not in `valid`; `kind` says what it names.

    The message suggests the nearest valid name, and lists valid names as `list_names` does.
    """
    names = list(valid)
    near_names = nearest(str(name), names)
    hint = f"; did you mean {near_names[0]!r}?" if near_names else ""
    return UserError(f"unknown {kind} {name!r}{hint} (valid: {list_names(names)})")


def list_names(names: Sequence[str]) -> str:
    """List names in a message: all of a few names, or the first of many; ``none`` for no name.

    Many numbers are described by their range.
    """
    if len(names) > _MOST_NUMBERS and all(map(_is_number, names)):
        low, high = min(names, key=float), max(names, key=float)
        return f"{len(names):,} numbers from {low} to {high}"
    most = _MOST_LISTED
    separator_length = len(", ")
    if sum(len(name) + separator_length for name in names[:most]) > _MOST_CHARACTERS:
        most = _MOST_SHOWN
    rest = f" and {len(names) - most:,} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + rest


def _is_number(name: str) -> bool:
    """Tell whether a name is a number."""
    return bool(_NUMBER.fullmatch(name))


def nearest(name: str, names: Iterable[str], count: int = 1) -> list[str]:
    """Return at most `count` of the names that are most like a name, whatever their case.

    Of thousands of names, only those with the same first letter are compared.
    """
    by_lower_case = {known.casefold(): known for known in names}
    lower_case_name = name.casefold()
    candidates = list(by_lower_case)
    if len(candidates) > _MOST_COMPARED:
        same_letter = [known for known in candidates if known[:1] == lower_case_name[:1]]
        candidates = same_letter[:_MOST_COMPARED]
    matches = difflib.get_close_matches(lower_case_name, candidates, n=count, cutoff=0.5)
    return [by_lower_case[match] for match in matches]


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its class if it has none."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__).strip()


def refuse_twice(names: Sequence[str], noun: str) -> None:
    """Refuse a name that comes more than once; `noun` says what is named, such as ``"ranker"``."""
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{noun} {name!r} is given twice")


def counted(n: int, singular: str, plural: str) -> str:
    """Return a number with its noun: ``1 query``, ``2 queries``."""
    return f"{n:,} {singular if n == 1 else plural}"


def join_words(names: Sequence[str], last: str = "and") -> str:
    """Join words in a sentence: ``a``, ``a and b``, ``a, b and c``; `last` is the word ``and``."""
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else names[0]


def escape_invisible(text: str) -> str:
    r"""Replace characters that a terminal would act on, or nobody would see, by escapes.

    An escape is ``\x1b``, for one. Tabs and line feeds stay.
    """
    # `ascii` returns the escape in quotes.
    return _INVISIBLE.sub(lambda match: ascii(match[0])[1:-1], text)


def shorten(text: object, width: int = 80) -> str:
    """Quote a piece of input for an error message: its ``repr``, cut to `width` characters."""
    if isinstance(text, str):
        return repr(_cut(text, width))
    try:
        return _cut(" ".join(repr(text).split()), width)
    except (RecursionError, ValueError):  # nested too deeply, or a number of thousands of digits
        return _cut(type(text).__name__, width)


def _cut(text: str, width: int) -> str:
    """Cut a text to a width, with an ellipsis."""
    return text if len(text) <= width else text[: width - 1] + "…"
