"""Options of the sources that ``ranktilt audit`` ranks: which, and together or apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli.app import INPUT, SELDOM
from ranktilt.cli.audit.inputs import InputOptions
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.auditing.sources_apart import SourcesApart
    from ranktilt.data.collection import Collection
    from ranktilt.rankers.base import Ranker


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Which sources are ranked, and whether together."""

    source: Annotated[
        list[str] | None,
        Parameter(
            help="Source to audit; several may be given (default: all). With more than two, each "
            "is ranked together with the reference alone.",
            metavar="SOURCE",
        ),
    ] = None
    mixed: Annotated[
        bool, Parameter(help="Rank all sources together, as one collection.", group=SELDOM)
    ] = False

    def check(self, inputs: InputOptions) -> None:
        """Refuse a choice of sources where nothing is ranked."""
        if inputs.folder is None and self.source:
            raise UserError(
                "--source chooses what is ranked: name a collection DIR and rankers (-r)"
            )

    def apart(
        self, inputs: InputOptions, collection: Collection, rankers: Sequence[Ranker]
    ) -> SourcesApart | None:
        """Take several sources apart, each with the reference; None where all are ranked together.

        Saved runs and live engines have ranked all sources already, and groups of another column
        are no sources: these stay together.
        """
        from ranktilt.auditing.sources_apart import take_apart
        from ranktilt.rankers.base import stages_of
        from ranktilt.rankers.engines.base import LiveEngine
        from ranktilt.rankers.replay import Replay

        was_ranked_before = not rankers or any(
            isinstance(stages_of(ranker)[0], LiveEngine | Replay) for ranker in rankers
        )
        if inputs.column != "source" or was_ranked_before or self.mixed or inputs.pairs is not None:
            return None
        chosen = self._chosen(inputs, collection)
        if len(chosen) <= 2:
            return None
        return take_apart(collection, chosen, reference=inputs.reference)

    def _chosen(self, inputs: InputOptions, collection: Collection) -> list[str]:
        """Return the sources of ``--source``, with the reference; all where none is named."""
        if not self.source:
            return list(collection.sources)
        chosen = [*self.source, *([inputs.reference] if inputs.reference else [])]
        return list(dict.fromkeys(chosen))

    def together(self, inputs: InputOptions, collection: Collection) -> Collection:
        """Return the collection of the chosen sources alone."""
        if inputs.column != "source":
            return collection.only_sources(self.source or collection.sources)
        chosen = self._chosen(inputs, collection)
        alone = collection.only_sources(chosen)
        if self.source and len(chosen) < 2:
            others = [name for name in collection.sources if name not in chosen]
            suggested = "human" if "human" in others else next(iter(others), "")
            hint = f": name another one to compare with, such as {suggested!r}" if suggested else ""
            raise UserError(f"only source {chosen[0]!r}{hint}")
        return alone
