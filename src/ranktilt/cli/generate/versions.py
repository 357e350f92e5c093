"""``ranktilt generate versions``: every document in versions that differ by design."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MODEL, QUESTION, SELDOM, verb
from ranktilt.cli.generate.options import Attempts, Limit, Made, Side, generate
from ranktilt.cli.generate.requests import check_request, load_side
from ranktilt.cli.generate.versions_models import VersionsModels
from ranktilt.cli.generate.versions_request import VersionsRequest
from ranktilt.cli.generate.versions_table import read_versions
from ranktilt.cli.generate.versions_target import VersionsTarget
from ranktilt.cli.output import Output
from ranktilt.errors import UserError
from ranktilt.generation.versions.options import Crossing


@verb(
    "versions",
    "generate versions DIR --factors length,words --by-rule -o DIR-rule",
    "generate versions DIR --factors source --llm openai:MODEL --dry-run",
    arguments="[DIR]",
    parent=generate,
)
def versions(
    folder: Annotated[
        Path | None,
        Parameter(name="DIR", help="A collection: BEIR, Cocktail or the papers' layout."),
    ] = None,
    /,
    *,
    factors: Annotated[
        str,
        Parameter(
            help="source, facts, words, gender, length, query-words, fluency, style; your own: "
            "MODULE:FUNCTION or a prompt file. With --table, its columns.",
            metavar="NAME,...",
            group=QUESTION,
        ),
    ],
    design: Annotated[
        Literal["8", "16", "32", "full"],
        Parameter(
            help="Runs of the design: all combinations (default), or a fraction of resolution IV "
            "or more.",
            group=QUESTION,
        ),
    ] = "full",
    cells: Annotated[
        int | None,
        Parameter(
            help="Draw K runs per document, each as often as the others (default: all).",
            metavar="K",
            group=QUESTION,
            validator=Number(gte=2),
        ),
    ] = None,
    by_rule: Annotated[
        bool, Parameter(help="Use rules only, and no language model.", group=QUESTION)
    ] = False,
    table: Annotated[
        Path | None,
        Parameter(
            help="Read versions that exist already: origin, text, a column a factor.",
            metavar="FILE",
            group=INPUT,
        ),
    ] = None,
    factor: Annotated[
        list[str] | None,
        Parameter(
            help="Low and high value of a column of --table, such as gender=M,F.",
            metavar="NAME=LOW,HIGH",
            group=INPUT,
        ),
    ] = None,
    source_to_rewrite: Side = None,
    limit: Limit = None,
    split: options.Split = None,
    llm: options.LanguageModel = None,
    batch: options.Batch = False,
    judge: Annotated[
        str | None,
        Parameter(
            help="Model that grades versions whose facts are changed, named as for --llm.",
            metavar="MODEL",
            group=MODEL,
        ),
    ] = None,
    judge_prompt: Annotated[
        str | None,
        Parameter(
            help="Prompt of --judge: umbrela (default), basic, rubric, or a file with {query} and "
            "{passage}.",
            metavar="NAME|FILE",
            group=MODEL,
        ),
    ] = None,
    dry_run: options.DryRun = False,
    price: options.Price = None,
    made_folder: Made = None,
    seed: Annotated[
        int,
        Parameter(
            help="Random seed of rules and drawn runs (default: 0).",
            metavar="N",
            group=SELDOM,
            validator=options.NOT_NEGATIVE,
        ),
    ] = 0,
    attempts: Attempts = 3,
    output: Output = Output(),
) -> int:
    """Write documents in versions that differ by design.

    Every version is a combination of factors, and what each factor did to the texts is checked.
    Exit 1 if answers are missing; the same command again asks only for these.
    """
    prices = options.read_price(price, dry_run=dry_run)
    source = table or folder
    if source is None:
        raise UserError("nothing to read: name a collection, or versions (--table FILE)")
    check_request(
        source,
        made_folder,
        output.json,
        kind="versions",
        dry_run=dry_run,
        source_type="folder" if table is None else "file",
    )
    names = [name.strip() for name in factors.split(",") if name.strip()]
    target = VersionsTarget(folder=made_folder, output=output)
    crossing = Crossing(
        design=design,
        cells=cells,
        seed=seed,
        of=source_to_rewrite,
        first=limit,
        attempts=attempts,
    )
    if table is not None:
        _refuse_options_of_writing(
            is_crossed=crossing != Crossing(),
            by_rule=by_rule,
            llm=llm,
            batch=batch,
            judge=judge,
            judge_prompt=judge_prompt,
        )
        collection = None if folder is None else options.load_texts(folder, split)
        return target.write(read_versions(table, names, factor or (), collection))
    if factor:
        raise UserError("--factor needs versions: --table FILE")
    if judge is None and judge_prompt is not None:
        raise UserError("--judge-prompt needs a judge: --judge openai:MODEL")
    from ranktilt.generation.versions.factors import read_factors, require_model

    factors_to_make = read_factors(names, by_rule=by_rule)
    require_model(factors_to_make, has_model=llm is not None)
    models = VersionsModels.read(llm, judge, batch=batch)
    request = VersionsRequest(
        collection=load_side(source, split, source_to_rewrite),
        factors=factors_to_make,
        crossing=models.crossing(crossing),
        models=models,
        grading=models.grading(judge_prompt),
    )
    if dry_run:
        request.prices(prices).deliver(output.json)
        return 0
    return target.fill(request)


def _refuse_options_of_writing(**written: object) -> None:
    """Refuse options of how versions are written, where they exist already."""
    if options.first_typed(**written) is not None:
        raise UserError(
            "--table has its versions already: only --factors, --factor and a collection go with it"
        )
