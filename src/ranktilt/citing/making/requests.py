"""Prepare the requests for answers, before any is sent: contexts, labels and prompts.

A *context* is the documents that one request shows to a language model. *Twins* are two versions of
a document, written by two sources. A *label* is the author that a document is shown with. A prompt
numbers the documents, and is written so that no text can pass for a number, a label or an
instruction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import polars as pl

from ranktilt.citing.making.contexts import Context, ContextSet, build_contexts
from ranktilt.citing.making.settings import AnswerMaking
from ranktilt.citing.making.twins import Pair
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError, unknown_name
from ranktilt.generation.batched_requests import GenerationInputs, GenerationTask, model_name
from ranktilt.generation.templates import PromptTemplate
from ranktilt.llm.base import LLM
from ranktilt.llm.prompts import find_prompt
from ranktilt.rankers.llm.passage_text import one_line

_PROMPTS = ("numbered",)
"""Names of the prompts that come with RankTilt."""
_SLOTS = ("documents", "query")
"""Placeholders of a prompt, which are filled in this order."""
# U+FF08 and U+FF1A are the full-width opening bracket and colon.
_AUTHOR = re.compile(r"[(\uff08]\s*author\s*[:\uff1a]", re.IGNORECASE)
"""How a text could name an author as prompts do, also with full-width brackets and colons."""
_ANSWER_TOKENS = 150
"""Tokens that an answer is expected to have, to estimate a price."""
_HUMAN = "human"
"""Name of the group that comes second by default, if there is one."""


@dataclass(frozen=True, kw_only=True)
class GroupChoice:
    """Which groups are compared: a column, and two of its values."""

    by: str = "source"
    """Column of the documents' groups."""
    pair: Pair | None = None
    """The two groups; None if the user names none."""
    reference: str | None = None
    """Group that comes second if no pair is named; ``human`` by default."""

    def require_pair(self, collection: Collection) -> Pair:
        """Return the two groups; `UserError` if there are others and the user names no pair."""
        self.check(collection)
        if self.pair is not None:
            return self.pair
        groups = _group_names(collection, self.by)
        if len(groups) != 2:
            listed = ", ".join(groups) or "none"
            raise UserError(
                f"expected two groups by {self.by}, got {len(groups)} ({listed}); name two with "
                "--pair A,B"
            )
        reference = self.reference or (_HUMAN if _HUMAN in groups else groups[0])
        return next(group for group in groups if group != reference), reference

    def check(self, collection: Collection) -> None:
        """Refuse a column or a group that the collection lacks, before a model is asked."""
        known_groups = _group_names(collection, self.by)
        for name in (*(self.pair or ()), self.reference):
            if name is not None and name not in known_groups:
                raise unknown_name("group", name, known_groups)
        if self.pair is not None and self.pair[0] == self.pair[1]:
            raise UserError(f"expected two different groups, got {self.pair[0]!r} twice")

    def require_groups(self, groups: pl.Series) -> None:
        """Refuse documents of a single group; `groups` has the group of each document shown."""
        names = groups.drop_nulls().unique().sort().to_list()
        if len(names) < 2:
            present = f"those of {names[0]!r} alone" if names else "none with a group"
            raise UserError(
                f"expected documents of two groups by {self.by} in the prompts, got {present}; "
                "name another column with --by, groups with --groups FILE, or, of versions by "
                "design, --by-factor"
            )


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerRequests(GenerationInputs):
    """The requests for answers; the task, or request, of context ``n`` has row ``n``."""

    noun: ClassVar[str] = "answer"
    """Word for what is asked for, in messages."""
    answer_noun: ClassVar[str] = "an answer"
    """The same word with its article."""

    settings: AnswerMaking
    """The user's options."""
    contexts: ContextSet
    """The documents of each request."""
    pair: Pair | None
    """Groups of twins, or of swapped labels; None if neither is asked for."""
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

    `choice` says which groups are compared, by default the sources. `make_answers` explains the
    other parameters.

    Raises
    ------
    DataError
        If the run ranks no query, or no document, of the collection.
    UserError
        If twins or swapped labels need two groups and there are others, no document has two
        versions, or no query has a document to show.
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
    for row, context in enumerate(contexts.contexts):
        task = GenerationTask(
            row=row,
            text=document_lines(
                texts.gather(list(context.rows)).to_list(), _authors(context, groups, pair)
            ),
            # Other tasks have the title of a document here.
            title=one_line(queries[context.query]),
            # Repeats with the same prompt would otherwise be the same request.
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
    """Return the author that each document is shown with; None if no authors are shown.

    `groups` has the group of each document of the collection, which is its true author.
    """
    if context.shown_label == "none":
        return None
    authors: list[str | None] = groups.gather(list(context.rows)).to_list()
    if context.shown_label == "true" or pair is None:
        return authors
    opposite = {pair[0]: pair[1], pair[1]: pair[0]}
    return [opposite.get(author or "", author) for author in authors]


def _group_names(collection: Collection, by: str) -> list[str]:
    """Return the groups that a column of the documents names, in alphabetical order."""
    columns = [name for name in collection.docs.columns if name not in ("id", "title", "text")]
    if by not in columns:
        raise unknown_name("column", by, columns)
    labels = collection.docs[by].cast(pl.String).drop_nulls()
    return sorted(labels.unique())


# ---- prompts ------------------------------------------------------------------------------------


def cite_template(name: str | Path) -> PromptTemplate:
    """Find a prompt for answers by its name, or read it from a UTF-8 file.

    The file has ``{documents}`` and ``{query}``.
    """
    prompt = find_prompt(name, _PROMPTS, "ranktilt.citing.making", slot="documents")
    path = "" if name in _PROMPTS else prompt.location
    template = PromptTemplate(name=prompt.name, text=prompt.text, path=path, slots=_SLOTS)
    if "query" not in template.fields:
        raise UserError(f"{path}: expected {{query}}, where the question goes, and found none")
    return template


def document_lines(texts: Sequence[str], labels: Sequence[str | None] | None = None) -> str:
    """Write documents for a prompt, a line each: ``[1] text``, or ``[1] (author: human) text``.

    `labels` are the authors to show; None for none. A number in square brackets inside a text gets
    round brackets, so that no document passes for another. The special marks of chat models are
    broken, so that no text passes for an instruction. If authors are shown, a text cannot name one
    in the same form.
    """
    lines = []
    for number, text in enumerate(texts, start=1):
        label = None if labels is None else labels[number - 1]
        plain = one_line(text if labels is None else _AUTHOR.sub("(author", text))
        author = "" if label is None else f"(author: {one_line(label)}) "
        lines.append(f"[{number}] {author}{plain}")
    return "\n".join(lines)
