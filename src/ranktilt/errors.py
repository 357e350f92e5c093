"""What can go wrong by the user's hand, each with one sentence that says what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_MOST_LISTED = 100
_MOST_COMPARED = 5_000
# C0, DEL, C1, marks and turns of the direction of writing, other line ends, and halves of
# characters.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


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
    """Something about the data that does not stop the work but colours its result."""


def unknown(kind: str, name: object, valid: Iterable[str]) -> UserError:
    """Make the error for a name that is not on the list `valid`: suggests the nearest, and lists up to 100."""
    names = list(valid)
    near = nearest(str(name), names)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(names[:_MOST_LISTED]) or "none"
    more = f" and {len(names) - _MOST_LISTED:,} more" if len(names) > _MOST_LISTED else ""
    return UserError(f"unknown {kind} {name!r}{hint} (valid: {listed}{more})")


def nearest(name: str, names: Iterable[str], count: int = 1) -> list[str]:
    """Return the names that are most like a name, of thousands only those with the same first letter."""
    folded = {n.casefold(): n for n in names}
    similar = list(folded)
    if len(similar) > _MOST_COMPARED:
        similar = [n for n in similar if n[:1] == name[:1].casefold()][:_MOST_COMPARED]
    return [
        folded[n] for n in difflib.get_close_matches(name.casefold(), similar, n=count, cutoff=0.5)
    ]


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the error's name where it has none."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__).strip()


def refuse_twice(names: Sequence[str], noun: str) -> None:
    """Refuse a name that comes more than once; `noun` is what each names, such as ``"ranker"``."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"{noun} {twice!r} is given twice")


def counted(n: int, one: str, many: str) -> str:
    """Count in words: ``1 query``, ``2 queries``."""
    return f"{n:,} {one if n == 1 else many}"


def join_words(names: Sequence[str], last: str = "and") -> str:
    """Join in words: ``a``, ``a and b``, ``a, b and c``."""
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else names[0]


def visible(text: str) -> str:
    r"""Show what a terminal would act on and nobody would see as signs, such as ``\x1b``; tabs and line feeds stay."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def shorten(text: object, width: int = 80) -> str:
    """Quote a piece of input for an error message: its ``repr``, cut to `width` characters."""
    if not isinstance(text, str):
        try:
            whole = " ".join(repr(text).split())
        except (
            RecursionError,
            ValueError,
        ):  # nested too deeply, or a number of thousands of digits
            whole = type(text).__name__
        return whole if len(whole) <= width else whole[: width - 1] + "…"
    return repr(text if len(text) <= width else text[: width - 1] + "…")
