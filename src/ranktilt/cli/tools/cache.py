"""``ranktilt tools cache``: what is kept, and taking it away."""

from __future__ import annotations

from typing import Annotated

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.cli.output import Output
from ranktilt.errors import UserError, counted
from ranktilt.option import Option


@options.verb("tools cache", "tools cache --prune --model minilm", panel="Input")
def cache(
    *,
    model: Annotated[str | None, Option("Only entries of this model: a short name or folder.", "NAME")] = None,
    prune: Annotated[bool, Option("Remove what --model or --all select, and half-written files.")] = False,
    everything: Annotated[bool, Option("With --prune: remove everything that was not paid for.", flag="--all")] = False,
    output: Output,
) -> None:
    """Show what the cache keeps (vectors, scores, counts, indexes, answers of language models), or prune it.

    All of it can be made again, but answers of a server would have to be paid for again: only --model removes those.
    """
    if everything and not prune:
        raise UserError("--all goes with --prune: ranktilt tools cache --prune --all removes all that was not paid for")
    if everything and model:
        raise UserError("--all removes everything; leave it out to remove what --model chooses")
    from ranktilt.io.cache import cache_folder
    from ranktilt.io.inventory import cache_contents, of_model, remove
    from ranktilt.reporting.numbers import size
    from ranktilt.reporting.views.cache import CacheInventory

    entries = cache_contents()
    chosen = entries if model is None else of_model(entries, model)
    if not prune:
        output.check()
        output.deliver(CacheInventory(cache_folder(), chosen))
        return
    doomed = chosen if everything or model else []
    paid = [] if model else [one for one in doomed if one.paid]
    gone = [one for one in doomed if one not in paid]
    note(f"removed {counted(len(gone), 'entry', 'entries')}: {size(remove(gone))} free again")
    if paid:
        names = ", ".join(sorted({one.model for one in paid}))
        note(f"what servers were asked for stays; --model removes it: {names}")
    if entries and not (everything or model):
        note("entries stay; --model or --all remove them")
