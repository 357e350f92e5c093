"""What a Ray cluster gains and costs: encoding and re-ranking here, with one worker, and with two,
of a thread each.

The same texts and pairs of NFCorpus, MiniLM and a cross-encoder of its body.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    Contender,
    Measured,
    Watch,
    alternating,
    arguments,
    compete,
    fresh,
    machine,
    nfcorpus_or_tiny,
    publish,
    seconds,
    table,
    target,
)
from rerank import WARM, body, collection, prepare, quick, shared

PACKAGES = ("ranktilt", "ray", "torch", "sentence-transformers")
TEXTS, QUICK_TEXTS, PAIRS = 1_500, 12, 500
LABELS = {
    "here": "this process",
    "one": "--executor ray, one worker",
    "two": "--executor ray, two workers",
}
NOTE = (
    "Seconds on the clock, one thread each. Starting the cluster, and the first texts and pairs, "
    "which load the model, "
    "are not part of the others. All three compute the same numbers, to the last bit, which is "
    "checked."
)
WORK = {"encode": "encoding", "score": "re-ranking"}


@contextmanager
def workers_running(workers: int) -> Iterator[None]:
    """This process, or a cluster of so many workers."""
    from ranktilt.parallel import run_on as run_on_module
    from ranktilt.parallel.run_on import run_on

    run_on_module.processors = lambda: workers  # type: ignore[attr-defined]
    with run_on("ray" if workers else "local"):
        yield


def timed(folder: Path, workers: int) -> Measured:
    """Encode texts and score pairs somewhere."""
    from ranktilt.models.scorer import TextPairs
    from ranktilt.rankers.dense.retriever import Dense
    from ranktilt.rankers.rerank.cross_encoder import CrossEncoder

    def encode(texts: list[str]) -> Any:
        return model.encode(texts, "document", "encoding")[0].read(0, len(texts))

    def score(pairs: list[tuple[str, str]]) -> Any:
        positions = np.arange(len(pairs))
        return scorer.logits(
            TextPairs.from_texts(
                [q for q, _ in pairs], [d for _, d in pairs], positions, positions
            ),
            "scoring",
        )

    model = Dense(body(folder), precision="float32", device="cpu").encoder
    scorer = CrossEncoder(str(folder / "untrained"), precision="float32", device="cpu").scorer()
    texts = collection(folder, "test").texts().unique(maintain_order=True).to_list()
    texts, pairs, watch = (
        texts[: QUICK_TEXTS if quick(folder) else TEXTS],
        shared(folder)[:PAIRS],
        Watch(),
    )
    with tempfile.TemporaryDirectory() as cache, ExitStack() as stack:
        os.environ["RANKTILT_CACHE"] = cache
        with watch("start"):
            stack.enter_context(workers_running(workers))
        with watch("encode, first"):
            encode([text for _, text in WARM])
        with watch("encode"):
            np.save(folder / f"encode-{workers}.npy", encode(texts))
        with watch("score, first"):
            score(WARM)
        with watch("score"):
            np.save(folder / f"score-{workers}.npy", score(pairs))
    return {**watch.parts, "texts": len(texts), "pairs": len(pairs)}


CONTENDERS: dict[str, Contender] = {
    "prepare": prepare,
    "here": lambda folder, args: timed(folder, 0),
    "one": lambda folder, args: timed(folder, 1),
    "two": lambda folder, args: timed(folder, 2),
}


def compared(folder: Path, data_name: str, rounds: int) -> str:
    """All contenders, and their ratios."""
    fresh(__file__, "prepare", folder)
    measured = alternating(__file__, list(LABELS), folder, rounds)
    for part in WORK:
        local_values, *others = (np.load(folder / f"{part}-{workers}.npy") for workers in range(3))
        if not all(np.array_equal(local_values, worker_values) for worker_values in others):
            raise SystemExit(f"{part}: not the same numbers everywhere")
    parts = ("start", "encode, first", "encode", "score, first", "score")
    rows = [
        [label, *(seconds(measured[name][part]) for part in parts)]
        for name, label in LABELS.items()
    ]
    texts, pairs = (f"{measured['here'][name]:,.0f} {name}" for name in ("texts", "pairs"))
    header = ["where", "start", "first texts", texts, "first pairs", pairs]
    lines = [table(header, rows), ""]
    for part, name in WORK.items():
        here, local_values, two_workers = (measured[contender][part] for contender in LABELS)
        lines += [
            target(
                f"{data_name}, {name}: one worker / two workers",
                local_values / two_workers,
                at_least=1.7,
                unit="×",
            ),
            target(
                f"{data_name}, {name}: what one worker adds",
                100 * (local_values / here - 1),
                at_most=10.0,
                unit=" %",
            ),
        ]
    return "\n".join(lines)


def main() -> None:
    """Run the contenders and rewrite their part of the results."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    if args.contender:
        compete(args, CONTENDERS)
        return
    with nfcorpus_or_tiny(args) as (folder, data_name, lost):
        lines = [
            "## A Ray cluster of this machine",
            machine(PACKAGES),
            *lost,
            NOTE,
            compared(folder, data_name, args.rounds),
        ]
        publish("scale", "\n\n".join(lines), args)


if __name__ == "__main__":
    main()
