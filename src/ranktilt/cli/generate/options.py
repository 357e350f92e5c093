"""Options that the commands of ``ranktilt generate`` share, and the command that holds them.

A *source* is who wrote a document: ``human``, or a model, whose texts become a new source.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MORE, OUTPUT, SELDOM, command_group
from ranktilt.cli.output import FILE_OR_STDOUT

generate = command_group("generate", "Write documents with a language model.", MORE)
"""The group of verbs that write documents."""

NewFolder = Annotated[
    Path | None,
    Parameter(
        name="--output",
        alias="-o",
        help="Folder for the new collection.",
        metavar="DIR",
        group=OUTPUT,
    ),
]

Summary = Annotated[
    str | None,
    FILE_OR_STDOUT,
    Parameter(help="Save a summary as JSON; - for stdout.", metavar="FILE", group=OUTPUT),
]

SourceName = Annotated[
    str | None,
    Parameter(
        help="Name of the new source (default: the model's; for a rewrite with -tmpT).",
        metavar="NAME",
        group=OUTPUT,
    ),
]

Side = Annotated[
    str | None,
    Parameter(
        help="Rewrite documents of this source (default: human). If no document has a source, "
        "all get this one.",
        metavar="SOURCE",
        group=INPUT,
    ),
]

Limit = Annotated[
    int | None,
    Parameter(
        help="Use only the first N, for a trial.",
        metavar="N",
        group=INPUT,
        validator=options.AT_LEAST_ONE,
        converter=options.whole_number,
    ),
]

Attempts = Annotated[
    int,
    Parameter(
        help="Ask at most N times for an answer that passes the checks (default: 3).",
        metavar="N",
        group=SELDOM,
        validator=options.AT_LEAST_ONE,
        converter=options.whole_number,
    ),
]

Truncate = Annotated[
    bool,
    Parameter(help="Truncate texts that are too long instead of leaving them out.", group=SELDOM),
]
