"""Figure 3: where the protected group stands in the lists that each ranker orders."""

from __future__ import annotations

import polars as pl

from ranktilt.auditing.groups import grouping
from ranktilt.papers.wang.conditions import by_condition
from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.reload import LoadedAudit

BINS = 10
"""Parts of a list of equal length; a list of 200 has bins of 20 ranks, as P@20 reads the first."""


def ranks_of_protected(loaded: LoadedAudit) -> pl.DataFrame:
    """Return the share of the protected group's items in each part of the lists, in %.

    Columns are ``system``, ``ranks``, ``middle`` (a rank), ``share`` and the ``group``, the first
    of the audit's first pair. There is no row where collection or lists could not be read again.
    """
    audit, collection = loaded.audit, loaded.collection
    if collection is None or not loaded.runs or not audit.pairs or _by(loaded) is None:
        return pl.DataFrame()
    protected = audit.pairs[0][0]
    groups = grouping(collection, _by(loaded), audit.pairs[0])
    members = collection.docs.filter(groups.code == groups.number(protected))["id"]
    ranked = pl.concat(
        run.frame().select("doc_id", "rank").with_columns(run=pl.lit(name))
        for name, run in zip(audit.runs, loaded.runs, strict=True)
    )
    if not ranked.height:
        return pl.DataFrame()
    width = -(-ranked.select(pl.col("rank").max()).item() // BINS)
    part = (pl.col("rank") - 1) // width
    of_group = ranked.filter(pl.col("doc_id").is_in(members.implode())).with_columns(part=part)
    counts = of_group.group_by("run", "part", maintain_order=True).agg(items=pl.len())
    # A part of the list without any of them has the share 0, and is no gap in the line.
    every_part = ranked.select("run", part=part).unique()
    every_part = every_part.filter(pl.col("run").is_in(counts["run"].implode()))
    counts = every_part.join(counts, on=["run", "part"], how="left").with_columns(
        pl.col("items").fill_null(0)
    )
    order = {run: number for number, run in enumerate(audit.runs)}
    sorted_counts = counts.sort(pl.col("run").replace_strict(order), "part")
    first, last = pl.col("part") * width + 1, (pl.col("part") + 1) * width
    named = by_condition(sorted_counts, windows=False)
    return named.select(
        pl.when(pl.col("condition") == "neutral")
        .then(pl.col("system"))
        .otherwise(pl.format("{}, {}", "system", "condition"))
        .alias("system"),
        ranks=pl.format("{}–{}", first, last),
        middle=pl.col("part") * width + (width + 1) / 2,
        share=100 * pl.col("items") / pl.col("items").sum().over("run"),
        group=pl.lit(protected),
    )


def draw_ranks(loaded: LoadedAudit) -> tuple[Figure, ...]:
    """Draw the distribution of each ranker; nothing where the lists cannot be read."""
    rows = ranks_of_protected(loaded)
    if not rows.height:
        return ()
    points: dict[str, list[Point]] = {}
    for system, middle, share in rows.select("system", "middle", "share").iter_rows():
        points.setdefault(system, []).append(Point(middle, share, share, share))
    group = rows["group"][0]
    figure = Figure(
        title=f"Ranks of {group} in the lists of each ranker",
        says=f"Share of the items of {group} in each part of the lists; a ranker that favours neither side has one "
        "height everywhere.",
        drawing=lines(
            points,
            x="rank",
            y=f"share of the items of {group}, %",
            domain=(0.0, max(rows["share"].to_list()) * 1.1),
            names=dict(rows.select("middle", "ranks").unique(maintain_order=True).iter_rows()),
        ),
    )
    return (figure,)


def _by(loaded: LoadedAudit) -> str | None:
    by = loaded.audit.spec.get("by")
    return None if by in (None, "source") else str(by)
