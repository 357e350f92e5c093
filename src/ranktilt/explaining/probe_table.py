"""The probes that you can name: RankTilt's own, and those of installed packages.

A *probe* is a question about texts, and a class that answers it (`base.Probe`). The table names
classes as texts, so that only those that are used are imported.
"""

from __future__ import annotations

import inspect
from typing import Any

from ranktilt.errors import UserError, unknown_name
from ranktilt.explaining.base import Probe
from ranktilt.extensions import ExtensionTable
from ranktilt.sizes import read_whole_number
from ranktilt.spec import Stage, parse_stages

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
        key: value if (number := read_whole_number(value)) is None else number
        for key, value in stage.options.items()
    }
    _check_options(stage, probe_class)
    return probe_class(*arguments, **options)


def _check_options(stage: Stage, probe_class: type[Probe[Any]]) -> None:
    """Refuse an argument or an option that a probe does not have, and a missing argument."""
    parameters = inspect.signature(probe_class).parameters
    for name in stage.options:
        if name not in parameters:
            raise unknown_name(f"option of probe {stage.name}", name, list(parameters))
    positional = [
        parameter
        for parameter in parameters.values()
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    if stage.argument is not None and not positional:
        raise UserError(f"probe {stage}: {stage.name} takes no argument")
    if stage.argument is not None and positional[0].name in stage.options:
        raise UserError(f"probe {stage}: {positional[0].name} is given twice")
    for parameter in positional[stage.argument is not None :]:
        if parameter.default is inspect.Parameter.empty and parameter.name not in stage.options:
            raise UserError(f"probe {stage}: expected {stage.name}:{parameter.name.upper()}")
