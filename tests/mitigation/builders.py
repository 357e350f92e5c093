"""Lists of groups as strings, texts of rare and common words, and a ranker that knows these."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from ranktilt import Collection, Ranker, Run
from ranktilt.explaining.perplexity import PerplexityProbe
from ranktilt.mitigation.causal import perplexities
from ranktilt.rankers.base import cut
from tests.toy import collection_of

GROUPS = {"h": "human", "l": "llm", "g": "gpt", ".": ""}
"""`hl.` is a human document above one of an LLM's, above one of no group."""


def labelled(
    patterns: Sequence[str], scores: Sequence[Sequence[float]] | None = None
) -> tuple[Collection, Run]:
    """Make a collection and a run of it, in which no two lists share a document.

    Scores fall unevenly by default.
    """
    cells = [
        (f"d{q}-{rank}", letter)
        for q, pattern in enumerate(patterns)
        for rank, letter in enumerate(pattern)
    ]
    docs = [
        {"id": name, "text": f"text {name}{' more' * (n % 2)}", "source": GROUPS[letter]}
        for n, (name, letter) in enumerate(cells)
    ]
    queries = {f"q{number}": f"words {number}" for number in range(len(patterns))}
    collection = collection_of(docs, queries, {query: {docs[0]["id"]: 1} for query in queries})
    lengths = np.cumsum([0, *map(len, patterns)])
    score_lists = (
        [1 / np.arange(1, len(p) + 1) ** 2 for p in patterns] if scores is None else scores
    )
    run = Run(
        tuple(queries), lengths, np.arange(len(cells)), np.concatenate(score_lists), collection.ids
    )
    return collection, run


def patterns_of(collection: Collection, run: Run) -> list[str]:
    """Read a run's lists as strings, with tied documents in brackets."""
    letter = {group: sign for sign, group in GROUPS.items()}
    source = dict(zip(collection.docs["id"], collection.docs["source"], strict=True))
    patterns = dict.fromkeys(run.queries, "")
    last: tuple[str, float] | None = None
    for query, doc, _, score in run.frame().iter_rows():
        sign = letter[source[doc] or ""]
        if last == (query, score):
            before = patterns[query]
            patterns[query] = (
                f"{before[:-1]}{sign}]"
                if before.endswith("]")
                else f"{before[:-1]}[{before[-1]}{sign}]"
            )
        else:
            patterns[query] += sign
        last = (query, score)
    return list(patterns.values())


def same_bits(first: Run, second: Run) -> bool:
    """Whether two runs hold the same lists to the last bit."""
    return (first.docs.tobytes(), first.scores.tobytes()) == (
        second.docs.tobytes(),
        second.scores.tobytes(),
    )


FIT = {"reference": "human", "perplexity": PerplexityProbe().options}
RARE, COMMON = [f"rare{n}" for n in range(60)], [f"common{n}" for n in range(6)]


def text_column(origins: int = 30, *, common: float = 0.7) -> Collection:
    """Each query has three relevant origins, and both of their versions are relevant."""
    rng = np.random.default_rng(0)
    docs = []
    for n in range(origins):
        words = rng.choice(RARE, 20)
        plain = np.where(rng.random(20) < common, rng.choice(COMMON, 20), words)
        for source, source_words in (("human", words), ("llm", plain)):
            mixed = (
                np.where(rng.random(20) < 0.3, rng.choice(COMMON, 20), source_words)
                if source == "human"
                else source_words
            )
            docs.append(
                {
                    "id": f"{n}-{source}",
                    "text": " ".join(mixed),
                    "source": source,
                    "origin": f"o{n}",
                }
            )
    queries = {f"q{n}": docs[2 * n]["text"] for n in range(origins)}
    qrels = {
        f"q{n}": {
            f"{(n + i) % origins}-{source}": 1 for i in range(3) for source in ("human", "llm")
        }
        for n in range(origins)
    }
    return collection_of(docs, queries, qrels)


def perplexity(collection: Collection) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Log perplexity of every document."""
    return perplexities(collection, np.arange(collection.docs.height), FIT)


@dataclass(frozen=True, kw_only=True)
class Planted(Ranker):
    """Score by β · log perplexity, noise and a bonus for LLM documents; search, or re-rank."""

    name: ClassVar[str] = "planted"
    beta: float = -0.5
    noise: float = 0.1
    bonus: float = 0.0
    seed: int = 1
    k: int | None = None

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Score everything, or the candidates; see `Ranker.rank`."""
        names = list(collection.queries_with_judgments["id"]) if run is None else list(run.queries)
        every = np.arange(collection.docs.height)
        values = self.beta * np.nan_to_num(perplexity(collection))
        values = values + self.bonus * (collection.docs["source"] == "llm").to_numpy()
        scored_lists = []
        for number, name in enumerate(names):
            docs = (
                every
                if run is None
                else run.docs[run.offsets[number] : run.offsets[number + 1]].astype(np.int64)
            )
            drawn = np.random.default_rng([self.seed, int(name[1:])]).normal(0, 1, len(every))
            scored_lists.append((docs, (values + self.noise * drawn)[docs]))
        parts = cut(scored_lists, collection.tie_keys(), self.k)
        return Run(tuple(names), *parts, collection.ids, {"ranker": repr(self)})


def judged(collection: Collection, queries: list[str]) -> Collection:
    """The judgments of some queries only."""
    return Collection(
        collection.docs,
        collection.queries,
        collection.qrels.filter(pl.col("query_id").is_in(queries)),
    )
