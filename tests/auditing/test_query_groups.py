"""Audits by groups of queries: a planted tilt is found and named, in the order of the house."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt.auditing.query_groups.grouping import read_query_groups
from tests.refusals import refused
from tests.toy import collection_of, run_of

TOPICS = ("health", "law", "sport", "travel")
QUERIES, ORIGINS = 80, 60
RESAMPLES = 600


def twins(*, without_topic: int = 0) -> rt.Collection:
    """Twins of human and llm, and queries of four topics, each with six relevant origins."""
    rng = np.random.default_rng(0)
    docs = [
        {
            "id": f"d{origin}-{side}",
            "text": f"document {origin} by {side}",
            "source": side,
            "origin": f"d{origin}-human",
        }
        for origin in range(ORIGINS)
        for side in ("human", "llm")
    ]
    queries = {f"q{number}": f"question {number}" for number in range(QUERIES)}
    qrels = {
        query: {
            f"d{origin}-{side}": 1
            for origin in rng.choice(ORIGINS, 6, replace=False)
            for side in ("human", "llm")
        }
        for query in queries
    }
    collection = collection_of(docs, queries, qrels)
    topics = [
        None if number < without_topic else TOPICS[number % len(TOPICS)]
        for number in range(QUERIES)
    ]
    known = collection.queries.with_columns(
        topic=pl.Series(topics, dtype=pl.String), year=pl.Series(range(2000, 2000 + QUERIES))
    )
    return rt.Collection(collection.docs, known, collection.qrels)


def run_that_favours(collection: rt.Collection, tilt: dict[str, float], seed: int = 1) -> rt.Run:
    """Rank relevant documents by chance, those of llm higher by what a topic says."""
    rng = np.random.default_rng(seed)
    topic_of = dict(collection.queries.select("id", "topic").iter_rows())
    scores: dict[str, dict[str, float]] = {}
    for query, document in collection.qrels.select("query_id", "doc_id").iter_rows():
        favour = tilt.get(topic_of[query] or "", 0.0) * document.endswith("llm")
        scores.setdefault(query, {})[document] = float(rng.normal() + favour)
    return run_of(collection, scores, ranker="planted")


@pytest.fixture(scope="module")
def planted() -> rt.Audit:
    return planted_audit()


@cache
def planted_audit() -> rt.Audit:
    """Return an audit of four topics, in one of which llm is favoured."""
    collection = twins(without_topic=3)
    run = run_that_favours(collection, {"health": 3.0})
    return rt.audit(
        collection, run, ["nDCG@5", "AP@5"], card=True, by_query="topic", resamples=RESAMPLES
    )


def test_planted_tilt_is_found_and_named(planted: rt.Audit) -> None:
    breakdown = planted.by_query
    assert breakdown is not None
    (difference,) = [row for row in breakdown.differences if row.question == "nDCG@5"]
    assert difference.groups == TOPICS
    assert difference.is_shown
    worst = breakdown.worst(difference)
    assert worst is not None
    assert (worst.group, worst.effect.favours) == ("health", "b")
    favouring = [
        answer.group for answer in breakdown.answers_to(difference) if answer.effect.favours
    ]
    assert favouring == ["health"]
    rest = {
        row.group: row.p_corrected for row in breakdown.against_rest if row.question == "nDCG@5"
    }
    assert min(rest, key=rest.__getitem__) == "health"
    assert rest["health"] < 0.01


def test_page_and_print_say_so_in_one_line(planted: rt.Audit) -> None:
    lines = [line for line in str(planted).splitlines() if "groups of queries" in line]
    assert len(lines) == 1
    assert lines[0].startswith("planted: the tilt differs between groups of queries by topic")
    assert "it is largest in health, toward llm" in lines[0]
    assert "the largest of 4" in lines[0]
    assert "3 queries have no topic, and count in no group" in str(planted)


def test_every_answer_is_that_of_an_audit_of_these_queries_alone(planted: rt.Audit) -> None:
    collection = twins(without_topic=3)
    run = run_that_favours(collection, {"health": 3.0})
    health = collection.queries.filter(pl.col("topic") == "health")["id"]
    alone = rt.audit(
        collection.only_queries(health),
        run,
        ["nDCG@5", "AP@5"],
        card=True,
        resamples=RESAMPLES,
    )
    breakdown = planted.by_query
    assert breakdown is not None
    answers = {
        answer.effect.measure: answer.effect
        for answer in breakdown.answers
        if answer.group == "health"
    }
    for effect in (*alone.tilts, *alone.card):
        same = answers[effect.measure]
        assert (same.value, same.low, same.high, same.p, same.queries) == pytest.approx(
            (effect.value, effect.low, effect.high, effect.p, effect.queries), nan_ok=True
        )
    assert set(answers) == {effect.measure for effect in (*alone.tilts, *alone.card)}


def test_audit_without_groups_says_the_same_of_all_queries(planted: rt.Audit) -> None:
    collection = twins(without_topic=3)
    run = run_that_favours(collection, {"health": 3.0})
    plain = rt.audit(collection, run, ["nDCG@5", "AP@5"], card=True, resamples=RESAMPLES)
    assert plain.tilts == planted.tilts
    assert plain.by_query is None


def test_equal_tilts_do_not_differ() -> None:
    collection = twins()
    run = run_that_favours(collection, dict.fromkeys(TOPICS, 1.0))
    audit = rt.audit(collection, run, "nDCG@5", by_query="topic", resamples=RESAMPLES)
    assert audit.by_query is not None
    (difference,) = audit.by_query.differences
    assert difference.p > 0.05
    assert "the tilt is not shown to differ" in str(audit)


def test_differences_from_the_rest_follow_from_the_groups_values() -> None:
    """Of Relative Δ, whose value is a ratio of sums, to the last bits."""
    collection = twins()
    run = run_that_favours(collection, {"law": 1.0})
    audit = rt.audit(collection, run, "nDCG@5", by_query="topic", resamples=RESAMPLES)
    assert audit.by_query is not None
    a, b = audit.values[0, 0, 1], audit.values[0, 0, 2]
    is_law = (collection.queries["topic"] == "law").to_numpy()
    inside, outside = (
        200 * (a[mask].sum() - b[mask].sum()) / (a[mask].sum() + b[mask].sum())
        for mask in (is_law, ~is_law)
    )
    (rest,) = [row for row in audit.by_query.against_rest if row.group == "law"]
    together = 200 * (a.sum() - b.sum()) / (a.sum() + b.sum())
    # Linear at the value over all queries: exact for a ratio with the same denominator.
    assert rest.value == pytest.approx((inside - together) - (outside - together), rel=1e-9)


def test_small_groups_are_shown_and_decide_nothing() -> None:
    collection = twins()
    run = run_that_favours(collection, {"health": 3.0})
    rare = ["rare" if number < 6 else "usual" for number in range(QUERIES)]
    queries = collection.queries.with_columns(topic=pl.Series(rare))
    collection = rt.Collection(collection.docs, queries, collection.qrels)
    audit = rt.audit(collection, run, "nDCG@5", by_query="topic", resamples=RESAMPLES)
    assert audit.by_query is not None
    (difference,) = audit.by_query.differences
    assert (difference.groups, np.isnan(difference.p)) == ((), True)
    by_group = {answer.group: answer.effect for answer in audit.by_query.answers}
    assert (by_group["rare"].queries, by_group["rare"].verdict()) == (6, "inconclusive")
    text = str(audit)
    # No group is the largest of one.
    assert "cannot be compared: fewer than two have 10 queries that count\n" in text
    assert "Nothing is decided for groups of fewer than 10 queries by topic: rare (6)" in text


@pytest.mark.parametrize("question", ["Share@10", "ExposureRatio@10"])
def test_lists_of_other_documents_are_no_difference(question: str) -> None:
    """Half of the documents of each list are human, in one topic a tenth, in random order."""
    rng = np.random.default_rng(3)
    docs = [
        {
            "id": f"d{n}",
            "text": f"text {n}",
            "source": "ai" if n % 2 else "human",
            "origin": f"d{n}",
        }
        for n in range(300)
    ]
    queries = {f"q{n}": f"question {n}" for n in range(60)}
    collection = collection_of(docs, queries, {})
    scores = {}
    for number, query in enumerate(queries):
        is_even = np.arange(300) % 2 == 0
        chance = np.where(is_even, 0.1 if number % 2 else 0.5, 0.9 if number % 2 else 0.5)
        drawn = rng.choice(300, 30, replace=False, p=chance / chance.sum())
        scores[query] = {f"d{n}": float(rng.normal()) for n in drawn}
    topics = pl.Series(["mostly ai" if n % 2 else "even" for n in range(60)])
    collection = rt.Collection(
        collection.docs, collection.queries.with_columns(topic=topics), collection.qrels
    )
    run = run_of(collection, scores)
    audit = rt.audit(collection, run, question, by_query="topic", resamples=RESAMPLES)
    assert audit.by_query is not None
    (difference,) = audit.by_query.differences
    assert difference.p > 0.05


def test_variance_beyond_noise_is_that_of_topics() -> None:
    """Opposite tilts of topics are repeatable; the same tilt of all is no variance."""
    collection = twins()
    opposite = {"health": 4.0, "law": -4.0, "sport": 4.0, "travel": -4.0}
    shares = []
    for tilt in (opposite, dict.fromkeys(TOPICS, 1.0)):
        run = run_that_favours(collection, tilt)
        audit = rt.audit(collection, run, "HeadToHead", by_query="topic", resamples=RESAMPLES)
        assert audit.by_query is not None
        (variance,) = audit.by_query.variances
        assert variance.by == "documents"
        shares.append(variance)
    assert shares[0].share > 0.8
    assert shares[0].low > 0.5
    assert shares[1].share < 0.4
    assert shares[1].low == 0


def test_saved_audit_keeps_its_groups(planted: rt.Audit, tmp_path: Path) -> None:
    file = planted.save(tmp_path / "audit.json")
    again = rt.Audit.load(file)
    assert again.to_json() == planted.to_json()
    assert again.spec["by_query"] == "topic"
    assert str(again) == str(planted)


REFUSED = [
    (
        "yaer",
        "unknown column of the queries 'yaer'; did you mean 'year'? (valid: topic, year, len…",
    ),
    (
        "source",
        "--by-query source: 'source' is a column of the documents (--by source); expected …",
    ),
    (
        "year",
        "column 'year' holds 80 different numbers; make parts of them: year:3, or year:2039.5…",
    ),
    ("topic:3", "--by-query topic:3: topic is no column of numbers (such as 'health'); name it …"),
    ("year:11", "year:11: expected 2 to 10 bins, such as year:3, …"),
    ("length", "unknown column of the queries 'length'; did you mean 'length:3'? …"),
    ("length:3", "length:3: too few distinct values of length for 3 bins: 1"),
    ("gone.csv:topic", "gone.csv: cannot be read: No such file or directory"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refused_columns(text: str, message: str) -> None:
    collection = twins()
    run = run_that_favours(collection, {})
    with refused(message):
        rt.audit(collection, run, "nDCG@5", by_query=text)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            [f"v{number}" for number in range(QUERIES)],
            "column 'x' makes 80 groups of 80 queries; expected at most 50: choose a column with "
            "fewer values",
        ),
        (
            ["same"] * QUERIES,
            "nothing to compare: only x 'same'; expected two groups of queries or more",
        ),
        (
            [""] * 40 + ["same"] * 40,
            "nothing to compare: only x 'same'; expected two groups of queries or more; 40 queries "
            "have none",
        ),
        (
            [""] * QUERIES,
            "nothing to compare: no value of x; expected two groups of queries or more; 80 queries "
            "have none",
        ),
    ],
    ids=["too many", "constant", "half empty", "empty"],
)
def test_refused_values(values: list[str], message: str) -> None:
    table = pl.DataFrame({"id": [f"q{n}" for n in range(QUERIES)], "text": "", "x": values})
    with refused(message):
        read_query_groups("x", table["id"].to_list(), table)


def test_numbers_are_cut_as_columns_of_documents_are() -> None:
    collection = twins()
    groups = read_query_groups("year:2", collection.queries["id"].to_list(), collection.queries)
    assert groups.names == ("year 2000 to 2039", "year 2040 to 2079")
    few = collection.queries.with_columns(grade=pl.Series([1, 2] * 40))
    groups = read_query_groups("grade", few["id"].to_list(), few)
    assert groups.names == ("grade 1", "grade 2")


def random_lists(seed: int) -> tuple[rt.Collection, rt.Run]:
    """Lists of documents that are no twins, in random order, with judgments and an age."""
    rng = np.random.default_rng(seed)
    docs = [
        {
            "id": f"d{number}",
            "text": f"text {number}",
            "source": "ai" if rng.random() < 0.4 else "human",
            "origin": f"d{number}",
            "age": int(rng.integers(1, 80)),
        }
        for number in range(200)
    ]
    queries = {f"q{number}": f"question {number}" for number in range(60)}
    scores, qrels = {}, {}
    for query in queries:
        drawn = rng.choice(200, 30, replace=False)
        scores[query] = {f"d{number}": float(rng.normal()) for number in drawn}
        qrels[query] = {f"d{number}": 1 for number in drawn[:12]}
    collection = collection_of(docs, queries, qrels)
    topics = pl.Series(["a" if number % 2 else "b" for number in range(60)])
    known = collection.queries.with_columns(topic=topics)
    collection = rt.Collection(collection.docs, known, collection.qrels)
    return collection, run_of(collection, scores)


@pytest.mark.long
@pytest.mark.parametrize(
    ("by", "question"),
    [
        ("source", "Share@10"),
        ("source", "NDSR@10"),
        ("source", "nDCG@10"),
        ("age", "PropertyLift@10"),
    ],
)
def test_random_lists_vary_by_noise_alone(by: str, question: str) -> None:
    shares = []
    for seed in range(6):
        collection, run = random_lists(seed)
        audit = rt.audit(
            collection, run, question, by=by, by_query="topic", resamples=100, confounds=False
        )
        assert audit.by_query is not None
        (variance,) = audit.by_query.variances
        shares.append(variance.share)
    assert np.mean(shares) < 0.3


@pytest.mark.parametrize("question", ["ExposureRatio@10", "AP@10", "RR@10"])
def test_answers_that_are_no_sums_of_documents_have_no_share(question: str) -> None:
    collection, run = random_lists(0)
    audit = rt.audit(collection, run, question, by_query="topic", resamples=100)
    assert audit.by_query is not None
    assert audit.by_query.variances == ()
    assert "of the variance of the tilt" not in str(audit)


def test_labels_that_err_are_corrected_in_each_group() -> None:
    collection, run = random_lists(1)
    audit = rt.audit(
        collection,
        run,
        "Share@10",
        by_query="topic",
        label_errors="ai:fpr=.02,fnr=.05",
        resamples=RESAMPLES,
    )
    assert audit.by_query is not None
    for answer in audit.by_query.answers:
        assert answer.effect.observed is not None
        # J = 1 − .02 − .05
        assert answer.effect.value == pytest.approx(answer.effect.observed.value / 0.93)


def test_queries_that_repeat_each_other_count_once() -> None:
    collection = twins()
    texts = [f"question {number // 2 if number < 20 else number}" for number in range(QUERIES)]
    queries = collection.queries.with_columns(text=pl.Series(texts))
    collection = rt.Collection(collection.docs, queries, collection.qrels)
    run = run_that_favours(collection, {"health": 3.0})
    audit = rt.audit(collection, run, "nDCG@5", by_query="topic", resamples=RESAMPLES)
    assert audit.by_query is not None
    (difference,) = audit.by_query.differences
    assert difference.is_shown


@pytest.mark.long
@pytest.mark.data
@pytest.mark.parametrize("sizes", [(10, 10, 10, 10), (20, 20, 30)])
def test_level_with_random_groups_of_real_rankings(
    shared_data: Path, sizes: tuple[int, ...]
) -> None:
    """Relative Δ and head-to-head of BM25 on NFCorpus: random groups differ in 5 % of draws."""
    collection = rt.load(shared_data / "cocktail-nfcorpus")
    run = rt.ranker("bm25").rank(collection)
    ids = collection.queries_with_judgments["id"].to_list()
    rng = np.random.default_rng(0)
    draws, rejected = 60, 0
    names = np.repeat(np.array(list("abcd"))[: len(sizes)], sizes)
    for _ in range(draws):
        group_of = dict(zip(rng.permutation(ids).tolist(), names.tolist(), strict=False))
        known = collection.queries.with_columns(
            topic=pl.Series([group_of.get(name) for name in collection.queries["id"]])
        )
        grouped = rt.Collection(collection.docs, known, collection.qrels)
        audit = rt.audit(
            grouped, run, "HeadToHead", by_query="topic", resamples=199, confounds=False
        )
        assert audit.by_query is not None
        (difference,) = audit.by_query.differences
        rejected += difference.p <= 0.05
    assert rejected / draws <= 0.06 + 2.6 * np.sqrt(0.05 * 0.95 / draws)
