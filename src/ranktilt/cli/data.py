"""``ranktilt data``: download a collection as a folder, or merge several.

Every document may have a *source*, who wrote it. `build` adds the commands of ``data build``.
"""

from __future__ import annotations

import io
import os
import shlex
from contextlib import nullcontext, redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MORE, OUTPUT, command_group, verb
from ranktilt.cli.notes import is_quiet, note
from ranktilt.cli.output import check_paths
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection


ABOUT = "loaded.json"
"""Name of the file that says how a folder was made."""
data = command_group("data", "Load, mix and build collections.", MORE)
"""The group of verbs about collections."""


@verb(
    "load",
    "data load hub:OWNER/NAME -o DIR",
    "data load irds:beir/scifact/test -o DIR --docs judged",
    arguments="NAME",
    parent=data,
)
def load(
    name: Annotated[
        str,
        Parameter(
            name="NAME",
            help="hub:OWNER/NAME[@REVISION] (Hugging Face), irds:ID (ir_datasets), or a folder.",
        ),
    ],
    /,
    *,
    output: options.Destination,
    split: options.Split = None,
    qrels: options.Qrels = None,
    docs: Annotated[
        Literal["all", "judged"],
        Parameter(help="judged keeps only documents that a judgment names.", group=INPUT),
    ] = "all",
    source: Annotated[
        str | None,
        Parameter(
            help="Source for documents that name none, such as human.",
            metavar="SOURCE",
            group=INPUT,
        ),
    ] = None,
    rows_per_file: options.RowsPerFile = None,
    ignore_unknown: options.IgnoreUnknown = False,
) -> None:
    """Download a public collection, or read a folder, and save it as a folder."""
    from ranktilt.data.loading.load import load as load_collection
    from ranktilt.data.save import save

    check_paths({"--output": output / ABOUT})
    # The libraries that download draw their own progress bars on stderr.
    with redirect_stderr(io.StringIO()) if is_quiet() else nullcontext():
        collection = load_collection(
            name, split=split, qrels=qrels, ignore_unknown=ignore_unknown, docs=docs
        )
    if source is not None:
        collection = _with_source(collection, source)
    save(collection, output, rows_per_file=rows_per_file)
    _write_origin(collection, output)
    commit = collection.spec.get("revision")
    note(f"{output}: {collection!r}, from {name}{f' at {commit[:12]}' if commit else ''}")
    if len(collection.sources) > 1 and collection.qrels.height:
        note(f"Next: {shlex.join(['ranktilt', 'check', str(output)])}")
    if docs == "judged":
        documents = f"kept {collection.docs.height:,} of {collection.spec['docs_of']:,} documents"
        note(
            f"warning: {documents}. Unjudged ones do not compete, so measures differ from those "
            "on the whole collection"
        )


def _with_source(collection: Collection, source: str) -> Collection:
    """Return a collection whose documents without a source get this one.

    A blank name is refused, and a name that no document needs.
    """
    from ranktilt.data.collection import names_somebody
    from ranktilt.data.labels.stated_sources import with_source

    if not names_somebody(source):
        raise UserError(f"--source expects a name, such as human; got {source!r}")
    if not collection.sourceless:
        raise UserError(f"--source {source}: every document has a source already; omit it")
    return with_source(collection, source)


def _write_origin(collection: Collection, output: Path) -> None:
    """Write a file into the folder that says what its files were made from, with checksums.

    Loading the folder does not read it.
    """
    import orjson

    from ranktilt._version import __version__
    from ranktilt.data.files import sha256, write_bytes

    paths = [Path(file).absolute() for file in collection.spec.get("files", ())]
    # Paths are relative, so that the record does not depend on where this machine keeps the files.
    common_folder = Path(os.path.commonpath([path.parent for path in paths])) if paths else Path()
    files = {path.relative_to(common_folder).as_posix(): sha256(path) for path in paths}
    about = {**collection.spec, "files": files, "ranktilt": __version__}
    write_bytes(
        output / ABOUT,
        orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE, default=str),
    )


@verb(
    "mix",
    "data mix human llm -o mixed",
    "data mix DIR -o smaller --rows-per-file 100000",
    arguments="DIR…",
    parent=data,
)
def mix(
    folders: Annotated[
        list[Path],
        Parameter(name="DIR", help="Collections to merge; a single one is only rewritten."),
    ],
    /,
    *,
    output: Annotated[
        Path,
        Parameter(alias="-o", help="Folder for the new collection.", metavar="DIR", group=OUTPUT),
    ],
    rows_per_file: options.RowsPerFile = None,
    split: Annotated[
        str | None,
        Parameter(
            help="Use the judgments in qrels/SPLIT.tsv (default: test).",
            metavar="SPLIT",
            group=INPUT,
        ),
    ] = None,
) -> None:
    """Merge collections, so that sources are side by side and twins share judgments."""
    from ranktilt.data.loading.load import load as load_collection
    from ranktilt.data.mix import mix as mix_collections
    from ranktilt.data.save import save

    loaded = [load_collection(folder, split=split) for folder in folders]
    mixed = mix_collections(*loaded) if len(loaded) > 1 else loaded[0]
    save(mixed, output, rows_per_file=rows_per_file)
    note(f"{output}: {mixed!r}")
