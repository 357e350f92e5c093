"""Options that several verbs share, and rankers made from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ranktilt.rankers.base import Ranker

Rankers = Annotated[
    list[str] | None,
    typer.Option(
        "--ranker",
        "-r",
        metavar="SPEC",
        help='A ranker, such as bm25, "bm25(k1=0.9,b=0.4)@100", dense:minilm.',
    ),
]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        metavar="MEASURE",
        help="A measure, such as nDCG@3; the first one gives the verdict.",
    ),
]
Format = Annotated[str, typer.Option("--format", metavar="FORMAT", help="table, markdown, latex or csv.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no notes.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Json = Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the whole audit; - for stdout.")]
Text = Annotated[str | None, typer.Option("--text", help="What of a document is ranked: title+text, text or title.")]
Device = Annotated[str | None, typer.Option("--device", help="Device of neural rankers, such as cpu or cuda:0.")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Processor threads to use.")]


def rankers(specs: Sequence[str], **defaults: Any) -> list[Ranker]:
    """Read rankers and give each the options of the command line that it has and does not set itself.

    Parameters
    ----------
    specs : sequence of str
        Their texts.
    **defaults
        Options by field name; None leaves a ranker's own default.

    Returns
    -------
    list of Ranker
        In order.
    """
    from ranktilt.rankers.stage import Stage, parse_stages
    from ranktilt.specs import ranker, ranker_class

    given = {name: str(value).lower() if isinstance(value, bool) else value for name, value in defaults.items()}

    def equipped(stage: Stage) -> Stage:
        own = {f.name for f in fields(ranker_class(stage.name))}  # type: ignore[arg-type]
        more = {name: value for name, value in given.items() if value is not None and name in own}
        return replace(stage, options={**more, **stage.options})

    return [ranker(">>".join(str(equipped(stage)) for stage in parse_stages(spec))) for spec in specs]
