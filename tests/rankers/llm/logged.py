"""Logs as an LLM ranker leaves them, and the run that it published: a sliding window as RankGPT's code moves it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_LINE = "amber birch cedar delta ember fjord grove heath inlet jetty knoll loess marsh north ocean prairie"
WORDS = _LINE.split()
Answer = Callable[[str, Sequence[str]], str]
"""What a model says of a query and the passages it is shown."""


def published(answer: str, count: int) -> list[int]:
    """Read an answer letter by letter: digits stay, all else is a blank, and each number counts once."""
    numbers = [int(word) - 1 for word in "".join(sign if sign.isdigit() else " " for sign in answer).split()]
    return list(dict.fromkeys(number for number in [*numbers, *range(count)] if number in range(count)))


def prompt(query: str, texts: Sequence[str]) -> str:
    """Ask as RankVicuna does."""
    passages = "\n".join(f"[{number}] {text}" for number, text in enumerate(texts, start=1))
    return (
        f"USER: I will provide you with {len(texts)} passages, each indicated by a numerical identifier []. Rank the "
        f"passages based on their relevance to the search query: {query}.\n\n{passages}\nSearch Query: {query}.\nRank "
        f"the {len(texts)} passages above. The output format should be [] > [], e.g., [4] > [2]. ASSISTANT:"
    )


def logged(
    lists: Mapping[str, Sequence[str]], queries: Mapping[str, str], texts: Mapping[str, str], answer: Answer,
    *, window: int = 4, step: int = 2, ids: bool = False,
) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:  # fmt: skip
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
            order[start : start + window] = [passages[rank] for rank in published(response, len(passages))]
        run[query] = order
    return records, run


def rank_llm_text(records: Sequence[Mapping[str, Any]]) -> str:
    """Write records as rank_llm did: pretty-printed, one after the other, each with a comma behind it."""
    return "".join(json.dumps(record, indent=4) + ", " for record in records)
