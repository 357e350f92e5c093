"""Candidates and rankers whose tilt and cost are planted; questions of two domains, to
learn from.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ranktilt import Collection, MitigationOptions, Run, bundled, ranker
from ranktilt.explaining.equivalence import only_group
from ranktilt.mitigation.bench import bench
from ranktilt.mitigation.bench_result import Bench, Candidate
from ranktilt.mitigation.mitigate import mitigate
from ranktilt.training.study_comparison import compare_trainings
from ranktilt.training.study_evaluation import Rankings
from ranktilt.training.study_result import BASELINE, TrainedRanker, TrainingStudy
from tests.toy import collection_of, jsonl, run_of, tsv, write
from tests.training.material import WORDS

QUERIES = 60
DIAL: Mapping[float, tuple[int, int, int]] = {
    0: (60, 0, 0),
    0.001: (30, 0, 0),
    0.01: (0, 0, 1),
    0.1: (0, 60, 24),
}
"""By strength: queries in which the LLM's twin stands first, and the human one (elsewhere they
tie), and those in which an irrelevant human document stands above both."""


@cache
def collection(sources: tuple[str, ...] = ("llm",)) -> Collection:
    """One relevant document a query in every source, and one human document a query that is
    relevant to none.
    """
    docs = [
        {"id": f"{name}{n}", "text": f"note {n} of {name}", "source": name, "origin": f"human{n}"}
        for name in ("human", *sources)
        for n in range(QUERIES)
    ]
    docs += [
        {"id": f"other{n}", "text": f"aside {n}", "source": "human", "origin": f"other{n}"}
        for n in range(QUERIES)
    ]
    grades = {f"q{n}": {f"{name}{n}": 1 for name in ("human", *sources)} for n in range(QUERIES)}
    return collection_of(docs, dict.fromkeys(grades, "note"), grades)


class PlantedCandidate(NamedTuple):
    """A candidate, and what its ranker found."""

    candidate: Candidate
    mixed: Run
    """Of all documents."""
    alone: Run | None = None
    """Of the reference's documents alone."""


def planted(
    strength: float, counts: tuple[int, int, int], *, method: str = "debias", **more: Any
) -> PlantedCandidate:
    """Rank as planted; `sources` of the collection, and `alone=False` for no run of human documents
    alone.
    """
    mixed, (llm, human, spoilt) = collection(more.get("sources", ("llm",))), counts
    reference_run = only_group(mixed)

    def scores(collection: Collection) -> dict[str, dict[str, float]]:
        names = [
            name
            for name in ("human", *mixed.sources)
            if name in collection.sources and name != "human"
        ]
        return {
            f"q{n}": {
                f"human{n}": 5.0 + (n >= QUERIES - human),
                **{f"{name}{n}": 5.0 + (n < llm) for name in names},
                f"other{n}": 9.0 if n < spoilt else 1.0,
            }
            for n in range(QUERIES)
        }

    name = more.get("name", f"α = {strength:g}")
    candidate = Candidate(
        name=name,
        method=method if strength or method != "debias" else "",
        strength=float(strength),
        ranker=f"dense:alpha-{strength:g}",
        dial="α",
    )
    alone = (
        run_of(reference_run, scores(reference_run), ranker=candidate.ranker)
        if more.get("alone", True)
        else None
    )
    run = run_of(mixed, scores(mixed), ranker=candidate.ranker)
    return PlantedCandidate(candidate, run, alone)


def bench_of(
    mixed: Collection,
    candidates: Iterable[PlantedCandidate],
    measures: Sequence[str],
    **options: Any,
) -> Bench:
    """Compare planted candidates."""
    runs = {candidate.candidate: candidate.mixed for candidate in candidates}
    alone = {
        candidate.candidate: candidate.alone
        for candidate in candidates
        if candidate.alone is not None
    }
    options = {"resamples": 200, **options}
    return bench(mixed, runs, measures, reference_runs=alone, **options)


def swept(
    dial: Mapping[float, tuple[int, int, int]] = DIAL, *, alone: bool = True, **options: Any
) -> Bench:
    """The bench of a dial."""
    candidates = [planted(strength, counts, alone=alone) for strength, counts in dial.items()]
    return bench_of(collection(), candidates, ("nDCG@1", "AP@3"), **options)


@cache
def mitigated_run() -> Bench:
    """A run of the bundled collection without judgments, mitigated in three ways."""
    mixed = bundled()
    unjudged = Collection(mixed.docs, mixed.queries, mixed.qrels.clear(), {})
    run = ranker("bm25@50").rank(unjudged)
    options = MitigationOptions.from_texts(["offset", "interleave"], strengths=(0.5, 1.0))
    return mitigate(unjudged, run, ["Share@1"], options=options, margin=15, resamples=200)


QUESTIONS = 40
HUMAN, LLM = (
    TrainedRanker(body="mini", documents=("human",), seed=0, ranker="cross-encoder:h"),
    TrainedRanker(body="mini", documents=("llm",), seed=0, ranker="c:l"),
)
RANKS: Mapping[str, int] = {BASELINE: 10, HUMAN.run: 1, LLM.run: 2}
"""At which rank each ranker puts the human answer."""


@cache
def mixed(grade: int = 1) -> Collection:
    """The answers of both sides: the human one holds one of a question's four words, the
    other two.
    """
    docs = [
        {
            "id": f"{side}{n}",
            "source": side,
            "origin": f"{side}{n}",
            "domain": "law" if n % 2 else "art",
            "text": f"answer of {side} {words} n{n}",
        }
        for side, words in (("human", "blue"), ("llm", "blue green"))
        for n in range(QUESTIONS)
    ]
    grades = {f"q{n}": {f"{side}{n}": grade for side in ("human", "llm")} for n in range(QUESTIONS)}
    return collection_of(docs, {query: f"Blue red green grey? {query}" for query in grades}, grades)


def alone(grade: int = 1) -> Collection:
    """The human answers."""
    return only_group(mixed(grade))


def ranked_at(collection: Collection, rank: int, *, spoilt: int = 0, side: str = "human") -> Run:
    """Put a side's answer to every question at a rank, among answers to others; to the first
    `spoilt` one lower.
    """
    scores = {}
    for n in range(QUESTIONS):
        rank_of_document = rank + (n < spoilt)
        others = [name for name in collection.ids if not name.endswith(f"{side}{n}")][n % 7 :][
            : rank_of_document + 2
        ]
        order = [*others[: rank_of_document - 1], f"{side}{n}", *others[rank_of_document - 1 :]]
        scores[f"q{n}"] = {doc: float(-number) for number, doc in enumerate(order)}
    return run_of(collection, scores, ranker="planted")


def ranked(
    ranks: Mapping[str, int] = RANKS, kind: Any = "supervised", name: str = "qa, test", **more: Any
) -> Rankings:
    """Runs of the human answers as planted."""
    lone_grade, spoilt = alone(more.pop("grade", 1)), more.pop("spoilt", 0)
    runs = {run: ranked_at(lone_grade, rank, spoilt=spoilt) for run, rank in ranks.items()}
    return Rankings(name=name, kind=kind, collection=lone_grade, runs=runs, **more)


def mixture(sides: Mapping[str, str]) -> Rankings:
    """Runs of both sides' answers: which side's answer each ranker puts first, below which stands
    the other one.
    """
    both, runs = mixed(), {}
    for run, side in sides.items():
        opposite = "llm" if side == "human" else "human"
        scores = {f"q{n}": {f"{side}{n}": 2.0, f"{opposite}{n}": 1.0} for n in range(QUESTIONS)}
        runs[run] = run_of(both, scores, ranker="planted")
    return Rankings(name="mixed", kind="supervised", collection=both, runs=runs)


def studied(rankers: Sequence[TrainedRanker] = (HUMAN, LLM), **more: Any) -> TrainingStudy:
    """The study of planted runs."""
    sets = more.pop("sets", None) or [ranked()]
    return compare_trainings(rankers, sets, **{"resamples": 1000, **more})


SIDES = {BASELINE: "llm", HUMAN.run: "human", LLM.run: "llm"}
"""Whose answer each ranker puts first."""
MANY = tuple(
    TrainedRanker(
        body="mini",
        documents=("human", "llm"),
        seed=0,
        ranker="c",
        limits=(("human", 10), ("llm", number)),
    )
    for number in (20, 40)
)


def training_study() -> TrainingStudy:
    """A study of every kind of evaluation."""
    sets = [
        ranked(),
        ranked(kind="zero-shot", name="nf", depth=100, grade=2),
        ranked({BASELINE: 4, LLM.run: 3}, "seen", "qa, train"),
        ranked(
            {BASELINE: 4}, "first stage", "qa train (human responses)", split="train", side="human"
        ),
        ranked({BASELINE: 5}, "first stage", "qa dev (human responses)", split="dev", side="human"),
        ranked({MANY[0].run: 3, MANY[1].run: 2}, "curve", "qa, test, augmented"),
    ]
    return studied((HUMAN, LLM, *MANY), sets=sets, mixed=mixture(SIDES), answers=mixed())


def answered_folder(folder: Path, *, test: int = 8) -> Path:
    """A question a word, of which the last `test` are tested on; two human answers and an LLM's,
    some beside them.
    """
    docs = [
        {
            "_id": f"{word}-{side}{number}",
            "title": "",
            "source": side,
            "domain": "law" if position % 2 else "art",
            "text": f"{word} {'zz' if number < 2 else 'yy'} {'ghijkl'[number]} {side[0]}",
        }
        for position, word in enumerate(WORDS)
        for side in ("human", "llm")
        for number in range(4)
    ]
    write(folder / "corpus.jsonl", jsonl(docs))
    write(folder / "queries.jsonl", jsonl({"_id": f"q-{word}", "text": word} for word in WORDS))
    for split, words in (("train", WORDS[:-test]), ("test", WORDS[-test:])):
        judged = [(word, answer) for word in words for answer in ("human0", "human1", "llm0")]
        rows = [(f"q-{word}", f"{word}-{answer}", 1) for word, answer in judged]
        write(folder / "qrels" / f"{split}.tsv", tsv(rows))
    return folder
