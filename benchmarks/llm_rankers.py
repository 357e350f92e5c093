"""Listwise ranking through a server that answers in 50 ms, journal included, beside a bare loop of
the same rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from common import (
    TINY,
    Contender,
    Measured,
    Watch,
    alternating,
    arguments,
    compete,
    machine,
    memory,
    publish,
    seconds,
    server_process,
    table,
    target,
)

PACKAGES = ("ranktilt", "openai", "polars")
DELAY, CONCURRENCY, ROUNDS = 0.05, 32, 3
WINDOW, STEP = 10, 5
FULL, SMALL = (44, 200), (3, 20)
ANSWER = " > ".join(f"[{number}]" for number in range(WINDOW, 0, -1))
SERVER = """
import time
from tests.llm.server import Server
with Server(answer=lambda messages, body: {answer!r}, delay={delay}) as server:
    print(server.url, flush=True)
    time.sleep(86_400)
"""
ADDRESS = "RANKTILT_BENCHMARK_SERVER"
RANKER = f"listwise:openai:tiny(concurrency={CONCURRENCY},window={WINDOW},step={STEP})"


def ours(folder: Path, args: argparse.Namespace) -> Measured:
    """Re-rank every query's candidates with a journal of its own, and read every answer."""
    import numpy as np
    import openai  # noqa: F401 - half a second, which neither contender is charged for
    import polars as pl

    import ranktilt as rt

    queries, items = SMALL if folder.name == "quick" else FULL
    names = tuple(f"q{n}" for n in range(queries))
    docs = pl.DataFrame(
        {"id": [f"d{n}" for n in range(items)], "text": [_text(n) for n in range(items)]}
    )
    queries_frame = pl.DataFrame({"id": names, "text": [f"words of {name}" for name in names]})
    qrels = pl.DataFrame({"query_id": names, "doc_id": ["d0"] * queries, "grade": [1] * queries})
    collection = rt.Collection(docs, queries_frame, qrels)
    scores = np.tile(np.arange(items, 0, -1, dtype=np.float64), queries)
    run = rt.Run(
        names,
        np.arange(queries + 1) * items,
        np.tile(np.arange(items), queries),
        scores,
        collection.ids,
    )
    reranker, watch = rt.ranker(RANKER), Watch()
    with tempfile.TemporaryDirectory() as temporary:
        os.environ |= {"RANKTILT_CACHE": temporary, "OPENAI_BASE_URL": os.environ[ADDRESS]}
        with watch("rank"):
            reranked = reranker.rank(collection, run)
    answers = reranked.spec["llm_answers"]
    return {**watch.parts, "requests": answers["fresh"], "read": sum(answers["kinds"].values())}


def bare(folder: Path, args: argparse.Namespace) -> Measured:
    """Send the same rounds over the client alone: a window of every query at once, then
    the next.
    """
    import openai

    from ranktilt.rankers.llm.listwise import windows

    queries, items = SMALL if folder.name == "quick" else FULL
    request_count = 0

    async def send_requests(client: openai.AsyncOpenAI, waiting: Iterator[str]) -> None:
        nonlocal request_count
        for text in waiting:
            messages = [{"role": "user", "content": text}]
            await client.chat.completions.create(
                model="tiny", messages=messages, temperature=0, max_tokens=144
            )
            request_count += 1

    async def all_() -> None:
        client = openai.AsyncOpenAI(base_url=os.environ[ADDRESS], api_key="none", max_retries=0)
        for start, stop in windows(items, WINDOW, STEP):
            listed = "\n".join(
                f"[{n}] {_text(number_of_text)}"
                for n, number_of_text in enumerate(range(start, stop), 1)
            )
            waiting = iter([f"Rank for words of q{query}:\n{listed}" for query in range(queries)])
            await asyncio.gather(*(send_requests(client, waiting) for _ in range(CONCURRENCY)))

    watch = Watch()
    with watch("rank"):
        asyncio.run(all_())
    return {**watch.parts, "requests": request_count, "read": 0}


def _text(number: int) -> str:
    return f"Passage {number} " + " ".join(
        f"word{(number * 7 + step * 13) % 997}" for step in range(80)
    )


CONTENDERS: dict[str, Contender] = {"ranktilt": ours, "bare": bare}
LABELS = {
    "ranktilt": "ranktilt: journal, prompts and strict reading included",
    "bare": "AsyncOpenAI in a bare loop, the same rounds, nothing kept",
}


def main() -> None:
    """Measure and write the section."""
    args = arguments(__doc__.splitlines()[0]).parse_args()
    if args.contender:
        compete(args, CONTENDERS)
        return
    with (
        tempfile.TemporaryDirectory() as temporary,
        server_process(ADDRESS, "-c", SERVER.format(answer=ANSWER, delay=DELAY)),
    ):
        folder = Path(temporary) / ("quick" if args.quick else "full")
        measured = alternating(__file__, tuple(LABELS), folder, 1 if args.quick else ROUNDS)
    from ranktilt.rankers.llm.listwise import windows

    queries, items = SMALL if args.quick else FULL
    rounds = len(list(windows(items, WINDOW, STEP)))
    rows = [
        [
            LABELS[n],
            seconds(m["rank"]),
            f"{m['requests']:,.0f}",
            f"{m['requests'] / m['rank']:,.0f}",
            memory(m["peak"]),
        ]
        for n, m in measured.items()
    ]
    exact = "exactly" if measured["ranktilt"]["requests"] == queries * rounds else "NOT"
    ratio = measured["bare"]["rank"] / measured["ranktilt"]["rank"]
    size = (
        TINY
        if args.quick
        else f"{queries} queries × {items} passages, median of {ROUNDS} rounds in turn"
    )
    lines = [
        "## Ranking by a language model",
        machine(PACKAGES),
        (
            f"### {size}; window {WINDOW}, step {STEP}, {CONCURRENCY} requests at a time, answered "
            "in "
            f"{1e3 * DELAY:.0f} ms"
        ),
        table(["contender", "seconds", "requests", "requests a second", "peak memory"], rows),
        f"Requests: {exact} the {queries * rounds:,} of theory, {rounds} rounds of {queries}; "
        "waiting alone takes "
        f"{seconds(rounds * -(-queries // CONCURRENCY) * DELAY)} s.",
        target("share of the bare loop's throughput", ratio, at_least=0.9, unit=""),
    ]
    publish("llm-rankers", "\n\n".join(lines), args)


if __name__ == "__main__":
    main()
