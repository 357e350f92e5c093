"""The settings that commands use, and where each comes from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ranktilt.cli.check import CheckSection
from ranktilt.cli.settings import settings
from ranktilt.config import Configuration, find_configuration, read_configuration
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.reporting.views.doctor import Setting, SettingsInForce


def settings_in_force() -> SettingsInForce:
    """Return the settings that commands use, each with its source.

    Where the configuration file cannot be read, they are the defaults, with the message of the
    fault.
    """
    from ranktilt.reporting.views.doctor import SettingsInForce

    path: Path | None = None
    try:
        path = find_configuration(Path.cwd())
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
    """Yield every key of [machine], [statistics] and [check].

    `from_file` is the configuration without ``--set``, and `section` the section [check].
    """
    from ranktilt.reporting.views.doctor import DEFAULT, Setting

    current = settings()
    with_set_keys = current.configuration
    in_force: dict[str, Any] = {
        "machine": current.machine,
        "statistics": with_set_keys.statistics,
        "check": section,
    }
    for name, values in in_force.items():
        for field in fields(values):
            key, value = f"{name}.{field.name}", getattr(values, field.name)
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
    """Return a value as text; None stays None."""
    if value is None:
        return None
    return f"{value:g}" if isinstance(value, float) else str(value)
