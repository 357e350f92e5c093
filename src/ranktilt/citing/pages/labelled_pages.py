"""Pages and their labels, from a label file or from the documents of a collection.

A page is known by its *key*. Addresses that differ in spelling only, such as in ``www.`` or a
trailing slash, have one key (`ranktilt.data.page_urls.page_key`), because answers spell addresses
as they like. With ``--exact-urls`` the key is the address as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ranktilt.citing.unit import DOMAIN
from ranktilt.data.collection import Collection
from ranktilt.data.id_forms import near_matches
from ranktilt.data.labels.group_names import group_name
from ranktilt.data.labels.label_file import LabelFile
from ranktilt.data.labels.label_table import read_labels
from ranktilt.data.page_urls import domain_of, page_key
from ranktilt.errors import DataError, UserError, counted, unknown_name

_TEXTS = ("title", "text")
"""Columns of a collection that hold texts, which the table of pages leaves out."""
_OWN_DOMAIN = ("domain", "host", "site")
"""Columns of a label file that may name a page's domain, the preferred one first."""
_ADDRESS_DOMAIN = "page_domain"
"""Temporary column for the domain in a page's address."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledPages:
    """The pages that have a label, and where the labels come from."""

    label_file: LabelFile
    """The label file, which a result's spec names; of a collection only the path is known."""
    pages: pl.DataFrame
    """A row for each page: ``page`` (its key), ``label``, ``domain``, and all other columns."""

    def add_to(self, table: pl.DataFrame) -> pl.DataFrame:
        """Add the label, the domain and the other columns of each page to a table with ``page``.

        A page that the label file does not list has no label, or the label that the user gives to
        all the rest. Its domain is that of its address, or the page itself.
        """
        columns = [
            name for name in self.pages.columns if name == "page" or name not in table.columns
        ]
        table = table.join(self.pages.select(columns), on="page", how="left", maintain_order="left")
        if self.label_file.rest:
            table = table.with_columns(pl.col("label").fill_null(self.label_file.rest))
        # A page may be in many answers; its address is parsed once.
        pages = table.filter(pl.col(DOMAIN).is_null())["page"].unique()
        domains = [domain_of(page) or page for page in pages]
        address_domains = pl.DataFrame(
            {"page": pages, _ADDRESS_DOMAIN: domains}, schema_overrides={_ADDRESS_DOMAIN: pl.String}
        )
        table = table.join(address_domains, on="page", how="left", maintain_order="left")
        domain = pl.col(DOMAIN).fill_null(pl.col(_ADDRESS_DOMAIN))
        return table.with_columns(domain).drop(_ADDRESS_DOMAIN)

    def no_match(self, cited: pl.Series) -> DataError:
        """Return the error for answers none of whose cited pages has a label.

        It shows the first cited and the first labelled page and, if a change of spelling would make
        some equal, which one. `cited` are the cited pages.
        """
        pages = counted(len(cited), "cited page", "cited pages")
        examples = f"first: {cited[0]!r}; labels look like {self.pages['page'][0]!r}"
        message = f"none of the {pages} has a label ({examples})"
        near = near_matches(cited, self.pages["page"], all_forms=True)
        return DataError(self.label_file.path, f"{message}; {near}" if near else message)


def label_pages(
    labels: str | Path | LabelFile | Collection, by: str, *, is_exact: bool
) -> LabelledPages:
    """Read the label of each page.

    Parameters
    ----------
    labels : str, Path, LabelFile or Collection
        A label file, or the collection whose documents are the pages.
    by : str
        Column whose values are the labels.
    is_exact : bool
        Whether pages are known by their addresses as they are, and not by keys.

    Raises
    ------
    UserError
        If there is no such column, no page has a label, or a page has several labels.
    """
    if isinstance(labels, Collection):
        path = str(labels.spec.get("path", "the collection"))
        pages = _collection_pages(labels, by, is_exact=is_exact)
        return LabelledPages(label_file=LabelFile(path), pages=pages)
    label_file = LabelFile.from_text(labels)
    return LabelledPages(
        label_file=label_file, pages=_file_pages(label_file, by, is_exact=is_exact)
    )


def _collection_pages(collection: Collection, by: str, *, is_exact: bool) -> pl.DataFrame:
    """Return the labelled documents of a collection as pages."""
    docs = collection.docs
    if by not in docs.columns or by in ("id", *_TEXTS):
        columns = [name for name in docs.columns if name not in ("id", *_TEXTS)]
        raise unknown_name("column", by, columns)
    pages = docs.select(pl.exclude(*_TEXTS)).rename({"id": "page", by: "label"})
    pages = pages.with_columns(pl.col("label").cast(pl.String))
    pages = pages.filter(pl.col("label").is_not_null())
    if not pages.height:
        raise UserError(
            f"no document of the collection has a {by}; name the group of each with --groups "
            f"FILE:id=doc_id,{by}=COLUMN"
        )
    if not is_exact:
        # Ids of documents may be addresses, of which several may have one key.
        pages = _with_keys(pages).unique("page", keep="first", maintain_order=True)
    if DOMAIN in pages.columns:
        return _with_named_domains(pages)
    return pages.with_columns(pl.col("page").alias(DOMAIN))


def _file_pages(label_file: LabelFile, by: str, *, is_exact: bool) -> pl.DataFrame:
    """Return the pages of a label file."""
    pages = read_labels(label_file, by=by).rename({"doc_id": "page"})
    if by not in pages.columns:
        raise UserError(f"--by {by}: cite compares labels as they are; name a column, without bins")
    pages = pages.with_columns(_with_column_names(pages[by])).rename({by: "label"})
    if not is_exact:
        pages = _with_keys(pages)
    pages = pages.filter(pl.col("label").is_not_null())
    _refuse_several_labels(pages, label_file)
    pages = pages.unique("page", keep="first", maintain_order=True)
    if DOMAIN in pages.columns:
        return _with_named_domains(pages)
    domain_columns = [name for name in _OWN_DOMAIN if name in pages.columns]
    if domain_columns:
        return pages.with_columns(pl.col(domain_columns[0]).cast(pl.String).alias(DOMAIN))
    # A page whose id is not an address is its own domain.
    domains = [domain_of(page) or page for page in pages["page"]]
    return pages.with_columns(pl.Series(DOMAIN, domains, dtype=pl.String))


def _with_keys(pages: pl.DataFrame) -> pl.DataFrame:
    """Return pages with their keys in place of their addresses."""
    keys = [page_key(page) for page in pages["page"]]
    return pages.with_columns(pl.Series("page", keys))


def _with_named_domains(pages: pl.DataFrame) -> pl.DataFrame:
    """Return pages whose column ``domain`` is text; a page without one is its own domain."""
    return pages.with_columns(pl.col(DOMAIN).cast(pl.String).fill_null(pl.col("page")))


def _with_column_names(labels: pl.Series) -> pl.Series:
    """Put the name of the column before labels that are bare numbers: 1 becomes ``source 1``."""
    names = {name: group_name(labels.name, name) for name in labels.drop_nulls().unique()}
    return labels.replace(names)


def _refuse_several_labels(pages: pl.DataFrame, label_file: LabelFile) -> None:
    """Refuse a page with several labels, unless the user chose which one counts."""
    labels = pages.group_by("page").agg(pl.col("label").n_unique().alias("labels"))
    clash = labels.filter(pl.col("labels") > 1).sort("page")
    if clash.height and label_file.several is None:
        page = clash["page"][0]
        message = f"page {page!r} has several labels, once addresses are compared by our rule"
        raise DataError(label_file.path, f"{message}; --exact-urls keeps addresses apart")
