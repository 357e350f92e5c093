"""``ranktilt audit`` of a folder with the rewrites of several models: an audit a source, some of them, or the mix."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ranktilt import Audit, Collection, load, save
from ranktilt.reporting.reload import reload
from tests.cli.conftest import Cli, refused
from tests.cli.test_audit import QUICK, RANKERS, saved, sided


class TestSeveralModels:
    """A folder with the rewrites of two models, each audited beside the originals alone."""

    def test_each_is_what_a_folder_without_the_other_gives(self, cli: Cli, tmp_path: Path) -> None:
        folder = sided(tmp_path)
        result = cli(
            "audit", folder, *RANKERS, *QUICK, "--json", tmp_path / "a.json", "--per-query", tmp_path / "q.csv"
        )
        names = [f"{tmp_path}/{name}" for s in ("llm", "gpt") for name in (f"a-{s}.json", f"q-{s}.csv")]
        assert result.err == f"One audit a source: {', '.join(names)}\n"
        assert [len(result.out.split(f"sources ranked together: human, {s}; without")) for s in ("llm", "gpt")] == [
            2,
            2,
        ]
        for source in ("llm", "gpt"):
            found = Audit.load(tmp_path / f"a-{source}.json")
            two = saved(cli, tmp_path, folder, *RANKERS, *QUICK, "--source", "human", "--source", source)
            alone = tmp_path / source
            save(Collection(*only(load(folder), source)), alone)
            assert found.pairs == two.pairs == (("human", source),)
            expected = saved(cli, tmp_path, alone, *RANKERS, *QUICK)
            for one in (found, two):
                assert np.array_equal(one.values, expected.values, equal_nan=True)
                assert one.by_group().equals(expected.by_group())
            assert reload(found).collection == load(alone)

    def test_one_page_and_one_csv_hold_all(self, cli: Cli, tmp_path: Path) -> None:
        folder, page = sided(tmp_path), tmp_path / "page.html"
        result = cli("audit", folder, "-r", "bm25", *QUICK, "-o", page, "--save", tmp_path / "kept", "--format", "csv")
        lines = result.out.splitlines()
        assert [line.startswith("part,run,measure") for line in lines].count(True) == 1
        assert [any(f",human,{other}," in line for line in lines) for other in ("llm", "gpt")] == [True, True]
        assert all(f"without {other}" in page.read_text(encoding="utf-8") for other in ("gpt", "llm"))
        assert sorted(path.parent.name for path in (tmp_path / "kept").glob("*/audit.json")) == ["gpt", "llm"]

    @pytest.mark.parametrize("option", [("--mixed",), ("--pair", "human,llm"), ("--by", "side")])
    def test_one_collection_by_name_or_where_groups_ask_for_it(
        self, cli: Cli, tmp_path: Path, option: tuple[str, ...]
    ) -> None:
        found = saved(cli, tmp_path, sided(tmp_path), "-r", "bm25", *option)
        assert found.spec["collection"].get("without_sources") is None
        assert any(note.startswith("mixed: 3 sources") for note in found.notes) == (option[0] != "--by")

    def test_a_saved_run_stays_as_it_was_ranked(self, cli: Cli, tmp_path: Path) -> None:
        folder, run = sided(tmp_path), tmp_path / "run.trec"
        assert cli("rank", folder, "-r", "bm25", "-o", run).code == 0
        found = saved(cli, tmp_path, folder, "--run", run)
        assert found.groups == ("all", "human", "gpt", "llm")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--source", "gpt"], "only source 'gpt': name what it is held against too, such as 'human'"),
            (["--source", "human"], "only source 'human': name what it is held against too, such as 'llm'"),
            (["--source", "human", "--source", "gtp"], "unknown source 'gtp'; did you mean 'gpt'? (valid: human, llm,"),
            (["--json", "-"], "standard output takes one audit as JSON, and here are 2, one a source"),
            (["--format", "json"], "standard output takes one audit as JSON, and here are 2, one a source"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_is_refused(self, cli: Cli, tmp_path: Path, options: list[str], message: str) -> None:
        assert refused(cli, "audit", sided(tmp_path), "-r", "bm25", *options).startswith(message)

    def test_sources_of_labels_were_ranked_before(self, cli: Cli, tmp_path: Path) -> None:
        start = ("audit", "--run", "r.trec", "--groups", "g.tsv")
        assert refused(cli, *start, "--source", "llm").startswith(
            "--source picks what is ranked: name a collection DIR"
        )


def only(collection: Collection, source: str) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Documents of people and of one source, queries, and judgments of these documents."""
    docs = collection.docs.filter(pl.col("source").is_in(["human", source]))
    return docs, collection.queries, collection.qrels.filter(pl.col("doc_id").is_in(docs["id"].implode()))
