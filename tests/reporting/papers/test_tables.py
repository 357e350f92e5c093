"""The papers' tables of any results: which ones there are, what is said where there are none."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from ranktilt import Audit, Collection, UserError, audit
from ranktilt.reporting.papers.cells import Cell, Cells, read_cells
from ranktilt.reporting.papers.layouts import LAYOUTS
from ranktilt.reporting.papers.tables import Source, paper_grids, paper_tables
from ranktilt.reporting.reload import Opened
from tests.probes.validations import toy_validation
from tests.reporting.audits import small, three, twins, uneven
from tests.reporting.papers.made import RERANKED, named, sourced
from tests.reporting.papers.tex_reader import numbers, read
from tests.reporting.studies import toy_study
from tests.toy import run_of


def names(*results: Source) -> list[str]:
    """Tables that are made where nobody names one."""
    return [grid.name for grid in paper_grids(results, "paper")]


def of(audit: Audit, folder: str) -> Audit:
    """The same audit of another folder."""
    return replace(audit, spec={**audit.spec, "collection": {"path": folder}})


class TestWhich:
    def test_every_table_that_the_results_hold_in_the_papers_order(self) -> None:
        found = sourced("llama", runs=RERANKED)
        assert names(toy_study(), uneven(), found, toy_validation()) == [
            "dai-1", "dai-2", "dai-3", "dai-5", "dai-9", "wang-1",
        ]  # fmt: skip

    def test_a_collection_without_a_relevant_pair_has_all_tables_but_the_one_of_texts(self) -> None:
        # Each query's human and LLM text are two works: there are no twins to set side by side.
        apart = twins(10).docs.with_columns(origin="id")
        collection = Collection(apart, twins(10).queries, twins(10).qrels)
        scores = {f"q{n}": {f"{n}-human": 2.0, f"{n}-llm": 1.0} for n in range(10)}
        run = run_of(collection, scores, ranker="bm25")
        alone = Opened(audit(collection, run, ["nDCG@1"], resamples=100), collection, (run,))
        assert names(alone) == ["dai-3"]
        paired = Opened(sourced("llama"), twins(40, ("human", "llama")))
        (texts,) = (grid for grid in paper_grids([alone, paired], "paper") if grid.name == "dai-10")
        assert texts.caption.endswith("LLM text by llama.")

    def test_cells_by_their_table(self) -> None:
        cells = Cells(
            tuple(Cell(table=t, system="s", measure="P@20", value=0.5) for t in ("wang-2", "askari-2", "wang-1"))
        )
        assert names(cells) == ["wang-1", "wang-2", "askari-2"]

    def test_texts_come_with_a_collection(self) -> None:
        collection = twins(40, ("human", "llama"))
        found = sourced("llama")
        assert names(Opened(found)) == ["dai-3"]
        assert names(Opened(found, collection)) == ["dai-3", "dai-10"]
        assert names(Opened(found, collection), Opened(of(found, "b"), collection)) == ["dai-3", "dai-10", "dai-11"]

    def test_several_audits_stand_side_by_side(self) -> None:
        (grid,) = paper_grids([of(small(), "/x/one"), of(small(), "/y/two")], "dai-3")
        assert grid.panels[0].header[0] == (("one", 3), ("two", 3))

    def test_audits_of_one_collection_with_other_rankers_are_one_table(self) -> None:
        (grid,) = paper_grids([of(small(), "/x/one"), of(named(small(), ("c", "d")), "/x/one")], "dai-3")
        assert [row.labels[0] for row in grid.panels[0].rows if row.labels[0]] == ["first", "second@5", "c", "d"]

    def test_published_cells_stand_beside_an_audit(self) -> None:
        published = Cells(
            (Cell(table="dai-3", collection="mixed", system="ANCE", target="human", measure="nDCG@1", value=1.0),)
        )
        (grid,) = paper_grids([published, of(small(), "/x/one")], "dai-3")
        assert [panel.title for panel in grid.panels] == ["", "LLM text by llm"]

    def test_models_of_one_audit_go_to_their_tables(self) -> None:
        grids = {grid.name: grid for grid in paper_grids([sourced("gpt-4", "llama")], "paper")}
        assert grids["dai-4"].caption.endswith("LLM text by gpt-4.")
        assert [panel.title for panel in grids["dai-3"].panels] == ["LLM text by llama", "gpt-4 against llama"]

    def test_a_named_table_takes_all_models(self) -> None:
        (grid,) = paper_grids([sourced("gpt-4")], "dai-3")
        assert grid.caption.endswith("LLM text by gpt-4.")

    def test_the_same_audit_twice_is_refused(self) -> None:
        with pytest.raises(UserError, match="dai-3: two results hold the same cell"):
            paper_tables([small(), small()], "dai-3", "csv")

    def test_two_results_of_one_collection_count_its_queries_once(self) -> None:
        (grid,) = paper_grids([of(small(), "/x/one"), of(small(), "/x/one")], "askari-1")
        assert [row.texts for panel in grid.panels for row in panel.rows] == [("3",)]

    def test_two_collections_of_one_name_are_refused(self) -> None:
        with pytest.raises(UserError, match="askari-1: two results hold the same cell"):
            paper_tables([of(small(), "/x/one"), of(sourced("llama"), "/y/one")], "askari-1", "csv")


class TestNumbers:
    def test_relative_delta_comes_from_the_printed_means(self) -> None:
        found = list(csv.DictReader(io.StringIO(paper_tables([toy_study()], "dai-9", "csv"))))
        bm25 = [row["value"] for row in found if (row["system"], row["temperature"]) == ("BM25", "0.2")]
        # 31.86 and 28.14 are printed as 31.9 and 28.1: 100·3.8/30 = 12.67; the study says 12.4
        assert bm25 == ["31.9", "28.1", "12.7"]

    def test_or_from_the_means_themselves(self) -> None:
        text = paper_tables([toy_study()], "dai-9", "csv", rounding="none")
        assert "BM25,relative_delta,nDCG@3,12.4," in text

    @pytest.mark.parametrize("layout", ["dai-3", "dai-9", "askari-2", "askari-1"])
    def test_latex_and_csv_hold_the_same_numbers(self, layout: str) -> None:
        rows = csv.DictReader(io.StringIO(paper_tables([three()], layout, "csv")))
        (table,) = read(paper_tables([three()], layout, "latex"))
        labels = len(LAYOUTS[layout].rows)
        assert numbers(table, labels) == [row["value"] for row in rows]

    def test_groups_that_are_not_twins_are_said_to_be_none(self) -> None:
        (grid,) = paper_grids([uneven()], "dai-3")
        note = "Groups that are not twins: Relative Δ is level at what shuffled labels give, which need not be 0."
        assert grid.notes[-1] == note
        assert note not in paper_grids([small()], "dai-3")[0].notes

    def test_a_relative_delta_of_rounded_means_is_said_to_be_one(self) -> None:
        said = "Relative Δ comes from the means as printed here"
        assert [note for note in paper_grids([small()], "dai-3")[0].notes if note.startswith(said)]
        (exact,) = paper_grids([small()], "dai-3", rounding="none")
        rounded = replace(small(), spec={**small().spec, "rounding": "paper"})
        for grid in (exact, *paper_grids([rounded], "dai-3"), *paper_grids([small()], "askari-2")):
            assert not [note for note in grid.notes if note.startswith(said)]

    def test_csv_is_read_back_into_the_same_table(self, tmp_path: Path) -> None:
        file = tmp_path / "cells.csv"
        text = paper_tables([toy_validation(), toy_study(), small()], "paper", "csv")
        file.write_text(text, encoding="utf-8")
        assert paper_tables([read_cells(file)], "paper", "csv") == text


class TestFormats:
    def test_the_command_is_named(self) -> None:
        found = replace(small(), spec={**small().spec, "command": "ranktilt audit X --json a.json"})
        (table,) = read(paper_tables([found], "dai-3", "latex"))
        assert "Made by: ranktilt audit X --json a.json" in table.comments

    def test_so_is_the_file_that_cells_come_from(self) -> None:
        cells = Cells((Cell(table="wang-2", system="s", measure="P@20", value=0.5),), "folder/cells.csv")
        assert "- Cells of folder/cells.csv\n" in paper_tables([cells], "paper", "markdown")

    def test_several_tables_have_labels_of_their_own(self) -> None:
        tables = read(paper_tables([toy_validation(), small()], "paper", "latex"))
        assert [table.label for table in tables] == ["tab:dai-1", "tab:dai-2", "tab:dai-3"]

    def test_texts_are_a_table_of_their_own_in_csv(self) -> None:
        opened = Opened(sourced("llama"), twins(40, ("human", "llama")))
        assert paper_tables([opened], "dai-10", "csv").startswith("table,pair,Human-Written,LLM-Generated\ndai-10,")
        assert "dai-10" not in paper_tables([opened], "paper", "csv")

    @pytest.mark.parametrize("format", ["latex", "markdown", "csv"])
    @pytest.mark.parametrize("layout", ["paper", "dai-3"])
    def test_a_text_ends_with_a_line_end(self, layout: str, format: str) -> None:
        text = paper_tables([small()], layout, format)
        assert text.endswith("\n")
        assert not text.endswith("\n\n")


class TestRefused:
    @pytest.mark.parametrize(
        ("layout", "said"),
        [
            (
                "dai-2",
                "dai-2 shows each source ranked alone (a validation with rankers); the results given (1 audit) hold "
                "none: ranktilt validate DIR -r bm25 --json FILE makes one",
            ),
            (
                "dai-5",
                "dai-5 shows a mixed collection ranked by re-rankers (an audit); the results given (1 audit) hold "
                "none: ranktilt audit DIR -r bm25 -r 'bm25@100>>cross-encoder:minilm' --json FILE makes one",
            ),
            (
                "wang-3",
                "wang-3 shows pairs of documents, one of each group, judged by a pairwise ranker; the results given "
                "(1 audit) hold none: give a CSV file of its cells",
            ),
            (
                "dai-10",
                "dai-10 shows the texts of a collection (an audit by source, with its collection); the results given "
                "(1 audit) hold none: ranktilt audit DIR -r bm25 --json FILE makes one",
            ),
            (
                "dai-11",
                "dai-11 shows the texts of a second collection (an audit by source, with its collection); the results "
                "given (1 audit) hold fewer: dai-10 shows the first",
            ),
        ],
    )
    def test_a_table_that_no_result_holds_says_what_it_needs(self, layout: str, said: str) -> None:
        with pytest.raises(UserError) as caught:
            paper_tables([small()], layout, "latex")
        assert str(caught.value) == said

    def test_why_the_texts_are_missing_is_said(self) -> None:
        opened = Opened(small(), notes=("the collection X has changed since.",))
        with pytest.raises(UserError, match="with its collection\\); the collection X has changed since"):
            paper_tables([opened], "dai-10", "latex")

    def test_all_kinds_of_results_are_counted(self) -> None:
        results: list[Source] = [small(), uneven(), toy_validation(), toy_study(), Cells(())]
        with pytest.raises(UserError, match=r"\(2 audits, 1 validation, 1 study, 1 file of cells\)"):
            paper_tables(results, "wang-2", "latex")

    def test_nothing_at_all_says_what_makes_results(self) -> None:
        with pytest.raises(UserError, match=r"the results given \(nothing\) hold none of the papers' tables; such"):
            paper_tables([], "paper", "latex")

    @pytest.mark.parametrize(
        ("layout", "format", "rounding", "said"),
        [
            ("dia-3", "latex", "paper", "unknown layout 'dia-3'; did you mean 'dai-3'? (valid: paper, dai-1,"),
            ("dai-3", "tex", "paper", "unknown format 'tex'; did you mean 'latex'? (valid: latex, markdown, csv)"),
            ("dai-3", "latex", "half", "unknown rounding 'half' (valid: none, paper)"),
        ],
    )
    def test_unknown_names_are_refused(self, layout: str, format: str, rounding: str, said: str) -> None:
        with pytest.raises(UserError) as caught:
            paper_tables([small()], layout, format, rounding=rounding)
        assert str(caught.value).startswith(said)


class TestLeftOut:
    def test_rankers_that_have_a_table_of_their_own_are_named(self) -> None:
        audit = sourced("llama-2-7b-chat-tmp0.2", runs=RERANKED)
        (first,), (again,) = (paper_grids([audit], name) for name in ("dai-3", "dai-5"))
        assert "Without BM25+MiniLM: re-rankers have a table of their own (dai-5, dai-6)." in first.notes
        assert "Without TF-IDF: the table holds re-rankers and what they start from." in again.notes

    def test_nothing_is_said_where_all_are_shown(self) -> None:
        (grid,) = paper_grids([sourced("llama-2-7b-chat-tmp0.2", runs=("bm25", "tfidf"))], "dai-3")
        assert not [note for note in grid.notes if note.startswith("Without ")]

    def test_exposure_of_groups_needs_groups_that_are_not_sources(self) -> None:
        with pytest.raises(UserError) as told:
            paper_tables([sourced("llm")], "wang-1", "markdown")
        assert str(told.value) == (
            "wang-1 shows documents of several groups ranked by relevance (an audit with P@20); the results given "
            "(1 audit) hold none: ranktilt audit DIR -r bm25 -m P@20 --by gender --json FILE makes one"
        )
