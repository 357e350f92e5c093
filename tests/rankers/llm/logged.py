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
    numbers = [int(one) - 1 for one in "".join(sign if sign.isdigit() else " " for sign in answer).split()]
    named = [one for place, one in enumerate(numbers) if one in range(count) and one not in numbers[:place]]
    return named + [one for one in range(count) if one not in named]


def prompt(query: str, texts: Sequence[str]) -> str:
    """Ask as RankVicuna does."""
    shown = "\n".join(f"[{place}] {text}" for place, text in enumerate(texts, start=1))
    return (
        f"USER: I will provide you with {len(texts)} passages, each indicated by a numerical identifier []. Rank the "
        f"passages based on their relevance to the search query: {query}.\n\n{shown}\nSearch Query: {query}.\nRank the "
        f"{len(texts)} passages above. The output format should be [] > [], e.g., [4] > [2]. ASSISTANT:"
    )


def logged(
    lists: Mapping[str, Sequence[str]], queries: Mapping[str, str], texts: Mapping[str, str], answer: Answer,
    *, window: int = 4, step: int = 2, ids: bool = False,
) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:  # fmt: skip
    """Rank each query's list from its end; returns the records of the calls, and the run."""
    records, run = list[dict[str, Any]](), dict[str, list[str]]()
    for query, docs in lists.items():
        order = list(docs)
        start = max(len(order) - window, 0)
        while True:
            shown = order[start : start + window]
            said = answer(query, shown)
            asked = prompt(queries[query], [texts[one] for one in shown])
            record = {"query": query, "ids": shown, "answer": said} if ids else {"prompt": asked, "response": said}
            records.append(record)
            order[start : start + window] = [shown[place] for place in published(said, len(shown))]
            if start == 0:
                break
            start = max(start - step, 0)
        run[query] = order
    return records, run


def rank_llm_text(records: Sequence[Mapping[str, Any]]) -> str:
    """Write records as rank_llm did: pretty-printed, one after the other, each with a comma behind it."""
    return "".join(json.dumps(one, indent=4) + ", " for one in records)
