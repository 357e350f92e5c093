"""Where results may go, and how they get to standard output and into files.

A *result* is what a verb makes, such as an audit; it can be printed in several formats, and saved
as JSON or as an HTML *page*. Its *spec* is a dictionary that records how it was made. A *sidecar*
is a JSON file beside a run or another file that says how that file was made.

A verb calls `Output.check` before it starts to work, so that a file that cannot be written is
refused at once, and `Output.deliver` when it has its result.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TextIO, TypeVar, cast

from cyclopts import Parameter

from ranktilt.cli.app import OUTPUT
from ranktilt.cli.notes import end_progress, is_quiet, silence
from ranktilt.cli.options import Formats
from ranktilt.data.files import cannot_write, require_place, sidecar, write_bytes
from ranktilt.errors import UserError, escape_invisible

ENDINGS = {"html": (".html", ".htm"), "latex": (".tex",), "markdown": (".md",), "csv": (".csv",)}
"""Endings of a file's name, by format."""
_Result = TypeVar("_Result")
"""A result of any kind; it need not have a ``spec``."""
_COLOURS = re.compile(r"(\x1b\[[0-9;]*m)")
"""Escape sequence that sets a colour."""
_COLLECTION_FILES = ("*.jsonl", "*.jsonl.gz", "*/*.jsonl", "*/*.jsonl.gz", "qrels/*")
"""Patterns of the files that a collection's folder may hold."""
_NAME_LENGTH = 80
"""Largest number of bytes of a file's name, without its number and ending.

File systems take 255 or fewer.
"""
_UNUSUAL = re.compile(r"[^\w.=@+-]+")
"""Characters that names of files should not have."""


def _require_file_name(_kind: object, value: object) -> None:
    """Refuse an option where a file is expected; a lone hyphen is standard output."""
    if isinstance(value, str | Path) and str(value).startswith("--"):
        raise UserError(f"expected a file or -, got the option {value}")


FILE_OR_STDOUT = Parameter(allow_leading_hyphen=True, validator=_require_file_name)
"""For options that take a file, or - for stdout."""


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class Output:
    """Options of how a result is printed and saved, the same for every verb."""

    format: Annotated[Formats | None, Parameter(help="Format of the printed result.")] = None
    json: Annotated[
        str | None,
        FILE_OR_STDOUT,
        Parameter(help="Save the result as JSON; - for stdout.", metavar="FILE"),
    ] = None

    @property
    def paths(self) -> dict[str, Path | str | None]:
        """Files that are written, by option; None where an option is not typed."""
        return {"--json": self.json}

    def check(self, *inputs: Path, also: Mapping[str, Path | None] | None = None) -> None:
        """Refuse files that cannot be written, before any work is done.

        Parameters
        ----------
        *inputs : Path
            Files that the command reads, which no output may replace.
        also : mapping of str to Path, optional
            Further files that are written, by option.
        """
        check_paths({**self.paths, **(also or {})}, stdout=("--json",), inputs=inputs)

    def deliver(
        self, result: Any, files: Mapping[Path | str | None, Callable[[], bytes]] | None = None
    ) -> None:
        """Print a result, then write its files; the result records the command that made it.

        `files` are further files, each with a function that gives its content. A file of None, for
        an option that was not typed, is not written.
        """
        result = with_command(result)
        deliver(self.text(result), {self.json: result.to_json, **(files or {})})

    def text(self, result: Any) -> str:
        """Return the text of a result for standard output."""
        if self.json == "-" or self.format == "json":
            return cast(str, result.to_json().decode())
        return text_of(result, self.format or "table", notes=not is_quiet())


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class PageOutput(Output):
    """Options of how a result is printed and saved, with a page."""

    page: Annotated[
        Path | None,
        FILE_OR_STDOUT,
        Parameter(
            name="--output",
            alias="-o",
            help="Save the result as an HTML page with figures.",
            metavar="FILE.html",
        ),
    ] = None

    @property
    def paths(self) -> dict[str, Path | str | None]:
        """Files that are written, by option; None where an option is not typed."""
        return {**super().paths, "-o": self.page}

    def check(self, *inputs: Path, also: Mapping[str, Path | None] | None = None) -> None:
        """Refuse files that cannot be written, and a page whose name does not end in ``.html``.

        The parameters are those of `Output.check`.
        """
        super().check(*inputs, also=also)
        self.check_page()

    def check_page(self) -> None:
        """Refuse a page whose name does not end in ``.html``."""
        if self.page is not None:
            check_ending(self.page, "html")

    def deliver(
        self, result: Any, files: Mapping[Path | str | None, Callable[[], bytes]] | None = None
    ) -> None:
        """Print a result, then write its page and its files, as `Output.deliver` does."""
        result = with_command(result)
        super().deliver(
            result, {self.page: lambda: text_of(result, "html").encode(), **(files or {})}
        )


def text_of(result: Any, format: str, *, notes: bool = True) -> str:
    """Return a result as text in a format; without `notes`, its notes are left out.

    A table has the width and the colours of the terminal.
    """
    from ranktilt.reporting.output import show, table

    if format != "table":
        return table(result, format, notes=notes)
    buffer = io.StringIO()
    show(result, buffer, notes=notes, terminal=sys.stdout if sys.stdout.isatty() else None)
    return buffer.getvalue()


def with_command(result: _Result) -> _Result:
    """Return a result whose spec records the command; a result without a spec is unchanged."""
    if not hasattr(result, "spec"):
        return result
    spec = {**result.spec, "command": shlex.join(["ranktilt", *sys.argv[1:]])}
    return replace(result, spec=spec)  # type: ignore[type-var]


class _Terminal:
    """Standard output where it is a terminal: colours pass, other control sequences are escaped.

    A result quotes texts of the user's data, which could otherwise clear the screen or rename the
    window.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text without control sequences other than colours."""
        parts = _COLOURS.split(text)
        safe_parts = [
            part if _COLOURS.fullmatch(part) else escape_invisible(part) for part in parts
        ]
        return self._stream.write("".join(safe_parts))


@contextmanager
def results() -> Iterator[TextIO]:
    """Open standard output for a result, and flush it at the end, so that errors appear here."""
    end_progress()
    try:
        yield cast(TextIO, _Terminal(sys.stdout)) if sys.stdout.isatty() else sys.stdout
        sys.stdout.flush()
    except OSError as error:
        silence(sys.stdout)
        if isinstance(error, BrokenPipeError):  # the reader has ended, as `| head` does
            raise
        raise cannot_write(Path("standard output"), error) from error


def print_result(text: str) -> None:
    """Write a text to standard output."""
    with results() as stream:
        stream.write(text)


def print_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Print names with their texts, in two columns."""
    pairs = list(lines)
    width = max(len(name) for name, _ in pairs)
    print_result("".join(f"{name:<{width}}  {text}\n" for name, text in pairs))


def deliver(
    printed: str,
    files: Mapping[Path | str | None, Callable[[], bytes]],
    *more: Callable[[], object],
) -> None:
    """Write a result to standard output, and then its files.

    The files are written even if standard output fails, as with ``ranktilt audit … | head``.

    Parameters
    ----------
    printed : str
        The text for standard output.
    files : mapping
        A function for each file that gives its content. None and ``-`` are not written.
    *more : callable
        Functions that write further files.
    """
    try:
        print_result(printed)
    finally:
        for path, content in files.items():
            if path is not None and str(path) != "-":
                write_bytes(Path(path), content())
        for write in more:
            write()


def check_ending(path: Path, format: str, *, hint: str = "") -> None:
    """Refuse a name for ``-o`` that does not end as files of the format do."""
    if path.suffix.lower() not in ENDINGS[format]:
        endings = " or ".join(ENDINGS[format])
        raise UserError(f"-o {path}: expected a name that ends in {endings}, for {format}{hint}")


def check_paths(
    paths: Mapping[str, Path | str | None],
    *,
    stdout: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> None:
    """Refuse files that cannot be written, that are read too, or that are named twice.

    Parameters
    ----------
    paths : mapping
        Files to write, by option; None where an option is not typed.
    stdout : iterable of str
        Options that may name standard output (``-``).
    inputs : iterable of Path
        Files that are read.
    """
    named_paths = {option: str(path) for option, path in paths.items() if path is not None}
    _check_streams([option for option, path in named_paths.items() if path == "-"], tuple(stdout))
    uses = {path.resolve(): "is read" for path in _with_existing_sidecars(inputs)}
    for option, path in named_paths.items():
        if path != "-":
            try:
                _check_file(option, Path(path), uses)
            except OSError as error:
                raise cannot_write(Path(path), error) from error


def _check_streams(options: Sequence[str], allowed: Sequence[str]) -> None:
    """Refuse options that may not write to standard output, and more than one that does.

    `options` are those for which ``-`` was typed.
    """
    for option in options:
        if option not in allowed and allowed:
            allowed_options = " and ".join(allowed)
            raise UserError(f"{option} writes a file; standard output (-) is for {allowed_options}")
        if option not in allowed:
            raise UserError(f"{option} writes a file, not to standard output (-)")
    if len(options) > 1:
        raise UserError(
            f"{' and '.join(options)} cannot both go to stdout; name a file for one of them"
        )


def _with_existing_sidecars(files: Iterable[Path]) -> Iterator[Path]:
    """Yield files, each with its sidecar where there is one."""
    for file in files:
        yield file
        # `isfile` is false, and raises nothing, where the folder may not be read.
        if os.path.isfile(sidecar(file)):
            yield sidecar(file)


def with_sidecars(files: Mapping[str, Path | None]) -> dict[str, Path | None]:
    """Return files by option, together with their sidecars."""
    sidecars = {
        f"{option}, its sidecar": sidecar(path)
        for option, path in files.items()
        if path is not None
    }
    return {**files, **sidecars}


def collection_files(folder: Path | None) -> list[Path]:
    """List the files of a collection's folder that a command reads; none for no folder."""
    if folder is None or not os.path.isdir(folder):
        return []
    files: list[Path] = []
    for pattern in _COLLECTION_FILES:
        files += [file for file in folder.glob(pattern) if file.is_file()]
    return files


def _check_file(option: str, path: Path, uses: dict[Path, str]) -> None:
    """Refuse a file that cannot be written or has another use, and add its use to `uses`.

    A use is the end of a sentence about the file, such as ``is read``.
    """
    if path.is_dir():
        raise UserError(f"{option} {path}: expected a file, got a folder")
    resolved = path.resolve()
    if resolved in uses:
        raise UserError(f"{option} {path}: this file {uses[resolved]} too; choose another file")
    uses[resolved] = f"is written by {option}"
    require_place(path)


def file_names(names: Iterable[str]) -> list[str]:
    """Return a name for the file of each named thing, such as a run, without its ending.

    Characters that a file's name should not have become ``_``. Names are short enough for every
    file system, which count bytes and not letters, with room for endings. Names that are equal to
    an earlier one, where case does not count, get a number.
    """
    counts: Counter[str] = Counter()
    files = []
    for name in names:
        plain_name = _UNUSUAL.sub("_", name).strip("_.")
        file = plain_name.encode()[:_NAME_LENGTH].decode(errors="ignore") or "unnamed"
        counts[file.casefold()] += 1
        number = counts[file.casefold()]
        files.append(f"{file}-{number}" if number > 1 else file)
    return files
