"""What ``ranktilt audit`` asks: of which sources, of every run, and of a live engine.

A *source* is who wrote a document, such as human. The *reference* is the source that the others are
compared with, usually ``human``. More than two sources are taken *apart*: each is ranked with the
reference alone, so that they do not compete with each other. *Twins* are two versions of one text,
such as an original and its rewrite.

A *live engine* is a search engine that is asked query by query. A *sequential* audit asks it until
its tilt, how far it leans to one side, is decided: shown to be larger than a limit, or ruled out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, QUESTION, SELDOM, points
from ranktilt.cli.audit.inputs import InputOptions
from ranktilt.cli.check import CheckSection
from ranktilt.cli.rankers import read_rankers, require_answers, require_reader_of_text
from ranktilt.cli.settings import settings
from ranktilt.cli.statistics_options import StatisticsOptions, refuse_assigned_statistics
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.sequential import SequentialAudit
    from ranktilt.auditing.sources.sources_apart import SourcesApart
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.measures.base import Estimand
    from ranktilt.rankers.base import Ranker


# ---- sources ------------------------------------------------------------------------------------


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
        bool,
        Parameter(help="Rank all sources together, as one collection.", group=SELDOM),
    ] = False

    def check(self, inputs: InputOptions) -> None:
        """Refuse a choice of sources where nothing is ranked."""
        if inputs.folder is None and self.source:
            raise UserError("--source chooses what to rank: name a collection DIR and rankers (-r)")
        if inputs.folder is None and self.mixed:
            raise UserError("--mixed ranks all sources: name a collection DIR and rankers (-r)")

    def apart(
        self, inputs: InputOptions, collection: Collection, rankers: Sequence[Ranker]
    ) -> SourcesApart | None:
        """Return a collection for each source with the reference; None to rank all together.

        All are ranked together if there are at most two sources, or if the user asks for that
        (``--mixed``) or for certain pairs (``--pair``). Documents that are grouped by another
        column than ``source`` stay together too. So do those of saved runs and live engines, whose
        lists hold all sources already and cannot be made again without some of them.
        """
        from ranktilt.auditing.sources.sources_apart import take_apart
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


# ---- every run ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class AuditQuestion:
    """What is asked of every run: measures, statistics, and further questions."""

    measure: Sequence[str] | None
    """Names of measures; None for the default measures."""
    preset: str | None
    """Name of a paper's settings."""
    card: bool
    """Whether the question card, a table of five questions, is added."""
    controls: bool
    """Whether controls, which rank changed texts, are added."""
    text: str | None
    """Part of a document that rankers read."""
    max_failures: float | None
    """Percentage of queries or of a language model's answers that may fail."""
    statistics: StatisticsOptions
    """How tilts are tested."""
    label_errors: str | None = None
    """Error rates of labels, or a file of them, as typed."""
    by_query: str | None = None
    """Column or file of groups of queries, as typed."""

    def check(self) -> None:
        """Refuse unknown measures, margins and error rates, before anything is read."""
        self.statistics.in_force(self.preset)
        self._measures()
        self._check_label_errors()

    def _check_label_errors(self) -> None:
        """Refuse bad error rates, and measures that cannot be corrected for them."""
        if self.label_errors is None:
            return
        from ranktilt.auditing.label_errors.checks import refuse_uncorrectable
        from ranktilt.data.labels.label_errors import LabelErrors

        if self.controls:
            raise UserError(
                "--controls change the texts of twins, whose labels cannot err; omit "
                "--label-errors or --controls"
            )
        LabelErrors.from_text(self.label_errors)
        refuse_uncorrectable(self._measures() or ())

    def check_query_groups(self, collection: Collection) -> None:
        """Refuse a column or file that gives no groups of queries, before anything is ranked."""
        if self.by_query is not None:
            from ranktilt.auditing.query_groups.grouping import collection_query_groups

            collection_query_groups(self.by_query, collection)

    def rankers(self, inputs: InputOptions) -> list[Ranker]:
        """Return the rankers of the inputs, with the options of the command line."""
        require_reader_of_text(self.text, inputs.specs)
        return read_rankers(
            inputs.specs,
            self.preset,
            text=self.text,
            max_failures=self.max_failures,
            score_order=inputs.score_order,
            queries=inputs.queries,
        )

    def audit(
        self,
        collection: Collection,
        runs: Sequence[Run],
        rankers: Sequence[Ranker],
        *,
        by: str | None,
        pairs: list[tuple[str, str]] | None,
    ) -> Audit:
        """Audit the runs of a collection.

        Parameters
        ----------
        collection : Collection
            Queries, documents, groups and judgments.
        runs : sequence of Run
            The runs.
        rankers : sequence of Ranker
            The rankers of the runs, for the controls, which rank changed texts.
        by : str or None
            The column of the groups; None for no groups.
        pairs : list of (str, str) or None
            Pairs of groups to compare; None for all.

        Returns
        -------
        Audit
            The result, with a note if the collection fails a check of its texts.
        """
        from ranktilt.auditing.audit import audit as run_audit
        from ranktilt.auditing.checks.failed_check import with_failed_check
        from ranktilt.auditing.controls.controls import controls

        rankings = chain.from_iterable((run, *run.repeats) for run in runs)
        require_answers((ranking.spec for ranking in rankings), self.max_failures)
        statistics = self.statistics.in_force(self.preset)
        result = run_audit(
            collection,
            runs,
            self._measures(),
            # Without judgments only the card's questions can be answered.
            card=self.card or not collection.qrels.height,
            by=by,
            pairs=pairs,
            primary=statistics.primary,
            missing=statistics.missing,
            ties=statistics.ties,
            rounding=statistics.rounding,
            test=statistics.test,
            correction=statistics.correction,
            margin=statistics.margin,
            resamples=statistics.resamples,
            seed=statistics.seed,
            label_errors=self.label_errors,
            by_query=self.by_query,
        )
        result = with_failed_check(collection, result, CheckSection.in_force().limits)
        if self.preset is not None:
            preset = {"preset": self.preset, "preset_changes": self._preset_changes(self.preset)}
            result = replace(result, spec={**result.spec, **preset})
        if self.controls:
            # From this similarity of their terms, twins count as near-identical.
            near = CheckSection.in_force().near_identical
            result = controls(collection, rankers, runs, result, near=near)
        return result

    def _measures(self) -> list[Estimand] | None:
        """Return the measures of ``-m``, or those of the preset; None for the default measures."""
        from ranktilt.measures.base import estimand
        from ranktilt.presets import preset

        names = self.measure or (preset(self.preset).measures if self.preset else ())
        return [estimand(name) for name in names] or None

    def _preset_changes(self, preset: str) -> list[str]:
        """Return the settings that were typed differently from the preset's."""
        changes = self.statistics.preset_changes(preset)
        if self.measure:
            changes.append("measures")
        if self.text:
            changes.append(f"text = {self.text}")
        return changes


# ---- a live engine ------------------------------------------------------------------------------


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
        refuse_assigned_statistics("a sequential audit reads only statistics.seed", but="seed")

    def audit(
        self, inputs: InputOptions, sources: Sequence[str] | None, question: AuditQuestion
    ) -> SequentialAudit:
        """Ask the engine until its tilt is decided.

        Parameters
        ----------
        inputs : InputOptions
            The collection or labels, and the engine.
        sources : sequence of str or None
            Sources to audit; None for all.
        question : AuditQuestion
            The measure, and what the ranker reads and how often it may fail.
        """
        from ranktilt.auditing.sequential import USUAL, sequential_audit

        if inputs.run or len(inputs.specs) != 1:
            raise UserError(
                "a sequential audit takes one ranker or live engine: -r engine:MODULE:FUNCTION"
            )
        measures = question.measure or (USUAL,)
        if len(measures) > 1 or len(inputs.pairs or ()) > 1:
            raise UserError("a sequential audit takes one measure and one pair of groups")
        collection = self._collection(inputs, sources)
        pairs = inputs.pairs
        if inputs.reference:
            pairs = inputs.reference_first(collection, inputs.column, pairs)
        (ranker,) = question.rankers(inputs)
        return sequential_audit(
            collection,
            ranker,
            self.stop_at_tilt or 0.0,
            measures[0],
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
            options.refuse_unread({"--source": sources}, "name a collection DIR, or omit it")
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
    inputs.refuse_options_of_collections()
    by, labels = inputs.column or "source", inputs.labels or ""
    return from_labels(read_labels(labels, by=by), queries=(), by=by, labels_file=labels)
