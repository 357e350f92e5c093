"""The scripts: comparing outputs, mutants of the numeric core, damaged files."""

import json
from pathlib import Path

import pytest

from ranktilt.cli.tree import commands as command_tree
from scripts import compare_outputs, fuzz, mutants
from tests.house import tree
from tests.toy import write


def test_every_verb_is_compared_and_every_name_is_its_own() -> None:
    compared = compare_outputs.commands(compare_outputs.COMMANDS.read_text(encoding="utf-8"))
    verbs = {command.path[0] for command in command_tree()}
    assert verbs <= {command.line.split()[0] for command in compared}
    assert len({command.name for command in compared}) == len(compared)


def test_what_changes_from_run_to_run_is_replaced() -> None:
    expected = {
        "done in 1.25 s, at 2026-01-02T03:04:05Z\n": "done in <time>, at <date>\n",
        "/tmp/x/a.json: no\n": "<work>/a.json: no\n",
        "null: 52 %, about 0:01 left\nbm25: level\n": "bm25: level\n",
        "nDCG@3 41.7 2 sources": "nDCG@3 41.7 2 sources\n",
    }
    assert {
        text: compare_outputs.normalised(text, {"/tmp/x": "<work>"}) for text in expected
    } == expected


def test_a_difference_is_shown_unless_it_is_expected(tmp_path: Path) -> None:
    old, new = (
        {"a/stdout": "1\n", "b/stdout": "2\n", "b/x": "3\n"},
        {"a/stdout": "1\n", "b/stdout": "4\n"},
    )
    lines, surprises = compare_outputs.compare(old, new, {})
    assert surprises == 2
    assert {"--- before/b/stdout", "-2", "+4", "--- before/b/x", "-3"} <= set(lines)
    reasons = tmp_path / "reasons.txt"
    reasons.write_text("# wanted\nb/*: better\n")
    lines, surprises = compare_outputs.compare(old, new, compare_outputs.expected(reasons))
    assert (surprises, lines[0]) == (0, "expected: 2 × b/*: better")


@pytest.mark.long
def test_a_checkout_equals_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = tmp_path / "commands.txt"
    listed.write_text("[one]\nlist: mix bundled hot -o mixed\nerror: audit bundled -r bm52\n")
    monkeypatch.setattr(compare_outputs, "COMMANDS", listed)
    assert compare_outputs.main([str(tree.ROOT), str(tree.ROOT)]) == 0


CODE = '''"""A toy."""


def clipped(value: float, limit: float = 2.0) -> float:
    """Value, at most the limit."""
    if value < limit:
        return value
    raise ValueError(f"{value + 1} is not below {limit}")


def unused(text: str) -> bool:
    """Tested by nothing."""
    return "-" + text in ("-a", "-b")
'''
TESTS = """from ranktilt.measures.toy import clipped


def test_it_is_clipped():
    assert clipped(1.5) == 1.5
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    write(root / "tests" / "test_toy.py", TESTS)
    for name, text in {
        "__init__.py": "",
        "measures/__init__.py": "",
        "measures/toy.py": CODE,
    }.items():
        write(root / "src" / "ranktilt" / name, text)
    return root


def test_lines_keep_their_numbers(tmp_path: Path) -> None:
    for text, expected in {
        "x = a - (  # minus -\n    b)\n": "x = a + (  # minus -\n    b)\n",
        "x = é * b\n": "x = é / b\n",
        "x //= 2\n": "x *= 2\n",
        "if a is not b: pass\n": "if a is b: pass\n",
        "def f():\n    return g(\n        a,\n    )\n": "def f():\n    return (None\n\n)\n",
        (
            "zip(a[1:], b, strict=True)\nreport('read', 1, 2)\n"
        ): "zip(a[2:], b, strict=True)\nreport('read', 1, 2)\n",
    }.items():
        write(tmp_path / "io" / "a.py", text)
        changed_texts = [
            mutant.applied(text.encode()).decode()
            for mutant in mutants.mutants(tmp_path, ["io"], tmp_path)
        ]
        assert expected in changed_texts
        assert {changed.count("\n") for changed in changed_texts} == {text.count("\n")}


def test_survivors_that_are_listed_stand_apart(checkout: Path) -> None:
    every = mutants.mutants(checkout / "src" / "ranktilt", mutants.ROOMS, checkout)
    listed = (
        "# At the limit both are the limit.\nsrc/ranktilt/measures/toy.py: if value <= limit:\n"
    )
    equals = mutants.equivalent(every, checkout, listed)
    assert equals == {every[1].name}
    rows = [
        {"name": mutant.name, "kind": mutant.kind, "status": "survived", "tests": 0}
        for mutant in every
    ]
    rows[0]["status"] = "killed"
    printed = mutants.report(rows, 6, equals)
    assert "1 change nothing; of the others 20 % are killed" in printed
    assert (every[1].name in printed, every[2].name in printed) == (False, True)


@pytest.mark.long
def test_a_pass_kills_what_tests_see_and_goes_on_where_it_stopped(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "mutants.jsonl"
    options = ["--checkout", str(checkout), "--results", str(results), "--jobs", "1"]
    assert mutants.main([*options, "--minutes", "0"]) == 0
    assert capsys.readouterr().out.startswith("0 of 0 mutants killed (none); 6 not judged yet")
    assert mutants.main(options) == 0
    statuses = {
        (row["kind"], row["line"]): row["status"]
        for row in map(json.loads, results.read_text().splitlines())
    }
    assert statuses == {
        ("constant", 4): "survived",
        ("boundary", 6): "survived",
        ("comparison", 6): "killed",
        ("return", 7): "killed",
        ("return", 13): "unreached",
        ("comparison", 13): "unreached",
    }
    assert "2 of 6 mutants killed (33 %); 0 not judged yet" in capsys.readouterr().out
    assert (checkout / "src" / "ranktilt" / "measures" / "toy.py").read_text() == CODE


@pytest.mark.long
def test_every_damaged_file_is_a_result_or_one_line() -> None:
    faults = fuzz.faults(fuzz.NAMES, 1, range(15 * len(fuzz.NAMES)))
    assert not faults, "python scripts/fuzz.py " + next(iter(faults))
