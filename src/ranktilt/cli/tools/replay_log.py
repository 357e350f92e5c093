"""``ranktilt tools replay-log``: what an LLM ranker's stored answers say.

A *log* holds the answers of a language model that was asked to order *candidates*, the documents
that a first stage such as BM25 returned. Its *parser* is the code that made a ranking of each
answer, and so may add effects of its own, for example where it appends documents that the answer
leaves out. The *published run* has these rankings; in the *strict run*, only unambiguous answers
count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, OUTPUT, QUESTION, verb
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.cli.tools.group import tools
from ranktilt.data.files import sidecar
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.auditing.replay_log.result import ReplayedLog
    from ranktilt.auditing.replay_log.runs import LogRuns
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run

SAVED = ("published", "strict")
"""The runs that ``--save`` writes."""
FAILED = 1
"""Exit status where more answers failed than allowed."""


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class ReplayInputs:
    """The candidates, and the collection that they come from."""

    candidates: Annotated[
        Path,
        Parameter(
            help="First-stage lists: a run, or rank_llm's JSON with texts.",
            metavar="RUN",
        ),
    ]
    folder: Annotated[
        Path | None,
        Parameter(
            name="--collection",
            help="Collection with texts, judgments and groups; optional if --candidates has texts.",
            metavar="DIR",
        ),
    ] = None
    score_order: options.ScoreOrder = None
    qrels: options.Qrels = None
    split: options.Split = None

    def files(self, labels: LabelOptions) -> list[Path]:
        """Return the files that are read, which no output may replace."""
        files = [self.candidates, *collection_files(self.folder)]
        files += [] if labels.labels is None else [Path(labels.labels.path)]
        return files if self.qrels is None else [*files, file_of(self.qrels)]

    def check(self) -> None:
        """Refuse a split without a collection that has it."""
        if self.split is not None and self.folder is None:
            raise UserError(
                "--split needs a collection (--collection DIR); or name a judgment file: --qrels "
                "FILE"
            )

    def load(self) -> tuple[Collection, Run]:
        """Return the collection, and the run of the candidates.

        Without ``--collection``, the candidates are the collection.
        """
        candidates, run = self._load_candidates()
        return candidates if self.folder is None else self._load_collection(self.folder), run

    def _load_collection(self, folder: Path) -> Collection:
        """Load the collection that has texts, judgments and groups; it may have no judgments."""
        from ranktilt.data.loading.load import NO_QRELS, load

        qrels = self.qrels
        if qrels is None and options.without_judgments(folder, self.split):
            qrels = NO_QRELS
        return load(folder, split=self.split, qrels=qrels, ignore_unknown=True)

    def _load_candidates(self) -> tuple[Collection, Run]:
        """Read the candidates as a collection and as a run; a file of ids gives empty texts."""
        from ranktilt.data.loading.load import NO_QRELS
        from ranktilt.data.runs.rank_llm import holds_texts, read_candidates
        from ranktilt.data.runs.run import Run

        qrels = None if self.qrels == NO_QRELS else self.qrels
        if holds_texts(self.candidates):
            if self.score_order is not None:
                raise UserError(
                    f"--score-order: {self.candidates} is no run; its documents are in order"
                )
            return read_candidates(self.candidates, qrels=qrels)
        run = Run.load(self.candidates, score_order=self.score_order)
        return _collection_of_ids(run, self.candidates, qrels), run


@Parameter(name="*", group=QUESTION)
@dataclass(frozen=True, kw_only=True)
class ReplayQuestion:
    """Groups to compare, measures, and the share of answers that may fail."""

    by: Annotated[
        str | None,
        Parameter(
            help="Column whose groups to compare (default: several sources); none for no groups.",
            metavar="COLUMN",
        ),
    ] = None
    pair: Annotated[
        list[str] | None,
        Parameter(help="Groups to compare (default: all pairs).", metavar="A,B"),
    ] = None
    measure: options.Measures = None
    max_failures: options.MaxFailures = None

    def check(self, labels: LabelOptions) -> None:
        """Refuse pairs that cannot be read, and labels where no groups are compared."""
        options.read_pairs(self.pair)
        if self.by == "none":
            unread = {
                "--pair": self.pair,
                "--groups": labels.groups,
                "--name": labels.name,
                "--reference": labels.reference,
            }
            options.refuse_unread(unread, "--by none compares no groups; omit one of them")

    def pairs_to_compare(
        self, collection: Collection, labels: LabelOptions
    ) -> options.Pairs | None:
        """Return the pairs of groups to compare, the reference first; None for all pairs."""
        pairs = options.read_pairs(self.pair)
        if labels.reference:
            return labels.reference_first(collection, self._column(collection), pairs)
        return pairs

    def split_effects(
        self, replayed: LogRuns, collection: Collection, pairs: options.Pairs | None
    ) -> ReplayedLog:
        """Split measures of the published run into the parts of input order, model and parser.

        Parameters
        ----------
        replayed : LogRuns
            The rankings that the log gives: the published one, and others to compare it with.
        collection : Collection
            The texts, judgments and groups of the candidates.
        pairs : list of (str, str) or None
            Pairs of groups to compare; None for all pairs.
        """
        from ranktilt.auditing.replay_log.replay_log import replay_log

        statistics = statistics_settings()
        return replay_log(
            replayed,
            collection,
            self.measure or None,
            by=self._column(collection),
            pairs=pairs,
            max_failures=self.max_failures,
            resamples=statistics.resamples,
            seed=statistics.seed,
            correction=statistics.correction,
        )

    def _column(self, collection: Collection) -> str | None:
        """Return the column of the groups; None for no groups.

        Unless ``--by`` names a column or none, sources are compared where there are several.
        """
        if self.by is None:
            return "source" if len(collection.sources) > 1 else None
        return None if self.by == "none" else self.by


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class ReplaySaving:
    """Where the published and the strict run are saved."""

    save: Annotated[
        Path | None,
        Parameter(
            help="Save the published and the strict runs in this folder, in TREC format.",
            metavar="DIR",
        ),
    ] = None

    @property
    def files(self) -> dict[str, Path | None]:
        """Files that are written, by the option that names their folder."""
        paths = list(self._paths().values())
        written = [*paths, *map(sidecar, paths)]
        return {f"--save, {path.name}": path for path in written}

    def contents(self, replayed: LogRuns) -> dict[Path | str | None, Callable[[], bytes]]:
        """Return functions that give the content of each file; none where nothing is saved."""
        files: dict[Path | str | None, Callable[[], bytes]] = {}
        for name, path in self._paths().items():
            for file, content in replayed.runs[name].contents(path).items():
                files[file] = partial(bytes, content)
        return files

    def _paths(self) -> dict[str, Path]:
        """Return the files of the runs by the run's name; none without a folder."""
        if self.save is None:
            return {}
        return {name: self.save / f"{name}.trec" for name in SAVED}


@verb(
    "replay-log",
    "tools replay-log calls.json --candidates bm25.trec --collection DIR",
    "tools replay-log calls.json --candidates requests.json --groups labels.csv",
    arguments="LOG",
    parent=tools,
)
def replay_log(
    log: Annotated[
        Path,
        Parameter(
            name="LOG", help="Stored calls: rank_llm's JSON, or lines of query, ids and answer."
        ),
    ],
    /,
    *,
    inputs: ReplayInputs,
    labels: LabelOptions = LabelOptions(),
    question: ReplayQuestion = ReplayQuestion(),
    saving: ReplaySaving = ReplaySaving(),
    output: PageOutput = PageOutput(),
) -> int:
    """Separate what an LLM ranker ranked from what its parser did.

    Each stored answer gets a type. The published run is made again as RankGPT and rank_llm read
    answers, and split into the input order, the model's part and the parser's part. You need no
    model.
    """
    from ranktilt.auditing.replay_log.runs import log_runs

    output.check(log, *inputs.files(labels), also=saving.files)
    question.check(labels)
    inputs.check()
    collection, candidates = inputs.load()
    collection = labels.labelled(collection, question.by or "source")
    pairs = question.pairs_to_compare(collection, labels)
    replayed = log_runs(log, candidates, collection, seed=statistics_settings().seed)
    result = question.split_effects(replayed, collection, pairs)
    output.deliver(result, saving.contents(replayed))
    return 0 if result.passed else FAILED


def _collection_of_ids(run: Run, file: Path, qrels: str | None) -> Collection:
    """Return a collection with the ids of a run's documents and queries, whose texts are empty."""
    import polars as pl

    from ranktilt.data.collection import Collection
    from ranktilt.data.formats.judgments.qrels import read_qrels

    no_judgments = pl.DataFrame(
        schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    )
    judgments = read_qrels(qrels).drop("line") if qrels else no_judgments
    text_schema = {"id": pl.String, "text": pl.String}
    docs = pl.DataFrame({"id": run.ids, "text": ""}, schema=text_schema)
    queries = pl.DataFrame({"id": run.queries, "text": ""}, schema=text_schema)
    return Collection(docs, queries, judgments, {"files": [str(file)]})
