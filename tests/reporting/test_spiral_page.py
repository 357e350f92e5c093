"""What a spiral shows: a line a ranker, the middle of both directions, and the collection where it is one."""

import pytest

from ranktilt.reporting.document import Figure
from ranktilt.reporting.report import report_page
from ranktilt.reporting.views import view
from tests.experiments.growing import grown


def figures(*, alone: bool) -> tuple[Figure, Figure]:
    shares, leads = (block for block in view(grown(alone=alone)).blocks("html") if isinstance(block, Figure))
    return shares, leads


def test_a_line_a_ranker_and_dotted_where_none_is_preferred() -> None:
    found = grown(alone=True)
    line, middle, collection = figures(alone=True)[0].drawing["data"]
    assert line["y"] == pytest.approx([100 * one.share.value for one in found.rounds], abs=0.01)
    assert middle["y"] == pytest.approx([100 * one.middle for one in found.rounds], abs=0.01)
    assert (middle["line"]["dash"], middle["line"]["color"]) == ("dot", line["line"]["color"])
    assert (collection["name"], collection["y"]) == ("the collection", pytest.approx([100, 75, 60, 50]))
    (lead,) = figures(alone=True)[1].drawing["data"]
    assert lead["y"][-1] == pytest.approx(100 * found.rounds[-1].lead.value, abs=0.01)


def test_collections_that_differ_are_not_drawn_as_one() -> None:
    shares, leads = figures(alone=False)
    names = [trace["name"] for trace in shares.drawing["data"]]
    assert names == [
        "planted(favour=0.05)", "planted(favour=0.05)&gt;&gt;human-first", "planted(favour=0.05), middle",
        "planted(favour=0.05)&gt;&gt;human-first, middle",
    ]  # fmt: skip
    assert "Dashed" not in shares.says
    assert "Dashed: the collection." in figures(alone=True)[0].says
    assert len(leads.drawing["data"]) == 2


def test_the_page_says_what_the_middle_is() -> None:
    page = report_page([grown()])
    assert "A ranker that does not care who wrote a text leaves as much of the page to whichever was first" in page
    assert "The last round, less planted(favour=0.05)" in page
