"""Checks made by hand; vectors that can be written down; a package with a probe for rewrites that
exclaim.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.checks.equivalence import Equivalence
from ranktilt.data.cache import StoredVectors
from ranktilt.data.collection import Collection
from ranktilt.data.faults.contents import Contents, QueryContents, SourceContents
from ranktilt.data.notes.base import Remark
from ranktilt.data.runs.run import Run
from ranktilt.explaining.base import Cosines, Distribution
from ranktilt.explaining.check import check
from ranktilt.explaining.check_result import CheckResult
from ranktilt.explaining.similarity import Map, Separation, Similarity
from ranktilt.explaining.text_probes import Overlap
from ranktilt.measures.base import measure as to_measure
from ranktilt.rankers.base import Ranker
from tests.toy import collection_of, versions, write

PAIRS = 40
BODY = "The river carries cold water to the sea and the old clock of the town shows the hour"


def sound_pairs(names: tuple[str, ...] = ("human", "llm")) -> CheckResult:
    """The check of forty sound pairs a source, with one cut-off ending in the last source."""
    texts = {name: [f"Text {n}. {BODY} of {name}." for n in range(PAIRS)] for name in names}
    texts[names[-1]][7] = texts[names[-1]][7][:-1]
    qrels = {f"q{n}": {f"d{n}-{name}": 1 for name in names} for n in range(PAIRS)}
    return check(collection_of(versions(texts, "d"), dict.fromkeys(qrels, "river"), qrels))


def toy_overlap(source: str = "llm", seed: int = 0) -> Overlap:
    """Forty pairs; the last one has no term on its human side."""
    drawn = np.random.default_rng(seed).uniform(0.3, 0.9, PAIRS)
    drawn[-1] = np.nan
    return Overlap(
        source=source,
        jaccard=Distribution(name="Jaccard", values=drawn),
        overlap=Distribution(name="overlap", values=(1 + drawn) / 2),
    )


def toy_similarity(source: str = "llm", seed: int = 0, *, map: bool = True) -> Similarity:
    """Twins near each other, others far, and a map of twenty of the forty pairs."""
    rng = np.random.default_rng(seed)
    cosine, baseline = rng.uniform(0.8, 1.0, PAIRS), rng.uniform(-0.1, 0.4, PAIRS)
    points = rng.normal(size=(2, PAIRS))
    ids = tuple(f"d{n}-{name}" for name in ("human", source) for n in range(PAIRS // 2))
    sources = tuple(name for name in ("human", source) for _ in range(PAIRS // 2))
    apart = Separation(auc=0.871, auc_low=0.84, auc_high=0.902, pairs=PAIRS)
    plane = Map(x=points[0], y=points[1], ids=ids, sources=sources, of=PAIRS) if map else None
    return Similarity(
        source=source,
        model="dense:minilm",
        text="title+text",
        twins=Cosines(name="twins", values=cosine),
        other_pairs=Cosines(name="other pairs", values=baseline),
        separation=apart,
        map=plane,
    )


def toy_effectiveness(source: str = "llm", measure: str = "nDCG@10") -> tuple[Equivalence, ...]:
    """A row for each outcome that there is."""
    numbers = {
        "estimand": to_measure(measure),
        "a": "human",
        "b": source,
        "error": np.nan,
        "margin": 0.02,
        "excluded": 2,
        "pairs": PAIRS,
        "left_out": 3,
    }
    nan = np.nan
    rows = (
        (
            "bm25",
            0.322,
            0.318,
            0.004,
            -0.003,
            0.011,
            0.262,
            0.524,
            0.00001,
            0.0099,
            300,
            "equivalent",
        ),
        (
            "tfidf",
            0.301,
            0.29,
            0.011,
            0.004,
            0.018,
            0.002,
            0.008,
            0.006,
            0.0169,
            300,
            "different within the margin",
        ),
        (
            "dense:minilm",
            0.316,
            0.38,
            -0.064,
            -0.09,
            -0.038,
            0.00001,
            0.00005,
            0.999,
            0.0857,
            300,
            "different",
        ),
        (
            "bm25@5",
            0.25,
            0.245,
            0.005,
            -0.031,
            0.041,
            0.785,
            0.785,
            0.206,
            0.0352,
            300,
            "inconclusive",
        ),
        ("tfidf@1", 0.5, 0.4, 0.1, nan, nan, nan, nan, nan, nan, 1, "not tested"),
    )
    names = (
        "value",
        "low",
        "high",
        "p",
        "p_corrected",
        "p_equivalent",
        "smallest",
        "queries",
        "outcome",
    )
    return tuple(
        Equivalence(
            run=run,
            details={"mean_a": a, "mean_b": b},
            **dict(zip(names, rest, strict=True)),
            **numbers,
        )
        for run, a, b, *rest in rows
    )


def toy_contents(names: tuple[str, ...] = ("human", "llm")) -> Contents:
    """Forty documents a source; 1,109 queries, of which 300 are judged."""
    rows = [
        SourceContents(
            source=name,
            documents=PAIRS,
            empty=0,
            words=20.5 + n,
            quartiles=(19.0, 20.0, 22.0),
            queries=300,
            relevant=1.25,
            judged=38,
            twins=PAIRS,
            duplicates=n,
        )
        for n, name in enumerate(names)
    ]
    queries = (
        QueryContents(which="all", queries=1109, words=12.38),
        QueryContents(which="judged", queries=300, words=12.5),
    )
    return Contents(sources=tuple(rows), queries=queries, split="test")


def toy_check(names: tuple[str, ...] = ("human", "llm"), *, map: bool = True) -> CheckResult:
    """A check with every part and every outcome: the first name is the reference, the others are
    sources.
    """
    others = names[1:]
    spec = {"path": "toy", "split": "test", "seed": 0, "alpha": 0.05, "ranktilt": "0"}
    return replace(
        sound_pairs(names),
        spec=spec,
        contents=toy_contents(names),
        terms=tuple(toy_overlap(name, seed) for seed, name in enumerate(others)),
        similarity=tuple(toy_similarity(name, seed, map=map) for seed, name in enumerate(others)),
        effectiveness=tuple(row for name in others for row in toy_effectiveness(name)),
        notes=(
            Remark(
                text=(
                    "both sides are restricted to their 40 pairs: 3 documents without a twin are "
                    "left out"
                )
            ),
        ),
    )


@dataclass(frozen=True)
class Letters:
    letters: str

    def encode(
        self, texts: Sequence[str], kind: str, label: str
    ) -> tuple[StoredVectors, npt.NDArray[np.int64]]:
        """A vector a distinct text, in the order of the alphabet."""
        distinct = sorted(set(texts))
        vectors = np.array(
            [[text.count(letter) for letter in self.letters] for text in distinct], dtype=np.float32
        )
        rows = np.array([distinct.index(text) for text in texts], dtype=np.int64)
        return StoredVectors(vectors, np.arange(len(distinct))), rows


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
    unit = "exclamation marks"

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
    """Rewrites that exclaim: text n has n words and n % 3 marks, its rewrite two words and two
    marks more.
    """
    docs = [
        {
            "id": f"d{n}-{name}",
            "text": " ".join(["word", f"w{n}"] * n + ["more", name] * extra)
            + "!" * (n % 3 + extra),
            "source": name,
            "origin": f"d{n}",
        }
        for n in range(1, pairs + 1)
        for name, extra in (("human", 0), ("llm", 2))
    ]
    return collection_of(docs, {"q": "word"}, {"q": {"d1-human": 1, "d1-llm": 1}})


def install(site: Path) -> Path:
    """Leave the package as pip does: its module, and a dist-info with its entry points."""
    write(site / "exclaiming.py", CODE)
    info = site / "exclaiming-1.0.dist-info"
    write(info / "METADATA", "Metadata-Version: 2.1\nName: exclaiming\nVersion: 1.0\n")
    write(info / "entry_points.txt", "\n".join(["[ranktilt.probes]", *POINTS, ""]))
    return site
