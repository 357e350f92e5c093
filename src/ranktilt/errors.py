"""Mistakes that users can fix; each message is a sentence that says what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_MOST_LISTED = 100
"""Most names that a message lists."""
_MOST_LETTERS = 700
"""Letters of a list of names that can still be read; of a longer one, the first names are shown."""
_MOST_OF_LONG = 12
"""Names of a long list that are shown, and numbers that are shown one by one."""
_MOST_COMPARED = 5_000
"""Most names among which a similar one is looked for."""
# C0, DEL, C1, marks and turns of the direction of writing, other line ends, and halves of
# characters.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")


class UserError(Exception):
    """A mistake the user can fix; the command line prints it in one line and exits with 2."""


class DataError(UserError):
    """A file that does not hold what it should.

    Parameters
    ----------
    path : str or Path
        The file as the user named it.
    message : str
        What was expected and what came.
    line : int, optional
        1-based line number; None where the whole file is meant.
    """

    def __init__(self, path: str | Path, message: str, *, line: int | None = None) -> None:
        self.path = str(path)
        self.line = line
        self.message = message
        where = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{where}: {message}")


def located(path: str | Path, error: UserError, *, line: int | None = None) -> DataError:
    """Return an error with the file that it is about; one that names its file stays as it is."""
    return error if isinstance(error, DataError) else DataError(path, str(error), line=line)


class MissingExtra(UserError):
    """An optional package is needed and not installed.

    Parameters
    ----------
    package : str
        The package that could not be imported.
    extra : str
        The extra of RankTilt that brings it.
    for_ : str
        What needs it, in the user's words.
    """

    def __init__(self, package: str, *, extra: str, for_: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(
            f'{for_} needs {package}. Install it with: pip install "ranktilt[{extra}]"'
        )


class DataWarning(UserWarning):
    """A property of the data that does not stop the work but affects its result."""


def unknown(kind: str, name: object, valid: Iterable[str]) -> UserError:
    """Make the error for a name that is not in `valid`.

    It suggests the nearest name, and lists the others as far as they can be read.
    """
    names = list(valid)
    near = nearest(str(name), names)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return UserError(f"unknown {kind} {name!r}{hint} (valid: {listed(names)})")


def listed(names: Sequence[str]) -> str:
    """List names in a message: all of a few, the first of many, and the range of many numbers."""
    if len(names) > _MOST_OF_LONG and all(map(_is_number, names)):
        low, high = min(names, key=float), max(names, key=float)
        return f"{len(names):,} numbers from {low} to {high}"
    most = _MOST_LISTED
    if sum(len(name) + 2 for name in names[:most]) > _MOST_LETTERS:
        most = _MOST_OF_LONG
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more


def _is_number(name: str) -> bool:
    return bool(_NUMBER.fullmatch(name))


def nearest(name: str, names: Iterable[str], count: int = 1) -> list[str]:
    """Return the names that are most like a name.

    Among thousands of names only those with the same first letter are compared.
    """
    folded = {known.casefold(): known for known in names}
    folded_name = name.casefold()
    candidates = list(folded)
    if len(candidates) > _MOST_COMPARED:
        alike = [known for known in candidates if known[:1] == folded_name[:1]]
        candidates = alike[:_MOST_COMPARED]
    matches = difflib.get_close_matches(folded_name, candidates, n=count, cutoff=0.5)
    return [folded[match] for match in matches]


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the error's name where it has none."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__).strip()


def refuse_twice(names: Sequence[str], noun: str) -> None:
    """Refuse a name that comes more than once; `noun` says what is named, such as ``"ranker"``."""
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{noun} {name!r} is given twice")


def counted(n: int, singular: str, plural: str) -> str:
    """Write a number and its noun: ``1 query``, ``2 queries``."""
    return f"{n:,} {singular if n == 1 else plural}"


def join_words(names: Sequence[str], last: str = "and") -> str:
    """Join words in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else names[0]


def visible(text: str) -> str:
    r"""Replace characters that a terminal would act on, or nobody would see, by escapes.

    Such as ``\x1b``; tabs and line feeds stay.
    """
    return _UNSEEN.sub(lambda match: ascii(match[0])[1:-1], text)


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
