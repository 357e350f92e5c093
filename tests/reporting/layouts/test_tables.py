"""The papers' tables of any results: which there are, where each cell stands, which pairs of texts
are chosen.
"""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ranktilt as rt
from ranktilt import Audit, Collection, Run, UserError, audit
from ranktilt.auditing.sources.sources_apart import take_apart
from ranktilt.reporting.document import Panels, Table
from ranktilt.reporting.layouts.cells import CellFile, read_cells
from ranktilt.reporting.layouts.layout import Layout, layouts
from ranktilt.reporting.layouts.selection import PaperCell
from ranktilt.reporting.layouts.tables import GivenResult, paper_document, paper_tables
from ranktilt.reporting.layouts.texts import PAIRS, chosen_texts, of_collections
from ranktilt.reporting.reload import LoadedAudit
from tests.explaining.checks import toy_check
from tests.refusals import refused
from tests.reporting.audits import (
    RERANKED,
    ordered,
    small,
    sourced,
    toy_source_audits,
    twins,
    uneven,
    with_run_names,
)
from tests.reporting.readers import read_tex
from tests.toy import collection_of, run_of

DAI = layouts()["dai-3"]
DATASETS, SYSTEMS, MEASURES = ("nq", "sci"), ("BM25", "ANCE"), ("AP@1", "nDCG@1")


def panels(results: Sequence[GivenResult], layout: str, **options: Any) -> list[Panels]:
    return [
        block
        for block in paper_document(results, layout, **options).blocks("latex")
        if isinstance(block, Panels)
    ]


def names(*results: GivenResult) -> list[str]:
    return [block.name for block in panels(results, "paper")]


def laid(cells: Sequence[PaperCell], name: str = "dai-3") -> Panels:
    (block,) = panels([CellFile(cells=tuple(cells))], name)
    return block


def rows(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def titles(table: Table) -> list[str]:
    return [column.title for column in table.columns]


def of(audit: Audit, folder: str) -> Audit:
    return replace(audit, spec={**audit.spec, "collection": {"path": folder}})


def mixed(**fixed: str) -> list[PaperCell]:
    """Two rankers, collections and measures; human 30, LLM 10 everywhere: Relative Δ is 100."""
    keys = {"generator": "llama", "temperature": "0.2", "collection": "mixed", **fixed}
    return [
        PaperCell(table="dai-3", dataset=d, system=s, measure=m, target=t, value=v, **keys)
        for d in DATASETS
        for m in MEASURES
        for s in SYSTEMS
        for t, v in (("llm", 10.0), ("human", 30.0))
    ]


def measured(name: str, **values: Sequence[str]) -> list[PaperCell]:
    return [
        PaperCell(table=name, system=s, measure=m, value=0.5)
        for s, measures in values.items()
        for m in measures
    ]


class TestArrangement:
    def test_rows_are_rankers_and_sides_and_columns_collections_and_measures(self) -> None:
        block = laid(mixed())
        (table,) = block.tables
        assert titles(table) == ["Model", "Target corpus", "NDCG@1", "MAP@1", "NDCG@1", "MAP@1"]
        assert table.spans == (("", 2), ("nq", 2), ("sci", 2))
        assert rows(table) == [
            ["BM25", "Human-Written", *["30.0"] * 4],
            ["", "LLM-Generated", *["10.0"] * 4],
            ["", "Relative Δ", *["100.0"] * 4],
            ["ANCE", "Human-Written", *["30.0"] * 4],
            ["", "LLM-Generated", *["10.0"] * 4],
            ["", "Relative Δ", *["100.0"] * 4],
        ]
        assert [row.rule for row in table.rows] == [False, False, False, True, False, False]
        assert block.caption == f"{DAI.title}. LLM text by llama, temperature 0.2."
        assert block.notes == ()

    def test_measures_are_in_paper_order_and_single_levels_in_caption(
        self,
    ) -> None:
        block = laid(measured("askari-2", s=("P@5", "RR@10", "AP@1000")), "askari-2")
        assert titles(block.tables[0])[1:] == ["MAP@1000", "MRR@10", "P@5"]
        assert block.tables[0].spans == ()
        assert block.remarks == ("The paper's table also has NDCG@10, not in these results.",)
        assert (
            laid(measured("askari-2", s=("AP@1000", "nDCG@10", "RR@10")), "askari-2").remarks == ()
        )
        cells = [
            PaperCell(table="dai-3", system="s", measure="P@5", target=t, value=10.0)
            for t in ("female", "male")
        ]
        assert laid(cells).caption == f"{DAI.title_of_groups}."
        block = laid([cell for cell in mixed() if cell.dataset == "sci"])
        assert (block.tables[0].spans, titles(block.tables[0])[2:]) == ((), ["NDCG@1", "MAP@1"])
        assert block.caption == f"{DAI.title}. sci, LLM text by llama, temperature 0.2."

    def test_varying_fields_make_panels_and_missing_ones_a_dash(
        self,
    ) -> None:
        block = laid([*mixed(temperature="0.2"), *mixed(temperature="1.0")])
        assert [table.caption for table in block.tables] == ["temperature 0.2", "temperature 1.0"]
        assert [rows(table)[0][:2] for table in block.tables] == [["BM25", "Human-Written"]] * 2
        assert not any(table.rows[0].rule for table in block.tables)
        assert block.caption.endswith("LLM text by llama.")
        block = laid([c for c in mixed() if (c.system, c.dataset) != ("ANCE", "sci")])
        assert rows(block.tables[0])[3][2:] == ["30.0", "30.0", "–", "–"]
        assert block.notes == ("–: not in these results.",)
        nothing = [PaperCell(table="askari-2", system="s", measure="AP@1000", value=float("nan"))]
        assert laid(nothing, "askari-2").notes == ("–: undefined.",)
        both = [*nothing, *measured("askari-2", t=("RR@10",))]
        assert laid(both, "askari-2").notes == ("–: not in these results or undefined.",)

    def test_two_results_with_one_cell_are_refused_by_its_name(self) -> None:
        where = (
            "dataset nq, llm llama, temperature 0.2, collection mixed, model ANCE, target "
            "corpus human, metric AP@1"
        )
        with pytest.raises(
            UserError,
            match=rf"^dai-3: two results hold the same cell \({where}\); leave one of them o",
        ):
            laid([*mixed(), mixed()[3]])


class TestWhich:
    def test_every_table_that_the_results_hold_in_the_papers_order(self) -> None:
        source_audit = sourced("llama", runs=RERANKED)
        assert names(toy_source_audits(), uneven(), source_audit, toy_check()) == [
            "dai-1",
            "dai-2",
            "dai-3",
            "dai-5",
            "dai-9",
            "wang-1",
        ]

    def test_collection_without_relevant_pair_lacks_only_text_table(self) -> None:
        # Each query's human and LLM text are two works: there are no twins to set side by side.
        apart = twins(10).docs.with_columns(origin="id")
        collection = Collection(apart, twins(10).queries, twins(10).qrels)
        scores = {f"q{n}": {f"{n}-human": 2.0, f"{n}-llm": 1.0} for n in range(10)}
        run = run_of(collection, scores, ranker="bm25")
        alone = LoadedAudit(audit(collection, run, ["nDCG@1"], resamples=100), collection, (run,))
        assert names(alone) == ["dai-3"]
        paired = LoadedAudit(sourced("llama"), twins(40, ("human", "llama")))
        (texts,) = (block for block in panels([alone, paired], "paper") if block.name == "dai-10")
        assert texts.caption.endswith("LLM text by llama.")

    def test_texts_come_with_a_collection(self) -> None:
        collection = twins(40, ("human", "llama"))
        source_audit = sourced("llama")
        assert names(LoadedAudit(source_audit)) == ["dai-3"]
        assert names(LoadedAudit(source_audit, collection)) == ["dai-3", "dai-10"]
        assert names(
            LoadedAudit(source_audit, collection), LoadedAudit(of(source_audit, "b"), collection)
        ) == [
            "dai-3",
            "dai-10",
            "dai-11",
        ]

    def test_audits_and_published_cells_share_tables_and_rankers_follow(
        self,
    ) -> None:
        (block,) = panels([of(small(), "/x/one"), of(small(), "/y/two")], "dai-3")
        assert block.tables[0].spans[1:] == (("one", 3), ("two", 3))
        (block,) = panels(
            [of(small(), "/x/one"), of(with_run_names(small(), ("c", "d")), "/x/one")], "dai-3"
        )
        assert [row[0] for row in rows(block.tables[0]) if row[0]] == [
            "first",
            "second@5",
            "c",
            "d",
        ]
        cell = PaperCell(
            table="dai-3",
            collection="mixed",
            system="ANCE",
            target="human",
            measure="nDCG@1",
            value=1.0,
        )
        (block,) = panels([CellFile(cells=(cell,)), of(small(), "/x/one")], "dai-3")
        assert [table.caption for table in block.tables] == ["", "LLM text by llm"]

    def test_models_have_their_tables_and_shared_queries_count_once(
        self,
    ) -> None:
        blocks = {block.name: block for block in panels([sourced("gpt-4", "llama")], "paper")}
        assert blocks["dai-4"].caption.endswith("LLM text by gpt-4.")
        assert [table.caption for table in blocks["dai-3"].tables] == [
            "LLM text by llama",
            "gpt-4 against llama",
        ]
        assert panels([sourced("gpt-4")], "dai-3")[0].caption.endswith("LLM text by gpt-4.")
        (block,) = panels([of(small(), "/x/one"), of(small(), "/x/one")], "askari-1")
        assert [rows(table) for table in block.tables] == [[["one", "3"]]]
        with pytest.raises(UserError, match="askari-1: two results hold the same cell"):
            paper_tables([of(small(), "/x/one"), of(sourced("llama"), "/y/one")], "askari-1", "csv")


class TestNumbers:
    def test_relative_delta_comes_from_printed_means_or_exact_ones(self) -> None:
        printed_rows = list(
            csv.DictReader(io.StringIO(paper_tables([toy_source_audits()], "dai-9", "csv")))
        )
        bm25 = [
            row["value"]
            for row in printed_rows
            if (row["system"], row["temperature"]) == ("BM25", "0.2")
        ]
        # 31.86 and 28.14 are printed as 31.9 and 28.1: 100·3.8/30 = 12.67; the audit says 12.4
        assert bm25 == ["31.9", "28.1", "12.7"]
        assert "BM25,relative_delta,nDCG@3,12.4," in paper_tables(
            [toy_source_audits()], "dai-9", "csv", rounding="none"
        )

    def test_groups_without_twins_and_rounded_deltas_are_said(
        self,
    ) -> None:
        note = (
            "Groups that are not twins: the neutral Relative Δ is what shuffled labels give, which "
            "need not be 0."
        )
        assert panels([uneven()], "dai-3")[0].notes[-1] == note
        assert note not in panels([small()], "dai-3")[0].notes
        note_text = "Relative Δ is computed from the means as printed here"
        assert [note for note in panels([small()], "dai-3")[0].notes if note.startswith(note_text)]
        rounded = replace(small(), spec={**small().spec, "rounding": "paper"})
        others = [*panels([rounded], "dai-3"), *panels([small()], "askari-2")]
        others += panels([small()], "dai-3", rounding="none")
        assert not [note for block in others for note in block.notes if note.startswith(note_text)]

    def test_csv_is_read_back_into_the_same_table(self, tmp_path: Path) -> None:
        text = paper_tables([toy_check(), toy_source_audits(), small()], "paper", "csv")
        (tmp_path / "cells.csv").write_text(text, encoding="utf-8")
        assert paper_tables([read_cells(tmp_path / "cells.csv")], "paper", "csv") == text


class TestFormats:
    def test_commands_and_files_are_named_and_csv_has_text_table(
        self,
    ) -> None:
        audit_of_three = replace(
            small(), spec={**small().spec, "command": "ranktilt audit X --json a.json"}
        )
        (table,) = read_tex(paper_tables([audit_of_three], "dai-3", "latex"))
        assert "Made by: ranktilt audit X --json a.json" in table.comments
        cells = CellFile(cells=tuple(measured("wang-2", s=("P@20",))), path="folder/cells.csv")
        assert "- Cells of folder/cells.csv\n" in paper_tables([cells], "paper", "markdown")
        opened = LoadedAudit(sourced("llama"), twins(40, ("human", "llama")))
        lines = paper_tables([opened], "dai-10", "csv").splitlines()
        assert lines[:2] == [
            "table,pair,Human-Written,LLM-Generated",
            "dai-10,Query: x q0,text 0,text 0",
        ]
        assert "dai-10" not in paper_tables([opened], "paper", "csv")


@pytest.mark.parametrize(
    ("results", "layout", "options", "message"),
    [
        (
            [small()],
            "dai-2",
            {},
            "dai-2 shows each source ranked alone (a check with rankers); the results given "
            "hold none: ranktilt check DIR -r bm25 --json FILE makes one",
        ),
        (
            [small()],
            "dai-11",
            {},
            "dai-11 shows the texts of a second collection (an audit by source, with its ",
        ),
        (
            [LoadedAudit(small(), notes=("the collection X has changed since.",))],
            "dai-10",
            {},
            "dai-10 shows the texts "
            "of a collection (an audit by source, with its collection); the collection X has "
            "changed since.",
        ),
        (
            [],
            "paper",
            {},
            "these results hold no table of a paper; name a layout (--layout) to see which command",
        ),
        (
            [small()],
            "dia-3",
            {},
            "unknown layout 'dia-3'; did you mean 'dai-3'? (valid: paper, dai-1,",
        ),
        (
            [small()],
            "dai-3",
            {"format": "tex"},
            "unknown format 'tex'; did you mean 'latex'? (valid: latex, markdown,",
        ),
        ([small()], "dai-3", {"rounding": "half"}, "unknown rounding 'half' (valid: none, paper)"),
    ],
)
def test_what_makes_no_table(
    results: list[GivenResult], layout: str, options: dict[str, Any], message: str
) -> None:
    with refused(f"{message}…"):
        paper_tables(results, layout, **{"format": "latex", **options})


def test_rankers_with_their_own_table_are_named() -> None:
    audit = sourced("llama-2-7b-chat-tmp0.2", runs=RERANKED)
    (first,), (again,) = (panels([audit], name) for name in ("dai-3", "dai-5"))
    assert (
        "Without BM25+MiniLM: re-rankers have a table of their own (dai-5, dai-6)." in first.notes
    )
    assert "Without TF-IDF: the table holds re-rankers and their first stages." in again.notes
    (block,) = panels([sourced("llama-2-7b-chat-tmp0.2", runs=("bm25", "tfidf"))], "dai-3")
    assert not [note for note in block.notes if note.startswith("Without ")]


TWO = ("human", "llm")


def bed() -> tuple[Collection, Audit, Run]:
    """Ten queries with a twin each: q3 has human text first, q7 LLM text, the others' twins are
    tied.
    """
    collection = twins(10)
    collection = Collection(
        collection.docs, collection.queries.with_columns(text=pl.col("id")), collection.qrels
    )
    scores = {
        f"q{n}": {f"{n}-human": 1.0 + (n == 3), f"{n}-llm": 1.0 + (n == 7)} for n in range(10)
    }
    run = run_of(collection, scores, ranker="bm25")
    return collection, audit(collection, run, ["nDCG@1"], resamples=100), run


def graded(first: int, second: int) -> tuple[Collection, Audit, Run]:
    docs = [
        {"id": f"{d}-{s}", "text": f"{s} text {d}", "source": s, "origin": f"{d}-human"}
        for d in "ab"
        for s in TWO
    ]
    grades = {"q": {f"{d}-{s}": g for d, g in (("a", first), ("b", second)) for s in TWO}}
    collection = collection_of(docs, {"q": "the question"}, grades)
    run = run_of(
        collection,
        {"q": {"b-human": 4.0, "a-human": 3.0, "a-llm": 2.0, "b-llm": 1.0}},
        ranker="bm25",
    )
    return collection, audit(collection, run, ["nDCG@1"], resamples=100), run


def chosen(collection: Collection, audit: Audit, *runs: Run, queries: Sequence[str] = ()) -> Panels:
    return chosen_texts([LoadedAudit(audit, collection, runs)], "dai-10", queries=queries)


def captions(block: Panels) -> list[str]:
    return [panel.caption for panel in block.tables]


def test_queries_that_contribute_most_or_named_ones_are_chosen() -> None:
    # Means are .5 each; q3 gives 200·1/(10·1) = 20 points, q7 takes them.
    collection, audited, run = bed()
    block = chosen(collection, audited)
    assert captions(block) == ["Query: q3", "Query: q7"]
    assert audited.tilts[0].value == pytest.approx(0.0)
    front = (
        f"Chosen: the {PAIRS} of 10 queries that contribute most to Relative Δ of nDCG@1, 1 "
        "ranker added up, "
    )
    assert block.notes == (
        f"{front}each with its relevant pair of the highest grade.",
        "Parts of Relative Δ in points, 1 ranker added up (+ favours human): q3 +20.0, q7 −20.0.",
    )
    block = chosen(collection, audited, queries=["q5", "q0", "q5"])
    assert captions(block) == ["Query: q5", "Query: q0"]
    assert not any(note.startswith("Chosen") for note in block.notes)
    # A ranker without a Relative Δ brings nothing.
    audited = audit(
        collection, [run, run_of(collection, {}, ranker="none")], ["nDCG@1"], resamples=100
    )
    assert (
        chosen(collection, audited)
        .notes[1]
        .endswith("2 rankers added up (+ favours human): q3 +20.0, q7 −20.0.")
    )


def test_a_query_without_a_relevant_pair_is_refused() -> None:
    collection, audited, _ = bed()
    for judged, queries, message in (
        (pl.lit(True), ["q33"], "unknown query 'q33'; did you mean 'q3'"),
        (
            pl.col("doc_id") != "4-llm",
            ["q4"],
            "query 'q4' has no pair of texts that are both relevant to it",
        ),
        (pl.col("doc_id") == "4-llm", [], "dai-10: no query has a relevant pair of human and llm"),
    ):
        judged_part = Collection(
            collection.docs, collection.queries, collection.qrels.filter(judged)
        )
        with pytest.raises(UserError, match=message):
            chosen(judged_part, audited, queries=queries)


def test_pair_of_highest_grade_counts_and_texts_stand_below() -> None:
    for grades, pair in (((1, 2), "b"), ((2, 1), "a"), ((1, 1), "a")):
        collection, graded_audit, _ = graded(*grades)
        (panel,) = chosen(collection, graded_audit).tables
        assert [cell.text for cell in panel.rows[0]] == [f"human text {pair}", f"llm text {pair}"]
    block = chosen(
        collection, replace(graded_audit, spec={**graded_audit.spec, "command": "ranktilt audit X"})
    )
    assert captions(block) == ["Query: the question"]
    assert [column.title for column in block.tables[0].columns] == [
        "Human-Written",
        "LLM-Generated",
    ]
    assert block.caption.endswith("to which both are relevant. LLM text by llm.")
    assert block.origins == ("Made by: ranktilt audit X",)


MODELS = ("gpt_1.0", "llama")


def versions(without: str = "") -> Collection:
    """Two queries of one relevant document each, in three versions; one version of q1's may be
    missing.
    """
    docs = [
        {"id": f"{d}-{s}", "text": f"{s} text {d}", "source": s, "origin": f"{d}-human"}
        for d in "ab"
        for s in ("human", *MODELS)
        if f"{d}-{s}" != without
    ]
    grades = {
        f"q{n}": {doc["id"]: 1 for doc in docs if doc["id"].startswith(d)}
        for n, d in enumerate("ab")
    }
    return collection_of(docs, {"q0": "first", "q1": "second"}, grades)


def with_versions(collection: Collection) -> LoadedAudit:
    """Human text first for q1, all tied for q0."""
    level = dict.fromkeys(collection.ids, 1.0)
    scores = {"q0": level, "q1": {**level, "b-human": 2.0}}
    run = run_of(collection, scores, ranker="bm25")
    return LoadedAudit(audit(collection, run, ["nDCG@1"], resamples=100), collection, (run,))


@pytest.mark.parametrize("apart", [False, True], ids=["one audit", "an audit each"])
def test_every_source_has_a_column_of_one_or_several_audits(apart: bool) -> None:
    with_all_sources = Collection(
        *(getattr(versions(), name) for name in ("docs", "queries", "qrels")), {"path": "bed"}
    )
    opened = [
        with_versions(source_part)
        for source_part in (
            take_apart(with_all_sources).collections if apart else [with_all_sources]
        )
    ]
    (together,) = of_collections(opened)
    assert len(of_collections([with_versions(versions()), *opened])) == 2
    block = chosen_texts(together, "dai-10", queries=["q1"])
    (panel,) = block.tables
    titles = ["Human-Written", "LLM-Generated, gpt_1.0", "LLM-Generated, llama"]
    assert [column.title for column in panel.columns] == titles
    assert [cell.text for cell in panel.rows[0]] == [
        "human text b",
        "gpt_1.0 text b",
        "llama text b",
    ]
    assert block.caption.endswith("bed, LLM text by gpt at temperature 1.0 and llama.")
    assert "1 ranker and 2 sources added up" in block.notes[0]


def test_missing_version_is_a_dash_and_texts_need_the_collection() -> None:
    opened = with_versions(versions(without="b-llama"))
    assert [panel.caption for panel in chosen_texts([opened], "dai-10").tables] == ["Query: first"]
    (panel,) = chosen_texts([opened], "dai-10", queries=["q1"]).tables
    assert [cell.text for cell in panel.rows[0]] == ["human text b", "gpt_1.0 text b", "–"]
    collection, bed_audit, _ = bed()
    others = [LoadedAudit(uneven(), twins(40, ("human",))), LoadedAudit(bed_audit)]
    assert of_collections([*others, LoadedAudit(bed_audit, collection)]) == [
        [LoadedAudit(bed_audit, collection)]
    ]
    collection = twins(3, ("gpt", "llama"))
    bed_audit = audit(
        collection, ordered(collection, [("gpt", "llama")] * 3, "bm25"), ["nDCG@1"], resamples=100
    )
    assert [column.title for column in chosen(collection, bed_audit).tables[0].columns] == [
        "gpt",
        "llama",
    ]


def test_relative_delta_has_paper_sign_whichever_side_is_first() -> None:
    audits = [
        rt.audit(
            rt.bundled(),
            rt.ranker("bm25").rank(rt.bundled()),
            ["nDCG@3"],
            pairs=[pair],
            resamples=100,
        )
        for pair in (("human", "claude"), ("claude", "human"))
    ]
    texts = [paper_tables([audit], "dai-3", "csv") for audit in audits]
    deltas = [re.findall(r"relative_delta.*", text) for text in texts]
    assert deltas[0] == deltas[1]
    assert deltas[0]


def test_layouts_are_checked_when_they_are_made() -> None:
    parts = {"name": "x-1", "source": "X", "title": "T"}
    cases = {
        "unknown key of layout x-1 'ranker' (valid: dataset, …": {"rows": ("ranker",)},
        "layout x-1: expected one key or two for columns, got 0": {"columns": ()},
        "unknown derived cells of layout x-1 'relativ_delta'; did you mean 'relative_delta'?…": {
            "derived": "relativ_delta"
        },
    }
    for message, fields in cases.items():
        with refused(message):
            Layout(**parts, **fields)  # type: ignore[arg-type]
