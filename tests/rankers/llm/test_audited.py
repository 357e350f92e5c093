"""A language model whose mind is known is found out by the audit, and so is one that says nothing."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from ranktilt import Collection, Run, audit, ranker
from tests.llm.server import Server
from tests.rankers.llm.judge import Judge, worth
from tests.toy import collection_of, toy

QUERIES, TOPICS = 60, 12


@pytest.fixture(scope="module")
def mixed() -> tuple[Collection, Run]:
    """For each query one relevant text and eleven others, each with a twin of another source that is worth as much."""
    chance = random.Random(1)
    docs, judged = [], {}
    for query in range(QUERIES):
        for topic in range(TOPICS):
            origin, value = f"q{query}t{topic}", chance.random() + (topic == 0)
            for source in ("human", "llm"):
                text = f"text {origin}, by {source}, worth {value + chance.random() / 9:.4f}"
                docs.append({"id": f"{origin}-{source}", "text": text, "source": source, "origin": origin})
        judged[f"q{query}"] = {f"q{query}t0-human": 1, f"q{query}t0-llm": 1}
    collection = collection_of(docs, {name: f"question {name}" for name in judged}, judged)
    each = 2 * TOPICS
    order = np.concatenate([each * query + np.array(chance.sample(range(each), each)) for query in range(QUERIES)])
    scores = np.tile(np.arange(each, 0, -1, dtype=np.float64), QUERIES)
    return collection, Run(tuple(judged), np.arange(QUERIES + 1) * each, order, scores, collection.ids)


def favouring(text: str) -> float:
    return worth(text) + (0.5 if "by llm" in text else 0.0)


@pytest.mark.parametrize(
    ("judge", "verdict"),
    [(Judge(), None), (Judge(value=favouring), "llm"), (Judge(value=favouring, prose=1.0), None)],
    ids=["fair", "tilted", "prose"],
)
def test_the_audit_finds_what_the_judge_favours(
    mixed, judge: Judge, verdict: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path))
    collection, first = mixed
    with Server(answer=judge) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run = ranker("listwise:openai:tiny(window=12,step=6)").rank(collection, first)
    found = audit(collection, [run], ["nDCG@3"], resamples=1_000)
    assert found.verdict(found.runs[0]).side == verdict
    notes = " ".join(found.notes)
    kind = "off-format" if judge.prose else "ok"
    assert f"180 answers: 180 {kind}; " in notes
    assert ("100% of the answers say nothing of their passages, which stand in random order" in notes) == bool(
        judge.prose
    )


@pytest.mark.neural
@pytest.mark.data
@pytest.mark.parametrize("name", ["listwise", "pairwise", "setwise", "pointwise"])
def test_the_audit_says_that_a_model_of_stories_ranks_nothing(name: str, stories: Path, own_cache: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    spec = f"{name}:transformers:{stories}(passage_tokens=20)"
    run = ranker(f"bm25@3>>{spec}").rank(toy())
    answers = run.spec["llm_answers"]
    unreadable = answers["kinds"].get("off-format", 0)
    assert unreadable >= 0.9 * answers["requests"] > 0
    assert answers["unreadable"], "the first such answer is kept"
    notes = "\n".join(audit(toy(), run, ["nDCG@3"]).notes)
    assert f"{unreadable} off-format; {answers['tokens_read']:,} tokens read" in notes
    assert f"warning: bm25@3>>{spec}: " in notes
    assert "in random order; what is measured is mostly that, not the model" in notes
