"""Validations made by hand; vectors that can be written down; a package with a probe for rewrites that exclaim."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.effects import Equivalence
from ranktilt.collection import Collection
from ranktilt.datasets.check import CheckResult, check
from ranktilt.io.cache import Stored
from ranktilt.measures.base import measure as to_measure
from ranktilt.probes.base import Cosines, Distribution
from ranktilt.probes.similarity import Map, Separation, Similarity
from ranktilt.probes.text_probes import CollectionStatistics, Overlap, QueryStatistics, SourceStatistics
from ranktilt.probes.validation import Validation
from ranktilt.rankers.base import Ranker
from ranktilt.run import Run
from tests.toy import collection_of, versions, write

PAIRS = 40
BODY = "The river carries cold water to the sea and the old clock of the town shows the hour"


def toy_check(names: tuple[str, ...] = ("human", "llm")) -> CheckResult:
    """The check of forty sound pairs a source, with one cut-off ending in the last source."""
    texts = {name: [f"Text {n}. {BODY} of {name}." for n in range(PAIRS)] for name in names}
    texts[names[-1]][7] = texts[names[-1]][7][:-1]
    qrels = {f"q{n}": {f"d{n}-{name}": 1 for name in names} for n in range(PAIRS)}
    return check(collection_of(versions(texts, "d"), dict.fromkeys(qrels, "river"), qrels))


def toy_overlap(source: str = "llm", seed: int = 0) -> Overlap:
    """Forty pairs; the last one has no term on its human side."""
    drawn = np.random.default_rng(seed).uniform(0.3, 0.9, PAIRS)
    drawn[-1] = np.nan
    return Overlap(source, Distribution("Jaccard", drawn), Distribution("overlap", (1 + drawn) / 2))


def toy_similarity(source: str = "llm", seed: int = 0, *, map: bool = True) -> Similarity:
    """Twins near each other, others far, and a map of twenty of the forty pairs."""
    rng = np.random.default_rng(seed)
    cosine, baseline = rng.uniform(0.8, 1.0, PAIRS), rng.uniform(-0.1, 0.4, PAIRS)
    points = rng.normal(size=(2, PAIRS))
    ids = tuple(f"d{n}-{name}" for name in ("human", source) for n in range(PAIRS // 2))
    sources = tuple(name for name in ("human", source) for _ in range(PAIRS // 2))
    apart = Separation(auc=0.871, auc_low=0.84, auc_high=0.902, pairs=PAIRS)
    plane = Map(points[0], points[1], ids, sources, PAIRS) if map else None
    cosines = Cosines("twins", cosine), Cosines("other pairs", baseline)
    return Similarity(source, "dense:minilm", "title+text", *cosines, apart, plane)


def toy_effectiveness(source: str = "llm", measure: str = "nDCG@10") -> tuple[Equivalence, ...]:
    """A row for each outcome that there is."""
    numbers = {
        "estimand": to_measure(measure), "a": "human", "b": source, "error": np.nan, "margin": 0.02, "excluded": 2,
        "pairs": PAIRS, "left_out": 3,
    }  # fmt: skip
    return (
        Equivalence(
            run="bm25", parts={"mean_a": 0.322, "mean_b": 0.318}, value=0.004, low=-0.003, high=0.011,
            p=0.262, p_corrected=0.524, p_equivalent=0.00001, smallest=0.0099, outcome="equivalent",
            queries=300, **numbers,
        ),
        Equivalence(
            run="tfidf", parts={"mean_a": 0.301, "mean_b": 0.29}, value=0.011, low=0.004, high=0.018,
            p=0.002, p_corrected=0.008, p_equivalent=0.006, smallest=0.0169,
            outcome="different within the margin", queries=300, **numbers,
        ),
        Equivalence(
            run="dense:minilm", parts={"mean_a": 0.316, "mean_b": 0.38}, value=-0.064, low=-0.09, high=-0.038,
            p=0.00001, p_corrected=0.00005, p_equivalent=0.999, smallest=0.0857, outcome="different",
            queries=300, **numbers,
        ),
        Equivalence(
            run="bm25@5", parts={"mean_a": 0.25, "mean_b": 0.245}, value=0.005, low=-0.031, high=0.041,
            p=0.785, p_corrected=0.785, p_equivalent=0.206, smallest=0.0352, outcome="inconclusive",
            queries=300, **numbers,
        ),
        Equivalence(
            run="tfidf@1", parts={"mean_a": 0.5, "mean_b": 0.4}, value=0.1, low=np.nan, high=np.nan,
            p=np.nan, p_corrected=np.nan, p_equivalent=np.nan, smallest=np.nan, outcome="not tested",
            queries=1, **numbers,
        ),
    )  # fmt: skip


def toy_statistics(names: tuple[str, ...] = ("human", "llm")) -> CollectionStatistics:
    """Forty documents a source; 1,109 queries, of which 300 are judged."""
    rows = [
        SourceStatistics(name, PAIRS, 0, 20.5 + n, (19.0, 20.0, 22.0), 300, 1.25, judged=38, twins=PAIRS, duplicates=n)
        for n, name in enumerate(names)
    ]
    queries = QueryStatistics("all", 1109, 12.38), QueryStatistics("judged", 300, 12.5)
    return CollectionStatistics(tuple(rows), queries, "test")


def toy_validation(names: tuple[str, ...] = ("human", "llm"), *, map: bool = True) -> Validation:
    """A validation with every part and every outcome: the first name is the reference, the others are sources."""
    others = names[1:]
    return Validation(
        spec={"path": "toy", "split": "test", "seed": 0, "alpha": 0.05, "margin": 0.02, "ranktilt": "0"},
        reference=names[0],
        sources=others,
        statistics=toy_statistics(names),
        overlaps=tuple(toy_overlap(name, seed) for seed, name in enumerate(others)),
        similarities=tuple(toy_similarity(name, seed, map=map) for seed, name in enumerate(others)),
        effectiveness=tuple(row for name in others for row in toy_effectiveness(name)),
        check=toy_check(names) if others else None,
        notes=("both sides are restricted to their 40 pairs: 3 documents without a twin are left out",),
    )


@dataclass(frozen=True)
class Letters:
    letters: str

    def encode(self, texts: Sequence[str], kind: str, label: str) -> tuple[Stored, npt.NDArray[np.int64]]:
        """A vector a distinct text, in the order of the alphabet."""
        distinct = sorted(set(texts))
        vectors = np.array([[text.count(one) for one in self.letters] for text in distinct], dtype=np.float32)
        rows = np.array([distinct.index(text) for text in texts], dtype=np.int64)
        return Stored(vectors, np.arange(len(distinct))), rows


@dataclass(frozen=True)
class LetterVectors(Ranker):
    """A ranker that has an encoder; it is never asked to rank."""

    name: ClassVar[str] = "letters"
    argument: ClassVar[str | None] = "letters"
    letters: str = "abc"
    text: str = "text"

    @property
    def encoder(self) -> Letters:
        return Letters(self.letters)

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        raise AssertionError("not asked to rank")


CODE = '''
"""A probe of another package: one class."""

import ranktilt as rt


class Marks(rt.TextProbe):
    name = "marks"
    question = "Do rewrites exclaim more than people?"
    what = "exclamation marks"

    def measure(self, collection, reference, ranker):
        return collection.docs["text"].str.count_matches("!", literal=True).to_numpy().astype(float)


class Broken:
    name = "broken"
'''


POINTS = (
    "marks = exclaiming:Marks",
    "broken = exclaiming:Broken",
    "lost = exclaiming:Lost",
    "overlap = exclaiming:Marks",
)


def exclaiming(pairs: int = 12) -> Collection:
    """Rewrites that exclaim: text n has n words and n % 3 marks, its rewrite two words and two marks more."""
    docs = [
        {"id": f"d{n}-{name}", "text": " ".join(["word", f"w{n}"] * n + ["more", name] * extra) + "!" * (n % 3 + extra),
         "source": name, "origin": f"d{n}"}
        for n in range(1, pairs + 1)
        for name, extra in (("human", 0), ("llm", 2))
    ]  # fmt: skip
    return collection_of(docs, {"q": "word"}, {"q": {"d1-human": 1, "d1-llm": 1}})


def install(site: Path) -> Path:
    """Leave the package as pip does: its module, and a dist-info with its entry points."""
    write(site / "exclaiming.py", CODE)
    info = site / "exclaiming-1.0.dist-info"
    write(info / "METADATA", "Metadata-Version: 2.1\nName: exclaiming\nVersion: 1.0\n")
    write(info / "entry_points.txt", "\n".join(["[ranktilt.probes]", *POINTS, ""]))
    return site
