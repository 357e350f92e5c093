"""The training loop: a step is a function of seed and number, and a kill loses what came since the last checkpoint."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ranktilt.errors import DataWarning, UserError
from ranktilt.models.checkpoint import first_line
from ranktilt.optional import need
from ranktilt.progress import report
from ranktilt.training.directory import TrainingDirectory
from ranktilt.training.options import Schedule, learning_rate

CHECKPOINT_EVERY = 60.0
"""Seconds between checkpoints."""
_MAX_GRADIENT = 1.0
_TIMED_STEPS, _TIME_SHARE, _LOSS_POINTS = 8, 0.95, 20
B = TypeVar("B")


class EpochBatches(Protocol[B]):
    """Batches without end: epoch after epoch, each drawn anew from a seed."""

    @property
    def per_epoch(self) -> int:
        """Batches in an epoch."""

    def epoch(self, number: int) -> list[B]:
        """Return all batches of an epoch."""

    def size(self, batch: B) -> int:
        """What a batch costs, such as its tokens."""

    def halves(self, batch: B) -> Sequence[B]:
        """Split a batch in two; itself alone where it cannot be."""


def starting(batches: EpochBatches[B], step: int) -> Iterator[B]:
    """Yield the batches from a step on, without end."""
    epoch, first = divmod(step, batches.per_epoch)
    while True:
        yield from batches.epoch(epoch)[first:]
        epoch, first = epoch + 1, 0


@dataclass
class TrainingLoop(Generic[B]):
    """A training under way: AdamW on what of a model may change, from checkpoint to checkpoint."""

    model: Any
    batches: EpochBatches[B]
    loss: Callable[[B], Any]
    """A batch's loss as a tensor."""
    count: Callable[[B], int]
    """How many pairs a batch holds."""
    rate: float
    label: str
    evaluate: Callable[[int], tuple[float, Mapping[str, float]]] | None = None
    """Judges the model after an epoch: a number that is better the higher it is, and all that is recorded."""
    patience: int | None = None
    """Epochs without a better number after which it ends; the best epoch's weights are kept then."""
    warmup: int | None = None
    """Steps over which the rate rises; a tenth of all by default."""
    weight_decay: float = 0.01
    dropout_seed: int | None = None
    """Of what is dropped in each step, where anything is."""
    optimizer: Any = None
    losses: list[float] = field(default_factory=list)
    pairs: int = 0
    seconds: float = 0.0
    evaluations: list[dict[str, float]] = field(default_factory=list)
    halved: bool = False
    """Whether a batch did not fit into memory, so that all are learned from by halves."""
    best: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.optimizer = self._new_optimizer()

    def _new_optimizer(self) -> Any:
        torch = need("torch", extra="neural", for_=self.label)
        weights = [weight for weight in self.model.parameters() if weight.requires_grad]
        parts = [
            {"params": [w for w in weights if w.ndim > 1], "weight_decay": self.weight_decay},
            {"params": [w for w in weights if w.ndim <= 1], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(parts, lr=self.rate, fused=self.model.device.type in ("cpu", "cuda"))

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
            report(f"{self.label}: timing a few steps", number, _TIMED_STEPS)
        pace = (time.monotonic() - start) / _TIMED_STEPS
        self.optimizer = self._new_optimizer()
        spent = time.monotonic() - began
        left = 60 * minutes * _TIME_SHARE - spent
        if left < pace:
            raise UserError(
                f"{self.label}: reading and timing took {spent:.1f} s, and a step takes {pace:.1f} s: {minutes:g} "
                "minutes leave no time for one"
            )
        return int(left / pace)

    def complete(self, directory: TrainingDirectory, spec: Mapping[str, Any], asked: Schedule, began: float) -> int:
        """Make all steps, as many as an unfinished training began with; returns the number of the first one made."""
        torch = need("torch", extra="neural", for_=self.label)
        with torch.random.fork_rng(enabled=self.dropout_seed is not None):
            steps = directory.steps or asked.steps or self.steps_in(asked.minutes, began)
            directory.begin(spec, steps)
            if self.warmup is not None and self.warmup >= steps:
                note = f"{self.warmup:,} steps of warm-up, {steps:,} in all (--warmup-steps)"
                warnings.warn(
                    f"{self.label}: the learning rate is still rising when it ends: {note}", DataWarning, stacklevel=2
                )
            return self.run(directory, steps)

    def run(self, directory: TrainingDirectory, steps: int) -> int:
        """Make the steps that are left; returns the number of the first of them."""
        first = self._restore(directory)
        label = f"{self.label} {directory.folder.name}"
        started = saved = time.monotonic()
        before = self.seconds
        report(label, 0, steps - first)
        for step, batch in zip(range(first, steps), starting(self.batches, first), strict=False):
            self._seed(step)
            self.losses.append(self.step(batch, learning_rate(step, steps, self.rate, self.warmup)))
            self.pairs += self.count(batch)
            if not np.isfinite(self.losses[-1]):
                raise UserError(
                    f"{self.label}: the loss is no number at step {step + 1}; choose a lower rate than {self.rate:g}"
                )
            self.seconds = before + time.monotonic() - started
            ended = self.evaluate is not None and ((step + 1) % self.batches.per_epoch == 0 or step + 1 == steps)
            over = ended and self._judged(step + 1)
            if ended or time.monotonic() - saved >= CHECKPOINT_EVERY:
                directory.save_checkpoint(self._state(step + 1))
                saved = time.monotonic()
            report(label, step + 1 - first, steps - first)
            if over:
                break
        if self.best is not None:
            self.model.load_state_dict(self.best["model"], strict=False)
        return first

    def _judged(self, step: int) -> bool:
        """Evaluate the model after an epoch; returns whether patience is at its end."""
        if self.evaluate is None:
            return False
        score, found = self.evaluate(step)
        self.evaluations.append({"step": step, **found})
        if self.patience is None:
            return False
        if self.best is None or score > self.best["score"]:
            kept = {name: weight.detach().clone() for name, weight in self._changing().items()}
            self.best = {"score": score, "evaluation": len(self.evaluations), "model": kept}
        return len(self.evaluations) - int(self.best["evaluation"]) >= self.patience

    def _seed(self, step: int) -> None:
        """Make what is dropped a function of seed and step, so that any step can be made again."""
        if self.dropout_seed is not None:
            torch = need("torch", extra="neural", for_=self.label)
            torch.manual_seed(int(np.random.SeedSequence([self.dropout_seed, step]).generate_state(1)[0]))

    def step(self, batch: B, rate: float) -> float:
        """Learn from one batch; returns its loss."""
        torch = need("torch", extra="neural", for_=self.label)
        loss = self._learned(batch)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), _MAX_GRADIENT)
        for part in self.optimizer.param_groups:
            part["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss

    def _learned(self, batch: B) -> float:
        """Add up a batch's gradients, by halves where the whole does not fit into memory; returns its loss."""
        if not self.halved:
            try:
                return self._backward(batch, 1.0)
            except (MemoryError, RuntimeError) as error:
                if not _out_of_memory(error):
                    raise
            self.halved = True
            self.optimizer.zero_grad()
            note = "a batch does not fit into memory: from here on all are learned from by halves"
            warnings.warn(f"{self.label}: {note}", stacklevel=2)
        halves = self.batches.halves(batch)
        try:
            return sum(self._backward(half, self.count(half) / self.count(batch)) for half in halves)
        except (MemoryError, RuntimeError) as error:
            if not _out_of_memory(error):
                raise
            raise UserError(
                f"{self.label}: not even half a batch fits into memory; choose a smaller one (--batch), or cut "
                "documents earlier (--max-document-tokens)"
            ) from error

    def _backward(self, batch: B, share: float) -> float:
        loss = self.loss(batch) * share
        loss.backward()
        return float(loss.detach())

    def _changing(self) -> dict[str, Any]:
        """The weights that training changes."""
        changing = {name for name, weight in self.model.named_parameters() if weight.requires_grad}
        return {name: weight for name, weight in self.model.state_dict().items() if name in changing}

    def _state(self, step: int) -> dict[str, Any]:
        """All that the next step depends on; weights that do not change are no part of it."""
        return {
            "step": step,
            "model": self._changing(),
            "optimizer": self.optimizer.state_dict(),
            "losses": self.losses,
            "pairs": self.pairs,
            "seconds": self.seconds,
            "evaluations": self.evaluations,
            "halved": self.halved,
            "best": self.best,
        }

    def _restore(self, directory: TrainingDirectory) -> int:
        """Go back to the last checkpoint, if there is one; returns the next step."""
        state = directory.load_checkpoint(str(self.model.device))
        if state is None:
            return 0
        self.model.load_state_dict(state["model"], strict=False)
        self.optimizer.load_state_dict(state["optimizer"])
        self.losses, self.pairs, self.seconds = state["losses"], state["pairs"], state["seconds"]
        self.evaluations, self.halved, self.best = (state[name] for name in ("evaluations", "halved", "best"))
        return int(state["step"])

    def figures(self) -> dict[str, Any]:
        """Return what the record says of how it went: steps, pairs, time, and the loss as it fell."""
        steps = len(self.losses)
        evaluated = {"evaluations": self.evaluations} if self.evaluations else {}
        kept = {"kept_evaluation": self.best["evaluation"]} if self.best is not None else {}
        parts = np.array_split(np.array(self.losses), min(_LOSS_POINTS, steps))
        return {
            "steps": steps,
            "epochs": round(steps / self.batches.per_epoch, 3),
            "pairs": self.pairs,
            "seconds": round(self.seconds, 1),
            "pairs_per_second": round(self.pairs / self.seconds, 1) if self.seconds else None,
            "loss": [round(float(part.mean()), 4) for part in parts],
            **({"halved": True} if self.halved else {}),
            **evaluated,
            **kept,
        }


def _out_of_memory(error: BaseException) -> bool:
    """Whether memory is what failed: a GPU's has an error of its own, a processor's is a plain RuntimeError."""
    words = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in words or "can't allocate memory" in words


def device_of(name: str | None, label: str) -> str:
    """Return torch's name of the device to train on; refuses one that is not there."""
    torch = need("torch", extra="neural", for_=label)
    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:  # torch asserts that it was built for CUDA
        raise UserError(f"{label}: no device {name!r}: {first_line(error)}") from error
    return name
