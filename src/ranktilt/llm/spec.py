"""Read the text of a language model, such as ``openai:MODEL(temperature=0,concurrency=16)``.

The grammar is that of rankers (`ranktilt.spec`): a name, an argument and options. Rankers may also
follow each other (``>>``) and have a depth (``@100``); a language model may not.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from ranktilt.errors import UserError, unknown_name
from ranktilt.llm.base import KINDS, LLM, Sampling, llm
from ranktilt.llm.batches import in_batches
from ranktilt.spec import parse_stages, read_value

_SAMPLING = ("temperature", "top_p", "max_tokens", "seed")
"""Options of sampling that a text may have."""
_BATCHES = {"poll_interval": float, "give_up_batch": str}
"""Options of batches that a text may have, with their types."""


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A language model as you type it: its name, and options of client, sampling and batches."""

    name: str
    """Kind and model, such as ``openai:MODEL``."""
    client: Mapping[str, Any] = field(default_factory=dict)
    """Options of the client, such as ``concurrency``."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """Options of `Sampling` that the text names."""
    batches: Mapping[str, Any] = field(default_factory=dict)
    """Options of batches: ``poll_interval`` (seconds), ``give_up_batch`` (ids, with | between)."""

    def connect(self, *, batch: bool = False, device: str | None = None) -> LLM:
        """Return the model, which is neither asked nor loaded yet.

        Parameters
        ----------
        batch : bool
            Ask through the server's batches, at half the price.
        device : str, optional
            Device of a local model, if its text names none.
        """
        options = dict(self.client)
        if device is not None and "device" in model_options(self.name.partition(":")[0]):
            options.setdefault("device", device)
        model = llm(self.name, **options)
        if batch:
            # Several ids are separated by "|", because commas separate options.
            batch_ids = self.batches.get("give_up_batch", "").split("|")
            given_up = [batch_id.strip() for batch_id in batch_ids if batch_id.strip()]
            return in_batches(model, self.batches.get("poll_interval"), give_up=given_up)
        if self.batches:
            raise UserError(f"{next(iter(self.batches))} of {self.name} needs --batch")
        return model


def model_options(kind: str) -> dict[str, inspect.Parameter]:
    """Return the options of a kind's client by name, with their defaults.

    `UserError` for an unknown kind.
    """
    if kind not in KINDS:
        raise unknown_name("language model", kind, (f"{name}:…" for name in KINDS))
    client = pkgutil.resolve_name(KINDS[kind])
    _, *options = inspect.signature(client).parameters.values()  # the first is the model's name
    return {option.name: option for option in options}


def sampling_options() -> dict[str, Any]:
    """Return the options of sampling by name, with their defaults."""
    return {name: getattr(Sampling(), name) for name in _SAMPLING}


def batch_options(kind: str) -> list[str]:
    """Return the options of batches that a kind of model takes."""
    return list(_BATCHES) if kind == "openai" else []


def read_model(text: str) -> ModelSpec:
    """Read the text of a language model.

    Parameters
    ----------
    text : str
        ``openai:MODEL`` or ``transformers:FOLDER``, with options in parentheses. A value with
        ``(``, ``)``, ``@`` or ``,`` must be in double quotes.

    Raises
    ------
    UserError
        If the text does not follow the grammar, or names an unknown kind or option, or gives a
        value of a wrong type.
    """
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise UserError("the text of a language model has bytes that are not UTF-8")
    stages = parse_stages(text)
    stage = stages[0]
    if len(stages) > 1 or stage.k is not None:  # ">>" or "@k", which only rankers have
        raise UserError(f"expected one language model, such as openai:MODEL, got {text!r}")
    if stage.argument is None:
        llm(stage.name)  # refuses an unknown kind, with the names of all kinds
        raise UserError(f"{stage.name}: no model is named; expected {stage.name}:MODEL")
    client, sampling, batches = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    known = model_options(stage.name)
    types = _option_types(stage.name)
    for name, value in stage.options.items():
        label = f"option {name!r} of {stage.name}"
        if name in known:
            client[name] = read_value(value, types[name], label)
        elif name in _SAMPLING:
            sampling[name] = read_value(value, get_type_hints(Sampling)[name], label)
        elif name in batch_options(stage.name):
            batches[name] = read_value(value, _BATCHES[name], label)
        else:
            raise unknown_name(f"option of {stage.name}", name, option_names(stage.name))
    Sampling(**sampling)  # refuses values that are out of range
    return ModelSpec(
        name=f"{stage.name}:{stage.argument}", client=client, sampling=sampling, batches=batches
    )


def option_names(kind: str) -> list[str]:
    """Return the names of all options that the text of a kind of model may have."""
    return [*model_options(kind), *_SAMPLING, *batch_options(kind)]


def _option_types(kind: str) -> dict[str, Any]:
    """Return the type of each option of a kind's client."""
    return get_type_hints(pkgutil.resolve_name(KINDS[kind]))
