"""Options of the sources that ``ranktilt audit`` ranks: which ones, and whether together.

A *source* says who wrote a document, such as human. Several sources are taken *apart*: each is
ranked with the reference source alone, so that they do not compete with each other.
"""

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
    """The sources to rank, and whether all are ranked together."""

    source: Annotated[
        list[str] | None,
        Parameter(
            help="Source to audit; repeat for several (default: all). With more than two, each "
            "is ranked with only the reference.",
            metavar="SOURCE",
        ),
    ] = None
    mixed: Annotated[
        bool, Parameter(help="Rank all sources together, as one collection.", group=SELDOM)
    ] = False

    def check(self, inputs: InputOptions) -> None:
        """Refuse a choice of sources where nothing is ranked."""
        if inputs.folder is None and self.source:
            raise UserError("--source chooses what to rank: name a collection DIR and rankers (-r)")

    def apart(
        self, inputs: InputOptions, collection: Collection, rankers: Sequence[Ranker]
    ) -> SourcesApart | None:
        """Return a collection for each source with the reference; None to rank all together.

        Saved runs and live engines have ranked all sources already, and groups of another column
        are no sources: both stay together.
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
        sources = self._selected(inputs, collection)
        if len(sources) <= 2:
            return None
        return take_apart(collection, sources, reference=inputs.reference)

    def _selected(self, inputs: InputOptions, collection: Collection) -> list[str]:
        """Return the sources of ``--source`` and the reference; without the option, all sources."""
        if not self.source:
            return list(collection.sources)
        sources = [*self.source, *([inputs.reference] if inputs.reference else [])]
        return list(dict.fromkeys(sources))

    def together(self, inputs: InputOptions, collection: Collection) -> Collection:
        """Return the collection with the documents of the selected sources alone.

        A single source, which leaves nothing to compare, is refused.
        """
        if inputs.column != "source":
            return collection.only_sources(self.source or collection.sources)
        sources = self._selected(inputs, collection)
        collection_of_sources = collection.only_sources(sources)
        if self.source and len(sources) < 2:
            others = [name for name in collection.sources if name not in sources]
            suggested = "human" if "human" in others else next(iter(others), "")
            hint = f": name another one to compare with, such as {suggested!r}" if suggested else ""
            raise UserError(f"only source {sources[0]!r}{hint}")
        return collection_of_sources
