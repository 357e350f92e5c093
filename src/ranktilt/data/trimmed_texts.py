"""Find texts that begin with their title, or that stop at the same length as many others."""

from __future__ import annotations

import polars as pl

PAGE_TITLE = "page_title"
"""Column for the title of a document whose text holds it too, so that it is not ranked twice."""

SHORTEST_CUT = 20
"""Fewest words of a cut; texts with fewer are simply short."""
_FEWEST, _SHARE, _LONGER, _NEIGHBOURS, _PILE = 5, 0.02, 0.05, 10, 5
_AHEAD, _ROOM = 4, 64
_FOLD = r"[^\p{L}\p{N}]+"


def title_prefixed(docs: pl.DataFrame) -> pl.Series:
    """Return which texts begin with their title, word by word; null without a title.

    The title is that of the document, its `PAGE_TITLE`, or its origin's.
    """
    page_title = pl.col(PAGE_TITLE) if PAGE_TITLE in docs.columns else pl.lit(None)
    title = pl.when(pl.col("title").str.strip_chars() != "").then("title").otherwise(page_title)
    table = docs.select("id", "text", "origin", title=_folded(title))
    origins = table.select(origin="id", origin_title="title").unique("origin", keep="first")
    table = table.join(origins, on="origin", how="left", maintain_order="left")
    title = pl.coalesce(_stated("title"), _stated("origin_title"))
    # Only the start, because folding a long text takes long.
    start = pl.col("text").str.head(_AHEAD * title.str.len_chars() + _ROOM)
    blank = pl.lit(" ")
    is_prefixed = pl.concat_str(_folded(start), blank).str.starts_with(pl.concat_str(title, blank))
    return table.select(title_prefixed=is_prefixed)["title_prefixed"]


def _folded(text: pl.Expr) -> pl.Expr:
    return (
        text.str.normalize("NFKC").str.to_lowercase().str.replace_all(_FOLD, " ").str.strip_chars()
    )


def _stated(name: str) -> pl.Expr:
    return pl.when(pl.col(name) != "").then(name)


def cut_at(lengths: pl.Series) -> tuple[int | None, pl.Series]:
    """Find the length in words at which the texts of a source were cut, and which texts have it.

    None if they were not cut. It is the most frequent length among those that at most 5 % of the
    texts exceed, is at least `SHORTEST_CUT`, and is that of at least 5 texts, of 2 % of them, and
    of 5 times as many as any other length within 10 words.
    """
    total = len(lengths)
    counts = lengths.rename("length").value_counts(name="texts").sort("length", descending=True)
    counts = counts.with_columns(longer=pl.col("texts").cum_sum() - pl.col("texts"))
    least = max(_FEWEST, _SHARE * total)
    high = counts.filter(
        (pl.col("longer") <= _LONGER * total)
        & (pl.col("texts") >= least)
        & (pl.col("length") >= SHORTEST_CUT)
    )
    for limit, texts, _ in high.sort("texts", "length", descending=True).head(1).iter_rows():
        near = counts.filter(
            ((pl.col("length") - limit).abs() <= _NEIGHBOURS) & (pl.col("length") != limit)
        )
        if texts >= _PILE * max(near["texts"], default=0):
            return int(limit), (lengths == limit).alias("cut")
    return None, pl.repeat(False, total, dtype=pl.Boolean, eager=True).alias("cut")
