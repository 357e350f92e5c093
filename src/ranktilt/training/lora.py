"""Fine-tune a chat model's attention, on pairs of documents whose right answer is as often of either group."""

from __future__ import annotations

import hashlib
import random
import re
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.pairwise.pairs import draw_pairs, two_groups
from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted
from ranktilt.io.files import cannot_write
from ranktilt.llm.base import LLM, Prompt
from ranktilt.llm.transformers import HELD_OUT, TRAINING_QUERIES, Transformers
from ranktilt.models import checkpoint
from ranktilt.optional import need
from ranktilt.rankers.base import readable_texts
from ranktilt.rankers.llm.base import Task
from ranktilt.rankers.llm.pairwise import Pairwise
from ranktilt.run import codes
from ranktilt.training.directory import TrainingDirectory
from ranktilt.training.loop import TrainingLoop, device_of
from ranktilt.training.options import Trained, require_precision, require_schedule
from ranktilt.training.training_set import origin_of

Ints = npt.NDArray[np.int64]
FOR = "train lora"
_PACKAGES = ("torch", "transformers", "tokenizers", "peft")
_IGNORED = -100
"""What torch's cross-entropy leaves out."""


@dataclass(frozen=True, kw_only=True)
class LoraTraining:
    """How an adapter is trained.

    Pairs, rank, rate, batch and share are those of Wang et al. (NAACL 2024, sec. 5), who adapt the attention alone.
    Ours are alpha (twice the rank), which layers of the attention (all), optimizer and schedule, and what is read of a
    document: they show titles (``text="title"``).

    Parameters
    ----------
    pairs : int, optional
        About how many pairs are learned from in an epoch: as many of relevant documents as of others, for each query.
    rank : int, optional
        Of the matrices that are added to those of the model's attention.
    rate : float, optional
        Highest learning rate: it rises over the first tenth of the steps and falls to 0 over the rest.
    batch : int, optional
        Pairs learned from at once.
    share : float, optional
        Of the queries that are learned from, above 0 and below 1; the others are named in ``held-out.txt``.
    steps : int, optional
        Batches to learn from; with neither `steps` nor `minutes` it is one epoch.
    minutes : float, optional
        About how long the training may take.
    prompt, attribute, text, passage_tokens
        As of the ranker ``pairwise``; ask with the same.
    seed : int, optional
        Of the adapter's first weights and of every draw.
    precision, device
        As in `ranktilt.training.options.Training`.

    Raises
    ------
    UserError
        For a value out of its range.
    """

    pairs: int = 140_000
    rank: int = 1
    rate: float = 3e-3
    batch: int = 4
    share: float = 0.8
    steps: int | None = None
    minutes: float | None = None
    prompt: str = "pairwise-neutral"
    attribute: str | None = None
    text: str = "title+text"
    passage_tokens: int = 300
    seed: int = 0
    precision: str = "float32"
    device: str | None = None

    def __post_init__(self) -> None:
        require_schedule(self, ("pairs", "rank", "batch", "steps"))
        require_precision(self.precision)
        if not 0 < self.share < 1:
            raise UserError(f"training: expected a share of the queries above 0 and below 1, got {self.share:g}")


@dataclass(frozen=True, eq=False)
class PairExamples:
    """Prompts about two documents, with the answer that is taken for right."""

    prompts: list[str]
    answers: list[str]
    protected: npt.NDArray[np.bool_]
    """Whether the answer is the protected document."""
    queries: list[str]
    """Ids of the queries that are learned from."""
    held_out: list[str]
    """Ids of the others."""
    notes: tuple[str, ...] = ()


def pair_examples(
    collection: Collection, ranker: Pairwise, by: str, protected: str | None, options: LoraTraining,
    *, model: LLM | None = None,
) -> PairExamples:  # fmt: skip
    """Make prompts and answers: in each kind of pair every other answer is protected, and stands first as often.

    What is right is independent of the group and of the place: that is all that is to be learned. Where a `model` is
    named, pairs that it could not be asked about afterwards are refused.
    """
    sides = two_groups(collection, by, protected)
    queries = sorted(collection.judged["id"].to_list())
    random.Random(f"{options.seed} queries").shuffle(queries)
    kept = queries[: round(options.share * len(queries))]
    if not kept or len(kept) == len(queries):
        raise UserError(
            f"{counted(len(queries), 'query', 'queries')} cannot be parted into {options.share:g} and the rest"
        )
    part = Collection(
        collection.docs,
        collection.queries.filter(pl.col("id").is_in(kept)),
        collection.qrels.filter(pl.col("query_id").is_in(kept)),
        collection.spec,
    )
    drawn = draw_pairs(part, sides, pairs=-(-options.pairs // (2 * len(kept))), seed=options.seed)
    texts = readable_texts(ranker, collection)
    rows = {side: codes(drawn.frame[side], collection.ids) for side in ("protected", "unprotected")}
    asked = dict(collection.queries.select("id", "text").iter_rows())
    shown, answers, taught = list[Task](), list[str](), list[bool]()
    turn: dict[str, int] = {}
    order = random.Random(f"{options.seed} pairs").sample(range(drawn.frame.height), drawn.frame.height)
    for number in order:
        query, kind = drawn.frame["query"][number], drawn.frame["kind"][number]
        turn[kind] = turn.get(kind, -1) + 1
        is_protected, stands_first = turn[kind] % 2 == 0, turn[kind] // 2 % 2 == 0
        one, two = (ranker.shown(texts[int(rows[side][number])]) for side in ("protected", "unprotected"))
        shown.append(Task(asked[query], [one, two] if is_protected == stands_first else [two, one]))
        answers.append("[1]" if stands_first else "[2]")
        taught.append(is_protected)
    if model is not None:
        ranker.require_room(model, shown)
    prompts = ranker.prompts_of(shown)
    return PairExamples(prompts, answers, np.array(taught, dtype=bool), kept, queries[len(kept) :], drawn.notes)


def train_lora(
    collection: Collection,
    model: str | Path,
    folder: str | Path,
    *,
    by: str,
    protected: str | None = None,
    options: LoraTraining | None = None,
) -> Trained:
    """Train a low-rank adapter of a chat model, so that its choice between two documents does not go by their group.

    Only matrices that are added to those of the attention are trained, by AdamW on the answer's tokens. A training that
    was interrupted, however, goes on from its last checkpoint, and ends with the weights it would have had.

    Parameters
    ----------
    collection : Collection
        With a column of groups, such as ``ranktilt build fair-ranking`` makes.
    model : str or Path
        A chat model in a local folder, as transformers saves it.
    folder : str or Path
        Where the adapter goes: new, or with an unfinished training of the same options, which is continued.
    by : str
        The column of groups.
    protected : str, optional
        The protected group; of two groups the smaller one by default.
    options : LoraTraining, optional
        How.

    Returns
    -------
    Trained
        ``transformers:MODEL(adapter=FOLDER)`` answers with it.

    Raises
    ------
    UserError
        Before any work: where there are no pairs, the model cannot be used, or the folder holds something else. Later:
        if the loss stops being a number, or the disk is full.

    References
    ----------
    Hu et al., ICLR 2022 (LoRA); Wang et al., NAACL 2024, sec. 5.
    """
    began, options = time.monotonic(), options or LoraTraining()
    torch, peft = (need(name, extra=extra, for_=FOR) for name, extra in (("torch", "neural"), ("peft", "train")))
    directory = TrainingDirectory(Path(folder))
    device = device_of(options.device, FOR)
    ranker = Pairwise(
        llm=f"transformers:{model}", prompt=options.prompt, attribute=options.attribute, text=options.text,
        passage_tokens=options.passage_tokens,
    )  # fmt: skip
    ranker.check()
    chat = Transformers(model, device=device)
    spec = {
        "kind": "lora", **asdict(options), "by": by, "protected": protected, "body": chat.revision,
        "device": device.partition(":")[0],
        "packages": {name: version(name) for name in _PACKAGES},
    }  # fmt: skip
    directory.require_same(spec)
    found = pair_examples(collection, ranker, by, protected, options, model=chat)
    whole = hashlib.blake2b("\0".join((*found.prompts, *found.answers)).encode(), digest_size=16)
    spec["data"] = whole.hexdigest()
    directory.require_same(spec)
    if directory.record is not None:
        directory.clear()
        return Trained(directory.folder, directory.record, directory.record["figures"]["steps"])
    tokens = _Examples.of(chat, found, options)
    adapted = _adapted(torch, peft, chat, options)
    loop = TrainingLoop(
        adapted, tokens, lambda batch: _loss(torch, adapted, tokens, batch, options.precision), len, options.rate, FOR
    )
    resumed = loop.complete(directory, spec, options, began)
    record = {
        "spec": spec,
        "ranktilt": __version__,
        "from": str(model),
        "collection": origin_of(collection),
        "figures": {
            "threads": torch.get_num_threads(), **loop.figures(), "examples": len(found.prompts),
            "protected_answers": int(found.protected.sum()), "held_out_queries": len(found.held_out),
        },
    }  # fmt: skip
    _save(adapted, directory.model_folder(), {HELD_OUT: found.held_out, TRAINING_QUERIES: found.queries})
    directory.finish(record)
    return Trained(directory.folder, record, resumed)


@dataclass(frozen=True, eq=False)
class _Examples:
    """Prompts and answers as tokens; batches of them, epoch after epoch."""

    tokens: Sequence[Ints]
    """Of each example, its answer last."""
    answer: Ints
    """How many of them are the answer's."""
    pad: int
    batch: int
    seed: int

    @classmethod
    def of(cls, chat: Transformers, found: PairExamples, options: LoraTraining) -> _Examples:
        end, pad = chat.end_token, chat.end_token or 0
        answers = {text: [*chat.tokens_of_answer(text), *([] if end is None else [end])] for text in set(found.answers)}
        read = [chat.tokens_of(Prompt(text)) for text in found.prompts]
        rows = [np.array([*one, *answers[text]]) for one, text in zip(read, found.answers, strict=True)]
        longest = max(map(len, rows))
        if chat.context is not None and longest > chat.context:
            raise UserError(
                f"{chat.folder}: a prompt and its answer take up to {longest:,} tokens, more than the context of "
                f"{chat.context:,}; cut the passages (passage_tokens)"
            )
        return cls(rows, np.array([len(answers[text]) for text in found.answers]), pad, options.batch, options.seed)

    @cached_property
    def per_epoch(self) -> int:
        return -(-len(self.tokens) // self.batch)

    def epoch(self, number: int) -> list[Ints]:
        order = np.random.default_rng([self.seed, number]).permutation(len(self.tokens))
        return [order[start : start + self.batch] for start in range(0, len(order), self.batch)]

    def size(self, batch: Ints) -> int:
        return len(batch) * max(len(self.tokens[place]) for place in batch.tolist())

    def halves(self, batch: Ints) -> list[Ints]:
        return [half for half in np.array_split(batch, 2) if len(half)]


def _adapted(torch: Any, peft: Any, chat: Transformers, options: LoraTraining) -> Any:
    """The model with new matrices beside those of its attention; nothing else of it is trained."""
    with checkpoint.loading(f"{chat.folder}: cannot be loaded", for_=FOR):
        model = checkpoint.load(chat.folder, "AutoModelForCausalLM", for_=FOR)
    names = [
        name
        for name, module in model.named_modules()
        if type(module).__name__ in ("Linear", "Conv1D") and re.search(r"att(n|ention)", name)
    ]
    if not names:
        raise UserError(f"{chat.folder}: no layer of it is called attention; there is nothing to adapt")
    config = peft.LoraConfig(
        r=options.rank, lora_alpha=2 * options.rank, lora_dropout=0.0, target_modules=names, task_type="CAUSAL_LM"
    )
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # what peft asks of transformers is to get another name
        torch.manual_seed(options.seed)
        return peft.get_peft_model(model, config).to(options.device or device_of(None, FOR)).train()


def _loss(torch: Any, model: Any, examples: _Examples, batch: Ints, precision: str) -> Any:
    """Mean −ln P of the answers' tokens."""
    rows, width = batch.tolist(), max(len(examples.tokens[place]) for place in batch.tolist())
    ids = np.full((len(rows), width), examples.pad, dtype=np.int64)
    mask, labels = np.zeros_like(ids), np.full_like(ids, _IGNORED)
    for number, place in enumerate(rows):
        one, answer = examples.tokens[place], int(examples.answer[place])
        ids[number, : len(one)], mask[number, : len(one)] = one, 1
        labels[number, len(one) - answer : len(one)] = one[len(one) - answer :]
    given = {
        name: torch.from_numpy(values).to(model.device)
        for name, values in (("input_ids", ids), ("attention_mask", mask))
    }
    with torch.autocast(model.device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
        logits = model(**given).logits
    wanted = torch.from_numpy(labels).to(model.device)[:, 1:].reshape(-1)
    return torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]).float(), wanted)


def _save(model: Any, folder: Path, queries: Mapping[str, Sequence[str]]) -> None:
    with checkpoint.loading(f"{folder}: cannot be written", for_=FOR):
        try:
            model.save_pretrained(folder)
            for file, names in queries.items():
                (folder / file).write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        except OSError as error:
            raise cannot_write(folder, error) from error
