"""Small models in Hugging Face format: that of stories, and one whose every next token has known
probabilities.
"""

import math
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from scripts.convert_llama2c import convert

SENTENCES = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park."
)
END = "Lily didn't want to help her mom, so"
STEPS = 200


def make_stories(shared_data: Path, folder: Path) -> Path:
    source = shared_data / "stories260k"
    convert(source / "stories260K.bin", source / "tok512.bin", folder)
    return folder


def known_model(folder: Path, chances: Mapping[str, float], *, context: int = 64) -> Path:
    """A model whose next token has the same probabilities whatever stands before; ``</s>`` ends the
    text.

    All embeddings are ones and all layers zero, so that the last layer alone decides.
    """
    texts = [" ", *(text for text in chances if text != "</s>")]
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), *texts]
    dim, hidden, heads, count = 8, 4, 2, len(pieces)
    logits = np.full(count, -40.0)
    for text, chance in chances.items():
        logits[pieces.index(text)] = math.log(chance)
    layer = np.concatenate(
        [np.ones(dim), np.zeros(4 * dim * dim), np.ones(dim), np.zeros(3 * hidden * dim)]
    )
    parts = [
        np.ones(count * dim),
        layer,
        np.ones(dim),
        np.zeros(context * dim // heads),
        np.repeat(logits / dim, dim),
    ]
    header = struct.pack("<7i", dim, hidden, 1, heads, heads, -count, context)
    # The file has each kind of weight for all layers; of one layer that is the order above.
    folder.mkdir(parents=True, exist_ok=True)
    model, tokens = folder / "model.bin", folder / "tokens.bin"
    model.write_bytes(header + np.concatenate(parts).astype("<f4").tobytes())
    encoded = [text.encode() for text in pieces]
    tokens.write_bytes(
        struct.pack("<i", 9) + b"".join(struct.pack("<fi", 0.0, len(t)) + t for t in encoded)
    )
    convert(model, tokens, folder)
    model.unlink()
    tokens.unlink()
    return folder
