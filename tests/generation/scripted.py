"""A language model that says what a test wants, with no server, and documents for it."""

from collections.abc import Callable, Generator, Iterable
from typing import Any

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.llm.base import LLM, Answer, Failure, Prompt, Reply, Sampling

TEXTS = {
    "d1": (
        "Vitamin C shortens a cold by half a day, as three large trials found. It does not "
        "prevent one."
    ),
    "d2": (
        "The river rises in the hills, crosses the plain and meets the sea near the old harbour "
        "town."
    ),
    "d3": (
        "Old clocks lose a minute each week because their springs grow weak. A new spring "
        "repairs them."
    ),
}
GOOD = {
    "d1": (
        "Three large studies showed that colds end half a day sooner with vitamin C. Prevention "
        "is another matter."
    ),
    "d2": (
        "Among hills begins this stream; over flat land it runs, and ends at sea close to a "
        "historic port."
    ),
    "d3": (
        "A weakening spring makes antique timepieces slow by sixty seconds weekly. Replacing it "
        "helps."
    ),
}
"""Rewrites that pass every check."""

Says = Callable[[str, int], str | Answer | Failure]


class Scripted(LLM):
    """Answers by a function of the document in the prompt and of how often it was asked for;
    remembers all.
    """

    def __init__(
        self, says: Says | None = None, *, name: str = "lab/tiny", concurrency: int = 4
    ) -> None:
        self.name, self.identity, self.concurrency = name, f"scripted {name}", concurrency
        self.says = says or good
        self.prompts: list[str] = []
        self.samplings: list[Sampling] = []
        self.seeds: list[int | None] = []
        self.checked = 0

    def check(self) -> None:
        self.checked += 1

    def arrivals(
        self, prompts: Iterable[Prompt], sampling: Sampling
    ) -> Generator[list[Reply], None, None]:
        for number, prompt in enumerate(prompts):
            self.prompts.append(prompt.text)
            self.samplings.append(sampling)
            self.seeds.append(prompt.seed)
            reply = self.says(prompt.text, self.prompts.count(prompt.text))
            if isinstance(reply, Failure):
                yield [Reply(number=number, failure=reply)]
            else:
                text = answer(reply) if isinstance(reply, str) else reply
                yield [Reply(number=number, answer=text)]


def answer(text: str, *, finish: str = "stop", model: str = "tiny-v1") -> Answer:
    return Answer(
        text=text,
        finish=finish,
        prompt_tokens=20,
        completion_tokens=10,
        model=model,
        revision="fp_1",
    )


def good(prompt: str, times: int) -> str:
    """The good rewrite of the document that the prompt holds."""
    return next(GOOD[name] for name, text in TEXTS.items() if text in prompt)


def humans(texts: dict[str, str] | None = None, **columns: list[Any]) -> Collection:
    """Human documents under plain ids, two queries, and judgments of the first two documents."""
    texts = TEXTS if texts is None else texts
    docs = {
        "id": list(texts),
        "title": [f"On {name}" for name in texts],
        "text": list(texts.values()),
    }
    docs |= {"source": ["human"] * len(texts), **columns}
    queries = {"id": ["q1", "q2"], "text": ["vitamin c cold", "river mouth"]}
    names = [*texts][:2]
    qrels = [("q1", names[0], 2), ("q2", names[-1], 1)]
    schema = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    return Collection(
        pl.DataFrame(docs), pl.DataFrame(queries), pl.DataFrame(qrels, schema=schema, orient="row")
    )


def texts_of(collection: Collection, source: str) -> dict[str, str]:
    side = collection.docs.filter(pl.col("source") == source)
    return dict(side.select("id", "text").iter_rows())
