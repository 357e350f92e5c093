"""What an index in Milvus is: its fields, its metric, and whether it holds a collection's documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.collection import TEXT_CHOICES, Collection
from ranktilt.errors import UserError, counted, unknown
from ranktilt.rankers.engines.milvus_index import BUILDING, LONGEST, cut_bytes, rows

SAMPLE = 64
"""Documents of somebody else's index that are looked at."""
ALIKE = 0.9
_OWN, _NEAR, _TINY = 0.5, 1e-3, 1e-12


@dataclass(frozen=True)
class Found:
    """An index as the server describes it.

    Parameters
    ----------
    name : str
        Its name.
    key : str
        Field that numbers or names the documents.
    key_is_text : bool
        Whether that field holds strings.
    vector, sparse, text : str
        Fields of the vectors, of what BM25 searches, and of its texts; empty where there is none.
    dimension : int
        Of the vectors.
    metric : str
        By which the vectors' index compares.
    kind : str
        Of the vectors' index, such as ``FLAT``.
    """

    name: str
    key: str
    key_is_text: bool
    vector: str
    sparse: str
    text: str
    dimension: int
    metric: str
    kind: str


def described(made: Any, name: str) -> Found:
    """Ask a server what an index is.

    Parameters
    ----------
    made : MilvusClient
        The server.
    name : str
        Name of the index.

    Returns
    -------
    Found
        What it says.

    Raises
    ------
    UserError
        If there is no such index, or several fields of vectors, of which none can be chosen.
    """
    if not made.has_collection(name, timeout=BUILDING):
        raise unknown("collection of this Milvus", name, sorted(made.list_collections(timeout=BUILDING)))
    about = made.describe_collection(name, timeout=BUILDING)
    fields = {field["name"]: field for field in about["fields"]}
    key = next(field for field in fields.values() if field.get("is_primary"))
    vectors = [field for field, what in fields.items() if what["type"].name == "FLOAT_VECTOR"]
    if len(vectors) > 1:
        raise UserError(f"milvus: {name!r} has {len(vectors)} fields of vectors, expected one: {', '.join(vectors)}")
    vector = vectors[0] if vectors else ""
    words = next((f for f in about.get("functions", []) if getattr(f["type"], "name", "") == "BM25"), None)
    indexes = [made.describe_index(name, index, timeout=BUILDING) for index in made.list_indexes(name)]
    index: dict[str, Any] = next((one for one in indexes if one["field_name"] == vector), {})
    return Found(
        name, key["name"], key["type"].name == "VARCHAR", vector,
        words["output_field_names"][0] if words else "", words["input_field_names"][0] if words else "",
        int(fields[vector]["params"]["dim"]) if vector else 0,
        str(index.get("metric_type", "")), str(index.get("index_type", "")),
    )  # fmt: skip


def check_documents(made: Any, found: Found, collection: Collection) -> list[int]:
    """Refuse an index that holds other documents than a collection: their number, and a sample of ids and texts.

    Parameters
    ----------
    made : MilvusClient
        The server.
    found : Found
        The index.
    collection : Collection
        What it should hold.

    Returns
    -------
    list of int
        Rows of the documents that were looked at.

    Raises
    ------
    UserError
        If it holds others.
    """
    held, total = rows(made, found.name), collection.docs.height
    if held != total:
        here = counted(total, "document", "documents")
        raise UserError(f"milvus: {found.name!r} holds {held:,}, the collection has {here}; leave collection= out")
    sample: list[int] = np.linspace(0, max(total - 1, 0), min(SAMPLE, total)).astype(int).tolist()
    fields = [found.key, *([found.text] if found.text else [])]
    stored = stored_fields(made, found, [collection.ids[row] for row in sample], fields)
    texts = [collection.texts(choice) for choice in TEXT_CHOICES] if found.text else []
    for row in sample:
        name = collection.ids[row]
        if name not in stored:
            raise UserError(f"milvus: {found.name!r} does not hold document {name!r}: its ids are others")
        if texts and not any(_one_in_other(stored[name][found.text], series[row]) for series in texts):
            raise UserError(f"milvus: {found.name!r} holds another text of document {name!r} than the collection")
    return sample


def stored_fields(made: Any, found: Found, ids: Sequence[str], fields: list[str]) -> dict[str, dict[str, Any]]:
    """Fields of documents by id; those that the index does not hold are left out."""
    if not found.key_is_text and not all(name.isdigit() and str(int(name)) == name for name in ids):
        return {}
    keys: list[Any] = list(ids) if found.key_is_text else [int(name) for name in ids]
    found_rows = made.query(found.name, ids=keys, output_fields=fields, timeout=BUILDING)
    return {str(row[found.key]): row for row in found_rows}


def check_vectors(who: str, stored: npt.NDArray[np.float32], own: npt.NDArray[np.float32]) -> None:
    """Refuse vectors that another model made: those of one model point the same way, whatever it computes in."""
    if stored.shape != own.shape:
        raise UserError(f"{who}: its vectors have {stored.shape[1]} dimensions, the model's {own.shape[1]}")
    norms = np.linalg.norm(stored, axis=1) * np.linalg.norm(own, axis=1)
    alike = float(np.median((stored * own).sum(axis=1) / np.where(norms > 0, norms, 1)))
    if alike < ALIKE:
        text = f"their median cosine with the model's own is {alike:.2f} over {len(own)} documents"
        raise UserError(f"{who}: its vectors are not those of this model and text: {text}")
    # Vectors of some models all point nearly the same way, so that those of another text are alike too.
    one, two = (side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), _TINY) for side in (stored, own))
    cosines = one @ two.T
    nearest = float(np.mean(cosines.diagonal() >= cosines.max(axis=1) - _NEAR))
    if nearest < _OWN:
        text = f"only {nearest:.0%} of {len(own)} documents are nearest to their own text"
        raise UserError(f"{who}: its vectors are those of other documents: {text}")


def _one_in_other(stored: str, text: str) -> bool:
    one, two = (" ".join(t.split()) for t in (stored, cut_bytes(text, LONGEST)))
    return one in two or two in one
