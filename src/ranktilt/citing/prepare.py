"""Join answers, labels and retrieved lists in one table, and refuse what does not fit together.

An *answer* is what an engine wrote for a query; several answers to one query are its *repeats*. A
page has a *label*, which is its group. It may be *cited* by an answer, *consulted* (read by the
engine before it answered), and *retrieved*, with a rank, for the query. A *unit* is pages that are
labelled together, such as those of a domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.citing.arrays import citation_rows, pair_frame
from ranktilt.citing.counts import CitationCounts, count_citations
from ranktilt.citing.pages.kept_pages import KeptPages
from ranktilt.citing.pages.labelled_pages import label_pages
from ranktilt.citing.pages.retrieved_lists import retrieved_lists
from ranktilt.citing.unit import DOMAIN, Unit, find_unit
from ranktilt.data.answers import Answers
from ranktilt.data.collection import Collection
from ranktilt.data.labels.label_file import LabelFile
from ranktilt.data.runs.run import Run
from ranktilt.errors import DataError
from ranktilt.measures.citations.base import CitationRows


@dataclass(frozen=True, kw_only=True, eq=False)
class CitationInputs:
    """The pages of answers with their labels, and what else an audit needs."""

    rows: pl.DataFrame
    """A row for each labelled page of an answer, or retrieved for its query.

    Columns: ``query``, ``repeat`` (which answer to the query), ``page``, ``label``, ``unit`` (such
    as its domain), ``weight`` (all answers to a query together weigh as much as those to another; 1
    on average), ``is_cited``, ``is_first`` (cited before all others), ``is_consulted``,
    ``retrieval_rank`` (0 where not retrieved) and ``cited_words`` (words of the answer that the
    page supports, null where unknown).
    """
    groups: list[str]
    """Groups of the labelled pages that answers hold, the most cited first."""
    unit: Unit
    """Unit at which labels are constant, such as the domain."""
    counts: CitationCounts
    """How much of the answers can be used."""
    has_words: bool
    """Whether answers say which words a page supports."""
    kept_pages: KeptPages
    """The part of the table that a result keeps, for comparisons and explanations."""
    labelled_pages: pl.DataFrame
    """All pages of the labels, whether answers hold them or not, with the columns of the file."""
    spec: dict[str, Any]
    """Files and settings of answers and labels."""

    def pair_rows(self, a: str, b: str) -> CitationRows:
        """Return the rows of group a and group b as arrays."""
        return citation_rows(pair_frame(self.rows, a, b), a)

    def group_rows(self, group: str) -> CitationRows:
        """Return the rows of one group as arrays."""
        return citation_rows(self.rows.filter(pl.col("label") == group), group)

    def query_names(self, a: str, b: str) -> list[str]:
        """Return the queries of `pair_rows`, in the order of their numbers."""
        return pair_frame(self.rows, a, b)["query"].unique().sort().to_list()

    def unit_names(self, a: str, b: str) -> list[str]:
        """Return the names of the units of `pair_rows`, in the order of their numbers."""
        return pair_frame(self.rows, a, b)["unit"].unique().sort().to_list()


def prepare(
    answers: Answers,
    labels: str | Path | LabelFile | Collection,
    *,
    run: Run | None,
    by: str,
    cluster: str | None,
) -> CitationInputs:
    """Join answers with the labels of their pages, and with the lists that were retrieved.

    Parameters
    ----------
    answers : Answers
        The answers with their citations.
    labels : str, Path, LabelFile or Collection
        The label of each page.
    run : Run, optional
        Pages that were retrieved for the queries; None for the lists of the answers, if any.
    by : str
        Column of the labels whose values are the groups.
    cluster : str, optional
        Unit at which labels are constant; None to find it out.

    Raises
    ------
    UserError
        If no page of the answers has a label, all have the same one, or the run has none of the
        answers' queries.
    """
    is_exact = bool(answers.spec.get("exact_urls"))
    # Documents of a collection have no domains, unless a column names them.
    of_documents = isinstance(labels, Collection) and DOMAIN not in labels.docs.columns
    labelled_pages = label_pages(labels, by, is_exact=is_exact)
    retrieved = retrieved_lists(answers, run, is_exact=is_exact)
    table = labelled_pages.add_to(_join_lists(answers, retrieved))
    labelled = table.filter(pl.col("label").is_not_null())
    if not labelled["is_cited"].any():
        raise labelled_pages.no_match(
            table.filter(pl.col("is_cited"))["page"].unique(maintain_order=True)
        )
    groups = _groups(labelled)
    if len(groups) < 2:
        file = labelled_pages.label_file.path
        raise DataError(file, f"every page of the answers is {groups[0]!r}; expected two groups")
    # Only columns that came with the labels can be a unit, and not those of answers.
    columns = [name for name in labelled_pages.pages.columns if name not in answers.pages.columns]
    pages = labelled.unique("page", maintain_order=True).select("page", *columns)
    unit, unit_names = find_unit(pages, cluster)
    unit_of_page = pl.DataFrame({"page": pages["page"], "unit": unit_names.cast(pl.String)})
    labelled = labelled.join(unit_of_page, on="page", how="left", maintain_order="left")
    table = table.join(unit_of_page, on="page", how="left", maintain_order="left")
    return CitationInputs(
        rows=labelled,
        groups=groups,
        unit=unit,
        counts=count_citations(answers, table, retrieved),
        has_words=answers.has_words,
        kept_pages=KeptPages.from_table(answers.answers, table),
        labelled_pages=labelled_pages.pages,
        spec={
            **answers.spec,
            **labelled_pages.label_file.spec(labelled_pages.pages["label"], rest_count=0),
            "by": by,
            "of_documents": of_documents,
        },
    )


def _join_lists(answers: Answers, retrieved: pl.DataFrame | None) -> pl.DataFrame:
    """Return a row for each page of an answer, or retrieved for its query, labelled or not.

    `retrieved` has ``query``, ``page`` and ``rank``; None where no list is known.
    """
    numbered = answers.answers.with_row_index("answer").cast({"answer": pl.Int64})
    repeats = pl.len().over("query")
    # Each answer weighs 1 / the number of answers to its query, times a factor that makes the mean
    # weight 1.
    scale = numbered.height / numbered["query"].n_unique()
    numbered = numbered.with_columns(weight=scale / repeats)
    citation_rank = pl.col("citation_rank")
    pages = answers.pages.drop("retrieval_rank").with_columns(
        is_cited=citation_rank.is_not_null(),
        is_first=(citation_rank == 1).fill_null(value=False),
    )
    answer_columns = ["answer", "query", "repeat", "weight"]
    rows = numbered.select(answer_columns).join(pages, on="answer")
    if retrieved is None:
        return rows.with_columns(retrieval_rank=pl.lit(0, dtype=pl.Int64))
    # Every answer to a query chose from the whole list of the query.
    lists = numbered.select(answer_columns).join(retrieved, on="query")
    keys = [*answer_columns, "page"]
    joined = rows.join(lists.select(*keys, "rank"), on=keys, how="full", coalesce=True)
    return joined.with_columns(
        pl.col("is_cited", "is_first", "is_consulted").fill_null(value=False),
        pl.col("rank").fill_null(0).alias("retrieval_rank"),
    ).sort("answer", "page")


def _groups(labelled: pl.DataFrame) -> list[str]:
    """Return the groups, the most cited first, and equally cited ones by name."""
    counts = labelled.group_by("label").agg(pl.col("is_cited").sum())
    return counts.sort(["is_cited", "label"], descending=[True, False])["label"].to_list()
