"""Files and folders are read by the names they have: no sign in a name is taken for a pattern."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ranktilt.datasets.assemble import read_rows
from ranktilt.datasets.labels import read_labels
from ranktilt.datasets.load import load
from ranktilt.io.parquet import read_judgments
from ranktilt.io.qrels import read_qrels
from ranktilt.run import Run
from tests.cli.conftest import Cli
from tests.toy import jsonl, toy, write, write_beir, write_cocktail, write_paper, write_run

NAMES = ["a[1]", "a[!b]", "a*", "a?", "{a,a1}", "**", "~a", "a b@2,(c)", "k=1"]
DECOYS = ["a1", "ac", "a", "aa"]
"""What the names would match as patterns; each lies beside, with other content."""


def table(path: Path, columns: dict[str, Any]) -> Path:
    """Write a table of one row in the form that the file's ending says."""
    frame, kind = pl.DataFrame([columns]), path.name.removesuffix(".gz").rpartition(".")[2]
    if kind == "parquet":
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.write_parquet(path)
        return path
    separator = "," if kind == "csv" else "\t"
    return write(path, jsonl([columns]) if kind == "jsonl" else frame.write_csv(separator=separator))


def rows(path: Path, name: str) -> Path:
    return table(path, {"_id": name, "text": ""})


def labels(path: Path, name: str) -> Path:
    return table(path, {"doc_id": name, "source": "human"})


def judgments(path: Path, name: str) -> Path:
    return table(path, {"query-id": name, "corpus-id": "d", "score": 1})


def run(path: Path, name: str) -> Path:
    return write(path, f'{{"{name}": {{"d": 1}}}}') if ".json" in path.name else write_run(path, {name: {"d": 1.0}})


READERS: list[tuple[str, Callable[[Path, str], Path], Callable[[Path], Any]]] = [
    *((f".{end}", rows, lambda path: read_rows(path)["id"].item()) for end in ("jsonl", "jsonl.gz", "parquet")),
    *(
        (f".{end}", labels, lambda path: read_labels(path)["doc_id"].item())
        for end in ("tsv", "tsv.gz", "csv", "csv.gz", "parquet")
    ),
    *((f".{end}", judgments, lambda path: read_judgments(path)["query_id"].item()) for end in ("jsonl", "parquet")),
    *((f".{end}", judgments, lambda path: read_qrels(path)["query_id"].item()) for end in ("tsv", "tsv.gz")),
    *((f".{end}", run, lambda path: Run.load(path).queries[0]) for end in ("trec", "trec.gz", "json")),
]


# Each reader with one sign, and one reader with all: a path is handed to libraries that know patterns in few places.
CASES = [(NAMES[n % len(NAMES)], *reader) for n, reader in enumerate([*READERS, *READERS])]
CASES += [(name, *READERS[0]) for name in NAMES]


@pytest.mark.parametrize(("name", "end", "make", "read"), CASES, ids=[f"{c[2].__name__}{c[1]} {c[0]}" for c in CASES])
@pytest.mark.parametrize("where", ["file", "folder"])
def test_the_named_file_is_read(
    tmp_path: Path, name: str, end: str, make: Callable[[Path, str], Path], read: Callable[[Path], Any], where: str
) -> None:
    def place(of: str) -> Path:
        return tmp_path / (f"{of}{end}" if where == "file" else f"{of}/f{end}")

    for decoy in DECOYS:
        make(place(decoy), "decoy")
    assert read(make(place(name), "wanted")) == "wanted"


@pytest.mark.parametrize(
    ("name", "make"), [(name, (write_beir, write_cocktail, write_paper)[n % 3]) for n, name in enumerate(NAMES)]
)
def test_the_named_folder_is_loaded(tmp_path: Path, name: str, make: Callable[..., Path]) -> None:
    for decoy in DECOYS:
        write_beir(tmp_path / decoy, docs=[{"_id": "decoy", "text": ""}], qrels=[("q1", "decoy", 1)])
    assert load(make(tmp_path / name)).ids.to_list() == load(make(tmp_path / "plain")).ids.to_list()


@pytest.mark.parametrize("name", ["a[1]", "{a,a1}", "a b@2,(c)"])
def test_an_audit_reads_and_saves_what_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    found = toy().docs.select(doc_id="id", source="source")
    for decoy in DECOYS:
        labels(Path(f"{decoy}.parquet"), "decoy")
        run(Path(f"{decoy}.trec"), "decoy")
    write_cocktail(Path(name))
    found.write_parquet(f"{name}.parquet")
    scores = {"q1": {doc: -float(n) for n, doc in enumerate(found["doc_id"])}}
    write_run(Path(f"{name}.trec"), scores)
    options = ("-m", "RR", "--resamples", "100", "--save", Path(name) / name)
    done = cli("audit", name, "--run", f"{name}.trec", "--groups", f"{name}.parquet", *options)
    assert done.code == 0, done.err
    assert Run.load(next((Path(name) / name / "runs").glob("*.gz"))).queries == ("q1",)
    page = Path(name) / "page.html"
    assert cli("report", Path(name) / name / "audit.json", "-o", page).code == 0
    assert page.stat().st_size
