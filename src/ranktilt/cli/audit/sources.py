"""Options of the sources that ``ranktilt audit`` ranks: which ones, and whether together.

A *source* is who wrote a document, such as human. The *reference* is the source that the others
are compared with, usually ``human``. More than two sources are taken *apart*: each is ranked with
the reference alone, so that they do not compete with each other.
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


# The name ``*`` makes each field an option of the verb: ``--source``, not ``--sources.source``.
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
        # `SELDOM` is the group of options that ``--help`` leaves out and ``--help-all`` shows.
        bool,
        Parameter(help="Rank all sources together, as one collection.", group=SELDOM),
    ] = False

    def check(self, inputs: InputOptions) -> None:
        """Refuse a choice of sources where nothing is ranked."""
        if inputs.folder is None and self.source:
            raise UserError("--source chooses what to rank: name a collection DIR and rankers (-r)")

    def apart(
        self, inputs: InputOptions, collection: Collection, rankers: Sequence[Ranker]
    ) -> SourcesApart | None:
        """Return a collection for each source with the reference; None to rank all together.

        All are ranked together if there are at most two sources, or if the user asks for that
        (``--mixed``) or for certain pairs (``--pair``). Documents that are grouped by another
        column than ``source`` stay together too. So do those of saved runs and live engines, whose
        lists hold all sources already and cannot be made again without some of them.
        """
        from ranktilt.auditing.sources_apart import take_apart
        from ranktilt.rankers.base import stages_of
        from ranktilt.rankers.engines.base import LiveEngine
        from ranktilt.rankers.replay import Replay

        # Without rankers there are only saved runs. In a pipeline the first stage retrieves the
        # documents, and the others re-rank them.
        first_stages = [stages_of(ranker)[0] for ranker in rankers]
        was_ranked_before = not first_stages or any(
            isinstance(stage, LiveEngine | Replay) for stage in first_stages
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
            # Groups of another column are compared, so the reference source has no part in it.
            return collection.only_sources(self.source or collection.sources)
        sources = self._selected(inputs, collection)
        # This refuses unknown names first, so that no partner is suggested for a misspelt source.
        collection_of_sources = collection.only_sources(sources)
        if self.source and len(sources) < 2:
            others = [name for name in collection.sources if name not in sources]
            suggested = "human" if "human" in others else next(iter(others), "")
            hint = f": name another one to compare with, such as {suggested!r}" if suggested else ""
            raise UserError(f"only source {sources[0]!r}{hint}")
        return collection_of_sources
