"""``ranktilt explain``: what differs between the texts of a collection's sources."""

from __future__ import annotations

from typing import Annotated

from ranktilt.cli import completion, options
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.errors import UserError
from ranktilt.option import Option


@options.verb("explain DIR -o texts.html", "explain DIR --attribution -r bm25 -r dense:minilm")
def explain(
    folder: options.Folder,
    *,
    probe: Annotated[
        list[str] | None,
        Option(
            'A probe, such as overlap or "perplexity:FOLDER(every=0)" (default: all that can run).',
            "NAME",
            complete=completion.probes,
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        Option("Encoder whose vectors are examined, such as dense:minilm.", "SPEC", panel="Model"),
    ] = None,
    lm: Annotated[
        list[str] | None,
        Option(
            "Language model for --probe perplexity.",
            "MODEL",
            panel="Model",
        ),
    ] = None,
    attribution: Annotated[
        bool, Option("Show which properties go with the gap between twins, for each -r.")
    ] = False,
    by_factor: Annotated[
        bool,
        Option(
            "Show what each factor of a designed collection (generate versions) does to ranks, for each -r."
        ),
    ] = False,
    adopters: Annotated[
        str | None,
        Option(
            "Shares of other documents that make an edit too, for --by-factor, such as 0,0.1,0.5,1.",
            "X,Y",
        ),
    ] = None,
    failed_too: Annotated[
        bool, Option("With --by-factor, analyse factors that failed their checks too.")
    ] = False,
    ranker: options.Rankers = None,
    by: Annotated[str, Option("Column whose groups are compared.", "COLUMN")] = "source",
    reference: options.Reference = None,
    split: options.Split = None,
    neural: options.RankerOptions,
    output: PageOutput,
) -> None:
    """Look at the texts of a collection with probes: what differs between twins, and what goes with a ranker's gap.

    Of a collection of versions by a design, --by-factor tells what each factor causes.
    """
    from ranktilt.probes.explain import explain as run_probes

    output.check(*collection_files(folder))
    if by_factor or adopters is not None or failed_too:
        _check_by_factor(by_factor, ranker, beside=bool(probe or encoder or lm or attribution))
        from ranktilt.probes.factors.effects import factor_effects

        shares = _shares(adopters)
        designed = options.load_texts(folder, split)
        output.deliver(
            factor_effects(
                designed, neural.rankers(ranker or ()), adopters=shares, failed_too=failed_too
            )
        )
        return
    if attribution and not ranker:
        raise UserError("--attribution needs rankers: name one or more with -r")
    if lm and (probe or attribution) and "perplexity" not in (probe or ()):
        raise UserError("--lm needs --probe perplexity")
    named = encoder if encoder is not None or attribution or not ranker else ranker[0]
    read = neural.rankers([named])[0] if named else None
    collection = options.load_texts(folder, split)
    found = run_probes(
        collection,
        probe,
        read,
        reference=reference,
        by=by,
        lm=lm or (),
        attribute=neural.rankers(ranker) if attribution and ranker else (),
    )
    output.deliver(found)


def _check_by_factor(by_factor: bool, ranker: list[str] | None, *, beside: bool) -> None:
    """Refuse what --by-factor needs and lacks, and options that it would not read."""
    if not by_factor:
        raise UserError("--adopters and --failed-too need --by-factor")
    if not ranker:
        raise UserError("--by-factor needs rankers: name one or more with -r")
    if beside:
        raise UserError(
            "--by-factor examines no texts: omit --probe, --encoder, --lm and --attribution"
        )


def _shares(text: str | None) -> list[float]:
    """Read ``0,0.1,0.5,1``; none where nothing is named."""
    try:
        return [float(part) for part in text.split(",")] if text is not None else []
    except ValueError as error:
        raise UserError(
            f"--adopters expects shares from 0 to 1, such as 0,0.1,0.5,1; got {text!r}"
        ) from error
