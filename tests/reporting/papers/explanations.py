"""Explanations of one model at several temperatures."""

import ranktilt as rt
from ranktilt.collection import Collection
from ranktilt.probes.explain import Explanation
from tests.probes.lexical_vectors import LetterVectors
from tests.toy import collection_of

WORDS = ["apple", "river", "clock", "stone", "field", "glass", "horse", "night", "paper", "queen", "train", "voice"]
ENDS = {
    "human": "stands there.", "llama-t1.0": "was seen once, and again.", "llama-t0.2": "is there.",
    "llama-t0.7": "is standing over there.",
}  # fmt: skip
PROBES = ["statistics", "perplexity", "spectrum(values=11)"]


def temperatures(*sources: str) -> Collection:
    docs = [
        {"id": f"{n}-{s}", "text": f"The {word} {ENDS[s]}", "source": s, "origin": f"{n}-human"}
        for s in sources
        for n, word in enumerate(WORDS)
    ]
    return collection_of(docs, {"q": "apple"}, {})


def explained(*sources: str) -> Explanation:
    return rt.explain(temperatures(*sources), PROBES, LetterVectors("abcdefghijklmnopqrst"))
