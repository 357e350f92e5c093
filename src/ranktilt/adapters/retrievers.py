"""Retrievers of LangChain and LlamaIndex, which are asked query by query.

A retriever returns passages as results. Each has several texts that could be the id of a document:
the id of the passage, the id of its document, and values in its metadata. They are called the
*names* of the result, each with a *key*, such as ``id`` or ``metadata['doc_id']``. The key under
which most results have an id of the collection is used for all results; it is chosen after the last
answer.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, ClassVar

from ranktilt.adapters.base import OBJECT_ORDER_HINT, ObjectRanker, object_spec
from ranktilt.data.collection import Collection
from ranktilt.errors import UserError, join_words, shorten
from ranktilt.rankers.base import DEPTH
from ranktilt.rankers.engines.base import Ask, LiveEngine, scores_from_ranks
from ranktilt.rankers.engines.calls import EngineReply, Hits
from ranktilt.spec import Stage

Names = Mapping[str, str]
"""Names of a result by their keys."""
_KEYS = (
    *("id", "_id", "doc_id", "docid", "docno", "document_id", "ref_doc_id", "parent_id"),
    *("corpus_id", "corpus-id", "source", "source_id", "url", "uri", "link"),
    *("path", "file_path", "file_name", "filename", "name", "key", "title"),
)
"""Keys of metadata that may have an id, the likeliest first; all other keys come after these."""
_NUMBERING = re.compile(
    "(?<![a-z])(page|chunk|index|position|offset|start|end|row|line|seq|count|number)s?(?![a-z])"
)
"""Keys of metadata that never have an id, because they number something else than documents.

Otherwise the page number 3 could count as the document with the id 3.
"""
_EXAMPLES = 3
"""Number of names that an error shows."""


@dataclass(frozen=True)  # the fields of its bases are keyword-only, so `retriever` is the first
class RetrieverRanker(ObjectRanker, LiveEngine):
    """Ranks by asking a retriever of another library, one call at a time by default.

    The retriever decides how many results it returns. If several passages are from one document,
    the first of them counts.
    """

    retriever: Any = field(hash=False)
    """The object that is asked."""
    concurrency: int = field(default=1, kw_only=True)
    """Number of calls that run at the same time."""

    ways_on: ClassVar[str] = OBJECT_ORDER_HINT
    """Advice, at the end of an error, on how to say which scores are better."""
    fixed: ClassVar[tuple[str, ...]] = ("retriever",)
    """Fields that a user cannot set as options."""
    method: ClassVar[str]
    """Name of the retriever's method that takes a query."""

    @contextmanager
    def connected(self, collection: Collection, depth: int) -> Iterator[tuple[Ask, dict[str, Any]]]:
        """Yield the function that answers a query, and the object's description for a spec."""
        retrieve = getattr(self.retriever, self.method)
        yield lambda query, _depth: retrieve(query), object_spec(self.retriever)

    def read_answer(self, answer: Any, query: str) -> Hits:
        """Return each result as its names, instead of an id, and its score; NaN if it has none."""
        if not isinstance(answer, list | tuple):
            raise UserError(
                f"{self!r}: query {query!r}: expected a list of results from {self.method}(), "
                f"got {shorten(answer)}"
            )
        return [(self.names_of(result), self.score_of(result)) for result in answer]

    def names_of(self, result: Any) -> Names:
        """Return the names of a result, the likeliest id first."""
        raise NotImplementedError

    def score_of(self, result: Any) -> float:
        """Return the score of a result; NaN if it has none."""
        return math.nan

    def name_documents(
        self, replies: Sequence[EngineReply], collection: Collection
    ) -> tuple[Sequence[EngineReply], Mapping[str, Any]]:
        """Return replies with ids instead of names; if no result has a score, the order counts."""
        hits = list(chain.from_iterable(reply.hits for reply in replies))
        if not hits:
            return replies, {}
        key = self._document_key([names for names, _ in hits], collection)
        named_replies = []
        for reply in replies:
            named_hits = []
            for rank, (names, score) in enumerate(reply.hits, start=1):
                # If a result has no name under this key, another name shows the user which it is.
                name = names.get(key) or next(iter(names.values()), f"result {rank}")
                named_hits.append((name, score))
            named_replies.append(replace(reply, hits=named_hits))
        if any(math.isfinite(score) for _, score in hits):
            return named_replies, {"document_id": key}
        return scores_from_ranks(named_replies), {"document_id": key, "score_order": "rank"}

    def _document_key(self, results: Sequence[Names], collection: Collection) -> str:
        """Return the key under which most results have an id of the collection."""
        known_ids = set(collection.ids)
        id_counts = Counter[str]()
        for names in results:
            for key, name in names.items():
                id_counts[key] += name in known_ids
        most = max(id_counts.values(), default=0)
        if not most:
            raise self._no_names(results[0], collection)
        return next(key for key, count in id_counts.items() if count == most)

    def _no_names(self, names: Names, collection: Collection) -> UserError:
        """Return the error for results that name no document of the collection."""
        examples = [f"{key} {shorten(name)}" for key, name in list(names.items())[:_EXAMPLES]]
        has = join_words(examples) if examples else "no id and no metadata"
        return UserError(
            f"{self!r}: no result names a document of the collection, whose ids look like "
            f"{collection.ids[0]!r}; the first result has {has}; put the collection's id into each "
            "document's metadata, as doc_id"
        )

    def stage(self) -> Stage:
        """Return how the ranker is printed, with the class of the retriever; it cannot be typed."""
        depth = None if self.k == DEPTH else self.k
        return Stage(name=self.name, argument=type(self.retriever).__name__, k=depth)


def metadata_names(metadata: Any) -> dict[str, str]:
    """Return the names in metadata by their keys, the likeliest id first.

    A text may be an id under any key, except a key that numbers something. A whole number may be an
    id only under one of `_KEYS`.
    """
    if not isinstance(metadata, Mapping):
        return {}
    other_keys = [
        key for key in metadata if key not in _KEYS and not _NUMBERING.search(str(key).lower())
    ]
    names = {}
    for key in (*_KEYS, *other_keys):
        name = text_of_id(metadata.get(key), numbers=key in _KEYS)
        if name:
            names[f"metadata[{key!r}]"] = name
    return names


def text_of_id(value: Any, *, numbers: bool = True) -> str:
    """Return a text as it is, and a whole number as text if `numbers` may be ids.

    The result is empty for anything else.
    """
    if isinstance(value, str):
        return value
    is_number = numbers and isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else ""
