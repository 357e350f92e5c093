"""``ranktilt judge``: whom judgments made by language models favour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MODEL, OUTPUT, QUESTION, SELDOM, UNDERSTAND, verb
from ranktilt.cli.generate import INCOMPLETE, Truncate, show_estimate
from ranktilt.cli.language_models import language_model
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, collection_files, with_sidecars
from ranktilt.cli.rankers import rank_with, read_rankers
from ranktilt.cli.settings import settings
from ranktilt.cli.statistics_options import resampling, sampling_of_tests
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError, counted
from ranktilt.judging.grading_settings import Grading

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.run import Run
    from ranktilt.judging.grading import Grades
    from ranktilt.judging.probes import JudgeProbes
    from ranktilt.judging.result import JudgeAudit
    from ranktilt.judging.system_groups import SystemGroups
    from ranktilt.llm.base import LLM


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class GradingOptions:
    """A language model that grades, and what it is asked."""

    llm: options.LanguageModel = None
    prompt: Annotated[
        str | None,
        Parameter(
            help="umbrela (default), basic, rubric, or a file with {query} and {passage}.",
            metavar="NAME|FILE",
        ),
    ] = None
    pool: Annotated[
        int | None,
        Parameter(
            help="Grade the top K documents of each run (default: 20).",
            metavar="K",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    limit: Annotated[
        int | None,
        Parameter(
            help="Grade only the first N pairs, for a trial.",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    probe_pairs: Annotated[
        int | None,
        Parameter(
            help="Also let the model grade N passages of grade 0 with query words, padding or an "
            "instruction in them.",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    save_grades: Annotated[
        Path | None,
        Parameter(help="Save the model's grades as qrels.", metavar="FILE", group=OUTPUT),
    ] = None
    batch: options.Batch = False
    dry_run: options.DryRun = False
    price: options.Price = None
    repeats: Annotated[
        int | None,
        Parameter(
            help="Grade each pair this often; the median counts (default: 1).",
            metavar="N",
            group=SELDOM,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    truncate: Truncate = False

    def check(self) -> None:
        """Refuse options of a model where none is asked."""
        if self.llm is not None:
            return
        flag = options.first_typed(**{**vars(self), "llm": None})
        if flag is not None:
            raise UserError(f"{flag} needs a model: --llm openai:MODEL")

    def grading(self, sampling: Mapping[str, Any], text: options.Fields | None) -> Grading:
        """Return how the model is asked.

        `sampling` is what its text says about how answers are drawn, `text` the part of a document
        that it reads.
        """
        grading = Grading(
            prompt=self.prompt or Grading.prompt,
            pool=self.pool or Grading.pool,
            repeats=self.repeats or Grading.repeats,
            text=text or Grading.text,
            truncate=self.truncate,
            first=self.limit,
        )
        return grading.with_sampling(sampling)


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
            help="A judge's grades: qrels, CSV, JSON, Parquet or an evaluation's log; several may "
            "be given.",
            metavar="FILE",
        ),
    ] = None
    human: Annotated[
        Path | None,
        options.FILE_OR_STDIN,
        Parameter(help="Human grades, likewise (default: the collection's).", metavar="FILE"),
    ] = None
    runs: Annotated[
        list[Path] | None,
        Parameter(
            help="Runs that both judges evaluate: files, or folders of them.", metavar="FILE|DIR"
        ),
    ] = None
    ranker: options.Rankers = None
    systems: Annotated[
        Path | None,
        Parameter(
            help="Family of each run, and of repeats their cluster: columns run, family, cluster "
            "(tabs or commas). Asks whom a judge favours; a cluster counts as one system.",
            metavar="FILE",
        ),
    ] = None
    scores: Annotated[
        list[Path] | None,
        Parameter(
            help="Values of systems per query (trec_eval -q, gdeval, ndeval), in place of grades "
            "and runs: first under human grades, then under each judge's; a file, or a folder "
            "with a file a system.",
            metavar="FILE|DIR",
        ),
    ] = None
    split: options.Split = None
    score_order: options.ScoreOrder = None

    @property
    def run_files(self) -> list[Path]:
        """Every run, those of folders by name."""
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
        """Every file that is read, so that no output replaces one."""
        paths = [*(self.judge or ()), *self.run_files, *(self.scores or ())]
        paths += [path for path in (self.human, self.systems) if path]
        return [*collection_files(self.folder), *map(file_of, paths)]

    def check_scores(self, **unread: object) -> None:
        """Refuse inputs that values per query leave unread; `unread` are further options."""
        unread_inputs: dict[str, object] = {
            "DIR": self.folder,
            "--human": self.human,
            "--judge": self.judge,
            "--runs": self.runs,
            "--ranker": self.ranker,
            "--split": self.split,
        }
        for name, value in unread.items():
            unread_inputs[f"--{name.replace('_', '-')}"] = value
        for name, value in unread_inputs.items():
            if value:
                raise UserError(
                    f"{name} with --scores: values per query are given, so no grades or runs are "
                    "read"
                )
        if len(self.scores or ()) < 2:
            raise UserError(
                "--scores: name two files or more, first the values under human grades, then each "
                "judge's"
            )

    def check(self, *, asks: bool) -> None:
        """Refuse options that nothing would read; `asks`: whether a model makes grades."""
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
        if self.systems is not None and not self.runs and not self.ranker:
            raise UserError("--systems needs runs (--runs DIR)")

    def read_groups(self) -> SystemGroups:
        """Return the families and clusters of runs; none where no file names them."""
        from ranktilt.judging.system_groups import SystemGroups, read_systems

        return SystemGroups() if self.systems is None else read_systems(self.systems)

    def load(self) -> Collection | None:
        """Load the collection, if you name one."""
        return None if self.folder is None else options.load_texts(self.folder, self.split)


def _is_run(path: Path) -> bool:
    """Whether a file of a folder may be a run: no sidecar, nothing hidden."""
    return (
        path.is_file()
        and not path.name.startswith(".")
        and not path.name.endswith((".trec.json", ".run.json", ".gz.json"))
    )


@verb(
    "judge",
    "judge --human human.qrels --judge judge.qrels --runs runs/",
    "judge --scores human.ndcgeval --scores judge.ndcgeval",
    "judge DIR --llm openai:MODEL --runs runs/ --dry-run",
    arguments="[DIR]",
    panel=UNDERSTAND,
)
def judge(
    folder: Annotated[
        Path | None,
        Parameter(name="DIR", help="A collection, for its sources and judgments (optional)."),
    ] = None,
    /,
    *,
    inputs: JudgeInputs = JudgeInputs(),
    model: GradingOptions = GradingOptions(),
    text: options.Text = None,
    measure: options.Measures = None,
    pair: Annotated[
        str | None,
        Parameter(
            help="Sources of twins; positive gaps favour the first.",
            metavar="A,B",
            group=QUESTION,
        ),
    ] = None,
    relevant_from: Annotated[
        int | None,
        Parameter(
            help="Smallest grade that counts as relevant, for binary κ (default: 1).",
            metavar="N",
            group=QUESTION,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None,
    top_grade: Annotated[
        int | None,
        Parameter(
            help="Highest grade of the scale from 0 (default: the highest human grade; 3 with "
            "--llm).",
            metavar="N",
            group=QUESTION,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None,
    human_sample: Annotated[
        int | None,
        Parameter(
            help="Show what N human labels would repair of the judge's numbers.",
            metavar="N",
            group=QUESTION,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None,
    output: PageOutput = PageOutput(),
) -> int:
    """Show whom a judge's grades favour.

    It also shows whether systems change places under the judge. A judge may favour a source, on
    twins, or a family of systems. With --llm a language model grades first: the top of each run, or
    what the collection judges. Exit 1 if some pairs got no answer; the same command again asks only
    for these.
    """
    inputs = replace(inputs, folder=folder)
    model.check()
    if inputs.scores:
        inputs.check_scores(
            llm=model.llm,
            human_sample=human_sample,
            pair=pair,
            top_grade=top_grade,
            relevant_from=relevant_from,
        )
        output.check(*inputs.files)
        output.deliver(_judge_scores(inputs, measure))
        return 0
    inputs.check(asks=model.llm is not None)
    prices = options.read_price(model.price, dry_run=model.dry_run)
    pairs = options.read_pairs(None if pair is None else [pair])
    output.check(*inputs.files, also=with_sidecars({"--save-grades": model.save_grades}))
    from ranktilt.data.run import named_apart
    from ranktilt.judging.judge import MEASURES, named_judges
    from ranktilt.judging.judge import judge as run_judge

    groups = inputs.read_groups()
    collection = inputs.load()
    runs = _runs(inputs, collection, text)
    judges: dict[str, Any] = named_judges(inputs.judge or [])
    grades: Grades | None = None
    probed: list[JudgeProbes] = []
    if model.llm is not None and collection is not None:
        spec = language_model(model.llm)
        grading = model.grading(spec.sampling, text)
        client = spec.connect(batch=model.batch, device=settings().machine.device)
        if model.dry_run:
            from ranktilt.judging.grading_inputs import prepare_grades

            show_estimate(prepare_grades(collection, client, grading, runs=runs), client, prices)
            return 0
        grades = _graded(collection, client, grading, named_apart(runs), model.save_grades)
        judges[grades.judge] = grades
        if model.probe_pairs is not None:
            from ranktilt.judging.probes import probe_judge

            probed = [
                probe_judge(
                    collection,
                    client,
                    grading,
                    pairs=model.probe_pairs,
                    **resampling(),
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
            families=groups.families,
            clusters=groups.clusters,
            measures=measure or MEASURES,
            pair=None if pairs is None else pairs[0],
            relevant=relevant_from or 1,
            top_grade=top_grade,
            human_sample=human_sample,
            probed=probed,
            **sampling_of_tests(),
        )
    )
    return INCOMPLETE if grades is not None and grades.unanswered else 0


def _judge_scores(inputs: JudgeInputs, measures: list[str] | None) -> JudgeAudit:
    """Compare systems from their values per query, the first file under human grades."""
    from ranktilt.judging.judge_scores import judge_scores

    human, *judges = inputs.scores or []
    groups = inputs.read_groups()
    return judge_scores(
        human,
        judges,
        measures=measures,
        families=groups.families,
        clusters=groups.clusters,
        **sampling_of_tests(),
    )


def _graded(
    collection: Collection, client: LLM, grading: Grading, runs: list[Run], target: Path | None
) -> Grades:
    """Let the model grade, keep the grades, and say what became of the requests."""
    from ranktilt.judging.grading import grade, save_grades

    grades = grade(collection, client, grading, runs=runs)
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
    inputs: JudgeInputs, collection: Collection | None, text: options.Fields | None
) -> list[Run]:
    """Read runs from files, and make those of rankers."""
    from ranktilt.data.run import Run

    stored = [Run.load(path, score_order=inputs.score_order) for path in inputs.run_files]
    if collection is None or not inputs.ranker:
        return stored
    rankers = read_rankers(inputs.ranker, text=text, score_order=inputs.score_order)
    return [*stored, *rank_with(rankers, collection)]
