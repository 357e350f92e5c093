"""A vector store of LangChain whose chunks name their document in the metadata `doc_id`.

    pip install langchain-core  # and the package of your store
    ranktilt audit DIR -r engine:langchain_store:search@100

Run it in the folder of this file, or copy the file to yours; `my_store` is the module that makes
your store. A document is as good as its best chunk.
"""


def search(query: str, k: int) -> list[tuple[str, float]]:
    from my_store import store

    best: dict[str, float] = {}
    for chunk, score in store.similarity_search_with_score(query, k=5 * k):
        name = chunk.metadata["doc_id"]
        best[name] = max(score, best.get(name, score))
    return sorted(best.items(), key=lambda hit: -hit[1])[:k]
