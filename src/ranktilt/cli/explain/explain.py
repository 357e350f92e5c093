"""``ranktilt explain``: how the texts of both sides differ, and what goes with a ranker's gap."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import completion, options
from ranktilt.cli.app import MODEL, QUESTION, UNDERSTAND, verb
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.rankers import rank_with, read_rankers
from ranktilt.cli.saved_runs import SavedRunOptions
from ranktilt.cli.statistics_options import sampling_of_tests
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.run import Run


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
            help="A collection: BEIR, Cocktail or the papers' layout. Not needed with --run and "
            "--groups. Or an audit (FILE.json), whose gaps are explained.",
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
            help="Show which properties go with the gap that each -r makes.",
            group=QUESTION,
        ),
    ] = False,
    by_factor: Annotated[
        bool,
        Parameter(
            help="Show what each factor of a designed collection (generate versions) does to "
            "ranks, for each -r.",
            group=QUESTION,
        ),
    ] = False,
    adopters: Annotated[
        str | None,
        Parameter(
            help="Shares of other documents that make an edit too, for --by-factor, such as "
            "0,0.1,0.5,1.",
            metavar="X,Y",
            group=QUESTION,
        ),
    ] = None,
    by: Annotated[
        str,
        Parameter(
            help="Column whose groups are compared (default: source).",
            metavar="COLUMN",
            group=QUESTION,
        ),
    ] = "source",
    ranker: options.Rankers = None,
    split: options.Split = None,
    encoder: Annotated[
        str | None,
        Parameter(
            help="Encoder whose vectors are examined, such as dense:minilm.",
            metavar="SPEC",
            group=MODEL,
        ),
    ] = None,
    text: options.Text = None,
    output: PageOutput = PageOutput(),
) -> None:
    """Show how the two sides' texts differ, and what ranks follow.

    Probes examine the texts; --attribution shows which of their properties go with the gap that a
    ranker (-r) or a run (--run) makes: between twins, or else between groups, within the lists.

    Of a collection of versions by a design, --by-factor tells what each factor causes.
    """
    output.check(*collection_files(folder), *_files(saved_runs, labels))
    if by_factor or adopters is not None:
        beside = bool(probe or encoder or attribution or saved_runs.run or labels.groups)
        _check_by_factor(by_factor, ranker, beside=beside)
        from ranktilt.explaining.factors.effects import factor_effects

        shares = _shares(adopters)
        designed = options.load_texts(_require_folder(folder), split)
        rankers = read_rankers(ranker or (), text=text)
        output.deliver(factor_effects(designed, rankers, adopters=shares))
        return
    _check_gaps(attribution, ranker, saved_runs, folder=folder, labels=labels)
    from ranktilt.explaining.explain import explain as run_probes
    from ranktilt.explaining.properties.gaps import are_mostly_twins, explain_gaps

    runs = saved_runs.load_runs()
    rankers = read_rankers(ranker or (), text=text)
    examined = read_rankers([encoder], text=text)[0] if encoder else None
    collection = _read_documents(folder, split, labels, by=by, runs=runs)
    if not (rankers or runs) or are_mostly_twins(collection, by):
        output.deliver(
            run_probes(
                collection,
                probe,
                examined,
                reference=labels.reference,
                by=by,
                attribute=[*rankers, *runs],
            )
        )
        return
    if encoder:
        raise UserError("--encoder examines the vectors of twins, and these groups are none")
    sampling = sampling_of_tests()
    output.deliver(
        explain_gaps(
            collection,
            [*rank_with(rankers, collection), *runs],
            probe,
            by=by,
            pairs=labels.reference_first(collection, by, None),
            seed=sampling["seed"],
            correction=sampling["correction"],
        )
    )


def _require_folder(folder: Path | None) -> Path:
    if folder is None:
        raise UserError("name a collection DIR; without one: --groups FILE and --run FILE")
    return folder


def _check_gaps(
    attribution: bool,
    ranker: list[str] | None,
    saved_runs: SavedRunOptions,
    *,
    folder: Path | None,
    labels: LabelOptions,
) -> None:
    """Refuse a question about a gap without anything that makes one, and the reverse."""
    if folder is None and ranker:
        raise UserError(f"ranker {ranker[0]!r} needs texts: name a collection DIR")
    if folder is None and not (labels.groups and saved_runs.run):
        _require_folder(folder)
    if attribution and not (ranker or saved_runs.run):
        raise UserError("--attribution needs rankers or runs: name one or more with -r or --run")
    if ranker and not attribution and not saved_runs.run:
        raise UserError(
            "-r needs a question: --attribution (which properties of the texts go with the "
            "ranker's gap) or --by-factor; to examine an encoder's vectors: --encoder SPEC"
        )
    if not saved_runs.run and (saved_runs.score_order or saved_runs.queries):
        option = "--score-order" if saved_runs.score_order else "--queries"
        raise UserError(f"{option} needs a run: --run FILE")


def _files(saved_runs: SavedRunOptions, labels: LabelOptions) -> list[Path]:
    """Return the files that are read, besides the collection's."""
    label_file = labels.labels.path if labels.labels else None
    files = [run_file.text for run_file in saved_runs.run_files]
    files += [str(file) for file in (label_file, saved_runs.queries) if file is not None]
    return [file_of(file) for file in files]


def _read_documents(
    folder: Path | None,
    split: str | None,
    labels: LabelOptions,
    *,
    by: str,
    runs: list[Run],
) -> Collection:
    """Read the collection with the columns of the label file, or make one of these alone."""
    from ranktilt.data.labels import labelled, with_labels

    if folder is None:
        return labelled(labels.labels or "", runs, by=by)
    collection = options.load_texts(folder, split)
    if labels.labels is None:
        return labels.labelled(collection, by)
    return with_labels(collection, labels.labels, by=by, other_columns=True)


def _check_by_factor(by_factor: bool, ranker: list[str] | None, *, beside: bool) -> None:
    """Refuse what --by-factor needs and lacks, and options that it would not read."""
    if not by_factor:
        raise UserError("--adopters needs --by-factor")
    if not ranker:
        raise UserError("--by-factor needs rankers: name one or more with -r")
    if beside:
        raise UserError(
            "--by-factor examines no texts: omit --probe, --encoder, --attribution, --run and "
            "--groups"
        )


def _shares(text: str | None) -> list[float]:
    """Read ``0,0.1,0.5,1``; none where nothing is named."""
    try:
        return [float(part) for part in text.split(",")] if text is not None else []
    except ValueError as error:
        raise UserError(
            f"--adopters expects shares from 0 to 1, such as 0,0.1,0.5,1; got {text!r}"
        ) from error
