"""Pairs of texts chosen by a rule that the table states."""

from dataclasses import replace

import polars as pl
import pytest

from ranktilt import Audit, Collection, Run, UserError, audit
from ranktilt.reporting.papers.texts import PAIRS, WORDS, chosen_pairs, has_texts
from ranktilt.reporting.reload import Opened
from tests.reporting.audits import ordered, twins, uneven
from tests.toy import collection_of, run_of

TWO = ("human", "llm")


def bed() -> tuple[Collection, Audit, Run]:
    """Ten queries with a twin each: q3 has human text first, q7 LLM text, the others' twins are tied."""
    collection = twins(10)
    scores = {f"q{n}": {f"{n}-human": 1.0 + (n == 3), f"{n}-llm": 1.0 + (n == 7)} for n in range(10)}
    run = run_of(collection, scores, ranker="bm25")
    return collection, audit(collection, run, ["nDCG@1"], resamples=100), run


def questions(collection: Collection, audited: Audit, *names: str, runs: tuple[Run, ...] = ()) -> list[str]:
    """Titles of the chosen pairs."""
    return [panel.caption for panel in chosen_pairs(Opened(audited, collection, runs), "dai-10", queries=names).tables]


def titled(collection: Collection) -> Collection:
    """The same collection with each query's id as its text."""
    return Collection(collection.docs, collection.queries.with_columns(text=pl.col("id")), collection.qrels)


class TestQueries:
    def test_those_that_contribute_most_are_chosen(self) -> None:
        collection, found, _ = bed()
        assert questions(titled(collection), found) == ["Query: q3", "Query: q7"]

    def test_their_parts_are_those_of_relative_delta(self) -> None:
        # Means are .5 each; q3 gives 200·1/(10·1) = 20 points, q7 takes them.
        collection, found, _ = bed()
        notes = chosen_pairs(Opened(found, collection), "dai-10").notes
        assert notes[1] == "Parts of Relative Δ in points, 1 ranker added up (+ favours human): q3 +20.0, q7 −20.0."
        assert found.tilts[0].value == pytest.approx(0.0)

    def test_a_ranker_without_a_relative_delta_brings_nothing(self) -> None:
        collection, _, run = bed()
        found = audit(collection, [run, run_of(collection, {}, ranker="none")], ["nDCG@1"], resamples=100)
        notes = chosen_pairs(Opened(found, collection), "dai-10").notes
        assert notes[1].endswith("2 rankers added up (+ favours human): q3 +20.0, q7 −20.0.")

    def test_the_rule_is_stated(self) -> None:
        collection, found, run = bed()
        without, with_run = (chosen_pairs(Opened(found, collection, runs), "dai-10").notes[0] for runs in ((), (run,)))
        front = f"Chosen: of 10 queries the {PAIRS} that contribute most to Relative Δ of nDCG@1, 1 ranker added up; "
        assert without == f"{front}of each the relevant pair of the highest grade."
        assert with_run == f"{front}of each the relevant pair whose documents stand furthest apart in the rankings."

    def test_queries_can_be_named(self) -> None:
        collection, found, _ = bed()
        block = chosen_pairs(Opened(found, titled(collection)), "dai-10", queries=["q5", "q0", "q5"])
        assert [panel.caption for panel in block.tables] == ["Query: q5", "Query: q0"]
        assert not any(note.startswith("Chosen") for note in block.notes)

    def test_an_unknown_query_is_named_with_the_nearest(self) -> None:
        collection, found, _ = bed()
        with pytest.raises(UserError, match="unknown query 'q33'; did you mean 'q3'"):
            questions(collection, found, "q33")

    def test_a_query_without_a_relevant_pair_is_refused(self) -> None:
        collection, found, _ = bed()
        fewer = Collection(collection.docs, collection.queries, collection.qrels.filter(pl.col("doc_id") != "4-llm"))
        with pytest.raises(UserError, match="query 'q4' has no pair of texts that are both relevant to it"):
            questions(fewer, found, "q4")

    def test_no_relevant_pair_at_all_is_refused(self) -> None:
        collection, found, _ = bed()
        lone = Collection(collection.docs, collection.queries, collection.qrels.filter(pl.col("doc_id") == "4-llm"))
        with pytest.raises(UserError, match="dai-10: no query has a relevant pair of human and llm"):
            questions(lone, found)


class TestPair:
    def graded(self, first: int, second: int) -> tuple[Collection, Audit, Run]:
        """One query, two relevant pairs; the second pair is set further apart."""
        docs = [
            {"id": f"{d}-{s}", "text": f"{s} text {d}", "source": s, "origin": f"{d}-human"} for d in "ab" for s in TWO
        ]
        grades = {"q": {f"{d}-{s}": g for d, g in (("a", first), ("b", second)) for s in TWO}}
        collection = collection_of(docs, {"q": "the question"}, grades)
        run = run_of(collection, {"q": {"b-human": 4.0, "a-human": 3.0, "a-llm": 2.0, "b-llm": 1.0}}, ranker="bm25")
        return collection, audit(collection, run, ["nDCG@1"], resamples=100), run

    @pytest.mark.parametrize(("grades", "pair"), [((1, 2), "b"), ((2, 1), "a"), ((1, 1), "a")])
    def test_without_runs_the_highest_grade_counts(self, grades: tuple[int, int], pair: str) -> None:
        collection, found, _ = self.graded(*grades)
        (panel,) = chosen_pairs(Opened(found, collection), "dai-10").tables
        assert tuple(cell.text for cell in panel.rows[0]) == (f"human text {pair}", f"llm text {pair}")

    def test_with_runs_the_pair_furthest_apart_counts(self) -> None:
        collection, found, run = self.graded(2, 1)
        (panel,) = chosen_pairs(Opened(found, collection, (run,)), "dai-10").tables
        assert tuple(cell.text for cell in panel.rows[0]) == ("human text b", "llm text b")

    def test_a_run_that_found_nothing_for_the_query_sets_no_pair_apart(self) -> None:
        collection, found, run = self.graded(1, 2)
        silent = replace(run, queries=("another",))
        (panel,) = chosen_pairs(Opened(found, collection, (silent,)), "dai-10").tables
        assert tuple(cell.text for cell in panel.rows[0]) == ("human text b", "llm text b")

    def test_the_table_is_two_texts_below_their_query(self) -> None:
        collection, found, _ = self.graded(1, 1)
        block = chosen_pairs(
            Opened(replace(found, spec={**found.spec, "command": "ranktilt audit X"}), collection), "dai-10"
        )
        assert block.tables[0].caption == "Query: the question"
        assert [column.title for column in block.tables[0].columns] == ["Human-Written", "LLM-Generated"]
        assert block.caption.endswith("to which both are relevant. LLM text by llm.")
        assert block.made == ("Made by: ranktilt audit X",)

    def test_a_long_text_is_cut_and_the_table_says_so(self) -> None:
        collection, found, _ = self.graded(1, 1)
        words = [f"w{n}" for n in range(WORDS + 1)]
        docs = collection.docs.with_columns(text=pl.lit(" ".join(words)))
        block = chosen_pairs(Opened(found, Collection(docs, collection.queries, collection.qrels)), "dai-10")
        assert block.tables[0].rows[0][0].text == " ".join(words[:WORDS]) + " …"
        assert block.notes[-1] == f"Texts are cut after {WORDS} words."


class TestHasTexts:
    def test_an_audit_by_source_with_its_collection_has(self) -> None:
        collection, found, _ = bed()
        assert has_texts(Opened(found, collection))

    def test_without_its_collection_it_has_none(self) -> None:
        assert not has_texts(Opened(bed()[1]))
        with pytest.raises(UserError, match="dai-10 needs the texts of the collection"):
            chosen_pairs(Opened(bed()[1]), "dai-10")

    def test_an_audit_by_another_column_has_none(self) -> None:
        assert not has_texts(Opened(uneven(), twins(40, ("human",))))

    def test_two_sources_of_llms_are_called_by_their_names(self) -> None:
        collection = twins(3, ("gpt", "llama"))
        run = ordered(collection, [("gpt", "llama")] * 3, "bm25")
        found = audit(collection, run, ["nDCG@1"], resamples=100)
        (panel, *_) = chosen_pairs(Opened(found, collection), "dai-10").tables
        assert [column.title for column in panel.columns] == ["gpt", "llama"]
