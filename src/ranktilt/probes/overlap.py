"""What twins share in words: Jaccard similarity and overlap of their terms (Dai et al., KDD 2024, Fig. 3)."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.collection import Collection
from ranktilt.probes.distribution import Distribution
from ranktilt.text.quality import jaccard, overlap


@dataclass(frozen=True, eq=False)
class Overlap:
    """What the twins of one source share with the reference.

    Parameters
    ----------
    source : str
        The source that is held against the reference.
    jaccard : Distribution
        Terms of both over terms of either, 0 to 1.
    overlap : Distribution
        The share of the reference's terms that its rewrite kept, 0 to 1.
    """

    source: str
    jaccard: Distribution
    overlap: Distribution


def shared_terms(collection: Collection, reference: str, source: str) -> Overlap:
    """Compare the terms of every pair of twins.

    Parameters
    ----------
    collection : Collection
        Its texts without their titles are compared.
    reference, source : str
        Two of its sources, such as ``human`` and its rewrites.

    Returns
    -------
    Overlap
        A value a pair, in the order of `Collection.pairs`; NaN where a side has no term. Terms are lower-cased runs
        of letters, digits and underscores.

    Raises
    ------
    UserError
        If one of them is no source of the collection.

    References
    ----------
    Dai et al., KDD 2024, sec. 4 and Fig. 3.
    """
    pairs = collection.pairs(reference, source)
    texts = collection.docs.select("id", "text")
    table = pairs.join(texts, left_on="a", right_on="id", maintain_order="left")
    table = table.join(texts, left_on="b", right_on="id", suffix="_b", maintain_order="left")
    return Overlap(
        source,
        Distribution("Jaccard", jaccard(table["text"], table["text_b"])),
        Distribution("overlap", overlap(table["text"], table["text_b"])),
    )
