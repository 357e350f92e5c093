"""The directory of a training: its plan, how far it came, and the model once it is done."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranktilt.errors import DataError, UserError, shorten
from ranktilt.io.files import cannot_write, require_place, write_files
from ranktilt.optional import need
from ranktilt.training.model import FOR

RECORD = "training.json"
"""In a model's folder: how it was trained."""
CHECKPOINT = ".training/checkpoint.pt"
"""The last checkpoint of an unfinished training, below its folder."""


@dataclass(frozen=True)
class TrainingDirectory:
    """A folder that a model is trained into; it need not exist.

    While it is trained, ``.training/`` holds the plan and the last checkpoint, each replaced as a whole, so that a kill
    at any moment leaves the one before. The model's files come at the end, ``training.json`` last of all.
    """

    folder: Path

    @property
    def work(self) -> Path:
        """What only an unfinished training needs."""
        return self.folder / ".training"

    @property
    def _plan(self) -> Path:
        return self.work / "plan.json"

    @property
    def _checkpoint(self) -> Path:
        return self.folder / CHECKPOINT

    @property
    def record(self) -> dict[str, Any] | None:
        """What ``training.json`` says; None while there is none."""
        file = self.folder / RECORD
        return _read(file) if file.is_file() else None

    @property
    def steps(self) -> int | None:
        """Steps of the unfinished training in the folder; None where there is none."""
        return int(_read(self._plan)["steps"]) if self._plan.is_file() else None

    def require_same(self, spec: Mapping[str, Any]) -> None:
        """Refuse a folder that cannot be written, that holds something else, or a training with another spec.

        What `spec` does not name is not compared.
        """
        try:
            if self.folder.exists() and not self.folder.is_dir():
                raise UserError(f"{self.folder}: expected a folder to write to, this is a file")
            require_place(self.folder / RECORD)
        except OSError as error:  # a folder on the way may not even be looked into
            raise cannot_write(self.folder, error) from error
        existing = self.record or (_read(self._plan) if self._plan.is_file() else None)
        if existing is None:
            if self.folder.is_dir() and any(path != self.work for path in self.folder.iterdir()):
                raise UserError(f"{self.folder}: holds files of something else; name a new folder")
            return
        previous = existing["spec"]
        wanted = json.loads(json.dumps(spec))
        other = [name for name in wanted if name not in previous or previous[name] != wanted[name]]
        if other:
            name = other[0]
            more = f" (and {', '.join(other[1:])})" if len(other) > 1 else ""
            what = "a model trained" if self.record else "an unfinished training"
            raise UserError(
                f"{self.folder}: holds {what} with {name} {shorten(previous.get(name))}, asked is "
                f"{shorten(wanted[name])}{more}; name another folder, or remove this one"
            )

    def begin(self, spec: Mapping[str, Any], steps: int) -> None:
        """Write the plan: the spec and how many steps it takes."""
        write_files({self._plan: _json({"spec": dict(spec), "steps": steps})})

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Write a checkpoint in place of the last one."""
        buffer = io.BytesIO()
        need("torch", extra="neural", for_=FOR).save(dict(state), buffer)
        write_files({self._checkpoint: buffer.getvalue()})

    def load_checkpoint(self, device: str) -> dict[str, Any] | None:
        """Return the last checkpoint, its tensors on a device; None where there is none."""
        for stale in self.work.glob(".*.tmp"):  # of a write that was killed
            stale.unlink(missing_ok=True)
        if not self._checkpoint.is_file():
            return None
        torch = need("torch", extra="neural", for_=FOR)
        try:
            state: dict[str, Any] = torch.load(self._checkpoint, map_location=device, weights_only=True)
        except Exception as error:  # pickle, zip and torch each complain in their own way
            raise DataError(self._checkpoint, "cannot be read; remove its folder to start anew") from error
        return state

    def model_folder(self) -> Path:
        """Make an empty folder for the model's files."""
        folder = self.work / "model"
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        except OSError as error:
            raise cannot_write(folder, error) from error
        return folder

    def finish(self, record: Mapping[str, Any]) -> None:
        """Move the model's files to their place, write the record, and clear away the rest."""
        try:
            made = self.work / "model"
            for file in filter(Path.is_file, made.rglob("*")):
                shutil.copymode(self._plan, file)  # safetensors makes weights that nobody else may read
            for path in sorted(made.iterdir()):
                if (self.folder / path.name).is_dir():  # of an end that was killed
                    shutil.rmtree(self.folder / path.name)
                os.replace(path, self.folder / path.name)
        except OSError as error:
            raise cannot_write(self.folder, error) from error
        write_files({self.folder / RECORD: _json(record)})
        self.clear()

    def clear(self) -> None:
        """Remove what only an unfinished training needs."""
        shutil.rmtree(self.work, ignore_errors=True)


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(file, f"expected the record of a training as JSON: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("spec"), dict):
        raise DataError(file, "expected the record of a training, with its spec")
    return content
