"""Training a retriever: what RankTilt adds to sentence-transformers' trainer, and what mining
negatives takes.

Each contender learns from the same rows of NFCorpus's train split for one epoch, in a process of
its own, by the same loss, batch, model and cuts, with and without the debiased constraint. Loading
and two steps to warm up are not timed, a checkpoint is timed apart. The trainer is unmodified, with
its defaults; it also runs with the model's dropout at 0, because RankTilt trains without. One
thread each, and seconds are the processor's: what else runs on the machine does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from common import (
    Contender,
    Measured,
    alternating,
    arguments,
    compete,
    fresh,
    machine,
    memory,
    nfcorpus_or_tiny,
    publish,
    seconds,
    table,
    target,
)
from rerank import body, collection, quick

PACKAGES = ("ranktilt", "torch", "transformers", "sentence-transformers", "accelerate", "datasets")
QUERIES, BATCH, ALPHA, MINED_STEPS = 32, 16, 0.1, 8
QUERY_TOKENS, DOCUMENT_TOKENS = 30, 128
SCHEMES = ("bm25", "ann")
NOTE = (
    f"Queries are cut at {QUERY_TOKENS} tokens, documents at {DOCUMENT_TOKENS}. One thread each; "
    "seconds are the "
    "processor's. A pair is a query with one relevant document; tokens are counted without padding."
)
LOSSES = {"plain": "MultipleNegativesRankingLoss", "debiased": "with DebiasedLoss"}
LABELS = {
    "ranktilt": "ranktilt, float32",
    "trainer": "SentenceTransformerTrainer",
    "trainer-no-dropout": "SentenceTransformerTrainer, dropout 0",
}


class Clock:
    """Seconds of the processor between `start` and the last `stop`."""

    def __init__(self) -> None:
        self.begun = self.taken = 0.0

    def start(self) -> None:
        """Begin to count."""
        self.begun = time.process_time()

    def stop(self) -> None:
        """Count up to here."""
        self.taken = time.process_time() - self.begun


def options(folder: Path, **more: Any) -> Any:
    """How RankTilt trains."""
    from ranktilt.training.options import RetrieverTraining

    tokens = {"max_query_tokens": QUERY_TOKENS, "max_document_tokens": DOCUMENT_TOKENS}
    return RetrieverTraining(
        batch=4 if quick(folder) else BATCH, **tokens, **{"precision": "float32", **more}
    )


def cut(folder: Path) -> Any:
    """The train split with a few of its queries."""
    training_part = collection(folder, "train")
    judged = training_part.queries.join(
        training_part.qrels, left_on="id", right_on="query_id", how="semi"
    )
    chosen = judged.gather_every(max(judged.height // (8 if quick(folder) else QUERIES), 1))
    return type(training_part)(
        training_part.docs,
        chosen,
        training_part.qrels.join(chosen, left_on="query_id", right_on="id", how="semi"),
    )


def prepare(folder: Path, args: argparse.Namespace) -> Measured:
    """Write the rows of RankTilt's first epoch for the trainer, and count their tokens, padding
    left out.
    """
    from transformers import AutoTokenizer

    from ranktilt.training.mining import Miner
    from ranktilt.training.model import find_base_model
    from ranktilt.training.training_set import retriever_set

    training_options = options(folder, alpha=ALPHA)
    training_set = retriever_set(cut(folder), training_options)
    rows = Miner(training_set=training_set, options=training_options).rows(0)
    documents = rows.documents[:, 0]
    columns = {
        "query": [training_set.queries[q] for q in rows.queries],
        "human": [training_set.texts[d] for d in documents],
        "llm": [
            "" if training_set.twins[d] == d else training_set.texts[training_set.twins[d]]
            for d in documents
        ],
    }
    (folder / "rows.json").write_text(json.dumps(columns), encoding="utf-8")
    tokenizer = AutoTokenizer.from_pretrained(find_base_model(body(folder)))
    tokens = {
        name: sum(
            map(len, tokenizer(texts, truncation=True, max_length=DOCUMENT_TOKENS)["input_ids"])
        )
        for name, texts in columns.items()
    }
    plain = tokens["query"] + tokens["human"]
    return {
        "rows": len(documents),
        "steps": -(-len(documents) // training_options.batch),
        "plain": plain,
        "debiased": plain + tokens["llm"],
    }


def ours(folder: Path, precision: str) -> Measured:
    """Train with RankTilt for an epoch, without and with the constraint."""
    from transformers import Trainer

    from ranktilt.progress import listening
    from ranktilt.training import callbacks
    from ranktilt.training.retriever import train_retriever

    data, figures, clock, saving = cut(folder), Measured(), Clock(), Clock()
    keep = Trainer._save_checkpoint

    def save(*args: Any, **more: Any) -> None:
        saving.start()
        keep(*args, **more)
        saving.stop()

    def listener(label: str, done: int, total: int) -> None:
        if label.startswith("train retriever timed"):
            clock.stop() if done else clock.start()

    Trainer._save_checkpoint = save
    callbacks.CHECKPOINT_EVERY = 0.0
    with tempfile.TemporaryDirectory() as folder_name, listening(listener):
        for name, more in (("warm", {"steps": 2}), ("plain", {}), ("debiased", {"alpha": ALPHA})):
            training_options = options(folder, precision=precision, **more)
            train_retriever(
                data, body(folder), Path(folder_name, f"timed-{name}"), options=training_options
            )
            figures[name] = clock.taken
            callbacks.CHECKPOINT_EVERY = float(
                "inf"
            )  # by the clock on the wall, so more of them on a busy machine
    return {**figures, "checkpoint": saving.taken}


def float32(folder: Path, args: argparse.Namespace) -> Measured:
    """RankTilt at full precision."""
    return ours(folder, "float32")


def library(folder: Path, *, dropout: bool) -> Measured:
    """Train with sentence-transformers' trainer for an epoch, without and with the constraint."""
    import torch
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from transformers import TrainerCallback

    from ranktilt.training import DebiasedLoss
    from ranktilt.training.model import find_base_model

    class Timed(TrainerCallback):
        def on_train_begin(self, *args: Any, **more: Any) -> None:
            clock.start()

        def on_step_end(self, *args: Any, **more: Any) -> None:
            clock.stop()

    def train(name: str, steps: int) -> None:
        model = SentenceTransformer(str(find_base_model(body(folder))), device="cpu")
        model.max_seq_length = DOCUMENT_TOKENS
        for module in () if dropout else model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        loss = MultipleNegativesRankingLoss(model)
        columns = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
        if name == "plain":
            del columns["llm"]
        else:
            loss = DebiasedLoss(model, loss, alpha=ALPHA)
        size = options(folder).batch
        length = {"num_train_epochs": 1, "max_steps": steps, "per_device_train_batch_size": size}
        with tempfile.TemporaryDirectory() as directory:
            arguments = SentenceTransformerTrainingArguments(
                directory, use_cpu=True, report_to="none", **length
            )
            data = Dataset.from_dict(columns)
            SentenceTransformerTrainer(
                model, arguments, data, loss=loss, callbacks=[Timed()]
            ).train()

    figures, clock = Measured(), Clock()
    train("plain", 2)
    for name in LOSSES:
        train(name, -1)
        figures[name] = clock.taken
    return figures


def trainer(folder: Path, args: argparse.Namespace) -> Measured:
    """The trainer as it is."""
    return library(folder, dropout=True)


def without_dropout(folder: Path, args: argparse.Namespace) -> Measured:
    """The trainer with a model that has no dropout."""
    return library(folder, dropout=False)


def mined(folder: Path, args: argparse.Namespace) -> Measured:
    """What negatives of the whole train split take by each scheme, and a step that learns from one
    a row.
    """
    from ranktilt.progress import listening
    from ranktilt.training.mining import Miner
    from ranktilt.training.retriever import train_retriever

    total_clock, mining, figures, keep = Clock(), Clock(), Measured(), Miner.rows

    def rows(miner: Miner, epoch: int) -> Any:
        mining.start()
        all_ = keep(miner, epoch)
        mining.stop()
        figures["steps"] = -(-len(all_.queries) // miner.options.batch)
        return all_

    def listener(label: str, done: int, total: int) -> None:
        if label.startswith("train retriever timed"):
            total_clock.stop() if done else total_clock.start()

    Miner.rows = rows  # type: ignore[method-assign]
    steps = 2 if quick(folder) else MINED_STEPS
    data = collection(folder, "train")
    with tempfile.TemporaryDirectory() as directory, listening(listener):
        for scheme in SCHEMES:
            training_options = options(folder, negatives=scheme, steps=steps)
            train_retriever(
                data, body(folder), Path(directory, f"timed-{scheme}"), options=training_options
            )
            figures |= {
                scheme: mining.taken,
                f"{scheme}, step": (total_clock.taken - mining.taken) / steps,
            }
    return figures


CONTENDERS: dict[str, Contender] = {
    "prepare": prepare,
    "ranktilt": float32,
    "trainer": trainer,
    "trainer-no-dropout": without_dropout,
    "mining": mined,
}


def speed(folder: Path, data_name: str, args: argparse.Namespace) -> str:
    """All contenders, and their ratios."""
    from ranktilt.training.callbacks import CHECKPOINT_EVERY

    prepared, rounds = fresh(__file__, "prepare", folder), 1 if quick(folder) else args.rounds
    measured = alternating(__file__, tuple(LABELS), folder, rounds)
    rows = [
        [
            f"{LABELS[name]}: {label}",
            f"{prepared['rows'] / m[loss]:.2f}",
            f"{prepared[loss] / m[loss]:,.0f}",
            f"{m[loss] / measured['ranktilt'][loss]:.2f}×",
            memory(m["peak"]),
        ]
        for loss, label in LOSSES.items()
        for name, m in measured.items()
    ]
    lines = [
        (
            f"### {prepared['rows']:.0f} rows of {data_name} in {prepared['steps']:.0f} batches of "
            f"{options(folder).batch}, "
        )
        + (f"median of {rounds} rounds" if rounds > 1 else "one round"),
        "",
        table(
            [
                "contender",
                "pairs a second",
                "tokens a second",
                "ranktilt, float32 / this",
                "peak memory",
            ],
            rows,
        ),
        "",
    ]
    for loss, label in LOSSES.items():
        for peer in ("trainer", "trainer-no-dropout"):
            ratio = measured[peer][loss] / measured["ranktilt"][loss]
            lines.append(
                target(
                    f"{label}: ranktilt / {LABELS[peer]}, float32", ratio, at_least=0.95, unit="×"
                )
            )
    checkpoint = measured["ranktilt"]["checkpoint"]
    share = f"{100 * checkpoint / CHECKPOINT_EVERY:.1f} %"
    lines.append(
        f"- a checkpoint, each {CHECKPOINT_EVERY:.0f} s, is left out above: {seconds(checkpoint)} "
        f"s, {share}"
    )
    return "\n".join(lines)


def mining(folder: Path, data_name: str, args: argparse.Namespace) -> str:
    """The share of an epoch that each scheme takes."""
    rows, lines = [], []
    m = fresh(__file__, "mining", folder)
    for scheme in SCHEMES:
        step = m[f"{scheme}, step"]
        share = 100 * m[scheme] / (m[scheme] + m["steps"] * step)
        rows.append(
            [scheme, f"{m['steps']:,.0f}", seconds(step), seconds(m[scheme]), f"{share:.1f} %"]
        )
        lines.append(target(f"mining by {scheme}, share of an epoch", share, at_most=10, unit=" %"))
    header = ["negatives", "steps in an epoch", "seconds a step", "mining (s)", "share of an epoch"]
    steps = 2 if quick(folder) else MINED_STEPS
    return "\n".join(
        [
            (
                f"### Mining for an epoch on {data_name}; the steps are those of {steps} batches, "
                "times their number"
            ),
            "",
            table(header, rows),
            "",
            *lines,
        ]
    )


SECTIONS = {
    "train": ("## Training a retriever", speed),
    "train-mining": ("## Mining negatives", mining),
}


def main() -> None:
    """Measure and write the section."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", choices=SECTIONS, help="one of the two parts")
    args = parser.parse_args()
    if args.contender:
        compete(args, CONTENDERS)
        return
    with nfcorpus_or_tiny(args) as (folder, data_name, lost):
        for name, (heading, measure) in SECTIONS.items():
            if args.only in (None, name):
                lines = [heading, machine(PACKAGES), *lost, NOTE, measure(folder, data_name, args)]
                publish(name, "\n\n".join(lines), args)


if __name__ == "__main__":
    main()
