"""``ranktilt judge``: whom judgments made by language models favour."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.errors import UserError
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.collection import Collection
    from ranktilt.run import Run


@dataclass(frozen=True)
class JudgeInputs(options.OptionGroup):
    """Grades of humans and judges, and the systems that both evaluate."""

    panel = "Input"

    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="A collection, for its sources and judgments (optional).")
    ] = None
    judge: Annotated[list[Path] | None, Option("A judge's grades, as qrels; several may be given.", "FILE")] = None
    human: Annotated[Path | None, Option("Human grades, as qrels (default: the collection's).", "FILE")] = None
    runs: Annotated[
        list[Path] | None, Option("Runs that both judges evaluate: files, or folders of them.", "FILE|DIR")
    ] = None
    ranker: options.Rankers = None
    systems: Annotated[
        Path | None, Option("Family of each run: two columns, run and family. Asks whom a judge favours.", "FILE")
    ] = None
    split: options.Split = None

    @property
    def run_files(self) -> list[Path]:
        """Every run, those of folders by name."""
        found = list[Path]()
        for path in self.runs or ():
            inside = sorted(file for file in path.iterdir() if _is_run(file)) if path.is_dir() else [path]
            if not inside:
                raise UserError(f"--runs {path}: no run in this folder")
            found += inside
        return found

    @property
    def files(self) -> list[Path]:
        named = [self.human, self.systems]
        return [*collection_files(self.folder), *(self.judge or ()), *self.run_files, *(one for one in named if one)]

    def check(self) -> None:
        """Refuse options that nothing would read."""
        if self.folder is None and self.human is None:
            raise UserError("no human grades: name a file (--human FILE), or a collection DIR with judgments")
        if self.folder is None and self.ranker:
            raise UserError(f"ranker {self.ranker[0]!r} needs texts: name a collection DIR")
        if self.systems is not None and not self.runs and not self.ranker:
            raise UserError("--systems needs runs (--runs DIR)")

    def load(self) -> Collection | None:
        """The collection, where one is named."""
        return None if self.folder is None else options.load_texts(self.folder, self.split)


def _is_run(path: Path) -> bool:
    """Whether a file of a folder may be a run: no sidecar, nothing hidden."""
    return (
        path.is_file()
        and not path.name.startswith(".")
        and not path.name.endswith((".trec.json", ".run.json", ".gz.json"))
    )


@options.verb(
    "judge --human human.qrels --judge umbrela.qrels -o judge.html",
    "judge --human h.qrels --judge j.qrels --runs runs/ --systems systems.tsv",
    "judge DIR --judge j.qrels -r bm25",
)
def judge(
    *,
    inputs: JudgeInputs,
    measure: options.Measures = None,
    pair: Annotated[str | None, Option("Sources of twins; positive gaps favour the first.", "A,B")] = None,
    relevant_from: Annotated[int, Option("Smallest grade that counts as relevant, for binary κ.", "N", min=1)] = 1,
    top_grade: Annotated[
        int | None, Option("Highest grade of the scale from 0 (default: the highest human grade).", "N", min=1)
    ] = None,
    human_sample: Annotated[
        int | None, Option("Show what N human labels would repair of the judge's numbers.", "N", min=1)
    ] = None,
    correction: options.Correction = "holm",
    resamples: options.Resamples = 10_000,
    seed: options.Seed = 0,
    neural: options.SearchOptions,
    output: PageOutput,
) -> None:
    """Say whom a judge's grades favour: a source on twins, a family of systems, and whether systems change places."""
    inputs.check()
    pairs = options.read_pairs(None if pair is None else [pair])
    output.check(*inputs.files)
    from ranktilt.judging.family_preference import read_families
    from ranktilt.judging.judge import MEASURES
    from ranktilt.judging.judge import judge as hold
    from ranktilt.run import named_apart

    families = None if inputs.systems is None else read_families(inputs.systems)
    collection = inputs.load()
    runs = _runs(inputs, collection, neural)
    output.deliver(
        hold(
            inputs.judge or [], inputs.human, collection=collection, runs=named_apart(runs), families=families,
            measures=measure or MEASURES, pair=None if pairs is None else pairs[0], relevant=relevant_from,
            top_grade=top_grade, human_sample=human_sample, correction=correction, resamples=resamples, seed=seed,
        )
    )  # fmt: skip


def _runs(inputs: JudgeInputs, collection: Collection | None, neural: options.SearchOptions) -> list[Run]:
    """Runs from files, and those of rankers."""
    from ranktilt.run import Run

    stored = [Run.load(path) for path in inputs.run_files]
    if collection is None or not inputs.ranker:
        return stored
    return [*stored, *options.rank_with(neural.rankers(inputs.ranker), collection)]
