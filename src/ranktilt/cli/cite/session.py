"""Ask a model for answers from the documents of a run, and audit whom these answers cite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranktilt.cli import options
from ranktilt.cli.cite.answer_options import AnswerOptions
from ranktilt.cli.cite.question import CitationQuestion
from ranktilt.cli.generate.requests import show_estimate
from ranktilt.cli.generate.summaries import INCOMPLETE
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.language_models import ConnectedModel
from ranktilt.cli.notes import note
from ranktilt.errors import UserError, counted, unknown_name

if TYPE_CHECKING:
    from ranktilt.citing.experiment.result import ContextExperiment
    from ranktilt.citing.making.requests import GroupChoice
    from ranktilt.citing.making.session import AnswerSession
    from ranktilt.citing.making.settings import AnswerMaking
    from ranktilt.citing.result import CitationAudit
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.explaining.factors.result import FactorEffects


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
        self._check(making)
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
            by=self.question.by,
            pair=pairs[0] if pairs else None,
            reference=self.labels.reference,
        )

    def _check(self, making: AnswerMaking) -> None:
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
            self.question.check_by_factor(self.labels.reference)

    def _load(self) -> tuple[Collection, Run]:
        """Read the collection and the run, and refuse groups and columns that are not there."""
        from ranktilt.data.runs.run import Run

        texts = options.load_texts(self.folder, self.model.split)
        collection = self.labels.labelled(texts, self.question.by)
        self._check_columns(collection)
        return collection, Run.load(self.run or "")

    def _check_columns(self, collection: Collection) -> None:
        """Refuse groups and columns that the collection lacks, before the model is asked."""
        from ranktilt.citing.making.requests import GroupChoice
        from ranktilt.data.labels.label_errors import LabelErrors

        question = self.question
        for pair in question.pairs or ():
            GroupChoice(by=question.by, pair=pair).check(collection)
        columns_of_texts = ("id", "title", "text", question.by)
        columns = ["page", *collection.docs.drop(*columns_of_texts, strict=False).columns]
        # Documents with addresses have a domain too, which is no column of theirs.
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
