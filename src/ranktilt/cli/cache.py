"""``ranktilt cache``: what is kept, and taking it away."""

from __future__ import annotations

from typing import Annotated

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.cli.output import Output
from ranktilt.errors import UserError, counted
from ranktilt.option import Option


@options.verb
def cache(
    *,
    model: Annotated[str | None, Option("Only what is of this model: a short name or folder.", "NAME")] = None,
    older_than: Annotated[str | None, Option("Only what was not used for so long: 12h, 30d, 2w.", "AGE")] = None,
    prune: Annotated[bool, Option("Remove what --model, --older-than or --all choose, and leftovers.")] = False,
    everything: Annotated[bool, Option("With --prune: remove all that was not paid for.", flag="--all")] = False,
    output: Output,
) -> None:
    """Show what the cache keeps (vectors, scores, counts, indexes, answers of language models), or prune it.

    All of it can be made again, but answers of a server would have to be paid for again: only --model removes those.
    """
    if everything and not prune:
        raise UserError("--all goes with --prune: ranktilt cache --prune --all removes all that was not paid for")
    if everything and (model or older_than):
        raise UserError("--all removes everything; leave it out to remove what --model and --older-than choose")
    from ranktilt.io.cache import cache_folder
    from ranktilt.io.inventory import cache_contents, of_model, remove, unused_for
    from ranktilt.reporting.numbers import size
    from ranktilt.reporting.views.cache import CacheInventory

    entries, stale = cache_contents()
    chosen = entries if model is None else of_model(entries, model)
    chosen = chosen if older_than is None else unused_for(chosen, older_than)
    if not prune:
        output.check()
        output.deliver(CacheInventory(cache_folder(), chosen, stale))
        return
    doomed = chosen if everything or model or older_than else []
    paid = [] if model else [one for one in doomed if one.paid]
    gone = [one for one in doomed if one not in paid]
    freed = remove([*gone, *stale])
    removed = f"{counted(len(gone), 'entry', 'entries')} and {counted(len(stale), 'leftover', 'leftovers')}"
    note(f"removed {removed}: {size(freed)} free again")
    if paid:
        names = ", ".join(sorted({one.model for one in paid}))
        note(f"what servers were asked for stays; --model removes it: {names}")
    if entries and not (everything or model or older_than):
        note("entries stay; --model, --older-than or --all remove them")
