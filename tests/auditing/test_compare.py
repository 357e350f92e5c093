"""Two audits side by side: paired differences, what they match on, and what is refused."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.auditing.comparison.compare import compare
from ranktilt.auditing.comparison.match import RunPair, match
from ranktilt.auditing.comparison.result import Comparison
from ranktilt.auditing.effects import Change
from ranktilt.auditing.result import Audit
from ranktilt.reporting.sentences.comparison.compare import change_sentence
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.statistics.correction import detectable_effect
from tests.auditing.arrays import audit_of, noisy, two_group_audit
from tests.refusals import refused

NAN = np.nan
QUICK = 400


def compared(new: Audit, old: Audit, **options: Any) -> Comparison:
    return compare(new, old, **{"resamples": QUICK, **options})


def delta(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    x, y = float(np.mean(a)), float(np.mean(b))
    return 100 * (x - y) / ((x + y) / 2)


class TestByHand:
    """Four queries: before, llm text won two and human text one; now the other way round."""

    NEW = ([1, 1, 0, 0], [0, 0, 1, 0])
    OLD = ([0, 1, 0, 0], [0, 0, 1, 1])

    def test_relative_delta(self) -> None:
        (change,) = compared(two_group_audit(*self.NEW), two_group_audit(*self.OLD)).tilts
        before = (100 * 0.25 / 0.375, -100 * 0.25 / 0.375, 400 / 3)
        assert (change.new, change.old, change.value) == pytest.approx(before)
        assert (change.queries, change.excluded, change.growth) == (
            4,
            0,
            pytest.approx(0, abs=1e-12),
        )
        assert change.p > 0.05
        assert change.low < 0 < change.high
        (change,) = compared(
            two_group_audit([3, 3, 3], [2, 2, 2]), two_group_audit([1, 1, 1], [3, 3, 3])
        ).tilts  # it changes sides and shrinks
        assert (change.new, change.old, change.value, change.growth) == pytest.approx(
            (40, -100, 140, -60)
        )

    def test_effectiveness(self) -> None:
        overall = ([1.0, 0.5, 0.5, 0.25], [0.75, 0.25, 0.25, 0.0])
        new, old = (
            two_group_audit([0, 0, 0, 0], [1, 1, 1, 1], overall=values) for values in overall
        )
        (change,) = compared(new, old).effectiveness
        assert (change.new, change.old, change.value) == (56.25, 31.25, 25.0)
        assert (change.low, change.high, change.error) == (25.0, 25.0, 0.0)
        assert change.p == 2 / 2**4
        assert np.isnan(change.p_corrected)  # of four queries no p can be below .05

    def test_what_is_undefined_on_either_side_is_excluded(self) -> None:
        new = two_group_audit([1, 0.5, NAN, 1], [0.5, 0.5, 0.5, 0.25], overall=[1, 1, 1, 1])
        old = two_group_audit([0.5, NAN, 1, 1], [0.5, 0.5, 0.5, 1.0], overall=[0.5, 1, 1, NAN])
        comparison = compared(new, old)
        (change,), (mean,) = comparison.tilts, comparison.effectiveness
        assert change.new == pytest.approx(delta([1, 1], [0.5, 0.25]))
        assert change.old == pytest.approx(delta([0.5, 1], [0.5, 1]))
        assert (change.queries, change.excluded) == (2, 2)
        assert (mean.queries, mean.excluded, mean.value) == (3, 1, pytest.approx(50 / 3))
        assert (
            "2 of 4 queries excluded: not both human and llm are defined under both runs"
            in note_sentences(comparison.notes)
        )

    def test_a_group_without_any_value_leaves_the_tilt_undefined(self) -> None:
        comparison = compared(
            two_group_audit([0, 0, 0], [0, 0, 0]), two_group_audit([1, 1, 1], [0.5, 1, 1])
        )
        (change,) = comparison.tilts
        assert np.isnan(
            [change.value, change.low, change.growth, change.p, change.p_corrected]
        ).all()
        assert change.dropped == QUICK
        assert comparison.spec["family_size"] == 1
        assert comparison.verdicts()[0].sentence.endswith(
            ": tilt on nDCG@5 is undefined for one of them"
        )


class TestOtherQueries:
    """The four queries of above in both audits, and one query more in each, which tilts the other
    way.
    """

    NEW = two_group_audit(
        [*TestByHand.NEW[0], 0], [*TestByHand.NEW[1], 1], queries=["q0", "q1", "q2", "q3", "q8"]
    )
    OLD = two_group_audit(
        [1, *TestByHand.OLD[0][::-1]],
        [0, *TestByHand.OLD[1][::-1]],
        queries=["q9", "q3", "q2", "q1", "q0"],
    )

    def test_values_are_of_the_common_queries(self) -> None:
        comparison = compared(self.NEW, self.OLD, max_left_out=34)
        (change,), (mean,) = comparison.tilts, comparison.effectiveness
        assert (change.new, change.old) == pytest.approx((100 * 0.25 / 0.375, -100 * 0.25 / 0.375))
        assert (change.queries, change.excluded) == (4, 0)
        assert (mean.new, mean.old, mean.queries) == (37.5, 37.5, 4)
        assert note_sentences(comparison.notes)[0] == (
            "left out: 2 of 6 queries (33.3 %): 1 query only in the new audit ('q8'), "
            "1 query only in the old audit ('q9')"
        )
        assert comparison.verdicts()[0].sentence.endswith(
            " points [−145.1, +400.0], on 4 common queries"
        )
        assert is_turned(change, compared(self.OLD, self.NEW, max_left_out=34).tilts[0])

    def test_they_are_refused_beyond_the_limit(self) -> None:
        with refused(
            "the audits cover different queries: 1 query only in the new one ('q8'), 1 query "
            "only in …"
        ):
            compared(self.NEW, self.OLD, max_left_out=33)
        with refused("--max-left-out: expected a percentage from 0 to 100, got 101"):
            compared(self.NEW, self.OLD, max_left_out=101)
        even = np.full(20, 0.5)
        lone = two_group_audit(even[:18], even[:18])
        assert (
            compared(two_group_audit(even, even), lone).tilts[0].queries == 18
        )  # 2 of 20 is 10 %, no more
        with refused(
            "the audits cover different queries: 1 query only in the new one ('q18'); that is 1 "
            "of 19 (…"
        ):
            compared(two_group_audit(even[:19], even[:19]), lone, max_left_out=5)

    def test_those_that_a_run_learned_from_are_not_counted(self) -> None:
        fitted = {"file": "offset 0.6", "queries": ["q9", "q3"]}
        new = replace(self.NEW, spec={**self.NEW.spec, "runs": [{"fitted_on": fitted}]})
        comparison = compared(new, self.OLD, max_left_out=20)  # 1 of 5, without q9
        assert note_sentences(comparison.notes)[:2] == (
            "1 query left out for all runs, because offset 0.6 learned from it",
            "left out: 1 of 5 queries (20.0 %): 1 query only in the new audit ('q8')",
        )
        assert comparison.tilts == compared(self.NEW, self.OLD, max_left_out=34).tilts
        assert comparison.verdicts()[0].sentence.endswith(", on 4 common queries")
        with refused(
            "the audits cover different queries: 1 query only in the new one ('q8'); that is 1 "
            "of 5 (20.0 %), more than --max-left-out 19; …"
        ):
            compared(new, self.OLD, max_left_out=19)
        # That the older audit holds what the newer one learned from is no fault of either order.
        assert compared(self.OLD, new, max_left_out=20).spec["queries_left_out"] == 2

    def test_it_is_as_if_neither_audit_held_them(self) -> None:
        rng = np.random.default_rng(4)
        new, old = noisy(rng, 40), noisy(rng, 40)
        fewer = [
            replace(audit, queries=audit.queries[2:], values=audit.values[..., 2:])
            for audit in (new, old)
        ]
        for pair in ((new, fewer[1]), (fewer[0], old)):
            comparison, alone = compared(*pair), compared(*fewer)
            assert (comparison.tilts, comparison.effectiveness) == (
                alone.tilts,
                alone.effectiveness,
            )
            assert [
                v.sentence.replace(", on 38 common queries", "") for v in comparison.verdicts()
            ] == [v.sentence for v in alone.verdicts()]

    def test_random_labels_and_identical_runs_say_so(self, tmp_path: Path) -> None:
        even = np.full(20, 0.5)
        new, old = (two_group_audit(even[:n], even[:n], null=np.zeros(9)) for n in (20, 19))
        comparison = compared(new, old)
        assert note_sentences(comparison.notes)[0].endswith(
            "('q19'); medians of random labels still use all queries"
        )
        (verdict,) = comparison.verdicts()
        assert (
            verdict.sentence == "run: the two audits are identical on nDCG@5, on 19 common queries"
        )
        assert Comparison.load(comparison.save(tmp_path / "found.json")).verdicts() == [verdict]


class TestPairing:
    def test_the_interval_is_a_paired_bootstrap(self) -> None:
        rng = np.random.default_rng(2)
        new, old = noisy(rng), noisy(rng, lift=0.1)
        (change,) = compare(new, old, resamples=4000).tilts
        columns = [audit.values[0, 0, group] for audit in (new, old) for group in (1, 2)]
        draws = np.random.default_rng(7).integers(0, 100, (4000, 100))
        means = [c[draws].mean(axis=1) for c in columns]
        deltas = [200 * (means[i] - means[i + 1]) / (means[i] + means[i + 1]) for i in (0, 2)]
        ends = np.quantile(deltas[0] - deltas[1], [0.025, 0.975])
        assert [change.low, change.high] == pytest.approx(ends, abs=0.6)
        assert change.error == pytest.approx(np.std(deltas[0] - deltas[1]), rel=0.05)
        grown = np.quantile(np.abs(deltas[0]) - np.abs(deltas[1]), [0.025, 0.975])
        assert [change.growth_low, change.growth_high] == pytest.approx(grown, abs=0.6)

    def test_the_order_of_queries_does_not_matter(self) -> None:
        rng = np.random.default_rng(3)
        new, old = noisy(rng, 40), noisy(rng, 40)
        order = rng.permutation(40)
        shuffled = replace(
            old, queries=tuple(old.queries[i] for i in order), values=old.values[..., order]
        )
        straight, mixed = (compared(new, baseline).tilts[0] for baseline in (old, shuffled))
        assert mixed.value == pytest.approx(straight.value)
        assert mixed.error == pytest.approx(straight.error, rel=0.2)
        (back,) = compared(shuffled, new).tilts
        assert (back.low, back.high, back.p) == (-mixed.high, -mixed.low, mixed.p)


def is_turned(new: Change, back: Change) -> bool:
    """Whether one comparison is the other with the audits exchanged, to the last bit."""
    turned = [
        (new.value, back.value),
        (new.low, back.high),
        (new.high, back.low),
        (new.growth, back.growth),
        (new.growth_low, back.growth_high),
        (new.growth_high, back.growth_low),
    ]
    equal = [
        (getattr(new, k), getattr(back, k))
        for k in ("error", "growth_error", "p", "p_corrected", "queries")
    ]
    equal += [
        (new.new, back.old),
        (new.old, back.new),
        (new.neutral_new, back.neutral_old),
        (new.dropped, back.dropped),
    ]
    return same(*zip(*equal, strict=True)) and same(
        *zip(*((x, -y) for x, y in turned), strict=True)
    )


def same(first: npt.ArrayLike, second: npt.ArrayLike) -> bool:
    return np.array_equal(np.asarray(first), np.asarray(second), equal_nan=True)


@given(st.integers(1, 40), st.integers(0, 2**32), st.booleans())
@settings(max_examples=40)
def test_exchanging_the_audits_negates_everything_exactly(
    queries: int, seed: int, twins: bool
) -> None:
    rng = np.random.default_rng(seed)
    null = None if twins else rng.normal(20, 10, 100)
    shape = (1, 2, 3, queries)
    tables = [np.where(rng.random(shape) < 0.1, NAN, rng.integers(0, 4, shape) / 3) for _ in "no"]
    new, old = (audit_of(t, measures=("nDCG@5", "RR"), null=null, resamples=100) for t in tables)
    there, back = (compare(*both, resamples=100) for both in ((new, old), (old, new)))
    assert all(is_turned(x, y) for x, y in zip(there.tilts, back.tilts, strict=True))
    for x, y in zip(there.effectiveness, back.effectiveness, strict=True):
        turned = (-y.value, -y.high, -y.low, y.p, y.p_corrected)
        assert same((x.value, x.low, x.high, x.p, x.p_corrected), turned)


class TestOtherGroups:
    """Groups that are not twins: a tilt is the distance from the median of random labels."""

    def test_each_run_has_its_own_level_seen_from_either_side(self) -> None:
        new, old = (
            two_group_audit([2, 2], [1, 1], null=np.full(500, level)) for level in (70.0, 40.0)
        )  # of both +66.7
        comparison = compared(new, old)
        assert "human and llm are not twins: a tilt is the distance from the median of " in "".join(
            note_sentences(comparison.notes)
        )
        (change,) = comparison.tilts
        assert not change.twins
        assert (change.value, change.growth) == (0, pytest.approx(70 - 200 / 3 - (200 / 3 - 40)))
        turned = change.swapped()
        assert (turned.a, turned.b, turned.new, turned.old) == (
            "llm",
            "human",
            -change.new,
            -change.old,
        )
        assert (turned.neutral_new, turned.neutral_old, turned.growth) == (-70, -40, change.growth)
        assert turned.swapped() == change


def test_rows_are_by_run_and_pair_and_p_in_one_family() -> None:
    rng, groups = np.random.default_rng(5), ("a", "b", "c")
    new, old = (
        audit_of(rng.random((2, 2, 4, 50)), runs="xy", measures=("RR", "P@1"), groups=groups)
        for _ in "no"
    )
    comparison = compared(new, old, correction="bonferroni")
    every = product("xy", [("a", "b"), ("a", "c"), ("b", "c")], ["RR", "P@1"])
    assert [(t.run, (t.a, t.b), t.measure) for t in comparison.tilts] == list(every)
    assert [(m.run, m.measure) for m in comparison.effectiveness] == list(
        product("xy", ["RR", "P@1"])
    )
    assert comparison.spec["family_size"] == 16
    for change in (*comparison.tilts, *comparison.effectiveness):
        assert change.p_corrected == pytest.approx(min(16 * change.p, 1))
    fronts = [v.sentence.split(": ")[0] for v in comparison.verdicts()]
    assert fronts == ["a | b", "a | c", "b | c", "x", "a | b", "a | c", "b | c", "y"]
    assert compared(old, old).verdicts()[0].sentence == "x: the two audits are identical on RR"


class TestMatching:
    def test_runs_by_name_and_common_measures(self) -> None:
        new = audit_of(np.ones((3, 3, 3, 2)), runs="abc", measures=("RR", "nDCG@5", "P@1"))
        old = audit_of(np.ones((3, 2, 3, 2)), runs="cda", measures=("nDCG@5", "RR"))
        matched = match(new, old)
        assert matched.runs == (("a", "a"), ("c", "c"))
        assert matched.measures == ("RR", "nDCG@5")
        assert compared(new, old).spec["primary"] == "RR"
        assert (
            compared(replace(new, spec={**new.spec, "primary": "P@1"}), old).spec["primary"]
            == "nDCG@5"
        )
        assert note_sentences(matched.left_out) == (
            "left out: 1 run only in the new audit ('b')",
            "left out: 1 run only in the old audit ('d')",
            "left out: 1 measure only in the new audit ('P@1')",
        )
        lone = match(
            two_group_audit([1], [1], runs=["dense"]), two_group_audit([1], [1], runs=["bm25"])
        )  # whatever they are called
        assert (lone.runs, lone.left_out) == ((RunPair("dense", "bm25"),), ())

    def test_values_match_measure_group_and_pair_either_way_round(
        self,
    ) -> None:
        values = np.random.default_rng(8).random((1, 2, 3, 9))
        new = audit_of(values, measures=("RR", "P@1"))
        old = audit_of(values[:, ::-1, [0, 2, 1]], measures=("P@1", "RR"), groups=("llm", "human"))
        comparison = compared(new, old)
        assert all(t.value == 0 and t.p == 1 for t in comparison.tilts)
        assert [(t.a, t.b) for t in comparison.tilts] == [("human", "llm")] * 2
        rng = np.random.default_rng(9)
        new, old = noisy(rng, 20), noisy(rng, 20)
        turned = replace(old, tilts=tuple(t.swapped() for t in old.tilts))
        assert turned.pairs == (("llm", "human"),)
        assert compared(new, turned).tilts == compared(new, old).tilts

    def test_no_groups_or_no_judgments(self) -> None:
        new, old = (audit_of(np.full((1, 1, 1, 40), v), groups=(), by=None) for v in (0.5, 0.25))
        comparison = compared(new, old)
        assert (comparison.tilts, comparison.effectiveness[0].value) == ((), 25)
        (verdict,) = comparison.verdicts()
        assert verdict.sentence.startswith("run is more effective than its old run on nDCG@5: ")
        with refused(
            "an audit has no measure: without judgments there is no Relative Δ to compare"
        ):
            compared(two_group_audit([1], [1]), audit_of(np.ones((1, 0, 3, 1)), measures=()))


OTHER = "use the same for both"


@pytest.mark.parametrize(
    ("new", "old", "message"),
    [
        (
            {"queries": ["q1", "q2", "q3"]},
            {"queries": ["q3", "q4", "q1"]},
            "the audits cover different queries: 1 "
            "query only in the new one ('q2'), 1 query only in the old one ('q4'); that is 2 of 4 "
            "(50.0 %), more than "
            "--max-left-out 10; use the same judgments for both",
        ),
        (
            {"queries": ["q1", "q2", "q3"]},
            {"queries": ["a", "b", "c"]},
            "the audits have no query in common: 3 queries "
            "only in the new one ('q1', 'q2', 'q3'), 3 queries only in the old one ('a', 'b', "
            "'c'); use the same judgments for both",
        ),
        ({}, {"by": None}, f"the audits differ in by: 'source' (new) and 'none' (old); {OTHER}"),
        (
            {"ties": "trec_eval"},
            {},
            f"the audits differ in ties: 'trec_eval' (new) and 'expected' (old); {OTHER}",
        ),
        (
            {},
            {"missing": "exclude"},
            f"the audits differ in missing: 'zero' (new) and 'exclude' (old); {OTHER}",
        ),
        (
            {"measures": ["RR"]},
            {"measures": ["P@1"]},
            "the audits have no measure in common: the new one has RR; the old one has P@1; "
            "audit both with the same judgments and measures",
        ),
        (
            {"groups": ["human", "llama"]},
            {"groups": ["human", "gpt"]},
            (
                "the audits have no pair of groups in common: the new one has human,llama; the old "
                "one "
                "has human,gpt; audit both with the same groups"
            ),
        ),
    ],
)
def test_compare_refusals(new: dict[str, Any], old: dict[str, Any], message: str) -> None:
    audits = [two_group_audit([1, 1, 1], [1, 1, 1], **options) for options in (new, old)]
    with refused(message):
        compared(*audits)


def test_notes() -> None:
    even = np.full(30, 0.4)
    assert (
        note_sentences(compared(two_group_audit(even, even), two_group_audit(even, even)).notes)
        == ()
    )
    assert note_sentences(compared(*[two_group_audit(np.ones(29), np.ones(29))] * 2).notes) == (
        (
            "warning: only 29 queries are compared; intervals from fewer than 30 are too narrow to "
            "rely on"
        ),
    )
    for rounding, who in (("none", "the new audit rounds"), ("paper", "both audits round")):
        new, old = (
            two_group_audit(np.full(30, 0.4004), np.full(30, 0.3996), rounding=r)
            for r in ("paper", rounding)
        )
        comparison = compared(new, old)
        assert note_sentences(comparison.notes) == (
            f"{who} means before Relative Δ; this comparison uses unrounded means",
        )
        assert comparison.tilts[0].new == pytest.approx(0.2)
    lone = np.arange(40) == 0
    comparison = compared(two_group_audit(lone, lone), two_group_audit(np.ones(40), np.ones(40)))
    assert comparison.tilts[0].dropped / QUICK == pytest.approx((39 / 40) ** 40, abs=0.08)
    assert (
        "resamples dropped: both groups were 0 under one of the runs"
        in note_sentences(comparison.notes)[-1]
    )


class TestVerdicts:
    HUMAN = np.tile([0.8, 0.6], 30)

    def sentence(self, new: tuple[float, float], old: tuple[float, float], **options: Any) -> str:
        noise = np.tile([0.01, -0.01, 0.02, -0.02], 15)
        audits = [
            two_group_audit(self.HUMAN * a + noise, self.HUMAN * b + noise[::-1], **options)
            for a, b in (new, old)
        ]
        return compared(*audits).verdicts()[0].sentence

    @pytest.mark.parametrize(
        ("new", "old", "side", "growth"),
        [
            (
                (0.5, 1.0),
                (0.9, 1.0),
                "llm than its old run on nDCG@5: difference −56.1",
                " itself grew",
            ),
            (
                (0.9, 1.0),
                (0.5, 1.0),
                "human than its old run on nDCG@5: difference +56.1",
                " itself shrank",
            ),
            ((0.8, 1.0), (1.0, 0.8), "llm than its old run on nDCG@5: difference −44.4", ""),
        ],
    )
    def test_which_side_and_whether_it_grew(
        self, new: Any, old: Any, side: str, growth: str
    ) -> None:
        text = self.sentence(new, old)
        assert text.startswith(f"run leans further toward {side} points [")
        assert text.partition("; the tilt")[2] == growth

    def test_the_other_run_is_named_where_it_has_another_name(self) -> None:
        new, old = (
            two_group_audit(self.HUMAN * a, self.HUMAN, runs=[name])
            for a, name in ((0.5, "dense"), (0.9, "bm25"))
        )
        verdicts = compared(new, old).verdicts()
        assert verdicts[0].sentence.startswith(
            "dense leans further toward llm than bm25 on nDCG@5: difference −56.1 poi"
        )
        assert verdicts[1].sentence.startswith(
            "dense is less effective than bm25 on nDCG@5: difference "
        )
        assert all((v.run, v.old_run, v.kind) == ("dense", "bm25", "differs") for v in verdicts)
        assert [v.side for v in verdicts] == ["llm", None]


def test_a_difference_is_shown_where_p_and_interval_say_so() -> None:
    comparison = compared(two_group_audit([1, 0.5], [0.5, 1]), two_group_audit([1, 1], [1, 1]))
    cases = [
        (0.1, 2, 0.049, True),
        (-2, -0.1, 0.049, True),
        (0, 2, 0.001, False),
        (-2, 0, 0.001, False),
    ]
    for change, (low, high, p, expected) in product(
        (*comparison.tilts, *comparison.effectiveness), [*cases, (0.1, 2, 0.05, False)]
    ):
        changed = replace(change, low=low, high=high, p_corrected=p, effective_n=50, family_size=1)
        assert changed.is_shown is expected, (low, high, p)


@pytest.mark.parametrize(("points", "says"), [(0.99, False), (1.01, True)])
def test_what_no_difference_could_reach_is_not_given_as_a_number(points: float, says: bool) -> None:
    rng = np.random.default_rng(10)
    comparison = compared(noisy(rng, 40), noisy(rng, 40))
    for change, most in ((comparison.tilts[0], 400), (comparison.effectiveness[0], 100)):
        error = change.error * points * most / change.detectable
        assert change.detectable == pytest.approx(detectable_effect(change.error, 2, change.sample))
        text = change_sentence(replace(change, error=error, p_corrected=0.5))
        assert ("40 queries could not detect any difference" in text) is says
