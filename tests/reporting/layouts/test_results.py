"""Cells out of results: whose numbers they are, and at which table they are at home."""

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import Audit, Collection, audit
from ranktilt.auditing.pairwise.result import PairOutcome, PairwiseAudit, Share
from ranktilt.reporting.layouts.cells import read_cells
from ranktilt.reporting.layouts.results import cells_of, tables_of
from ranktilt.reporting.layouts.selection import PaperCell
from ranktilt.reporting.layouts.tables import paper_tables
from ranktilt.reporting.output import table
from ranktilt.training.study_result import TrainingStudy
from tests.explaining.checks import toy_check, toy_effectiveness
from tests.reporting.audits import (
    RERANKED,
    ordered,
    small,
    sourced,
    three,
    timeless_source_audits,
    toy_source_audits,
    twins,
    uneven,
    with_run_names,
)
from tests.reporting.results import beside, result
from tests.toy import collection_of, run_of


def by_key(cells: Sequence[PaperCell], *keys: str) -> dict[tuple[str, ...], float]:
    """Values by some of their keys, which must tell them apart."""
    values = {tuple(getattr(cell, key) for key in keys): cell.value for cell in cells}
    assert len(values) == len(cells)
    return values


def asked_of_groups(runs: Sequence[str], measures: list[str]) -> Audit:
    """An audit by group of rankers that order four documents differently."""
    docs = [
        {"id": f"d{n}", "text": "x", "source": "s", "origin": f"d{n}", "kind": "ab"[n % 2]}
        for n in range(4)
    ]
    collection = collection_of(docs, {"q": "x"}, {"q": {"d0": 1, "d1": 1}})
    shifted_runs = [
        run_of(collection, {"q": {f"d{(n + shift) % 4}": 4.0 - n for n in range(4)}}, ranker=name)
        for shift, name in enumerate(runs)
    ]
    return audit(
        collection, shifted_runs, measures, by="kind", pairs=[("b", "rest")], resamples=100
    )


class TestAudit:
    def test_both_sides_means_in_percent_with_what_folder_and_source_say(self) -> None:
        audit_of_three = small()
        cells = cells_of(audit_of_three, "dai-3")
        # first: human text is first for two of three queries
        assert by_key(cells, "system", "measure", "target")[
            "first", "nDCG@1", "human"
        ] == pytest.approx(200 / 3)
        assert by_key(cells, "system", "measure", "target")[
            "first", "nDCG@1", "llm"
        ] == pytest.approx(100 / 3)
        assert len(cells) == 2 * 3 * 2
        assert {(c.collection, c.generator, c.temperature, c.condition) for c in cells} == {
            ("mixed", "llm", "", "")
        }
        audit_of_three = with_run_names(small(), ("a", "b"), collection={"path": "/data/nfcorpus"})
        assert {cell.dataset for cell in cells_of(audit_of_three, "dai-3")} == {"nfcorpus"}
        cells = cells_of(sourced("llama-tmp0.7"), "dai-3")
        assert {(c.generator, c.temperature) for c in cells} == {("llama", "0.7")}

    @pytest.mark.parametrize(
        ("runs", "table", "systems"),
        [
            (RERANKED, "dai-3", {"BM25", "TF-IDF"}),
            (RERANKED, "dai-5", {"BM25", "BM25+MiniLM"}),
            (RERANKED, "dai-9", {"BM25", "TF-IDF", "BM25+MiniLM"}),
            (("bm25",), "dai-5", set()),
            (RERANKED[2:], "dai-3", {"BM25+MiniLM"}),  # alone they stand in the main table
        ],
    )
    def test_rankers_of_one_stage_and_re_rankers(
        self, runs: tuple[str, ...], table: str, systems: set[str]
    ) -> None:
        assert {c.system for c in cells_of(sourced("llama", runs=runs), table)} == systems

    def test_groups_not_human_keep_names_and_pairs_have_cells(
        self,
    ) -> None:
        cells = cells_of(uneven(), "dai-3")
        assert {(c.target, c.generator, c.condition) for c in cells} == {
            (side, "", "a against b") for side in "ab"
        }
        cells = cells_of(three(), "dai-3")
        assert {(c.generator, c.condition) for c in cells} == {
            ("llama", ""),
            ("gpt", ""),
            ("", "gpt against llama"),
        }
        assert len(by_key(cells, "generator", "target")) == 6

    def test_what_ranker_was_asked_for_is_a_condition(self) -> None:
        """Rankers of one model that differ in prompt and attribute are one row of the table."""
        model = "replay:c.trec>>listwise:openai:gpt"
        runs = (
            "bm25",
            f"{model}(window=5,step=1)",
            f"{model}(window=5,step=1,prompt=sensitive,attribute=female)",
        )
        group_audit = asked_of_groups(
            runs, ["P@2", "ExposureRatio@4", "ExposureRatio(aggregate=means)"]
        )
        cells = by_key(cells_of(group_audit, "wang-1"), "system", "condition", "measure")
        listwise = "listwise:openai:gpt(window=5,step=1)"
        rows = [("BM25", "neutral"), (listwise, "neutral"), (listwise, "female")]
        measures = ["P@2", "ExposureRatio", "ExposureRatio(aggregate=means)"]
        assert set(cells) == {(*row, measure) for row in rows for measure in measures}
        ratios = [e.value for e in group_audit.card if e.name == "ExposureRatio@4"]
        assert [cells[(*row, "ExposureRatio")] for row in rows] == ratios
        # Window and step are the condition of a listwise ranker.
        group_audit = asked_of_groups(
            ("bm25", model, f"{model}(window=10,step=3)"), ["P@2", "ExposureRatio"]
        )
        cells = by_key(cells_of(group_audit, "wang-2"), "system", "condition", "measure")
        name = "listwise:openai:gpt"
        assert {key[:2] for key in cells} == {
            (name, f"neutral window={w} step={s}") for w, s in ((20, 10), (10, 3))
        }
        assert {key[2] for key in cells} == {"P@2", "ExposureRatio"}

    def test_tables_without_groups_hold_all_means_and_domains_are_groups(
        self,
    ) -> None:
        audit_of_few = uneven()
        overall = audit_of_few.values[0, :, 0].mean(axis=1).tolist()
        for layout, condition in (("wang-1", "neutral"), ("askari-2", ""), ("askari-5", "")):
            cells = cells_of(audit_of_few, layout)
            assert [c.value for c in cells] == pytest.approx(overall)
            assert {c.condition for c in cells} == {condition}
        domains = by_key(cells_of(audit_of_few, "askari-3"), "dataset", "measure")
        assert domains["a", "AP"] == pytest.approx(
            np.nanmean(audit_of_few.values[0, 1, audit_of_few.groups.index("a")])
        )
        assert {name for name, _ in domains} == {"all", "a", "b"}

    def test_queries_are_counted_by_split_and_group(self) -> None:
        plain = with_run_names(small(), ("a", "b"), collection={"path": "/x/toy", "split": "test"})
        assert [(c.dataset, c.measure, c.value) for c in cells_of(plain, "askari-1")] == [
            ("toy", "queries test", 3.0)
        ]
        grouped = by_key(cells_of(uneven(), "askari-1"), "dataset", "measure")
        assert grouped == {("all", "queries"): 40.0, ("a", "queries"): 40.0, ("b", "queries"): 40.0}

        collection = twins(4)
        part, complete = ({f"q{n}": {f"{n}-human": 1.0} for n in range(most)} for most in (1, 4))
        runs = [
            run_of(collection, part, ranker="part"),
            run_of(collection, complete, ranker="whole"),
        ]
        result = audit(collection, runs, ["nDCG@1"], missing="exclude", resamples=100)
        assert [cell.value for cell in cells_of(result, "askari-1")] == [4.0]

    def test_result_holds_only_its_own_and_no_means_without_judgments(
        self,
    ) -> None:
        for result_without, layout in (
            (small(), "dai-1"),
            (small(), "wang-2"),
            (small(), "dai-10"),
            (toy_check(), "dai-3"),
        ):
            assert cells_of(result_without, layout) == []
        collection = twins(40)
        run = ordered(collection, [("human", "llm")] * 40, "bm25")
        bare = Collection(collection.docs, collection.queries, collection.qrels.clear())
        result = audit(bare, run, card=True, resamples=100)
        assert cells_of(result, "dai-3") == cells_of(result, "askari-2") == tables_of(result) == []


class TestCheck:
    def test_sides_are_alone_in_percent_or_as_own_collection(self) -> None:
        cells = by_key(cells_of(toy_check(), "dai-2"), "system", "target")
        assert cells["dense:minilm", "human"] == pytest.approx(31.6)
        assert cells["dense:minilm", "llm"] == pytest.approx(38.0)
        assert len(cells) == 2 * len(toy_effectiveness())

        cells_by_key = by_key(cells_of(toy_check(), "askari-4"), "dataset", "system")
        assert cells_by_key["toy (human)", "bm25"] == pytest.approx(0.322)
        assert cells_by_key["toy (llm)", "bm25"] == pytest.approx(0.318)

    def test_statistics_of_every_source_and_judged_queries(self) -> None:
        cells_by_key = by_key(cells_of(toy_check(), "dai-1"), "measure", "target")
        assert cells_by_key == {
            ("queries", ""): 300.0,
            ("query words", ""): 12.38,
            ("documents", "human"): 40.0,
            ("document words", "human"): 20.5,
            ("relevant per query", "human"): 1.25,
            ("documents", "llm"): 40.0,
            ("document words", "llm"): 21.5,
            ("relevant per query", "llm"): 1.25,
        }
        assert [(c.measure, c.value) for c in cells_of(toy_check(), "askari-1")] == [
            ("queries test", 300.0)
        ]


class TestSourceAudits:
    def test_every_temperature_has_its_cells(self) -> None:
        cells = cells_of(toy_source_audits(), "dai-9")
        cells_by_key = by_key(cells, "temperature", "system", "target")
        assert cells_by_key["0.6", "BM25", "human"] == pytest.approx(30 * (1 + 6.1 / 200))
        assert cells_by_key["0.6", "BM25", "llm"] == pytest.approx(30 * (1 - 6.1 / 200))
        assert {c.generator for c in cells} == {"llama"}
        assert {t for t, _, _ in cells_by_key} == {"0.2", "0.6", "1.0"}
        assert {c.temperature for c in cells_of(timeless_source_audits(), "dai-9")} == {""}


class TestHome:
    @pytest.mark.parametrize(
        ("result", "tables"),
        [
            (sourced("llama-tmp0.2"), ["dai-3"]),
            (sourced("gpt-4", runs=RERANKED), ["dai-4", "dai-6"]),
            (sourced("llama-tmp1", runs=RERANKED), ["dai-9"]),
            (sourced("gpt-4", "llama"), ["dai-3", "dai-4"]),
            (uneven(), ["wang-1"]),
            (replace(uneven(), spec={**uneven().spec, "by": None}), ["askari-2"]),
            (toy_check(("human", "gpt-4")), ["dai-1", "dai-7"]),
            (toy_check(("human", "llama-tmp1.0")), ["dai-1", "dai-8"]),
            (replace(toy_check(), effectiveness=()), ["dai-1"]),
        ],
    )
    def test_a_result_has_the_tables_of_its_kind(self, result: Any, tables: list[str]) -> None:
        assert tables_of(result) == tables


def test_means_are_those_of_the_queries_that_count_for_relative_delta() -> None:
    collection = twins(40)
    half = collection.qrels.filter(
        pl.col("doc_id").str.ends_with("human") | (pl.col("query_id") < "q3")
    )
    collection = Collection(collection.docs, collection.queries, half)
    result = audit(
        collection, ordered(collection, [("human", "llm")] * 40, "bm25"), ["nDCG@1"], resamples=100
    )
    cells = by_key(cells_of(result, "dai-3"), "target")
    assert [cells["human",], cells["llm",]] == [
        100 * result.tilts[0].mean_a,
        100 * result.tilts[0].mean_b,
    ]


def test_pairs_of_two_groups_fill_the_table_of_pairs() -> None:
    half, none = (
        Share(value=0.5, low=0.4, high=0.6),
        Share(value=float("nan"), low=float("nan"), high=float("nan")),
    )
    shares = {
        "inconsistent": half,
        "unparsed": half,
        "first": half,
        "error": 0.1,
        "effective_n": 9.0,
        "p": 1.0,
    }
    decided = PairOutcome(
        kind="relevant",
        queries=9,
        pairs=20,
        decided=10,
        protected=Share(value=0.3, low=0.2, high=0.4),
        unprotected=Share(value=0.2, low=0.1, high=0.3),
        preference=Share(value=0.6, low=0.5, high=0.7),
        **shares,
    )
    zero = Share(value=0.0, low=0.0, high=0.0)
    nothing = replace(
        decided, kind="irrelevant", decided=0, protected=zero, unprotected=zero, preference=none
    )
    pairwise_audit = PairwiseAudit(
        spec={**beside().spec, "path": "gender"},
        model="a model",
        protected="female",
        unprotected="male",
        outcomes=(decided, nothing),
    )
    assert tables_of(pairwise_audit) == ["wang-3"]
    cells = cells_of(pairwise_audit, "wang-3")
    assert {(c.condition, c.measure): round(c.value, 9) for c in cells} == {
        ("relevant", "unprotected share"): 0.2,
        ("relevant", "protected share"): 0.3,
        ("relevant", "PairwiseRatio"): 1.5,
        ("irrelevant", "unprotected share"): 0.0,
        ("irrelevant", "protected share"): 0.0,
    }
    assert {(c.system, c.dataset) for c in cells} == {("a model", "gender")}
    assert cells_of(pairwise_audit, "wang-1") == []


STUDY: TrainingStudy = result("training study")
MINI = ("mini trained on human", "mini trained on llm")


def test_page_and_tables_say_that_a_body_was_tuned_before() -> None:
    tuned = replace(
        STUDY, rankers=tuple(replace(ranker, tuned="retrieval") for ranker in STUDY.rankers)
    )
    for number, there in ((1, False), (2, True), (3, True), (4, False), (5, True)):
        printed = paper_tables([tuned], f"askari-{number}", "markdown")
        assert ("Body already tuned for retrieval: mini." in printed) is there
    assert "\nBody already tuned for retrieval: mini.\n" in table(tuned)
    assert "already tuned" not in table(STUDY)


def test_the_papers_tables() -> None:
    assert tables_of(STUDY) == [*(f"askari-{n}" for n in range(1, 6)), "askari-overlap"]
    counts = {(cell.dataset, cell.measure): cell.value for cell in cells_of(STUDY, "askari-1")}
    assert counts == {
        (group, f"queries {split}"): value
        for split in ("train", "validation")
        for group, value in (("all", 40), ("art", 20), ("law", 20))
    }
    cells = {
        (cell.dataset, cell.system, cell.measure): cell.value
        for cell in cells_of(STUDY, "askari-2")
    }
    assert cells["qa, test", MINI[1], "AP@1000"] == 0.5
    assert {name for name, _, _ in cells} == {"qa, test", "nf"}
    three = {(cell.dataset, cell.system) for cell in cells_of(STUDY, "askari-3")}
    assert three == {(group, system) for group in ("all", "art", "law") for system in MINI}
    four = {(cell.system, cell.measure) for cell in cells_of(STUDY, "askari-4")}
    assert four == {("BM25", measure) for measure in ("AP@1000", "nDCG@10", "R@1000")}
    five = {(cell.dataset, cell.system) for cell in cells_of(STUDY, "askari-5")}
    assert five == {("qa, train", MINI[1])}
    assert "| mini trained on llm | .500 | .631 | .500 |" in paper_tables(
        [STUDY], "askari-2", "markdown"
    )
    assert cells_of(STUDY, "dai-3") == []


def test_table_2_marks_what_is_better_than_all_others() -> None:
    text = paper_tables([STUDY], "askari-2", "markdown")
    assert "| mini trained on human | 1.000† | 1.000† | 1.000† |" in text
    assert text.count("1.000†") == 8  # three measures on one collection, five on the other
    assert text.count("†") == 9
    assert (
        "- † significantly better than every other ranker and BM25 on the collection: paired t test"
        in text
    )
    assert r"1.000$^\dagger$ & 1.000$^\dagger$" in paper_tables([STUDY], "askari-2", "latex")
    rows = list(csv.DictReader(io.StringIO(paper_tables([STUDY], "askari-2", "csv"))))
    assert {(row["system"], row["value"]) for row in rows if row["mark"] == "†"} == {
        (MINI[0], "1.000")
    }
    assert all(
        "†" not in paper_tables([STUDY], f"askari-{number}", "markdown") for number in (1, 3, 4, 5)
    )


def test_marks_of_a_file_are_printed(tmp_path: Path) -> None:
    cells = (
        "table,dataset,system,measure,value,mark\naskari-2,d,BM25,AP@1000,.377,\n"
        "askari-2,d,s,AP@1000,.4,†\n"
    )
    (tmp_path / "cells.csv").write_text(cells, encoding="utf-8")
    printed = paper_tables([read_cells(tmp_path / "cells.csv")], "askari-2", "markdown")
    assert "| BM25 | .377 |" in printed
    assert "| s | .400† |" in printed


def test_the_headings_of_splits_are_the_papers() -> None:
    assert "| Domain | Train | Validation |" in paper_tables([STUDY], "askari-1", "markdown")
