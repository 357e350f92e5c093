"""A language model whose mind is known: it ranks passages by a number in them, as wrongly as a test
wants.

And passages that say what they are worth; logs as an LLM ranker leaves them, and the run that it
published.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ranktilt import Collection, Run
from tests.toy import collection_of, run_of

_ITEM = re.compile(r"(?:^|(?<=: ))\[(\d+)\] (.*)$", re.M)
_WORTH = re.compile(r"worth (-?[\d.]+)")


def worth(text: str) -> float:
    """The number that a passage says it is worth."""
    match = _WORTH.search(text)
    return float(match[1]) if match else 0.0


@dataclass
class Judge:
    """Answers a prompt with the ranking of its passages by `worth`, or with the best one where it
    is asked to choose.

    `first` is what a passage gains by standing first; a share of the answers is prose.
    """

    value: Callable[[str], float] = worth
    first: float = 0.0
    prose: float = 0.0
    listings: list[list[str]] = field(default_factory=list)

    def __call__(self, messages: list[dict[str, str]], body: dict[str, object]) -> str:
        prompt = messages[-1]["content"]
        items = [text for _, text in _ITEM.findall(prompt)]
        self.listings.append(items)
        chance = random.Random(prompt)
        if chance.random() < self.prose:
            return f"{len(items)} passages have been provided."
        values = [
            self.value(text) + (self.first if rank == 0 else 0.0) for rank, text in enumerate(items)
        ]
        order = sorted(range(len(items)), key=lambda rank: -values[rank])
        if "chosen passage" in prompt:
            return f"[{order[0] + 1}]"
        return " > ".join(f"[{rank + 1}]" for rank in order)


def ranked(texts: Mapping[str, str], orders: Mapping[str, Sequence[str]]) -> tuple[Collection, Run]:
    """Documents with some texts, and a first stage that ranks them for each query in some order."""
    docs = [{"id": name, "text": text} for name, text in texts.items()]
    queries = {query: f"question {query[1:]}".strip() for query in orders}
    collection = collection_of(docs, queries, {query: {docs[0]["id"]: 1} for query in queries})
    scores = {
        query: {doc: -float(rank) for rank, doc in enumerate(order)}
        for query, order in orders.items()
    }
    return collection, run_of(collection, scores)


def worths(count: int, queries: int = 2, seed: int = 0) -> tuple[Collection, Run]:
    """Documents that say what they are worth, and a first stage that knows nothing of it."""
    chance = random.Random(seed)
    values = chance.sample(range(10 * count), count)
    texts = {f"d{number}": f"worth {value} of [7] things" for number, value in enumerate(values)}
    return ranked(
        texts, {f"q{number}": chance.sample(list(texts), count) for number in range(queries)}
    )


def texts_of(texts: dict[str, str]) -> tuple[Collection, Run]:
    """Documents with some texts, ranked for one query in their order."""
    return ranked(texts, {"q": list(texts)})


def best(collection: Collection) -> list[str]:
    """Ids in the order of a perfect judge."""
    values = [int(text.split()[1]) for text in collection.docs["text"]]
    return [
        collection.ids[rank] for rank in sorted(range(len(values)), key=lambda rank: -values[rank])
    ]


def ids(run: Run, query: int = 0) -> list[str]:
    """Ids of one query's documents, best first."""
    return run.ids.gather(run.docs[run.offsets[query] : run.offsets[query + 1]]).to_list()


_LINE = (
    "amber birch cedar delta ember fjord grove heath inlet jetty knoll loess marsh north "
    "ocean "
    "prairie"
)
WORDS = _LINE.split()
Answer = Callable[[str, Sequence[str]], str]
"""What a model says of a query and the passages it is shown."""


def published(answer: str, count: int) -> list[int]:
    """Read an answer letter by letter: digits stay, all else is a blank, and each number counts
    once.
    """
    numbers = [
        int(word) - 1
        for word in "".join(sign if sign.isdigit() else " " for sign in answer).split()
    ]
    return list(
        dict.fromkeys(number for number in [*numbers, *range(count)] if number in range(count))
    )


def prompt(query: str, texts: Sequence[str]) -> str:
    """Ask as RankVicuna does."""
    passages = "\n".join(f"[{number}] {text}" for number, text in enumerate(texts, start=1))
    return (
        f"USER: I will provide you with {len(texts)} passages, each indicated by a numerical "
        "identifier []. Rank the "
        f"passages based on their relevance to the search query: {query}.\n\n{passages}\n"
        f"Search Query: {query}.\nRank "
        f"the {len(texts)} passages above. The output format should be [] > [], e.g., [4] > [2]. "
        "ASSISTANT:"
    )


def logged(
    lists: Mapping[str, Sequence[str]],
    queries: Mapping[str, str],
    texts: Mapping[str, str],
    answer: Answer,
    *,
    window: int = 4,
    step: int = 2,
    ids: bool = False,
) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Rank each query's list from its end; returns the records of the calls, and the run."""
    records, run = list[dict[str, Any]](), dict[str, list[str]]()
    for query, docs in lists.items():
        order, last = list(docs), max(len(docs) - window, 0)
        for start in [*range(last, 0, -step), 0]:
            passages = order[start : start + window]
            response = answer(query, passages)
            text = prompt(queries[query], [texts[name] for name in passages])
            by_id = {"query": query, "ids": passages, "answer": response}
            records.append(by_id if ids else {"prompt": text, "response": response})
            order[start : start + window] = [
                passages[rank] for rank in published(response, len(passages))
            ]
        run[query] = order
    return records, run


def rank_llm_text(records: Sequence[Mapping[str, Any]]) -> str:
    """Write records as rank_llm did: pretty-printed, one after the other, each with a comma behind
    it.
    """
    return "".join(json.dumps(record, indent=4) + ", " for record in records)
