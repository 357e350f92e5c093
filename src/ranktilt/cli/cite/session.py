"""Ask a model for answers from the documents of a run, and audit whom these answers cite.

These are the parts of ``ranktilt cite --llm``: its options, and a *session*, in which the model
answers every query. Each prompt shows the query and some documents, its *context*. A session is an
*experiment* if it asks again with something changed: the position of *twins* (two versions of one
document), or the author that is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ranktilt.citing.making.settings import AnswerMaking
from ranktilt.cli import options
from ranktilt.cli.app import MODEL, OUTPUT, QUESTION, SELDOM
from ranktilt.cli.cite.question import CitationQuestion
from ranktilt.cli.generate.requests import show_estimate
from ranktilt.cli.generate.summaries import INCOMPLETE
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.language_models import ConnectedModel
from ranktilt.cli.notes import note
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.errors import UserError, counted, unknown_name

if TYPE_CHECKING:
    from ranktilt.citing.experiment.result import ContextExperiment
    from ranktilt.citing.making.requests import GroupChoice
    from ranktilt.citing.making.session import AnswerSession
    from ranktilt.citing.result import CitationAudit
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.explaining.factors.result import FactorEffects

_ShownLabel = Literal["none", "true", "swapped"]
"""The author that a prompt names for a document: none, its own, or that of the other side."""


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """A language model that answers queries, and the documents that its prompts show."""

    llm: options.LanguageModel = None
    prompt: Annotated[
        str | None,
        Parameter(
            help="numbered (default), or a file with {documents} and {query}.",
            metavar="NAME|FILE",
        ),
    ] = None
    context: Annotated[
        int | None,
        Parameter(
            help="Documents in each prompt, the first of the run (default: 10).",
            metavar="K",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    order: Annotated[
        Literal["shuffled", "ranked"] | None,
        Parameter(help="Order of these documents (default: shuffled, anew for each repeat)."),
    ] = None
    repeats: Annotated[
        int | None,
        Parameter(
            help="Ask for each query N times (default: 1).",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    twins: Annotated[
        bool,
        Parameter(
            help="Show both versions of each document, and ask again with their positions "
            "exchanged: which version is cited?",
            group=QUESTION,
        ),
    ] = False
    by_factor: Annotated[
        bool,
        Parameter(
            help="Of versions by design (generate versions): what each factor does to being cited, "
            "and cited first. With --llm, each prompt shows one version of a document, drawn anew "
            "for each repeat.",
            group=QUESTION,
        ),
    ] = False
    show_label: Annotated[
        list[_ShownLabel] | None,
        Parameter(
            help="Show each document's author: its own, or that of the other side. Give it twice, "
            "true and swapped, to tell the effect of the label from that of the text.",
            metavar="LABEL",
            group=QUESTION,
        ),
    ] = None
    limit: Annotated[
        int | None,
        Parameter(
            help="Ask only the first N queries, for a trial.",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    text: options.Text = None
    save_answers: Annotated[
        Path | None,
        Parameter(
            help="Save the answers as JSON lines, which cite reads.", metavar="FILE", group=OUTPUT
        ),
    ] = None
    batch: options.Batch = False
    dry_run: options.DryRun = False
    price: options.Price = None
    split: Annotated[options.Split, Parameter(group=SELDOM)] = None

    def check(self) -> None:
        """Refuse options of a model where ``--llm`` names none."""
        if self.llm is not None:
            return
        # --by-factor is read with stored answers too.
        flag = options.first_typed(**{**vars(self), "llm": None, "by_factor": False})
        if flag is not None:
            raise UserError(f"{flag} needs a model: --llm openai:MODEL")

    def making(self, sampling: Mapping[str, Any]) -> AnswerMaking:
        """Return how the model is asked; options that are not typed have the library's defaults.

        `sampling` has the options in the text of the model that say how an answer is drawn, such as
        its temperature.
        """
        shown_labels = AnswerMaking.shown_labels if self.show_label is None else self.show_label
        making = AnswerMaking(
            prompt=self.prompt or AnswerMaking.prompt,
            context=self.context or AnswerMaking.context,
            order=self.order or AnswerMaking.order,
            repeats=self.repeats or AnswerMaking.repeats,
            has_twins=self.twins,
            draws_versions=self.by_factor,
            shown_labels=tuple(shown_labels),
            order_seed=statistics_settings().seed,
            text=self.text or AnswerMaking.text,
            first=self.limit,
        )
        return making.with_sampling(sampling)


@dataclass(frozen=True, kw_only=True)
class SessionAudit:
    """A session, in which a model answers every query, and the question about its answers."""

    folder: Path
    """The collection whose documents the model reads."""
    model: AnswerOptions
    """The model, and how it is asked."""
    labels: LabelOptions
    """Groups of the documents."""
    run: Path | None
    """The file of the run whose first documents each prompt shows."""
    question: CitationQuestion
    """What is asked of the answers."""

    def execute(self, deliver: Callable[[Any], None]) -> int:
        """Ask the model, save its answers, and deliver the audit; exit 1 if answers are missing."""
        choice = self._choice()
        prices = options.read_price(self.model.price, dry_run=self.model.dry_run)
        connected = ConnectedModel.read(self.model.llm, batch=self.model.batch)
        making = self.model.making(connected.sampling)
        self._check_options(making)
        collection, run = self._load()
        from ranktilt.citing.making.make import make_answers
        from ranktilt.citing.making.requests import prepare_answers
        from ranktilt.citing.making.save import save_answers

        if self.model.dry_run:
            requests = prepare_answers(collection, connected.client, run, making, choice=choice)
            show_estimate(requests, connected.client, prices)
            return 0
        session = make_answers(
            collection,
            connected.client,
            run,
            making,
            by=choice.by,
            pair=choice.pair,
            reference=choice.reference,
        )
        _note_answers(session)
        if self.model.save_answers is not None and session.counts.answers:
            save_answers(session, self.model.save_answers)
        deliver(self._audit(session))
        return INCOMPLETE if session.unanswered else 0

    def _choice(self) -> GroupChoice:
        """Return the groups that are compared."""
        from ranktilt.citing.making.requests import GroupChoice

        pairs = self.question.pairs
        return GroupChoice(
            by=self.question.column,
            pair=pairs[0] if pairs else None,
            reference=self.labels.reference,
        )

    def _check_options(self, making: AnswerMaking) -> None:
        """Refuse a session without a run, and options that nothing would read."""
        if self.run is None:
            raise UserError(
                "--llm answers from what is retrieved: name a run of the collection (--run FILE)"
            )
        if making.is_experiment:
            self.question.check_experiment()
        if making.draws_versions:
            options.refuse_unread(
                {"--groups": self.labels.groups}, "the collection itself has the factors; omit it"
            )
            self.question.check_by_factor(self.labels)

    def _load(self) -> tuple[Collection, Run]:
        """Read the collection and the run, and refuse groups and columns that are not there."""
        from ranktilt.data.runs.run import Run

        texts = options.load_texts(self.folder, self.model.split)
        collection = self.labels.labelled(texts, self.question.column)
        self._check_columns(collection)
        return collection, Run.load(self.run or "")

    def _check_columns(self, collection: Collection) -> None:
        """Refuse groups and columns that the collection lacks, before the model is asked."""
        from ranktilt.citing.making.requests import GroupChoice
        from ranktilt.data.labels.label_errors import LabelErrors

        question = self.question
        for pair in question.pairs or ():
            GroupChoice(by=question.column, pair=pair).check(collection)
        columns_of_texts = ("id", "title", "text", question.column)
        columns = ["page", *collection.docs.drop(*columns_of_texts, strict=False).columns]
        # Documents with addresses have a domain too, which is taken from the address.
        if question.cluster is not None and question.cluster not in (*columns, "domain"):
            raise unknown_name("column", question.cluster, columns)
        if question.label_errors is not None:
            LabelErrors.from_text(question.label_errors)
        if question.by_query is not None:
            from ranktilt.auditing.query_groups.grouping import collection_query_groups

            collection_query_groups(question.by_query, collection)

    def _audit(self, session: AnswerSession) -> FactorEffects | ContextExperiment | CitationAudit:
        """Return the result for the kind of session: factors, twins and labels, or an audit."""
        from ranktilt.citing.experiment.factors import session_factor_effects

        if session.making.draws_versions:
            return session_factor_effects(session)
        if session.making.is_experiment:
            return self.question.compare_contexts(session)
        return self.question.audit_session(session, self.labels.reference)


def _note_answers(session: AnswerSession) -> None:
    """Say what became of the requests for answers."""
    counts = session.counts
    requests = counted(counts.requests, "request", "requests")
    note(
        f"{session.model}: {counts.answers:,} of {requests} answered; asked for "
        f"{counted(counts.fresh, 'answer', 'answers')}"
    )
    if session.unanswered:
        message = next(iter(session.messages), "")
        unanswered = counted(session.unanswered, "request", "requests")
        note(f"{unanswered} got no answer ({message}); run the command again to ask only for these")
    if counts.rejected.get("too long"):
        note("some prompts are too long for the model: show fewer documents (--context)")
