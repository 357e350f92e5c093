"""Presets: the settings of a paper by one word, such as ``--preset dai``.

A paper may compute a measure, or run a ranker, differently from RankTilt's defaults. Its preset has
these differences, so that its numbers can be reproduced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ranktilt.errors import unknown_name
from ranktilt.extensions import ExtensionTable

_STATISTICS = ("ties", "rounding", "missing", "test")
"""Options of an audit that a preset may set."""


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The settings of a paper that differ from the usual ones."""

    source: str
    """The paper, such as ``Dai et al., KDD 2024``."""
    measures: tuple[str, ...] = ()
    """Measures of an audit, if the user names none."""
    statistics: Mapping[str, str] = field(default_factory=dict)
    """Options of `ranktilt.audit`: ``ties``, ``rounding``, ``missing``, ``test``."""
    text: str | None = None
    """Fields of a document that rankers read: ``title+text``, ``text`` or ``title``."""
    recipes: Mapping[str, str] = field(default_factory=dict)
    """Rankers of the paper by the name that users type: for ``bm25`` it may have ``bm25:dai``."""
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Options of rankers by the ranker's name, for options that the user does not set."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Options of the training of a cross-encoder."""

    def __post_init__(self) -> None:
        for name in self.statistics:
            if name not in _STATISTICS:
                raise unknown_name("statistic of a preset", name, _STATISTICS)


def presets() -> ExtensionTable:
    """Return the table of presets: of the papers, and of installed packages."""
    return ExtensionTable(noun="preset", group="ranktilt.presets", bundled={}, fault=_fault)


def preset(name: str) -> Preset:
    """Return a preset by its name; `UserError` lists the names."""
    loaded: Preset = presets().load(name)
    return loaded


def _fault(loaded: object, name: str) -> str:
    """Say why an object that a package offers is no preset; empty if it is a preset."""
    return "" if isinstance(loaded, Preset) else "is not a ranktilt.presets.Preset"
