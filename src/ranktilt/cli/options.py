"""Options that several verbs declare, and how their texts are read.

An option is a type: a parameter ``split: options.Split = None`` of a verb declares ``--split``. An
option is *typed* if it is on the command line. A verb refuses typed options that it would not
read in the case at hand (`refuse_unread`), so that nobody believes they had an effect.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from ranktilt.cli import completion
from ranktilt.cli.app import INPUT, MODEL, OUTPUT, QUESTION, SELDOM, percentage, whole_number
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection

Formats = Literal["table", "markdown", "csv", "latex", "html", "json"]
"""How a result is printed, the same for every verb."""
Fields = Literal["title+text", "text", "title"]
"""Parts of a document that a ranker or a model may read."""
Pairs = list[tuple[str, str]]
"""Pairs of groups of documents that are compared, such as ``[("human", "llm")]``."""

LEFT_OUT = "Percentage of all queries that may be in only one audit."
"""Help of ``--max-left-out``."""
AT_LEAST_ONE = Number(gte=1)
"""Validator that refuses a number below 1."""
NOT_NEGATIVE = Number(gte=0)
"""Validator that refuses a number below 0."""


def _require_input_name(_kind: object, value: object) -> None:
    """Refuse an option where a file is expected; a lone hyphen is standard input."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str | Path) and str(text).startswith("--"):
            raise UserError(f"expected a file or -, got the option {text}")


FILE_OR_STDIN = Parameter(allow_leading_hyphen=True, validator=_require_input_name)
"""For options that take a file, or - for standard input."""

Rankers = Annotated[
    list[str] | None,
    Parameter(
        alias="-r",
        help='A ranker, such as bm25, "bm25(k1=0.9,b=0.4)@100" or dense:minilm. In an audit, '
        "NAME=SPEC names it.",
        metavar="SPEC",
        group=INPUT,
        completer=completion.rankers,
    ),
]
Measures = Annotated[
    list[str] | None,
    Parameter(
        alias="-m",
        help="A measure, such as nDCG@3; repeat for several.",
        metavar="MEASURE",
        group=QUESTION,
        completer=completion.measures,
    ),
]
Preset = Annotated[
    str | None,
    Parameter(
        help="Use a paper's settings: dai, wang or askari. Options that you type override them.",
        metavar="NAME",
        group=QUESTION,
        completer=completion.presets,
    ),
]
Card = Annotated[
    bool,
    Parameter(help="Add the question card, five questions in one table.", group=QUESTION),
]
Controls = Annotated[
    bool,
    Parameter(
        help="Add controls, such as matched lengths and removed boilerplate.", group=QUESTION
    ),
]
LabelErrors = Annotated[
    str | None,
    Parameter(
        help="How often labels are wrong: ai:fpr=.02,fnr=.05, or the file of a checked sample "
        "(columns true and label). Answers are corrected for it.",
        metavar="RATES",
        group=QUESTION,
    ),
]
CITE_CORRECTS = (
    "an audit of citations is corrected where it is made (ranktilt cite … --label-errors RATES); "
    "omit it here"
)
"""Why ``--label-errors`` is refused by commands that read an audit of citations."""
ByQuery = Annotated[
    str | None,
    Parameter(
        help="Answer by groups of queries too, and test whether they differ: a column of the "
        "queries (topic, year:3), or FILE:COLUMN.",
        metavar="COLUMN",
        group=QUESTION,
    ),
]
Reference = Annotated[
    str | None,
    Parameter(
        help="Group to compare the others with (default: human).",
        metavar="GROUP",
        group=QUESTION,
    ),
]
Folder = Annotated[
    Path, Parameter(name="DIR", help="A collection in the layout of BEIR, Cocktail or the papers.")
]
CollectionOrFile = Annotated[
    Path,
    Parameter(
        name="DIR",
        allow_leading_hyphen=True,
        help="A collection (a folder, hub:OWNER/NAME or irds:ID), or any file.",
    ),
]
Destination = Annotated[
    Path,
    Parameter(
        name="--output",
        alias="-o",
        help="Folder for the collection.",
        metavar="DIR",
        group=OUTPUT,
    ),
]
Qrels = Annotated[
    str | None,
    FILE_OR_STDIN,
    Parameter(
        help="Judgments to use instead, such as qrels, CSV or FILE:grade=rating; the word none "
        "ignores all judgments.",
        metavar="FILE",
        group=INPUT,
    ),
]
Split = Annotated[
    str | None,
    Parameter(
        help="Use the judgments in qrels/SPLIT.tsv (default: test, or the only file).",
        metavar="SPLIT",
        group=INPUT,
    ),
]
IgnoreUnknown = Annotated[
    bool,
    Parameter(
        help="Allow judgments of documents that the collection lacks; they count in no group.",
        group=SELDOM,
    ),
]
LanguageModel = Annotated[
    str | None,
    Parameter(
        help='Model: openai:NAME, "openai:NAME(temperature=0,concurrency=16)", '
        "transformers:FOLDER, or a name from ranktilt.toml.",
        metavar="MODEL",
        group=MODEL,
        completer=completion.language_models,
    ),
]
Batch = Annotated[
    bool,
    Parameter(
        help="Use the server's batches: answers within 24 hours, at half the price.", group=MODEL
    ),
]
Price = Annotated[
    str | None,
    Parameter(
        help="Price per million input and output tokens, for --dry-run.",
        metavar="IN,OUT",
        group=MODEL,
    ),
]
DryRun = Annotated[
    bool,
    Parameter(help="Send nothing; show requests, tokens, price and time.", group=MODEL),
]
MaxFailures = Annotated[
    float | None,
    Parameter(
        help="Percentage of queries or answers that may fail.",
        metavar="X",
        converter=percentage,
        group=SELDOM,
    ),
]
Text = Annotated[Fields | None, Parameter(help="Part of a document to read.", group=MODEL)]
ScoreOrder = Annotated[
    Literal["score", "ascending", "rank"] | None,
    Parameter(
        help="Order runs by falling scores (default), rising scores (distances) or ranks.",
        group=SELDOM,
    ),
]
RowsPerFile = Annotated[
    int | None,
    Parameter(
        help="Save documents as Parquet files of N rows each.",
        metavar="N",
        validator=AT_LEAST_ONE,
        converter=whole_number,
        group=SELDOM,
    ),
]
Protected = Annotated[
    str | None,
    Parameter(
        help="Protected group, A|B for several, non-A for all but A (default: the smaller of two).",
        metavar="GROUP",
        group=QUESTION,
    ),
]


def option_text(value: object) -> str:
    """Return a value as it is typed for an option: ``true`` for True."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def first_typed(**values: Any) -> str | None:
    """Return the flag of the first option that was typed; None where none was.

    `values` are the values of options by the names of their parameters: ``max_tilt`` gives
    ``--max-tilt``.
    """
    for name, value in values.items():
        if is_typed(value):
            return f"--{name.replace('_', '-')}"
    return None


def refuse_unread(typed: Mapping[str, object], reason: str) -> None:
    """Refuse options that were typed and that nothing reads.

    `typed` has the values of options by their flags, and `reason` says why they are not read.
    """
    for option, value in typed.items():
        if is_typed(value):
            raise UserError(f"{option}: {reason}")


def is_typed(value: object) -> bool:
    """Tell whether an option has a value; None, False and an empty list are none.

    A typed 0 is a value: ``0 in (None, False)`` is true, so False is compared by identity. A typed
    empty text (``--rest=``) is a value too. Options whose default is a value have the field None
    where they are not typed, so that a default that is typed is refused as any other value.
    """
    is_empty_list = isinstance(value, list | tuple) and not value
    return value is not None and value is not False and not is_empty_list


def load_texts(folder: Path, split: str | None) -> Collection:
    """Load a collection for its texts; `split` names the judgments to use.

    It may have no judgments, and judgments may name unknown documents.
    """
    from ranktilt.data.loading.load import NO_QRELS, load

    # `load` refuses a folder without judgments unless they are turned off.
    qrels = NO_QRELS if without_judgments(folder, split) else None
    return load(folder, split=split, qrels=qrels, ignore_unknown=True)


def without_judgments(folder: Path, split: str | None) -> bool:
    """Tell whether a collection has no judgments; False where `split` names some.

    Only a folder can be examined before it is loaded: for ``hub:…`` the result is False.
    """
    from ranktilt.data.loading.load import splits

    return split is None and os.path.isdir(folder) and not splits(folder)


def read_pairs(texts: Sequence[str] | None) -> list[tuple[str, str]] | None:
    """Read the texts of ``--pair``, ``A,B`` each; None where the option is not typed."""
    if not texts:
        return None
    pairs = []
    for text in texts:
        a, comma, b = text.partition(",")
        if not comma or not a.strip() or not b.strip():
            raise UserError(f"--pair expects two groups, such as human,llm; got {text!r}")
        pairs.append((a.strip(), b.strip()))
    return pairs


def read_price(text: str | None, *, dry_run: bool) -> tuple[float, float] | None:
    """Read the text of ``--price``: that of a million input tokens, and of a million output tokens.

    None where the option is not typed.
    """
    if text is None:
        return None
    if not dry_run:
        raise UserError("--price needs --dry-run")
    try:
        input_price, output_price = map(float, text.split(","))
    except ValueError as error:
        raise UserError(
            "--price expects two numbers, per million input and output tokens, such as 0.15,0.60; "
            f"got {text!r}"
        ) from error
    return input_price, output_price
