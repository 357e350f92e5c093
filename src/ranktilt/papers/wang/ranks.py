"""Figure 3 of Wang et al. (2024): the ranks of the protected group in each ranker's lists."""

from __future__ import annotations

import math

import polars as pl

from ranktilt.auditing.grouping.labels import grouping
from ranktilt.papers.wang.conditions import by_condition
from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.reload import LoadedAudit

BINS = 10
"""Number of parts of equal length into which a list is cut.

The paper's lists have 200 items, so the first part is the 20 ranks that P@20 reads.
"""


def ranks_of_protected(loaded: LoadedAudit) -> pl.DataFrame:
    """Return the share of the protected group's items in each part of the lists, in percent.

    The protected group is the first of the audit's first pair. A row is one part of the lists of
    one ranker: ``system`` (its name and condition), ``ranks`` (such as ``1–20``), ``middle`` (the
    middle rank), ``share`` and ``group``. There are no rows if the collection or the lists could
    not be read again, or if the audit compares sources.
    """
    audit, collection = loaded.audit, loaded.collection
    if collection is None or not loaded.runs or not audit.pairs or _by(loaded) is None:
        return pl.DataFrame()
    pair = audit.pairs[0]
    protected, _ = pair
    groups = grouping(collection, _by(loaded), pair)
    members = collection.docs.filter(groups.code == groups.index(protected))["id"]
    ranked = pl.concat(
        run.frame().select("doc_id", "rank").with_columns(run=pl.lit(name))
        for name, run in zip(audit.runs, loaded.runs, strict=True)
    )
    if not ranked.height:
        return pl.DataFrame()
    width = math.ceil(ranked.select(pl.col("rank").max()).item() / BINS)
    ranked = ranked.with_columns(part=(pl.col("rank") - 1) // width)
    counts = _counts(ranked, members)
    run_order = {run: number for number, run in enumerate(audit.runs)}
    counts = counts.sort(pl.col("run").replace_strict(run_order), "part")
    # The condition of the prompt, which is a part of a run's name, becomes a column.
    counts = by_condition(counts, windows=False)
    with_condition = pl.format("{}, {}", "system", "condition")
    is_neutral = pl.col("condition") == "neutral"
    before = pl.col("part") * width
    first, middle, last = before + 1, before + (width + 1) / 2, before + width
    items_of_run = pl.col("items").sum().over("run")
    return counts.select(
        system=pl.when(is_neutral).then(pl.col("system")).otherwise(with_condition),
        ranks=pl.format("{}–{}", first, last),
        middle=middle,
        share=100 * pl.col("items") / items_of_run,
        group=pl.lit(protected),
    )


def _counts(ranked: pl.DataFrame, members: pl.Series) -> pl.DataFrame:
    """Return the number of the group's items in each part of each run's lists.

    `members` are the ids of the group's documents.
    """
    of_group = ranked.filter(pl.col("doc_id").is_in(members.implode()))
    counts = of_group.group_by("run", "part", maintain_order=True).agg(items=pl.len())
    # A part of the list without a member gets a row with 0, so that the drawn line has no gap.
    every_part = ranked.select("run", "part").unique()
    every_part = every_part.filter(pl.col("run").is_in(counts["run"].implode()))
    counts = every_part.join(counts, on=["run", "part"], how="left")
    return counts.with_columns(pl.col("items").fill_null(0))


def draw_ranks(loaded: LoadedAudit) -> tuple[Figure, ...]:
    """Draw the distribution of each ranker; no figure if the lists cannot be read."""
    rows = ranks_of_protected(loaded)
    if not rows.height:
        return ()
    points: dict[str, list[Point]] = {}
    for system, middle, share in rows.select("system", "middle", "share").iter_rows():
        point = Point(x=middle, value=share, low=share, high=share)
        points.setdefault(system, []).append(point)
    group = rows["group"][0]
    bins = rows.select("middle", "ranks").unique(maintain_order=True)
    figure = Figure(
        title=f"Ranks of {group} in the lists of each ranker",
        description=f"Share of the items of {group} in each part of the lists; "
        "a ranker that favours neither side has the same height everywhere.",
        drawing=lines(
            points,
            x="rank",
            y=f"share of the items of {group}, %",
            domain=(0.0, max(rows["share"].to_list()) * 1.1),
            tick_names=dict(bins.iter_rows()),
        ),
    )
    return (figure,)


def _by(loaded: LoadedAudit) -> str | None:
    """Return the column of the audit's groups; None if the groups are sources."""
    by = loaded.audit.spec.get("by")
    return None if by in (None, "source") else str(by)
