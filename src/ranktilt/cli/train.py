"""``ranktilt train``: make a ranker of one's own; one command a kind."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.notes import note

if TYPE_CHECKING:
    from ranktilt.training.options import Trained

train = typer.Typer(help="Train a ranker on a collection's judgments.", no_args_is_help=True, rich_markup_mode=None)


@train.callback()
def _train() -> None:
    """Train a ranker on a collection's judgments."""


@train.command("cross-encoder")
@options.verb
def cross_encoder(
    collection: options.Folder,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Where the model goes; an interrupted training in it goes on."
        ),
    ],
    start_from: Annotated[
        str,
        typer.Option("--from", metavar="MODEL", help="The encoder to start from: minilm, a folder or a hub name."),
    ] = "minilm",
    split: Annotated[str, typer.Option("--split", help="Learn from the judgments in qrels/<split>.tsv.")] = "train",
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source", metavar="SOURCE", help="Learn from documents of this source only; several may be given."
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", metavar="N", help="Batches to learn from (default: an epoch).")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", metavar="M", help="As many batches as fit into about so many minutes.")
    ] = None,
    negatives: Annotated[int, typer.Option("--negatives", metavar="N", help="BM25 negatives of each positive.")] = 4,
    depth: Annotated[int, typer.Option("--depth", metavar="K", help="Learn from BM25's best K documents.")] = 100,
    batch: Annotated[int, typer.Option("--batch", metavar="N", help="Pairs of query and document a step.")] = 32,
    learning_rate: Annotated[float, typer.Option("--learning-rate", metavar="X", help="Highest learning rate.")] = 1e-4,
    max_query_tokens: Annotated[int, typer.Option("--max-query-tokens", metavar="N", help="Cut queries there.")] = 30,
    max_document_tokens: Annotated[
        int, typer.Option("--max-document-tokens", metavar="N", help="Cut documents there.")
    ] = 200,
    precision: Annotated[
        options.Precisions, typer.Option("--precision", help="auto takes bfloat16 where it is fast.")
    ] = options.Precisions.auto,
    seed: Annotated[int, typer.Option("--seed", help="Random seed: equal seeds, equal weights.")] = 0,
    neural: options.RankerOptions,
) -> None:
    """Fine-tune an encoder into a re-ranker on the train split, with BM25 negatives; resumes what was interrupted."""
    from ranktilt.datasets.load import load
    from ranktilt.training.cross_encoder import train_cross_encoder
    from ranktilt.training.directory import CHECKPOINT
    from ranktilt.training.options import Training

    chosen = Training(
        sources=tuple(dict.fromkeys(source)) if source else None, steps=steps, minutes=minutes,
        negatives=negatives, depth=depth, batch=batch, rate=learning_rate, text=neural.text or "title+text",
        max_query_tokens=max_query_tokens, max_document_tokens=max_document_tokens, precision=precision,
        seed=seed, device=neural.device,
    )  # fmt: skip
    loaded = load(collection, split=split, ignore_unknown=True)
    try:
        trained = train_cross_encoder(loaded, start_from, output, options=chosen)
    except KeyboardInterrupt:
        kept = (output / CHECKPOINT).is_file()
        note(f"{output}: the same command {'goes on from the last checkpoint' if kept else 'starts anew'}")
        raise
    note(_summary(trained, collection))
    if split == "test" or len(list((collection / "qrels").glob("*.tsv"))) == 1:
        note(
            "warning: it learned from the judgments that this audit would use, so that its figures will flatter it; "
            "name others: --split"
        )


@train.command("lora")
@options.verb
def lora(
    collection: options.Folder,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Where the adapter goes; an interrupted training in it goes on."
        ),
    ],
    start_from: Annotated[
        str, typer.Option("--from", metavar="MODEL", help="The chat model: a folder as transformers saves it.")
    ],
    by: Annotated[str, typer.Option("--by", metavar="COLUMN", help="The column of groups.")] = "source",
    protected: Annotated[
        str | None, typer.Option("--protected", metavar="GROUP", help="The protected group (of two: the smaller one).")
    ] = None,
    prompt: Annotated[
        str, typer.Option("--prompt", metavar="NAME|FILE", help="pairwise-neutral, pairwise-sensitive or a file.")
    ] = "pairwise-neutral",
    attribute: Annotated[
        str | None, typer.Option("--attribute", metavar="X", help="What fills {attribute} in the prompt.")
    ] = None,
    pairs: Annotated[int, typer.Option("--pairs", metavar="N", help="About how many pairs an epoch has.")] = 140_000,
    rank: Annotated[int, typer.Option("--rank", metavar="R", help="Rank of the matrices that are added.")] = 1,
    steps: Annotated[
        int | None, typer.Option("--steps", metavar="N", help="Batches to learn from (default: an epoch).")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", metavar="M", help="As many batches as fit into about so many minutes.")
    ] = None,
    batch: Annotated[int, typer.Option("--batch", metavar="N", help="Pairs a step.")] = 4,
    learning_rate: Annotated[float, typer.Option("--learning-rate", metavar="X", help="Highest learning rate.")] = 3e-3,
    share: Annotated[
        float, typer.Option("--share", metavar="X", help="Of the queries that are learned from; the rest is held out.")
    ] = 0.8,
    passage_tokens: Annotated[int, typer.Option("--passage-tokens", metavar="N", help="Cut documents there.")] = 300,
    precision: Annotated[
        options.Precisions, typer.Option("--precision", help="auto takes bfloat16 where it is fast.")
    ] = options.Precisions.auto,
    split: options.Split = None,
    seed: Annotated[int, typer.Option("--seed", help="Random seed: equal seeds, equal weights.")] = 0,
    neural: options.RankerOptions,
) -> None:
    """Fine-tune a chat model's attention on pairs of documents whose right answer is as often of either group."""
    from ranktilt.training.lora import HELD_OUT, LoraTraining, train_lora

    chosen = LoraTraining(
        pairs=pairs, rank=rank, rate=learning_rate, batch=batch, share=share, steps=steps, minutes=minutes,
        prompt=prompt, attribute=attribute, text=neural.text or "title+text", passage_tokens=passage_tokens,
        precision=precision, seed=seed, device=neural.device,
    )  # fmt: skip
    loaded = options.load_texts(collection, split)
    trained = train_lora(loaded, start_from, output, by=by, protected=protected, options=chosen)
    found = trained.figures
    first, last = found["loss"][0], found["loss"][-1]
    went_on = f", this time from step {trained.resumed + 1:,} on" if 0 < trained.resumed < found["steps"] else ""
    note(
        f"{trained.folder}: learned from {found['pairs']:,} pairs in {found['steps']:,} steps{went_on}; its loss went "
        f"from {first:.2f} to {last:.2f}. {found['held_out_queries']:,} queries were held out: "
        f"{trained.folder / HELD_OUT}"
    )
    spec = f"transformers:{start_from}(adapter={trained.folder})"
    note(f"Next: {shlex.join(['ranktilt', 'pairwise', str(collection), '--llm', spec, '--by', by])}")


def _summary(trained: Trained, collection: Path) -> str:
    found = trained.figures
    steps, resumed = found["steps"], trained.resumed
    if resumed == steps:
        did = f"{trained.folder} is there already, trained as asked: {steps:,} steps"
    else:
        went_on = f" (this time from step {resumed + 1:,} on)" if resumed else ""
        much = f"{found['pairs']:,} of the pairs that {found['queries']:,} queries allow"
        did = f"{trained.folder}: learned from {much} in {steps:,} steps{went_on}"
    first, last = found["loss"][0], found["loss"][-1]
    place = str(trained.folder)
    spec = f'"{place}"' if set(place) & set("()@,") or ">>" in place else place
    following = shlex.join(["ranktilt", "audit", str(collection), "-r", f"bm25@100>>cross-encoder:{spec}"])
    return f"{did}; its loss went from {first:.2f} to {last:.2f}.\nNext: {following}"
