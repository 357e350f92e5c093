"""Factors: properties of a text, changed by rule, by a language model, or by your own function.

A factor has two levels: ``low``, the text as it is, and ``high``, the changed text. A *probe* is a
measured property of a text; it shows whether a factor changed what it should, and nothing else.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ranktilt.errors import UserError, first_line, refuse_twice, shorten, unknown_name
from ranktilt.generation.versions import rules
from ranktilt.generation.versions.answer_sentences import (
    ANSWER_COUNT,
    ANSWER_OFF_CENTRE,
    ANSWER_POSITION,
    BEGINNING,
    END,
    MIDDLE,
    position_rule,
    repetition_rule,
)
from ranktilt.generation.versions.design import FACTS
from ranktilt.generation.versions.rules import RuleContext

Edit = Callable[[str, RuleContext], str]
"""A function from a text, and what rules may know of its document, to the changed text."""
Directions = Mapping[str, int]
"""Direction in which a factor must move each of some probes: 1 up, −1 down, 0 either."""
AS_IS = "as is"
"""Description of the low level."""
POSITION, REPETITION = "position", "repetition"
"""Names of the factors that move and repeat the sentences that answer a query."""


@dataclass(frozen=True, kw_only=True)
class Factor:
    """One property of a text with two levels: as it is, and changed."""

    name: str
    """Name of the factor."""
    high: str
    """Description of the high level, such as ``halved``."""
    moves: Directions
    """Probes that the factor must move, with the direction."""
    holds: tuple[str, ...] = ()
    """Probes that the factor must leave as they are."""
    edit: Edit | None = None
    """Function that changes a text: a rule, or the user's."""
    prompt: str = ""
    """Name or file of the prompt with which a model changes a text."""
    source: str | None = None
    """Source (author) whose rewrites in the collection are the high level.

    ``""`` stands for the only source besides the original's. None if a rule or a model changes the
    text.
    """
    titles: bool = False
    """Whether titles are changed too."""
    made_by: str = ""
    """Text with which users named a factor of their own; empty for built-in ones."""

    @property
    def by(self) -> Literal["rule", "model", "collection"]:
        """Where the changed text comes from; a user's function counts as a rule."""
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


_LENGTH_AND_CONTENT = ("words", "sentences", "query-words", "facts")
"""Probes of a text's length, query words and facts."""
_LENGTH_CONTENT_OVERLAP = (*_LENGTH_AND_CONTENT, "overlap")
"""The same probes, and the share of the original's words that a version keeps."""


def _position_factor(location: str) -> Factor:
    """Return the factor that moves answers to a place of the text, such as ``end``."""
    edit = position_rule(location)  # refuses an unknown place
    moves = {
        BEGINNING: {ANSWER_POSITION: -1},
        MIDDLE: {ANSWER_OFF_CENTRE: -1},
        END: {ANSWER_POSITION: 1},
    }
    return Factor(
        name=POSITION,
        high=location,
        moves=moves[location],
        holds=(*_LENGTH_CONTENT_OVERLAP, ANSWER_COUNT),
        edit=edit,
    )


def _repetition_factor(times: str) -> Factor:
    """Return the factor that states answers so many times."""
    edit = repetition_rule(times)  # refuses a text that is no such number
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
        edit=rules.change_facts,
    ),
    Factor(
        name="words",
        high="synonyms",
        moves={"overlap": -1},
        holds=_LENGTH_AND_CONTENT,
        edit=rules.use_synonyms,
    ),
    Factor(
        name="gender",
        high="feminine",
        moves={"gender": 1},
        holds=("words", "sentences"),
        edit=rules.feminize,
        titles=True,
    ),
    Factor(
        name="length",
        high="halved",
        moves={"words": -1},
        holds=("sentences", "readability"),
        edit=rules.halve,
    ),
    _position_factor(END),
    _repetition_factor("2"),
    Factor(
        name="query-words",
        high="added",
        moves={"query-words": 1},
        holds=("overlap", "facts"),
        edit=rules.add_query_words,
    ),
    Factor(
        name="fluency",
        high="swapped",
        moves={"perplexity": 1},
        holds=_LENGTH_CONTENT_OVERLAP,
        edit=rules.swap_words,
    ),
)
"""Factors without a prompt: made by rule, or taken from the collection (``source``)."""
RULES: Mapping[str, Factor] = {factor.name: factor for factor in _RULES}
"""Factors without a prompt by name, in the order in which they are applied."""
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
"""Factors by a language model by name, in the order in which they are applied."""
NAMES = (*RULES, *(name for name in PROMPTED if name not in RULES))
"""Names of all built-in factors."""


def read_factors(specs: Sequence[str], *, by_rule: bool = False) -> tuple[Factor, ...]:
    """Return the factors that users name, in the order given.

    Parameters
    ----------
    specs : sequence of str
        Each is one of

        - the name of a built-in factor, such as ``length``;
        - ``source:NAME``, for the rewrites of that source in the collection;
        - ``position:beginning`` or ``repetition:3``, which set the high level;
        - ``MODULE:FUNCTION``, a function ``f(text) -> text`` of yours. It may have attributes
          ``moves`` and ``holds``, as `Factor` has;
        - the path of a file with a prompt that has the slot ``{text}``.
    by_rule : bool, optional
        Use the rule of a factor that has both a rule and a prompt.
    """
    factors = tuple(_factor(spec.strip(), by_rule) for spec in specs if spec.strip())
    if not factors:
        raise UserError(f"expected a factor (valid: {', '.join(NAMES)}), got none")
    refuse_twice([factor.name for factor in factors], "factor")
    return factors


def _factor(spec: str, by_rule: bool) -> Factor:
    """Return the factor that a text names."""
    name, colon, argument = spec.partition(":")
    if name == "source" and colon:
        return Factor(name="source", high=argument, moves={"overlap": -1}, source=argument)
    if name == POSITION and colon:
        return _position_factor(argument)
    if name == REPETITION and colon:
        return _repetition_factor(argument)
    if spec in NAMES:
        return _built_in_factor(spec, by_rule)
    if colon and os.path.sep not in spec:
        return _function_factor(spec)
    if Path(spec).suffix == ".txt" or os.path.isfile(spec):
        return _prompt_factor(spec, by_rule)
    raise UserError(
        f"{unknown_name('factor', spec, NAMES)}; your own: MODULE:FUNCTION, or a file with a prompt"
    )


def _built_in_factor(name: str, by_rule: bool) -> Factor:
    """Return a built-in factor, with its prompt unless `by_rule`."""
    if by_rule and name not in RULES:
        raise UserError(f"factor {name!r} has no rule: leave out --by-rule and name a model, --llm")
    return PROMPTED[name] if name in PROMPTED and not by_rule else RULES[name]


def _prompt_factor(file: str, by_rule: bool) -> Factor:
    """Return a factor that a model changes with the prompt in a file."""
    if by_rule:
        raise UserError(f"factor {file!r} is a prompt: leave out --by-rule and name a model, --llm")
    return Factor(
        name=Path(file).stem, high="prompted", moves={"overlap": -1}, prompt=file, made_by=file
    )


def _function_factor(spec: str) -> Factor:
    """Return a factor that a user's function changes, named ``MODULE:FUNCTION``."""
    folder = os.getcwd()
    # Modules in the working folder can be named too; "" in the path means that folder.
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

    def edit(text: str, context: RuleContext) -> str:
        changed = function(text)
        if not isinstance(changed, str):
            raise UserError(
                f"factor {spec!r}: expected a text for document {context.id!r}, got "
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


def application_order(factors: Sequence[Factor]) -> list[Factor]:
    """Order factors as they are applied: rewrites of the collection, then prompts, then rules.

    In each of these stages, users' own factors come last. A model is thus never asked about a text
    that a rule changed, and versions that differ by a rule share the model's text.
    """
    names_by_stage = {"collection": ["source"], "model": [*PROMPTED], "rule": [*RULES]}
    stages = list(names_by_stage)

    def sort_key(factor: Factor) -> tuple[int, int]:
        names = names_by_stage[factor.by]
        is_built_in = factor.name in names and not factor.made_by
        index = names.index(factor.name) if is_built_in else len(names)
        return stages.index(factor.by), index

    return sorted(factors, key=sort_key)
