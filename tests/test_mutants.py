"""`scripts/mutants.py` on a toy package: what it changes, and what it says of tests that notice and that do not."""

import json
from collections import Counter
from pathlib import Path

import pytest

from scripts import mutants as script
from tests.toy import write

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
    files = {"src/ranktilt/__init__.py": "", "src/ranktilt/measures/__init__.py": "", "tests/test_toy.py": TESTS}
    for name, text in {**files, "src/ranktilt/measures/toy.py": CODE}.items():
        write(tmp_path / "checkout" / name, text)
    return tmp_path / "checkout"


def test_mutants_of_a_file(checkout: Path) -> None:
    found = script.mutants(checkout / "src" / "ranktilt", script.ROOMS, checkout)
    assert [(one.kind, one.line, one.old, one.new) for one in found] == [
        ("constant", 4, "2.0", "4.0"),
        ("boundary", 6, "<", "<="),
        ("comparison", 6, "<", ">"),
        ("return", 7, "value", "(None)"),
        ("return", 13, '"-" + text in ("-a", "-b")', 'not ("-" + text in ("-a", "-b"))'),
        ("comparison", 13, "in", "not in"),
    ]


def test_lines_keep_their_numbers(tmp_path: Path) -> None:
    for text, expected in {
        "x = a - (  # minus -\n    b)\n": "x = a + (  # minus -\n    b)\n",
        "x = é * b\n": "x = é / b\n",
        "x //= 2\n": "x *= 2\n",
        "if a is not b: pass\n": "if a is b: pass\n",
        "def f():\n    return g(\n        a,\n    )\n": "def f():\n    return (None\n\n)\n",
    }.items():
        write(tmp_path / "io" / "a.py", text)
        found = [one.applied(text.encode()).decode() for one in script.mutants(tmp_path, ["io"], tmp_path)]
        assert expected in found
        assert {changed.count("\n") for changed in found} == {text.count("\n")}


def test_the_seed_draws_and_every_kind_has_its_share(checkout: Path) -> None:
    every = script.mutants(checkout / "src" / "ranktilt", script.ROOMS, checkout) * 3
    assert script.drawn(every, 8, 1) == script.drawn(every, 8, 1)
    assert Counter(one.kind for one in script.drawn(every, 8, 1)) == {
        "comparison": 2, "boundary": 2, "constant": 2, "return": 2,
    }  # fmt: skip


def test_near_and_quick_tests_come_first_as_many_as_fit() -> None:
    seconds = {"tests/io/test_b.py::x": 9.0, "tests/cli/test_c.py::y": 1.0, "tests/io/test_a.py::z": 8.0}
    known = script.Reached(seconds, {"src/io/a.py": {"3": [*seconds, "tests/io/test_gone.py::failed"]}})
    mutant = script.Mutant("src/io/a.py", "constant", 2, 4, 0, 1, "1", "2")  # lines 2 to 4 are one statement
    assert known.tests(mutant, 60) == ["tests/io/test_a.py::z", "tests/io/test_b.py::x", "tests/cli/test_c.py::y"]
    assert known.tests(mutant, 10) == ["tests/io/test_a.py::z", "tests/cli/test_c.py::y"]


@pytest.mark.long
def test_a_pass_kills_what_tests_see_and_goes_on_where_it_stopped(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "mutants.jsonl"
    options = ["--checkout", str(checkout), "--results", str(results), "--jobs", "1"]
    assert script.main([*options, "--minutes", "0"]) == 0
    assert capsys.readouterr().out.startswith("0 of 0 mutants killed (none); 6 not judged yet")
    assert script.main(options) == 0
    found = {(row["kind"], row["line"]): row["status"] for row in map(json.loads, results.read_text().splitlines())}
    assert found == {
        ("constant", 4): "survived", ("boundary", 6): "survived", ("comparison", 6): "killed", ("return", 7): "killed",
        ("return", 13): "unreached", ("comparison", 13): "unreached",
    }  # fmt: skip
    assert "2 of 6 mutants killed (33 %); 0 not judged yet" in capsys.readouterr().out
    assert (checkout / "src" / "ranktilt" / "measures" / "toy.py").read_text() == CODE
