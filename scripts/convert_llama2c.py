"""Convert a model of llama2.c to a Hugging Face folder.

    python scripts/convert_llama2c.py stories260K.bin tok512.bin FOLDER

reads the legacy format (version 0: seven integers, then all weights as float32) and the tokenizer's
file, and writes what `transformers` needs: config.json, generation_config.json, model.safetensors,
tokenizer.json and tokenizer_config.json with a chat template that joins the messages, for these
models know no roles. The tokenizer encodes as llama2.c does: a space in front, characters outside
the vocabulary as bytes, and at each step the merge that gives the token with the best score; only
the words <unk>, <s> and </s> are special tokens here, as they are for every tokenizer of Hugging
Face. Exit status 2 if a file does not hold what it should.
"""

import argparse
import json
import re
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Weights = dict[str, npt.NDArray[np.float32]]

HEADER = struct.Struct("<7i")
UNK, BOS, EOS = "<unk>", "<s>", "</s>"
BYTES = 256
TEMPLATE = "{{ bos_token }}{{ messages | map(attribute='content') | join('\n') }}"


class Unfit(Exception):
    """A file that is not what it should be."""


@dataclass(frozen=True)
class Shape:
    """The header of a model.

    Parameters
    ----------
    dim, hidden, layers, heads, kv_heads, context : int
        Width, width of the feed-forward layers, layers, heads, heads of keys and values, most
        tokens.
    vocabulary : int
        Tokens.
    shared : bool
        Whether the last layer is the embedding of the tokens.
    """

    dim: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    vocabulary: int
    context: int
    shared: bool

    @property
    def head(self) -> int:
        """Width of a head."""
        return self.dim // self.heads

    def tensors(self) -> list[tuple[str, tuple[int, ...]]]:
        """Names and shapes of what lies in the file, in its order.

        A name with a star has a part for each layer.
        """
        wide, narrow, layer = (
            (self.dim, self.dim),
            (self.kv_heads * self.head, self.dim),
            "model.layers.*.",
        )
        shapes: list[tuple[str, tuple[int, ...]]] = [
            ("model.embed_tokens.weight", (self.vocabulary, self.dim))
        ]
        layer_shapes = {
            "input_layernorm": (self.dim,),
            "self_attn.q_proj": wide,
            "self_attn.k_proj": narrow,
            "self_attn.v_proj": narrow,
            "self_attn.o_proj": wide,
            "post_attention_layernorm": (self.dim,),
            "mlp.gate_proj": (self.hidden, self.dim),
            "mlp.down_proj": (self.dim, self.hidden),
            "mlp.up_proj": (self.hidden, self.dim),
        }
        shapes += [
            (f"{layer}{name}.weight", (self.layers, *shape)) for name, shape in layer_shapes.items()
        ]
        shapes += [("model.norm.weight", (self.dim,)), ("", (2, self.context, self.head // 2))]
        return shapes if self.shared else [*shapes, ("lm_head.weight", (self.vocabulary, self.dim))]


def read_model(path: Path) -> tuple[Shape, Weights]:
    """Read a model: its shape, and its weights under the names that Hugging Face gives them."""
    data = path.read_bytes()
    if len(data) < HEADER.size:
        raise Unfit(f"{path}: expected a model of llama2.c, got {len(data)} bytes")
    dim, hidden, layers, heads, kv_heads, vocabulary, context = HEADER.unpack_from(data)
    if (
        min(dim, hidden, layers, heads, kv_heads, abs(vocabulary), context) < 1
        or dim % heads
        or heads % kv_heads
    ):
        raise Unfit(
            f"{path}: expected a model of llama2.c in its legacy format, got another header"
        )
    shape = Shape(
        dim, hidden, layers, heads, kv_heads, abs(vocabulary), context, shared=vocabulary > 0
    )
    expected = HEADER.size + 4 * sum(int(np.prod(size)) for _, size in shape.tensors())
    if len(data) != expected:
        raise Unfit(f"{path}: expected {expected:,} bytes, as the header says, got {len(data):,}")
    weights, start = Weights(), HEADER.size
    for name, size in shape.tensors():
        count = int(np.prod(size))
        tensor = np.frombuffer(data, "<f4", count, start).reshape(size)
        start += 4 * count
        parts = (
            {name.replace("*", str(i)): part for i, part in enumerate(tensor)}
            if "*" in name
            else {name: tensor}
        )
        weights |= {part: _halves(part, values, shape) for part, values in parts.items() if part}
    return shape, weights


def _halves(name: str, values: npt.NDArray[np.float32], shape: Shape) -> npt.NDArray[np.float32]:
    """Rotary pairs, which are neighbours in llama2.c, are halves of a head in Hugging Face."""
    if re.search(r"self_attn\.[qk]_proj", name):
        values = (
            values.reshape(-1, shape.head // 2, 2, shape.dim).swapaxes(1, 2).reshape(values.shape)
        )
    return np.ascontiguousarray(values)


def read_tokens(path: Path, count: int) -> list[tuple[str, float]]:
    """Read the tokens and their scores.

    The first three are those of unknown text, beginning and end.
    """
    data, start, tokens = path.read_bytes(), 4, list[tuple[str, float]]()
    try:
        while start < len(data):
            score, size = struct.unpack_from("<fi", data, start)
            text = data[start + 8 : start + 8 + size]
            if size < 1 or len(text) < size:
                raise ValueError("a token is cut off")
            tokens.append((text.decode(), score))
            start += 8 + size
    except (struct.error, ValueError) as error:
        raise Unfit(f"{path}: expected the tokenizer of a llama2.c model: {error}") from error
    if len(tokens) != count:
        raise Unfit(f"{path}: expected {count} tokens, as the model has, got {len(tokens)}")
    if [text for text, _ in tokens[3 : 3 + BYTES]] != [f"<0x{i:02X}>" for i in range(BYTES)]:
        raise Unfit(f"{path}: expected the {BYTES} bytes behind the first three tokens")
    return [(UNK, 0.0), (BOS, 0.0), (EOS, 0.0), *tokens[3:]]


def merges(tokens: Sequence[tuple[str, float]]) -> list[tuple[str, str]]:
    """Pairs of tokens that become a token, the best score first."""
    plain = dict(tokens[3 + BYTES :])
    merge_pairs = [
        (-score, text[:cut], text[cut:])
        for text, score in plain.items()
        for cut in range(1, len(text))
        if text[:cut] in plain and text[cut:] in plain
    ]
    return [(left, right) for _, left, right in sorted(merge_pairs, key=lambda pair: pair[0])]


def tokenizer(tokens: Sequence[tuple[str, float]]) -> Any:
    """Make the tokenizer."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors

    vocabulary = {text: number for number, (text, _) in enumerate(tokens)}
    bpe_tokenizer = Tokenizer(
        models.BPE(vocabulary, merges(tokens), unk_token=UNK, byte_fallback=True)
    )
    bpe_tokenizer.normalizer = normalizers.Prepend(" ")
    bpe_tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    bpe_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A {BOS} $B", special_tokens=[(BOS, vocabulary[BOS])]
    )
    bpe_tokenizer.add_special_tokens(
        [AddedToken(text, normalized=False, special=True) for text in (UNK, BOS, EOS)]
    )
    return bpe_tokenizer


def configs(shape: Shape) -> dict[str, dict[str, Any]]:
    """Make the JSON files."""
    special = {
        "bos_token_id": 1,
        "eos_token_id": [1, 2],
        "pad_token_id": 0,
    }  # a story ends where the next begins
    model = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "hidden_size": shape.dim,
        "intermediate_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head,
        "vocab_size": shape.vocabulary,
        "max_position_embeddings": shape.context,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        "tie_word_embeddings": shape.shared,
        "attention_bias": False,
        "mlp_bias": False,
        **special,
    }
    words = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": UNK,
        "bos_token": BOS,
        "eos_token": EOS,
        "pad_token": UNK,
        "padding_side": "left",
        "model_max_length": shape.context,
        "clean_up_tokenization_spaces": False,
        "chat_template": TEMPLATE,
    }
    sampling = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, **special}
    return {
        "config.json": model,
        "generation_config.json": sampling,
        "tokenizer_config.json": words,
    }


def convert(model: Path, tokens: Path, folder: Path) -> None:
    """Write the folder of a model; one that is there is written over."""
    from safetensors.numpy import save

    shape, weights = read_model(model)
    converted = tokenizer(read_tokens(tokens, shape.vocabulary))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_bytes(save(weights, metadata={"format": "pt"}))
    converted.save(str(folder / "tokenizer.json"))
    for name, content in configs(shape).items():
        (folder / name).write_text(
            json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert what the command line names; return the exit status."""
    parser = argparse.ArgumentParser(
        description="Convert a model of llama2.c to a Hugging Face folder."
    )
    parser.add_argument(
        "model", type=Path, help="weights in the legacy format, such as stories260K.bin"
    )
    parser.add_argument("tokenizer", type=Path, help="tokens and scores, such as tok512.bin")
    parser.add_argument("folder", type=Path, help="where to write")
    args = parser.parse_args(arguments)
    try:
        convert(args.model, args.tokenizer, args.folder)
    except (Unfit, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"wrote {args.folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
