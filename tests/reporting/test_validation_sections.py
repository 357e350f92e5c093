"""The sections of a validation's page, before any HTML."""

from dataclasses import replace

import numpy as np
import pytest

from ranktilt.probes.distribution import Distribution
from ranktilt.probes.overlap import Overlap
from ranktilt.probes.statistics import CollectionStatistics
from ranktilt.reporting.document import Facts, Figure, Section, Table
from ranktilt.reporting.views.validate_sections import OUTCOMES, validation_sections
from tests.probes.validations import toy_effectiveness, toy_similarity, toy_validation

VALIDATION = toy_validation()


def section(name: str, **changes: object) -> Section:
    """One section of the toy validation with some parts changed."""
    found = validation_sections(replace(VALIDATION, **changes))  # type: ignore[arg-type]
    return next(one for one in found if one.name == name)


def figures(one: Section) -> list[Figure]:
    return [block for block in one.blocks if isinstance(block, Figure)]


def tables(one: Section) -> list[Table]:
    return [block for block in one.blocks if isinstance(block, Table)]


def spread(*values: float, low: float = 0.0) -> Distribution:
    return Distribution("toy", np.array(values), (low, 1.0))


def test_sections_come_in_the_order_of_the_papers() -> None:
    names = [one.name for one in validation_sections(VALIDATION)]
    assert names == ["collection", "words", "meaning", "effectiveness", "check"]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("words", {"overlaps": ()}),
        ("meaning", {"similarities": ()}),
        ("effectiveness", {"effectiveness": ()}),
        ("check", {"check": None}),
    ],
)
def test_what_was_not_asked_for_is_left_out(name: str, changes: dict[str, object]) -> None:
    found = validation_sections(replace(VALIDATION, **changes))  # type: ignore[arg-type]
    assert name not in [one.name for one in found]
    assert len(found) == 4


def test_every_row_fits_its_columns() -> None:
    for validation in (VALIDATION, toy_validation(("human", "a", "b")), toy_validation(("human",))):
        for one in validation_sections(validation):
            for table in [*tables(one), *(f.table for f in figures(one) if f.table)]:
                assert {len(row) for row in table.rows} == {len(table.columns)}


def test_empty_documents_are_named() -> None:
    human, llm = VALIDATION.statistics.sources
    statistics = CollectionStatistics((human, replace(llm, empty=3)), VALIDATION.statistics.queries, "test")
    assert tables(section("collection", statistics=statistics))[0].note == (
        "Documents without a word: llm 3; they count with 0."
    )
    assert tables(section("collection"))[0].note == ""


def test_split_of_the_judgments_is_named() -> None:
    assert section("collection").lead == ("Both sides answer the same queries. Judgments: test.",)
    nameless = replace(VALIDATION.statistics, split=None)
    assert section("collection", statistics=nameless).lead == ("Both sides answer the same queries.",)


def test_histogram_of_shares_spans_the_whole_range() -> None:
    one = Overlap("llm", spread(0.5, 0.5), spread(0.9, 0.1))
    left, right = figures(section("words", overlaps=(one,)))
    for figure in (left, right):
        assert figure.drawing["layout"]["xaxis"]["range"] == [0.0, 1.0]
    assert [height for height in left.drawing["data"][0]["y"] if height] == [100.0]
    assert [height for height in right.drawing["data"][0]["y"] if height] == [50.0, 50.0]


def test_histogram_of_cosines_spans_what_there_is() -> None:
    one = replace(toy_similarity(), cosine=spread(0.91, low=-1.0), baseline=spread(0.01, low=-1.0))
    figure = figures(section("meaning", similarities=(one,)))[0]
    low, high = figure.drawing["layout"]["xaxis"]["range"]
    assert (low, high) == pytest.approx((0.0, 0.925))


def test_histogram_of_nothing_is_empty_and_said() -> None:
    one = Overlap("llm", spread(np.nan), spread(np.nan))
    figure = figures(section("words", overlaps=(one,)))[0]
    assert not any(figure.drawing["data"][0]["y"])
    assert figure.says == "llm: nothing to measure."


def test_figure_says_what_it_shows() -> None:
    one = Overlap("llm", spread(0.1, 0.2, 0.3, 0.4, 1.0), spread(0.5))
    left, right = figures(section("words", overlaps=(one,)))
    assert left.says == "llm: half of 5 pairs between 0.20 and 0.40, median 0.30, mean 0.40."
    assert right.says.startswith("llm: half of 1 pair between")


def test_several_sources_share_a_figure() -> None:
    found = validation_sections(toy_validation(("human", "a", "b")))
    words = next(one for one in found if one.name == "words")
    assert [bars["name"] for bars in figures(words)[0].drawing["data"]] == ["a", "b"]
    assert [row[0].text for row in tables(words)[0].rows] == ["a", "a", "b", "b"]
    assert [row.rule for row in tables(words)[0].rows] == [True, False, True, False]


def test_undefined_separation_is_said() -> None:
    similar = toy_similarity()
    unknown = replace(similar, separation=replace(similar.separation, auc=np.nan, nearest=np.nan))
    facts = next(b for b in section("meaning", similarities=(unknown,)).blocks if isinstance(b, Facts))
    assert [fact.text for fact in facts.facts][2:] == ["an undefined share", "undefined"]


@pytest.mark.parametrize(("shown", "said"), [(20, "20 of 40 pairs, drawn by chance"), (40, "all pairs")])
def test_map_says_how_many_pairs_it_shows(shown: int, said: str) -> None:
    similar = toy_similarity()
    assert similar.map is not None
    whole = replace(similar, map=replace(similar.map, of=40 if shown == 20 else 20))
    assert said in figures(section("meaning", similarities=(whole,)))[-1].says


def test_excluded_queries_are_counted_once() -> None:
    note = tables(section("effectiveness"))[0].note
    assert note.endswith("without a relevant document on both sides, left out: 2.")
    whole = tuple(replace(row, excluded=0) for row in toy_effectiveness())
    assert "left out" not in tables(section("effectiveness", effectiveness=whole))[0].note


def test_forest_plot_counts_the_outcomes() -> None:
    assert figures(section("effectiveness"))[0].says.startswith(
        "1 different, 1 different within the margin, 1 equivalent, 1 inconclusive, 1 not tested. "
    )


def test_margin_is_said_before_the_numbers() -> None:
    rows = tuple(replace(row, margin=0.05) for row in toy_effectiveness())
    assert "The margin is ±0.05" in section("effectiveness", effectiveness=rows).lead[0]


def test_faults_are_explained_above_the_table() -> None:
    lead = section("check").lead
    assert VALIDATION.check is not None
    assert lead[0] == VALIDATION.check.sentence
    assert any(line.startswith("Cut-off endings: ") for line in lead)
    assert all(line.endswith(".") for line in lead)


def test_every_outcome_has_a_tone() -> None:
    assert {row.outcome for row in toy_effectiveness()} == set(OUTCOMES)


@pytest.mark.parametrize(
    ("alpha", "below", "level"), [(0.05, ".05", "90 %"), (0.01, ".01", "98 %"), (0.1, ".1", "80 %")]
)
def test_the_level_is_the_one_that_was_asked_for(alpha: float, below: str, level: str) -> None:
    found = section("effectiveness", spec={**VALIDATION.spec, "alpha": alpha})
    assert f"not corrected; below {below} it shows equivalence" in tables(found)[0].note
    assert f"thick: {level} interval, which must lie in the shade" in figures(found)[0].says


def test_excluded_queries_are_counted_for_each_source() -> None:
    whole = toy_validation(("human", "a", "b"))
    rows = tuple(replace(row, excluded={"a": 2, "b": 7}[row.source]) for row in whole.effectiveness)
    found = section("effectiveness", sources=("a", "b"), effectiveness=rows)
    assert tables(found)[0].note.endswith("left out: 2 of a, 7 of b.")
