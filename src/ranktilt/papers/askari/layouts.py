"""Tables of Askari et al.

A `Layout` is a table of numbers, which its `Selection`s take from results: the rows for which
`where` is true, and one column as the value. Several tables can show the same rows. If all tables
of the paper are printed together, a table shows only the rows for which `home` is true. A *study*
trains rankers on the answers of each side (people, or a language model), and measures them. Its
*kinds* of evaluations are the collections on which it does: those that rankers learned from
(``supervised``), others (``zero-shot``), and so on. A *group* is the answers of one side or domain.
A split is a part of the questions, such as ``test``, and the source of an answer is the side that
wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from ranktilt.auditing.groups import ALL
from ranktilt.auditing.result import Audit
from ranktilt.explaining.check_result import CheckResult
from ranktilt.reporting.layouts.layout import Layout
from ranktilt.reporting.layouts.selection import Selection
from ranktilt.training.study_result import BASELINE, Evaluation, Kind, TrainingStudy

SOURCE = "Askari et al., CIKM 2023"
"""The paper, as tables print it."""
DAGGER = "†"
"""Mark of a ranker that is significantly better than all others."""
_DOMAINS = {
    "all": "All",
    "medicine": "Medicine",
    "finance": "Finance",
    "reddit": "Reddit",
    "reddit_eli5": "Reddit",
    "open_qa": "OpenQA",
    "wiki_csai": "Wiki (CSAI)",
}
"""The paper's names of domains."""
_SPLITS = {"dev": "validation"}
"""The paper's names of splits."""
_IS_ALL = pl.col("group") == ALL
"""Rows of all documents, whatever their group."""
_NOT_AT_HOME = pl.lit(False)
"""Value of `Selection.home` for rows that are in another table.

A table shows them only if it is asked for by name.
"""
_QUERIES = (
    pl.when(pl.col("split").is_null())
    .then(pl.lit("queries"))
    .otherwise(pl.format("queries {}", "split"))
)
"""Name of the number of queries, with the split if there is one."""


def means_of_kinds(*kinds: Kind) -> Callable[[TrainingStudy], pl.DataFrame]:
    """Return a function that lists the means of a study's evaluations of these kinds.

    The best ranker of each evaluation has a †.
    """

    def means(study: TrainingStudy) -> pl.DataFrame:
        return pl.DataFrame(list(_means(study, *kinds)), infer_schema_length=None)

    return means


def _means(study: TrainingStudy, *kinds: Kind) -> Iterator[dict[str, Any]]:
    """Yield the mean of each ranker, group and measure in evaluations of these kinds."""
    for evaluation in study.of_kind(*kinds):
        for mean in evaluation.means:
            yield {
                "dataset": evaluation.name,
                "split": evaluation.split,
                "group": mean.a,
                "groups": len(evaluation.groups),
                "system": mean.run,
                "measure": mean.measure,
                "value": mean.value,
                "mark": DAGGER if evaluation.best(mean.run, mean.measure) else "",
            }


def query_counts(study: TrainingStudy) -> pl.DataFrame:
    """Return the number of queries with an answer of the reference, by split and domain.

    The reference is the side of people's answers.
    """
    rows = []
    for evaluation in study.of_kind("first stage"):
        if evaluation.side == study.reference:
            split = _SPLITS.get(evaluation.split, evaluation.split)
            for group in evaluation.groups:
                queries = _query_count(evaluation, group)
                rows.append({"group": group, "measure": f"queries {split}", "value": queries})
    return pl.DataFrame(rows)


def _query_count(evaluation: Evaluation, group: str) -> float:
    """Return the number of queries that a group's mean covers."""
    return float(evaluation.mean(evaluation.rankers[0], evaluation.measures[0], group).queries)


def _of_study(kinds: tuple[Kind, ...], where: pl.Expr, dataset: str = "dataset") -> Selection:
    """Select a study's means in evaluations of these kinds.

    `dataset` is the column with the names of data sets.
    """
    keys = {"dataset": dataset, "system": "system", "measure": "measure"}
    return Selection(result=TrainingStudy, part=means_of_kinds(*kinds), keys=keys, where=where)


_ALL_DOCUMENTS = Selection(
    result=Audit,
    part="means",
    keys={"dataset": "dataset", "system": "system", "measure": "measure"},
    value="mean",
    where=_IS_ALL,
    home=pl.col("by").is_null(),
)
"""The means of all documents in an audit."""
_NO_RECALL = ~pl.col("measure").str.contains(r"^R[@(]")
"""Rows of measures other than recall."""
_NO_RECIPROCAL_RANK = ~pl.col("measure").str.starts_with("RR")
"""Rows of measures other than the reciprocal rank."""
_TRAINED = pl.col("system") != BASELINE
"""Rows of rankers that the study trained."""

ASKARI_2 = Layout(
    name="askari-2",
    source=SOURCE,
    title="Effectiveness of the rankers on each collection",
    cells=(
        _ALL_DOCUMENTS,
        replace(_of_study(("supervised", "zero-shot"), _IS_ALL & _NO_RECALL), mark="mark"),
    ),
    rows=("system",),
    measures=("AP@1000", "nDCG@10", "RR@10"),
    digits=3,
    leading_zero=False,
    mark=DAGGER,
    mark_note="† significantly better than every other ranker and BM25 on the collection: "
    "paired t test, p < .05, Bonferroni over all pairs of rankers and measures.",
    shows="rankings measured without grouping (an audit)",
    command="ranktilt audit DIR -r bm25 -m AP@1000 -m nDCG@10 -m RR@10 --by none --json FILE",
)

_BY_DOMAIN = pl.col("by").is_not_null() & (pl.col("by") != "source")
"""Whether an audit's groups are domains."""
_DOMAIN_OR_DATASET = pl.when(_BY_DOMAIN).then(pl.col("group")).otherwise(pl.col("dataset"))
"""The domain of a row, or the collection if groups are no domains."""
_DATASET_OF_DOMAIN = pl.when(_BY_DOMAIN).then(pl.col("dataset")).otherwise(pl.lit(""))
"""The collection of a domain; empty if groups are no domains."""
_NO_SYSTEM = pl.lit("-")
"""Name instead of a ranker's for numbers of queries, which no ranker has a part in."""
_AUDIT_QUERIES = Selection(
    result=Audit,
    part="means",
    keys={
        "dataset": _DOMAIN_OR_DATASET,
        "collection": _DATASET_OF_DOMAIN,
        "system": _NO_SYSTEM,
        "measure": _QUERIES,
    },
    value=pl.col("queries").max().over("group"),  # a run may not have all queries
    where=_IS_ALL | _BY_DOMAIN,
    home=_NOT_AT_HOME,
    first=True,
)
"""The number of queries in an audit."""
_CHECK_QUERIES = Selection(
    result=CheckResult,
    part="contents.queries",
    keys={"dataset": "dataset", "system": _NO_SYSTEM, "measure": _QUERIES},
    value="queries",
    where=pl.int_range(pl.len()) == pl.len() - 1,  # judged queries, if there are any
    home=_NOT_AT_HOME,
)
"""The number of queries in a check."""
_STUDY_QUERIES = Selection(
    result=TrainingStudy,
    part=query_counts,
    keys={"dataset": "group", "system": _NO_SYSTEM, "measure": "measure"},
)
"""The number of queries that a study trained on."""
ASKARI_1 = Layout(
    name="askari-1",
    source=SOURCE,
    title="Number of queries",
    cells=(_AUDIT_QUERIES, _CHECK_QUERIES, _STUDY_QUERIES),
    rows=("dataset",),
    columns=("measure",),
    measures=("queries train", "queries validation", "queries test"),
    digits=0,
    titles={"dataset": "Domain"},
    labels={
        "queries train": "Train",
        "queries validation": "Validation",
        "queries test": "Test",
        "queries": "Queries",
        **_DOMAINS,
    },
    shows="judged queries (an audit or a check)",
    command="ranktilt audit DIR -r bm25 --json FILE",
)
_DOMAIN_MEANS = Selection(
    result=Audit,
    part="means",
    keys={
        "dataset": "group",
        "collection": "dataset",
        "system": "system",
        "measure": "measure",
    },
    value="mean",
    where=pl.col("by").is_not_null(),
    home=_NOT_AT_HOME,
)
"""The means of each domain in an audit."""
ASKARI_3 = replace(
    ASKARI_2,
    name="askari-3",
    title="Effectiveness in each domain",
    cells=(
        _DOMAIN_MEANS,
        _of_study(("supervised",), _TRAINED & _NO_RECALL & (pl.col("groups") > 1), dataset="group"),
    ),
    rows=("dataset",),
    columns=("system", "measure"),
    mark="",
    titles={"dataset": "Domain"},
    labels=_DOMAINS,
    shows="rankings measured in each domain (an audit by a column of the documents)",
    command="ranktilt audit DIR -r bm25 -m AP@1000 -m nDCG@10 -m RR@10 --by domain --json FILE",
)


def _side_alone(source: str, mean: str) -> Selection:
    """Select the means of one side of a check, as if it were a collection.

    `source` is the column with the side's name, and `mean` the column with its mean.
    """
    return Selection(
        result=CheckResult,
        part="effectiveness",
        keys={
            "dataset": pl.format("{} ({})", "dataset", source),
            "system": "system",
            "measure": "measure",
        },
        value=mean,
        home=_NOT_AT_HOME,
    )


_NOT_DEV = pl.col("split") != "dev"
"""Rows of splits other than the development set."""
ASKARI_4 = replace(
    ASKARI_2,
    name="askari-4",
    title="Effectiveness on each collection",
    cells=(
        replace(_ALL_DOCUMENTS, home=_NOT_AT_HOME),
        _side_alone("reference", "mean_a"),
        _side_alone("source", "mean_b"),
        _of_study(("first stage",), _IS_ALL & _NO_RECIPROCAL_RANK & _NOT_DEV),
    ),
    rows=("dataset",),
    columns=("measure",),
    measures=("AP@1000", "nDCG@10", "R@1000"),
    mark="",
    command="ranktilt audit DIR -r bm25 -m AP@1000 -m nDCG@10 -m R@1000 --by none --json FILE",
)
ASKARI_5 = replace(
    ASKARI_2,
    name="askari-5",
    title="Effectiveness of the rankers",
    cells=(
        replace(_ALL_DOCUMENTS, home=_NOT_AT_HOME),
        _of_study(("seen",), _IS_ALL & _TRAINED & _NO_RECALL),
    ),
    columns=("measure",),
    mark="",
)
_QUARTILES = {"mean": "mean", "25 %": "low", "median": "median", "75 %": "high"}
"""Columns of a distribution by the names that the paper uses."""


def _shared_words(measure: str, value: pl.Expr) -> Selection:
    """Select a number about the words that queries share with their answers.

    `measure` is its name in the table.
    """
    return Selection(
        result=TrainingStudy,
        part="overlaps",
        keys={"dataset": "dataset", "target": "source", "measure": pl.lit(measure)},
        value=value,
    )


_PAIRS_COMPARED = _shared_words("pairs", pl.col("pairs"))
"""The number of pairs of a query and an answer."""
_SHARED_WORDS = [_shared_words(name, 100 * pl.col(field)) for name, field in _QUARTILES.items()]
"""The distribution of the shared words over these pairs."""
OVERLAP = Layout(
    name="askari-overlap",
    source=f"the text of {SOURCE}",
    title="Words of a query that occur in an answer to it, in percent",
    cells=(_PAIRS_COMPARED, *_SHARED_WORDS),
    rows=("target",),
    columns=("measure",),
    measures=("pairs", *_QUARTILES),
    digits=1,
    digits_of={"pairs": 0},
    titles={"target": "Answers"},
    labels={"pairs": "Pairs", "mean": "Mean", "median": "Median", "human": "human"},
    shows="answers of both sides to the same queries (a training study)",
    command="ranktilt train study DIR --base-model MODEL --json FILE",
)
LAYOUTS = (ASKARI_1, ASKARI_2, ASKARI_3, ASKARI_4, ASKARI_5, OVERLAP)
