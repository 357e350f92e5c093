"""The α sweep: one retriever a strength of the debiased constraint, and the bench that tells what each costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.experiments.tradeoff import Trial, bench, reference_alone
from ranktilt.experiments.tradeoff_result import BUDGET, Bench, Intervention, check_limits
from ranktilt.measures.margin import LEVEL
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.training.options import RetrieverTraining, Trained
from ranktilt.training.retriever import train_retriever

PAPER = "paper"
PAPER_ALPHAS = (1e-4, 5e-4, 1e-3, 5e-3, 1e-2)
PAPER_SCORE = 700.0
"""Score of a relevant document by ANCE, whose last layer norm gives vectors of a squared length near 700."""
_DEPTH = 100


def sweep_alphas(asked: Sequence[str], scale: float | None) -> list[float]:
    """Return the strengths of a sweep in rising order: numbers, and ``paper`` for the paper's on the model's own scale.

    The paper's are 1e-4 to 1e-2 on ANCE's scale; `scale` is the mean absolute score of relevant documents.
    """
    found = list[float]()
    for text in asked:
        if text == PAPER:
            found += [float(f"{alpha * PAPER_SCORE / (scale or PAPER_SCORE):.3g}") for alpha in PAPER_ALPHAS]
            continue
        try:
            found.append(float(text))
        except ValueError:
            raise UserError(f"--debias: expected a number of at least 0, or paper, got {text!r}") from None
    for alpha in found:
        replace(RetrieverTraining(), alpha=alpha)  # refuses what is no weight
    return sorted(set(found))


def debias_sweep(
    train: Collection,
    test: Collection,
    model: str | Path,
    folder: str | Path,
    *,
    alphas: Iterable[float],
    options: RetrieverTraining | None = None,
    teacher: Ranker | None = None,
    dev: Collection | None = None,
    **how: Any,
) -> tuple[Bench, list[Trained]]:
    """Train one retriever for each α, all on the same rows and mined negatives, and hold them against α = 0.

    Every source of `test` that is not the reference is compared with it, also one that was not trained on. A folder for
    each model goes into `folder`; those that are there already are not trained again. `how` are options of `bench`.
    """
    options, folder = options or RetrieverTraining(), Path(folder)
    strengths = sorted({0.0, *map(float, alphas)})
    if len(strengths) < 2:
        raise UserError("a sweep needs an alpha above 0 beside the baseline")
    checked = [replace(options, alpha=alpha) for alpha in strengths]
    check_limits(how.get("level", LEVEL), how.get("budget", BUDGET))
    reference = (options.sources or train.sources)[0]
    alone = reference_alone(test, reference)
    if len(test.sources) < 2:
        raise UserError(f"a sweep compares sources, and the test collection has {reference!r} alone; mix it first")
    trained, trials = list[Trained](), list[Trial]()
    for alpha, asked in zip(strengths, checked, strict=True):
        place = folder / f"alpha-{alpha:g}"
        trained.append(train_retriever(train, model, place, options=asked, teacher=teacher, dev=dev))
        ranker = Dense(str(place), k=_DEPTH, device=options.device, text=options.text)
        one = Intervention(f"α = {alpha:g}", "debias" if alpha else "", alpha, repr(ranker), "α")
        trials.append(Trial(one, ranker.rank(test), ranker.rank(alone)))
    return bench(test, trials, reference=reference, **how), trained
