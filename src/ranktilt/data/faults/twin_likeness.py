"""Compute how alike the texts of twins are, once for checks, audits and controls.

*Twins* are two versions of one document by different sources.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.text.quality import NEAR_IDENTICAL, identical, jaccard
from ranktilt.data.text_facts import stored_facts

Ints = npt.NDArray[np.int64]

IDENTICAL_TEXTS = 2
"""Likeness of a pair of identical texts."""
ALIKE_TEXTS = 1
"""Likeness of a pair of near-identical texts."""
DIFFERENT_TEXTS = 0
"""Likeness of any other pair."""


def twin_likeness(collection: Collection, rows: Ints, near: float = NEAR_IDENTICAL) -> Ints:
    """Return the likeness of each pair of documents: 2, 1 or 0, from identical to different.

    Parameters
    ----------
    collection : Collection
        Collection of the documents.
    rows : array of int, shape (n_pairs, 2)
        Rows of the two documents of each pair, in any order.
    near : float, optional
        Smallest Jaccard similarity of the terms of near-identical texts, from 0 to 1.
    """
    text = collection.docs["text"]
    # Likeness has no direction. Sorted, the same pairs have the same key in whatever order they are
    # asked for.
    distinct_pairs, pair_index = np.unique(np.sort(rows, axis=1), axis=0, return_inverse=True)
    first, second = pl.Series(distinct_pairs[:, 0]), pl.Series(distinct_pairs[:, 1])
    pair_bytes = distinct_pairs.astype("<i8").tobytes()

    def find_similarity() -> pl.DataFrame:
        return pl.DataFrame({"similarity": jaccard(text.gather(first), text.gather(second))})

    facts = collection.memo(
        ("similarity of twins", hashlib.blake2b(pair_bytes, digest_size=16).digest()),
        lambda: stored_facts(collection, "similarity", find_similarity, inputs=[pair_bytes]),
    )
    similarity = facts["similarity"].to_numpy()
    is_identical = identical(text.gather(first), text.gather(second)).to_numpy()
    likeness = np.where(similarity >= near, ALIKE_TEXTS, DIFFERENT_TEXTS)
    likeness[is_identical] = IDENTICAL_TEXTS
    return likeness[pair_index.reshape(-1)]
