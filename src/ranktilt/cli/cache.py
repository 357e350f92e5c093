"""``ranktilt cache``: what is kept, and taking it away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import Output, reporting, say
from ranktilt.errors import UserError, counted

if TYPE_CHECKING:
    from ranktilt.io.inventory import CacheEntry, StaleFile


def command(
    *,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="Only what is of this model: a short name or folder.")
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Only what was not used for so long: 12h, 30d, 2w."),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove what --model, --older-than or --all choose, and leftovers.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="With --prune: remove all that was not paid for.")] = False,
    format: options.Format = options.Formats.table,
    json: options.Json = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Show what the cache keeps (vectors, scores, counts, indexes, answers of language models), or prune it.

    All of it can be made again; what a server was asked for only at its price, so that --model alone removes it.
    """
    if everything and not prune:
        raise UserError("--all goes with --prune: ranktilt cache --prune --all removes all that was not paid for")
    if everything and (model or older_than):
        raise UserError("--all removes everything; leave it out to remove what --model and --older-than choose")
    with reporting(quiet=quiet):
        from ranktilt.io.inventory import cache_contents, of_model, remove, unused_for

        kept, left = cache_contents()
        chosen = kept if model is None else of_model(kept, model)
        chosen = chosen if older_than is None else unused_for(chosen, older_than)
        if not prune:
            from ranktilt.io.cache import cache_folder
            from ranktilt.reporting.views.cache import CacheInventory

            out = Output(format, json, quiet)
            out.check()
            out.deliver(CacheInventory(cache_folder(), chosen, left))
            return
        from ranktilt.reporting.numbers import size

        doomed = chosen if everything or model or older_than else []
        spared = [] if model else [one for one in doomed if one.paid]
        gone = [one for one in doomed if one not in spared]
        freed = remove([*gone, *left])
        say(f"removed {_summary(gone, left)}: {size(freed)} free again", quiet=quiet)
        if spared:
            names = ", ".join(sorted({one.model for one in spared}))
            say(f"what servers were asked for stays; --model removes it: {names}", quiet=quiet)
        if kept and not (everything or model or older_than):
            say("entries stay; --model, --older-than or --all remove them", quiet=quiet)


def _summary(kept: Sequence[CacheEntry], left: Sequence[StaleFile]) -> str:
    return f"{counted(len(kept), 'entry', 'entries')} and {counted(len(left), 'leftover', 'leftovers')}"
