"""Audits, those of several sources, and explanations whose every number is known, for the tests of
what is printed.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl

import ranktilt as rt
from ranktilt import Audit, Collection, audit
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.result import PAIR_COUNTS
from ranktilt.auditing.sources.source_audits import SourceAudits
from ranktilt.auditing.sources.sources_apart import AuditedSource
from ranktilt.auditing.sources.temperature_trend import Trend
from ranktilt.data.notes.base import Remark
from ranktilt.explaining.explanation import Explanation
from ranktilt.measures.base import measure as to_measure
from ranktilt.measures.contrast import RelativeDelta
from tests.explaining.checks import LetterVectors
from tests.toy import collection_of, run_of, toy

RERANKED = ("bm25", "tfidf", "bm25@100>>cross-encoder:minilm")
MEASURES = ["nDCG@1", "nDCG@3", "AP@3"]
FIRST = {
    "q1": {"d1-human": 3.0, "d1-llm": 2.0, "d3-human": 1.0},
    "q2": {"d2-llm": 2.0, "d2-human": 1.0},
    "q3": {"d3-human": 2.0, "d3-llm": 1.0},
}
SECOND = {"q2": {"d2-llm": 1.0, "d2-human": 1.0}, "q3": {"d3-llm": 1.0}}


def small(**options: Any) -> Audit:
    """Audit the toy: human text is first for q1 and q3, LLM text for q2; the second run finds
    nothing for q1.
    """
    collection = toy()
    runs = [
        run_of(collection, FIRST, ranker="first"),
        run_of(collection, SECOND, ranker="second@5"),
    ]
    return audit(collection, runs, MEASURES, **{"resamples": 200, **options})


def twins(queries: int, sources: Sequence[str] = ("human", "llm")) -> Collection:
    """One relevant document a query, in every source."""
    docs = [
        {
            "id": f"{n}-{s}",
            "text": f"text {n}",
            "source": s,
            "origin": f"{n}-human",
            "side": "ab"[n % 2],
        }
        for s in sources
        for n in range(queries)
    ]
    grades = {f"q{n}": {f"{n}-{s}": 1 for s in sources} for n in range(queries)}
    return collection_of(docs, dict.fromkeys(grades, "x"), grades)


def ordered(collection: Collection, orders: Sequence[Sequence[str]], name: str) -> Any:
    """Make a run in which query n finds the versions of its document in an order of sources."""
    scores = {
        f"q{n}": {f"{n}-{source}": -float(rank) for rank, source in enumerate(order)}
        for n, order in enumerate(orders)
    }
    return run_of(collection, scores, ranker=name)


def clear(names: Sequence[str] = ("people", "machines", "nobody")) -> Audit:
    """Audit 40 queries: one run has human text first, one LLM text, one each as often."""
    collection = twins(40)
    human, llm = ("human", "llm"), ("llm", "human")
    orders = ([human] * 40, [llm] * 40, [human, llm] * 20)
    runs = [ordered(collection, order, name) for order, name in zip(orders, names, strict=True)]
    return audit(collection, runs, ["nDCG@1", "P@2"], resamples=200)


def three() -> Audit:
    """Audit three sources: every pair of them is compared."""
    collection = twins(40, ("human", "llama", "gpt"))
    return audit(
        collection,
        ordered(collection, [("human", "gpt", "llama")] * 40, "run"),
        ["RR"],
        resamples=200,
    )


def uneven() -> Audit:
    """Group by a column whose groups are no twins: a query has two relevant documents on one side,
    one on the other.
    """
    collection = twins(40, ("human",))
    doc = pl.format("{}-human", (pl.int_range(pl.len()) + pl.col("step")) % 40)
    qrels = [
        collection.qrels.with_columns(step=step).with_columns(doc_id=doc).drop("step")
        for step in range(3)
    ]
    collection = Collection(collection.docs, collection.queries, pl.concat(qrels))
    scores = {
        f"q{n}": {f"{m}-human": 1.5 * (m % 2) - (m - n) % 40 for m in range(40)} for n in range(40)
    }
    return audit(
        collection,
        run_of(collection, scores, ranker="run"),
        ["nDCG@5", "AP"],
        by="side",
        resamples=200,
    )


def with_run_names(audit: Audit, runs: Sequence[str], **spec: Any) -> Audit:
    """The same audit with its runs under other names, and made from another folder."""
    names = dict(zip(audit.runs, runs, strict=True))
    tilts = tuple(replace(tilt, run=names[tilt.run]) for tilt in audit.tilts)
    return replace(audit, runs=tuple(runs), tilts=tilts, spec={**audit.spec, **spec})


@cache
def sourced(*sources: str, runs: tuple[str, ...] = ("bm25",)) -> Audit:
    """Audit twins of human text and these sources; human text is always first."""
    collection = twins(40, ("human", *sources))
    ranked_runs = [ordered(collection, [("human", *sources)] * 40, name) for name in runs]
    return audit(collection, ranked_runs, ["nDCG@1", "RR"], resamples=100)


TEMPERATURES = (0.2, 0.6, 1.0)
VALUES = {"bm25": (12.4, 6.1, 1.0), "dense:minilm": (-9.5, -15.0, -22.25)}
SPEC: dict[str, Any] = {
    "by": "source",
    "runs": [],
    "rounding": "none",
    "margin": 5.0,
    "primary": "nDCG@3",
    "correction": "holm",
    "test": "permutation",
    "ties": "expected",
    "family_size": 6,
    "resamples": 10_000,
}
HALF = {"bm25": 5.0, "dense:minilm": 7.5}
WORDS = [
    "apple",
    "river",
    "clock",
    "stone",
    "field",
    "glass",
    "horse",
    "night",
    "paper",
    "queen",
    "train",
    "voice",
]
ENDS = {
    "human": "stands there.",
    "llama-t1.0": "was seen once, and again.",
    "llama-t0.2": "is there.",
    "llama-t0.7": "is standing over there.",
}
PROBES = ["words", "perplexity", "spectrum(values=11)"]


def toy_tilt(run: str, source: str, value: float, half: float, measure: str = "nDCG@3") -> Effect:
    """A tilt between human and a source with a symmetric interval; significant where it
    excludes 0.
    """
    p = 0.004 if abs(value) > half else 0.4
    return Effect(
        run=run,
        estimand=RelativeDelta(of=to_measure(measure)),
        a="human",
        b=source,
        value=value,
        low=value - half,
        high=value + half,
        error=half / 2,
        p=p / 2,
        p_corrected=p,
        queries=300,
        excluded=23,
        details={"mean_a": 0.3 * (1 + value / 200), "mean_b": 0.3 * (1 - value / 200)},
    )


def toy_trend(run: str, series: str = "llama") -> Trend:
    """A trend of the toy's values: they fall with temperature."""
    return Trend(
        run=run,
        measure="nDCG@3",
        series=series,
        a="human",
        temperatures=TEMPERATURES,
        values=VALUES[run],
        correlation=-1.0,
        low=-1.0,
        high=-0.5,
        change=VALUES[run][-1] - VALUES[run][0],
        change_low=-20.0,
        change_high=-2.5,
        queries=300,
        dropped=0,
    )


def toy_audit(tilts: Sequence[Effect], **spec: Any) -> Audit:
    """An audit of one source that holds these tilts, and no value of a query."""
    runs = tuple(dict.fromkeys(tilt.run for tilt in tilts))
    measures = tuple(dict.fromkeys(tilt.measure for tilt in tilts))
    return Audit(
        spec={**SPEC, "collection": {}, **spec},
        runs=runs,
        measures=tuple(map(to_measure, measures)),
        groups=("all", tilts[0].a, tilts[0].b),
        queries=("q1",),
        values=np.full((len(runs), len(measures), 3, 1), np.nan),
        tilts=tuple(tilts),
        pair_counts=pl.DataFrame(schema=PAIR_COUNTS),
        notes=(),
    )


def toy_source_audits(series: str = "llama") -> SourceAudits:
    sources = tuple(
        AuditedSource(
            source=f"{series}-tmp{temperature:g}",
            series=series,
            temperature=temperature,
            documents=3633,
        )
        for temperature in TEMPERATURES
    )
    audits = []
    for number, source in enumerate(sources):
        tilts = [
            toy_tilt(run, source.source, values[number], HALF[run])
            for run, values in VALUES.items()
        ]
        audits.append(toy_audit(tilts, path="toy"))
    return SourceAudits(
        spec={**SPEC, "path": "toy", "seed": 0, "ranktilt": "0"},
        reference="human",
        sources=sources,
        audits=tuple(audits),
        trends=tuple(toy_trend(run, series) for run in VALUES),
        notes=(Remark(text="temperatures are read from the names of the sources"),),
    )


def timeless_source_audits() -> SourceAudits:
    """One ranker and one source whose temperature is not known."""
    return SourceAudits(
        spec=SPEC,
        reference="human",
        sources=(AuditedSource(source="gpt", series="gpt", temperature=np.nan, documents=40),),
        audits=(toy_audit([toy_tilt("bm25", "gpt", np.nan, np.nan)]),),
        trends=(),
        notes=(),
    )


def temperatures(*sources: str) -> Collection:
    docs = [
        {"id": f"{n}-{s}", "text": f"The {word} {ENDS[s]}", "source": s, "origin": f"{n}-human"}
        for s in sources
        for n, word in enumerate(WORDS)
    ]
    return collection_of(docs, {"q": "apple"}, {})


def explained(*sources: str) -> Explanation:
    return rt.explain(temperatures(*sources), PROBES, LetterVectors("abcdefghijklmnopqrst"))
