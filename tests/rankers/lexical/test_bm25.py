"""BM25 and TF-IDF: the same scores as bm25s, as the formulas in the papers, and as a pencil gives."""

import math
from collections import Counter
from collections.abc import Callable

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt import Collection, Ranker, ranker
from ranktilt.executing.memory_limits import MemoryLimits, limited
from ranktilt.rankers.lexical import bm25 as lexical
from ranktilt.rankers.lexical.bm25 import BM25, TFIDF
from ranktilt.rankers.lexical.index import terms
from tests.rankers.entries import entries
from tests.rankers.entries import scores as scores_of
from tests.toy import collection_of, run_of, toy

few = settings(max_examples=25)
tokens = st.lists(st.sampled_from("abcdefg"), max_size=8)
corpora = st.lists(tokens, min_size=1, max_size=8).filter(any)
queries = st.lists(st.sampled_from("abcdefgz"), max_size=5)
parameters = {"k1": st.floats(0, 4), "b": st.floats(0, 1)}
Weight = Callable[[float, float, float, int], float]
"""tf, length over mean length, number of documents, document frequency -> weight of a term."""


def scores(ranker: Ranker, corpus: list[list[str]], *asked: list[str]) -> list[dict[int, float]]:
    """Rank token lists; return row -> score for each query."""
    docs = [{"id": str(n), "text": " ".join(words)} for n, words in enumerate(corpus)]
    names = {f"q{n}": " ".join(words) for n, words in enumerate(asked)}
    run = ranker.rank(collection_of(docs, names, {query: {"0": 1} for query in names}))
    return [{int(row): score for row, score in found.items()} for found in scores_of(run).values()]


def by_hand(corpus: list[list[str]], query: list[str], weight: Weight) -> dict[int, float]:
    """Sum the weights of a query's words, one at a time, over the documents that hold any of them."""
    mean = sum(map(len, corpus)) / len(corpus)
    found = {}
    for row, words in enumerate(corpus):
        counts = Counter(words)
        shared = [word for word in query if word in counts]
        df = {word: sum(word in other for other in corpus) for word in shared}
        if shared:
            ratio = len(words) / mean
            found[row] = math.fsum(weight(counts[w], ratio, len(corpus), df[w]) for w in shared)
    return found


def close(found: dict[int, float], expected: dict[int, float]) -> bool:
    return found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire"])
@few
@given(corpus=corpora, query=queries, **parameters)
def test_bm25_gives_the_scores_of_bm25s(
    method: str, corpus: list[list[str]], query: list[str], k1: float, b: float
) -> None:
    theirs = bm25s.BM25(k1=k1, b=b, method=method, dtype="float64")
    theirs.index(corpus, show_progress=False)
    known = [word for word in query if any(word in words for words in corpus)]
    expected = theirs.get_scores(known) if known else np.zeros(len(corpus))
    ours = scores(BM25(k1=k1, b=b, method=method, analyzer="whitespace"), corpus, query)[0]
    assert set(ours) == {row for row, words in enumerate(corpus) if set(words) & set(query)}
    assert [ours.get(row, 0) for row in range(len(corpus))] == pytest.approx(expected.tolist(), rel=1e-5, abs=1e-5)


@few
@given(corpus=corpora, query=queries, delta=st.none() | st.floats(0, 2), **parameters)
def test_bm25l_and_bm25_plus_follow_their_papers(
    corpus: list[list[str]], query: list[str], delta: float | None, k1: float, b: float
) -> None:
    def bm25l(tf: float, ratio: float, n: float, df: int) -> float:
        shifted = tf / (1 - b + b * ratio) + (0.5 if delta is None else delta)
        return math.log((n + 1) / (df + 0.5)) * (k1 + 1) * shifted / (k1 + shifted)

    def bm25_plus(tf: float, ratio: float, n: float, df: int) -> float:
        saturated = (k1 + 1) * tf / (k1 * (1 - b + b * ratio) + tf)
        return math.log((n + 1) / df) * (saturated + (1.0 if delta is None else delta))

    for method, weight in (("bm25l", bm25l), ("bm25+", bm25_plus)):
        ranker = BM25(k1=k1, b=b, method=method, delta=delta, analyzer="whitespace")
        assert close(scores(ranker, corpus, query)[0], by_hand(corpus, query, weight))


@few
@given(corpus=corpora, query=queries)
def test_tfidf_follows_its_formula(corpus: list[list[str]], query: list[str]) -> None:
    def weight(tf: float, ratio: float, n: float, df: int) -> float:
        return (1 + math.log(tf)) * math.log(n / df)

    assert close(scores(TFIDF(analyzer="whitespace"), corpus, query)[0], by_hand(corpus, query, weight))


CORPUS = [["a", "a", "b"], ["a", "c", "c", "c", "c"], ["b"], []]
# N = 4, mean length 9/4; df a: 2, b: 2, c: 1.


def test_with_a_pencil() -> None:
    found = scores(BM25(analyzer="whitespace"), CORPUS, ["a"])[0]
    idf = math.log(1 + 2.5 / 2.5)
    first = 2 / (1.2 * (0.25 + 0.75 * 3 / 2.25) + 2)
    second = 1 / (1.2 * (0.25 + 0.75 * 5 / 2.25) + 1)
    assert close(found, {0: idf * first, 1: idf * second})
    found, other = scores(TFIDF(analyzer="whitespace"), CORPUS, ["a"], ["c", "b"])
    assert close(found, {0: (1 + math.log(2)) * math.log(2), 1: math.log(2)})
    assert close(other, {1: (1 + math.log(4)) * math.log(4), 0: math.log(2), 2: math.log(2)})


RANKERS = [TFIDF(analyzer="whitespace"), *(BM25(method=m, analyzer="whitespace") for m in lexical._VARIANTS)]
every_ranker = pytest.mark.parametrize("ranker", RANKERS, ids=repr)


@every_ranker
def test_a_word_of_no_weight_still_finds_its_documents_and_one_asked_twice_counts_twice(ranker: Ranker) -> None:
    found = scores(ranker, [["a", "b"], ["a", "c"], ["a"], ["d"]], ["a"], ["a", "b"])
    assert [set(rows) for rows in found] == [{0, 1, 2}, {0, 1, 2}]
    assert scores(ranker, [[], []], ["a"], []) == [{}, {}]
    once, twice = scores(ranker, CORPUS, ["a"], ["a", "a"])
    assert close(twice, {row: 2 * score for row, score in once.items()})


@pytest.mark.parametrize("method", ["bm25", "tfidf"])
def test_the_cut_of_many_documents_is_that_of_all(method: str) -> None:
    draw = np.random.default_rng(0)
    docs = [{"id": f"d{n}", "text": " ".join(draw.choice(list("bcdefghijk"), 6))} for n in range(3000)]
    collection = collection_of(docs, {"q1": "b", "q2": "b c d", "q3": "z"}, {q: {"d0": 1} for q in ("q1", "q2", "q3")})
    whole = entries(ranker(f"{method}@1000000").rank(collection))
    assert sum(map(len, whole.values())) > 3000
    for k in (1, 5, 50):
        for query, best in entries(ranker(f"{method}@{k}").rank(collection)).items():
            assert best == whole[query][: len(best)]
            assert len(best) >= k or query == "q3"


def of_all_terms(ranker: BM25 | TFIDF, collection: Collection) -> list[dict[int, float]]:
    """Weigh every term of every document as if all were asked for, then add up a query's terms by their numbers."""
    shared = terms(collection, ranker.analyzer, ranker.text)
    number = shared.vocabulary.terms
    every = shared.table.postings(np.arange(len(number)))
    weights = ranker.weights(every, shared.table.lengths.astype(np.float64))
    ends = np.concatenate([[0], np.cumsum(every.sizes)])
    found = []
    for text in collection.judged["text"]:
        words = Counter(text.split())
        scores: dict[int, float] = {}
        for name in sorted(set(words) & set(number), key=number.__getitem__):
            for entry in range(ends[number[name]], ends[number[name] + 1]):
                row = int(every.rows[entry])
                scores[row] = scores.get(row, 0.0) + words[name] * float(weights[entry])
        found.append(scores)
    return found


def drawn_collection(documents: int, seed: int) -> Collection:
    draw = np.random.default_rng(seed)
    words = np.array([f"w{n}" for n in range(30)])
    share = 1 / np.arange(1, 31) / (1 / np.arange(1, 31)).sum()
    docs = [
        {"id": f"d{n}", "text": " ".join(draw.choice(words, int(draw.integers(0, 25)), p=share))}
        for n in range(documents)
    ]
    asked = {f"q{n}": " ".join(draw.choice([*words, "unknown"], 4)) for n in range(9)}
    return collection_of(docs, asked, {q: {"d0": 1} for q in asked})


@every_ranker
@pytest.mark.parametrize("memory", [None, 1, 40 * 192])
def test_weighing_only_the_queries_terms_changes_no_bit(ranker: BM25 | TFIDF, memory: int | None) -> None:
    collection = drawn_collection(200, 3)
    with limited(MemoryLimits(memory)):
        run = ranker.rank(collection)
    for found, expected in zip(scores_of(run).values(), of_all_terms(ranker, collection), strict=True):
        assert found == {f"d{row}": score for row, score in expected.items()}


@pytest.mark.parametrize("spec", ["bm25", "bm25(method=atire)", "tfidf"])
def test_candidates_get_the_scores_of_a_search_and_others_stay_tied_at_the_bottom(spec: str) -> None:
    collection = toy()
    searched = scores_of(ranker(spec).rank(collection))
    candidates = run_of(collection, {"q3": dict.fromkeys(collection.ids[::-1], 1.0), "q1": {"d2-human": 1.0}})
    run = ranker(spec).rank(collection, candidates)
    expected = {name: searched["q3"].get(name, 0.0) for name in collection.ids}
    assert scores_of(run) == {"q3": expected, "q1": {"d2-human": 0.0}}
    assert 0.0 in expected.values()
    assert run.spec["candidates"] == candidates.spec
    assert len(ranker(f"{spec}@1").rank(collection, candidates).docs) == 2
