"""``ranktilt train retriever``: a retriever of one's own, or a sweep of several."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, TRAINING, percentage, verb
from ranktilt.cli.notes import note
from ranktilt.cli.output import Output, with_command
from ranktilt.cli.train.arguments import OPTIONS, source_amounts, training_arguments, typed_options
from ranktilt.cli.train.options import Encoder, LearningSplit, Minutes, Model, Sources, Text, train
from ranktilt.cli.train.summaries import summary, warn_of_seen_judgments
from ranktilt.training.options import Negatives, RetrieverTraining

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection


@verb(
    "retriever",
    "train retriever DIR -o model",
    "train retriever DIR --debias 0 --debias 0.1 --debias 1 -o sweep",
    arguments="DIR",
    parent=train,
)
def retriever(
    collection: options.Folder,
    /,
    *,
    output: Model,
    base_model: Encoder = "minilm",
    text: Text = None,
    split: LearningSplit = "train",
    dev: Annotated[
        str | None,
        Parameter(
            help="Split on which to audit the model after each epoch.",
            metavar="SPLIT",
            group=INPUT,
        ),
    ] = None,
    test_split: Annotated[
        str,
        Parameter(
            help="Split on which to compare a sweep's models (default: test).",
            metavar="SPLIT",
            group=INPUT,
        ),
    ] = "test",
    sources: Sources = None,
    debias: Annotated[
        list[str] | None,
        Parameter(
            help="Weight of the debiased constraint (default: 0); several values, or paper, make a "
            "sweep.",
            metavar="α",
            group=TRAINING,
        ),
    ] = None,
    negatives: Annotated[
        list[Negatives] | None,
        Parameter(
            help="Negatives from the batch alone (default), from BM25, from the model itself "
            "(ann, new each epoch), or from BM25 and like the positive in perplexity and "
            "specificity (controlled); several make a sweep.",
            metavar="KIND",
            group=TRAINING,
        ),
    ] = None,
    minutes: Minutes = None,
    budget: Annotated[
        float,
        Parameter(
            help="Points of nDCG@10 that levelling may cost in a sweep (default: 1).",
            metavar="X",
            group=TRAINING,
            converter=percentage,
        ),
    ] = 1.0,
    results: Output = Output(),
) -> None:
    """Fine-tune an encoder into a retriever, on the train split.

    With --debias, it learns under the debiased constraint: an LLM's version of a relevant document
    may not score above that document.

    Several --debias or --negatives make a sweep. It trains one model each in subfolders, compares
    their Relative Δ and effectiveness on the test split, and names the smallest that is level
    within the budget.

    An interrupted training resumes. Set other arguments with --set KEY=VALUE, such as --set
    epochs=3: steps, epochs, batch, rate, warmup_steps, weight_decay, seed, precision,
    negatives_per_positive, positives_per_query, max_query_tokens, max_document_tokens, twins,
    depth, loss, variant, patience.
    """
    from ranktilt.data.loading.load import load
    from ranktilt.mitigation.retriever_sweep import PAPER
    from ranktilt.training.retriever import train_retriever

    strengths, kinds = debias or ["0"], list[Any](dict.fromkeys(negatives or ["in-batch"]))
    results.check(collection)
    chosen = RetrieverTraining(
        **training_arguments(RetrieverTraining, OPTIONS),
        **typed_options(text=text, negatives=kinds[0], minutes=minutes),
        **source_amounts(sources),
    )
    loaded = load(collection, split=split, ignore_unknown=True)
    judged = None if dev is None else load(collection, split=dev, ignore_unknown=True)
    alphas = _alphas(strengths, loaded, base_model, chosen)
    if len(alphas) == len(kinds) == 1 and PAPER not in strengths:
        chosen = replace(chosen, alpha=alphas[0])
        trained = train_retriever(loaded, base_model, output, options=chosen, dev=judged)
        note(summary(trained, collection, loaded, "dense"))
        warn_of_seen_judgments(collection, split)
        return
    from ranktilt.mitigation.retriever_sweep import SweepOptions, retriever_sweep

    tested = load(collection, split=test_split, ignore_unknown=True)
    sweep = SweepOptions(alphas=alphas, negatives=kinds, training=chosen, budget=budget)
    bench, _ = retriever_sweep(loaded, tested, base_model, output, options=sweep, dev=judged)
    bench = with_command(bench)
    path = output / "bench.json"
    results.deliver(bench, {path: bench.to_json})
    note(f"Next: {shlex.join(['ranktilt', 'report', str(path), '-o', str(output / 'bench.html')])}")


def _alphas(
    strengths: list[str], collection: Collection, model: str, chosen: RetrieverTraining
) -> list[float]:
    """Return the strengths; those of the paper are converted to the model's scale, with a note."""
    from ranktilt.mitigation.retriever_sweep import PAPER, PAPER_ALPHAS, PAPER_SCORE, sweep_alphas
    from ranktilt.training.retriever import score_scale

    scale = None
    if PAPER in strengths:
        # Bad numbers are refused before the model is loaded.
        sweep_alphas(strengths, scale)
        scale = score_scale(collection, model, chosen)
        paper_alphas = ", ".join(f"{alpha:g}" for alpha in PAPER_ALPHAS)
        scaled = ", ".join(f"{alpha:g}" for alpha in sweep_alphas([PAPER], scale))
        note(
            f"The paper's α, for ANCE's scores of about {PAPER_SCORE:g}: {paper_alphas}. "
            f"{model} gives relevant documents {scale:.3g} on average, so α becomes {scaled}"
        )
    return sweep_alphas(strengths, scale)
