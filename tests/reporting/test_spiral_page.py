"""What a spiral shows: a line a ranker."""

import pytest

from ranktilt.reporting.document import Figure
from ranktilt.reporting.views import view
from tests.experiments.growing import grown
from tests.reporting.charts import by_name, points


def figures(*, alone: bool) -> tuple[Figure, Figure]:
    shares, leads = (block for block in view(grown(alone=alone)).blocks("page") if isinstance(block, Figure))
    return shares, leads


def test_a_line_a_ranker_of_its_share_and_of_what_no_preference_would_leave_less() -> None:
    found = grown(alone=True)
    shares, leads = figures(alone=True)
    drawn = [row["y"] for row in points(shares.drawing)]
    assert drawn == pytest.approx([100 * one.share.value for one in found.rounds], abs=0.01)
    assert points(leads.drawing)[-1]["y"] == pytest.approx(100 * found.rounds[-1].lead.value, abs=0.01)
    assert [len(by_name(one.drawing)) for one in figures(alone=False)] == [2, 2]
