"""Null, antisymmetry and known tilt of every answer, to the last bit; and twins, whose few
documents are few votes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ranktilt import Audit, Collection, Run, audit, gate
from ranktilt.auditing.effects import FEWEST, Effect
from ranktilt.rankers.base import top_k
from ranktilt.statistics.bootstrap import FEWEST_ROWS
from tests.toy import Table, collection_of, run_of

MEASURES = ["nDCG@1", "nDCG@3", "nDCG", "AP", "P@2", "R@4", "RR", "RR@2", "AP(rel=2)@5"]
CARD = ["page", "relevant twins", "other twins", "rank gap", "score gap"]
BARE = ["page", "twins", "twins, pooled", "rank gap", "score gap"]
SIDES = ("human", "llm")
IDS: dict[str, tuple[str, str]] = {
    "cocktail": ("{}-human", "{}-llm"),
    "copy wins by id": ("a{}", "z{}"),
    "human wins by id": ("z{}", "a{}"),
    "suffix": ("{}", "{}~"),
    "misleading": ("{}-llama", "{}-human"),
}
SOURCES = [SIDES, ("zebra", "ant"), ("ant", "zebra"), ("llm", "gpt"), ("éa", "語")]
few = settings(max_examples=15)


@dataclass(frozen=True)
class World:
    """Origins with one document on each side, grades and scores by query and origin."""

    grades: list[list[int]]
    scores: list[list[tuple[float, float]]]
    """Per query and origin the scores of both sides."""
    one_sided: frozenset[int] = frozenset()
    """Origins whose second document is judged not relevant: with one of them the groups are no
    twins.
    """

    def collection(
        self, ids: tuple[str, str] = IDS["cocktail"], sources: Sequence[str] = SIDES
    ) -> Collection:
        docs = [
            {
                "id": ids[side].format(o),
                "text": f"text {o}",
                "source": sources[side],
                "origin": ids[0].format(o),
            }
            for o in range(len(self.grades[0]))
            for side in (0, 1)
        ]
        qrels = {
            f"q{q}": {
                ids[side].format(o): 0 if side and o in self.one_sided else grade
                for o, grade in enumerate(grades)
                for side in (0, 1)
            }
            for q, grades in enumerate(self.grades)
        }
        return collection_of(docs, dict.fromkeys(qrels, "x"), qrels)

    def run(self, collection: Collection, *, cut: int | None = None, tilt: float = 0.0) -> Run:
        """Rank everything, or the best `cut`; `tilt` is added to the first side's whole score
        vector before.
        """
        keys, scores_of_query = collection.tie_keys(), {}
        for q, scores in enumerate(self.scores):
            flat = np.array(
                [s + (tilt if side == 0 else 0.0) for pair in scores for side, s in enumerate(pair)]
            )
            best = top_k(flat, keys, cut or len(flat))
            scores_of_query[f"q{q}"] = {collection.ids[int(i)]: float(flat[i]) for i in best}
        return run_of(collection, scores_of_query, ranker="r")


def unjudged(collection: Collection) -> Collection:
    return Collection(collection.docs, collection.queries, collection.qrels.clear())


@st.composite
def worlds(draw: st.DrawFn, *, same: bool = False, tied: bool = True, twins: bool = True) -> World:
    """Random worlds; `same` gives both sides one score, `tied` few distinct scores, so that most of
    them tie.
    """
    queries, origins = draw(st.sampled_from([1, 2, 3, 7, 20])), draw(st.integers(2, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    grades = rng.choice([0, 0, 1, 2, 3], (queries, origins))
    grades[0, 0] = 1
    shape = (queries, origins, 2)
    scores = (
        rng.integers(0, draw(st.integers(1, 4)), shape).astype(float)
        if tied
        else rng.normal(size=shape)
    )
    if same:
        scores[:, :, 1] = scores[:, :, 0]
    lone = frozenset() if twins else frozenset({1, *rng.integers(1, origins, 2).tolist()})
    if not twins:
        grades[0, 1] = 2
    return World(grades.tolist(), [[(a, b) for a, b in q] for q in scores.tolist()], lone)


def audited(collection: Collection, run: Run, *, page: int = 3, **options: object) -> Audit:
    fixed: dict[str, Any] = {"card": True, "depth": page, "resamples": 200}
    return audit(collection, run, MEASURES, **fixed, **options)


def answers(audit: Audit) -> list[Effect]:
    """Relative Δ of every measure, and the other questions of the card."""
    return [*audit.tilts, *(e for e in audit.card if e.estimand.key != "relative delta")]


def is_null(effect: Effect) -> bool:
    """Exactly level: 0 to the last bit with p = 1, or undefined because neither side has anything.

    Fewer than three queries or origins have no interval and no p.
    """
    inference = (effect.low, effect.high, effect.error, effect.p)
    is_defined = effect.queries > 0 and not effect.mean_a == effect.mean_b == 0
    if is_defined and effect.sample >= FEWEST_ROWS:
        return effect.value == 0 and inference == (0, 0, 0, 1) and not effect.leans
    return (effect.value == 0 if is_defined else np.isnan(effect.value)) and bool(
        np.isnan(inference).all()
    )


class TestNull:
    """The second source is a byte-identical copy with equal scores."""

    @pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
    @given(
        worlds(same=True),
        st.sampled_from(SOURCES),
        st.none() | st.integers(1, 9),
        st.integers(1, 9),
    )
    @few
    def test_every_question_is_answered_with_nobody(
        self,
        ids: tuple[str, str],
        world: World,
        sources: tuple[str, str],
        cut: int | None,
        page: int,
    ) -> None:
        collection = world.collection(ids, sources)
        run = world.run(collection, cut=cut)
        judged = audited(collection, run, page=page)
        assert [e.estimand.key for e in answers(judged)[len(MEASURES) :]] == CARD
        bare = audit(unjudged(collection), run, card=True, resamples=200)
        assert [e.estimand.key for e in bare.card] == BARE
        for result in (judged, bare):
            assert [e.name for e in answers(result) if not is_null(e)] == []
            assert result.verdict("r").side is None


def numbers(e: Effect) -> list[float]:
    fields = [
        e.value,
        e.low,
        e.high,
        e.error,
        e.p,
        e.p_corrected,
        e.neutral,
        e.null_low,
        e.null_high,
    ]
    beside = [e.details[name] for name in sorted(e.details)] + [
        e.checks[name] for name in sorted(e.checks)
    ]
    return [*fields, e.effective_n, e.queries, e.dropped, e.twins, *beside]


def differing(first: Sequence[Effect], second: Sequence[Effect]) -> list[str]:
    """Names of the answers that are not the same to the last bit."""
    pairs = zip(first, second, strict=True)
    return [a.name for a, b in pairs if not np.array_equal(numbers(a), numbers(b), equal_nan=True)]


def relabelled(collection: Collection) -> Collection:
    swap = {SIDES[0]: SIDES[1], SIDES[1]: SIDES[0]}
    docs = collection.docs.with_columns(pl.col("source").replace_strict(swap))
    return Collection(docs, collection.queries, collection.qrels)


class TestAntisymmetry:
    @pytest.mark.parametrize("twins", [True, False])
    @given(
        st.data(),
        st.none() | st.integers(1, 12),
        st.integers(1, 9),
        st.sampled_from(["interval", "t"]),
    )
    @few
    def test_swapped_labels_negate_exactly(
        self, twins: bool, data: st.DataObject, cut: int | None, page: int, test: str
    ) -> None:
        world = data.draw(worlds(twins=twins))
        collection = world.collection()
        run = world.run(collection, cut=cut)
        result = audited(collection, run, page=page, test=test)
        assert {t.twins for t in result.tilts} == {twins}
        turned = [e.swapped() for e in answers(result)]
        assert (
            differing(turned, answers(audited(relabelled(collection), run, page=page, test=test)))
            == []
        )
        turned_answers = answers(
            audited(collection, run, page=page, test=test, pairs=[SIDES[::-1]])
        )
        assert {(e.a, e.b) for e in turned_answers} == {SIDES[::-1]}
        assert differing(turned, turned_answers) == []

    @pytest.mark.parametrize("seed", range(8))
    def test_what_documents_add_turns_in_large_audits_too(self, seed: int) -> None:
        """Sums of many numbers, whose order shows in the last bit."""
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=(40, 30, 2)).tolist()
        lone = frozenset({1, 2, 5}) if seed % 2 else frozenset[int]()
        world = World(
            rng.choice([1, 0, 2], (40, 30)).tolist(), [[(a, b) for a, b in q] for q in scores], lone
        )
        collection = world.collection()
        run = world.run(collection, cut=13)
        for judged, measures in (
            (collection, ["nDCG@3", "Share@3"]),
            (unjudged(collection), ["Share@3"]),
        ):
            judged_card, relabelled_card = (
                audit(c, run, measures, card=True, resamples=200).card
                for c in (judged, relabelled(judged))
            )
            assert differing([e.swapped() for e in judged_card], relabelled_card) == []

    @given(
        worlds(),
        st.sampled_from(list(IDS.values())),
        st.integers(1, 12),
        st.randoms(use_true_random=False),
    )
    @few
    def test_neither_names_nor_order_matter(
        self, world: World, ids: tuple[str, str], cut: int, random: object
    ) -> None:
        plain, renamed = world.collection(), world.collection(ids)
        plain_result, renamed_result = (audited(c, world.run(c)) for c in (plain, renamed))
        assert np.array_equal(plain_result.values, renamed_result.values, equal_nan=True)
        assert set(differing(answers(plain_result), answers(renamed_result))) <= {
            "score gap"
        }  # which sums pairs in their order
        order = list(range(plain.docs.height))
        random.shuffle(order)  # type: ignore[attr-defined]
        shuffled, run = (
            Collection(plain.docs[order], plain.queries, plain.qrels),
            world.run(plain, cut=cut),
        )
        plain_result, renamed_result = (answers(audited(c, run)) for c in (plain, shuffled))
        assert set(differing(plain_result, renamed_result)) <= {"score gap"}


STEPS = (-3.0, -1.0, -0.1, 0.0, 0.4, 1.0, 9.0)


def falling(world: World, cut: int | None = None, page: int = 3, *, half: bool = False) -> set[str]:
    """Name the questions whose answers fall anywhere as the tilt grows; `half`: most pairs are
    judged on one side.
    """
    collection = world.collection()
    if half:
        judged = pl.col("doc_id").str.ends_with("human") | pl.col("doc_id").str.starts_with("0-")
        collection = Collection(
            collection.docs, collection.queries, collection.qrels.filter(judged)
        )
    answers_by_step = [
        answers(audited(collection, world.run(collection, cut=cut, tilt=step), page=page))
        for step in STEPS
    ]
    names = set()
    for column in zip(*answers_by_step, strict=True):
        values = [e.value for e in column if not np.isnan(e.value)]
        if any(b < a - 1e-9 for a, b in pairwise(values)):
            names.add(column[0].name)
    return names - {"score gap"}


class TestKnownTilt:
    """What is added to one side's scores moves every answer that way, monotonically."""

    @pytest.mark.parametrize("twins", [True, False])
    @given(data=st.data(), page=st.integers(1, 9))
    @settings(max_examples=6)
    def test_over_the_whole_ranking_with_its_ties(
        self, twins: bool, data: st.DataObject, page: int
    ) -> None:
        assert falling(data.draw(worlds(twins=twins)), page=page) == set()

    @pytest.mark.parametrize("half", [False, True])
    @given(world=worlds(tied=False), cut=st.integers(1, 9), page=st.integers(1, 9))
    @settings(max_examples=6)
    def test_before_a_cut_whichever_sides_are_judged(
        self, half: bool, world: World, cut: int, page: int
    ) -> None:
        assert falling(world, cut, page, half=half) == set()

    def test_from_one_end_to_the_other(self) -> None:
        rng = np.random.default_rng(3)
        scores = rng.normal(size=(40, 28, 2)).tolist()
        world = World([[1, 1, 2, 1, 1, 1, 1] * 4] * 40, [[(a, b) for a, b in q] for q in scores])
        collection = world.collection()
        far = [
            audited(collection, world.run(collection, cut=3, tilt=step)) for step in (-99.0, 99.0)
        ]
        assert [t.value for t in far[0].tilts if t.mean_b] == [-200.0] * len(MEASURES)
        assert [t.value for t in far[1].tilts if t.mean_a] == [200.0] * len(MEASURES)
        assert [f.verdict("r").side for f in far] == ["llm", "human"]
        for result, side in zip(far, (-1, 1), strict=True):
            tested = [t for t in result.tilts if t.sample >= FEWEST_ROWS]
            # All votes are on one side: a share of .025^(1/G) gives this in 2.5 % of cases, a half
            # in .5^G.
            inner = [side * (2 * 0.025 ** (1 / t.effective_n) - 1) * 200 for t in tested]
            assert [(t.high, t.low)[side > 0] for t in tested] == pytest.approx(inner)
            assert {(t.low, t.high)[side > 0] for t in tested} == {side * 200.0}
            assert [t.p for t in tested] == pytest.approx([2 * 0.5**t.effective_n for t in tested])
            assert all(np.isnan(t.p_corrected) == (t.effective_n < FEWEST) for t in tested)
        world = World([[1, 0, 2]], [[(1.0, 1.2), (0.5, 0.4), (0.1, 0.3)]])
        collection = world.collection()
        low, high = (
            {
                e.estimand.key: e.value
                for e in audited(collection, world.run(collection, tilt=t)).card
            }
            for t in (-9.0, 9.0)
        )
        for kind, most in (("relevant twins", 1), ("other twins", 1), ("page", 1), ("rank gap", 3)):
            assert (low[kind], high[kind]) == pytest.approx(
                (-most, most)
            )  # each side has three documents


# Twins under labels that are not provenance

KINDS = ("relevant twins", "other twins", "rank gap", "score gap")
UNJUDGED = ("twins", "rank gap", "score gap")


def paired(origins: int, queries: int, *, judged: int = 0, extra: int = 0) -> Collection:
    """One document in German and one in English an origin; of the first `extra` origins a second
    German one.
    """
    docs = [
        {
            "id": f"{n}-{lang}",
            "text": "x",
            "source": "human",
            "lang": lang.strip("2"),
            "origin": f"{n}",
        }
        for n in range(origins)
        for lang in (("de", "en", "de2") if n < extra else ("de", "en"))
    ]
    qrels = {
        f"q{q}": {f"{n}-{s}": 1 for n in range(judged) for s in ("de", "en")}
        for q in range(queries)
    }
    return collection_of(docs, {f"q{q}": "x" for q in range(queries)}, qrels if judged else {})


def card(collection: Collection, scores: Table, **options: Any) -> dict[str, Effect]:
    arguments = {
        "measures": "nDCG@3" if collection.qrels.height else None,
        "by": "lang",
        "resamples": 200,
        **options,
    }
    result = audit(collection, run_of(collection, scores, ranker="r"), card=True, **arguments)
    return {e.estimand.key: e for e in result.card}


def exchanged(collection: Collection, flips: tuple[bool, ...]) -> Collection:
    mine = pl.Series([flips[int(o)] for o in collection.docs["origin"]])
    swapped_language = pl.col("lang").replace({"de": "en", "en": "de"})
    docs = collection.docs.with_columns(lang=pl.when(mine).then(swapped_language).otherwise("lang"))
    return Collection(docs, collection.queries, collection.qrels)


def drawn(
    collection: Collection, seed: int, depth: int = 8, levels: int = 6
) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(seed)
    names = collection.ids.to_list()
    return {
        q: {names[d]: float(rng.integers(0, levels)) for d in rng.permutation(len(names))[:depth]}
        for q in collection.queries["id"]
    }


def ahead(queries: int, german: list[int], english: list[int]) -> dict[str, dict[str, float]]:
    """Scores of the same pairs in every query, in another order: German on top in these origins,
    English in those.
    """
    rng = np.random.default_rng(0)
    sides = [(n, "de", "en") for n in german] + [(n, "en", "de") for n in english]
    scores = {}
    for q in range(queries):
        order = rng.permutation(len(sides))
        scores[f"q{q}"] = {
            f"{n}-{name}": position + high
            for position, (n, *names) in zip(order, sides, strict=True)
            for name, high in zip(names, (0.5, 0.0), strict=True)
        }
    return scores


def exchange_p(effect: Effect) -> float:
    """Return the p of exchanged labels, which stands beside that of the interval."""
    return effect.checks["exchanged labels"]


class TestTheSamePairsInEveryQuery:
    """Forty queries bring back the same few pairs: there are as many votes as pairs, not as
    queries.
    """

    @pytest.mark.parametrize("judged", [0, 5])
    def test_one_pair_is_one_vote_however_many_queries(self, judged: int) -> None:
        effects_by_kind = card(paired(5, 40, judged=judged), ahead(40, [0], []))
        twins = effects_by_kind["relevant twins" if judged else "twins"]
        assert (twins.value, twins.queries, twins.effective_n) == (1, 40, 1)
        assert {
            exchange_p(e)
            for e in (twins, effects_by_kind["score gap"], effects_by_kind["rank gap"])
        } == {1}
        assert np.isnan([twins.low, twins.high, twins.p, twins.p_corrected]).all()
        assert (twins.null_low, twins.null_high, twins.leans, twins.favours) == (-1, 1, "", "")

    def test_by_source_too_and_no_band_is_shown(self) -> None:
        plain = paired(5, 40, judged=5)
        collection = Collection(plain.docs.with_columns(source="lang"), plain.queries, plain.qrels)
        effects_by_kind = card(collection, ahead(40, [0, 1, 2], []), by="source")
        # Three pairs, the same way up in 40 queries: a coin for each says so in one of four.
        twins = effects_by_kind["relevant twins"]
        assert exchange_p(twins) == pytest.approx(1 / 4, abs=0.06)
        assert (twins.effective_n, twins.p) == (3, pytest.approx(2 * 0.5**3))
        assert (twins.low, twins.high) == pytest.approx((2 * 0.025 ** (1 / 3) - 1, 1))
        assert exchange_p(effects_by_kind["relative delta"]) > 0.05
        assert not any(effects_by_kind[kind].has_random_band for kind in KINDS)
        assert not any(e.favours for e in effects_by_kind.values())

    @pytest.mark.parametrize(("german", "english"), [(6, 0), (5, 1), (4, 2), (7, 1), (3, 3)])
    def test_p_is_that_of_t_over_pairs_or_coins(self, german: int, english: int) -> None:
        """All queries say the same, so the scatter of the pairs alone is left, with n − 1 degrees
        of freedom.
        """
        n, mean = german + english, (german - english) / (german + english)
        twins = card(paired(n, 20), ahead(20, [*range(german)], [*range(german, n)]))["twins"]
        margins = [abs(sum(signs)) for signs in product((1, -1), repeat=n)]
        exact = np.mean([m >= abs(german - english) for m in margins])
        assert exchange_p(twins) == pytest.approx(exact, abs=4 * np.sqrt(exact / 200))
        assert twins.value == pytest.approx(mean)
        t = mean / np.sqrt((1 - mean**2) / (n - 1)) if mean < 1 else np.inf
        assert twins.p == pytest.approx(2 * stats.t.sf(t, n - 1) if mean < 1 else 2 * 0.5**n)
        assert np.isnan(twins.p_corrected)
        assert twins.null_low == -twins.null_high

    def test_enough_pairs_on_one_side_are_favoured(self) -> None:
        effects_by_kind = card(paired(30, 20), ahead(20, [*range(30)], []))
        assert {
            effects_by_kind[kind].side(effects_by_kind[kind].favours)
            for kind in ("twins", "rank gap")
        } == {"de"}
        assert (effects_by_kind["twins"].leans, effects_by_kind["twins"].effective_n) == ("a", 20)
        assert effects_by_kind["twins"].p == pytest.approx(2 * 0.5**20)
        # 200 exchanges and their mirror images, none as far out.
        assert [
            exchange_p(effects_by_kind[kind]) for kind in ("twins", "score gap")
        ] == pytest.approx([2 / 401] * 2)


class TestRelativeDelta:
    @pytest.mark.parametrize("ties", ["expected", "trec_eval"])
    def test_its_check_is_that_of_each_way_to_exchange_the_labels(self, ties: str) -> None:
        measures = ["nDCG@3", "AP", "P@2", "R@4", "RR"]
        collection = paired(5, 5, judged=5)
        run = run_of(collection, drawn(collection, 5, depth=9, levels=4), ranker="r")
        options = {"by": "lang", "ties": ties, "resamples": 200}
        every = [
            audit(exchanged(collection, flips), run, measures, **options).tilts
            for flips in product((False, True), repeat=5)
        ]
        gaps = np.abs([[t.mean_a - t.mean_b for t in tilts] for tilts in every])
        exact = (gaps >= gaps[0] - 1e-9).mean(axis=0)
        observed_tilts = audit(
            collection, run, measures, by="lang", ties=ties, resamples=2000
        ).tilts
        assert [exchange_p(t) for t in observed_tilts] == pytest.approx(exact.tolist(), abs=0.04)
        assert len({round(e, 3) for e in exact}) > 2

    def test_few_documents_stay_inconclusive(self) -> None:
        """Three pairs in turn on top of 39 queries: over queries alone p is below 1e-3."""
        collection = paired(12, 39, judged=3)
        rng = np.random.default_rng(1)
        scores = {}
        for q in range(39):  # what stands below makes each ranking another
            below = {f"{n}-{side}": rng.random() for n in range(3, 12) for side in ("de", "en")}
            scores[f"q{q}"] = {f"{q % 3}-de": 2.0, **below}
        [tilt] = audit(
            collection, run_of(collection, scores, ranker="r"), ["nDCG@1"], by="lang"
        ).tilts
        assert tilt.checks["sign flips"] < 1e-3
        assert exchange_p(tilt) == pytest.approx(1 / 4, abs=0.02)
        assert (tilt.effective_n, tilt.p) == (3, pytest.approx(2 * 0.5**3))
        assert tilt.verdict() == "inconclusive"


class TestTheBand:
    @pytest.mark.parametrize("judged", [0, 3])
    def test_it_is_what_exchanged_labels_give(self, judged: int) -> None:
        """Every answer of the card, asked anew under each of the 2^5 ways to exchange the labels of
        five origins.
        """
        collection = paired(5, 5, judged=judged, extra=2)
        scores = drawn(collection, 3, depth=11)
        mine = card(collection, scores)
        anew = [
            card(exchanged(collection, flips), scores) for flips in product((False, True), repeat=5)
        ]
        for kind in KINDS if judged else UNJUDGED:
            outer = np.sort(np.abs([effects_of_flip[kind].value for effects_of_flip in anew]))
            exact = np.mean(outer >= abs(mine[kind].value) - 1e-9)
            assert exchange_p(mine[kind]) == pytest.approx(exact, abs=0.1)
            assert outer[-5] - 1e-9 <= mine[kind].null_high <= outer[-1] + 1e-9
            assert mine[kind].null_low == -mine[kind].null_high
            assert mine[kind].neutral == 0

    def test_versions_of_one_origin_are_exchanged_together(
        self,
    ) -> None:
        collection = paired(1, 10, extra=1)
        twins = card(
            collection, {f"q{q}": {"0-de": 3.0, "0-de2": 2.0, "0-en": 1.0} for q in range(10)}
        )["twins"]
        assert (twins.details["pairs"], twins.value, exchange_p(twins)) == (20, 1, 1)
        assert (twins.null_low, twins.null_high) == (-1, 1)
        twins = card(paired(4, 40), ahead(40, [0, 1, 2, 3], []))["page"]
        assert (twins.leans, twins.favours) == ("a", "")
        assert exchange_p(twins) == pytest.approx(2 / 2**4, abs=0.05)
        assert twins.null_low == -twins.null_high < 0


class TestWhatRestsOnLittle:
    """Many queries over a few documents, or a few queries that say anything, are not evidence
    enough.
    """

    @pytest.mark.parametrize("origins", [1, 5])
    def test_few_documents_under_many_queries(self, origins: int) -> None:
        collection = paired(12, 40, judged=origins)
        scores = ahead(40, [*range(12)], [])
        result = audit(
            collection, run_of(collection, scores, ranker="r"), ["nDCG@10"], by="lang", card=True
        )
        [tilt] = result.tilts
        gains = np.zeros(
            origins
        )  # what both texts of an origin hold of the first ten ranks, in all queries
        for ranked in scores.values():
            for rank, name in enumerate(
                sorted(ranked, key=ranked.__getitem__, reverse=True)[:10], start=1
            ):
                if (number := int(name.split("-")[0])) < origins:
                    gains[number] += 1 / np.log2(1 + rank)
        votes = gains.sum() ** 2 / (gains**2).sum()
        assert (tilt.queries, tilt.testable, tilt.verdict()) == (40, False, "inconclusive")
        assert tilt.effective_n == pytest.approx(votes)
        assert gate(result, max_tilt=1).outcome == "inconclusive"
        twins = next(e for e in result.card if e.estimand.key == "relevant twins")
        assert (twins.effective_n, twins.favours) == (origins, "")
        ones = "one" if origins == 1 else "ones"
        words = (
            f"are worth {votes:.3g} independent {ones}, too few for a verdict (10 needed); "
            "nDCG@10 is"
        )
        assert words in result.verdict("r").sentence

    def test_one_query_that_found_anything(self) -> None:
        collection = paired(12, 40, judged=12)
        run = run_of(collection, {"q0": {"0-de": 1.0, "0-en": 1.0}}, ranker="r")
        result = audit(collection, run, ["P@2"], by="lang")
        [tilt] = result.tilts
        assert (tilt.queries, tilt.effective_n, tilt.value) == (40, 1, 0)
        assert np.isnan([tilt.low, tilt.high, tilt.p]).all()
        assert (tilt.verdict(), gate(result).outcome) == ("inconclusive", "inconclusive")

    def test_page_share_interval_is_not_widened_by_the_tilt(
        self,
    ) -> None:
        collection = paired(60, 60)
        rng = np.random.default_rng(4)
        lift = {f"{n}-{s}": 1.7 * (s == "de") for n in range(60) for s in ("de", "en")}
        scores = {
            f"q{q}": {name: rng.normal() + more for name, more in lift.items()} for q in range(60)
        }
        page = card(collection, scores, resamples=1000)["page"]
        assert 0.8 < page.value < page.high <= 1
        assert page.high - page.low < 0.1
