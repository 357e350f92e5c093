"""Models of two layers and random weights, made on the spot: one of sentence-transformers, and
language models.
"""

import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LENGTH = 24
"""Tokens after which it cuts."""


def tiny_model(folder: Path, *, similarity: str | None = None, seed: int = 0) -> Path:
    """Write the model's folder: BERT with a WordPiece tokenizer of letters, mean pooling, 32
    dimensions.
    """
    torch = pytest.importorskip("torch")
    pytest.importorskip("sentence_transformers")
    from transformers import BertModel

    torch.manual_seed(seed)
    letter_tokenizer(folder)
    BertModel(
        bert_config(max_position_embeddings=64, initializer_range=0.5)
    ).eval().save_pretrained(folder)
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    write_json(
        folder / "modules.json",
        [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(modules)
        ],
    )
    write_json(
        folder / "sentence_bert_config.json", {"max_seq_length": LENGTH, "do_lower_case": False}
    )
    pooling = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
    write_json(folder / "1_Pooling" / "config.json", pooling)
    if similarity is not None:
        write_json(folder / "config_sentence_transformers.json", {"similarity_fn_name": similarity})
    return folder


def tiny_splade(folder: Path) -> Path:
    """Write a SPLADE of one layer and random weights, most of which its bias makes zero."""
    torch = pytest.importorskip("torch")
    from transformers import BertForMaskedLM

    torch.manual_seed(0)
    letter_tokenizer(folder)
    model = BertForMaskedLM(bert_config(num_hidden_layers=1, initializer_range=0.5)).eval()
    with torch.no_grad():
        model.cls.predictions.bias -= 6
    model.save_pretrained(folder)
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "TokenizersBackend",
            "model_max_length": 24,
            "pad_token": "[PAD]",
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "mask_token": "[MASK]",
        },
    )
    return folder


def bert_config(**options: Any) -> Any:
    """A BERT of two small layers over letters."""
    from transformers import BertConfig

    sizes = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
    }
    return BertConfig(vocab_size=len(_vocabulary()), **{**sizes, **options})


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


Weights = Callable[[dict[str, Any]], dict[str, Any]]


def with_weights(folder: Path, change: Weights) -> None:
    """Change a model's weights."""
    from safetensors.torch import load_file, save_file

    file = folder / "model.safetensors"
    save_file(change(load_file(file)), file, metadata={"format": "pt"})


def _vocabulary() -> dict[str, int]:
    signs = string.ascii_lowercase + string.digits
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *signs, *(f"##{s}" for s in signs)]
    return {piece: number for number, piece in enumerate(pieces)}


def letter_tokenizer(folder: Path, *, length: int = 64, **tokens: str) -> int:
    """Write a WordPiece tokenizer of letters and digits; returns the size of its vocabulary."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = _vocabulary()
    tokenizer = Tokenizer(
        models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=length,
        **tokens,
    ).save_pretrained(folder)
    return len(vocabulary)


READS = 32
"""Tokens that a tiny language model reads."""


def language_model(kind: str, folder: Path) -> Path:
    """Write the folder of a ``masked`` or ``causal`` language model with random weights and a
    tokenizer of letters.
    """
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("transformers")
    torch.manual_seed(0)
    ends = {"bos_token": "[CLS]", "eos_token": "[SEP]"} if kind == "causal" else {}
    size = letter_tokenizer(folder, length=READS, **ends)
    small: dict[str, Any] = {
        "vocab_size": size,
        "num_attention_heads": 2,
        "num_hidden_layers": 2,
        "hidden_size": 32,
        "intermediate_size": 64,
        "max_position_embeddings": READS,
        "initializer_range": 0.5,
    }
    if kind == "masked":
        model = library.BertForMaskedLM(library.BertConfig(**small))
    else:  # one that caps its logits
        capped = library.Gemma2Config(
            **small,
            head_dim=16,
            num_key_value_heads=1,
            final_logit_softcapping=5.0,
            bos_token_id=2,
            eos_token_id=3,
            pad_token_id=0,
        )
        model = library.Gemma2ForCausalLM(capped)
    model.eval().save_pretrained(folder)
    return folder
