"""The workflow in examples/ci does what it says, its steps run in a repository of their own."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.house import tree
from tests.toy import write, write_cocktail

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
    environment = {**os.environ, **settings(), "COLLECTION": "toy", **names, **more, "PATH": path}
    return subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose base branch holds a collection and the audit of its ranker."""
    write_cocktail(tmp_path / "toy")
    command = write(tmp_path / "bin" / "ranktilt", f'#!/bin/sh\nexec "{sys.executable}" -m ranktilt.cli.main "$@"\n')
    command.chmod(0o755)
    audit = scripts()["Audit"]
    done = shell(f"git init -q -b main .\n{audit}\nmv audit.json ranktilt-baseline.json", tmp_path)
    assert done.returncode == 0, done.stderr
    done = shell("git add toy ranktilt-baseline.json\ngit commit -q -m first\ngit checkout -q -b change", tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_the_baseline_is_the_one_of_the_base_branch(repository: Path) -> None:
    # The pull request brings a baseline of its own, which must not count.
    assert shell("echo {} > ranktilt-baseline.json; git commit -q -a -m mine", repository).returncode == 0
    assert shell(scripts()["Audit"], repository).returncode == 0
    done = shell(scripts()["Gate"], repository, BASE="main", MAX_TILT="199")
    assert done.returncode == 0, done.stderr
    assert "no growth" not in done.stdout
    assert "growth of at most 5 points since the baseline" in done.stdout
    assert (repository / "ranktilt.xml").exists()
    assert (repository / "summary.md").read_text(encoding="utf-8").startswith("## ✅ RankTilt")


def test_without_a_baseline_the_limit_alone_counts(repository: Path) -> None:
    assert shell(scripts()["Audit"], repository).returncode == 0
    done = shell(scripts()["Gate"], repository, BASE="0" * 40, MAX_TILT="199")
    assert "no ranktilt-baseline.json at 0000" in done.stdout
    assert "since the baseline" not in done.stdout
    assert done.returncode == 0


def test_every_setting_is_used() -> None:
    text = "\n".join(scripts().values())
    assert set(settings()) == set(re.findall(r"\$([A-Z_]+)", text)) - {"BASE", "GITHUB_STEP_SUMMARY"}
