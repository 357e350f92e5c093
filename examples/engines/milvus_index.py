"""An index in Milvus: its primary key is the document id, `embedding` holds normalized vectors.

    pip install pymilvus sentence-transformers
    export MILVUS_URL=http://localhost:19530 MILVUS_COLLECTION=docs
    ranktilt audit DIR -r "engine:milvus_index:search(concurrency=4)@100"

Run it in the folder of this file, or copy the file to yours.
"""

import functools
import os


@functools.cache
def model_and_client():
    from pymilvus import MilvusClient
    from sentence_transformers import SentenceTransformer

    client = MilvusClient(os.environ["MILVUS_URL"], token=os.environ.get("MILVUS_TOKEN", ""))
    return SentenceTransformer("all-MiniLM-L6-v2"), client


def search(query: str, k: int) -> list[tuple[str, float]]:
    model, client = model_and_client()
    vector = model.encode(query, show_progress_bar=False)
    [hits] = client.search(
        os.environ["MILVUS_COLLECTION"], data=[vector], anns_field="embedding", limit=k
    )
    return list(zip(hits.ids, hits.distances, strict=True))
