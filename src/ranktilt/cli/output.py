"""Results: where they may go, and how they get to stdout and into files."""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
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
from ranktilt.errors import UserError, visible

ENDINGS = {"html": (".html", ".htm"), "latex": (".tex",), "markdown": (".md",), "csv": (".csv",)}
"""How a file of each format ends."""
_Specified = TypeVar("_Specified")
_COLOURS = re.compile(r"(\x1b\[[0-9;]*m)")
"""Escape sequence that sets a colour."""
_COLLECTION = ("*.jsonl", "*.jsonl.gz", "*/*.jsonl", "*/*.jsonl.gz", "qrels/*")
"""Files by which a folder is known to be a collection."""
_LONGEST = 80
"""Most bytes of a file's name."""


def _require_file_name(_kind: object, value: object) -> None:
    """Refuse an option in the place of a file: a lone hyphen is allowed there, which is stdout."""
    if isinstance(value, str | Path) and str(value).startswith("--"):
        raise UserError(f"expected a file or -, got the option {value}")


FILE_OR_STDOUT = Parameter(allow_leading_hyphen=True, validator=_require_file_name)
"""For options that take a file, or - for stdout."""


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class Output:
    """Options of how a result is printed and saved, the same for every verb."""

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
        """Refuse files that cannot be written, or that are read too, before any work is done.

        `also` are further files by their option.
        """
        check_paths({**self.paths, **(also or {})}, stdout=("--json",), inputs=inputs)

    def deliver(
        self, result: Any, files: Mapping[Path | str | None, Callable[[], bytes]] | None = None
    ) -> None:
        """Print a result with the command that made it, then write its files."""
        result = with_command(result)
        deliver(self.text(result), {self.json: result.to_json, **(files or {})})

    def text(self, result: Any) -> str:
        """Return what goes to stdout."""
        if self.json == "-" or self.format == "json":
            return cast(str, result.to_json().decode())
        return text_of(result, self.format, notes=not is_quiet())


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
        return {**super().paths, "-o": self.page}

    def check(self, *inputs: Path, also: Mapping[str, Path | None] | None = None) -> None:
        """Refuse what `Output.check` does, and a page whose name does not end in ``.html``."""
        super().check(*inputs, also=also)
        self.check_page()

    def check_page(self) -> None:
        """Refuse a page whose name does not end in ``.html``."""
        if self.page is not None:
            check_ending(self.page, "html")

    def deliver(
        self, result: Any, files: Mapping[Path | str | None, Callable[[], bytes]] | None = None
    ) -> None:
        """Print a result with the command that made it, then write its files and its page."""
        result = with_command(result)
        super().deliver(
            result, {self.page: lambda: text_of(result, "html").encode(), **(files or {})}
        )


def text_of(result: Any, format: str, *, notes: bool = True) -> str:
    """Return a result in a format; the table is as wide and as coloured as the terminal is."""
    from ranktilt.reporting.output import show, table

    if format != "table":
        return table(result, format, notes=notes)
    buffer = io.StringIO()
    show(result, buffer, notes=notes, terminal=sys.stdout if sys.stdout.isatty() else None)
    return buffer.getvalue()


def with_command(result: _Specified) -> _Specified:
    """Record the command in the spec of a result that has a spec."""
    if not hasattr(result, "spec"):
        return result
    spec = {**result.spec, "command": shlex.join(["ranktilt", *sys.argv[1:]])}
    return replace(result, spec=spec)  # type: ignore[type-var]


class _Terminal:
    """Standard output where it is a terminal: colours pass, and no other control sequence."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text without control sequences other than colours."""
        parts = _COLOURS.split(text)
        safe_parts = [part if _COLOURS.fullmatch(part) else visible(part) for part in parts]
        return self._stream.write("".join(safe_parts))


@contextmanager
def results() -> Iterator[TextIO]:
    """Give stdout for a result, and make sure that all of it arrives."""
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
    """Write a result to stdout and into its files; the files come even where stdout is closed."""
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
    """Refuse files that cannot be written, that overwrite what is read, or that are named twice."""
    named_paths = {option: str(path) for option, path in paths.items() if path is not None}
    _check_streams([option for option, path in named_paths.items() if path == "-"], tuple(stdout))
    uses = {path.resolve(): "is read" for path in _with_existing_sidecars(inputs)}
    for option, path in named_paths.items():
        if path != "-":
            try:
                _check(option, Path(path), uses)
            except OSError as error:
                raise cannot_write(Path(path), error) from error


def _check_streams(options: Sequence[str], allowed: Sequence[str]) -> None:
    """Refuse options that write to stdout and may not, or that would mix there."""
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
        # False too where the folder may not be read.
        if os.path.isfile(sidecar(file)):
            yield sidecar(file)


def with_sidecars(files: Mapping[str, Path | None]) -> dict[str, Path | None]:
    """Return files by option, each with its sidecar, the file that says how it was made."""
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
    for pattern in _COLLECTION:
        files += [file for file in folder.glob(pattern) if file.is_file()]
    return files


def _check(option: str, path: Path, uses: dict[Path, str]) -> None:
    """Refuse a file that cannot be written or has another use, and record its use."""
    if path.is_dir():
        raise UserError(f"{option} {path}: expected a file, got a folder")
    resolved = path.resolve()
    if resolved in uses:
        raise UserError(f"{option} {path}: this file {uses[resolved]} too; choose another file")
    uses[resolved] = f"is written by {option}"
    require_place(path)


def file_name(name: str) -> str:
    """Shorten a file's name so that every file system takes it, with room for endings.

    File systems count bytes, not letters.
    """
    return name.encode()[:_LONGEST].decode(errors="ignore")
