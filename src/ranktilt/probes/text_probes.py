"""Probes of a number a text: how varied and specific its words are, how hard it is to read, what a model cuts off."""

from __future__ import annotations

import numpy as np
import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.probes.base import Floats, Rows, TextProbe
from ranktilt.rankers.base import Ranker
from ranktilt.run import codes
from ranktilt.text.quality import share, term_counts, words

_TEXTS_AT_ONCE = 50_000
_SENTENCE_END = r"\p{Sentence_Terminal}+[\p{Pe}\p{Pf}\"']*(?:\s|\z)"


class SpecificityProbe(TextProbe):
    """Whether rewrites say the same in commoner words.

    The median, over a text's distinct terms, of ln(N / (1 + df)): N documents of the reference, df of them with the
    term. Terms are lower-cased runs of letters, digits and underscores of the text without its title. NaN for a text
    without a term.
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
    found = _terms(texts).join(idf, on="term", how="left").group_by("row").agg(pl.col("idf").fill_null(unseen).median())
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
        terms = _words(collection.docs["text"])
        distinct, every = (found.to_numpy() for found in (terms.list.n_unique(), terms.list.len()))
        return share(distinct, every)


class QueryWordsProbe(TextProbe):
    """The share of a query's distinct terms that stand in a document relevant to it, 0 to 1.

    The mean over the queries to which a document is relevant (a grade of 1 or more); NaN for a document that is
    relevant to none.
    """

    name = "query-words"
    question = "Do the relevant texts of one source hold more of the query's words?"
    citation = "Askari et al., 2023, sec. 4"
    what = "share of query words"
    label = "query words"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        queries = collection.queries.select(query_id="id", query="text")
        docs = collection.docs.select("text", doc_id="id")
        judged = collection.qrels.filter(pl.col("grade") > 0).join(queries, on="query_id").join(docs, on="doc_id")
        left, _, both = term_counts(judged["query"], judged["text"])
        found = judged.select("doc_id").with_columns(value=share(both, left)).drop_nans("value")
        means = found.group_by("doc_id").agg(pl.col("value").mean())
        values = np.full(collection.docs.height, np.nan)
        values[codes(means["doc_id"], collection.ids)] = means["value"].to_numpy()
        return values

    def of_pairs(self, collection: Collection, measured: Floats, queries: Rows, documents: Rows) -> Floats:
        """Compare the terms of each document with those of the query beside it; NaN where the query has no term."""
        asked = _terms(collection.queries["text"]).rename({"row": "query"})
        held = pl.concat(
            _terms(part).join(asked, on="term", how="semi").select("term", document=pl.col("row") + n * _TEXTS_AT_ONCE)
            for n, part in enumerate(_parts(collection.docs["text"]))
        )
        pairs = pl.DataFrame({"query": queries, "document": documents}).with_row_index("pair")
        wanted = pairs.cast(pl.UInt32).join(asked, on="query")
        found = wanted.join(held, on=["document", "term"], how="semi")
        counts = [np.bincount(one["pair"].to_numpy(), minlength=len(queries)) for one in (found, wanted)]
        return share(counts[0], counts[1])


def sentences(texts: pl.Series) -> pl.Series:
    """Count sentences: runs of closing punctuation before white space or the end, at least one a text."""
    return texts.str.count_matches(_SENTENCE_END).cast(pl.Int64).clip(1)


def _counts(collection: Collection) -> tuple[Floats, Floats]:
    """Count the words of every document, NaN for none, and its sentences."""
    texts = collection.docs["text"]
    count = words(texts).to_numpy().astype(np.float64)
    return np.where(count > 0, count, np.nan), sentences(texts).to_numpy().astype(np.float64)


class SentenceLengthProbe(TextProbe):
    """How many words a sentence has; NaN for a text without words."""

    name = "sentences"
    question = "Are the sentences of one source longer than those of the other?"
    what = "words per sentence"
    label = "sentence length"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        count, ends = _counts(collection)
        return np.asarray(count / ends)


class ReadabilityProbe(TextProbe):
    """The school grade that a text asks for: 5.88 · letters a word − 29.6 · sentences a word − 15.8.

    Letters and digits are counted, and no syllables, so that it can be computed without a dictionary. It was fitted on
    English; in other languages differences mean something and grades do not. NaN for a text without words.
    """

    name = "readability"
    question = "Are the texts of one source harder to read than those of the other?"
    citation = "Coleman & Liau, Journal of Applied Psychology 60, 1975"
    what = "Coleman-Liau grade"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        count, ends = _counts(collection)
        letters = collection.docs["text"].str.count_matches(r"[\p{L}\p{N}]").to_numpy()
        return np.asarray(5.88 * letters / count - 29.6 * ends / count - 15.8)


class TruncationProbe(TextProbe):
    """The share of a document's tokens, special ones included, beyond what an encoder reads, in %."""

    name = "truncation"
    question = "Does the model cut off more of one source than of the other?"
    what = "% of tokens unread"
    needs_encoder = True

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        tokens = getattr(getattr(ranker, "encoder", None), "tokens", None)
        if tokens is None or not tokens.readable:
            raise UserError("truncation needs an encoder on this machine, such as -r dense:minilm (ranker=)")
        texts = collection.texts(getattr(ranker, "text", "text")).to_list()
        counts = tokens.counts(texts, f"{ranker!r}: counting tokens").astype(np.float64)
        limit = np.inf if tokens.limit is None else float(tokens.limit)
        return np.asarray(100 * np.maximum(1 - limit / counts, 0.0), dtype=np.float64)
