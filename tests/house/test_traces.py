"""How much code a stranger has to follow from a command to its answer."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ranktilt.data.bundled.reader import bundled
from ranktilt.data.save import save
from ranktilt.registry import ranker
from tests.house.tree import ROOT


@dataclass(frozen=True, kw_only=True)
class Size:
    """Number of files, and of functions in them, that run."""

    files: int
    functions: int


def traced(folder: Path, *words: str) -> Size:
    """Run a command in a process of its own, away from any ranktilt.toml."""
    script = (
        "import json, sys; from tests.house.tracing import trace_command; "
        "trace = trace_command(sys.argv[1:]); "
        "print(json.dumps([len(trace.by_file), len(trace.functions)]), file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=folder,
        env={
            "PYTHONPATH": f"{ROOT}/src:{ROOT}",
            "PATH": "",
            "HOME": str(folder),
            "HF_HUB_OFFLINE": "1",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    files, functions = json.loads(ended.stderr.splitlines()[-1])
    return Size(files=files, functions=functions)


@pytest.mark.long
def test_audit_runs_few_functions(tmp_path: Path) -> None:
    save(bundled(), tmp_path / "bundled")
    size = traced(tmp_path, "audit", "bundled", "-r", "bm25", "-m", "nDCG@10")
    assert size.files <= 143
    assert size.functions <= 861


@pytest.mark.long
def test_mitigate_runs_few_functions(tmp_path: Path) -> None:
    save(bundled(), tmp_path / "bundled")
    size = traced(tmp_path, "mitigate", "bundled", "-r", "bm25")
    assert size.files <= 150
    assert size.functions <= 975


@pytest.mark.long
def test_mitigate_of_a_level_run_fits_nothing(tmp_path: Path) -> None:
    collection = bundled()
    ranker("bm25@50").rank(collection).save(tmp_path / "engine.trec")
    labels = collection.docs.select(doc_id="id", source="source")
    labels.write_csv(tmp_path / "labels.tsv", separator="\t")
    size = traced(tmp_path, "mitigate", "--run", "engine.trec", "--groups", "labels.tsv")
    assert size.files <= 122
    assert size.functions <= 725
