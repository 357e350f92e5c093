"""Options of ``ranktilt generate versions``: the design, the documents, and the models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MODEL, QUESTION, SELDOM
from ranktilt.cli.generate.options import Attempts, Limit, Side
from ranktilt.cli.generate.versions_models import VersionsModels
from ranktilt.cli.generate.versions_table import read_versions
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.generation.versions.make import DesignedVersions


@Parameter(name="*", group=QUESTION)
@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """The combinations of factors to write."""

    design: Annotated[
        Literal["8", "16", "32", "full"],
        Parameter(
            help="Runs of the design: all combinations (default), or a fraction of resolution IV "
            "or more."
        ),
    ] = "full"
    cells: Annotated[
        int | None,
        Parameter(
            help="Draw K runs per document, each equally often (default: all).",
            metavar="K",
            validator=Number(gte=2),
        ),
    ] = None
    by_rule: Annotated[bool, Parameter(help="Use only rules, no language model.")] = False
    seed: Annotated[
        int,
        Parameter(
            help="Random seed for rules and drawn runs (default: 0).",
            metavar="N",
            group=SELDOM,
            validator=options.NOT_NEGATIVE,
        ),
    ] = 0
    attempts: Attempts = 3


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

    def source(self, folder: Path | None) -> Path:
        """Return the path that is read: the table, or the collection where there is no table."""
        source = self.table or folder
        if source is None:
            raise UserError("nothing to read: name a collection, or versions (--table FILE)")
        return source

    def read_table(self, table: Path, factors: list[str], folder: Path | None) -> DesignedVersions:
        """Read existing versions from a table.

        `factors` are the columns of their factors, and `folder` is the collection that they are
        versions of, if one is named.
        """
        collection: Collection | None = None
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
