"""Rewriting through a server that answers in 50 ms, journal and checks included, beside a bare asynchronous loop."""

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


def prepare(folder: Path, given: argparse.Namespace) -> Measured:
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


def ours(folder: Path, given: argparse.Namespace) -> Measured:
    """Rewrite the collection with a journal of its own, and check every answer."""
    import openai  # noqa: F401 - half a second, which neither contender is charged for

    from ranktilt.data.load import load
    from ranktilt.generation.rewrite.rewrite import rewrite
    from ranktilt.llm.base import llm
    from ranktilt.llm.journal import Journal

    collection = load(folder)
    model = llm("openai:tiny", base_url=os.environ[ADDRESS], concurrency=CONCURRENCY)
    watch = Watch()
    with tempfile.TemporaryDirectory() as temporary:
        with watch("rewrite"):
            made = rewrite(collection, model, journal=Journal(Path(temporary)))
        calls = len(made.answers)
    return {**watch.parts, "answers": calls, "kept": made.summaries[0].rewritten}


def bare(folder: Path, given: argparse.Namespace) -> Measured:
    """Ask the same questions in a loop over the client alone, keeping only the texts."""
    import openai

    from ranktilt.data.load import load
    from ranktilt.generation.templates import template

    said, docs = template("paper"), load(folder).docs["text"].to_list()
    waiting, texts = iter(docs), list[str]()

    async def one(client: openai.AsyncOpenAI) -> None:
        for text in waiting:
            messages = [{"role": "user", "content": said.render(text)}]
            answer = await client.chat.completions.create(
                model="tiny", messages=messages, temperature=0.2, top_p=1.0
            )
            texts.append(answer.choices[0].message.content or "")

    async def all_() -> None:
        client = openai.AsyncOpenAI(base_url=os.environ[ADDRESS], api_key="none", max_retries=0)
        await asyncio.gather(*(one(client) for _ in range(CONCURRENCY)))

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
    given = arguments(__doc__.splitlines()[0]).parse_args()
    if given.contender:
        compete(given, CONTENDERS)
        return
    with (
        tempfile.TemporaryDirectory() as temporary,
        server_process(ADDRESS, "-m", "tests.llm.server", "--port", "0", "--delay", str(DELAY)),
    ):
        folder = Path(temporary) / ("quick" if given.quick else "documents")
        words = fresh(__file__, "prepare", folder)["words"]
        found = alternating(__file__, tuple(LABELS), folder, 1 if given.quick else ROUNDS)
    rows = [
        [
            LABELS[n],
            seconds(m["rewrite"]),
            f"{m['answers'] / m['rewrite']:,.0f}",
            f"{m['kept']:,.0f}",
            memory(m["peak"]),
        ]
        for n, m in found.items()
    ]
    ideal = found["bare"]["answers"] * DELAY / CONCURRENCY
    ratio = found["bare"]["rewrite"] / found["ranktilt"]["rewrite"]
    size = (
        TINY
        if given.quick
        else f"{FULL:,} documents of {words:.0f} words, median of {ROUNDS} rounds in turn"
    )
    lines = [
        "## Rewriting",
        machine(PACKAGES),
        f"### {size}; {CONCURRENCY} requests at a time, answered in {1e3 * DELAY:.0f} ms by a server of its own",
        table(["contender", "seconds", "answers a second", "kept", "peak memory"], rows),
        f"Waiting alone would take {seconds(ideal)} s.",
        target("share of the bare loop's throughput", ratio, at_least=0.9, unit=""),
    ]
    publish("rewrite", "\n\n".join(lines), given)


if __name__ == "__main__":
    main()
