"""Run a training by a transformers trainer: its folder, arguments, checkpoints and record."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.files import require_place, sha256, write_files
from ranktilt.errors import UserError, shorten
from ranktilt.models import checkpoint
from ranktilt.models.device import set_threads
from ranktilt.optional import need
from ranktilt.training.batches import BatchSampler, EpochRows
from ranktilt.training.options import Schedule, Trained

RECORD = "training.json"
"""Record of the training, in a model's folder; without ``figures`` until the training is done."""
CHECKPOINTS = ".checkpoints"
"""Folder of the trainer's checkpoints, within that of an unfinished training."""
_STATE = "trainer_state.json"
"""File that a trainer writes last of all into a checkpoint."""
_PACKAGES = ("torch", "transformers", "sentence-transformers", "accelerate")
"""Packages whose versions the record names."""
_LOSS_POINTS = 20
"""Number of losses in the record: means over equal parts of the training."""
_FIXED_ARGUMENTS: Mapping[str, Any] = {
    "auto_find_batch_size": True,
    "logging_steps": 1,
    "logging_nan_inf_filter": False,
    "save_strategy": "no",
    "save_total_limit": 1,
    "restore_callback_states_from_checkpoint": True,
    "report_to": "none",
    "disable_tqdm": True,
    "dataloader_pin_memory": False,
}
"""Arguments of every trainer; a training may replace them."""


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """One training of a model into a folder, which need not exist."""

    label: str
    """The command, for messages."""
    folder: Path
    """Folder of the trained model."""
    options: Schedule
    """Schedule of the training."""
    spec: Mapping[str, Any]
    """All that the model depends on."""
    began: float
    """Start of the call, on the monotonic clock."""

    @cached_property
    def finished(self) -> Trained | None:
        """The model of this very training, if the folder has it.

        Raises
        ------
        UserError
            If the folder holds anything else.
        """
        self._require_folder()
        record = checkpoint.read_json(self.folder / RECORD, dict)
        figures = record.get("figures")
        if record:
            self._require_same_spec(record)
        if figures is None:
            return None
        return Trained(folder=self.folder, record=record, resumed=figures.get("steps", 0))

    def _require_folder(self) -> None:
        """Refuse a folder that holds anything but a training."""
        if self.folder.exists() and not self.folder.is_dir():
            raise UserError(f"{self.folder}: expected a folder to write to, this is a file")
        require_place(self.folder / RECORD)
        has_record = (self.folder / RECORD).is_file()
        if self.folder.is_dir() and any(self.folder.iterdir()) and not has_record:
            raise UserError(f"{self.folder}: holds files of something else; name a new folder")

    def _require_same_spec(self, record: Mapping[str, Any]) -> None:
        """Refuse a folder with a model or training of another spec."""
        before, now = record.get("spec", {}), json.loads(json.dumps(self.spec))
        if not isinstance(before, dict) or not isinstance(record.get("figures", {}), dict):
            raise UserError(
                f"{self.folder / RECORD}: is not a record of a training; remove the folder, or "
                "name another"
            )
        changed = [name for name in now if before.get(name) != now[name]]
        if changed:
            name, *further = changed
            more = f" (and {', '.join(further)})" if further else ""
            holder = "a model trained" if "figures" in record else "an unfinished training"
            raise UserError(
                f"{self.folder}: holds {holder} with {name} {shorten(before.get(name))}, "
                f"not {shorten(now[name])}{more}; name another folder, or remove this one"
            )

    def arguments(self, kind: Any, rows_per_batch: int, **arguments: Any) -> Any:
        """Return the arguments of a transformers trainer.

        Parameters
        ----------
        kind : type
            Class of the arguments, such as ``TrainingArguments``.
        rows_per_batch : int
            Rows in a batch.
        **arguments
            Further arguments by name, in place of those of `_FIXED_ARGUMENTS`.
        """
        options = self.options
        torch = need("torch", extra="train", for_=self.label)
        if options.device == "cuda" and not torch.cuda.is_available():
            raise UserError(f"{self.label}: PyTorch finds no GPU (--device cuda)")
        # transformers takes a number below 1 as a share of all steps.
        warmup_steps = 0.1 if options.warmup_steps is None else options.warmup_steps
        scheduler, epochs = "linear", options.epochs
        if options.minutes is not None:
            # The clock ends the training and sets the rate. The number of steps is unknown, so that
            # the trainer keeps its own rate constant, over more epochs than there can be.
            scheduler, epochs = "constant", 10**6
        trainer_arguments = kind(
            output_dir=str(self.folder / CHECKPOINTS),
            per_device_train_batch_size=rows_per_batch,
            learning_rate=options.rate,
            weight_decay=options.weight_decay,
            max_steps=options.steps or -1,
            warmup_steps=warmup_steps,
            lr_scheduler_type=scheduler,
            num_train_epochs=epochs,
            seed=options.seed,
            bf16=options.precision == "bfloat16",
            use_cpu=options.device == "cpu",
            **{**_FIXED_ARGUMENTS, **arguments},
        )
        # With several GPUs, transformers would multiply the batch by their number.
        trainer_arguments._n_gpu = min(trainer_arguments.n_gpu, 1)
        return trainer_arguments

    def train(self, trainer: Any, documents_per_row: int) -> dict[str, Any]:
        """Train, from the last checkpoint if there is one, and return the figures of the record."""
        from ranktilt.training.callbacks import Clock

        options = self.options
        library = need("transformers.trainer_callback", extra="train", for_=self.label)
        clock = Clock(
            f"{self.label} {self.folder.name}",
            minutes=options.minutes,
            rate=options.rate,
            spent=time.monotonic() - self.began,
        )
        trainer.remove_callback(library.PrinterCallback)
        trainer.add_callback(clock)
        if not (self.folder / RECORD).is_file():
            write_files({self.folder / RECORD: _json({"spec": dict(self.spec)})})
        last = last_checkpoint(self.folder)
        resumed = 0 if last is None else _checkpoint_steps(last)
        set_threads()
        with checkpoint.loading(f"{self.folder}: the training cannot go on", for_=self.label):
            try:
                trainer.train(resume_from_checkpoint=None if last is None else str(last))
            except RuntimeError as error:
                if "No executable batch size" not in str(error):
                    raise
                raise UserError(
                    f"{self.label}: not even a batch of one row fits into memory; "
                    "cut documents shorter (--set max_document_tokens=N)"
                ) from error
            except UserError:
                if _clock(trainer).has_diverged:
                    self._forget()
                raise
        pairs = round(trainer.state.epoch * len(trainer.train_dataset)) * documents_per_row
        return {**_figures(trainer, _clock(trainer).spent, pairs), "resumed": resumed}

    def _forget(self) -> None:
        """Remove an unfinished training that cannot continue, so that it begins again."""
        shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)
        (self.folder / RECORD).unlink(missing_ok=True)

    def finish(
        self, model: Any, base: str, collection: Collection, figures: dict[str, Any]
    ) -> Trained:
        """Write the model and, last of all, its record."""
        resumed = figures.pop("resumed")
        record = {
            "spec": dict(self.spec),
            "ranktilt": __version__,
            "base_model": base,
            "collection": _origin(collection),
            "packages": {name: version(name) for name in _PACKAGES},
            "figures": figures,
        }
        with checkpoint.loading(f"{self.folder}: cannot be written", for_=self.label):
            model.save_pretrained(str(self.folder))
        write_files({self.folder / RECORD: _json(record)})
        shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)
        return Trained(folder=self.folder, record=record, resumed=resumed)


def _clock(trainer: Any) -> Any:
    """Return the trainer's clock; a checkpoint replaces the one that was added."""
    from ranktilt.training.callbacks import Clock

    callbacks = trainer.callback_handler.callbacks
    return next(callback for callback in callbacks if isinstance(callback, Clock))


def new_trainer(
    base: Any, model: Any, arguments: Any, rows: EpochRows, *, loss: Any, **options: Any
) -> Any:
    """Return a trainer of sentence-transformers that learns from rows, in the rows' own batches.

    Version 6.2 makes batches of ``args.train_batch_size``, which ``auto_find_batch_size`` does not
    change.
    """

    class Trainer(base):  # type: ignore[misc]  # an optional package: no types
        def get_train_dataloader(self) -> Any:
            self.args.per_device_train_batch_size = self._train_batch_size
            return super().get_train_dataloader()

        def get_batch_sampler(self, dataset: Any, batch_size: int, **_: Any) -> BatchSampler:
            return BatchSampler(rows=rows, sampler=dataset, batch_size=batch_size)

        def add_model_card_callback(self, *_: Any) -> None:
            """Leave out statistics of texts, which are drawn anew in each epoch."""

    return Trainer(model, arguments, rows.dataset(), loss=loss, **options)


def last_checkpoint(folder: Path) -> Path | None:
    """Return the last complete checkpoint, and remove incomplete ones.

    A checkpoint with a state is complete, because the trainer writes the state last. Incomplete
    ones are removed because the trainer keeps the checkpoint with the highest step.
    """
    steps = dict[Path, int]()
    for path in sorted((folder / CHECKPOINTS).glob("checkpoint-*")):
        steps[path] = _checkpoint_steps(path)
        if not steps[path]:
            shutil.rmtree(path, ignore_errors=True)
    complete = [path for path in steps if steps[path]]
    return max(complete, key=steps.__getitem__, default=None)


def _checkpoint_steps(folder: Path) -> int:
    """Return the steps of a checkpoint; 0 for one that a kill has cut short."""
    try:
        return int(json.loads((folder / _STATE).read_text(encoding="utf-8"))["global_step"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return 0


def _figures(trainer: Any, seconds: float, pairs: int) -> dict[str, Any]:
    """Return the record's figures: steps, pairs, time, evaluations, and losses."""
    state = trainer.state
    losses = np.array([log["loss"] for log in state.log_history if "loss" in log])
    loss_parts = np.array_split(losses, min(_LOSS_POINTS, len(losses)))
    mean_losses = [round(float(part.mean()), 4) for part in loss_parts]
    torch = need("torch", extra="neural", for_="training")
    figures: dict[str, Any] = {
        "threads": torch.get_num_threads(),
        "steps": state.global_step,
        "epochs": round(state.epoch, 3),
        "batch": trainer.args.per_device_train_batch_size,
        "pairs": pairs,
        "seconds": round(seconds, 1),
        "pairs_per_second": round(pairs / seconds, 1),
        "loss": mean_losses,
    }
    evaluations = list(map(_evaluation, filter(_is_evaluation, state.log_history)))
    if evaluations:
        figures["evaluations"] = evaluations
    for number, evaluation in enumerate(evaluations, start=1):
        if evaluation["step"] == state.best_global_step:
            figures["kept_evaluation"] = number
            break
    return figures


def _is_evaluation(log: Mapping[str, Any]) -> bool:
    """Return whether a line of the trainer's log is of an evaluation."""
    return any(name.startswith("eval_") for name in log)


def _evaluation(log: Mapping[str, Any]) -> dict[str, Any]:
    """Return the step and the metrics of a trainer's log of an evaluation."""
    metrics = {name.removeprefix("eval_"): value for name, value in log.items() if "eval_" in name}
    return {"step": log["step"], **metrics}


def digest(*parts: Iterable[str] | np.ndarray) -> str:
    """Return a hash of all that is learned from: texts, and arrays of whole numbers.

    It tells whether an unfinished training in a folder learned from the same.
    """
    digester = hashlib.blake2b(digest_size=16)
    for part in parts:
        for chunk in _byte_chunks(part):
            # With its length before it, no chunk can pass for two.
            digester.update(len(chunk).to_bytes(8, "little") + chunk)
    return digester.hexdigest()


def _byte_chunks(part: Iterable[str] | np.ndarray) -> Iterable[bytes]:
    """Yield the bytes of texts or numbers."""
    if isinstance(part, np.ndarray):
        return [part.astype("<i8").tobytes()]
    return (text.encode() for text in part)


def _origin(collection: Collection) -> dict[str, Any]:
    """Return the origin of the training data: folder, split, and hashes of its files."""
    files = [Path(str(file)) for file in collection.spec.get("files", ())]
    hashes = {str(file): sha256(file) for file in files if file.is_file()}
    return {
        "path": collection.spec.get("path"),
        "split": collection.spec.get("split"),
        "files": hashes,
    }


def _json(content: Mapping[str, Any]) -> bytes:
    """Return a record as the file has it."""
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
