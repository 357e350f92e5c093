"""How tilts are tested: options, and the keys of [statistics] in ranktilt.toml or ``--set``.

A *tilt* is how far a ranker leans to one of two groups. It is *level* if its whole interval lies
within the *margin*, the largest tilt that still counts as none. The *primary* measure is the one
whose tilt decides the verdict, as a paper's *preset* or the user may say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from ranktilt.cli.app import SELDOM, STATISTICS
from ranktilt.cli.settings import settings
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.config import StatisticsSettings
    from ranktilt.measures.margin import Margin


@dataclass(frozen=True, kw_only=True)
class AuditStatistics:
    """How an audit measures and tests tilts, from options, ``--set``, a preset and the file."""

    ties: str = "expected"
    """How documents of equal score count, such as ``expected`` for the mean over all orders."""
    rounding: str = "none"
    """How means are rounded before they are compared, as in some papers; ``none``: not at all."""
    missing: str = "zero"
    """How queries without a retrieved document count."""
    test: str = "interval"
    """Name of the test of a tilt."""
    primary: str | None
    """Measure whose tilt decides the verdict; None for the default of the audit."""
    margin: Margin
    """Largest tilt that counts as level, in points or ranks."""
    correction: str
    """How p-values are corrected for many tests."""
    resamples: int
    """Number of resamples of the bootstrap."""
    seed: int
    """Random seed of all draws."""


@Parameter(name="*", group=STATISTICS)
@dataclass(frozen=True, kw_only=True)
class StatisticsOptions:
    """Options of how tilts are tested.

    Resamples, seed and correction have no options: they are keys of ranktilt.toml.
    """

    ties: Annotated[
        Literal["expected", "trec_eval"] | None,
        Parameter(
            help="How to count ties: their expected value over all orders (default), or in "
            "trec_eval's order by id."
        ),
    ] = None
    primary: Annotated[
        str | None,
        Parameter(
            help="The question that verdicts answer (default: the deepest nDCG, otherwise the "
            "first -m; without judgments HeadToHead for twins, otherwise Share@10).",
            metavar="MEASURE",
            group=SELDOM,
        ),
    ] = None
    margin: Annotated[
        str | None,
        Parameter(
            help="Count tilts within this margin as level: points, or '0.5 ranks' (default: 5).",
            metavar="X",
        ),
    ] = None

    def in_force(self, preset: str | None = None) -> AuditStatistics:
        """Return how an audit measures and tests.

        An option wins over ``--set``, that over a preset, and that over ranktilt.toml. `preset` is
        the name of a paper's settings.
        """
        from ranktilt.presets import preset as preset_named

        configured = statistics_settings()
        file_values = configured.audit_options  # of ranktilt.toml, where --set has replaced some
        assigned = settings().assigned_statistics
        # Each line below overwrites what the lines before it set.
        values = dict(file_values)
        if preset is not None:
            values |= preset_named(preset).statistics
        values |= {name: value for name, value in file_values.items() if name in assigned}
        if self.ties is not None:
            values["ties"] = self.ties
        statistics = AuditStatistics(
            primary=self.primary,
            margin=self._margin(),
            correction=configured.correction,
            resamples=configured.resamples,
            seed=configured.seed,
        )
        return replace(statistics, **values)

    def _margin(self) -> Margin:
        """Return the margin of the option, of ranktilt.toml, or the default, in this order."""
        from ranktilt.measures.margin import DEFAULT_MARGIN, read_margin

        if self.margin is not None:
            return read_margin(self.margin, "--margin")
        configured = settings().configuration.statistics.margin
        if configured is None:
            return DEFAULT_MARGIN
        return read_margin(str(configured), "statistics.margin")

    def preset_changes(self, preset: str) -> list[str]:
        """Return the values that differ from the preset's, such as ``ties = expected``."""
        from ranktilt.presets import preset as preset_named

        statistics = self.in_force(preset)
        changes = list[str]()
        for name, preset_value in preset_named(preset).statistics.items():
            value = getattr(statistics, name)
            if value != preset_value:
                changes.append(f"{name} = {value}")
        return changes


def statistics_settings() -> StatisticsSettings:
    """Return the section [statistics] of ranktilt.toml, with the keys of ``--set``."""
    return settings().configuration.statistics


def refuse_assigned_statistics(reason: str, *, but: str = "") -> None:
    """Refuse keys of [statistics] in ``--set`` that nothing reads; `but` names a key that is read.

    `reason` says why they are not read. Keys of ranktilt.toml are for all commands, and stay.
    """
    for name in sorted(settings().assigned_statistics - {but}):
        raise UserError(f"--set statistics.{name}: {reason}")


def read_optional_margin(text: str | None, option: str) -> Margin | None:
    """Read a margin in points or ranks; None without a text. `option` is named in errors."""
    from ranktilt.measures.margin import read_margin

    return None if text is None else read_margin(text, option)


def margin_of_shares(typed: float | None) -> float:
    """Return how far a share may be from 50 % and still count as level, in points.

    A *share* is, for example, how often a judge prefers one of two texts; 50 % favours neither. The
    margin is that of ``--margin`` (`typed`), that of [statistics], or the default, in this order.
    """
    from ranktilt.measures.margin import DEFAULT_MARGIN, read_margin

    if typed is not None:
        return typed
    margin = settings().configuration.statistics.margin
    points = DEFAULT_MARGIN if margin is None else read_margin(margin, "[statistics] margin")
    # A margin in ranks says nothing about shares.
    return DEFAULT_MARGIN if isinstance(points, str) else points
