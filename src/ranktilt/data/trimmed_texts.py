"""Texts that begin with their title, or stop at one length for all: what a builder did to one side only."""

from __future__ import annotations

import polars as pl

PAGE_TITLE = "page_title"
"""A column that keeps the title of documents whose title stands in their text, so that it is not ranked twice."""

SHORTEST_CUT = 20
"""Fewer words than this are no cut, but short texts."""
_FEWEST, _SHARE, _LONGER, _NEIGHBOURS, _PILE = 5, 0.02, 0.05, 10, 5
_AHEAD, _ROOM = 4, 64
_FOLD = r"[^\p{L}\p{N}]+"


def title_prefixed(docs: pl.DataFrame) -> pl.Series:
    """Tell which texts begin with their title (`PAGE_TITLE`, or the origin's), word by word; null if none is known."""
    table = docs.select(
        "id",
        "title",
        "text",
        "origin",
        _page=PAGE_TITLE if PAGE_TITLE in docs.columns else pl.lit(None),
    )
    own = pl.when(pl.col("title").str.strip_chars() != "").then("title").otherwise("_page")
    table = table.with_columns(_folded(own).alias("own"))
    origins = table.select(pl.col("id").alias("origin"), pl.col("own").alias("given")).unique(
        "origin", keep="first"
    )
    table = table.join(origins, on="origin", how="left", maintain_order="left")
    title = pl.coalesce(_known("own"), _known("given"))
    start = pl.col("text").str.head(
        _AHEAD * title.str.len_chars() + _ROOM
    )  # folding a whole text takes long
    begins = pl.concat_str(_folded(start), pl.lit(" ")).str.starts_with(
        pl.concat_str(title, pl.lit(" "))
    )
    return table.select(begins.alias("title_prefixed"))["title_prefixed"]


def _folded(text: pl.Expr) -> pl.Expr:
    return (
        text.str.normalize("NFKC").str.to_lowercase().str.replace_all(_FOLD, " ").str.strip_chars()
    )


def _known(name: str) -> pl.Expr:
    return pl.when(pl.col(name) != "").then(name)


def cut_at(lengths: pl.Series) -> tuple[int | None, pl.Series]:
    """Find the length (in words) at which the texts of a source were cut, and which have it; None if they were not.

    That is the most frequent length among those that at most 5 % of the texts exceed, at least
    `SHORTEST_CUT`, which at least 5 texts and 2 % of them have, and 5 times as many as have any
    other length within 10 words of it.
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
