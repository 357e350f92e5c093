"""The installation: extras, models known by name, and the cache; or one model in full."""

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
    Emphasis,
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
"""The source of a setting that nobody set."""
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
    """Name, as it is installed."""
    purpose: str
    """What it is for."""
    versions: Mapping[str, str | None]
    """Of its packages; None for one that is missing."""

    @property
    def install(self) -> str:
        """The line that installs missing packages; empty where none is missing."""
        return "" if all(self.versions.values()) else f'pip install "ranktilt[{self.name}]"'


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A value that commands use, and where it comes from."""

    key: str
    """As it is typed, such as ``statistics.seed``, or the name of an environment variable."""
    value: str | None
    """None where nothing is set."""
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
    """The machine, the extras, and models, kind after kind; or models in full alone."""

    models: Sequence[Model]
    """Models to list."""
    here: Mapping[str, str]
    """Where a model lies on this machine by its spec; a model that is not there is left out."""
    others: Sequence[tuple[str, str]] = ()
    """Name and package of each ranker that an installed package brings."""
    machine: Mapping[str, str] = field(default_factory=dict)
    """Facts about the machine, by name."""
    extras: Sequence[Extra] = ()
    """Extras of the package."""
    full: bool = False
    """Whether each is shown in full."""
    cache: CacheInventory | None = None
    """The cache's entries: all, or those of the model that is shown."""
    configuration: SettingsInForce | None = None
    """Settings; None where they are not asked for."""

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
    names = ", ".join(rankers) or "none installed"
    missing = sum(bool(extra.install) for extra in installed.extras)
    blocks: list[Block] = [_table(installed)]
    if installed.machine:
        space = Lines(lines=(Sentence(""),))
        blocks = [
            NamedValues(pairs=tuple(installed.machine.items()), audience=""),
            space,
            _extras(installed),
            *_configuration(installed.configuration),
            *blocks,
        ]
    if installed.full:
        blocks = _cards(installed)
    if installed.cache is not None and (installed.cache.entries or not installed.full):
        blocks += cache_blocks(installed.cache)
    return Document(
        kind="What is installed",
        headline=f"{counted(missing, 'extra is', 'extras are')} missing",
        sections=single_section(blocks),
        legend=() if installed.full else (*_LEGEND, f"Rankers of other packages: {names}."),
    )


def _extras(installed: Installation) -> Table:
    """Return the table of extras."""
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


def _configuration(configuration: SettingsInForce | None) -> list[Block]:
    """Return the settings in force, a row each, and the file's fault."""
    if configuration is None:
        return []
    file = configuration.file or "no ranktilt.toml in this folder or above"
    columns = (
        (name_column("setting"), attrgetter("key")),
        (text_column("value"), lambda setting: DASH if setting.value is None else setting.value),
        (text_column("from"), lambda setting: Cell(setting.source, emphasis=_emphasis(setting))),
    )
    table = make_table(f"Configuration: {file}", configuration.settings, columns)
    if not configuration.fault:
        return [table]
    fault = Sentence(f"The configuration cannot be used: {configuration.fault}", tone="warning")
    return [Lines(lines=(Sentence(""), fault)), table]


def _emphasis(setting: Setting) -> Emphasis:
    """Return the emphasis of a setting; a default is quiet."""
    return "quiet" if setting.source == DEFAULT else ""


def _table(installed: Installation) -> Table:
    """Return the table of models."""
    columns = (
        name_column("typed"),
        *map(text_column, ("what it is", "tuned", "here", "pooling", "similarity")),
        Column("tokens"),
        *map(text_column, ("licence", "name on the hub")),
    )
    rows = []
    kind = ""
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
        rows.append(Row((name, *cells), rule=bool(kind) and model.kind != kind))
        kind = model.kind
    return Table("Models", columns, tuple(rows))


def _cards(installed: Installation) -> list[Block]:
    """Return models in full, one below the other."""
    blocks: list[Block] = []
    for model in installed.models:
        blocks.append(Lines(lines=(*[Sentence("")] * bool(blocks), Sentence(model.spec))))
        blocks.append(
            NamedValues(
                pairs=tuple(_card(model, installed.here.get(model.spec)).items()), audience=""
            )
        )
    return blocks


def _card(model: Model, here: str | None) -> dict[str, str]:
    """Return all facts about a model, by name."""
    texts = {"query": model.query_prefix, "document": model.document_prefix}
    prefixes = [f"{noun} {text!r}" for noun, text in texts.items() if text]
    also = f" (also {', '.join(model.aliases)})" if model.aliases else ""
    tuned = "yes, it ranks as it is" if model.tuned else "no, a body: train it before it ranks"
    checkpoint = f"{model.hub}{also}" if model.hub else "no published checkpoint"
    pooling, similarity = model.pooling or DASH, model.similarity or DASH
    absent = "no, fetched from the hub when first used" if model.hub else "no"
    return {
        "what it is": model.about,
        "from": checkpoint,
        "source": model.source,
        "licence": model.licence,
        "reads": _reads(model),
        "pooling": pooling,
        "similarity": similarity,
        "prefixes": " and ".join(prefixes) or "none",
        "tuned": tuned,
        "here": here or absent,
        "typed": _typed(model),
    }


def _reads(model: Model) -> str:
    """Say how much of a text a model reads."""
    if model.limit is None:
        return "as many tokens as its files say"
    text = "a text" if model.kind == "dense" else "query and document together"
    return f"{counted(model.limit, 'token', 'tokens')} of {text}"


def _typed(model: Model) -> str:
    """Say how to use a model."""
    if not model.hub:
        return f"-r {model.kind}:FOLDER, with your checkpoint in FOLDER"
    if not model.tuned:
        command = f"ranktilt train {model.kind} DIR --base-model {model.hub} -o FOLDER"
        return f'{command}, then -r "bm25@100>>{model.kind}:FOLDER"'
    return f'-r "{model.line}"' if ">>" in model.line else f"-r {model.line}"
