"""Facts about texts are found once, and found again when anything that they depend on changes."""

from pathlib import Path

import polars as pl
import pytest

from ranktilt import Collection
from ranktilt.data import text_facts
from ranktilt.data.faults.text_flags import text_flags
from ranktilt.data.inventory import cache_contents
from ranktilt.data.text_facts import stored_facts
from tests.toy import collection_of, no_permission, no_room

TEXTS = ["Sure! Here is a rewrite of the text:\nA red fox.", "I'm sorry, but I cannot", "A hen."]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store facts of texts of any size, and return the folder."""
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(text_facts, "STORED", 0)
    return tmp_path / "cache" / "facts"


def collection(*texts: str) -> Collection:
    docs = [{"id": f"d{number}", "text": text} for number, text in enumerate(texts)]
    return collection_of(docs, {"q": "red"}, {"q": {"d0": 1}})


class Finder:
    """Finds the lengths of texts, and counts how often it was asked to."""

    def __init__(self) -> None:
        self.count = 0

    def facts(
        self, *texts: str, inputs: tuple[bytes, ...] = (), name: str = "lengths"
    ) -> list[int]:
        lengths = pl.DataFrame({"length": list(map(len, texts))})

        def find() -> pl.DataFrame:
            self.count += 1
            return lengths

        facts = stored_facts(collection(*texts), name, find, inputs=inputs)
        return facts["length"].to_list()


def test_facts_about_one_collection_are_one_entry_of_the_cache() -> None:
    finder = Finder()
    finder.facts("a", "bc", inputs=(b"1",))
    finder.facts("a", "bc", inputs=(b"2",))
    finder.facts("a", "bc", name="widths")
    finder.facts("another", "collection")
    assert finder.count == 4
    assert [cached.kind for cached in cache_contents()] == ["facts", "facts"]


def test_facts_are_found_once() -> None:
    finder = Finder()
    assert finder.facts("a", "bc") == finder.facts("a", "bc") == [1, 2]
    assert finder.count == 1


@pytest.mark.parametrize(
    ("texts", "inputs", "name"),
    [
        (("a", "bd"), (b"1", b"2"), "lengths"),
        (("bc", "a"), (b"1", b"2"), "lengths"),
        (("a", "bc"), (b"12", b""), "lengths"),
        (("a", "bc"), (b"1", b"2"), "widths"),
    ],
    ids=["another text", "another order", "other inputs", "another name"],
)
def test_facts_are_found_again_when_anything_changes(
    texts: tuple[str, ...], inputs: tuple[bytes, ...], name: str
) -> None:
    finder = Finder()
    finder.facts("a", "bc", inputs=(b"1", b"2"))
    assert finder.facts(*texts, inputs=inputs, name=name) == list(map(len, texts))
    assert finder.count == 2


def test_facts_of_other_code_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    finder = Finder()
    finder.facts("a")
    monkeypatch.setattr(text_facts, "_CODE", ("data/texts.py",))
    finder.facts("a")
    assert finder.count == 2


@pytest.mark.parametrize("content", [b"", b"ARROW1", b"\0" * 400], ids=["empty", "cut", "zeros"])
def test_damaged_facts_are_found_again(folder: Path, content: bytes) -> None:
    finder = Finder()
    finder.facts("a", "bc")
    (file,) = folder.rglob("*.arrow")
    file.write_bytes(content)
    assert [finder.facts("a", "bc"), finder.facts("a", "bc")] == [[1, 2], [1, 2]]
    assert finder.count == 2


def test_facts_are_found_each_time_where_the_cache_cannot_be_written(tmp_path: Path) -> None:
    for fault in (no_permission(tmp_path), no_room(100)):
        finder = Finder()
        with fault:
            assert finder.facts("a", "bc") == finder.facts("a", "bc") == [1, 2]
        assert finder.count == 2


def test_few_texts_are_not_stored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_facts, "STORED", 4)
    Finder().facts("a", "bc")
    assert not folder.exists()


def test_flags_of_texts_are_the_same_from_the_cache(folder: Path) -> None:
    first, second = text_flags(collection(*TEXTS)), text_flags(collection(*TEXTS))
    assert first.equals(second)
    assert first.schema == second.schema
    assert first["opening"].to_list() == [True, False, False]
    assert first["refusal"].to_list() == [False, True, False]
    assert first["cut_off"].to_list() == [False, True, False]
    assert first["words"].to_list() == [11, 5, 2]
    assert len(list(folder.rglob("*.arrow"))) == 1
