"""Estimands of groups: exposure ratios, shares, attention over all groups; by hand, by brute force,
and as typed.
"""

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ranktilt.measures.base import Estimand, GroupEstimand, estimand, every_estimand, measure
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.exposure.awrf import AWRF, FLOOR
from ranktilt.measures.exposure.base import AttentionEstimand, GroupLists, TargetedEstimand
from ranktilt.measures.exposure.expected_exposure import EEL
from ranktilt.measures.exposure.ndkl import NDKL
from ranktilt.measures.exposure_ratio import ExposureRatio
from ranktilt.measures.ranking import Ranking
from ranktilt.measures.share import Share
from tests.refusals import refused

LETTERS = "abc"
WAYS = [(aggregate, cutoff) for aggregate in ("queries", "means") for cutoff in (None, 2)]
SOFTMAX = [
    replace(ExposureRatio, exposure="softmax", aggregate=aggregate, cutoff=k)
    for aggregate, k in WAYS
]


def lists(
    labels: str | list[str],
    *,
    scores: list[float] | None = None,
    relevant: str = "",
    judged: str = "",
    population: str = "ab",
    repeats: tuple[int, ...] = (),
    groups: int = 2,
) -> GroupLists:
    """Lists of documents with these labels from the top, ``-`` for none and ``x`` for one of both a
    and b.

    `relevant` holds a 1 below each relevant result, `judged` the labels of all relevant documents
    of a query.
    """
    every = [labels] if isinstance(labels, str) else labels
    flat, n = "".join(every), len(every)
    offsets = np.cumsum([0, *map(len, every)])
    falling = np.concatenate([-np.arange(float(len(labels))) for labels in every])
    names, several = LETTERS[:groups], np.zeros(groups + 1)
    several[:2] = 0.5
    parts = np.concatenate([np.eye(groups + 1)[:groups], [several], np.eye(groups + 1)[-1:]])
    numbers = {**{letter: i for i, letter in enumerate(names)}, "x": groups, "-": groups + 1}
    ranking = Ranking(offsets, falling if scores is None else np.array(scores))
    counts = np.array([[float(judged.count(letter)) for letter in (*names, "x", "-")]] * n)
    people = np.array([float(population.count(letter)) for letter in (*names, "x", "-")])
    hits = np.array([flag == "1" for flag in (relevant or "0" * len(flat))], dtype=bool)
    kind = np.array([numbers[letter] for letter in flat], dtype=np.int64)
    return GroupLists(
        ranking=ranking,
        kind=kind,
        relevant=hits,
        names=tuple(names),
        parts=parts,
        judged=counts,
        population=people,
        repeats=np.array(repeats or range(n)),
    )


def answer(of: AttentionEstimand, *args: object, **options: object) -> float:
    return float(of.per_query(lists(*args, **options))[0])  # type: ignore[arg-type]


def divergence(first: list[float], second: list[float]) -> float:
    """Jensen–Shannon divergence from its definition."""
    middle = [(p + q) / 2 for p, q in zip(first, second, strict=True)]
    kl = [
        sum(p * math.log(p / m) for p, m in zip(side, middle, strict=True) if p)
        for side in (first, second)
    ]
    return sum(kl) / 2


def weight(rank: int) -> float:
    return 1 / math.log2(max(rank, 2))


class TestAWRF:
    def test_by_hand(self) -> None:
        """Ranks 1 and 2 weigh 1, rank 3 .631, rank 4 .5; relevant a a a b, in the collection a and
        b alike.
        """
        total = 1 + 1 + 1 / math.log2(3) + 0.5
        seen = [(1 + 0.5) / total, (1 + 1 / math.log2(3)) / total]
        fairness = answer(AWRF, "abba", judged="aaab", population="aabb")
        assert fairness == pytest.approx(1 - divergence(seen, [(0.75 + 0.5) / 2, (0.25 + 0.5) / 2]))
        relevant = answer(replace(AWRF, target="relevant"), "abba", judged="aaab")
        assert relevant == pytest.approx(1 - divergence(seen, [0.75, 0.25]))

    def test_disjoint_is_the_floor_and_depth_is_the_years(self) -> None:
        assert answer(replace(AWRF, target="a:0;b:3"), "aaaa") == pytest.approx(FLOOR)
        assert round(FLOOR, 3) == 0.307
        late = "a" * 500 + "b" * 600
        even = replace(AWRF, target="a:1;b:1")
        assert answer(even, late) == pytest.approx(1 - divergence([1, 0], [0.5, 0.5]))
        sums = [sum(weight(r) for r in span) for span in (range(1, 501), range(501, 1001))]
        shares = [part / sum(sums) for part in sums]
        assert answer(replace(even, year=2021), late) == pytest.approx(
            1 - divergence(shares, [0.5, 0.5])
        )

    def test_unknown_labels_are_left_out_or_a_class_of_their_own(self) -> None:
        out = answer(replace(AWRF, target="relevant"), "a-b", judged="ab--")
        third = 1 / math.log2(3)
        assert out == pytest.approx(
            1 - divergence([1 / (1 + third), third / (1 + third)], [0.5, 0.5])
        )
        total = 2 + third
        as_class = answer(
            replace(AWRF, unlabelled="class"), "a-b", judged="aaa-", population="abbb--"
        )
        target = [
            (0.75 + 0.75 * 0.25) / 2,
            (0 + 0.75 * 0.75) / 2,
            0.25,
        ]  # half of what is known is the population's
        assert sum(target) == 1
        assert as_class == pytest.approx(
            1 - divergence([1 / total, third / total, 1 / total], target)
        )

    def test_document_of_both_groups_counts_half_in_each(self) -> None:
        assert answer(replace(AWRF, target="a:1;b:1"), "x") == pytest.approx(1)
        third, relevant = 1 / math.log2(3), replace(AWRF, target="relevant")
        seen = [(2 + third / 2) / (2 + third), third / 2 / (2 + third)]
        assert answer(relevant, "aax", judged="ax") == pytest.approx(
            1 - divergence(seen, [0.75, 0.25])
        )
        of_three = answer(replace(AWRF, target="a:2;b:1;c:1"), "acb", groups=3)
        third = 1 / math.log2(3)
        seen = [share / (2 + third) for share in (1, third, 1)]
        assert of_three == pytest.approx(1 - divergence(seen, [0.5, 0.25, 0.25]))

    @pytest.mark.parametrize(
        ("labels", "judged"), [("--", "ab"), ("", "ab"), ("ab", "--"), ("ab", "")]
    )
    def test_list_without_label_or_query_without_target_says_nothing(
        self, labels: str, judged: str
    ) -> None:
        assert math.isnan(answer(AWRF, labels, judged=judged))
        if (labels, judged) != ("--", "ab"):
            assert math.isnan(answer(EEL, labels, relevant="1" * len(labels), judged=judged))

    def test_the_tracks_score_is_its_own_ndcg_times_it(self) -> None:
        """Relevant at ranks 1 and 3 of three, of which the best list holds two at the first ranks
        and one below.
        """
        ranked = lists("aba", relevant="101", judged="aab")
        details = AWRF.details(ranked, np.array([True]))
        ndcg = (1 + 1 / math.log2(3)) / (1 + 1 + 1 / math.log2(3))
        assert details["ndcg"] == pytest.approx(ndcg)
        assert details["score"] == pytest.approx(ndcg * float(AWRF.per_query(ranked)[0]))
        assert AWRF.details(lists("aba"), np.array([True])) == {}  # nothing is relevant


class TestNDKL:
    def test_by_hand(self) -> None:
        """a a b b against halves: prefixes are all a, all a, two thirds, and even."""
        kl = [math.log(2), math.log(2), 2 / 3 * math.log(4 / 3) + 1 / 3 * math.log(2 / 3), 0]
        weights = [1 / math.log2(i + 1) for i in range(1, 5)]
        expected = sum(w * k for w, k in zip(weights, kl, strict=True)) / sum(weights)
        assert answer(NDKL, "aabb") == pytest.approx(expected)
        assert answer(NDKL @ 2, "aabb") == pytest.approx(math.log(2))

    def test_a_thousand_tied_documents_of_three_groups(self) -> None:
        """Each group's number among the first i is hypergeometric."""
        sizes, total = (500, 300, 200), 0.0
        for i in range(1, 51):
            for size in sizes:
                for x in range(1, i + 1):
                    chance = math.comb(size, x) * math.comb(1000 - size, i - x) / math.comb(1000, i)
                    total += chance * x / i * math.log(x / i / (size / 1000)) / math.log2(i + 1)
        labels = "".join(letter * size for letter, size in zip(LETTERS, sizes, strict=True))
        expected = total / sum(1 / math.log2(i + 1) for i in range(1, 51))
        assert answer(NDKL @ 50, labels, scores=[0.0] * 1000, groups=3) == pytest.approx(expected)

    @pytest.mark.parametrize(
        "of", [NDKL, NDKL @ 2, replace(NDKL, unlabelled="class", target="population") @ 3]
    )
    @given(st.lists(st.tuples(st.sampled_from("abx-"), st.integers(0, 2)), min_size=1, max_size=6))
    @settings(max_examples=40)
    def test_ties_are_the_mean_over_all_orders(
        self, of: AttentionEstimand, listed: list[tuple[str, int]]
    ) -> None:
        listed = sorted(listed, key=lambda document: -document[1])
        scores = [float(score) for _, score in listed]
        first = [
            {label for label, score in listed if score == top}
            for top in sorted(set(scores), reverse=True)
        ]
        mixed = next((labels for labels in first if labels - {"-"}), set())
        assume(
            of.unlabelled == "class" or "-" not in mixed
        )  # else the weights depend on the order, too
        orders = [o for o in permutations(listed) if [float(score) for _, score in o] == scores]
        divergences = [
            answer(of, "".join(label for label, _ in order), population="aabbbx-")
            for order in orders
        ]
        expected = np.nanmean(divergences) if not np.isnan(divergences).all() else np.nan
        tied = answer(
            of, "".join(label for label, _ in listed), scores=scores, population="aabbbx-"
        )
        assert tied == pytest.approx(expected, nan_ok=True)

    def test_tied_lists_of_many_kinds_are_each_as_they_are_alone(self) -> None:
        labels_by_list = ["ab", "aab", "abb", "ba", "aabb", "bab"]
        together = NDKL.per_query(
            lists(labels_by_list, scores=[0.0] * len("".join(labels_by_list)), population="abb")
        )
        alone = [
            answer(NDKL, labels, scores=[0.0] * len(labels), population="abb")
            for labels in labels_by_list
        ]
        assert together == pytest.approx(alone)

    def test_unlabelled_documents_keep_ranks_and_unlabelled_beginnings_are_skipped(
        self,
    ) -> None:
        assert answer(replace(NDKL, target="a:1;b:1") @ 3, "--ab") == pytest.approx(math.log(2))
        first, second = (
            1 / math.log2(3),
            1 / 2,
        )  # the first label is a's alone, after the second both are even
        expected = first * math.log(2) / (first + second)
        assert answer(replace(NDKL, target="a:1;b:1"), "-ab") == pytest.approx(expected)
        orders = [answer(replace(NDKL, target="a:1;b:3"), order) for order in ("ba-", "b-a")]
        assert answer(
            replace(NDKL, target="a:1;b:3"), "ba-", scores=[2.0, 1.0, 1.0]
        ) == pytest.approx(np.mean(orders))

    @pytest.mark.parametrize("labels", ["aaa", "---", "", "a-"])
    def test_a_list_of_one_group_says_nothing(self, labels: str) -> None:
        assert math.isnan(answer(NDKL, labels))
        assert math.isnan(
            answer(replace(NDKL, target="a:1;b:0"), "ab")
        )  # nor one of a target of nothing

    @given(
        st.lists(st.sampled_from("abc"), min_size=2, max_size=12).filter(
            lambda letters: len(set(letters)) > 1
        )
    )
    @settings(max_examples=40)
    def test_it_is_what_another_library_gives(self, labels: list[str]) -> None:
        oracle = pytest.importorskip(
            "FairRankTune.Metrics.NDKL", reason="needs FairRankTune, an oracle of these tests"
        )
        pandas = pytest.importorskip("pandas")
        groups = dict(enumerate(labels))
        theirs = oracle.NDKL(
            pandas.DataFrame({"r": list(groups)}), groups
        )  # which adds 1e-7 to each share
        assert answer(NDKL, "".join(labels), groups=3) == pytest.approx(theirs, abs=2e-5)


class TestEEL:
    def test_by_hand(self) -> None:
        """Relevant a, a and b; the list shows a, not relevant, b; the ideal shares ranks 1 to 3."""
        third = 1 / math.log2(3)
        deserved = (2 + third) / 3
        loss = (1 - 2 * deserved) ** 2 + (third - deserved) ** 2
        ranked = lists("aab", relevant="101", judged="aab")
        assert float(EEL.per_query(ranked)[0]) == pytest.approx(loss)
        details = EEL.details(ranked, np.array([True]))
        assert details["ee_d"] == pytest.approx(1 + third**2)
        assert details["ee_r"] == pytest.approx(2 * deserved + third * deserved)
        assert loss == pytest.approx(
            details["ee_d"] - 2 * details["ee_r"] + (2 * deserved) ** 2 + deserved**2
        )

    def test_in_2021_all_documents_have_exposure(self) -> None:
        third = 1 / math.log2(3)
        loss = answer(replace(EEL, year=2021), "aab", relevant="101", judged="aab")
        deserved = (2 + third) / 3
        assert loss == pytest.approx((2 - 2 * deserved) ** 2 + (third - deserved) ** 2)

    def test_repeated_rankings_of_a_query_are_one(self) -> None:
        """Each side is first in one of two rankings: together that is ideal, each alone is not."""
        rankings = lists(["abbb", "baaa"], relevant="11001100", judged="ab", repeats=(0, 0))
        losses = EEL.per_query(rankings)
        assert losses[0] == pytest.approx(0)
        assert np.isnan(losses[1])
        assert EEL.details(rankings, ~np.isnan(losses))["rankings"] == 2
        lopsided = lists(["a---b", "a---b"], relevant="1000110001", judged="ab", repeats=(0, 0))
        assert EEL.per_query(lopsided)[0] == pytest.approx((weight(5) - 1) ** 2)

    def test_the_cutoff_is_that_of_the_year(self) -> None:
        deep = "-" * 20 + "ab"
        flags = "0" * 20 + "11"
        assert answer(EEL, deep, relevant=flags, judged="ab") == pytest.approx(
            2
        )  # nothing seen of two that deserve 1
        assert answer(replace(EEL, year=2021), deep, relevant=flags, judged="ab") < 2


def moved(labels: str, cutoff: int, scores: list[float] | None = None) -> float:
    ranking = lists(labels, scores=scores).ranking
    letters = np.array(list(labels))
    return float((Share @ cutoff).contrast(ranking, letters == "a", letters == "b")[0])


def test_share_by_hand() -> None:
    assert moved("aabbbb", 2) == pytest.approx(1 - 2 / 6)
    assert moved("ba-bb-", 3) == pytest.approx(
        1 / 2 - 1 / 4
    )  # unlabelled documents are of neither side
    assert moved("abab", 3, [1.0, 1.0, 1.0, 1.0]) == 0
    assert math.isnan(moved("aaaa", 2))
    assert math.isnan(moved("--ab", 2))


def test_softmax_exposure_by_hand() -> None:
    letters = np.array(list("abba"))
    ranking = Ranking(np.array([0, 4]), np.array([3.0, 2.0, 0.5, -1.0]))
    uncut = replace(ExposureRatio, exposure="softmax").contrast(
        ranking, letters == "a", letters == "b"
    )
    assert uncut[0] == pytest.approx((math.exp(3) + math.exp(-1)) / (math.exp(2) + math.exp(0.5)))
    cut = replace(ExposureRatio, exposure="softmax", cutoff=2).contrast(
        ranking, letters == "a", letters == "b"
    )
    assert cut[0] == pytest.approx(math.exp(3) / math.exp(2))
    # In means: a list of two, and one of 100 in which no document stands out; each list's
    # probabilities sum to 1.
    scores, letters = [[5.0, 4.0], [0.5, *[-0.5] * 99]], np.array(list("ba" + "a" + "b" * 99))
    odds, total = math.exp(-1), 1 + 99 * math.exp(-1)
    ratio = (odds / (1 + odds) + 1 / total) / (1 / (1 + odds) + odds / total)
    of = replace(ExposureRatio, exposure="softmax", aggregate="means")
    ranking = Ranking(np.array([0, 2, 102]), np.concatenate(scores))
    assert of.value(*of.columns(ranking, letters == "a", letters == "b")) == pytest.approx(ratio)
    assert round(ratio, 3) == 0.399
    deep = (
        of @ 1
    )  # cut after the list is summed up: rank 1 holds b in the first list, a in the second
    cut = deep.value(*deep.columns(ranking, letters == "a", letters == "b"))
    assert cut == pytest.approx((1 / total) / (1 / (1 + odds)))


@pytest.mark.parametrize("of", [ExposureRatio @ 2, *SOFTMAX], ids=repr)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("ab"), st.integers(-9, 9)), min_size=1, max_size=5),
        min_size=1,
    )
)
def test_a_constant_added_to_scores_changes_nothing(
    of: GroupEstimand, queries: list[list[tuple[str, int]]]
) -> None:
    queries = [sorted(query, key=lambda document: -document[1]) for query in queries]
    letters = np.array([label for query in queries for label, _ in query])
    answers = []
    for step in (0, 1000):
        scores = [float(score + step * n) for n, query in enumerate(queries) for _, score in query]
        ranking = Ranking(np.cumsum([0, *map(len, queries)]), np.array(scores))
        answers.append(of.value(*of.columns(ranking, letters == "a", letters == "b")))
    assert answers[0] == pytest.approx(answers[1], nan_ok=True)


def test_the_ratio_of_means_is_not_the_mean_of_ratios() -> None:
    ranked = lists(["ab", "ba", "aa"])
    letters = np.array(list("abbaaa"))
    third = 1 / math.log2(3)
    of = replace(ExposureRatio, aggregate="means")
    above, below = of.columns(ranked.ranking, letters == "a", letters == "b")
    assert of.counts(above, below).tolist() == [True, True, False]
    assert of.value(above, below) == pytest.approx(1)
    ratios = ExposureRatio.columns(ranked.ranking, letters == "a", letters == "b")
    assert ExposureRatio.value(*ratios) == pytest.approx((1 / third + third) / 2)


@pytest.mark.parametrize("of", [AWRF @ 3, replace(AWRF, unlabelled="class"), EEL @ 3], ids=repr)
@given(st.lists(st.tuples(st.sampled_from("abx-"), st.integers(0, 2)), min_size=1, max_size=5))
@settings(max_examples=25)
def test_tied_documents_share_the_attention_of_their_ranks(
    of: AttentionEstimand, documents: list[tuple[str, int]]
) -> None:
    """An answer from tied documents is that of the mean attention over all their orders."""
    documents = sorted(documents, key=lambda document: -document[1])
    labels, scores = (
        "".join(label for label, _ in documents),
        [float(score) for _, score in documents],
    )
    orders = [o for o in permutations(range(len(documents))) if [scores[i] for i in o] == scores]
    options = {"judged": "aab", "population": "aabbb-"}
    tied = answer(of, labels, scores=scores, relevant="1" * len(labels), **options)
    # All orders, a document at each rank counting as a part of it: ranks hold mixed documents and
    # nothing is tied.
    kinds = lists(labels).kind
    chance = np.zeros((len(labels), 4))
    for order in orders:
        chance[np.arange(len(labels)), kinds[list(order)]] += 1 / len(orders)
    mixed = lists(labels, relevant="1" * len(labels), **options)
    parts = np.concatenate([chance @ mixed.parts, mixed.parts])
    padded = [
        np.concatenate([np.zeros(len(labels)), row]) for row in (mixed.judged[0], mixed.population)
    ]
    rows = np.arange(len(labels))
    loose = replace(mixed, kind=rows, parts=parts, judged=padded[0][None], population=padded[1])
    assert tied == pytest.approx(float(of.per_query(loose)[0]), nan_ok=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("AWRF(year=2020)@20", "measure AWRF: expected year=2022 or year=2021, got 2020"),
        ("EEL(year=1)", "measure EEL: expected year=2022 or year=2021, got 1"),
        ("AWRF(target=even)", "unknown target of measure AWRF 'even'"),
        ("AWRF(target=a:1;b)", "target of measure AWRF: expected GROUP:SHARE, each once, got 'b'"),
        (
            "AWRF(target=a:1;a:2)",
            "target of measure AWRF: expected GROUP:SHARE, each once, got 'a:2'",
        ),
        (
            "AWRF(target=a:-1;b:2)",
            "target of measure AWRF: expected GROUP:SHARE, each once, got 'a:-1'",
        ),
        (
            "AWRF(target=a:inf;b:2)",
            "target of measure AWRF: expected GROUP:SHARE, each once, got 'a:inf'",
        ),
        ("NDKL(target=a:0;b:0)", "target of measure NDKL: expected a share above 0, got 'a:0;b:0'"),
        ("AWRF(unlabelled=some)", "unknown unlabelled of measure AWRF 'some'"),
        ("Share", "measure Share needs a cutoff, such as Share@10"),
        ("NDSR(rel=2)@3", "measure NDSR takes no option"),
    ],
)
def test_options_that_cannot_be_are_refused(text: str, message: str) -> None:
    with refused(f"{message}…"):
        estimand(text)


def variants() -> list[Estimand]:
    """Every estimand with and without a cutoff if it takes one, and with each of its options."""
    estimands: list[Estimand] = []
    for usual in every_estimand():
        if isinstance(usual, RelativeDelta):
            continue
        takes_cutoff = usual.kind != "twins"
        if takes_cutoff:
            estimands += [usual @ 1, usual @ 20]
        if not usual.needs_cutoff:
            estimands.append(usual)
        with_cutoff = usual @ 5 if takes_cutoff else usual
        for name, valid in usual.choices.items():
            estimands += [replace(with_cutoff, **{name: value}) for value in valid]
    for text in ("nDCG@3", "AP", "AP(rel=2)@5"):
        estimands.append(RelativeDelta(of=measure(text)))
    return estimands


def test_the_text_of_an_estimand_reads_back_as_it() -> None:
    for variant in variants():
        assert estimand(repr(variant)) == variant
    text = "AWRF(target=female:0.5;male:0.5)@20"
    assert repr(estimand(text)) == text


def ratio(labels: str, scores: list[float] | None = None, cutoff: int | None = None) -> float:
    """The ratio of one list, whose documents have these labels from the top."""
    falling = np.array(scores if scores else [-float(n) for n in range(len(labels))])
    ranking, letters = Ranking(np.array([0, len(labels)]), falling), np.array(list(labels))
    return float(
        replace(ExposureRatio, cutoff=cutoff).contrast(ranking, letters == "a", letters == "b")[0]
    )


def test_exposure_ratio_by_hand() -> None:
    third, fifth = 1 / math.log2(3), 1 / math.log2(5)
    assert ratio("abba") == pytest.approx((1 + fifth) / (third + 0.5))
    assert ratio("abba", cutoff=2) == pytest.approx(1 / third)
    assert ratio("ab-a", cutoff=3) == pytest.approx(
        0.5 / third
    )  # the last stays in its group's denominator
    assert ratio("ab", [1.0, 1.0]) == 1
    assert np.isnan([ratio(labels) for labels in ("aa", "bb", "--", "a-")]).all()


@given(
    st.lists(st.tuples(st.sampled_from("ab-"), st.integers(0, 2)), min_size=2, max_size=6),
    st.integers(1, 7),
)
@settings(max_examples=80)
def test_tied_documents_share_the_mean_exposure_of_their_ranks(
    documents: list[tuple[str, int]], cutoff: int
) -> None:
    documents = sorted(documents, key=lambda document: -document[1])
    scores = [float(score) for _, score in documents]
    orders = [o for o in permutations(range(len(documents))) if [scores[i] for i in o] == scores]
    means = []
    for group in "ab":
        mine = [i for i, (label, _) in enumerate(documents) if label == group]
        seen = [
            1 / math.log(2 + o.index(i)) if o.index(i) < cutoff else 0.0
            for o in orders
            for i in mine
        ]
        means.append(sum(seen) / len(seen) if seen else math.nan)
    expected = means[0] / means[1] if means[1] else math.nan
    labels = "".join(label for label, _ in documents)
    assert ratio(labels, scores, cutoff) == pytest.approx(expected, nan_ok=True)


def test_target_takes_bare_labels() -> None:
    question = estimand("AWRF(target=0:3;1:1)@10")
    assert isinstance(question, TargetedEstimand)
    question.check(("source 0", "source 1"))
    with refused("the target of AWRF(target=0:3;1:1)@10 has no share for group 'source 2'"):
        question.check(("source 0", "source 1", "source 2"))
