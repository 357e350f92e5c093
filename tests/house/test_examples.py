"""The examples do what they say: the workflow, the action and the image; engines against a server or a client."""

import ast
import os
import re
import shlex
import subprocess
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from ranktilt import Run, ranker
from ranktilt.rankers.engines.function import Engine
from tests.house import tree
from tests.toy import toy, write, write_cocktail

WORKFLOW = tree.ROOT / "examples" / "ci" / "ranktilt.yml"
STEP = re.compile(r"^      - name: (\w+).*?^        run: (.*?)(?=^      - |^      #|\Z)", re.DOTALL | re.MULTILINE)
SETTING = re.compile(r"^  ([A-Z_]+): \"?([^\"#\n]+?)\"?(?: +#.*)?$", re.MULTILINE)


def scripts() -> dict[str, str]:
    """Shell scripts of the steps, by name."""
    found = STEP.findall(WORKFLOW.read_text(encoding="utf-8").partition("\njobs:")[2])
    return {name: textwrap.dedent(text.removeprefix("|\n")) for name, text in found}


def settings() -> dict[str, str]:
    """The values under `env` at the top."""
    return dict(SETTING.findall(WORKFLOW.read_text(encoding="utf-8").partition("\njobs:")[0]))


def shell(script: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a build server does."""
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    names = {f"GIT_{who}_{what}": "x@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **settings(), "AUDITED": "toy -r bm25", **names, **more, "PATH": path}
    return subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def prepare(folder: Path) -> None:
    """Write the collection that is audited, and the command."""
    words = ["apple", "river", "stone", "cloud", "tiger", "violin", "harbour", "lantern"]  # three would be too few
    ends = {"human": "is seen here", "llm": "can be seen"}
    write_cocktail(
        folder / "toy",
        corpora={s: [{"_id": f"d{n}", "text": f"{w} {end}"} for n, w in enumerate(words)] for s, end in ends.items()},
        queries=[{"_id": f"q{n}", "text": word} for n, word in enumerate(words)],
        qrels=[(f"q{n}", f"d{n}", 1) for n in range(len(words))],
    )
    command = write(folder / "bin" / "ranktilt", f'#!/bin/sh\nexec "{sys.executable}" -m ranktilt.cli.main "$@"\n')
    command.chmod(0o755)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose base branch holds a collection and the audit of its ranker."""
    prepare(tmp_path)
    begun = f"git init -q -b main .\n{scripts()['Audit']}\nmv audit.json ranktilt-baseline.json"
    done = shell(f"{begun}\ngit add toy ranktilt-baseline.json\ngit commit -q -m first\ngit checkout -q -b x", tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_the_baseline_is_the_one_of_the_base_branch_and_without_one_the_limit_alone_counts(repository: Path) -> None:
    # The pull request brings a baseline of its own, which must not count.
    assert shell("echo {} > ranktilt-baseline.json; git commit -q -a -m mine", repository).returncode == 0
    assert shell(scripts()["Audit"], repository).returncode == 0
    done = shell(scripts()["Gate"], repository, BASE="main", MAX_TILT="199")
    assert done.returncode == 0, done.stderr
    assert "no growth" not in done.stdout
    assert "growth of at most 5 points since the baseline" in done.stdout
    assert (repository / "ranktilt.xml").exists()
    assert (repository / "summary.md").read_text(encoding="utf-8").startswith("## ✅ RankTilt")
    done = shell(scripts()["Gate"], repository, BASE="0" * 40, MAX_TILT="199")
    assert done.returncode == 0
    assert "no ranktilt-baseline.json at 0000" in done.stdout
    assert "since the baseline" not in done.stdout


def test_every_setting_is_used() -> None:
    text = "\n".join(scripts().values())
    assert set(settings()) == set(re.findall(r"\$([A-Z_]+)", text)) - {"BASE", "GITHUB_STEP_SUMMARY"}


ENGINES = sorted((tree.ROOT / "examples" / "engines").glob("*.py"))
DOCUMENTS = [("d1-human", 2.5), ("d2-llm", 1.5), ("d3-llm", 0.5)]


def named(page: Path) -> str:
    return page.stem


@pytest.mark.parametrize("page", ENGINES, ids=named)
def test_an_engine_is_short_and_says_how_it_is_run(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    code = [line for line in text.split('"""', 2)[2].splitlines() if line.partition("#")[0].strip()]
    assert len(code) <= 15
    early = [name for node in ast.parse(text).body for name in re.findall(r"^(?:from|import) (\w+)", ast.unparse(node))]
    assert set(early) <= {"functools", "os"}, "a client is imported where it is used"
    [typed] = re.findall(r"^    ranktilt audit DIR -r (.+)$", text, re.MULTILINE)
    at_once = {"concurrency": 4} if "concurrency" in typed else {}
    assert ranker(shlex.split(typed)[0]) == Engine(f"{page.stem}:search", k=100, **at_once)


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The examples' folder as the current one; its modules are forgotten afterwards."""
    monkeypatch.chdir(ENGINES[0].parent)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    for page in ENGINES:
        sys.modules.pop(page.stem, None)


def first_of(run: Run) -> list[str]:
    return [run.ids[int(run.docs[start])] for start in run.offsets[:-1]]


PGVECTOR = """
    import contextlib
    ASKED = []
    class ConnectionPool:
        def __init__(self, url, **options):
            assert url == "postgresql://somewhere/search"
        @contextlib.contextmanager
        def connection(self):
            yield self
        def execute(self, text, values):
            ASKED.append((text.count("%(v)s"), values["v"], values["k"], text.startswith("SELECT id, 1 - ")))
            return self
        def fetchall(self):
            return HITS
    class SentenceTransformer:
        def __init__(self, name): ...
        def encode(self, text, *, show_progress_bar):
            return self
        def tolist(self):
            return [0.5, -1.0]
    """
"""Stands for psycopg's pool and a model: PostgreSQL is no package that tests could install."""


def test_the_database_is_asked_for_the_nearest_in_one_query(engines: None, monkeypatch: pytest.MonkeyPatch) -> None:
    client = types.ModuleType("client")
    client.__dict__["HITS"] = DOCUMENTS
    exec(textwrap.dedent(PGVECTOR), client.__dict__)
    for module in ("psycopg_pool", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, module, client)
    monkeypatch.setenv("DATABASE_URL", "postgresql://somewhere/search")
    run = ranker("engine:pgvector:search@3").rank(toy())
    assert client.__dict__["ASKED"] == [(2, "[0.5, -1.0]", 3, True)] * 3
    assert first_of(run) == ["d1-human"] * 3


@pytest.mark.parametrize(("options", "code"), [("--max-tilt 199", 0), ("--max-tilt 199 --run-name none", 2)])
def test_the_steps_of_the_action_audit_gate_and_tell(tmp_path: Path, options: str, code: int) -> None:
    yaml = pytest.importorskip("yaml")
    steps = yaml.safe_load((tree.ROOT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
    audit, gate = (step["run"] for step in steps if re.search("ranktilt audit|gate", step.get("run", "")))
    prepare(tmp_path)
    summary = tmp_path / "summary"
    given = {"OPTIONS": options, "AUDITED": "toy -r bm25 --resamples 200", "GITHUB_STEP_SUMMARY": str(summary)}
    assert [shell(step, tmp_path, **given).returncode for step in (audit, gate)] == [0, code]
    assert (tmp_path / "ranktilt-report" / "report.html").exists()
    if code == 0:
        assert summary.read_text(encoding="utf-8").startswith("## ")


def test_the_dockerfile_holds_known_instructions_and_no_root() -> None:
    text = re.sub(r"\\\n", " ", (tree.ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    known = {"FROM", "COPY", "RUN", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert {line.split()[0] for line in lines} <= known
    assert [line.split()[0] for line in lines].index("USER") < len(lines) - 2
