"""Runs as their producers write them: each fixture is read as the run of `TREC`."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
import zstandard

from ranktilt.data.formats.responses.hit_fields import has_hit_list
from ranktilt.data.formats.tables.cells import NumberColumn
from ranktilt.data.runs.run import Run
from ranktilt.errors import DataError, DataWarning
from tests.refusals import refused
from tests.toy import write

TREC = """\
q1 Q0 a 1 2.5 engine
q1 Q0 b 2 1.25 engine
q1 Q0 c 3 0.5 engine
q2 Q0 c 1 7 engine
q2 Q0 d 2 6.5 engine
q2 Q0 a 3 0.25 engine
"""
SCORED = [
    ("q1", "a", 2.5),
    ("q1", "b", 1.25),
    ("q1", "c", 0.5),
    ("q2", "c", 7.0),
    ("q2", "d", 6.5),
    ("q2", "a", 0.25),
]
ORDERED = [
    (query, document, -float(position % 3 + 1))
    for position, (query, document, _) in enumerate(SCORED)
]


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    content: str
    read_as: str
    scored: bool = True
    """Whether the format has the scores, or their order alone."""
    negative: bool = False
    """Whether it has distances: the scores with another sign."""


CASES = [
    Case(
        name="csv",
        content="qid,docno,score\nq1,a,2.5\nq1,b,1.25\nq1,c,0.5\nq2,c,7\nq2,d,6.5\nq2,a,0.25\n",
        read_as="CSV: qid, docno, score",
    ),
    Case(
        name="csv of another order, quoted, of Windows",
        content='\ufeff"score","doc id","query id"\r\n2.5,"a","q1"\r\n1.25,b,q1\r\n0.5,c,q1\r\n'
        "7,c,q2\r\n6.5,d,q2\r\n.25,a,q2\r\n",
        read_as="CSV: query id, doc id, score",
    ),
    Case(
        name="excel",
        content=(
            "sep=;\nqid;docno;score\nq1;a;2,5\nq1;b;1,25\nq1;c;0,5\nq2;c;7\nq2;d;6,5\n"
            "q2;a;0,25\n;;\n"
        ),
        read_as="CSV with ;: qid, docno, score",
    ),
    Case(
        name="comments before a header",
        content="# made by us\n#\nqid\tdocno\tscore\nq1\ta\t2.5\nq1\tb\t1.25\nq1\tc\t.5\n"
        "q2\tc\t7\nq2\td\t6.5\nq2\ta\t.25\n",
        read_as="TSV: qid, docno, score",
    ),
    Case(
        name="MS MARCO",
        content="q1\ta\t1\nq1\tb\t2\nq1\tc\t3\nq2\tc\t1\nq2\td\t2\nq2\ta\t3\n",
        read_as="three columns: query, document, rank",
        scored=False,
    ),
    Case(
        name="tevatron",
        content="q1\ta\t2.5\nq1\tb\t1.25\nq1\tc\t0.5\nq2\tc\t7\nq2\td\t6.5\nq2\ta\t0.25\n",
        read_as="three columns: query, document, score",
    ),
    Case(
        name="JSON lines of hits",
        content="""\
{"qid": "q1", "docid": "a", "score": 2.5}
{"qid": "q1", "docid": "b", "score": 1.25}
{"qid": "q1", "docid": "c", "score": 0.5}
{"qid": "q2", "docid": "c", "score": 7}
{"qid": "q2", "docid": "d", "score": 6.5}
{"qid": "q2", "docid": "a", "score": 0.25}
""",
        read_as="JSON lines: qid, docid, score",
    ),
    Case(
        name="sentence-transformers",
        content='{"query_id": "q1", "query": "one", "results": [{"corpus_id": "a", "score": 2.5}, '
        '{"corpus_id": "b", "score": 1.25}, {"corpus_id": "c", "score": 0.5, "text": "C"}]}\n'
        '{"query_id": "q2", "query": "two", "results": [{"corpus_id": "c", "score": 7}, '
        '{"corpus_id": "d", "score": 6.5}, {"corpus_id": "a", "score": 0.25}]}\n',
        read_as="JSON answers: query_id, results: corpus_id, score",
    ),
    Case(
        name="rank_llm",
        content="""\
[{"query": {"text": "one", "qid": "q1"}, "candidates": [
   {"docid": "a", "score": 2.5, "doc": {"contents": "A"}},
   {"docid": "b", "score": 1.25, "doc": {"contents": "B"}},
   {"docid": "c", "score": 0.5, "doc": {"contents": "C"}}]},
 {"query": {"text": "two", "qid": "q2"}, "candidates": [
   {"docid": "c", "score": 7, "doc": {"contents": "C"}},
   {"docid": "d", "score": 6.5, "doc": {"contents": "D"}},
   {"docid": "a", "score": 0.25, "doc": {"contents": "A"}}]}]
""",
        read_as="JSON answers: query.qid, candidates: docid, score",
    ),
    Case(
        name="rerankers",
        content="""\
{"q1": {"results": [{"document": {"doc_id": "a", "text": "A"}, "score": 2.5, "rank": 1},
                    {"document": {"doc_id": "b", "text": "B"}, "score": 1.25, "rank": 2},
                    {"document": {"doc_id": "c", "text": "C"}, "score": 0.5, "rank": 3}],
        "query": "one", "has_scores": true},
 "q2": {"results": [{"document": {"doc_id": "c", "text": "C"}, "score": 7, "rank": 1},
                    {"document": {"doc_id": "d", "text": "D"}, "score": 6.5, "rank": 2},
                    {"document": {"doc_id": "a", "text": "A"}, "score": 0.25, "rank": 3}],
        "query": "two", "has_scores": true}}
""",
        read_as="JSON answers: results: document.doc_id, score",
    ),
    Case(
        name="FlashRank",
        content='{"query": "q1", "passages": [{"id": "a", "text": "A", "meta": {"x": 1}, "score": '
        "2.5}, "
        '{"id": "b", "text": "B", "score": 1.25}, {"id": "c", "text": "C", "score": 0.5}]}\n'
        '{"query": "q2", "passages": [{"id": "c", "text": "C", "meta": {"x": 1}, "score": 7}, '
        '{"id": "d", "text": "D", "score": 6.5}, {"id": "a", "text": "A", "score": 0.25}]}\n',
        read_as="JSON answers: query, passages: id, score",
    ),
    Case(
        name="pandas columns",
        content="""\
{"qid": {"0": "q1", "1": "q1", "2": "q1", "3": "q2", "4": "q2", "5": "q2"},
 "docno": {"0": "a", "1": "b", "2": "c", "3": "c", "4": "d", "5": "a"},
 "score": {"0": 2.5, "1": 1.25, "2": 0.5, "3": 7.0, "4": 6.5, "5": 0.25}}
""",
        read_as="JSON table: qid, docno, score",
    ),
    Case(
        name="pandas split",
        content="""\
{"columns": ["qid", "docno", "score"], "index": [0, 1, 2, 3, 4, 5],
 "data": [["q1", "a", 2.5], ["q1", "b", 1.25], ["q1", "c", 0.5],
          ["q2", "c", 7.0], ["q2", "d", 6.5], ["q2", "a", 0.25]]}
""",
        read_as="JSON table: qid, docno, score",
    ),
    Case(
        name="lists of ids by query",
        content='{"q1": ["a", "b", "c"], "q2": ["c", "d", "a"]}',
        read_as="JSON lists: id, in their order",
        scored=False,
    ),
    Case(
        name="pairs by query",
        content=(
            '{"q1": [["a", 2.5], ["b", 1.25], ["c", 0.5]], "q2": [["c", 7], ["d", 6.5], ["a", '
            "0.25]]}"
        ),
        read_as="JSON lists: id, score",
    ),
    Case(
        name="scores a line",
        content='{"query_id": "q1", "scores": {"a": 2.5, "b": 1.25, "c": 0.5}}\n'
        '{"query_id": "q2", "scores": {"c": 7, "d": 6.5, "a": 0.25}}\n',
        read_as="JSON answers: query_id, scores: id, score",
    ),
]


def entries(run: Run) -> list[tuple[str, str, float]]:
    return run.frame().select("query_id", "doc_id", "score").rows()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_format_holds_the_run_of_the_trec_file(case: Case, tmp_path: Path) -> None:
    run = Run.load(write(tmp_path / "run", case.content))
    assert entries(run) == (SCORED if case.scored else ORDERED)
    assert run.spec["read_as"] == case.read_as
    reference = Run.load(
        write(tmp_path / "run.trec", TREC), score_order=None if case.scored else "rank"
    )
    assert run == reference


@dataclass(frozen=True, kw_only=True)
class ResponseCase:
    """Responses of one producer to two queries, as its documentation shows them."""

    name: str
    responses: tuple[str, str]
    fields: str
    """What was read of them."""
    scored: bool = True


RESPONSES = [
    ResponseCase(
        name="Elasticsearch or OpenSearch",
        responses=(
            """{"took": 3, "timed_out": false,
 "_shards": {"total": 1, "successful": 1, "failed": 0},
 "hits": {"total": {"value": 3}, "max_score": 2.5, "hits": [{"_index": "i",
 "_id": "a", "_score": 2.5, "_source": {"id": 9}}, {"_index": "i", "_id": "b",
 "_score": 1.25}, {"_index": "i", "_id": "c", "_score": 0.5}]}}""",
            """{"took": 3, "timed_out": false, "hits": {"hits": [{"_id": "c", "_score": 7},
 {"_id": "d", "_score": 6.5}, {"_id": "a", "_score": 0.25}]}}""",
        ),
        fields="_id, _score",
    ),
    ResponseCase(
        name="Solr",
        responses=(
            """{"responseHeader": {"status": 0, "QTime": 1, "params": {"q": "one"}},
 "response": {"numFound": 3, "start": 0, "docs": [{"id": "a", "score": 2.5},
 {"id": "b", "score": 1.25}, {"id": "c", "score": 0.5}]}}""",
            """{"responseHeader": {"status": 0}, "response": {"numFound": 3, "docs": [{"id": "c",
 "score": 7}, {"id": "d", "score": 6.5}, {"id": "a", "score": 0.25}]}}""",
        ),
        fields="id, score",
    ),
    ResponseCase(
        name="Vespa",
        responses=(
            """{"root": {"id": "toplevel", "relevance": 1.0, "coverage": {"coverage": 100,
 "full": true}, "children": [{"id": "id:ns:doc::a", "relevance": 2.5,
 "fields": {"title": "A"}}, {"id": "id:ns:doc::b", "relevance": 1.25},
 {"id": "id:ns:doc::c", "relevance": 0.5}]}}""",
            """{"root": {"id": "toplevel", "relevance": 1.0, "children": [{"id": "id:ns:doc::c",
 "relevance": 7}, {"id": "id:ns:doc::d", "relevance": 6.5}, {"id": "id:ns:doc::a",
 "relevance": 0.25}]}}""",
        ),
        fields="id, relevance",
    ),
    ResponseCase(
        name="SerpAPI",
        responses=(
            """{"search_metadata": {"id": "1", "status": "Success"},
 "search_parameters": {"engine": "google", "q": "one"},
 "related_questions": [{"question": "Why?", "link": "z"}],
 "organic_results": [{"position": 1, "title": "A", "link": "a"}, {"position": 2,
 "title": "B", "link": "b"}, {"position": 3, "link": "c"}]}""",
            """{"search_metadata": {"id": "2"}, "search_parameters": {"q": "two"},
 "organic_results": [{"position": 1, "link": "c"}, {"position": 2, "link": "d"},
 {"position": 3, "link": "a"}]}""",
        ),
        fields="link, position",
        scored=False,
    ),
    ResponseCase(
        name="Serper",
        responses=(
            """{"searchParameters": {"q": "one"}, "organic": [{"title": "A", "link": "a",
 "position": 1}, {"link": "b", "position": 2}, {"link": "c", "position": 3}],
 "peopleAlsoAsk": [{"question": "Why?", "link": "z"}]}""",
            """{"searchParameters": {"q": "two"}, "organic": [{"link": "c", "position": 1},
 {"link": "d", "position": 2}, {"link": "a", "position": 3}]}""",
        ),
        fields="link, position",
        scored=False,
    ),
    ResponseCase(
        name="Google Custom Search",
        responses=(
            """{"kind": "customsearch#search", "queries": {"request": [{"searchTerms": "one",
 "count": 3}]}, "searchInformation": {"totalResults": "3"},
 "items": [{"kind": "customsearch#result", "title": "A", "link": "a"}, {"link": "b"},
 {"link": "c"}]}""",
            """{"kind": "customsearch#search", "queries": {"request": [{"searchTerms": "two"}]},
 "searchInformation": {"totalResults": "3"}, "items": [{"link": "c"}, {"link": "d"},
 {"link": "a"}]}""",
        ),
        fields="link, in their order",
        scored=False,
    ),
    ResponseCase(
        name="Vertex AI Search",
        responses=(
            """{"results": [{"id": "a", "document": {"name": "projects/1/a", "id": "a",
 "structData": {"title": "A"}}}, {"id": "b", "document": {"name": "projects/1/b",
 "id": "b"}}, {"id": "c", "document": {"id": "c"}}], "totalSize": 3,
 "attributionToken": "x"}""",
            """{"results": [{"id": "c", "document": {"id": "c"}}, {"id": "d"}, {"id": "a"}],
 "attributionToken": "y"}""",
        ),
        fields="id, in their order",
        scored=False,
    ),
    ResponseCase(
        name="Bing",
        responses=(
            """{"_type": "SearchResponse", "queryContext": {"originalQuery": "one"},
 "webPages": {"value": [{"id": "https://api.bing.com/#1", "name": "A", "url": "a"},
 {"id": "x", "url": "b"}, {"id": "y", "url": "c"}]}}""",
            """{"_type": "SearchResponse", "queryContext": {"originalQuery": "two"},
 "webPages": {"value": [{"url": "c"}, {"url": "d"}, {"url": "a"}]}}""",
        ),
        fields="url, in their order",
        scored=False,
    ),
    ResponseCase(
        name="Azure AI Search",
        responses=(
            """{"@odata.context": "x", "@odata.count": 3, "value": [
 {"@search.score": 2.5, "id": "a", "title": "A"},
 {"@search.score": 1.25, "id": "b"}, {"@search.score": 0.5, "id": "c"}]}""",
            """{"@odata.context": "x", "value": [{"@search.score": 7, "id": "c"},
 {"@search.score": 6.5, "id": "d"}, {"@search.score": 0.25, "id": "a"}]}""",
        ),
        fields="id, @search.score",
    ),
    ResponseCase(
        name="Algolia",
        responses=(
            """{"hits": [{"objectID": "a", "title": "A",
 "_highlightResult": {"title": {"value": "A"}}}, {"objectID": "b"},
 {"objectID": "c"}], "nbHits": 3, "page": 0, "query": "one"}""",
            """{"hits": [{"objectID": "c"}, {"objectID": "d"}, {"objectID": "a"}], "nbHits": 3,
 "query": "two"}""",
        ),
        fields="objectID, in their order",
        scored=False,
    ),
    ResponseCase(
        name="Typesense",
        responses=(
            """{"found": 3, "hits": [{"document": {"id": "a", "title": "A"}, "highlights": [],
 "text_match": 578730123365711993}, {"document": {"id": "b"},
 "text_match": 578730123365711993}, {"document": {"id": "c"}, "text_match": 1}],
 "request_params": {"q": "one"}, "search_time_ms": 1}""",
            """{"found": 3, "hits": [{"document": {"id": "c"}, "text_match": 3},
 {"document": {"id": "d"}, "text_match": 2}, {"document": {"id": "a"},
 "text_match": 1}], "request_params": {"q": "two"}}""",
        ),
        fields="document.id, in their order",
        scored=False,
    ),
    ResponseCase(
        name="Meilisearch",
        responses=(
            """{"hits": [{"id": "a", "title": "A", "_rankingScore": 2.5}, {"id": "b",
 "_rankingScore": 1.25}, {"id": "c", "_rankingScore": 0.5}], "query": "one",
 "processingTimeMs": 1, "estimatedTotalHits": 3}""",
            """{"hits": [{"id": "c", "_rankingScore": 7}, {"id": "d", "_rankingScore": 6.5},
 {"id": "a", "_rankingScore": 0.25}], "query": "two", "processingTimeMs": 1}""",
        ),
        fields="id, _rankingScore",
    ),
    ResponseCase(
        name="Weaviate",
        responses=(
            """{"data": {"Get": {"Article": [{"title": "A", "_additional": {"id": "a",
 "score": "2.5", "explainScore": "x"}}, {"_additional": {"id": "b", "score": "1.25"}},
 {"_additional": {"id": "c", "score": "0.5"}}]}}}""",
            """{"data": {"Get": {"Article": [{"_additional": {"id": "c", "score": "7"}},
 {"_additional": {"id": "d", "score": "6.5"}}, {"_additional": {"id": "a",
 "score": "0.25"}}]}}}""",
        ),
        fields="_additional.id, _additional.score",
    ),
    ResponseCase(
        name="Qdrant",
        responses=(
            """{"result": {"points": [{"id": "a", "version": 3, "score": 2.5, "payload": {"id": 9}},
 {"id": "b", "score": 1.25}, {"id": "c", "score": 0.5}]}, "status": "ok",
 "time": 0.001}""",
            """{"result": {"points": [{"id": "c", "score": 7}, {"id": "d", "score": 6.5},
 {"id": "a", "score": 0.25}]}, "status": "ok", "time": 0.001}""",
        ),
        fields="id, score",
    ),
    ResponseCase(
        name="Qdrant",
        responses=(
            """{"result": [{"id": "a", "version": 3, "score": 2.5, "payload": null}, {"id": "b",
 "score": 1.25}, {"id": "c", "score": 0.5}], "status": "ok", "time": 0.001}""",
            """{"result": [{"id": "c", "score": 7}, {"id": "d", "score": 6.5}, {"id": "a",
 "score": 0.25}], "status": "ok", "time": 0.001}""",
        ),
        fields="id, score",
    ),
    ResponseCase(
        name="Pinecone",
        responses=(
            """{"results": [], "matches": [{"id": "a", "score": 2.5, "values": []}, {"id": "b",
 "score": 1.25}, {"id": "c", "score": 0.5}], "namespace": "ns"}""",
            """{"matches": [{"id": "c", "score": 7}, {"id": "d", "score": 6.5}, {"id": "a",
 "score": 0.25}], "namespace": "ns"}""",
        ),
        fields="id, score",
    ),
    ResponseCase(
        name="Milvus",
        responses=(
            """{"code": 0, "cost": 0, "data": [{"distance": 2.5, "id": "a", "color": "x"},
 {"distance": 1.25, "id": "b"}, {"distance": 0.5, "id": "c"}]}""",
            """{"code": 0, "data": [{"distance": 7, "id": "c"}, {"distance": 6.5, "id": "d"},
 {"distance": 0.25, "id": "a"}]}""",
        ),
        fields="id, distance",
    ),
]


def in_lists(responses: Sequence[str]) -> dict[str, str]:
    """Return the ways in which people store responses."""
    by_query = {"q1": json.loads(responses[0]), "q2": json.loads(responses[1])}
    return {
        "by query": json.dumps(by_query),
        "a list": json.dumps(list(by_query.values())),
        "lines": "\n".join(map(json.dumps, by_query.values())),
        "responses": json.dumps({"responses": list(by_query.values())}),
    }


@pytest.mark.parametrize("case", RESPONSES, ids=lambda case: case.name)
def test_responses_hold_the_run_however_they_are_stored(case: ResponseCase, tmp_path: Path) -> None:
    expected = SCORED if case.scored else ORDERED
    for way, content in in_lists(case.responses).items():
        path = write(tmp_path / "run.json", content)
        run = Run.load(path, queries=["q1", "q2"])
        assert entries(run) == expected, way
        assert run.spec["read_as"].startswith(f"responses of {case.name}: "), way
        assert run.spec["read_as"].endswith(case.fields), way
    folder = tmp_path / "responses"
    for name, content in zip(("q1.json", "q2.json"), case.responses, strict=True):
        write(folder / name, content)
    assert entries(Run.load(folder)) == expected


@pytest.mark.parametrize("case", RESPONSES, ids=lambda case: case.name)
def test_one_response_is_one_list(case: ResponseCase, tmp_path: Path) -> None:
    path = write(tmp_path / "response.json", case.responses[0])
    run = Run.load(path, queries=["q1"])
    expected = SCORED if case.scored else ORDERED
    assert entries(run) == expected[:3]
    assert run.spec["read_as"].startswith(f"responses of {case.name}: ")


def test_a_partial_response_fails_wherever_it_lies(tmp_path: Path) -> None:
    partial = '{"took": 1, "timed_out": true, "hits": {"hits": [{"_id": "a", "_score": 1.0}]}}'
    for content in (
        partial,
        f'{{"q1": {partial}}}',
        f"[{partial}]",
        f'{{"responses": [{partial}]}}',
    ):
        path = write(tmp_path / "response.json", content)
        with refused(f"{path}: 1 of 1 query failed, …", DataError):
            Run.load(path, queries=["q1"])


def test_batches_of_qdrant_are_read(tmp_path: Path) -> None:
    lists = '[{"id": 1, "score": 0.9}], [{"id": 2, "score": 0.8}]'
    points = '{"points": [{"id": 1, "score": 0.9}]}, {"points": [{"id": 2, "score": 0.8}]}'
    for result in (lists, points):
        content = f'{{"result": [{result}], "status": "ok", "time": 0.1}}'
        run = Run.load(write(tmp_path / "batch.json", content), queries=["q1", "q2"])
        assert entries(run) == [("q1", "1", 0.9), ("q2", "2", 0.8)]


def test_fields_of_documents_are_no_queries(tmp_path: Path) -> None:
    documents = (
        '[{"id": "a", "topic": "tea", "score": 2.0}, {"id": "b", "topic": "milk", "score": 1.0}]'
    )
    for content in (
        f'{{"took": 1, "results": {documents}}}',
        f'{{"nbHits": 2, "hits": {documents.replace("id", "objectID").replace("topic", "qid")}}}',
    ):
        run = Run.load(write(tmp_path / "response.json", content), queries=["q1"])
        assert entries(run) == [("q1", "a", 2.0), ("q1", "b", 1.0)]


def test_parts_of_one_response_are_no_queries(tmp_path: Path) -> None:
    content = '{"took": 1, "results": {"web": [{"url": "a"}], "news": [{"url": "b"}]}}'
    path = write(tmp_path / "response.json", content)
    with refused(
        f"{path}: found lists of documents under 'results.web' and 'results.news'; …", DataError
    ):
        Run.load(path)


def test_responses_that_name_their_queries_need_no_ids(tmp_path: Path) -> None:
    serp = next(case for case in RESPONSES if case.name == "SerpAPI")
    run = Run.load(write(tmp_path / "run.jsonl", in_lists(serp.responses)["lines"]))
    assert run.queries == ("one", "two")
    assert run.spec["read_as"] == "responses of SerpAPI: search_parameters.q, link, position"


def test_responses_are_known_by_the_text_of_their_query(tmp_path: Path) -> None:
    serp = next(case for case in RESPONSES if case.name == "SerpAPI")
    for name, content in in_lists(serp.responses).items():
        if name == "by query":
            continue
        path = write(tmp_path / "run", content)
        run = Run.load(path, queries={"none": "other", "q2": "two", "q1": "one"})
        assert entries(run) == ORDERED


def test_chroma_is_read_with_distances_smaller_is_better(tmp_path: Path) -> None:
    content = """{"ids": [["a", "b", "c"], ["c", "d", "a"]], "embeddings": null,
        "documents": [["A", "B", "C"], ["C", "D", "A"]],
        "distances": [[0.5, 1.25, 2.5], [0.25, 6.5, 7.0]]}"""
    run = Run.load(write(tmp_path / "run.json", content), queries=["q1", "q2"])
    assert entries(run) == [
        ("q1", "a", -0.5),
        ("q1", "b", -1.25),
        ("q1", "c", -2.5),
        ("q2", "c", -0.25),
        ("q2", "d", -6.5),
        ("q2", "a", -7.0),
    ]
    assert run.spec["read_as"] == "JSON lists: id, distance, smaller is better"
    assert run.spec["score_order"] == "ascending"


def test_distances_may_fall_once_in_ten(tmp_path: Path) -> None:
    names = [f"d{number}" for number in range(11)]
    distances = [0.0, *(0.1 * number for number in range(2, 11)), 0.5]
    content = json.dumps({"ids": [names], "distances": [distances]})
    run = Run.load(write(tmp_path / "run.json", content), queries=["q1"])
    assert run.spec["score_order"] == "ascending"


@pytest.mark.parametrize("ending", ["bz2", "xz", "zst", "zip"])
def test_packed_files_are_read(ending: str, tmp_path: Path) -> None:
    data = TREC.encode()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        target.writestr("results/run.trec", data)
    packed = {
        "bz2": bz2.compress(data),
        "xz": lzma.compress(data),
        "zst": zstandard.compress(data),
        "zip": archive.getvalue(),
    }[ending]
    path = tmp_path / f"run.trec.{ending}"
    path.write_bytes(packed)
    assert entries(Run.load(path)) == SCORED
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match=r"run\.trec\.\w+: cannot be (read to its end|unpacked)"):
        Run.load(path)


def test_columns_are_named(tmp_path: Path) -> None:
    path = write(
        tmp_path / "run.csv",
        "question,url,bm25\nq1,a,2.5\nq1,b,1.25\nq1,c,0.5\nq2,c,7\nq2,d,6.5\nq2,a,0.25\n",
    )
    assert entries(Run.load(f"{path}:query=question,id=url,score=bm25")) == SCORED
    with refused(f"{path}: unknown column 'link' (valid: question, url, bm25)", DataError):
        Run.load(f"{path}:query=question,id=link")
    with refused(f"{path}: unknown key 'doc' (valid: query, id, score, rank, hits, repeat, keep)"):
        Run.load(f"{path}:doc=url")


def test_columns_without_names_are_named_by_number(tmp_path: Path) -> None:
    path = write(tmp_path / "run.txt", "a q1 2.5\nb q1 1.25\nc q1 .5\nc q2 7\nd q2 6.5\na q2 .25\n")
    assert entries(Run.load(f"{path}:query=2,id=1,score=3")) == SCORED


def test_nested_keys_are_named_by_dots(tmp_path: Path) -> None:
    content = """[{"ask": {"number": "q1"},
        "found": {"pages": [{"page": {"address": "a"}}, {"page": {"address": "b"}}]}}]"""
    path = write(tmp_path / "run.json", content)
    run = Run.load(f"{path}:query=ask.number,hits=found.pages,id=page.address")
    assert entries(run) == [("q1", "a", -1.0), ("q1", "b", -2.0)]


def test_scores_below_a_name_are_read(tmp_path: Path) -> None:
    content = '{"name": "bm25", "results": {"q1": {"a": 1.5, "b": 1.0}, "q2": {"a": 1.0}}}'
    run = Run.load(write(tmp_path / "run.json", content))
    assert entries(run) == [("q1", "a", 1.5), ("q1", "b", 1.0), ("q2", "a", 1.0)]


def test_several_lists_are_no_choice_until_one_is_named(tmp_path: Path) -> None:
    content = """[{"qid": "q1", "sparse": [{"id": "a"}, {"id": "b"}],
        "dense": [{"id": "b"}, {"id": "a"}]}]"""
    path = write(tmp_path / "run.json", content)
    message = (
        f"{path}: found lists of documents under 'sparse' and 'dense'; choose one: FILE:hits=sparse"
    )
    with refused(message, DataError):
        Run.load(path)
    assert entries(Run.load(f"{path}:hits=dense")) == [("q1", "b", -1.0), ("q1", "a", -2.0)]


def test_keep_first_of_a_document_that_comes_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "run.trec", "q Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 a 3 1 t\n")
    message = (
        f"{path}:3: document 'a' occurs twice for query 'q'; to keep the first, use FILE:keep=first"
    )
    with refused(message, DataError):
        Run.load(path)
    run = Run.load(f"{path}:keep=first")
    assert entries(run) == [("q", "a", 3.0), ("q", "b", 2.0)]
    assert run.spec["repeated_documents_dropped"] == 1


def test_empty_ids_are_left_out_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "run.csv", "qid,docno,score\nq,a,3\nq,,2\nq,b,1\n")
    message = r"run\.csv: left out 1 entry without a query or a document id"
    with pytest.warns(DataWarning, match=message):
        run = Run.load(path)
    assert entries(run) == [("q", "a", 3.0), ("q", "b", 1.0)]
    assert run.spec["skipped"] == 1
    write(path, "qid,docno,score\nq,,3\nq,,2\nq,b,1\n")
    message = f"{path}:2: no document id in 2 entries of 3; name its column: FILE:id=COLUMN"
    with refused(message, DataError):
        Run.load(path)


def test_minus_infinity_is_an_order(tmp_path: Path) -> None:
    for content in (
        "q Q0 a 1 3 t\nq Q0 b 2 -inf t\nq Q0 c 3 -inf t\n",
        "qid,docno,score\nq,a,3\nq,b,-inf\nq,c,-Infinity\n",
        '{"q": {"a": 3, "b": -Infinity, "c": -Infinity}}',
    ):
        run = Run.load(write(tmp_path / "run", content))
        assert entries(run) == [("q", "a", -1.0), ("q", "b", -2.0), ("q", "c", -2.0)]
        assert not run.scored


def test_standard_input_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(TREC.encode())

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", Stdin())
    run = Run.load("-")
    assert entries(run) == SCORED
    assert run.name == "engine"
    Stdin.buffer = io.BytesIO(b"q Q0 a 1 high t\n")
    with refused("standard input:1: expected a finite number as score, got 'high'…", DataError):
        Run.load("-")


def test_ids_may_begin_with_a_number_sign(tmp_path: Path) -> None:
    content = "# run of today\n# query Q0 doc\n#1 Q0 #a 1 2 t\n#1 Q0 #b 2 1 t\n"
    path = write(tmp_path / "run.trec", content)
    assert entries(Run.load(path)) == [("#1", "#a", 2.0), ("#1", "#b", 1.0)]
    write(path, f"{content}#1 Q0 #a 3 0 t\n")
    with refused(f"{path}:5: document '#a' occurs twice for query '#1'…", DataError):
        Run.load(path)


@dataclass(frozen=True, kw_only=True)
class ShapeCase:
    """JSON that is in no table of producers, and is read by its shape."""

    name: str
    content: str
    entries: list[tuple[str, str, float]]
    read_as: str


SHAPES = [
    ShapeCase(
        name="Haystack",
        content=(
            '{"q1": {"documents": [{"id": "a", "content": "A", "meta": {"id": 7}, "score": 0.9}]}}'
        ),
        entries=[("q1", "a", 0.9)],
        read_as="JSON answers: documents: id, score",
    ),
    ShapeCase(
        name="LlamaIndex",
        content=(
            '[{"query": "q1", "source_nodes": [{"node": {"id_": "n", "text": "A"}, "score": 0.9}]}]'
        ),
        entries=[("q1", "n", 0.9)],
        read_as="JSON answers: query, source_nodes: node.id_, score",
    ),
    ShapeCase(
        name="turbopuffer",
        content='{"q1": {"rows": [{"id": 1, "$dist": 0.1}, {"id": 2, "$dist": 0.4}]}}',
        entries=[("q1", "1", -0.1), ("q1", "2", -0.4)],
        read_as="JSON answers: rows: id, $dist, smaller is better",
    ),
    ShapeCase(
        name="MongoDB",
        content=(
            '[{"query": "q1", "results": [{"_id": {"$oid": "6f"}, "score": {"$numberDouble": '
            '"0.5"}}]}]'
        ),
        entries=[("q1", "6f", 0.5)],
        read_as="JSON answers: query, results: _id, score",
    ),
    ShapeCase(
        name="Ragas",
        content='[{"user_input": "q1", "retrieved_context_ids": ["a", "b"], "response": "x"}]',
        entries=[("q1", "a", -1.0), ("q1", "b", -2.0)],
        read_as="JSON answers: user_input, retrieved_context_ids: id, in their order",
    ),
    ShapeCase(
        name="records under their ids",
        content='{"q1": {"a": {"score": 2.0, "rank": 1}, "b": {"score": 1.0, "rank": 2}}}',
        entries=[("q1", "a", 2.0), ("q1", "b", 1.0)],
        read_as="JSON lists: id, score",
    ),
    ShapeCase(
        name="Weaviate's Python client",
        content="""{"q1": {"objects": [
            {"uuid": "a", "metadata": {"distance": 0.1, "score": null},
             "properties": {"title": "A"}},
            {"uuid": "b", "metadata": {"distance": 0.2, "score": null}, "properties": {}}]}}""",
        entries=[("q1", "a", -0.1), ("q1", "b", -0.2)],
        read_as="JSON answers: objects: uuid, metadata.distance, smaller is better",
    ),
    ShapeCase(
        name="several searches of Typesense",
        content="""{"results": [
            {"found": 1, "hits": [{"document": {"id": "a"}, "text_match": 3}],
             "request_params": {"q": "one"}},
            {"found": 0, "hits": [], "request_params": {"q": "two"}}]}""",
        entries=[("one", "a", -1.0)],
        read_as="responses of Typesense: request_params.q, document.id, in their order",
    ),
    ShapeCase(
        name="rank_llm of before",
        content="""[{"query": "one", "hits": [
            {"content": "A", "qid": 7, "docid": "a", "rank": 1, "score": 2.0},
            {"content": "B", "qid": 7, "docid": "b", "rank": 2, "score": 1.0}]}]""",
        entries=[("7", "a", 2.0), ("7", "b", 1.0)],
        read_as="JSON answers: hits.qid, hits: docid, score",
    ),
    ShapeCase(
        name="lists below a name",
        content='{"model": "x", "rankings": {"q1": ["a", "b"]}}',
        entries=[("q1", "a", -1.0), ("q1", "b", -2.0)],
        read_as="JSON lists: id, in their order",
    ),
    ShapeCase(
        name="scores beside ids",
        content='[{"qid": "q1", "doc_ids": ["a", "b"], "scores": [2, 1]}]',
        entries=[("q1", "a", 2.0), ("q1", "b", 1.0)],
        read_as="JSON answers: qid, doc_ids: id, score",
    ),
    ShapeCase(
        name="distances beside ids",
        content='[{"qid": "q1", "ids": [4, 5], "distances": [0.1, 0.2]}]',
        entries=[("q1", "4", -0.1), ("q1", "5", -0.2)],
        read_as="JSON answers: qid, ids: id, distance, smaller is better",
    ),
    ShapeCase(
        name="Databricks",
        content="""{"q1": {
            "manifest": {"column_count": 2, "columns": [{"name": "id"}, {"name": "score"}]},
            "result": {"row_count": 1, "data_array": [["a", 0.9]]}}}""",
        entries=[("q1", "a", 0.9)],
        read_as="JSON lists: id, score",
    ),
    ShapeCase(
        name="a table of SQL",
        content="""{"columns": [{"name": "query"}, {"name": "doc_id"}, {"name": "score"}],
            "rows": [["q1", "a", 2.0], ["q1", "b", 1.0]]}""",
        entries=[("q1", "a", 2.0), ("q1", "b", 1.0)],
        read_as="JSON table: query, doc_id, score",
    ),
]


@pytest.mark.parametrize("case", SHAPES, ids=lambda case: case.name)
def test_json_is_read_by_its_shape_and_says_so(case: ShapeCase, tmp_path: Path) -> None:
    run = Run.load(write(tmp_path / "run.json", case.content))
    assert entries(run) == case.entries
    assert run.spec["read_as"] == case.read_as


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            (
                '[{"query": "q", "results": [{"index": 0, "relevance_score": 0.9, "document": '
                '{"text": '
                '"A"}}]}]'
            ),
            ": JSON answers: expected a column for the document (docno, doc_id, docid, corpus_id, "
            "…), got index, "
            "relevance_score, document; name it: FILE:id=COLUMN; index is a document's position "
            "in the request…",
        ),
        ("| qid | docno | score |\n|---|---|---|\n| q | a | 2 |\n", ": …"),
        ("2 qid:1 1:0.3 2:0.5 # docid = a\n", ": …"),
        (
            '[{"qid": "q", "results": [["a", 1, 2.5]]}]',
            ": expected documents as ids, as pairs of id and score, …",
        ),
        (
            "qid,url,distance\nq,a,3\nq,b,1\nq,c,2\n",
            (
                ": 'distance' neither rises nor falls down the file; say which with --score-order "
                "ascending "
                "…"
            ),
        ),
        (
            "<!DOCTYPE html><html></html>",
            ": expected a run (query, document and score (or rank)), got a web page; …",
        ),
        (
            "qid,docid,rating\nq,a,1\n",
            ": expected a run, got judgments (column 'rating'); name them with --qrels",
        ),
        (
            "doc_id,source\na,human\n",
            ":1: expected a run (query, document and score (or rank)), got labels (CSV: …",
        ),
        (
            "docno\tqid\tsim\na\tq\t2\nb\tq\t1\n",
            (
                ": no column is named score or rank, but 'sim' holds numbers; "
                "to read them, use FILE:score=sim or FILE:rank=sim; …"
            ),
        ),
        (
            '["q", "a", 2.5]\n["q", "b", 1.0]\n',
            (
                ":1: expected lists of documents, or records with names, got a row without "
                "column names: ['q', 'a', 2.5]"
            ),
        ),
    ],
    ids=range(10),
)
def test_what_is_no_run_is_said_with_a_way_on(content: str, words: str, tmp_path: Path) -> None:
    path = write(tmp_path / "run", content)
    with refused(f"{path}{words}", DataError):
        Run.load(path)


def test_quotes_count_in_tables_of_runs(tmp_path: Path) -> None:
    path = write(tmp_path / "run.tsv", 'qid\tdocno\tscore\nq\t"""a"""\t2\nq\t"b\tc"\t1\n')
    assert entries(Run.load(path)) == [("q", '"a"', 2.0), ("q", "b\tc", 1.0)]


def test_a_comment_of_one_known_word_is_no_header(tmp_path: Path) -> None:
    path = write(tmp_path / "run", "#score\nq1 Q0 a 1 2 t\nq1 Q0 b 2 1 t\n")
    assert entries(Run.load(path)) == [("q1", "a", 2.0), ("q1", "b", 1.0)]


def test_hits_are_found_three_objects_deep_and_no_deeper() -> None:
    hits = [{"id": "a", "score": 1.0}]
    assert has_hit_list({"x": {"y": {"hits": hits}}})
    assert not has_hit_list({"x": {"y": {"z": {"hits": hits}}}})


def test_numbers_beyond_32_bits_are_no_whole_numbers_of_a_column() -> None:
    def whole_numbers_of(number: int) -> list[int | None]:
        return NumberColumn.from_texts(pl.Series([str(number)])).whole_numbers.to_list()

    assert whole_numbers_of(2**31 - 1) == [2**31 - 1]
    assert whole_numbers_of(2**31) == [None]
