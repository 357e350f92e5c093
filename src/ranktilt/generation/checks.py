"""What a model wrote: wrappers around it are taken off, and what is wrong with the rest is named."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
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
"""The faults that are looked for, in the order in which they are listed."""

_OPENINGS = 2
"""Such as a bare "Sure!", and an announcement behind it."""
_WRAPPER = re.compile(
    r"```[\w-]*[ \t]*\n(?P<fence>(?:(?!```).)*?)\s*```|\"(?P<plain>[^\"]+)\"|\u201c(?P<curly>[^\u201c\u201d]+)\u201d"
    r"|\u00ab(?P<angle>[^\u00ab\u00bb]+)\u00bb|\*\*(?P<bold>[^*]+)\*\*"
    r"|<(?P<name>(?:final_)?answer|response|output|result|re_?writ(?:e|ten)(?:_\w+)?|paraphrased?(?:_\w+)?|text|passage"
    r"|document|title|summary)>(?P<tag>(?:(?!</?(?P=name)>).)*)</(?P=name)>",
    re.DOTALL | re.IGNORECASE,
)
_FINAL_LABEL = re.compile(
    r"[\s#*_]*(?:(?:the|my) )?final (?:answer|version|text|rewrite|passage|output|response)[*_]{0,3}\s*:[*_]{0,3}\s*",
    re.IGNORECASE,
)
_OBJECT_START, _OBJECT_END = re.compile(r"\A\{\s*\"[^\"]*\"\s*:\s*\"?"), re.compile(r"\"?\s*\}\Z")
_BLANK = re.compile("[\\s\u200b\u2060\ufeff]")
_MOST_WRAPPERS = 3
"""Such as a tag around a code fence around quotation marks."""
_ITEM = r"[ \t]*(?:[-*\u2022\u2013+]|\d{1,2}[.)])[ \t]+"
_LIST = rf"\n{_ITEM}[^\n]*[^\s.!?:;,\u2026]\s*\n+{_ITEM}[^\n]*[^\s.!?:;,\u2026]\s*\z"
"""A list whose items have no punctuation ends with one of them."""
_LONGEST_TITLE = 300
_SHORT, _SHORT_LETTERS = 8, 16
"""Words, and letters of scripts without spaces, of a source below which lengths say little."""


@dataclass(frozen=True)
class RewriteLimits:
    """From where on a rewrite counts as too short, too long or copied.

    Words of the rewrite over words of its source (less than `shortest` is too short, more than
    `longest` too long), and the share of the source's words, above 0 and up to 1, that may not
    stand in the rewrite in the same order.
    """

    shortest: float = 0.5
    longest: float = 2.0
    copied: float = 0.95

    def __post_init__(self) -> None:
        if not 0 <= self.shortest < self.longest:
            raise UserError(
                "limits of the length ratio: expected 0 or more and the lower below the upper, "
                f"got {self.shortest:g} and {self.longest:g}"
            )
        if not 0 < self.copied <= 1:
            raise UserError(f"limit 'copied': expected above 0 and up to 1, got {self.copied:g}")


LIMITS = RewriteLimits()


def clean(
    raw: pl.Series,
    source: pl.Series,
    *,
    opening: Callable[[pl.Series], pl.Series] = quality.opening,
) -> pl.DataFrame:
    """Take off what a model said before its text, and what it put around it; null counts as empty.

    One row an answer: `text`, without white space around it; `opening` and `closing`, what was
    taken off before and after it, null where nothing was. Taken off are reasoning and marks of a
    chat template (`answer_span`; where there is nothing else, no text is left), what `opening`
    finds where the source has none, and a code fence, a tag, a pair of quotation marks or of
    asterisks, or a JSON object around all, where the source does not begin with such a sign. Of
    these nothing is taken off where no letter and no digit would be left.
    """
    whole, own = (
        raw.cast(pl.String).fill_null("").to_list(),
        source.cast(pl.String).fill_null("").to_list(),
    )
    spans = [answer_span(text, source_text) for text, source_text in zip(whole, own, strict=True)]
    starts = [span.start for span in spans]
    without = opening(pl.Series(own, dtype=pl.String)).is_null().to_list()
    for _ in range(_OPENINGS):
        rest = [whole[row][start : spans[row].end] for row, start in enumerate(starts)]
        for row, announcement in enumerate(opening(pl.Series(rest, dtype=pl.String))):
            if announcement is not None and without[row]:
                starts[row] = whole[row].index(announcement, starts[row]) + len(announcement)
    rows = [_parts(*row) for row in zip(whole, own, spans, starts, strict=True)]
    return pl.DataFrame(
        rows, schema=dict.fromkeys(("text", "opening", "closing"), pl.String), orient="row"
    )


def _parts(
    whole: str, own: str, span: AnswerSpan, start: int
) -> tuple[str, str | None, str | None]:
    """Take off the wrappers of what begins there."""
    start, end = _stripped(whole, start, span.end)
    own_sign = own.lstrip()[:1]
    label = _FINAL_LABEL.match(whole, start, end)
    if label is not None and _FINAL_LABEL.match(own) is None:
        start, end = _stripped(whole, label.end(), end)
    for _ in range(_MOST_WRAPPERS):
        wrapper = _WRAPPER.fullmatch(whole, start, end)
        if wrapper is not None and wrapper.lastgroup and whole[start] != own_sign:
            start, end = _stripped(whole, *wrapper.span(wrapper.lastgroup))
        elif (
            whole.endswith("```", start, end)
            and whole.count("```", start, end) == 1
            and "```" not in own
        ):
            start, end = _stripped(whole, start, end - 3)  # the opening had the first one
    text = whole[start:end]
    from_object = text_of_object(text) if own_sign != "{" else None
    if from_object is not None:
        text = from_object.strip()
        end = start + len(_OBJECT_END.sub("", whole[start:end]))
        start = end - len(_OBJECT_START.sub("", whole[start:end]))
    if not re.search(r"[^\W_]", text):
        start, end = _stripped(whole, span.start, span.end)
        text = whole[start:end]
    return text, whole[:start].strip() or None, whole[end:].strip() or None


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """Narrow a part of a text to what can be seen."""
    while start < end and _BLANK.match(text[start]):
        start += 1
    while start < end and _BLANK.match(text[end - 1]):
        end -= 1
    return start, end


def flags(
    source: pl.Series, text: pl.Series, finish: pl.Series, *, limits: RewriteLimits = LIMITS
) -> pl.Series:
    """Find what is wrong with cleaned rewrites (null is empty): names out of `FLAGS`, in their order, for each.

    `finish` says why the model stopped (``"stop"``, ``"length"``, ``"content_filter"``); null where
    unknown. An empty text has no other flag but "cut off" (the model met its limit, or the text
    ends without final punctuation although its source ends with one; the last item of a list whose
    items have none is an end) and "filtered".

    - copied: the same words as the source, or at least `limits.copied` of them as a common subsequence; the latter only
      for sources of at least 8 words, because a short title stands in every good expansion of it.
    - too short, too long: a source of fewer than 8 words may grow to the length that one of 8 may, and lose one word
      more than its limit: "BMI" may become "The body mass index".

    A word is what stands between white space; in scripts without it, a letter, and 8 words are 16
    letters. Lengths are not compared between a script with and one without.
    """
    table = pl.DataFrame(
        {"source": source.cast(pl.String).fill_null(""), "text": text.cast(pl.String).fill_null("")}
    )
    scripts = quality.script(table["source"]), quality.script(table["text"])
    compared = [
        _compared(old, new, pair, limits)
        for old, new, pair in zip(
            table["source"], table["text"], zip(*scripts, strict=True), strict=True
        )
    ]
    blank = table["text"].str.strip_chars() == ""
    ends = (
        quality.cut_off(table["text"])
        & ~quality.cut_off(table["source"])
        & ~table["text"].str.contains(_LIST)
    )
    found = pl.DataFrame(
        {
            "refusal": quality.refusal(table["text"]) & ~quality.refusal(table["source"]),
            "empty": blank,
            "cut off": ends | (finish == "length").fill_null(False),
            "filtered": (finish == "content_filter").fill_null(False),
        }
    ).hstack(pl.DataFrame(compared, schema=dict.fromkeys(FLAGS[4:], pl.Boolean), orient="row"))
    return _named(found)


def _named(faults: pl.DataFrame) -> pl.Series:
    """The names of the columns that hold, row by row."""
    names = [pl.when(pl.col(name)).then(pl.lit(name)) for name in faults.columns]
    return faults.select(pl.concat_list(names).list.drop_nulls().alias("flags"))["flags"]


def _compared(
    source: str, text: str, scripts: tuple[str | None, str | None], limits: RewriteLimits
) -> tuple[bool, bool, bool, bool]:
    """Whether a text is copied, in another script, too short, too long."""
    here, there = scripts
    old, new = source.casefold().split(), text.casefold().split()
    if not new:
        return False, False, False, False
    spaced, both = (
        here != quality.UNSPACED,
        (here == quality.UNSPACED) == (there == quality.UNSPACED),
    )
    if both and not spaced:
        old, new = list("".join(old)), list("".join(new))
    short = _SHORT if spaced else _SHORT_LETTERS
    copied = old == new or (len(old) >= short and holds_share(old, new, limits.copied))
    other = None not in (here, there) and here != there
    few, many = 0.0, math.inf
    if both and old:
        few, many = limits.shortest * len(old), limits.longest * max(len(old), short)
        few -= short / _SHORT if len(old) < short else 0
    return copied, other, len(new) < few, len(new) > many


def check_text(limits: RewriteLimits) -> Callable[[pl.Series, pl.Series, pl.Series], pl.DataFrame]:
    """Make the check of a rewritten text: wrappers are removed, then all of `FLAGS` are looked for."""

    def check(source: pl.Series, raw: pl.Series, finish: pl.Series) -> pl.DataFrame:
        cleaned = clean(raw, source)
        return cleaned.with_columns(flags(source, cleaned["text"], finish, limits=limits))

    return check


def check_title(source: pl.Series, raw: pl.Series, finish: pl.Series) -> pl.DataFrame:
    """Check rewritten titles, which may be much shorter or longer than before, or the same, and end as they like.

    Too long is one of several lines or of more than 300 characters.
    """
    cleaned = clean(raw, source)
    text = cleaned["text"]
    long = text.str.contains("\n") | (text.str.len_chars() > _LONGEST_TITLE)
    return cleaned.with_columns(_of_any_length(source, text, finish, **{"too long": long}))


def check_answer(source: pl.Series, raw: pl.Series, finish: pl.Series) -> pl.DataFrame:
    """Check answers to queries, which are as long or short as they need be, and end as they like.

    Copied is the query again in place of an answer.
    """
    cleaned = clean(raw, source, opening=quality.answer_opening)
    same = cleaned["text"].str.to_lowercase() == source.str.strip_chars().str.to_lowercase()
    return cleaned.with_columns(_of_any_length(source, cleaned["text"], finish, copied=same))


def _of_any_length(
    source: pl.Series, text: pl.Series, finish: pl.Series, **others: pl.Series
) -> pl.Series:
    """Flags of what is not held against its source's words and end; `others` say what else is a fault."""
    found = flags(source, text, finish)
    held = {
        name: found.list.contains(name) for name in ("refusal", "empty", "filtered", "other script")
    }
    columns = {**held, "cut off": (finish == "length").fill_null(False), **others}
    return _named(pl.DataFrame({name: columns[name] for name in FLAGS if name in columns}))
