"""BM25 and TF-IDF as bm25s, the papers and a pencil have them; their index, the same in any memory
and from disk.
"""

import math
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt import Collection, Ranker, ranker
from ranktilt.data.text.analyzers import TokenCodes, Vocabulary
from ranktilt.errors import DataWarning, UserError
from ranktilt.parallel.memory_limits import MemoryLimits, limit_memory
from ranktilt.rankers.lexical import bm25 as lexical
from ranktilt.rankers.lexical import index
from ranktilt.rankers.lexical import index_files as indexfile
from ranktilt.rankers.lexical.bm25 import BM25, TFIDF
from ranktilt.rankers.lexical.index import Terms, terms
from ranktilt.rankers.lexical.index_files import IndexFolder
from tests.rankers.contract import entries
from tests.rankers.contract import scores as scores_of
from tests.toy import collection_of, no_permission, no_room, run_of, toy

TEXTS = ("red apples", "apples", "", "blue river red red", "sea", "apples of the sea", "the of")


def collection(*texts: str, query: str = "red apples") -> Collection:
    docs = [{"id": f"d{n}", "text": text} for n, text in enumerate(texts)]
    return collection_of(docs, {"q": query}, {"q": {"d0": 1}})


def counted(index_terms: Terms) -> list[dict[str, int]]:
    """Terms of each document, read from the postings."""
    counts: list[dict[str, int]] = [{} for _ in index_terms.table.lengths]
    for name, number in index_terms.vocabulary.terms.items():
        postings = index_terms.table.postings(np.array([number]))
        assert postings.rows.tolist() == sorted(set(postings.rows.tolist()))
        assert postings.sizes.tolist() == [len(postings.rows)]
        for row, times in zip(postings.rows.tolist(), postings.times.tolist(), strict=True):
            counts[row][name] = int(times)
    assert [sum(words.values()) for words in counts] == index_terms.table.lengths.tolist()
    return counts


@pytest.fixture
def folder(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep an index of any size on disk, in a cache of the test's own."""
    monkeypatch.setattr(index, "LARGE", 0)
    return own_cache / "lexical"


@pytest.fixture
def tokenized(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the documents of each call that tokenizes some for the index."""
    calls, encode = list[int](), Vocabulary.encode

    def counting(self: Vocabulary, tokens: TokenCodes, *, grow: bool) -> Any:
        calls.extend([len(tokens.counts)] if grow else [])
        return encode(self, tokens, grow=grow)

    monkeypatch.setattr(Vocabulary, "encode", counting)
    return calls


class TestCounts:
    def test_terms_are_counted_by_document_in_the_least_room(self) -> None:
        texts = ("The cat sat; cats sit. CAT!", "", "of the", "a cat's hat")
        expected = [{"cat": 3, "sat": 1, "sit": 1}, {}, {}, {"cat": 1, "hat": 1}]
        assert counted(terms(collection(*texts), "english", "text")) == expected
        for times, kind in ((255, np.uint8), (256, np.uint16), (70_000, np.uint32)):
            index_terms = terms(collection("a " * times + "b", "b"), "whitespace", "text")
            assert counted(index_terms) == [{"a": times, "b": 1}, {"b": 1}]
            assert index_terms.table.times.dtype == kind

    def test_counts_are_shared_by_rankers_and_made_once(self, tokenized: list[int]) -> None:
        shared = toy()
        BM25(k1=0.9).rank(shared)
        TFIDF().rank(shared)
        assert tokenized == [shared.docs.height]

    @settings(max_examples=30)
    @given(
        texts=st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), min_size=1, max_size=9),
        chunk=st.integers(1, 5),
        memory=st.sampled_from([None, 1, 64 * 3]),
    )
    def test_no_size_of_a_block_shows(
        self, texts: list[list[str]], chunk: int, memory: int | None
    ) -> None:
        with pytest.MonkeyPatch.context() as patch, limit_memory(MemoryLimits(memory=memory)):
            patch.setattr(index, "CHUNK", chunk)
            index_terms = terms(
                collection(*(" ".join(words) for words in texts)), "whitespace", "text"
            )
        assert counted(index_terms) == [dict(Counter(words)) for words in texts]


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
        with limit_memory(MemoryLimits(memory=memory)):
            runs = [BM25().rank(collection(*TEXTS)) for _ in range(2)]
        assert runs == [usual, usual]
        assert {run.scores.tobytes() for run in runs} == {usual.scores.tobytes()}

    @pytest.mark.parametrize(
        ("texts", "analyzer"),
        [
            pytest.param((*TEXTS[:-1], "the  of"), "english", id="one blank more"),
            pytest.param(
                ("red apples apples", "", *TEXTS[2:]),
                "english",
                id="the same letters, divided otherwise",
            ),
            pytest.param((TEXTS[1], TEXTS[0], *TEXTS[2:]), "english", id="another order"),
            pytest.param(TEXTS, "whitespace", id="another analyzer"),
        ],
    )
    def test_contents_are_told(
        self, folder: Path, tokenized: list[int], texts: tuple[str, ...], analyzer: str
    ) -> None:
        terms(collection(*TEXTS), "english", "text")
        counts = counted(terms(collection(*texts), analyzer, "text"))
        assert len(tokenized) == 2
        assert counts == [counted(terms(collection(text), analyzer, "text"))[0] for text in texts]

    def test_only_texts_count_and_the_second_writer_takes_the_firsts(
        self, folder: Path, tokenized: list[int]
    ) -> None:
        terms(collection(*TEXTS), "english", "title+text")
        llm_docs = [{"id": f"x{n}", "text": text, "source": "llm"} for n, text in enumerate(TEXTS)]
        terms(collection_of(llm_docs, {"q": "red"}, {"q": {"x0": 1}}), "english", "text")
        assert len(tokenized) == 1
        texts = collection(*TEXTS)
        first = terms(texts, "english", "text")
        with IndexFolder.from_collection(texts, "english", "text").writing() as writer:
            second = index._build(pl.Series(TEXTS), "english", writer)
        assert counted(first) == counted(second)
        assert len(list(folder.iterdir())) == 1

    def test_folder_is_named_by_all_texts_that_are_indexed(self) -> None:
        def folder_of(documents: list[dict[str, str]], text: str) -> Path:
            rows = [{"id": f"d{n}", **document} for n, document in enumerate(documents)]
            return IndexFolder.from_collection(
                collection_of(rows, {"q": "red"}, {"q": {"d0": 1}}), "english", text
            ).path

        documents = [{"title": "red", "text": "a fox"}, {"title": "", "text": "a hen"}]
        other_title = [{**documents[0], "title": "blue"}, documents[1]]
        assert folder_of(documents, "text") == folder_of(other_title, "text")
        assert folder_of(documents, "title+text") != folder_of(other_title, "title+text")
        assert len({folder_of(documents, text) for text in ("title", "text", "title+text")}) == 3


class TestWhatGoesWrong:
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
    def test_a_damaged_index_is_made_anew(
        self, folder: Path, file: str, change: Any, tokenized: list[int]
    ) -> None:
        expected = counted(terms(collection(*TEXTS), "english", "text"))
        [path] = folder.iterdir()
        data = (path / file).read_bytes()
        (path / file).unlink()
        if change is not None:
            (path / file).write_bytes(change(data))
        with pytest.warns(DataWarning, match="rebuilding a damaged lexical index: "):
            assert counted(terms(collection(*TEXTS), "english", "text")) == expected
        again = terms(collection(*TEXTS), "english", "text")
        assert counted(again) == expected
        assert isinstance(again.table.rows, np.memmap)
        assert tokenized == [len(TEXTS)] * 2, "it is read without tokenizing"
        assert list(folder.iterdir()) == [path]
        assert {name.name for name in path.iterdir()} == {
            "about.json",
            "lengths.npy",
            "offsets.npy",
            "rows.npy",
            "terms.json",
            "times.npy",
        }

    def test_nothing_half_written_is_left(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stop(*_: Any) -> None:
            assert [path.suffix for path in folder.iterdir()] == [".tmp"], "what a kill would leave"
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(index, "report", stop)
            with pytest.raises(KeyboardInterrupt):
                terms(collection(*TEXTS), "english", "text")
        assert list(folder.iterdir()) == []
        with (
            no_room(100),
            pytest.raises(
                UserError, match=f"^{folder}: cannot be written: File too large.*RANKTILT_CACHE"
            ),
        ):
            terms(collection(*TEXTS), "whitespace", "text")
        assert list(folder.iterdir()) == []
        folder.rmdir()
        folder.write_text("a file where the folder should be")
        with pytest.raises(UserError, match=f"^{folder}: cannot be written: Not a directory"):
            terms(collection(*TEXTS), "english", "text")

    def test_small_index_is_built_in_memory_where_cache_cannot_be_written(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expected = counted(terms(collection(*TEXTS), "english", "text"))
        monkeypatch.setattr(index, "LARGE", 1 << 30)
        monkeypatch.setattr(index, "STORED", 0)
        with no_room(100):
            assert counted(terms(collection(*TEXTS), "whitespace", "text"))
        assert len(list(folder.iterdir())) == 1, "nothing half-written is left"
        shutil.rmtree(folder)
        with no_permission(folder.parent):
            assert counted(terms(collection(*TEXTS), "english", "text")) == expected
        folder.write_text("a file where the folder should be")
        assert counted(terms(collection(*TEXTS), "english", "text")) == expected

    def test_small_index_is_read_from_cache(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, tokenized: list[int]
    ) -> None:
        monkeypatch.setattr(index, "LARGE", 1 << 30)
        monkeypatch.setattr(index, "STORED", 0)
        indexes = [terms(collection(*TEXTS), "english", "text") for _ in range(2)]
        assert tokenized == [len(TEXTS)]
        assert counted(indexes[0]) == counted(indexes[1])

    def test_index_of_another_version_is_left_alone(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, tokenized: list[int]
    ) -> None:
        expected = counted(terms(collection(*TEXTS), "english", "text"))
        monkeypatch.setattr(indexfile, "version", lambda package: "0.0.1")
        assert counted(terms(collection(*TEXTS), "english", "text")) == expected
        assert tokenized == [len(TEXTS)] * 2
        assert len(list(folder.iterdir())) == 2


few = settings(max_examples=25)
tokens = st.lists(st.sampled_from("abcdefg"), max_size=8)
corpora = st.lists(tokens, min_size=1, max_size=8).filter(any)
queries = st.lists(st.sampled_from("abcdefgz"), max_size=5)
parameters = {"k1": st.floats(0, 4), "b": st.floats(0, 1)}
Weight = Callable[[float, float, float, int], float]
"""tf, length over mean length, number of documents, document frequency -> weight of a term."""


def scores(ranker: Ranker, corpus: list[list[str]], *queries: list[str]) -> list[dict[int, float]]:
    """Rank token lists; return row -> score for each query."""
    docs = [{"id": str(n), "text": " ".join(words)} for n, words in enumerate(corpus)]
    names = {f"q{n}": " ".join(words) for n, words in enumerate(queries)}
    run = ranker.rank(collection_of(docs, names, {query: {"0": 1} for query in names}))
    return [
        {int(row): score for row, score in ranked.items()} for ranked in scores_of(run).values()
    ]


def by_hand(corpus: list[list[str]], query: list[str], weight: Weight) -> dict[int, float]:
    """Sum the weights of a query's words, one at a time, over the documents that hold any
    of them.
    """
    mean = sum(map(len, corpus)) / len(corpus)
    sums = {}
    for row, words in enumerate(corpus):
        counts = Counter(words)
        shared = [word for word in query if word in counts]
        df = {word: sum(word in document for document in corpus) for word in shared}
        if shared:
            ratio = len(words) / mean
            sums[row] = math.fsum(weight(counts[w], ratio, len(corpus), df[w]) for w in shared)
    return sums


def close(values: dict[int, float], expected: dict[int, float]) -> bool:
    return values == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire"])
@few
@given(corpus=corpora, query=queries, **parameters)
def test_scores_are_those_of_bm25s(
    method: str, corpus: list[list[str]], query: list[str], k1: float, b: float
) -> None:
    theirs = bm25s.BM25(k1=k1, b=b, method=method, dtype="float64")
    theirs.index(corpus, show_progress=False)
    known = [word for word in query if any(word in words for words in corpus)]
    expected = theirs.get_scores(known) if known else np.zeros(len(corpus))
    ours = scores(BM25(k1=k1, b=b, method=method, analyzer="whitespace"), corpus, query)[0]
    assert set(ours) == {row for row, words in enumerate(corpus) if set(words) & set(query)}
    assert [ours.get(row, 0) for row in range(len(corpus))] == pytest.approx(
        expected.tolist(), rel=1e-5, abs=1e-5
    )


@few
@given(corpus=corpora, query=queries, delta=st.none() | st.floats(0, 2), **parameters)
def test_the_others_follow_their_papers(
    corpus: list[list[str]], query: list[str], delta: float | None, k1: float, b: float
) -> None:
    def bm25l(tf: float, ratio: float, n: float, df: int) -> float:
        shifted = tf / (1 - b + b * ratio) + (0.5 if delta is None else delta)
        return math.log((n + 1) / (df + 0.5)) * (k1 + 1) * shifted / (k1 + shifted)

    def bm25_plus(tf: float, ratio: float, n: float, df: int) -> float:
        saturated = (k1 + 1) * tf / (k1 * (1 - b + b * ratio) + tf)
        return math.log((n + 1) / df) * (saturated + (1.0 if delta is None else delta))

    def tfidf(tf: float, ratio: float, n: float, df: int) -> float:
        return (1 + math.log(tf)) * math.log(n / df)

    for method, weight in (("bm25l", bm25l), ("bm25+", bm25_plus)):
        ranker = BM25(k1=k1, b=b, method=method, delta=delta, analyzer="whitespace")
        assert close(scores(ranker, corpus, query)[0], by_hand(corpus, query, weight))
    assert close(
        scores(TFIDF(analyzer="whitespace"), corpus, query)[0], by_hand(corpus, query, tfidf)
    )


CORPUS = [["a", "a", "b"], ["a", "c", "c", "c", "c"], ["b"], []]
# N = 4, mean length 9/4; df a: 2, b: 2, c: 1.


def test_with_a_pencil() -> None:
    idf = math.log(1 + 2.5 / 2.5)
    first = 2 / (1.2 * (0.25 + 0.75 * 3 / 2.25) + 2)
    second = 1 / (1.2 * (0.25 + 0.75 * 5 / 2.25) + 1)
    assert close(
        scores(BM25(analyzer="whitespace"), CORPUS, ["a"])[0], {0: idf * first, 1: idf * second}
    )
    single, double = scores(TFIDF(analyzer="whitespace"), CORPUS, ["a"], ["c", "b"])
    assert close(single, {0: (1 + math.log(2)) * math.log(2), 1: math.log(2)})
    assert close(double, {1: (1 + math.log(4)) * math.log(4), 0: math.log(2), 2: math.log(2)})


RANKERS = [
    TFIDF(analyzer="whitespace"),
    *(BM25(method=m, analyzer="whitespace") for m in lexical._VARIANTS),
]
every_ranker = pytest.mark.parametrize("ranker", RANKERS, ids=repr)


@every_ranker
def test_a_word_of_no_weight_finds_its_documents_and_one_asked_twice_counts_twice(
    ranker: Ranker,
) -> None:
    weightless = scores(ranker, [["a", "b"], ["a", "c"], ["a"], ["d"]], ["a"], ["a", "b"])
    assert [set(rows) for rows in weightless] == [{0, 1, 2}, {0, 1, 2}]
    assert scores(ranker, [[], []], ["a"], []) == [{}, {}]
    once, twice = scores(ranker, CORPUS, ["a"], ["a", "a"])
    assert close(twice, {row: 2 * score for row, score in once.items()})


@every_ranker
def test_no_memory_changes_a_bit(ranker: Ranker) -> None:
    usual = ranker.rank(drawn_collection())
    assert len(usual.docs) > 500
    for memory in (1, 40 * 192):
        with limit_memory(MemoryLimits(memory=memory)):
            run = ranker.rank(drawn_collection())
        assert run == usual
        assert run.scores.tobytes() == usual.scores.tobytes()


@pytest.mark.parametrize("method", ["bm25", "tfidf"])
def test_the_cut_of_many_documents_is_that_of_all(method: str) -> None:
    draw = np.random.default_rng(0)
    docs = [
        {"id": f"d{n}", "text": " ".join(draw.choice(list("bcdefghijk"), 6))} for n in range(3000)
    ]
    collection = collection_of(
        docs, {"q1": "b", "q2": "b c d", "q3": "z"}, {q: {"d0": 1} for q in ("q1", "q2", "q3")}
    )
    uncut = entries(ranker(f"{method}@1000000").rank(collection))
    assert sum(map(len, uncut.values())) > 3000
    for k in (1, 5, 50):
        for query, best in entries(ranker(f"{method}@{k}").rank(collection)).items():
            assert best == uncut[query][: len(best)]
            assert len(best) >= k or query == "q3"


def drawn_collection(documents: int = 200, seed: int = 3) -> Collection:
    draw = np.random.default_rng(seed)
    words = np.array([f"w{n}" for n in range(30)])
    share = 1 / np.arange(1, 31) / (1 / np.arange(1, 31)).sum()
    texts = [
        " ".join(draw.choice(words, int(draw.integers(0, 25)), p=share)) for _ in range(documents)
    ]
    queries = {f"q{n}": " ".join(draw.choice([*words, "unknown"], 4)) for n in range(9)}
    docs = [{"id": f"d{n}", "text": text} for n, text in enumerate(texts)]
    return collection_of(docs, queries, {query: {"d0": 1} for query in queries})


@pytest.mark.parametrize("spec", ["bm25", "bm25(method=atire)", "tfidf"])
def test_candidates_get_the_scores_of_a_search_and_others_stay_tied_at_the_bottom(
    spec: str,
) -> None:
    collection = toy()
    searched = scores_of(ranker(spec).rank(collection))
    candidates = run_of(
        collection, {"q3": dict.fromkeys(collection.ids[::-1], 1.0), "q1": {"d2-human": 1.0}}
    )
    run = ranker(spec).rank(collection, candidates)
    expected = {name: searched["q3"].get(name, 0.0) for name in collection.ids}
    assert scores_of(run) == {"q3": expected, "q1": {"d2-human": 0.0}}
    assert 0.0 in expected.values()
    assert run.spec["candidates"] == candidates.spec
    assert len(ranker(f"{spec}@1").rank(collection, candidates).docs) == 2
