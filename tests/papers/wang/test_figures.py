"""Wang et al.'s Figures 3 and 4a: where a group stands in the lists, and exposures before and
after.
"""

from collections.abc import Sequence

import pytest

from ranktilt import audit, compare
from ranktilt.papers.wang.layouts import draw_ranks, ranks_of_protected
from ranktilt.reporting.layouts.results import cells_of, tables_of
from ranktilt.reporting.reload import LoadedAudit
from tests.toy import collection_of, run_of

ORDERS = {
    "bm25": "fmmmmmmmmmmmmmmmmmmf",
    "bm25(query_template={attribute} {query},attribute=female)": "ffmmmmmmmmmmmmmmmmmm",
}
"""Two women among twenty items: one in the first and one in the last tenth, or both in the
first."""


def loaded(*names: str, measures: Sequence[str] = ("P@2", "ExposureRatio")) -> LoadedAudit:
    """An audit of one list a ranker, with its collection and runs."""
    docs = [
        {
            "id": f"{sex}{number}",
            "text": "x",
            "source": "s",
            "origin": f"{sex}{number}",
            "gender": {"f": "female", "m": "male"}[sex],
        }
        for sex, count in (("f", 2), ("m", 18))
        for number in range(count)
    ]
    collection = collection_of(docs, {"q": "x"}, {"q": {"f0": 1, "m0": 1}})
    runs = [run_of(collection, {"q": scores(ORDERS[name])}, ranker=name) for name in names]
    audited = audit(
        collection,
        runs,
        measures,
        by="gender",
        pairs=[("female", "rest")],
        resamples=100,
    )
    return LoadedAudit(audited, collection, tuple(runs))


def scores(order: str) -> dict[str, float]:
    """Scores that put women and men in this order."""
    count = {"f": 0, "m": 0}
    scores_by_id = {}
    for rank, sex in enumerate(order):
        scores_by_id[f"{sex}{count[sex]}"] = float(len(order) - rank)
        count[sex] += 1
    return scores_by_id


def test_share_of_the_protected_group_in_each_tenth_of_the_lists() -> None:
    rows = ranks_of_protected(loaded(*ORDERS)).select("system", "ranks", "share").rows()
    assert [row for row in rows if row[2]] == [
        ("BM25", "1–2", 50.0),
        ("BM25", "19–20", 50.0),
        ("BM25, female", "1–2", 100.0),
    ]
    assert len(rows) == 20, "a tenth without any has the share 0"


def test_figure_and_table_need_the_collection() -> None:
    loaded_audit = loaded("bm25")
    (figure,) = draw_ranks(loaded_audit)
    assert figure.title == "Ranks of female in the lists of each ranker"
    assert draw_ranks(LoadedAudit(loaded_audit.audit)) == ()
    assert cells_of(LoadedAudit(loaded_audit.audit), "wang-fig3") == []
    cells = {cell.condition: cell.value for cell in cells_of(loaded_audit, "wang-fig3")}
    assert {ranks for ranks, share in cells.items() if share} == {"1–2", "19–20"}
    assert len(cells) == 10


def test_exposures_before_and_after_are_printed_only_by_name() -> None:
    old, new = (loaded(name).audit for name in ORDERS)
    comparison = compare(new, old)
    cells = {cell.target: cell.value for cell in cells_of(comparison, "wang-fig4a")}
    exposure = {
        when: next(row.value for row in audit.card if row.estimand.name == "ExposureRatio")
        for when, audit in (("before", old), ("after", new))
    }
    assert cells == pytest.approx(exposure)
    assert tables_of(comparison) == []


def test_exposures_have_a_cell_for_each_prompt_at_the_first_cutoff() -> None:
    audited = loaded(*ORDERS, measures=["P@2", "ExposureRatio@10", "ExposureRatio"]).audit
    cells = cells_of(compare(audited, audited), "wang-fig4a")
    systems = ("BM25", "BM25, female")
    assert [(cell.system, cell.target) for cell in cells] == [
        (system, when) for when in ("before", "after") for system in systems
    ]
    values = [row.value for row in audited.card if row.name == "ExposureRatio@10"]
    assert [cell.value for cell in cells] == pytest.approx(2 * values)


def test_comparison_without_exposures_has_no_cells() -> None:
    audited = loaded("bm25", measures=["P@2"]).audit
    assert cells_of(compare(audited, audited), "wang-fig4a") == []
