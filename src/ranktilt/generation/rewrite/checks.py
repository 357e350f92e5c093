"""What is looked at in an answer before it becomes a document."""

from __future__ import annotations

import polars as pl

from ranktilt.generation.rewrite.cleaning import clean
from ranktilt.generation.rewrite.flags import UNSPACED, Limits, flags
from ranktilt.generation.rewrite.rounds import Check
from ranktilt.text import quality

UNRELATED = "unrelated"
"""The flag of a text that is not about what its source is about."""

RELATED = 0.1
"""Share of the source's longer words that a rewrite of at least half its length has; of 3,633 rewrites of medical
abstracts by Llama-2-7b-chat (Cocktail's NFCorpus) the least has 0.19."""

_LONGER = r"[\p{L}\p{N}]{5,}"
_FEWEST = 8
_USUAL = Limits().shortest
_TITLE_FLAGS = ("refusal", "empty", "filtered", "boilerplate", "other language")
_LONGEST_TITLE = 300
_TITLE_LIMITS = Limits(shortest=0.0, longest=float("inf"))


def check_text(limits: Limits) -> Check:
    """Make the check of a rewritten text: wrappers are removed, then all flags are looked for.

    Parameters
    ----------
    limits : Limits
        From where on an answer is too short, too long or copied. Where it may be shorter than half of its source, it
        need hold fewer of its words to be related, in proportion.

    Returns
    -------
    callable
        As `rounds.Check` says; flags are those of `flags.FLAGS`, then ``unrelated``.
    """
    least = RELATED * min(1.0, limits.shortest / _USUAL)

    def check(source: pl.Series, raw: pl.Series, finish: pl.Series) -> pl.DataFrame:
        cleaned = clean(raw, source)
        found = flags(source, cleaned["text"], finish, limits=limits).alias("flags")
        lost = pl.lit(unrelated(source, cleaned["text"], least=least))
        more = pl.concat_list(pl.when(lost).then(pl.lit(UNRELATED))).list.drop_nulls()
        return cleaned.with_columns(found).with_columns(flags=pl.concat_list("flags", more))

    return check


def unrelated(source: pl.Series, text: pl.Series, *, least: float = RELATED) -> pl.Series:
    """Tell where a text is not about what its source is about, as when a model goes on as it likes.

    Parameters
    ----------
    source, text : polars.Series of String
        What was to be rewritten, and what came.
    least : float, optional
        Share of the source's distinct words of five letters or more that a related text has, 0 to 1.

    Returns
    -------
    polars.Series of Boolean
        False where nothing can be told: fewer than eight such words in the source, an empty text, another script,
        or a script without white space between words.
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
    characters are flagged. As `ranktilt.generation.rewrite.rounds.Check`.
    """
    cleaned = clean(raw, source)
    found = flags(source, cleaned["text"], finish, limits=_TITLE_LIMITS)
    wrong = found.list.set_intersection(pl.Series([list(_TITLE_FLAGS)], dtype=pl.List(pl.String)))
    table = cleaned.with_columns(flags=wrong, finish=finish)
    more = {
        "cut off": pl.col("finish") == "length",
        "several lines": pl.col("text").str.contains("\n"),
        "too long": pl.col("text").str.len_chars() > _LONGEST_TITLE,
    }
    extra = pl.concat_list(pl.when(fault).then(pl.lit(name)) for name, fault in more.items()).list.drop_nulls()
    return table.with_columns(flags=pl.concat_list("flags", extra)).drop("finish")
