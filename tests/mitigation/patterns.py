"""Lists of groups as strings: ``hl.`` is a human document above one of an LLM's, above one of no group."""

from collections.abc import Sequence

import numpy as np

from ranktilt.collection import Collection
from ranktilt.run import Run
from tests.toy import collection_of

GROUPS = {"h": "human", "l": "llm", "g": "gpt", ".": ""}


def labelled(patterns: Sequence[str], scores: Sequence[Sequence[float]] | None = None) -> tuple[Collection, Run]:
    """Make a collection in which no two lists share a document, and a run of it; scores fall unevenly by default."""
    cells = [(f"d{q}-{place}", letter) for q, pattern in enumerate(patterns) for place, letter in enumerate(pattern)]
    docs = [
        {"id": name, "text": f"text {name}{' more' * (n % 2)}", "source": GROUPS[letter]}
        for n, (name, letter) in enumerate(cells)
    ]
    queries = {f"q{number}": f"words {number}" for number in range(len(patterns))}
    collection = collection_of(docs, queries, {query: {docs[0]["id"]: 1} for query in queries})
    lengths = np.cumsum([0, *map(len, patterns)])
    given = [1 / np.arange(1, len(p) + 1) ** 2 for p in patterns] if scores is None else scores
    run = Run(tuple(queries), lengths, np.arange(len(cells)), np.concatenate(given), collection.ids)
    return collection, run


def patterns_of(collection: Collection, run: Run) -> list[str]:
    """Read a run's lists as strings; what is tied stands in brackets."""
    letter = {group: sign for sign, group in GROUPS.items()}
    source = dict(zip(collection.docs["id"], collection.docs["source"], strict=True))
    found = dict.fromkeys(run.queries, "")
    last: tuple[str, float] | None = None
    for query, doc, _, score in run.frame().iter_rows():
        sign = letter[source[doc]]
        if last == (query, score):
            before = found[query]
            found[query] = f"{before[:-1]}{sign}]" if before.endswith("]") else f"{before[:-1]}[{before[-1]}{sign}]"
        else:
            found[query] += sign
        last = (query, score)
    return list(found.values())


def same_bits(one: Run, two: Run) -> bool:
    """Whether two runs hold the same lists to the last bit."""
    return one.docs.tobytes() == two.docs.tobytes() and one.scores.tobytes() == two.scores.tobytes()
