"""Fine-tune a chat model's attention, so that it does not choose documents by their group.

It learns from pairs of documents; each group has the right answer equally often.
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
from ranktilt.training.model import without_dropout
from ranktilt.training.options import LoraTraining, Trained
from ranktilt.training.pair_examples import PairExamples, pair_examples
from ranktilt.training.trainer import TrainingRun, digest

FOR = "train lora"
"""What the libraries are needed for."""
_IGNORED = -100
"""Label that torch's cross-entropy leaves out by default (its ``ignore_index``)."""


def train_lora(
    collection: Collection,
    model: str | Path,
    folder: str | Path,
    *,
    by: str,
    protected: str | None = None,
    options: LoraTraining | None = None,
) -> Trained:
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
        Where the adapter goes: a new folder, or one with an unfinished training of the same
        options, which goes on.
    by : str
        Attribute of documents that names their group.
    protected : str, optional
        The protected group; see `two_groups`.
    options : LoraTraining, optional
        Schedule, prompt, and pairs.

    Returns
    -------
    Trained
        `folder` holds the adapter, lists of the queries that it learned from and of the others, and
        ``training.json``.
    """
    began, options = time.monotonic(), options or LoraTraining()
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
    run = TrainingRun(label=FOR, folder=Path(folder), options=options, spec=spec, began=began)
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


def _lines(ids: Sequence[str]) -> bytes:
    """Return ids as the lines of a file."""
    return "".join(f"{query}\n" for query in ids).encode()


def _examples(chat: Transformers, pairs: PairExamples) -> list[dict[str, list[int]]]:
    """Return each prompt and its answer as tokens (``input_ids``), and the ``labels``.

    The model learns to predict the labels; those of the prompt are ignored, so that only the answer
    counts in the loss.
    """
    end = [] if chat.end_token is None else [chat.end_token]
    answers = {text: [*chat.tokens_of_answer(text), *end] for text in set(pairs.answers)}
    examples = []
    for prompt, text in zip(pairs.prompts, pairs.answers, strict=True):
        context, answer = list(chat.tokens_of(Prompt(text=prompt))), answers[text]
        labels = [_IGNORED] * len(context) + answer
        examples.append({"input_ids": context + answer, "labels": labels})
    return examples


def _adapted_model(peft: Any, chat: Transformers, options: LoraTraining) -> Any:
    """Add low-rank matrices to those of the model's attention; nothing else of it is trained."""
    with checkpoint.loading(f"{chat.folder}: cannot be loaded", for_=FOR):
        model = checkpoint.load(chat.folder, "AutoModelForCausalLM", for_=FOR)
    names = [
        name
        for name, module in model.named_modules()
        if type(module).__name__ in ("Linear", "Conv1D") and re.search(r"att(n|ention)", name)
    ]
    if not names:
        raise UserError(
            f"{chat.folder}: no layer is called attention, so LoRA has nothing to adapt"
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
        # peft uses a function that transformers is about to rename.
        warnings.simplefilter("ignore", FutureWarning)
        torch.manual_seed(options.seed)
        adapted_model = peft.get_peft_model(model, config)
    without_dropout(adapted_model)
    return adapted_model
