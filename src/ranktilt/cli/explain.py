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
        str | None, Option("Encoder whose vectors are examined, such as dense:minilm.", "SPEC", panel="Model")
    ] = None,
    lm: Annotated[
        list[str] | None,
        Option(
            "Language model for --probe perplexity; for --theorem the generator, the retriever's model and the reader.",
            "MODEL",
            panel="Model",
        ),
    ] = None,
    attribution: Annotated[bool, Option("Show which properties go with the gap between twins, for each -r.")] = False,
    theorem: Annotated[bool, Option("Check the conditions of Theorem 4.1 with two or three --lm.")] = False,
    ranker: options.Rankers = None,
    by: Annotated[str, Option("Column whose groups are compared.", "COLUMN")] = "source",
    reference: options.Reference = None,
    split: options.Split = None,
    neural: options.RankerOptions,
    output: PageOutput,
) -> None:
    """Look at the texts of a collection with probes: what differs between twins, and what goes with a ranker's gap."""
    from ranktilt.probes.explain import explain as run_probes

    output.check(*collection_files(folder))
    if attribution and not ranker:
        raise UserError("--attribution needs rankers: name one or more with -r")
    if theorem and not lm:
        raise UserError("--theorem needs language models: name two or three with --lm")
    if lm and not theorem and (probe or attribution) and "perplexity" not in (probe or ()):
        raise UserError("--lm needs --probe perplexity or --theorem")
    named = encoder if encoder is not None or attribution or not ranker else ranker[0]
    read = neural.rankers([named])[0] if named else None
    collection = options.load_texts(folder, split)
    models = lm or ()
    found = run_probes(
        collection, probe, read, reference=reference, by=by, lm=() if theorem else models,
        attribute=neural.rankers(ranker) if attribution and ranker else (), theorem=models if theorem else (),
    )  # fmt: skip
    output.deliver(found)
