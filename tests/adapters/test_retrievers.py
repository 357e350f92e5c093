"""Retrievers of LangChain and LlamaIndex as rankers: how results are named, ordered and counted."""

import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pytest

import ranktilt as rt
from ranktilt.errors import DataWarning
from tests.rankers.contract import entries, ids
from tests.refusals import refused
from tests.toy import toy

pytestmark = pytest.mark.filterwarnings("ignore::ranktilt.errors.DataWarning")
TEXTS = dict(toy().docs.select("id", "text").iter_rows())
MATCHES = {
    "red apples": ["d1-llm", "d1-human"],
    "river water": ["d2-human", "d2-llm"],
    "old clock bell": ["d3-human", "d3-llm", "d1-llm"],
}
"""What the retrievers below find, best first."""
RANKED = dict(zip(["q1", "q2", "q3"], MATCHES.values(), strict=True))


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktilt.rankers.engines.calls.PAUSES", (0.0, 0.0))


@dataclass
class Document:
    """A document as LangChain returns it."""

    id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class Node:
    """A node as LlamaIndex returns it."""

    node_id: str = "chunk"
    ref_doc_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class NodeWithScore:
    node: Node
    score: float | None = None


class Chain:
    """Answers as a retriever of LangChain does, with documents made from ids."""

    def __init__(self, make: Any = lambda name: Document(id=name)) -> None:
        self.make = make

    def invoke(self, query: str) -> Any:
        return [self.make(name) for name in MATCHES[query]]


class Retriever:
    """Answers as a retriever of LlamaIndex does."""

    def __init__(self, make: Any) -> None:
        self.make = make

    def retrieve(self, query: str) -> Any:
        return [self.make(name, rank) for rank, name in enumerate(MATCHES[query])]


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda name: Document(id=name), "id"),
        (lambda name: Document(id="uuid", metadata={"doc_id": name}), "metadata['doc_id']"),
        (lambda name: Document(metadata={"source": name, "id": "x"}), "metadata['source']"),
        (lambda name: Document(metadata={"url": name, "page": 3}), "metadata['url']"),
        (lambda name: Document(metadata={"mine": name}), "metadata['mine']"),
    ],
)
def test_documents_of_langchain_are_named_by_what_the_collection_knows(make: Any, key: str) -> None:
    ranker = rt.ranker(Chain(make))
    run = ranker.rank(toy())
    assert ids(run) == RANKED
    assert run.spec["document_id"] == key
    assert run.spec["score_order"] == "rank"  # documents have no scores
    assert run.spec["ranker"] == repr(ranker) == "langchain:Chain"
    assert run.spec["object"] == {"class": "tests.adapters.test_retrievers.Chain"}


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda name: Node(node_id=name), "node_id"),
        (lambda name: Node(ref_doc_id=name), "ref_doc_id"),
        (
            lambda name: Node(metadata={"file_name": name, "page_label": "1"}),
            "metadata['file_name']",
        ),
    ],
)
def test_nodes_of_llama_index_are_named_and_keep_their_scores(make: Any, key: str) -> None:
    run = rt.ranker(Retriever(lambda name, rank: NodeWithScore(make(name), 1.0 / (1 + rank)))).rank(
        toy()
    )
    assert ids(run) == RANKED
    assert [score for _, score in entries(run)["q3"]] == pytest.approx([1.0, 1 / 2, 1 / 3])
    assert run.spec["document_id"] == key
    assert run.spec["ranker"] == "llama-index:Retriever"
    assert "score_order" not in run.spec


def test_order_counts_where_nodes_have_no_scores() -> None:
    run = rt.ranker(Retriever(lambda name, rank: NodeWithScore(Node(node_id=name)))).rank(toy())
    assert ids(run) == RANKED
    assert run.spec["score_order"] == "rank"


def test_pages_are_no_ids_of_a_collection_whose_ids_are_numbers() -> None:
    collection = toy()
    numbers = {name: str(number) for number, name in enumerate(collection.ids)}
    docs = collection.docs.with_columns(pl.col("id").replace_strict(numbers)).drop("origin")
    qrels = collection.qrels.with_columns(pl.col("doc_id").replace_strict(numbers))
    numbered = rt.Collection(docs, collection.queries, qrels)

    def chunk(name: str) -> Document:
        return Document(metadata={"page_label": "0", "chunk": "1", "doc_id": int(numbers[name])})

    run = rt.ranker(Chain(chunk)).rank(numbered)
    assert run.spec["document_id"] == "metadata['doc_id']"
    only_pages = Chain(lambda name: Document(metadata={"page_label": "0"}))
    with refused(
        "langchain:Chain: no result names a document of the collection, whose ids look like '0'; "
        "the first result has no id and no metadata; put the collection's id into each document's "
        "metadata, as doc_id"
    ):
        rt.ranker(only_pages).rank(numbered)


def test_results_of_unknown_names_are_refused_with_both_sides() -> None:
    chain = Chain(lambda name: Document(id="6f1c", metadata={"source": f"/data/{name}.txt"}))
    with refused(
        "langchain:Chain: no result names a document of the collection, whose ids look like "
        "'d1-human'; the first result has id '6f1c' and metadata['source'] '/data/d1-llm.txt'; put "
        "the collection's id into each document's metadata, as doc_id"
    ):
        rt.ranker(chain).rank(toy())


def test_first_chunk_of_a_document_counts_and_others_are_counted() -> None:
    class Chunks(Chain):
        def invoke(self, query: str) -> Any:
            return [document for document in super().invoke(query) for _ in range(2)]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        run = rt.ranker(Chunks()).rank(toy())
    assert ids(run) == RANKED
    assert run.spec["answers"]["duplicates"] == sum(map(len, MATCHES.values()))
    assert any("its first rank counts" in str(warning.message) for warning in caught)


def test_result_without_the_key_keeps_its_place_as_an_unknown_document() -> None:
    def document(name: str) -> Document:
        return Document(metadata={"doc_id": name} if name != "d1-llm" else {})

    run = rt.ranker(Chain(document)).rank(toy())
    assert ids(run)["q1"] == ["result 1", "d1-human"]
    assert run.spec["answers"]["unknown"] == 2


@pytest.mark.parametrize(
    ("answer", "quoted"), [("It is red.", "'It is red.'"), ({"answer": "red"}, "{'answer': 'red'}")]
)
def test_chain_that_answers_in_words_is_refused(answer: Any, quoted: str) -> None:
    class Talk:
        def invoke(self, query: str) -> Any:
            return answer

    with refused(
        "langchain:Talk: query 'q1': expected a list of results from invoke(), got " + quoted
    ):
        rt.ranker(Talk()).rank(toy())


def test_one_call_at_a_time_unless_concurrency_says_otherwise() -> None:
    class Counting(Chain):
        running = most = 0
        lock = threading.Lock()
        both = threading.Barrier(2, timeout=5)

        def invoke(self, query: str) -> Any:
            with self.lock:
                Counting.running += 1
                Counting.most = max(Counting.most, Counting.running)
            if self.meets and query != "red apples":
                self.both.wait()
            with self.lock:
                Counting.running -= 1
            return super().invoke(query)

        meets = False

    rt.ranker(Counting()).rank(toy())
    assert Counting.most == 1
    # The first call is answered before others begin; the other two wait for each other.
    Counting.meets = True
    rt.ranker(Counting(), concurrency=2).rank(toy())
    assert Counting.most == 2


def test_options_are_those_of_live_engines() -> None:
    assert repr(rt.ranker(Chain(), k=2)) == "langchain:Chain@2"
    assert ids(rt.ranker(Chain(), k=2).rank(toy()))["q3"] == ["d3-human", "d3-llm"]
    with refused("unknown option of langchain 'depth'; did you mean 'repeats'? (valid: …"):
        rt.ranker(Chain(), depth=2)


def test_failed_calls_are_left_out_and_named() -> None:
    class Broken(Chain):
        def invoke(self, query: str) -> Any:
            if query == "river water":
                raise ConnectionError("gone")
            return super().invoke(query)

    run = rt.ranker(Broken(), max_failures=50).rank(toy())
    assert run.spec["failed"] == {"q2": "ConnectionError: gone"}
    assert set(ids(run)) == {"q1", "q3"}


def words(text: str) -> list[float]:
    """Return the counts of some words, as a vector."""
    known = ("apples", "river", "water", "clock", "bell", "old", "trees")
    return [0.1, *(float(text.split().count(word)) for word in known)]


class TestLibraries:
    """The libraries' own classes, so far as they are installed."""

    def test_langchain_vector_store(self) -> None:
        stores = pytest.importorskip("langchain_core.vectorstores")
        from langchain_core.embeddings import Embeddings

        class Words(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return [words(text) for text in texts]

            def embed_query(self, text: str) -> list[float]:
                return words(text)

        store = stores.InMemoryVectorStore(Words())
        chunks = [(name, part) for name, text in TEXTS.items() for part in (text[:20], text[20:])]
        store.add_texts([part for _, part in chunks], [{"source": name} for name, _ in chunks])
        ranker = rt.ranker(store.as_retriever(search_kwargs={"k": 12}))
        run = ranker.rank(toy())
        assert {len(ranked) for ranked in ids(run).values()} == {6}
        assert set(ids(run)["q2"][:2]) == {"d2-human", "d2-llm"}
        assert run.spec["document_id"] == "metadata['source']"
        assert run.spec["packages"]["langchain-core"]
        assert run.spec["object"]["class"].endswith(".VectorStoreRetriever")
        assert isinstance(hash(ranker), int)

    def test_langchain_chain_of_a_retriever(self) -> None:
        runnables = pytest.importorskip("langchain_core.runnables")
        chain = runnables.RunnableLambda(Chain().invoke) | runnables.RunnableLambda(
            lambda documents: documents[:1]
        )
        run = rt.ranker(chain).rank(toy())
        assert ids(run) == {query: ranked[:1] for query, ranked in RANKED.items()}

    @pytest.mark.filterwarnings("ignore")
    def test_llama_index_retriever(self) -> None:
        core = pytest.importorskip("llama_index.core")
        from llama_index.core.embeddings import BaseEmbedding
        from llama_index.core.node_parser import TokenTextSplitter

        class Words(BaseEmbedding):
            def _get_text_embedding(self, text: str) -> list[float]:
                return words(text)

            _get_query_embedding = _get_text_embedding

            async def _aget_query_embedding(self, query: str) -> list[float]:
                return words(query)

        documents = [core.Document(id_=name, text=text) for name, text in TEXTS.items()]
        splitter = TokenTextSplitter(chunk_size=4, chunk_overlap=0, tokenizer=str.split)
        index = core.VectorStoreIndex.from_documents(
            documents, transformations=[splitter], embed_model=Words()
        )
        run = rt.ranker(index.as_retriever(similarity_top_k=50)).rank(toy())
        assert {len(ranked) for ranked in ids(run).values()} == {6}
        assert set(ids(run)["q2"][:2]) == {"d2-human", "d2-llm"}
        assert run.spec["document_id"] == "ref_doc_id"
        assert run.spec["packages"]["llama-index-core"]
        scores: Sequence[float] = [score for _, score in entries(run)["q2"]]
        assert max(scores) <= 1.0 + 1e-6  # cosines


def test_vector_store_is_refused_with_a_hint_to_its_retriever() -> None:
    stores = pytest.importorskip("langchain_core.vectorstores")
    from langchain_core.embeddings.fake import DeterministicFakeEmbedding

    store = stores.InMemoryVectorStore(DeterministicFakeEmbedding(size=3))
    with pytest.raises(rt.UserError, match=r"give its retriever: \.as_retriever\(…\)$"):
        rt.ranker(store)
