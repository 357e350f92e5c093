"""Run a training by a transformers trainer: its folder, arguments, checkpoints and record.

The *record* of a training is a file in the model's folder that says what the model depends on (its
*spec*), and how the training went (its *figures*). A *checkpoint* is the state of an unfinished
training, from which it goes on after an interruption. A *row* is what is learned from at once: a
query and its documents, or a prompt.
"""

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
from ranktilt.training.options import Schedule, TrainedModel

RECORD = "training.json"
"""Name of the record in a model's folder; it has no ``figures`` until the training is done."""
CHECKPOINTS = ".checkpoints"
"""Subfolder for the trainer's checkpoints, while a training is unfinished."""
_STATE = "trainer_state.json"
"""File that a trainer writes last into a checkpoint."""
_PACKAGES = ("torch", "transformers", "sentence-transformers", "accelerate")
"""Packages whose versions the record holds."""
_LOSS_POINTS = 20
"""Number of losses in the record, each the mean over a twentieth of the steps."""
_FIXED_ARGUMENTS: Mapping[str, Any] = {
    # Halve the batch where memory is short.
    "auto_find_batch_size": True,
    # `Clock.on_log` looks at the loss of each step, and NaN must reach it.
    "logging_steps": 1,
    "logging_nan_inf_filter": False,
    # `Clock` saves checkpoints, by time and not by steps, and its seconds are saved with them.
    "save_strategy": "no",
    "save_total_limit": 1,
    "restore_callback_states_from_checkpoint": True,
    # Progress is shown as that of all other commands.
    "report_to": "none",
    "disable_tqdm": True,
    "dataloader_pin_memory": False,
}
"""Arguments of every trainer, unless a training has others."""


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
    """Everything that the model depends on: options, encoder and data."""
    started_at: float
    """Time of the call, in seconds of the monotonic clock."""

    @cached_property
    def finished(self) -> TrainedModel | None:
        """The model, if the folder holds it already from a training with the same spec.

        Raises
        ------
        UserError
            If the folder holds anything but this training or its model.
        """
        self._require_folder()
        record = checkpoint.read_json(self.folder / RECORD, dict)
        figures = record.get("figures")
        if record:
            self._require_same_spec(record)
        if figures is None:
            return None
        return TrainedModel(folder=self.folder, record=record, resumed=figures.get("steps", 0))

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
        # As JSON, so that tuples compare equal to lists.
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
        # For transformers, a number below 1 is a share of all steps.
        warmup_steps = 0.1 if options.warmup_steps is None else options.warmup_steps
        scheduler, epochs = "linear", options.epochs
        if options.minutes is not None:
            # `Clock` sets the rate and ends the training. The number of steps is unknown, so the
            # trainer gets a constant rate, and more epochs than the time can suffice for.
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
        """Train, from the last checkpoint if there is one, and return the figures of the record.

        Parameters
        ----------
        trainer : Trainer
            The trainer, ready to train.
        documents_per_row : int
            Number of documents that the model reads for each row.
        """
        from ranktilt.training.callbacks import Clock

        options = self.options
        library = need("transformers.trainer_callback", extra="train", for_=self.label)
        clock = Clock(
            f"{self.label} {self.folder.name}",
            minutes=options.minutes,
            rate=options.rate,
            spent=time.monotonic() - self.started_at,
        )
        trainer.remove_callback(library.PrinterCallback)
        trainer.add_callback(clock)
        if not (self.folder / RECORD).is_file():
            write_files({self.folder / RECORD: _json({"spec": dict(self.spec)})})
        last = last_checkpoint(self.folder)
        resumed = 0 if last is None else _checkpoint_steps(last)
        resumed_from = None if last is None else str(last)
        set_threads()
        with checkpoint.loading(f"{self.folder}: the training cannot go on", for_=self.label):
            try:
                trainer.train(resume_from_checkpoint=resumed_from)
            except RuntimeError as error:
                if "No executable batch size" not in str(error):
                    raise
                raise UserError(
                    f"{self.label}: not even a batch of one row fits into memory; "
                    "cut documents shorter (--set max_document_tokens=N)"
                ) from error
            except UserError:
                if _clock(trainer).has_diverged:
                    self._remove_unfinished()
                raise
        rows_read = round(trainer.state.epoch * len(trainer.train_dataset))
        figures = _figures(trainer, _clock(trainer).spent, rows_read * documents_per_row)
        return {**figures, "resumed": resumed}

    def _remove_unfinished(self) -> None:
        """Remove a training that cannot continue, so that the next call begins a new one."""
        shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)
        (self.folder / RECORD).unlink(missing_ok=True)

    def finish(
        self, model: Any, base: str, collection: Collection, figures: dict[str, Any]
    ) -> TrainedModel:
        """Write the model, and then its record with the figures: only now is the training finished.

        Parameters
        ----------
        model : model
            The trained model, of any library with `save_pretrained`.
        base : str
            The encoder or chat model that the training started from.
        collection : Collection
            The collection that was learned from.
        figures : dict
            Figures of the record, with ``resumed``, which goes into the result instead.
        """
        resumed = figures.pop("resumed")
        record = {
            "spec": dict(self.spec),
            "ranktilt": __version__,
            "base_model": base,
            "collection": _collection_spec(collection),
            "packages": {name: version(name) for name in _PACKAGES},
            "figures": figures,
        }
        with checkpoint.loading(f"{self.folder}: cannot be written", for_=self.label):
            model.save_pretrained(str(self.folder))
        write_files({self.folder / RECORD: _json(record)})
        shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)
        return TrainedModel(folder=self.folder, record=record, resumed=resumed)


def _clock(trainer: Any) -> Any:
    """Return the trainer's clock, which is a new one after it was loaded from a checkpoint."""
    from ranktilt.training.callbacks import Clock

    callbacks = trainer.callback_handler.callbacks
    return next(callback for callback in callbacks if isinstance(callback, Clock))


def new_trainer(
    base: Any, model: Any, arguments: Any, rows: EpochRows, *, loss: Any, **options: Any
) -> Any:
    """Return a trainer of sentence-transformers that learns from rows, with a `BatchSampler`.

    Parameters
    ----------
    base : type
        Class of the trainer.
    model : model
        The model to train.
    arguments : TrainingArguments
        Arguments of the trainer.
    rows : EpochRows
        Rows to learn from.
    loss : Module
        The loss.
    **options
        Further arguments of the class.
    """

    class Trainer(base):  # type: ignore[misc]  # an optional package: no types
        def get_train_dataloader(self) -> Any:
            # ``auto_find_batch_size`` lowers `_train_batch_size` if memory is short, but version
            # 6.2 of sentence-transformers makes batches of the size in the arguments.
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
    ones must go: the trainer keeps only the checkpoint with the highest step, even if incomplete.
    """
    steps_by_checkpoint = dict[Path, int]()
    for path in sorted((folder / CHECKPOINTS).glob("checkpoint-*")):
        steps = _checkpoint_steps(path)
        if steps:
            steps_by_checkpoint[path] = steps
        else:
            shutil.rmtree(path, ignore_errors=True)
    return max(steps_by_checkpoint, key=steps_by_checkpoint.__getitem__, default=None)


def _checkpoint_steps(folder: Path) -> int:
    """Return the number of steps at a checkpoint; 0 if the checkpoint is incomplete."""
    try:
        return int(json.loads((folder / _STATE).read_text(encoding="utf-8"))["global_step"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return 0


def _figures(trainer: Any, seconds: float, pairs: int) -> dict[str, Any]:
    """Return the record's figures: steps, pairs, time, evaluations, and losses.

    `seconds` is the duration of the training, `pairs` the number of pairs of query and document
    that the model read.
    """
    state = trainer.state
    losses = np.array([log["loss"] for log in state.log_history if "loss" in log])
    stretches = np.array_split(losses, min(_LOSS_POINTS, len(losses)))
    mean_losses = [round(float(stretch.mean()), 4) for stretch in stretches]
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
    evaluations = [_evaluation(log) for log in state.log_history if _is_evaluation(log)]
    if evaluations:
        figures["evaluations"] = evaluations
    for number, evaluation in enumerate(evaluations, start=1):
        if evaluation["step"] == state.best_global_step:
            figures["kept_evaluation"] = number
            break
    return figures


def _is_evaluation(log: Mapping[str, Any]) -> bool:
    """Tell whether a line of the trainer's log is about an evaluation."""
    return any(name.startswith("eval_") for name in log)


def _evaluation(log: Mapping[str, Any]) -> dict[str, Any]:
    """Return the step and the metrics of a line about an evaluation."""
    metrics = {name.removeprefix("eval_"): value for name, value in log.items() if "eval_" in name}
    return {"step": log["step"], **metrics}


def digest(*parts: Iterable[str] | np.ndarray) -> str:
    """Return a hash of the data to learn from: lists of texts, and arrays of whole numbers.

    It tells whether an unfinished training in a folder learned from the same data.
    """
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts:
        for chunk in _byte_chunks(part):
            # The length before each chunk keeps "ab", "c" apart from "a", "bc".
            hasher.update(len(chunk).to_bytes(8, "little") + chunk)
    return hasher.hexdigest()


def _byte_chunks(part: Iterable[str] | np.ndarray) -> Iterable[bytes]:
    """Return the bytes of each text, or of a whole array."""
    if isinstance(part, np.ndarray):
        return [part.astype("<i8").tobytes()]
    return (text.encode() for text in part)


def _collection_spec(collection: Collection) -> dict[str, Any]:
    """Return where the training data come from: path, split, and hashes of the files."""
    files = [Path(str(file)) for file in collection.spec.get("files", ())]
    hashes = {str(file): sha256(file) for file in files if file.is_file()}
    return {
        "path": collection.spec.get("path"),
        "split": collection.spec.get("split"),
        "files": hashes,
    }


def _json(content: Mapping[str, Any]) -> bytes:
    """Return a record as the bytes of a JSON file."""
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
