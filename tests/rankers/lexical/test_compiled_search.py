"""The compiled search returns the lists of numpy, to the last bit."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ranktilt import Collection, Run, ranker
from ranktilt.cli.tools.doctor import machine
from ranktilt.parallel.memory_limits import MemoryLimits, limit_memory
from ranktilt.rankers.lexical import compiler as compilers
from ranktilt.rankers.lexical import searching
from ranktilt.rankers.lexical.compiler import Compiler, compiler
from tests.toy import collection_of

RANKERS = ("bm25", "tfidf", "bm25(method=robertson)", "bm25(method=bm25+)")
DEPTHS = (1, 3, 20, 1000)


def random_collection(seed: int, *, documents: int, words: int) -> Collection:
    """Return short texts of few words, many of them equal, and queries that repeat words."""
    rng = np.random.default_rng(seed)
    vocabulary = np.array([f"w{number}" for number in range(words)])
    # Squares make the first words frequent, so that some are in most documents.
    lengths = rng.integers(0, 5, documents)
    texts = [" ".join(vocabulary[(words * rng.random(n) ** 2).astype(int)]) for n in lengths]
    docs = [{"id": f"d{number}", "text": text} for number, text in enumerate(texts)]
    queries = {
        f"q{number}": " ".join(rng.choice(vocabulary, rng.integers(1, 6))) for number in range(12)
    }
    return collection_of(docs, queries, {query: {"d0": 1} for query in queries})


def ranked(collection: Collection, spec: str, monkeypatch: pytest.MonkeyPatch, least: int) -> Run:
    """Rank with the compiled search from so many additions."""
    monkeypatch.setattr(searching, "COMPILED_FROM", least)
    return ranker(spec).rank(collection)


def assert_same_lists(run: Run, expected: Run) -> None:
    """Compare lists and scores to the last bit."""
    assert run.offsets.tolist() == expected.offsets.tolist()
    assert run.docs.tolist() == expected.docs.tolist()
    assert run.docs.dtype == expected.docs.dtype
    assert run.scores.tobytes() == expected.scores.tobytes()


@pytest.mark.parametrize("seed", range(200))
def test_compiled_lists_equal_numpy_lists(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Many words make short postings, few make long ones: each has a loop of its own.
    collection = random_collection(
        seed, documents=int(1 + 60 * (seed % 7)), words=4 if seed % 2 else 60
    )
    spec = f"{RANKERS[seed % 4]}@{DEPTHS[seed // 4 % 4]}"
    expected = ranked(collection, spec, monkeypatch, 1 << 60)
    assert_same_lists(ranked(collection, spec, monkeypatch, 0), expected)


@pytest.mark.parametrize("depth", [1, 5, 40])
@pytest.mark.parametrize("words", [3, 30])
def test_compiled_lists_equal_numpy_lists_of_many_documents(
    depth: int, words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = random_collection(7, documents=4000, words=words)
    expected = ranked(collection, f"bm25@{depth}", monkeypatch, 1 << 60)
    assert_same_lists(ranked(collection, f"bm25@{depth}", monkeypatch, 0), expected)


def test_compiled_search_returns_documents_of_weightless_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    docs = [{"id": name, "text": text} for name, text in zip("abc", ["x y", "x", "x"], strict=True)]
    collection = collection_of(docs, {"q": "x y"}, {"q": {"a": 1}})
    run = ranked(collection, "tfidf", monkeypatch, 0)
    assert collection.ids[int(run.docs[0])] == "a"
    assert run.scores.tolist() == [np.log(3), 0.0, 0.0]


@pytest.mark.parametrize("spec", ["bm25@10", "bm25@500", "tfidf@40", "bm25(k1=0)@3"])
def test_compiled_lists_equal_numpy_lists_of_several_blocks(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Three blocks; words in most documents are looked up, as rare ones fill the lists.
    rng = np.random.default_rng(11)
    shares = [0.9, 0.6, 0.3, 0.1, 0.01, 0.002, 0.0005]
    holds = rng.random((70_000, len(shares))) < shares
    words = np.array([f"w{number}" for number in range(len(shares))])
    texts = [" ".join(np.repeat(words[row], 1 + number % 3)) for number, row in enumerate(holds)]
    docs = [{"id": f"d{number}", "text": text} for number, text in enumerate(texts)]
    queries = {
        "all": "w0 w1 w2 w3 w4 w5 w6",
        "rare first": "w6 w5 w0 w1",
        "rare last": "w0 w0 w1 w5",
        "frequent": "w0 w1",
        "rare": "w6",
        "unknown": "w7",
    }
    collection = collection_of(docs, queries, {query: {"d0": 1} for query in queries})
    expected = ranked(collection, spec, monkeypatch, 1 << 60)
    assert_same_lists(ranked(collection, spec, monkeypatch, 0), expected)


def test_compiled_list_holds_all_equal_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    # Copies have equal scores and keys: one list of 300 documents where 64 queries ask for one.
    docs = [{"id": f"d{number}", "text": "x y"} for number in range(300)]
    docs += [{"id": f"e{number}", "text": "z"} for number in range(300)]
    queries = {f"q{number}": "x" for number in range(64)}
    collection = collection_of(docs, queries, {query: {"d0": 1} for query in queries})
    expected = ranked(collection, "bm25@1", monkeypatch, 1 << 60)
    assert len(expected.docs) == 300 * 64
    assert_same_lists(ranked(collection, "bm25@1", monkeypatch, 0), expected)


def test_compiled_search_drops_own_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    collection = random_collection(3, documents=80, words=6)
    expected = ranked(collection, "bm25(exclude_self=true)@4", monkeypatch, 1 << 60)
    assert_same_lists(ranked(collection, "bm25(exclude_self=true)@4", monkeypatch, 0), expected)


def test_compiled_search_is_same_in_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    collection = random_collection(5, documents=200, words=10)
    expected = ranked(collection, "bm25", monkeypatch, 0)
    with limit_memory(MemoryLimits(memory=1000)):
        assert_same_lists(ranked(collection, "bm25", monkeypatch, 0), expected)


def test_small_collection_does_not_load_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Compiler:
        raise AssertionError("the compiler was loaded")

    monkeypatch.setattr(searching, "compiler", refuse)
    assert len(ranker("bm25").rank(random_collection(1, documents=50, words=5)).docs)


class TestWithoutNumba:
    def run_python(self, code: str, **environment: str) -> str:
        ended = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        return ended.stdout

    def test_missing_numba_is_reason(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compilers, "find_spec", lambda name: None)
        compiler.cache_clear()
        try:
            assert compiler() == Compiler(search_lists=None, reason="numba is not installed")
            assert dict(machine())["lexical search"] == "numpy: numba is not installed"
        finally:
            compiler.cache_clear()

    def test_search_goes_on_where_numba_is_broken(self, tmp_path: Path) -> None:
        (tmp_path / "numba").mkdir()
        (tmp_path / "numba" / "__init__.py").write_text("raise ImportError('Numba needs NumPy 1')")
        code = (
            "import ranktilt as rt; from ranktilt.rankers.lexical import searching; "
            "searching.COMPILED_FROM = 0; run = rt.ranker('bm25').rank(rt.bundled()); "
            "print(len(run.queries), searching.compiler().reason)"
        )
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        expected = "216 numba cannot be used: Numba needs NumPy 1\n"
        assert self.run_python(code, PYTHONPATH=path) == expected

    def test_search_goes_on_where_numba_is_old(self, tmp_path: Path) -> None:
        (tmp_path / "numba").mkdir()
        (tmp_path / "numba" / "__init__.py").write_text("__version__ = '0.59.1'")
        code = (
            "import ranktilt as rt; from ranktilt.rankers.lexical import searching; "
            "searching.COMPILED_FROM = 0; run = rt.ranker('bm25').rank(rt.bundled()); "
            "print(len(run.queries), searching.compiler().reason)"
        )
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        expected = "216 numba 0.59.1 is too old; pip install 'ranktilt[fast]'\n"
        assert self.run_python(code, PYTHONPATH=path) == expected

    @pytest.mark.long
    def test_search_compiles_without_cache_folder(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("no folder")
        code = (
            "import ranktilt as rt; from ranktilt.rankers.lexical import searching; "
            "searching.COMPILED_FROM = 0; run = rt.ranker('bm25').rank(rt.bundled()); "
            "print(len(run.queries), searching.compiler().search_lists is not None)"
        )
        cache = str(tmp_path / "file" / "cache")
        assert self.run_python(code, NUMBA_CACHE_DIR=cache) == "216 True\n"

    @pytest.mark.long
    def test_search_compiles_where_cache_folder_is_full(self, tmp_path: Path) -> None:
        code = (
            "import resource; import ranktilt as rt; "
            "from ranktilt.rankers.lexical import searching; "
            "searching.COMPILED_FROM = 0; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
            "run = rt.ranker('bm25').rank(rt.bundled()); "
            "print(len(run.queries), searching.compiler().search_lists is not None)"
        )
        assert self.run_python(code, NUMBA_CACHE_DIR=str(tmp_path)) == "216 True\n"
        assert not list(tmp_path.rglob("*.nbc")), "the compiled code was not stored"
