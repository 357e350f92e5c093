"""What a spiral shows: a line a ranker, the middle of both directions, and the collection where it is one."""

import pytest

from ranktilt.reporting.document import Figure
from ranktilt.reporting.views import view
from tests.experiments.growing import grown
from tests.reporting.charts import by_name, points, rows


def figures(*, alone: bool) -> tuple[Figure, Figure]:
    shares, leads = (block for block in view(grown(alone=alone)).blocks("page") if isinstance(block, Figure))
    return shares, leads


def test_a_line_a_ranker_and_dotted_where_none_is_preferred() -> None:
    found = grown(alone=True)
    line, middle, collection = ([row["y"] for row in rows(figures(alone=True)[0].drawing, "line", n)] for n in range(3))
    assert line == pytest.approx([100 * one.share.value for one in found.rounds], abs=0.01)
    assert middle == pytest.approx([100 * one.middle for one in found.rounds], abs=0.01)
    assert collection == pytest.approx([100, 75, 60, 50])
    lead = points(figures(alone=True)[1].drawing)
    assert lead[-1]["y"] == pytest.approx(100 * found.rounds[-1].lead.value, abs=0.01)


def test_collections_that_differ_are_not_drawn_as_one() -> None:
    shares, leads = figures(alone=False)
    assert {row["name"] for row in rows(shares.drawing, "line", 1)} == set(by_name(shares.drawing))
    assert rows(shares.drawing, "line", 2) == []
    assert "Dashed" not in shares.says
    assert "Dashed: the collection." in figures(alone=True)[0].says
    assert len(by_name(leads.drawing)) == 2
