"""A language model without a model: it answers at once, or after a while, and writes down what it
was asked.

    python -m tests.llm.echo FOLDER REQUESTS DELAY

asks numbered requests through a journal, and writes a line to stdout for each that is answered.
"""

import contextlib
import itertools
import json
import sqlite3
import sys
import time
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

from ranktilt.llm.base import LLM, Answer, Failure, Prompt, Reply, Sampling
from ranktilt.llm.journal import JOURNAL, Journal, Request, journalled

COLD = Sampling(temperature=0.0)


class Echo(LLM):
    """Answers a prompt by its words in capitals, some at a time; what `fails` names gets that
    failure.
    """

    def __init__(
        self,
        name: str = "echo",
        *,
        concurrency: int = 4,
        delay: float = 0.0,
        fails: dict[str, Failure] | None = None,
        before: Callable[[str], None] | None = None,
    ) -> None:
        self.name = name
        self.identity = f"echo:{name}"
        self.concurrency = concurrency
        self.asked_texts: list[str] = []
        self.seeds: list[int | None] = []
        self.closed = 0
        self._delay, self._fails, self._before = delay, fails or {}, before

    def arrivals(
        self, prompts: Iterable[Prompt], sampling: Sampling
    ) -> Generator[list[Reply], None, None]:
        self.sampling = sampling
        try:
            source = enumerate(prompts)
            while batch := list(itertools.islice(source, self.concurrency)):
                for _, prompt in batch:
                    self._ask(prompt)
                time.sleep(self._delay)
                yield [self._reply(number, prompt) for number, prompt in reversed(batch)]
        finally:
            self.closed += 1

    def _ask(self, prompt: Prompt) -> None:
        if self._before:
            self._before(prompt.text)
        self.asked_texts.append(prompt.text)
        self.seeds.append(prompt.seed)

    def _reply(self, number: int, prompt: Prompt) -> Reply:
        if failure := self._fails.get(prompt.text):
            return Reply(number=number, failure=failure)
        return Reply(number=number, answer=answer_to(prompt.text, model=f"{self.name}-1"))


def answer_to(text: str, **more: object) -> Answer:
    """What the model says to a text."""
    fields = {
        "finish": "stop",
        "prompt_tokens": len(text.split()),
        "completion_tokens": 2,
        "model": "echo-1",
    }
    return Answer(text=text.upper(), **(fields | more))  # type: ignore[arg-type]


def contents(folder: Path) -> list[dict[str, Any]]:
    """All records in a journal's folder, in the order in which they were written; nothing is locked
    or made.
    """
    if not (folder / JOURNAL).exists():
        return []
    with contextlib.closing(sqlite3.connect(folder / JOURNAL)) as db:
        db.row_factory = sqlite3.Row
        with contextlib.suppress(sqlite3.OperationalError):  # its table may just be being made
            rows = db.execute("SELECT * FROM answers ORDER BY rowid")
            return [{**row, **json.loads(row["answer"])} for row in map(dict, rows)]
    return []


def requests(*texts: str, attempt: int = 1) -> list[Request]:
    return [Request(prompt=Prompt(text=text), attempt=attempt) for text in texts]


def main() -> None:
    folder, count, delay = sys.argv[1:]
    llm = Echo(delay=float(delay))
    with Journal(Path(folder)) as journal:
        for reply in journalled(
            llm, requests(*(f"request {i}" for i in range(int(count)))), journal, sampling=COLD
        ):
            answer = reply.answer.text if reply.answer else ""
            print(reply.number, "fresh" if reply.fresh else "known", answer, sep="\t", flush=True)


if __name__ == "__main__":
    main()
