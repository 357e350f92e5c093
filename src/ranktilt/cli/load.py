"""``ranktilt load``: write a public collection, or a folder in another layout, as a folder."""

from __future__ import annotations

import io
import os
from contextlib import nullcontext, redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import reporting, say
from ranktilt.cli.places import check_places

if TYPE_CHECKING:
    from ranktilt.collection import Collection

ABOUT = "loaded.json"


def command(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="hub:OWNER/NAME (Hugging Face), irds:ID (ir_datasets), or a folder."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where the collection goes.")],
    *,
    split: options.Split = None,
    revision: Annotated[
        str | None, typer.Option("--revision", metavar="REV", help="Branch, tag or commit on the hub (default: main).")
    ] = None,
    qrels: options.Qrels = None,
    docs: Annotated[
        options.Documents, typer.Option("--docs", help="judged: leave out what no judgment names.")
    ] = options.Documents.all,
    layout: options.Layout = options.Layouts.beir,
    ignore_unknown: options.IgnoreUnknown = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Fetch a public collection by name, or read a folder, and write it as a folder."""
    with reporting(quiet=quiet):
        from ranktilt.datasets.load import load
        from ranktilt.datasets.save import save

        check_places({"--output": output / ABOUT}, stdout=(), inputs=())
        # The libraries draw bars of their own for what they fetch and unpack.
        with redirect_stderr(io.StringIO()) if quiet else nullcontext():
            collection = load(
                name, split=split, qrels=qrels, ignore_unknown=ignore_unknown, docs=docs, revision=revision
            )
        save(collection, output, layout=layout)
        _tell_origin(collection, output)
    say(_summary(collection, name, output), quiet=quiet)
    if docs == "judged":
        of = f"{collection.docs.height:,} of {collection.spec['docs_of']:,} documents are kept"
        say(f"warning: {of}: no unjudged one competes, so measures are not those of the whole collection", quiet=quiet)


def _tell_origin(collection: Collection, output: Path) -> None:
    """Write what the files were made from beside them; loading does not read it."""
    import orjson

    from ranktilt._version import __version__
    from ranktilt.io.files import sha256, write_bytes

    read = [Path(file).absolute() for file in collection.spec.get("files", ())]
    above = Path(os.path.commonpath([file.parent for file in read])) if read else Path()
    files = {file.relative_to(above).as_posix(): sha256(file) for file in read}
    about = {**collection.spec, "files": files, "ranktilt": __version__}
    write_bytes(
        output / ABOUT, orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE, default=str)
    )


def _summary(collection: Collection, name: str, output: Path) -> str:
    commit = collection.spec.get("revision")
    at = f" at {commit[:12]}" if commit else ""
    lines = [f"{output}: {collection!r}, from {name}{at}"]
    if len(collection.sources) > 1 and collection.qrels.height:
        lines.append(f"Next: ranktilt check {output}")
    return "\n".join(lines)
