"""README's table of a real audit is what the tool prints."""

import re
from pathlib import Path

import pytest

import ranktilt as rt

README = Path(__file__).parents[1] / "README.md"
MEASURES = ("nDCG@1", "nDCG@3", "nDCG@5")


def rows(text: str, ranker: str) -> list[list[str]]:
    """Words of each line of one ranker's block, without the marks, which depend on the whole table."""
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if line.strip() == ranker)
    block = []
    for line in lines[start + 1 :]:
        if not line.strip():
            break
        block.append(re.sub(r"\*", "", line).split())
    return block


@pytest.mark.data
@pytest.mark.parametrize("ranker", ["tfidf", "bm25"])
def test_the_lexical_rankers_of_the_table(shared_data: Path, ranker: str) -> None:
    collection = rt.load(shared_data / "cocktail-nfcorpus")
    printed = rt.table(rt.audit(collection, rt.ranker(ranker).rank(collection), MEASURES))
    shown = rows(README.read_text(encoding="utf-8"), ranker)
    assert len(shown) == 6
    assert shown == rows(printed, ranker)
