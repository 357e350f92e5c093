"""Rewriting through a server that answers in 50 ms, journal and checks included, beside a bare
asynchronous loop.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from pathlib import Path

from common import (
    TINY,
    Contender,
    Measured,
    Watch,
    alternating,
    arguments,
    compete,
    fresh,
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
FULL, SMALL = 4_000, 64
ADDRESS = "RANKTILT_BENCHMARK_SERVER"


def prepare(folder: Path, args: argparse.Namespace) -> Measured:
    """Write the documents: sentences of the words that the generated collections are made of."""
    import generate
    import polars as pl

    import ranktilt as rt

    count = SMALL if folder.name == "quick" else FULL
    texts = generate.shuffled(
        generate.sentences(generate.collection(generate.QUICK).docs["text"]), count, words=200
    )
    docs = pl.DataFrame({"id": [f"d{n}" for n in range(count)], "text": texts})
    queries = pl.DataFrame({"id": ["q"], "text": ["words"]})
    qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["d0"], "grade": [1]})
    rt.save(rt.Collection(docs, queries, qrels), folder)
    return {"words": float(docs["text"].str.split(" ").list.len().mean() or 0)}


def ours(folder: Path, args: argparse.Namespace) -> Measured:
    """Rewrite the collection with a journal of its own, and check every answer."""
    import openai  # noqa: F401 - half a second, which neither contender is charged for

    from ranktilt.data.loading.load import load
    from ranktilt.generation.rewrite.rewrite import rewrite
    from ranktilt.llm.base import llm
    from ranktilt.llm.journal import Journal

    collection = load(folder)
    model = llm("openai:tiny", base_url=os.environ[ADDRESS], concurrency=CONCURRENCY)
    watch = Watch()
    with tempfile.TemporaryDirectory() as temporary:
        with watch("rewrite"):
            rewritten = rewrite(collection, model, journal=Journal(Path(temporary)))
        calls = len(rewritten.answers)
    return {**watch.parts, "answers": calls, "kept": rewritten.summaries[0].rewritten}


def bare(folder: Path, args: argparse.Namespace) -> Measured:
    """Ask the same questions in a loop over the client alone, keeping only the texts."""
    import openai

    from ranktilt.data.loading.load import load
    from ranktilt.generation.templates import template

    prompt, docs = template("paper"), load(folder).docs["text"].to_list()
    waiting, texts = iter(docs), list[str]()

    async def answer_waiting(client: openai.AsyncOpenAI) -> None:
        for text in waiting:
            messages = [{"role": "user", "content": prompt.render(text)}]
            answer = await client.chat.completions.create(
                model="tiny", messages=messages, temperature=0.2, top_p=1.0
            )
            texts.append(answer.choices[0].message.content or "")

    async def all_() -> None:
        client = openai.AsyncOpenAI(base_url=os.environ[ADDRESS], api_key="none", max_retries=0)
        await asyncio.gather(*(answer_waiting(client) for _ in range(CONCURRENCY)))

    watch = Watch()
    with watch("rewrite"):
        asyncio.run(all_())
    return {**watch.parts, "answers": len(texts), "kept": len(texts)}


CONTENDERS: dict[str, Contender] = {"prepare": prepare, "ranktilt": ours, "bare": bare}
LABELS = {
    "ranktilt": "ranktilt: journal, cleaning and checks included",
    "bare": "AsyncOpenAI in a bare loop, texts only",
}


def main() -> None:
    """Measure and write the section."""
    args = arguments(__doc__.splitlines()[0]).parse_args()
    if args.contender:
        compete(args, CONTENDERS)
        return
    with (
        tempfile.TemporaryDirectory() as temporary,
        server_process(ADDRESS, "-m", "tests.llm.server", "--port", "0", "--delay", str(DELAY)),
    ):
        folder = Path(temporary) / ("quick" if args.quick else "documents")
        words = fresh(__file__, "prepare", folder)["words"]
        measured = alternating(__file__, tuple(LABELS), folder, 1 if args.quick else ROUNDS)
    rows = [
        [
            LABELS[n],
            seconds(m["rewrite"]),
            f"{m['answers'] / m['rewrite']:,.0f}",
            f"{m['kept']:,.0f}",
            memory(m["peak"]),
        ]
        for n, m in measured.items()
    ]
    ideal = measured["bare"]["answers"] * DELAY / CONCURRENCY
    ratio = measured["bare"]["rewrite"] / measured["ranktilt"]["rewrite"]
    size = (
        TINY
        if args.quick
        else f"{FULL:,} documents of {words:.0f} words, median of {ROUNDS} rounds in turn"
    )
    lines = [
        "## Rewriting",
        machine(PACKAGES),
        (
            f"### {size}; {CONCURRENCY} requests at a time, answered in {1e3 * DELAY:.0f} ms by a "
            "server of its own"
        ),
        table(["contender", "seconds", "answers a second", "kept", "peak memory"], rows),
        f"Waiting alone would take {seconds(ideal)} s.",
        target("share of the bare loop's throughput", ratio, at_least=0.9, unit=""),
    ]
    publish("rewrite", "\n\n".join(lines), args)


if __name__ == "__main__":
    main()
