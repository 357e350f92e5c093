"""What ``ranktilt judge`` reads: grades of humans and judges, runs, and values of systems.

A *system* is a ranker that made a run; judgments are used to find out which system is better. The
*family* of a system is what it has in common with others, such as the model it is built on. Systems
in one *cluster* are repeats of one system. The *values* of a system are its measure for each query.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT
from ranktilt.cli.output import collection_files
from ranktilt.cli.rankers import any_has_option, rank_with, read_rankers
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.judging.systems.groups import SystemGroups


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class JudgeInputs:
    """Grades of humans and judges, and the systems that both evaluate."""

    folder: Annotated[Path | None, Parameter(parse=False)] = None
    """The verb's positional argument."""
    judge: Annotated[
        list[Path] | None,
        options.FILE_OR_STDIN,
        Parameter(
            help="A judge's grades: qrels, CSV, JSON, Parquet or an evaluation log; repeat for "
            "several.",
            metavar="FILE",
        ),
    ] = None
    human: Annotated[
        Path | None,
        options.FILE_OR_STDIN,
        Parameter(
            help="Human grades, in the same formats (default: the collection's).", metavar="FILE"
        ),
    ] = None
    runs: Annotated[
        list[Path] | None,
        Parameter(
            help="Runs for both judges to evaluate: files, or folders of them.", metavar="FILE|DIR"
        ),
    ] = None
    ranker: options.Rankers = None
    systems: Annotated[
        Path | None,
        Parameter(
            help="Table of each run's family, and the cluster of repeats: columns run, family, "
            "cluster (tabs or commas). Shows whom a judge favours; a cluster counts as one "
            "system.",
            metavar="FILE",
        ),
    ] = None
    scores: Annotated[
        list[Path] | None,
        Parameter(
            help="Values of systems per query (trec_eval -q, gdeval, ndeval), instead of grades "
            "and runs. First those under human grades, then those under each judge's: a "
            "file, or a folder with one file per system.",
            metavar="FILE|DIR",
        ),
    ] = None
    split: options.Split = None
    score_order: options.ScoreOrder = None

    @property
    def run_files(self) -> list[Path]:
        """Files of runs; those of a folder in the order of their names."""
        run_files = list[Path]()
        for path in self.runs or ():
            if not path.is_dir():
                run_files.append(path)
                continue
            files_of_folder = sorted(file for file in path.iterdir() if _is_run(file))
            if not files_of_folder:
                raise UserError(f"--runs {path}: no run in this folder")
            run_files += files_of_folder
        return run_files

    @property
    def files(self) -> list[Path]:
        """Files that are read, which no output may replace."""
        paths = [*(self.judge or ()), *self.run_files, *(self.scores or ())]
        paths += [path for path in (self.human, self.systems) if path]
        return [*collection_files(self.folder), *map(file_of, paths)]

    @property
    def has_systems(self) -> bool:
        """Whether runs, or rankers that make them, are named."""
        return bool(self.runs or self.ranker)

    def check(self, *, asks: bool, text: options.Fields | None) -> None:
        """Refuse options that nothing would read, and missing grades or texts.

        `asks` says whether a language model makes grades, and `text` which part of a document it
        or a ranker reads.
        """
        if asks and self.folder is None:
            raise UserError("--llm grades texts: name a collection DIR")
        if not asks and not self.judge:
            raise UserError(
                "no judge: name its grades (--judge FILE), a model that makes them "
                "(--llm openai:MODEL), or values of systems under humans and under it "
                "(--scores FILE --scores FILE)"
            )
        if self.folder is None and self.human is None and not asks:
            raise UserError(
                "no human grades: name a file (--human FILE), or a collection DIR with judgments"
            )
        if self.folder is None and self.ranker:
            raise UserError(f"ranker {self.ranker[0]!r} needs texts: name a collection DIR")
        self._refuse_unread(asks=asks, text=text)

    def _refuse_unread(self, *, asks: bool, text: options.Fields | None) -> None:
        """Refuse options whose collection, runs, ranker or model is not named."""
        if self.folder is None and self.split is not None:
            raise UserError("--split needs a collection: name its folder DIR")
        if self.systems is not None and not self.has_systems:
            raise UserError("--systems needs runs (--runs DIR)")
        if text is not None and not asks and not self.ranker:
            raise UserError("--text needs a ranker or a model: name one with -r or --llm")
        if (
            self.score_order is not None
            and not self.runs
            and not any_has_option("score_order", self.ranker or ())
        ):
            raise UserError("--score-order needs runs (--runs DIR)")

    def read_groups(self) -> SystemGroups:
        """Return the families and clusters of runs; none where no file names them."""
        from ranktilt.judging.systems.groups import SystemGroups, read_systems

        return SystemGroups() if self.systems is None else read_systems(self.systems)

    def read_systems(self, text: options.Fields | None) -> JudgedSystems:
        """Read the systems to evaluate; `text` is the part of a document that rankers read."""
        groups = self.read_groups()
        collection = None
        if self.folder is not None:
            collection = options.load_texts(self.folder, self.split)
        return JudgedSystems(
            groups=groups, collection=collection, runs=self._read_runs(collection, text)
        )

    def _read_runs(self, collection: Collection | None, text: options.Fields | None) -> list[Run]:
        """Read runs from files, and make those of rankers."""
        from ranktilt.data.runs.run import Run

        stored = [Run.load(path, score_order=self.score_order) for path in self.run_files]
        if collection is None or not self.ranker:
            return stored
        rankers = read_rankers(self.ranker, text=text, score_order=self.score_order)
        return [*stored, *rank_with(rankers, collection)]


@dataclass(frozen=True, kw_only=True)
class JudgedSystems:
    """Systems that humans and judges evaluate."""

    groups: SystemGroups
    """Which systems belong to one family, or are repeats of one system."""
    collection: Collection | None
    """Their documents, with sources and judgments; None where none is named."""
    runs: list[Run]
    """Their runs."""


def _is_run(path: Path) -> bool:
    """Return whether a file of a folder may be a run: neither hidden nor a run's sidecar.

    A sidecar is the JSON file beside a run that says how the run was made.
    """
    return (
        path.is_file()
        and not path.name.startswith(".")
        and not path.name.endswith((".trec.json", ".run.json", ".gz.json"))
    )
