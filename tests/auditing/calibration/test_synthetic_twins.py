"""Collections made for calibration: copies under every id scheme, samples under neutral names."""

import polars as pl
import pytest

from ranktilt.auditing.calibration.synthetic_twins import (
    COPY,
    SCHEMES,
    THINNED,
    Scheme,
    first_source,
    sampled,
    swapped,
    with_synthetic_twins,
)
from ranktilt.collection import Collection
from tests.refusals import refused
from tests.toy import QRELS, TEXTS, collection_of, toy


def sides(copies: Collection) -> list[tuple[str, str]]:
    """Ids of each original and of its copy."""
    one, two = sorted(copies.sources, key=lambda name: name.startswith(COPY))
    return list(copies.pairs(one, two).select("a", "b").iter_rows())


def large(pairs: int, queries: int, relevant: int = 2) -> Collection:
    """Pairs of which each query has so many relevant ones, from the front."""
    docs = [
        {"id": f"{n}-{source}", "text": f"{source} {n}", "source": source, "origin": f"{n}"}
        for n in range(pairs)
        for source in ("llm", "human")
    ]
    grades = {
        f"q{q}": {f"{q * relevant + r}-{s}": 1 for r in range(relevant) for s in ("llm", "human")}
        for q in range(queries)
    }
    return collection_of(docs, dict.fromkeys(grades, "text"), grades)


class TestWithCopies:
    @pytest.mark.parametrize("one", SCHEMES, ids=lambda s: s.name)
    def test_every_original_has_one_copy_byte_for_byte_with_its_judgments(self, one: Scheme) -> None:
        copies = with_synthetic_twins(toy(), one, seed=0)
        assert set(copies.sources) == {"human", COPY}
        found = {name: (title, text) for name, title, text in copies.docs.select("id", "title", "text").iter_rows()}
        assert len(found) == 6
        assert len(sides(copies)) == 3
        assert all(found[a] == found[b] for a, b in sides(copies))
        bare = {text: name for name, text in TEXTS["human"].items()}
        source = dict(copies.docs.select("id", "source").iter_rows())
        for side in ("human", COPY):
            grades: dict[str, dict[str, int]] = {}
            for query, doc, grade in copies.qrels.iter_rows():
                if source[doc] == side:
                    grades.setdefault(query, {})[bare[found[doc][1]]] = grade
            assert grades == QRELS

    def test_ids_and_rows_are_as_the_scheme_says(self) -> None:
        made = {s.name: with_synthetic_twins(toy(), s, seed=0) for s in SCHEMES}
        assert {name: sides(copies)[0] for name, copies in made.items() if name != "hashed"} == {
            "suffixes": ("d1-human-human", "d1-human-copy"),
            "misleading suffixes": ("d1-human-copy", "d1-human-human"),
            "originals first": ("a-d1-human", "z-d1-human"),
            "copies first": ("z-d1-human", "a-d1-human"),
            "numbers": ("0", "1"),
        }
        hashed = sides(made["hashed"])[0]
        assert not {"d1", "human", "copy"} & set("-".join(hashed).split("-"))
        assert [len(name) for name in hashed] == [16, 16]
        assert {a < b for a, b in sides(with_synthetic_twins(large(30, 1), SCHEMES[-1], seed=0))} == {True, False}
        order = {name: made[name].docs["source"].to_list() for name in ("suffixes", "copies first", "originals first")}
        assert order == {
            "suffixes": ["human"] * 3 + [COPY] * 3,
            "copies first": [COPY] * 3 + ["human"] * 3,
            "originals first": ["human", COPY] * 3,
        }


class TestSampled:
    @pytest.mark.parametrize(("queries", "relevant"), [(20, 9), (5, 9), (2, 4)])
    def test_no_more_is_kept_than_asked_for_three_quarters_of_it_relevant_at_most(
        self, queries: int, relevant: int
    ) -> None:
        found = sampled(large(100, 20), pairs=12, queries=queries, seed=0)
        assert (found.docs.height, found.docs["origin"].n_unique(), found.queries.height) == (24, 12, queries)
        assert set(found.qrels["query_id"]) <= set(found.queries["id"])
        judged = found.docs.filter(pl.col("id").is_in(found.qrels["doc_id"].implode()))
        assert judged["origin"].n_unique() == relevant
        nothing = Collection(toy().docs, toy().queries, toy().qrels.with_columns(grade=pl.lit(0)))
        with refused("no document is judged relevant to any query"):
            sampled(nothing, pairs=9, queries=9, seed=0)

    def test_a_small_collection_is_kept_whole_under_neutral_ids(self) -> None:
        found = sampled(toy(), pairs=10, queries=10, seed=0)
        assert found.docs["id"].to_list() == [f"d{n}" for n in range(6)]
        assert found.docs["origin"].to_list() == ["o0", "o1", "o2"] * 2
        assert found.docs["text"].to_list() == toy().docs["text"].to_list()
        renamed = dict(zip(toy().docs["id"], found.docs["id"], strict=True))
        expected = [(q, renamed[d], g) for q, d, g in toy().qrels.iter_rows()]
        assert list(found.qrels.iter_rows()) == expected

    def test_human_text_comes_first_and_further_sources_are_left_out(self) -> None:
        more = (
            toy()
            .docs.filter(pl.col("source") == "llm")
            .with_columns(pl.format("x{}", "id").alias("id"), source=pl.lit("a third"))
        )
        qrels = pl.concat([toy().qrels, toy().qrels.with_columns(pl.format("x{}", "doc_id").alias("doc_id"))])
        qrels = qrels.filter(pl.col("doc_id").is_in(pl.concat([toy().docs["id"], more["id"]]).implode()))
        found = sampled(Collection(pl.concat([more, toy().docs]), toy().queries, qrels), pairs=9, queries=9, seed=0)
        assert set(found.sources) == {"human", "a third"}
        assert first_source(found) == "human"

    def test_a_lone_source_stands_beside_itself_without_every_third_word(self) -> None:
        human = toy().docs.filter(pl.col("source") == "human")
        qrels = toy().qrels.filter(pl.col("doc_id").is_in(human["id"].implode()))
        found = sampled(Collection(human, toy().queries, qrels), pairs=9, queries=9, seed=0)
        one, two = found.pairs("human", f"human, {THINNED}").select("a", "b").row(0)
        text = dict(found.docs.select("id", "text").iter_rows())
        assert text[one] == "red apples grow on old trees in autumn"
        assert text[two] == "red apples on old in autumn"
        grades = {(q, d): g for q, d, g in found.qrels.iter_rows()}
        assert grades["q1", one] == grades["q1", two] == 2


def test_swapping_changes_names_and_nothing_else() -> None:
    before, after = toy(), swapped(toy())
    assert after.docs["source"].to_list() == ["llm"] * 3 + ["human"] * 3
    assert after.docs.drop("source").equals(before.docs.drop("source"))
    assert swapped(after) == before
