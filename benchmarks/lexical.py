"""Lexical ranking and the whole lexical audit beside bm25s and beside rank_bm25 with pytrec_eval.

Each contender runs in a process of its own, imports not timed. Three things are measured: the whole
audit on NFCorpus (TF-IDF and BM25, 6 measures, 10,000 resamples) beside one pass of bm25s;
tokenizing, indexing and searching a generated collection of NQ320K's size; peak memory.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    ABSENT,
    TINY,
    Contender,
    Measured,
    Watch,
    alternating,
    arguments,
    compete,
    fresh,
    machine,
    memory,
    nfcorpus,
    publish,
    read_folder,
    say,
    seconds,
    table,
    target,
)

PACKAGES = (
    "ranktilt",
    "numpy",
    "scipy",
    "polars",
    "bm25s",
    "PyStemmer",
    "rank-bm25",
    "nltk",
    "pytrec_eval-terrier",
)
PARTS = ("tokenize", "index", "search", "evaluate")
DEPTH = 1000
SAMPLED_QUERIES = 30
SAMPLED_DOCUMENTS = 2000
MEASURES = ("ndcg_cut.1,3,5", "map_cut.1,3,5")
Tokenizer = Callable[[str], list[str]]


def prepare(folder: Path, args: argparse.Namespace) -> Measured:
    """Write the collection that all contenders read into a BEIR folder."""
    import generate

    import ranktilt as rt

    data = nfcorpus()
    if folder.name == "nfcorpus" and data is not None:
        rt.save(rt.load(data), folder)
    else:
        rt.save(
            generate.collection(generate.QUICK if folder.name == "quick" else generate.FULL), folder
        )
    return {}


def ours_audit(folder: Path, args: argparse.Namespace) -> Measured:
    """Audit two lexical rankers that share their tokens, from the loaded collection to the
    table.
    """
    import ranktilt as rt
    from ranktilt.auditing.audit import audit
    from ranktilt.rankers.lexical.bm25 import BM25, TFIDF
    from ranktilt.rankers.lexical.index import terms

    os.environ["RANKTILT_CACHE"] = tempfile.mkdtemp(dir=folder.parent)  # no index of an earlier run
    watch = Watch()
    with watch("load"):
        collection = rt.load(folder)
    with watch("tokenize"):
        terms(collection, BM25().analyzer, BM25().text)
    with watch("search"):
        runs = [TFIDF().rank(collection), BM25().rank(collection)]
    with watch("evaluate"):
        audit(collection, runs, resamples=10_000)
    return watch.parts


def ours_search(folder: Path, args: argparse.Namespace) -> Measured:
    """Tokenize and index in one go, then search with BM25."""
    import ranktilt as rt
    from ranktilt.rankers.lexical.bm25 import BM25
    from ranktilt.rankers.lexical.index import terms

    os.environ["RANKTILT_CACHE"] = tempfile.mkdtemp(dir=folder.parent)  # no index of an earlier run
    watch, bm25 = Watch(), BM25(k=DEPTH)
    with watch("load"):
        collection = rt.load(folder)
    with watch("tokenize"):
        terms(collection, bm25.analyzer, bm25.text)
    with watch("search"):
        run = bm25.rank(collection)
    return {**watch.parts, "queries": len(run.queries)}


def bm25s_pass(folder: Path, args: argparse.Namespace) -> Measured:
    """Run bm25s once over everything: stop words, Porter stemmer, numpy backend."""
    import bm25s
    import Stemmer

    docs, queries, _ = read_folder(folder)
    texts, query_texts = list(docs.values()), list(queries.values())
    watch, stemmer = Watch(), Stemmer.Stemmer("porter")
    with watch("tokenize"):
        tokens = bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)
    with watch("index"):
        index = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numpy")
        index.index(tokens, show_progress=False)
    with watch("search"):
        questions = bm25s.tokenize(
            query_texts, stopwords="en", stemmer=stemmer, show_progress=False
        )
        depth = min(DEPTH, len(texts))
        index.retrieve(questions, k=depth, show_progress=False, backend_selection="numpy")
    return watch.parts


def rank_bm25_audit(folder: Path, args: argparse.Namespace) -> Measured:
    """Follow the papers' code: NLTK's words, rank_bm25 query by query, pytrec_eval for each source;
    one ranker.
    """
    import pytrec_eval  # noqa: F401
    from rank_bm25 import BM25Okapi

    docs, queries, qrels = read_folder(folder)
    ids, nltk_words, watch = list(docs), _nltk_words(), Watch()
    with watch("tokenize"):
        tokens = [nltk_words(text) for text in docs.values()]
    with watch("index"):
        index = BM25Okapi(tokens)
    run = {}
    with watch("search"):
        for query, text in queries.items():
            best, scores = _best(index, nltk_words(text))
            run[query] = {ids[d]: float(scores[d]) for d in best}
    with watch("evaluate"):
        _trec_means(run, qrels, {name.rpartition("-")[2] for name in ids})
    return watch.parts


def rank_bm25_search(folder: Path, args: argparse.Namespace) -> Measured:
    """Time rank_bm25 on a sample of queries over the whole index, NLTK on a sample of documents,
    and scale.
    """
    from rank_bm25 import BM25Okapi

    docs, queries, _ = read_folder(folder)
    nltk_words, stop, watch = _nltk_words(), _stop_words(), Watch()
    sample = list(islice(docs.values(), SAMPLED_DOCUMENTS))
    with watch("tokenize"):
        for text in sample:
            nltk_words(text)
    with watch("split"):
        tokens = [[w for w in text.split() if w not in stop] for text in docs.values()]
    with watch("index"):
        index = BM25Okapi(tokens)
    query_texts = list(islice(queries.values(), SAMPLED_QUERIES))
    with watch("search"):
        for text in query_texts:
            _best(index, nltk_words(text))
    parts = watch.parts
    parts["tokenize"] *= len(docs) / len(sample)
    parts["search"] *= len(queries) / len(query_texts)
    return parts


def _stop_words() -> frozenset[str]:
    from ranktilt.data.text.analyzers import stop_words

    return stop_words("nltk")


def _nltk_words() -> Tokenizer:
    """NLTK's ``word_tokenize`` (Punkt, Treebank) without stop words; no lower case, no stemming."""
    from nltk.tokenize.destructive import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    sentences, words, stop = PunktSentenceTokenizer(), NLTKWordTokenizer(), _stop_words()

    def tokens(text: str) -> Iterator[str]:
        for sentence in sentences.tokenize(text):
            yield from words.tokenize(sentence)

    return lambda text: [t for t in tokens(text) if t not in stop]


def _best(index: Any, query: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the best documents, and the scores of all."""
    scores = index.get_scores(query)
    depth = min(DEPTH, len(scores))
    best = np.argpartition(scores, len(scores) - depth)[len(scores) - depth :]
    return best[np.argsort(-scores[best])], scores


def _trec_means(
    run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]], sources: set[str]
) -> None:
    import pytrec_eval

    for source in sources:
        mine = {
            q: {d: g for d, g in judged.items() if d.endswith(source)}
            for q, judged in qrels.items()
        }
        values = pytrec_eval.RelevanceEvaluator(
            {q: j for q, j in mine.items() if j}, set(MEASURES)
        ).evaluate(run)
        for name in next(iter(values.values())):
            pytrec_eval.compute_aggregated_measure(name, [v[name] for v in values.values()])


CONTENDERS: dict[str, Contender] = {
    "prepare": prepare,
    "ranktilt-audit": ours_audit,
    "ranktilt": ours_search,
    "bm25s": bm25s_pass,
    "rank_bm25-audit": rank_bm25_audit,
    "rank_bm25": rank_bm25_search,
}
LABELS = {
    "ranktilt-audit": "ranktilt: whole audit of 2 rankers, with intervals and tests",
    "ranktilt": "ranktilt: BM25",
    "bm25s": "bm25s, numpy backend: 1 ranker, no evaluation",
    "rank_bm25-audit": "rank_bm25 + pytrec_eval: 1 ranker, point values",
    "rank_bm25": "rank_bm25 (samples, scaled)",
}


def _total(measured: Measured) -> float:
    return sum(measured.get(part, 0.0) for part in PARTS)


def _rows(measured: dict[str, Measured]) -> list[list[str]]:
    return [
        [
            LABELS[name],
            *(seconds(m.get(part)) for part in PARTS),
            seconds(_total(m)),
            memory(m["peak"]),
        ]
        for name, m in measured.items()
    ]


def audit_section(folder: Path, name: str, rounds: int) -> str:
    """Measure the whole audit and say how it stands to one pass of bm25s."""
    measured = alternating(__file__, ("ranktilt-audit", "bm25s", "rank_bm25-audit"), folder, rounds)
    ours, peer, papers = (_total(m) for m in measured.values())
    load = measured["ranktilt-audit"]["load"]
    return "\n".join(
        [
            f"## Whole lexical audit: {name}",
            "",
            machine(PACKAGES),
            "",
            f"Seconds, median of {rounds}, contenders taking turns:",
            "",
            table(["contender", *PARTS, "total", "peak memory"], _rows(measured)),
            "",
            target("whole audit / one bm25s pass", ours / peer, at_most=2, unit="×"),
            (
                "- rank_bm25 + pytrec_eval for one ranker / whole audit of two: "
                f"{seconds(papers / ours)}×"
            ),
            f"- not counted: imports; reading the collection ({seconds(load)} s for ranktilt); "
            "ranktilt indexes while "
            "it tokenizes",
        ]
    )


def size_section(folder: Path, name: str) -> str:
    """Measure tokenizing, indexing and searching at size."""
    measured = {}
    for contender in ("ranktilt", "bm25s", "rank_bm25", "ranktilt-audit"):
        say(f"{name}: {contender}")
        measured[contender] = fresh(__file__, contender, folder)
    audit_figures = measured.pop("ranktilt-audit")
    ours, fast, slow = measured.values()
    times_per_query = ", ".join(
        f"{n} {seconds(1000 * m['search'] / ours['queries'])} ms" for n, m in measured.items()
    )
    by_space = slow["split"] + slow["index"] + slow["search"]
    return "\n".join(
        [
            f"## Tokenize, index, search: {name}",
            "",
            machine(PACKAGES),
            "",
            "Seconds, one run:",
            "",
            table(
                ["contender", *PARTS[:3], "total", "peak memory"],
                [[*r[:4], *r[5:]] for r in _rows(measured)],
            ),
            "",
            f"- a query: {times_per_query}",
            target(
                "search, against rank_bm25", slow["search"] / ours["search"], at_least=150, unit="×"
            ),
            target(
                "tokenize + index + search, against rank_bm25",
                _total(slow) / _total(ours),
                at_least=40,
                unit="×",
            ),
            f"- the same with rank_bm25's words split on white space ({seconds(slow['split'])} s) "
            "instead of by NLTK: "
            f"{seconds(by_space / _total(ours))}×",
            f"- against bm25s: search {seconds(fast['search'] / ours['search'])}×, tokenize + "
            "index + search "
            f"{seconds(_total(fast) / _total(ours))}×",
            target("peak memory of ranktilt", ours["peak"] / 1e9, at_most=4, unit=" GB"),
            "- the whole audit here (TF-IDF and BM25, 6 measures, 10,000 resamples): "
            f"{seconds(_total(audit_figures))} s, "
            f"{memory(audit_figures['peak'])}",
            f"- rank_bm25: {SAMPLED_QUERIES} queries over the whole index and NLTK on "
            f"{SAMPLED_DOCUMENTS:,} documents, "
            "scaled to all; its index is made from words split on white space without NLTK's stop "
            "words",
            f"- not counted: imports; reading the collection ({seconds(ours['load'])} s for "
            "ranktilt); texts are in "
            "every peak; ranktilt indexes while it tokenizes, and writes the index to disk",
        ]
    )


def main() -> None:
    """Measure everything and write both sections."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="of the whole audit")
    parser.add_argument("--only", choices=("nfcorpus", "nq"), help="one of the two collections")
    args = parser.parse_args()
    if args.contender:
        compete(args, CONTENDERS)
        return
    with tempfile.TemporaryDirectory() as temporary:
        if args.only != "nq":
            publish("lexical-audit", _audit(Path(temporary), args), args)
        if args.only != "nfcorpus":
            publish("lexical-size", _size(Path(temporary), args), args)


def _audit(temporary: Path, args: argparse.Namespace) -> str:
    if args.quick:
        fresh(__file__, "prepare", temporary / "quick")
        return audit_section(temporary / "quick", TINY, 1)
    if nfcorpus() is None:
        return f"## Whole lexical audit\n\n{ABSENT}"
    fresh(__file__, "prepare", temporary / "nfcorpus")
    return audit_section(
        temporary / "nfcorpus", "NFCorpus (2 × 3,633 documents, 323 queries)", args.rounds
    )


def _size(temporary: Path, args: argparse.Namespace) -> str:
    if args.quick:
        fresh(__file__, "prepare", temporary / "quick")
        return size_section(temporary / "quick", TINY)
    say("generating")
    fresh(__file__, "prepare", temporary / "generated")
    return size_section(
        temporary / "generated", "generated, 2 × 109,739 documents of 190 words, 7,830 queries"
    )


if __name__ == "__main__":
    main()
