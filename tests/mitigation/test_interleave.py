"""Interleaving: right on average at every prefix, whatever the run looks like."""

import numpy as np
import pytest

from ranktilt.mitigation.interleave import Interleave
from ranktilt.registry import ranker
from tests.mitigation.patterns import labelled, patterns_of, same_bits
from tests.refusals import refused
from tests.toy import toy


def counts(pattern: str, side: str = "l") -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.cumsum([one == side for one in pattern])


def test_the_mean_share_of_the_first_ranks_is_that_of_the_candidates() -> None:
    collection, run = labelled(["hhhhhhhlll"] * 20)
    found = [
        np.stack([counts(one) for one in patterns_of(collection, Interleave(seed=seed).rank(collection, run))])
        for seed in range(15)
    ]
    held = np.concatenate(found)
    exact = 0.3 * np.arange(1, 11)
    assert (abs(held - exact) < 1).all()
    for k in (1, 3, 5, 10):
        error = held[:, k - 1].std() / len(held) ** 0.5
        assert abs(held[:, k - 1].mean() - exact[k - 1]) <= 3 * error


@pytest.mark.parametrize("strength", [0.25, 0.5, 0.9])
def test_a_part_of_the_way_is_gone_on_average(strength: float) -> None:
    pattern = "hhhhhhlhll"
    collection, run = labelled([pattern] * 250)
    found = patterns_of(collection, Interleave(strength=strength).rank(collection, run))
    held = np.stack([counts(one) for one in found])
    aim = (1 - strength) * counts(pattern) + strength * 0.3 * np.arange(1, 11)
    assert (abs(held - aim) < 1).all()
    assert (abs(held.mean(axis=0) - aim) <= 3.5 * held.std(axis=0) / 250**0.5).all()


def test_within_a_group_the_order_stays_and_scores_are_handed_out_again() -> None:
    collection, run = labelled(["hhhhllll"])
    found = Interleave().rank(collection, run)
    assert patterns_of(collection, found)[0] in ("hlhlhlhl", "lhlhlhlh")
    assert found.scores.tobytes() == run.scores.tobytes()
    assert sorted(d for d in found.docs.tolist() if d < 4) == [d for d in found.docs.tolist() if d < 4]


def test_several_groups_take_turns() -> None:
    collection, run = labelled(["hhhhhhlllggg"] * 250)
    found = patterns_of(collection, Interleave().rank(collection, run))
    for side, share in (("h", 0.5), ("l", 0.25), ("g", 0.25)):
        held = np.stack([counts(one, side) for one in found])
        aim = share * np.arange(1, 13)
        assert (abs(held - aim) < 2).all()
        assert (abs(held.mean(axis=0) - aim) <= 3.5 * held.std(axis=0) / 250**0.5 + 1e-12).all()
    assert {one[0] for one in found} == set("hlg")


def test_nothing_to_do_leaves_the_run_to_the_last_bit() -> None:
    rng = np.random.default_rng(1)
    patterns = ["".join(rng.permutation(list("hhlllg.."))) for _ in range(10)] + ["", "h", "hhh", "..."]
    collection, run = labelled(patterns, [np.sort(rng.normal(size=len(one)))[::-1] for one in patterns])
    assert same_bits(Interleave(strength=0).rank(collection, run), run)
    found = Interleave().rank(collection, run)
    assert patterns_of(collection, found)[-4:] == patterns[-4:]
    for before, after in zip(patterns, patterns_of(collection, found), strict=True):
        assert [one == "." for one in before] == [one == "." for one in after]


def test_a_list_of_ties_favours_nobody_on_average() -> None:
    collection, run = labelled(["hhll", "llhh"] * 150, [[2.0] * 4] * 300)
    for strength in (0.5, 1.0):
        held = np.stack(
            [counts(one) for one in patterns_of(collection, Interleave(strength=strength).rank(collection, run))]
        )
        assert abs(held[:, 0].mean() - 0.5) < 3 * 0.5 / 300**0.5


def test_it_reads_back_and_refuses() -> None:
    for one in (Interleave(), Interleave(by="gender", strength=0.5, seed=2, k=7)):
        assert ranker(repr(one)) == one
    for strength in ("1.5", "-0.1", "nan"):
        with refused(f"interleave: expected a strength from 0 to 1, got {strength}"):
            ranker(f"interleave(strength={strength})")
    with refused("interleave re-ranks candidates; put a ranker before it, such as bm25@100>>interleave"):
        Interleave().rank(toy())
