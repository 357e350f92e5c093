"""An explanation as a text and as a chapter: what differs most comes first, then all differences by size."""

import numpy as np
import pytest

import ranktilt as rt
from ranktilt.probes.explain import Explanation
from ranktilt.reporting.output import table
from ranktilt.reporting.views import view
from tests.reporting.papers.explanations import ENDS, explained, temperatures


@pytest.fixture(scope="module")
def found() -> Explanation:
    return explained(*ENDS)


def test_what_differs_most_comes_first(found: Explanation) -> None:
    every = [effect for one in found.results for effect in one.effects]
    most = max((effect for effect in every if effect.shown), key=lambda effect: abs(effect.g))
    side = "higher" if most.g > 0 else "lower"
    document = view(found)
    assert document.headline.startswith(f"Largest difference from human: {most.what}, {side} in {most.source}.")
    assert table(found).splitlines()[0] == document.headline
    effects, *_ = document.tables
    order = list(dict.fromkeys(row[1].text for row in effects.rows))
    sizes = {what: max(abs(e.g) for e in every if e.what == what) for what in order}
    assert order == sorted(order, key=lambda what: -sizes[what])
    assert [row[0].text for row in effects.rows] == [*found.sources] * 3
    assert [row[2].value for row in effects.rows[:3]] == [e.g for e in every if e.what == order[0]]


def test_without_a_difference_that_is_said() -> None:
    whole = temperatures("human", "llama-t0.2")
    human = whole.docs["text"].to_list()[:12]
    same = rt.Collection(whole.docs.with_columns(text=np.array(human * 2)), whole.queries, whole.qrels)
    said = table(rt.explain(same, ["statistics", "type-token"])).splitlines()
    assert said[0] == "No difference from human is shown in 2 properties."
    assert "llama-t0.2: 12 twins are identical to those of human" in said
