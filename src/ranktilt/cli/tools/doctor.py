"""``ranktilt tools doctor``: the installation, the settings in force, the models and the cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from ranktilt.cli.app import OUTPUT, verb
from ranktilt.cli.output import Output
from ranktilt.cli.tools.group import tools
from ranktilt.cli.tools.installation import extras, location, machine, models_named
from ranktilt.cli.tools.pruning import entries_of, prune_cache
from ranktilt.cli.tools.settings_in_force import settings_in_force
from ranktilt.errors import UserError, unknown_name


@verb(
    "doctor",
    "tools doctor",
    "tools doctor monot5:base",
    "tools doctor minilm --prune",
    arguments="[MODEL]",
    parent=tools,
)
def doctor(
    model: Annotated[
        str | None,
        Parameter(
            name="MODEL", help="Model to show in full: minilm, dense:minilm or its name on the hub."
        ),
    ] = None,
    /,
    *,
    prune: Annotated[
        bool,
        Parameter(
            help="Remove half-written files from the cache, and everything from MODEL.",
            group=OUTPUT,
        ),
    ] = False,
    everything: Annotated[
        bool,
        Parameter(
            name="--all",
            help="With --prune: remove everything that was not paid for.",
            group=OUTPUT,
        ),
    ] = False,
    output: Output = Output(),
) -> None:
    """Show what is installed and cached and which settings apply, or prune the cache.

    You see what is missing, the settings that commands use and where each comes from, the papers'
    models, and what the cache keeps.

    You can make everything in the cache again, but you would pay again for answers of a server.
    These are removed only if you name the MODEL that gave them.
    """
    from ranktilt.data.cache import cache_folder
    from ranktilt.data.inventory import cache_contents
    from ranktilt.registry import foreign_rankers
    from ranktilt.reporting.views.cache import CacheInventory
    from ranktilt.reporting.views.doctor import Installation

    if everything and not prune:
        raise UserError(
            "--all needs --prune: ranktilt tools doctor --prune --all removes everything that was "
            "not paid for"
        )
    if everything and model:
        raise UserError("--all removes everything; omit it to remove only what is from MODEL")
    if prune:
        prune_cache(model, everything=everything)
        return
    entries = cache_contents()
    cache = CacheInventory(
        folder=cache_folder(), entries=entries if model is None else entries_of(entries, model)
    )
    models = models_named(model)
    if model is not None and not models and not cache.entries:
        raise unknown_name("model", model, [known.spec for known in models_named(None)])
    locations = {model.spec: location(model) for model in models}
    local_models = {spec: storage for spec, storage in locations.items() if storage is not None}
    output.check()
    installation = Installation(
        models=models,
        here=local_models,
        others=foreign_rankers(),
        full=model is not None and output.format == "table",
        cache=cache,
    )
    if model is None:
        installation = replace(
            installation,
            machine=dict(machine()),
            extras=list(extras()),
            configuration=settings_in_force(),
        )
    output.deliver(installation)
