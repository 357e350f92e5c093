"""Small probes of texts: their length, what twins share, how varied and hard to read they are.

A *probe* is a question about texts. *Twins* are two documents of the same origin, one by the
*reference* (usually human) and one by another source (author), its *rewrite*. *Terms* are
lower-cased runs of letters, digits and underscores. The *idf* of a term, its inverse document
frequency, is the higher the fewer documents have the term.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ranktilt.auditing.confounds import query_words
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.probes import NoTwinsToCompare, TermsKept
from ranktilt.data.text.features import readability, type_token_ratio, words_per_sentence
from ranktilt.data.text.quality import query_word_shares, share, term_counts, words
from ranktilt.errors import UserError
from ranktilt.explaining.base import (
    Distribution,
    Floats,
    Probe,
    ProbeResult,
    Rows,
    TextProbe,
    distribution_row,
    effect_size,
    histogram,
    twin_sources,
)
from ranktilt.rankers.base import Ranker

_TEXTS_PER_BATCH = 50_000
"""Number of texts whose terms are counted together; more would take too much memory."""


class WordsProbe(TextProbe):
    """How long the documents of each source are: words between white space, without the title."""

    name = "words"
    question = "Are the texts of one source longer than those of the other?"
    unit = "words"
    label = "length"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        return words(collection.docs["text"]).to_numpy().astype(np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Overlap:
    """Words that the twins of one source share with the reference."""

    source: str
    """Source of the rewrites."""
    jaccard: Distribution
    """For each pair, the terms in both texts over the terms in either, from 0 to 1."""
    overlap: Distribution
    """For each pair, the share of the reference's terms that its rewrite has, from 0 to 1."""


def shared_terms(collection: Collection, reference: str, source: str) -> Overlap:
    """Compare the terms of every pair of twins, in the order of `Collection.pairs`.

    Terms are those of the texts without their titles (Dai et al., KDD 2024, sec. 2.3.1 and Fig. 3).
    A value is NaN where the terms that it is a share of are none.
    """
    reference_counts, twin_counts, shared_counts = _twin_terms(collection, reference, source)
    union_counts = reference_counts + twin_counts - shared_counts
    return Overlap(
        source=source,
        jaccard=Distribution(name="Jaccard", values=share(shared_counts, union_counts)),
        overlap=Distribution(name="overlap", values=share(shared_counts, reference_counts)),
    )


def _twin_terms(collection: Collection, reference: str, source: str) -> tuple[Rows, ...]:
    """Count the distinct terms of each reference text, of its twin, and those in both."""
    texts = collection.docs.select("id", "text")
    table = collection.pairs(reference, source).join(
        texts, left_on="a", right_on="id", maintain_order="left"
    )
    table = table.join(texts, left_on="b", right_on="id", suffix="_b", maintain_order="left")
    return term_counts(table["text"], table["text_b"])


class OverlapProbe(Probe[tuple[Overlap, ...]]):
    """How many words a rewrite keeps."""

    name = "overlap"
    question = "How many of a text's words does its rewrite keep?"
    citation = "Dai et al., KDD 2024, sec. 2.3.1 and Fig. 3"

    def measure(
        self, collection: Collection, reference: str, ranker: Ranker | None
    ) -> tuple[Overlap, ...]:
        return tuple(
            shared_terms(collection, reference, name)
            for name in twin_sources(collection, reference)
        )

    def describe(
        self, collection: Collection, reference: str, measured: tuple[Overlap, ...]
    ) -> ProbeResult:
        """Make a row for each source and quantity; effect sizes are of distinct terms per text."""
        rows = []
        effects = []
        for overlap in measured:
            for quantity in (overlap.jaccard, overlap.overlap):
                rows.append(distribution_row(overlap.source, quantity, of=quantity.name))
            reference_counts, twin_counts, _shared = _twin_terms(
                collection, reference, overlap.source
            )
            effects.append(
                effect_size(
                    overlap.source,
                    "distinct terms",
                    reference_counts.astype(float),
                    twin_counts.astype(float),
                )
            )
        jaccards = {overlap.source: overlap.jaccard for overlap in measured}
        overlaps = {overlap.source: overlap.overlap for overlap in measured}
        figures = [
            histogram("Jaccard similarity of twins' terms", "Jaccard", jaccards),
            histogram("Share of terms that rewrites keep", "overlap", overlaps),
        ]
        findings: list[Note] = [
            TermsKept(
                source=overlap.source,
                reference=reference,
                pairs=overlap.overlap.count,
                overlap=overlap.overlap.mean,
                jaccard=overlap.jaccard.mean,
            )
            for overlap in measured
        ]
        findings = findings or [NoTwinsToCompare()]
        return self.result(reference, rows, effects=effects, figures=figures, findings=findings)


class SpecificityProbe(TextProbe):
    """Whether rewrites say the same in commoner words.

    The specificity of a text is the median of ln(N / (1 + df)) over its distinct terms, where N is
    the number of the reference's documents, and df the number of those with the term. Titles do not
    count. NaN for a text without a term.
    """

    name = "specificity"
    question = "Are the words of one source more specific than those of the other?"
    citation = "inverse document frequency: Spärck Jones, Journal of Documentation 28, 1972"
    unit = "median idf"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        docs = collection.docs
        reference_texts = docs.filter(pl.col("source") == reference)["text"]
        reference_count = len(reference_texts)
        counts = pl.concat(
            [_terms(batch).group_by("term").len("df") for batch in _batches(reference_texts)]
        )
        document_counts = counts.group_by("term").agg(pl.col("df").sum())
        idf = document_counts.select("term", idf=np.log(reference_count) - (1 + pl.col("df")).log())
        medians = [_median_idf(batch, idf, reference_count) for batch in _batches(docs["text"])]
        return np.concatenate(medians) if medians else np.empty(0)


def _batches(texts: pl.Series) -> list[pl.Series]:
    """Divide texts into batches whose terms are counted together."""
    starts = range(0, len(texts), _TEXTS_PER_BATCH)
    return [texts.slice(start, _TEXTS_PER_BATCH) for start in starts]


def _terms(texts: pl.Series) -> pl.DataFrame:
    """Return the distinct terms of each text, in columns ``row`` (of the text) and ``term``."""
    terms = texts.str.to_lowercase().str.extract_all(r"\w+").list.unique().rename("term")
    return pl.DataFrame(terms).with_row_index("row").explode("term").drop_nulls()


def _median_idf(texts: pl.Series, idf: pl.DataFrame, document_count: int) -> Floats:
    """Return the median idf of each text's terms; NaN for a text without a term.

    `idf` has those of the terms in `document_count` documents.
    """
    idf_of_other_terms = float(np.log(document_count))  # no document has them: df = 0
    medians = (
        _terms(texts)
        .join(idf, on="term", how="left")
        .group_by("row")
        .agg(pl.col("idf").fill_null(idf_of_other_terms).median())
    )
    values = np.full(len(texts), np.nan)
    values[medians["row"].to_numpy()] = medians["idf"].to_numpy()
    return values


class TypeTokenProbe(TextProbe):
    """Distinct terms of a text divided by all its terms, 0 to 1; NaN for a text without a term.

    The ratio is higher in shorter texts.
    """

    name = "type-token"
    question = "Does one source repeat its words more than the other?"
    unit = "distinct terms per term"
    label = "type/token ratio"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        return type_token_ratio(collection.docs["text"])


class QueryWordsProbe(TextProbe):
    """The share of a query's distinct terms that a relevant document has, 0 to 1.

    A document's value is the mean over the queries that it is relevant to; NaN without any.
    """

    name = "query-words"
    question = "Do the relevant texts of one source contain more of the query's words?"
    citation = "Askari et al., 2023, sec. 4"
    unit = "share of query words"
    label = "query words"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        return query_words(collection)

    def of_pairs(
        self, collection: Collection, measured: Floats, queries: Rows, documents: Rows
    ) -> Floats:
        """Return the share of each query's terms in its document; NaN for a query without terms."""
        return query_word_shares(collection.queries["text"], collection.texts(), queries, documents)


class SentenceLengthProbe(TextProbe):
    """How many words a sentence has; NaN for a text without words."""

    name = "sentences"
    question = "Are the sentences of one source longer than those of the other?"
    unit = "words per sentence"
    label = "sentence length"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        return words_per_sentence(collection.docs["text"])


class ReadabilityProbe(TextProbe):
    """The school grade at which a text can be read.

    It is 5.88 · letters per word − 29.6 · sentences per word − 15.8. It counts letters and digits
    in place of syllables, so it needs no dictionary. It was fitted on English; in other languages,
    differences between texts mean something, but grades do not. NaN for a text without words.
    """

    name = "readability"
    question = "Are the texts of one source harder to read than those of the other?"
    citation = "Coleman & Liau, Journal of Applied Psychology 60, 1975"
    unit = "Coleman-Liau grade"
    label = "reading difficulty"  # a higher grade is harder to read

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        return readability(collection.docs["text"])


class TruncationProbe(TextProbe):
    """The percentage of a document's tokens, including special ones, that an encoder cuts off."""

    name = "truncation"
    question = "Does the model cut off more of one source than of the other?"
    unit = "% of tokens unread"
    needs_encoder = True

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        tokens = getattr(getattr(ranker, "encoder", None), "tokens", None)
        if tokens is None or not tokens.readable:
            raise UserError(
                "truncation needs an encoder on this machine, such as -r dense:minilm (ranker=)"
            )
        texts = collection.texts(getattr(ranker, "text", "text")).to_list()
        counts = tokens.counts(texts, f"{ranker!r}: counting tokens").astype(np.float64)
        limit = np.inf if tokens.limit is None else float(tokens.limit)
        return np.asarray(100 * np.maximum(1 - limit / counts, 0.0), dtype=np.float64)
