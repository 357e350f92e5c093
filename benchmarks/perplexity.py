"""Perplexity of the same texts by scripts and by RankTilt, each in a process of its own;
`explain.py` runs it.

Models have random weights in the sizes of GPT-2 and BERT-base, and tokenizers learned from the
texts, with as many tokens. The scripts: one text (or one masked token) at a time; and, for causal
models, batches of 16 in the order of the file, padded, with all logits.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import ROOT, Measured, arguments, compete, fresh, memory, say, shared, table, target

BATCH = 16
CAUSAL = ("naive loop", "naive batches", "ranktilt", "ranktilt, bfloat16")
MASKED = ("naive loop", "ranktilt", "ranktilt, bfloat16")


def loaded(folder: Path) -> tuple[Any, Any, list[str]]:
    """Model, tokenizer and texts of a folder."""
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

    kind = AutoModelForMaskedLM if "bert" in folder.name else AutoModelForCausalLM
    return (
        kind.from_pretrained(folder).eval(),
        AutoTokenizer.from_pretrained(folder),
        read_texts(folder),
    )


def read_texts(folder: Path) -> list[str]:
    """The texts to be scored."""
    return [str(text) for text in json.loads((folder / "texts.json").read_text(encoding="utf-8"))]


def causal_loop(model: Any, tokenizer: Any, texts: list[str]) -> Iterator[tuple[float, int]]:
    """One text at a time, with all logits."""
    import torch

    for text in texts:
        ids = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]]
        logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        yield -float(logs[:-1].gather(1, torch.tensor(ids[1:])[:, None]).mean()), len(ids) - 1


def masked_loop(model: Any, tokenizer: Any, texts: list[str]) -> Iterator[tuple[float, int]]:
    """One masked token at a time."""
    import torch

    for text in texts:
        ids, losses = tokenizer(text)["input_ids"], []
        for position in range(1, len(ids) - 1):
            hidden = [*ids[:position], tokenizer.mask_token_id, *ids[position + 1 :]]
            losses.append(
                -float(
                    model(torch.tensor([hidden])).logits[0, position].log_softmax(-1)[ids[position]]
                )
            )
        yield float(np.mean(losses)), len(losses)


def causal_batches(model: Any, tokenizer: Any, texts: list[str]) -> Iterator[tuple[float, int]]:
    """Batches in the order of the file, with all logits of the padding too."""
    import torch

    for start in range(0, len(texts), BATCH):
        token_ids = tokenizer(texts[start : start + BATCH], add_special_tokens=False)["input_ids"]
        width = max(map(len, token_ids)) + 1
        ids = torch.tensor(
            [[tokenizer.bos_token_id, *ids, *[0] * (width - 1 - len(ids))] for ids in token_ids]
        )
        mask = torch.tensor(
            [[1] * (len(ids) + 1) + [0] * (width - 1 - len(ids)) for ids in token_ids]
        )
        logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1]
        losses = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), ids[:, 1:], reduction="none"
        )
        for row, text_ids in zip(losses, token_ids, strict=True):
            yield float(row[: len(text_ids)].mean()), len(text_ids)


def product_rate() -> float:
    """Operations a second of a bare product of the shape of a layer of GPT-2."""
    import torch

    left, right = torch.randn(1_024, 768), torch.randn(3_072, 768)
    times = []
    for _ in range(5):
        start = time.process_time()
        torch.nn.functional.linear(left, right)
        times.append(time.process_time() - start)
    return 2.0 * left.shape[0] * right.numel() / min(times)


def script(folder: Path, args: argparse.Namespace) -> Measured:
    """Run one of the scripts."""
    import torch

    model, tokenizer, texts = loaded(folder)
    loop = masked_loop if "bert" in folder.name else causal_loop
    work = causal_batches if args.contender == "naive batches" else loop
    with torch.no_grad():
        list(work(model, tokenizer, ["a"]))
        start = time.process_time()
        scores = list(work(model, tokenizer, texts))
        took = time.process_time() - start
    np.save(folder / f"{args.contender}.npy", [value for value, _ in scores])
    tokens = sum(count for _, count in scores)
    return {
        "took": took,
        "tokens": tokens,
        "least": 2.0 * model.num_parameters() * tokens / product_rate(),
    }


def ours(folder: Path, args: argparse.Namespace) -> Measured:
    """Score with RankTilt, nothing cached."""
    from ranktilt.models.likelihood import Likelihood

    os.environ["RANKTILT_CACHE"] = str(folder / args.contender)
    precision = "bfloat16" if args.contender.endswith("bfloat16") else "float32"
    model, texts = Likelihood(folder=folder, every=0, precision=precision), read_texts(folder)
    model.score(["a"], label="warming")
    start = time.process_time()
    scores = model.score(texts, label="scoring")
    took = time.process_time() - start
    np.save(folder / f"{args.contender}.npy", scores.perplexity)
    return {"took": took, "tokens": int(scores.tokens.sum())}


def large_model(kind: str, folder: Path, texts: list[str]) -> None:
    """Write a model in the size of GPT-2 (``causal``) or BERT-base, with a tokenizer learned from
    texts.
    """
    import tokenizers as tk
    import torch
    import transformers

    torch.manual_seed(0)
    if kind == "causal":
        letters = tk.pre_tokenizers.ByteLevel.alphabet()
        tokenizer, trainer = (
            tk.Tokenizer(tk.models.BPE()),
            tk.trainers.BpeTrainer(
                vocab_size=50_257, special_tokens=["<s>"], initial_alphabet=letters
            ),
        )
        tokenizer.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
        special = {"bos_token": "<s>", "eos_token": "<s>"}
        model = transformers.GPT2LMHeadModel(
            transformers.GPT2Config(bos_token_id=0, eos_token_id=0)
        )
    else:
        special = {
            f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")
        }
        tokenizer = tk.Tokenizer(tk.models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer, tokenizer.pre_tokenizer = (
            tk.normalizers.BertNormalizer(),
            tk.pre_tokenizers.BertPreTokenizer(),
        )
        trainer = tk.trainers.WordPieceTrainer(
            vocab_size=30_522, special_tokens=list(special.values())
        )
        ends = [("[CLS]", 2), ("[SEP]", 3)]
        tokenizer.post_processor = tk.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=ends
        )
        model = transformers.BertForMaskedLM(transformers.BertConfig())
    tokenizer.train_from_iterator(texts, trainer)
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(
        folder
    )
    model.eval().save_pretrained(folder)


def prepare(root: Path, texts: list[str], quick: bool) -> dict[str, Path]:
    """Write models and the texts that each is to score; only the small ones for a quick look."""
    sys.path.insert(0, str(ROOT))
    from tests.llm.stories import make_stories
    from tests.rankers.tiny import language_model as make

    data, folders = shared("stories260k"), dict[str, Path]()

    def add(title: str, name: str, words: int, count: int, build: Callable[[Path], Any]) -> None:
        folders[title] = root / name
        build(root / name)
        beginnings = [" ".join(text.split()[:words]) for text in texts[: 5 if quick else count]]
        (root / name / "texts.json").write_text(json.dumps(beginnings), encoding="utf-8")

    if not quick:
        add(
            "causal, size of GPT-2, 250 words",
            "gpt2",
            250,
            16,
            lambda folder: large_model("causal", folder, texts),
        )
        add(
            "masked exact, size of BERT-base, 10 words",
            "bert",
            10,
            8,
            lambda path: large_model("masked", path, texts),
        )
    if data is not None:
        for words, count in ((60, 300), (10, 600)):
            title = f"causal, stories of 260,000 weights, {words} words"
            add(
                title,
                f"stories-{words}",
                words,
                count,
                lambda folder: make_stories(data.parent, folder),
            )
    texts = [text[:24] for text in texts]  # it reads 32 tokens, most of them letters
    add(
        "masked exact, BERT of two layers, 24 letters",
        "tiny-bert",
        24,
        100,
        lambda folder: make("masked", folder),
    )
    return folders


def measure(folder: Path, quick: bool) -> dict[str, Measured]:
    """Run the contenders on one model, each on one thread of a fresh process; of this one for a
    quick look.
    """
    names = MASKED if "bert" in folder.name else CAUSAL
    figures = {}
    for name in names:
        say(f"{folder.name}: {name}")
        args = argparse.Namespace(contender=name)
        figures[name] = CONTENDERS[name](folder, args) if quick else fresh(__file__, name, folder)
        apart = np.abs(np.load(folder / f"{name}.npy") - np.load(folder / "naive loop.npy"))
        figures[name]["apart"] = float(np.nanmax(apart))
    return figures


def section(root: Path, texts: list[str], quick: bool) -> str:
    """Measure everything; a table, what was asked, and the bound."""
    os.environ["OMP_NUM_THREADS"] = "1"
    cells, lines = [], []
    for title, folder in prepare(root, texts, quick).items():
        figures = measure(folder, quick)
        naive, chosen = figures["naive loop"], figures["ranktilt"]
        for name, measured in figures.items():
            rate, ratio = measured["tokens"] / measured["took"], naive["took"] / measured["took"]
            peak = memory(measured["peak"]) if "peak" in measured else "–"
            cells.append(
                (
                    f"{title}: {name}",
                    f"{rate:,.0f}",
                    f"{ratio:.2f}×",
                    peak,
                    f"{measured['apart']:.1e}",
                )
            )
        least_ratio = 5 if "bert" in folder.name else 4
        lines.append(
            target(
                f"{title}: naive loop / ranktilt",
                naive["took"] / chosen["took"],
                at_least=least_ratio,
                unit="×",
            )
        )
        if "naive batches" in figures:
            ratio = figures["naive batches"]["took"] / chosen["took"]
            lines.append(f"- {title}: naive batches / ranktilt: {ratio:.2f}×")
        if folder.name == "gpt2":
            bound = f"{naive['took'] / naive['least']:.2f}×"
            lines.append(
                f"- {title}: the matrix products alone, at the rate of a bare one in float32, "
                f"would be {bound}"
            )
    header = (
        "perplexity",
        "tokens a second",
        "beside the naive loop",
        "peak memory",
        "largest difference",
    )
    return (
        f"{table(header, cells)}\n\nOne thread each; seconds are the processor's.\n\n"
        + "\n".join(lines)
    )


CONTENDERS = {
    "naive loop": script,
    "naive batches": script,
    "ranktilt": ours,
    "ranktilt, bfloat16": ours,
}


if __name__ == "__main__":
    compete(arguments(__doc__ or "").parse_args(), CONTENDERS)
