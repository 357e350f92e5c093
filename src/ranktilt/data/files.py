"""Text files in, text files out: line numbers, compression, and errors that name the file and the line."""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import shutil
import sys
import tempfile
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ranktilt.data.packed import unpacked
from ranktilt.errors import DataError, UserError, shorten
from ranktilt.progress import report

CHUNK = 8 << 20
Content = bytes | Callable[[], Iterable[bytes]]
"""What a file is to hold: its bytes, or what makes them, a block at a time and as often as they are asked for."""
_BOM = b"\xef\xbb\xbf"
STDIN = "-"
"""What stands for standard input where a file is named."""


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a plain or packed file, to be read once from start to end; one that cannot be read is a `DataError`.

    Packed is what gzip, bzip2, xz and Zstandard write, and a zip archive of one file.
    """
    try:
        raw = path.open("rb")
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}") from error
    with raw:
        try:
            with unpacked(path, raw) as stream:
                yield stream
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(path, f"cannot be read to its end: {error}") from error


def read_bytes(path: Path, most: int = -1) -> bytes:
    """Read a plain or gzip file to its end, or so many bytes; see `open_bytes`."""
    with open_bytes(path) as stream:
        return stream.read(most)


def read_text(path: Path) -> str:
    """Read a file of UTF-8, with or without a byte-order mark; see `open_bytes`."""
    return decode_text(path, read_bytes(path))


def decode_text(path: Path, data: bytes) -> str:
    """Decode a file's bytes as UTF-8; `DataError` names the line and the byte that is none."""
    return decode_lines(path, 1, [data.removeprefix(_BOM)])


def decode_lines(path: Path, first_line: int, lines: list[bytes]) -> str:
    """Decode a chunk of lines as UTF-8, joined by LF; `DataError` names the line and the byte that is none."""
    data = b"\n".join(lines)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, byte = (
            first_line + data.count(b"\n", 0, error.start),
            error.start - data.rfind(b"\n", 0, error.start),
        )
        raise DataError(
            path, f"invalid UTF-8 at byte {byte} of the line; save it as UTF-8", line=line
        ) from error


def line_chunks(path: Path, *, reported: bool = False) -> Iterator[tuple[int, list[bytes]]]:
    """Yield a file's lines, empty ones too, a few megabytes at a time, and the number of the first; never nothing."""
    size = path.stat().st_size if reported and path.is_file() else 0
    with open_bytes(path) as stream:
        number, done, empty, held = 1, 0, True, [stream.read(len(_BOM)).removeprefix(_BOM)]
        while True:
            block = stream.read(CHUNK)
            cut = block.rfind(b"\n") + 1
            if block and not cut:  # joined once its end is there
                held.append(block)
                continue
            data = b"".join([*held, block[:cut]])
            lines = data.splitlines()
            held = [block[cut:]]
            empty = empty and (not data or data.isspace())
            if lines:
                yield number, lines
            number += len(lines)
            done += len(block)
            if reported:
                report(f"reading {path.name}", min(done, size) if block else size, size)
            if not block:
                break
    if empty:
        raise DataError(path, "the file is empty")


@contextmanager
def rereadable(path: Path) -> Iterator[Path]:
    """Give a file that can be read twice: itself, or a copy of a pipe or of standard input (``-``).

    Errors name what the caller named.
    """
    is_stdin = str(path) == STDIN and not path.exists()
    if not is_stdin and not path.is_fifo():
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "input")
        try:
            with copy.open("wb") as target:
                if is_stdin:
                    shutil.copyfileobj(sys.stdin.buffer, target)
                else:
                    with path.open("rb") as source:
                        shutil.copyfileobj(source, target)
        except OSError as error:
            raise DataError(path, f"cannot be read: {error.strerror}") from error
        try:
            yield copy
        except DataError as error:
            if error.path != str(copy):
                raise
            name = "standard input" if is_stdin else path
            raise DataError(name, error.message, line=error.line) from error


def nth_line(path: Path, row: int, *, first: int = 1) -> int:
    """1-based number of the line that holds entry `row` (from 0); blank lines hold none, nor those before `first`."""
    for first_line, lines in line_chunks(path):
        numbered = enumerate(lines, start=first_line)
        held = [number for number, line in numbered if number >= first and line.strip()]
        if row < len(held):
            return held[row]
        row -= len(held)
    return 0


def require_path(path: Any, noun: str = "file") -> Path:
    """Return the path that a caller named; `UserError` for what names none."""
    if not isinstance(path, str | os.PathLike) or isinstance(path, bytes):
        kind = "nothing" if path is None else type(path).__name__
        raise UserError(f"expected the name of a {noun}, got {kind}: {shorten(path)}")
    return Path(path)


def sidecar(path: Path) -> Path:
    """Where it stands how a file was made: ``<path>.json``."""
    return path.parent / f"{path.name}.json"


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes as they lie on disk, as 64 hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_bytes(path: Path, data: bytes) -> None:
    """Write one file whole or not at all; see `write_files`."""
    write_files({path: data})


def blocks(content: Content) -> Iterable[bytes]:
    return content() if callable(content) else (content,)


def holds(path: Path, content: Content) -> bool:
    """Whether a file's bytes are these."""
    with path.open("rb") as stream:
        return all(
            stream.read(len(block)) == block for block in blocks(content)
        ) and not stream.read(1)


def write_files(contents: Mapping[Path, Content]) -> None:
    """Write files, or none: beside their places, then renamed; ``.gz`` is compressed, and a device is written to."""
    path, temporaries = Path(), dict[Path, Path]()
    try:
        for path, content in contents.items():
            target = Path(os.path.realpath(path))
            if target.exists() and not target.is_file():
                _write(target, content, packed=path.suffix == ".gz")
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
            temporaries[temporary] = target
            _write(temporary, content, packed=path.suffix == ".gz")
        for temporary, target in temporaries.items():
            os.replace(temporary, target)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        for temporary in temporaries:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _write(path: Path, content: Content, *, packed: bool) -> None:
    with path.open("wb") as stream:
        if packed:
            with gzip.GzipFile("", "wb", 6, stream, mtime=0) as into:
                into.writelines(blocks(content))
        else:
            stream.writelines(blocks(content))


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Give an empty folder beside, to be filled, which takes the place of `folder` when all is well."""
    target = Path(os.path.realpath(folder))
    new, old = (target.with_name(f".{target.name}.{end}") for end in ("new", "old"))
    try:
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        yield new
        shutil.rmtree(old, ignore_errors=True)
        if target.exists():
            os.rename(target, old)
        os.rename(new, target)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


@contextmanager
def alone(task: str) -> Iterator[None]:
    """Keep this user's other processes from the same task; `BlockingIOError` where one is at it."""
    name = hashlib.sha256(os.fsencode(f"{Path.home()} {task}")).hexdigest()[:32]
    path = Path(tempfile.gettempdir()) / f"ranktilt-{name}.lock"
    with _locked(path):
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no file that is open
                path.unlink()


def _locked(path: Path) -> IO[bytes]:
    """Open and lock a file that is removed when it is let go; `BlockingIOError` where another process holds it."""
    while True:
        stream = path.open("wb")
        try:
            lock(stream, wait=False)
            # Between opening and locking, another process may have let go of the file and removed it.
            if os.fstat(stream.fileno()).st_ino == os.stat(path).st_ino:
                return stream
        except FileNotFoundError:
            pass
        except BaseException:
            stream.close()
            raise
        stream.close()


def lock(stream: IO[bytes], *, wait: bool) -> None:
    """Lock a file until it is closed, where the system can; `BlockingIOError` where another process holds it."""
    try:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except (ImportError, OSError):  # Windows, or a file system without locks
        return


def require_place(path: Path) -> None:
    """Find out before hours of work whether a file can be written, without a trace; `UserError` if not."""
    target = Path(os.path.realpath(path))
    if target.is_file() or not target.exists():
        _write_beside(path, target)


def require_folder(folder: Path) -> None:
    """Find out before hours of work whether `new_folder` can make or replace a folder; `UserError` if not."""
    if folder.is_file():
        raise UserError(f"{folder}: expected a folder to write to, this is a file")
    _write_beside(folder, Path(os.path.realpath(folder)))


def _write_beside(path: Path, target: Path) -> None:
    """Write a file that leaves no trace where `target`, or the first folder above it that is to be made, would be."""
    try:
        with tempfile.TemporaryFile(dir=next(p for p in target.parents if os.path.lexists(p))):
            pass
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> UserError:
    """Make the one-line error for a file or folder that cannot be written."""
    hint = {
        errno.ENOSPC: "free some space or choose another place",
        errno.EACCES: "choose a place you may write to",
        errno.EROFS: "choose a place you may write to",
    }.get(error.errno or 0, "choose another place")
    reason = (
        os.strerror(errno.ENOTDIR)
        if isinstance(error, FileExistsError)
        else error.strerror or error
    )
    return UserError(f"{path}: cannot be written: {reason}; {hint}")
