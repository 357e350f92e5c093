"""What computes: its precision, chosen without importing torch, and how many threads it may use."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ranktilt.errors import unknown
from ranktilt.executing.memory_limits import processors
from ranktilt.optional import need

PRECISIONS = ("auto", "float32", "bfloat16")
_COMPUTE_CAPABILITY_MAJOR = 75  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
_AMPERE = 8  # the first GPUs that compute in bfloat16
_CPU_INFO = Path("/proc/cpuinfo")


def choose_precision(precision: str, *, for_: str = "dense", device: str | None = None) -> str:
    """Turn ``auto`` into bfloat16 where what computes is faster in it, else into float32.

    That is a processor with AMX, one with AVX512-BF16 that is not Intel's, and a GPU from Ampere on. `device` is
    torch's name of what computes; by default a GPU where there is one.
    """
    if precision not in PRECISIONS:
        raise unknown(f"precision of {for_}", precision, PRECISIONS)
    if precision != "auto":
        return precision
    if on_gpu(device):
        return "bfloat16" if _gpu_major() >= _AMPERE else "float32"
    kind = (device or "cpu").partition(":")[0]
    return "bfloat16" if kind == "cpu" and _has_bfloat16() else "float32"


def on_gpu(device: str | None) -> bool:
    """Whether torch computes on an NVIDIA GPU; False also for one that is asked for and is absent."""
    return (device or "cuda").partition(":")[0] == "cuda" and _gpu_major() > 0


def _has_bfloat16() -> bool:
    """Whether the processor is faster in bfloat16: with AVX512-BF16 alone, Intel's take twice as long as in float32."""
    words = set(_CPU_INFO.read_text(encoding="utf-8").split()) if _CPU_INFO.is_file() else set[str]()
    return "amx_bf16" in words or ("avx512_bf16" in words and "GenuineIntel" not in words)


@cache
def _gpu_major() -> int:
    """Major compute capability of the GPU that torch takes; 0 where there is none, or torch cannot use it."""
    try:
        if version("torch").endswith("+cpu"):
            return 0
        driver = ctypes.CDLL("libcuda.so.1")
    except (PackageNotFoundError, OSError):
        return 0
    device, major = ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0):
        return 0
    unknown_capability = driver.cuDeviceGetAttribute(ctypes.byref(major), _COMPUTE_CAPABILITY_MAJOR, device)
    return 0 if unknown_capability else major.value


@contextmanager
def inference(device: Any, precision: str) -> Iterator[None]:
    """Let torch compute without gradients, on the processors there are; bfloat16 is by autocast."""
    torch = need("torch", extra="neural", for_="a neural ranker")
    set_threads()
    kind = torch.device(device).type
    with torch.inference_mode(), torch.autocast(kind, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
        yield


@cache
def set_threads() -> None:
    """Keep torch from starting more threads than this process may use at once, as it does in a container."""
    torch = need("torch", extra="neural", for_="a local model")
    if not os.environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(max(min(torch.get_num_threads(), processors()), 1))
