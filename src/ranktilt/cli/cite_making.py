"""``ranktilt cite DIR --llm MODEL``: a model answers from a run's documents, and is audited."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ranktilt.citing.making.settings import AnswerMaking
from ranktilt.cli import options
from ranktilt.cli.app import MODEL, OUTPUT, QUESTION, SELDOM
from ranktilt.cli.generate.requests import show_estimate
from ranktilt.cli.generate.summaries import INCOMPLETE
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.language_models import ConnectedModel
from ranktilt.cli.notes import note
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.errors import UserError, counted, unknown

if TYPE_CHECKING:
    from ranktilt.citing.making.requests import GroupChoice
    from ranktilt.citing.making.session import AnswerSession
    from ranktilt.config import StatisticsSettings
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.explaining.factors.result import FactorEffects

_Labels = list[Literal["none", "true", "swapped"]]


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """A language model that answers from a run's documents, and what it is shown."""

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
        _Labels | None,
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
        """Refuse options of a model where none is asked."""
        if self.llm is not None:
            return
        flag = options.first_typed(**{**vars(self), "llm": None, "by_factor": False})
        if flag is not None:
            raise UserError(f"{flag} needs a model: --llm openai:MODEL")

    def making(self, sampling: Any) -> AnswerMaking:
        """Return how the model is asked; `sampling` is what its text says of drawing answers."""
        labels = AnswerMaking.shown_labels if self.show_label is None else self.show_label
        making = AnswerMaking(
            prompt=self.prompt or AnswerMaking.prompt,
            context=self.context or AnswerMaking.context,
            order=self.order or AnswerMaking.order,
            repeats=self.repeats or AnswerMaking.repeats,
            has_twins=self.twins,
            draws_versions=self.by_factor,
            shown_labels=tuple(labels),
            order_seed=statistics_settings().seed,
            text=self.text or AnswerMaking.text,
            first=self.limit,
        )
        return making.with_sampling(sampling)


@dataclass(frozen=True, kw_only=True)
class SessionAudit:
    """What is asked of the answers that a model writes."""

    folder: Path
    model: AnswerOptions
    labels: LabelOptions
    run: Path | None
    by: str
    pairs: options.Pairs | None
    cluster: str | None
    margin: float
    label_errors: str | None
    by_query: str | None

    def execute(self, deliver: Callable[[Any], None]) -> int:
        """Ask the model, save its answers, and deliver the audit; exit 1 if answers are missing."""
        prices = options.read_price(self.model.price, dry_run=self.model.dry_run)
        connected = ConnectedModel.read(self.model.llm, batch=self.model.batch)
        making = self.model.making(connected.sampling)
        self._check(making)
        collection, run = self._load()
        choice = self._choice()
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
        deliver(self._audit(session, statistics_settings()))
        return INCOMPLETE if session.unanswered else 0

    def _check(self, making: AnswerMaking) -> None:
        """Refuse options that nothing would read."""
        if self.run is None:
            raise UserError(
                "--llm answers from what is retrieved: name a run of the collection (--run FILE)"
            )
        if making.is_experiment and self.cluster is not None:
            raise UserError(
                "--cluster: errors of twins and labels go by query and document; omit it"
            )
        if making.is_experiment and self.label_errors is not None:
            raise UserError(
                "--label-errors corrects rates and shares of citations; omit it with --twins or "
                "with both labels"
            )
        if making.draws_versions:
            options.refuse_unread(
                {"--groups": self.labels.groups}, "the collection itself has the factors; omit it"
            )
            check_by_factor(
                {
                    "--by": self.by != "source",
                    "--by-query": self.by_query,
                    "--pair": self.pairs,
                    "--reference": self.labels.reference,
                    "--cluster": self.cluster,
                    "--label-errors": self.label_errors,
                }
            )
        if making.is_experiment and self.by_query is not None:
            raise UserError(
                "--by-query groups the queries of rates and shares; omit it with --twins or with "
                "both labels"
            )
        if (making.has_twins or making.compares_labels) and len(self.pairs or ()) > 1:
            raise UserError("--twins and --show-label compare two groups: name one --pair")

    def _load(self) -> tuple[Collection, Run]:
        """Read the collection and the run, and refuse groups and columns that are not there."""
        from ranktilt.citing.making.requests import GroupChoice
        from ranktilt.data.labels.label_errors import LabelErrors
        from ranktilt.data.runs.run import Run

        texts = options.load_texts(self.folder, self.model.split)
        collection = self.labels.labelled(texts, self.by)
        for pair in self.pairs or ():
            GroupChoice(by=self.by, pair=pair).check(collection)
        columns = [
            "page",
            *collection.docs.drop("id", "title", "text", self.by, strict=False).columns,
        ]
        if self.cluster is not None and self.cluster not in (*columns, "domain"):
            raise unknown("column", self.cluster, columns)
        if self.label_errors is not None:
            LabelErrors.from_text(self.label_errors)
        if self.by_query is not None:
            from ranktilt.auditing.query_groups.grouping import collection_query_groups

            collection_query_groups(self.by_query, collection)
        return collection, Run.load(self.run or "")

    def _choice(self) -> GroupChoice:
        from ranktilt.citing.making.requests import GroupChoice

        pair = self.pairs[0] if self.pairs else None
        return GroupChoice(by=self.by, pair=pair, reference=self.labels.reference)

    def _audit(self, session: AnswerSession, statistics: StatisticsSettings) -> Any:
        from ranktilt.citing.experiment.experiment import context_experiment
        from ranktilt.citing.experiment.factors import session_factor_effects
        from ranktilt.citing.making.audit import cite_session

        if session.making.draws_versions:
            return session_factor_effects(session)
        if session.making.is_experiment:
            return context_experiment(
                session,
                margin=self.margin,
                correction=statistics.correction,
                resamples=statistics.resamples,
                seed=statistics.seed,
            )
        return cite_session(
            session,
            pairs=self.pairs,
            reference=self.labels.reference,
            cluster=self.cluster,
            margin=self.margin,
            correction=statistics.correction,
            resamples=statistics.resamples,
            seed=statistics.seed,
            label_errors=self.label_errors,
            by_query=self.by_query,
        )


def folder_of_labels(labels: LabelOptions, by: str) -> Collection | None:
    """Load the collection that ``--groups`` names, whose documents were cited; None for a file."""
    if labels.groups is None or not os.path.isdir(labels.groups):
        return None
    collection = options.load_texts(Path(labels.groups), None)
    return replace(labels, groups=None).labelled(collection, by)


def check_by_factor(unread: Mapping[str, object]) -> None:
    """Refuse options that effects of factors would not read."""
    options.refuse_unread(unread, "--by-factor compares the levels of each factor; omit it")


def answers_by_factor(answers: Path, labels: LabelOptions) -> FactorEffects:
    """Estimate the effects of factors on answers that exist, whose documents are in a folder."""
    from ranktilt.citing.experiment.factors import citation_factor_effects
    from ranktilt.data.formats.citations.answer_file import read_answers

    folder = labels.groups
    if folder is None or not os.path.isdir(folder):
        raise UserError(
            "--by-factor needs the versions that were read: name their collection, --groups DIR"
        )
    return citation_factor_effects(
        read_answers(answers), options.load_texts(Path(folder), None), engine=answers.stem
    )


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
