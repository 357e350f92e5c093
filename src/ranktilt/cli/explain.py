"""``ranktilt explain``: how the texts of both sides differ, and what goes with a ranker's gap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import completion, options
from ranktilt.cli.app import INPUT, MODEL, QUESTION, UNDERSTAND, verb
from ranktilt.cli.output import PageOutput, collection_files
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
    run: Annotated[
        list[Path] | None,
        Parameter(
            help="A run whose gaps are explained: TREC, JSON or CSV, plain or .gz.",
            metavar="FILE",
            group=INPUT,
        ),
    ] = None,
    groups: Annotated[
        str | None,
        Parameter(
            help="Labels of documents, and columns of numbers to explain gaps by, such as words "
            "or price.",
            metavar="FILE",
            group=INPUT,
        ),
    ] = None,
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
    reference: options.Reference = None,
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
    files = [*(run or ()), *([Path(groups)] if groups is not None else [])]
    output.check(*collection_files(folder), *files)
    labels = options.LabelOptions(groups=groups, reference=reference)
    if by_factor or adopters is not None:
        beside = bool(probe or encoder or attribution or run or groups)
        _check_by_factor(by_factor, ranker, beside=beside)
        from ranktilt.explaining.factors.effects import factor_effects

        shares = _shares(adopters)
        designed = options.load_texts(_require_folder(folder), split)
        rankers = options.read_rankers(ranker or (), text=text)
        output.deliver(factor_effects(designed, rankers, adopters=shares))
        return
    _check_gaps(attribution, ranker, run, folder=folder, groups=groups)
    from ranktilt.explaining.explain import explain as run_probes
    from ranktilt.explaining.properties.gaps import are_mostly_twins, explain_gaps

    runs = _read_runs(run or ())
    rankers = options.read_rankers(ranker or (), text=text)
    examined = options.read_rankers([encoder], text=text)[0] if encoder else None
    collection = _read_documents(folder, split, labels, by=by, runs=runs)
    if not (rankers or runs) or are_mostly_twins(collection, by):
        output.deliver(
            run_probes(
                collection,
                probe,
                examined,
                reference=reference,
                by=by,
                attribute=[*rankers, *runs],
            )
        )
        return
    if encoder:
        raise UserError("--encoder examines the vectors of twins, and these groups are none")
    sampling = options.sampling_of_tests()
    output.deliver(
        explain_gaps(
            collection,
            [*options.rank_with(rankers, collection), *runs],
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
    run: list[Path] | None,
    *,
    folder: Path | None,
    groups: str | None,
) -> None:
    """Refuse a question about a gap without anything that makes one, and the reverse."""
    if folder is None and ranker:
        raise UserError(f"ranker {ranker[0]!r} needs texts: name a collection DIR")
    if folder is None and not (groups and run):
        _require_folder(folder)
    if attribution and not (ranker or run):
        raise UserError("--attribution needs rankers or runs: name one or more with -r or --run")
    if ranker and not attribution and not run:
        raise UserError(
            "-r needs a question: --attribution (which properties of the texts go with the "
            "ranker's gap) or --by-factor; to examine an encoder's vectors: --encoder SPEC"
        )


def _read_runs(paths: list[Path] | tuple[Path, ...]) -> list[Run]:
    """Read runs, each called by what it calls itself."""
    from ranktilt.data.run import Run, named_apart, replayed_name

    runs = []
    for path in paths:
        loaded = Run.load(path)
        runs.append(replace(loaded, spec={**loaded.spec, "name": replayed_name(loaded)}))
    return named_apart(runs)


def _read_documents(
    folder: Path | None,
    split: str | None,
    labels: options.LabelOptions,
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
        return collection
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
