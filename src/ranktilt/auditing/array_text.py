"""Arrays as text in a JSON file: compressed (zlib) as base64."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt


def text_of_array(array: npt.NDArray[Any]) -> str:
    """Return the bytes of an array, compressed, as text."""
    return base64.b64encode(zlib.compress(array.tobytes(), 1)).decode()


def array_of_text(text: str, kind: str) -> npt.NDArray[Any]:
    """Return the array that `text_of_array` made a text of; `kind` is its dtype."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=kind)
