"""An index of LlamaIndex; its documents have the collection's ids: Document(id_=..., text=...).

    pip install llama-index-core  # and the package of your store
    ranktilt audit DIR -r engine:llamaindex:search@100

Run it in the folder of this file, or copy the file to yours; `my_index` is the module that makes
your index. A document is as good as its best chunk.
"""


def search(query: str, k: int) -> list[tuple[str, float]]:
    from my_index import index

    best: dict[str, float] = {}
    for chunk in index.as_retriever(similarity_top_k=5 * k).retrieve(query):
        name = chunk.node.ref_doc_id
        best[name] = max(chunk.score, best.get(name, chunk.score))
    return sorted(best.items(), key=lambda hit: -hit[1])[:k]
