"""Pairs put before judges whose minds are known: shares, position bias and verdicts come out as
they must.
"""

from __future__ import annotations

import csv
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, DataError, PairwiseAudit, Run, UserError, ranker
from ranktilt.auditing.effects import ALPHA
from ranktilt.auditing.pairwise.audit import estimate_outcome, pairwise
from ranktilt.auditing.pairwise.decision_file import read_decisions
from ranktilt.auditing.pairwise.decisions import SCHEMA, Counts, Decisions
from ranktilt.auditing.pairwise.pairs import draw_pairs, two_groups
from ranktilt.auditing.pairwise.result import PairOutcome, Share
from ranktilt.reporting.headline import headline
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.views import view
from ranktilt.statistics.bootstrap import RESAMPLES
from ranktilt.statistics.permutation import sign_flip_p
from ranktilt.statistics.two_way import Dyads
from tests.llm.server import Server
from tests.rankers.llm.judge import Judge, worth
from tests.refusals import refused
from tests.toy import collection_of, jsonl, run_of, write

TILT, FIRST, PROSE = 0.2, 0.15, 0.08
NEUTRAL = "pairwise:openai:tiny(prompt=pairwise-neutral)"


def people(queries: int = 24, per_gender: int = 6) -> Collection:
    """Each query's `each` relevant documents of either gender; those of other queries are
    irrelevant to it.
    """
    chance = random.Random(0)
    docs, qrels = list[dict[str, str]](), dict[str, dict[str, int]]()
    for query, gender, n in product(range(queries), ("female", "male"), range(per_gender)):
        name = f"{gender}-{query}-{n}"
        docs.append({"id": name, "text": f"{gender} worth {chance.random():.6f}", "gender": gender})
        qrels.setdefault(f"q{query}", {})[name] = 1
    return collection_of(docs, {name: f"question {name[1:]}" for name in qrels}, qrels)


def tilted(text: str) -> float:
    """What a passage is worth to a judge who likes men."""
    return worth(text) + TILT * text.startswith("male")


@pytest.fixture
def ask_judge(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., PairwiseAudit]]:
    """Ask a judge behind a server about a collection's pairs."""
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "cache"))

    def ask(
        judge: Judge, collection: Collection | None = None, text: str = NEUTRAL, **options
    ) -> PairwiseAudit:
        with Server(answer=judge) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            options = {
                "by": "gender",
                "protected": "female",
                "pairs": 6,
                "resamples": 2_000,
                **options,
            }
            return pairwise(people() if collection is None else collection, ranker(text), **options)

    return ask


def true_shares() -> dict[str, float]:
    """What the judge does in the long run, computed from how it judges, without a server."""
    chance = np.random.default_rng(1)
    female, male = chance.random((2, 400_000))
    ahead = male + TILT - female
    wins, losses = (ahead > FIRST).mean(), (ahead < -FIRST).mean()
    both = (1 - PROSE) ** 2
    readable = {
        "unprotected": wins * both,
        "protected": losses * both,
        "inconsistent": (1 - wins - losses) * both,
    }
    first = 0.5 + (1 - wins - losses) / 2
    return {
        **readable,
        "unparsed": 1 - both,
        "first": first,
        "preference": losses / (wins + losses),
    }


@pytest.mark.long
def test_a_known_judge_is_recovered(ask_judge) -> None:
    result = ask_judge(Judge(value=tilted, first=FIRST, prose=PROSE))
    kinds = [("relevant", 144, 24), ("irrelevant", 144, 24)]
    assert [(row.kind, row.pairs, row.queries) for row in result.outcomes] == kinds
    for row in result.outcomes:
        for name, true in true_shares().items():
            share = getattr(row, name)
            assert share.low <= true <= share.high, (row.kind, name)
            assert share.high - share.low < 0.3
        assert row.ratio.value == pytest.approx(row.protected.value / row.unprotected.value)
        assert result.verdict(row).side == "male"
        parts = (row.protected, row.unprotected, row.inconsistent, row.unparsed)
        assert sum(part.value for part in parts) == pytest.approx(1)
    kinds = result.spec["llm_answers"]["kinds"]
    assert sum(kinds.values()) == 4 * 144
    assert kinds["off-format"] / 576 == pytest.approx(PROSE, abs=0.04)
    assert headline(result).endswith(" favours male documents on relevant and irrelevant pairs.")


@pytest.mark.parametrize(
    ("first", "is_large"), [(0.5, False), (0.69, False), (0.71, True), (0.29, True)]
)
def test_position_bias_beyond_twenty_points_is_large(first: float, is_large: bool) -> None:
    half = Share(value=0.5, low=0.4, high=0.6)
    row = PairOutcome(
        kind="relevant",
        queries=20,
        pairs=40,
        decided=40,
        protected=half,
        unprotected=half,
        inconsistent=half,
        unparsed=half,
        preference=half,
        first=Share(value=first, low=first - 0.02, high=first + 0.02),
        error=0.05,
        effective_n=20.0,
        p=1.0,
    )
    assert row.has_large_position_bias == is_large


def test_each_answer_by_itself_shows_less_than_pairs_that_agree(ask_judge) -> None:
    result = ask_judge(Judge(value=tilted, first=FIRST, prose=PROSE), count_rule="each")
    shares, row = true_shares(), result.outcomes[0]
    protected = (shares["protected"] + shares["inconsistent"] / 2) / (1 - PROSE)
    assert row.protected.low <= protected <= row.protected.high
    assert row.unparsed.low <= PROSE <= row.unparsed.high
    assert row.protected.value + row.unprotected.value + row.unparsed.value == pytest.approx(1)


def test_position_only_or_prose_judge_decides_nothing(ask_judge) -> None:
    result = ask_judge(Judge(first=10), pairs=2)
    # All of 24 queries say so: fewer than .025^(1/24) of the answers would hardly.
    for row in result.outcomes:
        for share in (row.inconsistent, row.first):
            assert (share.value, share.high) == (1, 1)
            assert share.low == pytest.approx(0.025 ** (1 / 24))
    warning = view(result).sentences[-1]
    assert warning.tone == "warning"
    assert warning.text.startswith("Position bias: the document shown first is named in 100.0 % of")
    assert warning.text.endswith(
        "This is more than 20 points away, so position decides many choices"
    )
    sentence = result.verdict(result.outcomes[0]).sentence
    assert sentence.endswith(
        "inconclusive on relevant pairs: both orders disagree on 48 of 48 pairs"
    )
    result = ask_judge(Judge(prose=1), pairs=1)
    assert [row.unparsed.value for row in result.outcomes] == [1, 1]
    assert [row.family_size for row in result.outcomes] == [1, 1]
    assert np.isnan([row.first.value for row in result.outcomes]).all()
    assert {result.verdict(row).kind for row in result.outcomes} == {"inconclusive"}
    assert (
        "warning: 100% of the answers name no document (first: '2 passages have been provided.')"
        in note_sentences(result.notes)
    )
    with refused(
        "pairwise:openai:tiny(prompt=pairwise-neutral,max_failures=50.0): 100 % of 96 answers "
        "could not be read, "
        "max_failures allows 50 % (first: '2 passages have been provided.')"
    ):
        ask_judge(
            Judge(prose=1),
            pairs=1,
            text="pairwise:openai:tiny(prompt=pairwise-neutral,max_failures=50)",
        )


def test_pairs_are_of_both_sides_seeded_and_of_their_kind() -> None:
    collection = people(queries=5)
    sides = two_groups(collection, "gender", "female")
    drawn = draw_pairs(collection, sides, pairs=7, seed=3)
    assert drawn.frame.equals(draw_pairs(collection, sides, pairs=7, seed=3).frame)
    assert not drawn.frame.equals(draw_pairs(collection, sides, pairs=7, seed=4).frame)
    assert drawn.frame.height == drawn.frame.unique().height == 5 * 2 * 7
    for query, kind, first, second in drawn.frame.iter_rows():
        answers_query = [name.split("-")[1] == query[1:] for name in (first, second)]
        assert answers_query == [kind == "relevant"] * 2
        assert (first.split("-")[0], second.split("-")[0]) == ("female", "male")
    assert note_sentences(drawn.notes) == ()
    part = draw_pairs(collection, sides, pairs=7, seed=3, queries=["q4", "q1"]).frame
    assert part.equals(drawn.frame.filter(pl.col("query").is_in(["q1", "q4"])))
    bare = Collection(collection.docs, collection.queries, collection.qrels.clear())
    drawn = draw_pairs(bare, sides, pairs=2)
    assert drawn.frame["kind"].unique().to_list() == ["irrelevant"]
    assert note_sentences(drawn.notes) == (
        "no document is judged relevant, so all pairs are irrelevant",
    )


def test_candidates_bound_the_pairs() -> None:
    collection = people(queries=3)
    names = {
        f"q{n}": {f"{g}-{m}-0": 1.0 for g in ("female", "male") for m in range(3)} for n in range(2)
    }
    drawn = draw_pairs(
        collection, two_groups(collection, "gender"), pairs=9, candidates=run_of(collection, names)
    )
    counts = drawn.frame.group_by("query", "kind", maintain_order=True).len()["len"]
    assert counts.to_list() == [1, 4, 1, 4]  # relevant and irrelevant ones of two queries
    assert [note.split(" ")[0] for note in note_sentences(drawn.notes)] == ["1", "2", "2"]
    assert (
        note_sentences(drawn.notes)[2]
        == "2 queries have fewer than 9 irrelevant pairs; all of them were used"
    )
    one_side = run_of(collection, {"q0": {"female-0-0": 1.0, "female-1-0": 1.0, "male-1-0": 1.0}})
    lacking = draw_pairs(collection, two_groups(collection, "gender"), pairs=1, candidates=one_side)
    assert lacking.frame.rows() == [("q0", "irrelevant", "male-1-0", "female-1-0")]
    assert note_sentences(lacking.notes) == (
        "2 queries without a text or candidates, so not asked",
        "1 of 1 query without relevant documents on both sides",
    )
    run = Run(
        ("q0",),
        np.array([0, 1]),
        np.array([30]),
        np.ones(1),
        people(queries=4).ids,
        {"file": "run.trec"},
    )
    with refused(
        "run.trec: expected candidates from the collection (first: 'male-2-0')", DataError
    ):
        draw_pairs(people(queries=2), two_groups(people(queries=2), "gender"), candidates=run)


def test_unlabelled_documents_and_default_protected_group() -> None:
    collection = people(queries=4)
    half = (
        pl.col("id").str.ends_with("-0")
        | pl.col("id").str.ends_with("-1")
        | pl.col("id").str.ends_with("-2")
    )
    docs = collection.docs.with_columns(gender=pl.when(half).then("gender"))
    mixed = Collection(docs, collection.queries, collection.qrels)
    drawn = draw_pairs(mixed, two_groups(mixed, "gender"), pairs=50)
    assert (
        note_sentences(drawn.notes)[0]
        == "warning: 24 of 48 documents without gender, so in no pair"
    )
    assert drawn.frame.filter(pl.col("kind") == "relevant").height == 4 * 9
    both = docs.with_columns(
        gender=pl.when(pl.col("id") == "male-0-0").then(pl.lit("female|male")).otherwise("gender")
    )
    several = Collection(both, collection.queries, collection.qrels)
    lost = "warning: 25 of 48 documents without gender or of several, so in no pair"
    assert note_sentences(two_groups(several, "gender").notes) == (lost,)
    sides = two_groups(
        several, "gender", "female"
    )  # a document of several is of the group that is named
    assert note_sentences(sides.notes) == (
        "warning: 24 of 48 documents without gender, so in no pair",
    )
    assert sides.code[collection.ids.to_list().index("male-0-0")] == 1
    collection = people(queries=3)
    assert two_groups(collection, "gender").protected == "male"  # of two as large, the last
    fewer = collection.docs.filter(
        ~((pl.col("gender") == "male") & pl.col("id").str.ends_with("-0"))
    )
    assert (
        two_groups(Collection(fewer, collection.queries, collection.qrels), "gender").protected
        == "male"
    )
    gender = pl.when(pl.col("id").str.ends_with("-1")).then(pl.lit("x")).otherwise("gender")
    third = collection.docs.with_columns(gender=gender)
    three = Collection(third, collection.queries, collection.qrels)
    assert two_groups(three, "gender", "x").unprotected == "rest"
    assert (two_groups(three, "gender", "x").code == (third["gender"] == "x").to_numpy()).all()
    with refused("gender makes 3 groups (female, male, x): name the protected one"):
        two_groups(three, "gender")
    with refused("unknown gender 'y' (valid: female, male, x)"):
        two_groups(three, "gender", "y")
    with refused("unknown column to group by 'sex' (valid: source, gender, length:3)"):
        two_groups(three, "sex")


# Statistics


def drawn_counts(
    seed: int, *, queries: int, mean: tuple[float, ...] = (0.2, 0.3, 0.4, 0.1), spread: int = 8
) -> Counts:
    """Counts of 20 pairs a query, whose shares vary over queries around a mean that is known."""
    chance = np.random.default_rng(seed)
    shares = chance.dirichlet(np.array(mean) * spread, size=queries)
    parts = np.array([chance.multinomial(20, row) for row in shares]).astype(np.float64).T
    first = chance.binomial(40, chance.beta(12, 8, size=queries)).astype(np.float64)
    protected, unprotected, inconsistent, unparsed = parts
    return Counts(
        pairs=np.full(queries, 20.0),
        units=np.full(queries, 20.0),
        protected=protected,
        unprotected=unprotected,
        inconsistent=inconsistent,
        unparsed=unparsed,
        readable=np.full(queries, 40.0),
        first=first,
    )


def judged(counts: Counts, *, resamples: int = RESAMPLES, seed: int = 0) -> PairOutcome:
    """What comes of counts where each row is a query with twins of its own."""
    rows = np.arange(len(counts.pairs))
    pairs = Dyads(rows, rows, rows)
    return estimate_outcome("relevant", counts, pairs, resamples=resamples, seed=seed)


@pytest.mark.long
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of each share, over 44 queries, in 1,000 draws."""
    true = {
        "protected": 0.2,
        "unprotected": 0.3,
        "inconsistent": 0.4,
        "unparsed": 0.1,
        "preference": 0.4,
        "first": 0.6,
    }
    kinds = Counter[str]()
    for seed in range(1_000):
        effect = judged(drawn_counts(seed, queries=44), resamples=400, seed=seed)
        shares = {name: getattr(effect, name) for name in true}
        kinds.update(
            name for name, share in shares.items() if share.low <= true[name] <= share.high
        )
    assert all(920 <= kinds[name] <= 970 for name in true), kinds
    assert 0.93 <= sum(kinds.values()) / 6_000 <= 0.97


def test_error_of_preference_is_that_of_a_ratio_over_queries() -> None:
    counts = drawn_counts(5, queries=200)
    decided = counts.protected + counts.unprotected
    preference = counts.protected.sum() / decided.sum()
    residuals = (counts.protected - preference * decided) / decided.sum()
    result = judged(counts, resamples=400)
    assert result.preference.value == pytest.approx(preference)
    # Resampled queries tell the error of the ratio, a linear formula that of its first order.
    assert result.error == pytest.approx(np.sqrt((residuals**2).sum()), rel=0.1)


def kind_of(outcome: PairOutcome) -> str:
    """The kind of the verdict on it, with a margin of ±5 points."""
    result = PairwiseAudit(
        spec={"margin": 5.0, "count_rule": "both-agree"},
        model="judge",
        protected="female",
        unprotected="male",
        outcomes=(outcome,),
    )
    return result.verdict(outcome).kind


def test_a_fair_judge_is_favoured_for_in_one_of_twenty() -> None:
    even = (0.25, 0.25, 0.4, 0.1)
    outcomes = [
        judged(drawn_counts(seed, queries=30, mean=even), resamples=400, seed=seed)
        for seed in range(300)
    ]
    assert 0.02 <= np.mean([outcome.p < ALPHA for outcome in outcomes]) <= 0.085
    kinds = [kind_of(replace(outcome, p_corrected=outcome.p)) for outcome in outcomes]
    assert kinds.count("favours") <= 0.085 * 300
    many = judged(drawn_counts(0, queries=900, mean=even), resamples=400)
    assert kind_of(replace(many, p_corrected=many.p)) == "level"


def test_favourite_documents_favour_no_side() -> None:
    """A coin labels 60 documents; the judge has an order of them, and decides by it in 44
    queries.
    """
    alone, kinds_of_dyads = 0, []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        sides = rng.random(60) < 0.5
        women, men = (rng.choice(np.flatnonzero(sides == side), 880) for side in (True, False))
        won, ones = (women > men).astype(np.float64), np.ones(880)
        counts = Counts(
            pairs=ones,
            units=ones,
            protected=won,
            unprotected=1 - won,
            inconsistent=0 * ones,
            unparsed=0 * ones,
            readable=2 * ones,
            first=ones,
        )
        queries = np.arange(880) // 20
        effect = estimate_outcome(
            "relevant", counts, Dyads(queries, women, men), resamples=400, seed=seed
        )
        kinds_of_dyads.append(kind_of(replace(effect, p_corrected=effect.p)))
        alone += sign_flip_p(np.bincount(queries, won - 0.5), resamples=400, seed=seed) < ALPHA
        assert effect.error > 0.05  # that of as many fresh decisions: .017
    assert alone > 30
    assert kinds_of_dyads.count("favours") <= 0.085 * 60


def test_too_few_documents_show_nothing() -> None:
    rows, counts = np.arange(20), replace(drawn_counts(0, queries=20), unprotected=np.zeros(20))
    effect = replace(
        estimate_outcome(
            "relevant", counts, Dyads(rows, rows % 5, rows + 5), resamples=200, seed=0
        ),
        p_corrected=0.04,
    )
    assert (effect.effective_n < 5, kind_of(effect)) == (True, "inconclusive")
    assert (
        "are worth 4.58 independent ones, too few for a verdict (10 needed); "
        in chosen().verdict(effect).sentence
    )


def test_exchanging_the_sides_turns_everything() -> None:
    counts = drawn_counts(0, queries=40)
    turned = replace(counts, protected=counts.unprotected, unprotected=counts.protected)
    origins = np.random.default_rng(0).integers(0, 9, (2, 40))
    effect = estimate_outcome(
        "relevant", counts, Dyads(np.arange(40), *origins), resamples=500, seed=0
    )
    turned_effect = estimate_outcome(
        "relevant", turned, Dyads(np.arange(40), *origins[::-1]), resamples=500, seed=0
    )
    assert effect.p == turned_effect.p
    assert turned_effect.preference.value == pytest.approx(1 - effect.preference.value)
    assert (turned_effect.preference.low, turned_effect.preference.high) == pytest.approx(
        (1 - effect.preference.high, 1 - effect.preference.low)
    )
    assert turned_effect.ratio.value == pytest.approx(1 / effect.ratio.value)
    never = replace(
        judged(replace(counts, unprotected=np.zeros(40)), resamples=200), p_corrected=0.001
    )
    assert (never.ratio.value, never.ratio.high) == (np.inf, np.inf)
    assert never.ratio.low == pytest.approx(1 / (0.025 ** (-1 / never.effective_n) - 1))
    assert kind_of(never) == "favours"


# Stored choices


def stored(collection: Collection, choose: Callable[..., str | None], pairs: int = 3) -> Decisions:
    """Choices of the protected document first or second, as a rule makes them."""
    drawn = draw_pairs(collection, two_groups(collection, "gender", "female"), pairs=pairs)
    rows = [
        (query, kind, *order, choose(query, kind, order), "imported")
        for query, kind, first, second in drawn.frame.iter_rows()
        for order in ((first, second), (second, first))
    ]
    return Decisions(
        frame=pl.DataFrame(rows, SCHEMA, orient="row"), sides=drawn.sides, model="stored"
    )


def test_queries_of_one_text_are_one() -> None:
    collection = people(queries=8)
    same = Collection(
        collection.docs, collection.queries.with_columns(text=pl.lit("one text")), collection.qrels
    )
    result = pairwise(same, stored(same, lambda query, kind, pair: pair[0]), resamples=100)
    assert {outcome.queries for outcome in result.outcomes} == {1}
    assert {result.verdict(outcome).kind for outcome in result.outcomes} == {"inconclusive"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queries": []}, "expected query ids, got none"),
        ({"queries": ["q0", "q9", "q8"]}, "2 queries are not in the collection: 'q9'"),
        ({"queries": ["q1"]}, "no pair to count: 1 query has none"),
        (
            {"count_rule": "both"},
            "unknown rule for counting 'both'; did you mean 'both-agree'? (valid: both-agree, ea",
        ),
        ({"resamples": 9}, "expected at least 100 resamples, got 9"),
    ],
)
def test_impossible_options_are_refused(options: dict, message: str) -> None:
    collection = people(queries=2)
    decisions = stored(collection, lambda query, kind, pair: pair[0])
    decisions = replace(decisions, frame=decisions.frame.filter(pl.col("query") == "q0"))
    with pytest.raises(UserError, match="^" + re.escape(message)):
        pairwise(collection, decisions, **{"resamples": 100, **options})
    with refused("expected at least 1 pair per query and kind, got 0"):
        pairwise(collection, ranker(NEUTRAL), by="gender", pairs=0)
    # Before a model is asked, which costs money.
    with refused("unknown correction 'hom'; did you mean 'holm'? (valid: holm, bonferroni)"):
        pairwise(collection, ranker(NEUTRAL), by="gender", correction="hom")


@pytest.fixture(scope="module")
def published(shared_data: Path) -> dict[tuple[str, str, str], dict[str, tuple[float, str]]]:
    """Table 3 of Wang et al. by dataset, model and kind of pairs."""
    probabilities: dict[tuple[str, str, str], dict[str, tuple[float, str]]] = {}
    with (shared_data.parent / "design" / "golden" / "wang.csv").open() as file:
        for row in csv.DictReader(file):
            if row["table"] == "wang-3":
                key = (row["dataset"], row["model"], row["condition"])
                probabilities.setdefault(key, {})[row["measure"]] = (
                    float(row["value"]),
                    row["note"],
                )
    return probabilities


def test_published_shares_give_the_printed_ratios(published) -> None:
    """Of 10,000 pairs as many are chosen as the paper says."""
    misprints, number = [], np.arange(10_000)
    assert len(published) == 24
    for key, cells in published.items():
        protected, unprotected = (
            cells[f"{side} share"][0] for side in ("protected", "unprotected")
        )
        won, lost = (1.0 * (number < round(10_000 * share)) for share in (protected, unprotected))
        lost, ones = lost[::-1], np.ones(10_000)
        effect = judged(
            Counts(
                pairs=ones,
                units=ones,
                protected=won,
                unprotected=lost,
                inconsistent=ones - won - lost,
                unparsed=0 * ones,
                readable=2 * ones,
                first=ones,
            ),
            resamples=100,
        )
        assert (effect.protected.value, effect.unprotected.value) == pytest.approx(
            (protected, unprotected), abs=5e-5
        )
        printed, note = cells["PairwiseRatio"]
        rounding = effect.ratio.value * (0.00005 / protected + 0.00005 / unprotected)
        if abs(effect.ratio.value - printed) > rounding + 0.00005:
            misprints.append((key, f"{effect.ratio.value:.4f}"))
            assert note == f"misprint: the shares give {effect.ratio.value:.4f}"
        else:
            assert not note
    assert misprints == [
        (("trec2022-gender", "GPT-4", "irrelevant"), "1.4456"),
        (("trec2022-location", "GPT-3.5", "irrelevant"), "0.7018"),
    ]


def test_choices_come_back_from_their_file(tmp_path: Path) -> None:
    collection = people(queries=6)
    decisions = stored(
        collection, lambda query, kind, pair: pair[0] if kind == "relevant" else None
    )
    file = write(tmp_path / "choices.jsonl", decisions.contents())
    again = read_decisions(file, collection, decisions.sides)
    assert again.frame.equals(decisions.frame)
    relevant, irrelevant = pairwise(collection, again, resamples=100).outcomes
    assert (relevant.inconsistent.value, irrelevant.unparsed.value) == (1, 1)
    answers = [
        {
            **{name: row[name] for name in ("query", "first", "second")},
            "answer": "[2]" if number % 2 else "2 passages",
        }
        for number, row in enumerate(decisions.frame.iter_rows(named=True))
    ]
    read = read_decisions(
        write(tmp_path / "answers.jsonl", jsonl(answers)), collection, decisions.sides
    )
    assert read.frame["choice"].to_list() == [
        row["second"] if n % 2 else None for n, row in enumerate(answers)
    ]
    assert Counter(read.frame["reading"]) == {"ok": 36, "off-format": 36}


def test_choices_that_say_nothing_about_the_groups_are_counted(tmp_path: Path) -> None:
    collection = people(queries=2)
    rows = [
        ("q0", "female-0-0", "female-0-1"),
        ("q0", "female-0-0", "male-1-0"),
        ("q0", "female-0-0", "male-0-0"),
    ]
    choices = ({"query": query, "first": a, "second": b, "choice": a} for query, a, b in rows)
    file = write(tmp_path / "some.jsonl", jsonl(choices))
    decisions = read_decisions(file, collection, two_groups(collection, "gender", "female"))
    assert note_sentences(decisions.notes) == (
        "some.jsonl: 1 choice not between female and male, left out",
        "some.jsonl: 1 choice between a relevant and an irrelevant document, left out",
    )
    result = pairwise(collection, decisions, resamples=100)
    assert (
        "1 pair shown in one order only, so whether both orders agree is unknown"
        in note_sentences(result.notes)
    )
    assert result.outcomes[0].pairs == 0
    assert (
        pairwise(collection, decisions, count_rule="each", resamples=100)
        .outcomes[0]
        .protected.value
        == 1
    )


GOOD = {"query": "q0", "first": "female-0-0", "second": "male-0-0", "choice": "male-0-0"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{**GOOD, "query": "q9"}], ":1: query 'q9' is not in the collection"),
        ([GOOD, {**GOOD, "first": "nobody"}], ":2: document 'nobody' is not in the collection"),
        (
            [{**GOOD, "choice": "male-0-1"}],
            ":1: choice 'male-0-1' is neither 'female-0-0' nor 'male-0-0'",
        ),
        ([GOOD, GOOD], ":2: line 1 has the same query and documents in this order"),
        (
            [{**GOOD, "second": "female-0-0", "choice": ""}],
            ":1: expected two documents, got 'female-0-0' twice",
        ),
        (
            [{"query": "q0", "first": "female-0-0"}],
            ":1: expected query, first, second, and choice or answer: ",
        ),
        (
            [{"query": "q0", "first": "female-0-0", "second": "male-0-0"}],
            ":1: expected choice or answer, got neither",
        ),
        (
            [{**GOOD, "second": "female-0-1", "choice": ""}],
            ": no choice between documents of both sides; ",
        ),
    ],
)
def test_a_file_of_choices_that_does_not_fit_is_refused(
    lines: list, message: str, tmp_path: Path
) -> None:
    collection, file = people(queries=2), write(tmp_path / "choices.jsonl", jsonl(lines))
    with pytest.raises(DataError, match="^" + re.escape(f"{file}{message}")):
        read_decisions(file, collection, two_groups(collection, "gender", "female"))


# The result, and rankings beside


def chosen(tilt: bool = True, *, margin: float = 50.0) -> PairwiseAudit:
    """Men are chosen in relevant pairs, women and men alike in others."""
    collection = people(queries=20)

    def choose(query: str, kind: str, pair: tuple[str, str]) -> str:
        liked = "male" if (kind == "relevant" and tilt) or int(query[1:]) % 2 else "female"
        return next(name for name in pair if name.startswith(f"{liked}-"))

    return pairwise(collection, stored(collection, choose), resamples=500, margin=margin)


def test_a_result_comes_back_from_its_file(tmp_path: Path) -> None:
    result = chosen()
    assert PairwiseAudit.load(result.save(tmp_path / "pairs.json")) == result
    saved = json.loads((tmp_path / "pairs.json").read_text())
    verdicts = [
        (verdict["kind"], verdict["side"], verdict["margin"]) for verdict in saved["verdicts"]
    ]
    assert verdicts == [("favours", "male", 50.0), ("level", None, 50.0)]
    assert [saved["outcomes"][0]["ratio"][end] for end in ("value", "low")] == [0.0, 0.0]
