"""Presets: what a paper computed differently, by one word: ``--preset dai``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ranktilt.errors import unknown
from ranktilt.extensions import ExtensionTable

_STATISTICS = ("ties", "rounding", "missing", "test")
"""What a preset may set of an audit."""


@dataclass(frozen=True, kw_only=True)
class Preset:
    """What a paper computed differently; what is not set stays as it is without a preset."""

    source: str
    """The paper, such as ``Dai et al., KDD 2024``."""
    measures: tuple[str, ...] = ()
    """Measures of an audit, where none is named."""
    statistics: Mapping[str, str] = field(default_factory=dict)
    """Options of `ranktilt.audit`: ``ties``, ``rounding``, ``missing``, ``test``."""
    text: str | None = None
    """What of a document rankers read: ``title+text``, ``text`` or ``title``."""
    recipes: Mapping[str, str] = field(default_factory=dict)
    """A ranker of the paper by the name that is typed: ``bm25:dai`` by ``bm25``."""
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Options of a ranker by its name, where its text does not set them."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Options of the training of a cross-encoder."""

    def __post_init__(self) -> None:
        for name in self.statistics:
            if name not in _STATISTICS:
                raise unknown("statistic of a preset", name, _STATISTICS)


def presets() -> ExtensionTable:
    """Return the table of presets: the papers', and those of installed packages (``ranktilt.presets``)."""
    return ExtensionTable("preset", "ranktilt.presets", {}, _fault)


def preset(name: str) -> Preset:
    """Return a preset by its name; `UserError` lists those there are."""
    found: Preset = presets().load(name)
    return found


def _fault(loaded: object, name: str) -> str:
    return "" if isinstance(loaded, Preset) else "is not a ranktilt.presets.Preset"
