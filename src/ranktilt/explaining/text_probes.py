"""Small probes of texts: their length, what twins share, how varied and hard to read they are."""

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
    described,
    effect_size,
    histogram,
    twin_sources,
)
from ranktilt.rankers.base import Ranker

_TEXTS_AT_ONCE = 50_000
"""Number of texts whose terms are counted together; more would take too much memory."""


class WordsProbe(TextProbe):
    """How long the documents of each source are: whitespace words without the title."""

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

    Terms are lower-cased runs of letters, digits and underscores of the texts without their titles
    (Dai et al., KDD 2024, sec. 2.3.1 and Fig. 3). NaN where a side has no term.
    """
    of_reference, of_twin, of_both = _twin_terms(collection, reference, source)
    return Overlap(
        source=source,
        jaccard=Distribution(
            name="Jaccard", values=share(of_both, of_reference + of_twin - of_both)
        ),
        overlap=Distribution(name="overlap", values=share(of_both, of_reference)),
    )


def _twin_terms(collection: Collection, reference: str, source: str) -> tuple[Rows, ...]:
    """Count the distinct terms of each text of the reference, of its twin, and of both."""
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
                rows.append(described(overlap.source, quantity, of=quantity.name))
            of_reference, of_twin, _ = _twin_terms(collection, reference, overlap.source)
            effects.append(
                effect_size(
                    overlap.source,
                    "distinct terms",
                    of_reference.astype(float),
                    of_twin.astype(float),
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

    The median, over a text's distinct terms, of ln(N / (1 + df)): N documents of the reference, df
    of them with the term. Terms are lower-cased runs of letters, digits and underscores of the text
    without its title. NaN for a text without a term.
    """

    name = "specificity"
    question = "Are the words of one source more specific than those of the other?"
    citation = "inverse document frequency: Spärck Jones, Journal of Documentation 28, 1972"
    unit = "median idf"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        docs = collection.docs
        known = docs.filter(pl.col("source") == reference)["text"]
        counts = pl.concat([_terms(part).group_by("term").len("df") for part in _parts(known)])
        idf = counts.group_by("term").agg(idf=np.log(len(known)) - (1 + pl.col("df").sum()).log())
        medians = [_medians(part, idf, len(known)) for part in _parts(docs["text"])]
        return np.concatenate(medians) if medians else np.empty(0)


def _parts(texts: pl.Series) -> list[pl.Series]:
    """Cut texts into parts that are counted together."""
    return [texts.slice(start, _TEXTS_AT_ONCE) for start in range(0, len(texts), _TEXTS_AT_ONCE)]


def _words(texts: pl.Series) -> pl.Series:
    """Return the terms of each text, lower-cased."""
    return texts.str.to_lowercase().str.extract_all(r"\w+")


def _terms(texts: pl.Series) -> pl.DataFrame:
    """Return the distinct terms of each text, by its number."""
    terms = _words(texts).list.unique().rename("term")
    return pl.DataFrame(terms).with_row_index("row").explode("term").drop_nulls()


def _medians(texts: pl.Series, idf: pl.DataFrame, documents: int) -> Floats:
    """Return the median idf of each text's terms; NaN for a text without a term."""
    unseen = float(np.log(documents))
    medians = (
        _terms(texts)
        .join(idf, on="term", how="left")
        .group_by("row")
        .agg(pl.col("idf").fill_null(unseen).median())
    )
    values = np.full(len(texts), np.nan)
    values[medians["row"].to_numpy()] = medians["idf"].to_numpy()
    return values


class TypeTokenProbe(TextProbe):
    """Distinct terms over all terms of a text, 0 to 1; NaN for a text without a term.

    Shorter texts have more.
    """

    name = "type-token"
    question = "Does one source repeat its words more than the other?"
    unit = "distinct terms per term"
    label = "type/token ratio"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        return type_token_ratio(collection.docs["text"])


class QueryWordsProbe(TextProbe):
    """The share of a query's distinct terms that a relevant document has, 0 to 1.

    See `query_words`.
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
        """Return the share of each query's terms in its document; NaN where a query has none."""
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
    """The school grade that a text asks for.

    It is 5.88 · letters per word − 29.6 · sentences per word − 15.8. Letters and digits are
    counted, and no syllables, so that it can be computed without a dictionary. It was fitted on
    English; in other languages differences mean something and grades do not. NaN for a text without
    words.
    """

    name = "readability"
    question = "Are the texts of one source harder to read than those of the other?"
    citation = "Coleman & Liau, Journal of Applied Psychology 60, 1975"
    unit = "Coleman-Liau grade"
    label = "reading difficulty"  # more of it is harder to read

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        return readability(collection.docs["text"])


class TruncationProbe(TextProbe):
    """The share of a document's tokens that an encoder does not read, in %; counts special ones."""

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
