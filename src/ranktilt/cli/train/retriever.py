"""``ranktilt train retriever``: a retriever of one's own, or a sweep of several.

A *sweep* trains a retriever with each strength of the debiased constraint and each kind of
negatives that is typed, and compares them.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import TRAINING, percentage, verb
from ranktilt.cli.notes import note
from ranktilt.cli.output import Output, with_command
from ranktilt.cli.train.options import Model, train
from ranktilt.cli.train.retriever_options import RetrieverLearning, RetrieverSplits
from ranktilt.cli.train.summaries import summary, warn_of_seen_judgments


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
    splits: RetrieverSplits = RetrieverSplits(),
    learning: RetrieverLearning = RetrieverLearning(),
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
    from ranktilt.mitigation.retriever_sweep import SweepOptions, retriever_sweep
    from ranktilt.training.retriever import train_retriever

    results.check(collection)
    training = learning.training()
    loaded, dev = splits.load(collection)
    alphas = learning.alphas(loaded, training)
    if len(alphas) == len(learning.negative_kinds) == 1:
        training = replace(training, alpha=alphas[0])
        trained = train_retriever(loaded, learning.base_model, output, options=training, dev=dev)
        note(summary(trained, collection, loaded, "dense"))
        warn_of_seen_judgments(collection, splits.split)
        return
    sweep = SweepOptions(
        alphas=alphas, negatives=learning.negative_kinds, training=training, budget=budget
    )
    tested = splits.load_test(collection)
    bench, _ = retriever_sweep(loaded, tested, learning.base_model, output, options=sweep, dev=dev)
    bench = with_command(bench)
    path = output / "bench.json"
    results.deliver(bench, {path: bench.to_json})
    note(f"Next: {shlex.join(['ranktilt', 'report', str(path), '-o', str(output / 'bench.html')])}")
