"""A document's data as CSV; every number unrounded."""

from __future__ import annotations

from ranktilt.errors import UserError
from ranktilt.reporting.document import Document


def csv_document(document: Document) -> str:
    """Write the data, a line a row."""
    if document.data is None:
        raise UserError(f"{document.kind}: there is no table to write as CSV")
    return document.data.write_csv()
