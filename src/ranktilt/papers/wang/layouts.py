"""Tables and figures of Wang et al.

A `Layout` is a table of numbers, which its `Selection`s take from results: the rows for which
`where` is true, and one column as the value. Several tables can show the same rows. If all tables
of the paper are printed together, a table shows only the rows for which `home` is true.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from ranktilt.auditing.comparison.result import Comparison
from ranktilt.auditing.groups import ALL
from ranktilt.auditing.pairwise.result import PairwiseAudit
from ranktilt.auditing.result import Audit
from ranktilt.papers.wang.before_and_after import draw_exposures, exposures, preferences
from ranktilt.papers.wang.conditions import by_condition
from ranktilt.papers.wang.ranks import draw_ranks, ranks_of_protected
from ranktilt.reporting.layouts.layout import Layout
from ranktilt.reporting.layouts.selection import Column, Selection, part_of
from ranktilt.reporting.reload import LoadedAudit

Rows = Callable[[Audit], pl.DataFrame]
"""A function from an audit to the rows of a table."""

SOURCE = "Wang et al., NAACL 2024"
"""The paper, as tables and figures print it."""
_BY_GROUP = pl.col("by").is_not_null() & (pl.col("by") != "source")
"""Rows of an audit by a column other than the source."""


def means_by_prompt(audit: Audit) -> pl.DataFrame:
    """Return the means of all documents by ``system`` and ``condition``, which is the prompt."""
    return by_condition(part_of(audit, "means"), windows=False)


def ratios_by_prompt(audit: Audit) -> pl.DataFrame:
    """Return the estimands of each pair of groups by ``system`` and ``condition``, the prompt."""
    return by_condition(part_of(audit, "card"), windows=False)


def means_by_window(audit: Audit) -> pl.DataFrame:
    """Return the means of all documents by ``system`` and ``condition``: window and step."""
    return by_condition(part_of(audit, "means"), windows=True)


def ratios_by_window(audit: Audit) -> pl.DataFrame:
    """Return the estimands of each pair of groups by ``system`` and ``condition``: the window."""
    return by_condition(part_of(audit, "card"), windows=True)


def _lists(means: Rows, card: Rows, *, home: pl.Expr) -> tuple[Selection, ...]:
    """Select the means of all documents, and the exposure ratio of the first pair at any cutoff.

    `means` and `card` return the rows of both from an audit.
    """
    keys: dict[str, Column] = {"dataset": "dataset", "system": "system", "condition": "condition"}
    is_first_pair = (pl.col("a") == pl.col("a").first()) & (pl.col("b") == pl.col("b").first())
    name = pl.col("estimand").str.replace(r"@\d+$", "")
    of_means = Selection(
        result=Audit,
        part=means,
        keys={**keys, "measure": "measure"},
        value="mean",
        where=_BY_GROUP & (pl.col("group") == ALL),
        home=home,
    )
    of_ratios = Selection(
        result=Audit,
        part=card,
        keys={**keys, "measure": name},
        where=_BY_GROUP & (pl.col("kind") == EXPOSURE) & is_first_pair,
        home=home,
        first=True,
    )
    return of_means, of_ratios


WANG_1 = Layout(
    name="wang-1",
    source=SOURCE,
    title="Listwise evaluation: effectiveness, and exposure of the protected over the "
    "unprotected group",
    cells=_lists(means_by_prompt, ratios_by_prompt, home=pl.lit(True)),
    rows=("system",),
    columns=("condition", "measure"),
    panels=("dataset",),
    measures=("P@20", EXPOSURE),
    digits=4,
    labels={
        EXPOSURE: "Exposure ratio",
        "neutral": "Neutral",
        "male": "Male",
        "female": "Female",
        "european": "European",
        "non-european": "Non-European",
    },
    shows="documents of several groups ranked by relevance (an audit by group)",
    command="ranktilt audit DIR -r bm25 -m P@20 -m ExposureRatio --by gender --protected female "
    "--json FILE",
)


def _share(measure: str, column: str) -> Selection:
    """Select a column of a pairwise audit's outcomes; `measure` is its name in the table."""
    return Selection(
        result=PairwiseAudit,
        part="outcomes",
        keys={
            "dataset": "dataset",
            "system": "model",
            "condition": "kind",
            "measure": pl.lit(measure),
        },
        value=column,
        where=pl.col(column).is_not_null(),
    )


WANG_3 = Layout(
    name="wang-3",
    source=SOURCE,
    title="Pairwise evaluation: share of pairs in which the document of the unprotected and of the "
    "protected group is preferred, and the ratio of protected to unprotected",
    cells=(
        _share("unprotected share", "unprotected"),
        _share("protected share", "protected"),
        _share("PairwiseRatio", "ratio"),
    ),
    rows=("system",),
    columns=("condition", "measure"),
    panels=("dataset",),
    measures=("unprotected share", "protected share", "PairwiseRatio"),
    digits=4,
    derived="ratio",
    labels={
        "unprotected share": "Unprotected",
        "protected share": "Protected",
        "PairwiseRatio": "Ratio",
        "relevant": "Relevant pairs",
        "irrelevant": "Irrelevant pairs",
    },
    shows="pairs of documents, one of each group, judged by a language model (a pairwise audit)",
    command="ranktilt pairwise DIR --llm openai:MODEL --by gender --json FILE",
)
WANG_FIG4 = Layout(
    name="wang-fig4",
    source=SOURCE,
    title="Pairwise evaluation before and after fine-tuning: ratio of the protected to the "
    "unprotected share",
    cells=(
        Selection(
            result=Comparison,
            part=preferences,
            keys={
                "dataset": "dataset",
                "system": "system",
                "condition": "kind",
                "target": "when",
                "measure": pl.lit("PairwiseRatio"),
            },
            where=pl.col("value").is_finite(),
        ),
    ),
    rows=("target",),
    columns=("condition",),
    panels=("dataset",),
    measures=("PairwiseRatio",),
    digits=4,
    titles={"target": "Model"},
    labels={
        "PairwiseRatio": "ratio",
        "before": "Before",
        "after": "After",
        "relevant": "Relevant pairs",
        "irrelevant": "Irrelevant pairs",
    },
    shows="choices of two models between the same groups (a comparison of two pairwise audits)",
    command="ranktilt compare AFTER.json BEFORE.json --json FILE",
)
WANG_FIG3 = Layout(
    name="wang-fig3",
    source=SOURCE,
    title="Ranks of the protected group: share of its items in each part of the lists, in percent "
    "(our reading)",
    cells=(
        Selection(
            result=LoadedAudit,
            part=ranks_of_protected,
            keys={
                "dataset": "dataset",
                "system": "system",
                "condition": "ranks",
                "target": "group",
                "measure": pl.lit("share of items"),
            },
            value="share",
        ),
    ),
    draw=draw_ranks,
    reads_collection=True,
    rows=("condition",),
    columns=("system",),
    panels=("dataset",),
    digits=1,
    titles={"condition": "Ranks"},
    shows="the lists of rankers by group (an audit by group, with its collection)",
    command="ranktilt audit DIR -r bm25 --by gender --protected female --json FILE",
)


WANG_FIG4A = replace(
    WANG_FIG4,
    name="wang-fig4a",
    title="Listwise evaluation before and after fine-tuning: exposure ratio (our reading)",
    cells=(
        Selection(
            result=Comparison,
            part=exposures,
            keys={
                "dataset": "dataset",
                "system": "system",
                "target": "when",
                "measure": pl.lit(EXPOSURE),
            },
            value="ratio",
            home=pl.lit(False),
        ),
    ),
    draw=draw_exposures,
    columns=("measure",),
    measures=(EXPOSURE,),
    labels={EXPOSURE: "Exposure ratio", "before": "Before", "after": "After"},
    shows="rankings of the same lists by two models (a comparison of two audits with exposure "
    "ratios)",
    command="ranktilt compare AFTER.json BEFORE.json --json FILE",
)
LAYOUTS = (
    WANG_1,
    replace(
        WANG_1,
        name="wang-2",
        title="Listwise evaluation at several window and step sizes",
        cells=_lists(means_by_window, ratios_by_window, home=pl.lit(False)),
        rows=("condition",),
        columns=("measure",),
        panels=("dataset", "system"),
        titles={"condition": "Window and step"},
        labels={
            EXPOSURE: "Exposure ratio",
            "neutral window=5 step=1": "window 5, step 1",
            "neutral window=10 step=5": "window 10, step 5",
            "neutral window=10 step=3": "window 10, step 3",
            "neutral window=20 step=10": "window 20, step 10",
        },
        shows="listwise rankings at several window and step sizes (an audit by group)",
        command="ranktilt audit DIR -r 'bm25@200>>listwise:openai:MODEL(window=10,step=5)' -m P@20 "
        "-m ExposureRatio --by gender --protected female --json FILE",
    ),
    WANG_3,
    WANG_FIG3,
    WANG_FIG4,
    WANG_FIG4A,
)
