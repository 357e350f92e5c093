"""``ranktilt cache``: what is kept, and taking it away."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import reporting, results, say
from ranktilt.errors import UserError, counted, unknown

if TYPE_CHECKING:
    from ranktilt.rankers.inventory import CacheEntry, StaleFile

FORMATS = ("table", "json")
_UNITS = ("B", "kB", "MB", "GB", "TB")
_DAY = 86_400


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
    format: Annotated[str, typer.Option("--format", metavar="FORMAT", help="table or json.")] = "table",
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Show what the cache keeps (vectors, scores, counts, indexes, answers of language models), or prune it.

    All of it can be made again; what a server was asked for only at its price, so that --model alone removes it.
    """
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    if everything and not prune:
        raise UserError("--all goes with --prune: ranktilt cache --prune --all removes all that was not paid for")
    if everything and (model or older_than):
        raise UserError("--all removes everything; leave it out to remove what --model and --older-than choose")
    with reporting(quiet=quiet):
        from ranktilt.rankers.inventory import cache_contents, of_model, remove, unused_for

        kept, left = cache_contents()
        chosen = kept if model is None else of_model(kept, model)
        chosen = chosen if older_than is None else unused_for(chosen, older_than)
        if not prune:
            with results() as stream:
                stream.write(_json(chosen, left) if format == "json" else _table(chosen, left))
            return
        doomed = chosen if everything or model or older_than else []
        spared = [] if model else [one for one in doomed if one.paid]
        gone = [one for one in doomed if one not in spared]
        freed = remove([*gone, *left])
        say(f"removed {_summary(gone, left)}: {_size(freed)} free again", quiet=quiet)
        if spared:
            names = ", ".join(sorted({one.model for one in spared}))
            say(f"what servers were asked for stays; --model removes it: {names}", quiet=quiet)
        if kept and not (everything or model or older_than):
            say("entries stay; --model, --older-than or --all remove them", quiet=quiet)


def _summary(kept: Sequence[CacheEntry], left: Sequence[StaleFile]) -> str:
    return f"{counted(len(kept), 'entry', 'entries')} and {counted(len(left), 'leftover', 'leftovers')}"


def _json(kept: Sequence[CacheEntry], left: Sequence[StaleFile]) -> str:
    from ranktilt.io.cache import cache_folder

    entries = [
        {
            "what": one.what,
            "model": one.model or None,
            "settings": one.settings,
            "entries": one.entries,
            "bytes": one.size,
            "paid": one.paid,
            "last_use": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one.used)),
            "folder": str(one.folder),
        }
        for one in kept
    ]
    leftovers = [{"path": str(one.path), "why": one.why, "bytes": one.size} for one in left]
    content = {"folder": str(cache_folder()), "entries": entries, "leftovers": leftovers}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _table(kept: Sequence[CacheEntry], left: Sequence[StaleFile]) -> str:
    import io

    from rich import box
    from rich.table import Table
    from rich.text import Text

    from ranktilt.io.cache import cache_folder
    from ranktilt.reporting.console import printing

    stream, terminal = io.StringIO(), sys.stdout if sys.stdout.isatty() else None
    with printing(stream, terminal) as (console, plain):
        total = sum(one.size for one in kept) + sum(one.size for one in left)
        console.print(Text(f"{cache_folder()}: {_size(total)}"), soft_wrap=True)
        if kept:
            table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
            for title in ("what", "model", "settings"):
                table.add_column(title, overflow="fold")
            for title in ("entries", "size", "last use"):
                table.add_column(title, justify="right", no_wrap=True)
            for one in kept:
                cells = (one.what, one.model or "–", one.settings or "–", f"{one.entries:,}", _size(one.size))
                table.add_row(*map(Text, (*cells, _ago(one.used))))
            console.print(table, soft_wrap=plain)
        if left:
            size, count = _size(sum(one.size for one in left)), counted(len(left), "leftover", "leftovers")
            note = f"{count} that nothing reads, {size} ({_reasons(left)}): ranktilt cache --prune"
            console.print(Text(note), soft_wrap=True)
        if not kept and not left:
            console.print(Text("nothing is kept"), soft_wrap=True)
    return stream.getvalue()


def _reasons(left: Sequence[StaleFile]) -> str:
    reasons = [one.why for one in left]
    return ", ".join(f"{reasons.count(why):,} {why}" for why in sorted(set(reasons)))


def _size(size: float) -> str:
    """Bytes with three digits: ``11.3 MB``."""
    for unit in _UNITS:
        if size < 999.5 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" or size >= 99.95 else f"{size:.1f} {unit}"


def _ago(then: float) -> str:
    days = int((time.time() - then) // _DAY)
    return "today" if days < 1 else f"{counted(days, 'day', 'days')} ago"
