"""What computes: in which precision, on a GPU or not, and with how many threads."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ranktilt.executing.memory_limits import processors
from ranktilt.optional import need

PRECISIONS = ("float32", "bfloat16", "float16")
"""What models may compute in. The first is the default everywhere, so that no number depends on the machine."""
TRAINING_PRECISIONS = PRECISIONS[:2]


def on_gpu(device: str | None) -> bool:
    """Whether torch computes on an NVIDIA GPU; False also for one that is asked for and is absent."""
    return (device or "cuda").partition(":")[0] == "cuda" and _gpu_is_usable()


@cache
def _gpu_is_usable() -> bool:
    """Whether there is a GPU and torch is built for it; torch itself is not imported."""
    try:
        if version("torch").endswith("+cpu"):
            return False
        driver = ctypes.CDLL("libcuda.so.1")
    except (PackageNotFoundError, OSError):
        return False
    count = ctypes.c_int()
    return not driver.cuInit(0) and not driver.cuDeviceGetCount(ctypes.byref(count)) and count.value > 0


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
