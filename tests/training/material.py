"""A collection whose relevant documents have a mark that a model of two layers finds within seconds."""

import itertools
from pathlib import Path

from ranktilt.collection import Collection
from ranktilt.training.options import RerankerTraining
from tests.toy import collection_of, jsonl, tsv, write

WORDS = ["w" + "".join(letters) for letters in itertools.permutations("abcde", 2)]
SOURCES = ("human", "llm")
MARK = "zz"
QUICK = RerankerTraining(
    steps=6,
    batch=8,
    negatives_per_positive=3,
    max_query_tokens=6,
    max_document_tokens=16,
    rate=3e-3,
    precision="float32",
)
"""A second of work with the tiny model."""


def documents() -> list[dict[str, str]]:
    """For each word: two marked documents and four others of each source, the sources' versions of one origin."""
    return [
        {
            "_id": f"{word}{number}-{source}",
            "title": "",
            "text": f"{word} {MARK if number < 2 else 'yy'} {'ghijkl'[number]} {source[0]}",
            "source": source,
            "origin": f"{word}{number}-human",
        }
        for source in SOURCES
        for word in WORDS
        for number in range(6)
    ]


def queries() -> list[dict[str, str]]:
    """One query a word."""
    return [{"_id": f"q-{word}", "text": word} for word in WORDS]


def judgments() -> list[tuple[str, str, int]]:
    """The human side is judged: marked documents are relevant, and one other is judged not to be."""
    return [(f"q-{word}", f"{word}{number}-human", int(number < 2)) for word in WORDS for number in range(3)]


def marked() -> Collection:
    """The collection in memory."""
    rows = [{("id" if name == "_id" else name): value for name, value in doc.items()} for doc in documents()]
    qrels: dict[str, dict[str, int]] = {}
    for query, doc, grade in judgments():
        qrels.setdefault(query, {})[doc] = grade
    return collection_of(rows, {query["_id"]: query["text"] for query in queries()}, qrels)


def marked_folder(folder: Path, *, split: str = "train") -> Path:
    """The collection as a BEIR folder."""
    write(folder / "corpus.jsonl", jsonl(documents()))
    write(folder / "queries.jsonl", jsonl(queries()))
    write(folder / "qrels" / f"{split}.tsv", tsv(judgments()))
    return folder
