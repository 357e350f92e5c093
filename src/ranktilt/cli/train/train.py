"""``ranktilt train``: make a ranker of one's own; one command a kind."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import CORRECT, INPUT, MODEL, OUTPUT, QUESTION, TRAINING, command_group, verb
from ranktilt.cli.notes import groups_to_audit, note
from ranktilt.cli.output import Output, with_command
from ranktilt.cli.settings import settings
from ranktilt.errors import UserError, counted, unknown
from ranktilt.measures.printing import signed
from ranktilt.spec import read_value
from ranktilt.training.options import LoraTraining, Negatives, RerankerTraining, RetrieverTraining

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.training.options import Schedule, Trained

train = command_group("train", "Train a ranker on a collection's judgments.", CORRECT)

Model = Annotated[
    Path,
    Parameter(
        name="--output",
        alias="-o",
        help="Folder for the model; an interrupted training there is resumed.",
        metavar="FOLDER",
        group=OUTPUT,
    ),
]
LearningSplit = Annotated[
    str,
    Parameter(
        help="Judgments to learn from, qrels/<split>.tsv (default: train).",
        metavar="SPLIT",
        group=INPUT,
    ),
]
Encoder = Annotated[
    str,
    Parameter(
        help="Encoder to start from: minilm (default), a folder or a hub name.",
        metavar="MODEL",
        group=MODEL,
    ),
]
Text = Annotated[
    options.Fields | None, Parameter(help="Part of a document to learn from.", group=MODEL)
]
Sources = Annotated[
    list[str] | None,
    Parameter(
        help="Sources to learn from, or N relevant documents of each.",
        metavar="SOURCE[=N],…",
        group=INPUT,
    ),
]
Minutes = Annotated[
    float | None,
    Parameter(
        help="Train for about M minutes, with the learning rate scheduled by time (default: one "
        "epoch).",
        metavar="M",
        group=TRAINING,
        validator=options.NOT_NEGATIVE,
    ),
]
RerankerNegatives = Annotated[
    str | None,
    Parameter(
        help="Negatives from BM25's top K, or from N random documents (default: bm25:100).",
        metavar="bm25:K|random:N",
        group=TRAINING,
    ),
]
OPTIONS = {
    "alpha": "--debias",
    "device": "--device",
    "limits": "--sources",
    "minutes": "--minutes",
    "negatives": "--negatives",
    "sources": "--sources",
    "text": "--text",
}
"""Arguments of a training that are options, by field."""
_LORA_OPTIONS = {
    "attribute": "--attribute",
    "device": "--device",
    "minutes": "--minutes",
    "prompt": "--prompt",
    "text": "--text",
}


def training_arguments(
    kind: type[Schedule], flags: Mapping[str, str], without: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the arguments that ``--set`` gives a training, as the types of its fields.

    Parameters
    ----------
    kind : type
        The dataclass of the training.
    flags : mapping of str to str
        Fields that options of the verb fill, with the option.
    without : iterable of str
        Fields that the verb fills by itself.

    Raises
    ------
    UserError
        For an unknown name, which comes with the nearest known one, for the name of an option, and
        for a value of a wrong type.
    """
    types = get_type_hints(kind)
    names = [name for name in types if name not in flags and name not in without]
    options_by_name = {flag.removeprefix("--"): flag for flag in flags.values()} | dict(flags)
    arguments = {}
    for name, text in settings().training.items():
        if name in options_by_name:
            flag = options_by_name[name]
            raise UserError(f"--set {name}: {flag} is an option, so type {flag} {text}")
        if name not in names:
            raise unknown("argument of this training", name, names)
        arguments[name] = _read_argument(text, types[name], f"--set {name}")
    return arguments


def _read_argument(text: str, hint: Any, option: str) -> Any:
    """Read the text of an argument; choices and bounds are checked where the dataclass is made."""
    parts = (hint, *get_args(hint))
    if NoneType in parts and text.lower() == "none":
        return None
    if any(get_origin(part) is Literal for part in parts):
        return text
    return read_value(text, hint, option)


def _training_device() -> str | None:
    """Return where to train; of several GPUs the one that is named is made the only one to see."""
    device = settings().machine.device
    if device is not None and device.startswith("cuda:"):
        os.environ["CUDA_VISIBLE_DEVICES"] = device.removeprefix("cuda:")
        return "cuda"
    return device


def typed_options(**values: Any) -> dict[str, Any]:
    """Return the arguments of a training that its options give: those that were typed."""
    typed = {name: value for name, value in values.items() if value is not None}
    return {**typed, "device": _training_device()}


def _amounts(sources: list[str] | None) -> dict[str, Any]:
    """Return the arguments of `Training` for the sources to learn from, and how much of each."""
    amounts = read_amounts(sources or (), "--sources", allows_all=True)
    limits = tuple((name, most) for name, most in amounts.items() if most >= 0)
    return {"sources": tuple(amounts), "limits": limits} if amounts else {}


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

    An interrupted training is resumed. Other arguments are given by --set KEY=VALUE, such as
    --set epochs=3: steps, epochs, batch, rate, warmup_steps, weight_decay, seed, precision,
    negatives_per_positive, positives_per_query, max_query_tokens, max_document_tokens, twins,
    positives, triples, loss, dropout.
    """
    from ranktilt.data.load import load
    from ranktilt.training.cross_encoder import train_cross_encoder

    typed = typed_options(text=text, negatives=negatives, alpha=debias, minutes=minutes)
    arguments = training_arguments(RerankerTraining, OPTIONS)
    chosen = RerankerTraining.from_preset(preset, **arguments, **typed, **_amounts(sources))
    loaded = load(collection, split=split, ignore_unknown=True)
    trained = train_cross_encoder(loaded, base_model, output, options=chosen)
    note(_summary(trained, collection, loaded, "bm25@100>>cross-encoder"))
    _warn_of_seen_judgments(collection, split)


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
            help="Split on which a sweep's models are compared (default: test).",
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
            help="The batch's alone (default), BM25's, the model's own (ann, anew each epoch), or "
            "those of BM25's that are like the positive in perplexity and specificity "
            "(controlled); several make a sweep.",
            metavar="KIND",
            group=TRAINING,
        ),
    ] = None,
    minutes: Minutes = None,
    budget: Annotated[
        float,
        Parameter(
            help="nDCG@10 that levelling may cost in a sweep, 0 to 1 (default: 0.01).",
            metavar="X",
            group=TRAINING,
        ),
    ] = 0.01,
    results: Output = Output(),
) -> None:
    """Fine-tune an encoder into a retriever, on the train split.

    With --debias it learns under the debiased constraint: an LLM's version of a relevant document
    may not score above it.

    Several --debias or --negatives make one model each in subfolders, and compare them on the test
    split: Relative Δ, effectiveness, and the smallest that is level within the budget.

    An interrupted training is resumed. Other arguments are given by --set KEY=VALUE, such as
    --set epochs=3: steps, epochs, batch, rate, warmup_steps, weight_decay, seed, precision,
    negatives_per_positive, positives_per_query, max_query_tokens, max_document_tokens, twins,
    depth, loss, variant, patience.
    """
    from ranktilt.data.load import load
    from ranktilt.mitigation.retriever_sweep import PAPER
    from ranktilt.training.retriever import train_retriever

    strengths, kinds = debias or ["0"], list[Any](dict.fromkeys(negatives or ["in-batch"]))
    results.check(collection)
    chosen = RetrieverTraining(
        **training_arguments(RetrieverTraining, OPTIONS),
        **typed_options(text=text, negatives=kinds[0], minutes=minutes),
        **_amounts(sources),
    )
    loaded = load(collection, split=split, ignore_unknown=True)
    judged = None if dev is None else load(collection, split=dev, ignore_unknown=True)
    alphas = _alphas(strengths, loaded, base_model, chosen)
    if len(alphas) == len(kinds) == 1 and PAPER not in strengths:
        chosen = replace(chosen, alpha=alphas[0])
        trained = train_retriever(loaded, base_model, output, options=chosen, dev=judged)
        note(_summary(trained, collection, loaded, "dense"))
        _warn_of_seen_judgments(collection, split)
        return
    from ranktilt.mitigation.retriever_sweep import retriever_sweep

    tested = load(collection, split=test_split, ignore_unknown=True)
    bench, _ = retriever_sweep(
        loaded,
        tested,
        base_model,
        output,
        alphas=alphas,
        negatives=kinds,
        options=chosen,
        dev=judged,
        budget=budget,
    )
    bench = with_command(bench)
    path = output / "bench.json"
    results.deliver(bench, {path: bench.to_json})
    note(f"Next: {shlex.join(['ranktilt', 'report', str(path), '-o', str(output / 'bench.html')])}")


def read_amounts(texts: Sequence[str], option: str, *, allows_all: bool = False) -> dict[str, int]:
    """Read the number of documents to learn from of each source, ``SOURCE=N,…``.

    -1 stands for all documents: a source without a number, if `allows_all`.
    """
    amounts = dict[str, int]()
    for part in ",".join(texts).split(",") if texts else ():
        name, equals, number = part.strip().partition("=")
        is_amount = number.isdecimal() or (allows_all and not equals)
        if not name or name in amounts or not is_amount:
            form = "SOURCE or SOURCE=N" if allows_all else "SOURCE=N"
            raise UserError(
                f"{option}: expected {form}, each source once, such as human=500,llm=500; "
                f"got {part.strip()!r}"
            )
        amounts[name] = int(number) if equals else -1
    return amounts


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
            f"α of the paper, for ANCE's scores of about {PAPER_SCORE:g}: {paper_alphas}. "
            f"{model} gives relevant documents {scale:.3g} on average, which makes it {scaled}"
        )
    return sweep_alphas(strengths, scale)


def _warn_of_seen_judgments(collection: Path, split: str) -> None:
    if split == "test" or len(list((collection / "qrels").glob("*.tsv"))) == 1:
        note(
            "warning: the model learned from the judgments that this audit would use, so its "
            "figures would flatter it; name others: --split"
        )


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
            help="Column that groups documents (default: source).",
            metavar="COLUMN",
            group=QUESTION,
        ),
    ] = "source",
    protected: options.Protected = None,
    minutes: Minutes = None,
) -> None:
    """Fine-tune a chat model to choose either group as often.

    It learns from pairs of documents whose right answer is as often of either group; its attention
    alone is adapted. An interrupted training is resumed. Other arguments are given by
    --set KEY=VALUE, such as --set epochs=3: steps, epochs, batch, rate, warmup_steps, weight_decay,
    seed, precision, pairs_per_epoch, rank, share, passage_tokens.
    """
    from ranktilt.llm.transformers import HELD_OUT
    from ranktilt.training.lora import train_lora

    chosen = LoraTraining(
        **training_arguments(LoraTraining, _LORA_OPTIONS),
        **typed_options(prompt=prompt, attribute=attribute, text=text, minutes=minutes),
    )
    loaded = options.load_texts(collection, split)
    trained = train_lora(loaded, base_model, output, by=by, protected=protected, options=chosen)
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
    note(f"Next: {_next_pairwise(collection, base_model, trained, chosen, **groups)}")


def _next_pairwise(
    collection: Path, model: str, trained: Trained, chosen: LoraTraining, **groups: str | None
) -> str:
    """Return the command that asks the adapted model, as it was trained, about held-out queries."""
    from ranktilt.llm.transformers import HELD_OUT
    from ranktilt.spec import Stage

    usual = LoraTraining()
    model_options = {"adapter": str(trained.folder)}
    for name in ("text", "passage_tokens"):
        if getattr(chosen, name) != getattr(usual, name):
            model_options[name] = str(getattr(chosen, name))
    verb_options = dict(groups)
    for name in ("prompt", "attribute"):
        if getattr(chosen, name) != getattr(usual, name):
            verb_options[name] = getattr(chosen, name)
    llm = str(Stage("pairwise", f"transformers:{model}", model_options)).removeprefix("pairwise:")
    command = ["ranktilt", "pairwise", str(collection), "--llm", llm]
    for name, value in verb_options.items():
        if value:
            command += [f"--{name}", value]
    return shlex.join([*command, "--queries", str(trained.folder / HELD_OUT)])


def _summary(trained: Trained, folder: Path, collection: Collection, stage: str) -> str:
    """Say what the model learned from and how its loss went, with the audit that comes next."""
    summary = (
        f"{_learned(trained)}; its loss went from {trained.figures['loss'][0]:.2f} to "
        f"{trained.figures['loss'][-1]:.2f}.{_left_out_and_imbalance(trained.figures)}"
    )
    groups = groups_to_audit(collection)
    if groups is None:
        return summary
    path = str(trained.folder)
    spec = f'"{path}"' if set(path) & set("()@,") or ">>" in path else path
    command = shlex.join(["ranktilt", "audit", str(folder), "-r", f"{stage}:{spec}", *groups])
    return f"{summary}\nNext: {command}"


def _learned(trained: Trained) -> str:
    figures = trained.figures
    steps = f"{figures['steps']:,} steps"
    if trained.resumed == figures["steps"]:
        return f"{trained.folder} is there already, trained as asked: {steps}"
    resumption = f" (this time from step {trained.resumed + 1:,} on)" if trained.resumed else ""
    return (
        f"{trained.folder}: learned from {figures['pairs']:,} of the pairs that "
        f"{figures['queries']:,} queries allow in {steps}{resumption}"
    )


def _left_out_and_imbalance(figures: Mapping[str, Any]) -> str:
    text = ""
    left_out = figures.get("skipped_positives", 0)
    if left_out:
        documents = counted(left_out, "relevant document", "relevant documents")
        text += f" Left out: {documents}."
    imbalance = figures.get("imbalance")
    if imbalance:
        differences = [
            f"{name} {signed(value, 2)} sd ({signed(imbalance['unmatched'][name], 2)} unmatched)"
            for name, value in imbalance["matched"].items()
        ]
        text += f" Positives less negatives: {', '.join(differences)}."
    return text
