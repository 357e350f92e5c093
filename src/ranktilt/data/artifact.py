"""Results as versioned JSON files: ``{format, version, …, sha256}``, written as they are, read back by their types.

A result is a frozen dataclass that derives from `Result` and says its format, its version and the
command that makes it. Its fields are checked by msgspec, and a file calls them as the class does;
a method ``derived()`` gives numbers that the file has besides, and `ranktilt.presenter` what it
says in words. NaN is null, and null is NaN where a type says float. Only a file that holds what was
written is read, by the SHA-256 of its values, so that nothing checks whether its parts fit
together.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    get_args,
    get_origin,
)

import msgspec
import numpy as np
import orjson
import polars as pl
from msgspec import inspect

from ranktilt.data.files import decode_text, read_bytes, require_path, write_bytes
from ranktilt.data.formats.json_text import require_single_keys
from ranktilt.errors import DataError, UserError, shorten
from ranktilt.presenter import presenter

_LEAST, _BEYOND = -(2**63), 2**64
"""The integers that parsers of JSON keep exact, from and below."""
_CODECS: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {}
_FAULTS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,  # too deep a recursion, or a `next` that found nothing within a generator
    StopIteration,
    TypeError,
    ValueError,
    MemoryError,
    msgspec.MsgspecError,
    pl.exceptions.PolarsError,
)
T = TypeVar("T")
P = ParamSpec("P")

if TYPE_CHECKING:
    Coded = Annotated[T, "coded"]
else:

    class _Anything(type):
        def __instancecheck__(
            cls, found: object
        ) -> bool:  # what `register` makes is no instance of Coded
            return True

    class Coded(Generic[T], metaclass=_Anything):
        """A field of type T, a dataclass, that is read as `register` says and not field by field."""


@dataclass(frozen=True)
class Header:
    """What a kind of result is called, and the version of its files that is read."""

    format: str
    """What the file says it is."""
    version: int
    """The one that is written and read."""
    noun: str
    """With its article: ``an audit``."""
    command: str
    """What makes one: ``ranktilt audit``."""


class Result:
    """What a verb found: a frozen dataclass that is saved and read as one versioned JSON file."""

    header: ClassVar[Header]

    def __init_subclass__(cls, **header: Any) -> None:
        """Keep the fields of `Header` that a class of results gives: ``class Audit(Result, format=…, version=…)``."""
        super().__init_subclass__()
        cls._repr_pretty_ = Result._repr_pretty_  # type: ignore[method-assign]  # IPython prefers the repr beside it
        if header:
            cls.header = Header(**header)

    def to_json(self) -> bytes:
        """Return everything as JSON: versioned, floats exact, NaN as null, and last the SHA-256 of its values."""
        option = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_SERIALIZE_NUMPY
        body = orjson.dumps(self, default=_plain, option=option)
        digest = hash_values(orjson.loads(body))
        return b'%b,"sha256":"%b"}\n' % (body.removesuffix(b"}"), digest.encode())

    def save(self, path: str | Path) -> Path:
        """Write everything into one JSON file, compressed where it is called ``.gz``; see `to_json`."""
        write_bytes(Path(path), self.to_json())
        return Path(path)

    @property
    def headline(self) -> str:
        """What the result says first, in one sentence, as reports have it."""
        with used_from_files(self):
            return presenter().headline(self)

    def derived(self) -> dict[str, Any]:
        """Return what the file has besides the fields: numbers that follow from them."""
        return {}

    def __str__(self) -> str:
        """Return the verdicts in words, one a line: what ``print(result)`` shows."""
        with used_from_files(self):
            return presenter().sentences(self)

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return presenter().notebook(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show it in IPython as the command line prints it."""
        printer.text(presenter().table(self).rstrip("\n"))

    def frame(self, part: str = "") -> pl.DataFrame:
        """Return the rows of one part, such as ``tilts``, as a polars frame; of all parts, below each other.

        Numbers are as in the file, unrounded; what is not known is null.
        """
        with used_from_files(self):
            return presenter().frame(self, part)

    def plot(self, name: str = "") -> Any:
        """Return the first figure, or that of a part, such as ``effectiveness``; it shows itself in a notebook.

        ``.save("tilt.pdf")`` writes it for a paper (also ``.svg``, ``.png``; needs ``[plots]``). A
        wrong name is answered with those that there are.
        """
        with used_from_files(self):
            return presenter().result_figure(self, name)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a result back from a file, plain or gzip; it equals the one that was saved.

        `DataError` if the file cannot be read, holds another kind of result, is of another version,
        or was changed.
        """
        path = require_path(path)
        data = read_bytes(path)
        content = read_json(path, data, cls.header.noun)
        _require_header(path, content, cls.header)
        if not _is_as_written(content):
            hint = f"take the file as it was, or run {cls.header.command} again"
            raise DataError(
                path, f"was changed after ranktilt wrote it (its sha256 differs): {hint}"
            )
        try:
            found = cls.of_file(content)
        except (UserError, *_FAULTS) as error:
            raise _unlike(path, cls.header, error) from error
        object.__setattr__(found, "_file", path)  # where `used_from_files` looks for the culprit
        return found

    @classmethod
    def of_file(cls, content: dict[str, Any]) -> Self:
        """Make a result of what its file holds."""
        return read_fields(cls, content)

    def __eq__(self, other: object) -> bool:
        return (
            self._digest() == other._digest() if isinstance(other, type(self)) else NotImplemented
        )

    def __hash__(self) -> int:
        return hash(self._digest())

    def _digest(self) -> str:
        """Return the SHA-256 of the values; a result that another program wrote again, with 1 for 1.0, is equal."""
        return str(orjson.loads(self.to_json())["sha256"])


@contextmanager
def used_from_files(*results: Any) -> Iterator[None]:
    """Turn what goes wrong with a result from a file, whose parts do not fit together, into a `DataError` on the file.

    Reading checks the type of each part, and not whether names and numbers agree, or what a spec
    holds. A fault of a result that was never in a file is one of RankTilt, and passes.
    """
    try:
        yield
    except UserError:
        raise
    except _FAULTS as error:
        loaded = [result for result in map(_result_of, results) if hasattr(result, "_file")]
        if not loaded:
            raise
        raise _unlike(loaded[0]._file, loaded[0].header, error) from error


def names_files(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function that takes results name their files where these do not fit; see `used_from_files`."""

    @wraps(function)
    def named(*args: P.args, **options: P.kwargs) -> T:
        values = [*args, *options.values()]
        results = [
            *values,
            *(part for value in values if isinstance(value, list | tuple) for part in value),
        ]
        with used_from_files(*results):
            return function(*args, **options)

    return named


def _result_of(result: Any) -> Any:
    """Return a result, or the audit that was loaded with its collection."""
    return result if isinstance(result, Result) else getattr(result, "audit", result)


def _unlike(path: Path, header: Header, error: BaseException) -> DataError:
    reason = _reason(error)
    return DataError(
        path,
        f"is not {header.noun} as this RankTilt writes it: {reason}; run {header.command} again",
    )


def register(kind: type, encode: Callable[[Any], Any], decode: Callable[[Any], Any]) -> None:
    """Teach results to hold a type: what JSON writes of it (subclasses too), and how it is made of that again."""
    _CODECS[kind] = (encode, decode)


def read_fields(kind: type[T], content: Any) -> T:
    """Make a dataclass of what a file holds, checked against its types; msgspec's `ValidationError` names the fault."""
    return msgspec.convert(_fields_of(content, inspect.type_info(kind)), kind, dec_hook=_decoded)


def read_json(path: Path, data: bytes, wanted: str, hint: str = "") -> Any:
    """Return what a file of JSON holds; `DataError` says what was `wanted`."""
    text = decode_text(path, data)
    if not text.strip():
        raise DataError(path, "the file is empty")
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataError(path, f"expected {wanted} as JSON: {error}{hint}") from error
    require_single_keys(path, text, content)
    return content


def _is_as_written(content: dict[str, Any]) -> bool:
    """Take the SHA-256 off a result, and tell whether it is that of the values."""
    digest = content.pop("sha256", None)
    try:
        return bool(digest == hash_values(content))
    except (RecursionError, TypeError):  # nested deeper than any result
        return False


def hash_values(content: Any) -> str:
    """Return the SHA-256 of parsed JSON, which no layout, order of keys or way to write a number changes."""
    return hashlib.sha256(
        orjson.dumps(_canonical(content), option=orjson.OPT_SORT_KEYS)
    ).hexdigest()


def _canonical(value: Any) -> Any:
    """Give every number of parsed JSON one form: an integer where it is one of 64 bits (1.0 is 1), else a float."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and _LEAST <= value < _BEYOND else value
    if isinstance(value, list):
        return [_canonical(element) for element in value]
    if isinstance(value, dict):
        return {key: _canonical(element) for key, element in value.items()}
    if isinstance(value, int) and not _LEAST <= value < _BEYOND:
        return float(value) if abs(value) < sys.float_info.max else hex(value)
    return value


def _require_header(path: Path, content: Any, header: Header) -> None:
    found = content.get("format") if isinstance(content, dict) else None
    if found != header.format:
        came = "JSON without a format" if found is None else f"format {shorten(found)}"
        expected = f"expected {header.noun} (format {header.format!r})"
        raise DataError(path, f"{expected}, got {came}; {header.command} --json FILE makes one")
    if content.get("version") != header.version:
        told = f"is {header.noun} of version {shorten(content.get('version'))}"
        raise DataError(
            path,
            f"{told}, this RankTilt reads version {header.version}: run {header.command} again",
        )


def _reason(error: BaseException) -> str:
    """What was wrong, and where in the file: ``rows[0].value: Expected `float`, got `str```."""
    if not isinstance(error, msgspec.ValidationError):
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    said, _, where = " ".join(str(error).split()).partition(" - at `$")
    where = where.strip("`.")
    return f"{where}: {said}" if where else said


def _plain(found: Any) -> Any:
    """What orjson writes of an object that it does not know."""
    for kind in type(found).__mro__:
        if kind in _CODECS:
            return _CODECS[kind][0](found)
    if is_dataclass(found) and not isinstance(found, type):
        return fields_for_file(found)
    if hasattr(found, "_asdict"):
        return found._asdict()
    if isinstance(found, np.ndarray):
        return np.ascontiguousarray(found) if not found.flags.c_contiguous else found.tolist()
    if isinstance(found, Mapping):
        return dict(found)
    return str(found)


def fields_for_file(record: Any) -> dict[str, Any]:
    """Return what a file holds of a dataclass: its header, what follows from its fields, and these."""
    header = getattr(record, "header", None)
    front = {"format": header.format, "version": header.version} if header else {}
    derived = record.derived() if hasattr(record, "derived") else {}
    words = presenter().derived(record)
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {**front, **derived, **words, **values}


def _decoded(kind: Any, found: Any) -> Any:
    """Make what msgspec does not know: arrays, and what was registered."""
    if get_origin(kind) is np.ndarray:
        return np.array(found, dtype=get_args(get_args(kind)[1])[0])  # of null comes NaN
    kind = get_args(kind)[0] if get_origin(kind) is Coded else kind
    if kind in _CODECS:
        return _CODECS[kind][1](found)
    raise NotImplementedError(f"results cannot hold {kind}")


def _fields_of(found: Any, shape: Any) -> Any:
    """What a file holds by the names of its type's fields, with NaN for each null where a type says float."""
    match shape:
        case inspect.FloatType():
            return np.nan if found is None else found
        case inspect.IntType() if (
            isinstance(found, float) and found.is_integer() and abs(found) < _BEYOND
        ):
            return int(found)
        case inspect.NamedTupleType() if isinstance(found, dict):
            return [_fields_of(found[field.name], field.type) for field in shape.fields]
        case inspect.DataclassType() if isinstance(found, dict):
            return {
                field.name: _fields_of(found[field.name], field.type)
                for field in shape.fields
                if field.name in found
            }
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item) if isinstance(
            found, list
        ):
            return [_fields_of(one, item) for one in found]
        case inspect.TupleType(item_types=items) if isinstance(found, list) and len(found) == len(
            items
        ):
            return [_fields_of(one, item) for one, item in zip(found, items, strict=True)]
        case inspect.DictType(value_type=item) if isinstance(found, dict):
            return {name: _fields_of(one, item) for name, one in found.items()}
        case inspect.UnionType(types=types) if found is not None:
            known = [one for one in types if not isinstance(one, inspect.NoneType)]
            return _fields_of(found, known[0]) if len(known) == 1 else found
    return found
