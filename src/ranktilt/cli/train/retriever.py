"""``ranktilt train retriever``: a retriever of one's own, or a sweep of several.

The *debiased constraint* is a penalty for a score that puts an LLM's version of a relevant document
above that document; α is its strength. *Negatives* are documents that the retriever learns to rank
below the relevant ones. A *sweep* trains a retriever with each α and each kind of negatives that is
typed, and compares them by effectiveness and by tilt: how far each favours documents of one source,
such as human, over those of another. A retriever is *level* if its tilt lies within a margin; the
*budget* is how much effectiveness that may cost.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, TRAINING, percentage, verb
from ranktilt.cli.notes import note
from ranktilt.cli.output import Output, with_command
from ranktilt.cli.statistics_options import StatisticsOptions, refuse_assigned_statistics
from ranktilt.cli.train.arguments import OPTIONS, source_amounts, training_arguments, typed_options
from ranktilt.cli.train.options import (
    Encoder,
    LearningSplit,
    Minutes,
    Model,
    Sources,
    Text,
    load_split,
    train,
)
from ranktilt.cli.train.summaries import summary, warn_of_seen_judgments
from ranktilt.training.options import Negatives, RetrieverTraining

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class RetrieverSplits:
    """Splits of the collection's queries: to learn from, to audit on, to compare a sweep on."""

    split: LearningSplit = "train"
    dev: Annotated[
        str | None,
        Parameter(
            help="Split on which to audit the model after each epoch.",
            metavar="SPLIT",
        ),
    ] = None
    test_split: Annotated[
        str | None,
        Parameter(
            help="Split on which to compare a sweep's models (default: test).",
            metavar="SPLIT",
        ),
    ] = None

    def load(self, folder: Path) -> tuple[Collection, Collection | None]:
        """Load the collection to learn from, and that of ``--dev``; None without ``--dev``."""
        learned = load_split(folder, self.split)
        if self.dev is None:
            return learned, None
        return learned, load_split(folder, self.dev)

    def load_test(self, folder: Path) -> Collection:
        """Load the collection that the retrievers of a sweep are compared on."""
        return load_split(folder, self.test_split or "test")


@Parameter(name="*", group=TRAINING)
@dataclass(frozen=True, kw_only=True)
class RetrieverLearning:
    """The encoder to start from, and how it learns."""

    base_model: Encoder = "minilm"
    text: Text = None
    sources: Sources = None
    debias: Annotated[
        list[str] | None,
        Parameter(
            help="Weight of the debiased constraint (default: 0); several values, or paper, make a "
            "sweep.",
            metavar="α",
        ),
    ] = None
    negatives: Annotated[
        list[Negatives] | None,
        Parameter(
            help="Negatives from the batch alone (default), from BM25, from the model itself "
            "(ann, new each epoch), or from BM25 and like the positive in perplexity and "
            "specificity (controlled); several make a sweep.",
            metavar="KIND",
        ),
    ] = None
    minutes: Minutes = None

    @property
    def negative_kinds(self) -> list[Negatives]:
        """Kinds of negatives to train with, each once."""
        kinds: list[Negatives] = self.negatives or ["in-batch"]
        return list(dict.fromkeys(kinds))

    @property
    def is_sweep(self) -> bool:
        """Whether several retrievers are trained, and compared."""
        from ranktilt.mitigation.retriever_sweep import sweep_alphas

        return len(self.negative_kinds) > 1 or len(sweep_alphas(self.debias or ["0"], None)) > 1

    def training(self) -> RetrieverTraining:
        """Return how the first retriever of a sweep, or the only one, learns; α is set later."""
        return RetrieverTraining(
            **training_arguments(RetrieverTraining, OPTIONS),
            **typed_options(text=self.text, negatives=self.negative_kinds[0], minutes=self.minutes),
            **source_amounts(self.sources),
        )

    def alphas(self, collection: Collection, training: RetrieverTraining) -> list[float]:
        """Return the values of α to train with; ``paper`` stands for those of Dai et al. (2024).

        α weighs scores, so the paper's values, for a model with scores in the hundreds, are
        converted to the scale of this model: its mean score of the relevant documents in
        `collection`.
        """
        from ranktilt.mitigation.retriever_sweep import (
            PAPER,
            PAPER_ALPHAS,
            PAPER_SCORE,
            sweep_alphas,
        )
        from ranktilt.training.retriever import score_scale

        strengths = self.debias or ["0"]
        # Bad numbers are refused before the model is loaded for its scores.
        alphas = sweep_alphas(strengths, None)
        if PAPER not in strengths:
            return alphas
        scale = score_scale(collection, self.base_model, training)
        paper_alphas = ", ".join(f"{alpha:g}" for alpha in PAPER_ALPHAS)
        scaled_alphas = ", ".join(f"{alpha:g}" for alpha in sweep_alphas([PAPER], scale))
        note(
            f"The paper's α, for ANCE's scores of about {PAPER_SCORE:g}: {paper_alphas}. "
            f"{self.base_model} gives relevant documents {scale:.3g} on average, so α becomes "
            f"{scaled_alphas}"
        )
        return sweep_alphas(strengths, scale)


@verb(
    "retriever",
    "train retriever DIR -o model",
    "train retriever DIR --debias 0 --debias 0.1 --debias 1 -o sweep",
    arguments="DIR",
    parent=train,
)
def retriever(
    collection: options.Folder,
    /,
    *,
    output: Model,
    splits: RetrieverSplits = RetrieverSplits(),
    learning: RetrieverLearning = RetrieverLearning(),
    budget: Annotated[
        float | None,
        Parameter(
            help="Points of nDCG@10 that levelling may cost in a sweep (default: 1).",
            metavar="X",
            group=TRAINING,
            converter=percentage,
        ),
    ] = None,
    results: Output = Output(),
) -> None:
    """Fine-tune an encoder into a retriever, on the train split.

    With --debias, it learns under the debiased constraint: an LLM's version of a relevant document
    may not score above that document.

    Several --debias or --negatives make a sweep. It trains one model each in subfolders, compares
    their Relative Δ and effectiveness on the test split, and names the smallest that is level
    within the budget.

    An interrupted training resumes. Set other arguments with --set KEY=VALUE, such as --set
    epochs=3: steps, epochs, batch, rate, warmup_steps, weight_decay, seed, precision,
    negatives_per_positive, positives_per_query, max_query_tokens, max_document_tokens, twins,
    depth, loss, variant, patience.
    """
    from ranktilt.mitigation.retriever_sweep import SweepOptions, retriever_sweep
    from ranktilt.training.retriever import train_retriever

    results.check(collection)
    if not learning.is_sweep:
        _refuse_options_of_sweeps(budget, splits, results)
    training = learning.training()
    loaded, dev = splits.load(collection)
    alphas = learning.alphas(loaded, training)
    if not learning.is_sweep:
        training = replace(training, alpha=alphas[0])
        trained = train_retriever(loaded, learning.base_model, output, options=training, dev=dev)
        note(summary(trained, collection, loaded, "dense"))
        warn_of_seen_judgments(collection, splits.split)
        return
    statistics = StatisticsOptions().in_force()
    sweep = SweepOptions(
        alphas=alphas,
        negatives=learning.negative_kinds,
        training=training,
        # A margin in ranks is a text, which the sweep refuses before it trains (`check_limits`).
        margin=statistics.margin,  # type: ignore[arg-type]
        budget=SweepOptions.budget if budget is None else budget,
        ties=statistics.ties,
        test=statistics.test,
        correction=statistics.correction,
        resamples=statistics.resamples,
        seed=statistics.seed,
    )
    tested = splits.load_test(collection)
    bench, _ = retriever_sweep(loaded, tested, learning.base_model, output, options=sweep, dev=dev)
    bench = with_command(bench)
    path = output / "bench.json"
    results.deliver(bench, {path: bench.to_json})
    note(f"Next: {shlex.join(['ranktilt', 'report', str(path), '-o', str(output / 'bench.html')])}")


def _refuse_options_of_sweeps(
    budget: float | None, splits: RetrieverSplits, results: Output
) -> None:
    """Refuse options of the comparison of retrievers where a single one is trained."""
    unread = {
        "--budget": budget,
        "--test-split": splits.test_split,
        "--json": results.json,
        "--format": results.format,
    }
    reason = "only a sweep compares retrievers; give several --debias or --negatives, or omit it"
    options.refuse_unread(unread, reason)
    refuse_assigned_statistics(reason)
