"""``ranktilt explain``: probes by name, those of other packages too, in the terminal, Markdown and JSON."""

import json
from pathlib import Path

import pytest

import ranktilt as rt
from ranktilt.errors import UserError
from ranktilt.probes.explain import PROBES, Explanation, probe, probe_classes
from tests.cli.conftest import Cli, refused
from tests.probes.exclaiming import bed, install
from tests.reporting.readers import Markup
from tests.reporting.studies import explained, toy_study


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for what is written, with the package installed."""
    monkeypatch.syspath_prepend(install(tmp_path / "site"))
    return tmp_path


def test_a_probe_of_another_package_prints_everywhere(plugin: Path, cli: Cli) -> None:
    folder = rt.save(bed(), plugin / "bed")
    code, out, err = cli("explain", folder, "--probe", "marks", "--json", plugin / "marks.json")
    assert (code, err) == (0, "")
    assert "marks: Do rewrites exclaim more than people?" in out
    assert out.startswith("Largest difference from human: exclamation marks, higher in llm.")
    _, out, _ = cli("explain", folder, "--probe", "marks", "--format", "markdown")
    assert "### marks" in out
    assert "| llm | exclamation marks | +2.18 [" in out
    (marks,) = Explanation.load(plugin / "marks.json").results
    assert (marks.probe, marks.effects[0].pairs, marks.rows[1]["mean"]) == ("marks", 12, 3.0)
    assert json.loads(cli("explain", folder, "--probe", "marks", "--json", "-")[1])["results"][0]["probe"] == "marks"


def test_probes_are_found_by_name(plugin: Path) -> None:
    assert set(probe_classes()) == {*PROBES, "broken", "lost", "marks"}
    assert {name: probe(name).name for name in (*PROBES, "marks")} == {name: name for name in (*PROBES, "marks")}
    with pytest.raises(UserError, match="probe 'broken': expected a subclass of ranktilt's Probe, got <class"):
        probe("broken")
    with pytest.raises(UserError, match=r"probe 'lost' \(exclaiming:Lost\) cannot be imported: .*Lost"):
        probe("lost")


def test_attribution_is_a_table_a_ranker(cli: Cli, tmp_path: Path) -> None:
    """Rank gaps stand in CSV and JSON alone, and a file that is read back prints the same."""
    folder = rt.save(rt.bundled(), tmp_path / "bed")
    said = cli("explain", folder, "--attribution", "-r", "bm25", "-r", "tfidf", "--json", tmp_path / "why.json")[1]
    lines = said.splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith(" property ")]
    assert [lines[n - 2].partition(":")[0] for n in starts] == ["bm25, claude", "tfidf, claude"]
    for start in starts:
        assert lines[start + 2].startswith(" what remains ")
    assert "rank gap" not in said
    found = Explanation.load(tmp_path / "why.json")
    assert {row["of"] for row in found.results[0].rows} == {"score gap", "rank gap"}
    page, again = tmp_path / "why.html", tmp_path / "again.html"
    cli("explain", folder, "--attribution", "-r", "bm25", "-r", "tfidf", "-o", page)
    cli("report", tmp_path / "why.json", "-o", again)
    first, second = (Markup(path.read_text(encoding="utf-8")).text for path in (page, again))
    assert all(table.says in first and table.says in second for table in found.results[0].tables)


def test_figures_of_the_paper_are_drawn_printed_and_refused(tmp_path: Path, cli: Cli) -> None:
    pytest.importorskip("vl_convert")
    file = explained("human", "llama-t0.2").save(tmp_path / "why.json")
    study = toy_study().save(tmp_path / "study.json")
    assert cli("report", file, "--layout", "dai-fig9")[1].startswith("**Log perplexity of the documents")
    assert cli("report", file, "--layout", "dai-fig7", "--format", "pdf", "--figures", tmp_path / "drawn")[0] == 0
    assert [one.name for one in (tmp_path / "drawn").iterdir()] == ["dai-figure-7.pdf"]
    for arguments, message in [
        ([file, "--layout", "dai-fig8"], "dai-fig8 shows the spectra of several sources"),
        ([study, "--layout", "dai-fig9", "--figures", tmp_path / "none"], "dai-fig9 shows perplexities"),
        ([file, "--layout", "dai-fig77", "-o", tmp_path / "none.md"], "unknown layout 'dai-fig77'; did you mean "),
    ]:
        assert refused(cli, "report", *arguments).startswith(message)
    assert not (tmp_path / "none").exists()
