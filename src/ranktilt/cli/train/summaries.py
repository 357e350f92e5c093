"""Notes at the end of a training: what the model learned from, and what to type next.

A model learns from *pairs* of a *positive*, a relevant document, and a *negative*, another one.
Negatives that are *matched* are like the positive in chosen properties; the *imbalance* is how far
they still differ.
"""

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
    """Return a note: what the model learned from, how its loss changed, and the next command.

    Parameters
    ----------
    trained : TrainedModel
        The model, with figures of the training.
    folder : Path
        The collection's folder, for the next command.
    collection : Collection
        The collection that it learned from.
    stage : str
        Beginning of the ranker's text that the folder of the model follows, such as ``dense``.
    """
    sentences = (
        f"{_learned(trained)}; its loss went from {trained.figures['loss'][0]:.2f} to "
        f"{trained.figures['loss'][-1]:.2f}.{_left_out_and_imbalance(trained.figures)}"
    )
    groups = groups_to_audit(collection)
    if groups is None:
        return sentences
    path = str(trained.folder)
    # A path with characters that a text of a ranker reserves is quoted.
    spec = f'"{path}"' if set(path) & set("()@,") or ">>" in path else path
    command = shlex.join(["ranktilt", "audit", str(folder), "-r", f"{stage}:{spec}", *groups])
    return f"{sentences}\nNext: {command}"


def _learned(trained: TrainedModel) -> str:
    """Say from how many pairs, queries and steps the model learned."""
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
    """Say which documents were left out, and how positives and negatives differ.

    Differences are in standard deviations (sd), after matching and, in parentheses, before it.
    """
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
    """Warn that an audit would use the judgments that the model learned from."""
    if split == "test" or len(list((collection / "qrels").glob("*.tsv"))) == 1:
        note(
            "warning: the model learned from the judgments that this audit would use, so the "
            "audit would flatter it; name others with --split"
        )
