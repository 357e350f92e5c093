"""A tiny language model of each kind, with random weights and a tokenizer of letters; they read 32 tokens."""

import string
from pathlib import Path
from typing import Any

import pytest

LENGTH = 32


def make(kind: str, folder: Path) -> Path:
    """Write the folder of a ``masked`` or ``causal`` model."""
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("transformers")
    torch.manual_seed(0)
    size = _tokenizer(folder, start=kind == "causal")
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


def _tokenizer(folder: Path, *, start: bool) -> int:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    signs = string.ascii_lowercase + string.digits
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {piece: number for number, piece in enumerate([*special, *signs, *(f"##{sign}" for sign in signs)])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    numbers = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=numbers)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=LENGTH,
        **({"bos_token": "[CLS]", "eos_token": "[SEP]"} if start else {}),
    ).save_pretrained(folder)  # fmt: skip
    return len(vocabulary)
