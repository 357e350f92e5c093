"""``ranktilt explain``: how the texts of both sides differ, and what goes with a ranker's gap.

A *gap* is how differently a ranker or a run treats the two sides: twins, which are versions of one
text, or groups of documents without twins. A *probe* measures a property of texts. To *attribute* a
gap is to say which properties of the texts go with it. A *factor* is a property that a *designed*
collection varies, such as length; its versions of a text differ in nothing else, so a difference in
rank is caused by it. An audit of citations has a gap too: between the citation rates of two sides.

The question decides which function of the room `explaining` answers: factors (``--by-factor``),
twins, or groups without twins.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from cyclopts import Parameter

from ranktilt.cli import completion, options
from ranktilt.cli.app import INPUT, MODEL, QUESTION, UNDERSTAND, resolve_types, verb
from ranktilt.cli.audit.from_audit import (
    audit_to_correct,
    is_citation_audit,
    note_label_errors,
)
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.rankers import rank_with, read_rankers
from ranktilt.cli.saved_runs import SavedRunOptions
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError
from ranktilt.sizes import read_points

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.explaining.explanation import Explanation
    from ranktilt.explaining.factors.result import FactorEffects
    from ranktilt.explaining.properties.result import ExplainedGaps
    from ranktilt.rankers.base import Ranker

_Explained = TypeVar("_Explained", "Explanation", "ExplainedGaps")
"""An explanation of twins' texts, or of gaps between groups."""


@resolve_types
@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class ExplainInputs(LabelOptions, SavedRunOptions):
    """Documents to examine, and the rankers and runs whose gap is explained."""

    folder: Annotated[Path | None, Parameter(parse=False)] = None
    """The verb's positional argument."""
    ranker: options.Rankers = None
    split: options.Split = None
    encoder: Annotated[
        str | None,
        Parameter(
            help="Encoder whose vectors to examine, such as dense:minilm.",
            metavar="SPEC",
            group=MODEL,
        ),
    ] = None
    text: options.Text = None

    @property
    def files(self) -> list[Path]:
        """Files that are read."""
        paths = [run_file.text for run_file in self.run_files]
        paths += [self.labels.path] if self.labels else []
        paths += [str(self.queries)] if self.queries is not None else []
        return [*collection_files(self.folder), *map(file_of, paths)]

    def check(self) -> None:
        """Refuse inputs without texts or labels, and options that nothing would read."""
        if self.folder is None and self.ranker:
            raise UserError(f"ranker {self.ranker[0]!r} needs texts: name a collection DIR")
        if not (self.groups and self.run):
            self.require_folder()
        if self.folder is None and self.split is not None:
            raise UserError("--split needs a collection DIR")
        if self.text is not None and not (self.ranker or self.encoder):
            raise UserError("--text needs a ranker or an encoder: name one with -r or --encoder")
        if not self.run and (self.score_order or self.queries):
            option = "--score-order" if self.score_order else "--queries"
            raise UserError(f"{option} needs a run: --run FILE")

    def require_folder(self) -> Path:
        """Return the folder of the collection; refuse to go on without one."""
        if self.folder is None:
            raise UserError("name a collection DIR; without one: --groups FILE and --run FILE")
        return self.folder

    def load_texts(self) -> Collection:
        """Load the collection for its texts; it need not have judgments."""
        return options.load_texts(self.require_folder(), self.split)

    def load_documents(self, by: str, runs: list[Run]) -> Collection:
        """Load the documents with the columns of the label file.

        Parameters
        ----------
        by : str
            The column of their groups.
        runs : list of Run
            Runs whose documents are taken where no folder is named; these have no texts.
        """
        from ranktilt.data.labels.labels import labelled, with_labels

        if self.folder is None:
            return labelled(self.labels or "", runs, by=by)
        collection = self.load_texts()
        if self.labels is None:
            return self.labelled(collection, by)
        return with_labels(collection, self.labels, by=by, other_columns=True)

    def read_rankers(self) -> list[Ranker]:
        """Return the rankers of ``-r``."""
        return read_rankers(self.ranker or (), text=self.text)

    def read_encoder(self) -> Ranker | None:
        """Return the encoder whose vectors are examined; None where none is named."""
        return read_rankers([self.encoder], text=self.text)[0] if self.encoder else None

    def words_with_texts(self, by: str) -> list[str]:
        """Return the command that explains the same runs with the texts of a folder DIR.

        `by` is the column of the groups.
        """
        words = ["ranktilt", "explain", "DIR"]
        for path in self.run or ():
            words += ["--run", str(path)]
        words += ["--score-order", self.score_order] if self.score_order is not None else []
        words += ["--queries", str(self.queries)] if self.queries is not None else []
        words += self.labels.words if self.labels else []
        words += ["--by", by] if by != "source" else []
        words += ["--reference", self.reference] if self.reference is not None else []
        return words


@Parameter(name="*", group=QUESTION)
@dataclass(frozen=True, kw_only=True)
class ExplainQuestion:
    """Which differences of texts are measured, and whether a gap or factors are explained."""

    probe: Annotated[
        list[str] | None,
        Parameter(
            help='A probe, such as overlap, perplexity:MODEL or "perplexity:MODEL(every=0)", or '
            "a column of numbers (default: all that can run).",
            metavar="NAME",
            completer=completion.probes,
        ),
    ] = None
    attribution: Annotated[
        bool,
        Parameter(help="Show which properties of the texts go with the gap of each ranker or run."),
    ] = False
    by_factor: Annotated[
        bool,
        Parameter(
            help="Show how each factor of a designed collection (generate versions) changes "
            "ranks, for each -r.",
        ),
    ] = False
    adopters: Annotated[
        str | None,
        Parameter(
            help="With --by-factor: percentages of other documents that make an edit too, such as "
            "0,10,50,100.",
            metavar="X,Y",
        ),
    ] = None
    by: Annotated[
        str | None,
        Parameter(
            help="Column whose groups to compare (default: source).",
            metavar="COLUMN",
        ),
    ] = None

    @property
    def column(self) -> str:
        """The column whose groups are compared."""
        return "source" if self.by is None else self.by

    @property
    def is_about_factors(self) -> bool:
        """Whether the factors of a designed collection are asked about."""
        return self.by_factor or self.adopters is not None

    def check_factors(self, inputs: ExplainInputs) -> None:
        """Refuse ``--by-factor`` without a ranker, and options that it would not read."""
        if not self.by_factor:
            raise UserError("--adopters needs --by-factor")
        if not inputs.ranker:
            raise UserError("--by-factor needs rankers: name one or more with -r")
        if self.probe or self.attribution or inputs.encoder or inputs.run or inputs.groups:
            raise UserError(
                "--by-factor examines no texts: omit --probe, --encoder, --attribution, --run and "
                "--groups"
            )
        unread = {
            "--by": self.by,
            "--reference": inputs.reference,
            "--name": inputs.name,
            "--score-order": inputs.score_order,
            "--queries": inputs.queries,
        }
        options.refuse_unread(unread, "--by-factor compares the levels of each factor; omit it")

    def check_gaps(self, inputs: ExplainInputs) -> None:
        """Refuse ``--attribution`` without a ranker or run, and a ranker without a question."""
        inputs.check()
        if self.attribution and not (inputs.ranker or inputs.run):
            raise UserError(
                "--attribution needs rankers or runs: name one or more with -r or --run"
            )
        if inputs.ranker and not self.attribution and not inputs.run:
            raise UserError(
                "-r needs a question: --attribution (which properties of the texts go with the "
                "ranker's gap) or --by-factor; to examine an encoder's vectors: --encoder SPEC"
            )

    def explain_factors(self, inputs: ExplainInputs) -> FactorEffects:
        """Measure what each factor of a designed collection causes, for each ranker."""
        from ranktilt.explaining.factors.effects import factor_effects

        percentages = self._adopter_percentages()
        designed = inputs.load_texts()
        return factor_effects(designed, inputs.read_rankers(), adopters=percentages)

    def explain_twins(
        self,
        collection: Collection,
        rankings: Sequence[Ranker | Run],
        *,
        encoder: Ranker | None,
        reference: str | None,
    ) -> Explanation:
        """Measure how the texts of twins differ.

        Parameters
        ----------
        collection : Collection
            Documents with twins.
        rankings : sequence of Ranker or Run
            Those whose gaps between twins are attributed to properties of the texts.
        encoder : Ranker or None
            The encoder whose vectors of the texts are compared.
        reference : str or None
            The group that the others are compared with.
        """
        from ranktilt.explaining.explain import explain

        return explain(
            collection,
            self.probe,
            encoder,
            reference=reference,
            by=self.column,
            attribute=rankings,
        )

    def explain_groups(
        self, collection: Collection, runs: list[Run], inputs: ExplainInputs
    ) -> ExplainedGaps:
        """Show which properties of the texts go with each run's gap between groups."""
        from ranktilt.explaining.properties.gaps import explain_gaps

        statistics = statistics_settings()
        return explain_gaps(
            collection,
            runs,
            self.probe,
            by=self.column,
            pairs=inputs.reference_first(collection, self.column, None),
            seed=statistics.seed,
            correction=statistics.correction,
        )

    def _adopter_percentages(self) -> list[float]:
        """Read ``0,10,50,100``: percentages of other documents that make an edit too."""
        if self.adopters is None:
            return []
        texts = self.adopters.split(",")
        return [read_points(text, "--adopters", most=100, example=10) for text in texts]


@verb(
    "explain",
    "explain DIR -o texts.html",
    "explain DIR --attribution -r bm25 -r dense:minilm",
    "explain --groups labels.csv --run run.trec",
    arguments="[DIR]",
    panel=UNDERSTAND,
)
def explain(
    folder: Annotated[
        Path | None,
        Parameter(
            name="DIR",
            help="A collection in the layout of BEIR, Cocktail or the papers, or an audit to "
            "explain (FILE.json). Not needed with --run and --groups.",
        ),
    ] = None,
    /,
    *,
    inputs: ExplainInputs = ExplainInputs(),
    question: ExplainQuestion = ExplainQuestion(),
    output: PageOutput = PageOutput(),
) -> None:
    """Show how the two sides' texts differ, and what goes with the gap.

    Probes examine the texts. --attribution shows which of their properties go with the gap of a
    ranker (-r) or a run (--run), within the lists: between twins, or between groups if there are
    none.

    For a collection of designed versions, --by-factor shows what each factor causes.

    For an audit of citations (ranktilt cite --json), it shows which properties of pages go with
    the gap between their citation rates: columns of numbers, the search rank, and texts (a column
    text) of the label file.
    """
    inputs = replace(inputs, folder=folder)
    if folder is not None and folder.is_file() and is_citation_audit(folder):
        _explain_citations(folder, inputs, question, output)
        return
    output.check(*inputs.files)
    if question.is_about_factors:
        question.check_factors(inputs)
        output.deliver(question.explain_factors(inputs))
        return
    question.check_gaps(inputs)
    runs = inputs.load_runs()
    rankers = inputs.read_rankers()
    encoder = inputs.read_encoder()
    collection = inputs.load_documents(question.column, runs)
    from ranktilt.explaining.properties.gaps import are_mostly_twins
    from ranktilt.explaining.properties.values import NoPropertiesError

    if not (rankers or runs) or are_mostly_twins(collection, question.column):
        explanation = question.explain_twins(
            collection, [*rankers, *runs], encoder=encoder, reference=inputs.reference
        )
        output.deliver(_with_audit_file(explanation))
        return
    if encoder is not None:
        raise UserError("--encoder compares the vectors of twins, but these groups have no twins")
    all_runs = [*rank_with(rankers, collection), *runs]
    try:
        output.deliver(_with_audit_file(question.explain_groups(collection, all_runs, inputs)))
    except NoPropertiesError as error:
        if folder is not None:
            raise
        # The labels hold no column of numbers; texts would have properties to compare.
        command = shlex.join(inputs.words_with_texts(question.column))
        raise UserError(f"{error}; or name a folder DIR with the texts: {command}") from error


def _with_audit_file(explanation: _Explained) -> _Explained:
    """Return an explanation whose spec names the audit's file that it was made from, if any."""
    file = audit_to_correct()
    if not file:
        return explanation
    return replace(explanation, spec={**explanation.spec, "audit_file": file})


def _explain_citations(
    file: Path, inputs: ExplainInputs, question: ExplainQuestion, output: PageOutput
) -> None:
    """Explain an audit of citations (`file`) with columns and texts of its pages.

    Of the verb's options, only ``--probe``, those of labels and those of the output are read; the
    others are refused.
    """
    from ranktilt.citing.explain import explain_citations
    from ranktilt.citing.result import CitationAudit

    _refuse_options_of_rankings(inputs, question)
    label_file = inputs.labels
    output.check(file, *([] if label_file is None else [file_of(label_file.path)]))
    statistics = statistics_settings()
    audit = CitationAudit.load(file)
    note_label_errors(file, audit, "explain")
    gaps = explain_citations(
        audit,
        label_file,
        question.probe or None,
        seed=statistics.seed,
        correction=statistics.correction,
    )
    output.deliver(gaps)


def _refuse_options_of_rankings(inputs: ExplainInputs, question: ExplainQuestion) -> None:
    """Refuse options that only a collection, a ranker or a run could use."""
    if question.by_factor:
        raise UserError(
            "--by-factor reads answers, not their audit: ranktilt cite ANSWERS --groups DIR "
            "--by-factor, with the collection of versions in DIR"
        )
    unread = {
        "--attribution": question.attribution,
        "--adopters": question.adopters,
        "--by": question.by,
        "-r": inputs.ranker,
        "--run": inputs.run,
        "--score-order": inputs.score_order,
        "--queries": inputs.queries,
        "--split": inputs.split,
        "--encoder": inputs.encoder,
        "--text": inputs.text,
        "--reference": inputs.reference,
    }
    reason = "an audit of citations is explained by --probe and the columns of --groups alone"
    options.refuse_unread(unread, reason)
    if inputs.groups is None:
        options.refuse_unread({"--name": inputs.name}, "it needs labels: --groups FILE")
