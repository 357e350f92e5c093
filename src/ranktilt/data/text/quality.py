"""What can be seen in texts themselves: length, boilerplate, refusals, cut-off ends, shared terms, writing script."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

NEAR_IDENTICAL = 0.95
"""Jaccard similarity of term sets from which twins count as near-identical."""

_WORD = r"[^\s\x1c-\x1f]+"
_PAIRS_AT_ONCE, _ENDS_AT_ONCE = 4_096, 16_384
_TAIL = 400

# Openings. Each part is made so that a sentence with which a person would begin a text does not fit
# it.
_S = r"['\u2019]"
_QUOTES = r"\"'\u2018\u2019\u201c\u201d"
_REWRITE = (
    r"(?:re-?writ(?:e|es|ten|ing)|paraphras(?:e|ed|ing)|re-?phras(?:ed|ing)|re-?word(?:ed|ing))"
)
_NOUN = r"(?:text|passage|paragraph|abstract|article|document|content|sentence|excerpt|summary|answer|version)s?"
_GIVEN = r"(?:the|your|this|that|my) (?:(?:given|original|provided|above|following|input|same) )*"
_MORE = r"[^.:!?\n]{0,90}?"
_IS = rf"(?:here(?:{_S}s| is| are)|below is|(?:the )?following is|this is) (?:a|an|the|my|your|one|another|some)\b"
_YES = (
    r"(?:sure thing|sure|certainly|of course|absolutely|gladly|with pleasure|no problem|understood|got it|all ?right"
    r"|okay|ok|great|yes)\s*[!,.:\u2013\u2014-]+\s*"
)
_BETTER = (
    r"(?:polished|improved|refined|simplified|condensed|shortened|summari[sz]ed|clearer|smoother"
    r"|(?:more )?concise)"
)
_WILLING = rf"(?:i(?:{_S}d| would|{_S}ll| will)(?: be| gladly)?(?: happy| glad)?(?: to)?|i can(?: certainly)?|happy to)"
_OFFER = (
    rf"(?:{_WILLING} (?:help|assist|{_REWRITE})\b{_MORE}[.:!\n]"
    rf"|thank you for (?:providing|sharing) {_MORE}[.!\n])\s*"
)
_ANNOUNCED = "|".join(
    (
        rf"(?:as requested, )?{_IS}{_MORE}\b{_REWRITE}"
        rf"(?:\s*[:\n]|(?:,|(?: in| with| using| for| that)\b){_MORE}[:\n]"
        rf"|\b{_MORE}\b{_NOUN}(?:\b{_MORE}[:\n]|\.(?:\s|\z)))",
        rf"(?:as requested, )?{_IS}{_MORE}\b(?:version|revision|summary) of {_GIVEN}{_NOUN}\b{_MORE}[:\n]",
        rf"i(?: have|{_S}ve) {_REWRITE} {_GIVEN}{_NOUN}\b{_MORE}[.:\n]",
        rf"{_IS} (?:\w+,? (?:and )?){{0,2}}{_BETTER} (?:text|passage|paragraph|abstract|version)"
        rf"(?: of {_GIVEN}{_NOUN})?[*_]{{0,3}}\s*:",
        rf"{_IS} (?:\w+,? (?:and )?){{0,2}}summary[*_]{{0,3}}\s*:[*_]{{0,3}}\s*\n",
        rf"here(?:{_S}s| is| are) {_GIVEN}(?:{_REWRITE}|{_BETTER}) {_NOUN}[*_]{{0,3}}\s*:",
    )
)
_LABELLED = "|".join(
    (
        rf"(?:(?:the|a|my|possible|suggested) )*{_REWRITE}(?: {_NOUN})?(?: of {_GIVEN}{_NOUN})?"
        r"(?:\s*\([^()\n]{0,60}\))?(?: (?:is|reads|would be))?(?: as follows)?[*_]{0,3}\s*:",
        r"(?:revised|original|given|input) (?:text|passage|paragraph|abstract)[*_]{0,3}\s*:",
        rf"(?:the )?(?:re-?written|paraphrased|re-?phrased|re-?worded) {_NOUN}[*_]{{0,3}}\s*\n",
    )
)
_WRAPPED = rf"[\s*_#>{_QUOTES}`~=-]*"
_RULE = r"[*_]{0,3}\s*(?:(?:-{3,}|={3,}|`{3}\w*)\s*)?"
_OPENING = (
    rf"(?i)\A({_WRAPPED}(?:"
    rf"(?:{_YES})?(?:{_OFFER})?(?:{_WRAPPED}(?:{_ANNOUNCED}|{_LABELLED}){_RULE}){{1,3}}"
    rf"|{_YES}{_OFFER}"
    r"|(?:sure thing|sure|certainly|of course|absolutely)!\s+))"
)
_REPLY = r"(?:passage|paragraph|answer|response|reply|explanation|summary|overview|document)"
_ANSWER_OPENING = (
    rf"(?i)\A({_WRAPPED}(?:(?:{_YES})?(?:{_IS}|here(?:{_S}s| is) {_GIVEN}){_MORE}\b{_REPLY}\b{_MORE}:{_RULE}\n"
    rf"|(?:the )?(?:final )?(?:passage|paragraph|answer|response|reply)[*_]{{0,3}}\s*:[*_]{{0,3}}\s))"
)

# Refusals, each at the start of the text.
_SORRY = rf"(?:(?:i|we)(?: am|{_S}m| are|{_S}re)? (?:\w+ )?(?:sorry|afraid)|sorry|i apologi[sz]e|(?:my )?apologies)\b"
_CANNOT = (
    rf"(?:cannot|can{_S}?t|can not|am not able|{_S}m not able|am unable|{_S}m unable|won{_S}?t|will not"
    rf"|won{_S}?t be able|must (?:respectfully )?decline|do(?: not|n{_S}t) (?:have|understand|know|feel comfortable)"
    rf"|(?:am|{_S}m) (?:not|an? (?:ai|large|text|language)))"
)
_TASK = (
    r"(?:fulfil+|help (?:you|with)|assist|provide|re-?write|paraphrase|comply|generate|answer|satisfy|engage in"
    r"|complete (?:the|this|your)"
    r"|(?:create|write|produce|summari[sz]e|process|discuss) (?:(?:a|any|this|that|the|your|such) )?"
    r"(?:given |provided )?(?:content|rewrite|paraphrase|summary|text|passage|version|request)\b)"
)
_MODEL = r"as an? (?:ai|artificial intelligence|large language|language)\b"
_ASK = r"(?:please|could you(?: please)?) provide (?:me with )?(?:the|a|more|some) (?:original |full |actual )?"
_REFUSALS = (
    rf"{_SORRY}[^.!?\n]{{0,160}}?\b(?:i ?{_CANNOT}|(?:possible|appropriate|ethical) for me to|not enough context)\b",
    rf"(?:[^.!?\n]{{0,80}}[.!,] )?{_MODEL}[^.!?\n]{{0,80}}?,? i\b",
    rf"(?:unfortunately,? )?i ?{_CANNOT} (?:(?:to|directly|actually) )*{_TASK}\b",
    rf"it(?: is|{_S}s| would be) not (?:appropriate|ethical|possible) for me to\b",
    rf"i must (?:respectfully )?decline (?:to {_TASK}|(?:this|your) request)\b",
    rf"i(?:{_S}m| am) not comfortable (?:{_REWRITE}|summari[sz]ing)\b",
    rf"(?:[^.!?\n]{{0,60}}[, ])?you (?:have not|haven{_S}?t|did not|didn{_S}?t)(?: actually)?"
    r" (?:provided?|included?|given?) (?:me )?(?:with )?(?:any|the|a) (?:text|passage|paragraph)\b",
    r"no (?:text|passage) (?:was|has been) (?:provided|given)(?:[.,]| to re| for me)",
    rf"(?:[^.!?\n]{{0,120}}[.!,] )?{_ASK}(?:text|passage|paragraph|context)\b",
)
_REFUSAL = rf"(?i)\A[\s*_{_QUOTES}]*(?:{'|'.join(_REFUSALS)})"

# Endings.
_CLOSER = r"[\s\p{Pe}\p{Pi}\p{Pf}\"'>*_`~]*"
_NOTE = r"(?:\s*(?:\([^()\n]{0,200}\)|\[[^\[\]\n]{0,200}\]))*"
_WHOLE = "|".join(
    (
        rf"\p{{Sentence_Terminal}}{_CLOSER}{_NOTE}{_CLOSER}\z",
        r"[\p{L}\p{Pe}\p{Pf}\"][.!?][\"\u201d]?\d{1,3}(?:[,\u2013-]\d{1,3})*\z",
        r"(?:https?://|www\.|doi:)\S+\z",
        r"[\p{Thai}\p{Lao}][\p{Thai}\p{Lao}\s]*\z",
    )
)
_TRAILS_OFF = rf"(?i)(?:\.\.+|\u2026){_CLOSER}\z|\(abstract truncated[^()]*\)\s*\z"

UNSPACED = "unspaced"
"""Scripts without white space between words."""
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]"


def words(text: pl.Series) -> pl.Series:
    """Count whitespace-separated words, as Python's ``split`` finds them (this gives SciFact's published 201.81)."""
    return text.str.count_matches(_WORD).cast(pl.Int64)


def opening(text: pl.Series) -> pl.Series:
    """Find what a chat model says before the rewrite itself, with the marks around it; null where there is nothing.

    Announcements ("Sure, here's a possible rewrite:"), labels ("Rewritten text:"), offers ("I'd be
    happy to help.") and a bare "Certainly!", up to three in a row. English only. "Here we show that
    …" or "Sure enough, …" is none.
    """
    return text.str.extract(_OPENING).str.strip_chars()


def answer_opening(text: pl.Series) -> pl.Series:
    """Find what a chat model says before its answer to a question; null where there is nothing.

    What `opening` finds, an announcement in a line of its own ("Here is a passage that answers your
    question:"), or a label ("Answer:"). A person may begin an answer so, too: it is no sign of a
    model.
    """
    return opening(text).fill_null(text.str.extract(_ANSWER_OPENING).str.strip_chars())


def without_opening(text: pl.Series) -> pl.Series:
    """Remove what `opening` finds, and one pair of quotation marks around the rest; other texts stay as they are."""
    rest = pl.col("text").str.replace(_OPENING, "").str.strip_chars()
    quoted = rest.str.extract(r"\A[\"\u201c]([^\"\u201c\u201d]*)[\"\u201d]\z").str.strip_chars()
    found = pl.col("text").str.contains(_OPENING)
    table = text.alias("text").to_frame()
    return table.select(
        pl.when(found).then(quoted.fill_null(rest)).otherwise("text").alias(text.name)
    )[text.name]


def refusal(text: pl.Series) -> pl.Series:
    """Tell where a text begins as a model declines: "I'm sorry, but I cannot …", "As an AI language model, I …".

    English only. Sympathy ("I'm sorry to hear …") is none, nor is a limit of a study
    ("Unfortunately, we cannot exclude …").
    """
    return text.str.contains(_REFUSAL)


def cut_off(text: pl.Series) -> pl.Series:
    """Tell where a text ends in the middle: its last sentence has no final punctuation, in any script that has some.

    Closing quotes, brackets and Markdown after it are allowed, and so are a note in brackets, the
    number of a reference and a web address or DOI as the last word. An ellipsis counts as cut off,
    and so does "(ABSTRACT TRUNCATED …)"; texts that end in Thai or Lao never are, nor are empty
    ones.
    """
    parts = text.to_frame().iter_slices(_ENDS_AT_ONCE) if len(text) else [text.to_frame()]
    ends = pl.concat([part.to_series().str.strip_chars().str.tail(_TAIL) for part in parts])
    return (~ends.str.contains(_WHOLE) | ends.str.contains(_TRAILS_OFF)) & (ends != "")


def jaccard(a: pl.Series, b: pl.Series) -> npt.NDArray[np.float64]:
    """Compute the Jaccard similarity of the term sets of paired texts, 0 to 1; NaN where neither text has a term.

    Terms are lower-cased runs of letters, digits and underscores (Dai et al., KDD 2024, sec.
    2.3.1).
    """
    left, right, both = term_counts(a, b)
    return share(both, left + right - both)


def identical(a: pl.Series, b: pl.Series) -> pl.Series:
    """Tell which paired texts are the same, to the letter; two texts of white space alone are not."""
    return (a == b) & a.str.contains(r"\S")


def likeness(a: pl.Series, b: pl.Series, near: float = NEAR_IDENTICAL) -> npt.NDArray[np.int64]:
    """Tell identical texts (2) and near-identical ones (1, a Jaccard similarity from `near` on) from others (0)."""
    return np.where(identical(a, b).to_numpy(), 2, np.where(jaccard(a, b) >= near, 1, 0))


def share(part: npt.NDArray[np.int64], whole: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Divide counts; NaN where the whole is 0."""
    out = np.full(len(whole), np.nan)
    np.divide(part, whole, out=out, where=whole > 0)
    return out


def term_counts(a: pl.Series, b: pl.Series) -> tuple[npt.NDArray[np.int64], ...]:
    """Count the distinct terms of each `a`, of each `b`, and of both; terms as in `jaccard`.

    A few pairs at a time, because term lists take many times the memory of the texts.
    """
    table = pl.DataFrame({"a": a, "b": b}, schema={"a": pl.String, "b": pl.String})
    sets = [pl.col(side).list for side in "ab"]
    counts = [
        sets[0].n_unique(),
        sets[1].n_unique(),
        sets[0].set_intersection(pl.col("b")).list.len(),
    ]
    parts = [
        part.lazy()
        .select(pl.all().str.to_lowercase().str.extract_all(r"\w+"))
        .select(
            expr.cast(pl.Int64).alias(name)
            for name, expr in zip(("left", "right", "both"), counts, strict=True)
        )
        .collect()
        for part in (table.iter_slices(_PAIRS_AT_ONCE) if table.height else [table])
    ]
    return tuple(series.to_numpy() for series in pl.concat(parts).iter_columns())


def distinct_terms(text: pl.Series) -> pl.Series:
    """List the distinct terms of each text; terms as in `jaccard`."""
    return text.str.to_lowercase().str.extract_all(r"\w+").list.unique()


def query_word_shares(
    queries: pl.Series,
    texts: pl.Series,
    query_rows: npt.NDArray[np.int64],
    text_rows: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """Compute the share of a query's distinct terms that a text holds, 0 to 1; NaN where the query has no term.

    Parameters
    ----------
    queries, texts : polars.Series
        All texts; only those that the rows name are read.
    query_rows, text_rows : array of int, shape (n_pairs,)
        Which query is held beside which text.

    Returns
    -------
    array of float, shape (n_pairs,)
        A share for each pair (Askari et al., 2023, sec. 4).
    """
    # A text is read once, whatever the number of its queries.
    read_rows, place = np.unique(text_rows, return_inverse=True)
    query_terms, text_terms = distinct_terms(queries), distinct_terms(texts.gather(read_rows))
    shares = np.full(len(query_rows), np.nan)
    for start in range(0, len(query_rows), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        pairs = pl.DataFrame(
            {
                "query": query_terms.gather(query_rows[part]),
                "text": text_terms.gather(place[part]),
            }
        )
        common = pl.col("query").list.set_intersection("text").list.len()
        share_of_query = pairs.select(common / pl.col("query").list.len()).to_series()
        shares[part] = share_of_query.fill_nan(None).to_numpy()
    return shares


def script(text: pl.Series) -> pl.Series:
    """Tell in which writing most letters are: ``Latin``, ``unspaced`` or ``other``; null without letters."""
    plain = (text.str.len_bytes() == text.str.len_chars()) & text.str.contains(
        "[A-Za-z]"
    )  # quick to see
    letters, latin, unspaced = (
        pl.col("text").str.count_matches(pattern)
        for pattern in (r"[\p{L}\p{M}]", r"\p{Latin}", _UNSPACED)
    )
    known = pl.when(letters == 0).then(None).when(2 * latin >= letters).then(pl.lit("Latin"))
    kind = known.when(2 * unspaced > letters).then(pl.lit(UNSPACED)).otherwise(pl.lit("other"))
    found = np.full(len(text), "Latin", dtype=object)
    found[~plain.to_numpy()] = (
        text.filter(~plain).alias("text").to_frame().select(kind).to_series().to_list()
    )
    return pl.Series(text.name, found.tolist(), dtype=pl.String)
