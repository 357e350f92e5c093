"""ranktilt report: pages, the papers' tables and figures, where they go, and what is refused."""

import os
import pty
import shutil
import subprocess
import sys
import webbrowser
from pathlib import Path

import pytest

import ranktilt as rt
from ranktilt import Audit
from ranktilt.reporting.layouts.cells import read_cells
from ranktilt.reporting.layouts.tables import paper_tables
from ranktilt.reporting.numbers import size
from tests.cli.conftest import Cli
from tests.reporting.readers import Markup, explorers
from tests.toy import write, write_cocktail

CELLS = (
    "table,dataset,generator,temperature,collection,system,condition,target,measure,value,note\n"
    "dai-3,SciFact,Llama2,0.2,mixed,BM25,,human,NDCG@1,26.7,\n"
    "dai-3,SciFact,Llama2,0.2,mixed,BM25,,llm,NDCG@1,24.7,\n"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_cocktail(tmp_path / "toy")
    collection = rt.load("toy")
    runs = [rt.ranker(text).rank(collection) for text in ("tfidf", "bm25")]
    rt.audit(collection, runs, ["nDCG@1", "AP@3"], resamples=100).save("audit.json")
    return tmp_path


def test_the_page_is_opened_or_named(cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: not opened.append(address))
    for options in (["-o", "report.html"], []):
        assert cli("report", "audit.json", "--open", *options)[0] == 0
        page = Path(opened[-1].removeprefix("file://"))
        assert (page.parent == here) == bool(options)
        assert page.read_bytes() == rt.report("audit.json", "library.html").read_bytes()
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    code, _, err = cli("report", "audit.json", "--open", "-o", "report.html")
    assert (code, err.splitlines()[1]) == (
        0,
        "no browser could be opened; open report.html in yours",
    )


def test_an_audit_becomes_the_library_s_page(cli: Cli, here: Path) -> None:
    code, out, err = cli("report", "audit.json", "-o", "report.html")
    page = (here / "report.html").read_bytes()
    assert (code, out) == (0, "")
    assert err == f"report.html: {size(len(page))}\n"
    assert page == rt.report("audit.json", "library.html").read_bytes()
    assert explorers(page.decode())[0]["runs"] == ["tfidf", "bm25"]
    code, out, err = cli("report", "audit.json")
    assert (code, out.encode(), err) == (0, page, ""), "without a terminal the page goes to stdout"


def test_texts_can_be_kept_out_and_missing_collection_is_said(cli: Cli, here: Path) -> None:
    assert cli("report", "audit.json", "-o", "report.html", "--no-texts").code == 0
    page = (here / "report.html").read_text("utf-8")
    assert explorers(page) == []
    assert "left out, as was asked for" in Markup(page).text
    (here / "toy" / "corpus" / "llm.jsonl").write_text("")
    code, _, err = cli("report", "audit.json", "-o", "report.html")
    assert code == 0
    assert err.splitlines()[:-1] == [
        "Queries, ranked lists and texts are left out. The collection could not be opened again: "
        "corpus/llm.jsonl has "
        "changed since the audit."
    ]
    assert explorers((here / "report.html").read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("format", "ending"), [("latex", "tex"), ("markdown", "md"), ("csv", "csv")]
)
def test_a_layout_is_the_library_s_table(cli: Cli, here: Path, format: str, ending: str) -> None:
    expected = paper_tables([Audit.load("audit.json")], "dai-3", format)
    code, out, err = cli("report", "audit.json", "--layout", "dai-3", "--format", format)
    assert (code, out, err) == (0, expected, "")
    file = here / f"table.{ending}"
    assert cli("report", "audit.json", "--layout", "dai-3", "--format", format, "-o", file) == (
        0,
        "",
        "",
    )
    assert file.read_text("utf-8") == expected


def test_layout_is_markdown_and_format_is_the_papers(cli: Cli, here: Path) -> None:
    write(here / "cells.csv", CELLS)
    cells = read_cells("cells.csv")
    assert cli("report", "cells.csv", "--layout", "dai-3").out == paper_tables(
        [cells], "dai-3", "markdown"
    )
    assert cli("report", "cells.csv", "--format", "latex").out == paper_tables(
        [cells], "paper", "latex"
    )


def test_pairs_of_texts_are_printed_where_the_collection_is_there(cli: Cli, here: Path) -> None:
    code, out, _ = cli("report", "audit.json", "--layout", "dai-10", "--query", "q2")
    assert code == 0
    texts = dict(rt.load("toy").queries.select("id", "text").iter_rows())
    assert [name for name, text in texts.items() if f"*Query: {text}*" in out] == ["q2"]
    assert "apples" in cli("report", "audit.json", "--layout", "paper").out
    assert "apples" not in cli("report", "audit.json", "--layout", "paper", "--no-texts").out
    shutil.rmtree(here / "toy")
    message = "The collection could not be opened again: corpus/human.jsonl is not there any more."
    without = cli("report", "audit.json", "--layout", "paper")
    assert "apples" not in without.out
    assert without.err.splitlines() == [message]
    assert cli("report", "audit.json", "--layout", "paper", "--format", "csv").err == ""
    code, out, err = cli("report", "audit.json", "--layout", "dai-10")
    assert (code, out) == (2, "")
    assert err.splitlines()[0] == message


@pytest.mark.parametrize("form", ["svg", "pdf"])
def test_figures_go_into_a_folder(cli: Cli, here: Path, form: str) -> None:
    pytest.importorskip("vl_convert")
    code, out, err = cli("report", "audit.json", "--format", form, "--figures", "figures")
    assert (code, out) == (0, "")
    pictures = sorted((here / "figures").iterdir())
    assert pictures
    assert {file.suffix for file in pictures} == {f".{form}"}
    names = sorted(line.partition(":")[0] for line in err.splitlines())
    assert names == [f"figures/{file.name}" for file in pictures]


def test_a_terminal_gets_no_page(here: Path) -> None:
    main, terminal = pty.openpty()
    code = "from ranktilt.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "report", "audit.json"],
        stdout=terminal,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd=here,
        timeout=120,
    )
    os.close(terminal)
    os.close(main)
    assert (done.returncode, done.stderr) == (
        2,
        "ranktilt: the page needs a file: -o report.html\n",
    )
