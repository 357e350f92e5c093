"""Damage small real files at random and read them.

Each reader must give a result, or one line that says what is wrong.

    python scripts/fuzz.py                                # 5,000 cases over all readers, in turn
    python scripts/fuzz.py --reader sidecar --cases 300   # one of them
    python scripts/fuzz.py --reader sidecar --case 117    # one case again, with its traceback

A case is told by reader, seed and number. The files are made here, from the bundled collection. All
is read in one process with bounded memory; where a library ends that, the case counts as failed and
a new one goes on. Exit status 1 if a case ends in anything but a result or a `UserError`, or takes
more than five seconds. The readers ``same run`` and ``same labels`` write the same data in every
format: what is read must be what is read of TREC's lines, or of TSV.
"""

import argparse
import bz2
import csv
import gzip
import io
import json
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import polars as pl

import ranktilt as rt
from ranktilt.data.bundled.reader import bundled
from ranktilt.data.collection import Collection
from ranktilt.data.formats.judgments.qrels import read_qrels
from ranktilt.data.formats.tables.parquet import read_judgments, read_parquet
from ranktilt.data.labels.label_table import read_labels
from ranktilt.data.labels.labels import from_labels
from ranktilt.data.queries import read_queries
from ranktilt.data.runs.run import Run
from ranktilt.data.save import save
from ranktilt.errors import UserError
from ranktilt.explaining.check import check
from ranktilt.generation.manifest import manifest, require_ours
from ranktilt.generation.templates import template
from ranktilt.llm.base import Answer
from ranktilt.llm.batch_files import read_lines, read_page, read_status
from ranktilt.llm.journal import Journal, JournalRecord
from ranktilt.llm.responses import classify_error, json_body, read_answer, read_vectors
from ranktilt.llm.server import Server
from ranktilt.papers.askari.triples import triples
from ranktilt.reporting.layouts.cells import read_cells
from ranktilt.reporting.report import read_result
from ranktilt.training.options import RerankerTraining
from ranktilt.training.training_set import reranker_set

LIMIT = 5
"""Seconds that a case may take."""
MEMORY = 24 << 30
"""Bytes of address space; Polars reserves most of what it takes."""
BYTES = [
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\x1b]0;x\x07",
    b"\r",
    b"\n",
    b"\n\n",
    b"\t",
    b'"',
    b"'",
    b",",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\\",
    b"\\ud800",
    b"-",
    b"9" * 40,
    b"9" * 5000,
    b"1e999",
    b"NaN",
    b"-Infinity",
    b"null",
    b"0.5",
    b" ",
    b"[" * 3000,
    b'{"a":' * 3000,
    "größe 日本 \u202e".encode(),
    b"x" * 70_000,
]
VALUES = [
    None,
    True,
    -1,
    0,
    3,
    2**31,
    2**63,
    2**127,
    -(2**64),
    1.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "0",
    "\ud800",
    "\x00",
    "a\nb",
    "x" * 5000,
    "/dev/zero",
    [],
    {},
    [[]],
    ["a", 1, None],
    {"a": 1},
    {"": {}},
    [0.5] * 2000,
    "nDCG@3",
    "<60 deep>",
    "<300 deep>",
    "<900 deep>",
    "<5000 deep>",
]
NAMES = [
    "beir",
    "cocktail",
    "qrels",
    "trec",
    "json run",
    "sidecar",
    "labels tsv",
    "labels csv",
    "labels parquet",
    "rows parquet",
    "judgments",
    "audit",
    "cells",
    "output",
    "prompt",
    "queries",
    "triples",
    "response",
    "vectors",
    "batch",
    "journal",
    "answers",
    "overviews",
    # Runs and labels in every format that is read.
    "run lists",
    "run records",
    "run responses",
    "run mteb",
    "run predictions",
    "run hits",
    "run matches",
    "run match lines",
    "run pairs",
    "run beside",
    "run semicolons",
    "run bz2",
    "run csv",
    "run tsv",
    "run parquet",
    "labels jsonl",
    "same run",
    "same labels",
]
Read = Callable[[Path], object]
Files = Mapping[str, bytes]


def small() -> Collection:
    """Some pairs of the bundled collection."""
    collection = bundled()
    qrels = collection.qrels.filter(
        pl.col("query_id").is_in(collection.queries_with_judgments["id"].head(5).implode())
    )
    queries = collection.queries.filter(pl.col("id").is_in(qrels["query_id"].implode()))
    docs = collection.docs.filter(pl.col("id").is_in(qrels["doc_id"].implode()))
    return Collection(
        collection.docs.filter(pl.col("origin").is_in(docs["origin"].implode())), queries, qrels
    )


def readers(folder: Path) -> dict[str, tuple[Read, Files]]:
    """Make the files of every reader, and return how they are read."""
    pairs = small()
    bm25 = rt.ranker("bm25@20")
    run = bm25.rank(pairs)
    trec = run.contents(folder / "sidecar" / "run")

    def audited(path: Path) -> object:
        result = rt.audit(pairs, Run.load(path), "nDCG@3", card=True, resamples=100)
        return result.to_json(), rt.table(result)

    def labels(path: Path) -> object:
        return from_labels(read_labels(path), queries=run.queries, labels_file=path)

    def rows(path: Path) -> object:
        return Collection(
            read_parquet(path, strings=("title", "source")), pairs.queries, pairs.qrels.clear()
        )

    table, frame = pairs.docs.select("source", "origin", doc_id="id"), run.frame()
    scores = {
        q: dict(zip(f["doc_id"], f["score"], strict=True)) for (q,), f in frame.group_by("query_id")
    }
    judged = [{"query-id": q, "corpus-id": d, "score": g} for q, d, g in pairs.qrels.iter_rows()]
    options = {
        "llm": {"llm": "echo"},
        "prompt": {"name": "p"},
        "sources": {"m": 0.7},
        "of": "human",
        "titles": "keep",
    }
    options = {**options, "collection": {"path": "toy"}, "earlier": [options], "inputs": {"a": "b"}}
    cut = {"limit": 512, "share": {"human": 0.5, "claude": 0.25}}
    spec = {
        **run.spec,
        "seed": 7,
        "own_documents_dropped": 2,
        "truncated": cut,
        "candidates": dict(run.spec),
    }
    save(pairs, folder / "beir")
    cocktail = {
        f"cocktail/corpus/{name}.jsonl": "".join(
            json.dumps({"_id": row["origin"], "title": row["title"] or "", "text": row["text"]})
            + "\n"
            for row in pairs.docs.filter(source=name).iter_rows(named=True)
        ).encode()
        for name in pairs.sources
    }
    origins = dict(pairs.docs.select("id", "origin").iter_rows())
    lines = {
        f"{query}\t{origins[doc]}\t{grade:g}\n" for query, doc, grade in pairs.qrels.iter_rows()
    }
    files = {
        **cocktail,
        "cocktail/queries.jsonl": (folder / "beir" / "queries.jsonl").read_bytes(),
        "cocktail/qrels/test.tsv": "".join(
            ["query-id\tcorpus-id\tscore\n", *sorted(lines)]
        ).encode(),
        "qrels/q.tsv": (folder / "beir" / "qrels" / "test.tsv").read_bytes(),
        "trec/run": trec[folder / "sidecar" / "run"],
        "json run/run.json": json.dumps(scores).encode(),
        "sidecar/run": trec[folder / "sidecar" / "run"],
        "sidecar/run.json": json.dumps(spec).encode(),
        "labels tsv/labels.tsv": table.write_csv(separator="\t").encode(),
        "labels csv/labels.csv": table.write_csv(quote_style="always").encode(),
        "judgments/test.jsonl": "\n".join(map(json.dumps, judged)).encode(),
        "audit/a.json": rt.audit(
            pairs, run, ["nDCG@3", "AP@5"], card=True, resamples=100
        ).to_json(),
        "cells/cells.csv": b"table,dataset,system,measure,value\nwang-1,a,bm25,nDCG@3,0.5\n",
        "manifest/manifest.json": manifest(options, {}),
        "output/manifest.json": manifest(options, {"a": "0" * 64}),
        "output/a": b"x",
        "queries/queries.tsv": pairs.queries.select("id", "text")
        .write_csv(separator="\t", quote_style="never")
        .encode(),
        "triples/t.tsv": b"".join(triples(pairs, 2)),
        "prompt/prompt.txt": b"Rewrite {{this}}, {title}:\n{text}\n",
    }
    write(folder, files)
    for name, content in (("labels", table), ("rows", pairs.docs.rename({"id": "_id"}))):
        (folder / f"{name} parquet").mkdir()
        content.write_parquet(folder / f"{name} parquet" / "t.parquet")
    read: dict[str, Read] = {
        "beir": lambda at: check(rt.load(at)),
        "cocktail": lambda at: check(rt.load(at)),
        "qrels": lambda at: read_qrels(at / "q.tsv"),
        "trec": lambda at: audited(at / "run"),
        "json run": lambda at: audited(at / "run.json"),
        "sidecar": lambda at: audited(at / "run"),
        "labels tsv": lambda at: labels(at / "labels.tsv"),
        "labels csv": lambda at: labels(at / "labels.csv"),
        "labels parquet": lambda at: labels(at / "t.parquet"),
        "rows parquet": lambda at: rows(at / "t.parquet"),
        "judgments": lambda at: read_judgments(at / "test.jsonl"),
        "audit": lambda at: read_result(at / "a.json"),
        "cells": lambda at: read_cells(at / "cells.csv"),
        "output": require_ours,
        "prompt": lambda at: template(at / "prompt.txt").render("text"),
        "queries": lambda at: read_queries(at / "queries.tsv"),
        "triples": lambda at: reranker_set(pairs, RerankerTraining(triples=str(at / "t.tsv"))),
    }
    read |= (
        written_answers(folder)
        | written_runs(folder, run)
        | written_labels(folder, table)
        | server_readers(folder)
    )
    return {name: (read[name], content_of(folder / name)) for name in NAMES}


Entry = tuple[str, str, float]
"""A query, a document and its score."""
STRANGE_IDS = [
    "1",
    "01",
    "1.0",
    "1e5",
    "+1",
    "nan",
    "NaN",
    "null",
    "None",
    "true",
    "NA",
    "٣",
    "=1+1",
    "-d",
    "@d",
    "'d",
    'd"',
    '"d"',
    "a,b",
    "a;b",
    "a|b",
    "%20",
    "e\u0301",
    "é",
    "{d}",
    "[d]",
    "#d",
    "Q0",
    "q",
    "\u00a0d",
    "\u3000d",
    "日本",
    "0x10",
    "1_0",
    "d" * 300,
    "\u200bd",
    "d\u00a0e",
]
STRANGE_SCORES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1 + 0.2,
    1e-300,
    5e-324,
    1e300,
    -1e300,
    2.0**53,
    2.0**53 + 2,
    1 / 3,
    1e16,
    123456789.125,
]


ENTRIES = "entries.json"
"""Data that a case writes in every format; it is not damaged, but holds other ids and scores."""


def entries(data: bytes) -> list[Entry]:
    """Read the entries that every format is to hold."""
    return [tuple(fields) for fields in json.loads(data)]


def other_entries(known: Sequence[Entry], chance: random.Random) -> list[Entry]:
    """Give some entries other ids and scores, in another order, that all formats can hold."""
    changed = list(known)
    for _ in range(chance.choice((1, 2, 5, 20))):
        index = chance.randrange(len(changed))
        query, document, score = changed[index]
        match chance.randrange(6):
            case 0:
                changed[index] = (query, chance.choice(STRANGE_IDS), score)
            case 1:
                name = chance.choice(STRANGE_IDS)
                changed = [
                    (name if of == query else of, document, value)
                    for of, document, value in changed
                ]
            case 2:
                changed[index] = (query, document, chance.choice(STRANGE_SCORES))
            case 3:
                changed[index] = (query, document, chance.uniform(-5, 40))
            case 4:
                other_index = chance.randrange(len(changed))
                changed[index], changed[other_index] = changed[other_index], changed[index]
            case 5 if len(changed) > 1:
                del changed[index]
    return changed


def run_texts(entries_of_run: Sequence[Entry]) -> dict[str, bytes]:
    """Write entries in every format that is read, the first as TREC's."""
    by_query: dict[str, dict[str, float]] = {}
    for query, document, score in entries_of_run:
        by_query.setdefault(query, {})[document] = score
    ranks: dict[str, int] = {}
    lines = list[str]()
    for query, document, score in entries_of_run:
        ranks[query] = ranks.get(query, 0) + 1
        lines.append(f"{query} Q0 {document} {ranks[query]} {score!r} tag\n")
    records = [
        {"query_id": query, "doc_id": document, "score": score}
        for query, document, score in entries_of_run
    ]
    lists = {
        query: [{"id": d, "score": s} for d, s in scores.items()]
        for query, scores in by_query.items()
    }
    hits = {
        query: {"hits": {"hits": [{"_id": d, "_score": s} for d, s in scores.items()]}}
        for query, scores in by_query.items()
    }
    predictions = [
        {"query_id": query, "results": [{"corpus_id": d, "score": s} for d, s in scores.items()]}
        for query, scores in by_query.items()
    ]
    matches = {
        query: {
            "result": [{"id": d, "score": s, "payload": None} for d, s in scores.items()],
            "status": "ok",
            "time": 0.1,
        }
        for query, scores in by_query.items()
    }
    pairs = {query: [[d, s] for d, s in scores.items()] for query, scores in by_query.items()}
    beside = [
        {"qid": query, "doc_ids": list(scores), "scores": list(scores.values())}
        for query, scores in by_query.items()
    ]
    packed = io.BytesIO()
    pl.DataFrame(records).write_parquet(packed)
    return {
        "run.trec": "".join(lines).encode(),
        "run.json": json.dumps(by_query).encode(),
        "lists.json": json.dumps(lists).encode(),
        "records.json": json.dumps(records).encode(),
        "responses.json": json.dumps(hits).encode(),
        "mteb_predictions.json": json.dumps(
            {"mteb_model_meta": {}, "default": {"test": by_query}}
        ).encode(),
        "predictions.jsonl": "\n".join(map(json.dumps, predictions)).encode(),
        "hits.jsonl": "\n".join(map(json.dumps, records)).encode(),
        "matches.jsonl": "\n".join(
            json.dumps({"query_id": query, **match}) for query, match in matches.items()
        ).encode(),
        "matches.json": json.dumps(matches).encode(),
        "pairs.json": json.dumps(pairs).encode(),
        "beside.json": json.dumps(beside).encode(),
        "run.csv": table_text(records, ",").encode(),
        "semicolons.csv": b"sep=;\n" + table_text(records, ";").encode(),
        "run.trec.bz2": bz2.compress("".join(lines).encode()),
        "run.tsv": table_text(records, "\t").encode(),
        "run.parquet": packed.getvalue(),
    }


def table_text(records: Sequence[Mapping[str, object]], delimiter: str) -> str:
    """Write records as CSV or TSV, as Python's csv does."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


class SilentDifferenceError(Exception):
    """Two files that hold the same data were read, and not alike."""


def written_answers(folder: Path) -> dict[str, Read]:
    """Write answers with citations, as records and as responses, and the labels of their pages."""
    pages = [f"https://www.d{number}.org/page" for number in range(6)]
    labels = "url,source\n" + "".join(
        f"{page},{'ai' if number % 2 else 'human'}\n" for number, page in enumerate(pages)
    )
    lines, responses = [], {}
    for query in range(4):
        cited = pages[query % 2 :: 2][:2]
        record = {"query": f"q{query}", "run": 1, "cited": cited, "consulted": pages}
        lines.append(json.dumps({**record, "retrieved": pages[::-1], "text": "One. Two."}))
        references = [{"index": number, "link": page} for number, page in enumerate(pages)]
        blocks = [{"type": "paragraph", "snippet": "One two.", "reference_indexes": [query, 4]}]
        response = {
            "organic_results": [{"position": 1, "link": pages[query]}],
            "ai_overview": {"text_blocks": blocks, "references": references},
        }
        responses[f"overviews/answers/q{query}.json"] = json.dumps(response).encode()
    files = {
        "answers/answers.jsonl": "\n".join(lines).encode(),
        "answers/pages.csv": labels.encode(),
        "overviews/pages.csv": labels.encode(),
        **responses,
    }
    write(folder, files)

    def audited(answers: Path) -> object:
        audit = rt.cite(answers, f"{answers.parent}/pages.csv:id=url", resamples=100)
        return audit.to_json(), rt.table(audit)

    return {
        "answers": lambda at: audited(at / "answers.jsonl"),
        "overviews": lambda at: audited(at / "answers"),
    }


def written_runs(folder: Path, run: Run) -> dict[str, Read]:
    """Make a run in every format, and return how each is read.

    All are compared with the run in TREC's format.
    """
    entries_of_run = [
        (query, document, score) for query, document, _, score in run.frame().iter_rows()
    ][:60]
    names = {
        "run lists": "lists.json",
        "run records": "records.json",
        "run responses": "responses.json",
        "run mteb": "mteb_predictions.json",
        "run predictions": "predictions.jsonl",
        "run hits": "hits.jsonl",
        "run matches": "matches.json",
        "run match lines": "matches.jsonl",
        "run pairs": "pairs.json",
        "run beside": "beside.json",
        "run semicolons": "semicolons.csv",
        "run bz2": "run.trec.bz2",
        "run csv": "run.csv",
        "run tsv": "run.tsv",
        "run parquet": "run.parquet",
    }
    texts = run_texts(entries_of_run)
    write(folder, {f"{name}/{file}": texts[file] for name, file in names.items()})
    write(folder, {f"same run/{ENTRIES}": json.dumps(entries_of_run).encode()})

    def loaded(file: str) -> Read:
        return lambda at: Run.load(at / file).frame().height

    return {name: loaded(file) for name, file in names.items()} | {"same run": same_runs}


def loaded_values(path: Path) -> object:
    return run_values(Run.load(path))


def label_rows(path: Path) -> list[str]:
    return sorted(map(str, read_labels(path).rows()))


def same_runs(folder: Path) -> None:
    """Write entries in every format, and hold what is read against what is read of TREC's."""
    run_entries = entries((folder / ENTRIES).read_bytes())
    readings = dict[str, object]()
    texts = run_texts(run_entries)
    write(folder, texts)
    for file in texts:
        path = folder / file
        readings[file] = reading(partial(loaded_values, path))
    by_query: dict[str, dict[str, float]] = {}
    for query, document, score in run_entries:
        by_query.setdefault(query, {})[document] = score
    frame = pl.DataFrame(run_entries, schema=["query_id", "doc_id", "score"], orient="row")
    readings["from_dict"] = reading(lambda: run_values(Run.from_dict(by_query)))
    readings["from_frame"] = reading(lambda: run_values(Run.from_frame(frame)))
    readings["from_pandas"] = reading(lambda: run_values(Run.from_pandas(frame.to_pandas())))
    require_same(readings, "run.trec")


def run_values(run: Run) -> object:
    return sorted(
        (query, rank, document, score) for query, document, rank, score in run.frame().iter_rows()
    )


def reading(read: Callable[[], object]) -> object:
    """What is read; None where it is refused."""
    try:
        return read()
    except UserError:
        return None


def require_same(readings: Mapping[str, object], first: str) -> None:
    """Raise an error where what was read of one file is not what was read of the first."""
    expected = readings[first]
    for name, values in readings.items():
        if expected is not None and values is not None and values != expected:
            raise SilentDifferenceError(
                f"{name} gives {str(values)[:200]}, {first} {str(expected)[:200]}"
            )


def written_labels(folder: Path, table: pl.DataFrame) -> dict[str, Read]:
    """Make labels as JSON lines, and as data that is written in every format."""
    rows = table.select("doc_id", "source").head(30).rows()
    write(
        folder,
        {
            "labels jsonl/labels.jsonl": "\n".join(
                json.dumps({"doc_id": document, "source": source}) for document, source in rows
            ).encode(),
            f"same labels/{ENTRIES}": json.dumps(
                [[source, document, 0.0] for document, source in rows]
            ).encode(),
        },
    )
    return {"labels jsonl": lambda at: read_labels(at / "labels.jsonl"), "same labels": same_labels}


def same_labels(folder: Path) -> None:
    """Write labels in every format, and hold what is read against what is read of TSV."""
    run_entries = entries((folder / ENTRIES).read_bytes())
    records = [{"doc_id": document, "source": source} for source, document, _ in run_entries]
    packed = io.BytesIO()
    pl.DataFrame(records).write_parquet(packed)
    tsv = "".join(
        f"{row['doc_id']}\t{row['source']}\n"
        for row in [{"doc_id": "doc_id", "source": "source"}, *records]
    )
    texts = {
        "labels.tsv": tsv.encode(),
        "labels.csv": table_text(records, ",").encode(),
        "labels.jsonl": "\n".join(map(json.dumps, records)).encode(),
        "labels.parquet": packed.getvalue(),
    }
    write(folder, texts)
    readings = {file: reading(partial(label_rows, folder / file)) for file in texts}
    require_same(readings, "labels.tsv")


SERVER = Server(model="tiny", url="http://127.0.0.1:1/v1", key="sk-0123456789abcdef")
RESPONSE = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "tiny-2024-07-18",
    "system_fingerprint": "fp_1",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "##final score: 3", "refusal": None},
            "finish_reason": "stop",
            "logprobs": {
                "content": [{"token": "##", "logprob": -0.5}, {"token": "final", "logprob": -1.5}]
            },
        }
    ],
    "usage": {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17},
}
FAILED = {
    "error": {
        "message": "Rate limit reached.",
        "type": "requests",
        "param": None,
        "code": "rate_limit_exceeded",
    }
}
STATUS = {
    "id": "batch_1",
    "object": "batch",
    "endpoint": "/v1/chat/completions",
    "errors": {
        "object": "list",
        "data": [{"code": "x", "message": "Enqueued token limit reached.", "line": 3}],
    },
    "input_file_id": "file-0",
    "status": "completed",
    "output_file_id": "file-1",
    "error_file_id": "file-2",
    "request_counts": {"total": 5, "completed": 3, "failed": 2},
}


def server_readers(folder: Path) -> dict[str, Read]:
    """Make what a server sends and a journal of it.

    What cannot be read is asked for again, and so no fault.
    """
    answered = [
        batch_line(f"key{number}", {"status_code": 200, "body": RESPONSE}) for number in range(3)
    ]
    failed = [
        batch_line("key3", {"status_code": 429, "body": FAILED}),
        batch_line("key4", None, code="batch_expired"),
    ]
    vectors = {
        "model": "tiny",
        "data": [{"index": number, "embedding": [0.5, number]} for number in range(2)],
    }
    write(
        folder,
        {
            "response/200.json": json.dumps(RESPONSE).encode(),
            "response/429.json": json.dumps(FAILED).encode(),
            "vectors/200.json": json.dumps(vectors).encode(),
            "batch/status.json": json.dumps(STATUS).encode(),
            "batch/page.json": json.dumps(
                {"object": "list", "data": [STATUS], "has_more": False}
            ).encode(),
            "batch/output.jsonl": "\n".join(map(json.dumps, answered)).encode(),
            "batch/errors.jsonl": "\n".join(map(json.dumps, failed)).encode(),
        },
    )
    with Journal(folder / "journal") as journal:
        journal.append(
            [record(read_answer(RESPONSE, "tiny"), f"key{number}") for number in range(3)]
        )
    return {
        "response": read_response,
        "vectors": read_embeddings,
        "batch": read_batch,
        "journal": read_journal,
    }


def batch_line(key: str, response: object, code: str | None = None) -> dict[str, object]:
    """A line of a batch's file of answers or errors."""
    return {
        "custom_id": key,
        "response": response,
        "error": code and {"code": code, "message": "Not carried out."},
    }


def record(answer: Answer, key: str) -> JournalRecord:
    return JournalRecord(key=key, time="2026-01-01T00:00:00Z", prompt="p", answer=answer)


def read_response(folder: Path) -> object:
    """Read a response and an error, keep what they say, and read it again."""
    with suppress(ValueError):
        keep(folder, [read_answer(json_body((folder / "200.json").read_bytes()), "tiny", SERVER)])
    body: object = (folder / "429.json").read_bytes().decode(errors="replace")
    with suppress(ValueError):
        body = json_body((folder / "429.json").read_bytes()).get("error")
    errors = [
        classify_error(status, body, SERVER) for status in (400, 401, 403, 404, 413, 429, 500)
    ]
    return pl.DataFrame({"message": [str(error) for error in errors]}).write_ndjson()


def read_embeddings(folder: Path) -> object:
    """Read vectors."""
    with suppress(ValueError):
        return read_vectors(json_body((folder / "200.json").read_bytes()), 2).sum()
    return None


def read_batch(folder: Path) -> object:
    """Read a batch's status, the list of batches, and what its files say of its requests."""
    for name, read in (("status", partial(read_status, clean=SERVER.clean)), ("page", read_page)):
        with suppress(ValueError):
            read(json_body((folder / f"{name}.json").read_bytes()))
    contents = [(folder / f"{name}.jsonl").read_bytes() for name in ("output", "errors")]
    lines = read_lines(b"\n".join(contents), SERVER)
    keep(folder, [outcome for outcome in lines.outcomes.values() if isinstance(outcome, Answer)])
    messages = [str(getattr(outcome, "message", outcome)) for outcome in lines.outcomes.values()]
    return pl.DataFrame({"message": messages}).write_ndjson()


def read_journal(folder: Path) -> object:
    """Read a journal that was damaged, as a file of its own.

    SQLite keeps what it added last beside it.
    """
    with Journal(folder) as journal:
        answers = [
            stored.answer
            for stored in journal.read([f"key{number}" for number in range(3)]).values()
        ]
    return keep(folder / "other", answers)


def keep(folder: Path, answers: Sequence[Answer]) -> None:
    """Write answers into a journal and a table, and read them from both.

    All that asks a model writes them so.
    """
    with Journal(folder / "kept") as journal:
        journal.append([record(answer, f"key{number}") for number, answer in enumerate(answers)])
        stored = journal.read([f"key{number}" for number in range(len(answers))])
    if [stored[f"key{number}"].answer for number in range(len(answers))] != list(answers):
        raise AssertionError("a journal does not give back what was written")
    columns = {"finish": pl.String, "model": pl.String, "revision": pl.String, "text": pl.String}
    columns |= {"prompt_tokens": pl.Int64, "completion_tokens": pl.Int64}
    rows = [{name: getattr(answer, name) for name in columns} for answer in answers]
    pl.DataFrame(rows, schema=columns).write_ndjson()


def content_of(folder: Path) -> Files:
    """The files of a folder."""
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def write(folder: Path, files: Files) -> None:
    """Write files."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def damaged(files: Files, chance: random.Random) -> Files:
    """Damage one of the files: a value where it is JSON, or its bytes.

    Now and then it is compressed too.
    """
    name = chance.choice(sorted(files))
    data = files[name]
    if name == ENTRIES:
        return {name: json.dumps(other_entries(entries(data), chance)).encode()}
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        data = (other_value if ".json" in name and chance.random() < 0.6 else other_bytes)(
            data, chance
        )
    if chance.random() < 0.05:
        data = gzip.compress(data)
        data = other_bytes(data, chance) if chance.random() < 0.7 else data
    return {**files, name: data}


def other_bytes(data: bytes, chance: random.Random) -> bytes:
    """Cut off, leave out, repeat, put in, or change some bytes."""
    start = chance.randrange(len(data) + 1)
    end = min(start + chance.choice((1, 1, 2, 8, 100, 1000)), len(data))
    middle = [
        b"",
        data[start:end] * chance.choice((2, 3, 50)),
        chance.choice(BYTES) + data[start:end],
        chance.choice(BYTES),
        bytes(chance.randrange(256) for _ in data[start:end]),
    ]
    return (
        data[:start] if chance.random() < 0.1 else data[:start] + chance.choice(middle) + data[end:]
    )


def other_value(data: bytes, chance: random.Random) -> bytes:
    """Replace, remove or rename a value of a JSON document, or of one of its lines."""
    lines = data.splitlines() or [b""]
    line_index = chance.randrange(len(lines)) if b"}\n{" in data else None
    try:
        content = json.loads(data if line_index is None else lines[line_index])
    except (RecursionError, ValueError):
        return other_bytes(data, chance)
    spots, unvisited = [], [content]
    while unvisited:
        inside = unvisited.pop()
        names: Iterable[object] = ()
        if isinstance(inside, dict):
            names = inside
        elif isinstance(inside, list):
            names = range(len(inside))
        spots += [(inside, name) for name in names]
        unvisited += [inside[name] for name in names]
    if not spots:
        return json.dumps(chance.choice(VALUES)).encode()
    inside, name = chance.choice(spots)
    kind = chance.random()
    if kind < 0.15:
        del inside[name]
    elif kind < 0.25 and isinstance(inside, dict):
        inside[str(chance.choice(VALUES))] = inside.pop(name)
    else:
        inside[name] = chance.choice(VALUES)
    text = re.sub(
        r'"<(\d+) deep>"',
        lambda match: "[" * int(match[1]) + "]" * int(match[1]),
        json.dumps(content),
    )
    return (
        text.encode()
        if line_index is None
        else b"\n".join([*lines[:line_index], text.encode(), *lines[line_index + 1 :]])
    )


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Break off what takes longer, as soon as Python has its turn."""

    def hung(*_: object) -> None:
        raise TimeoutError(f"over {seconds} s")

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fault(read: Read, files: Files, folder: Path) -> str:
    """Read files and return what went wrong, as its traceback.

    Empty for a result or one line for the user.
    """
    shutil.rmtree(folder, ignore_errors=True)
    write(folder, files)
    try:
        with warnings.catch_warnings(), limited(LIMIT):
            warnings.simplefilter("ignore")
            read(folder)
    except KeyboardInterrupt:
        raise
    except UserError:
        return ""
    except BaseException:  # a panic of Polars is no Exception
        return traceback.format_exc()
    return ""


def faults(
    names: Sequence[str], seed: int, cases: range, begun: Callable[[int], object] = id
) -> dict[str, str]:
    """Run cases of some readers in turn; return the traceback of each that failed."""
    failures = {}
    with tempfile.TemporaryDirectory() as directory:
        known = readers(Path(directory) / "made")
        for number in cases:
            begun(number)
            name = names[number % len(names)]
            read, files = known[name]
            files = damaged(files, random.Random(f"{name} {seed} {number // len(names)}"))
            if message := fault(read, files, Path(directory) / "case"):
                failures[f"--reader {name!r} --seed {seed} --case {number // len(names)}"] = message
    return failures


def apart(names: Sequence[str], seed: int, cases: range) -> dict[str, str]:
    """Run cases in a process of its own.

    Where something ended it, the cases left run in the next one.
    """
    failures = dict[str, str]()
    while cases:
        line = [sys.executable, __file__, "--names", ",".join(names), "--seed", str(seed)]
        line += ["--range", f"{cases.start},{cases.stop}"]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        if not lines:
            raise SystemExit(done.stderr)
        if done.returncode == 0:
            return failures | json.loads(lines[-1])
        number = int(lines[-1])
        case = (
            f"--reader {names[number % len(names)]!r} --seed {seed} --case {number // len(names)}"
        )
        failures[case] = f"{done.stderr}\nprocess ended with {done.returncode}"
        cases = range(number + 1, cases.stop)
    return failures


def main() -> int:
    """Run what the command line asks for, and print what failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--reader", choices=NAMES)
    parser.add_argument("--case", type=int, help="this one only, of --reader")
    parser.add_argument("--names", help=argparse.SUPPRESS)
    parser.add_argument("--range", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.range:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        cases = range(*map(int, args.range.split(",")))
        print(
            json.dumps(
                faults(args.names.split(","), args.seed, cases, lambda at: print(at, flush=True))
            )
        )
        return 0
    names, began = [args.reader] if args.reader else NAMES, time.monotonic()
    cases = range(args.cases) if args.case is None else range(args.case, args.case + 1)
    failed = apart(names, args.seed, cases)
    for case, message in failed.items():
        print(
            f"{case}\n  "
            f"{message if args.case is not None else message.strip().splitlines()[-1][:300]}"
        )
    print(f"{len(cases):,} cases in {time.monotonic() - began:.0f} s, {len(failed)} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
