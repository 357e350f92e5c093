"""Options of how tilts are tested, with what ranktilt.toml and ``--set`` say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ranktilt.cli.app import SELDOM, STATISTICS
from ranktilt.cli.settings import settings
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.measures.margin import Margin


@Parameter(name="*", group=STATISTICS)
@dataclass(frozen=True, kw_only=True)
class StatisticsOptions:
    """Options of how tilts are tested; resamples, seed and correction are keys of ranktilt.toml."""

    ties: Annotated[
        Literal["expected", "trec_eval"] | None,
        Parameter(
            help="Ties: expected value over all orders (default), or trec_eval's order by id."
        ),
    ] = None
    primary: Annotated[
        str | None,
        Parameter(
            help="The question that verdicts answer (default: the deepest nDCG, or else the first "
            "-m; without judgments HeadToHead of twins, or Share@10).",
            metavar="MEASURE",
            group=SELDOM,
        ),
    ] = None
    margin: Annotated[
        str | None,
        Parameter(
            help="Tilts within this margin count as level: points, or '0.5 ranks' (default: 5).",
            metavar="X",
        ),
    ] = None

    def keywords(self, preset: str | None = None) -> dict[str, Any]:
        """Return the keywords of an audit.

        Options win over ``--set``, a preset and the file, in this order.
        """
        from ranktilt.presets import preset as preset_named

        usual = settings().configuration.statistics.of_audits
        assigned = settings().assigned_statistics
        keywords = {**sampling_of_tests(), **usual}
        if preset is not None:
            keywords |= preset_named(preset).statistics
        keywords |= {name: value for name, value in usual.items() if name in assigned}
        if self.ties is not None:
            keywords["ties"] = self.ties
        return {**keywords, "primary": self.primary, "margin": self._margin()}

    def of_mitigation(self) -> dict[str, Any]:
        """Return the keywords that `keywords` has and a mitigation takes; its seed is an option."""
        of_audits = {"missing", "rounding"}
        for name in sorted(of_audits & settings().assigned_statistics):
            raise UserError(f"--set statistics.{name}: ranktilt mitigate does not read it")
        return {
            name: value
            for name, value in self.keywords().items()
            if name not in {*of_audits, "seed"}
        }

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
        """Return the keywords that differ from the preset's, such as ``ties = expected``."""
        from ranktilt.presets import preset as preset_named

        keywords = self.keywords(preset)
        usual = preset_named(preset).statistics
        return [
            f"{name} = {keywords[name]}" for name, value in usual.items() if keywords[name] != value
        ]


def sampling_of_tests() -> dict[str, Any]:
    """Return resamples, seed and correction, as ranktilt.toml or ``--set`` has them."""
    statistics = settings().configuration.statistics
    return {
        "resamples": statistics.resamples,
        "seed": statistics.seed,
        "correction": statistics.correction,
    }


def resampling() -> dict[str, Any]:
    """Return resamples and seed, for what has no p values to correct."""
    statistics = settings().configuration.statistics
    return {"resamples": statistics.resamples, "seed": statistics.seed}


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
