"""Options of a sequential audit, which asks a live engine until its tilt is decided.

A *live engine* is a search engine that is asked query by query; a tilt is decided once it is shown
to be larger than a limit, or ruled out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import QUESTION, SELDOM, points
from ranktilt.cli.rankers import read_rankers
from ranktilt.cli.settings import settings
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.auditing.sequential import SequentialAudit
    from ranktilt.cli.audit.inputs import InputOptions
    from ranktilt.data.collection import Collection


@Parameter(name="*", group=QUESTION)
@dataclass(frozen=True, kw_only=True)
class SequentialOptions:
    """When to stop asking a live engine."""

    stop_at_tilt: Annotated[
        float | None,
        Parameter(
            help="Query a live engine (-r engine:MODULE:FUNCTION) until a tilt of X points is "
            "shown or ruled out.",
            metavar="X",
            converter=points,
            group=SELDOM,
        ),
    ] = None
    max_queries: Annotated[
        int | None,
        Parameter(
            help="Maximum number of queries with --stop-at-tilt.",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
            group=SELDOM,
        ),
    ] = None

    def check(self, **unread: Any) -> None:
        """Refuse options that nothing would read.

        `unread` are the options of other audits, by the names of their parameters.
        """
        if self.stop_at_tilt is None:
            if self.max_queries:
                raise UserError("--max-queries needs a sequential audit: --stop-at-tilt 10")
            return
        flag = options.first_typed(**unread)
        if flag is not None:
            raise UserError(
                f"{flag} does not apply to a sequential audit; omit it or --stop-at-tilt"
            )

    def audit(
        self,
        inputs: InputOptions,
        sources: Sequence[str] | None,
        measure: Sequence[str] | None,
        text: str | None,
    ) -> SequentialAudit:
        """Ask the engine until its tilt is decided.

        Parameters
        ----------
        inputs : InputOptions
            The collection or labels, and the engine.
        sources : sequence of str or None
            Sources to audit; None for all.
        measure : sequence of str or None
            The measure, alone in a sequence; None for the default.
        text : str or None
            The part of a document that a ranker reads.
        """
        from ranktilt.auditing.sequential import USUAL, sequential_audit

        specs = inputs.specs
        if inputs.run or len(specs) != 1:
            raise UserError(
                "a sequential audit takes one ranker or live engine: -r engine:MODULE:FUNCTION"
            )
        if len(measure or ()) > 1 or len(inputs.pairs or ()) > 1:
            raise UserError("a sequential audit takes one measure and one pair of groups")
        collection = self._collection(inputs, sources)
        pairs = inputs.pairs
        if inputs.reference:
            pairs = inputs.reference_first(collection, inputs.column, pairs)
        (ranker,) = read_rankers(specs, text=text, score_order=inputs.score_order)
        return sequential_audit(
            collection,
            ranker,
            self.stop_at_tilt or 0.0,
            measure[0] if measure else USUAL,
            by=inputs.column or "",
            pair=pairs[0] if pairs and len(pairs) == 1 else None,
            max_queries=self.max_queries,
            seed=settings().configuration.statistics.seed,
        )

    def _collection(self, inputs: InputOptions, sources: Sequence[str] | None) -> Collection:
        """Return the documents, of the collection or of the labels, with the queries to ask."""
        from ranktilt.data.collection import Collection
        from ranktilt.data.queries import read_queries

        if inputs.folder is not None:
            collection, _saved_runs = inputs.load()
            collection = collection.only_sources(sources or collection.sources)
        else:
            collection = _labelled_documents(inputs)
        if inputs.queries is None:
            return collection
        query_file = read_queries(inputs.queries)
        files = [*collection.spec.get("files", ()), *query_file.spec["files"]]
        spec = {**collection.spec, "queries": str(inputs.queries), "files": files}
        return Collection(collection.docs, query_file.queries, collection.qrels.clear(), spec)


def _labelled_documents(inputs: InputOptions) -> Collection:
    """Return the documents of a label file; the engine's queries come from a file."""
    from ranktilt.data.labels.label_table import read_labels
    from ranktilt.data.labels.labels import from_labels

    if inputs.groups is None or inputs.queries is None:
        raise UserError(
            "queries and groups are unknown: name --queries FILE and --groups FILE, or a "
            "collection DIR"
        )
    if inputs.rest is not None:
        raise UserError(
            "--rest needs a list of all documents, which an engine does not give; name a "
            "collection DIR"
        )
    by, labels = inputs.column or "source", inputs.labels or ""
    return from_labels(read_labels(labels, by=by), queries=(), by=by, labels_file=labels)
