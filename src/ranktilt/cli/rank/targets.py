"""The files that ``ranktilt rank`` writes runs to, and those that it refuses to write."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli.output import check_paths, file_name, with_sidecars
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.rankers.base import Ranker


def run_files(output: str, rankers: Sequence[Ranker]) -> list[Path]:
    """Return a file for each run: `output`, or in a folder a file with the name of each ranker.

    The list is empty for standard output (``-``).
    """
    path = Path(output)
    if not (output.endswith(("/", os.sep)) or path.is_dir()):
        if len(rankers) > 1:
            raise UserError(
                f"-o {output}: holds one run, got {len(rankers)} rankers; name a folder, such as "
                "-o runs/"
            )
        return [] if output == "-" else [path]
    count_of_name: Counter[str] = Counter()
    files = []
    for ranker in rankers:
        name = file_name(re.sub(r"[^\w.=@+-]+", "_", repr(ranker)).strip("_."))
        count_of_name[name] += 1
        number = f"-{count_of_name[name]}" if count_of_name[name] > 1 else ""
        files.append(path / f"{name}{number}.trec")
    return files


def saved_runs(rankers: Sequence[Ranker]) -> Iterator[Path]:
    """Yield the files of saved runs that rankers read."""
    from ranktilt.rankers.base import stages_of
    from ranktilt.rankers.replay import Replay

    for ranker in rankers:
        for stage in stages_of(ranker):
            if isinstance(stage, Replay):
                yield Path(stage.file)


def check_targets(files: Sequence[Path], inputs: Sequence[Path]) -> None:
    """Refuse files that cannot be written or that are read, before anything is ranked."""
    has_several = len(files) > 1
    paths = {f"-o {file.name}" if has_several else "-o": file for file in files}
    check_paths(with_sidecars(paths), inputs=inputs)


def require_plain_ids(output: str, collection: Collection) -> None:
    """Refuse ids with blanks where a run goes to standard output, before anything is ranked.

    In a file they are escaped, and the sidecar says so; standard output has no sidecar.
    """
    from ranktilt.data.runs.run_text import ids_beyond_trec

    for noun, names in (("query", collection.queries["id"]), ("document", collection.ids)):
        blank = ids_beyond_trec(names)
        if len(blank):
            raise UserError(
                f"-o {output}: {noun} id {blank[0]!r} contains a blank, which a run alone "
                "cannot hold; name a file instead"
            )
