"""Clean a model's answers of wrappers around the text, and flag the faults of the text.

The *source* is the text that an answer rewrites, or the query that it answers. What the source has
itself, such as a code fence or a refusal, is no fault of the answer.
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

_OPENINGS = 2
"""Most openings that are removed, such as a bare "Sure!" and an announcement after it."""
_WRAPPER = re.compile(
    r"```[\w-]*[ \t]*\n(?P<fence>(?:(?!```).)*?)\s*```|\"(?P<plain>[^\"]+)\""
    r"|\u201c(?P<curly>[^\u201c\u201d]+)\u201d"
    r"|\u00ab(?P<angle>[^\u00ab\u00bb]+)\u00bb|\*\*(?P<bold>[^*]+)\*\*"
    r"|<(?P<name>(?:final_)?answer|response|output|result|re_?writ(?:e|ten)(?:_\w+)?"
    r"|paraphrased?(?:_\w+)?|text|passage|document|title|summary)>"
    r"(?P<tag>(?:(?!</?(?P=name)>).)*)</(?P=name)>",
    re.DOTALL | re.IGNORECASE,
)
"""A code fence or quotation marks around all of a text."""
_FINAL_LABEL = re.compile(
    r"[\s#*_]*(?:(?:the|my) )?final (?:answer|version|text|rewrite|passage|output|response)"
    r"[*_]{0,3}\s*:[*_]{0,3}\s*",
    re.IGNORECASE,
)
""""Final answer:" and the like, at the start of a text."""
_OBJECT_START, _OBJECT_END = re.compile(r"\A\{\s*\"[^\"]*\"\s*:\s*\"?"), re.compile(r"\"?\s*\}\Z")
"""Both ends of a JSON object with a single text."""
_BLANK = re.compile("[\\s\u200b\u2060\ufeff]")
"""A sign that cannot be seen."""
_MOST_WRAPPERS = 3
"""Most wrappers that are removed, such as a tag around a code fence around quotation marks."""
_ITEM = r"[ \t]*(?:[-*\u2022\u2013+]|\d{1,2}[.)])[ \t]+"
"""Beginning of an item of a list."""
_LIST = rf"\n{_ITEM}[^\n]*[^\s.!?:;,\u2026]\s*\n+{_ITEM}[^\n]*[^\s.!?:;,\u2026]\s*\z"
"""End of a text with a list whose items have no final punctuation."""
_LONGEST_TITLE = 300
"""Most characters of a title."""
_SHORT = 8
"""Words of a source below which the ratio of lengths says little."""
_SHORT_LETTERS = 16
"""The same in letters, for scripts without spaces."""


@dataclass(frozen=True, kw_only=True)
class RewriteLimits:
    """Limits beyond which a rewrite counts as too short, too long or copied."""

    shortest: float = 0.5
    """Smallest ratio of words, rewrite to source."""
    longest: float = 2.0
    """Largest ratio of words, rewrite to source."""
    copied: float = 0.95
    """Share of the source's words, above 0 and up to 1, that a copy has in the same order."""

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
    """Remove a model's words before its text, and signs around the text; null counts as empty.

    Returns a row for each answer: `text`, without white space around it, and `opening` and
    `closing`, the parts removed before and after it (null if there are none). Removed are

    - reasoning and marks of a chat template (`answer_span`), even if no text is left;
    - the words that `opening` finds, unless the source has such words too;
    - a code fence, a tag, a pair of quotation marks or of asterisks, or a JSON object around the
      text, unless the source begins with such a sign.

    Of the last two nothing is removed if no letter and no digit would be left.
    """
    answers = raw.cast(pl.String).fill_null("").to_list()
    sources = source.cast(pl.String).fill_null("").to_list()
    spans = [answer_span(*pair) for pair in zip(answers, sources, strict=True)]
    starts = [span.start for span in spans]
    without_opening = opening(pl.Series(sources, dtype=pl.String)).is_null().to_list()
    for _ in range(_OPENINGS):
        rest = [answers[row][start : spans[row].end] for row, start in enumerate(starts)]
        for row, announcement in enumerate(opening(pl.Series(rest, dtype=pl.String))):
            if announcement is not None and without_opening[row]:
                starts[row] = answers[row].index(announcement, starts[row]) + len(announcement)
    rows = [_parts(*row) for row in zip(answers, sources, spans, starts, strict=True)]
    schema = dict.fromkeys(("text", "opening", "closing"), pl.String)
    return pl.DataFrame(rows, schema=schema, orient="row")


def _parts(
    answer: str, source: str, span: AnswerSpan, start: int
) -> tuple[str, str | None, str | None]:
    """Return the text that begins at `start` without its wrappers, and what came before and after.

    `span` is the answer without reasoning and marks of a chat template. The parts before and after
    are None where there are none.
    """
    start, end = _stripped(answer, start, span.end)
    # A wrapper is left alone if the source begins with the same sign.
    source_sign = source.lstrip()[:1]
    label = _FINAL_LABEL.match(answer, start, end)
    if label is not None and _FINAL_LABEL.match(source) is None:
        start, end = _stripped(answer, label.end(), end)
    for _ in range(_MOST_WRAPPERS):
        wrapper = _WRAPPER.fullmatch(answer, start, end)
        if wrapper is not None and wrapper.lastgroup and answer[start] != source_sign:
            start, end = _stripped(answer, *wrapper.span(wrapper.lastgroup))
        elif _has_half_fence(answer, start, end) and "```" not in source:
            start, end = _stripped(answer, start, end - 3)
    text = answer[start:end]
    from_object = text_of_object(text) if source_sign != "{" else None
    if from_object is not None:
        text = from_object.strip()
        end = start + len(_OBJECT_END.sub("", answer[start:end]))
        start = end - len(_OBJECT_START.sub("", answer[start:end]))
    if not re.search(r"[^\W_]", text):
        start, end = _stripped(answer, span.start, span.end)
        text = answer[start:end]
    return text, answer[:start].strip() or None, answer[end:].strip() or None


def _has_half_fence(answer: str, start: int, end: int) -> bool:
    """Tell whether a code fence ends here whose beginning was removed with the opening."""
    return answer.endswith("```", start, end) and answer.count("```", start, end) == 1


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """Narrow a part of a text to its visible signs."""
    while start < end and _BLANK.match(text[start]):
        start += 1
    while start < end and _BLANK.match(text[end - 1]):
        end -= 1
    return start, end


def flags(
    source: pl.Series, text: pl.Series, finish: pl.Series, *, limits: RewriteLimits = LIMITS
) -> pl.Series:
    """Flag the faults of cleaned rewrites (null is empty): names of `FLAGS`, in their order.

    `finish` says why the model stopped (``"stop"``, ``"length"``, ``"content_filter"``); null where
    unknown. An empty text has no other flag but "filtered" and "cut off": the model reached its
    limit, or the text ends without final punctuation although its source has one (a list may end
    without).

    - copied: the same words as the source, or at least `limits.copied` of them as a common
      subsequence. The latter only for sources of at least 8 words, because every good expansion of
      a short title contains the title.
    - too short, too long: a source of fewer than 8 words may become as long as a source of 8 words
      may, and lose a word more than its limit: "BMI" may become "The body mass index".

    Words are separated by white space; in scripts without it a letter counts, and 8 words are 16
    letters. Lengths are not compared between scripts with and without white space.
    """
    sources = source.cast(pl.String).fill_null("")
    texts = text.cast(pl.String).fill_null("")
    is_cut_off = (
        quality.cut_off(texts) & ~quality.cut_off(sources) & ~texts.str.contains(_LIST)
    ) | (finish == "length").fill_null(False)
    faults = pl.DataFrame(
        {
            "refusal": quality.refusal(texts) & ~quality.refusal(sources),
            "empty": texts.str.strip_chars() == "",
            "cut off": is_cut_off,
            "filtered": (finish == "content_filter").fill_null(False),
        }
    )
    return _flag_names(faults.hstack(_comparisons(sources, texts, limits)))


def _flag_names(faults: pl.DataFrame) -> pl.Series:
    """List the names of the columns that are true, row by row."""
    names = [pl.when(pl.col(name)).then(pl.lit(name)) for name in faults.columns]
    return faults.select(pl.concat_list(names).list.drop_nulls().alias("flags"))["flags"]


def _comparisons(sources: pl.Series, texts: pl.Series, limits: RewriteLimits) -> pl.DataFrame:
    """Compare every text with its source: whether each of the last four `FLAGS` holds."""
    scripts = zip(quality.script(sources), quality.script(texts), strict=True)
    rows = []
    for source, text, pair in zip(sources, texts, scripts, strict=True):
        rows.append(_compare(source, text, pair, limits))
    return pl.DataFrame(rows, schema=dict.fromkeys(FLAGS[4:], pl.Boolean), orient="row")


def _compare(
    source: str, text: str, scripts: tuple[str | None, str | None], limits: RewriteLimits
) -> tuple[bool, bool, bool, bool]:
    """Tell whether a text is copied, in another script, too short, too long."""
    # A script is None where a text has too few letters to tell.
    source_script, text_script = scripts
    source_words, text_words = source.casefold().split(), text.casefold().split()
    if not text_words:
        return False, False, False, False
    is_spaced = source_script != quality.UNSPACED
    are_alike = is_spaced == (text_script != quality.UNSPACED)
    if are_alike and not is_spaced:
        source_words, text_words = list("".join(source_words)), list("".join(text_words))
    length = len(source_words)
    short = _SHORT if is_spaced else _SHORT_LETTERS
    is_copied = source_words == text_words
    if not is_copied and length >= short:
        is_copied = holds_share(source_words, text_words, limits.copied)
    has_other_script = None not in scripts and source_script != text_script
    fewest, most = 0.0, math.inf
    if are_alike and length:
        fewest, most = limits.shortest * length, limits.longest * max(length, short)
        fewest -= short / _SHORT if length < short else 0
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
    source: pl.Series, text: pl.Series, finish: pl.Series, more: Mapping[str, pl.Series]
) -> pl.Series:
    """Flag the faults of texts that need not have their source's words, length and end.

    `more` holds further faults, by their names.
    """
    all_flags = flags(source, text, finish)
    faults = {"cut off": (finish == "length").fill_null(False), **more}
    for name in ("refusal", "empty", "filtered", "other script"):
        faults[name] = all_flags.list.contains(name)
    return _flag_names(pl.DataFrame({name: faults[name] for name in FLAGS if name in faults}))
