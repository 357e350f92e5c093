"""Train a cross-encoder on a collection's own judgments.

The loop is our own, where sentence-transformers has a trainer, for three reasons. That one writes a checkpoint file by
file into the folder it would later resume from, so a kill in between leaves one that cannot be loaded. It must be told
the number of steps, not the time there is. And it needs two more packages. Here a step is a function of seed and step
number, a checkpoint is one file that is replaced as a whole, and torch and transformers are enough.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ranktilt._version import __version__
from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.io.files import sha256
from ranktilt.models.checkpoint import fingerprint, first_line
from ranktilt.models.device import choose_precision
from ranktilt.optional import need
from ranktilt.progress import report
from ranktilt.training.batches import Batch, Batches
from ranktilt.training.directory import TrainingDirectory
from ranktilt.training.model import FOR, TrainableModel, find_base_model
from ranktilt.training.options import Trained, Training, learning_rate
from ranktilt.training.training_set import TrainingSet, training_set

CHECKPOINT_EVERY = 60.0
"""Seconds between checkpoints."""

_PACKAGES = ("torch", "transformers", "tokenizers")
_WEIGHT_DECAY, _MAX_GRADIENT = 0.01, 1.0
_TIMED_STEPS, _TIME_SHARE, _LOSS_POINTS = 8, 0.95, 20


def train_cross_encoder(
    collection: Collection, model: str | Path, folder: str | Path, *, options: Training | None = None
) -> Trained:
    """Fine-tune an encoder into a cross-encoder that re-ranks BM25's documents, on a collection's judgments.

    Each group of one relevant document and its negatives is a choice among them: the loss is the cross-entropy of the
    softmax over their scores. AdamW; no dropout. A training that was interrupted, however, goes on from its last
    checkpoint, and ends with the weights it would have had.

    Parameters
    ----------
    collection : Collection
        Loaded with the judgments to learn from: ``load(DIR, split="train")``.
    model : str or Path
        The encoder: a folder, ``minilm``, or a hub name.
    folder : str or Path
        Where the model goes: new, or with an unfinished training of the same options, which is continued.
    options : Training, optional
        How.

    Returns
    -------
    Trained
        `folder` holds weights, configuration, tokenizer and ``training.json``.

    Raises
    ------
    UserError
        Before any work: where there is nothing to learn from, the encoder cannot be used, or the folder holds something
        else. Later: if the loss stops being a number, or the disk is full.

    Examples
    --------
    >>> import ranktilt as rt
    >>> from ranktilt.training.cross_encoder import train_cross_encoder
    >>> from ranktilt.training.options import Training
    >>> train = rt.load("DIR", split="train")  # doctest: +SKIP
    >>> train_cross_encoder(train, "minilm", "model", options=Training(minutes=20))  # doctest: +SKIP
    """
    began, options = time.monotonic(), options or Training()
    torch = need("torch", extra="neural", for_=FOR)
    need("transformers", extra="neural", for_=FOR)
    directory = TrainingDirectory(Path(folder))
    device = _device(torch, options.device)
    precision = choose_precision(options.precision, for_=FOR, device=device)
    packages = {name: version(name) for name in _PACKAGES}
    hardware = {"body": fingerprint(find_base_model(str(model))), "device": device.partition(":")[0]}
    spec = {"kind": "cross-encoder", **options.spec(), **hardware, "precision": precision, "packages": packages}
    directory.require_same(spec)
    found = training_set(collection, sources=options.sources, depth=options.depth, text=options.text)
    spec["data"] = _digest(found)
    directory.require_same(spec)
    if directory.record is not None:
        directory.clear()
        return Trained(directory.folder, directory.record, directory.record["figures"]["steps"])
    with torch.random.fork_rng(devices=[]):
        trainer = _Trainer.of(found, TrainableModel.load(str(model), device, options.seed), options, precision)
    steps = directory.steps or options.steps or trainer.steps_in(options.minutes, began)
    directory.begin(spec, steps)
    resumed = trainer.run(directory, steps)
    record = {
        "spec": spec,
        "ranktilt": __version__,
        "from": str(model),
        "collection": _origin(collection),
        "figures": {"threads": torch.get_num_threads(), **trainer.figures(steps), "skipped_queries": found.skipped},
    }
    trainer.model.save(directory.model_folder(), trainer.limit)
    directory.finish(record)
    return Trained(directory.folder, record, resumed)


@dataclass
class _Trainer:
    """A training under way."""

    model: TrainableModel
    queries: list[str]
    documents: list[str]
    batches: Batches
    limit: int
    rate: float
    low: bool
    optimizer: Any = None
    losses: list[float] = field(default_factory=list)
    pairs: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, found: TrainingSet, model: TrainableModel, options: Training, precision: str) -> _Trainer:
        limit = model.limit(options.max_query_tokens, options.max_document_tokens)
        label = f"{FOR}: reading"
        queries, query_tokens = model.cut(
            [q.query for q in found.queries], options.max_query_tokens, f"{label} queries"
        )
        documents, document_tokens = model.cut(found.documents, options.max_document_tokens, f"{label} documents")
        drawn = (options.positives, options.negatives, options.groups, options.seed)
        batches = Batches(found, query_tokens, document_tokens, *drawn)
        trainer = cls(model, queries, documents, batches, limit, options.rate, precision == "bfloat16")
        trainer.optimizer = trainer.new_optimizer()
        return trainer

    def new_optimizer(self) -> Any:
        torch = need("torch", extra="neural", for_=FOR)
        weights = list(self.model.model.parameters())
        parts = [
            {"params": [w for w in weights if w.ndim > 1], "weight_decay": _WEIGHT_DECAY},
            {"params": [w for w in weights if w.ndim <= 1], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(parts, lr=self.rate, fused=self.model.model.device.type in ("cpu", "cuda"))

    def steps_in(self, minutes: float | None, began: float) -> int:
        """Number of steps: one epoch, or as many as fit into the time, by the pace of batches of all sizes."""
        if minutes is None:
            return self.batches.per_epoch
        epoch = sorted(self.batches.epoch(0), key=self.batches.size)
        places = (2 * np.arange(_TIMED_STEPS) + 1) * len(epoch) // (2 * _TIMED_STEPS)
        self.step(epoch[places[_TIMED_STEPS // 2]], 0.0)  # a rate of 0 leaves all weights as they are
        start = time.monotonic()
        for number, position in enumerate(places, start=1):
            self.step(epoch[position], 0.0)
            report(f"{FOR}: timing a few steps", number, _TIMED_STEPS)
        pace = (time.monotonic() - start) / _TIMED_STEPS
        self.optimizer = self.new_optimizer()
        spent = time.monotonic() - began
        left = 60 * minutes * _TIME_SHARE - spent
        if left < pace:
            raise UserError(
                f"{FOR}: reading and timing took {spent:.1f} s, and a step takes {pace:.1f} s: {minutes:g} minutes "
                "leave no time for one"
            )
        return int(left / pace)

    def run(self, directory: TrainingDirectory, steps: int) -> int:
        """Make the steps that are left; returns the number of the first of them."""
        first = self.restore(directory)
        label = f"{FOR} {directory.folder.name}"
        started = saved = time.monotonic()
        before = self.seconds
        report(label, 0, steps - first)
        for step, batch in zip(range(first, steps), self.batches.starting(first), strict=False):
            self.losses.append(self.step(batch, learning_rate(step, steps, self.rate)))
            self.pairs += batch.documents.size
            if not np.isfinite(self.losses[-1]):
                raise UserError(
                    f"{FOR}: the loss is no number at step {step + 1}; choose a lower rate than {self.rate:g}"
                )
            now = time.monotonic()
            self.seconds = before + now - started
            if now - saved >= CHECKPOINT_EVERY:
                directory.save_checkpoint(self.state(step + 1))
                saved = time.monotonic()
            report(label, step + 1 - first, steps - first)
        return first

    def step(self, batch: Batch, rate: float) -> float:
        """Learn from one batch; returns its loss."""
        torch = need("torch", extra="neural", for_=FOR)
        groups, size = batch.documents.shape
        queries = [self.queries[q] for q in batch.queries for _ in range(size)]
        documents = [self.documents[d] for d in batch.documents.ravel()]
        features = self.model.features(queries, documents, self.limit)
        with torch.autocast(self.model.model.device.type, dtype=torch.bfloat16, enabled=self.low):
            scores = self.model.model(**features).logits
        first = torch.zeros(groups, dtype=torch.long, device=scores.device)
        loss = torch.nn.functional.cross_entropy(scores.float().view(groups, size), first)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.model.parameters(), _MAX_GRADIENT)
        for part in self.optimizer.param_groups:
            part["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(loss.detach())

    def state(self, step: int) -> dict[str, Any]:
        """Return all that the next step depends on."""
        return {
            "step": step,
            "model": self.model.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "losses": self.losses,
            "pairs": self.pairs,
            "seconds": self.seconds,
        }

    def restore(self, directory: TrainingDirectory) -> int:
        """Go back to the last checkpoint, if there is one; returns the next step."""
        state = directory.load_checkpoint(str(self.model.model.device))
        if state is None:
            return 0
        self.model.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.losses, self.pairs, self.seconds = state["losses"], state["pairs"], state["seconds"]
        return int(state["step"])

    def figures(self, steps: int) -> dict[str, Any]:
        """Return what the record says of how it went."""
        found = self.batches.training_set
        parts = np.array_split(np.array(self.losses), min(_LOSS_POINTS, steps))
        return {
            "steps": steps,
            "epochs": round(steps / self.batches.per_epoch, 3),
            "queries": len(found.queries),
            "positives": sum(len(q.positives) for q in found.queries),
            "pairs": self.pairs,
            "seconds": round(self.seconds, 1),
            "pairs_per_second": round(self.pairs / self.seconds, 1) if self.seconds else None,
            "loss": [round(float(part.mean()), 4) for part in parts],
        }


def _device(torch: Any, name: str | None) -> str:
    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:  # torch asserts that it was built for CUDA
        raise UserError(f"{FOR}: no device {name!r}: {first_line(error)}") from error
    return name


def _digest(found: TrainingSet) -> str:
    """Hash of all that is learned from."""
    whole = hashlib.blake2b(digest_size=16)
    for text in (*(q.query for q in found.queries), *found.documents):
        data = text.encode()
        whole.update(len(data).to_bytes(8, "little") + data)
    for query in found.queries:
        for rows in (query.positives, query.negatives):
            whole.update(len(rows).to_bytes(8, "little") + rows.astype("<i8").tobytes())
    return whole.hexdigest()


def _origin(collection: Collection) -> Mapping[str, Any]:
    files = [Path(str(file)) for file in collection.spec.get("files", ())]
    hashes = {str(file): sha256(file) for file in files if file.is_file()}
    return {"path": collection.spec.get("path"), "split": collection.spec.get("split"), "files": hashes}
