"""Properties of texts as numbers, a value for each text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.text.quality import share, term_counts, words

Floats = npt.NDArray[np.float64]

_SENTENCE_END = r"\p{Sentence_Terminal}+[\p{Pe}\p{Pf}\"']*(?:\s|\z)"


def sentences(texts: pl.Series) -> pl.Series:
    """Count sentences: runs of closing punctuation before white space or the end; at least 1."""
    return texts.str.count_matches(_SENTENCE_END).cast(pl.Int64).clip(1)


def words_per_sentence(texts: pl.Series) -> Floats:
    """Return the mean number of words of a sentence; NaN for a text without words."""
    return np.asarray(_word_counts(texts) / sentences(texts).to_numpy().astype(np.float64))


def readability(texts: pl.Series) -> Floats:
    """Return the Coleman-Liau grade; NaN for a text without words.

    5.88 · letters a word − 29.6 · sentences a word − 15.8.
    """
    word_counts = _word_counts(texts)
    sentence_counts = sentences(texts).to_numpy().astype(np.float64)
    letters = texts.str.count_matches(r"[\p{L}\p{N}]").to_numpy()
    return np.asarray(5.88 * letters / word_counts - 29.6 * sentence_counts / word_counts - 15.8)


def type_token_ratio(texts: pl.Series) -> Floats:
    """Return distinct terms over all terms of a text, 0 to 1; NaN for a text without a term."""
    terms = texts.str.to_lowercase().str.extract_all(r"\w+")
    return share(terms.list.n_unique().to_numpy(), terms.list.len().to_numpy())


def query_word_share(docs: pl.DataFrame, queries: pl.DataFrame, qrels: pl.DataFrame) -> Floats:
    """Return the share of a query's distinct terms that a document holds, 0 to 1.

    The mean over the queries to which a document is relevant (a grade of 1 or more); NaN for a
    document that is relevant to none. `docs` and `queries` have ``id`` and ``text``.
    """
    relevant = (
        qrels.filter(pl.col("grade") > 0)
        .join(queries.select(query_id="id", query="text"), on="query_id", maintain_order="left")
        .join(docs.select("text", doc_id="id"), on="doc_id", maintain_order="left")
    )
    in_query, _, in_both = term_counts(relevant["query"], relevant["text"])
    shares = relevant.select("doc_id").with_columns(value=share(in_both, in_query))
    means = (
        shares.drop_nans("value")
        .group_by("doc_id", maintain_order=True)
        .agg(pl.col("value").mean())
    )
    ordered = docs.select(doc_id="id").join(means, on="doc_id", how="left", maintain_order="left")
    return ordered["value"].fill_null(np.nan).to_numpy()


def _word_counts(texts: pl.Series) -> Floats:
    """Count words; NaN for none."""
    counts = words(texts).to_numpy().astype(np.float64)
    return np.where(counts > 0, counts, np.nan)
