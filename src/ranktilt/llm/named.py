"""Language models by what is typed for them: `openai:MODEL`, `transformers:FOLDER`."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from ranktilt.errors import UserError, shorten, unknown
from ranktilt.llm.base import LLM

KINDS = {
    "openai": ("ranktilt.llm.openai", "OpenAI"),
    "transformers": ("ranktilt.llm.transformers", "Transformers"),
}
"""Module and class by the name before the colon."""
_EXAMPLES = {"openai": "openai:gpt-4o-mini", "transformers": "transformers:FOLDER"}


def llm(text: str, **options: Any) -> LLM:
    """Make a language model of its text; asks and loads nothing.

    Parameters
    ----------
    text : str
        ``openai:MODEL``, a model behind any server that speaks OpenAI's protocol, or ``transformers:FOLDER``, a
        model in a local folder.
    **options
        Those of the class, by name; None leaves one as it is by default. `OpenAI`: base_url, concurrency, timeout,
        retries, rpm, tpm, max_answer.

    Returns
    -------
    LLM
        The model.

    Raises
    ------
    UserError
        If there is no such kind or option, or nothing is named.
    """
    kind, colon, name = text.strip().partition(":")
    if kind not in KINDS:
        raise unknown("language model", shorten(kind)[1:-1], (f"{one}:…" for one in KINDS))
    if not colon or not name.strip():
        raise UserError(f"{kind}: names no model; expected something like {_EXAMPLES[kind]}")
    module, made = KINDS[kind]
    model = getattr(importlib.import_module(module), made)
    given = {option: value for option, value in options.items() if value is not None}
    taken = list(inspect.signature(model).parameters)[1:]
    for option in given:
        if option not in taken:
            raise unknown(f"option of {kind}", option, taken)
    built: LLM = model(name.strip(), **given)
    return built
