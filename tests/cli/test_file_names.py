"""Files and folders are read by the names they have: no sign in a name is taken for a pattern."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ranktilt.datasets.assemble import read_rows
from ranktilt.datasets.labels import read_labels
from ranktilt.io.parquet import read_judgments
from ranktilt.io.qrels import read_qrels
from ranktilt.run import Run
from tests.cli.conftest import Cli
from tests.toy import jsonl, toy, write, write_cocktail, write_run

NAMES = ["a[1]", "{a,a1}", "a b@2,(c)"]
DECOYS = ["a1", "a", "aa"]
"""What the names would match as patterns; each lies beside, with other content."""
READERS: dict[str, Callable[[Path], Any]] = {
    "docs.jsonl": lambda path: read_rows(path)["id"].item(),
    "docs.parquet": lambda path: read_rows(path)["id"].item(),
    "labels.csv": lambda path: read_labels(path)["doc_id"].item(),
    "labels.parquet": lambda path: read_labels(path)["doc_id"].item(),
    "qrels.parquet": lambda path: read_judgments(path)["query_id"].item(),
    "qrels.tsv": lambda path: read_qrels(path)["query_id"].item(),
    "run.trec": lambda path: Run.load(path).queries[0],
}


def made(path: Path, kind: str, name: str) -> Path:
    """Write a file of one row, whose id is `name`."""
    columns: dict[str, Any] = {
        "docs": {"_id": name, "text": ""},
        "labels": {"doc_id": name, "source": "human"},
        "qrels": {"query-id": name, "corpus-id": "d", "score": 1},
        "run": {},
    }[kind]
    if kind == "run":
        return write_run(path, {name: {"d": 1.0}})
    if path.suffix == ".parquet":
        path.parent.mkdir(parents=True, exist_ok=True)
        pl.DataFrame([columns]).write_parquet(path)
        return path
    separator = "," if path.suffix == ".csv" else "\t"
    return write(
        path, jsonl([columns]) if path.suffix == ".jsonl" else pl.DataFrame([columns]).write_csv(separator=separator)
    )


@pytest.mark.parametrize("file", READERS)
@pytest.mark.parametrize("where", ["file", "folder"])
def test_the_named_file_is_read(tmp_path: Path, file: str, where: str) -> None:
    kind, _, end = file.partition(".")
    for name in NAMES:
        place = tmp_path / (f"{name}.{end}" if where == "file" else f"{name}/f.{end}")
        for decoy in DECOYS:
            made(Path(str(place).replace(name, decoy)), kind, "decoy")
        assert READERS[file](made(place, kind, "wanted")) == "wanted"


@pytest.mark.parametrize("name", NAMES)
def test_an_audit_reads_and_saves_what_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    found = toy().docs.select(doc_id="id", source="source")
    for decoy in DECOYS:
        made(Path(f"{decoy}.parquet"), "labels", "decoy")
        made(Path(f"{decoy}.trec"), "run", "decoy")
    write_cocktail(Path(name))
    found.write_parquet(f"{name}.parquet")
    write_run(Path(f"{name}.trec"), {"q1": {doc: -float(n) for n, doc in enumerate(found["doc_id"])}})
    options = ("-m", "RR", "--resamples", "100", "--save", Path(name) / name)
    done = cli("audit", name, "--run", f"{name}.trec", "--groups", f"{name}.parquet", *options)
    assert done.code == 0, done.err
    assert Run.load(next((Path(name) / name / "runs").glob("*.gz"))).queries == ("q1",)
    page = Path(name) / "page.html"
    assert cli("report", Path(name) / name / "audit.json", "-o", page).code == 0
    assert page.stat().st_size
