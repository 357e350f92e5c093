"""LangChain: a retriever, or any chain that ends in documents, as a ranker.

`retrievers` asks it; this file only says where LangChain's documents have their ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ranktilt.adapters.retrievers import Names, RetrieverRanker, metadata_names, text_of_id


@dataclass(frozen=True)
class LangChainRanker(RetrieverRanker):
    """Anything with LangChain's ``invoke(query) -> list[Document]``; documents have no scores.

    A retriever of a vector store returns four results unless it was made with
    ``store.as_retriever(search_kwargs={"k": 100})``.
    """

    name: ClassVar[str] = "langchain"
    method: ClassVar[str] = "invoke"
    """Name of the retriever's method that takes a query."""

    def names_of(self, result: Any) -> Names:
        """Return a document's ``id`` and the names in its metadata."""
        names = metadata_names(getattr(result, "metadata", None))
        document_id = text_of_id(getattr(result, "id", None))
        return {"id": document_id, **names} if document_id else names
