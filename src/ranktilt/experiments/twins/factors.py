"""Factors: the properties of a text that are changed, by rule, by a language model, or by a function of your own."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from ranktilt.errors import UserError, first_line, refuse_twice, shorten, unknown
from ranktilt.experiments.twins import rules
from ranktilt.experiments.twins.design import HIGH
from ranktilt.experiments.twins.rules import Origin

Edit = Callable[[str, Origin], str]
Expected = Mapping[str, int]
"""Probes that a factor must move, and whereto: 1 up, −1 down, 0 either way."""
AS_IS = "as is"
MEANING = "facts"
"""The factor that changes what a text says: no judgment is carried over to it."""


@dataclass(frozen=True)
class Factor:
    """One property of a text with two levels: as it is, and changed."""

    name: str
    high: str
    """What the high level is: ``shorter``."""
    moves: Expected
    holds: tuple[str, ...] = ()
    """Probes that it must not move."""
    edit: Edit | None = None
    """How a text is changed, by rule or by a function of the user's."""
    prompt: str = ""
    """The prompt, by its name or file, with which a model changes a text."""
    source: str | None = None
    """The source of the collection whose rewrites are the high level, ``""`` for the only other; else None."""
    titles: bool = False
    """Whether titles are changed too."""
    made_by: str = ""
    """As it was named, where it is the user's own."""

    @property
    def by(self) -> Literal["rule", "model", "collection"]:
        return "model" if self.prompt else "collection" if self.source is not None else "rule"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        found: dict[str, Any] = {
            "name": self.name,
            "by": self.by,
            "moves": dict(self.moves),
            "holds": list(self.holds),
        }
        more = {"prompt": self.prompt, "source": self.source, "made_by": self.made_by}
        return found | {name: value for name, value in more.items() if value}


_TEXT = ("words", "sentences", "query-words", "facts")
RULES: Mapping[str, Factor] = {
    one.name: one
    for one in (
        Factor("source", "rewritten", {"overlap": -1}, source=""),
        Factor(
            MEANING,
            "changed",
            {"facts": -1},
            ("words", "sentences", "query-words"),
            rules.other_facts,
        ),
        Factor("words", "synonyms", {"overlap": -1}, _TEXT, rules.other_words),
        Factor(
            "gender", "feminine", {"gender": 1}, ("words", "sentences"), rules.feminine, titles=True
        ),
        Factor("length", "shorter", {"words": -1}, ("sentences", "readability"), rules.shorter),
        Factor(
            "query-words", "added", {"query-words": 1}, ("overlap", "facts"), rules.with_query_words
        ),
        Factor("fluency", "swapped", {"perplexity": 1}, (*_TEXT, "overlap"), rules.swapped_words),
    )
}
"""By rule, in the order in which they are applied."""
PROMPTED: Mapping[str, Factor] = {
    one.name: one
    for one in (
        Factor("source", "paraphrased", {"overlap": -1}, ("words",), prompt="paraphrase"),
        Factor("style", "informal", {"readability": -1}, ("words", "facts"), prompt="informal"),
        Factor("fluency", "polished", {"perplexity": -1}, ("words", "facts"), prompt="polish"),
        Factor("length", "shorter", {"words": -1}, ("sentences",), prompt="shorten"),
    )
}
"""By a language model, in the order in which they are applied, before all rules."""
NAMES = (*RULES, *(name for name in PROMPTED if name not in RULES))


def read_factors(specs: Sequence[str], *, by_rule: bool = False) -> tuple[Factor, ...]:
    """Read factors by name, in the order given.

    One with a rule and a prompt is made by the prompt unless `by_rule`. ``source:NAME`` are the
    rewrites that the collection has already; ``MODULE:FUNCTION`` is a function ``f(text) -> text``
    of yours, with attributes ``moves`` and ``holds`` if you like; the name of a file is a prompt
    with ``{text}``.
    """
    found = tuple(_factor(spec.strip(), by_rule) for spec in specs if spec.strip())
    if not found:
        raise UserError(f"expected a factor (valid: {', '.join(NAMES)}), got none")
    refuse_twice([one.name for one in found], "factor")
    return found


def _factor(spec: str, by_rule: bool) -> Factor:
    name, colon, argument = spec.partition(":")
    if name == "source" and colon:
        return Factor("source", argument, {"overlap": -1}, source=argument)
    if spec in NAMES:
        if by_rule and spec not in RULES:
            raise UserError(
                f"factor {spec!r} has no rule: leave out --by-rule and name a model, --llm"
            )
        return PROMPTED[spec] if spec in PROMPTED and not by_rule else RULES[spec]
    if colon and os.path.sep not in spec:
        return _function(spec)
    if Path(spec).suffix == ".txt" or os.path.isfile(spec):
        if by_rule:
            raise UserError(
                f"factor {spec!r} is a prompt: leave out --by-rule and name a model, --llm"
            )
        return Factor(Path(spec).stem, "prompted", {"overlap": -1}, prompt=spec, made_by=spec)
    raise UserError(
        f"{unknown('factor', spec, NAMES)}; your own: MODULE:FUNCTION, or a file with a prompt"
    )


def _function(spec: str) -> Factor:
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        function = pkgutil.resolve_name(spec)
    except Exception as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise UserError(
            f"factor {spec!r}: nothing to import in {folder} or among packages: {reason}"
        ) from error
    if not callable(function):
        raise UserError(f"factor {spec!r}: expected a function f(text), got {shorten(function)}")

    def edit(text: str, origin: Origin) -> str:
        changed = function(text)
        if not isinstance(changed, str):
            raise UserError(
                f"factor {spec!r}: expected a text of document {origin.id!r}, got {shorten(changed)}"
            )
        return changed

    moves, holds = (
        getattr(function, "moves", {"overlap": -1}),
        tuple(getattr(function, "holds", ())),
    )
    return Factor(
        spec.rpartition(":")[2].rpartition(".")[2],
        "changed",
        dict(moves),
        holds,
        edit,
        made_by=spec,
    )


def is_false(docs: pl.DataFrame) -> pl.Series:
    """Tell which versions say something else than their original, because their facts were changed."""
    column = f"factor:{MEANING}"
    if column not in docs.columns:
        return pl.repeat(value=False, n=docs.height, eager=True)
    return (docs[column] == HIGH).fill_null(value=False)


def require_model(factors: Sequence[Factor], given: bool) -> None:
    """Refuse factors that need a language model where none is given, and a model that no factor asks."""
    prompted = [one.name for one in factors if one.by == "model"]
    if prompted and not given:
        raise UserError(
            f"factor {prompted[0]!r} needs a language model: name one (--llm), or use --by-rule"
        )
    if given and not prompted:
        raise UserError("every factor is made by rule: leave out the language model (--llm)")


def applied_order(factors: Sequence[Factor]) -> list[Factor]:
    """Order factors as they are applied: rewrites of the collection, prompts, then rules; a user's own come last.

    What a model is asked thus depends on prompts alone, and versions that differ by a rule share
    the model's text.
    """
    names = {"collection": ["source"], "model": [*PROMPTED], "rule": [*RULES]}
    stages = list(names)

    def key(one: Factor) -> tuple[int, int]:
        order = names[one.by]
        return stages.index(one.by), order.index(
            one.name
        ) if one.name in order and not one.made_by else len(order)

    return sorted(factors, key=key)
