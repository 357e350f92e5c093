"""LlamaIndex: a retriever as a ranker.

`retrievers` asks it; this file only says where LlamaIndex's nodes have their ids and scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from ranktilt.adapters.retrievers import Names, RetrieverRanker, metadata_names, text_of_id


@dataclass(frozen=True)
class LlamaIndexRanker(RetrieverRanker):
    """Anything with LlamaIndex's ``retrieve(query) -> list[NodeWithScore]``.

    A retriever of an index returns two results unless it was made with
    ``index.as_retriever(similarity_top_k=100)``.
    """

    name: ClassVar[str] = "llama-index"
    method: ClassVar[str] = "retrieve"
    """Name of the retriever's method that takes a query."""

    def names_of(self, result: Any) -> Names:
        """Return the id of a node, the id of its document, and the names in its metadata."""
        node = getattr(result, "node", result)
        names = {}
        for key in ("node_id", "ref_doc_id"):
            name = text_of_id(getattr(node, key, None))
            if name:
                names[key] = name
        return {**names, **metadata_names(getattr(node, "metadata", None))}

    def score_of(self, result: Any) -> float:
        """Return the retriever's score of a node; NaN if it has none."""
        score = getattr(result, "score", None)
        return math.nan if score is None else float(score)
