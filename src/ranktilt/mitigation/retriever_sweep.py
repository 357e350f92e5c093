"""Train retrievers with several strengths of the debiased constraint, and compare them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ranktilt.auditing.prepare import DEFAULT_MEASURES
from ranktilt.data.collection import Collection
from ranktilt.data.run import Run
from ranktilt.errors import UserError
from ranktilt.explaining.equivalence import reference_alone
from ranktilt.measures.base import Estimand
from ranktilt.measures.margin import DEFAULT_MARGIN
from ranktilt.mitigation.bench import bench
from ranktilt.mitigation.bench_result import BUDGET, Bench, Candidate, check_limits
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.statistics.bootstrap import RESAMPLES
from ranktilt.training.options import Negatives, RetrieverTraining, Trained
from ranktilt.training.retriever import train_retriever

PAPER = "paper"
"""Word that stands for the strengths of the paper."""
PAPER_ALPHAS = (1e-4, 5e-4, 1e-3, 5e-3, 1e-2)
"""Strengths of Dai et al., for scores of the size of `PAPER_SCORE`."""
PAPER_SCORE = 700.0
"""Score that ANCE gives a relevant document.

Its last layer norm gives vectors of a squared length near 700.
"""
_DEPTH = 100
"""Ranks of the runs of a sweep."""


def sweep_alphas(texts: Sequence[str], scale: float | None) -> list[float]:
    """Return the strengths of a sweep in rising order.

    Texts are numbers, and ``paper`` for the paper's strengths on the model's scale. The paper's are
    1e-4 to 1e-2 on ANCE's scale; `scale` is the mean absolute score of relevant documents.
    """
    alphas = list[float]()
    factor = PAPER_SCORE / (scale or PAPER_SCORE)
    for text in texts:
        if text == PAPER:
            alphas += [float(f"{alpha * factor:.3g}") for alpha in PAPER_ALPHAS]
            continue
        try:
            alphas.append(float(text))
        except ValueError:
            raise UserError(
                f"--debias: expected a number of at least 0, or paper, got {text!r}"
            ) from None
    for alpha in alphas:
        replace(RetrieverTraining(), alpha=alpha)  # refuses a number that is no weight
    return sorted(set(alphas))


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """What is trained, and how the retrievers are compared."""

    alphas: Sequence[float] = ()
    """Strengths of the debiased constraint."""
    negatives: Sequence[Negatives] = ()
    """Kinds of negatives."""
    training: RetrieverTraining = field(default_factory=RetrieverTraining)
    """Training of the baseline; the others differ from it in strength or negatives alone."""
    measures: Sequence[str | Estimand] = DEFAULT_MEASURES
    """Measures of the bench."""
    margin: float = DEFAULT_MARGIN
    """Largest tilt that is level, in points."""
    budget: float = BUDGET
    """Largest loss of effectiveness, in points."""
    resamples: int = RESAMPLES
    """Resamples of the bench's intervals."""


def retriever_sweep(
    train: Collection,
    test: Collection,
    model: str | Path,
    folder: str | Path,
    *,
    options: SweepOptions,
    dev: Collection | None = None,
) -> tuple[Bench, list[Trained]]:
    """Train one retriever for each α, and for each other kind of negatives, and compare them.

    The baseline is α = 0 with the first kind. All α share rows and mined negatives. Every source of
    `test` that is not the reference is compared with it, also one that was not trained on. A folder
    for each model goes into `folder`; those that are there already are not trained again.
    """
    trainings = _trainings(options, Path(folder))
    if len(trainings) < 2:
        raise UserError("besides the baseline, a sweep needs an alpha above 0, or other negatives")
    check_limits(options.margin, options.budget)
    sources = options.training.sources or train.sources
    if not sources:
        raise UserError(
            "a sweep compares sources, and no document of the training collection has one"
        )
    reference = sources[0]
    alone = reference_alone(test, reference)
    if len(test.sources) < 2:
        raise UserError(
            f"a sweep compares sources, and the test collection has {reference!r} alone; mix it "
            "first"
        )
    trained, runs, reference_runs = list[Trained](), dict[Candidate, Run](), dict[Candidate, Run]()
    for planned, training in trainings.items():
        trained.append(train_retriever(train, model, planned.ranker, options=training, dev=dev))
        ranker = Dense(planned.ranker, k=_DEPTH, device=training.device, text=training.text)
        candidate = replace(planned, ranker=repr(ranker))
        runs[candidate] = ranker.rank(test)
        reference_runs[candidate] = ranker.rank(alone)
    compared = bench(
        test,
        runs,
        options.measures,
        reference_runs=reference_runs,
        reference=reference,
        margin=options.margin,
        budget=options.budget,
        resamples=options.resamples,
    )
    return compared, trained


def _trainings(options: SweepOptions, folder: Path) -> dict[Candidate, RetrieverTraining]:
    """Return the training of each candidate, whose ranker is the folder of its model."""
    baseline = options.training
    strengths = sorted({0.0, *map(float, options.alphas)})
    trainings = dict[Candidate, RetrieverTraining]()
    for alpha in strengths:
        is_alone = len(strengths) == 1
        candidate = Candidate(
            name=f"{baseline.negatives} negatives" if is_alone else f"α = {alpha:g}",
            method="debias" if alpha else "",
            strength=alpha,
            ranker=str(folder / f"alpha-{alpha:g}"),
            dial="α",
        )
        trainings[candidate] = replace(baseline, alpha=alpha)
    for kind in dict.fromkeys(options.negatives):
        if kind != baseline.negatives:
            name = f"{kind} negatives"
            candidate = Candidate(
                name=name, method=name, strength=1.0, ranker=str(folder / f"negatives-{kind}")
            )
            trainings[candidate] = replace(baseline, alpha=0.0, negatives=kind)
    return trainings
