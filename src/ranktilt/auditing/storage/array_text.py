"""Write NumPy arrays and lists of names as text in JSON files: compressed by zlib, then base64.

The inverse of `text_of_array` is `array_of_text`, that of `text_of_names` is `names_of_text`.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

_FASTEST = 1
"""Level of zlib that compresses fastest, from 1 to 9."""


def text_of_array(array: npt.NDArray[Any]) -> str:
    """Return a text from which `array_of_text` makes the array again; its dtype is not stored."""
    return base64.b64encode(zlib.compress(array.tobytes(), _FASTEST)).decode()


def array_of_text(text: str, dtype: str) -> npt.NDArray[Any]:
    """Return the array of one dimension that `text_of_array` was called with; it is read-only."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=dtype)


def text_of_names(names: pl.Series) -> str:
    """Return a text from which `names_of_text` makes the names again; null stays null."""
    return base64.b64encode(zlib.compress(orjson.dumps(names.to_list()), _FASTEST)).decode()


def names_of_text(text: str) -> pl.Series:
    """Return the names that `text_of_names` was called with."""
    return pl.Series(orjson.loads(zlib.decompress(base64.b64decode(text))), dtype=pl.String)
