"""Checks, input and prices of ``ranktilt generate``, before a model is asked.

The *side* to rewrite is the source whose documents a model gets, usually ``human``; a *source* is
who wrote a document.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli import options
from ranktilt.cli.generate.summaries import write_summary
from ranktilt.cli.notes import note
from ranktilt.cli.output import check_paths, collection_files, print_lines
from ranktilt.errors import UserError, counted

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.generation.batched_requests import GenerationInputs
    from ranktilt.llm.base import LLM


def check_request(
    source: Path,
    output: Path | None,
    json: str | None,
    *,
    kind: str,
    dry_run: bool,
    source_type: str = "folder",
) -> None:
    """Refuse files that cannot be read or written, before anything is read or asked.

    Parameters
    ----------
    source : Path
        The collection or file to read.
    output : Path or None
        The folder to write.
    json : str or None
        The file of the summary; ``-`` for standard output.
    kind : str
        What the folder holds, such as ``rewrites``; a folder of another kind is not overwritten.
    dry_run : bool
        Whether only the price is asked for, which needs no folder.
    source_type : str
        Noun for `source` in errors.
    """
    from ranktilt.generation.manifest import require_ours

    # A name such as hub:OWNER/NAME is checked when it is loaded.
    is_public = ":" in str(source)
    if not is_public and not os.path.exists(source):
        raise UserError(f"{source}: no such {source_type}")
    if output is None and not dry_run:
        raise UserError("no output: name a folder (-o DIR), or ask for the cost (--dry-run)")
    if output is not None and os.path.realpath(output) == os.path.realpath(source):
        raise UserError(f"-o {output}: this is the collection to read; choose another folder")
    check_paths(
        {"--json": json},
        stdout=("--json",),
        inputs=[source] if os.path.isfile(source) else collection_files(source),
    )
    if output is not None and not dry_run:
        require_ours(output, source, kind)


def show_estimate(
    inputs: GenerationInputs,
    llm: LLM,
    price: tuple[float, float] | None,
    json: str | None = None,
) -> None:
    """Show the price of the requests that are still to be sent.

    Parameters
    ----------
    inputs : GenerationInputs
        The requests.
    llm : LLM
        The model.
    price : (float, float) or None
        Price of a million input tokens, and of a million output tokens.
    json : str or None
        The file of the estimate as JSON; ``-`` for standard output.
    """
    from ranktilt.generation.estimate import estimate

    cost = estimate(inputs, llm, price=price, requests_per_minute=requests_per_minute(llm))
    write_summary(cost.to_dict(), json)
    if json != "-":
        print_lines(cost.lines)


def load_side(folder: Path, split: str | None, of: str | None) -> Collection:
    """Load a collection whose documents have a source.

    Where none has one, all get the name of the side to rewrite: `of`, or the default ``human``.
    """
    from ranktilt.data.labels.stated_sources import ORIGINALS, with_named_side

    return with_named_side(options.load_texts(folder, split), of or ORIGINALS)


def requests_per_minute(llm: LLM) -> int | None:
    """Return the limit of requests a minute that the model's text sets; None without a limit."""
    limit: int | None = getattr(llm, "requests_per_minute", None)
    return limit


def note_side(collection: Collection, of: str | None) -> None:
    """Say whether documents without a source got that of the side to rewrite, or were left out.

    `of` is the name of the side that was typed.
    """
    from ranktilt.data.labels.stated_sources import ORIGINALS

    if "named_source" in collection.spec:
        documents = counted(
            collection.spec["named_source"]["documents"], "document is", "documents are"
        )
        side = of or ORIGINALS
        note(f"no document has a source, so {documents} called {side!r} (--source-to-rewrite)")
    elif collection.sourceless:
        documents = counted(collection.sourceless, "document", "documents")
        note(f"{documents} without a source not rewritten")
