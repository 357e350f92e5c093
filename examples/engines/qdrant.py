"""A collection in Qdrant, on a server or in a folder; the payload `doc_id` is the document's id.

    pip install qdrant-client sentence-transformers
    export QDRANT=http://localhost:6333 QDRANT_COLLECTION=docs  # or a folder
    ranktilt audit DIR -r engine:qdrant:search@100

Run it in the folder of this file, or copy the file to yours.
"""

import functools
import os


@functools.cache
def model_and_client():
    from qdrant_client import QdrantClient
    from sentence_transformers import SentenceTransformer

    address = os.environ["QDRANT"]
    client = QdrantClient(url=address) if "://" in address else QdrantClient(path=address)
    return SentenceTransformer(os.environ.get("MODEL", "all-MiniLM-L6-v2")), client


def search(query: str, k: int) -> list[tuple[str, float]]:
    model, client = model_and_client()
    vector = model.encode(query, show_progress_bar=False).tolist()
    response = client.query_points(os.environ["QDRANT_COLLECTION"], query=vector, limit=k)
    return [(point.payload["doc_id"], point.score) for point in response.points]
