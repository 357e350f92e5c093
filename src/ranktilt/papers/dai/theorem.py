"""The conditions of theorem 4.1 of Dai et al. (KDD 2024), checked on a collection's twins.

The theorem says: if four conditions hold, the retriever's language model finds a language model's
rewrite no more surprising than the human text that it was made from, which explains source bias.
*Twins* are the human text d_H and the rewrite d_G. B is the retriever's language model (also called
the PLM), H stands for human readers, and LLM is the model that wrote the rewrite. PPL(d, B) is the
log perplexity of text d by model B: the mean negative log-probability of its tokens. PPL(d_G | d_H,
B) is the log perplexity of d_G if B reads d_H before it. D_KL is the Kullback–Leibler divergence of
two distributions over the next token. A *reader* is a language model that stands for human readers.
The *reference* is the source of the human texts. A *margin* is by how much a condition holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.notes.probes import Decision, TheoremChecked
from ranktilt.errors import UserError
from ranktilt.explaining.base import Probe, ProbeResult, reference_of, twin_rows, twin_sources
from ranktilt.explaining.perplexity import PerplexityProbe
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.models.likelihood import Likelihood
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker
from ranktilt.statistics.bootstrap import FEWEST_ROWS

TWINS = 100
"""Default number of twins of each source, which are drawn at random."""
CITATION = "Dai et al., KDD 2024, sec. 4.3, theorem 4.1"
"""Place of the theorem in the paper."""
_RESAMPLES = 2_000
"""Number of resamples of the bootstrap over twins."""
_FEWEST_TWINS = FEWEST_ROWS
"""Fewest twins for an interval, as for every bootstrap: two have only three different resamples."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One condition: a number, its interval, and whether it holds."""

    condition: str
    """Name of the condition."""
    formula: str
    """The condition as the paper writes it."""
    value: float
    """Estimate, a mean over twins."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""
    holds: Decision
    """``yes``, ``no``, or ``undecided`` if the limit is within the interval."""
    note: str = ""
    """A remark on the number."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TwinReading:
    """Log perplexities of one pair of twins, in nats per token.

    Those by human readers (H) are NaN if there is no reader.
    """

    human: float
    """PPL(d_H, B)."""
    rewrite: float
    """PPL(d_G, B)."""
    rewrite_given_human: float
    """PPL(d_G | d_H, B)."""
    human_by_reader: float = np.nan
    """PPL(d_H, H)."""
    rewrite_given_human_by_reader: float = np.nan
    """PPL(d_G | d_H, H)."""
    divergence_gaps: Floats = field(default_factory=lambda: np.empty(0))
    """D_KL(P_LLM ‖ P_H) − D_KL(P_LLM ‖ P_B) at each token of d_G; empty if there is no reader."""

    @property
    def has_tokens(self) -> bool:
        """Whether both texts have a token."""
        return not (np.isnan(self.human) or np.isnan(self.rewrite))


class TheoremProbe(Probe[ProbeResult]):
    """Check the conditions of theorem 4.1: ``theorem:GENERATOR(plm=MODEL,reader=MODEL)``.

    Causal language models, which are folders or names on the hub, stand for the model that wrote
    the rewrites, for the retriever's language model (`plm`) and for human readers. Without a
    `reader`, only conditions that need none are checked.
    """

    name = "theorem"
    question = "Do the conditions under which theorem 4.1 predicts source bias hold here?"
    citation = CITATION

    def __init__(self, generator: str = "", *, plm: str = "", reader: str = "") -> None:
        self.names = [name for name in (generator, plm, reader) if name]
        if not (generator and plm):
            raise UserError(
                "theorem 4.1 needs two or three language models: the generator, the retriever's, "
                "and one that stands for human readers, as "
                "theorem:GENERATOR(plm=MODEL,reader=MODEL)"
            )

    def check(self) -> None:
        """Find and check the language models, without loading them."""
        self.models()

    def models(self) -> list[Likelihood]:
        """Find the language models, which must share their tokens."""
        models = [PerplexityProbe(name, kind="causal").model() for name in self.names]
        for name, model in zip(self.names, models, strict=True):
            if model.vocabulary() != models[0].vocabulary():
                raise UserError(
                    f"theorem 4.1 compares next tokens, and {name} has a different vocabulary "
                    f"from {self.names[0]}"
                )
        return models

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> ProbeResult:
        """Check each condition on twins."""
        return check_theorem(collection, *self.models(), names=self.names, reference=reference)

    def describe(
        self, collection: Collection, reference: str, measured: ProbeResult
    ) -> ProbeResult:
        """Return the conditions as they were checked."""
        return measured


def read_twin(
    human: str, rewrite: str, *, llm: Likelihood, plm: Likelihood, reader: Likelihood | None = None
) -> TwinReading:
    """Compute the log perplexities of one pair of twins, by models with the same tokens."""
    human_ids, rewrite_ids = plm.scored_tokens(human), plm.scored_tokens(rewrite)
    by_plm = plm.distributions(rewrite, human)  # of d_G after d_H
    reading = TwinReading(
        human=_perplexity(plm.distributions(human), human_ids),
        rewrite=_perplexity(plm.distributions(rewrite), rewrite_ids),
        rewrite_given_human=_perplexity(by_plm, rewrite_ids),
    )
    if reader is None:
        return reading
    by_reader, by_llm = reader.distributions(rewrite, human), llm.distributions(rewrite, human)
    return replace(
        reading,
        human_by_reader=_perplexity(reader.distributions(human), human_ids),
        rewrite_given_human_by_reader=_perplexity(by_reader, rewrite_ids),
        divergence_gaps=divergence(by_llm, by_reader) - divergence(by_llm, by_plm),
    )


def divergence(p: npt.NDArray[np.floating[Any]], q: npt.NDArray[np.floating[Any]]) -> Floats:
    """Return D_KL(P ‖ Q) of each row of log-probabilities, in nats."""
    log_p, log_q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    probability = np.exp(log_p)
    # A term is 0 where the probability is 0.
    terms = np.zeros_like(log_p)
    np.multiply(probability, log_p - log_q, out=terms, where=probability > 0)
    return np.asarray(terms.sum(axis=1))


def _perplexity(log_probabilities: npt.NDArray[np.floating[Any]], ids: Ints) -> float:
    """Return the mean negative log-probability of a text's tokens; NaN without tokens.

    `log_probabilities` has a row for each position and a column for each token of the vocabulary;
    `ids` are the numbers of the text's tokens.
    """
    if not len(ids):
        return np.nan
    wide = np.asarray(log_probabilities, dtype=np.float64)
    return float(-wide[np.arange(len(ids)), ids].mean())


def conditions(twins: Sequence[TwinReading], *, seed: int = 0) -> list[Condition]:
    """Estimate each condition as a mean over twins.

    With three twins or more, each has a 95 % interval by a bootstrap over twins; otherwise the ends
    are NaN. `seed` is that of the bootstrap.

    ε is how much less surprising a rewrite is to B after B has read the human text: the mean over
    twins, or 0 if that is negative. This is the smallest number for which the condition of bounded
    perplexity holds on average, so this condition always holds. Its note has the largest value of a
    single twin.

    The conditions on human readers are left out if the twins were read without a reader.
    """
    human = np.array([twin.human for twin in twins])
    rewrite = np.array([twin.rewrite for twin in twins])
    rewrite_given_human = np.array([twin.rewrite_given_human for twin in twins])
    by_reader = np.array([twin.human_by_reader for twin in twins])
    given_by_reader = np.array([twin.rewrite_given_human_by_reader for twin in twins])
    has_reader = not np.isnan(by_reader).any()

    # A row for each resample: how often it has each twin. Its product with values is the sum over
    # the resample.
    draws = np.random.default_rng(seed).multinomial(
        len(twins), [1 / len(twins)] * len(twins), _RESAMPLES
    )
    if len(twins) < _FEWEST_TWINS:
        draws = np.full(draws.shape, np.nan)
    reductions = rewrite - rewrite_given_human
    epsilon = max(float(reductions.mean()), 0.0)
    low, high = _interval(np.maximum(draws @ reductions / len(twins), 0.0))
    bounded = Condition(
        condition="bounded perplexity",
        formula="PPL(d_G, B) − PPL(d_G | d_H, B) ≤ ε",
        value=epsilon,
        low=low,
        high=high,
        holds="yes",
        note=f"largest of a twin: {reductions.max():.3f}",
    )
    conclusion = _at_most_zero(
        "conclusion", "E[PPL(d_G, B) − PPL(d_H, B)] ≤ 0", rewrite - human, draws
    )
    if not has_reader:
        return [bounded, conclusion]
    superiority = _at_least_zero(
        "semantic superiority", "PPL(d_H, B) − PPL(d_H, H) ≥ 0", human - by_reader, draws
    )
    redundancy = _at_least_zero(
        "conditional redundancy",
        "PPL(d_H, H) − PPL(d_G | d_H, H) ≥ 0",
        by_reader - given_by_reader,
        draws,
    )
    return [superiority, redundancy, bounded, *_divergences(twins, epsilon, draws), conclusion]


def _divergences(twins: Sequence[TwinReading], epsilon: float, draws: Ints) -> list[Condition]:
    """Check the condition on divergences, at every position and on average.

    At every position of the rewrite, the divergence of the LLM's next token from human readers'
    must be larger than its divergence from B's, by at least ε. The *margin* is the difference of
    the two divergences minus ε. `draws` has how often each resample has each twin.
    """
    formula = "KL(LLM ‖ B) + ε ≤ KL(LLM ‖ H)"
    margins = [twin.divergence_gaps - epsilon for twin in twins]
    positions = np.array([len(margin) for margin in margins], dtype=np.float64)
    positive_counts = np.array([float((margin >= 0).sum()) for margin in margins])
    totals = np.array([float(margin.sum()) for margin in margins])
    resampled_positions = draws @ positions
    share = float(positive_counts.sum() / positions.sum())
    share_low, share_high = _interval(draws @ positive_counts / resampled_positions)
    mean_low, mean_high = _interval(draws @ totals / resampled_positions)
    return [
        Condition(
            condition="divergence, share of positions",
            formula=formula,
            value=share,
            low=share_low,
            high=share_high,
            holds="yes" if share == 1 else "no",
            note="must hold at every position",
        ),
        Condition(
            condition="divergence, mean margin",
            formula=formula,
            value=float(totals.sum() / positions.sum()),
            low=mean_low,
            high=mean_high,
            holds=_is_at_least_zero(mean_low, mean_high),
        ),
    ]


def _at_least_zero(name: str, formula: str, values: Floats, draws: Ints) -> Condition:
    """Check that the mean of some values is 0 or more."""
    low, high = _interval(draws @ values / len(values))
    return Condition(
        condition=name,
        formula=formula,
        value=float(values.mean()),
        low=low,
        high=high,
        holds=_is_at_least_zero(low, high),
    )


def _at_most_zero(name: str, formula: str, values: Floats, draws: Ints) -> Condition:
    """Check that the mean of some values is 0 or less."""
    condition = _at_least_zero(name, formula, values, draws)
    return replace(condition, holds=_is_at_least_zero(-condition.high, -condition.low))


def _is_at_least_zero(low: float, high: float) -> Decision:
    """Decide from an interval whether a number is 0 or more."""
    if low >= 0:
        return "yes"
    return "no" if high < 0 else "undecided"


def _interval(draws: Floats) -> tuple[float, float]:
    """Return the 95 % interval of a resampled number; NaN if it is NaN in any resample."""
    low, high = np.quantile(draws, (0.025, 0.975)).tolist()
    return low, high


def check_theorem(
    collection: Collection,
    llm: Likelihood,
    plm: Likelihood,
    reader: Likelihood | None = None,
    *,
    names: Sequence[str] = ("LLM", "PLM", "reader"),
    reference: str | None = None,
    twins: int = TWINS,
    seed: int = 0,
) -> ProbeResult:
    """Check the conditions of theorem 4.1 on twins, and its conclusion.

    Parameters
    ----------
    collection : Collection
        Documents, some of which are rewrites of others.
    llm, plm, reader : Likelihood
        Causal models with the same tokenizer, for the model that wrote the rewrites, for the
        retriever's language model, and for human readers. Without a `reader`, only conditions that
        need none are checked.
    names : sequence of str, optional
        Names of the models, as they are printed.
    reference : str, optional
        Source of the human texts.
    twins : int, optional
        Number of twins of each source, drawn at random. Each model computes its distribution over
        the vocabulary at each of their tokens, which takes long.
    seed : int, optional
        Seed of the draw and of the bootstrap.
    """
    first = reference_of(collection, reference, to="check the theorem on")
    sources = twin_sources(collection, first)
    if not sources:
        raise UserError(f"the theorem needs twins, and no source has twins of {first}")
    rows, findings = list[dict[str, Any]](), list[TheoremChecked]()
    models = _Models(llm=llm, plm=plm, reader=reader)
    for source in sources:
        pairs = np.stack(twin_rows(collection, first, source), axis=1)
        drawn = pairs[np.random.default_rng(seed).permutation(len(pairs))[:twins]]
        readings = models.read(collection.docs["text"], drawn)
        if len(readings.twins) < _FEWEST_TWINS:
            raise UserError(
                f"the theorem needs {_FEWEST_TWINS} twins with tokens on both sides, "
                f"{source} has {len(readings.twins)}"
            )
        checked = conditions(readings.twins, seed=seed)
        for condition in checked:
            rows.append({"source": source, **asdict(condition), "origins cut": readings.truncated})
        findings.append(_theorem_checked(source, checked, len(readings.twins)))
    roles = zip(("LLM", "B", "H"), names, strict=False)  # H may be absent
    model_names = " · ".join(f"{role}: {name}" for role, name in roles)
    return ProbeResult(
        probe="theorem",
        question=f"{TheoremProbe.question} ({model_names})",
        citation=CITATION,
        rows=tuple(rows),
        effects=(),
        figures=(),
        reference=first,
        findings=tuple(findings),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Readings:
    """Readings of twins with tokens on both sides."""

    twins: list[TwinReading]
    """Readings in the order of the twins."""
    truncated: int
    """Number of twins that do not fit into a model's window."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Models:
    """The models that stand for the generator, the retriever's language model and the reader."""

    llm: Likelihood
    """Stands for the model that wrote the rewrites."""
    plm: Likelihood
    """Stands for the retriever's language model."""
    reader: Likelihood | None
    """Stands for human readers; None without one."""

    def read(self, texts: pl.Series, pairs: Ints) -> _Readings:
        """Read twins; each row of `pairs` has the rows of a human text and of its rewrite."""
        twins, truncated = list[TwinReading](), 0
        for number, (human_row, rewrite_row) in enumerate(pairs.tolist()):
            report("theorem 4.1: reading twins", number, len(pairs))
            human, rewrite = texts[human_row], texts[rewrite_row]
            twin = read_twin(human, rewrite, llm=self.llm, plm=self.plm, reader=self.reader)
            if twin.has_tokens:
                twins.append(twin)
                truncated += not self._read_whole(human, rewrite)
        report("theorem 4.1: reading twins", len(pairs), len(pairs))
        return _Readings(twins=twins, truncated=truncated)

    def _read_whole(self, human: str, rewrite: str) -> bool:
        """Tell whether both texts fit into every model."""
        models = (self.llm, self.plm, self.reader)
        return all(model.reads_whole(human, rewrite) for model in models if model)


def _theorem_checked(source: str, checked: Sequence[Condition], twins: int) -> TheoremChecked:
    """Return the note on a source: which conditions hold, and whether the conclusion does."""
    *premises, conclusion = checked
    return TheoremChecked(
        source=source,
        failed=tuple(premise.condition for premise in premises if premise.holds == "no"),
        undecided=tuple(premise.condition for premise in premises if premise.holds == "undecided"),
        conclusion=conclusion.holds,
        value=conclusion.value,
        low=conclusion.low,
        high=conclusion.high,
        pairs=twins,
        is_complete=len(premises) > 1,
    )
