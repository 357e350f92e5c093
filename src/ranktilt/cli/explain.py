"""``ranktilt explain``: what differs between the texts of a collection's sources."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ranktilt.cli import completion, options
from ranktilt.cli.app import MODEL, QUESTION, UNDERSTAND, verb
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.errors import UserError


@verb(
    "explain",
    "explain DIR -o texts.html",
    "explain DIR --attribution -r bm25 -r dense:minilm",
    arguments="DIR",
    panel=UNDERSTAND,
)
def explain(
    folder: options.Folder,
    /,
    *,
    probe: Annotated[
        list[str] | None,
        Parameter(
            help='A probe, such as overlap, perplexity:MODEL or "perplexity:MODEL(every=0)" '
            "(default: all that can run).",
            metavar="NAME",
            group=QUESTION,
            completer=completion.probes,
        ),
    ] = None,
    attribution: Annotated[
        bool,
        Parameter(
            help="Show which properties go with the gap between twins, for each -r.",
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

    Probes examine the texts; --attribution shows which of their properties go with the gap between
    twins that a ranker (-r) makes.

    Of a collection of versions by a design, --by-factor tells what each factor causes.
    """
    output.check(*collection_files(folder))
    if by_factor or adopters is not None:
        _check_by_factor(by_factor, ranker, beside=bool(probe or encoder or attribution))
        from ranktilt.explaining.factors.effects import factor_effects

        shares = _shares(adopters)
        designed = options.load_texts(folder, split)
        rankers = options.read_rankers(ranker or (), text=text)
        output.deliver(factor_effects(designed, rankers, adopters=shares))
        return
    if attribution and not ranker:
        raise UserError("--attribution needs rankers: name one or more with -r")
    from ranktilt.explaining.explain import explain as run_probes

    if ranker and not attribution:
        raise UserError(
            "-r needs a question: --attribution (which properties of the texts go with the ranker's "
            "gap) or --by-factor; to examine an encoder's vectors: --encoder SPEC"
        )
    examined = options.read_rankers([encoder], text=text)[0] if encoder else None
    collection = options.load_texts(folder, split)
    attributed = options.read_rankers(ranker, text=text) if attribution and ranker else ()
    output.deliver(
        run_probes(collection, probe, examined, reference=reference, by=by, attribute=attributed)
    )


def _check_by_factor(by_factor: bool, ranker: list[str] | None, *, beside: bool) -> None:
    """Refuse what --by-factor needs and lacks, and options that it would not read."""
    if not by_factor:
        raise UserError("--adopters needs --by-factor")
    if not ranker:
        raise UserError("--by-factor needs rankers: name one or more with -r")
    if beside:
        raise UserError("--by-factor examines no texts: omit --probe, --encoder and --attribution")


def _shares(text: str | None) -> list[float]:
    """Read ``0,0.1,0.5,1``; none where nothing is named."""
    try:
        return [float(part) for part in text.split(",")] if text is not None else []
    except ValueError as error:
        raise UserError(
            f"--adopters expects shares from 0 to 1, such as 0,0.1,0.5,1; got {text!r}"
        ) from error
