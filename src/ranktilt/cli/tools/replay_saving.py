"""Where ``ranktilt tools replay-log`` saves the runs that it makes of a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli.app import OUTPUT
from ranktilt.data.files import sidecar

if TYPE_CHECKING:
    from ranktilt.auditing.replay_log.runs import LogRuns

SAVED = ("published", "strict")
"""The runs that ``--save`` writes: as the parser ranked, and with only unambiguous answers."""


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class ReplaySaving:
    """The folder of the published and of the strict run."""

    save: Annotated[
        Path | None,
        Parameter(
            help="Save the published and the strict runs in this folder, in TREC format.",
            metavar="DIR",
        ),
    ] = None

    @property
    def files(self) -> dict[str, Path | None]:
        """Files that are written, by the option that names their folder."""
        paths = list(self._paths().values())
        written = [*paths, *map(sidecar, paths)]
        return {f"--save, {path.name}": path for path in written}

    def contents(self, replayed: LogRuns) -> dict[Path | str | None, Callable[[], bytes]]:
        """Return functions that give the content of each file; none where nothing is saved."""
        files: dict[Path | str | None, Callable[[], bytes]] = {}
        for name, path in self._paths().items():
            for file, content in replayed.runs[name].contents(path).items():
                files[file] = partial(bytes, content)
        return files

    def _paths(self) -> dict[str, Path]:
        """Return the files of the runs by the run's name; none without a folder."""
        if self.save is None:
            return {}
        return {name: self.save / f"{name}.trec" for name in SAVED}
