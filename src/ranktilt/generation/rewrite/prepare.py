"""What is to be rewritten, and how: settled before anything is asked."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from ranktilt.data.assemble import version_names
from ranktilt.data.collection import POOL, Collection
from ranktilt.data.stated_sources import with_named_side
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
    """What will be asked to rewrite a collection, in the collection's order.

    `rejected` are texts that are empty; `only` says whether not all documents of the source were to be
    rewritten, and `pool` what chose them.
    """

    settings: Rewriting
    limits: RewriteLimits
    only: bool = False
    pool: Pool | None = None

    def questions(self) -> Iterator[tuple[PromptTemplate, GenerationTask]]:
        """Give the first request of each text, and of its title where that is rewritten too."""
        yield from super().questions()
        if self.settings.titles == "rewrite":
            title = template(TITLE)
            for task in self.tasks:
                if task.title.strip():
                    yield title, task._replace(text=task.title, title="")


def prepare_rewrites(
    collection: Collection,
    llm: LLM,
    rewriting: Rewriting,
    *,
    only: Pool | Iterable[str] | None = None,
) -> RewriteInputs:
    """Settle what is asked, in the collection's order; nothing is asked yet.

    Where no document has a source, all are of the source to rewrite. `only` holds ids of the
    documents to rewrite; by default all, or those of the pool that earlier rewrites were made of.
    Refused: no such source or document, a source's name that is taken, two documents of one origin.
    """
    collection = with_named_side(collection, rewriting.of)
    prompt = template(rewriting.prompt)
    sources = {
        _source(llm, t, prompt, rewriting): rewriting.sampling(t) for t in rewriting.temperatures
    }
    _check_names(collection, sources, rewriting)
    if (old := earlier_pool(collection, rewriting.of)) is not None:
        if only is not None:
            documents = counted(len(old), "document", "documents")
            message = f"this collection's rewrites are those of a pool of {documents}; further ones are of the same"
            raise UserError(
                f"{message}: leave the choice out (--pool), or rewrite the collection it was made of"
            )
        only = old
    rows = _chosen(collection, rewriting, only)
    rows = rows.head(rewriting.first or len(rows))
    side = collection.docs[rows]
    given = zip(rows.to_list(), side["text"], side["title"], strict=True)
    tasks = [GenerationTask(row, text, title) for row, text, title in given]
    rejected = tuple(Rejected(o.row, "text", EMPTY, (), 0, "") for o in tasks if not o.text.strip())
    tasks = [o for o in tasks if o.text.strip()]
    named = {name: getattr(rewriting, name) for name in ("shortest", "longest", "copied")}
    named = {name: value for name, value in named.items() if value is not None}
    limits = replace(RewriteLimits(), **{**prompt.limits, **named})
    return RewriteInputs(
        settings=rewriting,
        template=prompt,
        limits=limits,
        sources=sources,
        tasks=tuple(tasks),
        rejected=rejected,
        chosen=side.height,
        only=only is not None,
        pool=None if isinstance(only, Iterable) else only,
    )


def _source(llm: LLM, temperature: float, prompt: PromptTemplate, rewriting: Rewriting) -> str:
    if rewriting.source is not None:
        return rewriting.source
    ending = "" if prompt.name == "paper" and not prompt.place else f"-{prompt.name}"
    return f"{model_name(llm)}-tmp{float(temperature)!r}{ending}"


def _check_names(collection: Collection, sources: Iterable[str], rewriting: Rewriting) -> None:
    if rewriting.of not in collection.sources:
        raise _unknown_side(collection, rewriting.of)
    taken = next((name for name in sources if name in collection.sources), None)
    if taken is not None:
        raise UserError(
            f"source {taken!r} is in this collection already, and a document has one rewrite of a source; name "
            "another with --source-name, or omit that source"
        )
    bare, written = collection.bare_ids(), collection.docs["source"]
    old = version_names(collection.docs, bare)["id"].to_list()
    new = [f"{one}-{name}" for one in bare.filter(written == rewriting.of) for name in sources]
    clash = {name for name, n in Counter([*old, *new]).items() if n > 1} | (
        {*new} & {*collection.ids}
    )
    if twice := min(clash, default=None):
        message = f"two documents would be called {twice!r} beside the rewrites, where each id ends with its source"
        raise UserError(f"{message}; rename one, or name another --source-name")


def _unknown_side(collection: Collection, of: str) -> UserError:
    """Say which sources there are, and how those of documents without one are named: they are not taken for any."""
    fault = collection.unknown_source(of)
    if not collection.sourceless:
        return fault
    path = str(collection.spec.get("path", "DIR"))
    way = shlex.join(["ranktilt", "data", "load", path, "--source", of, "-o", "NEW"])
    return UserError(f"{fault}; name it: {way}")


def _chosen(collection: Collection, rewriting: Rewriting, only: Any) -> pl.Series:
    """Rows of the documents to rewrite; two of one origin would be twins of each other's rewrites."""
    side = collection.docs.select("id", "origin", "source").with_row_index("row")
    side = side.filter(pl.col("source") == rewriting.of)
    if isinstance(only, str):
        raise UserError(f"expected a list of document ids, got one string: {only!r}")
    if only is not None:
        ids = pl.Series(list(getattr(only, "ids", only)), dtype=pl.String)
        strange = ids.filter(~ids.is_in(side["id"].implode()))
        if len(strange):
            raise UserError(
                f"document {strange[0]!r} is to be rewritten, but source {rewriting.of!r} does not have it"
            )
        side = side.filter(pl.col("id").is_in(ids.implode()))
    twice = side.filter(pl.col("origin").is_duplicated()).sort("origin", maintain_order=True)
    if twice.height:
        one, two = twice["id"][0], twice["id"][1]
        raise UserError(
            f"documents {one!r} and {two!r} of source {rewriting.of!r} have one origin, {twice['origin'][0]!r}: nobody "
            "could tell which rewrite belongs to which; remove one, or give them origins of their own"
        )
    return side["row"]


def earlier_pool(collection: Collection, of: str) -> pl.Series | None:
    """Find the ids of documents that a collection's rewrites were made of, where these were a pool; or else None."""
    docs = collection.docs
    if docs.schema.get(POOL) != pl.Boolean or (docs["source"] == of).all():
        return None
    return docs.filter(pl.col(POOL).fill_null(True) & (pl.col("source") == of))["id"]
