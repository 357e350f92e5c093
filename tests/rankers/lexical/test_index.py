"""The lexical index: counts by term, the same in blocks of any size, in any memory, and from disk."""

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
from ranktilt.errors import DataWarning, MissingExtra, UserError
from ranktilt.executing.memory_limits import MemoryLimits, limited
from ranktilt.rankers.lexical import index
from ranktilt.rankers.lexical import index_files as indexfile
from ranktilt.rankers.lexical.bm25 import BM25, TFIDF
from ranktilt.rankers.lexical.index import Terms, terms
from ranktilt.rankers.lexical.index_files import IndexFolder
from ranktilt.text.analyzers import TokenCodes, Vocabulary
from tests.toy import collection_of, no_room, toy

TEXTS = ("red apples", "apples", "", "blue river red red", "sea", "apples of the sea", "the of")


def collection(*texts: str, query: str = "red apples") -> Collection:
    docs = [{"id": f"d{n}", "text": text} for n, text in enumerate(texts)]
    return collection_of(docs, {"q": query}, {"q": {"d0": 1}})


def counted(shared: Terms) -> list[dict[str, int]]:
    """Terms of each document, read from the postings."""
    found: list[dict[str, int]] = [{} for _ in shared.table.lengths]
    for name, number in shared.vocabulary.terms.items():
        postings = shared.table.postings(np.array([number]))
        assert postings.rows.tolist() == sorted(set(postings.rows.tolist()))
        assert postings.sizes.tolist() == [len(postings.rows)]
        for row, times in zip(postings.rows.tolist(), postings.times.tolist(), strict=True):
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

    def test_counts_are_shared_by_rankers_and_made_once(self, tokenized: list[int]) -> None:
        found = toy()
        for ranker in (BM25(k1=0.9), TFIDF()):
            ranker.rank(found)
        assert terms(found, "english", "title+text") is terms(found, "english", "title+text")
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
        row = [0, 0, 0]
        row[shared.vocabulary.terms["appl"]], row[shared.vocabulary.terms["red"]] = 2, 1
        assert counts.tolist() == [row, [0, 0, 0], [0, 0, 0]]

    def test_postings_of_several_terms_come_term_after_term(self) -> None:
        shared = terms(collection(*TEXTS), "whitespace", "text")
        found = shared.table.postings(np.array([shared.vocabulary.terms[name] for name in ("apples", "red")]))
        assert (found.rows.tolist(), found.times.tolist()) == ([0, 1, 5, 0, 3], [1, 1, 1, 1, 2])
        assert found.sizes.tolist() == [3, 2]


class TestOnDisk:
    @pytest.mark.parametrize(("chunk", "memory"), [(1, None), (2, 1), (16_384, None), (16_384, 1)])
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

    @pytest.mark.parametrize(
        ("texts", "how"),
        [
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
        assert found == [counted(terms(collection(text), how, "text"))[0] for text in texts]

    def test_ids_sources_and_titles_that_make_no_text_do_not_matter(self, folder: Path, tokenized: list[int]) -> None:
        terms(collection(*TEXTS), "english", "title+text")
        other = [{"id": f"x{n}", "text": text, "source": "llm"} for n, text in enumerate(TEXTS)]
        terms(collection_of(other, {"q": "red"}, {"q": {"x0": 1}}), "english", "text")
        assert len(tokenized) == 1

    def test_its_name_is_that_of_all_texts_however_they_lie_in_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(indexfile, "_HASHED", 7)
        whole = pl.Series([f"text {n} é" for n in range(20)])
        parts = pl.concat([whole.slice(0, 9), whole.slice(9)], rechunk=False)
        longer = pl.concat([pl.Series(["before"]), whole]).slice(1)
        others = [pl.concat([whole.slice(0, n), pl.Series(["x"]), whole.slice(n + 1)]) for n in range(20)]
        names = [IndexFolder.of(texts, "english").path for texts in (whole, parts, longer, *others)]
        assert names[0] == names[1] == names[2]
        assert len(set(names)) == 21

    def test_the_second_of_two_writers_takes_the_firsts(self, folder: Path) -> None:
        first, texts = terms(collection(*TEXTS), "english", "text"), pl.Series(TEXTS)
        with IndexFolder.of(texts, "english").writing() as writer:
            second = index._make(texts, "english", writer)
        assert counted(first) == counted(second)
        assert len(list(folder.iterdir())) == 1


class TestWhatGoesWrong:
    def test_a_missing_nltk_is_named_with_the_command(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def without_nltk(name: str) -> str:
            if name == "nltk":
                raise PackageNotFoundError(name)
            return version(name)

        for name in [n for n in sys.modules if n.partition(".")[0] == "nltk"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "nltk", None)
        monkeypatch.setattr(indexfile, "version", without_nltk)
        with pytest.raises(MissingExtra, match="analyzer 'paper' needs nltk"):
            BM25(analyzer="paper").rank(toy())
        assert list(folder.iterdir()) == []

    @pytest.mark.parametrize(
        ("file", "change"),
        [
            ("rows.npy", lambda data: data[:-1]),
            ("times.npy", lambda data: bytes([data[0] ^ 1]) + data[1:]),
            ("terms.json", lambda data: data[:-1]),
            ("offsets.npy", None),
            ("terms.json", None),
        ],
    )
    def test_a_damaged_index_is_warned_of_and_made_anew(
        self, folder: Path, file: str, change: Any, tokenized: list[int]
    ) -> None:
        expected = counted(terms(collection(*TEXTS), "english", "text"))
        [path] = folder.iterdir()
        if change is None:
            (path / file).unlink()
        else:
            (path / file).write_bytes(change((path / file).read_bytes()))
        with pytest.warns(DataWarning, match="a damaged lexical index is made anew: "):
            assert counted(terms(collection(*TEXTS), "english", "text")) == expected
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made = terms(collection(*TEXTS), "english", "text")
        assert counted(made) == expected
        assert isinstance(made.table.rows, np.memmap)
        assert tokenized == [len(TEXTS)] * 2, "it is read without tokenizing"
        assert list(folder.iterdir()) == [path]
        assert {name.name for name in path.iterdir()} == {"about.json", *indexfile.FILES}

    def test_a_place_that_cannot_be_written_or_is_full_is_one_error(self, folder: Path) -> None:
        with no_room(100), pytest.raises(UserError, match=f"^{folder}: cannot be written: File too large"):
            terms(collection(*TEXTS), "whitespace", "text")
        assert list(folder.iterdir()) == []
        folder.rmdir()
        folder.write_text("a file where the folder should be")
        with pytest.raises(UserError, match=f"^{folder}: cannot be written: Not a directory"):
            terms(collection(*TEXTS), "english", "text")

    def test_an_interruption_leaves_nothing_that_could_be_read(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stop(*_: Any) -> None:
            assert [path.suffix for path in folder.iterdir()] == [".tmp"], "what a kill would leave"
            raise KeyboardInterrupt

        monkeypatch.setattr(index, "report", stop)
        with pytest.raises(KeyboardInterrupt):
            terms(collection(*TEXTS), "english", "text")
        assert list(folder.iterdir()) == []
