"""One retriever a strength of the debiased constraint, or a kind of negatives, and the bench of what each costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.explaining.equivalence import reference_alone
from ranktilt.measures.margin import LEVEL
from ranktilt.mitigation.bench import Trial, bench
from ranktilt.mitigation.bench_result import BUDGET, Bench, Intervention, check_limits
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.training.options import Negatives, RetrieverTraining, Trained
from ranktilt.training.retriever import train_retriever

PAPER = "paper"
PAPER_ALPHAS = (1e-4, 5e-4, 1e-3, 5e-3, 1e-2)
PAPER_SCORE = 700.0
"""Score of a relevant document by ANCE, whose last layer norm gives vectors of a squared length near 700."""
_DEPTH = 100


def sweep_alphas(texts: Sequence[str], scale: float | None) -> list[float]:
    """Return the strengths of a sweep in rising order: numbers, and ``paper`` for the paper's on the model's own scale.

    The paper's are 1e-4 to 1e-2 on ANCE's scale; `scale` is the mean absolute score of relevant
    documents.
    """
    found = list[float]()
    for text in texts:
        if text == PAPER:
            found += [
                float(f"{alpha * PAPER_SCORE / (scale or PAPER_SCORE):.3g}")
                for alpha in PAPER_ALPHAS
            ]
            continue
        try:
            found.append(float(text))
        except ValueError:
            raise UserError(
                f"--debias: expected a number of at least 0, or paper, got {text!r}"
            ) from None
    for alpha in found:
        replace(RetrieverTraining(), alpha=alpha)  # refuses what is no weight
    return sorted(set(found))


def retriever_sweep(
    train: Collection,
    test: Collection,
    model: str | Path,
    folder: str | Path,
    *,
    alphas: Iterable[float] = (),
    negatives: Sequence[Negatives] = (),
    options: RetrieverTraining | None = None,
    dev: Collection | None = None,
    **how: Any,
) -> tuple[Bench, list[Trained]]:
    """Train one retriever for each α, and for each other kind of negatives; the baseline is α = 0 with the first kind.

    All α share rows and mined negatives. Every source of `test` that is not the reference is
    compared with it, also one that was not trained on. A folder for each model goes into `folder`;
    those that are there already are not trained again. `how` are options of `bench`.
    """
    options, folder = options or RetrieverTraining(), Path(folder)
    strengths = sorted({0.0, *map(float, alphas)})
    trainings, alike = dict[Intervention, RetrieverTraining](), len(strengths) == 1
    for alpha in strengths:
        name = f"{options.negatives} negatives" if alike else f"α = {alpha:g}"
        model_folder = str(folder / f"alpha-{alpha:g}")
        intervention = Intervention(name, "debias" if alpha else "", alpha, model_folder, "α")
        trainings[intervention] = replace(options, alpha=alpha)
    for kind in dict.fromkeys(negatives):
        if kind != options.negatives:
            name, model_folder = f"{kind} negatives", str(folder / f"negatives-{kind}")
            trainings[Intervention(name, name, 1.0, model_folder)] = replace(
                options, alpha=0.0, negatives=kind
            )
    if len(trainings) < 2:
        raise UserError("a sweep needs an alpha above 0, or other negatives, beside the baseline")
    check_limits(how.get("level", LEVEL), how.get("budget", BUDGET))
    if not (options.sources or train.sources):
        raise UserError(
            "a sweep compares sources, and no document of the training collection has one"
        )
    reference = (options.sources or train.sources)[0]
    alone = reference_alone(test, reference)
    if len(test.sources) < 2:
        raise UserError(
            f"a sweep compares sources, and the test collection has {reference!r} alone; mix it first"
        )
    trained, trials = list[Trained](), list[Trial]()
    for intervention, training in trainings.items():
        trained.append(
            train_retriever(train, model, intervention.ranker, options=training, dev=dev)
        )
        ranker = Dense(intervention.ranker, k=_DEPTH, device=options.device, text=options.text)
        made = replace(intervention, ranker=repr(ranker))
        trials.append(Trial(made, ranker.rank(test), ranker.rank(alone)))
    return bench(test, trials, reference=reference, **how), trained
