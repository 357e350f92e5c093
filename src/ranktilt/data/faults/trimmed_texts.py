"""Find texts that begin with their title, or that stop at the same length as many others."""

from __future__ import annotations

import polars as pl

PAGE_TITLE = "page_title"
"""Column for the title of a document whose text begins with it.

The column ``title`` is empty then, so that the title is not ranked twice.
"""

# Limits of `cut_at`, which recognises the length at which texts were cut.
SHORTEST_CUT = 20
"""Fewest words of a cut text; texts with fewer are simply short."""
_FEWEST_CUT_TEXTS = 5
"""Fewest texts that must have the length of the cut."""
_SMALLEST_CUT_SHARE = 0.02
"""Smallest share of a source's texts that must have the length of the cut."""
_LARGEST_LONGER_SHARE = 0.05
"""Largest share of texts that may be longer than the cut, for example by a title added later."""
_NEARBY_WORDS = 10
"""Largest distance, in words, of the lengths that a cut is compared with."""
_TIMES_NEARBY = 5
"""How many times as many texts must have the length of the cut as any length nearby."""
_START_FACTOR = 4
"""Length of the start of a text that is compared with its title, as a multiple of the title's.

`_START_MARGIN` is added. Punctuation and the markup of a page make the start longer than the title
that it repeats.
"""
_START_MARGIN = 64
"""Number of characters that are added to that length."""
_NO_LETTERS = r"[^\p{L}\p{N}]+"
"""Characters that are neither letters nor digits."""


def title_prefixed(docs: pl.DataFrame) -> pl.Series:
    """Return which texts begin with the words of their title; null without a title.

    The title is that of the document, or its `PAGE_TITLE`, or else the title of its origin.
    """
    page_title = pl.col(PAGE_TITLE) if PAGE_TITLE in docs.columns else pl.lit(None)
    title = pl.when(pl.col("title").str.strip_chars() != "").then("title").otherwise(page_title)
    table = docs.select("id", "text", "origin", title=_plain_words(title))
    origins = table.select(origin="id", origin_title="title").unique("origin", keep="first")
    table = table.join(origins, on="origin", how="left", maintain_order="left")
    title = pl.coalesce(_null_if_empty("title"), _null_if_empty("origin_title"))
    # Only the start is compared, because normalising a long text takes long.
    start = pl.col("text").str.head(_START_FACTOR * title.str.len_chars() + _START_MARGIN)
    # The blank after both keeps a title "Art" from matching a text that begins with "Artists".
    blank = pl.lit(" ")
    start_words = pl.concat_str(_plain_words(start), blank)
    is_prefixed = start_words.str.starts_with(pl.concat_str(title, blank))
    return table.select(title_prefixed=is_prefixed)["title_prefixed"]


def _plain_words(text: pl.Expr) -> pl.Expr:
    """Return a text as lower-case words with single blanks, without punctuation."""
    lower = text.str.normalize("NFKC").str.to_lowercase()
    return lower.str.replace_all(_NO_LETTERS, " ").str.strip_chars()


def _null_if_empty(name: str) -> pl.Expr:
    """Return a column in which empty texts are null."""
    return pl.when(pl.col(name) != "").then(name)


def cut_at(lengths: pl.Series) -> int | None:
    """Return the length in words at which the texts of a source were cut; None if they were not.

    Texts were cut if unusually many have exactly the same length, and hardly any text is longer.
    The length of a cut is at least `SHORTEST_CUT` words. At most 5 % of the texts are longer. At
    least 5 texts and 2 % of all texts have this length, and 5 times as many as any other length
    within 10 words. Of several such lengths, the most frequent one counts.
    """
    total = len(lengths)
    counts = lengths.rename("length").value_counts(name="texts").sort("length", descending=True)
    counts = counts.with_columns(longer=pl.col("texts").cum_sum() - pl.col("texts"))
    fewest_texts = max(_FEWEST_CUT_TEXTS, _SMALLEST_CUT_SHARE * total)
    candidates = counts.filter(
        (pl.col("longer") <= _LARGEST_LONGER_SHARE * total)
        & (pl.col("texts") >= fewest_texts)
        & (pl.col("length") >= SHORTEST_CUT)
    )
    if not candidates.height:
        return None
    cut_length, text_count, _longer = candidates.sort("texts", "length", descending=True).row(0)
    distance = (pl.col("length") - cut_length).abs()
    nearby = counts.filter((distance <= _NEARBY_WORDS) & (distance > 0))
    is_frequent = text_count >= _TIMES_NEARBY * max(nearby["texts"], default=0)
    return int(cut_length) if is_frequent else None
