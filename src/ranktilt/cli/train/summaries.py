"""What a training says at the end: what the model learned from, and what comes next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranktilt.cli.notes import groups_to_audit, note
from ranktilt.errors import counted
from ranktilt.measures.printing import signed

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.training.options import TrainedModel


def summary(trained: TrainedModel, folder: Path, collection: Collection, stage: str) -> str:
    """Say what the model learned from and how its loss went, with the audit that comes next."""
    lines = (
        f"{_learned(trained)}; its loss went from {trained.figures['loss'][0]:.2f} to "
        f"{trained.figures['loss'][-1]:.2f}.{_left_out_and_imbalance(trained.figures)}"
    )
    groups = groups_to_audit(collection)
    if groups is None:
        return lines
    path = str(trained.folder)
    spec = f'"{path}"' if set(path) & set("()@,") or ">>" in path else path
    command = shlex.join(["ranktilt", "audit", str(folder), "-r", f"{stage}:{spec}", *groups])
    return f"{lines}\nNext: {command}"


def _learned(trained: TrainedModel) -> str:
    """Say what was learned, and from what."""
    figures = trained.figures
    steps = f"{figures['steps']:,} steps"
    if trained.resumed == figures["steps"]:
        return f"{trained.folder} already holds this training: {steps}"
    resumption = f" (this time from step {trained.resumed + 1:,} on)" if trained.resumed else ""
    return (
        f"{trained.folder}: learned from {figures['pairs']:,} of the pairs that "
        f"{figures['queries']:,} queries allow in {steps}{resumption}"
    )


def _left_out_and_imbalance(figures: Mapping[str, Any]) -> str:
    """Say what was left out, and which source has more."""
    text = ""
    left_out = figures.get("skipped_positives", 0)
    if left_out:
        documents = counted(left_out, "relevant document", "relevant documents")
        text += f" Left out: {documents}."
    imbalance = figures.get("imbalance")
    if imbalance:
        differences = [
            f"{name} {signed(value, 2)} sd ({signed(imbalance['unmatched'][name], 2)} unmatched)"
            for name, value in imbalance["matched"].items()
        ]
        text += f" Positives minus negatives: {', '.join(differences)}."
    return text


def warn_of_seen_judgments(collection: Path, split: str) -> None:
    """Say that an audit would use the judgments that the model learned from."""
    if split == "test" or len(list((collection / "qrels").glob("*.tsv"))) == 1:
        note(
            "warning: the model learned from the judgments that this audit would use, so the "
            "audit would flatter it; name others with --split"
        )
