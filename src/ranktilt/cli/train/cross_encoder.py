"""``ranktilt train cross-encoder``: a re-ranker of one's own.

A cross-encoder reads a query and a document together and gives one score, so it re-ranks the few
documents that a faster ranker found. The *debiased constraint* is a penalty on scores (*logits*)
that put an LLM's version of a relevant document above that document.
"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import TRAINING, verb
from ranktilt.cli.notes import note
from ranktilt.cli.train.arguments import OPTIONS, source_amounts, training_arguments, typed_options
from ranktilt.cli.train.options import (
    Encoder,
    LearningSplit,
    Minutes,
    Model,
    RerankerNegatives,
    Sources,
    Text,
    load_split,
    train,
)
from ranktilt.cli.train.summaries import summary, warn_of_seen_judgments
from ranktilt.training.options import RerankerTraining


@verb(
    "cross-encoder",
    "train cross-encoder DIR -o model",
    "train cross-encoder DIR --preset askari --set epochs=3 -o model",
    arguments="DIR",
    parent=train,
)
def cross_encoder(
    collection: options.Folder,
    /,
    *,
    output: Model,
    base_model: Encoder = "minilm",
    text: Text = None,
    split: LearningSplit = "train",
    sources: Sources = None,
    negatives: RerankerNegatives = None,
    debias: Annotated[
        float | None,
        Parameter(
            help="Weight of the debiased constraint on the logits (default: 0).",
            metavar="α",
            group=TRAINING,
            validator=options.NOT_NEGATIVE,
        ),
    ] = None,
    minutes: Minutes = None,
    preset: options.Preset = None,
) -> None:
    """Fine-tune an encoder into a re-ranker, on the train split.

    An interrupted training resumes. Set other arguments with --set KEY=VALUE, such as --set
    epochs=3: steps, epochs, batch, rate, warmup_steps, weight_decay, seed, precision,
    negatives_per_positive, positives_per_query, max_query_tokens, max_document_tokens, twins,
    positives, triples, loss, dropout.
    """
    from ranktilt.training.cross_encoder import train_cross_encoder

    typed = typed_options(text=text, negatives=negatives, alpha=debias, minutes=minutes)
    arguments = training_arguments(RerankerTraining, OPTIONS)
    training = RerankerTraining.from_preset(preset, **arguments, **typed, **source_amounts(sources))
    loaded = load_split(collection, split)
    trained = train_cross_encoder(loaded, base_model, output, options=training)
    note(summary(trained, collection, loaded, "bm25@100>>cross-encoder"))
    warn_of_seen_judgments(collection, split)
