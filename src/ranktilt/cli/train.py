"""``ranktilt train``: make a ranker of one's own; one command a kind."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from ranktilt.cli import options
from ranktilt.cli.notes import groups_to_audit, note
from ranktilt.cli.output import Output, with_command
from ranktilt.errors import UserError, counted
from ranktilt.measures.printing import signed
from ranktilt.option import Option
from ranktilt.training.options import LoraTraining, Negatives, RerankerTraining, RetrieverTraining

if TYPE_CHECKING:
    from ranktilt.collection import Collection
    from ranktilt.training.options import Trained

train = typer.Typer(
    help="Train a ranker on a collection's judgments.", no_args_is_help=True, rich_markup_mode=None
)


_Folder = Annotated[
    Path,
    Option(
        "Folder for the model; an interrupted training there is resumed.",
        "FOLDER",
        short="-o",
        panel="Output",
    ),
]
_Split = Annotated[
    str, Option("Judgments to learn from, qrels/<split>.tsv.", "SPLIT", panel="Input")
]
_Encoder = Annotated[
    str, Option("Encoder to start from: minilm, a folder or a hub name.", "MODEL", panel="Model")
]


@dataclass(frozen=True)
class ReadingOptions(options.Compute):
    """What a model reads, and what it runs on."""

    text: Annotated[options.Fields | None, Option("Part of a document to learn from.")] = None

    @property
    def fields(self) -> dict[str, Any]:
        """As options of a training have them."""
        return {"text": self.text or "title+text", "device": self.device}


_Sources = Annotated[
    list[str] | None,
    Option(
        "Sources to learn from, or N relevant documents of each.", "SOURCE[=N],…", panel="Input"
    ),
]


def _amounts(sources: list[str] | None) -> dict[str, Any]:
    """The sources that are learned from, and how much of each, as `ranktilt.training.options.Training` has them."""
    amounts = read_amounts(sources or (), "--sources", whole=True)
    limits = tuple((name, most) for name, most in amounts.items() if most >= 0)
    return {"sources": tuple(amounts), "limits": limits} if amounts else {}


@train.command("cross-encoder", cls=options.Verb)
@options.verb(
    "train cross-encoder DIR -o model",
    "train cross-encoder DIR --sources human=500 --preset askari -o model",
    panel="Training",
)
def cross_encoder(
    collection: options.Folder,
    *,
    output: _Folder,
    base_model: _Encoder = "minilm",
    split: _Split = "train",
    sources: _Sources = None,
    preset: options.Preset = None,
    learning: Annotated[dict[str, Any], options.FieldsOf(RerankerTraining)],
    neural: ReadingOptions,
) -> None:
    """Fine-tune an encoder into a re-ranker on the train split; resumes what was interrupted."""
    from ranktilt.datasets.load import load
    from ranktilt.training.cross_encoder import train_cross_encoder

    chosen = RerankerTraining.from_preset(preset, **learning, **_amounts(sources), **neural.fields)
    loaded = load(collection, split=split, ignore_unknown=True)
    trained = train_cross_encoder(loaded, base_model, output, options=chosen)
    note(_summary(trained, collection, loaded, "bm25@100>>cross-encoder"))
    _warn_of_seen_judgments(collection, split)


@train.command("retriever", cls=options.Verb)
@options.verb(
    "train retriever DIR -o model",
    "train retriever DIR --debias 0 --debias 0.1 --debias 1 -o sweep",
    panel="Training",
)
def retriever(
    collection: options.Folder,
    *,
    output: _Folder,
    base_model: _Encoder = "minilm",
    debias: Annotated[
        list[str] | None,
        Option("Weight of the debiased constraint; several values, or paper, make a sweep.", "α"),
    ] = None,
    negatives: Annotated[
        list[str] | None,
        Option(
            "The batch's alone (default), BM25's, the model's own (anew each epoch), or those of BM25's that are like "
            "the positive in perplexity and specificity; several make a sweep.",
            "|".join(get_args(Negatives)),
        ),
    ] = None,
    split: _Split = "train",
    dev: Annotated[
        str | None,
        Option("Split on which to audit the model after each epoch.", "SPLIT", panel="Input"),
    ] = None,
    test_split: Annotated[
        str, Option("Split on which a sweep's models are compared.", "SPLIT", panel="Input")
    ] = "test",
    budget: Annotated[
        float, Option("nDCG@10 that levelling may cost in a sweep, 0 to 1.", "X")
    ] = 0.01,
    sources: _Sources = None,
    learning: Annotated[
        dict[str, Any], options.FieldsOf(RetrieverTraining, without=("alpha", "negatives"))
    ],
    neural: ReadingOptions,
    results: Output,
) -> None:
    """Fine-tune an encoder into a retriever on the train split, levelled by the debiased constraint where asked.

    Several --debias or --negatives make one model each in subfolders, and compare them on the test
    split: Relative Δ, effectiveness, and the smallest that is level within the budget.
    """
    from ranktilt.datasets.load import load
    from ranktilt.experiments.retriever_sweep import PAPER
    from ranktilt.training.retriever import train_retriever

    asked, kinds = debias or ["0"], list[Any](dict.fromkeys(negatives or ["in-batch"]))
    results.check(collection)
    chosen = RetrieverTraining(
        **{**learning, "negatives": kinds[0]}, **_amounts(sources), **neural.fields
    )
    loaded = load(collection, split=split, ignore_unknown=True)
    judged = None if dev is None else load(collection, split=dev, ignore_unknown=True)
    alphas = _alphas(asked, loaded, base_model, chosen)
    if len(alphas) == len(kinds) == 1 and PAPER not in asked:
        chosen = replace(chosen, alpha=alphas[0])
        trained = train_retriever(loaded, base_model, output, options=chosen, dev=judged)
        note(_summary(trained, collection, loaded, "dense"))
        _warn_of_seen_judgments(collection, split)
        return
    from ranktilt.experiments.retriever_sweep import retriever_sweep

    tested = load(collection, split=test_split, ignore_unknown=True)
    found, _ = retriever_sweep(
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
    found = with_command(found)
    place = output / "bench.json"
    results.deliver(found, {place: found.to_json})
    note(
        f"Next: {shlex.join(['ranktilt', 'report', str(place), '-o', str(output / 'bench.html')])}"
    )


def read_amounts(texts: Sequence[str], option: str, *, whole: bool = False) -> dict[str, int]:
    """Read how many documents of each source are learned from: ``SOURCE=N,…``; -1 for all, without N, if `whole`."""
    found = dict[str, int]()
    for part in (part.strip() for text in texts for part in text.split(",")):
        name, equals, number = part.partition("=")
        if not name or name in found or not (number.isdecimal() or (whole and not equals)):
            form = "SOURCE or SOURCE=N" if whole else "SOURCE=N"
            raise UserError(
                f"{option}: expected {form}, each source once, such as human=500,llm=500; got {part!r}"
            )
        found[name] = int(number) if equals else -1
    return found


def _alphas(
    strengths: list[str], collection: Collection, model: str, chosen: RetrieverTraining
) -> list[float]:
    """The strengths, those of the paper on the model's scale, which is said."""
    from ranktilt.experiments.retriever_sweep import PAPER, PAPER_ALPHAS, PAPER_SCORE, sweep_alphas
    from ranktilt.training.retriever import score_scale

    scale = None
    if PAPER in strengths:
        sweep_alphas(strengths, scale)  # bad numbers are refused before the model is loaded
        scale = score_scale(collection, model, chosen)
        scaled = ", ".join(f"{alpha:g}" for alpha in sweep_alphas([PAPER], scale))
        note(
            f"α of the paper, for ANCE's scores of about {PAPER_SCORE:g}: {', '.join(f'{a:g}' for a in PAPER_ALPHAS)}. "
            f"{model} gives relevant documents {scale:.3g} on average, which makes it {scaled}"
        )
    return sweep_alphas(strengths, scale)


def _warn_of_seen_judgments(collection: Path, split: str) -> None:
    if split == "test" or len(list((collection / "qrels").glob("*.tsv"))) == 1:
        note(
            "warning: the model learned from the judgments that this audit would use, so its figures would flatter it; "
            "name others: --split"
        )


@train.command("lora", cls=options.Verb)
@options.verb(
    "train lora DIR --base-model FOLDER -o adapter",
    "train lora DIR --base-model FOLDER --by gender --protected female -o adapter",
    panel="Training",
)
def lora(
    collection: options.Folder,
    *,
    output: _Folder,
    base_model: Annotated[
        str, Option("Chat model: a folder saved by transformers.", "MODEL", panel="Model")
    ],
    by: Annotated[
        str, Option("Column that groups documents.", "COLUMN", panel="Question")
    ] = "source",
    protected: options.Protected = None,
    split: options.Split = None,
    learning: Annotated[dict[str, Any], options.FieldsOf(LoraTraining)],
    neural: ReadingOptions,
) -> None:
    """Fine-tune a chat model's attention on pairs of documents whose right answer is as often of either group."""
    from ranktilt.llm.transformers import HELD_OUT
    from ranktilt.training.lora import train_lora

    chosen = LoraTraining(**learning, **neural.fields)
    loaded = options.load_texts(collection, split)
    trained = train_lora(loaded, base_model, output, by=by, protected=protected, options=chosen)
    found = trained.figures
    first, last = found["loss"][0], found["loss"][-1]
    went_on = (
        f", this time from step {trained.resumed + 1:,} on"
        if 0 < trained.resumed < found["steps"]
        else ""
    )
    note(
        f"{trained.folder}: learned from {found['pairs']:,} pairs in {found['steps']:,} steps{went_on}; its loss went "
        f"from {first:.2f} to {last:.2f}. {found['held_out_queries']:,} queries were held out: "
        f"{trained.folder / HELD_OUT}"
    )
    groups = {"by": by, "protected": protected, "split": split}
    note(f"Next: {_next_pairwise(collection, base_model, trained, chosen, **groups)}")


def _next_pairwise(
    collection: Path, model: str, trained: Trained, chosen: LoraTraining, **groups: str | None
) -> str:
    """The command that asks the adapted model about the queries that were held out, as it was trained."""
    from ranktilt.llm.transformers import HELD_OUT
    from ranktilt.rankers.spec import Stage

    usual, told = asdict(LoraTraining()), asdict(chosen)
    other = {
        name: told[name]
        for name in ("text", "passage_tokens", "prompt", "attribute")
        if told[name] != usual[name]
    }
    named = groups | {name: other.pop(name) for name in ("prompt", "attribute") if name in other}
    options = {
        "adapter": str(trained.folder),
        **{name: str(value) for name, value in other.items()},
    }
    llm = str(Stage("pairwise", f"transformers:{model}", options)).removeprefix("pairwise:")
    parts = [part for name, value in named.items() if value for part in (f"--{name}", value)]
    command = ["ranktilt", "pairwise", str(collection), "--llm", llm, *parts]
    return shlex.join([*command, "--queries", str(trained.folder / HELD_OUT)])


def _summary(trained: Trained, folder: Path, collection: Collection, stage: str) -> str:
    found = trained.figures
    steps, resumed = found["steps"], trained.resumed
    if resumed == steps:
        did = f"{trained.folder} is there already, trained as asked: {steps:,} steps"
    else:
        went_on = f" (this time from step {resumed + 1:,} on)" if resumed else ""
        much = f"{found['pairs']:,} of the pairs that {found['queries']:,} queries allow"
        did = f"{trained.folder}: learned from {much} in {steps:,} steps{went_on}"
    first, last = found["loss"][0], found["loss"][-1]
    left_out = found.get("skipped_positives", 0)
    beyond = (
        f" Left out: {counted(left_out, 'relevant document', 'relevant documents')}."
        if left_out
        else ""
    )
    if imbalance := found.get("imbalance"):
        apart = [
            f"{name} {signed(value, 2)} sd ({signed(imbalance['unmatched'][name], 2)} unmatched)"
            for name, value in imbalance["matched"].items()
        ]
        beyond += f" Positives less negatives: {', '.join(apart)}."
    place = str(trained.folder)
    spec = f'"{place}"' if set(place) & set("()@,") or ">>" in place else place
    summary = f"{did}; its loss went from {first:.2f} to {last:.2f}.{beyond}"
    groups = groups_to_audit(collection)
    if groups is None:
        return summary
    following = shlex.join(["ranktilt", "audit", str(folder), "-r", f"{stage}:{spec}", *groups])
    return f"{summary}\nNext: {following}"
