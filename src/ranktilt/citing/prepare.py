"""Join answers, labels and retrieved lists, and say what does not fit together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.citing.arrays import citation_rows, pair_frame
from ranktilt.citing.collection_pages import collection_labels, collection_pages
from ranktilt.citing.kept_pages import KeptPages
from ranktilt.citing.unit import DOMAIN, Unit, find_unit
from ranktilt.data.answers import Answers, Retrieved
from ranktilt.data.collection import Collection
from ranktilt.data.formats.notation import FIRST, split_notation
from ranktilt.data.group_names import group_name
from ranktilt.data.id_forms import near_matches
from ranktilt.data.label_file import LabelFile
from ranktilt.data.label_table import read_labels
from ranktilt.data.page_urls import domain_of, page_key
from ranktilt.data.run import Run
from ranktilt.errors import DataError, UserError, counted
from ranktilt.measures.citations.base import CitationRows

_DOMAINS = {"page_domain": pl.String}
_KEEP = "keep"
"""Option of a run's file for a document that comes twice for a query."""
_OWN_DOMAIN = ("domain", "host", "site")
"""Columns of a label file that name a page's domain."""


@dataclass(frozen=True, kw_only=True)
class CitationCounts:
    """How much of the answers can be used."""

    queries: int
    answers: int
    citations: int
    """Pages cited, each once an answer."""
    consulted: int
    """Pages consulted, the cited ones among them; 0 where unknown."""
    retrieved: int
    """Pages retrieved for the queries; 0 where unknown."""
    without_citations: int
    """Answers that cite no page."""
    unlabelled: int
    """Citations of pages without a label."""
    without_consulted: int
    """Answers that do not tell what they consulted, where others do."""
    not_consulted: int
    """Citations of pages that the same answer did not consult; 0 where unknown."""
    not_retrieved: int
    """Citations of pages that were not retrieved for the query; 0 where unknown."""
    without_list: int
    """Queries of answers without a retrieved list; 0 where none is known."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CitationInputs:
    """Everything that is asked of answers, in one table."""

    rows: pl.DataFrame
    """A row for each labelled page of an answer, or retrieved for its query: ``query``,
    ``repeat``, ``page``, ``label``, ``unit``, ``weight``, ``is_cited``, ``is_first``,
    ``is_consulted``, ``retrieval_rank`` (0 for none) and ``cited_words``."""
    groups: list[str]
    """Groups of the labelled pages that answers hold, the most cited first."""
    unit: Unit
    counts: CitationCounts
    has_words: bool
    kept_pages: KeptPages
    """What a result keeps of it, for comparisons and explanations."""
    spec: dict[str, Any]

    def pair_rows(self, a: str, b: str) -> CitationRows:
        """Return the rows of two groups as arrays."""
        return citation_rows(pair_frame(self.rows, a, b), a)

    def group_rows(self, group: str) -> CitationRows:
        """Return the rows of one group as arrays."""
        return citation_rows(self.rows.filter(pl.col("label") == group), group)

    def query_names(self, a: str, b: str) -> list[str]:
        """Return the queries of `pair_rows`, in the order of their numbers."""
        return pair_frame(self.rows, a, b)["query"].unique().sort().to_list()

    def unit_names(self, a: str, b: str) -> list[str]:
        """Return the names of the clusters of `pair_rows`, in the order of their numbers."""
        return pair_frame(self.rows, a, b)["unit"].unique().sort().to_list()


def prepare(
    answers: Answers,
    labels: str | Path | LabelFile | Collection,
    *,
    run: Run | None,
    by: str,
    cluster: str | None,
) -> CitationInputs:
    """Join answers with the labels of their pages, and with a run's lists.

    Raises
    ------
    UserError
        If no page of the answers has a label, all have the same one, or the run has none of the
        answers' queries.
    """
    is_exact = bool(answers.spec.get("exact_urls"))
    if isinstance(labels, Collection):
        label_file = collection_labels(labels)
        known = collection_pages(labels, by, is_exact=is_exact)
    else:
        label_file = LabelFile.from_text(labels)
        known = _labelled_pages(label_file, by, is_exact=is_exact)
    retrieved = _retrieved_lists(answers, run, is_exact=is_exact)
    table = _join_lists(answers, retrieved)
    table = _with_labels(table, known, label_file)
    labelled = table.filter(pl.col("label").is_not_null())
    if not labelled["is_cited"].any():
        raise _no_label(table, known, label_file)
    groups = _groups(labelled)
    if len(groups) < 2:
        file = label_file.path
        raise DataError(file, f"every page of the answers is {groups[0]!r}; expected two groups")
    # Only the labels' own columns can be a unit, and not what was joined to them.
    columns = [name for name in known.columns if name not in answers.pages.columns]
    pages = labelled.unique("page", maintain_order=True).select("page", *columns)
    unit, unit_names = find_unit(pages, cluster)
    unit_of_page = pl.DataFrame({"page": pages["page"], "unit": unit_names.cast(pl.String)})
    labelled = labelled.join(unit_of_page, on="page", how="left", maintain_order="left")
    table = table.join(unit_of_page, on="page", how="left", maintain_order="left")
    return CitationInputs(
        rows=labelled,
        groups=groups,
        unit=unit,
        counts=_counts(answers, table, retrieved),
        has_words=answers.has_words,
        kept_pages=KeptPages.from_table(answers.answers, table),
        spec={**answers.spec, **label_file.spec(known["label"], 0), "by": by},
    )


def load_list(path: str | Path) -> Run:
    """Read a run of pages; search results often hold a page twice, and the first rank counts."""
    notation = split_notation(path)
    if notation is None:
        return Run.load(f"{path}:{_KEEP}={FIRST}")
    if any(key == _KEEP for key, _value in notation[1]):
        return Run.load(path)
    return Run.load(f"{path},{_KEEP}={FIRST}")


def _labelled_pages(label_file: LabelFile, by: str, *, is_exact: bool) -> pl.DataFrame:
    """Read labels by page key: ``page``, ``label``, ``domain`` and all other columns."""
    frame = read_labels(label_file, by=by).rename({"doc_id": "page"})
    if by not in frame.columns:
        raise UserError(f"--by {by}: cite compares labels as they are; name a column, without bins")
    frame = frame.with_columns(_called(frame[by])).rename({by: "label"})
    if not is_exact:
        keys = [page_key(page) for page in frame["page"]]
        frame = frame.with_columns(pl.Series("page", keys))
    frame = frame.filter(pl.col("label").is_not_null())
    kinds = frame.group_by("page").agg(pl.col("label").n_unique().alias("kinds"))
    clash = kinds.filter(pl.col("kinds") > 1).sort("page")
    if clash.height and label_file.several is None:
        page = clash["page"][0]
        message = f"page {page!r} has several labels, once addresses are compared by our rule"
        raise DataError(label_file.path, f"{message}; --exact-urls keeps addresses apart")
    frame = frame.unique("page", keep="first", maintain_order=True)
    if DOMAIN not in frame.columns:
        columns = [name for name in _OWN_DOMAIN if name in frame.columns]
        if columns:
            return frame.with_columns(pl.col(columns[0]).cast(pl.String).alias(DOMAIN))
        domains = [domain_of(page) or page for page in frame["page"]]
        return frame.with_columns(pl.Series(DOMAIN, domains, dtype=pl.String))
    domain = pl.col(DOMAIN).cast(pl.String)
    return frame.with_columns(domain.fill_null(pl.col("page")))


def _called(labels: pl.Series) -> pl.Series:
    """Give bare numbers among labels the name of their column."""
    names = {name: group_name(labels.name, name) for name in labels.drop_nulls().unique()}
    return labels.replace(names)


def _retrieved_lists(answers: Answers, run: Run | None, *, is_exact: bool) -> pl.DataFrame | None:
    """Return the retrieved lists: those of the run, or those that the answers hold."""
    if run is not None:
        entries = run.frame().filter(pl.col("query_id").is_in(answers.queries))
        if not entries.height:
            examples = f"first: {answers.queries[0]!r} and {run.queries[0]!r}"
            raise UserError(f"run {run.name} ranks none of the answers' queries ({examples})")
        lists = entries.group_by("query_id", maintain_order=True).agg("doc_id")
        keyed = list[tuple[str, list[str]]]()
        for query, pages in lists.iter_rows():
            keyed.append((query, pages if is_exact else list(map(page_key, pages))))
        return Retrieved.from_lists(keyed).pages
    if not answers.has_retrieved:
        return None
    listed = answers.pages.filter(pl.col("retrieval_rank").is_not_null())
    listed = listed.join(
        answers.answers.with_row_index("answer").cast({"answer": pl.Int64}), on="answer"
    )
    listed = listed.sort("answer", "retrieval_rank").unique(["query", "page"], maintain_order=True)
    return listed.select("query", "page", pl.col("retrieval_rank").alias("rank"))


def _join_lists(answers: Answers, retrieved: pl.DataFrame | None) -> pl.DataFrame:
    """Return a row for each page of an answer, or retrieved for its query."""
    numbered = answers.answers.with_row_index("answer").cast({"answer": pl.Int64})
    repeats = pl.len().over("query")
    scale = numbered.height / numbered["query"].n_unique()
    numbered = numbered.with_columns(weight=scale / repeats)
    cited = pl.col("citation_rank")
    pages = answers.pages.drop("retrieval_rank").with_columns(
        is_cited=cited.is_not_null(), is_first=(cited == 1).fill_null(value=False)
    )
    rows = numbered.select("answer", "query", "repeat", "weight").join(pages, on="answer")
    if retrieved is None:
        return rows.with_columns(retrieval_rank=pl.lit(0, dtype=pl.Int64))
    lists = numbered.select("answer", "query", "repeat", "weight").join(retrieved, on="query")
    keys = ["answer", "query", "repeat", "weight", "page"]
    joined = rows.join(lists.select(*keys, "rank"), on=keys, how="full", coalesce=True)
    return joined.with_columns(
        pl.col("is_cited", "is_first", "is_consulted").fill_null(value=False),
        pl.col("rank").fill_null(0).alias("retrieval_rank"),
    ).sort("answer", "page")


def _with_labels(table: pl.DataFrame, known: pl.DataFrame, label_file: LabelFile) -> pl.DataFrame:
    """Add the label and the other columns of each page; the rest gets its own label."""
    others = [name for name in known.columns if name == "page" or name not in table.columns]
    table = table.join(known.select(others), on="page", how="left", maintain_order="left")
    if label_file.rest:
        table = table.with_columns(pl.col("label").fill_null(label_file.rest))
    # An address is taken apart once, in however many answers it is.
    unknown = table.filter(pl.col(DOMAIN).is_null())["page"].unique()
    domains = [domain_of(page) or page for page in unknown]
    domain_of_page = pl.DataFrame(
        {"page": unknown, "page_domain": domains}, schema_overrides=_DOMAINS
    )
    table = table.join(domain_of_page, on="page", how="left", maintain_order="left")
    return table.with_columns(pl.col(DOMAIN).fill_null(pl.col("page_domain"))).drop("page_domain")


def _groups(labelled: pl.DataFrame) -> list[str]:
    """Return groups by their citations, the most cited first, then by name."""
    counts = labelled.group_by("label").agg(pl.col("is_cited").sum())
    return counts.sort(["is_cited", "label"], descending=[True, False])["label"].to_list()


def _counts(
    answers: Answers, table: pl.DataFrame, retrieved: pl.DataFrame | None
) -> CitationCounts:
    cited = table.filter(pl.col("is_cited"))
    queries = set(answers.queries)
    without_citations = answers.answers.height - cited["answer"].n_unique()
    consulted, not_consulted, lists, not_retrieved, without_list = 0, 0, 0, 0, 0
    telling = answers.answers.with_row_index("answer").filter("has_consulted")["answer"]
    without_consulted = answers.answers.height - len(telling) if len(telling) else 0
    if len(telling):
        consulted = int(table["is_consulted"].sum())
        of_telling = cited.filter(pl.col("answer").is_in(telling.cast(pl.Int64).implode()))
        not_consulted = int((~of_telling["is_consulted"]).sum())
    if retrieved is not None:
        lists = retrieved.height
        not_retrieved = int((cited["retrieval_rank"] == 0).sum())
        without_list = len(queries - set(retrieved["query"]))
    return CitationCounts(
        queries=len(queries),
        answers=answers.answers.height,
        citations=cited.height,
        consulted=consulted,
        retrieved=lists,
        without_citations=without_citations,
        unlabelled=cited["label"].null_count(),
        without_consulted=without_consulted,
        not_consulted=not_consulted,
        not_retrieved=not_retrieved,
        without_list=without_list,
    )


def _no_label(table: pl.DataFrame, known: pl.DataFrame, label_file: LabelFile) -> UserError:
    """Return the error for answers none of whose cited pages has a label."""
    cited = table.filter(pl.col("is_cited"))["page"].unique(maintain_order=True)
    pages = counted(len(cited), "cited page", "cited pages")
    examples = f"first: {cited[0]!r}; labels look like {known['page'][0]!r}"
    message = f"none of the {pages} has a label ({examples})"
    near = near_matches(cited, known["page"], all_forms=True)
    return DataError(label_file.path, f"{message}; {near}" if near else message)
