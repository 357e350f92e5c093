"""``ranktilt generate versions``: every document in versions that differ by design.

A *factor* is a property of a text that a version has or has not, such as length. A *design* says
which combinations of factors each document is written in.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import QUESTION, verb
from ranktilt.cli.generate.options import NewFolder, generate
from ranktilt.cli.generate.requests import check_request, load_side
from ranktilt.cli.generate.versions_options import (
    DesignOptions,
    VersionsInputs,
    VersionsModelOptions,
)
from ranktilt.cli.generate.versions_request import VersionsRequest
from ranktilt.cli.generate.versions_target import VersionsTarget
from ranktilt.cli.output import Output
from ranktilt.errors import UserError
from ranktilt.generation.versions.options import Crossing

if TYPE_CHECKING:
    from ranktilt.generation.versions.factors import Factor


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
        Parameter(name="DIR", help="A collection in the layout of BEIR, Cocktail or the papers."),
    ] = None,
    /,
    *,
    factors: Annotated[
        str,
        Parameter(
            help="source, facts, words, gender, length, position, repetition, query-words, "
            "fluency, style, or your own: MODULE:FUNCTION or a prompt file. With --table, its "
            "columns.",
            metavar="NAME,...",
            group=QUESTION,
        ),
    ],
    design: DesignOptions = DesignOptions(),
    inputs: VersionsInputs = VersionsInputs(),
    models: VersionsModelOptions = VersionsModelOptions(),
    new_folder: NewFolder = None,
    output: Output = Output(),
) -> int:
    """Write documents in versions that differ by design.

    Each version is a combination of factors. The result checks what each factor did to the texts.

    Exit 1 if answers are missing; run the command again to ask only for these.
    """
    prices = options.read_price(models.price, dry_run=models.dry_run)
    source = inputs.source(folder)
    check_request(
        source,
        new_folder,
        output.json,
        kind="versions",
        dry_run=models.dry_run,
        source_type="folder" if inputs.table is None else "file",
    )
    names = [name.strip() for name in factors.split(",") if name.strip()]
    target = VersionsTarget(folder=new_folder, output=output)
    crossing = _crossing(design, inputs)
    if inputs.table is not None:
        if crossing != Crossing() or design.by_rule or models.is_typed:
            raise UserError(
                "--table already holds versions; only --factors, --factor and a collection go "
                "with it"
            )
        return target.write(inputs.read_table(inputs.table, names, folder))
    if inputs.factor:
        raise UserError("--factor needs versions: --table FILE")
    models.check()
    factors_to_write = _read_factors(names, design, models)
    connected = models.connect()
    request = VersionsRequest(
        collection=load_side(source, inputs.split, inputs.source_to_rewrite),
        factors=factors_to_write,
        crossing=connected.crossing(crossing),
        models=connected,
        grading=connected.grading(models.judge_prompt),
    )
    if models.dry_run:
        request.prices(prices).deliver(output.json)
        return 0
    return target.fill(request)


def _crossing(design: DesignOptions, inputs: VersionsInputs) -> Crossing:
    """Return the settings of the design: its combinations, and the documents to write."""
    return Crossing(
        design=design.design,
        cells=design.cells,
        seed=design.seed,
        of=inputs.source_to_rewrite,
        first=inputs.limit,
        attempts=design.attempts,
    )


def _read_factors(
    names: list[str], design: DesignOptions, models: VersionsModelOptions
) -> Sequence[Factor]:
    """Read the factors by their names; refuse those that need a model where none is typed."""
    from ranktilt.generation.versions.factors import read_factors, require_model

    factors = read_factors(names, by_rule=design.by_rule)
    require_model(factors, has_model=models.llm is not None)
    return factors
