"""Whether the conditions of theorem 4.1 of Dai et al. (KDD 2024) hold on a collection's twins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Remark
from ranktilt.errors import UserError, counted
from ranktilt.explaining.base import Probe, ProbeResult, reference_of, twin_rows, twin_sources
from ranktilt.explaining.perplexity import PerplexityProbe
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.models.likelihood import Likelihood
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker
from ranktilt.statistics.bootstrap import FEWEST_ROWS

Twin = tuple[list[float], Floats]

TWINS = 100
"""Twins that are looked at, drawn at random, unless another number is asked for."""
CITATION = "Dai et al., KDD 2024, sec. 4.3, theorem 4.1"
_RESAMPLES = 2_000
_FEWEST = 3


@dataclass(frozen=True)
class Condition:
    """One condition: a number, its interval, and whether it holds."""

    condition: str
    formula: str
    value: float
    low: float
    high: float
    holds: str
    """``yes``, ``no``, or ``undecided`` where the interval holds the limit."""
    note: str = ""


class TheoremProbe(Probe[ProbeResult]):
    """Checks the conditions of theorem 4.1: ``theorem:GENERATOR(plm=MODEL,reader=MODEL)``.

    Causal language models, folders or names on the hub, stand for the model that wrote the rewrites, the retriever's
    language model and human readers; without a `reader` only what needs none is checked.
    """

    name = "theorem"
    question = "Do the conditions under which theorem 4.1 predicts source bias hold here?"
    citation = CITATION

    def __init__(self, generator: str = "", *, plm: str = "", reader: str = "") -> None:
        self.names = [name for name in (generator, plm, reader) if name]
        if not (generator and plm):
            raise UserError(
                "theorem 4.1 needs two or three language models: the generator, the retriever's, and one that stands "
                "for human readers, as theorem:GENERATOR(plm=MODEL,reader=MODEL)"
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
                    f"theorem 4.1 compares next tokens, and {name} has a different vocabulary from {self.names[0]}"
                )
        return models

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> ProbeResult:
        """Check each condition on twins."""
        return check_theorem(collection, *self.models(), names=self.names, reference=reference)

    def describe(
        self, collection: Collection, reference: str, measured: ProbeResult
    ) -> ProbeResult:
        """Return what was checked."""
        return measured


def read_twin(
    human: str, rewrite: str, llm: Likelihood, plm: Likelihood, reader: Likelihood | None
) -> Twin:
    """Read one pair of twins with models that share their tokens; all in nats per token.

    Gives PPL(d_H, B), PPL(d_G, B), PPL(d_G | d_H, B), PPL(d_H, H) and PPL(d_G | d_H, H), the last
    two NaN without a model that stands for the reader; and D_KL(P_LLM ‖ P_H) − D_KL(P_LLM ‖ P_B) at
    each position of d_G.
    """
    ids = [plm.scored_tokens(text) for text in (human, rewrite)]
    after = plm.distributions(rewrite, human)
    found = [
        _perplexity(plm.distributions(human), ids[0]),
        _perplexity(plm.distributions(rewrite), ids[1]),
        _perplexity(after, ids[1]),
    ]
    if reader is None:
        return [*found, np.nan, np.nan], np.empty(0)
    read, wrote = reader.distributions(rewrite, human), llm.distributions(rewrite, human)
    by_reader = _perplexity(reader.distributions(human), ids[0]), _perplexity(read, ids[1])
    return [*found, *by_reader], divergence(wrote, read) - divergence(wrote, after)


def divergence(p: npt.NDArray[np.floating[Any]], q: npt.NDArray[np.floating[Any]]) -> Floats:
    """Return D_KL(P ‖ Q) of each row of log-probabilities, in nats."""
    wide, other = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    chance = np.exp(wide)
    terms = np.multiply(chance, wide - other, out=np.zeros_like(wide), where=chance > 0)
    return np.asarray(terms.sum(axis=1))


def _perplexity(logs: npt.NDArray[np.floating[Any]], ids: Ints) -> float:
    return (
        float(-np.asarray(logs, dtype=np.float64)[np.arange(len(ids)), ids].mean())
        if len(ids)
        else np.nan
    )


def conditions(twins: Sequence[Twin], *, seed: int = 0) -> list[Condition]:
    """Estimate each condition as a mean over twins, with a 95 % interval by a bootstrap over three twins or more.

    A text's ε is the mean of what the origin tells the PLM, at least 0; its largest value stands
    beside it.
    """
    read = np.array([perplexities for perplexities, _ in twins])
    draws = np.random.default_rng(seed).multinomial(
        len(twins), [1 / len(twins)] * len(twins), _RESAMPLES
    )
    draws = draws if len(twins) >= FEWEST_ROWS else np.full(draws.shape, np.nan)
    given = read[:, 1] - read[:, 2]
    epsilon = max(float(given.mean()), 0.0)
    bounded = (epsilon, *_interval(np.maximum(draws @ given / len(twins), 0.0)))
    rows = []
    if not np.isnan(read[:, 3]).any():
        rows += [
            _signed(
                "semantic superiority",
                "PPL(d_H, B) − PPL(d_H, H) ≥ 0",
                read[:, 0] - read[:, 3],
                draws,
            ),
            _signed(
                "conditional redundancy",
                "PPL(d_H, H) − PPL(d_G | d_H, H) ≥ 0",
                read[:, 3] - read[:, 4],
                draws,
            ),
        ]
    note = f"largest of a twin: {given.max():.3f}"
    rows.append(
        Condition(
            "bounded perplexity", "PPL(d_G, B) − PPL(d_G | d_H, B) ≤ ε", *bounded, "yes", note
        )
    )
    if not np.isnan(read[:, 3]).any():
        rows += _divergences(twins, epsilon, draws)
    change = read[:, 1] - read[:, 0]
    rows.append(_signed("conclusion", "E[PPL(d_G, B) − PPL(d_H, B)] ≤ 0", change, draws, turn=-1))
    return rows


def _divergences(twins: Sequence[Twin], epsilon: float, draws: Ints) -> list[Condition]:
    formula = "KL(LLM ‖ B) + ε ≤ KL(LLM ‖ H)"
    margins = [apart - epsilon for _, apart in twins]
    count = np.array([len(margin) for margin in margins], dtype=np.float64)
    held = np.array([float((margin >= 0).sum()) for margin in margins])
    total = np.array([float(margin.sum()) for margin in margins])
    weight = draws @ count
    share = float(held.sum() / count.sum())
    bounds = _interval(draws @ held / weight)
    holds = "yes" if share == 1 else "no"
    mean = (float(total.sum() / count.sum()), *_interval(draws @ total / weight))
    return [
        Condition(
            "divergence, share of positions",
            formula,
            share,
            *bounds,
            holds,
            "must hold at every position",
        ),
        Condition("divergence, mean margin", formula, *mean, _verdict(*mean[1:])),
    ]


def _signed(name: str, formula: str, values: Floats, draws: Ints, *, turn: int = 1) -> Condition:
    low, high = _interval(draws @ values / len(values))
    bounds = (low, high) if turn > 0 else (-high, -low)
    return Condition(name, formula, float(values.mean()), low, high, _verdict(*bounds))


def _verdict(low: float, high: float) -> str:
    return "yes" if low >= 0 else "no" if high < 0 else "undecided"


def _interval(draws: Floats) -> tuple[float, float]:
    low, high = np.quantile(draws, (0.025, 0.975)).tolist()  # NaN where any draw is
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
    """Check the conditions of theorem 4.1 on twins, and print its conclusion beside them.

    The causal models `llm` and `plm` stand for the generator and for the retriever's language model
    and share a tokenizer; without a `reader`, for the human one, only what needs none is checked.
    `twins` are drawn at random, and each asks every model for full distributions.
    """
    first = reference_of(collection, reference, to="check the theorem on")
    sources = twin_sources(collection, first)
    if not sources:
        raise UserError(f"the theorem needs twins, and no source has twins of {first}")
    texts, rows, said = collection.docs["text"], [], []
    stand = " · ".join(
        f"{role}: {name}" for role, name in zip(("LLM", "B", "H"), names, strict=False)
    )
    for source in sources:
        pairs = np.stack(twin_rows(collection, first, source), axis=1)
        drawn = pairs[np.random.default_rng(seed).permutation(len(pairs))[:twins]]
        found, cut = [], 0
        for number, (a, b) in enumerate(drawn.tolist()):
            report("theorem 4.1: reading twins", number, len(drawn))
            one = read_twin(texts[a], texts[b], llm, plm, reader)
            if not np.isnan(one[0][:2]).any():
                found.append(one)
                cut += not all(
                    model.reads_whole(texts[a], texts[b]) for model in (llm, plm, reader) if model
                )
        report("theorem 4.1: reading twins", len(drawn), len(drawn))
        if len(found) < _FEWEST:
            raise UserError(
                f"the theorem needs {_FEWEST} twins with tokens on both sides, {source} has {len(found)}"
            )
        checked = conditions(found, seed=seed)
        rows += [{"source": source, **asdict(one), "origins cut": cut} for one in checked]
        said.append(_sentence(source, checked, len(found)))
    return ProbeResult(
        probe="theorem",
        question=f"{TheoremProbe.question} ({stand})",
        citation=CITATION,
        rows=tuple(rows),
        effects=(),
        figures=(),
        reference=first,
        findings=tuple(Remark(text=text) for text in said),
    )


def _sentence(source: str, checked: Sequence[Condition], twins: int) -> str:
    *before, conclusion = checked
    failed = [one.condition for one in before if one.holds == "no"]
    open_ = [one.condition for one in before if one.holds == "undecided"]
    state = "all conditions that were checked hold"
    if failed or open_:
        parts = [f"not met: {', '.join(failed)}"] if failed else []
        parts += [f"undecided: {', '.join(open_)}"] if open_ else []
        state = "; ".join(parts)
    numbers = f"{conclusion.value:+.3f} [{conclusion.low:+.3f}, {conclusion.high:+.3f}]".replace(
        "-", "−"
    )
    word = {"yes": "holds", "no": "does not hold", "undecided": "is undecided"}[conclusion.holds]
    over = counted(twins, "pair of twins", "pairs of twins")
    return f"{source}: {state}; the conclusion {word}: {numbers} nats per token over {over}."
