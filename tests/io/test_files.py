"""Text files: line ends, encodings, compression and chunks read alike; writing is whole or not at all."""

import contextlib
import errno
import gzip
import hashlib
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.errors import DataError, UserError
from ranktilt.io import files
from tests.refusals import refused
from tests.toy import full_device, no_permission, no_room, write

BOM = b"\xef\xbb\xbf"


def numbered(path: Path) -> list[tuple[int, bytes]]:
    """Every line of a file with its number."""
    return [
        (number, line) for first, _, lines in files.line_chunks(path) for number, line in enumerate(lines, start=first)
    ]


def decoded(path: Path) -> list[str]:
    """Every chunk of a file as text."""
    return [files.decode_lines(path, *chunk) for chunk in files.line_chunks(path)]


# Reading


@pytest.mark.parametrize("size", [1, 4, 100])
@pytest.mark.parametrize("start", [b"", BOM], ids=["plain", "bom"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("last", [True, False], ids=["ended", "open"])
def test_line_ends_and_marks_make_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, start: bytes, end: bytes, last: bool
) -> None:
    monkeypatch.setattr(files, "CHUNK", size)
    lines = [b"one", b"", b"three", b"a longer fourth line", b"5"]
    path = write(tmp_path / "f", start + end.join(lines) + (end if last else b""))
    assert numbered(path) == [(1, b"one"), (2, b""), (3, b"three"), (4, b"a longer fourth line"), (5, b"5")]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\n\nb", [(1, b"a"), (2, b""), (3, b"b")]),
        (b"\n\na\n", [(1, b""), (2, b""), (3, b"a")]),
        (b"a\r\r\nb\n\rc", [(1, b"a"), (2, b""), (3, b"b"), (4, b""), (5, b"c")]),
        (b"a\r", [(1, b"a")]),
        (b"a\x0bb\x0cc\x1cd\x85e", [(1, b"a\x0bb\x0cc\x1cd\x85e")]),
        (b"a", [(1, b"a")]),
        (BOM + b"a", [(1, b"a")]),
        (b"a" + BOM, [(1, b"a" + BOM)]),
        (BOM + BOM + b"a", [(1, BOM + b"a")]),
    ],
    ids=["blank", "leading", "mixed", "lone-cr", "no-ends", "one", "bom", "bom-inside", "bom-twice"],
)
def test_lines_of_odd_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, content: bytes, lines: list[tuple[int, bytes]]
) -> None:
    monkeypatch.setattr(files, "CHUNK", size)
    assert numbered(write(tmp_path / "f", content)) == lines


@given(
    content=st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"bc", b" ", "é".encode(), BOM]), max_size=12).map(
        lambda parts: b"x" + b"".join(parts)
    ),
    size=st.integers(1, 8),
    packed=st.booleans(),
)
def test_any_file_reads_as_python_splits_it(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, size: int, packed: bool
) -> None:
    path = write(tmp_path_factory.mktemp("f") / ("f.gz" if packed else "f"), content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK", size)
        assert numbered(path) == list(enumerate(content.splitlines(), start=1))


@pytest.mark.parametrize("content", [b"", b"\n", b" \t\r\n\r\n", BOM, BOM + b"\n"])
@pytest.mark.parametrize("name", ["f", "f.gz"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    path = write(tmp_path / name, content)
    with refused(f"{path}: the file is empty", DataError):
        numbered(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "absent"
    with refused(f"{path}: cannot be read: No such file or directory", DataError):
        numbered(path)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with refused(f"{tmp_path}: expected a file, got a folder", DataError):
        numbered(tmp_path)


def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "f", "x")
    path.chmod(0)
    with no_permission(tmp_path), pytest.raises(DataError) as caught:
        numbered(path)
    assert str(caught.value) == f"{path}: cannot be read: Permission denied"


def test_a_plain_file_may_be_named_gz(tmp_path: Path) -> None:
    path = tmp_path / "f.gz"
    path.write_bytes(b"a\nb")
    assert numbered(path) == [(1, b"a"), (2, b"b")]


def test_gzip_in_several_members_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "f.gz"
    path.write_bytes(gzip.compress(b"a\nb") + gzip.compress(b"c\nd"))
    assert numbered(path) == [(1, b"a"), (2, b"bc"), (3, b"d")]


def test_a_truncated_gzip_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(os.urandom(1000))
    (tmp_path / "f.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"f\.gz: cannot be read to its end: Compressed file ended"):
        numbered(tmp_path / "f.gz")


def test_a_damaged_gzip_is_refused(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(b"".join(b"line %d\n" % i for i in range(1000))))
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "f.gz").write_bytes(data)
    with pytest.raises(DataError, match=r"f\.gz: cannot be read to its end: "):
        numbered(tmp_path / "f.gz")


def test_a_gzip_with_a_broken_block_is_refused(tmp_path: Path) -> None:
    head = gzip.compress(b"")[:10]
    (tmp_path / "f.gz").write_bytes(head + b"\xff" * 50)
    with pytest.raises(DataError, match=r"f\.gz: cannot be read to its end: .*invalid block type"):
        numbered(tmp_path / "f.gz")


# Streams without an end


@contextlib.contextmanager
def watched(seconds: int = 30) -> Iterator[None]:
    """Break off what hangs."""

    def hung(*_: object) -> None:
        raise TimeoutError(f"still reading after {seconds} s")

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_a_long_line_costs_no_more_for_each_of_its_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", 64)  # joined block by block this would move 200 GB
    path = write(tmp_path / "f", b"x" * (5 << 20) + b"\r\nend")
    with watched():
        assert [(number, len(line)) for number, line in numbered(path)] == [(1, 5 << 20), (2, 3)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"x" * 5000, ":1: expected lines of text, got none in 0 MB"),
        (b"\n" * 9000, ": expected lines of text, got none in 0 MB"),
        (BOM + b'{"a": "' + b"x" * 5000, None),
        (b"\n[" + b"1" * 5000, None),
    ],
    ids=["line", "blank", "object", "list"],
)
def test_a_stream_without_lines_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, message: str | None
) -> None:
    for name, size in (("CHUNK", 100), ("_LONGEST", 2000), ("_BLANK", 4000)):
        monkeypatch.setattr(files, name, size)
    path = write(tmp_path / "f", data)
    if message is None:
        assert len(numbered(path)) == data.count(b"\n") + 1
        return
    with pytest.raises(DataError, match=message):
        numbered(path)


@pytest.mark.parametrize("read", [numbered, files.read_bytes])
def test_gzip_that_unpacks_into_gigabytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], object]
) -> None:
    monkeypatch.setattr(files, "_FOLD_FROM", 1 << 20)
    path = write(tmp_path / "f.gz", b'{"a": "' + bytes(40 << 20))
    monkeypatch.setattr(files, "CHUNK", 1 << 16)
    with pytest.raises(DataError, match=r"f\.gz: cannot be read to its end: it unpacks more than 100-fold"):
        read(path)


@pytest.mark.parametrize(
    ("limits", "size", "allowed"), [((1000, 0), 1000, True), ((1000, 0), 1001, False), ((0, 2), 9999, True)]
)
def test_how_far_gzip_may_unpack_is_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], size: int, allowed: bool
) -> None:
    for name, limit in zip(("_FOLD_FROM", "_FOLD"), limits, strict=True):
        monkeypatch.setattr(files, name, limit)
    path = write(tmp_path / "f.gz", random.Random(0).randbytes(size))
    if allowed:
        assert len(files.read_bytes(path)) == size
        return
    with pytest.raises(DataError, match="it unpacks more than 0-fold"):
        files.read_bytes(path)


def test_a_file_that_is_read_whole_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LARGEST", 100)
    assert files.read_bytes(write(tmp_path / "f", b"x" * 100)) == b"x" * 100
    assert files.read_bytes(write(tmp_path / "f.gz", b"x" * 1000), 10) == b"x" * 10
    with pytest.raises(DataError, match="expected a file of at most 0 GB, got more"):
        files.read_bytes(write(tmp_path / "f", b"x" * 101))


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_a_device_is_no_file(device: str) -> None:
    with refused(f"{device}: expected a file, got a device", DataError):
        numbered(Path(device))


def test_a_pipe_into_which_nothing_writes_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_WRITER", 0.05)
    os.mkfifo(tmp_path / "f")
    with watched(), pytest.raises(DataError) as caught:
        numbered(tmp_path / "f")
    assert str(caught.value) == f"{tmp_path / 'f'}: cannot be read: nothing writes into this pipe"


@pytest.mark.parametrize("data", [b"one\ntwo", gzip.compress(b"one\ntwo")], ids=["plain", "gzip"])
def test_a_pipe_with_a_slow_writer_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    path = tmp_path / "f"
    os.mkfifo(path)
    opened, asked = threading.Event(), os.read

    def slowly() -> None:
        with path.open("wb") as stream:
            opened.wait(20)
            stream.write(data)

    def read(pipe: int, size: int) -> bytes:
        """The question whether somebody writes, once somebody has opened the pipe; he writes after it."""
        while True:
            try:
                if found := asked(pipe, size):
                    return found
            except BlockingIOError:
                opened.set()
                raise

    monkeypatch.setattr(os, "read", read)
    monkeypatch.setattr(files, "_WRITER", 0.0)
    writer = threading.Thread(target=slowly)
    writer.start()
    with watched():
        assert numbered(path) == [(1, b"one"), (2, b"two")]
    writer.join()


@pytest.mark.parametrize("name", ["x" * 300, "loop", "nul\0"])
def test_a_name_that_leads_nowhere_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(DataError, match=r"cannot be read: (File name too long|Too many levels|embedded null)"):
        files.read_bytes(tmp_path / name)


# Encoding


@pytest.mark.parametrize("size", [1, 3, 8, 1000])
def test_text_is_decoded_chunk_by_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(files, "CHUNK", size)
    path = write(tmp_path / "f", "größe\n日本語\r\n🙂")
    assert "\n".join(decoded(path)) == "größe\n日本語\n🙂"


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(
    ("content", "line", "byte"),
    [
        (b"\xff", 1, 0),
        (b"ab\xff", 1, 2),
        (b"ab\ncd\xffe\n", 2, 5),
        (b"ab\r\ncd\xffe\r\n", 2, 6),
        (b"ab\r\n\r\n\r\ncd\n\xff", 5, 11),
        (b"ab\rcd\r\xff", 3, 6),
        (b"a\r\r\nb\n\r\xff", 5, 7),
        (BOM + b"ab\n\xff", 2, 6),
        (BOM + b"ab\r\n\xff", 2, 7),
        ("é\n".encode() * 3 + b"x\xc3\n", 4, 10),
        (b"ok\n\xe2\x82\nok", 2, 3),
        (b"a\n\xff\n\xff\n", 2, 2),
    ],
)
@pytest.mark.parametrize("name", ["f", "f.gz"])
def test_invalid_utf8_names_line_and_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, content: bytes, line: int, byte: int, name: str
) -> None:
    monkeypatch.setattr(files, "CHUNK", size)
    path = write(tmp_path / name, content)
    with pytest.raises(DataError) as caught:
        decoded(path)
    assert str(caught.value) == f"{path}:{line}: invalid UTF-8 at byte {byte} of the file; save it as UTF-8"
    assert caught.value.line == line


@pytest.mark.parametrize("size", [1, 2, 1000])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["f", "f.gz"])
def test_utf16_is_recognised_by_its_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, encoding: str, name: str
) -> None:
    monkeypatch.setattr(files, "CHUNK", size)
    path = write(tmp_path / name, "\ufeffdoc_id\tsource\nd1\thuman\n".encode(encoding))
    with pytest.raises(DataError) as caught:
        decoded(path)
    said = "invalid UTF-8 at byte 0 of the file; save it as UTF-8 (it looks like UTF-16)"
    assert str(caught.value) == f"{path}:1: {said}"


def test_latin_1_with_the_mark_further_on_is_not_taken_for_utf16(tmp_path: Path) -> None:
    path = write(tmp_path / "f", "a\nÿþ\n".encode("latin-1"))
    with refused(f"{path}:2: invalid UTF-8 at byte 2 of the file; save it as UTF-8", DataError):
        decoded(path)


# Hashing and writing


def test_the_hash_is_of_the_bytes_on_disk(tmp_path: Path) -> None:
    path = write(tmp_path / "f.gz", b"abc")
    assert files.sha256(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert files.sha256(write(tmp_path / "f", b"abc")) == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_a_file_is_written_with_the_folders_above_it(tmp_path: Path) -> None:
    files.write_bytes(tmp_path / "a" / "b" / "f", b"abc")
    assert (tmp_path / "a" / "b" / "f").read_bytes() == b"abc"


def test_the_name_decides_on_compression(tmp_path: Path) -> None:
    data = b"".join(b"%d " % number**2 for number in range(5000))
    files.write_bytes(tmp_path / "f.gz", data)
    assert (tmp_path / "f.gz").read_bytes() == gzip.compress(data, compresslevel=6, mtime=0)


def test_compressed_bytes_do_not_depend_on_time_or_name(tmp_path: Path) -> None:
    files.write_bytes(tmp_path / "f.gz", b"abc")
    files.write_bytes(tmp_path / "g.gz", b"abc")
    assert (tmp_path / "f.gz").read_bytes() == (tmp_path / "g.gz").read_bytes()
    assert (tmp_path / "f.gz").read_bytes()[4:8] == bytes(4)  # the time of the gzip header


def test_a_device_is_written_to_and_not_replaced() -> None:
    files.write_bytes(Path("/dev/null"), b"abc")
    assert Path("/dev/null").is_char_device()


@full_device
def test_a_full_device_says_what_to_do() -> None:
    with refused("/dev/full: cannot be written: No space left on device; free some space or choose another place"):
        files.write_bytes(Path("/dev/full"), b"abc")


@pytest.mark.parametrize("below", ["g", "a/b/g"])
def test_a_file_cannot_hold_a_file(tmp_path: Path, below: str) -> None:
    path = write(tmp_path / "f", "kept") / below
    with refused(f"{path}: cannot be written: Not a directory; choose another place"):
        files.write_bytes(path, b"abc")
    assert os.listdir(tmp_path) == ["f"]
    assert (tmp_path / "f").read_text() == "kept"


def test_a_folder_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(UserError, match="/d: cannot be written: Is a directory; choose another place"):
        files.write_bytes(tmp_path / "d", b"abc")
    assert os.listdir(tmp_path) == ["d"]


def test_a_folder_without_permission_says_what_to_do(tmp_path: Path) -> None:
    with no_permission(tmp_path), pytest.raises(UserError) as caught:
        files.write_bytes(tmp_path / "f", b"abc")
    assert str(caught.value) == (
        f"{tmp_path / 'f'}: cannot be written: Permission denied; choose a place you may write to"
    )
    assert os.listdir(tmp_path) == []


def test_a_write_that_fails_midway_leaves_nothing(tmp_path: Path) -> None:
    with no_room(1000), pytest.raises(UserError, match="/f: cannot be written: File too large"):
        files.write_bytes(tmp_path / "f", bytes(5000))
    assert os.listdir(tmp_path) == []


def test_a_write_that_fails_midway_keeps_the_old_file(tmp_path: Path) -> None:
    path = write(tmp_path / "f", "old")
    with no_room(1000), pytest.raises(UserError, match="cannot be written"):
        files.write_bytes(path, bytes(5000))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


def test_several_files_are_written_together(tmp_path: Path) -> None:
    files.write_files({tmp_path / "a" / "f": b"one", tmp_path / "b" / "c" / "g.gz": b"two"})
    assert (tmp_path / "a" / "f").read_bytes() == b"one"
    assert gzip.decompress((tmp_path / "b" / "c" / "g.gz").read_bytes()) == b"two"


@pytest.mark.parametrize("last", ["f/g", "d", "new/long/" + "x" * 300])
def test_where_one_file_cannot_be_written_none_is(tmp_path: Path, last: str) -> None:
    write(tmp_path / "f", "old")
    (tmp_path / "d").mkdir()
    with pytest.raises(UserError, match="cannot be written"):
        files.write_files({tmp_path / "f": b"new", tmp_path / "e" / "g": b"new", tmp_path / last: b"new"})
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["d", "f"]
    assert (tmp_path / "f").read_text() == "old"


def test_a_full_disk_at_the_second_file_takes_back_the_first(tmp_path: Path) -> None:
    with no_room(1000), pytest.raises(UserError, match="/b/g: cannot be written"):
        files.write_files({tmp_path / "a" / "f": b"small", tmp_path / "b" / "g": bytes(5000)})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (errno.ENOSPC, "free some space or choose another place"),
        (errno.EACCES, "choose a place you may write to"),
        (errno.EROFS, "choose a place you may write to"),
        (errno.EIO, "choose another place"),
    ],
)
def test_what_to_do_depends_on_what_went_wrong(code: int, hint: str) -> None:
    error = files.cannot_write(Path("out/f"), OSError(code, "The reason"))
    assert str(error) == f"out/f: cannot be written: The reason; {hint}"


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    path = write(tmp_path / "f", "old")
    for mode in (0o600, 0o755, 0o444):
        path.chmod(mode)
        files.write_bytes(path, b"new")
        assert (path.stat().st_mode & 0o7777, path.read_bytes()) == (mode, b"new")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
def test_a_replaced_file_keeps_its_owner(tmp_path: Path) -> None:
    path = write(tmp_path / "f", "old")
    os.chown(path, 65534, 65534)
    files.write_bytes(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid, path.read_bytes()) == (65534, 65534, b"new")


@pytest.mark.parametrize("there", [True, False])
def test_what_a_link_names_is_written_and_the_link_stays(tmp_path: Path, there: bool) -> None:
    target, link = tmp_path / "elsewhere" / "f.bin", tmp_path / "f.gz"
    target.parent.mkdir()
    if there:
        write(target, "old").chmod(0o640)
    link.symlink_to("elsewhere/f.bin")
    files.require_place(link)
    files.write_bytes(link, b"new")
    assert os.readlink(link) == "elsewhere/f.bin"
    assert gzip.decompress(target.read_bytes()) == b"new", "the name that was given decides on compression"
    assert not there or target.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["elsewhere", "f.bin", "f.gz"]


def test_links_that_go_round_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for write_or_try in (files.require_place, lambda path: files.write_bytes(path, b"x")):
        with pytest.raises(UserError, match="/a: cannot be written: Too many levels of symbolic links"):
            write_or_try(tmp_path / "a")
    assert os.readlink(tmp_path / "a") == "b"


def test_a_file_that_is_mounted_by_itself_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "f", "an old content")
    before = path.stat().st_ino

    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(os, "replace", busy)
    files.write_bytes(path, b"new")
    assert (path.read_bytes(), path.stat().st_ino) == (b"new", before)
    assert os.listdir(tmp_path) == ["f"]
