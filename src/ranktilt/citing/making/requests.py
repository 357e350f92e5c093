"""The requests for answers, settled before any is sent: contexts, labels and prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from ranktilt.citing.making.contexts import Context, ContextSet, build_contexts
from ranktilt.citing.making.prompt import cite_template, document_lines
from ranktilt.citing.making.settings import AnswerMaking
from ranktilt.citing.making.twins import Pair
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError, unknown
from ranktilt.generation.batched_requests import GenerationInputs, GenerationTask, model_name
from ranktilt.llm.base import LLM
from ranktilt.rankers.llm.passage_text import one_line

_ANSWER_TOKENS = 150
"""Expected tokens of an answer, by which a price is estimated before anything is asked."""
_HUMAN = "human"
"""Group that comes second where there is one of this name, as in every audit."""


@dataclass(frozen=True, kw_only=True)
class GroupChoice:
    """Which groups are compared: a column, and two of its values."""

    by: str = "source"
    """Column of the documents' groups."""
    pair: Pair | None = None
    """The two groups; None where the user named none."""
    reference: str | None = None
    """Group that comes second where no pair is named; ``human`` by default."""

    def require_pair(self, collection: Collection) -> Pair:
        """Return the two groups; `UserError` where more are there and none are named."""
        self.check(collection)
        if self.pair is not None:
            return self.pair
        names = _groups(collection, self.by)
        if len(names) != 2:
            listed = ", ".join(names) or "none"
            raise UserError(
                f"expected two groups by {self.by}, got {len(names)} ({listed}); name two with "
                "--pair A,B"
            )
        reference = self.reference or (_HUMAN if _HUMAN in names else names[0])
        return next(name for name in names if name != reference), reference

    def check(self, collection: Collection) -> None:
        """Refuse a column or a group that the collection lacks, before a model is asked."""
        names = _groups(collection, self.by)
        for name in (*(self.pair or ()), self.reference):
            if name is not None and name not in names:
                raise unknown("group", name, names)
        if self.pair is not None and self.pair[0] == self.pair[1]:
            raise UserError(f"expected two different groups, got {self.pair[0]!r} twice")

    def require_groups(self, groups: pl.Series) -> None:
        """Refuse documents of a single group, which leave nothing to compare."""
        names = groups.drop_nulls().unique().sort().to_list()
        if len(names) < 2:
            present = f"those of {names[0]!r} alone" if names else "none with a group"
            raise UserError(
                f"expected documents of two groups by {self.by} in the prompts, got {present}; "
                "name another column with --by, groups with --groups FILE, or, of versions by "
                "design, --by-factor"
            )


def _groups(collection: Collection, by: str) -> list[str]:
    """Return the groups of a column by name."""
    columns = [name for name in collection.docs.columns if name not in ("id", "title", "text")]
    if by not in columns:
        raise unknown("column", by, columns)
    labels = collection.docs[by].cast(pl.String).drop_nulls()
    return sorted(labels.unique())


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerRequests(GenerationInputs):
    """The requests for answers; the task of context ``n`` has row ``n``."""

    noun: ClassVar[str] = "answer"
    """What a request is for, in messages."""
    answer_noun: ClassVar[str] = "an answer"
    """The same with its article."""

    settings: AnswerMaking
    """What the user chose."""
    contexts: ContextSet
    """The documents of each request."""
    pair: Pair | None
    """Groups of twins, or of swapped labels; None where neither is asked for."""
    groups: pl.Series
    """Group of each document of the collection; null for none."""


def prepare_answers(
    collection: Collection,
    llm: LLM,
    run: Run,
    making: AnswerMaking | None = None,
    *,
    choice: GroupChoice | None = None,
) -> AnswerRequests:
    """Prepare the requests for answers, without asking yet.

    Raises
    ------
    UserError
        If twins or swapped labels need two groups and there are others, if no document has two
        versions, or as `build_contexts` does.
    """
    making, choice = making or AnswerMaking(), choice or GroupChoice()
    template = cite_template(making.prompt)
    if making.has_twins and choice.by != "source":
        raise UserError(
            f"twins are versions of different sources, not of {choice.by}; leave out --by, or "
            "--twins"
        )
    needs_pair = making.has_twins or "swapped" in making.shown_labels
    pair = choice.require_pair(collection) if needs_pair else None
    choice.check(collection)
    groups = collection.docs[choice.by].cast(pl.String).alias("group")
    contexts = build_contexts(collection, run, making, pair if making.has_twins else None)
    if not making.draws_versions:
        choice.require_groups(groups.gather(sorted(contexts.rows)))
    texts = collection.texts(making.text)
    queries = dict(collection.queries.select("id", "text").iter_rows())
    tasks = []
    for number, context in enumerate(contexts.contexts):
        task = GenerationTask(
            row=number,
            text=document_lines(
                texts.gather(list(context.rows)).to_list(), _authors(context, groups, pair)
            ),
            title=one_line(queries[context.query]),
            answer_index=context.repeat - 1,
        )
        tasks.append(task)
    return AnswerRequests(
        settings=making,
        template=template,
        sources={model_name(llm): making.sampling(*making.temperatures)},
        tasks=tuple(tasks),
        text_count=len(tasks),
        answer_tokens=_ANSWER_TOKENS,
        contexts=contexts,
        pair=pair,
        groups=groups,
    )


def _authors(context: Context, groups: pl.Series, pair: Pair | None) -> Sequence[str | None] | None:
    """Return the author that each document is shown with; None where none are shown."""
    if context.shown_label == "none":
        return None
    authors: list[str | None] = groups.gather(list(context.rows)).to_list()
    if context.shown_label == "true" or pair is None:
        return authors
    opposite = {pair[0]: pair[1], pair[1]: pair[0]}
    return [opposite.get(author or "", author) for author in authors]
