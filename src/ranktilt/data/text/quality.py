"""Examine texts: length, boilerplate, refusals, cut-off ends, shared terms, writing script.

The patterns below are built from smaller ones. `_OPENING` is what a chat model says before a
rewrite, `_ANSWER_OPENING` what it says before an answer, and `_REFUSAL` what it says in place of
one. `_COMPLETE_END` is how a complete text ends. A *term* is a lower-cased run of letters, digits
and underscores.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.texts import by_blocks

NEAR_IDENTICAL = 0.95
"""Jaccard similarity of term sets from which twins count as near-identical."""

_WORD = r"[^\s\x1c-\x1f]+"
"""A word as Python's ``split`` sees it."""
_PAIRS_AT_ONCE = 4_096
"""Number of pairs of texts that are compared at a time."""
_ENDS_AT_ONCE = 16_384
"""Number of ends of texts that are examined at a time."""
_END_LENGTH = 400
"""Number of characters at the end of a text that show whether it is complete."""

# Openings. No pattern matches a sentence with which a person would begin a text.
_S = r"['\u2019]"
"""Apostrophe, straight or curly."""
_QUOTES = r"\"'\u2018\u2019\u201c\u201d"
"""Quotation marks."""
_REWRITE = (
    r"(?:re-?writ(?:e|es|ten|ing)|paraphras(?:e|ed|ing)|re-?phras(?:ed|ing)|re-?word(?:ed|ing))"
)
"""Words for rewriting."""
_NOUN = (
    r"(?:text|passage|paragraph|abstract|article|document|content|sentence|excerpt|summary|answer"
    r"|version)s?"
)
"""Words for a text."""
_GIVEN = r"(?:the|your|this|that|my) (?:(?:given|original|provided|above|following|input|same) )*"
"""Words for the text that was to be rewritten."""
_MORE = r"[^.:!?\n]{0,90}?"
"""The rest of a sentence, up to its end."""
_IS = (
    rf"(?:here(?:{_S}s| is| are)|below is|(?:the )?following is|this is) "
    r"(?:a|an|the|my|your|one|another|some)\b"
)
"""Announcement of the text: "here is a"."""
_YES = (
    r"(?:sure thing|sure|certainly|of course|absolutely|gladly|with pleasure|no problem|understood"
    r"|got it|all ?right|okay|ok|great|yes)\s*[!,.:\u2013\u2014-]+\s*"
)
"""Agreement: "Sure!"."""
_BETTER = (
    r"(?:polished|improved|refined|simplified|condensed|shortened|summari[sz]ed|clearer|smoother"
    r"|(?:more )?concise)"
)
"""Words for an improved text."""
_WILLING = (
    rf"(?:i(?:{_S}d| would|{_S}ll| will)(?: be| gladly)?(?: happy| glad)?(?: to)?"
    r"|i can(?: certainly)?|happy to)"
)
"""Offer of help: "I'd be happy to"."""
_OFFER = (
    rf"(?:{_WILLING} (?:help|assist|{_REWRITE})\b{_MORE}[.:!\n]"
    rf"|thank you for (?:providing|sharing) {_MORE}[.!\n])\s*"
)
"""Sentence that offers help, or thanks for the text."""
_ANNOUNCED = "|".join(
    (
        rf"(?:as requested, )?{_IS}{_MORE}\b{_REWRITE}"
        rf"(?:\s*[:\n]|(?:,|(?: in| with| using| for| that)\b){_MORE}[:\n]"
        rf"|\b{_MORE}\b{_NOUN}(?:\b{_MORE}[:\n]|\.(?:\s|\z)))",
        rf"(?:as requested, )?{_IS}{_MORE}\b(?:version|revision|summary) of {_GIVEN}{_NOUN}\b"
        rf"{_MORE}[:\n]",
        rf"i(?: have|{_S}ve) {_REWRITE} {_GIVEN}{_NOUN}\b{_MORE}[.:\n]",
        rf"{_IS} (?:\w+,? (?:and )?){{0,2}}{_BETTER} (?:text|passage|paragraph|abstract|version)"
        rf"(?: of {_GIVEN}{_NOUN})?[*_]{{0,3}}\s*:",
        rf"{_IS} (?:\w+,? (?:and )?){{0,2}}summary[*_]{{0,3}}\s*:[*_]{{0,3}}\s*\n",
        rf"here(?:{_S}s| is| are) {_GIVEN}(?:{_REWRITE}|{_BETTER}) {_NOUN}[*_]{{0,3}}\s*:",
    )
)
"""Announcement of a rewrite."""
_LABELLED = "|".join(
    (
        rf"(?:(?:the|a|my|possible|suggested) )*{_REWRITE}(?: {_NOUN})?(?: of {_GIVEN}{_NOUN})?"
        r"(?:\s*\([^()\n]{0,60}\))?(?: (?:is|reads|would be))?(?: as follows)?[*_]{0,3}\s*:",
        r"(?:revised|original|given|input) (?:text|passage|paragraph|abstract)[*_]{0,3}\s*:",
        rf"(?:the )?(?:re-?written|paraphrased|re-?phrased|re-?worded) {_NOUN}[*_]{{0,3}}\s*\n",
    )
)
"""Label of a rewrite: "Rewritten text:"."""
_WRAPPED = rf"[\s*_#>{_QUOTES}`~=-]*"
"""Marks around an announcement."""
_RULE = r"[*_]{0,3}\s*(?:(?:-{3,}|={3,}|`{3}\w*)\s*)?"
"""Line between an announcement and the text."""
_OPENING = (
    rf"(?i)\A({_WRAPPED}(?:"
    rf"(?:{_YES})?(?:{_OFFER})?(?:{_WRAPPED}(?:{_ANNOUNCED}|{_LABELLED}){_RULE}){{1,3}}"
    rf"|{_YES}{_OFFER}"
    r"|(?:sure thing|sure|certainly|of course|absolutely)!\s+))"
)
"""Everything before a rewrite."""
_REPLY = r"(?:passage|paragraph|answer|response|reply|explanation|summary|overview|document)"
"""Words for an answer."""
_ANSWER_OPENING = (
    rf"(?i)\A({_WRAPPED}(?:(?:{_YES})?(?:{_IS}|here(?:{_S}s| is) {_GIVEN}){_MORE}\b{_REPLY}\b"
    rf"{_MORE}:{_RULE}\n"
    r"|(?:the )?(?:final )?(?:passage|paragraph|answer|response|reply)[*_]{0,3}\s*:[*_]{0,3}\s))"
)
"""Everything before an answer."""

# Refusals, each at the start of the text.
_SORRY = (
    rf"(?:(?:i|we)(?: am|{_S}m| are|{_S}re)? (?:\w+ )?(?:sorry|afraid)|sorry|i apologi[sz]e"
    r"|(?:my )?apologies)\b"
)
"""Apology."""
_CANNOT = (
    rf"(?:cannot|can{_S}?t|can not|am not able|{_S}m not able|am unable|{_S}m unable|won{_S}?t"
    rf"|will not|won{_S}?t be able|must (?:respectfully )?decline"
    rf"|do(?: not|n{_S}t) (?:have|understand|know|feel comfortable)"
    rf"|(?:am|{_S}m) (?:not|an? (?:ai|large|text|language)))"
)
"""Words for not being able to."""
_TASK = (
    r"(?:fulfil+|help (?:you|with)|assist|provide|re-?write|paraphrase|comply|generate|answer"
    r"|satisfy|engage in|complete (?:the|this|your)"
    r"|(?:create|write|produce|summari[sz]e|process|discuss) "
    r"(?:(?:a|any|this|that|the|your|such) )?(?:given |provided )?"
    r"(?:content|rewrite|paraphrase|summary|text|passage|version|request)\b)"
)
"""Words for what was asked."""
_MODEL = r"as an? (?:ai|artificial intelligence|large language|language)\b"
"""Words of a model about itself."""
_ASK = (
    r"(?:please|could you(?: please)?) provide (?:me with )?(?:the|a|more|some) "
    r"(?:original |full |actual )?"
)
"""Request for more of the text."""
_REFUSALS = (
    rf"{_SORRY}[^.!?\n]{{0,160}}?\b"
    rf"(?:i ?{_CANNOT}|(?:possible|appropriate|ethical) for me to|not enough context)\b",
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
"""Kinds of refusals."""
_REFUSAL = rf"(?i)\A[\s*_{_QUOTES}]*(?:{'|'.join(_REFUSALS)})"
"""Beginning of a refusal."""

# Endings.
_CLOSER = r"[\s\p{Pe}\p{Pi}\p{Pf}\"'>*_`~]*"
"""Closing brackets, quotes and Markdown."""
_NOTE = r"(?:\s*(?:\([^()\n]{0,200}\)|\[[^\[\]\n]{0,200}\]))*"
"""Notes in brackets at the end."""
_COMPLETE_END = "|".join(
    (
        rf"\p{{Sentence_Terminal}}{_CLOSER}{_NOTE}{_CLOSER}\z",
        r"[\p{L}\p{Pe}\p{Pf}\"][.!?][\"\u201d]?\d{1,3}(?:[,\u2013-]\d{1,3})*\z",
        r"(?:https?://|www\.|doi:)\S+\z",
        r"[\p{Thai}\p{Lao}][\p{Thai}\p{Lao}\s]*\z",
    )
)
"""End of a complete text."""
_TRAILS_OFF = rf"(?i)(?:\.\.+|\u2026){_CLOSER}\z|\(abstract truncated[^()]*\)\s*\z"
"""End of a text that trails off."""

UNSPACED = "unspaced"
"""Name of all scripts without white space between words."""
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]"
"""Signs of scripts without white space between words."""
_HEAD_LENGTH, _HEAD_FACTOR = 32, 4
"""Length of the start of a text that may show that it is Latin.

It is the first number, and the second one for each byte of the text beyond one a character: some
four in five characters of English prose are letters.
"""


def words(text: pl.Series) -> pl.Series:
    """Count the words of each text, which white space separates, as for Python's ``split``.

    This gives the mean of 201.81 words that is published for SciFact.
    """
    return text.str.count_matches(_WORD).cast(pl.Int64)


def opening(text: pl.Series) -> pl.Series:
    """Return the words of a chat model before the rewrite itself; null if there are none.

    They are announcements ("Sure, here's a possible rewrite:"), labels ("Rewritten text:"), offers
    ("I'd be happy to help.") and a bare "Certainly!", up to three in a row, with the quotation
    marks and Markdown around them. Only English is recognised. "Here we show that …" or "Sure
    enough, …" do not count.
    """
    return text.str.extract(_OPENING).str.strip_chars()


def answer_opening(text: pl.Series) -> pl.Series:
    """Return the words of a chat model before its answer to a question; null if there are none.

    They are those of `opening`, an announcement in a line of its own ("Here is a passage that
    answers your question:"), or a label ("Answer:"). A person may begin an answer in this way too,
    so they do not show that a model wrote the text.
    """
    return opening(text).fill_null(text.str.extract(_ANSWER_OPENING).str.strip_chars())


def without_opening(text: pl.Series) -> pl.Series:
    """Remove what `opening` returns, and one pair of quotation marks around the rest."""
    rest = pl.col("text").str.replace(_OPENING, "").str.strip_chars()
    quoted = rest.str.extract(r"\A[\"\u201c]([^\"\u201c\u201d]*)[\"\u201d]\z").str.strip_chars()
    has_opening = pl.col("text").str.contains(_OPENING)
    cleaned = pl.when(has_opening).then(quoted.fill_null(rest)).otherwise("text")
    return text.alias("text").to_frame().select(cleaned.alias(text.name))[text.name]


def refusal(text: pl.Series) -> pl.Series:
    """Return whether each text begins with words by which a model declines a task.

    Such as "I'm sorry, but I cannot …" and "As an AI language model, I …". Only English is
    recognised. Sympathy ("I'm sorry to hear …") does not count, nor does a limit of a study
    ("Unfortunately, we cannot exclude …").
    """
    return text.str.contains(_REFUSAL)


def cut_off(text: pl.Series) -> pl.Series:
    """Return whether each text ends in the middle: its last sentence has no final punctuation.

    Final punctuation is that of any script. Closing quotes, brackets and Markdown may follow it. A
    text may also end with a note in brackets, the number of a reference, or a web address or DOI.
    An ellipsis counts as cut off, and so does "(ABSTRACT TRUNCATED …)". A text that ends in Thai or
    Lao, which have no final punctuation, never counts, nor does an empty text.
    """
    blocks = text.to_frame().iter_slices(_ENDS_AT_ONCE) if len(text) else [text.to_frame()]
    ends = pl.concat(
        [block.to_series().str.strip_chars().str.tail(_END_LENGTH) for block in blocks]
    )
    is_complete = ends.str.contains(_COMPLETE_END) & ~ends.str.contains(_TRAILS_OFF)
    return ~is_complete & (ends != "")


def jaccard(a: pl.Series, b: pl.Series) -> npt.NDArray[np.float64]:
    """Return the Jaccard similarity of the term sets of paired texts, from 0 to 1.

    NaN if neither text of a pair has a term (Dai et al., KDD 2024, sec. 2.3.1).
    """
    a_counts, b_counts, common_counts = term_counts(a, b)
    return share(common_counts, a_counts + b_counts - common_counts)


def identical(a: pl.Series, b: pl.Series) -> pl.Series:
    """Return which paired texts are identical; two texts of only white space are not."""
    return (a == b) & a.str.contains(r"\S")


def share(counts: npt.NDArray[np.int64], totals: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Divide counts by totals; NaN where a total is 0."""
    shares = np.full(len(totals), np.nan)
    np.divide(counts, totals, out=shares, where=totals > 0)
    return shares


def term_counts(a: pl.Series, b: pl.Series) -> tuple[npt.NDArray[np.int64], ...]:
    """Count the distinct terms of paired texts.

    Returns three arrays: the number of terms of each text of `a`, of each text of `b`, and the
    number of terms that both texts of a pair have.
    """
    table = pl.DataFrame({"a": a, "b": b}, schema={"a": pl.String, "b": pl.String})
    terms = pl.all().str.to_lowercase().str.extract_all(r"\w+")
    common_terms = pl.col("a").list.set_intersection(pl.col("b"))
    # A few pairs at a time, because term lists take many times the memory of the texts.
    frames = list[pl.DataFrame]()
    for block in table.iter_slices(_PAIRS_AT_ONCE) if table.height else [table]:
        counts = (
            block.lazy()
            .select(terms)
            .select(
                a=pl.col("a").list.n_unique().cast(pl.Int64),
                b=pl.col("b").list.n_unique().cast(pl.Int64),
                common=common_terms.list.len().cast(pl.Int64),
            )
        )
        frames.append(counts.collect())
    return tuple(column.to_numpy() for column in pl.concat(frames).iter_columns())


def distinct_terms(text: pl.Series) -> pl.Series:
    """List the distinct terms of each text."""
    return text.str.to_lowercase().str.extract_all(r"\w+").list.unique()


def query_word_shares(
    queries: pl.Series,
    texts: pl.Series,
    query_rows: npt.NDArray[np.int64],
    text_rows: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """Return the share of a query's distinct terms that a text contains, for pairs of both.

    Parameters
    ----------
    queries, texts : polars.Series
        Texts of all queries and of all documents; only those in `text_rows` are read.
    query_rows, text_rows : array of int, shape (n_pairs,)
        Rows of the query and of the text of each pair.

    Returns
    -------
    array of float, shape (n_pairs,)
        Share for each pair, from 0 to 1; NaN if the query has no term (Askari et al., 2023,
        sec. 4).
    """
    # A text is read once, whatever the number of its queries.
    distinct_rows, row_of_pair = np.unique(text_rows, return_inverse=True)
    query_terms = distinct_terms(queries)
    text_terms = by_blocks(distinct_terms, texts.gather(distinct_rows))
    shares = np.full(len(query_rows), np.nan)
    for start in range(0, len(query_rows), _PAIRS_AT_ONCE):
        block = slice(start, start + _PAIRS_AT_ONCE)
        columns = {
            "query": query_terms.gather(query_rows[block]),
            "text": text_terms.gather(row_of_pair[block]),
        }
        pairs = pl.DataFrame(columns)
        common_count = pl.col("query").list.set_intersection("text").list.len()
        share_of_query = pairs.select(common_count / pl.col("query").list.len()).to_series()
        shares[block] = share_of_query.fill_nan(None).to_numpy()
    return shares


def script(text: pl.Series) -> pl.Series:
    """Return the script of most letters of each text; null for a text without letters.

    It is ``Latin``, ``unspaced`` (Chinese, Japanese, Thai and others without white space between
    words) or ``other``.
    """
    # Counting the letters of a whole text is slow, and most texts show early that they are Latin. A
    # character beyond ASCII has more bytes than one, so that `excess` is at least the number of
    # such characters. A text with as many letters of ASCII near its start is at least half Latin.
    excess = pl.col("text").str.len_bytes() - pl.col("text").str.len_chars()
    head = pl.col("text").str.head(_HEAD_LENGTH + _HEAD_FACTOR * excess)
    ascii_letters = head.str.count_matches("[A-Za-z]")
    named_text = text.alias("text").to_frame()
    is_latin = named_text.select((ascii_letters > 0) & (ascii_letters >= excess)).to_series()
    letters = pl.col("text").str.count_matches(r"[\p{L}\p{M}]")
    latin = pl.col("text").str.count_matches(r"\p{Latin}")
    unspaced = pl.col("text").str.count_matches(_UNSPACED)
    script_of_text = (
        pl.when(letters == 0)
        .then(None)
        .when(2 * latin >= letters)
        .then(pl.lit("Latin"))
        .when(2 * unspaced > letters)
        .then(pl.lit(UNSPACED))
        .otherwise(pl.lit("other"))
    )
    counted_scripts = named_text.filter(~is_latin).select(script_of_text).to_series()
    scripts = np.full(len(text), "Latin", dtype=object)
    scripts[~is_latin.to_numpy()] = counted_scripts.to_list()
    return pl.Series(text.name, scripts.tolist(), dtype=pl.String)
