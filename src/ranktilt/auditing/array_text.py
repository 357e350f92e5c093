"""Write NumPy arrays as text in JSON files: compressed by zlib, then base64."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt


def text_of_array(array: npt.NDArray[Any]) -> str:
    """Return a text from which `array_of_text` makes the array again; its dtype is not stored."""
    # Level 1 is the fastest of zlib.
    return base64.b64encode(zlib.compress(array.tobytes(), 1)).decode()


def array_of_text(text: str, dtype: str) -> npt.NDArray[Any]:
    """Return the array of one dimension that `text_of_array` was called with; it is read-only."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=dtype)
