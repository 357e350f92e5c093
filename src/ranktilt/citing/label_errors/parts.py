"""Parts of the pages whose labels are wrong more or less often, such as short and long pages.

The user names the column that divides pages, such as ``by=words:3``: a column of the label file, in
three bins, or the words of a collection's texts. All labelled pages are divided, not only those
that answers hold, so that the borders of the bins do not depend on the answers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from ranktilt.auditing.groups import Groups
from ranktilt.auditing.label_errors.model import OPTION, LabelModel, label_model
from ranktilt.citing.arrays import PART
from ranktilt.citing.prepare import CitationInputs
from ranktilt.data.collection import Collection
from ranktilt.data.labels.label_errors import LabelErrors
from ranktilt.data.labels.label_file import LENGTH
from ranktilt.data.page_urls import page_key
from ranktilt.errors import UserError, unknown_name
from ranktilt.measures.ranking import Ints

_ROLES = ("page", "label", "domain", "id", "title", "text", "origin")
"""Columns of pages that have another role, and do not divide them."""


def citation_label_model(errors: LabelErrors, by: str, groups: list[str]) -> LabelModel:
    """Return how often labels of the two groups are wrong, if that is the same for all pages.

    Parameters
    ----------
    errors : LabelErrors
        What the user knows: error rates, or a sample of pages whose labels were checked.
    by : str
        Column of the labels.
    groups : list of str
        Names of the groups. `UserError` if there are not two.
    """
    _require_two(groups)
    label_groups = Groups(by=by, names=tuple(groups), code=np.empty(0, dtype=np.int64))
    return label_model(errors, None, label_groups)


def fitted_errors(
    errors: LabelErrors, by: str, inputs: CitationInputs, labels: object
) -> tuple[LabelModel, CitationInputs]:
    """Return how often labels are wrong, and the pages of answers with their parts.

    Without ``by=`` in the errors there is one part, and the pages stay as they are.

    Parameters
    ----------
    errors : LabelErrors
        What the user knows: error rates, or a sample of pages whose labels were checked.
    by : str
        Column of the labels.
    inputs : CitationInputs
        The pages of answers with their labels.
    labels : object
        What the pages were labelled by: a file, or a collection, whose texts have words to count.
    """
    if not errors.by:
        return citation_label_model(errors, by, inputs.groups), inputs
    _require_two(inputs.groups)
    is_exact = bool(inputs.spec.get("exact_urls"))
    collection = labels if isinstance(labels, Collection) else None
    pages = _divisible_pages(errors, inputs, collection, is_exact=is_exact)
    groups = Groups(by=by, names=tuple(inputs.groups), code=_group_codes(inputs, pages))
    model = label_model(_with_keys(errors, is_exact=is_exact), pages, groups)
    part_of_page = pl.DataFrame({"page": pages.docs["id"], PART: model.part})
    rows = inputs.rows.join(part_of_page, on="page", how="left", maintain_order="left")
    return model, replace(inputs, rows=rows)


def _require_two(groups: list[str]) -> None:
    """Refuse more than two groups, for which there is no correction."""
    if len(groups) != 2:
        raise UserError(
            f"{OPTION}: cite corrects two groups of pages, and there are {len(groups)} "
            f"({', '.join(groups)}); join some of them, such as --name {groups[1]}={groups[0]}"
        )


def _divisible_pages(
    errors: LabelErrors, inputs: CitationInputs, labels: Collection | None, *, is_exact: bool
) -> Collection:
    """Return all labelled pages as a collection of documents with the column that divides them."""
    column = errors.by.rpartition(":")[0] or errors.by
    pages = inputs.labelled_pages
    valid = [name for name in pages.columns if name not in _ROLES]
    if column in valid:
        docs = pages.select(pl.col("page").alias("id"), column, pl.lit("").alias("text"))
    elif column == LENGTH and labels is not None:
        docs = labels.docs.select("id", "text")
        if not is_exact:
            keys = pl.Series("id", [page_key(name) for name in docs["id"]], dtype=pl.String)
            docs = docs.with_columns(keys).unique("id", keep="first", maintain_order=True)
    else:
        if labels is not None:
            valid.append(LENGTH)
        raise UserError(
            f"{OPTION} {errors.text}: {unknown_name('column of the pages', column, valid)}; name a "
            "column of --groups, such as by=words:3, or state one rate for all"
        )
    # Pages that the file does not list have the label of the rest, and no value in the column.
    used = inputs.rows.select(pl.col("page").alias("id")).unique(maintain_order=True)
    unlisted = used.join(docs.select("id"), on="id", how="anti", maintain_order="left")
    docs = pl.concat([docs, unlisted.with_columns(text=pl.lit(""))], how="diagonal")
    judgments = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    queries = pl.DataFrame(schema={"id": pl.String, "text": pl.String})
    return Collection(docs, queries, pl.DataFrame(schema=judgments))


def _group_codes(inputs: CitationInputs, pages: Collection) -> Ints:
    """Return the index of each page's group; −1 for a page that no answer or list holds."""
    used = inputs.rows.select("page", "label").unique("page", maintain_order=True)
    labels = pages.docs.select(pl.col("id").alias("page")).join(
        used, on="page", how="left", maintain_order="left"
    )["label"]
    index_of_group = {name: number for number, name in enumerate(inputs.groups)}
    codes = labels.replace_strict(index_of_group, default=-1, return_dtype=pl.Int64)
    return codes.fill_null(-1).to_numpy()


def _with_keys(errors: LabelErrors, *, is_exact: bool) -> LabelErrors:
    """Return the errors with the checked pages named by keys, as pages of answers are.

    A key is the same for all spellings of an address. With `is_exact` pages are known by their
    addresses, and nothing changes.
    """
    if errors.sample is None or is_exact:
        return errors
    ids = errors.sample.rows["id"]
    keys = [None if name is None else page_key(name) for name in ids]
    rows = errors.sample.rows.with_columns(pl.Series("id", keys, dtype=pl.String))
    return replace(errors, sample=replace(errors.sample, rows=rows))
