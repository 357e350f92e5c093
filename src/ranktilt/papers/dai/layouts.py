"""Tables and figures of Dai et al., numbered as in version 2 of arXiv 2310.20501.

A `Layout` is a table of numbers, which its `Selection`s take from results: the rows for which
`where` is true, and one column as the value. Several tables can show the same rows. If all tables
of the paper are printed together, a table shows only the rows for which `home` is true.

A *source* is who wrote documents; *generator* is the language model that wrote rewrites. A *check*
says whether a comparison is fair, an *explanation* what differs between texts, and a *bench* which
correction levels a ranker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import polars as pl

from ranktilt.auditing.result import Audit
from ranktilt.auditing.sources.source_audits import SourceAudits
from ranktilt.explaining.check_result import CheckResult
from ranktilt.explaining.explanation import Explanation
from ranktilt.mitigation.bench_result import Bench
from ranktilt.papers.dai.curves import bench_means, bench_tilts, spectra
from ranktilt.papers.dai.figures import draw_cosines, draw_map, texts_drawn
from ranktilt.papers.dai.temperature import temperature_figures
from ranktilt.reporting.layouts.layout import Layout
from ranktilt.reporting.layouts.selection import Column, Selection

SOURCE = "Dai et al., arXiv 2310.20501 (numbered as before KDD 2024)"
"""The paper, as tables and figures print it."""
MEASURES = ("nDCG@1", "nDCG@3", "nDCG@5", "AP@1", "AP@3", "AP@5")
"""Measures of the tables, in their order."""

# A rewrite belongs to one of three tables, by its model and temperature.
_IS_USUAL = pl.col("temperature").is_in(["", "0.2"])
"""Rows of texts at the usual temperature, or an unknown one."""
_BY_GPT = pl.col("generator").str.to_lowercase().str.contains("gpt", literal=True)
"""Rows of texts by a GPT."""
USUAL, GPT, OTHER = _IS_USUAL & ~_BY_GPT, _IS_USUAL & _BY_GPT, ~_IS_USUAL
"""Rows of the main tables, of the tables for GPT, and of those for other temperatures."""
_KNOWN_TEMPERATURES = pl.col("temperature").filter(pl.col("temperature") != "")
"""Temperatures of the rows that state one."""
_SPANS_TEMPERATURES = (_KNOWN_TEMPERATURES.n_unique().over("generator") > 1).any()
"""Whether a model has sources at several temperatures, which Table 9 compares."""

# A ranker belongs to one of two tables.
ONE_STAGE = ~pl.col("is_reranked") | pl.col("is_reranked").all()
"""Rows of rankers that do not re-rank; all rows if every ranker does."""
_RERANKED_FIRST_STAGES = pl.col("first_stage").filter(pl.col("is_reranked")).implode()
"""First stages whose results some ranker re-ranks."""
RERANKED = pl.col("is_reranked").any() & (
    pl.col("is_reranked") | pl.col("first_stage").is_in(_RERANKED_FIRST_STAGES)
)
"""Rows of re-rankers, and of the first stages whose results they re-rank."""


def _mixed(where: pl.Expr | None, home: pl.Expr, *, of_sources: pl.Expr) -> tuple[Selection, ...]:
    """Select both groups' means over the queries that count for Relative Δ, from audits.

    If the first group is human text, the second group is called ``llm``, whatever its name is.
    `home` is for an audit of one source, and `of_sources` for an audit of several.
    """
    by_source = pl.col("by") == "source"
    is_rewrite = (by_source & (pl.col("a") == "human")).fill_null(False)
    group_b = pl.col("b")
    pair = pl.format("{} against {}", "a", "b")
    keys_of_audit = {
        "generator": pl.when(is_rewrite).then(pl.col("generator")).otherwise(pl.lit("")),
        "temperature": pl.when(is_rewrite).then(pl.col("temperature")).otherwise(pl.lit("")),
        "condition": pl.when(is_rewrite).then(pl.lit("")).otherwise(pair),
    }
    llm = pl.lit("llm")
    llm_or_group = pl.when(is_rewrite).then(llm).otherwise(group_b)
    home_of_audit = by_source & home
    return (
        _side(Audit, keys_of_audit, pl.col("a"), "mean_a", where=where, home=home_of_audit),
        _side(Audit, keys_of_audit, llm_or_group, "mean_b", where=where, home=home_of_audit),
        _side(SourceAudits, _STATED, pl.col("a"), "mean_a", where=where, home=of_sources),
        _side(SourceAudits, _STATED, llm, "mean_b", where=where, home=of_sources),
    )


_STATED = {"generator": pl.col("generator"), "temperature": pl.col("temperature")}
"""Columns with the model and the temperature of the rewrites, in results that state them."""


def _side(
    result: type,
    keys: Mapping[str, Column],
    target: pl.Expr,
    mean: str,
    *,
    where: pl.Expr | None,
    home: pl.Expr,
) -> Selection:
    """Select the means of one group from a result's column `mean`; `target` is the group's name."""
    columns: dict[str, Column] = {
        "dataset": "dataset",
        "collection": pl.lit("mixed"),
        "system": "system",
        "target": target,
        "measure": "measure",
        **keys,
    }
    return Selection(result=result, part="tilts", keys=columns, value=mean, where=where, home=home)


def _alone(home: pl.Expr) -> tuple[Selection, ...]:
    """Select the means of both sources of a check, each of which was ranked alone."""
    keys: dict[str, Column] = {
        "dataset": "dataset",
        "collection": pl.lit("single-source"),
        "system": "system",
        "measure": "measure",
        **_STATED,
    }
    sides: tuple[tuple[Column, str], ...] = (("reference", "mean_a"), (pl.lit("llm"), "mean_b"))
    return tuple(
        Selection(
            result=CheckResult,
            part="effectiveness",
            keys={**keys, "target": target},
            value=mean,
            home=home,
        )
        for target, mean in sides
    )


def _statistic(measure: str, column: str, part: str, where: pl.Expr) -> Selection:
    """Select a number of Table 1, from a column of a check's `part`; `measure` is its name."""
    keys: dict[str, Column] = {"dataset": "dataset", "measure": pl.lit(measure)}
    if part == "contents.sources":
        keys["target"] = "source"
    return Selection(result=CheckResult, part=part, keys=keys, value=column, where=where)


_IS_SOURCE = pl.col("source").is_not_null()
"""Rows of documents, not of queries."""
_ROW = pl.int_range(pl.len())
"""Number of the row."""
_FIRST_ROW, _LAST_ROW = _ROW == 0, pl.len() - 1 == _ROW
"""The first and the last row of a part.

A check has a row for all queries, and then a row for the judged ones, if there are any.
"""
_HAS_QUERIES = pl.col("queries") > 0
"""Rows with at least one query."""
_STATISTICS = (
    _statistic("queries", "queries", "contents.queries", _LAST_ROW),
    _statistic("query words", "words", "contents.queries", _FIRST_ROW),
    _statistic("documents", "documents", "contents.sources", _IS_SOURCE),
    _statistic("document words", "words", "contents.sources", _IS_SOURCE),
    _statistic("relevant per query", "relevant", "contents.sources", _IS_SOURCE & _HAS_QUERIES),
)
"""All numbers of Table 1."""
DAI_1 = Layout(
    name="dai-1",
    source=SOURCE,
    title="Statistics of the collections",
    cells=_STATISTICS,
    rows=("measure", "target"),
    columns=("dataset",),
    measures=("queries", "query words", "documents", "document words", "relevant per query"),
    digits=0,
    digits_of={"query words": 2, "document words": 2, "relevant per query": 2},
    titles={"measure": "Statistic", "target": "Source"},
    labels={
        "queries": "Test queries",
        "query words": "Mean length of a query, words",
        "documents": "Documents",
        "document words": "Mean length of a document, words",
        "relevant per query": "Relevant documents per query",
        "human": "human",
    },
    shows="the contents of a collection (a check)",
    command="ranktilt check DIR --json FILE",
)
DAI_3 = Layout(
    name="dai-3",
    source=SOURCE,
    title="Effectiveness of each ranker on human-written and LLM-generated documents of one mixed "
    "collection, in percent, and Relative Δ (positive where human-written text ranks higher)",
    title_of_groups="Effectiveness of each ranker on groups of documents of one collection, in "
    "percent, and Relative Δ",
    cells=_mixed(ONE_STAGE, USUAL, of_sources=USUAL & ~_SPANS_TEMPERATURES),
    left_out="re-rankers have a table of their own (dai-5, dai-6)",
    measures=MEASURES,
    scale=100.0,
    derived="relative_delta",
    shows="a mixed collection ranked as one (an audit)",
    command="ranktilt audit DIR -r bm25 --json FILE",
)
DAI_2 = replace(
    DAI_3,
    name="dai-2",
    title="Effectiveness of each ranker on the human-written and on the LLM-generated documents "
    "alone, in percent",
    title_of_groups="",
    cells=_alone(USUAL),
    left_out="",
    derived="",
    shows="each source ranked alone (a check with rankers)",
    command="ranktilt check DIR -r bm25 --json FILE",
)
DAI_5 = replace(
    DAI_3,
    name="dai-5",
    title="Re-rankers: effectiveness of each ranker on human-written and LLM-generated documents "
    "of one mixed collection, in percent, and Relative Δ (positive where human-written text ranks "
    "higher)",
    cells=_mixed(RERANKED, USUAL, of_sources=USUAL & ~_SPANS_TEMPERATURES),
    left_out="the table holds re-rankers and their first stages",
    rows=("measure", "target"),
    columns=("dataset", "system"),
    titles={"measure": "Metrics"},
    labels={"BM25+MiniLM": "+MiniLM", "BM25+monoT5": "+monoT5"},
    shows="a mixed collection ranked by re-rankers (an audit)",
    command="ranktilt audit DIR -r bm25 -r 'bm25@100>>cross-encoder:minilm' --json FILE",
)
DAI_10 = Layout(
    name="dai-10",
    source=SOURCE,
    title="A human-written document and its LLM-generated version, for a query to which both are "
    "relevant",
    texts=1,
    shows="the texts of a collection (an audit by source, with its collection)",
    command="ranktilt audit DIR -r bm25 --json FILE",
)
_OF_GPT = GPT & ~_SPANS_TEMPERATURES
"""Rows of GPT's texts, unless there are several temperatures, which Table 9 compares."""
# Further tables have the columns of those above, for other rows: those of GPT (4, 6 and 7), and of
# other temperatures (8 and 9).
DAI_4 = replace(DAI_3, name="dai-4", cells=_mixed(ONE_STAGE, GPT, of_sources=_OF_GPT))
DAI_6 = replace(DAI_5, name="dai-6", cells=_mixed(RERANKED, GPT, of_sources=_OF_GPT))
DAI_7 = replace(DAI_2, name="dai-7", cells=_alone(GPT))
DAI_8 = replace(DAI_2, name="dai-8", cells=_alone(OTHER))
DAI_9 = replace(
    DAI_3,
    name="dai-9",
    cells=_mixed(None, OTHER, of_sources=OTHER | _SPANS_TEMPERATURES),
    left_out="",
)
DAI_11 = replace(
    DAI_10,
    name="dai-11",
    texts=2,
    shows="the texts of a second collection (an audit by source, with its collection)",
)
TABLES = (
    DAI_1,
    DAI_2,
    DAI_3,
    DAI_4,
    DAI_5,
    DAI_6,
    DAI_7,
    DAI_8,
    DAI_9,
    DAI_10,
    DAI_11,
)

_QUARTILES = {"25 %": "quartile_1", "median": "median", "75 %": "quartile_3"}
"""Columns of a distribution by the names that the paper uses."""
_OF_DISTRIBUTION = ("mean", *_QUARTILES)
"""Names of the numbers that describe a distribution."""


def _curve(home: pl.Expr) -> tuple[Selection, ...]:
    """Select the singular values of each source's embeddings."""
    keys: dict[str, Column] = {
        "dataset": "dataset",
        "system": "system",
        "target": "source",
        "measure": pl.lit("relative singular value"),
        "condition": "index",
    }
    return (Selection(result=Explanation, part=spectra, keys=keys, value="height", home=home),)


def _perplexity(measure: str, column: str) -> Selection:
    """Select a number of the distribution of perplexity; `measure` is its name in the figure."""
    model = pl.col("probe").str.strip_prefix("perplexity").str.strip_prefix(":")
    return Selection(
        result=Explanation,
        part="results.rows",
        keys={
            "dataset": "dataset",
            "system": pl.when(model == "").then(pl.lit("trigrams")).otherwise(model),
            "target": "source",
            "measure": pl.lit(measure),
        },
        value=column,
        where=pl.col("probe").str.starts_with("perplexity"),
    )


def _cosine(measure: str, column: str) -> Selection:
    """Select a number of the distribution of twins' cosines; `measure` is its name."""
    return Selection(
        result=CheckResult,
        part="similarity",
        keys={
            "dataset": "dataset",
            "system": "model",
            "target": "source",
            "measure": pl.lit(measure),
        },
        value=f"twins_{column}",
        home=pl.len() > 1,
    )


def _by_strength(part: Callable[[Bench], pl.DataFrame], keys: dict[str, str]) -> Selection:
    """Select a bench's numbers by method and strength, from the rows that `part` returns."""
    columns = {"dataset": "dataset", "system": "method", "condition": "strength", **keys}
    return Selection(result=Bench, part=part, keys={**columns, "measure": "measure"})


_TEXTS_DRAWN = Selection(
    result=CheckResult,
    part=texts_drawn,
    keys={
        "dataset": "dataset",
        "system": "model",
        "target": "source",
        "measure": pl.lit("texts drawn"),
    },
    value="texts",
)
"""The number of texts of each source in the map of an encoder's space."""
_HAS_SEVERAL_SOURCES = pl.col("sources") > 1
"""Whether a result compares more than one source of rewrites."""
_FIRST_RANK = ("nDCG@1", "AP@1")
"""Measures of the first rank alone."""
FIGURE_6 = replace(
    DAI_3,
    name="dai-fig6",
    title="Effectiveness on human-written and LLM-generated documents of one mixed collection, in "
    "percent, and Relative Δ (positive where human-written text ranks higher), by the temperature "
    "of the rewrites",
    title_of_groups="",
    cells=_mixed(
        pl.col("measure").is_in(_FIRST_RANK) & (pl.col("temperature") != ""),
        pl.lit(False),
        of_sources=_SPANS_TEMPERATURES,
    ),
    left_out="",
    columns=("measure", "temperature"),
    measures=_FIRST_RANK,
    shows="rewrites at several temperatures (an audit of several sources)",
    command="ranktilt audit DIR -r bm25 -m nDCG@1 -m AP@1 --json FILE",
    draw=temperature_figures,
)
FIGURE_7 = Layout(
    name="dai-fig7",
    source=SOURCE,
    title="Relative singular values of the embeddings: each source's over the reference's of the "
    "same index",
    cells=_curve(~_HAS_SEVERAL_SOURCES),
    rows=("condition",),
    columns=("target",),
    digits=3,
    titles={"condition": "Index", "target": "Source"},
    labels={"human": "human"},
    shows="a spectrum (an explanation)",
    command="ranktilt explain DIR --probe spectrum --encoder dense:minilm --json FILE",
    curve=True,
)
_DOCUMENTS_MEASURED = _perplexity("documents", "values")
"""The number of documents with a perplexity."""
_PERPLEXITIES = [_perplexity(measure, measure) for measure in _OF_DISTRIBUTION]
"""The distribution of perplexity over these documents."""
FIGURE_9 = Layout(
    name="dai-fig9",
    source=SOURCE,
    title="Log perplexity of the documents of each source",
    cells=(_DOCUMENTS_MEASURED, *_PERPLEXITIES),
    rows=("target",),
    columns=("measure",),
    measures=("documents", *_OF_DISTRIBUTION),
    digits=2,
    digits_of={"documents": 0},
    titles={"target": "Source"},
    labels={"documents": "Documents", "mean": "Mean", "median": "Median", "human": "human"},
    shows="perplexities (an explanation)",
    command="ranktilt explain DIR --probe perplexity --json FILE",
)
FIGURE_10 = Layout(
    name="dai-fig10",
    source=SOURCE,
    title="Relative Δ by the coefficient α of the debiased constraint (positive where "
    "human-written text ranks higher)",
    cells=(_by_strength(bench_tilts, {"generator": "generator", "temperature": "temperature"}),),
    rows=("condition",),
    columns=("measure",),
    measures=MEASURES,
    titles={"condition": "α"},
    shows="candidates of rising strength (a bench)",
    command="ranktilt train retriever DIR --debias 0 --debias paper -o FOLDER",
)
FIGURE_8 = replace(
    FIGURE_7,
    name="dai-fig8",
    cells=_curve(_HAS_SEVERAL_SOURCES),
    shows="the spectra of several sources (an explanation)",
)
FIGURE_11 = replace(
    FIGURE_10,
    name="dai-fig11",
    title="Effectiveness on the human-written documents alone by the coefficient α of the "
    "constraint, in percent",
    cells=(_by_strength(bench_means, {}),),
    scale=100.0,
    shows="candidates of rising strength, ranked on human documents alone too (a bench)",
)
FIGURE_13 = Layout(
    name="dai-fig13",
    source=SOURCE,
    title="Texts of all sources in an encoder's space: how many of each are drawn",
    cells=(_TEXTS_DRAWN,),
    draw=draw_map,
    rows=("target",),
    columns=("measure",),
    digits=0,
    titles={"target": "Source"},
    labels={"human": "human", "texts drawn": "Texts"},
    shows="a picture of the vectors of several sources (a check with an encoder)",
    command="ranktilt check DIR --similarity dense:minilm --json FILE",
)
_PAIRS_COMPARED = _cosine("pairs", "count")
"""The number of pairs of twins."""
_COSINES = [_cosine(measure, _QUARTILES.get(measure, measure)) for measure in _OF_DISTRIBUTION]
"""The distribution of the cosines over these pairs."""
FIGURE_14 = replace(
    FIGURE_9,
    name="dai-fig14",
    title="Cosine similarity of each source's rewrites with the texts that they were made from",
    cells=(_PAIRS_COMPARED, *_COSINES),
    measures=("pairs", *_OF_DISTRIBUTION),
    digits_of={"pairs": 0},
    labels={"mean": "Mean", "median": "Median", "human": "human", "pairs": "Pairs"},
    draw=draw_cosines,
    shows="vectors of twins (a check with an encoder)",
    command="ranktilt check DIR --similarity dense:minilm --json FILE",
)
FIGURES = (
    FIGURE_6,
    FIGURE_7,
    FIGURE_8,
    FIGURE_9,
    FIGURE_10,
    FIGURE_11,
    FIGURE_13,
    FIGURE_14,
)
LAYOUTS = (*TABLES, *FIGURES)
"""Every table and figure, in the order of the paper."""
