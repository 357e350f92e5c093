"""A table in PostgreSQL with the extension pgvector: docs(id text, embedding vector(384)).

    pip install "psycopg[binary,pool]" sentence-transformers
    export DATABASE_URL=postgresql://localhost/search
    ranktilt audit DIR -r "engine:pgvector:search(concurrency=4)@100"

Run it in the folder of this file, or copy the file to yours.
"""

import functools
import os

DISTANCE = "embedding <=> %(v)s::vector"
NEAREST = f"SELECT id, 1 - ({DISTANCE}) FROM docs ORDER BY {DISTANCE} LIMIT %(k)s"


@functools.cache
def model_and_pool():
    from psycopg_pool import ConnectionPool
    from sentence_transformers import SentenceTransformer

    pool = ConnectionPool(os.environ["DATABASE_URL"], max_size=4, open=True)
    return SentenceTransformer("all-MiniLM-L6-v2"), pool


def search(query: str, k: int) -> list[tuple[str, float]]:
    model, pool = model_and_pool()
    vector = str(model.encode(query, show_progress_bar=False).tolist())
    with pool.connection() as connection:
        return connection.execute(NEAREST, {"v": vector, "k": k}).fetchall()
