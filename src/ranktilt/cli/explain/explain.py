"""``ranktilt explain``: how the texts of both sides differ, and what goes with a ranker's gap."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import completion, options
from ranktilt.cli.app import MODEL, QUESTION, UNDERSTAND, verb
from ranktilt.cli.audit.from_audit import is_citation_audit
from ranktilt.cli.explain.citations import explain_audit_of_citations
from ranktilt.cli.explain.inputs import (
    check_by_factor,
    check_gaps,
    input_files,
    read_documents,
    read_percentages,
    require_folder,
    words_with_texts,
)
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.rankers import rank_with, read_rankers
from ranktilt.cli.saved_runs import SavedRunOptions
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.explaining.factors.result import FactorEffects
    from ranktilt.explaining.properties.result import ExplainedGaps


@verb(
    "explain",
    "explain DIR -o texts.html",
    "explain DIR --attribution -r bm25 -r dense:minilm",
    "explain --groups labels.csv --run run.trec",
    arguments="[DIR]",
    panel=UNDERSTAND,
)
def explain(
    folder: Annotated[
        Path | None,
        Parameter(
            name="DIR",
            help="A collection in the layout of BEIR, Cocktail or the papers, or an audit to "
            "explain (FILE.json). Not needed with --run and --groups.",
        ),
    ] = None,
    /,
    *,
    saved_runs: SavedRunOptions = SavedRunOptions(),
    labels: LabelOptions = LabelOptions(),
    probe: Annotated[
        list[str] | None,
        Parameter(
            help='A probe, such as overlap, perplexity:MODEL or "perplexity:MODEL(every=0)", or '
            "a column of numbers (default: all that can run).",
            metavar="NAME",
            group=QUESTION,
            completer=completion.probes,
        ),
    ] = None,
    attribution: Annotated[
        bool,
        Parameter(
            help="Show which properties of the texts go with the gap of each ranker or run.",
            group=QUESTION,
        ),
    ] = False,
    by_factor: Annotated[
        bool,
        Parameter(
            help="Show how each factor of a designed collection (generate versions) changes "
            "ranks, for each -r.",
            group=QUESTION,
        ),
    ] = False,
    adopters: Annotated[
        str | None,
        Parameter(
            help="With --by-factor: percentages of other documents that make an edit too, such as "
            "0,10,50,100.",
            metavar="X,Y",
            group=QUESTION,
        ),
    ] = None,
    by: Annotated[
        str,
        Parameter(
            help="Column whose groups to compare (default: source).",
            metavar="COLUMN",
            group=QUESTION,
        ),
    ] = "source",
    ranker: options.Rankers = None,
    split: options.Split = None,
    encoder: Annotated[
        str | None,
        Parameter(
            help="Encoder whose vectors to examine, such as dense:minilm.",
            metavar="SPEC",
            group=MODEL,
        ),
    ] = None,
    text: options.Text = None,
    output: PageOutput = PageOutput(),
) -> None:
    """Show how the two sides' texts differ, and what goes with the gap.

    Probes examine the texts. --attribution shows which of their properties go with the gap of a
    ranker (-r) or a run (--run), within the lists: between twins, or between groups if there are
    none.

    For a collection of designed versions, --by-factor shows what each factor causes.

    For an audit of citations (ranktilt cite --json), it shows which properties of pages go with
    the gap between their citation rates: columns of numbers, the search rank, and texts (a column
    text) of the label file.
    """
    if folder is not None and folder.is_file() and is_citation_audit(folder):
        unread = {
            "--attribution": attribution,
            "--by-factor": by_factor,
            "--adopters": adopters,
            "--by": by != "source",
            "-r": ranker,
            "--run": saved_runs.run,
            "--split": split,
            "--encoder": encoder,
        }
        explain_audit_of_citations(folder, probe, labels, output, unread=unread)
        return
    output.check(*collection_files(folder), *input_files(saved_runs, labels))
    if by_factor or adopters is not None:
        examines_texts = bool(probe or encoder or attribution or saved_runs.run or labels.groups)
        check_by_factor(by_factor, ranker, beside=examines_texts)
        output.deliver(_explain_factors(folder, split, ranker, text=text, adopters=adopters))
        return
    check_gaps(attribution, ranker, saved_runs, folder=folder, labels=labels)
    runs = saved_runs.load_runs()
    rankers = read_rankers(ranker or (), text=text)
    encoder_to_examine = read_rankers([encoder], text=text)[0] if encoder else None
    collection = read_documents(folder, split, labels, by=by, runs=runs)
    from ranktilt.explaining.explain import explain as run_probes
    from ranktilt.explaining.properties.gaps import are_mostly_twins
    from ranktilt.explaining.properties.values import NoPropertiesError

    if not (rankers or runs) or are_mostly_twins(collection, by):
        output.deliver(
            run_probes(
                collection,
                probe,
                encoder_to_examine,
                reference=labels.reference,
                by=by,
                attribute=[*rankers, *runs],
            )
        )
        return
    if encoder:
        raise UserError("--encoder compares the vectors of twins, but these groups have no twins")
    all_runs = [*rank_with(rankers, collection), *runs]
    try:
        output.deliver(_explain_gaps(collection, all_runs, probe, labels=labels, by=by))
    except NoPropertiesError as error:
        if folder is not None:
            raise
        command = shlex.join(words_with_texts(saved_runs, labels, by))
        raise UserError(f"{error}; or name a folder DIR with the texts: {command}") from error


def _explain_factors(
    folder: Path | None,
    split: str | None,
    specs: list[str] | None,
    *,
    text: options.Fields | None,
    adopters: str | None,
) -> FactorEffects:
    """Show what each factor of a designed collection causes, for each ranker."""
    from ranktilt.explaining.factors.effects import factor_effects

    percentages = read_percentages(adopters)
    designed = options.load_texts(require_folder(folder), split)
    rankers = read_rankers(specs or (), text=text)
    return factor_effects(designed, rankers, adopters=percentages)


def _explain_gaps(
    collection: Collection,
    runs: list[Run],
    probes: list[str] | None,
    *,
    labels: LabelOptions,
    by: str,
) -> ExplainedGaps:
    """Show which properties of the texts go with the gap of each run between groups."""
    from ranktilt.explaining.properties.gaps import explain_gaps

    statistics = statistics_settings()
    return explain_gaps(
        collection,
        runs,
        probes,
        by=by,
        pairs=labels.reference_first(collection, by, None),
        seed=statistics.seed,
        correction=statistics.correction,
    )
