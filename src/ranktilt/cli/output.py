"""Results: where they may go, and how they get to stdout and into files."""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TextIO, TypeVar, cast

from cyclopts import Parameter

from ranktilt.cli.app import OUTPUT
from ranktilt.cli.notes import end_progress, is_quiet, silence
from ranktilt.cli.options import Formats
from ranktilt.data.files import cannot_write, require_place, sidecar, write_bytes
from ranktilt.errors import UserError, visible

ENDINGS = {"html": (".html", ".htm"), "latex": (".tex",), "markdown": (".md",), "csv": (".csv",)}
"""How a file of each format ends."""
_Specified = TypeVar("_Specified")
_COLOURS = re.compile(r"(\x1b\[[0-9;]*m)")
_COLLECTION = ("*.jsonl", "*.jsonl.gz", "*/*.jsonl", "*/*.jsonl.gz", "qrels/*")
_LONGEST = 80


def _require_file_name(_kind: object, value: object) -> None:
    """Refuse an option in the place of a file: a lone hyphen is allowed there, which is stdout."""
    if isinstance(value, str | Path) and str(value).startswith("--"):
        raise UserError(f"expected a file or -, got the option {value}")


FILE_OR_STDOUT = Parameter(allow_leading_hyphen=True, validator=_require_file_name)
"""For options that take a file, or - for stdout."""


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class Output:
    """How a result is shown and kept, the same for every verb."""

    format: Annotated[Formats, Parameter(help="Format of the printed result.")] = "table"
    json: Annotated[
        str | None,
        FILE_OR_STDOUT,
        Parameter(help="Save the result as JSON; - for stdout.", metavar="FILE"),
    ] = None

    @property
    def paths(self) -> dict[str, Path | str | None]:
        return {"--json": self.json}

    def check(self, *inputs: Path, also: Mapping[str, Path | None] | None = None) -> None:
        """Refuse files that cannot be written, or that are read too, before any work is done; `also` by option."""
        check_paths({**self.paths, **(also or {})}, stdout=("--json",), inputs=inputs)

    def deliver(
        self, result: Any, files: Mapping[Path | str | None, Callable[[], bytes]] | None = None
    ) -> None:
        """Show a result with the command that made it, then write its files."""
        found = with_command(result)
        deliver(self.text(found), {self.json: found.to_json, **(files or {})})

    def text(self, result: Any) -> str:
        """What goes to stdout."""
        if self.json == "-" or self.format == "json":
            return cast(str, result.to_json().decode())
        return text_of(result, self.format, notes=not is_quiet())


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class PageOutput(Output):
    """The same, with a page."""

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
        return {**super().paths, "-o": self.page}

    def check(self, *inputs: Path, also: Mapping[str, Path | None] | None = None) -> None:
        """Refuse a page's name that does not end as a page's does, too."""
        super().check(*inputs, also=also)
        if self.page is not None:
            check_ending(self.page, "html")

    def deliver(
        self, result: Any, files: Mapping[Path | str | None, Callable[[], bytes]] | None = None
    ) -> None:
        """Show a result with the command that made it, then write its files and its page."""
        found = with_command(result)
        super().deliver(
            found, {self.page: lambda: text_of(found, "html").encode(), **(files or {})}
        )


def text_of(result: Any, format: str, *, notes: bool = True) -> str:
    """A result in one format; the table is as wide and as coloured as the terminal around it."""
    from ranktilt.reporting.output import show, table

    if format != "table":
        return table(result, format, notes=notes)
    buffer = io.StringIO()
    show(result, buffer, notes=notes, terminal=sys.stdout if sys.stdout.isatty() else None)
    return buffer.getvalue()


def with_command(result: _Specified) -> _Specified:
    """Note the command in the spec of a result that has one."""
    if not hasattr(result, "spec"):
        return result
    spec = {**result.spec, "command": shlex.join(["ranktilt", *sys.argv[1:]])}
    return replace(result, spec=spec)  # type: ignore[type-var]


class _Terminal:
    """Standard output where it is a terminal: of what it would act on only colours are let through."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        parts = _COLOURS.split(text)
        return self._stream.write(
            "".join(part if _COLOURS.fullmatch(part) else visible(part) for part in parts)
        )


@contextmanager
def results() -> Iterator[TextIO]:
    """Give stdout for a result, and see to it that all of it arrives."""
    end_progress()
    try:
        yield cast(TextIO, _Terminal(sys.stdout)) if sys.stdout.isatty() else sys.stdout
        sys.stdout.flush()
    except OSError as error:
        silence(sys.stdout)
        if isinstance(error, BrokenPipeError):  # whoever read went away, as `| head` does
            raise
        raise cannot_write(Path("standard output"), error) from error


def print_result(text: str) -> None:
    with results() as stream:
        stream.write(text)


def print_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Print names and what is said of them, one under the other."""
    pairs = list(lines)
    width = max(len(name) for name, _ in pairs)
    print_result("".join(f"{name:<{width}}  {text}\n" for name, text in pairs))


def deliver(
    printed: str,
    files: Mapping[Path | str | None, Callable[[], bytes]],
    *more: Callable[[], object],
) -> None:
    """Write a result to stdout and into its files, which come even where nobody reads stdout any more."""
    try:
        print_result(printed)
    finally:
        for path, content in files.items():
            if path is not None and str(path) != "-":
                write_bytes(Path(path), content())
        for write in more:
            write()


def check_ending(path: Path, form: str, *, hint: str = "") -> None:
    """Refuse a name for ``-o`` that does not end as the files of a format do; `UserError` says how they do."""
    if path.suffix.lower() not in ENDINGS[form]:
        raise UserError(
            f"-o {path}: expected a name that ends in {' or '.join(ENDINGS[form])}, for {form}{hint}"
        )


def check_paths(
    paths: Mapping[str, Path | str | None],
    *,
    stdout: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> None:
    """Refuse files that cannot be written, that overwrite what is read, or that are named twice."""
    given = {option: str(path) for option, path in paths.items() if path is not None}
    streams = [option for option, path in given.items() if path == "-"]
    allowed = tuple(stdout)
    barred = next((option for option in streams if option not in allowed), None)
    if barred is not None:
        others = (
            f"; standard output (-) is for {' and '.join(allowed)}"
            if allowed
            else ", not to standard output (-)"
        )
        raise UserError(f"{barred} writes a file{others}")
    if len(streams) > 1:
        raise UserError(
            f"{' and '.join(streams)} cannot both go to stdout; name a file for one of them"
        )
    read = [*inputs]
    read += [
        beside for path in read if os.path.isfile(beside := sidecar(path))
    ]  # False too where nobody may look
    taken = {path.resolve(): "is read" for path in read}
    for option, path in given.items():
        if option not in streams:
            try:
                _check(option, Path(path), taken)
            except OSError as error:
                raise cannot_write(Path(path), error) from error


def with_sidecars(files: Mapping[str, Path | None]) -> dict[str, Path | None]:
    """Return files by option, each with the one beside it that says how it was made."""
    beside = {
        f"{option}, its sidecar": sidecar(path)
        for option, path in files.items()
        if path is not None
    }
    return {**files, **beside}


def collection_files(folder: Path | None) -> list[Path]:
    """List the files of a collection's folder that a command reads; none for no folder."""
    if folder is None or not os.path.isdir(folder):
        return []
    return [file for pattern in _COLLECTION for file in folder.glob(pattern) if file.is_file()]


def _check(option: str, path: Path, taken: dict[Path, str]) -> None:
    if path.is_dir():
        raise UserError(f"{option} {path}: expected a file, this is a folder")
    place = path.resolve()
    if place in taken:
        raise UserError(f"{option} {path}: this file {taken[place]} too; choose another file")
    taken[place] = f"is written by {option}"
    require_place(path)


def file_name(name: str) -> str:
    """Shorten a file's name so that every file system takes it with its endings: they count bytes, not letters."""
    return name.encode()[:_LONGEST].decode(errors="ignore")
