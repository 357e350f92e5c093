"""Re-rankers of two layers and random weights, made on the spot: BERT with labels, and T5."""

import json
import string
from pathlib import Path
from typing import Any

import pytest

from tests.rankers.tiny import bert_config, letter_tokenizer, write_json

LENGTH = 64
"""Tokens of a pair that the tiny BERT reads; of a prompt that the tiny T5 reads."""
ANSWERS = ("▁true", "▁false")


def tiny_classifier(
    folder: Path, *, labels: int = 1, length: int = LENGTH, seed: int = 0, **options: Any
) -> Path:
    """Write a BERT for the classification of pairs, with weights that spread its scores."""
    torch = pytest.importorskip("torch")
    from transformers import BertForSequenceClassification
    from transformers.utils.logging import disable_progress_bar

    torch.manual_seed(seed)
    letter_tokenizer(folder)
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    change(folder / "tokenizer_config.json", model_max_length=length, model_input_names=inputs)
    config = bert_config(
        max_position_embeddings=length, initializer_range=0.3, num_labels=labels, **options
    )
    disable_progress_bar()
    BertForSequenceClassification(config).eval().save_pretrained(folder)
    return folder


def tiny_t5(
    folder: Path, *, answers: tuple[str, ...] = ANSWERS, limit: int = LENGTH, seed: int = 0
) -> Path:
    """Write a T5 with a Unigram tokenizer of letters, of the words of its prompt, and of its
    answers.
    """
    torch = pytest.importorskip("torch")
    from transformers import T5Config, T5ForConditionalGeneration
    from transformers.utils.logging import disable_progress_bar

    torch.manual_seed(seed)
    pieces = _t5_tokenizer(folder, answers, limit)
    config = T5Config(
        vocab_size=pieces,
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=2,
        num_heads=2,
        decoder_start_token_id=0,
        initializer_factor=1.0,
    )
    disable_progress_bar()
    T5ForConditionalGeneration(config).eval().save_pretrained(folder)
    return folder


def word_tokenizer() -> Any:
    """A tokenizer of words, one token each, with one before, one between and one behind."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"<s>": 0, "</s>": 1, "a": 2}, unk_token="a")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> $B:1 </s>:1",
        special_tokens=[("<s>", 0), ("</s>", 1)],
    )
    return tokenizer


def change(file: Path, **values: Any) -> None:
    """Change values of a model's JSON file; None takes one away."""
    content = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    write_json(
        file, {key: value for key, value in {**content, **values}.items() if value is not None}
    )


def _t5_tokenizer(folder: Path, answers: tuple[str, ...], limit: int) -> int:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = ["▁Query", "▁Document", "▁Relevant", ":", *answers]
    letters = [*string.ascii_letters, *string.digits, *".,?!<>/_-'"]
    vocabulary = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    vocabulary += [(word, -1.0) for word in words] + [(letter, -3.0) for letter in letters]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=2, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always"),
        ]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        pad_token="<pad>",
        eos_token="</s>",
        model_max_length=limit,
        model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(folder)
    return len(vocabulary)
