"""Text files: line ends, encodings, compression and chunks read alike; writing is whole or not at all."""

import errno
import gzip
import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.errors import DataError, UserError
from ranktilt.io import files
from tests.refusals import refused
from tests.toy import no_permission, no_room, write

BOM = b"\xef\xbb\xbf"


def numbered(path: Path) -> list[tuple[int, bytes]]:
    """Every line of a file with its number."""
    return [
        (number, line) for first, lines in files.line_chunks(path) for number, line in enumerate(lines, start=first)
    ]


def decoded(path: Path) -> list[str]:
    """Every chunk of a file as text."""
    return [files.decode_lines(path, *chunk) for chunk in files.line_chunks(path)]


# Reading


@given(
    content=st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"bc", b" ", "é".encode(), BOM]), max_size=12).map(
        lambda parts: b"x" + b"".join(parts)
    ),
    mark=st.sampled_from([b"", BOM]),
    size=st.integers(1, 8),
    packed=st.booleans(),
)
def test_any_file_reads_as_python_splits_it(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, mark: bytes, size: int, packed: bool
) -> None:
    path = write(tmp_path_factory.getbasetemp() / ("split.gz" if packed else "split"), mark + content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK", size)
        assert numbered(path) == list(enumerate(content.splitlines(), start=1))


@pytest.mark.parametrize("content", [b"", b"\n", b" \t\r\n\r\n", BOM, BOM + b"\n"])
@pytest.mark.parametrize("name", ["f", "f.gz"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    path = write(tmp_path / name, content)
    with refused(f"{path}: the file is empty", DataError):
        numbered(path)


def test_gzip_in_several_members_is_read_to_its_end_and_a_truncated_one_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.gz"
    path.write_bytes(gzip.compress(b"a\nb") + gzip.compress(b"c\nd"))
    assert numbered(path) == [(1, b"a"), (2, b"bc"), (3, b"d")]
    whole = gzip.compress(os.urandom(1000))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"f\.gz: cannot be read to its end: Compressed file ended"):
        numbered(path)


def test_a_long_line_is_joined_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", 64)  # joined block by block this would move 200 GB
    path = write(tmp_path / "f", b"x" * (5 << 20) + b"\r\nend")
    assert [(number, len(line)) for number, line in numbered(path)] == [(1, 5 << 20), (2, 3)]


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(
    ("content", "line", "byte"),
    [
        (b"\xff", 1, 1),
        (b"ab\r\n\r\n\r\ncd\n\xff", 5, 1),
        (BOM + b"ab\n\xff", 2, 1),
        ("é\n".encode() * 3 + b"x\xc3\n", 4, 2),
        ("\ufeffa\tb\n".encode("utf-16"), 1, 1),
    ],
)
def test_invalid_utf8_names_line_and_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, content: bytes, line: int, byte: int
) -> None:
    monkeypatch.setattr(files, "CHUNK", size)
    path = write(tmp_path / "f", content)
    for read in (decoded, files.read_text):
        with refused(f"{path}:{line}: invalid UTF-8 at byte {byte} of the line; save it as UTF-8", DataError):
            read(path)


# Hashing and writing


def test_the_hash_is_of_the_bytes_on_disk(tmp_path: Path) -> None:
    path = write(tmp_path / "f.gz", b"abc")
    assert files.sha256(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert files.sha256(write(tmp_path / "f", b"abc")) == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_the_name_decides_on_compression(tmp_path: Path) -> None:
    data = b"".join(b"%d " % number**2 for number in range(5000))
    for name in ("f.gz", "g.gz"):
        files.write_bytes(tmp_path / name, data)
    packed = (tmp_path / "f.gz").read_bytes()
    assert gzip.decompress(packed) == data
    assert packed == (tmp_path / "g.gz").read_bytes(), "neither its name nor the time is in it"
    assert len(packed) < len(data)


@pytest.mark.parametrize("below", ["g", "a/b/g"])
def test_a_file_cannot_hold_a_file(tmp_path: Path, below: str) -> None:
    path = write(tmp_path / "f", "kept") / below
    with refused(f"{path}: cannot be written: Not a directory; choose another place"):
        files.write_bytes(path, b"abc")
    assert os.listdir(tmp_path) == ["f"]
    assert (tmp_path / "f").read_text() == "kept"


def test_a_folder_without_permission_says_what_to_do(tmp_path: Path) -> None:
    with no_permission(tmp_path), pytest.raises(UserError) as caught:
        files.write_bytes(tmp_path / "f", b"abc")
    assert str(caught.value) == (
        f"{tmp_path / 'f'}: cannot be written: Permission denied; choose a place you may write to"
    )
    assert os.listdir(tmp_path) == []


def test_a_write_that_fails_midway_keeps_the_old_file(tmp_path: Path) -> None:
    path = write(tmp_path / "f", "old")
    with no_room(1000), pytest.raises(UserError, match="cannot be written"):
        files.write_bytes(path, bytes(5000))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


def test_a_full_disk_at_the_second_file_takes_back_the_first(tmp_path: Path) -> None:
    with no_room(1000), pytest.raises(UserError, match="/b/g: cannot be written"):
        files.write_files({tmp_path / "a" / "f": b"small", tmp_path / "b" / "g": bytes(5000)})
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


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


def test_what_a_link_names_is_written_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "f.gz").symlink_to("f.bin")
    files.require_place(tmp_path / "f.gz")
    files.write_bytes(tmp_path / "f.gz", b"new")
    assert os.readlink(tmp_path / "f.gz") == "f.bin"
    assert gzip.decompress((tmp_path / "f.bin").read_bytes()) == b"new", "the name that was given decides on packing"


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    for text in ("old", "new"):
        with files.new_folder(tmp_path / "a" / "out") as made:
            (made / text).write_text(text)
    assert [p.name for p in tmp_path.rglob("*")] == ["a", "out", "new"]
    full = pytest.raises(UserError, match="/out: cannot be written: File too large")
    with full, no_room(1000), files.new_folder(tmp_path / "a" / "out") as made:
        (made / "big").write_bytes(bytes(5000))
    with pytest.raises(KeyboardInterrupt), files.new_folder(tmp_path / "a" / "out"):
        raise KeyboardInterrupt
    assert [p.name for p in tmp_path.rglob("*")] == ["a", "out", "new"]


def test_a_task_has_one_process(tmp_path: Path) -> None:
    with files.alone(str(tmp_path)):
        with pytest.raises(BlockingIOError), files.alone(str(tmp_path)):
            pass
        with files.alone(str(tmp_path / "other")):
            pass
    with files.alone(str(tmp_path)):
        pass
