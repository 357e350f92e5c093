"""What a shell completes: names that an option takes, looked up when the shell asks."""

from __future__ import annotations

from collections.abc import Iterable


def rankers(incomplete: str) -> list[str]:
    """Rankers and models that are known by a short name, for the last stage that is typed."""
    from ranktilt.models.catalogue import MODELS
    from ranktilt.registry import ranker_names

    before, arrow, stage = incomplete.rpartition(">>")
    return [f"{before}{arrow}{name}" for name in _beginning(stage, (*ranker_names(), *MODELS))]


def measures(incomplete: str) -> list[str]:
    """Measures and other estimands, without their cutoffs."""
    from ranktilt.measures.base import estimands

    return _beginning(incomplete, estimands())


def layout_names(incomplete: str) -> list[str]:
    """Tables and figures of the papers."""
    from ranktilt.reporting.layouts.layout import PAPER, layouts

    return _beginning(incomplete, (PAPER, *layouts()))


def presets(incomplete: str) -> list[str]:
    """Presets of the papers, and those of other packages."""
    from ranktilt.presets import presets as table

    return _beginning(incomplete, table().names())


def probes(incomplete: str) -> list[str]:
    """Probes, those of other packages too."""
    from ranktilt.probes.explain import probe_classes

    return _beginning(incomplete, probe_classes())


def _beginning(typed: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(typed))
