"""Explaining: perplexity in batches against a naive loop, exact singular values, trigrams, attribution.

The causal model is the small one of stories, the masked one a BERT of two layers with random weights; texts are the
first of NFCorpus. The naive loops are what a script does: one text at a time through transformers, one masked token
after the other. Texts are cut so that each model reads them whole.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    ROOT,
    TINY,
    arguments,
    machine,
    memory,
    nfcorpus,
    peak_memory,
    publish,
    say,
    seconds,
    shared,
    table,
    target,
)

import ranktilt as rt
from ranktilt.models.likelihood import Likelihood
from ranktilt.probes.attribution import attribute
from ranktilt.probes.spectrum import singular_values
from ranktilt.statistics.regression import regress
from ranktilt.text.ngram import cross_fitted_perplexity

PACKAGES = ("ranktilt", "torch", "transformers", "numpy", "polars")
TEXTS, MASKED_TEXTS = 600, 100
ROWS, DIMENSIONS, TWINS = 110_000, 768, 70_000


def timed(work: Callable[[], Any]) -> float:
    """Seconds that some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def naive_causal(model: Any, tokenizer: Any, texts: list[str]) -> None:
    """One text at a time, with all logits."""
    import torch

    for text in texts:
        ids = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]][:512]
        with torch.no_grad():
            logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        logs[:-1].gather(1, torch.tensor(ids[1:])[:, None]).mean()


def naive_masked(model: Any, tokenizer: Any, texts: list[str]) -> None:
    """One masked token at a time."""
    import torch

    for text in texts:
        ids = tokenizer(text, truncation=True)["input_ids"]
        for place in range(1, len(ids) - 1):
            hidden = [*ids[:place], tokenizer.mask_token_id, *ids[place + 1 :]]
            with torch.no_grad():
                model(torch.tensor([hidden])).logits[0, place].log_softmax(-1)[ids[place]]


def perplexity_rows(texts: list[str], quick: bool) -> list[tuple[str, float, float]]:
    """Time the naive loops and ours, cold each time."""
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

    sys.path.insert(0, str(ROOT))
    from tests.llm.stories import make_stories
    from tests.models.tiny_language_models import make

    rows = []
    data = shared("stories260k")
    with tempfile.TemporaryDirectory() as folder:
        masked = make("masked", Path(folder) / "masked")
        some = [" ".join(text.split()[:5]) for text in texts[: 20 if quick else MASKED_TEXTS]]
        models = [("masked, exact", masked, AutoModelForMaskedLM, naive_masked, some)]
        if data is not None:
            some = [" ".join(text.split()[:60]) for text in texts[: 5 if quick else TEXTS]]
            stories = make_stories(data.parent, Path(folder) / "stories")
            models.append(("causal", stories, AutoModelForCausalLM, naive_causal, some))
        for number, (name, path, kind, naive, some) in enumerate(models):
            say(name)
            plain, tokenizer = kind.from_pretrained(path).eval(), AutoTokenizer.from_pretrained(path)
            ours = Likelihood(folder=path, every=0, precision="float32")
            ours.score(["warm"], label="warming")
            theirs = min(timed(partial(naive, plain, tokenizer, some)) for _ in range(2))
            os.environ["RANKTILT_CACHE"] = str(Path(folder) / f"cache-{number}")
            rows.append((name, theirs, timed(partial(ours.score, some, label="scoring"))))
    return rows


def section(given: argparse.Namespace) -> str:
    """Measure everything in one run."""
    whole = rt.bundled() if given.quick or nfcorpus() is None else rt.load(nfcorpus())
    texts = whole.docs["text"].to_list()
    rows = perplexity_rows(texts, given.quick)
    least = {"masked, exact": 5, "causal": 4}
    lines = [
        target(f"perplexity, {name}: naive loop / ours", theirs / ours, at_least=least[name], unit="×")
        for name, theirs, ours in rows
    ]
    generator, count = np.random.default_rng(0), 2_000 if given.quick else ROWS
    blocks = [generator.standard_normal((2_000, DIMENSIONS), dtype=np.float32) for _ in range(4)]
    before = peak_memory()
    took = timed(lambda: singular_values((blocks[n % 4].astype(np.float64) for n in range(count // 2_000)), DIMENSIONS))
    lines.append(target(f"singular values of {count:,} × {DIMENSIONS}", took, at_most=60, unit=" s"))
    lines.append(f"- memory beyond the vectors: {memory(max(peak_memory() - before, 0.0))} (target ≤ 1 GB)")
    docs = whole.docs
    human = (docs["source"] == whole.sources[0]).to_numpy()
    took = timed(lambda: cross_fitted_perplexity(docs["text"], docs["origin"], human))
    lines.append(target(f"trigrams over {docs.height:,} documents", took, at_most=10, unit=" s"))
    n = 2_000 if given.quick else TWINS
    x, y = generator.normal(size=(n, 10)), generator.normal(size=n)
    clusters = generator.integers(0, 300, n), generator.integers(0, 3_600, n)
    took = timed(lambda: regress(y, x, *clusters))
    lines.append(target(f"attribution: regression of {n:,} twins on ten properties", took, at_most=5, unit=" s"))
    run = rt.ranker("bm25").rank(whole)
    lines.append(f"- attribution of bm25 with seven properties, measured from the texts on: "
                 f"{seconds(timed(lambda: attribute(whole, [run])))} s")  # fmt: skip
    shown = table(("perplexity", "naive loop [s]", "ours [s]", "ratio"),
                  [(name, seconds(a), seconds(b), f"{a / b:.1f}×") for name, a, b in rows])  # fmt: skip
    return (
        f"## Explaining\n\n{machine(PACKAGES)}\n\n{shown}\n\n"
        + "\n".join(lines)
        + (f"\n\n{TINY}" if given.quick else "")
    )


def main() -> None:
    """Run it."""
    given = arguments("Explaining: perplexity, spectrum, trigrams, attribution.").parse_args()
    publish("explain", section(given), given)


if __name__ == "__main__":
    main()
