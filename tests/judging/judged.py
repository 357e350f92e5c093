"""A collection of twins, systems of two families, and a judge with planted tastes."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.comparison.compare import compare
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.judging.drift.result import JudgeDrift
from ranktilt.judging.grading.length_doses import DoseGrade, LengthDoses
from ranktilt.judging.grading.probes import ProbeGap
from ranktilt.judging.judge import judge
from ranktilt.judging.records import Weakness
from ranktilt.judging.result import JudgeAudit
from tests.toy import collection_of, versions

Floats = npt.NDArray[np.float64]
QUERIES = 40
MEMBER = np.arange(18) < 6
WORLDS = {
    "a good judge": {"slope": 1.0, "noise": 0.05, "system": 0.01},
    "a judge that errs more": {"slope": 0.5, "noise": 0.15, "system": 0.02},
    "a poor judge": {"slope": 0.3, "noise": 0.25, "system": 0.02},
}
FAMILIES = {f"{family}{number}": family for family in ("llm", "lexical") for number in range(3)}


def world(
    seed: int, preference: float, *, slope: float, noise: float, system: float
) -> tuple[Floats, Floats]:
    """Values of 18 systems and 50 queries: six of a family that is better by .1, a judge, and what
    it adds to them.
    """
    rng = np.random.default_rng(seed)
    n, queries = len(MEMBER), 50
    quality = rng.normal(0, 0.06, n) + 0.1 * MEMBER
    human = rng.normal(0.5, 0.15, queries) + quality[:, None] + rng.normal(0, 0.1, (n, queries))
    taste = MEMBER[:, None] * (preference + rng.normal(0, 0.03, queries))
    judged = (
        0.1
        + slope * human
        + rng.normal(0, system, n)[:, None]
        + rng.normal(0, 0.04, queries)
        + taste
    )
    return human, judged + rng.normal(0, noise, (n, queries))


def bed() -> Collection:
    """Six twins a query, with human grades 0 to 2 that both sides share."""
    rng = np.random.default_rng(1)
    words = ["river", "apple", "clock", "stone", "cloud"]
    docs, qrels = [], dict[str, dict[str, int]]()
    for query in range(QUERIES):
        texts = [" ".join(rng.choice(words, 3 + number)) for number in range(6)]
        docs += versions(
            {"human": texts, "llm": [f"{text} indeed" for text in texts]}, prefix=f"{query}-"
        )
        qrels[f"q{query}"] = {
            f"{query}-{number}-{source}": int(grade)
            for number, grade in enumerate(rng.permutation([0, 0, 0, 1, 1, 2]))
            for source in ("human", "llm")
        }
    return collection_of(
        docs, {f"q{query}": f"river clock {query}" for query in range(QUERIES)}, qrels
    )


def grades(
    collection: Collection, *, for_llm: float = 0.0, noise: float = 0.3, seed: int = 2
) -> pl.DataFrame:
    """A judge's grades: the human ones with noise, and more for text of a model."""
    rng = np.random.default_rng(seed)
    qrels = collection.qrels
    taste = for_llm * qrels["doc_id"].str.ends_with("llm").cast(pl.Float64).to_numpy()
    raw = qrels["grade"].to_numpy() + taste + rng.normal(0, noise, qrels.height)
    return qrels.select(
        "query_id", "doc_id", grade=pl.Series(np.clip(np.round(raw), 0, 2).astype(np.int64))
    )


def runs(
    collection: Collection, judged: pl.DataFrame | None = None, taste: float = 0.0
) -> list[Run]:
    """Six systems that see human grades through noise; those of the family llm see a
    judge's, too.
    """
    rng = np.random.default_rng(3)
    qrels = collection.qrels.with_columns(judged=pl.lit(0) if judged is None else judged["grade"])
    graded = []
    for number, (name, family) in enumerate(FAMILIES.items()):
        scores = qrels["grade"].to_numpy() + rng.normal(0, 0.5 + 0.25 * (number % 3), qrels.height)
        if family == "llm":
            scores = scores + taste * qrels["judged"].to_numpy()
        rows = qrels.select("query_id", "doc_id", score=pl.Series(scores))
        table: dict[str, dict[str, float]] = {}
        for query, doc, score in rows.iter_rows():
            table.setdefault(query, {})[doc] = score
        graded.append(Run.from_dict(table, name=name))
    return graded


def full_audit() -> JudgeAudit:
    """An audit of two judges with everything in it: one likes text of models, one is good."""
    collection = bed()
    judges = {
        "fond": grades(collection, for_llm=0.6),
        "good": grades(collection, noise=0.2, seed=4),
    }
    return judge(
        judges,
        collection=collection,
        runs=runs(collection, judges["fond"], 1.0),
        families=FAMILIES,
        measures="nDCG@3",
        human_sample=200,
        resamples=1000,
    )


def two_judges() -> JudgeDrift:
    """A judge that likes text of models against one that does not, on the same pairs."""
    audit = full_audit()
    new, old = (replace(audit, judges=(name,)) for name in ("fond", "good"))
    return compare(new, old, resamples=1000)


def probed_audit() -> JudgeAudit:
    """An audit of a judge that tells its confidence, and was probed with longer passages."""
    collection = bed()
    graded = grades(collection, for_llm=0.4)
    is_right = (graded["grade"] == collection.qrels["grade"]).to_numpy()
    rng = np.random.default_rng(5)
    confidence = np.clip(np.where(is_right, 0.9, 0.7) + rng.normal(0, 0.1, len(is_right)), 0, 1)
    graded = graded.with_columns(confidence=pl.Series(np.round(confidence, 2)))
    audit = judge({"sure": graded}, collection=collection, resamples=1000)
    return replace(audit, length_doses=(_doses(),), weaknesses=(_weakness(),))


def _doses() -> LengthDoses:
    levels = [(1, 1.0, 0.2), (2, 2.1, 0.35), (4, 4.05, 0.6)]
    return LengthDoses(
        judge="sure",
        grades=tuple(
            DoseGrade(dose=dose, length=length, grade=grade, low=grade - 0.1, high=grade + 0.1)
            for dose, length, grade in levels
        ),
        slope=0.2,
        low=0.11,
        high=0.29,
        p=0.0004,
        pairs=100,
        queries=40,
        left_out=3,
    )


def _weakness() -> Weakness:
    edit = ProbeGap(
        probe="padding ×4",
        pairs=100,
        queries=40,
        original=0.2,
        gap=0.4,
        low=0.25,
        high=0.55,
        raised=0.4,
        left_out=3,
    )
    return Weakness(judge="sure", edit=edit)
