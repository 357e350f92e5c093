"""The tables of real audits that README and the tour show are what the tool prints."""

import re
from pathlib import Path

import pytest

import ranktilt as rt
from ranktilt.reporting.views.validate import headline

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


@pytest.mark.data
@pytest.mark.parametrize("ranker", ["tfidf", "bm25"])
def test_the_lexical_rankers_of_the_table(shared_data: Path, ranker: str) -> None:
    collection = rt.load(shared_data / "cocktail-nfcorpus")
    printed = rt.table(rt.audit(collection, rt.ranker(ranker).rank(collection), MEASURES))
    shown = rows(README.read_text(encoding="utf-8"), ranker)
    assert len(shown) == 5
    assert shown == rows(printed, ranker)


@pytest.mark.data
def test_the_card_shown(shared_data: Path) -> None:
    collection = rt.load(shared_data / "cocktail-nfcorpus")
    run = rt.ranker("bm25(k1=0.9,b=0.4)").rank(collection)
    printed = rt.table(rt.audit(collection, run, "nDCG@3", card=True)).partition("The question card")[2]
    block = TOUR.read_text(encoding="utf-8").partition("The question card, every number")[2].partition("```")[0]
    shown = rows(block, run.name)
    assert len(shown) == 10
    # The last column's texts wrap, so what is shown are the printed lines in their order, with others between them.
    lines = iter(rows(printed, run.name))
    assert all(any(line == whole[: len(line)] for whole in lines) for line in shown)


@pytest.mark.data
def test_what_the_length_control_is_said_to_do(shared_data: Path) -> None:
    collection = rt.load(shared_data / "cocktail-nfcorpus")
    ranker = rt.ranker("tfidf")
    run = ranker.rank(collection)
    found = rt.controls(collection, [ranker], [run], rt.audit(collection, run, "nDCG@1"), which=["length"])
    raw, length = (f"{one.tilts[0].value:+.1f}".replace("-", "−") for one in found.controls)
    text = " ".join(TOUR.read_text(encoding="utf-8").split())
    assert f"TF-IDF's {raw} % on nDCG@1 becomes {length} % when both sides have one length" in text


@pytest.mark.data
def test_the_validation_shown(shared_data: Path) -> None:
    collection = rt.load(shared_data / "cocktail-nfcorpus")
    found = rt.validate(collection, [rt.ranker("tfidf"), rt.ranker("bm25")])
    shown = " ".join(TOUR.read_text(encoding="utf-8").split())
    assert headline(found).replace("words;", "words and stay close in meaning;") in shown


@pytest.mark.data
def test_bm25_is_shown_to_favour_rewrites_where_the_noisiest_measure_shows_nothing(shared_data: Path) -> None:
    collection = rt.load(shared_data / "cocktail-nfcorpus")
    found = rt.audit(collection, rt.ranker("bm25").rank(collection), keep_top=0)
    verdict = found.verdict("bm25")
    assert (verdict.kind, verdict.side, verdict.primary) == ("favours", "llama-2-7b-chat-tmp0.2", "nDCG@10")
    noisiest = next(tilt for tilt in found.tilts if tilt.measure == "nDCG@1")
    assert noisiest.verdict() == "inconclusive"
