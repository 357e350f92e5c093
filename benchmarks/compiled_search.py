"""Warm BM25 search beside its compiled peers: every build of bm25s, tantivy and PISA.

A collection of NQ320K's size is generated. Each contender runs in a process of its own, searches
all queries once to warm up, and then again at two depths. The lists of the compiled and of the
plain search of ranktilt are compared. tantivy and PISA are measured where they are installed
(``pip install tantivy pyterrier-pisa``).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from common import (
    TINY,
    Contender,
    Measured,
    Watch,
    arguments,
    compete,
    fresh,
    machine,
    memory,
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
    "numba",
    "polars",
    "bm25s",
    "PyStemmer",
    "tantivy",
    "pyterrier-pisa",
)
DEPTHS = (1000, 100)
ROUNDS = 3


def prepare(folder: Path, args: argparse.Namespace) -> Measured:
    """Write the collection that all contenders read."""
    import generate

    import ranktilt as rt

    size = generate.QUICK if folder.name == "quick" else generate.FULL
    rt.save(generate.collection(size), folder)
    return {}


def warm(search: Callable[[int], object], query_count: int) -> Measured:
    """Return milliseconds a query at each depth, the least of some rounds after a first one."""
    measured: Measured = {}
    for depth in DEPTHS:
        search(depth)
        times = []
        for _ in range(ROUNDS):
            watch = Watch()
            with watch("search"):
                search(depth)
            times.append(watch.parts["search"])
        measured[f"k{depth}"] = 1000 * min(times) / query_count
    return measured


def ours(folder: Path, args: argparse.Namespace) -> Measured:
    """Index and search with ranktilt; as many threads as polars may have."""
    import ranktilt as rt
    from ranktilt.rankers.lexical import searching
    from ranktilt.rankers.lexical.bm25 import BM25
    from ranktilt.rankers.lexical.compiler import Compiler
    from ranktilt.rankers.lexical.index import terms

    os.environ["RANKTILT_CACHE"] = tempfile.mkdtemp(dir=folder.parent)  # no index of an earlier run
    searching.COMPILED_FROM = 0
    if args.contender == "ranktilt-numpy":
        searching.compiler = lambda: Compiler(search_lists=None, reason="a benchmark of numpy")
    collection, watch = rt.load(folder), Watch()
    with watch("index"):
        terms(collection, BM25().analyzer, BM25().text)
    with watch("first"):
        run = BM25(k=DEPTHS[0]).rank(collection)
    digest = hashlib.sha256(run.docs.tobytes() + run.scores.tobytes()).hexdigest()
    times = warm(lambda depth: BM25(k=depth).rank(collection), len(run.queries))
    return {**watch.parts, **times, "digest": float(int(digest[:12], 16))}


def bm25s_search(folder: Path, args: argparse.Namespace) -> Measured:
    """Index and search with bm25s; the contender's name says how."""
    import bm25s
    import Stemmer

    _, backend, threads = args.contender.split("-")
    docs, queries, _ = read_folder(folder)
    texts, stemmer, watch = list(docs.values()), Stemmer.Stemmer("porter"), Watch()
    with watch("index"):
        tokens = bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)
        index = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend=backend)
        index.index(tokens, show_progress=False)

    def search(depth: int) -> object:
        questions = bm25s.tokenize(
            list(queries.values()), stopwords="en", stemmer=stemmer, show_progress=False
        )
        return index.retrieve(
            questions,
            k=min(depth, len(texts)),
            show_progress=False,
            n_threads=int(threads),
            backend_selection=backend,
        )

    with watch("first"):
        search(DEPTHS[0])
    return {**watch.parts, **warm(search, len(queries))}


def tantivy_search(folder: Path, args: argparse.Namespace) -> Measured:
    """Index and search with tantivy, whose Python package searches in one thread."""
    import tantivy

    docs, queries, _ = read_folder(folder)
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=False, tokenizer_name="en_stem", index_option="freq")
    watch = Watch()
    with watch("index"):
        index = tantivy.Index(builder.build())
        writer = index.writer(heap_size=1_000_000_000)
        for text in docs.values():
            writer.add_document(tantivy.Document(text=text))
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
    searcher = index.searcher()

    def search(depth: int) -> object:
        for text in queries.values():
            # Marks of its query language are no words.
            words = "".join(letter if letter.isalnum() else " " for letter in text)
            query, _ = index.parse_query_lenient(words, ["text"])
            searcher.search(query, limit=depth, count=False)
        return None

    with watch("first"):
        search(DEPTHS[0])
    return {**watch.parts, **warm(search, len(queries))}


def pisa_search(folder: Path, args: argparse.Namespace) -> Measured:
    """Index and search with PISA through PyTerrier; the contender's name ends with its threads."""
    import pandas as pd
    from pyterrier_pisa import PisaIndex

    threads = int(args.contender.rpartition("-")[2])
    docs, queries, _ = read_folder(folder)
    topics = pd.DataFrame({"qid": list(queries), "query": list(queries.values())})
    path, watch = tempfile.mkdtemp(dir=folder.parent), Watch()
    with watch("index"):
        index = PisaIndex(path, stemmer="porter2", overwrite=True, threads=2)
        index.index({"docno": name, "text": text} for name, text in docs.items())

    def search(depth: int) -> object:
        ranker = index.bm25(k1=1.2, b=0.75, num_results=depth, threads=threads, verbose=False)
        return ranker(topics)

    with watch("first"):
        search(DEPTHS[0])
    return {**watch.parts, **warm(search, len(queries))}


LABELS = {
    "ranktilt-2": "ranktilt, compiled, 2 threads",
    "ranktilt-1": "ranktilt, compiled, 1 thread",
    "ranktilt-numpy": "ranktilt, numpy",
    "bm25s-numba-2": "bm25s, numba, 2 threads",
    "bm25s-numba-1": "bm25s, numba, 1 thread",
    "bm25s-numpy-0": "bm25s, numpy",
    "tantivy-1": "tantivy, 1 thread",
    "pisa-2": "PISA, 2 threads",
    "pisa-1": "PISA, 1 thread",
}
SEARCHES = {
    "ranktilt": ours,
    "bm25s": bm25s_search,
    "tantivy": tantivy_search,
    "pisa": pisa_search,
}
"""What measures a contender, by the first part of its name."""
PEER_MODULES = {"tantivy": "tantivy", "pisa": "pyterrier_pisa"}
"""Modules of peers that need not be installed."""
CONTENDERS: dict[str, Contender] = {
    "prepare": prepare,
    **{name: SEARCHES[name.partition("-")[0]] for name in LABELS},
}


def is_installed(contender: str) -> bool:
    """Tell whether a contender can be measured here."""
    module = PEER_MODULES.get(contender.partition("-")[0])
    return module is None or find_spec(module) is not None


def section(folder: Path, name: str) -> str:
    """Measure every contender once and say how ranktilt compares with the fastest."""
    measured: dict[str, Measured] = {}
    for contender in filter(is_installed, LABELS):
        say(f"{name}: {contender}")
        os.environ["POLARS_MAX_THREADS"] = "1" if contender.endswith("-1") else "2"
        measured[contender] = fresh(__file__, contender, folder)
    rows = [
        [
            LABELS[contender],
            *(seconds(figures[part]) for part in ("index", "first", "k1000", "k100")),
            memory(figures["peak"]),
        ]
        for contender, figures in measured.items()
    ]
    same = measured["ranktilt-2"]["digest"] == measured["ranktilt-numpy"]["digest"]
    ratios = [
        target(
            f"bm25s with numba / ranktilt, {threads} thread(s), k = {depth}",
            measured[f"bm25s-numba-{threads}"][f"k{depth}"]
            / measured[f"ranktilt-{threads}"][f"k{depth}"],
            at_least=1,
            unit="×",
        )
        for threads in (2, 1)
        for depth in DEPTHS
    ]
    index_ratio = measured["bm25s-numba-2"]["index"] / measured["ranktilt-2"]["index"]
    columns = ["contender", "tokenize + index, s", "first search, s", "k = 1000, ms a query"]
    return "\n".join(
        [
            f"## Compiled search: {name}",
            "",
            machine(PACKAGES),
            "",
            f"Warm search of all queries, the least of {ROUNDS}:",
            "",
            table([*columns, "k = 100, ms a query", "peak memory"], rows),
            "",
            *ratios,
            target("tokenize + index, against bm25s", index_ratio, at_least=3, unit="×"),
            f"- lists of the compiled and the plain search: {'equal' if same else 'DIFFERENT'}",
            "- the queries' tokens are made anew in each search of every contender",
        ]
    )


def main() -> None:
    """Measure everything and write the section."""
    args = arguments(__doc__.splitlines()[0]).parse_args()
    if args.contender:
        compete(args, CONTENDERS)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / ("quick" if args.quick else "generated")
        say("generating")
        fresh(__file__, "prepare", folder)
        name = TINY if args.quick else "generated, 2 × 109,739 documents, 7,830 queries"
        publish("compiled-search", section(folder, name), args)


if __name__ == "__main__":
    main()
