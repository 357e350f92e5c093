"""A result of every kind whose numbers are known, by name, for the tests of what is printed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import polars as pl

from benchmarks.simulated import half_length_half_source
from ranktilt import Audit, Collection, audit, controls
from ranktilt.auditing.comparison.changes import ChangeTask, Columns, contrast_changes, mean_changes
from ranktilt.auditing.comparison.compare import compare
from ranktilt.auditing.comparison.ranks.result import RunRanks
from ranktilt.auditing.comparison.result import Comparison
from ranktilt.auditing.gate.gate import gate
from ranktilt.auditing.gate.result import Gate
from ranktilt.auditing.groups import ALL
from ranktilt.auditing.pairwise.result import PairwiseAudit
from ranktilt.auditing.replay_log.rankings import ReadAnswer, UnmatchedCall
from ranktilt.auditing.replay_log.result import (
    INPUT,
    MODEL,
    PARTS,
    PUBLISHED,
    STRICT,
    AnswerExample,
    ReplayedLog,
)
from ranktilt.auditing.result import QueryAnswers
from ranktilt.auditing.sequential import sequential_audit
from ranktilt.auditing.significance import InferenceOptions, Sample, correct_p_values, effects
from ranktilt.auditing.sources.source_audits import SourceAudits, audit_sources
from ranktilt.citing.experiment.result import ContextExperiment
from ranktilt.data.notes.base import Remark
from ranktilt.data.notes.comparisons import Mismatch
from ranktilt.explaining.check import check
from ranktilt.explaining.check_result import CheckResult
from ranktilt.explaining.explain import explain
from ranktilt.explaining.explanation import Explanation
from ranktilt.generation.versions.checks import ManipulationChecks
from ranktilt.generation.versions.factors import read_factors
from ranktilt.generation.versions.make import versions as versions_by_design
from ranktilt.measures.base import estimand, measure
from ranktilt.models.catalogue import Model
from ranktilt.rankers.base import FirstStage, Rows, Scores
from ranktilt.reporting.views.doctor import Extra, Installation
from tests.auditing.arrays import audit_of, decided, studied, two_group_audit
from tests.auditing.test_gate import HUMAN, LEVEL, NOTHING, UNSURE, Noisy
from tests.auditing.test_gate import collection as asked_queries
from tests.auditing.test_pairwise import chosen
from tests.auditing.test_query_groups import planted_audit
from tests.auditing.test_repeats import collection as documents_of_two_kinds
from tests.auditing.test_repeats import engine
from tests.citing.engines import two_audits, two_engines
from tests.citing.planted import fond_of_human_label, planted_experiment
from tests.explaining.checks import toy_check
from tests.explaining.factors.designed import caused, cited
from tests.explaining.properties.planted import shop_gaps
from tests.generation.versions.test_answer_sentences import judged_texts
from tests.judging.judged import full_audit as judged
from tests.judging.judged import probed_audit, two_judges
from tests.mitigation.planted import mitigated_run, swept, training_study
from tests.reporting.audits import clear, small, three, twins, uneven
from tests.toy import collection_of, run_of, toy

BODY = "The river carries cold water to the sea."
NAN = np.nan
TILE = np.tile([0.9, 0.7, 0.8], 12)
THREE = audit_of(np.concatenate([LEVEL.values, HUMAN.values, UNSURE.values]), runs=("a", "b", "c"))
SPEC = {"schemes": ["suffixes", "hashed"], "depths": [1, 3], "tilts": [-1.0, 0.0, 0.5]}
MODELS = (
    Model(
        name="one",
        kind="dense",
        hub="org/one",
        about="a retriever",
        licence="MIT",
        source="A, 2020",
        limit=128,
        pooling="cls",
        similarity="dot",
        query_prefix="query: ",
    ),
    Model(
        name="two",
        kind="monot5",
        hub="org/two",
        aliases=("org/2",),
        about="a re-ranker",
        licence="not stated",
        source="B, 2021",
        limit=1,
    ),
    Model(
        name="two-body",
        kind="monot5",
        hub="org/body",
        about="a body",
        licence="MIT",
        source="C, 2022",
        tuned=False,
    ),
    Model(
        name="lost",
        kind="dense",
        hub="",
        about="none published",
        licence="not stated",
        source="D, 2023",
    ),
)


def pairs(
    count: int, spoil: Callable[[int], str], *, names: tuple[str, ...] = ("human", "llm")
) -> Collection:
    """Pairs of one length; the last source's texts are made by `spoil`."""
    docs = [
        {
            "id": f"d{n}-{name}",
            "text": spoil(n) if name == names[-1] else f"Text {n}. {BODY} {name}.",
            "source": name,
            "origin": f"d{n}",
        }
        for name in names
        for n in range(count)
    ]
    qrels = {f"q{n}": {f"d{n}-{name}": 1 for name in names} for n in range(count)}
    return collection_of(docs, dict.fromkeys(qrels, "river"), qrels)


def refused(names: tuple[str, ...] = ("human", "llm")) -> CheckResult:
    """Every rewrite is a refusal, and somewhat short."""
    return check(
        pairs(30, lambda n: f"I cannot rewrite this text {n}. Sorry, truly so.", names=names),
        examples=2,
    )


def changed() -> Comparison:
    values = np.random.default_rng(0).random((2, 2, 4, 40))
    names = {"runs": ("bm25", "dense"), "measures": ("nDCG@3", "RR"), "groups": ("a", "b", "c")}
    new, old = (audit_of(table, **names) for table in (values, values[:, :, ::-1]))
    return compare(new, old, resamples=200)


def ranked_runs() -> RunRanks:
    return compare(THREE, resamples=400)


def turned() -> Comparison:
    """Human text led by 40 %, now LLM text does by as much; effectiveness fell from 70 to 35 %."""
    new = two_group_audit(0.5 * TILE, 0.75 * TILE, overall=0.35 + 0 * TILE)
    return compare(
        new, two_group_audit(0.75 * TILE, 0.5 * TILE, overall=0.7 + 0 * TILE), resamples=200
    )


def gone() -> Comparison:
    """Nothing at all in the new run, and effectiveness known for no query."""
    new, old = (
        two_group_audit([0, 0], [0, 0], overall=[NAN, NAN], runs=["n"]),
        two_group_audit([1, 1], [1, 1], runs=["o"]),
    )
    return compare(new, old, resamples=200)


def prompts() -> Comparison:
    """Three runs of one audit, of which two read another prompt, and estimands beside its
    measure.
    """
    values = np.random.default_rng(1).random((3, 1, 3, 40))
    runs, rng = (
        ("neutral", "female(query_template={attribute} {query})", "male"),
        np.random.default_rng(2),
    )
    ratio, spread = estimand("ExposureRatio@20"), estimand("AWRF@20")
    counts = {"groups": 2.0, "listed": 400.0, "unlabelled": 0.0, "several": 0.0}
    estimates = [(ratio, "human", "llm", {}, 0.5), (spread, ALL, ALL, counts, 0.0)]
    samples = [
        Sample(
            run=run,
            estimand=of,
            a=a,
            b=b,
            numerator=rng.random(40) + lift * run_index,
            denominator=np.ones(40),
            details=details,
            twins=False,
        )
        for of, a, b, details, lift in estimates
        for run_index, run in enumerate(runs)
    ]
    answers = tuple(
        QueryAnswers(
            run=s.run,
            estimand=s.estimand,
            a=s.a,
            b=s.b,
            numerator=s.numerator,
            denominator=s.denominator,
        )
        for s in samples
    )
    card = effects(
        samples,
        InferenceOptions(
            resamples=200, seed=0, test="interval", correction="holm", rounding="none"
        ),
    )
    group_audit = replace(
        audit_of(values, runs=runs, by="gender"), card=card, query_answers=answers
    )
    return compare(group_audit, baseline_run="neutral", resamples=200)


def gated() -> Gate:
    """Level, tilted and inconclusive, with a baseline and the commands behind it."""
    decision = gate(THREE, max_tilt=20, baseline=THREE, min_effect=2.5, resamples=200)
    return replace(
        decision, spec={**decision.spec, "command": "ranktilt gate `x`", "audit": "ranktilt audit"}
    )


def replayed(most: float | None = None) -> ReplayedLog:
    """Half of the answers are prose, of which a parser made something; one call fits nothing."""
    kinds = ("ok", "ok", "missing", "off-format", "off-format", "refused")
    answers = tuple(
        ReadAnswer(
            call=call,
            query=f"q{call}",
            passages=4,
            kind=kind,
            echo=call == 1,
            moved=call in (3, 4, 5),
        )
        for call, kind in enumerate(kinds, start=1)
    )
    runs = {
        INPUT: [0.2, 0.5, 0.4, 0.3],
        MODEL: [0.9, 0.5, 0.6, 0.3],
        PUBLISHED: [0.9, 0.1, 0.6, 0.2],
        STRICT: [0.9, 0.2, 0.5, 0.1],
    }
    values = [np.array([runs[name] for name in part]) for part in PARTS]
    parts = list(zip(PARTS, values, strict=True))
    ratio, level = estimand("ExposureRatio"), np.ones((2, 4))
    means = [
        ChangeTask(
            run=new,
            old_run=old,
            estimand=measure("nDCG@10"),
            a=ALL,
            b=ALL,
            columns=Columns(values=pair, distinct=None),
        )
        for (new, old), pair in parts
    ]
    sides = [
        (part, Columns(values=np.vstack([pair, level]), distinct=None)) for part, pair in parts
    ]
    ratios = [
        ChangeTask(run=new, old_run=old, estimand=ratio, a="human", b="llm", columns=columns)
        for (new, old), columns in sides
    ]
    options = {"resamples": 200, "seed": 0}
    changes = correct_p_values(
        [*mean_changes(means, **options), *contrast_changes(ratios, **options)], "holm"
    )
    command = "ranktilt tools replay-log x"
    spec = {
        "seed": 0,
        "resamples": 200,
        "correction": "holm",
        "max_failures": most,
        "command": command,
    }
    return ReplayedLog(
        spec=spec,
        answers=answers,
        unmatched=(UnmatchedCall(call=7, mismatch=Mismatch(kind="repeated document")),),
        examples=(
            AnswerExample(kind="off-format", answer="4 passages are\nprovided.", times=2),
            AnswerExample(kind="refused", answer="No.", times=1),
        ),
        queries=4,
        measures=("nDCG@10", "ExposureRatio"),
        pairs=(("human", "llm"),),
        changes=changes,
        notes=(Remark(severity="warning", text="1 call of 7 left out"),),
    )


def temperatures(measures: Any = ("nDCG@1", "RR"), **options: Any) -> SourceAudits:
    return audit_sources(
        studied(), [decided()], list(measures), **{"resamples": 300, "seed": 1, **options}
    )


def two_models() -> SourceAudits:
    wins = {"x-tmp0.2": 10, "x-tmp0.7": 20, "x-tmp1.0": 30, "y-tmp0.5": 40, "plain|one": 0}
    return audit_sources(
        studied({name: {} for name in wins}), [decided(wins)], "nDCG@1", resamples=300
    )


@cache
def torn() -> Audit:
    """Human text fills the page, LLM text stands above its twin."""
    collection = twins(40)
    names = collection.docs.filter(pl.col("source") == "human")["id"].to_list()
    scores = {
        f"q{n}": {
            f"{n}-llm": 50.0,
            f"{n}-human": 49.0,
            **{names[(n + m) % 40]: 40.0 - m for m in range(1, 11)},
        }
        for n in range(40)
    }
    return audit(
        collection, run_of(collection, scores, ranker="torn"), "nDCG@1", card=True, resamples=500
    )


@dataclass(frozen=True)
class Longest(FirstStage):
    """Ranks the documents of a query's number by their words."""

    name: ClassVar[str] = "longest"

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        words = np.array([float(len(text.split())) for text in collection.texts(self.text)])
        number = np.array([int(name.partition("-")[0]) for name in collection.ids])
        for query in collection.queries_with_judgments["id"]:
            rows = np.flatnonzero(number == int(query[1:]))
            yield rows, words[rows]


@cache
def controlled(sources: tuple[str, ...] = ("human", "llm")) -> Audit:
    """40 queries with one pair each; human text has one word more, and every second title is
    shared.
    """
    docs = [
        {
            "id": f"{n}-{source}",
            "title": f"T{n}" if n % 2 else source,
            "source": source,
            "origin": f"{n}-human",
            "text": f"{source} w{n} v{n}" + " more" * (len(sources) - 1 - source_index),
        }
        for source_index, source in enumerate(sources)
        for n in range(40)
    ]
    grades = {f"q{n}": {f"{n}-{s}": 1 for s in sources} for n in range(40)}
    collection = collection_of(docs, dict.fromkeys(grades, "x"), grades)
    run = Longest().rank(collection)
    raw = audit(collection, run, ["nDCG@1", "R@2"], resamples=300)
    return controls(collection, [Longest()], [run], raw, which=["length", "tokens", "titles"])


def by_the_papers_rules() -> Audit:
    return small(card=True, ties="trec_eval", rounding="paper", test="t")


def beside() -> PairwiseAudit:
    """Men are chosen of relevant pairs."""
    return chosen(margin=5.0)


def cited_by_label() -> ContextExperiment:
    """A model cites what is said to be human, whoever wrote it."""
    with TemporaryDirectory() as folder:
        return planted_experiment(fond_of_human_label, Path(folder) / "journal", queries=24)


def attributed() -> Explanation:
    """Half of a ranker's gap goes with length; no text holds a word of a query."""
    collection, ranker = half_length_half_source(0, 300, 20, 300)
    return explain(collection, ["words", "query-words"], attribute=[ranker])


def answers_moved() -> ManipulationChecks:
    """Texts whose second sentence answers, moved to the beginning and stated three times."""
    factors = ["position:beginning", "repetition:3"]
    return versions_by_design(judged_texts(), factors, by_rule=True).checks


def designed() -> ManipulationChecks:
    """Texts of one sentence, without a word that the list has: neither factor moves anything."""
    return versions_by_design(toy(), read_factors(["words", "length"], by_rule=True)).checks


def repeated() -> Audit:
    """An engine of noisy answers, asked three times, and a ranker that ranked once."""
    documents = documents_of_two_kinds(queries=30)
    runs = engine(documents, noise=1.0, repeats=3, tilt=0.6)
    runs += engine(documents, noise=0.0, repeats=1, seed=5, name="single")
    return audit(documents, runs, ["nDCG@5", "nDCG@10"], resamples=500)


RESULTS: dict[str, Callable[[], Any]] = {
    "audit": small,
    "audit, no twins": uneven,
    "audit, three groups": three,
    "audit, clear": clear,
    "audit, card": torn,
    "audit, query groups": planted_audit,
    "audit, papers' rules": by_the_papers_rules,
    "audit, controls": controlled,
    "audit, repeats": repeated,
    "audit, controls of three": lambda: controlled(("human", "a", "b")),
    "bench": partial(swept, budget=5),
    "bench, none": lambda: swept(alone=False),
    "bench, selected": lambda: swept(
        selected=("α = 0.01",), effectiveness="nDCG@3", margin=30, budget=20
    ),
    "bench, run alone": mitigated_run,
    "check": refused,
    "check, three sources": lambda: refused(("human", "llm", "a|b")),
    "citations": lambda: two_audits()[0],
    "citations, compared": two_engines,
    "comparison": changed,
    "comparison, turned": turned,
    "ranks of runs": ranked_runs,
    "comparison, nothing new": gone,
    "comparison, runs of one audit": prompts,
    "attribution": attributed,
    "context experiment": cited_by_label,
    "explained gaps": shop_gaps,
    "factors": caused,
    "factors, citations": cited,
    "factors, no source": partial(caused, ("facts", "length")),
    "gate": gated,
    "gate, nothing": lambda: gate(NOTHING),
    "manipulation checks": designed,
    "manipulation checks, answers": answers_moved,
    "judges": judged,
    "judges, compared": two_judges,
    "judges, probed": probed_audit,
    "models": lambda: Installation(
        models=MODELS, here={"dense:one": "cache"}, others=[("alpha", "a-package 1.0")]
    ),
    "installation": lambda: Installation(
        models=MODELS,
        here={},
        machine={"RankTilt": "0.1.0", "processors": "2, x86_64"},
        extras=[
            Extra(name="neural", purpose="dense retrievers", versions={"torch": "2.13.0"}),
            Extra(name="plots", purpose="figures", versions={"vl-convert": None}),
        ],
    ),
    "models, in full": lambda: Installation(models=MODELS, here={"dense:one": "cache"}, full=True),
    "pairwise": beside,
    "pairwise, level": lambda: chosen(tilt=False),
    "replayed log": replayed,
    "replayed log, failed": lambda: replayed(25),
    "sequential": lambda: sequential_audit(asked_queries(), Noisy(2.0), 10),
    "sequential, open": lambda: sequential_audit(
        asked_queries(), Noisy(silent=0.2), 1, max_queries=40
    ),
    "training study": training_study,
    "sources": temperatures,
    "sources, two models": two_models,
    "check, every part": toy_check,
    "check, every part, three sources": lambda: toy_check(("human", "llm", "a|b")),
    "check, one source": lambda: toy_check(("human",)),
}


@cache
def result(name: str) -> Any:
    return RESULTS[name]()
