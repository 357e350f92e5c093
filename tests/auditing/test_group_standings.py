"""Several groups: who stands apart from all others, who cannot be distinguished, and in which
words.
"""

import json
import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.auditing.answer.group_standings import GroupDisplay, GroupStanding, group_displays
from ranktilt.auditing.result import Audit
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.output import table
from ranktilt.reporting.sentences.comparison.group_standings import (
    display_headline,
    display_sentence,
)
from ranktilt.reporting.views import view
from tests.auditing.arrays import audit_of, two_group_audit


def audit_of_groups(means: dict[str, float], noise: float = 0.05, queries: int = 60) -> Audit:
    """Return an audit of one run whose groups have these means, with noise of each query's own."""
    rng = np.random.default_rng(5)
    rows = [np.clip(mean + rng.normal(0, noise, queries), 0, 1) for mean in means.values()]
    return audit_of([[[np.mean(rows, axis=0), *rows]]], groups=tuple(means), resamples=400)


CASES = {
    "one above": (
        {"b": 0.4, "a": 0.7, "c": 0.4, "d": 0.4},
        "run: a is favoured over all others; [bcd], [bcd] and [bcd] cannot be distinguished",
    ),
    "one below": (
        {"a": 0.6, "b": 0.6, "z": 0.2},
        "run: all others are favoured over z; [ab] and [ab] cannot be distinguished",
    ),
    "one between": (
        {"a": 0.7, "b": 0.7, "m": 0.5, "y": 0.3, "z": 0.3},
        "run: m is favoured over 2 others, and 2 are favoured over it; [ab] and [ab] cannot "
        "be distinguished; nor can [yz] and [yz]",
    ),
    "all apart": (
        {"a": 0.3, "b": 0.5, "c": 0.7},
        "run: every group stands apart from all others, the most favoured first: c, b and a",
    ),
    "none apart": (
        {"a": 0.5, "b": 0.5, "c": 0.5},
        "run: none of the 3 groups can be distinguished from another",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_sentence_of_groups(name: str) -> None:
    means, sentence = CASES[name]
    noise = 0.15 if name == "none apart" else 0.02
    audit = audit_of_groups(means, noise)
    (display,) = group_displays(audit)
    assert re.fullmatch(sentence, display_sentence(display)), display_sentence(display)
    assert headline(audit) == f"{display_sentence(display)} (by nDCG@5)."
    assert view(audit).sentences[0].text == display_sentence(display)


def test_groups_within_the_margin_are_level_with_one_another() -> None:
    audit = audit_of_groups({"a": 0.5, "b": 0.5, "c": 0.5}, noise=0.005)
    (display,) = group_displays(audit)
    assert display_sentence(display) == "run: all 3 groups are level with one another"


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([0.3, 0.36, 0.42, 0.5, 0.7]), min_size=3, max_size=6))
def test_letters_agree_with_every_verdict(means: list[float]) -> None:
    audit = audit_of_groups({f"g{number}": mean for number, mean in enumerate(means)}, noise=0.1)
    (display,) = group_displays(audit)
    letters = {row.group: set(row.letters) for row in display.standings}
    for a, b in combinations(letters, 2):
        is_favoured = audit.verdict("run", a, b).kind == "favours"
        assert bool(letters[a] & letters[b]) != is_favoured
    leads = [row.lead for row in display.standings]
    assert leads == sorted(leads, reverse=True)
    assert sum(row.over for row in display.standings) == sum(row.under for row in display.standings)


def test_ten_groups_are_summed_up_before_their_pairs() -> None:
    means = {f"g{number}": 0.4 for number in range(9)} | {"best": 0.8}
    audit = audit_of_groups(means, noise=0.02)
    assert len(audit.judged_pairs) == 45
    sentences = [line.text for line in view(audit).sentences]
    assert sentences[0].startswith("run: best is favoured over all others; ")
    assert len(sentences) == 46
    printed = table(audit, "markdown")
    assert "**Groups, the most favoured first**" in printed
    assert printed.index("**Groups") < printed.index("**Means")
    row = next(line for line in printed.splitlines() if "| best |" in line)
    assert [cell.strip() for cell in row.split("|")][4:7] == ["a", "9", "0"]


def test_headline_of_overlapping_sets() -> None:
    """Six groups, of which only the ends differ: first over the last two, second over the last."""
    counts = {"a": (2, 0), "b": (1, 0), "c": (0, 0), "d": (0, 0), "e": (0, 1), "f": (0, 2)}
    standings = [
        GroupStanding(
            run="run", group=group, lead=0.0, low=0.0, high=0.0, over=over, under=under, letters=""
        )
        for group, (over, under) in counts.items()
    ]
    sets = (("a", "b", "c", "d"), ("b", "c", "d", "e"), ("c", "d", "e", "f"))
    display = GroupDisplay(run="run", standings=tuple(standings), sets=sets, level=0)
    assert display_headline(display) == (
        "run favours a over 2 of 5 other groups, and 2 groups over f; 12 of 15 pairs cannot be "
        "distinguished"
    )
    few = replace(display, sets=(("a", "b"), ("c", "d")))
    assert display_headline(few) == display_sentence(few)


def test_two_groups_and_chosen_pairs_have_no_letters() -> None:
    assert group_displays(two_group_audit(np.full(40, 0.5), np.full(40, 0.6))) == ()
    audit = audit_of_groups({"a": 0.3, "b": 0.5, "c": 0.7})
    audit_of_a = replace(
        audit, tilts=tuple(tilt for tilt in audit.tilts if "a" in (tilt.a, tilt.b))
    )
    assert group_displays(audit_of_a) == ()


def test_file_holds_the_standings() -> None:
    audit = audit_of_groups({"a": 0.3, "b": 0.5, "c": 0.7})
    rows = json.loads(audit.to_json())["standings"]
    assert [(row["group"], row["letters"], row["over"], row["under"]) for row in rows] == [
        ("c", "a", 2, 0),
        ("b", "b", 1, 1),
        ("a", "c", 0, 2),
    ]
    # Relative Δ of .7 and .5 is 33.3, of .7 and .3 80.0: c leads by their mean.
    assert rows[0]["lead"] == pytest.approx((33.3 + 80.0) / 2, abs=3)


def test_first_figure_of_groups() -> None:
    means = {f"g{number}": 0.4 for number in range(9)} | {"best": 0.8}
    (chart,) = view(audit_of_groups(means, noise=0.02)).first_figure_blocks
    assert isinstance(chart, IntervalChart)
    assert len(chart.rows) == 10
    first = chart.rows[0]
    (reading,) = first.readings
    assert (first.label, reading is not None) == ("best", True)
    assert reading is not None
    assert reading.text.endswith(" a")
    assert reading.tone == "first"
    assert reading.mark.low < reading.mark.value < reading.mark.high


def test_first_figure_of_many_groups_draws_both_ends() -> None:
    means = {f"g{number:02}": 0.1 + 0.05 * number for number in range(14)}
    (chart,) = view(audit_of_groups(means, noise=0.01)).first_figure_blocks
    assert isinstance(chart, IntervalChart)
    labels = [row.label for row in chart.rows]
    assert labels == [f"g{number:02}" for number in (13, 12, 11, 10, 9, 4, 3, 2, 1, 0)]
    assert "Drawn: the 5 most and least favoured of 14 groups." in chart.description


def test_interval_of_a_lead() -> None:
    audit = audit_of_groups({"a": 0.7, "b": 0.5, "c": 0.3})
    (display,) = group_displays(audit)
    top = display.standings[0]
    pairs = [tilt for tilt in audit.tilts if tilt.a == top.group]
    assert len(pairs) == 2
    assert top.low == pytest.approx(np.mean([tilt.low - tilt.neutral for tilt in pairs]))
    assert top.high == pytest.approx(np.mean([tilt.high - tilt.neutral for tilt in pairs]))
