"""The document of an installation: extras, settings, known models and the cache; or single models.

An *extra* is a set of optional packages, as in ``pip install "ranktilt[plots]"``. The *spec* of a
model is what users type to rank with it, such as ``dense:ance``. A *body* is a pretrained model
that must be trained before it ranks. The *source* of a setting is where its value comes from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Any

from ranktilt.errors import counted
from ranktilt.models.catalogue import Model
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    Document,
    Lines,
    NamedValues,
    Row,
    Sentence,
    Table,
    make_table,
    name_column,
    single_section,
    text_column,
)
from ranktilt.reporting.numbers import DASH
from ranktilt.reporting.views.cache import CacheInventory, cache_blocks

DEFAULT = "default"
"""Name of the source of a setting that was not set anywhere."""
_LEGEND = (
    'Re-rankers follow a first stage: -r "bm25@100>>monot5:base". For any other model, give a '
    "folder or its name on the hub instead of the short name: -r dense:FOLDER.",
    "tuned: a body was never trained to rank, so train it first. here: wheel, installed with "
    "pip; cache, downloaded before; –, downloaded on first use. "
    "ranktilt tools doctor MODEL shows one in full.",
)
"""Notes below the table of models."""


@dataclass(frozen=True, kw_only=True)
class Extra:
    """An extra of the installation: its purpose, and which of its packages are here."""

    name: str
    """Name of the extra, such as ``plots``."""
    purpose: str
    """What it is for."""
    versions: Mapping[str, str | None]
    """Version of each of its packages; None for one that is missing."""

    @property
    def install(self) -> str:
        """The command that installs missing packages; empty where none is missing."""
        return "" if all(self.versions.values()) else f'pip install "ranktilt[{self.name}]"'


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A value that commands use, and where it comes from."""

    key: str
    """Name of the setting, such as ``statistics.seed``, or of an environment variable."""
    value: str | None
    """Value of the setting; None where nothing is set."""
    source: str
    """``default``, ``file``, ``--set``, an option such as ``--device``, or ``environment``."""


@dataclass(frozen=True, kw_only=True)
class SettingsInForce:
    """The settings that commands in this folder use without typing them."""

    file: str | None
    """The configuration file; None where there is none."""
    fault: str = ""
    """Why the file cannot be used; every other command refuses it."""
    settings: Sequence[Setting] = ()
    """The settings."""


@dataclass(frozen=True, kw_only=True)
class Installation:
    """What is installed on this machine; or, with `full`, all facts about some models."""

    models: Sequence[Model]
    """Models to list, those of one kind together."""
    here: Mapping[str, str]
    """Where each model is on this machine (``wheel`` or ``cache``), by its spec."""
    others: Sequence[tuple[str, str]] = ()
    """Name and package of each ranker that another installed package adds."""
    machine: Mapping[str, str] = field(default_factory=dict)
    """Facts about the machine, by name."""
    extras: Sequence[Extra] = ()
    """Extras of the package."""
    full: bool = False
    """Whether all facts about the models are shown, and nothing else but their cache."""
    cache: CacheInventory | None = None
    """Entries of the cache: all, or those of the models that are shown in full."""
    configuration: SettingsInForce | None = None
    """Settings that commands use; None where they are not shown."""

    @property
    def records(self) -> list[dict[str, Any]]:
        """Return the models as JSON."""
        return [
            {"spec": model.spec, **asdict(model), "here": self.here.get(model.spec)}
            for model in self.models
        ]

    def to_json(self) -> bytes:
        """Return everything as JSON."""
        rankers = [{"name": name, "package": package} for name, package in self.others]
        content: dict[str, Any] = {"models": self.records, "rankers": rankers}
        if self.machine:
            extras = [{**asdict(extra), "install": extra.install} for extra in self.extras]
            content = {"machine": dict(self.machine), "extras": extras, **content}
        if self.configuration is not None:
            content["configuration"] = asdict(self.configuration)
        if self.cache is not None:
            content["cache"] = {"folder": str(self.cache.folder), "entries": self.cache.records}
        return f"{json.dumps(content, indent=1, ensure_ascii=False)}\n".encode()


def view(installed: Installation) -> Document:
    """Return the document of an installation."""
    rankers = [f"{name} ({package})" for name, package in installed.others]
    ranker_names = ", ".join(rankers) or "none installed"
    missing_count = sum(bool(extra.install) for extra in installed.extras)
    blocks: list[Block] = [_model_table(installed)]
    if installed.machine:
        empty_line = Lines(lines=(Sentence(""),))
        blocks = [
            NamedValues(pairs=tuple(installed.machine.items()), audience=""),
            empty_line,
            _extra_table(installed),
            *_configuration_blocks(installed.configuration),
            *blocks,
        ]
    if installed.full:
        blocks = _model_blocks(installed)
    if installed.cache is not None and (installed.cache.entries or not installed.full):
        blocks += cache_blocks(installed.cache)
    return Document(
        kind="What is installed",
        headline=f"{counted(missing_count, 'extra is', 'extras are')} missing",
        sections=single_section(blocks),
        legend=() if installed.full else (*_LEGEND, f"Rankers of other packages: {ranker_names}."),
    )


def _extra_table(installed: Installation) -> Table:
    """Return the table of extras, with the command that installs what is missing."""
    columns = (
        (name_column("extra"), attrgetter("name")),
        (text_column("what it is for"), attrgetter("purpose")),
        (text_column("packages"), _package_versions),
        (text_column("to install"), lambda extra: Cell(extra.install, tone="warning")),
    )
    return make_table("Extras", installed.extras, columns)


def _package_versions(extra: Extra) -> str:
    """Name the packages of an extra, with their versions."""
    return ", ".join(f"{name} {version or 'missing'}" for name, version in extra.versions.items())


def _configuration_blocks(configuration: SettingsInForce | None) -> list[Block]:
    """Return the table of settings, below a warning where the file cannot be used."""
    if configuration is None:
        return []
    file = configuration.file or "no ranktilt.toml in this folder or above"
    columns = (
        (name_column("setting"), attrgetter("key")),
        (text_column("value"), lambda setting: DASH if setting.value is None else setting.value),
        (text_column("from"), _setting_source_cell),
    )
    table = make_table(f"Configuration: {file}", configuration.settings, columns)
    if not configuration.fault:
        return [table]
    fault = Sentence(f"The configuration cannot be used: {configuration.fault}", tone="warning")
    return [Lines(lines=(Sentence(""), fault)), table]


def _setting_source_cell(setting: Setting) -> Cell:
    """Return the cell of where a setting comes from; a default is quiet."""
    return Cell(setting.source, emphasis="quiet" if setting.source == DEFAULT else "")


def _model_table(installed: Installation) -> Table:
    """Return the table of models, with a line between two kinds; bodies are quiet."""
    columns = (
        name_column("typed"),
        *map(text_column, ("what it is", "tuned", "here", "pooling", "similarity")),
        Column("tokens"),
        *map(text_column, ("licence", "name on the hub")),
    )
    rows: list[Row] = []
    previous_kind = ""
    for model in installed.models:
        limit = DASH if model.limit is None else str(model.limit)
        texts = (
            model.about,
            "yes" if model.tuned else "body",
            installed.here.get(model.spec, DASH),
            model.pooling or DASH,
            model.similarity or DASH,
            limit,
            model.licence,
            model.hub or DASH,
        )
        name = Cell(model.spec, emphasis="strong" if model.tuned else "quiet")
        cells = tuple(Cell(text, emphasis="" if model.tuned else "quiet") for text in texts)
        is_new_kind = model.kind != previous_kind
        rows.append(Row((name, *cells), rule=bool(rows) and is_new_kind))
        previous_kind = model.kind
    return Table("Models", columns, tuple(rows))


def _model_blocks(installed: Installation) -> list[Block]:
    """Return all facts about each model, below its spec."""
    blocks: list[Block] = []
    for model in installed.models:
        empty_line = [Sentence("")] if blocks else []
        blocks.append(Lines(lines=(*empty_line, Sentence(model.spec))))
        facts = _model_facts(model, installed.here.get(model.spec))
        blocks.append(NamedValues(pairs=tuple(facts.items()), audience=""))
    return blocks


def _model_facts(model: Model, here: str | None) -> dict[str, str]:
    """Return all facts about a model by name; `here` is where it is on this machine, if it is."""
    texts = {"query": model.query_prefix, "document": model.document_prefix}
    prefixes = [f"{noun} {text!r}" for noun, text in texts.items() if text]
    aliases = f" (also {', '.join(model.aliases)})" if model.aliases else ""
    tuned = "yes, it ranks as it is" if model.tuned else "no, a body: train it before it ranks"
    checkpoint = f"{model.hub}{aliases}" if model.hub else "no published checkpoint"
    pooling, similarity = model.pooling or DASH, model.similarity or DASH
    absent = "no, fetched from the hub when first used" if model.hub else "no"
    return {
        "what it is": model.about,
        "from": checkpoint,
        "source": model.source,
        "licence": model.licence,
        "reads": _limit_words(model),
        "pooling": pooling,
        "similarity": similarity,
        "prefixes": " and ".join(prefixes) or "none",
        "tuned": tuned,
        "here": here or absent,
        "typed": _usage(model),
    }


def _limit_words(model: Model) -> str:
    """Say how many tokens of a text a model reads."""
    if model.limit is None:
        return "as many tokens as its files say"
    text = "a text" if model.kind == "dense" else "query and document together"
    return f"{counted(model.limit, 'token', 'tokens')} of {text}"


def _usage(model: Model) -> str:
    """Say what to type to rank with a model; for a body, first how to train it."""
    if not model.hub:
        return f"-r {model.kind}:FOLDER, with your checkpoint in FOLDER"
    if not model.tuned:
        command = f"ranktilt train {model.kind} DIR --base-model {model.hub} -o FOLDER"
        return f'{command}, then -r "bm25@100>>{model.kind}:FOLDER"'
    return f'-r "{model.line}"' if ">>" in model.line else f"-r {model.line}"
