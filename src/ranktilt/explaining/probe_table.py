"""The probes that you can name: RankTilt's own, and those of installed packages.

A *probe* is a question about texts, and a class that answers it (`base.Probe`). The table names
classes as texts, so that only those that are used are imported.
"""

from __future__ import annotations

import re
from typing import Any

from ranktilt.errors import UserError
from ranktilt.explaining.base import Probe
from ranktilt.extensions import ExtensionTable
from ranktilt.spec import parse_stages

PROBES = {
    "words": "ranktilt.explaining.text_probes:WordsProbe",
    "overlap": "ranktilt.explaining.text_probes:OverlapProbe",
    "similarity": "ranktilt.explaining.similarity:SimilarityProbe",
    "type-token": "ranktilt.explaining.text_probes:TypeTokenProbe",
    "specificity": "ranktilt.explaining.text_probes:SpecificityProbe",
    "query-words": "ranktilt.explaining.text_probes:QueryWordsProbe",
    "sentences": "ranktilt.explaining.text_probes:SentenceLengthProbe",
    "readability": "ranktilt.explaining.text_probes:ReadabilityProbe",
    "perplexity": "ranktilt.explaining.perplexity:PerplexityProbe",
    "spectrum": "ranktilt.explaining.spectrum:SpectrumProbe",
    "truncation": "ranktilt.explaining.text_probes:TruncationProbe",
}
"""Module and class of each probe, by its name."""


def probe_classes() -> dict[str, str]:
    """Return module and class of each probe by name: ours, and those of installed packages."""
    return probe_table().paths()


def probe_table() -> ExtensionTable:
    """Return the table of probes: ours, and those of installed packages (``ranktilt.probes``)."""
    return ExtensionTable("probe", "ranktilt.probes", PROBES, _fault)


def _fault(loaded: object, name: str) -> str:
    """Say why an object that a package offers is no probe; empty if it is one."""
    is_probe = isinstance(loaded, type) and issubclass(loaded, Probe)
    return "" if is_probe else "is not a subclass of ranktilt's Probe"


def probe(name: str | Probe[Any]) -> Probe[Any]:
    """Return the probe that a text describes, such as ``spectrum(values=64)``.

    It is one of ours, or one of an installed package. A `Probe` is returned as it is.
    """
    if isinstance(name, Probe):
        return name
    try:
        # A probe is written as a stage of a ranker is.
        stages = parse_stages(name)
    except UserError:  # its message is about rankers; the error below is about probes
        stages = []
    if len(stages) != 1 or stages[0].k is not None:
        raise UserError(f"probe {name!r}: expected name[:argument][(option=value,…)]")
    (stage,) = stages
    probe_class: type[Probe[Any]] = probe_table().load(stage.name)
    arguments = [] if stage.argument is None else [stage.argument]
    options = {
        key: int(value) if re.fullmatch(r"-?\d+", value) else value
        for key, value in stage.options.items()
    }
    try:
        return probe_class(*arguments, **options)
    except TypeError as error:
        raise UserError(f"probe {stage}: {error}") from error
