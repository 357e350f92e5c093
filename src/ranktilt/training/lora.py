"""Fine-tune a chat model's attention, on pairs of documents whose right answer is as often of either group."""

from __future__ import annotations

import random
import re
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.pairwise.pairs import draw_pairs, two_groups
from ranktilt.data.collection import Collection
from ranktilt.data.files import write_files
from ranktilt.data.run import codes
from ranktilt.errors import UserError, counted
from ranktilt.llm.base import LLM, Prompt
from ranktilt.llm.transformers import HELD_OUT, TRAINING_QUERIES, Transformers
from ranktilt.models import checkpoint
from ranktilt.optional import need
from ranktilt.rankers.base import readable_texts
from ranktilt.rankers.llm.base import Task
from ranktilt.rankers.llm.pairwise import Pairwise
from ranktilt.training.model import without_dropout
from ranktilt.training.options import LoraTraining, Trained
from ranktilt.training.trainer import TrainingRun, digest

FOR = "train lora"
_IGNORED = -100
"""What torch's cross-entropy leaves out."""


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


def pair_examples(
    collection: Collection,
    ranker: Pairwise,
    by: str,
    protected: str | None,
    options: LoraTraining,
    *,
    model: LLM | None = None,
) -> PairExamples:
    """Make prompts and answers: in each kind of pair every other answer is protected, and stands first as often.

    What is right is independent of the group and of the place: that is all that is to be learned.
    Where a `model` is named, pairs that it could not be asked about afterwards are refused.
    """
    sides = two_groups(collection, by, protected)
    queries = sorted(collection.queries_with_judgments["id"].to_list())
    random.Random(f"{options.seed} queries").shuffle(queries)
    kept = queries[: round(options.share * len(queries))]
    if not kept or len(kept) == len(queries):
        raise UserError(
            f"{counted(len(queries), 'query', 'queries')} cannot be split into {options.share:g} and the rest"
        )
    part = Collection(
        collection.docs,
        collection.queries.filter(pl.col("id").is_in(kept)),
        collection.qrels.filter(pl.col("query_id").is_in(kept)),
        collection.spec,
    )
    drawn = draw_pairs(
        part, sides, pairs=-(-options.pairs_per_epoch // (2 * len(kept))), seed=options.seed
    )
    texts = readable_texts(ranker, collection)
    rows = {side: codes(drawn.frame[side], collection.ids) for side in ("protected", "unprotected")}
    asked = dict(collection.queries.select("id", "text").iter_rows())
    shown, answers, taught = list[Task](), list[str](), list[bool]()
    turn: dict[str, int] = {}
    order = random.Random(f"{options.seed} pairs").sample(
        range(drawn.frame.height), drawn.frame.height
    )
    for number in order:
        query, kind = drawn.frame["query"][number], drawn.frame["kind"][number]
        turn[kind] = turn.get(kind, -1) + 1
        is_protected, stands_first = turn[kind] % 2 == 0, turn[kind] // 2 % 2 == 0
        one, two = (
            ranker.prompt_text(texts[int(rows[side][number])])
            for side in ("protected", "unprotected")
        )
        shown.append(Task(asked[query], [one, two] if is_protected == stands_first else [two, one]))
        answers.append("[1]" if stands_first else "[2]")
        taught.append(is_protected)
    if len(set(answers)) < 2:
        pairs = counted(len(answers), "pair", "pairs")
        raise UserError(
            f"{pairs} to train on: expected four or more, so that either answer is right; judge more"
        )
    if model is not None:
        ranker.require_room(model, shown)
    prompts = ranker.prompts_of(shown)
    return PairExamples(prompts, answers, np.array(taught, dtype=bool), kept, queries[len(kept) :])


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

    Only matrices that peft adds to those of the attention are trained (LoRA, Hu et al., ICLR 2022;
    Wang et al., NAACL 2024, sec. 5). `folder` is new, or holds an unfinished training of the same
    options, which goes on.
    """
    began, options = time.monotonic(), options or LoraTraining()
    library, peft = (
        need(name, extra=extra, for_=FOR)
        for name, extra in (("transformers", "neural"), ("peft", "train"))
    )
    ranker = Pairwise(
        llm=f"transformers:{model}",
        prompt=options.prompt,
        attribute=options.attribute,
        text=options.text,
        passage_tokens=options.passage_tokens,
    )
    ranker.check()
    chat = Transformers(Path(model), device="cpu")
    pairs = pair_examples(collection, ranker, by, protected, options, model=chat)
    spec = {
        "kind": "lora",
        **asdict(options),
        "by": by,
        "protected": protected,
        "body": chat.revision,
        "data": digest(pairs.prompts, pairs.answers),
    }
    run = TrainingRun(FOR, Path(folder), options, spec, began)
    if run.finished is not None:
        return run.finished
    arguments, examples = (
        run.arguments(library.TrainingArguments, options.batch),
        _examples(chat, pairs),
    )
    adapted, tokenizer = (
        _adapted(peft, chat, options),
        checkpoint.load_tokenizer(chat.folder, for_=FOR),
    )
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    trainer = library.Trainer(
        adapted,
        arguments,
        train_dataset=examples,
        data_collator=library.DataCollatorForSeq2Seq(tokenizer),
    )
    figures = run.train(trainer, 1)
    figures |= {
        "examples": len(pairs.prompts),
        "protected_answers": int(pairs.protected.sum()),
        "held_out_queries": len(pairs.held_out),
    }
    names = {HELD_OUT: pairs.held_out, TRAINING_QUERIES: pairs.queries}
    write_files(
        {
            run.folder / file: "".join(f"{name}\n" for name in ids).encode()
            for file, ids in names.items()
        }
    )
    return run.finish(adapted, str(model), collection, figures)


def _examples(chat: Transformers, pairs: PairExamples) -> list[dict[str, list[int]]]:
    """Tokens of each prompt and its answer, of which the answer is learned from."""
    end = [] if chat.end_token is None else [chat.end_token]
    answers = {text: [*chat.tokens_of_answer(text), *end] for text in set(pairs.answers)}
    examples = []
    for prompt, text in zip(pairs.prompts, pairs.answers, strict=True):
        read, answer = list(chat.tokens_of(Prompt(prompt))), answers[text]
        examples.append({"input_ids": read + answer, "labels": [_IGNORED] * len(read) + answer})
    return examples


def _adapted(peft: Any, chat: Transformers, options: LoraTraining) -> Any:
    """The model with new matrices beside those of its attention; nothing else of it is trained."""
    with checkpoint.loading(f"{chat.folder}: cannot be loaded", for_=FOR):
        model = checkpoint.load(chat.folder, "AutoModelForCausalLM", for_=FOR)
    names = [
        name
        for name, module in model.named_modules()
        if type(module).__name__ in ("Linear", "Conv1D") and re.search(r"att(n|ention)", name)
    ]
    if not names:
        raise UserError(
            f"{chat.folder}: no layer of it is called attention; LoRA has nothing to adapt"
        )
    config = peft.LoraConfig(
        r=options.rank,
        lora_alpha=2 * options.rank,
        lora_dropout=0.0,
        target_modules=names,
        task_type="CAUSAL_LM",
    )
    torch = need("torch", extra="neural", for_=FOR)
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", FutureWarning
        )  # what peft asks of transformers is to get another name
        torch.manual_seed(options.seed)
        adapted = peft.get_peft_model(model, config)
    without_dropout(adapted)
    return adapted
