"""Text files in, text files out: encodings, line ends, compression, and errors that name the place."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import select
import shutil
import stat
import tempfile
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from ranktilt.errors import DataError, UserError

CHUNK = 8 << 20
Content = bytes | Callable[[], Iterable[bytes]]
"""What a file is to hold: its bytes, or what makes them, a block at a time and as often as they are asked for."""
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_LARGEST, _LONGEST, _BLANK = 1 << 30, 1 << 28, 1 << 25
"""Most bytes of a file that is read whole, of a line that is no JSON, and of blank lines at the beginning."""
_FOLD, _FOLD_FROM = 100, 1 << 26
"""Text packs some 20-fold; what unpacks so much further is there to fill the memory."""
_WRITER = 2.0
"""Seconds in which somebody must begin to write into a pipe."""


class _Counted:
    """A stream that counts what is read of it."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw, self.taken = raw, 0

    def read(self, size: int = -1) -> bytes:
        data = self._raw.read(size)
        self.taken += len(data)
        return data


class _Packed(gzip.GzipFile):
    """A gzip stream that is refused where it unpacks too far."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._packed = _Counted(raw)
        super().__init__(fileobj=cast(IO[bytes], self._packed), mode="rb")

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        if self.tell() > max(_FOLD_FROM, _FOLD * self._packed.taken):
            raise OSError(f"it unpacks more than {_FOLD}-fold, as no text does; if it must be so, unpack it first")
        return data


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a plain or gzip file, or a pipe, for reading; a missing one, a folder or a device is a `DataError`."""
    try:
        raw = _opened(path)
    except (OSError, ValueError) as error:  # a name with a NUL in it is the latter
        raise DataError(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    with raw:
        try:
            packed = raw.peek(2).startswith(b"\x1f\x8b")
        except OSError as error:
            raise DataError(path, f"cannot be read: {error.strerror or error}") from error
        yield cast(IO[bytes], _Packed(raw) if packed else raw)


def _opened(path: Path) -> io.BufferedReader:
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise DataError(path, "expected a file, got a folder")
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise DataError(path, "expected a file, got a device")
    if not stat.S_ISFIFO(mode):
        return path.open("rb")
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # would otherwise wait for a writer, for ever if there is none
    try:
        # What nobody writes into is at its end at once; from a slow writer's there is nothing yet.
        if not select.select([pipe], [], [], _WRITER)[0] and not os.read(pipe, 1):
            raise DataError(path, "cannot be read: nothing writes into this pipe")
    except BlockingIOError:
        pass
    except DataError:
        os.close(pipe)
        raise
    os.set_blocking(pipe, True)
    return open(pipe, "rb")


def read_bytes(path: Path, most: int | None = None) -> bytes:
    """Read a plain or gzip file to its end, or so many bytes; a missing or damaged one is a `DataError`."""
    with open_bytes(path) as stream:
        if most is not None:
            return _read(stream, path, most)
        blocks, total = list[bytes](), 0
        while block := _read(stream, path, CHUNK):
            blocks.append(block)
            total += len(block)
            if total > _LARGEST:
                raise DataError(path, f"expected a file of at most {_LARGEST >> 30} GB, got more")
        return b"".join(blocks)


def require_regular(path: Path) -> None:
    """Refuse pipes and devices where a file is read more than once; `DataError` says what to do."""
    try:
        other = path.exists() and not (path.is_file() or path.is_dir())
    except (OSError, ValueError):
        return  # opening it says what is wrong
    if other:
        raise DataError(path, "expected a file, got a pipe or device, which can be read once only; save it first")


def line_chunks(path: Path) -> Iterator[tuple[int, int, list[bytes]]]:
    """Yield the lines of a file, a few megabytes at a time: first line's number, byte offset, lines without their ends.

    A byte-order mark is dropped; LF, CRLF and lone CR all end a line; empty lines are kept, so that numbers stay true.
    `DataError` if the file cannot be read, is cut off, is empty, or seems to have no end.
    """
    with open_bytes(path) as stream:
        start = _read(stream, path, len(_BOM))
        number, empty = 1, True
        offset, rest = (len(_BOM), b"") if start == _BOM else (0, start)
        held, length = [rest], len(rest)  # of a line whose end was not seen yet
        while True:
            block = _read(stream, path, CHUNK)
            ends = not block or b"\n" in block or b"\r" in block or held[-1].endswith(b"\r")
            held.append(block)
            length += len(block)
            json = length <= _LONGEST or (held[0][:64] + held[1][:64]).lstrip().startswith((b"{", b"["))
            if not json or (empty and offset > _BLANK):
                size = max(length, offset) >> 20
                raise DataError(path, f"expected lines of text, got none in {size} MB", line=number)
            if not ends:
                continue
            data = b"".join(held)
            held.clear()  # a long line is held twice and not three times
            # A CR at the very end may be half of a CRLF: it waits for the next block.
            cut = max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1 if block else length
            lines, held = data[:cut].splitlines(), [data[cut:]]
            if lines:
                empty = empty and not any(line.strip() for line in lines)
                yield number, offset, lines
            number += len(lines)
            offset += cut
            length -= cut
            if not block:
                break
    if empty:
        raise DataError(path, "the file is empty")


def _read(stream: IO[bytes], path: Path, size: int) -> bytes:
    try:
        return stream.read(size)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(path, f"cannot be read to its end: {error}") from error


def nth_line(path: Path, row: int) -> int:
    """1-based number of the line that holds entry `row` (from 0); blank lines hold none."""
    for first_line, _, lines in line_chunks(path):
        held = [number for number, line in enumerate(lines, start=first_line) if line.strip()]
        if row < len(held):
            return held[row]
        row -= len(held)
    return 0


def decode_lines(path: Path, first_line: int, offset: int, lines: list[bytes]) -> str:
    """Decode a chunk of lines as UTF-8, joined by LF, or name line and byte of what is not UTF-8."""
    try:
        return b"\n".join(lines).decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = bad_utf8(lines)
        raise not_utf8(path, first_line + line, offset, lines[:line], column) from error


def bad_utf8(lines: list[bytes]) -> tuple[int, int]:
    """Index of the first line that is not UTF-8, and the byte within it."""
    for index, line in enumerate(lines):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            return index, error.start
    return len(lines), 0


def not_utf8(path: Path, line: int, offset: int, before: list[bytes], column: int) -> DataError:
    """Make the error for invalid UTF-8, with the byte offset in the whole file.

    `before` are the chunk's lines ahead of the bad one; the length of their line ends is read from the file.
    """
    start = data = b""
    if path.is_file():  # a pipe can be read once only
        with open_bytes(path) as stream:
            start = stream.read(offset)
            data = stream.read(sum(len(b) + 2 for b in before) + len(_UTF16[0]))
    position = 0
    for text in before:
        position += len(text)
        position += 2 if data[position : position + 2] == b"\r\n" else 1
    return DataError(path, invalid_utf8(offset + position + column, start or data), line=line)


def invalid_utf8(byte: int, start: bytes) -> str:
    """Say where a file is not UTF-8 and what to do, from the bytes that it starts with."""
    guess = " (it looks like UTF-16)" if start.startswith(_UTF16) else ""
    return f"invalid UTF-8 at byte {byte} of the file; save it as UTF-8{guess}"


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes as they lie on disk, as 64 hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_bytes(path: Path, data: bytes) -> None:
    """Write one file whole or not at all; see `write_files`."""
    write_files({path: data})


def blocks(content: Content) -> Iterable[bytes]:
    """A file's content, a block at a time."""
    return content() if callable(content) else (content,)


def holds(path: Path, content: Content) -> bool:
    """Whether a file's bytes are these."""
    with path.open("rb") as stream:
        return all(stream.read(len(block)) == block for block in blocks(content)) and not stream.read(1)


def write_files(contents: Mapping[Path, Content]) -> None:
    """Write files, each whole and all of them or none; compresses where a name ends in ``.gz``.

    A file that is there already keeps its mode and, where it may be given, its owner; a link stays one, and what it
    names is written. Where that fails (`UserError`) nothing is left behind.
    """
    path, waiting, made = Path(), dict[Path, Path](), list[Path]()
    try:
        for path, data in contents.items():
            target = Path(os.path.realpath(path))
            made = [p for p in (target.parent, *target.parent.parents) if not p.exists()] + made
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".gz":
                data = gzip.compress(b"".join(blocks(data)), compresslevel=6, mtime=0)
            before = _stat(path)
            if before is not None and not stat.S_ISREG(before.st_mode):
                _write_through(path, data)  # a device or pipe, which a file must not replace
                continue
            waiting[target] = target.with_name(f".{uuid.uuid4().hex}.tmp")
            _write_through(waiting[target], data)
            if before is not None:
                _make_alike(waiting[target], before)
        for path, temporary in waiting.items():
            _replace(path, temporary)
        made.clear()
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        _clear(waiting.values(), made)


def _stat(path: Path) -> os.stat_result | None:
    """What is in a place, links followed; None for nothing, and for a link to nothing."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _make_alike(file: Path, before: os.stat_result) -> None:
    with suppress(OSError, AttributeError):  # only root may give a file away, and not every system knows owners
        os.chown(file, before.st_uid, before.st_gid)
    file.chmod(stat.S_IMODE(before.st_mode))


def _replace(path: Path, temporary: Path) -> None:
    try:
        os.replace(temporary, path)
    except OSError as error:
        if error.errno != errno.EBUSY:  # a file that is mounted by itself, as containers do, can only be written to
            raise
        with temporary.open("rb") as source, path.open("wb") as stream:
            shutil.copyfileobj(source, stream)


def _write_through(path: Path, data: Content) -> None:
    with path.open("wb") as stream:
        for block in blocks(data):
            stream.write(block)


def _clear(temporaries: Iterable[Path], folders: list[Path]) -> None:
    """Remove what a failed write has made; what cannot be removed stays."""
    for temporary in temporaries:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def require_place(path: Path) -> None:
    """Find out before hours of work whether a file can be written, without a trace; `UserError` if not."""
    try:
        before = _stat(path)
        if before is not None and not stat.S_ISREG(before.st_mode):
            if not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        target = Path(os.path.realpath(path))
        folder = next(p for p in target.parents if os.path.lexists(p))
        for name in target.relative_to(folder).parts:
            _stat(folder / name)  # too long a name is found here, though the folders above it are still to be made
        with tempfile.TemporaryFile(dir=folder):
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
    reason = os.strerror(errno.ENOTDIR) if isinstance(error, FileExistsError) else error.strerror or error
    return UserError(f"{path}: cannot be written: {reason}; {hint}")
