"""Offsets: a planted tilt is found and taken away, also where lists show the best of each group
only.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktilt import Collection, DataError, Run, ranker
from ranktilt.mitigation.offset import Offset, OffsetFit, fit_offset, quantile_gap
from ranktilt.reporting.sentences.mitigation.mitigate import offset_sentence
from tests.mitigation.builders import labelled, patterns_of, same_bits
from tests.refusals import refused
from tests.toy import collection_of

TILT, QUERIES = 0.8, 40
LISTED = {"score_order": "rank", "ranker": "listed"}


def simulated(
    n_human: int, n_llm: int, depth: int, *, seed: int, tilt: float = TILT
) -> tuple[Collection, Run]:
    """Lists cut at a depth: scores of a scale of each query's own, and a constant more for the
    LLM's documents.
    """
    rng = np.random.default_rng(seed)
    docs = [{"id": f"h{n}", "text": f"text {n}", "source": "human"} for n in range(n_human)]
    docs += [{"id": f"l{n}", "text": f"note {n}", "source": "llm"} for n in range(n_llm)]
    queries = {f"q{n}": f"words {n}" for n in range(QUERIES)}
    collection = collection_of(docs, queries, {query: {"h0": 1} for query in queries})
    scores = rng.gumbel(size=(QUERIES, n_human + n_llm)) * rng.uniform(0.5, 2, (QUERIES, 1))
    scores += rng.normal(size=(QUERIES, 1))
    scores[:, n_human:] += tilt
    rows = np.argsort(-scores, axis=1)[:, :depth]
    values = np.take_along_axis(scores, rows, axis=1)
    offsets = np.arange(QUERIES + 1) * rows.shape[1]
    return collection, Run(
        tuple(queries), offsets, rows.ravel(), values.ravel(), collection.ids, {"ranker": "planted"}
    )


@pytest.mark.parametrize(
    ("n_human", "n_llm", "depth"), [(100, 100, 30), (100, 100, 200), (150, 50, 60), (50, 100, 40)]
)
def test_a_planted_tilt_is_found_within_its_interval(n_human: int, n_llm: int, depth: int) -> None:
    inside, offsets = 0, list[float]()
    for seed in range(20):
        (offset,) = fit_offset(*simulated(n_human, n_llm, depth, seed=seed)).offsets
        inside += offset.low <= -TILT <= offset.high
        offsets.append(offset.value)
        assert offset.group == "llm"
        assert offset.low < offset.value < offset.high
    assert inside >= 16
    assert np.mean(offsets) == pytest.approx(-TILT, abs=0.05)


def test_the_tilt_is_taken_away_a_fit_reads_back_and_quantiles_count_from_the_top(
    tmp_path: Path,
) -> None:
    collection, training = simulated(100, 100, 30, seed=1)
    fit = fit_offset(collection, training)
    fit.save(tmp_path / "offset.json")
    _, run = simulated(100, 100, 200, seed=2)
    llm = (collection.docs["source"] == "llm").to_numpy()

    def gap(run: Run) -> float:
        return float(run.scores[llm[run.docs]].mean() - run.scores[~llm[run.docs]].mean())

    for strength in (0.0, 0.5, 1.0, 2.0):
        left = gap(
            Offset(fit=str(tmp_path / "offset.json"), strength=strength).rank(collection, run)
        )
        assert left == pytest.approx(gap(run) + strength * fit.offsets[0].value)
    assert abs(gap(run) + fit.offsets[0].value) < 0.15
    collection, run = labelled(
        ["hhhll.", "hlhlg"], [[9.0, 8.0, 6.0, 5.5, 3.0, 1.0], [4.0, 3.0, 2.5, 1.0, 0.5]]
    )
    learned = labelled(["hlhlg"], [[4.0, 3.0, 2.5, 1.0, 0.5]])
    fit = fit_offset(*learned)
    assert fit.queries == ("q0",)
    assert [(offset.group, offset.queries) for offset in fit.offsets] == [("gpt", 1), ("llm", 1)]
    assert [offset.value for offset in fit.offsets] == [
        3.25 - 0.5,
        pytest.approx((4 - 3.0 + 2.5 - 1.0) / 2),
    ]
    assert (
        "+2.75 for gpt (1 query, no interval) and +1.25 for llm (1 query, no interval)"
        in offset_sentence(fit)
    )
    path = fit.save(tmp_path / "offset.json")
    assert OffsetFit.load(path) == fit
    correction = Offset(fit=str(path))
    assert ranker(repr(correction)) == correction
    corrected = correction.rank(collection, run)
    assert corrected.spec["fitted_on"] == {"file": str(path), "queries": ["q0"]}
    assert patterns_of(collection, corrected) == ["hhlhl.", "lhghl"]
    assert same_bits(Offset(fit=str(path), strength=0).rank(collection, run), run)
    turned = fit_offset(*learned, reference="llm")
    assert [offset.group for offset in turned.offsets] == ["human", "gpt"]
    assert turned.offsets[0].value == -1.25
    five, scores_of_two = np.array([9.0, 7, 5, 3, 1]), np.array([6.0, 2])
    assert quantile_gap(five, scores_of_two, 5, 2) == pytest.approx(
        ((9 - 0.75 * 2 - 6) + (3 - 0.25 * 2 - 2)) / 2
    )
    assert quantile_gap(scores_of_two, five, 2, 5) == -quantile_gap(five, scores_of_two, 5, 2)
    assert quantile_gap(five, five[:2], 5, 5) == 0
    assert quantile_gap(five[:2], scores_of_two, 5, 2) == pytest.approx(9 - 0.75 * 2 - 6)
    assert np.isnan(quantile_gap(five[:0], scores_of_two, 5, 2))
    assert np.isnan(quantile_gap(five[:1], scores_of_two, 50, 2))


def test_what_cannot_be_fitted_and_a_fit_that_does_not_belong_are_refused(tmp_path: Path) -> None:
    collection, run = labelled(["hhll", "hhl", "hg"])
    none = Run((), [0], [], [], collection.ids)
    with refused("no queries to fit on: the run has none"):
        fit_offset(collection, none)
    with refused("unknown source 'people' (valid: human, gpt, llm)"):
        fit_offset(collection, run, reference="people")
    with refused(
        "no offset for gpt: no list of the 2 queries to fit on allows a comparison with human"
    ):
        fit_offset(
            collection, Run(run.queries[:2], run.offsets[:3], run.docs[:7], run.scores[:7], run.ids)
        )
    with refused("an offset is fitted to scores, and listed gives only an order"):
        fit_offset(collection, replace(run, spec=LISTED))
    collection, run = labelled(["hhll", "hlhl"], [[4.0, 3.5, 2.0, 1.0]] * 2)
    path = fit_offset(collection, run).save(tmp_path / "offset.json")
    with refused("offset needs a fit: offset(fit=FILE), a file that ranktilt mitigate writes"):
        Offset().rank(collection, run)
    for strength in ("2.5", "-1.0", "nan"):
        with refused(f"offset: expected a strength from 0 to 2, got {strength}"):
            ranker(f"offset(strength={strength})")
    with refused(
        f"{path}: was fitted to groups of 'source', not of 'length:2': set by=source", DataError
    ):
        Offset(fit=str(path), by="length:2").rank(*labelled(["hhll"]))
    labelled_other, run_of_other = labelled(["hglh"], [[4.0, 3.5, 2.0, 1.0]])
    with refused(f"{path}: was fitted to human and llm; these lists also have gpt", DataError):
        Offset(fit=str(path)).rank(labelled_other, run_of_other)
    with refused(f"{Offset(fit=str(path))!r} reads scores, and listed gives only an order"):
        Offset(fit=str(path)).rank(collection, replace(run, spec=LISTED))
