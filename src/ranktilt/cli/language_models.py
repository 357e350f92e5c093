"""How the text of ``--llm``, or a name of ranktilt.toml, becomes a model that can be asked.

A text is a kind and a model with options, ``openai:MODEL(temperature=0)``. In ranktilt.toml, the
section [llm.NAME] gives such a text a name, so that ``--llm NAME`` means the same.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from ranktilt.cli.notes import note, say
from ranktilt.cli.options import option_text
from ranktilt.cli.settings import settings
from ranktilt.errors import UserError, unknown_name
from ranktilt.llm.server import base_url

if TYPE_CHECKING:
    from ranktilt.llm.base import LLM
    from ranktilt.llm.spec import ModelSpec


@dataclass(frozen=True, kw_only=True)
class ConnectedModel:
    """A connection to a language model."""

    name: str
    """Its kind and its name, such as ``openai:MODEL``."""
    client: LLM
    """The connection, which sends requests."""
    sampling: Mapping[str, Any]
    """Options of its text that say how an answer is drawn, such as its temperature."""

    @classmethod
    def read(cls, text: str | None, *, batch: bool) -> Self:
        """Connect to the model of a text; refuse to go on without a text.

        With `batch`, requests are sent as a batch of the server.
        """
        if text is None:
            raise UserError("no model: name one, such as --llm openai:MODEL")
        spec = language_model(text)
        client = spec.connect(batch=batch, device=settings().machine.device)
        return cls(name=spec.name, client=client, sampling=spec.sampling)

    @classmethod
    def read_optional(cls, text: str | None, *, batch: bool) -> Self | None:
        """Connect to the model of a text, as `read` does; None without a text."""
        return None if text is None else cls.read(text, batch=batch)


def language_model(text: str) -> ModelSpec:
    """Read a model's text, or its name in ranktilt.toml."""
    from ranktilt.llm.spec import read_model

    return read_model(language_model_text(text))


def language_model_text(text: str) -> str:
    """Return the text of a model that ranktilt.toml names; any other text as it is.

    Options in parentheses behind the name win over the file, and so does a typed ``--device``.

    The file may come from somebody else, with an address to which the user's key would be sent. So
    an address in the file is printed before anything is sent there, with the environment variable
    that holds the key.
    """
    from ranktilt.llm.base import KINDS
    from ranktilt.llm.server import VARIABLE
    from ranktilt.llm.spec import read_model
    from ranktilt.spec import parse_stages

    configuration = settings().configuration
    if not configuration.llm:
        return text
    stages = parse_stages(text)
    typed = stages[0]
    if typed.name in KINDS:
        if typed.name in configuration.llm:
            note(f"--llm {text}: {typed.name} is a kind of model, not [llm.{typed.name}]")
        return text
    section = configuration.llm.get(typed.name)
    if section is None:
        kinds = [f"{kind}:…" for kind in KINDS]
        raise unknown_name("language model", typed.name, [*configuration.llm, *kinds])
    if len(stages) > 1 or typed.argument is not None or typed.k is not None:
        raise UserError(
            f"--llm {text}: expected a name of {configuration.path}, such as {typed.name}, with "
            f"options or none: {typed.name}(temperature=0)"
        )
    file_text = _text_of_section(typed.name, section)
    spec = read_model(file_text)
    address = spec.client.get("base_url")
    if address is not None and "base_url" not in typed.options:
        key = f", with the key in {VARIABLE}" if os.environ.get(VARIABLE) else ""
        setting = f"base_url of [llm.{typed.name}] in {configuration.path}"
        say(f"asks {base_url(address)}{key} ({setting})")
    (model,) = parse_stages(file_text)
    options = {**model.options, **typed.options}
    if settings().is_device_typed and "device" not in typed.options:
        options.pop("device", None)
    return str(replace(model, options=options))


def _text_of_section(name: str, section: Mapping[str, Any]) -> str:
    """Return the text of a section [llm.NAME]: its key ``model``, and the other keys as options."""
    from ranktilt.llm.spec import read_model
    from ranktilt.spec import parse_stages

    path = settings().configuration.path
    try:
        read_model(str(section["model"]))
        (model,) = parse_stages(str(section["model"]))
        options = {
            option: option_text(value) for option, value in section.items() if option != "model"
        }
        for option in options:
            if option in model.options:
                raise UserError(f"{option} is given twice, as a key and in model")
        text = str(replace(model, options={**model.options, **options}))
        read_model(text)
    except UserError as error:
        raise UserError(f"{path}: [llm.{name}]: {error}") from error
    return text
