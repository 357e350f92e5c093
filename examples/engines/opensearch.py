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


def search(query: str, k: int) -> dict:
    match = {"multi_match": {"query": query, "fields": ["title", "text"]}}
    body = {"query": match, "size": k, "_source": False}  # ids only
    # The whole response, so that one that timed out or lost shards counts as a failed query.
    return client().search(index=os.environ["SEARCH_INDEX"], body=body)
