"""``ranktilt judge``: whom judgments made by language models favour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranktilt.cli import options
from ranktilt.cli.generate import INCOMPLETE, ModelOptions, show_estimate
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, collection_files, with_sidecars
from ranktilt.errors import UserError, counted
from ranktilt.judging.grading_settings import Grading
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.collection import Collection
    from ranktilt.judging.grading import Grades
    from ranktilt.judging.probes import JudgeProbes
    from ranktilt.judging.result import JudgeAudit
    from ranktilt.llm.base import LLM
    from ranktilt.run import Run


_SHARED = ("seed", "text")
"""What grading has in common with ranking and statistics."""


@dataclass(frozen=True)
class JudgeModel(ModelOptions):
    """A language model that grades, where one is asked."""

    llm: Annotated[
        str | None, Option("Model that grades: openai:NAME or transformers:FOLDER.", "MODEL")
    ] = None  # type: ignore[assignment]

    def check(self, grading: Mapping[str, Any], **unread: object) -> None:
        """Refuse options of a model where none is asked."""
        if self.llm is not None:
            return
        flags = options.FieldsOf(Grading, _SHARED).flags(grading)
        named = [f"--{name.replace('_', '-')}" for name, value in unread.items() if value]
        if alone := [*self.changed(), *flags, *named]:
            raise UserError(f"{alone[0]} needs a model: --llm openai:MODEL")


@dataclass(frozen=True)
class JudgeInputs(options.OptionGroup):
    """Grades of humans and judges, and the systems that both evaluate."""

    panel = "Input"

    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR", help="A collection, for its sources and judgments (optional)."
        ),
    ] = None
    judge: Annotated[
        list[Path] | None, Option("A judge's grades, as qrels; several may be given.", "FILE")
    ] = None
    human: Annotated[
        Path | None, Option("Human grades, as qrels (default: the collection's).", "FILE")
    ] = None
    runs: Annotated[
        list[Path] | None,
        Option("Runs that both judges evaluate: files, or folders of them.", "FILE|DIR"),
    ] = None
    score_order: options.ScoreOrder = None
    ranker: options.Rankers = None
    scores: Annotated[
        list[Path] | None,
        Option(
            "Values of systems per query (trec_eval -q, gdeval, ndeval), in place of grades and runs: "
            "first under human grades, then under each judge's; a file, or a folder with a file a system.",
            "FILE|DIR",
        ),
    ] = None
    systems: Annotated[
        Path | None,
        Option(
            "Family of each run: two columns, run and family. Asks whom a judge favours.", "FILE"
        ),
    ] = None
    split: options.Split = None

    @property
    def run_files(self) -> list[Path]:
        """Every run, those of folders by name."""
        found = list[Path]()
        for path in self.runs or ():
            inside = (
                sorted(file for file in path.iterdir() if _is_run(file))
                if path.is_dir()
                else [path]
            )
            if not inside:
                raise UserError(f"--runs {path}: no run in this folder")
            found += inside
        return found

    @property
    def files(self) -> list[Path]:
        named = [self.human, self.systems]
        given = [*(self.judge or ()), *self.run_files, *(self.scores or ())]
        return [*collection_files(self.folder), *given, *(path for path in named if path)]

    def check_scores(self, **unread: object) -> None:
        """Refuse what values per query leave unread; `unread` are options that are not among these."""
        files = {
            "DIR": self.folder,
            "--human": self.human,
            "--judge": self.judge,
            "--runs": self.runs,
        }
        options_given = {f"--{name.replace('_', '-')}": value for name, value in unread.items()}
        for name, value in {
            **files,
            "--ranker": self.ranker,
            "--split": self.split,
            **options_given,
        }.items():
            if value:
                raise UserError(
                    f"{name} with --scores: values per query are given, so no grades or runs are read"
                )
        if len(self.scores or ()) < 2:
            raise UserError(
                "--scores: name two files or more, first the values under human grades, then each judge's"
            )

    def check(self, *, asks: bool) -> None:
        """Refuse options that nothing would read; `asks`: whether a model makes grades."""
        if asks and self.folder is None:
            raise UserError("--llm grades texts: name a collection DIR")
        if not asks and not self.judge:
            raise UserError(
                "no judge: name its grades (--judge FILE), a model that makes them (--llm openai:MODEL), or values of "
                "systems under humans and under it (--scores FILE --scores FILE)"
            )
        if self.folder is None and self.human is None and not asks:
            raise UserError(
                "no human grades: name a file (--human FILE), or a collection DIR with judgments"
            )
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


ProbePairs = Annotated[
    int | None,
    Option(
        "Also let the model grade N passages of grade 0 with query words, padding or an instruction in them.",
        "N",
        min=1,
        panel="Model",
    ),
]


@options.verb(
    "judge --human human.qrels --judge judge.qrels --runs runs/ --systems systems.tsv",
    "judge --scores human.ndcgeval --scores judge.ndcgeval",
    "judge DIR --llm openai:MODEL --runs runs/ --dry-run",
)
def judge(
    *,
    inputs: JudgeInputs,
    model: JudgeModel,
    grading: Annotated[dict[str, Any], options.FieldsOf(Grading, _SHARED, "Model")],
    save_grades: Annotated[
        Path | None, Option("Save the model's grades as qrels.", "FILE", panel="Output")
    ] = None,
    probe_pairs: ProbePairs = None,
    dry_run: options.DryRun = False,
    price: options.Price = None,
    measure: options.Measures = None,
    pair: Annotated[
        str | None, Option("Sources of twins; positive gaps favour the first.", "A,B")
    ] = None,
    relevant_from: Annotated[
        int, Option("Smallest grade that counts as relevant, for binary κ.", "N", min=1)
    ] = 1,
    top_grade: Annotated[
        int | None,
        Option(
            "Highest grade of the scale from 0 (default: the highest human grade; 3 with --llm).",
            "N",
            min=1,
        ),
    ] = None,
    human_sample: Annotated[
        int | None,
        Option("Show what N human labels would repair of the judge's numbers.", "N", min=1),
    ] = None,
    correction: options.Correction = "holm",
    resamples: options.Resamples = 10_000,
    seed: options.Seed = 0,
    neural: options.SearchOptions,
    output: PageOutput,
) -> int:
    """Say whom a judge's grades favour: a source on twins, a family of systems, and whether systems change places.

    With --llm a language model grades first: the top of each run, or what the collection judges.
    Exit 1 if some pairs got no answer; the same command again asks only for these.
    """
    model.check(
        grading, dry_run=dry_run, price=price, save_grades=save_grades, probe_pairs=probe_pairs
    )
    if inputs.scores:
        relevant = relevant_from if relevant_from != 1 else None
        unread = {
            "human_sample": human_sample,
            "pair": pair,
            "top_grade": top_grade,
            "relevant_from": relevant,
        }
        inputs.check_scores(llm=model.llm, **unread)
        output.check(*inputs.files)
        output.deliver(_judge_scores(inputs, measure, resamples=resamples, seed=seed))
        return 0
    inputs.check(asks=model.llm is not None)
    prices = options.read_price(price, dry_run=dry_run)
    pairs = options.read_pairs(None if pair is None else [pair])
    output.check(*inputs.files, also=with_sidecars({"--save-grades": save_grades}))
    from ranktilt.judging.family_preference import read_families
    from ranktilt.judging.judge import MEASURES, named_judges
    from ranktilt.judging.judge import judge as run_judge
    from ranktilt.run import named_apart

    families = None if inputs.systems is None else read_families(inputs.systems)
    collection = inputs.load()
    runs = named_apart(_runs(inputs, collection, neural))
    judges: dict[str, Any] = named_judges(inputs.judge or [])
    grades: Grades | None = None
    probed: list[JudgeProbes] = []
    if model.llm is not None and collection is not None:
        how = Grading(**grading, seed=seed, text=neural.text or Grading.text)
        client = model.client(neural.device)
        if dry_run:
            from ranktilt.judging.grading_plan import plan_grades

            show_estimate(
                plan_grades(collection, client, how, runs=runs), client, prices, model, None
            )
            return 0
        grades = _graded(collection, client, how, runs, save_grades)
        judges[grades.judge] = grades
        if probe_pairs is not None:
            from ranktilt.judging.probes import probe_judge

            probed = [
                probe_judge(
                    collection, client, how, pairs=probe_pairs, seed=seed, resamples=resamples
                )
            ]
        if inputs.human is None and not collection.qrels.height:
            note("no human grades to hold them against: --human FILE")
            return INCOMPLETE if grades.unanswered else 0
    output.deliver(
        run_judge(
            judges,
            inputs.human,
            collection=collection,
            runs=runs,
            families=families,
            measures=measure or MEASURES,
            pair=None if pairs is None else pairs[0],
            relevant=relevant_from,
            top_grade=top_grade,
            human_sample=human_sample,
            probed=probed,
            correction=correction,
            resamples=resamples,
            seed=seed,
        )
    )
    return INCOMPLETE if grades is not None and grades.unanswered else 0


def _judge_scores(
    inputs: JudgeInputs, measures: list[str] | None, *, resamples: int, seed: int
) -> JudgeAudit:
    """Compare systems from their values per query, the first file under human grades."""
    from ranktilt.judging.family_preference import read_families
    from ranktilt.judging.judge_scores import judge_scores

    human, *judges = inputs.scores or []
    return judge_scores(
        human,
        judges,
        measures=measures,
        families=None if inputs.systems is None else read_families(inputs.systems),
        resamples=resamples,
        seed=seed,
    )


def _graded(
    collection: Collection, client: LLM, how: Grading, runs: list[Run], target: Path | None
) -> Grades:
    """Let the model grade, keep the grades, and say what became of the requests."""
    from ranktilt.judging.grading import grade, save_grades

    grades = grade(collection, client, how, runs=runs)
    note_grades(grades)
    if target is not None:
        save_grades(grades, target)
    return grades


def note_grades(grades: Grades) -> None:
    """Say what became of the requests for grades."""
    counts = grades.counts
    note(
        f"{grades.judge}: {counts.graded:,} of {counted(counts.pairs, 'pair', 'pairs')} graded; "
        f"{counted(counts.fresh, 'answer', 'answers')} asked for"
    )
    if grades.unanswered:
        message = next(iter(grades.messages), "")
        unanswered = counted(grades.unanswered, "request", "requests")
        note(f"{unanswered} got no answer ({message}); the same command again asks only for these")


def _runs(
    inputs: JudgeInputs, collection: Collection | None, neural: options.SearchOptions
) -> list[Run]:
    """Runs from files, and those of rankers."""
    from ranktilt.run import Run

    stored = [Run.load(path, score_order=inputs.score_order) for path in inputs.run_files]
    if collection is None or not inputs.ranker:
        return stored
    return [
        *stored,
        *options.rank_with(
            neural.rankers(inputs.ranker, score_order=inputs.score_order), collection
        ),
    ]
