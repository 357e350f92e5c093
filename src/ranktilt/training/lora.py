"""Fine-tune a chat model's attention, so that it does not choose documents by their group.

A *group* is a set of documents with the same value of an attribute, such as a gender; one of two
groups is the *protected* one. The model learns from prompts about pairs of documents, one of each
group, in which either group has the right answer equally often. Some queries are *held out*:
nothing is learned from them, so that the trained model can be tested on them.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ranktilt.data.collection import Collection
from ranktilt.data.files import write_files
from ranktilt.errors import UserError
from ranktilt.llm.base import Prompt
from ranktilt.llm.transformers import HELD_OUT, TRAINING_QUERIES, Transformers
from ranktilt.models import checkpoint
from ranktilt.optional import need
from ranktilt.rankers.llm.pairwise import Pairwise
from ranktilt.training.model import disable_dropout
from ranktilt.training.options import LoraTraining, TrainedModel
from ranktilt.training.pair_examples import PairExamples, pair_examples
from ranktilt.training.trainer import TrainingRun, digest

FOR = "train lora"
"""Command, for messages."""
_IGNORED_LABEL = -100
"""Label of a token that torch's cross-entropy leaves out by default (its ``ignore_index``)."""


def train_lora(
    collection: Collection,
    model: str | Path,
    folder: str | Path,
    *,
    by: str,
    protected: str | None = None,
    options: LoraTraining | None = None,
) -> TrainedModel:
    """Train a low-rank adapter, so that a chat model does not choose documents by their group.

    A low-rank adapter (LoRA, Hu et al., ICLR 2022) adds to each weight matrix of the attention the
    product of two thin matrices. Only these are trained, as in Wang et al. (NAACL 2024, sec. 5).

    Parameters
    ----------
    collection : Collection
        Texts with judgments; some of its queries are held out.
    model : str or Path
        Folder of the chat model.
    folder : str or Path
        Folder to write the adapter to: a new one, or one with an unfinished training of the same
        options to continue.
    by : str
        Attribute of documents that names their group.
    protected : str, optional
        The protected group; by default the smaller of two groups.
    options : LoraTraining, optional
        Schedule, prompt, and number of pairs.

    Returns
    -------
    TrainedModel
        `folder` holds the adapter, two lists of queries (those that it learned from, and those that
        were held out), and ``training.json``.
    """
    started_at, options = time.monotonic(), options or LoraTraining()
    library = need("transformers", extra="neural", for_=FOR)
    peft = need("peft", extra="train", for_=FOR)
    ranker = Pairwise(
        llm=f"transformers:{model}",
        prompt=options.prompt,
        attribute=options.attribute,
        text=options.text,
        passage_tokens=options.passage_tokens,
    )
    ranker.check()
    chat = Transformers(Path(model), device="cpu")
    pairs = pair_examples(collection, ranker, options, by=by, protected=protected, model=chat)
    spec = {
        "kind": "lora",
        **asdict(options),
        "by": by,
        "protected": protected,
        "body": chat.revision,
        "data": digest(pairs.prompts, pairs.answers),
    }
    run = TrainingRun(
        label=FOR, folder=Path(folder), options=options, spec=spec, started_at=started_at
    )
    if run.finished is not None:
        return run.finished
    arguments = run.arguments(library.TrainingArguments, options.batch)
    examples = _examples(chat, pairs)
    adapted_model = _adapted_model(peft, chat, options)
    tokenizer = checkpoint.load_tokenizer(chat.folder, for_=FOR)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    trainer = library.Trainer(
        adapted_model,
        arguments,
        train_dataset=examples,
        data_collator=library.DataCollatorForSeq2Seq(tokenizer),
    )
    figures = run.train(trainer, documents_per_row=1)
    figures |= {
        "examples": len(pairs.prompts),
        "protected_answers": int(pairs.protected.sum()),
        "held_out_queries": len(pairs.held_out),
    }
    write_files(
        {
            run.folder / HELD_OUT: _lines(pairs.held_out),
            run.folder / TRAINING_QUERIES: _lines(pairs.queries),
        }
    )
    return run.finish(adapted_model, str(model), collection, figures)


def _lines(query_ids: Sequence[str]) -> bytes:
    """Return ids as the lines of a file."""
    return "".join(f"{query_id}\n" for query_id in query_ids).encode()


def _examples(chat: Transformers, pairs: PairExamples) -> list[dict[str, list[int]]]:
    """Return each prompt with its answer as tokens (``input_ids``), and the ``labels``.

    The labels are the tokens to predict. Those of the prompt are ignored, so that only the answer
    counts in the loss.
    """
    end_tokens = [] if chat.end_token is None else [chat.end_token]
    tokens_by_answer = {
        answer: [*chat.tokens_of_answer(answer), *end_tokens] for answer in set(pairs.answers)
    }
    examples = []
    for prompt, answer in zip(pairs.prompts, pairs.answers, strict=True):
        prompt_tokens = list(chat.tokens_of(Prompt(text=prompt)))
        answer_tokens = tokens_by_answer[answer]
        labels = [_IGNORED_LABEL] * len(prompt_tokens) + answer_tokens
        examples.append({"input_ids": prompt_tokens + answer_tokens, "labels": labels})
    return examples


def _adapted_model(peft: Any, chat: Transformers, options: LoraTraining) -> Any:
    """Return the model with low-rank matrices added to its attention, which alone are trained."""
    with checkpoint.loading(f"{chat.folder}: cannot be loaded", for_=FOR):
        model = checkpoint.load(chat.folder, "AutoModelForCausalLM", for_=FOR)
    # transformers has no common name for layers of attention: `attn` or `attention` is in all.
    attention_layers = [
        name
        for name, module in model.named_modules()
        if type(module).__name__ in ("Linear", "Conv1D") and re.search(r"att(n|ention)", name)
    ]
    if not attention_layers:
        raise UserError(
            f"{chat.folder}: no layer is called attention, so LoRA has nothing to adapt"
        )
    config = peft.LoraConfig(
        r=options.rank,
        lora_alpha=2 * options.rank,
        lora_dropout=0.0,
        target_modules=attention_layers,
        task_type="CAUSAL_LM",
    )
    torch = need("torch", extra="neural", for_=FOR)
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # peft uses a function that transformers is about to rename.
        warnings.simplefilter("ignore", FutureWarning)
        torch.manual_seed(options.seed)
        adapted_model = peft.get_peft_model(model, config)
    disable_dropout(adapted_model)
    return adapted_model
