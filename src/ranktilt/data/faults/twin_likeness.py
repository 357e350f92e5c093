"""How alike the texts of twins are; computed once, as checks, audits and controls all ask."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.text.quality import NEAR_IDENTICAL, identical, jaccard

Rows = npt.NDArray[np.int64]


def twin_likeness(collection: Collection, rows: Rows, near: float = NEAR_IDENTICAL) -> Rows:
    """Return 2 for pairs of identical texts, 1 for near-identical ones and 0 for all others.

    `rows` has the two documents of each pair, in any order, shape (n_pairs, 2). Near-identical
    texts have a Jaccard similarity of at least `near`.
    """
    text = collection.docs["text"]
    # Likeness has no direction. Sorted, the same pairs are recognised in whatever order they come.
    pairs, pair = np.unique(np.sort(rows, axis=1), axis=0, return_inverse=True)
    first, second = pl.Series(pairs[:, 0]), pl.Series(pairs[:, 1])
    key = "similarity of twins", hashlib.blake2b(pairs.tobytes(), digest_size=16).digest()
    similarity = collection.memo(key, lambda: jaccard(text.gather(first), text.gather(second)))
    is_identical = identical(text.gather(first), text.gather(second)).to_numpy()
    likeness = np.where(is_identical, 2, np.where(similarity >= near, 1, 0))
    return likeness[pair.reshape(-1)]
