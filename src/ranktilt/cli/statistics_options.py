"""Options of how tilts are tested, with what ranktilt.toml and ``--set`` say of it."""

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
    """How an audit measures and tests tilts, of every place that may say so."""

    ties: str = "expected"
    """How ties count."""
    rounding: str = "none"
    """Whether means are rounded as papers do."""
    missing: str = "zero"
    """How queries without a document count."""
    test: str = "interval"
    """Test of a tilt."""
    primary: str | None
    """Question that verdicts answer; None for the usual one."""
    margin: Margin
    """Tilts that count as level."""
    correction: str
    """How p-values are corrected."""
    resamples: int
    """Resamples of the bootstrap."""
    seed: int
    """Seed of everything random."""


@Parameter(name="*", group=STATISTICS)
@dataclass(frozen=True, kw_only=True)
class StatisticsOptions:
    """Options of how tilts are tested; resamples, seed and correction are keys of ranktilt.toml."""

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

        Options win over ``--set``, a preset and the file, in this order.
        """
        from ranktilt.presets import preset as preset_named

        configured = statistics_settings()
        usual = configured.audit_options
        assigned = settings().assigned_statistics
        values = dict(usual)
        if preset is not None:
            values |= preset_named(preset).statistics
        values |= {name: value for name, value in usual.items() if name in assigned}
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

    def of_mitigation(self) -> AuditStatistics:
        """Return how a mitigation measures and tests; refuse a ``--set`` that it does not read."""
        for name in sorted({"missing", "rounding"} & settings().assigned_statistics):
            raise UserError(f"--set statistics.{name}: ranktilt mitigate does not read it")
        return self.in_force()

    def _margin(self) -> Margin:
        """Return the margin of the option, or else of ranktilt.toml, or else the usual one."""
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
        for name, usual in preset_named(preset).statistics.items():
            value = getattr(statistics, name)
            if value != usual:
                changes.append(f"{name} = {value}")
        return changes


def statistics_settings() -> StatisticsSettings:
    """Return the section [statistics], as ranktilt.toml or ``--set`` has it."""
    return settings().configuration.statistics


def read_optional_margin(text: str | None, option: str) -> Margin | None:
    """Read a margin, points or ranks; None where none is named."""
    from ranktilt.measures.margin import read_margin

    return None if text is None else read_margin(text, option)


def margin_of_shares(typed: float | None) -> float:
    """Return the points within which a share counts as level: --margin, or [statistics]."""
    from ranktilt.measures.margin import DEFAULT_MARGIN, read_margin

    if typed is not None:
        return typed
    margin = settings().configuration.statistics.margin
    points = DEFAULT_MARGIN if margin is None else read_margin(margin, "[statistics] margin")
    # A margin in ranks says nothing about shares.
    return DEFAULT_MARGIN if isinstance(points, str) else points
