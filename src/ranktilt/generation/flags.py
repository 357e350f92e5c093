"""What is wrong with a rewrite, seen from its text, its source and how the model ended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from ranktilt.errors import UserError
from ranktilt.generation.batched_requests import Check
from ranktilt.generation.cleaning import clean, remark
from ranktilt.text import quality
from ranktilt.text.language import other_language
from ranktilt.text.sequence import holds_share

FLAGS = (
    "refusal",
    "empty",
    "cut off",
    "filtered",
    "copied",
    "other language",
    "too short",
    "too long",
    "boilerplate",
)
"""The faults that are looked for, in the order in which they are listed."""

UNSPACED = ("Han", "Japanese", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan")
"""Writing scripts without white space between words: a letter counts as a word."""

UNRELATED = "unrelated"
"""The flag of a text that is not about what its source is about."""

RELATED = 0.1
"""Share of the source's longer words that a rewrite of at least half its length has; of 3,633 rewrites of medical
abstracts by Llama-2-7b-chat (Cocktail's NFCorpus) the least has 0.19."""

_LONGER = r"[\p{L}\p{N}]{5,}"
_FEWEST = 8
_UNCOMPARED_FLAGS = ("refusal", "empty", "filtered", "boilerplate", "other language")
_LONGEST_TITLE = 300
_FREQUENT = "eaoi"
_SHORT = 8
_SHORT_LETTERS = 16

_S = r"['\u2019]"
_B = r"(?-u:\b)"
_NOUN = r"(?:text|passage|paragraph|abstract|version|article|document)"
_ABOUT = rf"(?i)re-?writ|re-?wrot|paraphras|re-?phras|re-?word|original {_NOUN}"
_DONE = r"(?:re-?written|paraphrased|re-?phrased|re-?worded)"
_TALK = (
    rf"(?i)(?m:^[\s*_#>]*(?:{_DONE}|original) {_NOUN}[*_]{{0,3}}\s*(?::|$))"
    rf"|{_B}(?:this|the|my|your) {_DONE} {_NOUN}{_B}"
    rf"|{_B}i(?: have|{_S}ve)?(?: also)? (?:re-?wrote|{_DONE}){_B}"
)
_LEFT = (
    r"(?i)\A\s*<(?:think|thinking|thought|reasoning|reflection)>|</think(?:ing)?>"
    rf"|\[(?:insert|your|{_DONE}) [^\[\]\n]{{1,40}}\]|{_B}as an ai(?: language)?(?: model| assistant)?, i{_B}"
)
_ITEM = r"[ \t]*(?:[-*\u2022\u2013+]|\d{1,2}[.)])[ \t]+"
_LIST = rf"\n{_ITEM}[^\n]*[^\s.!?:;,\u2026]\s*\n+{_ITEM}[^\n]*[^\s.!?:;,\u2026]\s*\z"
_TRUNCATED = r"(?i)\(abstract truncated[^()]*\)\s*\z"

_COMPARED = dict.fromkeys(("empty", "copied", "other language", "too short", "too long", "remark"), pl.Boolean)


@dataclass(frozen=True)
class RewriteLimits:
    """From where on a rewrite counts as too short, too long or copied.

    Parameters
    ----------
    shortest, longest : float, optional
        Words of the rewrite over words of its source; less than `shortest` is too short, more than `longest` too
        long.
    copied : float, optional
        Share of the source's words, above 0 and up to 1, that may not stand in the rewrite in the same order.

    Raises
    ------
    UserError
        If a limit is outside of its range, or `shortest` is not below `longest`.
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
_ANY_LENGTH = RewriteLimits(shortest=0.0, longest=float("inf"))


def flags(source: pl.Series, text: pl.Series, finish: pl.Series, *, limits: RewriteLimits = LIMITS) -> pl.Series:
    """Find what is wrong with cleaned rewrites (null is empty): names out of `FLAGS`, in their order, for each.

    Every flag is held against the source: what the source has too is no fault of the rewrite. `finish` says why the
    model stopped: ``"stop"``, ``"length"``, ``"content_filter"`` or what else the server says; null where unknown.

    refusal
        The model declined: "I'm sorry, but I cannot …" (English only).
    empty
        Nothing but white space. Such a text has no other flag but "cut off" and "filtered".
    cut off
        The model met its limit (``"length"``), or the text ends without final punctuation although its source
        ends with one; "(ABSTRACT TRUNCATED …)" at the end of either is looked through, and the last item of a
        list whose items have no punctuation is an end.
    filtered
        The server held text back (``"content_filter"``).
    copied
        The same words as the source, case and white space aside, or at least `limits.copied` of the source's
        words as a common subsequence; the latter only for sources of at least 8 words, because a short title
        stands in every good expansion of it.
    other language
        In another writing script than the source, or, told by its small words, in another language of the same
        script (`ranktilt.text.language.other_language`). English for a Spanish source is one, Spanish is none.
        A title of fewer than 16 letters may be in Han letters alone and be Japanese still.
    too short, too long
        Outside of the length limits. A source of fewer than 8 words may grow to the length that one of 8 may,
        and lose one word more than its limit: "BMI" may become "The body mass index".
    boilerplate
        Words about the task that cleaning could not take off: an opening that is all there is, "Original
        text:" above a repeated source, "In this rewritten text, …", "[Insert text]", a trailing remark.

    A word is what stands between white space; in scripts without it (`UNSPACED`), a letter, and 8 words are 16
    letters. Lengths are not compared between a script with and one without.
    """
    if not len(source) == len(text) == len(finish):
        raise UserError(
            f"flags: expected as many texts and ends as sources ({len(source)}), got {len(text)} and {len(finish)}"
        )
    texts = pl.concat([source.cast(pl.String).fill_null(""), text.cast(pl.String).fill_null("")])
    seen = _seen(texts)
    pairs = seen.tail(len(source)).hstack(seen.head(len(source)).select(pl.all().name.suffix("_source")))
    columns = ("text_source", "text", "script_source", "script")
    rows = [_compared(a, b, (c, d), limits) for a, b, c, d in pairs.select(columns).iter_rows()]
    pairs = pairs.hstack(pl.DataFrame(rows, schema=_COMPARED, orient="row")).hstack(
        [finish.cast(pl.String).alias("finish")]
    )
    named = [pl.when(found).then(pl.lit(name)) for name, found in _FOUND.items()]
    return pairs.select(pl.concat_list(named).list.drop_nulls().alias("flags"))["flags"]


def _not_in_source(name: str) -> pl.Expr:
    """What the rewrite has and its source has not."""
    return pl.col(name) & ~pl.col(f"{name}_source")


_FOUND = dict(
    zip(
        FLAGS,
        (
            _not_in_source("refusal"),
            pl.col("empty"),
            (_not_in_source("cut off") & ~pl.col("list") & ~pl.col("empty")) | (pl.col("finish") == "length"),
            pl.col("finish") == "content_filter",
            pl.col("copied"),
            pl.col("other language"),
            pl.col("too short"),
            pl.col("too long"),
            _not_in_source("opening")
            | _not_in_source("left")
            | ((pl.col("talk") | pl.col("remark")) & ~pl.col("about_source")),
        ),
        strict=True,
    )
)


def _seen(texts: pl.Series) -> pl.DataFrame:
    """What is seen in each text alone."""
    return pl.DataFrame(
        {
            "text": texts,
            "script": _script(texts),
            "refusal": quality.refusal(texts),
            "cut off": quality.cut_off(texts.str.replace(_TRUNCATED, "")),
            "list": texts.str.contains(_LIST),
            "opening": quality.opening(texts).is_not_null(),
            "talk": texts.str.contains(_TALK),
            "about": texts.str.contains(_ABOUT),
            "left": texts.str.contains(_LEFT),
        }
    )


def _script(texts: pl.Series) -> pl.Series:
    """As `quality.script`, which is only asked where Latin letters are not plainly most of all letters."""
    plain = [_latin(text) for text in texts.to_list()]
    if all(plain):
        return pl.Series(["Latin"] * len(texts), dtype=pl.String)
    hard = iter(quality.script(texts.filter(pl.Series([not one for one in plain]))).to_list())
    return pl.Series(["Latin" if one else next(hard) for one in plain], dtype=pl.String)


def _latin(text: str) -> bool:
    """Whether a few Latin letters alone outnumber all that is not ASCII: quick to tell, and true of most Latin text."""
    if text.isascii():
        return any(letter in text for letter in _FREQUENT)
    return sum(map(text.count, _FREQUENT)) > len(text.encode()) - len(text)


def _compared(
    source: str, text: str, scripts: tuple[str | None, str | None], limits: RewriteLimits
) -> tuple[bool, ...]:
    """The columns of `_COMPARED`: whether a rewrite is empty, copied, …, or ends with a remark of its own."""
    old, new = source.casefold().split(), text.casefold().split()
    if not new:
        return True, *[False] * (len(_COMPARED) - 1)
    here, there = scripts
    spaced, both = here not in UNSPACED, (here in UNSPACED) == (there in UNSPACED)
    short = _SHORT if spaced else _SHORT_LETTERS
    if both and not spaced:
        old, new = list("".join(old)), list("".join(new))
    if here == there:
        foreign = spaced and other_language(old, new)
    else:
        title = {here, there} == {"Han", "Japanese"} and min(len(old), len(new)) < short
        foreign = not (here is None or there is None or title)
    copied = old == new or (len(old) >= short and holds_share(old, new, limits.copied))
    few, many = _range(len(old), short, limits) if both and old else (0, math.inf)
    return False, copied, foreign, len(new) < few, len(new) > many, bool(remark(text) and not remark(source))


def _range(length: int, short: int, limits: RewriteLimits) -> tuple[float, float]:
    """Fewest and most words that the rewrite of a source may have."""
    if length >= short:
        return limits.shortest * length, limits.longest * length
    return limits.shortest * length - short / _SHORT, limits.longest * short


def check_text(limits: RewriteLimits) -> Check:
    """Make the check of a rewritten text: wrappers are removed, then all of `FLAGS` and ``unrelated`` are looked for.

    Where it may be shorter than half of its source, it need hold fewer of its words to be related, in proportion.
    """
    least = RELATED * min(1.0, limits.shortest / LIMITS.shortest)

    def check(source: pl.Series, raw: pl.Series, finish: pl.Series) -> pl.DataFrame:
        cleaned = clean(raw, source)
        found = flags(source, cleaned["text"], finish, limits=limits).alias("flags")
        lost = pl.lit(unrelated(source, cleaned["text"], least=least))
        more = pl.concat_list(pl.when(lost).then(pl.lit(UNRELATED))).list.drop_nulls()
        return cleaned.with_columns(found).with_columns(flags=pl.concat_list("flags", more))

    return check


def unrelated(source: pl.Series, text: pl.Series, *, least: float = RELATED) -> pl.Series:
    """Tell where a text is not about what its source is about, as when a model goes on as it likes.

    `least` is the share of the source's distinct words of five letters or more that a related text has. False where
    nothing can be told: fewer than eight such words, an empty text, another script, or one without white space between
    words.
    """
    scripts = quality.script(source), quality.script(text)
    table = pl.DataFrame({"a": source, "b": text, "here": scripts[0], "there": scripts[1]})
    words = {name: pl.col(name).str.to_lowercase().str.extract_all(_LONGER).list.unique() for name in "ab"}
    both = pl.col("a").list.set_intersection("b").list.len()
    told = (pl.col("a").list.len() >= _FEWEST) & (pl.col("here") == pl.col("there")) & ~pl.col("here").is_in(UNSPACED)
    return (
        table.with_columns(**words).select(told.fill_null(False) & (both < least * pl.col("a").list.len())).to_series()
    )


def check_title(source: pl.Series, raw: pl.Series, finish: pl.Series) -> pl.DataFrame:
    """Check rewritten titles.

    A title may be much shorter or longer than the one before, may stay the same, and ends without a full stop: only
    refusals, empty, filtered and cut-off answers, boilerplate, another language, several lines and more than 300
    characters are flagged. As `ranktilt.generation.batched_requests.Check`.
    """
    lines = pl.col("text").str.contains("\n")
    long = pl.col("text").str.len_chars() > _LONGEST_TITLE
    return _uncompared(source, clean(raw, source), finish, {"several lines": lines, "too long": long})


def check_answer(source: pl.Series, raw: pl.Series, finish: pl.Series) -> pl.DataFrame:
    """Check answers to queries, which are as long or short as they need be, and end as they like.

    Flagged are refusals, empty, filtered and cut-off answers, boilerplate, another language than the query's, and the
    query again in place of an answer. As `ranktilt.generation.batched_requests.Check`.
    """
    same = pl.col("text").str.strip_chars().str.to_lowercase() == source.str.strip_chars().str.to_lowercase()
    return _uncompared(source, clean(raw, source, opening=quality.answer_opening), finish, {"copied": same})


def _uncompared(
    source: pl.Series, cleaned: pl.DataFrame, finish: pl.Series, more: Mapping[str, pl.Expr]
) -> pl.DataFrame:
    """Check what may be of any length beside its source for what is a fault all the same, and for more."""
    found = flags(source, cleaned["text"], finish, limits=_ANY_LENGTH)
    wrong = found.list.set_intersection(pl.Series([list(_UNCOMPARED_FLAGS)], dtype=pl.List(pl.String)))
    table = cleaned.with_columns(flags=wrong, finish=finish)
    faults = {"cut off": pl.col("finish") == "length", **more}
    extra = pl.concat_list(pl.when(fault).then(pl.lit(name)) for name, fault in faults.items()).list.drop_nulls()
    return table.with_columns(flags=pl.concat_list("flags", extra)).drop("finish")
