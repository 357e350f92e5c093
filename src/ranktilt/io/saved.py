"""The reading of results by hand, for those that `ranktilt.io.artifact.Result` does not read yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from ranktilt.errors import DataError, UserError, counted, shorten
from ranktilt.io.files import invalid_utf8, read_bytes
from ranktilt.io.runfile import unwritable

T = TypeVar("T")
Floats = npt.NDArray[np.float64]
_BROKEN = (
    AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError, UserError,
    pl.exceptions.PolarsError,
)  # fmt: skip
_PLAIN: dict[Any, tuple[tuple[type, ...], str]] = {
    float: ((int, float), "a number"),
    int: ((int,), "a whole number"),
    str: ((str,), "a text"),
    bool: ((bool,), "true or false"),
    dict: ((dict,), "names and values"),
}


@dataclass(frozen=True)
class Saved:
    """One kind of result as a file.

    Parameters
    ----------
    noun : str
        With its article: ``a study``.
    format : str
        What the file says it is.
    version : int
        The newest that is read.
    command : str
        What makes one: ``ranktilt study``.
    oldest : int, optional
        The oldest that is read.
    lacking : str, optional
        What those before it do not hold.
    """

    noun: str
    format: str
    version: int
    command: str
    oldest: int = 1
    lacking: str = ""

    def read(self, path: Path, make: Callable[[dict[str, Any]], T]) -> T:
        """Read a result back.

        Parameters
        ----------
        path : Path
            The file, plain or gzip.
        make : callable
            Makes the result of the file's content; what it raises about a part that is missing or of the wrong kind
            says that the file is not whole.

        Returns
        -------
        T
            What `make` made.

        Raises
        ------
        DataError
            If the file cannot be read, is empty, no JSON, of another or newer format, too old, or not whole.
        """
        content = self._content(path)
        self._check(content, path)
        try:
            made = make(content)
        except _BROKEN as error:
            message = f"is not a whole {self._bare}: {type(error).__name__}: {error}"
            raise DataError(path, message) from error
        if fault := unwritable(content):
            raise DataError(path, fault)
        return made

    @property
    def _bare(self) -> str:
        return self.noun.partition(" ")[2]

    def _content(self, path: Path) -> Any:
        data = read_bytes(path)
        if not data.strip():
            raise DataError(path, "the file is empty")
        try:
            return orjson.loads(data.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise DataError(path, invalid_utf8(error.start, data)) from error
        except orjson.JSONDecodeError as error:
            raise DataError(path, f"expected {self.noun} as JSON: {error}") from error

    def _check(self, content: Any, path: Path) -> None:
        found = content.get("format") if isinstance(content, dict) else None
        if found != self.format:
            came = "JSON without a format" if found is None else f"format {shorten(found)}"
            expected = f"expected {self.noun} (format {self.format!r})"
            raise DataError(path, f"{expected}, got {came}; {self.command} --json FILE makes one")
        version = content.get("version")
        if type(version) is not int:
            raise DataError(path, f"expected version as a whole number, got {shorten(version)}")
        front = f"is {self.noun} of format {version}"
        if version > self.version:
            raise DataError(path, f"{front}, this RankTilt reads up to {self.version}; update it")
        if version < self.oldest:
            lacking = f", which left out {self.lacking}" if self.lacking else ""
            raise DataError(path, f"{front}, made by an older RankTilt{lacking}: run {self.command} again")


def record(kind: type[T], row: Mapping[str, Any]) -> T:
    """Make a dataclass of a row of its fields by name, each checked against its type.

    Parameters
    ----------
    kind : type
        A dataclass whose fields are numbers, texts, truth values, choices of texts, or tuples of one of these.
    row : mapping
        Its fields; others, such as what is computed of them, are left out. null stands for NaN in a number.

    Returns
    -------
    dataclass
        Of the kind.

    Raises
    ------
    KeyError, TypeError, ValueError
        If a field is missing or of another type.
    """
    return kind(**{name: typed(row[name], hint, name) for name, hint in _hints(kind).items()})


def typed(found: Any, hint: Any, name: str) -> Any:
    """Return one value of a file as a type says it.

    Parameters
    ----------
    found : object
        What stands in the file.
    hint : type
        What it should be, as for `record`.
    name : str
        Of the value, for the error.

    Returns
    -------
    object
        The value; NaN for null in a number, a tuple for a list.

    Raises
    ------
    TypeError, ValueError
        If it is something else.
    """
    if get_origin(hint) is tuple:
        kinds = get_args(hint)
        if not isinstance(found, list):
            raise TypeError(f"{name}: expected a list, got {shorten(found)}")
        if kinds[-1] is not Ellipsis and len(kinds) != len(found):
            raise ValueError(f"{name}: expected {counted(len(kinds), 'value', 'values')}, got {len(found)}")
        return tuple(typed(one, kinds[0], name) for one in found)
    if get_origin(hint) is Literal:
        if found not in get_args(hint):
            raise ValueError(f"{name}: expected one of {', '.join(get_args(hint))}; got {shorten(found)}")
        return found
    if hint is float and found is None:
        return np.nan
    types, said = _PLAIN[hint]
    if not isinstance(found, types) or (isinstance(found, bool) and hint is not bool):
        raise TypeError(f"{name}: expected {said}, got {shorten(found)}")
    return found


def require_numbers(spec: Mapping[str, Any], *names: str) -> None:
    """Refuse a result's options that are no number where they are given; `TypeError` names the first."""
    for name in names:
        if type(spec.get(name, 0)) not in (int, float):
            raise TypeError(f"{name}: expected a number, got {shorten(spec[name])}")


def numbers(found: Any, name: str) -> Floats:
    """Return a list of numbers as an array.

    Parameters
    ----------
    found : object
        The list; null stands for NaN.
    name : str
        Of the list, for the error.

    Returns
    -------
    ndarray of float64, shape (n,)
        The numbers.

    Raises
    ------
    TypeError
        If it is no list of numbers.
    """
    if not isinstance(found, list) or not set(map(type, found)) <= {int, float, type(None)}:
        raise TypeError(f"{name}: expected a list of numbers, got {shorten(found)}")
    return np.array(found, dtype=np.float64)


def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}
