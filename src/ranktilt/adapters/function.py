"""A ranker that calls a function of the user once, with all queries.

A *hit* is a document in the answer to a query, with its score. The *depth* is the number of hits
that are asked for. The *spec* of a run says how the run was made.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ranktilt.adapters.base import OBJECT_ORDER_HINT, ObjectRanker
from ranktilt.data.collection import Collection
from ranktilt.data.files import sha256
from ranktilt.data.formats.ids import ids_of, kind_of
from ranktilt.errors import UserError, shorten
from ranktilt.rankers.base import DEPTH
from ranktilt.rankers.engines.base import Ask, LiveEngine, scores_from_ranks
from ranktilt.rankers.engines.calls import EngineReply, Hits
from ranktilt.spec import Stage

_FORMS = "(document id, score) pairs, ids in their order, or a dictionary of scores by id"
"""Forms of an answer to one query, for error messages."""


@dataclass(frozen=True)  # the fields of its bases are keyword-only, so `function` is the first
class FunctionRanker(ObjectRanker, LiveEngine):
    """Ranks by one call ``function(queries, k)``, which returns an answer for each query's text.

    An answer is a list of (document id, score), best first; a list of ids, whose order counts; or a
    dictionary of scores by id, where equal scores are ties. Exceptions of the function are not
    caught.

    It is a `LiveEngine` because a function may return all that a search engine may: ids that the
    collection lacks, scores in any order, or no scores.
    """

    name: ClassVar[str] = "function"
    ways_on: ClassVar[str] = OBJECT_ORDER_HINT
    """Advice, at the end of an error, on how to say which scores are better."""
    fixed: ClassVar[tuple[str, ...]] = ("function", "concurrency", "timeout", "max_failures")
    """Fields that a user cannot set as options.

    The last three, which engines have, make no sense for a single call that is not interrupted.
    """

    function: Callable[..., Any]
    """The user's function, called as ``function(queries, k)``."""

    @contextmanager
    def connected(self, collection: Collection, depth: int) -> Iterator[tuple[Ask, dict[str, Any]]]:
        """Yield the user's function, and the entry that describes it in the spec of a run."""
        yield self.function, {"function": _function_spec(self.function)}

    def ask_all(self, collection: Collection, ask: Ask, depth: int) -> list[EngineReply]:
        """Call the function once, and read its answer to each query."""
        queries = collection.queries_with_judgments
        ids = queries["id"].to_list()
        texts = self.read_queries(queries["text"])  # in the query template, if there is one
        answers = self._answers(ask(texts.to_list(), depth), len(ids))
        replies = []
        for number, (query, answer) in enumerate(zip(ids, answers, strict=True)):
            # A dictionary gives no order to documents with equal scores, so they remain tied, even
            # if a reply has to list them in some order.
            is_unordered = isinstance(answer, Mapping)
            hits = (
                self._scores_by_id(answer, query, collection)
                if is_unordered
                else self.read_answer(answer, query)
            )
            replies.append(EngineReply(number=number, hits=hits, is_unordered=is_unordered))
        return replies

    def name_documents(
        self, replies: Sequence[EngineReply], collection: Collection
    ) -> tuple[Sequence[EngineReply], Mapping[str, Any]]:
        """Return replies with a score for each hit, and additions to the spec of the run.

        A function returns ids of documents, so no name has to be replaced by an id. If no answer
        has scores, the order of the ids gives them, and the spec says so. If only some hits lack a
        score, the engine warns about them, and keeps their ranks.
        """
        hits = chain.from_iterable(reply.hits for reply in replies)
        if all(math.isnan(score) for _document, score in hits):
            return scores_from_ranks(replies), {"score_order": "rank"}
        return replies, {}

    def _answers(self, returned: Any, query_count: int) -> Sequence[Any]:
        """Return the list of answers; refuse anything but a list with an answer to each query."""
        expected = f"{self!r}: expected a list with an answer for each of {query_count:,} queries"
        if isinstance(returned, np.ndarray):
            returned = returned.tolist()
        if not isinstance(returned, list | tuple):
            raise UserError(f"{expected}, got {kind_of(returned)}: {shorten(returned)}")
        if len(returned) != query_count:
            raise UserError(
                f"{expected}, got {len(returned):,}; it is called once, with all queries"
            )
        return returned

    def read_answer(self, answer: Any, query: str) -> Hits:
        """Return the hits of a list of (id, score) pairs, or of ids, whose scores are NaN.

        Scores may be infinite here, because the order of the list counts then.
        """
        if isinstance(answer, np.ndarray):
            answer = answer.tolist()
        if not isinstance(answer, list | tuple):
            raise self._wrong_shape(query, answer)
        if not any(_is_pair(element) for element in answer):
            return [(document, math.nan) for document in self._checked_ids(list(answer), query)]
        for element in answer:
            if not _is_pair(element) or not _is_score(element[1]):
                raise self._wrong_shape(query, element)
        ids = self._checked_ids([document for document, _ in answer], query)
        return [(document, float(pair[1])) for document, pair in zip(ids, answer, strict=True)]

    def _scores_by_id(self, answer: Mapping[Any, Any], query: str, collection: Collection) -> Hits:
        """Return the hits of a dictionary of scores by id, the highest score first.

        Scores must be finite, because a dictionary has no other order. Documents with equal scores
        are ordered by a hash that all versions of a document share (`Collection.tie_keys`): their
        order in the dictionary could favour the documents of one author.
        """
        for document, score in answer.items():
            if not _is_score(score) or not math.isfinite(score):
                raise self._wrong_shape(query, {document: score})
        ids = self._checked_ids(list(answer), query)
        scores = [float(score) for score in answer.values()]
        tie_keys = dict(zip(collection.ids, collection.tie_keys().tolist(), strict=True))
        hits = list(zip(ids, scores, strict=True))
        # The author of documents that the collection lacks is unknown, so any key does for them.
        return sorted(hits, key=lambda hit: (-hit[1], tie_keys.get(hit[0], 0)))

    def _checked_ids(self, ids: list[Any], query: str) -> list[str]:
        """Return the ids of an answer as strings; refuse values that cannot be ids."""
        try:
            return ids_of(ids, "ids").to_list()
        except UserError as error:
            raise UserError(
                f"{self!r}: query {query!r}: expected {_FORMS}, got {shorten(ids)}"
            ) from error

    def _wrong_shape(self, query: str, value: Any) -> UserError:
        """Return the error for an answer, or a part of it, that has none of the forms."""
        return UserError(f"{self!r}: query {query!r}: expected {_FORMS}, got {shorten(value)}")

    def stage(self) -> Stage:
        """Return how this ranker is printed: ``function:NAME``, and k if it is not the default.

        It only names the function. A ranker cannot be made from it.
        """
        depth = None if self.k == DEPTH else self.k
        return Stage(name=self.name, argument=_function_name(self.function), k=depth)


def _is_pair(element: Any) -> bool:
    """Tell whether an element is a pair, of an id and a score."""
    return isinstance(element, list | tuple) and len(element) == 2


def _is_score(value: Any) -> bool:
    """Tell whether a value is a single number of Python, numpy or torch."""
    # Truth values and strings of NumPy have `__float__` too, but they are no scores.
    is_excluded = isinstance(value, str | bytes | bool | np.bool_)
    # Arrays have `__float__` too. Only an array without an axis is a single number.
    is_single = getattr(value, "ndim", 0) == 0
    return hasattr(value, "__float__") and not is_excluded and is_single


def _function_name(function: Any) -> str:
    """Return the name of a function; for a `functools.partial`, of the function that it calls."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _function_spec(function: Any) -> dict[str, Any]:
    """Return the function's full name, and the name and hash of its source file if there is one."""
    while isinstance(function, partial):
        function = function.func
    # An object with `__call__` has no name of its own, but its class has.
    code = function if hasattr(function, "__qualname__") else type(function)
    spec: dict[str, Any] = {"name": f"{code.__module__}.{code.__qualname__}"}
    try:
        path = Path(inspect.getsourcefile(code) or "")
    except TypeError:  # it is built in, or written in C, and has no source file
        return spec
    if path.is_file():
        spec |= {"file": path.name, "sha256": sha256(path)}
    return spec
