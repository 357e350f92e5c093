"""Measure properties of texts, a number for each text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.text.quality import query_word_shares, share, words

Floats = npt.NDArray[np.float64]

_SENTENCE_END = r"\p{Sentence_Terminal}+[\p{Pe}\p{Pf}\"']*(?:\s|\z)"
"""End of a sentence: closing punctuation, quotes and brackets, then white space."""


def sentences(texts: pl.Series) -> pl.Series:
    """Count the sentences of each text, by the punctuation at their ends; at least 1."""
    return texts.str.count_matches(_SENTENCE_END).cast(pl.Int64).clip(1)


def words_per_sentence(texts: pl.Series) -> Floats:
    """Return the mean number of words per sentence; NaN for a text without words."""
    return np.asarray(_word_counts(texts) / sentences(texts).to_numpy().astype(np.float64))


def readability(texts: pl.Series) -> Floats:
    """Return the Coleman-Liau grade; NaN for a text without words.

    It estimates the year of an American school that a reader needs: 5.88 · letters per word − 29.6
    · sentences per word − 15.8 (Coleman & Liau, Journal of Applied Psychology 60, 1975). Digits
    count as letters.
    """
    word_counts = _word_counts(texts)
    sentence_counts = sentences(texts).to_numpy().astype(np.float64)
    letters = texts.str.count_matches(r"[\p{L}\p{N}]").to_numpy()
    return np.asarray(5.88 * letters / word_counts - 29.6 * sentence_counts / word_counts - 15.8)


def type_token_ratio(texts: pl.Series) -> Floats:
    """Return the number of distinct terms divided by the number of all terms, from 0 to 1.

    Terms are lower-cased runs of letters, digits and underscores. NaN for a text without a term.
    """
    terms = texts.str.to_lowercase().str.extract_all(r"\w+")
    return share(terms.list.n_unique().to_numpy(), terms.list.len().to_numpy())


def query_word_share(docs: pl.DataFrame, queries: pl.DataFrame, qrels: pl.DataFrame) -> Floats:
    """Return the share of a query's distinct terms that a document contains, from 0 to 1.

    It is the mean over the queries to which the document is relevant (a grade above 0); NaN for a
    document that is relevant to no query. `docs` and `queries` have ``id`` and ``text``; `qrels`
    has ``query_id``, ``doc_id`` and ``grade``.
    """
    query_rows = queries.select(query_id="id").with_row_index("query")
    text_rows = docs.select(doc_id="id").with_row_index("row")
    relevant = (
        qrels.filter(pl.col("grade") > 0)
        .join(query_rows, on="query_id", maintain_order="left")
        .join(text_rows, on="doc_id", maintain_order="left")
    )
    shares = query_word_shares(
        queries["text"],
        docs["text"],
        relevant["query"].to_numpy().astype(np.int64),
        relevant["row"].to_numpy().astype(np.int64),
    )
    means = (
        relevant.select("row", share=pl.Series(shares))
        .drop_nans("share")
        .group_by("row", maintain_order=True)
        .agg(pl.col("share").mean())
    )
    values = np.full(docs.height, np.nan)
    values[means["row"].to_numpy()] = means["share"].to_numpy()
    return values


def _word_counts(texts: pl.Series) -> Floats:
    """Count the words of each text; NaN for a text without words."""
    counts = words(texts).to_numpy().astype(np.float64)
    return np.where(counts > 0, counts, np.nan)
