"""A tiny language model of each kind, with random weights and a tokenizer of letters; they read 32 tokens."""

from pathlib import Path
from typing import Any

import pytest

from tests.rankers.tiny import letter_tokenizer

LENGTH = 32


def make(kind: str, folder: Path) -> Path:
    """Write the folder of a ``masked`` or ``causal`` model."""
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("transformers")
    torch.manual_seed(0)
    ends = {"bos_token": "[CLS]", "eos_token": "[SEP]"} if kind == "causal" else {}
    size = letter_tokenizer(folder, length=LENGTH, **ends)
    small: dict[str, Any] = {
        "vocab_size": size, "num_attention_heads": 2, "num_hidden_layers": 2, "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": LENGTH, "initializer_range": 0.5,
    }  # fmt: skip
    if kind == "masked":
        model = library.BertForMaskedLM(library.BertConfig(**small))
    else:  # one that caps its logits
        capped = library.Gemma2Config(
            **small, head_dim=16, num_key_value_heads=1, final_logit_softcapping=5.0, bos_token_id=2, eos_token_id=3,
            pad_token_id=0,
        )  # fmt: skip
        model = library.Gemma2ForCausalLM(capped)
    model.eval().save_pretrained(folder)
    return folder
