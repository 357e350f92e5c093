"""An index in OpenSearch or Elasticsearch; its `_id` is the collection's document id.

    pip install opensearch-py  # or elasticsearch, and change the import
    export SEARCH_URL=http://localhost:9200 SEARCH_INDEX=docs
    ranktilt audit DIR -r engine:opensearch:search@100

Run it in the folder of this file, or copy the file to yours.
"""

import functools
import os


@functools.cache
def client():
    from opensearchpy import OpenSearch  # from elasticsearch import Elasticsearch as OpenSearch

    return OpenSearch(os.environ["SEARCH_URL"])


def search(query: str, k: int) -> list[tuple[str, float]]:
    match = {"multi_match": {"query": query, "fields": ["title", "text"]}}
    asked = {"query": match, "size": k, "_source": False}  # ids only
    found = client().search(index=os.environ["SEARCH_INDEX"], body=asked)
    return [(hit["_id"], hit["_score"]) for hit in found["hits"]["hits"]]
