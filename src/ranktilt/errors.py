"""What can go wrong by the user's hand, each with one sentence that says what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

# C0, DEL, C1, marks and turns of the direction of writing, other line ends, and halves of characters.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


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
        super().__init__(f'{for_} needs {package}. Install it with: pip install "ranktilt[{extra}]"')


class DataWarning(UserWarning):
    """Something about the data that does not stop the work but colours its result."""


def unknown(kind: str, name: str, valid: Iterable[str]) -> UserError:
    """Make the error for a name that is not on the list `valid`: suggests the nearest and lists them all."""
    names = list(valid)
    folded = {n.casefold(): n for n in names}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    hint = f"; did you mean {folded[near[0]]!r}?" if near else ""
    return UserError(f"unknown {kind} {name!r}{hint} (valid: {', '.join(names) or 'none'})")


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
            whole = repr(text)
        except (RecursionError, ValueError):  # nested too deeply, or a number of thousands of digits
            whole = type(text).__name__
        return whole if len(whole) <= width else whole[: width - 1] + "…"
    return repr(text if len(text) <= width else text[: width - 1] + "…")
