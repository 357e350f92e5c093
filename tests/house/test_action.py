"""The composite action gates a run file: its steps run as a build server runs them; the Dockerfile is one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import tree
from tests.toy import write_cocktail

yaml = pytest.importorskip("yaml")


@pytest.mark.parametrize(("options", "code"), [("--max-tilt 199", 0), ("--max-tilt 199 --run-name none", 2)])
def test_the_steps_of_the_action_audit_gate_and_tell(tmp_path: Path, options: str, code: int) -> None:
    steps = yaml.safe_load((tree.ROOT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
    audit, gate = (
        step["run"] for step in steps if "ranktilt audit" in step.get("run", "") or "gate" in step.get("run", "")
    )
    script = tmp_path / "ranktilt"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ranktilt.cli.main "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    environment = {
        **os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "OPTIONS": options,
        "AUDITED": "toy -r bm25 --resamples 200", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }  # fmt: skip
    made_toy(tmp_path / "toy")
    codes = [
        subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step], cwd=tmp_path, env=environment, check=False
        ).returncode
        for step in (audit, gate)
    ]
    assert codes == [0, code]
    assert (tmp_path / "ranktilt-report" / "report.html").exists()
    if code == 0:
        assert (tmp_path / "summary").read_text(encoding="utf-8").startswith("## ")


def made_toy(folder: Path) -> None:
    words = ["apple", "river", "stone", "cloud", "tiger", "violin", "harbour", "lantern"]
    texts = {"human": "is seen here", "llm": "can be seen"}
    write_cocktail(
        folder,
        corpora={
            source: [{"_id": f"d{n}", "title": "", "text": f"{word} {end}"} for n, word in enumerate(words)]
            for source, end in texts.items()
        },
        queries=[{"_id": f"q{n}", "text": word} for n, word in enumerate(words)],
        qrels=[(f"q{n}", f"d{n}", 1) for n in range(len(words))],
    )


def test_the_dockerfile_holds_known_instructions_and_no_root() -> None:
    text = re.sub(r"\\\n", " ", (tree.ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    known = {"FROM", "COPY", "RUN", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert {line.split()[0] for line in lines} <= known
    assert [line.split()[0] for line in lines].index("USER") < len(lines) - 2
