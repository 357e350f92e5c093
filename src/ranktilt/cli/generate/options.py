"""Options that the commands of ``ranktilt generate`` share, and the command that holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MORE, OUTPUT, SELDOM, command_group
from ranktilt.cli.output import FILE_OR_STDOUT

generate = command_group("generate", "Let a language model write documents.", MORE)

Made = Annotated[
    Path | None,
    Parameter(
        name="--output",
        alias="-o",
        help="Folder for the collection that is made.",
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
        help="Name of the new source (default: the model's; of a rewrite with -tmpT).",
        metavar="NAME",
        group=OUTPUT,
    ),
]

Side = Annotated[
    str | None,
    Parameter(
        help="Rewrite documents of this source (default: human); names it where none has one.",
        metavar="SOURCE",
        group=INPUT,
    ),
]

Limit = Annotated[
    int | None,
    Parameter(
        help="Take only the first N, for a trial.",
        metavar="N",
        group=INPUT,
        validator=options.AT_LEAST_ONE,
        converter=options.whole_number,
    ),
]

Attempts = Annotated[
    int,
    Parameter(
        help="Maximum attempts until an answer passes the checks (default: 3).",
        metavar="N",
        group=SELDOM,
        validator=options.AT_LEAST_ONE,
        converter=options.whole_number,
    ),
]

Truncate = Annotated[
    bool,
    Parameter(help="Truncate texts that are too long, instead of leaving them out.", group=SELDOM),
]
