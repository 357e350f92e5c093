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
    from ranktilt.rankers.base import Pipeline
    from ranktilt.specs import ranker

    def equipped(one: Ranker) -> Ranker:
        if isinstance(one, Pipeline):
            return Pipeline(tuple(equipped(stage) for stage in one.stages))
        own = {f.name: f.default for f in fields(one)}  # type: ignore[arg-type]
        given = {k: v for k, v in defaults.items() if v is not None and k in own and getattr(one, k) == own[k]}
        return replace(one, **given) if given else one  # type: ignore[type-var]

    return [equipped(ranker(spec)) for spec in specs]
