"""What is known of label errors, as users write it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ranktilt.data.labels.label_errors import LabelErrors
from tests.refusals import refused


def test_rates_of_every_way_to_write_them() -> None:
    errors = LabelErrors.from_text("ai:fpr=.02|2%|2/100,fnr=.1|.2|.3,by=length:3")
    assert errors.rates is not None
    assert errors.rates.group == "ai"
    assert errors.by == "length:3"
    assert [rate.value for rate in errors.rates.false_positive] == pytest.approx([0.02] * 3)
    assert [rate.checked for rate in errors.rates.false_positive] == [np.inf, np.inf, 100]


@dataclass(frozen=True, kw_only=True)
class Refusal:
    text: str
    message: str


REFUSALS = [
    Refusal(
        text="ai:fpr=1.5,fnr=.1",
        message="--label-errors ai:fpr=1.5,fnr=.1: expected fpr as a rate from 0 to 1, such as "
        ".02, or as errors among checked documents, such as 2/100; got 1.5",
    ),
    Refusal(text="ai:fpr=-.1,fnr=.1", message="--label-errors ai:fpr=-.1,fnr=.1: expected fpr…"),
    Refusal(text="ai:fpr=3/2,fnr=.1", message="--label-errors ai:fpr=3/2,fnr=.1: expected fpr…"),
    Refusal(text="ai:fpr=0/0,fnr=.1", message="--label-errors ai:fpr=0/0,fnr=.1: expected fpr…"),
    Refusal(text="ai:fpr=few,fnr=.1", message="--label-errors ai:fpr=few,fnr=.1: expected fpr…"),
    Refusal(text="ai:fpr=nan,fnr=.1", message="--label-errors ai:fpr=nan,fnr=.1: expected fpr…"),
    Refusal(
        text="ai:fpr=.6,fnr=.5",
        message="--label-errors ai:fpr=.6,fnr=.5: fpr + fnr is 1.1; from 1 on labels say nothing "
        "about the groups, so that no answer can be corrected",
    ),
    Refusal(
        text="ai:fpr=.1",
        message="--label-errors ai:fpr=.1: fnr, the rate of false negatives, is missing; state "
        "both, such as ai:fpr=.02,fnr=.05",
    ),
    Refusal(
        text="ai:fpr=.1|.2,fnr=.1|.2",
        message="--label-errors ai:fpr=.1|.2,fnr=.1|.2: several rates need the column by whose "
        "parts they differ, such as by=length:3",
    ),
    Refusal(
        text="ai:fpr=.1|.2,fnr=.1,by=length:2",
        message="--label-errors ai:fpr=.1|.2,fnr=.1,by=length:2: expected as many rates for fpr "
        "as for fnr, got 2 and 1",
    ),
    Refusal(text="ai:fpr=.1,fnr=.1,n=5", message="--label-errors ai:fpr=.1,fnr=.1,n=5: unknown…"),
    Refusal(text="ai:fpr=.1,fpr=.2,fnr=.1", message="…"),
    Refusal(
        text="gone.csv",
        message="--label-errors: expected rates, such as ai:fpr=.02,fnr=.05, or the file of a "
        "checked sample; there is no file 'gone.csv'",
    ),
    Refusal(
        text="",
        message="--label-errors: expected rates, such as ai:fpr=.02,fnr=.05, or the file of a "
        "checked sample; got nothing",
    ),
    Refusal(
        text=".",
        message="--label-errors: expected rates, such as ai:fpr=.02,fnr=.05, or the file of a "
        "checked sample; '.' is a folder",
    ),
    Refusal(text=".:true=a", message="--label-errors: expected rates…"),
    Refusal(text="gone.csv:by=length:3", message="--label-errors: expected rates…"),
    Refusal(text="ai:", message="--label-errors: expected rates…"),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.text)
def test_rates_that_cannot_be_are_refused(case: Refusal) -> None:
    with refused(case.message):
        LabelErrors.from_text(case.text)


SAMPLES = {
    "rows.csv": "id,true,label\nd1,ai,ai\nd2,ai,human\nd3,human,human\n",
    "counts.tsv": "truth\tpredicted\tcount\nai\tai\t1\nai\thuman\t1\nhuman\thuman\t1\n",
    "table.csv": "true,ai,human\nai,1,1\nhuman,0,1\n",
    "rows.jsonl": '{"true": "ai", "label": "ai"}\n{"true": "ai", "label": "human"}\n'
    '{"true": "human", "label": "human"}\n',
    "table.json": '{"ai": {"ai": 1, "human": 1}, "human": {"human": 1}}',
    "list.json": '[{"gold": "ai", "label": "ai"}, {"gold": "ai", "label": "human"}, '
    '{"gold": "human", "label": "human"}]',
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_layout_of_a_checked_sample(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(SAMPLES[name])
    errors = LabelErrors.from_text(str(path))
    assert errors.sample is not None
    rows = errors.sample.rows.filter(errors.sample.rows["count"] > 0)
    counted = {(truth, label): count for truth, label, count, *_ in rows.iter_rows()}
    assert counted == {("ai", "ai"): 1, ("ai", "human"): 1, ("human", "human"): 1}


def test_named_columns_and_parts(tmp_path: Path) -> None:
    path = tmp_path / "checked.csv"
    path.write_text("who,said,lang,url\nai,ai,en,u1\nhuman,ai,de,u2\n")
    errors = LabelErrors.from_text(f"{path}:true=who,label=said,id=url,by=lang")
    assert errors.sample is not None
    assert errors.sample.rows.rows() == [
        ("ai", "ai", 1.0, "u1", "en"),
        ("human", "ai", 1.0, "u2", "de"),
    ]


FAULTS = {
    "true,label\nai,.93\nhuman,.12\n": "expected the label of each document, got a probability: "
    ".93; cut the probabilities, such as at .5, and give the labels of that cut",
    "id,label\nd1,ai\n": "expected labels of a checked sample, in the columns true and label (and "
    "count), got id, label; name the column of the true group: FILE:true=COLUMN",
    "true,label,count\nai,ai,-1\n": "expected counts of at least 0, got '-1' in row 1",
    "true,label,count\nai,ai,many\n": "expected counts of at least 0, got 'many' in row 1",
    "no table at all\n": "expected labels of a checked sample, in the columns true and label (and "
    "count), got 'no table at all'",
    "true,label\n": "expected rows below the header, got none",
    "": "expected labels of a checked sample, in the columns true and label (and count), got an "
    "empty file",
    "\0\1\2\0\1\2": "expected labels of a checked sample, in the columns true and label (and "
    "count), got binary data",
    '{"ai": 3}': "expected labels of a checked sample…",
    "[1, 2]": "expected labels of a checked sample…",
}


@pytest.mark.parametrize("content", FAULTS)
def test_samples_without_labels_are_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "checked.csv"
    path.write_text(content)
    with refused(f"{path}: {FAULTS[content]}"):
        LabelErrors.from_text(str(path))
