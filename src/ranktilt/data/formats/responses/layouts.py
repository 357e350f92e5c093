"""The layouts of responses of search engines and vector stores: hits, their ids and scores.

A *hit* is one document in a response. A *path* is the keys that lead to a field, joined by dots;
a number in it is the position in a list. Each layout is as its producer's documentation shows it.
To add one, add it to `LAYOUTS`, and a fixture to tests/data/test_search_responses.py. Other
responses are read by their shape, in `answers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ranktilt.data.formats.notation import value_at

_ANY_KEY = "*"
"""Stands in a path for the only key of an object, whatever it is."""


@dataclass(frozen=True, kw_only=True)
class ResponseLayout:
    """The paths of hits, ids and scores in the responses of one producer."""

    producer: str
    """Name of the engine or library."""
    hits: str
    """Path of the list of hits; ``*`` is the only key of its object."""
    document: tuple[str, ...] = ()
    """Paths of the id in a hit, in the order of preference; empty for the common names of ids."""
    score: tuple[str, ...] = ()
    """Paths of the score in a hit, in the order of preference."""
    rank: tuple[str, ...] = ()
    """Paths of the rank in a hit, in the order of preference."""
    query: tuple[str, ...] = ()
    """Paths at which the response repeats its query, in the order of preference."""
    signs: tuple[str, ...] = ()
    """Paths by which the producer is recognised: a response has a value at one of them.

    Empty if no other producer has its hits at the same path.
    """
    may_lack_hits: bool = False
    """Whether a response without results has no list."""
    id_after: str = ""
    """Text in an id after which the id itself begins; empty if an id is used as it is."""

    def fits(self, response: Any) -> bool:
        """Return whether a response is of this layout."""
        if not isinstance(response, Mapping):
            return False
        if self.signs and not any(has_path(response, sign) for sign in self.signs):
            return False
        if isinstance(hits_at(response, self.hits), list):
            return True
        return self.may_lack_hits and bool(self.signs)


LAYOUTS = (
    ResponseLayout(
        producer="Elasticsearch or OpenSearch",
        hits="hits.hits",
        document=("_id",),
        score=("_score",),
    ),
    ResponseLayout(
        producer="Elasticsearch or OpenSearch (asynchronous)",
        hits="response.hits.hits",
        document=("_id",),
        score=("_score",),
    ),
    ResponseLayout(producer="Solr", hits="response.docs", score=("score",)),
    ResponseLayout(
        producer="Vespa",
        hits="root.children",
        document=("id",),
        score=("relevance",),
        signs=("root.coverage", "root.children", "root.errors"),
        may_lack_hits=True,
        id_after="::",
    ),
    ResponseLayout(
        producer="SerpAPI",
        hits="organic_results",
        document=("link", "url"),
        rank=("position",),
        query=("search_parameters.q", "search_parameters.query", "search_parameters.p"),
        signs=("search_metadata", "search_parameters"),
    ),
    ResponseLayout(
        producer="Serper",
        hits="organic",
        document=("link",),
        rank=("position",),
        query=("searchParameters.q",),
        signs=("searchParameters",),
    ),
    ResponseLayout(
        producer="Google Custom Search",
        hits="items",
        document=("link",),
        query=("queries.request.0.searchTerms",),
        signs=("searchInformation", "queries.request"),
        may_lack_hits=True,
    ),
    ResponseLayout(
        producer="Vertex AI Search",
        hits="results",
        document=("id", "document.id"),
        signs=("attributionToken", "results.0.document.name"),
    ),
    ResponseLayout(
        producer="Bing",
        hits="webPages.value",
        document=("url",),
        query=("queryContext.originalQuery",),
        signs=("webPages", "queryContext"),
        may_lack_hits=True,
    ),
    ResponseLayout(
        producer="Brave Search",
        hits="web.results",
        document=("url",),
        query=("query.original",),
    ),
    ResponseLayout(
        producer="Azure AI Search",
        hits="value",
        score=("@search.rerankerScore", "@search.score"),
        signs=("@odata.context", "@odata.count", "value.0.@search.score"),
    ),
    ResponseLayout(
        producer="Algolia",
        hits="hits",
        document=("objectID",),
        query=("query",),
        signs=("nbHits", "hits.0.objectID"),
    ),
    ResponseLayout(
        producer="Typesense",
        hits="hits",
        document=("document.id",),
        query=("request_params.q",),
        signs=("request_params", "hits.0.document.id"),
    ),
    ResponseLayout(
        producer="Meilisearch",
        hits="hits",
        score=("_rankingScore",),
        query=("query",),
        signs=("processingTimeMs", "estimatedTotalHits", "totalHits"),
    ),
    ResponseLayout(
        producer="Marqo",
        hits="hits",
        document=("_id",),
        score=("_score",),
        query=("query",),
        signs=("hits.0._id",),
    ),
    ResponseLayout(
        producer="Weaviate",
        hits="data.Get.*",
        document=("_additional.id", "id"),
        score=("_additional.score", "_additional.certainty", "_additional.distance"),
    ),
    ResponseLayout(producer="Qdrant", hits="result.points", document=("id",), score=("score",)),
    ResponseLayout(
        producer="Pinecone",
        hits="result.hits",
        document=("_id",),
        score=("_score",),
    ),
    ResponseLayout(producer="Pinecone", hits="matches", document=("id",), score=("score",)),
    ResponseLayout(
        producer="Qdrant",
        hits="result",
        document=("id",),
        score=("score",),
        signs=("status", "time"),
    ),
    ResponseLayout(
        producer="Milvus",
        hits="data",
        score=("distance", "score"),
        signs=("code", "data.0.distance"),
    ),
    ResponseLayout(producer="Amazon CloudSearch", hits="hits.hit", document=("id",)),
    ResponseLayout(
        producer="Amazon Kendra",
        hits="ResultItems",
        document=("DocumentId", "DocumentURI", "Id"),
    ),
    ResponseLayout(
        producer="Amazon Bedrock",
        hits="retrievalResults",
        document=(
            "location.s3Location.uri",
            "location.webLocation.url",
            "metadata.x-amz-bedrock-kb-source-uri",
        ),
        score=("score",),
    ),
    ResponseLayout(
        producer="Elastic App Search",
        hits="results",
        document=("id.raw", "_meta.id"),
        score=("_meta.score",),
        signs=("results.0._meta", "meta.page"),
    ),
)
"""Layouts in the order of recognition; the first that fits a response is taken."""


def layout_of(response: Any) -> ResponseLayout | None:
    """Return the layout of a response; None if no layout fits it."""
    if not isinstance(response, Mapping):
        return None
    return next((layout for layout in LAYOUTS if layout.fits(response)), None)


def has_path(value: Any, path: str) -> bool:
    """Return whether a record has a value at a path."""
    return value_at(value, path) is not None


def hits_at(response: Any, path: str) -> Any:
    """Return the value at a path, in which ``*`` is the only key of an object; None if absent."""
    path_before_star, star, _ = path.partition(f".{_ANY_KEY}")
    value = value_at(response, path_before_star)
    if not star:
        return value
    if isinstance(value, Mapping) and len(value) == 1:
        return next(iter(value.values()))
    return None


def first_path(record: Any, paths: Sequence[str]) -> str:
    """Return the first path at which a record has a value; empty if there is none."""
    return next((path for path in paths if has_path(record, path)), "")
