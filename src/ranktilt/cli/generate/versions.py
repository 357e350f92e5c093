"""``ranktilt generate versions``: every document in versions that differ by design.

A *factor* is a property of a text with two levels, low and high, such as its length. A *design*
has *runs*, which are the combinations of levels that each document is written in. Rules write the
versions, or a language model does. Another model, the *judge*, may grade versions with changed
facts, which may no longer answer their queries. With ``--table``, the versions exist already: they
are checked and saved as a collection.

A design with fewer runs than combinations is a *fraction*. Its *resolution* says what cannot be
told apart: from IV on, the effect of a factor is confused with no other factor and no pair of them.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MODEL, QUESTION, SELDOM, verb
from ranktilt.cli.generate.options import Attempts, Limit, NewFolder, Side, generate
from ranktilt.cli.generate.requests import check_request, load_side, note_side
from ranktilt.cli.generate.summaries import INCOMPLETE, generation_notes
from ranktilt.cli.generate.versions_models import VersionsModels
from ranktilt.cli.generate.versions_request import VersionsRequest
from ranktilt.cli.generate.versions_table import read_versions
from ranktilt.cli.judge.grading import note_grades
from ranktilt.cli.notes import note
from ranktilt.cli.output import Output
from ranktilt.errors import UserError, counted
from ranktilt.generation.versions.options import Crossing

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.generation.versions.factors import Factor
    from ranktilt.generation.versions.make import DesignedVersions
    from ranktilt.judging.grading.grading import Grades


@Parameter(name="*", group=QUESTION)
@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """Which combinations of factors are written, and by rules or by a model."""

    design: Annotated[
        Literal["8", "16", "32", "full"] | None,
        Parameter(
            help="Runs of the design: all combinations (default), or a fraction of resolution IV "
            "or more."
        ),
    ] = None
    cells: Annotated[
        int | None,
        Parameter(
            help="Draw K runs per document, each equally often (default: all).",
            metavar="K",
            validator=Number(gte=2),
            converter=options.whole_number,
        ),
    ] = None
    by_rule: Annotated[bool, Parameter(help="Use only rules, no language model.")] = False
    seed: Annotated[
        int | None,
        Parameter(
            help="Random seed for rules and drawn runs (default: 0).",
            metavar="N",
            group=SELDOM,
            validator=options.NOT_NEGATIVE,
            converter=options.whole_number,
        ),
    ] = None
    attempts: Attempts | None = None

    @property
    def is_typed(self) -> bool:
        """Whether an option of the design was typed."""
        return options.first_typed(**vars(self)) is not None

    def crossing(self, inputs: VersionsInputs) -> Crossing:
        """Return the settings of the design: its combinations, and the documents to write."""
        defaults = Crossing()
        return Crossing(
            design=self.design or defaults.design,
            cells=self.cells,
            seed=defaults.seed if self.seed is None else self.seed,
            of=inputs.source_to_rewrite,
            first=inputs.limit,
            attempts=self.attempts or defaults.attempts,
        )


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class VersionsInputs:
    """The documents to write versions of, or the versions that exist already."""

    table: Annotated[
        Path | None,
        Parameter(
            help="Read existing versions, with columns origin, text and one per factor.",
            metavar="FILE",
        ),
    ] = None
    factor: Annotated[
        list[str] | None,
        Parameter(
            help="Low and high value of a column of --table, such as gender=M,F.",
            metavar="NAME=LOW,HIGH",
        ),
    ] = None
    source_to_rewrite: Side = None
    limit: Limit = None
    split: options.Split = None

    @property
    def limits_documents(self) -> bool:
        """Whether documents to write versions of are named."""
        return self.source_to_rewrite is not None or self.limit is not None

    def path_to_read(self, folder: Path | None) -> Path:
        """Return the table, or the collection where there is no table."""
        path = self.table or folder
        if path is None:
            raise UserError("nothing to read: name a collection, or versions (--table FILE)")
        return path

    def read_table(self, table: Path, factors: list[str], folder: Path | None) -> DesignedVersions:
        """Read existing versions from a table.

        `factors` are the columns of their factors, and `folder` is the collection that they are
        versions of, if one is named.
        """
        collection: Collection | None = None
        if folder is None and self.split is not None:
            raise UserError("--split needs a collection: name its folder DIR")
        if folder is not None:
            collection = options.load_texts(folder, self.split)
        return read_versions(table, factors, self.factor or (), collection)


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class VersionsModelOptions:
    """The model that writes, the model that grades changed facts, and the price of asking them."""

    llm: options.LanguageModel = None
    batch: options.Batch = False
    judge: Annotated[
        str | None,
        Parameter(
            help="Model that grades versions with changed facts, named as for --llm.",
            metavar="MODEL",
        ),
    ] = None
    judge_prompt: Annotated[
        str | None,
        Parameter(
            help="Prompt of --judge: umbrela (default), basic, rubric, or a file with {query} and "
            "{passage}.",
            metavar="NAME|FILE",
        ),
    ] = None
    dry_run: options.DryRun = False
    price: options.Price = None

    @property
    def is_typed(self) -> bool:
        """Whether a model, or an option of asking it, was typed."""
        return bool(self.llm or self.batch or self.judge or self.judge_prompt)

    def check(self) -> None:
        """Refuse a prompt that no judge would get."""
        if self.judge is None and self.judge_prompt is not None:
            raise UserError("--judge-prompt needs a judge: --judge openai:MODEL")

    def connect(self) -> VersionsModels:
        """Connect to the models that were typed."""
        return VersionsModels.read(self.llm, self.judge, batch=self.batch)


@dataclass(frozen=True, kw_only=True)
class VersionsTarget:
    """The folder of a designed collection, and the output of the checks of its factors."""

    folder: Path
    """Folder to write."""
    output: Output
    """How the checks are printed and saved."""

    def make_and_write(self, request: VersionsRequest) -> int:
        """Make the versions, write them, and return the exit code.

        No other command may write into the folder meanwhile.
        """
        from ranktilt.generation.output_folder import one_writer

        with one_writer(self.folder):
            designed, grades = request.make()
            note_side(request.collection, request.crossing.of)
            return self.write(designed, grades)

    def write(self, designed: DesignedVersions, grades: Grades | None = None) -> int:
        """Write the collection, print the checks of its factors, and return the exit code.

        `grades` are those of the judge, if a judge was asked.
        """
        from ranktilt.generation.versions.save import save_versions

        saved = save_versions(designed, self.folder)
        self.output.deliver(designed.checks)
        if designed.summaries:
            for line in generation_notes(designed, saved, "rewritten"):
                note(line)
        else:  # rules or a table made all versions, so no model has anything to report
            note(f"{saved.folder}: {designed.collection!r}")
        if grades is not None:
            note_grades(grades)
        if designed.unanswered:
            texts = counted(designed.unanswered, "text", "texts")
            note(f"{texts} got no answer; run the command again to ask only for these")
        if designed.unanswered or (grades is not None and grades.unanswered):
            return INCOMPLETE
        command = ["ranktilt", "explain", str(saved.folder), "-r", "bm25", "--by-factor"]
        note(f"Next: {shlex.join(command)}")
        return 0


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
    path = inputs.path_to_read(folder)
    check_request(
        path,
        new_folder,
        output.json,
        kind="versions",
        dry_run=models.dry_run,
        source_type="folder" if inputs.table is None else "file",
    )
    names = [name.strip() for name in factors.split(",") if name.strip()]
    target = None
    if new_folder is not None and not models.dry_run:
        target = VersionsTarget(folder=new_folder, output=output)
    if inputs.table is not None:
        if design.is_typed or inputs.limits_documents or models.is_typed:
            raise UserError(
                "--table already holds versions; only --factors, --factor and a collection go "
                "with it"
            )
        if target is None:
            raise UserError("--dry-run: there is nothing to price, --table already holds versions")
        return target.write(inputs.read_table(inputs.table, names, folder))
    if inputs.factor:
        raise UserError("--factor needs versions: --table FILE")
    models.check()
    factors_to_write = _read_factors(names, design, models)
    connected = models.connect()
    request = VersionsRequest(
        collection=load_side(path, inputs.split, inputs.source_to_rewrite),
        factors=factors_to_write,
        crossing=connected.crossing(design.crossing(inputs)),
        models=connected,
        grading=connected.grading(models.judge_prompt),
    )
    if target is None:
        request.prices(prices).deliver(output.json)
        return 0
    return target.make_and_write(request)


def _read_factors(
    names: list[str], design: DesignOptions, models: VersionsModelOptions
) -> Sequence[Factor]:
    """Read the factors by their names; refuse those that need a model where none is typed."""
    from ranktilt.generation.versions.factors import read_factors, require_model

    factors = read_factors(names, by_rule=design.by_rule)
    require_model(factors, has_model=models.llm is not None)
    return factors
