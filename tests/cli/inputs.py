"""Collections, runs and labels that several commands read."""

from pathlib import Path

import polars as pl

from tests.toy import QRELS, TEXTS, raw_docs, raw_qrels, tsv, write, write_beir

SCORES = {
    "q1": {"d1-human": 3.0, "d1-llm": 2.0, "d3-llm": 2.0, "d2-human": 1.0},
    "q2": {"d1-llm": 5.0, "d2-llm": 4.0, "d2-human": 3.0},
    "q3": {"d3-human": 2.0, "d3-llm": 2.0, "d1-human": 1.0},
}
"""A run of the toy."""


def labels(folder: Path, *, origin: bool = True, ending: str = "tsv", column: str = "source") -> Path:
    """Sources of the toy's documents, and their origins."""
    table = pl.DataFrame(
        [(f"{d}-{s}", s, f"{d}-human") for s, texts in TEXTS.items() for d in texts],
        schema=["doc_id", column, "origin"], orient="row",
    )  # fmt: skip
    table = table if origin else table.drop("origin")
    file = folder / f"labels.{ending}"
    if ending == "parquet":
        table.write_parquet(file)
    else:
        write(file, table.write_csv(separator="\t" if ending == "tsv" else ","))
    return file


def judgments(folder: Path) -> Path:
    """The toy's judgments, of each source's documents."""
    rows = [(q, f"{d}-{s}", g) for q, grades in QRELS.items() for d, g in grades.items() for s in TEXTS]
    return write(folder / "qrels.tsv", tsv(rows))


def sided(folder: Path) -> Path:
    """The toy with rewrites of two models, and a column of sides beside the sources."""
    docs = [
        {
            **row,
            "_id": f"{row['_id']}-{source}",
            "source": source,
            "origin": f"{row['_id']}-human",
            "side": "east" if source == "llm" else "west",
        }
        for source in ("human", "llm", "gpt")
        for row in raw_docs("human" if source == "human" else "llm")
    ]
    qrels = [(q, f"{d}-{source}", grade) for q, d, grade in raw_qrels() for source in ("human", "llm", "gpt")]
    return write_beir(folder, docs=docs, qrels=qrels)
