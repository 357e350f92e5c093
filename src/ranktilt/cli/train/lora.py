"""``ranktilt train lora``: fine-tune a chat model to choose both groups equally often.

LoRA trains an *adapter*: a small set of weights that is added to those of the model. Some queries
are *held out*: the model does not learn from them, so ``ranktilt pairwise`` can test it on them.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import MODEL, QUESTION, verb
from ranktilt.cli.notes import note
from ranktilt.cli.train.arguments import training_arguments, typed_options
from ranktilt.cli.train.options import Minutes, Model, Text, train
from ranktilt.training.options import LoraTraining

if TYPE_CHECKING:
    from ranktilt.training.options import TrainedModel

_LORA_OPTIONS = {
    "attribute": "--attribute",
    "device": "--device",
    "minutes": "--minutes",
    "prompt": "--prompt",
    "text": "--text",
}
"""Options of this command, by the argument that they set."""


@verb(
    "lora",
    "train lora DIR --base-model FOLDER -o adapter",
    "train lora DIR --base-model FOLDER --by gender -o adapter",
    arguments="DIR",
    parent=train,
)
def lora(
    collection: options.Folder,
    /,
    *,
    output: Model,
    base_model: Annotated[
        str,
        Parameter(help="Chat model: a folder saved by transformers.", metavar="MODEL", group=MODEL),
    ],
    prompt: Annotated[
        str | None,
        Parameter(
            help="pairwise-neutral (default), pairwise-sensitive or a file.",
            metavar="NAME|FILE",
            group=MODEL,
        ),
    ] = None,
    attribute: Annotated[
        str | None,
        Parameter(help="Text for {attribute} in the prompt.", metavar="X", group=MODEL),
    ] = None,
    text: Text = None,
    split: options.Split = None,
    by: Annotated[
        str,
        Parameter(
            help="Column to group documents by (default: source).",
            metavar="COLUMN",
            group=QUESTION,
        ),
    ] = "source",
    protected: options.Protected = None,
    minutes: Minutes = None,
) -> None:
    """Fine-tune a chat model to choose both groups equally often.

    It learns from pairs of documents in which each group is equally often the right answer. Only
    its attention is adapted. An interrupted training resumes. Set other arguments with --set
    KEY=VALUE, such as --set epochs=3: steps, epochs, batch, rate, warmup_steps, weight_decay, seed,
    precision, pairs_per_epoch, rank, share, passage_tokens.
    """
    from ranktilt.llm.transformers import HELD_OUT
    from ranktilt.training.lora import train_lora

    training = LoraTraining(
        **training_arguments(LoraTraining, _LORA_OPTIONS),
        **typed_options(prompt=prompt, attribute=attribute, text=text, minutes=minutes),
    )
    loaded = options.load_texts(collection, split)
    trained = train_lora(loaded, base_model, output, by=by, protected=protected, options=training)
    figures = trained.figures
    first, last = figures["loss"][0], figures["loss"][-1]
    resumption = ""
    if 0 < trained.resumed < figures["steps"]:
        resumption = f", this time from step {trained.resumed + 1:,} on"
    note(
        f"{trained.folder}: learned from {figures['pairs']:,} pairs in {figures['steps']:,} "
        f"steps{resumption}; its loss went from {first:.2f} to {last:.2f}. "
        f"{figures['held_out_queries']:,} queries were held out: {trained.folder / HELD_OUT}"
    )
    groups = {"by": by, "protected": protected, "split": split}
    note(f"Next: {_next_pairwise(collection, base_model, trained, training, **groups)}")


def _next_pairwise(
    collection: Path,
    model: str,
    trained: TrainedModel,
    training: LoraTraining,
    **groups: str | None,
) -> str:
    """Return the command that asks the adapted model about the queries that were held out.

    It repeats the settings of the training. `groups` are the options ``by``, ``protected`` and
    ``split``.
    """
    from ranktilt.llm.transformers import HELD_OUT
    from ranktilt.spec import Stage

    defaults = LoraTraining()
    model_options = {"adapter": str(trained.folder)}
    for name in ("text", "passage_tokens"):
        if getattr(training, name) != getattr(defaults, name):
            model_options[name] = str(getattr(training, name))
    verb_options = dict(groups)
    for name in ("prompt", "attribute"):
        if getattr(training, name) != getattr(defaults, name):
            verb_options[name] = getattr(training, name)
    stage = Stage(name="pairwise", argument=f"transformers:{model}", options=model_options)
    llm = str(stage).removeprefix("pairwise:")
    command = ["ranktilt", "pairwise", str(collection), "--llm", llm]
    for name, value in verb_options.items():
        if value:
            command += [f"--{name}", value]
    return shlex.join([*command, "--queries", str(trained.folder / HELD_OUT)])
