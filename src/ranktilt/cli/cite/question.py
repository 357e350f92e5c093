"""What ``ranktilt cite`` asks: which groups of pages to compare, and how to test the answer.

Citations are counted as *rates* (of the pages that could be cited, how many are) and *shares* (of
the pages that are cited, how many are in a group). In an *experiment*, the model is asked several
times with requests that differ in one thing only, a twin (the other version of a document) or
the author that is shown with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import QUESTION, STATISTICS, points
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.citing.experiment.result import ContextExperiment
    from ranktilt.citing.making.session import AnswerSession
    from ranktilt.citing.result import CitationAudit
    from ranktilt.data.answers import Answers
    from ranktilt.data.collection import Collection
    from ranktilt.data.labels.label_file import LabelFile

MARGIN = 5.0
"""Largest difference that counts as level by default, in points of a share or % of a rate."""


@Parameter(name="*", group=QUESTION)
@dataclass(frozen=True, kw_only=True)
class CitationQuestion:
    """Groups of pages to compare, and how differences of their citations are tested."""

    by: Annotated[
        str | None,
        Parameter(help="Column whose groups are compared (default: source).", metavar="COLUMN"),
    ] = None
    pair: Annotated[
        list[str] | None,
        Parameter(help="Groups to compare (default: all pairs).", metavar="A,B"),
    ] = None
    cluster: Annotated[
        str | None,
        Parameter(
            help="Unit within which labels are constant: domain, page or a column (default: the "
            "domain, if labels agree within it).",
            metavar="COLUMN",
            group=STATISTICS,
        ),
    ] = None
    label_errors: options.LabelErrors = None
    by_query: options.ByQuery = None
    margin: Annotated[
        float | None,
        Parameter(
            help="Count as level within X points of a share, or X % of a rate (default: 5).",
            metavar="X",
            group=STATISTICS,
            converter=points,
        ),
    ] = None

    @property
    def column(self) -> str:
        """The column whose groups are compared."""
        return "source" if self.by is None else self.by

    @property
    def pairs(self) -> options.Pairs | None:
        """Pairs of groups to compare; None for all."""
        return options.read_pairs(self.pair)

    def check_by_factor(self, labels: LabelOptions, *, run: Path | None = None) -> None:
        """Refuse options that ``--by-factor`` would not read.

        It compares the low and the high level of each factor of a designed collection. There are no
        groups of pages, so no reference group and no names in `labels`; the ranks of a `run` are
        not read either.
        """
        unread = {
            "--by": self.by,
            "--by-query": self.by_query,
            "--pair": self.pair,
            "--reference": labels.reference,
            "--name": labels.name,
            "--rest": labels.rest,
            "--margin": self.margin,
            "--cluster": self.cluster,
            "--label-errors": self.label_errors,
            "--run": run,
        }
        options.refuse_unread(unread, "--by-factor compares the levels of each factor; omit it")

    def check_experiment(self) -> None:
        """Refuse options that an experiment with twins or shown labels would not read."""
        if self.cluster is not None:
            # A cluster is a unit, such as a domain, whose pages count as one observation.
            raise UserError(
                "--cluster: errors of twins and labels go by query and document; omit it"
            )
        if self.label_errors is not None:
            raise UserError(
                "--label-errors corrects rates and shares of citations; omit it with --twins or "
                "with both labels"
            )
        if self.by_query is not None:
            raise UserError(
                "--by-query groups the queries of rates and shares; omit it with --twins or with "
                "both labels"
            )
        if len(self.pairs or ()) > 1:
            raise UserError("--twins and --show-label compare two groups: name one --pair")

    def audit_answers(
        self,
        answers: Answers,
        labels: LabelFile | Collection,
        *,
        run: Path | None,
        reference: str | None,
    ) -> CitationAudit:
        """Audit stored answers.

        Parameters
        ----------
        answers : Answers
            The answers, with the pages that each cites.
        labels : LabelFile or Collection
            The group of each page.
        run : Path or None
            The file of what was retrieved for the queries.
        reference : str or None
            The group that the others are compared with.
        """
        from ranktilt.citing.cite import cite

        statistics = statistics_settings()
        return cite(
            answers,
            labels,
            run=run,
            by=self.column,
            pairs=self.pairs,
            reference=reference,
            cluster=self.cluster,
            margin=MARGIN if self.margin is None else self.margin,
            resamples=statistics.resamples,
            seed=statistics.seed,
            correction=statistics.correction,
            label_errors=self.label_errors,
            by_query=self.by_query,
        )

    def audit_session(self, session: AnswerSession, reference: str | None) -> CitationAudit:
        """Audit answers that a model wrote in this command, as `audit_answers` does stored ones."""
        from ranktilt.citing.making.audit import cite_session

        statistics = statistics_settings()
        return cite_session(
            session,
            pairs=self.pairs,
            reference=reference,
            cluster=self.cluster,
            margin=MARGIN if self.margin is None else self.margin,
            resamples=statistics.resamples,
            seed=statistics.seed,
            correction=statistics.correction,
            label_errors=self.label_errors,
            by_query=self.by_query,
        )

    def compare_contexts(self, session: AnswerSession) -> ContextExperiment:
        """Compare answers to requests that differ only in a twin or in the label shown with it."""
        from ranktilt.citing.experiment.experiment import context_experiment

        statistics = statistics_settings()
        return context_experiment(
            session,
            margin=MARGIN if self.margin is None else self.margin,
            resamples=statistics.resamples,
            seed=statistics.seed,
            correction=statistics.correction,
        )
