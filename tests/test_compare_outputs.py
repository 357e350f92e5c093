"""`scripts/compare_outputs.py`: every verb is compared, and what it reports is what differs."""

from pathlib import Path

import pytest
import typer

from scripts import compare_outputs as script
from tests.house import tree


def test_every_verb_is_compared_and_every_name_is_its_own() -> None:
    from ranktilt.cli.main import app

    found = script.commands(script.COMMANDS.read_text(encoding="utf-8"))
    verbs = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert set(verbs) <= {command.line.split()[0] for command in found}
    assert len({command.name for command in found}) == len(found)


def test_what_changes_from_run_to_run_is_replaced() -> None:
    for text, expected in {
        "done in 1.25 s, at 2026-01-02T03:04:05Z\n": "done in <time>, at <date>\n",
        "/tmp/x/a.json: no\n": "<work>/a.json: no\n",
        "null: 52 %, about 0:01 left\nbm25: level\n": "bm25: level\n",
        "nDCG@3 41.7 2 sources": "nDCG@3 41.7 2 sources\n",
    }.items():
        assert script.normalised(text, {"/tmp/x": "<work>"}) == expected


def test_pages_and_json_are_laid_out_without_programs(tmp_path: Path) -> None:
    page = '<p class="a">One  two</p><script>var x</script><script type="application/json">{"b": 0.1000000000000001}'
    assert script.page(page + "</script>").splitlines() == [
        "<p class='a'>", "One two", "<script>", "<script type='application/json'>", "{", ' "b": 0.1', "}",
    ]  # fmt: skip


def test_a_difference_is_shown_unless_it_is_expected(tmp_path: Path) -> None:
    old, new = {"a/stdout": "1\n", "b/stdout": "2\n", "b/x": "3\n"}, {"a/stdout": "1\n", "b/stdout": "4\n"}
    lines, surprises = script.compare(old, new, {})
    assert surprises == 2
    assert {"--- before/b/stdout", "-2", "+4", "--- before/b/x", "-3"} <= set(lines)
    reasons = tmp_path / "reasons.txt"
    reasons.write_text("# wanted\nb/*: better\n")
    lines, surprises = script.compare(old, new, script.expected(reasons))
    assert (surprises, lines[0]) == (0, "expected: 2 × b/*: better")


@pytest.mark.long
def test_a_checkout_equals_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = tmp_path / "commands.txt"
    listed.write_text("[one]\nlist: mix bundled hot -o mixed\nerror: audit bundled -r bm52\n")
    monkeypatch.setattr(script, "COMMANDS", listed)
    assert script.main([str(tree.ROOT), str(tree.ROOT)]) == 0


def test_what_was_not_recorded_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "run", lambda *_: {"help-version/stdout": "1", "help-help/stdout": "new"})
    saved = {"help-version/stdout": "1", "audit-table/stdout": "é\n", "a/x/y.json": "{}"}
    script.save(saved, tmp_path)
    assert script.load(tmp_path) == saved
    assert script.main([str(tree.ROOT), "--against", str(tmp_path)]) == 1
    assert script.main([str(tree.ROOT), "--against", str(tmp_path), "--only", "help"]) == 0
