"""The command line as a user meets it, in this process or in one of its own, and what several
commands read.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.llm.server import Server
from tests.toy import TEXTS, raw_docs, raw_qrels, tsv, write, write_beir, write_cocktail


class Result(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Cli = Callable[..., Result]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    from ranktilt.cli.main import main

    def run(*arguments: str | Path) -> Result:
        monkeypatch.setattr(sys, "argv", ["ranktilt", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capfd.readouterr()
        return Result(int(end.value.code or 0), out, err)

    return run


@pytest.fixture
def process(tmp_path: Path) -> Cli:
    """Run the command in a process of its own, in an empty folder."""

    def run(*arguments: str | Path, **options: Any) -> Result:
        code = "from ranktilt.cli.main import main; main()"
        environment = {**os.environ, **options.pop("env", {})}
        command = [sys.executable, "-c", code, *map(str, arguments)]
        settings = {
            "capture_output": True,
            "text": True,
            "cwd": tmp_path,
            "timeout": 120,
            **options,
        }
        done = subprocess.run(command, env=environment, check=False, **settings)
        return Result(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def no_key(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of this test, and no key or address of the one who runs it."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture
def toy_folder(tmp_path: Path) -> Path:
    return write_cocktail(tmp_path / "toy")


def refused(cli: Cli, *arguments: str | Path) -> str:
    """Run a command that must fail; return its one line without the name in front."""
    code, out, err = cli(*arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.endswith("\n")
    name = re.match(r"ranktilt( [\w-]+)*: ", err)
    assert name is not None, err
    return err[name.end() :].removesuffix("\n")


SCORES = {
    "q1": {"d1-human": 3.0, "d1-llm": 2.0, "d3-llm": 2.0, "d2-human": 1.0},
    "q2": {"d1-llm": 5.0, "d2-llm": 4.0, "d2-human": 3.0},
    "q3": {"d3-human": 2.0, "d3-llm": 2.0, "d1-human": 1.0},
}
"""A run of the toy."""


def labels(folder: Path) -> Path:
    """Sources of the toy's documents, and their origins."""
    rows = list[str]()
    for source, texts in TEXTS.items():
        rows += [f"{name}-{source}\t{source}\t{name}-human" for name in texts]
    return write(folder / "labels.tsv", "\n".join(["doc_id\tsource\torigin", *rows, ""]))


def judgments(folder: Path) -> Path:
    """The toy's judgments, of each source's documents."""
    rows = list[tuple[str, str, int]]()
    for query, name, grade in raw_qrels():
        rows += [(query, f"{name}-{source}", grade) for source in TEXTS]
    return write(folder / "qrels.tsv", tsv(rows))


def two_model_folder(folder: Path) -> Path:
    """The toy with rewrites of two models, and a column of sides beside the sources."""
    sources = ("human", "llm", "gpt")
    docs = []
    for source in sources:
        for row in raw_docs("human" if source == "human" else "llm"):
            identity = {
                "_id": f"{row['_id']}-{source}",
                "source": source,
                "origin": f"{row['_id']}-human",
                "side": "east" if source == "llm" else "west",
            }
            docs.append({**row, **identity})
    qrels = list[tuple[str, str, int]]()
    for query, name, grade in raw_qrels():
        qrels += [(query, f"{name}-{source}", grade) for source in sources]
    return write_beir(folder, docs=docs, qrels=qrels)
