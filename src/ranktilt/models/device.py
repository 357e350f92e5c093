"""What computes: in which precision, on a GPU or not, and with how many threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from ranktilt.optional import need
from ranktilt.parallel.memory_limits import processors

PRECISIONS = ("float32", "bfloat16", "float16")
"""What models may compute in. The first is the default everywhere, so that no number depends on the machine."""
BACKENDS = ("torch", "onnx", "openvino")
"""What sentence-transformers can compute with; all but the first need optimum and compute in float32."""


def torch_device(device: str | None) -> str:
    """Return torch's name of what computes: what is asked for, else a GPU where there is one, else the processor."""
    torch = need("torch", extra="neural", for_="a local model")
    if device is not None:
        return device
    return (
        "cuda"
        if torch.cuda.is_available()
        else "mps"
        if torch.backends.mps.is_available()
        else "cpu"
    )


@contextmanager
def inference(device: Any, precision: str) -> Iterator[None]:
    """Let torch compute without gradients, on the processors there are; less than float32 is by autocast."""
    torch = need("torch", extra="neural", for_="a neural ranker")
    set_threads()
    kind = torch.device(device).type
    low = None if precision == "float32" else getattr(torch, precision)
    with torch.inference_mode(), torch.autocast(kind, dtype=low, enabled=low is not None):
        yield


@cache
def set_threads() -> None:
    """Keep torch from starting more threads than this process may use at once, as it does in a container."""
    torch = need("torch", extra="neural", for_="a local model")
    if not os.environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(max(min(torch.get_num_threads(), processors()), 1))
