"""Estimands beyond the relevance measures: typed like them, answered on the card, printed everywhere."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt import Audit, Collection, Run, UserError
from ranktilt.measures import base
from ranktilt.measures.base import GroupEstimand
from ranktilt.measures.exposure_ratio import ExposureRatio
from ranktilt.reporting.output import table
from tests.toy import toy

QUICK: dict[str, Any] = {"resamples": 200, "confounds": False}


@dataclass(frozen=True, repr=False)
class FirstRank(GroupEstimand):
    """Share of lists whose first document is of the first group, less that of the second."""

    name = "FirstRank"
    question = "who stands first?"
    term = "first rank"
    definition = "Who stands first, of two groups."
    bounds = (-1.0, 1.0)

    def contrast(self, ranking: Any, first: Any, second: Any) -> Any:
        filled = np.diff(ranking.offsets) > 0
        top = np.where(filled, ranking.offsets[:-1], 0)
        return np.where(filled, first[top].astype(float) - second[top], np.nan)


MINE = FirstRank()


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The estimand as another package gives it."""
    point = EntryPoint("FirstRank", f"{__name__}:MINE", base.ENTRY_POINTS)
    monkeypatch.setattr(base, "entry_points", lambda group: [point] if group == base.ENTRY_POINTS else [])
    base.estimands.cache_clear()
    yield
    base.estimands.cache_clear()


def listed(collection: Collection) -> Run:
    """Human documents first in two lists, the LLM's in the third."""
    found = [("q1", "d1-human", 2.0), ("q1", "d1-llm", 1.0), ("q2", "d2-human", 2.0), ("q2", "d2-llm", 1.0),
             ("q3", "d3-llm", 2.0), ("q3", "d3-human", 1.0)]  # fmt: skip
    return Run.from_frame(
        pl.DataFrame(found, schema=["query_id", "doc_id", "score"], orient="row"), spec={"ranker": "r"}
    )


@pytest.mark.usefixtures("plugged")
def test_an_estimand_of_another_package_prints_everywhere(tmp_path: Path) -> None:
    collection = toy()
    found = rt.audit(collection, listed(collection), ["nDCG@3", "FirstRank"], **QUICK)
    (effect,) = found.estimates
    assert (effect.estimand, round(effect.value, 3), effect.queries) == (MINE, 0.333, 3)
    assert Audit.load(found.save(tmp_path / "audit.json")) == found
    assert json.loads(found.to_json())["card"][0]["estimand"] == "FirstRank"
    for form in ("table", "markdown", "latex", "csv"):
        assert "FirstRank" in table(found, format=form), form
    page = rt.report(found, tmp_path / "page.html", collection=collection).read_text()
    assert "who stands first?" in page


@pytest.mark.usefixtures("plugged")
def test_one_that_is_not_installed_any_more_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = rt.audit(toy(), listed(toy()), ["FirstRank"], **QUICK).save(tmp_path / "audit.json")
    monkeypatch.setattr(base, "entry_points", lambda group: [])
    base.estimands.cache_clear()
    with pytest.raises(rt.DataError, match="unknown measure 'FirstRank'"):
        Audit.load(path)


def test_the_primary_question_gives_the_verdict() -> None:
    collection, asked = toy(), ["ExposureRatio@20", "nDCG@3"]
    first = rt.audit(collection, listed(collection), asked, primary="ExposureRatio@20", by="source", **QUICK)
    assert first.primary == ExposureRatio @ 20
    assert " of the attention of llm text, document for document" in first.verdict("r").sentence
    second = rt.audit(collection, listed(collection), asked, by="source", **QUICK)
    assert "Relative Δ" in second.verdict("r").sentence
    assert [e.name for e in second.estimates] == ["ExposureRatio@20"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"measures": ["ExposureRatio@20"], "by": None}, "ExposureRatio@20 needs a column to group by"),
        ({"measures": ["NDSR"]}, "measure NDSR needs a cutoff, such as NDSR@10"),
        ({"measures": ["HeadToHead(pairs=some)"]}, "unknown pairs of measure HeadToHead 'some'"),
        ({"measures": ["NDSR(rel=2)@3"]}, "measure NDSR takes no option"),
        ({"measures": ["NDSR@3", "NDSR@3"]}, "measure 'NDSR@3' is given twice"),
    ],
)
def test_what_cannot_be_asked_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as caught:
        rt.audit(toy(), listed(toy()), **{**QUICK, **options})
    assert str(caught.value).startswith(said)


def test_a_card_asks_each_question_once() -> None:
    collection = toy()
    found = rt.audit(collection, listed(collection), ["nDCG@3", "NDSR@20", "NDSR@1"], card=True, **QUICK)
    names = [e.name for e in found.estimates]
    assert len(names) == len(set(names))
    assert names[-1] == "ΔNDSR@1"


def uneven(lists: int, length: int, share: float) -> tuple[Collection, Run]:
    """Lists of documents of their own, so many of them of group a, in random order."""
    rng = np.random.default_rng(3)
    docs, rows = [], []
    for q in range(lists):
        labels = np.where(np.arange(length) < round(share * length), "a", "b")
        for rank, label in enumerate(rng.permutation(labels)):
            docs.append({"id": f"{q}-{rank}", "text": "", "source": "s", "origin": f"{q}-{rank}", "kind": str(label)})
            rows.append({"query_id": f"q{q}", "doc_id": f"{q}-{rank}", "score": -float(rank)})
    queries = pl.DataFrame({"id": [f"q{q}" for q in range(lists)], "text": [""] * lists})
    judged = pl.DataFrame({"query_id": queries["id"], "doc_id": [f"{q}-0" for q in range(lists)], "grade": [1] * lists})
    return Collection(pl.DataFrame(docs), queries, judged), Run.from_frame(pl.DataFrame(rows), spec={"ranker": "r"})


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_the_random_band_is_that_of_shuffled_lists(share: float) -> None:
    collection, run = uneven(20, 15, share)
    (effect,) = rt.audit(collection, run, ["ExposureRatio@10"], by="kind", pairs=[("a", "b")], **QUICK).estimates
    rng, seen = np.random.default_rng(8), 1 / np.log(2.0 + np.arange(15)) * (np.arange(15) < 10)
    values = []
    for _ in range(4_000):
        ratios = []
        for _ in range(20):
            mine = rng.permutation(np.arange(15) < round(share * 15))
            ratios.append(seen[mine].mean() / seen[~mine].mean())
        values.append(np.mean(ratios))
    low, high = np.quantile(values, [0.025, 0.975])
    assert (effect.band_low, effect.band_high) == pytest.approx((low, high), abs=0.035)
    assert effect.level == pytest.approx(np.median(values), abs=0.02)
    assert effect.level < (low + high) / 2  # the band is skewed
    assert effect.favours == ""


def test_a_ratio_stays_as_it_is_whichever_group_is_asked_for_first() -> None:
    collection, run = uneven(5, 10, 0.5)
    found = rt.audit(collection, run, ["ExposureRatio"], by="kind", pairs=[("a", "b")], **QUICK)
    assert found.estimates_of("r", "b", "a") == [*found.estimates]
