"""The rules of style that lint holds, in the source and beside it."""

from pathlib import Path

import pytest

from scripts import house
from tests.toy import write

CASES = {
    "riddle-name": "found = 1\n",
    "long-line": f"# {'x' * 100}\n",
    "fmt-skip": "x = 1  # fmt: skip\n",
    "nested-conditional": "x = 1 if a else 2 if b else 3\n",
}


@pytest.mark.parametrize("name", CASES)
def test_rule_is_held_everywhere(tmp_path: Path, name: str) -> None:
    write(tmp_path / "module.py", CASES[name])
    (message,) = house.broken_rules(house.report_of(tmp_path), house.HELD_EVERYWHERE)
    assert f"{tmp_path / 'module.py'}:1" in message
    assert message.endswith(f"{name}: at most 0")


def test_broken_rule_beside_source_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(house, "ROOT", tmp_path)
    for folder in house.FOLDERS_BESIDE_SOURCE:
        write(tmp_path / folder / "module.py", "index = 1\n")
    assert not house.has_broken_rules(house.report_of(tmp_path / "tests"))
    write(tmp_path / "benchmarks" / "module.py", CASES["riddle-name"])
    assert house.has_broken_rules(house.report_of(tmp_path / "tests"))
    assert capsys.readouterr().err.startswith("benchmarks/module.py:1 found")
