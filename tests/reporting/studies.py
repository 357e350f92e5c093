"""Temperature studies made by hand, and explanations of one model at several temperatures, for what prints them."""

import numpy as np

import ranktilt as rt
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.study import Study, StudySource, Trend
from ranktilt.collection import Collection
from ranktilt.measures.base import measure as to_measure
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.probes.explain import Explanation
from tests.probes.lexical_vectors import LetterVectors
from tests.toy import collection_of

TEMPERATURES = (0.2, 0.6, 1.0)
VALUES = {"bm25": (12.4, 6.1, 1.0), "dense:minilm": (-9.5, -15.0, -22.25)}
SPEC = {
    "level": 5.0, "primary": "nDCG@3", "correction": "holm", "test": "permutation", "ties": "expected", "tests": 6,
    "resamples": 10_000,
}  # fmt: skip
HALF = {"bm25": 5.0, "dense:minilm": 7.5}
WORDS = ["apple", "river", "clock", "stone", "field", "glass", "horse", "night", "paper", "queen", "train", "voice"]
ENDS = {
    "human": "stands there.", "llama-t1.0": "was seen once, and again.", "llama-t0.2": "is there.",
    "llama-t0.7": "is standing over there.",
}  # fmt: skip
PROBES = ["statistics", "perplexity", "spectrum(values=11)"]


def toy_tilt(run: str, source: str, value: float, half: float, measure: str = "nDCG@3") -> Effect:
    """A tilt between human and a source with a symmetric interval; significant where it excludes 0."""
    p = 0.004 if abs(value) > half else 0.4
    return Effect(
        run, RelativeDelta(of=to_measure(measure)), "human", source, value=value,
        low=value - half, high=value + half, error=half / 2, p=p / 2, p_corrected=p, queries=300, excluded=23,
        parts={"mean_a": 0.3 * (1 + value / 200), "mean_b": 0.3 * (1 - value / 200)},
    )  # fmt: skip


def toy_trend(run: str, series: str = "llama") -> Trend:
    """A trend of the toy's values: they fall with temperature."""
    return Trend(
        run, "nDCG@3", series, "human", TEMPERATURES, VALUES[run], correlation=-1.0, low=-1.0, high=-0.5,
        change=VALUES[run][-1] - VALUES[run][0], change_low=-20.0, change_high=-2.5, queries=300, dropped=0,
    )  # fmt: skip


def toy_study(series: str = "llama") -> Study:
    """Two rankers and three temperatures of one model, on one measure."""
    arms = tuple(StudySource(f"{series}-tmp{t:g}", series, t, 3633) for t in TEMPERATURES)
    tilts = tuple(
        toy_tilt(run, arm.source, value, HALF[run])
        for run, values in VALUES.items()
        for arm, value in zip(arms, values, strict=True)
    )
    return Study(
        spec={**SPEC, "path": "toy", "seed": 0, "ranktilt": "0"},
        reference="human",
        runs=tuple(VALUES),
        measures=("nDCG@3",),
        sources=arms,
        tilts=tilts,
        trends=tuple(toy_trend(run, series) for run in VALUES),
        notes=("temperatures are read from the names of the sources",),
    )


def timeless_study() -> Study:
    """One ranker and one source whose temperature nothing says."""
    tilt = toy_tilt("bm25", "gpt", np.nan, np.nan)
    return Study(SPEC, "human", ("bm25",), ("nDCG@3",), (StudySource("gpt", "gpt", np.nan, 40),), (tilt,), (), ())


def temperatures(*sources: str) -> Collection:
    docs = [
        {"id": f"{n}-{s}", "text": f"The {word} {ENDS[s]}", "source": s, "origin": f"{n}-human"}
        for s in sources
        for n, word in enumerate(WORDS)
    ]
    return collection_of(docs, {"q": "apple"}, {})


def explained(*sources: str) -> Explanation:
    return rt.explain(temperatures(*sources), PROBES, LetterVectors("abcdefghijklmnopqrst"))
