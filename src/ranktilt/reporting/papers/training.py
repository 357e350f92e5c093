"""Tables 1 to 5 of Askari et al. out of a training study."""

from __future__ import annotations

from collections.abc import Iterator

from ranktilt.auditing.groups import ALL
from ranktilt.experiments.training_result import BASELINE, Kind, TrainingStudy
from ranktilt.reporting.papers.cells import PaperCell

_KINDS: dict[str, tuple[Kind, ...]] = {
    "askari-2": ("supervised", "zero-shot"),
    "askari-3": ("supervised",),
    "askari-4": ("first stage",),
    "askari-5": ("seen",),
}
MARKED = "askari-2"
"""The table in which the paper marks what is significantly better."""
BEST = (
    "† significantly better than every other ranker and BM25 on the collection: paired t test, p < .05, Bonferroni "
    "over all pairs of rankers and measures."
)
_SPLITS = {"dev": "validation"}
"""What the paper calls a split."""


def training_tables(study: TrainingStudy) -> list[str]:
    """Name the tables that a training study holds."""
    return [table for table in ("askari-1", *_KINDS) if any(training_cells(study, table))]


def training_cells(study: TrainingStudy, table: str) -> Iterator[PaperCell]:
    """Find the cells of one table."""
    if table == "askari-1":
        yield from _query_counts(study)
    for one in study.of_kind(*_KINDS.get(table, ())):
        if table == "askari-3" and len(one.groups) == 1:
            continue
        for mean in one.means:
            dataset = mean.a if table == "askari-3" else one.name
            shown = mean.run != BASELINE or table not in ("askari-3", "askari-5")
            shown &= not mean.measure.startswith("RR" if table == "askari-4" else ("R@", "R("))  # as in the print
            if shown and (table == "askari-3" or mean.a == ALL):
                mark = "†" if table == MARKED and one.best(mean.run, mean.measure) else ""
                yield PaperCell(
                    table=table, dataset=dataset, system=mean.run, measure=mean.measure, value=mean.value, mark=mark
                )


def _query_counts(study: TrainingStudy) -> Iterator[PaperCell]:
    """Queries with an answer of the reference, by split and domain."""
    for one in (found for found in study.of_kind("first stage") if found.side == study.reference):
        for group in one.groups:
            value = float(one.mean(one.rankers[0], one.measures[0], group).queries)
            measure = f"queries {_SPLITS.get(one.split, one.split)}"
            yield PaperCell(table="askari-1", dataset=group, system="-", measure=measure, value=value)
