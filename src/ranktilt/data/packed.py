"""Open packed (compressed) files: gzip, bzip2, xz, Zstandard, and zip archives of one file.

The first bytes of a file tell how it is packed.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from ranktilt.errors import DataError, counted

_FIRST_BYTES = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"PK\x03\x04": "zip",
}
"""Name of each format by the first bytes of its files."""
_BLOCK_BYTES = 1 << 20
"""Number of packed bytes that are read at a time."""
_OFFICE_FILES = ("xl/", "word/", "ppt/", "content.xml")
"""Beginnings of the names in archives that are documents of an office program."""


def packing(start: bytes) -> str:
    """Return the format of a packed file by its first bytes; empty for a plain file."""
    return next((name for sign, name in _FIRST_BYTES.items() if start.startswith(sign)), "")


@contextmanager
def unpacked(path: Path, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield the unpacked content of the open file `raw`; `DataError` if it cannot be unpacked.

    `path` is the name of the file in messages. A plain file is yielded as it is.
    """
    kind = packing(cast(io.BufferedReader, raw).peek(6)[:6])
    try:
        if kind == "gzip":
            yield cast(IO[bytes], gzip.GzipFile(fileobj=raw))
        elif kind == "bzip2":
            yield cast(IO[bytes], bz2.BZ2File(raw))
        elif kind == "xz":
            yield cast(IO[bytes], lzma.LZMAFile(raw))  # noqa: SIM115
        elif kind == "Zstandard":
            frames = _ZstandardFrames(raw, _zstandard_decompressor(path))
            yield cast(IO[bytes], io.BufferedReader(frames))
        elif kind == "zip":
            with _only_member(path, raw) as stream:
                yield stream
        else:
            yield raw
    except (lzma.LZMAError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(path, f"cannot be unpacked ({kind}): {error}") from error
    except DataError:
        raise
    except Exception as error:
        # Each package for Zstandard has a class of this name, and none may be installed.
        if type(error).__name__ != "ZstdError":
            raise
        raise DataError(path, f"cannot be unpacked ({kind}): {error}") from error


class _ZstandardFrames(io.RawIOBase):
    """The unpacked content of a file of Zstandard, which may consist of several packed frames.

    A file that is cut off raises `EOFError`, as one of gzip does.
    """

    def __init__(self, raw: IO[bytes], new_decompressor: Callable[[], Any]) -> None:
        self._raw = raw
        # A decompressor unpacks only one frame.
        self._new_decompressor = new_decompressor
        self._decompressor: Any = None
        self._unread = b""

    def readable(self) -> bool:
        """Return that the stream can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with unpacked bytes, and return their number."""
        while not self._unread:
            block = self._raw.read(_BLOCK_BYTES)
            if not block and self._decompressor is not None:
                raise EOFError("the file is cut off")
            if not block:
                return 0
            self._unread = self._unpack(block)
        count = min(len(buffer), len(self._unread))
        buffer[:count] = self._unread[:count]
        self._unread = self._unread[count:]
        return count

    def _unpack(self, block: bytes) -> bytes:
        """Unpack a block, which may hold the end of a frame and the beginning of the next one."""
        contents = []
        while block:
            if self._decompressor is None:
                self._decompressor = self._new_decompressor()
            contents.append(self._decompressor.decompress(block))
            block = b""
            if self._decompressor.eof:  # another frame may follow
                block = self._decompressor.unused_data
                self._decompressor = None
        return b"".join(contents)


def _zstandard_decompressor(path: Path) -> Callable[[], Any]:
    """Return a function that makes a decompressor for one frame, from any installed module.

    `DataError` about the file `path` if no module is installed.
    """
    with suppress(ImportError):
        import compression.zstd as standard_zstd  # from Python 3.14 on

        return cast(Callable[[], Any], standard_zstd.ZstdDecompressor)
    with suppress(ImportError):
        import backports.zstd as backported_zstd

        return cast(Callable[[], Any], backported_zstd.ZstdDecompressor)
    try:
        import zstandard
    except ImportError as error:
        hint = "unpack it (zstd -d), or pip install zstandard"
        raise DataError(path, f"is packed with Zstandard; {hint}") from error
    return cast(Callable[[], Any], zstandard.ZstdDecompressor().decompressobj)


@contextmanager
def _only_member(path: Path, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    """Open the only file in a zip archive; `path` is the archive's name in messages."""
    with zipfile.ZipFile(raw) as archive:
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
        if any(name.startswith(_OFFICE_FILES) for name in names):
            raise DataError(path, "is an office document; save it as CSV")
        if "header.json" in names:
            hint = "write it as JSON: inspect log convert LOG --to json --output-dir DIR"
            raise DataError(path, f"is a packed Inspect log; {hint}")
        # macOS adds a file of attributes for each file.
        members = [name for name in names if not name.startswith("__MACOSX/")]
        if len(members) != 1:
            count = counted(len(members), "file", "files")
            listed = ", ".join(sorted(members)[:3]) + (", …" if len(members) > 3 else "")
            message = f"expected an archive of one file, got {count} ({listed})"
            raise DataError(path, f"{message}; unpack it and name one")
        try:
            stream = archive.open(members[0])
        except RuntimeError as error:  # the file needs a password
            raise DataError(path, f"cannot be unpacked (zip): {error}") from error
        with stream:
            yield stream
