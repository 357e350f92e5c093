"""Effects of factors: by hand, against audits, planted ones recovered, fractions of designs, and
what is refused.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import audit
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError
from ranktilt.explaining.factors.effects import FactorDesign, factor_effects
from ranktilt.explaining.factors.outcomes import (
    Standings,
    adoption_weights,
    even_weights,
    version_table,
)
from ranktilt.explaining.factors.result import FactorEffects
from ranktilt.reporting.sentences.explaining.factors import factor_headline, factor_sentences
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.statistics.regression.fixed_effects import regress_within
from tests.explaining.factors.designed import designed, full, half, scored
from tests.refusals import refused
from tests.toy import collection_of, run_of

NAMES = ("source", "length", "words")
PLANTED: dict[str, dict[tuple[str, ...], float]] = {
    "nothing": {},
    "length": {("length",): 0.6},
    "source": {("source",): 0.6},
    "both": {("source",): 0.4, ("length",): 0.6},
    "interaction": {("length",): 0.4, ("source", "length"): 0.3},
}
BY_HAND = (20.0, 30.0, 40.0, 54.0)
"""One document's values where neither factor is high, the first, the second, and both."""


def of(
    effects: FactorEffects, effect: str, estimand: str = "rank gap", ranker: str | None = None
) -> Any:
    return next(row for row in effects.of(estimand, ranker) if row.effect == effect)


def two_documents() -> tuple[Collection, dict[str, dict[str, float]]]:
    """Two documents in a 2², and one without factors; a version of b is not retrieved, and one ties
    with a's.
    """
    rows = [
        {
            "id": f"{origin}{a}{b}",
            "text": "x",
            "origin": f"{origin}00",
            **{"factor:A": ("low", "high")[a], "factor:B": ("low", "high")[b]},
        }
        for origin in "ab"
        for a in (0, 1)
        for b in (0, 1)
    ]
    docs = [*rows, {"id": "c", "text": "y", "origin": "c", "factor:A": None, "factor:B": None}]
    grades = {"q": {row["id"]: 2 if row["id"] < "b" else 1 for row in rows}}
    scores = {
        "q": {
            "a00": 4.0,
            "a10": 8.0,
            "a01": 6.0,
            "a11": 9.0,
            "b00": 5.0,
            "b10": 6.0,
            "b11": 7.0,
            "c": 5.5,
        }
    }
    return collection_of(docs, {"q": "x"}, grades), scores


def standing(collection: Collection, run: Run) -> Standings:
    table = version_table(collection, FactorDesign.from_collection(collection).designed)
    return Standings(collection=collection, run=run, versions=table)


class TestByHand:
    def test_effects_of_a_square(self) -> None:
        """A is (30 + 54)/2 − (20 + 40)/2, B (40 + 54)/2 − (20 + 30)/2, and A × B ((54 − 40) − (30 −
        20))/2.
        """
        levels = np.array(full(2), dtype=float)
        x = np.column_stack([levels, levels.prod(axis=1)])
        number = np.repeat([0, 1], 4)
        y = np.concatenate([BY_HAND, 100 + np.array(BY_HAND)])
        fit = regress_within(y, np.tile(x, (2, 1)), number, number, number)
        values, errors, _ = fit.combined(2 * np.eye(3))
        assert values.tolist() == pytest.approx([12, 22, 2])
        assert errors.tolist() == pytest.approx([0, 0, 0], abs=1e-9)

    def test_errors_are_those_of_clusters_that_add_up(self) -> None:
        """Three documents with effects 1, 2 and 6 under one query each: mean 3, deviations −2, −1,
        3.
        """
        number = np.repeat([0, 1, 2], 2)
        y = np.array([0, 1, 5, 7, 1, 7], dtype=float)
        fit = regress_within(y, np.tile([[-1.0], [1.0]], (3, 1)), number, number, number)
        values, errors, halves = fit.combined(np.array([[2.0]]))
        assert values[0] == pytest.approx(3)
        assert errors[0] == pytest.approx(np.sqrt((4 + 1 + 9) / 9 * 3 / 2))
        assert halves[0] == pytest.approx(4.302653 * errors[0])
        # t² = 9 / (14/9 · 3/2) = 27/7 with 2 degrees of freedom, of which p is 1 − √(t² / (t² +
        # 2)).
        assert fit.p(0) == pytest.approx(1 - np.sqrt(27 / 41))

    def test_rounding_is_no_error(self) -> None:
        """Each of six documents has the effect .3, whatever its own value: a vote each."""
        number = np.repeat(np.arange(6), 2)
        x = np.tile([[0.0], [1.0]], (6, 1))
        y = np.random.default_rng(0).random(6)[number] + 0.3 * x[:, 0]
        fit = regress_within(y, x, number, number, number)
        assert fit.p(0) == pytest.approx(2 * 0.5**6)

    def test_ranks_among_other_documents_in_any_of_their_versions(self) -> None:
        """Above a00 stand three of b's four versions, and c; above a01 b11, and b10 is tied; b01 is
        not retrieved.
        """
        collection, scores = two_documents()
        standings = standing(collection, run_of(collection, scores))
        ranks = dict(
            zip(
                collection.ids.gather(standings.rows.ravel()),
                standings.ranks(even_weights(collection)).ravel(),
                strict=True,
            )
        )
        assert ranks == pytest.approx(
            {
                "a00": 1 + 3 / 4 + 1,
                "a10": 1,
                "a11": 1,
                "a01": 1 + 1 / 4 + 1 / 8,
                "b00": 1 + 3 / 4 + 1,
                "b10": 1 + 2 / 4 + 1 / 8,
                "b11": 1 + 2 / 4,
                "b01": 1 + 1 + 1,
            }
        )
        assert standings.absent == 1 / 8

    def test_gains_by_the_grade_of_the_document(self) -> None:
        collection, scores = two_documents()
        standings = standing(collection, run_of(collection, scores))
        ndcg = standings.ndcg(even_weights(collection))
        assert ndcg is not None
        values = dict(zip(collection.ids.gather(ndcg.row), ndcg.values, strict=True))
        ideal = 2 + 1 / np.log2(3)
        assert values["a10"] == pytest.approx(100 * 2 / ideal)
        assert values["b11"] == pytest.approx(100 / np.log2(2.5) / ideal)
        assert values["b01"] == 0

    def test_gains_by_the_grade_of_the_version_where_it_has_one(self) -> None:
        """With facts changed a is worth 0 (a01) or 3 (a11), the one of b with a grade 2; c is false
        where it is judged.

        At best a has 3 and b 2: the ideal is 3 + 2/log2(3). Without a grade a version has that of
        its document.
        """
        base, scores = two_documents()
        docs = base.docs.rename({"factor:B": "factor:facts"})
        more = pl.DataFrame(
            {"id": ["c01"], "text": ["y"], "origin": ["c"], "factor:facts": ["high"]}
        )
        docs = pl.concat([docs, more], how="diagonal").with_columns(
            pl.col("title", "source").fill_null("")
        )
        grades = {
            "a00": 2,
            "a10": 2,
            "a01": 0,
            "a11": 3,
            "b00": 1,
            "b10": 1,
            "b11": 2,
            "c": 0,
            "c01": 3,
        }
        collection = replace(
            base,
            docs=docs,
            qrels=pl.DataFrame(
                {"query_id": "q", "doc_id": list(grades), "grade": list(grades.values())}
            ),
        )
        standings = standing(collection, run_of(collection, scores))
        assert len(standings.targets.origin) == 2, (
            "who judges false versions does not choose documents"
        )
        ndcg = standings.ndcg(even_weights(collection))
        assert ndcg is not None
        ranks = dict(
            zip(ndcg.row.tolist(), standings.ranks(even_weights(collection)).ravel(), strict=True)
        )
        worth = {
            collection.ids[row]: value * np.log2(1 + ranks[row])
            for row, value in zip(ndcg.row.tolist(), ndcg.values, strict=True)
        }
        ideal = 3 + 2 / np.log2(3)
        assert {name: value * ideal / 100 for name, value in worth.items()} == pytest.approx(
            {"a00": 2, "a10": 2, "a01": 0, "a11": 3, "b00": 1, "b10": 1, "b11": 2, "b01": 0}
        )
        assert ndcg.values[collection.ids.gather(ndcg.row).to_list().index("a11")] == pytest.approx(
            100 * 3 / ideal
        )

    def test_scores_are_those_of_documents_with_all_versions(self) -> None:
        collection, scores = two_documents()
        score_gap = standing(collection, run_of(collection, scores)).score_gap()
        assert score_gap is not None
        assert collection.ids.gather(score_gap.row).to_list() == ["a00", "a01", "a10", "a11"]
        assert score_gap.values[1] - score_gap.values[0] == pytest.approx(
            2 / np.std(list(scores["q"].values()))
        )

    def test_a_version_meets_all_of_its_document(self) -> None:
        collection, scores = two_documents()
        won = standing(collection, run_of(collection, scores)).head_to_head()
        values = dict(zip(collection.ids.gather(won.row), won.values, strict=True))
        assert [values[name] for name in ("a00", "a01", "a10", "a11")] == [-75, -25, 25, 75]
        assert [values[name] for name in ("b01", "b00", "b10", "b11")] == [-75, -25, 25, 75]

    def test_edits_that_others_make(self) -> None:
        """Where all others have A high, a's rivals are b10 and b11, half each; where none, b00 and
        b01.
        """
        collection, scores = two_documents()
        standings = standing(collection, run_of(collection, scores))
        levels = FactorDesign.from_collection(collection).levels[:, 0]
        everybody, nobody = (
            standings.ranks(adoption_weights(collection, levels, share))[0] for share in (1.0, 0.0)
        )
        assert everybody.tolist() == [1 + 1 + 1, 1 + 1 / 2 + 1 / 4, 1, 1]  # of a00, a01, a10, a11
        assert nobody.tolist() == [1 + 1 / 2 + 1, 1, 1, 1]


def test_with_one_factor_effects_are_those_of_an_audit_of_twins() -> None:
    """RankGap counts the twin itself and every version of others: twice the effect and what twins
    win of each other.
    """
    collection = designed(["length"], full(1))
    run = scored(collection, {("length",): 0.8})
    effects_of_factors = factor_effects(collection, [run])
    pairs = [("high", "low")]
    result = audit(
        collection, run, ["RankGap", "HeadToHead(pairs=relevant)"], by="factor:length", pairs=pairs
    )
    rank, won = (effect.value for effect in result.card)
    effects = {row.estimand: row.value for row in effects_of_factors.rows}
    assert effects["head-to-head"] == pytest.approx(100 * won)
    assert rank == pytest.approx(2 * effects["rank gap"] + won)


def simulated(planted: Mapping[tuple[str, ...], float], seeds: int) -> list[FactorEffects]:
    collection = designed(NAMES, full(3))
    return [
        factor_effects(collection, [scored(collection, planted, seed=seed)])
        for seed in range(seeds)
    ]


def is_null(effect: str, planted: Mapping[tuple[str, ...], float]) -> bool:
    return tuple(effect.split(" × ")) not in planted


@pytest.mark.parametrize("name", PLANTED)
def test_planted_effects_are_recovered(name: str) -> None:
    """In standard deviations of scores, whose own is 1.5; what is planted is shown, and little
    else.
    """
    planted, simulations = PLANTED[name], simulated(PLANTED[name], 20)
    for effect in [row.effect for row in simulations[0].of("score gap")]:
        values = np.array([of(effects, effect, "score gap").value for effects in simulations])
        expected = planted.get(tuple(effect.split(" × ")), 0.0) / 1.5
        assert values.mean() == pytest.approx(expected, abs=0.03)
        shown_share = np.mean([of(effects, effect).is_shown for effects in simulations])
        assert shown_share <= 0.1 if is_null(effect, planted) else shown_share >= 0.7
    assert (
        np.mean(
            [
                bool(row.is_shown) is not is_null(row.effect, planted)
                for effects in simulations
                for row in effects.of("rank gap")
            ]
        )
        > 0.9
    )


@pytest.mark.long
def test_intervals_hold_the_truth_and_tests_their_level() -> None:
    """200 draws of each: 93 to 97 % of intervals (nDCG up to 98 %), and at most 6 % of tests of
    what is not there.

    The truth is the mean of all draws, since ranks and gains are no straight function of scores.
    Gains have interactions of their own, so that of nDCG only what is nothing in all estimands is
    tested.
    """
    coverage: dict[str, list[float]] = {}
    wrong: dict[str, list[float]] = {}
    families = []
    for planted in PLANTED.values():
        simulations = simulated(planted, 200)
        for row in simulations[0].rows:
            same = [of(effects, row.effect, row.estimand) for effects in simulations]
            truth = float(np.mean([row_of_simulation.value for row_of_simulation in same]))
            coverage.setdefault(row.estimand, []).append(
                float(
                    np.mean(
                        [
                            row_of_simulation.low <= truth <= row_of_simulation.high
                            for row_of_simulation in same
                        ]
                    )
                )
            )
            if is_null(row.effect, planted) and (row.estimand != "nDCG" or not planted):
                wrong.setdefault(row.estimand, []).append(
                    float(np.mean([row_of_simulation.p < 0.05 for row_of_simulation in same]))
                )
        families.append(
            [
                any(r.is_shown and is_null(r.effect, planted) for r in effects.of("rank gap"))
                for effects in simulations
            ]
        )
    for estimand, shares in coverage.items():
        assert 0.93 <= np.mean(shares) <= (0.98 if estimand == "nDCG" else 0.97), estimand
        assert np.mean(wrong[estimand]) <= 0.06, estimand
    assert max(np.mean(families, axis=1)) <= 0.06


def test_cells_that_are_drawn_give_the_same_effects() -> None:
    collection = designed(NAMES, full(3), origins=60, queries=30)
    run = scored(collection, {("length",): 0.8})
    rng = np.random.default_rng(0)
    drawn = np.concatenate(
        [8 * n + np.array([0, *(1 + rng.choice(7, 3, replace=False))]) for n in range(60)]
    )
    docs = collection.docs[np.sort(drawn)]
    qrels = collection.qrels.join(docs, left_on="doc_id", right_on="id", how="semi")
    partly_judged = Collection(docs, collection.queries, qrels)
    full_effects, part = factor_effects(collection, [run]), factor_effects(partly_judged, [run])
    for row in full_effects.of("head-to-head"):
        head_to_head = of(part, row.effect, "head-to-head")
        assert abs(row.value - head_to_head.value) <= 2 * np.hypot(row.error, head_to_head.error)
        assert head_to_head.error > row.error
    assert of(part, "length").is_shown


class TestDesigns:
    def test_interactions_that_change_together_are_one_number(self) -> None:
        design = FactorDesign.from_collection(designed("ABCD", half(4)))
        assert [term.label for term in design.terms[4:]] == [
            "A × B = −C × D",
            "A × C = −B × D",
            "A × D = −B × C",
        ]
        assert (
            note_sentences(design.notes)[0]
            == "This design cannot separate A × B and −C × D. One number is their sum."
        )

    def test_with_factors_that_interactions_follow_they_are_left_out(self) -> None:
        row = [1 if sign == "+" else -1 for sign in "++-+++---+-"]
        screening = [[-1] * 6, *(np.roll(row, n)[:6].tolist() for n in range(11))]
        for names, cells in (("ABCDEF", screening), ("ABC", half(3))):
            design = FactorDesign.from_collection(designed(names, cells))
            assert [term.label for term in design.terms] == list(names)
            assert note_sentences(design.notes)[0].startswith(
                "Interactions are left out. This design cannot separate"
            )

    def test_failed_factor_is_not_reported(self) -> None:
        collection = designed(NAMES, full(3))
        collection.spec["design"].update(failed=["words"], low_high={"length": ["as is", "halved"]})
        run = scored(collection, {("words",): 0.8})
        effects = factor_effects(collection, [run], adopters=[50])
        assert {row.effect for row in effects.rows} == {"source", "length", "source × length"}
        assert {adoption.factor for adoption in effects.adoptions} == {"source", "length"}
        assert (
            "Not reported, because their checks failed: words. They stay in the regression."
            in note_sentences(effects.notes)
        )
        assert [(factor.low, factor.high, factor.analysed) for factor in effects.factors][1:] == [
            ("as is", "halved", True),
            ("low", "high", False),
        ]
        assert of(factor_effects(collection, [run], failed_too=True), "words").is_shown


def changed(name: str, values: Sequence[str | None]) -> Collection:
    """The square of A and B with another column."""
    designed_texts = designed("AB", full(2))
    docs = designed_texts.docs.with_columns(pl.Series(f"factor:{name}", list(values) * 40))
    return replace(designed_texts, docs=docs)


@pytest.mark.parametrize(
    ("collection", "options", "fault"),
    [
        (
            collection_of([{"id": "d", "text": "x"}], {"q": "x"}, {}),
            {},
            "no factors: expected columns factor:NAME of low and high",
        ),
        (
            changed("B", ["low", "high", "low", "much"]),
            {},
            "factor 'B': expected low or high, got 'much'",
        ),
        (changed("B", ["low"] * 4), {}, "factor 'B' has one level only"),
        (changed("B", ["low", "high", "low", "high"]), {}, "factors 'A' and 'B' are aliased"),
        (changed("B", ["high", "low", "high", "low"]), {}, "factors 'A' and 'B' are aliased"),
        (
            changed("B", ["low", "low", "high", "high"]),
            {"adopters": [0, 150]},
            "expected percentages from 0 to 100, got 150",
        ),
    ],
)
def test_what_cannot_be_analysed_is_refused(
    collection: Collection, options: dict[str, Any], fault: str
) -> None:
    run = Run.from_dict({"q0": {"d0": 1.0}})
    with pytest.raises(UserError, match=fault):
        factor_effects(collection, [run], **options)


def test_more_that_is_refused() -> None:
    designed_texts = designed("AB", full(2))
    docs = designed_texts.docs.with_columns(pl.Series("factor:A", ["low"] * 80 + ["high"] * 80))
    with pytest.raises(UserError, match="'A' has one level in all versions of each document"):
        FactorDesign.from_collection(replace(designed_texts, docs=docs))
    with refused("effects of factors need a ranker"):
        factor_effects(designed_texts, [])
    with pytest.raises(UserError, match="no factor is left: A and B failed their checks"):
        FactorDesign.from_collection(designed_texts, ["A", "B"])
    with refused("run: no document with two versions is judged relevant and retrieved"):
        factor_effects(
            replace(designed_texts, qrels=designed_texts.qrels.with_columns(grade=0)),
            [Run.from_dict({"q0": {"d0": 1.0}})],
        )


class TestSource:
    def test_before_and_after_the_others_are_held(self) -> None:
        """Given versions: one of a model's two is shorter, and the ranker goes by length alone."""
        cells = [[-1, -1], [1, 1], [1, -1]]
        collection = designed(("source", "length"), cells)
        run = scored(collection, {("length",): 0.8})
        effects = factor_effects(collection, [run])
        sources_by_question = {
            source.question: source for source in effects.sources if source.estimand == "score gap"
        }
        assert sources_by_question["alone"].low > 0
        assert sources_by_question["others held"].low < 0 < sources_by_question["others held"].high
        assert sources_by_question["together"].value == pytest.approx(
            sum(row.value for row in effects.of("score gap"))
        )
        assert sources_by_question["together"].factors == ("source", "length")

    def test_where_the_others_are_as_is(self) -> None:
        collection = designed(NAMES, full(3))
        effects = factor_effects(collection, [scored(collection, PLANTED["interaction"])])
        value = next(
            source.value for source in effects.sources if source.question == "others as is"
        )
        parts = {row.effect: row.value for row in effects.of("rank gap")}
        assert value == pytest.approx(
            parts["source"] - parts["source × length"] - parts["source × words"]
        )
        docs = collection.docs.filter(
            (pl.col("factor:length") == "low") & (pl.col("factor:words") == "low")
        )
        assert docs.height == 80

    def test_facts_are_no_part_of_a_models_text(self) -> None:
        collection = designed(("source", "facts"), full(2))
        effects = factor_effects(collection, [scored(collection, {("facts",): -0.8})])
        assert effects.sources[0].factors == ("source",)
        (sentence,) = factor_sentences(effects)
        assert sentence.startswith(
            "planted shows no effect of model text (−0.9 ranks [−2.2, +0.4]): −0.9 ranks ["
        )
        assert "with source itself; facts=high costs a text " in sentence
        assert factor_headline(effects) == (
            "facts=high costs a text 6.3 ranks [5.0, 7.6] under planted, the largest of 2 effects"
        )


def test_an_edit_that_everybody_makes_gains_little() -> None:
    collection = designed(["query-words"], full(1))
    effects = factor_effects(
        collection, [scored(collection, {("query-words",): 1.0})], adopters=[0, 50, 100]
    )
    gains = {(adoption.share, adoption.edited): adoption for adoption in effects.adoptions}
    assert gains[0, True].low > 5
    assert gains[0, True].value > gains[0.5, True].value > gains[1, True].value
    assert gains[1, True].low < 0 < gains[1, True].high
    assert gains[0, False].value == 0
    assert gains[1, False].value < gains[0.5, False].value
    assert gains[0.5, False].high < 0


def test_of_several_rankers_all_effects_are_one_family() -> None:
    collection = designed(NAMES, full(3))
    runs = [
        scored(collection, planted, seed=n)
        for n, planted in enumerate((PLANTED["length"], PLANTED["source"]))
    ]
    runs = [
        replace(run, spec={"ranker": name}) for run, name in zip(runs, ("one", "two"), strict=True)
    ]
    effects = factor_effects(collection, runs)
    for estimand in effects.estimands:
        family = sorted(effects.of(estimand), key=lambda row: row.p)
        assert len(family) == 12
        assert family[0].p_corrected == pytest.approx(12 * family[0].p)
    assert [sentence.partition(" by ")[0] for sentence in factor_sentences(effects)] == [
        "two lifts model text",
        "one lifts model text",
    ]
    alone = factor_effects(collection, runs[:1])
    assert of(alone, "length").value == of(effects, "length", ranker="one").value
    assert of(alone, "length").detectable < of(effects, "length", ranker="one").detectable


def test_without_judgments_what_is_retrieved_is_compared() -> None:
    collection = designed(["length"], full(1))
    unjudged = replace(collection, qrels=collection.qrels.clear())
    effects = factor_effects(unjudged, [scored(collection, {("length",): 0.8}, depth=30)])
    assert effects.estimands == ("rank gap", "score gap", "head-to-head")
    assert note_sentences(effects.notes)[0].startswith(
        "Nothing is judged, so all documents with a retrieved version are compared"
    )
    absent = (
        "planted: 27 % of these versions are not retrieved, and rank below all that are; "
        "rank "
        "deeper (@k)."
    )
    assert note_sentences(effects.notes)[1] == absent


def test_too_few_documents_are_not_tested() -> None:
    collection = designed(["length"], full(1), queries=4, origins=8)
    effects = factor_effects(collection, [scored(collection, {})])
    assert np.isnan([row.p for row in effects.rows]).all()
    assert not any(row.is_shown for row in effects.rows)
    assert "planted: 4 queries and 8 documents are too few to test." in note_sentences(
        effects.notes
    )


def test_what_decides_between_versions_is_told_where_no_ranks_are() -> None:
    collection = designed(["length", "words"], full(2))
    effects = factor_effects(collection, [scored(collection, {("length",): 1.0})])
    rows = [
        replace(row, p_corrected=1.0) if row.estimand == "rank gap" else row for row in effects.rows
    ]
    (sentence,) = factor_sentences(replace(effects, rows=tuple(rows)))
    assert re.search(
        r"; head-to-head shows more: length=high \+\d+\.\d % \[\+\d+\.\d, \+\d+\.\d\]$", sentence
    )
    assert "head-to-head" not in factor_headline(effects)
