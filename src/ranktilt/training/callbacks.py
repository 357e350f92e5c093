"""The callback of a transformers trainer that saves, stops, and reports progress.

Only `ranktilt.training.trainer` imports this module, so that transformers is loaded when something
is trained.
"""

from __future__ import annotations

import math
import time
from typing import Any

from ranktilt.errors import UserError
from ranktilt.optional import need
from ranktilt.progress import report

CHECKPOINT_EVERY = 60.0
"""Minimum number of seconds between two checkpoints: what an interruption loses, about a minute."""
_WARM_UP_SHARE = 0.1
"""Share of the time in which the learning rate rises from 0 to its peak (warm-up).

In a training by steps, `TrainingRun.arguments` has the same share of the steps.
"""

callback: Any = need("transformers.trainer_callback", extra="train", for_="training")


# `ExportableState` makes the trainer save `state` in each checkpoint, and restore it from there.
# transformers is an optional package, hence no types.
class Clock(callback.TrainerCallback, callback.ExportableState):  # type: ignore[misc]
    """Reports progress, saves a checkpoint each minute, and ends a training after its minutes.

    The length of a training is a number of minutes, or else a number of steps. With minutes, the
    learning rate follows the clock, interruptions left out: it rises linearly over the first tenth
    of the time, and then falls linearly to 0.

    Parameters
    ----------
    label : str
        Name of the training in the progress line.
    minutes : float, optional
        Minutes after which the training ends; None if it ends after a number of steps.
    rate : float, optional
        Peak learning rate, for a training by minutes.
    spent : float, optional
        Seconds of the training before this call, or before the first step.
    """

    def __init__(
        self, label: str, minutes: float | None = None, rate: float = 0.0, spent: float = 0.0
    ) -> None:
        self.label, self.minutes, self.rate = label, minutes, rate
        self.spent = spent
        """Seconds of training so far, including those before an interruption."""
        self.started = self.saved = time.monotonic()
        self.has_diverged = False
        """Whether the loss became NaN or infinite."""

    def state(self) -> dict[str, Any]:
        """Return the state that a checkpoint keeps."""
        return {
            "args": {
                "label": self.label,
                "minutes": self.minutes,
                "rate": self.rate,
                "spent": self.spent,
            },
            "attributes": {},
        }

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start the clock, set back by the seconds that were spent before."""
        self.saved = time.monotonic()
        self.started = self.saved - self.spent
        self._report(state)

    def on_step_begin(
        self, args: Any, state: Any, control: Any, *, optimizer: Any, **_: Any
    ) -> None:
        """Set the learning rate by the clock."""
        if self.minutes is not None:
            share = min(self.spent / (60 * self.minutes), 1.0)
            # Two lines that meet at the peak; the lower one counts.
            rising, falling = share / _WARM_UP_SHARE, (1 - share) / (1 - _WARM_UP_SHARE)
            for group in optimizer.param_groups:
                group["lr"] = self.rate * min(rising, falling)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop when the time is over, save when a minute is over, and report progress."""
        now = time.monotonic()
        self.spent = now - self.started
        if self.minutes is not None and self.spent >= 60 * self.minutes:
            control.should_training_stop = True
        if now - self.saved >= CHECKPOINT_EVERY:
            control.should_save, self.saved = True, now
        self._report(state)

    def on_log(
        self, args: Any, state: Any, control: Any, *, logs: dict[str, Any], **_: Any
    ) -> None:
        """Stop with an error if the loss is NaN or infinite."""
        if not math.isfinite(logs.get("loss", 0.0)):
            self.has_diverged = True
            raise UserError(
                f"{self.label}: the loss is NaN or infinite at step {state.global_step}; "
                f"choose a lower rate than {args.learning_rate:g}"
            )

    def _report(self, state: Any) -> None:
        """Report progress in seconds if the training is by minutes, else in steps."""
        if self.minutes is None:
            report(self.label, state.global_step, state.max_steps)
        else:
            seconds = round(60 * self.minutes)
            report(self.label, min(round(self.spent), seconds), seconds)
