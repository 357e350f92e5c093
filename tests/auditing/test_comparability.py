"""What two audits differ in besides their runs: twins, inputs, depths, and how growth is told."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktilt import Audit, audit
from ranktilt.auditing.comparison.compare import compare
from ranktilt.auditing.gate.gate import gate
from ranktilt.data.artifact import Result
from ranktilt.reporting.output import table
from ranktilt.reporting.sentences.notes import note_sentences
from tests.auditing.arrays import two_group_audit
from tests.toy import collection_of, run_of

NOISE = np.random.default_rng(3).normal(0, 0.1, (2, 40))
HUMAN, LLM = np.clip(0.5 + NOISE, 0, 1)
NULL = np.random.default_rng(4).normal(20, 5, 100)


def audited(**spec: Any) -> Audit:
    return two_group_audit(HUMAN, LLM, **spec)


def notes_of(result: Result) -> tuple[str, ...]:
    return note_sentences(result.notes)  # type: ignore[attr-defined]


def compared(new: Audit, old: Audit) -> tuple[str, ...]:
    return notes_of(compare(new, old, resamples=200))


TWINS = (
    "warning: only the {} audit compares twins; the {} audit compares any documents of two groups, "
    "so a difference of tilts can come from that alone. Audit both with the same labels and "
    "judgments"
)


def test_twins_of_one_audit_alone_are_said() -> None:
    twins, others = audited(), audited(null=NULL)
    for new, old, sides in ((twins, others, ("new", "old")), (others, twins, ("old", "new"))):
        expected = TWINS.format(*sides)
        assert compared(new, old) == (expected,)
        assert expected in notes_of(gate(new, baseline=old, resamples=200))
    # Medians are neutral only where neither audit has twins.
    (note,) = compared(others, others)
    assert note.startswith("human and llm are not twins: a tilt is the distance from the median")


FOLDER = {"path": "/data", "split": "test"}
FILES = {"labels": "/x/labels.csv", "qrels": "/x/qrels.txt"}


def inputs(**hashes: str) -> list[dict[str, str]]:
    paths = {
        "corpus": "/data/corpus.jsonl",
        "queries": "/data/queries.jsonl",
        "folded": "/data/qrels/test.tsv",
        "labels": "/x/labels.csv",
        "qrels": "/x/qrels.txt",
        "run": "/runs/a.trec",
    }
    return [{"path": paths[name], "sha256": sha} for name, sha in hashes.items()]


@pytest.mark.parametrize(
    ("collection", "new", "old", "notes"),
    [
        (FOLDER, {"corpus": "1", "folded": "2"}, {"corpus": "1", "folded": "2"}, []),
        (FOLDER, {"run": "1", "queries": "2"}, {"run": "3", "queries": "4"}, []),
        (FOLDER, {"folded": "1"}, {"folded": "2"}, ["warning: the judgments are in different"]),
        (FOLDER, {"corpus": "1"}, {"corpus": "2"}, ["the documents are in different files (new: "]),
        (FILES, {"labels": "1"}, {"labels": "2"}, ["warning: the labels are in different files"]),
        (FILES, {"qrels": "1"}, {"qrels": "2"}, ["warning: the judgments are in different files"]),
        (FILES, {"qrels": "1"}, {"labels": "2"}, []),
        ({**FOLDER, **FILES}, {"folded": "1"}, {"folded": "2"}, []),
    ],
)
def test_other_inputs_are_said(
    collection: dict[str, str], new: dict[str, str], old: dict[str, str], notes: list[str]
) -> None:
    sides = [audited(collection=collection, inputs=inputs(**hashes)) for hashes in (new, old)]
    sentences = compared(*sides)
    assert len(sentences) == len(notes)
    for sentence, note in zip(sentences, notes, strict=True):
        assert sentence.startswith(note)
        part = note.removeprefix("warning: ").split()[1]
        assert sentence.endswith(f"To compare the runs alone, audit both with the same {part}")


def test_other_depths_are_said_within_the_cutoff() -> None:
    docs: list[Any] = []
    for row in range(4):
        for side in ("human", "ai"):
            docs.append(
                {"id": f"d{row}{side}", "source": side, "origin": f"d{row}", "text": "text"}
            )
    grades = {"d0human": 1, "d0ai": 1}
    collection = collection_of(docs, {"q1": "one", "q2": "two"}, {"q1": grades, "q2": grades})
    scores = {doc["id"]: 8.0 - index for index, doc in enumerate(docs)}
    audits = []
    for depth, name in ((8, "deep"), (3, "short")):
        top = dict(list(scores.items())[:depth])
        run = run_of(collection, {"q1": top, "q2": top}, name=name)
        audits.append(audit(collection, run, ["nDCG@5"], resamples=200))
    assert (
        "the lists of deep are 8 deep, those of short 3: a document below the shorter ones counts "
        "as not found"
    ) in compared(*audits)
    by_three = [audit_at_three(collection, audited) for audited in audits]
    assert not any("deep, those" in note for note in compared(*by_three))


def audit_at_three(collection: Any, audited: Audit) -> Audit:
    assert audited.top_results is not None
    return audit(collection, audited.top_results.runs[0], ["nDCG@3"], resamples=200)


def test_growth_in_compare_and_gate() -> None:
    noise = np.tile([0.05, -0.05, 0.02, -0.02], 10)
    level = two_group_audit(HUMAN, HUMAN + noise)
    human = two_group_audit(HUMAN + 0.3, HUMAN + 0.01 * noise)
    more_human = two_group_audit(HUMAN + 0.4, HUMAN + 0.01 * noise)
    words = "judges the growth of a tilt, |new| − |old|, and not the difference, new − old; here"
    gate_words = "growth is |tilt now| − |tilt before|, both from neutral; ranktilt compare also …"
    for new, old, is_apart in ((human, level, True), (more_human, human, False)):
        comparison = compare(new, old, resamples=200)
        assert comparison.tilts[0].has_growth_apart is is_apart
        assert (words in table(comparison, "table")) is is_apart
        gated = notes_of(gate(new, baseline=old, resamples=200))
        assert any(note.startswith(gate_words[:-1]) for note in gated) is is_apart
    turned = replace(comparison.tilts[0].swapped())
    assert not turned.has_growth_apart
