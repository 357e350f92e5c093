"""Train retrievers with several strengths of the debiased constraint, and compare them.

The debiased constraint (Dai et al., KDD 2024) adds a penalty to the training loss, for scoring a
generated text above its human *twin*, the other version of the same text. Its strength is α, 0 for
no constraint. Retrievers are compared by their *tilt*, how far they favour one source (author) over
another, and by their effectiveness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ranktilt.auditing.prepare import DEFAULT_MEASURES
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError
from ranktilt.explaining.equivalence import only_group
from ranktilt.measures.base import Estimand
from ranktilt.measures.margin import DEFAULT_MARGIN
from ranktilt.mitigation.bench import bench
from ranktilt.mitigation.bench_result import BUDGET, Bench, Candidate, check_limits
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.statistics.bootstrap import RESAMPLES
from ranktilt.training.options import Negatives, RetrieverTraining, TrainedModel
from ranktilt.training.retriever import train_retriever

PAPER = "paper"
"""Word for `PAPER_ALPHAS` on a command line."""
PAPER_ALPHAS = (1e-4, 5e-4, 1e-3, 5e-3, 1e-2)
"""Strengths of the debiased constraint in Dai et al., KDD 2024, Fig. 10 and 11.

They fit scores of the size of `PAPER_SCORE`.
"""
PAPER_SCORE = 700.0
"""Score that the paper's retriever, ANCE, gives a relevant document; for `sweep_alphas`.

A score is the product of two vectors, and ANCE's last layer norm makes their squared length about
700.
"""
_DEPTH = 100
"""Number of documents in each list of a sweep's runs."""


def sweep_alphas(texts: Sequence[str], scale: float | None) -> list[float]:
    """Return the strengths of a sweep in rising order.

    Parameters
    ----------
    texts : sequence of str
        Each is a number, or ``paper`` for `PAPER_ALPHAS`, which are converted to the model's scale.
        The penalty is in the unit of the scores, so a model with smaller scores needs a larger
        strength.
    scale : float or None
        Mean absolute score that the model gives relevant documents. With None, the paper's
        strengths are used unchanged.
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
        # Called for its check alone: an α below 0 or that is not finite raises a `UserError`.
        RetrieverTraining(alpha=alpha)
    return sorted(set(alphas))


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """Which retrievers are trained, and how they are compared."""

    alphas: Sequence[float] = ()
    """Strengths of the debiased constraint to train with, besides 0."""
    negatives: Sequence[Negatives] = ()
    """Kinds of negatives to train with, besides the baseline's.

    Negatives are documents that the retriever learns to rank below the relevant ones.
    """
    training: RetrieverTraining = field(default_factory=RetrieverTraining)
    """Training of the baseline; the others differ from it in strength or negatives alone."""
    measures: Sequence[str | Estimand] = DEFAULT_MEASURES
    """Measures by which all trained retrievers are compared with the baseline."""
    margin: float = DEFAULT_MARGIN
    """Largest tilt that counts as level, in points."""
    budget: float = BUDGET
    """Largest acceptable loss of effectiveness, in points."""
    ties: str = "expected"
    """How documents of equal score count: by their ``expected`` value, or as ``trec_eval`` does."""
    test: str = "interval"
    """Name of the test of a tilt."""
    correction: str = "holm"
    """How p-values are corrected for many tests."""
    resamples: int = RESAMPLES
    """Resamples of the bench's intervals."""
    seed: int = 0
    """Random seed of the bench; that of a training is its own."""


def retriever_sweep(
    train: Collection,
    test: Collection,
    model: str | Path,
    folder: str | Path,
    *,
    options: SweepOptions,
    dev: Collection | None = None,
) -> tuple[Bench, list[TrainedModel]]:
    """Train one retriever for each α, and for each other kind of negatives, and compare them.

    The baseline has α = 0 and the negatives of ``options.training``. All α share training rows and
    mined negatives. The reference is the first source that is trained on. Every other source of
    `test` is compared with it, even if no retriever was trained on that source. Each model is saved
    in a folder of its own inside `folder`; a model that is there already is not trained again.

    Parameters
    ----------
    train, test : Collection
        Collections to train on and to compare on.
    model : str or Path
        Model to start from.
    folder : str or Path
        Folder for the trained models.
    options : SweepOptions
        What is trained, and how retrievers are compared.
    dev : Collection, optional
        Collection on which training is watched.

    Returns
    -------
    tuple of Bench and list of TrainedModel
        The comparison, and what each training gave, the baseline's first.
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
    # The reference's documents are also ranked alone, where a loss of effectiveness cannot be made
    # up for by documents of other sources.
    reference_texts = only_group(test, reference)
    if len(test.sources) < 2:
        raise UserError(
            f"a sweep compares sources, and the test collection has {reference!r} alone; mix it "
            "first"
        )
    trained = list[TrainedModel]()
    runs, reference_runs = dict[Candidate, Run](), dict[Candidate, Run]()
    for planned, training in trainings.items():
        model_folder = planned.ranker
        trained.append(train_retriever(train, model, model_folder, options=training, dev=dev))
        ranker = Dense(model_folder, k=_DEPTH, device=training.device, text=training.text)
        # The folder exists now, so the candidate can name the ranker that reads it.
        candidate = replace(planned, ranker=repr(ranker))
        runs[candidate] = ranker.rank(test)
        reference_runs[candidate] = ranker.rank(reference_texts)
    compared = bench(
        test,
        runs,
        options.measures,
        reference_runs=reference_runs,
        reference=reference,
        margin=options.margin,
        budget=options.budget,
        ties=options.ties,
        test=options.test,
        correction=options.correction,
        resamples=options.resamples,
        seed=options.seed,
    )
    return compared, trained


def _trainings(options: SweepOptions, folder: Path) -> dict[Candidate, RetrieverTraining]:
    """Return each candidate of a sweep with the training that makes its model; the baseline first.

    No model exists yet, so `Candidate.ranker` has the folder where it will be.
    """
    baseline = options.training
    strengths = sorted({0.0, *map(float, options.alphas)})
    # Without an α above 0, retrievers differ in their negatives alone, and the baseline is named by
    # them too.
    has_constraint = len(strengths) > 1
    trainings = dict[Candidate, RetrieverTraining]()
    for alpha in strengths:
        candidate = Candidate(
            name=f"α = {alpha:g}" if has_constraint else f"{baseline.negatives} negatives",
            method="debias" if alpha else "",
            strength=alpha,
            ranker=str(folder / f"alpha-{alpha:g}"),
            dial="α",  # the symbol that tables print for the strength
        )
        trainings[candidate] = replace(baseline, alpha=alpha)
    for kind in dict.fromkeys(options.negatives):
        if kind != baseline.negatives:
            name = f"{kind} negatives"
            # Other negatives have no strength; 1 stands for "in use", as 0 does for the baseline.
            candidate = Candidate(
                name=name, method=name, strength=1.0, ranker=str(folder / f"negatives-{kind}")
            )
            trainings[candidate] = replace(baseline, alpha=0.0, negatives=kind)
    return trainings
