"""The lexical index: counts by term, the same in blocks of any size, in any memory, and from disk."""

import json
import shutil
import sys
import warnings
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt import Collection
from ranktilt.errors import DataWarning, MissingExtra
from ranktilt.executing.memory_limits import MemoryLimits, limited
from ranktilt.rankers.lexical import index
from ranktilt.rankers.lexical import index_files as indexfile
from ranktilt.rankers.lexical.bm25 import BM25, TFIDF
from ranktilt.rankers.lexical.index import Terms, terms
from ranktilt.text.analyzers import TokenCodes, Vocabulary
from tests.toy import collection_of, toy

TEXTS = ("red apples", "apples", "", "blue river red red", "sea", "apples of the sea", "the of")


def collection(*texts: str, query: str = "red apples") -> Collection:
    docs = [{"id": f"d{n}", "text": text} for n, text in enumerate(texts)]
    return collection_of(docs, {"q": query}, {"q": {"d0": 1}})


def counted(shared: Terms) -> list[dict[str, int]]:
    """Terms of each document, read from the postings."""
    found: list[dict[str, int]] = [{} for _ in shared.table.lengths]
    for name, number in shared.vocabulary.terms.items():
        one = shared.table.postings(np.array([number]))
        assert one.rows.tolist() == sorted(set(one.rows.tolist()))
        assert one.sizes.tolist() == [len(one.rows)]
        for row, times in zip(one.rows.tolist(), one.times.tolist(), strict=True):
            found[row][name] = int(times)
    assert [sum(words.values()) for words in found] == shared.table.lengths.tolist()
    return found


@pytest.fixture
def folder(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep an index of any size on disk, in a cache of the test's own."""
    monkeypatch.setattr(index, "LARGE", 0)
    return own_cache / "lexical"


@pytest.fixture
def tokenized(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the documents of each call that tokenizes some for the index."""
    calls: list[int] = []
    encode = Vocabulary.encode

    def counting(self: Vocabulary, tokens: TokenCodes, *, grow: bool) -> Any:
        if grow:
            calls.append(len(tokens.counts))
        return encode(self, tokens, grow=grow)

    monkeypatch.setattr(Vocabulary, "encode", counting)
    return calls


class TestCounts:
    def test_terms_are_counted_by_document(self) -> None:
        found = terms(collection("The cat sat; cats sit. CAT!", "", "of the", "a cat's hat"), "english", "text")
        assert counted(found) == [{"cat": 3, "sat": 1, "sit": 1}, {}, {}, {"cat": 1, "hat": 1}]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [("title", {"red": 1}), ("text", {"river": 1}), ("title+text", {"red": 1, "river": 1})],
    )
    def test_what_is_counted_can_be_chosen(self, text: str, expected: dict[str, int]) -> None:
        found = collection_of([{"id": "d", "title": "red", "text": "river"}], {"q": "x"}, {"q": {"d": 1}})
        assert counted(terms(found, "english", text)) == [expected]

    def test_counts_are_shared_by_rankers_and_made_once(self, tokenized: list[int]) -> None:
        found = toy()
        BM25(k1=0.9).rank(found)
        made = terms(found, "english", "title+text")
        TFIDF().rank(found)
        assert terms(found, "english", "title+text") is made
        assert tokenized == [found.docs.height]

    @settings(max_examples=30)
    @given(
        texts=st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), min_size=1, max_size=9),
        chunk=st.integers(1, 5),
        memory=st.sampled_from([None, 1, 64 * 3]),
    )
    def test_no_size_of_a_block_shows(self, texts: list[list[str]], chunk: int, memory: int | None) -> None:
        found = collection(*(" ".join(words) for words in texts))
        with pytest.MonkeyPatch.context() as patch, limited(MemoryLimits(memory)):
            patch.setattr(index, "CHUNK", chunk)
            made = terms(found, "whitespace", "text")
        assert counted(made) == [dict(Counter(words)) for words in texts]

    @pytest.mark.parametrize(("times", "kind"), [(255, np.uint8), (256, np.uint16), (70_000, np.uint32)])
    def test_counts_take_the_least_room_that_holds_them(self, times: int, kind: type) -> None:
        made = terms(collection("a " * times + "b", "b"), "whitespace", "text")
        assert counted(made) == [{"a": times, "b": 1}, {"b": 1}]
        assert made.table.times.dtype == kind

    def test_query_terms_that_no_document_holds_are_left_out(self) -> None:
        shared = terms(collection("red apples red", "sea"), "english", "text")
        counts: Any = shared.of_queries(pl.Series(["apples red APPLES unknown", "nothing here", ""])).toarray()
        assert counts.shape == (3, 3)
        column = shared.vocabulary.terms
        assert counts[0, column["appl"]] == 2
        assert counts[0, column["red"]] == 1
        assert counts.sum() == 3

    def test_postings_of_several_terms_come_term_after_term(self) -> None:
        shared = terms(collection(*TEXTS), "whitespace", "text")
        asked = np.array([shared.vocabulary.terms[name] for name in ("apples", "red")])
        found = shared.table.postings(asked)
        assert found.rows.tolist() == [0, 1, 5, 0, 3]
        assert found.times.tolist() == [1, 1, 1, 1, 2]
        assert found.sizes.tolist() == [3, 2]
        assert np.diff(shared.table.offsets)[asked].tolist() == [3, 2]


class TestOnDisk:
    @pytest.mark.parametrize("chunk", [1, 2, 16_384])
    @pytest.mark.parametrize("memory", [None, 1])
    def test_the_run_is_the_same_made_kept_and_read_again(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, memory: int | None
    ) -> None:
        monkeypatch.setattr(index, "CHUNK", chunk)
        monkeypatch.setattr(index, "LARGE", 1 << 30)
        usual = BM25().rank(collection(*TEXTS))
        assert not folder.exists()
        monkeypatch.setattr(index, "LARGE", 0)
        with limited(MemoryLimits(memory)):
            runs = [BM25().rank(collection(*TEXTS)) for _ in range(2)]
        assert runs == [usual, usual]
        assert {run.scores.tobytes() for run in runs} == {usual.scores.tobytes()}

    def test_it_is_read_again_without_tokenizing(self, folder: Path, tokenized: list[int]) -> None:
        first = counted(terms(collection(*TEXTS), "english", "text"))
        assert tokenized == [len(TEXTS)]
        second = terms(collection(*TEXTS), "english", "text")
        assert tokenized == [len(TEXTS)]
        assert counted(second) == first
        assert isinstance(second.table.rows, np.memmap)
        assert isinstance(second.table.times, np.memmap)

    def test_nothing_but_the_index_is_left_behind(self, folder: Path) -> None:
        terms(collection(*TEXTS), "english", "text")
        [one] = folder.iterdir()
        names = {"about.json", "lengths.bin", "offsets.bin", "rows.bin", "terms.txt", "times.bin"}
        assert {path.name for path in one.iterdir()} == names

    @pytest.mark.parametrize(
        ("texts", "how"),
        [
            pytest.param(("red apples", "apples", "sea"), "english", id="one text fewer"),
            pytest.param((*TEXTS[:-1], "the  of"), "english", id="one blank more"),
            pytest.param(("red apples apples", "", *TEXTS[2:]), "english", id="the same letters, divided otherwise"),
            pytest.param((TEXTS[1], TEXTS[0], *TEXTS[2:]), "english", id="another order"),
            pytest.param(TEXTS, "whitespace", id="another analyzer"),
        ],
    )
    def test_other_contents_are_never_taken_for_these(
        self, folder: Path, tokenized: list[int], texts: tuple[str, ...], how: str
    ) -> None:
        terms(collection(*TEXTS), "english", "text")
        found = counted(terms(collection(*texts), how, "text"))
        assert len(tokenized) == 2
        assert len(list(folder.iterdir())) == 2
        assert found == [counted(terms(collection(text), how, "text"))[0] for text in texts]

    def test_ids_sources_and_titles_that_make_no_text_do_not_matter(self, folder: Path, tokenized: list[int]) -> None:
        terms(collection(*TEXTS), "english", "title+text")
        other = [{"id": f"x{n}", "text": text, "source": "llm"} for n, text in enumerate(TEXTS)]
        terms(collection_of(other, {"q": "red"}, {"q": {"x0": 1}}), "english", "text")
        assert len(tokenized) == 1

    def test_another_script_is_warned_of_each_time(self, folder: Path) -> None:
        for _ in range(2):
            with pytest.warns(DataWarning, match=r"meets 2 documents in a script that is not Latin \(first: 'd1'\)"):
                BM25().rank(collection("plain words", "красная книга", "ещё книга", "книга with more latin words"))


def damage_size(one: Path) -> None:
    (one / "rows.bin").write_bytes((one / "rows.bin").read_bytes()[:-1])


def damage_rows(one: Path) -> None:
    data = bytearray((one / "rows.bin").read_bytes())
    data[0] ^= 1
    (one / "rows.bin").write_bytes(data)


def damage_counts(one: Path) -> None:
    (one / "times.bin").write_bytes(bytes(len((one / "times.bin").read_bytes())))


def shift_rows(one: Path) -> None:
    data = (one / "rows.bin").read_bytes()
    (one / "rows.bin").write_bytes(data[4:] + data[:4])  # the same numbers, so the same sum


def damage_foreign(one: Path) -> None:
    about = json.loads((one / "about.json").read_text(encoding="utf-8"))
    (one / "about.json").write_text(json.dumps({**about, "foreign": [1, 0]}), encoding="utf-8")


def damage_terms(one: Path) -> None:
    (one / "terms.txt").write_text("other\nterms", encoding="utf-8")


def damage_about(one: Path) -> None:
    (one / "about.json").write_text("{", encoding="utf-8")


def damage_keys(one: Path) -> None:
    (one / "about.json").write_text("{}", encoding="utf-8")


def lose_a_file(one: Path) -> None:
    (one / "offsets.bin").unlink()


def lose_all_files(one: Path) -> None:
    shutil.rmtree(one)
    one.mkdir()


def version_without_nltk(name: str) -> str:
    if name == "nltk":
        raise PackageNotFoundError(name)
    return version(name)


DAMAGES = [
    damage_size, damage_rows, shift_rows, damage_counts, damage_terms, damage_about, damage_foreign, damage_keys,
    lose_a_file, lose_all_files,
]  # fmt: skip


class TestWhatGoesWrong:
    def test_a_missing_nltk_is_named_with_the_command(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in [n for n in sys.modules if n.partition(".")[0] == "nltk"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "nltk", None)
        monkeypatch.setattr(indexfile, "version", version_without_nltk)
        with pytest.raises(MissingExtra, match="analyzer 'paper' needs nltk"):
            BM25(analyzer="paper").rank(toy())
        assert list(folder.iterdir()) == []

    @pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.__name__.replace("_", " "))
    def test_a_damaged_index_is_warned_of_and_made_anew(self, folder: Path, damage: Any, tokenized: list[int]) -> None:
        expected = counted(terms(collection(*TEXTS), "english", "text"))
        [one] = folder.iterdir()
        damage(one)
        with pytest.warns(DataWarning) as caught:
            made = terms(collection(*TEXTS), "english", "text")
        assert [str(w.message).partition(": a damaged ")[0] for w in caught] == [str(one)]
        assert "a damaged lexical index is made anew: " in str(caught[0].message)
        assert counted(made) == expected
        assert len(tokenized) == 2
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert counted(terms(collection(*TEXTS), "english", "text")) == expected
        assert len(tokenized) == 2
        assert list(folder.iterdir()) == [one]

    def test_without_a_place_to_write_it_stays_in_memory(self, folder: Path, tokenized: list[int]) -> None:
        folder.parent.mkdir(parents=True)
        folder.write_text("a file where the folder should be")
        with pytest.warns(DataWarning) as caught:
            made = terms(collection(*TEXTS), "english", "text")
        assert len(caught) == 1
        message = str(caught[0].message)
        assert message.startswith(f"{folder}: cannot be written: Not a directory; ")
        assert message.endswith("; the lexical index stays in memory")
        assert counted(made)[3] == {"blue": 1, "river": 1, "red": 2}
        assert not isinstance(made.table.rows, np.memmap)
        assert tokenized == [len(TEXTS)]

    @pytest.mark.parametrize("after", [1, 4, 9, 12])
    def test_a_disk_that_gets_full_on_the_way_costs_nothing_but_memory(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, tokenized: list[int], after: int
    ) -> None:
        monkeypatch.setattr(index, "CHUNK", 3)
        expected = counted(terms(collection(*TEXTS), "whitespace", "text"))
        shutil.rmtree(folder)
        tokenized.clear()
        opened = Path.open
        left = [after]

        def filling(self: Path, mode: str = "r", **options: Any) -> Any:
            if "w" in mode:
                left[0] -= 1
                if left[0] < 0:
                    raise OSError(28, "No space left on device")
            return opened(self, mode, **options)

        monkeypatch.setattr(Path, "open", filling)
        with pytest.warns(DataWarning, match="No space left on device; free some space or choose another place; the l"):
            made = terms(collection(*TEXTS), "whitespace", "text")
        assert counted(made) == expected
        assert tokenized == [3, 3, 1]
        assert list(folder.iterdir()) == []

    def test_an_interruption_leaves_nothing(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def stop(*_: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(index, "report", stop)
        with pytest.raises(KeyboardInterrupt):
            terms(collection(*TEXTS), "english", "text")
        assert list(folder.iterdir()) == []
