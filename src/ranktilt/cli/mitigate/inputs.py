"""What ``ranktilt mitigate`` reads: one ranker or run, and the words that name its collection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli.audit.inputs import InputOptions
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.runs.run import Run
    from ranktilt.rankers.base import Ranker


def baseline_of(rankers: Sequence[Ranker], runs: Sequence[Run]) -> Ranker | Run:
    """Return the one ranker, or the run where labels and a run alone were read."""
    return rankers[0] if rankers else runs[0]


def check_inputs(inputs: InputOptions, fit: Path | None) -> None:
    """Refuse more than one ranker, run or pair of groups, and what one of them cannot do."""
    inputs.check()
    baselines = [*(inputs.ranker or ()), *(inputs.run or ())]
    if len(baselines) > 1:
        raise UserError(f"mitigate takes one ranker or run; got {len(baselines)}")
    if fit is not None and inputs.run:
        raise UserError("--fit needs a ranker (-r): a saved run cannot rank another collection")
    if len(inputs.pairs or ()) > 1:
        raise UserError(f"mitigate takes one pair of groups; got {len(inputs.pairs or ())}")


def baseline_name(inputs: InputOptions) -> str | None:
    """Return the name that the user gave the ranker or run; None for its own."""
    names = [baseline.name for baseline in (*inputs.ranker_texts, *inputs.run_files)]
    return names[0] if names else None


def rank_words(inputs: InputOptions) -> list[str]:
    """Return the words that name the collection, for a command that ranks."""
    words = [str(inputs.folder)]
    for option, value in {"--split": inputs.split, "--qrels": inputs.qrels}.items():
        if value is not None:
            words += [option, str(value)]
    if inputs.ignore_unknown:
        words.append("--ignore-unknown")
    return words
