"""The hub's cache as huggingface_hub leaves it: refs, blobs, and snapshots that link to them."""

import hashlib
import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from ranktilt.data.loading.load import load
from ranktilt.errors import UserError
from tests.toy import jsonl, raw_docs, raw_qrels, raw_queries, tsv

COMMIT = "88f9d1a0c5e2b7d34f6a9b8c7d6e5f4a3b2c1d0e"
OTHER = "2938d17f0a1b2c3d4e5f60718293a4b5c6d7e8f9"


def refusal(name: str, **options: object) -> str:
    """The one line in which loading it is refused."""
    with pytest.raises(UserError) as caught:
        load(name, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


def point_to(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))


def cached(
    cache: Path,
    id: str,
    files: Mapping[str, str | bytes],
    *,
    commit: str = COMMIT,
    ref: str = "main",
) -> Path:
    """Put a data set into a cache; return the folder of its snapshot."""
    home = cache / f"datasets--{id.replace('/', '--')}"
    (home / "refs").mkdir(parents=True, exist_ok=True)
    (home / "refs" / ref).write_text(commit)
    snapshot = home / "snapshots" / commit
    for name, content in {
        "README.md": "# Card\n",
        ".gitattributes": "*.zip filter=lfs\n",
        **files,
    }.items():
        data = content.encode() if isinstance(content, str) else content
        blob = home / "blobs" / hashlib.sha256(data).hexdigest()
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(data)
        link = snapshot / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
    return snapshot


def zipped(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return buffer.getvalue()


def parquet(**columns: object) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


def rows(raw: list[dict[str, str]]) -> bytes:
    return parquet(**{name: [row[name] for row in raw] for name in raw[0]})


def cocktail_zip(name: str = "scifact") -> dict[str, str | bytes]:
    """A data set of IR-Cocktail: one zip file with a folder in it, made on a Mac."""
    inside = {
        f"{name}/corpus/human.jsonl": jsonl(raw_docs("human")),
        f"{name}/corpus/llm.jsonl": jsonl(raw_docs("llm")),
        f"{name}/queries.jsonl": jsonl(raw_queries()),
        f"{name}/qrels/test.tsv": tsv(raw_qrels()),
        f"__MACOSX/{name}/corpus/._human.jsonl": "\0\5\26\7",
        f"{name}/.DS_Store": "\0",
    }
    return {f"{name}.zip": zipped(inside)}


def mteb() -> dict[str, str | bytes]:
    """A data set of MTEB: JSON lines, judgments with fractional scores."""
    judged = [{"query-id": q, "corpus-id": d, "score": float(g)} for q, d, g in raw_qrels()]
    return {
        "corpus.jsonl": jsonl(raw_docs()),
        "queries.jsonl": jsonl(raw_queries()),
        "qrels/test.jsonl": jsonl(judged),
        "qrels/train.jsonl": jsonl(judged[:1]),
    }


def judgments_parquet() -> bytes:
    """The toy's judgments as a Parquet file."""
    queries, docs, grades = zip(*raw_qrels(), strict=True)
    return parquet(**{"query-id": queries, "corpus-id": docs, "score": grades})
