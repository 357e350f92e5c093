"""Two pairwise audits side by side: by hand, what is excluded, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt import Audit, Comparison, PairwiseAudit, compare, table
from ranktilt.auditing.pairwise.result import QueryChoices
from ranktilt.errors import UserError
from ranktilt.reporting.papers.figures import paper_figures
from ranktilt.reporting.papers.results import cells_of, tables_of
from ranktilt.reporting.views.compare import choices_of, ratios
from tests.auditing.arrays import noisy, one
from tests.refusals import refused

SPEC = {"by": "gender", "count_rule": "each", "level": 5.0, "correction": "holm", "resamples": 500, "asked": "x"}


def result(
    chosen: dict[str, tuple[int, int]], model: str = "model", kind: Any = "relevant", **spec: Any
) -> PairwiseAudit:
    """What was chosen of women and men in each query."""
    rows = [
        QueryChoices(kind, query, 4, 8, women, men, 0, 8 - women - men, women + men, 0)
        for query, (women, men) in chosen.items()
    ]
    return PairwiseAudit({**SPEC, **spec}, model, "female", "male", (), by_query=tuple(rows))


NEW = {"q0": (3, 1), "q1": (2, 2), "q2": (1, 3), "q3": (4, 0)}
OLD = {"q3": (2, 2), "q0": (1, 3), "q2": (1, 3), "q1": (2, 2)}


def compared(new: PairwiseAudit, old: PairwiseAudit) -> Comparison:
    return compare(new, old, resamples=500)


def test_by_hand() -> None:
    """10 of 16 choices against 6 of 16: +12.5 points against −12.5; only q0 and q3 differ."""
    found = compared(result(NEW, "after"), result(OLD, "before"))
    (change,) = found.estimates
    assert (change.new, change.old, change.value, change.growth) == (0.125, -0.125, 0.25, 0)
    assert change.p == 0.5  # exchanging one of q0 and q3 gives 8 of 16 on either side
    assert (change.run, change.old_run, change.a, change.b) == ("after", "before", "female", "male")
    assert (change.queries, change.excluded) == (4, 0)
    before, after = ratios(change)
    assert (before.value, after.value) == pytest.approx((6 / 10, 10 / 6))
    assert before.low <= before.value <= before.high
    back = compared(result(OLD, "before"), result(NEW, "after")).estimates[0]
    assert (back.value, back.low, back.high, back.p) == (-change.value, -change.high, -change.low, change.p)


def test_both_kinds_are_one_family() -> None:
    rows = [result(chosen, kind=kind).by_query for chosen in (NEW, OLD) for kind in ("relevant", "irrelevant")]
    new, old = (replace(result(NEW), by_query=a + b) for a, b in (rows[:2], rows[2:]))
    found = compared(new, old)
    assert list(choices_of(found)) == ["relevant", "irrelevant"]
    assert [change.p_corrected for change in found.estimates] == [1.0, 1.0]


def test_a_model_that_becomes_fair_is_said_to_tilt_less() -> None:
    tilted = {f"q{n}": (n % 2, 8 - n % 2) for n in range(40)}
    fair = {f"q{n}": (4 - n % 3, 4) for n in range(40)}  # 121 of 281 against 20 of 320
    found = compared(result(fair, "after"), result(tilted, "before"))
    (verdict,) = found.verdicts()
    assert verdict.shown
    assert verdict.sentence.startswith(
        "after lies further toward female than before in preference on relevant pairs: difference +36.8 points ["
    )
    assert verdict.sentence.endswith("; the tilt itself shrank")
    assert "Preference: female chosen among the answers that could be read, less 50 %" in table(found)


def test_queries_in_which_a_model_decides_nothing_are_excluded() -> None:
    found = compared(result({**NEW, "q4": (0, 0)}), result({**OLD, "q4": (4, 0)}))
    assert (found.estimates[0].value, found.estimates[0].excluded) == (0.25, 1)
    assert "1 of 5 queries excluded: preference on relevant pairs is not defined under both runs" in found.notes


def test_other_pairs_of_the_same_queries_are_noted() -> None:
    found = compared(result(NEW), result(OLD, asked="y"))
    assert found.notes[0].startswith("the models chose between other pairs of the same queries; ")
    assert not any("other pairs" in note for note in compared(result(NEW), result(OLD)).notes)


def test_it_comes_back_from_its_file_and_is_drawn(tmp_path: Path) -> None:
    found = compared(result(NEW, "after", path="lists"), result(OLD, "before"))
    assert Comparison.load(found.save(tmp_path / "found.json")) == found
    assert tables_of(found) == ["wang-fig4"]
    cells = {cell.target: (cell.dataset, cell.system, cell.value) for cell in cells_of(found, "wang-fig4")}
    assert cells == {"before": ("lists", "before", 6 / 10), "after": ("lists", "before", pytest.approx(10 / 6))}
    (figure,) = paper_figures([found], layout="wang-fig4").items()
    assert figure[0] == "wang-figure-4.svg"
    assert b"before: before" in figure[1]
    with refused("nothing to draw: Comparison has no figures", UserError):
        paper_figures([compare(*map(noisy, map(np.random.default_rng, (0, 1))), resamples=100)])


@pytest.mark.parametrize(
    ("old", "message"),
    [
        (replace(result(OLD), protected="male"), "the pairwise audits compare other groups: female "),
        (result(OLD, by="region"), "the pairwise audits compare other groups: female and male by gender (new), female"),
        (
            result(OLD, count_rule="both-agree"),
            "the pairwise audits count choices differently: 'each' (new), 'both-agree' (old); make both with the same "
            "--count-rule",
        ),
        (
            result({"q0": (1, 1), "q9": (1, 1)}),
            "the pairwise audits are over other queries: 3 queries only in the new one ('q1', 'q2', 'q3'), 1 query "
            "only in the old one ('q9'); ask both about the same (--queries)",
        ),
        (one([1], [0]), "expected two audits, or two pairwise audits: NEW.json OLD.json"),
        (result({}), "the pairwise audits are over other queries: 4 queries only in the new one"),
    ],
)
def test_what_cannot_be_compared(old: PairwiseAudit | Audit, message: str) -> None:
    with pytest.raises(UserError) as caught:
        compare(result(NEW), old)
    assert str(caught.value).startswith(message)


def test_nothing_at_all_is_no_comparison() -> None:
    with refused("the pairwise audits hold no choices query by query; make both again (ranktilt pairwise)", UserError):
        compare(result({}), result({}))
