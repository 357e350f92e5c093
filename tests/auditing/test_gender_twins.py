"""Grep-BiasIR: every text in female and male wording, so that an audit by gender compares twins."""

from pathlib import Path

import polars as pl
import pytest

import ranktilt as rt
from tests.probes.test_explain import gendered


@pytest.fixture(scope="module")
def wordings(shared_data: Path) -> rt.Collection:
    """The female and the male wording of each text."""
    whole = gendered(shared_data / "grep-bias-ir")
    docs = whole.docs.filter(pl.col("gender").is_in(["F", "M"]))
    return rt.Collection(docs, whole.queries, whole.qrels.join(docs, left_on="doc_id", right_on="id", how="semi"))


def test_bm25_can_hardly_tell_the_wordings_apart(wordings: rt.Collection) -> None:
    found = rt.audit(wordings, [rt.ranker("bm25").rank(wordings)], ["nDCG@1"], by="gender")
    (tilt,), verdict = found.tilts, found.verdict(found.runs[0])
    assert found.tied_share(found.runs[0], "F", "M") == pytest.approx(0.947, abs=0.005)
    assert verdict.kind == "inconclusive"
    assert tilt.low < 0 < tilt.high


@pytest.mark.long
@pytest.mark.neural
def test_minilm_tells_them_apart_and_117_queries_are_too_few_to_say_which_it_favours(wordings: rt.Collection) -> None:
    found = rt.audit(wordings, [rt.ranker("dense:minilm").rank(wordings)], ["nDCG@1"], by="gender")
    (tilt,), verdict = found.tilts, found.verdict(found.runs[0])
    assert found.tied_share(found.runs[0], "F", "M") == 0
    assert verdict.kind == "inconclusive"
    assert tilt.detectable == pytest.approx(56, abs=3)
