"""What a page and a terminal say to do next, with commands that name the files they had."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ranktilt.auditing.comparison.compare import Comparison, compare
from ranktilt.auditing.result import Audit
from ranktilt.explaining.check_result import CheckResult
from ranktilt.mitigation.bench_result import Bench
from ranktilt.reporting.output import table
from ranktilt.reporting.sentences.findings import without_output
from ranktilt.reporting.views import view
from tests.reporting.audits import clear
from tests.reporting.results import result


def commands(subject: Any) -> list[str]:
    return [step.command for step in view(subject).next_steps]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A result, what its spec is made to hold, and the commands that follow."""

    name: str
    spec: dict[str, Any]
    commands: list[str]


FILES: dict[str, Any] = {
    "new": {"file": "new.json", "collection": {"layout": "cocktail"}},
    "old": {"file": "old.json"},
}
CASES = (
    Case(
        name="comparison, turned",
        spec=FILES,
        commands=["ranktilt gate new.json --baseline old.json"],
    ),
    Case(
        name="comparison, runs of one audit",
        spec=FILES,
        commands=["ranktilt explain new.json", "ranktilt gate new.json --run-name male"],
    ),
    Case(name="comparison, nothing new", spec=FILES, commands=[]),
    Case(
        name="check",
        spec={"path": "bed", "split": "test", "command": "ranktilt check bed"},
        commands=["ranktilt check bed"],
    ),
    Case(
        name="check, every part",
        spec={"path": "bed", "split": "dev"},
        commands=[
            "ranktilt audit bed --split dev -r bm25 --controls -o audit.html",
            "ranktilt check bed --split dev -r bm25 --instrument",
        ],
    ),
    Case(name="check, one source", spec={"path": "bed"}, commands=[]),
    Case(
        name="pairwise",
        spec={
            "path": "bed",
            "by": "gender",
            "asker": "pairwise:openai:m(prompt=choice)",
            "command": "ranktilt pairwise bed --llm openai:m --by gender --json pairs.json",
        },
        commands=[
            "ranktilt audit bed -r 'bm25@20>>pairwise:openai:m(prompt=choice)' --by gender",
            "ranktilt explain bed --by gender",
            "ranktilt compare OTHER.json pairs.json",
        ],
    ),
    Case(
        name="pairwise",
        spec={"path": "bed", "by": "source", "command": "ranktilt pairwise bed --decisions a.json"},
        commands=["ranktilt explain bed"],
    ),
    Case(
        name="bench",
        spec={"command": "ranktilt mitigate bed -r bm25"},
        commands=["ranktilt mitigate bed -r bm25 --save-ranker mitigated"],
    ),
    Case(
        name="bench",
        spec={"command": "ranktilt mitigate bed -r bm25 --save-ranker mine"},
        commands=[],
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_next_commands(case: Case) -> None:
    subject: Comparison | CheckResult | Bench = result(case.name)
    subject = replace(subject, spec={**subject.spec, **case.spec})
    assert commands(subject) == case.commands
    printed = [line for line in table(subject).splitlines() if line.startswith("Next: ")]
    assert [line.rpartition(": ")[2] for line in printed] == case.commands


def test_comparison_names_the_files_of_its_audits(tmp_path: Path) -> None:
    file = tmp_path / "audit.json"
    file.write_bytes(clear().to_json())
    audit = Audit.load(file)
    comparison = compare(audit, baseline_run=audit.runs[0], resamples=200)
    assert comparison.spec["new"]["file"] == str(file)
    assert commands(comparison)[-1].startswith(shlex.join(["ranktilt", "gate", str(file)]))
    assert commands(compare(clear(), baseline_run=audit.runs[0], resamples=200)) == []


@pytest.mark.parametrize(
    "output", ["-o page.html", "-opage.html", "-o=page.html", "--json=- --quiet", "--format json"]
)
def test_output_is_left_out_of_a_command(output: str) -> None:
    words = f"ranktilt check DIR {output} -r bm25".split()
    assert without_output(words) == ["ranktilt", "check", "DIR", "-r", "bm25"]
