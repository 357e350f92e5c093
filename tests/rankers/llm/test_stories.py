"""A model that only tells stories ranks from end to end, and the audit says that it ranked nothing."""

from pathlib import Path

import pytest

from ranktilt import audit, ranker
from tests.toy import toy

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = [pytest.mark.neural, pytest.mark.data]


@pytest.mark.parametrize("name", ["listwise", "pairwise", "setwise", "pointwise"])
def test_the_audit_says_that_a_model_of_stories_ranks_nothing(name: str, stories: Path, own_cache: Path) -> None:
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
