"""Factors: properties of a text, changed by rule, by a language model, or by your own function."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ranktilt.errors import UserError, first_line, refuse_twice, shorten, unknown
from ranktilt.generation.versions import rules
from ranktilt.generation.versions.answer_sentences import (
    ANSWER_COUNT,
    ANSWER_OFF_CENTRE,
    ANSWER_POSITION,
    BEGINNING,
    END,
    MIDDLE,
    placed_edit,
    repeated_edit,
)
from ranktilt.generation.versions.design import FACTS
from ranktilt.generation.versions.rules import Origin

Edit = Callable[[str, Origin], str]
"""A function from a text and its document to the changed text."""
Expected = Mapping[str, int]
"""Probes that a factor must move, by the direction: 1 up, −1 down, 0 either."""
AS_IS = "as is"
"""Name of the low level."""
POSITION, REPETITION = "position", "repetition"
"""Factors of the sentences that answer: where they stand, and how often."""


@dataclass(frozen=True, kw_only=True)
class Factor:
    """One property of a text with two levels: as it is, and changed."""

    name: str
    """Name of the factor."""
    high: str
    """Name of the high level: ``halved``."""
    moves: Expected
    """Probes that it must move."""
    holds: tuple[str, ...] = ()
    """Probes that it must not move."""
    edit: Edit | None = None
    """Function that changes a text: a rule, or the user's."""
    prompt: str = ""
    """Name or file of the prompt with which a model changes a text."""
    source: str | None = None
    """Source of the collection whose rewrites are the high level, or ``""`` for the only other
    source; None if a rule or a model changes the text.
    """
    titles: bool = False
    """Whether titles are changed too."""
    made_by: str = ""
    """Text by which users named a factor of theirs."""

    @property
    def by(self) -> Literal["rule", "model", "collection"]:
        """Who changes the text."""
        if self.prompt:
            return "model"
        return "rule" if self.source is None else "collection"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        content: dict[str, Any] = {
            "name": self.name,
            "by": self.by,
            "moves": dict(self.moves),
            "holds": list(self.holds),
        }
        optional = {"prompt": self.prompt, "source": self.source, "made_by": self.made_by}
        return content | {name: value for name, value in optional.items() if value}


_TEXT = ("words", "sentences", "query-words", "facts")
"""Probes of a text by itself, and of its facts."""
_TEXT_AND_OVERLAP = (*_TEXT, "overlap")
"""The same, and the words that a version shares with its origin."""


def _position(part: str) -> Factor:
    """Return the factor that moves answers to a part of the text."""
    moves = {
        BEGINNING: {ANSWER_POSITION: -1},
        MIDDLE: {ANSWER_OFF_CENTRE: -1},
        END: {ANSWER_POSITION: 1},
    }
    edit = placed_edit(part)
    return Factor(
        name=POSITION,
        high=part,
        moves=moves[part],
        holds=(*_TEXT_AND_OVERLAP, ANSWER_COUNT),
        edit=edit,
    )


def _repetition(times: str) -> Factor:
    """Return the factor that states answers several times."""
    edit = repeated_edit(times)
    return Factor(
        name=REPETITION,
        high="twice" if int(times) == 2 else f"{int(times)} times",
        moves={ANSWER_COUNT: 1},
        holds=("facts", "overlap", ANSWER_POSITION),
        edit=edit,
    )


_RULES = (
    Factor(name="source", high="rewritten", moves={"overlap": -1}, source=""),
    Factor(
        name=FACTS,
        high="changed",
        moves={"facts": -1},
        holds=("words", "sentences", "query-words"),
        edit=rules.other_facts,
    ),
    Factor(
        name="words",
        high="synonyms",
        moves={"overlap": -1},
        holds=_TEXT,
        edit=rules.other_words,
    ),
    Factor(
        name="gender",
        high="feminine",
        moves={"gender": 1},
        holds=("words", "sentences"),
        edit=rules.feminine,
        titles=True,
    ),
    Factor(
        name="length",
        high="halved",
        moves={"words": -1},
        holds=("sentences", "readability"),
        edit=rules.shorter,
    ),
    _position(END),
    _repetition("2"),
    Factor(
        name="query-words",
        high="added",
        moves={"query-words": 1},
        holds=("overlap", "facts"),
        edit=rules.with_query_words,
    ),
    Factor(
        name="fluency",
        high="swapped",
        moves={"perplexity": 1},
        holds=_TEXT_AND_OVERLAP,
        edit=rules.swapped_words,
    ),
)
"""Factors by rule."""
RULES: Mapping[str, Factor] = {factor.name: factor for factor in _RULES}
"""Factors by rule, in the order in which they are applied."""
_PROMPTED = (
    Factor(
        name="source",
        high="paraphrased",
        moves={"overlap": -1},
        holds=("words",),
        prompt="paraphrase",
    ),
    Factor(
        name="style",
        high="informal",
        moves={"readability": -1},
        holds=("words", "facts"),
        prompt="informal",
    ),
    Factor(
        name="fluency",
        high="polished",
        moves={"perplexity": -1},
        holds=("words", "facts"),
        prompt="polish",
    ),
    Factor(
        name="length",
        high="shorter",
        moves={"words": -1},
        holds=("sentences",),
        prompt="shorten",
    ),
)
"""Factors by a language model."""
PROMPTED: Mapping[str, Factor] = {factor.name: factor for factor in _PROMPTED}
"""Factors by a language model, in the order in which they are applied, before all rules."""
NAMES = (*RULES, *(name for name in PROMPTED if name not in RULES))
"""Names of all factors that are built in."""


def read_factors(specs: Sequence[str], *, by_rule: bool = False) -> tuple[Factor, ...]:
    """Read factors by name, in the order given.

    One with a rule and a prompt is made by the prompt unless `by_rule`. ``source:NAME`` are the
    rewrites that the collection has already; ``position:beginning`` and ``repetition:3`` say what
    the high level is; ``MODULE:FUNCTION`` is a function ``f(text) -> text``
    of yours, with attributes ``moves`` and ``holds`` if you like; the name of a file is a prompt
    with ``{text}``.
    """
    factors = tuple(_factor(spec.strip(), by_rule) for spec in specs if spec.strip())
    if not factors:
        raise UserError(f"expected a factor (valid: {', '.join(NAMES)}), got none")
    refuse_twice([factor.name for factor in factors], "factor")
    return factors


def _factor(spec: str, by_rule: bool) -> Factor:
    """Return the factor of a text that users type."""
    name, colon, argument = spec.partition(":")
    if name == "source" and colon:
        return Factor(name="source", high=argument, moves={"overlap": -1}, source=argument)
    if name == POSITION and colon:
        return _position(argument)
    if name == REPETITION and colon:
        return _repetition(argument)
    if spec in NAMES:
        return _built_in(spec, by_rule)
    if colon and os.path.sep not in spec:
        return _function(spec)
    if Path(spec).suffix == ".txt" or os.path.isfile(spec):
        return _prompt_file(spec, by_rule)
    raise UserError(
        f"{unknown('factor', spec, NAMES)}; your own: MODULE:FUNCTION, or a file with a prompt"
    )


def _built_in(name: str, by_rule: bool) -> Factor:
    """Return a factor of ours, by its prompt unless a rule is asked for."""
    if by_rule and name not in RULES:
        raise UserError(f"factor {name!r} has no rule: leave out --by-rule and name a model, --llm")
    return PROMPTED[name] if name in PROMPTED and not by_rule else RULES[name]


def _prompt_file(file: str, by_rule: bool) -> Factor:
    """Return a factor that is made by the prompt in a file."""
    if by_rule:
        raise UserError(f"factor {file!r} is a prompt: leave out --by-rule and name a model, --llm")
    return Factor(
        name=Path(file).stem, high="prompted", moves={"overlap": -1}, prompt=file, made_by=file
    )


def _function(spec: str) -> Factor:
    """Return a factor that is made by a function of the user's."""
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
                f"factor {spec!r}: expected a text for document {origin.id!r}, got "
                f"{shorten(changed)}"
            )
        return changed

    return Factor(
        name=spec.rpartition(":")[2].rpartition(".")[2],
        high="changed",
        moves=dict(getattr(function, "moves", {"overlap": -1})),
        holds=tuple(getattr(function, "holds", ())),
        edit=edit,
        made_by=spec,
    )


def require_model(factors: Sequence[Factor], *, has_model: bool) -> None:
    """Refuse factors that lack a language model, and a model that no factor asks."""
    prompted = [factor.name for factor in factors if factor.by == "model"]
    if prompted and not has_model:
        raise UserError(
            f"factor {prompted[0]!r} needs a language model: name one (--llm), or use --by-rule"
        )
    if has_model and not prompted:
        raise UserError("every factor is made by rule: leave out the language model (--llm)")


def applied_order(factors: Sequence[Factor]) -> list[Factor]:
    """Order factors as they are applied: rewrites of the collection, prompts, then rules.

    In each stage a user's own come last. What a model is asked thus depends on prompts alone, and
    versions that differ by a rule share the model's text.
    """
    orders = {"collection": ["source"], "model": [*PROMPTED], "rule": [*RULES]}
    stages = list(orders)

    def position(factor: Factor) -> tuple[int, int]:
        order = orders[factor.by]
        is_ours = factor.name in order and not factor.made_by
        return stages.index(factor.by), order.index(factor.name) if is_ours else len(order)

    return sorted(factors, key=position)
