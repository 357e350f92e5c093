"""Read and write files, plain or packed; errors name the file and the line.

A *packed* file is compressed, such as by gzip. A *block* is some megabytes of a file's bytes, and a
*chunk* is the lines in a block.
"""

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
"""Number of bytes that are read at a time."""
Content = bytes | Callable[[], Iterable[bytes]]
"""Content of a file to write: its bytes, or a function that yields them in blocks at every call."""
_BOM = b"\xef\xbb\xbf"
"""Byte-order mark of UTF-8, which some programs write at the start of a file."""
STDIN = "-"
"""Name of standard input on the command line."""


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a plain or packed file, to be read once from start to end.

    It may be packed by gzip, bzip2, xz or Zstandard, or be a zip archive of one file. `DataError`
    if it cannot be read.
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
    """Read at most so many bytes of a plain or packed file; by default all of it."""
    with open_bytes(path) as stream:
        return stream.read(most)


def read_text(path: Path) -> str:
    """Read a plain or packed file of UTF-8, with or without a byte-order mark."""
    return decode_text(path, read_bytes(path))


def decode_text(path: Path, data: bytes) -> str:
    """Decode a file's bytes as UTF-8; `DataError` names the first invalid line and byte."""
    return decode_lines(path, 1, [data.removeprefix(_BOM)])


def decode_lines(path: Path, first_line: int, lines: list[bytes]) -> str:
    """Decode a chunk of lines as UTF-8, joined by LF.

    `DataError` names the first invalid line and byte.
    """
    data = b"\n".join(lines)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        byte = error.start - data.rfind(b"\n", 0, error.start)
        message = f"invalid UTF-8 at byte {byte} of the line; save it as UTF-8"
        raise DataError(path, message, line=line) from error


def line_chunks(path: Path, *, reported: bool = False) -> Iterator[tuple[int, list[bytes]]]:
    """Yield a file's lines in chunks of a few megabytes, each with the number of its first line.

    Empty lines are included. A file with blank lines only raises a `DataError`. `reported` says
    whether a progress bar is shown.
    """
    file_size = path.stat().st_size if reported and path.is_file() else 0
    first_line, read_size, is_empty = 1, 0, True
    for block_size, data in _whole_line_blocks(path):
        is_empty = is_empty and (not data or data.isspace())
        lines = data.splitlines()
        if lines:
            yield first_line, lines
        first_line += len(lines)
        read_size += block_size
        if reported:
            # The bytes of a packed file are more than its size once they are unpacked. The last
            # block has no size.
            done = min(read_size, file_size) if block_size else file_size
            report(f"reading {path.name}", done, file_size)
    if is_empty:
        raise DataError(path, "the file is empty")


def _whole_line_blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of complete lines, each with the number of bytes that were read for it.

    The last block has the rest of the file, for which nothing more was read, so its number is 0.
    """
    with open_bytes(path) as stream:
        pending = [stream.read(len(_BOM)).removeprefix(_BOM)]
        while True:
            block = stream.read(CHUNK)
            end = block.rfind(b"\n") + 1
            if block and not end:
                # A line longer than a block is joined once its end is read.
                pending.append(block)
                continue
            data = b"".join([*pending, block[:end]])
            pending = [block[end:]]
            yield len(block), data
            if not block:
                return


@contextmanager
def rereadable_file(path: Path) -> Iterator[Path]:
    """Yield a file that can be read again and again: `path` itself, or a temporary copy of it.

    A pipe and standard input (``-``) can be read only once, and are copied. A `DataError` about
    the copy is raised with the caller's path instead.
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
    """Return the line, numbered from 1, of a row, numbered from 0; 0 if there is no such row.

    Each line is a row, except blank lines and the lines before line `first`.
    """
    for first_line, lines in line_chunks(path):
        numbered = enumerate(lines, start=first_line)
        row_lines = [number for number, line in numbered if number >= first and line.strip()]
        if row < len(row_lines):
            return row_lines[row]
        row -= len(row_lines)
    return 0


def require_path(path: Any, noun: str = "file") -> Path:
    """Return a path that a caller gave; `UserError` if it is no path.

    `noun` is what the path should name, for the message.
    """
    if not isinstance(path, str | os.PathLike) or isinstance(path, bytes):
        kind = "nothing" if path is None else type(path).__name__
        raise UserError(f"expected the name of a {noun}, got {kind}: {shorten(path)}")
    return Path(path)


def sidecar(path: Path) -> Path:
    """Return the path of a file's sidecar, which says how the file was made: ``<path>.json``."""
    return path.parent / f"{path.name}.json"


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes on disk, as 64 hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_bytes(path: Path, data: bytes) -> None:
    """Write one file, completely or not at all; a name that ends in ``.gz`` compresses it."""
    write_files({path: data})


def blocks(content: Content) -> Iterable[bytes]:
    """Return the blocks of a file's content."""
    return content() if callable(content) else (content,)


def has_content(path: Path, content: Content) -> bool:
    """Return whether a file has exactly this content."""
    with path.open("rb") as stream:
        begins_alike = all(stream.read(len(block)) == block for block in blocks(content))
        is_at_end = not stream.read(1)
        return begins_alike and is_at_end


def write_files(contents: Mapping[Path, Content]) -> None:
    """Write all files, or none of them if one cannot be written.

    Each is written under a temporary name in its folder, and all are renamed at the end. A file
    whose name ends in ``.gz`` is compressed. A device or a pipe is written directly.
    """
    path, targets = Path(), dict[Path, Path]()  # targets by their temporary files
    try:
        for path, content in contents.items():
            target = Path(os.path.realpath(path))
            if target.exists() and not target.is_file():
                _write(target, content, packed=path.suffix == ".gz")
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
            targets[temporary] = target
            _write(temporary, content, packed=path.suffix == ".gz")
        for temporary, target in targets.items():
            os.replace(temporary, target)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        for temporary in targets:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _write(path: Path, content: Content, *, packed: bool) -> None:
    """Write the content to a file, packed by gzip or as it is."""
    with path.open("wb") as stream:
        if packed:
            # gzip would store the file's name and the time. Without them equal contents give
            # equal files, which have the same hash.
            with gzip.GzipFile(
                filename="", mode="wb", compresslevel=6, fileobj=stream, mtime=0
            ) as packed_stream:
                packed_stream.writelines(blocks(content))
        else:
            stream.writelines(blocks(content))


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder to fill, which replaces `folder` unless an exception is raised."""
    target = Path(os.path.realpath(folder))
    new = target.with_name(f".{target.name}.new")
    old = target.with_name(f".{target.name}.old")
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
def task_lock(task: str) -> Iterator[None]:
    """Keep other processes of this user from running the same task meanwhile.

    Such as two commands that write to the same folder. `task` is any text that names the task.
    `BlockingIOError` if another process runs it already.
    """
    name = hashlib.sha256(os.fsencode(f"{Path.home()} {task}")).hexdigest()[:32]
    path = Path(tempfile.gettempdir()) / f"ranktilt-{name}.lock"
    with _locked(path):
        try:
            yield
        finally:
            # Windows cannot remove an open file.
            with suppress(OSError):
                path.unlink()


def _locked(path: Path) -> IO[bytes]:
    """Open and lock a file; `BlockingIOError` if another process has the lock."""
    while True:
        stream = path.open("wb")
        try:
            lock(stream, wait=False)
            # Between opening and locking, another process may have unlocked and removed the file.
            if os.fstat(stream.fileno()).st_ino == os.stat(path).st_ino:
                return stream
        except FileNotFoundError:
            pass
        except BaseException:
            stream.close()
            raise
        stream.close()


def lock(stream: IO[bytes], *, wait: bool) -> None:
    """Lock a file until it is closed; `BlockingIOError` if another process has the lock.

    Does nothing where there are no locks: on Windows, and on some file systems.
    """
    try:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except (ImportError, OSError):
        return


def require_place(path: Path) -> None:
    """Check that a file can be written, before hours of work; `UserError` if it cannot.

    A device or a pipe, such as ``/dev/stdout``, is not checked.
    """
    target = Path(os.path.realpath(path))
    if target.is_file() or not target.exists():
        _require_writable_parent(path, target)


def require_folder(folder: Path) -> None:
    """Check that `new_folder` can replace a folder, before hours of work; `UserError` if not."""
    if folder.is_file():
        raise UserError(f"{folder}: expected a folder to write to, got a file")
    _require_writable_parent(folder, Path(os.path.realpath(folder)))


def _require_writable_parent(path: Path, target: Path) -> None:
    """Refuse a path that cannot be written: try to write to the nearest folder that exists.

    `target` is the path with its links followed; the message names `path`.
    """
    folder = next(parent for parent in target.parents if os.path.lexists(parent))
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> UserError:
    """Make the one-line error for a file or folder that cannot be written."""
    # numpy says "828682 requested and 622560 written" where the disk is full, without a number.
    if error.errno is None and "requested and" in str(error):
        error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    hint = {
        errno.ENOSPC: "free some space or choose another place",
        errno.EACCES: "choose a place where you may write",
        errno.EROFS: "choose a place where you may write",
    }.get(error.errno or 0, "choose another place")
    # A folder cannot be made where a file has its name; "File exists" would sound like a success.
    reason = (
        os.strerror(errno.ENOTDIR)
        if isinstance(error, FileExistsError)
        else error.strerror or error
    )
    return UserError(f"{path}: cannot be written: {reason}; {hint}")
