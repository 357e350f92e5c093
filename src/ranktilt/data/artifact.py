"""Save results as versioned JSON files, ``{format, version, …, sha256}``, and read them back.

A result is a frozen dataclass that derives from `Result` and names its format, its version and the
command that makes it. The keys of the file are the fields of the class, and msgspec checks their
types. The method ``derived()`` adds numbers that follow from the fields, and `ranktilt.presenter`
adds sentences in words. NaN is written as null, and null is read as NaN where the type is float.

Reading compares the SHA-256 of the values first. A file that passes is as it was written, so no
further code checks whether its parts fit together.
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
from ranktilt.data.formats.json_values import require_single_keys
from ranktilt.errors import DataError, UserError, shorten
from ranktilt.presenter import presenter

_LEAST_INTEGER = -(2**63)
"""Smallest integer that orjson reads and writes as an integer."""
_INTEGER_END = 2**64
"""The integer after the largest one that orjson reads and writes as an integer."""
_MISFIT_EXCEPTIONS = (
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
"""Exceptions that code raises if it uses a result whose parts do not fit together."""
T = TypeVar("T")
P = ParamSpec("P")
"""Parameters of a function that `names_files` decorates."""


@dataclass(frozen=True, kw_only=True)
class _Codec:
    """Functions that write a registered type to JSON and read it back."""

    encode: Callable[[Any], Any]
    """Function from a value to something that orjson can write."""
    decode: Callable[[Any], Any]
    """Function from parsed JSON to the value."""


_CODECS: dict[type, _Codec] = {}
"""Codecs by the types for which `register` was called."""

if TYPE_CHECKING:
    Coded = Annotated[T, "coded"]
else:

    class _AnyInstance(type):
        def __instancecheck__(cls, instance: object) -> bool:
            # msgspec asks whether the value of a codec is an instance of Coded, which it is not.
            return True

    class Coded(Generic[T], metaclass=_AnyInstance):
        """A field of type T that is read by the codec of T (`register`), and not field by field.

        Type checkers see T itself.
        """


@dataclass(frozen=True, kw_only=True)
class Header:
    """The name of a kind of result, and the version of its files."""

    format: str
    """Value of the key ``format`` in the file."""
    version: int
    """Version that is written, and the only one that is read."""
    noun: str
    """Name of such a result with its article: ``an audit``."""
    command: str
    """Command that makes such a result: ``ranktilt audit``."""


class Result:
    """The outcome of a command: a frozen dataclass that is saved as one versioned JSON file.

    A class of results gives the fields of its `Header` as arguments, and needs no other code to be
    saved, loaded, printed and compared.
    """

    header: ClassVar[Header]
    """Kind and version of the class's files."""

    def __init_subclass__(cls, **header: Any) -> None:
        """Make the `Header` of a class from ``class Audit(Result, format=…, version=…, …)``."""
        super().__init_subclass__()
        # IPython would otherwise print the repr that a dataclass brings.
        cls._repr_pretty_ = Result._repr_pretty_  # type: ignore[method-assign]
        if header:
            cls.header = Header(**header)

    def to_json(self) -> bytes:
        """Return the whole result as versioned JSON.

        Floats are exact, NaN is null, and the last key is the SHA-256 of the values.
        """
        option = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_SERIALIZE_NUMPY
        body = orjson.dumps(self, default=_encoded, option=option)
        digest = hash_values(orjson.loads(body))
        return b'%b,"sha256":"%b"}\n' % (body.removesuffix(b"}"), digest.encode())

    def save(self, path: str | Path) -> Path:
        """Write the result to one JSON file, as `to_json` returns it; ``.gz`` is compressed."""
        write_bytes(Path(path), self.to_json())
        return Path(path)

    @property
    def headline(self) -> str:
        """The main finding in one sentence, as reports print it."""
        with used_from_files(self):
            return presenter().headline(self)

    def derived(self) -> dict[str, Any]:
        """Return numbers that follow from the fields; the file holds them too."""
        return {}

    def __str__(self) -> str:
        """Return the verdicts in words, each on a line."""
        with used_from_files(self):
            return presenter().sentences(self)

    def _repr_html_(self) -> str:
        """Return the page that a notebook displays."""
        return presenter().notebook(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the result in IPython as the command line prints it."""
        printer.text(presenter().table(self).rstrip("\n"))

    def frame(self, part: str = "") -> pl.DataFrame:
        """Return the rows of one part, such as ``tilts``, as a polars frame.

        Without a part, the frame has the rows of all parts. Numbers are not rounded, as in the
        file; unknown values are null.
        """
        with used_from_files(self):
            return presenter().frame(self, part)

    def plot(self, name: str = "") -> Any:
        """Return the first figure, or the figure of a part, such as ``effectiveness``.

        A notebook displays it; ``.save("tilt.pdf")`` writes it for a paper (also ``.svg`` and
        ``.png``; needs ``[plots]``). `UserError` lists the figures there are.
        """
        with used_from_files(self):
            return presenter().result_figure(self, name)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a saved result from a file, plain or gzip.

        It equals the result that was saved. `DataError` if the file cannot be read, holds another
        kind of result, is of another version, or was changed.
        """
        path = require_path(path)
        data = read_bytes(path)
        content = read_json(path, data, cls.header.noun)
        _require_header(path, content, cls.header)
        if not _is_unchanged(content):
            hint = f"restore the original file, or run {cls.header.command} again"
            raise DataError(
                path, f"was changed after ranktilt wrote it (its sha256 differs): {hint}"
            )
        try:
            result = cls.from_content(content)
        except (UserError, *_MISFIT_EXCEPTIONS) as error:
            raise _misfit_error(path, cls.header, error) from error
        # `used_from_files` names this file if the parts of the result do not fit together.
        object.__setattr__(result, "_file", path)
        return result

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        """Make a result from the content of its file."""
        return read_fields(cls, content)

    @property
    def loaded_from(self) -> str:
        """Path that the result was loaded from, as the user named it.

        Empty if it was not loaded.
        """
        return str(getattr(self, "_file", ""))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self._digest() == other._digest()

    def __hash__(self) -> int:
        return hash(self._digest())

    def _digest(self) -> str:
        """Return the SHA-256 of the result's values."""
        # The hash is that of the values and not of the bytes, because another program may have
        # written 1 for 1.0.
        return str(orjson.loads(self.to_json())["sha256"])


@contextmanager
def used_from_files(*results: Any) -> Iterator[None]:
    """Turn an exception that a loaded result causes into a `DataError` that names its file.

    Put code that uses `results` into its ``with`` block.

    Reading a file checks the type of each part. It does not check whether names and numbers agree,
    or what a spec holds, so code that uses the result may fail. If no result came from a file, the
    fault is RankTilt's, and the exception passes unchanged.
    """
    try:
        yield
    except UserError:
        raise
    except _MISFIT_EXCEPTIONS as error:
        unwrapped_results = map(_unwrapped_result, results)
        loaded = [result for result in unwrapped_results if hasattr(result, "_file")]
        if not loaded:
            raise
        raise _misfit_error(loaded[0]._file, loaded[0].header, error) from error


def names_files(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that takes results, so that its errors name their files.

    Its arguments may be results or lists of them; see `used_from_files`.
    """

    @wraps(function)
    def wrapper(*args: P.args, **options: P.kwargs) -> T:
        results = [*args, *options.values()]
        for value in list(results):
            if isinstance(value, list | tuple):
                results += value
        with used_from_files(*results):
            return function(*args, **options)

    return wrapper


def _unwrapped_result(result: Any) -> Any:
    """Return the result itself, or the audit in an object that holds it with its collection."""
    return result if isinstance(result, Result) else getattr(result, "audit", result)


def _misfit_error(path: Path, header: Header, error: BaseException) -> DataError:
    """Return the error for a file whose parts do not fit together."""
    message = f"is not {header.noun} that this RankTilt writes: {_reason(error)}"
    return DataError(path, f"{message}; run {header.command} again")


def register(kind: type, encode: Callable[[Any], Any], decode: Callable[[Any], Any]) -> None:
    """Allow a type in the fields of results.

    `encode` turns a value of the type, or of a subclass, into something that JSON can hold.
    `decode` turns that into the value again.
    """
    _CODECS[kind] = _Codec(encode=encode, decode=decode)


def read_fields(kind: type[T], content: Any) -> T:
    """Make a dataclass from the content of a file.

    msgspec raises a `ValidationError` that names the first value of a wrong type.
    """
    shape = inspect.type_info(kind)
    return msgspec.convert(_prepared_value(content, shape), kind, dec_hook=_decoded)


def read_json(path: Path, data: bytes, noun: str, hint: str = "") -> Any:
    """Return the value in the bytes of a JSON file, or raise `DataError`.

    The message calls the expected content `noun`, and ends with `hint`.
    """
    text = decode_text(path, data)
    if not text.strip():
        raise DataError(path, "the file is empty")
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataError(path, f"expected {noun} as JSON: {error}{hint}") from error
    require_single_keys(path, text, content)
    return content


def _is_unchanged(content: dict[str, Any]) -> bool:
    """Return whether the values of a file still have the SHA-256 that the file names.

    The key ``sha256`` is removed from the content.
    """
    digest = content.pop("sha256", None)
    try:
        return bool(digest == hash_values(content))
    except (RecursionError, TypeError):  # nested deeper than any result
        return False


def hash_values(content: Any) -> str:
    """Return the SHA-256 of parsed JSON.

    It depends on the values alone: not on white space, the order of keys, or how a number is
    written.
    """
    data = orjson.dumps(_canonical(content), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(data).hexdigest()


def _canonical(value: Any) -> Any:
    """Return parsed JSON in which equal numbers have the same form.

    Another program may write 1.0 as 1, or 1e3 for 1000. A whole number of 64 bits becomes an
    integer, any other number a float.
    """
    if isinstance(value, float):
        is_exact = value.is_integer() and _LEAST_INTEGER <= value < _INTEGER_END
        return int(value) if is_exact else value
    if isinstance(value, list):
        return [_canonical(element) for element in value]
    if isinstance(value, dict):
        return {key: _canonical(element) for key, element in value.items()}
    if isinstance(value, int) and not _LEAST_INTEGER <= value < _INTEGER_END:
        # orjson writes no larger integers, and no float is as large as some of them.
        return float(value) if abs(value) < sys.float_info.max else hex(value)
    return value


def _require_header(path: Path, content: Any, header: Header) -> None:
    """Refuse a file of another kind of result, or of another version."""
    format_name = content.get("format") if isinstance(content, dict) else None
    if format_name != header.format:
        came = "JSON without a format" if format_name is None else f"format {shorten(format_name)}"
        expected = f"expected {header.noun} (format {header.format!r})"
        raise DataError(path, f"{expected}, got {came}; {header.command} --json FILE makes one")
    version = content.get("version")
    if version != header.version:
        message = (
            f"is {header.noun} of version {shorten(version)}, but this RankTilt reads version "
            f"{header.version}; run {header.command} again"
        )
        raise DataError(path, message)


def _reason(error: BaseException) -> str:
    """Return the fault and its place in the file: ``rows[0].value: Expected `float`, …``."""
    if not isinstance(error, msgspec.ValidationError):
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    fault, _, path = " ".join(str(error).split()).partition(" - at `$")
    path = path.strip("`.")
    return f"{path}: {fault}" if path else fault


def _encoded(value: Any) -> Any:
    """Return something that orjson writes in place of an object that it does not know."""
    for kind in type(value).__mro__:
        if kind in _CODECS:
            return _CODECS[kind].encode(value)
    if is_dataclass(value) and not isinstance(value, type):
        return fields_for_file(value)
    if hasattr(value, "_asdict"):  # a named tuple
        return value._asdict()
    if isinstance(value, np.ndarray):
        # orjson itself writes arrays that are contiguous and of a common type. It passes only the
        # others to this function, and writes the contiguous copy of an array that was not.
        return value.tolist() if value.flags.c_contiguous else np.ascontiguousarray(value)
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def fields_for_file(record: Any) -> dict[str, Any]:
    """Return the keys and values that a dataclass has in a file.

    These are its header, numbers and sentences that follow from its fields, and its fields.
    """
    header = getattr(record, "header", None)
    header_values = {"format": header.format, "version": header.version} if header else {}
    derived_numbers = record.derived() if hasattr(record, "derived") else {}
    derived_sentences = presenter().derived(record)
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {**header_values, **derived_numbers, **derived_sentences, **values}


def _decoded(kind: Any, value: Any) -> Any:
    """Make an array or a registered type, which msgspec does not know."""
    if get_origin(kind) is np.ndarray:
        # The type is ``np.ndarray[shape, np.dtype[scalar]]``.
        _shape, dtype = get_args(kind)
        (scalar,) = get_args(dtype)
        return np.array(value, dtype=scalar)  # null becomes NaN
    kind = get_args(kind)[0] if get_origin(kind) is Coded else kind
    if kind in _CODECS:
        return _CODECS[kind].decode(value)
    raise NotImplementedError(f"results cannot hold {kind}")


def _prepared_value(value: Any, shape: Any) -> Any:
    """Prepare a parsed value for msgspec.

    A null becomes NaN where the type is float. Keys that the type does not have are dropped: they
    hold derived values. A whole float becomes an integer where the type is int. `shape` is
    msgspec's description of the type.
    """
    if isinstance(value, dict):
        return _prepared_object(value, shape)
    if isinstance(value, list):
        return _prepared_list(value, shape)
    if isinstance(shape, inspect.FloatType):
        return np.nan if value is None else value
    if isinstance(shape, inspect.IntType):
        is_whole = isinstance(value, float) and value.is_integer() and abs(value) < _INTEGER_END
        return int(value) if is_whole else value
    if isinstance(shape, inspect.UnionType) and value is not None:
        return _prepared_optional(value, shape)
    return value


def _prepared_object(content: dict[str, Any], shape: Any) -> Any:
    """Prepare the fields of an object, or the values of a mapping."""
    match shape:
        case inspect.NamedTupleType(fields=fields):
            return [_prepared_value(content[field.name], field.type) for field in fields]
        case inspect.DataclassType(fields=fields):
            present = [field for field in fields if field.name in content]
            return {
                field.name: _prepared_value(content[field.name], field.type) for field in present
            }
        case inspect.DictType(value_type=kind):
            return {name: _prepared_value(value, kind) for name, value in content.items()}
        case inspect.UnionType():
            return _prepared_optional(content, shape)
    return content


def _prepared_list(values: list[Any], shape: Any) -> Any:
    """Prepare the elements of a list."""
    match shape:
        case inspect.VarTupleType(item_type=kind) | inspect.ListType(item_type=kind):
            return [_prepared_value(value, kind) for value in values]
        case inspect.TupleType(item_types=kinds) if len(kinds) == len(values):
            return [_prepared_value(value, kind) for value, kind in zip(values, kinds, strict=True)]
        case inspect.UnionType():
            return _prepared_optional(values, shape)
    return values


def _prepared_optional(value: Any, shape: inspect.UnionType) -> Any:
    """Prepare a value whose type is a union: mostly one type, or None.

    With several types besides None, the value stays as it is, and msgspec chooses among them.
    """
    kinds = [kind for kind in shape.types if not isinstance(kind, inspect.NoneType)]
    return _prepared_value(value, kinds[0]) if len(kinds) == 1 else value
