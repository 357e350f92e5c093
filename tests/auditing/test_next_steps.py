"""What to do next: by rule from verdict, design and texts, each with a command that can be typed."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktilt.auditing.answer.next_steps import next_steps
from ranktilt.auditing.confounds import Confound
from ranktilt.auditing.result import Audit
from tests.auditing.arrays import one

HUMAN = (np.tile([0.9, 0.8], 30), np.tile([0.5, 0.6], 30))
LEVEL = (np.tile([0.5, 0.6], 30), np.tile([0.6, 0.5], 30))
UNSURE = (np.tile([1, 0, 0.2], 20), np.tile([0, 1, 0], 20))
TEXTS = (Confound("words", "human", "llm", 50, 48, 60),)


def of(values: Any, *, ranker: str = "bm25", confounds: tuple[Confound, ...] = TEXTS, **collection: Any) -> Audit:
    """An audit of one run over a folder, or over labels."""
    run = {"ranker": ranker, **({"file": "engine.trec"} if ranker.startswith("replay:") else {})}
    audit = one(*values, measures=["nDCG@10"])
    spec = {**audit.spec, "collection": collection or {"path": "data", "layout": "beir"}, "runs": [run]}
    return replace(audit, spec=spec, confounds=confounds)


def commands(audit: Audit) -> list[str]:
    return [step.command for step in next_steps(audit)]


def test_a_tilt_is_explained_levelled_and_gated() -> None:
    assert commands(of(HUMAN)) == [
        "ranktilt explain data -r bm25 --attribution",
        "ranktilt level data -r bm25 -o level.html",
        "ranktilt audit data -r bm25 --json audit.json && ranktilt gate audit.json --max-tilt 5",
    ]


def test_of_a_run_and_labels_the_options_are_those_that_were_given() -> None:
    told = {
        "labels": "pages.csv",
        "label_file": {"columns": {"doc_id": "url", "source": "is_ai"}, "names": {"1": "ai"}},
    }
    assert commands(of(HUMAN, ranker="replay:engine.trec", confounds=(), **told))[1] == (
        "ranktilt level --run engine.trec --groups pages.csv:id=url,source=is_ai --name 1=ai -o level.html"
    )


def test_texts_that_cannot_be_compared_are_checked_first() -> None:
    cut = Confound("cut-off endings", "human", "llm", 0.02, 0.4, 120)
    assert commands(of(HUMAN, confounds=(cut,)))[0] == "ranktilt check data"
    alike = Confound("near-identical", "human", "llm", 0.3, 0.3, 60)
    assert commands(of(LEVEL, confounds=(alike,)))[0] == "ranktilt check data"


def test_an_open_verdict_says_how_many_queries_would_show_ten_points() -> None:
    audit = of(UNSURE)
    (tilt,) = audit.tilts
    needed = np.ceil(60 * (tilt.detectable / 10) ** 2)
    steps = next_steps(audit)
    assert steps[0].text == f"Some {needed:,.0f} queries like these 60 would show ±10 points"
    assert steps[1].command == "ranktilt audit data -r bm25 --card"


def test_nothing_is_told_where_nobody_knows_what_was_read() -> None:
    assert [step.text for step in next_steps(of(LEVEL))] == ["Keep it so in CI"]
    assert commands(of(HUMAN, path="bundled")) == []  # no folder of that name was read
    assert next_steps(replace(one(*HUMAN), spec={**one(*HUMAN).spec, "collection": {}})) == ()


@pytest.mark.parametrize("values", [HUMAN, LEVEL, UNSURE])
def test_json_holds_verdicts_steps_and_effects(values: Any) -> None:
    audit = of(values)
    content = json.loads(audit.to_json())
    (verdict,), (effect,) = content["verdicts"], content["effects"]
    assert (verdict["kind"], verdict["sentence"]) == audit.verdict("run")[1:4:2]
    assert (verdict["primary"], verdict["margin"], verdict["side"]) == ("nDCG@10", 5.0, effect["side"])
    assert (effect["question"], effect["value"], effect["unit"]) == ("nDCG@10", audit.tilts[0].value, "%")
    assert [step["command"] for step in content["next_steps"]] == commands(audit)
