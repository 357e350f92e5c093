"""Small probes of texts: what a collection holds, what twins share, how varied and hard to read texts are."""

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


class WordsProbe(TextProbe):
    """How long the documents of each source are: whitespace words without the title."""

    name = "words"
    question = "Are the texts of one source longer than those of the other?"
    what = "words"
    label = "length"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        return words(collection.docs["text"]).to_numpy().astype(np.float64)


@dataclass(frozen=True, eq=False)
class Overlap:
    """What the twins of one source share with the reference."""

    source: str
    jaccard: Distribution
    """Terms of both over terms of either, 0 to 1."""
    overlap: Distribution
    """The share of the reference's terms that its rewrite kept, 0 to 1."""


def shared_terms(collection: Collection, reference: str, source: str) -> Overlap:
    """Compare the terms of every pair of twins, in the order of `Collection.pairs`; NaN where a side has no term.

    Terms are lower-cased runs of letters, digits and underscores of the texts without their titles
    (Dai et al., KDD 2024, sec. 2.3.1 and Fig. 3).
    """
    left, right, both = _twin_terms(collection, reference, source)
    return Overlap(
        source,
        Distribution("Jaccard", share(both, left + right - both)),
        Distribution("overlap", share(both, left)),
    )


def _twin_terms(collection: Collection, reference: str, source: str) -> tuple[Rows, ...]:
    """Distinct terms of each text of the reference, of its twin, and of both."""
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
        """Make a row a source and quantity; the effect size is that of distinct terms a text."""
        found = [(one.source, kind) for one in measured for kind in (one.jaccard, one.overlap)]
        rows = [described(source, kind, of=kind.name) for source, kind in found]
        effects = []
        for one in measured:
            left, right, _ = _twin_terms(collection, reference, one.source)
            effects.append(
                effect_size(one.source, "distinct terms", left.astype(float), right.astype(float))
            )
        figures = [
            histogram(
                "Jaccard similarity of twins' terms",
                "Jaccard",
                {one.source: one.jaccard for one in measured},
            ),
            histogram(
                "Share of terms that rewrites keep",
                "overlap",
                {one.source: one.overlap for one in measured},
            ),
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
    what = "median idf"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        docs = collection.docs
        known = docs.filter(pl.col("source") == reference)["text"]
        counts = pl.concat([_terms(part).group_by("term").len("df") for part in _parts(known)])
        idf = counts.group_by("term").agg(idf=np.log(len(known)) - (1 + pl.col("df").sum()).log())
        medians = [_medians(part, idf, len(known)) for part in _parts(docs["text"])]
        return np.concatenate(medians) if medians else np.empty(0)


def _parts(texts: pl.Series) -> list[pl.Series]:
    return [texts.slice(start, _TEXTS_AT_ONCE) for start in range(0, len(texts), _TEXTS_AT_ONCE)]


def _words(texts: pl.Series) -> pl.Series:
    return texts.str.to_lowercase().str.extract_all(r"\w+")


def _terms(texts: pl.Series) -> pl.DataFrame:
    """Return the distinct terms of each text, by its number."""
    terms = _words(texts).list.unique().rename("term")
    return pl.DataFrame(terms).with_row_index("row").explode("term").drop_nulls()


def _medians(texts: pl.Series, idf: pl.DataFrame, documents: int) -> Floats:
    unseen = float(np.log(documents))
    found = (
        _terms(texts)
        .join(idf, on="term", how="left")
        .group_by("row")
        .agg(pl.col("idf").fill_null(unseen).median())
    )
    values = np.full(len(texts), np.nan)
    values[found["row"].to_numpy()] = found["idf"].to_numpy()
    return values


class TypeTokenProbe(TextProbe):
    r"""Distinct terms over all terms of a text, 0 to 1; shorter texts have more. NaN for a text without a term."""

    name = "type-token"
    question = "Does one source repeat its words more than the other?"
    what = "distinct terms per term"
    label = "type/token ratio"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        return type_token_ratio(collection.docs["text"])


class QueryWordsProbe(TextProbe):
    """The share of a query's distinct terms that stand in a document relevant to it, 0 to 1; see `query_words`."""

    name = "query-words"
    question = "Do the relevant texts of one source hold more of the query's words?"
    citation = "Askari et al., 2023, sec. 4"
    what = "share of query words"
    label = "query words"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        return query_words(collection)

    def of_pairs(
        self, collection: Collection, measured: Floats, queries: Rows, documents: Rows
    ) -> Floats:
        """Compare the terms of each document with those of the query beside it; NaN where the query has no term."""
        return query_word_shares(collection.queries["text"], collection.texts(), queries, documents)


class SentenceLengthProbe(TextProbe):
    """How many words a sentence has; NaN for a text without words."""

    name = "sentences"
    question = "Are the sentences of one source longer than those of the other?"
    what = "words per sentence"
    label = "sentence length"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        return words_per_sentence(collection.docs["text"])


class ReadabilityProbe(TextProbe):
    """The school grade that a text asks for: 5.88 · letters a word − 29.6 · sentences a word − 15.8.

    Letters and digits are counted, and no syllables, so that it can be computed without a
    dictionary. It was fitted on English; in other languages differences mean something and grades
    do not. NaN for a text without words.
    """

    name = "readability"
    question = "Are the texts of one source harder to read than those of the other?"
    citation = "Coleman & Liau, Journal of Applied Psychology 60, 1975"
    what = "Coleman-Liau grade"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        return readability(collection.docs["text"])


class TruncationProbe(TextProbe):
    """The share of a document's tokens, special ones included, beyond what an encoder reads, in %."""

    name = "truncation"
    question = "Does the model cut off more of one source than of the other?"
    what = "% of tokens unread"
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
