"""A training by a trainer of transformers: its folder, arguments, checkpoints, and what its record says."""

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
"""In a model's folder: how it was trained; without ``figures`` until it is."""
CHECKPOINTS = ".checkpoints"
"""The trainer's checkpoints of an unfinished training, in its folder."""
_STATE = "trainer_state.json"
_PACKAGES = ("torch", "transformers", "sentence-transformers", "accelerate")
_LOSS_POINTS = 20


@dataclass(frozen=True)
class TrainingRun:
    """One training of a model into a folder, which need not exist."""

    label: str
    """What is trained, for messages."""
    folder: Path
    options: Schedule
    spec: Mapping[str, Any]
    """All that the model depends on."""
    began: float

    @cached_property
    def finished(self) -> Trained | None:
        """The model of this very training if it is there; refuses a folder that holds anything else."""
        if self.folder.exists() and not self.folder.is_dir():
            raise UserError(f"{self.folder}: expected a folder to write to, this is a file")
        require_place(self.folder / RECORD)
        if (
            self.folder.is_dir()
            and any(self.folder.iterdir())
            and not (self.folder / RECORD).is_file()
        ):
            raise UserError(f"{self.folder}: holds files of something else; name a new folder")
        record = checkpoint.read_json(self.folder / RECORD, dict)
        before, now = record.get("spec", {}), json.loads(json.dumps(self.spec))
        if not isinstance(before, dict) or not isinstance(
            record.get("figures", {"steps": 0}), dict
        ):
            raise UserError(
                f"{self.folder / RECORD}: is no record of a training; remove the folder, or name another"
            )
        other = [name for name in now if before.get(name) != now[name]] if record else []
        if other:
            name = other[0]
            more = f" (and {', '.join(other[1:])})" if len(other) > 1 else ""
            what = "a model trained" if "figures" in record else "an unfinished training"
            raise UserError(
                f"{self.folder}: holds {what} with {name} {shorten(before.get(name))}, not {shorten(now[name])}"
                f"{more}; name another folder, or remove this one"
            )
        return (
            Trained(self.folder, record, record["figures"].get("steps", 0))
            if "figures" in record
            else None
        )

    def arguments(self, kind: Any, rows: int, **more: Any) -> Any:
        """Return the trainer's arguments; `rows` make a batch."""
        options = self.options
        if (
            options.device == "cuda"
            and not need("torch", extra="train", for_=self.label).cuda.is_available()
        ):
            raise UserError(f"{self.label}: PyTorch finds no GPU (--device cuda)")
        made = kind(
            output_dir=str(self.folder / CHECKPOINTS),
            per_device_train_batch_size=rows,
            learning_rate=options.rate,
            weight_decay=options.weight_decay,
            max_steps=options.steps or -1,
            warmup_steps=0.1 if options.warmup_steps is None else options.warmup_steps,
            lr_scheduler_type="linear" if options.minutes is None else "constant",
            num_train_epochs=options.epochs if options.minutes is None else 10**6,
            seed=options.seed,
            bf16=options.precision == "bfloat16",
            use_cpu=options.device == "cpu",
            auto_find_batch_size=True,
            logging_steps=1,
            logging_nan_inf_filter=False,
            save_total_limit=1,
            restore_callback_states_from_checkpoint=True,
            report_to="none",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            **{"save_strategy": "no", **more},
        )
        made._n_gpu = min(made.n_gpu, 1)  # a batch is as large as it is asked for, on any machine
        return made

    def train(self, trainer: Any, documents: int) -> dict[str, Any]:
        """Train, from the last checkpoint where there is one; returns the figures. A row has so many documents."""
        from ranktilt.training.callbacks import Clock

        options = self.options
        clock = Clock(
            f"{self.label} {self.folder.name}",
            options.minutes,
            options.rate,
            time.monotonic() - self.began,
        )
        trainer.remove_callback(
            need("transformers.trainer_callback", extra="train", for_=self.label).PrinterCallback
        )
        trainer.add_callback(clock)
        if not (self.folder / RECORD).is_file():
            write_files({self.folder / RECORD: _json({"spec": dict(self.spec)})})
        last = last_checkpoint(self.folder)
        resumed = 0 if last is None else _steps(last)
        set_threads()
        with checkpoint.loading(f"{self.folder}: the training cannot go on", for_=self.label):
            try:
                trainer.train(resume_from_checkpoint=None if last is None else str(last))
            except RuntimeError as error:
                if "No executable batch size" not in str(error):
                    raise
                raise UserError(
                    f"{self.label}: not even a batch of one row fits into memory; cut documents earlier "
                    "(--set max_document_tokens=N)"
                ) from error
            except UserError:
                if _clock_of(trainer).has_diverged:
                    self._forget()
                raise
        clock = _clock_of(trainer)
        pairs = round(trainer.state.epoch * len(trainer.train_dataset)) * documents
        return {**_figures(trainer, clock.spent, pairs), "resumed": resumed}

    def _forget(self) -> None:
        """Remove what an unfinished training left, which nothing can go on from: another rate begins anew."""
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
        return Trained(self.folder, record, resumed)


def _clock_of(trainer: Any) -> Any:
    """Return the trainer's clock; a checkpoint brings another than the one that was added."""
    from ranktilt.training.callbacks import Clock

    return next(
        callback for callback in trainer.callback_handler.callbacks if isinstance(callback, Clock)
    )


def trainer_of(base: Any, model: Any, arguments: Any, rows: EpochRows, **more: Any) -> Any:
    """Return a trainer of sentence-transformers that learns from some rows, by their own batches.

    Version 6.2 makes batches of ``args.train_batch_size``, which ``auto_find_batch_size`` does not
    change.
    """

    class Trainer(base):  # type: ignore[misc]  # an optional package: no types
        def get_train_dataloader(self) -> Any:
            self.args.per_device_train_batch_size = self._train_batch_size
            return super().get_train_dataloader()

        def get_batch_sampler(self, dataset: Any, batch_size: int, **_: Any) -> BatchSampler:
            return BatchSampler(rows, dataset, batch_size)

        def add_model_card_callback(self, *_: Any) -> None:
            """Leave out statistics of texts, which are drawn anew in each epoch."""

    return Trainer(model, arguments, rows.dataset(), **more)


def last_checkpoint(folder: Path) -> Path | None:
    """Return the last checkpoint that was written to its end: the trainer writes its state last of all.

    Those that a kill has cut short go: the trainer keeps the one of the highest step.
    """
    steps = {one: _steps(one) for one in (folder / CHECKPOINTS).glob("checkpoint-*")}
    for place in (one for one, number in steps.items() if not number):
        shutil.rmtree(place, ignore_errors=True)
    return max((one for one in steps if steps[one]), key=steps.__getitem__, default=None)


def _steps(folder: Path) -> int:
    """Steps of a checkpoint; 0 for one that a kill has cut short."""
    try:
        return int(json.loads((folder / _STATE).read_text(encoding="utf-8"))["global_step"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return 0


def _figures(trainer: Any, seconds: float, pairs: int) -> dict[str, Any]:
    """What the record says of how it went: steps, pairs, time, evaluations, and the loss as it fell."""
    state, history = trainer.state, trainer.state.log_history
    losses = np.array([one["loss"] for one in history if "loss" in one])
    evaluations = [
        {"step": one["step"]}
        | {name.removeprefix("eval_"): value for name, value in one.items() if "eval_" in name}
        for one in history
        if any(name.startswith("eval_") for name in one)
    ]
    best = [
        n for n, one in enumerate(evaluations, start=1) if one["step"] == state.best_global_step
    ]
    return {
        "threads": need("torch", extra="neural", for_="training").get_num_threads(),
        "steps": state.global_step,
        "epochs": round(state.epoch, 3),
        "batch": trainer.args.per_device_train_batch_size,
        "pairs": pairs,
        "seconds": round(seconds, 1),
        "pairs_per_second": round(pairs / seconds, 1),
        "loss": [
            round(float(part.mean()), 4)
            for part in np.array_split(losses, min(_LOSS_POINTS, len(losses)))
        ],
        **({"evaluations": evaluations} if evaluations else {}),
        **({"kept_evaluation": best[0]} if best else {}),
    }


def digest(*parts: Iterable[str] | np.ndarray) -> str:
    """Hash of all that is learned from: texts and numbers."""
    whole = hashlib.blake2b(digest_size=16)
    for part in parts:
        lines = (
            [part.astype("<i8").tobytes()]
            if isinstance(part, np.ndarray)
            else [text.encode() for text in part]
        )
        for data in lines:
            whole.update(len(data).to_bytes(8, "little") + data)
    return whole.hexdigest()


def _origin(collection: Collection) -> dict[str, Any]:
    """Where what is learned from came from: folder, split, and hashes of its files."""
    files = [Path(str(file)) for file in collection.spec.get("files", ())]
    hashes = {str(file): sha256(file) for file in files if file.is_file()}
    return {
        "path": collection.spec.get("path"),
        "split": collection.spec.get("split"),
        "files": hashes,
    }


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
