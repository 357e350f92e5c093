"""Ids that differ in form only: said, with the count that would match."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from ranktilt.data.id_forms import near_matches
from ranktilt.data.labels.labels import labelled
from ranktilt.data.runs.run import Run
from ranktilt.errors import DataError, DataWarning
from tests.toy import write


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    ids: tuple[str, ...]
    known: tuple[str, ...]
    words: str


CASES = [
    Case(
        name="scheme",
        ids=("http://a.org/x", "https://b.org", "other"),
        known=("https://a.org/x", "b.org"),
        words="2 ids of 3 would match without the scheme (http://, https://): "
        "'http://a.org/x' and 'https://a.org/x'",
    ),
    Case(
        name="slash",
        ids=("https://a.org/x/", "https://a.org/y"),
        known=("https://a.org/x", "https://a.org/y"),
        words=(
            "1 id of 1 would match without the final slash: 'https://a.org/x/' and "
            "'https://a.org/x'"
        ),
    ),
    Case(
        name="Unicode form",
        ids=("u\u0308ber", "a"),
        known=("\u00fcber", "a"),
        words="1 id of 1 would match in one Unicode form (NFC): 'u\u0308ber' and '\u00fcber'",
    ),
    Case(
        name="all of it",
        ids=("http://www.a.org/x/",),
        known=("https://a.org/x",),
        words="1 id of 1 would match as addresses without scheme, www and final slash: "
        "'http://www.a.org/x/' and 'https://a.org/x'",
    ),
    Case(name="none", ids=("a", "b"), known=("b", "c"), words=""),
    Case(name="case is no form of one id", ids=("A",), known=("a",), words=""),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_ids_that_differ_in_form_are_counted(case: Case) -> None:
    assert near_matches(pl.Series(case.ids), pl.Series(case.known)) == case.words


def test_labels_of_other_forms_are_warned_of_and_refused_where_none_matches(tmp_path: Path) -> None:
    run = Run.load(write(tmp_path / "run.csv", "qid,url,score\nq,http://a/,2\nq,b,1\n"))
    labels = write(tmp_path / "labels.csv", "doc_id,source\nhttp://a,human\nb,llm\n")
    message = r"run\.csv: 1 id of 1 would match without the final slash"
    with pytest.warns(DataWarning, match=message):
        labelled(labels, [run])
    write(labels, "doc_id,source\nhttp://A/,human\nB,llm\n")
    with pytest.raises(DataError, match=r"no overlap: .*2 ids of 2 would match in lower case: "):
        labelled(labels, [run])
