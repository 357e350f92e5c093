"""The tables of real audits that README and the tour show are what the tool prints."""

import re
from pathlib import Path

import pytest

import ranktilt as rt

pytestmark = pytest.mark.data
README = Path(__file__).parents[1] / "README.md"
TOUR = README.parent / "docs" / "tour.md"
MEASURES = ("nDCG@1", "nDCG@5", "nDCG@10")


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


@pytest.fixture(scope="module")
def collection(shared_data: Path) -> rt.Collection:
    return rt.load(shared_data / "cocktail-nfcorpus")


@pytest.fixture(scope="module")
def ranked(collection: rt.Collection) -> dict[str, rt.Run]:
    return {name: rt.ranker(name).rank(collection) for name in ("tfidf", "bm25")}


@pytest.mark.parametrize("ranker", ["tfidf", "bm25"])
def test_the_lexical_rankers_of_the_table(collection: rt.Collection, ranked: dict[str, rt.Run], ranker: str) -> None:
    printed = rt.table(rt.audit(collection, ranked[ranker], MEASURES))
    shown = rows(README.read_text(encoding="utf-8"), ranker)
    assert len(shown) == 5
    assert shown == rows(printed, ranker)


def test_what_the_length_control_is_said_to_show(collection: rt.Collection, ranked: dict[str, rt.Run]) -> None:
    run = ranked["tfidf"]
    found = rt.controls(collection, [rt.ranker("tfidf")], [run], rt.audit(collection, run, "nDCG@1"), which=["length"])
    raw, length = (f"{one.tilts[0].value:+.1f}".replace("-", "−") for one in found.controls)
    text = " ".join(TOUR.read_text(encoding="utf-8").split())
    assert f"TF-IDF's {raw} % on nDCG@1 becomes {length} % when both sides have the same length" in text


def test_bm25_is_shown_to_favour_rewrites_where_the_noisiest_measure_shows_nothing(
    collection: rt.Collection, ranked: dict[str, rt.Run]
) -> None:
    found = rt.audit(collection, ranked["bm25"], keep_top=0)
    verdict = found.verdict("bm25")
    assert (verdict.kind, verdict.side, verdict.primary) == ("favours", "llama-2-7b-chat-tmp0.2", "nDCG@10")
    noisiest = next(tilt for tilt in found.tilts if tilt.measure == "nDCG@1")
    assert noisiest.verdict() == "inconclusive"
