"""ranktilt explain --groups --run: which properties go with a gap, without texts and
without twins.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import ranktilt as rt
from ranktilt.explaining.explanation import Explanation
from ranktilt.explaining.properties.result import ExplainedGaps
from tests.cli.conftest import Cli
from tests.explaining.properties.planted import shop_documents, shop_run
from tests.reporting.readers import Markup


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A label file of pages with words and prices, and a run."""
    shop_documents().rename({"id": "doc_id"}).write_csv(tmp_path / "pages.csv")
    shop_run().save(tmp_path / "engine.trec")
    return tmp_path


def explained(cli: Cli, pages: Path, *options: object) -> tuple[str, ExplainedGaps]:
    words = ("--groups", pages / "pages.csv", "--by", "kind", "--reference", "shop")
    files = ("--run", pages / "engine.trec", "--json", pages / "gaps.json")
    code, out, _ = cli("explain", *words, *files, *options)
    assert code == 0
    return out, ExplainedGaps.load(pages / "gaps.json")


def test_labels_and_run_are_enough(cli: Cli, pages: Path) -> None:
    out, gaps = explained(cli, pages, "-o", pages / "gaps.html")
    assert out.startswith("engine scores shop higher than forum, by ")
    assert [gap.group_a for gap in gaps.primary] == ["shop"]
    assert gaps.spec["command"].startswith("ranktilt explain --groups")
    assert {file["path"] for file in gaps.spec["inputs"]} == {
        str(pages / "pages.csv"),
        str(pages / "engine.trec"),
    }
    cli("report", pages / "gaps.json", "-o", pages / "again.html")
    for name in ("gaps.html", "again.html"):
        assert "What the gap goes with" in Markup((pages / name).read_text(encoding="utf-8")).text


def test_probe_names_columns(cli: Cli, pages: Path) -> None:
    _, gaps = explained(cli, pages, "--probe", "price")
    assert [about.name for about in gaps.properties] == ["price"]


def test_labels_without_numbers_say_what_to_add(cli: Cli, pages: Path) -> None:
    labels = pages / "kinds.csv"
    shop_documents().select("id", "kind").rename({"id": "doc_id"}).write_csv(labels)
    words = ("--groups", labels, "--by", "kind", "--run", pages / "engine.trec")
    code, _, err = cli("explain", *words, "--score-order", "score")
    assert code == 2
    assert f"{labels} has no column of numbers besides the labels; add a column" in err
    run = f"--run {pages / 'engine.trec'} --score-order score"
    command = f"ranktilt explain DIR {run} --groups {labels} --by kind"
    assert err.strip().endswith(f"or name a folder DIR with the texts: {command}")


def test_label_file_adds_columns_to_texts(cli: Cli, tmp_path: Path) -> None:
    bundled = rt.bundled()
    labels = "\n".join(
        f"{name},{'essay' if origin % 3 else 'note'},{origin % 7}"
        for name, origin in zip(bundled.ids, bundled.origin_codes().tolist(), strict=True)
    )
    (tmp_path / "kinds.csv").write_text(f"doc_id,kind,age\n{labels}\n", encoding="utf-8")
    folder = rt.save(bundled, tmp_path / "bed")
    words = ("--groups", tmp_path / "kinds.csv", "--by", "kind", "--probe", "age")
    code, _, err = cli(
        "explain", folder, *words, "--attribution", "-r", "bm25", "--json", tmp_path / "why.json"
    )
    assert code == 0, err
    assert ExplainedGaps.load(tmp_path / "why.json").gaps[0].parts[0].property_name == "age"


def test_twins_are_attributed(cli: Cli, tmp_path: Path) -> None:
    folder = rt.save(rt.bundled(), tmp_path / "bed")
    rt.ranker("bm25").rank(rt.bundled()).save(tmp_path / "run.trec")
    words = ("--run", tmp_path / "run.trec", "--probe", "words", "--json", tmp_path / "why.json")
    code, _, err = cli("explain", folder, *words)
    assert code == 0, err
    assert Explanation.load(tmp_path / "why.json").results[-1].probe == "attribution"
