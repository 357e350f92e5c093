"""Choose what computes: the device, the precision and the number of threads.

A *device* is the processor or a GPU, by torch's name (``cpu``, ``cuda:0``). The *precision* is the
type of the numbers that a model computes with.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from ranktilt.optional import need
from ranktilt.parallel.memory_limits import processors

PRECISIONS = ("float32", "bfloat16", "float16")
"""Precisions that models may compute in.

The first is the default everywhere, so that no number depends on the machine.
"""
BACKENDS = ("torch", "onnx", "openvino")
"""Backends of sentence-transformers; all but the first need optimum and compute in float32."""


def torch_device(device: str | None) -> str:
    """Return torch's name of `device`; None means a GPU, or the processor if there is none."""
    torch = need("torch", extra="neural", for_="a local model")
    if device is not None:
        return device
    if torch.cuda.is_available():
        return "cuda"
    if torch.backends.mps.is_available():
        return "mps"
    return "cpu"


@contextmanager
def inference(device: Any, precision: str) -> Iterator[None]:
    """Let torch compute without gradients inside the ``with`` block, in a precision.

    A precision below float32 is torch's autocast: weights stay in float32.
    """
    torch = need("torch", extra="neural", for_="a neural ranker")
    set_threads()
    kind = torch.device(device).type
    dtype = None if precision == "float32" else getattr(torch, precision)
    with torch.inference_mode(), torch.autocast(kind, dtype=dtype, enabled=dtype is not None):
        yield


@cache
def set_threads() -> None:
    """Keep torch from starting more threads than this process may use.

    In a container torch counts the machine's cores, not those that the container has.
    """
    torch = need("torch", extra="neural", for_="a local model")
    if not os.environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(max(min(torch.get_num_threads(), processors()), 1))
