"""Options that several verbs share, and rankers made from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.rankers.base import Ranker

Formats = StrEnum("Formats", ["table", "markdown", "csv", "latex", "html", "json"])
"""How a result is printed, the same for every verb."""
TieRule = StrEnum("TieRule", ["expected", "trec_eval"])
MeanRounding = StrEnum("MeanRounding", ["none", "paper"])
TiltTest = StrEnum("TiltTest", ["permutation", "t"])
Corrections = StrEnum("Corrections", ["holm", "bonferroni"])
MissingRule = StrEnum("MissingRule", ["zero", "exclude"])
RunOrder = StrEnum("RunOrder", ["score", "rank"])
Fields = StrEnum("Fields", {"both": "title+text", "text": "text", "title": "title"})
Layouts = StrEnum("Layouts", ["beir", "cocktail"])
Documents = StrEnum("Documents", ["all", "judged"])
OnInconclusive = StrEnum("OnInconclusive", {"fail_": "fail", "pass_": "pass"})
Titles = StrEnum("Titles", ["text", "field"])
Precisions = StrEnum("Precisions", ["auto", "float32", "bfloat16"])

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
Format = Annotated[Formats, typer.Option("--format", help="How the result is printed.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no notes.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Json = Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the whole result; - for stdout.")]
Text = Annotated[Fields | None, typer.Option("--text", help="What of a document is ranked.")]
Device = Annotated[str | None, typer.Option("--device", help="Device of neural rankers, such as cpu or cuda:0.")]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="What exact search or random labels may hold, such as 1GB (default: a quarter of the memory).",
    ),
]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Processor threads to use.")]

Folder = Annotated[
    Path | None,
    typer.Argument(metavar="DIR", help="A collection: a folder, hub:OWNER/NAME or irds:ID. Not needed with --groups."),
]
Runs = Annotated[
    list[Path] | None, typer.Option("--run", metavar="FILE", help="A run that exists: TREC or JSON, plain or .gz.")
]
ScoreOrder = Annotated[
    RunOrder | None, typer.Option("--score-order", help="What orders a run: its scores (the default), or its ranks.")
]
Groups = Annotated[
    Path | None,
    typer.Option("--groups", metavar="FILE", help="Labels: a TSV, CSV or Parquet table doc_id, source[, origin]."),
]
Qrels = Annotated[
    str | None,
    typer.Option("--qrels", metavar="FILE", help="Judgments in place of the collection's; none for none."),
]
Missing = Annotated[MissingRule, typer.Option("--missing", help="How a judged query counts that a run lacks.")]
Card = Annotated[bool, typer.Option("--card", help="The estimand card: five questions side by side.")]
Page = Annotated[
    int | None,
    typer.Option("--page", min=1, metavar="K", help="Ranks that make the page of the card (default: 20)."),
]
Controls = Annotated[
    bool, typer.Option("--controls", help="Raw beside length-matched, boilerplate-free and other controls.")
]
Near = Annotated[
    float | None,
    typer.Option(
        "--near", min=0.01, max=1, metavar="X",
        help="Word overlap (Jaccard) from which the controls call twins near-identical (default: 0.95).",
    ),
]  # fmt: skip
By = Annotated[
    str,
    typer.Option(
        "--by", metavar="COLUMN", help="Group documents by it, or by parts such as length:3; none for no groups."
    ),
]
Pairs = Annotated[list[str] | None, typer.Option("--pair", metavar="A,B", help="Compare only these groups.")]
Split = Annotated[
    str | None, typer.Option("--split", help="Judgments in qrels/<split>.tsv (default: test, or the only one).")
]
ExcludeSelf = Annotated[
    bool | None,
    typer.Option(
        "--exclude-self/--no-exclude-self",
        help="Drop a query's own document where queries are documents.",
    ),
]
IgnoreUnknown = Annotated[
    bool,
    typer.Option("--ignore-unknown", help="Keep judgments of unknown documents out of group measures."),
]
Ties = Annotated[TieRule, typer.Option("--ties", help="How ties count; trec_eval for published numbers.")]
Rounding = Annotated[MeanRounding, typer.Option("--rounding", help="paper: means to 0.1 % first.")]
Test = Annotated[TiltTest, typer.Option("--test", help="The test of twins.")]
Correction = Annotated[Corrections, typer.Option("--correction", help="Of every p of the result.")]
Layout = Annotated[Layouts, typer.Option("--layout", help="How the folder is laid out.")]
Level = Annotated[float, typer.Option("--level", min=0, help="Half-width of what counts as level, in %.")]
Resamples = Annotated[int, typer.Option("--resamples", min=100, help="Bootstrap resamples and sign flips.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of every random draw.")]
PerQuery = Annotated[Path | None, typer.Option("--per-query", metavar="FILE.csv", help="Write a row a query.")]
Save = Annotated[Path | None, typer.Option("--save", metavar="DIR", help="Write audit, table and runs there.")]


@contextmanager
def within(memory: str | None) -> Iterator[None]:
    """Let search hold no more than ``--memory`` says inside the ``with`` block; the usual share where it is None."""
    from ranktilt.executing.memory_limits import MemoryLimits, limited, read_size

    with limited(MemoryLimits(memory=None if memory is None else read_size(memory))):
        yield


def rankers(specs: Sequence[str], **defaults: Any) -> list[Ranker]:
    """Read rankers and give each the options of the command line that it has and does not set itself."""
    from ranktilt.rankers.spec import Stage, parse_stages
    from ranktilt.registry import ranker, ranker_class

    given = {name: str(value).lower() if isinstance(value, bool) else value for name, value in defaults.items()}

    def equipped(stage: Stage) -> Stage:
        own = {f.name for f in fields(ranker_class(stage.name))}  # type: ignore[arg-type]
        more = {name: value for name, value in given.items() if value is not None and name in own}
        return replace(stage, options={**more, **stage.options})

    return [ranker(">>".join(str(equipped(stage)) for stage in parse_stages(spec))) for spec in specs]


def pairs(texts: Sequence[str] | None) -> list[tuple[str, str]] | None:
    """Read pairs of groups, ``A,B`` each; None where none are named."""
    if not texts:
        return None
    found = []
    for text in texts:
        a, comma, b = text.partition(",")
        if not comma or not a.strip() or not b.strip():
            raise UserError(f"--pair expects two groups, such as human,llm; got {text!r}")
        found.append((a.strip(), b.strip()))
    return found
