"""Prepare rewrites: choose the documents and the names of sources before anything is asked.

A *source* is the author of documents, such as ``human`` or a model at one temperature. An *origin*
is the id that an original and its rewrites share. A *pool* is a choice of documents to rewrite. A
*task* is a text to ask the model about; a text that is not asked about is *rejected*.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from ranktilt.data.collection import POOL, Collection
from ranktilt.data.labels.stated_sources import with_named_side
from ranktilt.data.loading.assemble import version_names
from ranktilt.errors import UserError, counted
from ranktilt.generation.batched_requests import (
    EMPTY,
    GenerationInputs,
    GenerationTask,
    Rejected,
    model_name,
)
from ranktilt.generation.checks import RewriteLimits
from ranktilt.generation.settings import Rewriting
from ranktilt.generation.templates import TITLE, PromptTemplate, template
from ranktilt.llm.base import LLM

if TYPE_CHECKING:
    from ranktilt.generation.pooling import Pool


@dataclass(frozen=True, eq=False, kw_only=True)
class RewriteInputs(GenerationInputs):
    """The requests to rewrite a collection, in the collection's order; empty texts are rejected."""

    settings: Rewriting
    """How documents are rewritten."""
    collection: Collection
    """The collection; if no document had a source, with the source to rewrite."""
    limits: RewriteLimits
    """Limits that an answer must keep to."""
    is_partial: bool = False
    """Whether only some documents of the source are rewritten."""
    pool: Pool | None = None
    """Pool that chose the documents; None where no pool did."""

    def first_requests(self) -> Iterator[tuple[PromptTemplate, GenerationTask]]:
        """Yield the first request of each text, and of its title if titles are rewritten too."""
        yield from super().first_requests()
        if self.settings.titles == "rewrite":
            title = template(TITLE)
            for task in self.tasks:
                if task.title.strip():
                    yield title, replace(task, text=task.title, title="")


def prepare_rewrites(
    collection: Collection,
    llm: LLM,
    rewriting: Rewriting,
    *,
    only: Pool | Iterable[str] | None = None,
) -> RewriteInputs:
    """Prepare the requests, in the collection's order; nothing is sent yet.

    Parameters
    ----------
    collection : Collection
        If no document has a source, all get the source to rewrite (``rewriting.of``).
    llm : LLM
        The model.
    rewriting : Rewriting
        Prompt, temperatures, titles, ….
    only : Pool or iterable of str, optional
        A pool, or ids of the documents to rewrite. By default these are all documents of the
        source. If the collection has rewrites of a pool already, they are the documents of that
        pool.

    Raises
    ------
    UserError
        If the source or a document to rewrite is unknown, the name of a new source is taken, or
        two documents to rewrite have the same origin.
    """
    collection = with_named_side(collection, rewriting.of)
    prompt = template(rewriting.prompt)
    sources = {}
    for temperature in rewriting.temperatures:
        name = _source_name(llm, temperature, prompt, rewriting)
        sources[name] = rewriting.sampling(temperature)
    _check_names(collection, sources, rewriting)
    earlier = earlier_pool(collection, rewriting.of)
    if earlier is not None and only is not None:
        documents = counted(len(earlier), "document", "documents")
        raise UserError(
            f"this collection's rewrites come from a pool of {documents}, and further ones must "
            "come from the same: omit --pool, or rewrite the collection that it was made from"
        )
    if earlier is not None:
        only = earlier
    rows = _chosen_rows(collection, rewriting, only)
    rows = rows.head(rewriting.first or len(rows))
    docs = collection.docs[rows]
    tasks, rejected = list[GenerationTask](), list[Rejected]()
    for row, text, title in zip(rows.to_list(), docs["text"], docs["title"], strict=True):
        if text.strip():
            tasks.append(GenerationTask(row=row, text=text, title=title))
        else:
            rejected.append(
                Rejected(row=row, part="text", reason=EMPTY, flags=(), attempts=0, message="")
            )
    return RewriteInputs(
        settings=rewriting,
        collection=collection,
        template=prompt,
        limits=_limits(prompt, rewriting),
        sources=sources,
        tasks=tuple(tasks),
        rejected=tuple(rejected),
        text_count=docs.height,
        is_partial=only is not None,
        pool=None if isinstance(only, Iterable) else only,  # ids are iterable, a pool is not
    )


def _limits(prompt: PromptTemplate, rewriting: Rewriting) -> RewriteLimits:
    """Return the limits of the user, or else of the prompt, or else the usual ones."""
    limits = replace(RewriteLimits(), **prompt.limits)
    return RewriteLimits(
        shortest=limits.shortest if rewriting.shortest is None else rewriting.shortest,
        longest=limits.longest if rewriting.longest is None else rewriting.longest,
        copied=limits.copied if rewriting.copied is None else rewriting.copied,
    )


def _source_name(llm: LLM, temperature: float, prompt: PromptTemplate, rewriting: Rewriting) -> str:
    """Name the source of a temperature, such as ``gpt-4-tmp0.2`` or ``gpt-4-tmp0.2-polish``."""
    if rewriting.source is not None:
        return rewriting.source
    is_default_prompt = prompt.name == "paper" and not prompt.path
    ending = "" if is_default_prompt else f"-{prompt.name}"
    return f"{model_name(llm)}-tmp{float(temperature)}{ending}"


def _check_names(collection: Collection, sources: Iterable[str], rewriting: Rewriting) -> None:
    """Refuse an unknown source to rewrite, and names of new sources or documents that are taken."""
    if rewriting.of not in collection.sources:
        raise _unknown_source(collection, rewriting.of)
    for source in sources:
        if source in collection.sources:
            raise UserError(
                f"source {source!r} is already in this collection, and a document has one rewrite "
                "per source; name another with --source-name, or omit that source"
            )
    repeated = _repeated_ids(collection, sources, rewriting.of)
    if repeated:
        raise UserError(
            f"two documents would be called {min(repeated)!r}, because a rewrite's id ends with "
            "its source; rename one, or choose another --source-name"
        )


def _repeated_ids(collection: Collection, sources: Iterable[str], of: str) -> set[str]:
    """Return the ids that two documents would have once the rewrites are added.

    A rewrite's id is that of its original and its source: ``doc1-gpt``.
    """
    bare_ids = collection.bare_ids()  # without the source at their end
    new_ids = []
    for id_ in bare_ids.filter(collection.docs["source"] == of):
        new_ids += [f"{id_}-{source}" for source in sources]
    # Adding rewrites renames earlier documents too: their ids then end with their sources.
    renamed_ids = version_names(collection.docs, bare_ids)["id"].to_list()
    counts = Counter([*renamed_ids, *new_ids])
    repeated = {id_ for id_, count in counts.items() if count > 1}
    return repeated | set(new_ids).intersection(collection.ids)


def _unknown_source(collection: Collection, of: str) -> UserError:
    """Return the error for a source that the collection does not have.

    If no document has a source, the error shows a command that gives them one.
    """
    fault = collection.unknown_source(of)
    if not collection.sourceless:
        return fault
    path = str(collection.spec.get("path", "DIR"))
    command = shlex.join(["ranktilt", "data", "load", path, "--source", of, "-o", "NEW"])
    return UserError(f"{fault}; name it: {command}")


def _chosen_rows(collection: Collection, rewriting: Rewriting, only: Any) -> pl.Series:
    """Return the rows of the documents to rewrite, no two of the same origin.

    `only` is a pool, ids of documents, or None for all documents of the source.
    """
    docs = collection.docs.select("id", "origin", "source").with_row_index("row")
    docs = docs.filter(pl.col("source") == rewriting.of)
    if isinstance(only, str):
        raise UserError(f"expected a list of document ids, got one string: {only!r}")
    if only is not None:
        ids = pl.Series(list(getattr(only, "ids", only)), dtype=pl.String)
        unknown_ids = ids.filter(~ids.is_in(docs["id"].implode()))
        if len(unknown_ids):
            raise UserError(
                f"document {unknown_ids[0]!r} is to be rewritten, but source {rewriting.of!r} does "
                "not have it"
            )
        docs = docs.filter(pl.col("id").is_in(ids.implode()))
    repeated = docs.filter(pl.col("origin").is_duplicated()).sort("origin", maintain_order=True)
    if repeated.height:
        first, second = repeated["id"][:2]
        raise UserError(
            f"documents {first!r} and {second!r} of source {rewriting.of!r} have the same origin, "
            f"{repeated['origin'][0]!r}, so nobody could tell which rewrite belongs to which; "
            "remove one, or give each its own origin"
        )
    return docs["row"]


def earlier_pool(collection: Collection, of: str) -> pl.Series | None:
    """Return the ids of the pool that a collection's rewrites were made from; None without one.

    `of` is the source that was rewritten.
    """
    docs = collection.docs
    has_rewrites = (docs["source"] != of).any()
    if docs.schema.get(POOL) != pl.Boolean or not has_rewrites:
        return None
    # A document without a value is in the pool.
    return docs.filter(pl.col(POOL).fill_null(True) & (pl.col("source") == of))["id"]
