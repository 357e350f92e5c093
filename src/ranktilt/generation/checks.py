"""Clean a model's answers of wrappers around the text, and flag the faults of the text.

In this module the *source* is the text that an answer rewrites, or the query that it answers. What
is in the source already, such as a code fence or a refusal, is no fault of the answer. An *opening*
is a sentence before the text, such as "Sure, here is the rewrite:". A *flag* is the name of a
fault.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import polars as pl

from ranktilt.data.text import quality
from ranktilt.data.text.sequence import holds_share
from ranktilt.errors import UserError
from ranktilt.llm.cleaning import AnswerSpan, answer_span, text_of_object

FLAGS = (
    "refusal",
    "empty",
    "cut off",
    "filtered",
    "copied",
    "other script",
    "too short",
    "too long",
)
"""Faults of a text, in the order in which they are listed."""

_MOST_OPENINGS = 2
"""Maximum number of openings to remove, such as a bare "Sure!" and an announcement after it."""
_WRAPPER = re.compile(
    r"```[\w-]*[ \t]*\n(?P<fence>(?:(?!```).)*?)\s*```|\"(?P<plain>[^\"]+)\""
    r"|\u201c(?P<curly>[^\u201c\u201d]+)\u201d"
    r"|\u00ab(?P<angle>[^\u00ab\u00bb]+)\u00bb|\*\*(?P<bold>[^*]+)\*\*"
    r"|<(?P<name>(?:final_)?answer|response|output|result|re_?writ(?:e|ten)(?:_\w+)?"
    r"|paraphrased?(?:_\w+)?|text|passage|document|title|summary)>"
    r"(?P<tag>(?:(?!</?(?P=name)>).)*)</(?P=name)>",
    re.DOTALL | re.IGNORECASE,
)
"""A code fence, quotation marks, asterisks or a tag around a whole answer.

The group that matched holds the text inside: ``fence``, ``plain``, ``curly``, ``angle``, ``bold``
or ``tag`` (``name`` is the tag's name).
"""
_FINAL_LABEL = re.compile(
    r"[\s#*_]*(?:(?:the|my) )?final (?:answer|version|text|rewrite|passage|output|response)"
    r"[*_]{0,3}\s*:[*_]{0,3}\s*",
    re.IGNORECASE,
)
""""Final answer:" and the like, at the start of a text."""
_OBJECT_START = re.compile(r"\A\{\s*\"[^\"]*\"\s*:\s*\"?")
"""Beginning of a JSON object with a single text, up to that text."""
_OBJECT_END = re.compile(r"\"?\s*\}\Z")
"""End of such an object, after the text."""
_BLANK = re.compile("[\\s\u200b\u2060\ufeff]")
"""An invisible character: white space, or one of zero width."""
_MOST_WRAPPERS = 3
"""Maximum number of nested wrappers to remove, such as a tag around a fence around quotes."""
_ITEM = r"[ \t]*(?:[-*\u2022\u2013+]|\d{1,2}[.)])[ \t]+"
"""Beginning of an item of a list."""
_LIST = rf"\n{_ITEM}[^\n]*[^\s.!?:;,\u2026]\s*\n+{_ITEM}[^\n]*[^\s.!?:;,\u2026]\s*\z"
"""End of a text with a list whose items have no final punctuation."""
_LONGEST_TITLE = 300
"""Maximum number of characters of a title."""
_SHORT = 8
"""Number of words below which a source is short, so that the ratio of lengths says little."""
_SHORT_LETTERS = 16
"""Number of letters below which a source is short, in scripts without spaces."""


@dataclass(frozen=True, kw_only=True)
class RewriteLimits:
    """Limits beyond which a rewrite counts as too short, too long or copied."""

    shortest: float = 0.5
    """Words of a rewrite divided by those of its source, at least."""
    longest: float = 2.0
    """Words of a rewrite divided by those of its source, at most."""
    copied: float = 0.95
    """Share of the source's words, above 0 and up to 1, that makes a rewrite a copy if it has them
    in the same order."""

    def __post_init__(self) -> None:
        if not 0 <= self.shortest < self.longest:
            raise UserError(
                "limits of the length ratio: expected 0 or more and the lower below the upper, "
                f"got {self.shortest:g} and {self.longest:g}"
            )
        if not 0 < self.copied <= 1:
            raise UserError(f"limit 'copied': expected above 0 and up to 1, got {self.copied:g}")


LIMITS = RewriteLimits()
"""Limits of rewrites, unless others are given."""


def clean(
    raw: pl.Series,
    source: pl.Series,
    *,
    opening: Callable[[pl.Series], pl.Series] = quality.opening,
) -> pl.DataFrame:
    """Remove a model's words before its text, and wrappers around the text.

    Three things are removed:

    - reasoning and marks of a chat template (`answer_span`), even if no text is left;
    - an opening, unless the source has such an opening too;
    - a code fence, a tag, a pair of quotation marks or of asterisks, or a JSON object around the
      text, unless the source begins with the same character.

    An opening and wrappers stay if no letter and no digit would be left without them.

    Parameters
    ----------
    raw : Series
        The answers as they came; null counts as empty.
    source : Series
        The source of each answer.
    opening : callable, optional
        Function that returns the opening of each text, or null for a text without one.

    Returns
    -------
    DataFrame
        A row for each answer: `text`, without white space around it, and `opening` and `closing`,
        what was removed before and after it (null if nothing was).
    """
    answers = raw.cast(pl.String).fill_null("").to_list()
    sources = source.cast(pl.String).fill_null("").to_list()
    spans = [answer_span(*pair) for pair in zip(answers, sources, strict=True)]
    starts = [span.start for span in spans]
    may_remove_opening = opening(pl.Series(sources, dtype=pl.String)).is_null().to_list()
    for _ in range(_MOST_OPENINGS):
        rest = [answers[row][start : spans[row].end] for row, start in enumerate(starts)]
        for row, announcement in enumerate(opening(pl.Series(rest, dtype=pl.String))):
            if announcement is not None and may_remove_opening[row]:
                starts[row] = answers[row].index(announcement, starts[row]) + len(announcement)
    rows = [_split_answer(*row) for row in zip(answers, sources, spans, starts, strict=True)]
    schema = dict.fromkeys(("text", "opening", "closing"), pl.String)
    return pl.DataFrame(rows, schema=schema, orient="row")


def _split_answer(
    answer: str, source: str, span: AnswerSpan, start: int
) -> tuple[str, str | None, str | None]:
    """Return the text without its wrappers, and what came before and after it.

    `span` is the part of the answer without reasoning and marks of a chat template; after an
    opening, the text begins at `start`. What came before or after is None where nothing did.
    """
    start, end = _strip_blanks(answer, start, span.end)
    # A wrapper is left alone if the source begins with the same sign.
    source_sign = source.lstrip()[:1]
    label = _FINAL_LABEL.match(answer, start, end)
    if label is not None and _FINAL_LABEL.match(source) is None:
        start, end = _strip_blanks(answer, label.end(), end)
    for _ in range(_MOST_WRAPPERS):
        wrapper = _WRAPPER.fullmatch(answer, start, end)
        if wrapper is not None and wrapper.lastgroup and answer[start] != source_sign:
            start, end = _strip_blanks(answer, *wrapper.span(wrapper.lastgroup))
        elif _has_half_fence(answer, start, end) and "```" not in source:
            start, end = _strip_blanks(answer, start, end - len("```"))
    text = answer[start:end]
    from_object = text_of_object(text) if source_sign != "{" else None
    if from_object is not None:
        text = from_object.strip()
        # The text is read from JSON; `start` and `end` narrow to where the answer holds it, so that
        # what stands before and after it can be returned.
        end = start + len(_OBJECT_END.sub("", answer[start:end]))
        start = end - len(_OBJECT_START.sub("", answer[start:end]))
    if not re.search(r"[^\W_]", text):  # no letter and no digit is left
        start, end = _strip_blanks(answer, span.start, span.end)
        text = answer[start:end]
    return text, answer[:start].strip() or None, answer[end:].strip() or None


def _has_half_fence(answer: str, start: int, end: int) -> bool:
    """Tell whether a code fence ends here whose beginning was removed with the opening."""
    return answer.endswith("```", start, end) and answer.count("```", start, end) == 1


def _strip_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """Narrow a part of a text, from `start` to `end`, to its visible characters."""
    while start < end and _BLANK.match(text[start]):
        start += 1
    while start < end and _BLANK.match(text[end - 1]):
        end -= 1
    return start, end


def flags(
    source: pl.Series, text: pl.Series, finish: pl.Series, *, limits: RewriteLimits = LIMITS
) -> pl.Series:
    """Flag the faults of cleaned rewrites: names of `FLAGS` for each, in their order.

    - cut off: the model reached its limit of tokens, or the text ends without final punctuation
      although its source has one. A list may end without.
    - copied: the same words as the source, or at least `limits.copied` of them as a common
      subsequence. The latter only for sources of at least 8 words, because every good expansion of
      a short title contains the title.
    - too short, too long: beyond `limits`, which are wider for a source of fewer than 8 words. It
      may become as long as a source of 8 words may, and one word shorter than `limits.shortest`
      allows: "BMI" may become "The body mass index".

    An empty text has no flags besides "empty", "filtered" and "cut off". Words are separated by
    white space. In scripts without it each letter counts as a word, and a source is short below 16
    letters. Lengths are not compared between scripts with and without white space.

    Parameters
    ----------
    source, text : Series
        The sources, and the cleaned rewrites; null counts as empty.
    finish : Series
        Why the model stopped (``"stop"``, ``"length"``, ``"content_filter"``); null where unknown.
    limits : RewriteLimits, optional
        Limits of length and of copied words.
    """
    sources = source.cast(pl.String).fill_null("")
    texts = text.cast(pl.String).fill_null("")
    lacks_ending = quality.cut_off(texts) & ~quality.cut_off(sources)
    is_cut_off = (lacks_ending & ~texts.str.contains(_LIST)) | _reached_token_limit(finish)
    faults = pl.DataFrame(
        {
            "refusal": quality.refusal(texts) & ~quality.refusal(sources),
            "empty": texts.str.strip_chars() == "",
            "cut off": is_cut_off,
            "filtered": (finish == "content_filter").fill_null(False),
        }
    )
    return _flag_names(faults.hstack(_comparisons(sources, texts, limits)))


def _reached_token_limit(finish: pl.Series) -> pl.Series:
    """Tell for each answer whether the model stopped because it reached its limit of tokens."""
    return (finish == "length").fill_null(False)


def _flag_names(faults: pl.DataFrame) -> pl.Series:
    """List the names of the columns that are true, row by row."""
    names = [pl.when(pl.col(name)).then(pl.lit(name)) for name in faults.columns]
    return faults.select(pl.concat_list(names).list.drop_nulls().alias("flags"))["flags"]


def _comparisons(sources: pl.Series, texts: pl.Series, limits: RewriteLimits) -> pl.DataFrame:
    """Compare every text with its source, with a column for each flag of a comparison."""
    scripts = zip(quality.script(sources), quality.script(texts), strict=True)
    rows = []
    for source, text, script_pair in zip(sources, texts, scripts, strict=True):
        rows.append(_compare(source, text, script_pair, limits))
    columns = ("copied", "other script", "too short", "too long")
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.Boolean), orient="row")


def _compare(
    source: str, text: str, scripts: tuple[str | None, str | None], limits: RewriteLimits
) -> tuple[bool, bool, bool, bool]:
    """Tell whether a text is copied, in another script, too short, too long.

    `scripts` are those of source and text, None where a text has too few letters to tell.
    """
    source_script, text_script = scripts
    source_words, text_words = source.casefold().split(), text.casefold().split()
    if not text_words:
        return False, False, False, False
    is_spaced = source_script != quality.UNSPACED
    # Words are compared with words, or letters with letters.
    are_comparable = is_spaced == (text_script != quality.UNSPACED)
    if are_comparable and not is_spaced:
        source_words, text_words = list("".join(source_words)), list("".join(text_words))
    length = len(source_words)
    short = _SHORT if is_spaced else _SHORT_LETTERS
    is_copied = source_words == text_words
    if not is_copied and length >= short:
        is_copied = holds_share(source_words, text_words, limits.copied)
    has_other_script = None not in scripts and source_script != text_script
    fewest, most = 0.0, math.inf
    if are_comparable and length:
        fewest, most = limits.shortest * length, limits.longest * max(length, short)
        if length < short:
            fewest -= short / _SHORT  # a word, or the two letters that count as one
    return is_copied, has_other_script, len(text_words) < fewest, len(text_words) > most


def check_text(limits: RewriteLimits) -> Callable[[pl.Series, pl.Series, pl.Series], pl.DataFrame]:
    """Make the check of a rewritten text: clean it, then look for all `FLAGS`."""

    def check(source: pl.Series, raw: pl.Series, finish: pl.Series) -> pl.DataFrame:
        cleaned = clean(raw, source)
        return cleaned.with_columns(flags(source, cleaned["text"], finish, limits=limits))

    return check


def check_title(source: pl.Series, raw: pl.Series, finish: pl.Series) -> pl.DataFrame:
    """Check rewritten titles, which may have any length and any end, or be the same as before.

    A title of several lines or of more than 300 characters is too long.
    """
    cleaned = clean(raw, source)
    text = cleaned["text"]
    is_long = text.str.contains("\n") | (text.str.len_chars() > _LONGEST_TITLE)
    return cleaned.with_columns(_flags_of_any_length(source, text, finish, {"too long": is_long}))


def check_answer(source: pl.Series, raw: pl.Series, finish: pl.Series) -> pl.DataFrame:
    """Check answers to queries, which may have any length and any end.

    The query itself in place of an answer counts as copied.
    """
    cleaned = clean(raw, source, opening=quality.answer_opening)
    text = cleaned["text"]
    is_query = text.str.to_lowercase() == source.str.strip_chars().str.to_lowercase()
    return cleaned.with_columns(_flags_of_any_length(source, text, finish, {"copied": is_query}))


def _flags_of_any_length(
    source: pl.Series, text: pl.Series, finish: pl.Series, further_faults: Mapping[str, pl.Series]
) -> pl.Series:
    """Flag the faults of texts that need not have their source's words, length and end.

    `further_faults` says for each text, by flag, whether it has that fault.
    """
    all_flags = flags(source, text, finish)
    faults = {"cut off": _reached_token_limit(finish), **further_faults}
    for name in ("refusal", "empty", "filtered", "other script"):
        faults[name] = all_flags.list.contains(name)
    return _flag_names(pl.DataFrame({name: faults[name] for name in FLAGS if name in faults}))
